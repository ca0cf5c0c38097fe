/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: steps and turns, as the files that run them share them. Inside the room only.
 *
 * A visit to an owner is a row of steps. A step runs one turn, or goes on with a suspended one, and
 * ends in spot_turn_end(). All of it is called by spot_run(), on the lane, with the one reading of
 * the clock that the step began with.
 */
#ifndef SPL_DATAPLANE_SPOT_TURN_H
#define SPL_DATAPLANE_SPOT_TURN_H

#include "dataplane/spot/lane.h"

enum step {
	STEP_RAN,     /* something was done: look again */
	STEP_NOTHING, /* nothing that could run */
	STEP_LATER,   /* something waits for the host: stay ready */
	STEP_GONE,    /* the Spot is no more */
};

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
static inline struct spl_turn *turn_handle(const struct spot_rec *r)
{
	return (struct spl_turn *)(uintptr_t)r->epoch;
}

/* After a callback returned `rc`: the next continuation when its call has ended already,
 * suspension, or the terminal. */
enum step spot_turn_end(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc);

/* Tells the host of a callback of `s` that failed; `rc` is what it returned. */
void spot_turn_failed(struct spot_lane *l, struct spot *s, bool is_timer, const void *name,
		      uint32_t name_bytes, int rc);

/* Goes on with the turn that holds the gate: its call has ended. */
enum step spot_turn_resume(struct spot_lane *l, struct spot *s, uint64_t t);

/* Goes on with a turn that waited without the Spot's gate; `r` is out of its queue. */
enum step spot_turn_go_on(struct spot_lane *l, struct spot *s, struct spot_rec *r, uint64_t t);

/* turn_long.c: a turn that has taken more than spot_lane.long_from; its name when it was a timer's.
 */
void spot_turn_long(struct spot_lane *l, uint64_t took) __attribute__((cold));
extern const char spot_turn_timer[];

/* turn_timer.c: a tick that is out of its queue. */
enum step spot_turn_tick(struct spot_lane *l, struct spot *s, struct spot_rec *r, uint64_t t);

/* turn_life.c: one callback of the lifecycle queue, which has one. */
enum step spot_turn_life(struct spot_lane *l, struct spot *s, uint64_t t);

#endif
