/* SPDX-License-Identifier: BSD-3-Clause */
/* A stage for tests of the real loop: see t_stage.h. */
#include "tests/vdev/t_stage.h"

#include <stdlib.h>

static int enter(struct t_stage_state *s)
{
	if (++s->running > s->running_max)
		s->running_max = s->running;
	return 0;
}

static int leave(struct t_stage_state *s, int rc)
{
	s->running--;
	return rc;
}

static int on_add(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_state *s = state;
	uint64_t v = 0;

	enter(s);
	if (m->payload_bytes != sizeof(v))
		return leave(s, SPL_FAIL(SPL_E_PROTOCOL_ERROR));
	memcpy(&v, m->payload, sizeof(v));
	s->count++;
	s->sum += v;
	if (m->is_request)
		spl_reply(t, SPL_CONTENT_RAW, &s->sum, sizeof(s->sum));
	return leave(s, SPL_DONE);
}

static int on_seq(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_state *s = state;
	uint64_t v = 0;

	enter(s);
	if (m->payload_bytes >= sizeof(v))
		memcpy(&v, m->payload, sizeof(v));
	if (v != s->last + 1)
		s->order_errors++;
	s->last = v;
	s->count++;
	return leave(s, SPL_DONE);
}

static int on_get(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_state *s = state;
	struct t_stage_report r;

	enter(s);
	r = (struct t_stage_report){s->count, s->sum, s->last, s->order_errors, s->running_max};
	spl_reply(t, SPL_CONTENT_RAW, &r, sizeof(r));
	return leave(s, SPL_DONE);
}

static int on_echo(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_state *s = state;

	enter(s);
	spl_reply(t, m->content, m->payload, m->payload_bytes);
	return leave(s, SPL_DONE);
}

static int on_answer(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	struct t_stage_state *s = state;

	if (r->kind != SPL_OK)
		return leave(s, SPL_FAIL(r->kind));
	spl_reply(t, r->content, r->payload, r->payload_bytes);
	return leave(s, SPL_DONE);
}

static int on_ask(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_state *s = state;
	struct spl_call *call;

	enter(s);
	if (spl_target_set(&s->other, m->payload, m->payload_bytes))
		return leave(s, SPL_FAIL(SPL_E_PROTOCOL_ERROR));
	if (spl_request(t, &s->other, spl_packet_key("get", 3), SPL_CONTENT_RAW, NULL, 0, 0,
			SPL_WAIT_HOLD, &call))
		return leave(s, SPL_FAIL(SPL_E_INVALID_OPERATION));
	if (spl_call_then(t, call, on_answer, NULL))
		return leave(s, SPL_FAIL(SPL_E_INTERNAL_FAILURE));
	return SPL_SUSPENDED;
}

static int on_fail(struct spl_turn *t, void *state, const struct spl_message *m)
{
	return SPL_FAIL(SPL_E_REJECTED);
}

static int on_silent(struct spl_turn *t, void *state, const struct spl_message *m)
{
	return SPL_DONE;
}

static int on_big(struct spl_turn *t, void *state, const struct spl_message *m)
{
	static uint8_t bytes[SPL_MESSAGE_BYTES_MAX + 1];
	uint32_t n = 0;

	if (m->payload_bytes == sizeof(n))
		memcpy(&n, m->payload, sizeof(n));
	for (uint32_t i = 0; i < n && i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	if (spl_reply(t, SPL_CONTENT_RAW, bytes, n))
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_tell(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_state *s = state;
	uint64_t one = 1;

	enter(s);
	if (spl_target_set(&s->other, m->payload, m->payload_bytes) == 0)
		spl_send(t, &s->other, spl_packet_key("add", 3), SPL_CONTENT_RAW, &one,
			 sizeof(one));
	return leave(s, SPL_DONE);
}

static int on_look(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct t_stage_look l = {.correlation = m->correlation,
				 .source = m->source,
				 .payload_bytes = m->payload_bytes,
				 .metadata_bytes = m->metadata_bytes,
				 .content = m->content,
				 .is_request = m->is_request,
				 .packet_is_look = strcmp(m->packet, "look") == 0};
	const char *key, *value;
	uint32_t pos = 0;

	if (spl_metadata_next(m, &pos, &key, &l.key_bytes, &value, &l.value_bytes) == 1) {
		memcpy(l.key, key, l.key_bytes < 4 ? l.key_bytes : 4);
		memcpy(l.value, value, l.value_bytes < 4 ? l.value_bytes : 4);
	}
	spl_reply(t, SPL_CONTENT_RAW, &l, sizeof(l));
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"add", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_add},
	{"seq", SPL_TAKES_SEND, on_seq},
	{"get", SPL_TAKES_REQUEST, on_get},
	{"echo", SPL_TAKES_REQUEST, on_echo},
	{"ask", SPL_TAKES_REQUEST, on_ask},
	{"fail", SPL_TAKES_REQUEST, on_fail},
	{"silent", SPL_TAKES_REQUEST, on_silent},
	{"big", SPL_TAKES_REQUEST, on_big},
	{"tell", SPL_TAKES_SEND, on_tell},
	{"look", SPL_TAKES_REQUEST, on_look},
};

const struct spl_stage t_stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "t",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct t_stage_state),
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
};
