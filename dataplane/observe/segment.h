/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the statistics segment of <spotlane/stats.h>. The agent, at start and at the end; lanes
 * get a pointer to their block and write it alone.
 */
#ifndef SPL_OBSERVE_SEGMENT_H
#define SPL_OBSERVE_SEGMENT_H

#include <spotlane/stats.h>

/* Creates a memfd of the right size, maps it, seals it against growing and shrinking and against
 * new writable mappings, and fills everything but `magic`. NULL and errno; *fd is the caller's.
 */
struct spl_stats *segment_create(uint32_t lanes, uint32_t ports, uint32_t stages, uint64_t epoch,
				 uint64_t tsc_hz, int *fd) __attribute__((warn_unused_result));

/* Before segment_publish(): what stage `index` is. `type` is cut to what there is room for. */
void segment_stage(struct spl_stats *s, uint32_t index, uint32_t kind, const char *type);

/* Everything else is in place: writes `magic` with release order. */
void segment_publish(struct spl_stats *s);

void segment_destroy(struct spl_stats *s); /* unmaps; NULL is fine */

/* One writer, readers in another process: a plain add that is never torn. */
static inline void segment_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline void segment_set(uint64_t *counter, uint64_t v)
{
	__atomic_store_n(counter, v, __ATOMIC_RELAXED);
}

#endif
