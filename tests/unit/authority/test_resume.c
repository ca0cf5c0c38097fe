/* SPDX-License-Identifier: BSD-3-Clause */
/* Control dies and comes back while its dataplane lives on; the private socket breaks. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <string.h>

static void test_resume(void)
{
	struct auth_host_id before;
	struct row_obj row;
	uint64_t t, gen, ready_gen;
	struct auth_status s;

	rig_open();
	rig_goc("ready", "room");
	rig_row("ready", &row, &ready_gen);
	rig_goc("closing", "room");
	rig_row("closing", &row, &gen);
	rig.hold_dp = true;
	rig_goc_op("staging", "room", 800, 60000); /* the dataplane is still at it */
	rig_goc_op("lost", "room", 801, 60000);	   /* the command never arrived */
	rig_closing("closing", gen);
	before = rig.id;
	rig_restart_control();
	/* The dataplane finished staging meanwhile. */
	{
		struct rig_object *o;

		rig_row("staging", &row, &gen);
		rig.hold_dp = false;
		o = rig_object_add("staging");
		o->obj_gen = gen;
		o->own_gen = 1;
		o->attempt = row.pending.attempt;
		o->state = AUTH_INV_STAGING;
		rig.factories++;
		o = rig_object_add("orphan"); /* no row: it has to go */
		o->obj_gen = 4711;
		o->state = AUTH_INV_READY;
		rig_object("closing")->state = AUTH_INV_CLOSING;
	}
	rig_resume_host();
	CU_ASSERT_EQUAL(rig.inventories, 1);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(memcmp(&rig.id, &before, sizeof(before)), 0);
	CU_ASSERT_EQUAL(rig.lease_lost, 0);
	rig_pass(500);
	CU_ASSERT_TRUE(rig_row("ready", &row, &gen) && gen == ready_gen);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("ready", "room")));
	CU_ASSERT_TRUE(rig_row("staging", &row, NULL) && row.state == AUTH_ROW_READY);
	CU_ASSERT_FALSE(rig_row("lost", &row, NULL));
	CU_ASSERT_FALSE(rig_row("closing", &row, NULL));
	CU_ASSERT_PTR_NULL(rig_object("orphan"));
	/* The repeats of the operations that were under way get their ends. */
	t = rig_goc_op("staging", "room", 800, 60000);
	CU_ASSERT_TRUE(rig_is_created(t));
	t = rig_goc_op("lost", "room", 801, 60000);
	CU_ASSERT_TRUE(rig_is_created(t));
	/* ready, closing, staging once, lost once. */
	CU_ASSERT_EQUAL(rig.factories, 4);
	auth_status(rig.a, &s);
	CU_ASSERT_EQUAL(s.spots, 3);
	rig_check_rest();
	rig_close();
}

/* The repeat arrives before the resume is through: it takes its old attempt over. */
static void test_resume_with_waiting_repeat(void)
{
	struct row_obj row;
	uint64_t t, other, cl, gen;

	rig_open();
	rig_goc("c", "room");
	rig_row("c", &row, &gen);
	rig.hold_dp = true;
	rig_goc_op("staging", "room", 800, 60000);
	rig_restart_control();
	rig.hold_store = true;
	rig_resume_host();
	t = rig_goc_op("staging", "room", 800, 60000);
	other = rig_goc_op("other", "room", 802, 60000);
	cl = rig_closing("c", gen);
	for (int i = 0; i < 20 && rig.held; i++)
		rig_release_store();
	rig.hold_store = false;
	rig_pass(300);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	while (rig_answer(AUTH_FX_DISCARD, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_CLOSE_LOCAL, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT))
		rig_pass(200);
	rig_pass(10000);
	while (rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT))
		continue;
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_TRUE(rig_is_created(other));
	CU_ASSERT_TRUE(rig_kind(cl) == SPL_OK && rig_got(cl)->r.closed);
	rig_check_rest();
	rig_close();
}

/* Control was away longer than the lease: as a lost token. */
static void test_resume_too_late(void)
{
	struct row_obj row;
	uint64_t gen, gen2;

	rig_open();
	rig_goc("r", "room");
	rig_row("r", &row, &gen);
	rig_restart_control();
	rig.now += 60000 * MS;
	rig_resume_host();
	rig_pass(100);
	CU_ASSERT_EQUAL(rig.lease_lost, 1);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig_row("r", &row, &gen2) && gen2 == gen && row.own_gen == 2);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

static void test_resume_with_store_trouble(void)
{
	const enum store_op ops[] = {STORE_READ, STORE_RENEW, STORE_SCAN, STORE_TXN};
	struct row_obj row;

	for (size_t i = 0; i < T_COUNT(ops); i++) {
		rig_open();
		rig_goc("r", "room");
		rig_restart_control();
		rig_fault(STORE_FAULT_FAIL, ops[i], 2);
		rig_resume_host();
		rig_pass(5000);
		CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
		CU_ASSERT_TRUE(rig_row("r", &row, NULL) && row.own_gen == 1);
		CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
		rig_check_rest();
		rig_close();
	}
}

static void test_link_up_sends_again(void)
{
	struct auth_event e = {.kind = AUTH_EV_LINK_UP};
	uint64_t t;

	rig_open();
	rig.dead_dp = true; /* the command is lost with the connection */
	t = rig_goc("r", "room");
	rig.dead_dp = false;
	CU_ASSERT_EQUAL(rig.factories, 0);
	auth_event(rig.a, &e, rig.now);
	rig_run();
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_EQUAL(rig.factories, 1);
	CU_ASSERT_EQUAL(rig.host_ready, 2); /* identity and state are told again, too */
	rig_check_rest();
	rig_close();
}

/* The factory declined, which leaves nothing, and the answer was lost with the connection: it runs
 * once more for the same attempt, and that answer counts. */
static void test_the_factory_runs_again_for_its_attempt(void)
{
	struct auth_event e = {.kind = AUTH_EV_LINK_UP};
	const struct rig_cmd *k = &rig.cmds[0];
	uint64_t t, attempt, gen;

	rig_open();
	rig.hold_dp = true;
	t = rig_goc("r", "room");
	CU_ASSERT_EQUAL_FATAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	while (!k->open || k->kind != AUTH_FX_PREPARE)
		k++;
	attempt = k->c.attempt;
	gen = k->c.fence.obj_gen;
	rig.factories++;
	auth_event(rig.a, &e, rig.now);
	rig_run();
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PREPARE), 1);
	CU_ASSERT_TRUE(k->open && k->c.again);
	CU_ASSERT_TRUE(k->c.attempt == attempt && k->c.fence.obj_gen == gen);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig.factories, 2);
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_EQUAL(rig_got(t)->times, 1);
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	rig_check_rest();
	rig_close();
}

/* Ready in the store, and its admission was not opened before control died: nobody is sent there
 * until the new control has compared its rows with the dataplane. */
static void test_no_route_before_the_comparison(void)
{
	uint64_t t;

	rig_open();
	rig.hold_dp = true;
	rig_goc("r", "room");
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_PUBLISH), 1);
	rig_restart_control();
	rig.hold_store = true;
	rig_resume_host();
	t = rig_ask(AUTH_RESOLVE, "r");
	for (int i = 0; i < 10; i++)
		rig_release_store();
	rig.hold_store = false;
	rig_release_store();
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	rig_pass(1000);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.route == AUTH_ROUTE_READY);
	rig.hold_dp = false;
	rig_check_rest();
	rig_close();
}

static const struct t_case cases[] = {
	T(test_no_route_before_the_comparison, "A-FAIL-7"),
	T(test_resume, "A-FAIL-4", "A-LOC-23", "S-CREATE-7"),
	T(test_resume_with_waiting_repeat, "A-LOC-14", "S-CREATE-7"),
	T(test_resume_too_late, "A-LEASE-9"),
	T(test_resume_with_store_trouble, "A-FAIL-7"),
	T(test_link_up_sends_again, "A-LOC-15"),
	T(test_the_factory_runs_again_for_its_attempt, "A-LOC-22"),
};
const struct t_suite suite_resume = T_SUITE("authority.resume", NULL, NULL, cases);
