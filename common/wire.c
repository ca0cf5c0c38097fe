/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet header and association bodies: see wire.h and wire_assoc.h. Pure; any thread; owns
 * nothing. Getters fail with -EBADMSG and never read past the packet.
 */
#include "common/wire_assoc.h"

#include <errno.h>

static bool all_zero(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= b[i];
	return any == 0;
}

/* What must be zero is, for the kind. */
static bool hdr_is_clean(const uint8_t *p)
{
	unsigned kind = wire_kind(p);

	if (p[2] || p[5] || p[6] || p[7] || !all_zero(p + 24, 16))
		return false;
	if (kind == SPL_PKT_FLOW)
		return (p[1] & ~WIRE_FLAG_INFRA) == 0;
	if (p[1] || p[3] || p[4])
		return false;
	if (kind == SPL_PKT_INIT && wire_load_u64(p + 8) != 0)
		return false;
	return kind >= SPL_PKT_BEACON || wire_load_u64(p + 16) == 0;
}

int wire_hdr_get_any(struct wire_hdr *h, const uint8_t *p, size_t len, enum spl_frame_drop *drop)
{
	if (len < WIRE_HDR_BYTES) {
		*drop = SPL_DROP_LINK_SHORT;
		return -1;
	}
	if (p[0] >> 4 != WIRE_VERSION) {
		*drop = SPL_DROP_LINK_VERSION;
		return -1;
	}
	if (wire_kind(p) < SPL_PKT_INIT || wire_kind(p) > SPL_PKT_FLOW) {
		*drop = SPL_DROP_LINK_KIND;
		return -1;
	}
	if (!hdr_is_clean(p)) {
		*drop = SPL_DROP_LINK_FLAGS;
		return -1;
	}
	h->kind = (uint8_t)wire_kind(p);
	h->cls = p[1] & WIRE_FLAG_INFRA;
	h->src_lane = p[3];
	h->dst_lane = p[4];
	h->id = wire_load_u64(p + 8);
	h->number = wire_load_u64(p + 16);
	return 0;
}

/* Starts a packet of `kind` in `p`. */
static struct pack_writer begin(uint8_t *p, unsigned kind, uint64_t id, uint64_t number)
{
	struct wire_hdr h = {.kind = (uint8_t)kind, .id = id, .number = number};
	struct pack_writer w = {.p = p, .cap = WIRE_INIT_BYTES, .len = WIRE_HDR_BYTES};

	wire_hdr_put(p, &h);
	return w;
}

static void put_zero(struct pack_writer *w, size_t n)
{
	static const uint8_t zero[16];

	pack_put(w, zero, n);
}

/* True when the next `n` bytes are there and zero; otherwise the reader is bad. */
static void get_zero(struct pack_reader *r, size_t n)
{
	const void *p = pack_take(r, n);

	if (p && !all_zero(p, n))
		r->bad = true;
}

static void get_copy(struct pack_reader *r, void *out, size_t n)
{
	const void *p = pack_take(r, n);

	if (p)
		memcpy(out, p, n);
}

static void self_put(struct pack_writer *w, const struct wire_self *s)
{
	wire_put_u64(w, s->lifecycle);
	wire_put_u64(w, s->id);
	pack_put_u8(w, s->lanes);
	put_zero(w, 1);
	wire_put_u16(w, s->base_port);
	wire_put_u16(w, s->window);
	put_zero(w, 2);
	wire_put_u32(w, s->msg_bytes);
	wire_put_u32(w, s->credit[WIRE_APP]);
	wire_put_u32(w, s->credit[WIRE_INFRA]);
	put_zero(w, 4);
	pack_put_text(w, s->mesh);
	pack_put_text(w, s->rid);
}

static bool window_is_legal(unsigned w)
{
	return w >= 16 && w <= 32768 && (w & (w - 1)) == 0;
}

static bool name_is_legal(struct pack_bytes n)
{
	return n.p && spl_name_valid(n.p, n.len);
}

static void self_get(struct pack_reader *r, struct wire_self *s)
{
	s->lifecycle = wire_get_u64(r);
	s->id = wire_get_u64(r);
	s->lanes = pack_get_u8(r);
	get_zero(r, 1);
	s->base_port = wire_get_u16(r);
	s->window = wire_get_u16(r);
	get_zero(r, 2);
	s->msg_bytes = wire_get_u32(r);
	s->credit[WIRE_APP] = wire_get_u32(r);
	s->credit[WIRE_INFRA] = wire_get_u32(r);
	get_zero(r, 4);
	s->mesh = pack_get_text(r);
	s->rid = pack_get_text(r);
	if (r->bad)
		return;
	if (s->lifecycle == 0 || s->id == 0 || s->lanes < 1 || s->lanes > SPL_LANES_MAX ||
	    !window_is_legal(s->window) || s->msg_bytes == 0 || !name_is_legal(s->mesh) ||
	    !name_is_legal(s->rid))
		r->bad = true;
}

size_t wire_init_put(uint8_t *p, const struct wire_init *m)
{
	struct pack_writer w = begin(p, SPL_PKT_INIT, 0, 0);

	pack_put(&w, m->nonce, sizeof(m->nonce));
	pack_put(&w, m->cookie, sizeof(m->cookie));
	wire_put_u64(&w, m->want_lifecycle);
	self_put(&w, &m->self);
	memset(p + w.len, 0, WIRE_INIT_BYTES - w.len);
	return WIRE_INIT_BYTES;
}

size_t wire_cookie_put(uint8_t *p, uint64_t id, const struct wire_cookie *m)
{
	struct pack_writer w = begin(p, SPL_PKT_COOKIE, id, 0);

	pack_put(&w, m->nonce, sizeof(m->nonce));
	pack_put(&w, m->cookie, sizeof(m->cookie));
	return w.len;
}

size_t wire_accept_put(uint8_t *p, uint64_t id, const struct wire_accept *m)
{
	struct pack_writer w = begin(p, SPL_PKT_ACCEPT, id, 0);

	pack_put(&w, m->nonce, sizeof(m->nonce));
	self_put(&w, &m->self);
	return w.len;
}

size_t wire_refuse_put(uint8_t *p, uint64_t id, const struct wire_refuse *m)
{
	struct pack_writer w = begin(p, SPL_PKT_REFUSE, id, 0);

	pack_put(&w, m->nonce, sizeof(m->nonce));
	pack_put_u8(&w, m->reason);
	pack_put_u8(&w, WIRE_VERSION);
	pack_put_u8(&w, WIRE_VERSION);
	put_zero(&w, 5);
	wire_put_u64(&w, m->lifecycle);
	return w.len;
}

size_t wire_beacon_put(uint8_t *p, uint64_t id, uint64_t beacon, uint64_t self, bool is_ack)
{
	struct pack_writer w = begin(p, is_ack ? SPL_PKT_BEACON_ACK : SPL_PKT_BEACON, id, beacon);

	wire_put_u64(&w, self);
	put_zero(&w, 8);
	return w.len;
}

size_t wire_close_pkt_put(uint8_t *p, uint64_t id, uint64_t number, const struct wire_close *m)
{
	struct pack_writer w = begin(p, SPL_PKT_CLOSE, id, number);

	pack_put_u8(&w, m->reason);
	pack_put_u8(&w, m->is_answer);
	put_zero(&w, 6);
	wire_put_u64(&w, m->self);
	return w.len;
}

/* A reader of the body of a packet. */
static struct pack_reader body(const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p + WIRE_HDR_BYTES, .left = len - WIRE_HDR_BYTES};

	return r;
}

static int end(const struct pack_reader *r)
{
	return r->bad || r->left ? -EBADMSG : 0;
}

int wire_init_get(struct wire_init *m, const uint8_t *p, size_t len)
{
	struct pack_reader r = body(p, len);

	if (len != WIRE_INIT_BYTES)
		return -EBADMSG;
	get_copy(&r, m->nonce, sizeof(m->nonce));
	get_copy(&r, m->cookie, sizeof(m->cookie));
	m->want_lifecycle = wire_get_u64(&r);
	self_get(&r, &m->self);
	get_zero(&r, r.left);
	return end(&r);
}

int wire_cookie_get(struct wire_cookie *m, const uint8_t *p, size_t len)
{
	struct pack_reader r = body(p, len);

	get_copy(&r, m->nonce, sizeof(m->nonce));
	get_copy(&r, m->cookie, sizeof(m->cookie));
	return end(&r);
}

int wire_accept_get(struct wire_accept *m, const uint8_t *p, size_t len)
{
	struct pack_reader r = body(p, len);

	get_copy(&r, m->nonce, sizeof(m->nonce));
	self_get(&r, &m->self);
	return end(&r);
}

int wire_refuse_get(struct wire_refuse *m, const uint8_t *p, size_t len)
{
	struct pack_reader r = body(p, len);

	get_copy(&r, m->nonce, sizeof(m->nonce));
	m->reason = pack_get_u8(&r);
	pack_get_u8(&r);
	pack_get_u8(&r);
	get_zero(&r, 5);
	m->lifecycle = wire_get_u64(&r);
	if (m->reason < WIRE_REFUSE_VERSION || m->reason > WIRE_REFUSE_LIFECYCLE)
		r.bad = true;
	return end(&r);
}

int wire_beacon_get(uint64_t *self, const uint8_t *p, size_t len)
{
	struct pack_reader r = body(p, len);

	*self = wire_get_u64(&r);
	get_zero(&r, 8);
	if (wire_load_u64(p + 16) == 0 || *self == 0)
		r.bad = true;
	return end(&r);
}

int wire_close_pkt_get(struct wire_close *m, const uint8_t *p, size_t len)
{
	struct pack_reader r = body(p, len);

	m->reason = pack_get_u8(&r);
	m->is_answer = pack_get_u8(&r);
	get_zero(&r, 6);
	m->self = wire_get_u64(&r);
	if (m->reason < WIRE_CLOSE_NORMAL || m->reason > WIRE_CLOSE_UNKNOWN || m->is_answer > 1)
		r.bad = true;
	return end(&r);
}
