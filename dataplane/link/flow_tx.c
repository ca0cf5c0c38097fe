/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the next packet of a flow goes out. Runs on the thread of the flow; owns nothing.
 *
 * A packet holds what is there now and waits for nothing: control records first (infrastructure
 * class), then either what a lost packet held, or new bytes: at most one fragment, then whole
 * messages. Payload is copied, so that a packet in a transmit ring never changes.
 */
#include "dataplane/link/flow_int.h"

#define FRAGMENT_LEAST 64 /* no smaller first pieces, when the packet is nearly full */

static const struct flow_out *out_at(const struct flow_away *t, uint32_t seq)
{
	return &t->out[seq & t->out_mask];
}

static bool control_is_due(const struct flow *f, uint64_t now)
{
	for (int c = 0; c < WIRE_CLASSES; c++)
		if (f->in[c].ack_due <= now || f->in[c].credit_due || f->away[c].wanted_due <= now)
			return true;
	return false;
}

static uint8_t *put_credit(uint8_t *p, unsigned kind, enum wire_class cls, uint16_t epoch,
			   uint64_t limit)
{
	p[0] = (uint8_t)kind;
	p[1] = (uint8_t)cls;
	wire_store_u16(p + 2, epoch);
	wire_store_u32(p + 4, 0);
	wire_store_u64(p + 8, limit);
	return p + WIRE_CREDIT_BYTES;
}

/* Acknowledgements and credit of both classes; a datagram always has room for them. */
static uint8_t *put_control(struct flow *f, uint8_t *p, const uint8_t *end, uint64_t now)
{
	for (int c = 0; c < WIRE_CLASSES; c++) {
		struct flow_in *r = &f->in[c];
		struct flow_away *t = &f->away[c];
		/* room for the other records of both classes stays free */
		uint32_t room = (uint32_t)(end - p) - 4 * WIRE_CREDIT_BYTES;
		uint32_t n = 0;

		if (c == 0)
			room /= 2;
		if (r->owed > 0 || r->ack_due <= now)
			n = flow_ack_put(f, c, p, room, now);
		p += n;
		if (n > 0 || r->credit_due) {
			p = put_credit(p, SPL_REC_CREDIT, c, r->epoch, r->limit);
			r->advertised = r->limit;
			r->credit_due = false;
		}
		if (t->wanted_due <= now) {
			p = put_credit(p, SPL_REC_CREDIT_WANTED, c, t->epoch, flow_wanted(t));
			t->wanted_due = now + t->wanted_wait;
			t->wanted_wait = t->wanted_wait * 2 < FLOW_WANTED_MAX_NS
						 ? t->wanted_wait * 2
						 : FLOW_WANTED_MAX_NS;
		}
	}
	return p;
}

static uint8_t *put_message(uint8_t *p, uint32_t seq, const struct flow_out *o)
{
	p[0] = SPL_REC_MESSAGE;
	p[1] = 0;
	wire_store_u16(p + 2, (uint16_t)o->len);
	wire_store_u32(p + 4, seq);
	if (o->len)
		memcpy(p + WIRE_MESSAGE_BYTES, o->data, o->len);
	return p + WIRE_MESSAGE_BYTES + o->len;
}

static uint8_t *put_fragment(uint8_t *p, uint32_t seq, const struct flow_out *o, uint32_t off,
			     uint32_t len)
{
	p[0] = SPL_REC_FRAGMENT;
	p[1] = 0;
	wire_store_u16(p + 2, (uint16_t)len);
	wire_store_u32(p + 4, seq);
	wire_store_u32(p + 8, off);
	wire_store_u32(p + 12, o->len);
	memcpy(p + WIRE_FRAGMENT_BYTES, o->data + off, len);
	return p + WIRE_FRAGMENT_BYTES + len;
}

static bool window_is_open(const struct flow *f, const struct flow_away *t)
{
	if (t->probes > 0)
		return true;
	return t->flight < t->window && t->flight_bytes + f->datagram_bytes <= f->window_bytes;
}

/* Bytes of the records that a sent packet held. */
static uint32_t content_bytes(const struct flow_away *t, const struct flow_sent *s)
{
	uint32_t n = s->frag ? WIRE_FRAGMENT_BYTES + s->frag : 0;
	uint32_t seq = s->seq + (s->frag != 0);

	for (uint32_t i = 0; i < s->whole; i++)
		n += WIRE_MESSAGE_BYTES + out_at(t, seq + i)->len;
	return n;
}

/* Writes what the first lost packet held, and moves it to `rec`. NULL: does not fit here. */
static uint8_t *put_lost(struct flow *f, struct flow_away *t, uint8_t *p, const uint8_t *end,
			 struct flow_sent *rec)
{
	uint32_t i = t->lost_from, seq;
	struct flow_sent *s;

	while (t->sent[i & t->sent_mask].state != SENT_LOST) /* there is one: lost > 0 */
		i++;
	t->lost_from = i;
	s = &t->sent[i & t->sent_mask];
	if (content_bytes(t, s) > (uint32_t)(end - p))
		return NULL;
	if (t->tail - t->head > t->sent_mask && i != t->head)
		return NULL;
	*rec = *s;
	seq = s->seq;
	if (s->frag) {
		p = put_fragment(p, seq, out_at(t, seq), s->off, s->frag);
		seq++;
	}
	for (uint32_t k = 0; k < s->whole; k++, seq++)
		p = put_message(p, seq, out_at(t, seq));
	s->state = SENT_RESENT;
	t->lost--;
	t->lost_from = i + 1;
	flow_sent_pop(t);
	f->stats.retransmitted++;
	return p;
}

/* May the message at the cursor be begun? Its credit is taken whole (S-LIM-14). */
static bool may_begin(struct flow *f, struct flow_away *t, uint64_t now)
{
	if (t->cur_seq == t->next_seq || t->cur_seq - t->base_seq >= t->peer_window)
		return false;
	if (!flow_before64(t->limit, t->used + wire_charge(out_at(t, t->cur_seq)->len)))
		return true;
	flow_credit_blocked(f, t, now);
	return false;
}

/* Writes a fragment of the message at the cursor; p when there is no room for a decent one. */
static uint8_t *put_piece(struct flow_away *t, uint8_t *p, const uint8_t *end,
			  struct flow_sent *rec)
{
	const struct flow_out *o = out_at(t, t->cur_seq);
	uint32_t left = o->len - t->cur_off, len = left;
	uint32_t room = (uint32_t)(end - p);

	if (room < WIRE_FRAGMENT_BYTES + FRAGMENT_LEAST)
		return p;
	room -= WIRE_FRAGMENT_BYTES;
	if (len > room)
		len = room / WIRE_FRAGMENT_UNIT * WIRE_FRAGMENT_UNIT;
	p = put_fragment(p, t->cur_seq, o, t->cur_off, len);
	rec->seq = t->cur_seq;
	rec->off = t->cur_off;
	rec->frag = (uint16_t)len;
	t->cur_off += len;
	if (len == left) {
		t->cur_seq++;
		t->cur_off = 0;
	}
	return p;
}

/* Writes new bytes: the rest or the start of a message in pieces, then whole messages. */
static uint8_t *put_new(struct flow *f, struct flow_away *t, uint8_t *p, const uint8_t *end,
			struct flow_sent *rec, uint64_t now)
{
	uint32_t whole_max = f->datagram_bytes - WIRE_HDR_BYTES - WIRE_MESSAGE_BYTES;

	*rec = (struct flow_sent){.seq = t->cur_seq};
	if (t->cur_off > 0) {
		uint8_t *q = put_piece(t, p, end, rec);

		if (q == p || t->cur_off > 0)
			return q;
		p = q;
	}
	while (may_begin(f, t, now)) {
		const struct flow_out *o = out_at(t, t->cur_seq);

		if (o->len > whole_max) {
			uint8_t *q;

			if (rec->frag || rec->whole)
				break;
			q = put_piece(t, p, end, rec);
			if (q != p)
				t->used += wire_charge(o->len);
			return q;
		}
		if (o->len + WIRE_MESSAGE_BYTES > (uint32_t)(end - p))
			break;
		p = put_message(p, t->cur_seq, o);
		t->used += wire_charge(o->len);
		t->cur_seq++;
		rec->whole++;
	}
	return p;
}

static void record(struct flow_away *t, struct flow_sent *rec, uint32_t bytes, uint64_t now)
{
	FLOW_ASSERT(t->tail - t->head <= t->sent_mask);
	rec->number = t->next_number;
	rec->time = now;
	rec->bytes = (uint16_t)bytes;
	rec->state = SENT_FLIGHT;
	t->sent[t->tail++ & t->sent_mask] = *rec;
	t->flight++;
	t->flight_bytes += bytes;
	t->last_sent = now;
	if (t->probes > 0)
		t->probes--;
}

static uint8_t *put_content(struct flow *f, struct flow_away *t, uint8_t *p, const uint8_t *end,
			    struct flow_sent *rec, uint64_t now)
{
	uint8_t *q;

	if (!window_is_open(f, t))
		return p;
	if (t->lost > 0) {
		q = put_lost(f, t, p, end, rec);
		return q ? q : p;
	}
	if (t->cur_seq == t->next_seq || t->tail - t->head > t->sent_mask)
		return p;
	return put_new(f, t, p, end, rec, now);
}

/* Builds a packet of class `cls`; 0 = there is nothing for it. */
static uint32_t build(struct flow *f, enum wire_class cls, uint8_t *out, uint64_t now)
{
	struct flow_away *t = &f->away[cls];
	const uint8_t *end = out + f->datagram_bytes;
	uint8_t *body = out + WIRE_HDR_BYTES, *p = body, *content;
	struct flow_sent rec;
	struct wire_hdr h = {.kind = SPL_PKT_FLOW,
			     .cls = (uint8_t)cls,
			     .src_lane = f->lane,
			     .dst_lane = f->peer_lane,
			     .id = f->tx_id};

	if (t->next_number == UINT64_MAX)
		return 0;
	if (cls == WIRE_INFRA)
		p = put_control(f, p, end, now);
	content = p;
	p = put_content(f, t, p, end, &rec, now);
	if (p == body)
		return 0;
	h.number = t->next_number;
	wire_hdr_put(out, &h);
	if (p != content)
		record(t, &rec, (uint32_t)(p - out), now);
	t->next_number++;
	f->stats.packets_tx++;
	f->stats.bytes_tx += (uint64_t)(p - out);
	return (uint32_t)(p - out);
}

static bool has_content(const struct flow_away *t)
{
	return t->cur_seq != t->next_seq || t->lost > 0;
}

uint32_t flow_tx(struct flow *f, uint8_t *out, uint32_t room, uint64_t now_ns, enum wire_class *cls)
{
	uint32_t n = 0;

	if (room < f->datagram_bytes)
		return 0;
	*cls = WIRE_INFRA;
	if (control_is_due(f, now_ns) || has_content(&f->away[WIRE_INFRA]))
		n = build(f, WIRE_INFRA, out, now_ns);
	if (n > 0 || !has_content(&f->away[WIRE_APP]))
		return n;
	*cls = WIRE_APP;
	n = build(f, WIRE_APP, out, now_ns);
	if (n > 0 || !control_is_due(f, now_ns))
		return n;
	/* The application class has just found that it lacks credit. */
	*cls = WIRE_INFRA;
	return build(f, WIRE_INFRA, out, now_ns);
}
