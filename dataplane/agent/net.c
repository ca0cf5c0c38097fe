/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: frames that lanes hand to the agent, ARP, ICMP echo and association packets, and
 * the agent's own. A frame to a next hop without a known MAC waits in the neighbour table.
 */
#include "dataplane/agent/agent.h"

#include "common/clock.h"
#include "dataplane/frame/arp.h"
#include "dataplane/frame/icmp.h"

#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>

static void count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static void use(struct agent *a, unsigned u)
{
	count(&agent_stats(a)->use[u]);
}

static void drop(struct agent *a, unsigned d)
{
	count(&agent_stats(a)->drop[d]);
}

/* ---- neighbours ---- */

static void send_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
	struct agent_port *p = ctx;
	struct agent *a = p->agent;
	struct rte_mbuf *m = rte_pktmbuf_alloc(a->sh.pool);

	if (!m)
		return; /* asked again later */
	arp_request(&a->ports[p->index].local, ip, mac,
		    (uint8_t *)rte_pktmbuf_append(m, ARP_FRAME_BYTES));
	tx_raw(&a->tx, p->index, m);
}

static void send_waiting(void *ctx, void *frame, const uint8_t *mac)
{
	struct agent_port *p = ctx;
	struct rte_mbuf *m = frame;

	if (!mac) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), mac, 6);
	tx_udp(&p->agent->tx, p->index, m);
}

int agent_net_start(struct agent *a, char *err, size_t n)
{
	static const struct neigh_times times = NEIGH_TIMES_DEFAULT;
	uint64_t secret;

	bucket_init(&a->icmp, AGENT_ICMP_RATE, AGENT_ICMP_RATE);
	for (unsigned i = 0; i < a->sh.n_ports; i++) {
		struct neigh_ops ops = {&a->port[i], send_probe, send_waiting};

		a->random(a->random_ctx, &secret, sizeof(secret));
		a->port[i].agent = a;
		a->port[i].index = i;
		a->port[i].neigh = neigh_create(AGENT_NEIGHBOURS, &times, &ops, secret);
		if (!a->port[i].neigh) {
			snprintf(err, n, "no memory for neighbours");
			return -ENOMEM;
		}
		a->sh.neigh[i] = neigh_published(a->port[i].neigh);
		if (a->ports[i].local.gateway &&
		    neigh_keep(a->port[i].neigh, a->ports[i].local.gateway, a->now))
			return -ENOSPC;
	}
	return 0;
}

void agent_net_stop(struct agent *a)
{
	for (unsigned i = 0; i < PORTS_MAX; i++) {
		neigh_destroy(a->port[i].neigh);
		a->port[i].neigh = NULL;
	}
	free(a->assoc_mem);
	a->assoc_mem = NULL;
	a->assoc = NULL;
}

/* ---- association packets ---- */

static void addr_of(uint32_t ip, uint16_t port, struct assoc_addr *out)
{
	memset(out, 0, sizeof(*out));
	out->b[10] = out->b[11] = 0xff; /* IPv4 in IPv6 */
	frame_put32(out->b + 12, ip);
	frame_put16(out->b + 16, port);
}

/* The port index and next hop to `ip`; UINT_MAX when there is no way. */
unsigned agent_route(const struct agent *a, uint32_t ip, uint32_t *next_hop)
{
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < a->sh.n_ports; i++) {
			const struct frame_local *l = &a->ports[i].local;
			bool near = ((ip ^ l->ip) & frame_mask(l->prefix)) == 0;

			*next_hop = frame_next_hop(l, ip);
			if (*next_hop && near == (pass == 0))
				return i;
		}
	return UINT32_MAX;
}

static void send_datagram(struct agent *a, const struct assoc_addr *to, const void *data,
			  uint32_t len)
{
	static const uint8_t unknown[6];
	uint32_t ip = frame_be32(to->b + 12), hop;
	unsigned port = agent_route(a, ip, &hop);
	struct build_path path;
	struct rte_mbuf *m;
	uint8_t *p;

	if (port == UINT32_MAX)
		return;
	m = rte_pktmbuf_alloc(a->sh.pool);
	if (!m)
		return; /* the handshake and the beacon come again */
	build_path_init(&path, &a->ports[port].local,
			(uint16_t)(a->ports[port].local.udp_base + FRAME_AGENT_OFFSET), unknown, ip,
			frame_be16(to->b + 16));
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(FRAME_HDR_BYTES + len));
	if (!p) {
		rte_pktmbuf_free(m);
		return;
	}
	build_udp(&path, (uint16_t)len, a->ip_id++, p);
	memcpy(p + FRAME_HDR_BYTES, data, len);
	neigh_send(a->port[port].neigh, hop, m, a->now);
}

static void association(struct agent *a, const struct frame_view *v)
{
	struct assoc_answer answer = {.len = 0};
	struct assoc_result r;
	struct assoc_addr from;

	if (!a->assoc) {
		drop(a, SPL_DROP_HANDSHAKE_REFUSED);
		return;
	}
	addr_of(v->src_ip, v->src_port, &from);
	r = assoc_rx(a->assoc, &from, frame_payload(v), v->payload_len, a->now, &answer);
	if (r.drop != ASSOC_NO_DROP)
		drop(a, r.drop);
	else
		use(a, r.use);
	agent_peers_poll(a); /* lanes hear of the peer before it can hear of us */
	if (answer.len)
		send_datagram(a, &from, answer.b, answer.len);
}

/* ---- frames ---- */

static bool arp(struct agent *a, unsigned port, struct frame_view *v, struct rte_mbuf *m)
{
	switch (arp_input(&a->ports[port].local, a->port[port].neigh, v, a->now)) {
	case ARP_DROP:
		drop(a, v->reason);
		return false;
	case ARP_OTHER:
		use(a, SPL_USE_OTHER_HOST);
		return false;
	case ARP_DONE:
		use(a, SPL_USE_ARP);
		return false;
	case ARP_REPLY:
		use(a, SPL_USE_ARP);
		break;
	}
	m->data_len = (uint16_t)v->len;
	m->pkt_len = v->len;
	return true;
}

static bool icmp(struct agent *a, unsigned port, struct frame_view *v, struct rte_mbuf *m)
{
	if (!icmp_echo(&a->ports[port].local, &a->icmp, v, a->ip_id++, a->now)) {
		drop(a, v->reason);
		return false;
	}
	use(a, SPL_USE_ICMP);
	m->data_off = (uint16_t)(v->data - (uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)v->len;
	m->pkt_len = v->len;
	return true;
}

void agent_frame(struct agent *a, struct rte_mbuf *m)
{
	struct frame_view v;
	unsigned port = 0;
	bool send = false;

	count(&agent_stats(a)->counter[SPL_C_FRAMES_RX]);
	while (port < a->sh.n_ports && a->ports[port].id != m->port)
		port++;
	if (port == a->sh.n_ports) {
		drop(a, SPL_DROP_LINK_LANE);
		rte_pktmbuf_free(m);
		return;
	}
	rx_parse(&a->ports[port].local, &m, &v, 1, a->sh.pool);
	switch ((enum frame_kind)v.kind) {
	case FRAME_ARP:
		send = arp(a, port, &v, m);
		break;
	case FRAME_ICMP:
		send = icmp(a, port, &v, m);
		break;
	case FRAME_AGENT:
		a->last_port = port;
		a->last_ip = v.src_ip;
		memcpy(a->last_mac, v.data + 6, 6);
		association(a, &v);
		break;
	case FRAME_DROP:
		drop(a, v.reason);
		break;
	case FRAME_DATA:
	case FRAME_OTHER:
	case FRAME_KIND_COUNT:
		use(a, SPL_USE_OTHER_HOST);
		break;
	}
	if (send)
		tx_raw(&a->tx, port, m);
	else
		rte_pktmbuf_free(m);
}

void agent_net_poll(struct agent *a)
{
	uint8_t out[WIRE_INIT_BYTES];
	struct assoc_addr to;
	uint32_t n;

	for (unsigned i = 0; i < a->sh.n_ports; i++)
		a->neigh_due[i] = neigh_tick(a->port[i].neigh, a->now);
	if (!a->assoc)
		return;
	while ((n = assoc_tx(a->assoc, out, sizeof(out), &to, a->now)) > 0)
		send_datagram(a, &to, out, n);
}

uint64_t agent_net_due(const struct agent *a)
{
	uint64_t due = a->next_tick;

	for (unsigned i = 0; i < a->sh.n_ports; i++)
		if (a->neigh_due[i] < due)
			due = a->neigh_due[i];
	if (a->assoc && assoc_next_timer(a->assoc) < due)
		due = assoc_next_timer(a->assoc);
	return due;
}
