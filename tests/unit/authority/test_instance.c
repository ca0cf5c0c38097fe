/* SPDX-License-Identifier: BSD-3-Clause */
/* Instance Spots: what a message with Instance intent finds, one start at a time, eviction. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <errno.h>
#include <string.h>

static void test_activated_then_existing(void)
{
	struct row_obj row;
	uint64_t t, gen;

	rig_open();
	t = rig_activate("i", "twin", 1000);
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_TRUE(rig_row("i", &row, &gen));
	CU_ASSERT_TRUE(row.kind == SPL_KIND_INSTANCE && row.state == AUTH_ROW_READY &&
		       row.alloc == ROW_ACTIVE);
	t = rig_activate("i", "twin", 1000);
	CU_ASSERT_TRUE(rig_is_existing(t));
	CU_ASSERT_EQUAL(rig.factories, 1);
	CU_ASSERT_EQUAL(rig_gen("i"), gen);
	t = rig_find("i"); /* AMB-22 */
	CU_ASSERT_TRUE(rig_got(t)->r.found);
	CU_ASSERT_EQUAL(rig_got(t)->r.entry.kind, SPL_KIND_INSTANCE);
	rig_check_rest();
	rig_close();
}

/* Only intent starts one: neither a look-up nor a creation does, and no row stays of them. */
static void test_nothing_else_starts_it(void)
{
	uint64_t t;

	rig_open();
	t = rig_ask(AUTH_RESOLVE, "i");
	CU_ASSERT_EQUAL(rig_got(t)->r.route, AUTH_ROUTE_MISSING);
	CU_ASSERT_FALSE(rig_got(rig_find("i"))->r.found);
	t = rig_goc("i", "twin");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_got(t)->text, "first message"));
	t = rig_create("twin");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_gen("i"), 0);
	CU_ASSERT_EQUAL(rig.factories, 0);
	rig_check_rest();
	rig_close();
}

/* T-ACT-5, T-ACT-6: an unknown type, a User type, the id of a User Spot, of another Instance type,
 * an id nobody may name. */
static void test_wrong_types(void)
{
	uint64_t t;

	rig_open();
	CU_ASSERT_EQUAL(rig_kind(rig_activate("i", "nothing", 1000)), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(rig_kind(rig_activate("i", "room", 1000)), SPL_E_NOT_FOUND);
	rig_goc("u", "room");
	CU_ASSERT_EQUAL(rig_kind(rig_activate("u", "twin", 1000)), SPL_E_TYPE_MISMATCH);
	CU_ASSERT_EQUAL(rig_kind(rig_activate("u", "room", 1000)), SPL_E_TYPE_MISMATCH);
	rig_activate("i", "twin", 1000);
	CU_ASSERT_EQUAL(rig_kind(rig_activate("i", "room", 1000)), SPL_E_TYPE_MISMATCH);
	CU_ASSERT_EQUAL(rig_kind(rig_goc("i", "twin")), SPL_E_TYPE_MISMATCH);
	CU_ASSERT_EQUAL(rig_kind(rig_goc("i", "room")), SPL_E_TYPE_MISMATCH);
	t = rig_activate("n-entry-123e4567-e89b-42d3-a456-426614174000", "twin", 1000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig.factories, 2);
	rig_check_rest();
	rig_close();
}

/* A User creation and an intent race for one id: exactly one kind wins, the loser's factory does
 * not run. */
static void test_race_of_kinds(void)
{
	uint64_t a, b, c, d;

	rig_open();
	rig.hold_dp = true;
	a = rig_activate("x", "twin", 5000);
	b = rig_goc("x", "room");
	CU_ASSERT_EQUAL(rig_kind(b), SPL_E_TYPE_MISMATCH);
	c = rig_goc("y", "room");
	d = rig_activate("y", "twin", 5000);
	CU_ASSERT_EQUAL(rig_kind(d), SPL_E_TYPE_MISMATCH);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 2);
	while (rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT))
		continue;
	CU_ASSERT_TRUE(rig_is_created(a) && rig_is_created(c));
	CU_ASSERT_EQUAL(rig.factories, 2);
	rig_check_rest();
	rig_close();
}

/* T-ACT-3: many at once, one factory; those who wait get the Ready one. */
static void test_one_start_at_a_time(void)
{
	uint64_t t[50];

	rig_open();
	rig.hold_dp = true;
	for (int i = 0; i < 50; i++)
		t[i] = rig_activate("i", "twin", i % 2 ? 5000 : 100);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	rig_pass(200);
	CU_ASSERT_EQUAL(rig_kind(t[2]), SPL_E_DEADLINE_EXCEEDED); /* a waiter's own time */
	/* The first one's time was up too: its attempt is taken back, the next one starts anew. */
	CU_ASSERT_EQUAL(rig_kind(t[0]), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "i", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	rig_answer(AUTH_FX_PREPARE, "i", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "i", RIG_ACCEPT);
	for (int i = 1; i < 50; i += 2)
		CU_ASSERT_TRUE(i == 1 ? rig_is_created(t[i]) : rig_is_existing(t[i]));
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_check_rest();
	rig_close();
}

/* T-ACT-9: a failure leaves nothing, is told once, and the row is gone before the next start. */
static void test_failure(void)
{
	uint64_t t, gen;
	struct row_cap cap;

	rig_open();
	rig.policy = RIG_FAIL;
	t = rig_activate("i", "twin", 1000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(rig_got(t)->times, 1);
	CU_ASSERT_EQUAL(rig_gen("i"), 0);
	CU_ASSERT_TRUE(rig_cap(&cap));
	CU_ASSERT_TRUE(cap.spots_active == 0 && cap.spots_reserved == 0 && cap.pending == 0);
	CU_ASSERT_FALSE(rig_got(rig_find("i"))->r.found);
	rig.policy = RIG_ACCEPT;
	/* While the row of the failed attempt cannot be removed, nothing starts. */
	rig.hold_dp = true;
	t = rig_activate("i", "twin", 60000);
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, -1);
	rig_answer(AUTH_FX_PREPARE, "i", RIG_FAIL);
	gen = rig_activate("i", "twin", 60000);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 0);
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, 0);
	rig_pass(3000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	rig_answer(AUTH_FX_PREPARE, "i", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(gen));
	rig_check_rest();
	rig_close();
}

/* T-ACT-11, T-ACT-5: pending_max starts at once, and room for a Spot before it is reserved. */
static void test_limits(void)
{
	uint64_t a, b;

	rig_reset();
	rig.pending_max = 1;
	rig.room_limit = 2;
	rig_open();
	rig.hold_dp = true;
	a = rig_activate("a", "twin", 5000);
	b = rig_activate("b", "twin", 5000);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	rig_answer(AUTH_FX_PREPARE, "a", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "a", RIG_ACCEPT);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	rig_answer(AUTH_FX_PREPARE, "b", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "b", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(a) && rig_is_created(b));
	CU_ASSERT_EQUAL(rig_kind(rig_activate("c", "twin", 5000)), SPL_E_CAPACITY_EXCEEDED);
	rig_check_rest();
	rig_close();
}

/* A-LOC-37, S-ACT-13: a Ready one whose owner died is not missing. */
static void test_dead_owner(void)
{
	uint64_t t;

	rig_open();
	rig_activate("i", "twin", 1000);
	rig_kill_dp();
	rig_start_host();
	t = rig_activate("i", "twin", 1000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_got(rig_ask(AUTH_RESOLVE, "i"))->r.route, AUTH_ROUTE_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig.life = RIG_ENDED;
	t = rig_ask(AUTH_RECLAIM_ID, "i");
	rig_pass(20000);
	CU_ASSERT_EQUAL(rig_got(t)->r.reclaimed, 1);
	CU_ASSERT_TRUE(rig_is_created(rig_activate("i", "twin", 1000)));
	rig_close();
}

/* S-CLOSE-9: killed while it closes: the row stays, and it is Unavailable with intent too. */
static void test_crash_while_closing(void)
{
	uint64_t t;

	rig_open();
	rig_activate("i", "twin", 1000);
	rig.hold_dp = true;
	rig_own_close("i", rig_gen("i"), AUTH_EXPLICIT_CLOSE);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	rig_kill_dp();
	rig.hold_dp = false;
	rig_start_host();
	t = rig_activate("i", "twin", 1000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_close();
}

/* S-CLOSE-1: closed from its own context only. Then a message starts the next generation. */
static void test_own_close(void)
{
	uint64_t t, gen, next;

	rig_open();
	rig_activate("i", "twin", 1000);
	gen = rig_gen("i");
	CU_ASSERT_EQUAL(rig_kind(rig_closing("i", gen)), SPL_E_INVALID_OPERATION);
	rig.hold_dp = true;
	t = rig_own_close("i", gen, AUTH_EXPLICIT_CLOSE);
	next = rig_activate("i", "twin", 5000); /* waits for the end */
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 0);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_got(t)->r.closed);
	CU_ASSERT_EQUAL(rig.reason, AUTH_EXPLICIT_CLOSE);
	rig_answer(AUTH_FX_PREPARE, "i", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(next));
	CU_ASSERT_TRUE(rig_gen("i") > gen);
	rig_check_rest();
	rig_close();
}

/* T-IDLE-1: evicted with its reason, the row last; then it is missing, and intent starts it. */
static void test_evicted(void)
{
	struct row_obj row;
	uint64_t t, r, a, gen;

	rig_open();
	rig_activate("i", "twin", 1000);
	gen = rig_gen("i");
	rig.hold_dp = true;
	t = rig_own_close("i", gen, AUTH_IDLE_EVICTED);
	r = rig_own_close("i", gen, AUTH_IDLE_EVICTED); /* shared */
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	CU_ASSERT_TRUE(rig_row("i", &row, NULL) && row.state == AUTH_ROW_READY);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_got(t)->r.closed && rig_got(r)->r.closed);
	CU_ASSERT_EQUAL(rig.reason, AUTH_IDLE_EVICTED);
	CU_ASSERT_EQUAL(rig.closings, 1);
	CU_ASSERT_EQUAL(rig_gen("i"), 0);
	r = rig_ask(AUTH_RESOLVE, "i");
	CU_ASSERT_EQUAL(rig_got(r)->r.route, AUTH_ROUTE_MISSING);
	a = rig_activate("i", "twin", 1000);
	rig_answer(AUTH_FX_PREPARE, "i", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(a) && rig_gen("i") > gen);
	rig_check_rest();
	rig_close();
}

/* More are idle than may be evicted at once: the others are refused, and ask again; creations and
 * closes find room beside them. */
static void test_many_evicted(void)
{
	unsigned most = 16 / AUTH_EVICTIONS_PART, taken = 0;
	char id[8];

	rig.ops_max = 16;
	rig_open();
	for (unsigned i = 0; i < 2 * most; i++) {
		snprintf(id, sizeof(id), "i%u", i);
		CU_ASSERT_TRUE(rig_is_created(rig_activate(id, "twin", 1000)));
	}
	rig.hold_dp = true;
	for (unsigned i = 0; i < 2 * most; i++) {
		struct auth_request r;
		uint64_t tag;

		snprintf(id, sizeof(id), "i%u", i);
		r = rig_request(AUTH_CLOSE, id, NULL);
		r.obj_gen = rig_gen(id);
		r.own = true;
		r.reason = AUTH_IDLE_EVICTED;
		taken += rig_submit(&r, &tag) == 0;
	}
	CU_ASSERT_EQUAL(taken, most);
	rig_run();
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), most);
	rig_goc("r", "room");
	rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_gen("r") > 0);
	rig_own_close("i7", rig_gen("i7"), AUTH_EXPLICIT_CLOSE);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "i0", RIG_ACCEPT);
	rig_own_close("i6", rig_gen("i6"), AUTH_IDLE_EVICTED); /* there is room again */
	while (rig_answer(AUTH_FX_CLOSE_LOCAL, NULL, RIG_ACCEPT))
		continue;
	CU_ASSERT_EQUAL(rig_gen("i6") + rig_gen("i7") + rig_gen("i0"), 0);
	CU_ASSERT_TRUE(rig_gen("i5") > 0);
	rig_close();
}

/* Used again before the seal: it stays, with its generation; an explicit close that had merged with
 * the eviction goes on by itself. */
static void test_not_idle_any_more(void)
{
	uint64_t t, r, a, c, gen;

	rig_open();
	rig_activate("i", "twin", 1000);
	gen = rig_gen("i");
	rig.hold_dp = true;
	t = rig_own_close("i", gen, AUTH_IDLE_EVICTED);
	r = rig_ask(AUTH_RESOLVE, "i"); /* waits for what becomes of it */
	a = rig_activate("i", "twin", 1000);
	CU_ASSERT_EQUAL(rig_kind(r), -1);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "i", RIG_DECLINE);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.closed);
	CU_ASSERT_EQUAL(rig_got(r)->r.route, AUTH_ROUTE_READY);
	CU_ASSERT_TRUE(rig_is_existing(a));
	CU_ASSERT_EQUAL(rig_gen("i"), gen);
	CU_ASSERT_EQUAL(rig.closings, 0);
	rig_own_close("i", gen, AUTH_IDLE_EVICTED);
	c = rig_own_close("i", gen, AUTH_EXPLICIT_CLOSE);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "i", RIG_DECLINE);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_got(c)->r.closed);
	CU_ASSERT_EQUAL(rig.reason, AUTH_EXPLICIT_CLOSE);
	rig_check_rest();
	rig_close();
}

/* Only Instance Spots are idle, and only they themselves say so. */
static void test_who_is_evicted(void)
{
	struct auth_request r;
	uint64_t t;

	rig_open();
	rig_goc("u", "room");
	t = rig_own_close("u", rig_gen("u"), AUTH_IDLE_EVICTED);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION);
	rig_activate("i", "twin", 1000);
	r = rig_request(AUTH_CLOSE, "i", NULL);
	r.obj_gen = rig_gen("i");
	r.reason = AUTH_IDLE_EVICTED;
	CU_ASSERT_EQUAL(auth_submit(rig.a, &r, rig.now), -EINVAL);
	r.own = true;
	r.reason = AUTH_HOST_SHUTDOWN;
	CU_ASSERT_EQUAL(auth_submit(rig.a, &r, rig.now), -EINVAL);
	CU_ASSERT_EQUAL(rig.closings, 0);
	rig_check_rest();
	rig_close();
}

/* While the node stops nothing starts; a start under way finishes, and is closed like the rest. */
static void test_stop(void)
{
	uint64_t t, late;

	rig_open();
	rig.hold_dp = true;
	t = rig_activate("i", "twin", 5000);
	rig_shutdown(10000);
	late = rig_activate("j", "twin", 5000);
	CU_ASSERT_EQUAL(rig_kind(late), SPL_E_SHUTTING_DOWN);
	rig_answer(AUTH_FX_PREPARE, "i", RIG_ACCEPT);
	rig_answer(AUTH_FX_PUBLISH, "i", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_is_created(t));
	rig_pass(200); /* the rows are looked through again */
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "i", RIG_ACCEPT));
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig.reason, AUTH_HOST_SHUTDOWN);
	CU_ASSERT_EQUAL(rig_gen("i"), 0);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_EQUAL(rig.forced, 0);
	rig_close();
}

static const struct t_case cases[] = {
	T(test_activated_then_existing, "S-ACT-1", "S-ACT-13", "A-LOC-30"),
	T(test_nothing_else_starts_it, "A-LOC-30", "S-ACT-1", "S-CREATE-1"),
	T(test_wrong_types, "S-ACT-1", "S-CREATE-4", "S-ID-5"),
	T(test_race_of_kinds, "S-ACT-1", "S-ACT-7"),
	T(test_one_start_at_a_time, "S-ACT-7", "S-ACT-11", "A-LOC-36"),
	T(test_failure, "S-ACT-11", "A-LOC-35"),
	T(test_limits, "S-ACT-12"),
	T(test_dead_owner, "A-LOC-37", "S-ACT-13"),
	T(test_crash_while_closing, "S-CLOSE-9", "A-LOC-37"),
	T(test_own_close, "S-CLOSE-1", "S-CLOSE-7", "S-ACT-13"),
	T(test_evicted, "S-IDLE-3", "A-LOC-45"),
	T(test_many_evicted, "S-IDLE-4"),
	T(test_not_idle_any_more, "S-IDLE-2", "S-IDLE-3", "A-LOC-45"),
	T(test_who_is_evicted, "S-IDLE-1", "A-LOC-45"),
	T(test_stop, "S-DRAIN-2", "S-DRAIN-5", "A-DRAIN-4"),
};
const struct t_suite suite_instance = T_SUITE("authority.instance", NULL, NULL, cases);
