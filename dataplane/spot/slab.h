/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: memory of Spot objects: size classes in steps of 64 bytes up to 1 KiB and of a quarter
 * power of two above, each fed by chunks that are cut one after another from the front of the
 * region. Nothing is given back to the region; a freed object serves its class again. How much of
 * the front can ever be cut is arithmetic over the peaks of the classes: spot_plan. One lane.
 */
#ifndef SPL_DATAPLANE_SPOT_SLAB_H
#define SPL_DATAPLANE_SPOT_SLAB_H

#include <stddef.h>
#include <stdint.h>

#define SLAB_CLASSES 64
#define SLAB_CHUNK   65536u

struct slab_class {
	uint32_t free;	     /* head of the list of freed objects (index), 0 = none */
	uint32_t left;	     /* objects not yet cut from the current chunk */
	uint64_t next;	     /* offset of the next of them */
	uint32_t used, peak; /* objects given out */
};

struct slab {
	uint8_t *base;
	uint64_t bytes; /* of the region */
	uint64_t cut;	/* bytes of chunks so far */
	struct slab_class cls[SLAB_CLASSES];
};

/* The class of an object of `bytes` (1..2 MiB). */
static inline unsigned slab_class_of(uint32_t bytes)
{
	uint32_t u = (bytes + 63) / 64 - 1;
	unsigned msb;

	if (u < 16)
		return u;
	msb = 31 - (unsigned)__builtin_clz(u);
	return 16 + (msb - 4) * 4 + ((u >> (msb - 2)) & 3);
}

/* Bytes of an object of class `c`. */
static inline uint32_t slab_class_bytes(unsigned c)
{
	unsigned octave, step;

	if (c < 16)
		return (c + 1) * 64;
	octave = (c - 16) / 4 + 4;
	step = (c - 16) % 4;
	return ((4 + step + 1) << (octave - 2)) * 64;
}

/* Bytes of a chunk of class `c`, and the objects in it. */
static inline uint64_t slab_chunk_bytes(unsigned c)
{
	uint64_t b = slab_class_bytes(c);

	return b <= SLAB_CHUNK ? SLAB_CHUNK : (b + SLAB_CHUNK - 1) / SLAB_CHUNK * SLAB_CHUNK;
}

static inline uint32_t slab_chunk_objects(unsigned c)
{
	return (uint32_t)(slab_chunk_bytes(c) / slab_class_bytes(c));
}

void slab_init(struct slab *s, void *base, uint64_t bytes);

/* An object of class `c`, not zeroed; NULL when the region is at its end. */
void *slab_take(struct slab *s, unsigned c);
void slab_give(struct slab *s, unsigned c, void *p);

static inline uint32_t slab_index(const struct slab *s, const void *p)
{
	return (uint32_t)((size_t)((const uint8_t *)p - s->base) / 64) + 1;
}

static inline void *slab_at(const struct slab *s, uint32_t index)
{
	return s->base + (uint64_t)(index - 1) * 64;
}

#endif
