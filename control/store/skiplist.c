/* SPDX-License-Identifier: BSD-3-Clause */
/* Skip list of rows: see skiplist.h. */
#include "control/store/skiplist.h"

#include <errno.h>
#include <stdlib.h>

int skiplist_init(struct skiplist *l, uint64_t seed)
{
	l->head = calloc(1, sizeof(*l->head) + SKIPLIST_LEVELS * sizeof(l->head->next[0]));
	if (!l->head)
		return -ENOMEM;
	l->head->levels = SKIPLIST_LEVELS;
	l->rnd = seed * 2 + 1;
	l->n = 0;
	return 0;
}

void skiplist_fini(struct skiplist *l)
{
	struct skip_node *nd = l->head, *next;

	for (; nd; nd = next) {
		next = nd->next[0];
		skiplist_node_free(nd);
	}
	l->head = NULL;
}

/* Fills prev[] with the last node of each level whose key is before `key` (or not after it). */
static void walk(const struct skiplist *l, struct store_bytes key, bool after,
		 struct skip_node *prev[SKIPLIST_LEVELS])
{
	struct skip_node *at = l->head;

	for (int lv = SKIPLIST_LEVELS - 1; lv >= 0; lv--) {
		while (at->next[lv]) {
			int c = store_bytes_cmp(at->next[lv]->row.key, key);

			if (c > 0 || (c == 0 && !after))
				break;
			at = at->next[lv];
		}
		prev[lv] = at;
	}
}

struct skip_node *skiplist_seek(const struct skiplist *l, struct store_bytes key, bool after)
{
	struct skip_node *prev[SKIPLIST_LEVELS];

	walk(l, key, after, prev);
	return prev[0]->next[0];
}

struct skip_node *skiplist_find(const struct skiplist *l, struct store_bytes key)
{
	struct skip_node *nd = skiplist_seek(l, key, false);

	return nd && store_bytes_cmp(nd->row.key, key) == 0 ? nd : NULL;
}

struct skip_node *skiplist_node(struct skiplist *l, struct store_bytes key)
{
	struct skip_node *nd;
	uint8_t levels = 1;
	char *at;

	l->rnd ^= l->rnd << 13;
	l->rnd ^= l->rnd >> 7;
	l->rnd ^= l->rnd << 17;
	for (uint64_t r = l->rnd >> 8; (r & 3) == 0 && levels < SKIPLIST_LEVELS; r >>= 2)
		levels++;
	nd = calloc(1, sizeof(*nd) + levels * sizeof(nd->next[0]) + key.n);
	if (!nd)
		return NULL;
	nd->levels = levels;
	at = (char *)&nd->next[levels];
	memcpy(at, key.p, key.n);
	nd->row.key = (struct store_bytes){at, key.n};
	return nd;
}

void skiplist_insert(struct skiplist *l, struct skip_node *nd)
{
	struct skip_node *prev[SKIPLIST_LEVELS];

	walk(l, nd->row.key, false, prev);
	for (int lv = 0; lv < nd->levels; lv++) {
		nd->next[lv] = prev[lv]->next[lv];
		prev[lv]->next[lv] = nd;
	}
	l->n++;
}

void skiplist_remove(struct skiplist *l, struct skip_node *nd)
{
	struct skip_node *prev[SKIPLIST_LEVELS];

	walk(l, nd->row.key, false, prev);
	for (int lv = 0; lv < nd->levels; lv++)
		prev[lv]->next[lv] = nd->next[lv];
	l->n--;
	skiplist_node_free(nd);
}

void skiplist_node_free(struct skip_node *nd)
{
	union {
		const void *c;
		void *p;
	} val = {.c = nd->row.val.p};

	free(val.p);
	free(nd);
}
