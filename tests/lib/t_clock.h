/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that tests inject: it moves only when told to. One thread. */
#ifndef SPL_T_CLOCK_H
#define SPL_T_CLOCK_H

#include <stdint.h>

#define T_US 1000ull
#define T_MS 1000000ull
#define T_S  1000000000ull

struct t_clock {
	uint64_t ns;
};

/* For modules that take a clock as function and context. */
static inline uint64_t t_clock_now(void *ctx)
{
	return ((const struct t_clock *)ctx)->ns;
}

static inline uint64_t t_clock_add(struct t_clock *c, uint64_t ns)
{
	return c->ns += ns;
}

#endif
