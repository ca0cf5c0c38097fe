/* SPDX-License-Identifier: BSD-3-Clause */
/* One EAL for a test program: no hugepages, no devices, no traces in the file system, any user.
 * Main thread only. The suite's init calls t_eal_start(), its fini t_eal_stop().
 */
#ifndef SPL_T_EAL_H
#define SPL_T_EAL_H

#include <stdint.h>

#include <rte_mempool.h>

#define T_EAL_MB 256u

/* lcore 0 is the test, lcores 1..n_lanes are lanes, on the CPUs of this process in turn: more lanes
 * than CPUs are fine. 0, or -1 and a line on stderr. Once a process. */
int t_eal_start(unsigned n_lanes);
int t_eal_stop(void);

/* How many lanes the environment asks for: T_LANES=1..8, otherwise `usual`. The vdev suite runs
 * with 1, 2 and 3. */
unsigned t_eal_lanes(unsigned usual);

/* A pool of at least n ordinary buffers (2 KiB data room) with `priv` private bytes; aborts when
 * there is no memory. Name unique in the process. */
struct rte_mempool *t_pool(const char *name, unsigned n, uint16_t priv);

/* Buffers of the pool that are out; a test takes it before and after. */
static inline unsigned t_pool_used(const struct rte_mempool *mp)
{
	return rte_mempool_in_use_count(mp);
}

#endif
