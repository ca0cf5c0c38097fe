/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: from the bytes of a frame to "payload for lane j" or a named drop.
 *
 * Pure. Called on a lane for each received burst; also by tests and the fuzzer. Three functions
 * with one meaning: frame_classify() walks every check in order and names the first that fails;
 * frame_parse() below takes the one shape nearly all frames have (untagged, unicast to us, IPv4
 * without options, whole, UDP) with its checks joined into one branch, and calls frame_classify()
 * for the rest; frame_expected() only says whether a frame is of that shape and for the lane that
 * asks. A test and the fuzzer hold them against each other.
 *
 * No function reads a byte at or beyond data + len. Steering: UDP destination base + j is
 * the application class of lane j, base + 128 + j its infrastructure class, base + 256 the agent.
 */
#ifndef SPL_FRAME_PARSE_H
#define SPL_FRAME_PARSE_H

#include "dataplane/frame/csum.h"
#include "dataplane/frame/view.h"

#include <spotlane/reasons.h>

#include <endian.h>

/* Sets kind and the fields that go with it, or kind FRAME_DROP and the reason. Never fails. */
void frame_classify(const struct frame_local *l, struct frame_view *v);

/* frame_parse() over n views, prefetching ahead. */
void frame_parse_burst(const struct frame_local *l, struct frame_view *v, unsigned n);

/* Splits a UDP destination port. Returns FRAME_DATA with lane and class set, FRAME_AGENT, or
 * FRAME_DROP for a port that is not ours. */
static inline enum frame_kind frame_steer(const struct frame_local *l, uint16_t dst_port,
					  struct frame_view *v)
{
	uint32_t off = (uint32_t)dst_port - l->udp_base; /* below the base: wraps to large */

	v->lane = off & (FRAME_LANES_MAX - 1);
	v->cls = (off / FRAME_LANES_MAX) & 1;
	if (off < 2 * FRAME_LANES_MAX && v->lane < l->n_lanes)
		return FRAME_DATA;
	return off == FRAME_AGENT_OFFSET ? FRAME_AGENT : FRAME_DROP;
}

/* True when the checksums that the port did not vouch for are right. The frame has passed every
 * length check: IPv4 header of 20 bytes, UDP of udp_len bytes. */
static inline bool frame_sums_ok(const struct frame_view *v, uint16_t udp_len)
{
	const uint8_t *ip = v->data + FRAME_ETH_BYTES, *udp = ip + FRAME_IP_BYTES;

	if (v->rx & (FRAME_RX_IP_BAD | FRAME_RX_L4_BAD))
		return false;
	if (!(v->rx & FRAME_RX_IP_GOOD) && csum_fold(csum_header(ip)) != 0xffff)
		return false;
	if ((v->rx & FRAME_RX_L4_GOOD) || (udp[6] | udp[7]) == 0)
		return true;
	return csum_fold(csum_add(csum_pseudo(ip, udp_len), udp, udp_len)) == 0xffff;
}

/* Bytes 0..7, 8..15 and 16..23 of the frame in network order: what the fast path insists on. */
#define FRAME_FAST_MAC_MASK  htobe64(0xffffffffffff0100ull) /* ours; no group as source */
#define FRAME_FAST_TYPE	     htobe64(0x0000000008004500ull) /* IPv4, version 4, 20 byte header */
#define FRAME_FAST_TYPE_MASK htobe64(0x00000000ffffff00ull)
#define FRAME_FAST_UDP	     htobe64(0x0000000000000011ull) /* whole, UDP */
#define FRAME_FAST_UDP_MASK  htobe64(0x000000003fff00ffull)

/* Non-zero unless the frame is whole, unicast to us, IPv4 without options, UDP, with lengths that
 * agree. Bit operations only: nearly always zero, and no branch to guess. Wants FRAME_HDR_BYTES. */
static inline uint64_t frame_fast_bad(const struct frame_local *l, const uint8_t *d, uint32_t len,
				      uint32_t udp_len)
{
	uint64_t mac, type, udp;
	uint32_t dst, total;

	memcpy(&mac, d, 8);
	memcpy(&type, d + 8, 8);
	memcpy(&udp, d + 16, 8);
	memcpy(&dst, d + 30, 4);
	total = be64toh(udp) >> 48;
	return ((mac ^ l->mac_word) & FRAME_FAST_MAC_MASK) |
	       ((type ^ FRAME_FAST_TYPE) & FRAME_FAST_TYPE_MASK) |
	       ((udp ^ FRAME_FAST_UDP) & FRAME_FAST_UDP_MASK) | (dst ^ l->ip_net) |
	       ((total - udp_len) ^ FRAME_IP_BYTES) | (udp_len < FRAME_UDP_BYTES) |
	       (total > l->mtu) | (total > len - FRAME_ETH_BYTES);
}

/* Payload bytes of a frame that frame_parse() would call FRAME_DATA for the application class of
 * the lane whose UDP port is `port`, if its checksums are good and its source address is that of a
 * host of our network (frame_host_ok()): the caller makes sure of both. The payload is behind
 * FRAME_HDR_BYTES. 0: it may be anything else. Wants FRAME_HDR_BYTES. */
static inline uint32_t frame_expected(const struct frame_local *l, const uint8_t *d, uint32_t len,
				      uint16_t port)
{
	uint32_t ports = frame_be32(d + FRAME_HDR_BYTES - 8);
	uint32_t udp_len = frame_be32(d + FRAME_HDR_BYTES - 4) >> 16;
	uint64_t bad = frame_fast_bad(l, d, len, udp_len) | (ports < 0x10000) |
		       ((uint16_t)ports ^ port) | (len > FRAME_LEN_MAX);

	return bad ? 0 : udp_len - FRAME_UDP_BYTES;
}

static inline void frame_parse(const struct frame_local *l, struct frame_view *v)
{
	uint32_t ports, udp_len;

	if (__builtin_expect(v->len - FRAME_HDR_BYTES > FRAME_LEN_MAX - FRAME_HDR_BYTES, 0)) {
		frame_classify(l, v);
		return;
	}
	ports = frame_be32(v->data + FRAME_HDR_BYTES - 8);
	udp_len = frame_be32(v->data + FRAME_HDR_BYTES - 4) >> 16;
	v->src_ip = frame_be32(v->data + 26);
	v->src_port = (uint16_t)(ports >> 16);
	if (__builtin_expect((frame_fast_bad(l, v->data, v->len, udp_len) | (ports < 0x10000) |
			      !frame_host_ok(l, v->src_ip)) ||
				     !frame_sums_ok(v, (uint16_t)udp_len),
			     0)) {
		frame_classify(l, v);
		return;
	}
	v->payload_off = FRAME_HDR_BYTES;
	v->payload_len = (uint16_t)(udp_len - FRAME_UDP_BYTES);
	v->kind = frame_steer(l, (uint16_t)ports, v);
	v->reason = SPL_DROP_UDP_PORT;
}

#endif
