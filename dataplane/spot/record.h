/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the record of one message that waits or runs (S-ADM-4, S-LIM-2, S-MSG-4).
 *
 * Records are a fixed pool of their lane, 128 bytes each. The host takes free ones
 * (spot_recs_take()), fills the fields marked H and hands them to spot_admit(), which owns them
 * from then on. Payload and metadata are views of the received buffer `buf` or of lane memory;
 * nothing is copied, and nothing of it is written. One lane; no locks.
 *
 * A timer is a record too, of a pool of its own behind that one, so that its tick always has one
 * (S-TIMER-10): fields marked T. A publish is a record that its subscribers' records refer to:
 * fields marked P. A send or publish that waits for room (waiter.h) has fields marked W. A timer is
 * out (see timer.h) or in the wheel or in a queue or in its turn, never
 * in two.
 */
#ifndef SPL_DATAPLANE_SPOT_RECORD_H
#define SPL_DATAPLANE_SPOT_RECORD_H

#include "dataplane/spot/wheel.h"

#include <spotlane/ids.h>
#include <spotlane/stage.h>

#include <stddef.h>

/* Where a message came from, which is also where its reply goes (S-COMPL-7). */
enum spot_origin {
	SPOT_FROM_LINK = 0,  /* a peer: `flow` is the host's flow reference with generation */
	SPOT_FROM_LANE = 1,  /* another lane of this node: `flow` is its number */
	SPOT_FROM_SELF = 2,  /* a Spot of this lane; set by the room only */
	SPOT_FROM_AGENT = 3, /* control: `flow` is the agent's token */
	SPOT_FROM_CAST = 4,  /* a publish; set by the room only, for one subscriber's record */
	SPOT_FROM_WORK = 5,  /* of a reply: the workers */
};

/* Cost of a record besides payload and metadata, in a queue's bytes (S-LIM-2). */
#define SPOT_RECORD_COST 128u

struct spot_rec {
	union {
		uint32_t next;	 /* room: in a queue, the one behind it */
		uint32_t waited; /* room: in its turn, the call it waits for */
	};
	union {
		uint32_t cost; /* room: reserved in the queue's bytes */
		uint32_t refs; /* P: subscribers' records and lanes that read from it, and itself */
		uint32_t wait_prev; /* W */
	};
	union {
		void *buf;	      /* H: host's buffer handle, one reference; NULL = none */
		spl_timer_fn tick_fn; /* T */
	};
	union {
		uint64_t packet;				   /* H: packet key */
		int (*notice)(struct spl_turn *turn, void *state); /* room */
		struct {
			uint32_t calls; /* room: in its turn, the calls it has started */
			uint16_t calls_count;
		};
	};
	union {
		struct {
			union {
				uint64_t deadline; /* H: cycles, 0 = none; from the remaining time
						      that crossed */
				struct {	   /* room: neighbours, in a list of those that wait
						      without the Spot's gate */
					uint32_t yield_next, yield_prev;
				};
			};
			union {
				const struct spl_key
					*key;	/* H: target, read by spot_admit() only */
				uint64_t epoch; /* room: number of its turn, never reused
						   (S-TURN-8) */
			};
		};
		struct wheel_node node; /* T, W: while it waits for its time */
		struct {		/* P */
			uint64_t stamp; /* no subscription is newer */
			uint32_t topic; /* index */
		};
	};
	union {
		uint64_t flow; /* H: see enum spot_origin */
		struct {
			uint32_t spot;	/* T: whose timer it is */
			uint32_t other; /* T: the next of that Spot; free list */
		};
	};
	union {
		uint32_t charge;     /* H: credit to give back with the buffer or at the terminal */
		uint32_t generation; /* T: of what is registered in this place (S-TIMER-3) */
		uint32_t waits_for;  /* W: of a send, the Spot whose queue is full */
	};
	uint8_t kind; /* H: SPL_MSG_SPOT_SEND, SPOT_REQUEST or PUBLISH, or SPOT_KIND_CAST */
	union {
		uint8_t origin;	 /* H: enum spot_origin */
		uint8_t overrun; /* T: enum spl_overrun */
	};
	uint8_t flags; /* room */
	uint8_t timer; /* T: TIMER_F_* */
	union {
		struct spot_rec *cast; /* room: of a subscriber's record, the publish it reads */
		void *mem; /* room: lane memory that payload and metadata were moved to */
		uint32_t catch_up_max; /* T */
	};

	/* What the handler gets. */
	union {
		struct spl_message msg; /* H but for packet, is_request and deadline_ns, which are
					   set when its turn comes; content as received, metadata
					   checked (S-META-2) */
		struct spl_tick tick;	/* T: between callbacks, what the last one has brought */
	};
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct spl_tick) == sizeof(struct spl_message), "one line for either");
_Static_assert(offsetof(struct spot_rec, msg) == 64 && sizeof(struct spot_rec) == 128,
	       "a record is two cache lines, the second of them the message");

/* What follows is the room's own. */

/* Lifecycle records, beyond the kinds of messages. */
#define REC_CREATE     200u
#define REC_INITIALIZE 201u
#define REC_CLOSING    202u
#define REC_NOTICE     203u

#define REC_TICK       210u /* a timer's, see timer.h */
#define REC_CAST       211u /* a publish that has been accepted, see cast.h */

#define REC_F_WAITS    0x01u /* in an application queue: its bytes may be moved */
#define REC_F_REPLIED  0x02u
#define REC_F_YIELDED  0x04u /* its turn gave the gate back and waits for a call */
#define REC_F_RESUME   0x08u /* in a queue: the call has ended (S-YIELD-4) */
#define REC_F_CLOSES   0x20u /* its handler has asked for the close of the Spot */
#define REC_F_OWN      0x10u /* its turn has a gate of its own, not the Spot's (S-GATE-3) */

#endif
