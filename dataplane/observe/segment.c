/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the statistics segment: see segment.h. */
#include "dataplane/observe/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

struct spl_stats *segment_create(uint32_t lanes, uint32_t ports, uint32_t stages, uint64_t epoch,
				 uint64_t tsc_hz, int *fd)
{
	size_t bytes = spl_stats_bytes(lanes, stages);
	struct spl_stats *s = MAP_FAILED;
	int err, f = memfd_create("spotlane-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (f < 0)
		return NULL;
	if (ftruncate(f, (off_t)bytes) == 0)
		s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	if (s == MAP_FAILED ||
	    madvise(s, bytes, MADV_POPULATE_WRITE) || /* no lane meets a page fault here */
	    fcntl(f, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)) {
		err = errno;
		if (s != MAP_FAILED)
			munmap(s, bytes);
		close(f);
		errno = err;
		return NULL;
	}
	s->layout = SPL_STATS_LAYOUT;
	s->size = (uint32_t)bytes;
	s->epoch = epoch;
	s->lanes = lanes;
	s->ports = ports;
	s->lane_bytes = sizeof(struct spl_lane_stats);
	s->port_bytes = sizeof(struct spl_port_stats);
	s->stages = stages;
	s->stage_bytes = sizeof(struct spl_stage_stats);
	s->trace_bytes = sizeof(struct spl_trace_ring);
	s->trace_entries = SPL_TRACE_ENTRIES;
	s->tsc_hz = tsc_hz;
	*fd = f;
	return s;
}

void segment_stage(struct spl_stats *s, uint32_t index, uint32_t kind, const char *type)
{
	struct spl_stage_info *info = &spl_stats_infos(s, s->lanes, s->stages)[index];

	info->kind = kind;
	snprintf(info->type, sizeof(info->type), "%s", type);
}

void segment_publish(struct spl_stats *s)
{
	__atomic_store_n(&s->magic, SPL_STATS_MAGIC, __ATOMIC_RELEASE);
}

void segment_destroy(struct spl_stats *s)
{
	if (s)
		munmap(s, s->size);
}
