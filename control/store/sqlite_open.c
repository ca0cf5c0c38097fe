/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the SQLite store: the process lock, the pragmas, the schema, what a reboot changes, and
 * errors that a person can act on. Called once, before the store is used. A file that is damaged,
 * foreign or of another version is left exactly as it is. */
#include "control/store/sqlite_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char schema[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE meta(rev INTEGER NOT NULL, boot TEXT NOT NULL, seen INTEGER NOT NULL);"
	"CREATE TABLE lease(id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL, expires INTEGER NOT "
	"NULL);"
	"CREATE TABLE kv(key BLOB PRIMARY KEY, val BLOB NOT NULL, cr INTEGER NOT NULL,"
	" mr INTEGER NOT NULL, lease INTEGER, expires INTEGER) WITHOUT ROWID;"
	"CREATE INDEX kv_lease ON kv(lease) WHERE lease IS NOT NULL;"
	"CREATE INDEX kv_expires ON kv(expires) WHERE expires IS NOT NULL;"
	"INSERT INTO meta VALUES(0, '', 0);"
	"PRAGMA application_id = 1397771313;"
	"PRAGMA user_version = 1;"
	"COMMIT;";
_Static_assert(SQLITE_APP_ID == 1397771313 && SQLITE_SCHEMA_VERSION == 1, "as in the schema");

struct opening {
	struct sqlite_store *s;
	const struct store_sqlite_opts *o;
	char *err;
	size_t err_size;
};

/* Puts one sentence into op->err; returns `code`, a -errno. */
static int say(struct opening *op, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int say(struct opening *op, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(op->err, op->err_size, fmt, ap);
	va_end(ap);
	return code;
}

void sqlite_explain(const char *path, sqlite3 *db, int rc, const char *doing, char *buf,
		    size_t size)
{
	struct statvfs vfs;
	unsigned long long kib = 0;

	switch (rc & 0xff) {
	case SQLITE_FULL:
		if (statvfs(path, &vfs) == 0)
			kib = (unsigned long long)vfs.f_bavail * vfs.f_frsize / 1024;
		snprintf(buf, size,
			 "store %s: %s: disk full: %llu KiB free on its file system: make room; "
			 "nothing that was confirmed is lost",
			 path, doing, kib);
		return;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		snprintf(
			buf, size,
			"store %s: %s: the file is damaged or no SQLite database (%s): it was left "
			"as it is; put a copy back, or move it away to start empty",
			path, doing, sqlite3_errstr(rc));
		return;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		snprintf(buf, size,
			 "store %s: %s: another program holds the database: close it; trying again "
			 "helps once it is gone",
			 path, doing);
		return;
	default:
		snprintf(buf, size, "store %s: %s: %s: %s", path, doing,
			 db ? sqlite3_errmsg(db) : sqlite3_errstr(rc),
			 errno ? strerror(errno) : "see the system log for the disk");
	}
}

static int errno_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		return -EACCES;
	default:
		return -EIO;
	}
}

static int say_sqlite(struct opening *op, int rc, const char *doing)
{
	sqlite_explain(op->s->path, op->s->db, rc, doing, op->err, op->err_size);
	return errno_of(rc);
}

static int exec(struct opening *op, const char *sql, const char *doing)
{
	int rc = sqlite3_exec(op->s->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : say_sqlite(op, rc, doing);
}

/* The first column of the first row as a number; *out keeps its value when there is no row. */
static int query_int(struct opening *op, const char *sql, int64_t *out)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(op->s->db, sql, -1, &q, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(q);
		if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL)
			*out = sqlite3_column_int64(q, 0);
	}
	sqlite3_finalize(q);
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return 0;
	return say_sqlite(op, rc, "reading");
}

/* The lock file is opened first: what is wrong with the directory shows here, in plain errno. */
static int take_lock(struct opening *op)
{
	struct sqlite_store *s = op->s;
	size_t n = strlen(s->path) + sizeof(".lock");
	char *name = malloc(n), pid[32] = "";
	int fd, err = 0;
	ssize_t got;

	if (!name)
		return -ENOMEM;
	snprintf(name, n, "%s.lock", s->path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0) {
		err = -errno;
		say(op, err,
		    "store %s: cannot make %s: %s: its directory must exist and be writable by "
		    "user %u",
		    s->path, name, strerror(errno), (unsigned)geteuid());
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
		got = pread(fd, pid, sizeof(pid) - 1, 0);
		pid[got > 0 ? strcspn(pid, "\n") : 0] = 0;
		say(op, err,
		    "store %s: locked by another process%s%s: one control process uses a store; "
		    "stop that one first",
		    s->path, pid[0] ? " with pid " : "", pid);
	} else {
		snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
		if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
			pid[0] = 0; /* only for the message above */
		s->lock_fd = fd;
		fd = -1;
	}
	free(name);
	if (fd >= 0)
		close(fd);
	return err;
}

static int open_file(struct opening *op)
{
	struct sqlite_store *s = op->s;
	int64_t app = 0, version = 0, tables = 0;
	int rc, err;

	errno = 0;
	rc = sqlite3_open_v2(s->path, &s->db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			     NULL);
	if (rc != SQLITE_OK)
		return say_sqlite(op, rc, "opening");
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, SQLITE_BUSY_MS);
	/* Before the first access in WAL mode, so that the index of the log is in our memory. */
	err = exec(op, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;", "opening");
	if (!err)
		err = query_int(op, "PRAGMA application_id", &app);
	if (!err)
		err = query_int(op, "PRAGMA user_version", &version);
	if (!err)
		err = query_int(op, "SELECT count(*) FROM sqlite_schema", &tables);
	if (err)
		return err;
	if (app != SQLITE_APP_ID && (app != 0 || tables != 0))
		return say(op, -EUCLEAN,
			   "store %s: this is a database of another program: it was left as it is; "
			   "name another file in store.path",
			   s->path);
	if (app == SQLITE_APP_ID && version != SQLITE_SCHEMA_VERSION)
		return say(op, -EPROTO,
			   "store %s: made by another version: its schema is %lld, this program "
			   "knows %d: use the matching version",
			   s->path, (long long)version, SQLITE_SCHEMA_VERSION);
	err = exec(op,
		   "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
		   "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864;",
		   "switching to WAL");
	if (!err && app == 0)
		err = exec(op, schema, "making the tables");
	return err;
}

static int settings(struct opening *op)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "PRAGMA cache_size = -%d; PRAGMA wal_autocheckpoint = %d;",
		 SQLITE_CACHE_KIB, SQLITE_WAL_PAGES);
	return exec(op, sql, "setting up");
}

static int prepare_all(struct opening *op)
{
	static const char *const sql[] = {
#define SQLITE_X(name, text) text,
		SQLITE_STATEMENTS(SQLITE_X)
#undef SQLITE_X
	};

	for (int i = 0; i < SQLITE_S_COUNT; i++) {
		int rc = sqlite3_prepare_v3(op->s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT,
					    &op->s->s[i], NULL);

		if (rc != SQLITE_OK)
			return say_sqlite(op, rc, "preparing statements (damaged schema)");
	}
	return 0;
}

static int read_boot_id(char buf[64])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t n;

	if (!f)
		return -errno;
	n = fread(buf, 1, 63, f);
	fclose(f);
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return n >= 8 ? 0 : -EIO;
}

/* Another boot: leases are over with their rows; retentions go on from where they stood. */
static int reboot(struct opening *op, const char *boot, int64_t now)
{
	char *sql = sqlite3_mprintf(
		"BEGIN IMMEDIATE;"
		"DELETE FROM kv WHERE lease IS NOT NULL; DELETE FROM lease;"
		"UPDATE kv SET expires = max(expires - (SELECT seen FROM meta), 0) + %lld"
		" WHERE expires IS NOT NULL;"
		"UPDATE meta SET boot = %Q, seen = %lld; COMMIT;",
		(long long)now, boot, (long long)now);
	int err;

	if (!sql)
		return -ENOMEM;
	err = exec(op, sql, "noting the reboot");
	sqlite3_free(sql);
	return err;
}

static int load_leases(struct opening *op)
{
	struct sqlite_store *s = op->s;
	sqlite3_stmt *q = NULL;
	int err = 0;
	int rc = sqlite3_prepare_v2(s->db, "SELECT id, ttl, expires FROM lease", -1, &q, NULL);

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(q);
		if (rc != SQLITE_ROW)
			break;
		err = store_lease_reserve(&s->leases);
		if (err)
			break;
		store_lease_add(&s->leases, (uint64_t)sqlite3_column_int64(q, 0),
				sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2));
	}
	sqlite3_finalize(q);
	if (err)
		return say(op, err, "store %s: cannot hold its leases: %s", s->path,
			   strerror(-err));
	return rc == SQLITE_DONE ? 0 : say_sqlite(op, rc, "reading leases");
}

static int load(struct opening *op)
{
	struct sqlite_store *s = op->s;
	char boot[64];
	int64_t rows = 0, same = 0, now = s->clock(s->clock_ctx);
	char *sql;
	int err;

	if (op->o->boot_id)
		snprintf(boot, sizeof(boot), "%s", op->o->boot_id);
	else if ((err = read_boot_id(boot)) != 0)
		return say(op, err, "store %s: cannot read the boot id: %s", s->path,
			   strerror(-err));
	err = query_int(op, "SELECT count(*) FROM meta", &rows);
	if (!err && rows != 1)
		return say(op, -EUCLEAN,
			   "store %s: the table `meta` has %lld rows instead of 1: the file is "
			   "damaged and was left as it is",
			   s->path, (long long)rows);
	sql = sqlite3_mprintf("SELECT boot = %Q FROM meta", boot);
	if (!sql)
		return -ENOMEM;
	if (!err)
		err = query_int(op, sql, &same);
	sqlite3_free(sql);
	if (!err && !same)
		err = reboot(op, boot, now);
	if (!err)
		err = query_int(op, "SELECT rev FROM meta", &s->rev);
	s->next_end = INT64_MAX;
	if (!err)
		err = query_int(op, "SELECT min(expires) FROM kv WHERE expires IS NOT NULL",
				&s->next_end);
	return err ? err : load_leases(op);
}

int sqlite_store_init(struct sqlite_store *s, const struct store_sqlite_opts *o, char *err,
		      size_t err_size)
{
	struct opening op = {s, o, err, err_size};
	uint64_t seed = 0;
	int rc;

	s->lock_fd = -1;
	s->clock = o->clock ? o->clock : store_boottime_ms;
	s->clock_ctx = o->clock_ctx;
	s->path = strdup(o->path);
	if (!s->path || asprintf(&s->st.name, "sqlite %s", o->path) < 0)
		return -ENOMEM;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return say(&op, -EIO, "store %s: no random numbers", s->path);
	snapshots_init(&s->snaps, seed);
	rc = take_lock(&op);
	if (!rc)
		rc = open_file(&op);
	if (!rc)
		rc = settings(&op);
	if (!rc)
		rc = prepare_all(&op);
	if (!rc)
		rc = load(&op);
	return rc;
}
