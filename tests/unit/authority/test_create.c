/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and GetOrCreate: results, one factory an attempt, waiters, repeats, limits, lost answers.
 */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_created_then_existing(void)
{
	struct row_obj row;
	uint64_t t, gen;

	rig_open();
	rig.reply_text = "hello";
	t = rig_goc("room-1", "room");
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_STRING_EQUAL(rig_got(t)->reply, "hello");
	CU_ASSERT_EQUAL(rig_got(t)->r.content, 2);
	CU_ASSERT_STRING_EQUAL(rig_got(t)->id, "room-1");
	CU_ASSERT_TRUE(rig_row("room-1", &row, &gen));
	CU_ASSERT_EQUAL(rig_got(t)->r.entry.obj_gen, gen);
	CU_ASSERT_TRUE(row.state == AUTH_ROW_READY && row.own_gen == 1 && !row.has_pending);
	t = rig_goc("room-1", "room");
	CU_ASSERT_TRUE(rig_is_existing(t));
	CU_ASSERT_EQUAL(rig_got(t)->reply_n, 0); /* Existing carries no reply */
	CU_ASSERT_EQUAL(rig_got(t)->r.entry.obj_gen, gen);
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_check_rest();
	rig_close();
}

static void test_create_mints_a_uuid(void)
{
	uint64_t t, t2;

	rig_open();
	t = rig_create("room");
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_EQUAL(strlen(rig_got(t)->id), 36);
	CU_ASSERT_EQUAL(rig_got(t)->id[14], '4');
	CU_ASSERT_PTR_NOT_NULL(strchr("89ab", rig_got(t)->id[19]));
	CU_ASSERT_EQUAL(strspn(rig_got(t)->id, "0123456789abcdef-"), 36);
	t2 = rig_create("room");
	CU_ASSERT_STRING_NOT_EQUAL(rig_got(t)->id, rig_got(t2)->id);
	/* Taken: AlreadyExists at once, no second UUID. */
	rig.fixed_random = true;
	t = rig_create("room");
	CU_ASSERT_TRUE(rig_is_created(t));
	t = rig_create("room");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_ALREADY_EXISTS);
	CU_ASSERT_EQUAL(rig.factories, 3);
	rig.hold_dp = true; /* also while the other one is Creating */
	rig.fixed_random = false;
	rig_check_rest();
	rig_close();
}

static void test_create_meets_creating(void)
{
	uint64_t t, t2;

	rig_open();
	rig.hold_dp = true;
	rig.fixed_random = true;
	t = rig_create("room");
	t2 = rig_create("room");
	CU_ASSERT_EQUAL(rig_kind(t2), SPL_E_ALREADY_EXISTS);
	t2 = rig_create("cart");
	CU_ASSERT_EQUAL(rig_kind(t2), SPL_E_TYPE_MISMATCH);
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	while (rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT))
		continue;
	CU_ASSERT_TRUE(rig_is_created(t));
	rig_check_rest();
	rig_close();
}

static void test_other_type(void)
{
	uint64_t t;

	rig_open();
	rig_goc("x", "room");
	t = rig_goc("x", "cart");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_TYPE_MISMATCH);
	/* A type that is only spelt differently is another one, and nobody offers it. */
	t = rig_goc("y", "Room");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_CAPACITY_EXCEEDED);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_got(t)->text, "no node offers"));
	/* The Entry Spot's id belongs to another kind; callers may not even name one. */
	t = rig_goc("n-entry-123e4567-e89b-42d3-a456-426614174000", "room");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION);
	t = rig_goc("n-entry-123e4567-e89b-12d3-a456-426614174000", "room"); /* version 1: legal */
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_EQUAL(rig.factories, 2);
	rig_check_rest();
	rig_close();
}

static void test_nothing_is_seen_before_ready(void)
{
	uint64_t t, f;

	rig_open();
	rig.hold_dp = true;
	t = rig_goc("r", "room");
	f = rig_find("r");
	CU_ASSERT_TRUE(rig_kind(f) == SPL_OK && !rig_got(f)->r.found);
	f = rig_ask(AUTH_RESOLVE, "r");
	CU_ASSERT_EQUAL(rig_got(f)->r.route, AUTH_ROUTE_MISSING);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	/* The row is Ready, the dataplane has not opened it: everybody waits for that. */
	f = rig_find("r");
	CU_ASSERT_EQUAL(rig_kind(f), -1);
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_got(f)->r.found && rig_is_created(t));
	f = rig_ask(AUTH_RESOLVE, "r");
	CU_ASSERT_EQUAL(rig_got(f)->r.route, AUTH_ROUTE_READY);
	CU_ASSERT_EQUAL(rig_got(f)->r.valid_until, rig.deadline);
	CU_ASSERT_TRUE(rig_got(f)->r.entry.own_gen == 1 && rig_got(f)->r.entry.ver > 0 &&
		       strcmp(rig_got(f)->rid, "") != 0);
	rig_check_rest();
	rig_close();
}

/* 64 callers, one id: one is Created, the others Existing, all with the same generation. */
static void test_many_callers_one_factory(void)
{
	uint64_t t[64], gen = 0;
	int made = 0, existing = 0;

	rig_open();
	rig.hold_store = true;
	for (int i = 0; i < 64; i++)
		t[i] = rig_goc("hot", "room");
	while (rig.held)
		rig_release_store();
	for (int i = 0; i < 64; i++) {
		made += rig_is_created(t[i]);
		existing += rig_is_existing(t[i]);
		gen = rig_is_created(t[i]) ? rig_got(t[i])->r.entry.obj_gen : gen;
	}
	CU_ASSERT_TRUE(made == 1 && existing == 63);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(rig_got(t[i])->r.entry.obj_gen, gen);
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig.hold_store = false;
	rig_check_rest();
	rig_close();
}

/* The first is declined: nobody inherits that; the next waiter runs its own attempt. */
static void test_results_are_not_shared(void)
{
	struct row_obj row;
	uint64_t a, b, c, gen;

	rig_open();
	rig.hold_dp = true;
	a = rig_goc("r", "room");
	b = rig_goc("r", "room");
	c = rig_goc("r", "room");
	rig.reply_text = "no thanks";
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_DECLINE));
	CU_ASSERT_EQUAL(rig_kind(a), SPL_OK);
	CU_ASSERT_EQUAL(rig_got(a)->r.created, AUTH_REJECTED);
	CU_ASSERT_STRING_EQUAL(rig_got(a)->reply, "no thanks");
	CU_ASSERT_TRUE(rig_got(a)->r.entry.obj_gen > 0);
	CU_ASSERT_TRUE(rig_kind(b) == -1 && rig_kind(c) == -1);
	rig.reply_text = NULL;
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_FAIL));
	CU_ASSERT_EQUAL(rig_kind(b), SPL_E_INTERNAL_FAILURE); /* a failure is no Rejected */
	CU_ASSERT_EQUAL(rig_kind(c), -1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_is_created(c));
	CU_ASSERT_TRUE(rig_row("r", &row, &gen));
	CU_ASSERT_TRUE(gen > rig_got(a)->r.entry.obj_gen); /* each attempt a new incarnation */
	CU_ASSERT_EQUAL(rig.factories, 3);
	rig_check_rest();
	rig_close();
}

static void test_declined_leaves_nothing(void)
{
	struct row_obj row;
	struct row_cap cap;
	uint64_t t;

	rig_open();
	rig.policy = RIG_DECLINE;
	t = rig_goc("r", "room");
	CU_ASSERT_EQUAL(rig_got(t)->r.created, AUTH_REJECTED);
	CU_ASSERT_FALSE(rig_row("r", &row, NULL));
	CU_ASSERT_TRUE(rig_cap(&cap) && cap.spots_active == 0 && cap.spots_reserved == 0);
	t = rig_find("r");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.found);
	rig.policy = RIG_FAIL;
	t = rig_goc("r", "room");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_FALSE(rig_row("r", &row, NULL));
	rig.policy = RIG_ACCEPT;
	t = rig_goc("r", "room");
	CU_ASSERT_TRUE(rig_is_created(t));
	rig_check_rest();
	rig_close();
}

/* The same operation again: the kept terminal, also of a Rejected and a Failed one; and no longer
 * than 300 s past its deadline. */
static void test_repeats_get_the_terminal(void)
{
	uint64_t t, again, gen;

	rig_open();
	rig.reply_text = "first";
	t = rig_goc_op("r", "room", 500, 10000);
	gen = rig_got(t)->r.entry.obj_gen;
	rig.reply_text = "second";
	again = rig_goc_op("r", "room", 500, 10000);
	CU_ASSERT_TRUE(rig_is_created(again)); /* not Existing */
	CU_ASSERT_STRING_EQUAL(rig_got(again)->reply, "first");
	CU_ASSERT_EQUAL(rig_got(again)->r.entry.obj_gen, gen);
	CU_ASSERT_STRING_EQUAL(rig_got(again)->id, "r");
	rig.policy = RIG_DECLINE;
	t = rig_goc_op("q", "room", 501, 10000);
	rig.policy = RIG_ACCEPT;
	again = rig_goc_op("q", "room", 501, 10000);
	CU_ASSERT_TRUE(rig_kind(again) == SPL_OK && rig_got(again)->r.created == AUTH_REJECTED);
	CU_ASSERT_STRING_EQUAL(rig_got(again)->reply, "second");
	rig.policy = RIG_FAIL;
	t = rig_goc_op("p", "room", 502, 10000);
	rig.policy = RIG_ACCEPT;
	again = rig_goc_op("p", "room", 502, 10000);
	CU_ASSERT_EQUAL(rig_kind(again), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(rig.factories, 3);
	rig_pass(309 * 1000);
	again = rig_goc_op("q", "room", 501, 10000);
	CU_ASSERT_EQUAL(rig_got(again)->r.created, AUTH_REJECTED);
	rig_pass(2000);
	again = rig_goc_op("q", "room", 501, 10000);
	CU_ASSERT_TRUE(rig_is_created(again)); /* forgotten: a new attempt */
	again = rig_goc_op("r", "room", 500, 10000);
	CU_ASSERT_TRUE(rig_is_existing(again));
	rig_check_rest();
	rig_close();
}

static void test_repeats_while_under_way(void)
{
	uint64_t t, again, other;

	rig_open();
	rig.hold_dp = true;
	t = rig_goc_op("r", "room", 500, 10000);
	again = rig_goc_op("r", "room", 500, 20000);
	other = rig_goc_op("s", "room", 500, 10000); /* the identity of another request */
	CU_ASSERT_EQUAL(rig_kind(other), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	/* The first caller's time is over; the repeat takes its place. */
	rig_advance(10000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig_kind(again), -1);
	rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(again));
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_check_rest();
	rig_close();
}

static void test_waiter_deadline(void)
{
	uint64_t a, b, c;

	rig_open();
	rig.hold_dp = true;
	a = rig_goc_in("r", "room", 8000);
	b = rig_goc_in("r", "room", 1000);
	rig_advance(1000);
	CU_ASSERT_EQUAL(rig_kind(b), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig_kind(a), -1); /* the attempt goes on */
	rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(a));
	c = rig_goc("r", "room");
	CU_ASSERT_TRUE(rig_is_existing(c));
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_check_rest();
	rig_close();
}

/* The callbacks do not end in time: typed failure, the row goes, the next one may try. */
static void test_callback_timeout(void)
{
	struct row_obj row;
	uint64_t a, b;

	rig_open();
	rig.hold_dp = true;
	a = rig_goc_in("r", "room", 1000);
	b = rig_goc_in("r", "room", 9000);
	rig_advance(1000);
	CU_ASSERT_EQUAL(rig_kind(a), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_DISCARD), 1);
	CU_ASSERT_TRUE(rig_row("r", &row, NULL)); /* until the dataplane says it is over */
	/* The late answer to the command that was overtaken is nobody's. */
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_DECLINE));
	CU_ASSERT_TRUE(rig_row("r", &row, NULL) && rig_kind(b) == -1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "r", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_is_created(b));
	rig_check_rest();
	rig_close();
}

static void test_deadline_meets_commit(void)
{
	uint64_t a, again;

	rig_open();
	rig.hold_dp = true;
	a = rig_goc_op("r", "room", 900, 1000);
	rig.hold_store = true;
	rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT);
	rig_advance(1000); /* T5 is out: it may commit */
	CU_ASSERT_EQUAL(rig_kind(a), SPL_E_DEADLINE_EXCEEDED);
	rig.hold_store = false;
	rig_release_store();
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	again = rig_goc_op("r", "room", 900, 1000);
	CU_ASSERT_TRUE(rig_is_created(again)); /* its own terminal */
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

static void test_limits(void)
{
	struct auth_request r;
	uint64_t t, ok = 0, full = 0;
	static char big[AUTH_REQUEST_MAX + 1];

	rig_reset();
	rig.spots_max = 40;
	rig.room_limit = 10;
	rig_open();
	rig.hold_store = true;
	for (int i = 0; i < 64; i++) {
		char id[16];

		snprintf(id, sizeof(id), "r%d", i);
		rig_goc(id, i % 4 == 0 ? "room" : "cart");
	}
	while (rig.held)
		rig_release_store();
	rig.hold_store = false;
	for (unsigned i = 0; i < RIG_REPLIES; i++) {
		ok += rig.replies[i].there && rig.replies[i].r.kind == SPL_OK;
		full += rig.replies[i].there && rig.replies[i].r.kind == SPL_E_CAPACITY_EXCEEDED;
	}
	CU_ASSERT_EQUAL(ok, 40);
	CU_ASSERT_EQUAL(full, 24);
	/* Existing ones are served as before, and a slot that is given back is used. */
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r0", "room")));
	t = rig_goc("r0", "room");
	t = rig_closing("r0", rig_got(t)->r.entry.obj_gen);
	CU_ASSERT_TRUE(rig_got(t)->r.closed);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r200", "room")));
	CU_ASSERT_EQUAL(rig_kind(rig_goc("r201", "room")), SPL_E_CAPACITY_EXCEEDED);
	/* A failing factory gives its slot back, too. */
	t = rig_goc("r1", "cart");
	t = rig_closing("r1", rig_got(t)->r.entry.obj_gen);
	rig.policy = RIG_FAIL;
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(rig_kind(rig_goc("r300", "cart")), SPL_E_INTERNAL_FAILURE);
	rig.policy = RIG_ACCEPT;
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r300", "cart")));
	rig_check_rest();
	/* Requests of 1 MiB, and not a byte more. */
	r = rig_request(AUTH_GET_OR_CREATE, "r300", "cart");
	r.request = (struct auth_bytes){big, AUTH_REQUEST_MAX};
	CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
	CU_ASSERT_TRUE(rig_is_existing(t));
	r.request.n++;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	rig_close();
}

static void test_pending_slots(void)
{
	char id[16];

	rig_reset();
	rig.pending_max = 4;
	rig_open();
	rig.hold_dp = true;
	for (int i = 0; i < 10; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		rig_goc(id, "room");
	}
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 4); /* the others wait for a slot */
	while (rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT))
		CU_ASSERT_TRUE(rig_open_cmds(AUTH_FX_PREPARE) <= 4);
	CU_ASSERT_EQUAL(rig.n_replies, 10);
	CU_ASSERT_EQUAL(rig.factories, 10);
	rig_check_rest();
	rig_close();
}

static void test_ids_are_checked_once_and_alike(void)
{
	static char long_id[300];
	const enum auth_verb verbs[] = {AUTH_GET_OR_CREATE, AUTH_FIND,	  AUTH_SHOW,
					AUTH_CLOSE,	    AUTH_RESOLVE, AUTH_RECLAIM_ID};
	const struct auth_bytes bad[] = {
		{"", 0}, {long_id, 256}, {"\xff", 1}, {"a\xc3", 2}, {"\xed\xa0\x80", 3}};
	const struct auth_bytes good[] = {{"a", 1},	  {long_id, 255},  {"a b?/c:|", 8},
					  {"a\0b", 3},	  {"\xc3\xa9", 2}, {"e\xcc\x81", 3},
					  {"user!31", 7}, {"user#31", 7},  {"USER#31", 7}};
	uint64_t t;

	memset(long_id, 'x', sizeof(long_id));
	rig_open();
	for (size_t v = 0; v < T_COUNT(verbs); v++)
		for (size_t i = 0; i < T_COUNT(bad); i++) {
			struct auth_request r = rig_request(verbs[v], NULL, "room");

			r.id = bad[i];
			r.obj_gen = 1;
			CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
			CU_ASSERT_EQUAL(rig_kind(t), -1);
		}
	for (size_t i = 0; i < T_COUNT(good); i++) {
		struct auth_request r = rig_request(AUTH_GET_OR_CREATE, NULL, "room");

		r.id = good[i];
		CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
		CU_ASSERT_TRUE(rig_is_created(t)); /* all distinct */
	}
	CU_ASSERT_EQUAL(rig.factories, T_COUNT(good));
	rig_close();
}

static void test_other_arguments(void)
{
	struct auth_request r;
	uint64_t t;

	rig_open();
	r = rig_request(AUTH_GET_OR_CREATE, "r", "room");
	r.mesh = (struct auth_bytes){"mesh", 4};
	CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
	CU_ASSERT_TRUE(rig_is_created(t));
	r = rig_request(AUTH_GET_OR_CREATE, "r", "room");
	r.mesh = (struct auth_bytes){"Mesh", 4};
	CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_NOT_FOUND);
	r = rig_request(AUTH_GET_OR_CREATE, "r", "");
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	r = rig_request(AUTH_GET_OR_CREATE, "r", "room");
	r.op.lifecycle = 0;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	r = rig_request(AUTH_GET_OR_CREATE, "r", "room");
	r.op.rid.len = 0;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	r = rig_request(AUTH_GET_OR_CREATE, "r2", "room");
	r.deadline = rig.now;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_check_rest();
	rig_close();
}

static void test_too_many_requests(void)
{
	struct auth_request r;
	int refused = 0;
	uint64_t t;

	rig_open();
	rig.hold_store = true;
	for (int i = 0; i < 5000; i++) {
		r = rig_request(AUTH_FIND, "r", NULL);
		r.tag = 0;
		refused += auth_submit(rig.a, &r, rig.now) == -EBUSY;
	}
	CU_ASSERT_EQUAL(refused, 5000 - 4096);
	rig_run();
	while (rig.held)
		rig_release_store();
	rig.hold_store = false;
	CU_ASSERT_EQUAL(rig_got(0)->times, 4096);
	memset(rig_got(0), 0, sizeof(*rig_got(0)));
	t = rig_find("r");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_OK);
	rig_check_rest();
	rig_close();
}

static const struct t_case cases[] = {
	T(test_created_then_existing, "S-CREATE-3", "S-CREATE-5", "A-LOC-15", "A-LOC-18"),
	T(test_create_mints_a_uuid, "S-ID-8", "S-CREATE-1", "A-LOC-10"),
	T(test_create_meets_creating, "A-LOC-18", "S-CREATE-4"),
	T(test_other_type, "S-CREATE-4", "S-ID-5", "A-LOC-18", "A-LOC-13"),
	T(test_nothing_is_seen_before_ready, "S-CREATE-5", "A-LOC-16", "S-ADDR-2", "A-LOC-52"),
	T(test_many_callers_one_factory, "S-CREATE-6", "A-LOC-15", "A-LOC-18"),
	T(test_results_are_not_shared, "S-CREATE-6", "A-LOC-19", "S-CREATE-8", "A-LOC-24"),
	T(test_declined_leaves_nothing, "S-CREATE-3", "S-CREATE-8", "A-LOC-16"),
	T(test_repeats_get_the_terminal, "S-CREATE-7", "A-LOC-19", "A-LOC-20", "S-COMPL-5"),
	T(test_repeats_while_under_way, "S-CREATE-7", "A-LOC-19", "A-LOC-14"),
	T(test_waiter_deadline, "S-CREATE-6", "A-LOC-21", "A-CLK-3"),
	T(test_callback_timeout, "S-CREATE-8", "A-LOC-21"),
	T(test_deadline_meets_commit, "A-LOC-21", "A-LOC-20"),
	T(test_limits, "A-NODE-8", "A-LOC-13", "S-MSG-8", "S-ERR-8"),
	T(test_pending_slots, "A-NODE-8"),
	T(test_ids_are_checked_once_and_alike, "S-ID-1", "S-ID-3", "A-ERR-3", "A-LOC-1"),
	T(test_other_arguments, "S-CREATE-2", "A-LOC-12", "A-CLK-1"),
	T(test_too_many_requests),
};
const struct t_suite suite_create = T_SUITE("authority.create", NULL, NULL, cases);
