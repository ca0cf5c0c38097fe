/* SPDX-License-Identifier: BSD-3-Clause */
/* The store in memory: a skip list of rows. Called on the thread that uses the store; owns every
 * row; a commit fails only for want of memory, and then before it changed anything. Rows whose end
 * has passed are invisible at once and swept away a few at a time, with each commit. */
#include "control/store/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SWEEP_PER_COMMIT 16 /* rows looked at; more than a usual commit adds */

struct memory {
	struct store st;
	char name[16];
	struct store_memory_opts opts;
	struct skiplist rows;
	struct skip_node *sweep; /* next row to look at; NULL = start again */
	struct store_leases leases;
	struct snapshots snaps;
	int64_t rev;
	struct skip_node **nodes; /* scratch of one transaction: new nodes */
	void **vals;		  /* and new values */
	size_t room;
	struct skip_node *iter; /* of the scan that runs */
};

static struct memory *memory_of(struct store *st)
{
	return (struct memory *)st;
}

static int64_t clock_now(const struct memory *m)
{
	return m->opts.clock(m->opts.clock_ctx);
}

/* The live row of a key, or NULL. */
static struct skip_node *live(struct memory *m, struct store_bytes key, int64_t now)
{
	struct skip_node *nd = skiplist_find(&m->rows, key);

	return nd && store_row_alive(&m->leases, &nd->row, now) ? nd : NULL;
}

static int memory_read(struct store *st, struct store_bytes key, struct store_item *out)
{
	struct memory *m = memory_of(st);
	struct skip_node *nd = live(m, key, clock_now(m));

	if (!nd)
		return STORE_MISSING;
	out->val = malloc(nd->row.val.n ? nd->row.val.n : 1);
	if (!out->val)
		return -ENOMEM;
	if (nd->row.val.n)
		memcpy(out->val, nd->row.val.p, nd->row.val.n);
	out->len = nd->row.val.n;
	out->cr = nd->row.cr;
	out->mr = nd->row.mr;
	out->lease = nd->row.lease;
	return STORE_OK;
}

static void drop(struct memory *m, struct skip_node *nd)
{
	snapshots_note(&m->snaps, &m->leases, nd->row.key, &nd->row);
	if (m->sweep == nd)
		m->sweep = nd->next[0];
	skiplist_remove(&m->rows, nd);
}

static void sweep(struct memory *m, int64_t now)
{
	for (unsigned i = 0; i < SWEEP_PER_COMMIT; i++) {
		struct skip_node *nd = m->sweep ? m->sweep : m->rows.head->next[0];

		if (!nd)
			return;
		m->sweep = nd->next[0];
		if (!store_row_alive(&m->leases, &nd->row, now))
			drop(m, nd);
	}
}

/* Leases that have ended go with all their rows. */
static void end_leases(struct memory *m, int64_t now, uint64_t only)
{
	for (size_t i = 0; i < m->leases.n;) {
		uint64_t id = m->leases.v[i].id;

		if (only ? id != only : m->leases.v[i].expires > now) {
			i++;
			continue;
		}
		for (struct skip_node *nd = m->rows.head->next[0], *next; nd; nd = next) {
			next = nd->next[0];
			if (nd->row.lease == id)
				drop(m, nd);
		}
		store_lease_remove(&m->leases, id);
	}
}

static int check(struct memory *m, const struct store_txn *t, int64_t now)
{
	for (size_t i = 0; i < t->n_conds; i++) {
		struct skip_node *nd = live(m, t->conds[i].key, now);

		if (!store_cond_holds(&t->conds[i], nd ? &nd->row : NULL))
			return STORE_CONFLICT;
	}
	for (size_t i = 0; i < t->n_muts; i++) {
		const struct store_mut *mu = &t->muts[i];
		const struct store_lease *l =
			mu->lease ? store_lease_find(&m->leases, mu->lease) : NULL;

		if (!mu->del && mu->lease && (!l || l->expires <= now))
			return STORE_STALE_LEASE;
	}
	return STORE_OK;
}

static int scratch(struct memory *m, size_t n)
{
	struct skip_node **nodes;
	void **vals;

	if (n <= m->room)
		return 0;
	nodes = realloc(m->nodes, n * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	m->nodes = nodes;
	vals = realloc(m->vals, n * sizeof(*vals));
	if (!vals)
		return -ENOMEM;
	m->vals = vals;
	m->room = n;
	return 0;
}

/* Memory for every put, so that the second half of a commit cannot fail. */
static int prepare(struct memory *m, const struct store_txn *t)
{
	size_t i;

	if (scratch(m, t->n_muts))
		return -ENOMEM;
	for (i = 0; i < t->n_muts; i++) {
		const struct store_mut *mu = &t->muts[i];

		m->nodes[i] = NULL;
		m->vals[i] = NULL;
		if (mu->del)
			continue;
		if (mu->val.n) {
			m->vals[i] = malloc(mu->val.n);
			if (!m->vals[i])
				goto undo;
			memcpy(m->vals[i], mu->val.p, mu->val.n);
		}
		if (skiplist_find(&m->rows, mu->key))
			continue;
		m->nodes[i] = skiplist_node(&m->rows, mu->key);
		if (!m->nodes[i]) {
			free(m->vals[i]);
			goto undo;
		}
	}
	return 0;
undo:
	while (i-- > 0) {
		free(m->vals[i]);
		free(m->nodes[i]);
	}
	return -ENOMEM;
}

static void put(struct memory *m, const struct store_mut *mu, struct skip_node *fresh, void *val,
		int64_t now)
{
	struct skip_node *nd = fresh;
	union {
		const void *c;
		void *p;
	} old;

	if (fresh) {
		snapshots_note(&m->snaps, &m->leases, mu->key, NULL);
		fresh->row.cr = m->rev;
		skiplist_insert(&m->rows, fresh);
	} else {
		nd = skiplist_find(&m->rows, mu->key);
		snapshots_note(&m->snaps, &m->leases, mu->key, &nd->row);
		if (!store_row_alive(&m->leases, &nd->row, now))
			nd->row.cr = m->rev; /* an ended row is absent */
	}
	old.c = nd->row.val.p;
	free(old.p);
	nd->row.val = (struct store_bytes){val, mu->val.n};
	nd->row.mr = m->rev;
	nd->row.lease = mu->lease;
	nd->row.expires = mu->keep_ms ? now + mu->keep_ms : INT64_MAX;
}

static int commit_one(struct memory *m, struct store_txn *t, int64_t now)
{
	int rc = check(m, t, now);

	if (rc)
		return rc;
	if (m->rev == INT64_MAX)
		return store_fail(&m->st, STORE_EXHAUSTED, "store memory: no revision is left");
	rc = prepare(m, t);
	if (rc)
		return rc;
	m->rev++;
	for (size_t i = 0; i < t->n_muts; i++) {
		struct skip_node *nd;

		if (!t->muts[i].del) {
			put(m, &t->muts[i], m->nodes[i], m->vals[i], now);
			continue;
		}
		nd = skiplist_find(&m->rows, t->muts[i].key);
		if (nd)
			drop(m, nd);
	}
	t->rev = m->rev;
	return STORE_OK;
}

static int memory_commit(struct store *st, struct store_txn *txns, size_t n)
{
	struct memory *m = memory_of(st);
	int64_t now = clock_now(m);

	end_leases(m, now, 0);
	for (size_t i = 0; i < n; i++) {
		txns[i].rc = commit_one(m, &txns[i], now);
		sweep(m, now);
	}
	return 0;
}

static int memory_grant(struct store *st, int64_t *ttl_ms, uint64_t *lease)
{
	struct memory *m = memory_of(st);
	int64_t now = clock_now(m);
	int err;

	end_leases(m, now, 0);
	if (m->rev == INT64_MAX)
		return store_fail(st, STORE_EXHAUSTED, "store memory: no revision is left");
	err = store_lease_reserve(&m->leases);
	if (err == -ENOSPC)
		return store_fail(st, STORE_FAILED, "store memory: %d leases are held, no more",
				  STORE_LEASES_MAX);
	if (err)
		return err;
	*lease = (uint64_t)++m->rev;
	store_lease_add(&m->leases, *lease, *ttl_ms, now + *ttl_ms);
	return STORE_OK;
}

static int memory_renew(struct store *st, uint64_t lease, int64_t *ttl_ms)
{
	struct memory *m = memory_of(st);
	int64_t now = clock_now(m);
	struct store_lease *l;

	end_leases(m, now, 0);
	l = store_lease_find(&m->leases, lease);
	if (!l)
		return STORE_MISSING;
	l->expires = now + l->ttl_ms;
	*ttl_ms = l->ttl_ms;
	return STORE_OK;
}

static int memory_revoke(struct store *st, uint64_t lease)
{
	struct memory *m = memory_of(st);

	end_leases(m, clock_now(m), 0);
	if (!store_lease_find(&m->leases, lease))
		return STORE_MISSING;
	if (m->rev < INT64_MAX)
		m->rev++;
	end_leases(m, 0, lease);
	return STORE_OK;
}

static void iter_seek(void *ctx, struct store_bytes key, bool after)
{
	struct memory *m = ctx;

	m->iter = skiplist_seek(&m->rows, key, after);
}

static int iter_next(void *ctx, struct store_row *row)
{
	struct memory *m = ctx;

	if (!m->iter)
		return 0;
	*row = m->iter->row;
	m->iter = m->iter->next[0];
	return 1;
}

static int memory_scan(struct store *st, struct store_bytes prefix,
		       const struct store_cursor *cursor, size_t limit, struct store_page *out)
{
	struct memory *m = memory_of(st);
	const struct snapshot_source src = {iter_seek, iter_next, m};

	return snapshots_page(&m->snaps, &m->leases, clock_now(m), prefix, cursor, limit, &src,
			      out);
}

static void memory_close(struct store *st)
{
	struct memory *m = memory_of(st);

	snapshots_fini(&m->snaps);
	skiplist_fini(&m->rows);
	free(m->leases.v);
	free(m->nodes);
	free(m->vals);
	free(m);
}

static const struct store_ops memory_ops = {
	.read = memory_read,
	.commit = memory_commit,
	.grant = memory_grant,
	.renew = memory_renew,
	.revoke = memory_revoke,
	.scan = memory_scan,
	.close = memory_close,
};

int store_memory_open(struct store **out, const struct store_memory_opts *o)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	if (o)
		m->opts = *o;
	if (!m->opts.clock)
		m->opts.clock = store_boottime_ms;
	if (skiplist_init(&m->rows, m->opts.seed)) {
		free(m);
		return -ENOMEM;
	}
	snapshots_init(&m->snaps, m->opts.seed);
	snprintf(m->name, sizeof(m->name), "memory");
	m->st.ops = &memory_ops;
	m->st.name = m->name;
	*out = &m->st;
	return 0;
}

void store_memory_set_rev(struct store *st, int64_t rev)
{
	memory_of(st)->rev = rev;
}
