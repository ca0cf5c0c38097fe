/* SPDX-License-Identifier: BSD-3-Clause */
/* What every store must do; each back end runs all of it. */
#include "tests/unit/store/conformance.h"

#include "tests/lib/t_main.h"
#include "tests/unit/store/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_read_is_one_observation(void)
{
	struct store_item it;

	env_open();
	CU_ASSERT_EQUAL(store_read(env.st, sb("k"), &it), STORE_MISSING);
	CU_ASSERT_EQUAL(it.cr, 0);
	CU_ASSERT_EQUAL(it.mr, 0);
	CU_ASSERT_EQUAL(put("k", "one"), STORE_OK);
	CU_ASSERT_EQUAL(store_read(env.st, sb("k"), &it), STORE_OK);
	CU_ASSERT_TRUE(it.cr > 0 && it.cr == it.mr);
	/* What was read stays as it was, whatever is written later. */
	CU_ASSERT_EQUAL(put("k", "another value"), STORE_OK);
	CU_ASSERT_EQUAL(it.len, 3);
	CU_ASSERT_EQUAL(memcmp(it.val, "one", 3), 0);
	store_item_free(&it);
	CU_ASSERT_EQUAL(put("k", ""), STORE_OK);
	CU_ASSERT_TRUE(holds("k", ""));
	env_close();
}

static void test_versions(void)
{
	int64_t cr, mr;

	env_open();
	CU_ASSERT_EQUAL(put("k", "1"), STORE_OK);
	cr = cr_of("k");
	mr = mr_of("k");
	CU_ASSERT_EQUAL(put("other", "x"), STORE_OK);
	CU_ASSERT_EQUAL(cr_of("k"), cr);
	CU_ASSERT_EQUAL(mr_of("k"), mr);
	CU_ASSERT_EQUAL(put("k", "2"), STORE_OK);
	CU_ASSERT_EQUAL(cr_of("k"), cr); /* a put keeps the incarnation */
	CU_ASSERT_TRUE(mr_of("k") > mr);
	CU_ASSERT_EQUAL(del("k"), STORE_OK);
	CU_ASSERT_EQUAL(cr_of("k"), 0);
	CU_ASSERT_EQUAL(put("k", "3"), STORE_OK);
	CU_ASSERT_TRUE(cr_of("k") > mr); /* a new incarnation is larger than all before */
	CU_ASSERT_EQUAL(del("absent"), STORE_OK);
	env_close();
}

static void test_conditions(void)
{
	int64_t cr, mr;

	env_open();
	CU_ASSERT_EQUAL(put("k", "1"), STORE_OK);
	CU_ASSERT_EQUAL(put("k", "2"), STORE_OK);
	cr = cr_of("k");
	mr = mr_of("k");
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_ABSENT, 0, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(put_if("no", STORE_IF_ABSENT, 0, "x", "a"), STORE_OK);
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_MR, cr, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(put_if("no", STORE_IF_MR, mr, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_MR, mr, "x", "b"), STORE_OK);
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_CR, mr, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(put_if("no", STORE_IF_CR, cr, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_CR, cr, "x", "c"), STORE_OK);
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_CR_NOT, cr, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_TRUE(holds("x", "c"));
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_CR_NOT, cr + 1, "x", "d"), STORE_OK);
	CU_ASSERT_EQUAL(put_if("no", STORE_IF_CR_NOT, cr, "x", "e"), STORE_OK);
	CU_ASSERT_TRUE(holds("x", "e"));
	env_close();
}

static void test_all_or_none(void)
{
	struct store_cond c[3] = {{sb("a"), STORE_IF_ABSENT, 0},
				  {sb("b"), STORE_IF_MR, 0},
				  {sb("c"), STORE_IF_ABSENT, 0}};
	struct store_mut m[3] = {{.key = sb("a"), .val = sb("A")},
				 {.key = sb("b"), .del = true},
				 {.key = sb("d"), .val = sb("D")}};
	struct store_txn t = {.conds = c, .n_conds = 3, .muts = m, .n_muts = 3};

	env_open();
	CU_ASSERT_EQUAL(put("b", "B"), STORE_OK);
	/* One wrong condition at a time: nothing changes, and the answer does not say which. */
	c[1].rev = mr_of("b") + 1;
	CU_ASSERT_EQUAL(store_commit(env.st, &t), STORE_CONFLICT);
	c[1].rev = mr_of("b");
	CU_ASSERT_EQUAL(put("c", "C"), STORE_OK);
	CU_ASSERT_EQUAL(store_commit(env.st, &t), STORE_CONFLICT);
	CU_ASSERT_TRUE(holds("a", NULL) && holds("b", "B") && holds("d", NULL));
	CU_ASSERT_EQUAL(del("c"), STORE_OK);
	CU_ASSERT_EQUAL(store_commit(env.st, &t), STORE_OK);
	CU_ASSERT_TRUE(holds("a", "A") && holds("b", NULL) && holds("d", "D"));
	CU_ASSERT_TRUE(mr_of("a") == t.rev && mr_of("d") == t.rev && cr_of("a") == t.rev);
	env_close();
}

static int commit_shape(const struct store_cond *c, size_t nc, const struct store_mut *m, size_t nm)
{
	struct store_txn t = {.conds = c, .n_conds = nc, .muts = m, .n_muts = nm};

	return store_commit(env.st, &t);
}

static void test_arguments(void)
{
	static char big[STORE_VALUE_MAX + 1];
	struct store_item it;
	struct store_mut m[2] = {{.key = sb("a"), .val = sb("1")}, {.key = sb("a"), .del = true}};
	struct store_cond c[2] = {{sb("a"), STORE_IF_ABSENT, 0}, {sb("a"), STORE_IF_ABSENT, 0}};
	struct store_page pg;
	uint64_t lease;
	int64_t ttl = 0;

	env_open();
	memset(big, 'x', sizeof(big));
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, 2), -EINVAL); /* put and delete of one key */
	CU_ASSERT_EQUAL(commit_shape(c, 2, m, 1), -EINVAL);    /* one key twice in conditions */
	CU_ASSERT_EQUAL(commit_shape(c, 1, m, 1), STORE_OK);   /* once on each side is legal */
	m[0].key = sbn("", 0);
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, 1), -EINVAL);
	m[0].key = sbn(big, STORE_KEY_MAX + 1);
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, 1), -EINVAL);
	m[0].key = sbn(big, STORE_KEY_MAX);
	m[0].val = sbn(big, STORE_VALUE_MAX + 1);
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, 1), -EINVAL);
	m[0].val = sbn(big, STORE_VALUE_MAX);
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, 1), STORE_OK);
	m[0].val.n = 1;
	m[0].keep_ms = -1;
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, 1), -EINVAL);
	CU_ASSERT_EQUAL(store_read(env.st, sbn("", 0), &it), -EINVAL);
	CU_ASSERT_EQUAL(store_read(env.st, sbn(big, STORE_KEY_MAX), &it), STORE_OK);
	CU_ASSERT_EQUAL(it.len, STORE_VALUE_MAX);
	store_item_free(&it);
	CU_ASSERT_EQUAL(store_scan(env.st, sb(""), NULL, 0, &pg), -EINVAL);
	CU_ASSERT_EQUAL(store_scan(env.st, sb(""), NULL, STORE_PAGE_ITEMS_MAX + 1, &pg), -EINVAL);
	CU_ASSERT_EQUAL(store_scan(env.st, sbn(big, STORE_KEY_MAX + 1), NULL, 1, &pg), -EINVAL);
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), -EINVAL);
	CU_ASSERT_TRUE(holds("a", "1"));
	env_close();
}

/* 2 048 keys of 2 047 bytes are just under 4 MiB. */
static void test_largest_transaction(void)
{
	const size_t n = STORE_TXN_KEYS_MAX, each = 2047 - 8;
	struct store_mut *m = calloc(n + 1, sizeof(*m));
	struct store_cond *c = calloc(n + 1, sizeof(*c));
	char(*keys)[9] = calloc(n + 1, sizeof(*keys));
	char *val = malloc(each + 1024 * 1024);
	struct store_page pg;

	env_open();
	memset(val, 'v', each + 1024 * 1024);
	for (size_t i = 0; i <= n; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%07zu", i);
		m[i] = (struct store_mut){.key = sb(keys[i]), .val = sbn(val, each)};
		c[i] = (struct store_cond){sb(keys[i]), STORE_IF_ABSENT, 0};
	}
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, n + 1), -EINVAL);
	CU_ASSERT_EQUAL(commit_shape(c, n, m + 1, n), -EINVAL); /* 2 049 distinct keys */
	m[0].val.n = (uint32_t)each + 2049;			/* one byte over 4 MiB */
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, n), -EINVAL);
	m[0].val.n--;
	CU_ASSERT_EQUAL(commit_shape(NULL, 0, m, n), STORE_OK);
	CU_ASSERT_EQUAL(commit_shape(c, n, m, n), -EINVAL); /* keys of both sides count as bytes */
	m[0].val.n = 1;
	c[n - 1].test = STORE_IF_CR_NOT;
	for (size_t i = 0; i < n - 1; i++)
		c[i] = (struct store_cond){sb(keys[i]), STORE_IF_CR, cr_of(keys[0])};
	for (size_t i = 0; i < n; i++)
		m[i].val.n = 8;
	CU_ASSERT_EQUAL(commit_shape(c, n, m, n), STORE_OK);
	CU_ASSERT_EQUAL(store_scan(env.st, sb("k"), NULL, 1000, &pg), STORE_OK);
	CU_ASSERT_EQUAL(pg.n, 1000);
	for (size_t i = 0; i < pg.n; i++)
		if (pg.entries[i].val.n != 8 || pg.entries[i].key.n != 8 ||
		    memcmp(pg.entries[i].key.p, keys[i], 8) != 0)
			CU_FAIL("wrong entry");
	store_page_free(&pg);
	free(m);
	free(c);
	free(keys);
	free(val);
	env_close();
}

static void test_batch_keeps_order_and_results_apart(void)
{
	struct store_cond absent = {sb("a"), STORE_IF_ABSENT, 0};
	struct store_mut a1 = {.key = sb("a"), .val = sb("1")},
			 a2 = {.key = sb("a"), .val = sb("2")},
			 b = {.key = sb("b"), .val = sb("1")}, none = {.key = sbn("", 0)};
	struct store_txn t[5] = {
		{.conds = &absent, .n_conds = 1, .muts = &a1, .n_muts = 1},
		{.conds = &absent, .n_conds = 1, .muts = &a2, .n_muts = 1}, /* sees the first */
		{.muts = &none, .n_muts = 1},
		{.muts = &b, .n_muts = 1},
		{.muts = &a2, .n_muts = 1},
	};

	env_open();
	CU_ASSERT_EQUAL(store_commit_batch(env.st, t, 5), 0);
	CU_ASSERT_EQUAL(t[0].rc, STORE_OK);
	CU_ASSERT_EQUAL(t[1].rc, STORE_CONFLICT);
	CU_ASSERT_EQUAL(t[2].rc, -EINVAL);
	CU_ASSERT_EQUAL(t[3].rc, STORE_OK);
	CU_ASSERT_EQUAL(t[4].rc, STORE_OK);
	CU_ASSERT_TRUE(t[0].rev < t[3].rev && t[3].rev < t[4].rev);
	CU_ASSERT_TRUE(holds("a", "2") && holds("b", "1"));
	CU_ASSERT_EQUAL(cr_of("a"), t[0].rev);
	CU_ASSERT_EQUAL(mr_of("a"), t[4].rev);
	env_close();
}

static void test_lease_is_judged_by_the_store(void)
{
	int64_t ttl = 5000, back = 0, g;
	uint64_t lease = 0, second = 0;

	env_open();
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), STORE_OK);
	CU_ASSERT_TRUE(ttl >= 5000 && lease != 0);
	CU_ASSERT_EQUAL(put_lease("lease/o", "host", lease), STORE_OK);
	CU_ASSERT_EQUAL(put_lease("node/o", "n", lease), STORE_OK);
	CU_ASSERT_EQUAL(put("obj", "row"), STORE_OK);
	g = cr_of("lease/o");
	env.now += ttl - 1;
	CU_ASSERT_EQUAL(put_if("lease/o", STORE_IF_CR, g, "x", "1"), STORE_OK);
	CU_ASSERT_EQUAL(store_renew(env.st, lease, &back), STORE_OK);
	CU_ASSERT_EQUAL(back, ttl);
	env.now += ttl - 1;
	CU_ASSERT_TRUE(holds("lease/o", "host"));
	CU_ASSERT_EQUAL(cr_of("lease/o"), g); /* renewing changes no generation */
	env.now += 1;
	/* Over: the keys are gone at once, nobody has to look, and nothing else changed. */
	CU_ASSERT_TRUE(holds("lease/o", NULL) && holds("node/o", NULL) && holds("obj", "row"));
	CU_ASSERT_EQUAL(put_if("lease/o", STORE_IF_CR, g, "x", "-"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(put_if("lease/o", STORE_IF_CR_NOT, g, "x", "2"), STORE_OK);
	CU_ASSERT_EQUAL(store_renew(env.st, lease, &back), STORE_MISSING);
	CU_ASSERT_EQUAL(store_revoke(env.st, lease), STORE_MISSING);
	CU_ASSERT_EQUAL(put_lease("y", "-", lease), STORE_STALE_LEASE);
	CU_ASSERT_TRUE(holds("y", NULL));
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &second), STORE_OK);
	CU_ASSERT_TRUE(second > lease);
	CU_ASSERT_EQUAL(put_lease("lease/o", "again", second), STORE_OK);
	CU_ASSERT_TRUE(cr_of("lease/o") > g);
	env_close();
}

static void test_lease_rewrite_and_revoke(void)
{
	int64_t ttl = 5000;
	uint64_t lease = 0, other = 0;
	struct store_item it;

	env_open();
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), STORE_OK);
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &other), STORE_OK);
	CU_ASSERT_EQUAL(put_lease("a", "1", lease), STORE_OK);
	CU_ASSERT_EQUAL(put_lease("b", "1", lease), STORE_OK);
	CU_ASSERT_EQUAL(put_lease("c", "1", other), STORE_OK);
	/* A put without the lease takes the key off it; a conflict detaches nothing. */
	CU_ASSERT_EQUAL(put_if("b", STORE_IF_ABSENT, 0, "b", "2"), STORE_CONFLICT);
	CU_ASSERT_EQUAL(store_read(env.st, sb("b"), &it), STORE_OK);
	CU_ASSERT_EQUAL(it.lease, lease);
	store_item_free(&it);
	CU_ASSERT_EQUAL(put("b", "2"), STORE_OK);
	CU_ASSERT_EQUAL(store_revoke(env.st, lease), STORE_OK);
	CU_ASSERT_TRUE(holds("a", NULL) && holds("b", "2") && holds("c", "1"));
	CU_ASSERT_EQUAL(store_renew(env.st, lease, &ttl), STORE_MISSING);
	CU_ASSERT_EQUAL(store_renew(env.st, other, &ttl), STORE_OK);
	env_close();
}

static void test_leases_are_bounded(void)
{
	int64_t ttl = 1000;
	uint64_t id;
	int rc = STORE_OK;

	env_open();
	for (int i = 0; i < STORE_LEASES_MAX && rc == STORE_OK; i++)
		rc = store_grant(env.st, &ttl, &id);
	CU_ASSERT_EQUAL(rc, STORE_OK);
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &id), STORE_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(store_text(env.st), "1024 leases"));
	env.now += 1000;
	CU_ASSERT_EQUAL(put("k", "v"), STORE_OK);
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &id), STORE_OK);
	env_close();
}

static void test_retention(void)
{
	int64_t cr;
	char key[16];

	env_open();
	CU_ASSERT_EQUAL(put_keep("opt", "terminal", 300), STORE_OK);
	cr = cr_of("opt");
	env.now += 299;
	CU_ASSERT_TRUE(holds("opt", "terminal"));
	CU_ASSERT_EQUAL(put_if("opt", STORE_IF_ABSENT, 0, "x", "-"), STORE_CONFLICT);
	env.now += 1;
	CU_ASSERT_TRUE(holds("opt", NULL));
	CU_ASSERT_EQUAL(put_if("opt", STORE_IF_ABSENT, 0, "opt", "new"), STORE_OK);
	CU_ASSERT_TRUE(cr_of("opt") > cr);
	env.now += 1000000;
	CU_ASSERT_TRUE(holds("opt", "new")); /* rewritten without a retention */
	/* Many ended rows disappear in pieces, and stay invisible before that. */
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "t%d", i);
		CU_ASSERT_EQUAL(put_keep(key, "v", 10), STORE_OK);
	}
	env.now += 10;
	CU_ASSERT_TRUE(holds("t0", NULL) && holds("t999", NULL));
	for (int i = 0; i < 200; i++)
		CU_ASSERT_EQUAL(put("k", "v"), STORE_OK);
	CU_ASSERT_EQUAL(put_if("t999", STORE_IF_ABSENT, 0, "t999", "v"), STORE_OK);
	CU_ASSERT_TRUE(holds("t999", "v"));
	env_close();
}

static void test_keys_are_bytes(void)
{
	const struct store_bytes odd[] = {
		sb("user!31"),	sb("user#31"),	sb("USER#31"),	 sb("a b"),	 sb("a+b"),
		sb("a/b"),	sb("a/b/"),	sb("a:b"),	 sbn("a", 1),	 sbn("a\0", 2),
		sbn("a\0b", 3), sbn("\xff", 1), sb("e\xcc\x81"), sb("\xc3\xa9"),
	};
	struct store_item it;

	env_open();
	for (size_t i = 0; i < T_COUNT(odd); i++) {
		struct store_mut m = {.key = odd[i], .val = sbn(&i, sizeof(i))};
		struct store_cond c = {odd[i], STORE_IF_ABSENT, 0};

		CU_ASSERT_EQUAL(commit_shape(&c, 1, &m, 1), STORE_OK);
	}
	for (size_t i = 0; i < T_COUNT(odd); i++) {
		CU_ASSERT_EQUAL_FATAL(store_read(env.st, odd[i], &it), STORE_OK);
		CU_ASSERT_EQUAL(memcmp(it.val, &i, sizeof(i)), 0);
		store_item_free(&it);
	}
	env_close();
}

static void test_request_list(void)
{
	struct store_mut a = {.key = sb("a"), .val = sb("1")}, b = {.key = sb("b"), .val = sb("2")};
	struct store_req r[8] = {
		{.op = STORE_READ, .u.read.key = sb("a")},
		{.op = STORE_TXN, .u.txn = {.muts = &a, .n_muts = 1}},
		{.op = STORE_TXN, .u.txn = {.muts = &b, .n_muts = 1}},
		{.op = STORE_READ, .u.read.key = sb("b")},
		{.op = STORE_SCAN, .u.scan = {.prefix = sb(""), .limit = 10}},
		{.op = STORE_GRANT, .u.lease.ttl_ms = 100},
		{.op = STORE_RENEW, .u.lease.id = 999999},
		{.op = STORE_REVOKE, .u.lease.id = 999999},
	};
	struct store_batch batch = {.reqs = r, .n = T_COUNT(r)};

	env_open();
	store_run(env.st, &batch);
	CU_ASSERT_EQUAL(r[0].rc, STORE_MISSING);
	CU_ASSERT_EQUAL(r[1].rc, STORE_OK);
	CU_ASSERT_EQUAL(r[2].rc, STORE_OK);
	CU_ASSERT_EQUAL(r[2].u.txn.rev, r[1].u.txn.rev + 1);
	CU_ASSERT_EQUAL(r[3].rc, STORE_OK);
	CU_ASSERT_EQUAL(r[3].u.read.item.mr, r[2].u.txn.rev);
	CU_ASSERT_EQUAL(r[4].rc, STORE_OK);
	CU_ASSERT_EQUAL(r[4].u.scan.page.n, 2);
	CU_ASSERT_EQUAL(r[5].rc, STORE_OK);
	CU_ASSERT_EQUAL(r[6].rc, STORE_MISSING);
	CU_ASSERT_EQUAL(r[7].rc, STORE_MISSING);
	CU_ASSERT_STRING_EQUAL(batch.text, "");
	store_batch_clear(&batch);
	env_close();
}

/* Random histories against a plain array: keys a..p, conditions of every kind, leases, time. */
#define MODEL_KEYS 16

struct model_row {
	bool there;
	int64_t cr, mr, end;
	char val[8];
};

static void model_step(struct t_rand *r, struct model_row *m, int64_t *rev)
{
	unsigned ck = t_rand_below(r, MODEL_KEYS), mk = t_rand_below(r, MODEL_KEYS);
	struct model_row *c = &m[ck], *x = &m[mk];
	char ckey[2] = {(char)('a' + ck), 0}, mkey[2] = {(char)('a' + mk), 0}, val[8];
	struct store_cond cond = {sb(ckey), (enum store_test)t_rand_below(r, 4), 0};
	struct store_mut mut = {.key = sb(mkey)};
	struct store_txn t = {.conds = &cond, .n_conds = 1, .muts = &mut, .n_muts = 1};
	bool c_there, x_there, holds_now = false;

	env.now += t_rand_below(r, 20);
	c_there = c->there && c->end > env.now;
	x_there = x->there && x->end > env.now;
	cond.rev = t_rand_below(r, 2) ? c->mr : c->cr;
	switch (cond.test) {
	case STORE_IF_ABSENT:
		holds_now = !c_there;
		break;
	case STORE_IF_MR:
		holds_now = c_there && c->mr == cond.rev;
		break;
	case STORE_IF_CR:
		holds_now = c_there && c->cr == cond.rev;
		break;
	case STORE_IF_CR_NOT:
		holds_now = !c_there || c->cr != cond.rev;
		break;
	}
	snprintf(val, sizeof(val), "%u", t_rand_below(r, 100000));
	mut.val = sb(val);
	mut.del = t_rand_below(r, 4) == 0;
	mut.keep_ms = !mut.del && t_rand_below(r, 3) == 0 ? 1 + t_rand_below(r, 100) : 0;
	CU_ASSERT_EQUAL_FATAL(store_commit(env.st, &t), holds_now ? STORE_OK : STORE_CONFLICT);
	if (!holds_now)
		return;
	++*rev;
	CU_ASSERT_EQUAL_FATAL(t.rev, *rev);
	x->there = !mut.del;
	x->cr = x_there ? x->cr : *rev;
	x->mr = *rev;
	x->end = mut.keep_ms ? env.now + mut.keep_ms : INT64_MAX;
	memcpy(x->val, val, sizeof(val));
}

static void test_random_histories(void)
{
	struct model_row m[MODEL_KEYS] = {0};
	struct t_rand r = {t_seed()};
	int64_t rev = 0;

	env_open();
	for (int step = 0; step < 3000; step++) {
		unsigned k = t_rand_below(&r, MODEL_KEYS);
		char key[2] = {(char)('a' + k), 0};
		bool there;

		model_step(&r, m, &rev);
		there = m[k].there && m[k].end > env.now;
		if (!holds(key, there ? m[k].val : NULL) ||
		    (there && (cr_of(key) != m[k].cr || mr_of(key) != m[k].mr)))
			CU_FAIL_FATAL("a key differs from the model");
		if (env.backend == ENV_SQLITE && step % 500 == 499) {
			env_shut();
			CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
		}
	}
	env_close();
}

const struct t_case conformance_cases[] = {
	T(test_read_is_one_observation, "A-STORE-1", "A-STORE-2"),
	T(test_versions, "A-STORE-4", "S-GEN-1"),
	T(test_conditions, "A-STORE-3", "A-STORE-7"),
	T(test_all_or_none, "A-STORE-3", "A-STORE-4"),
	T(test_arguments, "A-STORE-4", "A-STORE-9"),
	T(test_largest_transaction, "A-STORE-4"),
	T(test_batch_keeps_order_and_results_apart, "A-STORE-3"),
	T(test_lease_is_judged_by_the_store, "A-LEASE-3", "A-LEASE-2", "A-STORE-12", "A-CLK-2"),
	T(test_lease_rewrite_and_revoke, "A-STORE-12"),
	T(test_leases_are_bounded),
	T(test_retention, "A-STORE-2", "A-STORE-12"),
	T(test_keys_are_bytes, "A-STORE-1", "A-LOC-1"),
	T(test_request_list),
	T(test_random_histories, "A-STORE-3", "A-LOC-4"),
};
const size_t conformance_n = T_COUNT(conformance_cases);
