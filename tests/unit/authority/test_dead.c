/* SPDX-License-Identifier: BSD-3-Clause */
/* Dead dataplanes and dead nodes: what stays, what may be reclaimed, and when. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Both daemons are killed; a new control starts on the same store. */
static void crash_both(void)
{
	memset(rig.objects, 0, sizeof(rig.objects));
	rig_restart_control();
}

static void tell_life(const struct auth_host_id *id, int state)
{
	struct auth_event e = {.kind = AUTH_EV_LIFECYCLE};

	e.u.lifecycle.rid = id->rid;
	e.u.lifecycle.lifecycle = id->lifecycle;
	e.u.lifecycle.state = state;
	auth_event(rig.a, &e, rig.now);
	rig_run();
}

/* Everything that asks for `id` hears that its owner is gone, and no factory runs. */
static void check_unavailable(const char *id)
{
	unsigned factories = rig.factories;
	uint64_t t;

	CU_ASSERT_EQUAL(rig_kind(rig_find(id)), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_kind(rig_goc(id, "room")), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_kind(rig_goc(id, "cart")), SPL_E_TYPE_MISMATCH);
	t = rig_ask(AUTH_RESOLVE, id);
	CU_ASSERT_EQUAL(rig_got(t)->r.route, AUTH_ROUTE_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_kind(rig_closing(id, rig_gen(id))), SPL_E_UNAVAILABLE);
	t = rig_ask(AUTH_SHOW, id);
	CU_ASSERT_TRUE(rig_got(t)->r.found && rig_got(t)->r.entry.unavailable);
	CU_ASSERT_EQUAL(rig.factories, factories);
}

static void test_owner_dies(void)
{
	uint64_t t, gen;

	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	rig_kill_dp();
	CU_ASSERT_EQUAL(rig_gen("r"), gen); /* the row is not changed */
	check_unavailable("r");
	CU_ASSERT_EQUAL(rig_kind(rig_goc("new", "room")), SPL_E_UNAVAILABLE); /* nobody hosts */
	rig_start_host();
	check_unavailable("r"); /* a new dataplane never gets the old Spots */
	t = rig_ask(AUTH_RECLAIM_ID, "r");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.reclaimed == 1);
	t = rig_goc("r", "room");
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_TRUE(rig_gen("r") > gen);
	rig_check_rest();
	rig_close();
}

/* Killed at each step of a creation: one terminal each, nothing is left, the slot is back. */
static void test_dies_while_creating(void)
{
	struct row_obj row;
	uint64_t a, b, c;

	for (int step = 0; step < 4; step++) {
		rig_open();
		rig.hold_dp = true;
		if (step == 0)
			rig.hold_store = true;
		a = rig_goc_in("r", "room", 20000);
		b = rig_goc_in("r", "room", 20000);
		if (step == 2)
			rig.hold_store = true;
		if (step >= 2)
			rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT);
		rig_kill_dp();
		rig.hold_store = false;
		while (rig.held)
			rig_release_store();
		CU_ASSERT_EQUAL(rig_kind(a), SPL_E_UNAVAILABLE);
		CU_ASSERT_EQUAL(rig_kind(b), SPL_E_UNAVAILABLE);
		rig_start_host();
		rig.hold_dp = false;
		if (step >= 2) { /* the commit was out or done: Ready, with a dead owner */
			CU_ASSERT_TRUE(rig_row("r", &row, NULL) && row.state == AUTH_ROW_READY);
			check_unavailable("r");
		} else {
			CU_ASSERT_FALSE(rig_row("r", &row, NULL));
		}
		c = rig_ask(AUTH_RECLAIM_ID, "r");
		CU_ASSERT_EQUAL(rig_kind(c), SPL_OK);
		CU_ASSERT_EQUAL(rig_got(c)->r.reclaimed, step >= 2);
		c = rig_goc("r", "room");
		CU_ASSERT_TRUE(rig_is_created(c));
		rig_check_rest();
		rig_close();
	}
}

static void test_dies_while_closing(void)
{
	uint64_t t, gen;

	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	rig.hold_dp = true;
	t = rig_closing("r", gen);
	rig_kill_dp();
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	rig.hold_dp = false;
	rig_start_host();
	check_unavailable("r"); /* nobody takes over */
	CU_ASSERT_EQUAL(rig.closings, 0);
	t = rig_ask(AUTH_RECLAIM_ID, "r");
	CU_ASSERT_EQUAL(rig_got(t)->r.reclaimed, 1);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
	rig_close();
}

static void test_start_waits_for_the_burial(void)
{
	rig_open();
	rig_goc("r", "room");
	rig.fault = STORE_FAULT_FAIL;
	rig.fault_op = STORE_REVOKE;
	rig.fault_times = 3;
	rig_kill_dp();
	rig_start_host();
	CU_ASSERT_EQUAL(rig.host_ready, 1); /* the old lease is not let go yet */
	rig_pass(2000);
	CU_ASSERT_EQUAL(rig.host_ready, 2);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("s", "room")));
	{
		struct auth_event e = {.kind = AUTH_EV_HOST_START};

		CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), -EINVAL); /* one at a time */
	}
	rig_check_rest();
	rig_close();
}

/* ---- reclaim ---- */

static void test_reclaim_refused(void)
{
	struct auth_host_id old;
	uint64_t t, gen;
	char text[256];

	rig_open();
	rig_goc("mine", "room");
	CU_ASSERT_EQUAL(rig_kind(rig_ask(AUTH_RECLAIM_ID, "mine")), SPL_E_INVALID_OPERATION);
	snprintf(text, sizeof(text), "%.*s", rig.id.rid.len, rig.id.rid.b);
	CU_ASSERT_EQUAL(rig_kind(rig_ask(AUTH_RECLAIM_NODE, text)), SPL_E_INVALID_OPERATION);
	snprintf(text, sizeof(text), "%.*s", rig.id.entry_id.len, rig.id.entry_id.b);
	CU_ASSERT_EQUAL(rig_kind(rig_ask(AUTH_RECLAIM_ID, text)), SPL_E_INVALID_OPERATION);
	t = rig_ask(AUTH_RECLAIM_ID, "none");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.reclaimed == 0);
	CU_ASSERT_EQUAL(rig.checks, 0);
	gen = rig_gen("mine");
	old = rig.id;
	crash_both();
	/* Its process lives, says the machine: refused, whatever the lease says. */
	rig.life = RIG_HELD;
	CU_ASSERT_EQUAL(rig_kind(rig_ask(AUTH_RECLAIM_ID, "mine")), SPL_E_INVALID_OPERATION);
	snprintf(text, sizeof(text), "%.*s", old.rid.len, old.rid.b);
	CU_ASSERT_EQUAL(rig_kind(rig_ask(AUTH_RECLAIM_NODE, text)), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig.checks, 2);
	CU_ASSERT_EQUAL(memcmp(rig.check_rid.b, old.rid.b, old.rid.len), 0);
	/* Nothing is known of it: the lease decides, and it stands. */
	rig.life = RIG_UNKNOWN;
	t = rig_ask(AUTH_RECLAIM_ID, "mine");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.reclaimed == 0 &&
		       rig_got(t)->r.kept == 1);
	t = rig_ask(AUTH_RECLAIM_NODE, text);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.reclaimed == 0 &&
		       rig_got(t)->r.kept == 1);
	CU_ASSERT_EQUAL(rig_gen("mine"), gen);
	rig_pass(15000); /* now the lease is gone */
	t = rig_ask(AUTH_RECLAIM_NODE, text);
	CU_ASSERT_EQUAL(rig_got(t)->r.reclaimed, 1);
	CU_ASSERT_EQUAL(rig.gone, 0); /* its process may still be there */
	CU_ASSERT_EQUAL(rig_gen("mine"), 0);
	/* The driver never answers: the deadline does. */
	rig_start_host();
	rig_goc("b", "room");
	crash_both();
	rig.life = RIG_SILENT;
	t = rig_ask(AUTH_RECLAIM_ID, "b");
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	rig_pass(10000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_DEADLINE_EXCEEDED);
	rig_close();
}

/* Proved ended: its lease is let go, then its rows; those of others stay. */
static void test_reclaim_node(void)
{
	struct auth_host_id old;
	uint64_t t, gen;
	char text[256], id[16];

	rig_open();
	for (int i = 0; i < 700; i++) {
		snprintf(id, sizeof(id), "old%d", i);
		rig_goc(id, "room");
	}
	old = rig.id;
	crash_both();
	rig_start_host();
	rig_goc("other", "room");
	gen = rig_gen("other");
	/* Its lease stands: as far as the store knows, its owner may live. */
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("old5", "room")));
	rig.life = RIG_ENDED;
	snprintf(text, sizeof(text), "%.*s", old.rid.len, old.rid.b);
	t = rig_ask(AUTH_RECLAIM_NODE, text);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.reclaimed == 700 &&
		       rig_got(t)->r.kept == 0);
	for (int i = 0; i < 700; i++) {
		snprintf(id, sizeof(id), "old%d", i);
		if (rig_gen(id))
			CU_FAIL("a row is left");
	}
	CU_ASSERT_EQUAL(rig_gen("other"), gen);
	CU_ASSERT_EQUAL(rig.gone, 1);
	t = rig_ask(AUTH_RECLAIM_NODE, text); /* again: nothing to do */
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.reclaimed == 0);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("old5", "room")));
	rig_check_rest();
	rig_close();
}

/* The row changed between its read and the delete. */
static void test_reclaim_meets_a_change(void)
{
	char key[ROW_KEY_MAX];
	struct store_mut m = {.key = {key, 0}};
	struct store_txn x = {.muts = &m, .n_muts = 1};
	struct store_item it;
	uint64_t t;

	rig_open();
	rig_goc("r", "room");
	rig_kill_dp();
	rig.hold_store = true;
	t = rig_ask(AUTH_RECLAIM_ID, "r");
	rig_release_store(); /* the row */
	rig_release_store(); /* the lease, then the row once more */
	m.key.n = row_key_obj(key, (struct auth_bytes){"r", 1});
	for (int i = 0; i < 10 && rig.held && rig.held->reqs[0].op != STORE_TXN; i++)
		rig_release_store();
	CU_ASSERT_EQUAL(store_read(rig.st, m.key, &it), STORE_OK);
	m.val = (struct store_bytes){it.val, it.len};
	CU_ASSERT_EQUAL(store_commit(rig.st, &x), STORE_OK);
	store_item_free(&it);
	rig.hold_store = false;
	rig_release_store();
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.kept == 1);
	CU_ASSERT_TRUE(rig_gen("r") > 0);
	rig_close();
}

/* The same in a sweep: what was kept is something that is left. */
static void test_reclaim_node_meets_a_change(void)
{
	char key[ROW_KEY_MAX], text[256];
	struct store_mut m = {.key = {key, 0}};
	struct store_txn x = {.muts = &m, .n_muts = 1};
	struct store_item it;
	uint64_t t;

	rig_open();
	rig_goc("r", "room");
	snprintf(text, sizeof(text), "%.*s", rig.id.rid.len, rig.id.rid.b);
	crash_both();
	rig.life = RIG_ENDED;
	rig.hold_store = true;
	t = rig_ask(AUTH_RECLAIM_NODE, text);
	for (int i = 0; i < 20 && rig.held && rig.held->reqs[0].op != STORE_TXN; i++)
		rig_release_store();
	m.key.n = row_key_obj(key, (struct auth_bytes){"r", 1});
	CU_ASSERT_EQUAL_FATAL(store_read(rig.st, m.key, &it), STORE_OK);
	m.val = (struct store_bytes){it.val, it.len};
	CU_ASSERT_EQUAL(store_commit(rig.st, &x), STORE_OK);
	store_item_free(&it);
	rig.hold_store = false;
	rig_release_store();
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.kept == 1);
	CU_ASSERT_EQUAL(rig.gone, 0);
	rig_close();
}

static void test_on_restart(void)
{
	struct auth_host_id old;
	uint64_t gen;

	rig_reset();
	rig.on_restart = true;
	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	rig_kill_dp(); /* seen by this control: proved */
	CU_ASSERT_EQUAL(rig_gen("r"), 0);
	rig_start_host();
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
	CU_ASSERT_TRUE(rig_gen("r") > gen);
	/* Both die: the machine proves the end, at the start of the next control. */
	old = rig.id;
	crash_both();
	tell_life(&old, AUTH_LIFE_ENDED);
	rig_start_host();
	CU_ASSERT_EQUAL(rig_gen("r"), 0);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
	rig_check_rest();
	/* Not proved: kept, also when the lease is gone. */
	old = rig.id;
	gen = rig_gen("r");
	crash_both();
	tell_life(&old, AUTH_LIFE_UNKNOWN);
	rig_pass(20000);
	rig_start_host();
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	check_unavailable("r");
	rig_close();
}

static void test_manual_frees_nothing(void)
{
	struct auth_host_id old;
	uint64_t gen;

	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	old = rig.id;
	crash_both();
	tell_life(&old, AUTH_LIFE_ENDED);
	rig_start_host();
	rig_pass(20000);
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	check_unavailable("r");
	rig_close();
}

/* A Creating row of a dead attempt: kept while its lease stands, then cancelled by whoever needs
 * the id; never judged by age. */
static void test_creating_left_behind(void)
{
	struct row_obj row;
	uint64_t t, f, gen;

	rig_open();
	rig.hold_dp = true;
	rig_goc_in("r", "room", 100);
	gen = rig_gen("r");
	crash_both();
	rig.hold_dp = false;
	rig_start_host(); /* its first scan may not cancel it: that lease still stands */
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	f = rig_find("r");
	CU_ASSERT_TRUE(rig_kind(f) == SPL_OK && !rig_got(f)->r.found);
	t = rig_goc_in("r", "room", 60000);
	rig_pass(10000);
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	rig_pass(10000);
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_TRUE(rig_row("r", &row, NULL) && rig_gen("r") > gen);
	CU_ASSERT_EQUAL(rig.factories, 1);
	rig_check_rest();
	/* And the scan of a start removes it when the lease is gone by then. */
	rig.hold_dp = true;
	rig_goc_in("s", "room", 100);
	crash_both();
	rig_pass(20000);
	rig.hold_dp = false;
	rig_start_host();
	CU_ASSERT_EQUAL(rig_gen("s"), 0);
	rig_close();
}

static const struct t_case cases[] = {
	T(test_owner_dies, "A-FAIL-3", "A-LOC-37", "A-FAIL-10", "A-LOC-18"),
	T(test_dies_while_creating, "A-FAIL-4", "S-CREATE-8", "A-LOC-23"),
	T(test_dies_while_closing, "S-CLOSE-9"),
	T(test_start_waits_for_the_burial),
	T(test_reclaim_refused, "A-FAIL-10", "A-LEASE-12", "A-LOC-7"),
	T(test_reclaim_node, "A-FAIL-10"),
	T(test_reclaim_node_meets_a_change),
	T(test_reclaim_meets_a_change, "A-FAIL-10", "A-LOC-4"),
	T(test_on_restart, "A-FAIL-10"),
	T(test_manual_frees_nothing, "A-FAIL-3", "A-LOC-7"),
	T(test_creating_left_behind, "A-LOC-23", "A-FAIL-4"),
};
const struct t_suite suite_dead = T_SUITE("authority.dead", NULL, NULL, cases);
