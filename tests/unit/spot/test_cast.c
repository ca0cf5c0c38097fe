/* SPDX-License-Identifier: BSD-3-Clause */
/* Logical Multicast: match, snapshot, order, full Spots, one payload, several lanes. */
#include "tests/unit/spot/castrig.h"

#include "common/ids.h"
#include "dataplane/spot/cast.h"

#include <errno.h>

#define f test_rig

/* T-MC-10: channel, topic and packet are compared whole; nothing else is. */
static void test_match(void)
{
	cast_begin(1);
	cast_make("a-world/news/news");
	cast_make("b-other/news/news");
	cast_make("c-world/newsX/news");
	cast_make("d-world/new/news");
	cast_make("e-world/News/news");
	cast_make("f-world/news/other");
	cast_make("g-world/sport/news-world/news/news");
	cast_from_peer("world", "news", "news", "hello");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	CU_ASSERT_EQUAL(cast_heard_by("a-world/news/news"), 1);
	CU_ASSERT_EQUAL(cast_heard_by("g-world/sport/news-world/news/news"), 1);
	CU_ASSERT_STRING_EQUAL(cast_seen[0].text, "hello");
	CU_ASSERT_STRING_EQUAL(cast_seen[0].topic, "news");
	CU_ASSERT_EQUAL(cast_seen[0].source, 5);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_SPOT), 0);
	test_stop();
}

/* T-MC-7, T-MC-9: nobody subscribed: it is done all the same; a channel this node does not know. */
static int foreign(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_topic t;

	CU_ASSERT_EQUAL(spl_topic_set(&t, "elsewhere", 9, "news", 4), 0);
	cast_publish_rc = spl_publish(turn, &t, 5, 0, NULL, 0);
	CU_ASSERT_EQUAL(spl_publish(turn, &cast_news, 0, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, NULL, 5, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, &cast_news, 5, 99, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, &cast_news, 5, 0, "x", f.conf.message_max + 1),
			-EMSGSIZE);
	return SPL_DONE;
}

static void test_nobody(void)
{
	uint64_t accepted;

	cast_begin(3);
	cast_make("p");
	accepted = fake_counter(&f, SPL_C_MESSAGES_ACCEPTED);
	fake_send(&f, "p", "publish", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_publish_rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_ACCEPTED), accepted + 2);
	CU_ASSERT_EQUAL(f.casts, 0);
	fake_create(&f, "t", fake_stage(&test_stage));
	test_stage_probe = foreign;
	fake_send(&f, "t", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_publish_rc, -ENOENT);
	CU_ASSERT_EQUAL(spl_error_of(cast_publish_rc), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(cast_n_seen, 0);
	test_stop();
}

/* T-MC-11: the publisher subscribed: a later turn, never inline. */
static void test_own(void)
{
	cast_begin(1);
	cast_make("a-world/news/news");
	fake_log_clear();
	fake_send(&f, "a-world/news/news", "publish", "x");
	fake_send(&f, "a-world/news/news", "add", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "add heard");
	CU_ASSERT_STRING_EQUAL(cast_seen[0].text, "x0");
	test_stop();
}

/* T-MC-2: every subscriber of every lane reads the same bytes, which are released once, when the
 * last one is done. */
static void test_one_payload(void)
{
	char id[64];

	cast_begin(3);
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		cast_make(id);
	}
	cast_from_peer("world", "news", "news", "one and the same");
	CU_ASSERT_EQUAL(f.buffers, 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 100);
	CU_ASSERT_EQUAL(f.casts, 2); /* one a lane, however many are there */
	for (unsigned i = 0; i < cast_n_seen; i++) {
		CU_ASSERT_PTR_EQUAL(cast_seen[i].payload, cast_seen[0].payload);
		CU_ASSERT_STRING_EQUAL(cast_seen[i].text, "one and the same");
	}
	CU_ASSERT_EQUAL(f.buffers, 0);
	CU_ASSERT_EQUAL(f.charged, 0);
	test_stop();
}

/* One of two has had it: the bytes stay for the other. The credit is back: how long it takes does
 * not stop the publisher (T-MC-12). */
static void test_until_the_last(void)
{
	cast_begin(1);
	fake_create(&f, "a-world/news/news", fake_stage(&cast_member));
	fake_create(&f, "b-world/news/news", fake_stage(&cast_member));
	cast_from_peer("world", "news", "news", "kept");
	spot_run(f.lane[0].l, 1, UINT64_MAX);
	CU_ASSERT_EQUAL(cast_n_seen, 1);
	CU_ASSERT_EQUAL(f.buffers, 1);
	CU_ASSERT_EQUAL(f.charged, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	CU_ASSERT_EQUAL(f.buffers, 0);
	test_stop();
}

/* The same when all who read it are in another lane. */
static void test_credit_of_other_lanes(void)
{
	uint32_t lane;
	char id[64];

	cast_begin(2);
	lane = spl_key_lane(&cast_news.key, 2);
	for (int i = 0;; i++) {
		struct spl_key key;

		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		key = fake_key(id);
		if (spl_key_lane(&key, 2) != lane)
			break;
	}
	cast_make(id);
	cast_from_peer("world", "news", "news", "x");
	CU_ASSERT_EQUAL(f.casts, 1);
	CU_ASSERT_EQUAL(f.charged, 0);
	CU_ASSERT_EQUAL(f.buffers, 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_heard_by(id), 1);
	CU_ASSERT_EQUAL(f.buffers, 0);
	test_stop();
}

/* Pool low: one copy for all. */
static void test_pool_low(void)
{
	cast_begin(1);
	cast_make("a-world/news/news");
	cast_make("b-world/news/news");
	f.pool_low = true;
	spot_lane_set(f.lane[0].l, f.lease, true, UINT32_MAX);
	cast_from_peer("world", "news", "news", "moved");
	CU_ASSERT_EQUAL(f.buffers, 0);
	CU_ASSERT_EQUAL(spot_copy_out(f.lane[0].l, 64), 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	CU_ASSERT_PTR_EQUAL(cast_seen[0].payload, cast_seen[1].payload);
	CU_ASSERT_STRING_EQUAL(cast_seen[1].text, "moved");
	test_stop();
}

/* Order of one origin under one topic, over lanes: T-MC-4 and the design's promise. */
static void test_order(void)
{
	static const char *const origins[] = {"p", "q", "r", "s"};
	unsigned last[40][4] = {{0}}, wrong = 0, total = 0;
	char id[64];

	cast_begin(3);
	for (int i = 0; i < 40; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		cast_make(id);
	}
	cast_publishes = 10;
	for (int i = 0; i < 4; i++)
		cast_make(origins[i]);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			char tag[2] = {(char)('A' + i), '\0'};

			fake_send(&f, origins[i], "publish", tag);
		}
		fake_pass(&f, 3);
	}
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 40 * 4 * 20);
	for (unsigned i = 0; i < cast_n_seen; i++) {
		unsigned who = (unsigned)(cast_seen[i].text[0] - 'A'), me = 0, k = 0;

		CU_ASSERT_EQUAL_FATAL(sscanf(cast_seen[i].id, "s%u-", &me), 1);
		CU_ASSERT_EQUAL_FATAL(sscanf(cast_seen[i].text + 1, "%u", &k), 1);
		wrong += k != last[me][who] % 10;
		last[me][who]++;
		total++;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(total, cast_n_seen);
	test_stop();
}

/* T-MC-8, T-MC-12: a Spot that is full, or whose turn waits, is passed over or waits alone; the
 * publisher is told nothing, and nothing is counted for it. */
static void test_full(void)
{
	cast_begin(1);
	fake_create(&f, "f-world/news/news", fake_stage(&cast_member_small));
	cast_make("a-world/news/news");
	cast_make("p");
	cast_publishes = 5;
	fake_send(&f, "p", "publish", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_publish_rc, 0);
	CU_ASSERT_EQUAL(cast_heard_by("a-world/news/news"), 5);
	CU_ASSERT_EQUAL(cast_heard_by("f-world/news/news"), 2);
	for (int i = 0; i < SPL_FAIL_COUNT; i++)
		CU_ASSERT_EQUAL(fake_failed(&f, (enum spl_message_fail)i), 0);
	/* The next one is served again: nothing was retried in between. */
	cast_n_seen = 0;
	cast_publishes = 1;
	fake_send(&f, "p", "publish", "y");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	test_stop();
}

/* T-MC-3, T-MC-13: who subscribes after the start is not in it; who has gone is not either. */
static void test_snapshot(void)
{
	uint64_t generation;
	struct spl_key late = fake_key("late-world/news/news");
	uint64_t late_generation;
	char id[64];

	cast_begin(1);
	generation = cast_make("gone-world/news/news");
	for (int i = 0; i < 2500; i++) { /* more than one pass looks at */
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		cast_make(id);
	}
	cast_from_peer("world", "news", "news", "first");
	CU_ASSERT_EQUAL(f.lane[0].l->topics.cast_head != 0, true);
	spot_run(f.lane[0].l, 0, UINT64_MAX); /* part of them has it in the queue */
	CU_ASSERT(f.lane[0].l->topics.cast_begun);
	late_generation =
		fake_prepare(&f, "late-world/news/news", fake_stage(&cast_member), NULL, 0);
	spot_run(f.lane[0].l, 8192, UINT64_MAX); /* the next part, and on_configure */
	spot_publish(f.lane[0].l, &late, late_generation, ++f.next_op, f.now);
	CU_ASSERT(f.lane[0].l->topics.cast_begun); /* Ready while it is on its way */
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2501);
	CU_ASSERT_EQUAL(cast_heard_by("late-world/news/news"), 0);
	cast_n_seen = 0;
	fake_close(&f, "gone-world/news/news", generation, SPL_CLOSING_EXPLICIT, 0);
	cast_from_peer("world", "news", "news", "second"); /* it is closing, not gone */
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_heard_by("gone-world/news/news"), 0);
	CU_ASSERT_EQUAL(cast_n_seen, 2501); /* "late" too */
	for (int i = 0; i < 2500; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		fake_close(&f, id, (uint64_t)i + 2, SPL_CLOSING_EXPLICIT, 0);
		if (i % 100 == 99)
			fake_run(&f);
	}
	cast_n_seen = 0;
	cast_from_peer("world", "news", "news", "third");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 1);
	CU_ASSERT_EQUAL(cast_heard_by("late-world/news/news"), 1);
	test_stop();
}

/* Subscribers that end while the publish is on its way to them. */
static void test_end_on_the_way(void)
{
	struct spot_lane *l;
	char id[64];

	cast_begin(1);
	l = f.lane[0].l;
	for (int i = 0; i < 1200; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		cast_make(id);
	}
	cast_from_peer("world", "news", "news", "x");
	cast_from_peer("world", "news", "news", "y");
	for (unsigned n = 0; n < 1024; n += spot_casts_step(l))
		;
	CU_ASSERT(l->topics.cast_begun);
	for (int i = 1000; i < 1200; i++) /* the next one of the way too */
		spot_subs_end(l,
			      test_spot((snprintf(id, sizeof(id), "s%d-world/news/news", i), id)));
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_heard_by("s1199-world/news/news"), 0);
	CU_ASSERT_EQUAL(cast_n_seen, 1024 + 1000);
	for (int i = 0; i < 1000; i++)
		spot_subs_end(l,
			      test_spot((snprintf(id, sizeof(id), "s%d-world/news/news", i), id)));
	CU_ASSERT_EQUAL(spot_topic_find(&l->topics, &cast_news.key), 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_match, "S-TOPIC-1", "S-MCAST-1", "S-MCAST-13", "S-MSG-3"),
	T(test_nobody, "S-MCAST-9", "S-MCAST-1", "S-NAME-2"),
	T(test_own, "S-MCAST-5"),
	T(test_one_payload, "S-MCAST-4", "S-META-3", "S-MCAST-15"),
	T(test_until_the_last, "S-MCAST-4", "S-MSG-4"),
	T(test_credit_of_other_lanes, "S-MCAST-12"),
	T(test_pool_low, "S-MCAST-4"),
	T(test_order, "S-MCAST-10"),
	T(test_full, "S-MCAST-8", "S-MCAST-11", "S-MCAST-12", "S-LIM-5"),
	T(test_snapshot, "S-MCAST-2", "S-MCAST-14", "S-TOPIC-3", "S-CLOSE-8"),
	T(test_end_on_the_way, "S-MCAST-14"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_cast", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
