/* SPDX-License-Identifier: BSD-3-Clause */
/* Association tables with addresses, whose packets are carried by hand in virtual time. For the
 * tests of the association table; one thread.
 */
#ifndef SPL_TEST_LINK_NODES_H
#define SPL_TEST_LINK_NODES_H

#include "dataplane/link/assoc.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

#define SECOND 1000000000ULL
#define MS     1000000ULL

struct node {
	struct assoc *a;
	void *mem;
	struct assoc_addr addr;
	struct t_rand rand;
	uint32_t ups, downs, refusals;
	struct assoc_event last_up, last_down, last_refusal;
	bool keeps_slots; /* does not release by itself */
};

extern uint64_t now;

/* Two nodes, the first of which dials the second in connect_pair(). */
extern struct node na, nb;
extern struct node *const pair[2];

struct assoc_params params(const char *rid, uint64_t lifecycle);
void start(struct node *x, uint8_t number, const struct assoc_params *p);
void stop(struct node *x);

/* Takes the events of a node, and releases slots that are down unless it keeps them. */
void events(struct node *x);

/* Runs the nodes for `ns`, packets going to the node with their address; nothing passes while *cut
 * is not 0. Checks that no answer is longer than its question. */
void run(struct node *const *nodes, uint32_t n, uint64_t ns, const uint32_t *cut);

void connect_pair(void);
void stop_pair(void);

#endif
