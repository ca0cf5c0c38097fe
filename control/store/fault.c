/* SPDX-License-Identifier: BSD-3-Clause */
/* A store that fails on command: see store_fault.h. Owns the inner store. */
#include "control/store/store_fault.h"
#include "control/store/store_priv.h"

#include <errno.h>
#include <stdlib.h>

struct fault {
	struct store st;
	struct store *in;
	store_fault_fn fn;
	void *ctx;
};

static struct fault *fault_of(struct store *st)
{
	return (struct fault *)st;
}

static enum store_fault ask(struct fault *f, enum store_op op)
{
	return f->fn(f->ctx, op);
}

/* What the caller hears; `rc` is what really happened. */
static int told(struct fault *f, enum store_fault w, bool write, int rc)
{
	if (w == STORE_FAULT_NONE) {
		if (rc >= STORE_EXHAUSTED)
			memcpy(f->st.text, f->in->text, sizeof(f->st.text));
		return rc;
	}
	if (w == STORE_FAULT_FAIL || !write)
		return store_fail(&f->st, STORE_FAILED, "store %s: injected failure", f->st.name);
	return store_fail(&f->st, STORE_UNKNOWN, "store %s: injected lost answer", f->st.name);
}

static bool reaches(enum store_fault w)
{
	return w == STORE_FAULT_NONE || w == STORE_FAULT_LOSE;
}

static int fault_read(struct store *st, struct store_bytes key, struct store_item *out)
{
	struct fault *f = fault_of(st);
	enum store_fault w = ask(f, STORE_READ);

	return told(f, w, false, w == STORE_FAULT_NONE ? store_read(f->in, key, out) : 0);
}

static int fault_commit(struct store *st, struct store_txn *txns, size_t n)
{
	struct fault *f = fault_of(st);
	enum store_fault w = ask(f, STORE_TXN);

	if (reaches(w))
		store_commit_batch(f->in, txns, n);
	for (size_t i = 0; i < n; i++)
		txns[i].rc = told(f, w, true, txns[i].rc);
	return 0;
}

static int fault_grant(struct store *st, int64_t *ttl_ms, uint64_t *lease)
{
	struct fault *f = fault_of(st);
	enum store_fault w = ask(f, STORE_GRANT);

	return told(f, w, true, reaches(w) ? store_grant(f->in, ttl_ms, lease) : 0);
}

static int fault_renew(struct store *st, uint64_t lease, int64_t *ttl_ms)
{
	struct fault *f = fault_of(st);
	enum store_fault w = ask(f, STORE_RENEW);

	return told(f, w, true, reaches(w) ? store_renew(f->in, lease, ttl_ms) : 0);
}

static int fault_revoke(struct store *st, uint64_t lease)
{
	struct fault *f = fault_of(st);
	enum store_fault w = ask(f, STORE_REVOKE);

	return told(f, w, true, reaches(w) ? store_revoke(f->in, lease) : 0);
}

static int fault_scan(struct store *st, struct store_bytes prefix,
		      const struct store_cursor *cursor, size_t limit, struct store_page *out)
{
	struct fault *f = fault_of(st);
	enum store_fault w = ask(f, STORE_SCAN);

	return told(f, w, false,
		    w == STORE_FAULT_NONE ? store_scan(f->in, prefix, cursor, limit, out) : 0);
}

static void fault_close(struct store *st)
{
	struct fault *f = fault_of(st);

	store_close(f->in);
	free(f);
}

static const struct store_ops fault_ops = {
	.read = fault_read,
	.commit = fault_commit,
	.grant = fault_grant,
	.renew = fault_renew,
	.revoke = fault_revoke,
	.scan = fault_scan,
	.close = fault_close,
};

int store_fault_open(struct store **out, struct store *inner, store_fault_fn fn, void *ctx)
{
	struct fault *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->st.ops = &fault_ops;
	f->st.name = inner->name;
	f->in = inner;
	f->fn = fn;
	f->ctx = ctx;
	*out = &f->st;
	return 0;
}
