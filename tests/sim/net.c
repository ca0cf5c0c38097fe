/* SPDX-License-Identifier: BSD-3-Clause */
/* The bad network between the clients and the node: loss, doubles, delay, another order. Datagrams
 * on the clients' side, Ethernet frames on the node's: here is also who answers its ARP.
 */
#include "tests/sim/world.h"

#include "dataplane/frame/arp.h"

#include <stdlib.h>

#define CLIENT_IP(i)   (0x0a000002u + (uint32_t)(i))
#define CLIENT_PORT(i) ((uint16_t)(5000 + (i)))

static bool before(const struct sim_packet *a, const struct sim_packet *b)
{
	return a->due != b->due ? a->due < b->due : a->order < b->order;
}

static void heap_push(struct world *w, struct sim_packet *p)
{
	unsigned i = w->n_packets++;

	while (i > 0 && before(p, w->packet[(i - 1) / 2])) {
		w->packet[i] = w->packet[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->packet[i] = p;
}

static struct sim_packet *heap_pop(struct world *w)
{
	struct sim_packet *top = w->packet[0], *last = w->packet[--w->n_packets];
	unsigned i = 0, k;

	while ((k = 2 * i + 1) < w->n_packets) {
		if (k + 1 < w->n_packets && before(w->packet[k + 1], w->packet[k]))
			k++;
		if (!before(w->packet[k], last))
			break;
		w->packet[i] = w->packet[k];
		i = k;
	}
	w->packet[i] = last;
	return top;
}

static void put(struct world *w, bool to_node, int client, uint16_t port, const void *p,
		uint32_t len)
{
	struct sim_packet *k;

	if (w->n_packets == SIM_INFLIGHT || len > sizeof(k->b)) {
		w->counts.lost++;
		return;
	}
	k = malloc(sizeof(*k));
	if (!k)
		abort();
	k->due = w->now + (20 + t_rand_below(&w->rand, 60)) * SIM_US;
	if (!w->is_ending && sim_chance(w, w->plan.late)) {
		k->due += t_rand_below(&w->rand, 20000) * SIM_US;
		w->counts.late++;
	}
	k->order = w->packet_order++;
	k->client = client;
	k->to_node = to_node;
	k->port = port;
	k->len = (uint16_t)len;
	memcpy(k->b, p, len);
	heap_push(w, k);
}

void sim_net_send(struct world *w, bool to_node, int client, uint16_t port, const void *p,
		  uint32_t len)
{
	if (!w->is_ending && sim_chance(w, w->plan.loss)) {
		w->counts.lost++;
		return;
	}
	put(w, to_node, client, port, p, len);
	if (!w->is_ending && sim_chance(w, w->plan.dup)) {
		w->counts.doubled++;
		put(w, to_node, client, port, p, len);
	}
}

/* ---- the node's side ---- */

static void push_frame(struct world *w, const struct sim_packet *k)
{
	static uint8_t frame[T_FRAME_MAX];
	struct t_frame f = t_frame_udp(&w->port->local, 0);

	f.src[5] = (uint8_t)(2 + k->client);
	f.src_ip = CLIENT_IP(k->client);
	f.sport = CLIENT_PORT(k->client);
	f.dport = k->port;
	f.payload = k->b;
	f.payload_len = k->len;
	if (!t_port_push(w->wire, frame, t_frame_write(&f, frame), 0))
		w->counts.lost++;
}

void sim_net_deliver(struct world *w)
{
	while (w->n_packets > 0 && w->packet[0]->due <= w->now) {
		struct sim_packet *k = heap_pop(w);

		if (k->to_node) {
			if (w->agent)
				push_frame(w, k);
		} else if (w->client[k->client].c) {
			w->client[k->client].inbox[w->client[k->client].inbox_tail++ % SIM_INBOX] =
				k;
			continue;
		}
		free(k);
	}
}

static void answer_arp(struct world *w, const uint8_t *frame)
{
	static uint8_t out[T_FRAME_MAX];
	struct t_arp a = t_frame_arp(&w->port->local);
	uint32_t ip = frame_be32(frame + FRAME_ETH_BYTES + 24);

	if (ip - CLIENT_IP(0) >= w->plan.clients)
		return;
	a.op = 2;
	memcpy(a.dst, w->port->local.mac, 6);
	a.src[5] = a.sender[5] = (uint8_t)(2 + (ip - CLIENT_IP(0)));
	a.sender_ip = ip;
	memcpy(a.target, w->port->local.mac, 6);
	a.target_ip = w->port->local.ip;
	t_port_push(w->wire, out, t_arp_write(&a, out), 0);
}

void sim_net_from_node(struct world *w)
{
	static uint8_t frame[T_FRAME_MAX];
	size_t len;

	while ((len = t_port_pull_any(w->wire, frame)) > 0) {
		uint16_t type = frame_be16(frame + 12);
		const char *wrong;
		uint32_t ip;

		if (type == 0x0806) {
			if (frame_be16(frame + FRAME_ETH_BYTES + 6) == 1)
				answer_arp(w, frame);
			continue;
		}
		wrong = t_frame_check(frame, len);
		ip = frame_be32(frame + 30);
		if (wrong || ip - CLIENT_IP(0) >= w->plan.clients)
			sim_problem(w, "a frame from the node is wrong: %s",
				    wrong ? wrong : "address");
		else
			sim_net_send(w, false, (int)(ip - CLIENT_IP(0)), frame_be16(frame + 34),
				     frame + FRAME_HDR_BYTES,
				     (uint32_t)frame_be16(frame + 38) - FRAME_UDP_BYTES);
	}
}

void sim_net_clear(struct world *w)
{
	while (w->n_packets > 0)
		free(heap_pop(w));
	for (unsigned i = 0; i < SIM_CLIENTS; i++) {
		struct sim_client *c = &w->client[i];

		while (c->inbox_head != c->inbox_tail)
			free(c->inbox[c->inbox_head++ % SIM_INBOX]);
	}
}

/* ---- a client's side ---- */

static unsigned net_recv(void *arg, struct net_packet *p, unsigned n)
{
	struct sim_client *c = arg;
	unsigned i = 0;

	while (i < n && c->inbox_head != c->inbox_tail) {
		struct sim_packet *k = c->inbox[c->inbox_head++ % SIM_INBOX];

		if (k->len <= p[i].room) {
			memcpy(p[i].b, k->b, k->len);
			p[i].len = k->len;
			p[i].ip = sim->port->local.ip;
			p[i].port = k->port;
			i++;
		}
		free(k);
	}
	return i;
}

static unsigned net_send(void *arg, const struct net_packet *p, unsigned n)
{
	struct sim_client *c = arg;

	for (unsigned i = 0; i < n; i++)
		sim_net_send(sim, true, (int)c->index, p[i].port, p[i].b, p[i].len);
	return n;
}

static int net_wait(void *arg, bool to_send, uint64_t timeout_ns)
{
	return 0;
}

static int net_fd(void *arg)
{
	return -1;
}

static void net_close(void *arg)
{
}

static uint64_t net_now(void *arg)
{
	return sim->now;
}

static void net_random(void *arg, void *out, size_t bytes)
{
	sim_random(sim, out, bytes);
}

const struct net_ops sim_net_ops = {
	.recv = net_recv,
	.send = net_send,
	.wait = net_wait,
	.fd = net_fd,
	.close = net_close,
	.now = net_now,
	.random = net_random,
};
