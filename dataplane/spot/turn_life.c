/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns of the lifecycle queue: creation, closing, notices (S-LANE-1,3,4). */
#include "dataplane/spot/trace.h"
#include "dataplane/spot/turn.h"

/* Subscriptions come before everything else of a Spot (S-CREATE-5), and each of them counts: a
 * refused one is no Spot (S-TOPIC-2). */
static int configure(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	int rc;

	l->turn.configures = r->epoch;
	l->turn.epoch = 0; /* no turn yet: nothing is sent, asked or answered */
	l->turn.misconfigured = SPL_OK;
	rc = spot_stage_of(l, s)->desc->on_configure(turn_handle(r), spot_state_of(s));
	l->turn.configures = 0;
	l->turn.epoch = r->epoch;
	if (l->turn.misconfigured != SPL_OK)
		return SPL_FAIL(l->turn.misconfigured);
	return rc == SPL_REJECTED ? SPL_FAIL(SPL_E_INTERNAL_FAILURE) : rc; /* on_create's word */
}

static int call_lifecycle(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	const struct spl_stage *d = spot_stage_of(l, s)->desc;
	int (*notice)(struct spl_turn * turn, void *state) = r->notice;

	r->packet = 0; /* no calls yet */
	r->msg.packet = "";
	r->msg.deadline_ns = r->deadline ? spot_to_ns(&l->clock, r->deadline) : 0;
	if (r->kind == REC_CREATE && d->on_configure) {
		int rc = configure(l, s, r);

		if (rc != SPL_DONE)
			return rc;
	}
	if (r->kind == REC_CREATE)
		return d->on_create ? d->on_create(turn_handle(r), spot_state_of(s), &r->msg)
				    : SPL_DONE;
	if (r->kind == REC_INITIALIZE)
		return d->on_initialize ? d->on_initialize(turn_handle(r), spot_state_of(s))
					: SPL_DONE;
	if (r->kind == REC_NOTICE)
		return notice(turn_handle(r), spot_state_of(s));
	if (spot_cold_of(s)->reason == SPOT_FENCED)
		return SPL_DONE; /* another owner may run it by now */
	return d->on_closing ? d->on_closing(turn_handle(r), spot_state_of(s),
					     (enum spl_closing)spot_cold_of(s)->reason,
					     r->msg.deadline_ns)
			     : SPL_DONE;
}

enum step spot_turn_life(struct spot_lane *l, struct spot *s, uint64_t t)
{
	static const char *const names[] = {"on_create", "on_initialize", "on_closing", "notice"};
	struct spot_rec *r = spot_life_pop(l, s);

	if (++s->gate.streak >= l->conf.life_cap) {
		s->gate.flags |= SPOT_F_DEBT;
		s->gate.streak = 0;
	}
	if (t >= l->lease) {
		spot_life_done(l, s, r, SPL_FAIL(SPL_E_UNAVAILABLE));
		return STEP_RAN;
	}
	if (r->kind != REC_CLOSING &&
	    (s->gate.flags & SPOT_F_FORCED || (r->deadline && t >= r->deadline))) {
		spot_life_done(l, s, r, SPL_FAIL(SPL_E_DEADLINE_EXCEEDED));
		return STEP_RAN;
	}
	r->epoch = ++l->epoch;
	turn_begin(l, s, r, r->epoch, t, names[r->kind - REC_CREATE]);
	l->turn.stage = spot_stage_of(l, s); /* the Spot may be gone when its length is known */
	l->tally.turns++;
	if (spot_traces_flows(l)) {
		spot_flow_begin(l, r, SPL_TG_LIFECYCLE);
		spot_trace_dispatched(l, s, r);
	}
	return spot_turn_end(l, s, r, call_lifecycle(l, s, r));
}
