/* SPDX-License-Identifier: BSD-3-Clause */
/* The codec and the engine against tests/data/wire/vectors.txt, which another program made from
 * docs/wire.md.
 */
#include "common/wire_assoc.h"
#include "common/wire_msg.h"
#include "one.h"
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>

#define CLIENT_ID 0xc11e0000beef0001ULL
#define NODE_ID	  0x5e12f00dcafe0007ULL

/* The bytes are exactly the vector's. */
static void check(const char *name, const void *b, int64_t len)
{
	const struct vector *v = vector(name);
	bool ok = len == v->len && memcmp(b, v->b, v->len) == 0;

	CU_ASSERT(ok);
	if (!ok)
		printf("\n  vector %s differs\n", name);
}

static struct pack_bytes text(const char *s)
{
	return (struct pack_bytes){s, (uint32_t)strlen(s)};
}

static bool is_text(struct pack_bytes b, const char *s)
{
	return b.len == strlen(s) && memcmp(b.p, s, b.len) == 0;
}

static void nonce_and_cookie(uint8_t *nonce, uint8_t *cookie)
{
	static const uint8_t c[WIRE_COOKIE_BYTES] = {
		0, 0, 0, 0x2a, 0, 0, 0, 0, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

	for (int i = 0; i < WIRE_NONCE_BYTES; i++)
		nonce[i] = (uint8_t)(0x10 + i);
	memcpy(cookie, c, sizeof(c));
}

static struct wire_self self_of(bool client)
{
	struct wire_self c = {.lifecycle = 0x1122334455667788,
			      .id = CLIENT_ID,
			      .lanes = 1,
			      .window = 256,
			      .msg_bytes = wire_message_bytes(1048576),
			      .credit = {262144, 65536},
			      .mesh = text("game"),
			      .rid = text("client-1")};
	struct wire_self n = {.lifecycle = 7,
			      .id = NODE_ID,
			      .lanes = 2,
			      .base_port = 4800,
			      .window = 1024,
			      .msg_bytes = wire_message_bytes(1048576),
			      .credit = {131072, 32768},
			      .mesh = text("game"),
			      .rid = text("node-a")};

	return client ? c : n;
}

static void test_wire_association_encodes(void)
{
	struct wire_init init = {.self = self_of(true)};
	struct wire_cookie cookie;
	struct wire_accept accept = {.self = self_of(false)};
	struct wire_refuse refuse = {.reason = WIRE_REFUSE_MESH, .lifecycle = 7};
	struct wire_close close = {.reason = WIRE_CLOSE_SHUTDOWN, .self = NODE_ID};
	uint8_t p[WIRE_INIT_BYTES];

	nonce_and_cookie(init.nonce, cookie.cookie);
	memcpy(cookie.nonce, init.nonce, sizeof(init.nonce));
	memcpy(accept.nonce, init.nonce, sizeof(init.nonce));
	memcpy(refuse.nonce, init.nonce, sizeof(init.nonce));
	check("init", p, (int64_t)wire_init_put(p, &init));
	memcpy(init.cookie, cookie.cookie, sizeof(init.cookie));
	check("init-cookie", p, (int64_t)wire_init_put(p, &init));
	check("cookie", p, (int64_t)wire_cookie_put(p, CLIENT_ID, &cookie));
	check("accept", p, (int64_t)wire_accept_put(p, CLIENT_ID, &accept));
	check("refuse", p, (int64_t)wire_refuse_put(p, CLIENT_ID, &refuse));
	check("beacon", p, (int64_t)wire_beacon_put(p, NODE_ID, 3, CLIENT_ID, false));
	check("beacon-ack", p, (int64_t)wire_beacon_put(p, CLIENT_ID, 3, NODE_ID, true));
	check("close", p, (int64_t)wire_close_pkt_put(p, CLIENT_ID, 0, &close));
	close.is_answer = 1;
	close.self = CLIENT_ID;
	check("close-answer", p, (int64_t)wire_close_pkt_put(p, NODE_ID, 0, &close));
	close.reason = WIRE_CLOSE_UNKNOWN;
	close.self = 0;
	check("close-unknown", p, (int64_t)wire_close_pkt_put(p, CLIENT_ID, 3, &close));
}

static void test_wire_association_decodes(void)
{
	const struct vector *v = vector("init-cookie");
	struct wire_init init;
	struct wire_accept accept;
	struct wire_refuse refuse;
	enum spl_frame_drop drop;
	struct wire_hdr h;

	CU_ASSERT_EQUAL(wire_hdr_get(&h, v->b, v->len, &drop), 0);
	CU_ASSERT_EQUAL(h.kind, SPL_PKT_INIT);
	CU_ASSERT_EQUAL(wire_init_get(&init, v->b, v->len), 0);
	CU_ASSERT_EQUAL(init.nonce[15], 0x1f);
	CU_ASSERT_EQUAL(init.cookie[15], 0xef);
	CU_ASSERT_EQUAL(init.self.lifecycle, 0x1122334455667788);
	CU_ASSERT_EQUAL(init.self.id, CLIENT_ID);
	CU_ASSERT_EQUAL(wire_load_u64(v->b + WIRE_INIT_ID_AT), CLIENT_ID);
	CU_ASSERT_EQUAL(init.self.window, 256);
	CU_ASSERT_EQUAL(init.self.credit[WIRE_INFRA], 65536);
	CU_ASSERT(is_text(init.self.mesh, "game"));
	CU_ASSERT(is_text(init.self.rid, "client-1"));
	v = vector("accept");
	CU_ASSERT_EQUAL(wire_hdr_get(&h, v->b, v->len, &drop), 0);
	CU_ASSERT_EQUAL(h.id, CLIENT_ID);
	CU_ASSERT_EQUAL(wire_accept_get(&accept, v->b, v->len), 0);
	CU_ASSERT_EQUAL(accept.self.base_port, 4800);
	CU_ASSERT_EQUAL(accept.self.lanes, 2);
	v = vector("refuse");
	CU_ASSERT_EQUAL(wire_refuse_get(&refuse, v->b, v->len), 0);
	CU_ASSERT_EQUAL(refuse.reason, WIRE_REFUSE_MESH);
	CU_ASSERT_EQUAL(refuse.lifecycle, 7);
}

/* A flow of the client's lane 0 to the node's lane 1, or back. */
static void vector_flow(struct one *o, bool client)
{
	struct flow_params p;

	one_params(&p);
	p.datagram_bytes = 256;
	p.rx_id = client ? CLIENT_ID : NODE_ID;
	p.tx_id = client ? NODE_ID : CLIENT_ID;
	p.lane = client ? 0 : 1;
	p.peer_lane = client ? 1 : 0;
	p.cls[WIRE_APP].credit_min = 131072;
	p.cls[WIRE_APP].peer_credit = 131072;
	one_start(o, &p, 8 << 20);
}

static void test_wire_flow_encodes(void)
{
	static uint8_t big[400], huge[130000];
	struct one c, n;
	struct raw r;

	for (int i = 0; i < 400; i++)
		big[i] = (uint8_t)i;
	vector_flow(&c, true);
	flow_send(c.f, WIRE_APP, "hello", 5, NULL);
	check("flow-message", c.out, one_tx(&c));
	flow_send(c.f, WIRE_APP, "a", 1, NULL);
	flow_send(c.f, WIRE_APP, "", 0, NULL);
	flow_send(c.f, WIRE_APP, "ccc", 3, NULL);
	check("flow-shared", c.out, one_tx(&c));
	flow_send(c.f, WIRE_APP, big, 400, NULL);
	check("flow-fragment", c.out, one_tx(&c));
	one_stop(&c);

	/* the node has 0, 1, 2, 5, 9 and has seen three messages of 256 to their end */
	vector_flow(&n, false);
	for (uint64_t number = 0; number < 10; number++) {
		if (number > 2 && number != 5 && number != 9)
			continue;
		raw_begin(&r, WIRE_APP, number);
		r.b[3] = 0;
		r.b[4] = 1;
		wire_store_u64(r.b + 8, NODE_ID);
		if (number < 3)
			raw_message(&r, (uint32_t)number, 0);
		else
			raw_ping(&r);
		CU_ASSERT_EQUAL(one_rx(&n, &r).drop, FLOW_NO_DROP);
	}
	one_consume(&n);
	n.now += 250000;
	check("flow-ack", n.out, one_tx(&n));
	one_stop(&n);

	/* 2048 are used, the next message needs 130304, and 131072 are granted */
	vector_flow(&c, true);
	for (int k = 0; k < 8; k++)
		flow_send(c.f, WIRE_APP, big, 1, NULL);
	CU_ASSERT(one_tx(&c) > 0);
	flow_send(c.f, WIRE_APP, huge, 130000, NULL);
	check("flow-wanted", c.out, one_tx(&c));
	one_stop(&c);
}

/* The engine takes every flow vector of its direction. */
static void test_wire_flow_decodes(void)
{
	static const char *const to_node[] = {"flow-message", "flow-shared", "flow-fragment",
					      "flow-wanted", "flow-ping"};
	struct one c, n;
	struct raw r;

	vector_flow(&n, false);
	for (size_t i = 0; i < T_COUNT(to_node); i++) {
		const struct vector *v = vector(to_node[i]);

		memcpy(r.b, v->b, v->len);
		r.len = v->len;
		CU_ASSERT_EQUAL(one_rx(&n, &r).drop, FLOW_NO_DROP);
	}
	CU_ASSERT_EQUAL_FATAL(n.sink.n, 4);
	CU_ASSERT(memcmp(n.msgs[0].data, "hello", 5) == 0);
	CU_ASSERT_EQUAL(n.msgs[2].len, 0);
	CU_ASSERT(memcmp(n.msgs[3].data, "ccc", 3) == 0);
	one_stop(&n);

	vector_flow(&c, true);
	for (int i = 0; i < 10; i++) {
		flow_send(c.f, WIRE_APP, "x", 1, NULL);
		one_tx(&c);
	}
	memcpy(r.b, vector("flow-ack")->b, r.len = vector("flow-ack")->len);
	CU_ASSERT_EQUAL(one_rx(&c, &r).use, SPL_USE_ACK);
	CU_ASSERT_EQUAL(c.acked, 5);
	one_stop(&c);
}

static void key_and_packet(struct wire_msg *m)
{
	for (int i = 0; i < 16; i++)
		m->target.b[i] = (uint8_t)(i * 0x11);
	m->packet = 0x1f2e3d4c5b6a7988;
}

static void test_wire_messages(void)
{
	struct wire_msg send = {.kind = SPL_MSG_SPOT_SEND, .content = SPL_CONTENT_TEXT};
	struct wire_msg request = {.kind = SPL_MSG_SPOT_REQUEST,
				   .content = SPL_CONTENT_JSON,
				   .budget_us = 1500000,
				   .correlation = 0x42};
	struct wire_msg reply = {.kind = SPL_MSG_REPLY,
				 .content = SPL_CONTENT_JSON,
				 .error = SPL_OK,
				 .correlation = 0x42};
	uint8_t p[1024];
	struct wire_msg m;
	uint32_t pos = 0;
	struct pack_bytes k, v;
	int meta;

	key_and_packet(&send);
	key_and_packet(&request);
	wire_msg_put(p, &send);
	memcpy(p + WIRE_MSG_BYTES, "hi", 2);
	check("msg-send", p, WIRE_MSG_BYTES + 2);
	send.kind = SPL_MSG_PUBLISH;
	send.target = spl_topic_key("world", 5, "news", 4);
	wire_msg_put(p, &send);
	check("msg-publish", p, WIRE_MSG_BYTES + 2);
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, WIRE_MSG_BYTES + 2), 0);
	CU_ASSERT(m.kind == SPL_MSG_PUBLISH && spl_key_equal(&m.target, &send.target));
	p[47] = 1; /* a correlation */
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, WIRE_MSG_BYTES + 2), -EBADMSG);
	p[47] = 0;
	memset(p + 32, 0, 8); /* no packet */
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, WIRE_MSG_BYTES + 2), -EBADMSG);
	/* set in the other order: keys travel in order */
	meta = wire_meta_set(p + WIRE_MSG_BYTES, 0, 200, text("who"), text("ana"));
	meta = wire_meta_set(p + WIRE_MSG_BYTES, (uint32_t)meta, 200, text("lang"), text("ko"));
	request.meta_len = (uint16_t)meta;
	wire_msg_put(p, &request);
	memcpy(p + WIRE_MSG_BYTES + meta, "{\"n\":1}", 7);
	check("msg-request", p, WIRE_MSG_BYTES + meta + 7);
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, (uint32_t)(WIRE_MSG_BYTES + meta + 7)), 0);
	CU_ASSERT_EQUAL(m.kind, SPL_MSG_SPOT_REQUEST);
	CU_ASSERT_EQUAL(m.error, SPL_OK);
	CU_ASSERT_EQUAL(m.content, SPL_CONTENT_JSON);
	CU_ASSERT_EQUAL(m.budget_us, 1500000);
	CU_ASSERT_EQUAL(m.correlation, 0x42);
	CU_ASSERT_EQUAL(m.packet, request.packet);
	CU_ASSERT(spl_key_equal(&m.target, &request.target));
	CU_ASSERT_EQUAL(m.payload_len, 7);
	CU_ASSERT_EQUAL(wire_meta_check(m.meta, m.meta_len), 0);
	CU_ASSERT_EQUAL(wire_meta_next(m.meta, m.meta_len, &pos, &k, &v), 1);
	CU_ASSERT(is_text(k, "lang") && is_text(v, "ko"));
	CU_ASSERT_EQUAL(wire_meta_next(m.meta, m.meta_len, &pos, &k, &v), 1);
	CU_ASSERT(is_text(k, "who") && is_text(v, "ana"));
	CU_ASSERT_EQUAL(wire_meta_next(m.meta, m.meta_len, &pos, &k, &v), 0);
	wire_msg_put(p, &reply);
	memcpy(p + WIRE_MSG_BYTES, "{\"n\":2}", 7);
	check("msg-reply", p, WIRE_MSG_BYTES + 7);
	reply.content = 0;
	reply.error = SPL_E_UNAVAILABLE;
	wire_msg_put(p, &reply);
	check("msg-reply-error", p, WIRE_MSG_BYTES);
}

/* Instance intent: between header and metadata, of direct messages only, and both names legal. */
static void test_intent(void)
{
	const struct vector *v = vector("msg-intent");
	struct pack_bytes id, type;
	uint8_t p[256], intent[32];
	struct wire_msg m;
	struct spl_key key;

	CU_ASSERT_EQUAL(wire_msg_get(&m, v->b, v->len), 0);
	CU_ASSERT_EQUAL(m.intent_len, 12);
	CU_ASSERT_EQUAL(wire_intent_get(&id, &type, m.intent, m.intent_len), 0);
	CU_ASSERT(is_text(id, "cart-7") && is_text(type, "cart"));
	key = spl_spot_key("cart-7", 6);
	CU_ASSERT(spl_key_equal(&m.target, &key));
	CU_ASSERT(m.meta_len && wire_meta_check(m.meta, m.meta_len) == 0);
	CU_ASSERT(m.payload_len == 3 && memcmp(m.payload, "add", 3) == 0);
	wire_msg_put(p, &m);
	CU_ASSERT_EQUAL(wire_intent_put(p + WIRE_MSG_BYTES, 12, id, type), 12);
	memcpy(p + WIRE_MSG_BYTES + 12, m.meta, m.meta_len + m.payload_len);
	check("msg-intent", p, v->len);
	for (uint32_t len = WIRE_MSG_BYTES; len < WIRE_MSG_BYTES + 12u + m.meta_len; len++)
		CU_ASSERT_EQUAL(wire_msg_get(&m, p, len), -EBADMSG);
	p[1] = WIRE_MSG_METADATA; /* a length without its flag, and the flag without a length */
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, v->len), -EBADMSG);
	p[1] = WIRE_MSG_METADATA | WIRE_MSG_INTENT;
	p[13] = 0;
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, v->len), -EBADMSG);
	p[13] = 12;
	p[0] = SPL_MSG_PUBLISH;
	memset(p + 40, 0, 8);
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, v->len), -EBADMSG);
	p[0] = SPL_MSG_SPOT_SEND;
	CU_ASSERT_EQUAL(wire_msg_get(&m, p, v->len), 0);
	CU_ASSERT_EQUAL(wire_intent_put(intent, 11, text("cart-7"), text("cart")), -EMSGSIZE);
	CU_ASSERT_EQUAL(wire_intent_put(intent, 12, text("cart-7"), text("cart")), 12);
	for (uint32_t len = 0; len < 12; len++)
		CU_ASSERT_EQUAL(wire_intent_get(&id, &type, intent, len), -EBADMSG);
	CU_ASSERT_EQUAL(wire_intent_get(&id, &type, intent, 13), -EBADMSG);
	intent[7] = 0; /* no type */
	CU_ASSERT_EQUAL(wire_intent_get(&id, &type, intent, 8), -EBADMSG);
	intent[1] = 0xff;
	CU_ASSERT_EQUAL(wire_intent_get(&id, &type, intent, 12), -EBADMSG);
}

static struct wire_ref reference(void)
{
	return (struct wire_ref){
		.id = text("room-7"), .generation = 3, .mesh = text("game"), .rid = text("node-a")};
}

static void test_wire_control_bodies(void)
{
	struct wire_create create = {.mode = WIRE_GET_OR_CREATE,
				     .operation = 0x77,
				     .timeout_ms = 5000,
				     .id = text("room-7"),
				     .type = text("room"),
				     .request = text("seats=8")};
	struct wire_create_reply reply = {
		.state = WIRE_CREATED, .ref = reference(), .reply = text("ok")};
	struct wire_route route = {.tag = WIRE_ROUTE_READY,
				   .lanes = 2,
				   .valid_ms = 30000,
				   .lifecycle = 7,
				   .generation = 3,
				   .rid = text("node-a")};
	struct wire_route none = {.tag = WIRE_ROUTE_NONE};
	struct wire_ref ref = reference();
	uint8_t p[1024];
	bool yes = false;
	uint64_t op;

	check("create", p, wire_create_put(p, sizeof(p), &create));
	check("create-reply", p, wire_create_reply_put(p, sizeof(p), &reply));
	reply.state = WIRE_REJECTED;
	reply.reply = text("full");
	check("create-reply-rejected", p, wire_create_reply_put(p, sizeof(p), &reply));
	check("id", p, wire_id_put(p, sizeof(p), text("room-7")));
	check("find-reply", p, wire_find_reply_put(p, sizeof(p), &ref));
	check("find-reply-none", p, wire_find_reply_put(p, sizeof(p), NULL));
	check("close-spot", p, wire_close_put(p, sizeof(p), 0x78, &ref));
	check("close-spot-reply", p, wire_close_reply_put(p, sizeof(p), true));
	check("route", p, wire_route_put(p, sizeof(p), &route));
	check("route-none", p, wire_route_put(p, sizeof(p), &none));

	memset(&create, 0, sizeof(create));
	CU_ASSERT_EQUAL(wire_create_get(&create, vector("create")->b, vector("create")->len), 0);
	CU_ASSERT(create.mode == WIRE_GET_OR_CREATE && create.operation == 0x77);
	CU_ASSERT(create.timeout_ms == 5000 && is_text(create.request, "seats=8"));
	CU_ASSERT(is_text(create.id, "room-7") && is_text(create.type, "room"));
	CU_ASSERT_EQUAL(
		wire_find_reply_get(&ref, &yes, vector("find-reply")->b, vector("find-reply")->len),
		0);
	CU_ASSERT(yes && ref.generation == 3 && is_text(ref.rid, "node-a"));
	CU_ASSERT_EQUAL(
		wire_close_get(&op, &ref, vector("close-spot")->b, vector("close-spot")->len), 0);
	CU_ASSERT(op == 0x78 && is_text(ref.id, "room-7"));
	CU_ASSERT_EQUAL(wire_route_get(&route, vector("route")->b, vector("route")->len), 0);
	CU_ASSERT(route.lanes == 2 && route.valid_ms == 30000 && is_text(route.rid, "node-a"));
	/* no room: told, and nothing beyond the room is written */
	memset(p, 0xee, sizeof(p));
	CU_ASSERT_EQUAL(wire_create_put(p, vector("create")->len - 1, &create), -EMSGSIZE);
	CU_ASSERT_EQUAL(p[vector("create")->len - 1], 0xee);
}

/* Every vector has its line in docs/wire.md. */
static void test_wire_document_names_vectors(void)
{
	FILE *f = fopen(T_SOURCE_ROOT "/docs/wire.md", "r");
	char *all = calloc(1, 1 << 20), name[64];

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT(fread(all, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	for (unsigned i = 0; vector_at(i); i++) {
		snprintf(name, sizeof(name), "`%s`", vector_at(i)->name);
		CU_ASSERT_PTR_NOT_NULL(strstr(all, name));
	}
	free(all);
}

static const struct t_case cases[] = {
	T(test_wire_association_encodes),
	T(test_wire_association_decodes, "S-WIRE-1"),
	T(test_wire_flow_encodes),
	T(test_wire_flow_decodes, "S-WIRE-1"),
	T(test_wire_messages),
	T(test_intent, "S-WIRE-1"),
	T(test_wire_control_bodies),
	T(test_wire_document_names_vectors),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("wire", vectors_read, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
