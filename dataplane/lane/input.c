/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: from packets to messages to records. One round gathers the messages of a burst, then
 * hands them to the room of Spots together, so that table lines and Spots are prefetched. A message
 * is a view into its buffer: each record owns one reference of it.
 *
 * Each peer has a share of a round (S-FAIR-4): LANE_PEER_BYTES of credit, which is at most 256
 * messages, and the message that goes beyond it. What has no part in this round waits in the peer's
 * flow, acknowledged and within its credit; when all that came is admitted, such flows have a share
 * each, in turns. Frames of one message each need no counting: a burst of them is less than a
 * share.
 */
#include "dataplane/lane/plain.h"

#include <rte_prefetch.h>

#define INPUT_BATCH 32u /* records admitted at once */

static void admit_input(struct lane *l);

/* The handle of what a message of this round lies in. */
static void *input_buf(const struct lane *l, const struct flow_msg *msg)
{
	if (msg->is_mem)
		return lane_buf(msg->ref, LANE_BUF_MEM);
	return lane_buf(msg->ref, l->input_alone[msg - l->input] ? LANE_BUF_ALONE : LANE_BUF_MBUF);
}

_Static_assert(LANE_BURST *(SPL_DATAGRAM_BYTES + 256u) <= LANE_PEER_BYTES, "counted by the burst");

/* Room for messages of this peer in this round. Without records the packet is still looked at:
 * acknowledgements count, application messages wait in the flow, and the others need no record. */
static struct flow_sink sink_for(struct lane *l, struct lane_peer *p, enum wire_class cls)
{
	struct flow_sink s = {.msgs = l->input, .n = l->n_input, .room = LANE_MESSAGES};

	if (cls != WIRE_APP)
		return s;
	if (p->round != l->round) {
		p->round = l->round;
		p->taken = 0;
	}
	s.charge = p->taken;
	s.charge_max = LANE_PEER_BYTES;
	if (l->n_input > LANE_MESSAGES / 2)
		s.room = l->n_input;
	return s;
}

/* More may wait in the flow than it had room for. */
static void note_undrained(struct lane *l, struct lane_flow *f)
{
	l->n_undrained += !f->is_undrained;
	f->is_undrained = true;
}

static void note_origin(struct lane *l, struct lane_flow *f, unsigned from)
{
	for (unsigned i = from; i < l->n_input; i++) {
		l->input_flow[i] = f;
		l->input_alone[i] = false;
	}
}

void lane_input_packet(struct lane *l, struct lane_flow *f, struct rte_mbuf *m,
		       const struct frame_view *v)
{
	struct lane_peer *p = &l->peer[lane_flow_slot(f->ref)];
	struct flow_rx_result r;
	struct flow_sink sink;
	unsigned before;

	if (l->n_input > LANE_MESSAGES / 2)
		admit_input(l);
	before = l->n_input;
	sink = sink_for(l, p, v->cls);
	r = flow_rx(f->flow, frame_payload(v), v->payload_len, m, l->now_ns, &sink);
	l->n_input = sink.n;
	if (v->cls == WIRE_APP)
		p->taken = sink.charge;
	note_origin(l, f, before);
	if (flow_sink_is_full(&sink))
		note_undrained(l, f);
	lane_flow_touch(l, f);
	if (r.drop != FLOW_NO_DROP)
		lane_drop(l, r.drop);
	else
		lane_use(l, r.use, 1);
	/* The usual packet brought one message, delivered now: its buffer is the record's alone. */
	if (r.refs == 1 && l->n_input == before + 1 && l->input[before].ref == m) {
		l->input_alone[before] = true;
		return;
	}
	((struct lane_buffer *)rte_mbuf_to_priv(m))->refs = r.refs;
	if (r.refs == 0)
		rte_pktmbuf_free(m);
}

/* Drops what a message holds and gives its credit back. */
static void forget(struct lane *l, const struct flow_msg *msg, struct lane_flow *f)
{
	void *buf = input_buf(l, msg);

	flow_consumed(f->flow, (enum wire_class)msg->cls, msg->charge);
	lane_release(l, buf, 0, 0, SPOT_FROM_LINK);
}

static void refuse(struct lane *l, const struct flow_msg *msg, struct lane_flow *f,
		   const struct wire_msg *h, enum spl_message_fail fail, uint8_t kind)
{
	lane_fail(l, fail);
	if (msg->cls == WIRE_APP && !(h && h->correlation))
		lane_dropped(l, fail == SPL_FAIL_NO_RECORD);
	spot_trace_refused(l->spots, h && h->correlation && h->kind != SPL_MSG_REPLY, fail,
			   h ? h->correlation : 0);
	if (h && h->correlation && h->kind != SPL_MSG_REPLY)
		lane_reply_link(l, f->ref, h->correlation, kind, SPL_CONTENT_RAW, NULL, 0);
	forget(l, msg, f);
}

static void control_message(struct lane *l, const struct flow_msg *msg, struct lane_flow *f,
			    const struct wire_msg *h)
{
	struct lane_event *e = h->correlation ? lane_event_new(l) : NULL;

	if (!e) {
		refuse(l, msg, f, h, h->correlation ? SPL_FAIL_NO_RECORD : SPL_FAIL_MALFORMED,
		       SPL_E_CAPACITY_EXCEEDED);
		return;
	}
	e->kind = LANE_EV_MESH;
	e->op = h->kind;
	e->data = h->payload;
	e->bytes = h->payload_len;
	e->buf = input_buf(l, msg);
	e->charge = msg->charge;
	e->flow = f->ref;
	e->correlation = h->correlation;
	e->deadline = h->budget_us ? l->now_ns + (uint64_t)h->budget_us * 1000u : 0;
	lane_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	lane_count(l, SPL_C_MESSAGES_RUNNING, 1);
	lane_event_raise(l, e);
}

static void reply_message(struct lane *l, const struct flow_msg *msg, struct lane_flow *f,
			  const struct wire_msg *h)
{
	struct spot_reply r = {
		.correlation = h->correlation,
		.payload = h->payload,
		.payload_bytes = h->payload_len,
		.content = h->content,
		.kind = h->error,
		.origin = SPOT_FROM_LINK,
		.buf = input_buf(l, msg),
		.flow = f->ref,
	};

	flow_consumed(f->flow, WIRE_INFRA, msg->charge);
	spot_reply_in(l->spots, &r);
}

static void infrastructure(struct lane *l, const struct flow_msg *msg, struct lane_flow *f,
			   const struct wire_msg *h)
{
	switch (h->kind) {
	case SPL_MSG_REPLY:
		reply_message(l, msg, f, h);
		break;
	case SPL_MSG_CREATE:
	case SPL_MSG_FIND:
	case SPL_MSG_CLOSE_SPOT:
	case SPL_MSG_RESOLVE:
		control_message(l, msg, f, h);
		break;
	default:
		refuse(l, msg, f, h, SPL_FAIL_UNKNOWN_KIND, SPL_E_PROTOCOL_ERROR);
	}
}

static bool intent_is_legal(const struct wire_msg *h)
{
	struct pack_bytes id, type;

	return wire_intent_get(&id, &type, h->intent, h->intent_len) == 0;
}

/* True when the message became the record `r`. */
static bool to_record(struct lane *l, const struct flow_msg *msg, struct lane_flow *f,
		      struct spot_rec *r)
{
	struct wire_msg h;

	if (wire_msg_get(&h, msg->data, msg->len)) {
		refuse(l, msg, f, NULL, SPL_FAIL_MALFORMED, 0);
		return false;
	}
	if ((h.meta_len && wire_meta_check(h.meta, h.meta_len)) ||
	    (h.intent_len && !intent_is_legal(&h))) {
		refuse(l, msg, f, &h, SPL_FAIL_MALFORMED, SPL_E_PROTOCOL_ERROR);
		return false;
	}
	if (msg->cls == WIRE_INFRA) {
		infrastructure(l, msg, f, &h);
		return false;
	}
	if (h.kind != SPL_MSG_SPOT_SEND && h.kind != SPL_MSG_SPOT_REQUEST &&
	    h.kind != SPL_MSG_PUBLISH) {
		refuse(l, msg, f, &h, SPL_FAIL_UNKNOWN_KIND, SPL_E_PROTOCOL_ERROR);
		return false;
	}
	r->msg.payload = h.payload;
	r->msg.payload_bytes = h.payload_len;
	r->buf = input_buf(l, msg);
	r->packet = h.packet;
	r->deadline = h.budget_us ? l->now + spot_from_us(&l->clock, h.budget_us) : 0;
	r->flow = f->ref;
	r->charge = msg->charge;
	r->msg.metadata = h.meta;
	r->msg.metadata_bytes = h.meta_len;
	r->msg.content = h.content;
	r->kind = h.kind;
	r->origin = SPOT_FROM_LINK;
	r->msg.correlation = h.correlation;
	r->msg.source = f->lifecycle;
	r->key = (const struct spl_key *)(msg->data + 16);
	if (h.intent_len) {
		r->kind = h.kind == SPL_MSG_SPOT_SEND ? SPOT_KIND_INSTANCE_SEND
						      : SPOT_KIND_INSTANCE_REQUEST;
		r->msg.packet = (const char *)h.intent;
	}
	return true;
}

/* Admits the messages from `i` on for which there are records; returns how many it dealt with. */
static unsigned admit_some(struct lane *l, unsigned i)
{
	struct spot_rec *r[INPUT_BATCH];
	unsigned want = l->n_input - i, got, used = 0, done = 0;

	if (want > INPUT_BATCH)
		want = INPUT_BATCH;
	for (unsigned k = 0; k < want; k++)
		rte_prefetch0(l->input[i + k].data);
	got = spot_recs_take(l->spots, r, want);
	while (done < want && used < got) {
		const struct flow_msg *msg = &l->input[i + done];
		struct lane_flow *f = l->input_flow[i + done];

		if (msg->cls == WIRE_APP && msg->len >= WIRE_MSG_BYTES &&
		    plain_record(l, f, msg->data, msg->len, r[used])) {
			r[used]->buf = input_buf(l, msg);
			r[used++]->charge = msg->charge;
		} else if (to_record(l, msg, f, r[used])) {
			used++;
		}
		done++;
	}
	spot_recs_give(l->spots, r + used, got - used);
	spot_admit(l->spots, r, used, l->now);
	return done;
}

/* A share for each flow in which messages wait, from where the last such round ended, while this
 * one has room. */
static void drain_waiting(struct lane *l)
{
	for (uint32_t i = 0; i < l->n_active && l->n_undrained; i++) {
		struct flow_sink sink = {.msgs = l->input,
					 .n = l->n_input,
					 .room = LANE_MESSAGES,
					 .charge_max = LANE_PEER_BYTES};
		unsigned before = l->n_input;
		struct lane_flow *f;

		if (before >= LANE_MESSAGES / 2)
			break;
		if (l->drain_at >= l->n_active)
			l->drain_at = 0;
		f = l->active[l->drain_at++];
		if (!f->is_undrained)
			continue;
		f->is_undrained = flow_drain(f->flow, &sink);
		l->n_undrained -= !f->is_undrained;
		l->n_input = sink.n;
		note_origin(l, f, before);
	}
}

/* No record is free: replies and control messages need none and do not wait behind those that do.
 */
static void infrastructure_only(struct lane *l, unsigned from)
{
	unsigned left = from;

	for (unsigned i = from; i < l->n_input; i++) {
		if (l->input[i].cls == WIRE_INFRA) {
			to_record(l, &l->input[i], l->input_flow[i], NULL);
			continue;
		}
		l->input[left] = l->input[i];
		l->input_alone[left] = l->input_alone[i];
		l->input_flow[left++] = l->input_flow[i];
	}
	l->n_input = left;
}

/* Admits the plain messages of this round; they came before those of l->input. */
static void plain_flush(struct lane *l)
{
	unsigned n = l->n_plain, got = l->plain_got;

	l->n_plain = 0;
	l->plain_got = 0;
	spot_recs_give(l->spots, l->plain + n, got - n);
	spot_admit(l->spots, l->plain, n, l->now);
}

void lane_plain_room(struct lane *l, unsigned n)
{
	if (l->n_input)
		return; /* what came before them is admitted first */
	if (l->plain_got + n > LANE_PLAIN)
		plain_flush(l);
	l->plain_got += spot_recs_take(l->spots, l->plain + l->plain_got, n);
}

/* Admits what this round has so far, as far as there are records. */
static void admit_input(struct lane *l)
{
	unsigned i = 0, n;

	if (l->plain_got)
		plain_flush(l);
	while (i < l->n_input) {
		n = admit_some(l, i);
		if (n == 0) {
			infrastructure_only(l, i);
			break;
		}
		i += n;
	}
	if (i > 0 && i < l->n_input) {
		memmove(l->input, l->input + i, (l->n_input - i) * sizeof(l->input[0]));
		memmove(l->input_flow, l->input_flow + i,
			(l->n_input - i) * sizeof(l->input_flow[0]));
		memmove(l->input_alone, l->input_alone + i,
			(l->n_input - i) * sizeof(l->input_alone[0]));
	}
	l->n_input -= i;
}

void lane_input_flush(struct lane *l)
{
	admit_input(l);
	if (l->n_undrained && l->n_input == 0) {
		drain_waiting(l);
		admit_input(l);
	}
	l->round++;
}

/* The peer goes: messages of it that found no record yet have nowhere to wait any more. */
void lane_input_drop(struct lane *l, const struct lane_peer *p)
{
	unsigned left = 0;

	for (unsigned i = 0; i < l->n_input; i++) {
		struct lane_flow *f = l->input_flow[i];

		if (f >= p->flows && f < p->flows + p->lanes) {
			lane_fail(l, SPL_FAIL_NO_RECORD);
			forget(l, &l->input[i], f);
			continue;
		}
		l->input[left] = l->input[i];
		l->input_alone[left] = l->input_alone[i];
		l->input_flow[left++] = f;
	}
	l->n_input = left;
}

void lane_input_message(struct lane *l, struct lane_message *m)
{
	void *buf = lane_buf(m, LANE_BUF_MESSAGE);
	struct spot_rec *r;

	if (m->kind == SPL_MSG_REPLY) {
		struct spot_reply reply = {.correlation = m->correlation,
					   .payload = m->data,
					   .payload_bytes = m->bytes,
					   .content = m->content,
					   .kind = m->error,
					   .origin = m->lane < l->sh->lanes ? SPOT_FROM_LANE
									    : SPOT_FROM_WORK,
					   .buf = buf,
					   .flow = m->lane};

		spot_reply_in(l->spots, &reply);
		return;
	}
	if (spot_recs_take(l->spots, &r, 1) == 0) {
		struct spot_out out = {.to = SPOT_FROM_LANE,
				       .kind = SPL_MSG_REPLY,
				       .error = SPL_E_CAPACITY_EXCEEDED,
				       .flow = m->lane,
				       .buf = buf,
				       .correlation = m->correlation};

		lane_fail(l, SPL_FAIL_NO_RECORD);
		spot_trace_refused(l->spots, m->kind == SPL_MSG_SPOT_REQUEST, SPL_FAIL_NO_RECORD,
				   m->correlation);
		if (m->correlation)
			lane_env.send(l, &out);
		lane_release(l, buf, 0, 0, SPOT_FROM_LANE);
		return;
	}
	r->msg.payload = m->data;
	r->msg.payload_bytes = m->bytes;
	r->buf = buf;
	r->packet = m->packet;
	r->deadline = m->deadline;
	r->flow = m->lane;
	r->charge = 0;
	r->msg.metadata = NULL;
	r->msg.metadata_bytes = 0;
	r->msg.content = m->content;
	r->kind = m->kind;
	r->origin = SPOT_FROM_LANE;
	r->msg.correlation = m->correlation;
	r->msg.source = m->source;
	r->key = &m->target.key;
	if (m->kind >= SPOT_KIND_INSTANCE_TOLD && m->kind <= SPOT_KIND_INSTANCE_REQUEST)
		r->msg.packet = (const char *)m->data + m->bytes;
	if (m->kind == SPOT_KIND_CAST) {
		const struct lane_cast *c = (const struct lane_cast *)(void *)m->data;

		r->msg.payload = c->payload;
		r->msg.payload_bytes = c->payload_bytes;
		r->msg.metadata = c->metadata;
		r->msg.metadata_bytes = c->metadata_bytes;
	}
	spot_flow_in(l->spots, r, &m->trace);
	spot_admit(l->spots, &r, 1, l->now);
}
