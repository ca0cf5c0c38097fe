/* SPDX-License-Identifier: BSD-3-Clause */
/* The authority: decides that a Spot exists, exactly once, and who owns it.
 *
 * A pure state machine: no I/O, no clock, no threads. One thread uses it. The driver calls
 * auth_submit(), auth_event(), auth_store_done(), auth_tick() and after each of them pulls effects
 * with auth_next() until it returns false. Rows and transactions are those of A §15.7 (rows.h).
 *
 * Typical driver:
 *	auth_event(a, &hello, now);
 *	while (auth_next(a, &fx))
 *		switch (fx.kind) {
 *		case AUTH_FX_STORE: hand fx.u.store to the store thread: store_run(); back here:
 *				    auth_store_done(a, batch, now);
 *		case AUTH_FX_PREPARE: send M10; its answer: auth_event(a, ANSWER{cmd}, now);
 *		...
 *		}
 *	arm a timer for auth_next_tick(a); when it fires: auth_tick(a, now);
 *
 * At most one store batch is out at a time; what arrives meanwhile waits and shares the next one,
 * so that concurrent creates share transactions and commits.
 */
#ifndef SPL_CONTROL_AUTHORITY_H
#define SPL_CONTROL_AUTHORITY_H

#include "control/authority/messages.h"

struct auth;

/* At most one in so many of ops_max is the eviction of an idle Spot: when many are idle at once, as
 * after a busy hour, creations and closes that somebody waits for find room beside them. */
#define AUTH_EVICTIONS_PART 4u

struct auth_config {
	struct spl_name mesh;
	char prefix[65];      /* of RID and Entry Spot id: [A-Za-z0-9._-]{1,64} */
	uint32_t spots_max;   /* User + Instance Spots of this node; 0 = unlimited (A-NODE-8) */
	uint32_t pending_max; /* creations with the dataplane at once; more wait; default 128 */
	uint32_t ops_max;     /* requests not yet answered; default 4096 */
	uint32_t group_max;   /* objects that share one transaction; default 512 */
	uint64_t request_bytes_max; /* of creation requests held; default 64 MiB */
	int64_t ttl_ns, renew_ns, renew_timeout_ns, margin_ns; /* A-LEASE-5 */
	bool reclaim_on_restart; /* free rows of lifecycles whose end is proved here */
	void (*random)(void *ctx, void *buf, size_t n); /* must not fail */
	void *random_ctx;
};

struct auth_status {
	enum auth_host_state state;
	struct auth_host_id id; /* all empty without a lifecycle */
	bool lease_held;
	int64_t lease_deadline;	  /* local, ns; 0 without */
	uint32_t spots, reserved; /* of the capacity row */
	uint32_t ops, waiters, pending, pending_max;
	uint64_t created, rejected, failed, closed, reclaimed; /* since the start */
	uint64_t batches, conflicts, unknowns;		       /* store */
};

/* Fills `cfg` with the defaults; mesh, prefix and random stay empty. */
void auth_config_init(struct auth_config *cfg);

/* 0, -EINVAL (bad name, missing random, or renew + timeout >= ttl - margin: A-LEASE-5), -ENOMEM. */
int auth_create(struct auth **out, const struct auth_config *cfg);
/* NULL is allowed. A batch that is out must have come back. */
void auth_destroy(struct auth *a);

/* Takes a request. 0: exactly one reply follows. Otherwise none: -EINVAL an argument is illegal
 * (A-ERR-3: id no valid name, request too long, limit or token out of range), -EBUSY ops_max or
 * request_bytes_max reached (answer CapacityExceeded), -ENOMEM. */
int auth_submit(struct auth *a, const struct auth_request *r, int64_t now);

/* Takes an event. 0 (also for the late answer to a command that nobody waits for); -EINVAL it makes
 * no sense now and was ignored, e.g. a second HOST_START; -ENOMEM not taken, pass it again. */
int auth_event(struct auth *a, const struct auth_event *e, int64_t now);

/* Hands back the batch of AUTH_FX_STORE after store_run(). The authority clears it. */
void auth_store_done(struct auth *a, struct store_batch *b, int64_t now);

/* Lets time pass: deadlines, lease renewal, retries. */
void auth_tick(struct auth *a, int64_t now);
/* When the next tick is due, ns; INT64_MAX when nothing waits for time. */
int64_t auth_next_tick(const struct auth *a);

/* The next effect, false when there is none. */
bool auth_next(struct auth *a, struct auth_effect *out);

void auth_status(const struct auth *a, struct auth_status *out);

/* Spots of a type, as its capacity row says. */
struct auth_type_status {
	const struct spl_name *name; /* until the next event */
	enum spl_kind kind;
	uint32_t active, reserved, limit; /* 0: no limit */
};

/* Of type `i` of this lifecycle; false: there are no more. */
bool auth_type_status(const struct auth *a, size_t i, struct auth_type_status *out);

#endif
