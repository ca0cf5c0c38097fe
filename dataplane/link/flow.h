/* SPDX-License-Identifier: BSD-3-Clause */
/* A flow: the reliable, ordered channel between a lane of this node and a lane of a peer, both
 * directions of both classes. Pure: packets, time and buffers come in, packets, messages and calls
 * of the host's functions go out; no clock, no I/O, no allocation but through the host.
 *
 * Threads: a flow belongs to one thread (its lane, the client's, the simulator's); nothing is
 * locked. Memory: the host gives flow_bytes() bytes; the flow owns nothing else but the references
 * that it was told to hold (packet buffers of messages kept for order, memory of partly received
 * messages, messages being sent), all given back by flow_fini() at the latest. Time: nanoseconds of
 * one monotonic clock of the host's choice, never going back.
 *
 * Use. Received packet: find the flow by id and lanes (wire.h), call flow_rx(), treat what came out
 * in the sink, add the references, and if the sink was full call flow_drain(). When a message's
 * handler is at its end: flow_consumed(). To send: flow_send(). After a burst, after sends and
 * after flow_on_timer(): call flow_tx() until it returns 0, then arm a timer for flow_next_timer().
 */
#ifndef SPL_LINK_FLOW_H
#define SPL_LINK_FLOW_H

#include "common/wire.h"

struct flow;

#define FLOW_NEVER UINT64_MAX

/* What the host does for its flows. `host` is the pointer given to flow_init(). Called only from
 * within a flow_ function; none of them may call into the same flow again. */
struct flow_env {
	/* The flow does not need the bytes given to flow_send() with `handle` any more: every byte
	 * is acknowledged, or (acked false) the flow ended first. */
	void (*sent)(void *host, void *handle, bool acked);
	/* Memory for a message that comes in fragments, 8-byte aligned; NULL when there is none. */
	void *(*mem_get)(void *host, size_t bytes);
	void (*mem_put)(void *host, void *mem);
	/* Drops one reference of a packet buffer that flow_rx() had counted in `refs`. */
	void (*buf_put)(void *host, void *buf);
	/* Reserves up to `bytes` of credit from the node's pool, returns what it got. */
	uint64_t (*credit_take)(void *host, enum wire_class cls, uint64_t bytes);
	void (*credit_give)(void *host, enum wire_class cls, uint64_t bytes);
	/* True when the pool wants credit above the minimum back. May be NULL. */
	bool (*credit_tight)(void *host, enum wire_class cls);
};

struct flow_class_params {
	uint32_t tx_slots; /* messages queued and in flight, power of two, 2..32768 */
	uint32_t rx_slots; /* our message window, announced to the peer, power of two, 16..32768 */
	uint32_t peer_window; /* the peer's message window */
	uint32_t credit_min;  /* granted from the start and never taken back (S-LIM-14) */
	uint32_t credit_max;  /* grown to on demand; at least wire_charge(msg_bytes) */
	uint32_t peer_credit; /* what the peer grants from the start */
	/* First values of the counters: 0 in the product. Both ends must agree but on pn_tx. */
	uint64_t pn_tx, credit_tx, credit_rx;
	uint32_t seq_tx, seq_rx;
};

struct flow_params {
	uint64_t rx_id; /* in packets to us */
	uint64_t tx_id; /* in packets to the peer */
	uint8_t lane;
	uint8_t peer_lane;
	uint16_t datagram_bytes; /* of the packets we send, 256..9000 */
	uint32_t msg_bytes;	 /* largest link message we accept */
	uint32_t peer_msg_bytes; /* largest the peer accepts */
	uint32_t window_packets; /* packets in flight a class, power of two, 4..32768 */
	uint32_t window_initial; /* in flight at the start; grows to the bound as acks come */
	uint32_t window_bytes;	 /* bytes in flight a class, at least datagram_bytes */
	uint32_t ack_every;	 /* acknowledge at once after so many packets */
	uint64_t ack_delay_ns;	 /* or this long after the first; at most 25 ms */
	uint64_t rtt_initial_ns;
	uint64_t pto_min_ns;
	struct flow_class_params cls[WIRE_CLASSES];
};

/* A message that arrived. The data lies in the packet buffer `ref`, of which it has one reference,
 * or (is_mem) is memory `ref` of env->mem_get(), which the host gives back itself. */
struct flow_msg {
	const uint8_t *data;
	void *ref;
	uint32_t len;
	uint32_t charge; /* for flow_consumed() */
	uint8_t cls;	 /* enum wire_class */
	bool is_mem;
};

struct flow_sink {
	struct flow_msg *msgs;
	uint32_t n; /* in and out: messages there */
	uint32_t room;
	uint64_t charge;     /* in and out: of these messages */
	uint64_t charge_max; /* once it is reached no more are delivered; 0: any */
};

/* It takes no more: what is ready waits in the flow. */
static inline bool flow_sink_is_full(const struct flow_sink *s)
{
	return s->n >= s->room || (s->charge_max && s->charge >= s->charge_max);
}

struct flow_rx_result {
	uint16_t refs; /* references to `buf` the flow and the sink took: the host adds them */
	uint8_t use;   /* enum spl_frame_use when not dropped */
	uint8_t drop;  /* enum spl_frame_drop, or FLOW_NO_DROP */
};
#define FLOW_NO_DROP 0xff

struct flow_stats {
	uint64_t packets_tx, packets_rx, bytes_tx;
	uint64_t retransmitted; /* packets sent again */
	uint64_t probes;	/* timeouts that sent something again */
	uint64_t messages_tx, messages_rx, messages_acked;
	uint64_t duplicates; /* packet numbers seen before */
	uint64_t blocked;    /* times a message waited for credit */
	uint64_t srtt_ns, rttvar_ns, rtt_min_ns;
	uint32_t flight_packets, window_packets; /* both classes; now */
	uint64_t credit_reserved[WIRE_CLASSES];	 /* granted and not consumed; now */
	uint32_t messages_unsent[WIRE_CLASSES];	 /* queued and not acknowledged; now */
	uint32_t messages_held[WIRE_CLASSES];	 /* received out of order or partly; now */
};

/* Fills `p` with the defaults of the product; the caller sets ids, lanes and the peer's values. */
void flow_params_default(struct flow_params *p);

/* Bytes of memory that a flow with these parameters needs; 0 when one is out of range. */
size_t flow_bytes(const struct flow_params *p);

/* Makes a flow in `mem` (flow_bytes(), 64-byte aligned) and reserves both minimum credits. `env` is
 * borrowed for the flow's life. NULL with errno EINVAL (parameters) or ENOMEM (credit; none kept).
 */
struct flow *flow_init(void *mem, const struct flow_params *p, const struct flow_env *env,
		       void *host);

/* Ends the flow: gives back every buffer, memory and message (env->sent with acked false) and all
 * credit but that of messages delivered and not consumed, which the host gives back itself as it
 * consumes them. Returns the memory given to flow_init(), the caller's again; NULL for NULL. */
void *flow_fini(struct flow *f);

/* Takes in a packet: `pkt` is the UDP payload of `len` bytes inside buffer `buf`. Messages that
 * became deliverable are appended to `sink`, in order within their class; those that do not fit
 * stay and come with flow_drain(). On a drop nothing has changed, except that memory for a
 * fragmented message may be held already (LINK_MEMORY). `buf` itself stays the caller's: after the
 * call it has `refs` more references than before. The port's view of class and lane is the caller's
 * to compare. */
struct flow_rx_result flow_rx(struct flow *f, const uint8_t *pkt, uint32_t len, void *buf,
			      uint64_t now_ns, struct flow_sink *sink);

/* Appends messages that wait for room in a sink; true when more are left. */
bool flow_drain(struct flow *f, struct flow_sink *sink);

/* A delivered message is at its terminal: its `charge` of class `cls` may be granted again. Several
 * messages may be told at once, by the sum of their charges. */
void flow_consumed(struct flow *f, enum wire_class cls, uint32_t charge);

/* Queues a message. `data` is borrowed until env->sent(handle). 0; -EAGAIN when the queue is full,
 * -EMSGSIZE when the peer does not accept that length, -EPIPE when packet numbers are used up. */
int flow_send(struct flow *f, enum wire_class cls, const void *data, uint32_t len, void *handle);

/* Messages that flow_send() would still take now. */
uint32_t flow_send_room(const struct flow *f, enum wire_class cls);

/* Builds the next packet that may and should be sent now in `out` (`room` >= datagram_bytes) and
 * tells its class. Returns its bytes, 0 when there is nothing. Acknowledgements go first. */
uint32_t flow_tx(struct flow *f, uint8_t *out, uint32_t room, uint64_t now_ns,
		 enum wire_class *cls);

/* When flow_on_timer() wants to be called; FLOW_NEVER for never. Changes with every other call. */
uint64_t flow_next_timer(const struct flow *f);
void flow_on_timer(struct flow *f, uint64_t now_ns);

/* True when nothing is queued, in flight, held or owed: safe to forget without a trace. */
bool flow_is_idle(const struct flow *f);

void flow_stats_get(const struct flow *f, struct flow_stats *out);
uint64_t flow_retransmitted(const struct flow *f); /* that one alone, for every pass */

#endif
