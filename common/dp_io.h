/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of the private socket as they cross the kernel: batches in and out, descriptors beside
 * them, sealed memfds. Both daemons and the fake dataplane use it; each end on one thread.
 *
 * A packet carries at most one descriptor. What a sender of ill will may do - more descriptors,
 * packets longer than DP_PACKET_MAX, a memfd that can still shrink - ends in an error of that
 * packet, never in a leaked descriptor or a fault on a mapping.
 */
#ifndef SPL_COMMON_DP_IO_H
#define SPL_COMMON_DP_IO_H

#include "common/dp.h"

#include <sys/types.h>

#define DP_BATCH_MAX 32			 /* packets of one recvmmsg or sendmmsg */
#define DP_BLOB_MAX  (17u * 1024 * 1024) /* bytes of a memfd; the largest payload and its frame */

/* ---- byte strings in memfds ---- */

/* A read-only mapping of a memfd. */
struct dp_blob {
	void *p;
	size_t n;
};

/* A new memfd with `n` bytes and the seals SEAL|SHRINK|GROW|WRITE: its descriptor, which the
 * caller owns, or -errno. */
int dp_memfd(const void *p, size_t n);

/* Maps a received memfd. 0; -EPERM without all of SHRINK|GROW|WRITE; -EMSGSIZE empty or larger
 * than `max`; -errno. The descriptor stays the caller's. */
int dp_blob_map(struct dp_blob *b, int fd, size_t max);
void dp_blob_unmap(struct dp_blob *b);

/* Before encoding: a field over DP_INLINE_MAX goes to a memfd in *fd and becomes empty; otherwise
 * *fd is -1. 0 or -errno. */
int dp_field_out(struct pack_bytes *field, int *fd);

/* After decoding: with a descriptor, `field` must be empty and gets the memfd's bytes, which live
 * until dp_blob_unmap(b). fd -1 changes nothing. 0, -EPROTO, or as dp_blob_map(). */
int dp_field_in(struct pack_bytes *field, int fd, struct dp_blob *b);

/* ---- receiving ---- */

struct dp_packet {
	const uint8_t *p;
	size_t n;
	int fd;	 /* -1 = none; closed with the batch unless taken (set it to -1) */
	int err; /* 0; -EMSGSIZE packet cut; -EPROTO more than one descriptor */
};

struct dp_rx; /* buffers of one batch */

struct dp_rx *dp_rx_create(void); /* NULL: no memory */
void dp_rx_destroy(struct dp_rx *rx);

/* Takes up to DP_BATCH_MAX packets without waiting; the packets of the batch before are gone.
 * Returns their number, 0 at the end of the connection, -EAGAIN when there is none now, -errno. */
int dp_rx_batch(struct dp_rx *rx, int sock, struct dp_packet **out);

/* ---- sending ---- */

/* A bounded queue of whole packets. */
struct dp_tx {
	struct dp_out *q;
	uint32_t head, count, cap;
	size_t bytes, bytes_max;
};

/* At most `cap` packets with `bytes_max` bytes together (a descriptor counts nothing). 0 or
 * -ENOMEM. */
int dp_tx_init(struct dp_tx *tx, uint32_t cap, size_t bytes_max);
void dp_tx_clear(struct dp_tx *tx);
void dp_tx_fini(struct dp_tx *tx);

/* Appends a copy of a finished packet; takes `fd` (-1 = none) in every case. 0, -ENOBUFS when a
 * bound is reached, -ENOMEM. */
int dp_tx_push(struct dp_tx *tx, const void *p, size_t n, int fd);

/* Sends what the socket takes. 0 all went, -EAGAIN the rest waits for room, -errno. */
int dp_tx_flush(struct dp_tx *tx, int sock);

#endif
