/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: peers and their flows on one lane: opening, transmission, timers, the end. A peer
 * comes and goes by the agent's command, so nothing here is shared; a flow is made on first use in
 * memory that the agent gave with the peer.
 */
#include "dataplane/lane/lane.h"

#include <rte_mbuf.h>

static void flow_sent(void *host, void *handle, bool acked)
{
	struct lane_flow *f = host;
	struct lane_message *m = handle;

	if (!acked)
		lane_count(f->lane, SPL_C_REPLIES_LOST, 1);
	lanemem_free(f->lane->mem, m);
}

static void *flow_mem_get(void *host, size_t bytes)
{
	struct lane_flow *f = host;

	return lanemem_alloc(f->lane->mem, bytes);
}

static void flow_mem_put(void *host, void *mem)
{
	struct lane_flow *f = host;

	lanemem_free(f->lane->mem, mem);
}

static void flow_buf_put(void *host, void *buf)
{
	lane_mbuf_put(buf);
}

/* Takes up to `bytes` out of the node's pool, what there is (bounded: contention only retries). */
static uint64_t flow_credit_take(void *host, enum wire_class cls, uint64_t bytes)
{
	_Atomic uint64_t *pool = &((struct lane_flow *)host)->lane->sh->credit[cls];
	uint64_t left = atomic_load_explicit(pool, memory_order_relaxed), got;

	for (int tries = 0; tries < 64; tries++) {
		got = bytes < left ? bytes : left;
		if (got == 0)
			return 0;
		if (atomic_compare_exchange_weak_explicit(
			    pool, &left, left - got, memory_order_relaxed, memory_order_relaxed))
			return got;
	}
	return 0;
}

static void flow_credit_give(void *host, enum wire_class cls, uint64_t bytes)
{
	atomic_fetch_add_explicit(&((struct lane_flow *)host)->lane->sh->credit[cls], bytes,
				  memory_order_relaxed);
}

static bool flow_credit_tight(void *host, enum wire_class cls)
{
	struct lane_shared *sh = ((struct lane_flow *)host)->lane->sh;

	return atomic_load_explicit(&sh->credit[cls], memory_order_relaxed) < sh->credit_tight;
}

static const struct flow_env flow_host = {
	.sent = flow_sent,
	.mem_get = flow_mem_get,
	.mem_put = flow_mem_put,
	.buf_put = flow_buf_put,
	.credit_take = flow_credit_take,
	.credit_give = flow_credit_give,
	.credit_tight = flow_credit_tight,
};

struct flow *lane_flow_open(struct lane *l, struct lane_flow *f)
{
	if (f->flow)
		return f->flow;
	if (l->n_active == l->active_max)
		return NULL;
	f->flow = flow_init(f->mem, &f->params, &flow_host, f);
	if (!f->flow)
		return NULL;
	f->msg_bytes = f->params.msg_bytes;
	f->timer = FLOW_NEVER;
	f->active = l->n_active;
	l->active[l->n_active++] = f;
	return f->flow;
}

void lane_peer_up(struct lane *l, const struct lane_peer_up *up)
{
	for (uint32_t i = 0; i < up->lanes; i++) {
		up->flows[i].lane = l;
		up->flows[i].ref = lane_flow_ref(up->generation, i, up->slot);
	}
	l->peer[up->slot] = (struct lane_peer){.rx_id = up->rx_id,
					       .ip = up->ip,
					       .generation = up->generation,
					       .lanes = up->lanes,
					       .flows = up->flows};
}

static void give_credit(struct lane_flow *f)
{
	if (f->consumed)
		flow_consumed(f->flow, WIRE_APP, f->consumed);
	f->consumed = 0;
}

static void flow_end(struct lane *l, struct lane_flow *f)
{
	struct lane_message *m;

	if (!f->flow)
		return;
	give_credit(f);
	flow_fini(f->flow);
	f->flow = NULL;
	f->msg_bytes = 0;
	while ((m = f->late_head)) {
		f->late_head = m->next;
		lane_count(l, SPL_C_REPLIES_LOST, 1);
		lane_reply_waits(l, -1);
		lanemem_free(l->mem, m);
	}
	f->late_tail = NULL;
	f->late_bytes = 0;
	l->n_undrained -= f->is_undrained;
	f->is_undrained = false;
	l->active[f->active] = l->active[--l->n_active];
	l->active[f->active]->active = f->active;
	if (f->is_dirty) {
		struct lane_flow **at = &l->dirty;

		while (*at != f)
			at = &(*at)->dirty_next;
		*at = f->dirty_next;
		f->is_dirty = false;
	}
}

void lane_peer_down(struct lane *l, uint32_t slot)
{
	struct lane_peer *p = &l->peer[slot];

	lane_input_flush(l);
	lane_input_drop(l, p);
	for (uint32_t i = 0; i < p->lanes; i++)
		flow_end(l, &p->flows[i]);
	*p = (struct lane_peer){.generation = p->generation};
}

/* Moves replies that waited for room into the flow. */
static void send_late(struct lane *l, struct lane_flow *f)
{
	struct lane_message *m;

	while ((m = f->late_head) &&
	       flow_send(f->flow, (enum wire_class)m->cls, m->data, m->bytes, m) == 0) {
		f->late_head = m->next;
		f->late_bytes -= m->bytes;
		lane_reply_waits(l, -1);
		if (!f->late_head)
			f->late_tail = NULL;
	}
}

/* One packet of the flow, as a frame into the port's buffer; false when there is none to send. A
 * buffer that was not used stays in `*spare` for the next flow.
 */
static bool send_packet(struct lane *l, struct lane_flow *f, struct rte_mbuf **spare)
{
	struct rte_mbuf *m = *spare ? *spare : rte_pktmbuf_alloc(l->sh->pool);
	enum wire_class cls = WIRE_APP;
	uint8_t *p;
	uint32_t n;

	*spare = m;
	if (!m) { /* looked at again in the next pass: no timer stands for what was not sent */
		lane_count(l, SPL_C_NO_TX_MBUF, 1);
		lane_flow_hurry(l, f);
		return false;
	}
	p = rte_pktmbuf_mtod(m, uint8_t *);
	n = flow_tx(f->flow, p + FRAME_HDR_BYTES, f->params.datagram_bytes, l->now_ns, &cls);
	if (n == 0)
		return false;
	*spare = NULL;
	build_udp(&f->path[cls], (uint16_t)n, l->ip_id++, p);
	m->data_len = (uint16_t)(FRAME_HDR_BYTES + n);
	m->pkt_len = m->data_len;
	tx_udp(&l->tx, f->port, m);
	return true;
}

/* The next hop's MAC as the neighbour table has it now; the old one stays while it has none. */
static void refresh_path(struct lane *l, struct lane_flow *f)
{
	uint8_t mac[6];

	if (!neigh_get(l->sh->neigh[f->port], f->next_hop, mac))
		return;
	memcpy(f->path[WIRE_APP].hdr, mac, 6);
	memcpy(f->path[WIRE_INFRA].hdr, mac, 6);
}

unsigned lane_flows_tx(struct lane *l)
{
	/* Under a flood acknowledgements of a few bursts go together; what is sent waits for
	 * nothing. */
	bool wait = l->is_flooded && l->now_ns - l->told_ns < LANE_ACK_NS;
	struct lane_flow *f = l->dirty;
	struct rte_mbuf *spare = NULL;
	unsigned sent = 0;

	if (wait && !l->is_urgent)
		return 0;
	if (!wait)
		l->told_ns = l->now_ns;
	l->dirty = NULL;
	l->is_urgent = false;
	while (f) {
		struct lane_flow *next = f->dirty_next;
		uint64_t resent;
		unsigned n = 0;

		f->is_dirty = false;
		if (wait && !f->is_urgent) {
			lane_flow_touch(l, f);
			f = next;
			continue;
		}
		f->is_urgent = false;
		give_credit(f);
		refresh_path(l, f);
		resent = flow_retransmitted(f->flow);
		send_late(l, f);
		while (n < LANE_FLOW_PACKETS && send_packet(l, f, &spare))
			n++;
		resent = flow_retransmitted(f->flow) - resent;
		if (resent)
			lane_count(l, SPL_C_LINK_RETRANSMITTED, resent);
		f->timer = flow_next_timer(f->flow);
		if (n == LANE_FLOW_PACKETS || (f->late_head && n > 0)) {
			lane_flow_hurry(l, f);
		}
		sent += n;
		f = next;
	}
	rte_pktmbuf_free(spare);
	return sent;
}

void lane_flows_timers(struct lane *l)
{
	uint32_t n = l->n_active < LANE_TIMER_STEP ? l->n_active : LANE_TIMER_STEP;

	for (uint32_t i = 0; i < n; i++) {
		struct lane_flow *f;

		if (l->timer_at >= l->n_active)
			l->timer_at = 0;
		f = l->active[l->timer_at++];
		if (f->timer <= l->now_ns) {
			flow_on_timer(f->flow, l->now_ns);
			lane_flow_hurry(l, f);
		}
	}
}

uint64_t lane_flows_due(const struct lane *l)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < l->n_active; i++)
		if (l->active[i]->timer < due)
			due = l->active[i]->timer;
	return due;
}
