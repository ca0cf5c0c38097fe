/* SPDX-License-Identifier: BSD-3-Clause */
/* Each allocation of a store fails once: the call says -ENOMEM, or gives the whole answer; nothing
 * is written by halves, an open snapshot is either right or Expired. */
#include "tests/lib/t_failalloc.h"
#include "tests/lib/t_main.h"
#include "tests/unit/store/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KEYS 70 /* more than are compared pairwise */

static void test_commit(void)
{
	char keys[KEYS][8];
	struct store_mut m[KEYS];
	struct store_txn t = {.muts = m, .n_muts = KEYS};
	unsigned n;

	for (int i = 0; i < KEYS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%02d", i);
		m[i] = (struct store_mut){.key = sb(keys[i]), .val = sb("new"), .keep_ms = 5};
	}
	m[3].del = true;
	for (n = 1; t_fail_more(&n); n++) {
		int rc;

		env_open();
		CU_ASSERT_EQUAL(put("k00", "old"), STORE_OK);
		CU_ASSERT_EQUAL(put("k03", "old"), STORE_OK);
		t_fail_at(n);
		rc = store_commit(env.st, &t);
		t_fail_stop();
		CU_ASSERT_TRUE(rc == STORE_OK || rc == -ENOMEM);
		CU_ASSERT_TRUE(holds("k00", rc ? "old" : "new"));
		CU_ASSERT_TRUE(holds("k03", rc ? "old" : NULL));
		CU_ASSERT_TRUE(holds("k69", rc ? NULL : "new"));
		CU_ASSERT_EQUAL(store_commit(env.st, &t), STORE_OK);
		env.now += 5; /* and when all of them end at once */
		CU_ASSERT_EQUAL(put("after", "1"), STORE_OK);
		CU_ASSERT_TRUE(holds("k69", NULL));
		env_close();
	}
	CU_ASSERT_TRUE(n > 1);
}

static void test_scan_while_changing(void)
{
	struct store_page pg = {0};
	struct store_cursor c;

	for (unsigned n = 1; t_fail_more(&n); n++) {
		int rc, wrote;

		env_open();
		for (const char *k = "abcdef"; *k; k++) {
			char key[2] = {*k, 0};

			CU_ASSERT_EQUAL(put(key, "1"), STORE_OK);
		}
		t_fail_at(n);
		rc = store_scan(env.st, sb(""), NULL, 2, &pg);
		if (rc == STORE_OK) {
			c = pg.next;
			store_page_free(&pg);
			wrote = put("d", "2");
			CU_ASSERT_TRUE(wrote == STORE_OK || wrote == -ENOMEM);
			rc = store_scan(env.st, sb(""), &c, 10, &pg);
			if (rc == STORE_OK) {
				CU_ASSERT_EQUAL(pg.n, 4);
				CU_ASSERT_EQUAL(memcmp(pg.entries[1].val.p, "1", 1), 0);
				store_page_free(&pg);
			}
		}
		t_fail_stop();
		CU_ASSERT_TRUE(rc == STORE_OK || rc == -ENOMEM || rc == STORE_EXPIRED);
		CU_ASSERT_EQUAL(store_scan(env.st, sb(""), NULL, 10, &pg), STORE_OK);
		CU_ASSERT_EQUAL(pg.n, 6);
		store_page_free(&pg);
		env_close();
	}
}

static void test_open_and_lease(void)
{
	for (unsigned n = 1; t_fail_more(&n); n++) {
		int64_t ttl = 1000;
		uint64_t lease = 0;
		int rc;

		env_open();
		env_shut();
		t_fail_at(n);
		rc = env_try_open();
		if (rc == 0) {
			rc = store_grant(env.st, &ttl, &lease);
			CU_ASSERT_TRUE(rc == STORE_OK || rc == -ENOMEM);
			if (rc == STORE_OK)
				CU_ASSERT_TRUE(lease != 0);
		} else {
			CU_ASSERT_EQUAL(rc, -ENOMEM);
		}
		t_fail_stop();
		if (!env.st)
			CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
		CU_ASSERT_EQUAL(put("k", "v"), STORE_OK);
		env_close();
	}
}

static int use_memory(void)
{
	env.backend = ENV_MEMORY;
	return 0;
}

static int use_sqlite(void)
{
	env.backend = ENV_SQLITE;
	return 0;
}

static const struct t_case cases[] = {
	T(test_commit, "A-STORE-3"),
	T(test_scan_while_changing, "A-STORE-5"),
	T(test_open_and_lease),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {
		T_SUITE("store.oom.memory", use_memory, NULL, cases),
		T_SUITE("store.oom.sqlite", use_sqlite, NULL, cases),
	};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
