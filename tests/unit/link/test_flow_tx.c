/* SPDX-License-Identifier: BSD-3-Clause */
/* What a flow sends and when: sharing of packets, acknowledgements, windows, loss, probes, counters
 * at their ends.
 */
#include "one.h"

#include <stdlib.h>

#define POOL (8 << 20)
#define MS   1000000ULL

static uint8_t data[100000];

/* Acknowledges `n` numbers of class `cls` up to `largest`, under our own infrastructure `number`.
 */
static struct flow_rx_result ack(struct one *o, uint64_t number, enum wire_class cls,
				 uint64_t largest, uint16_t n)
{
	struct raw r;

	raw_begin(&r, WIRE_INFRA, number);
	raw_ack(&r, cls, largest, n);
	return one_rx(o, &r);
}

static uint64_t out_number(const struct one *o)
{
	return wire_load_u64(o->out + 16);
}

/* Sends `n` messages of `len` bytes, each in a packet of its own. */
static void send_single(struct one *o, uint32_t n, uint32_t len)
{
	for (uint32_t i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(flow_send(o->f, WIRE_APP, data, len, NULL), 0);
		CU_ASSERT(one_tx(o) > 0);
		CU_ASSERT_EQUAL(o->out_cls, WIRE_APP);
	}
}

static void test_tx_header_and_sharing(void)
{
	struct wire_hdr h;
	enum spl_frame_drop drop;
	struct one o;

	one_start(&o, NULL, POOL);
	for (uint32_t i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 64, NULL), 0);
	/* 16 of 72 bytes fit 1160 */
	CU_ASSERT_EQUAL(one_tx(&o), WIRE_HDR_BYTES + 16 * 72);
	CU_ASSERT_EQUAL(wire_hdr_get(&h, o.out, o.out_len, &drop), 0);
	CU_ASSERT_EQUAL(h.kind, SPL_PKT_FLOW);
	CU_ASSERT_EQUAL(h.cls, WIRE_APP);
	CU_ASSERT_EQUAL(h.id, ONE_TX_ID);
	CU_ASSERT_EQUAL(h.src_lane, ONE_LANE);
	CU_ASSERT_EQUAL(h.dst_lane, ONE_PEER);
	CU_ASSERT_EQUAL(h.number, 0);
	/* nothing waits for company */
	CU_ASSERT_EQUAL(one_tx(&o), WIRE_HDR_BYTES + 4 * 72);
	CU_ASSERT_EQUAL(out_number(&o), 1);
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	/* a large one, its tail, and a small one behind the tail */
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 1500, NULL), 0);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 10, NULL), 0);
	CU_ASSERT_EQUAL(one_tx(&o), 1200);
	CU_ASSERT_EQUAL(one_tx(&o), WIRE_HDR_BYTES + 16 + (1500 - 1144) + 18);
	one_stop(&o);
}

static void test_tx_acknowledges_in_batches(void)
{
	const uint8_t *rec;
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	for (uint32_t i = 0; i < 16; i++) {
		CU_ASSERT_EQUAL(one_tx(&o), 0);
		raw_begin(&r, WIRE_APP, i);
		raw_message(&r, i, 8);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	}
	CU_ASSERT(one_tx(&o) > 0);
	CU_ASSERT_EQUAL(o.out_cls, WIRE_INFRA);
	rec = one_record(&o, SPL_REC_ACK, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(rec[2], 1);
	CU_ASSERT_EQUAL(wire_load_u64(rec + 8), 15);
	CU_ASSERT_EQUAL(wire_load_u32(rec + 16), 16);
	CU_ASSERT_PTR_NULL(one_record(&o, SPL_REC_ACK, WIRE_INFRA));
	/* one alone: after the delay, which is told */
	raw_begin(&r, WIRE_APP, 16);
	raw_message(&r, 16, 8);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	CU_ASSERT_EQUAL(flow_next_timer(o.f), o.now + o.p.ack_delay_ns);
	o.now += o.p.ack_delay_ns;
	flow_on_timer(o.f, o.now);
	CU_ASSERT(one_tx(&o) > 0);
	rec = one_record(&o, SPL_REC_ACK, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(wire_load_u32(rec + 4), o.p.ack_delay_ns);
	/* a gap: at once */
	raw_begin(&r, WIRE_APP, 18);
	raw_message(&r, 18, 8);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	CU_ASSERT(one_tx(&o) > 0);
	rec = one_record(&o, SPL_REC_ACK, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(rec[2], 2);
	CU_ASSERT_EQUAL(wire_load_u32(rec + 16), 1);
	CU_ASSERT_EQUAL(wire_load_u32(rec + 20), 1 << 16 | 17);
	one_stop(&o);
}

/* An acknowledgement rides with a reply, and neither it nor credit asks for an answer. */
static void test_tx_acknowledgement_rides(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 8);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_INFRA, data, 30, NULL), 0);
	CU_ASSERT(one_tx(&o) > 0);
	CU_ASSERT_PTR_NOT_NULL(one_record(&o, SPL_REC_ACK, WIRE_APP));
	CU_ASSERT_PTR_NOT_NULL(one_record(&o, SPL_REC_MESSAGE, WIRE_INFRA));
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_INFRA, 0, 1).use, SPL_USE_ACK);
	raw_begin(&r, WIRE_INFRA, 1);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 1 << 20);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	CU_ASSERT_EQUAL(flow_next_timer(o.f), FLOW_NEVER);
	CU_ASSERT(flow_is_idle(o.f));
	raw_begin(&r, WIRE_INFRA, 2);
	raw_ping(&r);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_FALSE(flow_is_idle(o.f));
	one_stop(&o);
}

/* Many gaps: the newest 32 ranges, in one datagram. */
static void test_tx_many_ranges(void)
{
	const uint8_t *rec;
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	for (uint32_t i = 0; i < 60; i++) {
		raw_begin(&r, WIRE_APP, 7 + 3 * i);
		raw_ping(&r);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	}
	CU_ASSERT(one_tx(&o) > 0);
	rec = one_record(&o, SPL_REC_ACK, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(rec[2], 32);
	CU_ASSERT_EQUAL(wire_load_u64(rec + 8), 7 + 3 * 59);
	for (uint32_t i = 1; i < 32; i++)
		CU_ASSERT_EQUAL(wire_load_u32(rec + 16 + 4 * i), 2 << 16 | 1);
	one_stop(&o);
}

static void test_tx_window_of_packets(void)
{
	struct flow_params p;
	struct flow_stats s;
	struct one o;
	uint32_t n = 0;

	one_params(&p);
	p.window_packets = 16;
	p.window_initial = 4;
	one_start(&o, &p, POOL);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 100000, NULL), 0);
	while (one_tx(&o) > 0)
		n++;
	CU_ASSERT_EQUAL(n, 4);
	/* two acknowledged: two more may be in flight, and the window opens by two */
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, 1, 2).use, SPL_USE_ACK);
	for (n = 0; one_tx(&o) > 0;)
		n++;
	CU_ASSERT_EQUAL(n, 4);
	for (uint64_t k = 0; k < 12; k++) {
		CU_ASSERT_EQUAL(ack(&o, 1 + k, WIRE_APP, 2 + k, 1).use, SPL_USE_ACK);
		while (one_tx(&o) > 0)
			;
		flow_stats_get(o.f, &s);
		CU_ASSERT(s.flight_packets <= 16);
	}
	CU_ASSERT_EQUAL(s.flight_packets, 16);
	one_stop(&o);
}

static void test_tx_window_of_bytes_and_messages(void)
{
	struct flow_params p;
	struct one o;
	uint32_t n = 0;

	one_params(&p);
	p.window_bytes = 5000;
	one_start(&o, &p, POOL);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 100000, NULL), 0);
	while (one_tx(&o) > 0)
		n++;
	CU_ASSERT_EQUAL(n, 4);
	one_stop(&o);
	/* the peer's message window */
	one_params(&p);
	p.cls[WIRE_APP].peer_window = 16;
	one_start(&o, &p, POOL);
	for (uint32_t i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 1100, NULL), 0);
	CU_ASSERT_EQUAL(flow_send_room(o.f, WIRE_APP), 0);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 1100, NULL), -EAGAIN);
	for (n = 0; one_tx(&o) > 0;)
		n++;
	CU_ASSERT_EQUAL(n, 16);
	/* the second is there and not the first: no room yet */
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, 1, 1).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	CU_ASSERT_EQUAL(ack(&o, 1, WIRE_APP, 1, 2).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(flow_send_room(o.f, WIRE_APP), 2);
	for (n = 0; one_tx(&o) > 0;)
		n++;
	CU_ASSERT_EQUAL(n, 2);
	one_stop(&o);
}

/* Three later numbers acknowledged: lost, and sent again under a new number with the same bytes. */
static void test_tx_loss_by_packets(void)
{
	uint8_t first[2000];
	struct flow_stats s;
	uint32_t len;
	struct one o;

	one_start(&o, NULL, POOL);
	send_single(&o, 1, 700);
	len = o.out_len;
	memcpy(first, o.out, len);
	send_single(&o, 3, 5);
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, 2, 2).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	CU_ASSERT_EQUAL(ack(&o, 1, WIRE_APP, 3, 3).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(one_tx(&o), len);
	CU_ASSERT_EQUAL(out_number(&o), 4);
	CU_ASSERT(memcmp(o.out + WIRE_HDR_BYTES, first + WIRE_HDR_BYTES, len - WIRE_HDR_BYTES) ==
		  0);
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	CU_ASSERT_EQUAL(o.acked, 3);
	/* the first arrives after all: its bytes belong to the new packet now, counted once */
	CU_ASSERT_EQUAL(ack(&o, 2, WIRE_APP, 3, 4).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(o.acked, 3);
	CU_ASSERT_EQUAL(ack(&o, 3, WIRE_APP, 4, 5).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(o.acked, 4);
	CU_ASSERT_EQUAL(ack(&o, 4, WIRE_APP, 4, 5).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(o.acked, 4);
	flow_stats_get(o.f, &s);
	CU_ASSERT_EQUAL(s.retransmitted, 1);
	CU_ASSERT_EQUAL(s.flight_packets, 0);
	CU_ASSERT(flow_is_idle(o.f));
	one_stop(&o);
}

/* One later number acknowledged and 9/8 of the round trip over. */
static void test_tx_loss_by_time(void)
{
	struct one o;
	uint64_t sent;

	one_start(&o, NULL, POOL);
	send_single(&o, 1, 10);
	sent = o.now;
	o.now += MS / 10;
	send_single(&o, 1, 10);
	o.now += 8 * MS;
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, 1, 1).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(flow_next_timer(o.f), sent + 9 * MS);
	o.now = sent + 9 * MS - 1;
	flow_on_timer(o.f, o.now);
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	o.now = sent + 9 * MS;
	flow_on_timer(o.f, o.now);
	CU_ASSERT(one_tx(&o) > 0);
	CU_ASSERT_EQUAL(out_number(&o), 2);
	one_stop(&o);
}

/* Silence: probes with doubling pauses, the two oldest each time, until an answer comes. */
static void test_tx_probes_back_off(void)
{
	struct flow_stats s;
	uint64_t before, wait, last = 0;
	struct one o;

	one_start(&o, NULL, POOL);
	send_single(&o, 5, 10);
	for (int i = 0; i < 6; i++) {
		uint32_t n = 0;

		before = o.now;
		o.now = flow_next_timer(o.f);
		wait = o.now - before;
		CU_ASSERT(i == 0 || wait == 2 * last);
		last = wait;
		flow_on_timer(o.f, o.now);
		while (one_tx(&o) > 0)
			n++;
		CU_ASSERT_EQUAL(n, 2);
	}
	flow_stats_get(o.f, &s);
	CU_ASSERT_EQUAL(s.probes, 6);
	CU_ASSERT_EQUAL(s.flight_packets, 5);
	/* an answer to the last probe: the pauses start anew, and the older ones are lost */
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, out_number(&o), 1).use, SPL_USE_ACK);
	flow_stats_get(o.f, &s);
	CU_ASSERT(s.flight_packets < 4);
	while (one_tx(&o) > 0)
		;
	before = o.now;
	CU_ASSERT(flow_next_timer(o.f) - before < last);
	one_stop(&o);
}

static void test_tx_round_trip(void)
{
	struct flow_stats s;
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	send_single(&o, 1, 10);
	o.now += 3 * MS;
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, 0, 1).use, SPL_USE_ACK);
	flow_stats_get(o.f, &s);
	CU_ASSERT_EQUAL(s.srtt_ns, 3 * MS);
	CU_ASSERT_EQUAL(s.rttvar_ns, 3 * MS / 2);
	/* 5 ms, of which the peer held it for 1 */
	send_single(&o, 1, 10);
	o.now += 5 * MS;
	raw_begin(&r, WIRE_INFRA, 1);
	raw_ack(&r, WIRE_APP, 1, 1);
	wire_store_u32(r.b + WIRE_HDR_BYTES + 4, MS);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	flow_stats_get(o.f, &s);
	CU_ASSERT_EQUAL(s.srtt_ns, 3 * MS - 3 * MS / 8 + 4 * MS / 8);
	CU_ASSERT_EQUAL(s.rtt_min_ns, 3 * MS);
	one_stop(&o);
}

/* Acknowledgements of what was never sent, above and below. */
static void test_tx_ack_of_unsent(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	one_params(&p);
	p.cls[WIRE_APP].pn_tx = 1000;
	one_start(&o, &p, POOL);
	send_single(&o, 3, 10);
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ack(&r, WIRE_APP, 1003, 1);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_ACK));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ack(&r, WIRE_APP, 1002, 4);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_ACK));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ack(&r, WIRE_APP, 999, 1);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_ACK));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ack(&r, WIRE_INFRA, 0, 1);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_ACK));
	CU_ASSERT_EQUAL(o.acked, 0);
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, 1002, 3).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(o.acked, 3);
	one_stop(&o);
}

/* Packet numbers never wrap: at their end the flow sends no more, and says so. */
static void test_tx_numbers_run_out(void)
{
	struct flow_params p;
	struct one o;
	uint32_t n = 0;

	one_params(&p);
	p.cls[WIRE_APP].pn_tx = UINT64_MAX - 3;
	one_start(&o, &p, POOL);
	for (uint32_t i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 1100, NULL), 0);
	while (one_tx(&o) > 0) {
		CU_ASSERT_EQUAL(out_number(&o), UINT64_MAX - 3 + n);
		n++;
	}
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 10, NULL), -EPIPE);
	CU_ASSERT_EQUAL(ack(&o, 0, WIRE_APP, UINT64_MAX - 1, 3).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(o.acked, 3);
	one_stop(&o);
}

static void test_flow_parameters(void)
{
	struct flow_params p;

	one_params(&p);
	CU_ASSERT(flow_bytes(&p) > 0);
	p.cls[WIRE_APP].tx_slots = 48;
	CU_ASSERT_EQUAL(flow_bytes(&p), 0);
	one_params(&p);
	p.cls[WIRE_INFRA].credit_max = wire_charge(p.msg_bytes) - 1;
	CU_ASSERT_EQUAL(flow_bytes(&p), 0);
	one_params(&p);
	p.datagram_bytes = 255;
	CU_ASSERT_EQUAL(flow_bytes(&p), 0);
	one_params(&p);
	p.window_initial = p.window_packets + 1;
	CU_ASSERT_EQUAL(flow_bytes(&p), 0);
	one_params(&p);
	p.ack_delay_ns = 26 * MS;
	CU_ASSERT_EQUAL(flow_bytes(&p), 0);
}

/* Flows of many peers, whose memory begins at the same place of a page each, do not share lines. */
static void test_flow_places(void)
{
	enum { PAGE = 4096, LINE = 64 };
	bool seen[PAGE / LINE] = {false};
	struct flow_params p;
	struct one o;

	one_start(&o, NULL, POOL);
	one_params(&p);
	p.cls[WIRE_APP].credit_min = p.cls[WIRE_INFRA].credit_min = wire_charge(0);
	for (uint64_t slot = 0; slot < PAGE / LINE; slot++) {
		void *mem = aligned_alloc(PAGE, (flow_bytes(&p) + PAGE - 1) / PAGE * PAGE);
		struct flow *f;
		size_t line;

		p.rx_id = 0x5a5a0000 | slot;
		f = one_second(&o, mem, &p);
		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		line = (size_t)((uint8_t *)f - (uint8_t *)mem) / LINE;
		CU_ASSERT_FATAL(line < PAGE / LINE);
		CU_ASSERT_FALSE(seen[line]);
		seen[line] = true;
		CU_ASSERT_PTR_EQUAL(flow_fini(f), mem);
		free(mem);
	}
	CU_ASSERT_PTR_NULL(flow_fini(NULL));
	one_stop(&o);
}

static const struct t_case cases[] = {
	T(test_tx_header_and_sharing),
	T(test_tx_acknowledges_in_batches),
	T(test_tx_acknowledgement_rides),
	T(test_tx_many_ranges),
	T(test_tx_window_of_packets),
	T(test_tx_window_of_bytes_and_messages),
	T(test_tx_loss_by_packets, "S-LIM-14"),
	T(test_tx_loss_by_time),
	T(test_tx_probes_back_off),
	T(test_tx_round_trip),
	T(test_tx_ack_of_unsent),
	T(test_tx_numbers_run_out),
	T(test_flow_parameters),
	T(test_flow_places),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("flow_tx", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
