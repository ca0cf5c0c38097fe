/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what a lane does with a pass that found no work. Pure: counts in, an action out.
 *
 * An idle lane first spins (the next frame is near), then yields its core (two lanes on one core
 * would stop each other otherwise), then naps, longer each time up to IDLE_NAP_MAX_US, which is the
 * published latency floor (S-FAIR-5). It naps only while no timer of its own is due sooner. Whoever
 * pushes into a ring of a napping lane wakes it.
 */
#ifndef SPL_LANE_IDLE_H
#define SPL_LANE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#define IDLE_SPIN_PASSES  16u	/* passes before the first yield */
#define IDLE_YIELD_PASSES 512u	/* yields before the first nap */
#define IDLE_NAP_MIN_US	  50u	/* the first nap */
#define IDLE_NAP_MAX_US	  1000u /* the longest */

enum idle_action { IDLE_SPIN, IDLE_YIELD, IDLE_NAP };

struct idle {
	uint32_t passes; /* without work, in a row */
	uint32_t nap_us; /* the last nap */
};

/* A pass found work: start over. */
static inline void idle_busy(struct idle *s)
{
	s->passes = 0;
	s->nap_us = 0;
}

/* A pass found none. `due_us`: until the lane's next timer, UINT32_MAX for none. For IDLE_NAP
 * `nap_us` says how long.
 */
static inline enum idle_action idle_next(struct idle *s, uint32_t due_us)
{
	if (s->passes < IDLE_SPIN_PASSES + IDLE_YIELD_PASSES)
		s->passes++;
	if (s->passes <= IDLE_SPIN_PASSES)
		return IDLE_SPIN;
	if (s->passes < IDLE_SPIN_PASSES + IDLE_YIELD_PASSES || due_us < IDLE_NAP_MIN_US)
		return IDLE_YIELD;
	s->nap_us = s->nap_us ? s->nap_us * 2 : IDLE_NAP_MIN_US;
	if (s->nap_us > IDLE_NAP_MAX_US)
		s->nap_us = IDLE_NAP_MAX_US;
	if (s->nap_us > due_us)
		s->nap_us = due_us;
	return IDLE_NAP;
}

#endif
