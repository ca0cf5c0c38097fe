/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see slab.h. A bounded number of steps each; nothing is allocated. */
#include "dataplane/spot/slab.h"

#include <string.h>

void slab_init(struct slab *s, void *base, uint64_t bytes)
{
	memset(s, 0, sizeof(*s));
	s->base = base;
	s->bytes = bytes;
}

void *slab_take(struct slab *s, unsigned c)
{
	struct slab_class *k = &s->cls[c];
	void *p;

	if (k->free) {
		p = slab_at(s, k->free);
		memcpy(&k->free, p, sizeof(k->free));
	} else {
		if (k->left == 0) {
			if (s->bytes - s->cut < slab_chunk_bytes(c))
				return NULL;
			k->next = s->cut;
			k->left = slab_chunk_objects(c);
			s->cut += slab_chunk_bytes(c);
		}
		p = s->base + k->next;
		k->next += slab_class_bytes(c);
		k->left--;
	}
	k->used++;
	if (k->used > k->peak)
		k->peak = k->used;
	return p;
}

void slab_give(struct slab *s, unsigned c, void *p)
{
	struct slab_class *k = &s->cls[c];

	memcpy(p, &k->free, sizeof(k->free));
	k->free = slab_index(s, p);
	k->used--;
}
