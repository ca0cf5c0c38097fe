/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the Spots of each stable type of a lane add up to (S-OBS-5, S-STAGE-10). Inside
 * the room only.
 *
 * Running totals, one writer: nothing walks a queue or the Spots to know them. What every message
 * changes stays in struct spot_kind, a line that its way touches anyhow, and goes to the segment
 * once a pass; all else is written there at once.
 */
#ifndef SPL_DATAPLANE_SPOT_TOTALS_H
#define SPL_DATAPLANE_SPOT_TOTALS_H

#include "dataplane/spot/lane.h"

static inline struct spot_kind *spot_kind_of(struct spot_lane *l, const struct spot *s)
{
	return &l->kinds[s->stage];
}

static inline void spot_stage_add(struct spot_lane *l, const struct spot *s,
				  enum spl_stage_counter c, uint64_t n)
{
	spot_add(&spot_kind_of(l, s)->stats[c], n);
}

/* What goes back with spot_app_return(). */
static inline uint32_t spot_rec_payload(const struct spot_rec *r)
{
	if (r->kind == REC_TICK)
		return 0;
	return r->origin == SPOT_FROM_CAST ? r->cast->msg.payload_bytes : r->msg.payload_bytes;
}

/* A record takes its place in the application queue of `s`: both axes, and the totals (S-LIM-3). */
static inline void spot_app_reserve(struct spot *s, struct spot_kind *k, uint32_t cost,
				    uint32_t payload)
{
	s->app.count++;
	s->app.bytes += cost;
	k->pending++;
	k->payload += payload;
}

/* Its terminal, while it still has what it holds. */
static inline void spot_app_return(struct spot_lane *l, struct spot *s, const struct spot_rec *r)
{
	struct spot_kind *k = spot_kind_of(l, s);

	s->app.count--;
	s->app.bytes -= r->cost;
	k->pending--;
	k->payload -= spot_rec_payload(r);
}

/* The turn of `r` begins to wait (`n` 1), or goes on (-1). A lifecycle callback is not of the
 * pending work. */
static inline void spot_turn_waits(struct spot_lane *l, const struct spot *s,
				   const struct spot_rec *r, int n)
{
	if (r->kind < REC_CREATE)
		spot_count(l, SPL_C_MESSAGES_RUNNING, (uint64_t)n);
	else if (r->kind != REC_TICK)
		return;
	spot_stage_add(l, s, SPL_S_ACTIVE, (uint64_t)n);
	spot_stage_add(l, s, SPL_S_ACTIVE_BYTES, (uint64_t)n * spot_rec_payload(r));
}

/* totals.c. The one way in which the state of a Spot changes. */
void spot_set_state(struct spot_lane *l, struct spot *s, enum spot_state state);

/* The kind of `stage` with its limits, filled. */
struct spot_kind *spot_kind_get(struct spot_lane *l, const struct spot_stage *stage);

/* [SPL_S_COUNT] of the Instance type; never NULL: of one that is not here nobody sees them. */
uint64_t *spot_stats_of_type(struct spot_lane *l, const struct spl_name *type);

/* A callback of a timer begins `late` ns after its time and passes over `skipped` ticks. */
void spot_note_tick(struct spot_lane *l, const struct spot *s, uint64_t late, uint64_t skipped);

/* `s` is about to go: how its creation or its close has ended. */
void spot_note_end(struct spot_lane *l, struct spot *s);

/* A one-way message ended by `why`; `s` is NULL when it found no Spot. */
void spot_note_drop(struct spot_lane *l, const struct spot *s, enum spl_message_fail why);

/* A request of a handler that began at `begun` (cycles) has ended. */
void spot_note_request(struct spot_lane *l, uint64_t begun, uint8_t kind);

/* The totals of messages, into the segment. */
void spot_totals_tell(struct spot_lane *l);

#endif
