/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifiers and keys (S-ID-1..5). Pure; any thread. */
#ifndef SPOTLANE_IDS_H
#define SPOTLANE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A name: 1..255 bytes, length beside it, never NUL-terminated (S-CF-3). */
struct spl_name {
	uint8_t len;
	char b[255];
};

/* First 128 bits of SHA-256 over one byte ('s' Spot, 'a' Actor) and the id. */
struct spl_key {
	uint8_t b[16];
};

static inline bool spl_key_equal(const struct spl_key *a, const struct spl_key *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

enum spl_kind {
	SPL_KIND_INVALID = 0,
	SPL_KIND_ENTRY = 1,
	SPL_KIND_USER = 2,
	SPL_KIND_INSTANCE = 3,
};

/* Immutable snapshot of one incarnation (S-REF-1): for close and for display, never a target. */
struct spl_spot_ref {
	struct spl_name spot_id;
	uint64_t object_generation; /* 1..2^63-1 */
	struct spl_name mesh_name;
	struct spl_name node_rid;
};

/* True when the `len` bytes at `id` are a legal name: UTF-8, 1..255 bytes (S-ID-1, S-ID-3). */
bool spl_name_valid(const void *id, size_t len);

/* True for `<prefix>-entry-<uuid v4>`, which callers may not use (S-ID-5). */
bool spl_id_is_reserved(const void *id, size_t len);

/* Copies `len` bytes into `out`; 0, or -EINVAL when they are no legal name (out untouched). */
int spl_name_set(struct spl_name *out, const void *id, size_t len);

/* Key of a Spot id. The id must be valid. */
struct spl_key spl_spot_key(const void *id, size_t len);

/* 64-bit name of a packet on the wire: first 64 bits of SHA-256 over 'p' and the name. Never 0. */
uint64_t spl_packet_key(const void *name, size_t len);

/* 64-bit name of a channel: first 64 bits of SHA-256 over 'c' and the name. Never 0. */
uint64_t spl_channel_key(const void *name, size_t len);

/* Key of a topic of a channel: the first 128 bits of SHA-256 over 't', the length of the channel's
 * name in one byte, that name, and the topic. Both names must be valid. */
struct spl_key spl_topic_key(const void *channel, size_t channel_len, const void *topic,
			     size_t topic_len);

/* Lane of a key on a node with `lanes` lanes (1..128): both ends compute the same. */
uint32_t spl_key_lane(const struct spl_key *key, uint32_t lanes);

/* Writes a lower-case UUID v4 made of the 16 random bytes `rnd` and a NUL into `out`. */
void spl_uuid4(const uint8_t rnd[16], char out[37]);

#ifdef __cplusplus
}
#endif
#endif
