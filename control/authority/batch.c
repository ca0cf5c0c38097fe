/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers what waits for the store into one batch: first everything that only reads, then all
 * transactions side by side, so that they share one durable commit. One batch is out at a time;
 * what comes meanwhile waits for the next. Owns the requests and the memory they point to. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (256 * 1024)

void auth_step_init(struct auth_step *s, int (*build)(struct auth *, struct auth_step *),
		    void (*done)(struct auth *, struct auth_step *, struct store_req *, size_t))
{
	s->build = build;
	s->done = done;
}

void auth_step_queue(struct auth *a, struct auth_step *s)
{
	if (!s->queued)
		TAILQ_INSERT_TAIL(&a->steps, s, link);
	s->queued = true;
}

void auth_step_drop(struct auth *a, struct auth_step *s)
{
	if (s->queued)
		TAILQ_REMOVE(&a->steps, s, link);
	s->queued = false;
}

void *auth_batch_mem(struct auth *a, size_t n)
{
	struct auth_chunk *c = a->batch.chunks;
	size_t room = n > CHUNK_BYTES ? n : CHUNK_BYTES;

	n = (n + 15) & ~(size_t)15;
	if (!c || c->room - c->used < n) {
		room = (room + 15) & ~(size_t)15;
		c = malloc(sizeof(*c) + room + 16);
		if (!c)
			return NULL;
		c->next = a->batch.chunks;
		c->used = 0;
		c->room = room;
		a->batch.chunks = c;
	}
	c->used += n;
	return (void *)(((uintptr_t)c->b + 15) / 16 * 16 + (c->used - n));
}

struct store_bytes auth_batch_copy(struct auth *a, struct store_bytes from)
{
	void *p = auth_batch_mem(a, from.n ? from.n : 1);

	if (!p)
		return (struct store_bytes){NULL, 0};
	if (from.n)
		memcpy(p, from.p, from.n);
	return (struct store_bytes){p, from.n};
}

struct store_req *auth_batch_req(struct auth *a, enum store_op op)
{
	struct store_batch *b = &a->batch.b;
	struct store_req *r;

	if (b->n == AUTH_BATCH_REQS)
		return NULL;
	r = &b->reqs[b->n++];
	memset(r, 0, sizeof(*r));
	r->op = op;
	return r;
}

int auth_batch_read(struct auth *a, const char *key, uint32_t n)
{
	struct store_bytes k = auth_batch_copy(a, (struct store_bytes){key, n});
	struct store_req *r = k.p ? auth_batch_req(a, STORE_READ) : NULL;

	if (!r)
		return k.p ? -ENOSPC : -ENOMEM;
	r->u.read.key = k;
	return 0;
}

struct store_txn *auth_batch_txn(struct auth *a, size_t n_conds, size_t n_muts,
				 struct store_cond **c, struct store_mut **m)
{
	struct store_req *r;

	*c = auth_batch_mem(a, (n_conds ? n_conds : 1) * sizeof(**c));
	*m = auth_batch_mem(a, n_muts * sizeof(**m));
	if (!*c || !*m)
		return NULL;
	memset(*m, 0, n_muts * sizeof(**m));
	r = auth_batch_req(a, STORE_TXN);
	if (!r)
		return NULL;
	r->u.txn =
		(struct store_txn){.conds = *c, .n_conds = n_conds, .muts = *m, .n_muts = n_muts};
	return &r->u.txn;
}

/* All but one chunk go; that one serves the next batch. */
static void reset_memory(struct auth_batch *b)
{
	struct auth_chunk *c;

	while (b->chunks && b->chunks->next) {
		c = b->chunks;
		b->chunks = c->next;
		free(c);
	}
	if (b->chunks)
		b->chunks->used = 0;
}

static void build_steps(struct auth *a, bool writers)
{
	struct auth_batch *b = &a->batch;
	struct auth_step *s, *next;

	for (s = TAILQ_FIRST(&a->steps); s && b->n_slots < AUTH_BATCH_REQS; s = next) {
		size_t first = b->b.n;

		next = TAILQ_NEXT(s, link);
		if (s->writes != writers)
			continue;
		if (s->build(a, s)) {
			b->b.n = first;
			return; /* no room: this one is first in the next batch */
		}
		auth_step_drop(a, s);
		if (b->b.n == first)
			continue;
		s->in_flight = true;
		b->slots[b->n_slots++] = (struct auth_slot){s, first, b->b.n - first};
	}
}

static void fill_store(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->u.store = &a->batch.b;
}

void auth_batch_pump(struct auth *a)
{
	struct auth_batch *b = &a->batch;

	if (b->out || TAILQ_EMPTY(&a->steps))
		return;
	build_steps(a, false);
	build_steps(a, true);
	if (b->b.n == 0)
		return;
	b->out = true;
	b->fx.kind = AUTH_FX_STORE;
	b->fx.fill = fill_store;
	a->count.batches++;
	auth_fx_queue(a, &b->fx);
}

/* The store has a text for what it refuses itself; what its frame refuses has a number only. */
static void name_error(struct store_batch *b)
{
	for (size_t i = 0; i < b->n && !b->text[0]; i++)
		if (b->reqs[i].rc < 0)
			snprintf(b->text, sizeof(b->text), "store: %s", strerror(-b->reqs[i].rc));
}

void auth_store_done(struct auth *a, struct store_batch *done, int64_t now)
{
	struct auth_batch *b = &a->batch;

	auth_enter(a, now);
	name_error(done);
	for (size_t i = 0; i < b->n_slots; i++) {
		struct auth_slot *s = &b->slots[i];

		s->step->in_flight = false;
		s->step->done(a, s->step, done->reqs + s->first, s->n);
	}
	b->n_slots = 0;
	store_batch_clear(done);
	reset_memory(b);
	b->out = false;
	auth_pump(a);
}

void auth_batch_fini(struct auth *a)
{
	struct auth_batch *b = &a->batch;

	if (b->b.reqs)
		store_batch_clear(&b->b);
	reset_memory(b);
	free(b->chunks);
	free(b->b.reqs);
	free(b->slots);
}
