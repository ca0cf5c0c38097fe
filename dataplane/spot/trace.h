/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: trace points of the room (S-TRACE). Inside the room only.
 *
 * The level is read once a pass (spot_lane_trace()). What a plain message passes has no trace point
 * while the level is below NORMAL: spot_run() and spot_admit() choose between two ways, and
 * elsewhere a point is one test of the level. Flows of records lie in a table of their own, by the
 * number of the record, which nobody touches below NORMAL.
 */
#ifndef SPL_DATAPLANE_SPOT_TRACE_H
#define SPL_DATAPLANE_SPOT_TRACE_H

#include "dataplane/spot/lane.h"

static inline bool spot_traces_errors(const struct spot_lane *l)
{
	return __builtin_expect(l->trace.level >= SPL_TL_ERRORS, 0);
}

static inline bool spot_traces_flows(const struct spot_lane *l)
{
	return __builtin_expect(l->trace.level >= SPL_TL_NORMAL, 0);
}

/* The flow of a record, made with `origin` when it has none. Only when flows are traced. */
const struct spl_flow_id *spot_flow_of(struct spot_lane *l, const struct spot_rec *r,
				       enum spl_trace_origin origin);

/* A new flow for `r`. */
void spot_flow_begin(struct spot_lane *l, const struct spot_rec *r, enum spl_trace_origin origin);

/* `to` is of the flow of `from` too: sent by its handler, or a branch of a publish. */
void spot_flow_pass(struct spot_lane *l, const struct spot_rec *from, const struct spot_rec *to);

/* The flow that goes with a message of the turn that runs; none when flows are not traced. */
struct spl_flow_id spot_flow_out(struct spot_lane *l, const struct spot_rec *r);

/* ---- NORMAL and DETAILED: the caller has asked spot_traces_flows() ---- */

void spot_trace_received(struct spot_lane *l, const struct spot_rec *r);
void spot_trace_admitted(struct spot_lane *l, const struct spot_rec *r, const struct spl_key *key);
void spot_trace_dispatched(struct spot_lane *l, struct spot *s, const struct spot_rec *r);
void spot_trace_completed(struct spot_lane *l, struct spot *s, const struct spot_rec *r);
void spot_trace_replied(struct spot_lane *l, const struct spot_rec *r, uint8_t error);
void spot_trace_reply_in(struct spot_lane *l, const struct spot_call *c, uint8_t error);

/* A call of the running turn: what it came to, 0 or -errno. `topic` of a publish, else NULL. */
void spot_trace_sent(struct spot_lane *l, enum spl_trace_kind kind, const struct spl_name *id,
		     const struct spl_name *topic, uint64_t correlation, int rc);

/* ---- ERRORS: the caller has asked spot_traces_errors() ---- */

/* `r` ends by `why`; `s` is NULL when it found no Spot. */
void spot_trace_failed(struct spot_lane *l, struct spot *s, const struct spot_rec *r,
		       enum spl_message_fail why);
/* A callback of a timer or of the lifecycle failed; `name` is the timer's or NULL. */
void spot_trace_callback_failed(struct spot_lane *l, struct spot *s, const struct spot_rec *r,
				const struct spl_name *name);
void spot_trace_reply_lost(struct spot_lane *l, const struct spot_rec *r);
void spot_trace_reply_unexpected(struct spot_lane *l, uint64_t correlation);

#endif
