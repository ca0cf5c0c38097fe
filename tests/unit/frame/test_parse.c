/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame parser: each way of being malformed has its own reason, truncation at every byte, the
 * fast path says what the complete walk says, and no byte behind the frame is read (guard page). */
#include "dataplane/frame/parse.h"
#include "tests/lib/t_frame.h"
#include "tests/lib/t_guard.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

#define LANES 3u

static struct frame_local local;
static uint8_t buf[T_FRAME_MAX];
static unsigned hit[SPL_DROP_COUNT];

static int setup(void)
{
	local = t_local(LANES);
	return 0;
}

static bool same(const struct frame_view *a, const struct frame_view *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == FRAME_DROP)
		return a->reason == b->reason;
	if (a->kind == FRAME_OTHER)
		return true;
	if (a->payload_off != b->payload_off || a->payload_len != b->payload_len)
		return false;
	if (a->kind == FRAME_DATA && (a->lane != b->lane || a->cls != b->cls))
		return false;
	return a->kind == FRAME_ARP || a->kind == FRAME_ICMP ||
	       (a->src_ip == b->src_ip && a->src_port == b->src_port);
}

/* Parses a copy of len bytes that ends at a guard page, both ways. */
static struct frame_view parse(const uint8_t *bytes, size_t len, uint8_t rx)
{
	struct frame_view v = {.data = t_guard(bytes, len), .len = (uint32_t)len, .rx = rx};
	struct frame_view w = v;

	frame_parse(&local, &v);
	frame_classify(&local, &w);
	CU_ASSERT(same(&v, &w));
	CU_ASSERT(t_frame_expected_agrees(&local, w.data, len));
	if (v.kind == FRAME_DROP)
		hit[v.reason]++;
	else if (v.kind != FRAME_OTHER)
		CU_ASSERT((size_t)v.payload_off + v.payload_len <= len);
	return v;
}

static struct frame_view parse_frame(const struct t_frame *f)
{
	return parse(buf, t_frame_write(f, buf), 0);
}

static void expect_drop(const struct t_frame *f, enum spl_frame_drop why)
{
	struct frame_view v = parse_frame(f);

	CU_ASSERT_EQUAL(v.kind, FRAME_DROP);
	CU_ASSERT_EQUAL(v.reason, why);
}

static void test_good(void)
{
	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned cls = 0; cls < 2; cls++) {
			struct t_frame f = t_frame_udp(&local, lane + cls * FRAME_LANES_MAX);
			struct frame_view v = parse_frame(&f);

			CU_ASSERT_EQUAL(v.kind, FRAME_DATA);
			CU_ASSERT_EQUAL(v.lane, lane);
			CU_ASSERT_EQUAL(v.cls, cls);
			CU_ASSERT_EQUAL(v.src_ip, 0x0a000002);
			CU_ASSERT_EQUAL(v.src_port, 50000);
			CU_ASSERT_EQUAL(v.payload_off, 42);
			CU_ASSERT_EQUAL(v.payload_len, 32);
			CU_ASSERT_EQUAL(frame_payload(&v)[31], 31);
		}
	}
}

static void test_agent_port(void)
{
	struct t_frame f = t_frame_udp(&local, FRAME_AGENT_OFFSET);

	f.payload_len = 0;
	CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_AGENT);
	CU_ASSERT_EQUAL(parse_frame(&f).payload_len, 0);
}

static void test_ports_not_ours(void)
{
	static const unsigned off[] = {LANES, 127, FRAME_LANES_MAX + LANES,
				       255,   257, 65535u - 40000u};
	struct t_frame f = t_frame_udp(&local, 0);

	for (unsigned i = 0; i < T_COUNT(off); i++) {
		f.dport = (uint16_t)(local.udp_base + off[i]);
		expect_drop(&f, SPL_DROP_UDP_PORT);
	}
	f.dport = local.udp_base - 1;
	expect_drop(&f, SPL_DROP_UDP_PORT);
	f.dport = 0;
	expect_drop(&f, SPL_DROP_UDP_PORT);
}

static void test_all_lanes(void)
{
	struct t_frame f;
	struct frame_view v;

	local.n_lanes = FRAME_LANES_MAX;
	for (unsigned off = 0; off < 2 * FRAME_LANES_MAX; off++) {
		f = t_frame_udp(&local, off);
		v = parse_frame(&f);
		CU_ASSERT_EQUAL(v.kind, FRAME_DATA);
		CU_ASSERT_EQUAL(v.lane + v.cls * FRAME_LANES_MAX, off);
	}
	local.n_lanes = LANES;
}

static void test_padding_is_trimmed(void)
{
	struct t_frame f = t_frame_udp(&local, 1);

	f.payload_len = 3;
	for (f.pad = 0; f.pad < 40; f.pad++) {
		struct frame_view v = parse_frame(&f);

		CU_ASSERT_EQUAL(v.kind, FRAME_DATA);
		CU_ASSERT_EQUAL(v.payload_len, 3);
	}
}

static void test_ethernet_drops(void)
{
	struct t_frame f = t_frame_udp(&local, 0);
	unsigned i;

	CU_ASSERT_EQUAL(parse(buf, 0, 0).reason, SPL_DROP_RUNT);
	f.vlan = 5;
	expect_drop(&f, SPL_DROP_VLAN);
	f.vlan = 0xe005; /* priority bits do not hide the tag */
	expect_drop(&f, SPL_DROP_VLAN);
	f.vlan = T_AUTO;
	f.ethertype = 0x88a8;
	expect_drop(&f, SPL_DROP_VLAN);
	f.ethertype = 0x05ff;
	expect_drop(&f, SPL_DROP_LLC);
	f.ethertype = 46;
	expect_drop(&f, SPL_DROP_LLC);
	f.ethertype = 0x86dd;
	expect_drop(&f, SPL_DROP_IPV6);
	for (i = 0; i < 16; i++) {
		f.ethertype = 0x0800 ^ (1 << i);
		if (i < 11) /* 0x0801, 0x0802 ... 0x0c00 are types, and not ours */
			expect_drop(&f, SPL_DROP_ETHERTYPE);
	}
	f.ethertype = 0x8870;
	expect_drop(&f, SPL_DROP_ETHERTYPE);
	f.ethertype = 0x0800;
	f.src[0] = 3;
	expect_drop(&f, SPL_DROP_ETH_SOURCE);
}

static void test_other_hosts(void)
{
	struct t_frame f = t_frame_udp(&local, 0);
	unsigned i;

	for (i = 0; i < 48; i++) { /* each bit of the address counts */
		f.dst[i / 8] ^= (uint8_t)(1 << i % 8);
		CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_OTHER);
		f.dst[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	memset(f.dst, 0xff, 6);
	CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_OTHER);
	memcpy(f.dst, local.mac, 6);
	for (i = 0; i < 32; i++) {
		f.dst_ip = local.ip ^ (1u << i);
		CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_OTHER);
	}
	f.dst_ip = 0x0a0000ff; /* our network's broadcast */
	CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_OTHER);
}

static void test_ip_drops(void)
{
	const struct t_frame good = t_frame_udp(&local, 0);
	struct t_frame f = good;
	int i;

	for (i = 0; i < 16; i++) {
		f.version = i;
		if (i != 4)
			expect_drop(&f, SPL_DROP_IP_VERSION);
	}
	f = good;
	for (f.ihl = 0; f.ihl < 5; f.ihl++)
		expect_drop(&f, SPL_DROP_IP_HEADER);
	f = good;
	for (f.total_len = 0; f.total_len < 20; f.total_len++)
		expect_drop(&f, SPL_DROP_IP_LENGTH);
	f.total_len = 60 + 1; /* one byte more than there is */
	expect_drop(&f, SPL_DROP_IP_TRUNCATED);
	f.total_len = 60 + 40;
	expect_drop(&f, SPL_DROP_IP_TRUNCATED);
	f.total_len = 65535;
	expect_drop(&f, SPL_DROP_IP_TRUNCATED);
	f = good;
	f.ip_csum = 0x1234;
	expect_drop(&f, SPL_DROP_IP_CHECKSUM);
	f = good;
	f.proto = 6;
	expect_drop(&f, SPL_DROP_IP_PROTOCOL);
	f.proto = 0;
	expect_drop(&f, SPL_DROP_IP_PROTOCOL);
}

static void test_fragments(void)
{
	struct t_frame f = t_frame_udp(&local, 0);

	for (unsigned bit = 0; bit < 14; bit++) { /* offsets, and "more fragments" */
		f.frag = 1 << bit;
		expect_drop(&f, SPL_DROP_FRAGMENT);
		f.frag = 0x4000 | 1 << bit;
		expect_drop(&f, SPL_DROP_FRAGMENT);
	}
	f.frag = 0x1fff; /* offset + length beyond 65535 */
	expect_drop(&f, SPL_DROP_FRAGMENT);
	f.frag = 0;
	CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_DATA);
}

static void test_ip_sources(void)
{
	static const uint32_t bad[] = {0x00000000, 0x00000001, 0x7f000001, 0xe0000001, 0xefffffff,
				       0xf0000001, 0xffffffff, 0x0a000001, 0x0a000000, 0x0a0000ff};
	static const uint32_t fine[] = {0x0a000003, 0x0b000001, 0xc0a80101, 0xdfffffff, 0x01000000};
	struct t_frame f = t_frame_udp(&local, 0);
	unsigned i;

	for (i = 0; i < T_COUNT(bad); i++) {
		f.src_ip = bad[i];
		expect_drop(&f, SPL_DROP_IP_SOURCE);
	}
	for (i = 0; i < T_COUNT(fine); i++) {
		f.src_ip = fine[i];
		CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_DATA);
	}
}

static void test_options_are_skipped(void)
{
	struct t_frame f = t_frame_udp(&local, 2);

	for (f.option_words = 0; f.option_words <= 10; f.option_words++) {
		struct frame_view v = parse_frame(&f);

		CU_ASSERT_EQUAL(v.kind, FRAME_DATA);
		CU_ASSERT_EQUAL(v.lane, 2);
		CU_ASSERT_EQUAL(v.payload_off, 42 + 4 * f.option_words);
		CU_ASSERT_EQUAL(v.payload_len, 32);
	}
	f.option_words = 0;
	f.payload_len = 0;
	f.ihl = 15; /* a header longer than the datagram */
	expect_drop(&f, SPL_DROP_IP_LENGTH);
	f.total_len = 60; /* ... and one that says it is that long */
	expect_drop(&f, SPL_DROP_IP_TRUNCATED);
}

static void test_udp_drops(void)
{
	const struct t_frame good = t_frame_udp(&local, 0);
	struct t_frame f = good;

	for (f.udp_len = 0; f.udp_len < 8; f.udp_len++)
		expect_drop(&f, SPL_DROP_UDP_LENGTH);
	f.udp_len = 39; /* the IP payload is 40 */
	expect_drop(&f, SPL_DROP_UDP_LENGTH);
	f.udp_len = 41;
	expect_drop(&f, SPL_DROP_UDP_TRUNCATED);
	f.udp_len = 80;
	expect_drop(&f, SPL_DROP_UDP_TRUNCATED);
	f.pad = 40; /* the bytes are there, but not of this datagram */
	expect_drop(&f, SPL_DROP_UDP_TRUNCATED);
	f = good;
	for (f.total_len = 20; f.total_len < 28; f.total_len++)
		expect_drop(&f, SPL_DROP_UDP_TRUNCATED);
	f = good;
	f.sport = 0;
	expect_drop(&f, SPL_DROP_UDP_SOURCE);
	f = good;
	f.udp_csum = 0x1234;
	expect_drop(&f, SPL_DROP_UDP_CHECKSUM);
	f.udp_csum = 0;
	CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_DATA);
}

/* Each single flipped bit of IP header, UDP header or payload is noticed. */
static void test_checksums_notice_each_bit(void)
{
	struct t_frame f = t_frame_udp(&local, 0);
	size_t len;

	f.payload_len = 21; /* odd */
	len = t_frame_write(&f, buf);
	for (size_t bit = 14 * 8; bit < len * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CU_ASSERT_NOT_EQUAL(parse(buf, len, 0).kind, FRAME_DATA);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	CU_ASSERT_EQUAL(parse(buf, len, 0).kind, FRAME_DATA);
}

/* GOOD and NONE (both FRAME_RX_*_GOOD) are believed, BAD drops, unknown is verified. */
static void test_port_hints(void)
{
	struct t_frame f = t_frame_udp(&local, 0);
	size_t len;

	f.udp_csum = 0x1234;
	len = t_frame_write(&f, buf);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_GOOD).kind, FRAME_DATA);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_IP_GOOD).reason, SPL_DROP_UDP_CHECKSUM);
	f.udp_csum = T_AUTO;
	f.ip_csum = 0x1234;
	len = t_frame_write(&f, buf);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_IP_GOOD).kind, FRAME_DATA);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_GOOD).reason, SPL_DROP_IP_CHECKSUM);
	f.ip_csum = T_AUTO;
	len = t_frame_write(&f, buf);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_IP_BAD).reason, SPL_DROP_IP_CHECKSUM);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_BAD).reason, SPL_DROP_UDP_CHECKSUM);
	f.udp_csum = 0; /* the sender made none, but the port says it is bad */
	len = t_frame_write(&f, buf);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_BAD).reason, SPL_DROP_UDP_CHECKSUM);
}

/* The local kernel hands over frames with the pseudo header's sum only. */
static void test_unfinished_sum_of_the_kernel(void)
{
	struct t_frame f = t_frame_udp(&local, 0);
	size_t len = t_frame_write(&f, buf);
	uint32_t sum = 17 + 40 + 0x0a00 + 0x0002 + 0x0a00 + 0x0001;

	frame_put16(buf + 40, (uint16_t)sum);
	CU_ASSERT_EQUAL(parse(buf, len, 0).reason, SPL_DROP_UDP_CHECKSUM);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_PARTIAL).kind, FRAME_DATA);
	frame_put16(buf + 40, (uint16_t)(sum + 1));
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_PARTIAL).reason, SPL_DROP_UDP_CHECKSUM);
	t_frame_write(&f, buf);
	CU_ASSERT_EQUAL(parse(buf, len, FRAME_RX_L4_PARTIAL).kind, FRAME_DATA);
}

static void test_mtu(void)
{
	struct t_frame f = t_frame_udp(&local, 0);

	f.payload_len = 1500 - 28;
	CU_ASSERT_EQUAL(parse_frame(&f).kind, FRAME_DATA);
	f.payload_len++;
	expect_drop(&f, SPL_DROP_OVERSIZE);
	f.payload_len = 9000;
	expect_drop(&f, SPL_DROP_OVERSIZE);
}

static void test_longest_frame(void)
{
	static uint8_t big[FRAME_LEN_MAX + 2];
	struct t_frame f = t_frame_udp(&local, 0);

	t_frame_write(&f, big);
	CU_ASSERT_EQUAL(parse(big, FRAME_LEN_MAX, 0).kind, FRAME_DATA); /* padding */
	CU_ASSERT_EQUAL(parse(big, FRAME_LEN_MAX + 1, 0).reason, SPL_DROP_OVERSIZE);
}

static void test_truncated_at_every_byte(void)
{
	struct t_frame f = t_frame_udp(&local, 0);
	size_t len;

	for (f.option_words = 0; f.option_words <= 10; f.option_words += 5) {
		len = t_frame_write(&f, buf);
		for (size_t n = 0; n < len; n++) {
			struct frame_view v = parse(buf, n, FRAME_RX_IP_GOOD | FRAME_RX_L4_GOOD);

			CU_ASSERT_EQUAL(v.kind, FRAME_DROP);
			CU_ASSERT_EQUAL(v.reason, n < 14 ? SPL_DROP_RUNT : SPL_DROP_IP_TRUNCATED);
		}
	}
}

static void test_arp_and_icmp_are_handed_on(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct t_frame f = t_frame_udp(&local, 0);
	uint8_t echo[64];
	struct frame_view v = parse(buf, t_arp_write(&a, buf), 0);

	CU_ASSERT_EQUAL(v.kind, FRAME_ARP);
	memcpy(a.dst, local.mac, 6);
	CU_ASSERT_EQUAL(parse(buf, t_arp_write(&a, buf), 0).kind, FRAME_ARP);
	a.dst[0] = 1; /* a group that is not everybody */
	CU_ASSERT_EQUAL(parse(buf, t_arp_write(&a, buf), 0).kind, FRAME_OTHER);
	f.proto = 1;
	f.payload = echo;
	f.payload_len = (unsigned)t_icmp_echo(1, 2, 20, echo);
	f.pad = 5;
	v = parse_frame(&f);
	CU_ASSERT_EQUAL(v.kind, FRAME_ICMP);
	CU_ASSERT_EQUAL(v.payload_off, 34);
	CU_ASSERT_EQUAL(v.payload_len, 28);
	CU_ASSERT_EQUAL(v.src_ip, 0x0a000002);
}

/* Two frames that Linux 6.18 sent over a veth: 10.0.0.2:50000 to 10.0.0.1:40001, "spotlane". */
static void test_golden_udp(void)
{
	static const uint8_t whole[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00,
					0x00, 0x02, 0x08, 0x00, 0x45, 0x00, 0x00, 0x24, 0x80, 0xe3,
					0x40, 0x00, 0x40, 0x11, 0xa5, 0xe3, 0x0a, 0x00, 0x00, 0x02,
					0x0a, 0x00, 0x00, 0x01, 0xc3, 0x50, 0x9c, 0x41, 0x00, 0x10,
					0xce, 0x8d, 0x73, 0x70, 0x6f, 0x74, 0x6c, 0x61, 0x6e, 0x65};
	static const uint8_t
		unfinished[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00,
				0x02, 0x08, 0x00, 0x45, 0x00, 0x00, 0x24, 0x81, 0xb2, 0x40, 0x00,
				0x40, 0x11, 0xa5, 0x14, 0x0a, 0x00, 0x00, 0x02, 0x0a, 0x00, 0x00,
				0x01, 0xc3, 0x50, 0x9c, 0x41, 0x00, 0x10, 0x14, 0x24, 0x73, 0x70,
				0x6f, 0x74, 0x6c, 0x61, 0x6e, 0x65}; /* checksum offload on */
	struct frame_view v = parse(whole, sizeof(whole), 0);

	CU_ASSERT_EQUAL(v.kind, FRAME_DATA);
	CU_ASSERT_EQUAL(v.lane, 1);
	CU_ASSERT_EQUAL_FATAL(v.payload_len, 8);
	CU_ASSERT_EQUAL(memcmp(frame_payload(&v), "spotlane", 8), 0);
	v = parse(unfinished, sizeof(unfinished), 0);
	CU_ASSERT_EQUAL(v.kind, FRAME_DROP);
	v = parse(unfinished, sizeof(unfinished), FRAME_RX_L4_PARTIAL);
	CU_ASSERT_EQUAL(v.kind, FRAME_DATA);
	CU_ASSERT_EQUAL_FATAL(v.payload_len, 8);
	CU_ASSERT_EQUAL(memcmp(frame_payload(&v), "spotlane", 8), 0);
}

/* Any bytes: fast and complete walk agree, nothing behind the end is read. */
static void test_random_damage(void)
{
	struct t_rand r = {t_seed()};
	struct t_frame f;
	size_t len;

	for (unsigned i = 0; i < 200000; i++) {
		f = t_frame_udp(&local, t_rand_below(&r, 300));
		f.payload_len = t_rand_below(&r, 64);
		f.option_words = t_rand_below(&r, 8) ? 0 : t_rand_below(&r, 11);
		f.pad = t_rand_below(&r, 3) ? 0 : t_rand_below(&r, 20);
		len = t_frame_write(&f, buf);
		for (unsigned n = t_rand_below(&r, 4); n > 0; n--)
			buf[t_rand_below(&r, 50) % len] = (uint8_t)t_rand_u64(&r);
		if (t_rand_below(&r, 4) == 0)
			len = t_rand_below(&r, (uint32_t)len + 1);
		parse(buf, len, (uint8_t)t_rand_below(&r, 32));
	}
}

static void test_burst(void)
{
	struct frame_view v[32];
	static uint8_t bytes[32][128];
	struct t_frame f;

	memset(v, 0, sizeof(v));
	for (unsigned n = 0; n <= 32; n++) {
		for (unsigned i = 0; i < n; i++) {
			f = t_frame_udp(&local, i % LANES);
			if (i % 5 == 4)
				f.ip_csum = 1;
			v[i].data = bytes[i];
			v[i].len = (uint32_t)t_frame_write(&f, bytes[i]);
		}
		frame_parse_burst(&local, v, n);
		for (unsigned i = 0; i < n; i++) {
			CU_ASSERT_EQUAL(v[i].kind, i % 5 == 4 ? FRAME_DROP : FRAME_DATA);
			CU_ASSERT(i % 5 == 4 || v[i].lane == i % LANES);
		}
	}
}

static unsigned hits(const uint8_t *reason, unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += hit[reason[i]];
	return sum;
}

/* The tests above, but not the random one, produce each drop reason of the parser; and no bytes
 * produce one of somebody else. */
static void test_every_reason_was_hit(void)
{
	static const uint8_t mine[] = {
		SPL_DROP_RUNT,	       SPL_DROP_OVERSIZE,     SPL_DROP_VLAN,
		SPL_DROP_LLC,	       SPL_DROP_IPV6,	      SPL_DROP_ETHERTYPE,
		SPL_DROP_ETH_SOURCE,   SPL_DROP_IP_TRUNCATED, SPL_DROP_IP_VERSION,
		SPL_DROP_IP_HEADER,    SPL_DROP_IP_LENGTH,    SPL_DROP_IP_CHECKSUM,
		SPL_DROP_FRAGMENT,     SPL_DROP_IP_PROTOCOL,  SPL_DROP_IP_SOURCE,
		SPL_DROP_UDP_LENGTH,   SPL_DROP_UDP_SOURCE,   SPL_DROP_UDP_TRUNCATED,
		SPL_DROP_UDP_CHECKSUM, SPL_DROP_UDP_PORT};
	static void (*const drops[])(void) = {test_ports_not_ours,
					      test_ethernet_drops,
					      test_ip_drops,
					      test_fragments,
					      test_ip_sources,
					      test_udp_drops,
					      test_mtu,
					      test_longest_frame,
					      test_truncated_at_every_byte};
	unsigned total = 0;

	memset(hit, 0, sizeof(hit));
	for (unsigned i = 0; i < T_COUNT(drops); i++)
		drops[i]();
	for (unsigned i = 0; i < T_COUNT(mine); i++)
		CU_ASSERT(hit[mine[i]] > 0);
	test_random_damage();
	for (unsigned i = 0; i < SPL_DROP_COUNT; i++)
		total += hit[i];
	CU_ASSERT_EQUAL(total, hits(mine, T_COUNT(mine)));
}

static const struct t_case cases[] = {
	T(test_good),
	T(test_agent_port),
	T(test_ports_not_ours),
	T(test_all_lanes),
	T(test_padding_is_trimmed),
	T(test_ethernet_drops),
	T(test_other_hosts),
	T(test_ip_drops),
	T(test_fragments),
	T(test_ip_sources),
	T(test_options_are_skipped),
	T(test_udp_drops),
	T(test_checksums_notice_each_bit),
	T(test_port_hints),
	T(test_unfinished_sum_of_the_kernel),
	T(test_mtu),
	T(test_longest_frame),
	T(test_truncated_at_every_byte),
	T(test_arp_and_icmp_are_handed_on),
	T(test_golden_udp),
	T(test_random_damage),
	T(test_burst),
	T(test_every_reason_was_hit),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("parse", setup, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
