/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifiers, keys and UUID text: see <spotlane/ids.h>. Pure apart from libcrypto's SHA-256. */
#include "common/ids.h"

#include <spotlane/multicast.h>
#include "common/utf8.h"

#include <errno.h>
/* The plain functions: the one-shot ones of OpenSSL 3 allocate, and keys are made on lanes too. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

bool spl_name_valid(const void *id, size_t len)
{
	return len > 0 && len <= 255 && utf8_valid_bytes(id, len) == len;
}

static bool is_uuid4(const char *u)
{
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? u[i] != '-'
			 : !((u[i] >= '0' && u[i] <= '9') || (u[i] >= 'a' && u[i] <= 'f')))
			return false;
	}
	return u[14] == '4' && (u[19] == '8' || u[19] == '9' || u[19] == 'a' || u[19] == 'b');
}

bool spl_id_is_reserved(const void *id, size_t len)
{
	static const char mid[] = "-entry-";
	const char *s = id;
	size_t prefix;

	if (len < 1 + 7 + 36 || len > 64 + 7 + 36)
		return false;
	prefix = len - 7 - 36;
	for (size_t i = 0; i < prefix; i++) {
		char c = s[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-'))
			return false;
	}
	return memcmp(s + prefix, mid, 7) == 0 && is_uuid4(s + prefix + 7);
}

int spl_name_set(struct spl_name *out, const void *id, size_t len)
{
	if (!spl_name_valid(id, len))
		return -EINVAL;
	out->len = (uint8_t)len;
	memcpy(out->b, id, len);
	return 0;
}

static void digest(char tag, const void *data, size_t len, uint8_t out[32])
{
	SHA256_CTX c;

	SHA256_Init(&c);
	SHA256_Update(&c, &tag, 1);
	SHA256_Update(&c, data, len);
	SHA256_Final(out, &c);
}

struct spl_key spl_spot_key(const void *id, size_t len)
{
	uint8_t full[32];
	struct spl_key key;

	digest('s', id, len, full);
	memcpy(key.b, full, sizeof(key.b));
	return key;
}

static uint64_t key64(char tag, const void *name, size_t len)
{
	uint8_t full[32];
	uint64_t v = 0;

	digest(tag, name, len, full);
	for (int i = 0; i < 8; i++)
		v = v << 8 | full[i];
	return v ? v : 1;
}

uint64_t spl_packet_key(const void *name, size_t len)
{
	return key64('p', name, len);
}

uint64_t spl_channel_key(const void *name, size_t len)
{
	return key64('c', name, len);
}

struct spl_key spl_topic_key(const void *channel, size_t channel_len, const void *topic,
			     size_t topic_len)
{
	const uint8_t head[2] = {'t', (uint8_t)channel_len};
	uint8_t full[32];
	struct spl_key key;
	SHA256_CTX c;

	SHA256_Init(&c);
	SHA256_Update(&c, head, sizeof(head));
	SHA256_Update(&c, channel, channel_len);
	SHA256_Update(&c, topic, topic_len);
	SHA256_Final(full, &c);
	memcpy(key.b, full, sizeof(key.b));
	return key;
}

int spl_topic_set(struct spl_topic *topic, const void *channel, size_t channel_len,
		  const void *name, size_t name_len)
{
	if (!topic || !spl_name_valid(channel, channel_len) || !spl_name_valid(name, name_len))
		return -EINVAL;
	topic->key = spl_topic_key(channel, channel_len, name, name_len);
	topic->channel_key = spl_channel_key(channel, channel_len);
	(void)spl_name_set(&topic->channel, channel, channel_len);
	(void)spl_name_set(&topic->name, name, name_len);
	return 0;
}

uint32_t spl_key_lane(const struct spl_key *key, uint32_t lanes)
{
	uint32_t v = (uint32_t)key->b[12] << 24 | (uint32_t)key->b[13] << 16 |
		     (uint32_t)key->b[14] << 8 | key->b[15];

	return (uint32_t)((uint64_t)v * lanes >> 32);
}

void spl_uuid4(const uint8_t rnd[16], char out[37])
{
	static const char hex[] = "0123456789abcdef";
	int o = 0;

	for (int i = 0; i < 16; i++) {
		uint8_t b = rnd[i];

		if (i == 6)
			b = (uint8_t)(0x40 | (b & 0x0f));
		if (i == 8)
			b = (uint8_t)(0x80 | (b & 0x3f));
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[o++] = '-';
		out[o++] = hex[b >> 4];
		out[o++] = hex[b & 15];
	}
	out[o] = '\0';
}
