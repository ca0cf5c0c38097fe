/* SPDX-License-Identifier: BSD-3-Clause */
/* The planned stop, its outcomes, and the Entry Spot, which is made first and closed last. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include "common/dp.h"

#include <stdio.h>
#include <string.h>

/* ---- planned stop ---- */

static void test_stop_releases_everything(void)
{
	struct row_obj row;
	uint64_t t;
	char id[16];

	rig_open();
	for (int i = 0; i < 600; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		rig_goc(id, "room");
	}
	rig_shutdown(30000);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_EQUAL(rig.forced, 0);
	CU_ASSERT_EQUAL(rig.closings, 600);
	CU_ASSERT_FALSE(rig_lease_there());
	for (int i = 0; i < 600; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		if (rig_row(id, &row, NULL))
			CU_FAIL("a row was not released");
	}
	CU_ASSERT_EQUAL(rig_kind(rig_goc("x", "room")), SPL_E_SHUTTING_DOWN);
	t = rig_find("r1");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.found);
	/* At once after it, another run may create them. */
	auth_destroy(rig.a);
	rig_make(&rig.a);
	rig_start_host();
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r1", "room")));
	rig_close();
}

static void test_stop_lets_accepted_work_finish(void)
{
	struct store_item it;
	struct row_node node;
	uint64_t a, b, f;

	rig_open();
	rig.hold_dp = true;
	a = rig_goc("a", "room");
	b = rig_goc("b", "room");
	rig_shutdown(30000);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_DRAINING);
	CU_ASSERT_TRUE(rig_node_row(&node, &it));
	CU_ASSERT_EQUAL(node.state, AUTH_HOST_DRAINING);
	store_item_free(&it);
	CU_ASSERT_EQUAL(rig_kind(rig_goc("late", "room")), SPL_E_SHUTTING_DOWN);
	f = rig_closing("a", 1);
	CU_ASSERT_EQUAL(rig_kind(f), SPL_E_SHUTTING_DOWN);
	rig_pass(12000); /* the lease is renewed until the end */
	CU_ASSERT_TRUE(rig_lease_there());
	CU_ASSERT_TRUE(rig_kind(b) == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_DISCARD), 2);
	while (rig_answer(AUTH_FX_DISCARD, NULL, RIG_ACCEPT))
		continue;
	rig_pass(200); /* the rows are looked through again */
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_TRUE(rig_kind(a) == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_FALSE(rig_lease_there());
	rig_close();
}

/* on_closing hangs: after the deadline the dataplane is ended by force, then its rows are freed. */
static void test_stop_by_force(void)
{
	struct row_obj row;

	rig_open();
	rig_goc("a", "room");
	rig_goc("b", "room");
	rig.hold_dp = true;
	rig_shutdown(2000);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 2);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig.stopped, 0);
	rig_pass(2900); /* the dataplane has a second to end it itself */
	CU_ASSERT_EQUAL(rig.stopped, 0);
	rig_pass(200);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 1);
	CU_ASSERT_TRUE(rig_row("b", &row, NULL)); /* not while it may still run */
	CU_ASSERT_TRUE(rig_lease_there());
	rig_kill_dp();
	CU_ASSERT_TRUE(rig.stopped == 2 && rig.forced == 1);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_DEADLINE);
	CU_ASSERT_FALSE(rig_row("a", &row, NULL) || rig_row("b", &row, NULL));
	CU_ASSERT_FALSE(rig_lease_there());
	rig_close();
}

/* The lease is lost while on_closing runs: what was closed goes as a dead owner's row does, the
 * lifecycle ends without it, and the outcome says that not everything went as it should. */
static void test_stop_loses_its_lease(void)
{
	struct row_obj row;

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(60000);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	rig_fault(STORE_FAULT_FAIL, STORE_RENEW, -1);
	rig_advance(20000); /* the store has ended it */
	rig_fault(STORE_FAULT_FAIL, STORE_RENEW, 0);
	rig_pass(6000);
	CU_ASSERT_FALSE(rig_lease_there());
	CU_ASSERT_EQUAL(rig.stopped, 0); /* it still closes */
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT));
	rig.hold_dp = false;
	rig_pass(1000);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_TEARDOWN);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "lease was lost"));
	CU_ASSERT_FALSE(rig_row("a", &row, NULL));
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_STOPPED);
	rig_close();
}

static void test_stop_twice_and_without_host(void)
{
	rig_open_bare();
	rig_shutdown(1000);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	rig_shutdown(1000);
	CU_ASSERT_EQUAL(rig.stopped, 1); /* one stop, one end */
	rig_close();
	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(5000);
	rig_shutdown(1);
	rig_pass(100);
	CU_ASSERT_EQUAL(rig.stopped, 0); /* the first deadline counts */
	rig.hold_dp = false;
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_FAIL);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "on_closing failed"));
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_TEARDOWN);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_STOPPED); /* all the same */
	rig_close();
}

static unsigned works(void)
{
	return rig_open_cmds(AUTH_FX_PREPARE) + rig_open_cmds(AUTH_FX_PUBLISH) +
	       rig_open_cmds(AUTH_FX_DISCARD);
}

/* The outcomes (A-DRAIN-3): None when all went well, whatever an earlier close did; Deadline when
 * the dataplane had to end a Spot by force, or died of it; a stop starts and moves nothing. */
static void test_outcomes(void)
{
	struct row_obj row;

	rig_open();
	rig_goc("a", "room");
	rig_goc("b", "room");
	rig.hold_dp = true;
	rig_closing("a", rig_gen("a"));
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_FAIL); /* an on_closing that failed before */
	rig_shutdown(5000);
	CU_ASSERT_TRUE(rig_row("b", &row, NULL) && row.state == AUTH_ROW_READY);
	CU_ASSERT_EQUAL(works(), 0);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "b", RIG_ACCEPT);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_TRUE(rig.outcome == AUTH_STOPPED && rig.stop_reason == AUTH_STOP_NONE);
	rig_close();

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(1000);
	rig_pass(1500);
	rig.late_close = true; /* its deadline has passed in the lane, too */
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_FAIL);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_DEADLINE);
	CU_ASSERT_FALSE(rig_row("a", &row, NULL));
	rig_close();

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(5000);
	rig_kill_dp(); /* nobody can run on_closing any more */
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_TEARDOWN);
	rig_close();
}

/* States have their numbers, one for both processes, and only Serving is ready. */
static void test_states(void)
{
	static const struct {
		enum auth_host_state state;
		int number, dataplane;
	} states[] = {
		{AUTH_HOST_PREPARING, 0, DP_HOST_PREPARING},
		{AUTH_HOST_SERVING, 1, DP_HOST_SERVING},
		{AUTH_HOST_DRAINING, 4, DP_HOST_DRAINING},
		{AUTH_HOST_STOPPED, 5, DP_HOST_STOPPED},
		{AUTH_HOST_ERROR, 6, DP_HOST_ERROR},
	};

	for (size_t i = 0; i < T_COUNT(states); i++) {
		CU_ASSERT_EQUAL((int)states[i].state, states[i].number);
		CU_ASSERT_EQUAL(states[i].dataplane, states[i].number);
		CU_ASSERT_EQUAL(auth_host_is_ready(states[i].state), states[i].number == 1);
	}
	CU_ASSERT(DP_HOST_RELOCATING == 2 && DP_HOST_RELOCATED == 3);
	CU_ASSERT_FALSE(auth_host_is_ready(AUTH_HOST_NONE));
	rig_open_bare();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_NONE);
	rig_start_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING); /* as the dataplane was told */
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(1000);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_DRAINING);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_DRAINING);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_STOPPED);
	rig_close();
}

/* The Entry Spot is made before the host serves, by nobody else closed, and it is the last one that
 * a stop closes; a control that comes to a living dataplane leaves it as it is. */
static void test_entry(void)
{
	char id[256];
	uint64_t gen;

	rig_open_bare();
	rig.entry.hold = true;
	rig_start_host();
	snprintf(id, sizeof(id), "%.*s", rig.id.entry_id.len, rig.id.entry_id.b);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_PREPARING);
	CU_ASSERT_EQUAL(rig.entry.asked, 1);
	CU_ASSERT_EQUAL(rig_kind(rig_find(id)), -1); /* not seen before it is there */
	rig.entry.hold = false;
	auth_event(rig.a, &(struct auth_event){.kind = AUTH_EV_LINK_UP}, rig.now);
	rig_run();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig.entry.made == 1 && rig.entry.is_there);
	CU_ASSERT_EQUAL(rig.entry.obj_gen, (uint64_t)rig.id.entry_gen);
	CU_ASSERT_EQUAL(rig_got(rig_ask(AUTH_RESOLVE, id))->r.route, AUTH_ROUTE_READY);
	gen = rig_gen(id);
	CU_ASSERT_EQUAL(rig_kind(rig_closing(id, gen)), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_kind(rig_own_close(id, gen, AUTH_EXPLICIT_CLOSE)),
			SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_kind(rig_own_close(id, gen, AUTH_IDLE_EVICTED)),
			SPL_E_INVALID_OPERATION);
	rig_goc("a", "room");
	rig_goc("b", "room");
	rig_restart_control();
	rig_resume_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig.entry.made == 1 && rig.entry.closed == 0);
	rig_shutdown(1000);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.outcome == AUTH_STOPPED);
	CU_ASSERT_TRUE(rig.entry.closed == 1 && rig.entry.others == 0);
	CU_ASSERT_EQUAL(rig_gen(id), 0);
	rig_close();
}

/* A callback of it that fails: no node; at the stop: the outcome says so. A dataplane that dies
 * while it makes it is buried as ever. */
static void test_entry_fails(void)
{
	rig_open_bare();
	rig.entry.fails = true;
	rig_start_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_ERROR);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.entry.asked == 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "Entry Spot"));
	CU_ASSERT_FALSE(rig_lease_there());
	rig_close();

	rig_open();
	rig.entry.fails = true;
	rig_shutdown(1000);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.outcome == AUTH_FORCE_STOPPED &&
		       rig.stop_reason == AUTH_STOP_TEARDOWN);
	rig_close();

	/* The lease had run out over there for a while: tried again, each time a little later, and
	 * no end of the node. */
	rig_open_bare();
	rig.entry.lapses = 3;
	rig_start_host();
	CU_ASSERT_EQUAL(rig.entry.asked, 1);
	rig_pass(90);
	CU_ASSERT_EQUAL(rig.entry.asked, 1);
	rig_pass(20);
	CU_ASSERT_EQUAL(rig.entry.asked, 2);
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig.entry.asked, 5); /* four times PREPARE, once PUBLISH */
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig.entry.made == 1 && rig.stopped == 0);
	rig_close();

	rig_open_bare();
	rig.entry.hold = true;
	rig_start_host();
	rig_kill_dp();
	rig.entry.hold = false;
	rig_start_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(rig.entry.made, 1);
	rig_close();
}

/* A start that hangs ends with the stop: its caller hears it once, nothing of it stays, and the
 * rest is closed in time (S-DRAIN-5). */
static void test_stop_ends_a_start_under_way(void)
{
	struct row_cap cap;
	uint64_t t, w;

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	t = rig_activate("i", "twin", 60000);
	w = rig_activate("i", "twin", 50000);
	rig_shutdown(2000);
	/* It has the time that it was given, and keeps nobody else from closing in his. */
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_gen("a"), 0);
	rig_pass(1900);
	CU_ASSERT_TRUE(rig_kind(t) == -1 && rig_kind(w) == -1);
	rig_pass(200);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_SHUTTING_DOWN);
	CU_ASSERT_EQUAL(rig_kind(w), SPL_E_SHUTTING_DOWN);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "i", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_gen("i"), 0);
	CU_ASSERT_TRUE(rig_cap(&cap));
	CU_ASSERT_TRUE(cap.spots_reserved == 0 && cap.pending == 0);
	rig_pass(200); /* the rows are looked through once more */
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_TRUE(rig_got(t)->times == 1 && rig_got(w)->times == 1);
	rig_close();
}

/* A stop while the Entry Spot is being made, which hangs: it does not wait for it. */
static void test_stop_ends_the_entry_start(void)
{
	rig_open_bare();
	rig.entry.hold = true;
	rig_start_host();
	CU_ASSERT_EQUAL(rig.entry.asked, 1);
	rig.entry.hold = false;
	rig_shutdown(30000);
	CU_ASSERT_EQUAL(rig.entry.discarded, 1);
	rig_pass(1000);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.outcome == AUTH_STOPPED);
	CU_ASSERT_TRUE(rig.entry.made == 0 && rig.entry.closed == 0);
	CU_ASSERT_FALSE(rig_lease_there());
	rig_close();
	/* Or while it waits to be tried again. */
	rig_open_bare();
	rig.entry.lapses = 100;
	rig_start_host();
	rig_pass(500);
	rig_shutdown(30000);
	rig_pass(100);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.outcome == AUTH_STOPPED);
	rig_close();
}

static void test_stop_with_store_trouble(void)
{
	const enum store_op ops[] = {STORE_TXN, STORE_SCAN, STORE_REVOKE};
	const enum store_fault faults[] = {STORE_FAULT_FAIL, STORE_FAULT_LOSE, STORE_FAULT_DROP};
	struct row_obj row;

	for (size_t i = 0; i < T_COUNT(ops); i++)
		for (size_t f = 0; f < T_COUNT(faults); f++) {
			rig_open();
			rig_goc("a", "room");
			rig_goc("b", "room");
			rig_fault(faults[f], ops[i], 2);
			rig_shutdown(30000);
			rig_pass(5000);
			CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
			CU_ASSERT_FALSE(rig_row("a", &row, NULL) || rig_row("b", &row, NULL));
			CU_ASSERT_FALSE(rig_lease_there());
			rig_close();
		}
	/* A store that never comes back: the stop ends all the same, and says so. */
	rig_open();
	rig_goc("a", "room");
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, -1);
	rig_shutdown(2000);
	rig_pass(3100);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 1);
	rig_kill_dp();
	rig_pass(10000);
	CU_ASSERT_EQUAL(rig.stopped, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "reclaimed"));
	rig_close();
}

static const struct t_case cases[] = {
	T(test_stop_releases_everything, "A-DRAIN-4", "A-DRAIN-5", "A-NODE-3", "S-DRAIN-3"),
	T(test_stop_lets_accepted_work_finish, "A-LEASE-10", "S-CREATE-12", "S-DRAIN-2"),
	T(test_stop_by_force, "A-DRAIN-3", "S-DRAIN-4"),
	T(test_stop_loses_its_lease, "A-DRAIN-3", "A-LEASE-7"),
	T(test_stop_twice_and_without_host, "A-DRAIN-6", "A-DRAIN-9", "S-CLOSING-3"),
	T(test_outcomes, "A-DRAIN-3", "S-CLOSING-3", "S-DRAIN-6", "A-DRAIN-9"),
	T(test_states, "S-DRAIN-1", "A-DRAIN-1"),
	T(test_entry, "S-ENTRY-1", "S-ENTRY-2", "S-CLOSE-1", "A-DRAIN-4"),
	T(test_entry_fails, "S-ENTRY-1", "S-CLOSING-3"),
	T(test_stop_ends_a_start_under_way, "S-DRAIN-5"),
	T(test_stop_ends_the_entry_start, "A-DRAIN-2", "S-ENTRY-1"),
	T(test_stop_with_store_trouble, "A-DRAIN-3"),
};
const struct t_suite suite_stop = T_SUITE("authority.stop", NULL, NULL, cases);
