/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of one association: handshake and beacons (assoc.h), one flow to each lane of
 * the node (flow.h), and packets in and out in batches. Knows messages as bytes only.
 *
 * The client's thread. Owns the packets it keeps and, from link_send() on, the messages.
 */
#ifndef SPL_CLIENT_LINK_H
#define SPL_CLIENT_LINK_H

#include "client/buffer.h"
#include "client/net.h"
#include "dataplane/link/assoc.h"
#include "dataplane/link/flow.h"

#define LINK_BATCH 64

struct link_packet; /* a received packet, as long as somebody reads it */

/* What the link tells its owner. None of them may call link_close(). */
struct link_events {
	void *owner;
	/* The association stands. */
	void (*up)(void *owner);
	/* It has ended; what was sent and not acknowledged is gone. */
	void (*down)(void *owner);
	/* A message of `len` bytes arrived. `msg` holds it and is the receiver's to free; without
	 * memory for that it is NULL, and `data` is readable until the function returns. */
	void (*message)(void *owner, const uint8_t *data, uint32_t len, struct buffer *msg);
};

struct link_config {
	struct spl_name mesh, rid;
	uint64_t lifecycle;
	uint32_t ip; /* of the node, host order */
	uint16_t base_port;
	uint32_t msg_bytes;    /* largest link message that we take */
	uint64_t window_bytes; /* cost of messages sent and not acknowledged, each lane and class */
};

struct link;

struct link_flow {
	struct link *link;
	struct flow *flow; /* NULL until it is first used */
	/* The window (S-LIM-13): what is sent and not acknowledged, each message by what it costs
	 * the node; full until half of it is acknowledged. */
	uint64_t charged[WIRE_CLASSES];
	bool is_full[WIRE_CLASSES];
};

struct link {
	struct net net;
	struct link_events events;
	struct link_config conf;
	struct flow_params flow_params; /* of every flow, without what the peer decides */
	struct assoc *assoc;
	int dial;		       /* -1 = none */
	const struct assoc_peer *peer; /* NULL while there is no association */
	uint32_t slot;
	uint8_t refusal; /* enum wire_refusal of the last refusal; 0 = none */
	struct link_flow lane[SPL_LANES_MAX];
	uint32_t first_lane; /* whose turn it is to send first */
	uint64_t credit_left[WIRE_CLASSES];
	struct link_packet *spare[LINK_BATCH]; /* for the next receive */
	struct net_packet out[LINK_BATCH]; /* [out_at..out_n): built, not yet taken by the net */
	uint32_t out_at, out_n;
	uint8_t *out_memory;
	struct flow_stats past; /* sums of ended flows */
	uint64_t sent, received, dropped, connects, losses;
};

/* 0; -EINVAL; -ENOMEM. Nothing is sent yet. `net` is borrowed. link_close() undoes it, also when
 * it failed. */
int link_open(struct link *l, const struct link_config *conf, const struct net *net,
	      const struct link_events *events);

/* Ends it at once, without telling the node; down() is not called. */
void link_close(struct link *l);

/* Begins to connect, and to stay connected. */
void link_dial(struct link *l, uint64_t now_ns);

/* Begins an orderly end. link_hung_up(): the node knows, or was told often enough. */
void link_hangup(struct link *l, uint64_t now_ns);
bool link_hung_up(const struct link *l);

/* Receives what has come, up to a bound. True when there was anything. */
bool link_receive(struct link *l, uint64_t now_ns);

/* Runs what is due and sends what may be sent. True when anything was sent. */
bool link_transmit(struct link *l, uint64_t now_ns);

/* True when the net did not take all: wait for it. */
bool link_is_blocked(const struct link *l);

/* When link_transmit() has to be called again; UINT64_MAX = never. */
uint64_t link_next_timer(const struct link *l);

/* Hands a message to the flow to `lane`, which takes `msg` when the answer is 0. -EAGAIN: its
 * window or queue is full; -EMSGSIZE: larger than the node accepts; -ENOTCONN; -ENOMEM. */
int link_send(struct link *l, uint32_t lane, enum wire_class cls, struct buffer *msg);

/* True when every message sent has been acknowledged, and every packet received too. */
bool link_is_idle(const struct link *l);

/* Sums over all flows, ended ones included. */
void link_stats(const struct link *l, struct flow_stats *out);

/* For receive.c: the flow to a lane, made on first use; NULL without memory. And the end of it. */
struct flow *link_flow_get(struct link *l, uint32_t lane);
void link_run_events(struct link *l, uint64_t now_ns);
void link_packet_put(struct link_packet *packet);
void link_answer(struct link *l, const struct net_packet *to, const uint8_t *bytes, uint32_t len);

#endif
