/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshot scans for back ends that keep only the newest rows (A-STORE-5). While a snapshot is
 * open, the back end reports every row before it changes it; the old rows are kept here, and a page
 * is the merge of them with the rows that did not change. Pure; same thread as the store; memory
 * bounded by STORE_SCANS_MAX and STORE_SCAN_BYTES_MAX: beyond them a snapshot is Expired.
 */
#ifndef SPL_CONTROL_STORE_SNAPSHOT_H
#define SPL_CONTROL_STORE_SNAPSHOT_H

#include "control/store/skiplist.h"

struct snapshot {
	uint64_t id; /* 0: free */
	uint64_t nonce;
	int64_t time; /* of the first page, store clock, ms */
	struct store_bytes prefix;
	uint8_t prefix_mem[STORE_KEY_MAX];
	bool lost;
	struct skiplist old;
	size_t old_bytes;
	uint64_t pages;			/* answered */
	uint8_t last[2][STORE_KEY_MAX]; /* last key of page `pages` and of the one before */
	uint32_t last_n[2];
};

struct snapshots {
	struct snapshot *v[STORE_SCANS_MAX];
	uint64_t next_id, rnd;
	size_t live;
};

/* Rows of the back end as they are now, in key order, dead ones included. */
struct snapshot_source {
	/* Sets the position to the first key >= `key`, or > `key` with `after`. */
	void (*seek)(void *ctx, struct store_bytes key, bool after);
	/* 1 with a row (valid until the next call), 0 at the end, or a store_rc failure as
	 * -rc - 1000. */
	int (*next)(void *ctx, struct store_row *row);
	void *ctx;
};
#define SNAPSHOT_FAIL(rc) (-(rc)-1000)

void snapshots_init(struct snapshots *s, uint64_t seed);
void snapshots_fini(struct snapshots *s);

/* The row under `key` is about to change; `before` is NULL when there is none. */
void snapshots_note(struct snapshots *s, const struct store_leases *leases, struct store_bytes key,
		    const struct store_row *before);

/* Serves store_scan(). */
int snapshots_page(struct snapshots *s, const struct store_leases *leases, int64_t now,
		   struct store_bytes prefix, const struct store_cursor *cursor, size_t limit,
		   const struct snapshot_source *src, struct store_page *out);

#endif
