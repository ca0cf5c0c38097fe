/* SPDX-License-Identifier: BSD-3-Clause */
/* Close with an exact reference, find, show, resolve, list. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rewrites the row of an id: members, state, owner as `change` says. */
static void rewrite(const char *id, void (*change)(struct row_obj *))
{
	uint8_t val[ROW_OBJ_MAX];
	char key[ROW_KEY_MAX];
	struct row_obj row;
	uint32_t n = row_key_obj(key, (struct auth_bytes){id, (uint32_t)strlen(id)});
	struct store_mut m = {.key = {key, n}, .val = {val, 0}};
	struct store_txn t = {.muts = &m, .n_muts = 1};

	CU_ASSERT_TRUE_FATAL(rig_row(id, &row, NULL));
	change(&row);
	m.val.n = row_obj_put(val, sizeof(val), &row);
	CU_ASSERT_TRUE_FATAL(m.val.n > 0);
	CU_ASSERT_EQUAL(store_commit(rig.st, &t), STORE_OK);
}

static void with_member(struct row_obj *r)
{
	r->members = 1;
}

static void without_member(struct row_obj *r)
{
	r->members = 0;
}

static void moving(struct row_obj *r)
{
	r->state = AUTH_ROW_RELOCATING;
	r->op = ROW_RELOCATION;
	r->reloc = (struct auth_bytes){"record", 6};
}

static void instance(struct row_obj *r)
{
	r->kind = SPL_KIND_INSTANCE;
}

static void test_close(void)
{
	uint64_t t, gen, old;

	rig_open();
	rig_goc("r", "room");
	old = rig_gen("r");
	t = rig_closing("r", old + 1);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION); /* not that incarnation */
	t = rig_closing("r", old);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.closed);
	CU_ASSERT_EQUAL(rig.closings, 1);
	CU_ASSERT_EQUAL(rig_gen("r"), 0);
	CU_ASSERT_PTR_NULL(rig_object("r"));
	t = rig_closing("r", old);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.closed); /* gone: false */
	/* Created again: the old reference never closes the new incarnation. */
	rig_goc("r", "room");
	gen = rig_gen("r");
	CU_ASSERT_TRUE(gen > old);
	t = rig_closing("r", old);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	CU_ASSERT_EQUAL(rig.closings, 1);
	rig_check_rest();
	rig_close();
}

static void test_close_refused(void)
{
	uint64_t t;

	rig_open();
	rig_goc("r", "room");
	rewrite("r", with_member);
	t = rig_closing("r", rig_gen("r"));
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.closed); /* members remain */
	CU_ASSERT_TRUE(rig_got(rig_find("r"))->r.found);		/* still serving */
	CU_ASSERT_EQUAL(rig.closings, 0);
	rewrite("r", without_member);
	rewrite("r", moving);
	CU_ASSERT_EQUAL(rig_kind(rig_closing("r", rig_gen("r"))), SPL_E_UNAVAILABLE);
	t = rig_ask(AUTH_RESOLVE, "r");
	CU_ASSERT_EQUAL(rig_got(t)->r.route, AUTH_ROUTE_UNAVAILABLE);
	rig_goc("i", "cart");
	rewrite("i", instance);
	CU_ASSERT_EQUAL(rig_kind(rig_closing("i", rig_gen("i"))), SPL_E_INVALID_OPERATION);
	{
		char entry[256];
		uint64_t gen;

		snprintf(entry, sizeof(entry), "%.*s", rig.id.entry_id.len, rig.id.entry_id.b);
		gen = rig_gen(entry);
		CU_ASSERT_EQUAL(gen, (uint64_t)rig.id.entry_gen);
		CU_ASSERT_EQUAL(rig_kind(rig_closing(entry, gen)), SPL_E_INVALID_OPERATION);
		CU_ASSERT_EQUAL(rig_gen(entry), gen);
	}
	CU_ASSERT_EQUAL(rig_kind(rig_closing("nobody", 5)), SPL_OK);
	CU_ASSERT_EQUAL(rig.closings, 0);
	rig_close();
}

/* Order: the row says Closing, then the dataplane closes, then the row goes. */
static void test_close_order(void)
{
	struct row_obj row;
	uint64_t t, a, b, f, gen;

	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	rig.hold_dp = true;
	t = rig_closing("r", gen);
	CU_ASSERT_TRUE(rig_row("r", &row, NULL));
	CU_ASSERT_TRUE(row.state == AUTH_ROW_CLOSING && row.op == ROW_CLOSE);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	/* Meanwhile: concurrent closes share it, GetOrCreate waits for the id, routes are shut. */
	a = rig_closing("r", gen);
	b = rig_goc("r", "room");
	f = rig_ask(AUTH_RESOLVE, "r");
	CU_ASSERT_EQUAL(rig_got(f)->r.route, AUTH_ROUTE_UNAVAILABLE);
	f = rig_closing("r", gen + 1000);
	CU_ASSERT_EQUAL(rig_kind(f), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_kind(rig_find("r")), SPL_E_UNAVAILABLE);
	CU_ASSERT_TRUE(rig_kind(t) == -1 && rig_kind(a) == -1 && rig_kind(b) == -1);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_got(t)->r.closed && rig_got(a)->r.closed);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PUBLISH, "r", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig_is_created(b));
	CU_ASSERT_EQUAL(rig.closings, 1);
	rig_check_rest();
	rig_close();
}

static void test_close_deadline_and_repeat(void)
{
	struct auth_request r;
	uint64_t t, again, gen;

	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	rig.hold_dp = true;
	r = rig_request(AUTH_CLOSE, "r", NULL);
	r.obj_gen = gen;
	r.deadline = rig.now + 1000 * MS;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
	r.deadline = rig.now + 5000 * MS;
	CU_ASSERT_EQUAL(rig_submit(&r, &again), 0); /* the same operation again */
	rig_advance(1000);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig_kind(again), -1);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "r", RIG_FAIL)); /* on_closing failed */
	CU_ASSERT_TRUE(rig_kind(again) == SPL_OK && rig_got(again)->r.closed);
	CU_ASSERT_EQUAL(rig_gen("r"), 0); /* cleaned up all the same */
	rig_check_rest();
	rig_close();
}

static void test_close_with_store_trouble(void)
{
	const enum store_fault faults[] = {STORE_FAULT_LOSE, STORE_FAULT_DROP, STORE_FAULT_FAIL};
	uint64_t t, g, gen;

	for (size_t i = 0; i < T_COUNT(faults); i++) {
		rig_open();
		rig_goc("r", "room");
		gen = rig_gen("r");
		rig.hold_dp = true;
		/* T18 */
		rig.fault = faults[i];
		rig.fault_op = STORE_TXN;
		rig.fault_times = 1;
		t = rig_closing("r", gen);
		if (faults[i] == STORE_FAULT_FAIL) {
			CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
			CU_ASSERT_TRUE(rig_got(rig_find("r"))->r.found); /* nothing changed */
			t = rig_closing("r", gen);
		}
		/* T17 */
		rig.fault_times = 1;
		CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "r", RIG_ACCEPT));
		if (faults[i] == STORE_FAULT_FAIL) {
			CU_ASSERT_EQUAL(rig_kind(t), -1);
			g = rig_goc_in("r", "room", 500); /* unusable until it is cleaned up */
			CU_ASSERT_EQUAL(rig_kind(g), -1);
			rig.hold_dp = false;
			rig_advance(100);
			CU_ASSERT_TRUE(rig_is_created(g));
		}
		CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.closed);
		CU_ASSERT_EQUAL(rig.closings, 1);
		rig_check_rest();
		rig_close();
	}
}

/* A row that changed between the read and T18: decided again, with what is there now. */
static void test_close_meets_a_change(void)
{
	uint64_t t, gen;

	rig_open();
	rig_goc("r", "room");
	gen = rig_gen("r");
	rig.hold_store = true;
	t = rig_closing("r", gen);
	rig_release_store(); /* read */
	rewrite("r", with_member);
	while (rig.held)
		rig_release_store();
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.closed);
	CU_ASSERT_EQUAL(rig.closings, 0);
	CU_ASSERT_EQUAL(rig_gen("r"), gen);
	rig_close();
}

/* ---- find, show, resolve ---- */

static void test_find_and_show(void)
{
	uint64_t t;

	rig_open();
	rig_goc("r", "room");
	t = rig_find("r");
	CU_ASSERT_TRUE(rig_got(t)->r.found);
	CU_ASSERT_EQUAL(rig_got(t)->r.entry.obj_gen, rig_gen("r"));
	CU_ASSERT_STRING_EQUAL(rig_got(t)->type, "room");
	CU_ASSERT_EQUAL(rig_got(t)->r.entry.kind, SPL_KIND_USER);
	t = rig_ask(AUTH_SHOW, "r");
	CU_ASSERT_TRUE(rig_got(t)->r.found && !rig_got(t)->r.entry.unavailable);
	t = rig_ask(AUTH_SHOW, "none");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.found);
	rig.hold_dp = true;
	rig_goc("c", "room");
	t = rig_ask(AUTH_SHOW, "c");
	CU_ASSERT_TRUE(rig_got(t)->r.found && rig_got(t)->r.entry.state == AUTH_ROW_CREATING);
	CU_ASSERT_FALSE(rig_got(rig_find("c"))->r.found);
	/* Store failure is an error, never "none"; for a route it is a tag of its own. */
	rig.fault = STORE_FAULT_FAIL;
	rig.fault_op = STORE_READ;
	rig.fault_times = -1;
	CU_ASSERT_EQUAL(rig_kind(rig_find("r")), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_kind(rig_find("none")), SPL_E_UNAVAILABLE);
	t = rig_ask(AUTH_RESOLVE, "none");
	CU_ASSERT_EQUAL(rig_got(t)->r.route, AUTH_ROUTE_FAILED);
	rig.fault_times = 0;
	t = rig_ask(AUTH_RESOLVE, "none");
	CU_ASSERT_EQUAL(rig_got(t)->r.route, AUTH_ROUTE_MISSING);
	rig_close();
}

static void test_damaged_row(void)
{
	char key[ROW_KEY_MAX];
	struct store_mut m = {.val = {"garbage", 7}};
	struct store_txn x = {.muts = &m, .n_muts = 1};
	uint64_t t;

	rig_open();
	rig_goc("good", "room");
	m.key = (struct store_bytes){key, row_key_obj(key, (struct auth_bytes){"bad", 3})};
	CU_ASSERT_EQUAL(store_commit(rig.st, &x), STORE_OK);
	CU_ASSERT_EQUAL(rig_kind(rig_find("bad")), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(rig_kind(rig_goc("bad", "room")), SPL_E_INTERNAL_FAILURE);
	t = rig_list(NULL, 100, NULL); /* a page is whole or an error that names the row */
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_got(t)->text, "bad"));
	CU_ASSERT_EQUAL(rig_got(t)->r.n_entries, 0);
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("good", "room"))); /* everybody else is served */
	CU_ASSERT_TRUE(rig.errors > 0);
	rig_close();
}

/* ---- list ---- */

static void fill(int n)
{
	char id[16];

	for (int i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "s%04d", i);
		rig_goc(id, i % 10 == 0 ? "cart" : "room");
	}
}

/* Reads all pages; returns the number of entries, checks that ids ascend. */
static int pages(const char *type, uint32_t limit, int *n_pages, void (*between)(int page))
{
	char token[AUTH_TOKEN_MAX + 1] = "", last[24] = "";
	int n = 0, p = 0;

	do {
		uint64_t t = rig_list(type, limit, token[0] ? token : NULL);

		CU_ASSERT_EQUAL_FATAL(rig_kind(t), SPL_OK);
		CU_ASSERT_TRUE(rig_got(t)->r.n_entries <= limit);
		for (size_t i = 0; i < rig_got(t)->r.n_entries && i < 64; i++) {
			CU_ASSERT_TRUE(strcmp(rig_got(t)->ids[i], last) > 0);
			snprintf(last, sizeof(last), "%s", rig_got(t)->ids[i]);
		}
		n += (int)rig_got(t)->r.n_entries;
		snprintf(token, sizeof(token), "%s", rig_got(t)->next);
		if (between)
			between(p);
		p++;
	} while (token[0]);
	if (n_pages)
		*n_pages = p;
	return n;
}

static void churn(int page)
{
	char id[16];

	/* Behind and before the place that the list has reached. */
	snprintf(id, sizeof(id), "s%04d", 990 - page);
	rig_closing(id, rig_gen(id));
	snprintf(id, sizeof(id), "s%04d", page);
	rig_closing(id, rig_gen(id));
	snprintf(id, sizeof(id), "t%04d", page);
	rig_goc(id, "room");
	snprintf(id, sizeof(id), "a%04d", page);
	rig_goc(id, "room");
}

static void test_list(void)
{
	int n_pages;

	rig_open();
	fill(1000);
	/* 1 000 and the Entry Spot. */
	CU_ASSERT_EQUAL(pages(NULL, 1000, &n_pages, NULL), 1001);
	CU_ASSERT_EQUAL(n_pages, 2);
	CU_ASSERT_EQUAL(pages(NULL, 100, &n_pages, NULL), 1001);
	CU_ASSERT_EQUAL(pages("cart", 7, NULL, NULL), 100);
	CU_ASSERT_EQUAL(pages("nothing", 7, NULL, NULL), 0);
	/* Created and closed meanwhile: the pages are those of the moment of the first. */
	CU_ASSERT_EQUAL(pages(NULL, 50, NULL, churn), 1001);
	rig_close();
}

static void test_list_one_at_a_time(void)
{
	int n_pages;

	rig_open();
	fill(30);
	CU_ASSERT_EQUAL(pages("room", 1, &n_pages, NULL), 27);
	CU_ASSERT_TRUE(n_pages >= 27);
	rig_close();
}

static void test_list_errors(void)
{
	struct auth_request r;
	char token[AUTH_TOKEN_MAX + 1];
	uint64_t t;

	rig_open();
	fill(50);
	t = rig_list(NULL, 10, NULL);
	snprintf(token, sizeof(token), "%s", rig_got(t)->next);
	/* A page that failed comes with nothing; the same token works afterwards. */
	rig.fault = STORE_FAULT_FAIL;
	rig.fault_op = STORE_SCAN;
	rig.fault_times = 1;
	t = rig_list(NULL, 10, token);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	CU_ASSERT_TRUE(rig_got(t)->r.n_entries == 0 && rig_got(t)->next[0] == 0);
	t = rig_list(NULL, 10, token);
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && rig_got(t)->r.n_entries == 10);
	CU_ASSERT_STRING_EQUAL(rig_got(t)->ids[0], "s0009");
	/* Its snapshot is gone after a minute. */
	rig_pass(STORE_SCAN_LIFE_MS);
	t = rig_list(NULL, 10, token);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_got(t)->text, "first page"));
	r = rig_request(AUTH_LIST, NULL, NULL);
	r.limit = 0;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	r.limit = 1001;
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	r.limit = 10;
	r.token = (struct auth_bytes){"zz", 2};
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	token[3] = 'G';
	r.token = (struct auth_bytes){token, 48};
	CU_ASSERT_EQUAL(rig_submit(&r, &t), -EINVAL);
	token[3] = '0';
	r.token.p = "000000000000000000000000000000000000000000000000";
	CU_ASSERT_EQUAL(rig_submit(&r, &t), 0);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE); /* foreign */
	rig_check_rest();
	rig_close();
}

static const struct t_case cases[] = {
	T(test_close, "S-CLOSE-2", "A-LOC-41", "S-GEN-1", "S-REF-1"),
	T(test_close_refused, "S-CLOSE-1", "S-CLOSE-2", "A-LOC-43", "S-ENTRY-1"),
	T(test_close_order, "S-CLOSE-3", "A-LOC-42", "S-CLOSE-5"),
	T(test_close_deadline_and_repeat, "S-CLOSE-5", "A-LOC-42"),
	T(test_close_with_store_trouble, "A-LOC-42", "A-FAIL-7"),
	T(test_close_meets_a_change, "A-LOC-43", "A-LOC-4"),
	T(test_find_and_show, "S-CREATE-10", "A-LOC-40", "S-ADDR-2", "A-LOC-46"),
	T(test_damaged_row, "A-LOC-3"),
	T(test_list, "A-LOC-46", "S-CREATE-10"),
	T(test_list_one_at_a_time, "A-LOC-46"),
	T(test_list_errors, "A-LOC-46", "S-CREATE-10"),
};
const struct t_suite suite_close = T_SUITE("authority.close", NULL, NULL, cases);
