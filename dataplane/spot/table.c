/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see table.h. Chains are as long as chance makes them under a secret hash; a split
 * walks one bucket and its chain.
 */
#include "dataplane/spot/table.h"

uint32_t table_buckets(uint32_t spots)
{
	uint32_t n = (spots + TABLE_LOAD - 1) / TABLE_LOAD + 1;

	return n < TABLE_MIN ? TABLE_MIN : n;
}

void table_init(struct table *t, struct table_bucket *b, uint32_t spots_max,
		const struct slab *slab, const uint64_t secret[4])
{
	memset(t, 0, sizeof(*t));
	t->b = b;
	t->slab = slab;
	memcpy(t->secret, secret, sizeof(t->secret));
	t->n = TABLE_MIN;
	t->n_max = table_buckets(spots_max);
	t->lo = TABLE_MIN - 1;
	t->hi = 2 * TABLE_MIN - 1;
}

static void put(struct table *t, struct table_bucket *b, struct spot *s, uint64_t hash)
{
	uint32_t m = table_match(b, 0);

	if (m) {
		unsigned i = (unsigned)__builtin_ctz(m);

		b->tag[i] = table_tag(hash);
		b->spot[i] = slab_index(t->slab, s);
	} else {
		s->chain = b->chain;
		b->chain = slab_index(t->slab, s);
		t->chained++;
	}
}

/* Fills ways that have become empty from the chain. */
static void refill(struct table *t, struct table_bucket *b)
{
	while (b->chain && table_match(b, 0)) {
		struct spot *s = slab_at(t->slab, b->chain);

		b->chain = s->chain;
		s->chain = 0;
		t->chained--;
		put(t, b, s, table_hash(t, &s->key));
	}
}

static void split(struct table *t)
{
	struct table_bucket *from = &t->b[t->n & t->lo], *to = &t->b[t->n];
	uint32_t at = from->chain, made = t->n;

	memset(to, 0, sizeof(*to));
	for (unsigned i = 0; i < TABLE_WAYS; i++) {
		struct spot *s;
		uint64_t h;

		if (!from->tag[i])
			continue;
		s = slab_at(t->slab, from->spot[i]);
		h = table_hash(t, &s->key);
		if (((uint32_t)h & t->hi) != made)
			continue;
		from->tag[i] = 0;
		put(t, to, s, h);
	}
	from->chain = 0;
	while (at) {
		struct spot *s = slab_at(t->slab, at);
		uint64_t h = table_hash(t, &s->key);

		at = s->chain;
		s->chain = 0;
		t->chained--;
		put(t, ((uint32_t)h & t->hi) == made ? to : from, s, h);
	}
	t->n++;
	if (t->n > t->hi) {
		t->lo = t->hi;
		t->hi = t->hi * 2 + 1;
	}
}

void table_add(struct table *t, struct spot *s)
{
	uint64_t h = table_hash(t, &s->key);

	s->chain = 0;
	put(t, table_bucket_of(t, h), s, h);
	t->count++;
	if ((uint64_t)t->count > (uint64_t)t->n * TABLE_LOAD && t->n < t->n_max)
		split(t);
}

void table_del(struct table *t, struct spot *s)
{
	struct table_bucket *b = table_bucket_of(t, table_hash(t, &s->key));
	uint32_t index = slab_index(t->slab, s), *link;

	t->count--;
	for (unsigned i = 0; i < TABLE_WAYS; i++) {
		if (b->tag[i] && b->spot[i] == index) {
			b->tag[i] = 0;
			refill(t, b);
			return;
		}
	}
	for (link = &b->chain; *link != index;)
		link = &((struct spot *)slab_at(t->slab, *link))->chain;
	*link = s->chain;
	s->chain = 0;
	t->chained--;
}

struct spot *table_find_slow(const struct table *t, const struct spl_key *key, uint64_t hash)
{
	const struct table_bucket *b = table_bucket_of(t, hash);
	uint32_t m = table_match(b, table_tag(hash));

	for (; m; m &= m - 1) {
		struct spot *s = slab_at(t->slab, b->spot[__builtin_ctz(m)]);

		if (spl_key_equal(&s->key, key))
			return s;
	}
	for (uint32_t at = b->chain; at;) {
		struct spot *s = slab_at(t->slab, at);

		if (spl_key_equal(&s->key, key))
			return s;
		at = s->chain;
	}
	return NULL;
}
