/* SPDX-License-Identifier: BSD-3-Clause */
/* Frame builders for tests. Every field can be overridden, so that each way of being wrong is one
 * assignment away from a good frame. Checksums are computed byte by byte here, on purpose not by
 * the code under test.
 */
#ifndef SPL_T_FRAME_H
#define SPL_T_FRAME_H

#include "dataplane/frame/view.h"

#define T_FRAME_MAX 9300u /* bytes that a buffer for any builder needs */
#define T_AUTO	    (-1)  /* "compute it" */

/* An Ethernet + IPv4 (+ UDP, when proto is 17) frame. T_AUTO fields are computed from the rest. */
struct t_frame {
	uint8_t dst[6], src[6];
	int vlan; /* tag control information, or T_AUTO: no tag */
	int ethertype;
	int version, ihl; /* T_AUTO: 4, and 5 + the words of options */
	int total_len, frag, ttl, proto, ip_csum;
	uint16_t ip_id;
	const uint8_t *options; /* NULL: filled with 1 (no operation) */
	unsigned option_words;
	uint32_t src_ip, dst_ip;
	uint16_t sport, dport;
	int udp_len, udp_csum;
	const void *payload; /* NULL: filled with 0, 1, 2 ... */
	unsigned payload_len;
	unsigned pad; /* bytes of 0xee behind the datagram */
};

/* A local with every field set: 02:00:00:00:00:01, 10.0.0.1/24, gateway 10.0.0.254, base 40000. */
struct frame_local t_local(unsigned n_lanes);

/* A good datagram from 10.0.0.2 (02:00:00:00:00:02), port 50000, to lane `lane`, application class.
 */
struct t_frame t_frame_udp(const struct frame_local *l, unsigned lane);

/* Writes the frame; returns its length, at most T_FRAME_MAX. */
size_t t_frame_write(const struct t_frame *f, uint8_t *out);

struct t_arp {
	uint8_t dst[6], src[6];
	uint16_t htype, ptype, op;
	uint8_t hlen, plen;
	uint8_t sender[6], target[6];
	uint32_t sender_ip, target_ip;
};

/* A request by 10.0.0.2 for l->ip, broadcast. */
struct t_arp t_frame_arp(const struct frame_local *l);
size_t t_arp_write(const struct t_arp *a, uint8_t *out);

/* An echo request of `len` data bytes as ICMP message (8 + len bytes) for t_frame.payload. */
size_t t_icmp_echo(uint16_t id, uint16_t seq, unsigned len, uint8_t *out);

/* RFC 1071 over one piece, byte by byte; the value for a checksum field, host order. */
uint16_t t_csum(const uint8_t *p, size_t len, uint32_t start);

/* Checks a frame we sent: lengths, IP and UDP checksums right, DF set, exactly as long as it says
 * (padding up to 60 bytes allowed). NULL, or what is wrong. */
const char *t_frame_check(const uint8_t *p, size_t len);

/* Holds frame_expected() against frame_classify() for every lane of `l`, with checksums that a port
 * has vouched for: false when they disagree about the frame at `p`. */
bool t_frame_expected_agrees(const struct frame_local *l, uint8_t *p, size_t len);

#endif
