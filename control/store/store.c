/* SPDX-License-Identifier: BSD-3-Clause */
/* The front of every store: checks arguments before any I/O, then calls the back end; runs request
 * batches; frees results. Called on the thread that uses the store. Owns nothing but st->text. */
#include "control/store/store_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEYS_INLINE 32 /* up to here keys are compared pairwise, beyond by sorting */

int64_t store_boottime_ms(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int store_fail(struct store *st, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(st->text, sizeof(st->text), fmt, ap);
	va_end(ap);
	return rc;
}

struct store_lease *store_lease_find(const struct store_leases *t, uint64_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].id == id)
			return &t->v[i];
	return NULL;
}

int store_lease_reserve(struct store_leases *t)
{
	size_t room = t->room ? t->room * 2 : 8;
	struct store_lease *v;

	if (t->n == STORE_LEASES_MAX)
		return -ENOSPC;
	if (t->n < t->room)
		return 0;
	v = realloc(t->v, room * sizeof(*v));
	if (!v)
		return -ENOMEM;
	t->v = v;
	t->room = room;
	return 0;
}

void store_lease_add(struct store_leases *t, uint64_t id, int64_t ttl_ms, int64_t expires)
{
	t->v[t->n++] = (struct store_lease){id, ttl_ms, expires};
}

void store_lease_remove(struct store_leases *t, uint64_t id)
{
	struct store_lease *l = store_lease_find(t, id);

	if (l)
		*l = t->v[--t->n];
}

int64_t store_row_end(const struct store_leases *t, const struct store_row *row)
{
	const struct store_lease *l;

	if (!row->lease)
		return row->expires;
	l = store_lease_find(t, row->lease);
	if (!l)
		return 0;
	return l->expires < row->expires ? l->expires : row->expires;
}

bool store_cond_holds(const struct store_cond *c, const struct store_row *row)
{
	switch (c->test) {
	case STORE_IF_ABSENT:
		return !row;
	case STORE_IF_MR:
		return row && row->mr == c->rev;
	case STORE_IF_CR:
		return row && row->cr == c->rev;
	case STORE_IF_CR_NOT:
		return !row || row->cr != c->rev;
	}
	return false;
}

static bool key_ok(struct store_bytes k)
{
	return k.p && k.n >= 1 && k.n <= STORE_KEY_MAX;
}

static int cmp_keys(const void *a, const void *b)
{
	return store_bytes_cmp(**(const struct store_bytes *const *)a,
			       **(const struct store_bytes *const *)b);
}

/* True when two of the n keys are equal. -ENOMEM possible. */
static int any_twice(const struct store_bytes **k, size_t n)
{
	if (n > KEYS_INLINE) {
		qsort(k, n, sizeof(*k), cmp_keys);
		for (size_t i = 1; i < n; i++)
			if (store_bytes_cmp(*k[i - 1], *k[i]) == 0)
				return 1;
		return 0;
	}
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (store_bytes_cmp(*k[i], *k[j]) == 0)
				return 1;
	return 0;
}

static size_t count_distinct(const struct store_bytes **k, size_t n)
{
	size_t d = n ? 1 : 0;

	qsort(k, n, sizeof(*k), cmp_keys);
	for (size_t i = 1; i < n; i++)
		d += store_bytes_cmp(*k[i - 1], *k[i]) != 0;
	return d;
}

static int check_sizes(const struct store_txn *t)
{
	size_t bytes = 0;

	if (t->n_muts == 0 || t->n_muts > STORE_TXN_KEYS_MAX || t->n_conds > STORE_TXN_KEYS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < t->n_conds; i++) {
		if (!key_ok(t->conds[i].key) || (unsigned)t->conds[i].test > STORE_IF_CR_NOT)
			return -EINVAL;
		bytes += t->conds[i].key.n;
	}
	for (size_t i = 0; i < t->n_muts; i++) {
		const struct store_mut *m = &t->muts[i];

		if (!key_ok(m->key))
			return -EINVAL;
		bytes += m->key.n;
		if (m->del)
			continue;
		if (m->val.n > STORE_VALUE_MAX || (m->val.n && !m->val.p) || m->keep_ms < 0 ||
		    (m->lease && m->keep_ms))
			return -EINVAL;
		bytes += m->val.n;
	}
	return bytes > STORE_TXN_BYTES_MAX ? -EINVAL : 0;
}

/* A-STORE-4: sizes, each key once a side, distinct keys of both sides together. */
static int check_txn(const struct store_txn *t)
{
	const struct store_bytes *few[2 * KEYS_INLINE], **k = few;
	size_t n = t->n_conds + t->n_muts;
	int err = check_sizes(t);

	if (err)
		return err;
	if (n > 2 * KEYS_INLINE) {
		k = malloc(n * sizeof(*k));
		if (!k)
			return -ENOMEM;
	}
	for (size_t i = 0; i < t->n_conds; i++)
		k[i] = &t->conds[i].key;
	for (size_t i = 0; i < t->n_muts; i++)
		k[t->n_conds + i] = &t->muts[i].key;
	if (any_twice(k, t->n_conds) || any_twice(k + t->n_conds, t->n_muts))
		err = -EINVAL;
	else if (n > STORE_TXN_KEYS_MAX && count_distinct(k, n) > STORE_TXN_KEYS_MAX)
		err = -EINVAL;
	if (k != few)
		free(k);
	return err;
}

int store_read(struct store *st, struct store_bytes key, struct store_item *out)
{
	memset(out, 0, sizeof(*out));
	return key_ok(key) ? st->ops->read(st, key, out) : -EINVAL;
}

void store_item_free(struct store_item *it)
{
	free(it->val);
	it->val = NULL;
}

int store_commit_batch(struct store *st, struct store_txn *txns, size_t n)
{
	size_t from = 0;
	int err;

	for (size_t i = 0; i < n; i++)
		txns[i].rc = check_txn(&txns[i]);
	/* A run of good ones is one commit; a bad one stands by itself and touches nothing. */
	while (from < n) {
		size_t to = from;

		while (to < n && txns[to].rc == 0)
			to++;
		if (to > from) {
			err = st->ops->commit(st, txns + from, to - from);
			if (err)
				for (size_t i = from; i < to; i++)
					txns[i].rc = err;
		}
		from = to + 1;
	}
	return 0;
}

int store_commit(struct store *st, struct store_txn *txn)
{
	store_commit_batch(st, txn, 1);
	return txn->rc;
}

int store_grant(struct store *st, int64_t *ttl_ms, uint64_t *lease)
{
	return *ttl_ms >= 1 ? st->ops->grant(st, ttl_ms, lease) : -EINVAL;
}

int store_renew(struct store *st, uint64_t lease, int64_t *ttl_ms)
{
	return lease ? st->ops->renew(st, lease, ttl_ms) : -EINVAL;
}

int store_revoke(struct store *st, uint64_t lease)
{
	return lease ? st->ops->revoke(st, lease) : -EINVAL;
}

int store_scan(struct store *st, struct store_bytes prefix, const struct store_cursor *cursor,
	       size_t limit, struct store_page *out)
{
	memset(out, 0, sizeof(*out));
	if (prefix.n > STORE_KEY_MAX || limit < 1 || limit > STORE_PAGE_ITEMS_MAX)
		return -EINVAL;
	return st->ops->scan(st, prefix, cursor, limit, out);
}

void store_page_free(struct store_page *pg)
{
	free(pg->mem);
	free(pg->entries);
	memset(pg, 0, sizeof(*pg));
}

const char *store_text(const struct store *st)
{
	return st->text;
}

const char *store_name(const struct store *st)
{
	return st->name;
}

void store_close(struct store *st)
{
	if (st)
		st->ops->close(st);
}

/* Transactions reqs[from..] up to the next request of another kind, as one commit. Returns how
 * many. The txn structs lie apart inside the requests, so they are gathered and spread again. */
static size_t run_txns(struct store *st, struct store_req *reqs, size_t n)
{
	struct store_txn *v;
	size_t m = 0;

	while (m < n && reqs[m].op == STORE_TXN)
		m++;
	v = malloc(m * sizeof(*v));
	if (!v) {
		for (size_t i = 0; i < m; i++)
			reqs[i].rc = reqs[i].u.txn.rc = -ENOMEM;
		return m;
	}
	for (size_t i = 0; i < m; i++)
		v[i] = reqs[i].u.txn;
	store_commit_batch(st, v, m);
	for (size_t i = 0; i < m; i++) {
		reqs[i].u.txn = v[i];
		reqs[i].rc = v[i].rc;
	}
	free(v);
	return m;
}

static void run_one(struct store *st, struct store_req *r)
{
	switch (r->op) {
	case STORE_READ:
		r->rc = store_read(st, r->u.read.key, &r->u.read.item);
		break;
	case STORE_SCAN:
		r->rc = store_scan(st, r->u.scan.prefix,
				   r->u.scan.resume ? &r->u.scan.cursor : NULL, r->u.scan.limit,
				   &r->u.scan.page);
		break;
	case STORE_GRANT:
		r->rc = store_grant(st, &r->u.lease.ttl_ms, &r->u.lease.id);
		break;
	case STORE_RENEW:
		r->rc = store_renew(st, r->u.lease.id, &r->u.lease.ttl_ms);
		break;
	case STORE_REVOKE:
		r->rc = store_revoke(st, r->u.lease.id);
		break;
	case STORE_TXN: /* run_txns() */
		break;
	}
}

void store_run(struct store *st, struct store_batch *b)
{
	size_t i = 0, done;

	b->text[0] = 0;
	while (i < b->n) {
		done = 1;
		if (b->reqs[i].op == STORE_TXN)
			done = run_txns(st, b->reqs + i, b->n - i);
		else
			run_one(st, &b->reqs[i]);
		for (; done; done--, i++)
			if (!b->text[0] && b->reqs[i].rc >= STORE_EXHAUSTED)
				memcpy(b->text, st->text, sizeof(b->text));
	}
}

void store_batch_clear(struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->reqs[i].op == STORE_READ)
			store_item_free(&b->reqs[i].u.read.item);
		else if (b->reqs[i].op == STORE_SCAN)
			store_page_free(&b->reqs[i].u.scan.page);
	}
	b->n = 0;
}
