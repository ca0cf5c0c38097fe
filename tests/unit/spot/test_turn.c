/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns: gate, HOLD, order, what the end of a turn brings, fairness, misuse. */
#include "dataplane/spot/queue.h"
#include "tests/unit/spot/fake.h"
#include "tests/unit/spot/teststage.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#define f test_rig

/* T-GATE-1, T-TURN-4: many requests and sends, one at a time, in order. */
static void test_serial(void)
{
	uint64_t last = 0;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0; i < 10000; i++) {
		if (i % 3 == 0)
			last = fake_request(&f, "a", "add", "");
		else
			fake_send(&f, "a", "add", "");
		if (i % 50 == 49)
			fake_run(&f);
	}
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, last, SPL_OK, "10000"));
	test_stop();
}

static uint64_t expect_seq;
static int check_seq(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	uint64_t v;

	CU_ASSERT_EQUAL_FATAL(m->payload_bytes, 8);
	memcpy(&v, m->payload, 8);
	CU_ASSERT_EQUAL(v, expect_seq);
	expect_seq++;
	return SPL_DONE;
}

static void test_order(void)
{
	test_begin(1);
	f.conf.queue_count = 1024;
	f.conf.queue_bytes = 1 << 20;
	fake_start(&f);
	expect_seq = 0;
	test_stage_probe = check_seq;
	fake_create(&f, "a", fake_stage(&test_stage));
	for (uint64_t i = 0; i < 10000; i++) {
		fake_message(&f, "a", false, "probe", &i, 8);
		if (i % 60 == 59)
			fake_pass(&f, 50 + (unsigned)(i % 7) * 20);
	}
	fake_run(&f);
	CU_ASSERT_EQUAL(expect_seq, 10000);
	test_stop();
}

/* T-TURN-1, T-SP-5: order held, resumed, completed, probe; the same turn number, on this lane and
 * over two. */
static void hold_order(unsigned lanes)
{
	uint64_t r;

	test_start(lanes);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	fake_log_clear();
	r = fake_request(&f, "a", "hold", "b echo hello");
	fake_pass(&f, 1);
	fake_send(&f, "a", "log", "probe");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK hello"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "held resumed probe");
	test_stop();
}

static void test_hold_same_lane(void)
{
	hold_order(1);
}

static void test_hold_other_lane(void)
{
	hold_order(3);
}

/* T-TURN-2: the reply comes while the queue is full: the continuation runs before any record, and
 * before the deadline; the sender beyond the queue was refused, nothing ran in place (T-TURN-5). */
static void test_hold_full_queue(void)
{
	uint64_t runs, r, late;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage_small));
	r = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	CU_ASSERT_EQUAL(f.missing, 1);
	runs = test_stage_runs;
	for (int i = 0; i < 3; i++)
		fake_send(&f, "a", "log", "queued");
	late = fake_request(&f, "a", "log", "refused");
	CU_ASSERT(fake_replied(&f, late, SPL_E_UNAVAILABLE, NULL));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_runs, runs);
	fake_log_clear();
	struct spot_reply reply = {.correlation = f.missing_correlation,
				   .kind = SPL_E_NOT_FOUND,
				   .origin = SPOT_FROM_AGENT};
	spot_reply_in(f.lane[0].l, &reply);
	CU_ASSERT_EQUAL(test_stage_runs, runs); /* never on the context that completes it */
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "NotFound "));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed queued queued queued");
	test_stop();
}

/* T-TURN-8: a failing send between two good ones; a failing request has one error reply. */
static void test_failures(void)
{
	static const struct {
		const char *what;
		uint8_t kind;
	} rows[] = {
		{"fail", SPL_E_DATA_LOST},
		{"badkind", SPL_E_INTERNAL_FAILURE},
		{"badcode", SPL_E_INTERNAL_FAILURE},
		{"rejected", SPL_E_INTERNAL_FAILURE},
		{"suspended", SPL_E_INTERNAL_FAILURE},
		{"silent", SPL_E_INTERNAL_FAILURE},
		{"thrown", SPL_E_INTERNAL_FAILURE},
	};

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (size_t i = 0; i < T_COUNT(rows); i++) {
		uint64_t failed = fake_failed(&f, SPL_FAIL_HANDLER), r;

		fake_log_clear();
		fake_send(&f, "a", "log", "1");
		r = fake_request(&f, "a", "misc", rows[i].what);
		if (strcmp(rows[i].what, "silent") != 0) {
			fake_send(&f, "a", "misc", rows[i].what);
			failed++;
		}
		fake_send(&f, "a", "log", "2");
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, rows[i].kind, NULL));
		CU_ASSERT_STRING_EQUAL(fake_logged(), "1 2");
		CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_HANDLER), failed + 1);
	}
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0); /* what was thrown away is released */
	test_stop();
}

static void test_replies_once(void)
{
	uint64_t r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	r = fake_request(&f, "a", "misc", "twice");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -EINVAL);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "1"));
	r = fake_request(&f, "a", "misc", "replyfail");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "1"));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_HANDLER), 1);
	fake_send(&f, "a", "misc", "close"); /* a reply to a send is no reply */
	fake_run(&f);
	test_stop();
}

static struct spl_turn *stolen;
static struct spl_call *stolen_call;

static int steal(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	stolen = turn;
	return SPL_DONE;
}

static int use_stolen(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	struct spl_call *c;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	CU_ASSERT_EQUAL(spl_reply(stolen, SPL_CONTENT_RAW, "x", 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_send(stolen, &t, 5, SPL_CONTENT_RAW, "x", 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_request(stolen, &t, 5, SPL_CONTENT_RAW, "x", 1, 0, SPL_WAIT_HOLD, &c),
			-EINVAL);
	CU_ASSERT_EQUAL(spl_close_self(stolen), -EINVAL);
	CU_ASSERT_EQUAL(spl_now_ns(stolen), 0);
	CU_ASSERT_PTR_NULL(spl_spot_id(stolen));
	if (stolen_call)
		CU_ASSERT_EQUAL(
			spl_call_then(turn, stolen_call, (spl_result_fn)(void *)steal, NULL),
			-EINVAL);
	return SPL_DONE;
}

/* A turn that has ended, of this Spot or another, is refused; so is another turn's call. */
static void test_stale_turn(void)
{
	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = steal;
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	fake_request(&f, "b", "hold", "nobody echo x");
	fake_run(&f);
	stolen_call = (struct spl_call *)(uintptr_t)f.missing_correlation;
	test_stage_probe = use_stolen;
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	stolen_call = NULL;
	fake_advance(&f, 2000 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(spl_reply(stolen, SPL_CONTENT_RAW, "x", 1), -EINVAL); /* outside any turn */
	test_stop();
}

/* T-REENT-2, T-REENT-3 */
static void test_self(void)
{
	uint64_t r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_send(&f, "a", "send", "a log self");
	fake_send(&f, "a", "log", "before");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, 0);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "sent before self");
	r = fake_request(&f, "a", "hold", "a echo x");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -EDEADLK);
	CU_ASSERT(fake_replied(&f, r, SPL_E_INVALID_OPERATION, NULL));
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0);
	r = fake_request(&f, "a", "echo", "probe");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "probe"));
	test_stop();
}

/* T-REENT-4: A waits for B, B for A: both end by the deadline and go on. */
static void test_cycle(void)
{
	uint64_t r;

	test_start(2);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	r = fake_request(&f, "a", "hold", "b hold a echo x");
	fake_run(&f);
	CU_ASSERT_PTR_NULL(fake_reply(&f, r));
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "DeadlineExceeded "));
	r = fake_request(&f, "b", "echo", "1");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "1"));
	test_stop();
}

static uint64_t slow_ns;
static int slow(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	fake_log(m->payload_bytes ? "h" : "c");
	f.now += slow_ns;
	return SPL_DONE;
}

/* T-FAIR-2: a hot owner is put behind a cold one when its 50 us are over, and keeps its order. */
static void test_time_budget(void)
{
	test_start(1);
	slow_ns = 20000;
	test_stage_probe = slow;
	fake_create(&f, "hot", fake_stage(&test_stage));
	fake_create(&f, "cold", fake_stage(&test_stage));
	fake_log_clear();
	for (int i = 0; i < 8; i++)
		fake_send(&f, "hot", "probe", "x");
	fake_send(&f, "cold", "probe", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "h h h c h h h h h");
	test_stop();
}

/* No turn begins after `until`, nor more than are asked for. */
static void test_run_bounds(void)
{
	struct spot_lane *l;

	test_start(1);
	slow_ns = 20000;
	test_stage_probe = slow;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	l = f.lane[0].l;
	for (int i = 0; i < 10; i++)
		fake_send(&f, i % 2 ? "a" : "b", "probe", "");
	CU_ASSERT_EQUAL(spot_run(l, 3, UINT64_MAX), 3);
	CU_ASSERT_EQUAL(spot_run(l, 100, f.now + 30000), 2);
	CU_ASSERT(spot_ready(l));
	fake_run(&f);
	CU_ASSERT(!spot_ready(l));
	test_stop();
}

static int lifecycle_notice(struct spl_turn *turn, void *state)
{
	fake_log("L");
	return SPL_DONE;
}

/* T-LANE-1, T-LANE-4: lifecycle first, each queue in its order, each with its own room. */
static void test_two_queues(void)
{
	struct spot *s;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage_small));
	s = test_spot("a");
	fake_log_clear();
	for (int i = 0; i < 4; i++)
		fake_send(&f, "a", "log", i % 2 ? "b" : "a");
	fake_send(&f, "a", "log", "full");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	CU_ASSERT_EQUAL(spot_life_notice(f.lane[0].l, s, lifecycle_notice), 0);
	CU_ASSERT_EQUAL(spot_life_notice(f.lane[0].l, s, lifecycle_notice), 0);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "L L a b a b");
	for (int i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(spot_life_notice(f.lane[0].l, s, lifecycle_notice), 0);
	CU_ASSERT_EQUAL(spot_life_notice(f.lane[0].l, s, lifecycle_notice), -EAGAIN);
	fake_send(&f, "a", "log", "a");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	fake_run(&f);
	test_stop();
}

static unsigned feed_left;
static int feeding_notice(struct spl_turn *turn, void *state)
{
	fake_log("L");
	f.now += 30000; /* over the visit's budget every second turn: the debt survives that */
	if (feed_left-- > 0)
		spot_life_notice(f.lane[0].l, test_spot("a"), feeding_notice);
	return SPL_DONE;
}

/* T-LANE-2 with a cap of 3: an application turn at the latest after 3 lifecycle turns. */
static void test_lifecycle_debt(void)
{
	test_begin(1);
	f.conf.life_cap = 3;
	fake_start(&f);
	fake_create(&f, "a", fake_stage(&test_stage_plain));
	fake_log_clear();
	test_spot("a")->gate.streak = 0;
	feed_left = 8;
	spot_life_notice(f.lane[0].l, test_spot("a"), feeding_notice);
	for (int i = 0; i < 3; i++)
		fake_send(&f, "a", "log", "a");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "L L L a L L L a L L L a");
	/* Without application work the debt stays and lifecycle goes on. */
	fake_log_clear();
	feed_left = 4;
	spot_life_notice(f.lane[0].l, test_spot("a"), feeding_notice);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "L L L L L");
	CU_ASSERT(test_spot("a")->gate.flags & SPOT_F_DEBT);
	fake_send(&f, "a", "log", "a");
	feed_left = 0;
	spot_life_notice(f.lane[0].l, test_spot("a"), feeding_notice);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "L L L L L a L");
	test_stop();
}

/* T-FAIR-1: an owner is in the ready set once, and re-examined: work is never lost. */
static void test_ready_set(void)
{
	struct spot_lane *l;
	unsigned n = 0;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	l = f.lane[0].l;
	for (int i = 0; i < 5; i++)
		fake_send(&f, "a", "add", "");
	for (uint32_t i = l->ready_head; i; i = spot_at(l, i)->gate.ready_next)
		n++;
	CU_ASSERT_EQUAL(n, 1);
	/* A wake-up that comes for nothing does no harm. */
	spot_ready_add(l, test_spot("a"));
	fake_run(&f);
	spot_ready_add(l, test_spot("a"));
	CU_ASSERT_EQUAL(fake_pass(&f, 10), 1);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_FINISHED), 5);
	test_stop();
}

/* What was there when the probe ran: replies that had gone out, messages that count in the queue.
 */
static struct {
	unsigned outs;
	uint32_t count;
} seen[8];
static unsigned n_seen;

static int look_back(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	CU_ASSERT_FATAL(n_seen < T_COUNT(seen));
	seen[n_seen].outs = f.outs;
	seen[n_seen++].count = f.lane[0].l->turn.spot->app.count;
	return SPL_DONE;
}

/* The reply of each turn has gone out and its message has left the account before the next begins,
 * whether the handler replied, failed, said nothing or resumed. */
static void test_post_processing(void)
{
	static const char *const first[][2] = {
		{"echo", "x"}, {"misc", "fail"}, {"misc", "silent"}, {"hold", "b echo x"}};
	const unsigned n = T_COUNT(first);

	test_start(1);
	n_seen = 0;
	test_stage_probe = look_back;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (unsigned i = 0; i < n; i++) {
		fake_request(&f, "a", first[i][0], first[i][1]);
		fake_send(&f, "a", "probe", "");
	}
	fake_run(&f);
	CU_ASSERT_EQUAL_FATAL(n_seen, n);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_EQUAL(seen[i].outs, i + 1);
		CU_ASSERT_EQUAL(seen[i].count, 2 * n - (2 * i + 1)); /* with the probe itself */
	}
	test_stop();
}

/* Threads, descriptors and timers that the kernel knows of this process. */
static unsigned kernel_objects(void)
{
	static const char *const dirs[] = {"/proc/self/task", "/proc/self/fd"};
	FILE *timers = fopen("/proc/self/timers", "r");
	unsigned n = 0;

	for (size_t i = 0; i < T_COUNT(dirs); i++) {
		DIR *d = opendir(dirs[i]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		while (readdir(d))
			n++;
		closedir(d);
	}
	for (int c; timers && (c = fgetc(timers)) != EOF;)
		n += c == '\n';
	if (timers)
		fclose(timers);
	return n;
}

/* T-GATE-5, T-INFRA-1: 10 000 suspended Spots: others are served, deadlines fire, all is released.
 */
static void test_many_suspended(void)
{
	uint64_t r;
	unsigned timed_out = 0, before;

	test_begin(1);
	f.conf.spots_max = 10010;
	f.conf.records = 16384;
	f.conf.calls = 12000;
	f.conf.object_bytes = 16 << 20;
	f.conf.heap_bytes = 8 << 20;
	fake_start(&f);
	before = kernel_objects();
	for (int i = 0; i < 10000; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		fake_create(&f, id, fake_stage(&test_stage_plain));
		fake_request(&f, id, "hold", "nobody echo x");
		if (i % 8 == 0)
			fake_run(&f);
	}
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_RUNNING), 10000);
	CU_ASSERT_EQUAL(kernel_objects(), before); /* for 10 000 Spots and as many deadlines */
	CU_ASSERT(!spot_ready(f.lane[0].l));
	fake_create(&f, "other", fake_stage(&test_stage_plain));
	r = fake_request(&f, "other", "echo", "alive");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "alive"));
	CU_ASSERT(fake_law(&f));
	for (int i = 0; i < 2000 && fake_counter(&f, SPL_C_MESSAGES_RUNNING); i++) {
		fake_advance(&f, FAKE_MS);
		fake_pass(&f, 512);
		fake_run(&f);
	}
	for (unsigned i = 0; i < f.outs; i++)
		timed_out += f.out[i].bytes == 17 &&
			     memcmp(f.out[i].payload, "DeadlineExceeded ", 17) == 0;
	CU_ASSERT_EQUAL(timed_out, 10000);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_CALLS_EXPIRED), 10000);
	CU_ASSERT_EQUAL(f.buffers, 0);
	f.conf.commands = 256;
	for (int i = 0; i < 10000; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		fake_close(&f, id, (uint64_t)i + 1, SPL_CLOSING_EXPLICIT, 0);
		if (i % 100 == 0)
			fake_run(&f);
	}
	fake_run(&f);
	test_stop();
}

/* The longest handler call is known by stage and packet. */
static void test_longest(void)
{
	const char *type, *what;
	uint64_t cycles;

	test_start(1);
	test_stage_probe = slow;
	slow_ns = 5 * FAKE_MS;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_send(&f, "a", "add", "");
	fake_send(&f, "a", "probe", "");
	fake_send(&f, "a", "add", "");
	fake_run(&f);
	spot_longest(f.lane[0].l, &cycles, &type, &what);
	CU_ASSERT_EQUAL(cycles, 5 * FAKE_MS);
	CU_ASSERT_STRING_EQUAL(type, "test");
	CU_ASSERT_STRING_EQUAL(what, "probe");
	test_stop();
}

static const struct t_case cases[] = {
	T(test_serial, "S-GATE-2", "S-TURN-1"),
	T(test_order, "S-TURN-2"),
	T(test_hold_same_lane, "S-TURN-4", "S-TURN-1", "S-MSG-4", "S-DIR-3"),
	T(test_hold_other_lane, "S-TURN-4", "S-DIR-3", "S-DIR-12"),
	T(test_hold_full_queue, "S-TURN-4", "S-TURN-5", "S-TURN-6", "S-INFRA-1"),
	T(test_failures, "S-TURN-10", "S-CF-1", "S-CF-2", "S-DIR-10"),
	T(test_replies_once, "S-DIR-6", "S-CF-2"),
	T(test_stale_turn, "S-TURN-8"),
	T(test_self, "S-REENT-1", "S-REENT-2"),
	T(test_cycle, "S-REENT-4", "S-COMPL-8"),
	T(test_time_budget, "S-FAIR-3"),
	T(test_run_bounds),
	T(test_two_queues, "S-LANE-1", "S-LANE-2", "S-LANE-3"),
	T(test_lifecycle_debt, "S-LANE-4", "S-LANE-5", "S-LANE-6"),
	T(test_ready_set, "S-FAIR-1", "S-FAIR-2"),
	T(test_post_processing, "S-TURN-7"),
	T(test_many_suspended, "S-GATE-6", "S-INFRA-1", "S-FAIR-6"),
	T(test_longest),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_turn", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
