/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the room of Spots needs from its host: configuration, memory, callbacks.
 *
 * The host is the lane loop, the simulator or a unit test. Every callback runs on the lane, inside
 * a call of spot.h, must not block, and must not call spot.h back unless it says so.
 */
#ifndef SPL_DATAPLANE_SPOT_ENV_H
#define SPL_DATAPLANE_SPOT_ENV_H

#include "common/pack.h"
#include "dataplane/spot/record.h"
#include "dataplane/spot/report.h"
#include "dataplane/spot/tracing.h"

#include <spotlane/errors.h>
#include <spotlane/stage.h>

struct spot_stage;

/* Instance intent of a message: borrowed, both legal names. */
struct spot_intent {
	struct pack_bytes id, type;
};

/* Kinds of records with Instance intent; admission makes plain messages of them. msg.packet points
 * to the intent, in the form of wire_intent_put(), checked. Never on the wire. */
#define SPOT_KIND_INSTANCE_SEND	   218u
#define SPOT_KIND_INSTANCE_REQUEST 219u
#define SPOT_KIND_INSTANCE_TOLD	   217u /* as SPOT_KIND_TOLD_SEND */

/* A message that leaves the room. Everything is borrowed until send() returns. */
struct spot_out {
	uint8_t to;    /* enum spot_origin: LINK, LANE or AGENT */
	uint8_t kind;  /* SPL_MSG_SPOT_SEND, SPOT_REQUEST, PUBLISH, SPOT_KIND_TOLD_* or REPLY; with
			  target->instance SPOT_KIND_INSTANCE_* */
	uint8_t error; /* of a reply: SPL_OK or one of enum spl_error */
	uint16_t content;
	uint32_t payload_bytes;
	const void *payload;
	uint64_t flow; /* a reply: as in its request's record; otherwise LANE and its number */
	void *buf;     /* a reply: as in that record, NULL when it was given back */
	uint64_t correlation;
	uint64_t deadline; /* of a request: cycles */
	uint64_t packet;
	uint64_t source;		 /* of a send or request, for spot_rec.source */
	const struct spl_target *target; /* of a send or request, as the stage gave it */
	struct spl_flow_id trace;	 /* the flow that it belongs to, for spot_flow_in() */
};

/* A buffer reference and credit that the room gives back without a record: of a reply, of a message
 * that was moved, of a creation. */
struct spot_done {
	void *buf;	 /* NULL: credit alone */
	uint64_t flow;	 /* of the record; for charge */
	uint32_t charge; /* 0: buffer alone */
	uint8_t origin;
};

/* A publish on its way from the lane of its topic to another one with subscribers: the kind of the
 * record it becomes there. Never on the wire. */
#define SPOT_KIND_CAST	       220u

/* A send or publish whose sender waits until it is admitted: the kind of its record until then.
 * Never on the wire. */
#define SPOT_KIND_TOLD_SEND    223u
#define SPOT_KIND_TOLD_PUBLISH 224u

struct spot_cast {
	const struct spl_key *topic; /* borrowed, as the struct is */
	uint64_t packet, source;
	uint32_t token;
	uint16_t content;
	uint32_t payload_bytes, metadata_bytes;
	const void *payload, *metadata; /* stay where they are until spot_cast_returned() */
	struct spl_flow_id trace;
};

/* A computation or an operation for the workers (S-WORK-1). Everything is borrowed until work()
 * returns, but what is the module's own. */
struct spot_work {
	spl_cpu_fn cpu;		 /* or NULL, and then */
	const struct spl_io *io; /* this one */
	const struct spot_stage *stage;
	const void *input;
	uint32_t input_bytes;
	uint64_t correlation; /* 0: nobody waits for its result */
	uint64_t deadline;    /* cycles */
};

/* A creation that a handler asks for. Everything is borrowed until create() returns. */
struct spot_creation {
	struct pack_bytes type, id; /* legal names; no id: one is made for it */
	struct pack_bytes request;
	uint64_t correlation;
	uint64_t deadline; /* cycles */
};

/* Which command an answer belongs to. */
enum spot_verb {
	SPOT_PREPARE,
	SPOT_PUBLISH,
	SPOT_DISCARD,
	SPOT_CLOSE,
};

enum spot_verdict {
	SPOT_ACCEPTED = 0, /* prepared, published, discarded or closed */
	SPOT_REJECTED = 1, /* on_create declined; the Spot is gone (S-CREATE-3) */
	SPOT_FAILED = 2,   /* see `error`; after SPOT_PREPARE the Spot is gone (S-CREATE-8) */
	SPOT_GONE = 3,	   /* no such incarnation in this lane */
	SPOT_BUSY = 4,	   /* a close for idleness: it has something to do again, and goes on */
};

/* The one answer to a command. `reply` is borrowed until answer() returns. */
struct spot_answer {
	uint64_t op; /* as in the command */
	uint8_t verb;
	uint8_t verdict;
	uint8_t error; /* SPL_OK, or why SPOT_FAILED. A close that failed has still freed the Spot:
			  DeadlineExceeded = by force, otherwise on_closing's error */
	uint16_t content;
	uint32_t reply_bytes;
	const void *reply; /* of spl_reply() in on_create */
	const struct spot_stage
		*stage; /* of the Spot that is gone now (for spot_plan_remove()), or NULL */
	uint8_t id_len;
	struct spl_key key;
	uint64_t object_generation;
};

struct spot_env {
	void *host;

	/* Sends `out`; copies what it needs. 0; -ENOBUFS, -EAGAIN: no room now; -ENOTCONN: the
	 * flow, lane or requester is gone; -EMSGSIZE. Never called for the own lane. */
	int (*send)(void *host, const struct spot_out *out);

	/* Hands a publish to `lane`, another one: there it becomes a record of kind SPOT_KIND_CAST
	 * with these very payload and metadata. 0: spot_cast_returned() follows when that lane has
	 * done with them; negative: it gets nothing. */
	int (*cast)(void *host, uint32_t lane, const struct spot_cast *cast);

	/* Hands work to the workers. 0: a reply with origin SPOT_FROM_WORK follows, unless its
	 * correlation is 0; -EAGAIN: there is as much of its kind as may be; -ENOBUFS. */
	int (*work)(void *host, const struct spot_work *work);

	/* `n` (1..64) records are at their end: takes back buffer (NULL: none) and charge (0: none)
	 * of each. Called at the end of spot_admit(), spot_run() and the commands, when 64 have
	 * gathered, or when a handler sends and records are short. */
	void (*ended)(void *host, struct spot_rec *const *recs, unsigned n);

	/* The same of buffers and credits without a record. */
	void (*release)(void *host, const struct spot_done *done, unsigned n);

	/* A request of a Spot of this node met no Spot under `key`: the host finds out whether the
	 * object exists and answers the requester, NotFound or Unavailable, with spot_reply_in()
	 * on the requester's lane (here when origin is SPOT_FROM_SELF, lane `flow` otherwise;
	 * S-ADDR-6). `key` is the very pointer of the record, or lies in the spl_target that the
	 * stage gave, so that the host finds the id beside it. 0 when it took that over; negative:
	 * the room answers Unavailable. */
	int (*missing)(void *host, const struct spl_key *key, uint8_t origin, uint64_t flow,
		       uint64_t correlation);

	/* Messages wait for the Instance Spot of `intent`, which is not Ready here: the host asks
	 * control to start it, and spot_activated() follows with this serial, be it after the
	 * Spot's publication. 0 when it took that over; negative: the messages are refused. */
	int (*activate)(void *host, const struct spl_key *key, const struct spot_intent *intent,
			uint64_t serial);

	/* Asks control to create, or get, a Spot (S-CREATE-11): spot_created() follows. 0 when it
	 * took that over; negative: there is no room for the question. */
	int (*create)(void *host, const struct spot_creation *creation);

	/* The one answer to a command. Must take it: the agent keeps no more commands open than
	 * the host has room for answers. */
	void (*answer)(void *host, const struct spot_answer *answer);

	/* For a log: the host may drop as many as it likes, they are counted by name here. */
	void (*failed)(void *host, const struct spot_failure *failure);
	void (*overran)(void *host, const struct spot_overrun *overrun);

	/* A Spot wants to be closed (spl_close_self(), S-CLOSE-6), or has been idle for long
	 * (S-IDLE-2): the agent asks the authority, and spot_close() follows. 0; -EAGAIN: tried
	 * again in a later pass. */
	int (*close_wanted)(void *host, const struct spl_key *key, const struct spl_name *id,
			    uint64_t object_generation, enum spl_closing reason);
};

#define SPOT_TOPIC_ROWS 4096u

/* Fixed for the life of the lane. */
struct spot_conf {
	uint32_t lane, lanes; /* this lane's number and how many there are */
	uint32_t spots_max;   /* 1..2^24 */
	uint32_t records;     /* 64..2^24; an eighth serves lifecycle work only */
	uint32_t calls;	      /* 16..2^20 - 1: requests of handlers that may be open */
	uint32_t commands;    /* 16..65536: prepare and close commands that may be */
	uint32_t timers;      /* 0..2^24 */
	uint32_t timers_per_spot;
	uint32_t subscriptions; /* 0..2^24 */
	uint32_t channels;
	uint64_t channel[SPL_CHANNELS_MAX]; /* keys of those that this node takes part in */
	/* [SPOT_TOPIC_ROWS][lanes], of all lanes, zero at first: how many subscriptions to topics
	 * of a row each has. A lane adds what is its own, the topics' lanes read. NULL with one
	 * lane. */
	_Atomic uint32_t *topic_lanes;
	uint64_t heap_bytes;		  /* lane memory: payloads, reassembly, replies */
	uint64_t object_bytes;		  /* virtual range of the Spot objects, < 256 GiB */
	uint32_t queue_count, life_count; /* defaults of a Spot's two queues: records */
	uint64_t queue_bytes, life_bytes; /* and cost */
	uint32_t life_cap;		  /* lifecycle turns in a row, 1..200 (S-LANE-6) */
	uint32_t turn_budget_us;	  /* of one owner's visit (S-FAIR-3) */
	uint32_t turn_overrun_us;	  /* a turn that takes longer is told; 0: none is */
	uint32_t waiters;		  /* 0..records: sends and publishes that wait for room */
	uint32_t send_ms;		  /* so long, when the sender did not say */
	uint32_t message_max;		  /* payload bytes */
	uint32_t request_ms;		  /* default timeout of spl_request() */
	uint32_t create_ms;		  /* and of spl_create() */
	uint32_t idle_ms; /* 0..SPOT_IDLE_MS_MAX: of Instance Spots (S-IDLE-1); 0 = never */
	uint64_t clock_hz;
	const uint64_t *fake_clock; /* NULL: the cycle counter */
	uint64_t secret[4];	    /* random, per process: table and correlations */
	uint64_t *counters;	    /* [SPL_C_COUNT], written relaxed by this lane only */
	uint64_t *fails;	    /* [SPL_FAIL_COUNT], likewise */
	struct spot_observed observed;
};

/* Memory of a lane, which the host reserves before spot_lane_init(), zeroed, 64-aligned. All but
 * TABLE, OBJECTS and FLOWS must be backed from the start; of the first two only as much as
 * spot_plan says, and FLOWS before a level of NORMAL or DETAILED. */
enum spot_region {
	SPOT_MEM_LANE,	  /* struct spot_lane and its fixed tables */
	SPOT_MEM_RECORDS, /* records */
	SPOT_MEM_CALLS,	  /* call table */
	SPOT_MEM_HEAP,	  /* lane memory */
	SPOT_MEM_TOPICS,  /* subscriptions and topics */
	SPOT_MEM_FLOWS,	  /* what flow each record belongs to */
	SPOT_MEM_TABLE,	  /* buckets, grows by splitting */
	SPOT_MEM_OBJECTS, /* Spots, by slabs of size classes */
	SPOT_MEM_COUNT
};

#endif
