/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksum vectors, pieces, the header builder and the token bucket. */
#include "dataplane/frame/bucket.h"
#include "dataplane/frame/build.h"
#include "tests/lib/t_clock.h"
#include "tests/lib/t_frame.h"
#include "tests/lib/t_guard.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

/* As it would stand in a packet: big-endian. */
static uint16_t finish(const uint8_t *p, size_t len)
{
	return __builtin_bswap16(csum_finish(csum_add(0, p, len)));
}

static void test_vectors(void)
{
	static const uint8_t rfc1071[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
	static const uint8_t header[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40,
					 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
					 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
	static const uint8_t ones[] = {0xff, 0xff, 0xff, 0xff, 0xff};

	CU_ASSERT_EQUAL(finish(rfc1071, 8), 0x220d); /* RFC 1071 §3: sum ddf2 */
	CU_ASSERT_EQUAL(csum_fold(csum_add(0, header, 20)), 0xffff);
	CU_ASSERT_EQUAL(finish(rfc1071, 0), 0xffff);
	CU_ASSERT_EQUAL(finish(ones, 4), 0x0000);
	CU_ASSERT_EQUAL(finish(ones, 5), 0x00ff);
	CU_ASSERT_EQUAL(csum_finish_udp(csum_add(0, ones, 4)), 0xffff);
}

static void test_each_length_and_offset(void)
{
	static uint8_t bytes[4096];
	struct t_rand r = {t_seed()};

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)t_rand_u64(&r);
	for (size_t len = 0; len < 300; len++) {
		CU_ASSERT_EQUAL(finish(t_guard(bytes, len), len), t_csum(bytes, len, 0));
		CU_ASSERT_EQUAL(finish(bytes + len % 9, len), t_csum(bytes + len % 9, len, 0));
	}
	memset(bytes, 0xff, sizeof(bytes)); /* most carries */
	CU_ASSERT_EQUAL(finish(bytes, sizeof(bytes)), t_csum(bytes, sizeof(bytes), 0));
}

/* A sum in pieces is the sum of the whole, whatever the lengths of the pieces. */
static void test_pieces(void)
{
	uint8_t bytes[257];
	struct t_rand r = {t_seed()};

	for (unsigned i = 0; i < 2000; i++) {
		size_t at = 0, n;
		uint64_t sum = 0;

		for (unsigned k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)t_rand_u64(&r);
		for (; at < sizeof(bytes); at += n) {
			n = t_rand_below(&r, 40);
			n = n < sizeof(bytes) - at ? n : sizeof(bytes) - at;
			sum = at % 2 ? csum_add_odd(sum, bytes + at, n)
				     : csum_add(sum, bytes + at, n);
		}
		CU_ASSERT_EQUAL(__builtin_bswap16(csum_finish(sum)),
				t_csum(bytes, sizeof(bytes), 0));
	}
}

static void test_build_udp(void)
{
	static const uint8_t peer[6] = {2, 0, 0, 0, 0, 2};
	struct frame_local l = t_local(2);
	static const uint16_t lens[] = {0, 1, 2, 17, 32, 1200, 1472, 65507};
	static uint8_t out[FRAME_LEN_MAX];
	struct build_path p;

	build_path_init(&p, &l, 40001, peer, 0x0a000002, 50000);
	for (unsigned i = 0; i < T_COUNT(lens); i++) {
		uint16_t sum, len = lens[i];

		for (uint32_t id = 0; id < 0x10000; id += 0x0fff) {
			memset(out, 0xaa, FRAME_HDR_BYTES + len);
			build_udp(&p, len, (uint16_t)id, out);
			CU_ASSERT_EQUAL(frame_be16(out + 18), id);
			CU_ASSERT_EQUAL(frame_be16(out + 40), 0);
			sum = csum_finish_udp(
				csum_add(csum_pseudo(out + 14, len + 8), out + 34, len + 8));
			memcpy(out + 40, &sum, 2);
			CU_ASSERT_PTR_NULL(t_frame_check(out, FRAME_HDR_BYTES + len));
		}
	}
	CU_ASSERT_EQUAL(memcmp(out, peer, 6), 0);
	CU_ASSERT_EQUAL(memcmp(out + 6, l.mac, 6), 0);
	CU_ASSERT_EQUAL(frame_be32(out + 26), l.ip);
	CU_ASSERT_EQUAL(frame_be32(out + 30), 0x0a000002);
	CU_ASSERT_EQUAL(frame_be16(out + 34), 40001);
	CU_ASSERT_EQUAL(frame_be16(out + 36), 50000);
	CU_ASSERT_EQUAL(out[22], BUILD_TTL);
}

/* The same datagram as Linux sent it, byte for byte but TTL and id, which are given. */
static void test_build_like_linux(void)
{
	static const uint8_t linux_frame[] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08,
		0x00, 0x45, 0x00, 0x00, 0x24, 0x80, 0xe3, 0x40, 0x00, 0x40, 0x11, 0xa5, 0xe3,
		0x0a, 0x00, 0x00, 0x02, 0x0a, 0x00, 0x00, 0x01, 0xc3, 0x50, 0x9c, 0x41, 0x00,
		0x10, 0xce, 0x8d, 0x73, 0x70, 0x6f, 0x74, 0x6c, 0x61, 0x6e, 0x65};
	static const uint8_t server[6] = {2, 0, 0, 0, 0, 1};
	struct frame_local l = {.mac = {2, 0, 0, 0, 0, 2}, .ip = 0x0a000002, .prefix = 24};
	struct build_path p;
	uint8_t out[FRAME_HDR_BYTES];

	build_path_init(&p, &l, 50000, server, 0x0a000001, 40001);
	build_udp(&p, 8, 0x80e3, out);
	CU_ASSERT_EQUAL(memcmp(out, linux_frame, 40), 0);
	build_udp_seed(out);
	CU_ASSERT_EQUAL(frame_be16(out + 40), 0x1424); /* what Linux leaves to a device */
}

static void test_next_hop(void)
{
	struct frame_local l = t_local(1);

	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a000002), 0x0a000002);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a0000fe), 0x0a0000fe);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a000102), 0x0a0000fe);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x08080808), 0x0a0000fe);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a0000ff), 0); /* broadcast */
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a000000), 0);
	CU_ASSERT_EQUAL(frame_next_hop(&l, l.ip), 0);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0xe0000001), 0);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x7f000001), 0);
	l.gateway = 0;
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x08080808), 0);
	l.prefix = 31; /* RFC 3021: both addresses are hosts */
	l.ip = 0x0a000000;
	frame_local_ready(&l);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a000001), 0x0a000001);
	l.prefix = 32;
	l.gateway = 0x0a0000fe;
	frame_local_ready(&l);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x0a000001), 0x0a0000fe);
	l.prefix = 0;
	frame_local_ready(&l);
	CU_ASSERT_EQUAL(frame_next_hop(&l, 0x08080808), 0x08080808);
}

static void test_bucket_rate(void)
{
	struct t_clock c = {5 * T_S};
	struct bucket b;
	unsigned passed = 0;

	bucket_init(&b, 1000, 10);
	for (; c.ns < 15 * T_S; t_clock_add(&c, 30 * T_US)) /* asked 33 times too often */
		passed += bucket_take(&b, c.ns);
	CU_ASSERT(passed >= 9990 && passed <= 10011);
}

static void test_bucket_burst_and_standstill(void)
{
	struct bucket b;
	unsigned passed = 0;

	bucket_init(&b, 1000, 10);
	for (unsigned i = 0; i < 100; i++)
		passed += bucket_take(&b, 7 * T_S);
	CU_ASSERT_EQUAL(passed, 10);
	for (unsigned i = 0; i < 100; i++) /* a clock that goes back gives nothing */
		passed += bucket_take(&b, 6 * T_S - i);
	CU_ASSERT_EQUAL(passed, 10);
	CU_ASSERT_TRUE(bucket_take(&b, 7 * T_S + T_MS));
	CU_ASSERT_FALSE(bucket_take(&b, 7 * T_S + T_MS));
	for (passed = 0; bucket_take(&b, 3600 * T_S); passed++)
		;
	CU_ASSERT_EQUAL(passed, 10); /* a long pause saves up no more than the burst */
}

static void test_bucket_very_fast(void)
{
	struct bucket b;
	unsigned passed = 0;

	bucket_init(&b, 1000000000, 1);
	for (uint64_t ns = 1; ns <= 1000; ns++)
		passed += bucket_take(&b, ns);
	CU_ASSERT_EQUAL(passed, 1000);
}

static const struct t_case csum_cases[] = {
	T(test_vectors),	  T(test_each_length_and_offset),
	T(test_pieces),		  T(test_build_udp),
	T(test_build_like_linux), T(test_next_hop),
	T(test_bucket_rate),	  T(test_bucket_burst_and_standstill),
	T(test_bucket_very_fast),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("csum", NULL, NULL, csum_cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
