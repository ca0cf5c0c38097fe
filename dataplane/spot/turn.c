/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns: which record runs next, its handler, and what its end brings (S-TURN, S-LANE).
 *
 * spot_run() takes owners from the ready set and visits each. Every step of a visit begins with one
 * reading of the clock, which ends the last turn's length, and is compared with the visit's budget,
 * the lease and the record's deadline. A handler is entered from here only, so nothing runs in
 * place on the context that submits (S-TURN-5,6).
 */
#include "dataplane/spot/lane.h"

__thread struct spot_lane *spot_lane_here;

enum step {
	STEP_RAN,     /* something was done: look again */
	STEP_NOTHING, /* nothing that could run */
	STEP_LATER,   /* something waits for the host: stay ready */
	STEP_GONE,    /* the Spot is no more */
};

static __attribute__((noinline)) void note_longest(struct spot_lane *l, uint64_t took)
{
	const struct spot_turn *turn = &l->turn;
	const struct spot_stage *stage = turn->what ? turn->stage : spot_stage_of(l, turn->spot);

	l->longest = took;
	l->longest_type = stage->desc->type;
	l->longest_what = turn->what ? turn->what : turn->rec->msg.packet;
	__atomic_store_n(&l->counters[SPL_C_TURN_CYCLES_MAX], took, __ATOMIC_RELAXED);
}

/* The reading `t` ends the turn before: was it the longest? */
static inline void note_length(struct spot_lane *l, uint64_t t)
{
	uint64_t took = t - l->turn.start;

	if (__builtin_expect(took > l->longest && l->turn.start, 0))
		note_longest(l, took);
	l->turn.start = 0;
}

/* `what` names a callback, NULL stands for the handler of the message. */
static inline void turn_begin(struct spot_lane *l, struct spot *s, struct spot_rec *r,
			      uint64_t epoch, uint64_t t, const char *what)
{
	l->turn.spot = s;
	l->turn.rec = r;
	l->turn.epoch = epoch;
	l->turn.start = t;
	l->turn.what = what;
}

/* The handler's name for its turn: a number that is never reused, not an address (S-TURN-8). */
static struct spl_turn *turn_handle(const struct spot_rec *r)
{
	return (struct spl_turn *)(uintptr_t)r->epoch;
}

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
	l->suspended++;
	if (r->kind < REC_CREATE)
		spot_count(l, SPL_C_MESSAGES_RUNNING, 1);
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

static void end_message(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	s->app.count--;
	s->app.bytes -= r->cost;
	if (rc == SPL_DONE && r->kind == SPL_MSG_SPOT_REQUEST && !(r->flags & REC_F_REPLIED))
		rc = SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	if (rc == SPL_DONE) {
		l->tally.finished++;
		spot_rec_end(l, r);
	} else {
		spot_fail(l, r, SPL_FAIL_HANDLER, (uint8_t)(rc & 0xff));
	}
}

/* After a callback returned `rc`: the next continuation when its call has ended already,
 * suspension, or the terminal. */
static enum step turn_end(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	while (rc == SPL_SUSPENDED && r->waited) {
		if (s->gate.flags & SPOT_F_FORCED && l->calls[r->waited].state == CALL_OPEN) {
			r->waited = 0; /* its time is up: no more waiting */
			rc = SPL_FAIL(SPL_E_DEADLINE_EXCEEDED);
		} else if (l->calls[r->waited].state == CALL_ENDED) {
			rc = run_continuation(l, s, r);
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
	if (r->kind >= REC_CREATE)
		spot_life_done(l, s, r, rc);
	else
		end_message(l, s, r, rc);
	return STEP_RAN;
}

static enum step resume(struct spot_lane *l, struct spot *s, uint64_t t)
{
	struct spot_rec *r = &l->recs[spot_cold_of(s)->running];
	bool message = r->kind < REC_CREATE;

	s->gate.flags &= (uint8_t) ~(SPOT_F_RESUME | SPOT_F_HELD);
	l->suspended--;
	if (message)
		spot_count(l, SPL_C_MESSAGES_RUNNING, (uint64_t)-1);
	turn_begin(l, s, r, r->epoch, t, message ? NULL : "callback");
	l->turn.stage = spot_stage_of(l, s);
	return turn_end(l, s, r, run_continuation(l, s, r));
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
	s->app.count--;
	s->app.bytes -= r->cost;
	spot_fail(l, r, why, kind);
	return STEP_RAN;
}

/* One message of the application queue, which has one. */
static inline __attribute__((always_inline)) enum step run_message(struct spot_lane *l,
								   struct spot *s, uint64_t t)
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
	rc = h->fn((struct spl_turn *)(uintptr_t)epoch, spot_state_of(s), &r->msg);
	/* The usual end: one way, nothing started. All else in turn_end(). */
	if (__builtin_expect(rc != SPL_DONE || request || r->calls, 0)) {
		l->tally.popped++;
		l->tally.turns++;
		return turn_end(l, s, r, rc);
	}
	l->turn.epoch = 0;
	s->app.count--;
	s->app.bytes -= r->cost;
	l->tally.plain++;
	spot_rec_end(l, r);
	return STEP_RAN;
}

static int call_lifecycle(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	const struct spl_stage *d = spot_stage_of(l, s)->desc;
	int (*notice)(struct spl_turn * turn, void *state) = r->notice;

	r->packet = 0; /* no calls yet */
	r->msg.packet = "";
	r->msg.deadline_ns = r->deadline ? spot_to_ns(&l->clock, r->deadline) : 0;
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

static enum step run_lifecycle(struct spot_lane *l, struct spot *s, uint64_t t)
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
	if (r->kind < REC_CLOSING &&
	    (s->gate.flags & SPOT_F_FORCED || (r->deadline && t >= r->deadline))) {
		spot_life_done(l, s, r, SPL_FAIL(SPL_E_DEADLINE_EXCEEDED));
		return STEP_RAN;
	}
	r->epoch = ++l->epoch;
	turn_begin(l, s, r, r->epoch, t, names[r->kind - REC_CREATE]);
	l->turn.stage = spot_stage_of(l, s); /* the Spot may be gone when its length is known */
	l->tally.turns++;
	return turn_end(l, s, r, call_lifecycle(l, s, r));
}

/* The first waiting message of a Spot whose time is up, or that is not ours any more. */
static void fail_head(struct spot_lane *l, struct spot *s)
{
	struct spot_rec *r = &l->recs[s->app.head];
	bool fenced = spot_cold_of(s)->reason == (uint8_t)SPOT_FENCED;

	app_pop(s, r);
	l->tally.popped++;
	s->app.count--;
	s->app.bytes -= r->cost;
	spot_fail(l, r, fenced ? SPL_FAIL_FENCED : SPL_FAIL_CLOSED, SPL_E_UNAVAILABLE);
}

static __attribute__((noinline)) enum step run_after_lifecycle(struct spot_lane *l, struct spot *s,
							       uint64_t t)
{
	enum step step = run_message(l, s, t);

	if (step != STEP_LATER) { /* the application had its turn (S-LANE-4) */
		s->gate.streak = 0;
		s->gate.flags &= (uint8_t)~SPOT_F_DEBT;
	}
	return step;
}

/* A step of a Spot about which something is out of the ordinary. */
static __attribute__((noinline)) enum step step_slow(struct spot_lane *l, struct spot *s,
						     uint64_t t)
{
	bool app = s->app.head != 0;
	enum step later = STEP_NOTHING;

	if (s->gate.flags & SPOT_F_HELD)
		return s->gate.flags & SPOT_F_RESUME ? resume(l, s, t) : STEP_NOTHING;
	if (s->gate.state == SPOT_S_ENDING)
		return spot_end(l, s) ? STEP_GONE : STEP_NOTHING;
	if (s->gate.flags & SPOT_F_ARMED) {
		const struct spot_cold *cold = spot_cold_of(s);

		if (l->env.close_wanted(l->env.host, &s->key, spot_name_of(cold),
					cold->object_generation) == 0)
			s->gate.flags &= (uint8_t)~SPOT_F_ARMED;
		else
			later = STEP_LATER;
	}
	if (app && s->gate.state == SPOT_S_CLOSING && s->gate.flags & SPOT_F_FORCED) {
		fail_head(l, s);
		return STEP_RAN;
	}
	if (s->gate.flags & SPOT_F_LIFE && !(app && s->gate.flags & SPOT_F_DEBT))
		return run_lifecycle(l, s, t);
	if (app)
		return run_after_lifecycle(l, s, t);
	if (s->gate.state == SPOT_S_CLOSING)
		return spot_closing_start(l, s) ? STEP_RAN : STEP_LATER;
	return later;
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
								 struct spot *s, uint64_t t)
{
	if (__builtin_expect(spot_gate_is_plain(&s->gate) && s->app.head, 1))
		return run_message(l, s, t);
	return step_slow(l, s, t);
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
	return !s->app.head && !(s->gate.flags & SPOT_F_SLOW) && s->gate.state <= SPOT_S_READY;
}

/* The owner has more after its first step at `begin`: goes on until it has none, is suspended, or
 * has had its time (S-FAIR-3). Returns the steps of the whole visit. */
static __attribute__((noinline)) unsigned visit_on(struct spot_lane *l, struct spot *s,
						   uint64_t begin, unsigned max, uint64_t until)
{
	for (unsigned n = 1;; n++) {
		uint64_t t = step_begin(l);

		if (n >= max || t - begin >= l->budget || t >= until) {
			spot_ready_add(l, s);
			return n;
		}
		if (is_over(l, s, take_step(l, s, t)))
			return n + 1;
	}
}

/* Writes what the turns of a pass add up to. */
static void tally_up(struct spot_lane *l)
{
	uint64_t plain = l->tally.plain;

	spot_count(l, SPL_C_TURNS, l->tally.turns + plain);
	spot_count(l, SPL_C_MESSAGES_FINISHED, l->tally.finished + plain);
	spot_count(l, SPL_C_MESSAGES_QUEUED, (uint64_t)0 - l->tally.popped - plain);
	l->tally.turns = 0;
	l->tally.finished = 0;
	l->tally.popped = 0;
	l->tally.plain = 0;
}

unsigned spot_run(struct spot_lane *l, unsigned max_turns, uint64_t until)
{
	unsigned n = 0;

	if (!l->ready_head)
		return 0;
	spot_lane_here = l;
	while (l->ready_head && n < max_turns) {
		struct spot *s = spot_ready_take(l);

		uint64_t t;

		if (l->ready_head)
			__builtin_prefetch(spot_at(l, l->ready_head), 1);
		t = step_begin(l);
		n += is_over(l, s, take_step(l, s, t)) ? 1
						       : visit_on(l, s, t, max_turns - n, until);
		if (l->now >= until)
			break;
	}
	note_length(l, spot_now(&l->clock));
	spot_lane_here = NULL;
	tally_up(l);
	spot_done_flush(l);
	return n;
}

bool spot_ready(const struct spot_lane *l)
{
	return l->ready_head != 0;
}
