/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the record of one message that waits or runs (S-ADM-4, S-LIM-2, S-MSG-4).
 *
 * Records are a fixed pool of their lane, 128 bytes each. The host takes free ones
 * (spot_recs_take()), fills the fields marked H and hands them to spot_admit(), which owns them
 * from then on. Payload and metadata are views of the received buffer `buf` or of lane memory;
 * nothing is copied, and nothing of it is written. One lane; no locks.
 */
#ifndef SPL_DATAPLANE_SPOT_RECORD_H
#define SPL_DATAPLANE_SPOT_RECORD_H

#include <spotlane/ids.h>
#include <spotlane/stage.h>

#include <stddef.h>

/* Where a message came from, which is also where its reply goes (S-COMPL-7). */
enum spot_origin {
	SPOT_FROM_LINK = 0,  /* a peer: `flow` is the host's flow reference with generation */
	SPOT_FROM_LANE = 1,  /* another lane of this node: `flow` is its number */
	SPOT_FROM_SELF = 2,  /* a Spot of this lane; set by the room only */
	SPOT_FROM_AGENT = 3, /* control: `flow` is the agent's token */
};

/* Cost of a record besides payload and metadata, in a queue's bytes (S-LIM-2). */
#define SPOT_RECORD_COST 128u

struct spot_rec {
	union {
		uint32_t next;	 /* room: in a queue, the one behind it */
		uint32_t waited; /* room: in its turn, the call it waits for */
	};
	uint32_t cost; /* room: reserved in the queue's bytes */
	void *buf;     /* H: host's buffer handle, one reference; NULL = none */
	union {
		uint64_t packet;				   /* H: packet key */
		int (*notice)(struct spl_turn *turn, void *state); /* room */
		struct {
			uint32_t calls; /* room: in its turn, the calls it has started */
			uint16_t calls_count;
		};
	};
	union {
		uint64_t deadline; /* H: cycles, 0 = none; from the remaining time that crossed */
		struct {	   /* room: its turn has yielded: its neighbours in the list */
			uint32_t yield_next, yield_prev;
		};
	};
	uint64_t flow;	 /* H: see enum spot_origin */
	uint32_t charge; /* H: credit to give back with the buffer or at the terminal */
	uint8_t kind;	 /* H: SPL_MSG_SPOT_SEND or SPL_MSG_SPOT_REQUEST */
	uint8_t origin;	 /* H: enum spot_origin */
	uint8_t flags;	 /* room */
	uint8_t spare8;
	union {
		const struct spl_key *key; /* H: target, read by spot_admit() only */
		uint64_t epoch;		   /* room: number of its turn, never reused (S-TURN-8) */
	};
	void *mem; /* room: lane memory that payload and metadata were moved to */

	/* What the handler gets. H but for packet, is_request and deadline_ns, which are set when
	 * its turn comes; content as received, metadata checked (S-META-2). */
	struct spl_message msg;
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct spot_rec, msg) == 64 && sizeof(struct spot_rec) == 128,
	       "a record is two cache lines, the second of them the message");

#endif
