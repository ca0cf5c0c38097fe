/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: deadlines of a lane: a hashed wheel of nodes that live in an array of the caller.
 *
 * A tick is a power of two of cycles near a millisecond. A node sits in the slot of the tick in
 * which its deadline has surely passed, so it ends at most two ticks late and never early,
 * but for a caller who was away for more than WHEEL_STEP ticks. Adding
 * and removing are a few stores; wheel_advance() looks at a bounded number of slots and nodes and
 * goes on next time where it stopped. One lane.
 */
#ifndef SPL_DATAPLANE_SPOT_WHEEL_H
#define SPL_DATAPLANE_SPOT_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_SLOTS 4096u
#define WHEEL_STEP  512u

/* In each element of the caller's array, at the same place; element 0 is not used. */
struct wheel_node {
	uint32_t next, prev; /* 0 = end; both 0 and slot 0 when out */
	uint64_t due;	     /* tick + 1; 0 = not in the wheel */
};

struct wheel {
	uint8_t *base;	 /* the node of element 0 */
	uint32_t stride; /* bytes of an element */
	uint32_t shift;	 /* cycles to ticks */
	uint64_t tick;	 /* the next one to be looked at */
	uint32_t left;	 /* nodes of that slot still to be looked at, when `begun` */
	bool begun;
	uint32_t armed; /* nodes in the wheel */
	struct {
		uint32_t head, tail, count;
	} slot[WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, void *base, uint32_t stride, uint64_t hz, uint64_t now);

/* Adds element `i`, which is not in the wheel, for `deadline` (cycles). */
void wheel_add(struct wheel *w, uint32_t i, uint64_t deadline);

/* Takes element `i` out; nothing when it is not in. */
void wheel_del(struct wheel *w, uint32_t i);

/* Takes up to `max` elements whose deadline is not after `now` out of the wheel, into `out`;
 * returns how many. Looks at no more than 4 * max nodes and, unless nothing is armed, WHEEL_STEP
 * slots. */
unsigned wheel_advance(struct wheel *w, uint64_t now, uint32_t *out, unsigned max);

#endif
