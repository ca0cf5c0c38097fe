/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshake of associations: refusals, cookies, forged, replayed, cut and too many packets. */
#include "nodes.h"

static void test_assoc_connects(void)
{
	const struct assoc_peer *a, *b;

	connect_pair();
	b = na.last_up.peer;
	a = nb.last_up.peer;
	CU_ASSERT_EQUAL(b->tx_id, a->rx_id);
	CU_ASSERT_EQUAL(b->rx_id, a->tx_id);
	CU_ASSERT_EQUAL(wire_id_slot(a->rx_id), nb.last_up.slot);
	CU_ASSERT_EQUAL(a->lifecycle, 10);
	CU_ASSERT_EQUAL(b->lifecycle, 20);
	CU_ASSERT_EQUAL(a->lanes, 1);
	CU_ASSERT_EQUAL(b->lanes, 2);
	CU_ASSERT_EQUAL(a->base_port, 0);
	CU_ASSERT_EQUAL(b->base_port, 4000);
	CU_ASSERT_EQUAL(b->rid.len, 5);
	CU_ASSERT(memcmp(b->rid.b, "rid-b", 5) == 0);
	CU_ASSERT_EQUAL(a->dial, ASSOC_NONE);
	CU_ASSERT_EQUAL(b->dial, 0);
	CU_ASSERT_PTR_EQUAL(assoc_find(nb.a, a->rx_id), a);
	CU_ASSERT_PTR_NULL(assoc_find(nb.a, a->rx_id ^ 0x10000));
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	stop_pair();
}

/* Any order of lost handshake packets still ends in exactly one association. */
static void test_assoc_connects_over_loss(void)
{
	for (uint32_t lost = 0; lost < 64; lost++) {
		struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
		uint8_t out[WIRE_INIT_BYTES];
		struct assoc_answer answer, back;
		struct assoc_addr to;
		uint32_t len, bit = 0;

		now = 1000 * SECOND;
		pa.is_passive = false;
		start(&na, 1, &pa);
		start(&nb, 2, &pb);
		assoc_dial(na.a, &nb.addr, 0, now);
		for (int i = 0; i < 14; i++, now += SECOND) {
			while ((len = assoc_tx(na.a, out, sizeof(out), &to, now)) > 0) {
				if (lost >> bit++ & 1 && bit <= 6)
					continue;
				assoc_rx(nb.a, &na.addr, out, len, now, &answer);
				if (answer.len == 0 || (lost >> bit++ & 1 && bit <= 6))
					continue;
				assoc_rx(na.a, &nb.addr, answer.b, answer.len, now, &back);
			}
			events(&na);
		}
		events(&nb);
		CU_ASSERT_EQUAL(na.ups, 1);
		CU_ASSERT_EQUAL(na.downs, 0);
		CU_ASSERT_EQUAL(nb.ups - nb.downs, 1);
		stop_pair();
	}
}

static void test_assoc_refuses(void)
{
	struct {
		uint64_t want;
		const char *mesh;
		bool stopping, full;
		enum wire_refusal reason;
	} row[] = {
		{0, "other", false, false, WIRE_REFUSE_MESH},
		{21, "mesh", false, false, WIRE_REFUSE_LIFECYCLE},
		{0, "mesh", true, false, WIRE_REFUSE_SHUTDOWN},
		{0, "mesh", false, true, WIRE_REFUSE_CAPACITY},
	};

	for (size_t i = 0; i < T_COUNT(row); i++) {
		struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
		struct assoc_params pc = params("rid-c", 30);
		struct node nc;
		struct node *const three[] = {&na, &nb, &nc};

		now = 1000 * SECOND;
		spl_name_set(&pa.mesh, row[i].mesh, strlen(row[i].mesh));
		pb.slots = 1;
		pb.dials = 0;
		start(&na, 1, &pa);
		start(&nb, 2, &pb);
		start(&nc, 3, &pc);
		if (row[i].full) {
			assoc_dial(nc.a, &nb.addr, 0, now);
			run(three, 3, SECOND, NULL);
			CU_ASSERT_EQUAL(nc.ups, 1);
		}
		if (row[i].stopping)
			assoc_shutdown(nb.a, now);
		assoc_dial(na.a, &nb.addr, row[i].want, now);
		run(three, 3, SECOND, NULL);
		CU_ASSERT_EQUAL(na.refusals, 1);
		CU_ASSERT_EQUAL(na.last_refusal.reason, row[i].reason);
		CU_ASSERT_EQUAL(na.last_refusal.dial, 0);
		CU_ASSERT_EQUAL(na.ups, 0);
		CU_ASSERT_EQUAL(assoc_count(nb.a), row[i].full ? 1 : 0);
		/* it goes on asking, and calmly */
		run(three, 3, 20 * SECOND, NULL);
		CU_ASSERT(na.refusals >= 2 && na.refusals <= 7);
		stop(&nc);
		stop_pair();
	}
}

/* A newcomer that has the very RID of this node. */
static void test_assoc_rid_conflict(void)
{
	struct assoc_params pa = params("rid-b", 10), pb = params("rid-b", 20);
	struct spl_name rid;

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	assoc_dial(na.a, &nb.addr, 0, now);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(na.refusals, 1);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 0);
	CU_ASSERT_TRUE(assoc_conflict(nb.a, &rid));
	CU_ASSERT(rid.len == 5 && memcmp(rid.b, "rid-b", 5) == 0);
	CU_ASSERT_FALSE(assoc_conflict(nb.a, &rid));
	CU_ASSERT_FALSE(assoc_conflict(na.a, &rid));
	stop_pair();
}

/* The first INIT of a, as bytes. */
static uint32_t first_init(struct node *x, const struct node *to, uint8_t *out)
{
	struct assoc_addr addr;

	assoc_dial(x->a, &to->addr, 0, now);
	return assoc_tx(x->a, out, WIRE_INIT_BYTES, &addr, now);
}

static void test_assoc_other_version(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	struct assoc_answer answer, none;
	struct assoc_result r;
	uint8_t init[WIRE_INIT_BYTES];
	uint32_t len;

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	len = first_init(&na, &nb, init);
	init[0] = 9 << 4 | SPL_PKT_INIT;
	r = assoc_rx(nb.a, &na.addr, init, len, now, &answer);
	CU_ASSERT_EQUAL(r.drop, SPL_DROP_LINK_VERSION);
	CU_ASSERT(answer.len > 0 && answer.len < len);
	assoc_rx(na.a, &nb.addr, answer.b, answer.len, now, &none);
	events(&na);
	CU_ASSERT_EQUAL(na.refusals, 1);
	CU_ASSERT_EQUAL(na.last_refusal.reason, WIRE_REFUSE_VERSION);
	stop_pair();
}

/* No state for a stranger, no answer longer than the question, cookie of this address and time. */
static void test_assoc_cookie(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	struct assoc_addr to, other = {{77}};
	uint8_t first[WIRE_INIT_BYTES], second[WIRE_INIT_BYTES], forged[WIRE_INIT_BYTES];
	struct assoc_answer answer;
	uint32_t len;

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	len = first_init(&na, &nb, first);
	CU_ASSERT_EQUAL(len, WIRE_INIT_BYTES);
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, first, len, now, &answer).use, SPL_USE_HANDSHAKE);
	CU_ASSERT(answer.len > 0 && answer.len <= len);
	CU_ASSERT_EQUAL(wire_kind(answer.b), SPL_PKT_COOKIE);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 0);
	CU_ASSERT_EQUAL(assoc_next_timer(nb.a), ASSOC_NEVER);
	assoc_rx(na.a, &nb.addr, answer.b, answer.len, now, &answer);
	CU_ASSERT_EQUAL(assoc_tx(na.a, second, sizeof(second), &to, now), len);

	CU_ASSERT_EQUAL(assoc_rx(nb.a, &other, second, len, now, &answer).drop,
			SPL_DROP_HANDSHAKE_COOKIE);
	CU_ASSERT_EQUAL(answer.len, 0);
	for (uint32_t i = 0; i < WIRE_NONCE_BYTES + WIRE_COOKIE_BYTES; i++) {
		memcpy(forged, second, len);
		forged[WIRE_HDR_BYTES + i] ^= 0x40;
		CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, forged, len, now, &answer).drop,
				SPL_DROP_HANDSHAKE_COOKIE);
		CU_ASSERT_EQUAL(answer.len, 0);
	}
	memcpy(forged, second, len);
	forged[WIRE_INIT_ID_AT + 3] ^= 1; /* another id under the same cookie */
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, forged, len, now, &answer).drop,
			SPL_DROP_HANDSHAKE_COOKIE);
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, second, len, now + 21 * SECOND, &answer).drop,
			SPL_DROP_HANDSHAKE_COOKIE);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 0);
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, second, len, now + 20 * SECOND, &answer).use,
			SPL_USE_HANDSHAKE);
	CU_ASSERT_EQUAL(wire_kind(answer.b), SPL_PKT_ACCEPT);
	CU_ASSERT(answer.len <= len);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	stop_pair();
}

/* The longest names make the longest answer. */
static void test_assoc_never_amplifies(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	char name[255];

	now = 1000 * SECOND;
	memset(name, 'm', sizeof(name));
	spl_name_set(&pa.mesh, name, sizeof(name));
	spl_name_set(&pb.mesh, name, sizeof(name));
	memset(name, 'r', sizeof(name));
	spl_name_set(&pb.rid, name, sizeof(name));
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	assoc_dial(na.a, &nb.addr, 0, now);
	run(pair, 2, SECOND, NULL); /* give() checks each answer */
	CU_ASSERT_EQUAL(na.ups, 1);
	CU_ASSERT_EQUAL(na.last_up.peer->rid.len, 255);
	stop_pair();
}

/* A replayed INIT changes nothing while it stands, and an older lifecycle never comes back. */
static void test_assoc_replay(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	uint8_t first[WIRE_INIT_BYTES], second[WIRE_INIT_BYTES];
	struct assoc_answer answer, accept;
	struct assoc_addr to;
	struct node old;
	uint32_t len;
	struct spl_name rid;

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	len = first_init(&na, &nb, first);
	assoc_rx(nb.a, &na.addr, first, len, now, &answer);
	assoc_rx(na.a, &nb.addr, answer.b, answer.len, now, &answer);
	assoc_tx(na.a, second, sizeof(second), &to, now);
	assoc_rx(nb.a, &na.addr, second, len, now, &accept);
	events(&nb);
	CU_ASSERT_EQUAL(nb.ups, 1);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, second, len, now, &answer).use,
				SPL_USE_HANDSHAKE);
		CU_ASSERT_EQUAL(answer.len, accept.len);
		CU_ASSERT(memcmp(answer.b, accept.b, accept.len) == 0);
	}
	events(&nb);
	CU_ASSERT_EQUAL(nb.ups, 1);
	CU_ASSERT_EQUAL(nb.downs, 0);

	/* a starts again with a larger lifecycle; the old one's INIT is then refused */
	old = na;
	pa.lifecycle = 11;
	start(&na, 1, &pa);
	na.rand.s += 1000;
	assoc_dial(na.a, &nb.addr, 0, now);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.reason, ASSOC_DOWN_LIFECYCLE);
	CU_ASSERT_FALSE(assoc_conflict(nb.a, &rid));
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, second, len, now, &answer).drop,
			SPL_DROP_LIFECYCLE);
	CU_ASSERT_EQUAL(wire_kind(answer.b), SPL_PKT_REFUSE);
	events(&nb);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	CU_ASSERT_EQUAL(nb.ups, 2);
	/* which is a conflict of RIDs, told once; to have started again was none */
	CU_ASSERT_TRUE(assoc_conflict(nb.a, &rid));
	CU_ASSERT(rid.len == 5 && memcmp(rid.b, "rid-a", 5) == 0);
	CU_ASSERT_FALSE(assoc_conflict(nb.a, &rid));
	stop(&old);
	stop_pair();
}

/* Answers that nobody asked for, or with the wrong nonce, id or source, change nothing. */
static void test_assoc_forged_answers(void)
{
	struct assoc_params pa = params("rid-a", 10);
	struct assoc_addr server = {{2}}, other = {{3}};
	uint8_t init[WIRE_INIT_BYTES], p[WIRE_INIT_BYTES];
	struct wire_accept accept = {.self = {.lifecycle = 20,
					      .id = 0x990000,
					      .lanes = 1,
					      .window = 64,
					      .msg_bytes = 1000,
					      .mesh = {"mesh", 4},
					      .rid = {"rid-b", 5}}};
	struct wire_refuse refuse = {.reason = WIRE_REFUSE_MESH};
	struct wire_cookie cookie = {.cookie = {1}};
	struct assoc_answer answer;
	struct wire_init m;
	struct assoc_addr to;
	uint32_t len;
	uint64_t id;

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	assoc_dial(na.a, &server, 0, now);
	assoc_tx(na.a, init, sizeof(init), &to, now);
	wire_init_get(&m, init, sizeof(init));
	id = m.self.id;
	for (int wrong = 0; wrong < 3; wrong++) {
		const struct assoc_addr *from = wrong == 0 ? &other : &server;
		uint64_t to_id = wrong == 1 ? id ^ 0x10000 : id;

		memcpy(accept.nonce, m.nonce, sizeof(m.nonce));
		if (wrong == 2)
			accept.nonce[15] ^= 1;
		memcpy(refuse.nonce, accept.nonce, sizeof(m.nonce));
		memcpy(cookie.nonce, accept.nonce, sizeof(m.nonce));
		len = (uint32_t)wire_accept_put(p, to_id, &accept);
		CU_ASSERT_EQUAL(assoc_rx(na.a, from, p, len, now, &answer).drop,
				SPL_DROP_LINK_FLOW);
		len = (uint32_t)wire_refuse_put(p, to_id, &refuse);
		CU_ASSERT_EQUAL(assoc_rx(na.a, from, p, len, now, &answer).drop,
				SPL_DROP_LINK_FLOW);
		len = (uint32_t)wire_cookie_put(p, to_id, &cookie);
		CU_ASSERT_EQUAL(assoc_rx(na.a, from, p, len, now, &answer).drop,
				SPL_DROP_LINK_FLOW);
	}
	events(&na);
	CU_ASSERT_EQUAL(na.ups + na.downs + na.refusals, 0);
	CU_ASSERT_EQUAL(assoc_tx(na.a, p, sizeof(p), &to, now), 0);
	/* an ACCEPT of another mesh, and a lifecycle that was not wanted */
	memcpy(accept.nonce, m.nonce, sizeof(m.nonce));
	accept.self.mesh = (struct pack_bytes){"hsem", 4};
	len = (uint32_t)wire_accept_put(p, id, &accept);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &server, p, len, now, &answer).drop,
			SPL_DROP_HANDSHAKE_REFUSED);
	CU_ASSERT_EQUAL(assoc_count(na.a), 0);
	/* and the right one still counts */
	accept.self.mesh = (struct pack_bytes){"mesh", 4};
	len = (uint32_t)wire_accept_put(p, id, &accept);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &server, p, len, now, &answer).use, SPL_USE_HANDSHAKE);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &server, p, len, now, &answer).use, SPL_USE_HANDSHAKE);
	events(&na);
	CU_ASSERT_EQUAL(na.ups, 1);
	stop(&na);
}

static void test_assoc_answers_are_bounded(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	uint8_t init[WIRE_INIT_BYTES];
	struct assoc_answer answer;
	uint32_t len, answered = 0;

	now = 1000 * SECOND;
	pb.answers_per_s = 100;
	pb.answers_burst = 10;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	len = first_init(&na, &nb, init);
	for (int i = 0; i < 10000; i++, now += SECOND / 10000) {
		struct assoc_result r = assoc_rx(nb.a, &na.addr, init, len, now, &answer);

		CU_ASSERT(answer.len ? r.use == SPL_USE_HANDSHAKE && r.drop == ASSOC_NO_DROP
				     : r.drop == SPL_DROP_HANDSHAKE_RATE);
		answered += answer.len > 0;
	}
	CU_ASSERT(answered >= 109 && answered <= 111);
	stop_pair();
}

/* Every length of every packet but its own is malformed, and harmless. */
static void test_assoc_truncated(void)
{
	uint8_t p[8][WIRE_INIT_BYTES], cut[WIRE_INIT_BYTES];
	struct wire_init init = {.self = {.lifecycle = 1,
					  .id = 5 << 16,
					  .lanes = 1,
					  .window = 64,
					  .msg_bytes = 1000,
					  .mesh = {"mesh", 4},
					  .rid = {"rid-x", 5}}};
	struct wire_accept accept = {.self = init.self};
	struct wire_cookie cookie = {{0}, {0}};
	struct wire_refuse refuse = {.reason = WIRE_REFUSE_MESH};
	struct wire_close close = {.reason = WIRE_CLOSE_NORMAL, .self = 5 << 16};
	const struct assoc_peer *peer;
	size_t len[8];
	struct assoc_answer answer;

	connect_pair();
	peer = nb.last_up.peer;
	len[0] = wire_init_put(p[0], &init);
	len[1] = wire_cookie_put(p[1], peer->rx_id, &cookie);
	len[2] = wire_accept_put(p[2], peer->rx_id, &accept);
	len[3] = wire_refuse_put(p[3], peer->rx_id, &refuse);
	len[4] = wire_beacon_put(p[4], peer->rx_id, 3, peer->tx_id, false);
	len[5] = wire_beacon_put(p[5], peer->rx_id, 3, peer->tx_id, true);
	len[6] = wire_close_pkt_put(p[6], peer->rx_id, 0, &close);
	for (int k = 0; k < 7; k++)
		for (uint32_t n = 0; n <= len[k] + 1; n++) {
			struct assoc_result r;

			if (n == len[k])
				continue;
			memset(cut, 0, sizeof(cut));
			memcpy(cut, p[k], n < len[k] ? n : len[k]);
			r = assoc_rx(nb.a, &na.addr, cut, n, now, &answer);
			CU_ASSERT_EQUAL(r.drop, n < WIRE_HDR_BYTES ? SPL_DROP_LINK_SHORT
								   : SPL_DROP_HANDSHAKE_MALFORMED);
			CU_ASSERT_EQUAL(answer.len, 0);
		}
	events(&nb);
	CU_ASSERT_EQUAL(nb.ups, 1);
	CU_ASSERT_EQUAL(nb.downs, 0);
	stop_pair();
}

static void test_assoc_parameters(void)
{
	struct assoc_params p = params("rid-a", 10);

	CU_ASSERT(assoc_bytes(&p) > 0);
	p.dials = p.slots + 1;
	CU_ASSERT_EQUAL(assoc_bytes(&p), 0);
	p = params("rid-a", 0);
	CU_ASSERT_EQUAL(assoc_bytes(&p), 0);
	p = params("rid-a", 1);
	p.window = 48;
	CU_ASSERT_EQUAL(assoc_bytes(&p), 0);
	p = params("rid-a", 1);
	p.rid.len = 0;
	CU_ASSERT_EQUAL(assoc_bytes(&p), 0);
	p = params("rid-a", 1);
	p.slots = 65536;
	CU_ASSERT_EQUAL(assoc_bytes(&p), 0);
}

static const struct t_case cases[] = {
	T(test_assoc_connects),
	T(test_assoc_connects_over_loss),
	T(test_assoc_refuses),
	T(test_assoc_rid_conflict, "S-OBS-6"),
	T(test_assoc_other_version),
	T(test_assoc_cookie),
	T(test_assoc_never_amplifies),
	T(test_assoc_replay, "A-LIVE-7"),
	T(test_assoc_forged_answers),
	T(test_assoc_answers_are_bounded),
	T(test_assoc_truncated, "S-WIRE-1"),
	T(test_assoc_parameters),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("assoc", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
