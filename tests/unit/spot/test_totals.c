/* SPDX-License-Identifier: BSD-3-Clause */
/* What the Spots of a stable type add up to: work, ticks, ends of creations and closes. That the
 * totals are what a walk over the Spots would find is checked after every test of this room, by
 * fake_law(), in the random ones too.
 */
#include "tests/unit/spot/timerrig.h"

#include "common/ids.h"

#define f		test_rig
#define total(stage, c) fake_stage_total(&f, fake_stage(stage), SPL_S_##c)

/* Backlog by type: messages of one are not those of the other, running ones are not waiting ones,
 * and bytes are those of payloads. */
static void test_work_by_type(void)
{
	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	fake_create(&f, "small", fake_stage(&test_stage_small));
	fake_send(&f, "a", "log", "12345");
	fake_send(&f, "b", "log", "1");
	fake_send(&f, "small", "log", "123");
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 2);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING_BYTES), 6);
	CU_ASSERT_EQUAL(total(&test_stage_small, PENDING), 1);
	CU_ASSERT_EQUAL(total(&test_stage_small, PENDING_BYTES), 3);
	CU_ASSERT_EQUAL(total(&test_stage, READY), 2);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 0);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING_BYTES), 0);
	CU_ASSERT_EQUAL(total(&test_stage_small, PENDING), 0);
	test_stop();
}

/* Both waits: the turn that waits is active, what comes behind it is not. */
static void waits(const char *packet)
{
	uint64_t c;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	c = fake_request(&f, "a", packet, "nobody add");
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 1);
	CU_ASSERT_EQUAL(total(&test_stage, ACTIVE), 1);
	CU_ASSERT_EQUAL(total(&test_stage, ACTIVE_BYTES), 10);
	fake_send(&f, "a", "log", "123");
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 2);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING_BYTES), 13);
	CU_ASSERT_EQUAL(total(&test_stage, ACTIVE), 1);
	fake_missing_says(&f, f.missing_correlation, SPL_E_NOT_FOUND, NULL);
	fake_run(&f);
	CU_ASSERT(fake_reply(&f, c) != NULL);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 0);
	CU_ASSERT_EQUAL(total(&test_stage, ACTIVE), 0);
	CU_ASSERT_EQUAL(total(&test_stage, ACTIVE_BYTES), 0);
	test_stop();
}

static void test_waiting_turns(void)
{
	waits("hold");
	waits("yield");
}

/* A message that is refused was never waiting, one whose handler fails or that expires no longer
 * is. */
static void test_failed_work(void)
{
	struct spot_rec *r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_send(&f, "nobody", "log", "x");
	fake_send(&f, "a", "no-such-packet", "xyz");
	r = fake_record(&f, "a", true, "log", "xyz", 3);
	r->deadline = f.now + 1;
	fake_admit(&f, "a", r);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 2);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING_BYTES), 6);
	fake_advance(&f, FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING), 0);
	CU_ASSERT_EQUAL(total(&test_stage, PENDING_BYTES), 0);
	test_stop();
}

static void test_late_ticks(void)
{
	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(10 + LAG);
	CU_ASSERT_EQUAL(total(&test_stage, TICKS), 1);
	CU_ASSERT(total(&test_stage, TICK_DELAY) <= LAG * MS);
	fake_advance(&f, 100 * MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, TICKS), 2);
	CU_ASSERT_EQUAL(total(&test_stage, TICKS_SKIPPED), fake_counter(&f, SPL_C_TICKS_SKIPPED));
	CU_ASSERT(total(&test_stage, TICKS_SKIPPED) >= 9);
	CU_ASSERT(total(&test_stage, TICK_DELAY_MAX) <= total(&test_stage, TICK_DELAY));
	CU_ASSERT_EQUAL(total(&test_stage, TICK_DELAY_MAX),
			tick_got[1].tick.started_ns - tick_got[1].tick.scheduled_ns);
	CU_ASSERT_EQUAL(total(&test_stage_small, TICKS), 0);
	test_stop();
}

/* A tick with a gate of its own waits like any other. */
static void test_own_ticks_wait(void)
{
	timer_begin(&test_stage_actors);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_advance(&f, 13 * MS);
	spot_timers(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(total(&test_stage_actors, PENDING), 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage_actors, PENDING), 0);
	test_stop();
}

static uint64_t dropped(enum spl_drop_surface surface, enum spl_drop_reason reason)
{
	return f.lane[0].measures.dropped[surface][reason];
}

/* One-way messages alone, by reason and surface; requests have their reply. */
static void test_drops(void)
{
	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "i", fake_stage(&test_stage_instance));
	fake_request(&f, "nobody", "log", "x");
	fake_request(&f, "a", "unheard", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(dropped(SPL_DS_SPOT, SPL_DR_STALE_TARGET), 0);
	CU_ASSERT_EQUAL(dropped(SPL_DS_SPOT, SPL_DR_NO_HANDLER), 0);
	fake_send(&f, "nobody", "log", "x");
	fake_send(&f, "a", "unheard", "x");
	fake_send(&f, "i", "unheard", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(dropped(SPL_DS_SPOT, SPL_DR_STALE_TARGET), 1);
	CU_ASSERT_EQUAL(dropped(SPL_DS_SPOT, SPL_DR_NO_HANDLER), 1);
	CU_ASSERT_EQUAL(dropped(SPL_DS_INSTANCE_SPOT, SPL_DR_NO_HANDLER), 1);
	for (int i = 0; i < 70; i++) /* the queue has 64 */
		fake_send(&f, "a", "log", "x");
	CU_ASSERT_EQUAL(dropped(SPL_DS_SPOT, SPL_DR_BACKPRESSURE), 6);
	spot_lane_seal(f.lane[0].l);
	fake_send(&f, "a", "log", "x");
	CU_ASSERT_EQUAL(dropped(SPL_DS_SPOT, SPL_DR_SHUTDOWN), 1);
	test_stop();
}

static const struct spl_histogram *request(enum spl_request_outcome o)
{
	return &f.lane[0].measures.request[o];
}

/* How long handlers wait for their requests, and how many wait. */
static void test_requests(void)
{
	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	fake_request(&f, "a", "hold", "b add");
	fake_run(&f);
	CU_ASSERT_EQUAL(request(SPL_RO_SUCCEEDED)->count, 1);
	CU_ASSERT_EQUAL(request(SPL_RO_SUCCEEDED)->bucket[0], 1);
	fake_request(&f, "a", "hold", "nobody add");
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_OPEN), 1);
	fake_advance(&f, 40 * FAKE_MS);
	fake_run(&f); /* a pass begins with the time */
	fake_missing_says(&f, f.missing_correlation, SPL_E_NOT_FOUND, NULL);
	fake_run(&f);
	CU_ASSERT_EQUAL(request(SPL_RO_FAILED)->count, 1);
	CU_ASSERT_EQUAL(request(SPL_RO_FAILED)->sum_ns, 40 * FAKE_MS);
	CU_ASSERT_EQUAL(request(SPL_RO_FAILED)->bucket[spl_duration_bucket(40 * FAKE_MS)], 1);
	fake_request(&f, "a", "hold", "nobody add");
	fake_run(&f);
	for (int i = 0; i < 30; i++) {
		fake_advance(&f, 40 * FAKE_MS);
		fake_run(&f);
	}
	CU_ASSERT_EQUAL(request(SPL_RO_TIMED_OUT)->count, 1);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_OPEN), 0);
	CU_ASSERT_EQUAL(spl_duration_bucket(0), 0);
	CU_ASSERT_EQUAL(spl_duration_bucket(100000), 0);
	CU_ASSERT_EQUAL(spl_duration_bucket(100001), 1);
	CU_ASSERT_EQUAL(spl_duration_bucket(UINT64_MAX), SPL_DURATION_BUCKETS - 1);
	test_stop();
}

/* Callbacks of the lifecycle are turns like any other: they wait for their Spot, are counted, and
 * come out of the budget of a run (S-INFRA-4). */
static void test_lifecycle_is_application_work(void)
{
	test_start(1);
	fake_prepare(&f, "a", fake_stage(&test_stage), "", 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TURNS), 0);
	CU_ASSERT_EQUAL(test_stage_runs, 0);
	fake_pass(&f, 1);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TURNS), 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TURNS), 2); /* on_create and on_initialize */
	test_stop();
}

static int closings_seen;

static void note_closing(struct test_state *state, enum spl_closing reason, uint64_t deadline_ns)
{
	closings_seen++;
}

static void test_ends_of_control(void)
{
	uint64_t gen;

	test_start(1);
	test_stage_closing = note_closing;
	gen = fake_create(&f, "a", fake_stage(&test_stage));
	CU_ASSERT_EQUAL(total(&test_stage, CREATED), 1);
	fake_prepare(&f, "no", fake_stage(&test_stage), "reject", 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, CREATE_REJECTED), 1);
	fake_prepare(&f, "bad", fake_stage(&test_stage), "fail", 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, CREATE_FAILED), 1);
	fake_prepare(&f, "late", fake_stage(&test_stage), "hold nobody add", f.now + FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, CREATING), 1);
	fake_advance(&f, 20 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, CREATE_FAILED), 2);
	fake_prepare(&f, "a", fake_stage(&test_stage), "", 0); /* it is there already */
	CU_ASSERT_EQUAL(total(&test_stage, CREATE_FAILED), 3);
	CU_ASSERT_EQUAL(total(&test_stage, CREATED), 1);
	fake_close(&f, "a", gen, SPL_CLOSING_EXPLICIT, f.now + 1000 * MS);
	CU_ASSERT_EQUAL(total(&test_stage, CLOSING), 1);
	CU_ASSERT_EQUAL(total(&test_stage, READY), 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, CLOSED), 1);
	gen = fake_create(&f, "b", fake_stage(&test_stage));
	fake_request(&f, "b", "hold", "nobody add");
	fake_run(&f);
	fake_close(&f, "b", gen, SPL_CLOSING_EXPLICIT, f.now + MS);
	fake_advance(&f, 20 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(total(&test_stage, CLOSE_FORCED), 1);
	CU_ASSERT_EQUAL(total(&test_stage, CLOSED), 1);
	CU_ASSERT_EQUAL(closings_seen, 2);
	test_stage_closing = NULL;
	test_stop();
}

static const struct t_case cases[] = {
	T(test_work_by_type, "S-OBS-5", "S-STAGE-10"),
	T(test_waiting_turns, "S-OBS-5"),
	T(test_failed_work, "S-OBS-5"),
	T(test_late_ticks, "S-OBS-5", "S-STAGE-10"),
	T(test_own_ticks_wait, "S-OBS-5"),
	T(test_drops, "S-MET-4"),
	T(test_requests, "S-MET-4"),
	T(test_lifecycle_is_application_work, "S-INFRA-4"),
	T(test_ends_of_control, "S-OBS-5", "S-STAGE-10"),
};

static const struct t_suite suites[] = {T_SUITE("totals", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, 1);
}
