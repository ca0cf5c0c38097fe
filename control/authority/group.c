/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions that change an object row together with the capacity row of this host: T4, T5, T6,
 * T7, T17, T21 (A §15.7). The capacity row is contended, so all that wait share one transaction:
 * the conditions and puts of every object, the capacity written once. After a conflict or a lost
 * answer every row concerned is read again (verify.c), and what can still be done is tried again,
 * one by one when conflicts go on. Called on the driver's thread; owns the
 * counters. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int auth_type_index(const struct auth *a, struct auth_bytes name, enum spl_kind kind)
{
	for (size_t i = 0; i < a->n_types; i++)
		if (a->types[i].t.kind == kind && auth_name_is(&a->types[i].t.name, name))
			return (int)i;
	return -1;
}

bool auth_group_has_room(const struct auth *a, int type_at)
{
	const struct auth_type_slot *t = &a->types[type_at];
	uint32_t spots = a->spots_active + a->spots_reserved + a->spots_wanted;

	if (a->cfg.spots_max && spots >= a->cfg.spots_max)
		return false;
	return t->t.limit == 0 || t->active + t->reserved + t->wanted < t->t.limit;
}

void auth_group_clear(struct auth *a)
{
	a->spots_active = a->spots_reserved = a->cap_pending = 0;
	for (size_t i = 0; i < a->n_types; i++)
		a->types[i].active = a->types[i].reserved = 0;
}

int auth_group_take_cap(struct auth *a, const struct store_item *it)
{
	struct row_cap_type t;
	struct row_cap cap;
	size_t at = 0;
	int i, err = row_cap_get(&cap, it->val, it->len);

	if (err)
		return err;
	auth_group_clear(a);
	a->spots_active = cap.spots_active;
	a->spots_reserved = cap.spots_reserved;
	a->cap_pending = cap.pending;
	while (row_cap_type(&cap, &at, &t)) {
		i = auth_type_index(a, t.name, t.kind);
		if (i < 0)
			return -EINVAL; /* types are fixed for a lifecycle */
		a->types[i].active = t.active;
		a->types[i].reserved = t.reserved;
	}
	a->cap_mr = it->mr;
	a->cap_known = true;
	return 0;
}

/* ---- what one transaction does ---- */

static bool tx_needs_lease(enum auth_tx tx)
{
	return tx == AUTH_T4 || tx == AUTH_T5 || tx == AUTH_T17 || tx == AUTH_T21;
}

static bool tx_writes_opt(enum auth_tx tx)
{
	return tx == AUTH_T5 || tx == AUTH_T6;
}

/* Moves the counters as the transaction does; with sign -1 back again. */
static void move_counters(struct auth *a, const struct auth_work *w, int sign)
{
	struct auth_type_slot *t = w->type_at >= 0 ? &a->types[w->type_at] : NULL;
	int active = 0, reserved = 0;

	switch (w->tx) {
	case AUTH_T4:
		reserved = 1;
		break;
	case AUTH_T5:
		reserved = -1;
		active = 1;
		break;
	case AUTH_T6:
	case AUTH_T7:
		reserved = -1;
		break;
	case AUTH_T17:
		active = -1;
		break;
	case AUTH_T21:
		active = 1;
		break;
	case AUTH_T18:
	case AUTH_ORPHAN:
		break;
	}
	a->spots_active += (uint32_t)(sign * active);
	a->spots_reserved += (uint32_t)(sign * reserved);
	a->cap_pending += (uint32_t)(sign * reserved);
	if (t) {
		t->active += (uint32_t)(sign * active);
		t->reserved += (uint32_t)(sign * reserved);
	}
}

void auth_group_want(struct auth *a, const struct auth_work *w, int n)
{
	if (w->tx != AUTH_T4)
		return;
	a->spots_wanted += (uint32_t)n;
	a->types[w->type_at].wanted += (uint32_t)n;
}

/* ---- the shared transaction ---- */

struct group {
	struct store_cond *c;
	struct store_mut *m;
	size_t nc, nm;
};

/* Adds what w wants. -ENOMEM: nothing was added. */
static int add_work(struct auth *a, struct group *g, const struct auth_work *w)
{
	struct store_bytes key = auth_obj_key(a, w), okey = {NULL, 0}, oval = {NULL, 0},
			   val = {NULL, 0};
	bool puts = w->tx == AUTH_T4 || w->tx == AUTH_T5 || w->tx == AUTH_T21;
	bool opt_absent = w->has_op && w->tx == AUTH_T4,
	     opt_put = w->has_op && tx_writes_opt(w->tx);
	struct row_obj row;

	if (w->tx == AUTH_T4)
		auth_creating_row(a, w, &row);
	else
		auth_row_of_work(a, w, &row);
	if (w->tx == AUTH_T21) { /* A-LEASE-9: new token, own_gen + 1 */
		row.own_gen++;
		row.owner.lease_gen = a->host.id.lease_gen;
	}
	if (puts)
		val = auth_obj_value(a, &row);
	if (opt_absent || opt_put)
		okey = auth_opt_key(a, w);
	if (opt_put)
		oval = auth_opt_value(a, w);
	if (!key.p || (puts && !val.n) || ((opt_absent || opt_put) && !okey.p) ||
	    (opt_put && !oval.n))
		return -ENOMEM;
	g->c[g->nc++] =
		(struct store_cond){key, w->tx == AUTH_T4 ? STORE_IF_ABSENT : STORE_IF_MR, w->mr};
	g->m[g->nm++] = (struct store_mut){.key = key, .val = val, .del = !puts};
	if (opt_absent)
		g->c[g->nc++] = (struct store_cond){okey, STORE_IF_ABSENT, 0};
	if (opt_put)
		g->m[g->nm++] =
			(struct store_mut){.key = okey, .val = oval, .keep_ms = auth_keep_ms(a, w)};
	return 0;
}

/* Conditions on the host's rows, and the new capacity row. */
static int add_host(struct auth *a, struct group *g, bool lease, bool node)
{
	struct auth_host *h = &a->host;
	char key[ROW_KEY_MAX];
	struct store_bytes k, val = auth_group_cap_value(a);

	k = auth_batch_copy(a, (struct store_bytes){key, row_key_cap(key, auth_name(&h->id.rid))});
	if (!k.p || !val.n)
		return -ENOMEM;
	g->c[g->nc++] = (struct store_cond){k, STORE_IF_MR, a->cap_mr};
	g->m[g->nm++] = (struct store_mut){.key = k, .val = val, .lease = h->lease};
	if (lease) {
		k = auth_batch_copy(
			a,
			(struct store_bytes){key, row_key_lease(key, auth_name(&h->id.owner_id))});
		if (!k.p)
			return -ENOMEM;
		g->c[g->nc++] = (struct store_cond){k, STORE_IF_CR, h->id.lease_gen};
	}
	if (node) {
		k = auth_batch_copy(
			a, (struct store_bytes){key, row_key_node(key, auth_name(&a->cfg.mesh),
								  auth_name(&h->id.rid))});
		if (!k.p)
			return -ENOMEM;
		g->c[g->nc++] = (struct store_cond){k, STORE_IF_MR, h->node_mr};
	}
	return 0;
}

static size_t bytes_of(const struct auth_work *w)
{
	return 3 * ROW_OBJ_MAX + (tx_writes_opt(w->tx) && w->reply ? w->reply->n : 0);
}

/* A-LEASE-6, A-LEASE-7: with an expired right nothing is written. What takes something new is
 * refused; what gives something back waits for the next renewal. */
void auth_group_refuse_expired(struct auth *a)
{
	struct auth_work *w, *next;

	if (auth_host_writable(a))
		return;
	for (w = TAILQ_FIRST(&a->group); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (w->tx != AUTH_T4 && w->tx != AUTH_T5)
			continue;
		auth_tx_drop(a, w);
		auth_work_tx_done(a, w, AUTH_TX_STALE, "the owner lease has run out");
		next = TAILQ_FIRST(&a->group); /* the list may have changed */
	}
}

static int build_group(struct auth *a, struct auth_step *s)
{
	size_t limit = a->conflicts_in_a_row > AUTH_GROUP_TRIES ? 1 : a->cfg.group_max, n = 0,
	       bytes = 0;
	bool lease = false, node = false;
	struct group g = {0};
	struct store_txn *t;
	struct auth_work *w;

	if (!auth_host_writable(a) || !a->cap_known || TAILQ_EMPTY(&a->group) ||
	    !TAILQ_EMPTY(&a->doubtful))
		return 0; /* comes again when that changes */
	t = auth_batch_txn(a, 2 * limit + 3, 2 * limit + 1, &g.c, &g.m);
	if (!t)
		return -ENOMEM;
	while ((w = TAILQ_FIRST(&a->group)) != NULL && n < limit) {
		bytes += bytes_of(w);
		if (n && bytes > AUTH_BATCH_BYTES)
			break;
		if (add_work(a, &g, w))
			break;
		lease |= tx_needs_lease(w->tx);
		node |= w->tx == AUTH_T4;
		auth_group_want(a, w, -1);
		move_counters(a, w, 1);
		TAILQ_REMOVE(&a->group, w, link);
		TAILQ_INSERT_TAIL(&a->flying, w, link);
		w->tx_at = AUTH_TX_FLYING;
		n++;
	}
	if (n && add_host(a, &g, lease, node) == 0) {
		t->n_conds = g.nc;
		t->n_muts = g.nm;
		return 0;
	}
	while ((w = TAILQ_LAST(&a->flying, auth_works)) != NULL) {
		auth_group_want(a, w, 1);
		move_counters(a, w, -1);
		TAILQ_REMOVE(&a->flying, w, link);
		TAILQ_INSERT_HEAD(&a->group, w, link);
		w->tx_at = AUTH_TX_QUEUED;
	}
	return -ENOMEM;
}

static void group_ok(struct auth *a, int64_t rev)
{
	struct auth_works done = TAILQ_HEAD_INITIALIZER(done);
	struct auth_work *w;

	a->conflicts_in_a_row = 0;
	a->cap_mr = rev;
	TAILQ_CONCAT(&done, &a->flying, link);
	while ((w = TAILQ_FIRST(&done)) != NULL) {
		TAILQ_REMOVE(&done, w, link);
		w->tx_at = AUTH_TX_NOWHERE;
		if (w->tx == AUTH_T4)
			w->obj_gen = (uint64_t)rev;
		if (w->tx == AUTH_T21) {
			w->own_gen++;
			w->lease_gen = a->host.id.lease_gen;
		}
		w->mr = rev;
		auth_work_tx_done(a, w, AUTH_TX_OK, "");
	}
}

/* Nothing was written: back with the counters. */
static void group_failed(struct auth *a, enum auth_tx_rc rc, const char *text)
{
	struct auth_works done = TAILQ_HEAD_INITIALIZER(done);
	struct auth_work *w;

	TAILQ_CONCAT(&done, &a->flying, link);
	TAILQ_FOREACH (w, &done, link)
		move_counters(a, w, -1);
	while ((w = TAILQ_FIRST(&done)) != NULL) {
		TAILQ_REMOVE(&done, w, link);
		w->tx_at = AUTH_TX_NOWHERE;
		auth_work_tx_done(a, w, rc, text);
	}
}

static void group_doubtful(struct auth *a, bool unknown)
{
	struct auth_work *w;

	a->cap_known = false;
	while ((w = TAILQ_FIRST(&a->flying)) != NULL) {
		auth_group_want(a, w, 1);
		move_counters(a, w, -1);
		TAILQ_REMOVE(&a->flying, w, link);
		TAILQ_INSERT_TAIL(&a->doubtful, w, link);
		w->tx_at = AUTH_TX_DOUBTFUL;
		w->tx_unknown |= unknown;
	}
	auth_step_queue(a, &a->verify_step);
}

static void group_done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	switch (r->rc) {
	case STORE_OK:
		group_ok(a, r->u.txn.rev);
		break;
	case STORE_CONFLICT:
		a->conflicts_in_a_row++;
		a->count.conflicts++;
		group_doubtful(a, false);
		break;
	case STORE_UNKNOWN:
		a->count.unknowns++;
		group_doubtful(a, true);
		break;
	case STORE_STALE_LEASE:
		group_failed(a, AUTH_TX_STALE, "the owner lease is gone");
		auth_host_token_lost(a, "the store ended the lease");
		break;
	case STORE_EXHAUSTED:
		group_failed(a, AUTH_TX_EXHAUSTED, a->batch.b.text);
		break;
	default:
		group_failed(a, AUTH_TX_FAILED, a->batch.b.text);
		break;
	}
	if (!TAILQ_EMPTY(&a->group))
		auth_step_queue(a, &a->group_step);
}

/* ---- wanting one ---- */

bool auth_tx_under_our_lease(const struct auth *a, const struct auth_work *w, enum auth_tx tx)
{
	return a->host.held && (tx == AUTH_T21 || w->lease_gen == a->host.id.lease_gen);
}

void auth_tx(struct auth *a, struct auth_work *w, enum auth_tx tx)
{
	w->tx = tx;
	w->tx_unknown = false;
	if (tx == AUTH_T18 || tx == AUTH_ORPHAN) {
		auth_single_tx(a, w);
		return;
	}
	if (!auth_tx_under_our_lease(a, w, tx)) {
		auth_work_tx_done(a, w, AUTH_TX_STALE, "the owner lease is gone");
		return;
	}
	auth_group_want(a, w, 1);
	w->tx_at = AUTH_TX_QUEUED;
	TAILQ_INSERT_TAIL(&a->group, w, link);
	auth_step_queue(a, &a->group_step);
}

void auth_tx_drop(struct auth *a, struct auth_work *w)
{
	switch (w->tx_at) {
	case AUTH_TX_QUEUED:
		TAILQ_REMOVE(&a->group, w, link);
		break;
	case AUTH_TX_FLYING:
		TAILQ_REMOVE(&a->flying, w, link);
		w->tx_at = AUTH_TX_NOWHERE;
		return;
	case AUTH_TX_DOUBTFUL:
		TAILQ_REMOVE(&a->doubtful, w, link);
		break;
	case AUTH_TX_NOWHERE:
		auth_step_drop(a, &w->step);
		return;
	}
	auth_group_want(a, w, -1);
	w->tx_at = AUTH_TX_NOWHERE;
}

/* The lease is gone: what waits for the group will not happen that way. */
void auth_group_token_lost(struct auth *a)
{
	struct auth_work *w;

	a->cap_known = false;
	while ((w = TAILQ_FIRST(&a->group)) != NULL) {
		auth_tx_drop(a, w);
		auth_work_tx_done(a, w, AUTH_TX_STALE, "the owner lease is gone");
	}
}

/* The lease was renewed: what waited for it goes on. */
void auth_group_kick(struct auth *a)
{
	if (!TAILQ_EMPTY(&a->group))
		auth_step_queue(a, &a->group_step);
	if (!TAILQ_EMPTY(&a->doubtful))
		auth_step_queue(a, &a->verify_step);
}

void auth_group_init(struct auth *a)
{
	TAILQ_INIT(&a->group);
	TAILQ_INIT(&a->flying);
	TAILQ_INIT(&a->doubtful);
	auth_step_init(&a->group_step, build_group, group_done);
	a->group_step.writes = true;
	auth_verify_init(a);
}
