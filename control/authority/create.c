/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation of one Spot (S-CREATE-1..8, A-LOC-13..23): reserve (T4), let the dataplane prepare it,
 * commit (T5) and open it, or undo (T6 with a terminal, T7 without). Exactly one command to run the
 * factory goes out for an attempt. Called on the driver's thread. */
#include "control/authority/priv.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

/* ---- reserve ---- */

/* Why this host cannot take a new Spot now: finishes the op, or lets it wait. */
static bool refuse_or_hold(struct auth *a, struct auth_op *op)
{
	const struct auth_host *h = &a->host;

	if (h->stop)
		auth_op_finish(a, op, SPL_E_SHUTTING_DOWN, "the node is stopping");
	else if (h->phase == AUTH_H_NONE || h->dead)
		auth_op_finish(a, op, SPL_E_UNAVAILABLE, "no dataplane is there to hold the Spot");
	else if (h->phase != AUTH_H_UP)
		auth_op_hold(a, op);
	else if (!auth_host_writable(a))
		auth_op_finish(a, op, SPL_E_UNAVAILABLE, "the owner lease has run out");
	else
		return false;
	return true;
}

static struct auth_work *new_attempt(struct auth *a, struct auth_op *op, int type_at)
{
	struct auth_work *w = auth_work_new(a, auth_name(&op->id), AUTH_W_RESERVING);

	if (!w)
		return NULL;
	w->type = op->type;
	w->kind = op->kind;
	w->type_at = type_at;
	w->own_gen = 1;
	w->owner_id = a->host.id.owner_id;
	w->lease_gen = a->host.id.lease_gen;
	if (++a->attempt_seq == 0)
		a->attempt_seq = 1;
	w->attempt = a->attempt_seq;
	w->deadline = op->deadline;
	w->request = auth_buf_ref(op->request);
	SHA256(w->request ? w->request->b : (const uint8_t *)"", w->request ? w->request->n : 0,
	       w->request_sha);
	auth_work_set_op(a, w, &op->id_op);
	auth_work_count(a, w);
	return w;
}

/* AMB-21 for creations; for Instance intent A-LOC-31. */
static void no_type(struct auth *a, struct auth_op *op, struct auth_bytes type)
{
	auth_log(a, AUTH_LOG_WARN, "%s: no capable node for type %.*s", auth_verb_name(op->verb),
		 (int)type.n, (const char *)type.p);
	if (op->verb == AUTH_ACTIVATE)
		auth_op_finish(a, op, SPL_E_NOT_FOUND, "no node offers this Instance type");
	else if (auth_type_index(a, type, SPL_KIND_INSTANCE) >= 0)
		auth_op_finish(a, op, SPL_E_INVALID_OPERATION,
			       "an Instance Spot is started by its first message, never created");
	else
		auth_op_finish(a, op, SPL_E_CAPACITY_EXCEEDED, "no node offers this type");
}

void auth_create_reserve(struct auth *a, struct auth_op *op)
{
	struct auth_bytes type = auth_name(&op->type);
	struct auth_work *w = auth_work_find(a, auth_name(&op->id));
	int at;

	if (w) { /* came meanwhile, while this one was held */
		auth_op_restart(a, op);
		return;
	}
	if (refuse_or_hold(a, op))
		return;
	at = auth_type_index(a, type, op->kind);
	if (at < 0) {
		no_type(a, op, type);
		return;
	}
	if (!auth_group_has_room(a, at)) {
		auth_op_finish(a, op, SPL_E_CAPACITY_EXCEEDED, "no room for another Spot");
		return;
	}
	if (a->n_pending >= a->cfg.pending_max) {
		auth_op_hold(a, op);
		return;
	}
	w = new_attempt(a, op, at);
	if (!w) {
		auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
		return;
	}
	auth_op_own(a, op, w);
	auth_tx(a, w, AUTH_T4);
}

/* ---- leftovers ---- */

struct auth_work *auth_create_cancel(struct auth *a, struct auth_bytes id,
				     const struct row_obj *row, int64_t cr, int64_t mr)
{
	/* Also under a token that was lost: our dataplane may still have it. */
	bool ours = auth_name_is(&a->host.id.owner_id, row->owner.owner_id);
	struct auth_work *w = auth_work_new(a, id, AUTH_W_UNDOING);

	if (!w)
		return NULL;
	auth_work_take_row(a, w, row, cr, mr);
	w->attempt = row->pending.attempt;
	if (ours && !a->host.dead) {
		w->state = AUTH_W_DISCARDING; /* whatever the dataplane may still have of it */
		w->result = ROW_NO_RESULT;
		auth_work_command(a, w, AUTH_FX_DISCARD);
	} else {
		auth_tx(a, w, ours ? AUTH_T7 : AUTH_ORPHAN);
	}
	return w;
}

struct auth_work *auth_create_adopt(struct auth *a, struct auth_bytes id, const struct row_obj *row,
				    int64_t cr, int64_t mr)
{
	struct auth_work *w = auth_work_new(a, id, AUTH_W_PREPARING);
	struct auth_op_id op = {.lifecycle = row->pending.op.lifecycle,
				.hi = row->pending.op.hi,
				.lo = row->pending.op.lo};

	if (!w)
		return NULL;
	auth_work_take_row(a, w, row, cr, mr);
	auth_name_copy(&op.rid, row->pending.op.rid);
	auth_work_set_op(a, w, &op);
	auth_work_count(a, w);
	w->attempt = row->pending.attempt;
	w->deadline = row->pending.deadline;
	auth_work_command(a, w, AUTH_FX_PREPARE);
	w->cmd_again = true;
	return w;
}

struct auth_work *auth_create_publish(struct auth *a, struct auth_bytes id,
				      const struct row_obj *row, int64_t cr, int64_t mr,
				      uint64_t attempt)
{
	struct auth_work *w = auth_work_new(a, id, AUTH_W_PUBLISHING);

	if (!w)
		return NULL;
	auth_work_take_row(a, w, row, cr, mr);
	w->attempt = attempt;
	auth_work_command(a, w, AUTH_FX_PUBLISH);
	return w;
}

/* ---- ends ---- */

static void tell_owner(struct auth *a, struct auth_work *w, int kind, const char *text)
{
	struct auth_op *op = w->op;

	if (op)
		auth_op_finish(a, op, kind, "%s", text);
}

static void met(struct auth_work *w, enum auth_obstacle o)
{
	if (w->op)
		w->op->r.obstacle = o;
}

static void fail(struct auth *a, struct auth_work *w, int kind, const char *text)
{
	tell_owner(a, w, kind, text);
	auth_work_end(a, w, false);
}

/* Nothing of the attempt may stay: the dataplane forgets it, then the row goes. `result`
 * ROW_NO_RESULT: no terminal record is written (a failure that is not the application's). */
static void discard(struct auth *a, struct auth_work *w, enum row_result result, int kind,
		    const char *text)
{
	w->result = result;
	w->kind_failed = kind;
	snprintf(w->text, sizeof(w->text), "%s", text);
	w->state = AUTH_W_DISCARDING;
	if (a->host.dead) {
		w->state = AUTH_W_UNDOING;
		auth_tx(a, w, result ? AUTH_T6 : AUTH_T7);
	} else {
		auth_work_command(a, w, AUTH_FX_DISCARD);
	}
}

static void undo(struct auth *a, struct auth_work *w)
{
	w->state = AUTH_W_UNDOING;
	auth_tx(a, w, w->result ? AUTH_T6 : AUTH_T7);
}

static void give_result(struct auth *a, struct auth_work *w, enum auth_created created)
{
	struct auth_op *op = w->op;

	if (!op)
		return;
	op->r.found = true;
	op->r.created = created;
	op->r.content = w->content;
	op->reply = auth_buf_ref(w->reply);
	if (auth_op_entry_of_work(a, op, w))
		auth_op_finish(a, op, SPL_OK, "%s", w->text);
	else
		auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
}

/* The row is gone: whoever started the attempt hears why. */
static void undone(struct auth *a, struct auth_work *w)
{
	if (w->result == ROW_REJECTED) {
		a->count.rejected++;
		give_result(a, w, AUTH_REJECTED);
	} else {
		a->count.failed += w->has_op;
		tell_owner(a, w, w->kind_failed,
			   w->text[0] ? w->text : "the attempt was abandoned");
	}
	auth_work_end(a, w, true);
}

static void created(struct auth *a, struct auth_work *w)
{
	if (w->has_op) {
		a->count.created++;
		give_result(a, w, AUTH_CREATED);
	}
	auth_work_end(a, w, false);
}

void auth_create_owner_gone(struct auth *a, struct auth_work *w)
{
	if (w->state != AUTH_W_PREPARING)
		return; /* not begun, or its end is under way already */
	auth_fx_drop(a, &w->fx);
	discard(a, w, ROW_FAILED, SPL_E_DEADLINE_EXCEEDED, "the callbacks did not end in time");
}

/* ---- transactions ---- */

static void reserved(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	switch (rc) {
	case AUTH_TX_OK:
		if (a->host.dead || !w->op) { /* nobody waits for it any more: not begun */
			w->kind_failed = SPL_E_UNAVAILABLE;
			snprintf(w->text, sizeof(w->text), "the dataplane is gone");
			undo(a, w);
			return;
		}
		w->state = AUTH_W_PREPARING;
		auth_work_command(a, w, AUTH_FX_PREPARE);
		return;
	case AUTH_TX_CONFLICT: /* the row or the terminal exists: read and decide again */
		auth_work_end(a, w, false);
		return;
	case AUTH_TX_STALE:
		met(w, AUTH_MET_FENCE);
		fail(a, w, SPL_E_UNAVAILABLE, "the owner lease is gone");
		return;
	case AUTH_TX_FAILED:
	case AUTH_TX_EXHAUSTED:
		met(w, AUTH_MET_STORE);
		fail(a, w, SPL_E_INTERNAL_FAILURE, text);
		return;
	}
}

static void committed(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	switch (rc) {
	case AUTH_TX_OK:
		auth_buf_put(w->request);
		w->request = NULL;
		w->state = AUTH_W_PUBLISHING;
		if (a->host.dead)
			auth_create_host_gone(a, w);
		else
			auth_work_command(a, w, AUTH_FX_PUBLISH);
		return;
	case AUTH_TX_CONFLICT:
		met(w, AUTH_MET_OWNER);
		tell_owner(a, w, SPL_E_UNAVAILABLE, "the reservation was taken away");
		discard(a, w, ROW_NO_RESULT, SPL_E_UNAVAILABLE, "");
		return;
	case AUTH_TX_STALE:
		met(w, AUTH_MET_FENCE);
		tell_owner(a, w, SPL_E_UNAVAILABLE, "the owner lease is gone");
		discard(a, w, ROW_NO_RESULT, SPL_E_UNAVAILABLE, "");
		return;
	case AUTH_TX_FAILED:
	case AUTH_TX_EXHAUSTED:
		met(w, AUTH_MET_STORE);
		tell_owner(a, w, SPL_E_INTERNAL_FAILURE, text);
		discard(a, w, ROW_FAILED, SPL_E_INTERNAL_FAILURE, "the commit failed");
		return;
	}
}

/* Somebody else's Creating row stays: its owner may still live. Those who want the id look again
 * with growing gaps. */
static void kept(struct auth *a, struct auth_work *w)
{
	struct auth_op *op, *next;

	for (op = TAILQ_FIRST(&w->waiters); op; op = next) {
		next = TAILQ_NEXT(op, link);
		if (auth_verb_creates(op->verb))
			auth_op_look_later(a, op);
	}
	auth_work_end(a, w, false);
}

static void undo_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	switch (rc) {
	case AUTH_TX_OK:
		undone(a, w);
		return;
	case AUTH_TX_CONFLICT: /* it is not the row of this attempt any more */
		if (w->tx == AUTH_ORPHAN && !w->has_op)
			kept(a, w);
		else
			undone(a, w);
		return;
	case AUTH_TX_STALE: /* the capacity row died with the lease: only the row is left */
		auth_tx(a, w, AUTH_ORPHAN);
		return;
	case AUTH_TX_FAILED:
	case AUTH_TX_EXHAUSTED: /* the id stays unusable until this is done */
		auth_log(a, AUTH_LOG_WARN, "cancel of a creation: %s: trying again", text);
		auth_work_retry(a, w);
		return;
	}
}

/* T21: the row carries the new token. */
static void adopted(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	switch (rc) {
	case AUTH_TX_OK:
		w->state = AUTH_W_PUBLISHING;
		if (a->host.dead)
			auth_work_end(a, w, false);
		else
			auth_work_command(a, w, AUTH_FX_PUBLISH);
		return;
	case AUTH_TX_CONFLICT: /* changed or gone: ours is closed without store writes */
		w->state = AUTH_W_CLOSING;
		w->reason = AUTH_FENCED;
		if (a->host.dead)
			auth_work_end(a, w, false);
		else
			auth_work_command(a, w, AUTH_FX_CLOSE_LOCAL);
		return;
	case AUTH_TX_STALE: /* the next adoption finds it */
		auth_work_end(a, w, false);
		return;
	case AUTH_TX_FAILED:
	case AUTH_TX_EXHAUSTED:
		auth_log(a, AUTH_LOG_WARN, "adoption of a Spot: %s: trying again", text);
		auth_work_retry(a, w);
		return;
	}
}

void auth_create_tx_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	if (rc == AUTH_TX_EXHAUSTED)
		auth_log(a, AUTH_LOG_ERROR, "GenerationExhausted: %s", text);
	switch (w->state) {
	case AUTH_W_RESERVING:
		reserved(a, w, rc, text);
		return;
	case AUTH_W_COMMITTING:
		committed(a, w, rc, text);
		return;
	case AUTH_W_UNDOING:
		undo_done(a, w, rc, text);
		return;
	case AUTH_W_ADOPTING:
		adopted(a, w, rc, text);
		return;
	case AUTH_W_PREPARING:
	case AUTH_W_PUBLISHING:
	case AUTH_W_DISCARDING:
	case AUTH_W_MARKING:
	case AUTH_W_CLOSING:
	case AUTH_W_RELEASING:
		return; /* no transaction is under way */
	}
}

/* ---- answers ---- */

static void prepared(struct auth *a, struct auth_work *w, const struct auth_event *e)
{
	const char *text = e->u.answer.text ? e->u.answer.text : "";
	bool failed = e->u.answer.kind != SPL_OK || e->u.answer.verdict == AUTH_FAILED;
	struct auth_bytes reply = e->u.answer.reply;

	if (!failed && reply.n > AUTH_REPLY_MAX) {
		discard(a, w, ROW_FAILED, SPL_E_INTERNAL_FAILURE, "the reply is too large");
		return;
	}
	if (!failed && reply.n) {
		w->reply = auth_buf_make(reply);
		if (!w->reply) {
			discard(a, w, ROW_FAILED, SPL_E_INTERNAL_FAILURE, "out of memory");
			return;
		}
		w->content = e->u.answer.content;
	}
	snprintf(w->text, sizeof(w->text), "%s", text);
	if (failed) {
		w->result = ROW_FAILED;
		w->kind_failed = e->u.answer.kind;
		if (w->kind_failed < 0 || w->kind_failed >= SPL_ERROR_COUNT)
			w->kind_failed = SPL_E_INTERNAL_FAILURE;
		if (!w->text[0])
			snprintf(w->text, sizeof(w->text), "a callback failed");
		undo(a, w);
	} else if (e->u.answer.verdict == AUTH_DECLINED) {
		w->result = ROW_REJECTED;
		undo(a, w);
	} else {
		w->result = ROW_CREATED;
		w->state = AUTH_W_COMMITTING;
		auth_tx(a, w, AUTH_T5);
	}
}

static void published(struct auth *a, struct auth_work *w, const struct auth_event *e)
{
	if (e->u.answer.kind == SPL_OK) {
		created(a, w);
		return;
	}
	/* The dataplane does not have it: a Ready row without an object must not stay. */
	auth_log(a, AUTH_LOG_ERROR, "a Spot cannot be published: %s: its row is released",
		 e->u.answer.text ? e->u.answer.text : "refused");
	tell_owner(a, w, SPL_E_UNAVAILABLE, "the dataplane lost it");
	w->state = AUTH_W_RELEASING;
	auth_tx(a, w, AUTH_T17);
}

void auth_create_answer(struct auth *a, struct auth_work *w, const struct auth_event *e)
{
	switch (w->state) {
	case AUTH_W_PREPARING:
		prepared(a, w, e);
		return;
	case AUTH_W_PUBLISHING:
		published(a, w, e);
		return;
	case AUTH_W_DISCARDING:
		undo(a, w);
		return;
	case AUTH_W_RESERVING:
	case AUTH_W_COMMITTING:
	case AUTH_W_UNDOING:
	case AUTH_W_MARKING:
	case AUTH_W_CLOSING:
	case AUTH_W_RELEASING:
	case AUTH_W_ADOPTING:
		return; /* no command is under way */
	}
}

void auth_create_host_gone(struct auth *a, struct auth_work *w)
{
	if (w->state == AUTH_W_PUBLISHING) { /* Ready, and its owner is dead (A-FAIL-3) */
		tell_owner(a, w, SPL_E_UNAVAILABLE, "the dataplane is gone");
		auth_work_end(a, w, false);
		return;
	}
	tell_owner(a, w, SPL_E_UNAVAILABLE, "the dataplane is gone");
	if (w->state == AUTH_W_PREPARING)
		w->result = ROW_NO_RESULT;
	undo(a, w);
}
