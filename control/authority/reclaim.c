/* SPDX-License-Identifier: BSD-3-Clause */
/* Freeing what a dead node left behind (A-FAIL-10): one id, or every row of a node. First the
 * driver says what this machine knows about that lifecycle: refused while its process lives; proved
 * ended, its lease is ended too (T20); unknown here, only the lease decides. Then each row goes by
 * exact version and only if the recorded lease is gone (T8, T19). Called on the driver's thread. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum stage {
	STAGE_CHECK,  /* the driver is asked */
	STAGE_NODE,   /* node row: who is its owner id? */
	STAGE_LEASE,  /* lease row: which lease is it? */
	STAGE_REVOKE, /* T20 for the dead */
	STAGE_SWEEP,  /* its rows */
};

/* A job goes on to its end also when nobody waits for it any more. */
struct auth_reclaim {
	TAILQ_ENTRY(auth_reclaim) link;
	struct auth_op *op; /* NULL: nobody waits */
	enum stage stage;
	struct spl_name rid, owner_id;
	uint64_t lifecycle, lease;
	bool one; /* one id; its op reads the row again at the end */
	struct auth_step step;
	struct auth_timer retry;
	struct auth_fx fx;
};

bool auth_ended_has(const struct auth *a, struct auth_bytes rid)
{
	for (unsigned i = 0; i < AUTH_ENDED_MAX && i < a->n_ended; i++)
		if (auth_name_is(&a->ended[i].rid, rid))
			return true;
	return false;
}

void auth_ended_add(struct auth *a, struct auth_bytes rid)
{
	if (!auth_ended_has(a, rid))
		auth_name_copy(&a->ended[a->n_ended++ % AUTH_ENDED_MAX].rid, rid);
}

static struct auth_reclaim *job_of(struct auth_step *s)
{
	return (struct auth_reclaim *)((char *)s - offsetof(struct auth_reclaim, step));
}

static void job_free(struct auth *a, struct auth_reclaim *j)
{
	TAILQ_REMOVE(&a->jobs, j, link);
	a->n_jobs--;
	auth_fx_drop(a, &j->fx);
	auth_timer_stop(a, &j->retry);
	auth_step_drop(a, &j->step);
	if (j->op)
		j->op->job = NULL;
	free(j);
}

static void job_fail(struct auth *a, struct auth_reclaim *j, int kind, const char *text)
{
	struct auth_op *op = j->op;

	job_free(a, j);
	if (op)
		auth_op_finish(a, op, kind, "%s", text);
}

/* The lease is gone, or not ours to end: now the rows. */
static void job_rows(struct auth *a, struct auth_reclaim *j)
{
	struct auth_op *op = j->op;

	if (j->one) {
		job_free(a, j);
		if (op) {
			op->checked = true;
			auth_op_restart(a, op);
		}
		return;
	}
	if (!op && !a->cfg.reclaim_on_restart) {
		job_free(a, j);
		return;
	}
	if (auth_sweep_start(a, AUTH_SWEEP_RECLAIM, auth_name(&j->rid), op)) {
		job_fail(a, j, SPL_E_INTERNAL_FAILURE, "out of memory");
		return;
	}
	job_free(a, j);
}

static int build(struct auth *a, struct auth_step *s)
{
	struct auth_reclaim *j = job_of(s);
	char key[ROW_KEY_MAX];
	struct store_req *r;

	if (j->stage == STAGE_NODE)
		return auth_batch_read(
			a, key, row_key_node(key, auth_name(&a->cfg.mesh), auth_name(&j->rid)));
	if (j->stage == STAGE_LEASE)
		return auth_batch_read(a, key, row_key_lease(key, auth_name(&j->owner_id)));
	r = auth_batch_req(a, STORE_REVOKE);
	if (!r)
		return -ENOSPC;
	r->u.lease.id = j->lease;
	return 0;
}

static void go(struct auth *a, struct auth_reclaim *j, enum stage stage)
{
	j->stage = stage;
	auth_step_queue(a, &j->step);
}

static void node_read(struct auth *a, struct auth_reclaim *j, const struct store_req *r)
{
	struct row_node node;

	if (r->rc == STORE_MISSING || row_node_get(&node, r->u.read.item.val, r->u.read.item.len)) {
		job_rows(a, j); /* the descriptor lies under the lease: both are gone */
		return;
	}
	auth_name_copy(&j->owner_id, node.owner.owner_id);
	go(a, j, STAGE_LEASE);
}

static void lease_read(struct auth *a, struct auth_reclaim *j, const struct store_req *r)
{
	struct row_lease lease;

	if (r->rc == STORE_MISSING ||
	    row_lease_get(&lease, r->u.read.item.val, r->u.read.item.len) ||
	    !auth_name_is(&j->rid, lease.rid)) {
		job_rows(a, j);
		return;
	}
	j->lease = lease.lease;
	go(a, j, STAGE_REVOKE);
}

static void done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_reclaim *j = job_of(s);

	if (r->rc != STORE_OK && r->rc != STORE_MISSING) {
		if (j->op) {
			job_fail(a, j, SPL_E_UNAVAILABLE,
				 a->batch.b.text[0] ? a->batch.b.text : "store: read failed");
			return;
		}
		auth_timer_arm(a, &j->retry, a->now + AUTH_RETRY_MAX);
		return;
	}
	if (j->stage == STAGE_NODE)
		node_read(a, j, r);
	else if (j->stage == STAGE_LEASE)
		lease_read(a, j, r);
	else
		job_rows(a, j);
}

static void on_retry(struct auth *a, struct auth_timer *t)
{
	struct auth_reclaim *j =
		(struct auth_reclaim *)((char *)t - offsetof(struct auth_reclaim, retry));

	auth_step_queue(a, &j->step);
}

static void fill_check(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	struct auth_reclaim *j =
		(struct auth_reclaim *)((char *)fx - offsetof(struct auth_reclaim, fx));

	out->u.check.rid = j->rid;
	out->u.check.lifecycle = j->lifecycle;
}

static struct auth_reclaim *job_new(struct auth *a, struct auth_op *op, struct auth_bytes rid)
{
	struct auth_reclaim *j;

	if (a->n_jobs >= AUTH_JOBS_MAX ||
	    auth_timers_reserve(a, a->n_ops + a->n_works + 16 + a->n_jobs))
		return NULL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->op = op;
	auth_name_copy(&j->rid, rid);
	auth_step_init(&j->step, build, done);
	j->retry.fire = on_retry;
	j->fx = (struct auth_fx){.kind = AUTH_FX_LIFECYCLE_CHECK, .fill = fill_check};
	TAILQ_INSERT_TAIL(&a->jobs, j, link);
	a->n_jobs++;
	if (op) {
		op->job = j;
		op->state = AUTH_OP_BUSY;
	}
	return j;
}

static void ask(struct auth *a, struct auth_reclaim *j)
{
	j->stage = STAGE_CHECK;
	auth_fx_queue(a, &j->fx);
}

static void refuse(struct auth *a, struct auth_op *op, const char *why)
{
	auth_op_finish(a, op, SPL_E_INVALID_OPERATION, "%s", why);
}

/* RECLAIM_NODE. */
void auth_reclaim_start(struct auth *a, struct auth_op *op)
{
	struct auth_reclaim *j;

	if (auth_name_same(&op->id, &a->host.id.rid) && !a->host.dead) {
		refuse(a, op, "that node is this one, and it is alive");
		return;
	}
	j = job_new(a, op, auth_name(&op->id));
	if (j)
		ask(a, j);
	else
		auth_op_finish(a, op, SPL_E_CAPACITY_EXCEEDED, "too many reclaims at once");
}

static void delete_row(struct auth *a, struct auth_op *op, const struct row_obj *row, int64_t cr,
		       int64_t mr)
{
	struct auth_work *w = auth_work_new(a, auth_name(&op->id), AUTH_W_RELEASING);

	if (!w) {
		auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
		return;
	}
	auth_work_take_row(a, w, row, cr, mr);
	w->reclaim = true;
	auth_op_wait(a, op, w);
	auth_tx(a, w, AUTH_ORPHAN);
}

/* RECLAIM_ID, its row read. */
void auth_reclaim_row(struct auth *a, struct auth_op *op, const struct row_obj *row, int64_t cr,
		      int64_t mr)
{
	bool ours = auth_name_is(&a->host.id.owner_id, row->owner.owner_id) && !a->host.dead;
	struct auth_reclaim *j;

	if (row->kind == SPL_KIND_ENTRY || ours) {
		refuse(a, op,
		       row->kind == SPL_KIND_ENTRY ? "an Entry Spot ends with its node"
						   : "its owner is alive");
		return;
	}
	if (op->checked) {
		delete_row(a, op, row, cr, mr);
		return;
	}
	j = job_new(a, op, row->owner.rid);
	if (!j) {
		auth_op_finish(a, op, SPL_E_CAPACITY_EXCEEDED, "too many reclaims at once");
		return;
	}
	j->one = true;
	j->lifecycle = row->owner.lifecycle;
	auth_name_copy(&j->owner_id, row->owner.owner_id);
	ask(a, j);
}

/* The row is gone, or was kept because it changed or its lease stands. */
void auth_reclaim_tell(struct auth *a, struct auth_work *w, bool freed)
{
	struct auth_op *op, *next;

	for (op = TAILQ_FIRST(&w->waiters); op; op = next) {
		next = TAILQ_NEXT(op, link);
		if (op->verb != AUTH_RECLAIM_ID || !w->reclaim)
			continue;
		op->r.reclaimed = freed;
		op->r.kept = !freed;
		auth_op_finish(a, op, SPL_OK, "%s",
			       freed ? "reclaimed"
				     : "kept: it changed, or its owner's lease stands");
	}
}

void auth_reclaim_swept(struct auth *a, struct auth_op *op, uint32_t freed, uint32_t kept)
{
	op->r.reclaimed = freed;
	op->r.kept = kept;
	auth_op_finish(a, op, SPL_OK, "%u reclaimed", freed);
}

static void fill_gone(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->u.check.rid = ((struct auth_gone *)((char *)fx - offsetof(struct auth_gone, fx)))->rid;
}

void auth_reclaim_gone(struct auth *a, struct auth_bytes rid)
{
	struct auth_gone *g = a->gone;

	if (!auth_ended_has(a, rid))
		return;
	while (g < a->gone + AUTH_GONE_MAX && g->fx.queued)
		g++;
	if (g == a->gone + AUTH_GONE_MAX)
		return;
	auth_name_copy(&g->rid, rid);
	g->fx.kind = AUTH_FX_LIFECYCLE_GONE;
	g->fx.fill = fill_gone;
	auth_fx_queue(a, &g->fx);
}

static void answered(struct auth *a, struct auth_reclaim *j, const struct auth_event *e)
{
	if (e->u.lifecycle.state == AUTH_LIFE_HELD)
		job_fail(a, j, SPL_E_INVALID_OPERATION, "its node is alive");
	else if (e->u.lifecycle.state == AUTH_LIFE_ENDED)
		go(a, j, j->one ? STAGE_LEASE : STAGE_NODE);
	else
		job_rows(a, j);
}

void auth_reclaim_lifecycle(struct auth *a, const struct auth_event *e)
{
	struct auth_bytes rid = auth_name(&e->u.lifecycle.rid);
	struct auth_reclaim *j, *next;
	bool known = auth_ended_has(a, rid), asked = false;

	if (auth_name_is(&a->host.id.rid, rid) && !a->host.dead)
		known = true; /* of its own end HOST_DEAD tells */
	else if (e->u.lifecycle.state == AUTH_LIFE_ENDED && rid.n)
		auth_ended_add(a, rid);
	for (j = TAILQ_FIRST(&a->jobs); j; j = next) {
		next = TAILQ_NEXT(j, link);
		if (j->stage != STAGE_CHECK || !auth_name_is(&j->rid, rid))
			continue;
		asked = true;
		answered(a, j, e);
	}
	/* Told without being asked: its lease is let go, and with on_restart its rows. */
	if (!asked && !known && e->u.lifecycle.state == AUTH_LIFE_ENDED && rid.n) {
		j = job_new(a, NULL, rid);
		if (j)
			go(a, j, STAGE_NODE);
	}
}

void auth_reclaim_resend(struct auth *a)
{
	struct auth_reclaim *j;

	TAILQ_FOREACH (j, &a->jobs, link)
		if (j->stage == STAGE_CHECK)
			auth_fx_queue(a, &j->fx);
}

/* The op ended; its job goes on alone. */
void auth_reclaim_op_gone(struct auth *a, struct auth_op *op)
{
	if (op->job) {
		op->job->op = NULL;
		if (op->job->stage == STAGE_CHECK)
			job_free(a, op->job);
		op->job = NULL;
	}
	if (op->verb == AUTH_RECLAIM_NODE)
		auth_sweep_op_gone(a, op);
}

void auth_reclaim_fini(struct auth *a)
{
	struct auth_reclaim *j;

	while ((j = TAILQ_FIRST(&a->jobs)) != NULL)
		job_free(a, j);
}
