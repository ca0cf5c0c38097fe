/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports over rings: bring-up, comparison with what came up, linearised receive and flags.
 * After every test the buffers are back at the base line. */
#include "dataplane/port/port.h"
#include "dataplane/port/rx.h"
#include "tests/lib/t_main.h"
#include "tests/vdev/two_ports.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

static char err[PORT_ERR_BYTES];
static uint8_t buf[T_FRAME_MAX];

static void test_opened_as_planned(void)
{
	CU_ASSERT_EQUAL(port[0].plan.n_tx, 1);
	CU_ASSERT_EQUAL(port[1].plan.n_tx, USERS);
	CU_ASSERT_TRUE(port[0].link_up);
	CU_ASSERT_EQUAL(port[0].local.ip, 0x0a000001);
	CU_ASSERT_EQUAL(port[0].local.n_lanes, LANES);
	CU_ASSERT_EQUAL(port[0].local.udp_base, 40000);
	CU_ASSERT_EQUAL(port[0].local.rx, 0); /* not a kernel device */
}

static void test_find_all(void)
{
	struct port_config c[3] = {t_port_config(&dev[1], "one"), t_port_config(&dev[0], "two")};
	uint16_t ids[3];

	CU_ASSERT_EQUAL(port_find_all(c, 2, ids, err), 0);
	CU_ASSERT_EQUAL(ids[0], dev[1].id);
	CU_ASSERT_EQUAL(ids[1], dev[0].id);
	CU_ASSERT_EQUAL(port_find_all(c, 1, ids, err), 1); /* came up, not asked for */
	CU_ASSERT_PTR_NOT_NULL(strstr(err, dev[0].name));
	c[2] = c[0];
	strcpy(c[2].name, "three");
	strcpy(c[2].device, "net_null7,size=64");
	CU_ASSERT_EQUAL(port_find_all(c, 3, ids, err), -ENODEV);
	CU_ASSERT(strstr(err, "port three") && strstr(err, "net_null7,size=64"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "no such device"));
}

/* Receives what is there, as a lane does; returns the number of frames. */
static unsigned receive(struct rte_mbuf **m, struct frame_view *v, struct rte_mempool *from)
{
	unsigned n = rte_eth_rx_burst(port[0].id, 0, m, 32);

	rx_parse(&port[0].local, m, v, n, from);
	return n;
}

static void test_receive_in_segments(void)
{
	struct t_frame f = t_frame_udp(&port[0].local, 1);
	struct rte_mbuf *m[32];
	struct frame_view v[32];
	size_t len;

	memcpy(f.dst, port[0].local.mac, 6);
	f.payload_len = 300;
	len = t_frame_write(&f, buf);
	for (unsigned seg = 0; seg < 100; seg++) {
		CU_ASSERT_TRUE(t_port_push(&dev[0], buf, len, seg));
		CU_ASSERT_EQUAL_FATAL(receive(m, v, pool), 1);
		CU_ASSERT_EQUAL(v[0].kind, FRAME_DATA);
		CU_ASSERT_EQUAL(v[0].lane, 1);
		CU_ASSERT_EQUAL(v[0].payload_len, 300);
		CU_ASSERT_EQUAL(m[0]->nb_segs, 1);
		CU_ASSERT_EQUAL(memcmp(v[0].data, buf, len), 0);
		rte_pktmbuf_free(m[0]);
	}
	two_ports_base_line();
}

static void test_receive_without_a_buffer(void)
{
	struct t_frame f = t_frame_udp(&port[0].local, 1);
	struct rte_mbuf *m[32], *held[63];
	struct frame_view v[32];
	unsigned n = 0;
	size_t len;

	memcpy(f.dst, port[0].local.mac, 6);
	len = t_frame_write(&f, buf);
	while (n < 63 && (held[n] = rte_pktmbuf_alloc(tiny)) != NULL)
		n++;
	CU_ASSERT_TRUE(t_port_push(&dev[0], buf, len, 20));
	CU_ASSERT_TRUE(t_port_push(&dev[0], buf, len, 0));
	CU_ASSERT_EQUAL_FATAL(receive(m, v, tiny), 2);
	CU_ASSERT_EQUAL(v[0].kind, FRAME_DROP);
	CU_ASSERT_EQUAL(v[0].reason, SPL_DROP_NO_MBUF);
	CU_ASSERT_EQUAL(v[1].kind, FRAME_DATA); /* its neighbour in the burst is served */
	rte_pktmbuf_free_bulk(m, 2);
	rte_pktmbuf_free_bulk(held, n);
	two_ports_base_line();
}

static void test_receive_more_than_a_buffer_holds(void)
{
	struct rte_mbuf *m[32];
	struct frame_view v[32];

	memset(buf, 0, 3000);
	CU_ASSERT_TRUE(t_port_push(&dev[0], buf, 3000, 1000));
	CU_ASSERT_EQUAL_FATAL(receive(m, v, pool), 1);
	CU_ASSERT_EQUAL(v[0].kind, FRAME_DROP);
	CU_ASSERT_EQUAL(v[0].reason, SPL_DROP_OVERSIZE);
	rte_pktmbuf_free(m[0]);
	two_ports_base_line();
}

/* Each flag of a device becomes the right hint, also through linearising. */
static void test_receive_flags(void)
{
	static const struct {
		uint64_t flags;
		uint8_t hints;
	} row[] = {
		{0, 0},
		{RTE_MBUF_F_RX_IP_CKSUM_GOOD, FRAME_RX_IP_GOOD},
		{RTE_MBUF_F_RX_IP_CKSUM_NONE, FRAME_RX_IP_GOOD},
		{RTE_MBUF_F_RX_IP_CKSUM_BAD, FRAME_RX_IP_BAD},
		{RTE_MBUF_F_RX_L4_CKSUM_GOOD, FRAME_RX_L4_GOOD},
		{RTE_MBUF_F_RX_L4_CKSUM_NONE, FRAME_RX_L4_GOOD},
		{RTE_MBUF_F_RX_L4_CKSUM_BAD, FRAME_RX_L4_BAD},
		{RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_IP_CKSUM_BAD,
		 FRAME_RX_L4_GOOD | FRAME_RX_IP_BAD},
		{RTE_MBUF_F_RX_RSS_HASH | RTE_MBUF_F_RX_VLAN, 0},
	};
	struct t_frame f = t_frame_udp(&port[0].local, 1);
	struct rte_mbuf *m = NULL;
	struct frame_view v;
	size_t len = t_frame_write(&f, buf);

	for (unsigned i = 0; i < T_COUNT(row); i++) {
		CU_ASSERT_EQUAL(rx_hints(row[i].flags), row[i].hints);
		t_port_push(&dev[0], buf, len, 25);
		CU_ASSERT_EQUAL_FATAL(rte_ring_dequeue(dev[0].rx, (void **)&m), 0);
		m->ol_flags |= row[i].flags;
		m->port = 5;
		rx_parse(&port[0].local, &m, &v, 1, pool);
		CU_ASSERT_EQUAL(v.rx, row[i].hints);
		CU_ASSERT_EQUAL(m->port, 5);
		rte_pktmbuf_free(m);
	}
	two_ports_base_line();
}

/* Closing and opening again: the device serves as before; a bad wish leaves nothing behind. */
static void test_reopen(void)
{
	struct port_config c = t_port_config(&dev[0], "narrow");
	struct port p = {0};

	port_close(&p); /* never opened */
	port_close(NULL);
	port_stop(&port[0]);
	port_stop(&port[0]);
	c.mtu = 9000;
	CU_ASSERT_EQUAL(port_open(&p, dev[0].id, &c, LANES, pool, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "port narrow"));
	CU_ASSERT_FALSE(p.is_open);
	c.mtu = 1500;
	CU_ASSERT_EQUAL(port_open(&port[0], dev[0].id, &c, LANES, pool, err), 0);
	CU_ASSERT_EQUAL(port_start(&port[0], err), 0);
	CU_ASSERT_TRUE(port[0].link_up);
	CU_ASSERT_EQUAL(port_find_all(&c, 1, &p.id, err), 1);
	test_receive_in_segments();
}

static const struct t_case cases[] = {
	T(test_opened_as_planned),
	T(test_find_all),
	T(test_receive_in_segments),
	T(test_receive_without_a_buffer),
	T(test_receive_more_than_a_buffer_holds),
	T(test_receive_flags),
	T(test_reopen),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {
		T_SUITE("port", two_ports_setup, two_ports_teardown, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
