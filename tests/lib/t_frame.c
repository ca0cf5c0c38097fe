/* SPDX-License-Identifier: BSD-3-Clause */
/* Frame builders for tests: see t_frame.h. Owns nothing; any thread. */
#include "tests/lib/t_frame.h"

#include "dataplane/frame/parse.h"

static void put_mac(uint8_t *p, uint8_t last)
{
	memset(p, 0, 6);
	p[0] = 2;
	p[5] = last;
}

struct frame_local t_local(unsigned n_lanes)
{
	struct frame_local l = {
		.prefix = 24,
		.n_lanes = (uint8_t)n_lanes,
		.ip = 0x0a000001,
		.gateway = 0x0a0000fe,
		.udp_base = 40000,
		.mtu = 1500,
	};

	put_mac(l.mac, 1);
	frame_local_ready(&l);
	return l;
}

uint16_t t_csum(const uint8_t *p, size_t len, uint32_t start)
{
	uint32_t sum = start;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint32_t pseudo(const uint8_t *ip, uint32_t l4_len)
{
	uint32_t sum = ip[9] + l4_len;

	for (int i = 12; i < 20; i += 2)
		sum += frame_be16(ip + i);
	return sum;
}

struct t_frame t_frame_udp(const struct frame_local *l, unsigned lane)
{
	struct t_frame f = {
		.vlan = T_AUTO,
		.ethertype = 0x0800,
		.version = T_AUTO,
		.ihl = T_AUTO,
		.total_len = T_AUTO,
		.frag = 0x4000,
		.ttl = 64,
		.proto = 17,
		.ip_csum = T_AUTO,
		.ip_id = 7,
		.src_ip = 0x0a000002,
		.dst_ip = l->ip,
		.sport = 50000,
		.dport = (uint16_t)(l->udp_base + lane),
		.udp_len = T_AUTO,
		.udp_csum = T_AUTO,
		.payload_len = 32,
	};

	memcpy(f.dst, l->mac, 6);
	put_mac(f.src, 2);
	return f;
}

static size_t write_eth(const struct t_frame *f, uint8_t *out)
{
	size_t n = 12;

	memcpy(out, f->dst, 6);
	memcpy(out + 6, f->src, 6);
	if (f->vlan != T_AUTO) {
		frame_put16(out + 12, 0x8100);
		frame_put16(out + 14, (uint16_t)f->vlan);
		n = 16;
	}
	frame_put16(out + n, (uint16_t)f->ethertype);
	return n + 2;
}

static void write_body(const struct t_frame *f, uint8_t *ip, uint8_t *body, unsigned body_len)
{
	uint8_t *data = f->proto == 17 ? body + 8 : body;
	uint16_t sum;

	if (f->payload)
		memcpy(data, f->payload, f->payload_len);
	for (unsigned i = 0; !f->payload && i < f->payload_len; i++)
		data[i] = (uint8_t)i;
	if (f->proto != 17)
		return;
	frame_put16(body, f->sport);
	frame_put16(body + 2, f->dport);
	frame_put16(body + 4, (uint16_t)(f->udp_len == T_AUTO ? (int)body_len : f->udp_len));
	frame_put16(body + 6, 0);
	sum = t_csum(body, body_len, pseudo(ip, body_len));
	if (sum == 0)
		sum = 0xffff;
	frame_put16(body + 6, f->udp_csum == T_AUTO ? sum : (uint16_t)f->udp_csum);
}

size_t t_frame_write(const struct t_frame *f, uint8_t *out)
{
	size_t eth = write_eth(f, out);
	uint8_t *ip = out + eth;
	unsigned hlen = 20 + 4 * f->option_words;
	unsigned body_len = f->payload_len + (f->proto == 17 ? 8 : 0);
	int version = f->version == T_AUTO ? 4 : f->version;
	int ihl = f->ihl == T_AUTO ? (int)(hlen / 4) : f->ihl;
	int total = f->total_len == T_AUTO ? (int)(hlen + body_len) : f->total_len;

	ip[0] = (uint8_t)(version << 4 | (ihl & 15));
	ip[1] = 0;
	frame_put16(ip + 2, (uint16_t)total);
	frame_put16(ip + 4, f->ip_id);
	frame_put16(ip + 6, (uint16_t)f->frag);
	ip[8] = (uint8_t)f->ttl;
	ip[9] = (uint8_t)f->proto;
	frame_put16(ip + 10, 0);
	frame_put32(ip + 12, f->src_ip);
	frame_put32(ip + 16, f->dst_ip);
	if (f->options)
		memcpy(ip + 20, f->options, 4 * f->option_words);
	else
		memset(ip + 20, 1, 4 * f->option_words);
	frame_put16(ip + 10, f->ip_csum == T_AUTO ? t_csum(ip, hlen, 0) : (uint16_t)f->ip_csum);
	write_body(f, ip, ip + hlen, body_len);
	memset(ip + hlen + body_len, 0xee, f->pad);
	return eth + hlen + body_len + f->pad;
}

struct t_arp t_frame_arp(const struct frame_local *l)
{
	struct t_arp a = {
		.htype = 1,
		.ptype = 0x0800,
		.op = 1,
		.hlen = 6,
		.plen = 4,
		.sender_ip = 0x0a000002,
		.target_ip = l->ip,
	};

	memset(a.dst, 0xff, 6);
	put_mac(a.src, 2);
	put_mac(a.sender, 2);
	return a;
}

size_t t_arp_write(const struct t_arp *a, uint8_t *out)
{
	uint8_t *p = out + 14;

	memcpy(out, a->dst, 6);
	memcpy(out + 6, a->src, 6);
	frame_put16(out + 12, 0x0806);
	frame_put16(p, a->htype);
	frame_put16(p + 2, a->ptype);
	p[4] = a->hlen;
	p[5] = a->plen;
	frame_put16(p + 6, a->op);
	memcpy(p + 8, a->sender, 6);
	frame_put32(p + 14, a->sender_ip);
	memcpy(p + 18, a->target, 6);
	frame_put32(p + 24, a->target_ip);
	return 42;
}

size_t t_icmp_echo(uint16_t id, uint16_t seq, unsigned len, uint8_t *out)
{
	out[0] = 8;
	out[1] = 0;
	frame_put16(out + 2, 0);
	frame_put16(out + 4, id);
	frame_put16(out + 6, seq);
	for (unsigned i = 0; i < len; i++)
		out[8 + i] = (uint8_t)(i * 7);
	frame_put16(out + 2, t_csum(out, 8 + len, 0));
	return 8 + len;
}

static const char *check_udp(const uint8_t *ip, const uint8_t *udp, uint16_t body)
{
	if (body < 8 || frame_be16(udp + 4) != body)
		return "UDP length disagrees with the IP length";
	if (frame_be16(udp + 6) == 0)
		return "no UDP checksum";
	if (t_csum(udp, body, pseudo(ip, body)) != 0)
		return "wrong UDP checksum";
	return NULL;
}

const char *t_frame_check(const uint8_t *p, size_t len)
{
	const uint8_t *ip = p + 14;
	uint16_t total;

	if (len < 34 || frame_be16(p + 12) != 0x0800 || ip[0] != 0x45)
		return "no IPv4 frame without options";
	total = frame_be16(ip + 2);
	if (total + 14u != len && !(len == 60 && total + 14u < len))
		return "frame length disagrees with the IP length";
	if (t_csum(ip, 20, 0) != 0)
		return "wrong IP checksum";
	if (frame_be16(ip + 6) != 0x4000)
		return "DF is not set, or it is a fragment";
	if (ip[9] == 17)
		return check_udp(ip, ip + 20, total - 20);
	if (ip[9] == 1 && t_csum(ip + 20, total - 20, 0) != 0)
		return "wrong ICMP checksum";
	return NULL;
}

bool t_frame_expected_agrees(const struct frame_local *l, uint8_t *p, size_t len)
{
	struct frame_view v = {
		.data = p, .len = (uint32_t)len, .rx = FRAME_RX_IP_GOOD | FRAME_RX_L4_GOOD};
	bool ok = true;

	if (len < FRAME_HDR_BYTES)
		return true;
	frame_classify(l, &v);
	for (unsigned lane = 0; lane < l->n_lanes; lane++) {
		uint32_t n = frame_expected(l, p, v.len, (uint16_t)(l->udp_base + lane));
		bool is_for_it = v.kind == FRAME_DATA && v.lane == lane && v.cls == FRAME_CLS_APP &&
				 v.payload_off == FRAME_HDR_BYTES;

		if (v.kind == FRAME_DROP && v.reason == SPL_DROP_IP_SOURCE)
			continue; /* the caller looks at the source */
		ok = ok && n == (is_for_it ? v.payload_len : 0);
	}
	return ok;
}
