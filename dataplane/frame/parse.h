/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: from the bytes of a frame to "payload for lane j" or a named drop.
 *
 * Pure. Called on a lane for each received burst; also by tests and the fuzzer. Two functions with
 * one meaning: frame_classify() walks every check in order and names the first that fails;
 * frame_parse() below takes the one shape nearly all frames have (untagged, unicast to us, IPv4
 * without options, whole, UDP) with its checks joined into one branch, and calls frame_classify()
 * for the rest. A test and the fuzzer hold the two against each other.
 *
 * No function reads a byte at or beyond data + len. Steering: UDP destination base + j is
 * the application class of lane j, base + 128 + j its infrastructure class, base + 256 the agent.
 */
#ifndef SPL_FRAME_PARSE_H
#define SPL_FRAME_PARSE_H

#include "dataplane/frame/csum.h"
#include "dataplane/frame/view.h"

#include <spotlane/reasons.h>

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
	if (!(v->rx & FRAME_RX_IP_GOOD) && csum_fold(csum_add(0, ip, FRAME_IP_BYTES)) != 0xffff)
		return false;
	if ((v->rx & FRAME_RX_L4_GOOD) || (udp[6] | udp[7]) == 0)
		return true;
	return csum_fold(csum_add(csum_pseudo(ip, udp_len), udp, udp_len)) == 0xffff;
}

static inline void frame_parse(const struct frame_local *l, struct frame_view *v)
{
	const uint8_t *d = v->data, *ip = d + FRAME_ETH_BYTES, *udp = ip + FRAME_IP_BYTES;
	uint16_t total, udp_len;
	uint32_t bad;

	if (__builtin_expect(v->len < FRAME_HDR_BYTES || v->len > FRAME_LEN_MAX, 0)) {
		frame_classify(l, v);
		return;
	}
	total = frame_be16(ip + 2);
	udp_len = frame_be16(udp + 4);
	v->src_ip = frame_be32(ip + 12);
	v->src_port = frame_be16(udp);
	bad = (frame_be32(d) ^ frame_be32(l->mac)) | (frame_be16(d + 4) ^ frame_be16(l->mac + 4));
	bad |= (d[6] & 1u) | (frame_be16(d + 12) ^ 0x0800u);
	bad |= (frame_be16(ip) & 0xff00u) ^ 0x4500u;
	bad |= frame_be16(ip + 6) & 0x3fffu;
	bad |= ip[9] ^ 17u;
	bad |= frame_be32(ip + 16) ^ l->ip;
	bad |= (uint32_t)(total - udp_len) ^ FRAME_IP_BYTES;
	bad |= (udp_len < FRAME_UDP_BYTES) | (total > l->mtu) | (v->src_port == 0);
	bad |= total > v->len - FRAME_ETH_BYTES;
	if (__builtin_expect(bad != 0 || !frame_host_ok(l, v->src_ip) || !frame_sums_ok(v, udp_len),
			     0)) {
		frame_classify(l, v);
		return;
	}
	v->payload_off = FRAME_HDR_BYTES;
	v->payload_len = udp_len - FRAME_UDP_BYTES;
	v->kind = frame_steer(l, frame_be16(udp + 2), v);
	v->reason = SPL_DROP_UDP_PORT;
}

#endif
