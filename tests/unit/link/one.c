/* SPDX-License-Identifier: BSD-3-Clause */
/* See one.h. */
#include "one.h"

#include <stdlib.h>

static void env_sent(void *host, void *handle, bool acked)
{
	struct one *o = host;

	if (acked) {
		o->acked++;
		o->last_acked = handle;
	} else {
		o->ended++;
	}
}

static void *env_mem_get(void *host, size_t bytes)
{
	struct one *o = host;

	if (o->mem_fail > 0) {
		o->mem_fail--;
		return NULL;
	}
	o->mems++;
	return malloc(bytes);
}

static void env_mem_put(void *host, void *mem)
{
	struct one *o = host;

	o->mems--;
	free(mem);
}

/* Each buffer begins with its number of references. */
static void env_buf_put(void *host, void *buf)
{
	struct one *o = host;
	uint64_t *refs = buf;

	o->bufs--;
	if (--*refs == 0)
		free(refs);
}

static uint64_t env_take(void *host, enum wire_class cls, uint64_t bytes)
{
	struct one *o = host;
	uint64_t got = bytes < o->pool[cls] ? bytes : o->pool[cls];

	o->pool[cls] -= got;
	return got;
}

static void env_give(void *host, enum wire_class cls, uint64_t bytes)
{
	struct one *o = host;

	o->pool[cls] += bytes;
}

static bool env_tight(void *host, enum wire_class cls)
{
	struct one *o = host;

	return o->is_tight;
}

static const struct flow_env env = {env_sent, env_mem_get, env_mem_put, env_buf_put,
				    env_take, env_give,	   env_tight};

void one_params(struct flow_params *p)
{
	flow_params_default(p);
	p->rx_id = ONE_RX_ID;
	p->tx_id = ONE_TX_ID;
	p->lane = ONE_LANE;
	p->peer_lane = ONE_PEER;
	p->ack_every = 16;
	for (int c = 0; c < WIRE_CLASSES; c++)
		p->cls[c].rx_slots = p->cls[c].tx_slots = p->cls[c].peer_window = 64;
}

void one_start(struct one *o, const struct flow_params *p, uint64_t pool)
{
	memset(o, 0, sizeof(*o));
	if (p)
		o->p = *p;
	else
		one_params(&o->p);
	o->now = 1000000000;
	o->pool[WIRE_APP] = o->pool[WIRE_INFRA] = o->pool_size = pool;
	o->mem = aligned_alloc(64, flow_bytes(&o->p));
	o->before = malloc(flow_bytes(&o->p));
	o->f = flow_init(o->mem, &o->p, &env, o);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o->f);
	o->sink = (struct flow_sink){.msgs = o->msgs, .room = ONE_MSGS_MAX};
}

struct flow *one_second(struct one *o, void *mem, const struct flow_params *p)
{
	return flow_init(mem, p, &env, o);
}

void one_consume(struct one *o)
{
	for (uint32_t i = 0; i < o->sink.n; i++) {
		const struct flow_msg *m = &o->msgs[i];

		if (m->is_mem)
			env_mem_put(o, m->ref);
		else
			env_buf_put(o, m->ref);
		flow_consumed(o->f, m->cls, m->charge);
	}
	o->sink.n = 0;
}

void one_stop(struct one *o)
{
	one_consume(o);
	flow_fini(o->f);
	CU_ASSERT_EQUAL(o->mems, 0);
	CU_ASSERT_EQUAL(o->bufs, 0);
	CU_ASSERT_EQUAL(o->pool[WIRE_APP], o->pool_size);
	CU_ASSERT_EQUAL(o->pool[WIRE_INFRA], o->pool_size);
	free(o->mem);
	free(o->before);
}

struct flow_rx_result one_rx(struct one *o, const struct raw *r)
{
	/* memory of its own for each packet, so that the sanitizer sees a wrong reference */
	uint64_t *buf = malloc(sizeof(*buf) + r->len);
	uint8_t *pkt = (uint8_t *)(buf + 1);
	struct flow_rx_result res;
	uint32_t had = o->sink.n;

	memcpy(pkt, r->b, r->len);
	res = flow_rx(o->f, pkt, r->len, buf, o->now, &o->sink);
	o->bufs += res.refs;
	*buf = res.refs;
	if (res.refs == 0)
		free(buf);
	CU_ASSERT(res.drop == FLOW_NO_DROP || (res.refs == 0 && o->sink.n == had));
	return res;
}

bool one_drops(struct one *o, const struct raw *r, enum spl_frame_drop drop)
{
	struct flow_rx_result res;

	memcpy(o->before, o->mem, flow_bytes(&o->p));
	res = one_rx(o, r);
	return res.drop == drop && memcmp(o->before, o->mem, flow_bytes(&o->p)) == 0;
}

bool one_uses(struct one *o, const struct raw *r, enum spl_frame_use use, uint32_t delivered)
{
	uint32_t had = o->sink.n;
	struct flow_rx_result res = one_rx(o, r);

	return res.drop == FLOW_NO_DROP && res.use == use && o->sink.n == had + delivered;
}

uint32_t one_tx(struct one *o)
{
	o->out_len = flow_tx(o->f, o->out, sizeof(o->out), o->now, &o->out_cls);
	return o->out_len;
}

static uint32_t record_size(const uint8_t *p)
{
	switch (p[0]) {
	case SPL_REC_MESSAGE:
		return WIRE_MESSAGE_BYTES + wire_load_u16(p + 2);
	case SPL_REC_FRAGMENT:
		return WIRE_FRAGMENT_BYTES + wire_load_u16(p + 2);
	case SPL_REC_ACK:
		return WIRE_ACK_BYTES + p[2] * WIRE_ACK_RANGE_BYTES;
	case SPL_REC_PING:
		return WIRE_PING_BYTES;
	default:
		return WIRE_CREDIT_BYTES;
	}
}

const uint8_t *one_record(const struct one *o, unsigned kind, enum wire_class cls)
{
	const uint8_t *p = o->out + WIRE_HDR_BYTES, *end = o->out + o->out_len;
	bool names_class =
		kind == SPL_REC_ACK || kind == SPL_REC_CREDIT || kind == SPL_REC_CREDIT_WANTED;

	for (; p < end; p += record_size(p))
		if (p[0] == kind && (!names_class || p[1] == cls))
			return p;
	return NULL;
}

void raw_begin(struct raw *r, enum wire_class cls, uint64_t number)
{
	struct wire_hdr h = {.kind = SPL_PKT_FLOW,
			     .cls = (uint8_t)cls,
			     .src_lane = ONE_PEER,
			     .dst_lane = ONE_LANE,
			     .id = ONE_RX_ID,
			     .number = number};

	wire_hdr_put(r->b, &h);
	r->len = WIRE_HDR_BYTES;
}

static uint8_t *raw_add(struct raw *r, uint32_t bytes)
{
	uint8_t *p = r->b + r->len;

	memset(p, 0, bytes);
	r->len += bytes;
	return p;
}

void raw_message(struct raw *r, uint32_t seq, uint32_t len)
{
	uint8_t *p = raw_add(r, WIRE_MESSAGE_BYTES + len);

	p[0] = SPL_REC_MESSAGE;
	wire_store_u16(p + 2, (uint16_t)len);
	wire_store_u32(p + 4, seq);
	for (uint32_t i = 0; i < len; i++)
		p[WIRE_MESSAGE_BYTES + i] = raw_byte(seq, i);
}

void raw_fragment(struct raw *r, uint32_t seq, uint32_t off, uint32_t len, uint32_t total)
{
	uint8_t *p = raw_add(r, WIRE_FRAGMENT_BYTES + len);

	p[0] = SPL_REC_FRAGMENT;
	wire_store_u16(p + 2, (uint16_t)len);
	wire_store_u32(p + 4, seq);
	wire_store_u32(p + 8, off);
	wire_store_u32(p + 12, total);
	for (uint32_t i = 0; i < len; i++)
		p[WIRE_FRAGMENT_BYTES + i] = raw_byte(seq, off + i);
}

void raw_ack(struct raw *r, enum wire_class cls, uint64_t largest, uint16_t n)
{
	uint8_t *p = raw_add(r, WIRE_ACK_BYTES + WIRE_ACK_RANGE_BYTES);

	p[0] = SPL_REC_ACK;
	p[1] = (uint8_t)cls;
	p[2] = 1;
	wire_store_u64(p + 8, largest);
	wire_store_u16(p + WIRE_ACK_BYTES + 2, n);
}

void raw_credit(struct raw *r, unsigned kind, enum wire_class cls, uint16_t epoch, uint64_t limit)
{
	uint8_t *p = raw_add(r, WIRE_CREDIT_BYTES);

	p[0] = (uint8_t)kind;
	p[1] = (uint8_t)cls;
	wire_store_u16(p + 2, epoch);
	wire_store_u64(p + 8, limit);
}

void raw_ping(struct raw *r)
{
	raw_add(r, WIRE_PING_BYTES)[0] = SPL_REC_PING;
}
