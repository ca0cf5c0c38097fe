/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends to another lane whose sender waits for the admission, when the answer is late, does not
 * come, or is not waited for (S-LIM-6): beside test_waiters.c.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <stdio.h>

#define f test_rig

static int rc;
static struct spl_call *call;
static uint32_t timeout_ms;
static char sender[16]; /* a Spot that sends, in another lane than "a" */

static int told(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	char text[64];

	snprintf(text, sizeof(text), "told:%s", spl_error_name(r->kind));
	fake_log(text);
	return SPL_DONE;
}

/* Sends its payload to "a", and waits. */
static int sends(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	rc = spl_send_wait(turn, &t, spl_packet_key("log", 3), SPL_CONTENT_TEXT, m->payload,
			   m->payload_bytes, timeout_ms, &call);
	CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
	return SPL_SUSPENDED;
}

/* "a" holds its gate and has a full queue. */
static void start(void)
{
	test_start(3);
	test_stage_probe = sends;
	timeout_ms = 0;
	fake_create(&f, "a", fake_stage(&test_stage_small));
	for (int i = 0; i == 0 || fake_lane_of(&f, sender) == fake_lane_of(&f, "a"); i++)
		snprintf(sender, sizeof(sender), "s%d", i);
	fake_create(&f, sender, fake_stage(&test_stage));
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	fake_send(&f, "a", "log", "1");
	fake_send(&f, "a", "log", "2");
	fake_send(&f, "a", "log", "3");
	CU_ASSERT_EQUAL_FATAL(test_spot("a")->app.count, 4);
	fake_log_clear();
}

/* "a" goes on. */
static void let_go(void)
{
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
}

static unsigned waiters(void)
{
	return fake_lane_of(&f, "a")->l->waiters;
}

static void end(void)
{
	CU_ASSERT_EQUAL(waiters(), 0);
	CU_ASSERT(fake_law(&f));
	test_stop();
}

/* It has lain in the ring past its time, with Instance intent, which is looked at no sooner. */
static int intends(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	CU_ASSERT_EQUAL(spl_target_set_instance(&t, "wrong"), 0);
	rc = spl_send_wait(turn, &t, spl_packet_key("log", 3), SPL_CONTENT_TEXT, "late", 4, 5,
			   &call);
	CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
	return SPL_SUSPENDED;
}

static void test_late_with_intent(void)
{
	start();
	let_go();
	fake_log_clear();
	test_stage_probe = intends;
	rc = 77;
	fake_send(&f, sender, "probe", "");
	spot_run(fake_lane_of(&f, sender)->l, 10, UINT64_MAX);
	CU_ASSERT_EQUAL(rc, 0);
	f.now += 6 * (uint64_t)FAKE_MS;
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 1);
	end();
}

/* Its Spot's time is up before there is an answer: the send may still be admitted, and is, so
 * nobody says that it never will. */
static void test_sender_ends_by_force(void)
{
	struct spl_key key;
	struct spot *s;

	start();
	timeout_ms = 5000;
	fake_send(&f, sender, "probe", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(waiters(), 1);
	key = spl_spot_key(sender, strlen(sender));
	s = table_find(&fake_lane_of(&f, sender)->l->table, &key);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	fake_close(&f, sender, spot_cold_of(s)->object_generation, SPL_CLOSING_EXPLICIT,
		   f.now + 10 * (uint64_t)FAKE_MS);
	fake_advance(&f, 20 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), "told:Unavailable"));
	CU_ASSERT_PTR_NULL(strstr(fake_logged(), "told:DeadlineExceeded"));
	fake_log_clear();
	let_go();
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed 1 2 3 x");
	end();
}

/* What is due in `l`, whatever the others do. */
static void catch_up(struct spot_lane *l)
{
	for (int i = 0; i < 1000; i++) /* of the wheel so many slots each time */
		spot_tick(l, f.now, 10);
	spot_run(l, 10, UINT64_MAX);
}

/* The other lane stands still until long after the time: nobody knows what it will say, and it does
 * not admit the send then. */
static void test_no_answer(void)
{
	struct spot_lane *l;

	start();
	let_go();
	fake_log_clear();
	l = fake_lane_of(&f, sender)->l;
	timeout_ms = 5;
	fake_send(&f, sender, "probe", "late");
	spot_run(l, 10, UINT64_MAX);
	f.now += 1000 * (uint64_t)FAKE_MS;
	catch_up(l);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	f.now += 50 * (uint64_t)FAKE_MS;
	catch_up(l);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:Unavailable");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:Unavailable");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 1);
	end();
}

static const struct t_case cases[] = {
	T(test_late_with_intent, "S-LIM-6", "S-LIM-8"),
	T(test_sender_ends_by_force, "S-LIM-6"),
	T(test_no_answer, "S-LIM-6"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_told", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
