/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the configuration of one run of the dataplane, as control sent it: checked once,
 * constant after start. The agent's thread fills it; everybody reads it.
 */
#ifndef SPL_AGENT_RUNCFG_H
#define SPL_AGENT_RUNCFG_H

#include "common/dp.h"
#include "dataplane/port/plan.h"

#include <spotlane/ids.h>
#include <spotlane/limits.h>

#define RUNCFG_LANES_MAX   127u /* one lcore is the agent's */
#define RUNCFG_THREADS_MAX 256u
#define RUNCFG_TEXT_MAX	   ((2 * DP_STAGES_MAX + DP_DIRS_MAX + DP_ARGS_MAX + 1) * 256u)

struct runcfg_stage {
	const char *module;
	const char *symbol; /* "": SPL_STAGE_SYMBOL */
	bool entry;
};

struct runcfg {
	struct dp_config c; /* numbers; its texts and bytes are not valid any more */
	uint64_t config_hash;
	struct spl_name mesh;
	const char *file_prefix;
	int lane_cpu[RUNCFG_LANES_MAX]; /* -1: any */
	struct port_config port[PORTS_MAX];
	unsigned n_ports;
	struct runcfg_stage stage[DP_STAGES_MAX];
	uint64_t channel[SPL_CHANNELS_MAX]; /* keys */
	unsigned n_channels;
	unsigned n_stages;
	const char *stage_dir[DP_DIRS_MAX];
	unsigned n_stage_dirs;
	const char *eal_arg[DP_ARGS_MAX];
	unsigned n_eal_args;
	char text[RUNCFG_TEXT_MAX]; /* what the pointers above point into */
	size_t text_len;
};

/* Takes a decoded CONFIG. 0, or -EPROTO / -EINVAL / -E2BIG and a sentence that names the field. */
int runcfg_take(struct runcfg *out, const struct dp_config *in, char *err, size_t err_bytes)
	__attribute__((warn_unused_result));

#endif
