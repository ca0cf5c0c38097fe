/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: one winner, correlations, late replies, what a turn leaves behind, bounds. */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>
#include <stdlib.h>

#define f test_rig

static void reply(uint64_t correlation, uint8_t kind, uint8_t origin, const char *text)
{
	struct spot_reply r = {
		.correlation = correlation,
		.payload = text,
		.payload_bytes = text ? (uint32_t)strlen(text) : 0,
		.content = SPL_CONTENT_TEXT,
		.kind = kind,
		.origin = origin,
	};

	spot_reply_in(f.lane[0].l, &r);
}

/* Every race of reply, deadline and shutdown over one call: exactly one terminal, the first; what
 * comes later dispatches nothing (T-COMPL-1). The order is drawn, 100 000 times. */
static void test_one_winner(void)
{
	struct t_rand rnd = {t_seed()};
	struct spot_lane *l;
	uint64_t late = 0;

	test_begin(1);
	f.conf.request_ms = 10;
	fake_start(&f);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0; i < 100000; i++) {
		static const char *const wins[] = {"OK yes", "Unavailable ", "DeadlineExceeded ",
						   "ShuttingDown "};
		uint64_t r, c, runs;
		unsigned first = 4, n = 1 + t_rand_below(&rnd, 4);

		f.outs = 0;
		f.answers = 0;
		fake_log_clear();
		r = fake_request(&f, "a", "hold", "nobody echo x");
		spot_run(l, 8, UINT64_MAX);
		c = f.missing_correlation;
		runs = test_stage_runs;
		for (unsigned k = 0; k < n; k++) {
			unsigned who = t_rand_below(&rnd, 4);
			bool open = l->calls_open == 1;

			if (who == 0)
				reply(c, SPL_OK, SPOT_FROM_AGENT, "yes");
			else if (who == 1)
				reply(c, SPL_E_UNAVAILABLE, SPOT_FROM_AGENT, NULL);
			else if (who == 2)
				fake_advance(&f, 12 * FAKE_MS);
			if (who == 2)
				spot_tick(l, f.now, 64);
			if (who == 3)
				spot_calls_end(l, SPL_E_SHUTTING_DOWN, 100);
			if (open && l->calls_open == 0)
				first = who;
			late += !open && who < 2;
		}
		CU_ASSERT_EQUAL_FATAL(test_stage_runs, runs); /* nothing ran on those contexts */
		if (first == 4) {
			fake_advance(&f, 12 * FAKE_MS);
			spot_tick(l, f.now, 64);
			first = 2;
		}
		spot_run(l, 8, UINT64_MAX);
		CU_ASSERT_EQUAL_FATAL(test_stage_runs, runs + 1);
		CU_ASSERT_FATAL(fake_replied(&f, r, SPL_OK, wins[first]));
		reply(c, SPL_OK, SPOT_FROM_AGENT, "late");
		late++;
		spot_run(l, 8, UINT64_MAX);
		CU_ASSERT_EQUAL_FATAL(test_stage_runs, runs + 1);
		CU_ASSERT_EQUAL_FATAL(l->calls_held, 0);
	}
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), late);
	CU_ASSERT(fake_law(&f));
	test_stop();
}

/* A call is registered before it is submitted: a target that answers at once is never missed
 * (T-COMPL-2). The host of this test answers inside send(). */
static int answer_at_once(void *host, const struct spot_out *o)
{
	if (o->kind == SPL_MSG_SPOT_REQUEST) {
		struct spot_reply r = {.correlation = o->correlation,
				       .payload = "now",
				       .payload_bytes = 3,
				       .content = SPL_CONTENT_TEXT,
				       .kind = SPL_OK,
				       .origin = SPOT_FROM_LANE};

		spot_reply_in(((struct fake_lane *)host)->l, &r);
		return 0;
	}
	f.out[f.outs] = (struct fake_out){.kind = o->kind,
					  .error = o->error,
					  .correlation = o->correlation,
					  .bytes = o->payload_bytes};
	memcpy(f.out[f.outs++].payload, o->payload, o->payload_bytes);
	return 0;
}

static void test_instant_reply(void)
{
	char id[16], payload[32];
	struct spot_lane *l;
	uint64_t r;

	test_start(2);
	fake_create(&f, "a", fake_stage(&test_stage));
	l = fake_lane_of(&f, "a")->l;
	for (int i = 0;; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		if (fake_lane_of(&f, id) != fake_lane_of(&f, "a"))
			break;
	}
	l->env.send = answer_at_once;
	snprintf(payload, sizeof(payload), "%s echo x", id);
	for (int i = 0; i < 1000; i++) {
		f.outs = 0;
		r = fake_request(&f, "a", "hold", payload);
		fake_run(&f);
		CU_ASSERT_FATAL(fake_replied(&f, r, SPL_OK, "OK now"));
	}
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 0);
	test_stop();
}

static uint64_t seen_correlation;
static int see(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	seen_correlation = m->correlation;
	return m->is_request ? spl_reply(turn, SPL_CONTENT_RAW, NULL, 0) : SPL_DONE;
}

/* T-COMPL-4, T-SP-14: a correlation of its own for each downstream request, none for a send, none
 * twice; guessed and altered ones match nothing. */
static void test_correlations(void)
{
	enum { N = 20000 };
	static uint64_t all[N];
	uint64_t r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = see;
	for (int i = 0; i < N; i++) {
		f.outs = 0;
		r = fake_request(&f, "a", "hold", "b probe x");
		fake_run(&f);
		CU_ASSERT_FATAL(fake_replied(&f, r, SPL_OK, "OK "));
		CU_ASSERT(seen_correlation != r && seen_correlation != 0);
		all[i] = seen_correlation;
		for (int bit = 0; bit < 64; bit += 9)
			reply(seen_correlation ^ UINT64_C(1) << bit, SPL_OK, SPOT_FROM_AGENT, "x");
	}
	fake_send(&f, "b", "probe", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(seen_correlation, 0);
	for (int i = 1; i < N; i++) /* shuffled enough that neighbours tell little */
		CU_ASSERT(all[i] != all[i - 1] && (all[i] ^ all[i - 1]) >> 20 > 1);
	reply(0, SPL_OK, SPOT_FROM_AGENT, "x");
	reply(UINT64_MAX, SPL_OK, SPOT_FROM_AGENT, "x");
	CU_ASSERT(fake_law(&f));
	test_stop();
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Ten million calls, one after another: each has another correlation. */
static void test_unique(void)
{
	enum { N = 10000000 };
	uint64_t *all = malloc(N * sizeof(*all));
	struct spot_lane *l;
	unsigned same = 0;

	test_start(1);
	l = f.lane[0].l;
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	for (int i = 0; i < N; i++) {
		struct spot_call *c = spot_call_start(l, SPOT_FROM_SELF, f.now + 1000);

		all[i] = c->correlation;
		spot_call_drop(l, c);
	}
	qsort(all, N, sizeof(*all), compare);
	for (int i = 1; i < N; i++)
		same += all[i] == all[i - 1];
	CU_ASSERT_EQUAL(same, 0);
	CU_ASSERT(all[0] != 0);
	free(all);
	test_stop();
}

static struct spl_call *calls[100];
static int started;

static int start_many(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	int rc = 0;

	CU_ASSERT_EQUAL(spl_target_set(&t, "b", 1), 0);
	for (started = 0; started < 100; started++) {
		rc = spl_request(turn, &t, spl_packet_key("echo", 4), SPL_CONTENT_RAW, "y", 1, 0,
				 SPL_WAIT_HOLD, &calls[started]);
		if (rc)
			break;
	}
	CU_ASSERT_EQUAL(rc, -ENOBUFS);
	CU_ASSERT_EQUAL(started, SPOT_TURN_CALLS);
	return SPL_DONE;
}

/* Calls that a turn did not wait for are cancelled with it: the remote work goes on (COMPL-8), its
 * late replies are counted, and every slot is free. A turn may start 64. */
static void test_not_waited(void)
{
	struct spot_lane *l;

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = start_many;
	fake_send(&f, "a", "probe", "");
	spot_run(l, 1, UINT64_MAX);
	CU_ASSERT_EQUAL(l->calls_held, 0);
	CU_ASSERT_EQUAL(l->calls_open, 0);
	CU_ASSERT_EQUAL(l->wheel.armed, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), SPOT_TURN_CALLS);
	test_stop();
}

static int rounds;
static char first_payload[8];
static const void *first_view;

static int again(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct test_state *s = state;
	struct spl_target t;

	CU_ASSERT_PTR_EQUAL(turn, s->turn);
	CU_ASSERT_EQUAL(r->kind, SPL_OK);
	if (rounds == 0) {
		first_view = r->payload;
		memcpy(first_payload, r->payload, 5);
	}
	/* The first result is still there at the end of the turn (S-MSG-4). */
	CU_ASSERT(memcmp(first_view, first_payload, 5) == 0);
	if (++rounds == 40)
		return spl_reply(turn, SPL_CONTENT_TEXT, "end", 3);
	CU_ASSERT_EQUAL(spl_target_set(&t, "b", 1), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, spl_packet_key("echo", 4), SPL_CONTENT_TEXT, "hello",
				    5, 0, SPL_WAIT_HOLD, &s->call),
			0);
	CU_ASSERT_EQUAL(spl_call_then(turn, s->call, again, NULL), 0);
	CU_ASSERT_EQUAL(spl_call_then(turn, s->call, again, NULL), -EINVAL);
	return SPL_SUSPENDED;
}

static int begin_chain(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;
	struct spl_target t;

	rounds = 0;
	s->turn = turn;
	CU_ASSERT_EQUAL(spl_target_set(&t, "b", 1), 0);
	CU_ASSERT_EQUAL(spl_request(turn, &t, spl_packet_key("echo", 4), SPL_CONTENT_TEXT, "first",
				    5, 0, SPL_WAIT_HOLD, &s->call),
			0);
	CU_ASSERT_EQUAL(spl_call_then(turn, s->call, NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_call_then(turn, NULL, again, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_call_then(turn, s->call, again, NULL), 0);
	return SPL_SUSPENDED;
}

/* A continuation waits again and again, all in one turn. */
static void test_chain(void)
{
	uint64_t r;

	test_start(2);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = begin_chain;
	r = fake_request(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "end"));
	test_stop();
}

static struct spl_target other;
static int argument_errors(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static char big[70000];
	struct spl_call *c;

	CU_ASSERT_EQUAL(spl_target_set(&other, "", 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set(&other, big, 256), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set(&other, "\xff", 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set(NULL, "b", 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set(&other, "b", 1), 0);
	CU_ASSERT_EQUAL(spl_send(turn, NULL, 1, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_send(turn, &other, 0, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_send(turn, &other, 1, SPL_CONTENT_COUNT, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_send(turn, &other, 1, 0, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(spl_send(turn, &other, 1, 0, big, 65537), -EMSGSIZE);
	CU_ASSERT_EQUAL(spl_request(turn, &other, 1, 0, big, 65537, 0, SPL_WAIT_HOLD, &c),
			-EMSGSIZE);
	CU_ASSERT_EQUAL(spl_request(turn, &other, 1, 0, NULL, 0, 0, SPL_WAIT_HOLD, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_request(turn, &other, 1, 0, NULL, 0, 0x80000000u, SPL_WAIT_HOLD, &c),
			-EINVAL);
	CU_ASSERT_EQUAL(spl_request(turn, &other, 1, 0, NULL, 0, 0, (enum spl_wait)2, &c), -EINVAL);
	CU_ASSERT_EQUAL(spl_reply(turn, SPL_CONTENT_COUNT, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_reply(turn, 0, NULL, 4), -EINVAL);
	CU_ASSERT_EQUAL(spl_reply(turn, 0, big, 65537), -EMSGSIZE);
	CU_ASSERT_EQUAL(spl_reply(turn, 0, big, 65536), 0);
	CU_ASSERT(spl_now_ns(turn) == f.now);
	CU_ASSERT_EQUAL(spl_spot_id(turn)->len, 1);
	CU_ASSERT_EQUAL(spl_spot_id(turn)->b[0], 'a');
	return SPL_DONE;
}

/* What the call site can check is refused there and makes no traffic (S-ERR-2). */
static void test_arguments(void)
{
	uint64_t accepted;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = argument_errors;
	fake_request(&f, "a", "probe", "");
	accepted = fake_counter(&f, SPL_C_MESSAGES_ACCEPTED);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_ACCEPTED), accepted);
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0);
	test_stop();
}

/* The ring or the link is full, or the requester is gone. */
static void test_send_errors(void)
{
	uint64_t lost, r;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage));
	f.send_error = -EAGAIN;
	r = fake_request(&f, "a", "echo", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	CU_ASSERT_PTR_NULL(fake_reply(&f, r)); /* nor could the error reply be sent */
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_REPLIES_LOST), 1);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_HANDLER), 1);
	f.send_error = -ENOTCONN;
	lost = fake_counter(&f, SPL_C_REPLIES_LOST);
	r = fake_request(&f, "a", "echo", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_REPLIES_LOST), lost + 1);
	f.send_error = 0;
	test_stop();
}

static int reply_badly(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static char big[65537];

	test_stage_rc = m->payload_bytes ? spl_reply(turn, 0, big, sizeof(big))
					 : spl_reply(turn, SPL_CONTENT_COUNT, "x", 1);
	return SPL_DONE;
}

/* A reply that cannot be put into a message was none: the handler failed, and there is one error.
 */
static void test_reply_that_cannot_be_encoded(void)
{
	test_start(1);
	test_stage_probe = reply_badly;
	fake_create(&f, "a", fake_stage(&test_stage));
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t r = fake_request(&f, "a", "probe", i ? "too long" : "");

		fake_run(&f);
		CU_ASSERT_EQUAL(test_stage_rc, i ? -EMSGSIZE : -EINVAL);
		CU_ASSERT(fake_replied(&f, r, SPL_E_INTERNAL_FAILURE, NULL));
		CU_ASSERT_EQUAL(f.outs, i + 1);
		CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_HANDLER), i + 1);
		CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_FINISHED), 0);
	}
	test_stop();
}

static void test_ring_full(void)
{
	char id[16], payload[32];
	uint64_t r;

	test_start(2);
	fake_create(&f, "a", fake_stage(&test_stage));
	for (int i = 0;; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		if (fake_lane_of(&f, id) != fake_lane_of(&f, "a"))
			break;
	}
	fake_create(&f, id, fake_stage(&test_stage));
	fake_lane_of(&f, id)->ring_max = 0;
	snprintf(payload, sizeof(payload), "%s log x", id);
	fake_send(&f, "a", "send", payload);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	r = fake_request(&f, "a", "hold", payload);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	CU_ASSERT(fake_replied(&f, r, SPL_E_INVALID_OPERATION, NULL));
	CU_ASSERT_EQUAL(fake_lane_of(&f, "a")->l->calls_held, 0);
	fake_lane_of(&f, id)->ring_max = FAKE_LIST;
	fake_send(&f, "a", "send", payload);
	fake_run(&f);
	CU_ASSERT_EQUAL(test_stage_rc, 0);
	test_stop();
}

/* A reply from elsewhere than where the request went, with a strange kind or content. */
static void test_odd_replies(void)
{
	struct spot_lane *l;
	uint64_t r;

	test_start(1);
	l = f.lane[0].l;
	fake_create(&f, "a", fake_stage(&test_stage));
	r = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	reply(f.missing_correlation, SPL_OK, SPOT_FROM_LINK, "forged");
	reply(f.missing_correlation, SPL_OK, SPOT_FROM_LANE, "forged");
	CU_ASSERT_EQUAL(l->calls_open, 1);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 2);
	reply(f.missing_correlation, 200, SPOT_FROM_AGENT, "x");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "ProtocolError x"));
	r = fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	struct spot_reply odd = {.correlation = f.missing_correlation,
				 .payload = "x",
				 .payload_bytes = 1,
				 .content = 77,
				 .kind = SPL_OK,
				 .origin = SPOT_FROM_AGENT};
	spot_reply_in(l, &odd);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "ProtocolError "));
	test_stop();
}

/* The call table at its end. */
static void test_no_calls(void)
{
	uint64_t r;

	test_begin(1);
	f.conf.calls = 16;
	fake_start(&f);
	for (int i = 0; i < 17; i++) {
		char id[16];

		snprintf(id, sizeof(id), "s%d", i);
		fake_create(&f, id, fake_stage(&test_stage));
		r = fake_request(&f, id, "hold", "nobody echo x");
		fake_run(&f);
	}
	CU_ASSERT_EQUAL(test_stage_rc, -ENOBUFS);
	CU_ASSERT(fake_replied(&f, r, SPL_E_INVALID_OPERATION, NULL));
	CU_ASSERT_EQUAL(f.lane[0].l->calls_open, 16);
	while (spot_calls_end(f.lane[0].l, SPL_E_SHUTTING_DOWN, 3) > 0)
		;
	fake_run(&f);
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_one_winner, "S-COMPL-1", "S-COMPL-6", "S-TURN-5", "S-COMPL-12"),
	T(test_instant_reply, "S-COMPL-3"),
	T(test_correlations, "S-COMPL-4", "S-COMPL-6"),
	T(test_unique, "S-COMPL-4"),
	T(test_not_waited, "S-COMPL-8", "S-CF-2"),
	T(test_chain, "S-TURN-1", "S-MSG-4", "S-CF-2"),
	T(test_arguments, "S-ERR-2", "S-ID-3", "S-MSG-6"),
	T(test_send_errors, "S-COMPL-7"),
	T(test_reply_that_cannot_be_encoded, "S-TURN-11"),
	T(test_ring_full, "S-DIR-4"),
	T(test_odd_replies, "S-COMPL-6", "S-CODEC-1"),
	T(test_no_calls),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_calls", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
