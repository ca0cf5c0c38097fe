/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: calls: the requests that handlers have started, and the agent's open commands, which
 * share their table and its wheel of deadlines. Inside the room only.
 */
#ifndef SPL_DATAPLANE_SPOT_CALLS_H
#define SPL_DATAPLANE_SPOT_CALLS_H

#include "dataplane/spot/record.h"
#include "dataplane/spot/wheel.h"

#include <spotlane/stage.h>

#define SPOT_TURN_CALLS 64u /* requests one turn may start */

struct spot_lane;

enum call_state {
	CALL_FREE = 0,
	CALL_OPEN,  /* registered; whoever takes it from here to ENDED wins (S-COMPL-1) */
	CALL_ENDED, /* has its result, which stays until the end of the turn */
	CALL_OP,    /* not a call: an open command of the agent */
};

/* A request that a handler has started, or an open command. */
struct spot_call {
	struct wheel_node timer;
	uint64_t correlation; /* of a call; a command's op */
	uint32_t spot;
	uint32_t next; /* next of the same turn, or of the same Spot's commands; free list */
	uint32_t rec;  /* the turn's record */
	uint8_t state;
	uint8_t kind;	/* result, or what a command will be answered */
	uint8_t origin; /* where the request went: its reply must come from there */
	uint8_t verb;
	uint64_t epoch; /* of the turn (S-TURN-8) */
	spl_result_fn fn;
	void *ctx;
	const void *payload;
	uint32_t payload_bytes;
	uint16_t content;
	uint8_t from; /* enum spot_origin of buf and charge */
	uint8_t verdict;
	void *buf;
	void *mem;
	uint64_t flow;
	uint32_t charge;
	uint8_t wait; /* enum spl_wait, of a call */
	bool is_told; /* of a call: a send or publish, which its admission answers */
	uint8_t spare[2];
	union {
		uint64_t deadline; /* cycles, of a command */
		uint64_t begun;	   /* of a call */
	};
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct spot_call) == 128, "a call is two cache lines");

void spot_calls_init(struct spot_lane *l);
struct spot_call *spot_call_start(struct spot_lane *l, uint8_t origin, uint64_t deadline);
struct spot_call *spot_call_find(struct spot_lane *l, uint64_t correlation);

/* Ends an open call; the first one wins and the others find it ended (S-COMPL-1). The result's
 * memory must be in the call already. Wakes the turn that waits for it. */
void spot_call_end(struct spot_lane *l, struct spot_call *c, uint8_t kind);

/* The same when nobody has answered it and it is not waited for any longer, `kind` says why. What
 * became of a send in another lane nobody here knows then: Unavailable, because `kind` would mean
 * that it is never admitted (S-LIM-6). */
void spot_call_end_unanswered(struct spot_lane *l, struct spot_call *c, uint8_t kind);

/* A reply made in this lane for a call of this lane: copies the payload. 0, or -ENOBUFS without
 * memory, the call then stays open. */
int spot_call_reply(struct spot_lane *l, uint64_t correlation, uint8_t kind, uint16_t content,
		    const void *payload, uint32_t bytes);

/* Releases a call, or all calls of a turn; one that is still open is cancelled. */
void spot_call_drop(struct spot_lane *l, struct spot_call *c);
void spot_calls_drop(struct spot_lane *l, struct spot_rec *r);

#endif
