/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of ports have in common: two ports over rings, and pools that must be at their
 * base line after every test. Main thread only.
 */
#ifndef SPL_VDEV_TWO_PORTS_H
#define SPL_VDEV_TWO_PORTS_H

#include "tests/lib/t_eal.h"
#include "tests/lib/t_port.h"

#define LANES 3u
#define USERS (LANES + 1)

extern struct rte_mempool *pool, *tiny;
extern struct t_port dev[2]; /* one transmit queue, and one for each user */
extern struct port port[2];

/* Of the suite. */
int two_ports_setup(void);
int two_ports_teardown(void);

/* Asserts that every buffer is back. */
void two_ports_base_line(void);

#endif
