/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: ICMP echo, see icmp.h. Pure; owns nothing; cannot fail. */
#include "dataplane/frame/icmp.h"

#include "dataplane/frame/build.h"
#include "dataplane/frame/csum.h"

#include <spotlane/reasons.h>

#define ECHO_REPLY   0u
#define ECHO_REQUEST 8u
#define ECHO_BYTES   8u /* type, code, sum, id, sequence */

static bool icmp_drop(struct frame_view *v, enum spl_frame_drop why)
{
	v->reason = (uint8_t)why;
	return false;
}

bool icmp_echo(const struct frame_local *l, struct bucket *limit, struct frame_view *v,
	       uint16_t ip_id, uint64_t now)
{
	uint8_t *icmp = v->data + v->payload_off, *out = icmp - FRAME_IP_BYTES - FRAME_ETH_BYTES;
	uint8_t mac[6];
	uint16_t sum;

	if (v->payload_len < ECHO_BYTES || csum_fold(csum_add(0, icmp, v->payload_len)) != 0xffff)
		return icmp_drop(v, SPL_DROP_ICMP_MALFORMED);
	if (icmp[0] != ECHO_REQUEST || icmp[1] != 0)
		return icmp_drop(v, SPL_DROP_ICMP_OTHER);
	if (!bucket_take(limit, now))
		return icmp_drop(v, SPL_DROP_ICMP_RATE);
	memcpy(mac, v->data + 6, 6); /* out may overlap it when there were options */
	icmp[0] = ECHO_REPLY;
	memset(icmp + 2, 0, 2);
	sum = csum_finish(csum_add(0, icmp, v->payload_len));
	memcpy(icmp + 2, &sum, 2);
	build_eth_ip(l, mac, v->src_ip, 1, v->payload_len, ip_id, out);
	v->data = out;
	v->payload_off = FRAME_ETH_BYTES + FRAME_IP_BYTES;
	v->len = v->payload_off + (uint32_t)v->payload_len;
	return true;
}
