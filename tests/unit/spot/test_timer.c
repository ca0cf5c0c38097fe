/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers: schedule and indices under each policy, gates, names, cancel, close, lease, bounds. */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"
#include "dataplane/spot/timer.h"

#include <errno.h>
#include <limits.h>

#define f   test_rig
#define MS  (uint64_t) FAKE_MS
#define LAG 3 /* the wheel may be this many ms late, never early */

/* What the probe of a Spot starts, and what came of it. */
static struct {
	const char *name;
	int64_t period;
	struct spl_timer_options options;
	int rc;
	struct spl_timer timer;
} start;

static struct {
	struct spl_tick tick;
	char name[16];
} got[64];
static unsigned n_got;

static int note_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	struct test_state *s = state;

	CU_ASSERT_EQUAL(s->inside++, 0);
	CU_ASSERT_FATAL(n_got < T_COUNT(got));
	got[n_got].tick = *tick;
	memcpy(got[n_got].name, tick->name->b, tick->name->len < 15 ? tick->name->len : 15);
	n_got++;
	fake_log("tick");
	CU_ASSERT_EQUAL(spl_reply(turn, SPL_CONTENT_RAW, "x", 1), -EINVAL);
	s->inside--;
	return SPL_DONE;
}

static spl_timer_fn callback = note_tick;

static int start_it(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	start.rc = spl_timer_start(turn, start.name, strlen(start.name), start.period, callback,
				   &start.options, &start.timer);
	return SPL_DONE;
}

static void begin(const struct spl_stage *stage)
{
	test_start(1);
	memset(&start, 0, sizeof(start));
	memset(got, 0, sizeof(got));
	n_got = 0;
	callback = note_tick;
	test_stage_probe = start_it;
	fake_create(&f, "a", fake_stage(stage));
	fake_log_clear();
}

static void start_timer(const char *name, int64_t period, struct spl_timer_options options)
{
	start.name = name;
	start.period = period;
	start.options = options;
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
}

/* In steps, each with its passes, so that no tick is late by more than the wheel. */
static void live(uint64_t ms)
{
	while (ms-- > 0) {
		fake_advance(&f, MS);
		fake_run(&f);
	}
}

static void check_tick(unsigned i, uint64_t delivery, uint64_t scheduled, uint64_t skipped)
{
	CU_ASSERT_FATAL(i < n_got);
	CU_ASSERT_EQUAL(got[i].tick.delivery_index, delivery);
	CU_ASSERT_EQUAL(got[i].tick.scheduled_index, scheduled);
	CU_ASSERT_EQUAL(got[i].tick.skipped, skipped);
}

/* Every field, on a schedule that lateness does not shift. */
static void test_schedule(void)
{
	uint64_t t0;

	begin(&test_stage);
	t0 = f.now;
	start_timer("beat", 20 * FAKE_MS, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	live(19);
	CU_ASSERT_EQUAL(n_got, 0); /* never early */
	live(1 + LAG);
	CU_ASSERT_EQUAL(n_got, 1);
	live(1000);
	CU_ASSERT(n_got >= 50 && n_got <= 51);
	for (unsigned i = 0; i < n_got; i++) {
		const struct spl_tick *k = &got[i].tick;

		check_tick(i, i + 1, i + 1, 0);
		CU_ASSERT_STRING_EQUAL(got[i].name, "beat");
		CU_ASSERT_EQUAL(k->period_ns, 20 * MS);
		CU_ASSERT_EQUAL(k->begun_ns, t0);
		CU_ASSERT_EQUAL(k->scheduled_ns, t0 + (i + 1) * 20 * MS);
		CU_ASSERT_EQUAL(spl_tick_scheduled_elapsed(k), (i + 1) * 20 * MS);
		CU_ASSERT(spl_tick_delay(k) <= LAG * MS);
		CU_ASSERT_EQUAL(spl_tick_started_elapsed(k), k->started_ns - t0);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS), n_got);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_SKIPPED), 0);
	test_stop();
}

/* T-TM-1: nothing runs for five periods: only the newest is delivered; then the schedule goes on.
 */
static void test_skip(void)
{
	begin(&test_stage);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	live(10 + LAG);
	fake_advance(&f, 55 * MS - LAG * MS);
	fake_run(&f);
	live(10);
	check_tick(0, 1, 1, 0);
	check_tick(1, 2, 6, 4);
	check_tick(2, 3, 7, 0);
	CU_ASSERT_EQUAL(n_got, 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_SKIPPED), 4);
	test_stop();
}

/* A tick that waits in its queue is as new as can be when it begins. */
static void test_newest_at_start(void)
{
	begin(&test_stage);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_advance(&f, 12 * MS);
	spot_tick(f.lane[0].l, f.now, 64); /* queued: one is due */
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1);
	fake_advance(&f, 20 * MS);
	spot_tick(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1); /* and never twice */
	fake_run(&f);
	CU_ASSERT_EQUAL(n_got, 1);
	check_tick(0, 1, 3, 2);
	test_stop();
}

/* T-TM-2: the example of S-TIMER-7 (last 1, now 11 due, at most 3: 9, 10, 11), and one of 1. */
static void catch_up(int32_t most, uint64_t first)
{
	begin(&test_stage);
	start_timer(
		"beat", 10 * FAKE_MS,
		(struct spl_timer_options){.overrun = SPL_OVERRUN_CATCH_UP, .catch_up_max = most});
	live(10 + LAG);
	fake_advance(&f, 112 * MS - (10 + LAG) * MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_got, 1 + 11 - first + 1);
	check_tick(0, 1, 1, 0);
	check_tick(1, 2, first, first - 2);
	for (unsigned i = 2; i < n_got; i++)
		check_tick(i, i + 1, first + i - 1, 0);
	live(8 + LAG);
	CU_ASSERT_EQUAL(got[n_got - 1].tick.scheduled_index, 12);
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
	int rc = note_tick(turn, state, tick);

	f.now += 25 * MS;
	return rc;
}

static void test_delay(void)
{
	begin(&test_stage);
	callback = slow_tick;
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){.overrun = SPL_OVERRUN_DELAY});
	live(100);
	CU_ASSERT(n_got >= 7);
	for (unsigned i = 0; i < n_got; i++) {
		check_tick(i, i + 1, i + 1, 0);
		if (i > 0) {
			CU_ASSERT(got[i].tick.started_ns >= got[i - 1].tick.started_ns + 35 * MS);
			CU_ASSERT_EQUAL(got[i].tick.scheduled_ns,
					got[i - 1].tick.started_ns + 35 * MS);
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

	begin(&test_stage);
	for (unsigned i = 0; i < T_COUNT(rows); i++) {
		uint64_t before = fake_counter(&f, SPL_C_TIMERS);

		start_timer("row", rows[i].period, rows[i].o);
		CU_ASSERT_EQUAL(start.rc, rows[i].rc);
		if (rows[i].rc)
			CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), before);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	start_timer(name, INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, -EINVAL);
	name[255] = '\0';
	start_timer(name, INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, 0);
	start_timer("", INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, -EINVAL);
	start_timer("\xff", INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, -EINVAL);
	callback = NULL;
	start_timer("none", INT64_MAX, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, -EINVAL);
	CU_ASSERT_EQUAL(spl_timer_start(NULL, "x", 1, 1, note_tick, NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 2);
	live(50);
	CU_ASSERT_EQUAL(n_got, 0); /* the longest period is never over */
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
	cancel_rc[0] = spl_timer_cancel(turn, start.timer);
	cancel_rc[1] = spl_timer_cancel(turn, start.timer);
	return SPL_DONE;
}

static void probe(const char *id, int (*fn)(struct spl_turn *, void *, const struct spl_message *))
{
	test_stage_probe = fn;
	fake_send(&f, id, "probe", "");
	fake_run(&f);
	test_stage_probe = start_it;
}

/* T-TM-5: started anew, or cancelled, while a tick is queued: the old one never runs. */
static void test_again(void)
{
	begin(&test_stage);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	handle[0] = start.timer;
	live(10 + LAG);
	live(10);
	CU_ASSERT_EQUAL(n_got, 2);
	/* Behind the message that starts it anew a tick is queued. */
	start.period = 40 * FAKE_MS;
	fake_send(&f, "a", "probe", "");
	fake_advance(&f, 10 * MS);
	spot_tick(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 2);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_got, 2);
	handle[1] = start.timer;
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	live(40 + LAG);
	CU_ASSERT_EQUAL(n_got, 3);
	check_tick(2, 1, 1, 0); /* indices begin anew */
	probe("a", look);
	CU_ASSERT(disposed[0] && !disposed[1]);

	fake_advance(&f, 40 * MS);
	test_stage_probe = cancel_it;
	fake_send(&f, "a", "probe", "");
	spot_tick(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 2);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_got, 3);
	CU_ASSERT(cancel_rc[0] == 0 && cancel_rc[1] == 0);
	probe("a", look);
	CU_ASSERT(disposed[1]);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	probe("a", cancel_it); /* long gone */
	CU_ASSERT(cancel_rc[0] == 0 && cancel_rc[1] == 0);
	live(100);
	CU_ASSERT_EQUAL(n_got, 3);
	test_stop();
}

/* A handle of another Spot, and numbers that name nothing. */
static void test_foreign(void)
{
	begin(&test_stage);
	fake_create(&f, "b", fake_stage(&test_stage));
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	handle[0] = start.timer;
	probe("b", cancel_it);
	CU_ASSERT_EQUAL(cancel_rc[0], -EINVAL);
	probe("b", look);
	CU_ASSERT(disposed[0] && disposed[1]);
	start.timer.id = UINT64_MAX;
	probe("a", cancel_it);
	CU_ASSERT_EQUAL(cancel_rc[0], 0);
	start.timer.id = 0;
	probe("a", cancel_it);
	CU_ASSERT_EQUAL(cancel_rc[0], 0);
	live(10 + LAG);
	CU_ASSERT_EQUAL(n_got, 1);
	test_stop();
}

/* ---- ticks that wait ---- */

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
	int rc = note_tick(turn, state, tick);

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

static void reply(uint64_t correlation)
{
	struct spot_reply r = {
		.correlation = correlation, .kind = SPL_OK, .origin = SPOT_FROM_AGENT};

	spot_reply_in(f.lane[0].l, &r);
}

/* T-CLAIM-3: a callback yields over several due points: the key never overlaps, messages run, and
 * the indices obey the policy afterwards. What the callback was given has not changed. */
static void test_yielding_tick(void)
{
	begin(&test_stage);
	callback = tick_that_waits;
	tick_waits = SPL_WAIT_YIELD;
	overlaps = running = 0;
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	live(10 + LAG);
	fake_send(&f, "a", "log", "p1");
	live(32);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick p1");
	reply(waiting);
	fake_send(&f, "a", "log", "p2");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick p1 tick-resumed p2 tick");
	check_tick(1, 2, 4, 2);
	CU_ASSERT_EQUAL(overlaps, 0);
	reply(waiting);
	fake_run(&f);
	test_stop();
}

/* A name that is started anew while its callback waits: the two do not overlap, and the old one
 * ends as it was. */
static void test_again_while_it_waits(void)
{
	begin(&test_stage);
	callback = tick_that_waits;
	tick_waits = SPL_WAIT_YIELD;
	overlaps = running = 0;
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	live(10 + LAG);
	CU_ASSERT_EQUAL(n_got, 1);
	for (int i = 0; i < 20; i++) /* any number of times */
		start_timer("beat", 5 * FAKE_MS, (struct spl_timer_options){0});
	CU_ASSERT_EQUAL(start.rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 2);
	live(30);
	CU_ASSERT_EQUAL(n_got, 1);
	reply(waiting);
	live(LAG);
	CU_ASSERT_EQUAL(n_got, 2);
	check_tick(1, 1, 6, 5);
	CU_ASSERT_EQUAL(overlaps, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	reply(waiting);
	fake_run(&f);
	test_stop();
}

/* T-TM-6, T-YIELD-4: under HOLD a due tick waits for the gate; under YIELD it runs before the rest
 * of the handler. */
static void test_gate(void)
{
	uint64_t r;

	begin(&test_stage);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	r = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	live(30);
	CU_ASSERT_EQUAL(n_got, 0);
	reply(f.missing_correlation);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "held resumed tick");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, NULL));
	check_tick(0, 1, 3, 2);

	fake_log_clear();
	fake_request(&f, "a", "yield", "nobody echo x");
	fake_run(&f);
	fake_advance(&f, (10 + LAG) * MS);
	spot_tick(f.lane[0].l, f.now, 64);
	reply(f.missing_correlation);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "yielded tick resumed");
	test_stop();
}

/* T-GATE-2 without Actors: with a gate for each, timers do not wait for each other or for the Spot,
 * nor the Spot for them; each one's callbacks stay one at a time; no YIELD there. */
static void test_own_gates(void)
{
	uint64_t first;

	begin(&test_stage_actors);
	overlaps = running = 0;
	callback = tick_that_waits;
	tick_waits = SPL_WAIT_YIELD;
	start_timer("one", 10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
	live(10 + LAG);
	CU_ASSERT_EQUAL(wait_rc, -EPERM);
	CU_ASSERT_EQUAL(n_got, 1);

	tick_waits = SPL_WAIT_HOLD;
	start_timer("one", 10 * FAKE_MS, (struct spl_timer_options){0});
	callback = note_tick;
	start_timer("two", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_log_clear();
	live(10 + LAG);
	first = waiting;
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick tick");
	live(10);
	fake_send(&f, "a", "log", "p1");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick tick tick p1"); /* "two" again, "one" waits */
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	live(10);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick tick tick p1 held tick");
	fake_log_clear();
	reply(first); /* goes on although the Spot's gate is held */
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick-resumed tick");
	CU_ASSERT_EQUAL(overlaps, 0);
	fake_log_clear();
	reply(f.missing_correlation); /* of the newest: the tick's */
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick-resumed");
	fake_advance(&f, 2000 * MS); /* the handler's wait ends by its deadline */
	fake_run(&f);
	reply(waiting);
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

		begin(stages[i]);
		callback = tick_asks_its_spot;
		self_kind = -1;
		start_timer("ask", 10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
		live(10 + LAG);
		CU_ASSERT_EQUAL(self_rc, own ? 0 : -EDEADLK);
		CU_ASSERT_EQUAL(self_kind, own ? SPL_OK : -1);
		test_stop();
	}
}

/* ---- admission ---- */

/* T-TM-6 and S-TIMER-10: no room: the tick stays with the scheduler and comes when there is. */
static void test_no_room(void)
{
	begin(&test_stage_small);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	for (int i = 0; i < 3; i++)
		fake_send(&f, "a", "log", "q");
	live(25);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 4);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 0);
	reply(f.missing_correlation);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_got, 0);
	live(LAG);
	CU_ASSERT_EQUAL(n_got, 1);
	check_tick(0, 1, 2, 1);
	test_stop();
}

static struct spl_timer_options init_options;
static int timer_at_initialize(struct spl_turn *turn, void *state)
{
	CU_ASSERT_EQUAL(
		spl_timer_start(turn, "early", 5, 10 * FAKE_MS, note_tick, &init_options, NULL), 0);
	return SPL_DONE;
}

static int closing_timer_rc;
static int timer_at_closing(struct spl_turn *turn, void *state, enum spl_closing why,
			    uint64_t until)
{
	fake_log("closing");
	closing_timer_rc = spl_timer_start(turn, "late", 4, 10 * FAKE_MS, note_tick, NULL, NULL);
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

	begin(&test_stage);
	init_options = (struct spl_timer_options){0};
	generation = fake_prepare(&f, "early", fake_stage(&with_timers), NULL, 0);
	fake_run(&f);
	live(50);
	CU_ASSERT_EQUAL(n_got, 0);
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	live(20);
	CU_ASSERT(n_got >= 2);
	CU_ASSERT(got[0].tick.scheduled_index >= 5);
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

	begin(&test_stage);
	generation = fake_create(&f, "c", fake_stage(&with_timers));
	live(10 + LAG);
	n = n_got;
	CU_ASSERT_EQUAL(n, 1);
	fake_log_clear();
	fake_advance(&f, 10 * MS);
	spot_tick(f.lane[0].l, f.now, 64); /* accepted */
	fake_close(&f, "c", generation, SPL_CLOSING_HOST_SHUTDOWN, f.now + 1000 * MS);
	live(50);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "tick closing");
	CU_ASSERT_EQUAL(closing_timer_rc, -ESHUTDOWN);
	CU_ASSERT_EQUAL(n_got, n + 1);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);

	/* The deadline of the close passes while the tick waits behind a turn that holds the gate.
	 */
	generation = fake_create(&f, "d", fake_stage(&test_stage));
	test_stage_probe = start_it;
	start.name = "beat";
	start.period = 10 * FAKE_MS;
	fake_send(&f, "d", "probe", "");
	fake_send(&f, "d", "hold", "nobody echo x");
	fake_run(&f);
	live(10 + LAG);
	n = n_got;
	fake_close(&f, "d", generation, SPL_CLOSING_EXPLICIT, f.now + 20 * MS);
	live(30);
	CU_ASSERT_EQUAL(n_got, n);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->error, SPL_E_DEADLINE_EXCEEDED);
	test_stop();
}

/* The node takes nothing new (A-DRAIN-8). */
static void test_sealed(void)
{
	begin(&test_stage);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	live(10 + LAG);
	spot_lane_seal(f.lane[0].l);
	live(50);
	CU_ASSERT_EQUAL(n_got, 1);
	test_stop();
}

/* T-TM-8: the lease ends between the queue and the callback, as after a long stop of the process;
 * a Spot that is lost; a lease that comes back. */
static void test_lease(void)
{
	uint64_t generation;

	begin(&test_stage);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_advance(&f, 12 * MS);
	spot_tick(f.lane[0].l, f.now, 64);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1);
	f.lease = f.now + 5 * MS;
	fake_advance(&f, 100 * MS);
	live(30);
	CU_ASSERT_EQUAL(n_got, 0);
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 0);
	f.lease = UINT64_MAX;
	live(20);
	CU_ASSERT(n_got >= 1);
	CU_ASSERT(got[0].tick.scheduled_index >= 14);
	CU_ASSERT_EQUAL(got[0].tick.delivery_index, 1);
	generation = fake_create(&f, "b", fake_stage(&test_stage));
	fake_send(&f, "b", "probe", "");
	fake_run(&f);
	fake_advance(&f, 12 * MS);
	spot_tick(f.lane[0].l, f.now, 64);
	n_got = 0;
	fake_close(&f, "a", f.next_generation - 1, SPOT_FENCED, 0);
	fake_close(&f, "b", generation, SPOT_FENCED, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_got, 0);
	CU_ASSERT_PTR_NULL(test_spot("b"));
	test_stop();
}

/* ---- ends ---- */

static int failing_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	note_tick(turn, state, tick);
	return tick->delivery_index == 1 ? SPL_FAIL(SPL_E_DATA_LOST) : SPL_DONE;
}

/* T-TM-9: only that tick fails; with the flag the timer ends. */
static void test_failure(void)
{
	begin(&test_stage);
	callback = failing_tick;
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	live(33);
	CU_ASSERT_EQUAL(n_got, 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_FAILED), 1);
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){.stop_on_failure = true});
	handle[0] = start.timer;
	live(50);
	CU_ASSERT_EQUAL(n_got, 4);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TICKS_FAILED), 2);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	probe("a", look);
	CU_ASSERT(disposed[0]);
	test_stop();
}

static bool seen_disposed;
static int look_at_self(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	seen_disposed = spl_timer_is_disposed(turn, start.timer);
	return note_tick(turn, state, tick);
}

/* T-TM-12: once, and disposed by the time its callback runs; late or not it is tick 1. */
static void test_one_shot(void)
{
	begin(&test_stage);
	callback = look_at_self;
	start_timer("once", 10 * FAKE_MS, (struct spl_timer_options){.one_shot = true});
	fake_advance(&f, 45 * MS);
	live(50);
	CU_ASSERT_EQUAL(n_got, 1);
	check_tick(0, 1, 1, 0);
	CU_ASSERT(seen_disposed);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	test_stop();
}

static int again_in_its_callback(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	note_tick(turn, state, tick);
	CU_ASSERT_EQUAL(spl_timer_start(turn, tick->name->b, tick->name->len,
					(int64_t)tick->period_ns, again_in_its_callback, NULL,
					&start.timer),
			0);
	return SPL_DONE;
}

static int cancels_itself(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	CU_ASSERT_EQUAL(spl_timer_cancel(turn, start.timer), 0);
	CU_ASSERT_EQUAL(spl_timer_cancel(turn, start.timer), 0);
	CU_ASSERT(spl_timer_is_disposed(turn, start.timer));
	CU_ASSERT_EQUAL(tick->name->len, 4); /* what it was given stays */
	return note_tick(turn, state, tick);
}

static void test_from_its_callback(void)
{
	begin(&test_stage);
	callback = again_in_its_callback;
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	live(60);
	CU_ASSERT(n_got >= 4);
	for (unsigned i = 0; i < n_got; i++)
		check_tick(i, 1, 1, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 1);
	callback = cancels_itself;
	start_timer("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	n_got = 0;
	live(50);
	CU_ASSERT_EQUAL(n_got, 1);
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
	test_stage_probe = start_it;
	callback = note_tick;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (int i = 0; i < 13; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		start_timer(name, INT64_MAX, (struct spl_timer_options){0});
		CU_ASSERT_EQUAL(start.rc, i < 12 ? 0 : -ENOBUFS);
	}
	CU_ASSERT_EQUAL(spl_error_of(start.rc), SPL_E_CAPACITY_EXCEEDED);
	start_timer("t3", INT64_MAX, (struct spl_timer_options){0}); /* in the place of the old */
	CU_ASSERT_EQUAL(start.rc, 0);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		start.name = name;
		fake_send(&f, "b", "probe", "");
		fake_run(&f);
		CU_ASSERT_EQUAL(start.rc, i < 8 ? 0 : -ENOBUFS); /* the lane has no more */
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 20);
	test_stop();
}

/* T-TM-11, T-FAIR-4: many, for long: nothing grows, nothing but the places is used. */
static int count_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	waiting++;
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
	test_stage_probe = start_it;
	callback = count_tick;
	waiting = 0;
	start = (typeof(start)){.name = name, .period = 100 * FAKE_MS};
	for (int i = 0; i < 1250; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		fake_create(&f, id, fake_stage(&test_stage));
		for (int k = 0; k < 16; k++) {
			snprintf(name, sizeof(name), "t%d", k);
			fake_send(&f, id, "probe", "");
			fake_run(&f);
			CU_ASSERT_EQUAL_FATAL(start.rc, 0);
		}
	}
	blocks = f.lane[0].l->mem_own;
	live(1000);
	CU_ASSERT(waiting >= 9 * 20000 && waiting <= 20 * 10000);
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
	T(test_yielding_tick, "S-CLAIM-2", "S-TIMER-9", "S-YIELD-1"),
	T(test_again_while_it_waits, "S-CLAIM-2", "S-TIMER-3"),
	T(test_gate, "S-TIMER-10", "S-YIELD-3", "S-GATE-3"),
	T(test_own_gates, "S-GATE-3", "S-GATE-4", "S-YIELD-2", "S-KIND-4"),
	T(test_tick_asks_its_spot, "S-REENT-1"),
	T(test_no_room, "S-TIMER-10"),
	T(test_before_ready, "S-TIMER-12", "S-CREATE-5"),
	T(test_close, "S-TIMER-14", "S-CLOSE-4"),
	T(test_sealed, "S-TIMER-14"),
	T(test_lease, "S-TIMER-12"),
	T(test_failure, "S-TURN-10"),
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
