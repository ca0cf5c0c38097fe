/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns that wait without the gate of their Spot (S-YIELD, S-CLAIM-3): they have given
 * it back, or have one of their own. Inside the room only; called by those who end turns and calls.
 */
#ifndef SPL_DATAPLANE_SPOT_YIELD_H
#define SPL_DATAPLANE_SPOT_YIELD_H

#include "dataplane/spot/lane.h"

/* The running turn of `r` waits so until its call has ended. */
void spot_yield(struct spot_lane *l, struct spot *s, struct spot_rec *r);

/* The call that `r` waits for has ended: its resume record, which is the record itself. */
void spot_yield_over(struct spot_lane *l, struct spot *s, struct spot_rec *r);

/* The resume record is out of its queue again: the call that it resumes with is in r->waited. The
 * turn is a new one (S-TURN-1), unless its gate was kept. */
void spot_yield_take(struct spot_lane *l, struct spot *s, struct spot_rec *r);

/* Ends the first wait of a Spot whose time is up with `kind`; false when none waits. */
bool spot_yield_force(struct spot_lane *l, struct spot *s, uint8_t kind);

#endif
