/* SPDX-License-Identifier: BSD-3-Clause */
/* Clauses that only show on a whole lane: the way from a packet to a turn and back, with the real
 * loop. Runs with 1, 2 and 3 lanes (T_LANES).
 */
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"
#include "tests/lib/t_wait.h"
#include "tests/vdev/t_stage.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <errno.h>
#include <stdlib.h>

static const struct spl_stage *const stages[] = {&t_stage};
static struct t_node node;
static struct t_peer *peer;

static void start(struct t_node_conf c)
{
	c.lanes = t_eal_lanes(2);
	c.stages = stages;
	c.n_stages = 1;
	t_node_start(&node, &c);
	peer = t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "b", "t"), SPOT_ACCEPTED);
}

static int eal_init(void)
{
	return t_eal_start(t_eal_lanes(2));
}

static struct t_stage_report report(const char *id)
{
	uint64_t c = t_peer_send(peer, SPL_MSG_SPOT_REQUEST, id, "get", NULL, 0, 0);
	struct t_stage_report out = {0};

	t_node_settle(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(peer, c));
	CU_ASSERT_EQUAL(t_peer_reply(peer, c)->kind, SPL_OK);
	memcpy(&out, t_peer_reply(peer, c)->data, sizeof(out));
	return out;
}

/* Makes Spot `id` hold its turn, until let_go(). */
static void hold(const char *id)
{
	unsigned before = node.n_events;

	t_peer_send(peer, SPL_MSG_SPOT_REQUEST, id, "ask", "nowhere", 7, 0);
	T_UNTIL(node.n_events > before, t_node_step(&node));
}

static void let_go(void)
{
	const struct lane_event *e = node.event[node.n_events - 1];
	struct lane_command c = {.verb = LANE_RESOLVED, .error = SPL_E_NOT_FOUND};

	c.correlation = e->correlation;
	c.lane = e->origin == SPOT_FROM_LANE ? (uint16_t)e->flow : e->lane;
	t_node_command(&node, &c);
}

static void steps(int n)
{
	while (n-- > 0)
		t_node_step(&node);
}

static void test_queued_before_the_fence_does_not_start_after_it(void)
{
	uint64_t one = 1;

	start((struct t_node_conf){0});
	hold("a");
	for (int i = 0; i < 5; i++)
		t_peer_send(peer, SPL_MSG_SPOT_SEND, "a", "add", &one, sizeof(one), 0);
	steps(20);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_MESSAGES_QUEUED), 5);
	atomic_store(&node.sh.lease_deadline, 0);
	let_go(); /* the accepted turn may finish */
	t_node_settle(&node);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_FENCED), 5);
	atomic_store(&node.sh.lease_deadline, UINT64_MAX);
	CU_ASSERT_EQUAL(report("a").count, 0);
	t_node_stop(&node);
}

/* A message whose metadata is broken: a request is told, a send is dropped and counted. */
static void test_malformed_messages_never_reach_a_spot(void)
{
	struct {
		uint8_t header[WIRE_MSG_BYTES];
		uint8_t meta[4];
	} m = {.meta = {200, 'k', 0, 1}}; /* a key of 200 bytes in 4 */
	struct wire_msg h = {.kind = SPL_MSG_SPOT_REQUEST,
			     .error = SPL_OK,
			     .meta_len = sizeof(m.meta),
			     .packet = spl_packet_key("add", 3),
			     .correlation = 77,
			     .target = spl_spot_key("a", 1)};
	unsigned lane, t_lanes;

	start((struct t_node_conf){0});
	t_lanes = node.sh.lanes;
	lane = spl_key_lane(&h.target, t_lanes);
	wire_msg_put(m.header, &h);
	t_peer_raw(peer, lane, &m, sizeof(m));
	t_node_settle(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(peer, 77));
	CU_ASSERT_EQUAL(t_peer_reply(peer, 77)->kind, SPL_E_PROTOCOL_ERROR);
	h.kind = SPL_MSG_SPOT_SEND;
	h.correlation = 0;
	wire_msg_put(m.header, &h);
	t_peer_raw(peer, lane, &m, sizeof(m));
	t_peer_raw(peer, lane, "short", 5);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_MALFORMED), 3);
	CU_ASSERT_EQUAL(report("a").count, 0);
	t_node_stop(&node);
}

static uint64_t send_content(uint16_t content, uint64_t correlation)
{
	uint8_t m[WIRE_MSG_BYTES + 8] = {0};
	struct wire_msg h = {.kind = SPL_MSG_SPOT_REQUEST,
			     .error = SPL_OK,
			     .content = content,
			     .packet = spl_packet_key("add", 3),
			     .correlation = correlation,
			     .target = spl_spot_key("a", 1)};

	wire_msg_put(m, &h);
	t_peer_raw(peer, spl_key_lane(&h.target, node.sh.lanes), m, sizeof(m));
	return correlation;
}

/* The content type is looked at when the turn begins: a message that is refused never is. */
static void test_refused_messages_are_not_decoded(void)
{
	start((struct t_node_conf){.queue_count = 16});
	hold("a");
	for (uint64_t i = 0; i < 16; i++)
		send_content(99, 1000 + i);
	steps(20);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_CONTENT_TYPE), 0);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_QUEUE_FULL), 1);
	let_go();
	t_node_settle(&node);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_CONTENT_TYPE), 15);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(peer, 1000));
	CU_ASSERT_EQUAL(t_peer_reply(peer, 1000)->kind, SPL_E_PROTOCOL_ERROR);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(peer, 1015));
	CU_ASSERT_EQUAL(t_peer_reply(peer, 1015)->kind, SPL_E_UNAVAILABLE);
	t_node_stop(&node);
}

/* "b" holds its turn: telling it something ends the teller's turn all the same. */
static void test_sends_do_not_hold_the_turn(void)
{
	start((struct t_node_conf){0});
	hold("b");
	t_peer_send(peer, SPL_MSG_SPOT_SEND, "a", "tell", "b", 1, 0);
	t_peer_send(peer, SPL_MSG_SPOT_SEND, "a", "tell", "a", 1, 0); /* itself: at the tail */
	steps(40);
	CU_ASSERT_EQUAL(report("a").count, 1);
	let_go();
	t_node_settle(&node);
	CU_ASSERT_EQUAL(report("b").count, 1);
	t_node_stop(&node);
}

/* The gate of a Spot is held; its queue takes messages, and so do all others. */
static void test_queue_and_gate_are_apart(void)
{
	uint64_t one = 1;

	start((struct t_node_conf){0});
	hold("a");
	for (int i = 0; i < 100; i++)
		t_peer_send(peer, SPL_MSG_SPOT_SEND, "a", "add", &one, sizeof(one), 0);
	t_peer_send(peer, SPL_MSG_SPOT_SEND, "b", "add", &one, sizeof(one), 0);
	steps(40);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_MESSAGES_QUEUED), 100);
	CU_ASSERT_EQUAL(report("b").count, 1);
	let_go();
	CU_ASSERT_EQUAL(report("a").count, 100);
	t_node_stop(&node);
}

/* Each Spot runs on the lane of its key and nowhere else, also one whose id reads like a place. */
static void test_a_spot_is_pinned_to_the_lane_of_its_key(void)
{
	static const char *const ids[] = {"p1",
					  "p2",
					  "p3",
					  "p4",
					  "lane-0",
					  "lane-2",
					  "other-0f8fad5b-d9cb-469f-a165-70867728950e"};
	uint64_t turns[T_NODE_LANES] = {0}, one = 1;

	start((struct t_node_conf){0});
	for (size_t i = 0; i < T_COUNT(ids); i++)
		CU_ASSERT_EQUAL_FATAL(t_node_create(&node, ids[i], "t"), SPOT_ACCEPTED);
	t_node_settle(&node);
	for (unsigned l = 0; l < node.sh.lanes; l++)
		turns[l] = node.sh.stats->lane[l].counter[SPL_C_TURNS];
	for (size_t i = 0; i < T_COUNT(ids); i++) {
		struct spl_key k = spl_spot_key(ids[i], strlen(ids[i]));

		for (int n = 0; n < 10; n++)
			t_peer_send(peer, SPL_MSG_SPOT_SEND, ids[i], "add", &one, sizeof(one), 0);
		turns[spl_key_lane(&k, node.sh.lanes)] += 10;
	}
	t_node_settle(&node);
	for (unsigned l = 0; l < node.sh.lanes; l++)
		CU_ASSERT_EQUAL(node.sh.stats->lane[l].counter[SPL_C_TURNS], turns[l]);
	for (size_t i = 0; i < T_COUNT(ids); i++)
		CU_ASSERT_EQUAL(report(ids[i]).count, 10);
	t_node_stop(&node);
}

static void test_the_replies_come_in_the_order_of_the_turns(void)
{
	uint64_t one = 1, first = 0, sum = 0, last = 0;

	start((struct t_node_conf){0});
	for (int i = 0; i < 100; i++) {
		uint64_t c =
			t_peer_send(peer, SPL_MSG_SPOT_REQUEST, "a", "add", &one, sizeof(one), 0);

		first = i ? first : c;
	}
	t_node_settle(&node);
	CU_ASSERT_EQUAL(peer->n_replies, 100);
	for (unsigned i = 0; i < peer->n_replies; i++) {
		memcpy(&sum, peer->reply[i].data, sizeof(sum));
		CU_ASSERT_EQUAL(sum, last + 1);
		CU_ASSERT_EQUAL(peer->reply[i].correlation, first + i);
		last = sum;
	}
	t_node_stop(&node);
}

/* A send is over when the link took it; what then fails is counted and tells nobody. */
static void test_failing_sends_are_counted_only(void)
{
	uint64_t one = 1;

	start((struct t_node_conf){0});
	for (int i = 0; i < 7; i++)
		t_peer_send(peer, SPL_MSG_SPOT_SEND, "nobody", "add", &one, sizeof(one), 0);
	for (int i = 0; i < 3; i++)
		t_peer_send(peer, SPL_MSG_SPOT_SEND, "a", "nothing", &one, sizeof(one), 0);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(peer->in_flight, 0);
	CU_ASSERT_EQUAL(peer->n_replies, 0);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_NO_SPOT), 7);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_NO_HANDLER), 3);
	t_peer_send(peer, SPL_MSG_SPOT_REQUEST, "a", "nothing", NULL, 0, 0);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(peer->n_replies, 1);
	t_node_stop(&node);
}

/* Closed and made again behind the sender's back: the new one answers. */
static void test_generation_is_no_match_condition(void)
{
	uint64_t one = 1;

	start((struct t_node_conf){0});
	t_peer_send(peer, SPL_MSG_SPOT_SEND, "a", "add", &one, sizeof(one), 0);
	CU_ASSERT_EQUAL(report("a").count, 1);
	CU_ASSERT_EQUAL(t_node_close(&node, "a"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(report("a").count, 0);
	t_node_stop(&node);
}

static void test_error_codes_map_one_to_one(void)
{
	uint8_t p[WIRE_MSG_BYTES];
	struct wire_msg h = {.kind = SPL_MSG_REPLY, .correlation = 1}, got;

	for (unsigned kind = 0; kind <= 0xff; kind++) {
		h.error = (uint8_t)kind;
		wire_msg_put(p, &h);
		if (kind < SPL_ERROR_COUNT || kind == SPL_OK) {
			CU_ASSERT_EQUAL(wire_msg_get(&got, p, sizeof(p)), 0);
			CU_ASSERT_EQUAL(got.error, kind);
		} else {
			CU_ASSERT_EQUAL(wire_msg_get(&got, p, sizeof(p)), -EBADMSG);
		}
	}
}

/* What a handler is given names no generation, owner, lease or place, and no error a retry. */
static void test_public_headers_keep_the_fence_inside(void)
{
	static const char *const files[] = {"include/spotlane/stage.h",
					    "include/spotlane/errors.h"};
	static const char *const words[] = {"generation", "obj_gen",  "own_gen",  "lease_gen",
					    "owner_id",	  "node_rid", "endpoint", "retry"};
	const char *root = getenv("SPL_SOURCE");
	char path[512];
	static char text[65536];

	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	for (size_t i = 0; i < T_COUNT(files); i++) {
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "%s/%s", root, files[i]);
		f = fopen(path, "r");
		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = '\0';
		CU_ASSERT(n > 1000);
		for (size_t k = 0; k < T_COUNT(words); k++)
			CU_ASSERT_PTR_NULL(strstr(text, words[k]));
	}
}

/* All that a message consists of reaches the handler, and nothing of the way it came. */
static void test_a_message_is_name_type_payload_and_metadata(void)
{
	uint8_t m[WIRE_MSG_BYTES + 16] = {0}, *meta = m + WIRE_MSG_BYTES;
	struct wire_msg h = {.kind = SPL_MSG_SPOT_REQUEST,
			     .error = SPL_OK,
			     .content = SPL_CONTENT_JSON,
			     .packet = spl_packet_key("look", 4),
			     .correlation = 5,
			     .target = spl_spot_key("a", 1)};
	struct t_stage_look look;
	int n;

	start((struct t_node_conf){0});
	n = wire_meta_set(meta, 0, 16, (struct pack_bytes){"k", 1}, (struct pack_bytes){"val", 3});
	CU_ASSERT_FATAL(n > 0);
	h.meta_len = (uint16_t)n;
	wire_msg_put(m, &h);
	memcpy(meta + n, "[1]", 3);
	t_peer_raw(peer, spl_key_lane(&h.target, node.sh.lanes), m,
		   WIRE_MSG_BYTES + (uint32_t)n + 3);
	t_node_settle(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(peer, 5));
	memcpy(&look, t_peer_reply(peer, 5)->data, sizeof(look));
	CU_ASSERT_EQUAL(look.content, SPL_CONTENT_JSON);
	CU_ASSERT_EQUAL(look.payload_bytes, 3);
	CU_ASSERT_EQUAL(look.metadata_bytes, (uint32_t)n);
	CU_ASSERT_EQUAL(look.correlation, 5);
	CU_ASSERT_EQUAL(look.source, 1000 + peer->slot);
	CU_ASSERT_TRUE(look.is_request);
	CU_ASSERT_TRUE(look.packet_is_look);
	CU_ASSERT(look.key_bytes == 1 && look.key[0] == 'k');
	CU_ASSERT(look.value_bytes == 3 && memcmp(look.value, "val", 3) == 0);
	t_node_stop(&node);
}

static const struct t_case cases[] = {
	T(test_a_message_is_name_type_payload_and_metadata, "S-MSG-2", "S-META-1"),
	T(test_queued_before_the_fence_does_not_start_after_it, "A-LEASE-8", "A-LEASE-7",
	  "S-LEASE-3"),
	T(test_malformed_messages_never_reach_a_spot, "S-ADM-4", "S-META-2"),
	T(test_refused_messages_are_not_decoded, "S-CODEC-2", "S-ADM-2"),
	T(test_sends_do_not_hold_the_turn, "S-DIR-5", "S-REENT-2"),
	T(test_queue_and_gate_are_apart, "S-GATE-1", "S-GATE-6"),
	T(test_a_spot_is_pinned_to_the_lane_of_its_key, "S-GATE-8", "S-ID-4"),
	T(test_the_replies_come_in_the_order_of_the_turns),
	T(test_failing_sends_are_counted_only, "A-ERR-1", "A-ERR-2"),
	T(test_generation_is_no_match_condition, "S-ADDR-5", "S-GEN-4"),
	T(test_error_codes_map_one_to_one, "A-ERR-6"),
	T(test_public_headers_keep_the_fence_inside, "S-GEN-3", "A-FAIL-8"),
};
static const struct t_suite suites[] = {T_SUITE("contract", eal_init, t_eal_stop, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
