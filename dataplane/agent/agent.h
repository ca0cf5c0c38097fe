/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the agent: the dataplane's main thread. It owns everything that lanes do not:
 * start and end, the private socket, associations, neighbours, memory of peers and of Spots to
 * come, statistics of ports. It reaches lanes only by commands and hears of them by events
 * (lane/command.h).
 *
 * Files: agent.c (the loop), start.c (from a configuration to running lanes and back), control.c
 * (packets of control), object.c (Spots), mesh.c (control messages of peers, calls of control),
 * net.c (frames: ARP, ICMP, handshakes), peer.c (associations to lanes).
 */
#ifndef SPL_AGENT_AGENT_H
#define SPL_AGENT_AGENT_H

#include "common/log.h"
#include "dataplane/agent/runcfg.h"
#include "dataplane/agent/sock.h"
#include "dataplane/frame/bucket.h"
#include "dataplane/frame/neigh.h"
#include "dataplane/lane/lane.h"
#include "dataplane/link/assoc.h"
#include "dataplane/stage/stage.h"

#include <sys/queue.h>

#define AGENT_ERR_BYTES	 512
#define AGENT_OPS_MAX	 4096u		/* control messages and calls under way at once */
#define AGENT_TICK_NS	 500000000ull	/* housekeeping */
#define AGENT_SLEEP_US	 5000u		/* longest sleep of an idle agent */
#define AGENT_NEIGHBOURS 4096u		/* of one port */
#define AGENT_ANSWER_NS	 30000000000ull /* of a question without a deadline of its own */
#define AGENT_ICMP_RATE	 1000u		/* echo replies a second */
#define AGENT_FORCE_NS	 1000000000ull	/* how long a stop waits for lanes and peers */

struct agent;

/* A command under way, and what to do with its answer. */
struct agent_command {
	struct lane_command c;		 /* first: c.owner is not needed to find it */
	TAILQ_ENTRY(agent_command) list; /* of those that wait for a ring */
	TAILQ_ENTRY(agent_command) all;
	struct agent *agent;
	void (*done)(struct agent *a, struct agent_command *cmd);
	uint64_t corr, attempt;
	uint64_t tag; /* the done function's */
	uint16_t type;
	void *blob; /* freed with the command */
};
TAILQ_HEAD(agent_commands, agent_command);

/* A Spot that is being prepared, or is prepared and not published yet: for a PREPARE that comes
 * again, and for what an inventory says of it.
 */
struct agent_staged {
	TAILQ_ENTRY(agent_staged) list;
	struct spl_key key;
	uint64_t object_generation, attempt;
	struct agent_command *cmd; /* under way; NULL: accepted, and this was the answer: */
	uint16_t content;
	uint32_t reply_bytes;
	void *reply;
};

enum agent_seal_step {
	AGENT_UNSEALED,
	AGENT_SEALING,
	AGENT_SETTLING, /* the first of LANE_SETTLES */
	AGENT_SEALED = AGENT_SETTLING + LANE_SETTLES
};

/* One association. */
struct agent_peer {
	bool is_up;
	uint32_t generation, waiting; /* answers of lanes that are missing */
	uint32_t ip;
	uint16_t udp_port, lanes;
	uint64_t lifecycle;
	struct spl_name rid;
	struct lane_flow **flows; /* [lanes of this node], each an array of the peer's lanes */
	uint32_t promised;	  /* its part of agent.promised */
	bool is_ending;
};

/* A question to control for somebody: an event of a lane, or a call of control at a lane. */
struct agent_op {
	bool is_used;
	uint32_t generation;
	struct lane_event *event; /* MESH_OP */
	uint64_t corr;		  /* SPOT_CALL */
	uint64_t deadline;
};

struct agent_port {
	struct neigh *neigh;
	struct agent *agent;
	unsigned index;
};

struct agent {
	struct sock *sock;
	const char *dir;
	enum dp_state state;
	uint64_t epoch;
	bool is_running; /* lanes run */
	bool is_stopping;
	bool is_stuck; /* stopped, and a thread of the workers still runs in it */
	bool is_asked; /* SHUTDOWN_REQ was sent */
	int exit_code;
	bool is_void; /* the packet being written answers a control that is gone */
	uint64_t now; /* CLOCK_BOOTTIME ns, of this pass */
	/* of cryptographic quality, but in a simulator; cannot fail */
	void (*random)(void *ctx, void *out, size_t bytes);
	void *random_ctx;
	uint64_t next_tick;

	struct runcfg cfg;
	struct stage_set *stages;
	struct lane_shared sh;
	struct lane *lane[RUNCFG_LANES_MAX];
	struct workers *workers;
	struct port ports[PORTS_MAX];
	int stats_fd;
	bool is_huge;
	struct lane_conf lane_conf;
	struct spot_plan plan[RUNCFG_LANES_MAX];
	uint64_t backed[RUNCFG_LANES_MAX][SPOT_MEM_COUNT];

	/* identity of this lifecycle */
	uint64_t node_gen, lease_gen, entry_gen, entry_ver;
	struct spl_name rid, owner_id, entry_id;
	uint64_t entry_live; /* object generation of the Entry Spot that is Ready; 0 none */
	enum dp_host host_state;
	uint64_t drain_deadline;
	enum agent_seal_step seal_step;
	unsigned seal_left;		   /* lanes that have not answered the step */
	struct agent_commands held_closes; /* for the stop; until it is sealed */

	/* net */
	struct tx tx;
	struct agent_port port[PORTS_MAX];
	struct bucket icmp;
	uint64_t neigh_due[PORTS_MAX];
	uint16_t ip_id;
	void *assoc_mem;
	struct assoc *assoc;
	struct agent_peer *peer; /* [associations] */
	uint32_t promised;	 /* flows whose minimum credit is set aside */
	uint32_t promise_max;	 /* what the node pool has for */
	uint8_t last_mac[6];	 /* of the frame that is being handled */
	unsigned last_port;
	uint32_t last_ip;

	/* commands and questions */
	struct agent_commands commands;		       /* all there are, wherever they are */
	struct agent_commands queue[RUNCFG_LANES_MAX]; /* the lane's ring was full */
	TAILQ_HEAD(, agent_staged) staged;
	struct agent_op op[AGENT_OPS_MAX];
	uint32_t op_next;
	uint64_t creations; /* of handlers so far: their operations' numbers */
	struct lane_event *back[RUNCFG_LANES_MAX]; /* done, the ring was full */
	uint8_t out[DP_PACKET_MAX];		   /* packet being written */
};

/* agent.c */
/* One pass while lanes run, at a->now; returns the work it found. */
unsigned agent_pass(struct agent *a);
int agent_run(struct agent *a, const volatile int *signalled);
void agent_send(struct agent *a, struct agent_command *cmd);
struct agent_command *agent_command_new(struct agent *a, unsigned lane, enum lane_verb verb,
					void (*done)(struct agent *, struct agent_command *));
void agent_command_free(struct agent_command *cmd);
void agent_event_back(struct agent *a, struct lane_event *e);
unsigned agent_take_ring(struct agent *a, unsigned lane);

/* start.c: 0, or -errno, the sentence and the exit code. */
int agent_start(struct agent *a, char *err, size_t n);
void agent_stop(struct agent *a);
/* The part of it that needs no EAL, for a simulator that has ports, pool and stages already and
 * steps the lanes itself. */
int agent_start_rooms(struct agent *a, char *err, size_t n);
void agent_stop_rooms(struct agent *a);

/* control.c */
void agent_on_peer(void *ctx, bool connected);
void agent_on_packet(void *ctx, const struct sock_packet *p);
struct pack_writer agent_packet(struct agent *a, uint16_t type, uint16_t flags, uint64_t corr);
void agent_packet_send(struct agent *a, struct pack_writer *w, int fd);
void agent_reply_ok(struct agent *a, uint64_t corr, uint8_t kind, const char *text);
void agent_ask_shutdown(struct agent *a, const char *cause);

/* object.c */
void agent_prepare(struct agent *a, const struct sock_packet *p);
void agent_publish(struct agent *a, const struct sock_packet *p);
void agent_discard(struct agent *a, const struct sock_packet *p);
void agent_close_spot(struct agent *a, const struct sock_packet *p);
void agent_resync(struct agent *a, const struct sock_packet *p);
void agent_seal(struct agent *a, uint64_t corr);
void agent_self_close(struct agent *a, struct lane_event *e);

/* mesh.c */
void agent_mesh_event(struct agent *a, struct lane_event *e);
void agent_mesh_done(struct agent *a, const struct sock_packet *p);
void agent_missing(struct agent *a, struct lane_event *e);
void agent_create(struct agent *a, struct lane_event *e);
void agent_activate(struct agent *a, struct lane_event *e);
void agent_call(struct agent *a, const struct sock_packet *p);
void agent_called(struct agent *a, struct lane_event *e);
void agent_ops_expire(struct agent *a); /* each housekeeping tick */
void agent_ops_lost(struct agent *a);	/* control is gone: everything asked of it ends */

/* net.c */
int agent_net_start(struct agent *a, char *err, size_t n);
void agent_net_stop(struct agent *a);
void agent_frame(struct agent *a, struct rte_mbuf *m);
void agent_net_poll(struct agent *a);
uint64_t agent_net_due(const struct agent *a);

/* peer.c */
int agent_identify(struct agent *a, char *err, size_t n); /* identity is known: answer handshakes */
void agent_peers_poll(struct agent *a);
void agent_peers_free(struct agent *a); /* lanes have left */
const struct agent_peer *agent_peer_of(const struct agent *a, uint64_t flow_ref);
unsigned agent_route(const struct agent *a, uint32_t ip, uint32_t *next_hop);

static inline struct spl_lane_stats *agent_stats(struct agent *a)
{
	return &a->sh.stats->lane[a->sh.lanes];
}

#endif
