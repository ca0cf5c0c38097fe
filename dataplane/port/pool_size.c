/* SPDX-License-Identifier: BSD-3-Clause */
/* How many buffers a pool needs: see pool.h. Pure; owns nothing. */
#include "dataplane/port/pool.h"

#include <errno.h>

#define CACHE_MAX    512u
#define CACHE_USUAL  256u /* for counts without a divisor of a useful size */
#define CACHE_USEFUL 32u
#define COUNT_MIN    63u
/* Memory besides the buffers: DPDK keeps a cache for each of its 128 lcores in the pool. */
#define LCORES	     128u
#define CACHE_BYTES  (CACHE_MAX * 3 * 8 + 64)
#define OBJ_HEADER   64u
#define MBUF_BYTES   128u

/* The largest cache that divides count, so that no buffer is stranded; see rte_mempool_create(). */
static uint32_t cache_for(uint32_t count)
{
	uint32_t max = count * 2 / 3 < CACHE_MAX ? count * 2 / 3 : CACHE_MAX;

	for (uint32_t c = max; c >= CACHE_USEFUL; c--)
		if (count % c == 0)
			return c;
	return max < CACHE_USUAL ? max : CACHE_USUAL;
}

int pool_size(const struct pool_demand *d, uint16_t priv, uint16_t data_room,
	      struct pool_shape *out)
{
	uint64_t need = (uint64_t)d->rx_desc + d->tx_desc + d->burst + d->ring + d->held;
	uint64_t count = COUNT_MIN, object;

	if (need > POOL_COUNT_MAX - 1)
		return -ERANGE;
	/* What the lane's own cache may hold back is not there for others. */
	while (count < need + (count > 2 * CACHE_MAX ? CACHE_MAX : 0))
		count = count * 2 + 1;
	if (count > POOL_COUNT_MAX)
		return -ERANGE;
	object = (OBJ_HEADER + MBUF_BYTES + (uint64_t)priv + data_room + 63) / 64 * 64 + 64;
	out->count = (uint32_t)count;
	out->cache = cache_for(out->count);
	out->bytes = count * object + (count + 1) * 8 + LCORES * CACHE_BYTES + 65536;
	return 0;
}
