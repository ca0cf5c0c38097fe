/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission: bounds, refusals and their kinds by origin, lease, seal, deadline, content, buffers.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <errno.h>

#define f test_rig

/* Empty payloads hit the count, big ones the bytes; what is refused leaves both as they were, and
 * room comes back at the terminal, not when the record leaves the queue (T-LIM-1). */
static void test_two_axes(void)
{
	static char big[2000];
	struct spot *s;
	uint64_t r, ok;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage_small)); /* 4 records, 2000 bytes */
	s = test_spot("a");
	for (int i = 0; i < 4; i++)
		fake_send(&f, "a", "add", "");
	CU_ASSERT_EQUAL(s->app.count, 4);
	CU_ASSERT_EQUAL(s->app.bytes, 4 * SPOT_RECORD_COST);
	r = fake_request(&f, "a", "add", "");
	CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT_EQUAL(s->app.count, 4);
	CU_ASSERT_EQUAL(s->app.bytes, 4 * SPOT_RECORD_COST);
	fake_run(&f);
	CU_ASSERT_EQUAL(s->app.count, 0);
	CU_ASSERT_EQUAL(s->app.bytes, 0);
	/* Exactly the limit fits, one byte more does not. */
	fake_message(&f, "a", false, "add", big, 2000 - SPOT_RECORD_COST + 1);
	CU_ASSERT_EQUAL(s->app.count, 0);
	fake_message(&f, "a", false, "add", big, 2000 - SPOT_RECORD_COST);
	CU_ASSERT_EQUAL(s->app.bytes, 2000);
	r = fake_request(&f, "a", "add", ""); /* an empty payload is not free */
	CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, NULL));
	fake_run(&f);
	/* A suspended turn keeps its reservation until its terminal. */
	ok = fake_request(&f, "a", "hold", "nobody echo");
	fake_run(&f);
	CU_ASSERT_EQUAL(s->app.count, 1);
	CU_ASSERT_EQUAL(s->app.bytes, SPOT_RECORD_COST + strlen("nobody echo"));
	for (int i = 0; i < 3; i++)
		fake_send(&f, "a", "add", "");
	fake_send(&f, "a", "add", "");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 4);
	CU_ASSERT_EQUAL(s->app.count, 4);
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, ok, SPL_OK, "DeadlineExceeded "));
	CU_ASSERT_EQUAL(s->app.count, 0);
	CU_ASSERT_EQUAL(s->app.bytes, 0);
	test_stop();
}

/* A payload near 2^32 cannot wrap the sum. */
static void test_cost_overflow(void)
{
	struct spot_rec *r;

	test_begin(1);
	f.conf.queue_bytes = UINT64_C(1) << 32;
	fake_start(&f);
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0; i < 2; i++) {
		r = fake_record(&f, "a", false, "add", "x", 1); /* reads no payload */
		r->msg.payload_bytes = i ? UINT32_MAX : UINT32_MAX - 200;
		fake_admit(&f, "a", r);
	}
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 1);
	CU_ASSERT_EQUAL(test_spot("a")->app.bytes, UINT32_MAX - 200 + SPOT_RECORD_COST);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	fake_run(&f);
	test_stop();
}

static uint8_t last_kind(void)
{
	return f.outs ? f.out[f.outs - 1].error : SPL_OK;
}

/* The direct rows of LIM-5 and of ERR-3: the same overload, by where the request came from. */
static void test_kind_by_origin(void)
{
	static const struct {
		uint8_t origin, kind;
	} rows[] = {
		{SPOT_FROM_LINK, SPL_E_UNAVAILABLE},
		{SPOT_FROM_AGENT, SPL_E_CAPACITY_EXCEEDED},
	};
	uint64_t r;

	test_start(3);
	fake_create(&f, "a", fake_stage(&test_stage_small));
	for (int i = 0; i < 4; i++)
		fake_send(&f, "a", "add", "");
	for (size_t i = 0; i < T_COUNT(rows); i++) {
		struct spot_rec *rec = fake_record(&f, "a", true, "add", "", 0);

		rec->origin = rows[i].origin;
		fake_admit(&f, "a", rec);
		CU_ASSERT_EQUAL(last_kind(), rows[i].kind);
		CU_ASSERT_EQUAL(f.out[f.outs - 1].to, rows[i].origin);
		CU_ASSERT_EQUAL(f.out[f.outs - 1].flow, 77);
	}
	fake_run(&f);
	/* From Spots of this node, in this lane and in another: the call's result. */
	for (int same = 0; same < 2; same++) {
		char id[16];

		for (int i = 0;; i++) {
			snprintf(id, sizeof(id), "s%d", i);
			if ((fake_lane_of(&f, id) == fake_lane_of(&f, "a")) == (same == 1))
				break;
		}
		fake_create(&f, id, fake_stage(&test_stage));
		r = fake_request(&f, id, "hold", "a echo x");
		for (int i = 0; i < 4; i++)
			fake_send(&f, "a", "add", "");
		/* The holder runs first, and its request finds the queue full. */
		spot_run(fake_lane_of(&f, id)->l, 1, UINT64_MAX);
		fake_pass(&f, 0);
		CU_ASSERT_EQUAL(test_spot("a")->app.count, 4);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_OK, "CapacityExceeded "));
	}
	test_stop();
}

/* One-way to a full queue: a peer's is dropped and nobody is told, a Spot's of this node waits. */
static void test_send_to_full(void)
{
	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage_small));
	fake_create(&f, "b", fake_stage(&test_stage));
	fake_send(&f, "b", "send", "a add");
	for (int i = 0; i < 4; i++)
		fake_send(&f, "a", "add", "");
	unsigned outs = f.outs;
	fake_send(&f, "a", "add", "");
	CU_ASSERT_EQUAL(f.outs, outs);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	spot_run(f.lane[0].l, 1, UINT64_MAX);
	CU_ASSERT_EQUAL(test_stage_rc, 0);
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, 1);
	CU_ASSERT(fake_law(&f));
	fake_run(&f);
	CU_ASSERT_EQUAL(((struct test_state *)spot_state_of(test_spot("a")))->count, 5);
	fake_send(&f, "b", "send", "nobody add");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOENT);
	test_stop();
}

/* Unknown keys (T-DIR-2): from a peer a stale route; from a Spot of this node control is asked. */
static void test_unknown(void)
{
	uint64_t r, h;

	test_start(3);
	fake_create(&f, "a", fake_stage(&test_stage));
	r = fake_request(&f, "nobody", "echo", "x");
	CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, NULL));
	fake_send(&f, "nobody", "echo", "x");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_SPOT), 2);
	for (int lane = 0; lane < 3; lane++) {
		char payload[64], id[32];
		unsigned asked = f.missing;

		snprintf(id, sizeof(id), "no%d", lane);
		for (int i = 0; fake_lane_of(&f, id) != &f.lane[lane]; i++)
			snprintf(id, sizeof(id), "no%d", 100 * lane + i);
		snprintf(payload, sizeof(payload), "%s echo x", id);
		h = fake_request(&f, "a", "hold", payload);
		fake_run(&f);
		CU_ASSERT_EQUAL(f.missing, asked + 1);
		struct spl_key key = fake_key(id);
		CU_ASSERT(spl_key_equal(&f.missing_key, &key));
		CU_ASSERT_EQUAL(f.missing_origin, fake_lane_of(&f, "a") == &f.lane[lane]
							  ? SPOT_FROM_SELF
							  : SPOT_FROM_LANE);
		CU_ASSERT_PTR_NULL(fake_reply(&f, h));
		struct spot_reply answer = {.correlation = f.missing_correlation,
					    .kind = SPL_E_NOT_FOUND,
					    .origin = SPOT_FROM_AGENT};
		spot_reply_in(fake_lane_of(&f, "a")->l, &answer);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, h, SPL_OK, "NotFound "));
		/* Control cannot be asked: Unavailable. */
		f.missing_error = -EAGAIN;
		h = fake_request(&f, "a", "hold", payload);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, h, SPL_OK, "Unavailable "));
		f.missing_error = 0;
	}
	test_stop();
}

/* Handler table (T-DIR-4): name, kind of message, content type; the next good one runs. */
static void test_no_handler(void)
{
	struct spot_rec *rec;
	uint64_t r, runs;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	runs = test_stage_runs;
	r = fake_request(&f, "a", "absent", "x");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_E_NOT_FOUND, NULL));
	fake_send(&f, "a", "absent", "x");
	fake_send(&f, "a", "echo", "x"); /* takes requests only */
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_HANDLER), 3);
	rec = fake_record(&f, "a", true, "echo", "{}", 2);
	rec->msg.content = SPL_CONTENT_COUNT;
	r = rec->msg.correlation;
	fake_admit(&f, "a", rec);
	rec = fake_record(&f, "a", false, "add", "{}", 2);
	rec->msg.content = 0xffff;
	fake_admit(&f, "a", rec);
	rec = fake_record(&f, "a", true, "echo", "{}", 2);
	rec->kind = SPL_MSG_CREATE;
	fake_admit(&f, "a", rec);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_E_PROTOCOL_ERROR, NULL));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_CONTENT_TYPE), 2);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_UNKNOWN_KIND), 1);
	CU_ASSERT_EQUAL(test_stage_runs, runs);
	r = fake_request(&f, "a", "echo", "good");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "good"));
	test_stop();
}

/* T-DIR-5: only what is left of the budget is seen; what has passed in the queue never runs. */
static void test_deadline(void)
{
	struct spot_rec *rec;
	uint64_t r, runs;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	rec = fake_record(&f, "a", true, "echo", "x", 1);
	rec->deadline = f.now + 100 * FAKE_MS;
	r = rec->msg.correlation;
	fake_admit(&f, "a", rec);
	fake_advance(&f, 60 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "x"));
	CU_ASSERT(test_stage_budget <= 40 * FAKE_MS && test_stage_budget > 39 * FAKE_MS);
	runs = test_stage_runs;
	rec = fake_record(&f, "a", true, "echo", "x", 1);
	rec->deadline = f.now + 100 * FAKE_MS;
	r = rec->msg.correlation;
	fake_admit(&f, "a", rec);
	fake_advance(&f, 100 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_E_DEADLINE_EXCEEDED, NULL));
	CU_ASSERT_EQUAL(test_stage_runs, runs);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 1);
	test_stop();
}

/* T-LEASE-1: past the deadline nothing new is admitted or starts; what was accepted fails once, a
 * suspended turn may finish; with a new lease it goes on. */
static void test_lease(void)
{
	struct spot_lane *l;
	uint64_t held, queued, late;

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	f.lease = f.now + 10 * FAKE_MS;
	spot_lane_set(l, f.lease, false, UINT32_MAX);
	held = fake_request(&f, "b", "hold", "nobody echo x");
	fake_run(&f);
	queued = fake_request(&f, "a", "echo", "x");
	f.now += 10 * FAKE_MS;
	late = fake_request(&f, "a", "echo", "x");
	fake_send(&f, "a", "add", "x");
	CU_ASSERT(fake_replied(&f, late, SPL_E_UNAVAILABLE, NULL));
	uint64_t runs = test_stage_runs;
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, queued, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT_EQUAL(test_stage_runs, runs);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_FENCED), 3);
	fake_prepare(&f, "c", fake_stage(&test_stage), NULL, 0);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_FAILED);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->error, SPL_E_UNAVAILABLE);
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, held, SPL_OK, "DeadlineExceeded "));
	f.lease = UINT64_MAX;
	spot_lane_set(l, f.lease, false, UINT32_MAX);
	queued = fake_request(&f, "a", "echo", "again");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, queued, SPL_OK, "again"));
	test_stop();
}

/* A lane that has not been told of a lease yet starts nothing. */
static void test_no_lease(void)
{
	test_begin(1);
	f.lease = 0;
	fake_start(&f);
	fake_prepare(&f, "a", fake_stage(&test_stage), NULL, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_FAILED);
	CU_ASSERT_EQUAL(test_stage_runs, 0);
	test_stop();
}

/* Host shutdown: new work is refused by name, accepted work goes on (S-DRAIN-2). */
static void test_sealed(void)
{
	uint64_t accepted, refused, held;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	accepted = fake_request(&f, "a", "echo", "x");
	spot_lane_seal(f.lane[0].l);
	refused = fake_request(&f, "a", "echo", "x");
	CU_ASSERT(fake_replied(&f, refused, SPL_E_SHUTTING_DOWN, NULL));
	refused = fake_request(&f, "nobody", "echo", "x");
	CU_ASSERT(fake_replied(&f, refused, SPL_E_SHUTTING_DOWN, NULL));
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, accepted, SPL_OK, "x"));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_SHUTDOWN), 2);
	held = f.next_generation;
	fake_prepare(&f, "c", fake_stage(&test_stage), NULL, 0);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->error, SPL_E_SHUTTING_DOWN);
	CU_ASSERT(f.next_generation == held + 1);
	test_stop();
}

/* LIM-12: without a permit a request stays queued and counted; sends to other Spots and replies
 * go on; with one it runs. */
static void test_reply_permits(void)
{
	uint64_t r, r2;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	f.permits = 0;
	spot_lane_set(f.lane[0].l, f.lease, false, 0);
	r = fake_request(&f, "a", "add", "");
	r2 = fake_request(&f, "a", "add", "");
	fake_send(&f, "b", "log", "other");
	fake_log_clear();
	for (int i = 0; i < 5; i++)
		fake_pass(&f, 8);
	CU_ASSERT_PTR_NULL(fake_reply(&f, r));
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_QUEUED), 2);
	CU_ASSERT(spot_ready(f.lane[0].l));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "other");
	f.permits = 1;
	fake_pass(&f, 8);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "1"));
	CU_ASSERT_PTR_NULL(fake_reply(&f, r2));
	f.permits = UINT32_MAX;
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r2, SPL_OK, "2"));
	test_stop();
}

/* The bytes of waiting messages leave their buffers when buffers are short; the credit stays until
 * the terminal, and the handler sees the same bytes. */
static void test_copy_out(void)
{
	struct spot_lane *l;
	uint64_t r[20];

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0; i < 20; i++) {
		char text[16];

		snprintf(text, sizeof(text), "m%d", i);
		r[i] = fake_request(&f, "a", "echo", text);
	}
	CU_ASSERT_EQUAL(f.buffers, 20);
	CU_ASSERT_EQUAL(spot_copy_out(l, 5), 5);
	CU_ASSERT_EQUAL(f.buffers, 15);
	CU_ASSERT(f.charged >= 20 * 100);
	for (int i = 0; i < 10; i++)
		spot_copy_out(l, 5);
	CU_ASSERT_EQUAL(f.buffers, 0);
	CU_ASSERT(f.charged >= 20 * 100);
	fake_run(&f);
	for (int i = 0; i < 20; i++) {
		char text[16];

		snprintf(text, sizeof(text), "m%d", i);
		CU_ASSERT(fake_replied(&f, r[i], SPL_OK, text));
	}
	CU_ASSERT_PTR_NULL(test_stage_seen.metadata);
	/* Turns start on copies while buffers are short: a suspended one pins none. */
	f.pool_low = true;
	spot_lane_set(l, f.lease, true, UINT32_MAX);
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_RUNNING), 1);
	CU_ASSERT_EQUAL(f.buffers, 0);
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	test_stop();
}

/* Lane memory at its end: what needs some is refused or answered, nothing is lost. */
static void test_no_memory(void)
{
	static char big[60000];
	struct spot_lane *l;
	void *rest[64];
	uint64_t r;
	int n = 0;

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (size_t size = 500000; size >= 1; size /= 2)
		while (n < 64 && (rest[n] = lanemem_alloc(spot_lane_mem(l), size)) != NULL)
			n++;
	memset(big, 'x', sizeof(big));
	fake_message(&f, "b", false, "add", big, sizeof(big) / 2);
	CU_ASSERT_EQUAL(spot_copy_out(l, 10), 0);
	r = fake_request(&f, "a", "hold", "b echo hello");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	CU_ASSERT(fake_replied(&f, r, SPL_E_INVALID_OPERATION, NULL)); /* the stage's own answer */
	fake_send(&f, "a", "send", "b log text");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	fake_prepare(&f, "c", fake_stage(&test_stage_plain), NULL, 0); /* needs none */
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_ACCEPTED);
	while (n > 0)
		lanemem_free(spot_lane_mem(l), rest[--n]);
	test_stop();
}

/* Records at their end: the host gets none, lifecycle work still has its eighth. */
static void test_no_records(void)
{
	struct spot_rec *recs[1024];
	struct spot_lane *l;
	uint64_t r;
	unsigned n;

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	n = spot_recs_take(l, recs, 1024);
	CU_ASSERT_EQUAL(n, 1024 - 128);
	CU_ASSERT_EQUAL(spot_recs_take(l, recs, 1), 0);
	fake_create(&f, "b", fake_stage(&test_stage));
	spot_recs_give(l, recs, 1);
	r = fake_request(&f, "a", "hold", "b echo x");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	CU_ASSERT(fake_replied(&f, r, SPL_E_INVALID_OPERATION, NULL));
	spot_recs_give(l, recs + 1, n - 1);
	test_stop();
}

/* The record of a turn that ended earlier in the same run is there for what a handler sends. */
static void test_ended_record_serves_again(void)
{
	struct spot_rec *recs[1024];
	struct spot_lane *l;
	unsigned n;

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	n = spot_recs_take(l, recs, 1024);
	CU_ASSERT_FATAL(n > 2 && n < 1024);
	spot_recs_give(l, recs, 2);
	fake_send(&f, "a", "add", "");
	fake_send(&f, "b", "send", "b log again");
	CU_ASSERT_EQUAL(spot_recs_take(l, recs, 1), 0);
	fake_log_clear();
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, 0);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "sent again");
	spot_recs_give(l, recs + 2, n - 2);
	test_stop();
}

/* A burst larger than one round of prefetches, for many Spots, one of them unknown. */
static void test_burst(void)
{
	struct spot_rec *recs[100];
	struct spot_lane *l;

	test_start(1);
	l = f.lane[0].l;
	for (int i = 0; i < 99; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		fake_create(&f, id, fake_stage(&test_stage));
	}
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 100; i++) {
			char id[16];

			snprintf(id, sizeof(id), "s%d", i);
			recs[i] = fake_record(&f, id, false, "add", "", 0);
		}
		spot_admit(l, recs, 100, f.now);
		fake_run(&f);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_FINISHED), 990);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_SPOT), 10);
	test_stop();
}

/* The message as its handler sees it (MSG-3), and its sender's buffer after submission (MSG-5). */
static void test_view(void)
{
	struct spot_rec *rec;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	rec = fake_record(&f, "a", false, "add", "abc", 3);
	rec->msg.source = 99;
	fake_admit(&f, "a", rec);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(test_stage_seen.packet, "add");
	CU_ASSERT_EQUAL(test_stage_seen.payload_bytes, 3);
	CU_ASSERT_EQUAL(test_stage_seen.correlation, 0);
	CU_ASSERT(!test_stage_seen.is_request);
	CU_ASSERT_EQUAL(test_stage_seen.source, 99);
	CU_ASSERT_EQUAL(test_stage_seen.content, SPL_CONTENT_TEXT);
	CU_ASSERT_EQUAL(test_stage_seen.deadline_ns, 0);
	CU_ASSERT_PTR_NULL(test_stage_seen.metadata);
	fake_request(&f, "a", "echo", "x");
	fake_run(&f);
	CU_ASSERT(test_stage_seen.is_request);
	CU_ASSERT_EQUAL(test_stage_seen.correlation, f.next_correlation);
	fake_log_clear();
	fake_send(&f, "a", "send", "a log original");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "sent original");
	test_stop();
}

static char walked[64];
static int walk(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	const char *key, *value;
	uint32_t key_bytes, value_bytes, pos = 0;

	walked[0] = '\0';
	while (spl_metadata_next(m, &pos, &key, &key_bytes, &value, &value_bytes) == 1)
		snprintf(walked + strlen(walked), sizeof(walked) - strlen(walked), "%.*s=%.*s;",
			 (int)key_bytes, key, (int)value_bytes, value);
	return SPL_DONE;
}

/* Metadata reaches the handler, from the buffer and from a copy, and is absent elsewhere. */
static void test_metadata(void)
{
	uint8_t meta[64];
	uint32_t n = 0, pos = 0, len;
	const char *bytes;
	struct spot_rec *rec;

	n = (uint32_t)wire_meta_set(meta, n, sizeof(meta), (struct pack_bytes){"k1", 2},
				    (struct pack_bytes){"v1", 2});
	n = (uint32_t)wire_meta_set(meta, n, sizeof(meta), (struct pack_bytes){"k2", 2},
				    (struct pack_bytes){"", 0});
	CU_ASSERT_EQUAL_FATAL(wire_meta_check(meta, n), 0);
	test_start(1);
	test_stage_probe = walk;
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int copy = 0; copy < 2; copy++) {
		rec = fake_record(&f, "a", false, "probe", meta, n);
		rec->msg.metadata = rec->msg.payload;
		rec->msg.metadata_bytes = n;
		rec->msg.payload_bytes = 0;
		fake_admit(&f, "a", rec);
		CU_ASSERT_EQUAL(test_spot("a")->app.bytes, n + SPOT_RECORD_COST);
		if (copy)
			CU_ASSERT_EQUAL(spot_copy_out(f.lane[0].l, 5), 1);
		fake_run(&f);
		CU_ASSERT_STRING_EQUAL(walked, "k1=v1;k2=;");
	}
	fake_send(&f, "a", "probe", "none");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(walked, "");
	CU_ASSERT_EQUAL(spl_metadata_next(NULL, &pos, &bytes, &len, &bytes, &len), 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_two_axes, "S-LIM-1", "S-LIM-2", "S-LIM-3"),
	T(test_cost_overflow, "S-LIM-2"),
	T(test_kind_by_origin, "S-LIM-5", "S-ERR-3", "S-COMPL-7"),
	T(test_send_to_full, "S-LIM-5", "S-DIR-4", "S-ERR-6"),
	T(test_unknown, "S-ADDR-6", "S-DIR-3"),
	T(test_no_handler, "S-DIR-10", "S-CODEC-1", "S-TURN-10"),
	T(test_deadline, "S-DIR-6"),
	T(test_lease, "S-LEASE-2", "S-LEASE-3", "S-ADM-1"),
	T(test_no_lease, "S-LEASE-2"),
	T(test_sealed, "S-DRAIN-2", "S-ADM-2", "A-DRAIN-8"),
	T(test_reply_permits, "S-LIM-12"),
	T(test_copy_out, "S-MSG-4"),
	T(test_no_memory, "S-LIM-1"),
	T(test_no_records, "S-LANE-2"),
	T(test_ended_record_serves_again),
	T(test_burst, "S-ADM-2"),
	T(test_view, "S-MSG-3", "S-MSG-5", "S-COMPL-4", "S-MSG-1"),
	T(test_metadata, "S-META-1", "S-META-3", "S-LIM-2"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_admit", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
