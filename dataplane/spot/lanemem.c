/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see lanemem.h.
 *
 * A block is an 8-byte header {size and flags, size of the block before it}, both in units of 16
 * bytes, and its bytes; the header sits in the last 8 bytes of a unit, so that the bytes are
 * 16-aligned. A free block keeps its two list links in its first 8 bytes. The region ends with a
 * used block of size 0, and the first block has none before it.
 */
#include "dataplane/spot/lanemem.h"

#include <string.h>

#define UNIT	  16u
#define USED	  0x80000000u
#define SIZE_MASK 0x7fffffffu
#define UNITS_MAX 0x01000000u /* of one allocation: 256 MiB, beyond any message */

struct head {
	uint32_t size; /* units, header included; USED */
	uint32_t before;
};

struct links {
	uint32_t next, prev;
};

static struct head *head_at(const struct lanemem *m, uint32_t u)
{
	return (struct head *)(void *)(m->base + (uint64_t)u * UNIT + 8);
}

static struct links *links_at(const struct lanemem *m, uint32_t u)
{
	return (struct links *)(void *)(m->base + (uint64_t)u * UNIT + 16);
}

/* Class of the blocks of exactly `size` units. */
static void class_of(uint32_t size, unsigned *fl, unsigned *sl)
{
	if (size < LANEMEM_SL) {
		*fl = 0;
		*sl = size;
		return;
	}
	*fl = 31 - (unsigned)__builtin_clz(size) - 3;
	*sl = (size >> (*fl - 1)) - LANEMEM_SL;
}

/* The smallest size of the first class in which every block holds `size` units. */
static uint32_t round_up(uint32_t size)
{
	unsigned fl, sl;

	if (size < LANEMEM_SL)
		return size;
	class_of(size, &fl, &sl);
	return size + (1u << (fl - 1)) - 1;
}

static void list_add(struct lanemem *m, uint32_t u)
{
	unsigned fl, sl;
	struct links *l = links_at(m, u);

	class_of(head_at(m, u)->size, &fl, &sl);
	l->prev = 0;
	l->next = m->head[fl][sl];
	if (l->next)
		links_at(m, l->next)->prev = u;
	m->head[fl][sl] = u;
	m->sl_map[fl] |= 1u << sl;
	m->fl_map |= 1u << fl;
}

static void list_del(struct lanemem *m, uint32_t u)
{
	unsigned fl, sl;
	struct links *l = links_at(m, u);

	class_of(head_at(m, u)->size, &fl, &sl);
	if (l->next)
		links_at(m, l->next)->prev = l->prev;
	if (l->prev) {
		links_at(m, l->prev)->next = l->next;
		return;
	}
	m->head[fl][sl] = l->next;
	if (l->next)
		return;
	m->sl_map[fl] &= ~(1u << sl);
	if (!m->sl_map[fl])
		m->fl_map &= ~(1u << fl);
}

void lanemem_init(struct lanemem *m, void *base, uint64_t bytes)
{
	uint32_t units = (uint32_t)(bytes / UNIT);

	memset(m, 0, sizeof(*m));
	m->base = base;
	/* Unit 0 is left out, because 0 means "none"; its second half is not even a header. */
	units -= 2;
	m->bytes = (uint64_t)(units - 1) * UNIT;
	head_at(m, 1)->size = units - 1;
	head_at(m, 1)->before = 0;
	head_at(m, units)->size = USED;
	head_at(m, units)->before = units - 1;
	list_add(m, 1);
}

/* A free block of at least `size` units, out of its list; 0 when there is none. */
static uint32_t take(struct lanemem *m, uint32_t size)
{
	unsigned fl, sl;
	uint32_t map, u;

	class_of(round_up(size), &fl, &sl);
	map = m->sl_map[fl] & (~0u << sl);
	if (!map) {
		uint32_t fls = fl == 31 ? 0 : m->fl_map & (~0u << (fl + 1));

		if (!fls)
			return 0;
		fl = (unsigned)__builtin_ctz(fls);
		map = m->sl_map[fl];
	}
	u = m->head[fl][__builtin_ctz(map)];
	list_del(m, u);
	return u;
}

void *lanemem_alloc(struct lanemem *m, size_t bytes)
{
	uint32_t size, u, rest;
	struct head *h;

	if (bytes > (uint64_t)(UNITS_MAX - 1) * UNIT) {
		m->failed++;
		return NULL;
	}
	size = (uint32_t)((bytes + 8 + UNIT - 1) / UNIT);
	size = size < 2 ? 2 : size; /* room for the links when it is free */
	u = take(m, size);
	if (!u) {
		m->failed++;
		return NULL;
	}
	h = head_at(m, u);
	rest = h->size - size;
	if (rest >= 2) {
		head_at(m, u + size)->size = rest;
		head_at(m, u + size)->before = size;
		head_at(m, u + h->size)->before = rest;
		list_add(m, u + size);
		h->size = size;
	}
	m->used += (uint64_t)h->size * UNIT;
	if (m->used > m->used_max)
		m->used_max = m->used;
	h->size |= USED;
	return links_at(m, u);
}

void lanemem_free(struct lanemem *m, void *p)
{
	uint32_t u, size;
	struct head *h, *after;

	if (!p)
		return;
	u = (uint32_t)(((uint8_t *)p - m->base) / UNIT) - 1;
	h = head_at(m, u);
	size = h->size & SIZE_MASK;
	after = head_at(m, u + size);
	if (!(h->size & USED) || after->before != size)
		__builtin_trap();
	m->used -= (uint64_t)size * UNIT;
	if (!(after->size & USED)) {
		list_del(m, u + size);
		size += after->size;
	}
	if (h->before && !(head_at(m, u - h->before)->size & USED)) {
		u -= h->before;
		list_del(m, u);
		size += head_at(m, u)->size;
	}
	head_at(m, u)->size = size;
	head_at(m, u + size)->before = size;
	list_add(m, u);
}

bool lanemem_check(const struct lanemem *m)
{
	uint32_t end = (uint32_t)(m->bytes / UNIT) + 1, before = 0, u = 1;
	uint64_t used = 0;
	bool was_free = false;

	while (u < end) {
		const struct head *h = head_at(m, u);
		uint32_t size = h->size & SIZE_MASK;
		bool is_free = !(h->size & USED);

		if (h->before != before || size == 0 || size > end - u || (is_free && was_free))
			return false;
		if (!is_free)
			used += (uint64_t)size * UNIT;
		was_free = is_free;
		before = size;
		u += size;
	}
	return u == end && used == m->used && head_at(m, end)->before == before;
}
