/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of a Spot: part of the stage interface, <spotlane/stage.h> includes it (S-TIMER).
 *
 * The rules of a callback are those of stage.h: every function is called by a callback, on its
 * lane, with its own turn, and allocates nothing.
 */
#ifndef SPOTLANE_TIMER_H
#define SPOTLANE_TIMER_H

#include <spotlane/ids.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spl_turn;

/* What happens to ticks that come late (S-TIMER-2). */
enum spl_overrun {
	SPL_OVERRUN_SKIP = 0,	  /* only the newest due tick is delivered */
	SPL_OVERRUN_CATCH_UP = 1, /* due ticks in order, at most catch_up_max, the newest ones */
	SPL_OVERRUN_DELAY = 2,	  /* the next one is due a period after the callback's end */
};

/* How a timer runs; all zero is the default: SKIP, for ever, goes on after a failure. */
struct spl_timer_options {
	enum spl_overrun overrun;
	int32_t catch_up_max; /* 1..INT_MAX, looked at with SPL_OVERRUN_CATCH_UP only */
	bool stop_on_failure; /* a callback that FAILs ends the timer (S-TIMER-13) */
	bool one_shot;	      /* one tick, a period from now (S-TIMER-17) */
};

/* A timer as its Spot knows it; a value, to be kept in `state` or thrown away. 0 is none. */
struct spl_timer {
	uint64_t id;
};

/* One tick (S-TIMER-5). Times are nanoseconds on the clock of spl_now_ns(). */
struct spl_tick {
	const struct spl_name *name;
	uint64_t delivery_index;  /* 1, 2, 3 ...: callbacks begun since the timer was started */
	uint64_t scheduled_index; /* of the schedule; tick k is due at begun + k * period */
	uint64_t skipped;	  /* ticks between the one before and this one */
	uint64_t period_ns;
	uint64_t begun_ns;     /* when the timer was started */
	uint64_t scheduled_ns; /* when this tick was due */
	uint64_t started_ns;   /* when this callback began */
};

static inline uint64_t spl_tick_scheduled_elapsed(const struct spl_tick *tick)
{
	return tick->scheduled_ns - tick->begun_ns;
}

static inline uint64_t spl_tick_started_elapsed(const struct spl_tick *tick)
{
	return tick->started_ns - tick->begun_ns;
}

/* How late it is. */
static inline uint64_t spl_tick_delay(const struct spl_tick *tick)
{
	return tick->started_ns - tick->scheduled_ns;
}

/* Callback of a timer; a turn of the Spot like a message's, which may wait and fail. */
typedef int (*spl_timer_fn)(struct spl_turn *turn, void *state, const struct spl_tick *tick);

/* Starts a timer of this Spot under a name of 1..255 bytes UTF-8; `options` may be NULL. A timer of
 * that name ends first, and its indices begin anew (S-TIMER-3); callbacks under one name never
 * overlap, not even when one of them waits (S-TIMER-9). Ticks are exact in number, not in time: the
 * lane looks about every millisecond. `timer` may be NULL.
 * -EINVAL: bad name, function, options, or a period that is not positive (a configuration error of
 * the stage); -ENOBUFS: the Spot has its limit of timers (limits.timers_per_spot), the lane its own
 * (limits.timers_per_lane), or no memory; -ESHUTDOWN: the Spot is closing. (S-TIMER-1,2,19)
 */
int spl_timer_start(struct spl_turn *turn, const void *name, size_t len, int64_t period_ns,
		    spl_timer_fn fn, const struct spl_timer_options *options,
		    struct spl_timer *timer);

/* Ends a timer: no callback of it begins from now on; one that runs or waits goes on. Any number of
 * times. 0, also when it is over; -EINVAL: a live timer of another Spot. (S-TIMER-11)
 */
int spl_timer_cancel(struct spl_turn *turn, struct spl_timer timer);

/* True when no further callback of the timer begins: cancelled, started anew under its name, ended
 * by a failure, or a one-shot timer whose callback has begun.
 */
bool spl_timer_is_disposed(struct spl_turn *turn, struct spl_timer timer);

#ifdef __cplusplus
}
#endif
#endif
