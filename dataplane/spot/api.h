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

/* Whether this turn may wait so; asked before anything is submitted (S-YIELD-2). 0, -EINVAL,
 * -EPERM.
 */
int spot_check_wait(const struct spot_lane *l, enum spl_wait wait);

/* A call of this turn, open until its `timeout_ms` (0: the default) have passed; NULL when there is
 * no room. Once it has been submitted spot_call_keep() makes it the turn's; spot_call_drop() takes
 * it back before. */
struct spot_call *spot_call_of_turn(struct spot_lane *l, uint8_t origin, enum spl_wait wait,
				    uint64_t deadline);
struct spl_call *spot_call_keep(struct spot_lane *l, struct spot_call *c);

/* After its submission, which said `rc`: kept, or dropped and what the stage hears. */
int spot_call_submitted(struct spot_lane *l, struct spot_call *c, int rc, struct spl_call **call);

/* The Spot is being ended by force: it starts nothing any more. */
static inline bool spot_time_is_up(const struct spot_lane *l)
{
	return l->turn.spot->gate.flags & SPOT_F_FORCED;
}

/* When a call that starts now ends; cycles. */
static inline uint64_t spot_call_deadline(const struct spot_lane *l, uint32_t timeout_ms)
{
	return l->now + spot_from_ms(&l->clock, timeout_ms ? timeout_ms : l->conf.request_ms);
}

/* 0, -EINVAL, -EMSGSIZE, -ENOENT (not a channel of this node), -ESHUTDOWN. */
int spot_check_publish(const struct spot_lane *l, const struct spl_topic *topic, uint64_t packet,
		       uint16_t content, const void *payload, uint32_t bytes);

/* A send of this turn for this lane, its payload copied; NULL without memory. */
struct spot_rec *spot_own_record(struct spot_lane *l, uint64_t packet, uint16_t content,
				 const void *payload, uint32_t bytes);

/* A message of this turn with Instance intent, for a Spot of this lane (`s`, or NULL), which may
 * have to be started. */
enum spl_message_fail spot_own_instance(struct spot_lane *l, struct spot *s, struct spot_rec *r,
					const struct spl_target *target);

/* A message of this turn for another lane; what spot_env.send() says. */
int spot_send_out(struct spot_lane *l, uint8_t kind, const struct spl_target *target,
		  uint64_t packet, uint16_t content, const void *payload, uint32_t bytes,
		  uint64_t correlation, uint64_t deadline);

#endif
