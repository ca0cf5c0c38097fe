/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the dataplane's end of the private socket: see sock.h. */
#include "dataplane/agent/sock.h"

#include "common/dp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct sock {
	struct sock_ops ops;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int lock_fd, listen_fd, peer_fd;
	struct dp_tx tx;
	struct dp_rx *rx;
	unsigned polls;
};

#define REFUSE_EVERY 64u /* polls between two looks at the listening socket while one is served */

static int check_dir(const char *dir, char *err, size_t n)
{
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode)) {
		snprintf(err, n, "%s: no such directory: create it with mode 0750", dir);
		return -ENOTDIR;
	}
	if ((st.st_mode & 0022) || (st.st_uid != 0 && st.st_uid != geteuid())) {
		snprintf(err, n, "%s: others may write there: chmod 0750 and own it yourself", dir);
		return -EPERM;
	}
	return 0;
}

static int take_lock(struct sock *s, const char *dir, char *err, size_t n)
{
	char path[512], pid[32] = "?";
	ssize_t got;

	snprintf(path, sizeof(path), "%s/%s", dir, DP_LOCK_NAME);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (s->lock_fd < 0) {
		snprintf(err, n, "%s: cannot open: %s", path, strerror(errno));
		return -errno;
	}
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
		got = read(s->lock_fd, pid, sizeof(pid) - 1);
		if (got > 0)
			pid[strcspn(pid, "\n")] = '\0';
		snprintf(err, n, "a dataplane is already running here, pid %s (%s)", pid, path);
		return -EBUSY;
	}
	if (ftruncate(s->lock_fd, 0) || dprintf(s->lock_fd, "%d\n", (int)getpid()) < 0) {
		snprintf(err, n, "%s: cannot write: %s", path, strerror(errno));
		return -errno;
	}
	return 0;
}

/* We hold the lock, so a socket that is there is a dead one's. Anything else is not ours. */
static int clear_path(const char *path, char *err, size_t n)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, n, "%s: is in the way and is no socket: move it", path);
		return -EEXIST;
	}
	return unlink(path) ? -errno : 0;
}

static int start_listening(struct sock *s, char *err, size_t n)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	memcpy(sun.sun_path, s->path, sizeof(s->path));
	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&sun, sizeof(sun)) ||
	    chmod(s->path, 0660) || listen(s->listen_fd, 4)) {
		snprintf(err, n, "%s: cannot listen: %s", s->path, strerror(errno));
		return -errno;
	}
	return 0;
}

struct sock *sock_open(const char *dir, const struct sock_ops *ops, char *err, size_t err_bytes)
{
	struct sock *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(err, err_bytes, "out of memory");
		return NULL;
	}
	s->ops = *ops;
	s->lock_fd = s->listen_fd = s->peer_fd = -1;
	s->rx = dp_rx_create();
	if (!s->rx || dp_tx_init(&s->tx, SOCK_QUEUE_PACKETS, SOCK_QUEUE_BYTES)) {
		snprintf(err, err_bytes, "out of memory");
		rc = -ENOMEM;
		goto fail;
	}
	if ((size_t)snprintf(s->path, sizeof(s->path), "%s/%s", dir, DP_SOCKET_NAME) >=
	    sizeof(s->path)) {
		snprintf(err, err_bytes, "%s: path too long for a socket (limit %zu)", dir,
			 sizeof(s->path) - sizeof(DP_SOCKET_NAME) - 1);
		s->path[0] = '\0';
		rc = -ENAMETOOLONG;
		goto fail;
	}
	rc = check_dir(dir, err, err_bytes);
	if (!rc)
		rc = take_lock(s, dir, err, err_bytes);
	if (!rc)
		rc = clear_path(s->path, err, err_bytes);
	if (!rc)
		rc = start_listening(s, err, err_bytes);
	if (!rc)
		return s;
fail:
	if (s->listen_fd < 0)
		s->path[0] = '\0'; /* not ours to remove */
	sock_close(s);
	errno = -rc;
	return NULL;
}

static void drop_peer(struct sock *s)
{
	if (s->peer_fd < 0)
		return;
	close(s->peer_fd);
	s->peer_fd = -1;
	dp_tx_clear(&s->tx);
	s->ops.on_peer(s->ops.ctx, false);
}

void sock_close(struct sock *s)
{
	if (!s)
		return;
	dp_tx_fini(&s->tx);
	dp_rx_destroy(s->rx);
	if (s->peer_fd >= 0)
		close(s->peer_fd);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->path[0])
		unlink(s->path);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s);
}

bool sock_connected(const struct sock *s)
{
	return s->peer_fd >= 0;
}

/* One control at a time: a second one sees its connection end. */
static void refuse_others(struct sock *s)
{
	struct pollfd p = {.fd = s->listen_fd, .events = POLLIN};
	int fd;

	if (++s->polls % REFUSE_EVERY != 0 || poll(&p, 1, 0) <= 0)
		return;
	fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

static void accept_peer(struct sock *s)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int size = 1 << 20;

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    (cred.uid != 0 && cred.uid != geteuid())) {
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	s->peer_fd = fd;
	s->ops.on_peer(s->ops.ctx, true);
}

/* 0, or -errno when the peer broke the protocol. */
static int take_packet(struct sock *s, struct dp_packet *in)
{
	struct sock_packet p = {.blob = {NULL, 0}};
	struct dp_blob blob = {NULL, 0};
	int rc = in->err ? in->err : dp_open(in->p, in->n, &p.h, &p.body);

	if (!rc && p.h.nfds != (in->fd >= 0))
		rc = -EPROTO;
	if (!rc && in->fd >= 0)
		rc = dp_blob_map(&blob, in->fd, DP_BLOB_MAX);
	if (rc)
		return rc;
	p.blob = (struct pack_bytes){blob.p, (uint32_t)blob.n};
	s->ops.on_packet(s->ops.ctx, &p);
	if (blob.p)
		dp_blob_unmap(&blob);
	return 0;
}

/* A batch; returns the packets taken, negative when the connection is over. */
static int take_batch(struct sock *s)
{
	struct dp_packet *in;
	int n = dp_rx_batch(s->rx, s->peer_fd, &in);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n ? n : -ECONNRESET;
	for (int i = 0; i < n && s->peer_fd >= 0; i++) {
		int rc = take_packet(s, &in[i]);

		if (rc)
			return rc;
	}
	return n;
}

unsigned sock_poll(struct sock *s)
{
	int n = 0, rc;

	if (s->peer_fd < 0)
		accept_peer(s);
	else
		refuse_others(s);
	if (s->peer_fd >= 0) {
		n = take_batch(s);
		if (n < 0)
			drop_peer(s);
	}
	if (s->peer_fd >= 0) {
		rc = dp_tx_flush(&s->tx, s->peer_fd);
		if (rc && rc != -EAGAIN)
			drop_peer(s);
	}
	return n > 0 ? (unsigned)n : 0;
}

void sock_flush(struct sock *s)
{
	if (s->peer_fd >= 0)
		(void)dp_tx_flush(&s->tx, s->peer_fd); /* sock_poll() meets the error again */
}

unsigned sock_fds(const struct sock *s, int fds[2])
{
	unsigned n = 0;

	fds[n++] = s->listen_fd;
	if (s->peer_fd >= 0)
		fds[n++] = s->peer_fd;
	return n;
}

int sock_send(struct sock *s, const struct pack_writer *w, int fd)
{
	int copy = -1, rc;

	if (s->peer_fd < 0)
		return -ENOTCONN;
	if (fd >= 0) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (copy < 0)
			return -errno;
	}
	rc = dp_tx_push(&s->tx, w->p, w->len, copy);
	if (rc == -ENOBUFS)
		drop_peer(s);
	return rc;
}
