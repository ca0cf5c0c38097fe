/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see timer.h. */
#include "dataplane/spot/queue.h"
#include "dataplane/spot/turn.h"
#include "dataplane/spot/timer.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/waiter.h"

#define LATER 8u /* ticks of the wheel until one is tried again that may not come now */

void spot_timers_init(struct spot_lane *l)
{
	for (uint32_t i = l->conf.timers; i > 0; i--) {
		struct spot_rec *r = &l->recs[l->rec_count + i];

		r->kind = REC_TICK;
		r->other = l->timer_free;
		l->timer_free = l->rec_count + i;
	}
	wheel_init(&l->timer_wheel, &l->recs[0].node, sizeof(struct spot_rec), l->conf.clock_hz,
		   spot_now(&l->clock));
}

static bool is_named(const struct spot_rec *r, const void *name, size_t len)
{
	return r->tick.name->len == len && memcmp(r->tick.name->b, name, len) == 0;
}

static bool is_busy(const struct spot_rec *r)
{
	return r->timer & (TIMER_F_QUEUED | TIMER_F_RUNNING);
}

/* Gives the place back: out of the wheel, out of the list of its Spot. */
static void free_place(struct spot_lane *l, struct spot_rec *r)
{
	uint32_t i = spot_rec_index(l, r), *at = &spot_cold_of(spot_at(l, r->spot))->timers;

	while (*at != i)
		at = &l->recs[*at].other;
	*at = r->other;
	spot_mem_give(l, (void *)(uintptr_t)r->tick.name);
	r->generation++;
	r->timer = TIMER_F_DISPOSED;
	r->other = l->timer_free;
	l->timer_free = i;
	l->timers_used--;
	spot_count(l, SPL_C_TIMERS, (uint64_t)-1);
}

void spot_timer_dispose(struct spot_lane *l, struct spot_rec *r)
{
	r->timer |= TIMER_F_DISPOSED;
	if (is_busy(r))
		return;
	wheel_del(&l->timer_wheel, spot_rec_index(l, r));
	free_place(l, r);
}

/* Ends the timer of that name. True when a callback of the name still runs or waits. */
static bool end_earlier(struct spot_lane *l, struct spot *s, const void *name, size_t len)
{
	bool waits = false;

	for (uint32_t i = spot_cold_of(s)->timers, next; i; i = next) {
		struct spot_rec *r = &l->recs[i];
		bool named = is_named(r, name, len);

		next = r->other;
		waits = waits || (named && r->timer & TIMER_F_RUNNING);
		if (named)
			spot_timer_dispose(l, r);
	}
	return waits;
}

/* The caller's name, in lane memory. */
static struct spl_name *keep_name(struct spot_lane *l, const void *name, size_t len)
{
	struct spl_name *kept = spot_mem_take(l, offsetof(struct spl_name, b) + len);

	if (kept) {
		kept->len = (uint8_t)len;
		memcpy(kept->b, name, len);
	}
	return kept;
}

/* True when the Spot may have one more beside those of other names. */
static bool has_room(struct spot_lane *l, struct spot *s, const void *name, size_t len)
{
	uint32_t others = 0;

	for (uint32_t i = spot_cold_of(s)->timers; i; i = l->recs[i].other)
		others +=
			!(l->recs[i].timer & TIMER_F_DISPOSED) && !is_named(&l->recs[i], name, len);
	return others < l->conf.timers_per_spot;
}

/* True when the earlier timer of that name leaves its place at once. */
static bool gives_place(struct spot_lane *l, struct spot *s, const void *name, size_t len)
{
	for (uint32_t i = spot_cold_of(s)->timers; i; i = l->recs[i].other)
		if (is_named(&l->recs[i], name, len) && !is_busy(&l->recs[i]))
			return true;
	return false;
}

struct spot_rec *spot_timer_make(struct spot_lane *l, struct spot *s, const void *name, size_t len)
{
	struct spl_name *kept;
	struct spot_rec *r;
	bool after;

	if ((!l->timer_free && !gives_place(l, s, name, len)) || !has_room(l, s, name, len))
		return NULL;
	kept = keep_name(l, name, len);
	if (!kept)
		return NULL;
	after = end_earlier(l, s, name, len);
	r = &l->recs[l->timer_free];
	l->timer_free = r->other;
	r->timer = after ? TIMER_F_AFTER : 0;
	r->spot = spot_index(l, s);
	r->other = spot_cold_of(s)->timers;
	spot_cold_of(s)->timers = spot_rec_index(l, r);
	r->flags = 0;
	memset(&r->node, 0, sizeof(r->node));
	memset(&r->tick, 0, sizeof(r->tick));
	r->tick.name = kept;
	l->timers_used++;
	spot_count(l, SPL_C_TIMERS, 1);
	return r;
}

struct spot_rec *spot_timer_find(struct spot_lane *l, uint64_t id)
{
	uint32_t i = (uint32_t)id;
	struct spot_rec *r;

	if (i == 0 || i > l->conf.timers)
		return NULL;
	r = &l->recs[l->rec_count + i];
	return r->generation == id >> 32 ? r : NULL;
}

/* ---- schedule: nanoseconds of the lane's clock ---- */

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Into the wheel for `due`; what lies more than that many years ahead is never due. */
static void arm(struct spot_lane *l, struct spot_rec *r, uint64_t due)
{
	const uint64_t never = UINT64_C(1) << 60;
	uint64_t now = spot_to_ns(&l->clock, l->now), wait = due > now ? due - now : 0;

	wheel_add(&l->timer_wheel, spot_rec_index(l, r),
		  l->now + spot_from_ns(&l->clock, wait < never ? wait : never));
}

/* Tries again about `wheel_ticks` milliseconds later: the tick stays with the scheduler. */
static void arm_later(struct spot_lane *l, struct spot_rec *r, unsigned wheel_ticks)
{
	wheel_add(&l->timer_wheel, spot_rec_index(l, r),
		  l->now + ((uint64_t)(wheel_ticks - 1) << l->timer_wheel.shift));
}

void spot_timer_arm(struct spot_lane *l, struct spot_rec *r)
{
	r->tick.begun_ns = spot_to_ns(&l->clock, l->now);
	r->tick.scheduled_ns = add_sat(r->tick.begun_ns, r->tick.period_ns);
	arm(l, r, r->tick.scheduled_ns);
}

/* ---- from the wheel into a queue ---- */

/* A callback of an earlier timer of this name waits: the two may not overlap (S-TIMER-9). */
static bool must_wait(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	if (!(r->timer & TIMER_F_AFTER))
		return false;
	for (uint32_t i = spot_cold_of(s)->timers; i; i = l->recs[i].other)
		if (l->recs[i].timer & TIMER_F_RUNNING &&
		    is_named(&l->recs[i], r->tick.name->b, r->tick.name->len))
			return true;
	r->timer &= (uint8_t)~TIMER_F_AFTER;
	return false;
}

/* Room in the Spot's queue; a tick with a gate of its own has its own queue, for one. */
static bool has_queue(const struct spot_kind *kind, const struct spot *s)
{
	return kind->stage->own_timers ||
	       (s->app.count < kind->queue_count &&
		s->app.bytes + (uint64_t)SPOT_RECORD_COST <= kind->queue_bytes);
}

static void admit(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	r->timer |= TIMER_F_QUEUED;
	s->gate.flags |= SPOT_F_ODD;
	__builtin_prefetch(&r->tick, 1);
	if (l->kinds[s->stage].stage->own_timers) {
		r->cost = 0;
		spot_kind_of(l, s)->pending++;
		spot_own_append(l, s, r);
		return;
	}
	r->cost = SPOT_RECORD_COST;
	spot_app_reserve(s, spot_kind_of(l, s), SPOT_RECORD_COST, 0);
	spot_app_append(l, s, r);
}

/* A tick of `r` is due. Admission as of a message: one critical section, but what finds no room
 * stays here (S-TIMER-10,12). */
static void due(struct spot_lane *l, struct spot_rec *r)
{
	struct spot *s = spot_at(l, r->spot);

	if (__builtin_expect(s->gate.state != SPOT_S_READY || l->sealed, 0)) {
		if (s->gate.state < SPOT_S_READY && !l->sealed)
			arm_later(l, r, LATER); /* not published yet */
		return;				/* otherwise it is over (S-TIMER-14) */
	}
	if (__builtin_expect(l->now >= l->lease, 0))
		arm_later(l, r, LATER);
	else if (__builtin_expect(!has_queue(&l->kinds[s->stage], s) || must_wait(l, s, r), 0))
		arm_later(l, r, 1);
	else
		admit(l, s, r);
}

unsigned spot_timers(struct spot_lane *l, uint64_t now, unsigned max)
{
	uint32_t at[64];
	unsigned n = wheel_advance(&l->timer_wheel, now, at, max < 64 ? max : 64);

	l->now = now;
	for (unsigned i = 0; i < n; i++)
		__builtin_prefetch(spot_at(l, l->recs[at[i]].spot), 1);
	for (unsigned i = 0; i < n; i++) {
		struct spot_rec *r = &l->recs[at[i]];

		if (__builtin_expect(at[i] > l->rec_count, 1))
			due(l, r);
		else
			spot_waiter_expired(l, r);
	}
	if (l->ended_count)
		spot_done_flush(l);
	return n;
}

/* ---- after a turn ---- */

/* Neither queued nor running any more: the next tick, or the place is free. */
static void rest(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	uint64_t now = spot_to_ns(&l->clock, l->now);

	if (r->cost)
		spot_app_return(l, s, r);
	else
		spot_kind_of(l, s)->pending--;
	r->timer &= (uint8_t) ~(TIMER_F_QUEUED | TIMER_F_RUNNING);
	r->flags = 0;
	memset(&r->node, 0, sizeof(r->node)); /* it was something else meanwhile */
	if (r->timer & TIMER_F_DISPOSED) {
		free_place(l, r);
		return;
	}
	if (r->tick.scheduled_ns > now)
		arm(l, r, r->tick.scheduled_ns);
	else if (spot_cold_of(s)->wait_head)
		arm_later(l, r, 1); /* sends wait for the place that it leaves */
	else
		due(l, r);
}

void spot_timer_not_run(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	rest(l, s, r);
}

void spot_timer_end(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	if (rc != SPL_DONE) {
		spot_count(l, SPL_C_TICKS_FAILED, 1);
		spot_turn_failed(l, s, true, r->tick.name->b, r->tick.name->len, rc);
		if (spot_traces_errors(l))
			spot_trace_callback_failed(l, s, r, r->tick.name);
		if (r->timer & TIMER_F_STOPS)
			r->timer |= TIMER_F_DISPOSED;
	} else if (spot_traces_flows(l)) {
		spot_trace_completed(l, s, r);
	}
	if (r->overrun == SPL_OVERRUN_DELAY) { /* a period from the end of this one */
		l->now = spot_now(&l->clock);
		r->tick.scheduled_ns = add_sat(spot_to_ns(&l->clock, l->now), r->tick.period_ns);
	} else {
		r->tick.scheduled_ns = add_sat(r->tick.scheduled_ns, r->tick.period_ns);
	}
	rest(l, s, r);
}

void spot_timers_end(struct spot_lane *l, struct spot *s)
{
	while (spot_cold_of(s)->timers)
		spot_timer_dispose(l, &l->recs[spot_cold_of(s)->timers]);
}
