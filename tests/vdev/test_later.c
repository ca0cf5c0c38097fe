/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring to another lane is full: what waits for it, how much, in which order, and how long. Two
 * lanes; the test passes them one by one, so that the ring stays full as long as it likes.
 */
#include "common/ids.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>

#define LANES	2
#define WAITERS 64u /* t_node's */
#define MS	UINT64_C(1000000)

static struct t_node node;
static uint64_t now_ns;
static char from[16], to[16]; /* Spots of lane 0 and lane 1 */
static uint32_t runs, burst, refused, heard, order_errors;
static int refused_rc, told_kind;

static int told(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	told_kind = r->kind;
	return SPL_DONE;
}

static int send_number(struct spl_turn *turn, const struct spl_target *t, uint32_t n)
{
	return spl_send(turn, t, spl_packet_key("number", 6), SPL_CONTENT_RAW, &n, sizeof(n));
}

/* `burst` numbers to the other lane; "told" adds one that it waits for. */
static int on_burst(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	struct spl_call *call;
	uint32_t n = 0;

	runs++;
	CU_ASSERT_EQUAL(spl_target_set(&t, to, strlen(to)), 0);
	for (; n < burst; n++) {
		int rc = send_number(turn, &t, n);

		if (rc) {
			refused_rc = rc;
			refused++;
		}
	}
	if (m->payload_bytes == 0)
		return SPL_DONE;
	if (spl_send_wait(turn, &t, spl_packet_key("number", 6), SPL_CONTENT_RAW, &n, sizeof(n), 0,
			  &call))
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
	return SPL_SUSPENDED;
}

static int on_number(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	uint32_t n;

	memcpy(&n, m->payload, sizeof(n));
	order_errors += n != heard;
	heard++;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"burst", SPL_TAKES_SEND, on_burst},
	{"number", SPL_TAKES_SEND, on_number},
};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "burst",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 16,
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
};
static const struct spl_stage *const stages[] = {&stage};

static int eal_init(void)
{
	return t_eal_start(LANES);
}

static void make(char id[16], unsigned lane)
{
	for (unsigned i = 0;; i++) {
		struct spl_key key;

		snprintf(id, 16, "b%u", i);
		key = spl_spot_key(id, strlen(id));
		if (spl_key_lane(&key, LANES) == lane)
			break;
	}
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, id, "burst"), SPOT_ACCEPTED);
}

/* The handler has run in lane 0, and lane 1 has seen nothing of it. */
static void start(uint32_t n, const char *payload)
{
	struct t_node_conf c = {
		.lanes = LANES, .stages = stages, .n_stages = 1, .fake_ns = &now_ns};
	static struct lane_command call;
	static bool done;
	void *item = hop_tag(&call, HOP_COMMAND);

	now_ns = 1000 * MS;
	burst = n;
	runs = refused = heard = order_errors = 0;
	refused_rc = 0;
	told_kind = 77;
	t_node_start(&node, &c);
	make(from, 0);
	make(to, 1);
	call = (struct lane_command){.verb = LANE_CALL,
				     .owner = &done,
				     .data = payload,
				     .bytes = (uint32_t)strlen(payload),
				     .packet = spl_packet_key("burst", 5),
				     .key = spl_spot_key(from, strlen(from))};
	CU_ASSERT_EQUAL(hop_push(&node.sh.hop, LANES, 0, &item, 1), 1);
	lane_pass(node.lane[0]);
	CU_ASSERT_EQUAL(runs, 1);
}

/* As many as the ring and the line hold, all in their order. */
static void test_order(void)
{
	start(HOP_SLOTS + WAITERS + 100, "");
	CU_ASSERT_EQUAL(node.lane[0]->n_later, WAITERS);
	CU_ASSERT(refused >= 100 && refused <= 102); /* a ring holds one less, and the agent's */
	CU_ASSERT_EQUAL(refused_rc, -ETIMEDOUT);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(heard, burst - refused);
	CU_ASSERT_EQUAL(order_errors, 0);
	CU_ASSERT_EQUAL(node.lane[0]->n_later, 0);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_SENDS_EXPIRED), 0);
	t_node_stop(&node);
}

/* No room in time: it never leaves the lane, whoever waits is told so, and a later one is. */
static void test_time(void)
{
	start(HOP_SLOTS, "told");
	CU_ASSERT(node.lane[0]->n_later >= 1);
	now_ns += 999 * MS; /* send_ms is 1000 */
	lane_pass(node.lane[0]);
	CU_ASSERT_EQUAL(told_kind, 77);
	now_ns += 2 * MS;
	lane_pass(node.lane[0]);
	lane_pass(node.lane[0]);
	CU_ASSERT_EQUAL(told_kind, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(node.lane[0]->n_later, 0);
	t_node_settle(&node);
	CU_ASSERT(t_node_counter(&node, SPL_C_SENDS_EXPIRED) >= 1);
	CU_ASSERT_EQUAL(heard + t_node_counter(&node, SPL_C_SENDS_EXPIRED), burst + 1);
	CU_ASSERT_EQUAL(order_errors, 0);
	t_node_stop(&node);
}

/* Room in time: it is told that, after everything before it. */
static void test_told(void)
{
	start(HOP_SLOTS, "told");
	t_node_settle(&node);
	CU_ASSERT_EQUAL(told_kind, SPL_OK);
	CU_ASSERT_EQUAL(heard, burst + 1);
	CU_ASSERT_EQUAL(order_errors, 0);
	t_node_stop(&node);
}

/* Replies that wait for a peer's link or for a ring are counted while they do, however it ends. */
static void test_replies_that_wait(void)
{
	struct t_node_conf c = {.lanes = LANES, .stages = stages, .n_stages = 1};
	unsigned tried = HOP_SLOTS + 10, first = 0;
	uint64_t late, flow;
	struct lane *l;

	t_node_start(&node, &c);
	l = node.lane[0];
	CU_ASSERT(t_node_counter(&node, SPL_C_REPLIES_MAX) > LANES * 1000);
	CU_ASSERT(t_node_counter(&node, SPL_C_REPLIES_MAX) <
		  LANES * l->mem->bytes / sizeof(struct lane_message));
	make(from, 0);
	t_peer_send(t_node_peer(&node), SPL_MSG_SPOT_SEND, from, "number", &first, 4, 0);
	t_node_settle(&node); /* the flow is open */
	flow = lane_flow_ref(l->peer[0].generation, 0, 0);
	for (unsigned i = 0; i < 4000; i++) /* more than its window */
		CU_ASSERT_EQUAL_FATAL(lane_reply_link(l, flow, 1000 + i, 0, 0, NULL, 0), 0);
	late = t_node_counter(&node, SPL_C_REPLIES_WAITING);
	CU_ASSERT(late > 0 && late < 4000);
	for (unsigned i = 0; i < tried; i++) { /* and nobody waits for these */
		struct lane_message *m = lane_message_new(l, 0);

		m->kind = SPL_MSG_REPLY;
		m->error = SPL_OK;
		m->content = 0;
		m->correlation = 1;
		CU_ASSERT_EQUAL_FATAL(lane_push(l, m, 1, 0), 0);
	}
	CU_ASSERT(t_node_counter(&node, SPL_C_REPLIES_WAITING) >= late + 10);
	CU_ASSERT(t_node_counter(&node, SPL_C_REPLIES_WAITING) <= late + 12);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_REPLIES_WAITING), 0);
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_NO_CALL), tried);
	for (unsigned i = 0; i < 4000; i++)
		CU_ASSERT_EQUAL_FATAL(lane_reply_link(l, flow, 1000 + i, 0, 0, NULL, 0), 0);
	late = t_node_counter(&node, SPL_C_REPLIES_WAITING);
	CU_ASSERT(late > 0);
	t_node_peer_gone(&node);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_REPLIES_WAITING), 0);
	CU_ASSERT(t_node_counter(&node, SPL_C_REPLIES_LOST) > 0);
	t_node_stop(&node);
}

static const struct t_case cases[] = {
	T(test_replies_that_wait, "S-OBS-3", "S-MET-4"),
	T(test_order, "S-LIM-5", "S-LIM-9", "S-DIR-8"),
	T(test_time, "S-LIM-6", "S-LIM-8", "S-DIR-8"),
	T(test_told, "S-LIM-6", "S-DIR-4"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("later", eal_init, t_eal_stop, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
