/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers: schedule and indices under each policy, names, cancel, failure, bounds. */
#include "tests/unit/spot/timerrig.h"

#include "common/ids.h"

#include <errno.h>
#include <limits.h>

#define f test_rig

/* Every field, on a schedule that lateness does not shift. */
static void test_schedule(void)
{
	uint64_t t0;

	timer_begin(&test_stage);
	t0 = f.now;
	timer_start_named("beat", 20 * FAKE_MS, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	timer_live(19);
	CU_ASSERT_EQUAL(ticks_got, 0); /* never early */
	timer_live(1 + LAG);
	CU_ASSERT_EQUAL(ticks_got, 1);
	timer_live(1000);
	CU_ASSERT(ticks_got >= 50 && ticks_got <= 51);
	for (unsigned i = 0; i < ticks_got; i++) {
		const struct spl_tick *k = &tick_got[i].tick;

		tick_check(i, i + 1, i + 1, 0);
		CU_ASSERT_STRING_EQUAL(tick_got[i].name, "beat");
		CU_ASSERT_EQUAL(k->period_ns, 20 * MS);
		CU_ASSERT_EQUAL(k->begun_ns, t0);
		CU_ASSERT_EQUAL(k->scheduled_ns, t0 + (i + 1) * 20 * MS);
		CU_ASSERT_EQUAL(spl_tick_scheduled_elapsed(k), (i + 1) * 20 * MS);
		CU_ASSERT(spl_tick_delay(k) <= LAG * MS);
		CU_ASSERT_EQUAL(spl_tick_started_elapsed(k), k->started_ns - t0);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS), ticks_got);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_SKIPPED), 0);
	test_stop();
}

/* T-TM-1: nothing runs for five periods: only the newest is delivered; then the schedule goes on.
 */
static void test_skip(void)
{
	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(10 + LAG);
	fake_advance(&f, 55 * MS - LAG * MS);
	fake_run(&f);
	timer_live(10);
	tick_check(0, 1, 1, 0);
	tick_check(1, 2, 6, 4);
	tick_check(2, 3, 7, 0);
	CU_ASSERT_EQUAL(ticks_got, 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_SKIPPED), 4);
	test_stop();
}

/* A tick that waits in its queue is as new as can be when it begins. */
static void test_newest_at_start(void)
{
	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_advance(&f, 12 * MS);
	spot_timers(f.lane[0].l, f.now, 64); /* queued: one is due */
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1);
	fake_advance(&f, 20 * MS);
	spot_timers(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1); /* and never twice */
	fake_run(&f);
	CU_ASSERT_EQUAL(ticks_got, 1);
	tick_check(0, 1, 3, 2);
	test_stop();
}

/* T-TM-2: the example of S-TIMER-7 (last 1, now 11 due, at most 3: 9, 10, 11), and one of 1. */
static void catch_up(int32_t most, uint64_t first)
{
	timer_begin(&test_stage);
	timer_start_named(
		"beat", 10 * FAKE_MS,
		(struct spl_timer_options){.overrun = SPL_OVERRUN_CATCH_UP, .catch_up_max = most});
	timer_live(10 + LAG);
	fake_advance(&f, 112 * MS - (10 + LAG) * MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(ticks_got, 1 + 11 - first + 1);
	tick_check(0, 1, 1, 0);
	tick_check(1, 2, first, first - 2);
	for (unsigned i = 2; i < ticks_got; i++)
		tick_check(i, i + 1, first + i - 1, 0);
	timer_live(8 + LAG);
	CU_ASSERT_EQUAL(tick_got[ticks_got - 1].tick.scheduled_index, 12);
	test_stop();
}

static void test_catch_up(void)
{
	catch_up(3, 9);
	catch_up(1, 11);
	catch_up(INT_MAX, 2);
}

/* T-TM-3: a period from the end of one callback to the beginning of the next; nothing caught up. */
static int slow_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	int rc = tick_note(turn, state, tick);

	f.now += 25 * MS;
	return rc;
}

static void test_delay(void)
{
	timer_begin(&test_stage);
	timer_callback = slow_tick;
	timer_start_named("beat", 10 * FAKE_MS,
			  (struct spl_timer_options){.overrun = SPL_OVERRUN_DELAY});
	timer_live(100);
	CU_ASSERT(ticks_got >= 7);
	for (unsigned i = 0; i < ticks_got; i++) {
		tick_check(i, i + 1, i + 1, 0);
		if (i > 0) {
			CU_ASSERT(tick_got[i].tick.started_ns >=
				  tick_got[i - 1].tick.started_ns + 35 * MS);
			CU_ASSERT_EQUAL(tick_got[i].tick.scheduled_ns,
					tick_got[i - 1].tick.started_ns + 35 * MS);
		}
	}
	test_stop();
}

/* T-TM-4 and the table of bad input: the error, before any state changed. */
static void test_arguments(void)
{
	char name[257];
	static const struct {
		int64_t period;
		struct spl_timer_options o;
		int rc;
	} rows[] = {
		{0, {0}, -EINVAL},
		{-1, {0}, -EINVAL},
		{INT64_MIN, {0}, -EINVAL},
		{INT64_MAX, {0}, 0},
		{1, {.overrun = SPL_OVERRUN_CATCH_UP}, -EINVAL},
		{1, {.overrun = SPL_OVERRUN_CATCH_UP, .catch_up_max = -1}, -EINVAL},
		{INT64_MAX, {.overrun = SPL_OVERRUN_CATCH_UP, .catch_up_max = INT_MAX}, 0},
		{INT64_MAX, {.overrun = SPL_OVERRUN_SKIP, .catch_up_max = -1}, 0},
		{INT64_MAX, {.overrun = SPL_OVERRUN_DELAY, .catch_up_max = -1}, 0},
		{INT64_MAX, {.overrun = (enum spl_overrun)3}, -EINVAL},
	};

	timer_begin(&test_stage);
	for (unsigned i = 0; i < T_COUNT(rows); i++) {
		uint64_t before = fake_counter(&f, SPL_C_TIMERS);

		timer_start_named("row", rows[i].period, rows[i].o);
		CU_ASSERT_EQUAL(timer_start.rc, rows[i].rc);
		if (rows[i].rc)
			CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), before);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	timer_start_named(name, INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, -EINVAL);
	name[255] = '\0';
	timer_start_named(name, INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, 0);
	timer_start_named("", INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, -EINVAL);
	timer_start_named("\xff", INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, -EINVAL);
	timer_callback = NULL;
	timer_start_named("none", INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, -EINVAL);
	CU_ASSERT_EQUAL(spl_timer_start(NULL, "x", 1, 1, tick_note, NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 2);
	timer_live(50);
	CU_ASSERT_EQUAL(ticks_got, 0); /* the longest period is never over */
	test_stop();
}

static bool disposed[4];
static struct spl_timer handle[4];
static int look(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	for (int i = 0; i < 4; i++)
		disposed[i] = spl_timer_is_disposed(turn, handle[i]);
	return SPL_DONE;
}

static int cancel_rc[2];
static int cancel_it(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	cancel_rc[0] = spl_timer_cancel(turn, timer_start.timer);
	cancel_rc[1] = spl_timer_cancel(turn, timer_start.timer);
	return SPL_DONE;
}

/* T-TM-5: started anew, or cancelled, while a tick is queued: the old one never runs. */
static void test_again(void)
{
	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	handle[0] = timer_start.timer;
	timer_live(10 + LAG);
	timer_live(10);
	CU_ASSERT_EQUAL(ticks_got, 2);
	/* Behind the message that starts it anew a tick is queued. */
	timer_start.period = 40 * FAKE_MS;
	fake_send(&f, "a", "probe", "");
	fake_advance(&f, 10 * MS);
	spot_timers(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 2);
	fake_run(&f);
	CU_ASSERT_EQUAL(ticks_got, 2);
	handle[1] = timer_start.timer;
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	timer_live(40 + LAG);
	CU_ASSERT_EQUAL(ticks_got, 3);
	tick_check(2, 1, 1, 0); /* indices begin anew */
	timer_probe("a", look);
	CU_ASSERT(disposed[0] && !disposed[1]);

	fake_advance(&f, 40 * MS);
	test_stage_probe = cancel_it;
	fake_send(&f, "a", "probe", "");
	spot_timers(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 2);
	fake_run(&f);
	CU_ASSERT_EQUAL(ticks_got, 3);
	CU_ASSERT(cancel_rc[0] == 0 && cancel_rc[1] == 0);
	timer_probe("a", look);
	CU_ASSERT(disposed[1]);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	timer_probe("a", cancel_it); /* long gone */
	CU_ASSERT(cancel_rc[0] == 0 && cancel_rc[1] == 0);
	timer_live(100);
	CU_ASSERT_EQUAL(ticks_got, 3);
	test_stop();
}

/* A handle of another Spot, and numbers that name nothing. */
static void test_foreign(void)
{
	timer_begin(&test_stage);
	fake_create(&f, "b", fake_stage(&test_stage));
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	handle[0] = timer_start.timer;
	timer_probe("b", cancel_it);
	CU_ASSERT_EQUAL(cancel_rc[0], -EINVAL);
	timer_probe("b", look);
	CU_ASSERT(disposed[0] && disposed[1]);
	timer_start.timer.id = UINT64_MAX;
	timer_probe("a", cancel_it);
	CU_ASSERT_EQUAL(cancel_rc[0], 0);
	timer_start.timer.id = 0;
	timer_probe("a", cancel_it);
	CU_ASSERT_EQUAL(cancel_rc[0], 0);
	timer_live(10 + LAG);
	CU_ASSERT_EQUAL(ticks_got, 1);
	test_stop();
}

/* ---- ends ---- */

static int failing_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	tick_note(turn, state, tick);
	return tick->delivery_index == 1 ? SPL_FAIL(SPL_E_DATA_LOST) : SPL_DONE;
}

/* T-TM-9: only that tick fails; with the flag the timer ends. */
static void test_failure(void)
{
	timer_begin(&test_stage);
	timer_callback = failing_tick;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(33);
	CU_ASSERT_EQUAL(ticks_got, 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_FAILED), 1);
	CU_ASSERT_STRING_EQUAL(f.failure, "timer beat of a (test): DataLost");
	CU_ASSERT_EQUAL(f.failures, 1);
	timer_start_named("beat", 10 * FAKE_MS,
			  (struct spl_timer_options){.stop_on_failure = true});
	handle[0] = timer_start.timer;
	timer_live(50);
	CU_ASSERT_EQUAL(ticks_got, 4);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_FAILED), 2);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	timer_probe("a", look);
	CU_ASSERT(disposed[0]);
	test_stop();
}

static bool seen_disposed;
static int look_at_self(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	seen_disposed = spl_timer_is_disposed(turn, timer_start.timer);
	return tick_note(turn, state, tick);
}

/* T-TM-12: once, and disposed by the time its callback runs; late or not it is tick 1. */
static void test_one_shot(void)
{
	timer_begin(&test_stage);
	timer_callback = look_at_self;
	timer_start_named("once", 10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
	fake_advance(&f, 45 * MS);
	timer_live(50);
	CU_ASSERT_EQUAL(ticks_got, 1);
	tick_check(0, 1, 1, 0);
	CU_ASSERT(seen_disposed);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	test_stop();
}

static int again_in_its_callback(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	tick_note(turn, state, tick);
	CU_ASSERT_EQUAL(spl_timer_start(turn, tick->name->b, tick->name->len,
					(int64_t)tick->period_ns, again_in_its_callback, NULL,
					&timer_start.timer),
			0);
	return SPL_DONE;
}

static int cancels_itself(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	CU_ASSERT_EQUAL(spl_timer_cancel(turn, timer_start.timer), 0);
	CU_ASSERT_EQUAL(spl_timer_cancel(turn, timer_start.timer), 0);
	CU_ASSERT(spl_timer_is_disposed(turn, timer_start.timer));
	CU_ASSERT_EQUAL(tick->name->len, 4); /* what it was given stays */
	return tick_note(turn, state, tick);
}

static void test_from_its_callback(void)
{
	timer_begin(&test_stage);
	timer_callback = again_in_its_callback;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(60);
	CU_ASSERT(ticks_got >= 4);
	for (unsigned i = 0; i < ticks_got; i++)
		tick_check(i, 1, 1, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	timer_callback = cancels_itself;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	ticks_got = 0;
	timer_live(50);
	CU_ASSERT_EQUAL(ticks_got, 1);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	test_stop();
}

/* ---- bounds ---- */

static void test_limits(void)
{
	char name[16];

	test_begin(1);
	f.conf.timers = 20;
	f.conf.timers_per_spot = 12;
	fake_start(&f);
	test_stage_probe = timer_start_it;
	timer_callback = tick_note;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (int i = 0; i < 13; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		timer_start_named(name, INT64_MAX, (struct spl_timer_options){0});
		CU_ASSERT_EQUAL(timer_start.rc, i < 12 ? 0 : -ENOBUFS);
	}
	CU_ASSERT_EQUAL(spl_error_of(timer_start.rc), SPL_E_CAPACITY_EXCEEDED);
	timer_start_named("t3", INT64_MAX,
			  (struct spl_timer_options){0}); /* in the place of the old */
	CU_ASSERT_EQUAL(timer_start.rc, 0);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		timer_start.name = name;
		fake_send(&f, "b", "probe", "");
		fake_run(&f);
		CU_ASSERT_EQUAL(timer_start.rc, i < 8 ? 0 : -ENOBUFS); /* the lane has no more */
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 20);
	test_stop();
}

/* T-TM-11, T-FAIR-4: many, for long: nothing grows, nothing but the places is used. */
static uint64_t counted;
static int count_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	counted++;
	return SPL_DONE;
}

static void test_many(void)
{
	uint64_t blocks;
	char id[16], name[16];

	test_begin(1);
	f.conf.timers = 20000;
	f.conf.heap_bytes = 8 << 20;
	f.conf.object_bytes = 8 << 20;
	f.conf.spots_max = 2048;
	fake_start(&f);
	test_stage_probe = timer_start_it;
	timer_callback = count_tick;
	counted = 0;
	timer_start = (typeof(timer_start)){.name = name, .period = 100 * FAKE_MS};
	for (int i = 0; i < 1250; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		fake_create(&f, id, fake_stage(&test_stage));
		for (int k = 0; k < 16; k++) {
			snprintf(name, sizeof(name), "t%d", k);
			fake_send(&f, id, "probe", "");
			fake_run(&f);
			CU_ASSERT_EQUAL_FATAL(timer_start.rc, 0);
		}
	}
	blocks = f.lane[0].l->mem_own;
	timer_live(1000);
	CU_ASSERT(counted >= 9 * 20000 && counted <= 20 * 10000);
	CU_ASSERT_EQUAL(f.lane[0].l->mem_own, blocks);
	CU_ASSERT_EQUAL(f.lane[0].l->rec_free, f.lane[0].l->rec_count);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_SKIPPED), 0);
	for (int i = 0; i < 1250; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		fake_close(&f, id, (uint64_t)i + 1, SPL_CLOSING_EXPLICIT, 0);
		fake_run(&f);
	}
	CU_ASSERT_EQUAL(f.lane[0].l->mem_own, 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_schedule, "S-TIMER-1", "S-TIMER-4", "S-TIMER-5"),
	T(test_skip, "S-TIMER-6", "S-TIMER-5"),
	T(test_newest_at_start, "S-TIMER-6", "S-TIMER-9"),
	T(test_catch_up, "S-TIMER-7"),
	T(test_delay, "S-TIMER-8"),
	T(test_arguments, "S-TIMER-1", "S-TIMER-2"),
	T(test_again, "S-TIMER-3", "S-TIMER-11"),
	T(test_foreign, "S-TIMER-11"),
	T(test_failure, "S-TURN-10", "S-TIMER-13"),
	T(test_one_shot, "S-TIMER-17"),
	T(test_from_its_callback, "S-TIMER-3", "S-TIMER-11"),
	T(test_limits, "S-TIMER-19"),
	T(test_many, "S-TIMER-15", "S-FAIR-6"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_timer", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
