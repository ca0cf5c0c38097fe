/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: frames in: a burst from each port, parsed, and each frame to whom it is for. A frame
 * for another lane goes there by one bulk ring hop before anything of it but the UDP port is looked
 * at; ARP, ICMP and association packets go to the agent. Every frame ends in one counter.
 */
#include "dataplane/lane/lane.h"

#include <rte_ethdev.h>
#include <rte_prefetch.h>

void lane_mbuf_put(struct rte_mbuf *m)
{
	struct lane_buffer *b = rte_mbuf_to_priv(m);

	if (b->refs > 1) {
		b->refs--;
		return;
	}
	b->refs = 0;
	rte_pktmbuf_free(m);
}

/* Frames of this burst for other threads, gathered so that each ring is pushed once. */
struct away {
	unsigned n;
	void *item[LANE_BURST];
	uint16_t to[LANE_BURST];
};

static void push_away(struct lane *l, struct away *a)
{
	unsigned agent = l->sh->lanes;

	while (a->n > 0) {
		void *run[LANE_BURST];
		unsigned n = 0, left = 0, to = a->to[0], done;

		for (unsigned i = 0; i < a->n; i++) {
			if (a->to[i] == to) {
				run[n++] = a->item[i];
			} else {
				a->to[left] = a->to[i];
				a->item[left++] = a->item[i];
			}
		}
		a->n = left;
		done = hop_push(&l->sh->hop, l->index, to, run, n);
		lane_count(l, to == agent ? SPL_C_FRAMES_TO_AGENT : SPL_C_FRAMES_HOP, done);
		for (unsigned i = done; i < n; i++) {
			lane_drop(l, to == agent ? SPL_DROP_AGENT_RING : SPL_DROP_LANE_RING);
			rte_pktmbuf_free(hop_pointer(run[i]));
		}
	}
}

static void send_away(struct away *away, struct rte_mbuf *m, const struct port *p, unsigned to)
{
	m->port = p->id; /* not every driver says it (net_ring), lane_rx_hopped() asks */
	away->to[away->n] = (uint16_t)to;
	away->item[away->n++] = hop_tag(m, HOP_FRAME);
}

static void sort_frame(struct lane *l, const struct port *p, struct rte_mbuf *m,
		       const struct frame_view *v, struct away *away)
{
	switch ((enum frame_kind)v->kind) {
	case FRAME_DATA:
		if (v->lane == l->index) {
			lane_rx_frame(l, m, v);
			return;
		}
		send_away(away, m, p, v->lane);
		return;
	case FRAME_AGENT:
	case FRAME_ARP:
	case FRAME_ICMP:
		send_away(away, m, p, l->sh->lanes);
		return;
	case FRAME_OTHER:
		lane_use(l, SPL_USE_OTHER_HOST);
		break;
	case FRAME_DROP:
	case FRAME_KIND_COUNT:
		lane_drop(l, v->reason);
		break;
	}
	rte_pktmbuf_free(m);
}

static unsigned rx_port(struct lane *l, struct port *p)
{
	struct rte_mbuf *m[LANE_BURST];
	struct away away = {.n = 0};
	unsigned n = rte_eth_rx_burst(p->id, 0, m, LANE_BURST);

	if (n == 0)
		return 0;
	rx_parse(&p->local, m, l->view, n, l->sh->pool);
	l->is_flooded |= n == LANE_BURST;
	for (unsigned i = 0; i < n; i++)
		sort_frame(l, p, m[i], &l->view[i], &away);
	push_away(l, &away);
	return n;
}

unsigned lane_rx_ports(struct lane *l)
{
	unsigned n = 0;

	l->is_flooded = false;
	for (unsigned i = 0; i < l->n_port; i++)
		n += rx_port(l, &l->sh->ports[l->port[i]]);
	return n;
}

/* The index of the port a frame came in on. */
static struct port *port_of(struct lane *l, const struct rte_mbuf *m)
{
	for (unsigned i = 0; i < l->sh->n_ports; i++)
		if (l->sh->ports[i].id == m->port)
			return &l->sh->ports[i];
	return NULL;
}

void lane_rx_hopped(struct lane *l, struct rte_mbuf **m, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct port *p = port_of(l, m[i]);

		if (!p) {
			lane_drop(l, SPL_DROP_LINK_LANE);
			rte_pktmbuf_free(m[i]);
			continue;
		}
		rx_parse(&p->local, &m[i], l->view, 1, l->sh->pool);
		if (l->view[0].kind == FRAME_DATA && l->view[0].lane == l->index) {
			lane_rx_frame(l, m[i], &l->view[0]);
		} else {
			lane_drop(l, SPL_DROP_LINK_LANE);
			rte_pktmbuf_free(m[i]);
		}
	}
}

/* A FLOW packet for this lane: finds its flow, or says why not. */
static struct lane_flow *find_flow(struct lane *l, const struct frame_view *v, unsigned *drop)
{
	const uint8_t *p = frame_payload(v);
	struct lane_peer *peer;
	struct wire_hdr h;
	enum spl_frame_drop why;
	unsigned slot;

	if (wire_hdr_get(&h, p, v->payload_len, &why)) {
		*drop = why;
		return NULL;
	}
	*drop = SPL_DROP_LINK_KIND;
	if (h.kind != SPL_PKT_FLOW)
		return NULL;
	*drop = SPL_DROP_LINK_FLOW;
	slot = wire_id_slot(h.id);
	if (slot >= l->sh->associations)
		return NULL;
	peer = &l->peer[slot];
	if (peer->rx_id != h.id || h.id == 0 || peer->ip != v->src_ip)
		return NULL;
	*drop = SPL_DROP_LINK_LANE;
	if (h.src_lane >= peer->lanes || h.dst_lane != l->index || h.cls != v->cls)
		return NULL;
	return &peer->flows[h.src_lane];
}

void lane_rx_frame(struct lane *l, struct rte_mbuf *m, const struct frame_view *v)
{
	unsigned drop = 0;
	struct lane_flow *f = find_flow(l, v, &drop);

	if (!f || !lane_flow_open(l, f)) {
		lane_drop(l, f ? SPL_DROP_LINK_MEMORY : drop);
		rte_pktmbuf_free(m);
		return;
	}
	lane_input_packet(l, f, m, v);
}
