/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: runs in the agent. Association packets in: the handshake of both sides, beacons
 * (A-LIVE-1), closes. Owns nothing. Nothing is kept for a stranger whose address is not proved.
 */
#include "dataplane/link/assoc_int.h"

static struct assoc_result used(enum spl_frame_use use)
{
	struct assoc_result r = {(uint8_t)use, ASSOC_NO_DROP};
	return r;
}

static struct assoc_result dropped(enum spl_frame_drop drop)
{
	struct assoc_result r = {0, (uint8_t)drop};
	return r;
}

static bool name_equal(const struct spl_name *n, struct pack_bytes b)
{
	return n->len == b.len && memcmp(n->b, b.p, b.len) == 0;
}

/* Refuses with `reason`, if an answer may be given; the drop says `drop` then. */
static struct assoc_result refuse(struct assoc *a, const uint8_t *nonce, uint64_t id,
				  enum wire_refusal reason, enum spl_frame_drop drop, uint64_t now,
				  struct assoc_answer *answer)
{
	struct wire_refuse m = {.reason = (uint8_t)reason, .lifecycle = a->p.lifecycle};

	if (!assoc_may_answer(a, now))
		return dropped(SPL_DROP_HANDSHAKE_RATE);
	memcpy(m.nonce, nonce, sizeof(m.nonce));
	answer->len = (uint32_t)wire_refuse_put(answer->b, id, &m);
	return dropped(drop);
}

static void note_conflict(struct assoc *a, struct pack_bytes rid)
{
	if (a->has_conflict)
		return;
	a->has_conflict = true;
	spl_name_set(&a->conflict, rid.p, rid.len);
}

static struct assoc_result accept_init(struct assoc *a, const struct wire_init *m, uint32_t slot,
				       uint64_t now, struct assoc_answer *answer)
{
	struct wire_accept accept;

	if (!assoc_may_answer(a, now))
		return dropped(SPL_DROP_HANDSHAKE_RATE);
	memcpy(accept.nonce, m->nonce, sizeof(accept.nonce));
	assoc_self(a, a->slots[slot].peer.rx_id, &accept.self);
	answer->len = (uint32_t)wire_accept_put(answer->b, m->self.id, &accept);
	return used(SPL_USE_HANDSHAKE);
}

/* Our dial that goes to the address an INIT came from, and is not up; ASSOC_NONE. */
static uint32_t crossing_dial(const struct assoc *a, const struct assoc_addr *from)
{
	for (uint32_t i = 0; i < a->p.dials; i++)
		if (a->dials[i].is_used && !a->dials[i].is_up &&
		    assoc_addr_equal(&a->dials[i].addr, from))
			return i;
	return ASSOC_NONE;
}

/* When both sides dial each other at once, the smaller RID's dial counts. */
static bool we_win(const struct assoc *a, struct pack_bytes rid)
{
	uint32_t n = a->p.rid.len < rid.len ? a->p.rid.len : rid.len;
	int cmp = memcmp(a->p.rid.b, rid.p, n);

	return cmp < 0 || (cmp == 0 && a->p.rid.len < rid.len);
}

/* Ends what there is with this peer; the dial that the newcomer takes over, or ASSOC_NONE. */
static uint32_t replace(struct assoc *a, uint32_t old, const struct wire_self *self, uint64_t now)
{
	uint32_t dial = a->slots[old].peer.dial;
	bool same = a->slots[old].peer.lifecycle == self->lifecycle;

	assoc_slot_down(a, old, same ? ASSOC_DOWN_REPLACED : ASSOC_DOWN_LIFECYCLE, now);
	return dial != ASSOC_NONE && a->dials[dial].is_used ? dial : ASSOC_NONE;
}

/* A newcomer whose address is proved. */
static struct assoc_result welcome(struct assoc *a, const struct assoc_addr *from,
				   const struct wire_init *m, uint64_t now,
				   struct assoc_answer *answer)
{
	uint32_t old = assoc_slot_by_rid(a, m->self.rid), dial, slot;

	if (old != ASSOC_NONE) {
		const struct assoc_slot *s = &a->slots[old];

		if (memcmp(s->nonce, m->nonce, sizeof(s->nonce)) == 0 &&
		    s->peer.tx_id == m->self.id && assoc_addr_equal(&s->peer.addr, from))
			return accept_init(a, m, old, now, answer);
		if (m->self.lifecycle < s->peer.lifecycle) {
			note_conflict(a, m->self.rid);
			return refuse(a, m->nonce, m->self.id, WIRE_REFUSE_LIFECYCLE,
				      SPL_DROP_LIFECYCLE, now, answer);
		}
	}
	dial = crossing_dial(a, from);
	if (dial != ASSOC_NONE && we_win(a, m->self.rid))
		return used(SPL_USE_HANDSHAKE); /* it will accept ours */
	slot = assoc_slot_take(a);
	if (slot == ASSOC_NONE)
		return refuse(a, m->nonce, m->self.id, WIRE_REFUSE_CAPACITY,
			      SPL_DROP_HANDSHAKE_REFUSED, now, answer);
	if (old != ASSOC_NONE) {
		uint32_t heir = replace(a, old, &m->self, now);

		dial = dial == ASSOC_NONE ? heir : dial;
	}
	if (dial != ASSOC_NONE && a->dials[dial].slot != ASSOC_NONE)
		assoc_slot_put(a, a->dials[dial].slot);
	memcpy(a->slots[slot].nonce, m->nonce, sizeof(m->nonce));
	assoc_slot_up(a, slot, &m->self, from, dial, now);
	return accept_init(a, m, slot, now, answer);
}

static struct assoc_result on_init(struct assoc *a, const struct assoc_addr *from,
				   const uint8_t *pkt, uint32_t len, uint64_t now,
				   struct assoc_answer *answer)
{
	static const uint8_t none[WIRE_COOKIE_BYTES];
	enum wire_refusal no = 0;
	struct wire_cookie c;
	struct wire_init m;

	if (wire_init_get(&m, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	if (a->is_stopping)
		no = WIRE_REFUSE_SHUTDOWN;
	else if (!name_equal(&a->p.mesh, m.self.mesh))
		no = WIRE_REFUSE_MESH;
	else if ((m.want_lifecycle && m.want_lifecycle != a->p.lifecycle) ||
		 name_equal(&a->p.rid, m.self.rid))
		no = WIRE_REFUSE_LIFECYCLE;
	if (no == WIRE_REFUSE_LIFECYCLE && name_equal(&a->p.rid, m.self.rid))
		note_conflict(a, m.self.rid);
	if (no)
		return refuse(a, m.nonce, m.self.id, no,
			      no == WIRE_REFUSE_LIFECYCLE ? SPL_DROP_LIFECYCLE
							  : SPL_DROP_HANDSHAKE_REFUSED,
			      now, answer);
	if (memcmp(m.cookie, none, sizeof(none)) == 0) {
		if (!assoc_may_answer(a, now))
			return dropped(SPL_DROP_HANDSHAKE_RATE);
		memcpy(c.nonce, m.nonce, sizeof(c.nonce));
		assoc_cookie_make(a, from, &m, now, c.cookie);
		answer->len = (uint32_t)wire_cookie_put(answer->b, m.self.id, &c);
		return used(SPL_USE_HANDSHAKE);
	}
	if (!assoc_cookie_is_valid(a, from, &m, now))
		return dropped(SPL_DROP_HANDSHAKE_COOKIE);
	return welcome(a, from, &m, now, answer);
}

/* The dial that an answer with this id, nonce and source belongs to; ASSOC_NONE. */
static uint32_t answered_dial(const struct assoc *a, const struct assoc_addr *from, uint64_t id,
			      const uint8_t *nonce)
{
	const struct assoc_slot *s = assoc_slot_by_id(a, id);
	uint32_t dial;

	if (!s || s->state != ASSOC_S_DIALING || memcmp(s->nonce, nonce, WIRE_NONCE_BYTES) != 0)
		return ASSOC_NONE;
	dial = s->peer.dial;
	return assoc_addr_equal(&a->dials[dial].addr, from) ? dial : ASSOC_NONE;
}

static struct assoc_result on_cookie(struct assoc *a, const struct assoc_addr *from, uint64_t id,
				     const uint8_t *pkt, uint32_t len, uint64_t now)
{
	struct wire_cookie m;
	uint32_t dial;

	if (wire_cookie_get(&m, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	dial = answered_dial(a, from, id, m.nonce);
	if (dial == ASSOC_NONE)
		return dropped(SPL_DROP_LINK_FLOW);
	if (a->dials[dial].cookie_tries == 0) {
		memcpy(a->dials[dial].cookie, m.cookie, sizeof(m.cookie));
		a->dials[dial].cookie_tries = ASSOC_COOKIE_TRIES;
		a->dials[dial].wait = a->p.dial_min_ns;
		assoc_due(a, &a->dials[dial].due, now);
	}
	return used(SPL_USE_HANDSHAKE);
}

/* An ACCEPT that came twice, of an association that is up by it. */
static bool is_repeated_accept(const struct assoc *a, const struct assoc_addr *from, uint64_t id,
			       const struct wire_accept *m)
{
	const struct assoc_slot *s = assoc_slot_by_id(a, id);

	return s && s->state == ASSOC_S_UP && s->peer.tx_id == m->self.id &&
	       memcmp(s->nonce, m->nonce, sizeof(m->nonce)) == 0 &&
	       assoc_addr_equal(&s->peer.addr, from);
}

static struct assoc_result on_accept(struct assoc *a, const struct assoc_addr *from, uint64_t id,
				     const uint8_t *pkt, uint32_t len, uint64_t now)
{
	struct wire_accept m;
	struct assoc_dial_state *d;
	uint32_t dial, old;

	if (wire_accept_get(&m, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	dial = answered_dial(a, from, id, m.nonce);
	if (dial == ASSOC_NONE)
		return is_repeated_accept(a, from, id, &m) ? used(SPL_USE_HANDSHAKE)
							   : dropped(SPL_DROP_LINK_FLOW);
	d = &a->dials[dial];
	if (!name_equal(&a->p.mesh, m.self.mesh))
		return dropped(SPL_DROP_HANDSHAKE_REFUSED);
	old = assoc_slot_by_rid(a, m.self.rid);
	if ((d->want_lifecycle && d->want_lifecycle != m.self.lifecycle) ||
	    (old != ASSOC_NONE && m.self.lifecycle < a->slots[old].peer.lifecycle))
		return dropped(SPL_DROP_LIFECYCLE);
	if (old != ASSOC_NONE)
		replace(a, old, &m.self, now);
	a->slots[d->slot].peer.rtt_ns = now - d->init_sent;
	assoc_slot_up(a, d->slot, &m.self, from, dial, now);
	return used(SPL_USE_HANDSHAKE);
}

static struct assoc_result on_refuse(struct assoc *a, const struct assoc_addr *from, uint64_t id,
				     const uint8_t *pkt, uint32_t len, uint64_t now)
{
	struct assoc_dial_state *d;
	struct wire_refuse m;
	uint32_t dial;

	if (wire_refuse_get(&m, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	dial = answered_dial(a, from, id, m.nonce);
	if (dial == ASSOC_NONE)
		return dropped(SPL_DROP_LINK_FLOW);
	d = &a->dials[dial];
	d->cookie_tries = 0;
	d->wait = a->p.dial_max_ns;
	assoc_due(a, &d->due, now + a->p.dial_max_ns);
	if (!d->is_refusal_queued) {
		d->is_refusal_queued = true;
		assoc_push(a, ASSOC_REFUSED, m.reason, ASSOC_NONE, dial);
	}
	return used(SPL_USE_HANDSHAKE);
}

/* Tells the sender of a beacon or close that we do not know its association. */
static struct assoc_result unknown(struct assoc *a, const struct wire_hdr *h, uint64_t self,
				   uint64_t now, struct assoc_answer *answer)
{
	struct wire_close m = {.reason = WIRE_CLOSE_UNKNOWN, .is_answer = 1};

	if (assoc_may_answer(a, now))
		answer->len = (uint32_t)wire_close_pkt_put(answer->b, self, h->number, &m);
	return dropped(SPL_DROP_LINK_FLOW);
}

static struct assoc_result on_beacon(struct assoc *a, const struct assoc_addr *from,
				     const struct wire_hdr *h, const uint8_t *pkt, uint32_t len,
				     uint64_t now, struct assoc_answer *answer)
{
	const struct assoc_slot *s = assoc_slot_by_id(a, h->id);
	uint64_t self;

	if (wire_beacon_get(&self, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	if (!s || s->state != ASSOC_S_UP || s->peer.tx_id != self)
		return unknown(a, h, self, now, answer);
	if (!assoc_addr_equal(&s->peer.addr, from))
		return dropped(SPL_DROP_LINK_FLOW);
	answer->len =
		(uint32_t)wire_beacon_put(answer->b, s->peer.tx_id, h->number, s->peer.rx_id, true);
	return used(SPL_USE_BEACON);
}

static struct assoc_result on_beacon_ack(struct assoc *a, const struct assoc_addr *from,
					 const struct wire_hdr *h, const uint8_t *pkt, uint32_t len,
					 uint64_t now)
{
	struct assoc_slot *s = assoc_slot_by_id(a, h->id);
	uint64_t self, next;

	if (wire_beacon_get(&self, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	if (!s || s->state != ASSOC_S_UP || s->peer.tx_id != self ||
	    !assoc_addr_equal(&s->peer.addr, from))
		return dropped(SPL_DROP_LINK_FLOW);
	/* Only the first acknowledgement of the current id counts. */
	if (!s->is_probing || h->number != s->beacon)
		return used(SPL_USE_BEACON);
	s->is_probing = false;
	s->deadline = now + a->p.deadline_ns;
	if (!s->is_repeated)
		s->peer.rtt_ns = now - s->beacon_sent;
	next = s->beacon_sent + a->p.beacon_ns;
	assoc_due(a, &s->due, next > now ? next : now);
	return used(SPL_USE_BEACON);
}

static struct assoc_result on_close(struct assoc *a, const struct assoc_addr *from,
				    const struct wire_hdr *h, const uint8_t *pkt, uint32_t len,
				    uint64_t now, struct assoc_answer *answer)
{
	struct assoc_slot *s = assoc_slot_by_id(a, h->id);
	struct wire_close m, back = {.is_answer = 1};
	uint32_t slot = wire_id_slot(h->id);

	if (wire_close_pkt_get(&m, pkt, len))
		return dropped(SPL_DROP_HANDSHAKE_MALFORMED);
	if (!s || s->state == ASSOC_S_DIALING) {
		if (m.is_answer || m.self == 0)
			return dropped(SPL_DROP_LINK_FLOW);
		return unknown(a, h, m.self, now, answer);
	}
	if (!assoc_addr_equal(&s->peer.addr, from))
		return dropped(SPL_DROP_LINK_FLOW);
	if (m.is_answer) {
		if (s->close_left > 0)
			assoc_closed(a, slot);
		else if (m.reason == WIRE_CLOSE_UNKNOWN && s->state == ASSOC_S_UP &&
			 s->is_probing && h->number == s->beacon)
			assoc_slot_down(a, slot, ASSOC_DOWN_LOST, now);
		return used(SPL_USE_CLOSE);
	}
	back.reason = m.reason;
	back.self = s->peer.rx_id;
	answer->len = (uint32_t)wire_close_pkt_put(answer->b, s->peer.tx_id, 0, &back);
	if (s->state == ASSOC_S_UP)
		assoc_slot_down(a, slot, ASSOC_DOWN_CLOSED, now);
	return used(SPL_USE_CLOSE);
}

/* An INIT of another wire version: header, nonce, and the place of the id stay the same in all. */
static bool is_other_version(const uint8_t *pkt, uint32_t len)
{
	return len >= WIRE_INIT_BYTES && wire_kind(pkt) == SPL_PKT_INIT &&
	       pkt[0] >> 4 != WIRE_VERSION;
}

struct assoc_result assoc_rx(struct assoc *a, const struct assoc_addr *from, const uint8_t *pkt,
			     uint32_t len, uint64_t now_ns, struct assoc_answer *answer)
{
	enum spl_frame_drop drop;
	struct wire_hdr h;

	answer->len = 0;
	if (a->p.is_passive && is_other_version(pkt, len)) {
		struct assoc_result r =
			refuse(a, pkt + WIRE_HDR_BYTES, wire_load_u64(pkt + WIRE_INIT_ID_AT),
			       WIRE_REFUSE_VERSION, SPL_DROP_LINK_VERSION, now_ns, answer);
		return r;
	}
	if (wire_hdr_get(&h, pkt, len, &drop))
		return dropped(drop);
	switch (h.kind) {
	case SPL_PKT_INIT:
		return a->p.is_passive ? on_init(a, from, pkt, len, now_ns, answer)
				       : dropped(SPL_DROP_LINK_KIND);
	case SPL_PKT_COOKIE:
		return on_cookie(a, from, h.id, pkt, len, now_ns);
	case SPL_PKT_ACCEPT:
		return on_accept(a, from, h.id, pkt, len, now_ns);
	case SPL_PKT_REFUSE:
		return on_refuse(a, from, h.id, pkt, len, now_ns);
	case SPL_PKT_BEACON:
		return on_beacon(a, from, &h, pkt, len, now_ns, answer);
	case SPL_PKT_BEACON_ACK:
		return on_beacon_ack(a, from, &h, pkt, len, now_ns);
	case SPL_PKT_CLOSE:
		return on_close(a, from, &h, pkt, len, now_ns, answer);
	default:
		return dropped(SPL_DROP_LINK_KIND);
	}
}
