/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounded little-endian packing for the private socket: a writer and a reader with a sticky error,
 * so that a codec checks once at its end. Pure; any thread; owns nothing. A reader hands out views
 * into its input.
 */
#ifndef SPL_COMMON_PACK_H
#define SPL_COMMON_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A byte string that lies in somebody else's buffer. */
struct pack_bytes {
	const void *p;
	uint32_t len;
};

struct pack_writer {
	uint8_t *p;
	size_t len, cap;
	bool overflow; /* something did not fit; nothing after it was written */
};

struct pack_reader {
	const uint8_t *p;
	size_t left;
	bool bad; /* something was missing or out of bounds */
};

static inline void pack_put(struct pack_writer *w, const void *v, size_t n)
{
	if (w->overflow || w->cap - w->len < n) {
		w->overflow = true;
		return;
	}
	if (n)
		memcpy(w->p + w->len, v, n);
	w->len += n;
}

static inline const void *pack_take(struct pack_reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->bad || r->left < n) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	r->left -= n;
	return p;
}

#define PACK_INT(T, bits) \
	static inline void pack_put_u##bits(struct pack_writer *w, T v) \
	{ \
		uint8_t b[bits / 8]; \
		for (unsigned i = 0; i < bits / 8; i++) \
			b[i] = (uint8_t)(v >> (8 * i)); \
		pack_put(w, b, sizeof(b)); \
	} \
	static inline T pack_get_u##bits(struct pack_reader *r) \
	{ \
		const uint8_t *b = (const uint8_t *)pack_take(r, bits / 8); \
		uint64_t v = 0; \
		for (unsigned i = 0; b && i < bits / 8; i++) \
			v |= (uint64_t)b[i] << (8 * i); \
		return (T)v; \
	}
PACK_INT(uint8_t, 8)
PACK_INT(uint16_t, 16)
PACK_INT(uint32_t, 32)
PACK_INT(uint64_t, 64)
#undef PACK_INT

/* text8: one length byte, then up to 255 bytes. A longer one is an overflow. */
static inline void pack_put_text(struct pack_writer *w, struct pack_bytes t)
{
	if (t.len > 255)
		w->overflow = true;
	pack_put_u8(w, (uint8_t)t.len);
	pack_put(w, t.p, t.len);
}

static inline struct pack_bytes pack_get_text(struct pack_reader *r)
{
	struct pack_bytes t = {NULL, pack_get_u8(r)};

	t.p = pack_take(r, t.len);
	if (!t.p)
		t.len = 0;
	return t;
}

/* bytes32: four length bytes, then the bytes. */
static inline void pack_put_bytes(struct pack_writer *w, struct pack_bytes t)
{
	pack_put_u32(w, t.len);
	pack_put(w, t.p, t.len);
}

static inline struct pack_bytes pack_get_bytes(struct pack_reader *r)
{
	struct pack_bytes t = {NULL, pack_get_u32(r)};

	t.p = pack_take(r, t.len);
	if (!t.p)
		t.len = 0;
	return t;
}

#endif
