/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: op.c, and what their rows mean: decide.c, list.c, reclaim.c. */
#ifndef SPL_CONTROL_AUTHORITY_OP_H
#define SPL_CONTROL_AUTHORITY_OP_H

#include "control/authority/parts.h"

enum auth_op_state {
	AUTH_OP_READ,	/* its rows are being read */
	AUTH_OP_OWNER,	/* the work it started, or took over, decides */
	AUTH_OP_WAITER, /* waits for somebody else's work on its id */
	AUTH_OP_HELD,	/* waits for a pending slot, or for the host to serve */
	AUTH_OP_TWIN,	/* repeat of an operation that is under way */
	AUTH_OP_BUSY,	/* list, reclaim: store steps under way */
	AUTH_OP_DONE,	/* reply queued or pulled */
};

struct auth_work;

struct auth_op {
	TAILQ_ENTRY(auth_op) link; /* of the list that its state says */
	TAILQ_HEAD(, auth_op) twins;
	struct auth_op *first; /* TWIN: the op that it repeats */
	struct auth_op *same;  /* next of the identity bucket */
	bool has_identity;
	enum auth_op_state state;
	enum auth_verb verb;
	uint64_t tag;
	int64_t deadline;
	struct auth_timer timer; /* deadline, or the next look if that is earlier */
	bool looking;		 /* the timer stands for the next look */
	int64_t look_ns;	 /* gap before it */
	struct auth_step step;
	struct auth_fx fx;
	struct auth_op_id id_op;
	struct spl_name id, type, mesh;
	struct auth_buf *request;
	uint64_t obj_gen;
	bool own;
	bool is_eviction; /* counted in auth.n_evictions */ /* CLOSE */
	enum auth_close_reason reason;			    /* CLOSE */
	enum spl_kind kind;
	uint32_t limit;
	struct auth_work *work; /* OWNER, WAITER */
	bool asks_lease;	/* the read under way is of the recorded owner's lease */
	bool checked;		/* reclaim: the driver was asked about the owner */
	bool pulled;		/* the reply was given to the driver */
	bool capped;		/* its deadline is that of the stop */
	/* reply */
	struct auth_reply r;
	char text[AUTH_TEXT];
	struct auth_buf *reply;	  /* bytes of on_create */
	struct auth_names *names; /* what r.entry points to; also the row while a lease is read */
	struct auth_list *list;	  /* LIST */
	struct auth_reclaim *job; /* RECLAIM_* */
};

/* The names of one entry, and its fields. */
struct auth_names {
	struct spl_name id, type, mesh, rid, owner_id;
	struct auth_entry e;
	int64_t lease_gen;
};

TAILQ_HEAD(auth_ops, auth_op);

/* ---- op.c ---- */
void auth_op_finish(struct auth *a, struct auth_op *op, int kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Reads the rows again, from the beginning. */
void auth_op_restart(struct auth *a, struct auth_op *op);
/* The driver has done with the reply. */
void auth_op_pulled(struct auth *a, struct auth_op *op);
/* A step of an op that was DONE meanwhile has come back. */
void auth_op_step_back(struct auth *a, struct auth_op *op);
void auth_op_wait(struct auth *a, struct auth_op *op, struct auth_work *w);
void auth_op_own(struct auth *a, struct auth_op *op, struct auth_work *w);
void auth_op_hold(struct auth *a, struct auth_op *op);
/* Held ops go on: slots are free and the host serves; or: they decide again, nothing is coming. */
void auth_op_release_held(struct auth *a);
void auth_op_refuse_held(struct auth *a);
/* It has until `at` only, and then ends with ShuttingDown; so do its repeats. */
void auth_op_cap(struct auth *a, struct auth_op *op, int64_t at);
/* Looks again a little later, with growing gaps, until the deadline. */
void auth_op_look_later(struct auth *a, struct auth_op *op);
size_t auth_identity_hash(const struct auth *a, const struct auth_op_id *id);
bool auth_identity_same(const struct auth_op_id *x, const struct auth_op_id *y);
/* An operation identity that is under way, or NULL. */
struct auth_op *auth_op_find(struct auth *a, const struct auth_op_id *id);
bool auth_verb_creates(enum auth_verb v);
const char *auth_verb_name(enum auth_verb v);
void auth_op_fini(struct auth *a);

/* ---- decide.c ---- */
void auth_decide_rows(struct auth *a, struct auth_op *op, struct store_req *r, size_t n);
void auth_decide_lease(struct auth *a, struct auth_op *op, const struct store_req *r);
/* Takes the entry of a work (a Spot of ours) as the op's answer; false without memory. */
bool auth_op_entry_of_work(struct auth *a, struct auth_op *op, const struct auth_work *w);
/* Failure of a read as the reply that the verb gives. */
void auth_op_store_failed(struct auth *a, struct auth_op *op, const struct store_req *r);
/* Does the row carry the token that this host holds? */
bool auth_owner_is_us(const struct auth *a, const struct row_owner *o);
/* The lease is held and its local deadline has not passed: rows may be written. */
bool auth_host_writable(const struct auth *a);

/* ---- list.c ---- */
int auth_list_prepare(struct auth_op *op, const struct auth_request *r);
void auth_list_start(struct auth *a, struct auth_op *op);
void auth_list_free(struct auth_op *op);

/* ---- reclaim.c ---- */
void auth_reclaim_start(struct auth *a, struct auth_op *op);
void auth_reclaim_row(struct auth *a, struct auth_op *op, const struct row_obj *row, int64_t cr,
		      int64_t mr);
void auth_reclaim_tell(struct auth *a, struct auth_work *w, bool freed);
void auth_reclaim_swept(struct auth *a, struct auth_op *op, uint32_t freed, uint32_t kept);
/* No row of the lifecycle is left. When its end is proved the host need not remember it either; one
 * that finds no place to wait in is told again at the next start. */
void auth_reclaim_gone(struct auth *a, struct auth_bytes rid);
void auth_reclaim_lifecycle(struct auth *a, const struct auth_event *e);
void auth_reclaim_resend(struct auth *a);
void auth_reclaim_op_gone(struct auth *a, struct auth_op *op);
void auth_reclaim_fini(struct auth *a);
/* Lifecycles whose end is proved here; the oldest are forgotten. */
bool auth_ended_has(const struct auth *a, struct auth_bytes rid);
void auth_ended_add(struct auth *a, struct auth_bytes rid);

#endif
