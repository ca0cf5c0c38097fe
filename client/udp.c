/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's net in the product: one non-blocking IPv4 UDP socket, read and written in batches.
 * Runs on the client's thread; owns the socket.
 */
#include "client/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define UDP_BATCH 64

struct udp {
	int fd;
	struct mmsghdr msg[UDP_BATCH];
	struct iovec iov[UDP_BATCH];
	struct sockaddr_in addr[UDP_BATCH];
};

/* Points the first `n` headers of `u` at the packets. */
static unsigned prepare(struct udp *u, const struct net_packet *p, unsigned n, bool is_send)
{
	if (n > UDP_BATCH)
		n = UDP_BATCH;
	for (unsigned i = 0; i < n; i++) {
		struct msghdr *h = &u->msg[i].msg_hdr;

		memset(h, 0, sizeof(*h));
		u->iov[i].iov_base = p[i].b;
		u->iov[i].iov_len = is_send ? p[i].len : p[i].room;
		h->msg_iov = &u->iov[i];
		h->msg_iovlen = 1;
		h->msg_name = &u->addr[i];
		h->msg_namelen = sizeof(u->addr[i]);
		if (is_send) {
			u->addr[i].sin_family = AF_INET;
			u->addr[i].sin_addr.s_addr = htonl(p[i].ip);
			u->addr[i].sin_port = htons(p[i].port);
		}
	}
	return n;
}

static unsigned udp_recv(void *net, struct net_packet *p, unsigned n)
{
	struct udp *u = net;
	unsigned kept = 0;
	int got;

	n = prepare(u, p, n, false);
	got = recvmmsg(u->fd, u->msg, n, MSG_DONTWAIT, NULL);
	/* An ICMP error of an earlier packet is reported once and says nothing about this call. */
	if (got < 0 && (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == EINTR))
		got = recvmmsg(u->fd, u->msg, n, MSG_DONTWAIT, NULL);
	for (int i = 0; i < got; i++) {
		struct net_packet *to = &p[i];

		to->len = u->msg[i].msg_len;
		to->ip = ntohl(u->addr[i].sin_addr.s_addr);
		to->port = ntohs(u->addr[i].sin_port);
		if (u->msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			to->len = 0; /* larger than anything that a peer may send */
		kept++;
	}
	return kept;
}

static unsigned udp_send(void *net, const struct net_packet *p, unsigned n)
{
	struct udp *u = net;
	int sent;

	n = prepare(u, p, n, true);
	sent = sendmmsg(u->fd, u->msg, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent >= 0)
		return (unsigned)sent;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
		return 0;
	return 1; /* no route, refused …: that packet is lost, the link sends it again */
}

static int udp_wait(void *net, bool to_send, uint64_t timeout_ns)
{
	struct udp *u = net;
	struct pollfd p = {.fd = u->fd, .events = (short)(POLLIN | (to_send ? POLLOUT : 0))};
	struct timespec t = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};

	if (ppoll(&p, 1, timeout_ns == UINT64_MAX ? NULL : &t, NULL) < 0)
		return errno == EINTR ? -EINTR : -errno;
	return 0;
}

static int udp_fd(void *net)
{
	return ((struct udp *)net)->fd;
}

static void udp_close(void *net)
{
	struct udp *u = net;

	close(u->fd);
	free(u);
}

static uint64_t udp_now(void *net)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void udp_random(void *net, void *out, size_t bytes)
{
	if (getentropy(out, bytes) < 0)
		abort(); /* ids that can be guessed are worse than none */
}

static const struct net_ops udp_ops = {
	.recv = udp_recv,
	.send = udp_send,
	.wait = udp_wait,
	.fd = udp_fd,
	.close = udp_close,
	.now = udp_now,
	.random = udp_random,
};

int udp_open(struct net *out, uint32_t socket_bytes)
{
	const int dont_fragment = IP_PMTUDISC_DO, bytes = (int)socket_bytes;
	struct udp *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (u->fd < 0)
		goto fail;
	if (setsockopt(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, &dont_fragment, sizeof(dont_fragment)) <
	    0)
		goto fail_socket;
	/* More than the system allows is cut by the kernel; what is there is enough to work. */
	(void)setsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(u->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	out->ops = &udp_ops;
	out->arg = u;
	return 0;
fail_socket:
	err = errno;
	close(u->fd);
	errno = err;
fail:
	err = -errno;
	free(u);
	return err;
}
