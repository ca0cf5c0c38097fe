/* SPDX-License-Identifier: BSD-3-Clause */
/* Small parts of the authority: shared bytes, timers, effects, and the steps that gather store
 * requests into a batch. One thread, no I/O; what is embedded elsewhere is owned there.
 */
#ifndef SPL_CONTROL_AUTHORITY_PARTS_H
#define SPL_CONTROL_AUTHORITY_PARTS_H

#include "control/authority/authority.h"
#include "control/authority/rows.h"

#include <string.h>
#include <sys/queue.h>

#define AUTH_BATCH_REQS	 2048	    /* requests of one store batch */
#define AUTH_BATCH_BYTES (3U << 20) /* of keys and values written by one group */
#define AUTH_SWEEP_PAGE	 256
#define AUTH_ENDED_MAX	 64 /* dead lifecycles remembered */
#define AUTH_GONE_MAX	 8  /* of them, those that the host is about to forget */
#define AUTH_LOGS_MAX	 64 /* log records not yet pulled */
#define AUTH_RETRY_MIN	 (100 * AUTH_MS)
#define AUTH_RETRY_MAX	 (5000 * AUTH_MS)
#define AUTH_KEEP_NS	 (300 * 1000 * AUTH_MS)	 /* terminal record after the deadline, A-LOC-20 */
#define AUTH_KEEP_CAP_NS (3600 * 1000 * AUTH_MS) /* a far deadline keeps it no longer than this */
#define AUTH_MS		 1000000LL
#define AUTH_RENEW_RETRY (1000 * AUTH_MS) /* after a renewal that failed */
#define AUTH_JOBS_MAX	 128		  /* reclaims under way */
#define AUTH_GROUP_MAX	 1000 /* objects of one group: two keys each, and reading them again */
#define AUTH_GROUP_TRIES 2    /* conflicts in a row before objects go one by one */
#define AUTH_TEXT	 192

struct auth_timer {
	int64_t at;
	size_t pos; /* in the heap, from 1; 0: not armed */
	void (*fire)(struct auth *a, struct auth_timer *t);
};

struct auth_timers {
	struct auth_timer **heap; /* [1..n] */
	size_t n, room;
};

struct auth_fx {
	TAILQ_ENTRY(auth_fx) link;
	enum auth_fx_kind kind;
	bool queued;
	void (*fill)(struct auth *a, struct auth_fx *fx, struct auth_effect *out);
};

struct auth_buf { /* shared bytes */
	unsigned refs;
	uint32_t n;
	uint8_t b[];
};

struct auth_step {
	TAILQ_ENTRY(auth_step) link;
	bool queued, in_flight;
	bool writes; /* has transactions: behind all reads of the batch */
	/* Adds its requests. 0; -ENOSPC or -ENOMEM: nothing was added, comes again. */
	int (*build)(struct auth *a, struct auth_step *s);
	/* The n requests that build() added, with results. */
	void (*done)(struct auth *a, struct auth_step *s, struct store_req *r, size_t n);
};

struct auth_chunk {
	struct auth_chunk *next;
	size_t used, room;
	uint8_t b[];
};

struct auth_slot {
	struct auth_step *step;
	size_t first, n;
};

struct auth_batch {
	struct store_batch b;
	struct auth_slot *slots;
	size_t n_slots;
	struct auth_chunk *chunks; /* memory of the batch, kept for the next */
	bool out;		   /* with the driver */
	struct auth_fx fx;
};

struct auth_gone {
	struct auth_fx fx;
	struct spl_name rid;
};

static inline struct auth_bytes auth_name(const struct spl_name *n)
{
	return (struct auth_bytes){n->b, n->len};
}

static inline bool auth_name_is(const struct spl_name *n, struct auth_bytes b)
{
	return n->len == b.n && memcmp(n->b, b.p, b.n) == 0;
}

static inline bool auth_name_same(const struct spl_name *a, const struct spl_name *b)
{
	return a->len == b->len && memcmp(a->b, b->b, a->len) == 0;
}

/* Copies a name that was checked before. */
static inline void auth_name_copy(struct spl_name *to, struct auth_bytes from)
{
	to->len = (uint8_t)from.n;
	if (from.n)
		memcpy(to->b, from.p, from.n);
}

static inline struct store_bytes auth_sb(struct auth_bytes b)
{
	return (struct store_bytes){b.p, b.n};
}

/* ---- core.c ---- */
struct auth_buf *auth_buf_make(struct auth_bytes from); /* NULL without memory, or for n = 0 */
struct auth_buf *auth_buf_ref(struct auth_buf *b);
void auth_buf_put(struct auth_buf *b);
void auth_log(struct auth *a, enum auth_log level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void auth_fx_queue(struct auth *a, struct auth_fx *fx);
void auth_fx_drop(struct auth *a, struct auth_fx *fx);
void auth_fx_plain(struct auth *a, struct auth_fx *fx, struct auth_effect *out); /* kind alone */
/* Room for so many timers in all, so that arming cannot fail. 0 or -ENOMEM. */
int auth_timers_reserve(struct auth *a, size_t n);
void auth_timer_arm(struct auth *a, struct auth_timer *t, int64_t at);
void auth_timer_stop(struct auth *a, struct auth_timer *t);
uint64_t auth_random64(struct auth *a); /* never 0 */
/* First and last call of every input. */
void auth_enter(struct auth *a, int64_t now);
void auth_pump(struct auth *a);

/* ---- batch.c ---- */
void auth_step_init(struct auth_step *s, int (*build)(struct auth *, struct auth_step *),
		    void (*done)(struct auth *, struct auth_step *, struct store_req *, size_t));
void auth_step_queue(struct auth *a, struct auth_step *s);
void auth_step_drop(struct auth *a, struct auth_step *s);
/* Memory that lives as long as the batch; NULL (or p NULL) when there is none. */
void *auth_batch_mem(struct auth *a, size_t n);
struct store_bytes auth_batch_copy(struct auth *a, struct store_bytes from);
/* Inside build(): the next free request, or NULL when the batch is full. */
struct store_req *auth_batch_req(struct auth *a, enum store_op op);
int auth_batch_read(struct auth *a, const char *key, uint32_t n);
/* A transaction with room for so many conditions and mutations (written through *c and *m). */
struct store_txn *auth_batch_txn(struct auth *a, size_t n_conds, size_t n_muts,
				 struct store_cond **c, struct store_mut **m);
void auth_batch_pump(struct auth *a);
void auth_batch_fini(struct auth *a);

#endif
