/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what a lane knows of its trace: see trace.h. Inside the room only. */
#ifndef SPL_DATAPLANE_SPOT_TRACING_H
#define SPL_DATAPLANE_SPOT_TRACING_H

#include <spotlane/trace.h>

struct spot_tracing {
	uint8_t level; /* enum spl_trace_level, of this pass */
	uint32_t era;  /* changes when flows begin to be traced */
	uint64_t share, serial;
	uint64_t wall_ns; /* CLOCK_REALTIME when this lane's clock was 0 */
	void *flows;	  /* of records, by number */
	struct spl_trace_ring *ring;
};

#endif
