/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and ending of what tx.c works with: see tx.h. The agent, while nobody sends. Owns the
 * rings; may fail for memory. */
#include "dataplane/port/tx_net.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <errno.h>
#include <stdlib.h>

static int add_ring(struct tx_net *net, unsigned port, unsigned from, unsigned owner)
{
	struct tx_in *in = &net->in[net->n_in];
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "tx_%u_%u", port, from);
	in->ring = rte_ring_create(name, TX_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!in->ring)
		return -rte_errno;
	in->port = (uint16_t)port;
	in->from = (uint16_t)from;
	in->owner = (uint16_t)owner;
	net->n_in++;
	return 0;
}

static int add_rings_of(struct tx_net *net, unsigned owner)
{
	int e = 0;

	for (unsigned p = 0; p < net->n_ports && !e; p++) {
		unsigned n_tx = net->ports[p].plan.n_tx;

		for (unsigned u = n_tx; u < net->users && !e; u++)
			if (u % n_tx == owner)
				e = add_ring(net, p, u, owner);
	}
	return e;
}

struct tx_net *tx_net_create(struct port *ports, unsigned n_ports, unsigned users,
			     void (*wake)(void *ctx, unsigned owner), void *wake_ctx)
{
	struct tx_net *net = calloc(1, sizeof(*net));
	int e = 0;

	if (!net)
		return NULL;
	net->ports = ports;
	net->n_ports = n_ports;
	net->users = users;
	net->wake = wake;
	net->wake_ctx = wake_ctx;
	net->in = calloc((size_t)n_ports * users + 1, sizeof(*net->in));
	if (!net->in)
		e = -ENOMEM;
	for (unsigned u = 0; u < users && !e; u++)
		e = add_rings_of(net, u);
	if (!e)
		return net;
	tx_net_destroy(net);
	errno = -e;
	return NULL;
}

void tx_net_destroy(struct tx_net *net)
{
	void *m;

	if (!net)
		return;
	for (unsigned i = 0; i < net->n_in; i++) {
		while (rte_ring_sc_dequeue(net->in[i].ring, &m) == 0)
			rte_pktmbuf_free(m);
		rte_ring_free(net->in[i].ring);
	}
	free(net->in);
	free(net);
}

void tx_init(struct tx *t, struct tx_net *net, unsigned user, struct rte_mempool *pool)
{
	memset(t, 0, sizeof(*t));
	t->net = net;
	t->pool = pool;
	t->user = (uint16_t)user;
	t->n_ports = (uint16_t)net->n_ports;
	for (unsigned p = 0; p < net->n_ports; p++) {
		unsigned n_tx = net->ports[p].plan.n_tx;

		t->port[p].port = &net->ports[p];
		t->port[p].owner = (uint16_t)(user % n_tx);
		t->port[p].queue = (uint16_t)(user % n_tx);
	}
	for (unsigned i = 0; i < net->n_in; i++) {
		const struct tx_in *in = &net->in[i];

		if (in->from == user)
			t->port[in->port].hop = in->ring;
		if (in->owner != user)
			continue;
		if (t->n_in == 0)
			t->in = in;
		t->n_in++;
	}
}
