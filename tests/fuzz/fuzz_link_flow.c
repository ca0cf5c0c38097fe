/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of fuzz_link: one flow, whose peer is the input. */
#include "dataplane/link/flow.h"
#include "tests/fuzz/fuzz_link.h"

#define RX_ID 0x1234567890120001ULL
#define SINK  8
#define POOL  (1 << 20)

struct world {
	struct flow *f;
	void *mem, *before;
	struct flow_params p;
	struct flow_msg msgs[SINK];
	struct flow_sink sink;
	uint64_t now, pool[WIRE_CLASSES], delivered[WIRE_CLASSES];
	int64_t mems, bufs, sends;
	uint32_t mem_fail;
};

static void env_sent(void *host, void *handle, bool acked)
{
	struct world *w = host;

	w->sends--;
	free(handle);
}

static void *env_mem_get(void *host, size_t bytes)
{
	struct world *w = host;

	if (w->mem_fail > 0) {
		w->mem_fail--;
		return NULL;
	}
	w->mems++;
	return malloc(bytes);
}

static void env_mem_put(void *host, void *mem)
{
	struct world *w = host;

	w->mems--;
	free(mem);
}

/* A buffer begins with its references. */
static void env_buf_put(void *host, void *buf)
{
	struct world *w = host;
	uint64_t *refs = buf;

	w->bufs--;
	FUZZ_CHECK(*refs > 0);
	if (--*refs == 0)
		free(refs);
}

static uint64_t env_take(void *host, enum wire_class cls, uint64_t bytes)
{
	struct world *w = host;
	uint64_t got = bytes < w->pool[cls] ? bytes : w->pool[cls];

	w->pool[cls] -= got;
	return got;
}

static void env_give(void *host, enum wire_class cls, uint64_t bytes)
{
	struct world *w = host;

	w->pool[cls] += bytes;
	FUZZ_CHECK(w->pool[cls] <= POOL);
}

static bool env_tight(void *host, enum wire_class cls)
{
	return false;
}

static const struct flow_env env = {env_sent, env_mem_get, env_mem_put, env_buf_put,
				    env_take, env_give,	   env_tight};

static void start(struct world *w)
{
	memset(w, 0, sizeof(*w));
	flow_params_default(&w->p);
	w->p.rx_id = w->p.tx_id = RX_ID;
	w->p.lane = w->p.peer_lane = 1;
	w->p.msg_bytes = w->p.peer_msg_bytes = 20000;
	w->p.window_packets = 8;
	w->p.window_initial = 4;
	for (int c = 0; c < WIRE_CLASSES; c++) {
		w->p.cls[c].rx_slots = w->p.cls[c].peer_window = 16;
		w->p.cls[c].tx_slots = 4;
		w->p.cls[c].credit_min = w->p.cls[c].peer_credit = 4096;
		w->p.cls[c].credit_max = 40960;
		w->pool[c] = POOL;
	}
	w->now = 1000000000;
	w->mem = aligned_alloc(64, flow_bytes(&w->p));
	w->before = malloc(flow_bytes(&w->p));
	w->f = flow_init(w->mem, &w->p, &env, w);
	FUZZ_CHECK(w->f && w->before);
	w->sink = (struct flow_sink){.msgs = w->msgs, .room = SINK};
}

static void consume(struct world *w)
{
	for (uint32_t i = 0; i < w->sink.n; i++) {
		const struct flow_msg *m = &w->msgs[i];

		FUZZ_CHECK(m->len <= w->p.msg_bytes && m->charge == wire_charge(m->len));
		if (m->is_mem)
			env_mem_put(w, m->ref);
		else
			env_buf_put(w, m->ref);
		flow_consumed(w->f, m->cls, m->charge);
	}
	w->sink.n = 0;
}

/* Every message of this packet lies in it. */
static void check_sink(const struct world *w, uint32_t from, const void *buf, const uint8_t *pkt,
		       uint32_t len)
{
	for (uint32_t i = from; i < w->sink.n; i++) {
		const struct flow_msg *m = &w->msgs[i];

		if (m->ref == buf)
			FUZZ_CHECK(m->data >= pkt && m->data + m->len <= pkt + len);
	}
}

static void receive(struct world *w, struct fuzz_in *in, bool fix_header)
{
	uint32_t len = fuzz_u16(in) % 1400, had = w->sink.n;
	struct wire_hdr h = {.kind = SPL_PKT_FLOW, .src_lane = 1, .dst_lane = 1, .id = RX_ID};
	struct flow_rx_result r;
	uint64_t *buf;
	uint8_t *pkt;

	if (fix_header) {
		h.cls = fuzz_u8(in) & 1;
		h.number = fuzz_u16(in);
	}
	if (len > in->left)
		len = (uint32_t)in->left;
	buf = malloc(sizeof(*buf) + WIRE_HDR_BYTES + len);
	pkt = (uint8_t *)(buf + 1);
	if (fix_header)
		wire_hdr_put(pkt, &h);
	memcpy(pkt + (fix_header ? WIRE_HDR_BYTES : 0), in->p, len);
	in->p += len;
	in->left -= len;
	len += fix_header ? WIRE_HDR_BYTES : 0;
	memcpy(w->before, w->mem, flow_bytes(&w->p));
	r = flow_rx(w->f, pkt, len, buf, w->now, &w->sink);
	*buf = 1 + r.refs;
	w->bufs += 1 + r.refs;
	check_sink(w, had, buf, pkt, len);
	if (r.drop != FLOW_NO_DROP) {
		FUZZ_CHECK(r.drop < SPL_DROP_COUNT && r.refs == 0 && w->sink.n == had);
		if (r.drop != SPL_DROP_LINK_MEMORY)
			FUZZ_CHECK(memcmp(w->before, w->mem, flow_bytes(&w->p)) == 0);
	} else {
		FUZZ_CHECK(r.use == SPL_USE_DATA || r.use == SPL_USE_ACK ||
			   r.use == SPL_USE_DUPLICATE);
	}
	env_buf_put(w, buf);
}

static void transmit(struct world *w)
{
	uint8_t out[SPL_DATAGRAM_BYTES];
	enum spl_frame_drop drop;
	enum wire_class cls;
	struct wire_hdr h;
	uint32_t len, n = 0;

	while ((len = flow_tx(w->f, out, sizeof(out), w->now, &cls)) > 0) {
		FUZZ_CHECK(len > WIRE_HDR_BYTES && len <= sizeof(out));
		FUZZ_CHECK(wire_hdr_get(&h, out, len, &drop) == 0 && h.cls == cls);
		FUZZ_CHECK(++n < 100);
	}
}

static void queue(struct world *w, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	uint32_t len = how & 0x40 ? (how & 0x3f) * 300u : how & 0x3f;
	uint8_t *m = calloc(1, len + 1);

	if (flow_send(w->f, how >> 7, m, len, m) == 0)
		w->sends++;
	else
		free(m);
}

void fuzz_link_flow(struct fuzz_in *in)
{
	struct flow_stats s;
	struct world w;

	start(&w);
	for (int ops = 0; in->left > 0 && ops < 200; ops++) {
		uint8_t op = fuzz_u8(in);

		if (op < 160)
			receive(&w, in, true);
		else if (op < 170)
			receive(&w, in, false);
		else if (op < 190)
			queue(&w, in);
		else if (op < 210)
			transmit(&w);
		else if (op < 225)
			consume(&w);
		else if (op < 230)
			flow_drain(w.f, &w.sink);
		else if (op < 235)
			w.mem_fail = 1;
		else {
			w.now += (uint64_t)fuzz_u8(in) * 10000000;
			flow_on_timer(w.f, w.now);
		}
		flow_next_timer(w.f);
	}
	consume(&w);
	flow_stats_get(w.f, &s);
	flow_fini(w.f);
	FUZZ_CHECK(w.mems == 0 && w.bufs == 0 && w.sends == 0);
	FUZZ_CHECK(w.pool[WIRE_APP] == POOL && w.pool[WIRE_INFRA] == POOL);
	free(w.mem);
	free(w.before);
}
