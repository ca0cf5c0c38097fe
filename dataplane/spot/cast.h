/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: Logical Multicast: from a publish to the queues of its subscribers (S-MCAST). Inside
 * the room only.
 *
 * A publish goes to the lane of its topic, which keeps the order of each origin. There it becomes
 * one record (record.h, fields P) that stays until nobody reads it. It is handed to each other lane
 * that has subscribers in its row of spot_conf.topic_lanes, and stands in a line for this lane's
 * own: spot_casts_step() gives each of them a record of its own that refers to it, so many in a
 * pass. The line is what keeps publishes of one topic in order.
 */
#ifndef SPL_DATAPLANE_SPOT_CAST_H
#define SPL_DATAPLANE_SPOT_CAST_H

#include "dataplane/spot/lane.h"

#define CAST_PASS 1024u /* subscriptions looked at in one pass */
#define CAST_STEP 128u	/* and before their turns, so that these find what was just written */
#define CASTS_MAX 256u	/* publishes in the line of one lane */

/* Takes over a record of kind SPL_MSG_PUBLISH, SPOT_KIND_TOLD_PUBLISH or SPOT_KIND_CAST under
 * `key`, or refuses it: the reason, SPL_FAIL_COUNT when it has started or, `*waits`, stands in the
 * line to do so. For the counters it is finished when it starts and queued while it waits. */
enum spl_message_fail spot_cast_in(struct spot_lane *l, struct spot_rec *r,
				   const struct spl_key *key, bool *waits);

/* Goes on with the line for CAST_STEP subscriptions. How many publishes and subscriptions it looked
 * at. */
unsigned spot_casts_step(struct spot_lane *l);

/* What the lanes of topics know of this lane's subscriptions: `n` more to this topic. */
void spot_topic_lanes_add(struct spot_lane *l, const struct spl_key *key, uint32_t n);

/* The Spot is Ready: what starts from now on is for it, and nothing before (S-MCAST-2). */
void spot_subs_ready(struct spot_lane *l, struct spot *s);

/* Ends all subscriptions of a Spot. */
void spot_subs_end(struct spot_lane *l, struct spot *s);

#endif
