/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that wait more than once, and calls that are cancelled. */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>
#include <pthread.h>

#define f test_rig

static struct spl_call *its_call, *my_call;
static int cancel_rc[4];

static int saw_cancel(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	CU_ASSERT_EQUAL(r->kind, SPL_CANCELLED);
	CU_ASSERT_EQUAL(r->payload_bytes, 0);
	cancel_rc[3] = spl_call_cancel(turn, my_call); /* it has its result */
	fake_log("cancelled");
	return SPL_DONE;
}

static int cancel_things(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	cancel_rc[0] = spl_call_cancel(turn, its_call);
	CU_ASSERT_EQUAL(spl_call_cancel(turn, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_call_cancel(NULL, its_call), -EINVAL);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_HOLD, &my_call), 0);
	CU_ASSERT_EQUAL(spl_call_then(turn, my_call, saw_cancel, NULL), 0);
	cancel_rc[1] = spl_call_cancel(turn, my_call);
	cancel_rc[2] = spl_call_cancel(turn, my_call);
	return SPL_SUSPENDED;
}

/* T-COMPL-9: one winner; a call of another Spot is none of its business; a call that has ended, or
 * whose turn has, is not cancelled again. */
static void test_cancel(void)
{
	struct test_state *b;

	test_start(1);
	test_stage_probe = cancel_things;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	fake_request(&f, "b", "yield", "nobody echo x");
	fake_run(&f);
	b = spot_state_of(test_spot("b"));
	its_call = b->call;
	fake_log_clear();
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(cancel_rc[0], -EINVAL);
	CU_ASSERT_EQUAL(cancel_rc[1], 1);
	CU_ASSERT_EQUAL(cancel_rc[2], 0);
	CU_ASSERT_EQUAL(cancel_rc[3], 0);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "cancelled");
	CU_ASSERT_EQUAL(f.lane[0].l->calls_open, 1);
	fake_send(&f, "b", "cancel", "");
	fake_send(&f, "b", "cancel", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_CANCELLED), 2);
	test_stop();
}

/* Two YIELDs and a HOLD in one handler; calls that were started before the first one stay its. */
static struct spl_call *first, *second;
static struct spl_turn *turns[4];
static int step_rc;

static int step_held(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	fake_log("held");
	CU_ASSERT_PTR_EQUAL(turn, turns[2]);
	(void)spl_reply(turn, SPL_CONTENT_TEXT, "end", 3);
	return SPL_DONE;
}

static int step_two(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct spl_target t;
	struct spl_call *c;

	fake_log("two");
	turns[2] = turn;
	CU_ASSERT_EQUAL(spl_now_ns(turns[0]), 0); /* a turn that is over */
	CU_ASSERT_EQUAL(spl_call_then(turn, second, step_two, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set(&t, "b", 1), 0);
	CU_ASSERT_EQUAL(
		spl_request(turn, &t, spl_packet_key("echo", 4), 0, "x", 1, 0, SPL_WAIT_HOLD, &c),
		0);
	CU_ASSERT_EQUAL(spl_call_then(turn, c, step_held, NULL), 0);
	return SPL_SUSPENDED;
}

static int step_one(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	fake_log("one");
	turns[1] = turn;
	CU_ASSERT_EQUAL(spl_call_then(turns[0], second, step_two, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_call_then(turn, second, step_two, NULL), 0);
	return SPL_SUSPENDED;
}

static int step_begin(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;

	turns[0] = turn;
	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_YIELD, &first), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_YIELD, &second), 0);
	step_rc = spl_call_then(turn, first, step_one, NULL);
	return SPL_SUSPENDED;
}

static void test_several_waits(void)
{
	uint64_t r;

	test_start(1);
	test_stage_probe = step_begin;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	r = fake_request(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(step_rc, 0);
	fake_log_clear();
	fake_send(&f, "a", "log", "p1");
	fake_run(&f);
	fake_missing_says(&f, (uint64_t)(uintptr_t)first, SPL_OK, "1");
	fake_run(&f);
	fake_send(&f, "a", "log", "p2");
	fake_run(&f);
	CU_ASSERT_PTR_NULL(fake_reply(&f, r));
	fake_missing_says(&f, (uint64_t)(uintptr_t)second, SPL_OK, "2");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "p1 one p2 two held");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "end"));
	CU_ASSERT(turns[0] != turns[1] && turns[1] != turns[2]);
	/* The second answer is there before the first: each wait still is a turn of its own. */
	fake_log_clear();
	r = fake_request(&f, "a", "probe", "");
	fake_run(&f);
	fake_missing_says(&f, (uint64_t)(uintptr_t)second, SPL_OK, "2");
	fake_missing_says(&f, (uint64_t)(uintptr_t)first, SPL_OK, "1");
	fake_send(&f, "a", "log", "p3");
	fake_pass(&f, 1);
	fake_send(&f, "a", "log", "p4");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "one p3 two held p4");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "end"));
	test_stop();
}

/* A handler that asks for the close and then yields: the close is asked for when it has ended, not
 * its turn (S-CLOSE-6), and it may still ask its own Spot. */
static int closes_rc[2];
static int closed_answer(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	CU_ASSERT_EQUAL(r->kind, SPL_OK);
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	fake_log("answered");
	return SPL_DONE;
}

static int closes_and_yields(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	struct spl_call *c;

	closes_rc[0] = spl_close_self(turn);
	closes_rc[1] = spl_close_self(turn);
	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	CU_ASSERT_EQUAL(
		spl_request(turn, &t, spl_packet_key("echo", 4), 0, "x", 1, 0, SPL_WAIT_YIELD, &c),
		0);
	CU_ASSERT_EQUAL(spl_call_then(turn, c, closed_answer, NULL), 0);
	return SPL_SUSPENDED;
}

static void test_close_self_and_yield(void)
{
	test_start(1);
	test_stage_probe = closes_and_yields;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(closes_rc[0], 0);
	CU_ASSERT_EQUAL(closes_rc[1], -EALREADY);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "answered");
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	test_stop();
}

/* T-TURN-9: what a thread keeps for itself does not go with a turn: the lane is run by one thread
 * up to the wait, by another one from there on, and the handler finds its Spot, its lane and its
 * calls. */
static __thread int of_this_thread;
static int seen_by_thread;
static struct spl_turn *held_turn;
static int resumed_elsewhere(struct spl_turn *turn, void *state, const struct spl_result *r,
			     void *ctx)
{
	seen_by_thread = of_this_thread;
	CU_ASSERT_PTR_EQUAL(turn, held_turn);
	CU_ASSERT_EQUAL(spl_spot_id(turn)->len, 1);
	(void)spl_reply(turn, SPL_CONTENT_TEXT, "elsewhere", 9);
	return SPL_DONE;
}

static int holds_here(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	struct spl_call *c;

	of_this_thread = 7;
	held_turn = turn;
	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_HOLD, &c), 0);
	CU_ASSERT_EQUAL(spl_call_then(turn, c, resumed_elsewhere, NULL), 0);
	return SPL_SUSPENDED;
}

static void *run_lane(void *arg)
{
	fake_run(&f);
	return arg;
}

static void test_another_thread(void)
{
	pthread_t thread;
	uint64_t r;

	test_start(1);
	test_stage_probe = holds_here;
	fake_create(&f, "a", fake_stage(&test_stage));
	r = fake_request(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(of_this_thread, 7);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_lane, NULL), 0);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "elsewhere"));
	CU_ASSERT_EQUAL(seen_by_thread, 0);
	test_stop();
}

/* Outside a turn nothing of the stage interface does anything, and nothing waits. */
static void test_outside_a_turn(void)
{
	struct spl_turn *turn;
	struct spl_target t;
	struct spl_topic topic;
	struct spl_call *c;

	test_start(1);
	test_stage_probe = holds_here;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	turn = held_turn; /* it waits: it is nobody's turn now */
	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	CU_ASSERT_EQUAL(spl_topic_set(&topic, "world", 5, "x", 1), 0);
	CU_ASSERT_EQUAL(spl_send(turn, &t, 5, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_HOLD, &c), -EINVAL);
	CU_ASSERT_EQUAL(spl_reply(turn, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, &topic, 5, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_close_self(turn), -EINVAL);
	CU_ASSERT_EQUAL(spl_timer_cancel(turn, (struct spl_timer){1}), -EINVAL);
	CU_ASSERT_PTR_NULL(spl_spot_id(turn));
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_cancel, "S-COMPL-9", "S-COMPL-1"),
	T(test_close_self_and_yield, "S-CLOSE-6"),
	T(test_another_thread, "S-TURN-9"),
	T(test_outside_a_turn, "S-REENT-6"),
	T(test_several_waits, "S-YIELD-6", "S-TURN-1", "S-TURN-8", "S-CF-1"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_waits", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
