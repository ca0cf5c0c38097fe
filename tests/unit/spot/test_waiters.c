/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends that find no room: who waits, how long, and what he is told (S-LIM-5..9). */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"
#include "dataplane/spot/waiter.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define f test_rig

static int rc;
static struct spl_call *call;
static unsigned timeout_ms;
static bool waits_for_it = true;

static int told(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	char text[64];

	snprintf(text, sizeof(text), "told:%s", spl_error_name(r->kind));
	fake_log(text);
	CU_ASSERT_EQUAL(r->payload_bytes, 0);
	return SPL_DONE;
}

/* Payload "s ID TEXT" sends TEXT to ID as packet "log"; "w ID TEXT" waits until it is admitted. */
static int sends(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	char how, id[32], text[32], all[128];
	struct spl_target t;
	uint64_t packet = spl_packet_key("log", 3);

	snprintf(all, sizeof(all), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	CU_ASSERT_EQUAL_FATAL(sscanf(all, "%c %31s %31s", &how, id, text), 3);
	CU_ASSERT_EQUAL(spl_target_set(&t, id, strlen(id)), 0);
	if (how == 's') {
		rc = spl_send(turn, &t, packet, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
		return SPL_DONE;
	}
	rc = spl_send_wait(turn, &t, packet, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text),
			   timeout_ms, &call);
	if (rc || !waits_for_it)
		return SPL_DONE;
	CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
	return SPL_SUSPENDED;
}

static char sender[3][16]; /* Spots that send, in the lane of "a" or in another one */

/* "a" holds its gate and has a full queue of 4: itself and "1", "2", "3". */
static void start(bool same_lane)
{
	unsigned made = 0;

	test_start(same_lane ? 1 : 3);
	test_stage_probe = sends;
	timeout_ms = 0;
	waits_for_it = true;
	fake_create(&f, "a", fake_stage(&test_stage_small));
	for (int i = 0; made < T_COUNT(sender); i++) {
		snprintf(sender[made], sizeof(sender[made]), "s%d", i);
		if ((fake_lane_of(&f, sender[made]) == fake_lane_of(&f, "a")) != same_lane)
			continue;
		fake_create(&f, sender[made++], fake_stage(&test_stage));
	}
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	fake_send(&f, "a", "log", "1");
	fake_send(&f, "a", "log", "2");
	fake_send(&f, "a", "log", "3");
	CU_ASSERT_EQUAL_FATAL(test_spot("a")->app.count, 4);
	fake_log_clear();
}

/* `i` does what the text says; whatever can run runs. */
static void does(unsigned i, const char *what)
{
	rc = 77;
	fake_send(&f, sender[i], "probe", what);
	fake_run(&f);
	CU_ASSERT(fake_law(&f));
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

/* Nobody waits, and nothing is reserved. */
static void end(void)
{
	CU_ASSERT_EQUAL(waiters(), 0);
	if (test_spot("a")) {
		CU_ASSERT_EQUAL(test_spot("a")->app.count, 0);
		CU_ASSERT_EQUAL(test_spot("a")->app.bytes, 0);
		CU_ASSERT(spot_gate_is_plain(&test_spot("a")->gate));
	}
	test_stop();
}

/* T-LIM-3: there is room in time: each is delivered once, in the order in which they came, and
 * whoever waits is told when his is. */
static void room_in_time(bool same_lane)
{
	start(same_lane);
	does(0, "s a x");
	CU_ASSERT_EQUAL(rc, 0);
	does(1, "w a y");
	CU_ASSERT_EQUAL(rc, 0);
	does(2, "s a z");
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(waiters(), 3);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SENDS_WAITED), 3);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	/* Packet buffers are freed by moving what peers have sent; no other message lies in one. */
	CU_ASSERT_EQUAL(spot_copy_out(fake_lane_of(&f, "a")->l, 64), 3);
	fake_send(&f, "a", "log", "peer"); /* it comes later: no way past them */
	let_go();
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed 1 2 3 x y z told:OK");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1); /* the peer's (S-LIM-5) */
	end();
}

static void test_room_in_time(void)
{
	room_in_time(true);
	room_in_time(false);
}

/* T-LIM-3: no room in time: never delivered, also when there is room later; a new one is. */
static void no_room(bool same_lane)
{
	start(same_lane);
	does(0, "w a late");
	does(1, "s a lost");
	CU_ASSERT_EQUAL(waiters(), 2);
	fake_advance(&f, 199 * (uint64_t)FAKE_MS); /* conf.send_ms is 200 */
	CU_ASSERT_EQUAL(waiters(), 2);
	fake_advance(&f, 5 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(waiters(), 0);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 2);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded");
	does(1, "s a new");
	let_go();
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded resumed 1 2 3 new");
	end();
}

static void test_no_room(void)
{
	no_room(true);
	no_room(false);
}

/* A told send waits its own time. */
static void test_own_time(void)
{
	start(true);
	timeout_ms = 50;
	does(0, "w a late");
	fake_advance(&f, 49 * (uint64_t)FAKE_MS);
	CU_ASSERT_EQUAL(waiters(), 1);
	fake_advance(&f, 5 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded");
	timeout_ms = (unsigned)INT_MAX + 1;
	does(1, "w a never");
	CU_ASSERT_EQUAL(rc, -EINVAL);
	let_go();
	end();
}

/* T-LIM-4: as many wait as may: DeadlineExceeded at once, and nothing is kept. */
static void waiters_full(bool same_lane)
{
	uint32_t records;
	char text[16];

	start(same_lane);
	for (unsigned i = 0; i < f.conf.waiters; i++) {
		snprintf(text, sizeof(text), "s a w%u", i);
		does(2, text);
	}
	CU_ASSERT_EQUAL(waiters(), f.conf.waiters);
	records = fake_lane_of(&f, "a")->l->rec_free;
	does(0, "s a more");
	CU_ASSERT_EQUAL(rc, same_lane ? -ETIMEDOUT : 0); /* that lane does not know */
	does(1, "w a more");
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded");
	CU_ASSERT_EQUAL(waiters(), f.conf.waiters);
	CU_ASSERT_EQUAL(fake_lane_of(&f, "a")->l->rec_free, records);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_WAITERS_FULL), same_lane ? 1 : 2);
	let_go();
	CU_ASSERT_STRING_EQUAL(fake_logged(),
			       "told:DeadlineExceeded resumed 1 2 3 w0 w1 w2 w3 w4 w5 w6 w7");
	end();
}

static void test_waiters_full(void)
{
	waiters_full(true);
	waiters_full(false);
}

/* T-LIM-5: the target goes: Unavailable, and nobody else gets it. */
static void target_goes(bool same_lane)
{
	uint64_t generation;

	start(same_lane);
	does(0, "w a x");
	does(1, "s a y");
	does(2, "s s0 z"); /* something else for somebody else */
	generation = spot_cold_of(test_spot("a"))->object_generation;
	fake_close(&f, "a", generation, SPL_CLOSING_EXPLICIT, f.now + 100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_EQUAL(waiters(), 0); /* at once: its turn still holds */
	let_go();
	CU_ASSERT_PTR_NULL(test_spot("a"));
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), "told:Unavailable"));
	CU_ASSERT_PTR_NULL(strstr(fake_logged(), "x"));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NOT_READY), 2);
	end();
}

static void test_target_goes(void)
{
	target_goes(true);
	target_goes(false);
}

/* The node takes nothing any more, or has lost its lease, when there is room. */
static void test_sealed_or_fenced(void)
{
	start(true);
	does(0, "w a x");
	does(1, "s a y");
	spot_lane_seal(f.lane[0].l);
	let_go();
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed 1 2 3 told:ShuttingDown");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_SHUTDOWN), 2);
	end();
	start(true);
	does(0, "w a x");
	f.lease = f.now;
	let_go();
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), "told:Unavailable"));
	f.lease = UINT64_MAX;
	end();
}

/* A cancelled send is not admitted later; one in another lane cannot be cancelled any more. */
static int cancels(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	if (m->payload_bytes > 1)
		return sends(turn, state, m);
	rc = spl_call_cancel(turn, call);
	return SPL_DONE;
}

static void test_cancelled(void)
{
	start(true);
	waits_for_it = false; /* its handler ends, and the call with it */
	does(0, "w a x");
	CU_ASSERT_EQUAL(waiters(), 1);
	let_go();
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed 1 2 3");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 1);
	end();
	start(false);
	test_stage_probe = cancels;
	waits_for_it = false;
	does(0, "w a x");
	does(0, "c");
	CU_ASSERT_EQUAL(rc, 0);
	let_go();
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), "x"));
	end();
}

/* To itself: at the end of its own queue, also when that is full; but not to be waited for. */
static int floods_itself(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;
	uint64_t packet = spl_packet_key("log", 3);
	char text[2] = "a";

	CU_ASSERT_EQUAL(spl_target_set(&t, "b", 1), 0);
	for (int i = 0; i < 3; i++, text[0]++)
		CU_ASSERT_EQUAL(spl_send(turn, &t, packet, SPL_CONTENT_TEXT, text, 1), 0);
	for (int i = 0; i < 3; i++, text[0]++)
		CU_ASSERT_EQUAL(spl_send(turn, &t, packet, SPL_CONTENT_TEXT, text, 1), 0);
	return SPL_DONE;
}

static int tells_itself(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "b", 1), 0);
	CU_ASSERT_EQUAL(spl_send_wait(turn, &t, spl_packet_key("log", 3), SPL_CONTENT_TEXT, "own",
				      3, 0, &call),
			0);
	CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
	return SPL_SUSPENDED;
}

static void test_itself(void)
{
	test_start(1);
	fake_create(&f, "b", fake_stage(&test_stage_small));
	test_stage_probe = floods_itself;
	fake_log_clear();
	fake_send(&f, "b", "probe", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "a b c d e f");
	test_stage_probe = tells_itself;
	fake_send(&f, "b", "probe", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "a b c d e f told:OK own");
	/* Full, and waited for: no room can come (AMB-40). */
	fake_log_clear();
	fake_send(&f, "b", "probe", "");
	for (int i = 0; i < 3; i++)
		fake_send(&f, "b", "log", "x");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	fake_advance(&f, 210 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded x x x");
	test_stop();
}

/* A small one does not overtake a large one, although it would fit; nor does anybody else. */
static int sends_sizes(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static char large[1800] = "large";
	uint64_t packet = spl_packet_key("log", 3);
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	CU_ASSERT_EQUAL(spl_send(turn, &t, packet, SPL_CONTENT_TEXT, large, sizeof(large)), 0);
	CU_ASSERT_EQUAL(spl_send(turn, &t, packet, SPL_CONTENT_TEXT, "small", 5), 0);
	return SPL_DONE;
}

static void test_small_behind_large(void)
{
	uint64_t request;

	test_start(1);
	fake_create(&f, "a", fake_stage(&test_stage_small)); /* 4, of 2000 bytes */
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = sends_sizes;
	fake_request(&f, "a", "hold", "nobody echo x");
	fake_run(&f);
	fake_log_clear();
	fake_send(&f, "b", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, 2);
	request = fake_request(&f, "a", "log", "peer");
	CU_ASSERT(fake_replied(&f, request, SPL_E_UNAVAILABLE, NULL));
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed large small");
	CU_ASSERT_EQUAL(test_spot("a")->app.bytes, 0);
	CU_ASSERT_EQUAL(spot_cold_of(test_spot("a"))->wait_aside, 0);
	test_stop();
}

/* More have given up than one step looks at, and one has not: it is admitted all the same. */
static int gives_up(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	for (unsigned i = 0; i < WAITER_STEP; i++)
		CU_ASSERT_EQUAL(spl_send_wait(turn, &t, spl_packet_key("log", 3), SPL_CONTENT_TEXT,
					      "gone", 4, 0, &call),
				0);
	return SPL_DONE;
}

static void test_many_gave_up(void)
{
	test_begin(1);
	f.conf.waiters = 2 * WAITER_STEP;
	fake_start(&f);
	fake_create(&f, "a", fake_stage(&test_stage_small));
	fake_create(&f, "b", fake_stage(&test_stage));
	test_stage_probe = gives_up;
	for (int i = 0; i < 4; i++) {
		fake_request(&f, "a", "yield", "nobody echo x");
		fake_run(&f);
	}
	fake_send(&f, "b", "probe", "");
	fake_run(&f);
	fake_send(&f, "b", "send", "a log kept");
	fake_run(&f);
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, WAITER_STEP + 1);
	fake_log_clear();
	fake_missing_says(&f, f.missing_correlation, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed kept");
	CU_ASSERT_EQUAL(f.lane[0].l->waiters, 0);
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	test_stop();
}

/* It has lain in the ring past its time: its sender is told what it was told already. */
static void test_late_from_another_lane(void)
{
	start(false);
	let_go();
	fake_log_clear();
	timeout_ms = 5;
	rc = 77;
	fake_send(&f, sender[0], "probe", "w a late");
	spot_run(fake_lane_of(&f, sender[0])->l, 10, UINT64_MAX);
	CU_ASSERT_EQUAL(rc, 0);
	f.now += 6 * (uint64_t)FAKE_MS;
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:DeadlineExceeded");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 1);
	end();
}

/* Nobody is there: the call's result, as control says. */
static void test_nobody(void)
{
	start(true);
	does(0, "w nobody x");
	CU_ASSERT_EQUAL(f.missing, 2); /* "a" has asked for one, too */
	fake_missing_says(&f, f.missing_correlation, SPL_E_NOT_FOUND, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:NotFound");
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS); /* "a" waits to its deadline */
	fake_run(&f);
	end();
}

/* What is larger than the whole queue would never find room. */
static int sends_large(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static const char large[1990];
	struct spl_target t;

	CU_ASSERT_EQUAL(spl_target_set(&t, "a", 1), 0);
	rc = spl_send(turn, &t, spl_packet_key("log", 3), SPL_CONTENT_RAW, large, sizeof(large));
	CU_ASSERT_EQUAL(spl_send_wait(turn, &t, spl_packet_key("log", 3), SPL_CONTENT_RAW, large,
				      sizeof(large), 0, &call),
			0);
	CU_ASSERT_EQUAL(spl_call_then(turn, call, told, NULL), 0);
	return SPL_SUSPENDED;
}

static void test_never_fits(void)
{
	start(true);
	test_stage_probe = sends_large;
	does(0, "");
	CU_ASSERT_EQUAL(rc, -EAGAIN);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told:CapacityExceeded");
	CU_ASSERT_EQUAL(waiters(), 0);
	let_go();
	end();
}

/* A Spot whose queue is full of turns that have yielded: room comes with the end of one of them. */
static void test_behind_yielded(void)
{
	uint64_t first = 0;

	test_start(1);
	test_stage_probe = sends;
	waits_for_it = true;
	timeout_ms = 0;
	fake_create(&f, "a", fake_stage(&test_stage_small));
	fake_create(&f, "b", fake_stage(&test_stage));
	for (int i = 0; i < 4; i++) {
		fake_request(&f, "a", "yield", "nobody echo x");
		fake_run(&f);
		if (i == 0)
			first = f.missing_correlation;
	}
	CU_ASSERT_EQUAL(test_spot("a")->app.count, 4);
	fake_log_clear();
	fake_send(&f, "b", "probe", "w a x");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	fake_missing_says(&f, first, SPL_OK, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "resumed x told:OK");
	fake_advance(&f, 1100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT(spot_gate_is_plain(&test_spot("a")->gate));
	test_stop();
}

static const struct t_case cases[] = {
	T(test_room_in_time, "S-LIM-5", "S-LIM-6", "S-DIR-4", "S-LIM-7"),
	T(test_no_room, "S-LIM-6", "S-LIM-8", "S-DIR-8"),
	T(test_own_time, "S-LIM-8"),
	T(test_waiters_full, "S-LIM-5", "S-LIM-9"),
	T(test_target_goes, "S-LIM-7", "S-LIM-6"),
	T(test_sealed_or_fenced, "S-LIM-6"),
	T(test_cancelled, "S-LIM-6", "S-DIR-5"),
	T(test_itself, "S-REENT-2", "S-DIR-5"),
	T(test_nobody, "S-DIR-4"),
	T(test_small_behind_large, "S-LIM-5", "S-TURN-2"),
	T(test_many_gave_up, "S-LIM-6"),
	T(test_late_from_another_lane, "S-LIM-6"),
	T(test_never_fits, "S-LIM-5"),
	T(test_behind_yielded, "S-LIM-3", "S-LIM-6"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_waiters", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
