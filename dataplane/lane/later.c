/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: messages of this lane that wait for the ring to another one, in their order. */
#include "dataplane/lane/lane.h"

#include <errno.h>

static bool push(struct lane *l, struct lane_message *m, unsigned to)
{
	void *item = hop_tag(m, HOP_MESSAGE);

	return hop_push(&l->sh->hop, l->index, to, &item, 1) == 1;
}

int lane_push(struct lane *l, struct lane_message *m, unsigned to, uint64_t until_ns)
{
	struct lane_later *q = &l->later[to];
	bool reply = m->kind == SPL_MSG_REPLY;

	if (!q->head && push(l, m, to))
		return 0;
	if (!reply && l->n_later >= l->later_max)
		return -ETIMEDOUT;
	l->n_later += !reply;
	if (reply)
		lane_reply_waits(l, 1);
	m->until_ns = until_ns;
	m->next = NULL;
	if (q->head)
		q->tail->next = m;
	else
		q->head = m;
	q->tail = m;
	return 0;
}

/* Found no room in time: it never leaves this lane. A request's call has its own deadline. */
static void give_up(struct lane *l, struct lane_message *m)
{
	struct spot_reply late = {.correlation = m->correlation,
				  .kind = SPL_E_DEADLINE_EXCEEDED,
				  .origin = SPOT_FROM_LANE};

	lane_count(l, SPL_C_SENDS_EXPIRED, 1);
	if (m->correlation)
		spot_reply_in(l->spots, &late);
	lanemem_free(l->mem, m);
}

static void retry(struct lane *l, unsigned to)
{
	struct lane_later *q = &l->later[to];

	for (unsigned n = 0; q->head && n < LANE_POP; n++) {
		struct lane_message *m = q->head, *next = m->next;
		bool reply = m->kind == SPL_MSG_REPLY;

		if (!reply && l->now_ns >= m->until_ns)
			give_up(l, m);
		else if (!push(l, m, to))
			return;
		l->n_later -= !reply;
		if (reply)
			lane_reply_waits(l, -1);
		q->head = next;
	}
}

void lane_later_retry(struct lane *l)
{
	for (unsigned to = 0; to < l->sh->lanes; to++)
		if (l->later[to].head)
			retry(l, to);
}

bool lane_later_any(const struct lane *l)
{
	for (unsigned to = 0; to < l->sh->lanes; to++)
		if (l->later[to].head)
			return true;
	return false;
}
