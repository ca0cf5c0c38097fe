/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the room of Spots tells its host about stages, for a log: see spot_env.failed()
 * and spot_env.overran(). Everything is borrowed until the call returns, but for the stage.
 */
#ifndef SPL_DATAPLANE_SPOT_REPORT_H
#define SPL_DATAPLANE_SPOT_REPORT_H

#include <spotlane/ids.h>
#include <stdbool.h>

struct spot_stage;

/* A callback that failed and that nobody was told of: a timer's, a send's, a publish's (S-TURN-10,
 * S-TIMER-13). */
struct spot_failure {
	const struct spot_stage *stage;
	const struct spl_name *id; /* of the Spot */
	bool is_timer;		   /* `name` is a timer's, otherwise a packet's */
	uint8_t kind;		   /* enum spl_error */
	const void *name;
	uint32_t name_bytes;
};

/* A turn that took longer than spot_conf.turn_overrun_us. Its Spot may be gone. */
struct spot_overrun {
	const struct spot_stage *stage;
	bool is_timer; /* `name` is a timer's, of a long one the beginning; otherwise a packet's or
			  a callback's */
	const void *name;
	uint32_t name_bytes;
	uint64_t cycles; /* that it took */
};

#endif
