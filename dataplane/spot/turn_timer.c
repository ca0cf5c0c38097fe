/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns of timers: which tick is delivered, and its callback (S-TIMER-5..9,12).
 *
 * Between callbacks a timer's `scheduled_index` is that of the last tick delivered, and
 * `scheduled_ns` when the one behind it is due. What is delivered is decided when the callback
 * begins, so a tick that has waited in its queue is not older than it must be.
 */
#include "dataplane/spot/timer.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/turn.h"

/* The newest tick that is due at `now`, at least the one behind the last. */
static uint64_t newest_due(const struct spl_tick *k, uint64_t now)
{
	uint64_t elapsed = now - k->begun_ns;

	/* Nearly always the next one; only what is late needs a division. */
	if (now < k->scheduled_ns || now - k->scheduled_ns < k->period_ns)
		return k->scheduled_index + 1;
	return elapsed / k->period_ns;
}

static void tick_set(struct spot_lane *l, const struct spot *s, struct spot_rec *r, uint64_t t)
{
	struct spl_tick *k = &r->tick;
	uint64_t now = spot_to_ns(&l->clock, t), index = k->scheduled_index + 1, newest;

	if (r->overrun != SPL_OVERRUN_DELAY && !(r->timer & TIMER_F_ONE_SHOT)) {
		newest = newest_due(k, now);
		if (r->overrun == SPL_OVERRUN_SKIP)
			index = newest;
		else if (newest - k->scheduled_index > r->catch_up_max)
			index = newest - r->catch_up_max + 1;
		k->scheduled_ns += (index - k->scheduled_index - 1) * k->period_ns;
	}
	k->skipped = index - k->scheduled_index - 1;
	k->scheduled_index = index;
	k->delivery_index++;
	k->started_ns = now < k->scheduled_ns ? k->scheduled_ns : now; /* by rounding only */
	if (k->skipped)
		spot_count(l, SPL_C_TICKS_SKIPPED, k->skipped);
	spot_count(l, SPL_C_TICKS, 1);
	spot_note_tick(l, s, k->started_ns - k->scheduled_ns, k->skipped);
}

/* The timer, and its name with it, may be gone when the length of the turn is known. */
static void note_name(struct spot_turn *turn, const struct spl_name *name)
{
	turn->timer_len = name->len < sizeof(turn->timer) ? name->len : sizeof(turn->timer);
	memcpy(turn->timer, name->b, turn->timer_len);
}

enum step spot_turn_tick(struct spot_lane *l, struct spot *s, struct spot_rec *r, uint64_t t)
{
	/* Accepted before a close, it runs unless the time of that is up, or the Spot is lost. */
	if (r->timer & TIMER_F_DISPOSED || s->gate.flags & SPOT_F_FORCED || t >= l->lease) {
		spot_timer_not_run(l, s, r);
		return STEP_RAN;
	}
	r->timer ^= TIMER_F_QUEUED | TIMER_F_RUNNING;
	if (r->timer & TIMER_F_ONE_SHOT)
		r->timer |= TIMER_F_DISPOSED;
	tick_set(l, s, r, t);
	r->waited = 0;
	r->packet = 0; /* no calls yet */
	r->epoch = ++l->epoch;
	turn_begin(l, s, r, r->epoch, t, spot_turn_timer);
	note_name(&l->turn, r->tick.name);
	l->turn.stage = spot_stage_of(l, s);
	l->tally.turns++;
	if (spot_traces_flows(l)) {
		spot_flow_begin(l, r, SPL_TG_TIMER); /* each tick is one (S-TIMER-18) */
		spot_trace_dispatched(l, s, r);
	}
	return spot_turn_end(l, s, r, r->tick_fn(turn_handle(r), spot_state_of(s), &r->tick));
}
