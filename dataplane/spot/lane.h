/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the lane as the files of this room see it. Not for hosts: they use spot.h.
 *
 * Everything here is written by the lane's thread only.
 */
#ifndef SPL_DATAPLANE_SPOT_LANE_H
#define SPL_DATAPLANE_SPOT_LANE_H

#include "dataplane/spot/calls.h"
#include "dataplane/spot/clock.h"
#include "dataplane/spot/object.h"
#include "dataplane/spot/slab.h"
#include "dataplane/spot/spot.h"
#include "dataplane/spot/table.h"
#include "dataplane/spot/topics.h"
#include "dataplane/spot/tracing.h"
#include "dataplane/spot/waits.h"

#include <spotlane/counters.h>
#include <spotlane/metrics.h>
#include <spotlane/packets.h>
#include <spotlane/reasons.h>

#define SPOT_DONE_MAX	64u
#define SPOT_RESERVE(n) ((n) / 8) /* records that only lifecycle work may take */

/* The turn that runs now, and until the next reading of the clock the last one. */
struct spot_turn {
	struct spot *spot;
	struct spot_rec *rec;
	uint64_t epoch;	     /* the handler's `struct spl_turn *`; 0 = no turn runs. Never reused */
	uint64_t start;	     /* 0 = its length was noted */
	uint64_t configures; /* the handle of on_configure while it runs, which is no turn's */
	int misconfigured;   /* SPL_OK, or the error kind of a subscription that was refused */
	const char *what;    /* of the longest turn: a callback; NULL = a handler */
	const struct spot_stage *stage; /* with what */
	uint8_t timer_len, timer[47];	/* of a timer's turn, its name or the beginning of it */
};

struct spot_lane {
	struct table table;
	struct slab slab;
	struct spot_rec *recs;	     /* recs[0] is not used */
	struct spot_rec **rec_stack; /* free ones, hottest on top */
	uint32_t rec_free, rec_count;
	uint32_t rec_least; /* free, ever: records are taken in their order the first time */
	uint32_t ready_head, ready_tail;
	uint64_t lease;
	uint64_t now; /* of the last reading in a turn, or as the host said */
	uint32_t permits;
	bool pool_low, sealed;
	uint64_t epoch;
	uint64_t budget; /* cycles of an owner's visit */
	struct spot_turn turn;
	struct {
		uint64_t turns, finished, popped;
	} tally; /* of this spot_run(), for the counters; and each kind's `plain` */
	struct spot_clock clock;
	uint64_t *counters, *fails;
	struct spl_measures *measures;
	struct spot_env env;
	struct spot_conf conf;
	unsigned ended_count, done_count;
	struct spot_rec *ended[SPOT_DONE_MAX]; /* free when the host has had them */
	struct spot_done done[SPOT_DONE_MAX];

	uint64_t longest, overrun, long_from; /* cycles: a turn; told beyond; the lesser */
	const char *longest_type, *longest_what;

	struct spot_call *calls; /* calls[0] is not used; commands follow the calls */
	uint32_t call_free, op_free, calls_open, calls_held, ops_open;
	uint32_t calls_end_at;
	uint64_t call_serial;
	uint32_t copy_at;
	struct spot_kind kinds[SPL_STAGES_MAX]; /* by index, filled when the first Spot comes */
	uint32_t kinds_end;			/* beyond the last that is filled */
	struct spl_measures no_measures;
	uint64_t no_stats[SPL_S_COUNT]; /* of kinds that nobody asked to count */
	struct lanemem mem;
	uint64_t mem_own; /* blocks of it that this room holds */
	struct wheel wheel;

	struct spot_topics topics;
	struct spot_tracing trace;

	uint32_t timer_free, timers_used;
	uint32_t waiters, line_head, line_tail; /* see waiter.h */
	struct wheel timer_wheel;

	uint64_t idle_due;	     /* cycles; UINT64_MAX without Instance Spots to look at */
	uint32_t idle_head, idle_at; /* list of these; the next to look at, 0 = the first */
	uint32_t instances;	     /* in that list */

	struct spot_waits waits;
};

/* The lane whose turn runs on this thread: the stage interface has no other way to it. */
extern __thread struct spot_lane *spot_lane_here;

static inline void spot_add(uint64_t *c, uint64_t n)
{
	__atomic_store_n(c, *c + n, __ATOMIC_RELAXED);
}

static inline void spot_count(struct spot_lane *l, enum spl_lane_counter c, uint64_t n)
{
	spot_add(&l->counters[c], n);
}

static inline uint32_t spot_rec_index(const struct spot_lane *l, const struct spot_rec *r)
{
	return (uint32_t)(r - l->recs);
}

static inline uint32_t spot_index(const struct spot_lane *l, const struct spot *s)
{
	return slab_index(&l->slab, s);
}

static inline struct spot *spot_at(const struct spot_lane *l, uint32_t index)
{
	return slab_at(&l->slab, index);
}

static inline const struct spot_stage *spot_stage_of(const struct spot_lane *l,
						     const struct spot *s)
{
	return l->kinds[s->stage].stage;
}

static inline void spot_rec_free(struct spot_lane *l, struct spot_rec *r)
{
	l->rec_stack[l->rec_free++] = r;
}

/* The `n` on top of the stack are taken. */
static inline void spot_recs_used(struct spot_lane *l, unsigned n)
{
	l->rec_free -= n;
	if (l->rec_free < l->rec_least)
		l->rec_least = l->rec_free;
}

/* hand.c: hands everything that has ended to the host. */
void spot_done_flush(struct spot_lane *l);

/* A record, for lifecycle work from the reserve too; NULL when there is none. */
static inline struct spot_rec *spot_rec_get(struct spot_lane *l, bool lifecycle)
{
	uint32_t least = lifecycle ? 0 : SPOT_RESERVE(l->rec_count);

	if (l->rec_free <= least)
		spot_done_flush(l);
	if (l->rec_free <= least)
		return NULL;
	spot_recs_used(l, 1);
	return l->rec_stack[l->rec_free];
}

/* hand.c: buffers and memory that go back. */
void *spot_mem_take(struct spot_lane *l, size_t bytes);
void spot_mem_give(struct spot_lane *l, void *p);
void spot_rec_lets_go(struct spot_lane *l, struct spot_rec *r); /* of its publish, or its memory */

static inline void spot_done_add(struct spot_lane *l, void *buf, uint8_t origin, uint64_t flow,
				 uint32_t charge)
{
	if (!buf && !charge)
		return;
	if (l->done_count == SPOT_DONE_MAX)
		spot_done_flush(l);
	l->done[l->done_count++] = (struct spot_done){buf, flow, charge, origin};
}

/* Gives back what the record holds, and the record. */
static inline void spot_rec_end(struct spot_lane *l, struct spot_rec *r)
{
	if (__builtin_expect(r->mem != NULL, 0))
		spot_rec_lets_go(l, r);
	if (l->ended_count == SPOT_DONE_MAX)
		spot_done_flush(l);
	l->ended[l->ended_count++] = r;
}

/* A subscriber's record, or the way to the subscribers, has done with a publish. */
static inline void spot_cast_put(struct spot_lane *l, struct spot_rec *cast)
{
	if (--cast->refs == 0)
		spot_rec_end(l, cast);
}

/* Moves the bytes of `r` out of its buffer; false when lane memory is short. */
bool spot_rec_move(struct spot_lane *l, struct spot_rec *r);

/* Somebody waits for what becomes of it. */
static inline bool spot_is_answered(const struct spot_rec *r)
{
	return r->kind == SPL_MSG_SPOT_REQUEST || r->kind == SPOT_KIND_TOLD_SEND ||
	       r->kind == SPOT_KIND_TOLD_PUBLISH;
}

/* hand.c: replies. Answers a request by its route; 0 or what spot_env.send() says. */
int spot_answer(struct spot_lane *l, const struct spot_rec *r, uint8_t kind, uint16_t content,
		const void *payload, uint32_t bytes);

/* Ends a message that does not reach DONE: error reply for a request (`kind`), counter, memory. The
 * record is not in a queue any more and its reservation was given back. `s` is NULL when it found
 * no Spot. */
void spot_fail(struct spot_lane *l, struct spot *s, struct spot_rec *r, enum spl_message_fail why,
	       uint8_t kind);

/* admit.c: ends a message that is not admitted; a request of this node for a Spot that is not there
 * goes to control first. `key` may lie in a buffer of the record. */
void spot_refuse(struct spot_lane *l, struct spot_rec *r, const struct spl_key *key,
		 enum spl_message_fail why);

/* Puts a record into the application queue of `s`, or says why not; SPL_FAIL_COUNT =
 * accepted. One critical section with respect to state, seal, lease and room (S-ADM-1). */
enum spl_message_fail spot_enqueue(struct spot_lane *l, struct spot *s, struct spot_rec *r,
				   uint64_t now);

static inline uint32_t spot_call_index(const struct spot_lane *l, const struct spot_call *c)
{
	return (uint32_t)(c - l->calls);
}

/* command.c: lifecycle queue and open commands of a Spot. */
/* A callback for the lifecycle queue of a Ready Spot: membership and the like. 0; -ENOENT: not
 * Ready; -EAGAIN: the queue is full; -ENOBUFS: no record (S-LANE-1,2). */
int spot_life_notice(struct spot_lane *l, struct spot *s,
		     int (*fn)(struct spl_turn *turn, void *state));
struct spot_rec *spot_life_pop(struct spot_lane *l, struct spot *s);

/* The open creation of `s`, NULL when there is none. */
struct spot_call *spot_op_creation(struct spot_lane *l, struct spot *s);

/* Terminal of a lifecycle turn, or what stands for it when it may not run. */
void spot_life_done(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc);

/* The deadline of a command has passed: nothing of its Spot waits any longer. */
void spot_op_expired(struct spot_lane *l, struct spot_call *op);

/* Puts on_closing into the lifecycle queue of a closing Spot that has nothing else left, or lets it
 * end without when it is fenced; false without a record. */
bool spot_closing_start(struct spot_lane *l, struct spot *s);

/* Frees an ending Spot and answers what is still open on it; false while it is in the ready set. */
bool spot_end(struct spot_lane *l, struct spot *s);

#endif
