/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics segment of the dataplane, mapped read-only. One thread; owns the mapping. */
#ifndef SPL_CONTROL_STATSEG_H
#define SPL_CONTROL_STATSEG_H

#include <spotlane/stats.h>
#include <stddef.h>

struct statseg {
	const struct spl_stats *s; /* NULL = not mapped */
	size_t size;
	uint32_t lanes, ports, stages; /* as checked at mapping: the segment is not asked again */
};

/* Maps `fd` and replaces what was mapped before. Checks the seals SHRINK, GROW and FUTURE_WRITE
 * (or WRITE), size, magic, layout, block sizes, bounds and epoch. 0, or -EPERM, -EMSGSIZE, -EPROTO,
 * -ESTALE (another epoch), -errno; *why (static text) says what was wrong, the old mapping stays.
 * The descriptor stays the caller's. */
int statseg_map(struct statseg *g, int fd, uint64_t epoch, const char **why);
void statseg_unmap(struct statseg *g);

/* One value, whole, relaxed: its writer is a lane of the dataplane. */
static inline uint64_t statseg_get(const uint64_t *v)
{
	return __atomic_load_n(v, __ATOMIC_RELAXED);
}

/* What stage `index` (< stages) is; its name ends in the segment whatever was written there. */
static inline const struct spl_stage_info *statseg_stage(const struct statseg *g, uint32_t index)
{
	return &spl_stats_infos((struct spl_stats *)(uintptr_t)g->s, g->lanes, g->stages)[index];
}

/* What `lane` (< lanes) has traced. */
static inline const struct spl_trace_ring *statseg_trace(const struct statseg *g, uint32_t lane)
{
	return spl_stats_trace((struct spl_stats *)(uintptr_t)g->s, g->lanes, g->stages, lane);
}

/* The row of stage `index` in `lane` (< lanes). */
static inline const struct spl_stage_stats *statseg_stage_row(const struct statseg *g,
							      uint32_t lane, uint32_t index)
{
	return &spl_stats_stages((struct spl_stats *)(uintptr_t)g->s, g->lanes, g->stages,
				 lane)[index];
}

#endif
