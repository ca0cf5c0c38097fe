/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of the authority that are in doubt (a lost answer, a row that changed after it was read)
 * while something else goes on: each was found by a random run that left an id unusable. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

/* A creation is in doubt while the token is lost and claimed again: its rows are read before the
 * new descriptor is written, and that says nothing about the new token. */
static void test_doubt_over_a_new_claim(void)
{
	uint64_t t;

	rig_open();
	rig.hold_store = true;
	t = rig_goc_in("r", "room", 120000);
	rig_release_store(); /* no row */
	rig_fault(STORE_FAULT_LOSE, STORE_TXN, 1);
	rig_release_store(); /* T4 */
	rig_fault(STORE_FAULT_FAIL, STORE_READ, -1);
	rig_release_store(); /* and nobody can tell what became of it */
	CU_ASSERT_PTR_NULL(rig.held);
	rig.now += 60000 * MS;
	rig_advance(0);
	rig_release_store(); /* the renewal: the lease is gone */
	CU_ASSERT_EQUAL(rig.lease_lost, 1);
	rig_fault(STORE_FAULT_NONE, STORE_READ, 0);
	rig.hold_store = false;
	rig_release_store();
	rig_pass(30000);
	CU_ASSERT_EQUAL(rig.lease_lost, 1);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

/* The inventory is complete and the rows are being compared when the private socket breaks: it is
 * not asked for again. */
static void test_link_up_after_the_inventory(void)
{
	struct auth_event up = {.kind = AUTH_EV_LINK_UP};

	rig_open();
	rig_goc("r", "room");
	rig_restart_control();
	rig.hold_store = true;
	rig_resume_host();
	rig_release_store(); /* its rows */
	rig_release_store(); /* the lease; now the inventory was given and the scan is out */
	CU_ASSERT_EQUAL(rig.inventories, 1);
	CU_ASSERT_PTR_NOT_NULL(rig.held);
	CU_ASSERT_EQUAL(auth_event(rig.a, &up, rig.now), 0);
	rig_run();
	CU_ASSERT_EQUAL(rig.inventories, 1);
	rig.hold_store = false;
	rig_release_store();
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

/* The token is lost between the inventory and the end of the comparison: what was listed belongs
 * to that resume only. */
static void test_token_lost_in_a_resume(void)
{
	rig_open();
	rig_goc("r", "room");
	rig_restart_control();
	rig.hold_store = true;
	rig_resume_host();
	rig_release_store();
	rig_release_store();
	CU_ASSERT_EQUAL(rig.inventories, 1);
	rig.now += 60000 * MS;
	rig_fault(STORE_FAULT_FAIL, STORE_SCAN, 1);
	rig.hold_store = false;
	rig_release_store();
	rig_advance(0);
	rig_pass(2000);
	CU_ASSERT_EQUAL(rig.lease_lost, 1);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	rig_restart_control();
	rig_resume_host();
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig.inventories, 2);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

/* T18 was written, its answer lost, and the row cannot be read for a while: nobody is told an end
 * that is none, and the Spot does not stay Closing. */
static void test_close_in_doubt(void)
{
	uint64_t t;

	rig_open();
	rig_goc("r", "room");
	rig.hold_store = true;
	t = rig_closing("r", rig_gen("r"));
	rig_release_store(); /* the row */
	rig_fault(STORE_FAULT_LOSE, STORE_TXN, 1);
	rig_release_store(); /* T18 */
	rig_fault(STORE_FAULT_FAIL, STORE_READ, 3);
	rig.hold_store = false;
	rig_release_store();
	CU_ASSERT_EQUAL(rig_kind(t), -1);
	rig_pass(5000);
	CU_ASSERT_EQUAL(rig.fault_times, 0);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.closed);
	CU_ASSERT_EQUAL(rig_gen("r"), 0);
	CU_ASSERT_EQUAL(rig.closings, 1);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

/* A close comes while the commit of the creation is in doubt: the row is Ready already, and there
 * is one work at a time for an id. */
static void test_close_during_a_doubtful_commit(void)
{
	uint64_t t, cl;

	rig_open();
	rig.hold_dp = true;
	t = rig_goc("r", "room");
	rig.hold_store = true;
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	rig_fault(STORE_FAULT_LOSE, STORE_TXN, 1);
	rig_release_store(); /* T5 */
	rig_fault(STORE_FAULT_FAIL, STORE_READ, 3);
	rig_release_store(); /* what became of it cannot be read */
	rig_fault(STORE_FAULT_NONE, STORE_READ, 0);
	rig.hold_store = false;
	cl = rig_closing("r", rig_gen("r"));
	CU_ASSERT_EQUAL(rig_kind(cl), -1);
	rig.hold_dp = false;
	rig_pass(200);
	while (rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT))
		continue;
	rig_pass(1000);
	CU_ASSERT_TRUE(rig_is_created(t));
	CU_ASSERT_TRUE(rig_kind(cl) == SPL_OK && rig_got(cl)->r.closed);
	CU_ASSERT_EQUAL(rig_gen("r"), 0);
	rig_check_rest();
	rig_close();
}

/* After a lost token a Spot is adopted; its row is written once more between scan and adoption. */
static void test_adoption_of_a_touched_row(void)
{
	struct row_obj row;

	rig_open();
	rig_goc("r", "room");
	rig.now += 60000 * MS;
	rig.hold_store = true;
	rig_advance(0);
	for (int i = 0; i < 20; i++) {
		rig_touch("r");
		rig_release_store();
	}
	rig.hold_store = false;
	rig_release_store();
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig.lease_lost, 1);
	CU_ASSERT_PTR_NOT_NULL(rig_object("r"));
	CU_ASSERT_TRUE(rig_row("r", &row, NULL) && row.own_gen == 2 &&
		       row.owner.lease_gen == (int64_t)rig.id.lease_gen);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	rig_check_rest();
	rig_close();
}

static const struct t_case cases[] = {
	T(test_doubt_over_a_new_claim, "A-LEASE-9", "A-FAIL-7"),
	T(test_link_up_after_the_inventory, "A-FAIL-7"),
	T(test_token_lost_in_a_resume, "A-LEASE-9"),
	T(test_close_in_doubt, "A-LOC-42", "A-FAIL-7"),
	T(test_close_during_a_doubtful_commit, "A-LOC-42", "A-FAIL-7"),
	T(test_adoption_of_a_touched_row, "A-LEASE-9"),
};
const struct t_suite suite_doubt = T_SUITE("authority.doubt", NULL, NULL, cases);
