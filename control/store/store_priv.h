/* SPDX-License-Identifier: BSD-3-Clause */
/* What the back ends share: the ops table, the lease table, rows and the clock. Same thread as the
 * store. */
#ifndef SPL_CONTROL_STORE_PRIV_H
#define SPL_CONTROL_STORE_PRIV_H

#include "control/store/store.h"
#include "control/store/store_memory.h"

#include <string.h>

/* Arguments were checked by store.c. Results as in store.h. */
struct store_ops {
	int (*read)(struct store *st, struct store_bytes key, struct store_item *out);
	int (*commit)(struct store *st, struct store_txn *txns, size_t n);
	int (*grant)(struct store *st, int64_t *ttl_ms, uint64_t *lease);
	int (*renew)(struct store *st, uint64_t lease, int64_t *ttl_ms);
	int (*revoke)(struct store *st, uint64_t lease);
	int (*scan)(struct store *st, struct store_bytes prefix, const struct store_cursor *cursor,
		    size_t limit, struct store_page *out);
	void (*close)(struct store *st);
};

struct store {
	const struct store_ops *ops;
	char *name; /* owned; freed by the back end's close */
	char text[STORE_TEXT_MAX];
};

/* Sets st->text; returns rc. */
int store_fail(struct store *st, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

int64_t store_boottime_ms(void *ctx);

static inline int store_bytes_cmp(struct store_bytes a, struct store_bytes b)
{
	uint32_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	if (c)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

static inline bool store_has_prefix(struct store_bytes key, struct store_bytes prefix)
{
	return key.n >= prefix.n && (prefix.n == 0 || memcmp(key.p, prefix.p, prefix.n) == 0);
}

/* A row as a back end keeps it. expires: end of its own retention, INT64_MAX = none. */
struct store_row {
	struct store_bytes key, val;
	int64_t cr, mr;
	uint64_t lease;
	int64_t expires;
};

/* Live leases by id; small, searched in line. */
struct store_lease {
	uint64_t id;
	int64_t ttl_ms, expires;
};

struct store_leases {
	struct store_lease *v;
	size_t n, room;
};

/* NULL when there is none; an expired one is still found until it is removed. */
struct store_lease *store_lease_find(const struct store_leases *t, uint64_t id);
/* Makes room for one more, so that store_lease_add() cannot fail. 0, -ENOMEM or -ENOSPC. */
int store_lease_reserve(struct store_leases *t);
void store_lease_add(struct store_leases *t, uint64_t id, int64_t ttl_ms, int64_t expires);
void store_lease_remove(struct store_leases *t, uint64_t id);

/* When the row ends by itself: the earlier of its retention and its lease; 0 for a lease that is
 * gone. The row is there at `now` while now < end. */
int64_t store_row_end(const struct store_leases *t, const struct store_row *row);

static inline bool store_row_alive(const struct store_leases *t, const struct store_row *row,
				   int64_t now)
{
	return now < store_row_end(t, row);
}

/* True when the conditions of `c` hold for the row (NULL: absent). */
bool store_cond_holds(const struct store_cond *c, const struct store_row *row);

#endif
