/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes that find no room: who waits, how long, and what he is told (S-LIM-5, S-MCAST-6). */
#include "tests/unit/spot/castrig.h"

#include "common/ids.h"
#include "dataplane/spot/cast.h"
#include "dataplane/spot/waiter.h"

#include <stdio.h>
#include <stdlib.h>

#define f test_rig

static int rc;
static struct spl_call *call;
static unsigned more; /* publishes than the line holds */
static int told_kind; /* 77: nobody was told */

static int told(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	told_kind = r->kind;
	return SPL_DONE;
}

#define LISTENERS (CAST_PASS + 500)

static int publishes(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	char text[16];

	if (m->payload_bytes == 1) { /* waits */
		rc = spl_publish_wait(turn, &cast_news, spl_packet_key("news", 4), SPL_CONTENT_TEXT,
				      "told", 4, 0, &call);
		if (rc)
			return SPL_DONE;
		CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
		return SPL_SUSPENDED;
	}
	for (unsigned i = 0; i < CASTS_MAX + more; i++) {
		snprintf(text, sizeof(text), "%u", i);
		CU_ASSERT_EQUAL(spl_publish(turn, &cast_news, spl_packet_key("news", 4),
					    SPL_CONTENT_TEXT, text, (uint32_t)strlen(text)),
				0);
	}
	return SPL_DONE;
}

static void start_publishes(uint32_t waiters)
{
	char id[64];

	cast_begin(1);
	fake_stop(&f); /* nothing is in it yet: a larger one */
	fake_init(&f, 1);
	f.conf.spots_max = f.conf.subscriptions = 4096;
	f.conf.object_bytes = 8 << 20;
	f.conf.records = 4096;
	f.conf.heap_bytes = 4 << 20;
	f.conf.waiters = waiters;
	more = 3;
	fake_start(&f);
	test_stage_probe = publishes;
	for (unsigned i = 0; i < LISTENERS; i++) {
		snprintf(id, sizeof(id), "l%u-world/news/news", i);
		cast_make(id);
	}
	fake_create(&f, "p", fake_stage(&test_stage));
	fake_create(&f, "q", fake_stage(&test_stage));
	fake_log_clear();
}

/* More than the line holds: the rest waits, starts in its order, and whoever waits is told. */
static void test_publish_waits(void)
{
	unsigned last = 0, n = 0;

	start_publishes(8);
	told_kind = 77;
	fake_send(&f, "p", "probe", "all");
	fake_send(&f, "q", "probe", "1");
	while (f.lane[0].l->waiters < 4)
		spot_run(f.lane[0].l, 1, f.now);
	CU_ASSERT_EQUAL(f.lane[0].l->topics.cast_count, CASTS_MAX);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 0);
	CU_ASSERT_EQUAL(told_kind, 77);
	CU_ASSERT(fake_law(&f));
	for (unsigned i = 0; i < 100000 && fake_pass(&f, 65536); i++) {
		for (unsigned k = 0; k < cast_n_seen; k++) {
			unsigned at;

			if (strcmp(cast_seen[k].id, "l7-world/news/news") != 0)
				continue;
			at = strcmp(cast_seen[k].text, "told") == 0
				     ? CASTS_MAX + 3
				     : (unsigned)atoi(cast_seen[k].text);
			CU_ASSERT_EQUAL(at, last);
			last = at + 1;
			n++;
		}
		cast_n_seen = 0; /* there are more of them than it notes */
	}
	CU_ASSERT_EQUAL(n, CASTS_MAX + 4);
	CU_ASSERT_EQUAL(told_kind, SPL_OK);
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, 0);
	test_stop();
}

/* No place in time, or no node any more: it has not started, and nobody gets it. */
static void test_publish_does_not_start(void)
{
	for (int how = 0; how < 3; how++) {
		static const int kind[] = {SPL_E_DEADLINE_EXCEEDED, SPL_E_SHUTTING_DOWN,
					   SPL_E_UNAVAILABLE};

		start_publishes(8);
		told_kind = 77;
		fake_send(&f, "p", "probe", "all");
		fake_send(&f, "q", "probe", "1");
		while (f.lane[0].l->waiters < 4)
			spot_run(f.lane[0].l, 1, f.now);
		if (how == 0)
			fake_advance(&f, 210 * (uint64_t)FAKE_MS);
		if (how == 1)
			spot_lane_seal(f.lane[0].l);
		if (how == 2)
			f.lease = f.now;
		for (unsigned i = 0; i < 100000 && fake_pass(&f, 65536); i++) {
			for (unsigned k = 0; k < cast_n_seen; k++)
				CU_ASSERT_STRING_NOT_EQUAL(cast_seen[k].text, "told");
			cast_n_seen = 0;
		}
		CU_ASSERT_EQUAL(f.lane[0].l->waiters, 0);
		f.lease = UINT64_MAX;
		fake_run(&f);
		CU_ASSERT_EQUAL(told_kind, kind[how]);
		test_stop();
	}
}

/* Only what this node sends waits: a peer has waited where it sent, and its publish is refused
 * while the line has no place. */
static void test_peers_do_not_wait(void)
{
	start_publishes(8);
	fake_send(&f, "p", "probe", "all");
	while (f.lane[0].l->waiters < 3)
		spot_run(f.lane[0].l, 1, f.now);
	cast_from_peer("world", "news", "news", "peer");
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, 3);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	CU_ASSERT(fake_law(&f));
	for (unsigned i = 0; i < 100000 && fake_pass(&f, 65536); i++) {
		for (unsigned k = 0; k < cast_n_seen; k++)
			CU_ASSERT_STRING_NOT_EQUAL(cast_seen[k].text, "peer");
		cast_n_seen = 0;
	}
	test_stop();
}

/* The whole line goes at once, and many wait for it: so many of them end, or start, in a step. */
static void test_many_in_steps(void)
{
	uint32_t before;

	start_publishes(3 * WAITER_STEP);
	more = 3 * WAITER_STEP;
	fake_send(&f, "p", "probe", "all");
	while (f.lane[0].l->waiters < more)
		spot_run(f.lane[0].l, 1, f.now);
	f.lane[0].l->lease = f.now; /* ends the line, and those who wait */
	(void)spot_casts_step(f.lane[0].l);
	CU_ASSERT_EQUAL(f.lane[0].l->topics.cast_count, 0);
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, 2 * WAITER_STEP);
	f.lane[0].l->lease = UINT64_MAX;
	for (before = f.lane[0].l->waiters; before > 0; before -= WAITER_STEP) {
		(void)spot_casts_step(f.lane[0].l);
		CU_ASSERT_EQUAL(f.lane[0].l->waiters, before - WAITER_STEP);
	}
	for (unsigned i = 0; i < 100000 && fake_pass(&f, 65536); i++)
		cast_n_seen = 0;
	CU_ASSERT(fake_law(&f));
	test_stop();
}

static const struct t_case cases[] = {
	T(test_publish_waits, "S-LIM-5", "S-MCAST-6"),
	T(test_publish_does_not_start, "S-LIM-6", "S-MCAST-6"),
	T(test_peers_do_not_wait, "S-LIM-5", "S-LIM-10"),
	T(test_many_in_steps, "S-LIM-9", "S-FAIR-3"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_cast_waits", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
