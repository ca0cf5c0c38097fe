/* SPDX-License-Identifier: BSD-3-Clause */
/* Logical Multicast: what is refused, what fails, what is full, and that nothing is left behind. */
#include "tests/unit/spot/castrig.h"

#include "common/ids.h"
#include "dataplane/spot/cast.h"

#include <errno.h>

#define f test_rig

static int configure_rc[6];
static int configure_returns = SPL_DONE;
static int configures_only(struct spl_turn *turn, void *state)
{
	struct spl_target t;
	struct spl_call *c;

	CU_ASSERT_PTR_NOT_NULL(spl_spot_id(turn));
	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	configure_rc[0] = spl_send(turn, &t, 5, 0, NULL, 0);
	configure_rc[1] = spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_HOLD, &c);
	configure_rc[2] = spl_publish(turn, &cast_news, 5, 0, NULL, 0);
	configure_rc[3] = spl_reply(turn, 0, NULL, 0);
	configure_rc[4] =
		spl_timer_start(turn, "x", 1, 1, (spl_timer_fn)(void *)configures_only, NULL, NULL);
	configure_rc[5] = spl_close_self(turn);
	return configure_returns;
}

static const struct spl_stage configuring = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "configuring",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.on_configure = configures_only,
};

/* T-MC-10, T-KIND-3: the table of refused subscriptions: no Spot comes of any of them. */
static void test_refused(void)
{
	static const struct {
		const char *id;
		const struct spl_stage *stage;
		uint8_t kind;
	} rows[] = {
		{"a-world/news/news-world/news/news", &cast_member, SPL_E_INVALID_OPERATION},
		{"b-elsewhere/news/news", &cast_member, SPL_E_NOT_CONFIGURED},
		{"c-world/news/news", &cast_member_instance, SPL_E_INVALID_OPERATION},
	};

	cast_begin(3);
	for (unsigned i = 0; i < T_COUNT(rows); i++) {
		fake_log_clear();
		fake_prepare(&f, rows[i].id, fake_stage(rows[i].stage), NULL, 0);
		fake_run(&f);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_FAILED);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->error, rows[i].kind);
		CU_ASSERT_STRING_EQUAL(fake_logged(), "configure"); /* and nothing after it */
		CU_ASSERT_PTR_NULL(test_spot(rows[i].id));
	}
	cast_from_peer("world", "news", "news", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 0);
	fake_log_clear();
	cast_make("d-world/news/news");
	CU_ASSERT_STRING_EQUAL(fake_logged(), "configure create-after");
	fake_create(&f, "e", fake_stage(&configuring));
	for (unsigned i = 0; i < T_COUNT(configure_rc); i++)
		CU_ASSERT_EQUAL(configure_rc[i], -EINVAL);
	/* Only on_create may decline, and there is nothing to wait for. */
	for (int rc = SPL_SUSPENDED; rc <= SPL_REJECTED; rc++) {
		configure_returns = rc;
		fake_prepare(&f, "f", fake_stage(&configuring), NULL, 0);
		fake_run(&f);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_FAILED);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->error, SPL_E_INTERNAL_FAILURE);
	}
	test_stop();
}

/* More publishes in one burst than the line holds, and nobody is full: none is lost. */
static void test_burst(void)
{
	cast_begin(1);
	cast_make("a-world/news/news");
	for (unsigned i = 0; i < CASTS_MAX + 50; i++)
		cast_from_peer("world", "news", "news", "x");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, CASTS_MAX + 50);
	test_stop();
}

/* A Spot that is Ready after the start is not in it, also when it was configured before. */
static void test_ready_after_the_start(void)
{
	struct spl_key key = fake_key("a-world/news/news");
	uint64_t generation;

	cast_begin(1);
	generation = fake_prepare(&f, "a-world/news/news", fake_stage(&cast_member), NULL, 0);
	fake_run(&f);
	cast_from_peer("world", "news", "news", "before");
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 0);
	cast_from_peer("world", "news", "news", "after");
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now); /* again: no change */
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 1);
	test_stop();
}

/* A handler that fails spoils nothing for the others; a lease that is over, a node at its end. */
static void test_failures(void)
{
	struct spot_rec *r;

	cast_begin(1);
	cast_make("a-world/news/news");
	cast_make("b-world/news/news");
	cast_rc = SPL_FAIL(SPL_E_DATA_LOST);
	r = fake_record_on(&f, &f.lane[0], &cast_news.key, "news", "x", 1);
	r->kind = SPL_MSG_PUBLISH;
	r->msg.content = 9; /* unknown: refused as a whole */
	fake_admit(&f, "a-world/news/news", r);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_CONTENT_TYPE), 1);
	cast_from_peer("world", "news", "news", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_HANDLER), 2);
	CU_ASSERT_EQUAL(f.failures, 2);
	CU_ASSERT_STRING_EQUAL(f.failure,
			       "packet news of b-world/news/news (cast_member): DataLost");
	cast_from_peer("world", "news", "news", "x");
	spot_run(f.lane[0].l, 0, UINT64_MAX);
	f.lease = f.now;
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_FENCED), 2);
	f.lease = UINT64_MAX;
	fake_run(&f);
	cast_from_peer("world", "news", "news", "started");
	spot_lane_seal(f.lane[0].l);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 4);
	cast_n_seen = 2;
	cast_from_peer("world", "news", "news", "x");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_SHUTDOWN), 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(cast_n_seen, 2);
	test_stop();
}

/* M36: subscribing and ending over and over leaves nothing behind. */
static void test_churn(void)
{
	char id[64];

	cast_begin(3);
	for (int i = 0; i < 3000; i++) {
		uint64_t generation;

		snprintf(id, sizeof(id), "c-world/t%d/news-world/u%d/news", i % 100, i % 7);
		generation = cast_make(id);
		cast_from_peer("world", id + 8, "news", "x");
		fake_close(&f, id, generation, SPL_CLOSING_EXPLICIT, 0);
		fake_run(&f);
		f.answers = 0;
	}
	for (unsigned i = 0; i < f.lanes; i++) {
		CU_ASSERT_EQUAL(f.lane[i].l->topics.used, 0);
		for (uint32_t b = 0; b <= f.lane[i].l->topics.mask; b++)
			CU_ASSERT_EQUAL(f.lane[i].l->topics.bucket[b], 0);
	}
	test_stop();
}

/* Rings to other lanes that are full: those there are passed over, and the bytes are released. */
static void test_ring_full(void)
{
	char id[64];

	cast_begin(3);
	for (int i = 0; i < 30; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		cast_make(id);
	}
	for (unsigned i = 0; i < 3; i++)
		f.lane[i].ring_max = 0;
	cast_from_peer("world", "news", "news", "x");
	CU_ASSERT_EQUAL(f.casts, 0);
	for (unsigned i = 0; i < 3; i++)
		f.lane[i].ring_max = FAKE_LIST;
	fake_run(&f);
	CU_ASSERT(cast_n_seen > 0 && cast_n_seen < 30);
	CU_ASSERT_EQUAL(f.buffers, 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_ready_after_the_start, "S-MCAST-2"),
	T(test_burst, "S-MCAST-6", "S-MCAST-8"),
	T(test_refused, "S-TOPIC-2", "S-CREATE-5"),
	T(test_failures, "S-TURN-10", "S-MCAST-13", "S-TIMER-12"),
	T(test_churn, "S-TOPIC-3"),
	T(test_ring_full, "S-MCAST-8"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_cast_edges", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
