/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: messages with Instance intent for an id that has no Ready Spot here (S-ACT-1,7,8,11).
 *
 * They wait in order of arrival behind one question to the agent, at most as many as the default
 * limits of a queue allow. When their Spot is published they go to its queue, before anything else
 * can; when control says that there will be none, each ends once. An entry of the table is one id
 * and type: which type an id has only the authority decides, so what intends another one than those
 * who came first has a question of its own (S-ACT-1,7). Its serial number tells a late answer from
 * one that is awaited. Inside the room only, on the
 * lane.
 */
#ifndef SPL_DATAPLANE_SPOT_ACTIVATE_H
#define SPL_DATAPLANE_SPOT_ACTIVATE_H

#include "dataplane/spot/lane.h"

/* A message whose intent names `type` for `id`; `s` is what the table has under `key`, or NULL;
 * `shut`: SPL_FAIL_COUNT, or why nothing is admitted now. SPL_FAIL_COUNT: it is queued or waits. */
enum spl_message_fail spot_instance_in(struct spot_lane *l, struct spot *s, struct spot_rec *r,
				       const struct spl_key *key, const struct spot_intent *intent,
				       enum spl_message_fail shut);

/* `s` is Ready from now on: takes what has waited for it. */
void spot_waits_go(struct spot_lane *l, struct spot *s);

void spot_waits_init(struct spot_lane *l);

/* admit.c. */

/* Why nothing is admitted now, SPL_FAIL_COUNT when it is. */
enum spl_message_fail spot_closed(const struct spot_lane *l, uint64_t now);

/* The same for what was accepted before: only its Spot's queue is asked. */
enum spl_message_fail spot_enqueue_accepted(struct spot_lane *l, struct spot *s,
					    struct spot_rec *r);

#endif
