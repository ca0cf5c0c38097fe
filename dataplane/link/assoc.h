/* SPDX-License-Identifier: BSD-3-Clause */
/* Associations: the handshakes, beacons and closes of all peers of a node or client, in one bounded
 * table. Pure: packets and time in, packets and events out.
 *
 * Threads: one (the agent's, the client's, the simulator's). Lanes get what they need of a peer by
 * a copy that the host publishes from the UP event. Memory: the host gives assoc_bytes() bytes;
 * nothing else is owned. Time: nanoseconds of one monotonic clock; it must count while the machine
 * sleeps.
 *
 * Use. Packet to the agent's port: assoc_rx(). Then, and when assoc_next_timer() has come:
 * assoc_tx() until it returns 0, assoc_event() until it returns false. After a DOWN event the host
 * ends the flows of that slot, and when no lane can name it any more calls assoc_release(); only
 * then is the slot used again (A-LIVE-7). Ids are random, so that an old one never finds a new
 * peer. Clauses: A-LIVE-1, 2, 4, 6, 7, 8, 9.
 */
#ifndef SPL_LINK_ASSOC_H
#define SPL_LINK_ASSOC_H

#include "common/wire_assoc.h"

struct assoc;

#define ASSOC_NEVER UINT64_MAX
#define ASSOC_NONE  UINT32_MAX

/* Transport address, opaque: compared and hashed as bytes (16 address, 2 port by convention). */
struct assoc_addr {
	uint8_t b[18];
};

struct assoc_env {
	void *host;
	void (*random)(void *host, void *out, size_t bytes); /* of cryptographic quality */
};

struct assoc_params {
	uint32_t slots;	    /* associations, 1..65535; keep some spare for slots not yet released */
	uint32_t dials;	    /* peers this side connects to, 0..slots */
	bool is_passive;    /* answers INIT (a node) or not (a client) */
	uint64_t lifecycle; /* of this process, non-zero, larger for a later one of the same RID */
	uint8_t lanes;
	uint16_t base_port;	       /* 0 for a client */
	uint16_t window;	       /* flow_params.rx_slots */
	uint32_t msg_bytes;	       /* flow_params.msg_bytes */
	uint32_t credit[WIRE_CLASSES]; /* flow_params.credit_min */
	struct spl_name mesh, rid;
	uint64_t beacon_ns;		       /* default 5 s */
	uint64_t beacon_again_ns;	       /* the same id again, default 1 s */
	uint64_t deadline_ns;		       /* default 15 s */
	uint64_t dial_min_ns, dial_max_ns;     /* retry of a dial, doubling: default 100 ms, 5 s */
	uint32_t answers_per_s, answers_burst; /* bound of handshake answers: default 2000, 500 */
};

/* X(number, SYMBOL, "name", "help"): why an association is down. */
#define ASSOC_DOWNS(X) \
	X(1, DEADLINE, "deadline", "no acknowledged beacon for the deadline") \
	X(2, CLOSED, "closed", "closed by the peer") \
	X(3, LOCAL, "local", "closed by this side") \
	X(4, REPLACED, "replaced", "the same lifecycle of the peer connected anew") \
	X(5, LIFECYCLE, "lifecycle", "another lifecycle of the peer connected") \
	X(6, LOST, "lost", "the peer does not know the association")

enum assoc_down {
#define SPL_X(num, sym, name, help) ASSOC_DOWN_##sym = num,
	ASSOC_DOWNS(SPL_X)
#undef SPL_X
};

/* A peer while its association is up, and after that until assoc_release(). */
struct assoc_peer {
	uint64_t rx_id; /* in packets to us; its slot is wire_id_slot(rx_id) */
	uint64_t tx_id; /* in packets to the peer */
	uint64_t lifecycle;
	struct assoc_addr addr;
	struct spl_name rid;
	uint8_t lanes;
	uint16_t base_port; /* 0: a client, all frames go to `addr` */
	uint16_t window;
	uint32_t msg_bytes;
	uint32_t credit[WIRE_CLASSES];
	uint32_t dial;	 /* our dial that made it, or ASSOC_NONE */
	uint64_t rtt_ns; /* of the handshake or the last beacon */
};

enum assoc_event_type { ASSOC_UP = 1, ASSOC_DOWN = 2, ASSOC_REFUSED = 3 };

struct assoc_event {
	uint8_t type;		       /* enum assoc_event_type */
	uint8_t reason;		       /* DOWN: enum assoc_down; REFUSED: enum wire_refusal */
	uint32_t slot;		       /* UP, DOWN */
	uint32_t dial;		       /* dial concerned, or ASSOC_NONE */
	const struct assoc_peer *peer; /* UP, DOWN: valid until assoc_release(slot) */
};

/* One answer: `len` bytes to send back to where the packet came from; 0 = none. */
struct assoc_answer {
	uint32_t len;
	uint8_t b[WIRE_INIT_BYTES];
};

struct assoc_result {
	uint8_t use;  /* enum spl_frame_use when not dropped */
	uint8_t drop; /* enum spl_frame_drop, or ASSOC_NO_DROP */
};
#define ASSOC_NO_DROP 0xff

/* Fills `p` with the defaults; the caller sets identity, roles and sizes. */
void assoc_params_default(struct assoc_params *p);

/* Bytes of memory; 0 when a parameter is out of range. */
size_t assoc_bytes(const struct assoc_params *p);

/* Makes the table in `mem` (64-byte aligned). NULL with errno EINVAL. */
struct assoc *assoc_init(void *mem, const struct assoc_params *p, const struct assoc_env *env,
			 uint64_t now_ns);

/* Takes in an association packet (the UDP payload) that came from `from`. `answer` is always set;
 * it is never longer than the packet. */
struct assoc_result assoc_rx(struct assoc *a, const struct assoc_addr *from, const uint8_t *pkt,
			     uint32_t len, uint64_t now_ns, struct assoc_answer *answer);

/* The next packet of ours that is due: its bytes in `out` (`room` >= WIRE_INIT_BYTES), 0 = none. */
uint32_t assoc_tx(struct assoc *a, uint8_t *out, uint32_t room, struct assoc_addr *to,
		  uint64_t now_ns);

/* Takes the RID of a newcomer that was refused because this side, or a later lifecycle of a peer,
 * has it. One is kept until it is taken, and those that come meanwhile are not. False: none. */
bool assoc_conflict(struct assoc *a, struct spl_name *rid);

/* When assoc_tx() or assoc_event() may have something; ASSOC_NEVER for never. */
uint64_t assoc_next_timer(const struct assoc *a);

/* Takes the next event. Missed deadlines are found here, so call it at assoc_next_timer(). */
bool assoc_event(struct assoc *a, uint64_t now_ns, struct assoc_event *out);

/* Connects to `addr` and stays connected: retries with backoff, again after each end, until
 * assoc_hangup(). `want_lifecycle` 0 = any. Dial number; -ENOSPC when all are used. */
int assoc_dial(struct assoc *a, const struct assoc_addr *addr, uint64_t want_lifecycle,
	       uint64_t now_ns);

/* Ends a dial, and its association with an orderly close. */
void assoc_hangup(struct assoc *a, uint32_t dial, uint64_t now_ns);

/* Closes the association of `slot` in order; DOWN(LOCAL) comes at once. The peer is told until it
 * confirms, a few times at most. No-op when it is not up. A dial connects again. */
void assoc_close(struct assoc *a, uint32_t slot, enum wire_closing reason, uint64_t now_ns);

/* The host's lanes have forgotten `slot` after its DOWN event. */
void assoc_release(struct assoc *a, uint32_t slot);

/* Refuses newcomers from now on and closes every association and dial (SHUTDOWN). */
void assoc_shutdown(struct assoc *a, uint64_t now_ns);

/* Associations up, and closes not confirmed yet: zero closing means a stop needs to wait no more.
 */
uint32_t assoc_count(const struct assoc *a);
uint32_t assoc_closing(const struct assoc *a);

/* The peer of an association that is up, by the flow id in packets to us; NULL otherwise. */
const struct assoc_peer *assoc_find(const struct assoc *a, uint64_t rx_id);

#endif
