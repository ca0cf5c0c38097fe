/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit: one struct tx for each user of the ports (lane 0..n-1, the agent is user n).
 *
 * A port with as many transmit queues as users gives each its own. With fewer, user u owns queue u
 * if there is one, and otherwise hands its frames through a ring of its own to user u mod queues (a
 * lane), which sends them in its next tx_poll(). No queue is ever used by two threads.
 *
 * All of it is called by the user alone, on its thread; tx_net_* by the agent while nobody runs.
 * mbuf rule: tx_udp(), tx_raw() and tx_flush() take every frame given; each is counted once, as
 * sent, hopped (then counted by the owner) or dropped by name. Buffers of a frame may be shared
 * (refcnt) except its first segment, which holds the headers.
 */
#ifndef SPL_PORT_TX_H
#define SPL_PORT_TX_H

#include "dataplane/port/port.h"

#define TX_BURST    32u	  /* frames that wait for a flush, per port */
#define TX_RETRIES  4u	  /* calls of the driver in one flush before frames are dropped */
#define TX_RING	    1024u /* frames on their way to the owner of a queue */
#define TX_POLL_MAX 64u	  /* frames taken from one ring in one tx_poll() */

struct rte_mbuf;
struct rte_ring;
struct rte_mempool;
struct tx_net;
struct tx_in;

struct tx_counts {
	uint64_t sent, bytes;	 /* accepted by a port */
	uint64_t hopped;	 /* handed to the owner of a queue */
	uint64_t linearised;	 /* copied because the port takes one segment only */
	uint64_t dropped_full;	 /* port or ring would not take it */
	uint64_t dropped_down;	 /* the link was down */
	uint64_t dropped_size;	 /* larger than the port's MTU */
	uint64_t dropped_nombuf; /* no buffer to linearise it */
};

struct tx_port {
	struct port *port;
	struct rte_ring *hop; /* NULL: queue is ours */
	uint16_t queue, owner, n;
	uint32_t bytes; /* of the n frames in buf */
	struct rte_mbuf *buf[TX_BURST];
};

struct tx {
	struct tx_net *net;
	struct rte_mempool *pool; /* for linearised copies */
	const struct tx_in *in;	  /* rings that others fill for our queues */
	unsigned n_in;
	uint16_t user, n_ports;
	struct tx_counts counts;
	struct tx_port port[PORTS_MAX];
};

/* Makes the rings that `users` users of the ports need. wake (may be NULL) is called on the pushing
 * user's thread after frames were handed to `owner`, who may be napping. NULL and errno. */
struct tx_net *tx_net_create(struct port *ports, unsigned n_ports, unsigned users,
			     void (*wake)(void *ctx, unsigned owner), void *wake_ctx)
	__attribute__((warn_unused_result));

/* Frees the rings and the frames in them. NULL is fine. */
void tx_net_destroy(struct tx_net *net);

/* pool: where copies come from; the user's own. */
void tx_init(struct tx *t, struct tx_net *net, unsigned user, struct rte_mempool *pool);

/* Frees what waits; the counters count it as dropped_full. */
void tx_fini(struct tx *t);

/* A UDP datagram with the headers of build_udp(): adds the UDP checksum, in software or by the
 * port. port: index in the array given to tx_net_create(). */
void tx_udp(struct tx *t, unsigned port, struct rte_mbuf *m);

/* A complete frame (ARP, ICMP). */
void tx_raw(struct tx *t, unsigned port, struct rte_mbuf *m);

/* Sends or hands over all that waits. Once a pass of the loop. */
void tx_flush(struct tx *t);

/* For a user that owns queues others use: sends what they handed over. Returns the frames taken.
 * Bounded by TX_POLL_MAX for each ring. */
unsigned tx_poll(struct tx *t);

/* True when somebody handed over frames that tx_poll() would send: not the time for a nap. */
bool tx_waiting(const struct tx *t);

/* When idle: lets the devices give back buffers of frames already sent. */
void tx_reclaim(struct tx *t);

#endif
