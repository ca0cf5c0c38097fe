/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's way in: packets from the net, to the association or to a flow, whole messages to the
 * owner. Runs on the client's thread; a packet is kept as long as a flow reads in it.
 */
#include "client/link.h"

#include <errno.h>
#include <string.h>

#define PACKET_ROOM    2048 /* a datagram that is larger comes from nobody we know */
#define RECEIVE_ROUNDS 32   /* batches that one link_receive() takes */

struct link_packet {
	uint32_t refs;
	_Alignas(8) uint8_t b[PACKET_ROOM];
};

void link_packet_put(struct link_packet *packet)
{
	if (packet && --packet->refs == 0)
		free(packet);
}

/* Hands the messages of a sink to the owner. */
static void deliver(struct link *l, struct flow *f, const struct flow_sink *sink)
{
	for (uint32_t i = 0; i < sink->n; i++) {
		const struct flow_msg *m = &sink->msgs[i];
		struct buffer *msg;

		if (m->is_mem) {
			msg = (struct buffer *)((uint8_t *)m->ref - offsetof(struct buffer, b));
			msg->len = m->len;
		} else {
			msg = buffer_new(m->len);
			if (msg)
				memcpy(msg->b, m->data, m->len);
		}
		l->events.message(l->events.owner, m->data, m->len, msg);
		if (!m->is_mem)
			link_packet_put(m->ref);
		flow_consumed(f, (enum wire_class)m->cls, m->charge);
	}
}

static void receive_flow(struct link *l, struct link_packet *packet, const struct wire_hdr *h,
			 uint32_t len, uint64_t now_ns)
{
	struct flow_msg msgs[LINK_BATCH];
	struct flow_sink sink = {.msgs = msgs, .room = LINK_BATCH};
	struct flow_rx_result result;
	struct flow *f;
	bool more;

	if (!l->peer || h->id != l->peer->rx_id || h->dst_lane != 0 ||
	    h->src_lane >= l->peer->lanes || !(f = link_flow_get(l, h->src_lane))) {
		l->dropped++;
		return;
	}
	result = flow_rx(f, packet->b, len, packet, now_ns, &sink);
	packet->refs += result.refs;
	if (result.drop != FLOW_NO_DROP)
		l->dropped++;
	do {
		more = sink.n == sink.room;
		deliver(l, f, &sink);
		sink.n = 0;
		if (more)
			flow_drain(f, &sink);
	} while (more);
}

static void receive_assoc(struct link *l, const struct net_packet *p, uint64_t now_ns)
{
	struct assoc_answer answer;
	struct assoc_result result;
	struct assoc_addr from;

	memset(&from, 0, sizeof(from));
	memset(from.b + 10, 0xff, 2);
	wire_store_u32(from.b + 12, p->ip);
	wire_store_u16(from.b + 16, p->port);
	result = assoc_rx(l->assoc, &from, p->b, p->len, now_ns, &answer);
	if (result.drop != ASSOC_NO_DROP)
		l->dropped++;
	if (answer.len)
		link_answer(l, p, answer.b, answer.len);
	link_run_events(l, now_ns);
}

static void receive_one(struct link *l, struct link_packet *packet, const struct net_packet *p,
			uint64_t now_ns)
{
	enum spl_frame_drop drop;
	struct wire_hdr h;

	l->received++;
	if (p->ip != l->conf.ip || wire_hdr_get(&h, p->b, p->len, &drop) < 0)
		l->dropped++;
	else if (h.kind == SPL_PKT_FLOW)
		receive_flow(l, packet, &h, p->len, now_ns);
	else
		receive_assoc(l, p, now_ns);
}

/* Makes every spare packet ours alone again. Returns how many there are. */
static unsigned fill_spare(struct link *l, struct net_packet *in)
{
	unsigned n;

	for (n = 0; n < LINK_BATCH; n++) {
		if (l->spare[n] && l->spare[n]->refs > 1) {
			link_packet_put(l->spare[n]);
			l->spare[n] = NULL;
		}
		if (!l->spare[n])
			l->spare[n] = malloc(sizeof(*l->spare[n]));
		if (!l->spare[n])
			break;
		l->spare[n]->refs = 1;
		in[n] = (struct net_packet){.b = l->spare[n]->b, .room = PACKET_ROOM};
	}
	return n;
}

bool link_receive(struct link *l, uint64_t now_ns)
{
	struct net_packet in[LINK_BATCH];
	bool any = false;

	for (unsigned round = 0; round < RECEIVE_ROUNDS; round++) {
		unsigned room = fill_spare(l, in), n = 0;

		if (room)
			n = l->net.ops->recv(l->net.arg, in, room);
		for (unsigned i = 0; i < n; i++)
			receive_one(l, l->spare[i], &in[i], now_ns);
		any |= n > 0;
		if (n < room || room == 0)
			break;
	}
	return any;
}
