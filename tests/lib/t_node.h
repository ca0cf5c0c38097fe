/* SPDX-License-Identifier: BSD-3-Clause */
/* A node in the hands of a test: real lanes over a port of two rings, stepped pass by pass on the
 * test's thread, the test in the agent's place, and peers that are the other end of the link
 * engine. What is not there: the agent, control, the store.
 *
 * Everything aborts with a line on stderr when it cannot be set up. Main thread only.
 */
#ifndef SPL_T_NODE_H
#define SPL_T_NODE_H

#include "dataplane/lane/lane.h"
#include "tests/lib/t_eal.h"
#include "tests/lib/t_port.h"

#define T_NODE_LANES  4u
#define T_NODE_PEERS  16u
#define T_NODE_STAGES 8u

struct t_node_conf {
	unsigned lanes;	      /* 1..T_NODE_LANES */
	unsigned mbufs;	      /* 0: 8192 */
	uint32_t pool_low;    /* free buffers; 0: never low */
	uint32_t queue_count; /* of a Spot; 0: 4096 */
	uint32_t spots_max;   /* of a lane; 0: 65536 */
	uint32_t records;     /* of a lane; 0: 65536 */
	uint64_t heap_bytes;  /* of a lane; 0: 32 MiB */
	uint32_t waiters;     /* of a lane; 0: 64 */
	uint32_t turn_overrun_us;
	uint32_t timers;	 /* of a lane; 0: 4096 */
	uint64_t credit;	 /* that the node may grant, of each class; 0: 256 MiB */
	const uint64_t *fake_ns; /* NULL: the real clock; else nanoseconds, which the test moves */
	const struct spl_stage *const *stages;
	unsigned n_stages;
};

/* What a request came back with. */
struct t_reply {
	uint64_t correlation;
	uint8_t kind; /* SPL_OK or the error */
	uint16_t content;
	uint32_t bytes;
	uint8_t data[64]; /* the first bytes */
};

struct t_node;

/* A client: one lane, an association with every lane of the node. */
struct t_peer {
	struct t_node *node;
	uint32_t slot, ip;
	struct flow *flow[T_NODE_LANES];
	struct lane_flow *node_flows[T_NODE_LANES];
	uint64_t sends, next_correlation;
	unsigned in_flight;  /* messages whose bytes are still ours */
	unsigned drop_every; /* loses each n-th packet from us; 0: none */
	unsigned drop_count;
	unsigned spoil_every; /* each n-th packet has a wrong UDP checksum; 0: none */
	unsigned spoil_count, spoiled;
	unsigned n_replies, replies_seen;
	struct t_reply reply[4096]; /* the newest, by arrival modulo its size */
	uint64_t credit;	    /* taken from nowhere, must end at 0 */
};

struct t_node {
	struct lane_shared sh;
	struct lane *lane[T_NODE_LANES];
	struct spot_plan plan[T_NODE_LANES];
	struct port port;
	struct t_port wire;
	struct spot_stage stage[T_NODE_STAGES];
	struct spot_handler *slots[T_NODE_STAGES];
	unsigned n_stages;
	struct t_peer *peer[T_NODE_PEERS];
	unsigned n_peers;
	int stats_fd;
	unsigned mbufs_used; /* base line */
	uint64_t credit;
	struct lane_event *event[256]; /* raised and not given back */
	unsigned n_events;
	unsigned failures; /* LANE_EV_FAILED and OVERRAN, and the last of them */
	struct lane_event failure;
	char failure_name[64];
};

/* EAL must run. */
void t_node_start(struct t_node *n, const struct t_node_conf *conf);
/* Ends every peer and frees all; asserts that no buffer, memory or credit is missing. */
void t_node_stop(struct t_node *n);

/* One pass of every lane, then of every peer. Returns the work that was found. */
unsigned t_node_step(struct t_node *n);
/* Steps until nothing moves any more (no work for `quiet` rounds in a row). */
void t_node_settle(struct t_node *n);

/* Sends a command and steps until its answer is there. */
void t_node_command(struct t_node *n, struct lane_command *c);

/* Prepares and publishes a Spot; verdict of the step that refused it, or SPOT_ACCEPTED. */
enum spot_verdict t_node_create(struct t_node *n, const char *id, const char *type);
enum spot_verdict t_node_close(struct t_node *n, const char *id);

struct t_peer *t_node_peer(struct t_node *n);
/* The node forgets the newest peer at once, as after its association ended. */
void t_node_peer_gone(struct t_node *n);

/* Queues a message; correlation of a request, 0 of a send. `key` of the packet by name. Asserts
 * that the flow took it. */
uint64_t t_peer_send(struct t_peer *p, uint8_t kind, const char *id, const char *packet,
		     const void *payload, uint32_t bytes, uint32_t budget_us);
/* Queues a message as the test made it (header included) for `lane`; its own copy is sent. */
void t_peer_raw(struct t_peer *p, unsigned lane, const void *message, uint32_t bytes);
/* Queues a control message for `lane`, infrastructure class. */
void t_peer_control(struct t_peer *p, unsigned lane, uint8_t kind, uint64_t correlation);
/* The reply to a correlation, NULL when it has not come. */
const struct t_reply *t_peer_reply(const struct t_peer *p, uint64_t correlation);

/* What the agent would write to its log: notes the event and gives it back. */
void t_node_failure(struct t_node *n, struct lane_event *e);

/* Counters, summed over the lanes. */
uint64_t t_node_counter(const struct t_node *n, enum spl_lane_counter c);
uint64_t t_node_fails(const struct t_node *n, int fail); /* -1: all */
uint64_t t_node_drops(const struct t_node *n, int drop);
uint64_t t_node_uses(const struct t_node *n, int use);

/* Asserts both laws of <spotlane/reasons.h> for each lane. Frames that went to the agent or another
 * lane are counted by who takes them. */
void t_node_check_laws(const struct t_node *n);

#endif
