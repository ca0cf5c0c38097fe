/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports: from a configuration to a started device, its state and its statistics.
 *
 * The agent opens, watches and closes ports; lanes read struct port (const after start, but
 * link_up) and poll rx queue 0 of the ports that are theirs. Every sentence in err names the port.
 */
#ifndef SPL_PORT_PORT_H
#define SPL_PORT_PORT_H

#include "dataplane/frame/view.h"
#include "dataplane/port/plan.h"

#include <spotlane/counters.h>

#include <stdatomic.h>

struct rte_mempool;

struct port {
	uint16_t id; /* DPDK's; const after start, like all but the last */
	bool is_open, is_started;
	bool has_done_cleanup; /* the device can be asked to give back sent buffers */
	struct port_config config;
	struct port_plan plan;
	struct frame_local local;
	_Atomic bool link_up; /* w: agent, r: lanes */
};

/* Compares the devices EAL brought up with the n configured ones, and sets ids[i]. 0; -ENODEV and a
 * sentence naming the port whose device is missing; or how many devices came up that no port asked
 * for (members of a bond do), with one of them named in err. */
int port_find_all(const struct port_config *c, unsigned n, uint16_t *ids, char err[PORT_ERR_BYTES])
	__attribute__((warn_unused_result));

/* Configures device id: one receive queue out of rx_pool, transmit queues for `users` (lanes + 1),
 * offloads by port_plan(), MTU, MAC into p->local. n_lanes goes into p->local. On failure nothing
 * stays configured. -EINVAL, -ENOTSUP, or what the driver said. */
int port_open(struct port *p, uint16_t id, const struct port_config *c, unsigned n_lanes,
	      struct rte_mempool *rx_pool, char err[PORT_ERR_BYTES])
	__attribute__((warn_unused_result));

int port_start(struct port *p, char err[PORT_ERR_BYTES]) __attribute__((warn_unused_result));

/* Nobody may poll or send any more. Stops; NULL and a port that is not open are fine. */
void port_stop(struct port *p);
void port_close(struct port *p);

/* Reads the link state; true when it changed since the last call. The agent, about once a second.
 */
bool port_link_poll(struct port *p);

/* Fills the counters of SPL_PORT_COUNTERS from the device. 0 or -errno of the driver. */
int port_stats(const struct port *p, uint64_t out[SPL_P_COUNT]) __attribute__((warn_unused_result));

#endif
