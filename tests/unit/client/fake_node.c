/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake node's link: one passive association and a flow to each lane, as a dataplane has them.
 */
#include "tests/unit/client/fake_node.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#define PORT_BASE 4700
#define MSG_BYTES wire_message_bytes(SPL_MESSAGE_BYTES_MAX)

static void env_sent(void *host, void *handle, bool acked)
{
	struct fake *f = host;

	f->out_messages--;
	free(handle);
}

static void *env_mem_get(void *host, size_t bytes)
{
	return malloc(bytes);
}

static void env_mem_put(void *host, void *mem)
{
	free(mem);
}

/* A packet is copied and counted: the first 8 bytes are its references. */
static void env_buf_put(void *host, void *buf)
{
	uint64_t *refs = buf;

	if (--*refs == 0)
		free(buf);
}

static uint64_t env_credit_take(void *host, enum wire_class cls, uint64_t bytes)
{
	struct fake *f = host;
	uint64_t got = bytes < f->credit[cls] ? bytes : f->credit[cls];

	f->credit[cls] -= got;
	return got;
}

static void env_credit_give(void *host, enum wire_class cls, uint64_t bytes)
{
	struct fake *f = host;

	f->credit[cls] += bytes;
}

static const struct flow_env flow_env = {
	.sent = env_sent,
	.mem_get = env_mem_get,
	.mem_put = env_mem_put,
	.buf_put = env_buf_put,
	.credit_take = env_credit_take,
	.credit_give = env_credit_give,
};

static void node_params(struct flow_params *p)
{
	flow_params_default(p);
	p->msg_bytes = MSG_BYTES;
	p->datagram_bytes = SPL_DATAGRAM_BYTES;
	for (unsigned i = 0; i < WIRE_CLASSES; i++) {
		p->cls[i].credit_min = 65536;
		p->cls[i].credit_max = 4u << 20;
	}
}

void fake_node_start(struct fake *f)
{
	struct assoc_env env = {.host = f, .random = fake_random};
	struct flow_params flow;
	struct assoc_params p;
	size_t bytes;

	node_params(&flow);
	assoc_params_default(&p);
	p.slots = 8;
	p.is_passive = true;
	p.lifecycle = f->lifecycle;
	p.lanes = FAKE_LANES;
	p.base_port = PORT_BASE;
	p.window = (uint16_t)flow.cls[0].rx_slots;
	p.msg_bytes = flow.msg_bytes;
	for (unsigned i = 0; i < WIRE_CLASSES; i++) {
		p.credit[i] = flow.cls[i].credit_min;
		f->credit[i] = 64u << 20;
	}
	p.mesh = f->mesh;
	p.rid = f->rid;
	bytes = assoc_bytes(&p);
	CU_ASSERT_FATAL(bytes > 0);
	f->assoc = assoc_init(aligned_alloc(64, (bytes + 63) & ~(size_t)63), &p, &env, f->now_ns);
	CU_ASSERT_FATAL(f->assoc != NULL);
}

static void end_flows(struct fake *f)
{
	for (uint32_t i = 0; i < FAKE_LANES; i++) {
		free(flow_fini(f->flow[i]));
		f->flow[i] = NULL;
		f->kept_charge[i] = 0;
	}
	f->peer = NULL;
}

void fake_node_stop(struct fake *f)
{
	fake_spots_stop(f);
	end_flows(f);
	free(f->assoc);
	f->assoc = NULL;
	CU_ASSERT_EQUAL(f->out_messages, 0);
}

static struct flow *flow_to(struct fake *f, uint32_t lane)
{
	struct flow_params p;
	size_t bytes;

	if (f->flow[lane])
		return f->flow[lane];
	node_params(&p);
	p.rx_id = f->peer->rx_id;
	p.tx_id = f->peer->tx_id;
	p.lane = (uint8_t)lane;
	p.peer_lane = 0;
	p.peer_msg_bytes = f->peer->msg_bytes;
	for (unsigned i = 0; i < WIRE_CLASSES; i++) {
		p.cls[i].peer_window = f->peer->window;
		p.cls[i].peer_credit = f->peer->credit[i];
	}
	bytes = flow_bytes(&p);
	CU_ASSERT_FATAL(bytes > 0);
	f->flow[lane] = flow_init(aligned_alloc(64, (bytes + 63) & ~(size_t)63), &p, &flow_env, f);
	CU_ASSERT_FATAL(f->flow[lane] != NULL);
	return f->flow[lane];
}

static void run_events(struct fake *f)
{
	struct assoc_event e;

	while (assoc_event(f->assoc, f->now_ns, &e)) {
		if (e.type == ASSOC_UP) {
			f->peer = e.peer;
			f->slot = e.slot;
		} else if (e.type == ASSOC_DOWN) {
			if (f->peer && f->slot == e.slot)
				end_flows(f);
			assoc_release(f->assoc, e.slot);
		}
	}
}

static void take_messages(struct fake *f, uint32_t lane, struct flow_sink *sink)
{
	struct flow *flow = f->flow[lane];

	for (uint32_t i = 0; i < sink->n; i++) {
		const struct flow_msg *m = &sink->msgs[i];

		fake_message_in(f, lane, m);
		if (m->is_mem)
			env_mem_put(f, m->ref);
		else
			env_buf_put(f, m->ref);
		if (f->keeps_credit && m->cls == WIRE_APP)
			f->kept_charge[lane] += m->charge;
		else
			flow_consumed(flow, (enum wire_class)m->cls, m->charge);
	}
	sink->n = 0;
}

static void receive_flow(struct fake *f, const struct fake_packet *p)
{
	const uint32_t lane = (uint32_t)(p->port - PORT_BASE) % 128;
	struct flow_msg msgs[64];
	struct flow_sink sink = {.msgs = msgs, .room = 64};
	struct flow_rx_result r;
	uint64_t *buf;
	bool more;

	if (!f->peer || wire_flow_id(p->b) != f->peer->rx_id || lane >= FAKE_LANES)
		return;
	CU_ASSERT_EQUAL(lane, wire_flow_dst_lane(p->b));
	CU_ASSERT_EQUAL((p->port - PORT_BASE) / 128, wire_flow_class(p->b));
	buf = malloc(8 + p->len);
	CU_ASSERT_FATAL(buf != NULL);
	*buf = 1;
	memcpy(buf + 1, p->b, p->len);
	r = flow_rx(flow_to(f, lane), (const uint8_t *)(buf + 1), p->len, buf, f->now_ns, &sink);
	CU_ASSERT_EQUAL(r.drop, FLOW_NO_DROP);
	*buf += r.refs;
	do {
		more = sink.n == sink.room;
		take_messages(f, lane, &sink);
		if (more)
			flow_drain(f->flow[lane], &sink);
	} while (more);
	env_buf_put(f, buf);
}

static void receive(struct fake *f, const struct fake_packet *p)
{
	struct assoc_answer answer;
	enum spl_frame_drop drop;
	struct assoc_addr from;
	struct wire_hdr h;

	CU_ASSERT_EQUAL_FATAL(wire_hdr_get(&h, p->b, p->len, &drop), 0);
	if (h.kind == SPL_PKT_FLOW) {
		receive_flow(f, p);
		return;
	}
	CU_ASSERT_EQUAL(p->port, PORT_BASE + WIRE_PORT_AGENT);
	memset(&from, 7, sizeof(from));
	(void)assoc_rx(f->assoc, &from, p->b, p->len, f->now_ns, &answer);
	if (answer.len)
		fake_to_client(f, answer.b, answer.len, PORT_BASE + WIRE_PORT_AGENT);
	run_events(f);
}

static void transmit(struct fake *f)
{
	struct assoc_addr to;
	enum wire_class cls;
	uint8_t b[1500];
	uint32_t n;

	while ((n = assoc_tx(f->assoc, b, sizeof(b), &to, f->now_ns)) > 0)
		fake_to_client(f, b, n, PORT_BASE + WIRE_PORT_AGENT);
	for (uint32_t i = 0; i < FAKE_LANES; i++) {
		if (!f->flow[i])
			continue;
		if (flow_next_timer(f->flow[i]) <= f->now_ns)
			flow_on_timer(f->flow[i], f->now_ns);
		while ((n = flow_tx(f->flow[i], b, sizeof(b), f->now_ns, &cls)) > 0)
			fake_to_client(f, b, n, (uint16_t)(PORT_BASE + i));
	}
}

void fake_node_run(struct fake *f)
{
	struct fake_packet *p;

	run_events(f);
	while ((p = fake_from_client(f)) != NULL)
		receive(f, p);
	fake_spots_run(f);
	transmit(f);
}

uint64_t fake_node_timer(const struct fake *f)
{
	uint64_t next = assoc_next_timer(f->assoc), spots = fake_spots_timer(f);

	for (uint32_t i = 0; i < FAKE_LANES; i++) {
		uint64_t t = f->flow[i] ? flow_next_timer(f->flow[i]) : UINT64_MAX;

		next = t < next ? t : next;
	}
	return spots < next ? spots : next;
}

void fake_consume(struct fake *f)
{
	f->keeps_credit = false;
	for (uint32_t i = 0; i < FAKE_LANES; i++) {
		if (f->flow[i])
			flow_consumed(f->flow[i], WIRE_APP, (uint32_t)f->kept_charge[i]);
		f->kept_charge[i] = 0;
	}
}
