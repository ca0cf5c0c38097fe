/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the stage interface (include/spotlane/stage.h): what a handler may call in its turn.
 *
 * Runs on the lane, inside a callback. A turn's handle is its number: it is compared with the turn
 * that runs on this thread and never followed, so a stale or foreign one is refused (S-TURN-8).
 * Payloads are copied to lane memory, or by the host, before return (S-MSG-5).
 */
#include "dataplane/spot/activate.h"
#include "dataplane/spot/api.h"
#include "dataplane/spot/trace.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <errno.h>
#include <limits.h>

int spot_check_payload(const struct spot_lane *l, uint16_t content, const void *payload,
		       uint32_t bytes)
{
	if (content >= SPL_CONTENT_COUNT || (bytes && !payload))
		return -EINVAL;
	return bytes > l->conf.message_max ? -EMSGSIZE : 0;
}

int spl_target_set(struct spl_target *target, const void *id, size_t len)
{
	int rc = target ? spl_name_set(&target->id, id, len) : -EINVAL;

	if (rc == 0) {
		target->key = spl_spot_key(id, len);
		target->instance = NULL;
	}
	return rc;
}

int spl_target_set_instance(struct spl_target *target, const char *type)
{
	if (!target || (type && !spl_name_valid(type, strnlen(type, SPL_NAME_BYTES_MAX + 1))))
		return -EINVAL;
	target->instance = type;
	return 0;
}

uint64_t spl_now_ns(const struct spl_turn *turn)
{
	struct spot_lane *l = spot_lane_of_any(turn);

	return l ? spot_to_ns(&l->clock, l->now) : 0;
}

const struct spl_name *spl_spot_id(const struct spl_turn *turn)
{
	struct spot_lane *l = spot_lane_of_any(turn);

	return l ? spot_name_of(spot_cold_of(l->turn.spot)) : NULL;
}

/* The creation's reply waits in its command until the Spot is accepted or rejected. */
static int reply_to_creator(struct spot_lane *l, uint16_t content, const void *payload,
			    uint32_t bytes)
{
	struct spot_call *op = spot_op_creation(l, l->turn.spot);

	if (!op || l->turn.rec->flags & REC_F_REPLIED)
		return -EINVAL;
	if (bytes > SPL_CREATE_REPLY_BYTES_MAX)
		return -EMSGSIZE;
	if (bytes) {
		op->mem = spot_mem_take(l, bytes);
		if (!op->mem)
			return -ENOBUFS;
		memcpy(op->mem, payload, bytes);
	}
	op->payload = op->mem;
	op->payload_bytes = bytes;
	op->content = content;
	l->turn.rec->flags |= REC_F_REPLIED;
	return 0;
}

/* Nobody is there: dropped (S-COMPL-7). */
static void reply_lost(struct spot_lane *l, const struct spot_rec *r)
{
	spot_count(l, SPL_C_REPLIES_LOST, 1);
	if (spot_traces_errors(l))
		spot_trace_reply_lost(l, r);
}

int spl_reply(struct spl_turn *turn, uint16_t content, const void *payload, uint32_t bytes)
{
	struct spot_lane *l = spot_lane_of(turn);
	struct spot_rec *r;
	int rc;

	if (!l)
		return -EINVAL;
	rc = spot_check_payload(l, content, payload, bytes);
	if (rc)
		return rc;
	r = l->turn.rec;
	if (r->kind == REC_CREATE)
		return reply_to_creator(l, content, payload, bytes);
	if (r->kind != SPL_MSG_SPOT_REQUEST || r->flags & REC_F_REPLIED)
		return -EINVAL;
	rc = spot_answer(l, r, SPL_OK, content, payload, bytes);
	if (rc == -ENOTCONN)
		reply_lost(l, r);
	else if (rc)
		return rc == -EMSGSIZE ? -EMSGSIZE : -ENOBUFS;
	r->flags |= REC_F_REPLIED;
	return 0;
}

struct spot_rec *spot_own_record(struct spot_lane *l, uint64_t packet, uint16_t content,
				 const void *payload, uint32_t bytes)
{
	struct spot_rec *r = spot_rec_get(l, false);
	void *mem = NULL;

	if (!r)
		return NULL;
	if (bytes) {
		mem = spot_mem_take(l, bytes);
		if (!mem) {
			spot_rec_free(l, r);
			return NULL;
		}
		memcpy(mem, payload, bytes);
	}
	memset(r, 0, sizeof(*r));
	r->kind = SPL_MSG_SPOT_SEND;
	r->origin = SPOT_FROM_SELF;
	r->packet = packet;
	r->msg.content = content;
	r->msg.payload = mem;
	r->mem = mem;
	r->msg.payload_bytes = bytes;
	r->msg.source = spot_cold_of(l->turn.spot)->object_generation | UINT64_C(1) << 63;
	if (spot_traces_flows(l))
		spot_flow_pass(l, l->turn.rec, r);
	return r;
}

static bool is_self(const struct spot_lane *l, const struct spl_target *target)
{
	return spl_key_equal(&l->turn.spot->key, &target->key);
}

/* What a refusal means to a sender of this lane. */
static int refused(const struct spot *s, enum spl_message_fail why)
{
	switch ((int)why) {
	case SPL_FAIL_WAITERS_FULL:
		return -ETIMEDOUT;
	case SPL_FAIL_QUEUE_FULL:
		return -EAGAIN;
	case SPL_FAIL_TYPE_MISMATCH:
		return -EPERM;
	case SPL_FAIL_NO_RECORD:
		return -ENOBUFS;
	case SPL_FAIL_MALFORMED:
		return -EINVAL;
	case SPL_FAIL_NOT_READY:
		return s->gate.state == SPOT_S_CLOSING ? -ESHUTDOWN : -ENOENT;
	default:
		return -ESHUTDOWN;
	}
}

enum spl_message_fail spot_own_instance(struct spot_lane *l, struct spot *s, struct spot_rec *r,
					const struct spl_target *target)
{
	const struct spot_intent intent = {
		{target->id.b, target->id.len},
		{target->instance, (uint32_t)strlen(target->instance)},
	};

	return spot_instance_in(l, s, r, &target->key, &intent, spot_closed(l, l->now));
}

static int send_own(struct spot_lane *l, const struct spl_target *target, uint64_t packet,
		    uint16_t content, const void *payload, uint32_t bytes)
{
	struct spot *s = is_self(l, target) ? l->turn.spot : table_find(&l->table, &target->key);
	enum spl_message_fail why;
	struct spot_rec *r;

	if (!s && !target->instance)
		return -ENOENT;
	r = spot_own_record(l, packet, content, payload, bytes);
	if (!r)
		return -ENOBUFS;
	why = target->instance ? spot_own_instance(l, s, r, target) : spot_enqueue(l, s, r, l->now);
	if (why == SPL_FAIL_COUNT) {
		spot_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
		spot_count(l, SPL_C_MESSAGES_QUEUED, 1);
		return 0;
	}
	spot_rec_end(l, r);
	return refused(s, why);
}

static uint8_t instance_kind(uint8_t kind)
{
	return kind == SPL_MSG_SPOT_SEND     ? SPOT_KIND_INSTANCE_SEND
	       : kind == SPOT_KIND_TOLD_SEND ? SPOT_KIND_INSTANCE_TOLD
					     : SPOT_KIND_INSTANCE_REQUEST;
}

int spot_send_out(struct spot_lane *l, uint8_t kind, const struct spl_target *target,
		  uint64_t packet, uint16_t content, const void *payload, uint32_t bytes,
		  uint64_t correlation, uint64_t deadline)
{
	struct spot_out out = {
		.to = SPOT_FROM_LANE,
		.kind = target->instance ? instance_kind(kind) : kind,
		.error = SPL_OK,
		.content = content,
		.payload = payload,
		.payload_bytes = bytes,
		.flow = spl_key_lane(&target->key, l->conf.lanes),
		.correlation = correlation,
		.deadline = deadline,
		.packet = packet,
		.source = spot_cold_of(l->turn.spot)->object_generation | UINT64_C(1) << 63,
		.target = target,
		.trace = spot_flow_out(l, l->turn.rec),
	};

	return l->env.send(l->env.host, &out);
}

static bool is_own_lane(const struct spot_lane *l, const struct spl_target *target)
{
	return spl_key_lane(&target->key, l->conf.lanes) == l->conf.lane;
}

int spl_send(struct spl_turn *turn, const struct spl_target *target, uint64_t packet_key,
	     uint16_t content, const void *payload, uint32_t bytes)
{
	struct spot_lane *l = spot_lane_of(turn);
	int rc;

	if (!l || !target || !packet_key)
		return -EINVAL;
	rc = spot_check_payload(l, content, payload, bytes);
	if (rc)
		return rc;
	if (is_own_lane(l, target))
		rc = send_own(l, target, packet_key, content, payload, bytes);
	else
		rc = spot_send_out(l, SPL_MSG_SPOT_SEND, target, packet_key, content, payload,
				   bytes, 0, 0);
	if (spot_traces_flows(l))
		spot_trace_sent(l, SPL_TK_SEND, &target->id, NULL, 0, rc);
	if (is_own_lane(l, target))
		return rc;
	if (rc == 0 || rc == -EMSGSIZE || rc == -ETIMEDOUT)
		return rc;
	return rc == -ENOTCONN ? -ESHUTDOWN : -ENOBUFS;
}

/* Hands a registered request to a Spot of this lane; a refusal ends the call at once, and the
 * continuation still runs in the turn only. */
static int request_own(struct spot_lane *l, struct spot_call *c, const struct spl_target *target,
		       uint64_t packet, uint16_t content, const void *payload, uint32_t bytes,
		       uint64_t deadline)
{
	struct spot *s = table_find(&l->table, &target->key);
	struct spot_rec *r = spot_own_record(l, packet, content, payload, bytes);
	enum spl_message_fail why = SPL_FAIL_NO_SPOT;

	if (!r)
		return -ENOBUFS;
	r->kind = SPL_MSG_SPOT_REQUEST;
	r->msg.correlation = c->correlation;
	r->deadline = deadline;
	spot_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	if (target->instance)
		why = spot_own_instance(l, s, r, target);
	else if (s)
		why = spot_enqueue(l, s, r, l->now);
	else if (l->sealed)
		why = SPL_FAIL_SHUTDOWN;
	if (why == SPL_FAIL_COUNT)
		spot_count(l, SPL_C_MESSAGES_QUEUED, 1);
	else
		spot_refuse(l, r, &target->key, why);
	return 0;
}

int spot_check_wait(const struct spot_lane *l, enum spl_wait wait)
{
	uint8_t kind = l->turn.rec->kind;

	if (wait == SPL_WAIT_HOLD)
		return 0;
	if (wait != SPL_WAIT_YIELD)
		return -EINVAL;
	if (!spot_stage_of(l, l->turn.spot)->may_yield || kind == REC_CREATE ||
	    kind == REC_INITIALIZE || kind == REC_CLOSING)
		return -EPERM;
	return 0;
}

struct spot_call *spot_call_of_turn(struct spot_lane *l, uint8_t origin, enum spl_wait wait,
				    uint64_t deadline)
{
	struct spot_rec *r = l->turn.rec;
	struct spot_call *c =
		r->calls_count < SPOT_TURN_CALLS ? spot_call_start(l, origin, deadline) : NULL;

	if (!c)
		return NULL;
	c->spot = spot_index(l, l->turn.spot);
	c->rec = spot_rec_index(l, r);
	c->epoch = r->epoch;
	c->wait = (uint8_t)wait;
	return c;
}

struct spl_call *spot_call_keep(struct spot_lane *l, struct spot_call *c)
{
	struct spot_rec *r = l->turn.rec;

	c->next = r->calls;
	r->calls = spot_call_index(l, c);
	r->calls_count++;
	return (struct spl_call *)(uintptr_t)c->correlation;
}

int spot_call_submitted(struct spot_lane *l, struct spot_call *c, int rc, struct spl_call **call)
{
	if (rc) {
		spot_call_drop(l, c);
		return rc == -EMSGSIZE || rc == -ETIMEDOUT ? rc : -ENOBUFS;
	}
	*call = spot_call_keep(l, c);
	return 0;
}

int spl_request(struct spl_turn *turn, const struct spl_target *target, uint64_t packet_key,
		uint16_t content, const void *payload, uint32_t bytes, uint32_t timeout_ms,
		enum spl_wait wait, struct spl_call **call)
{
	struct spot_lane *l = spot_lane_of(turn);
	bool own;
	struct spot_call *c;
	uint64_t deadline;
	int rc;

	if (!l || !target || !packet_key || !call || timeout_ms > INT_MAX)
		return -EINVAL;
	rc = spot_check_payload(l, content, payload, bytes);
	if (rc == 0)
		rc = spot_check_wait(l, wait);
	if (rc)
		return rc;
	if (wait == SPL_WAIT_HOLD && is_self(l, target) && !(l->turn.rec->flags & REC_F_OWN))
		return -EDEADLK;
	if (spot_time_is_up(l))
		return -ESHUTDOWN;
	own = is_own_lane(l, target);
	deadline = spot_call_deadline(l, timeout_ms);
	c = spot_call_of_turn(l, own ? SPOT_FROM_SELF : SPOT_FROM_LANE, wait, deadline);
	if (!c)
		return -ENOBUFS;
	rc = own ? request_own(l, c, target, packet_key, content, payload, bytes, deadline)
		 : spot_send_out(l, SPL_MSG_SPOT_REQUEST, target, packet_key, content, payload,
				 bytes, c->correlation, deadline);
	if (spot_traces_flows(l))
		spot_trace_sent(l, SPL_TK_REQUEST, &target->id, NULL, c->correlation, rc);
	return spot_call_submitted(l, c, rc, call);
}

int spl_call_then(struct spl_turn *turn, struct spl_call *call, spl_result_fn fn, void *ctx)
{
	struct spot_lane *l = spot_lane_of(turn);
	struct spot_call *c;

	if (!l || !fn)
		return -EINVAL;
	c = spot_call_find(l, (uint64_t)(uintptr_t)call);
	if (!c || c->epoch != l->turn.epoch || c->fn || l->turn.rec->waited)
		return -EINVAL;
	c->fn = fn;
	c->ctx = ctx;
	l->turn.rec->waited = spot_call_index(l, c);
	return 0;
}

int spl_call_cancel(struct spl_turn *turn, struct spl_call *call)
{
	struct spot_lane *l = spot_lane_of(turn);
	struct spot_call *c;

	if (!l || !call)
		return -EINVAL;
	c = spot_call_find(l, (uint64_t)(uintptr_t)call);
	if (!c)
		return 0; /* its turn has ended, and the call with it */
	if (c->spot != spot_index(l, l->turn.spot))
		return -EINVAL;
	if (c->state != CALL_OPEN || (c->is_told && c->origin == SPOT_FROM_LANE))
		return 0; /* a send in another lane may be admitted at this very moment */
	spot_count(l, SPL_C_CALLS_CANCELLED, 1);
	spot_call_end(l, c, SPL_CANCELLED);
	return 1;
}

int spl_close_self(struct spl_turn *turn)
{
	struct spot_lane *l = spot_lane_of(turn);
	struct spot *s;

	if (!l || l->turn.rec->kind == REC_CREATE || l->turn.rec->kind == REC_INITIALIZE ||
	    l->turn.rec->kind == REC_CLOSING)
		return -EINVAL;
	s = l->turn.spot;
	if (s->gate.state == SPOT_S_CLOSING || s->gate.flags & SPOT_F_ARMED ||
	    l->turn.rec->flags & REC_F_CLOSES)
		return -EALREADY;
	l->turn.rec->flags |= REC_F_CLOSES;
	return 0;
}

int spl_metadata_next(const struct spl_message *msg, uint32_t *pos, const char **key,
		      uint32_t *key_bytes, const char **value, uint32_t *value_bytes)
{
	struct pack_bytes k, v;

	if (!msg || !msg->metadata ||
	    wire_meta_next(msg->metadata, msg->metadata_bytes, pos, &k, &v) == 0)
		return 0;
	*key = (const char *)k.p;
	*key_bytes = k.len;
	*value = (const char *)v.p;
	*value_bytes = v.len;
	return 1;
}
