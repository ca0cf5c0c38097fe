/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over all Spot rows: sweep.c. */
#ifndef SPL_CONTROL_AUTHORITY_SWEEP_H
#define SPL_CONTROL_AUTHORITY_SWEEP_H

#include "control/authority/parts.h"

struct auth_op;

enum auth_sweep_kind {
	AUTH_SWEEP_FIRST,   /* start: Creating rows of the dead; with on_restart their Ready ones */
	AUTH_SWEEP_RESUME,  /* own rows against the inventory */
	AUTH_SWEEP_READOPT, /* own rows of the lost lease */
	AUTH_SWEEP_DRAIN,   /* own rows: close and release */
	AUTH_SWEEP_RECLAIM, /* rows of one dead rid */
};
struct auth_sweep {
	STAILQ_ENTRY(auth_sweep) link;
	enum auth_sweep_kind kind;
	struct auth_step step;
	struct store_cursor cursor;
	bool begun, at_end, again, cancelled;
	bool waits; /* for its retry timer */
	uint32_t outstanding, freed, kept;
	struct spl_name rid; /* RECLAIM */
	struct auth_op *op;  /* RECLAIM on somebody's request, or NULL */
};

/* `rid` and `op` (may be NULL) for RECLAIM. 0 or -ENOMEM. */
int auth_sweep_start(struct auth *a, enum auth_sweep_kind kind, struct auth_bytes rid,
		     struct auth_op *op);
void auth_sweep_work_done(struct auth *a, struct auth_sweep *s, bool freed);
void auth_sweep_op_gone(struct auth *a, const struct auth_op *op);
/* Sweeps over own rows make no sense any more. */
void auth_sweep_cancel_own(struct auth *a);
/* True when a sweep came to its end: others may wait for that. */
bool auth_sweep_pump(struct auth *a);
void auth_sweep_fini(struct auth *a);

#endif
