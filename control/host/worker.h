/* SPDX-License-Identifier: BSD-3-Clause */
/* The store's thread: runs store batches one after the other, off the loop, because a commit waits
 * for the disk. Called from the loop's thread; results come back there.
 */
#ifndef SPL_CONTROL_HOST_WORKER_H
#define SPL_CONTROL_HOST_WORKER_H

#include "control/store/store.h"

#include <uv.h>

#define WORKER_QUEUE_MAX 64 /* batches not yet run */

struct worker;

typedef void (*worker_done_fn)(void *ctx, struct store_batch *b);

/* Starts the thread and takes `st`: it is closed with the worker. 0, -ENOMEM, -EAGAIN; on error
 * `st` stays the caller's. */
int worker_open(struct worker **out, uv_loop_t *loop, struct store *st);

/* Queues `b`, which stays the caller's and untouched until `fn` is called with it, on the loop.
 * 0 or -ENOBUFS. */
int worker_run(struct worker *w, struct store_batch *b, worker_done_fn fn, void *ctx);

/* Waits for what runs, gives every queued batch back (results as after -ECANCELED: FAILED), closes
 * the store and calls `done` on the loop; the worker is gone then. */
void worker_close(struct worker *w, void (*done)(void *arg), void *arg);

#endif
