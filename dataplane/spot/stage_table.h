/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: a stage as a lane uses it: its descriptor, its limits, and its handlers by packet key.
 *
 * Built once on the main thread (dataplane/stage loads and checks the descriptor), then read by
 * every lane and never changed.
 */
#ifndef SPL_DATAPLANE_SPOT_STAGE_TABLE_H
#define SPL_DATAPLANE_SPOT_STAGE_TABLE_H

#include <spotlane/stage.h>

struct spot_handler {
	uint64_t packet; /* packet key, 0 = empty slot */
	const struct spl_handler *handler;
};

struct spot_stage {
	const struct spl_stage *desc;
	const struct spot_handler *slots; /* open addressing, at most half full */
	uint32_t mask;			  /* slots - 1 */
	uint32_t probes;		  /* longest way to a key, at least 1 */
	uint32_t state_bytes;		  /* rounded up to 16 */
	uint32_t queue_count;		  /* 0 = the lane's default */
	uint64_t queue_bytes;		  /* 0 = the lane's default */
	uint16_t index;			  /* the host's number of it */
	bool may_yield;			  /* S-YIELD-1: its Spots have a gate to give back */
	bool own_timers;		  /* S-GATE-3: each timer has a gate of its own */
};

/* Slots that the handlers of `desc` need. */
uint32_t spot_stage_slots(const struct spl_stage *desc);

/* Fills `stage` with `slots` (spot_stage_slots() of them, caller's memory for the life of the
 * process). -EEXIST when two handlers have one packet key, its second name in `*which`; -EINVAL
 * when a name is no legal name. */
int spot_stage_build(struct spot_stage *stage, const struct spl_stage *desc,
		     struct spot_handler *slots, uint16_t index, uint32_t *which);

/* The handler of a packet key, or NULL. */
static inline const struct spl_handler *spot_stage_find(const struct spot_stage *s, uint64_t packet)
{
	uint32_t at = (uint32_t)(packet >> 32) & s->mask;

	for (uint32_t i = 0; i < s->probes; i++) {
		const struct spot_handler *h = &s->slots[(at + i) & s->mask];

		if (h->packet == packet)
			return h->handler; /* NULL for the empty slot and packet 0 */
		if (h->packet == 0)
			break;
	}
	return NULL;
}

/* A stage in one lane, with its limits resolved. The lane's own, one cache line. */
struct spot_kind {
	const struct spot_stage *stage;
	uint32_t queue_count, queue_bytes;
	uint64_t packet; /* of the message before, and its handler: the next is often alike */
	const struct spl_handler *handler;
	/* Running totals of its Spots. What every message changes is here and goes to `stats` once
	 * a pass. */
	uint64_t pending, payload; /* SPL_S_PENDING, with what `plain` has still to take off */
	uint64_t plain;		   /* popped, ran one turn and finished, in this spot_run() */
	uint64_t *stats;	   /* [SPL_S_COUNT], written relaxed by this lane only */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct spot_kind) == 64, "a kind is one cache line");

/* The handler of a packet key for Spots of this kind, or NULL. */
static inline const struct spl_handler *spot_kind_find(struct spot_kind *k, uint64_t packet)
{
	if (__builtin_expect(k->packet != packet, 0)) {
		k->packet = packet;
		k->handler = spot_stage_find(k->stage, packet);
	}
	return k->handler;
}

#endif
