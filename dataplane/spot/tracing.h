/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: where a lane leaves what is observed of it, and what it knows of its trace: see
 * totals.h and trace.h. */
#ifndef SPL_DATAPLANE_SPOT_TRACING_H
#define SPL_DATAPLANE_SPOT_TRACING_H

#include <spotlane/trace.h>

#define SPOT_FLOW_BYTES 32u

struct spl_stage_stats;
struct spl_stage_info;
struct spl_measures;

/* Written relaxed by the lane only. What is NULL is not kept. */
struct spot_observed {
	struct spl_stage_stats *stage_stats; /* [stages], by the index of a stage */
	const struct spl_stage_info *infos;  /* [stages] */
	uint32_t stages;
	struct spl_measures *measures;
	struct spl_trace_ring *trace;
};

/* Inside the room only. */
struct spot_tracing {
	uint8_t level; /* enum spl_trace_level, of this pass */
	uint32_t era;  /* changes when flows begin to be traced */
	uint64_t share, serial;
	uint64_t wall_ns; /* CLOCK_REALTIME when this lane's clock was 0 */
	void *flows;	  /* of records, by number */
	struct spl_trace_ring *ring;
};

#endif
