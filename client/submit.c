/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of the interface: arguments checked (S-ERR-2), a slot taken, the message encoded, and
 * how calls end but for an answer: cancelled, too late, association gone. The client's thread.
 */
#include "client/client.h"

#include <errno.h>
#include <string.h>

void client_end(struct spl_client *c, struct call *call, int result, struct buffer *answer)
{
	if (call->state == CALL_ASKING || call->state == CALL_QUEUED)
		place_leave(c, call);
	if (call->kind == CALL_RESOLVE) {
		buffer_free(answer);
		calls_drop(&c->calls, call);
		c->asking--;
	} else {
		calls_end(&c->calls, call, result, answer);
	}
}

void client_end_all(struct spl_client *c, int result)
{
	/* A question whose last asker has gone ends with him, so the order does not matter. */
	for (uint32_t i = 0; i < c->calls.max; i++) {
		struct call *call = &c->calls.slot[i];

		if (call->kind != CALL_RESOLVE && call->state != CALL_FREE &&
		    call->state != CALL_ENDED)
			client_end(c, call, result, NULL);
	}
	routes_drop_all(&c->routes);
}

void client_expire(struct spl_client *c)
{
	struct call *call;

	while ((call = calls_expired(&c->calls, c->now_ns)) != NULL) {
		if (call->kind == CALL_RESOLVE)
			place_resolved(c, call, SPL_E_UNAVAILABLE, NULL);
		else
			client_end(c, call, SPL_E_DEADLINE_EXCEEDED, NULL);
	}
}

/* A new call of the user's with room for its message. 0, -ENOBUFS, -ENOMEM, -ESHUTDOWN. */
static int begin(struct spl_client *c, enum call_kind kind, size_t bytes, uint64_t timeout_ns,
		 spl_client_fn fn, void *ctx, struct call **out)
{
	struct buffer *msg;
	struct call *call;

	if (c->is_closing)
		return -ESHUTDOWN;
	if (c->pending == c->conf.calls_max)
		return -ENOBUFS;
	msg = buffer_new(bytes);
	if (!msg)
		return -ENOMEM;
	c->now_ns = c->net.ops->now(c->net.arg);
	call = calls_add(&c->calls, kind, c->now_ns + timeout_ns);
	if (!call) {
		buffer_free(msg);
		return -ENOBUFS;
	}
	call->deadline_ns = c->now_ns + timeout_ns;
	call->fn = fn;
	call->ctx = ctx;
	call->out = msg;
	c->pending++;
	*out = call;
	return 0;
}

static int check_message(const struct spl_client *c, const struct spl_client_message *m)
{
	if (!m || m->packet == 0)
		return -EINVAL;
	if (m->content >= SPL_CONTENT_COUNT || (m->payload_bytes && !m->payload))
		return -EINVAL;
	if (m->payload_bytes > c->conf.message_max)
		return -EMSGSIZE;
	if (m->metadata_bytes && !m->metadata)
		return -EINVAL;
	if (m->metadata_bytes && wire_meta_check(m->metadata, m->metadata_bytes) < 0)
		return -EINVAL;
	return 0;
}

/* What the intent takes in the message; 0 without one. */
static uint32_t intent_bytes(const struct spl_client_message *m)
{
	if (!m->target || !m->target->instance)
		return 0;
	return 2u + m->target->id.len + (uint32_t)strlen(m->target->instance);
}

static void encode_message(const struct call *call, const struct spl_client_message *m)
{
	struct wire_msg h = {
		.kind = call->kind == CALL_SEND	     ? SPL_MSG_SPOT_SEND
			: call->kind == CALL_PUBLISH ? SPL_MSG_PUBLISH
						     : SPL_MSG_SPOT_REQUEST,
		.error = SPL_OK,
		.content = m->content,
		.meta_len = (uint16_t)m->metadata_bytes,
		.intent_len = (uint16_t)intent_bytes(m),
		.target = call->key,
		.packet = m->packet,
		.correlation = call->kind == CALL_REQUEST ? call->id : 0,
	};
	uint8_t *at = call->out->b;

	wire_msg_put(at, &h);
	at += WIRE_MSG_BYTES;
	if (h.intent_len) {
		wire_intent_put(at, h.intent_len,
				(struct pack_bytes){m->target->id.b, m->target->id.len},
				(struct pack_bytes){m->target->instance,
						    (uint32_t)strlen(m->target->instance)});
		at += h.intent_len;
	}
	if (m->metadata_bytes)
		memcpy(at, m->metadata, m->metadata_bytes);
	if (m->payload_bytes)
		memcpy(at + m->metadata_bytes, m->payload, m->payload_bytes);
}

static bool type_is_legal(const char *type)
{
	return spl_name_valid(type, strnlen(type, SPL_NAME_BYTES_MAX + 1));
}

/* Sends and requests are alike but for their end. */
static int begin_message(struct spl_client *c, enum call_kind kind,
			 const struct spl_client_message *m, uint64_t timeout_ns, spl_client_fn fn,
			 void *ctx, uint64_t *out)
{
	struct call *call;
	int err = check_message(c, m);

	if (err == 0 && (!m->target || m->target->id.len == 0 || m->topic ||
			 (m->target->instance && !type_is_legal(m->target->instance))))
		err = -EINVAL;
	if (err == 0)
		err = begin(c, kind,
			    WIRE_MSG_BYTES + intent_bytes(m) + m->metadata_bytes + m->payload_bytes,
			    timeout_ns, fn, ctx, &call);
	if (err < 0)
		return err;
	call->key = m->target->key;
	call->is_instance = m->target->instance != NULL;
	encode_message(call, m);
	if (out)
		*out = call->id;
	place_message(c, call, &m->target->id);
	return 0;
}

static bool knows_channel(const struct spl_client *c, const struct spl_topic *topic)
{
	for (uint32_t i = 0; i < c->conf.channels; i++)
		if (c->conf.channel[i] == topic->channel_key)
			return true;
	return false;
}

int spl_client_publish(struct spl_client *client, const struct spl_client_message *message,
		       spl_client_fn fn, void *ctx, uint64_t *out)
{
	struct call *call;
	int err = check_message(client, message);

	if (err == 0 && (!message->topic || message->target || message->timeout_us))
		err = -EINVAL;
	if (err == 0)
		err = begin(client, CALL_PUBLISH,
			    WIRE_MSG_BYTES + message->metadata_bytes + message->payload_bytes,
			    client->conf.send_ns, fn, ctx, &call);
	if (err < 0)
		return err;
	call->key = message->topic->key;
	encode_message(call, message);
	if (out)
		*out = call->id;
	if (knows_channel(client, message->topic))
		place_publish(client, call);
	else
		client_end(client, call, SPL_E_NOT_FOUND, NULL);
	return 0;
}

int spl_client_send(struct spl_client *client, const struct spl_client_message *message,
		    spl_client_fn fn, void *ctx, uint64_t *call)
{
	if (message && message->timeout_us != 0)
		return -EINVAL; /* an option of requests only (S-DIR-1) */
	return begin_message(client, CALL_SEND, message, client->conf.send_ns, fn, ctx, call);
}

int spl_client_request(struct spl_client *client, const struct spl_client_message *message,
		       spl_client_fn fn, void *ctx, uint64_t *call)
{
	uint64_t timeout_ns = client->conf.request_ns;

	if (!fn || !message)
		return -EINVAL;
	if (message->timeout_us)
		timeout_ns = client_timeout_ns(message->timeout_us);
	if (!timeout_ns)
		return -EINVAL;
	return begin_message(client, CALL_REQUEST, message, timeout_ns, fn, ctx, call);
}

/* The header of a control message; the body is behind it already. */
static void encode_control(struct call *call, enum spl_message_kind kind, int body)
{
	struct wire_msg h = {
		.kind = (uint8_t)kind,
		.error = SPL_OK,
		.correlation = call->id,
	};

	wire_msg_put(call->out->b, &h);
	call->out->len = WIRE_MSG_BYTES + (uint32_t)body;
}

/* Time of a control call: the configured one when `timeout_us` is 0; 0 = illegal. */
static uint64_t control_timeout(const struct spl_client *c, int64_t timeout_us)
{
	return timeout_us ? client_timeout_ns(timeout_us) : c->conf.create_ns;
}

static int check_creation(const struct spl_client_creation *n)
{
	if (!n || !n->type || (n->request_bytes && !n->request))
		return -EINVAL;
	if (!type_is_legal(n->type))
		return -EINVAL;
	if (n->id && !spl_name_valid(n->id, n->id_bytes))
		return -EINVAL;
	if (n->request_bytes > SPL_CREATE_REQUEST_BYTES_MAX)
		return -EMSGSIZE;
	return 0;
}

int spl_client_create(struct spl_client *client, const struct spl_client_creation *creation,
		      spl_client_fn fn, void *ctx, uint64_t *out)
{
	const uint64_t timeout_ns = creation ? control_timeout(client, creation->timeout_us) : 0;
	struct wire_create body = {.mode = WIRE_GET_OR_CREATE};
	uint8_t random[16];
	struct call *call;
	char minted[37];
	int err, len;

	err = fn && timeout_ns ? check_creation(creation) : -EINVAL;
	if (err < 0)
		return err;
	body.id = (struct pack_bytes){creation->id, creation->id_bytes};
	if (!creation->id) {
		client->net.ops->random(client->net.arg, random, sizeof(random));
		spl_uuid4(random, minted);
		body.mode = WIRE_CREATE;
		body.id = (struct pack_bytes){minted, 36};
	}
	body.type = (struct pack_bytes){creation->type, (uint32_t)strlen(creation->type)};
	body.request = (struct pack_bytes){creation->request, creation->request_bytes};
	body.timeout_ms = (uint32_t)(timeout_ns / 1000000);
	/* mode, operation, timeout, two names, length and request */
	len = 1 + 8 + 4 + 1 + (int)body.id.len + 1 + (int)body.type.len + 4 + (int)body.request.len;
	err = begin(client, CALL_CREATE, WIRE_MSG_BYTES + (size_t)len, timeout_ns, fn, ctx, &call);
	if (err < 0)
		return err;
	body.operation = call->id;
	len = wire_create_put(call->out->b + WIRE_MSG_BYTES, (size_t)len, &body);
	encode_control(call, SPL_MSG_CREATE, len);
	if (out)
		*out = call->id;
	place_control(client, call);
	return 0;
}

int spl_client_find(struct spl_client *client, const void *id, size_t id_bytes, int64_t timeout_us,
		    spl_client_fn fn, void *ctx, uint64_t *out)
{
	const uint64_t timeout_ns = control_timeout(client, timeout_us);
	struct call *call;
	int err, len;

	if (!fn || !timeout_ns || !spl_name_valid(id, id_bytes))
		return -EINVAL;
	err = begin(client, CALL_FIND, WIRE_MSG_BYTES + 1 + id_bytes, timeout_ns, fn, ctx, &call);
	if (err < 0)
		return err;
	len = wire_id_put(call->out->b + WIRE_MSG_BYTES, 1 + id_bytes,
			  (struct pack_bytes){id, (uint32_t)id_bytes});
	encode_control(call, SPL_MSG_FIND, len);
	if (out)
		*out = call->id;
	place_control(client, call);
	return 0;
}

int spl_client_close_spot(struct spl_client *client, const struct spl_spot_ref *ref,
			  int64_t timeout_us, spl_client_fn fn, void *ctx, uint64_t *out)
{
	const uint64_t timeout_ns = control_timeout(client, timeout_us);
	const size_t room = 8 + 3 * (1 + SPL_NAME_BYTES_MAX) + 8;
	struct wire_ref body;
	struct call *call;
	int err, len;

	if (!fn || !timeout_ns || !ref || !spl_name_valid(ref->spot_id.b, ref->spot_id.len) ||
	    !spl_name_valid(ref->mesh_name.b, ref->mesh_name.len) ||
	    !spl_name_valid(ref->node_rid.b, ref->node_rid.len) || ref->object_generation == 0 ||
	    ref->object_generation > INT64_MAX)
		return -EINVAL;
	err = begin(client, CALL_CLOSE, WIRE_MSG_BYTES + room, timeout_ns, fn, ctx, &call);
	if (err < 0)
		return err;
	body = (struct wire_ref){
		.id = {ref->spot_id.b, ref->spot_id.len},
		.generation = ref->object_generation,
		.mesh = {ref->mesh_name.b, ref->mesh_name.len},
		.rid = {ref->node_rid.b, ref->node_rid.len},
	};
	len = wire_close_put(call->out->b + WIRE_MSG_BYTES, room, call->id, &body);
	encode_control(call, SPL_MSG_CLOSE_SPOT, len);
	call->key = spl_spot_key(ref->spot_id.b, ref->spot_id.len);
	routes_drop(&client->routes, routes_find(&client->routes, &call->key));
	if (out)
		*out = call->id;
	place_control(client, call);
	return 0;
}

int spl_client_cancel(struct spl_client *client, uint64_t call)
{
	struct call *found = calls_find(&client->calls, call);

	if (!found || found->kind == CALL_RESOLVE)
		return 0;
	client_end(client, found, SPL_CANCELLED, NULL);
	return 1;
}
