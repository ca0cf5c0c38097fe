/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 (Aumasson, Bernstein): a short keyed hash, for cookies and for tables that a stranger
 * may fill. Pure; any thread; owns nothing.
 */
#ifndef SPL_COMMON_SIPHASH_H
#define SPL_COMMON_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k0, k1;
};

static inline uint64_t siphash_rotl(uint64_t v, int n)
{
	return v << n | v >> (64 - n);
}

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotl(v[1], 13) ^ v[0];
	v[3] = siphash_rotl(v[3], 16) ^ v[2];
	v[0] = siphash_rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotl(v[1], 17) ^ v[2];
	v[3] = siphash_rotl(v[3], 21) ^ v[0];
	v[2] = siphash_rotl(v[2], 32);
}

/* Hash of the `len` bytes at `data` under `key`. */
static inline uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
	uint64_t v[4] = {key->k0 ^ 0x736f6d6570736575ULL, key->k1 ^ 0x646f72616e646f6dULL,
			 key->k0 ^ 0x6c7967656e657261ULL, key->k1 ^ 0x7465646279746573ULL};
	const uint8_t *p = (const uint8_t *)data;
	uint64_t m = 0;

	for (size_t i = 0; i < len; i++) {
		m |= (uint64_t)p[i] << 8 * (i % 8);
		if (i % 8 != 7)
			continue;
		v[3] ^= m;
		siphash_round(v);
		siphash_round(v);
		v[0] ^= m;
		m = 0;
	}
	m |= (uint64_t)len << 56;
	v[3] ^= m;
	siphash_round(v);
	siphash_round(v);
	v[0] ^= m;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
