/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: a token bucket. Pure; one thread each (a lane's or the agent's own); time is passed
 * in.
 *
 * Time is kept as debt instead of tokens: `full_at` is when the bucket will be full again. Nothing
 * is rounded away at high call rates, and a clock that stands still or goes back gives nothing.
 */
#ifndef SPL_FRAME_BUCKET_H
#define SPL_FRAME_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t full_at;  /* ns */
	uint64_t token_ns; /* price of one; const after start */
	uint64_t depth_ns; /* burst * token_ns; const after start */
};

/* per_second 1..1e9, burst >= 1: how many may pass at once after a pause. */
static inline void bucket_init(struct bucket *b, uint32_t per_second, uint32_t burst)
{
	b->full_at = 0;
	b->token_ns = 1000000000ull / per_second;
	b->depth_ns = b->token_ns * burst;
}

/* Takes one token; false when there is none. */
static inline bool bucket_take(struct bucket *b, uint64_t now)
{
	uint64_t from = b->full_at > now ? b->full_at : now;

	if (from + b->token_ns - now > b->depth_ns)
		return false;
	b->full_at = from + b->token_ns;
	return true;
}

#endif
