/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: creations of handlers on their way to the agent, which asks control. */
#include "dataplane/lane/lane.h"

#include <errno.h>

int lane_env_create(void *host, const struct spot_creation *c)
{
	struct lane *l = host;
	struct lane_event *e = lane_event_new(l);

	if (!e)
		return -EAGAIN;
	e->kind = LANE_EV_CREATE;
	if (c->request.len) {
		void *copy = lanemem_alloc(l->mem, c->request.len);

		if (!copy) {
			lane_event_done(l, e);
			return -ENOBUFS;
		}
		memcpy(copy, c->request.p, c->request.len);
		e->data = copy;
		e->bytes = c->request.len;
		e->buf = lane_buf(copy, LANE_BUF_MEM);
	}
	e->id.len = 0;
	if (c->id.len)
		(void)spl_name_set(&e->id, c->id.p, c->id.len); /* both are legal names */
	(void)spl_name_set(&e->type, c->type.p, c->type.len);
	e->correlation = c->correlation;
	e->deadline = l->now_ns;
	if (c->deadline > l->now)
		e->deadline += spot_to_ns(&l->clock, c->deadline - l->now);
	lane_event_raise(l, e);
	return 0;
}
