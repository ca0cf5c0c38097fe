/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Spots are, as far as this client knows (S-ADDR-1): a bounded cache of Ready routes by key,
 * and for each Spot that is being asked for the calls that wait for the answer, in their order.
 * Only a Ready route is kept, for as long as its answer allowed. Pure; the client's thread.
 */
#ifndef SPL_CLIENT_ROUTES_H
#define SPL_CLIENT_ROUTES_H

#include "client/calls.h"

struct route {
	struct spl_key key;
	struct route *next;	   /* of its bucket */
	TAILQ_ENTRY(route) age;	   /* least recently used first; asked for: waits for its turn */
	struct call_queue waiting; /* calls in the order in which they were begun */
	bool is_asked;		   /* somebody waits for the answer */
	struct buffer *question;   /* owns: RESOLVE message that waits for its turn */
	uint64_t resolve;	   /* the RESOLVE call that is under way; 0 = none */
	uint64_t asked_ns;	   /* when it was last asked for */
	uint64_t until_ns;	   /* usable before this; 0 = not known */
	uint64_t generation;	   /* of the object, when it was resolved */
	uint16_t lane;
};

TAILQ_HEAD(route_queue, route);

struct routes {
	struct route **bucket;
	uint32_t mask, max, used;
	uint64_t secret;
	struct route_queue age; /* those that are not asked for */
};

/* 0, -EINVAL (max 0) or -ENOMEM. `secret` spreads keys over the buckets. */
int routes_init(struct routes *r, uint32_t max, uint64_t secret);
/* Frees all. No call may wait. */
void routes_fini(struct routes *r);

/* The entry of a key; NULL when there is none. */
struct route *routes_find(const struct routes *r, const struct spl_key *key);

/* The entry of a key, a new one when there is none: the oldest that nobody waits for makes room.
 * NULL when there is no room or no memory. */
struct route *routes_get(struct routes *r, const struct spl_key *key);

/* True while the entry may be used at `now_ns`; it then becomes the most recently used. */
bool routes_usable(struct routes *r, struct route *route, uint64_t now_ns);

/* The entry is asked for: it cannot be pushed out until routes_answer(). */
void routes_ask(struct routes *r, struct route *route);

/* The question ended: until_ns 0 = nothing to keep. The caller moves the waiting calls first. */
void routes_answer(struct routes *r, struct route *route, uint64_t until_ns, uint16_t lane,
		   uint64_t generation);

/* Forgets where the Spot is (S-ADDR-4). A question under way goes on. NULL is fine. */
void routes_drop(struct routes *r, struct route *route);

/* Forgets all that nobody waits for. */
void routes_drop_all(struct routes *r);

#endif
