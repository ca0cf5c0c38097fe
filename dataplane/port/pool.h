/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet buffer pools: how many buffers, and how they are made. The agent, at start.
 *
 * pool_size() is pure arithmetic. pool_create() exists because rte_pktmbuf_pool_create() without
 * hugepages puts one buffer on each 4 KiB page, so that all headers fall into the same cache sets
 * and the whole path runs at half speed; see docs/performance.md.
 */
#ifndef SPL_PORT_POOL_H
#define SPL_PORT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define POOL_COUNT_MAX (1u << 24) /* buffers of one pool */

struct rte_mempool;

/* What can hold buffers of one lane's pool at once. */
struct pool_demand {
	uint32_t rx_desc; /* descriptors of the receive queues that fill from it, summed */
	uint32_t tx_desc; /* descriptors of all transmit queues its frames may sit in, summed */
	uint32_t burst;	  /* frames in hand on the lane */
	uint32_t ring;	  /* slots of the software rings that its frames may wait in, summed */
	uint32_t held;	  /* frames in Spot queues, links and handlers: what is left to them */
};

struct pool_shape {
	uint32_t count; /* 2^q - 1, at least the demand */
	uint32_t cache; /* per-lcore cache: at most 512 and count / 1.5, and count modulo cache = 0
			 */
	uint64_t bytes; /* of memory for it, all told, rounded up */
};

/* 0, or -ERANGE when more than POOL_COUNT_MAX buffers were needed. priv: private bytes of a buffer
 * (a multiple of 8). data_room: bytes with headroom. */
int pool_size(const struct pool_demand *d, uint16_t priv, uint16_t data_room,
	      struct pool_shape *out) __attribute__((warn_unused_result));

/* Makes a pool of shape->count buffers on `socket` (-1: any). Ring handler, so that one lane takes
 * and others give back. NULL and errno. */
struct rte_mempool *pool_create(const char *name, const struct pool_shape *shape, uint16_t priv,
				uint16_t data_room, int socket) __attribute__((warn_unused_result));

void pool_destroy(struct rte_mempool *pool); /* NULL is fine */

#endif
