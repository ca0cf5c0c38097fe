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

/* The number that was expected came, in a packet that wants to be acknowledged. */
static inline void flow_note_next(struct flow *f, struct flow_in *r, uint64_t now_ns)
{
	uint64_t number = r->next_number++, bit = number % WIRE_NUMBER_WINDOW;

	r->map[bit / 64] |= 1ULL << bit % 64;
	r->time = now_ns;
	if (r->owed == 0 && now_ns + f->ack_delay < r->ack_due)
		r->ack_due = now_ns + f->ack_delay; /* later ones would be due later */
	if (++r->owed >= r->ack_every)
		r->ack_due = 0;
}

/* True when `pkt` (UDP payload of `len` >= FLOW_ONE_HDR bytes) is such a packet. Then its message
 * is the rest of it, and may be taken. The host has looked at the first 16 bytes (they are those of
 * this flow and class) and compared the length with that of the largest message. */
static inline bool flow_one(const struct flow *f, const uint8_t *pkt, uint32_t len)
{
	const struct flow_in *r = &f->in[WIRE_APP];
	uint32_t n = len - FLOW_ONE_HDR;
	uint64_t number = wire_load_u64(pkt + 16);
	uint64_t bad = number ^ r->next_number;

	bad |= flow_load_raw(pkt + 24) | flow_load_raw(pkt + 32);
	bad |= wire_load_u32(pkt + WIRE_HDR_BYTES) ^ ((uint32_t)SPL_REC_MESSAGE << 24 | n);
	bad |= wire_load_u32(pkt + WIRE_HDR_BYTES + 4) ^ r->next_seq;
	bad |= r->held;
	return bad == 0 && number != UINT64_MAX &&
	       !flow_before64(r->limit, r->charged + wire_charge(n));
}

/* Takes the packet: its message is delivered, with one reference to the buffer. Returns the charge
 * for flow_consumed(). */
static inline uint32_t flow_one_take(struct flow *f, uint32_t len, uint64_t now_ns)
{
	struct flow_in *r = &f->in[WIRE_APP];
	uint32_t charge = wire_charge(len - FLOW_ONE_HDR);

	r->next_seq++;
	r->alone++;
	r->charged += charge;
	flow_note_next(f, r, now_ns);
	return charge;
}

#endif
