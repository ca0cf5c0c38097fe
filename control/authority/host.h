/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's life: host.c (start), host_stop.c (planned stop, death), host_rows.c (its store
 * requests), host_lease.c (the lease), resume.c (a dataplane that outlived its control). One
 * thread.
 */
#ifndef SPL_CONTROL_AUTHORITY_HOST_H
#define SPL_CONTROL_AUTHORITY_HOST_H

#include "control/authority/sweep.h"
#include "control/authority/work.h"

struct auth_type_slot {
	struct auth_type t;
	uint32_t active, reserved; /* as in the capacity row */
	uint32_t wanted;	   /* T4 queued or under way */
};

enum auth_phase {
	AUTH_H_NONE,	/* no lifecycle */
	AUTH_H_GRANT,	/* lease */
	AUTH_H_CLAIM,	/* T1 */
	AUTH_H_PUBLISH, /* T2 */
	AUTH_H_RESUME,	/* rows read, lease renewed, inventory and own rows compared */
	AUTH_H_SCAN,	/* first complete scan */
	AUTH_H_ENTRY,	/* the dataplane makes the Entry Spot */
	AUTH_H_SERVE,	/* T3 Serving */
	AUTH_H_UP,
	AUTH_H_DRAIN,  /* T3 Draining */
	AUTH_H_FINISH, /* works end, own Spots are closed and released */
	AUTH_H_FORCED, /* the deadline passed: waits for HOST_DEAD */
	AUTH_H_BURY,   /* dataplane gone: its works end */
	AUTH_H_REVOKE, /* T20 */
};

struct auth_host {
	enum auth_phase phase;
	enum auth_host_state state;
	struct auth_host_id id;
	uint8_t endpoint[AUTH_ENDPOINT_MAX];
	uint32_t endpoint_n, lanes;
	/* lease */
	uint64_t lease;
	int64_t ttl_ns;	  /* granted */
	int64_t deadline; /* local; 0: none */
	bool held;	  /* the token is ours as far as we know */
	bool rows;	  /* descriptor and capacity row are in the store under this token */
	bool adopts;	  /* this lease follows a lost one: own rows are adopted */
	int64_t sent;	  /* time just before the grant */
	struct auth_step renew;
	uint64_t renew_lease;
	int64_t renew_sent;
	struct auth_timer renew_timer;
	char lost_text[AUTH_TEXT];
	/* descriptor */
	int64_t node_mr, revision;
	/* the store request of the phase */
	struct auth_step step;
	enum auth_phase step_phase; /* that built it */
	bool reads_back;	    /* it reads what became of the write */
	struct auth_timer step_retry;
	int64_t retry_ns;
	bool announced; /* HOST_READY was given */
	bool dead;	/* the dataplane is gone */
	bool failed;	/* the start was refused */
	bool scanning;	/* the sweep of SCAN or RESUME was begun */
	bool entry_begun, entry_closed;
	uint64_t entry_gen; /* object generation under which it was made; 0: it is not there */
	/* planned stop */
	bool stop, draining, drained, forced, lost_in_stop;
	bool busy;		    /* of nothing_but_attempts() */
	bool late, teardown_failed; /* what makes its outcome ForceStopped */
	int64_t stop_at;
	struct auth_timer stop_timer;
	char text[AUTH_TEXT]; /* of HOST_STOPPED */
	struct auth_fx ready, lease_fx, state_fx, lost_fx, stopped_fx, inventory_fx;
	struct auth_host_start *next; /* a start that waits for the one before it to be buried */
};

struct auth_host_start {
	struct auth_type *types;
	size_t n_types;
	uint8_t endpoint[AUTH_ENDPOINT_MAX];
	uint32_t endpoint_n, lanes;
};

/* ---- for the others ---- */
int auth_host_event(struct auth *a, const struct auth_event *e);
void auth_host_init(struct auth *a);
void auth_host_fini(struct auth *a);
/* The store says that our lease is gone. */
void auth_host_token_lost(struct auth *a, const char *why);
/* A phase that waits for others to end goes on when they have. */
void auth_host_check(struct auth *a);
void auth_host_sweep_done(struct auth *a, enum auth_sweep_kind kind);
/* One own row against the inventory: *w is what has to be done, or NULL. 0 or -ENOMEM. */
int auth_resume_row(struct auth *a, struct auth_bytes id, const struct row_obj *row, int64_t cr,
		    int64_t mr, struct auth_work **w);
/* The object has a row, though of an older token of ours: it is not to be ended. */
void auth_resume_keep(struct auth *a, struct auth_bytes id);
/* All rows were compared: ends what has no row. False: call again. */
bool auth_resume_finish(struct auth *a);

/* ---- between these files ---- */
int auth_host_build(struct auth *a, struct auth_step *s);
int auth_host_build_renew(struct auth *a, struct auth_step *s);

/* Goes to a phase and asks for its store requests. */
void auth_host_go(struct auth *a, enum auth_phase phase);
/* The Entry Spot is there, or cannot be. */
void auth_host_entry_made(struct auth *a);
void auth_host_start_failed(struct auth *a, const char *why);
/* The request of this phase failed: again a little later. */
void auth_host_retry(struct auth *a);
void auth_host_say(struct auth *a, enum auth_host_state state);

void auth_host_start_next(struct auth *a);
void auth_host_drop_next(struct auth *a);

/* The lifecycle is over: nothing of it is left to do. */
void auth_host_gone(struct auth *a);
void auth_host_end_lease(struct auth *a); /* T20, if there is one */
void auth_host_revoked(struct auth *a, const struct store_req *r);
int auth_host_shutdown(struct auth *a, const struct auth_event *e);
void auth_host_died(struct auth *a);
void auth_host_stop_init(struct auth *a);

/* The lease was granted at `sent`: sets the local deadline and tells. */
void auth_lease_held(struct auth *a, int64_t sent);
void auth_lease_init(struct auth *a);
void auth_lease_stop(struct auth *a);
void auth_lease_renew_now(struct auth *a);

/* Results of the reads of phase RESUME: lease, node, capacity, Entry. */
void auth_resume_rows(struct auth *a, struct store_req *r);
void auth_resume_renewed(struct auth *a);
int auth_resume_item(struct auth *a, const struct auth_event *e);
void auth_resume_inventory_end(struct auth *a);
/* A new connection: what came of the inventory on the one before is asked for again. */
void auth_resume_ask(struct auth *a);
void auth_resume_free(struct auth *a);
bool auth_resume_ready(const struct auth *a);
#endif
