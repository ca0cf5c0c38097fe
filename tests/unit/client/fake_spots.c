/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake node's authority and handlers. */
#include "tests/unit/client/fake_node.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

static struct fake_spot *by_id(struct fake *f, struct pack_bytes id)
{
	for (unsigned i = 0; i < FAKE_SPOTS; i++) {
		struct fake_spot *s = &f->spot[i];

		if (s->id.len == id.len && memcmp(s->id.b, id.p, id.len) == 0)
			return s;
	}
	return NULL;
}

static struct fake_spot *by_key(struct fake *f, const struct spl_key *key)
{
	for (unsigned i = 0; i < FAKE_SPOTS; i++) {
		if (f->spot[i].id.len && spl_key_equal(&f->spot[i].key, key))
			return &f->spot[i];
	}
	return NULL;
}

static struct fake_spot *new_spot(struct fake *f, struct pack_bytes id)
{
	struct fake_spot *s = by_id(f, id);

	for (unsigned i = 0; i < FAKE_SPOTS && !s; i++)
		s = f->spot[i].id.len ? NULL : &f->spot[i];
	CU_ASSERT_FATAL(s != NULL);
	spl_name_set(&s->id, id.p, id.len);
	s->key = spl_spot_key(id.p, id.len);
	s->state = FAKE_READY;
	s->is_here = true;
	s->generation = ++f->generation;
	return s;
}

struct fake_spot *fake_spot(struct fake *f, const char *id)
{
	return new_spot(f, (struct pack_bytes){id, (uint32_t)strlen(id)});
}

/* A REPLY on its way: at `due_ns` the lane sends it. */
static void reply_at(struct fake *f, uint32_t lane, const struct wire_msg *to, int error,
		     uint16_t content, const void *body, uint32_t bytes, uint64_t due_ns)
{
	struct wire_msg h = {
		.kind = SPL_MSG_REPLY,
		.error = (uint8_t)error,
		.content = content,
		.correlation = to->correlation,
	};
	struct fake_reply *r = f->reply;

	while (r->due_ns)
		r++;
	CU_ASSERT_FATAL(r < f->reply + FAKE_HELD);
	f->replies++;
	if (f->replies > f->most_replies)
		f->most_replies = f->replies;
	r->due_ns = due_ns;
	r->lane = lane;
	r->len = WIRE_MSG_BYTES + bytes;
	r->b = malloc(r->len);
	CU_ASSERT_FATAL(r->b != NULL);
	wire_msg_put(r->b, &h);
	if (bytes)
		memcpy(r->b + WIRE_MSG_BYTES, body, bytes);
}

static struct wire_ref ref_of(const struct fake *f, const struct fake_spot *s)
{
	return (struct wire_ref){
		.id = {s->id.b, s->id.len},
		.generation = s->generation,
		.mesh = {f->mesh.b, f->mesh.len},
		.rid = {f->rid.b, f->rid.len},
	};
}

static int answer_resolve(struct fake *f, const struct wire_msg *m, uint8_t *body, size_t cap)
{
	struct wire_route r = {.tag = WIRE_ROUTE_NONE};
	struct fake_spot *s;
	struct pack_bytes id;

	CU_ASSERT_EQUAL_FATAL(wire_id_get(&id, m->payload, m->payload_len), 0);
	f->resolves++;
	s = by_id(f, id);
	if (s && s->state == FAKE_CREATING)
		r.tag = WIRE_ROUTE_NOT_READY;
	if (s && s->state == FAKE_READY) {
		r = (struct wire_route){
			.tag = WIRE_ROUTE_READY,
			.lanes = FAKE_LANES,
			.valid_ms = f->valid_ms,
			.lifecycle = f->route_lifecycle ? f->route_lifecycle : f->lifecycle,
			.generation = s->generation,
			.rid = {f->rid.b, f->rid.len},
		};
	}
	return wire_route_put(body, cap, &r);
}

static void note_operation(struct fake *f, uint64_t operation)
{
	if (f->creates + f->closes < FAKE_OPERATIONS)
		f->operation[f->creates + f->closes] = operation;
}

static int answer_create(struct fake *f, const struct wire_msg *m, uint8_t *body, size_t cap,
			 int *error)
{
	struct wire_create_reply r = {.state = WIRE_EXISTING};
	struct wire_create q;
	struct fake_spot *s;

	CU_ASSERT_EQUAL_FATAL(wire_create_get(&q, m->payload, m->payload_len), 0);
	CU_ASSERT(q.operation != 0 && q.timeout_ms != 0);
	note_operation(f, q.operation);
	f->creates++;
	s = by_id(f, q.id);
	if (s && q.mode == WIRE_CREATE) {
		*error = SPL_E_ALREADY_EXISTS;
		return 0;
	}
	if (!s || s->state == FAKE_MISSING) {
		r.state = (uint8_t)f->create_state;
		r.reply = q.request;
		s = r.state == WIRE_REJECTED ? NULL : new_spot(f, q.id);
	}
	if (s)
		r.ref = ref_of(f, s);
	return wire_create_reply_put(body, cap, &r);
}

static int answer_find(struct fake *f, const struct wire_msg *m, uint8_t *body, size_t cap)
{
	struct fake_spot *s;
	struct pack_bytes id;
	struct wire_ref ref;

	CU_ASSERT_EQUAL_FATAL(wire_id_get(&id, m->payload, m->payload_len), 0);
	s = by_id(f, id);
	if (s && s->state == FAKE_READY)
		ref = ref_of(f, s);
	return wire_find_reply_put(body, cap, s && s->state == FAKE_READY ? &ref : NULL);
}

static int answer_close(struct fake *f, const struct wire_msg *m, uint8_t *body, size_t cap,
			int *error)
{
	struct fake_spot *s;
	uint64_t operation;
	struct wire_ref ref;
	bool closed = false;

	CU_ASSERT_EQUAL_FATAL(wire_close_get(&operation, &ref, m->payload, m->payload_len), 0);
	note_operation(f, operation);
	f->closes++;
	s = by_id(f, ref.id);
	if (s && s->state == FAKE_READY && s->generation != ref.generation) {
		*error = SPL_E_INVALID_OPERATION;
		return 0;
	}
	if (s && s->state == FAKE_READY) {
		closed = true;
		s->state = FAKE_MISSING;
		s->is_here = false;
	}
	return wire_close_reply_put(body, cap, closed);
}

static void control(struct fake *f, const struct wire_msg *m)
{
	static uint8_t body[SPL_CREATE_REPLY_BYTES_MAX + 1024];
	int error = f->authority_error, bytes = 0;

	if (f->authority_is_mute)
		return;
	if (error != SPL_OK)
		f->resolves += m->kind == SPL_MSG_RESOLVE;
	else if (m->kind == SPL_MSG_RESOLVE)
		bytes = answer_resolve(f, m, body, sizeof(body));
	else if (m->kind == SPL_MSG_CREATE)
		bytes = answer_create(f, m, body, sizeof(body), &error);
	else if (m->kind == SPL_MSG_FIND)
		bytes = answer_find(f, m, body, sizeof(body));
	else
		bytes = answer_close(f, m, body, sizeof(body), &error);
	CU_ASSERT_FATAL(bytes >= 0);
	if (f->breaks_bodies && bytes)
		bytes--;
	reply_at(f, 0, m, error, 0, body, (uint32_t)bytes, f->now_ns + f->authority_ns);
}

static void request(struct fake *f, uint32_t lane, const struct wire_msg *m)
{
	const struct fake_spot *s = by_key(f, &m->target);
	uint64_t due = f->now_ns + f->handler_ns;
	int error = f->handler_error;

	if (!s || !s->is_here)
		error = SPL_E_UNAVAILABLE; /* a stale route */
	for (int i = 0; i <= f->replies_twice; i++) {
		if (error != SPL_OK && f->error_text)
			reply_at(f, lane, m, error, 2, f->error_text,
				 (uint32_t)strlen(f->error_text), due);
		else if (error != SPL_OK)
			reply_at(f, lane, m, error, 0, NULL, 0, due);
		else
			reply_at(f, lane, m, SPL_OK, f->reply_content, m->payload, m->payload_len,
				 due);
	}
}

void fake_message_in(struct fake *f, uint32_t lane, const struct flow_msg *msg)
{
	struct fake_seen *seen = &f->seen[f->seen_n];
	struct wire_msg m;

	CU_ASSERT_EQUAL_FATAL(wire_msg_get(&m, msg->data, msg->len), 0);
	CU_ASSERT_FATAL(f->seen_n < FAKE_LOG);
	f->seen_n++;
	*seen = (struct fake_seen){
		.key = m.target,
		.packet = m.packet,
		.correlation = m.correlation,
		.bytes = m.payload_len,
		.budget_us = m.budget_us,
		.meta_len = m.meta_len,
		.intent_len = m.intent_len,
		.at_ns = f->now_ns,
		.kind = m.kind,
		.lane = (uint8_t)lane,
	};
	if (m.intent_len && m.intent_len <= sizeof(seen->intent))
		memcpy(seen->intent, m.intent, m.intent_len);
	if (m.payload_len >= 8)
		memcpy(&seen->number, m.payload, 8);
	if (m.kind == SPL_MSG_SPOT_SEND || m.kind == SPL_MSG_SPOT_REQUEST ||
	    m.kind == SPL_MSG_PUBLISH) {
		CU_ASSERT_EQUAL(msg->cls, WIRE_APP);
		CU_ASSERT_EQUAL(lane, spl_key_lane(&m.target, FAKE_LANES));
		if (m.kind == SPL_MSG_SPOT_REQUEST)
			request(f, lane, &m);
	} else {
		CU_ASSERT_EQUAL(msg->cls, WIRE_INFRA);
		CU_ASSERT_EQUAL(lane, 0);
		control(f, &m);
	}
}

void fake_spots_run(struct fake *f)
{
	for (struct fake_reply *r = f->reply; f->replies && r < f->reply + FAKE_HELD; r++) {
		if (!r->due_ns || r->due_ns > f->now_ns || !f->flow[r->lane] ||
		    flow_send_room(f->flow[r->lane], WIRE_INFRA) == 0)
			continue;
		CU_ASSERT_EQUAL_FATAL(flow_send(f->flow[r->lane], WIRE_INFRA, r->b, r->len, r->b),
				      0);
		f->out_messages++;
		f->replies--;
		r->due_ns = 0;
		r->b = NULL;
	}
}

uint64_t fake_spots_timer(const struct fake *f)
{
	uint64_t next = UINT64_MAX;

	for (const struct fake_reply *r = f->reply; f->replies && r < f->reply + FAKE_HELD; r++) {
		if (r->due_ns > f->now_ns && r->due_ns < next)
			next = r->due_ns;
	}
	return next;
}

void fake_spots_stop(struct fake *f)
{
	for (struct fake_reply *r = f->reply; r < f->reply + FAKE_HELD; r++) {
		free(r->b);
		r->b = NULL;
		r->due_ns = 0;
	}
	f->replies = 0;
}
