/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the agent and a lane say to each other.
 *
 * A command is the agent's memory: it goes to a lane by ring, is answered in place, and comes back
 * exactly once. An event is the lane's memory, out of a fixed pool: it goes to the agent and comes
 * back exactly once, `done`. Whoever holds one may write it. Byte strings in them are borrowed from
 * the side whose memory they lie in until the item is back there.
 */
#ifndef SPL_LANE_COMMAND_H
#define SPL_LANE_COMMAND_H

#include "dataplane/spot/env.h"

struct lane_flow;

enum lane_verb {
	LANE_PEER_UP = 1, /* a peer may be named from now on */
	LANE_PEER_DOWN,	  /* its flows are ended; nothing names it any more */
	LANE_PREPARE,
	LANE_PUBLISH,
	LANE_DISCARD,
	LANE_CLOSE,
	LANE_SEAL,	/* no new work */
	LANE_SETTLE,	/* answered when what other lanes have sent is taken in, the publishes among
			   it are in the queues of their subscribers here, and nothing waits before
			   a ring to another lane; see LANE_SETTLES */
	LANE_CALLS_END, /* open calls of handlers end with `error` */
	LANE_CALL,	/* a send or request of control, to a Spot */
	LANE_REPLY,	/* a reply to a peer's control message */
	LANE_RESOLVED,	/* what became of a LANE_EV_MISSING */
	LANE_CREATED,	/* what became of a LANE_EV_CREATE: `error`, `data`, its `correlation` */
	LANE_ACTIVATED, /* what became of a LANE_EV_ACTIVATE: `key`, `error`, its `correlation` */
	LANE_INVENTORY, /* a page of it */
	LANE_FREE,	/* give back `mem` of this lane */
	LANE_FENCE,	/* free a Spot without on_closing: its row is not ours any more */
};

struct lane_peer_up {
	uint32_t slot, ip, generation, lanes;
	uint64_t rx_id;
	struct lane_flow *flows; /* [lanes], the agent's memory, initialised but for .lane */
};

struct lane_object {
	uint8_t state; /* enum dp_object_state */
	uint64_t object_generation;
	const struct spl_name *id; /* the lane's; copied by it into `ids` */
};

/* So often all lanes settle before every publish that has started is in its subscribers' queues:
 * after the first time none waits before a ring to the lane of its topic, after the second none is
 * on the way from there to another lane, after the third they are in the queues. */
#define LANE_SETTLES 3u

#define LANE_PAGE    128u /* objects of one inventory page */

struct lane_page {
	uint64_t cursor; /* in and out */
	unsigned n;
	bool more;
	struct {
		struct spl_name id;
		uint64_t object_generation;
		uint8_t state;
	} item[LANE_PAGE];
};

struct lane_command {
	struct lane_command *next; /* of whoever holds it */
	uint8_t verb;		   /* enum lane_verb */
	uint8_t verdict;	   /* answer: enum spot_verdict */
	uint8_t error;	 /* answer, or CALLS_END, REPLY, RESOLVED: an error kind or SPL_OK */
	uint8_t reason;	 /* CLOSE: enum spl_closing */
	bool is_request; /* CALL */
	uint16_t lane;
	uint16_t content;
	uint32_t bytes;	  /* of `data` */
	const void *data; /* in: request, payload or reply body; the agent's */
	void *mem;	  /* answer: reply bytes in the lane's memory, sent back with LANE_FREE */
	uint32_t mem_bytes;
	uint64_t flow, correlation, deadline; /* deadline: CLOCK_BOOTTIME ns, 0 none */
	uint64_t packet;		      /* CALL */
	uint64_t object_generation;
	struct spl_key key;
	const struct spot_stage *stage; /* PREPARE; answer: of the Spot that is gone, or NULL */
	uint8_t id_len;			/* answer: with it */
	struct spl_name id;		/* PREPARE, CALL */
	struct spl_name type;		/* CALL: of its Instance intent; len 0 = none */
	union {
		struct lane_peer_up up;
		uint32_t slot;		/* PEER_DOWN */
		struct lane_page *page; /* INVENTORY: the agent's */
	};
	void *owner; /* the agent's own */
};

enum lane_event_kind {
	LANE_EV_MESH = 1,     /* a control message of a peer */
	LANE_EV_MISSING,      /* a request of a Spot here met no Spot */
	LANE_EV_ACTIVATE,     /* messages wait for an Instance Spot */
	LANE_EV_CREATE,	      /* a handler asks for a Spot */
	LANE_EV_CLOSE_WANTED, /* a stage closes its own Spot, or it has been idle */
	LANE_EV_CALLED,	      /* the end of a LANE_CALL request */
	LANE_EV_FAILED,	      /* a callback failed, for the log */
	LANE_EV_OVERRAN,      /* a turn took long, for the log */
};

struct lane_event {
	struct lane_event *next;
	uint8_t kind; /* enum lane_event_kind */
	uint8_t op;   /* MESH: enum spl_message_kind; FAILED, OVERRAN: 1 for a timer; CLOSE_WANTED:
			 enum   spl_closing */
	uint8_t origin; /* MISSING: enum spot_origin */
	uint8_t error;	/* CALLED, FAILED */
	uint16_t lane;
	uint16_t content;
	uint32_t bytes, charge;
	const void *data;	    /* MESH: body; CREATE: request; CALLED: reply; FAILED,
				       OVERRAN: name of the packet, timer or callback */
	void *buf;		    /* what `data` lies in, a buffer handle of the lane */
	uint64_t flow, correlation; /* FAILED, OVERRAN: so many before it that were not told;
				       ACTIVATE: the room's serial number */
	uint64_t deadline;	    /* CLOCK_BOOTTIME ns, 0 none; OVERRAN: how long, ns */
	uint64_t object_generation;
	struct spl_key key;
	const struct spot_stage *stage; /* FAILED, OVERRAN */
	struct spl_name id;   /* MISSING, ACTIVATE, CREATE (len 0: none), CLOSE_WANTED, FAILED (of a
				 timer) */
	struct spl_name type; /* ACTIVATE, CREATE */
};

#endif
