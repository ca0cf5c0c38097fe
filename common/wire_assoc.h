/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire, part 2: bodies of association packets, behind the common header (wire.h).
 * docs/wire.md is the specification. Pure; any thread; owns nothing; getters hand out views.
 */
#ifndef SPL_COMMON_WIRE_ASSOC_H
#define SPL_COMMON_WIRE_ASSOC_H

#include <spotlane/ids.h>

#include "common/wire.h"

#define WIRE_NONCE_BYTES  16
#define WIRE_COOKIE_BYTES 16
/* Every INIT has this size, zeros at its end: no answer is longer, so nothing is amplified. */
#define WIRE_INIT_BYTES	  640
#define WIRE_BEACON_BYTES (WIRE_HDR_BYTES + 16)
#define WIRE_CLOSE_BYTES  (WIRE_HDR_BYTES + 16)

/* What a node says of itself, in INIT and ACCEPT:
 *   lifecycle u64, flow id u64 (for packets to it), lanes u8, zero u8, base port u16, message
 * window u16, zero u16, message bytes u32, first credit u32 (application), u32 (infrastructure),
 * zero u32, text8 mesh, text8 RID
 */
struct wire_self {
	uint64_t lifecycle;
	uint64_t id;	    /* non-zero */
	uint8_t lanes;	    /* 1..SPL_LANES_MAX */
	uint16_t base_port; /* 0: everything goes to the address the INIT came from (a client) */
	uint16_t
		window; /* message sequences in flight that it accepts, a power of two, 16..32768 */
	uint32_t msg_bytes;	       /* largest link message that it accepts */
	uint32_t credit[WIRE_CLASSES]; /* that each flow to it begins with */
	struct pack_bytes mesh;
	struct pack_bytes rid;
};

/* Where the sender's id stands in an INIT: header, nonce and this are the same in every version. */
#define WIRE_INIT_ID_AT (WIRE_HDR_BYTES + WIRE_NONCE_BYTES + WIRE_COOKIE_BYTES + 16)

/* INIT: nonce (16), cookie (16, zero in the first), lifecycle wanted u64 (0 = any), self, zeros */
struct wire_init {
	uint8_t nonce[WIRE_NONCE_BYTES];
	uint8_t cookie[WIRE_COOKIE_BYTES];
	uint64_t want_lifecycle;
	struct wire_self self;
};

/* COOKIE: nonce (16), cookie (16) */
struct wire_cookie {
	uint8_t nonce[WIRE_NONCE_BYTES];
	uint8_t cookie[WIRE_COOKIE_BYTES];
};

/* ACCEPT: nonce (16), self */
struct wire_accept {
	uint8_t nonce[WIRE_NONCE_BYTES];
	struct wire_self self;
};

/* X(number, SYMBOL, "name", "help"): why an association is refused. */
#define WIRE_REFUSALS(X) \
	X(1, VERSION, "version", "no common wire version") \
	X(2, MESH, "mesh", "another mesh") \
	X(3, CAPACITY, "capacity", "no room for another association") \
	X(4, SHUTDOWN, "shutdown", "the node takes no new work") \
	X(5, LIFECYCLE, "lifecycle", "not, or no longer, the lifecycle that was wanted or is known")

enum wire_refusal {
#define SPL_X(num, sym, name, help) WIRE_REFUSE_##sym = num,
	WIRE_REFUSALS(SPL_X)
#undef SPL_X
};

/* REFUSE: nonce (16), reason u8, lowest version u8, highest version u8, zero (5), lifecycle u64 */
struct wire_refuse {
	uint8_t nonce[WIRE_NONCE_BYTES];
	uint8_t reason; /* enum wire_refusal */
	uint64_t lifecycle;
};

/* X(number, SYMBOL, "name", "help"): why an association ended, in CLOSE. */
#define WIRE_CLOSINGS(X) \
	X(1, NORMAL, "normal", "the node does not need it any more") \
	X(2, SHUTDOWN, "shutdown", "the node stops") \
	X(3, UNKNOWN, "unknown", "answer to a beacon of an association that is not known")

enum wire_closing {
#define SPL_X(num, sym, name, help) WIRE_CLOSE_##sym = num,
	WIRE_CLOSINGS(SPL_X)
#undef SPL_X
};

/* CLOSE: reason u8, answer u8 (1 = confirms a CLOSE), zero (6), sender's id u64. The header's
 * number is 0; when the reason is UNKNOWN, the number of the packet that is answered. */
struct wire_close {
	uint8_t reason; /* enum wire_closing */
	uint8_t is_answer;
	uint64_t self; /* flow id for packets to the sender, 0 when it has none */
};

/* BEACON, BEACON_ACK: sender's id u64, zero (8). The header's number is the beacon id. */

/* Putters write header and body and return the bytes of the packet (all fit WIRE_INIT_BYTES). */
size_t wire_init_put(uint8_t *p, const struct wire_init *m);
size_t wire_cookie_put(uint8_t *p, uint64_t id, const struct wire_cookie *m);
size_t wire_accept_put(uint8_t *p, uint64_t id, const struct wire_accept *m);
size_t wire_refuse_put(uint8_t *p, uint64_t id, const struct wire_refuse *m);
size_t wire_beacon_put(uint8_t *p, uint64_t id, uint64_t beacon, uint64_t self, bool is_ack);
size_t wire_close_pkt_put(uint8_t *p, uint64_t id, uint64_t number, const struct wire_close *m);

/* Getters take the whole packet, whose header wire_hdr_get() has accepted. 0 or -EBADMSG. */
int wire_init_get(struct wire_init *m, const uint8_t *p, size_t len);
int wire_cookie_get(struct wire_cookie *m, const uint8_t *p, size_t len);
int wire_accept_get(struct wire_accept *m, const uint8_t *p, size_t len);
int wire_refuse_get(struct wire_refuse *m, const uint8_t *p, size_t len);
int wire_beacon_get(uint64_t *self, const uint8_t *p, size_t len);
int wire_close_pkt_get(struct wire_close *m, const uint8_t *p, size_t len);

#endif
