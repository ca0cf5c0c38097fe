/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: sends and publishes of this runtime that wait for room (S-LIM-5,6,9). Inside the room
 * only.
 *
 * A send whose target's queue is full stands in a line of that Spot, a publish that finds the line
 * of publishes full in a line of the lane; both in the order in which they came, with their time in
 * the lane's second wheel. While somebody waits the queue is full: whoever frees a place gives it
 * away before anything else can be admitted, so nothing overtakes. All of them together are at most
 * spot_conf.waiters; beyond it nothing is kept. A waiting record's fields marked W belong here; it
 * is accepted and queued for the counters.
 *
 * Who waits for the answer of his send ("told") gets it when the send is admitted or has failed.
 */
#ifndef SPL_DATAPLANE_SPOT_WAITER_H
#define SPL_DATAPLANE_SPOT_WAITER_H

#include "dataplane/spot/lane.h"

#define WAITER_STEP 64u /* that are moved or ended in one step */

/* A told send or publish that was admitted; it is an ordinary one then. */
void spot_told(struct spot_lane *l, struct spot_rec *r);

/* admit.c: admits a record of kind SPOT_KIND_TOLD_* that a turn of this lane has made for `target`;
 * what becomes of it is its call's result. `r->key` may end with it. */
void spot_admit_own(struct spot_lane *l, struct spot_rec *r, const struct spl_target *target);

/* `s` has no room for the send `r` of this runtime, or the line no room for the publish: waits.
 * SPL_FAIL_COUNT, or SPL_FAIL_WAITERS_FULL when nobody may wait any more. */
enum spl_message_fail spot_wait_for_spot(struct spot_lane *l, struct spot *s, struct spot_rec *r);
enum spl_message_fail spot_wait_for_line(struct spot_lane *l, struct spot_rec *r,
					 const struct spl_key *topic);

/* Gives the room of `s` away, after a step that may have made some, or when nothing else could run.
 * True when one was admitted or has ended. */
bool spot_waiters_move(struct spot_lane *l, struct spot *s);

/* The Spot takes nothing any more: ends some that wait for it. */
void spot_waiters_fail(struct spot_lane *l, struct spot *s);

/* The time of a waiting record is up. */
void spot_waiter_expired(struct spot_lane *l, struct spot_rec *r);

/* The first publish that waits for the line, out of its wait, and its topic; NULL when there is
 * none that may start. */
struct spot_rec *spot_line_next(struct spot_lane *l, struct spl_key *topic);

#endif
