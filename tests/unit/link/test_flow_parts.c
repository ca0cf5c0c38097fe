/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages: limits, fragments that overlap, repeat or disagree, memory that runs out. */
#include "one.h"

#include <stdlib.h>

#define POOL (8 << 20)

static void check_message(const struct flow_msg *m, uint32_t seq, uint32_t len)
{
	uint32_t wrong = 0;

	CU_ASSERT_EQUAL_FATAL(m->len, len);
	for (uint32_t i = 0; i < len; i++)
		wrong += m->data[i] != raw_byte(seq, i);
	CU_ASSERT_EQUAL(wrong, 0);
}

static struct raw piece(uint64_t number, uint32_t seq, uint32_t off, uint32_t len, uint32_t total)
{
	struct raw r;

	raw_begin(&r, WIRE_APP, number);
	raw_fragment(&r, seq, off, len, total);
	return r;
}

static void test_parts_in_any_order(void)
{
	for (uint64_t k = 0; k < 50; k++) {
		struct t_rand rand = {t_seed() + k};
		uint32_t total = 1 + t_rand_below(&rand, 40000), n = (total + 999) / 1000;
		uint32_t order[40];
		struct one o;

		one_start(&o, NULL, POOL);
		for (uint32_t i = 0; i < n; i++)
			order[i] = i;
		for (uint32_t i = n - 1; i > 0; i--) {
			uint32_t j = t_rand_below(&rand, i + 1), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		for (uint32_t i = 0; i < n; i++) {
			uint32_t off = order[i] * 1000;
			struct raw r =
				piece(i, 0, off, total - off < 1000 ? total - off : 1000, total);

			CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, i == n - 1));
		}
		CU_ASSERT_FATAL(o.sink.n == 1);
		CU_ASSERT(o.msgs[0].is_mem);
		CU_ASSERT_EQUAL(o.msgs[0].charge, wire_charge(total));
		check_message(&o.msgs[0], 0, total);
		one_stop(&o);
	}
}

static void test_parts_overlap(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	r = piece(0, 0, 800, 800, 4000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	/* the same range, or a part of it, again: nothing new */
	r = piece(1, 0, 800, 800, 4000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	r = piece(2, 0, 1000, 200, 4000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	/* half known, half new: refused */
	r = piece(3, 0, 400, 800, 4000);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	r = piece(3, 0, 1592, 800, 4000);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	r = piece(3, 0, 0, 4000, 4000);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	/* another total */
	r = piece(3, 0, 0, 800, 4008);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	/* a whole message in its place */
	raw_begin(&r, WIRE_APP, 3);
	raw_message(&r, 0, 100);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	/* and the rest completes it */
	r = piece(3, 0, 1600, 2400, 4000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	r = piece(4, 0, 0, 800, 4000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	check_message(&o.msgs[0], 0, 4000);
	one_stop(&o);
}

/* A complete message that waits for order: pieces of it are old, other facts are refused. */
static void test_parts_of_a_complete_message(void)
{
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	r = piece(0, 1, 0, 1000, 1000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	r = piece(1, 1, 0, 1000, 1000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DUPLICATE, 0));
	r = piece(2, 1, 0, 1000, 2000);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	raw_begin(&r, WIRE_APP, 2);
	raw_message(&r, 1, 1000);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	raw_begin(&r, WIRE_APP, 2);
	raw_message(&r, 2, 10);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	r = piece(3, 2, 0, 8, 10);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_RECORD));
	one_stop(&o); /* and what is held comes back */
}

static void test_parts_message_limit(void)
{
	struct flow_params p;
	struct one o;
	struct raw r;

	one_params(&p);
	p.msg_bytes = 5000;
	p.peer_msg_bytes = 5000;
	one_start(&o, &p, POOL);
	r = piece(0, 0, 0, 1000, 5001);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_SIZE));
	r = piece(0, 0, 0, 4096, 5000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	r = piece(1, 0, 4096, 904, 5000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	raw_begin(&r, WIRE_APP, 2);
	raw_message(&r, 1, 5001);
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_SIZE));
	raw_begin(&r, WIRE_APP, 2);
	raw_message(&r, 1, 5000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, r.b, 5001, NULL), -EMSGSIZE);
	CU_ASSERT_EQUAL(flow_send(o.f, WIRE_APP, r.b, 5000, NULL), 0);
	one_stop(&o);
}

/* No memory: not acknowledged, so it comes again; then it is taken, and its credit once. */
static void test_parts_out_of_memory(void)
{
	struct flow_stats s;
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	o.mem_fail = 2;
	for (uint64_t number = 0; number < 2; number++) {
		r = piece(number, 0, 0, 1000, 3000);
		CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_MEMORY));
	}
	CU_ASSERT_EQUAL(one_tx(&o), 0);
	r = piece(2, 0, 0, 1000, 3000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	r = piece(3, 0, 1000, 2000, 3000);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 1));
	check_message(&o.msgs[0], 0, 3000);
	/* two messages begin in one packet, memory for one: the packet is refused as a whole */
	raw_begin(&r, WIRE_APP, 4);
	raw_fragment(&r, 1, 0, 8, 800);
	raw_fragment(&r, 2, 0, 8, 800);
	o.mem_fail = 0;
	CU_ASSERT_EQUAL(o.mems, 1);
	CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
	raw_begin(&r, WIRE_APP, 5);
	raw_fragment(&r, 3, 0, 8, 800);
	raw_fragment(&r, 4, 0, 8, 800);
	o.mem_fail = 1;
	CU_ASSERT(one_drops(&o, &r, SPL_DROP_LINK_MEMORY));
	CU_ASSERT_EQUAL(one_rx(&o, &r).use, SPL_USE_DATA);
	flow_stats_get(o.f, &s);
	CU_ASSERT_EQUAL(s.messages_held[WIRE_APP], 4);
	one_stop(&o);
}

/* The flow ends with everything half done: all of it comes back. */
static void test_parts_end_in_the_middle(void)
{
	uint8_t big[5000] = {0};
	struct one o;
	struct raw r;

	one_start(&o, NULL, POOL);
	for (uint32_t i = 0; i < 10; i++) {
		raw_begin(&r, WIRE_APP, i);
		raw_message(&r, 1 + 2 * i, 50);
		raw_fragment(&r, 2 + 2 * i, 0, 64, 600);
		CU_ASSERT(one_uses(&o, &r, SPL_USE_DATA, 0));
		CU_ASSERT_EQUAL(flow_send(o.f, i % 2, big, sizeof(big), NULL), 0);
	}
	while (one_tx(&o) > 0)
		;
	CU_ASSERT_EQUAL(o.mems, 10);
	CU_ASSERT_EQUAL(o.bufs, 10);
	one_stop(&o);
	CU_ASSERT_EQUAL(o.ended, 10);
	CU_ASSERT_EQUAL(o.acked, 0);
}

static const struct t_case cases[] = {
	T(test_parts_in_any_order),	     T(test_parts_overlap, "S-WIRE-1"),
	T(test_parts_of_a_complete_message), T(test_parts_message_limit, "S-MSG-6"),
	T(test_parts_out_of_memory),	     T(test_parts_end_in_the_middle),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("flow_parts", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
