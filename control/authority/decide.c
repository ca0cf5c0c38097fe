/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rows that were read mean for a request: the tables of A-LOC-18, A-LOC-40, A-LOC-42,
 * A-LOC-46 and S-ADDR-2. Pure decisions; the work itself is in create.c, close.c, reclaim.c. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool auth_owner_is_us(const struct auth *a, const struct row_owner *o)
{
	return a->host.held && o->lease_gen == a->host.id.lease_gen &&
	       auth_name_is(&a->host.id.owner_id, o->owner_id);
}

static bool owner_was_us(const struct auth *a, const struct auth_names *n)
{
	return a->host.held && n->lease_gen == a->host.id.lease_gen &&
	       auth_name_same(&a->host.id.owner_id, &n->owner_id);
}

bool auth_host_writable(const struct auth *a)
{
	return a->host.held && a->now < a->host.deadline;
}

/* ---- entries ---- */

static struct auth_names *names_of(struct auth_op *op)
{
	if (!op->names)
		op->names = malloc(sizeof(*op->names));
	if (op->names)
		memset(&op->names->e, 0, sizeof(op->names->e));
	return op->names;
}

static bool entry_of_row(struct auth_op *op, struct auth_bytes id, const struct row_obj *row,
			 int64_t cr, int64_t mr)
{
	struct auth_names *n = names_of(op);

	if (!n)
		return false;
	auth_name_copy(&n->id, id);
	auth_name_copy(&n->type, row->type);
	auth_name_copy(&n->mesh, row->owner.mesh);
	auth_name_copy(&n->rid, row->owner.rid);
	auth_name_copy(&n->owner_id, row->owner.owner_id);
	n->lease_gen = row->owner.lease_gen;
	n->e.obj_gen = (uint64_t)cr;
	n->e.own_gen = row->own_gen;
	n->e.ver = (uint64_t)mr;
	n->e.lifecycle = row->owner.lifecycle;
	n->e.lease_gen = (uint64_t)row->owner.lease_gen;
	n->e.kind = row->kind;
	n->e.state = row->state;
	return true;
}

bool auth_op_entry_of_work(struct auth *a, struct auth_op *op, const struct auth_work *w)
{
	struct auth_names *n = names_of(op);

	if (!n)
		return false;
	n->id = w->id;
	n->type = w->type;
	n->mesh = a->cfg.mesh;
	n->rid = a->host.id.rid;
	n->owner_id = w->owner_id;
	n->lease_gen = w->lease_gen;
	n->e.obj_gen = w->obj_gen;
	n->e.own_gen = w->own_gen;
	n->e.ver = (uint64_t)w->mr;
	n->e.lifecycle = a->host.id.lifecycle;
	n->e.lease_gen = (uint64_t)w->lease_gen;
	n->e.kind = w->kind;
	n->e.state = AUTH_ROW_READY;
	return true;
}

void auth_op_store_failed(struct auth *a, struct auth_op *op, const struct store_req *r)
{
	const char *text = a->batch.b.text;

	op->r.obstacle = AUTH_MET_STORE;
	if (op->verb == AUTH_RESOLVE)
		op->r.route = AUTH_ROUTE_FAILED;
	auth_op_finish(a, op, SPL_E_UNAVAILABLE, "%s", text[0] ? text : "store: read failed");
}

static void damaged(struct auth *a, struct auth_op *op, const char *what, int err)
{
	if (op->verb == AUTH_RESOLVE)
		op->r.route = AUTH_ROUTE_FAILED;
	auth_log(a, AUTH_LOG_ERROR,
		 "the %s row of a Spot is damaged: %s: it cannot be used until it is repaired",
		 what, strerror(-err));
	auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "its %s row is damaged: %s", what,
		       strerror(-err));
}

static void mismatch(struct auth *a, struct auth_op *op, enum spl_kind kind)
{
	op->r.obstacle = kind != op->kind ? AUTH_MET_KIND : AUTH_MET_TYPE;
	auth_op_finish(a, op, SPL_E_TYPE_MISMATCH, "the id belongs to another type");
}

/* ---- no row ---- */

static void decide_absent(struct auth *a, struct auth_op *op)
{
	switch (op->verb) {
	case AUTH_CREATE:
	case AUTH_GET_OR_CREATE:
	case AUTH_ACTIVATE:
		auth_create_reserve(a, op);
		return;
	case AUTH_RESOLVE:
		op->r.route = AUTH_ROUTE_MISSING;
		auth_op_finish(a, op, SPL_OK, "no such Spot");
		return;
	case AUTH_FIND:
	case AUTH_SHOW:
	case AUTH_CLOSE:
	case AUTH_RECLAIM_ID:
		auth_op_finish(a, op, SPL_OK, "no such Spot");
		return;
	case AUTH_LIST:
	case AUTH_RECLAIM_NODE:
		return;
	}
}

/* ---- the id is in transition here ---- */

static void decide_create_in_transition(struct auth *a, struct auth_op *op, struct auth_work *w)
{
	bool same_type = w->kind == op->kind && auth_name_same(&w->type, &op->type);

	if (w->has_op && auth_identity_same(&w->op_id, &op->id_op) && !w->op) {
		auth_op_own(a, op, w); /* its own attempt, whose first caller is gone */
		return;
	}
	if (w->state == AUTH_W_CLOSING || w->state == AUTH_W_RELEASING)
		op->r.obstacle = AUTH_MET_CLOSING;
	if (!same_type)
		mismatch(a, op, w->kind);
	else if (op->verb == AUTH_CREATE)
		auth_op_finish(a, op, SPL_E_ALREADY_EXISTS, "the id is taken");
	else
		auth_op_wait(a, op, w);
}

/* True when the op was dealt with; false: the row that was read decides. */
static bool decide_in_transition(struct auth *a, struct auth_op *op, struct auth_work *w)
{
	bool opening = w->state == AUTH_W_PUBLISHING || w->state == AUTH_W_ADOPTING;
	bool leaving = w->state == AUTH_W_CLOSING || w->state == AUTH_W_RELEASING;

	switch (op->verb) {
	case AUTH_CREATE:
	case AUTH_GET_OR_CREATE:
	case AUTH_ACTIVATE:
		decide_create_in_transition(a, op, w);
		return true;
	case AUTH_FIND:
	case AUTH_SHOW:
	case AUTH_RESOLVE:
		/* Ready in the store, but its admission is not open yet: soon it is. And when an
		 * Instance Spot has gone, the message that asks may start the next (S-CLOSE-4). */
		if (op->verb == AUTH_RESOLVE && leaving && w->kind == SPL_KIND_INSTANCE)
			opening = true;
		if (opening)
			auth_op_wait(a, op, w);
		return opening;
	case AUTH_CLOSE:
		if (auth_work_creating(w) || op->obj_gen != w->obj_gen)
			return false;
		auth_op_wait(a, op, w); /* a close under way is shared */
		return true;
	case AUTH_RECLAIM_ID:
		auth_op_wait(a, op, w);
		return true;
	case AUTH_LIST:
	case AUTH_RECLAIM_NODE:
		return false;
	}
	return false;
}

/* ---- a row ---- */

static void existing(struct auth *a, struct auth_op *op)
{
	op->r.created = AUTH_EXISTING;
	op->r.found = true;
	auth_op_finish(a, op, SPL_OK, "exists");
}

static void ask_lease(struct auth *a, struct auth_op *op)
{
	op->asks_lease = true;
	auth_op_restart(a, op);
}

/* Ours, but not compared with the dataplane yet: it may be Ready in the store and closed to
 * messages, because the process that committed it died before it published it.
 */
static bool not_compared(const struct auth *a, const struct auth_names *n)
{
	return a->host.phase >= AUTH_H_RESUME && a->host.phase < AUTH_H_UP &&
	       auth_name_same(&a->host.id.owner_id, &n->owner_id);
}

/* The row is as in op->names; `usable`: the recorded owner stands. */
static void decide_owner(struct auth *a, struct auth_op *op, bool usable)
{
	struct auth_names *n = op->names;

	if (usable && op->verb != AUTH_SHOW && not_compared(a, n)) {
		auth_op_look_later(a, op);
		return;
	}
	switch (op->verb) {
	case AUTH_GET_OR_CREATE:
	case AUTH_ACTIVATE:
		op->r.obstacle =
			!usable || n->e.state == AUTH_ROW_READY ? AUTH_MET_OWNER : AUTH_MET_CLOSING;
		if (!usable)
			auth_op_finish(a, op, SPL_E_UNAVAILABLE, "its owner is gone");
		else if (n->e.state == AUTH_ROW_READY)
			existing(a, op);
		else
			auth_op_look_later(a, op);
		return;
	case AUTH_FIND:
		if (!usable)
			auth_op_finish(a, op, SPL_E_UNAVAILABLE, "its owner is gone");
		else if (n->e.state == AUTH_ROW_READY || n->e.state == AUTH_ROW_RELOCATING)
			existing(a, op);
		else
			auth_op_finish(a, op, SPL_E_UNAVAILABLE, "it is being closed");
		return;
	case AUTH_SHOW:
		n->e.unavailable = !usable;
		op->r.found = true;
		auth_op_finish(a, op, SPL_OK, "%s", usable ? "exists" : "its owner is gone");
		return;
	case AUTH_RESOLVE:
		op->r.route = AUTH_ROUTE_UNAVAILABLE;
		if (usable && n->e.state == AUTH_ROW_READY) {
			op->r.route = AUTH_ROUTE_READY;
			op->r.valid_until = owner_was_us(a, n) ? a->host.deadline : a->now;
		}
		auth_op_finish(a, op, SPL_OK, "%s", usable ? "" : "its owner is gone");
		return;
	case AUTH_CREATE:
	case AUTH_LIST:
	case AUTH_CLOSE:
	case AUTH_RECLAIM_ID:
	case AUTH_RECLAIM_NODE:
		return;
	}
}

void auth_decide_lease(struct auth *a, struct auth_op *op, const struct store_req *r)
{
	if (r->rc != STORE_OK && r->rc != STORE_MISSING) {
		auth_op_store_failed(a, op, r);
		return;
	}
	decide_owner(a, op, r->rc == STORE_OK && r->u.read.item.cr == op->names->lease_gen);
}

/* A Creating row that no work of this process stands for. */
static void decide_creating(struct auth *a, struct auth_op *op, const struct row_obj *row,
			    int64_t cr, int64_t mr)
{
	struct auth_work *w;

	switch (op->verb) {
	case AUTH_GET_OR_CREATE:
	case AUTH_ACTIVATE:
		if (auth_name_is(&a->host.id.owner_id, row->owner.owner_id) &&
		    a->host.phase != AUTH_H_UP) {
			auth_op_look_later(a, op); /* its attempt may still be taken over */
			return;
		}
		/* Left by a dead attempt: cancel exactly that one, then compete (A-LOC-23). */
		w = auth_create_cancel(a, auth_name(&op->id), row, cr, mr);
		if (w)
			auth_op_wait(a, op, w);
		else
			auth_op_look_later(a, op);
		return;
	case AUTH_FIND:
		auth_op_finish(a, op, SPL_OK, "no such Spot");
		return;
	case AUTH_RESOLVE:
		op->r.route = AUTH_ROUTE_MISSING;
		auth_op_finish(a, op, SPL_OK, "no such Spot");
		return;
	case AUTH_CREATE:
	case AUTH_SHOW:
	case AUTH_LIST:
	case AUTH_CLOSE:
	case AUTH_RECLAIM_ID:
	case AUTH_RECLAIM_NODE:
		return;
	}
}

static void decide_row(struct auth *a, struct auth_op *op, const struct row_obj *row, int64_t cr,
		       int64_t mr)
{
	bool creates = auth_verb_creates(op->verb);

	if (creates && (row->kind != op->kind || !auth_name_is(&op->type, row->type))) {
		mismatch(a, op, row->kind);
		return;
	}
	if (op->verb == AUTH_CREATE) {
		auth_op_finish(a, op, SPL_E_ALREADY_EXISTS, "the id is taken");
		return;
	}
	if (op->verb == AUTH_CLOSE) {
		auth_close_start(a, op, row, cr, mr);
		return;
	}
	if (op->verb == AUTH_RECLAIM_ID) {
		auth_reclaim_row(a, op, row, cr, mr);
		return;
	}
	if (row->state == AUTH_ROW_CREATING && op->verb != AUTH_SHOW) {
		decide_creating(a, op, row, cr, mr);
		return;
	}
	if (!entry_of_row(op, auth_name(&op->id), row, cr, mr))
		auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
	else if (auth_owner_is_us(a, &row->owner) && a->host.phase != AUTH_H_RESUME)
		decide_owner(a, op, auth_host_writable(a) && !a->host.dead);
	else
		ask_lease(a, op);
}

/* The retained terminal of this very operation (A-LOC-19, A-LOC-20). */
static void decide_terminal(struct auth *a, struct auth_op *op, const struct store_item *it)
{
	struct auth_names *n = names_of(op);
	struct row_opt t;
	int err = row_opt_get(&t, it->val, it->len);

	if (err || !n) {
		damaged(a, op, "terminal", err ? err : -ENOMEM);
		return;
	}
	auth_name_copy(&n->id, t.id);
	auth_name_copy(&n->type, t.type);
	auth_name_copy(&n->mesh, t.mesh);
	auth_name_copy(&n->rid, t.rid);
	n->e.obj_gen = t.obj_gen;
	n->e.own_gen = t.own_gen;
	n->e.lifecycle = t.lifecycle;
	n->e.lease_gen = (uint64_t)t.lease_gen;
	n->e.kind = op->kind;
	n->e.state = AUTH_ROW_READY;
	if (t.result == ROW_FAILED) {
		auth_op_finish(a, op, t.kind, "%.*s", (int)t.text.n, (const char *)t.text.p);
		return;
	}
	op->r.found = true;
	op->r.created = t.result == ROW_CREATED ? AUTH_CREATED : AUTH_REJECTED;
	op->r.content = t.content;
	if (t.reply.n) {
		op->reply = auth_buf_make(t.reply);
		if (!op->reply) {
			auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
			return;
		}
	}
	auth_op_finish(a, op, SPL_OK, "as before");
}

void auth_decide_rows(struct auth *a, struct auth_op *op, struct store_req *r, size_t n)
{
	const struct store_req *obj = &r[n - 1];
	struct auth_work *w;
	struct row_obj row;
	int err;

	for (size_t i = 0; i < n; i++) {
		if (r[i].rc != STORE_OK && r[i].rc != STORE_MISSING) {
			auth_op_store_failed(a, op, &r[i]);
			return;
		}
	}
	if (n == 2 && r[0].rc == STORE_OK) {
		decide_terminal(a, op, &r[0].u.read.item);
		return;
	}
	if (auth_verb_creates(op->verb)) { /* a CREATE comes back under the id minted first */
		w = auth_work_find_op(a, &op->id_op);
		if (w && !w->op) {
			op->id = w->id;
			auth_op_own(a, op, w);
			return;
		}
	}
	w = auth_work_find(a, auth_name(&op->id));
	if (w && decide_in_transition(a, op, w))
		return;
	if (obj->rc == STORE_MISSING) {
		decide_absent(a, op);
		return;
	}
	err = row_obj_get(&row, obj->u.read.item.val, obj->u.read.item.len);
	if (err)
		damaged(a, op, "object", err);
	else
		decide_row(a, op, &row, obj->u.read.item.cr, obj->u.read.item.mr);
}
