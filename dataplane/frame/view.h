/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the frame rooms share: the identity of a port and one received frame.
 *
 * Pure: no rte_ header, no I/O. A frame_local is constant after start and is read by every lane. A
 * frame_view is a lane's scratch for one frame of a burst; it owns nothing, the bytes stay the
 * mbuf's. IPv4 addresses in structs are in host byte order everywhere, 10.0.0.1 = 0x0a000001.
 */
#ifndef SPL_FRAME_VIEW_H
#define SPL_FRAME_VIEW_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FRAME_ETH_BYTES	   14u
#define FRAME_IP_BYTES	   20u
#define FRAME_UDP_BYTES	   8u
#define FRAME_HDR_BYTES	   (FRAME_ETH_BYTES + FRAME_IP_BYTES + FRAME_UDP_BYTES) /* what we send */
#define FRAME_ARP_BYTES	   28u
#define FRAME_LANES_MAX	   128u
#define FRAME_AGENT_OFFSET 256u /* of the agent's UDP port from the base */
#define FRAME_LEN_MAX	   (FRAME_ETH_BYTES + 65535u)
#define FRAME_ETH_MIN	   60u /* shortest frame on a wire, without its check sequence */

/* Who we are on one port; constant after start. */
struct frame_local {
	uint8_t mac[6];
	uint8_t prefix;	 /* 0..32 */
	uint8_t n_lanes; /* 1..128: how many lanes the destination ports steer to */
	uint8_t rx;	 /* FRAME_RX_* that hold for every frame of the port (PARTIAL) */
	uint32_t ip;
	uint32_t gateway;  /* 0: none */
	uint16_t udp_base; /* lane j: base + j, base + 128 + j; agent: base + 256 */
	uint16_t mtu;	   /* bytes of an IP datagram */
	/* derived by frame_local_ready(), for the fast path */
	uint64_t mac_word; /* mac and two bytes 0, as they stand in a frame */
	uint32_t ip_net;   /* ip as it stands in a frame */
	uint32_t host;	   /* mask of the host part */
};

/* What the port says about the checksums of a frame (frame_view.rx). Nothing set: verify here. */
#define FRAME_RX_IP_GOOD    0x01u
#define FRAME_RX_IP_BAD	    0x02u
#define FRAME_RX_L4_GOOD    0x04u /* also: data known valid, field not filled (virtio "none") */
#define FRAME_RX_L4_BAD	    0x08u
/* The port's peer may be this machine's own kernel, which hands over frames whose UDP sum is not
 * finished: only the pseudo header's, for a device to complete. Such a frame was on no wire. */
#define FRAME_RX_L4_PARTIAL 0x10u

enum frame_kind {
	FRAME_DROP = 0, /* reason says why */
	FRAME_DATA,	/* UDP for a lane: lane, cls, payload */
	FRAME_AGENT,	/* UDP for the agent's port: payload */
	FRAME_ARP,	/* ARP, not looked into yet: arp_input() */
	FRAME_ICMP,	/* IPv4 ICMP for us, IP header valid: icmp_echo() */
	FRAME_OTHER,	/* sound, but for somebody else: counted as SPL_USE_OTHER_HOST */
	FRAME_KIND_COUNT
};

enum frame_class {
	FRAME_CLS_APP = 0,
	FRAME_CLS_INFRA = 1,
};

struct frame_view {
	uint8_t *data;	/* in: first byte of the Ethernet header; len bytes are contiguous */
	uint32_t len;	/* in: bytes of the frame, padding included */
	uint8_t kind;	/* out: enum frame_kind */
	uint8_t lane;	/* out: FRAME_DATA */
	uint8_t cls;	/* out: FRAME_DATA, enum frame_class */
	uint8_t rx;	/* in: FRAME_RX_* */
	uint8_t reason; /* out: enum spl_frame_drop if kind is FRAME_DROP, else undefined */
	uint8_t unused;
	uint16_t src_port; /* out: DATA, AGENT */
	uint32_t src_ip;   /* out: DATA, AGENT, ICMP */
	uint16_t
		payload_off; /* out: DATA, AGENT: UDP payload; ICMP: ICMP header; ARP: its header */
	uint16_t payload_len; /* out: bytes there, Ethernet padding trimmed */
};

static inline const uint8_t *frame_payload(const struct frame_view *v)
{
	return v->data + v->payload_off;
}

static inline uint16_t frame_be16(const uint8_t *p)
{
	uint16_t x;

	memcpy(&x, p, 2);
	return __builtin_bswap16(x);
}

static inline uint32_t frame_be32(const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, 4);
	return __builtin_bswap32(x);
}

static inline void frame_put16(uint8_t *p, uint16_t x)
{
	x = __builtin_bswap16(x);
	memcpy(p, &x, 2);
}

static inline void frame_put32(uint8_t *p, uint32_t x)
{
	x = __builtin_bswap32(x);
	memcpy(p, &x, 4);
}

/* The network mask of a prefix length 0..32. */
static inline uint32_t frame_mask(uint8_t prefix)
{
	return (uint32_t)(~0ull << (32 - prefix));
}

/* Sets the derived fields; after the others, before any frame. */
static inline void frame_local_ready(struct frame_local *l)
{
	l->mac_word = 0;
	memcpy(&l->mac_word, l->mac, 6);
	frame_put32((uint8_t *)&l->ip_net, l->ip);
	l->host = ~frame_mask(l->prefix);
}

/* Can this address be one host of our network? Not 0.x, loopback, multicast, reserved, ours, nor
 * the network's own or broadcast address (below /31, RFC 3021). Bit operations: on the fast path.
 * Any thread. */
static inline bool frame_host_ok(const struct frame_local *l, uint32_t ip)
{
	uint32_t host = l->host, part = ip & host;
	bool is_unicast = ip - 0x01000000u < 0xdf000000u; /* 1.0.0.0 to 223.255.255.255 */
	bool is_near = ((ip ^ l->ip) & ~host) == 0;

	return is_unicast & (ip >> 24 != 127) & (ip != l->ip) &
	       !(is_near & (host > 1) & ((part == 0) | (part == host)));
}

/* The address to resolve for a datagram to `dst`: dst itself on our network, else the gateway; 0
 * when there is no way (no gateway, or dst is no host address). Any thread. */
static inline uint32_t frame_next_hop(const struct frame_local *l, uint32_t dst)
{
	if (!frame_host_ok(l, dst))
		return 0;
	if (((dst ^ l->ip) & ~l->host) == 0)
		return dst;
	return l->gateway;
}

#endif
