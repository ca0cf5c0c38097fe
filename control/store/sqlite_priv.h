/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the SQLite store: sqlite_open.c makes and checks it, sqlite.c runs it. One thread. */
#ifndef SPL_CONTROL_STORE_SQLITE_PRIV_H
#define SPL_CONTROL_STORE_SQLITE_PRIV_H

#include "control/store/snapshot.h"
#include "control/store/store_sqlite.h"

#include <sqlite3.h>

#define SQLITE_APP_ID	      0x53504c31 /* "SPL1" */
#define SQLITE_SCHEMA_VERSION 1
#define SQLITE_CACHE_KIB      65536
#define SQLITE_WAL_PAGES      8192 /* checkpoint after so many */
#define SQLITE_BUSY_MS	      500  /* at open: how long another program may hold the file */
#define SQLITE_PURGE_ROWS     256  /* ended rows removed with one commit */

/* X(name, sql) */
#define SQLITE_STATEMENTS(X) \
	X(GET, "SELECT val, cr, mr, lease, expires FROM kv WHERE key = ?1") \
	X(VERSION, "SELECT cr, mr, lease, expires FROM kv WHERE key = ?1") \
	X(PUT, "INSERT INTO kv(key, val, cr, mr, lease, expires) VALUES(?1, ?2, ?3, ?3, ?4, ?5)" \
	       " ON CONFLICT(key) DO UPDATE SET val = excluded.val, mr = excluded.mr," \
	       " cr = CASE WHEN kv.expires <= ?6 THEN excluded.cr ELSE kv.cr END," \
	       " lease = excluded.lease, expires = excluded.expires") \
	X(DELETE, "DELETE FROM kv WHERE key = ?1") \
	X(META, "UPDATE meta SET rev = ?1, seen = ?2") \
	X(LEASE_KEYS, "SELECT key, val, cr, mr, lease, expires FROM kv WHERE lease = ?1") \
	X(LEASE_CLEAR, "DELETE FROM kv WHERE lease = ?1") \
	X(LEASE_PUT, "INSERT INTO lease(id, ttl, expires) VALUES(?1, ?2, ?3)" \
		     " ON CONFLICT(id) DO UPDATE SET expires = excluded.expires") \
	X(LEASE_DELETE, "DELETE FROM lease WHERE id = ?1") \
	X(ENDED, "SELECT key, val, cr, mr, lease, expires FROM kv" \
		 " WHERE expires IS NOT NULL AND expires <= ?1 ORDER BY expires LIMIT ?2") \
	X(FROM, "SELECT key, val, cr, mr, lease, expires FROM kv WHERE key >= ?1 ORDER BY key") \
	X(AFTER, "SELECT key, val, cr, mr, lease, expires FROM kv WHERE key > ?1 ORDER BY key")

enum sqlite_statement {
#define SQLITE_X(name, sql) SQLITE_S_##name,
	SQLITE_STATEMENTS(SQLITE_X)
#undef SQLITE_X
		SQLITE_S_COUNT
};

struct sqlite_store {
	struct store st;
	char *path;
	store_clock_fn clock;
	void *clock_ctx;
	int lock_fd;
	sqlite3 *db;
	sqlite3_stmt *s[SQLITE_S_COUNT];
	struct store_leases leases;
	struct snapshots snaps;
	int64_t rev;
	int64_t next_end;   /* no row ends by itself before; INT64_MAX: none */
	sqlite3_stmt *iter; /* of the scan that runs */
};

static inline struct sqlite_store *sqlite_of(struct store *st)
{
	return (struct sqlite_store *)st;
}

/* Opens everything; on error what was opened is in `s` for sqlite_store_fini(). -errno as in
 * store_sqlite.h. */
int sqlite_store_init(struct sqlite_store *s, const struct store_sqlite_opts *o, char *err,
		      size_t err_size);
void sqlite_store_fini(struct sqlite_store *s);

/* A sentence about the SQLite result `rc` at `path` into buf. */
void sqlite_explain(const char *path, sqlite3 *db, int rc, const char *doing, char *buf,
		    size_t size);

#endif
