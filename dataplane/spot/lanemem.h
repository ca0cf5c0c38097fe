/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: memory of a lane: payloads that outlive their buffer, reassembly, replies.
 *
 * A two-level segregated-fit allocator over one region that the host backs before start. Sizes are
 * rounded up to 16 bytes plus an 8-byte header, never to powers of two. Allocation and release
 * each take a bounded number of steps (no search), and neighbours that are free are one block
 * again. One lane; no locks.
 */
#ifndef SPL_DATAPLANE_SPOT_LANEMEM_H
#define SPL_DATAPLANE_SPOT_LANEMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANEMEM_FL 32 /* powers of two of 16-byte units */
#define LANEMEM_SL 16 /* steps within a power of two */

struct lanemem {
	uint8_t *base;
	uint64_t bytes; /* of the region that are managed */
	uint64_t used;	/* in blocks given out, headers included */
	uint64_t used_max;
	uint64_t failed; /* allocations refused */
	uint32_t fl_map;
	uint32_t sl_map[LANEMEM_FL];
	uint32_t head[LANEMEM_FL][LANEMEM_SL]; /* block offsets in 16-byte units, 0 = none */
};

/* Manages `bytes` at `base` (64-aligned, at least 4 KiB, less than 64 GiB). */
void lanemem_init(struct lanemem *m, void *base, uint64_t bytes);

/* `bytes` (1 to 16 MiB and a header) of 16-aligned memory; NULL when no block is large enough. */
void *lanemem_alloc(struct lanemem *m, size_t bytes);

/* Gives back what lanemem_alloc() returned; NULL is ignored. A wrong or second release of `p` is
 * caught when the block's header shows it, and then ends the process: memory of other Spots is at
 * stake. */
void lanemem_free(struct lanemem *m, void *p);

/* Bytes that are not given out, in all blocks together. */
static inline uint64_t lanemem_left(const struct lanemem *m)
{
	return m->bytes - m->used;
}

/* Walks all blocks and checks headers, neighbours and sums; for tests. */
bool lanemem_check(const struct lanemem *m);

#endif
