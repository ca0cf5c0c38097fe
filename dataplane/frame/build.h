/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: headers of the frames we send: Ethernet, IPv4 without options, UDP. Pure; any thread.
 *
 * Every datagram has DF set and TTL 64. The IP header's checksum is always complete;
 * UDP's is left 0 for tx_udp() (port/tx.h), which computes it or lets the port do it.
 */
#ifndef SPL_FRAME_BUILD_H
#define SPL_FRAME_BUILD_H

#include "dataplane/frame/csum.h"
#include "dataplane/frame/view.h"

#define BUILD_TTL 64u

/* All that stays the same from datagram to datagram on one path. */
struct build_path {
	uint8_t hdr[FRAME_HDR_BYTES]; /* lengths, id and sums are 0 */
	uint16_t ip_sum;	      /* of the IP header in hdr, not complemented */
};

/* Writes Ethernet and IPv4 headers (34 bytes) for `body` bytes of protocol `proto` behind them;
 * body at most 65515. */
void build_eth_ip(const struct frame_local *l, const uint8_t dst_mac[6], uint32_t dst_ip,
		  uint8_t proto, uint16_t body, uint16_t ip_id, uint8_t *out);

/* Prepares a path from (l, src_port) to (dst_mac, dst_ip, dst_port). */
void build_path_init(struct build_path *p, const struct frame_local *l, uint16_t src_port,
		     const uint8_t dst_mac[6], uint32_t dst_ip, uint16_t dst_port);

/* Writes the FRAME_HDR_BYTES of a datagram with payload_len bytes (at most 65507). The UDP sum
 * field is 0. */
static inline void build_udp(const struct build_path *p, uint16_t payload_len, uint16_t ip_id,
			     uint8_t *out)
{
	uint16_t udp_len = payload_len + FRAME_UDP_BYTES, sum;

	memcpy(out, p->hdr, FRAME_HDR_BYTES);
	frame_put16(out + 16, udp_len + FRAME_IP_BYTES);
	frame_put16(out + 18, ip_id);
	frame_put16(out + 38, udp_len);
	sum = csum_finish((uint64_t)p->ip_sum + __builtin_bswap16(udp_len + FRAME_IP_BYTES) +
			  __builtin_bswap16(ip_id));
	memcpy(out + 24, &sum, 2);
}

/* Puts what a port that computes the rest expects into the UDP sum field: the pseudo header. */
static inline void build_udp_seed(uint8_t *hdr)
{
	uint16_t sum = csum_fold(csum_pseudo(hdr + FRAME_ETH_BYTES, frame_be16(hdr + 38)));

	memcpy(hdr + 40, &sum, 2);
}

#endif
