/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: timers of Spots: places, schedule, admission of ticks (S-TIMER). Inside the room only.
 *
 * A timer is a record (record.h, fields T). It is out (its Spot does not take ticks any more), or
 * in the lane's second wheel until its next tick is due, or in a queue of its Spot, or in its turn.
 * Its place is free again when it is disposed and neither in a queue nor in a turn.
 */
#ifndef SPL_DATAPLANE_SPOT_TIMER_H
#define SPL_DATAPLANE_SPOT_TIMER_H

#include "dataplane/spot/lane.h"

#define TIMER_F_ONE_SHOT 0x01u
#define TIMER_F_STOPS	 0x02u /* when a callback fails */
#define TIMER_F_DISPOSED 0x04u /* no callback begins any more */
#define TIMER_F_QUEUED	 0x08u /* its tick is in a queue */
#define TIMER_F_RUNNING	 0x10u /* its callback runs or waits */
#define TIMER_F_AFTER	 0x20u /* a callback of an earlier one of its name may still wait */

void spot_timers_init(struct spot_lane *l);

/* A place for a timer of `s` that is not in the wheel yet; ends an earlier one of its name. NULL
 * without a place, memory or when the Spot has its limit. */
struct spot_rec *spot_timer_make(struct spot_lane *l, struct spot *s, const void *name, size_t len);

/* First arming. The caller has filled period, function and options. */
void spot_timer_arm(struct spot_lane *l, struct spot_rec *r);

/* No callback of it begins any more; frees the place when nothing of it is left. */
void spot_timer_dispose(struct spot_lane *l, struct spot_rec *r);

/* The handle of a timer, and back: NULL when it names none that is there, of `s` or of another. */
static inline uint64_t spot_timer_id(const struct spot_lane *l, const struct spot_rec *r)
{
	return (uint64_t)r->generation << 32 | (spot_rec_index(l, r) - l->rec_count);
}

struct spot_rec *spot_timer_find(struct spot_lane *l, uint64_t id);

/* Its tick was in a queue and does not run: no lease, no time, disposed. Plans the next one. */
void spot_timer_not_run(struct spot_lane *l, struct spot *s, struct spot_rec *r);

/* Terminal of a callback. */
void spot_timer_end(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc);

/* All timers of a Spot that ends. None is in a queue or in a turn. */
void spot_timers_end(struct spot_lane *l, struct spot *s);

#endif
