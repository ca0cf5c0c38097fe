/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: header construction, see build.h. Pure; any thread; owns nothing; cannot fail. */
#include "dataplane/frame/build.h"

void build_eth_ip(const struct frame_local *l, const uint8_t dst_mac[6], uint32_t dst_ip,
		  uint8_t proto, uint16_t body, uint16_t ip_id, uint8_t *out)
{
	uint8_t *ip = out + FRAME_ETH_BYTES;
	uint16_t sum;

	memcpy(out, dst_mac, 6);
	memcpy(out + 6, l->mac, 6);
	frame_put16(out + 12, 0x0800);
	ip[0] = 0x45;
	ip[1] = 0;
	frame_put16(ip + 2, body + FRAME_IP_BYTES);
	frame_put16(ip + 4, ip_id);
	frame_put16(ip + 6, 0x4000); /* DF */
	ip[8] = BUILD_TTL;
	ip[9] = proto;
	memset(ip + 10, 0, 2);
	frame_put32(ip + 12, l->ip);
	frame_put32(ip + 16, dst_ip);
	sum = csum_finish(csum_header(ip));
	memcpy(ip + 10, &sum, 2);
}

void build_path_init(struct build_path *p, const struct frame_local *l, uint16_t src_port,
		     const uint8_t dst_mac[6], uint32_t dst_ip, uint16_t dst_port)
{
	uint8_t *udp = p->hdr + FRAME_ETH_BYTES + FRAME_IP_BYTES;

	memset(p, 0, sizeof(*p));
	build_eth_ip(l, dst_mac, dst_ip, 17, 0, 0, p->hdr);
	memset(p->hdr + 16, 0, 2);
	memset(p->hdr + 24, 0, 2);
	frame_put16(udp, src_port);
	frame_put16(udp + 2, dst_port);
	p->ip_sum = csum_fold(csum_header(p->hdr + FRAME_ETH_BYTES));
}
