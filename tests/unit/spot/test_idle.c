/* SPDX-License-Identifier: BSD-3-Clause */
/* Instance Spots that nobody uses: who is asked about, when, and what keeps one there. */
#include "dataplane/spot/idle.h"
#include "tests/unit/spot/cartstage.h"

#include "common/ids.h"

#include <errno.h>

#define f    test_rig
#define IDLE 1000u /* ms */

static void start(void)
{
	cart_begin(1);
	f.conf.idle_ms = IDLE;
	fake_start(&f);
}

static uint64_t make(const char *id)
{
	uint64_t generation;

	fake_instance(&f, id, "cart", false, "log", "made");
	generation = cart_start();
	fake_run(&f);
	return generation;
}

static void pass(uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 10) {
		fake_advance(&f, 10 * FAKE_MS);
		fake_run(&f);
	}
}

/* T-IDLE-1: after the time, once, with its reason; closed, and the next message asks anew. */
static void test_evicted(void)
{
	uint64_t generation, plain;

	start();
	generation = make("c1");
	pass(IDLE - 20);
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	pass(IDLE / 2);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	CU_ASSERT_EQUAL(f.close_reason, SPL_CLOSING_IDLE_EVICTED);
	CU_ASSERT_EQUAL(f.close_generation, generation);
	CU_ASSERT(f.close_id.len == 2 && memcmp(f.close_id.b, "c1", 2) == 0);
	cart_close("c1", generation, SPL_CLOSING_IDLE_EVICTED);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(cart_closings, 1);
	CU_ASSERT_EQUAL(cart_reason, SPL_CLOSING_IDLE_EVICTED);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 0);
	plain = fake_request(&f, "c1", "log", "x");
	CU_ASSERT(fake_replied(&f, plain, SPL_E_UNAVAILABLE, "")); /* a stale route: S-ADDR-6 */
	fake_instance(&f, "c1", "cart", false, "log", "again");
	CU_ASSERT(cart_start() > generation);
	test_stop();
}

/* The time counts from the last work, whatever it was. */
static void test_work_puts_it_off(void)
{
	start();
	make("c1");
	for (int i = 0; i < 8; i++) {
		pass(IDLE / 2);
		if (i % 2)
			fake_send(&f, "c1", "log", "work");
		else
			fake_request(&f, "c1", "log", "work");
		fake_run(&f);
	}
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	pass(IDLE + IDLE / 2);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	test_stop();
}

/* What waits keeps it: a turn under HOLD or YIELD, a timer, a queue that may not run. */
static void test_what_keeps_it(void)
{
	uint64_t r;

	start();
	make("held");
	make("yielded");
	make("timed");
	make("queued");
	r = fake_request(&f, "held", "ask", "nowhere log x"); /* that one is never started */
	fake_send(&f, "yielded", "yield", "");
	fake_send(&f, "timed", "timer", "");
	fake_run(&f);
	f.permits = 0;
	fake_pass(&f, 1);
	fake_request(&f, "queued", "log", "waits for a permit");
	for (int i = 0; i < 40; i++) { /* less than the 500 ms of "ask" */
		fake_advance(&f, 10 * FAKE_MS);
		fake_pass(&f, 8);
	}
	CU_ASSERT(!spot_is_idle(f.lane[0].l, test_spot("held")));
	CU_ASSERT(!spot_is_idle(f.lane[0].l, test_spot("yielded")));
	CU_ASSERT(!spot_is_idle(f.lane[0].l, test_spot("timed")));
	CU_ASSERT(!spot_is_idle(f.lane[0].l, test_spot("queued")));
	f.permits = UINT32_MAX;
	fake_activated(&f, SPL_E_NOT_FOUND);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "DeadlineExceeded ") ||
		  fake_replied(&f, r, SPL_OK, "NotFound "));
	pass(3 * IDLE);
	CU_ASSERT_EQUAL(f.close_reason, SPL_CLOSING_IDLE_EVICTED);
	CU_ASSERT(spot_is_idle(f.lane[0].l, test_spot("held")));
	CU_ASSERT(spot_is_idle(f.lane[0].l, test_spot("queued")));
	CU_ASSERT(!spot_is_idle(f.lane[0].l, test_spot("yielded")));
	CU_ASSERT(!spot_is_idle(f.lane[0].l, test_spot("timed")));
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "go");
	fake_run(&f);
	CU_ASSERT(spot_is_idle(f.lane[0].l, test_spot("yielded")));
	test_stop();
}

/* Never without a time, never a User or an Entry Spot. */
static void test_never(void)
{
	start();
	fake_create(&f, "user", fake_stage(&cart_user));
	fake_create(&f, "entry", fake_stage(&test_stage_entry));
	pass(4 * IDLE);
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	test_stop();
	cart_begin(1);
	fake_start(&f);
	make("c1");
	pass(20 * IDLE);
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	test_stop();
}

/* The close comes when it has work again: the Spot answers Busy and goes on, and has its whole time
 * again. A message that was accepted is not lost to an eviction. */
static void test_used_before_the_seal(void)
{
	uint64_t generation, r;

	start();
	generation = make("c1");
	pass(IDLE + IDLE / 2);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	r = fake_instance(&f, "c1", "cart", true, "log", "just in time");
	fake_close(&f, "c1", generation, SPL_CLOSING_IDLE_EVICTED, 0);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_BUSY);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "just in time"));
	CU_ASSERT_EQUAL(cart_closings, 0);
	/* It is idle again at once, but has not been for its time. */
	fake_close(&f, "c1", generation, SPL_CLOSING_IDLE_EVICTED, 0);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_BUSY);
	pass(IDLE - 20);
	fake_close(&f, "c1", generation, SPL_CLOSING_IDLE_EVICTED, 0);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_BUSY);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	pass(IDLE / 2);
	CU_ASSERT_EQUAL(f.close_wanted, 2);
	cart_close("c1", generation, SPL_CLOSING_IDLE_EVICTED);
	CU_ASSERT_EQUAL(cart_closings, 1);
	test_stop();
}

/* Nothing came of it, or the agent had no room to be asked: it asks again. */
static void test_asks_again(void)
{
	start();
	make("c1");
	f.close_error = -EAGAIN;
	pass(2 * IDLE);
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	f.close_error = 0;
	pass(IDLE / 2);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	pass(IDLE / 2);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	pass(IDLE);
	CU_ASSERT_EQUAL(f.close_wanted, 2);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 1); /* it serves meanwhile */
	spot_lane_seal(f.lane[0].l);
	pass(4 * IDLE);
	CU_ASSERT_EQUAL(f.close_wanted, 2);
	test_stop();
}

/* T-SP-24: a look goes over 64 of them and goes on there, also when some have gone. */
static void test_bounded(void)
{
	const unsigned n = 300;
	uint64_t generation[300];
	char id[16];
	struct spot_lane *l;

	start();
	l = f.lane[0].l;
	for (unsigned i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "c%u", i);
		generation[i] = make(id);
	}
	f.now += 2 * IDLE * (uint64_t)FAKE_MS; /* no look in between; all were marked once or not */
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned k = 0; k < 5; k++) {
			unsigned before = f.close_wanted, marks = 0;

			spot_idle_look(l, f.now);
			CU_ASSERT(f.close_wanted - before <= 64);
			for (unsigned i = 0; i < n; i++) {
				snprintf(id, sizeof(id), "c%u", i);
				marks += test_spot(id)->app.tail >> 31;
			}
			if (round == 0)
				CU_ASSERT(marks <= 64 * (k + 1));
			if (round == 0 && k == 4)
				CU_ASSERT_EQUAL(marks, n);
		}
		f.now += 2 * IDLE * (uint64_t)FAKE_MS;
	}
	CU_ASSERT(f.close_wanted >= n);
	for (unsigned i = 0; i < n; i += 2) {
		snprintf(id, sizeof(id), "c%u", i);
		cart_close(id, generation[i], SPL_CLOSING_EXPLICIT);
	}
	CU_ASSERT_EQUAL(l->instances, n / 2);
	f.close_wanted = 0;
	for (unsigned k = 0; k < 3; k++)
		spot_idle_look(l, f.now);
	CU_ASSERT(f.close_wanted > 0 && f.close_wanted <= n / 2);
	for (unsigned i = 1; i < n; i += 2) {
		snprintf(id, sizeof(id), "c%u", i);
		cart_close(id, generation[i], SPL_CLOSING_EXPLICIT);
	}
	CU_ASSERT(l->instances == 0 && l->idle_due == UINT64_MAX);
	test_stop();
}

/* T-DR-1: a stop of all three kinds: what was accepted runs, then on_closing once with its reason
 * and the absolute deadline, then nothing is left: no timer, no queue, no Spot. A close that comes
 * again for one that is gone runs nothing. */
static void test_stop_of_a_lane(void)
{
	static const char *const ids[] = {"user", "cart", "entry"};
	uint64_t deadline, generation[3], r[3], plain;

	cart_begin(1);
	fake_start(&f);
	generation[0] = fake_create(&f, "user", fake_stage(&cart_user));
	fake_instance(&f, "cart", "cart", false, "log", "started");
	generation[1] = cart_start();
	generation[2] = fake_create(&f, "entry", fake_stage(&cart_entry));
	for (int i = 0; i < 3; i++)
		fake_send(&f, ids[i], "timer", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 3);
	for (int i = 0; i < 3; i++)
		r[i] = fake_request(&f, ids[i], "log", "accepted");
	spot_lane_seal(f.lane[0].l);
	deadline = f.now + 1000 * FAKE_MS;
	for (int i = 0; i < 3; i++) {
		fake_log_clear();
		plain = fake_request(&f, ids[i], "log", "late");
		CU_ASSERT(fake_replied(&f, plain, SPL_E_SHUTTING_DOWN, ""));
		fake_close(&f, ids[i], generation[i], SPL_CLOSING_HOST_SHUTDOWN, deadline);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r[i], SPL_OK, "accepted"));
		CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), i ? "closing 1" : "accepted"));
		CU_ASSERT_EQUAL(cart_closings, (uint64_t)i + 1);
		CU_ASSERT_EQUAL(cart_reason, SPL_CLOSING_HOST_SHUTDOWN);
		CU_ASSERT_EQUAL(cart_deadline_ns, deadline); /* a cycle is a nanosecond here */
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_ACCEPTED);
		fake_close(&f, ids[i], generation[i], SPL_CLOSING_HOST_SHUTDOWN, deadline);
		fake_run(&f);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_GONE);
		CU_ASSERT_EQUAL(cart_closings, (uint64_t)i + 1);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 0);
	CU_ASSERT(spot_lane_quiet(f.lane[0].l));
	test_stop();
}

static const struct t_case cases[] = {
	T(test_evicted, "S-IDLE-1", "S-IDLE-3", "A-LOC-45", "S-CLOSE-7"),
	T(test_work_puts_it_off, "S-IDLE-2"),
	T(test_what_keeps_it, "S-IDLE-2", "A-LOC-45"),
	T(test_never, "S-IDLE-1"),
	T(test_used_before_the_seal, "S-IDLE-2", "S-CLOSE-4"),
	T(test_asks_again, "S-IDLE-3"),
	T(test_bounded, "S-IDLE-4", "A-LOC-45"),
	T(test_stop_of_a_lane, "A-DRAIN-4", "A-DRAIN-9", "S-CLOSING-1", "S-CLOSING-2"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_idle", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
