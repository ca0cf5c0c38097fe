/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire, part 1: big-endian loads and stores, the packet header, the records of a FLOW packet.
 * docs/wire.md is the specification. Part 2 is wire_assoc.h (bodies of association packets), part 3
 * wire_msg.h (message header, metadata, control messages).
 * Pure; any thread; owns nothing. Encoders write into the caller's memory, decoders hand out views.
 */
#ifndef SPL_COMMON_WIRE_H
#define SPL_COMMON_WIRE_H

#include <spotlane/limits.h>
#include <spotlane/packets.h>
#include <spotlane/reasons.h>

#include "common/pack.h"

#define WIRE_VERSION	1
#define WIRE_PORT_APP	0   /* UDP port of lane j, application class: base + WIRE_PORT_APP + j */
#define WIRE_PORT_INFRA 128 /* the same for the infrastructure class */
#define WIRE_PORT_AGENT 256 /* base + WIRE_PORT_AGENT: association packets */

enum wire_class { WIRE_APP = 0, WIRE_INFRA = 1, WIRE_CLASSES = 2 };

/* Unaligned big-endian access. */
#define WIRE_INT(T, bits, swap) \
	static inline T wire_load_u##bits(const void *p) \
	{ \
		T v; \
		memcpy(&v, p, sizeof(v)); \
		return swap(v); \
	} \
	static inline void wire_store_u##bits(void *p, T v) \
	{ \
		v = swap(v); \
		memcpy(p, &v, sizeof(v)); \
	} \
	static inline void wire_put_u##bits(struct pack_writer *w, T v) \
	{ \
		uint8_t b[sizeof(v)]; \
		wire_store_u##bits(b, v); \
		pack_put(w, b, sizeof(b)); \
	} \
	static inline T wire_get_u##bits(struct pack_reader *r) \
	{ \
		const void *b = pack_take(r, sizeof(T)); \
		return b ? wire_load_u##bits(b) : 0; \
	}
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
WIRE_INT(uint16_t, 16, __builtin_bswap16)
WIRE_INT(uint32_t, 32, __builtin_bswap32)
WIRE_INT(uint64_t, 64, __builtin_bswap64)
#else
WIRE_INT(uint16_t, 16, )
WIRE_INT(uint32_t, 32, )
WIRE_INT(uint64_t, 64, )
#endif
#undef WIRE_INT

/* Header of every packet, 40 bytes:
 *   0 version (high nibble) and kind   1 flags   2 key epoch   3 source lane   4 destination lane
 *   5 zero (3)   8 flow id, chosen by the receiver   16 number   24 tag (16)
 * Key epoch and tag are zero until keys exist. In association packets flags and lanes are zero.
 */
#define WIRE_HDR_BYTES	40
#define WIRE_FLAG_INFRA 0x01 /* FLOW: the infrastructure class */

struct wire_hdr {
	uint8_t kind; /* enum spl_packet_kind */
	uint8_t cls;  /* enum wire_class; 0 in association packets */
	uint8_t src_lane;
	uint8_t dst_lane;
	uint64_t id;	 /* flow id; 0 in INIT */
	uint64_t number; /* FLOW: packet number; BEACON, BEACON_ACK: beacon id; otherwise 0 */
};

/* Writes `h` to `p` (WIRE_HDR_BYTES). */
static inline void wire_hdr_put(uint8_t *p, const struct wire_hdr *h)
{
	p[0] = (uint8_t)(WIRE_VERSION << 4 | h->kind);
	p[1] = h->cls;
	p[2] = 0;
	p[3] = h->src_lane;
	p[4] = h->dst_lane;
	memset(p + 5, 0, 3);
	wire_store_u64(p + 8, h->id);
	wire_store_u64(p + 16, h->number);
	memset(p + 24, 0, 16);
}

/* The same for any packet, also a wrong one; what wire_hdr_get() does when it is not a usual one.
 */
int wire_hdr_get_any(struct wire_hdr *h, const uint8_t *p, size_t len, enum spl_frame_drop *drop);

/* Decodes and checks the header of a packet of `len` bytes. 0, or -1 with the reason in `*drop`
 * (LINK_SHORT, LINK_VERSION, LINK_KIND, LINK_FLAGS) and `h` untouched. */
static inline int wire_hdr_get(struct wire_hdr *h, const uint8_t *p, size_t len,
			       enum spl_frame_drop *drop)
{
	/* a FLOW packet, but for class and lanes, in two comparisons */
	const uint64_t fixed = ~((uint64_t)WIRE_FLAG_INFRA << 48 | 0xffffULL << 24);
	const uint64_t flow = (uint64_t)(WIRE_VERSION << 4 | SPL_PKT_FLOW) << 56;
	uint64_t head, tag;

	if (__builtin_expect(len < WIRE_HDR_BYTES, 0))
		return wire_hdr_get_any(h, p, len, drop);
	head = wire_load_u64(p);
	tag = wire_load_u64(p + 24) | wire_load_u64(p + 32);
	if (__builtin_expect((head & fixed) != flow || tag != 0, 0))
		return wire_hdr_get_any(h, p, len, drop);
	h->kind = SPL_PKT_FLOW;
	h->cls = (uint8_t)(head >> 48 & WIRE_FLAG_INFRA);
	h->src_lane = (uint8_t)(head >> 32);
	h->dst_lane = (uint8_t)(head >> 24);
	h->id = wire_load_u64(p + 8);
	h->number = wire_load_u64(p + 16);
	return 0;
}

/* Kind of a packet of which at least one byte is there; what steers a frame to lane or agent. */
static inline unsigned wire_kind(const uint8_t *p)
{
	return p[0] & 0x0f;
}

/* The fields a lane needs to find a flow, from a packet of at least WIRE_HDR_BYTES. */
static inline uint64_t wire_flow_id(const uint8_t *p)
{
	return wire_load_u64(p + 8);
}

static inline unsigned wire_flow_class(const uint8_t *p)
{
	return p[1] & WIRE_FLAG_INFRA;
}

static inline unsigned wire_flow_src_lane(const uint8_t *p)
{
	return p[3];
}

static inline unsigned wire_flow_dst_lane(const uint8_t *p)
{
	return p[4];
}

/* True when bytes 0..7 are those of a FLOW packet of the application class to lane `lane`. */
static inline bool wire_is_app_to(const uint8_t *p, unsigned lane)
{
	const uint64_t flow = (uint64_t)(WIRE_VERSION << 4 | SPL_PKT_FLOW) << 56;

	return (wire_load_u64(p) & ~(0xffULL << 32)) ==
	       (flow | (uint64_t)lane << 24); /* from any */
}

/* The association table slot in a flow id; the rest are 48 random bits. */
static inline unsigned wire_id_slot(uint64_t id)
{
	return (unsigned)(id & 0xffff);
}

/* Records (kind in byte 0), packed one after another behind the header:
 *   MESSAGE        1 zero        2 length u16   4 sequence u32   8 bytes
 *   FRAGMENT       1 zero        2 length u16   4 sequence u32   8 offset u32   12 total u32   16
 * bytes ACK            1 class       2 ranges u8 (1..32)   3 zero   4 delay u32, ns   8 largest u64
 *                  16 ranges times {missing u16, received u16}, downwards from largest
 *   CREDIT         1 class       2 epoch u16    4 zero (4)       8 limit u64
 *   CREDIT_WANTED  1 class       2 epoch u16    4 zero (4)       8 wanted u64
 *   PING           1 zero (3)
 */
#define WIRE_MESSAGE_BYTES   8
#define WIRE_FRAGMENT_BYTES  16
#define WIRE_ACK_BYTES	     16
#define WIRE_ACK_RANGE_BYTES 4
#define WIRE_ACK_RANGES_MAX  32
#define WIRE_CREDIT_BYTES    16
#define WIRE_PING_BYTES	     4
#define WIRE_FRAGMENT_UNIT   8 /* offsets, and all lengths but a message's last, are multiples */

/* Receive window of packet numbers: an older number is dropped. */
#define WIRE_NUMBER_WINDOW   1024

/* Bytes of credit that a message of `len` bytes costs: what it pins at the receiver. */
static inline uint32_t wire_charge(uint32_t len)
{
	return (len + 64 + 255) & ~(uint32_t)255;
}

/* Bytes of the largest link message of a node whose payloads may have `payload` bytes: header,
 * intent and metadata, or the largest control message. */
static inline uint32_t wire_message_bytes(uint32_t payload)
{
	return payload + 48 + 2 * (1 + SPL_NAME_BYTES_MAX) + SPL_METADATA_BYTES_MAX;
}

#endif
