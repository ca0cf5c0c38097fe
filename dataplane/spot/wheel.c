/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see wheel.h. */
#include "dataplane/spot/wheel.h"

#include <string.h>

static struct wheel_node *node(const struct wheel *w, uint32_t i)
{
	return (struct wheel_node *)(void *)(w->base + (uint64_t)i * w->stride);
}

void wheel_init(struct wheel *w, void *base, uint32_t stride, uint64_t hz, uint64_t now)
{
	memset(w, 0, sizeof(*w));
	w->base = base;
	w->stride = stride;
	while ((uint64_t)2 << w->shift <= hz / 1000)
		w->shift++;
	w->tick = now >> w->shift;
}

static void link_tail(struct wheel *w, uint32_t i)
{
	struct wheel_node *n = node(w, i);
	uint32_t s = (uint32_t)(n->due - 1) % WHEEL_SLOTS;

	n->next = 0;
	n->prev = w->slot[s].tail;
	if (n->prev)
		node(w, n->prev)->next = i;
	else
		w->slot[s].head = i;
	w->slot[s].tail = i;
	w->slot[s].count++;
}

static void unlink_node(struct wheel *w, uint32_t i)
{
	struct wheel_node *n = node(w, i);
	uint32_t s = (uint32_t)(n->due - 1) % WHEEL_SLOTS;

	if (n->prev)
		node(w, n->prev)->next = n->next;
	else
		w->slot[s].head = n->next;
	if (n->next)
		node(w, n->next)->prev = n->prev;
	else
		w->slot[s].tail = n->prev;
	w->slot[s].count--;
}

void wheel_add(struct wheel *w, uint32_t i, uint64_t deadline)
{
	uint64_t tick = deadline >> w->shift;

	/* The first tick whose start lies behind the deadline; never one that is being looked at,
	 * which would have to wait for the next round. */
	tick++;
	if (tick < w->tick + w->begun)
		tick = w->tick + w->begun;
	node(w, i)->due = tick + 1;
	link_tail(w, i);
	w->armed++;
}

void wheel_del(struct wheel *w, uint32_t i)
{
	if (!node(w, i)->due)
		return;
	unlink_node(w, i);
	node(w, i)->due = 0;
	w->armed--;
}

unsigned wheel_advance(struct wheel *w, uint64_t now, uint32_t *out, unsigned max)
{
	uint64_t until = now >> w->shift;
	unsigned n = 0, looked = 0, slots = 0;

	if (w->armed == 0) {
		if (until >= w->tick)
			w->tick = until;
		w->begun = false;
		return 0;
	}
	while (w->tick <= until) {
		uint32_t s = (uint32_t)w->tick % WHEEL_SLOTS;

		if (!w->begun) {
			if (slots++ == WHEEL_STEP)
				break;
			w->left = w->slot[s].count;
			w->begun = true;
		}
		while (w->left && w->slot[s].head) {
			uint32_t i = w->slot[s].head;

			if (n == max || looked == 4 * max)
				return n;
			looked++;
			w->left--;
			unlink_node(w, i);
			if (node(w, i)->due - 1 > w->tick) {
				link_tail(w, i); /* of a later round */
				continue;
			}
			node(w, i)->due = 0;
			w->armed--;
			out[n++] = i;
		}
		w->begun = false;
		w->tick++;
	}
	return n;
}
