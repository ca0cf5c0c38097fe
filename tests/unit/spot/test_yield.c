/* SPDX-License-Identifier: BSD-3-Clause */
/* YIELD: who may, what runs meanwhile, where the rest of the handler runs, and how it ends. */
#include "dataplane/spot/queue.h"
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>

#define f test_rig

static uint64_t yield_to_nobody(const char *id)
{
	uint64_t r = fake_request(&f, id, "yield", "nobody echo x");

	fake_run(&f);
	return r;
}

static uint32_t depth(const char *id)
{
	return test_spot(id)->app.count;
}

/* T-YIELD-1, T-YIELD-2, T-YIELD-3: what is queued by the time of the answer runs before the rest,
 * which is not run on the context that brings the answer. */
static void order_with(const struct spl_stage *stage)
{
	uint64_t r, runs;

	test_start(1);
	fake_create(&f, "a", fake_stage(stage));
	fake_log_clear();
	r = yield_to_nobody("a");
	fake_send(&f, "a", "log", "free");
	fake_send(&f, "a", "add", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "yielded free");
	CU_ASSERT_PTR_NULL(fake_reply(&f, r));
	fake_send(&f, "a", "log", "p1");
	fake_send(&f, "a", "log", "p2");
	runs = test_stage_runs;
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	CU_ASSERT_EQUAL(test_stage_runs, runs);
	fake_send(&f, "a", "log", "p3");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "yielded free p1 p2 resumed p3");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes 1"));
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "again"); /* no call any more */
	CU_ASSERT_EQUAL(depth("a"), 0);
	test_stop();
}

static void test_order(void)
{
	order_with(&test_stage);
	order_with(&test_stage_instance);
}

/* The call has ended before the handler returns: still not inline (S-YIELD-4). */
static void test_refused_at_once(void)
{
	uint64_t r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage_small));
	for (int i = 0; i < 4; i++)
		fake_send(&f, "b", "log", "b");
	fake_pass(&f, 0);
	r = fake_request(&f, "a", "yield", "b echo x");
	fake_send(&f, "a", "log", "p1");
	fake_log_clear();
	/* b's turn is behind a's in the ready set, so its queue is full when a asks. */
	spot_ready_take(f.lane[0].l);
	test_spot("b")->gate.flags |= SPOT_F_READY;
	fake_pass(&f, 2);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "yielded p1");
	test_spot("b")->gate.flags &= (uint8_t)~SPOT_F_READY;
	spot_ready_add(f.lane[0].l, test_spot("b"));
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "CapacityExceeded  0"));
	test_stop();
}

/* T-YIELD-10, T-LIM-1: a queue that is full at the time; the reservation ends with the handler. */
static void test_full_queue(void)
{
	uint64_t r, refused;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage_small));
	r = yield_to_nobody("a");
	CU_ASSERT_EQUAL(depth("a"), 1);
	CU_ASSERT(test_spot("a")->app.bytes > SPOT_RECORD_COST);
	for (int i = 0; i < 3; i++)
		fake_send(&f, "a", "log", "queued");
	refused = fake_request(&f, "a", "log", "no room");
	CU_ASSERT(fake_replied(&f, refused, SPL_E_UNAVAILABLE, NULL));
	fake_log_clear();
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	CU_ASSERT_EQUAL(depth("a"), 4);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "queued queued queued resumed");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes 0"));
	CU_ASSERT_EQUAL(depth("a"), 0);
	CU_ASSERT_EQUAL(test_spot("a")->app.bytes, 0);
	test_stop();
}

static int wait_rc;
static uint64_t rows;
static int try_yield(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	struct spl_call *c = NULL;

	CU_ASSERT_EQUAL(spl_target_set(&t, "other", 5), 0);
	wait_rc = spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_YIELD, &c);
	CU_ASSERT_PTR_NULL(c);
	rows++;
	return SPL_DONE;
}

static int create_yields(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	return try_yield(turn, state, NULL);
}

static int initialize_yields(struct spl_turn *turn, void *state)
{
	CU_ASSERT_EQUAL(wait_rc, -EPERM);
	wait_rc = 0;
	return try_yield(turn, state, NULL);
}

static int closing_yields(struct spl_turn *turn, void *state, enum spl_closing why, uint64_t until)
{
	return try_yield(turn, state, NULL);
}

static const struct spl_stage yields_in_lifecycle = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "lifecycle",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.on_create = create_yields,
	.on_initialize = initialize_yields,
	.on_closing = closing_yields,
};

/* T-YIELD-5: refused before anything is submitted, counted or queued; HOLD works there. */
static void test_where_it_may_not(void)
{
	const struct spl_stage *const stages[] = {&test_stage_entry, &test_stage_actors};

	test_start(3);
	test_stage_probe = try_yield;
	rows = 0;
	fake_create(&f, "other", fake_stage(&test_stage));
	for (unsigned i = 0; i < T_COUNT(stages); i++) {
		char id[] = {(char)('a' + i), '\0'};
		uint64_t sent = fake_counter(&f, SPL_C_CALLS_STARTED), r;

		fake_create(&f, id, fake_stage(stages[i]));
		wait_rc = 0;
		fake_send(&f, id, "probe", "");
		fake_run(&f);
		CU_ASSERT_EQUAL(wait_rc, -EPERM);
		CU_ASSERT_EQUAL(spl_error_of(wait_rc), SPL_E_INVALID_OPERATION);
		CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_STARTED), sent);
		r = fake_request(&f, id, "hold", "other echo x");
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK x"));
	}
	wait_rc = 0;
	fake_close(&f, "l", fake_create(&f, "l", fake_stage(&yields_in_lifecycle)),
		   SPL_CLOSING_EXPLICIT, 0);
	CU_ASSERT_EQUAL(wait_rc, -EPERM);
	wait_rc = 0;
	fake_run(&f);
	CU_ASSERT_EQUAL(wait_rc, -EPERM);
	CU_ASSERT_EQUAL(rows, 5);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_STARTED), T_COUNT(stages));
	test_stop();
}

/* T-YIELD-7: deadline, cancel, shutdown: one result each, and the gate is free afterwards. */
static void test_ends(void)
{
	uint64_t r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	r = yield_to_nobody("a");
	fake_advance(&f, 1100 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "DeadlineExceeded  0"));
	r = yield_to_nobody("a");
	CU_ASSERT(fake_replied(&f, fake_request(&f, "a", "cancel", ""), SPL_OK, "won") == false);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "Cancelled  0"));
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_CANCELLED), 1);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "late");
	r = yield_to_nobody("a");
	CU_ASSERT_EQUAL(spot_calls_end(f.lane[0].l, SPL_E_SHUTTING_DOWN, 300), 0);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "ShuttingDown  0"));
	r = fake_request(&f, "a", "add", "");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "1"));
	test_stop();
}

/* T-CLAIM-4: several handlers of one Spot may have yielded; each has its own answer, in the order
 * of the answers. */
static void test_many_of_one_spot(void)
{
	uint64_t r[3], c[3];

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0; i < 3; i++) {
		r[i] = yield_to_nobody("a");
		c[i] = f.missing_correlation;
	}
	CU_ASSERT_EQUAL(depth("a"), 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_RUNNING), 3);
	fake_log_clear();
	fake_missing_says(&f, c[1], SPL_OK, "one");
	fake_missing_says(&f, c[2], SPL_OK, "two");
	fake_missing_says(&f, c[0], SPL_OK, "zero");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed resumed resumed");
	CU_ASSERT(fake_replied(&f, r[0], SPL_OK, "OK zero 0"));
	CU_ASSERT(fake_replied(&f, r[1], SPL_OK, "OK one 0"));
	CU_ASSERT(fake_replied(&f, r[2], SPL_OK, "OK two 0"));
	test_stop();
}

/* T-REENT-1, T-REENT-3: a Spot that asks itself: refused under HOLD, before anything is queued;
 * answered under YIELD; it serves afterwards. */
static void test_self(void)
{
	const struct spl_stage *const stages[] = {&test_stage, &test_stage_instance};

	test_start(1);
	for (unsigned i = 0; i < T_COUNT(stages); i++) {
		char id[] = {(char)('a' + i), '\0'}, ask[] = {id[0], ' ', 'a', 'd', 'd', '\0'};
		uint64_t r;

		fake_create(&f, id, fake_stage(stages[i]));
		r = fake_request(&f, id, "hold", ask);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_E_INVALID_OPERATION, NULL));
		CU_ASSERT_EQUAL(test_stage_rc, -EDEADLK);
		r = fake_request(&f, id, "yield", ask);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK 1 1"));
		r = fake_request(&f, id, "add", "");
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_OK, "2"));
	}
	test_stop();
}

/* T-YIELD-8: a close waits for the terminal; the answer to an incarnation that is gone reaches
 * nobody. */
static void test_close_waits(void)
{
	uint64_t generation, r, c;

	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	r = yield_to_nobody("a");
	c = f.missing_correlation;
	fake_log_clear();
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, f.now + 5000 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	CU_ASSERT_PTR_NULL(fake_answer(&f, SPOT_CLOSE));
	fake_missing_says(&f, c, SPL_OK, "yes");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes 0"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed closing");
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->verdict, SPOT_ACCEPTED);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_missing_says(&f, c, SPL_OK, "again");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	test_stop();
}

/* The time of a close, of the host's shutdown, is up: each wait ends once, with an error; what was
 * queued fails, in whatever place the resumptions stand. */
static void forced_with(enum spl_closing reason, const char *answer)
{
	uint64_t generation, r[2], queued, c[2];

	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0; i < 2; i++) {
		r[i] = yield_to_nobody("a");
		c[i] = f.missing_correlation;
	}
	fake_close(&f, "a", generation, reason, f.now + 100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	fake_advance(&f, 102 * FAKE_MS);
	for (int i = 0; i < 3; i++)
		spot_tick(f.lane[0].l, f.now, 64);
	fake_log_clear();
	queued = fake_request(&f, "a", "add", ""); /* sealed */
	CU_ASSERT(fake_replied(&f, queued, SPL_E_UNAVAILABLE, NULL));
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed resumed closing");
	CU_ASSERT(fake_replied(&f, r[0], SPL_OK, answer));
	CU_ASSERT(fake_replied(&f, r[1], SPL_OK, answer));
	fake_missing_says(&f, c[0], SPL_OK, "late");
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_CLOSE)->error, SPL_E_DEADLINE_EXCEEDED);
	test_stop();
}

static void test_forced(void)
{
	forced_with(SPL_CLOSING_EXPLICIT, "DeadlineExceeded  0");
	forced_with(SPL_CLOSING_HOST_SHUTDOWN, "ShuttingDown  0");
}

/* Lost to another owner, or past the lease: the rest of the handler does not run here. */
static void test_fenced(void)
{
	uint64_t generation, r, queued;

	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	r = yield_to_nobody("a");
	queued = fake_request(&f, "a", "add", "");
	fake_log_clear();
	fake_close(&f, "a", generation, SPOT_FENCED, 0);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT(fake_replied(&f, queued, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_FENCED), 2);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	CU_ASSERT_PTR_NULL(test_spot("a"));

	fake_create(&f, "a", fake_stage(&test_stage));
	r = yield_to_nobody("a");
	fake_log_clear();
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	/* The lease alone is asked when a handler starts: what has begun may end (A-LEASE-7). */
	f.lease = f.now;
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes 0"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed");
	CU_ASSERT_EQUAL(depth("a"), 0);
	f.lease = UINT64_MAX;
	fake_run(&f);
	test_stop();
}

/* T-MSG-1: the views of a handler stay where they are while it waits, with the pool low too. */
static void test_views(void)
{
	uint64_t r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	r = yield_to_nobody("a");
	CU_ASSERT_EQUAL(f.buffers, 1);
	fake_send(&f, "a", "log", "a message that waits");
	CU_ASSERT_EQUAL(spot_copy_out(f.lane[0].l, 64), 1);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	CU_ASSERT_EQUAL(spot_copy_out(f.lane[0].l, 64), 0); /* the handler has seen where it is */
	CU_ASSERT_EQUAL(f.buffers, 1);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes 0"));
	CU_ASSERT_EQUAL(f.buffers, 0);
	test_stop();
}

static int noticed(struct spl_turn *turn, void *state)
{
	fake_log("L");
	return SPL_DONE;
}

static int notice_resumed(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	fake_log("notice-resumed");
	return SPL_DONE;
}

static int notice_yields(struct spl_turn *turn, void *state)
{
	struct spl_target t;
	struct spl_call *c;

	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_YIELD, &c), 0);
	CU_ASSERT_EQUAL(spl_call_then(turn, c, notice_resumed, NULL), 0);
	fake_log("notice-yields");
	return SPL_SUSPENDED;
}

/* A resume record is the application's work: it stands behind lifecycle work and pays its debt
 * (AMB-33). A lifecycle callback that yields is resumed there too, and keeps its own room. */
static void test_lifecycle(void)
{
	struct spot_lane *l;
	uint64_t r;

	test_begin(1);
	f.conf.life_cap = 2;
	fake_start(&f);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage_plain));
	r = yield_to_nobody("a");
	fake_log_clear();
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(spot_life_notice(l, test_spot("a"), noticed), 0);
	test_spot("a")->gate.streak = 0;
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "L L resumed L L");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK yes 0"));

	test_spot("a")->gate.streak = 0;
	test_spot("a")->gate.flags &= (uint8_t)~SPOT_F_DEBT;
	fake_log_clear();
	CU_ASSERT_EQUAL(spot_life_notice(l, test_spot("a"), notice_yields), 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(spot_cold_of(test_spot("a"))->life_count, 1);
	CU_ASSERT_EQUAL(depth("a"), 0);
	fake_send(&f, "a", "log", "p1");
	CU_ASSERT_EQUAL(spot_life_notice(l, test_spot("a"), noticed), 0);
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "yes");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "notice-yields L p1 notice-resumed");
	CU_ASSERT_EQUAL(spot_cold_of(test_spot("a"))->life_count, 0);
	test_stop();
}

/* While one turn has yielded another one holds the gate: an answer goes to its own. */
static void test_yield_and_hold(void)
{
	uint64_t y, h, cy, ch;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	y = yield_to_nobody("a");
	cy = f.missing_correlation;
	h = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	ch = f.missing_correlation;
	fake_log_clear();
	fake_missing_says(&f, cy, SPL_OK, "yes");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), ""); /* the gate is held */
	CU_ASSERT_PTR_NULL(fake_reply(&f, y));
	fake_missing_says(&f, ch, SPL_OK, "held");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, h, SPL_OK, "OK held"));
	CU_ASSERT(fake_replied(&f, y, SPL_OK, "OK yes 0"));
	test_stop();
}

static const struct t_case cases[] = {
	T(test_order, "S-YIELD-1", "S-YIELD-3", "S-YIELD-4", "S-YIELD-5"),
	T(test_refused_at_once, "S-YIELD-4"),
	T(test_full_queue, "S-YIELD-9", "S-LIM-3"),
	T(test_where_it_may_not, "S-YIELD-1", "S-YIELD-2", "S-REENT-1"),
	T(test_ends, "S-YIELD-7", "S-COMPL-9"),
	T(test_many_of_one_spot, "S-CLAIM-3", "S-YIELD-4"),
	T(test_self, "S-REENT-1", "S-REENT-3"),
	T(test_close_waits, "S-YIELD-8", "S-CLOSE-3"),
	T(test_forced, "S-YIELD-8", "S-YIELD-7"),
	T(test_fenced, "S-YIELD-8", "S-TURN-8"),
	T(test_views, "S-MSG-4"),
	T(test_lifecycle, "S-YIELD-1", "S-LANE-4", "S-LANE-3"),
	T(test_yield_and_hold, "S-TURN-4", "S-CLAIM-3", "S-GATE-2"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_yield", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
