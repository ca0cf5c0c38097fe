/* SPDX-License-Identifier: BSD-3-Clause */
/* Codec of the private protocol: see dp.h. Pure. */
#include "common/dp.h"

#include <errno.h>

#define DP_PUT(t, n) pack_put_##t(w, m->n);
#define DP_GET(t, n) m->n = pack_get_##t(r);
#define DP_X(name, FIELDS) \
	void dp_put_##name(struct pack_writer *w, const struct dp_##name *m) \
	{ \
		FIELDS(DP_PUT) \
	} \
	void dp_get_##name(struct pack_reader *r, struct dp_##name *m) \
	{ \
		FIELDS(DP_GET) \
	}
DP_STRUCTS(DP_X)
#undef DP_X

enum { NFDS_OFFSET = 10, LEN_OFFSET = 12 };

void dp_begin(struct pack_writer *w, uint16_t type, uint16_t flags, uint64_t epoch, uint64_t corr)
{
	pack_put_u32(w, DP_MAGIC);
	pack_put_u16(w, DP_VERSION);
	pack_put_u16(w, type);
	pack_put_u16(w, flags);
	pack_put_u16(w, 0);
	pack_put_u32(w, 0);
	pack_put_u32(w, 0); /* reserved */
	pack_put_u64(w, epoch);
	pack_put_u64(w, corr);
}

int dp_finish(struct pack_writer *w, uint16_t nfds)
{
	uint32_t len;

	if (w->overflow || w->len < DP_HEADER_BYTES || w->len > DP_PACKET_MAX)
		return -EMSGSIZE;
	len = (uint32_t)(w->len - DP_HEADER_BYTES);
	for (int i = 0; i < 4; i++)
		w->p[LEN_OFFSET + i] = (uint8_t)(len >> (8 * i));
	w->p[NFDS_OFFSET] = (uint8_t)nfds;
	w->p[NFDS_OFFSET + 1] = (uint8_t)(nfds >> 8);
	return 0;
}

int dp_open(const void *packet, size_t n, struct dp_header *h, struct pack_reader *r)
{
	uint32_t magic;

	*r = (struct pack_reader){.p = packet, .left = n};
	magic = pack_get_u32(r);
	h->version = pack_get_u16(r);
	h->type = pack_get_u16(r);
	h->flags = pack_get_u16(r);
	h->nfds = pack_get_u16(r);
	h->len = pack_get_u32(r);
	pack_get_u32(r);
	h->epoch = pack_get_u64(r);
	h->corr = pack_get_u64(r);
	if (r->bad || magic != DP_MAGIC)
		return -EPROTO;
	if (h->version != DP_VERSION)
		return -EPROTONOSUPPORT;
	return h->len == r->left ? 0 : -EPROTO;
}

const char *dp_type_name(uint16_t type)
{
	switch (type) {
#define DP_X(num, sym, st, dir, help) \
	case num: \
		return #sym;
		DP_MESSAGES(DP_X)
#undef DP_X
	default:
		return "unknown";
	}
}
