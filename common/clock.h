/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks. Deadlines are CLOCK_BOOTTIME nanoseconds: it is monotonic, goes on while the machine
 * sleeps, and is the same in every process of one boot (A-CLK-1, S-LEASE-3). Lanes compare the
 * time-stamp counter between two readings of it. Any thread; nothing fails.
 */
#ifndef SPL_COMMON_CLOCK_H
#define SPL_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_S	1000000000ull
#define CLOCK_NS_PER_MS 1000000ull
#define CLOCK_NS_PER_US 1000ull

/* Now, CLOCK_BOOTTIME nanoseconds. */
static inline uint64_t clock_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Now, CLOCK_REALTIME nanoseconds: to show to people, never to compare. */
static inline uint64_t clock_real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
