/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: frames in: a burst from each port, parsed, and each frame to whom it is for. A frame
 * for another lane goes there by one bulk ring hop after its headers and checksums were looked at;
 * ARP, ICMP and association packets go to the agent. A frame of one plain message becomes a record
 * here; any other goes through the input round (input.c).
 *
 * Received are the frames of a burst that stay on this thread, and those that others pushed here;
 * each ends in one counter of uses or drops.
 */
#include "dataplane/lane/plain.h"

#include "dataplane/link/flow_one.h"

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

/* Returns how many other threads have taken over. */
static unsigned push_away(struct lane *l, struct away *a)
{
	unsigned agent = l->sh->lanes, total = 0;

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
		total += done;
	}
	return total;
}

/* Without `away` the frame hopped already, and was steered wrong. */
static void send_away(struct lane *l, struct away *away, struct rte_mbuf *m, const struct port *p,
		      unsigned to)
{
	if (!away) {
		lane_drop(l, SPL_DROP_LINK_LANE);
		rte_pktmbuf_free(m);
		return;
	}
	m->port = p->id; /* not every driver says it (net_ring), lane_rx_hopped() asks */
	away->to[away->n] = (uint16_t)to;
	away->item[away->n++] = hop_tag(m, HOP_FRAME);
}

/* The flow that the flow id, the peer's lane and the source address name, NULL when there is none.
 * The rest of the header is not compared yet. Wants WIRE_HDR_BYTES. */
static inline struct lane_flow *flow_of(const struct lane_peer *peers, unsigned n, const uint8_t *p,
					uint32_t src_ip)
{
	uint64_t id = wire_flow_id(p);
	unsigned slot = wire_id_slot(id), peer_lane = wire_flow_src_lane(p);
	const struct lane_peer *peer = &peers[slot];

	if (slot >= n || ((peer->rx_id ^ id) | (peer->ip ^ src_ip)) || peer_lane >= peer->lanes)
		return NULL;
	return &peer->flows[peer_lane];
}

/* The checksums of a frame that frame_expected() knows, when the port has not found both good. */
static __attribute__((noinline)) bool sums_are_good(const struct rte_mbuf *m, uint8_t rx,
						    uint32_t payload)
{
	struct frame_view v = {.data = rte_pktmbuf_mtod(m, uint8_t *),
			       .rx = rx_hints(m->ol_flags) | rx};

	return frame_sums_ok(&v, (uint16_t)(payload + FRAME_UDP_BYTES));
}

static inline bool is_vouched_for(const struct rte_mbuf *m)
{
	const uint64_t good = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;

	return (m->ol_flags & good) == good; /* NONE has these bits too */
}

/* Frames of one plain message each, the next of their flows, on the port where their peers are, so
 * that the addresses of these were looked at before: takes them from `i` on until one is another or
 * there is no record; returns where that is. */
static inline unsigned take_plain(struct lane *l, const struct port *p, struct rte_mbuf *const *m,
				  unsigned i, unsigned n)
{
	const uint16_t port = (uint16_t)(p - l->sh->ports);
	const uint16_t udp = (uint16_t)(p->local.udp_base + l->index);
	const unsigned peers_max = l->sh->associations;
	const struct lane_peer *peers = l->peer;
	const uint64_t now_ns = l->now_ns;
	unsigned at = l->n_plain, end = l->plain_got;

	if (l->n_input) /* what came before it is admitted first */
		return i;
	for (; i < n && at < end; i++, at++) {
		const uint8_t *d = rte_pktmbuf_mtod(m[i], const uint8_t *);
		struct spot_rec *r = l->plain[at];
		struct lane_flow *f;
		uint32_t len;

		if (m[i]->nb_segs != 1 || m[i]->pkt_len < FRAME_HDR_BYTES + FLOW_ONE_HDR)
			break;
		len = frame_expected(&p->local, d, m[i]->pkt_len, udp);
		if (len < FLOW_ONE_HDR + WIRE_MSG_BYTES ||
		    !wire_is_app_to(d + FRAME_HDR_BYTES, l->index))
			break;
		f = flow_of(peers, peers_max, d + FRAME_HDR_BYTES, frame_be32(d + 26));
		d += FRAME_HDR_BYTES;
		if (!f || f->port != port || len - FLOW_ONE_HDR > f->msg_bytes ||
		    !flow_one(f->flow, d, len) ||
		    !plain_record(l, f, d + FLOW_ONE_HDR, len - FLOW_ONE_HDR, r))
			break;
		/* Last, because a frame that goes the general way is summed up there. */
		if (!is_vouched_for(m[i]) && !sums_are_good(m[i], p->local.rx, len))
			break;
		r->charge = flow_one_take(f->flow, len, now_ns);
		r->buf = lane_buf(m[i], LANE_BUF_ALONE);
		lane_flow_touch(l, f);
	}
	l->n_plain = at;
	return i;
}

/* A packet that no open flow takes at once: true when `f` is to be opened for it, else why not. */
static __attribute__((noinline)) bool is_first(const struct lane *l, const struct lane_flow *f,
					       const struct frame_view *v, enum spl_frame_drop *why)
{
	const struct lane_peer *peer;
	struct wire_hdr h;

	if (wire_hdr_get(&h, frame_payload(v), v->payload_len, why))
		return false;
	peer = &l->peer[wire_id_slot(h.id)];
	if (h.kind != SPL_PKT_FLOW)
		*why = SPL_DROP_LINK_KIND;
	else if (wire_id_slot(h.id) >= l->sh->associations || h.id == 0 || peer->rx_id != h.id ||
		 peer->ip != v->src_ip)
		*why = SPL_DROP_LINK_FLOW;
	else if (!f || h.dst_lane != l->index || h.cls != v->cls)
		*why = SPL_DROP_LINK_LANE;
	else
		return true;
	return false;
}

/* A packet of a flow of this lane; flow_rx() compares its header with the flow's. */
static void take_packet(struct lane *l, struct rte_mbuf *m, const struct frame_view *v)
{
	const uint8_t *p = frame_payload(v);
	struct lane_flow *f = v->payload_len < WIRE_HDR_BYTES
				      ? NULL
				      : flow_of(l->peer, l->sh->associations, p, v->src_ip);
	enum spl_frame_drop why = SPL_DROP_LINK_MEMORY;
	bool is_open = f && f->flow && wire_flow_class(p) == v->cls;

	if (is_open || (is_first(l, f, v, &why) && lane_flow_open(l, f))) {
		lane_input_packet(l, f, m, v);
		return;
	}
	lane_drop(l, why);
	rte_pktmbuf_free(m);
}

static void sort_frame(struct lane *l, const struct port *p, struct rte_mbuf *m,
		       const struct frame_view *v, struct away *away)
{
	switch ((enum frame_kind)v->kind) {
	case FRAME_DATA:
		if (v->lane == l->index) {
			take_packet(l, m, v);
			return;
		}
		send_away(l, away, m, p, v->lane);
		return;
	case FRAME_AGENT:
	case FRAME_ARP:
	case FRAME_ICMP:
		send_away(l, away, m, p, l->sh->lanes);
		return;
	case FRAME_OTHER:
		lane_use(l, SPL_USE_OTHER_HOST, 1);
		break;
	case FRAME_DROP:
	case FRAME_KIND_COUNT:
		lane_drop(l, v->reason);
		break;
	}
	rte_pktmbuf_free(m);
}

/* The frames of a burst, in their order. Without `away` they came from another thread. */
static void take_burst(struct lane *l, const struct port *p, struct rte_mbuf **m, unsigned n,
		       struct away *away)
{
	unsigned plain = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], const uint8_t *));
	lane_plain_room(l, n);
	for (unsigned i = 0; i < n; i++) {
		unsigned end = take_plain(l, p, m, i, n);
		struct frame_view v;

		plain += end - i;
		i = end;
		if (i == n)
			break;
		rx_parse(&p->local, &m[i], &v, 1, l->sh->pool);
		sort_frame(l, p, m[i], &v, away);
	}
	lane_use(l, SPL_USE_DATA, plain);
}

static unsigned rx_port(struct lane *l, struct port *p)
{
	struct rte_mbuf *m[LANE_BURST];
	struct away away; /* its arrays need no values */
	unsigned n = rte_eth_rx_burst(p->id, 0, m, LANE_BURST);

	if (n == 0)
		return 0;
	away.n = 0;
	l->is_flooded |= n == LANE_BURST;
	take_burst(l, p, m, n, &away);
	lane_count(l, SPL_C_FRAMES_RX, n - push_away(l, &away));
	return n;
}

unsigned lane_rx_ports(struct lane *l)
{
	unsigned n = 0, at = lane_turn_of(&l->port_at, l->n_port);

	l->is_flooded = false;
	for (unsigned i = 0; i < l->n_port; i++, at++) {
		if (at >= l->n_port)
			at = 0;
		n += rx_port(l, &l->sh->ports[l->port[at]]);
	}
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
	if (n == 0)
		return;
	lane_count(l, SPL_C_FRAMES_RX, n);
	for (unsigned at = 0, end; at < n; at = end) {
		struct port *p = port_of(l, m[at]);

		for (end = at + 1; end < n && end - at < LANE_BURST && m[end]->port == m[at]->port;)
			end++;
		if (p) {
			take_burst(l, p, m + at, end - at, NULL);
			continue;
		}
		for (unsigned i = at; i < end; i++) {
			lane_drop(l, SPL_DROP_LINK_LANE);
			rte_pktmbuf_free(m[i]);
		}
	}
}
