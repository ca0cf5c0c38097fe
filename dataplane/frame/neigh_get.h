/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what lanes see of the neighbour table, and how they read it (protocol: neigh.h). */
#ifndef SPL_FRAME_NEIGH_GET_H
#define SPL_FRAME_NEIGH_GET_H

#include "dataplane/frame/neigh.h"

#include <stdatomic.h>
#include <string.h>

struct neigh_slot {
	_Atomic uint32_t seq; /* w: agent; odd while it writes */
	_Atomic uint32_t ip;  /* w: agent; 0: not resolved */
	_Atomic uint64_t mac; /* w: agent; first octet lowest */
};

struct neigh_pub {
	uint64_t key[2]; /* const after start, as all pointers */
	uint32_t size;	 /* a power of two; slots: size + NEIGH_WINDOW */
	struct neigh_slot *slots;
	_Atomic uint8_t *used; /* w: lanes set, agent clears; apart, so that slots stay shared */
};

/* The first slot of the window of ip. */
static inline uint32_t neigh_slot(const struct neigh_pub *pub, uint32_t ip)
{
	uint64_t x = (ip ^ pub->key[0]) * pub->key[1];

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(x >> 32) & (pub->size - 1);
}

/* True and the MAC when ip is resolved; marks it as used. At most NEIGH_WINDOW slots are read. */
static inline bool neigh_get(const struct neigh_pub *pub, uint32_t ip, uint8_t mac[6])
{
	uint32_t first = neigh_slot(pub, ip), seq;
	struct neigh_slot *s;
	uint64_t word;

	for (uint32_t i = first; i < first + NEIGH_WINDOW; i++) {
		s = &pub->slots[i];
		if (atomic_load_explicit(&s->ip, memory_order_relaxed) != ip)
			continue;
		/* acquire, three times: partner is publish() in neigh.c; order of the loads matters
		 */
		seq = atomic_load_explicit(&s->seq, memory_order_acquire);
		if (atomic_load_explicit(&s->ip, memory_order_acquire) != ip)
			continue;
		word = atomic_load_explicit(&s->mac, memory_order_acquire);
		if ((seq & 1) || atomic_load_explicit(&s->seq, memory_order_relaxed) != seq)
			return false;
		memcpy(mac, &word, 6);
		if (!atomic_load_explicit(&pub->used[i], memory_order_relaxed))
			atomic_store_explicit(&pub->used[i], 1, memory_order_relaxed);
		return ip != 0;
	}
	return false;
}

#endif
