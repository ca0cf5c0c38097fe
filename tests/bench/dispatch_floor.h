/* SPDX-License-Identifier: BSD-3-Clause */
/* The floor of bench_dispatch: what any dispatcher must do, and nothing else. A table with open
 * addressing, half full at most; an object of one cache line with key, queue and state; a ready
 * list; one reading of the time-stamp counter for each object served; a call. Main thread.
 */
#ifndef SPL_BENCH_DISPATCH_FLOOR_H
#define SPL_BENCH_DISPATCH_FLOOR_H

#include "tests/bench/dispatch_rx.h"

struct dispatch_floor {
	struct t_node *node;
	struct floor_slot *slots;
	struct floor_object *objects;
	uint32_t mask;
	size_t slot_bytes, object_bytes;
	uint64_t handled;
	uint64_t clock_sum; /* so that the readings are used */
	/* Parse as the lane parses a frame of a peer it knows (frame_expected()), where only the
	 * usual shape is told from all others; otherwise as it parses any frame (rx_parse()). */
	bool is_short;
};

struct dispatch_floor *dispatch_floor_new(struct t_node *n, const struct spl_key *keys,
					  uint32_t spots);
void dispatch_floor_free(struct dispatch_floor *f);

/* One burst from `rx` to the return of its handlers; its buffers are free again. */
void dispatch_floor_pass(struct dispatch_floor *f, struct dispatch_rx *rx);

#endif
