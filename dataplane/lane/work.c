/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: work of handlers on its way to the workers (S-WORK). Its result comes back as a
 * message of theirs, which input.c takes.
 */
#include "dataplane/lane/lane.h"

#include <errno.h>

/* Room is taken before anything is handed over, so that what is refused has left no trace. */
static bool take_room(struct lane_work_room *room)
{
	if (atomic_fetch_add_explicit(&room->used, 1, memory_order_relaxed) < room->max)
		return true;
	atomic_fetch_sub_explicit(&room->used, 1, memory_order_relaxed);
	return false;
}

int lane_env_work(void *host, const struct spot_work *w)
{
	struct lane *l = host;
	struct lane_work_room *room = w->cpu ? &l->sh->cpu_room : &l->sh->io_room;
	struct lane_message *m;
	void *item;

	if (!take_room(room))
		return -EAGAIN;
	m = lane_message_new(l, (uint32_t)sizeof(struct lane_work) + w->input_bytes);
	if (m) {
		m->kind = LANE_KIND_WORK;
		m->correlation = w->correlation;
		m->deadline = l->now_ns;
		if (w->deadline > l->now)
			m->deadline += spot_to_ns(&l->clock, w->deadline - l->now);
		*(struct lane_work *)(void *)m->data =
			(struct lane_work){.cpu = w->cpu, .io = w->io, .stage = w->stage};
		if (w->input_bytes)
			memcpy(m->data + sizeof(struct lane_work), w->input, w->input_bytes);
		item = hop_tag(m, HOP_MESSAGE);
		if (hop_push(&l->sh->hop, l->index, HOP_WORKERS(l->sh->lanes), &item, 1) == 1)
			return 0;
		lanemem_free(l->mem, m);
	}
	atomic_fetch_sub_explicit(&room->used, 1, memory_order_relaxed);
	return -ENOBUFS;
}
