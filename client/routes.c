/* SPDX-License-Identifier: BSD-3-Clause */
/* The route cache: chained buckets, least recently used entry out first. Runs on the client's
 * thread; owns the entries, not the calls that wait in them.
 */
#include "client/routes.h"

#include <errno.h>
#include <string.h>

int routes_init(struct routes *r, uint32_t max, uint64_t secret)
{
	uint32_t buckets = 16;

	memset(r, 0, sizeof(*r));
	TAILQ_INIT(&r->age);
	if (max == 0 || max > 1u << 24)
		return -EINVAL;
	while (buckets < max)
		buckets *= 2;
	r->bucket = calloc(buckets, sizeof(struct route *));
	if (!r->bucket)
		return -ENOMEM;
	r->mask = buckets - 1;
	r->max = max;
	r->secret = secret | 1;
	return 0;
}

void routes_fini(struct routes *r)
{
	for (uint32_t i = 0; r->bucket && i <= r->mask; i++) {
		for (struct route *e = r->bucket[i], *next; e; e = next) {
			next = e->next;
			buffer_free(e->question);
			free(e);
		}
	}
	free(r->bucket);
	memset(r, 0, sizeof(*r));
}

static struct route **bucket_of(const struct routes *r, const struct spl_key *key)
{
	uint64_t half[2];

	memcpy(half, key->b, sizeof(half));
	half[0] = (half[0] ^ r->secret) * 0x9e3779b97f4a7c15ULL;
	half[0] = (half[0] ^ half[0] >> 32 ^ half[1]) * (r->secret | 1);
	return &r->bucket[(half[0] >> 32) & r->mask];
}

struct route *routes_find(const struct routes *r, const struct spl_key *key)
{
	struct route *e = *bucket_of(r, key);

	while (e && !spl_key_equal(&e->key, key))
		e = e->next;
	return e;
}

static void remove_entry(struct routes *r, struct route *route)
{
	struct route **at = bucket_of(r, &route->key);

	while (*at != route)
		at = &(*at)->next;
	*at = route->next;
	TAILQ_REMOVE(&r->age, route, age);
	free(route);
	r->used--;
}

struct route *routes_get(struct routes *r, const struct spl_key *key)
{
	struct route *e = routes_find(r, key);
	struct route **at;

	if (e)
		return e;
	if (r->used == r->max) {
		if (TAILQ_EMPTY(&r->age))
			return NULL;
		remove_entry(r, TAILQ_FIRST(&r->age));
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key = *key;
	TAILQ_INIT(&e->waiting);
	at = bucket_of(r, key);
	e->next = *at;
	*at = e;
	TAILQ_INSERT_TAIL(&r->age, e, age);
	r->used++;
	return e;
}

bool routes_usable(struct routes *r, struct route *route, uint64_t now_ns)
{
	if (route->until_ns <= now_ns)
		return false;
	if (!route->is_asked) {
		TAILQ_REMOVE(&r->age, route, age);
		TAILQ_INSERT_TAIL(&r->age, route, age);
	}
	return true;
}

void routes_ask(struct routes *r, struct route *route)
{
	if (!route->is_asked)
		TAILQ_REMOVE(&r->age, route, age);
	route->is_asked = true;
}

void routes_answer(struct routes *r, struct route *route, uint64_t until_ns, uint16_t lane,
		   uint64_t generation)
{
	if (route->is_asked)
		TAILQ_INSERT_TAIL(&r->age, route, age);
	route->is_asked = false;
	route->resolve = 0;
	buffer_free(route->question);
	route->question = NULL;
	route->lane = lane;
	route->generation = generation;
	route->until_ns = until_ns;
	routes_drop(r, until_ns ? NULL : route);
}

void routes_drop(struct routes *r, struct route *route)
{
	if (!route)
		return;
	route->until_ns = 0;
	if (!route->is_asked && TAILQ_EMPTY(&route->waiting))
		remove_entry(r, route);
}

void routes_drop_all(struct routes *r)
{
	struct route *e, *next;

	for (e = TAILQ_FIRST(&r->age); e; e = next) {
		next = TAILQ_NEXT(e, age);
		routes_drop(r, e);
	}
}
