/* SPDX-License-Identifier: BSD-3-Clause */
/* The store in memory: tests and the simulator. Nothing outlives store_close(). */
#ifndef SPL_CONTROL_STORE_MEMORY_H
#define SPL_CONTROL_STORE_MEMORY_H

#include "control/store/store.h"

/* Milliseconds on a clock that never goes back; called on the thread that uses the store. */
typedef int64_t (*store_clock_fn)(void *ctx);

struct store_memory_opts {
	store_clock_fn clock; /* NULL: CLOCK_BOOTTIME */
	void *clock_ctx;
	uint64_t seed; /* of the cursor nonces; a run with the same seed repeats exactly */
};

/* The caller closes *out with store_close(). 0 or -ENOMEM. `o` may be NULL. */
int store_memory_open(struct store **out, const struct store_memory_opts *o);

/* Tests only: the next commit takes revision rev + 1. */
void store_memory_set_rev(struct store *st, int64_t rev);

#endif
