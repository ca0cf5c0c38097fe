/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings between users of a port and the owners of its queues; inside the port room only. */
#ifndef SPL_PORT_TX_NET_H
#define SPL_PORT_TX_NET_H

#include "dataplane/port/tx.h"

/* A ring that one owner empties into one port. */
struct tx_in {
	struct rte_ring *ring;
	uint16_t port;	      /* index */
	uint16_t from, owner; /* users */
};

/* Constant after tx_net_create(). */
struct tx_net {
	struct port *ports;
	unsigned n_ports, users, n_in;
	void (*wake)(void *ctx, unsigned owner);
	void *wake_ctx;
	struct tx_in *in; /* sorted by owner */
};

#endif
