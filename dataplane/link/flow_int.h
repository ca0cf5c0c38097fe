/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the link engine: the state of a flow and what its four files need of each other.
 *
 *   flow.c      life, sending queue, credit of both sides, statistics
 *   flow_rx.c   a packet comes in: check, hold, deliver
 *   flow_tx.c   a packet goes out: acknowledgements, credit, retransmissions, messages
 *   flow_ack.c  packets in flight: what an acknowledgement frees, what is lost, timers
 *
 * Invariants.
 *   Each byte of a message that is sent and not acknowledged belongs to exactly one record of the
 *   sent ring, in state FLIGHT or LOST: what arrives twice is never counted twice.
 *   Receiving: limit - consumed is what the host's pool holds for us; limit - charged may be sent.
 *   Counters of messages (u32) and credit (u64) are compared by difference and may wrap; packet
 *   numbers may not, and end the flow.
 */
#ifndef SPL_LINK_FLOW_INT_H
#define SPL_LINK_FLOW_INT_H

#include "dataplane/link/flow.h"

#ifdef SPL_DEBUG_ASSERT
#include <assert.h>
#define FLOW_ASSERT(x) assert(x)
#else
#define FLOW_ASSERT(x) ((void)0)
#endif

#define FLOW_LOSS_PACKETS   3		 /* so many later ones acknowledged: lost */
#define FLOW_GRANULARITY_NS 200000ULL	 /* no loss is called earlier by time */
#define FLOW_WANTED_MAX_NS  100000000ULL /* a blocked sender asks at least so often */
#define FLOW_CREDIT_IDLE_NS \
	1000000000ULL /* an idle sender gives back what it got above the first */
#define FLOW_PTO_MAX_NS	      4000000000ULL
#define FLOW_ACK_DELAY_MAX_NS 25000000ULL
#define FLOW_BITMAP_WORDS     (WIRE_NUMBER_WINDOW / 64)

enum flow_slot_state {
	SLOT_EMPTY = 0,
	SLOT_PART,  /* memory, some bytes still missing */
	SLOT_WHOLE, /* in a packet buffer */
	SLOT_MEM,   /* memory, complete */
};

/* A received message that cannot be delivered yet. */
struct flow_slot {
	uint8_t *data; /* PART and MEM: from env->mem_get(), the map of its units behind it */
	void *ref;
	uint32_t len;
	uint32_t got;
	uint32_t state; /* enum flow_slot_state */
	uint32_t pad;
};

/* A message to be sent. */
struct flow_out {
	const uint8_t *data;
	void *handle;
	uint32_t len;
	uint32_t left; /* bytes not acknowledged; 1 for an empty message */
};

enum flow_sent_state {
	SENT_FLIGHT = 0,
	SENT_LOST,   /* to be sent again */
	SENT_RESENT, /* a later record has its bytes */
	SENT_ACKED,
};

/* A packet that must be acknowledged: a fragment of message `seq` (if frag), then whole messages.
 */
struct flow_sent {
	uint64_t number;
	uint64_t time;
	uint32_t seq;
	uint32_t off;
	uint16_t frag;
	uint16_t whole;
	uint16_t bytes;
	uint8_t state; /* enum flow_sent_state */
	uint8_t pad;
};

/* Receiving side of a class. The first line is all that the fast path touches besides the map. */
struct flow_in {
	uint64_t next_number; /* largest received + 1 */
	uint32_t next_seq;    /* first message not delivered */
	uint32_t held;	      /* slots not empty */
	uint64_t charged;     /* credit of all messages begun by the peer */
	uint64_t limit;	      /* credit granted */
	uint64_t time;	      /* when the largest number came */
	uint64_t ack_due;     /* when an acknowledgement must go; FLOW_NEVER when none is owed */
	uint32_t owed;	      /* packets not acknowledged that must be */
	uint32_t ack_every;
	uint64_t alone; /* packets of one message that flow_one_take() took: counted only here */

	uint64_t map[FLOW_BITMAP_WORDS]; /* bit number % window: received */

	struct flow_slot *slots;
	uint32_t mask; /* slots - 1 */
	uint64_t messages;
	uint64_t consumed;
	uint64_t advertised; /* last limit told */
	uint64_t wanted;     /* last limit asked for */
	uint32_t credit_min, credit_max;
	uint16_t epoch;
	bool credit_due; /* tell the limit now */
} __attribute__((aligned(64)));

/* Sending side of a class. */
struct flow_away {
	struct flow_out *out;
	struct flow_sent *sent;
	uint32_t out_mask, sent_mask;
	uint32_t next_seq; /* of the next flow_send() */
	uint32_t cur_seq;  /* first message not wholly sent */
	uint32_t cur_off;  /* bytes of it that are sent */
	uint32_t base_seq; /* oldest message not acknowledged */
	uint32_t peer_window;
	uint32_t head, tail;	  /* of the sent ring */
	uint32_t lost, lost_from; /* records LOST, and where the first may be */
	uint32_t flight, flight_bytes;
	uint32_t window; /* packets, opens up to the bound */
	uint32_t probes; /* packets that may go beyond the window */
	uint32_t pto_count;
	uint64_t next_number, first_number;
	uint64_t largest_acked; /* + 1; 0 = none */
	uint64_t last_sent;	/* when the last record was made */
	uint64_t loss_time;	/* FLOW_NEVER, or when the next record is lost */

	uint64_t used;	      /* credit of the messages begun */
	uint64_t limit;	      /* credit granted */
	uint64_t wanted_due;  /* when to ask (again); FLOW_NEVER when not blocked */
	uint64_t wanted_wait; /* the pause after that */
	uint64_t idle_since;  /* FLOW_NEVER while there is something to send */
	uint32_t first_credit;
	uint16_t epoch;
	bool epoch_open; /* our epoch is not confirmed yet */
	bool has_asked;	 /* for more than its first credit, in this epoch */
} __attribute__((aligned(64)));

struct flow {
	uint64_t rx_head; /* bytes 0..7 of a packet to us, class bit clear, as loaded */
	uint64_t rx_id;	  /* bytes 8..15, as loaded */
	uint32_t msg_bytes;
	uint64_t ack_delay;
	uint64_t packets_rx;
	const struct flow_env *env;
	void *host;
	uint64_t tx_id;

	struct flow_in in[WIRE_CLASSES];
	struct flow_away away[WIRE_CLASSES];

	uint8_t lane, peer_lane;
	uint16_t datagram_bytes;
	uint32_t peer_msg_bytes;
	uint32_t window_packets, window_initial, window_bytes;
	uint64_t pto_min;
	uint64_t srtt, rttvar, rtt_min, rtt_latest;
	bool has_rtt;
	struct flow_stats stats;
	void *mem; /* as given to flow_init(); the flow begins somewhere in its first page */
} __attribute__((aligned(64)));

/* Forgets the oldest records that own no bytes any more. */
static inline void flow_sent_pop(struct flow_away *t)
{
	while (t->head != t->tail && t->sent[t->head & t->sent_mask].state >= SENT_RESENT)
		t->head++;
	if ((int32_t)(t->lost_from - t->head) < 0)
		t->lost_from = t->head;
}

/* a is before b, in counters that wrap. */
static inline bool flow_before32(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool flow_before64(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

/* flow.c: the peer told its limit; asks for one; and what a blocked or idle sender has to say. */
void flow_credit_told(struct flow_away *t, uint16_t epoch, uint64_t limit);
bool flow_credit_ask_is_legal(const struct flow_in *r, uint16_t epoch, uint64_t wanted);
void flow_credit_asked(struct flow *f, enum wire_class cls, uint16_t epoch, uint64_t wanted);
void flow_credit_blocked(struct flow *f, struct flow_away *t, uint64_t now);
void flow_credit_idle(struct flow *f, struct flow_away *t, uint64_t now);
/* It has more than its first credit, or may have: what it is told comes late. */
static inline bool flow_may_give_back(const struct flow_away *t)
{
	return t->limit - t->used > t->first_credit || t->has_asked;
}

uint64_t flow_wanted(const struct flow_away *t);

/* flow_ack.c: takes the checked ACK record at `p` that names our packets of class `cls`. */
void flow_ack_take(struct flow *f, enum wire_class cls, const uint8_t *p, uint64_t now);
/* Writes an ACK record for the received class `cls` into `room` bytes; its bytes, 0 = no room. */
uint32_t flow_ack_put(struct flow *f, enum wire_class cls, uint8_t *p, uint32_t room, uint64_t now);
/* Probe timeout without backoff. */
uint64_t flow_pto(const struct flow *f);
void flow_ack_timer(struct flow *f, enum wire_class cls, uint64_t now);
uint64_t flow_ack_next_timer(const struct flow *f, enum wire_class cls);
/* The packet number was received, and has to be acknowledged when `elicits`. */
void flow_ack_note(struct flow *f, struct flow_in *r, uint64_t number, bool elicits, uint64_t now);

#endif
