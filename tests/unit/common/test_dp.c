/* SPDX-License-Identifier: BSD-3-Clause */
/* The private protocol's codec: round trip, truncation at every byte, versions, limits. */
#include "common/dp.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <spotlane/stats.h>

static size_t sample(uint8_t *buf, size_t cap)
{
	struct pack_writer w = {.p = buf, .cap = cap};
	struct dp_obj_prepare m = {
		.obj_gen = 7,
		.own_gen = 8,
		.attempt = 9,
		.deadline = UINT64_MAX - 3,
		.kind = 2,
		.id = dp_text("room-1"),
		.type = dp_text("room"),
		.request = dp_text("hello"),
	};

	dp_begin(&w, DP_OBJ_PREPARE, DP_F_REQ, 0x1122334455667788ULL, 42);
	dp_put_obj_prepare(&w, &m);
	CU_ASSERT_EQUAL_FATAL(dp_finish(&w, 0), 0);
	return w.len;
}

static void test_dp_round_trip(void)
{
	uint8_t buf[512];
	size_t n = sample(buf, sizeof(buf));
	struct dp_header h;
	struct pack_reader r;
	struct dp_obj_prepare m;

	CU_ASSERT_EQUAL_FATAL(dp_open(buf, n, &h, &r), 0);
	CU_ASSERT_EQUAL(h.type, DP_OBJ_PREPARE);
	CU_ASSERT_EQUAL(h.flags, DP_F_REQ);
	CU_ASSERT_EQUAL(h.epoch, 0x1122334455667788ULL);
	CU_ASSERT_EQUAL(h.corr, 42);
	dp_get_obj_prepare(&r, &m);
	CU_ASSERT_FATAL(dp_done(&r));
	CU_ASSERT_EQUAL(m.obj_gen, 7);
	CU_ASSERT_EQUAL(m.deadline, UINT64_MAX - 3);
	CU_ASSERT(m.id.len == 6 && memcmp(m.id.p, "room-1", 6) == 0);
	CU_ASSERT(m.request.len == 5 && memcmp(m.request.p, "hello", 5) == 0);
	CU_ASSERT_STRING_EQUAL(dp_type_name(h.type), "OBJ_PREPARE");
	CU_ASSERT_STRING_EQUAL(dp_type_name(999), "unknown");
}

static void test_dp_every_truncation_is_refused(void)
{
	uint8_t buf[512];
	size_t n = sample(buf, sizeof(buf));
	struct dp_header h;
	struct pack_reader r;

	for (size_t cut = 0; cut < n; cut++)
		CU_ASSERT_EQUAL(dp_open(buf, cut, &h, &r), -EPROTO);
	/* A body that is shorter than its fields, with a header that agrees. */
	for (size_t body = 0; body < n - DP_HEADER_BYTES; body++) {
		struct dp_obj_prepare m;

		r = (struct pack_reader){.p = buf + DP_HEADER_BYTES, .left = body};
		dp_get_obj_prepare(&r, &m);
		CU_ASSERT_FALSE(dp_done(&r));
	}
}

static void test_dp_other_version_names_both(void)
{
	uint8_t buf[512];
	size_t n = sample(buf, sizeof(buf));
	struct dp_header h;
	struct pack_reader r;

	buf[4] = DP_VERSION + 1;
	CU_ASSERT_EQUAL(dp_open(buf, n, &h, &r), -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(h.version, DP_VERSION + 1);
	buf[0] ^= 1;
	CU_ASSERT_EQUAL(dp_open(buf, n, &h, &r), -EPROTO);
}

static void test_dp_overflow_is_sticky(void)
{
	uint8_t buf[64];
	char big[300] = {0};
	struct pack_writer w = {.p = buf, .cap = sizeof(buf)};
	struct dp_lease_lost m = {.reason = {big, 256}};

	dp_begin(&w, DP_LEASE_LOST, DP_F_EVT, 1, 0);
	dp_put_lease_lost(&w, &m);
	CU_ASSERT_EQUAL(dp_finish(&w, 0), -EMSGSIZE);
	pack_put_u8(&w, 1);
	CU_ASSERT_EQUAL(dp_finish(&w, 0), -EMSGSIZE);
}

static const struct t_case cases[] = {
	T(test_dp_round_trip),
	T(test_dp_every_truncation_is_refused),
	T(test_dp_other_version_names_both),
	T(test_dp_overflow_is_sticky),
};
static const struct t_suite suites[] = {T_SUITE("dp", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
