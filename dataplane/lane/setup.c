/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: memory of a lane, made and freed by the agent while the lane does not run. */
#include "dataplane/lane/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Regions are reserved whole and touched as they are needed: TABLE and OBJECTS by the agent as
 * Spots come, the others now, so that no lane ever meets a page fault on its first message.
 */
static void *region_map(size_t bytes, bool backed)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A million Spots in 4 KiB pages are a TLB miss for every message; refused: no harm. */
	(void)madvise(p, bytes, MADV_HUGEPAGE);
	if (backed && madvise(p, bytes, MADV_POPULATE_WRITE)) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}

static int map_regions(struct lane *l, const struct spot_conf *conf)
{
	for (int i = 0; i < SPOT_MEM_COUNT; i++) {
		size_t bytes = spot_region_bytes(conf, (enum spot_region)i);
		bool backed = i != SPOT_MEM_TABLE && i != SPOT_MEM_OBJECTS && i != SPOT_MEM_FLOWS;

		if (bytes == 0)
			return -EINVAL;
		l->region_bytes[i] = bytes;
		l->region[i] = region_map(bytes, backed);
		if (!l->region[i])
			return -ENOMEM;
	}
	return 0;
}

static void assign_ports(struct lane *l)
{
	for (unsigned p = 0; p < l->sh->n_ports; p++)
		if (p % l->sh->lanes == l->index)
			l->port[l->n_port++] = (uint8_t)p;
}

struct lane *lane_create(struct lane_shared *sh, unsigned index, const struct lane_conf *conf)
{
	struct spot_env env = lane_env;
	struct spot_conf spot = conf->spot;
	struct lane *l = aligned_alloc(64, (sizeof(*l) + 63) & ~(size_t)63);
	int rc = -ENOMEM;

	if (!l) {
		errno = ENOMEM;
		return NULL;
	}
	memset(l, 0, sizeof(*l));
	l->sh = sh;
	l->index = index;
	l->stats = &sh->stats->lane[index];
	l->active_max = conf->flows_max;
	l->peer = calloc(sh->associations, sizeof(*l->peer));
	l->active = calloc(conf->flows_max, sizeof(struct lane_flow *));
	l->later = calloc(HOP_USERS(sh->lanes), sizeof(*l->later));
	l->later_max = conf->spot.waiters;
	l->send_ms = conf->spot.send_ms;
	if (!l->peer || !l->active || !l->later)
		goto fail;
	spot.lane = index;
	spot.lanes = sh->lanes;
	spot.clock_hz = sh->tsc_hz;
	spot.counters = l->stats->counter;
	spot.fails = l->stats->fail;
	spot.observed.measures = &l->stats->measures;
	spot.observed.stages = sh->stats->stages;
	spot.observed.trace = spl_stats_trace(sh->stats, sh->lanes, sh->stats->stages, index);
	spot.observed.infos = spl_stats_infos(sh->stats, sh->lanes, sh->stats->stages);
	spot.observed.stage_stats =
		spl_stats_stages(sh->stats, sh->lanes, sh->stats->stages, index);
	if (!sh->topic_lanes)
		sh->topic_lanes =
			calloc((size_t)SPOT_TOPIC_ROWS * sh->lanes, sizeof(*sh->topic_lanes));
	if (!sh->topic_lanes)
		goto fail;
	spot.topic_lanes = sh->topic_lanes;
	env.host = l;
	rc = map_regions(l, &spot);
	if (rc)
		goto fail;
	rc = -EINVAL;
	l->spots = spot_lane_init(&spot, &env, l->region);
	if (!l->spots)
		goto fail;
	l->mem = spot_lane_mem(l->spots);
	lane_count(l, SPL_C_REPLIES_MAX,
		   (l->mem->bytes - l->mem->bytes / LANE_HELD_BACK) / LANE_REPLY_BYTES);
	spot_clock_init(&l->clock, sh->tsc_hz, spot.fake_clock);
	for (unsigned i = 0; i < LANE_EVENTS; i++) {
		l->event[i].next = l->free_events;
		l->free_events = &l->event[i];
	}
	assign_ports(l);
	tx_init(&l->tx, sh->tx_net, index, sh->pool);
	return l;
fail:
	lane_destroy(l);
	errno = -rc;
	return NULL;
}

void lane_destroy(struct lane *l)
{
	if (!l)
		return;
	for (int i = 0; i < SPOT_MEM_COUNT; i++)
		if (l->region[i])
			munmap(l->region[i], l->region_bytes[i]);
	free(l->peer);
	free(l->active);
	free(l->later);
	free(l);
}
