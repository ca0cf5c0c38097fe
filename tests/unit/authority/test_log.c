/* SPDX-License-Identifier: BSD-3-Clause */
/* What the authority writes to the log: that something went wrong and how, never with which Spot,
 * by which generation or about what. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <stdio.h>
#include <string.h>

static void check_log(const char *line)
{
	rig.log[rig.log_n] = 0;
	if (!strstr(rig.log, line))
		printf("no \"%s\" in the log:\n%s", line, rig.log);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.log, line));
	CU_ASSERT_PTR_NULL(strstr(rig.log, "telltale"));
	CU_ASSERT_PTR_NULL(strstr(rig.log, "confession"));
	/* Generations and tokens are numbers, and no line needs one. */
	CU_ASSERT_PTR_NULL(strpbrk(rig.log, "0123456789"));
	if (strpbrk(rig.log, "0123456789"))
		printf("a number in the log:\n%s", rig.log);
	rig.log_n = 0;
}

static void test_log_of_creations(void)
{
	rig_open();
	rig.reply_text = "confession";
	rig.hold_dp = true;
	rig_goc("telltale", "room");
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "telltale", RIG_ACCEPT));
	rig_object("telltale")->there = false;
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "telltale", RIG_ACCEPT));
	check_log("a Spot cannot be published");
	/* T5 fails, and so does the undoing. */
	rig_goc("other-telltale", "room");
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, 2);
	rig_answer(AUTH_FX_PREPARE, "other-telltale", RIG_ACCEPT);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "other-telltale", RIG_ACCEPT));
	check_log("cancel of a creation: ");
	rig.hold_dp = false;
	rig_pass(1000);
	rig_check_rest();
	rig_close();
}

static void test_log_of_closes(void)
{
	rig_open();
	rig_goc("telltale", "room");
	rig.hold_dp = true;
	rig_closing("telltale", rig_gen("telltale"));
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, 1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "telltale", RIG_FAIL));
	check_log("closing of a Spot type=room: ");
	rig.hold_dp = false;
	rig_pass(1000);
	rig_goc("other-telltale", "room");
	rig.hold_dp = true;
	rig_closing("other-telltale", rig_gen("other-telltale"));
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, 1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "other-telltale", RIG_ACCEPT));
	check_log("release of a Spot: ");
	rig_pass(1000);
	rig_check_rest();
	rig_close();
}

static void test_log_of_damage(void)
{
	char key[ROW_KEY_MAX];
	struct store_mut m = {.val = {"confession", 10}};
	struct store_txn x = {.muts = &m, .n_muts = 1};

	rig_open();
	m.key = (struct store_bytes){key, row_key_obj(key, (struct auth_bytes){"telltale", 8})};
	CU_ASSERT_EQUAL(store_commit(rig.st, &x), STORE_OK);
	CU_ASSERT_EQUAL(rig_kind(rig_find("telltale")), SPL_E_INTERNAL_FAILURE);
	check_log("row of a Spot is damaged: ");
	rig_restart_control();
	rig_resume_host(); /* reads all rows */
	rig_pass(500);
	check_log("row of a Spot is damaged: left alone");
	rig_close();
}

/* The token is lost and taken again, with Spots whose rows do not follow at once. */
static void test_log_of_adoption(void)
{
	rig_open();
	rig_goc("telltale", "room");
	rig_fault(STORE_FAULT_FAIL, STORE_RENEW, -1);
	rig_pass(60000);
	CU_ASSERT_TRUE(rig.lease_lost > 0);
	check_log("owner token lost: ");
	rig.fault_times = 0;
	rig_pass(60000);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_PTR_NOT_NULL(rig_object("telltale"));
	rig_check_rest();
	rig_close();
}

static const struct t_case cases[] = {
	T(test_log_of_creations, "S-OBS-6"),
	T(test_log_of_closes, "S-OBS-6"),
	T(test_log_of_damage, "S-OBS-6"),
	T(test_log_of_adoption, "S-OBS-6"),
};
const struct t_suite suite_log = T_SUITE("authority.log", NULL, NULL, cases);
