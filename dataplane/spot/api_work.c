/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: work for the threads of the workers (include/spotlane/worker.h), and its results,
 * which come back as replies do: to an open call or to nobody (S-WORK-1,2).
 */
#include "dataplane/spot/api.h"

#include <errno.h>
#include <limits.h>

/* Nobody will wait for it. */
static int forget(struct spot_lane *l, struct spot_work *w, uint32_t timeout_ms)
{
	w->correlation = 0;
	w->deadline = spot_call_deadline(l, timeout_ms);
	return l->env.work(l->env.host, w);
}

static int call(struct spot_lane *l, struct spot_work *w, uint32_t timeout_ms, enum spl_wait wait,
		struct spl_call **call)
{
	int rc = spot_check_wait(l, wait);
	struct spot_call *c;

	if (rc)
		return rc;
	w->deadline = spot_call_deadline(l, timeout_ms);
	c = spot_call_of_turn(l, SPOT_FROM_WORK, wait, w->deadline);
	if (!c)
		return -ENOBUFS;
	w->correlation = c->correlation;
	rc = l->env.work(l->env.host, w);
	if (rc) {
		spot_call_drop(l, c);
		return rc;
	}
	*call = spot_call_keep(l, c);
	return 0;
}

static int run(struct spot_lane *l, struct spot_work *w, uint32_t timeout_ms, enum spl_wait wait,
	       struct spl_call **out)
{
	int rc = spot_check_payload(l, SPL_CONTENT_RAW, w->input, w->input_bytes);

	if (rc)
		return rc;
	if (timeout_ms > INT_MAX)
		return -EINVAL;
	if (spot_time_is_up(l))
		return -ESHUTDOWN;
	w->stage = spot_stage_of(l, l->turn.spot);
	rc = out ? call(l, w, timeout_ms, wait, out) : forget(l, w, timeout_ms);
	if (rc == 0)
		spot_count(l, SPL_C_WORK_STARTED, 1);
	else if (rc == -EAGAIN)
		spot_count(l, SPL_C_WORK_REFUSED, 1);
	return rc;
}

int spl_run_cpu(struct spl_turn *turn, spl_cpu_fn fn, const void *input, uint32_t input_bytes,
		uint32_t timeout_ms, enum spl_wait wait, struct spl_call **out)
{
	struct spot_work w = {.cpu = fn, .input = input, .input_bytes = input_bytes};
	struct spot_lane *l = spot_lane_of(turn);

	return l && fn ? run(l, &w, timeout_ms, wait, out) : -EINVAL;
}

int spl_run_io(struct spl_turn *turn, const struct spl_io *io, const void *input,
	       uint32_t input_bytes, uint32_t timeout_ms, enum spl_wait wait, struct spl_call **out)
{
	struct spot_work w = {.io = io, .input = input, .input_bytes = input_bytes};
	struct spot_lane *l = spot_lane_of(turn);

	if (!l || !io || !io->step || io->memory_bytes > SPL_IO_MEMORY_MAX)
		return -EINVAL;
	return run(l, &w, timeout_ms, wait, out);
}
