/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane whose device always has more: what a pass takes, of whom, and when acknowledgements go.
 * One lane; the clock is the test's.
 */
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"

#include <CUnit/CUnit.h>

#define US 1000u

static struct t_node node;
static uint64_t now;

static int on_count(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	(*(uint64_t *)state)++;
	return SPL_DONE;
}

static int on_get(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	return spl_reply(turn, SPL_CONTENT_RAW, state, sizeof(uint64_t)) ? SPL_FAIL(0) : SPL_DONE;
}

/* Takes 150 us. */
static int on_spend(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	now += 150 * US;
	return SPL_DONE;
}

/* Which peer the messages came from, in the order of their turns. */
static uint8_t came_from[4096];
static unsigned n_came;
static uint64_t note_takes; /* ns */

static int on_note(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	now += note_takes;
	if (n_came < T_COUNT(came_from))
		came_from[n_came++] = *(const uint8_t *)msg->payload;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {{"count", SPL_TAKES_SEND, on_count},
					      {"get", SPL_TAKES_REQUEST, on_get},
					      {"spend", SPL_TAKES_SEND, on_spend},
					      {"note", SPL_TAKES_SEND, on_note}};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "t",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(uint64_t),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
};
static const struct spl_stage *const stages[] = {&stage};

static int eal_init(void)
{
	return t_eal_start(1);
}

static void start_with(unsigned peers, uint32_t pool_low, uint32_t records)
{
	struct t_node_conf c = {.lanes = 1, .stages = stages, .n_stages = 1, .fake_ns = &now};

	c.pool_low = pool_low;
	c.records = records;

	now = 1000000000;
	n_came = 0;
	note_takes = 0;
	t_node_start(&node, &c);
	for (unsigned i = 0; i < peers; i++)
		t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "s", "t"), SPOT_ACCEPTED);
	t_node_settle(&node);
	now += 1000 * US;
}

static void start(unsigned peers)
{
	start_with(peers, 0, 0);
}

/* The peer queues `n` messages for "s", each of which fills a packet. */
static void queue(struct t_peer *p, unsigned n, const char *packet, uint32_t budget_us)
{
	bool ask = strcmp(packet, "get") == 0;
	uint8_t m[WIRE_MSG_BYTES + 1000] = {0};
	struct wire_msg h = {.kind = ask ? SPL_MSG_SPOT_REQUEST : SPL_MSG_SPOT_SEND,
			     .target = spl_spot_key("s", 1),
			     .budget_us = budget_us};

	h.packet = spl_packet_key(packet, strlen(packet));
	while (n-- > 0) {
		h.correlation = ask ? p->next_correlation++ : 0;
		wire_msg_put(m, &h);
		t_peer_raw(p, 0, m, sizeof(m));
	}
}

/* The peer queues `n` messages "note" for "s" that say who it is, of `bytes` each; small ones share
 * packets. */
static void queue_notes(unsigned peer, unsigned n, uint32_t bytes)
{
	static uint8_t m[WIRE_MSG_BYTES + 65536];
	struct wire_msg h = {.kind = SPL_MSG_SPOT_SEND,
			     .target = spl_spot_key("s", 1),
			     .packet = spl_packet_key("note", 4)};

	wire_msg_put(m, &h);
	m[WIRE_MSG_BYTES] = (uint8_t)peer;
	while (n-- > 0)
		t_peer_raw(node.peer[peer], 0, m, WIRE_MSG_BYTES + bytes);
}

static void queue_all(unsigned n, const char *packet)
{
	for (unsigned i = 0; i < node.n_peers; i++)
		queue(node.peer[i], n, packet, 0);
}

/* Steps once; how much the counter has grown by it. */
static uint64_t step(enum spl_lane_counter c)
{
	uint64_t before = t_node_counter(&node, c);

	t_node_step(&node);
	return t_node_counter(&node, c) - before;
}

/* Everything is acknowledged, then the node ends. */
static void stop(void)
{
	for (int i = 0; i < 1000; i++) {
		now += 100 * US;
		t_node_step(&node);
	}
	t_node_settle(&node);
	t_node_stop(&node);
}

static void test_flood_is_taken_in_several_bursts(void)
{
	enum { PEERS = 3, EACH = 40 };

	start(PEERS);
	queue_all(EACH, "count");
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), PEERS * EACH);
	stop();
}

/* The pass ends after the burst whose replies wait. */
static void test_flood_does_not_hold_replies_back(void)
{
	enum { PEERS = 4, EACH = 40 };

	start(PEERS);
	queue_all(EACH, "get");
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), LANE_BURST);
	for (uint64_t turns = LANE_BURST; turns < PEERS * EACH; turns += LANE_BURST)
		CU_ASSERT_EQUAL(step(SPL_C_TURNS), LANE_BURST);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_REPLIES_SENT), PEERS * EACH);
	stop();
}

/* While buffers are low a pass takes no more than one burst, so that copying out keeps up. */
static void test_flood_waits_for_buffers(void)
{
	start_with(3, UINT32_MAX, 0);
	while (t_node_counter(&node, SPL_C_MBUFS_LOW) == 0)
		t_node_step(&node);
	queue_all(40, "count");
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), LANE_BURST);
	stop();
}

/* Those of a few passes go together, but none later than LANE_ACK_NS and the pass that is then. */
static void test_flood_acknowledges_in_time(void)
{
	enum { PEERS = 16, EACH = 60, PASS = LANE_BURST * LANE_BURSTS };

	start(PEERS);
	queue_all(EACH, "count");
	CU_ASSERT_FATAL(PEERS * EACH >= 3 * PASS);
	CU_ASSERT_TRUE(step(SPL_C_FRAMES_TX) > 0);
	now += LANE_ACK_NS - 1;
	CU_ASSERT_EQUAL(step(SPL_C_FRAMES_TX), 0);
	now += 1;
	CU_ASSERT_TRUE(step(SPL_C_FRAMES_TX) > 0);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_TURNS) - 2, 3 * PASS); /* two of creation */
	stop();
}

/* Bursts are taken until the pass has had its time. */
static void test_flood_pass_ends_in_time(void)
{
	start(4);
	for (unsigned i = 0; i < node.n_peers; i++) {
		queue(node.peer[i], LANE_BURST - 1, "count", 0);
		queue(node.peer[i], 1, "spend", 0);
	}
	CU_ASSERT_FATAL(LANE_BURSTS >= 4 && LANE_PASS_US > 150 && LANE_PASS_US < 300);
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), 2 * LANE_BURST);
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), 2 * LANE_BURST);
	stop();
}

/* The longest pass is known when the next one begins; what idles in between is not in it. */
static void test_flood_longest_pass_is_counted(void)
{
	start(1);
	queue(node.peer[0], 1, "spend", 0);
	t_node_step(&node);
	now += 7 * US;
	t_node_step(&node);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_LOOP_CYCLES_MAX), (150 + 7) * US);
	now += 1000 * US; /* that pass did nothing */
	t_node_step(&node);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_LOOP_CYCLES_MAX), (150 + 7) * US);
	stop();
}

/* What is left of a deadline counts from when the request came, not from when the pass began. */
static void test_flood_deadlines_begin_late_in_a_pass(void)
{
	start(2);
	queue(node.peer[0], LANE_BURST - 1, "count", 0);
	queue(node.peer[0], 1, "spend", 0);
	queue(node.peer[1], 1, "get", 100);
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), LANE_BURST + 1);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_EXPIRED), 0);
	stop();
}

/* Until all of them had their turns; the clock goes `us` a step. */
static void take_notes(unsigned n, unsigned us)
{
	for (int steps = 0; n_came < n && steps < 100000; steps++) {
		now += us * US;
		t_node_step(&node);
	}
	CU_ASSERT_FATAL(n_came >= n);
}

/* The most that came of one peer without another one's in between, from `at` on. */
static unsigned longest_run(unsigned at, unsigned peer)
{
	unsigned longest = 0, run = 0;

	for (; at < n_came; at++) {
		run = came_from[at] == peer ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* One burst, nearly all of it packets full of one peer's messages: it has its share, and the other
 * one is next, not last. */
static void test_share_of_a_flooding_peer(void)
{
	enum { FLOOD = 600, SHARE = LANE_PEER_BYTES / 256, PACKET = 32 };
	unsigned other = 0;

	start(2);
	queue_notes(0, FLOOD, 1);
	queue_notes(1, 1, 1);
	CU_ASSERT(step(SPL_C_TURNS) > SHARE + PACKET); /* the rest of the round is its as well */
	take_notes(FLOOD + 1, 10);
	while (came_from[other] == 0)
		other++;
	CU_ASSERT(other >= SHARE);
	CU_ASSERT(other < SHARE + PACKET); /* of the packet that goes beyond it */
	stop();
}

/* The Spot is slow and records are short, so that messages of all three wait in their flows: each
 * has a share, and the next round begins with the one behind it. */
static void test_shares_go_round(void)
{
	enum { PEERS = 3, EACH = 900, SHARE = LANE_PEER_BYTES / 256 };
	unsigned first = 0;

	start_with(PEERS, 0, 64);
	note_takes = 100 * US;
	for (unsigned i = 0; i < PEERS; i++)
		queue_notes(i, EACH, 1);
	take_notes(PEERS * EACH, 10);
	while (came_from[first] == 0) /* the first one came before there was any other */
		first++;
	for (unsigned i = 0; i < PEERS; i++)
		CU_ASSERT(longest_run(first, i) <= SHARE);
	stop();
}

static const struct t_case cases[] = {
	T(test_share_of_a_flooding_peer, "S-FAIR-4"),
	T(test_shares_go_round, "S-FAIR-4"),
	T(test_flood_is_taken_in_several_bursts),
	T(test_flood_does_not_hold_replies_back),
	T(test_flood_waits_for_buffers),
	T(test_flood_acknowledges_in_time),
	T(test_flood_pass_ends_in_time),
	T(test_flood_longest_pass_is_counted),
	T(test_flood_deadlines_begin_late_in_a_pass),
};
static const struct t_suite suites[] = {T_SUITE("flood", eal_init, t_eal_stop, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
