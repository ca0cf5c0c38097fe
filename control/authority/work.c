/* SPDX-License-Identifier: BSD-3-Clause */
/* Spot ids in transition: the table of works, their commands to the dataplane and the answers, and
 * what happens to all of them when the dataplane or the lease is gone. Called on the driver's
 * thread; owns the works. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t id_hash(const struct auth *a, struct auth_bytes id)
{
	const uint8_t *b = id.p;
	uint64_t h = a->secret;

	for (uint32_t i = 0; i < id.n; i++)
		h = (h ^ b[i]) * 0x100000001b3ULL + (h >> 47);
	h *= 0x9e3779b97f4a7c15ULL;
	return (size_t)(h ^ (h >> 32)) & a->mask;
}

struct auth_work *auth_work_find(struct auth *a, struct auth_bytes id)
{
	struct auth_work *w = a->id_buckets[id_hash(a, id)];

	while (w && !auth_name_is(&w->id, id))
		w = w->same_id;
	return w;
}

struct auth_work *auth_work_find_op(struct auth *a, const struct auth_op_id *id)
{
	struct auth_work *w = a->identity_buckets[auth_identity_hash(a, id)];

	while (w && !auth_identity_same(&w->op_id, id))
		w = w->same_op;
	return w;
}

void auth_work_set_op(struct auth *a, struct auth_work *w, const struct auth_op_id *id)
{
	struct auth_work **b = &a->identity_buckets[auth_identity_hash(a, id)];

	w->op_id = *id;
	w->has_op = true;
	w->same_op = *b;
	*b = w;
}

static struct auth_work *work_of_fx(struct auth_fx *fx)
{
	return (struct auth_work *)((char *)fx - offsetof(struct auth_work, fx));
}

static void on_retry(struct auth *a, struct auth_timer *t)
{
	struct auth_work *w = (struct auth_work *)((char *)t - offsetof(struct auth_work, retry));

	if (w->tx_unknown && w->reads_back)
		auth_step_queue(a, &w->step);
	else
		auth_tx(a, w, w->tx);
}

struct auth_work *auth_work_new(struct auth *a, struct auth_bytes id, enum auth_work_state state)
{
	struct auth_work *w, **b;

	if (auth_timers_reserve(a, a->n_ops + a->n_works + 16))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	auth_name_copy(&w->id, id);
	w->state = state;
	w->type_at = -1;
	w->retry.fire = on_retry;
	TAILQ_INIT(&w->waiters);
	auth_single_init(w);
	b = &a->id_buckets[id_hash(a, id)];
	w->same_id = *b;
	*b = w;
	a->n_works++;
	return w;
}

void auth_work_take_row(struct auth *a, struct auth_work *w, const struct row_obj *row, int64_t cr,
			int64_t mr)
{
	w->kind = row->kind;
	auth_name_copy(&w->type, row->type);
	auth_name_copy(&w->owner_id, row->owner.owner_id);
	w->lease_gen = row->owner.lease_gen;
	w->obj_gen = (uint64_t)cr;
	w->own_gen = row->own_gen;
	w->mr = mr;
	w->type_at = auth_type_index(a, row->type, row->kind);
}

/* Only this work may end it, whatever its version: the reservation of this attempt, or a Spot that
 * the recorded token of this work owns. */
bool auth_work_owns_row(const struct auth_work *w, const struct row_obj *row)
{
	if (row->owner.lease_gen != w->lease_gen ||
	    !auth_name_is(&w->owner_id, row->owner.owner_id))
		return false;
	switch (row->state) {
	case AUTH_ROW_CREATING:
		return w->attempt && row->pending.attempt == w->attempt;
	case AUTH_ROW_READY:
	case AUTH_ROW_CLOSING:
		return w->state == AUTH_W_RELEASING && row->members == 0;
	case AUTH_ROW_RELOCATING:
		return false;
	}
	return false;
}

/* The slot of a creation counts from its reservation to its end. */
void auth_work_count(struct auth *a, struct auth_work *w)
{
	w->counted = true;
	a->n_pending++;
}

static void unlink_tables(struct auth *a, struct auth_work *w)
{
	struct auth_work **b = &a->id_buckets[id_hash(a, auth_name(&w->id))];

	while (*b != w)
		b = &(*b)->same_id;
	*b = w->same_id;
	if (!w->has_op)
		return;
	b = &a->identity_buckets[auth_identity_hash(a, &w->op_id)];
	while (*b != w)
		b = &(*b)->same_op;
	*b = w->same_op;
}

static void command_unlink(struct auth *a, struct auth_work *w)
{
	struct auth_work **b = &a->cmd_buckets[w->cmd & a->mask];

	if (!w->cmd_open)
		return;
	while (*b != w)
		b = &(*b)->same_cmd;
	*b = w->same_cmd;
	w->cmd_open = false;
}

static void work_free(struct auth *a, struct auth_work *w)
{
	auth_tx_drop(a, w);
	command_unlink(a, w);
	auth_fx_drop(a, &w->fx);
	auth_timer_stop(a, &w->retry);
	unlink_tables(a, w);
	auth_buf_put(w->request);
	auth_buf_put(w->reply);
	if (w->counted)
		a->n_pending--;
	a->n_works--;
	free(w);
}

static void restart_ops(struct auth *a, struct auth_work *w)
{
	struct auth_op *op;

	while ((op = TAILQ_FIRST(&w->waiters)) != NULL)
		auth_op_restart(a, op);
	if (w->op)
		auth_op_restart(a, w->op);
}

void auth_work_end(struct auth *a, struct auth_work *w, bool freed)
{
	struct auth_sweep *s = w->sweep;

	restart_ops(a, w);
	work_free(a, w);
	if (s)
		auth_sweep_work_done(a, s, freed);
}

void auth_work_retry(struct auth *a, struct auth_work *w)
{
	w->retry_ns = w->retry_ns ? w->retry_ns * 2 : AUTH_RETRY_MIN;
	if (w->retry_ns > AUTH_RETRY_MAX)
		w->retry_ns = AUTH_RETRY_MAX;
	auth_timer_arm(a, &w->retry, a->now + w->retry_ns);
}

bool auth_work_creating(const struct auth_work *w)
{
	return w->state <= AUTH_W_UNDOING && w->state != AUTH_W_PUBLISHING;
}

/* ---- commands ---- */

static void fill_command(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	struct auth_work *w = work_of_fx(fx);
	struct auth_command *c = &out->u.command;

	c->cmd = w->cmd;
	c->again = w->cmd_again;
	c->id = auth_name(&w->id);
	c->type = auth_name(&w->type);
	c->kind = w->kind;
	c->fence = (struct auth_fence){w->obj_gen, w->own_gen, 0, w->lease_gen};
	if (fx->kind == AUTH_FX_PUBLISH)
		c->fence.ver = (uint64_t)w->mr;
	c->attempt = w->attempt;
	if (fx->kind == AUTH_FX_PREPARE && w->request)
		c->request = (struct auth_bytes){w->request->b, w->request->n};
	c->deadline = w->deadline;
	c->reason = w->reason;
	w->cmd_again = true; /* whenever it is sent after this */
}

void auth_work_command(struct auth *a, struct auth_work *w, enum auth_fx_kind kind)
{
	struct auth_work **b;

	command_unlink(a, w);
	auth_fx_drop(a, &w->fx);
	w->fx.kind = kind;
	w->fx.fill = fill_command;
	w->cmd = ++a->cmd_seq;
	w->cmd_open = true;
	w->cmd_again = false;
	b = &a->cmd_buckets[w->cmd & a->mask];
	w->same_cmd = *b;
	*b = w;
	auth_fx_queue(a, &w->fx);
}

/* NULL for a late answer: the command was overtaken, or its work is over. */
static struct auth_work *find_command(struct auth *a, uint64_t cmd)
{
	struct auth_work *w = a->cmd_buckets[cmd & a->mask];

	while (w && w->cmd != cmd)
		w = w->same_cmd;
	return w;
}

void auth_work_answer(struct auth *a, const struct auth_event *e)
{
	struct auth_work *w = find_command(a, e->u.answer.cmd);

	if (!w)
		return;
	command_unlink(a, w);
	auth_fx_drop(a, &w->fx);
	if (w->kind == SPL_KIND_ENTRY)
		auth_entry_answer(a, w, e);
	else if (w->state == AUTH_W_CLOSING)
		auth_close_answer(a, w, e);
	else
		auth_create_answer(a, w, e);
}

void auth_work_owner_gone(struct auth *a, struct auth_work *w)
{
	if (auth_work_creating(w))
		auth_create_owner_gone(a, w);
}

void auth_work_tx_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	if (rc != AUTH_TX_FAILED)
		w->retry_ns = 0;
	if (w->state == AUTH_W_MARKING || w->state == AUTH_W_RELEASING)
		auth_close_tx_done(a, w, rc, text);
	else
		auth_create_tx_done(a, w, rc, text);
}

/* Calls fn for every work; fn may end the one it gets. */
void auth_work_each(struct auth *a, void (*fn)(struct auth *a, struct auth_work *w))
{
	for (size_t i = 0; i <= a->mask; i++)
		for (struct auth_work *w = a->id_buckets[i], *next; w; w = next) {
			next = w->same_id;
			fn(a, w);
		}
}

static void resend(struct auth *a, struct auth_work *w)
{
	if (w->cmd_open)
		auth_fx_queue(a, &w->fx);
}

void auth_work_resend(struct auth *a)
{
	auth_work_each(a, resend);
}

/* The dataplane is proved gone: no command will be answered. */
static void host_gone(struct auth *a, struct auth_work *w)
{
	auth_fx_drop(a, &w->fx);
	if (!w->cmd_open)
		return;
	command_unlink(a, w);
	if (w->kind == SPL_KIND_ENTRY)
		auth_work_end(a, w, false); /* its row ends with the lease */
	else if (w->state == AUTH_W_CLOSING)
		auth_close_host_gone(a, w);
	else
		auth_create_host_gone(a, w);
}

void auth_work_host_gone(struct auth *a)
{
	auth_work_each(a, host_gone);
}

static void free_one(struct auth *a, struct auth_work *w)
{
	struct auth_op *op;

	/* The ops are freed by auth_op_fini(), through their timers. */
	while ((op = TAILQ_FIRST(&w->waiters)) != NULL) {
		TAILQ_REMOVE(&w->waiters, op, link);
		op->state = AUTH_OP_BUSY;
	}
	work_free(a, w);
}

void auth_work_fini(struct auth *a)
{
	auth_work_each(a, free_one);
}
