/* SPDX-License-Identifier: BSD-3-Clause */
/* See dp_io.h. */
#include "common/dp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int write_all(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n > 0) {
		ssize_t k = write(fd, at, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		at += k;
		n -= (size_t)k;
	}
	return 0;
}

int dp_memfd(const void *p, size_t n)
{
	int fd = memfd_create("spotlane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	rc = write_all(fd, p, n);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int dp_blob_map(struct dp_blob *b, int fd, size_t max)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || (uint64_t)st.st_size > max)
		return -EMSGSIZE;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*b = (struct dp_blob){p, (size_t)st.st_size};
	return 0;
}

void dp_blob_unmap(struct dp_blob *b)
{
	if (b->p)
		munmap(b->p, b->n);
	*b = (struct dp_blob){NULL, 0};
}

int dp_field_out(struct pack_bytes *field, int *fd)
{
	int rc;

	*fd = -1;
	if (field->len <= DP_INLINE_MAX)
		return 0;
	rc = dp_memfd(field->p, field->len);
	if (rc < 0)
		return rc;
	*fd = rc;
	*field = (struct pack_bytes){NULL, 0};
	return 0;
}

int dp_field_in(struct pack_bytes *field, int fd, struct dp_blob *b)
{
	int rc;

	if (fd < 0)
		return 0;
	if (field->len != 0)
		return -EPROTO;
	rc = dp_blob_map(b, fd, DP_BLOB_MAX);
	if (rc == 0)
		*field = (struct pack_bytes){b->p, (uint32_t)b->n};
	return rc;
}

/* Room for more descriptors than allowed, so that extra ones are seen and closed here. */
enum { FDS_SEEN = 4 };

struct dp_rx {
	struct mmsghdr msg[DP_BATCH_MAX];
	struct iovec iov[DP_BATCH_MAX];
	struct dp_packet packet[DP_BATCH_MAX];
	union {
		struct cmsghdr align;
		char b[CMSG_SPACE(sizeof(int) * FDS_SEEN)];
	} control[DP_BATCH_MAX];
	int n;
	uint8_t buf[DP_BATCH_MAX][DP_PACKET_MAX];
};

struct dp_rx *dp_rx_create(void)
{
	struct dp_rx *rx = malloc(sizeof(*rx));

	if (rx)
		rx->n = 0;
	return rx;
}

static void rx_drop(struct dp_rx *rx)
{
	for (int i = 0; i < rx->n; i++)
		if (rx->packet[i].fd >= 0)
			close(rx->packet[i].fd);
	rx->n = 0;
}

void dp_rx_destroy(struct dp_rx *rx)
{
	if (!rx)
		return;
	rx_drop(rx);
	free(rx);
}

/* Takes the descriptors of one packet: the first stays, more are closed and refused. */
static void rx_fds(struct msghdr *m, struct dp_packet *pk)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (pk->fd < 0) {
				pk->fd = fd;
				continue;
			}
			close(fd);
			pk->err = -EPROTO;
		}
	}
	if (m->msg_flags & MSG_CTRUNC)
		pk->err = -EPROTO;
}

int dp_rx_batch(struct dp_rx *rx, int sock, struct dp_packet **out)
{
	int n, whole = -1;

	rx_drop(rx);
	for (int i = 0; i < DP_BATCH_MAX; i++) {
		rx->iov[i] = (struct iovec){rx->buf[i], DP_PACKET_MAX};
		rx->msg[i].msg_hdr = (struct msghdr){
			.msg_iov = &rx->iov[i],
			.msg_iovlen = 1,
			.msg_control = rx->control[i].b,
			.msg_controllen = sizeof(rx->control[i].b),
		};
	}
	do {
		n = recvmmsg(sock, rx->msg, DP_BATCH_MAX, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	for (int i = 0; i < n; i++) {
		struct msghdr *m = &rx->msg[i].msg_hdr;
		struct dp_packet *pk = &rx->packet[i];

		*pk = (struct dp_packet){.p = rx->buf[i], .n = rx->msg[i].msg_len, .fd = -1};
		rx_fds(m, pk);
		if (m->msg_flags & MSG_TRUNC)
			pk->err = -EMSGSIZE;
		/* An empty packet is how the end of the connection looks. */
		if (whole < 0 && pk->n == 0)
			whole = i;
	}
	rx->n = n;
	*out = rx->packet;
	return whole < 0 ? n : whole;
}

struct dp_out {
	uint8_t *p;
	uint32_t n;
	int fd;
};

int dp_tx_init(struct dp_tx *tx, uint32_t cap, size_t bytes_max)
{
	*tx = (struct dp_tx){.cap = cap, .bytes_max = bytes_max};
	tx->q = calloc(cap, sizeof(*tx->q));
	return tx->q ? 0 : -ENOMEM;
}

static void tx_pop(struct dp_tx *tx)
{
	struct dp_out *o = &tx->q[tx->head];

	if (o->fd >= 0)
		close(o->fd);
	tx->bytes -= o->n;
	free(o->p);
	tx->head = (tx->head + 1) % tx->cap;
	tx->count--;
}

void dp_tx_clear(struct dp_tx *tx)
{
	while (tx->count)
		tx_pop(tx);
}

void dp_tx_fini(struct dp_tx *tx)
{
	dp_tx_clear(tx);
	free(tx->q);
	tx->q = NULL;
}

int dp_tx_push(struct dp_tx *tx, const void *p, size_t n, int fd)
{
	struct dp_out *o;
	int rc = -ENOBUFS;

	if (tx->count == tx->cap || tx->bytes + n > tx->bytes_max)
		goto refuse;
	o = &tx->q[(tx->head + tx->count) % tx->cap];
	rc = -ENOMEM;
	o->p = malloc(n);
	if (!o->p)
		goto refuse;
	memcpy(o->p, p, n);
	o->n = (uint32_t)n;
	o->fd = fd;
	tx->bytes += n;
	tx->count++;
	return 0;
refuse:
	if (fd >= 0)
		close(fd);
	return rc;
}

union fd_control {
	struct cmsghdr align;
	char b[CMSG_SPACE(sizeof(int))];
};

static void tx_prepare(struct msghdr *m, struct iovec *iov, union fd_control *control,
		       const struct dp_out *o)
{
	struct cmsghdr *c;

	*iov = (struct iovec){o->p, o->n};
	*m = (struct msghdr){.msg_iov = iov, .msg_iovlen = 1};
	if (o->fd < 0)
		return;
	m->msg_control = control->b;
	m->msg_controllen = sizeof(control->b);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &o->fd, sizeof(int));
}

int dp_tx_flush(struct dp_tx *tx, int sock)
{
	struct mmsghdr msg[DP_BATCH_MAX];
	struct iovec iov[DP_BATCH_MAX];
	union fd_control control[DP_BATCH_MAX];

	while (tx->count) {
		unsigned n = tx->count < DP_BATCH_MAX ? tx->count : DP_BATCH_MAX;
		int sent;

		for (unsigned i = 0; i < n; i++)
			tx_prepare(&msg[i].msg_hdr, &iov[i], &control[i],
				   &tx->q[(tx->head + i) % tx->cap]);
		sent = sendmmsg(sock, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		for (int i = 0; i < sent; i++)
			tx_pop(tx);
	}
	return 0;
}
