/* SPDX-License-Identifier: BSD-3-Clause */
/* See statseg.h. The dataplane is trusted to be what it says, not to be free of faults: nothing is
 * indexed by a number that was not checked against the size of the mapping.
 */
#include "control/dplink/statseg.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int check_fd(int fd, size_t *size, const char **why)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	*why = "memfd is not sealed against shrinking, growing and writing";
	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) ||
	    !(seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE)))
		return -EPERM;
	*why = "memfd cannot be examined";
	if (fstat(fd, &st) < 0)
		return -errno;
	*why = "memfd has no room for the header or is too large";
	if (st.st_size < (off_t)sizeof(struct spl_stats) || st.st_size > (off_t)(1 << 30))
		return -EMSGSIZE;
	*size = (size_t)st.st_size;
	return 0;
}

static int check_content(const struct spl_stats *s, size_t size, uint64_t epoch, const char **why)
{
	*why = "wrong magic";
	/* Acquire: pairs with the release store of the agent, which writes magic last. */
	if (__atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) != SPL_STATS_MAGIC)
		return -EPROTO;
	*why = "another layout";
	if (s->layout != SPL_STATS_LAYOUT || s->lane_bytes != sizeof(struct spl_lane_stats) ||
	    s->port_bytes != sizeof(struct spl_port_stats) ||
	    s->stage_bytes != sizeof(struct spl_stage_stats) ||
	    s->trace_bytes != sizeof(struct spl_trace_ring) ||
	    s->trace_entries != SPL_TRACE_ENTRIES)
		return -EPROTO;
	*why = "numbers of lanes, ports or stages out of range";
	if (s->lanes < 1 || s->lanes > SPL_LANES_MAX || s->ports > SPL_PORTS_MAX ||
	    s->stages > SPL_STAGES_MAX)
		return -EPROTO;
	*why = "size does not match the numbers of lanes and stages";
	if (s->size > size || s->size < spl_stats_bytes(s->lanes, s->stages))
		return -EMSGSIZE;
	*why = "another life of the dataplane";
	return s->epoch == epoch ? 0 : -ESTALE;
}

int statseg_map(struct statseg *g, int fd, uint64_t epoch, const char **why)
{
	size_t size = 0;
	int rc = check_fd(fd, &size, why);
	void *p;

	if (rc < 0)
		return rc;
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		*why = "cannot be mapped";
		return -errno;
	}
	rc = check_content(p, size, epoch, why);
	if (rc < 0) {
		munmap(p, size);
		return rc;
	}
	statseg_unmap(g);
	g->s = p;
	g->size = size;
	g->lanes = g->s->lanes;
	g->ports = g->s->ports;
	g->stages = g->s->stages;
	if (g->lanes > SPL_LANES_MAX || g->ports > SPL_PORTS_MAX || g->stages > SPL_STAGES_MAX ||
	    size < spl_stats_bytes(g->lanes, g->stages)) {
		*why = "header changes";
		statseg_unmap(g);
		return -EPROTO;
	}
	return 0;
}

void statseg_unmap(struct statseg *g)
{
	if (g->s)
		munmap((void *)(uintptr_t)g->s, g->size);
	*g = (struct statseg){.s = NULL};
}
