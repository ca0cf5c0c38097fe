/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the files of the stage interface share. Inside the room only, inside a callback.
 */
#ifndef SPL_DATAPLANE_SPOT_API_H
#define SPL_DATAPLANE_SPOT_API_H

#include "dataplane/spot/lane.h"

/* The lane of a turn that runs now on this thread; NULL for any other handle (S-TURN-8). */
static inline struct spot_lane *spot_lane_of(const struct spl_turn *turn)
{
	struct spot_lane *l = spot_lane_here;

	return l && turn && l->turn.epoch == (uint64_t)(uintptr_t)turn ? l : NULL;
}

/* The same for the few functions that on_configure may call too. */
static inline struct spot_lane *spot_lane_of_any(const struct spl_turn *turn)
{
	struct spot_lane *l = spot_lane_here;

	return l && turn && l->turn.configures == (uint64_t)(uintptr_t)turn ? l
									    : spot_lane_of(turn);
}

/* 0, -EINVAL or -EMSGSIZE. */
int spot_check_payload(const struct spot_lane *l, uint16_t content, const void *payload,
		       uint32_t bytes);

/* A send of this turn for this lane, its payload copied; NULL without memory. */
struct spot_rec *spot_own_record(struct spot_lane *l, uint64_t packet, uint16_t content,
				 const void *payload, uint32_t bytes);

/* A message of this turn for another lane; what spot_env.send() says. */
int spot_send_out(struct spot_lane *l, uint8_t kind, const struct spl_target *target,
		  uint64_t packet, uint16_t content, const void *payload, uint32_t bytes,
		  uint64_t correlation, uint64_t deadline);

#endif
