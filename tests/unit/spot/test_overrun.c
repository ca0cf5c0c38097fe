/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns that take longer than they should: each is told by name, however long others were. */
#include "tests/unit/spot/timerrig.h"

#define f     test_rig
#define LIMIT (2 * MS) /* conf.turn_overrun_us of the rig */

static uint64_t takes; /* of each callback, cycles */

static int slow(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	f.now += takes;
	return SPL_DONE;
}

static void does(uint64_t cycles)
{
	takes = cycles;
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
}

/* The limit itself is not over it; one above it that is not the longest is told like the longest;
 * all are counted, and the longest stays what it was. */
static void test_message(void)
{
	const char *type, *what;
	uint64_t longest;

	test_start(1);
	test_stage_probe = slow;
	fake_create(&f, "a", fake_stage(&test_stage));
	does(LIMIT);
	CU_ASSERT_EQUAL(f.overruns, 0);
	does(LIMIT + 1);
	CU_ASSERT_EQUAL(f.overruns, 1);
	CU_ASSERT_STRING_EQUAL(f.overrun, "in probe (test): 2000001");
	does(5 * MS);
	does(3 * MS);
	CU_ASSERT_EQUAL(f.overruns, 3);
	CU_ASSERT_STRING_EQUAL(f.overrun, "in probe (test): 3000000");
	does(1 * MS);
	CU_ASSERT_EQUAL(f.overruns, 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TURNS_OVERRUN), 3);
	spot_longest(f.lane[0].l, &longest, &type, &what);
	CU_ASSERT_EQUAL(longest, 5 * MS);
	test_stop();
}

static int slow_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	f.now += takes;
	return SPL_DONE;
}

/* A timer by its own name, also when it has ended with this tick. */
static void test_timer(void)
{
	timer_begin(&test_stage);
	timer_callback = slow_tick;
	takes = 3 * MS;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
	timer_live(20);
	CU_ASSERT_EQUAL(f.overruns, 1);
	CU_ASSERT_STRING_EQUAL(f.overrun, "timer beat (test): 3000000");
	timer_start_named("a name of more bytes than are kept of the name of one timer",
			  10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
	timer_live(20);
	CU_ASSERT_EQUAL(f.overruns, 2);
	CU_ASSERT_STRING_EQUAL(
		f.overrun, "timer a name of more bytes than are kept of the name  (test): 3000000");
	test_stop();
}

static int slow_create(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	f.now += 4 * MS;
	return SPL_DONE;
}

/* A callback by its own name. */
static void test_callback(void)
{
	struct spl_stage stage = test_stage;

	test_begin(1);
	stage.on_create = slow_create;
	fake_start(&f);
	fake_create(&f, "a", fake_stage(&stage));
	fake_run(&f);
	CU_ASSERT_EQUAL(f.overruns, 1);
	CU_ASSERT_STRING_EQUAL(f.overrun, "in on_create (test): 4000000");
	test_stop();
}

/* Without a limit none is told. */
static void test_never(void)
{
	test_begin(1);
	f.conf.turn_overrun_us = 0;
	fake_start(&f);
	test_stage_probe = slow;
	fake_create(&f, "a", fake_stage(&test_stage));
	does(5000 * MS);
	CU_ASSERT_EQUAL(f.overruns, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TURNS_OVERRUN), 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_message, "S-FAIR-3"),
	T(test_timer, "S-FAIR-3"),
	T(test_callback, "S-FAIR-3"),
	T(test_never),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_overrun", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
