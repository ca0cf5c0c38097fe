/* SPDX-License-Identifier: BSD-3-Clause */
/* A store under test: which back end, its clock, its file. One thread. */
#ifndef SPL_TESTS_STORE_ENV_H
#define SPL_TESTS_STORE_ENV_H

#include "control/store/store_sqlite.h"

#include <CUnit/CUnit.h>

enum env_backend { ENV_MEMORY, ENV_SQLITE };

struct env {
	enum env_backend backend;
	struct store *st;
	int64_t now; /* ms, what the store's clock shows */
	char dir[64];
	char path[96];
	const char *boot_id;
	char err[STORE_TEXT_MAX];
};

extern struct env env;

int64_t env_clock(void *ctx);
/* A fresh store in a fresh directory. */
void env_open(void);
/* Closes the store (and leaves the file). */
void env_shut(void);
/* Opens the same file again; 0 or -errno with env.err. */
int env_try_open(void);
/* Closes and removes everything. */
void env_close(void);

struct store_bytes sb(const char *text);
struct store_bytes sbn(const void *p, size_t n);

/* A put / delete without conditions; rc. */
int put(const char *key, const char *val);
int put_lease(const char *key, const char *val, uint64_t lease);
int put_keep(const char *key, const char *val, int64_t keep_ms);
int del(const char *key);
/* One condition, then a put. */
int put_if(const char *cond_key, enum store_test test, int64_t rev, const char *key,
	   const char *val);
/* True when the key holds exactly `val` (NULL: is missing). */
bool holds(const char *key, const char *val);
/* cr / mr of a key, 0 when missing. */
int64_t cr_of(const char *key);
int64_t mr_of(const char *key);

#endif
