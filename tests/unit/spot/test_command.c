/* SPDX-License-Identifier: BSD-3-Clause */
/* Lifecycle of a Spot by the agent's commands: create, publish, discard, close, fence, inventory.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>
#include <stdlib.h>

#define f test_rig

static const struct spot_answer *answered(uint8_t verb, uint8_t verdict, uint8_t error)
{
	const struct spot_answer *a = fake_answer(&f, verb);

	CU_ASSERT_FATAL(a != NULL);
	CU_ASSERT_EQUAL(a->verdict, verdict);
	CU_ASSERT_EQUAL(a->error, error);
	return a;
}

static void publish(const char *id, uint64_t generation)
{
	struct spl_key key = fake_key(id);

	spot_publish(fake_lane_of(&f, id)->l, &key, generation, ++f.next_op, f.now);
}

static void discard(const char *id, uint64_t generation)
{
	struct spl_key key = fake_key(id);

	spot_discard(fake_lane_of(&f, id)->l, &key, generation, ++f.next_op, f.now);
}

/* T-CR-1: order create, initialise; the reply of on_create reaches the creator; then it serves. */
static void test_create(void)
{
	uint64_t generation, r;

	test_start(1);
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), "hello", 0);
	CU_ASSERT_EQUAL(f.answers, 0);
	fake_run(&f);
	answered(SPOT_PREPARE, SPOT_ACCEPTED, SPL_OK);
	CU_ASSERT_STRING_EQUAL(f.answer_reply, "made");
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->content, SPL_CONTENT_TEXT);
	CU_ASSERT_PTR_NULL(fake_answer(&f, SPOT_PREPARE)->stage);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create initialize");
	CU_ASSERT_EQUAL(test_stage_seen.payload_bytes, 5);
	CU_ASSERT_EQUAL(f.buffers, 0); /* the request is not kept */
	publish("a", generation);
	answered(SPOT_PUBLISH, SPOT_ACCEPTED, SPL_OK);
	publish("a", generation); /* again: the same */
	answered(SPOT_PUBLISH, SPOT_ACCEPTED, SPL_OK);
	publish("a", generation + 1);
	answered(SPOT_PUBLISH, SPOT_GONE, SPL_OK);
	publish("b", 1);
	answered(SPOT_PUBLISH, SPOT_GONE, SPL_OK);
	r = fake_request(&f, "a", "echo", "x");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "x"));
	test_stop();
}

/* T-CR-2: before publication no message runs, from a peer or from a Spot of this node, whether
 * on_create is suspended or all is done. */
static void test_not_before_ready(void)
{
	uint64_t generation, r, h;
	unsigned asked;

	test_start(1);
	fake_create(&f, "b", fake_stage(&test_stage));
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), "hold nobody echo x", 0);
	fake_run(&f);
	fake_log_clear();
	for (int phase = 0; phase < 2; phase++) {
		r = fake_request(&f, "a", "log", "evidence");
		fake_send(&f, "a", "log", "evidence");
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, NULL));
		asked = f.missing;
		h = fake_request(&f, "b", "hold", "a log evidence");
		fake_run(&f);
		CU_ASSERT_EQUAL(f.missing, asked + 1);
		CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NOT_READY), 3 * (uint64_t)(phase + 1));
		struct spot_reply no = {.correlation = f.missing_correlation,
					.kind = SPL_E_NOT_FOUND,
					.origin = SPOT_FROM_AGENT};
		spot_reply_in(f.lane[0].l, &no);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, h, SPL_OK, "NotFound "));
		if (phase == 0) {		       /* let on_create go on */
			CU_ASSERT_EQUAL(f.answers, 2); /* b's */
			fake_advance(&f, 1 * FAKE_MS);
			struct spot_call *c =
				&f.lane[0].l->calls
					 [f.lane[0]
						  .l->recs[spot_cold_of(test_spot("a"))->running]
						  .waited];
			struct spot_reply yes = {.correlation = c->correlation,
						 .kind = SPL_OK,
						 .origin = SPOT_FROM_AGENT};
			spot_reply_in(f.lane[0].l, &yes);
			fake_run(&f);
			answered(SPOT_PREPARE, SPOT_ACCEPTED, SPL_OK);
		}
	}
	CU_ASSERT_PTR_NULL(strstr(fake_logged(), "evidence"));
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), "created initialize"));
	publish("a", generation);
	r = fake_request(&f, "a", "log", "evidence");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "logged"));
	test_stop();
}

/* T-CR-4: declined is a result with its reply, failed is an error; either way nothing is left. */
static void test_declined_and_failed(void)
{
	static const struct {
		const char *request;
		uint8_t verdict, error;
	} rows[] = {
		{"reject", SPOT_REJECTED, SPL_OK},
		{"fail", SPOT_FAILED, SPL_E_INTERNAL_FAILURE},
		{"kind", SPOT_FAILED, SPL_E_DATA_LOST},
		{"hold a echo x", SPOT_FAILED, SPL_E_INVALID_OPERATION}, /* waits for itself */
	};

	test_start(1);
	for (size_t i = 0; i < T_COUNT(rows); i++) {
		const struct spot_answer *a;
		uint64_t generation;

		fake_log_clear();
		generation = fake_prepare(&f, "a", fake_stage(&test_stage), rows[i].request, 0);
		fake_run(&f);
		a = answered(SPOT_PREPARE, rows[i].verdict, rows[i].error);
		CU_ASSERT_EQUAL(a->object_generation, generation);
		CU_ASSERT_PTR_EQUAL(a->stage, fake_stage(&test_stage)); /* the plan learns of it */
		CU_ASSERT_STRING_EQUAL(f.answer_reply,
				       rows[i].verdict == SPOT_REJECTED ? "made" : "");
		CU_ASSERT_STRING_EQUAL(fake_logged(), "create");
		CU_ASSERT_PTR_NULL(test_spot("a"));
		CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 0);
		CU_ASSERT_EQUAL(f.lane[0].plan.spots, 0);
		CU_ASSERT(spot_lane_quiet(f.lane[0].l));
	}
	CU_ASSERT_EQUAL(test_stage_closings, 0);
	test_stop();
}

/* The key is taken, by this id or by another one that ends in the same key. */
static void test_same_key(void)
{
	struct spot_prepare p = {
		.id = "other",
		.id_len = 5,
		.stage = fake_stage(&test_stage),
		.object_generation = 99,
		.op = 99,
	};

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_prepare(&f, "a", fake_stage(&test_stage), NULL, 0);
	CU_ASSERT_PTR_NOT_NULL(answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_ALREADY_EXISTS)->stage);
	p.key = fake_key("a");
	spot_plan_add(&f.lane[0].plan, p.stage, p.id_len);
	spot_prepare(f.lane[0].l, &p, f.now);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 1);
	test_stop();
}

/* The creation's deadline: in the queue, and while on_create waits. */
static void test_create_deadline(void)
{
	test_start(1);
	fake_prepare(&f, "a", fake_stage(&test_stage), NULL, f.now + 5 * FAKE_MS);
	fake_advance(&f, 6 * FAKE_MS);
	fake_run(&f);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(test_stage_runs, 0);
	fake_prepare(&f, "a", fake_stage(&test_stage), "hold nobody echo x", f.now + 5 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_budget, 5 * FAKE_MS);
	CU_ASSERT_EQUAL(f.answers, 1);
	fake_advance(&f, 7 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(f.answers, 2);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create created");
	/* A late answer to its call changes nothing. */
	struct spot_reply late = {
		.correlation = f.missing_correlation, .kind = SPL_OK, .origin = SPOT_FROM_AGENT};
	spot_reply_in(f.lane[0].l, &late);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 1);
	/* Once accepted the deadline means nothing: the authority may have committed. */
	uint64_t generation =
		fake_prepare(&f, "a", fake_stage(&test_stage), NULL, f.now + 5 * FAKE_MS);
	fake_run(&f);
	answered(SPOT_PREPARE, SPOT_ACCEPTED, SPL_OK);
	fake_advance(&f, 20 * FAKE_MS);
	fake_run(&f);
	publish("a", generation);
	answered(SPOT_PUBLISH, SPOT_ACCEPTED, SPL_OK);
	test_stop();
}

static void test_discard(void)
{
	uint64_t generation;

	test_start(1);
	/* Prepared, not published. */
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), NULL, 0);
	fake_run(&f);
	discard("a", generation + 1);
	answered(SPOT_DISCARD, SPOT_GONE, SPL_OK);
	discard("a", generation);
	fake_run(&f);
	answered(SPOT_DISCARD, SPOT_ACCEPTED, SPL_OK);
	CU_ASSERT_PTR_NULL(test_spot("a"));
	CU_ASSERT_EQUAL(test_stage_closings, 0);
	/* Not begun. */
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), "x", 0);
	discard("a", generation);
	fake_run(&f);
	answered(SPOT_DISCARD, SPOT_ACCEPTED, SPL_OK);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(f.buffers, 0);
	/* While on_create waits; twice. */
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), "hold nobody echo x", 0);
	fake_run(&f);
	discard("a", generation);
	discard("a", generation);
	CU_ASSERT_PTR_NOT_NULL(test_spot("a"));
	fake_run(&f);
	answered(SPOT_DISCARD, SPOT_ACCEPTED, SPL_OK);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_UNAVAILABLE);
	CU_ASSERT_PTR_NULL(test_spot("a"));
	CU_ASSERT_EQUAL(f.lane[0].plan.spots, 0);
	/* A published Spot is closed, not discarded. */
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	discard("a", generation);
	answered(SPOT_DISCARD, SPOT_GONE, SPL_OK);
	CU_ASSERT_PTR_NOT_NULL(test_spot("a"));
	test_stop();
}

static enum spl_closing seen_reason;
static uint64_t seen_deadline, seen_count;
static void closing(struct test_state *s, enum spl_closing reason, uint64_t deadline_ns)
{
	seen_reason = reason;
	seen_deadline = deadline_ns;
	seen_count = s->count;
}

/* T-CL-2: what was accepted before the seal runs, what comes later does not, then on_closing once
 * while the state is whole. */
static void test_close(void)
{
	uint64_t generation, before, after, deadline = 0;

	test_start(1);
	test_stage_closing = closing;
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	before = fake_request(&f, "a", "add", "");
	fake_send(&f, "a", "add", "");
	deadline = f.now + 1000 * FAKE_MS;
	fake_close(&f, "a", generation, SPL_CLOSING_HOST_SHUTDOWN, deadline);
	after = fake_request(&f, "a", "add", "");
	fake_send(&f, "a", "add", "");
	CU_ASSERT(fake_replied(&f, after, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT_EQUAL(test_stage_closings, 0);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, before, SPL_OK, "1"));
	CU_ASSERT_EQUAL(seen_count, 2);
	CU_ASSERT_EQUAL(test_stage_closings, 1);
	CU_ASSERT_EQUAL(seen_reason, SPL_CLOSING_HOST_SHUTDOWN);
	CU_ASSERT_EQUAL(seen_deadline, deadline);
	CU_ASSERT_PTR_NOT_NULL(answered(SPOT_CLOSE, SPOT_ACCEPTED, SPL_OK)->stage);
	CU_ASSERT_PTR_NULL(test_spot("a"));
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	answered(SPOT_CLOSE, SPOT_GONE, SPL_OK);
	after = fake_request(&f, "a", "add", "");
	CU_ASSERT(fake_replied(&f, after, SPL_E_UNAVAILABLE, NULL));
	/* The old reference never closes a new incarnation (T-ADDR-2: which serves the id). */
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	answered(SPOT_CLOSE, SPOT_GONE, SPL_OK);
	after = fake_request(&f, "a", "add", "");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, after, SPL_OK, "1"));
	CU_ASSERT_EQUAL(test_stage_closings, 1);
	test_stop();
}

/* A close waits for a suspended turn and everything behind it; repeated, it is answered twice and
 * on_closing runs once. */
static void test_close_waits(void)
{
	uint64_t generation, held, queued;

	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	held = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	queued = fake_request(&f, "a", "echo", "x");
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_closings, 0);
	CU_ASSERT_EQUAL(f.answers, 2);
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, held, SPL_OK, "DeadlineExceeded "));
	CU_ASSERT(fake_replied(&f, queued, SPL_OK, "x"));
	CU_ASSERT_EQUAL(test_stage_closings, 1);
	CU_ASSERT_EQUAL(f.answers, 4);
	CU_ASSERT_EQUAL(f.answer[2].verdict, SPOT_ACCEPTED);
	CU_ASSERT_EQUAL(f.answer[3].verdict, SPOT_ACCEPTED);
	CU_ASSERT((f.answer[2].stage == NULL) != (f.answer[3].stage == NULL));
	test_stop();
}

/* Past the deadline the wait ends in failure, what is queued fails once, on_closing still runs. */
static void test_close_deadline(void)
{
	static const struct {
		enum spl_closing reason;
		const char *says;
		uint8_t kind; /* of what was queued */
		enum spl_message_fail why;
	} rows[] = {
		{SPL_CLOSING_EXPLICIT, "DeadlineExceeded ", SPL_E_UNAVAILABLE, SPL_FAIL_CLOSED},
		{SPL_CLOSING_HOST_SHUTDOWN, "ShuttingDown ", SPL_E_SHUTTING_DOWN,
		 SPL_FAIL_SHUTDOWN},
	};

	for (size_t i = 0; i < T_COUNT(rows); i++) {
		uint64_t generation, held, queued;

		test_start(1);
		generation = fake_create(&f, "a", fake_stage(&test_stage));
		held = fake_request(&f, "a", "hold", "nobody echo x");
		fake_run(&f);
		queued = fake_request(&f, "a", "echo", "x");
		fake_send(&f, "a", "add", "");
		fake_close(&f, "a", generation, rows[i].reason, f.now + 50 * FAKE_MS);
		fake_run(&f);
		fake_advance(&f, 52 * FAKE_MS);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, held, SPL_OK, rows[i].says));
		CU_ASSERT(fake_replied(&f, queued, rows[i].kind, NULL));
		CU_ASSERT_EQUAL(fake_failed(&f, rows[i].why), 2);
		CU_ASSERT_EQUAL(test_stage_closings, 1);
		answered(SPOT_CLOSE, SPOT_FAILED, SPL_E_DEADLINE_EXCEEDED);
		test_stop();
	}
}

static int closing_fails(struct spl_turn *turn, void *state, enum spl_closing reason,
			 uint64_t deadline_ns)
{
	return SPL_FAIL(SPL_E_DATA_LOST);
}

static int never(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	fake_log("woken");
	return SPL_DONE;
}

static int closing_waits(struct spl_turn *turn, void *state, enum spl_closing reason,
			 uint64_t deadline_ns)
{
	struct spl_target t;
	struct spl_call *c;

	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	CU_ASSERT_EQUAL(spl_send(turn, &t, 5, 0, NULL, 0), -ENOENT);
	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	CU_ASSERT_EQUAL(spl_send(turn, &t, 5, 0, NULL, 0), -ESHUTDOWN); /* itself */
	CU_ASSERT_EQUAL(spl_target_set(&t, "nobody", 6), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, 5, 0, NULL, 0, 0, SPL_WAIT_HOLD, &c), 0);
	CU_ASSERT_EQUAL(spl_call_then(turn, c, never, NULL), 0);
	return SPL_SUSPENDED;
}

/* on_closing fails, or waits, also beyond the deadline: the Spot is gone all the same. */
static void test_closing_callback(void)
{
	static struct spl_stage fails, waits;
	uint64_t generation;

	fails = test_stage_plain;
	fails.on_closing = closing_fails;
	waits = test_stage_plain;
	waits.on_closing = closing_waits;
	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&fails));
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	CU_ASSERT_PTR_NOT_NULL(answered(SPOT_CLOSE, SPOT_FAILED, SPL_E_DATA_LOST)->stage);
	for (int late = 0; late < 2; late++) {
		generation = fake_create(&f, "a", fake_stage(&waits));
		fake_log_clear();
		fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT,
			   late ? f.now + 10 * FAKE_MS : 0);
		fake_run(&f);
		CU_ASSERT_PTR_NOT_NULL(test_spot("a"));
		fake_advance(&f, late ? 12 * FAKE_MS : 1100 * (uint64_t)FAKE_MS);
		fake_run(&f);
		CU_ASSERT_STRING_EQUAL(fake_logged(), "woken");
		answered(SPOT_CLOSE, late ? SPOT_FAILED : SPOT_ACCEPTED,
			 late ? SPL_E_DEADLINE_EXCEEDED : SPL_OK);
		CU_ASSERT_PTR_NULL(test_spot("a"));
	}
	test_stop();
}

/* T-CL-4: self-close does not wait for itself; on_closing after the handler. */
static void test_close_self(void)
{
	uint64_t generation, r;

	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	f.close_error = -EAGAIN; /* the agent cannot be told yet: tried again, others are served */
	fake_create(&f, "b", fake_stage(&test_stage));
	r = fake_request(&f, "a", "misc", "close");
	for (int i = 0; i < 3; i++)
		fake_pass(&f, 8);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "closing"));
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	fake_send(&f, "a", "misc", "close");
	fake_pass(&f, 8);
	CU_ASSERT_EQUAL(test_stage_rc, -EALREADY);
	f.close_error = 0;
	fake_run(&f);
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	CU_ASSERT_EQUAL(test_stage_closings, 0);
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_closings, 1);
	answered(SPOT_CLOSE, SPOT_ACCEPTED, SPL_OK);
	test_stop();
}

/* Its row is not ours any more: nothing of it runs, on_closing neither, whatever state it is in. */
static void test_fence(void)
{
	uint64_t generation, held, queued, runs;

	test_start(1);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	held = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	queued = fake_request(&f, "a", "echo", "x");
	runs = test_stage_runs;
	fake_close(&f, "a", generation, SPOT_FENCED, 1);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, held, SPL_OK, "Unavailable ")); /* ends once, with failure */
	CU_ASSERT_EQUAL(test_stage_runs, runs + 1);
	CU_ASSERT(fake_replied(&f, queued, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_FENCED), 1);
	CU_ASSERT_PTR_NOT_NULL(answered(SPOT_CLOSE, SPOT_ACCEPTED, SPL_OK)->stage);
	/* Prepared, being made, being closed. */
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), NULL, 0);
	fake_run(&f);
	fake_close(&f, "a", generation, SPOT_FENCED, 1);
	fake_run(&f);
	CU_ASSERT_PTR_NOT_NULL(answered(SPOT_CLOSE, SPOT_ACCEPTED, SPL_OK)->stage);
	generation = fake_prepare(&f, "a", fake_stage(&test_stage), "hold nobody echo x", 0);
	fake_run(&f);
	fake_close(&f, "a", generation, SPOT_FENCED, 1);
	fake_run(&f);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_UNAVAILABLE);
	answered(SPOT_CLOSE, SPOT_ACCEPTED, SPL_OK);
	generation = fake_create(&f, "a", fake_stage(&test_stage));
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	fake_close(&f, "a", generation, SPOT_FENCED, 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_closings, 0);
	CU_ASSERT_EQUAL(f.lane[0].plan.spots, 0);
	test_stop();
}

/* Commands at their end: refused, and the ones that are open are answered. */
static void test_no_commands(void)
{
	uint64_t generation[17];

	test_begin(1);
	f.conf.commands = 16;
	fake_start(&f);
	for (int i = 0; i < 16; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		generation[i] =
			fake_prepare(&f, id, fake_stage(&test_stage), "hold nobody echo x", 0);
	}
	fake_run(&f);
	CU_ASSERT_EQUAL(f.answers, 0);
	fake_prepare(&f, "more", fake_stage(&test_stage), NULL, 0);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_CAPACITY_EXCEEDED);
	discard("s3", generation[3]);
	answered(SPOT_DISCARD, SPOT_FAILED, SPL_E_CAPACITY_EXCEEDED);
	while (spot_calls_end(f.lane[0].l, SPL_E_SHUTTING_DOWN, 100))
		;
	fake_run(&f);
	CU_ASSERT_EQUAL(f.answers, 2 + 16);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_DATA_LOST);
	test_stop();
}

/* No more Spots than the table is meant for. */
static void test_table_full(void)
{
	test_begin(1);
	f.conf.spots_max = 20;
	fake_start(&f);
	for (int i = 0; i < 20; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		fake_create(&f, id, fake_stage(&test_stage));
	}
	f.lane[0].plan.spots_max++; /* an agent that does not ask its plan */
	fake_prepare(&f, "more", fake_stage(&test_stage), NULL, 0);
	answered(SPOT_PREPARE, SPOT_FAILED, SPL_E_CAPACITY_EXCEEDED);
	test_stop();
}

static unsigned shown[2000];
static void show(void *ctx, const struct spot_item *item)
{
	char text[16] = "";

	memcpy(text, item->id->b, item->id->len < 15 ? item->id->len : 15);
	shown[atoi(text + 1)]++;
	(*(unsigned *)ctx)++;
	CU_ASSERT_PTR_EQUAL(item->stage, fake_stage(&test_stage_plain));
	CU_ASSERT(item->ready);
}

/* The inventory in pages, while others come and go: who is there all the time is seen. */
static void test_inventory(void)
{
	uint64_t cursor = 0, generation[2000];
	unsigned page, pages = 0;
	bool more = true;

	test_begin(1);
	f.conf.spots_max = 2000;
	f.conf.object_bytes = 4 << 20;
	fake_start(&f);
	for (int i = 0; i < 1000; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		generation[i] = fake_create(&f, id, fake_stage(&test_stage_plain));
	}
	memset(shown, 0, sizeof(shown));
	for (int i = 1000; more; i++) {
		char id[16];

		page = 0;
		more = spot_inventory(f.lane[0].l, &cursor, 32, show, &page);
		CU_ASSERT(page <= 32);
		pages++;
		for (int k = 0; k < 10 && 1000 + pages * 10 < 1990; k++) { /* grows: splits */
			snprintf(id, sizeof(id), "s%u", 1000 + pages * 10 + (unsigned)k);
			fake_create(&f, id, fake_stage(&test_stage_plain));
		}
		if (i % 2) {
			snprintf(id, sizeof(id), "s%d", i - 1000); /* of the odd ones some go */
			fake_close(&f, id, generation[i - 1000], SPL_CLOSING_EXPLICIT, 0);
			fake_run(&f);
		}
	}
	for (int i = 0; i < 1000; i += 2)
		CU_ASSERT(shown[i] >= 1);
	CU_ASSERT(pages >= 1000 / 32);
	test_stop();
}

/* T-SP-1: owner change, seal and close between two messages of one burst, in every order: each
 * message is in the queue and runs, or is refused and never runs. */
static void test_admission_races(void)
{
	struct t_rand rnd = {t_seed()};

	for (int round = 0; round < 300; round++) {
		uint64_t r[40], generation, ran, ok = 0, no = 0;

		test_start(1);
		generation = fake_create(&f, "a", fake_stage(&test_stage));
		ran = test_stage_runs;
		for (int i = 0; i < 40; i++) {
			switch (t_rand_below(&rnd, 40)) {
			case 0:
				fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, 0);
				break;
			case 1:
				f.lease = f.now;
				spot_lane_set(f.lane[0].l, f.lease, false, UINT32_MAX);
				break;
			case 2:
				spot_lane_seal(f.lane[0].l);
				break;
			case 3:
				fake_close(&f, "a", generation, SPOT_FENCED, 0);
				break;
			case 4:
				fake_pass(&f, 3);
				break;
			default:
				break;
			}
			r[i] = fake_request(&f, "a", "add", "");
		}
		fake_run(&f);
		for (int i = 0; i < 40; i++) {
			const struct fake_out *o = fake_reply(&f, r[i]);

			CU_ASSERT_FATAL(o != NULL);
			ok += o->error == SPL_OK;
			no += o->error != SPL_OK;
		}
		CU_ASSERT_EQUAL(ok + no, 40);
		CU_ASSERT_EQUAL(ok + test_stage_closings, test_stage_runs - ran);
		f.lease = UINT64_MAX;
		test_stop();
	}
}

static const struct t_case cases[] = {
	T(test_create, "S-CREATE-5", "S-CREATE-3", "S-MSG-8"),
	T(test_not_before_ready, "S-CREATE-5", "S-ADDR-6"),
	T(test_declined_and_failed, "S-CREATE-3", "S-CREATE-8", "S-ERR-5"),
	T(test_same_key, "S-ID-1", "S-ID-2"),
	T(test_create_deadline, "S-CREATE-8", "S-TURN-8"),
	T(test_discard, "S-CREATE-8"),
	T(test_close, "S-CLOSE-3", "S-CLOSE-4", "S-CLOSING-1", "S-GEN-4"),
	T(test_close_waits, "S-CLOSE-3", "S-YIELD-8"),
	T(test_close_deadline, "S-CLOSE-3", "S-DRAIN-4"),
	T(test_closing_callback, "S-CLOSING-1", "S-CLOSING-3"),
	T(test_close_self, "S-CLOSE-6"),
	T(test_fence, "S-LEASE-2", "S-CLOSING-2"),
	T(test_no_commands),
	T(test_table_full, "S-ROLE-4"),
	T(test_inventory),
	T(test_admission_races, "S-ADM-1", "S-ADM-2", "S-CLOSE-4"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_command", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
