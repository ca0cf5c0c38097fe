/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the association table: its state and what its files need of each other.
 *
 *   assoc.c         life, slots and ids, events, the calls of the host
 *   assoc_rx.c      packets in: handshake of both sides, beacons, closes
 *   assoc_tx.c      what is due: dials, beacons, closes
 *   assoc_cookie.c  the stateless cookie and the bound of answers
 *
 * A slot is FREE, belongs to a dial that has no answer yet (DIALING), is UP, or is DOWN. A DOWN
 * slot becomes FREE when the host has released it and its close is confirmed or given up.
 */
#ifndef SPL_LINK_ASSOC_INT_H
#define SPL_LINK_ASSOC_INT_H

#include "common/siphash.h"
#include "dataplane/link/assoc.h"

#define ASSOC_COOKIE_SECONDS 20
#define ASSOC_SECRET_SECONDS 64
#define ASSOC_COOKIE_TRIES   3 /* INITs with one cookie, before another is asked for */
#define ASSOC_CLOSE_TRIES    5
#define ASSOC_CLOSE_AGAIN_NS 200000000ULL

enum assoc_state { ASSOC_S_FREE = 0, ASSOC_S_DIALING, ASSOC_S_UP, ASSOC_S_DOWN };

struct assoc_slot {
	struct assoc_peer peer;
	uint8_t nonce[WIRE_NONCE_BYTES];
	uint8_t state;	      /* enum assoc_state */
	bool is_held;	      /* the host has not released it */
	uint8_t close_left;   /* CLOSE packets still to send; 0 = confirmed or given up */
	uint8_t close_reason; /* enum wire_closing */
	bool is_probing;      /* a beacon is not acknowledged */
	bool is_repeated;     /* and was sent more than once */
	uint32_t next;	      /* of the same RID bucket, or of the free list */
	uint64_t beacon;      /* id of the last beacon */
	uint64_t beacon_sent; /* when it was first sent */
	uint64_t due;	      /* beacon or close to send; ASSOC_NEVER */
	uint64_t deadline;    /* UP: without an acknowledged beacon until then it is down */
};

struct assoc_dial_state {
	struct assoc_addr addr;
	uint64_t want_lifecycle;
	uint64_t due, wait; /* next INIT, and the pause after it */
	uint64_t init_sent;
	uint32_t slot; /* or ASSOC_NONE */
	uint8_t cookie[WIRE_COOKIE_BYTES];
	uint8_t cookie_tries; /* 0: no cookie */
	bool is_used;
	bool is_up;
	bool is_refusal_queued;
};

struct assoc_queued {
	uint8_t type, reason;
	uint32_t slot, dial;
};

struct assoc {
	struct assoc_params p;
	struct assoc_env env;
	struct assoc_slot *slots;
	struct assoc_dial_state *dials;
	uint32_t *buckets; /* first slot of each RID bucket */
	uint32_t bucket_mask;
	uint32_t free; /* first free slot, or ASSOC_NONE */
	uint32_t n_up, n_closing;
	bool is_stopping;
	struct siphash_key rid_key;
	struct siphash_key secret[2]; /* by parity of their epoch */
	uint64_t secret_epoch;
	uint64_t bucket_ns, bucket_at; /* answers that may be given, as time */
	uint64_t next_due;	       /* nothing is due before; assoc_tx() then looks at all */
	uint64_t next_deadline;
	uint32_t sweep; /* where assoc_tx() is: dials, then slots */
	uint64_t sweep_next;
	struct assoc_queued *events; /* ring; an association has at most UP and DOWN in it */
	uint32_t ev_mask, ev_head, ev_tail;
	bool has_conflict; /* not taken yet; until then no other is kept */
	struct spl_name conflict;
};

/* assoc.c */
uint32_t assoc_slot_take(struct assoc *a); /* with a fresh id, DIALING; ASSOC_NONE = full */
void assoc_slot_put(struct assoc *a, uint32_t slot);
struct assoc_slot *assoc_slot_by_id(const struct assoc *a, uint64_t rx_id); /* not FREE */
uint32_t assoc_slot_by_rid(const struct assoc *a, struct pack_bytes rid);   /* UP; ASSOC_NONE */
void assoc_slot_up(struct assoc *a, uint32_t slot, const struct wire_self *self,
		   const struct assoc_addr *addr, uint32_t dial, uint64_t now);
void assoc_slot_down(struct assoc *a, uint32_t slot, enum assoc_down reason, uint64_t now);
void assoc_push(struct assoc *a, uint8_t type, uint8_t reason, uint32_t slot, uint32_t dial);
void assoc_due(struct assoc *a, uint64_t *due, uint64_t at);
void assoc_closed(struct assoc *a, uint32_t slot); /* the peer confirmed, or we give up */
void assoc_self(const struct assoc *a, uint64_t rx_id, struct wire_self *out);

static inline bool assoc_addr_equal(const struct assoc_addr *x, const struct assoc_addr *y)
{
	return memcmp(x->b, y->b, sizeof(x->b)) == 0;
}

/* assoc_cookie.c */
void assoc_cookie_make(struct assoc *a, const struct assoc_addr *from, const struct wire_init *m,
		       uint64_t now, uint8_t out[WIRE_COOKIE_BYTES]);
bool assoc_cookie_is_valid(struct assoc *a, const struct assoc_addr *from,
			   const struct wire_init *m, uint64_t now);
bool assoc_may_answer(struct assoc *a, uint64_t now); /* takes one answer from the bound */

#endif
