/* SPDX-License-Identifier: BSD-3-Clause */
/* See env.h. */
#include "tests/unit/store/env.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct env env;

int64_t env_clock(void *ctx)
{
	const struct env *e = ctx;

	return e->now;
}

int env_try_open(void)
{
	if (env.backend == ENV_MEMORY) {
		struct store_memory_opts o = {env_clock, &env, 7};

		return store_memory_open(&env.st, &o);
	}
	struct store_sqlite_opts o = {env.path, env_clock, &env, env.boot_id};

	env.err[0] = 0;
	return store_sqlite_open(&env.st, &o, env.err, sizeof(env.err));
}

void env_open(void)
{
	env.now = 1000000;
	env.boot_id = "boot-1";
	snprintf(env.dir, sizeof(env.dir), "/tmp/spl-store-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(env.dir));
	snprintf(env.path, sizeof(env.path), "%s/s.db", env.dir);
	if (env_try_open()) {
		printf("%s\n", env.err);
		CU_FAIL_FATAL("the store did not open");
	}
}

void env_shut(void)
{
	store_close(env.st);
	env.st = NULL;
}

void env_close(void)
{
	struct dirent *de;
	char name[400];
	DIR *d;

	env_shut();
	d = opendir(env.dir);
	while (d && (de = readdir(d)) != NULL) {
		snprintf(name, sizeof(name), "%s/%s", env.dir, de->d_name);
		unlink(name);
	}
	if (d)
		closedir(d);
	rmdir(env.dir);
}

struct store_bytes sb(const char *text)
{
	return (struct store_bytes){text, (uint32_t)strlen(text)};
}

struct store_bytes sbn(const void *p, size_t n)
{
	return (struct store_bytes){p, (uint32_t)n};
}

static int one(const struct store_cond *c, const struct store_mut *m)
{
	struct store_txn t = {.conds = c, .n_conds = c ? 1 : 0, .muts = m, .n_muts = 1};

	return store_commit(env.st, &t);
}

int put(const char *key, const char *val)
{
	struct store_mut m = {.key = sb(key), .val = sb(val)};

	return one(NULL, &m);
}

int put_lease(const char *key, const char *val, uint64_t lease)
{
	struct store_mut m = {.key = sb(key), .val = sb(val), .lease = lease};

	return one(NULL, &m);
}

int put_keep(const char *key, const char *val, int64_t keep_ms)
{
	struct store_mut m = {.key = sb(key), .val = sb(val), .keep_ms = keep_ms};

	return one(NULL, &m);
}

int del(const char *key)
{
	struct store_mut m = {.key = sb(key), .del = true};

	return one(NULL, &m);
}

int put_if(const char *cond_key, enum store_test test, int64_t rev, const char *key,
	   const char *val)
{
	struct store_cond c = {sb(cond_key), test, rev};
	struct store_mut m = {.key = sb(key), .val = sb(val)};

	return one(&c, &m);
}

bool holds(const char *key, const char *val)
{
	struct store_item it;
	int rc = store_read(env.st, sb(key), &it);
	bool same;

	if (rc != STORE_OK)
		return rc == STORE_MISSING && !val;
	same = val && it.len == strlen(val) && memcmp(it.val, val, it.len) == 0;
	store_item_free(&it);
	return same;
}

static int64_t version(const char *key, bool created)
{
	struct store_item it;
	int64_t v;

	if (store_read(env.st, sb(key), &it) != STORE_OK)
		return 0;
	v = created ? it.cr : it.mr;
	store_item_free(&it);
	return v;
}

int64_t cr_of(const char *key)
{
	return version(key, true);
}

int64_t mr_of(const char *key)
{
	return version(key, false);
}
