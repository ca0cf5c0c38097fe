/* SPDX-License-Identifier: BSD-3-Clause */
/* Ring-backed ports for tests: see t_port.h. */
#include "tests/lib/t_port.h"

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "test port: %s\n", what);
	abort();
}

static struct rte_ring *make_ring(const char *name, const char *what, unsigned q)
{
	char full[RTE_RING_NAMESIZE];
	struct rte_ring *r;

	snprintf(full, sizeof(full), "%.12s_%s%u", name, what, q);
	r = rte_ring_create(full, T_PORT_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	must(r, "no ring");
	return r;
}

void t_port_make(struct t_port *t, const char *name, unsigned n_tx, struct rte_mempool *pool)
{
	int id;

	memset(t, 0, sizeof(*t));
	must(n_tx >= 1 && n_tx <= T_PORT_QUEUES, "number of queues");
	t->pool = pool;
	t->n_tx = n_tx;
	t->rx = make_ring(name, "rx", 0);
	for (unsigned q = 0; q < n_tx; q++)
		t->tx[q] = make_ring(name, "tx", q);
	id = rte_eth_from_rings(name, &t->rx, 1, t->tx, n_tx, 0);
	must(id >= 0, "no device");
	t->id = (uint16_t)id;
	must(rte_eth_dev_get_name_by_port(t->id, t->name) == 0, "no name");
}

struct port_config t_port_config(const struct t_port *t, const char *name)
{
	struct port_config c = {
		.ip = 0x0a000001,
		.gateway = 0x0a0000fe,
		.prefix = 24,
		.mtu = 1500,
		.udp_base = 40000,
	};

	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.device, sizeof(c.device), "%s", t->name);
	return c;
}

void t_port_up(struct t_port *t, const char *name, struct port *p, unsigned n_lanes)
{
	struct port_config c = t_port_config(t, name);
	char err[PORT_ERR_BYTES] = "";

	if (port_open(p, t->id, &c, n_lanes, t->pool, err) || port_start(p, err))
		must(false, err);
}

void t_port_down(struct t_port *t, struct port *p)
{
	struct rte_mbuf *m;

	port_close(p);
	while (rte_ring_dequeue(t->rx, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(t->rx);
	for (unsigned q = 0; q < t->n_tx; q++) {
		while (rte_ring_dequeue(t->tx[q], (void **)&m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(t->tx[q]);
	}
}

/* A chain of buffers of at most seg bytes each, at least one. */
static struct rte_mbuf *chain(struct rte_mempool *pool, const uint8_t *bytes, size_t len,
			      unsigned seg)
{
	struct rte_mbuf *head = NULL, *m;

	do {
		size_t n = seg && len > seg ? seg : len;
		char *to;

		m = rte_pktmbuf_alloc(pool);
		must(m, "no buffer");
		to = rte_pktmbuf_append(m, (uint16_t)n);
		must(to, "frame longer than a buffer");
		if (n)
			memcpy(to, bytes, n);
		bytes += n;
		len -= n;
		if (!head)
			head = m;
		else
			must(rte_pktmbuf_chain(head, m) == 0, "too many segments");
	} while (len);
	return head;
}

bool t_port_push(struct t_port *t, const uint8_t *bytes, size_t len, unsigned seg)
{
	struct rte_mbuf *m = chain(t->pool, bytes, len, seg);

	if (t->vouches && ++t->pushed % 4 != 0)
		m->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	if (rte_ring_enqueue(t->rx, m) == 0)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

size_t t_port_pull(struct t_port *t, unsigned q, uint8_t out[T_FRAME_MAX])
{
	struct rte_mbuf *m;
	size_t len;
	const void *p;

	if (rte_ring_dequeue(t->tx[q], (void **)&m))
		return 0;
	len = m->pkt_len;
	must(len <= T_FRAME_MAX, "sent frame too long");
	p = rte_pktmbuf_read(m, 0, (uint32_t)len, out);
	must(p, "sent frame shorter than it says");
	if (p != out)
		memcpy(out, p, len);
	rte_pktmbuf_free(m);
	return len;
}

size_t t_port_pull_any(struct t_port *t, uint8_t out[T_FRAME_MAX])
{
	size_t len = 0;

	for (unsigned q = 0; q < t->n_tx && len == 0; q++)
		len = t_port_pull(t, q, out);
	return len;
}
