/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the Spots of one lane: table, queues, gates, turns, calls (S-GATE, S-TURN, S-ADM).
 *
 * Pure: time comes in as cycles, bytes as views, everything that leaves goes through spot_env. All
 * functions run on the thread that runs the lane unless marked "agent". Nothing allocates, locks
 * or waits; each call's work is bounded by its arguments.
 *
 * One pass of a host:
 *	spot_lane_set(lane, lease, ...);
 *	n = spot_recs_take(lane, recs, burst); fill; spot_admit(lane, recs, used, now);
 *	spot_recs_give(lane, recs + used, n - used); replies: spot_reply_in();
 *	commands of the agent: spot_prepare() ... spot_close();
 *	spot_tick(lane, now, 64); spot_run(lane, max_turns, until);
 */
#ifndef SPL_DATAPLANE_SPOT_SPOT_H
#define SPL_DATAPLANE_SPOT_SPOT_H

#include "dataplane/spot/env.h"
#include "dataplane/spot/lanemem.h"
#include "dataplane/spot/stage_table.h"

#include <spotlane/reasons.h>

struct spot_lane;

/* Agent, before start. Bytes of a region under `conf`; 0 when the configuration is out of range.
 */
size_t spot_region_bytes(const struct spot_conf *conf, enum spot_region region);

/* Agent, before start. Makes the lane in its regions (mem[SPOT_MEM_COUNT]); the returned pointer
 * is mem[SPOT_MEM_LANE]. NULL when `conf` is out of range. `conf` and `env` are copied. Ends with
 * the memory; spot_lane_quiet() says when nothing is held any more. */
struct spot_lane *spot_lane_init(const struct spot_conf *conf, const struct spot_env *env,
				 void *const mem[SPOT_MEM_COUNT]);

/* What the host knows, once per pass. `lease` is the local admission deadline in cycles (S-LEASE-2;
 * UINT64_MAX: none); `pool_low`: buffers are below their low-water mark, so turns start on copies;
 * `reply_permits`: requests that may start, because their replies will find room (S-LIM-12). */
void spot_lane_set(struct spot_lane *lane, uint64_t lease, bool pool_low, uint32_t reply_permits);

/* Level and share of the flow trace as spl_trace_word() makes it, from now on (S-TRACE-3); `now` in
 * cycles, and CLOCK_REALTIME then. Not in the middle of a burst or a run. */
void spot_lane_trace(struct spot_lane *lane, uint64_t word, uint64_t now, uint64_t now_wall_ns);

/* A record from another lane, before it is admitted: its flow is that of spot_out or spot_cast. */
void spot_flow_in(struct spot_lane *lane, const struct spot_rec *rec, const struct spl_flow_id *id);

/* A message that ended before it became a record, for the trace. */
void spot_trace_refused(struct spot_lane *lane, bool is_request, enum spl_message_fail why,
			uint64_t correlation);

/* Stops admission: what comes is refused with ShuttingDown; accepted work goes on (S-DRAIN-2). */
void spot_lane_seal(struct spot_lane *lane);

/* Ends up to `max` open calls with `kind` (ShuttingDown at the drain deadline, S-DRAIN-4);
 * returns how many are left. */
unsigned spot_calls_end(struct spot_lane *lane, uint8_t kind, unsigned max);

/* True when nothing waits, runs or is held: no record, no call, no lane memory of this room. */
bool spot_lane_quiet(const struct spot_lane *lane);

/* Takes up to `n` free records, fewer when the pool is low; gives back the unused. The host does
 * not acknowledge a message that finds no record, so that it comes again. */
unsigned spot_recs_take(struct spot_lane *lane, struct spot_rec **recs, unsigned n);
void spot_recs_give(struct spot_lane *lane, struct spot_rec *const *recs, unsigned n);

/* Messages that arrived: each ends in exactly one queue or is refused by name, requests with their
 * error (S-ADM-1,2). Takes over the records and their buffers. `now` in cycles. Fast with 8..32. */
void spot_admit(struct spot_lane *lane, struct spot_rec *const *recs, unsigned n, uint64_t now);

/* A reply that arrived; one that matches no open call is counted and dropped (S-COMPL-6). `kind` is
 * SPL_OK or the error. Takes over `buf` and `charge`, as in a record. */
struct spot_reply {
	uint64_t correlation;
	const void *payload;
	uint32_t payload_bytes;
	uint16_t content;
	uint8_t kind;
	uint8_t origin; /* enum spot_origin it came from */
	void *buf;
	uint64_t flow;
	uint32_t charge;
};
void spot_reply_in(struct spot_lane *lane, const struct spot_reply *reply);

/* What became of spot_env.create(): `body` as wire_create_reply_put() makes it, copied; empty
 * unless `kind` is SPL_OK. */
void spot_created(struct spot_lane *lane, uint64_t correlation, uint8_t kind, const void *body,
		  uint32_t bytes);

/* A lane that spot_env.cast() gave a publish has done with it: `token` as it was given. */
void spot_cast_returned(struct spot_lane *lane, uint32_t token);

/* Runs ready owners: at most `max_turns` turns, and none but the first begins after `until`
 * (cycles). Before them publishes go on to their subscribers' queues, at most 1024 of these.
 * Returns the number of turns, and one more when there were publishes. */
unsigned spot_run(struct spot_lane *lane, unsigned max_turns, uint64_t until);

/* True when an owner is ready or a publish is on its way: the lane must not nap. */
bool spot_ready(const struct spot_lane *lane);

/* True while a publish that this lane has accepted is on its way to queues of it. */
bool spot_casts_waiting(const struct spot_lane *lane);

/* Queues ticks of timers that are due, at most `max` (64); returns how many were due. Every pass,
 * before messages are admitted: they would always be there first in the queue of a busy Spot. */
unsigned spot_timers(struct spot_lane *lane, uint64_t now, unsigned max);

/* Ends calls whose deadline has passed, at most `max` (64); returns how many. Every pass, after
 * replies have been taken in. Now and then it looks for Instance Spots that are idle. */
unsigned spot_tick(struct spot_lane *lane, uint64_t now, unsigned max);

/* Moves the bytes of up to `max` waiting messages out of their buffers into lane memory; returns
 * how many, for the host to count. For when buffers are short. Looks at 8 * max records. */
unsigned spot_copy_out(struct spot_lane *lane, unsigned max);

/* The lane's memory: for the link engine's reassembly and what goes out. */
struct lanemem *spot_lane_mem(struct spot_lane *lane);

/* The longest handler call so far: cycles, stable type, packet name or callback. NULL names when
 * none ran. */
void spot_longest(const struct spot_lane *lane, uint64_t *cycles, const char **type,
		  const char **what);

/* What became of spot_env.activate(): SPL_OK, or why there is no such Spot. */
void spot_activated(struct spot_lane *lane, const struct spl_key *key, uint64_t serial,
		    uint8_t kind, uint64_t now);

/* Commands of the agent. Each is answered exactly once through spot_env.answer(), possibly before
 * it returns. `op` is the agent's own number. */

/* Makes the Spot and runs on_create and on_initialize; accepted = waits for spot_publish().
 * Refused (SPOT_FAILED): AlreadyExists when the key is in use here, by this or another id;
 * CapacityExceeded without memory; Unavailable past the lease; ShuttingDown. `request` stays valid
 * until `buf` is released (or for ever when buf is NULL). spot_plan must have covered it. */
struct spot_prepare {
	struct spl_key key;
	const void *id;
	uint8_t id_len;
	uint16_t content;
	uint32_t request_bytes;
	const void *request;
	void *buf;
	const struct spot_stage *stage;
	uint64_t object_generation;
	uint64_t op;
	uint64_t deadline; /* cycles, 0 = none: DeadlineExceeded and discarded after it */
};
void spot_prepare(struct spot_lane *lane, const struct spot_prepare *p, uint64_t now);

/* Opens admission of a prepared Spot. SPOT_GONE when that incarnation is not prepared here. */
void spot_publish(struct spot_lane *lane, const struct spl_key *key, uint64_t object_generation,
		  uint64_t op, uint64_t now);

/* Ends a Spot that is being prepared or waits for publication, without on_closing. */
void spot_discard(struct spot_lane *lane, const struct spl_key *key, uint64_t object_generation,
		  uint64_t op, uint64_t now);

/* Closes (S-CLOSE-3): seals, runs what was accepted until `deadline` (cycles), then on_closing
 * once, frees, answers. Past the deadline what still waits fails and a suspended turn ends with
 * an error. A repeated close of the same incarnation is answered with the first one. For
 * SPL_CLOSING_IDLE_EVICTED a Spot that is not idle any more answers SPOT_BUSY and goes on. */
#define SPOT_FENCED ((enum spl_closing)0xff) /* a reason: no on_closing, the row is not ours */
void spot_close(struct spot_lane *lane, const struct spl_key *key, uint64_t object_generation,
		uint64_t op, enum spl_closing reason, uint64_t deadline, uint64_t now);

/* Inventory: calls `fn` for up to `max` Spots from `*cursor` (0 at first) on; false at the end. A
 * Spot that is there all the time is seen at least once. */
struct spot_item {
	struct spl_key key;
	const struct spl_name *id;
	const struct spot_stage *stage;
	uint64_t object_generation;
	uint32_t queued; /* records, running ones included */
	bool ready, closing;
};
bool spot_inventory(struct spot_lane *lane, uint64_t *cursor, unsigned max,
		    void (*fn)(void *ctx, const struct spot_item *item), void *ctx);

/* Agent: how much of TABLE and OBJECTS must be backed. One plan per lane, of the agent alone.
 * Before it sends a prepare command it calls spot_plan_add() and backs both regions up to bytes[];
 * after the Spot is gone (failed, rejected, discarded or closed) it calls spot_plan_remove(). */
struct spot_plan {
	uint32_t spots, spots_max;
	uint64_t object_limit;
	uint64_t bytes[SPOT_MEM_COUNT]; /* only TABLE and OBJECTS count */
	uint32_t live[64], peak[64];	/* by size class */
};
void spot_plan_init(struct spot_plan *plan, const struct spot_conf *conf);

/* 0, or -ENOSPC when the lane cannot hold one more; the plan is unchanged then. */
int spot_plan_add(struct spot_plan *plan, const struct spot_stage *stage, uint8_t id_len);
void spot_plan_remove(struct spot_plan *plan, const struct spot_stage *stage, uint8_t id_len);

#endif
