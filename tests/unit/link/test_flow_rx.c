/* SPDX-License-Identifier: BSD-3-Clause */
/* What a flow does with packets by hand: every way to be wrong has its reason and changes nothing.
 */
#include "one.h"

#include <stdlib.h>

#define POOL (8 << 20)

static void test_rx_header_faults(void)
{
	static const struct {
		uint32_t at;
		uint8_t value;
		enum spl_frame_drop drop;
	} row[] = {
		{0, 0x08, SPL_DROP_LINK_VERSION},      {0, 0x28, SPL_DROP_LINK_VERSION},
		{0, 0x10, SPL_DROP_LINK_KIND},	       {0, 0x19, SPL_DROP_LINK_KIND},
		{0, 0x1f, SPL_DROP_LINK_KIND},	       {0, 0x15, SPL_DROP_LINK_FLAGS},
		{1, 2, SPL_DROP_LINK_FLAGS},	       {1, 0x80, SPL_DROP_LINK_FLAGS},
		{2, 1, SPL_DROP_LINK_FLAGS},	       {3, ONE_PEER + 1, SPL_DROP_LINK_LANE},
		{4, ONE_LANE + 1, SPL_DROP_LINK_LANE}, {5, 1, SPL_DROP_LINK_FLAGS},
		{7, 1, SPL_DROP_LINK_FLAGS},	       {8, 0, SPL_DROP_LINK_FLOW},
		{15, 4, SPL_DROP_LINK_FLOW},	       {24, 1, SPL_DROP_LINK_FLAGS},
		{39, 1, SPL_DROP_LINK_FLAGS},
	};
	struct one o;
	struct raw good, bad;

	one_start(&o, NULL, POOL);
	raw_begin(&good, WIRE_APP, 0);
	raw_message(&good, 0, 20);
	for (size_t i = 0; i < T_COUNT(row); i++) {
		bad = good;
		bad.b[row[i].at] = row[i].value;
		CU_ASSERT(one_drops(&o, &bad, row[i].drop));
	}
	for (bad = good, bad.len = 0; bad.len < WIRE_HDR_BYTES; bad.len++)
		CU_ASSERT(one_drops(&o, &bad, SPL_DROP_LINK_SHORT));
	CU_ASSERT(one_drops(&o, &bad, SPL_DROP_LINK_RECORD)); /* a header and nothing */
	CU_ASSERT(one_uses(&o, &good, SPL_USE_DATA, 1));
	one_stop(&o);
}

/* A packet of another association's id, as after a reconnect with a new lifecycle. */
static void test_rx_id_of_another_life(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 20);
	wire_store_u64(r.b + 8, ONE_RX_ID + 0x10000); /* same slot, other random bits */
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_FLOW));
	one_stop(&o);
}

/* Every record kind, cut at every byte: whole records are taken, a part never. */
static void test_rx_truncated_at_every_byte(void)
{
	uint32_t ends[8], n = 0;
	struct raw full;

	raw_begin(&full, WIRE_INFRA, 0);
	raw_credit(&full, SPL_REC_CREDIT, WIRE_APP, 0, 1 << 20);
	ends[n++] = full.len;
	raw_credit(&full, SPL_REC_CREDIT_WANTED, WIRE_INFRA, 0, 1 << 17);
	ends[n++] = full.len;
	raw_ping(&full);
	ends[n++] = full.len;
	raw_message(&full, 0, 30);
	ends[n++] = full.len;
	raw_fragment(&full, 1, 8, 16, 100);
	ends[n++] = full.len;
	raw_ack(&full, WIRE_APP, 0, 1);
	ends[n++] = full.len;
	for (uint32_t len = WIRE_HDR_BYTES; len <= full.len; len++) {
		bool whole = false;
		struct raw cut = full;
		struct one o;

		for (uint32_t i = 0; i < n; i++)
			whole |= ends[i] == len;
		one_start(&o, NULL, POOL);
		/* so that number 0 of the application class was sent */
		CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, full.b, 10, NULL), 0);
		one_tx(&o);
		cut.len = len;
		if (whole)
			CU_ASSERT_EQUAL(one_rx(&o, &cut).drop, FLOW_NO_DROP)
		else
			CU_ASSERT(one_drops(&o, &cut, SPL_DROP_LINK_RECORD));
		one_stop(&o);
	}
}

struct spoiled {
	uint32_t at; /* offset in the record */
	uint32_t bytes;
	uint64_t value;
	enum spl_frame_drop drop;
};

/* `good` is taken by a fresh flow; with any row of the table it is refused. */
static void check_spoiled(const struct raw *good, const struct spoiled *row, size_t n)
{
	struct one o;

	for (size_t i = 0; i < n; i++) {
		struct raw bad = *good;
		uint8_t *p = bad.b + WIRE_HDR_BYTES + row[i].at;

		one_start(&o, NULL, POOL);
		flow_send(o.f, WIRE_APP, good->b, 10, NULL);
		one_tx(&o);
		for (uint32_t k = 0; k < row[i].bytes; k++)
			p[k] = (uint8_t)(row[i].value >> 8 * (row[i].bytes - 1 - k));
		CU_ASSERT(one_drops(&o, &bad, row[i].drop));
		CU_ASSERT_EQUAL(one_rx(&o, good).drop, FLOW_NO_DROP);
		one_stop(&o);
	}
}

static void test_rx_record_fields(void)
{
	static const struct spoiled message[] = {
		{0, 1, 0, SPL_DROP_LINK_RECORD},	  {0, 1, 7, SPL_DROP_LINK_RECORD},
		{0, 1, 255, SPL_DROP_LINK_RECORD},	  {1, 1, 1, SPL_DROP_LINK_RECORD},
		{2, 2, 19, SPL_DROP_LINK_RECORD},	  {2, 2, 21, SPL_DROP_LINK_RECORD},
		{2, 2, 0xffff, SPL_DROP_LINK_RECORD},	  {4, 4, 64, SPL_DROP_LINK_WINDOW},
		{4, 4, 0x7fffffff, SPL_DROP_LINK_WINDOW},
	};
	static const struct spoiled fragment[] = {
		{1, 1, 1, SPL_DROP_LINK_RECORD},	  {2, 2, 0, SPL_DROP_LINK_RECORD},
		{2, 2, 15, SPL_DROP_LINK_RECORD},	  {2, 2, 24, SPL_DROP_LINK_RECORD},
		{8, 4, 4, SPL_DROP_LINK_RECORD},	  {8, 4, 96, SPL_DROP_LINK_RECORD},
		{8, 4, 0xfffffff8, SPL_DROP_LINK_RECORD}, {8, 4, 88, SPL_DROP_LINK_RECORD},
		{12, 4, 0, SPL_DROP_LINK_RECORD},	  {12, 4, 15, SPL_DROP_LINK_RECORD},
		{12, 4, 0xffffffff, SPL_DROP_LINK_SIZE},  {4, 4, 70, SPL_DROP_LINK_WINDOW},
	};
	static const struct spoiled ack[] = {
		{1, 1, 2, SPL_DROP_LINK_RECORD},       {2, 1, 0, SPL_DROP_LINK_RECORD},
		{2, 1, 2, SPL_DROP_LINK_RECORD},       {2, 1, 33, SPL_DROP_LINK_RECORD},
		{3, 1, 1, SPL_DROP_LINK_RECORD},       {8, 8, 1, SPL_DROP_LINK_ACK},
		{8, 8, UINT64_MAX, SPL_DROP_LINK_ACK}, {16, 2, 1, SPL_DROP_LINK_RECORD},
		{18, 2, 0, SPL_DROP_LINK_RECORD},      {18, 2, 2, SPL_DROP_LINK_ACK},
	};
	static const struct spoiled credit[] = {
		{1, 1, 2, SPL_DROP_LINK_RECORD},
		{4, 4, 1, SPL_DROP_LINK_RECORD},
	};
	static const struct spoiled ping[] = {
		{1, 1, 1, SPL_DROP_LINK_RECORD},
		{3, 1, 1, SPL_DROP_LINK_RECORD},
	};
	struct raw r;

	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 20);
	check_spoiled(&r, message, T_COUNT(message));
	raw_begin(&r, WIRE_APP, 0);
	raw_fragment(&r, 0, 0, 16, 90);
	check_spoiled(&r, fragment, T_COUNT(fragment));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ack(&r, WIRE_APP, 0, 1);
	check_spoiled(&r, ack, T_COUNT(ack));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 1 << 20);
	check_spoiled(&r, credit, T_COUNT(credit));
	raw_begin(&r, WIRE_INFRA, 0);
	raw_credit(&r, SPL_REC_CREDIT_WANTED, WIRE_INFRA, 0, 1 << 20);
	check_spoiled(&r, credit, T_COUNT(credit));
	raw_begin(&r, WIRE_APP, 0);
	raw_ping(&r);
	check_spoiled(&r, ping, T_COUNT(ping));
}

/* Acknowledgements and credit are refused in the application class. */
static void test_rx_control_in_application_class(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	flow_send(o.f, WIRE_APP, r.b, 10, NULL);
	one_tx(&o);
	raw_begin(&r, WIRE_APP, 0);
	raw_ack(&r, WIRE_APP, 0, 1);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	raw_begin(&r, WIRE_APP, 0);
	raw_credit(&r, SPL_REC_CREDIT, WIRE_APP, 0, 1 << 20);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	one_stop(&o);
}

/* A fault in the last record of a packet undoes nothing, because nothing was done. */
static void test_rx_all_or_nothing(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	flow_send(o.f, WIRE_APP, r.b, 10, NULL);
	one_tx(&o);
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ack(&r, WIRE_APP, 0, 1);
	raw_message(&r, 0, 10);
	raw_message(&r, 1, 10);
	raw_fragment(&r, 2, 0, 8, 100);
	raw_message(&r, 2, 10); /* not ascending */
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	CU_ASSERT_EQUAL(o.acked, 0);
	CU_ASSERT_EQUAL(o.mems, 0);
	one_stop(&o);
}

static void test_rx_packet_numbers(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	raw_begin(&r, WIRE_APP, UINT64_MAX);
	raw_ping(&r);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_NUMBER));
	raw_begin(&r, WIRE_APP, 5000);
	raw_message(&r, 0, 4);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	CU_ASSERT(one_tx(&o) > 0);
	/* seen before: counted apart, and acknowledged again at once */
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	CU_ASSERT(one_tx(&o) > 0);
	CU_ASSERT_PTR_NOT_NULL(one_record(&o, SPL_REC_ACK, WIRE_APP));
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	/* the window is 1024 numbers: the largest is 5000 */
	raw_begin(&r, WIRE_APP, 5000 - 1024);
	raw_ping(&r);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_NUMBER));
	raw_begin(&r, WIRE_APP, 5000 - 1023);
	raw_ping(&r);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	/* the classes count apart */
	raw_begin(&r, WIRE_INFRA, 0);
	raw_ping(&r);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_ACK, 0));
	one_stop(&o);
}

/* A message that is there already, under a new number: nothing new, but acknowledged. */
static void test_rx_old_message_new_number(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 4);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 0, 4);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	raw_begin(&r, WIRE_APP, 2); /* one old and one new: new */
	raw_message(&r, 0, 4);
	raw_message(&r, 1, 4);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	raw_begin(&r, WIRE_APP, 3); /* held for order */
	raw_message(&r, 5, 4);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	raw_begin(&r, WIRE_APP, 4);
	raw_message(&r, 5, 4);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	raw_begin(&r, WIRE_APP, 5); /* the same sequence, another length */
	raw_message(&r, 5, 5);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	one_stop(&o);
}

/* Loss holds back later messages of that class only; the other class passes. */
static void test_rx_order_and_classes(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	for (uint32_t seq = 3; seq >= 1; seq--) {
		raw_begin(&r, WIRE_APP, seq);
		raw_message(&r, seq, 100 + seq);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	}
	raw_begin(&r, WIRE_INFRA, 0);
	raw_message(&r, 0, 7);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	CU_ASSERT_EQUAL(o.msgs[0].cls, WIRE_INFRA);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 100);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 4));
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(o.msgs[1 + i].cls, WIRE_APP);
		CU_ASSERT_EQUAL(o.msgs[1 + i].len, 100 + i);
		for (uint32_t k = 0; k < 100 + i; k++)
			CU_ASSERT_EQUAL(o.msgs[1 + i].data[k], raw_byte(i, k));
	}
	one_stop(&o);
}

/* What does not fit the sink stays, in order, and comes with flow_drain(). */
static void test_rx_sink_is_full(void)
{
	struct one o;
	struct raw r;
	uint32_t seen = 0;

	one_start(&o, NULL, POOL);
	o.sink.room = 3;
	raw_begin(&r, WIRE_APP, 0);
	for (uint32_t i = 0; i < 10; i++)
		raw_message(&r, i, i);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 3));
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 10, 10);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	do {
		for (uint32_t i = 0; i < o.sink.n; i++)
			CU_ASSERT_EQUAL(o.msgs[i].len, seen++);
		one_consume(&o);
	} while (flow_drain(o.f, &o.sink) || o.sink.n > 0);
	CU_ASSERT_EQUAL(seen, 11);
	one_stop(&o);
}

/* A sink is full by what its messages cost as well, and takes the one that goes beyond it: of large
 * messages that become whole together two, of those in one packet as many as are in it. */
static void test_rx_sink_is_full_by_charge(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	o.sink.charge_max = 2 * wire_charge(1000) - 1;
	for (uint32_t i = 3; i > 0; i--) {
		raw_begin(&r, WIRE_APP, i);
		raw_message(&r, i, 1000);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	}
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 0, 1000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 2));
	CU_ASSERT_EQUAL(o.sink.charge, 2 * wire_charge(1000));
	CU_ASSERT(flow_drain(o.f, &o.sink)); /* still full */
	CU_ASSERT_EQUAL(o.sink.n, 2);
	o.sink.charge = 0;
	CU_ASSERT_FALSE(flow_drain(o.f, &o.sink));
	CU_ASSERT_EQUAL(o.sink.n, 4);
	one_consume(&o);
	o.sink.charge = 0;
	raw_begin(&r, WIRE_APP, 4);
	for (uint32_t i = 4; i < 20; i++)
		raw_message(&r, i, 10);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 16));
	raw_begin(&r, WIRE_APP, 5);
	raw_message(&r, 20, 10);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	one_stop(&o);
}

static void test_rx_window(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 64, 1);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_WINDOW));
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 63, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 0, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	raw_begin(&r, WIRE_APP, 2);
	raw_message(&r, 64, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	one_stop(&o);
}

/* Sequences that wrap are ordered by difference. */
static void test_rx_sequence_wraps(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	one_params(&p);
	p.cls[WIRE_APP].seq_rx = 0xfffffffe;
	one_start(&o, &p, POOL);
	raw_begin(&r, WIRE_APP, 0);
	raw_message(&r, 1, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	raw_begin(&r, WIRE_APP, 1);
	raw_message(&r, 0xfffffffe, 1);
	raw_message(&r, 0xffffffff, 1);
	raw_message(&r, 0, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 4));
	one_stop(&o);
}

static const struct t_case cases[] = {
	T(test_rx_header_faults, "S-WIRE-1"),
	T(test_rx_id_of_another_life, "A-LIVE-7"),
	T(test_rx_truncated_at_every_byte, "S-WIRE-1"),
	T(test_rx_record_fields, "S-WIRE-1"),
	T(test_rx_control_in_application_class),
	T(test_rx_all_or_nothing),
	T(test_rx_packet_numbers),
	T(test_rx_old_message_new_number),
	T(test_rx_order_and_classes),
	T(test_rx_sink_is_full),
	T(test_rx_sink_is_full_by_charge, "S-FAIR-4"),
	T(test_rx_window),
	T(test_rx_sequence_wraps),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("flow_rx", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
