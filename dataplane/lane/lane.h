/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: a lane: one thread that polls, dispatches, runs turns and transmits.
 *
 * The lane knows the rooms (port, frame, link, spot) and the rooms do not know it. Each file beside
 * this one is one stretch of a pass: rx.c (frames in, steering), input.c (packets to messages to
 * records), out.c (what the Spots send and give back), peer.c (peers and flows, transmission),
 * command.c (the agent's commands and our events for it), pass.c (the order of it all, clock and
 * idling), setup.c (memory and start, on the agent's thread).
 *
 * Threads: everything in struct lane is the lane's own while it runs, but what is tagged. The agent
 * makes it before and frees it after. Others reach in only by a ring (hop.h).
 */
#ifndef SPL_LANE_LANE_H
#define SPL_LANE_LANE_H

#include "common/wire_msg.h"
#include "dataplane/frame/build.h"
#include "dataplane/frame/neigh_get.h"
#include "dataplane/lane/command.h"
#include "dataplane/lane/hop.h"
#include "dataplane/lane/idle.h"
#include "dataplane/link/flow.h"
#include "dataplane/port/rx.h"
#include "dataplane/port/tx.h"
#include "dataplane/spot/clock.h"
#include "dataplane/spot/spot.h"

#include <spotlane/stats.h>

#define LANE_BURST	  32u	 /* frames of one receive call */
#define LANE_BURSTS	  4u	 /* bursts of a port in one pass, under a flood */
#define LANE_POP	  64u	 /* items taken from one ring in a pass */
#define LANE_MESSAGES	  512u	 /* messages of one input round */
#define LANE_PLAIN	  64u	 /* of them, those that went straight into a record */
#define LANE_PEER_BYTES	  65536u /* credit that messages of one peer may cost in one input round */
#define LANE_TURNS	  512u	 /* turns of one pass */
#define LANE_PASS_US	  200u	 /* and no turn begins later than this into a pass */
#define LANE_FLOW_PACKETS 64u	 /* packets of one flow in one pass */
#define LANE_TIMER_STEP	  16u	 /* flows whose timers are looked at in a pass */
#define LANE_EVENTS	  1024u	 /* events with the agent at once */
#define LANE_ACK_NS	  20000u /* acknowledgements of a flood go together: so long and a pass */
#define LANE_HELD_BACK	  8u	 /* part of it that requests leave for replies (S-LIM-12) */
#define LANE_LATE_PART	  16u /* part of the lane's memory that replies to one peer may wait in */
#define LANE_COPY_OUT	  64u /* messages moved out of buffers in a pass */
#define LANE_FAILURE_NS	  1000000000u /* at most one failure or overrun is told in so long */
#define LANE_BUFFER_BYTES 2304u	      /* data room of a packet buffer, headroom included */

/* How much work waits for the workers, by kind, and may. A lane adds before it hands some over; the
 * workers take away. */
struct lane_work_room {
	_Atomic uint32_t used;
	uint32_t max; /* const after start; 0: no workers */
};

/* Shared by all threads of the dataplane. */
struct lane_shared {
	struct hop hop;
	struct port *ports;
	unsigned n_ports, lanes;
	struct tx_net *tx_net;
	const struct neigh_pub *neigh[PORTS_MAX]; /* of each port */
	struct spl_stats *stats;
	struct rte_mempool *pool;
	uint32_t pool_low; /* free buffers below which waiting messages are copied out */
	uint32_t associations;
	uint32_t nap_us_max; /* 0: an idle lane only yields */
	uint64_t tsc_hz;
	_Atomic uint64_t trace;	 /* w: agent, r: lanes, relaxed; spl_trace_word() */
	const uint64_t *fake_ns; /* tests: the clock, then also of the Spots; NULL: the real one */
	/* w: agent, r: lanes; CLOCK_BOOTTIME ns, 0 = fenced */
	_Atomic uint64_t lease_deadline __attribute__((aligned(64)));
	/* w: agent; lanes leave their loop */
	_Atomic bool stop;
	/* credit left of the node pool, by class; w: lanes, when a flow opens, grows or ends */
	_Atomic uint64_t credit[WIRE_CLASSES] __attribute__((aligned(64)));
	struct lane_work_room cpu_room __attribute__((aligned(64)));
	struct lane_work_room io_room;
	_Atomic uint32_t *topic_lanes
		__attribute__((aligned(64))); /* see struct spot_conf; made with the first lane */
	uint64_t credit_tight; /* below it flows give back what is above their minimum */
};

/* In each packet buffer's private area. Written by whoever owns the buffer. */
struct lane_buffer {
	uint32_t refs; /* messages that lie in it */
	uint32_t spare[15];
};

/* One flow with its way out. Memory is the agent's, made for the peer. First what every message
 * touches. */
struct lane_flow {
	struct flow *flow;  /* NULL until it is used first */
	uint64_t ref;	    /* how records name it: generation and slot */
	uint64_t lifecycle; /* of the peer */
	struct lane_flow *dirty_next;
	uint64_t timer;	   /* next, ns */
	uint32_t consumed; /* credit of finished messages, given back when it is sent for */
	uint16_t port;	   /* index: where its peer is */
	bool is_dirty, is_undrained;
	bool is_urgent;	    /* something waits to be sent, not only acknowledgements */
	uint32_t msg_bytes; /* of the largest message to us; 0 while there is no flow */

	struct lane *lane;
	void *mem;
	struct lane_message *late_head, *late_tail; /* replies that wait for room in the flow */
	uint64_t late_bytes;
	uint32_t active;   /* place in lane.active */
	uint32_t next_hop; /* whose MAC the path has */
	struct flow_params params;
	struct build_path path[WIRE_CLASSES];
};

struct lane_peer {
	uint64_t rx_id; /* 0: nobody */
	uint32_t ip;
	uint32_t generation;
	uint32_t lanes;
	struct lane_flow *flows; /* [lanes] */
	uint64_t round, taken;	 /* the last input round it had part in; what its messages cost */
};

/* A message that leaves a lane, in its lane memory: to a peer (until acknowledged) or another lane
 * (until that one is done with it). */
struct lane_message {
	struct lane_message *next;
	uint32_t bytes; /* of data */
	uint16_t lane;	/* whose memory */
	uint8_t kind, error;
	uint16_t content;
	uint8_t cls;
	uint64_t until_ns; /* while it waits for a ring */
	/* of a send or publish whose sender waits: the message that its answer will be, so that
	 * this needs no memory when it is due; NULL, or of the same lane's memory */
	struct lane_message *answer;
	uint64_t correlation, deadline, packet, source;
	struct spl_flow_id trace;
	struct spl_target target; /* its key is what a record points to */
	uint8_t data[] __attribute__((aligned(16)));
};

/* What a reply without payload takes of the lane's memory. */
#define LANE_REPLY_BYTES ((sizeof(struct lane_message) + WIRE_MSG_BYTES + 8 + 15) & ~(size_t)15)

/* The data of a lane_message of kind SPOT_KIND_CAST: what the sending lane keeps until it has the
 * message back. */
struct lane_cast {
	const void *payload, *metadata;
	uint32_t payload_bytes, metadata_bytes;
	uint32_t token;
};

/* Kind of a message for the workers, and what its data begins with; the input follows. */
#define LANE_KIND_WORK 222u
struct lane_work {
	spl_cpu_fn cpu;
	const struct spl_io *io;
	const struct spot_stage *stage;
	uint64_t spare; /* the input is aligned to 16 bytes */
};

/* What the full ring to one other thread has not taken, in its order. Messages: replies are not
 * given up and are bounded by the lane's memory (S-LIM-12); all others are as many as
 * spot_conf.waiters and so long as they say (S-LIM-5, S-DIR-8). And messages that go back to the
 * thread whose memory they are. */
struct lane_later {
	struct lane_message *head, *tail;
	struct lane_message *looked; /* the time of what is behind it is looked at next; or NULL */
	struct lane_message *back_head, *back_tail;
};

/* Of events that are told now and then: when the next may be, ns, and how many were not. */
struct lane_told {
	uint64_t at, missed;
};

struct lane {
	/* const after start */
	struct lane_shared *sh;
	struct spot_lane *spots;
	struct lanemem *mem;
	unsigned index;
	struct spl_lane_stats *stats; /* w: this lane; r: other processes */
	uint8_t port[PORTS_MAX];      /* ports this lane polls */
	unsigned n_port;
	struct spot_clock clock;
	uint32_t send_ms, later_max;
	uint64_t trace; /* the word that the Spots know */
	void *region[SPOT_MEM_COUNT];
	size_t region_bytes[SPOT_MEM_COUNT];
	struct lane_peer *peer; /* [associations] */
	struct lane_flow **active;
	uint32_t active_max;

	/* the pass */
	uint64_t now;	/* cycles */
	uint64_t began; /* when this pass did; until its clock is read, when the one before did */
	uint64_t now_ns;
	uint64_t loops;
	struct idle idle;
	bool pool_is_low;
	struct tx tx;
	uint16_t ip_id;
	uint32_t n_active, timer_at;
	struct lane_flow *dirty; /* flows that may have something to send */
	bool is_urgent;		 /* one of them has more than acknowledgements */
	uint64_t told_ns;	 /* when all of them were looked at */
	struct lane_event *free_events;
	struct lane_command *answered_head, *answered_tail; /* for the agent, ring was full */
	struct lane_command *settling; /* SETTLE: answered after so many passes, or earlier */
	uint32_t settle_passes;
	struct lane_event *raised_head, *raised_tail;
	struct lane_told failed, overran;
	struct lane_later *later; /* [HOP_USERS(lanes)]: what waits for the ring to each */
	uint32_t n_later;	  /* sends and requests of all of them */

	/* one input round: plain messages, admitted first, then the others */
	unsigned n_plain, plain_got;
	struct spot_rec *plain[LANE_PLAIN]; /* [plain_got] records, the first n_plain in use */
	unsigned n_input;
	uint64_t round;		  /* counts them */
	uint32_t n_undrained;	  /* flows in which messages wait for a round */
	uint32_t drain_at;	  /* the next of the active ones to be looked at for them */
	uint8_t port_at, ring_at; /* where the next one begins: lane_turn_of() */
	bool is_flooded;	  /* the last burst was full: more is waiting in the device */
	struct flow_msg input[LANE_MESSAGES];
	struct lane_flow *input_flow[LANE_MESSAGES];
	bool input_alone[LANE_MESSAGES]; /* the message has its buffer for itself */
	struct lane_event event[LANE_EVENTS];
};

static inline void lane_count(struct lane *l, enum spl_lane_counter c, uint64_t n)
{
	__atomic_store_n(&l->stats->counter[c], l->stats->counter[c] + n, __ATOMIC_RELAXED);
}

/* Of the frames that lane_rx_ports() and lane_rx_hopped() count as received, each ends in one of
 * these two. */
static inline void lane_use(struct lane *l, unsigned use, unsigned n)
{
	__atomic_store_n(&l->stats->use[use], l->stats->use[use] + n, __ATOMIC_RELAXED);
}

static inline void lane_drop(struct lane *l, unsigned drop)
{
	__atomic_store_n(&l->stats->drop[drop], l->stats->drop[drop] + 1, __ATOMIC_RELAXED);
}

/* An accepted message that ended here as `fail`. */
static inline void lane_fail(struct lane *l, enum spl_message_fail fail)
{
	lane_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	__atomic_store_n(&l->stats->fail[fail], l->stats->fail[fail] + 1, __ATOMIC_RELAXED);
}

/* A one-way message that never came to the Spots: no room, or not to be understood. */
static inline void lane_dropped(struct lane *l, bool no_room)
{
	uint64_t *c = l->stats->measures.dropped[SPL_DS_NODE];

	c += no_room ? SPL_DR_BACKPRESSURE : SPL_DR_DECODE_ERROR;
	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
}

/* A reply begins to wait for room (`n` 1), or does no longer (-1). */
static inline void lane_reply_waits(struct lane *l, int n)
{
	lane_count(l, SPL_C_REPLIES_WAITING, (uint64_t)n);
}

/* Buffer handles of records and replies: a pointer and what it is. */
enum lane_buf {
	LANE_BUF_MBUF = 0, /* shared by the messages in it: struct lane_buffer counts */
	LANE_BUF_MEM = 1,
	LANE_BUF_MESSAGE = 2,
	LANE_BUF_ALONE = 4, /* an mbuf with one message */
};
#define LANE_BUF_MASK 7u

static inline void *lane_buf(void *p, enum lane_buf kind)
{
	return (void *)((uintptr_t)p | (uintptr_t)kind);
}

/* References of records: generation in the upper half, then lane of the peer and slot. */
static inline uint64_t lane_flow_ref(uint32_t generation, uint32_t peer_lane, uint32_t slot)
{
	return (uint64_t)generation << 32 | peer_lane << 16 | slot;
}

/* Of `n` sources the one that is first this time; another one is next time (S-FAIR-4). */
static inline unsigned lane_turn_of(uint8_t *at, unsigned n)
{
	unsigned first = *at < n ? *at : 0;

	*at = (uint8_t)(first + 1);
	return first;
}

static inline uint32_t lane_flow_slot(uint64_t ref)
{
	return (uint32_t)ref & 0xffff;
}

/* The flow a record names, or NULL when it has ended. */
static inline struct lane_flow *lane_flow_of(struct lane *l, uint64_t ref)
{
	uint32_t slot = lane_flow_slot(ref), peer_lane = (uint32_t)ref >> 16 & 0xff;
	struct lane_peer *p;

	if (slot >= l->sh->associations)
		return NULL;
	p = &l->peer[slot];
	if (p->generation != ref >> 32 || peer_lane >= p->lanes) /* no lanes: nobody */
		return NULL;
	return &p->flows[peer_lane];
}

static inline void lane_flow_touch(struct lane *l, struct lane_flow *f)
{
	if (f->is_dirty)
		return;
	f->is_dirty = true;
	f->dirty_next = l->dirty;
	l->dirty = f;
}

/* The same, and it waits for no other acknowledgements. */
static inline void lane_flow_hurry(struct lane *l, struct lane_flow *f)
{
	f->is_urgent = true;
	l->is_urgent = true;
	lane_flow_touch(l, f);
}

/* setup.c (agent). Numbers of one lane. */
struct lane_conf {
	struct spot_conf spot; /* lane, counters and fails are filled in */
	uint32_t flows_max;    /* of one lane */
};

/* Makes lane `index` with all its memory; NULL and errno. */
struct lane *lane_create(struct lane_shared *sh, unsigned index, const struct lane_conf *conf);
/* Only after the lane left its loop, its rings are empty and every peer is down. */
void lane_destroy(struct lane *l);

/* pass.c. One pass; returns what it did (0: nothing, the lane may idle). */
unsigned lane_pass(struct lane *l);
/* The thread: passes until sh->stop. Argument of rte_eal_remote_launch(). */
int lane_main(void *lane);

/* rx.c. Frames of ports and of other threads; returns how many. */
unsigned lane_rx_ports(struct lane *l);
void lane_rx_hopped(struct lane *l, struct rte_mbuf **m, unsigned n);
void lane_mbuf_put(struct rte_mbuf *m); /* drops one reference */

/* input.c. Packets of a flow become messages, messages become records. */
void lane_input_packet(struct lane *l, struct lane_flow *f, struct rte_mbuf *m,
		       const struct frame_view *v);
/* Takes records for up to `n` plain messages into l->plain. */
void lane_plain_room(struct lane *l, unsigned n);
void lane_input_flush(struct lane *l); /* the end of a round: the next one begins */
void lane_input_drop(struct lane *l, const struct lane_peer *p);
void lane_input_message(struct lane *l, struct lane_message *m); /* from another lane */

/* out.c. The callbacks of the room of Spots, and giving back what it used. */
extern const struct spot_env lane_env;
void lane_release(struct lane *l, void *buf, uint64_t flow, uint32_t charge, uint8_t origin);
void lane_returned(struct lane *l, struct lane_message *m);
/* Queues `m` on its flow for the peer; takes it over. */
void lane_flow_send(struct lane *l, struct lane_flow *f, struct lane_message *m);
/* The target a key pointer lies in: see spot_env.missing. */
static inline const struct spl_target *lane_target_of(const struct spl_key *key)
{
	return (const struct spl_target *)(const void *)key;
}

/* work.c, create.c, tell.c. */
int lane_env_work(void *host, const struct spot_work *w);
int lane_env_create(void *host, const struct spot_creation *c);
void lane_env_failed(void *host, const struct spot_failure *f);
void lane_env_overran(void *host, const struct spot_overrun *o);

/* A message with room for `bytes` in this lane's memory, NULL without; and its end there. */
struct lane_message *lane_message_new(struct lane *l, uint32_t bytes);
void lane_message_free(struct lane *l, struct lane_message *m);
int lane_reply_link(struct lane *l, uint64_t flow, uint64_t correlation, uint8_t error,
		    uint16_t content, const void *payload, uint32_t bytes);

/* peer.c. */
struct flow *lane_flow_open(struct lane *l, struct lane_flow *f);
void lane_peer_up(struct lane *l, const struct lane_peer_up *up);
void lane_peer_down(struct lane *l, uint32_t slot);
unsigned lane_flows_tx(struct lane *l);
void lane_flows_timers(struct lane *l);
uint64_t lane_flows_due(const struct lane *l); /* ns, UINT64_MAX never */

/* command.c. */
void lane_command(struct lane *l, struct lane_command *c);
void lane_command_answer(struct lane *l, struct lane_command *c);
void lane_settle(struct lane *l);		   /* each pass while something settles */
struct lane_event *lane_event_new(struct lane *l); /* NULL: all are with the agent */
void lane_event_raise(struct lane *l, struct lane_event *e);
void lane_event_done(struct lane *l, struct lane_event *e);
void lane_retry(struct lane *l); /* what a full ring refused */

/* later.c: to lane `to`, through its ring or in the line before it. 0, or -ETIMEDOUT when no more
 * may wait; the message is the caller's then. `until_ns`: of one that is not a reply. */
int lane_push(struct lane *l, struct lane_message *m, unsigned to, uint64_t until_ns);
/* Back to the thread whose memory it is, another one. */
void lane_push_back(struct lane *l, struct lane_message *m);
void lane_later_retry(struct lane *l);
bool lane_later_any(const struct lane *l);

#endif
