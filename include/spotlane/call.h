/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of a turn: part of the stage interface, <spotlane/stage.h> includes it. A request, a
 * computation, an I/O operation and a creation are calls; how one is waited for and how it ends is
 * the same for all of them (S-YIELD, S-COMPL).
 *
 * The rules of a callback are those of stage.h.
 */
#ifndef SPOTLANE_CALL_H
#define SPOTLANE_CALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spl_turn;
struct spl_call; /* one that was started; ends with its result */

enum spl_wait {
	SPL_WAIT_HOLD =
		0, /* keep the turn and its gate: nothing else of that gate runs until the answer;
		      with SPL_MODE_PER_ACTOR the Spot and each timer have one of their own */
	SPL_WAIT_YIELD = 1, /* end the turn: other callbacks of this Spot run; the answer starts a
			       new turn, behind everything that is queued by then (S-YIELD-3,4) */
};

/* How a call ended (S-DIR-6): a reply or one error kind, exactly once. */
struct spl_result {
	int kind; /* SPL_OK, one of enum spl_error, or SPL_CANCELLED */
	uint16_t content;
	const void *payload;
	uint32_t payload_bytes;
};

/* Continuation of spl_call_then(). After SPL_WAIT_HOLD it runs in the same turn. After
 * SPL_WAIT_YIELD `turn` is a new one, other callbacks may have changed `state`, and what was read
 * of it before has to be read again (S-YIELD-5); what the handler was given is still there.
 */
typedef int (*spl_result_fn)(struct spl_turn *turn, void *state, const struct spl_result *result,
			     void *ctx);

/* Gives the call its continuation; the callback then returns SPL_SUSPENDED. `ctx` must live in
 * `state`. -EINVAL: not this turn's call, it already has one, or another call is waited for
 * (S-CF-2).
 */
int spl_call_then(struct spl_turn *turn, struct spl_call *call, spl_result_fn fn, void *ctx);

/* Ends an open call of this Spot, be it of this turn or of one that has yielded: its result is
 * SPL_CANCELLED, and what the target may have begun goes on (S-COMPL-8,9). 1: cancelled by this;
 * 0: it had ended, or it is a send or publish that is with another lane; -EINVAL: not a call of
 * this Spot.
 */
int spl_call_cancel(struct spl_turn *turn, struct spl_call *call);

#ifdef __cplusplus
}
#endif
#endif
