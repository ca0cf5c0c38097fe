/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of calls: one slot a call, one winner for its end (S-COMPL-1).
 *
 * A call is NEW, then waits in the queue of its route (ASKING) or of its lane (QUEUED), then it is
 * SENT and its answer awaited, then ENDED and its callback due. A handle is never used twice, so
 * that an old one, or a late reply, finds nothing (S-COMPL-5, S-COMPL-6). All memory is taken by
 * calls_init(). Pure; the client's thread.
 */
#ifndef SPL_CLIENT_CALLS_H
#define SPL_CLIENT_CALLS_H

#include <spotlane/client.h>
#include <sys/queue.h>

#include "client/buffer.h"

#define CALLS_MAX (1u << 20) /* slots that a handle can name */

enum call_kind {
	CALL_SEND,
	CALL_PUBLISH,
	CALL_REQUEST,
	CALL_CREATE,
	CALL_FIND,
	CALL_CLOSE,
	CALL_RESOLVE
};
enum call_state { CALL_FREE, CALL_NEW, CALL_ASKING, CALL_QUEUED, CALL_SENT, CALL_ENDED };

TAILQ_HEAD(call_queue, call);

struct route;

struct call {
	uint64_t id; /* handle and correlation; 0 = free slot */
	uint8_t kind, state;
	uint8_t lane, cls;    /* QUEUED: where */
	bool is_instance;     /* a message with Instance intent */
	uint32_t heap;	      /* its place among the timers, 0 = none */
	uint64_t due_ns;      /* end of its present stage */
	uint64_t deadline_ns; /* end of the whole call */
	spl_client_fn fn;
	void *ctx;
	struct spl_key key;  /* of the Spot, but for create and find */
	struct route *route; /* that it waits for (ASKING) or asks for (RESOLVE); NULL otherwise */
	struct buffer *out;  /* owns: encoded message, until the link takes it */
	/* how it ended */
	int result;
	struct buffer *answer;	/* owns: the REPLY message, until the callback has run */
	TAILQ_ENTRY(call) link; /* free list, waiting queue or ended queue */
};

struct calls {
	struct call *slot;
	uint32_t max, used;
	uint64_t serial; /* of the next handle */
	struct call_queue free, ended;
	struct call **heap; /* [1..heap_len], smallest due_ns first */
	uint32_t heap_len;
};

/* 0, -EINVAL (max 0 or above CALLS_MAX) or -ENOMEM. */
int calls_init(struct calls *c, uint32_t max);
/* Frees the table and what its calls own; no callback runs. */
void calls_fini(struct calls *c);

/* A NEW call with a timer at `due_ns`; NULL when the table is full. */
struct call *calls_add(struct calls *c, enum call_kind kind, uint64_t due_ns);

/* The call with this handle that has not ended; NULL when there is none. */
struct call *calls_find(const struct calls *c, uint64_t id);

/* The call whose callback has not run; NULL when there is none. */
struct call *calls_known(const struct calls *c, uint64_t id);

/* Moves the timer. */
void calls_due(struct calls *c, struct call *call, uint64_t due_ns);

/* Ends a call that is in no queue: the timer and the outgoing message go, the callback is due.
 * Takes `answer`. */
void calls_end(struct calls *c, struct call *call, int result, struct buffer *answer);

/* The same for a call without a callback: its slot is free at once. */
void calls_drop(struct calls *c, struct call *call);

/* The first call whose timer is due at `now_ns`; NULL when there is none. */
struct call *calls_expired(const struct calls *c, uint64_t now_ns);

/* When the next timer is due; UINT64_MAX when there is none. */
uint64_t calls_next(const struct calls *c);

/* The first ended call, whose slot is free again on return; its contents are copied to `out`, which
 * then owns `answer`. False when there is none. */
bool calls_take_ended(struct calls *c, struct call *out);

#endif
