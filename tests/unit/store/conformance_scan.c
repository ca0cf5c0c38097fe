/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshot scans: what every store must do. */
#include "tests/unit/store/conformance.h"
#include "tests/unit/store/env.h"

#include <stdio.h>
#include <string.h>

/* Reads the whole prefix in pages of `limit` into keys; returns how many, or a failure. */
static int scan_all(const char *prefix, size_t limit, char keys[][16], size_t room)
{
	struct store_cursor cur;
	struct store_page pg;
	bool more = true, first = true;
	size_t n = 0;
	int rc;

	while (more) {
		rc = store_scan(env.st, sb(prefix), first ? NULL : &cur, limit, &pg);
		if (rc)
			return -rc;
		for (size_t i = 0; i < pg.n && n < room; i++, n++)
			snprintf(keys[n], 16, "%.*s", (int)pg.entries[i].key.n,
				 (const char *)pg.entries[i].key.p);
		CU_ASSERT_TRUE(pg.n <= limit);
		more = pg.more;
		cur = pg.next;
		first = false;
		store_page_free(&pg);
	}
	return (int)n;
}

static void test_scan_pages(void)
{
	static char keys[1100][16];
	const size_t limits[] = {1, 7, 100, 1000};
	char key[16];

	env_open();
	for (int i = 0; i < 1001; i++) {
		snprintf(key, sizeof(key), "obj/%04d", i);
		CU_ASSERT_EQUAL(put(key, key), STORE_OK);
	}
	CU_ASSERT_EQUAL(put("obj0", "after the prefix"), STORE_OK);
	CU_ASSERT_EQUAL(put("ob", "before"), STORE_OK);
	for (size_t i = 0; i < T_COUNT(limits); i++) {
		CU_ASSERT_EQUAL(scan_all("obj/", limits[i], keys, 1100), 1001);
		for (int k = 0; k < 1001; k++) {
			snprintf(key, sizeof(key), "obj/%04d", k);
			if (strcmp(keys[k], key) != 0)
				CU_FAIL("key missing, twice or out of order");
		}
	}
	CU_ASSERT_EQUAL(scan_all("nothing/", 10, keys, 1100), 0);
	CU_ASSERT_EQUAL(scan_all("", 1000, keys, 1100), 1003);
	env_close();
}

static int scan_page(const char *prefix, const struct store_cursor *c, size_t limit, char *out,
		     struct store_cursor *next, bool *more)
{
	struct store_page pg;
	int rc = store_scan(env.st, sb(prefix), c, limit, &pg);
	size_t at = 0;

	out[0] = 0;
	for (size_t i = 0; i < pg.n; i++)
		at += (size_t)snprintf(out + at, 256 - at, "%.*s=%.*s ", (int)pg.entries[i].key.n,
				       (const char *)pg.entries[i].key.p, (int)pg.entries[i].val.n,
				       (const char *)pg.entries[i].val.p);
	*next = pg.next;
	*more = pg.more;
	store_page_free(&pg);
	return rc;
}

static void test_scan_is_a_snapshot(void)
{
	struct store_cursor c1, c2, c3;
	int64_t ttl = 1000;
	uint64_t lease;
	char out[256];
	bool more;

	env_open();
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), STORE_OK);
	for (const char *k = "bdfhjl"; *k; k++) {
		char key[2] = {*k, 0};

		CU_ASSERT_EQUAL(put(key, "1"), STORE_OK);
	}
	CU_ASSERT_EQUAL(put_lease("m", "L", lease), STORE_OK);
	CU_ASSERT_EQUAL(put_keep("n", "K", 1000), STORE_OK);
	CU_ASSERT_EQUAL(scan_page("", NULL, 2, out, &c1, &more), STORE_OK);
	CU_ASSERT_STRING_EQUAL(out, "b=1 d=1 ");
	/* Afterwards: a put, a delete, a new key, a re-created one, an ended lease and retention.
	 */
	CU_ASSERT_EQUAL(put("f", "2"), STORE_OK);
	CU_ASSERT_EQUAL(put("f", "3"), STORE_OK);
	CU_ASSERT_EQUAL(del("h"), STORE_OK);
	CU_ASSERT_EQUAL(put("i", "new"), STORE_OK);
	CU_ASSERT_EQUAL(del("j"), STORE_OK);
	CU_ASSERT_EQUAL(put("j", "again"), STORE_OK);
	CU_ASSERT_EQUAL(put("z", "new"), STORE_OK);
	CU_ASSERT_EQUAL(put("a", "new"), STORE_OK);
	env.now += 1000;
	CU_ASSERT_EQUAL(put("zz", "makes the ended ones go"), STORE_OK);
	CU_ASSERT_TRUE(holds("m", NULL) && holds("n", NULL));
	CU_ASSERT_EQUAL(scan_page("", &c1, 3, out, &c2, &more), STORE_OK);
	CU_ASSERT_STRING_EQUAL(out, "f=1 h=1 j=1 ");
	/* The answer may have been lost: the same page again. */
	CU_ASSERT_EQUAL(del("f"), STORE_OK);
	CU_ASSERT_EQUAL(scan_page("", &c1, 3, out, &c2, &more), STORE_OK);
	CU_ASSERT_STRING_EQUAL(out, "f=1 h=1 j=1 ");
	CU_ASSERT_EQUAL(scan_page("", &c2, 10, out, &c3, &more), STORE_OK);
	CU_ASSERT_STRING_EQUAL(out, "l=1 m=L n=K ");
	CU_ASSERT_FALSE(more);
	CU_ASSERT_EQUAL(scan_page("", NULL, 20, out, &c3, &more), STORE_OK);
	CU_ASSERT_STRING_EQUAL(out,
			       "a=new b=1 d=1 i=new j=again l=1 z=new zz=makes the ended ones go ");
	env_close();
}

static void test_scan_expires(void)
{
	static char val[60000];
	struct store_cursor c, other, last[STORE_SCANS_MAX];
	char out[256], key[16];
	bool more;

	env_open();
	for (int i = 0; i < 400; i++) {
		snprintf(key, sizeof(key), "k%03d", i);
		CU_ASSERT_EQUAL(put(key, "v"), STORE_OK);
	}
	/* A foreign cursor, one of another prefix, one of a page long passed. */
	memset(&c, 0x5a, sizeof(c));
	CU_ASSERT_EQUAL(scan_page("k", &c, 2, out, &other, &more), STORE_EXPIRED);
	CU_ASSERT_EQUAL(scan_page("k", NULL, 2, out, &c, &more), STORE_OK);
	CU_ASSERT_EQUAL(scan_page("k0", &c, 2, out, &other, &more), STORE_EXPIRED);
	other = c;
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(scan_page("k", &other, 2, out, &other, &more), STORE_OK);
	CU_ASSERT_EQUAL(scan_page("k", &c, 2, out, &c, &more), STORE_EXPIRED);
	/* Its life is over. */
	env.now += STORE_SCAN_LIFE_MS;
	CU_ASSERT_EQUAL(scan_page("k", &other, 2, out, &c, &more), STORE_EXPIRED);
	/* One more than are held: the oldest goes. */
	CU_ASSERT_EQUAL(scan_page("k", NULL, 2, out, &c, &more), STORE_OK);
	for (int i = 0; i < STORE_SCANS_MAX; i++)
		CU_ASSERT_EQUAL(scan_page("k", NULL, 2, out, &last[i], &more), STORE_OK);
	CU_ASSERT_EQUAL(scan_page("k", &c, 2, out, &c, &more), STORE_EXPIRED);
	CU_ASSERT_EQUAL(scan_page("k", &last[0], 2, out, &c, &more), STORE_OK);
	/* More old values than are kept. */
	memset(val, 'x', sizeof(val) - 1);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 200; i++) {
			snprintf(key, sizeof(key), "k%03d", i + 100);
			CU_ASSERT_EQUAL(put(key, val), STORE_OK);
		}
		if (round == 0)
			CU_ASSERT_EQUAL(scan_page("k", NULL, 1, out, &c, &more), STORE_OK);
	}
	CU_ASSERT_EQUAL(scan_page("k", &c, 2, out, &c, &more), STORE_EXPIRED);
	env_close();
}

const struct t_case conformance_scan_cases[] = {
	T(test_scan_pages, "A-STORE-5"),
	T(test_scan_is_a_snapshot, "A-STORE-5"),
	T(test_scan_expires, "A-STORE-5", "A-STORE-7"),
};
const size_t conformance_scan_n = T_COUNT(conformance_scan_cases);
