/* SPDX-License-Identifier: BSD-3-Clause */
/* Instance Spots in the room: messages that start them, wait for them, and what ends the wait. */
#include "tests/unit/spot/cartstage.h"

#include "common/ids.h"

#include <errno.h>

#define f test_rig

/* T-ACT-1, T-ACT-4: the first message is kept and handled first, the rest in order of acceptance,
 * after on_initialize, and the question was asked once. */
static void test_first_comes_first(void)
{
	uint64_t r[3];

	cart_begin(1);
	fake_start(&f);
	r[0] = fake_instance(&f, "c1", "cart", true, "log", "first");
	fake_instance(&f, "c1", "cart", false, "log", "second");
	r[1] = fake_instance(&f, "c1", "cart", true, "log", "third");
	CU_ASSERT_EQUAL(f.activates, 1);
	CU_ASSERT_EQUAL(f.activate_id.len, 2);
	CU_ASSERT_EQUAL(memcmp(f.activate_type.b, "cart", 4), 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_QUEUED), 3);
	CU_ASSERT(fake_law(&f));
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	CU_ASSERT(cart_start() != 0);
	r[2] = fake_instance(&f, "c1", "cart", true, "log", "fourth");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init first second third fourth");
	CU_ASSERT(fake_replied(&f, r[0], SPL_OK, "first"));
	CU_ASSERT(fake_replied(&f, r[1], SPL_OK, "third"));
	CU_ASSERT(fake_replied(&f, r[2], SPL_OK, "fourth"));
	CU_ASSERT_EQUAL(f.activates, 1);
	test_stop();
}

/* Before it is published nothing runs, be it prepared or in on_initialize; plain messages are not
 * its business. */
static void test_barrier(void)
{
	struct spl_key key = fake_key("c1");
	uint64_t generation, r, plain;

	cart_begin(1);
	fake_start(&f);
	cart_initialize = SPL_SUSPENDED;
	r = fake_instance(&f, "c1", "cart", true, "log", "one");
	generation = fake_prepare(&f, "c1", fake_stage(&cart_stage), NULL, 0);
	fake_run(&f);
	fake_instance(&f, "c1", "cart", false, "log", "two");
	plain = fake_request(&f, "c1", "log", "plain");
	CU_ASSERT(fake_replied(&f, plain, SPL_E_UNAVAILABLE, ""));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init");
	fake_missing_says(&f, f.missing_correlation, SPL_OK, "go");
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_ACCEPTED);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init");
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	fake_send(&f, "c1", "log", "three"); /* what comes now is behind them */
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init one two three");
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "one"));
	CU_ASSERT_EQUAL(f.activates, 1);
	test_stop();
}

/* T-ACT-9: a start that fails ends each request once, counts each send by name, runs no handler,
 * and the next message asks anew. */
static void test_failure(void)
{
	uint64_t r[2], again;

	cart_begin(1);
	fake_start(&f);
	cart_initialize = SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	r[0] = fake_instance(&f, "c1", "cart", true, "log", "a");
	fake_instance(&f, "c1", "cart", false, "log", "b");
	r[1] = fake_instance(&f, "c1", "cart", true, "log", "c");
	CU_ASSERT_EQUAL(cart_start(), 0);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r[0], SPL_E_CAPACITY_EXCEEDED, ""));
	CU_ASSERT(fake_replied(&f, r[1], SPL_E_CAPACITY_EXCEEDED, ""));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_INSTANCE_SPOT), 3);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init");
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 0);
	CU_ASSERT(fake_law(&f));
	cart_initialize = SPL_DONE;
	fake_activated(&f, SPL_E_UNAVAILABLE); /* an answer that comes twice finds nobody */
	again = fake_instance(&f, "c1", "cart", true, "log", "d");
	CU_ASSERT_EQUAL(f.activates, 2);
	CU_ASSERT(cart_start() != 0);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, again, SPL_OK, "d"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init init d");
	test_stop();
}

/* How many wait, and their bytes, are totals of the type, however the wait ends. */
static void test_totals(void)
{
	const struct spot_stage *cart = fake_stage(&cart_stage);
	uint64_t *c = f.lane[0].stage_stats[cart->index].counter;

	cart_begin(1);
	f.infos[cart->index] = (struct spl_stage_info){.kind = SPL_KIND_INSTANCE, .type = "cart"};
	fake_start(&f);
	fake_instance(&f, "c1", "cart", true, "log", "four");
	fake_instance(&f, "c1", "cart", false, "log", "seven77");
	fake_instance(&f, "c2", "cart", false, "log", "x");
	fake_instance(&f, "c3", "nowhere", false, "log", "unknown"); /* no type of this node */
	CU_ASSERT_EQUAL(c[SPL_S_STARTING], 3);
	CU_ASSERT_EQUAL(c[SPL_S_STARTING_BYTES], 12);
	fake_activated(&f, SPL_E_NOT_FOUND); /* c3 */
	CU_ASSERT_EQUAL(c[SPL_S_STARTING], 3);
	fake_instance(&f, "c1", "cart", false, "log", "8");
	f.activate_key = fake_key("c2");
	f.activate_serial--;
	fake_activated(&f, SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(c[SPL_S_STARTING], 3);
	CU_ASSERT_EQUAL(c[SPL_S_STARTING_BYTES], 12);
	f.activate_key = fake_key("c1");
	spl_name_set(&f.activate_id, "c1", 2);
	spl_name_set(&f.activate_type, "cart", 4);
	CU_ASSERT(cart_start() != 0);
	CU_ASSERT_EQUAL(c[SPL_S_STARTING], 0);
	CU_ASSERT_EQUAL(c[SPL_S_STARTING_BYTES], 0);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init four seven77 8");
	test_stop();
}

/* A late answer to an earlier question is not one to those who wait now. */
static void test_late_answer(void)
{
	uint64_t generation, serial, r;
	struct spl_key key = fake_key("c1");

	cart_begin(1);
	fake_start(&f);
	fake_instance(&f, "c1", "cart", false, "log", "a");
	serial = f.activate_serial;
	generation = cart_start();
	fake_run(&f);
	cart_close("c1", generation, SPL_CLOSING_EXPLICIT);
	r = fake_instance(&f, "c1", "cart", true, "log", "b");
	CU_ASSERT_EQUAL(f.activates, 2);
	spot_activated(f.lane[0].l, &key, serial, SPL_E_UNAVAILABLE, f.now);
	fake_run(&f);
	CU_ASSERT_PTR_NULL(fake_reply(&f, r));
	CU_ASSERT(cart_start() > generation);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "b"));
	test_stop();
}

/* T-ACT-6: a Ready Spot of that type gets it, one of another type or kind refuses it; a User Spot
 * that comes meanwhile is not given what waits for an Instance Spot. */
static void test_types(void)
{
	struct spl_key key = fake_key("c2");
	uint64_t r, wrong, user, generation;

	cart_begin(1);
	fake_start(&f);
	fake_instance(&f, "c1", "cart", false, "log", "a");
	wrong = fake_instance(&f, "c1", "basket", true, "log", "x");
	fake_activated(&f, SPL_E_TYPE_MISMATCH); /* of the second question */
	CU_ASSERT(fake_replied(&f, wrong, SPL_E_TYPE_MISMATCH, ""));
	cart_start();
	r = fake_instance(&f, "c1", "cart", true, "log", "b");
	wrong = fake_instance(&f, "c1", "basket", true, "log", "x");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "b"));
	CU_ASSERT(fake_replied(&f, wrong, SPL_E_TYPE_MISMATCH, ""));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_TYPE_MISMATCH), 1);

	r = fake_instance(&f, "c2", "user", true, "log", "y");
	generation = fake_prepare(&f, "c2", fake_stage(&cart_user), NULL, 0);
	fake_run(&f);
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	user = fake_instance(&f, "c2", "user", true, "log", "z");
	CU_ASSERT(fake_replied(&f, user, SPL_E_TYPE_MISMATCH, ""));
	fake_run(&f);
	CU_ASSERT_PTR_NULL(fake_reply(&f, r));
	fake_activated(&f, SPL_E_TYPE_MISMATCH);
	CU_ASSERT(fake_replied(&f, r, SPL_E_TYPE_MISMATCH, ""));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init a b init");
	test_stop();
}

/* Two types for one id before control has answered: neither is right because it came first. Each
 * asks, and gets what the authority says of its own. */
static void test_two_types(void)
{
	uint64_t first, second, more;
	struct spl_key key;

	cart_begin(1);
	fake_start(&f);
	first = fake_instance(&f, "c1", "basket", true, "log", "x");
	key = f.activate_key;
	CU_ASSERT_EQUAL(f.activates, 1);
	second = fake_instance(&f, "c1", "cart", true, "log", "a");
	CU_ASSERT_EQUAL(f.activates, 2);
	CU_ASSERT(spl_key_equal(&f.activate_key, &key));
	CU_ASSERT_EQUAL(f.activate_type.len, 4);
	more = fake_instance(&f, "c1", "basket", true, "log", "y");
	CU_ASSERT_EQUAL(f.activates, 2); /* behind the first question */
	CU_ASSERT_PTR_NULL(fake_reply(&f, first));
	CU_ASSERT_PTR_NULL(fake_reply(&f, second));
	cart_start(); /* the authority has chosen the second */
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, second, SPL_OK, "a"));
	CU_ASSERT_PTR_NULL(fake_reply(&f, first));
	spot_activated(f.lane[0].l, &key, f.activate_serial - 1, SPL_E_TYPE_MISMATCH, f.now);
	CU_ASSERT(fake_replied(&f, first, SPL_E_TYPE_MISMATCH, ""));
	CU_ASSERT(fake_replied(&f, more, SPL_E_TYPE_MISMATCH, ""));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init a");
	CU_ASSERT_EQUAL(f.lane[0].l->waits.used, 0);
	test_stop();
}

/* T-ACT-10: each keeps its own deadline: what has passed when the Spot is there does not run. */
static void test_deadlines(void)
{
	struct spot_rec *r;
	uint64_t brief, patient;

	cart_begin(1);
	fake_start(&f);
	patient = fake_instance(&f, "c1", "cart", true, "log", "patient");
	r = fake_record(&f, "c1", true, "log", "brief", 5);
	brief = r->msg.correlation;
	r->deadline = f.now + 10 * FAKE_MS;
	r->kind = SPOT_KIND_INSTANCE_REQUEST;
	r->msg.packet = "\2c1\4cart";
	fake_admit(&f, "c1", r);
	fake_advance(&f, 50 * FAKE_MS);
	fake_instance(&f, "c1", "cart", false, "log", "send");
	cart_start();
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, brief, SPL_E_DEADLINE_EXCEEDED, ""));
	CU_ASSERT(fake_replied(&f, patient, SPL_OK, "patient"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init patient send");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_EXPIRED), 1);
	test_stop();
}

/* What may wait is bounded: messages of one id, their bytes, ids of the lane. */
static void test_bounds(void)
{
	static char big[60000];
	char id[16], intent[16];
	struct spot_rec *r;
	uint64_t over;

	cart_begin(1);
	f.conf.records = 4096;
	f.conf.queue_count = 3;
	fake_start(&f);
	for (int i = 0; i < 3; i++)
		fake_instance(&f, "c1", "cart", false, "log", "m");
	over = fake_instance(&f, "c1", "cart", true, "log", "over");
	CU_ASSERT(fake_replied(&f, over, SPL_E_UNAVAILABLE, "")); /* S-ERR-3: from a peer */
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 1);
	for (int i = 0; i < 2; i++) {
		r = fake_record(&f, "c2", false, "log", big, sizeof(big));
		r->kind = SPOT_KIND_INSTANCE_SEND;
		r->msg.packet = "\2c2\4cart";
		fake_admit(&f, "c2", r);
	}
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_QUEUE_FULL), 2);
	for (unsigned i = 2; i < SPL_ACTIVATIONS_MAX; i++) {
		snprintf(id, sizeof(id), "n%u", i);
		fake_instance(&f, id, "cart", false, "log", "m");
	}
	CU_ASSERT_EQUAL(f.activates, SPL_ACTIVATIONS_MAX);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_RECORD), 0);
	over = fake_instance(&f, "more", "cart", true, "log", "m");
	CU_ASSERT(fake_replied(&f, over, SPL_E_UNAVAILABLE, ""));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_RECORD), 1);
	for (unsigned i = 0; i < SPL_ACTIVATIONS_MAX; i++) { /* serials go up from 1 */
		struct spl_key key;

		snprintf(intent, sizeof(intent), i < 2 ? "c%u" : "n%u", i < 2 ? i + 1 : i);
		key = fake_key(intent);
		spot_activated(f.lane[0].l, &key, i + 1, SPL_E_NOT_FOUND, f.now);
	}
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_QUEUED), 0);
	fake_instance(&f, "more", "cart", false, "log", "m"); /* there is room again */
	fake_activated(&f, SPL_E_NOT_FOUND);
	test_stop();
}

/* When the agent cannot be asked, and when nothing is admitted at all. */
static void test_refused(void)
{
	uint64_t r;

	cart_begin(1);
	fake_start(&f);
	f.activate_error = -EAGAIN;
	r = fake_instance(&f, "c1", "cart", true, "log", "a");
	CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, ""));
	f.activate_error = 0;
	f.lease = 0;
	fake_pass(&f, 1);
	r = fake_instance(&f, "c1", "cart", true, "log", "a");
	CU_ASSERT(fake_replied(&f, r, SPL_E_UNAVAILABLE, ""));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_FENCED), 1);
	f.lease = UINT64_MAX;
	fake_pass(&f, 1);
	r = fake_instance(&f, "c1", "cart", true, "log", "waits");
	spot_lane_seal(f.lane[0].l); /* what was accepted before goes on (A-DRAIN-11) */
	CU_ASSERT(fake_replied(&f, fake_instance(&f, "c1", "cart", true, "log", "b"),
			       SPL_E_SHUTTING_DOWN, ""));
	CU_ASSERT(fake_replied(&f, fake_instance(&f, "c3", "cart", true, "log", "b"),
			       SPL_E_SHUTTING_DOWN, ""));
	CU_ASSERT_EQUAL(f.activates, 1);
	fake_activated(&f, SPL_E_SHUTTING_DOWN);
	CU_ASSERT(fake_replied(&f, r, SPL_E_SHUTTING_DOWN, ""));
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_SPOTS), 0);
	test_stop();
}

/* Its start was under way at the seal: the message that waits is accepted work (A-DRAIN-11). */
static void test_started_before_the_seal(void)
{
	struct spl_key key = fake_key("c1");
	uint64_t generation, r;

	cart_begin(1);
	fake_start(&f);
	r = fake_instance(&f, "c1", "cart", true, "log", "a");
	generation = fake_prepare(&f, "c1", fake_stage(&cart_stage), NULL, 0);
	fake_run(&f);
	spot_lane_seal(f.lane[0].l);
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	fake_activated(&f, SPL_OK);
	fake_close(&f, "c1", generation, SPL_CLOSING_HOST_SHUTDOWN, f.now + 1000 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "a"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init a closing 1");
	test_stop();
}

/* An intent for another id than the target key's is no message for anybody (S-ACT-4). */
static void test_contradiction(void)
{
	struct spot_rec *r;
	uint64_t c;

	cart_begin(1);
	fake_start(&f);
	r = fake_record(&f, "c1", true, "log", "x", 1);
	c = r->msg.correlation;
	r->kind = SPOT_KIND_INSTANCE_REQUEST;
	r->msg.packet = "\2c2\4cart";
	fake_admit(&f, "c1", r);
	CU_ASSERT(fake_replied(&f, c, SPL_E_PROTOCOL_ERROR, ""));
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_MALFORMED), 1);
	CU_ASSERT_EQUAL(f.activates, 0);
	test_stop();
}

/* S-CLOSE-4: what comes while it closes is handled once, by the next incarnation; plain messages
 * are not. */
static void test_race_with_close(void)
{
	uint64_t first, before, during, plain;

	cart_begin(1);
	fake_start(&f);
	fake_instance(&f, "c1", "cart", false, "log", "start");
	first = cart_start();
	fake_run(&f);
	before = fake_instance(&f, "c1", "cart", true, "log", "before");
	fake_close(&f, "c1", first, SPL_CLOSING_EXPLICIT, 0);
	during = fake_instance(&f, "c1", "cart", true, "log", "during");
	plain = fake_request(&f, "c1", "log", "plain");
	CU_ASSERT_EQUAL(f.activates, 2);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, before, SPL_OK, "before"));
	CU_ASSERT(fake_replied(&f, plain, SPL_E_UNAVAILABLE, ""));
	CU_ASSERT_PTR_NULL(fake_reply(&f, during));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init start before closing 0");
	fake_log_clear();
	CU_ASSERT(cart_start() > first);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, during, SPL_OK, "during"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "init during");
	test_stop();
}

/* A handler with intent: its own lane, and another one's; a send is done when it is taken. */
static void test_from_a_handler(void)
{
	static const char *const ids[] = {"c1", "c2", "c3", "c4", "c5", "c6"};
	unsigned lanes_seen = 0;

	cart_begin(2);
	fake_start(&f);
	fake_create(&f, "from", fake_stage(&cart_user));
	for (unsigned i = 0; i < T_COUNT(ids); i++) {
		char text[32];
		uint64_t r;

		lanes_seen |= 1u << fake_lane_of(&f, ids[i])->index;
		snprintf(text, sizeof(text), "%s log sent", ids[i]);
		fake_log_clear();
		fake_send(&f, "from", "other", text);
		fake_run(&f);
		CU_ASSERT_EQUAL(cart_rc, 0);
		CU_ASSERT_EQUAL(f.activates, 2 * i + 1);
		fake_activated(&f, SPL_E_NOT_FOUND); /* it stays sent (S-ACT-5) */
		CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_INSTANCE_SPOT), i + 1);
		snprintf(text, sizeof(text), "%s log asked", ids[i]);
		r = fake_request(&f, "from", "ask", text);
		fake_run(&f);
		CU_ASSERT_EQUAL(f.activates, 2 * i + 2);
		CU_ASSERT(cart_start() != 0);
		fake_run(&f);
		CU_ASSERT(fake_replied(&f, r, SPL_OK, "OK asked"));
		CU_ASSERT_STRING_EQUAL(fake_logged(), "init asked");
	}
	CU_ASSERT_EQUAL(lanes_seen, 3);
	test_stop();
}

/* The errors that a handler gets at once, and those of a request as its result. */
static void test_errors_of_a_handler(void)
{
	uint64_t r;

	cart_begin(1);
	f.conf.queue_count = 1;
	fake_start(&f);
	fake_create(&f, "from", fake_stage(&cart_user));
	fake_create(&f, "user", fake_stage(&cart_user));
	fake_send(&f, "from", "other", "user log x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cart_rc, -EPERM);
	r = fake_request(&f, "from", "ask", "user log x");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "TypeMismatch "));
	fake_send(&f, "from", "other", "c1 log x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cart_rc, 0);
	fake_send(&f, "from", "other", "c1 log x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cart_rc, -EAGAIN);
	f.activate_error = -EAGAIN;
	fake_send(&f, "from", "other", "c2 log x");
	fake_run(&f);
	CU_ASSERT_EQUAL(cart_rc, -ENOBUFS);
	f.activate_error = 0;
	fake_activated(&f, SPL_E_NOT_FOUND);
	r = fake_request(&f, "from", "ask", "c3 log x"); /* nobody answers: its own deadline */
	fake_run(&f);
	fake_advance(&f, 600 * FAKE_MS);
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "DeadlineExceeded "));
	fake_activated(&f, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 1); /* its late end finds nobody */
	test_stop();
}

/* Who waits for his send hears that it was taken as soon as it waits for its Spot, and the start
 * may take longer than he would have waited (S-ACT-5). */
static void test_told(void)
{
	static const char *const ids[] = {"c1", "c2", "c3", "c4", "c5", "c6"};

	cart_begin(2);
	fake_start(&f);
	fake_create(&f, "from", fake_stage(&cart_user));
	fake_create(&f, "user", fake_stage(&cart_user));
	for (unsigned i = 0; i < T_COUNT(ids); i++) {
		char text[32];

		snprintf(text, sizeof(text), "%s log sent", ids[i]);
		fake_log_clear();
		fake_send(&f, "from", "tell", text);
		fake_run(&f);
		CU_ASSERT_STRING_EQUAL(fake_logged(), "told OK");
		fake_advance(&f, 3000 * (uint64_t)FAKE_MS);
		CU_ASSERT(cart_start() != 0);
		fake_run(&f);
		CU_ASSERT_STRING_EQUAL(fake_logged(), "told OK init sent");
		fake_send(&f, "from", "tell", text); /* and to a Ready one */
		fake_run(&f);
		CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged(), "init sent"));
		CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged() + 18, "told OK"));
		CU_ASSERT_PTR_NOT_NULL(strstr(fake_logged() + 18, "sent"));
	}
	fake_log_clear();
	fake_send(&f, "from", "tell", "user log x");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "told TypeMismatch");
	test_stop();
}

static void test_target(void)
{
	struct spl_target t;
	char long_type[300];

	memset(&t, 0xff, sizeof(t));
	memset(long_type, 'x', sizeof(long_type));
	long_type[256] = 0;
	CU_ASSERT_EQUAL(spl_target_set(&t, "c1", 2), 0);
	CU_ASSERT_PTR_NULL(t.instance);
	CU_ASSERT_EQUAL(spl_target_set_instance(&t, ""), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set_instance(&t, long_type), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set_instance(&t, "\xff"), -EINVAL);
	CU_ASSERT_EQUAL(spl_target_set_instance(NULL, "cart"), -EINVAL);
	CU_ASSERT_PTR_NULL(t.instance);
	CU_ASSERT_EQUAL(spl_target_set_instance(&t, long_type + 1), 0);
	CU_ASSERT_EQUAL(spl_target_set_instance(&t, NULL), 0);
	CU_ASSERT_PTR_NULL(t.instance);
}

/* Waiting messages are moved out of scarce buffers as queued ones are. */
static void test_copy_out(void)
{
	uint64_t r;

	cart_begin(1);
	fake_start(&f);
	r = fake_instance(&f, "c1", "cart", true, "log", "kept");
	CU_ASSERT_EQUAL(f.buffers, 1);
	CU_ASSERT_EQUAL(spot_copy_out(f.lane[0].l, 8), 1);
	CU_ASSERT_EQUAL(f.buffers, 0);
	cart_start();
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "kept"));
	test_stop();
}

/* The stage closes itself where it may not: an error at once, and it goes on as if nothing were. */
static void test_close_self_inside_its_start(void)
{
	uint64_t r;

	cart_begin(1);
	fake_start(&f);
	cart_leaves_at_once = true;
	r = fake_instance(&f, "c1", "cart", true, "log", "x");
	CU_ASSERT(cart_start() != 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(cart_rc, -EINVAL);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "x"));
	CU_ASSERT_EQUAL(f.close_wanted, 0);
	cart_leaves_at_once = false;
	test_stop();
}

static const struct t_case cases[] = {
	T(test_close_self_inside_its_start, "S-CLOSE-6", "S-ERR-2"),
	T(test_first_comes_first, "S-ACT-1", "S-ACT-7", "A-LOC-30", "S-ACT-13"),
	T(test_barrier, "S-ACT-7", "S-ACT-13"),
	T(test_failure, "S-ACT-11", "A-LOC-35", "S-ACT-5"),
	T(test_totals, "S-MET-4"),
	T(test_late_answer, "S-ACT-11", "S-CLOSE-7"),
	T(test_types, "S-ACT-1"),
	T(test_two_types, "S-ACT-1", "S-ACT-7"),
	T(test_deadlines, "S-ACT-11", "A-LOC-36"),
	T(test_bounds, "S-LIM-5", "S-ERR-3"),
	T(test_refused, "S-DRAIN-2", "S-DRAIN-5"),
	T(test_started_before_the_seal, "S-DRAIN-5", "S-DRAIN-2"),
	T(test_contradiction, "S-ADM-4"),
	T(test_race_with_close, "S-CLOSE-4", "S-CLOSE-7"),
	T(test_from_a_handler, "S-ACT-5", "A-LOC-36"),
	T(test_errors_of_a_handler, "S-ACT-1", "S-ACT-11"),
	T(test_told, "S-ACT-5", "A-LOC-36"),
	T(test_target, "S-ERR-2"),
	T(test_copy_out, "S-MSG-4"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_instance", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
