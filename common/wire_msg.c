/* SPDX-License-Identifier: BSD-3-Clause */
/* Message header, metadata and control bodies: see wire_msg.h. Pure; any thread; owns nothing.
 * Everything that does not parse to its last byte is -EBADMSG.
 */
#include "common/wire_msg.h"
#include "common/utf8.h"

#include <errno.h>

static const uint8_t zero[16];

static uint8_t flags_of(const struct wire_msg *m)
{
	return (m->meta_len ? WIRE_MSG_METADATA : 0) | (m->intent_len ? WIRE_MSG_INTENT : 0);
}

void wire_msg_put(uint8_t *p, const struct wire_msg *m)
{
	p[0] = m->kind;
	p[1] = flags_of(m);
	wire_store_u16(p + 2, m->content);
	wire_store_u16(p + 4, m->meta_len);
	p[6] = m->kind == SPL_MSG_REPLY ? m->error : SPL_OK;
	p[7] = 0;
	wire_store_u32(p + 8, m->budget_us);
	wire_store_u16(p + 12, m->intent_len);
	wire_store_u16(p + 14, 0);
	memcpy(p + 16, m->target.b, 16);
	wire_store_u64(p + 32, m->packet);
	wire_store_u64(p + 40, m->correlation);
}

/* The rules between fields; kinds this node does not know keep the rules of a send. */
static bool msg_is_consistent(const struct wire_msg *m)
{
	bool direct = m->kind == SPL_MSG_SPOT_SEND || m->kind == SPL_MSG_SPOT_REQUEST;
	bool reply = m->kind == SPL_MSG_REPLY;

	if (reply ? m->error >= SPL_ERROR_COUNT && m->error != SPL_OK : m->error != SPL_OK)
		return false;
	if (m->intent_len && !direct)
		return false;
	if (direct)
		return m->packet != 0 && (m->kind == SPL_MSG_SPOT_SEND) == (m->correlation == 0);
	if (m->kind == SPL_MSG_PUBLISH)
		return m->packet != 0 && m->correlation == 0;
	if (m->kind != SPL_MSG_REPLY && (m->kind < SPL_MSG_CREATE || m->kind > SPL_MSG_RESOLVE))
		return true;
	return m->correlation != 0 && m->packet == 0 && m->meta_len == 0 &&
	       memcmp(m->target.b, zero, 16) == 0;
}

int wire_msg_get(struct wire_msg *m, const uint8_t *p, uint32_t len)
{
	if (len < WIRE_MSG_BYTES)
		return -EBADMSG;
	m->kind = p[0];
	m->content = wire_load_u16(p + 2);
	m->meta_len = wire_load_u16(p + 4);
	m->error = p[6];
	m->budget_us = wire_load_u32(p + 8);
	memcpy(m->target.b, p + 16, 16);
	m->intent_len = wire_load_u16(p + 12);
	m->packet = wire_load_u64(p + 32);
	m->correlation = wire_load_u64(p + 40);
	if (p[1] != flags_of(m) || p[7] != 0 || wire_load_u16(p + 14) != 0)
		return -EBADMSG;
	if (m->meta_len > SPL_METADATA_BYTES_MAX || m->intent_len > WIRE_INTENT_MAX ||
	    (uint32_t)m->meta_len + m->intent_len > len - WIRE_MSG_BYTES)
		return -EBADMSG;
	if (!msg_is_consistent(m))
		return -EBADMSG;
	p += WIRE_MSG_BYTES;
	m->intent = m->intent_len ? p : NULL;
	p += m->intent_len;
	m->meta = m->meta_len ? p : NULL;
	m->payload = p + m->meta_len;
	m->payload_len = len - WIRE_MSG_BYTES - m->intent_len - m->meta_len;
	return 0;
}

static bool text_is_clean(struct pack_bytes t)
{
	return t.len == 0 || (!memchr(t.p, 0, t.len) && utf8_valid_bytes(t.p, t.len) == t.len);
}

/* Reads one entry; false at the end or when it is cut off (then the reader is bad). */
static bool meta_entry(struct pack_reader *r, struct pack_bytes *key, struct pack_bytes *value)
{
	if (r->left == 0)
		return false;
	*key = pack_get_text(r);
	value->len = wire_get_u16(r);
	value->p = pack_take(r, value->len);
	if (key->len == 0)
		r->bad = true;
	return !r->bad;
}

int wire_meta_next(const uint8_t *p, uint32_t len, uint32_t *pos, struct pack_bytes *key,
		   struct pack_bytes *value)
{
	struct pack_reader r = {.p = p + *pos, .left = len - *pos};

	if (!meta_entry(&r, key, value))
		return 0;
	*pos = len - (uint32_t)r.left;
	return 1;
}

/* Keys in byte order, the shorter first when one begins with the other. */
static int key_order(struct pack_bytes a, struct pack_bytes b)
{
	int cmp = memcmp(a.p, b.p, a.len < b.len ? a.len : b.len);

	return cmp ? cmp : (int)a.len - (int)b.len;
}

int wire_meta_check(const uint8_t *p, uint32_t len)
{
	struct pack_reader r = {.p = p, .left = len};
	struct pack_bytes key, value, last = {"", 0};

	if (len == 0 || len > SPL_METADATA_BYTES_MAX)
		return -EBADMSG;
	while (meta_entry(&r, &key, &value)) {
		if (key_order(last, key) >= 0 || !text_is_clean(key) || !text_is_clean(value))
			return -EBADMSG;
		last = key;
	}
	return r.bad ? -EBADMSG : 0;
}

int wire_meta_set(uint8_t *p, uint32_t len, uint32_t cap, struct pack_bytes key,
		  struct pack_bytes value)
{
	struct pack_bytes k, v;
	struct pack_writer w;
	uint32_t at = 0, end = 0, need, size = 3 + key.len + value.len;

	if (key.len == 0 || key.len > 255 || !text_is_clean(key) || !text_is_clean(value))
		return -EINVAL;
	if (value.len > SPL_METADATA_BYTES_MAX)
		return -EMSGSIZE;
	/* `at` is where it goes, `end` where what follows begins: behind the value it replaces */
	while (wire_meta_next(p, len, &end, &k, &v) && key_order(k, key) < 0)
		at = end;
	if (at == len || key_order(k, key) != 0)
		end = at;
	need = len - (end - at) + size;
	if (need > cap || need > SPL_METADATA_BYTES_MAX)
		return -EMSGSIZE;
	memmove(p + at + size, p + end, len - end);
	w = (struct pack_writer){.p = p, .len = at, .cap = need};
	pack_put_text(&w, key);
	wire_put_u16(&w, (uint16_t)value.len);
	pack_put(&w, value.p, value.len);
	return (int)need;
}

static bool name_is_legal(struct pack_bytes n)
{
	return n.p && spl_name_valid(n.p, n.len);
}

static int put_end(const struct pack_writer *w)
{
	return w->overflow ? -EMSGSIZE : (int)w->len;
}

static int get_end(const struct pack_reader *r)
{
	return r->bad || r->left ? -EBADMSG : 0;
}

static void get_name(struct pack_reader *r, struct pack_bytes *n)
{
	*n = pack_get_text(r);
	if (!name_is_legal(*n))
		r->bad = true;
}

int wire_intent_put(uint8_t *p, size_t cap, struct pack_bytes id, struct pack_bytes type)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_text(&w, id);
	pack_put_text(&w, type);
	return put_end(&w);
}

int wire_intent_get(struct pack_bytes *id, struct pack_bytes *type, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	get_name(&r, id);
	get_name(&r, type);
	return get_end(&r);
}

static void put_bytes(struct pack_writer *w, struct pack_bytes b)
{
	wire_put_u32(w, b.len);
	pack_put(w, b.p, b.len);
}

static void get_bytes(struct pack_reader *r, struct pack_bytes *b, uint32_t max)
{
	b->len = wire_get_u32(r);
	if (b->len > max)
		r->bad = true;
	b->p = pack_take(r, b->len);
	if (!b->p)
		b->len = 0;
}

static void put_ref(struct pack_writer *w, const struct wire_ref *ref)
{
	pack_put_text(w, ref->id);
	wire_put_u64(w, ref->generation);
	pack_put_text(w, ref->mesh);
	pack_put_text(w, ref->rid);
}

static void get_ref(struct pack_reader *r, struct wire_ref *ref)
{
	get_name(r, &ref->id);
	ref->generation = wire_get_u64(r);
	if (ref->generation == 0 || ref->generation > INT64_MAX)
		r->bad = true;
	get_name(r, &ref->mesh);
	get_name(r, &ref->rid);
}

/* A byte that is 0 or 1. */
static bool get_bool(struct pack_reader *r)
{
	uint8_t b = pack_get_u8(r);

	if (b > 1)
		r->bad = true;
	return b == 1;
}

int wire_create_put(uint8_t *p, size_t cap, const struct wire_create *c)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_u8(&w, c->mode);
	wire_put_u64(&w, c->operation);
	wire_put_u32(&w, c->timeout_ms);
	pack_put_text(&w, c->id);
	pack_put_text(&w, c->type);
	put_bytes(&w, c->request);
	return put_end(&w);
}

int wire_create_get(struct wire_create *c, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	c->mode = get_bool(&r) ? WIRE_GET_OR_CREATE : WIRE_CREATE;
	c->operation = wire_get_u64(&r);
	c->timeout_ms = wire_get_u32(&r);
	if (c->operation == 0)
		r.bad = true;
	get_name(&r, &c->id);
	get_name(&r, &c->type);
	get_bytes(&r, &c->request, SPL_CREATE_REQUEST_BYTES_MAX);
	return get_end(&r);
}

int wire_create_reply_put(uint8_t *p, size_t cap, const struct wire_create_reply *c)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_u8(&w, c->state);
	if (c->state != WIRE_REJECTED)
		put_ref(&w, &c->ref);
	put_bytes(&w, c->reply);
	return put_end(&w);
}

int wire_create_reply_get(struct wire_create_reply *c, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	c->state = pack_get_u8(&r);
	if (c->state > WIRE_REJECTED)
		r.bad = true;
	memset(&c->ref, 0, sizeof(c->ref));
	if (c->state != WIRE_REJECTED)
		get_ref(&r, &c->ref);
	get_bytes(&r, &c->reply, SPL_CREATE_REPLY_BYTES_MAX);
	return get_end(&r);
}

int wire_id_put(uint8_t *p, size_t cap, struct pack_bytes id)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_text(&w, id);
	return put_end(&w);
}

int wire_id_get(struct pack_bytes *id, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	get_name(&r, id);
	return get_end(&r);
}

int wire_find_reply_put(uint8_t *p, size_t cap, const struct wire_ref *ref)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_u8(&w, ref != NULL);
	if (ref)
		put_ref(&w, ref);
	return put_end(&w);
}

int wire_find_reply_get(struct wire_ref *ref, bool *found, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	memset(ref, 0, sizeof(*ref));
	*found = get_bool(&r);
	if (*found)
		get_ref(&r, ref);
	return get_end(&r);
}

int wire_close_put(uint8_t *p, size_t cap, uint64_t operation, const struct wire_ref *ref)
{
	struct pack_writer w = {.p = p, .cap = cap};

	wire_put_u64(&w, operation);
	put_ref(&w, ref);
	return put_end(&w);
}

int wire_close_get(uint64_t *operation, struct wire_ref *ref, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	*operation = wire_get_u64(&r);
	if (*operation == 0)
		r.bad = true;
	get_ref(&r, ref);
	return get_end(&r);
}

int wire_close_reply_put(uint8_t *p, size_t cap, bool closed)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_u8(&w, closed);
	return put_end(&w);
}

int wire_close_reply_get(bool *closed, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	*closed = get_bool(&r);
	return get_end(&r);
}

int wire_route_put(uint8_t *p, size_t cap, const struct wire_route *r)
{
	struct pack_writer w = {.p = p, .cap = cap};

	pack_put_u8(&w, r->tag);
	pack_put_u8(&w, r->lanes);
	wire_put_u16(&w, 0);
	wire_put_u32(&w, r->valid_ms);
	wire_put_u64(&w, r->lifecycle);
	wire_put_u64(&w, r->generation);
	pack_put_text(&w, r->rid);
	return put_end(&w);
}

int wire_route_get(struct wire_route *route, const uint8_t *p, size_t len)
{
	struct pack_reader r = {.p = p, .left = len};

	route->tag = pack_get_u8(&r);
	route->lanes = pack_get_u8(&r);
	if (wire_get_u16(&r) != 0)
		r.bad = true;
	route->valid_ms = wire_get_u32(&r);
	route->lifecycle = wire_get_u64(&r);
	route->generation = wire_get_u64(&r);
	route->rid = pack_get_text(&r);
	if (get_end(&r))
		return -EBADMSG;
	if (route->tag == WIRE_ROUTE_READY)
		return route->lanes >= 1 && route->lanes <= SPL_LANES_MAX &&
				       route->lifecycle != 0 && route->generation != 0 &&
				       route->generation <= INT64_MAX && name_is_legal(route->rid)
			       ? 0
			       : -EBADMSG;
	return route->tag <= WIRE_ROUTE_NOT_READY && route->lanes == 0 && route->valid_ms == 0 &&
			       route->lifecycle == 0 && route->generation == 0 &&
			       route->rid.len == 0
		       ? 0
		       : -EBADMSG;
}
