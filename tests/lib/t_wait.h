/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a condition, but not for ever: the limit is only there for a test that has failed,
 * and real time, whatever clock the test injects.
 */
#ifndef SPL_T_WAIT_H
#define SPL_T_WAIT_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define T_WAIT_S 30u

static inline uint64_t t_wait_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For threads that may not assert: where their patience ends, and whether it has. */
static inline uint64_t t_wait_end(void)
{
	return t_wait_now() + T_WAIT_S * UINT64_C(1000000000);
}

static inline bool t_wait_over(uint64_t end)
{
	return t_wait_now() > end;
}

/* Does `step` until `cond` holds; else the test ends here and says what never came. Only on the
 * thread that CUnit runs the test on.
 */
#define T_UNTIL(cond, step) \
	do { \
		const uint64_t t_until_end = t_wait_end(); \
		while (!(cond)) { \
			if (t_wait_over(t_until_end)) \
				CU_assertImplementation(CU_FALSE, __LINE__, "never: " #cond, \
							__FILE__, "", CU_TRUE); \
			step; \
		} \
	} while (0)

#endif
