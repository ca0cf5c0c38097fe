/* SPDX-License-Identifier: BSD-3-Clause */
/* What the client needs of the world: datagrams, a clock, chance. The product gives it a UDP socket
 * of the kernel (udp.c), tests a net and a clock of their own.
 */
#ifndef SPL_CLIENT_NET_H
#define SPL_CLIENT_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A datagram on its way in or out. `b` belongs to the caller. */
struct net_packet {
	uint8_t *b;
	uint32_t len, room;
	uint32_t ip; /* of the peer, host order */
	uint16_t port;
};

struct net_ops {
	/* Fills up to `n` packets and returns how many; 0 when none waits. */
	unsigned (*recv)(void *net, struct net_packet *p, unsigned n);
	/* Sends the first of `n` packets and returns how many: fewer when the net takes no more
	 * now. A packet that can never be sent counts as sent: it is lost. */
	unsigned (*send)(void *net, const struct net_packet *p, unsigned n);
	/* Waits until packets may be received (or sent, too), at most `timeout_ns`, UINT64_MAX =
	 * for ever. 0, or -errno. */
	int (*wait)(void *net, bool to_send, uint64_t timeout_ns);
	int (*fd)(void *net);
	void (*close)(void *net);
	/* Nanoseconds of a clock that goes on while the machine sleeps. */
	uint64_t (*now)(void *net);
	/* Random bytes of cryptographic quality. */
	void (*random)(void *net, void *out, size_t bytes);
};

struct net {
	const struct net_ops *ops;
	void *arg;
};

/* Opens a UDP socket. `out->ops->close` ends it. 0 or -errno. */
int udp_open(struct net *out, uint32_t socket_bytes);

#endif
