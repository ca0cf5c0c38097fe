/* SPDX-License-Identifier: BSD-3-Clause */
/* The conformance suite on both back ends, injected faults, and what only SQLite has: durability,
 * locks, damaged files, full disks, reboots. */
#include "control/store/store_fault.h"
#include "tests/unit/store/conformance.h"
#include "tests/unit/store/env.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory only ---- */

static void test_no_revision_left(void)
{
	int64_t ttl = 1000;
	uint64_t lease;

	env_open();
	CU_ASSERT_EQUAL(put("k", "1"), STORE_OK);
	store_memory_set_rev(env.st, INT64_MAX - 1);
	CU_ASSERT_EQUAL(put("k", "2"), STORE_OK);
	CU_ASSERT_EQUAL(mr_of("k"), INT64_MAX);
	for (int i = 0; i < 2; i++) { /* and every repeat is the same */
		CU_ASSERT_EQUAL(put("k", "3"), STORE_EXHAUSTED);
		CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), STORE_EXHAUSTED);
	}
	CU_ASSERT_TRUE(holds("k", "2"));
	env_close();
}

static enum store_fault next_fault;

static enum store_fault give_fault(void *ctx, enum store_op op)
{
	enum store_fault f = next_fault;

	next_fault = STORE_FAULT_NONE;
	return f;
}

static void test_faults(void)
{
	struct store *inner;
	struct store_item it;

	env_open();
	inner = env.st;
	CU_ASSERT_EQUAL_FATAL(store_fault_open(&env.st, inner, give_fault, NULL), 0);
	next_fault = STORE_FAULT_FAIL;
	CU_ASSERT_EQUAL(put("k", "1"), STORE_FAILED);
	CU_ASSERT_TRUE(holds("k", NULL));
	next_fault = STORE_FAULT_DROP;
	CU_ASSERT_EQUAL(put("k", "2"), STORE_UNKNOWN);
	CU_ASSERT_TRUE(holds("k", NULL));
	next_fault = STORE_FAULT_LOSE;
	CU_ASSERT_EQUAL(put("k", "3"), STORE_UNKNOWN);
	CU_ASSERT_TRUE(holds("k", "3")); /* reading again tells which */
	next_fault = STORE_FAULT_LOSE;
	CU_ASSERT_EQUAL(store_read(env.st, sb("k"), &it), STORE_FAILED);
	CU_ASSERT_EQUAL(put_if("k", STORE_IF_ABSENT, 0, "k", "4"), STORE_CONFLICT);
	env_close();
}

/* ---- SQLite only ---- */

/* Counts what reaches the disk: the default VFS with its xSync watched. */
static int (*real_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static int (*real_sync)(sqlite3_file *, int);
static unsigned syncs;

static int counted_sync(sqlite3_file *f, int flags)
{
	syncs++;
	return real_sync(f, flags);
}

static int watched_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	static sqlite3_io_methods watched[8]; /* each file may have other methods */
	static unsigned n;
	int rc = real_open(v, name, f, flags, out);

	if (rc == SQLITE_OK && f->pMethods && n < 8) {
		watched[n] = *f->pMethods;
		real_sync = watched[n].xSync;
		watched[n].xSync = counted_sync;
		f->pMethods = &watched[n++];
	}
	return rc;
}

static void test_batch_is_one_durable_commit(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *real = sqlite3_vfs_find(NULL);
	struct store_mut m[256];
	struct store_txn t[256];
	char keys[256][8];

	vfs = *real;
	vfs.zName = "watched";
	real_open = real->xOpen;
	vfs.xOpen = watched_open;
	sqlite3_vfs_register(&vfs, 1);
	env_open();
	CU_ASSERT_EQUAL(put("first", "write of the log"), STORE_OK);
	for (int i = 0; i < 256; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		m[i] = (struct store_mut){.key = sb(keys[i]), .val = sb("v")};
		t[i] = (struct store_txn){.muts = &m[i], .n_muts = 1};
	}
	syncs = 0;
	store_commit_batch(env.st, t, 256);
	CU_ASSERT_EQUAL(syncs, 1);
	for (int i = 0; i < 256; i++)
		CU_ASSERT_TRUE(t[i].rc == STORE_OK && holds(keys[i], "v"));
	syncs = 0;
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(put("k", "v"), STORE_OK);
	CU_ASSERT_EQUAL(syncs, 3); /* each answer waits for the disk */
	env_close();
	sqlite3_vfs_unregister(&vfs);
	sqlite3_vfs_register(real, 1);
}

static void test_reopen(void)
{
	int64_t ttl = 60000, rev;
	uint64_t lease, next;

	env_open();
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), STORE_OK);
	CU_ASSERT_EQUAL(put_lease("l", "1", lease), STORE_OK);
	CU_ASSERT_EQUAL(put_keep("o", "1", 5000), STORE_OK);
	CU_ASSERT_EQUAL(put("k", "1"), STORE_OK);
	rev = mr_of("k");
	env_shut();
	env.now += 4000;
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	CU_ASSERT_TRUE(holds("l", "1") && holds("o", "1") && holds("k", "1"));
	CU_ASSERT_EQUAL(store_renew(env.st, lease, &ttl), STORE_OK);
	CU_ASSERT_EQUAL(ttl, 60000);
	CU_ASSERT_EQUAL(put("k", "2"), STORE_OK);
	CU_ASSERT_TRUE(mr_of("k") > rev); /* revisions go on */
	env_shut();
	env.now += 59999;
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	CU_ASSERT_TRUE(holds("l", "1")); /* the renewal was durable */
	CU_ASSERT_TRUE(holds("o", NULL));
	env.now += 1;
	CU_ASSERT_TRUE(holds("l", NULL));
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &next), STORE_OK);
	CU_ASSERT_TRUE(next > lease);
	env_close();
}

static void test_another_boot_ends_leases(void)
{
	int64_t ttl = 60000;
	uint64_t lease;

	env_open();
	CU_ASSERT_EQUAL(store_grant(env.st, &ttl, &lease), STORE_OK);
	CU_ASSERT_EQUAL(put_lease("l", "1", lease), STORE_OK);
	CU_ASSERT_EQUAL(put_keep("o", "1", 5000), STORE_OK);
	env.now += 2000;
	CU_ASSERT_EQUAL(put("k", "1"), STORE_OK);
	env_shut();
	/* The machine starts again and its clock begins at nothing. */
	env.boot_id = "boot-2";
	env.now = 50;
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	CU_ASSERT_TRUE(holds("l", NULL) && holds("k", "1"));
	CU_ASSERT_EQUAL(store_renew(env.st, lease, &ttl), STORE_MISSING);
	env.now += 2999; /* 2 of its 5 seconds had passed */
	CU_ASSERT_TRUE(holds("o", "1"));
	env.now += 1;
	CU_ASSERT_TRUE(holds("o", NULL));
	env_close();
}

/* The writer acknowledges row i on the pipe after its commit returned, and is killed. */
static void write_until_killed(int to)
{
	for (uint32_t i = 0;; i++) {
		char key[2][16], val[16];
		struct store_mut m[2];
		struct store_txn t[2];

		snprintf(val, sizeof(val), "v%u", i);
		for (int j = 0; j < 2; j++) {
			snprintf(key[j], sizeof(key[j]), "%c%u", 'a' + j, i);
			m[j] = (struct store_mut){.key = sb(key[j]), .val = sb(val)};
			t[j] = (struct store_txn){.muts = &m[j], .n_muts = 1};
		}
		store_commit_batch(env.st, t, 2);
		if (t[0].rc || t[1].rc || write(to, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
}

static void kill_round(struct t_rand *r)
{
	uint32_t i = 0, want = 1 + t_rand_below(r, 400), acked = 0;
	char key[16], val[16];
	int p[2], status;
	pid_t pid;

	env_open();
	env_shut();
	CU_ASSERT_EQUAL_FATAL(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		if (env_try_open())
			_exit(1);
		write_until_killed(p[1]);
	}
	close(p[1]);
	while (acked < want && read(p[0], &i, sizeof(i)) == sizeof(i))
		acked++;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	while (read(p[0], &i, sizeof(i)) == sizeof(i))
		acked++;
	close(p[0]);
	CU_ASSERT_TRUE(WIFSIGNALED(status) && acked >= want && i == acked - 1);
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	for (i = 0; i < acked; i++) {
		snprintf(val, sizeof(val), "v%u", i);
		for (int j = 0; j < 2; j++) {
			snprintf(key, sizeof(key), "%c%u", 'a' + j, i);
			if (!holds(key, val))
				CU_FAIL("an acknowledged row is gone");
		}
	}
	CU_ASSERT_TRUE(mr_of("b0") > 0 && put("k", "v") == STORE_OK);
	env_close();
}

static void test_kill_during_commit(void)
{
	struct t_rand r = {t_seed()};

	for (int i = 0; i < 8; i++)
		kill_round(&r);
}

static void test_second_process_is_refused(void)
{
	struct store *other;
	struct store_sqlite_opts o;
	sqlite3 *db;
	char pid[32];

	env_open();
	o = (struct store_sqlite_opts){env.path, env_clock, &env, "boot-1"};
	CU_ASSERT_EQUAL(store_sqlite_open(&other, &o, env.err, sizeof(env.err)), -EBUSY);
	snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
	CU_ASSERT_PTR_NOT_NULL(strstr(env.err, "locked by another process"));
	CU_ASSERT_PTR_NOT_NULL(strstr(env.err, pid));
	CU_ASSERT_PTR_NOT_NULL(strstr(env.err, env.path));
	CU_ASSERT_EQUAL(put("k", "v"), STORE_OK); /* the first one is not disturbed */
	/* Nor may any other program write beneath it. */
	CU_ASSERT_EQUAL(sqlite3_open(env.path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_exec(db, "DELETE FROM kv", NULL, NULL, NULL), SQLITE_BUSY);
	sqlite3_close(db);
	env_shut();
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	CU_ASSERT_TRUE(holds("k", "v"));
	env_close();
}

static void test_file_held_by_another_program(void)
{
	sqlite3 *db;

	env_open();
	env_shut();
	CU_ASSERT_EQUAL(sqlite3_open(env.path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	CU_ASSERT_EQUAL(env_try_open(), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(env.err, "another program holds"));
	sqlite3_close(db);
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	env_close();
}

/* Size and a sum of the file's bytes, to see that nobody touched it. */
static uint64_t file_sum(const char *path)
{
	uint64_t sum = 1469598103934665603ULL;
	FILE *f = fopen(path, "re");
	int c;

	while (f && (c = fgetc(f)) != EOF)
		sum = (sum ^ (uint64_t)(unsigned char)c) * 1099511628211ULL;
	if (f)
		fclose(f);
	return f ? sum : 0;
}

static void spoil(const char *path, long at, const void *bytes, size_t n)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);

	CU_ASSERT_EQUAL(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

static void refuse_untouched(int err, const char *words)
{
	uint64_t before = file_sum(env.path);

	CU_ASSERT_EQUAL(env_try_open(), err);
	if (!strstr(env.err, words))
		CU_FAIL("the message says something else");
	CU_ASSERT_PTR_NOT_NULL(strstr(env.err, env.path));
	CU_ASSERT_EQUAL(file_sum(env.path), before);
}

static void test_damaged_files(void)
{
	static char noise[8192];
	sqlite3 *db;

	memset(noise, 0xa7, sizeof(noise));
	env_open();
	CU_ASSERT_EQUAL(put("k", "v"), STORE_OK);
	env_shut();
	spoil(env.path, 4096, noise, sizeof(noise)); /* the page of the first tables */
	refuse_untouched(-EUCLEAN, "damaged");
	spoil(env.path, 0, noise, 100); /* the header */
	refuse_untouched(-EUCLEAN, "no SQLite database");
	CU_ASSERT_EQUAL(truncate(env.path, 700), 0);
	refuse_untouched(-EUCLEAN, "left as it is");
	unlink(env.path);
	CU_ASSERT_EQUAL(sqlite3_open(env.path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_exec(db, "CREATE TABLE other(x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	refuse_untouched(-EUCLEAN, "database of another program");
	unlink(env.path);
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	env_shut();
	CU_ASSERT_EQUAL(sqlite3_open(env.path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL(sqlite3_exec(db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	refuse_untouched(-EPROTO, "its schema is 9");
	unlink(env.path);
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	env_close();
}

static void test_damage_found_while_running(void)
{
	static char noise[4096];
	char key[16], val[600];
	struct store_item it;
	int bad = 0, good = 0;

	memset(val, 'x', sizeof(val) - 1);
	val[sizeof(val) - 1] = 0;
	memset(noise, 0xa7, sizeof(noise));
	env_open();
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%03d", i);
		CU_ASSERT_EQUAL(put(key, val), STORE_OK);
	}
	env_shut();
	spoil(env.path, 4096 * 12, noise, sizeof(noise));
	CU_ASSERT_EQUAL_FATAL(env_try_open(), 0);
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%03d", i);
		if (store_read(env.st, sb(key), &it) == STORE_OK)
			good++;
		else
			bad++;
		store_item_free(&it);
	}
	/* Those on the damaged page say so; all others are served. */
	CU_ASSERT_TRUE(bad > 0 && bad < 50 && good == 200 - bad);
	CU_ASSERT_PTR_NOT_NULL(strstr(store_text(env.st), "damaged"));
	env_close();
}

static void test_bad_directories(void)
{
	int status;
	pid_t pid;

	env_open();
	env_shut();
	snprintf(env.path, sizeof(env.path), "%s/none/s.db", env.dir);
	CU_ASSERT_EQUAL(env_try_open(), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(env.err, "must exist and be writable"));
	snprintf(env.path, sizeof(env.path), "%s/s.db/x.db", env.dir);
	CU_ASSERT_EQUAL(env_try_open(), -ENOTDIR);
	snprintf(env.path, sizeof(env.path), "%s/s2.db", env.dir);
	CU_ASSERT_EQUAL(chmod(env.dir, 0555), 0);
	pid = fork();
	if (pid == 0) { /* as nobody, because root may write anywhere */
		if (geteuid() == 0 && setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(env_try_open() == -EACCES && strstr(env.err, "Permission denied") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_EQUAL(chmod(env.dir, 0755), 0);
	env_close();
}

/* In a child with its own mounts: a file system of 1 MiB is filled and emptied again. */
static int disk_full_child(void)
{
	static char big[200000];
	char key[16];
	int rc = STORE_OK, n = 0;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", env.dir, "tmpfs", 0, "size=1m"))
		return 10;
	if (env_try_open() || put("first", "v"))
		return 11;
	memset(big, 'x', sizeof(big) - 1);
	while (rc == STORE_OK && n < 100) {
		snprintf(key, sizeof(key), "big%d", n++);
		rc = put(key, big);
	}
	if (rc != STORE_FAILED || !strstr(store_text(env.st), "disk full"))
		return 12;
	if (!holds("first", "v") || !holds("big0", big) || !holds(key, NULL))
		return 13;
	if (put("small", big) != STORE_FAILED) /* again, and the same */
		return 14;
	if (mount("tmpfs", env.dir, "tmpfs", MS_REMOUNT, "size=8m"))
		return 15;
	if (put(key, big) || !holds(key, big))
		return 16;
	env_shut();
	if (env_try_open() || !holds("first", "v") || !holds(key, big))
		return 17;
	return 0;
}

static void in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		printf("child ended with status %#x\n", (unsigned)status);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_disk_full(void)
{
	env_open();
	env_shut();
	in_child(disk_full_child);
	env_close();
}

/* A write error that is no full disk: the answer must not claim that nothing was written. */
static int write_error_child(void)
{
	static char big[200000];
	struct rlimit lim = {100000, RLIM_INFINITY};
	int rc;

	signal(SIGXFSZ, SIG_IGN);
	if (env_try_open() || put("first", "v"))
		return 11;
	memset(big, 'x', sizeof(big) - 1);
	if (setrlimit(RLIMIT_FSIZE, &lim))
		return 12;
	rc = put("big", big);
	if (rc != STORE_FAILED && rc != STORE_UNKNOWN)
		return 13;
	if (!holds("first", "v"))
		return 14;
	lim.rlim_cur = RLIM_INFINITY;
	if (setrlimit(RLIMIT_FSIZE, &lim))
		return 15;
	if (put("big", "now small") || !holds("big", "now small"))
		return 16;
	env_shut();
	return env_try_open() || !holds("big", "now small") ? 17 : 0;
}

static void test_write_error(void)
{
	env_open();
	env_shut();
	in_child(write_error_child);
	env_close();
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

static const struct t_case memory_cases[] = {
	T(test_no_revision_left, "A-LOC-6", "S-GEN-1"),
	T(test_faults, "A-STORE-6"),
};

static const struct t_case sqlite_cases[] = {
	T(test_batch_is_one_durable_commit, "A-STORE-40"),
	T(test_reopen, "A-STORE-40", "A-STORE-9"),
	T(test_another_boot_ends_leases, "A-LEASE-3"),
	T(test_kill_during_commit, "A-STORE-40"),
	T(test_second_process_is_refused, "A-STORE-40", "A-STORE-8"),
	T(test_file_held_by_another_program),
	T(test_damaged_files),
	T(test_damage_found_while_running),
	T(test_bad_directories),
	T(test_disk_full, "A-STORE-7"),
	T(test_write_error, "A-STORE-6"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {
		{"store.memory", use_memory, NULL, conformance_cases, conformance_n},
		{"store.memory.scan", use_memory, NULL, conformance_scan_cases, conformance_scan_n},
		{"store.sqlite.scan", use_sqlite, NULL, conformance_scan_cases, conformance_scan_n},
		{"store.sqlite", use_sqlite, NULL, conformance_cases, conformance_n},
		T_SUITE("store.memory.own", use_memory, NULL, memory_cases),
		T_SUITE("store.sqlite.own", use_sqlite, NULL, sqlite_cases),
	};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
