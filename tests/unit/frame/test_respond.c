/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP both ways, ICMP echo, and the law: each frame is used or dropped, once, by one name. */
#include "dataplane/frame/arp.h"
#include "dataplane/frame/icmp.h"
#include "dataplane/frame/neigh_get.h"
#include "dataplane/frame/parse.h"
#include "tests/lib/t_clock.h"
#include "tests/lib/t_frame.h"
#include "tests/lib/t_guard.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

static struct frame_local local;
static uint8_t buf[T_FRAME_MAX];
static struct neigh *n;
static struct t_clock clk = {100 * T_S};
static unsigned frames_out;
static uint8_t request[ARP_FRAME_BYTES]; /* the last one the table asked for */

static void on_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
	arp_request(&local, ip, mac, request);
}

static void on_frame(void *ctx, void *frame, const uint8_t *mac)
{
	frames_out += mac != NULL;
}

static int setup(void)
{
	static const struct neigh_ops ops = {NULL, on_probe, on_frame};
	static const struct neigh_times times = NEIGH_TIMES_DEFAULT;

	local = t_local(2);
	n = neigh_create(32, &times, &ops, t_seed());
	return n ? 0 : -1;
}

static int teardown(void)
{
	neigh_destroy(n);
	n = NULL;
	return 0;
}

static void reset(void)
{
	teardown();
	setup();
	frames_out = 0;
}

static bool known(uint32_t ip)
{
	uint8_t mac[6];

	return neigh_get(neigh_published(n), ip, mac);
}

static enum arp_result arp_in(const struct t_arp *a, struct frame_view *v)
{
	size_t len = t_arp_write(a, buf);

	memset(v, 0, sizeof(*v));
	v->data = buf;
	v->len = (uint32_t)len;
	frame_parse(&local, v);
	CU_ASSERT_EQUAL(v->kind, FRAME_ARP);
	return arp_input(&local, n, v, clk.ns);
}

static void test_arp_request_is_answered(void)
{
	struct t_arp a = t_frame_arp(&local), want = a;
	struct frame_view v;
	uint8_t out[64];

	reset();
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_REPLY);
	memcpy(want.dst, a.sender, 6);
	memcpy(want.src, local.mac, 6);
	memcpy(want.sender, local.mac, 6);
	memcpy(want.target, a.sender, 6);
	want.op = 2;
	want.sender_ip = local.ip;
	want.target_ip = a.sender_ip;
	CU_ASSERT_EQUAL(t_arp_write(&want, out), v.len);
	CU_ASSERT_EQUAL(memcmp(v.data, out, 42), 0);
	CU_ASSERT_TRUE(known(0x0a000002)); /* who asks for us will hear from us */
}

/* A request and its answer as Linux 6.18 wrote them. */
static void test_arp_like_linux(void)
{
	static const char *const hex[2] = {
		"ffffffffffff020000000002080600010800060400010200000000020a000002000000000000"
		"0a000001",
		"020000000002020000000001080600010800060400020200000000010a000001020000000002"
		"0a000002"};
	uint8_t bytes[2][42];
	struct frame_local client = {.mac = {2, 0, 0, 0, 0, 2}, .ip = 0x0a000002, .prefix = 24};
	struct frame_view v = {.data = bytes[0], .len = 42};
	uint8_t out[42];

	reset();
	for (unsigned i = 0; i < 2 * 42; i++) {
		unsigned byte;

		sscanf(hex[i / 42] + i % 42 * 2, "%2x", &byte);
		bytes[i / 42][i % 42] = (uint8_t)byte;
	}
	arp_request(&client, 0x0a000001, NULL, out);
	CU_ASSERT_EQUAL(memcmp(out, bytes[0], 42), 0);
	frame_parse(&local, &v);
	CU_ASSERT_EQUAL(arp_input(&local, n, &v, clk.ns), ARP_REPLY);
	CU_ASSERT_EQUAL(memcmp(v.data, bytes[1], 42), 0);
}

static void test_arp_padded_request(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct frame_view v = {.data = buf, .len = 60};

	t_arp_write(&a, buf);
	memset(buf + 42, 0xee, 18);
	frame_parse(&local, &v);
	CU_ASSERT_EQUAL(arp_input(&local, n, &v, clk.ns), ARP_REPLY);
	CU_ASSERT_EQUAL(v.len, 42); /* no foreign bytes go out */
}

static void test_arp_resolves_the_gateway(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct frame_view v;
	static const uint8_t gw_mac[6] = {2, 0, 0, 0, 0, 0xfe};
	uint32_t hop = frame_next_hop(&local, 0x08080808);

	reset();
	neigh_send(n, hop, buf, clk.ns);
	CU_ASSERT_EQUAL(frame_be32(request + 38), 0x0a0000fe);
	CU_ASSERT_EQUAL(request[0], 0xff);
	CU_ASSERT_EQUAL(frame_be16(request + 20), 1);
	a.op = 2;
	a.sender_ip = 0x0a0000fe;
	memcpy(a.sender, gw_mac, 6);
	memcpy(a.dst, local.mac, 6);
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_DONE);
	CU_ASSERT_EQUAL(frames_out, 1);
	CU_ASSERT_TRUE(known(hop));
}

static void test_arp_unicast_probe(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct frame_view v;

	reset();
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_REPLY);
	CU_ASSERT_TRUE(known(a.sender_ip));
	t_clock_add(&clk, 31 * T_S);
	neigh_tick(n, clk.ns);
	CU_ASSERT_EQUAL(memcmp(request, a.sender, 6), 0);
}

static void test_arp_about_others(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct frame_view v;

	reset();
	a.target_ip = 0x0a000009;
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_OTHER);
	CU_ASSERT_FALSE(known(a.sender_ip));
	a.op = 2; /* an unasked answer teaches nothing */
	a.target_ip = local.ip;
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_OTHER);
	CU_ASSERT_FALSE(known(a.sender_ip));
	a.target_ip = a.sender_ip; /* nor does the announcement of a stranger */
	a.op = 1;
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_OTHER);
	CU_ASSERT_FALSE(known(a.sender_ip));
}

static void test_arp_announcement_moves_a_neighbour(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct frame_view v;
	uint8_t mac[6];

	reset();
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_REPLY);
	a.target_ip = a.sender_ip;
	a.sender[5] = 0x77;
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_DONE);
	CU_ASSERT_TRUE(neigh_get(neigh_published(n), a.sender_ip, mac));
	CU_ASSERT_EQUAL(mac[5], 0x77);
}

/* RFC 5227: somebody asks whether our address is taken, without having one. */
static void test_arp_probe_for_our_address(void)
{
	struct t_arp a = t_frame_arp(&local);
	struct frame_view v;

	reset();
	a.sender_ip = 0;
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_REPLY);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 0);
	a.target_ip = 0x0a000009;
	CU_ASSERT_EQUAL(arp_in(&a, &v), ARP_DROP);
	CU_ASSERT_EQUAL(v.reason, SPL_DROP_ARP_SENDER);
}

static void expect_arp_drop(const struct t_arp *a, enum spl_frame_drop why)
{
	struct frame_view v;

	CU_ASSERT_EQUAL(arp_in(a, &v), ARP_DROP);
	CU_ASSERT_EQUAL(v.reason, why);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 0);
}

static void test_arp_malformed(void)
{
	const struct t_arp good = t_frame_arp(&local);
	struct t_arp a = good;

	reset();
	a.htype = 6;
	expect_arp_drop(&a, SPL_DROP_ARP_MALFORMED);
	a = good;
	a.ptype = 0x86dd;
	expect_arp_drop(&a, SPL_DROP_ARP_MALFORMED);
	a = good;
	a.hlen = 8;
	expect_arp_drop(&a, SPL_DROP_ARP_MALFORMED);
	a = good;
	a.plen = 16;
	expect_arp_drop(&a, SPL_DROP_ARP_MALFORMED);
	for (unsigned op = 0; op < 40; op++) {
		a = good;
		a.op = (uint16_t)op;
		if (op != 1 && op != 2)
			expect_arp_drop(&a, SPL_DROP_ARP_MALFORMED);
	}
}

static void test_arp_bad_senders(void)
{
	const struct t_arp good = t_frame_arp(&local);
	static const uint32_t ips[] = {0x0a000001, 0x0a0000ff, 0x0a000000, 0x0b000002,
				       0xe0000001, 0xffffffff, 0x7f000001};
	struct t_arp a = good;

	reset();
	for (unsigned i = 0; i < T_COUNT(ips); i++) { /* ours: a conflict; others: not on our net */
		a.sender_ip = ips[i];
		expect_arp_drop(&a, SPL_DROP_ARP_SENDER);
	}
	a = good;
	memset(a.sender, 0xff, 6);
	expect_arp_drop(&a, SPL_DROP_ARP_SENDER);
	memset(a.sender, 0, 6);
	expect_arp_drop(&a, SPL_DROP_ARP_SENDER);
}

static void test_arp_truncated_at_every_byte(void)
{
	struct t_arp a = t_frame_arp(&local);

	reset();
	t_arp_write(&a, buf);
	for (uint32_t len = 14; len < 42; len++) {
		struct frame_view v = {.data = t_guard(buf, len), .len = len};

		frame_parse(&local, &v);
		CU_ASSERT_EQUAL(v.kind, FRAME_ARP);
		CU_ASSERT_EQUAL(arp_input(&local, n, &v, clk.ns), ARP_DROP);
		CU_ASSERT_EQUAL(v.reason, SPL_DROP_ARP_MALFORMED);
	}
}

static void test_arp_announce(void)
{
	uint8_t out[42];

	arp_announce(&local, out);
	CU_ASSERT_EQUAL(out[0], 0xff);
	CU_ASSERT_EQUAL(frame_be16(out + 20), 1);
	CU_ASSERT_EQUAL(frame_be32(out + 28), local.ip);
	CU_ASSERT_EQUAL(frame_be32(out + 38), local.ip);
	CU_ASSERT_EQUAL(memcmp(out + 22, local.mac, 6), 0);
}

/* An echo frame with `words` of IP options and `pad` bytes of padding, parsed. */
static struct frame_view echo_frame(unsigned data, unsigned words, unsigned pad)
{
	static uint8_t icmp[2048];
	struct t_frame f = t_frame_udp(&local, 0);
	struct frame_view v = {.data = buf};

	f.proto = 1;
	f.payload = icmp;
	f.payload_len = (unsigned)t_icmp_echo(0x52d9, 9, data, icmp);
	f.option_words = words;
	f.pad = pad;
	v.len = (uint32_t)t_frame_write(&f, buf);
	frame_parse(&local, &v);
	CU_ASSERT_EQUAL_FATAL(v.kind, FRAME_ICMP);
	return v;
}

static void test_echo(void)
{
	static const unsigned sizes[] = {0, 1, 2, 10, 17, 18, 56, 1000, 1432};
	struct bucket limit;
	struct frame_view v;

	bucket_init(&limit, 1000, 1000);
	for (unsigned i = 0; i < T_COUNT(sizes); i++) {
		for (unsigned words = 0; words <= 10; words += 5) {
			v = echo_frame(sizes[i], words, sizes[i] < 18 ? 18 - sizes[i] : 0);
			CU_ASSERT_TRUE(icmp_echo(&local, &limit, &v, 77, clk.ns));
			CU_ASSERT_EQUAL(v.len, 42 + sizes[i]); /* no options, no padding */
			CU_ASSERT_PTR_NULL(t_frame_check(v.data, v.len));
			CU_ASSERT_EQUAL(v.data[5], 2);
			CU_ASSERT_EQUAL(memcmp(v.data + 6, local.mac, 6), 0);
			CU_ASSERT_EQUAL(frame_be32(v.data + 26), local.ip);
			CU_ASSERT_EQUAL(frame_be32(v.data + 30), 0x0a000002);
			CU_ASSERT_EQUAL(v.data[34], 0);
			CU_ASSERT_EQUAL(frame_be16(v.data + 38), 0x52d9);
			CU_ASSERT_EQUAL(frame_be16(v.data + 40), 9);
			for (unsigned k = 0; k < sizes[i]; k++)
				CU_ASSERT_EQUAL(v.data[42 + k], (uint8_t)(k * 7));
		}
	}
}

static void test_echo_rate(void)
{
	struct bucket limit;
	struct frame_view v;
	unsigned answered = 0;

	bucket_init(&limit, 100, 5);
	for (unsigned i = 0; i < 50; i++) {
		v = echo_frame(8, 0, 0);
		answered += icmp_echo(&local, &limit, &v, 0, clk.ns);
		if (i >= 5)
			CU_ASSERT_EQUAL(v.reason, SPL_DROP_ICMP_RATE);
	}
	CU_ASSERT_EQUAL(answered, 5);
}

static void test_echo_refusals(void)
{
	struct bucket limit;
	struct frame_view v = echo_frame(8, 0, 0);

	bucket_init(&limit, 100, 100);
	v.data[36] ^= 1;
	CU_ASSERT_FALSE(icmp_echo(&local, &limit, &v, 0, clk.ns));
	CU_ASSERT_EQUAL(v.reason, SPL_DROP_ICMP_MALFORMED);
	for (uint16_t len = 0; len < 8; len++) {
		v = echo_frame(8, 0, 0);
		v.payload_len = len;
		v.data = t_guard(v.data, 34u + len);
		CU_ASSERT_FALSE(icmp_echo(&local, &limit, &v, 0, clk.ns));
		CU_ASSERT_EQUAL(v.reason, SPL_DROP_ICMP_MALFORMED);
	}
	v = echo_frame(8, 0, 0);
	v.data[34] = 0; /* a reply: 8 less in the first byte, 8 more in the sum */
	frame_put16(v.data + 36, (uint16_t)(frame_be16(v.data + 36) + 0x800));
	CU_ASSERT_FALSE(icmp_echo(&local, &limit, &v, 0, clk.ns));
	CU_ASSERT_EQUAL(v.reason, SPL_DROP_ICMP_OTHER);
	v = echo_frame(8, 0, 0);
	v.data[35] = 1; /* a code that echo does not have */
	frame_put16(v.data + 36, (uint16_t)(frame_be16(v.data + 36) - 1));
	CU_ASSERT_FALSE(icmp_echo(&local, &limit, &v, 0, clk.ns));
	CU_ASSERT_EQUAL(v.reason, SPL_DROP_ICMP_OTHER);
}

/* Makes one random frame of any kind, sound or damaged. */
static size_t any_frame(struct t_rand *r)
{
	struct t_frame f = t_frame_udp(&local, t_rand_below(r, 4));
	struct t_arp a = t_frame_arp(&local);
	uint8_t icmp[128];
	size_t len;

	switch (t_rand_below(r, 4)) {
	case 0:
		a.op = (uint16_t)(1 + t_rand_below(r, 2));
		a.sender_ip = 0x0a000000 + t_rand_below(r, 20);
		a.target_ip = 0x0a000000 + t_rand_below(r, 3);
		len = t_arp_write(&a, buf);
		break;
	case 1:
		f.proto = 1;
		f.payload = icmp;
		f.payload_len = (unsigned)t_icmp_echo(1, 1, t_rand_below(r, 100), icmp);
		len = t_frame_write(&f, buf);
		break;
	default:
		f.payload_len = t_rand_below(r, 100);
		len = t_frame_write(&f, buf);
	}
	if (t_rand_below(r, 3) == 0)
		buf[t_rand_below(r, (uint32_t)len)] ^= (uint8_t)(1 << t_rand_below(r, 8));
	return t_rand_below(r, 5) ? len : t_rand_below(r, (uint32_t)len + 1);
}

/* frames in = sum of uses + sum of drops, and each name has a sensible share. */
static void test_conservation(void)
{
	struct t_rand r = {t_seed()};
	uint64_t drops[SPL_DROP_COUNT] = {0}, uses[SPL_USE_COUNT] = {0}, sum = 0, frames = 100000;
	uint64_t lanes = 0, agent = 0;
	struct bucket limit;

	reset();
	bucket_init(&limit, 1000, 100);
	for (uint64_t i = 0; i < frames; i++) {
		struct frame_view v = {.data = buf, .len = (uint32_t)any_frame(&r)};
		enum arp_result arp;

		t_clock_add(&clk, 100 * T_US);
		frame_parse(&local, &v);
		if (v.kind == FRAME_ARP) {
			arp = arp_input(&local, n, &v, clk.ns);
			if (arp == ARP_DROP)
				drops[v.reason]++;
			else
				uses[arp == ARP_OTHER ? SPL_USE_OTHER_HOST : SPL_USE_ARP]++;
		} else if (v.kind == FRAME_ICMP) {
			if (icmp_echo(&local, &limit, &v, 0, clk.ns))
				uses[SPL_USE_ICMP]++;
			else
				drops[v.reason]++;
		} else if (v.kind == FRAME_OTHER) {
			uses[SPL_USE_OTHER_HOST]++;
		} else if (v.kind == FRAME_DROP) {
			CU_ASSERT_FATAL(v.reason < SPL_DROP_COUNT);
			drops[v.reason]++;
		} else {
			lanes += v.kind == FRAME_DATA;
			agent += v.kind == FRAME_AGENT;
		}
	}
	for (unsigned i = 0; i < SPL_DROP_COUNT; i++)
		sum += drops[i];
	for (unsigned i = 0; i < SPL_USE_COUNT; i++)
		sum += uses[i];
	CU_ASSERT_EQUAL(sum + lanes + agent, frames);
	CU_ASSERT(lanes > frames / 8 && uses[SPL_USE_ARP] > frames / 200);
	CU_ASSERT(uses[SPL_USE_ICMP] > frames / 50 && drops[SPL_DROP_IP_CHECKSUM] > 100);
}

static const struct t_case arp_cases[] = {
	T(test_arp_request_is_answered),
	T(test_arp_like_linux),
	T(test_arp_padded_request),
	T(test_arp_resolves_the_gateway),
	T(test_arp_unicast_probe),
	T(test_arp_about_others),
	T(test_arp_announcement_moves_a_neighbour),
	T(test_arp_probe_for_our_address),
	T(test_arp_malformed),
	T(test_arp_bad_senders),
	T(test_arp_truncated_at_every_byte),
	T(test_arp_announce),
};

static const struct t_case icmp_cases[] = {
	T(test_echo),
	T(test_echo_rate),
	T(test_echo_refusals),
	T(test_conservation),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("arp", setup, teardown, arp_cases),
					 T_SUITE("icmp", setup, teardown, icmp_cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
