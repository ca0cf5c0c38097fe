/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: one Spot in memory. Inside the room only.
 *
 *	[ struct spot, 48 bytes ][ state ][ struct spot_cold and the id ]
 *
 * An object begins on a cache line. Its first line holds all that admission and an ordinary turn
 * touch, and the first 16 bytes of the stage's state; what creation, closing and suspension need
 * comes after the state. An object is named by its index, its offset in the region in units of 64
 * bytes plus one; 0 is none.
 *
 * Queue and gate are apart (S-GATE-1): a Spot has one of each; an Actor will have a queue of its
 * own and share a gate or have one.
 */
#ifndef SPL_DATAPLANE_SPOT_OBJECT_H
#define SPL_DATAPLANE_SPOT_OBJECT_H

#include "dataplane/spot/stage_table.h"

#include <spotlane/ids.h>

#include <endian.h>
#include <stdbool.h>
#include <string.h>

enum spot_state {
	SPOT_S_FREE = 0,
	SPOT_S_CREATING, /* on_create and on_initialize wait or run; no admission */
	SPOT_S_PREPARED, /* waits for publication; no admission */
	SPOT_S_READY,
	SPOT_S_CLOSING, /* sealed; runs what it has, then on_closing */
	SPOT_S_ENDING,	/* a prepared Spot that is discarded while a callback is suspended */
};

#define SPOT_F_READY  0x01u /* in the ready set, once (S-FAIR-1) */
#define SPOT_F_RESUME 0x02u /* the call that its suspended turn waits for has ended */
#define SPOT_F_DEBT   0x04u /* the next turn is the application's (S-LANE-4) */
#define SPOT_F_LIFE   0x08u /* the lifecycle queue is not empty */
#define SPOT_F_ARMED  0x10u /* asked to be closed; the agent does not know yet */
#define SPOT_F_FORCED 0x20u /* its time is up: waits end, nothing queued starts */
#define SPOT_F_HELD   0x40u /* a suspended turn holds the gate (S-TURN-4) */
#define SPOT_F_ODD    0x80u /* what waits may be something else than messages; until all is done */

/* Something beyond the application queue is to be looked at. */
#define SPOT_F_SLOW   (SPOT_F_LIFE | SPOT_F_ARMED | SPOT_F_HELD)

/* Bounded on two axes; running records count until their terminal (S-LIM-1,3). */
struct spot_queue {
	uint32_t head, tail; /* records that wait, in order of acceptance; head 0 = none */
	uint32_t count;	     /* waiting and running */
	uint32_t bytes;	     /* cost of both */
};

/* The right to run callbacks (S-GATE-2). */
struct spot_gate {
	uint32_t ready_next;
	uint8_t flags;	/* SPOT_F_* */
	uint8_t streak; /* lifecycle turns in a row */
	uint8_t state;	/* enum spot_state: the one word that admission looks at */
	uint8_t size_class;
};

_Static_assert(offsetof(struct spot_gate, state) == offsetof(struct spot_gate, flags) + 2,
	       "flags, streak and state are read as one word");

/* Ready, and nothing but its application queue is to be looked at: no flag but that of the ready
 * set, no lifecycle turns in a row. */
static inline bool spot_gate_is_plain(const struct spot_gate *g)
{
	uint32_t w;

	memcpy(&w, &g->flags, sizeof(w)); /* size_class, the fourth, is masked away */
	return (w & htole32(0x00ffffffu ^ SPOT_F_READY)) == htole32((uint32_t)SPOT_S_READY << 16);
}

struct spot {
	struct spl_key key;
	struct spot_gate gate;
	uint32_t chain;	  /* next Spot of an overfull table bucket */
	uint16_t stage;	  /* index */
	uint16_t cold_at; /* offset of its struct spot_cold, in units of 32 bytes */
	struct spot_queue app;
	uint8_t mem[] __attribute__((aligned(16))); /* the stage's state */
};

_Static_assert(sizeof(struct spot) == 48, "16 bytes of state fit into the first cache line");

struct spot_cold {
	uint64_t object_generation;
	uint32_t life_head, life_tail;
	uint32_t life_count;
	uint32_t life_bytes;
	uint32_t op;	  /* open commands on it, a list */
	uint32_t running; /* record of the suspended turn that holds the gate */
	uint32_t yielded; /* records of turns that wait without it, a list */
	uint32_t timers;  /* a list, see timer.h */
	uint32_t subs;	  /* a list, see cast.h */
	union {
		struct { /* ticks with gates of their own that are ready (S-GATE-3) */
			uint32_t own_head, own_tail;
		};
		struct { /* of an Instance Spot, which has no such gates: see idle.h */
			uint32_t idle_next, idle_prev;
		};
	};
	uint32_t wait_head, wait_tail; /* sends that wait for room, see waiter.h */
	uint32_t wait_aside;	       /* bytes of the queue that nobody else gets meanwhile */
	uint8_t own_was_last;	       /* of the steps of this Spot */
	uint8_t reason;
	uint8_t id_len; /* with id[] this is a struct spl_name */
	char id[];
};

_Static_assert(offsetof(struct spot_cold, id) == offsetof(struct spot_cold, id_len) + 1,
	       "id_len and id are a struct spl_name");

static inline void *spot_state_of(struct spot *s)
{
	return s->mem;
}

/* Where the cold part of a Spot of `stage` begins, in units of 32 bytes. */
static inline uint32_t spot_cold_units(const struct spot_stage *stage)
{
	return (uint32_t)(sizeof(struct spot) + stage->state_bytes + 31) / 32;
}

static inline struct spot_cold *spot_cold_of(struct spot *s)
{
	return (struct spot_cold *)(void *)((uint8_t *)s + s->cold_at * 32u);
}

/* The id; only its `len` bytes are there. */
static inline const struct spl_name *spot_name_of(const struct spot_cold *cold)
{
	return (const struct spl_name *)&cold->id_len;
}

/* Bytes of a Spot of `stage` whose id has `id_len` bytes. */
static inline uint32_t spot_object_bytes(const struct spot_stage *stage, uint8_t id_len)
{
	return spot_cold_units(stage) * 32u + (uint32_t)offsetof(struct spot_cold, id) + id_len;
}

#endif
