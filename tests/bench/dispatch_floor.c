/* SPDX-License-Identifier: BSD-3-Clause */
/* See dispatch_floor.h. */
#include "tests/bench/dispatch_floor.h"

#include "dataplane/port/rx.h"

#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BURST	32u
#define RECORDS (BURST * 16u)

struct floor_slot {
	uint64_t key[2];
	struct floor_object *object;
	uint64_t spare;
};

struct floor_object {
	uint64_t key[2];
	uint32_t head, tail, count, spare;
	int (*fn)(void *state, const uint8_t *payload, uint32_t bytes, uint64_t *handled);
	uint64_t state;
	uint64_t more[2];
} __attribute__((aligned(64)));

struct floor_record {
	uint32_t next, bytes;
	const uint8_t *payload;
};

static int add(void *state, const uint8_t *payload, uint32_t bytes, uint64_t *handled)
{
	*(uint64_t *)state += bytes;
	(*handled)++;
	return 0;
}

static void *region(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

struct dispatch_floor *dispatch_floor_new(struct t_node *n, const struct spl_key *keys,
					  uint32_t spots)
{
	struct dispatch_floor *f = calloc(1, sizeof(*f));
	uint32_t slots = 16;

	while (slots < 2 * spots)
		slots *= 2;
	f->node = n;
	f->mask = slots - 1;
	f->slot_bytes = slots * sizeof(struct floor_slot);
	f->object_bytes = spots * sizeof(struct floor_object);
	f->slots = region(f->slot_bytes);
	f->objects = region(f->object_bytes);
	for (uint32_t i = 0; i < spots; i++) {
		struct floor_object *o = &f->objects[i];
		uint32_t at;

		memcpy(o->key, keys[i].b, sizeof(o->key));
		o->fn = add;
		for (at = (uint32_t)o->key[0] & f->mask; f->slots[at].object;)
			at = (at + 1) & f->mask;
		f->slots[at].object = o;
		memcpy(f->slots[at].key, o->key, sizeof(o->key));
	}
	return f;
}

void dispatch_floor_free(struct dispatch_floor *f)
{
	munmap(f->slots, f->slot_bytes);
	munmap(f->objects, f->object_bytes);
	free(f);
}

static inline struct floor_object *find(const struct dispatch_floor *f, const uint64_t key[2])
{
	uint32_t at = (uint32_t)key[0] & f->mask;

	while (f->slots[at].key[0] != key[0] || f->slots[at].key[1] != key[1])
		at = (at + 1) & f->mask;
	return f->slots[at].object;
}

/* Looks up and queues `n` messages; objects that became ready are appended to `ready`. */
static unsigned enqueue(struct dispatch_floor *f, struct floor_record *rec, uint32_t first,
			const uint8_t *const *message, uint32_t bytes, unsigned n,
			struct floor_object **ready)
{
	struct floor_object *o[BURST];
	uint64_t key[BURST][2];
	unsigned made = 0;

	for (unsigned i = 0; i < n; i++) {
		memcpy(key[i], message[i] + 16, sizeof(key[i]));
		__builtin_prefetch(&f->slots[(uint32_t)key[i][0] & f->mask]);
	}
	for (unsigned i = 0; i < n; i++) {
		o[i] = find(f, key[i]);
		__builtin_prefetch(o[i], 1);
	}
	for (unsigned i = 0; i < n; i++) {
		struct floor_record *r = &rec[first + i];

		r->next = 0;
		r->bytes = bytes;
		r->payload = message[i] + 48;
		if (o[i]->head) {
			rec[o[i]->tail].next = first + i;
		} else {
			o[i]->head = first + i;
			ready[made++] = o[i];
		}
		o[i]->tail = first + i;
		o[i]->count++;
	}
	return made;
}

static void serve(struct dispatch_floor *f, const struct floor_record *rec, struct floor_object *o)
{
	f->clock_sum += spot_cycles();
	while (o->head) {
		const struct floor_record *r = &rec[o->head];

		o->head = r->next;
		o->fn(&o->state, r->payload, r->bytes, &f->handled);
		o->count--;
	}
}

/* Where the wire header of each frame is; NULL: it is none for the lane. */
static void parse(const struct dispatch_floor *f, struct rte_mbuf **m, const uint8_t **at,
		  unsigned n)
{
	struct frame_view v[BURST];

	rx_parse(&f->node->port.local, m, v, n, f->node->sh.pool);
	for (unsigned i = 0; i < n; i++)
		at[i] = v[i].kind == FRAME_DATA ? frame_payload(&v[i]) : NULL;
}

static void parse_short(const struct dispatch_floor *f, struct rte_mbuf *const *m,
			const uint8_t **at, unsigned n)
{
	const uint64_t good = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	const struct frame_local *l = &f->node->port.local;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], const uint8_t *));
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *d = rte_pktmbuf_mtod(m[i], const uint8_t *);
		bool ok = m[i]->nb_segs == 1 && (m[i]->ol_flags & good) == good &&
			  m[i]->pkt_len >= FRAME_HDR_BYTES &&
			  frame_expected(l, d, m[i]->pkt_len, l->udp_base) > 0;

		at[i] = ok ? d + FRAME_HDR_BYTES : NULL;
	}
}

void dispatch_floor_pass(struct dispatch_floor *f, struct dispatch_rx *rx)
{
	static struct floor_record rec[RECORDS + 1];
	struct floor_object *ready[RECORDS];
	struct rte_mbuf *m[BURST];
	const uint8_t *at[BURST], *message[BURST] = {NULL};
	unsigned n = dispatch_rx_burst(rx, m, BURST), k = 0, made = 0;
	uint32_t next = 1, bytes = rx->message_bytes - 48;

	if (f->is_short)
		parse_short(f, m, at, n);
	else
		parse(f, m, at, n);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = at[i];

		if (!p)
			continue;
		p += WIRE_HDR_BYTES;
		for (uint32_t j = 0; j < rx->per_frame; j++, p += rx->record_bytes) {
			message[k++] = p + WIRE_MESSAGE_BYTES;
			if (k < BURST)
				continue;
			made += enqueue(f, rec, next, message, bytes, k, ready + made);
			next += k;
			k = 0;
		}
	}
	made += enqueue(f, rec, next, message, bytes, k, ready + made);
	for (unsigned i = 0; i < made; i++)
		serve(f, rec, ready[i]);
	for (unsigned i = 0; i < n; i++)
		rte_pktmbuf_free(m[i]);
}
