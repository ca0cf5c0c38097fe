/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: creations of handlers (include/spotlane/create.h): questions to control, whose answers
 * come back as replies do. As api.c: on the lane, inside a callback.
 */
#include "dataplane/spot/api.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <errno.h>
#include <limits.h>

static int check(const struct spl_creation *c)
{
	if (!c || !c->type || !spl_name_valid(c->type, strlen(c->type)) ||
	    (c->id && !spl_name_valid(c->id, c->id_bytes)) || (c->request_bytes && !c->request) ||
	    c->timeout_ms > INT_MAX)
		return -EINVAL;
	return c->request_bytes > SPL_CREATE_REQUEST_BYTES_MAX ? -EMSGSIZE : 0;
}

/* Its own creation cannot end while it waits for it. */
static bool waits_for_itself(const struct spot_lane *l, const struct spl_creation *c)
{
	struct spl_key key;

	if (!c->id || l->turn.spot->gate.state != SPOT_S_CREATING)
		return false;
	key = spl_spot_key(c->id, c->id_bytes);
	return spl_key_equal(&key, &l->turn.spot->key);
}

int spl_create(struct spl_turn *turn, const struct spl_creation *creation, enum spl_wait wait,
	       struct spl_call **call)
{
	struct spot_lane *l = spot_lane_of(turn);
	int rc = l && call ? check(creation) : -EINVAL;
	struct spot_creation ask;
	struct spot_call *c;

	if (rc == 0)
		rc = spot_check_wait(l, wait);
	if (rc)
		return rc;
	if (waits_for_itself(l, creation))
		return -EDEADLK;
	if (spot_time_is_up(l))
		return -ESHUTDOWN;
	ask = (struct spot_creation){
		.type = {creation->type, (uint32_t)strlen(creation->type)},
		.id = {creation->id, creation->id ? (uint32_t)creation->id_bytes : 0},
		.request = {creation->request, creation->request_bytes},
		.deadline =
			l->now + spot_from_ms(&l->clock, creation->timeout_ms ? creation->timeout_ms
									      : l->conf.create_ms),
	};
	c = spot_call_of_turn(l, SPOT_FROM_AGENT, wait, ask.deadline);
	if (!c)
		return -ENOBUFS;
	ask.correlation = c->correlation;
	return spot_call_submitted(l, c, l->env.create(l->env.host, &ask), call);
}

void spot_created(struct spot_lane *l, uint64_t correlation, uint8_t kind, const void *body,
		  uint32_t bytes)
{
	struct spot_call *c = spot_call_find(l, correlation);
	struct spot_reply r = {.correlation = correlation, .kind = kind, .origin = SPOT_FROM_AGENT};
	void *mem = NULL;

	if (c && c->state == CALL_OPEN && kind == SPL_OK && bytes) {
		mem = spot_mem_take(l, bytes);
		if (mem)
			memcpy(mem, body, bytes);
		else
			r.kind = SPL_E_INTERNAL_FAILURE; /* it may be there: asking again tells */
		c->mem = mem;
		r.payload = mem;
		r.payload_bytes = mem ? bytes : 0;
	}
	spot_reply_in(l, &r);
}

int spl_created_of(const struct spl_result *result, struct spl_created *out)
{
	struct wire_create_reply body;

	if (!result || !out || result->kind != SPL_OK ||
	    wire_create_reply_get(&body, result->payload, result->payload_bytes) < 0)
		return -EINVAL;
	*out = (struct spl_created){.state = (enum spl_created_state)body.state,
				    .reply = body.reply.p,
				    .reply_bytes = body.reply.len};
	if (body.state == WIRE_REJECTED)
		return 0;
	out->generation = body.ref.generation;
	return spl_name_set(&out->id, body.ref.id.p, body.ref.id.len);
}
