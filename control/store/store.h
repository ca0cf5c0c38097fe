/* SPDX-License-Identifier: BSD-3-Clause */
/* The store: ordered keys with versions, conditional atomic batches, leases, snapshot scans
 * (A-STORE-1..9, A-STORE-12). Keys and values are opaque here; what they mean is the authority's.
 *
 * Every committed transaction takes the next revision. A key remembers the revision that created
 * it (cr, kept by later puts, new after a delete) and the one that wrote it last (mr): cr is the
 * object or lease generation, mr the version a conditional write compares (A-AMB-6).
 *
 * Calls are synchronous and may block on disk; one thread uses a store at a time, any thread.
 * Back ends: store_memory.h, store_sqlite.h; store_fault.h wraps either with injected faults.
 */
#ifndef SPL_CONTROL_STORE_H
#define SPL_CONTROL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_KEY_MAX	     1024
#define STORE_VALUE_MAX	     (1U << 20)
#define STORE_TXN_KEYS_MAX   2048 /* distinct keys of one transaction */
#define STORE_TXN_BYTES_MAX  (4U << 20)
#define STORE_PAGE_ITEMS_MAX 1000
#define STORE_PAGE_BYTES_MAX (4U << 20)
#define STORE_CURSOR_BYTES   24
#define STORE_SCANS_MAX	     16		/* snapshots held; one more makes the oldest Expired */
#define STORE_SCAN_LIFE_MS   60000	/* of a snapshot, from its first page */
#define STORE_SCAN_BYTES_MAX (8U << 20) /* old values kept for one snapshot, else Expired */
#define STORE_LEASES_MAX     1024
#define STORE_TEXT_MAX	     384

/* Results. A negative value is -EINVAL (arguments, found before any I/O) or -ENOMEM (nothing was
 * done). MISSING, CONFLICT and EXPIRED are answers, not failures (A-STORE-7). */
enum store_rc {
	STORE_OK = 0,
	STORE_CONFLICT,	   /* a condition was false; nothing changed; never says which */
	STORE_MISSING,	   /* no such key, or no such lease */
	STORE_EXPIRED,	   /* the snapshot of this cursor is gone, or the cursor is foreign */
	STORE_STALE_LEASE, /* a put names a lease that is gone; nothing changed */
	STORE_EXHAUSTED,   /* no revision is left; nothing changed, and so for ever (A-LOC-6) */
	STORE_FAILED,	   /* nothing changed; text says why */
	STORE_UNKNOWN,	   /* the write may have happened or not: read again (A-STORE-6) */
};

struct store_bytes {
	const void *p;
	uint32_t n;
};

enum store_test {
	STORE_IF_ABSENT,
	STORE_IF_MR,	 /* present and mr equals rev */
	STORE_IF_CR,	 /* present and cr equals rev */
	STORE_IF_CR_NOT, /* absent, or cr differs from rev: "that lease is gone" */
};

struct store_cond {
	struct store_bytes key;
	enum store_test test;
	int64_t rev;
};

/* A put replaces value and attachment: without `lease` the key is detached from its lease. */
struct store_mut {
	struct store_bytes key;
	struct store_bytes val;
	bool del;	 /* delete; val, lease and keep_ms are not used; absent key is fine */
	uint64_t lease;	 /* the key goes when this lease ends; 0 = none */
	int64_t keep_ms; /* a put without lease: retention of the key; 0 = until deleted */
};

/* All conditions true: all mutations, one revision, nobody sees a middle state. Otherwise nothing.
 * A key at most once among the conditions and once among the mutations. */
struct store_txn {
	const struct store_cond *conds;
	size_t n_conds;
	const struct store_mut *muts;
	size_t n_muts; /* at least 1 */
	int rc;	       /* out */
	int64_t rev;   /* out, when OK: mr of every key put here, cr of those that were absent */
};

struct store_item {
	uint8_t *val; /* from store_read(): free it with store_item_free() */
	uint32_t len;
	int64_t cr, mr;
	uint64_t lease;
};

struct store_entry {
	struct store_bytes key, val; /* in the page's memory */
	int64_t cr, mr;
};

struct store_cursor {
	uint8_t b[STORE_CURSOR_BYTES];
};

struct store_page {
	struct store_entry *entries; /* ascending by key bytes, no key twice in one cycle */
	size_t n;
	bool more;
	struct store_cursor next; /* when more */
	void *mem;
};

struct store;

/* OK with `out` filled, MISSING, or a failure. A key whose lease or retention has ended is
 * missing. */
int store_read(struct store *st, struct store_bytes key, struct store_item *out);
void store_item_free(struct store_item *it);

/* Runs the transactions in order, each seeing the ones before it, and makes all of them durable
 * with one commit; each has its own rc and rev. When the commit itself fails, every transaction
 * that was OK or CONFLICT becomes FAILED or UNKNOWN. Returns 0 when each rc was set. */
int store_commit_batch(struct store *st, struct store_txn *txns, size_t n);

/* One transaction; returns its rc. */
int store_commit(struct store *st, struct store_txn *txn);

/* A lease of `ttl_ms` (>= 1); the granted time comes back in *ttl_ms and may be larger. Lease ids
 * are never used again. FAILED beyond STORE_LEASES_MAX. */
int store_grant(struct store *st, int64_t *ttl_ms, uint64_t *lease);
/* Full time again from now; *ttl_ms is set to it. MISSING when it has ended: it stays ended. */
int store_renew(struct store *st, uint64_t lease, int64_t *ttl_ms);
/* Ends a lease; every key attached to it goes in the same commit. MISSING when it had ended. */
int store_revoke(struct store *st, uint64_t lease);

/* One page of the keys that start with `prefix` (0..1024 bytes). cursor NULL fixes a snapshot; the
 * pages that follow see only it. At most `limit` (1..STORE_PAGE_ITEMS_MAX) entries. The caller
 * frees `out` with store_page_free(). An entry is a hint: read again before changing (A-STORE-5).
 */
int store_scan(struct store *st, struct store_bytes prefix, const struct store_cursor *cursor,
	       size_t limit, struct store_page *out);
void store_page_free(struct store_page *pg);

/* One sentence about the last FAILED or UNKNOWN of this store: what, where, what to do. */
const char *store_text(const struct store *st);
/* "memory", or "sqlite PATH". */
const char *store_name(const struct store *st);
void store_close(struct store *st);

/* A list of requests that one call runs: how a pure caller asks for store work. In order; adjacent
 * transactions share one commit. */
enum store_op { STORE_READ, STORE_TXN, STORE_SCAN, STORE_GRANT, STORE_RENEW, STORE_REVOKE };

struct store_req {
	enum store_op op;
	int rc; /* out; a transaction's is also in txn.rc */
	union {
		struct {
			struct store_bytes key;
			struct store_item item; /* out */
		} read;
		struct store_txn txn;
		struct {
			struct store_bytes prefix;
			bool resume; /* from cursor */
			struct store_cursor cursor;
			size_t limit;
			struct store_page page; /* out */
		} scan;
		struct {
			int64_t ttl_ms; /* in for GRANT, out for GRANT and RENEW */
			uint64_t id;	/* out for GRANT, in otherwise */
		} lease;
	} u;
};

struct store_batch {
	struct store_req *reqs;
	size_t n;
	char text[STORE_TEXT_MAX]; /* out: store_text() of the first failure, "" if none */
};

void store_run(struct store *st, struct store_batch *b);
/* Frees what the results own (items, pages), not the arrays. */
void store_batch_clear(struct store_batch *b);

#endif
