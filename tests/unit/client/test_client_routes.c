/* SPDX-License-Identifier: BSD-3-Clause */
/* Where messages go: the route cache and its limits, and what a route's end means for calls. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/client/fake.h"

static struct fake *f;
static struct spl_client *c;
static struct spl_client_target room;
static const uint64_t number = 1;

static void begin(void)
{
	f = fake_new();
	room = fake_target("room");
	c = fake_client(f, NULL);
}

static void end(void)
{
	CU_ASSERT_EQUAL(spl_client_close(c, 1000), 0);
	fake_free(f);
}

static int ask(const struct spl_client_target *target)
{
	struct spl_client_message m = fake_message(target, &number);
	struct fake_result r = {0};

	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	return r.kind;
}

static int tell(const struct spl_client_target *target)
{
	struct spl_client_message m = fake_message(target, &number);
	struct fake_result r = {0};

	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	return r.kind;
}

static void test_thousand_calls_ask_once(void)
{
	unsigned ok = 0;

	begin();
	fake_spot(f, "room");
	for (int i = 0; i < 500; i++)
		ok += ask(&room) == SPL_OK && tell(&room) == SPL_OK;
	CU_ASSERT_EQUAL(ok, 500);
	CU_ASSERT_EQUAL(f->resolves, 1);
	end();
}

static void test_route_is_asked_for_again_after_its_time(void)
{
	struct fake_spot *s;

	begin();
	s = fake_spot(f, "room");
	f->valid_ms = 3000;
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	fake_run(f, c, 2900);
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 1);
	fake_run(f, c, 200);
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 2);
	f->valid_ms = 0; /* no caching: each call asks */
	fake_run(f, c, 3100);
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 4);
	CU_ASSERT_EQUAL(s->generation, 1);
	end();
}

static void test_missing_is_not_found_and_not_kept(void)
{
	begin();
	CU_ASSERT_EQUAL(ask(&room), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(tell(&room), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(f->creates, 0);
	fake_spot(f, "room"); /* created right after: reachable at once */
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 3);
	end();
}

/* Instance intent: where there is no Spot, the message goes all the same, once and with its intent,
 * to the lane that will have it; where there is one, too. Plain messages that wait for the same
 * answer are NotFound, and the order of the others stays. */
static void test_intent(void)
{
	static const char intent[] = "\4room\4cart";
	struct spl_client_target cart = fake_target("room");
	struct spl_client_message m[3];
	struct fake_result r[3] = {{0}};
	const uint64_t numbers[] = {11, 12, 13};

	begin();
	CU_ASSERT_EQUAL(spl_client_target_set_instance(&cart, "cart"), 0);
	for (int i = 0; i < 3; i++)
		m[i] = fake_message(i == 1 ? &room : &cart, &numbers[i]);
	CU_ASSERT_EQUAL(spl_client_send(c, &m[0], fake_keep, &r[0], NULL), 0);
	CU_ASSERT_EQUAL(spl_client_request(c, &m[1], fake_keep, &r[1], NULL), 0);
	CU_ASSERT_EQUAL(spl_client_request(c, &m[2], fake_keep, &r[2], NULL), 0);
	for (int i = 0; i < 3; i++)
		fake_until(c, &r[i]);
	CU_ASSERT_EQUAL(r[0].kind, SPL_OK);
	CU_ASSERT_EQUAL(r[1].kind, SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(f->resolves, 1);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 11), 1);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 12), 0);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 13), 1);
	for (uint32_t i = 0; i < f->seen_n; i++) {
		bool is_message = f->seen[i].number >= 11 && f->seen[i].number <= 13;

		CU_ASSERT_EQUAL(f->seen[i].intent_len, is_message ? 10 : 0);
		CU_ASSERT(!is_message || memcmp(f->seen[i].intent, intent, 10) == 0);
	}
	fake_spot(f, "room"); /* a Ready one keeps its route, and hears of the intent still */
	CU_ASSERT_EQUAL(ask(&cart), SPL_OK);
	CU_ASSERT_EQUAL(ask(&cart), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 2);
	CU_ASSERT_EQUAL(f->seen[f->seen_n - 1].intent_len, 10);
	CU_ASSERT_EQUAL(spl_client_target_set_instance(&cart, NULL), 0);
	CU_ASSERT_EQUAL(ask(&cart), SPL_OK);
	CU_ASSERT_EQUAL(f->seen[f->seen_n - 1].intent_len, 0);
	end();
}

/* What is not missing starts nothing: a dead owner, a store that fails. */
static void test_intent_is_for_the_missing(void)
{
	struct spl_client_target cart = fake_target("room");
	char text[300];

	begin();
	spl_client_target_set_instance(&cart, "cart");
	fake_spot(f, "room")->state = FAKE_CREATING;
	CU_ASSERT_EQUAL(ask(&cart), SPL_E_UNAVAILABLE);
	f->authority_error = SPL_E_INTERNAL_FAILURE;
	CU_ASSERT_EQUAL(tell(&cart), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 0), 0);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 0), 0);
	CU_ASSERT_EQUAL(spl_client_target_set_instance(&cart, ""), -EINVAL);
	memset(text, 'x', sizeof(text));
	text[256] = 0;
	CU_ASSERT_EQUAL(spl_client_target_set_instance(&cart, text), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_target_set_instance(&cart, "\xff"), -EINVAL);
	CU_ASSERT_STRING_EQUAL(cart.instance, "cart");
	cart.instance = text; /* set past the check */
	CU_ASSERT_EQUAL(spl_client_send(c,
					&(struct spl_client_message){.target = &cart, .packet = 1},
					NULL, NULL, NULL),
			-EINVAL);
	end();
}

static void test_unavailable_is_not_missing_and_not_kept(void)
{
	struct fake_spot *s;

	begin();
	s = fake_spot(f, "room");
	s->state = FAKE_CREATING;
	CU_ASSERT_EQUAL(ask(&room), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(tell(&room), SPL_E_UNAVAILABLE);
	f->authority_error = SPL_E_UNAVAILABLE; /* the store fails */
	CU_ASSERT_EQUAL(ask(&room), SPL_E_UNAVAILABLE);
	f->authority_error = SPL_E_INTERNAL_FAILURE;
	CU_ASSERT_EQUAL(ask(&room), SPL_E_INTERNAL_FAILURE);
	f->authority_error = SPL_E_SHUTTING_DOWN;
	CU_ASSERT_EQUAL(ask(&room), SPL_E_SHUTTING_DOWN);
	f->authority_error = SPL_OK;
	f->route_lifecycle = 99; /* another node, with which there is no association */
	s->state = FAKE_READY;
	CU_ASSERT_EQUAL(ask(&room), SPL_E_UNAVAILABLE);
	f->route_lifecycle = 0;
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 0), 0);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 0), 0);
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	end();
}

static void test_stale_route_fails_once_and_is_dropped(void)
{
	struct fake_spot *s;

	begin();
	s = fake_spot(f, "room");
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	s->is_here = false; /* closed by somebody else */
	s->state = FAKE_MISSING;
	CU_ASSERT_EQUAL(ask(&room), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(f->resolves, 1); /* the failed call is not resolved again */
	CU_ASSERT_EQUAL(ask(&room), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(f->resolves, 2);
	end();
}

static void test_new_incarnation_gets_the_message(void)
{
	struct fake_spot *s;

	begin();
	s = fake_spot(f, "room");
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	s->generation = ++f->generation; /* closed and made again by the same owner */
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 1);
	end();
}

static void test_own_close_forgets_the_route(void)
{
	struct spl_client_answer a;

	begin();
	fake_spot(f, "room");
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	CU_ASSERT_EQUAL(spl_client_find_wait(c, "room", 4, &a), 0);
	CU_ASSERT_TRUE_FATAL(a.found);
	CU_ASSERT_EQUAL(spl_client_close_spot_wait(c, &a.ref, &a), 0);
	CU_ASSERT_TRUE(a.closed);
	CU_ASSERT_EQUAL(ask(&room), SPL_E_NOT_FOUND);
	end();
}

static void test_wrong_incarnation_is_refused(void)
{
	struct spl_client_answer a;
	struct fake_spot *s;

	begin();
	s = fake_spot(f, "room");
	CU_ASSERT_EQUAL(spl_client_find_wait(c, "room", 4, &a), 0);
	s->generation = ++f->generation;
	CU_ASSERT_EQUAL(spl_client_close_spot_wait(c, &a.ref, &a), 0);
	CU_ASSERT_EQUAL(a.kind, SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(s->state, FAKE_READY);
	end();
}

static void test_deadline_covers_the_question(void)
{
	struct spl_client_message m;
	struct fake_result r = {0};
	uint64_t began;

	begin();
	fake_spot(f, "room");
	f->authority_ns = 60 * MS;
	f->handler_ns = 1000 * MS;
	m = fake_message(&room, &number);
	m.timeout_us = 100000;
	began = f->now_ns;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT((f->now_ns - began) / MS <= 101);
	CU_ASSERT_EQUAL_FATAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 0), 1);
	CU_ASSERT(f->seen[f->seen_n - 1].budget_us <= 40000);
	CU_ASSERT(f->seen[f->seen_n - 1].budget_us >= 30000);
	end();
}

static void test_late_route_runs_nothing(void)
{
	struct spl_client_message m;
	struct fake_result r = {0};

	begin();
	fake_spot(f, "room");
	f->authority_ns = 500 * MS;
	m = fake_message(&room, &number);
	m.timeout_us = 100000;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_run(f, c, 2000);
	CU_ASSERT(r.runs == 1 && r.kind == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 0), 0);
	end();
}

static void test_mute_authority_is_a_bounded_failure(void)
{
	begin();
	fake_spot(f, "room");
	f->authority_is_mute = true;
	CU_ASSERT_EQUAL(tell(&room), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(ask(&room), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 0), 0);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 0), 0);
	f->authority_is_mute = false;
	CU_ASSERT_EQUAL(ask(&room), SPL_OK);
	end();
}

/* Messages begun before the route is known go out in their order, and before later ones. */
static void test_order_holds_across_the_question(void)
{
	struct spl_client_message m;
	uint64_t n, next = 1, seen = 0;

	begin();
	fake_spot(f, "room");
	f->authority_ns = 20 * MS;
	f->valid_ms = 50; /* and so the question comes again and again */
	for (n = 1; n <= 2000; n++) {
		m = fake_message(&room, &n);
		CU_ASSERT_EQUAL(spl_client_send(c, &m, NULL, NULL, NULL), 0);
		if (n % 20 == 0)
			fake_run(f, c, 3);
	}
	CU_ASSERT_EQUAL(spl_client_flush(c, 10000), 0);
	for (uint32_t i = 0; i < f->seen_n; i++) {
		if (f->seen[i].kind != SPL_MSG_SPOT_SEND)
			continue;
		if (f->seen[i].number != next)
			CU_ASSERT_EQUAL_FATAL(f->seen[i].number, next);
		next++;
		seen++;
	}
	CU_ASSERT_EQUAL(seen, 2000);
	CU_ASSERT(f->resolves > 3 && f->resolves < 30);
	end();
}

/* A thousand places to ask for: the authority gets a few questions at a time. */
static void test_questions_are_bounded(void)
{
	static struct fake_result r[1000];
	struct spl_client_target t;
	struct spl_client_message m;
	uint64_t cancelled[2];
	unsigned ended = 0;
	char id[16];

	begin();
	memset(r, 0, sizeof(r));
	f->authority_ns = 5 * MS;
	for (int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "room-%d", i);
		t = fake_target(id);
		m = fake_message(&t, &number);
		CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[i],
						   i < 998 ? NULL : &cancelled[i - 998]),
				0);
	}
	CU_ASSERT_EQUAL(spl_client_cancel(c, cancelled[0]), 1); /* while the question waits */
	fake_run(f, c, 1000);
	for (int i = 0; i < 1000; i++)
		ended +=
			r[i].runs == 1 && r[i].kind == (i == 998 ? SPL_CANCELLED : SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(ended, 1000);
	CU_ASSERT_EQUAL(f->resolves, 999);
	CU_ASSERT(f->most_replies <= 64 && f->most_replies > 32);
	end();
}

static void test_cache_is_bounded(void)
{
	struct spl_client_config conf;
	struct spl_client_target t[8];
	struct spl_client_stats s;
	char id[16];

	f = fake_new();
	fake_config(&conf);
	conf.routes_max = 4;
	c = fake_client(f, &conf);
	for (int i = 0; i < 8; i++) {
		snprintf(id, sizeof(id), "room-%d", i);
		fake_spot(f, id);
		t[i] = fake_target(id);
		CU_ASSERT_EQUAL(ask(&t[i]), SPL_OK);
	}
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.routes, 4);
	CU_ASSERT_EQUAL(f->resolves, 8);
	CU_ASSERT_EQUAL(ask(&t[7]), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 8);
	CU_ASSERT_EQUAL(ask(&t[0]), SPL_OK);
	CU_ASSERT_EQUAL(f->resolves, 9);
	/* All places taken by questions: refused, nobody pushed out. */
	f->authority_is_mute = true;
	for (int i = 1; i <= 4; i++) {
		struct spl_client_message m = fake_message(&t[i], &number);

		CU_ASSERT_EQUAL(spl_client_send(c, &m, NULL, NULL, NULL), 0);
	}
	CU_ASSERT_EQUAL(ask(&t[5]), SPL_E_CAPACITY_EXCEEDED);
	end();
}

static const struct t_case cases[] = {
	T(test_thousand_calls_ask_once, "S-ADDR-1", "S-ADDR-8"),
	T(test_route_is_asked_for_again_after_its_time, "S-ADDR-3"),
	T(test_missing_is_not_found_and_not_kept, "S-ADDR-1", "S-ADDR-6"),
	T(test_intent, "S-ACT-5", "A-LOC-30", "A-LOC-36"),
	T(test_intent_is_for_the_missing, "S-ACT-1", "A-LOC-37"),
	T(test_unavailable_is_not_missing_and_not_kept, "S-ADDR-1", "S-ADDR-2", "S-ADDR-6"),
	T(test_stale_route_fails_once_and_is_dropped, "S-ADDR-4", "S-ADDR-7", "S-CLOSE-7"),
	T(test_new_incarnation_gets_the_message, "S-GEN-4", "S-ADDR-6"),
	T(test_own_close_forgets_the_route, "S-ADDR-4", "S-CLOSE-7"),
	T(test_wrong_incarnation_is_refused, "S-CLOSE-2", "S-ERR-9"),
	T(test_deadline_covers_the_question, "S-DIR-6"),
	T(test_late_route_runs_nothing, "S-ADDR-6"),
	T(test_mute_authority_is_a_bounded_failure, "S-ADDR-6"),
	T(test_order_holds_across_the_question),
	T(test_questions_are_bounded),
	T(test_cache_is_bounded),
};

int main(int argc, char **argv)
{
	static const struct t_suite suites[] = {T_SUITE("client_routes", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
