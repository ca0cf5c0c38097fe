/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the dataplane's end of the private socket. The agent's thread only.
 *
 * Owns the lock file (for the life of the process: it proves to others that this lifecycle is not
 * over), the listening socket and at most one connection. Refuses a directory that others may
 * write, a second dataplane, and a peer of another user. Sends are queued and bounded by
 * SOCK_QUEUE_BYTES; a control that does not read is disconnected, never waited for.
 */
#ifndef SPL_AGENT_SOCK_H
#define SPL_AGENT_SOCK_H

#include "common/dp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCK_QUEUE_BYTES   (8u << 20) /* of packets that control has not read yet */
#define SOCK_QUEUE_PACKETS 16384u

struct sock;

/* One packet, valid inside the callback. `blob` is the content of the attached memfd, or empty. */
struct sock_packet {
	struct dp_header h;
	struct pack_reader body;
	struct pack_bytes blob;
};

struct sock_ops {
	void *ctx;
	/* A control has connected (say hello) or is gone. */
	void (*on_peer)(void *ctx, bool connected);
	void (*on_packet)(void *ctx, const struct sock_packet *p);
};

/* Locks and listens in `dir`. NULL and a sentence in err: directory missing or writable by others
 * (EPERM), another dataplane runs (EBUSY), a file that is no socket is in the way (EEXIST), path
 * too long (ENAMETOOLONG); errno is set.
 */
struct sock *sock_open(const char *dir, const struct sock_ops *ops, char *err, size_t err_bytes)
	__attribute__((warn_unused_result));

/* Closes everything; removes the socket. NULL is fine. */
void sock_close(struct sock *s);

bool sock_connected(const struct sock *s);

/* Takes a batch of what has come and sends what waits; never blocks. Returns packets taken. */
unsigned sock_poll(struct sock *s);

/* Sends what waits and takes nothing; for inside on_packet. */
void sock_flush(struct sock *s);

/* Descriptors to sleep on. Fills up to 2 and returns how many. */
unsigned sock_fds(const struct sock *s, int fds[2]);

/* Queues one finished packet (copied), with `fd` attached when it is not -1 (dup'ed).
 * -ENOTCONN, -ENOBUFS (queue full: the connection is ended), -ENOMEM.
 */
int sock_send(struct sock *s, const struct pack_writer *w, int fd)
	__attribute__((warn_unused_result));

#endif
