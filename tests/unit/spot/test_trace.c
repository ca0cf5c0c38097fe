/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow trace: what is recorded of a message at each level, what a flow is, and that nothing is done
 * when it is off. Records are read straight from the lanes' rings and told as words:
 * "PHASE:KIND", "error:KIND!REASON/ACTION".
 */
#include "tests/unit/spot/castrig.h"
#include "tests/unit/spot/timerrig.h"

#include "common/ids.h"

#include <errno.h>
#include <stdio.h>

#define f		       test_rig

#define SPL_X(sym, name, help) name,
static const char *const phases[] = {SPL_TRACE_PHASES(SPL_X)};
static const char *const kinds[] = {SPL_TRACE_KINDS(SPL_X)};
static const char *const outcomes[] = {SPL_TRACE_OUTCOMES(SPL_X)};
static const char *const reasons[] = {SPL_TRACE_REASONS(SPL_X)};
static const char *const actions[] = {SPL_TRACE_ACTIONS(SPL_X)};
static const char *const surfaces[] = {SPL_TRACE_SURFACES(SPL_X)};
static const char *const records[] = {SPL_TRACE_RECORDS(SPL_X)};
static const char *const origins[] = {SPL_TRACE_ORIGINS(SPL_X)};
#undef SPL_X

static struct spl_trace_record got[256]; /* of the last told(), in the order of time */
static unsigned n_got;
static uint64_t seen[FAKE_LANES];

static void add(const struct spl_trace_record *r)
{
	unsigned i = n_got++;

	CU_ASSERT_FATAL(n_got <= T_COUNT(got));
	for (; i > 0 && got[i - 1].time_ns > r->time_ns; i--)
		got[i] = got[i - 1];
	got[i] = *r;
}

/* What was recorded since the last time, as words. */
static const char *told(void)
{
	static char text[4096];
	size_t n = 0;

	n_got = 0;
	text[0] = '\0';
	for (unsigned i = 0; i < f.lanes; i++) {
		const struct spl_trace_ring *ring = f.lane[i].trace;

		for (; seen[i] < ring->written; seen[i]++) {
			const struct spl_trace_record *r =
				&ring->record[seen[i] % SPL_TRACE_ENTRIES];

			CU_ASSERT_EQUAL(r->seq, 2 * seen[i] + 2);
			add(r);
		}
	}
	for (unsigned i = 0; i < n_got; i++) {
		const struct spl_trace_record *r = &got[i];
		char word[128];

		if (r->name == SPL_TN_ERROR)
			snprintf(word, sizeof(word), "error:%s!%s/%s", kinds[r->kind],
				 reasons[r->reason], actions[r->action]);
		else if (r->reason || r->outcome != SPL_TO_SUCCEEDED)
			snprintf(word, sizeof(word), "%s:%s!%s=%s", phases[r->phase],
				 kinds[r->kind], reasons[r->reason], outcomes[r->outcome]);
		else
			snprintf(word, sizeof(word), "%s:%s", phases[r->phase], kinds[r->kind]);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", word);
		if (r->name == SPL_TN_ERROR)
			CU_ASSERT_EQUAL(r->outcome, SPL_TO_FAILED);
	}
	return text;
}

#define TOLD(want) \
	do { \
		const char *t_ = told(); \
		CU_ASSERT_STRING_EQUAL(t_, want); \
		if (strcmp(t_, want) != 0) \
			fprintf(stderr, "%d: told: %s\n", __LINE__, t_); \
	} while (0)

static void start(unsigned lanes, enum spl_trace_level level)
{
	test_start(lanes);
	memset(seen, 0, sizeof(seen));
	fake_trace(&f, level, SPL_TRACE_ALL);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	told();
}

/* Every other of the two is a flow of its own. */
static bool one_flow(void)
{
	for (unsigned i = 1; i < n_got; i++)
		if (got[i].flow.hi != got[0].flow.hi || got[i].flow.lo != got[0].flow.lo ||
		    got[i].flow.origin != got[0].flow.origin)
			return false;
	return n_got > 0 && got[0].flow.origin != SPL_TG_NONE;
}

static void test_words(void)
{
	CU_ASSERT_STRING_EQUAL(records[SPL_TN_FLOW], "spotlane.message_flow");
	CU_ASSERT_STRING_EQUAL(records[SPL_TN_ERROR], "spotlane.dispatch_error");
	CU_ASSERT_STRING_EQUAL(phases[SPL_TP_REPLY_RECEIVED], "reply_received");
	CU_ASSERT_STRING_EQUAL(phases[SPL_TP_DROPPED], "dropped");
	CU_ASSERT_STRING_EQUAL(surfaces[SPL_TS_INSTANCE_SPOT], "instance_spot");
	CU_ASSERT_STRING_EQUAL(surfaces[SPL_TS_CLASSIC_FANOUT], "classic_fanout");
	CU_ASSERT_STRING_EQUAL(reasons[SPL_TR_REPLY_PATH_MISSING], "reply_path_missing");
	CU_ASSERT_STRING_EQUAL(actions[SPL_TA_FAIL_CALLER], "fail_caller");
	CU_ASSERT_STRING_EQUAL(origins[SPL_TG_LIFECYCLE], "lifecycle");
	CU_ASSERT_EQUAL(SPL_TP_COUNT, 10);
	CU_ASSERT_EQUAL(SPL_TR_COUNT, 14);
}

/* One terminal a request; `sent` and `admitted` are neither (T-OB-4). */
static void test_steps_of_a_message(void)
{
	uint64_t c;

	start(1, SPL_TL_DETAILED);
	fake_send(&f, "a", "log", "secret-payload");
	TOLD("received:send admitted:send");
	fake_run(&f);
	TOLD("dispatched:send completed:send");
	CU_ASSERT_EQUAL(got[1].id_len, 1);
	CU_ASSERT_EQUAL(got[1].id[0], 'a');
	CU_ASSERT_EQUAL(got[1].packet_len, 3);
	CU_ASSERT(memcmp(got[1].packet, "log", 3) == 0);
	CU_ASSERT_EQUAL(got[1].flow.origin, SPL_TG_INBOUND);
	c = fake_request(&f, "a", "add", "");
	fake_run(&f);
	TOLD("received:request admitted:request dispatched:request replied:response "
	     "completed:request");
	CU_ASSERT(one_flow());
	for (unsigned i = 0; i < n_got; i++)
		CU_ASSERT_EQUAL(got[i].correlation, c);
	fake_trace(&f, SPL_TL_NORMAL, SPL_TRACE_ALL);
	fake_request(&f, "a", "add", "");
	fake_send(&f, "a", "log", "x");
	fake_run(&f);
	TOLD("received:request received:send replied:response completed:request completed:send");
	test_stop();
}

/* A failure is told once, by its reason, and at the default level; nothing else is (T-OB-4). */
static void test_failures(void)
{
	struct spot_rec *r;

	start(1, SPL_TL_ERRORS);
	fake_send(&f, "a", "log", "fine");
	fake_request(&f, "a", "add", "");
	fake_run(&f);
	TOLD("");
	fake_send(&f, "nobody", "log", "x");
	TOLD("dropped:send!stale_target=dropped");
	CU_ASSERT_EQUAL(got[0].flow.origin, SPL_TG_NONE);
	CU_ASSERT_EQUAL(got[0].flow.hi | got[0].flow.lo, 0);
	fake_request(&f, "nobody", "log", "x");
	TOLD("error:request!stale_target/reply_error");
	fake_send(&f, "a", "unheard", "x");
	fake_request(&f, "a", "unheard", "x");
	fake_run(&f);
	TOLD("error:send!no_handler/drop error:request!no_handler/reply_error");
	CU_ASSERT_EQUAL(got[0].id[0], 'a');
	fake_send(&f, "a", "misc", "no-such-misuse");
	fake_run(&f);
	r = fake_record(&f, "a", false, "log", "x", 1);
	r->deadline = f.now + 1;
	fake_admit(&f, "a", r);
	fake_advance(&f, FAKE_MS);
	told();
	fake_run(&f);
	TOLD("dropped:send!=cancelled");
	r = fake_record(&f, "a", false, "log", "x", 1);
	r->msg.content = SPL_CONTENT_COUNT;
	fake_admit(&f, "a", r);
	fake_run(&f);
	TOLD("error:send!decode_error/drop");
	spot_reply_in(f.lane[0].l, &(struct spot_reply){.correlation = 77, .kind = SPL_OK});
	TOLD("error:response!unexpected_reply/drop");
	CU_ASSERT_EQUAL(got[0].correlation, 77);
	spot_trace_refused(f.lane[0].l, false, SPL_FAIL_MALFORMED, 0);
	TOLD("error:send!invalid_frame/drop");
	CU_ASSERT_EQUAL(got[0].surface, SPL_TS_NODE);
	test_stop();
}

static int fails(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	return SPL_FAIL(SPL_E_INVALID_OPERATION);
}

static int tick_fails(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
}

/* Handlers and timers that fail name Spot and packet or timer; the next record runs. */
static void test_failed_callbacks(void)
{
	timer_begin(&test_stage);
	memset(seen, 0, sizeof(seen));
	told();
	timer_callback = tick_fails;
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	told();
	timer_live(10 + LAG);
	TOLD("error:control!handler_exception/drop");
	CU_ASSERT_EQUAL(got[0].packet_len, 4);
	CU_ASSERT(memcmp(got[0].packet, "beat", 4) == 0);
	test_stage_probe = fails;
	fake_send(&f, "a", "probe", "x");
	fake_request(&f, "a", "probe", "x");
	fake_send(&f, "a", "log", "after");
	fake_run(&f);
	TOLD("error:send!handler_exception/drop error:request!handler_exception/reply_error");
	CU_ASSERT(memcmp(got[0].packet, "probe", 5) == 0);
	CU_ASSERT(strstr(fake_logged(), "after") != NULL);
	test_stop();
}

/* Off: nothing is written and no flow is made, whatever fails; back on, it is for what comes then,
 * and a record that came before has a flow of its own (T-OB-5). */
static void test_off(void)
{
	uint64_t flows, old[4];

	start(1, SPL_TL_DETAILED);
	for (unsigned i = 0; i < 4; i++)
		fake_send(&f, "a", "log", "x");
	fake_run(&f);
	told();
	for (unsigned i = 0; i < 4; i++)
		old[i] = got[2 * i].flow.lo;
	flows = f.lane[0].l->trace.serial;
	CU_ASSERT(flows > 0);
	fake_trace(&f, SPL_TL_OFF, SPL_TRACE_ALL);
	fake_send(&f, "nobody", "log", "x");
	fake_send(&f, "a", "log", "x");
	fake_request(&f, "a", "unheard", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(f.lane[0].l->trace.serial, flows);
	fake_send(&f, "a", "log", "before");
	TOLD("");
	fake_trace(&f, SPL_TL_DETAILED, SPL_TRACE_ALL);
	fake_send(&f, "b", "log", "y");
	fake_run(&f);
	TOLD("received:send admitted:send dispatched:send completed:send dispatched:send "
	     "completed:send");
	CU_ASSERT(got[2].flow.lo != got[0].flow.lo);
	CU_ASSERT_EQUAL(got[2].flow.lo, got[3].flow.lo);
	for (unsigned i = 0; i < 4; i++) /* nor that of whom its place had before */
		CU_ASSERT(got[2].flow.lo != old[i]);
	CU_ASSERT_EQUAL(got[4].flow.lo, got[0].flow.lo);
	test_stop();
}

/* From Spot to Spot over lanes, request and reply: one flow (T-OB-6). */
static void hops(unsigned lanes, const char *from, const char *to)
{
	char text[80];

	test_start(lanes);
	memset(seen, 0, sizeof(seen));
	fake_create(&f, from, fake_stage(&test_stage));
	fake_create(&f, to, fake_stage(&test_stage));
	fake_trace(&f, SPL_TL_NORMAL, SPL_TRACE_ALL);
	told();
	snprintf(text, sizeof(text), "%s add", to);
	fake_request(&f, from, "hold", text);
	fake_run(&f);
	told();
	CU_ASSERT(one_flow());
	CU_ASSERT_EQUAL(n_got, lanes > 1 ? 8 : 7);
	CU_ASSERT_EQUAL(got[0].flow.origin, SPL_TG_INBOUND);
	snprintf(text, sizeof(text), "%s log hello", to);
	fake_send(&f, from, "send", text);
	fake_run(&f);
	told();
	CU_ASSERT(one_flow());
	fake_send(&f, to, "log", "another");
	fake_run(&f);
	told();
	CU_ASSERT(one_flow());
	test_stop();
}

static void test_hops(void)
{
	char other[16] = "b0";

	hops(1, "a", "b");
	test_begin(2);
	fake_start(&f);
	while (fake_lane_of(&f, other) == fake_lane_of(&f, "a"))
		other[1]++;
	test_stop();
	hops(2, "a", other);
}

/* Two flows at once do not mix: the flow of a Spot's sends is that of the turn that makes them. */
static void test_context(void)
{
	uint64_t first;

	start(1, SPL_TL_NORMAL);
	fake_request(&f, "a", "yield", "nobody add");
	fake_run(&f);
	told();
	CU_ASSERT(one_flow());
	first = got[0].flow.lo;
	fake_send(&f, "a", "send", "b log x"); /* while the other waits */
	fake_run(&f);
	told();
	CU_ASSERT(one_flow());
	CU_ASSERT(got[0].flow.lo != first);
	fake_missing_says(&f, f.missing_correlation, SPL_E_NOT_FOUND, NULL);
	fake_run(&f);
	TOLD("reply_received:error!=failed replied:response completed:request");
	CU_ASSERT(one_flow());
	CU_ASSERT_EQUAL(got[0].flow.lo, first);
	test_stop();
}

/* All branches of a publish are of its flow; none has a terminal (T-OB-4, T-OB-6). */
static void test_publish(void)
{
	unsigned branches = 0;

	cast_begin(3);
	memset(seen, 0, sizeof(seen));
	cast_make("one-world/news/news");
	cast_make("two-world/news/news");
	cast_make("three-world/news/news");
	fake_trace(&f, SPL_TL_DETAILED, SPL_TRACE_ALL);
	told();
	cast_from_peer("world", "news", "news", "x");
	fake_run(&f);
	told();
	CU_ASSERT(one_flow());
	for (unsigned i = 0; i < n_got; i++) {
		CU_ASSERT(got[i].phase == SPL_TP_RECEIVED || got[i].phase == SPL_TP_DISPATCHED);
		CU_ASSERT_EQUAL(got[i].surface, SPL_TS_CHANNEL);
		branches += got[i].phase == SPL_TP_DISPATCHED;
	}
	CU_ASSERT_EQUAL(branches, 3);
	test_stop();
}

static void test_timer_flows(void)
{
	uint64_t first;

	timer_begin(&test_stage);
	memset(seen, 0, sizeof(seen));
	timer_start_named("beat", 10 * FAKE_MS, (struct spl_timer_options){0});
	fake_trace(&f, SPL_TL_DETAILED, SPL_TRACE_ALL);
	told();
	timer_live(10 + LAG);
	TOLD("dispatched:control completed:control");
	CU_ASSERT(one_flow());
	CU_ASSERT_EQUAL(got[0].flow.origin, SPL_TG_TIMER);
	CU_ASSERT(memcmp(got[0].packet, "beat", 4) == 0);
	first = got[0].flow.lo;
	timer_live(10);
	told();
	CU_ASSERT(one_flow());
	CU_ASSERT(got[0].flow.lo != first);
	CU_ASSERT_EQUAL(got[0].flow.origin, SPL_TG_TIMER);
	test_stop();
}

/* UUIDv7: version, variant, the time, and never the same. */
static void test_ids(void)
{
	uint64_t last = 0;

	start(1, SPL_TL_NORMAL);
	for (int i = 0; i < 50; i++) {
		fake_send(&f, "a", "log", "x");
		fake_run(&f);
		told();
		CU_ASSERT_EQUAL(got[0].flow.hi >> 12 & 15, 7);
		CU_ASSERT_EQUAL(got[0].flow.lo >> 62, 2);
		CU_ASSERT_EQUAL(got[0].flow.hi >> 16, (FAKE_WALL_NS + f.now) / 1000000);
		CU_ASSERT_EQUAL(got[0].time_ns, FAKE_WALL_NS + f.now);
		CU_ASSERT(got[0].flow.lo != last);
		last = got[0].flow.lo;
	}
	test_stop();
}

/* A flow is in with all its records or out; failures are always in. */
static void test_sampling(void)
{
	unsigned in = 0;

	start(1, SPL_TL_DETAILED);
	fake_trace(&f, SPL_TL_DETAILED, SPL_TRACE_ALL / 4);
	for (int i = 0; i < 400; i++) {
		fake_send(&f, "a", "log", "x");
		fake_run(&f);
		told();
		CU_ASSERT(n_got == 0 || (n_got == 4 && one_flow()));
		in += n_got == 4;
	}
	CU_ASSERT(in > 60 && in < 140);
	fake_trace(&f, SPL_TL_DETAILED, 0);
	fake_send(&f, "a", "log", "x");
	fake_send(&f, "nobody", "log", "x");
	fake_run(&f);
	TOLD("dropped:send!stale_target=dropped");
	CU_ASSERT(got[0].flow.origin == SPL_TG_INBOUND); /* with its flow: both or neither */
	test_stop();
}

/* What a handler cannot send is backpressured. */
static void test_backpressured(void)
{
	test_begin(1);
	f.conf.waiters = 0; /* nor may it wait */
	fake_start(&f);
	memset(seen, 0, sizeof(seen));
	fake_trace(&f, SPL_TL_NORMAL, SPL_TRACE_ALL);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (int i = 0; i < 64; i++)
		fake_send(&f, "b", "log", "x");
	fake_send(&f, "a", "send", "b log x");
	fake_pass(&f, 1); /* the first of b, whose turn it is */
	fake_send(&f, "b", "log", "x");
	told();
	fake_pass(&f, 1);
	CU_ASSERT_EQUAL(test_stage_rc, -ETIMEDOUT);
	TOLD("backpressured:send!backpressure=backpressured completed:send");
	CU_ASSERT_EQUAL(got[0].id[0], 'b');
	test_stop();
}

/* A ring that nobody reads holds nobody up: it is overwritten. */
static void test_overwritten(void)
{
	start(1, SPL_TL_ERRORS);
	for (unsigned i = 0; i < 3 * SPL_TRACE_ENTRIES; i++)
		fake_send(&f, "nobody", "log", "x");
	CU_ASSERT_EQUAL(f.lane[0].trace->written, 3 * SPL_TRACE_ENTRIES);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_SPOT), 3 * SPL_TRACE_ENTRIES);
	for (unsigned i = 0; i < SPL_TRACE_ENTRIES; i++)
		CU_ASSERT_EQUAL(f.lane[0].trace->record[i].seq,
				2 * (2ull * SPL_TRACE_ENTRIES + i) + 2);
	test_stop();
}

/* No byte of a payload is anywhere in the rings. */
static void test_no_payload(void)
{
	start(1, SPL_TL_DETAILED);
	fake_request(&f, "a", "echo", "tell-tale-payload");
	fake_send(&f, "nobody", "log", "tell-tale-payload");
	fake_run(&f);
	CU_ASSERT_PTR_NULL(memmem(f.lane[0].trace, sizeof(*f.lane[0].trace), "tell-tale", 9));
	CU_ASSERT_PTR_NOT_NULL(memmem(f.lane[0].trace, sizeof(*f.lane[0].trace), "echo", 4));
	test_stop();
}

static const struct t_case cases[] = {
	T(test_words, "S-TRACE-1"),
	T(test_steps_of_a_message, "S-TRACE-1", "S-TRACE-2"),
	T(test_failures, "S-TRACE-1", "S-TRACE-2", "S-TRACE-3"),
	T(test_failed_callbacks, "S-TRACE-1", "S-TURN-10"),
	T(test_off, "S-TRACE-3"),
	T(test_hops, "S-TRACE-4"),
	T(test_context, "S-TRACE-4"),
	T(test_publish, "S-TRACE-4", "S-TRACE-2"),
	T(test_timer_flows, "S-TIMER-18", "S-TRACE-4"),
	T(test_ids, "S-TRACE-4"),
	T(test_sampling, "S-TRACE-3"),
	T(test_backpressured, "S-TRACE-1"),
	T(test_overwritten, "S-INFRA-3", "S-TRACE-3"),
	T(test_no_payload, "S-TRACE-1"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("trace", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
