/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the authority: its state and what its files offer each other. One thread, no I/O.
 *
 * op    one request; lives until its reply was pulled (and its reads came back)
 * work  one Spot id in transition: a creation, a close, an adoption, a release. Steady Spots need
 *no memory here. At most one work an id, found by id; ops that want the id wait on it step
 *something that wants store access: builds requests into the next batch, takes the results tx    a
 *work's wish to change its object row together with the capacity row: all of a batch share one
 *transaction (group.c) fx    an effect in the queue, embedded in whatever it tells about, so that
 *none can be lost for want of memory
 */
#ifndef SPL_CONTROL_AUTHORITY_PRIV_H
#define SPL_CONTROL_AUTHORITY_PRIV_H

#include "control/authority/host.h"

struct auth_ended {
	struct spl_name rid;
};

struct auth_logrec {
	enum auth_log level;
	char text[AUTH_TEXT_MAX];
};

struct auth {
	struct auth_config cfg;
	uint64_t secret; /* of the tables */
	int64_t now;
	/* effects */
	TAILQ_HEAD(, auth_fx) effects;
	struct auth_op *held_op; /* its reply was pulled last */
	struct auth_logrec logs[AUTH_LOGS_MAX];
	unsigned log_head, log_n, logs_lost;
	struct auth_fx log_fx;
	/* tables: bucket counts are powers of two */
	struct auth_op **op_buckets;
	struct auth_work **id_buckets, **identity_buckets, **cmd_buckets;
	size_t mask;
	uint32_t n_ops, n_evictions, n_works, n_waiters, n_pending;
	uint64_t request_bytes;
	struct auth_ops held; /* HELD */
	struct auth_timers timers;
	/* store */
	TAILQ_HEAD(, auth_step) steps;
	struct auth_batch batch;
	/* capacity row and the group */
	struct auth_works group;    /* tx wanted */
	struct auth_works flying;   /* tx in the batch that is out */
	struct auth_works doubtful; /* outcome unknown, or a conflict: to be read again */
	struct auth_step group_step, verify_step;
	int64_t verify_gen; /* the token whose rows verify_step reads; 0: none are there */
	struct auth_timer verify_retry;
	uint32_t spots_active, spots_reserved, cap_pending, spots_wanted;
	int64_t cap_mr;
	bool cap_known;
	unsigned conflicts_in_a_row;
	struct auth_type_slot *types;
	size_t n_types;
	/* ids */
	uint64_t attempt_seq, cmd_seq;
	struct auth_host host;
	struct auth_sweep *sweep; /* the one that runs */
	STAILQ_HEAD(, auth_sweep) sweeps;
	struct auth_timer sweep_retry;
	struct auth_ended ended[AUTH_ENDED_MAX];
	unsigned n_ended;
	struct auth_gone gone[AUTH_GONE_MAX];
	struct auth_inventory *inventory; /* while resuming */
	TAILQ_HEAD(, auth_reclaim) jobs;  /* reclaims */
	uint32_t n_jobs;
	struct auth_status count; /* the counters of it */
};

#endif
