/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers: a REPLY finds its call by correlation, or nothing (S-COMPL-6); ended calls get their
 * callback, after everything that belonged to them is released (S-COMPL-2). The client's thread.
 */
#include "client/client.h"

#include <string.h>

static void answer_resolve(struct spl_client *c, struct call *call, const struct wire_msg *m)
{
	struct wire_route route;
	int error = m->error;

	if (error == SPL_OK && wire_route_get(&route, m->payload, m->payload_len) < 0)
		error = SPL_E_PROTOCOL_ERROR;
	if (error == SPL_E_DEADLINE_EXCEEDED) /* of the question, not of those who wait for it */
		error = SPL_E_UNAVAILABLE;
	place_resolved(c, call, error, error == SPL_OK ? &route : NULL);
}

static int result_of(const struct wire_msg *m, const struct buffer *msg)
{
	if (m->error == SPL_OK && m->content >= SPL_CONTENT_COUNT) /* S-CODEC-1 */
		return SPL_E_PROTOCOL_ERROR;
	if (m->error == SPL_OK && !msg)
		return SPL_E_INTERNAL_FAILURE; /* no memory for the answer */
	return m->error;
}

/* Decodes a REPLY. One that is malformed, but says for which call it is, ends that call. */
static bool read_reply(struct wire_msg *m, const uint8_t *data, uint32_t len)
{
	if (wire_msg_get(m, data, len) == 0)
		return m->kind == SPL_MSG_REPLY;
	if (len < WIRE_MSG_BYTES || data[0] != SPL_MSG_REPLY)
		return false;
	*m = (struct wire_msg){.kind = SPL_MSG_REPLY, .error = SPL_E_PROTOCOL_ERROR};
	m->correlation = wire_load_u64(data + WIRE_MSG_CORRELATION);
	return true;
}

void answer_message(struct spl_client *c, const uint8_t *data, uint32_t len, struct buffer *msg)
{
	struct call *call = NULL;
	struct wire_msg m;
	int result;

	c->messages_received++;
	if (!read_reply(&m, data, len)) {
		c->link.dropped++;
		goto out;
	}
	call = calls_find(&c->calls, m.correlation);
	if (!call || call->state != CALL_SENT) {
		c->late_replies++;
		goto out;
	}
	if (call->kind == CALL_RESOLVE) {
		answer_resolve(c, call, &m);
		goto out;
	}
	result = result_of(&m, msg);
	/* A stale route says so with Unavailable; the next call asks again (S-ADDR-4, S-ADDR-7). */
	if (call->kind == CALL_CLOSE || result == SPL_E_UNAVAILABLE)
		routes_drop(&c->routes, routes_find(&c->routes, &call->key));
	client_end(c, call, result, msg);
	return;
out:
	buffer_free(msg);
}

static void ref_from_wire(struct spl_spot_ref *to, const struct wire_ref *from)
{
	/* The decoder has checked that these are legal names. */
	(void)spl_name_set(&to->spot_id, from->id.p, from->id.len);
	(void)spl_name_set(&to->mesh_name, from->mesh.p, from->mesh.len);
	(void)spl_name_set(&to->node_rid, from->rid.p, from->rid.len);
	to->object_generation = from->generation;
}

static int read_created(struct spl_client_result *r, struct spl_spot_ref *ref,
			const struct wire_msg *m)
{
	struct wire_create_reply body;

	if (wire_create_reply_get(&body, m->payload, m->payload_len) < 0)
		return SPL_E_PROTOCOL_ERROR;
	r->created = (enum spl_client_created)body.state;
	r->payload = body.reply.p;
	r->payload_bytes = body.reply.len;
	if (body.state != WIRE_REJECTED) {
		ref_from_wire(ref, &body.ref);
		r->ref = ref;
	}
	return SPL_OK;
}

static int read_found(struct spl_client_result *r, struct spl_spot_ref *ref,
		      const struct wire_msg *m)
{
	struct wire_ref body;

	if (wire_find_reply_get(&body, &r->found, m->payload, m->payload_len) < 0)
		return SPL_E_PROTOCOL_ERROR;
	if (r->found) {
		ref_from_wire(ref, &body);
		r->ref = ref;
	}
	return SPL_OK;
}

/* Takes the answer of a call apart. `ref` is memory for result->ref. */
static void read_answer(struct spl_client_result *r, struct spl_spot_ref *ref,
			const struct call *call)
{
	struct wire_msg m;

	memset(r, 0, sizeof(*r));
	r->kind = call->result;
	if (!call->answer || wire_msg_get(&m, call->answer->b, call->answer->len) < 0)
		return;
	r->content = m.content;
	if (r->kind != SPL_OK)
		return;
	switch ((enum call_kind)call->kind) {
	case CALL_REQUEST:
		r->payload = m.payload;
		r->payload_bytes = m.payload_len;
		break;
	case CALL_CREATE:
		r->kind = read_created(r, ref, &m);
		break;
	case CALL_FIND:
		r->kind = read_found(r, ref, &m);
		break;
	case CALL_CLOSE:
		if (wire_close_reply_get(&r->closed, m.payload, m.payload_len) < 0)
			r->kind = SPL_E_PROTOCOL_ERROR;
		break;
	case CALL_SEND:
	case CALL_PUBLISH:
	case CALL_RESOLVE:
		break;
	}
	if (r->kind != SPL_OK)
		*r = (struct spl_client_result){.kind = r->kind};
}

unsigned answer_run(struct spl_client *c)
{
	struct spl_client_result result;
	struct spl_spot_ref ref;
	unsigned n = 0, max = c->pending; /* calls that callbacks begin come with the next pass */
	struct call call;

	while (n < max && calls_take_ended(&c->calls, &call)) {
		n++;
		c->pending--;
		if (call.fn) {
			read_answer(&result, &ref, &call);
			call.fn(c, call.id, &result, call.ctx);
		}
		buffer_free(call.answer);
	}
	return n;
}
