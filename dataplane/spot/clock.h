/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the clock of a lane: cycles of the time stamp counter, and their conversion.
 *
 * Every time in this room is in cycles. A lane reads the counter once per turn. A test hands in a
 * variable instead (spot_conf.fake_clock). Pure; any thread.
 */
#ifndef SPL_DATAPLANE_SPOT_CLOCK_H
#define SPL_DATAPLANE_SPOT_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The counter of this core. Invariant and the same on all cores, as the host checks at start. */
static inline uint64_t spot_cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
#error "no cycle counter known for this machine"
#endif
}

struct spot_clock {
	const uint64_t *fake; /* NULL: the counter */
	uint64_t hz;
	/* Scaled by 2^32, so that a lane divides nothing. */
	uint64_t ns_mult;	       /* nanoseconds of a cycle */
	uint64_t us_cycles, ns_cycles; /* cycles of a microsecond, of a nanosecond */
};

static inline void spot_clock_init(struct spot_clock *c, uint64_t hz, const uint64_t *fake)
{
	c->fake = fake;
	c->hz = hz;
	c->ns_mult = (uint64_t)(((unsigned __int128)1000000000u << 32) / hz);
	c->us_cycles = (uint64_t)(((unsigned __int128)hz << 32) / 1000000u);
	c->ns_cycles = (uint64_t)(((unsigned __int128)hz << 32) / 1000000000u);
}

static inline uint64_t spot_now(const struct spot_clock *c)
{
	return __builtin_expect(c->fake != NULL, 0) ? *c->fake : spot_cycles();
}

static inline uint64_t spot_to_ns(const struct spot_clock *c, uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * c->ns_mult >> 32);
}

/* Cycles of `us` microseconds, of `ns` nanoseconds and of `ms` milliseconds, rounded down. */
static inline uint64_t spot_from_us(const struct spot_clock *c, uint64_t us)
{
	return (uint64_t)((unsigned __int128)us * c->us_cycles >> 32);
}

static inline uint64_t spot_from_ns(const struct spot_clock *c, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * c->ns_cycles >> 32);
}

static inline uint64_t spot_from_ms(const struct spot_clock *c, uint64_t ms)
{
	return spot_from_us(c, ms * 1000u);
}

#endif
