/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a test node needs none of its insides: its counters, summed over its lanes, the two laws
 * of reasons.h, control messages. Called by the test's thread while the lanes rest. */
#include "common/wire_msg.h"
#include "tests/lib/t_node.h"

#include <stdio.h>
#include <stdlib.h>

#include <CUnit/CUnit.h>

uint64_t t_node_counter(const struct t_node *n, enum spl_lane_counter c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n->sh.lanes; i++)
		sum += n->sh.stats->lane[i].counter[c];
	return sum;
}

static uint64_t sum_of(const struct t_node *n, const uint64_t *first, int which, int count)
{
	size_t offset = (size_t)((const uint8_t *)first - (const uint8_t *)&n->sh.stats->lane[0]);
	uint64_t sum = 0;

	for (unsigned i = 0; i < n->sh.lanes; i++) {
		const uint8_t *at = (const uint8_t *)&n->sh.stats->lane[i] + offset;
		const uint64_t *v = (const uint64_t *)(const void *)at;

		for (int k = 0; k < count; k++)
			if (which < 0 || which == k)
				sum += v[k];
	}
	return sum;
}

uint64_t t_node_fails(const struct t_node *n, int fail)
{
	return sum_of(n, n->sh.stats->lane[0].fail, fail, SPL_FAIL_COUNT);
}

uint64_t t_node_drops(const struct t_node *n, int drop)
{
	return sum_of(n, n->sh.stats->lane[0].drop, drop, SPL_DROP_COUNT);
}

uint64_t t_node_uses(const struct t_node *n, int use)
{
	return sum_of(n, n->sh.stats->lane[0].use, use, SPL_USE_COUNT);
}

static void check_lane(const struct spl_lane_stats *s)
{
	uint64_t frames = 0, fails = 0;

	for (int i = 0; i < SPL_USE_COUNT; i++)
		frames += s->use[i];
	for (int i = 0; i < SPL_DROP_COUNT; i++)
		frames += s->drop[i];
	for (int i = 0; i < SPL_FAIL_COUNT; i++)
		fails += s->fail[i];
	CU_ASSERT_EQUAL(s->counter[SPL_C_FRAMES_RX], frames);
	CU_ASSERT_EQUAL(s->counter[SPL_C_MESSAGES_ACCEPTED],
			s->counter[SPL_C_MESSAGES_FINISHED] + fails +
				s->counter[SPL_C_MESSAGES_QUEUED] +
				s->counter[SPL_C_MESSAGES_RUNNING]);
}

void t_node_check_laws(const struct t_node *n)
{
	for (unsigned i = 0; i < n->sh.lanes; i++)
		check_lane(&n->sh.stats->lane[i]);
}

void t_node_failure(struct t_node *n, struct lane_event *e)
{
	void *item = hop_tag(e, HOP_EVENT);

	n->failure = *e;
	snprintf(n->failure_name, sizeof(n->failure_name), "%.*s", (int)e->bytes,
		 (const char *)e->data);
	n->failures++;
	CU_ASSERT_EQUAL_FATAL(hop_push(&n->sh.hop, n->sh.lanes, e->lane, &item, 1), 1);
}

void t_peer_control(struct t_peer *p, unsigned lane, uint8_t kind, uint64_t correlation)
{
	struct wire_msg h = {.kind = kind, .error = SPL_OK, .correlation = correlation};
	uint8_t *m = malloc(WIRE_MSG_BYTES);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	wire_msg_put(m, &h);
	CU_ASSERT_EQUAL_FATAL(flow_send(p->flow[lane], WIRE_INFRA, m, WIRE_MSG_BYTES, m), 0);
	p->in_flight++;
}
