/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines over a bad network: everything arrives once, in order, and everything comes back. */
#include "net.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

#define SECOND 1000000000ULL

/* Runs `n` to its end and frees it; prints what went wrong, and how to repeat it. */
static void finish(struct net *n, uint64_t seed, uint64_t seconds)
{
	bool ok = net_run(n, n->now + seconds * SECOND);

	ok = net_fini(n) && ok;
	if (!ok)
		printf("\n  seed %llu: %s\n", (unsigned long long)seed, n->fault);
	CU_ASSERT(ok);
	net_free(n);
}

static void load(struct net *n, uint64_t app, uint64_t infra, uint32_t len_min, uint32_t len_max)
{
	for (int i = 0; i < NET_ENDS; i++)
		n->end[i].load = (struct net_load){.total = {app, infra},
						   .len_min = len_min,
						   .len_max = len_max,
						   .consume_ns = 20000,
						   .sink_room = 64};
}

static void test_flow_clean_path(void)
{
	struct flow_params p[NET_ENDS];
	struct net *n;

	net_params(p);
	n = net_new(p, 1, 64 << 20);
	load(n, 5000, 1000, 0, 3000);
	finish(n, 1, 60);
}

static void test_flow_bad_path(void)
{
	struct flow_params p[NET_ENDS];

	for (uint64_t k = 0; k < 20; k++) {
		uint64_t seed = t_seed() + k;
		struct t_rand r = {seed};
		struct net *n;

		net_params(p);
		n = net_new(p, seed, 16 << 20);
		load(n, t_rand_below(&r, 3000), t_rand_below(&r, 500), 0,
		     1 + t_rand_below(&r, k % 8 == 0 ? 30000 : 3000));
		for (int i = 0; i < NET_ENDS; i++) {
			n->path[i].loss_ppm = t_rand_below(&r, 200000);
			n->path[i].dup_ppm = t_rand_below(&r, 100000);
			n->path[i].jitter_ns = t_rand_below(&r, 1000000);
			n->end[i].load.sink_room = 1 + t_rand_below(&r, 100);
		}
		finish(n, seed, 600);
	}
}

/* Every counter starts shortly before its wrap; packet numbers, which must not wrap, before 2^32.
 */
static void test_flow_counters_wrap(void)
{
	for (uint64_t k = 0; k < 6; k++) {
		uint64_t seed = t_seed() + k;
		struct t_rand r = {seed};
		struct flow_params p[NET_ENDS];
		struct net *n;

		net_params(p);
		for (int i = 0; i < NET_ENDS; i++)
			for (int c = 0; c < WIRE_CLASSES; c++) {
				uint32_t seq = 0u - 1 - t_rand_below(&r, 500);
				uint64_t credit = 0ull - 1 - t_rand_below(&r, 200000);

				p[i].cls[c].seq_tx = p[!i].cls[c].seq_rx = seq;
				p[i].cls[c].credit_tx = p[!i].cls[c].credit_rx = credit;
				p[i].cls[c].pn_tx = UINT32_MAX - t_rand_below(&r, 300);
			}
		n = net_new(p, seed, 16 << 20);
		load(n, 3000, 600, 0, 3000);
		for (int i = 0; i < NET_ENDS; i++) {
			n->path[i].loss_ppm = 30000;
			n->path[i].jitter_ns = 200000;
		}
		finish(n, seed, 600);
	}
}

/* The last packet numbers there are: nothing is confused below the end. */
static void test_flow_last_numbers(void)
{
	struct flow_params p[NET_ENDS];
	struct net *n;

	net_params(p);
	for (int c = 0; c < WIRE_CLASSES; c++)
		p[0].cls[c].pn_tx = p[1].cls[c].pn_tx = UINT64_MAX - 6000;
	n = net_new(p, t_seed(), 16 << 20);
	load(n, 500, 100, 100, 1500);
	for (int i = 0; i < NET_ENDS; i++) {
		n->path[i].loss_ppm = 50000;
		n->path[i].jitter_ns = 200000;
	}
	finish(n, t_seed(), 600);
}

/* Small everything: windows of 16 messages and 4 packets, a sink of one, little credit. */
static void test_flow_small_everything(void)
{
	for (uint64_t k = 0; k < 12; k++) {
		uint64_t seed = t_seed() + k;
		struct flow_params p[NET_ENDS];
		struct net *n;

		net_params(p);
		for (int i = 0; i < NET_ENDS; i++) {
			p[i].datagram_bytes = k % 2 ? 256 : 1200;
			p[i].window_packets = 4;
			p[i].window_initial = 2;
			p[i].msg_bytes = p[i].peer_msg_bytes = 8000;
			for (int c = 0; c < WIRE_CLASSES; c++) {
				p[i].cls[c].rx_slots = p[i].cls[c].peer_window = 16;
				p[i].cls[c].tx_slots = 2;
				p[i].cls[c].credit_min = p[i].cls[c].peer_credit = 256;
				p[i].cls[c].credit_max = wire_charge(8000);
			}
		}
		n = net_new(p, seed, wire_charge(8000));
		load(n, 200, 100, 0, 8000);
		for (int i = 0; i < NET_ENDS; i++) {
			n->path[i].loss_ppm = 100000;
			n->path[i].dup_ppm = 50000;
			n->path[i].jitter_ns = 1000000;
			n->end[i].load.sink_room = 1;
			n->end[i].is_tight = k % 3 == 0;
		}
		finish(n, seed, 3600);
	}
}

/* Memory for large messages fails again and again: they come again, nothing is lost. */
static void test_flow_memory_fails(void)
{
	struct flow_params p[NET_ENDS];
	struct net *n;

	net_params(p);
	n = net_new(p, t_seed(), 16 << 20);
	load(n, 300, 0, 2000, 20000);
	n->end[0].mem_fail = 40;
	n->end[1].mem_fail = 80;
	CU_ASSERT(net_run(n, n->now + 600 * SECOND));
	CU_ASSERT(n->end[0].drops[SPL_DROP_LINK_MEMORY] >= 40);
	CU_ASSERT(n->end[1].drops[SPL_DROP_LINK_MEMORY] >= 80);
	CU_ASSERT_EQUAL(n->end[0].mems_out, 0);
	finish(n, t_seed(), 1);
}

/* Each packet that came in is one use or one drop; on a lossy path nothing is dropped by mistake.
 */
static void test_flow_conservation(void)
{
	struct flow_params p[NET_ENDS];
	struct net *n;

	net_params(p);
	n = net_new(p, t_seed(), 16 << 20);
	load(n, 4000, 400, 0, 2500);
	for (int i = 0; i < NET_ENDS; i++) {
		n->path[i].loss_ppm = 20000;
		n->path[i].dup_ppm = 20000;
	}
	CU_ASSERT(net_run(n, n->now + 600 * SECOND));
	for (int i = 0; i < NET_ENDS; i++) {
		const struct net_end *e = &n->end[i];
		uint64_t uses = 0, drops = 0;
		struct flow_stats s;

		for (int u = 0; u < SPL_USE_COUNT; u++)
			uses += e->uses[u];
		for (int d = 0; d < SPL_DROP_COUNT; d++)
			drops += e->drops[d];
		CU_ASSERT_EQUAL(e->packets_in, uses + drops);
		CU_ASSERT_EQUAL(drops, 0);
		CU_ASSERT_EQUAL(e->uses[SPL_USE_DATA] + e->uses[SPL_USE_ACK] +
					e->uses[SPL_USE_DUPLICATE],
				uses);
		flow_stats_get(e->flow, &s);
		CU_ASSERT_EQUAL(s.messages_tx, 4400);
		CU_ASSERT_EQUAL(s.messages_acked, 4400);
		CU_ASSERT_EQUAL(s.messages_rx, 4400);
		CU_ASSERT_EQUAL(s.packets_tx, e->packets_out);
		CU_ASSERT(s.retransmitted > 0);
		CU_ASSERT_EQUAL(s.credit_reserved[0] + e->pool[0], e->pool_size[0]);
	}
	finish(n, t_seed(), 1);
}

/* The receiver ends no handler: the sender stops at its credit, infrastructure passes, and when the
 * handlers end all of it arrives. */
static void test_flow_stopped_receiver(void)
{
	struct flow_params p[NET_ENDS];
	uint64_t stuck;
	struct net *n;

	net_params(p);
	n = net_new(p, t_seed(), 1 << 20);
	load(n, 20000, 300, 64, 64);
	n->end[1].load.consume_ns = 3 * SECOND;
	net_run_for(n, SECOND);
	stuck = n->end[1].received[WIRE_APP];
	CU_ASSERT(stuck > 0);
	CU_ASSERT(stuck * wire_charge(64) <= 1 << 20);
	CU_ASSERT_EQUAL(n->end[0].received[WIRE_INFRA], 300);
	CU_ASSERT_EQUAL(n->end[1].received[WIRE_INFRA], 300);
	CU_ASSERT_EQUAL(n->end[0].received[WIRE_APP], 20000);
	net_run_for(n, SECOND);
	CU_ASSERT_EQUAL(n->end[1].received[WIRE_APP], stuck);
	finish(n, t_seed(), 600);
}

/* A flow that ends in mid-traffic gives everything back on both sides. */
static void test_flow_ends_in_traffic(void)
{
	for (uint64_t k = 0; k < 20; k++) {
		uint64_t seed = t_seed() + k;
		struct flow_params p[NET_ENDS];
		struct net *n;

		net_params(p);
		n = net_new(p, seed, 16 << 20);
		load(n, 100000, 10000, 0, 5000);
		for (int i = 0; i < NET_ENDS; i++) {
			n->path[i].loss_ppm = 50000;
			n->path[i].jitter_ns = 300000;
		}
		net_run_for(n, 1000000 * (k + 1));
		CU_ASSERT(net_fini(n));
		if (n->fault[0])
			printf("\n  seed %llu: %s\n", (unsigned long long)seed, n->fault);
		net_free(n);
	}
}

/* Credit above the minimum goes back to the pool when both sides have been idle. */
static void test_flow_idle_returns_credit(void)
{
	struct flow_params p[NET_ENDS];
	struct flow_stats s;
	struct net *n;

	net_params(p);
	for (int i = 0; i < NET_ENDS; i++)
		p[i].cls[WIRE_APP].credit_min = p[i].cls[WIRE_APP].peer_credit = 65536;
	n = net_new(p, t_seed(), 16 << 20);
	load(n, 1000, 0, 5000, 5000);
	n->path[0].loss_ppm = n->path[1].loss_ppm = 100000;
	CU_ASSERT(net_run(n, n->now + 600 * SECOND));
	flow_stats_get(n->end[1].flow, &s);
	CU_ASSERT(s.credit_reserved[WIRE_APP] > 65536);
	net_run_for(n, 5 * SECOND);
	for (int i = 0; i < NET_ENDS; i++) {
		flow_stats_get(n->end[i].flow, &s);
		CU_ASSERT_EQUAL(s.credit_reserved[WIRE_APP], 65536);
		CU_ASSERT_EQUAL(n->end[i].pool[WIRE_APP], (16 << 20) - 65536);
		CU_ASSERT_EQUAL(flow_next_timer(n->end[i].flow), FLOW_NEVER);
		n->end[i].load.total[WIRE_APP] += 1000;
	}
	/* and it is lent again */
	finish(n, t_seed(), 600);
}

static const struct t_case cases[] = {
	T(test_flow_clean_path, "S-LIM-14"), T(test_flow_bad_path, "S-LIM-14"),
	T(test_flow_counters_wrap),	     T(test_flow_last_numbers),
	T(test_flow_small_everything),	     T(test_flow_memory_fails),
	T(test_flow_conservation),	     T(test_flow_stopped_receiver, "S-LIM-14"),
	T(test_flow_ends_in_traffic),	     T(test_flow_idle_returns_credit),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("flow_net", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
