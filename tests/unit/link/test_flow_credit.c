/* SPDX-License-Identifier: BSD-3-Clause */
/* Credit of whole messages (S-LIM-10, S-LIM-14): granted from a pool, charged by bytes pinned,
 * never overrun, asked for, grown, and given back.
 */
#include "one.h"

#include <stdlib.h>

#define POOL   (1 << 20)
#define SECOND 1000000000ULL

/* 16 KiB minimum, 64 KiB at most, small messages. */
static void small_params(struct flow_params *p)
{
	one_params(p);
	p->msg_bytes = p->peer_msg_bytes = 40000;
	for (int c = 0; c < WIRE_CLASSES; c++) {
		p->cls[c].credit_min = p->cls[c].peer_credit = 16384;
		p->cls[c].credit_max = 65536;
	}
}

static void test_credit_charge(void)
{
	CU_ASSERT_EQUAL(wire_charge(0), 256);
	CU_ASSERT_EQUAL(wire_charge(192), 256);
	CU_ASSERT_EQUAL(wire_charge(193), 512);
	CU_ASSERT_EQUAL(wire_charge(1000), 1280);
	CU_ASSERT_EQUAL(wire_charge(1048576), 1048832);
	CU_ASSERT_EQUAL(wire_charge(16777216 + 1584), 16779008);
}

/* A peer that goes beyond its credit is refused, to the byte, whole or in pieces. */
static void test_credit_overrun(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_fragment(&r, 1, 0, 8, 16384 - 64 + 1); /* 16640 */
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_CREDIT));
	CU_ASSERT_EQUAL(o.mems, 0);
	raw_begin(&r, WIRE_APP, 0);
	raw_fragment(&r, 0, 0, 8, 16384 - 64 - 256);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0)); /* all but 256 */
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 1, 193);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_CREDIT));
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 1, 50);
	raw_message(&r, 2, 50);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_CREDIT));
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 1, 192);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	/* nothing left; a message in order neither */
	raw_begin(&r, WIRE_APP, 2);
	raw_message(&r, 2, 0);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_CREDIT));
	/* the other class has its own */
	raw_begin(&r, WIRE_INFRA, 0);
	raw_message(&r, 0, 1000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	one_stop(&o);
}

/* On the fast path too: whole messages in order, up to the last byte of credit and not one more. */
static void test_credit_overrun_in_order(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	small_params(&p);
	p.cls[WIRE_APP].rx_slots = 128;
	one_start(&o, &p, POOL);
	for (uint32_t i = 0; i < 64; i++) {
		raw_begin(&r, WIRE_APP, i);
		raw_message(&r, i, 100);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	}
	raw_begin(&r, WIRE_APP, 64);
	raw_message(&r, 64, 100);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_CREDIT));
	/* it is granted again when a handler is at its end, not before (S-LIM-3) */
	flow_consumed(o.f, WIRE_APP, 256);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	flow_consumed(o.f, WIRE_APP, 256 * 64);
	for (uint32_t i = 0; i < o.sink.n; i++)
		o.bufs--;
	CU_ASSERT_EQUAL(o.bufs, 0);
	for (uint32_t i = 0; i < o.sink.n; i++)
		free(o.msgs[i].ref);
	o.sink.n = 0;
	one_stop(&o);
}

/* The sender begins a message only when its whole charge is there, and asks for the rest. */
static void test_credit_sender_waits(void)
{
	static uint8_t data[20000];
	struct flow_params p;
	const uint8_t *rec;
	struct one o;
	struct raw r;
	uint64_t asked;
	uint32_t n = 0;

	small_params(&p);
	one_start(&o, &p, POOL);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 10000, NULL), 0);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 10000, NULL), 0);
	while (one_tx(&o) > 0 && o.out_cls == WIRE_APP)
		n++;
	CU_ASSERT_EQUAL(n, 9); /* the first message, nothing of the second */
	CU_ASSERT_EQUAL(o.out_cls, WIRE_INFRA);
	rec = one_record(&o, SPL_REC_CREDIT_WANTED, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(wire_load_u64(rec + 8), 2 * wire_charge(10000));
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	/* it asks again while it has no answer */
	asked = o.now;
	for (int i = 0; i < 3; i++) {
		do {
			o.now = flow_next_timer(o.f);
			flow_on_timer(o.f, o.now);
			CU_ASSERT_FATAL(o.now < asked + SECOND);
			while (one_tx(&o) > 0 && !one_record(&o, SPL_REC_CREDIT_WANTED, WIRE_APP))
				;
		} while (o.out_len == 0);
	}
	/* one byte too little is too little */
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 2 * wire_charge(10000) - 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	while (one_tx(&o) > 0)
		CU_ASSERT(o.out_cls == WIRE_INFRA ||
			  wire_load_u32(o.out + WIRE_HDR_BYTES + 4) == 0);
	raw_begin(&r, WIRE_INFRA, 1);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 2 * wire_charge(10000));
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	for (n = 0; one_tx(&o) > 0;)
		n += o.out_cls == WIRE_APP && wire_load_u32(o.out + WIRE_HDR_BYTES + 4) == 1;
	CU_ASSERT_EQUAL(n, 9);
	/* a smaller or an older grant takes nothing back */
	raw_begin(&r, WIRE_INFRA, 2);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	one_stop(&o);
}

static uint64_t granted(struct one *o)
{
	const uint8_t *rec;

	while (one_tx(o) > 0) {
		rec = one_record(o, SPL_REC_CREDIT, WIRE_APP);
		if (rec)
			return wire_load_u64(rec + 8);
	}
	return 0;
}

/* Wishes are met whole from the pool, up to the flow's bound, or not at all. */
static void test_credit_grows(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, 16384 + 20000);
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 16384 + 20001);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(granted(&o), 0);
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], 20000); /* no part of it is kept */
	raw_begin(&r, WIRE_INFRA, 1);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 16384 + 20000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(granted(&o), 16384 + 20000);
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], 0);
	/* beyond the bound of the flow: no; nor for a number from nowhere */
	o.pool[WIRE_APP] += POOL;
	o.pool[WIRE_INFRA] += POOL;
	o.pool_size += POOL;
	raw_begin(&r, WIRE_INFRA, 2);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 65537);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	raw_begin(&r, WIRE_INFRA, 3);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, INT64_MAX);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(granted(&o), 0);
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], POOL);
	one_stop(&o);
}

/* What could not be granted is, as soon as a handler ends. */
static void test_credit_grows_at_terminal(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 8000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 65536 + 4096);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(granted(&o), 0);
	one_consume(&o);
	CU_ASSERT(granted(&o) >= 65536 + 4096);
	one_stop(&o);
}

/* Every flow keeps its minimum, whatever the others take; without it there is no flow. */
static void test_credit_minimum(void)
{
	struct flow_params p;
	static struct one a, b;
	void *mem;
	struct raw r;

	small_params(&p);
	one_start(&a, &p, 16384);
	CU_ASSERT_EQUAL(a.pool[WIRE_APP], 0);
	one_start(&b, &p, 16384 * 2 - 1);
	/* a second flow on the pool of b does not come up, and takes nothing */
	mem = aligned_alloc(64, flow_bytes(&p));
	CU_ASSERT_PTR_NULL(one_second(&b, mem, &p));
	CU_ASSERT_EQUAL(b.pool[WIRE_APP], 16383);
	CU_ASSERT_EQUAL(b.pool[WIRE_INFRA], 16383);
	free(mem);
	/* with an empty pool the minimum still goes round */
	for (uint32_t i = 0; i < 300; i++) {
		raw_begin(&r, WIRE_APP, i);
		raw_message(&r, i, 1000);
		CU_ASSERT(one_uses(&a, &r, SPL_USE_DATA, 1));
		one_consume(&a);
	}
	one_stop(&a);
	one_stop(&b);
}

/* A tight pool gets back what is above the minimum as handlers end. */
static void test_credit_tight_pool(void)
{
	struct flow_params p;
	struct flow_stats s;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, POOL);
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 65536);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(granted(&o), 65536);
	o.is_tight = true;
	for (uint32_t i = 0; i < 30; i++) {
		raw_begin(&r, WIRE_APP, i);
		raw_message(&r, i, 2000);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
		one_consume(&o);
	}
	flow_stats_get(o.f, &s);
	CU_ASSERT(s.credit_reserved[WIRE_APP] >= 16384);
	CU_ASSERT(s.credit_reserved[WIRE_APP] < 16384 + wire_charge(2000));
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], POOL - s.credit_reserved[WIRE_APP]);
	one_stop(&o);
}

/* Sender side of giving back: a second of idleness, a new epoch, old grants count no more. */
static void test_credit_idle_sender_gives_back(void)
{
	static uint8_t data[20000];
	struct flow_params p;
	const uint8_t *rec;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, POOL);
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 60000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 1000, NULL), 0);
	CU_ASSERT(one_tx(&o) > 0);
	raw_begin(&r, WIRE_INFRA, 1);
	raw_ack(&r, WIRE_APP, 0, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(o.acked, 1);
	CU_ASSERT_EQUAL(flow_next_timer(o.f), o.now + SECOND);
	o.now += SECOND;
	flow_on_timer(o.f, o.now);
	CU_ASSERT(one_tx(&o) > 0);
	rec = one_record(&o, SPL_REC_CREDIT_WANTED, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(wire_load_u16(rec + 2), 1);
	CU_ASSERT_EQUAL(wire_load_u64(rec + 8), wire_charge(1000) + 16384);
	/* a grant of the old epoch, late: not counted; 16384 are left */
	raw_begin(&r, WIRE_INFRA, 2);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 60000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 16384 - 63, NULL), 0);
	while (one_tx(&o) > 0)
		CU_ASSERT_EQUAL(o.out_cls, WIRE_INFRA);
	/* a grant of the new one: counted */
	raw_begin(&r, WIRE_INFRA, 3);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 1, wire_charge(1000) + 16640);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT(one_tx(&o) > 0 && o.out_cls == WIRE_APP);
	one_stop(&o);
}

/* It knows of nothing to give back, but it has asked: what its handlers' ends gave it, and it was
 * not told yet, is reserved for it. */
static void test_credit_untold_is_given_back(void)
{
	static uint8_t data[20000];
	struct flow_params p;
	const uint8_t *rec;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, POOL);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 10000, NULL), 0);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 10000, NULL), 0);
	while (one_tx(&o) > 0)
		;
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 2 * wire_charge(10000));
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	while (one_tx(&o) > 0)
		;
	raw_begin(&r, WIRE_INFRA, 1);
	raw_ack(&r, WIRE_APP, 17, 18);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL_FATAL(o.acked, 2);
	o.now += SECOND;
	flow_on_timer(o.f, o.now);
	CU_ASSERT(one_tx(&o) > 0);
	rec = one_record(&o, SPL_REC_CREDIT_WANTED, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(wire_load_u16(rec + 2), 1);
	CU_ASSERT_EQUAL(wire_load_u64(rec + 8), 2 * wire_charge(10000));
	/* once: there is nothing more to give back */
	raw_begin(&r, WIRE_INFRA, 2);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 1, 2 * wire_charge(10000) + 16384);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, data, 100, NULL), 0);
	while (one_tx(&o) > 0)
		;
	raw_begin(&r, WIRE_INFRA, 3);
	raw_ack(&r, WIRE_APP, 18, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	o.now += SECOND;
	flow_on_timer(o.f, o.now);
	while (one_tx(&o) > 0)
		CU_ASSERT_PTR_NULL(one_record(&o, SPL_REC_CREDIT_WANTED, WIRE_APP));
	one_stop(&o);
}

/* Receiver side: the pool has it back at once, the new epoch is confirmed, nonsense refused. */
static void test_credit_given_back(void)
{
	struct flow_params p;
	const uint8_t *rec;
	struct one o;
	struct raw r;

	small_params(&p);
	one_start(&o, &p, POOL);
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 65536);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(granted(&o), 65536);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 1000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	one_consume(&o);
	/* less than was already used: refused */
	raw_begin(&r, WIRE_INFRA, 1);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 1, wire_charge(1000) - 1);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	raw_begin(&r, WIRE_INFRA, 1);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 1, wire_charge(1000) + 16384);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], POOL - 16384);
	while (one_tx(&o) > 0 && !one_record(&o, SPL_REC_CREDIT, WIRE_APP))
		;
	rec = one_record(&o, SPL_REC_CREDIT, WIRE_APP);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rec);
	CU_ASSERT_EQUAL(wire_load_u16(rec + 2), 1);
	CU_ASSERT_EQUAL(wire_load_u64(rec + 8), wire_charge(1000) + 16384);
	/* a wish of the old epoch comes late: no effect */
	raw_begin(&r, WIRE_INFRA, 2);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 0, 65536);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], POOL - 16384);
	/* never below the minimum */
	raw_begin(&r, WIRE_INFRA, 3);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_APP, 2, wire_charge(1000));
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT_EQUAL(o.pool[WIRE_APP], POOL - 16384);
	one_stop(&o);
}

static const struct t_case cases[] = {
	T(test_credit_charge),
	T(test_credit_overrun, "S-LIM-14"),
	T(test_credit_overrun_in_order, "S-LIM-14"),
	T(test_credit_sender_waits, "S-LIM-14"),
	T(test_credit_grows, "S-LIM-14"),
	T(test_credit_grows_at_terminal, "S-LIM-14"),
	T(test_credit_minimum, "S-LIM-14"),
	T(test_credit_tight_pool),
	T(test_credit_idle_sender_gives_back),
	T(test_credit_untold_is_given_back, "S-LIM-10"),
	T(test_credit_given_back),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("flow_credit", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
