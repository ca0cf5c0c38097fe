/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit over rings: with and without each offload, shared queues, full and down ports. After
 * every test the buffers are back at the base line. */
#include "dataplane/frame/build.h"
#include "dataplane/port/port.h"
#include "dataplane/port/tx.h"
#include "tests/lib/t_failalloc.h"
#include "tests/lib/t_main.h"
#include "tests/vdev/two_ports.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

static uint8_t buf[T_FRAME_MAX], out[T_FRAME_MAX];

/* An outgoing datagram: headers in one buffer, the payload in others of at most seg bytes. */
static struct rte_mbuf *datagram(const struct frame_local *l, unsigned payload, unsigned seg)
{
	static const uint8_t peer[6] = {2, 0, 0, 0, 0, 2};
	struct rte_mbuf *head = rte_pktmbuf_alloc(pool), *m = head;
	struct build_path path;
	unsigned done = 0, n;
	uint8_t *to;

	build_path_init(&path, l, 40000, peer, 0x0a000002, 50000);
	build_udp(&path, (uint16_t)payload, 1,
		  (uint8_t *)rte_pktmbuf_append(head, FRAME_HDR_BYTES));
	while (done < payload) {
		n = seg && payload - done > seg ? seg : payload - done;
		if (seg) {
			m = rte_pktmbuf_alloc(pool);
			to = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)n);
			rte_pktmbuf_chain(head, m);
		} else {
			to = (uint8_t *)rte_pktmbuf_append(head, (uint16_t)n);
		}
		for (unsigned i = 0; i < n; i++)
			to[i] = (uint8_t)(done + i);
		done += n;
	}
	return head;
}

static bool payload_ok(size_t len, unsigned payload)
{
	if (len != FRAME_HDR_BYTES + payload)
		return false;
	for (unsigned i = 0; i < payload; i++)
		if (out[FRAME_HDR_BYTES + i] != (uint8_t)i)
			return false;
	return true;
}

/* What the device would do for us, so that the frame can be checked like the others. */
static void finish_as_device(uint8_t *p)
{
	uint16_t len = frame_be16(p + 38), sum;

	sum = csum_finish_udp(csum_add(0, p + 34, len));
	memcpy(p + 40, &sum, 2);
}

static void send_one(struct tx *t, unsigned payload, unsigned seg)
{
	bool offload = port[0].plan.tx_udp_csum, multi = port[0].plan.tx_multi_seg;
	const uint64_t want = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
	struct rte_mbuf *m = NULL;
	size_t len;

	tx_udp(t, 0, datagram(&port[0].local, payload, seg));
	tx_flush(t);
	CU_ASSERT_EQUAL_FATAL(rte_ring_dequeue(dev[0].tx[0], (void **)&m), 0);
	CU_ASSERT_EQUAL(m->nb_segs > 1, multi && seg && payload);
	CU_ASSERT_EQUAL((m->ol_flags & want) == want, offload);
	if (offload)
		CU_ASSERT(m->l2_len == 14 && m->l3_len == 20);
	CU_ASSERT_EQUAL(rte_ring_enqueue(dev[0].tx[0], m), 0);
	len = t_port_pull(&dev[0], 0, out);
	if (offload)
		finish_as_device(out);
	CU_ASSERT_PTR_NULL(t_frame_check(out, len));
	CU_ASSERT_TRUE(payload_ok(len, payload));
}

/* Every combination of the two transmit offloads sends the same right frames. */
static void test_send_with_each_combination(void)
{
	static const unsigned sizes[] = {0, 1, 7, 8, 64, 333, 1200, 1472};
	static const unsigned segs[] = {0, 1472, 500, 64, 33, 7};
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct port_plan before = port[0].plan;
	struct tx t;

	CU_ASSERT_PTR_NOT_NULL_FATAL(net);
	for (unsigned bits = 0; bits < 4; bits++) {
		port[0].plan.tx_udp_csum = bits & 1;
		port[0].plan.tx_multi_seg = bits & 2;
		tx_init(&t, net, 0, pool);
		for (unsigned i = 0; i < T_COUNT(sizes); i++)
			for (unsigned k = 0; k < T_COUNT(segs); k++)
				send_one(&t, sizes[i], segs[k]);
		CU_ASSERT_EQUAL(t.counts.sent, T_COUNT(sizes) * T_COUNT(segs));
		CU_ASSERT_EQUAL(t.counts.linearised > 0, !(bits & 2));
	}
	port[0].plan = before;
	tx_net_destroy(net);
	two_ports_base_line();
}

/* A payload that others still read is neither written nor freed under them. */
static void test_send_shared_payload(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct rte_mbuf *m = datagram(&port[0].local, 100, 100), *shared = m->next;
	struct tx t;

	tx_init(&t, net, 0, pool);
	rte_mbuf_refcnt_update(shared, 1);
	tx_udp(&t, 0, m);
	tx_flush(&t);
	CU_ASSERT_TRUE(payload_ok(t_port_pull(&dev[0], 0, out), 100));
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(rte_pktmbuf_mtod(shared, uint8_t *)[i], (uint8_t)i);
	CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(shared), 1);
	rte_pktmbuf_free(shared);
	tx_net_destroy(net);
	two_ports_base_line();
}

static uint64_t accounted(const struct tx *t)
{
	const struct tx_counts *c = &t->counts;

	return c->sent + c->hopped + c->dropped_full + c->dropped_down + c->dropped_size +
	       c->dropped_nombuf;
}

static unsigned drain(unsigned d)
{
	unsigned n = 0;

	while (t_port_pull_any(&dev[d], out))
		n++;
	return n;
}

/* D52: more than the port takes; each frame is counted once, all buffers come back. */
static void test_full_port(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	unsigned frames = T_PORT_RING + 500;
	struct tx t;

	tx_init(&t, net, 0, pool);
	for (unsigned i = 0; i < frames; i++)
		tx_udp(&t, 0, datagram(&port[0].local, 10, 0));
	tx_flush(&t);
	CU_ASSERT_EQUAL(accounted(&t), frames);
	CU_ASSERT_EQUAL(t.counts.sent, T_PORT_RING - 1);
	CU_ASSERT_EQUAL(t.counts.bytes, t.counts.sent * (FRAME_HDR_BYTES + 10));
	CU_ASSERT_EQUAL(t.counts.dropped_full, 501);
	CU_ASSERT_EQUAL(drain(0), T_PORT_RING - 1);
	tx_net_destroy(net);
	two_ports_base_line();
}

static void test_down_port(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct tx t;

	tx_init(&t, net, 0, pool);
	CU_ASSERT_EQUAL(rte_eth_dev_set_link_down(port[0].id), 0);
	CU_ASSERT_TRUE(port_link_poll(&port[0]));
	CU_ASSERT_FALSE(port_link_poll(&port[0])); /* told once */
	for (unsigned i = 0; i < 100; i++)
		tx_udp(&t, 0, datagram(&port[0].local, 10, 0));
	tx_udp(&t, 1, datagram(&port[1].local, 10, 0)); /* the other port is not hurt */
	tx_flush(&t);
	CU_ASSERT_EQUAL(t.counts.dropped_down, 100);
	CU_ASSERT_EQUAL(t.counts.sent, 1);
	CU_ASSERT_EQUAL(rte_eth_dev_set_link_up(port[0].id), 0);
	CU_ASSERT_TRUE(port_link_poll(&port[0]));
	CU_ASSERT_EQUAL(drain(0) + drain(1), 1);
	tx_net_destroy(net);
	two_ports_base_line();
}

static void test_too_long_to_send(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct tx t;

	tx_init(&t, net, 0, pool);
	tx_udp(&t, 0, datagram(&port[0].local, 1472, 0));
	tx_udp(&t, 0, datagram(&port[0].local, 1473, 0));
	tx_flush(&t);
	CU_ASSERT_EQUAL(t.counts.sent, 1);
	CU_ASSERT_EQUAL(t.counts.dropped_size, 1);
	CU_ASSERT_EQUAL(drain(0), 1);
	tx_net_destroy(net);
	two_ports_base_line();
}

static void test_no_buffer_to_linearise(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct port_plan before = port[0].plan;
	struct rte_mbuf *held[63];
	unsigned n = 0;
	struct tx t;

	port[0].plan.tx_multi_seg = false;
	tx_init(&t, net, 0, tiny);
	while (n < 63 && (held[n] = rte_pktmbuf_alloc(tiny)) != NULL)
		n++;
	tx_udp(&t, 0, datagram(&port[0].local, 100, 50));
	tx_udp(&t, 0, datagram(&port[0].local, 100, 0));
	tx_flush(&t);
	CU_ASSERT_EQUAL(t.counts.dropped_nombuf, 1);
	CU_ASSERT_EQUAL(t.counts.sent, 1);
	CU_ASSERT_EQUAL(drain(0), 1);
	rte_pktmbuf_free_bulk(held, n);
	port[0].plan = before;
	tx_net_destroy(net);
	two_ports_base_line();
}

static unsigned woken[USERS];

static void on_wake(void *ctx, unsigned owner)
{
	CU_ASSERT_PTR_EQUAL(ctx, woken);
	woken[owner]++;
}

/* One queue, four users: all frames leave through its owner, in the order of each user. */
static void test_users_share_a_queue(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, on_wake, woken);
	unsigned next[USERS] = {0}, u, i;
	struct tx t[USERS];

	memset(woken, 0, sizeof(woken));
	for (u = 0; u < USERS; u++)
		tx_init(&t[u], net, u, pool);
	for (i = 0; i < 100; i++)
		for (u = 0; u < USERS; u++) {
			tx_udp(&t[u], 0, datagram(&port[0].local, 100 * u + i, 0));
			if (i % 7 == 6)
				tx_flush(&t[u]);
		}
	for (u = 0; u < USERS; u++)
		tx_flush(&t[u]);
	CU_ASSERT(woken[0] >= 3 && woken[1] == 0 && woken[2] == 0 && woken[3] == 0);
	CU_ASSERT_TRUE(tx_waiting(&t[0]));
	CU_ASSERT_FALSE(tx_waiting(&t[1]));
	CU_ASSERT_EQUAL(tx_poll(&t[1]), 0);
	for (i = 0; i < 20 && tx_poll(&t[0]); i++)
		;
	CU_ASSERT(i < 20);
	CU_ASSERT_FALSE(tx_waiting(&t[0]));
	for (i = 0; i < 100 * USERS; i++) {
		size_t len = t_port_pull(&dev[0], 0, out) - FRAME_HDR_BYTES;

		CU_ASSERT_EQUAL(len % 100, next[len / 100]);
		next[len / 100 % USERS]++;
	}
	CU_ASSERT_EQUAL(t[0].counts.sent, 100 * USERS);
	CU_ASSERT_EQUAL(t[3].counts.hopped, 100);
	tx_net_destroy(net);
	two_ports_base_line();
}

static void test_users_with_their_own_queues(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct tx t[USERS];

	for (unsigned u = 0; u < USERS; u++) {
		tx_init(&t[u], net, u, pool);
		tx_udp(&t[u], 1, datagram(&port[1].local, u, 0));
		tx_flush(&t[u]);
		CU_ASSERT_EQUAL(t[u].counts.sent, 1);
		CU_ASSERT_EQUAL(t_port_pull(&dev[1], u, out), FRAME_HDR_BYTES + u);
	}
	tx_net_destroy(net);
	two_ports_base_line();
}

static void test_no_memory_for_the_net(void)
{
	struct tx_net *net;
	unsigned n;

	for (n = 1; t_fail_more(&n); n++) {
		t_fail_at(n);
		net = tx_net_create(port, 2, USERS, NULL, NULL);
		t_fail_stop();
		CU_ASSERT_EQUAL(net == NULL, t_fail_hit());
		CU_ASSERT(net || errno == ENOMEM);
		tx_net_destroy(net);
	}
	CU_ASSERT_EQUAL(n, 4); /* two allocations, then success */
}

/* A ring that its owner does not empty: bounded, counted, freed with the net. */
static void test_full_ring_between_users(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct tx t;

	tx_init(&t, net, 2, pool);
	for (unsigned i = 0; i < TX_RING + 100; i++)
		tx_udp(&t, 0, datagram(&port[0].local, 10, 0));
	tx_flush(&t);
	CU_ASSERT_EQUAL(t.counts.hopped, TX_RING - 1);
	CU_ASSERT_EQUAL(t.counts.dropped_full, 101);
	CU_ASSERT_EQUAL(t_pool_used(pool), TX_RING - 1);
	tx_net_destroy(net);
	two_ports_base_line();
}

static void test_fini_frees_what_waits(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct tx t;

	tx_init(&t, net, 0, pool);
	for (unsigned i = 0; i < 5; i++)
		tx_raw(&t, i % 2, datagram(&port[0].local, 10, 0));
	tx_fini(&t);
	CU_ASSERT_EQUAL(t.counts.dropped_full, 5);
	tx_net_destroy(net);
	tx_net_destroy(NULL);
	two_ports_base_line();
}

/* D19: half the pool, then nothing, then half the pool again. */
static void test_reclaim_when_idle(void)
{
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct tx t;

	tx_init(&t, net, 0, pool);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < T_PORT_RING - 1; i++)
			tx_udp(&t, 0, datagram(&port[0].local, 10, 0));
		tx_flush(&t);
		tx_reclaim(&t);
		CU_ASSERT_EQUAL(drain(0), T_PORT_RING - 1);
		two_ports_base_line();
	}
	tx_net_destroy(net);
}

static void test_stats(void)
{
	uint64_t before[SPL_P_COUNT], after[SPL_P_COUNT];
	struct tx_net *net = tx_net_create(port, 2, USERS, NULL, NULL);
	struct rte_mbuf *m[32];
	struct tx t;

	tx_init(&t, net, 0, pool);
	CU_ASSERT_EQUAL(port_stats(&port[0], before), 0);
	for (unsigned i = 0; i < 7; i++) {
		t_port_push(&dev[0], buf, 60, 0);
		tx_udp(&t, 0, datagram(&port[0].local, 10, 0));
	}
	CU_ASSERT_EQUAL(rte_eth_rx_burst(port[0].id, 0, m, 32), 7);
	rte_pktmbuf_free_bulk(m, 7);
	tx_flush(&t);
	CU_ASSERT_EQUAL(port_stats(&port[0], after), 0);
	CU_ASSERT_EQUAL(after[SPL_P_RX_FRAMES] - before[SPL_P_RX_FRAMES], 7);
	CU_ASSERT_EQUAL(after[SPL_P_TX_FRAMES] - before[SPL_P_TX_FRAMES], 7);
	CU_ASSERT_EQUAL(after[SPL_P_LINK_UP], 1);
	CU_ASSERT_EQUAL(drain(0), 7);
	tx_net_destroy(net);
	two_ports_base_line();
}

static const struct t_case cases[] = {
	T(test_send_with_each_combination),
	T(test_send_shared_payload),
	T(test_full_port),
	T(test_down_port),
	T(test_too_long_to_send),
	T(test_no_buffer_to_linearise),
	T(test_users_share_a_queue),
	T(test_users_with_their_own_queues),
	T(test_no_memory_for_the_net),
	T(test_full_ring_between_users),
	T(test_fini_frees_what_waits),
	T(test_reclaim_when_idle),
	T(test_stats),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {
		T_SUITE("port_tx", two_ports_setup, two_ports_teardown, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
