/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns: which record runs next, its handler, and what its end brings (S-TURN, S-LANE).
 *
 * spot_run() takes owners from the ready set and visits each. Every step of a visit begins with one
 * reading of the clock, which ends the last turn's length, and is compared with the visit's budget,
 * the lease and the record's deadline. A handler is entered from here only, so nothing runs in
 * place on the context that submits (S-TURN-5,6).
 */
#include "dataplane/spot/cast.h"
#include "dataplane/spot/queue.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/turn.h"
#include "dataplane/spot/waiter.h"
#include "dataplane/spot/yield.h"

__thread struct spot_lane *spot_lane_here;

/* The reading `t` ends the turn before: was it the longest, or did it overrun? */
static inline void note_length(struct spot_lane *l, uint64_t t)
{
	uint64_t took = t - l->turn.start;

	if (__builtin_expect(took > l->long_from && l->turn.start, 0))
		spot_turn_long(l, took);
	l->turn.start = 0;
}

/* Why the record may not start, SPL_FAIL_COUNT when it may; `kind` for the error reply. */
static inline enum spl_message_fail may_start(const struct spot_lane *l, const struct spot_rec *r,
					      const struct spl_handler *h, bool request, uint64_t t,
					      uint8_t *kind)
{
	unsigned takes = request ? SPL_TAKES_REQUEST : SPL_TAKES_SEND;

	if (__builtin_expect(t >= l->lease, 0)) {
		*kind = SPL_E_UNAVAILABLE;
		return SPL_FAIL_FENCED;
	}
	if (__builtin_expect(t >= r->deadline, 0) && r->deadline) {
		*kind = SPL_E_DEADLINE_EXCEEDED;
		return SPL_FAIL_EXPIRED;
	}
	if (__builtin_expect(!h || !(h->takes & takes), 0)) {
		*kind = SPL_E_NOT_FOUND;
		return SPL_FAIL_NO_HANDLER;
	}
	if (__builtin_expect(r->msg.content >= SPL_CONTENT_COUNT, 0)) {
		*kind = SPL_E_PROTOCOL_ERROR;
		return SPL_FAIL_CONTENT_TYPE;
	}
	return SPL_FAIL_COUNT;
}

static inline void app_pop(struct spot *s, struct spot_rec *r)
{
	s->app.head = r->next; /* the tail is not looked at while there is no head */
	r->waited = 0;
	r->flags = 0;
}

/* The rest of what the handler gets. */
static inline void msg_complete(const struct spot_lane *l, struct spot_rec *r,
				const struct spl_handler *h, bool request)
{
	r->msg.packet = h->packet;
	r->msg.is_request = request;
	r->msg.deadline_ns = r->deadline ? spot_to_ns(&l->clock, r->deadline) : 0;
}

static __attribute__((noinline)) enum step not_started(struct spot_lane *l, struct spot *s,
						       struct spot_rec *r,
						       enum spl_message_fail why, uint8_t kind)
{
	l->tally.popped++;
	spot_app_return(l, s, r);
	spot_fail(l, s, r, why, kind);
	return STEP_RAN;
}

/* One message of the application queue, which has one. `traced` is a constant, as in what follows:
 * of all that every message passes there are two copies, and one knows nothing of the trace. */
static inline __attribute__((always_inline)) enum step run_message(struct spot_lane *l,
								   struct spot *s, uint64_t t,
								   bool traced)
{
	struct spot_rec *r = &l->recs[s->app.head];
	struct spot_kind *k = &l->kinds[s->stage];
	const struct spl_handler *h = spot_kind_find(k, r->packet);
	bool request = r->kind == SPL_MSG_SPOT_REQUEST;
	enum spl_message_fail why;
	uint64_t epoch;
	uint8_t kind;
	int rc;

	if (request && l->permits == 0)
		return STEP_LATER;
	app_pop(s, r);
	why = may_start(l, r, h, request, t, &kind);
	if (__builtin_expect(why != SPL_FAIL_COUNT, 0))
		return not_started(l, s, r, why, kind);
	if (request)
		l->permits--;
	if (__builtin_expect(l->pool_low && r->buf, 0) && spot_rec_move(l, r))
		spot_count(l, SPL_C_LINK_COPIED_OUT, 1);
	msg_complete(l, r, h, request);
	epoch = ++l->epoch;
	r->epoch = epoch;
	r->packet = 0; /* no calls yet */
	turn_begin(l, s, r, epoch, t, NULL);
	if (traced)
		spot_trace_dispatched(l, s, r);
	rc = h->fn((struct spl_turn *)(uintptr_t)epoch, spot_state_of(s), &r->msg);
	/* The usual end: one way, nothing started. All else in spot_turn_end(). */
	if (__builtin_expect(rc != SPL_DONE || request || r->calls || r->flags, 0)) {
		l->tally.popped++;
		l->tally.turns++;
		return spot_turn_end(l, s, r, rc);
	}
	l->turn.epoch = 0;
	if (traced)
		spot_trace_completed(l, s, r);
	s->app.count--;
	s->app.bytes -= r->cost;
	k->plain++;
	k->payload -= r->msg.payload_bytes;
	spot_rec_end(l, r);
	return STEP_RAN;
}

/* A publish at the head of the application queue, for the subscription it was queued for. The
 * message is the publish's own, which every subscriber reads. */
static inline __attribute__((always_inline)) enum step run_publish(struct spot_lane *l,
								   struct spot *s,
								   struct spot_rec *r, uint64_t t,
								   bool traced)
{
	const struct spot_sub *sub = &l->topics.subs[r->packet];
	struct spot_kind *k = spot_kind_of(l, s);
	struct spot_rec *cast = r->cast;
	uint64_t epoch;
	int rc;

	app_pop(s, r);
	if (__builtin_expect(t >= l->lease, 0))
		return not_started(l, s, r, SPL_FAIL_FENCED, SPL_E_UNAVAILABLE);
	epoch = ++l->epoch;
	r->epoch = epoch;
	r->packet = 0; /* no calls yet */
	turn_begin(l, s, r, epoch, t, NULL);
	if (traced)
		spot_trace_dispatched(l, s, r);
	rc = sub->fn((struct spl_turn *)(uintptr_t)epoch, spot_state_of(s), &cast->msg, sub->name);
	if (__builtin_expect(rc != SPL_DONE || r->calls || r->flags, 0)) {
		l->tally.popped++;
		l->tally.turns++;
		return spot_turn_end(l, s, r, rc);
	}
	l->turn.epoch = 0;
	s->app.count--;
	s->app.bytes -= r->cost;
	k->plain++;
	k->payload -= cast->msg.payload_bytes;
	spot_cast_put(l, cast);
	spot_rec_free(l, r); /* there is nothing of it that the host would have to know */
	return STEP_RAN;
}

/* The head of the application queue, when it is a message of either kind. */
static inline __attribute__((always_inline)) enum step run_head(struct spot_lane *l, struct spot *s,
								uint64_t t, bool traced)
{
	struct spot_rec *r = &l->recs[s->app.head];

	if (__builtin_expect(r->kind == SPL_MSG_PUBLISH, 0))
		return run_publish(l, s, r, t, traced);
	return run_message(l, s, t, traced);
}

static __attribute__((noinline)) enum step run_head_traced(struct spot_lane *l, struct spot *s,
							   uint64_t t)
{
	return run_head(l, s, t, true);
}

/* One step of a Spot whose time is up, or that is not ours any more: a wait ends, or the first
 * waiting message fails. False when neither is left; turns that go on are not its business. */
static bool force(struct spot_lane *l, struct spot *s)
{
	uint8_t reason = spot_cold_of(s)->reason;
	bool fenced = reason == (uint8_t)SPOT_FENCED;
	struct spot_rec *r = &l->recs[s->app.head];

	if (spot_yield_force(l, s,
			     fenced				   ? SPL_E_UNAVAILABLE
			     : reason == SPL_CLOSING_HOST_SHUTDOWN ? SPL_E_SHUTTING_DOWN
								   : SPL_E_DEADLINE_EXCEEDED))
		return true;
	if (!s->app.head || r->flags & REC_F_RESUME || r->kind == REC_TICK)
		return false;
	app_pop(s, r);
	l->tally.popped++;
	spot_app_return(l, s, r);
	if (reason == SPL_CLOSING_HOST_SHUTDOWN)
		spot_fail(l, s, r, SPL_FAIL_SHUTDOWN, SPL_E_SHUTTING_DOWN); /* S-DRAIN-4 */
	else
		spot_fail(l, s, r, fenced ? SPL_FAIL_FENCED : SPL_FAIL_CLOSED, SPL_E_UNAVAILABLE);
	return true;
}

static bool own_waits(const struct spot_lane *l, struct spot *s)
{
	return s->gate.flags & SPOT_F_ODD && l->kinds[s->stage].stage->own_timers &&
	       spot_cold_of(s)->own_head;
}

/* Nothing waits any more: what comes next is a message, unless it says otherwise. */
static void odd_done(const struct spot_lane *l, struct spot *s)
{
	if (!s->app.head && !own_waits(l, s) && !spot_cold_of(s)->wait_head)
		s->gate.flags &= (uint8_t)~SPOT_F_ODD;
}

/* A tick, or a turn of one that goes on, which does not ask for the gate of its Spot. */
static enum step run_own(struct spot_lane *l, struct spot *s, uint64_t t)
{
	struct spot_cold *cold = spot_cold_of(s);
	struct spot_rec *r = &l->recs[cold->own_head];
	enum step step;

	cold->own_head = r->next;
	if (r->flags & REC_F_RESUME) {
		step = spot_turn_go_on(l, s, r, t);
	} else {
		r->flags = REC_F_OWN;
		step = spot_turn_tick(l, s, r, t);
	}
	odd_done(l, s);
	return step;
}

/* The head of the application queue, of whatever kind. */
static __attribute__((noinline)) enum step run_application(struct spot_lane *l, struct spot *s,
							   uint64_t t)
{
	struct spot_rec *r = &l->recs[s->app.head];
	enum step step;

	if (r->kind != REC_TICK && !(r->flags & REC_F_RESUME)) {
		step = spot_traces_flows(l) ? run_head_traced(l, s, t) : run_head(l, s, t, false);
	} else {
		s->app.head = r->next;
		step = r->flags & REC_F_RESUME ? spot_turn_go_on(l, s, r, t)
					       : spot_turn_tick(l, s, r, t);
	}
	if (s->gate.flags & SPOT_F_ODD)
		odd_done(l, s);
	if (step != STEP_LATER) { /* the application had its turn (S-LANE-4) */
		s->gate.streak = 0;
		s->gate.flags &= (uint8_t)~SPOT_F_DEBT;
	}
	return step;
}

/* A step of what needs the gate of the Spot. */
static enum step step_others(struct spot_lane *l, struct spot *s, uint64_t t)
{
	bool app = s->app.head != 0;
	enum step later = STEP_NOTHING;

	if (s->gate.flags & SPOT_F_HELD)
		return s->gate.flags & SPOT_F_RESUME ? spot_turn_resume(l, s, t) : STEP_NOTHING;
	if (s->gate.state == SPOT_S_ENDING)
		return spot_end(l, s) ? STEP_GONE : STEP_NOTHING;
	if (s->gate.flags & SPOT_F_ARMED) {
		const struct spot_cold *cold = spot_cold_of(s);

		if (l->env.close_wanted(l->env.host, &s->key, spot_name_of(cold),
					cold->object_generation, SPL_CLOSING_EXPLICIT) == 0)
			s->gate.flags &= (uint8_t)~SPOT_F_ARMED;
		else
			later = STEP_LATER;
	}
	if (s->gate.state == SPOT_S_CLOSING && s->gate.flags & SPOT_F_FORCED && force(l, s))
		return STEP_RAN;
	if (s->gate.flags & SPOT_F_LIFE && !(app && s->gate.flags & SPOT_F_DEBT))
		return spot_turn_life(l, s, t);
	if (app)
		return run_application(l, s, t);
	if (s->gate.state == SPOT_S_CLOSING && !spot_cold_of(s)->yielded)
		return spot_closing_start(l, s) ? STEP_RAN : STEP_LATER;
	return later;
}

/* What has gates of its own comes first, and by turns with the rest that could run: neither waits
 * for the other for ever (S-GATE-4). */
static bool own_is_next(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);
	bool others = s->gate.flags & SPOT_F_HELD
			      ? s->gate.flags & SPOT_F_RESUME
			      : s->gate.flags & (SPOT_F_ARMED | SPOT_F_LIFE) || s->app.head;

	cold->own_was_last = !others || !cold->own_was_last;
	return cold->own_was_last;
}

static bool sends_wait(struct spot *s)
{
	return s->gate.flags & SPOT_F_ODD && spot_cold_of(s)->wait_head;
}

/* A step of a Spot about which something is out of the ordinary. */
static __attribute__((noinline)) enum step step_slow(struct spot_lane *l, struct spot *s,
						     uint64_t t)
{
	enum step step;

	if (sends_wait(s) && s->gate.state != SPOT_S_READY) {
		spot_waiters_fail(l, s);
		odd_done(l, s);
		return STEP_RAN;
	}
	if (sends_wait(s) && !s->app.head && spot_waiters_move(l, s))
		return STEP_RAN; /* there were more than one step moves */
	if (own_waits(l, s) && own_is_next(l, s))
		return run_own(l, s, t);
	step = step_others(l, s, t);
	return step == STEP_NOTHING && own_waits(l, s) ? STEP_RAN : step;
}

/* Every step begins with it: the one reading of the clock. */
static inline uint64_t step_begin(struct spot_lane *l)
{
	uint64_t t = spot_now(&l->clock);

	note_length(l, t);
	l->now = t;
	return t;
}

static inline __attribute__((always_inline)) enum step take_step(struct spot_lane *l,
								 struct spot *s, uint64_t t,
								 bool traced)
{
	if (__builtin_expect(spot_gate_is_plain(&s->gate) && s->app.head, 1))
		return traced ? run_head_traced(l, s, t) : run_head(l, s, t, false);
	return step_slow(l, s, t);
}

/* The same of a Spot about which something is out of the ordinary. Room that the step has made is
 * given away before anybody else can be admitted. */
static __attribute__((noinline)) bool is_over_slow(struct spot_lane *l, struct spot *s)
{
	if (sends_wait(s) && s->gate.state == SPOT_S_READY) {
		(void)spot_waiters_move(l, s);
		odd_done(l, s);
	}
	return !s->app.head && !(s->gate.flags & (SPOT_F_SLOW | SPOT_F_ODD)) &&
	       s->gate.state <= SPOT_S_READY;
}

/* After a step: true when the visit is over. */
static inline bool is_over(struct spot_lane *l, struct spot *s, enum step step)
{
	if (__builtin_expect(step != STEP_RAN, 0)) {
		if (step == STEP_LATER)
			spot_ready_add(l, s);
		return true;
	}
	if (__builtin_expect(spot_gate_is_plain(&s->gate), 1))
		return !s->app.head;
	return is_over_slow(l, s);
}

/* The owner has more after its first step at `begin`: goes on until it has none, is suspended, or
 * has had its time (S-FAIR-3). Returns the steps of the whole visit. */
static inline __attribute__((always_inline)) unsigned visit_on(struct spot_lane *l, struct spot *s,
							       uint64_t begin, unsigned max,
							       uint64_t until, bool traced)
{
	for (unsigned n = 1;; n++) {
		uint64_t t = step_begin(l);

		if (n >= max || t - begin >= l->budget || t >= until) {
			spot_ready_add(l, s);
			return n;
		}
		if (is_over(l, s, take_step(l, s, t, traced)))
			return n + 1;
	}
}

static __attribute__((noinline)) unsigned visit_plain(struct spot_lane *l, struct spot *s,
						      uint64_t begin, unsigned max, uint64_t until)
{
	return visit_on(l, s, begin, max, until, false);
}

/* Writes what the turns of a pass add up to. */
static void tally_up(struct spot_lane *l)
{
	uint64_t plain = 0;

	for (uint32_t i = 0; i < l->kinds_end; i++) {
		struct spot_kind *k = &l->kinds[i];

		plain += k->plain;
		k->pending -= k->plain;
		k->plain = 0;
	}
	spot_count(l, SPL_C_TURNS, l->tally.turns + plain);
	spot_count(l, SPL_C_MESSAGES_FINISHED, l->tally.finished + plain);
	spot_count(l, SPL_C_MESSAGES_QUEUED, (uint64_t)0 - l->tally.popped - plain);
	l->tally.turns = 0;
	l->tally.finished = 0;
	l->tally.popped = 0;
}

static inline __attribute__((always_inline)) unsigned run_ready(struct spot_lane *l,
								unsigned max_turns, uint64_t until,
								bool traced)
{
	unsigned n = 0;

	while (l->ready_head && n < max_turns) {
		struct spot *s = spot_ready_take(l);
		uint64_t t;

		if (l->ready_head)
			__builtin_prefetch(spot_at(l, l->ready_head), 1);
		t = step_begin(l);
		if (is_over(l, s, take_step(l, s, t, traced)))
			n++;
		else if (traced)
			n += visit_on(l, s, t, max_turns - n, until, true);
		else
			n += visit_plain(l, s, t, max_turns - n, until);
		if (l->now >= until)
			break;
	}
	return n;
}

static __attribute__((noinline)) unsigned run_plain(struct spot_lane *l, unsigned max_turns,
						    uint64_t until)
{
	return run_ready(l, max_turns, until, false);
}

static __attribute__((noinline)) unsigned run_traced(struct spot_lane *l, unsigned max_turns,
						     uint64_t until)
{
	return run_ready(l, max_turns, until, true);
}

unsigned spot_run(struct spot_lane *l, unsigned max_turns, uint64_t until)
{
	unsigned n = 0, cast = 0;

	if (!spot_ready(l))
		return 0;
	spot_lane_here = l;
	do {
		if (l->topics.cast_head || l->line_head)
			cast += spot_casts_step(l);
		n += spot_traces_flows(l) ? run_traced(l, max_turns - n, until)
					  : run_plain(l, max_turns - n, until);
	} while (l->topics.cast_head && cast < CAST_PASS && n < max_turns && l->now < until);
	note_length(l, spot_now(&l->clock));
	spot_lane_here = NULL;
	tally_up(l);
	spot_done_flush(l);
	return n + (cast > 0);
}

bool spot_casts_waiting(const struct spot_lane *l)
{
	return l->topics.cast_head != 0;
}

bool spot_ready(const struct spot_lane *l)
{
	return l->ready_head != 0 || l->topics.cast_head != 0 || l->line_head != 0;
}
