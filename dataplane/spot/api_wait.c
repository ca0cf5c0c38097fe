/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: sends and publishes whose sender waits until they are admitted (S-DIR-4,5, S-LIM-5):
 * calls that the admission answers, here or in another lane. As api.c: on the lane, inside a
 * callback.
 */
#include "dataplane/spot/api.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/cast.h"
#include "dataplane/spot/queue.h"
#include "dataplane/spot/waiter.h"

#include <errno.h>
#include <limits.h>

/* The answer comes from where the message waits, at its time; the call itself ends so much later,
 * for the case that no answer comes. */
#define GUARD_MS 1000u

struct told {
	struct spl_target target;
	uint8_t kind; /* SPOT_KIND_TOLD_* */
	uint64_t packet;
	uint16_t content;
	const void *payload;
	uint32_t bytes;
	uint64_t deadline;
};

/* In this lane: a refusal is the call's result, as from elsewhere. */
static int tell_here(struct spot_lane *l, const struct told *t, struct spot_call *c)
{
	struct spot_rec *r = spot_own_record(l, t->packet, t->content, t->payload, t->bytes);

	if (!r)
		return -ENOBUFS;
	r->kind = t->kind;
	r->msg.correlation = c->correlation;
	r->deadline = t->deadline;
	r->key = &t->target.key;
	spot_admit_own(l, r, &t->target);
	return 0;
}

/* The topic of a publish is known here by its key alone. */
static const struct spl_name no_name;

static int tell(struct spot_lane *l, struct told *t, uint32_t timeout_ms, struct spl_call **call)
{
	bool own = spl_key_lane(&t->target.key, l->conf.lanes) == l->conf.lane;
	uint64_t ms = timeout_ms ? timeout_ms : l->conf.send_ms;
	struct spot_call *c;
	int rc;

	if (!call || timeout_ms > INT_MAX)
		return -EINVAL;
	if (spot_time_is_up(l))
		return -ESHUTDOWN;
	t->deadline = l->now + spot_from_ms(&l->clock, ms);
	c = spot_call_of_turn(l, own ? SPOT_FROM_SELF : SPOT_FROM_LANE, SPL_WAIT_HOLD,
			      t->deadline + spot_from_ms(&l->clock, GUARD_MS));
	if (!c)
		return -ENOBUFS;
	c->is_told = true;
	spot_count(l, SPL_C_CALLS_OPEN, (uint64_t)-1); /* that counts requests */
	rc = own ? tell_here(l, t, c)
		 : spot_send_out(l, t->kind, &t->target, t->packet, t->content, t->payload,
				 t->bytes, c->correlation, t->deadline);
	if (spot_traces_flows(l))
		spot_trace_sent(l, SPL_TK_SEND, &t->target.id,
				t->kind == SPOT_KIND_TOLD_PUBLISH ? &no_name : NULL, c->correlation,
				rc);
	return spot_call_submitted(l, c, rc, call);
}

static struct told told_of(uint8_t kind, uint64_t packet, uint16_t content, const void *payload,
			   uint32_t bytes)
{
	return (struct told){.kind = kind,
			     .packet = packet,
			     .content = content,
			     .payload = payload,
			     .bytes = bytes};
}

int spl_send_wait(struct spl_turn *turn, const struct spl_target *target, uint64_t packet_key,
		  uint16_t content, const void *payload, uint32_t bytes, uint32_t timeout_ms,
		  struct spl_call **call)
{
	struct told t = told_of(SPOT_KIND_TOLD_SEND, packet_key, content, payload, bytes);
	struct spot_lane *l = spot_lane_of(turn);
	int rc = l && target && packet_key ? spot_check_payload(l, content, payload, bytes)
					   : -EINVAL;

	if (rc)
		return rc;
	t.target = *target;
	return tell(l, &t, timeout_ms, call);
}

int spl_publish_wait(struct spl_turn *turn, const struct spl_topic *topic, uint64_t packet_key,
		     uint16_t content, const void *payload, uint32_t bytes, uint32_t timeout_ms,
		     struct spl_call **call)
{
	struct told t = told_of(SPOT_KIND_TOLD_PUBLISH, packet_key, content, payload, bytes);
	struct spot_lane *l = spot_lane_of(turn);
	int rc = spot_check_publish(l, topic, packet_key, content, payload, bytes);

	if (rc)
		return rc;
	t.target.key = topic->key;
	return tell(l, &t, timeout_ms, call);
}
