/* SPDX-License-Identifier: BSD-3-Clause */
/* The call table: slots in one array, handles of a serial number and a slot, timers in a binary
 * heap. Runs on the client's thread; owns the slots and, while a call is in it, its buffers.
 */
#include "client/calls.h"

#include <errno.h>
#include <string.h>

#define SLOT_BITS 20

int calls_init(struct calls *c, uint32_t max)
{
	memset(c, 0, sizeof(*c));
	TAILQ_INIT(&c->free);
	TAILQ_INIT(&c->ended);
	if (max == 0 || max > CALLS_MAX)
		return -EINVAL;
	c->slot = calloc(max, sizeof(*c->slot));
	c->heap = calloc((size_t)max + 1, sizeof(struct call *));
	if (!c->slot || !c->heap) {
		calls_fini(c);
		return -ENOMEM;
	}
	c->max = max;
	c->serial = 1;
	for (uint32_t i = 0; i < max; i++)
		TAILQ_INSERT_TAIL(&c->free, &c->slot[i], link);
	return 0;
}

void calls_fini(struct calls *c)
{
	for (uint32_t i = 0; i < c->max; i++) {
		buffer_free(c->slot[i].out);
		buffer_free(c->slot[i].answer);
	}
	free(c->slot);
	free(c->heap);
	memset(c, 0, sizeof(*c));
}

/* Puts `call` at `at`, and what stands in its way where it belongs: towards the root. */
static void heap_up(struct calls *c, struct call *call, uint32_t at)
{
	while (at > 1 && c->heap[at / 2]->due_ns > call->due_ns) {
		c->heap[at] = c->heap[at / 2];
		c->heap[at]->heap = at;
		at /= 2;
	}
	c->heap[at] = call;
	call->heap = at;
}

static void heap_down(struct calls *c, struct call *call, uint32_t at)
{
	for (uint32_t next; (next = at * 2) <= c->heap_len; at = next) {
		if (next < c->heap_len && c->heap[next + 1]->due_ns < c->heap[next]->due_ns)
			next++;
		if (c->heap[next]->due_ns >= call->due_ns)
			break;
		c->heap[at] = c->heap[next];
		c->heap[at]->heap = at;
	}
	c->heap[at] = call;
	call->heap = at;
}

static void heap_remove(struct calls *c, struct call *call)
{
	uint32_t at = call->heap;
	struct call *last;

	if (at == 0)
		return;
	call->heap = 0;
	last = c->heap[c->heap_len--];
	if (last == call)
		return;
	if (at > 1 && c->heap[at / 2]->due_ns > last->due_ns)
		heap_up(c, last, at);
	else
		heap_down(c, last, at);
}

void calls_due(struct calls *c, struct call *call, uint64_t due_ns)
{
	heap_remove(c, call);
	call->due_ns = due_ns;
	heap_up(c, call, ++c->heap_len);
}

struct call *calls_add(struct calls *c, enum call_kind kind, uint64_t due_ns)
{
	struct call *call = TAILQ_FIRST(&c->free);

	if (!call)
		return NULL;
	TAILQ_REMOVE(&c->free, call, link);
	memset(call, 0, sizeof(*call));
	call->id = c->serial++ << SLOT_BITS | (uint64_t)(call - c->slot);
	call->kind = (uint8_t)kind;
	call->state = CALL_NEW;
	calls_due(c, call, due_ns);
	c->used++;
	return call;
}

struct call *calls_known(const struct calls *c, uint64_t id)
{
	uint64_t slot = id & (CALLS_MAX - 1);

	return id && slot < c->max && c->slot[slot].id == id ? &c->slot[slot] : NULL;
}

struct call *calls_find(const struct calls *c, uint64_t id)
{
	struct call *call = calls_known(c, id);

	return call && call->state != CALL_ENDED ? call : NULL;
}

void calls_end(struct calls *c, struct call *call, int result, struct buffer *answer)
{
	heap_remove(c, call);
	buffer_free(call->out);
	call->out = NULL;
	call->route = NULL;
	call->state = CALL_ENDED;
	call->result = result;
	call->answer = answer;
	TAILQ_INSERT_TAIL(&c->ended, call, link);
}

static void make_free(struct calls *c, struct call *call)
{
	call->id = 0;
	call->state = CALL_FREE;
	TAILQ_INSERT_HEAD(&c->free, call, link);
	c->used--;
}

void calls_drop(struct calls *c, struct call *call)
{
	heap_remove(c, call);
	buffer_free(call->out);
	call->out = NULL;
	make_free(c, call);
}

struct call *calls_expired(const struct calls *c, uint64_t now_ns)
{
	return c->heap_len && c->heap[1]->due_ns <= now_ns ? c->heap[1] : NULL;
}

uint64_t calls_next(const struct calls *c)
{
	return c->heap_len ? c->heap[1]->due_ns : UINT64_MAX;
}

bool calls_take_ended(struct calls *c, struct call *out)
{
	struct call *call = TAILQ_FIRST(&c->ended);

	if (!call)
		return false;
	TAILQ_REMOVE(&c->ended, call, link);
	*out = *call;
	call->answer = NULL;
	make_free(c, call);
	return true;
}
