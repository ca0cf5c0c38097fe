/* SPDX-License-Identifier: BSD-3-Clause */
/* The idle policy: spin, yield, nap, never past a timer, at once awake. */
#include "dataplane/lane/idle.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

static void test_idle_spins_then_yields_then_naps(void)
{
	struct idle s = {0};
	unsigned spins = 0, yields = 0;

	while (idle_next(&s, UINT32_MAX) == IDLE_SPIN)
		spins++;
	CU_ASSERT_EQUAL(spins, IDLE_SPIN_PASSES);
	do
		yields++;
	while (idle_next(&s, UINT32_MAX) == IDLE_YIELD);
	CU_ASSERT_EQUAL(yields, IDLE_YIELD_PASSES - 1);
	CU_ASSERT_EQUAL(s.nap_us, IDLE_NAP_MIN_US);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(idle_next(&s, UINT32_MAX), IDLE_NAP);
	CU_ASSERT_EQUAL(s.nap_us, IDLE_NAP_MAX_US);
}

static void test_idle_never_sleeps_past_a_timer(void)
{
	struct idle s = {0};

	for (int i = 0; i < 5000; i++) {
		uint32_t due = (uint32_t)(i % 1500);
		enum idle_action a = idle_next(&s, due);

		if (a == IDLE_NAP)
			CU_ASSERT(s.nap_us <= due && due >= IDLE_NAP_MIN_US);
	}
	CU_ASSERT_NOT_EQUAL(idle_next(&s, 0), IDLE_NAP);
}

static void test_idle_work_starts_over(void)
{
	struct idle s = {0};

	for (int i = 0; i < 2000; i++)
		(void)idle_next(&s, UINT32_MAX);
	idle_busy(&s);
	CU_ASSERT_EQUAL(idle_next(&s, UINT32_MAX), IDLE_SPIN);
}

static const struct t_case cases[] = {
	T(test_idle_spins_then_yields_then_naps, "S-FAIR-5"),
	T(test_idle_never_sleeps_past_a_timer),
	T(test_idle_work_starts_over),
};
static const struct t_suite suites[] = {T_SUITE("idle", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
