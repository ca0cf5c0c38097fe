/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator: clients, a bad network, the real lanes and the real agent, the authority and a
 * store in memory, in one thread, from one seed, on a clock of its own.
 *
 * What is real: dataplane/lane, dataplane/agent (but its socket), all rooms, client/, the authority
 * and its store. What is played: the devices (one port of rings), the private socket (queues), the
 * loop of control (control.c). Faults: packets lost, doubled, late and out of order; pauses of the
 * dataplane and of control; death of either at any step, of control also between a commit and its
 * answer.
 *
 * What is checked: stage.c (turns, order, one living incarnation, the lease), client.c (each call
 * ends once, nothing accepted is lost while its owner lives), node.c (both laws of
 * <spotlane/reasons.h>, memory and buffers at rest). A run of one seed repeats exactly: `sim --seed
 * N`.
 */
#ifndef SPL_SIM_WORLD_H
#define SPL_SIM_WORLD_H

#include "client/client.h"
#include "control/authority/authority.h"
#include "control/store/store_memory.h"
#include "dataplane/agent/agent.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_port.h"

#define SIM_CLIENTS  4
#define SIM_SPOTS    12
#define SIM_CHANNEL  "sim"  /* its topics are the ids of Spots */
#define SIM_TWIN     "twin" /* the Instance type; a third of the ids are of it */
#define SIM_IDLE_MS  20
#define SIM_LANES    3
#define SIM_INFLIGHT 8192  /* packets in the network */
#define SIM_INBOX    16384 /* more than can be in the network */
#define SIM_US	     UINT64_C(1000)
#define SIM_MS	     UINT64_C(1000000)
#define SIM_S	     UINT64_C(1000000000)

/* What this seed does. Chances are per 10 000. */
struct sim_plan {
	unsigned lanes, clients, spots;
	unsigned steps;		      /* with new work; then the world runs out */
	unsigned loss, dup, late;     /* of a packet */
	unsigned pause_dp, pause_ctl; /* of a step */
	unsigned kill_dp, kill_ctl;   /* of a step */
	unsigned leap;		      /* of a step while control is away */
	unsigned close, create;	      /* of a client's step */
	bool reclaim_on_restart;
};

/* What is published: by an incarnation of a Spot, or by a client. */
struct sim_news {
	uint32_t spot;	      /* its number, or SIM_SPOTS and the client's */
	uint32_t topic;	      /* number of the Spot whose id it is */
	uint64_t incarnation; /* 0 of a client */
	uint64_t seq;
};

/* A packet on its way. */
struct sim_packet {
	uint64_t due, order;
	int client; /* to this client, or from it when to_node */
	bool to_node;
	uint16_t port; /* UDP: destination to the node, source from it */
	uint16_t len;
	uint8_t b[1460];
};

struct sim_counts {
	uint64_t sends, requests, creates, closes, finds; /* begun */
	uint64_t ended[2];				  /* ok, with an error */
	uint64_t dp_deaths, ctl_deaths, pauses, lost, doubled, late;
	uint64_t handled, fenced; /* messages; steps of a node after its lease */
	uint64_t publishes, heard, ticks;
	uint64_t started, evicted; /* Instance Spots */
	uint64_t made[2];	   /* asked for by handlers: there, new */
	uint64_t told;		   /* sends of handlers that were admitted */
};

/* One client and what it is owed. */
struct sim_client {
	struct spl_client *c;
	unsigned index;
	uint64_t begun, ended; /* calls: each ends once */
	uint64_t next_seq[SIM_SPOTS];
	uint64_t published;	      /* to any topic */
	uint64_t accepted[SIM_SPOTS]; /* sends that ended SPL_OK and requests that were answered */
	struct spl_spot_ref ref[SIM_SPOTS];
	bool has_ref[SIM_SPOTS];
	struct sim_packet *inbox[SIM_INBOX];
	unsigned inbox_head, inbox_tail;
};

/* One Spot id and what handlers saw, over all its incarnations. */
struct sim_spot {
	char id[32];
	struct spl_client_target target;
	unsigned live;	 /* incarnations that have been made and not ended */
	uint64_t fenced; /* steps after the lease until it was made */
	uint64_t newest; /* number of the incarnation that was made last */
	uint64_t handled[SIM_CLIENTS];
	uint64_t last[SIM_CLIENTS]; /* number of the newest message handled */
};

struct sim_control; /* control.c */
struct sim_queue;   /* sock.c */

#define SIM_POKES 65536u
enum { SIM_POKED = 1, SIM_POKE_FAILED = 2 };

struct world {
	uint64_t pokes; /* sends of handlers that wait to know, and what became of the last */
	uint8_t poke[SIM_POKES];
	uint64_t seed, now;
	struct t_rand rand;
	struct sim_plan plan;
	struct sim_counts counts;
	bool is_verbose;
	char problem[512]; /* the first violation; "" while all is well */

	/* network */
	struct sim_packet *packet[SIM_INFLIGHT]; /* heap by (due, order) */
	unsigned n_packets;
	uint64_t packet_order;

	/* node */
	struct agent *agent; /* NULL: the dataplane is dead */
	struct t_port *wire;
	struct port *port;
	unsigned life;			/* dataplanes so far */
	uint64_t dp_paused, ctl_paused; /* until */
	uint64_t dp_back, ctl_back;	/* dead until */
	uint64_t agent_at, lane_at[SIM_LANES];
	struct spl_name dead[16]; /* nodes that died and are not reclaimed yet */
	unsigned n_dead;

	struct sim_queue *to_control, *to_dataplane;
	struct sim_control *control;
	struct store *store;

	struct sim_client client[SIM_CLIENTS];
	struct sim_spot spot[SIM_SPOTS];
	bool may_lose;	/* an owner died, was closed or fenced: messages may be lost with it */
	bool is_ending; /* no new work, no more faults */
};

extern struct world *sim; /* the one that runs, for callbacks without a context */

/* Notes the first violation. */
void sim_problem(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_note(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline bool sim_chance(struct world *w, unsigned per_10000)
{
	return t_rand_below(&w->rand, 10000) < per_10000;
}
void sim_random(void *world, void *out, size_t bytes);

/* net.c */
void sim_net_send(struct world *w, bool to_node, int client, uint16_t port, const void *p,
		  uint32_t len);
void sim_net_deliver(struct world *w); /* to the node what is due */
void sim_net_from_node(struct world *w);
void sim_net_clear(struct world *w);
extern const struct net_ops sim_net_ops; /* arg: struct sim_client */

/* sock.c: the agent's sock_ functions over queues, and control's end of them. */
struct sim_queue *sim_queue_new(void);
void sim_queue_free(struct sim_queue *q);
void sim_queue_clear(struct sim_queue *q);
/* The next packet of the dataplane for control; false when there is none. */
bool sim_control_take(struct world *w, struct dp_header *h, struct pack_reader *body);
void sim_control_put(struct world *w, const struct pack_writer *packet);
void sim_sock_connect(struct world *w, bool connected);

/* node.c */
void sim_node_open(void); /* once a process: EAL, port */
void sim_node_close(void);
void sim_node_start(struct world *w);
void sim_node_step(struct world *w);
void sim_node_kill(struct world *w);
void sim_node_check(struct world *w, bool at_rest);
/* Messages that found a full queue, or an Instance Spot that could not be started: a send among
 * them is lost by the contract (S-LIM-5, S-ACT-5). */
uint64_t sim_node_refused(const struct world *w);

/* control.c */
void sim_control_start(struct world *w);
void sim_control_kill(struct world *w);
void sim_control_step(struct world *w);
void sim_control_reclaim(struct world *w); /* what an operator does after a death */
bool sim_control_serving(const struct world *w);
bool sim_control_idle(const struct world *w);

/* client.c */
void sim_clients_open(struct world *w);
void sim_clients_step(struct world *w);
bool sim_clients_idle(const struct world *w);
void sim_clients_close(struct world *w);

/* stage.c */
extern const struct spl_stage sim_stage, sim_twin;
/* What lives of an id (of every id: NULL) is discarded or fenced, and so has no on_closing. Nothing
 * of it may run once the next one is made. */
void sim_ended_quietly(struct world *w, const void *id, size_t bytes);

#endif
