/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: transmit, see tx.h. The rings and their making are in tx_net.c. */
#include "dataplane/port/tx.h"

#include "dataplane/frame/build.h"
#include "dataplane/port/tx_net.h"

#include <rte_ethdev.h>
#include <rte_ring.h>

/* Frees frames that were not sent, and counts them. */
static void drop(struct rte_mbuf **m, unsigned n, uint64_t *counter)
{
	rte_pktmbuf_free_bulk(m, n);
	*counter += n;
}

/* Offers n frames of `bytes` bytes to the device; what it does not take in TX_RETRIES calls is
 * dropped. Consumes all. */
static void give(struct tx *t, struct tx_port *tp, struct rte_mbuf **m, unsigned n, uint64_t bytes)
{
	unsigned done = 0;

	if (!atomic_load_explicit(&tp->port->link_up, memory_order_relaxed)) {
		drop(m, n, &t->counts.dropped_down);
		return;
	}
	for (unsigned i = 0; i < TX_RETRIES && done < n; i++)
		done += rte_eth_tx_burst(tp->port->id, tp->queue, m + done, (uint16_t)(n - done));
	for (unsigned i = done; i < n; i++)
		bytes -= m[i]->pkt_len;
	t->counts.sent += done;
	t->counts.bytes += bytes;
	if (done < n)
		drop(m + done, n - done, &t->counts.dropped_full);
}

static void flush_port(struct tx *t, struct tx_port *tp)
{
	unsigned n = tp->n, done;

	tp->n = 0;
	if (!tp->hop) {
		give(t, tp, tp->buf, n, tp->bytes);
	} else {
		done = rte_ring_sp_enqueue_burst(tp->hop, (void *const *)tp->buf, n, NULL);
		t->counts.hopped += done;
		if (done < n)
			drop(tp->buf + done, n - done, &t->counts.dropped_full);
		if (t->net->wake)
			t->net->wake(t->net->wake_ctx, tp->owner);
	}
	tp->bytes = 0;
}

void tx_flush(struct tx *t)
{
	for (unsigned i = 0; i < t->n_ports; i++)
		if (t->port[i].n)
			flush_port(t, &t->port[i]);
}

/* A copy in one segment for a port that takes no more; NULL when there is no buffer (m is freed
 * either way). */
static struct rte_mbuf *one_segment(struct tx *t, struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_alloc(t->pool);
	char *to = copy ? rte_pktmbuf_append(copy, (uint16_t)m->pkt_len) : NULL;

	if (!to) {
		rte_pktmbuf_free(copy);
		drop(&m, 1, &t->counts.dropped_nombuf);
		return NULL;
	}
	/* bounded: the segments of one frame no longer than the MTU */
	for (const struct rte_mbuf *s = m; s; s = s->next) {
		memcpy(to, rte_pktmbuf_mtod(s, const char *), s->data_len);
		to += s->data_len;
	}
	rte_pktmbuf_free(m);
	t->counts.linearised++;
	return copy;
}

/* The UDP sum of a frame from build_udp(), over all its segments. */
static void add_udp_sum(struct rte_mbuf *m)
{
	uint8_t *hdr = rte_pktmbuf_mtod(m, uint8_t *);
	const unsigned l4 = FRAME_ETH_BYTES + FRAME_IP_BYTES;
	uint64_t sum = csum_pseudo(hdr + FRAME_ETH_BYTES, (uint16_t)(m->pkt_len - l4));
	uint32_t at = m->data_len - l4;
	uint16_t field;

	sum = csum_add(sum, hdr + l4, at);
	for (const struct rte_mbuf *s = m->next; s; s = s->next) {
		const uint8_t *p = rte_pktmbuf_mtod(s, const uint8_t *);

		sum = at & 1 ? csum_add_odd(sum, p, s->data_len) : csum_add(sum, p, s->data_len);
		at += s->data_len;
	}
	field = csum_finish_udp(sum);
	memcpy(hdr + 40, &field, 2);
}

/* What of the flags says how the buffer is made, and must stay. */
#define KEEP_FLAGS (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)

static void push(struct tx *t, unsigned port, struct rte_mbuf *m)
{
	struct tx_port *tp = &t->port[port];

	if (__builtin_expect(m->pkt_len > tp->port->local.mtu + FRAME_ETH_BYTES, 0)) {
		drop(&m, 1, &t->counts.dropped_size);
		return;
	}
	if (__builtin_expect(m->nb_segs > 1 && !tp->port->plan.tx_multi_seg, 0)) {
		uint64_t flags = m->ol_flags & ~KEEP_FLAGS, offload = m->tx_offload;

		m = one_segment(t, m);
		if (!m)
			return;
		m->ol_flags = flags;
		m->tx_offload = offload;
	}
	if (tp->n == TX_BURST)
		flush_port(t, tp);
	tp->buf[tp->n++] = m;
	tp->bytes += m->pkt_len;
}

void tx_udp(struct tx *t, unsigned port, struct rte_mbuf *m)
{
	if (t->port[port].port->plan.tx_udp_csum) {
		m->l2_len = FRAME_ETH_BYTES;
		m->l3_len = FRAME_IP_BYTES;
		m->ol_flags =
			(m->ol_flags & KEEP_FLAGS) | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
		build_udp_seed(rte_pktmbuf_mtod(m, uint8_t *));
	} else {
		m->ol_flags &= KEEP_FLAGS;
		add_udp_sum(m);
	}
	push(t, port, m);
}

void tx_raw(struct tx *t, unsigned port, struct rte_mbuf *m)
{
	m->ol_flags &= KEEP_FLAGS;
	push(t, port, m);
}

/* Sends one burst out of a ring that another user filled. */
static unsigned poll_ring(struct tx *t, const struct tx_in *in)
{
	struct rte_mbuf *m[TX_BURST];
	unsigned n = rte_ring_sc_dequeue_burst(in->ring, (void **)m, TX_BURST, NULL);
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	if (n)
		give(t, &t->port[in->port], m, n, bytes);
	return n;
}

unsigned tx_poll(struct tx *t)
{
	unsigned total = 0, n, got;

	for (const struct tx_in *in = t->in; in < t->in + t->n_in; in++) {
		for (got = 0; got < TX_POLL_MAX; got += n) {
			n = poll_ring(t, in);
			if (n == 0)
				break;
		}
		total += got;
	}
	return total;
}

bool tx_waiting(const struct tx *t)
{
	for (const struct tx_in *in = t->in; in < t->in + t->n_in; in++)
		if (!rte_ring_empty(in->ring))
			return true;
	return false;
}

void tx_reclaim(struct tx *t)
{
	for (unsigned i = 0; i < t->n_ports; i++) {
		const struct tx_port *tp = &t->port[i];

		if (!tp->hop && tp->port->has_done_cleanup)
			rte_eth_tx_done_cleanup(tp->port->id, tp->queue, 0);
	}
}

void tx_fini(struct tx *t)
{
	for (unsigned i = 0; i < t->n_ports; i++) {
		drop(t->port[i].buf, t->port[i].n, &t->counts.dropped_full);
		t->port[i].n = 0;
		t->port[i].bytes = 0;
	}
}
