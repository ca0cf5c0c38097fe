/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the agent writes to its log about stages. One of a kind in LANE_FAILURE_NS: a
 * stage that does it at every message must not fill the log; the next one says how many were not
 * told.
 */
#include "dataplane/lane/lane.h"

/* An event with the name in lane memory, when it is time for one; otherwise NULL. */
static struct lane_event *begin(struct lane *l, struct lane_told *told, const void *name,
				uint32_t bytes)
{
	struct lane_event *e = l->now_ns >= told->at ? lane_event_new(l) : NULL;
	void *copy = e ? lanemem_alloc(l->mem, bytes) : NULL;

	if (!copy) {
		if (e)
			lane_event_done(l, e);
		told->missed++;
		return NULL;
	}
	memcpy(copy, name, bytes);
	e->data = copy;
	e->bytes = bytes;
	e->buf = lane_buf(copy, LANE_BUF_MEM);
	e->correlation = told->missed;
	told->missed = 0;
	told->at = l->now_ns + LANE_FAILURE_NS;
	return e;
}

void lane_env_failed(void *host, const struct spot_failure *f)
{
	struct lane *l = host;
	struct lane_event *e = begin(l, &l->failed, f->name, f->name_bytes);

	if (!e) {
		lane_count(l, SPL_C_FAILURES_UNTOLD, 1);
		return;
	}
	e->kind = LANE_EV_FAILED;
	e->op = f->is_timer;
	e->error = f->kind;
	e->stage = f->stage;
	e->id.len = f->is_timer ? f->id->len : 0; /* what the log may name (S-OBS-6) */
	memcpy(e->id.b, f->id->b, e->id.len);
	lane_event_raise(l, e);
}

void lane_env_overran(void *host, const struct spot_overrun *o)
{
	struct lane *l = host;
	struct lane_event *e = begin(l, &l->overran, o->name, o->name_bytes);

	if (!e)
		return; /* counted by the room */
	e->kind = LANE_EV_OVERRAN;
	e->op = o->is_timer;
	e->stage = o->stage;
	e->deadline = spot_to_ns(&l->clock, o->cycles);
	lane_event_raise(l, e);
}
