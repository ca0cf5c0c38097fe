/* SPDX-License-Identifier: BSD-3-Clause */
/* Ticks: the gate they need, waits of callbacks, room, close, lease. */
#include "tests/unit/spot/timerrig.h"

#include "common/ids.h"

#include <errno.h>
#include <limits.h>

#define f test_rig

static uint64_t waiting;
static unsigned overlaps, running;
static struct spl_tick given; /* to the callback that waits */

static int tick_resumed(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	const struct spl_tick *tick = ctx;

	running--;
	CU_ASSERT_EQUAL(memcmp(tick, &given, sizeof(given)), 0);
	fake_log("tick-resumed");
	return SPL_DONE;
}

static enum spl_wait tick_waits;
static int wait_rc;
static int tick_that_waits(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	struct spl_target t;
	struct spl_call *c;
	int rc = tick_note(turn, state, tick);

	overlaps += running++ > 0;
	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	wait_rc = spl_request(turn, &t, 5, 0, NULL, 0, 0, tick_waits, &c);
	if (wait_rc) {
		running--;
		return rc;
	}
	waiting = (uint64_t)(uintptr_t)c;
	given = *tick;
	CU_ASSERT_EQUAL(spl_call_then(turn, c, tick_resumed, (void *)(uintptr_t)tick), 0);
	return SPL_SUSPENDED;
}

/* T-CLAIM-3: a callback yields over several due points: the key never overlaps, messages run, and
 * the indices obey the policy afterwards. What the callback was given has not changed. */
static void test_yielding_tick(void)
{
	timer_begin(&test_stage);
	timer_callback = tick_that_waits;
	tick_waits = SPL_WAIT_YIELD;
	overlaps = running = 0;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(10 + LAG);
	fake_send(&f, "a", "log", "p1");
	timer_live(32);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick p1");
	fake_missing_says(&f, waiting, SPL_OK, NULL);
	fake_send(&f, "a", "log", "p2");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick p1 tick-resumed p2 tick");
	tick_check(1, 2, 4, 2);
	CU_ASSERT_EQUAL(overlaps, 0);
	fake_missing_says(&f, waiting, SPL_OK, NULL);
	fake_run(&f);
	test_stop();
}

/* A name that is started anew while its callback waits: the two do not overlap, and the old one
 * ends as it was. */
static void test_again_while_it_waits(void)
{
	timer_begin(&test_stage);
	timer_callback = tick_that_waits;
	tick_waits = SPL_WAIT_YIELD;
	overlaps = running = 0;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(10 + LAG);
	CU_ASSERT_EQUAL(ticks_got, 1);
	for (int i = 0; i < 20; i++) /* any number of times */
		timer_start_named("beat", 5 * FAKE_MS, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(timer_start.rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 2);
	timer_live(30);
	CU_ASSERT_EQUAL(ticks_got, 1);
	fake_missing_says(&f, waiting, SPL_OK, NULL);
	timer_live(LAG);
	CU_ASSERT_EQUAL(ticks_got, 2);
	tick_check(1, 1, 6, 5);
	CU_ASSERT_EQUAL(overlaps, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	fake_missing_says(&f, waiting, SPL_OK, NULL);
	fake_run(&f);
	test_stop();
}

/* T-TM-6, T-YIELD-4: under HOLD a due tick waits for the gate; under YIELD it runs before the rest
 * of the handler. */
static void test_gate(void)
{
	uint64_t r;

	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	r = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	timer_live(30);
	CU_ASSERT_EQUAL(ticks_got, 0);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "held resumed tick");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, NULL));
	tick_check(0, 1, 3, 2);

	fake_log_clear();
	fake_request(&f, "a", "yield", "nobody echo x");
	fake_run(&f);
	fake_advance(&f, (10 + LAG) * MS);
	spot_timers(f.lane[0].l, f.now, 64);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "yielded tick resumed");
	test_stop();
}

/* T-GATE-2 without Actors: with a gate for each, timers do not wait for each other or for the Spot,
 * nor the Spot for them; each one's callbacks stay one at a time; no YIELD there. */
static void test_own_gates(void)
{
	uint64_t first;

	timer_begin(&test_stage_actors);
	overlaps = running = 0;
	timer_callback = tick_that_waits;
	tick_waits = SPL_WAIT_YIELD;
	timer_start_named("one", 10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
	timer_live(10 + LAG);
	CU_ASSERT_EQUAL(wait_rc, -EPERM);
	CU_ASSERT_EQUAL(ticks_got, 1);

	tick_waits = SPL_WAIT_HOLD;
	timer_start_named("one", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_callback = tick_note;
	timer_start_named("two", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_log_clear();
	timer_live(10 + LAG);
	first = waiting;
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick tick");
	timer_live(10);
	fake_send(&f, "a", "log", "p1");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick tick tick p1"); /* "two" again, "one" waits */
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	timer_live(10);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick tick tick p1 held tick");
	fake_log_clear();
	fake_missing_says(&f, first, SPL_OK, NULL); /* goes on although the Spot's gate is held */
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick-resumed tick");
	CU_ASSERT_EQUAL(overlaps, 0);
	fake_log_clear();
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL); /* of the newest: the tick's */
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick-resumed");
	fake_advance(&f, 2000 * MS); /* the handler's wait ends by its deadline */
	fake_run(&f);
	fake_missing_says(&f, waiting, SPL_OK, NULL);
	fake_run(&f);
	test_stop();
}

/* The only self-wait under HOLD that is not for ever (S-REENT-1). */
static int self_rc, self_kind;
static int self_answered(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	self_kind = r->kind;
	return SPL_DONE;
}

static int tick_asks_its_spot(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	struct spl_target t;
	struct spl_call *c;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	self_rc = spl_request(turn, &t, spl_packet_key("add", 3), 0, NULL, 0, 0, SPL_WAIT_HOLD, &c);
	if (self_rc)
		return SPL_DONE;
	CU_ASSERT_EQUAL(spl_call_then(turn, c, self_answered, NULL), 0);
	return SPL_SUSPENDED;
}

static void test_tick_asks_its_spot(void)
{
	const struct spl_stage *const stages[] = {&test_stage, &test_stage_entry,
						  &test_stage_instance, &test_stage_actors};

	for (unsigned i = 0; i < T_COUNT(stages); i++) {
		bool own = stages[i] == &test_stage_actors;

		timer_begin(stages[i]);
		timer_callback = tick_asks_its_spot;
		self_kind = -1;
		timer_start_named("ask", 10 * FAKE_MS,
				  (struct spl_timer_options){.one_shot = true});
		timer_live(10 + LAG);
		CU_ASSERT_EQUAL(self_rc, own ? 0 : -EDEADLK);
		CU_ASSERT_EQUAL(self_kind, own ? SPL_OK : -1);
		test_stop();
	}
}

/* A timer with a gate of its own that is always due: the Spot's messages, the end of its wait and
 * its close get their turns all the same. */
static int busy_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	f.now += 12000; /* longer than the period */
	if (++overlaps == 1)
		CU_ASSERT_EQUAL(spl_close_self(turn), 0);
	return SPL_DONE;
}

static void test_own_ticks_leave_turns(void)
{
	struct spot_lane *l;
	uint64_t r;

	timer_begin(&test_stage_actors);
	l = f.lane[0].l;
	overlaps = 0;
	timer_callback = busy_tick;
	timer_start_named(
		"busy", 10000,
		(struct spl_timer_options){.overrun = SPL_OVERRUN_CATCH_UP, .catch_up_max = 100});
	r = fake_request(&f, "a", "hold", "nobody echo x");
	for (int i = 0; i < 200; i++) {
		f.now += 20000;
		spot_timers(l, f.now, 64);
		spot_run(l, 64, UINT64_MAX);
	}
	CU_ASSERT(overlaps > 100);
	CU_ASSERT_EQUAL(f.close_wanted, 0); /* the handler that HOLDs comes before the close */
	fake_send(&f, "a", "log", "p1");
	fake_log_clear();
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	for (int i = 0; i < 10; i++)
		spot_run(l, 64, UINT64_MAX);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed p1");
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	fake_close(&f, "a", f.next_generation, SPL_CLOSING_EXPLICIT, 0);
	for (int i = 0; i < 300 && test_spot("a"); i++)
		spot_run(l, 64, UINT64_MAX);
	CU_ASSERT_PTR_NULL(test_spot("a"));
	test_stop();
}

/* Such a tick has a queue of its own too: a Spot that is full does not hold it back, and it does
 * not fill the Spot's. */
static void test_own_ticks_and_a_full_queue(void)
{
	timer_begin(&test_stage_actors);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	while (test_spot("a")->app.count < f.conf.queue_count)
		fake_send(&f, "a", "log", "q");
	timer_live(10 + LAG);
	CU_ASSERT_EQUAL(ticks_got, 1);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, f.conf.queue_count);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 0);
	test_stop();
}

/* ---- admission ---- */

/* T-TM-6 and S-TIMER-10: no room: the tick stays with the scheduler and comes when there is. */
static void test_no_room(void)
{
	timer_begin(&test_stage_small);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	for (int i = 0; i < 3; i++)
		fake_send(&f, "a", "log", "q");
	timer_live(25);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 4);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 0);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_EQUAL(ticks_got, 0);
	timer_live(LAG);
	CU_ASSERT_EQUAL(ticks_got, 1);
	tick_check(0, 1, 2, 1);
	test_stop();
}

static struct spl_timer_options init_options;
static int timer_at_initialize(struct spl_turn *turn, void *state)
{
	CU_ASSERT_EQUAL(
		spl_timer_start(turn, "early", 5, 10 * FAKE_MS, tick_note, &init_options, NULL), 0);
	return SPL_DONE;
}

static int closing_timer_rc;
static int timer_at_closing(struct spl_turn *turn, void *state, enum spl_closing why,
			    uint64_t until)
{
	fake_log("closing");
	closing_timer_rc = spl_timer_start(turn, "late", 4, 10 * FAKE_MS, tick_note, NULL, NULL);
	return SPL_DONE;
}

static const struct spl_stage with_timers = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "timers",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct test_state),
	.on_initialize = timer_at_initialize,
	.on_closing = timer_at_closing,
};

/* A timer of a Spot that is not published yet: no callback before it is Ready. */
static void test_before_ready(void)
{
	uint64_t generation;
	struct spl_key key = fake_key("early");

	timer_begin(&test_stage);
	init_options = (struct spl_timer_options){0};
	generation = fake_prepare(&f, "early", fake_stage(&with_timers), NULL, 0);
	fake_run(&f);
	timer_live(50);
	CU_ASSERT_EQUAL(ticks_got, 0);
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	timer_live(20);
	CU_ASSERT(ticks_got >= 2);
	CU_ASSERT(tick_got[0].tick.scheduled_index >= 5);
	generation = fake_prepare(&f, "gone", fake_stage(&with_timers), NULL, 0);
	fake_run(&f);
	key = fake_key("gone");
	spot_discard(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	test_stop();
}

/* T-TM-7: a tick that was accepted before the close runs before on_closing; none afterwards. */
static void test_close(void)
{
	uint64_t generation;
	unsigned n;

	timer_begin(&test_stage);
	generation = fake_create(&f, "c", fake_stage(&with_timers));
	timer_live(10 + LAG);
	n = ticks_got;
	CU_ASSERT_EQUAL(n, 1);
	fake_log_clear();
	fake_advance(&f, 10 * MS);
	spot_timers(f.lane[0].l, f.now, 64); /* accepted */
	fake_close(&f, "c", generation, SPL_CLOSING_HOST_SHUTDOWN, f.now + 1000 * MS);
	timer_live(50);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick closing");
	CU_ASSERT_EQUAL(closing_timer_rc, -ESHUTDOWN);
	CU_ASSERT_EQUAL(ticks_got, n + 1);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);

	/* The deadline of the close passes while the tick waits behind a turn that holds the gate.
	 */
	generation = fake_create(&f, "d", fake_stage(&test_stage));
	test_stage_probe = timer_start_it;
	timer_start.name = "beat";
	timer_start.period = 10 * FAKE_MS;
	fake_send(&f, "d", "probe", "");
	fake_send(&f, "d", "hold", "nobody echo x");
	fake_run(&f);
	timer_live(10 + LAG);
	n = ticks_got;
	fake_close(&f, "d", generation, SPL_CLOSING_EXPLICIT, f.now + 20 * MS);
	timer_live(30);
	CU_ASSERT_EQUAL(ticks_got, n);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->error, SPL_E_DEADLINE_EXCEEDED);
	test_stop();
}

/* The node takes nothing new (A-DRAIN-8). */
static void test_sealed(void)
{
	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	timer_live(10 + LAG);
	spot_lane_seal(f.lane[0].l);
	timer_live(50);
	CU_ASSERT_EQUAL(ticks_got, 1);
	test_stop();
}

/* T-TM-8: the lease ends between the queue and the callback, as after a long stop of the process;
 * a Spot that is lost; a lease that comes back. */
static void test_lease(void)
{
	uint64_t generation;

	timer_begin(&test_stage);
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_advance(&f, 12 * MS);
	spot_timers(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1);
	f.lease = f.now + 5 * MS;
	fake_advance(&f, 100 * MS);
	timer_live(30);
	CU_ASSERT_EQUAL(ticks_got, 0);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 0);
	f.lease = UINT64_MAX;
	timer_live(20);
	CU_ASSERT(ticks_got >= 1);
	CU_ASSERT(tick_got[0].tick.scheduled_index >= 14);
	CU_ASSERT_EQUAL(tick_got[0].tick.delivery_index, 1);
	generation = fake_create(&f, "b", fake_stage(&test_stage));
	fake_send(&f, "b", "probe", "");
	fake_run(&f);
	fake_advance(&f, 12 * MS);
	spot_timers(f.lane[0].l, f.now, 64);
	ticks_got = 0;
	fake_close(&f, "a", f.next_generation - 1, SPOT_FENCED, 0);
	fake_close(&f, "b", generation, SPOT_FENCED, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(ticks_got, 0);
	CU_ASSERT_PTR_NULL(test_spot("b"));
	test_stop();
}

static const struct t_case cases[] = {
	T(test_yielding_tick, "S-CLAIM-2", "S-TIMER-9", "S-YIELD-1"),
	T(test_again_while_it_waits, "S-CLAIM-2", "S-TIMER-3"),
	T(test_gate, "S-TIMER-10", "S-YIELD-3", "S-GATE-3"),
	T(test_own_gates, "S-GATE-3", "S-GATE-4", "S-YIELD-2", "S-KIND-4"),
	T(test_tick_asks_its_spot, "S-REENT-1"),
	T(test_own_ticks_leave_turns, "S-GATE-4", "S-TURN-4"),
	T(test_own_ticks_and_a_full_queue, "S-GATE-1", "S-LIM-1"),
	T(test_no_room, "S-TIMER-10"),
	T(test_before_ready, "S-TIMER-12", "S-CREATE-5"),
	T(test_close, "S-TIMER-14", "S-CLOSE-4", "S-CLOSING-2"),
	T(test_sealed, "S-TIMER-14", "A-DRAIN-8"),
	T(test_lease, "S-TIMER-12"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_ticks", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
