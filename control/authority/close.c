/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing one Spot (S-CLOSE-1..5, A-LOC-42): the row says Closing (T18), the dataplane seals,
 * finishes what it accepted and runs on_closing, then the row is released by the same fence (T17).
 * A planned stop does the same without T18. Called on the driver's thread. */
#include "control/authority/priv.h"

#include <stdio.h>
#include <string.h>

/* Those who asked for this close hear its end; everybody else looks again. */
static void tell_closers(struct auth *a, struct auth_work *w, int kind, bool closed,
			 const char *text)
{
	struct auth_op *op, *next;

	for (op = TAILQ_FIRST(&w->waiters); op; op = next) {
		next = TAILQ_NEXT(op, link);
		if (op->verb != AUTH_CLOSE || op->obj_gen != w->obj_gen)
			continue;
		op->r.closed = closed;
		auth_op_finish(a, op, kind, "%s", text);
	}
}

struct auth_work *auth_close_row(struct auth *a, struct auth_bytes id, const struct row_obj *row,
				 int64_t cr, int64_t mr, bool local, enum auth_close_reason reason,
				 int64_t deadline)
{
	struct auth_work *w = auth_work_new(a, id, AUTH_W_CLOSING);

	if (!w)
		return NULL;
	auth_work_take_row(a, w, row, cr, mr);
	w->reason = reason;
	w->deadline = deadline;
	if (local) {
		auth_work_command(a, w, AUTH_FX_CLOSE_LOCAL);
	} else {
		w->state = AUTH_W_RELEASING;
		auth_tx(a, w, AUTH_T17);
	}
	return w;
}

/* S-CLOSE-1; idle eviction is of Instance Spots (S-IDLE-1). */
static bool may_close(const struct auth_op *op, const struct row_obj *row)
{
	if (op->reason == AUTH_IDLE_EVICTED)
		return row->kind == SPL_KIND_INSTANCE;
	return row->kind == SPL_KIND_USER || (row->kind == SPL_KIND_INSTANCE && op->own);
}

/* A-LOC-43: generation, owner, relocation or closing, members, in that order. */
void auth_close_start(struct auth *a, struct auth_op *op, const struct row_obj *row, int64_t cr,
		      int64_t mr)
{
	struct auth_work *w;

	op->r.closed = false;
	if ((uint64_t)cr != op->obj_gen) {
		auth_op_finish(a, op, SPL_E_INVALID_OPERATION,
			       "another incarnation holds the id: the reference is old");
		return;
	}
	if (!may_close(op, row)) {
		auth_op_finish(a, op, SPL_E_INVALID_OPERATION,
			       "only User Spots are closed by reference");
		return;
	}
	if (row->state == AUTH_ROW_CREATING) {
		auth_op_finish(a, op, SPL_OK, "it never became Ready");
		return;
	}
	if (a->host.phase != AUTH_H_UP && a->host.phase != AUTH_H_NONE && !a->host.dead) {
		auth_op_hold(a, op); /* the host is only coming up */
		return;
	}
	if (!auth_owner_is_us(a, &row->owner) || !auth_host_writable(a) || a->host.dead) {
		auth_op_finish(a, op, SPL_E_UNAVAILABLE, "its owner is gone");
		return;
	}
	if (row->state == AUTH_ROW_RELOCATING) {
		auth_op_finish(a, op, SPL_E_UNAVAILABLE, "it is moving");
		return;
	}
	if (row->members) {
		auth_op_finish(a, op, SPL_OK, "it has members");
		return;
	}
	w = auth_work_find(a, auth_name(&op->id));
	if (w) { /* its creation is not over yet: one work at a time for an id */
		auth_op_wait(a, op, w);
		return;
	}
	if (op->reason == AUTH_IDLE_EVICTED) {
		/* The row goes last (S-IDLE-3), and not at all if it has work again meanwhile. */
		w = auth_close_row(a, auth_name(&op->id), row, cr, mr, true, AUTH_IDLE_EVICTED,
				   op->deadline);
	} else if (row->state == AUTH_ROW_CLOSING) {
		w = auth_close_row(a, auth_name(&op->id), row, cr, mr, true, AUTH_EXPLICIT_CLOSE,
				   op->deadline);
	} else {
		w = auth_work_new(a, auth_name(&op->id), AUTH_W_MARKING);
		if (w) {
			auth_work_take_row(a, w, row, cr, mr);
			w->epoch = row->epoch;
			w->deadline = op->deadline;
			w->reason = AUTH_EXPLICIT_CLOSE;
			auth_tx(a, w, AUTH_T18);
		}
	}
	if (w)
		auth_op_wait(a, op, w);
	else
		auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
}

static void marked(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	switch (rc) {
	case AUTH_TX_OK:
		w->state = AUTH_W_CLOSING;
		if (a->host.dead)
			auth_close_host_gone(a, w);
		else
			auth_work_command(a, w, AUTH_FX_CLOSE_LOCAL);
		return;
	case AUTH_TX_CONFLICT: /* the row changed: everybody decides again */
		auth_work_end(a, w, false);
		return;
	case AUTH_TX_STALE:
		tell_closers(a, w, SPL_E_UNAVAILABLE, false, "the owner lease is gone");
		auth_work_end(a, w, false);
		return;
	case AUTH_TX_FAILED:
	case AUTH_TX_EXHAUSTED:
		tell_closers(a, w, SPL_E_INTERNAL_FAILURE, false, text);
		auth_work_end(a, w, false);
		return;
	}
}

static void released(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	switch (rc) {
	case AUTH_TX_OK:
		if (w->reclaim)
			a->count.reclaimed++;
		else
			a->count.closed++;
		tell_closers(a, w, SPL_OK, true, "closed");
		auth_reclaim_tell(a, w, true);
		auth_work_end(a, w, true);
		return;
	case AUTH_TX_CONFLICT: /* changed by somebody else, or its owner's lease stands again */
		auth_reclaim_tell(a, w, false);
		auth_work_end(a, w, false);
		return;
	case AUTH_TX_STALE: /* closed here, and the capacity row died with the lease */
		auth_tx(a, w, AUTH_ORPHAN);
		return;
	case AUTH_TX_FAILED:
	case AUTH_TX_EXHAUSTED: /* the id stays unusable until this is done (A-LOC-42) */
		auth_log(a, AUTH_LOG_WARN, "release of a Spot: %s: trying again", text);
		auth_work_retry(a, w);
		return;
	}
}

void auth_close_tx_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text)
{
	if (w->state == AUTH_W_MARKING)
		marked(a, w, rc, text);
	else
		released(a, w, rc, text);
}

/* It was to be evicted and is used again: those who wanted more than that ask again. */
static void still_used(struct auth *a, struct auth_work *w)
{
	struct auth_op *op, *next;

	for (op = TAILQ_FIRST(&w->waiters); op; op = next) {
		next = TAILQ_NEXT(op, link);
		if (op->verb == AUTH_CLOSE && op->reason == AUTH_IDLE_EVICTED)
			auth_op_finish(a, op, SPL_OK, "it is used again");
	}
	auth_work_end(a, w, false);
}

void auth_close_note(struct auth *a, const struct auth_work *w, const struct auth_event *e)
{
	int kind = e->u.answer.kind;

	if (kind == SPL_OK)
		return;
	if (w->reason == AUTH_HOST_SHUTDOWN) { /* S-CLOSING-3 */
		a->host.late |= kind == SPL_E_DEADLINE_EXCEEDED;
		a->host.teardown_failed |= kind != SPL_E_DEADLINE_EXCEEDED;
	}
	auth_log(a, AUTH_LOG_WARN, "closing of a Spot type=%.*s: %s: %s", w->type.len, w->type.b,
		 spl_error_name(kind), e->u.answer.text ? e->u.answer.text : "on_closing failed");
}

void auth_close_answer(struct auth *a, struct auth_work *w, const struct auth_event *e)
{
	if (w->reason == AUTH_IDLE_EVICTED && e->u.answer.verdict == AUTH_DECLINED) {
		still_used(a, w);
		return;
	}
	auth_close_note(a, w, e);
	if (w->reason == AUTH_FENCED) { /* its row is not ours */
		auth_work_end(a, w, true);
		return;
	}
	w->state = AUTH_W_RELEASING;
	auth_tx(a, w, AUTH_T17);
}

void auth_close_host_gone(struct auth *a, struct auth_work *w)
{
	if (w->reason == AUTH_HOST_SHUTDOWN && a->host.stop) { /* it cannot run any more */
		w->state = AUTH_W_RELEASING;
		auth_tx(a, w, AUTH_T17);
		return;
	}
	/* S-CLOSE-9: nobody takes over; the row stays until it is reclaimed. */
	tell_closers(a, w, SPL_E_UNAVAILABLE, false, "the dataplane is gone");
	auth_work_end(a, w, false);
}
