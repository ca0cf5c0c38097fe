/* SPDX-License-Identifier: BSD-3-Clause */
/* Spot ids in transition: work.c, create.c, close.c, and their transactions: group.c, single.c. */
#ifndef SPL_CONTROL_AUTHORITY_WORK_H
#define SPL_CONTROL_AUTHORITY_WORK_H

#include "control/authority/op.h"

enum auth_work_state {
	AUTH_W_RESERVING,  /* T4 */
	AUTH_W_PREPARING,  /* PREPARE is with the dataplane */
	AUTH_W_COMMITTING, /* T5 */
	AUTH_W_PUBLISHING, /* PUBLISH is with the dataplane; also of an adoption */
	AUTH_W_DISCARDING, /* DISCARD is with the dataplane */
	AUTH_W_UNDOING,	   /* T6 or T7, or an orphan delete */
	AUTH_W_MARKING,	   /* T18 */
	AUTH_W_CLOSING,	   /* CLOSE_LOCAL is with the dataplane */
	AUTH_W_RELEASING,  /* T17, or an orphan delete */
	AUTH_W_ADOPTING,   /* T21 */
};

/* Transactions of a work. Those up to T21 go through the group. */
enum auth_tx { AUTH_T4, AUTH_T5, AUTH_T6, AUTH_T7, AUTH_T17, AUTH_T21, AUTH_T18, AUTH_ORPHAN };

enum auth_tx_at { AUTH_TX_NOWHERE, AUTH_TX_QUEUED, AUTH_TX_FLYING, AUTH_TX_DOUBTFUL };

enum auth_tx_rc {
	AUTH_TX_OK,
	AUTH_TX_CONFLICT, /* settled by reading again: somebody else changed the row */
	AUTH_TX_STALE,	  /* our lease is gone */
	AUTH_TX_FAILED,	  /* not done */
	AUTH_TX_EXHAUSTED,
};

struct auth_sweep;

struct auth_work {
	TAILQ_ENTRY(auth_work) link; /* of tx lists */
	struct auth_work *same_id;   /* next of the id bucket */
	struct auth_work *same_op;   /* next of the identity bucket */
	struct auth_work *same_cmd;  /* next of the command bucket */
	bool has_op;		     /* op identity below is set: a creation */
	enum auth_work_state state;
	struct spl_name id, type;
	enum spl_kind kind;
	int type_at; /* in auth.types; -1: not one of ours */
	uint64_t obj_gen, own_gen, attempt;
	int64_t mr;		  /* version of the row */
	struct spl_name owner_id; /* recorded owner: ours, or a dead one */
	int64_t lease_gen;
	struct auth_op_id op_id;
	struct auth_op *op; /* the OWNER, or NULL */
	TAILQ_HEAD(, auth_op) waiters;
	int64_t deadline;
	struct auth_buf *request;
	uint8_t request_sha[32];
	/* terminal of a creation */
	enum row_result result;
	int kind_failed;
	char text[AUTH_TEXT];
	struct auth_buf *reply;
	uint16_t content;
	/* transaction under way */
	enum auth_tx tx;
	enum auth_tx_at tx_at; /* which list of the group it is in */
	bool tx_unknown;       /* an answer of it was lost */
	struct auth_step step; /* T18, ORPHAN */
	bool reads_back;       /* the step reads what became of the write */
	/* command under way */
	uint64_t cmd;
	bool cmd_open, cmd_again;
	enum auth_close_reason reason;
	struct auth_fx fx;
	struct auth_timer retry;
	int64_t retry_ns;
	bool counted;		  /* holds a pending slot */
	struct auth_sweep *sweep; /* that waits for it */
	bool reclaim;		  /* the release of a dead owner's row */
	uint64_t epoch;		  /* of the row's membership */
};
TAILQ_HEAD(auth_works, auth_work);

/* ---- work.c ---- */
/* A work on `id` in `state`; NULL without memory. There must be none on this id. */
struct auth_work *auth_work_new(struct auth *a, struct auth_bytes id, enum auth_work_state state);
struct auth_work *auth_work_find(struct auth *a, struct auth_bytes id);
struct auth_work *auth_work_find_op(struct auth *a, const struct auth_op_id *id);
void auth_work_set_op(struct auth *a, struct auth_work *w, const struct auth_op_id *id);
void auth_work_take_row(struct auth *a, struct auth_work *w, const struct row_obj *row, int64_t cr,
			int64_t mr);
void auth_work_count(struct auth *a, struct auth_work *w);
/* Over: the ops that still wait start again from reading; frees it. `freed`: a row went. */
void auth_work_end(struct auth *a, struct auth_work *w, bool freed);
void auth_work_command(struct auth *a, struct auth_work *w, enum auth_fx_kind kind);
/* The transaction again, after a growing gap. */
void auth_work_retry(struct auth *a, struct auth_work *w);
void auth_work_answer(struct auth *a, const struct auth_event *e);
void auth_work_resend(struct auth *a);
void auth_work_host_gone(struct auth *a);
void auth_work_owner_gone(struct auth *a, struct auth_work *w);
void auth_work_tx_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text);
bool auth_work_creating(const struct auth_work *w);
/* The row, of the same incarnation, is for this work to end, though its version is another. */
bool auth_work_owns_row(const struct auth_work *w, const struct row_obj *row);
/* Calls fn for every work; fn may end the one it gets. */
void auth_work_each(struct auth *a, void (*fn)(struct auth *a, struct auth_work *w));
void auth_work_fini(struct auth *a);

/* ---- create.c ---- */
void auth_create_reserve(struct auth *a, struct auth_op *op);
void auth_create_tx_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text);
void auth_create_answer(struct auth *a, struct auth_work *w, const struct auth_event *e);
void auth_create_owner_gone(struct auth *a, struct auth_work *w); /* its deadline passed */
void auth_create_host_gone(struct auth *a, struct auth_work *w);
/* A Creating row without a work: cancel it (ours), or delete it if its owner's lease is gone. */
struct auth_work *auth_create_cancel(struct auth *a, struct auth_bytes id,
				     const struct row_obj *row, int64_t cr, int64_t mr);
/* A Creating row whose attempt the dataplane knows: go on with it. */
struct auth_work *auth_create_adopt(struct auth *a, struct auth_bytes id, const struct row_obj *row,
				    int64_t cr, int64_t mr);
/* A Ready row whose object the dataplane has not opened yet. */
struct auth_work *auth_create_publish(struct auth *a, struct auth_bytes id,
				      const struct row_obj *row, int64_t cr, int64_t mr,
				      uint64_t attempt);

/* ---- close.c ---- */
void auth_close_start(struct auth *a, struct auth_op *op, const struct row_obj *row, int64_t cr,
		      int64_t mr);
/* A row of ours that has to go; with `local` the dataplane closes the object first. */
struct auth_work *auth_close_row(struct auth *a, struct auth_bytes id, const struct row_obj *row,
				 int64_t cr, int64_t mr, bool local, enum auth_close_reason reason,
				 int64_t deadline);
void auth_close_tx_done(struct auth *a, struct auth_work *w, enum auth_tx_rc rc, const char *text);
void auth_close_answer(struct auth *a, struct auth_work *w, const struct auth_event *e);
void auth_close_host_gone(struct auth *a, struct auth_work *w);
/* The answer to a close: what it means for the outcome of a stop, and for people. */
void auth_close_note(struct auth *a, const struct auth_work *w, const struct auth_event *e);

/* ---- entry.c: works of kind ENTRY ---- */
/* Begins to make it; auth_host_entry_made() or auth_host_start_failed() follows. 0 or -ENOMEM. */
int auth_entry_start(struct auth *a);
int auth_entry_close(struct auth *a);
/* Ends the making of it, unless it is nearly there; false when there is nothing of it to end. */
bool auth_entry_cancel(struct auth *a);
void auth_entry_answer(struct auth *a, struct auth_work *w, const struct auth_event *e);

/* ---- group.c ---- */
/* Wants the transaction `tx` for w; ends in auth_work_tx_done(), at once when the lease is gone. */
void auth_tx(struct auth *a, struct auth_work *w, enum auth_tx tx);
void auth_tx_drop(struct auth *a, struct auth_work *w);
int auth_type_index(const struct auth *a, struct auth_bytes name, enum spl_kind kind);
bool auth_group_has_room(const struct auth *a, int type_at);
/* Sets the counters from the capacity row that was read. 0, -EBADMSG or -EINVAL. */
int auth_group_take_cap(struct auth *a, const struct store_item *it);
void auth_group_clear(struct auth *a);
void auth_group_refuse_expired(struct auth *a);
void auth_group_token_lost(struct auth *a);
void auth_group_kick(struct auth *a);
void auth_group_init(struct auth *a);
/* Reservations that are wanted and not in the counters yet: n more. */
void auth_group_want(struct auth *a, const struct auth_work *w, int n);
/* The capacity row that counts this work is that of the lease we hold: after a lost token, what was
 * reserved under the old one is not in the new one. */
bool auth_tx_under_our_lease(const struct auth *a, const struct auth_work *w, enum auth_tx tx);

/* ---- verify.c ---- */
void auth_verify_init(struct auth *a);

/* ---- values.c: keys and values in batch memory ---- */
/* The capacity row as the counters are now. */
struct store_bytes auth_group_cap_value(struct auth *a);
/* The object row of a Ready Spot of ours, and of one that is being created. */
void auth_row_of_work(const struct auth *a, const struct auth_work *w, struct row_obj *r);
void auth_creating_row(const struct auth *a, const struct auth_work *w, struct row_obj *r);
struct store_bytes auth_obj_value(struct auth *a, const struct row_obj *r);
struct store_bytes auth_obj_key(struct auth *a, const struct auth_work *w);
/* The terminal record of a creation, and how long it is kept. */
struct store_bytes auth_opt_key(struct auth *a, const struct auth_work *w);
struct store_bytes auth_opt_value(struct auth *a, const struct auth_work *w);
int64_t auth_keep_ms(const struct auth *a, const struct auth_work *w);

/* ---- single.c ---- */
void auth_single_init(struct auth_work *w);
void auth_single_tx(struct auth *a, struct auth_work *w);

#endif
