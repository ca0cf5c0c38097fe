/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows in key order, in memory: the memory store and the old rows of a snapshot. Pure; one thread;
 * owns its nodes and their values. Levels are drawn from the list's own generator, so that equal
 * histories give equal lists. */
#ifndef SPL_CONTROL_STORE_SKIPLIST_H
#define SPL_CONTROL_STORE_SKIPLIST_H

#include "control/store/store_priv.h"

#define SKIPLIST_LEVELS 16

struct skip_node {
	struct store_row row; /* key lies behind next[]; row.val.p is malloc'd and owned */
	bool absent;	      /* snapshots: there was no such row */
	uint8_t levels;
	struct skip_node *next[];
};

struct skiplist {
	struct skip_node *head; /* no row; SKIPLIST_LEVELS levels */
	uint64_t rnd;
	size_t n;
};

/* 0 or -ENOMEM. */
int skiplist_init(struct skiplist *l, uint64_t seed);
void skiplist_fini(struct skiplist *l);

/* The node of exactly this key, or NULL. */
struct skip_node *skiplist_find(const struct skiplist *l, struct store_bytes key);
/* The first node with a key > `key` (after) or >= `key`, or NULL. */
struct skip_node *skiplist_seek(const struct skiplist *l, struct store_bytes key, bool after);

/* A node with a copy of `key`, not yet in the list; NULL without memory. */
struct skip_node *skiplist_node(struct skiplist *l, struct store_bytes key);
/* Puts a node of skiplist_node() in; its key must not be there. */
void skiplist_insert(struct skiplist *l, struct skip_node *nd);
/* Takes the node out and frees it. */
void skiplist_remove(struct skiplist *l, struct skip_node *nd);
/* Frees a node that is in no list. */
void skiplist_node_free(struct skip_node *nd);

#endif
