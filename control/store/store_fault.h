/* SPDX-License-Identifier: BSD-3-Clause */
/* A store around another one that fails on command: tests, simulator. */
#ifndef SPL_CONTROL_STORE_FAULT_H
#define SPL_CONTROL_STORE_FAULT_H

#include "control/store/store.h"

enum store_fault {
	STORE_FAULT_NONE,
	STORE_FAULT_FAIL, /* not done, FAILED */
	STORE_FAULT_DROP, /* not done, UNKNOWN (reads and scans: FAILED) */
	STORE_FAULT_LOSE, /* done, UNKNOWN (reads and scans: FAILED) */
};

/* Asked before each call; a commit batch asks once and shares the answer. */
typedef enum store_fault (*store_fault_fn)(void *ctx, enum store_op op);

/* Takes `inner`: store_close(*out) closes both. 0 or -ENOMEM (inner stays the caller's). */
int store_fault_open(struct store **out, struct store *inner, store_fault_fn fn, void *ctx);

#endif
