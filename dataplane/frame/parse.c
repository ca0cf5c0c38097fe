/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the complete frame check; every way of being malformed has its own reason.
 *
 * Pure; called on lanes, tests and the fuzzer; owns nothing, allocates nothing, cannot fail. Each
 * step names the first thing wrong. Lengths are compared before the bytes they cover are touched.
 */
#include "dataplane/frame/parse.h"

#define ETH_P_IP4  0x0800u
#define ETH_P_ARP4 0x0806u
#define ETH_P_IP6  0x86ddu
#define ETH_P_TAG  0x8100u /* 802.1Q */
#define ETH_P_STAG 0x88a8u /* 802.1ad */
#define ETH_LLC	   0x0600u /* below: an 802.3 length, not a type */
#define IP_ICMP	   1u
#define IP_UDP	   17u

/* What a step returns when its layer is sound and the next one decides. */
#define GO_ON	   FRAME_KIND_COUNT

static enum frame_kind drop(struct frame_view *v, enum spl_frame_drop why)
{
	v->reason = (uint8_t)why;
	return FRAME_DROP;
}

static enum frame_kind eth_type(struct frame_view *v, uint16_t type)
{
	if (type == ETH_P_IP4 || type == ETH_P_ARP4)
		return GO_ON;
	if (type < ETH_LLC)
		return drop(v, SPL_DROP_LLC);
	if (type == ETH_P_TAG || type == ETH_P_STAG)
		return drop(v, SPL_DROP_VLAN);
	return drop(v, type == ETH_P_IP6 ? SPL_DROP_IPV6 : SPL_DROP_ETHERTYPE);
}

/* Ethernet: the type, then the addresses. ARP may come by broadcast, IP only to our own. */
static enum frame_kind eth_check(const struct frame_local *l, struct frame_view *v)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const uint8_t *d = v->data;
	enum frame_kind kind;
	uint16_t type;

	if (v->len < FRAME_ETH_BYTES)
		return drop(v, SPL_DROP_RUNT);
	if (v->len > FRAME_LEN_MAX)
		return drop(v, SPL_DROP_OVERSIZE);
	type = frame_be16(d + 12);
	kind = eth_type(v, type);
	if (kind != GO_ON)
		return kind;
	if (d[6] & 1)
		return drop(v, SPL_DROP_ETH_SOURCE);
	if (memcmp(d, l->mac, 6) != 0 && (type != ETH_P_ARP4 || memcmp(d, broadcast, 6) != 0))
		return FRAME_OTHER;
	if (type == ETH_P_IP4)
		return GO_ON;
	v->payload_off = FRAME_ETH_BYTES;
	v->payload_len = (uint16_t)(v->len - FRAME_ETH_BYTES);
	return FRAME_ARP;
}

/* IPv4: shape, then lengths, then the sum, then what it says. Leaves payload at what is behind the
 * header, and ends it where the datagram ends: Ethernet padding is not part of it. */
static enum frame_kind ip_check(const struct frame_local *l, struct frame_view *v)
{
	const uint8_t *ip = v->data + FRAME_ETH_BYTES;
	uint32_t have = v->len - FRAME_ETH_BYTES;
	uint16_t total, hlen;

	if (have < FRAME_IP_BYTES)
		return drop(v, SPL_DROP_IP_TRUNCATED);
	if (ip[0] >> 4 != 4)
		return drop(v, SPL_DROP_IP_VERSION);
	hlen = (uint16_t)((ip[0] & 15) * 4);
	total = frame_be16(ip + 2);
	if (hlen < FRAME_IP_BYTES)
		return drop(v, SPL_DROP_IP_HEADER);
	if (total < hlen)
		return drop(v, SPL_DROP_IP_LENGTH);
	if (total > have)
		return drop(v, SPL_DROP_IP_TRUNCATED);
	if (total > l->mtu)
		return drop(v, SPL_DROP_OVERSIZE);
	if ((v->rx & FRAME_RX_IP_BAD) ||
	    (!(v->rx & FRAME_RX_IP_GOOD) && csum_fold(csum_add(0, ip, hlen)) != 0xffff))
		return drop(v, SPL_DROP_IP_CHECKSUM);
	if (frame_be16(ip + 6) & 0x3fff) /* more fragments, or an offset */
		return drop(v, SPL_DROP_FRAGMENT);
	v->src_ip = frame_be32(ip + 12);
	if (!frame_host_ok(l, v->src_ip))
		return drop(v, SPL_DROP_IP_SOURCE);
	v->payload_off = (uint16_t)(FRAME_ETH_BYTES + hlen);
	v->payload_len = total - hlen;
	return frame_be32(ip + 16) == l->ip ? GO_ON : FRAME_OTHER;
}

static bool udp_sum_ok(const struct frame_view *v, const uint8_t *ip, const uint8_t *udp,
		       uint16_t udp_len)
{
	uint64_t pseudo = csum_pseudo(ip, udp_len);
	uint16_t field;

	if (v->rx & FRAME_RX_L4_BAD)
		return false;
	memcpy(&field, udp + 6, 2);
	if ((v->rx & FRAME_RX_L4_GOOD) || field == 0)
		return true;
	if (csum_fold(csum_add(pseudo, udp, udp_len)) == 0xffff)
		return true;
	return (v->rx & FRAME_RX_L4_PARTIAL) && field == csum_fold(pseudo);
}

static enum frame_kind udp_check(const struct frame_local *l, struct frame_view *v)
{
	const uint8_t *ip = v->data + FRAME_ETH_BYTES, *udp = v->data + v->payload_off;
	enum frame_kind kind;
	uint16_t udp_len;

	if (v->payload_len < FRAME_UDP_BYTES)
		return drop(v, SPL_DROP_UDP_TRUNCATED);
	udp_len = frame_be16(udp + 4);
	if (udp_len > v->payload_len)
		return drop(v, SPL_DROP_UDP_TRUNCATED);
	if (udp_len < FRAME_UDP_BYTES || udp_len != v->payload_len)
		return drop(v, SPL_DROP_UDP_LENGTH);
	if (!udp_sum_ok(v, ip, udp, udp_len))
		return drop(v, SPL_DROP_UDP_CHECKSUM);
	v->src_port = frame_be16(udp);
	if (v->src_port == 0)
		return drop(v, SPL_DROP_UDP_SOURCE);
	v->payload_off += FRAME_UDP_BYTES;
	v->payload_len -= FRAME_UDP_BYTES;
	kind = frame_steer(l, frame_be16(udp + 2), v);
	return kind == FRAME_DROP ? drop(v, SPL_DROP_UDP_PORT) : kind;
}

void frame_classify(const struct frame_local *l, struct frame_view *v)
{
	enum frame_kind kind = eth_check(l, v);

	if (kind == GO_ON)
		kind = ip_check(l, v);
	if (kind == GO_ON && v->data[FRAME_ETH_BYTES + 9] == IP_UDP)
		kind = udp_check(l, v);
	else if (kind == GO_ON && v->data[FRAME_ETH_BYTES + 9] == IP_ICMP)
		kind = FRAME_ICMP;
	else if (kind == GO_ON)
		kind = drop(v, SPL_DROP_IP_PROTOCOL);
	v->kind = (uint8_t)kind;
}

void frame_parse_burst(const struct frame_local *l, struct frame_view *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (i + 3 < n)
			__builtin_prefetch(v[i + 3].data);
		frame_parse(l, &v[i]);
	}
}
