/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane whose device always has more: what a pass takes, and when acknowledgements go. One lane;
 * the clock is the test's.
 */
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"
#include "tests/vdev/t_stage.h"

#include <CUnit/CUnit.h>

#define US 1000u

static const struct spl_stage *const stages[] = {&t_stage};
static struct t_node node;
static uint64_t now;

static int eal_init(void)
{
	return t_eal_start(1);
}

static void start(unsigned peers)
{
	struct t_node_conf c = {.lanes = 1, .stages = stages, .n_stages = 1, .fake_ns = &now};

	now = 1000000000;
	t_node_start(&node, &c);
	for (unsigned i = 0; i < peers; i++)
		t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "s", "t"), SPOT_ACCEPTED);
	now += 1000 * US;
}

/* Each peer queues `n` messages for "s", each of which fills a packet. */
static void queue(unsigned n, uint8_t kind, const char *packet)
{
	uint8_t m[WIRE_MSG_BYTES + 1000] = {0};
	struct wire_msg h = {.kind = kind, .target = spl_spot_key("s", 1)};

	h.packet = spl_packet_key(packet, strlen(packet));
	for (uint64_t k = 1; k <= n; k++) {
		h.correlation = kind == SPL_MSG_SPOT_REQUEST ? k : 0;
		wire_msg_put(m, &h);
		memcpy(m + WIRE_MSG_BYTES, &k, sizeof(k));
		for (unsigned i = 0; i < node.n_peers; i++)
			t_peer_raw(node.peer[i], 0, m, sizeof(m));
	}
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
	enum { PEERS = 4, EACH = 40 };

	start(PEERS);
	queue(EACH, SPL_MSG_SPOT_SEND, "seq");
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), PEERS * EACH);
	stop();
}

/* The pass ends after the burst whose replies wait. */
static void test_flood_does_not_hold_replies_back(void)
{
	enum { PEERS = 4, EACH = 40 };

	start(PEERS);
	queue(EACH, SPL_MSG_SPOT_REQUEST, "get");
	CU_ASSERT_EQUAL(step(SPL_C_TURNS), LANE_BURST);
	for (uint64_t turns = LANE_BURST; turns < PEERS * EACH; turns += LANE_BURST)
		CU_ASSERT_EQUAL(step(SPL_C_TURNS), LANE_BURST);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_REPLIES_SENT), PEERS * EACH);
	stop();
}

/* Those of a few passes go together, but none later than LANE_ACK_NS and the pass that is then. */
static void test_flood_acknowledges_in_time(void)
{
	enum { PEERS = 16, EACH = 60, PASS = LANE_BURST * LANE_BURSTS };

	start(PEERS);
	queue(EACH, SPL_MSG_SPOT_SEND, "seq");
	CU_ASSERT_FATAL(PEERS * EACH >= 3 * PASS);
	CU_ASSERT_TRUE(step(SPL_C_FRAMES_TX) > 0);
	now += LANE_ACK_NS - 1;
	CU_ASSERT_EQUAL(step(SPL_C_FRAMES_TX), 0);
	now += 1;
	CU_ASSERT_TRUE(step(SPL_C_FRAMES_TX) > 0);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_TURNS) - 2, 3 * PASS); /* two of creation */
	stop();
}

static const struct t_case cases[] = {
	T(test_flood_is_taken_in_several_bursts),
	T(test_flood_does_not_hold_replies_back),
	T(test_flood_acknowledges_in_time),
};
static const struct t_suite suites[] = {T_SUITE("flood", eal_init, t_eal_stop, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
