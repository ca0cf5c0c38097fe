/* SPDX-License-Identifier: BSD-3-Clause */
/* See dispatch_rx.h. */
#include "tests/bench/dispatch_rx.h"

#include "common/wire_msg.h"
#include "tests/bench/bench_lib.h"

#include <rte_ethdev.h>

/* Of each flow; they go on from one case to the next. */
static uint64_t numbers[DISPATCH_PEERS];
static uint32_t sequences[DISPATCH_PEERS];
static const struct t_node *numbers_of;
static struct dispatch_rx *in_use;

static void head_init(struct dispatch_rx *rx, unsigned peer)
{
	const struct frame_local *l = &rx->node->port.local;
	const struct lane_flow *f = rx->node->peer[peer]->node_flows[0];
	struct wire_hdr h = {.kind = SPL_PKT_FLOW,
			     .cls = WIRE_APP,
			     .src_lane = 0,
			     .dst_lane = 0,
			     .id = f->params.rx_id};
	struct t_frame t = t_frame_udp(l, 0);
	uint8_t frame[T_FRAME_MAX];
	static uint8_t payload[2048];

	t.src_ip = rx->node->peer[peer]->ip;
	t.payload = payload;
	t.payload_len = rx->frame_bytes - FRAME_HDR_BYTES;
	t_frame_write(&t, frame);
	memcpy(rx->head[peer], frame, FRAME_HDR_BYTES);
	wire_hdr_put(rx->head[peer] + FRAME_HDR_BYTES, &h);
}

void dispatch_rx_init(struct dispatch_rx *rx, struct t_node *n, uint32_t bytes, uint32_t per_frame,
		      const struct spl_key *stream)
{
	struct wire_msg h = {
		.kind = SPL_MSG_SPOT_SEND, .error = SPL_OK, .packet = spl_packet_key("add", 3)};

	memset(rx, 0, sizeof(*rx));
	rx->node = n;
	rx->pool = n->sh.pool;
	rx->stream = stream;
	rx->per_frame = per_frame;
	rx->message_bytes = WIRE_MSG_BYTES + bytes;
	rx->record_bytes = WIRE_MESSAGE_BYTES + rx->message_bytes;
	rx->frame_bytes = DISPATCH_HDR + per_frame * rx->record_bytes;
	n->port.local.mtu = 2048; /* sixteen small messages do not fit into 1500 */
	for (unsigned p = 0; p < DISPATCH_PEERS; p++)
		head_init(rx, p);
	rx->record[0] = SPL_REC_MESSAGE;
	rx->record[1] = 0;
	wire_store_u16(rx->record + 2, (uint16_t)rx->message_bytes);
	wire_msg_put(rx->record + WIRE_MESSAGE_BYTES, &h);
	if (numbers_of != n) {
		memset(numbers, 0, sizeof(numbers));
		memset(sequences, 0, sizeof(sequences));
		numbers_of = n;
	}
}

static void fill(struct dispatch_rx *rx, struct rte_mbuf *m)
{
	unsigned peer = rx->frames++ % DISPATCH_PEERS;
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	memcpy(p, rx->head[peer], DISPATCH_HDR);
	wire_store_u64(p + FRAME_HDR_BYTES + 16, numbers[peer]);
	numbers[peer] += !rx->is_floor;
	p += DISPATCH_HDR;
	for (uint32_t i = 0; i < rx->per_frame; i++, p += rx->record_bytes) {
		memcpy(p, rx->record, sizeof(rx->record));
		wire_store_u32(p + 4, sequences[peer]);
		sequences[peer] += !rx->is_floor;
		memcpy(p + WIRE_MESSAGE_BYTES + 16, &rx->stream[rx->messages++ % DISPATCH_STREAM],
		       sizeof(struct spl_key));
	}
	m->data_len = (uint16_t)rx->frame_bytes;
	m->pkt_len = rx->frame_bytes;
	m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

uint16_t dispatch_rx_burst(struct dispatch_rx *rx, struct rte_mbuf **m, uint16_t n)
{
	if (rx->handled && rx->messages - (*rx->handled - rx->handled_before) > DISPATCH_AHEAD)
		return 0;
	if (rte_pktmbuf_alloc_bulk(rx->pool, m, n) != 0)
		return 0;
	for (uint16_t i = 0; i < n; i++)
		fill(rx, m[i]);
	return n;
}

static uint16_t port_rx(void *queue, struct rte_mbuf **m, uint16_t n)
{
	return in_use ? dispatch_rx_burst(in_use, m, n) : 0;
}

static uint16_t port_tx(void *queue, struct rte_mbuf **m, uint16_t n)
{
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

void dispatch_rx_use(struct dispatch_rx *rx)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[rx->node->port.id];

	in_use = rx;
	ops->rx_pkt_burst = port_rx;
	ops->tx_pkt_burst = port_tx;
}

void dispatch_rx_end(struct dispatch_rx *rx)
{
	in_use = NULL;
}

double dispatch_rx_cost(struct dispatch_rx *rx, uint32_t messages)
{
	uint64_t before = *rx->handled, fed = rx->messages;
	int64_t begin = bench_cpu_ns();

	while (rx->messages - fed < messages)
		lane_pass(rx->node->lane[0]);
	begin = bench_cpu_ns() - begin;
	return (double)begin / (double)(*rx->handled - before);
}
