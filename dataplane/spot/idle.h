/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: Instance Spots that nobody uses (S-IDLE-1..4). Inside the room only, on the lane.
 *
 * A look goes over at most 64 of the lane's Instance Spots and goes on where the last one ended. It
 * costs a message nothing: a Spot whose queue is empty has no use for the queue's tail, so a look
 * writes there since when it has found the Spot idle, and whatever is queued later writes over it.
 * A Spot is asked about between one idle time and some more: at most a quarter, and a millisecond
 * for each 64 Instance Spots.
 */
#ifndef SPL_DATAPLANE_SPOT_IDLE_H
#define SPL_DATAPLANE_SPOT_IDLE_H

#include "dataplane/spot/lane.h"

#define SPOT_IDLE_MS_MAX 604800000u /* a week; its stamps go round in twelve days */

/* Nothing of it is queued, runs, waits, or will come from a timer (S-IDLE-2). */
bool spot_is_idle(const struct spot_lane *l, struct spot *s);

/* It has been all the time since its close was asked for. */
bool spot_is_idle_since(const struct spot_lane *l, struct spot *s);

/* A Spot was made, or goes: for Instance Spots. */
void spot_idle_add(struct spot_lane *l, struct spot *s);
void spot_idle_del(struct spot_lane *l, struct spot *s);

/* When l->idle_due has come. */
void spot_idle_look(struct spot_lane *l, uint64_t now);

#endif
