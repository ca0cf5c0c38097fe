/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation when the store fails, loses answers, or was changed by somebody else. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <stdio.h>
#include <string.h>

/* Every transaction of a creation with a lost answer, written or not: the same end. */
static void lost_answers(enum store_fault f)
{
	for (int at = 0; at < 2; at++) {
		uint64_t t, again;

		rig_open();
		rig.hold_dp = true;
		if (at == 0)
			rig_fault(f, STORE_TXN, 1);
		t = rig_goc_op("r", "room", 600, 10000);
		if (at == 1)
			rig_fault(f, STORE_TXN, 1);
		CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
		CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
		CU_ASSERT_EQUAL(rig.fault_times, 0);
		CU_ASSERT_TRUE(rig_is_created(t));
		again = rig_goc_op("r", "room", 600, 10000);
		CU_ASSERT_TRUE(rig_is_created(again));
		CU_ASSERT_EQUAL(rig.factories, 1);
		rig_check_rest();
		/* And the undoing of one. */
		t = rig_goc_op("q", "room", 601, 10000);
		rig_fault(f, STORE_TXN, 1);
		CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "q", RIG_DECLINE));
		CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.created == AUTH_REJECTED);
		again = rig_goc_op("q", "room", 601, 10000);
		CU_ASSERT_TRUE(rig_kind(again) == SPL_OK &&
			       rig_got(again)->r.created == AUTH_REJECTED);
		rig_check_rest();
		rig_close();
	}
}

static void test_lost_answers(void)
{
	lost_answers(STORE_FAULT_LOSE);
	lost_answers(STORE_FAULT_DROP);
}

static void test_failed_commits(void)
{
	struct row_obj row;
	uint64_t t, w;

	rig_open();
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, 1);
	t = rig_goc("r", "room");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_got(t)->text, "injected failure"));
	CU_ASSERT_EQUAL(rig.factories, 0);
	rig_check_rest();
	/* T5 fails: nothing of the attempt stays, and the id is free again. */
	rig.hold_dp = true;
	t = rig_goc("r", "room");
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, 2);
	rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
	w = rig_goc_in("r", "room", 60000);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_row("r", &row, NULL)); /* T6 failed, too */
	rig.hold_dp = false;
	rig_pass(1000);
	CU_ASSERT_TRUE(rig_is_created(w));
	CU_ASSERT_EQUAL(rig.factories, 2);
	rig_check_rest();
	/* Reads that fail say Unavailable. */
	rig_fault(STORE_FAULT_FAIL, STORE_READ, 1);
	CU_ASSERT_EQUAL(rig_kind(rig_goc("r", "room")), SPL_E_UNAVAILABLE);
	rig_close();
}

/* The capacity row of this host was changed behind our back: everything is read again. */
static void test_stale_capacity_row(void)
{
	uint64_t t[20], made = 0;

	rig_open();
	for (int round = 0; round < 3; round++) {
		rig.hold_store = true;
		for (int i = 0; i < 20; i++) {
			char id[16];

			snprintf(id, sizeof(id), "r%d-%d", round, i);
			t[i] = rig_goc(id, "room");
		}
		rig_touch_cap();
		while (rig.held)
			rig_release_store();
		rig.hold_store = false;
		for (int i = 0; i < 20; i++)
			made += rig_is_created(t[i]);
	}
	CU_ASSERT_EQUAL(made, 60);
	CU_ASSERT_EQUAL(rig.factories, 60);
	rig_check_rest();
	rig_close();
}

/* One of a group has lost its row to somebody else: only that one is told. */
static void test_offender_of_a_group(void)
{
	struct store_mut m = {.del = true};
	struct store_txn x = {.muts = &m, .n_muts = 1};
	uint64_t t[8];
	char key[ROW_KEY_MAX], id[16];

	rig_open();
	rig.hold_dp = true;
	for (int i = 0; i < 8; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		t[i] = rig_goc(id, "room");
	}
	m.key = (struct store_bytes){key, row_key_obj(key, (struct auth_bytes){"r3", 2})};
	CU_ASSERT_EQUAL(store_commit(rig.st, &x), STORE_OK);
	rig.hold_store = true;
	while (rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT))
		continue;
	rig.hold_store = false;
	rig_release_store();
	while (rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_DISCARD, NULL, RIG_ACCEPT))
		continue;
	for (int i = 0; i < 8; i++)
		CU_ASSERT_TRUE(i == 3 ? rig_kind(t[i]) == SPL_E_UNAVAILABLE : rig_is_created(t[i]));
	rig_close();
}

/* No generation is left: every attempt is refused the same way and nothing is changed or sent. */
static void test_generations_exhausted(void)
{
	struct row_obj row;
	uint64_t t, gen;

	rig_open();
	rig_goc("old", "room");
	rig_row("old", &row, &gen);
	store_memory_set_rev(rig.mem, INT64_MAX);
	for (int i = 0; i < 2; i++) {
		t = rig_goc("new", "room");
		CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
		CU_ASSERT_PTR_NOT_NULL(strstr(rig_got(t)->text, "no revision is left"));
		CU_ASSERT_FALSE(rig_row("new", &row, NULL));
	}
	CU_ASSERT_EQUAL(rig.factories, 1);
	CU_ASSERT_TRUE(rig.errors >= 2);
	t = rig_goc("old", "room");
	CU_ASSERT_TRUE(rig_is_existing(t) && rig_got(t)->r.entry.obj_gen == gen);
	rig_check_rest();
	rig_close();
}

static const struct t_case cases[] = {
	T(test_generations_exhausted, "A-LOC-6", "S-GEN-1", "A-ERR-5"),
	T(test_lost_answers, "A-FAIL-7", "A-STORE-6", "A-LOC-20"),
	T(test_failed_commits, "S-ERR-8", "A-LOC-16"),
	T(test_stale_capacity_row, "A-LOC-4", "A-LOC-5"),
	T(test_offender_of_a_group, "A-LOC-5", "A-LOC-4"),
};
const struct t_suite suite_trouble = T_SUITE("authority.trouble", NULL, NULL, cases);
