/* SPDX-License-Identifier: BSD-3-Clause */
/* The SQLite store at work: reads, commits, leases, scans. Called on the thread that uses the
 * store; blocks on the disk. One SQLite transaction a call; all transactions of a batch are applied
 * inside it and become durable with its one commit. Memory copies (leases, rev) change only after
 * that commit succeeded. */
#include "control/store/sqlite_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fail(struct sqlite_store *s, int store_rc, int rc, const char *doing)
{
	sqlite_explain(s->path, s->db, rc, doing, s->st.text, sizeof(s->st.text));
	return store_rc;
}

static void bind_key(sqlite3_stmt *q, int at, struct store_bytes key)
{
	sqlite3_bind_blob(q, at, key.n ? key.p : "", (int)key.n, SQLITE_STATIC);
}

/* Columns cr, mr, lease, expires from column `at` on. */
static void columns(sqlite3_stmt *q, int at, struct store_row *row)
{
	row->cr = sqlite3_column_int64(q, at);
	row->mr = sqlite3_column_int64(q, at + 1);
	row->lease = (uint64_t)sqlite3_column_int64(q, at + 2);
	row->expires = sqlite3_column_type(q, at + 3) == SQLITE_NULL
			       ? INT64_MAX
			       : sqlite3_column_int64(q, at + 3);
}

static void whole_row(sqlite3_stmt *q, struct store_row *row)
{
	*row = (struct store_row){
		.key = {sqlite3_column_blob(q, 0), (uint32_t)sqlite3_column_bytes(q, 0)},
		.val = {sqlite3_column_blob(q, 1), (uint32_t)sqlite3_column_bytes(q, 1)},
	};
	columns(q, 2, row);
}

/* Runs a statement that returns no row. */
static int run(sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);

	sqlite3_reset(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int begin(struct sqlite_store *s)
{
	return sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
}

static void rollback(struct sqlite_store *s)
{
	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* Ends the SQLite transaction. STORE_OK, FAILED (nothing written) or UNKNOWN: an I/O error while
 * writing or syncing the log does not say whether the commit record reached the disk. */
static int commit(struct sqlite_store *s)
{
	int rc;

	errno = 0;
	rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		return STORE_OK;
	fail(s, 0, rc, "commit");
	rollback(s);
	return (rc & 0xff) == SQLITE_IOERR ? STORE_UNKNOWN : STORE_FAILED;
}

static int sqlite_read(struct store *st, struct store_bytes key, struct store_item *out)
{
	struct sqlite_store *s = sqlite_of(st);
	sqlite3_stmt *q = s->s[SQLITE_S_GET];
	struct store_row row;
	int rc, res = STORE_MISSING;

	bind_key(q, 1, key);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		columns(q, 1, &row);
		if (store_row_alive(&s->leases, &row, s->clock(s->clock_ctx))) {
			out->len = (uint32_t)sqlite3_column_bytes(q, 0);
			out->val = malloc(out->len ? out->len : 1);
			out->cr = row.cr;
			out->mr = row.mr;
			out->lease = row.lease;
			if (out->val && out->len)
				memcpy(out->val, sqlite3_column_blob(q, 0), out->len);
			res = out->val ? STORE_OK : -ENOMEM;
		}
	} else if (rc != SQLITE_DONE) {
		res = fail(s, STORE_FAILED, rc, "read");
	}
	sqlite3_reset(q);
	return res;
}

/* Reports the row under `key` to open snapshots before it changes. */
static int note(struct sqlite_store *s, struct store_bytes key)
{
	sqlite3_stmt *q = s->s[SQLITE_S_GET];
	struct store_row row = {.key = key};
	int rc;

	if (!s->snaps.live)
		return SQLITE_OK;
	bind_key(q, 1, key);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		row.val = (struct store_bytes){sqlite3_column_blob(q, 0),
					       (uint32_t)sqlite3_column_bytes(q, 0)};
		columns(q, 1, &row);
		snapshots_note(&s->snaps, &s->leases, key, &row);
	} else if (rc == SQLITE_DONE) {
		snapshots_note(&s->snaps, &s->leases, key, NULL);
	}
	sqlite3_reset(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int delete_key(struct sqlite_store *s, struct store_bytes key)
{
	int rc = note(s, key);

	if (rc != SQLITE_OK)
		return rc;
	bind_key(s->s[SQLITE_S_DELETE], 1, key);
	return run(s->s[SQLITE_S_DELETE]);
}

/* Removes the rows of one lease and the lease. */
static int clear_lease(struct sqlite_store *s, uint64_t id)
{
	sqlite3_stmt *q = s->s[SQLITE_S_LEASE_KEYS];
	struct store_row row;
	int rc;

	sqlite3_bind_int64(q, 1, (int64_t)id);
	while (s->snaps.live && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		whole_row(q, &row);
		snapshots_note(&s->snaps, &s->leases, row.key, &row);
	}
	sqlite3_reset(q);
	sqlite3_bind_int64(s->s[SQLITE_S_LEASE_CLEAR], 1, (int64_t)id);
	rc = run(s->s[SQLITE_S_LEASE_CLEAR]);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(s->s[SQLITE_S_LEASE_DELETE], 1, (int64_t)id);
	return run(s->s[SQLITE_S_LEASE_DELETE]);
}

static int clear_ended_leases(struct sqlite_store *s, int64_t now)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < s->leases.n && rc == SQLITE_OK; i++)
		if (s->leases.v[i].expires <= now)
			rc = clear_lease(s, s->leases.v[i].id);
	return rc;
}

/* After the commit: the ended leases leave memory too. */
static void forget_ended_leases(struct sqlite_store *s, int64_t now)
{
	for (size_t i = 0; i < s->leases.n;)
		if (s->leases.v[i].expires <= now)
			store_lease_remove(&s->leases, s->leases.v[i].id);
		else
			i++;
}

/* Removes at most SQLITE_PURGE_ROWS rows whose retention is over. */
static int purge(struct sqlite_store *s, int64_t now)
{
	sqlite3_stmt *q = s->s[SQLITE_S_ENDED];
	uint8_t(*keys)[STORE_KEY_MAX];
	uint32_t len[SQLITE_PURGE_ROWS];
	struct store_row row;
	int n = 0, rc;

	if (now < s->next_end)
		return SQLITE_OK;
	keys = malloc(SQLITE_PURGE_ROWS * sizeof(*keys));
	if (!keys)
		return SQLITE_NOMEM;
	sqlite3_bind_int64(q, 1, now);
	sqlite3_bind_int(q, 2, SQLITE_PURGE_ROWS);
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		whole_row(q, &row);
		snapshots_note(&s->snaps, &s->leases, row.key, &row);
		memcpy(keys[n], row.key.p, row.key.n);
		len[n++] = row.key.n;
	}
	sqlite3_reset(q);
	rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	for (int i = 0; i < n && rc == SQLITE_OK; i++) {
		bind_key(s->s[SQLITE_S_DELETE], 1, (struct store_bytes){keys[i], len[i]});
		rc = run(s->s[SQLITE_S_DELETE]);
	}
	free(keys);
	if (rc == SQLITE_OK && n < SQLITE_PURGE_ROWS) /* not a full page: look again in a second */
		s->next_end = now + 1000;
	return rc;
}

/* STORE_OK when every condition holds, CONFLICT, STALE_LEASE, or SQLite's rc as -rc. */
static int check(struct sqlite_store *s, const struct store_txn *t, int64_t now)
{
	sqlite3_stmt *q = s->s[SQLITE_S_VERSION];

	for (size_t i = 0; i < t->n_conds; i++) {
		struct store_row row = {.key = t->conds[i].key};
		bool there;
		int rc;

		bind_key(q, 1, row.key);
		rc = sqlite3_step(q);
		if (rc == SQLITE_ROW)
			columns(q, 0, &row);
		sqlite3_reset(q);
		if (rc != SQLITE_ROW && rc != SQLITE_DONE)
			return -rc;
		there = rc == SQLITE_ROW && store_row_alive(&s->leases, &row, now);
		if (!store_cond_holds(&t->conds[i], there ? &row : NULL))
			return STORE_CONFLICT;
	}
	for (size_t i = 0; i < t->n_muts; i++) {
		const struct store_mut *m = &t->muts[i];
		const struct store_lease *l;

		if (m->del || !m->lease)
			continue;
		l = store_lease_find(&s->leases, m->lease);
		if (!l || l->expires <= now)
			return STORE_STALE_LEASE;
	}
	return STORE_OK;
}

static int put(struct sqlite_store *s, const struct store_mut *m, int64_t rev, int64_t now)
{
	sqlite3_stmt *q = s->s[SQLITE_S_PUT];
	int rc = note(s, m->key);

	if (rc != SQLITE_OK)
		return rc;
	bind_key(q, 1, m->key);
	sqlite3_bind_int64(q, 6, now);
	sqlite3_bind_blob(q, 2, m->val.n ? m->val.p : "", (int)m->val.n, SQLITE_STATIC);
	sqlite3_bind_int64(q, 3, rev);
	if (m->lease)
		sqlite3_bind_int64(q, 4, (int64_t)m->lease);
	else
		sqlite3_bind_null(q, 4);
	if (m->keep_ms) {
		sqlite3_bind_int64(q, 5, now + m->keep_ms);
		if (now + m->keep_ms < s->next_end)
			s->next_end = now + m->keep_ms;
	} else {
		sqlite3_bind_null(q, 5);
	}
	return run(q);
}

static int apply(struct sqlite_store *s, const struct store_txn *t, int64_t rev, int64_t now)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < t->n_muts && rc == SQLITE_OK; i++) {
		rc = t->muts[i].del ? delete_key(s, t->muts[i].key) : put(s, &t->muts[i], rev, now);
	}
	return rc;
}

static int write_meta(struct sqlite_store *s, int64_t rev, int64_t now)
{
	sqlite3_bind_int64(s->s[SQLITE_S_META], 1, rev);
	sqlite3_bind_int64(s->s[SQLITE_S_META], 2, now);
	return run(s->s[SQLITE_S_META]);
}

/* Everything of a batch inside the open SQLite transaction; *rev is the last revision used.
 * Returns SQLite's rc. */
static int apply_all(struct sqlite_store *s, struct store_txn *txns, size_t n, int64_t now,
		     int64_t *rev)
{
	int rc = clear_ended_leases(s, now);

	if (rc == SQLITE_OK)
		rc = purge(s, now);
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
		struct store_txn *t = &txns[i];

		t->rc = check(s, t, now);
		if (t->rc < 0)
			return -t->rc;
		if (t->rc == STORE_OK && *rev == INT64_MAX)
			t->rc = store_fail(&s->st, STORE_EXHAUSTED, "store %s: no revision is left",
					   s->path);
		if (t->rc != STORE_OK)
			continue;
		t->rev = ++*rev;
		rc = apply(s, t, t->rev, now);
	}
	return rc == SQLITE_OK ? write_meta(s, *rev, now) : rc;
}

static int sqlite_commit(struct store *st, struct store_txn *txns, size_t n)
{
	struct sqlite_store *s = sqlite_of(st);
	int64_t now = s->clock(s->clock_ctx), rev = s->rev;
	int rc, res;

	errno = 0;
	rc = begin(s);
	if (rc == SQLITE_OK)
		rc = apply_all(s, txns, n, now, &rev);
	if (rc != SQLITE_OK) {
		res = fail(s, STORE_FAILED, rc, "write");
		rollback(s);
		return res;
	}
	res = commit(s);
	if (res != STORE_OK)
		return res;
	s->rev = rev;
	forget_ended_leases(s, now);
	return 0;
}

/* One lease change as a commit of its own: `id` 0 grants. `end` true revokes. */
static int change_lease(struct sqlite_store *s, uint64_t id, bool end, int64_t *ttl_ms,
			uint64_t *granted)
{
	int64_t now = s->clock(s->clock_ctx), rev = s->rev;
	struct store_lease *l = id ? store_lease_find(&s->leases, id) : NULL;
	sqlite3_stmt *q = s->s[SQLITE_S_LEASE_PUT];
	int rc, res;

	if (id && (!l || l->expires <= now))
		return STORE_MISSING;
	if (!id && rev == INT64_MAX)
		return store_fail(&s->st, STORE_EXHAUSTED, "store %s: no revision is left",
				  s->path);
	if ((!id || end) && rev < INT64_MAX)
		rev++;
	errno = 0;
	rc = begin(s);
	if (rc == SQLITE_OK)
		rc = clear_ended_leases(s, now);
	if (rc == SQLITE_OK && end) {
		rc = clear_lease(s, id);
	} else if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, id ? (int64_t)id : rev);
		sqlite3_bind_int64(q, 2, l ? l->ttl_ms : *ttl_ms);
		sqlite3_bind_int64(q, 3, now + (l ? l->ttl_ms : *ttl_ms));
		rc = run(q);
	}
	if (rc == SQLITE_OK)
		rc = write_meta(s, rev, now);
	if (rc != SQLITE_OK) {
		res = fail(s, STORE_FAILED, rc, "write");
		rollback(s);
		return res;
	}
	res = commit(s);
	if (res != STORE_OK)
		return res;
	s->rev = rev;
	if (end) {
		store_lease_remove(&s->leases, id);
	} else if (l) {
		l->expires = now + l->ttl_ms;
		*ttl_ms = l->ttl_ms;
	} else {
		store_lease_add(&s->leases, (uint64_t)rev, *ttl_ms, now + *ttl_ms);
		*granted = (uint64_t)rev;
	}
	forget_ended_leases(s, now);
	return STORE_OK;
}

static int sqlite_grant(struct store *st, int64_t *ttl_ms, uint64_t *lease)
{
	struct sqlite_store *s = sqlite_of(st);
	int err = store_lease_reserve(&s->leases);

	if (err == -ENOSPC)
		return store_fail(st, STORE_FAILED, "store %s: %d leases are held, no more",
				  s->path, STORE_LEASES_MAX);
	return err ? err : change_lease(s, 0, false, ttl_ms, lease);
}

static int sqlite_renew(struct store *st, uint64_t lease, int64_t *ttl_ms)
{
	return change_lease(sqlite_of(st), lease, false, ttl_ms, NULL);
}

static int sqlite_revoke(struct store *st, uint64_t lease)
{
	return change_lease(sqlite_of(st), lease, true, NULL, NULL);
}

static void iter_seek(void *ctx, struct store_bytes key, bool after)
{
	struct sqlite_store *s = ctx;

	s->iter = s->s[after ? SQLITE_S_AFTER : SQLITE_S_FROM];
	bind_key(s->iter, 1, key);
}

static int iter_next(void *ctx, struct store_row *row)
{
	struct sqlite_store *s = ctx;
	int rc = sqlite3_step(s->iter);

	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return SNAPSHOT_FAIL(fail(s, STORE_FAILED, rc, "scan"));
	whole_row(s->iter, row);
	return 1;
}

static int sqlite_scan(struct store *st, struct store_bytes prefix,
		       const struct store_cursor *cursor, size_t limit, struct store_page *out)
{
	struct sqlite_store *s = sqlite_of(st);
	const struct snapshot_source src = {iter_seek, iter_next, s};
	int rc;

	s->iter = NULL;
	rc = snapshots_page(&s->snaps, &s->leases, s->clock(s->clock_ctx), prefix, cursor, limit,
			    &src, out);
	if (s->iter)
		sqlite3_reset(s->iter);
	return rc;
}

void sqlite_store_fini(struct sqlite_store *s)
{
	snapshots_fini(&s->snaps);
	for (int i = 0; i < SQLITE_S_COUNT; i++)
		sqlite3_finalize(s->s[i]);
	sqlite3_close(s->db);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s->leases.v);
	free(s->path);
	free(s->st.name);
	free(s);
}

static void sqlite_close(struct store *st)
{
	sqlite_store_fini(sqlite_of(st));
}

static const struct store_ops sqlite_ops = {
	.read = sqlite_read,
	.commit = sqlite_commit,
	.grant = sqlite_grant,
	.renew = sqlite_renew,
	.revoke = sqlite_revoke,
	.scan = sqlite_scan,
	.close = sqlite_close,
};

int store_sqlite_open(struct store **out, const struct store_sqlite_opts *o, char *err,
		      size_t err_size)
{
	struct sqlite_store *s = calloc(1, sizeof(*s));
	int rc;

	snprintf(err, err_size, "store %s: out of memory", o->path);
	if (!s)
		return -ENOMEM;
	s->st.ops = &sqlite_ops;
	rc = sqlite_store_init(s, o, err, err_size);
	if (rc) {
		sqlite_store_fini(s);
		return rc;
	}
	err[0] = 0;
	*out = &s->st;
	return 0;
}
