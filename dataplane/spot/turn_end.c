/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what follows a callback: its turn's terminal, suspension, and going on (S-TURN-1,4,7).
 */
#include "dataplane/spot/timer.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/turn.h"
#include "dataplane/spot/yield.h"

static int run_continuation(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	const struct spot_call *c = &l->calls[r->waited];
	struct spl_result result = {
		.kind = c->kind,
		.content = c->content,
		.payload = c->payload,
		.payload_bytes = c->payload_bytes,
	};

	r->waited = 0;
	return c->fn(turn_handle(r), spot_state_of(s), &result, c->ctx);
}

static void suspend(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	s->gate.flags |= SPOT_F_HELD;
	spot_cold_of(s)->running = spot_rec_index(l, r);
	spot_turn_waits(l, s, r, 1);
}

/* A callback's return value that breaks the rules of a turn is InternalFailure (S-CF-1,2). */
static int checked(const struct spot_rec *r, int rc)
{
	if (r->waited || rc == SPL_SUSPENDED)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	if (rc == SPL_DONE || (rc == SPL_REJECTED && r->kind == REC_CREATE))
		return rc;
	if (rc >= SPL_FAIL(0) && rc < SPL_FAIL(SPL_ERROR_COUNT))
		return rc;
	return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
}

void spot_turn_failed(struct spot_lane *l, struct spot *s, bool is_timer, const void *name,
		      uint32_t name_bytes, int rc)
{
	const struct spot_failure f = {
		.stage = spot_stage_of(l, s),
		.id = spot_name_of(spot_cold_of(s)),
		.is_timer = is_timer,
		.kind = (uint8_t)(rc & 0xff),
		.name = name,
		.name_bytes = name_bytes,
	};

	l->env.failed(l->env.host, &f);
}

static void end_message(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	spot_app_return(l, s, r);
	if (rc == SPL_DONE && r->kind == SPL_MSG_SPOT_REQUEST && !(r->flags & REC_F_REPLIED))
		rc = SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	if (rc == SPL_DONE) {
		if (spot_traces_flows(l))
			spot_trace_completed(l, s, r);
		l->tally.finished++;
		spot_rec_end(l, r);
	} else {
		if (r->kind != SPL_MSG_SPOT_REQUEST) { /* its sender is told */
			const char *packet =
				r->origin == SPOT_FROM_CAST ? r->cast->msg.packet : r->msg.packet;

			spot_turn_failed(l, s, false, packet, (uint32_t)strlen(packet), rc);
		}
		spot_fail(l, s, r, SPL_FAIL_HANDLER, (uint8_t)(rc & 0xff));
	}
}

enum step spot_turn_end(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	while (rc == SPL_SUSPENDED && r->waited) {
		const struct spot_call *c = &l->calls[r->waited];

		if (s->gate.flags & SPOT_F_FORCED && c->state == CALL_OPEN) {
			r->waited = 0; /* its time is up: no more waiting */
			rc = SPL_FAIL(SPL_E_DEADLINE_EXCEEDED);
		} else if (c->wait == SPL_WAIT_YIELD) {
			l->turn.epoch = 0;
			spot_yield(l, s, r); /* never inline, even when it has its answer */
			return STEP_RAN;
		} else if (c->state == CALL_ENDED) {
			rc = run_continuation(l, s, r);
		} else if (r->flags & REC_F_OWN) {
			l->turn.epoch = 0;
			spot_yield(l, s, r);
			return STEP_RAN;
		} else {
			l->turn.epoch = 0;
			suspend(l, s, r);
			return STEP_NOTHING;
		}
	}
	rc = checked(r, rc);
	l->turn.epoch = 0;
	if (r->calls)
		spot_calls_drop(l, r);
	if (r->flags & REC_F_CLOSES && s->gate.state == SPOT_S_READY)
		s->gate.flags |=
			SPOT_F_ARMED; /* the handler has ended, not only its turn (S-CLOSE-6) */
	if (r->kind < REC_CREATE)
		end_message(l, s, r, rc);
	else if (r->kind == REC_TICK)
		spot_timer_end(l, s, r, rc);
	else
		spot_life_done(l, s, r, rc);
	return STEP_RAN;
}

/* The suspended turn of `r` runs again; `t` as in turn_begin(). */
static void runs_again(struct spot_lane *l, struct spot *s, struct spot_rec *r, uint64_t t)
{
	turn_begin(l, s, r, r->epoch, t, r->kind < REC_CREATE ? NULL : "callback");
	l->turn.stage = spot_stage_of(l, s);
}

enum step spot_turn_resume(struct spot_lane *l, struct spot *s, uint64_t t)
{
	struct spot_rec *r = &l->recs[spot_cold_of(s)->running];

	s->gate.flags &= (uint8_t) ~(SPOT_F_RESUME | SPOT_F_HELD);
	spot_turn_waits(l, s, r, -1);
	runs_again(l, s, r, t);
	return spot_turn_end(l, s, r, run_continuation(l, s, r));
}

/* A turn that may not go on: its Spot is another owner's (S-YIELD-8). */
static enum step lost(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	r->waited = 0;
	spot_calls_drop(l, r);
	if (r->kind == REC_TICK) {
		spot_timer_end(l, s, r, SPL_DONE);
	} else if (r->kind >= REC_CREATE) {
		spot_life_done(l, s, r, SPL_FAIL(SPL_E_UNAVAILABLE));
	} else {
		spot_app_return(l, s, r);
		spot_fail(l, s, r, SPL_FAIL_FENCED, SPL_E_UNAVAILABLE);
	}
	return STEP_RAN;
}

enum step spot_turn_go_on(struct spot_lane *l, struct spot *s, struct spot_rec *r, uint64_t t)
{
	bool kept = r->flags & REC_F_OWN;

	spot_yield_take(l, s, r);
	/* The lease is asked at the start of a handler; what has begun may end (A-LEASE-7). */
	if (spot_cold_of(s)->reason == (uint8_t)SPOT_FENCED)
		return lost(l, s, r);
	l->tally.turns += !kept;
	runs_again(l, s, r, t);
	return spot_turn_end(l, s, r, run_continuation(l, s, r));
}
