/* SPDX-License-Identifier: BSD-3-Clause */
/* The association table: handshake, refusals, forged and replayed packets, beacons, closes, in
 * virtual time between two or three tables.
 */
#include "dataplane/link/assoc.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>

#define SECOND 1000000000ULL
#define MS     1000000ULL

/* A table with an address; its packets go through `wire` by hand. */
struct node {
	struct assoc *a;
	void *mem;
	struct assoc_addr addr;
	struct t_rand rand;
	uint32_t ups, downs, refusals;
	struct assoc_event last_up, last_down, last_refusal;
	bool keeps_slots; /* does not release by itself */
};

static uint64_t now;

static void fake_random(void *host, void *out, size_t n)
{
	struct node *x = host;

	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)t_rand_u64(&x->rand);
}

static struct assoc_params params(const char *rid, uint64_t lifecycle)
{
	struct assoc_params p;

	assoc_params_default(&p);
	p.slots = 4;
	p.dials = 2;
	p.is_passive = true;
	p.lifecycle = lifecycle;
	p.lanes = 2;
	p.base_port = 4000;
	spl_name_set(&p.mesh, "mesh", 4);
	spl_name_set(&p.rid, rid, strlen(rid));
	return p;
}

static void start(struct node *x, uint8_t number, const struct assoc_params *p)
{
	struct assoc_env env = {.host = x, .random = fake_random};

	memset(x, 0, sizeof(*x));
	x->rand.s = t_seed() + number;
	memset(x->addr.b, number, sizeof(x->addr.b));
	x->mem = aligned_alloc(64, assoc_bytes(p));
	x->a = assoc_init(x->mem, p, &env, now);
	CU_ASSERT_PTR_NOT_NULL_FATAL(x->a);
}

static void stop(struct node *x)
{
	free(x->mem);
}

static void events(struct node *x)
{
	struct assoc_event e;

	while (assoc_event(x->a, now, &e)) {
		if (e.type == ASSOC_UP) {
			x->ups++;
			x->last_up = e;
		} else if (e.type == ASSOC_DOWN) {
			x->downs++;
			x->last_down = e;
			if (!x->keeps_slots)
				assoc_release(x->a, e.slot);
		} else {
			x->refusals++;
			x->last_refusal = e;
		}
	}
}

/* Gives `to` a packet from `from`, and `from` the answer, checking the bound of answers. */
static struct assoc_result give(struct node *from, struct node *to, const uint8_t *p, uint32_t len)
{
	struct assoc_answer answer, back;
	struct assoc_result r = assoc_rx(to->a, &from->addr, p, len, now, &answer);

	CU_ASSERT(answer.len <= len);
	events(to);
	if (answer.len) {
		assoc_rx(from->a, &to->addr, answer.b, answer.len, now, &back);
		CU_ASSERT(back.len == 0);
		events(from);
	}
	return r;
}

static bool may_pass(uint32_t *cut)
{
	return !cut || *cut == 0;
}

/* Everything that `x` has to send now goes to whichever of the nodes has the address. */
static void pump(struct node *x, struct node *const *nodes, uint32_t n, uint32_t *cut)
{
	uint8_t out[WIRE_INIT_BYTES];
	struct assoc_addr to;
	uint32_t len;

	while ((len = assoc_tx(x->a, out, sizeof(out), &to, now)) > 0)
		for (uint32_t i = 0; i < n; i++)
			if (memcmp(to.b, nodes[i]->addr.b, sizeof(to.b)) == 0 && may_pass(cut))
				give(x, nodes[i], out, len);
	events(x);
}

/* Runs the nodes for `ns`; nothing passes while *cut is not 0. */
static void run(struct node *const *nodes, uint32_t n, uint64_t ns, uint32_t *cut)
{
	uint64_t until = now + ns;

	for (;;) {
		uint64_t next = ASSOC_NEVER;

		for (uint32_t i = 0; i < n; i++)
			pump(nodes[i], nodes, n, cut);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t t = assoc_next_timer(nodes[i]->a);

			next = t < next ? t : next;
		}
		if (next > until)
			break;
		now = next > now ? next : now;
	}
	now = until;
}

/* Two tables, the first connected to the second. */
static struct node na, nb;
static struct node *const pair[] = {&na, &nb};

static void connect_pair(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);

	now = 1000 * SECOND;
	pa.is_passive = false;
	pa.base_port = 0;
	pa.lanes = 1;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	CU_ASSERT_EQUAL(assoc_dial(na.a, &nb.addr, 0, now), 0);
	run(pair, 2, 10 * MS, NULL);
	CU_ASSERT_EQUAL_FATAL(na.ups, 1);
	CU_ASSERT_EQUAL_FATAL(nb.ups, 1);
}

static void stop_pair(void)
{
	stop(&na);
	stop(&nb);
}

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
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, second, len, now, &answer).drop,
			SPL_DROP_LIFECYCLE);
	CU_ASSERT_EQUAL(wire_kind(answer.b), SPL_PKT_REFUSE);
	events(&nb);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	CU_ASSERT_EQUAL(nb.ups, 2);
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

/* ---- beacons ---- */

/* Takes what `x` sends now; counts the beacons and keeps the last. */
static uint32_t take_beacons(struct node *x, uint8_t *last)
{
	uint8_t out[WIRE_INIT_BYTES];
	struct assoc_addr to;
	uint32_t len, n = 0;

	while ((len = assoc_tx(x->a, out, sizeof(out), &to, now)) > 0)
		if (wire_kind(out) == SPL_PKT_BEACON) {
			memcpy(last, out, len);
			n++;
		}
	return n;
}

static uint64_t beacon_id(const uint8_t *p)
{
	return wire_load_u64(p + 16);
}

static void test_beacon_ids(void)
{
	uint8_t b[WIRE_INIT_BYTES], other[WIRE_INIT_BYTES];
	struct assoc_answer answer, none;
	uint64_t t0, id;

	connect_pair();
	t0 = now;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 0);
	now = t0 + 5 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	id = beacon_id(b);
	CU_ASSERT(id != 0);
	/* the same id again until it is acknowledged, one outstanding */
	for (int i = 1; i < 5; i++) {
		now += SECOND;
		CU_ASSERT_EQUAL(take_beacons(&na, other), 1);
		CU_ASSERT_EQUAL(beacon_id(other), id);
	}
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, b, WIRE_BEACON_BYTES, now, &answer).use,
			SPL_USE_BEACON);
	CU_ASSERT_EQUAL(wire_kind(answer.b), SPL_PKT_BEACON_ACK);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &nb.addr, answer.b, answer.len, now, &none).use,
			SPL_USE_BEACON);
	CU_ASSERT_EQUAL(none.len, 0);
	now += 100 * MS;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 0);
	now += SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	CU_ASSERT(beacon_id(b) != id);
	stop_pair();
}

/* Only the first acknowledgement of the current id on this association moves the deadline. */
static void test_beacon_deadline(void)
{
	uint8_t b[WIRE_INIT_BYTES], ack[WIRE_INIT_BYTES];
	const struct assoc_peer *peer;
	struct assoc_addr other = {{9}};
	struct assoc_answer none;
	uint64_t t0, acked_at;
	uint32_t len;

	connect_pair();
	peer = na.last_up.peer;
	t0 = now;
	now = t0 + 6 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	len = (uint32_t)wire_beacon_put(ack, peer->rx_id, beacon_id(b), peer->tx_id, true);
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	acked_at = now;
	/* duplicates, older and other ids, another source: nothing */
	now += SECOND;
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	wire_beacon_put(ack, peer->rx_id, beacon_id(b) + 1, peer->tx_id, true);
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	now = t0 + 12 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	wire_beacon_put(ack, peer->rx_id, beacon_id(b), peer->tx_id, true);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &other, ack, len, now, &none).drop, SPL_DROP_LINK_FLOW);
	wire_beacon_put(ack, peer->rx_id, beacon_id(b) - 1, peer->tx_id, true);
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	/* the peer's own beacons do not count either */
	wire_beacon_put(ack, peer->rx_id, 77, peer->tx_id, false);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &nb.addr, ack, len, now, &none).use, SPL_USE_BEACON);
	now = acked_at + 15 * SECOND - 1;
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 0);
	CU_ASSERT(assoc_next_timer(na.a) <= acked_at + 15 * SECOND);
	now = acked_at + 15 * SECOND;
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_DEADLINE);
	CU_ASSERT_EQUAL(assoc_count(na.a), 0);
	stop_pair();
}

/* Cut off for 15 s: both see it; the dial connects again, with fresh ids. */
static void test_assoc_cut_and_back(void)
{
	uint64_t id, old_rx;
	uint32_t cut = 1;

	connect_pair();
	id = na.last_up.peer->tx_id;
	old_rx = na.last_up.peer->rx_id;
	run(pair, 2, 60 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.downs + nb.downs, 0);
	run(pair, 2, 21 * SECOND, &cut);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(nb.downs, 1);
	run(pair, 2, 10 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.ups, 2);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT(na.last_up.peer->tx_id != id);
	CU_ASSERT(na.last_up.peer->rx_id != old_rx);
	CU_ASSERT_PTR_NULL(assoc_find(na.a, old_rx));
	stop_pair();
}

/* One peer that is silent costs the others nothing. */
static void test_assoc_one_peer_fails(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	struct assoc_params pc = params("rid-c", 30);
	struct node nc;
	struct node *const three[] = {&na, &nb, &nc};

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	start(&nc, 3, &pc);
	assoc_dial(na.a, &nb.addr, 0, now);
	assoc_dial(nc.a, &nb.addr, 0, now);
	run(three, 3, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.ups, 2);
	run(pair, 2, 60 * SECOND, NULL); /* c stands still */
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.peer->lifecycle, 30);
	CU_ASSERT_EQUAL(na.downs, 0);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	stop(&nc);
	stop_pair();
}

/* ---- closes ---- */

static void test_assoc_orderly_close(void)
{
	uint32_t cut = 1;

	connect_pair();
	nb.keeps_slots = true;
	assoc_hangup(na.a, 0, now);
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_LOCAL);
	CU_ASSERT_EQUAL(assoc_closing(na.a), 1);
	run(pair, 2, 0, NULL);
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.reason, ASSOC_DOWN_CLOSED);
	CU_ASSERT_EQUAL(assoc_closing(na.a), 0);
	/* the slot is not used again before its release */
	CU_ASSERT_EQUAL(assoc_dial(na.a, &nb.addr, 0, now), 0);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT(nb.last_up.slot != nb.last_down.slot);
	assoc_release(nb.a, nb.last_down.slot);
	/* a close that nobody confirms is given up */
	assoc_close(nb.a, nb.last_up.slot, WIRE_CLOSE_NORMAL, now);
	run(pair, 2, 5 * SECOND, &cut);
	CU_ASSERT_EQUAL(assoc_closing(nb.a), 0);
	stop_pair();
}

static void test_assoc_shutdown(void)
{
	connect_pair();
	assoc_shutdown(nb.a, now);
	run(pair, 2, 50 * MS, NULL);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_CLOSED);
	CU_ASSERT_EQUAL(assoc_closing(nb.a), 0);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 0);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(na.last_refusal.reason, WIRE_REFUSE_SHUTDOWN);
	CU_ASSERT_EQUAL(na.ups, 1);
	stop_pair();
}

/* The server is born anew and forgot all: the client learns it from its next beacon. */
static void test_assoc_new_lifecycle_of_server(void)
{
	struct assoc_params pb = params("rid-b", 21);

	connect_pair();
	stop(&nb);
	start(&nb, 2, &pb);
	nb.rand.s += 1000;
	run(pair, 2, 6 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_LOST);
	CU_ASSERT_EQUAL(na.ups, 2);
	CU_ASSERT_EQUAL(na.last_up.peer->lifecycle, 21);
	stop_pair();
}

/* "Unknown" is believed only for the beacon that is outstanding. */
static void test_assoc_forged_unknown(void)
{
	struct wire_close m = {.reason = WIRE_CLOSE_UNKNOWN, .is_answer = 1};
	const struct assoc_peer *peer;
	uint8_t p[WIRE_INIT_BYTES], b[WIRE_INIT_BYTES];
	struct assoc_answer none;
	uint32_t len;

	connect_pair();
	peer = na.last_up.peer;
	len = (uint32_t)wire_close_pkt_put(p, peer->rx_id, 0, &m);
	assoc_rx(na.a, &nb.addr, p, len, now, &none);
	now += 5 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	wire_close_pkt_put(p, peer->rx_id, beacon_id(b) + 1, &m);
	assoc_rx(na.a, &nb.addr, p, len, now, &none);
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 0);
	wire_close_pkt_put(p, peer->rx_id, beacon_id(b), &m);
	assoc_rx(na.a, &nb.addr, p, len, now, &none);
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 1);
	stop_pair();
}

/* The client lost its side and connects again in the same lifecycle: old down before new up. */
static void test_assoc_reconnect_same_lifecycle(void)
{
	struct assoc_params pa = params("rid-a", 10);

	connect_pair();
	stop(&na);
	start(&na, 1, &pa);
	na.rand.s += 1000;
	assoc_dial(na.a, &nb.addr, 0, now);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.reason, ASSOC_DOWN_REPLACED);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	run(pair, 2, 60 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.downs, 0);
	CU_ASSERT_EQUAL(nb.downs, 1);
	stop_pair();
}

/* Both dial each other at once: one association, and it stays. */
static void test_assoc_both_dial(void)
{
	for (int order = 0; order < 2; order++) {
		struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);

		now = 1000 * SECOND;
		start(&na, 1, &pa);
		start(&nb, 2, &pb);
		assoc_dial(order ? nb.a : na.a, order ? &na.addr : &nb.addr, 0, now);
		if (order)
			run(pair, 2, 0, NULL);
		assoc_dial(order ? na.a : nb.a, order ? &nb.addr : &na.addr, 0, now);
		run(pair, 2, 120 * SECOND, NULL);
		CU_ASSERT_EQUAL(assoc_count(na.a), 1);
		CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
		CU_ASSERT(na.ups <= 2 && nb.ups <= 2);
		CU_ASSERT_EQUAL(na.last_up.peer->tx_id, nb.last_up.peer->rx_id);
		stop_pair();
	}
}

/* Reconnects far more often than there are slots: ids never repeat, slots come back. */
static void test_assoc_many_lives(void)
{
	uint64_t seen[300];

	connect_pair();
	for (uint32_t i = 0; i < T_COUNT(seen); i++) {
		seen[i] = nb.last_up.peer->rx_id;
		for (uint32_t k = 0; k < i; k++)
			CU_ASSERT(seen[k] != seen[i]);
		assoc_close(i % 2 ? na.a : nb.a, i % 2 ? na.last_up.slot : nb.last_up.slot,
			    WIRE_CLOSE_NORMAL, now);
		run(pair, 2, 500 * MS, NULL);
		CU_ASSERT_EQUAL(na.ups, i + 2);
	}
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
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
	T(test_assoc_other_version),
	T(test_assoc_cookie),
	T(test_assoc_never_amplifies),
	T(test_assoc_replay, "A-LIVE-7"),
	T(test_assoc_forged_answers),
	T(test_assoc_answers_are_bounded),
	T(test_assoc_truncated, "S-WIRE-1"),
	T(test_beacon_ids, "A-LIVE-1"),
	T(test_beacon_deadline, "A-LIVE-1", "A-LIVE-2"),
	T(test_assoc_cut_and_back, "A-LIVE-2", "A-LIVE-7"),
	T(test_assoc_one_peer_fails, "A-LIVE-6"),
	T(test_assoc_orderly_close, "A-LIVE-2", "A-LIVE-7"),
	T(test_assoc_shutdown, "A-LIVE-9"),
	T(test_assoc_new_lifecycle_of_server, "A-LIVE-7"),
	T(test_assoc_forged_unknown),
	T(test_assoc_reconnect_same_lifecycle, "A-LIVE-7"),
	T(test_assoc_both_dial),
	T(test_assoc_many_lives, "A-LIVE-7"),
	T(test_assoc_parameters),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("assoc", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
