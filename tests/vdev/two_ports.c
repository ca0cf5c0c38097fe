/* SPDX-License-Identifier: BSD-3-Clause */
/* See two_ports.h. */
#include "tests/vdev/two_ports.h"

#include <CUnit/CUnit.h>

struct rte_mempool *pool, *tiny;
struct t_port dev[2];
struct port port[2];

int two_ports_setup(void)
{
	if (t_eal_start(LANES))
		return -1;
	pool = t_pool("pool", 4095, 64);
	tiny = t_pool("tiny", 31, 64);
	t_port_make(&dev[0], "narrow", 1, pool);
	t_port_make(&dev[1], "wide", USERS, pool);
	t_port_up(&dev[0], "narrow", &port[0], LANES);
	t_port_up(&dev[1], "wide", &port[1], LANES);
	return 0;
}

int two_ports_teardown(void)
{
	unsigned used;

	t_port_down(&dev[0], &port[0]);
	t_port_down(&dev[1], &port[1]);
	used = t_pool_used(pool) + t_pool_used(tiny);
	return used ? -1 : t_eal_stop();
}

void two_ports_base_line(void)
{
	CU_ASSERT_EQUAL(t_pool_used(pool), 0);
	CU_ASSERT_EQUAL(t_pool_used(tiny), 0);
}
