/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving device of bench_dispatch: buffers from the lane's pool with headers written into
 * them, as a device with good checksums would leave them; payload bytes are whatever is there.
 * Packet numbers and sequences go up flow by flow, targets come from a stream of keys. One lane,
 * main thread.
 */
#ifndef SPL_BENCH_DISPATCH_RX_H
#define SPL_BENCH_DISPATCH_RX_H

#include "tests/lib/t_node.h"

#define DISPATCH_PEERS	8u
#define DISPATCH_STREAM (1u << 21) /* keys, in the order of arrival */
#define DISPATCH_HDR	(FRAME_HDR_BYTES + WIRE_HDR_BYTES)

struct dispatch_rx {
	struct t_node *node;
	struct rte_mempool *pool;
	const struct spl_key *stream;
	bool is_floor; /* sequences do not matter */
	uint32_t per_frame, message_bytes, record_bytes, frame_bytes;
	uint64_t messages;	 /* so far */
	const uint64_t *handled; /* counted by the handler; NULL: as fast as it is polled */
	uint64_t handled_before; /* its value at the start */
	uint64_t frames;
	uint8_t head[DISPATCH_PEERS][DISPATCH_HDR]; /* of a frame */
	uint8_t record[WIRE_MESSAGE_BYTES + 48];    /* and message */
};

/* Messages that may be on their way: a real sender would be stopped by credit. */
#define DISPATCH_AHEAD 1024u

/* Stamps of `n`'s 8 peers; `per_frame` messages of `bytes` payload in each frame. */
void dispatch_rx_init(struct dispatch_rx *rx, struct t_node *n, uint32_t bytes, uint32_t per_frame,
		      const struct spl_key *stream);

/* Makes it what the node's port receives from, and frees what the port sends. */
void dispatch_rx_use(struct dispatch_rx *rx);

/* The peers' packet numbers and sequences stay where they are, for the next. */
void dispatch_rx_end(struct dispatch_rx *rx);

/* Cost of one message, from the receive burst to the return of its handler: thread CPU time in ns
 * of lane 0 over the passes that `messages` of them take. dispatch_rx_use() comes before it;
 * rx->handled counts. */
double dispatch_rx_cost(struct dispatch_rx *rx, uint32_t messages);

/* A burst of at most `n` frames. */
uint16_t dispatch_rx_burst(struct dispatch_rx *rx, struct rte_mbuf **m, uint16_t n);

#endif
