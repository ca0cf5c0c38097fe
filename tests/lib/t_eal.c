/* SPDX-License-Identifier: BSD-3-Clause */
/* One EAL for a test program: see t_eal.h. Uses the product's own EAL and pool rooms. */
#include "tests/lib/t_eal.h"

#include "dataplane/port/eal.h"
#include "dataplane/port/pool.h"

#include <rte_mbuf.h>

#include <stdio.h>
#include <stdlib.h>

int t_eal_start(unsigned n_lanes)
{
	struct eal_config c = {
		.n_lanes = n_lanes, .memory_mb = T_EAL_MB, .log_level = "*:critical"};
	char err[PORT_ERR_BYTES];

	c.agent_cpu = EAL_CPU_ANY;
	for (unsigned i = 0; i < n_lanes && i < EAL_LANES_MAX; i++)
		c.lane_cpu[i] = EAL_CPU_ANY;
	if (eal_start(&c, err)) {
		fprintf(stderr, "%s\n", err);
		return -1;
	}
	return 0;
}

int t_eal_stop(void)
{
	eal_stop();
	return 0;
}

unsigned t_eal_lanes(unsigned usual)
{
	const char *env = getenv("T_LANES");
	unsigned n = env ? (unsigned)strtoul(env, NULL, 10) : usual;

	return n >= 1 && n <= 8 ? n : usual;
}

struct rte_mempool *t_pool(const char *name, unsigned n, uint16_t priv)
{
	struct pool_demand d = {.held = n};
	struct pool_shape shape;
	struct rte_mempool *mp;

	if (pool_size(&d, priv, RTE_MBUF_DEFAULT_BUF_SIZE, &shape))
		abort();
	mp = pool_create(name, &shape, priv, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!mp) {
		fprintf(stderr, "pool %s: no memory\n", name);
		abort();
	}
	return mp;
}
