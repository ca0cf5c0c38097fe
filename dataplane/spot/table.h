/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the table of a lane: key to Spot.
 *
 * Linear hashing: an insertion splits at most two buckets, so the table grows without a pause. A
 * bucket is one cache line, ten tags and object indices; what does not fit hangs in a chain through
 * the Spots themselves, so an insertion needs no memory of its own and cannot fail. The hash is two
 * folded multiplications under a secret of the process: keys ground against the public key function
 * spread like any others. One lane; writers and readers are the same thread.
 */
#ifndef SPL_DATAPLANE_SPOT_TABLE_H
#define SPL_DATAPLANE_SPOT_TABLE_H

#include "dataplane/spot/object.h"
#include "dataplane/spot/slab.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define TABLE_WAYS 10
#define TABLE_LOAD 4  /* Spots for each bucket, on average, before one is split */
#define TABLE_MIN  16 /* buckets at the start, a power of two */

struct table_bucket {
	uint16_t tag[TABLE_WAYS]; /* 0 = empty */
	uint32_t spot[TABLE_WAYS];
	uint32_t chain; /* first Spot that found the bucket full */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct table_bucket) == 64, "a bucket is one cache line");

struct table {
	struct table_bucket *b;
	const struct slab *slab;
	uint64_t secret[4];
	uint32_t n;	  /* buckets in use */
	uint32_t n_max;	  /* that there is room for */
	uint32_t hi, lo;  /* masks: of the round that is going on, and of the last one */
	uint32_t count;	  /* Spots */
	uint32_t chained; /* of them, in chains */
};

/* Buckets of a table that has held `spots` Spots. */
uint32_t table_buckets(uint32_t spots);

/* `secret` of 4 words; `b` has room for table_buckets(spots_max), zeroed. */
void table_init(struct table *t, struct table_bucket *b, uint32_t spots_max,
		const struct slab *slab, const uint64_t secret[4]);

/* Adds a Spot whose key is not there. */
void table_add(struct table *t, struct spot *s);

/* Takes a Spot out that is there. */
void table_del(struct table *t, struct spot *s);

/* Slow path of table_find(): several tags alike, or a chain. */
struct spot *table_find_slow(const struct table *t, const struct spl_key *key, uint64_t hash);

static inline uint64_t table_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t table_hash(const struct table *t, const struct spl_key *key)
{
	uint64_t k[2], x;

	memcpy(k, key->b, sizeof(k));
	x = table_fold(k[0] ^ t->secret[0], k[1] ^ t->secret[1]);
	return table_fold(x ^ t->secret[2], k[0] ^ (k[1] << 32 | k[1] >> 32) ^ t->secret[3]);
}

static inline uint16_t table_tag(uint64_t hash)
{
	uint16_t tag = (uint16_t)(hash >> 48);

	return tag ? tag : 1;
}

static inline struct table_bucket *table_bucket_of(const struct table *t, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & t->hi;

	return &t->b[i < t->n ? i : i & t->lo];
}

/* One bit for each way of the bucket with this tag. */
static inline uint32_t table_match(const struct table_bucket *b, uint16_t tag)
{
#if defined(__SSE2__)
	/* the second half holds two tags; what lies behind them is masked away */
	const __m128i *half = (const __m128i *)(const void *)b, t = _mm_set1_epi16((short)tag);
	__m128i low = _mm_cmpeq_epi16(_mm_load_si128(half), t);
	__m128i high = _mm_cmpeq_epi16(_mm_load_si128(half + 1), t);

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) & ((1u << TABLE_WAYS) - 1);
#else
	uint32_t m = 0;

	for (unsigned i = 0; i < TABLE_WAYS; i++)
		m |= (uint32_t)(b->tag[i] == tag) << i;
	return m;
#endif
}

/* The first Spot of the bucket that has the key's tag, NULL when there is none: most likely the
 * one, to be prefetched; table_find_at() makes sure. */
static inline struct spot *table_guess(const struct table *t, const struct table_bucket *b,
				       uint64_t hash)
{
	uint32_t m = table_match(b, table_tag(hash));

	return m ? slab_at(t->slab, b->spot[__builtin_ctz(m)]) : NULL;
}

/* The Spot of `key`, given its hash and the guess. */
static inline struct spot *table_find_at(const struct table *t, const struct spl_key *key,
					 uint64_t hash, struct spot *guess)
{
	if (guess && spl_key_equal(&guess->key, key))
		return guess;
	if (!guess && table_bucket_of(t, hash)->chain == 0)
		return NULL;
	return table_find_slow(t, key, hash);
}

static inline struct spot *table_find(const struct table *t, const struct spl_key *key)
{
	uint64_t h = table_hash(t, key);

	return table_find_at(t, key, h, table_guess(t, table_bucket_of(t, h), h));
}

#endif
