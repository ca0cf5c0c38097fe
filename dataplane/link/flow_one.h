/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the packet that nearly all are: one whole message, the next one expected, in an
 * application packet of its own. For a host that makes something else of it than a struct flow_msg;
 * flow_rx() takes the same packet, and every other.
 *
 * In two steps, so that a host that finds the message unusual has changed nothing yet: flow_one()
 * looks, flow_one_take() takes. Nothing may happen to the flow between them. Thread and memory as
 * in flow.h.
 */
#ifndef SPL_LINK_FLOW_ONE_H
#define SPL_LINK_FLOW_ONE_H

#include "dataplane/link/flow_int.h"

#define FLOW_ONE_HDR (WIRE_HDR_BYTES + WIRE_MESSAGE_BYTES) /* the message lies behind it */

static inline uint64_t flow_load_raw(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The packet's number was received: what flow_rx() notes of an acceptable packet. */
static inline void flow_note_number(struct flow *f, struct flow_in *r, uint64_t number,
				    uint64_t now_ns)
{
	uint64_t bit = number % WIRE_NUMBER_WINDOW;

	r->next_number = number + 1;
	r->map[bit / 64] |= 1ULL << bit % 64;
	r->time = now_ns;
	f->packets_rx++;
	if (now_ns + f->ack_delay < r->ack_due)
		r->ack_due = now_ns + f->ack_delay;
	if (++r->owed >= f->ack_every)
		r->ack_due = 0;
}

/* True when `pkt` (UDP payload of `len` >= FLOW_ONE_HDR bytes) is such a packet. Then its message
 * is the rest of it, and may be taken. */
static inline bool flow_one(const struct flow *f, const uint8_t *pkt, uint32_t len)
{
	const struct flow_in *r = &f->in[WIRE_APP];
	uint64_t number = wire_load_u64(pkt + 16);
	uint32_t n = len - FLOW_ONE_HDR;
	uint64_t bad = flow_load_raw(pkt) ^ f->rx_head; /* version, kind, class, lanes */

	bad |= flow_load_raw(pkt + 8) ^ f->rx_id;
	bad |= number ^ r->next_number;
	bad |= flow_load_raw(pkt + 24) | flow_load_raw(pkt + 32);
	bad |= wire_load_u32(pkt + WIRE_HDR_BYTES) ^ ((uint32_t)SPL_REC_MESSAGE << 24 | n);
	bad |= wire_load_u32(pkt + WIRE_HDR_BYTES + 4) ^ r->next_seq;
	bad |= r->held;
	return bad == 0 && n <= f->msg_bytes && number != UINT64_MAX &&
	       !flow_before64(r->limit, r->charged + wire_charge(n));
}

/* Takes the packet: its message is delivered, with one reference to the buffer. Returns the charge
 * for flow_consumed(). */
static inline uint32_t flow_one_take(struct flow *f, uint32_t len, uint64_t now_ns)
{
	struct flow_in *r = &f->in[WIRE_APP];
	uint32_t charge = wire_charge(len - FLOW_ONE_HDR);

	r->next_seq++;
	r->messages++;
	r->charged += charge;
	flow_note_number(f, r, r->next_number, now_ns);
	return charge;
}

#endif
