/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: a packet of a flow comes in. Runs on the thread of the flow, for every packet; owns
 * nothing beyond the flow.
 *
 * The usual packet, in order and with nothing but whole messages in order, takes the fast path: one
 * walk that fills the sink and is made valid at its end. Every other packet is walked three times:
 * check everything, get memory, do it; so that a packet that is refused has changed nothing.
 */
#include "dataplane/link/flow_one.h"

#define HDR	    WIRE_HDR_BYTES

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* What the check of a packet found. */
struct scan {
	uint64_t charge; /* of the new messages */
	uint32_t last_seq;
	bool has_seq;
	bool elicits;
	bool has_message;
	bool has_new;
	bool needs_mem;
};

static inline struct flow_rx_result used(enum spl_frame_use use, uint32_t refs)
{
	struct flow_rx_result r = {(uint16_t)refs, (uint8_t)use, FLOW_NO_DROP};
	return r;
}

static inline struct flow_rx_result dropped(int drop)
{
	struct flow_rx_result r = {0, 0, (uint8_t)drop};
	return r;
}

/* The map of units of a partly received message lies behind its bytes. */
static inline uint32_t units(uint32_t bytes)
{
	return (bytes + WIRE_FRAGMENT_UNIT - 1) / WIRE_FRAGMENT_UNIT;
}

static inline uint64_t *unit_map(const struct flow_slot *s)
{
	return (uint64_t *)(void *)(s->data + (size_t)units(s->len) * WIRE_FRAGMENT_UNIT);
}

/* Of the `n` bits from `at`: -1 some are set and some not, otherwise 0 or 1. n >= 1. */
static int bits_state(const uint64_t *map, uint32_t at, uint32_t n)
{
	bool any = false, all = true;

	while (n > 0) {
		uint32_t in = 64 - at % 64 < n ? 64 - at % 64 : n;
		uint64_t m = (in == 64 ? ~0ULL : (1ULL << in) - 1) << at % 64;

		any |= (map[at / 64] & m) != 0;
		all &= (map[at / 64] & m) == m;
		at += in;
		n -= in;
	}
	return all ? 1 : any ? -1 : 0;
}

static void bits_set(uint64_t *map, uint32_t at, uint32_t n)
{
	while (n > 0) {
		uint32_t in = 64 - at % 64 < n ? 64 - at % 64 : n;

		map[at / 64] |= (in == 64 ? ~0ULL : (1ULL << in) - 1) << at % 64;
		at += in;
		n -= in;
	}
}

/* Why the header is not one of this flow's. */
static int header_fault(const struct flow *f, const uint8_t *pkt, uint32_t len)
{
	struct wire_hdr h;
	enum spl_frame_drop drop;

	if (wire_hdr_get(&h, pkt, len, &drop))
		return (int)drop;
	if (h.kind != SPL_PKT_FLOW)
		return SPL_DROP_LINK_KIND;
	if (flow_load_raw(pkt + 8) != f->rx_id)
		return SPL_DROP_LINK_FLOW;
	return SPL_DROP_LINK_LANE;
}

/* A sequence that is not known yet takes its credit. 0 or a drop reason. */
static int scan_new(const struct flow_in *r, struct scan *s, uint32_t len)
{
	s->has_new = true;
	s->charge += wire_charge(len);
	return flow_before64(r->limit, r->charged + s->charge) ? SPL_DROP_LINK_CREDIT : -1;
}

/* Sequences ascend in a packet and stay in the window; `*is_old`: delivered already. */
static int scan_seq(const struct flow_in *r, struct scan *s, uint32_t seq, bool *is_old)
{
	if (s->has_seq && !flow_before32(s->last_seq, seq))
		return SPL_DROP_LINK_RECORD;
	s->has_seq = s->has_message = s->elicits = true;
	s->last_seq = seq;
	*is_old = flow_before32(seq, r->next_seq);
	return !*is_old && seq - r->next_seq > r->mask ? SPL_DROP_LINK_WINDOW : -1;
}

static int scan_message(const struct flow *f, const struct flow_in *r, struct scan *s,
			const uint8_t *p, uint32_t left, uint32_t *size)
{
	const struct flow_slot *slot;
	uint32_t len, seq;
	bool old;
	int drop;

	if (left < WIRE_MESSAGE_BYTES || p[1] != 0)
		return SPL_DROP_LINK_RECORD;
	len = wire_load_u16(p + 2);
	seq = wire_load_u32(p + 4);
	if (len > left - WIRE_MESSAGE_BYTES)
		return SPL_DROP_LINK_RECORD;
	if (len > f->msg_bytes)
		return SPL_DROP_LINK_SIZE;
	*size = WIRE_MESSAGE_BYTES + len;
	drop = scan_seq(r, s, seq, &old);
	if (drop >= 0 || old)
		return drop;
	slot = &r->slots[seq & r->mask];
	if (slot->state == SLOT_EMPTY)
		return scan_new(r, s, len);
	return slot->state == SLOT_WHOLE && slot->len == len ? -1 : SPL_DROP_LINK_RECORD;
}

/* A fragment of a message of which something is known. */
static int scan_fragment_known(const struct flow_slot *slot, struct scan *s, uint32_t off,
			       uint32_t len, uint32_t total)
{
	int bits;

	if (slot->state == SLOT_WHOLE || slot->len != total)
		return SPL_DROP_LINK_RECORD;
	if (slot->state == SLOT_MEM)
		return -1;
	bits = bits_state(unit_map(slot), off / WIRE_FRAGMENT_UNIT, units(len));
	if (bits < 0)
		return SPL_DROP_LINK_RECORD;
	s->has_new |= bits == 0;
	return -1;
}

static int scan_fragment(const struct flow *f, const struct flow_in *r, struct scan *s,
			 const uint8_t *p, uint32_t left, uint32_t *size)
{
	const struct flow_slot *slot;
	uint32_t len, seq, off, total;
	bool old;
	int drop;

	if (left < WIRE_FRAGMENT_BYTES || p[1] != 0)
		return SPL_DROP_LINK_RECORD;
	len = wire_load_u16(p + 2);
	seq = wire_load_u32(p + 4);
	off = wire_load_u32(p + 8);
	total = wire_load_u32(p + 12);
	if (len == 0 || len > left - WIRE_FRAGMENT_BYTES || off % WIRE_FRAGMENT_UNIT != 0 ||
	    off >= total || len > total - off ||
	    (len % WIRE_FRAGMENT_UNIT != 0 && len != total - off))
		return SPL_DROP_LINK_RECORD;
	if (total > f->msg_bytes)
		return SPL_DROP_LINK_SIZE;
	*size = WIRE_FRAGMENT_BYTES + len;
	drop = scan_seq(r, s, seq, &old);
	if (drop >= 0 || old)
		return drop;
	slot = &r->slots[seq & r->mask];
	if (slot->state != SLOT_EMPTY)
		return scan_fragment_known(slot, s, off, len, total);
	s->needs_mem = true;
	return scan_new(r, s, total);
}

static int scan_ack(const struct flow *f, const uint8_t *p, uint32_t left, uint32_t *size)
{
	const struct flow_away *t;
	uint64_t number;
	uint32_t n;

	if (left < WIRE_ACK_BYTES || p[1] >= WIRE_CLASSES || p[3] != 0)
		return SPL_DROP_LINK_RECORD;
	n = p[2];
	if (n < 1 || n > WIRE_ACK_RANGES_MAX || left - WIRE_ACK_BYTES < n * WIRE_ACK_RANGE_BYTES)
		return SPL_DROP_LINK_RECORD;
	*size = WIRE_ACK_BYTES + n * WIRE_ACK_RANGE_BYTES;
	t = &f->away[p[1]];
	number = wire_load_u64(p + 8);
	if (number >= t->next_number)
		return SPL_DROP_LINK_ACK;
	number++; /* first number not below the ranges so far */
	p += WIRE_ACK_BYTES;
	for (uint32_t i = 0; i < n; i++, p += WIRE_ACK_RANGE_BYTES) {
		uint32_t missing = wire_load_u16(p), received = wire_load_u16(p + 2);

		if (received == 0 || (missing == 0) != (i == 0))
			return SPL_DROP_LINK_RECORD;
		if (number - t->first_number < missing + received)
			return SPL_DROP_LINK_ACK;
		number -= missing + received;
	}
	return -1;
}

static int scan_credit(const struct flow *f, const uint8_t *p, uint32_t left, uint32_t *size)
{
	if (left < WIRE_CREDIT_BYTES || p[1] >= WIRE_CLASSES || wire_load_u32(p + 4) != 0)
		return SPL_DROP_LINK_RECORD;
	*size = WIRE_CREDIT_BYTES;
	if (p[0] == SPL_REC_CREDIT_WANTED &&
	    !flow_credit_ask_is_legal(&f->in[p[1]], wire_load_u16(p + 2), wire_load_u64(p + 8)))
		return SPL_DROP_LINK_RECORD;
	return -1;
}

static int scan_ping(struct scan *s, const uint8_t *p, uint32_t left, uint32_t *size)
{
	if (left < WIRE_PING_BYTES || p[1] || p[2] || p[3])
		return SPL_DROP_LINK_RECORD;
	*size = WIRE_PING_BYTES;
	s->elicits = true;
	return -1;
}

/* Checks the record at `p`: -1 and its size, or the drop reason. */
static int scan_record(const struct flow *f, enum wire_class cls, struct scan *s, const uint8_t *p,
		       uint32_t left, uint32_t *size)
{
	const struct flow_in *r = &f->in[cls];

	switch (p[0]) {
	case SPL_REC_MESSAGE:
		return scan_message(f, r, s, p, left, size);
	case SPL_REC_FRAGMENT:
		return scan_fragment(f, r, s, p, left, size);
	case SPL_REC_ACK:
		return cls == WIRE_INFRA ? scan_ack(f, p, left, size) : SPL_DROP_LINK_RECORD;
	case SPL_REC_CREDIT:
	case SPL_REC_CREDIT_WANTED:
		return cls == WIRE_INFRA ? scan_credit(f, p, left, size) : SPL_DROP_LINK_RECORD;
	case SPL_REC_PING:
		return scan_ping(s, p, left, size);
	default:
		return SPL_DROP_LINK_RECORD;
	}
}

static uint32_t record_size(const uint8_t *p)
{
	switch (p[0]) {
	case SPL_REC_MESSAGE:
		return WIRE_MESSAGE_BYTES + wire_load_u16(p + 2);
	case SPL_REC_FRAGMENT:
		return WIRE_FRAGMENT_BYTES + wire_load_u16(p + 2);
	case SPL_REC_ACK:
		return WIRE_ACK_BYTES + p[2] * WIRE_ACK_RANGE_BYTES;
	case SPL_REC_PING:
		return WIRE_PING_BYTES;
	default:
		return WIRE_CREDIT_BYTES;
	}
}

/* Begins every message of which the packet has the first fragment; false when memory is short. */
static bool get_memory(struct flow *f, struct flow_in *r, const uint8_t *p, const uint8_t *end)
{
	for (; p < end; p += record_size(p)) {
		uint32_t seq, total, words;
		struct flow_slot *slot;
		uint8_t *mem;

		if (p[0] != SPL_REC_FRAGMENT)
			continue;
		seq = wire_load_u32(p + 4);
		slot = &r->slots[seq & r->mask];
		if (flow_before32(seq, r->next_seq) || slot->state != SLOT_EMPTY)
			continue;
		total = wire_load_u32(p + 12);
		words = (units(total) + 63) / 64;
		mem = f->env->mem_get(f->host, (size_t)units(total) * WIRE_FRAGMENT_UNIT +
						       (size_t)words * sizeof(uint64_t));
		if (!mem)
			return false;
		*slot = (struct flow_slot){
			.data = mem, .ref = mem, .len = total, .state = SLOT_PART};
		memset(unit_map(slot), 0, (size_t)words * sizeof(uint64_t));
		r->held++;
		r->charged += wire_charge(total);
	}
	return true;
}

static void deliver(struct flow_sink *sink, enum wire_class cls, const uint8_t *data, uint32_t len,
		    void *ref, bool is_mem)
{
	uint32_t charge = wire_charge(len);

	sink->charge += charge;
	sink->msgs[sink->n++] = (struct flow_msg){.data = data,
						  .ref = ref,
						  .len = len,
						  .charge = charge,
						  .cls = (uint8_t)cls,
						  .is_mem = is_mem};
}

/* Delivers what is next and complete while the sink has room; true when more is ready. */
static bool deliver_ready(struct flow_in *r, enum wire_class cls, struct flow_sink *sink)
{
	while (r->held > 0) {
		struct flow_slot *slot = &r->slots[r->next_seq & r->mask];

		if (slot->state != SLOT_WHOLE && slot->state != SLOT_MEM)
			return false;
		if (flow_sink_is_full(sink))
			return true;
		deliver(sink, cls, slot->data, slot->len, slot->ref, slot->state == SLOT_MEM);
		slot->state = SLOT_EMPTY;
		r->held--;
		r->next_seq++;
		r->messages++;
	}
	return false;
}

bool flow_drain(struct flow *f, struct flow_sink *sink)
{
	bool more = deliver_ready(&f->in[WIRE_INFRA], WIRE_INFRA, sink);

	return deliver_ready(&f->in[WIRE_APP], WIRE_APP, sink) || more;
}

/* Returns the references taken: 0 or 1. */
static uint32_t take_message(struct flow_in *r, enum wire_class cls, const uint8_t *p, void *buf,
			     struct flow_sink *sink)
{
	uint32_t len = wire_load_u16(p + 2), seq = wire_load_u32(p + 4);
	struct flow_slot *slot = &r->slots[seq & r->mask];

	if (flow_before32(seq, r->next_seq) || slot->state != SLOT_EMPTY)
		return 0;
	r->charged += wire_charge(len);
	p += WIRE_MESSAGE_BYTES;
	if (seq == r->next_seq && !flow_sink_is_full(sink)) {
		deliver(sink, cls, p, len, buf, false);
		r->next_seq++;
		r->messages++;
		return 1;
	}
	*slot = (struct flow_slot){.data = (uint8_t *)(uintptr_t)p,
				   .ref = buf,
				   .len = len,
				   .got = len,
				   .state = SLOT_WHOLE};
	r->held++;
	return 1;
}

static void take_fragment(struct flow_in *r, const uint8_t *p)
{
	uint32_t len = wire_load_u16(p + 2), seq = wire_load_u32(p + 4);
	uint32_t off = wire_load_u32(p + 8);
	struct flow_slot *slot = &r->slots[seq & r->mask];
	uint64_t *map;

	if (flow_before32(seq, r->next_seq) || slot->state != SLOT_PART)
		return;
	map = unit_map(slot);
	if (bits_state(map, off / WIRE_FRAGMENT_UNIT, units(len)) != 0)
		return;
	bits_set(map, off / WIRE_FRAGMENT_UNIT, units(len));
	memcpy(slot->data + off, p + WIRE_FRAGMENT_BYTES, len);
	slot->got += len;
	if (slot->got == slot->len)
		slot->state = SLOT_MEM;
}

static uint32_t take_records(struct flow *f, enum wire_class cls, const uint8_t *p,
			     const uint8_t *end, void *buf, uint64_t now, struct flow_sink *sink)
{
	struct flow_in *r = &f->in[cls];
	uint32_t refs = 0;

	for (; p < end; p += record_size(p)) {
		switch (p[0]) {
		case SPL_REC_MESSAGE:
			refs += take_message(r, cls, p, buf, sink);
			break;
		case SPL_REC_FRAGMENT:
			take_fragment(r, p);
			break;
		case SPL_REC_ACK:
			flow_ack_take(f, p[1], p, now);
			break;
		case SPL_REC_CREDIT:
			flow_credit_told(&f->away[p[1]], wire_load_u16(p + 2),
					 wire_load_u64(p + 8));
			break;
		case SPL_REC_CREDIT_WANTED:
			flow_credit_asked(f, p[1], wire_load_u16(p + 2), wire_load_u64(p + 8));
			break;
		default:
			break;
		}
	}
	deliver_ready(r, cls, sink);
	return refs;
}

/* 0 = new, 1 = seen before, -1 = too old to tell. */
static int number_state(const struct flow_in *r, uint64_t number)
{
	uint64_t bit = number % WIRE_NUMBER_WINDOW;

	if (number >= r->next_number)
		return number == UINT64_MAX ? -1 : 0;
	if (r->next_number - number > WIRE_NUMBER_WINDOW)
		return -1;
	return (int)(r->map[bit / 64] >> bit % 64 & 1);
}

static struct flow_rx_result rx_any(struct flow *f, const uint8_t *pkt, uint32_t len, void *buf,
				    uint64_t now, struct flow_sink *sink)
{
	enum wire_class cls = wire_flow_class(pkt);
	struct flow_in *r = &f->in[cls];
	const uint8_t *p = pkt + HDR, *end = pkt + len;
	uint64_t number = wire_load_u64(pkt + 16);
	int seen = number_state(r, number);
	struct scan s = {0};
	uint32_t size = 0, refs;

	if (seen < 0)
		return dropped(SPL_DROP_LINK_NUMBER);
	if (seen > 0) {
		f->stats.duplicates++;
		r->ack_due = 0;
		return used(SPL_USE_DUPLICATE, 0);
	}
	if (p == end)
		return dropped(SPL_DROP_LINK_RECORD);
	for (; p < end; p += size) {
		int drop = scan_record(f, cls, &s, p, (uint32_t)(end - p), &size);

		if (drop >= 0)
			return dropped(drop);
	}
	if (s.needs_mem && !get_memory(f, r, pkt + HDR, end))
		return dropped(SPL_DROP_LINK_MEMORY);
	refs = take_records(f, cls, pkt + HDR, end, buf, now, sink);
	flow_ack_note(f, r, number, s.elicits, now);
	f->packets_rx++;
	if (s.has_new)
		return used(SPL_USE_DATA, refs);
	return used(s.has_message ? SPL_USE_DUPLICATE : SPL_USE_ACK, refs);
}

/* Whole messages in order fill the sink beyond its end. The number of them; 0 = not the fast path.
 */
static inline uint32_t walk_in_order(const struct flow *f, const struct flow_in *r,
				     const uint8_t *pkt, uint32_t len, void *buf,
				     const struct flow_sink *sink, uint64_t *charged)
{
	enum wire_class cls = wire_flow_class(pkt);
	struct flow_msg *m = sink->msgs + sink->n;
	struct flow_msg *m_end = flow_sink_is_full(sink) ? m : sink->msgs + sink->room;
	const uint8_t *p = pkt + HDR, *end = pkt + len;
	uint64_t charge = r->charged;
	uint32_t seq = r->next_seq;

	do {
		uint64_t v = wire_load_u64(p);
		uint32_t n = (uint32_t)(v >> 32) & 0xffff;

		/* kind, zero and sequence as expected in one comparison */
		if (unlikely((v & 0xffff0000ffffffffULL) !=
				     ((uint64_t)SPL_REC_MESSAGE << 56 | seq) ||
			     n > f->msg_bytes || m == m_end))
			return 0;
		p += WIRE_MESSAGE_BYTES;
		if (unlikely((uint32_t)(end - p) < n))
			return 0;
		m->data = p;
		m->ref = buf;
		m->len = n;
		m->charge = wire_charge(n);
		m->cls = (uint8_t)cls;
		m->is_mem = false;
		charge += m->charge;
		m++;
		seq++;
		p += n;
	} while (end - p >= WIRE_MESSAGE_BYTES);
	if (unlikely(p != end || flow_before64(r->limit, charge)))
		return 0;
	*charged = charge;
	return seq - r->next_seq;
}

struct flow_rx_result flow_rx(struct flow *f, const uint8_t *pkt, uint32_t len, void *buf,
			      uint64_t now_ns, struct flow_sink *sink)
{
	static const uint8_t class_bits[8] = {0, WIRE_FLAG_INFRA};
	uint64_t number, charged;
	struct flow_in *r;
	uint32_t n;

	if (unlikely(len < HDR))
		return dropped(SPL_DROP_LINK_SHORT);
	if (unlikely((flow_load_raw(pkt) & ~flow_load_raw(class_bits)) != f->rx_head ||
		     flow_load_raw(pkt + 8) != f->rx_id ||
		     (flow_load_raw(pkt + 24) | flow_load_raw(pkt + 32))))
		return dropped(header_fault(f, pkt, len));
	r = &f->in[wire_flow_class(pkt)];
	number = wire_load_u64(pkt + 16);
	if (unlikely(number != r->next_number || r->held || number == UINT64_MAX ||
		     len < HDR + WIRE_MESSAGE_BYTES))
		return rx_any(f, pkt, len, buf, now_ns, sink);
	n = walk_in_order(f, r, pkt, len, buf, sink, &charged);
	if (n == 0)
		return rx_any(f, pkt, len, buf, now_ns, sink);
	sink->n += n;
	sink->charge += charged - r->charged;
	r->next_seq += n;
	r->messages += n;
	r->charged = charged;
	f->packets_rx++;
	flow_note_next(f, r, now_ns);
	return used(SPL_USE_DATA, n);
}
