/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see trace.h. Writes the lane's ring; formatting is the readers'. */
#include "dataplane/spot/trace.h"

#include <errno.h>
#include <string.h>

/* ---- flows ---- */

struct spot_flow {
	struct spl_flow_id id;
	uint32_t era; /* of the lane's tracing when it was set: others are of earlier records */
	uint32_t spare;
};

_Static_assert(sizeof(struct spot_flow) == SPOT_FLOW_BYTES, "spot_region_bytes() knows it");

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t wall_ns(const struct spot_lane *l)
{
	return l->trace.wall_ns + spot_to_ns(&l->clock, l->now);
}

/* UUIDv7: 48 bits of milliseconds, and random ones that no other lane or call has. */
static struct spl_flow_id new_flow(struct spot_lane *l, enum spl_trace_origin origin)
{
	uint64_t n = ++l->trace.serial << 8 | l->conf.lane;
	uint64_t a = mix(l->conf.secret[0] ^ n), b = mix(l->conf.secret[1] ^ a);

	return (struct spl_flow_id){
		.hi = wall_ns(l) / 1000000 << 16 | 0x7000 | (b & 0xfff),
		.lo = UINT64_C(1) << 63 | a >> 2,
		.origin = origin,
	};
}

static struct spot_flow *flow_at(const struct spot_lane *l, const struct spot_rec *r)
{
	return &((struct spot_flow *)l->trace.flows)[spot_rec_index(l, r)];
}

static void set_flow(struct spot_lane *l, const struct spot_rec *r, const struct spl_flow_id *id)
{
	*flow_at(l, r) = (struct spot_flow){.id = *id, .era = l->trace.era};
}

void spot_flow_begin(struct spot_lane *l, const struct spot_rec *r, enum spl_trace_origin origin)
{
	struct spl_flow_id id = new_flow(l, origin);

	set_flow(l, r, &id);
}

const struct spl_flow_id *spot_flow_of(struct spot_lane *l, const struct spot_rec *r,
				       enum spl_trace_origin origin)
{
	struct spot_flow *f = flow_at(l, r);

	if (f->era != l->trace.era)
		spot_flow_begin(l, r, origin);
	return &f->id;
}

void spot_flow_pass(struct spot_lane *l, const struct spot_rec *from, const struct spot_rec *to)
{
	set_flow(l, to, spot_flow_of(l, from, SPL_TG_APPLICATION));
}

struct spl_flow_id spot_flow_out(struct spot_lane *l, const struct spot_rec *r)
{
	static const struct spl_flow_id none;

	return spot_traces_flows(l) ? *spot_flow_of(l, r, SPL_TG_APPLICATION) : none;
}

void spot_flow_in(struct spot_lane *l, const struct spot_rec *r, const struct spl_flow_id *id)
{
	if (!spot_traces_flows(l))
		return;
	if (id->origin != SPL_TG_NONE)
		set_flow(l, r, id);
	else
		spot_flow_begin(l, r, SPL_TG_INBOUND);
}

/* By a hash of the id, so that all of a flow is in or out, on every lane. */
static bool is_sampled(const struct spot_lane *l, const struct spl_flow_id *id)
{
	return mix(id->hi ^ id->lo) >> 32 < l->trace.share;
}

void spot_lane_trace(struct spot_lane *l, uint64_t word, uint64_t now, uint64_t now_wall_ns)
{
	uint8_t level = (uint8_t)(word >> 56);

	if (!l->trace.ring)
		return;
	/* What was recorded before is no one's flow now. */
	if (level >= SPL_TL_NORMAL && l->trace.level < SPL_TL_NORMAL)
		l->trace.era++;
	l->trace.level = level;
	l->trace.share = word & ((UINT64_C(1) << 56) - 1);
	l->trace.wall_ns = now_wall_ns - spot_to_ns(&l->clock, now);
}

/* ---- the ring ---- */

/* What a trace point knows. */
struct note {
	enum spl_trace_name name;
	enum spl_trace_phase phase;
	enum spl_trace_surface surface;
	enum spl_trace_kind kind;
	enum spl_trace_outcome outcome;
	enum spl_trace_reason reason;
	enum spl_trace_action action;
	uint64_t correlation;
	const struct spl_flow_id *flow;
	const struct spl_name *id, *topic, *timer;
	const char *packet;
	const struct spot_stage *stage;
};

static uint8_t put_name(char *to, const struct spl_name *n)
{
	if (!n)
		return 0;
	memcpy(to, n->b, n->len);
	return n->len;
}

static void put(struct spot_lane *l, const struct note *n)
{
	struct spl_trace_ring *ring = l->trace.ring;
	uint64_t i = ring->written;
	struct spl_trace_record *t = &ring->record[i % SPL_TRACE_ENTRIES];

	__atomic_store_n(&t->seq, 2 * i + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* to the acquire of a reader's second look */
	t->time_ns = wall_ns(l);
	t->flow = n->flow ? *n->flow : (struct spl_flow_id){0, 0, SPL_TG_NONE};
	t->correlation = n->correlation;
	t->name = (uint8_t)n->name;
	t->phase = (uint8_t)n->phase;
	t->surface = (uint8_t)n->surface;
	t->kind = (uint8_t)n->kind;
	t->outcome = (uint8_t)n->outcome;
	t->reason = (uint8_t)n->reason;
	t->action = (uint8_t)n->action;
	t->stage = n->stage ? (uint16_t)(n->stage->index + 1) : 0;
	t->id_len = put_name(t->id, n->id);
	t->topic_len = put_name(t->topic, n->topic);
	t->packet_len = put_name(t->packet, n->timer);
	if (!n->timer && n->packet) {
		t->packet_len = (uint8_t)strnlen(n->packet, sizeof(t->packet));
		memcpy(t->packet, n->packet, t->packet_len);
	}
	__atomic_store_n(&t->seq, 2 * i + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->written, i + 1, __ATOMIC_RELEASE);
}

static void put_sampled(struct spot_lane *l, const struct note *n)
{
	if (is_sampled(l, n->flow))
		put(l, n);
}

/* ---- what records tell ---- */

static bool is_publish(const struct spot_rec *r)
{
	return r->kind == SPL_MSG_PUBLISH || r->kind == SPOT_KIND_CAST || r->kind == REC_CAST ||
	       r->kind == SPOT_KIND_TOLD_PUBLISH;
}

/* With words of its own until it is admitted: told, or with Instance intent. */
static bool is_special(const struct spot_rec *r)
{
	return r->kind == SPOT_KIND_TOLD_SEND || r->kind == SPOT_KIND_TOLD_PUBLISH ||
	       (r->kind >= SPOT_KIND_INSTANCE_TOLD && r->kind <= SPOT_KIND_INSTANCE_REQUEST);
}

static enum spl_trace_kind kind_of(const struct spot_rec *r)
{
	if (r->kind == SPL_MSG_SPOT_REQUEST || r->kind == SPOT_KIND_INSTANCE_REQUEST)
		return SPL_TK_REQUEST;
	return r->kind == SPL_MSG_SPOT_SEND || is_publish(r) || is_special(r) ? SPL_TK_SEND
									      : SPL_TK_CONTROL;
}

static enum spl_trace_origin origin_of(const struct spot_rec *r)
{
	if (r->kind == REC_TICK)
		return SPL_TG_TIMER;
	return r->kind >= REC_CREATE && r->kind <= REC_NOTICE ? SPL_TG_LIFECYCLE : SPL_TG_INBOUND;
}

static enum spl_trace_surface surface_of(const struct spot_lane *l, const struct spot *s,
					 const struct spot_rec *r)
{
	if (is_publish(r))
		return SPL_TS_CHANNEL;
	return s && spot_stage_of(l, s)->desc->kind == SPL_KIND_INSTANCE ? SPL_TS_INSTANCE_SPOT
									 : SPL_TS_SPOT;
}

/* All that is known of a record, of a Spot or of none. */
static struct note note_of(struct spot_lane *l, struct spot *s, const struct spot_rec *r)
{
	struct note n = {
		.surface = surface_of(l, s, r),
		.kind = kind_of(r),
		.id = s ? spot_name_of(spot_cold_of(s)) : NULL,
		.stage = s ? spot_stage_of(l, s) : NULL,
	};

	if (r->kind == REC_TICK) {
		n.timer = r->tick.name;
	} else if (s && r->kind == SPL_MSG_PUBLISH && r->origin == SPOT_FROM_CAST) {
		n.packet = r->cast->msg.packet;
	} else if (s && r->kind < REC_CREATE) {
		n.correlation = r->msg.correlation;
		n.packet = r->msg.packet;
	} else if (r->kind < REC_CREATE || is_special(r)) {
		n.correlation = r->msg.correlation;
	}
	if (spot_traces_flows(l))
		n.flow = spot_flow_of(l, r, origin_of(r));
	return n;
}

/* ---- NORMAL and DETAILED ---- */

void spot_trace_received(struct spot_lane *l, const struct spot_rec *r)
{
	struct note n;

	if (r->origin != SPOT_FROM_LANE) /* that one has brought its flow: spot_flow_in() */
		spot_flow_begin(l, r, SPL_TG_INBOUND);
	n = note_of(l, NULL, r);
	n.phase = SPL_TP_RECEIVED;
	put_sampled(l, &n);
}

void spot_trace_admitted(struct spot_lane *l, const struct spot_rec *r, const struct spl_key *key)
{
	struct spot *s = table_find(&l->table, key);
	struct note n;

	/* Or it waits: for room, or for its Instance Spot. */
	if (l->trace.level < SPL_TL_DETAILED || !s || s->gate.state != SPOT_S_READY ||
	    (r->origin != SPOT_FROM_LINK && r->waits_for))
		return;
	n = note_of(l, s, r);
	n.phase = SPL_TP_ADMITTED;
	n.packet = NULL; /* its handler is looked for when its turn comes */
	put_sampled(l, &n);
}

void spot_trace_dispatched(struct spot_lane *l, struct spot *s, const struct spot_rec *r)
{
	struct note n;

	if (l->trace.level < SPL_TL_DETAILED)
		return;
	n = note_of(l, s, r);
	n.phase = SPL_TP_DISPATCHED;
	put_sampled(l, &n);
}

void spot_trace_completed(struct spot_lane *l, struct spot *s, const struct spot_rec *r)
{
	struct note n;

	if (is_publish(r))
		return; /* nobody counts the targets of a publish (S-MCAST-8) */
	n = note_of(l, s, r);
	n.phase = SPL_TP_COMPLETED;
	put_sampled(l, &n);
}

void spot_trace_replied(struct spot_lane *l, const struct spot_rec *r, uint8_t error)
{
	struct note n = note_of(l, NULL, r);

	n.phase = SPL_TP_REPLIED;
	n.kind = error == SPL_OK ? SPL_TK_RESPONSE : SPL_TK_ERROR;
	n.outcome = error == SPL_OK ? SPL_TO_SUCCEEDED : SPL_TO_FAILED;
	put_sampled(l, &n);
}

void spot_trace_reply_in(struct spot_lane *l, const struct spot_call *c, uint8_t error)
{
	struct note n = note_of(l, spot_at(l, c->spot), &l->recs[c->rec]);

	n.phase = SPL_TP_REPLY_RECEIVED;
	n.surface = SPL_TS_SPOT;
	n.kind = error == SPL_OK ? SPL_TK_RESPONSE : SPL_TK_ERROR;
	n.outcome = error == SPL_OK ? SPL_TO_SUCCEEDED : SPL_TO_FAILED;
	n.correlation = c->correlation;
	n.packet = NULL;
	n.timer = NULL;
	put_sampled(l, &n);
}

void spot_trace_sent(struct spot_lane *l, enum spl_trace_kind kind, const struct spl_name *id,
		     const struct spl_name *topic, uint64_t correlation, int rc)
{
	struct note n = {
		.surface = topic ? SPL_TS_CHANNEL : SPL_TS_SPOT,
		.kind = kind,
		.flow = spot_flow_of(l, l->turn.rec, SPL_TG_APPLICATION),
		.id = topic ? NULL : id,
		.topic = topic,
		.correlation = correlation,
	};

	if (rc == 0) {
		n.phase = SPL_TP_SENT;
		put_sampled(l, &n);
	} else if (rc == -EAGAIN || rc == -ENOBUFS || rc == -ETIMEDOUT) {
		n.phase = SPL_TP_BACKPRESSURED;
		n.outcome = SPL_TO_BACKPRESSURED;
		n.reason = SPL_TR_BACKPRESSURE;
		put(l, &n);
	}
}

/* ---- ERRORS ---- */

/* What a message ended by, in the words of the trace. A one-way message of which nothing was wrong
 * is dropped; everything else is an error. */
static const struct {
	enum spl_trace_reason error, drop; /* only drop NONE: an error always */
	enum spl_trace_outcome outcome;
} ends[SPL_FAIL_COUNT] = {
	[SPL_FAIL_MALFORMED] = {SPL_TR_INVALID_FRAME, SPL_TR_NONE, SPL_TO_FAILED},
	[SPL_FAIL_NO_SPOT] = {SPL_TR_STALE_TARGET, SPL_TR_STALE_TARGET, SPL_TO_DROPPED},
	[SPL_FAIL_NOT_READY] = {SPL_TR_STALE_TARGET, SPL_TR_TARGET_CLOSED, SPL_TO_DROPPED},
	[SPL_FAIL_QUEUE_FULL] = {SPL_TR_BACKPRESSURE, SPL_TR_BACKPRESSURE, SPL_TO_DROPPED},
	[SPL_FAIL_NO_HANDLER] = {SPL_TR_NO_HANDLER, SPL_TR_NONE, SPL_TO_FAILED},
	[SPL_FAIL_CONTENT_TYPE] = {SPL_TR_DECODE_ERROR, SPL_TR_NONE, SPL_TO_FAILED},
	[SPL_FAIL_EXPIRED] = {SPL_TR_NONE, SPL_TR_NONE, SPL_TO_CANCELLED}, /* no word for it */
	[SPL_FAIL_HANDLER] = {SPL_TR_HANDLER_EXCEPTION, SPL_TR_NONE, SPL_TO_FAILED},
	[SPL_FAIL_FENCED] = {SPL_TR_STALE_TARGET, SPL_TR_LOCATION_UNAVAILABLE, SPL_TO_DROPPED},
	[SPL_FAIL_CLOSED] = {SPL_TR_STALE_TARGET, SPL_TR_TARGET_CLOSED, SPL_TO_DROPPED},
	[SPL_FAIL_SHUTDOWN] = {SPL_TR_SHUTDOWN, SPL_TR_SHUTDOWN, SPL_TO_SHUTDOWN},
	[SPL_FAIL_NO_REPLY_ROUTE] = {SPL_TR_REPLY_PATH_MISSING, SPL_TR_NONE, SPL_TO_FAILED},
	[SPL_FAIL_NO_CALL] = {SPL_TR_UNEXPECTED_REPLY, SPL_TR_NONE, SPL_TO_FAILED},
	[SPL_FAIL_NO_RECORD] = {SPL_TR_BACKPRESSURE, SPL_TR_BACKPRESSURE, SPL_TO_DROPPED},
	[SPL_FAIL_WAITERS_FULL] = {SPL_TR_BACKPRESSURE, SPL_TR_BACKPRESSURE, SPL_TO_DROPPED},
	[SPL_FAIL_INSTANCE_SPOT] = {SPL_TR_STALE_TARGET, SPL_TR_ACTIVATION_REJECTED,
				    SPL_TO_DROPPED},
	[SPL_FAIL_TYPE_MISMATCH] = {SPL_TR_STALE_TARGET, SPL_TR_STALE_TARGET, SPL_TO_DROPPED},
	[SPL_FAIL_UNKNOWN_KIND] = {SPL_TR_INVALID_FRAME, SPL_TR_NONE, SPL_TO_FAILED},
};

static void put_end(struct spot_lane *l, struct note *n, enum spl_message_fail why)
{
	bool faulty = ends[why].drop == SPL_TR_NONE && ends[why].error != SPL_TR_NONE;

	if (n->kind == SPL_TK_REQUEST || faulty) {
		n->name = SPL_TN_ERROR;
		n->outcome = SPL_TO_FAILED;
		n->reason = ends[why].error;
		n->action = n->kind == SPL_TK_REQUEST ? SPL_TA_REPLY_ERROR : SPL_TA_DROP;
	} else {
		n->phase = SPL_TP_DROPPED;
		n->outcome = ends[why].outcome;
		n->reason = ends[why].drop;
	}
	put(l, n);
}

void spot_trace_failed(struct spot_lane *l, struct spot *s, const struct spot_rec *r,
		       enum spl_message_fail why)
{
	struct note n = note_of(l, s, r);

	/* Only msg_complete() has set it. */
	if (why != SPL_FAIL_HANDLER)
		n.packet = NULL;
	put_end(l, &n, why);
}

void spot_trace_refused(struct spot_lane *l, bool is_request, enum spl_message_fail why,
			uint64_t correlation)
{
	struct note n = {
		.surface = SPL_TS_NODE,
		.kind = is_request ? SPL_TK_REQUEST : SPL_TK_SEND,
		.correlation = correlation,
	};

	if (spot_traces_errors(l))
		put_end(l, &n, why);
}

static void put_error(struct spot_lane *l, struct note *n, enum spl_trace_reason reason)
{
	n->name = SPL_TN_ERROR;
	n->phase = SPL_TP_NONE;
	n->outcome = SPL_TO_FAILED;
	n->reason = reason;
	n->action = SPL_TA_DROP;
	put(l, n);
}

void spot_trace_callback_failed(struct spot_lane *l, struct spot *s, const struct spot_rec *r,
				const struct spl_name *name)
{
	struct note n = note_of(l, s, r);

	n.timer = name;
	put_error(l, &n, SPL_TR_HANDLER_EXCEPTION);
}

void spot_trace_reply_lost(struct spot_lane *l, const struct spot_rec *r)
{
	struct note n = note_of(l, NULL, r);

	n.kind = SPL_TK_RESPONSE;
	put_error(l, &n, SPL_TR_REPLY_PATH_MISSING);
}

void spot_trace_reply_unexpected(struct spot_lane *l, uint64_t correlation)
{
	struct note n = {
		.surface = SPL_TS_SPOT, .kind = SPL_TK_RESPONSE, .correlation = correlation};

	put_error(l, &n, SPL_TR_UNEXPECTED_REPLY);
}
