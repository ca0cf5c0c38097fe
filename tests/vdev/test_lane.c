/* SPDX-License-Identifier: BSD-3-Clause */
/* The real loop, in one process: frames in at a port of rings, through link, Spots and stage, and
 * frames out. Runs with 1, 2 and 3 lanes (T_LANES).
 */
#include "common/clock.h"
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"
#include "tests/lib/t_wait.h"
#include "tests/vdev/t_stage.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

static const struct spl_stage *const stages[] = {&t_stage};
static struct t_node node;

static void start(struct t_node_conf c)
{
	c.lanes = t_eal_lanes(2);
	c.stages = stages;
	c.n_stages = 1;
	t_node_start(&node, &c);
}

static int eal_init(void)
{
	return t_eal_start(t_eal_lanes(2));
}

static uint64_t ask_u64(struct t_peer *p, const char *id, const char *packet, uint64_t v)
{
	uint64_t c = t_peer_send(p, SPL_MSG_SPOT_REQUEST, id, packet, &v, sizeof(v), 0);
	const struct t_reply *r;
	uint64_t out = 0;

	t_node_settle(&node);
	r = t_peer_reply(p, c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->kind, SPL_OK);
	memcpy(&out, r->data, sizeof(out));
	return out;
}

/* Makes "a" hold its turn: it asks one that is not there. Its request. */
static uint64_t hold(struct t_peer *p)
{
	uint64_t asked = t_peer_send(p, SPL_MSG_SPOT_REQUEST, "a", "ask", "nowhere", 7, 0);

	T_UNTIL(node.n_events > 0, t_node_step(&node));
	return asked;
}

/* The authority answers, the turn ends, and its reply comes. */
static void let_go(struct t_peer *p, uint64_t asked)
{
	const struct lane_event *e = node.event[0];
	struct lane_command c = {.verb = LANE_RESOLVED, .error = SPL_E_NOT_FOUND};

	c.correlation = e->correlation;
	c.lane = e->origin == SPOT_FROM_LANE ? (uint16_t)e->flow : e->lane;
	t_node_command(&node, &c);
	t_node_settle(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(p, asked));
}

static struct t_stage_report report(struct t_peer *p, const char *id)
{
	uint64_t c = t_peer_send(p, SPL_MSG_SPOT_REQUEST, id, "get", NULL, 0, 0);
	struct t_stage_report out = {0};
	const struct t_reply *r;

	t_node_settle(&node);
	r = t_peer_reply(p, c);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL_FATAL(r->bytes, sizeof(out));
	memcpy(&out, r->data, sizeof(out));
	return out;
}

static int kind_of(struct t_peer *p, const char *id, const char *packet, const void *payload,
		   uint32_t bytes)
{
	uint64_t c = t_peer_send(p, SPL_MSG_SPOT_REQUEST, id, packet, payload, bytes, 0);
	const struct t_reply *r;

	t_node_settle(&node);
	r = t_peer_reply(p, c);
	return r ? r->kind : -1;
}

static void test_lane_answers_requests_and_takes_sends(void)
{
	struct t_peer *p;
	uint64_t v = 5;

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "b", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(ask_u64(p, "a", "add", 7), 7);
	t_peer_send(p, SPL_MSG_SPOT_SEND, "a", "add", &v, sizeof(v), 0);
	CU_ASSERT_EQUAL(ask_u64(p, "a", "add", 1), 13);
	CU_ASSERT_EQUAL(ask_u64(p, "b", "add", 3), 3);
	CU_ASSERT_EQUAL(t_node_fails(&node, -1), 0);
	t_node_stop(&node);
}

static void test_lane_error_kinds(void)
{
	struct t_peer *p;

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(kind_of(p, "a", "nothing", NULL, 0), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(kind_of(p, "a", "fail", NULL, 0), SPL_E_REJECTED);
	CU_ASSERT_EQUAL(kind_of(p, "a", "silent", NULL, 0), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(kind_of(p, "a", "add", "x", 1), SPL_E_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(kind_of(p, "nobody", "get", NULL, 0), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(t_node_close(&node, "a"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(kind_of(p, "a", "get", NULL, 0), SPL_E_UNAVAILABLE);
	t_node_stop(&node);
}

/* Two peers, twenty Spots, every 5th packet of the first is lost: nothing is lost, doubled or out
 * of order.
 */
static void test_lane_order_survives_loss(void)
{
	enum { SPOTS = 20, EACH = 500 };
	struct t_peer *lossy, *clean;
	char id[16];

	start((struct t_node_conf){0});
	lossy = t_node_peer(&node);
	clean = t_node_peer(&node);
	lossy->drop_every = 5;
	for (int i = 0; i < SPOTS; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		CU_ASSERT_EQUAL_FATAL(t_node_create(&node, id, "t"), SPOT_ACCEPTED);
	}
	for (uint64_t k = 1; k <= EACH; k++) {
		for (int i = 0; i < SPOTS; i++) {
			struct t_peer *p = i % 2 ? lossy : clean;

			snprintf(id, sizeof(id), "s%d", i);
			t_peer_send(p, SPL_MSG_SPOT_SEND, id, "seq", &k, sizeof(k), 0);
		}
		t_node_step(&node);
	}
	t_node_settle(&node);
	for (int i = 0; i < SPOTS; i++) {
		struct t_stage_report r;

		snprintf(id, sizeof(id), "s%d", i);
		r = report(clean, id);
		CU_ASSERT_EQUAL(r.count, EACH);
		CU_ASSERT_EQUAL(r.last, EACH);
		CU_ASSERT_EQUAL(r.order_errors, 0);
		CU_ASSERT_EQUAL(r.running_max, 1);
	}
	t_node_stop(&node);
}

/* Sends `k` to a "seq" handler in a packet of its own, with metadata or without. */
static void send_alone(struct t_peer *p, const char *id, uint64_t k, bool with_metadata)
{
	uint8_t m[WIRE_MSG_BYTES + 8 + 1000] = {0};
	struct wire_msg h = {.kind = SPL_MSG_SPOT_SEND, .target = spl_spot_key(id, strlen(id))};

	h.packet = spl_packet_key("seq", 3);
	if (with_metadata)
		h.meta_len = (uint16_t)wire_meta_set(m + WIRE_MSG_BYTES, 0, 8,
						     (struct pack_bytes){"k", 1},
						     (struct pack_bytes){"v", 1});
	wire_msg_put(m, &h);
	memcpy(m + WIRE_MSG_BYTES + h.meta_len, &k, sizeof(k));
	t_peer_raw(p, spl_key_lane(&h.target, node.sh.lanes), m, WIRE_MSG_BYTES + 1000);
}

/* Messages that go straight from the frame to a record keep their place among those of the same
 * sender that take the longer way, whichever are in one burst. */
static void test_lane_order_of_plain_and_other_messages(void)
{
	enum { MESSAGES = 2000 };
	struct t_rand rnd = {t_seed()};
	struct t_stage_report r;
	struct t_peer *p;
	unsigned plain = 0;

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "s", "t"), SPOT_ACCEPTED);
	for (uint64_t k = 1; k <= MESSAGES;) {
		for (unsigned n = 1 + t_rand_below(&rnd, 30); n > 0 && k <= MESSAGES; n--, k++) {
			bool with_metadata = t_rand_below(&rnd, 4) == 0;

			send_alone(p, "s", k, with_metadata);
			plain += !with_metadata;
		}
		t_node_step(&node);
	}
	t_node_settle(&node);
	r = report(p, "s");
	CU_ASSERT_EQUAL(r.count, MESSAGES);
	CU_ASSERT_EQUAL(r.order_errors, 0);
	CU_ASSERT_TRUE(plain > MESSAGES / 2 && plain < MESSAGES);
	t_node_stop(&node);
}

/* A device that does not look at checksums: a packet that would be the next of its flow is looked
 * at here. */
static void test_lane_sums_up_plain_messages(void)
{
	enum { MESSAGES = 200 };
	struct t_stage_report r;
	struct t_peer *p;

	start((struct t_node_conf){0});
	node.wire.vouches = false;
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "s", "t"), SPOT_ACCEPTED);
	p->spoil_every = 5;
	for (uint64_t k = 1; k <= MESSAGES; k++) {
		send_alone(p, "s", k, false);
		t_node_step(&node);
	}
	t_node_settle(&node);
	p->spoil_every = 0;
	r = report(p, "s");
	CU_ASSERT_EQUAL(r.count, MESSAGES);
	CU_ASSERT_EQUAL(r.order_errors, 0);
	CU_ASSERT_TRUE(p->spoiled >= MESSAGES / 5);
	CU_ASSERT_EQUAL(t_node_drops(&node, SPL_DROP_UDP_CHECKSUM), p->spoiled);
	t_node_stop(&node);
}

/* Frames that another lane handed over although they are for the first, or for the agent. */
static void test_lane_frames_steered_wrong(void)
{
	static const uint16_t off[] = {0, FRAME_AGENT_OFFSET};

	start((struct t_node_conf){0});
	if (node.sh.lanes == 1)
		CU_ASSERT_EQUAL(t_eal_lanes(2), 1); /* nobody to hand over to */
	for (size_t i = 0; i < T_COUNT(off) && node.sh.lanes > 1; i++) {
		struct t_frame f = t_frame_udp(&node.port.local, 0);
		struct rte_mbuf *m = rte_pktmbuf_alloc(node.sh.pool);
		void *item;

		CU_ASSERT_PTR_NOT_NULL_FATAL(m);
		f.dport = (uint16_t)(node.port.local.udp_base + off[i]);
		f.payload_len = 100;
		rte_pktmbuf_append(m, (uint16_t)t_frame_write(&f, rte_pktmbuf_mtod(m, uint8_t *)));
		m->port = node.port.id;
		item = hop_tag(m, HOP_FRAME);
		CU_ASSERT_EQUAL(hop_push(&node.sh.hop, 0, 1, &item, 1), 1);
		t_node_settle(&node);
		CU_ASSERT_EQUAL(t_node_drops(&node, SPL_DROP_LINK_LANE), i + 1);
	}
	t_node_stop(&node);
}

static void test_lane_hold_across_lanes(void)
{
	struct t_peer *p;
	char id[16], other[16];

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	for (int i = 0; i < 16; i++) {
		snprintf(id, sizeof(id), "h%d", i);
		CU_ASSERT_EQUAL_FATAL(t_node_create(&node, id, "t"), SPOT_ACCEPTED);
		CU_ASSERT_EQUAL(ask_u64(p, id, "add", (uint64_t)i), (uint64_t)i);
	}
	for (int i = 0; i < 16; i++) {
		struct t_stage_report r;
		uint64_t c;

		snprintf(id, sizeof(id), "h%d", i);
		snprintf(other, sizeof(other), "h%d", (i * 5 + 3) % 16);
		if (strcmp(id, other) == 0)
			continue;
		c = t_peer_send(p, SPL_MSG_SPOT_REQUEST, id, "ask", other, (uint32_t)strlen(other),
				0);
		t_node_settle(&node);
		CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(p, c));
		CU_ASSERT_EQUAL(t_peer_reply(p, c)->kind, SPL_OK);
		memcpy(&r, t_peer_reply(p, c)->data, sizeof(r));
		CU_ASSERT_EQUAL(r.sum, (uint64_t)((i * 5 + 3) % 16));
	}
	/* Itself, under HOLD: refused before anything was sent. */
	CU_ASSERT_EQUAL(kind_of(p, "h0", "ask", "h0", 2), SPL_E_INVALID_OPERATION);
	t_node_stop(&node);
}

/* A Spot asks for one that is not there: the authority is asked, and its answer ends the call. */
static void test_lane_missing_is_asked_for(void)
{
	struct t_peer *p;
	uint64_t asked;

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	asked = hold(p);
	CU_ASSERT_PTR_NULL(t_peer_reply(p, asked));
	CU_ASSERT_EQUAL(node.event[0]->kind, LANE_EV_MISSING);
	CU_ASSERT_EQUAL(node.event[0]->id.len, 7);
	CU_ASSERT_EQUAL(memcmp(node.event[0]->id.b, "nowhere", 7), 0);
	let_go(p, asked);
	CU_ASSERT_EQUAL(t_peer_reply(p, asked)->kind, SPL_E_NOT_FOUND);
	t_node_stop(&node);
}

static void test_lane_messages_up_to_the_limit(void)
{
	static uint8_t big[SPL_MESSAGE_BYTES_MAX];
	static const uint32_t sizes[] = {0,    1,    1000,  1100,
					 1200, 5000, 65536, SPL_MESSAGE_BYTES_MAX};
	struct t_peer *p;
	uint32_t n;

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	for (size_t i = 0; i < T_COUNT(sizes); i++) {
		uint64_t c = t_peer_send(p, SPL_MSG_SPOT_REQUEST, "a", "echo", big, sizes[i], 0);

		t_node_settle(&node);
		CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(p, c));
		CU_ASSERT_EQUAL(t_peer_reply(p, c)->kind, SPL_OK);
		CU_ASSERT_EQUAL(t_peer_reply(p, c)->bytes, sizes[i]);
	}
	n = SPL_MESSAGE_BYTES_MAX + 1;
	CU_ASSERT_EQUAL(kind_of(p, "a", "big", &n, sizeof(n)), SPL_E_CAPACITY_EXCEEDED);
	t_node_stop(&node);
}

static void test_lane_full_queue_refuses_and_holds_nobody_back(void)
{
	struct t_peer *p;
	uint64_t v = 1, asked;
	unsigned refused = 0;

	start((struct t_node_conf){.queue_count = 16});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "b", "t"), SPOT_ACCEPTED);
	asked = hold(p);
	for (int i = 0; i < 40; i++)
		t_peer_send(p, SPL_MSG_SPOT_REQUEST, "a", "add", &v, sizeof(v), 0);
	for (int i = 0; i < 64; i++)
		t_node_step(&node);
	for (unsigned i = 0; i < p->n_replies; i++)
		refused += p->reply[i].kind == SPL_E_UNAVAILABLE; /* another runtime's: S-ERR-3 */
	CU_ASSERT_EQUAL(refused, 40 - 15);
	CU_ASSERT_EQUAL(ask_u64(p, "b", "add", 2), 2);
	let_go(p, asked);
	CU_ASSERT_EQUAL(ask_u64(p, "a", "add", 1), 16);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_QUEUE_FULL), 25);
	t_node_stop(&node);
}

static void test_lane_fenced_starts_nothing(void)
{
	struct t_peer *p;

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(ask_u64(p, "a", "add", 1), 1);
	atomic_store(&node.sh.lease_deadline, 0);
	CU_ASSERT_EQUAL(kind_of(p, "a", "get", NULL, 0), SPL_E_UNAVAILABLE);
	CU_ASSERT(t_node_fails(&node, SPL_FAIL_FENCED) >= 1);
	atomic_store(&node.sh.lease_deadline, UINT64_MAX);
	CU_ASSERT_EQUAL(ask_u64(p, "a", "add", 1), 2);
	t_node_stop(&node);
}

/* Frames that are wrong above UDP, each with its own reason, and no message of them. */
static void test_lane_bad_packets_have_their_reason(void)
{
	struct frame_local l;
	struct t_peer *p;
	struct {
		const char *what;
		unsigned at;
		uint8_t value;
		unsigned len;
		int drop;
	} bad[] = {
		{"short", 0, 0x18, 39, SPL_DROP_LINK_SHORT},
		{"version", 0, 0x28, 48, SPL_DROP_LINK_VERSION},
		{"kind", 0, 0x1f, 48, SPL_DROP_LINK_KIND},
		{"handshake on a lane's port", 0, 0x12, 48, SPL_DROP_LINK_KIND},
		{"flags", 1, 0x02, 48, SPL_DROP_LINK_FLAGS},
		{"epoch", 2, 0x01, 48, SPL_DROP_LINK_FLAGS},
		{"flow", 8, 0x77, 48, SPL_DROP_LINK_FLOW},
		{"lane of the peer", 3, 0x05, 48, SPL_DROP_LINK_LANE},
		{"lane of ours", 4, 0x05, 48, SPL_DROP_LINK_LANE},
		{"class and port disagree", 1, 0x01, 48, SPL_DROP_LINK_LANE},
		{"record", 40, 0x3f, 48, SPL_DROP_LINK_RECORD},
	};

	start((struct t_node_conf){0});
	p = t_node_peer(&node);
	l = node.port.local;
	for (size_t i = 0; i < T_COUNT(bad); i++) {
		struct wire_hdr h = {.kind = SPL_PKT_FLOW, .id = 0x2222222200000000ull + p->slot};
		uint8_t pkt[64] = {0}, frame[T_FRAME_MAX];
		uint64_t before = t_node_drops(&node, bad[i].drop);
		struct t_frame f = t_frame_udp(&l, 0);

		wire_hdr_put(pkt, &h);
		pkt[bad[i].at] = bad[i].value;
		f.src_ip = p->ip;
		f.payload = pkt;
		f.payload_len = bad[i].len;
		t_port_push(&node.wire, frame, t_frame_write(&f, frame), 0);
		t_node_settle(&node);
		if (t_node_drops(&node, bad[i].drop) != before + 1)
			printf("not counted: %s\n", bad[i].what);
		CU_ASSERT_EQUAL(t_node_drops(&node, bad[i].drop), before + 1);
	}
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_MESSAGES_ACCEPTED), 0);
	t_node_stop(&node);
}

static void test_lane_low_pool_copies_out(void)
{
	struct t_peer *p;
	uint64_t asked, k;

	start((struct t_node_conf){.mbufs = 2048, .pool_low = 100000});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	asked = hold(p);
	for (k = 1; k <= 3000; k++) {
		t_peer_send(p, SPL_MSG_SPOT_SEND, "a", "seq", &k, sizeof(k), 0);
		t_node_step(&node);
	}
	for (int i = 0; i < 200; i++)
		t_node_step(&node);
	CU_ASSERT(t_node_counter(&node, SPL_C_LINK_COPIED_OUT) > 1000);
	let_go(p, asked);
	CU_ASSERT_EQUAL(report(p, "a").order_errors, 0);
	CU_ASSERT_EQUAL(report(p, "a").last, 3000);
	t_node_stop(&node);
}

/* Every record is taken by messages that wait: the rest wait in their flow, acknowledged and not
 * lost, and control messages pass all the same.
 */
static void test_lane_without_records_still_serves_control(void)
{
	struct spl_key key = spl_spot_key("a", 1);
	struct t_peer *p;
	uint64_t asked, k;
	unsigned lane;

	start((struct t_node_conf){.records = 128});
	p = t_node_peer(&node);
	lane = spl_key_lane(&key, node.sh.lanes);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	asked = hold(p);
	for (k = 1; k <= 600; k++)
		t_peer_send(p, SPL_MSG_SPOT_SEND, "a", "seq", &k, sizeof(k), 0);
	for (int i = 0; i < 50; i++)
		t_node_step(&node);
	CU_ASSERT(t_node_counter(&node, SPL_C_MESSAGES_QUEUED) < 128);
	t_peer_control(p, lane, SPL_MSG_RESOLVE, 4242);
	for (int i = 0; i < 50; i++)
		t_node_step(&node);
	CU_ASSERT_EQUAL_FATAL(node.n_events, 2);
	CU_ASSERT_EQUAL(node.event[1]->kind, LANE_EV_MESH);
	CU_ASSERT_EQUAL(node.event[1]->correlation, 4242);
	let_go(p, asked);
	CU_ASSERT_EQUAL(report(p, "a").last, 600);
	CU_ASSERT_EQUAL(report(p, "a").order_errors, 0);
	t_node_stop(&node);
}

/* The same, and then the peer goes: what waited for a record goes with it, and nothing of it stays.
 */
static void test_lane_peer_may_go_while_its_messages_wait(void)
{
	struct t_peer *stays, *goes;
	uint64_t asked, k;

	start((struct t_node_conf){.records = 128});
	stays = t_node_peer(&node);
	goes = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	asked = hold(stays);
	for (k = 1; k <= 600; k++)
		t_peer_send(goes, SPL_MSG_SPOT_SEND, "a", "add", &k, sizeof(k), 0);
	for (int i = 0; i < 50; i++)
		t_node_step(&node);
	t_node_peer_gone(&node);
	CU_ASSERT(t_node_fails(&node, SPL_FAIL_NO_RECORD) > 0);
	let_go(stays, asked);
	t_node_stop(&node);
}

/* A handler that fails without a sender to be told: one line for the log in a second, with what
 * nobody was told of in between. */
static void test_lane_tells_of_failures(void)
{
	uint64_t now = 1000 * (uint64_t)CLOCK_NS_PER_S;
	struct t_peer *p;

	start((struct t_node_conf){.fake_ns = &now});
	p = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	for (int i = 0; i < 5; i++)
		t_peer_send(p, SPL_MSG_SPOT_SEND, "a", "add", "x", 1, 0); /* no u64 */
	for (int i = 0; i < 200; i++, now += 100000)
		t_node_step(&node);
	CU_ASSERT_EQUAL(node.failures, 1);
	CU_ASSERT_EQUAL(node.failure.error, SPL_E_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(node.failure.id.len, 0); /* not in the log, so not on the way to it */
	CU_ASSERT_STRING_EQUAL(node.failure.stage->desc->type, "t");
	CU_ASSERT_STRING_EQUAL(node.failure_name, "add");
	CU_ASSERT_EQUAL(node.failure.correlation, 0);
	now += CLOCK_NS_PER_S;
	t_peer_send(p, SPL_MSG_SPOT_SEND, "a", "add", "x", 1, 0);
	for (int i = 0; i < 200; i++, now += 100000)
		t_node_step(&node);
	CU_ASSERT_EQUAL(node.failures, 2);
	CU_ASSERT_EQUAL(node.failure.correlation, 4);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_HANDLER), 6);
	t_node_stop(&node);
}

/* Turns that overran go the same way, beside the failures: one in a second, with its length. */
static void test_lane_tells_of_overruns(void)
{
	uint64_t now = 1000 * (uint64_t)CLOCK_NS_PER_S;
	struct spot_overrun o = {.name = "add", .name_bytes = 3, .cycles = 3000000};

	start((struct t_node_conf){.fake_ns = &now});
	o.stage = &node.stage[0];
	t_node_settle(&node);
	for (int i = 0; i < 3; i++)
		lane_env.overran(node.lane[0], &o);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(node.failures, 1);
	CU_ASSERT_EQUAL(node.failure.kind, LANE_EV_OVERRAN);
	CU_ASSERT_EQUAL(node.failure.deadline, 3000000);
	CU_ASSERT_STRING_EQUAL(node.failure_name, "add");
	now += CLOCK_NS_PER_S;
	t_node_settle(&node);
	lane_env.overran(node.lane[0], &o);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(node.failures, 2);
	CU_ASSERT_EQUAL(node.failure.correlation, 2);
	t_node_stop(&node);
}

static const struct t_case cases[] = {
	T(test_lane_answers_requests_and_takes_sends, "S-DIR-4", "S-DIR-6"),
	T(test_lane_error_kinds, "S-DIR-10"),
	T(test_lane_order_survives_loss, "S-TURN-2", "S-GATE-2", "S-TURN-3"),
	T(test_lane_order_of_plain_and_other_messages, "S-TURN-2", "S-TURN-3"),
	T(test_lane_sums_up_plain_messages),
	T(test_lane_frames_steered_wrong),
	T(test_lane_hold_across_lanes, "S-TURN-4"),
	T(test_lane_missing_is_asked_for),
	T(test_lane_messages_up_to_the_limit, "S-MSG-6"),
	T(test_lane_full_queue_refuses_and_holds_nobody_back, "S-ERR-3", "S-LIM-1"),
	T(test_lane_fenced_starts_nothing, "S-LEASE-2"),
	T(test_lane_bad_packets_have_their_reason),
	T(test_lane_tells_of_failures, "S-TURN-10"),
	T(test_lane_tells_of_overruns, "S-FAIR-3"),
	T(test_lane_low_pool_copies_out),
	T(test_lane_without_records_still_serves_control),
	T(test_lane_peer_may_go_while_its_messages_wait, "A-DRAIN-10"),
};
static const struct t_suite suites[] = {T_SUITE("lane", eal_init, t_eal_stop, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
