/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics segment: a memfd that the dataplane writes and control maps read-only.
 *
 * Every lane writes its own block with relaxed stores and never waits for a reader; the agent
 * writes the header and the ports. A reader takes no lock: single 64-bit values are whole, sums
 * over several are exact when traffic rests. `magic` is written last with release order, so a
 * reader that sees it sees the layout. Counters but the gauges only grow for the life of the
 * dataplane (`epoch`).
 */
#ifndef SPOTLANE_STATS_H
#define SPOTLANE_STATS_H

#include <spotlane/counters.h>
#include <spotlane/limits.h>
#include <spotlane/metrics.h>
#include <spotlane/reasons.h>
#include <spotlane/trace.h>
#include <stddef.h>
#include <stdint.h>

#define SPL_STATS_MAGIC	 0x5350535441545331ULL /* "SPSTATS1" */
#define SPL_STATS_LAYOUT 5

/* One lane; the last one (index `lanes`) is the agent's. Sole writer: that thread. */
struct spl_lane_stats {
	uint64_t counter[SPL_C_COUNT];
	uint64_t use[SPL_USE_COUNT];
	uint64_t drop[SPL_DROP_COUNT];
	uint64_t fail[SPL_FAIL_COUNT];
	struct spl_measures measures;
} __attribute__((aligned(64)));

struct spl_port_stats {
	char name[32];
	uint64_t counter[SPL_P_COUNT];
} __attribute__((aligned(64)));

/* One association, for people: written by the agent, row free when `lifecycle` is 0. */
struct spl_link_stats {
	uint64_t lifecycle;
	char rid[256];
	uint32_t ip; /* host order */
	uint16_t udp_port;
	uint16_t lanes;
	uint64_t up_since_ns;
} __attribute__((aligned(64)));

/* A stage module's type: written before `magic`, never changed. */
struct spl_stage_info {
	uint32_t kind;	/* enum spl_kind */
	char type[260]; /* stable type, ends with NUL */
} __attribute__((aligned(8)));

/* The Spots of one type in one lane. Sole writer: that lane. */
struct spl_stage_stats {
	uint64_t counter[SPL_S_COUNT];
} __attribute__((aligned(64)));

#define SPL_STATS_LINKS_MAX 256 /* rows shown; more associations are counted, not listed */

struct spl_stats {
	uint64_t magic;
	uint32_t layout, size; /* SPL_STATS_LAYOUT, bytes of the segment */
	uint64_t epoch;
	uint32_t lanes, ports;
	uint32_t lane_bytes, port_bytes; /* sizeof of the blocks, for a check */
	uint32_t stages, stage_bytes;
	uint32_t trace_bytes, trace_entries;
	uint64_t tsc_hz;
	uint64_t credit_max, credit_left; /* bytes that peers may send; agent, as the next */
	uint64_t mbufs_total, mbufs_free; /* agent, each housekeeping pass */
	uint64_t associations;
	struct spl_port_stats port[SPL_PORTS_MAX];
	struct spl_link_stats link[SPL_STATS_LINKS_MAX];
	struct spl_lane_stats lane[]; /* lanes + 1 */
	/* then struct spl_stage_stats [lanes][stages], struct spl_trace_ring [lanes],
	 * struct spl_stage_info [stages] */
};

/* Bytes of a segment. */
static inline size_t spl_stats_bytes(uint32_t lanes, uint32_t stages)
{
	return sizeof(struct spl_stats) + (lanes + 1) * sizeof(struct spl_lane_stats) +
	       lanes * (stages * sizeof(struct spl_stage_stats) + sizeof(struct spl_trace_ring)) +
	       stages * sizeof(struct spl_stage_info);
}

/* The rows [stages] and the ring of `lane`, and what the stages are, of a segment of that shape. */
static inline struct spl_stage_stats *spl_stats_stages(struct spl_stats *s, uint32_t lanes,
						       uint32_t stages, uint32_t lane)
{
	return (struct spl_stage_stats *)(void *)&s->lane[lanes + 1] + (size_t)lane * stages;
}

static inline struct spl_trace_ring *spl_stats_trace(struct spl_stats *s, uint32_t lanes,
						     uint32_t stages, uint32_t lane)
{
	return (struct spl_trace_ring *)(void *)spl_stats_stages(s, lanes, stages, lanes) + lane;
}

static inline struct spl_stage_info *spl_stats_infos(struct spl_stats *s, uint32_t lanes,
						     uint32_t stages)
{
	return (struct spl_stage_info *)(void *)spl_stats_trace(s, lanes, stages, lanes);
}

#endif
