/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics segment of the dataplane, mapped read-only. One thread; owns the mapping. */
#ifndef SPL_CONTROL_STATSEG_H
#define SPL_CONTROL_STATSEG_H

#include <spotlane/stats.h>
#include <stddef.h>

struct statseg {
	const struct spl_stats *s; /* NULL = not mapped */
	size_t size;
	uint32_t lanes, ports; /* as checked at mapping: the segment is not asked again */
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

#endif
