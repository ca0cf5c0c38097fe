/* SPDX-License-Identifier: BSD-3-Clause */
/* Logical Multicast on the real loop, with 1, 2 and 3 lanes (T_LANES): publishes of peers and of
 * Spots reach every subscriber of every lane once and in order, from the same bytes.
 */
#include "common/ids.h"
#include "common/wire_msg.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"
#include "tests/lib/t_wait.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

#define MEMBERS	 40
#define ORIGINS	 4
#define BIG_SIZE 5000u
#define FLOOD	 100u

struct member {
	struct spl_topic topic;
	uint64_t last[ORIGINS], order_errors, count, bytes;
	uint64_t sum; /* of the bytes of the last payload */
};

static struct {
	uint64_t count, order_errors, sum_errors;
	const void *big; /* where the last big payload was */
	bool big_differs;
} total;
static uint64_t big_sum;
static struct spl_topic news;
static int publish_rc;
static bool flooded;

/* Payload: u32 origin, u32 number, then anything. */
static int on_news(struct spl_turn *turn, void *state, const struct spl_message *m,
		   const struct spl_topic *topic)
{
	struct member *me = state;
	const uint8_t *p = m->payload;
	uint64_t sum = 0;
	uint32_t origin, number;

	memcpy(&origin, p, 4);
	memcpy(&number, p + 4, 4);
	if (origin >= ORIGINS || number != me->last[origin] + 1)
		total.order_errors++;
	else
		me->last[origin] = number;
	for (uint32_t i = 8; i < m->payload_bytes; i++)
		sum += (uint64_t)p[i] * (i + 1);
	if (m->payload_bytes == BIG_SIZE) {
		total.big_differs |= total.big && total.big != p;
		total.big = p;
		total.sum_errors += sum != big_sum;
	}
	total.count++;
	return SPL_DONE;
}

static int on_configure(struct spl_turn *turn, void *state)
{
	struct member *me = state;
	const struct spl_name *id = spl_spot_id(turn);

	if (id->len < 1 || id->b[0] != 'm')
		return SPL_DONE;
	me->topic = news;
	return spl_subscribe(turn, &me->topic, "news", on_news) == 0
		       ? SPL_DONE
		       : SPL_FAIL(SPL_E_INTERNAL_FAILURE);
}

/* Publishes its payload. */
static int on_publish(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	publish_rc |= spl_publish(turn, &news, spl_packet_key("news", 4), SPL_CONTENT_RAW,
				  m->payload, m->payload_bytes);
	return SPL_DONE;
}

/* Publishes FLOOD times in one turn, which a pass does not bring to all subscribers. */
static int on_flood(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	uint32_t v[2] = {2, 0};

	for (v[1] = 1; v[1] <= FLOOD; v[1]++)
		publish_rc |= spl_publish(turn, &news, spl_packet_key("news", 4), SPL_CONTENT_RAW,
					  v, sizeof(v));
	flooded = true;
	return SPL_DONE;
}

static char stuffed[8]; /* a Spot of the topic's lane */

/* Fills the ring to the topic's lane, so that its publish waits before it. */
static int on_stuff(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	uint32_t v[2] = {3, 1};
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, stuffed, strlen(stuffed)), 0);
	for (unsigned i = 0; i < HOP_SLOTS; i++)
		CU_ASSERT_EQUAL(spl_send(turn, &t, 1, SPL_CONTENT_RAW, NULL, 0), 0);
	publish_rc |=
		spl_publish(turn, &news, spl_packet_key("news", 4), SPL_CONTENT_RAW, v, sizeof(v));
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {{"publish", SPL_TAKES_SEND, on_publish},
					      {"flood", SPL_TAKES_SEND, on_flood},
					      {"stuff", SPL_TAKES_SEND, on_stuff}};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "member",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct member),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
	.on_configure = on_configure,
};
static const struct spl_stage *const stages[] = {&stage};
static struct t_node node;

static int eal_init(void)
{
	return t_eal_start(t_eal_lanes(2));
}

static void start(void)
{
	struct t_node_conf c = {.lanes = t_eal_lanes(2), .stages = stages, .n_stages = 1};
	char id[16];

	memset(&total, 0, sizeof(total));
	publish_rc = 0;
	CU_ASSERT_EQUAL(spl_topic_set(&news, "world", 5, "news", 4), 0);
	t_node_start(&node, &c);
	for (int i = 0; i < MEMBERS; i++) {
		snprintf(id, sizeof(id), "m%d", i);
		CU_ASSERT_EQUAL_FATAL(t_node_create(&node, id, "member"), SPOT_ACCEPTED);
	}
}

static void publish_on(struct t_peer *p, unsigned lane, const void *payload, uint32_t bytes)
{
	uint8_t message[WIRE_MSG_BYTES + BIG_SIZE];
	struct wire_msg h = {.kind = SPL_MSG_PUBLISH,
			     .error = SPL_OK,
			     .target = news.key,
			     .packet = spl_packet_key("news", 4)};

	wire_msg_put(message, &h);
	memcpy(message + WIRE_MSG_BYTES, payload, bytes);
	t_peer_raw(p, lane, message, WIRE_MSG_BYTES + bytes);
}

static void publish(struct t_peer *p, const void *payload, uint32_t bytes)
{
	publish_on(p, spl_key_lane(&news.key, t_eal_lanes(2)), payload, bytes);
}

/* Peers and Spots at the same time, packets lost: each origin's in its order, each once. */
static void test_cast_order(void)
{
	struct t_peer *p[2];
	uint32_t v[2];

	start();
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "p2", "member"), SPOT_ACCEPTED);
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, "p3", "member"), SPOT_ACCEPTED);
	for (int i = 0; i < 2; i++) {
		p[i] = t_node_peer(&node);
		p[i]->drop_every = 7;
	}
	for (v[1] = 1; v[1] <= 200; v[1]++) {
		for (v[0] = 0; v[0] < 2; v[0]++)
			publish(p[v[0]], v, sizeof(v));
		v[0] = 2;
		t_peer_send(p[0], SPL_MSG_SPOT_SEND, "p2", "publish", v, sizeof(v), 0);
		v[0] = 3;
		t_peer_send(p[1], SPL_MSG_SPOT_SEND, "p3", "publish", v, sizeof(v), 0);
		if (v[1] % 8 == 0)
			t_node_settle(&node);
	}
	t_node_settle(&node);
	CU_ASSERT_EQUAL(publish_rc, 0);
	CU_ASSERT_EQUAL(total.count, 200 * ORIGINS * MEMBERS);
	CU_ASSERT_EQUAL(total.order_errors, 0);
	t_node_stop(&node);
}

/* A message of several fragments: the same bytes at every subscriber, wherever it is. */
static void test_cast_large(void)
{
	static uint8_t payload[BIG_SIZE];
	struct t_peer *p;
	uint32_t v[2] = {0, 1};

	start();
	p = t_node_peer(&node);
	memcpy(payload, v, sizeof(v));
	big_sum = 0;
	for (uint32_t i = 8; i < BIG_SIZE; i++) {
		payload[i] = (uint8_t)(i * 31 + i / 256);
		big_sum += (uint64_t)payload[i] * (i + 1);
	}
	publish(p, payload, BIG_SIZE);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(total.count, MEMBERS);
	CU_ASSERT_EQUAL(total.sum_errors, 0);
	CU_ASSERT_FALSE(total.big_differs);
	t_node_stop(&node);
}

/* On a lane that is not the topic's: refused by name, and everybody else is served. */
static void test_cast_misdirected(void)
{
	unsigned lanes = t_eal_lanes(2);
	uint32_t v[2] = {0, 1};
	struct t_peer *p;

	start();
	p = t_node_peer(&node);
	if (lanes > 1) {
		publish_on(p, (spl_key_lane(&news.key, lanes) + 1) % lanes, v, sizeof(v));
		t_node_settle(&node);
	}
	CU_ASSERT_EQUAL(t_node_fails(&node, SPL_FAIL_NO_SPOT), lanes > 1);
	CU_ASSERT_EQUAL(total.count, 0);
	publish(p, v, sizeof(v));
	t_node_settle(&node);
	CU_ASSERT_EQUAL(total.count, MEMBERS);
	t_node_stop(&node);
}

/* The same command on every lane at once, as the agent does it; until all have answered. */
static void on_all_lanes(enum lane_verb verb)
{
	struct lane_command c[3];
	bool done[3] = {false};

	for (unsigned i = 0; i < node.sh.lanes; i++) {
		void *item = hop_tag(&c[i], HOP_COMMAND);

		c[i] = (struct lane_command){
			.verb = (uint8_t)verb, .lane = (uint16_t)i, .owner = &done[i]};
		CU_ASSERT_EQUAL_FATAL(hop_push(&node.sh.hop, node.sh.lanes, i, &item, 1), 1);
	}
	for (unsigned i = 0; i < node.sh.lanes; i++)
		T_UNTIL(done[i], t_node_step(&node));
}

/* A stop closes no Spot before every publish that has started is in the queues of its subscribers,
 * of whatever lane; after the seal none starts. */
static void test_cast_before_a_stop(void)
{
	static const char *const from[] = {"p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"};
	unsigned lanes = 0;

	for (unsigned i = 0; i < T_COUNT(from); i++) {
		struct spl_key key = spl_spot_key(from[i], 2);
		unsigned lane = spl_key_lane(&key, t_eal_lanes(2));
		struct t_peer *p;

		if (lanes & 1u << lane)
			continue;
		lanes |= 1u << lane;
		start();
		flooded = false;
		CU_ASSERT_EQUAL_FATAL(t_node_create(&node, from[i], "member"), SPOT_ACCEPTED);
		p = t_node_peer(&node);
		t_peer_send(p, SPL_MSG_SPOT_SEND, from[i], "flood", NULL, 0, 0);
		T_UNTIL(flooded, t_node_step(&node));
		CU_ASSERT_EQUAL(publish_rc, 0);
		on_all_lanes(LANE_SEAL);
		for (unsigned k = 0; k < LANE_SETTLES; k++)
			on_all_lanes(LANE_SETTLE);
		for (unsigned k = 0; k < node.sh.lanes; k++)
			CU_ASSERT_FALSE(spot_casts_waiting(node.lane[k]->spots));
		CU_ASSERT_EQUAL(total.count + t_node_counter(&node, SPL_C_MESSAGES_QUEUED),
				FLOOD * MEMBERS);
		flooded = false;
		t_node_settle(&node);
		CU_ASSERT_EQUAL(total.count, FLOOD * MEMBERS);
		CU_ASSERT_EQUAL(total.order_errors, 0);
		t_node_stop(&node);
	}
	CU_ASSERT_EQUAL(lanes, (1u << t_eal_lanes(2)) - 1);
}

/* Passes of lane `i` alone, until it has answered the one command that it has. */
static void until_answered(unsigned i)
{
	void *item[64];

	for (unsigned passes = 0; passes < 10000; passes++) {
		lane_pass(node.lane[i]);
		for (unsigned n = hop_pop(&node.sh.hop, i, node.sh.lanes, item, 64); n > 0; n--)
			if (hop_kind(item[n - 1]) == HOP_COMMAND)
				return;
	}
	CU_FAIL_FATAL("no answer");
}

/* All lanes settle, `last` not before the others have answered. */
static void settle_in_turn(unsigned last)
{
	struct lane_command c[3];

	for (unsigned i = 0; i < node.sh.lanes; i++) {
		void *item = hop_tag(&c[i], HOP_COMMAND);

		c[i] = (struct lane_command){.verb = LANE_SETTLE, .lane = (uint16_t)i};
		CU_ASSERT_EQUAL_FATAL(hop_push(&node.sh.hop, node.sh.lanes, i, &item, 1), 1);
	}
	for (unsigned i = 0; i < node.sh.lanes; i++)
		if (i != last)
			until_answered(i);
	until_answered(last);
}

/* The same with a publish that waits before the full ring to its topic's lane, and lanes that go as
 * far apart as they can. */
static void test_cast_before_a_stop_waits(void)
{
	unsigned lanes = t_eal_lanes(2), topic, sender = 0;
	struct lane_command c = {.verb = LANE_CALL};
	void *item = hop_tag(&c, HOP_COMMAND);
	char from[8] = "";

	start();
	topic = spl_key_lane(&news.key, lanes);
	for (unsigned i = 0; !stuffed[0] || !from[0]; i++) {
		char id[8];

		snprintf(id, sizeof(id), "p%u", i % 1000);
		c.key = spl_spot_key(id, strlen(id));
		if (spl_key_lane(&c.key, lanes) == topic)
			memcpy(stuffed, id, sizeof(id));
		if (lanes > 1 && spl_key_lane(&c.key, lanes) == topic)
			continue;
		memcpy(from, id, sizeof(id));
		sender = spl_key_lane(&c.key, lanes);
	}
	CU_ASSERT_EQUAL_FATAL(t_node_create(&node, from, "member"), SPOT_ACCEPTED);
	t_node_settle(&node);
	c.key = spl_spot_key(from, strlen(from));
	c.packet = spl_packet_key(lanes > 1 ? "stuff" : "flood", 5);
	CU_ASSERT_EQUAL_FATAL(hop_push(&node.sh.hop, lanes, sender, &item, 1), 1);
	until_answered(sender);
	CU_ASSERT_EQUAL(publish_rc, 0);
	CU_ASSERT(lanes == 1 || node.lane[sender]->n_later > 0);
	for (unsigned i = 0; i < lanes; i++)
		spot_lane_seal(node.lane[i]->spots);
	settle_in_turn(sender);
	settle_in_turn(topic);
	for (unsigned k = 2; k < LANE_SETTLES; k++)
		settle_in_turn(0);
	CU_ASSERT_EQUAL(total.count + t_node_counter(&node, SPL_C_MESSAGES_QUEUED),
			(lanes > 1 ? 1u : FLOOD) * MEMBERS);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(total.count, (lanes > 1 ? 1u : FLOOD) * MEMBERS);
	t_node_stop(&node);
}

static const struct t_case cases[] = {
	T(test_cast_before_a_stop, "S-MCAST-7", "S-DRAIN-3"),
	T(test_cast_before_a_stop_waits, "S-MCAST-7", "S-DRAIN-3"),
	T(test_cast_order, "S-MCAST-10", "S-MCAST-1"),
	T(test_cast_large, "S-MCAST-4"),
	T(test_cast_misdirected),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("cast", eal_init, t_eal_stop, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
