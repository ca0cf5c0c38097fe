/* SPDX-License-Identifier: BSD-3-Clause */
/* Pool creation: see pool.h. The agent, at start and end. */
#include "dataplane/port/pool.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <errno.h>

struct rte_mempool *pool_create(const char *name, const struct pool_shape *shape, uint16_t priv,
				uint16_t data_room, int socket)
{
	struct rte_pktmbuf_pool_private sizes = {.mbuf_data_room_size = data_room,
						 .mbuf_priv_size = priv};
	unsigned element = (unsigned)sizeof(struct rte_mbuf) + priv + data_room;
	/* Without hugepages each page would be a memory chunk of its own, with one buffer in it. */
	unsigned flags = rte_eal_has_hugepages() ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	struct rte_mempool *mp;
	int err = EINVAL;

	if (priv % RTE_MBUF_PRIV_ALIGN)
		goto fail;
	mp = rte_mempool_create_empty(name, shape->count, element, shape->cache, sizeof(sizes),
				      socket, flags);
	err = rte_errno;
	if (!mp)
		goto fail;
	err = -rte_mempool_set_ops_byname(mp, "ring_mp_mc", NULL);
	if (err)
		goto free_pool;
	rte_pktmbuf_pool_init(mp, &sizes);
	err = -rte_mempool_populate_default(mp);
	if (err > 0) /* a number of buffers, negated, is success */
		goto free_pool;
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;
free_pool:
	rte_mempool_free(mp);
fail:
	errno = err ? err : ENOMEM;
	return NULL;
}

void pool_destroy(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}
