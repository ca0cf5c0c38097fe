/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the agent owns the neighbour table. ARP input and output, see arp.h. Pure; agent
 * only; owns nothing; cannot fail. */
#include "dataplane/frame/arp.h"

#include <spotlane/reasons.h>

#define OP_REQUEST  1u
#define OP_REPLY    2u

/* Offsets in the 28 bytes of an ARP packet. */
#define A_OP	    6u
#define A_SENDER    8u
#define A_SENDER_IP 14u
#define A_TARGET    18u
#define A_TARGET_IP 24u

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t nobody[6];

static void arp_write(const struct frame_local *l, uint16_t op, const uint8_t *dst,
		      const uint8_t *target, uint32_t target_ip, uint8_t *out)
{
	uint8_t *a = out + FRAME_ETH_BYTES;

	memcpy(out, dst, 6);
	memcpy(out + 6, l->mac, 6);
	frame_put16(out + 12, 0x0806);
	frame_put16(a, 1);
	frame_put16(a + 2, 0x0800);
	a[4] = 6;
	a[5] = 4;
	frame_put16(a + A_OP, op);
	memcpy(a + A_SENDER, l->mac, 6);
	frame_put32(a + A_SENDER_IP, l->ip);
	memcpy(a + A_TARGET, target, 6);
	frame_put32(a + A_TARGET_IP, target_ip);
}

void arp_request(const struct frame_local *l, uint32_t ip, const uint8_t *mac,
		 uint8_t out[ARP_FRAME_BYTES])
{
	arp_write(l, OP_REQUEST, mac ? mac : broadcast, nobody, ip, out);
}

void arp_announce(const struct frame_local *l, uint8_t out[ARP_FRAME_BYTES])
{
	arp_write(l, OP_REQUEST, broadcast, nobody, l->ip, out);
}

static enum arp_result arp_drop(struct frame_view *v, enum spl_frame_drop why)
{
	v->reason = (uint8_t)why;
	return ARP_DROP;
}

static bool well_formed(const struct frame_view *v)
{
	const uint8_t *a = v->data + FRAME_ETH_BYTES;
	uint16_t op;

	if (v->len < ARP_FRAME_BYTES)
		return false;
	op = frame_be16(a + A_OP);
	return frame_be16(a) == 1 && frame_be16(a + 2) == 0x0800 && a[4] == 6 && a[5] == 4 &&
	       (op == OP_REQUEST || op == OP_REPLY);
}

/* May this sender be our neighbour? A probe (sender address 0) is judged by the caller. */
static bool sender_ok(const struct frame_local *l, const uint8_t *a)
{
	uint32_t ip = frame_be32(a + A_SENDER_IP);

	return frame_host_ok(l, ip) && ((ip ^ l->ip) & ~l->host) == 0;
}

enum arp_result arp_input(const struct frame_local *l, struct neigh *n, struct frame_view *v,
			  uint64_t now)
{
	uint8_t *a = v->data + FRAME_ETH_BYTES, sender[6];
	uint32_t sender_ip, target_ip;
	uint64_t before = neigh_counters(n)->learned;
	bool asks_us;

	if (!well_formed(v))
		return arp_drop(v, SPL_DROP_ARP_MALFORMED);
	memcpy(sender, a + A_SENDER, 6);
	if ((sender[0] & 1) || memcmp(sender, nobody, 6) == 0)
		return arp_drop(v, SPL_DROP_ARP_SENDER);
	sender_ip = frame_be32(a + A_SENDER_IP);
	target_ip = frame_be32(a + A_TARGET_IP);
	asks_us = frame_be16(a + A_OP) == OP_REQUEST && target_ip == l->ip;
	if (sender_ip != 0 || !asks_us) {
		if (!sender_ok(l, a))
			return arp_drop(v, SPL_DROP_ARP_SENDER);
		neigh_learn(n, sender_ip, sender, asks_us, now);
	}
	if (!asks_us)
		return neigh_counters(n)->learned != before ? ARP_DONE : ARP_OTHER;
	arp_write(l, OP_REPLY, sender, sender, sender_ip, v->data);
	v->len = ARP_FRAME_BYTES;
	return ARP_REPLY;
}
