/* SPDX-License-Identifier: BSD-3-Clause */
/* A port made of two rings: tests push frames in at one and take what was sent out of the other.
 * Main thread, or any one thread at a time.
 */
#ifndef SPL_T_PORT_H
#define SPL_T_PORT_H

#include "dataplane/port/port.h"
#include "tests/lib/t_frame.h"

#include <rte_mbuf.h>

#define T_PORT_RING   1024u
#define T_PORT_QUEUES 8u

struct t_port {
	char name[PORT_NAME_BYTES]; /* of the device, for port_config.device */
	uint16_t id;
	unsigned n_tx;
	struct rte_ring *rx, *tx[T_PORT_QUEUES];
	struct rte_mempool *pool; /* what pushed frames are made of */
	/* As a device that looks at checksums and gives up on every fourth frame: for tests whose
	 * frames have good ones. Otherwise as one that does not look. */
	bool vouches;
	unsigned pushed;
};

/* Makes the device "net_ring_NAME" with n_tx transmit queues; does not configure it. Aborts when it
 * cannot. */
void t_port_make(struct t_port *t, const char *name, unsigned n_tx, struct rte_mempool *pool);

/* A configuration for it: name NAME, 10.0.0.1/24, gateway 10.0.0.254, mtu 1500, udp_base 40000. */
struct port_config t_port_config(const struct t_port *t, const char *name);

/* port_open() and port_start() with that configuration; aborts when they fail. */
void t_port_up(struct t_port *t, const char *name, struct port *p, unsigned n_lanes);

/* Drops what is still in the rings, closes the device and frees everything. */
void t_port_down(struct t_port *t, struct port *p);

/* Puts a frame into the receive ring; seg > 0: in segments of that many bytes. false: ring full. */
bool t_port_push(struct t_port *t, const uint8_t *bytes, size_t len, unsigned seg);

/* Takes one sent frame, of transmit queue q, in one piece; frees the mbuf. 0: nothing was sent. */
size_t t_port_pull(struct t_port *t, unsigned q, uint8_t out[T_FRAME_MAX]);

/* The same from whichever queue has one. */
size_t t_port_pull_any(struct t_port *t, uint8_t out[T_FRAME_MAX]);

#endif
