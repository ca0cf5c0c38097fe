/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what waits for the ring to another thread: messages of this lane, each line in its
 * order, and messages that go back to whose memory they are. One full ring holds up no other.
 */
#include "dataplane/lane/lane.h"

#include <errno.h>

static bool push(struct lane *l, struct lane_message *m, unsigned to, enum hop_kind kind)
{
	void *item = hop_tag(m, kind);

	return hop_push(&l->sh->hop, l->index, to, &item, 1) == 1;
}

int lane_push(struct lane *l, struct lane_message *m, unsigned to, uint64_t until_ns)
{
	struct lane_later *q = &l->later[to];
	bool reply = m->kind == SPL_MSG_REPLY;

	if (!q->head && push(l, m, to, HOP_MESSAGE))
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

void lane_push_back(struct lane *l, struct lane_message *m)
{
	struct lane_later *q = &l->later[m->lane];

	if (!q->back_head && push(l, m, m->lane, HOP_RETURN))
		return;
	m->next = NULL;
	if (q->back_head)
		q->back_tail->next = m;
	else
		q->back_head = m;
	q->back_tail = m;
}

/* Found no room in time: it never leaves this lane. A request's call has its own deadline. */
static void give_up(struct lane *l, struct lane_message *m)
{
	struct spot_reply late = {.correlation = m->correlation,
				  .kind = SPL_E_DEADLINE_EXCEEDED,
				  .origin = SPOT_FROM_LANE};

	lane_count(l, SPL_C_SENDS_EXPIRED, 1);
	l->n_later--;
	if (m->correlation)
		spot_reply_in(l->spots, &late);
	lane_message_free(l, m);
}

static bool is_late(const struct lane *l, const struct lane_message *m)
{
	return m->kind != SPL_MSG_REPLY && l->now_ns >= m->until_ns;
}

static void retry(struct lane *l, struct lane_later *q, unsigned to)
{
	for (unsigned n = 0; q->head && n < LANE_POP; n++) {
		struct lane_message *m = q->head, *next = m->next;
		bool reply = m->kind == SPL_MSG_REPLY;

		if (is_late(l, m))
			give_up(l, m);
		else if (!push(l, m, to, HOP_MESSAGE))
			return;
		else if (reply)
			lane_reply_waits(l, -1);
		else
			l->n_later--;
		q->head = next;
		if (q->looked == m)
			q->looked = NULL;
	}
}

/* Times are of any length: what is over behind one that is not ends too, so many a pass. */
static void look_behind(struct lane *l, struct lane_later *q)
{
	struct lane_message *at = q->looked ? q->looked : q->head, *m;

	for (unsigned n = 0; at && n < LANE_POP; n++) {
		m = at->next;
		if (m && is_late(l, m)) {
			at->next = m->next;
			if (!m->next)
				q->tail = at;
			give_up(l, m);
		} else {
			at = m;
		}
	}
	q->looked = at;
}

static void retry_back(struct lane *l, struct lane_later *q, unsigned to)
{
	for (unsigned n = 0; q->back_head && n < LANE_POP; n++) {
		struct lane_message *next = q->back_head->next;

		if (!push(l, q->back_head, to, HOP_RETURN))
			return;
		q->back_head = next;
	}
}

void lane_later_retry(struct lane *l)
{
	for (unsigned to = 0; to < l->sh->hop.users; to++) {
		struct lane_later *q = &l->later[to];

		if (q->back_head)
			retry_back(l, q, to);
		if (q->head) {
			retry(l, q, to);
			look_behind(l, q);
		}
	}
}

bool lane_later_any(const struct lane *l)
{
	for (unsigned to = 0; to < l->sh->hop.users; to++)
		if (l->later[to].head || l->later[to].back_head)
			return true;
	return false;
}
