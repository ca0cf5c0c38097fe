/* SPDX-License-Identifier: BSD-3-Clause */
/* Two link engines and a bad network between them, in virtual time, from one seed. For the tests of
 * the link engine and its benchmark. One thread; owns its memory. Every message carries its
 * direction, class, number and a pattern, and is checked byte for byte where it arrives; the first
 * fault is kept in `fault`, and nothing is delivered after it.
 */
#ifndef SPL_TEST_LINK_NET_H
#define SPL_TEST_LINK_NET_H

#include "dataplane/link/flow.h"
#include "tests/lib/t_main.h"

#define NET_ENDS 2

struct net_path {
	uint32_t loss_ppm, dup_ppm; /* of packets, in millionths */
	uint64_t delay_ns, jitter_ns;
	uint64_t bits_per_s;  /* 0 = no serialisation */
	uint64_t queue_bytes; /* 0 = unbounded */
	uint32_t frame_extra; /* bytes around each packet on the path */
};

/* What an end does with its messages. */
struct net_load {
	uint64_t total[WIRE_CLASSES]; /* messages to send; more are queued as room appears */
	uint32_t len_min, len_max;    /* uniform */
	uint64_t consume_ns;	      /* time from delivery to flow_consumed() */
	uint32_t sink_room;
};

struct net_end {
	struct net *net;
	struct flow *flow;
	void *memory;
	struct flow_params params;
	struct net_load load;
	uint64_t sent[WIRE_CLASSES], acked[WIRE_CLASSES], ended[WIRE_CLASSES];
	uint64_t received[WIRE_CLASSES], consumed[WIRE_CLASSES], bytes[WIRE_CLASSES];
	uint64_t pool[WIRE_CLASSES]; /* credit left in the node's pool */
	uint64_t pool_size[WIRE_CLASSES];
	int64_t messages_out; /* sender's buffers not given back */
	int64_t mems_out;     /* reassembly memory not given back */
	int64_t bufs_out;     /* references to packet buffers */
	uint32_t mem_fail;    /* the next so many mem_get() fail */
	bool is_tight;
	uint64_t uses[SPL_USE_COUNT], drops[SPL_DROP_COUNT];
	uint64_t packets_in, packets_out, packets_lost, packets_queue_lost;
	uint64_t last_delivery; /* when the last message came */
	uint64_t path_free;	/* when the path to the other end is free again */
};

struct net_event; /* a packet under way, or a message to be consumed */

struct net {
	struct net_end end[NET_ENDS];
	struct net_path path[NET_ENDS]; /* from end i */
	struct t_rand rand;
	uint64_t now;
	struct net_event **heap;
	uint32_t n_events, heap_room;
	uint64_t order;
	char fault[160];
};

/* Parameters of both ends to start from: defaults, each one's ids and the other's values. */
void net_params(struct flow_params p[NET_ENDS]);

/* Makes both flows. Pools have `pool` bytes for each class. */
struct net *net_new(const struct flow_params p[NET_ENDS], uint64_t seed, uint64_t pool);

/* Runs until all messages are delivered, consumed and acknowledged and both ends are at rest, or
 * until virtual time `until`. True when all is done and nothing is wrong. */
bool net_run(struct net *n, uint64_t until);

/* Runs for exactly `ns` of virtual time. */
void net_run_for(struct net *n, uint64_t ns);

/* Ends both flows and checks that every buffer, memory, message and credit came back; false, with
 * `fault` set, when not. */
bool net_fini(struct net *n);
void net_free(struct net *n);

#endif
