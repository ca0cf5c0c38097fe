/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of timers share: the Spot "a", whose packet "probe" starts a timer that notes its
 * ticks. The clock stands still until timer_live() moves it.
 */
#ifndef SPL_TEST_SPOT_TIMERRIG_H
#define SPL_TEST_SPOT_TIMERRIG_H

#include "tests/unit/spot/teststage.h"

#define MS  (uint64_t) FAKE_MS
#define LAG 3 /* the wheel may be this many ms late, never early */

/* What the probe starts, and what came of it. */
struct timer_start {
	const char *name;
	int64_t period;
	struct spl_timer_options options;
	int rc;
	struct spl_timer timer;
};
extern struct timer_start timer_start;
extern spl_timer_fn timer_callback; /* tick_note at first */

/* The ticks that tick_note() has had. */
struct tick_got {
	struct spl_tick tick;
	char name[16];
};
extern struct tick_got tick_got[64];
extern unsigned ticks_got;

int tick_note(struct spl_turn *turn, void *state, const struct spl_tick *tick);
int timer_start_it(struct spl_turn *turn, void *state, const struct spl_message *m);

/* A lane with the Spot "a". */
void timer_begin(const struct spl_stage *stage);
void timer_start_named(const char *name, int64_t period, struct spl_timer_options options);

/* In steps of a millisecond, each with its passes, so that no tick is late by more than LAG. */
void timer_live(uint64_t ms);

/* Indices of the tick that came as number `i`. */
void tick_check(unsigned i, uint64_t delivery, uint64_t scheduled, uint64_t skipped);

/* Lets `id` run `fn` in a turn. */
void timer_probe(const char *id,
		 int (*fn)(struct spl_turn *turn, void *state, const struct spl_message *m));

#endif
