/* SPDX-License-Identifier: BSD-3-Clause */
/* A group in doubt (group.c): after a conflict or a lost answer the rows of the host and of every
 * work concerned are read again. What was done is told, what cannot be done is told, the rest
 * waits for the next group. Called on the driver's thread; owns nothing: the works are in
 * auth.doubtful. */
#include "control/authority/priv.h"

#include <errno.h>

/* Lease, node and capacity row first, then object and terminal of each doubtful work. */
static int build_verify(struct auth *a, struct auth_step *s)
{
	struct auth_host *h = &a->host;
	char key[ROW_KEY_MAX];
	struct auth_work *w;

	/* Never beside a group that flies: its counters would be read as they were before it. */
	if (TAILQ_EMPTY(&a->doubtful))
		return 0;
	a->verify_gen = h->held && h->rows ? h->id.lease_gen : 0;
	if (auth_batch_read(a, key, row_key_lease(key, auth_name(&h->id.owner_id))) ||
	    auth_batch_read(a, key,
			    row_key_node(key, auth_name(&a->cfg.mesh), auth_name(&h->id.rid))) ||
	    auth_batch_read(a, key, row_key_cap(key, auth_name(&h->id.rid))))
		return -ENOSPC;
	TAILQ_FOREACH (w, &a->doubtful, link) {
		struct store_bytes k = auth_obj_key(a, w), o = {NULL, 0};
		struct store_req *r;

		if (w->has_op)
			o = auth_opt_key(a, w);
		if (!k.p || (w->has_op && !o.p))
			return -ENOMEM;
		r = auth_batch_req(a, STORE_READ);
		if (!r)
			return -ENOSPC;
		r->u.read.key = k;
		if (!w->has_op)
			continue;
		r = auth_batch_req(a, STORE_READ);
		if (!r)
			return -ENOSPC;
		r->u.read.key = o;
	}
	return 0;
}

enum verdict { V_DONE, V_AGAIN, V_CONFLICT };

/* Did it happen, can it still happen? `obj` and `opt` are the rows as they are now. */
static enum verdict judge(const struct auth_work *w, const struct store_req *obj,
			  const struct store_req *opt)
{
	const struct store_item *it = &obj->u.read.item;
	bool there = obj->rc == STORE_OK, same;
	struct row_obj row;

	if (there && row_obj_get(&row, it->val, it->len))
		return V_CONFLICT;
	same = there && (uint64_t)it->cr == w->obj_gen;
	switch (w->tx) {
	case AUTH_T4:
		if (there && row.state == AUTH_ROW_CREATING && row.has_pending &&
		    row.pending.attempt == w->attempt)
			return V_DONE;
		return there || (opt && opt->rc == STORE_OK) ? V_CONFLICT : V_AGAIN;
	case AUTH_T5:
		if (same && row.state == AUTH_ROW_READY)
			return V_DONE;
		return same && auth_work_owns_row(w, &row) ? V_AGAIN : V_CONFLICT;
	case AUTH_T6:
	case AUTH_T7:
	case AUTH_T17:
		if (!same)
			return w->tx_unknown ? V_DONE : V_CONFLICT;
		return auth_work_owns_row(w, &row) ? V_AGAIN : V_CONFLICT;
	case AUTH_T21:
		if (same && row.own_gen == w->own_gen + 1 && w->tx_unknown)
			return V_DONE;
		return same && row.state == AUTH_ROW_READY && row.own_gen == w->own_gen &&
				       row.owner.lease_gen == w->lease_gen &&
				       auth_name_is(&w->owner_id, row.owner.owner_id)
			       ? V_AGAIN
			       : V_CONFLICT;
	case AUTH_T18:
	case AUTH_ORPHAN:
		break;
	}
	return V_CONFLICT;
}

static void take_adopted(struct auth_work *w, const struct store_item *it)
{
	struct row_obj row;

	w->own_gen++;
	if (row_obj_get(&row, it->val, it->len) == 0)
		w->lease_gen = row.owner.lease_gen;
}

static void settle(struct auth *a, struct auth_work *w, enum verdict v, const struct store_req *obj)
{

	TAILQ_REMOVE(&a->doubtful, w, link);
	w->tx_at = AUTH_TX_NOWHERE;
	if (v == V_AGAIN && auth_tx_under_our_lease(a, w, w->tx)) {
		if (w->tx != AUTH_T4)
			w->mr = obj->u.read.item.mr;
		w->tx_at = AUTH_TX_QUEUED;
		TAILQ_INSERT_TAIL(&a->group, w, link);
		return;
	}
	auth_group_want(a, w, -1);
	w->tx_unknown = false;
	if (v == V_DONE) {
		if (w->tx == AUTH_T4)
			w->obj_gen = (uint64_t)obj->u.read.item.cr;
		if (w->tx == AUTH_T21)
			take_adopted(w, &obj->u.read.item);
		w->mr = obj->u.read.item.mr;
		auth_work_tx_done(a, w, AUTH_TX_OK, "");
	} else if (v == V_AGAIN) {
		auth_work_tx_done(a, w, AUTH_TX_STALE, "the owner lease is gone");
	} else {
		auth_work_tx_done(a, w, AUTH_TX_CONFLICT, "the row has changed");
	}
}

/* The host's own rows: is the token still ours, what do the counters say? */
static void verify_host(struct auth *a, const struct store_req *r)
{
	struct auth_host *h = &a->host;

	/* Of a token that is gone, or before its rows were written: they tell nothing. */
	if (!h->held || a->verify_gen != h->id.lease_gen)
		return;
	if (r[0].rc != STORE_OK || r[0].u.read.item.cr != h->id.lease_gen || r[1].rc != STORE_OK ||
	    r[2].rc != STORE_OK) {
		auth_host_token_lost(a, "the lease or the rows of this host are gone");
		return;
	}
	h->node_mr = r[1].u.read.item.mr;
	if (auth_group_take_cap(a, &r[2].u.read.item)) {
		auth_log(a, AUTH_LOG_ERROR, "capacity row of this node is damaged");
		auth_host_token_lost(a, "the capacity row of this host is damaged");
	}
}

static void verify_done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_works now = TAILQ_HEAD_INITIALIZER(now);
	struct auth_work *w;
	size_t at = 3;

	for (size_t i = 0; i < n; i++) {
		if (r[i].rc != STORE_OK && r[i].rc != STORE_MISSING) {
			auth_timer_arm(a, &a->verify_retry, a->now + AUTH_RETRY_MIN);
			return;
		}
	}
	verify_host(a, r);
	/* Exactly those that build_verify() listed: none was added to the front since. */
	while (at < n && (w = TAILQ_FIRST(&a->doubtful)) != NULL) {
		const struct store_req *obj = &r[at], *opt = w->has_op ? &r[at + 1] : NULL;

		at += w->has_op ? 2 : 1;
		settle(a, w, judge(w, obj, opt), obj);
	}
	if (!TAILQ_EMPTY(&a->doubtful))
		auth_step_queue(a, &a->verify_step);
	if (!TAILQ_EMPTY(&a->group))
		auth_step_queue(a, &a->group_step);
}

static void on_verify_retry(struct auth *a, struct auth_timer *t)
{
	auth_step_queue(a, &a->verify_step);
}

void auth_verify_init(struct auth *a)
{
	auth_step_init(&a->verify_step, build_verify, verify_done);
	a->verify_retry.fire = on_verify_retry;
}
