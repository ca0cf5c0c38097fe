/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the ready set, and the queues that feed it. Inside the room only.
 */
#ifndef SPL_DATAPLANE_SPOT_QUEUE_H
#define SPL_DATAPLANE_SPOT_QUEUE_H

#include "dataplane/spot/totals.h"

/* Ready set: a FIFO of gates, each at most once. */
static inline void spot_ready_add(struct spot_lane *l, struct spot *s)
{
	uint32_t i = spot_index(l, s);

	if (s->gate.flags & SPOT_F_READY)
		return;
	s->gate.flags |= SPOT_F_READY;
	s->gate.ready_next = 0;
	if (l->ready_tail)
		spot_at(l, l->ready_tail)->gate.ready_next = i;
	else
		l->ready_head = i;
	l->ready_tail = i;
}

static inline struct spot *spot_ready_take(struct spot_lane *l)
{
	struct spot *s = spot_at(l, l->ready_head);

	l->ready_head = s->gate.ready_next;
	if (!l->ready_head)
		l->ready_tail = 0;
	s->gate.flags &= (uint8_t)~SPOT_F_READY;
	return s;
}

/* To the tail of the application queue: nothing is ever put before it (S-TURN-2). */
static inline void spot_app_append(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	uint32_t i = spot_rec_index(l, r);

	r->next = 0;
	if (s->app.head)
		l->recs[s->app.tail].next = i;
	else
		s->app.head = i;
	s->app.tail = i;
	/* While a suspended turn holds the gate its queue only grows: its end looks again. */
	if (!(s->gate.flags & SPOT_F_HELD))
		spot_ready_add(l, s);
}

/* What a message costs its queue (S-LIM-2). */
static inline uint64_t spot_cost_of(const struct spot_rec *r)
{
	return (uint64_t)r->msg.payload_bytes + r->msg.metadata_bytes + SPOT_RECORD_COST;
}

/* Room on both axes (S-LIM-1). */
static inline bool spot_has_room(const struct spot_kind *kind, const struct spot *s, uint64_t cost)
{
	return s->app.count < kind->queue_count && s->app.bytes + cost <= kind->queue_bytes;
}

/* A message for which there is room. */
static inline void spot_put(struct spot_lane *l, struct spot *s, struct spot_rec *r, uint32_t cost)
{
	spot_app_reserve(s, spot_kind_of(l, s), cost, r->msg.payload_bytes);
	r->cost = cost;
	r->flags = REC_F_WAITS;
	spot_app_append(l, s, r);
}

/* To the tail of what waits for a gate of its own; a turn that holds the Spot's is no hindrance. */
static inline void spot_own_append(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	struct spot_cold *cold = spot_cold_of(s);
	uint32_t i = spot_rec_index(l, r);

	r->next = 0;
	if (cold->own_head)
		l->recs[cold->own_tail].next = i;
	else
		cold->own_head = i;
	cold->own_tail = i;
	spot_ready_add(l, s);
}

#endif
