/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: how a thread that naps is woken by one that pushes into its rings.
 *
 * The sleeper announces itself (parked = 1), looks into its rings once more, then sleeps on the
 * eventfd with a bound. A pusher that finds the flag set clears it and writes the eventfd: the only
 * system call a lane makes for another, and only towards a sleeper. Sequentially consistent
 * accesses on both sides, so that either the pusher sees the flag or the sleeper sees the push.
 */
#ifndef SPL_LANE_WAKE_H
#define SPL_LANE_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wake {
	_Atomic uint32_t parked; /* w: sleeper sets, pushers clear */
	int fd;			 /* eventfd; const after start */
} __attribute__((aligned(64)));

/* 0 or -errno. */
int wake_init(struct wake *w) __attribute__((warn_unused_result));
void wake_fini(struct wake *w);

/* Sleeps until woken, until one of `n_fds` (at most 4) is readable, or until max_us have passed.
 * The caller has called wake_park() and then found its rings empty.
 */
void wake_sleep(struct wake *w, const int *fds, unsigned n_fds, uint32_t max_us);

/* Lets another thread of this core run. */
void wake_yield(void);

/* The slow half of wake_up(): writes the eventfd. */
void wake_kick(struct wake *w);

static inline void wake_park(struct wake *w)
{
	atomic_store_explicit(&w->parked, 1, memory_order_seq_cst);
}

static inline void wake_unpark(struct wake *w)
{
	atomic_store_explicit(&w->parked, 0, memory_order_relaxed);
}

/* After a push; partner: wake_park() and the sleeper's look into its rings. */
static inline void wake_up(struct wake *w)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&w->parked, memory_order_relaxed))
		wake_kick(w);
}

#endif
