/* SPDX-License-Identifier: BSD-3-Clause */
/* The application HWM of a node, which is the credit it has for its peers (S-LIM-10): at it the
 * node starts no more application messages, and everything else goes on. One lane.
 */
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"
#include "tests/lib/t_wait.h"
#include "tests/vdev/t_stage.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>

#define LEAST (256u << 10) /* of a flow, flow_params_default() */
#define COST  256u	   /* of a small message */

static struct t_node node;
static const struct spl_stage *const stages[] = {&t_stage};

static int eal_init(void)
{
	return t_eal_start(1);
}

static void start(unsigned peers, uint64_t credit)
{
	struct t_node_conf c = {.lanes = 1,
				.stages = stages,
				.n_stages = 1,
				.credit = credit,
				.queue_count = 65536};

	t_node_start(&node, &c);
	for (unsigned i = 0; i < peers; i++)
		t_node_peer(&node);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "a", "t"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "b", "t"), SPOT_ACCEPTED);
}

/* Makes "a" hold its turn: it asks one that is not there. Its request. */
static uint64_t hold(struct t_peer *p)
{
	uint64_t asked = t_peer_send(p, SPL_MSG_SPOT_REQUEST, "a", "ask", "nowhere", 7, 0);

	T_UNTIL(node.n_events > 0, t_node_step(&node));
	return asked;
}

/* The authority answers, the turn ends, and what waited for "a" has its turns. */
static void let_go(struct t_peer *p, uint64_t asked)
{
	struct lane_command c = {.verb = LANE_RESOLVED, .error = SPL_E_NOT_FOUND};

	c.correlation = node.event[0]->correlation;
	t_node_command(&node, &c);
	t_node_settle(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t_peer_reply(p, asked));
}

/* `n` messages `seq` for "a", numbered from `from`, as far as the flow has room for them. */
static void queue_seq(struct t_peer *p, uint64_t from, unsigned n)
{
	for (uint64_t v = from; v < from + n; v++)
		t_peer_send(p, SPL_MSG_SPOT_SEND, "a", "seq", &v, sizeof(v), 0);
}

static void steps(int n)
{
	while (n-- > 0)
		t_node_step(&node);
}

static struct t_stage_report report(struct t_peer *p, const char *id)
{
	uint64_t c = t_peer_send(p, SPL_MSG_SPOT_REQUEST, id, "get", NULL, 0, 0);
	struct t_stage_report out = {0};

	T_UNTIL(t_peer_reply(p, c) != NULL, t_node_step(&node));
	memcpy(&out, t_peer_reply(p, c)->data, sizeof(out));
	return out;
}

static uint64_t credit_left(void)
{
	return atomic_load(&node.sh.credit[WIRE_APP]);
}

/* Messages that were taken in and have not ended. */
static uint64_t under_way(void)
{
	return t_node_counter(&node, SPL_C_MESSAGES_QUEUED) +
	       t_node_counter(&node, SPL_C_MESSAGES_RUNNING);
}

/* The peer's credit is used up by what waits for a held Spot. It sends on, and nothing of that is
 * begun, lost or refused; its control messages and the replies to it go on, and so does the other
 * peer. When the turn ends all of it is handled, in order. */
static void test_full_node_stops_its_senders(void)
{
	enum { FIT = LEAST / COST - 2, MORE = 300 };
	struct t_stage_report r;
	struct t_peer *p, *other;
	uint64_t asked, control, failed;

	start(2, 2 * LEAST);
	p = node.peer[0];
	other = node.peer[1];
	report(other, "b"); /* its flow is open, and has its least */
	asked = hold(p);
	failed = t_node_fails(&node, -1);
	CU_ASSERT_EQUAL(credit_left(), 0); /* receive paused */
	queue_seq(p, 1, FIT + 1);
	T_UNTIL(under_way() == FIT + 2, t_node_step(&node));
	queue_seq(p, FIT + 2, MORE);
	steps(200);
	CU_ASSERT_EQUAL(under_way(), FIT + 2); /* to the byte */
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_MESSAGES_RUNNING), 1);
	CU_ASSERT_EQUAL(t_node_fails(&node, -1), failed);
	CU_ASSERT_EQUAL(t_node_drops(&node, SPL_DROP_LINK_CREDIT), 0);
	/* what does not wait for it */
	control = node.n_events;
	t_peer_control(p, 0, SPL_MSG_FIND, 77);
	T_UNTIL(node.n_events > control, t_node_step(&node));
	CU_ASSERT_EQUAL(report(other, "b").count, 0);
	CU_ASSERT_PTR_NULL(t_peer_reply(p, asked));
	let_go(p, asked); /* and its reply went to the one who is paused */
	r = report(other, "a");
	CU_ASSERT_EQUAL(r.count, FIT + 1 + MORE);
	CU_ASSERT_EQUAL(r.order_errors, 0);
	t_node_stop(&node);
}

/* A message larger than what the others leave is taken whole when they have given back what is
 * above their least; meanwhile the node does not take a part of it. */
static void test_largest_message_waits_for_credit(void)
{
	enum { BIG = 1000000 };
	static uint8_t bytes[BIG];
	uint64_t one = wire_charge(WIRE_MSG_BYTES + BIG), asked, c, seen;
	struct t_peer *p, *other;

	start(2, 2 * LEAST + one);
	p = node.peer[0];
	other = node.peer[1];
	report(other, "b");
	asked = hold(p);
	queue_seq(p, 1, 1023); /* a flow has room for 1024 messages */
	T_UNTIL(under_way() >= LEAST / COST, t_node_step(&node));
	queue_seq(p, 1024, 1000); /* it asks for more, and gets it of what is left */
	T_UNTIL(under_way() == 2024, t_node_step(&node));
	CU_ASSERT(credit_left() < one);
	seen = t_node_counter(&node, SPL_C_FRAMES_RX);
	c = t_peer_send(other, SPL_MSG_SPOT_REQUEST, "b", "echo", bytes, BIG, 0);
	steps(200);
	CU_ASSERT_PTR_NULL(t_peer_reply(other, c));
	CU_ASSERT(t_node_counter(&node, SPL_C_FRAMES_RX) - seen <
		  100); /* it asks; no piece comes */
	let_go(p, asked);
	T_UNTIL(t_peer_reply(other, c) != NULL, t_node_step(&node));
	CU_ASSERT_EQUAL(t_peer_reply(other, c)->bytes, BIG);
	t_node_stop(&node);
}

/* The cost of a message is known before its first byte is sent, so that no receive is outstanding
 * beyond the mark, with few peers or many, whatever they have waiting. */
static void overshoot(unsigned peers)
{
	uint64_t asked, pool = peers * (uint64_t)LEAST + 100 * COST;

	start(peers, pool);
	asked = hold(node.peer[0]);
	for (unsigned i = 0; i < peers; i++)
		queue_seq(node.peer[i], 1, 1023);
	for (int i = 0; i < 500; i++) {
		t_node_step(&node);
		CU_ASSERT_FATAL(under_way() * COST <= pool);
		for (unsigned k = 0; k < peers && i % 50 == 0; k++)
			if (flow_send_room(node.peer[k]->flow[0], WIRE_APP) > 20)
				queue_seq(node.peer[k], 1, 20);
	}
	CU_ASSERT_EQUAL(t_node_drops(&node, SPL_DROP_LINK_CREDIT), 0);
	let_go(node.peer[0], asked);
	t_node_stop(&node);
}

static void test_nothing_overshoots(void)
{
	overshoot(2);
	overshoot(12);
}

static const struct t_case cases[] = {
	T(test_full_node_stops_its_senders, "S-LIM-10", "S-LIM-14"),
	T(test_largest_message_waits_for_credit, "S-LIM-10"),
	T(test_nothing_overshoots, "S-LIM-11"),
};
static const struct t_suite suites[] = {T_SUITE("hwm", eal_init, t_eal_stop, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
