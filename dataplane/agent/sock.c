/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the dataplane's end of the private socket: see sock.h. */
#include "dataplane/agent/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct out {
	STAILQ_ENTRY(out) next;
	size_t len;
	int fd; /* attached, -1 none; ours */
	uint8_t data[];
};

struct sock {
	struct sock_ops ops;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int lock_fd, listen_fd, peer_fd;
	size_t queued;
	STAILQ_HEAD(, out) queue;
	uint8_t buf[DP_PACKET_MAX];
};

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int check_dir(const char *dir, char *err, size_t n)
{
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode)) {
		snprintf(err, n, "%s: no such directory: create it with mode 0750", dir);
		return errno ? -errno : -ENOTDIR;
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
	STAILQ_INIT(&s->queue);
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

static void drop_queue(struct sock *s)
{
	struct out *o;

	while ((o = STAILQ_FIRST(&s->queue))) {
		STAILQ_REMOVE_HEAD(&s->queue, next);
		if (o->fd >= 0)
			close(o->fd);
		free(o);
	}
	s->queued = 0;
}

static void drop_peer(struct sock *s)
{
	if (s->peer_fd < 0)
		return;
	close(s->peer_fd);
	s->peer_fd = -1;
	drop_queue(s);
	s->ops.on_peer(s->ops.ctx, false);
}

void sock_close(struct sock *s)
{
	if (!s)
		return;
	drop_queue(s);
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

static void accept_peer(struct sock *s)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int size = 1 << 20;

	if (fd < 0)
		return;
	if (s->peer_fd >= 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    (cred.uid != 0 && cred.uid != geteuid())) {
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	s->peer_fd = fd;
	s->ops.on_peer(s->ops.ctx, true);
}

/* Takes the first descriptor of a control message and closes any other. */
static int take_fd(struct msghdr *mh)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (fd < 0)
				fd = got;
			else
				close(got);
		}
	}
	return fd;
}

/* Maps a sealed memfd of at most `max` bytes; the fd is closed. */
static int map_blob(int fd, struct pack_bytes *out)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *p = NULL;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) || st.st_size <= 0 ||
	    st.st_size > SOCK_QUEUE_BYTES) {
		close(fd);
		return -EPROTO;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -ENOMEM;
	*out = (struct pack_bytes){p, (uint32_t)st.st_size};
	return 0;
}

/* One packet: 1 taken, 0 nothing there, negative: the peer is gone or broke the protocol. */
static int take_packet(struct sock *s)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {s->buf, sizeof(s->buf)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room)};
	struct sock_packet p = {.blob = {NULL, 0}};
	ssize_t n = recvmsg(s->peer_fd, &mh, MSG_CMSG_CLOEXEC);
	int fd, rc;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	fd = take_fd(&mh);
	rc = mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO
						     : dp_open(s->buf, (size_t)n, &p.h, &p.body);
	if (!rc && p.h.nfds != (fd >= 0))
		rc = -EPROTO;
	if (!rc && fd >= 0) {
		rc = map_blob(fd, &p.blob);
		fd = -1;
	}
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	s->ops.on_packet(s->ops.ctx, &p);
	if (p.blob.p)
		munmap((void *)(uintptr_t)p.blob.p, p.blob.len);
	return 1;
}

static int flush(struct sock *s)
{
	struct out *o;

	while ((o = STAILQ_FIRST(&s->queue))) {
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(sizeof(int))];
		} control;
		struct iovec iov = {o->data, o->len};
		struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

		if (o->fd >= 0) {
			mh.msg_control = control.room;
			mh.msg_controllen = sizeof(control.room);
			control.align.cmsg_len = CMSG_LEN(sizeof(int));
			control.align.cmsg_level = SOL_SOCKET;
			control.align.cmsg_type = SCM_RIGHTS;
			memcpy(CMSG_DATA(&control.align), &o->fd, sizeof(int));
		}
		if (sendmsg(s->peer_fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -errno;
		STAILQ_REMOVE_HEAD(&s->queue, next);
		s->queued -= o->len;
		if (o->fd >= 0)
			close(o->fd);
		free(o);
	}
	return 0;
}

unsigned sock_poll(struct sock *s)
{
	unsigned n = 0;

	accept_peer(s);
	while (s->peer_fd >= 0 && n < SOCK_BATCH) {
		int rc = take_packet(s);

		if (rc < 0)
			drop_peer(s);
		if (rc <= 0)
			break;
		n++;
	}
	if (s->peer_fd >= 0 && flush(s) < 0)
		drop_peer(s);
	return n;
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
	struct out *o;

	if (s->peer_fd < 0)
		return -ENOTCONN;
	if (s->queued + w->len > SOCK_QUEUE_BYTES) {
		drop_peer(s);
		return -ENOBUFS;
	}
	o = malloc(sizeof(*o) + w->len);
	if (!o)
		return -ENOMEM;
	o->len = w->len;
	o->fd = -1;
	if (fd >= 0) {
		o->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (o->fd < 0) {
			free(o);
			return -errno;
		}
	}
	memcpy(o->data, w->p, w->len);
	STAILQ_INSERT_TAIL(&s->queue, o, next);
	s->queued += o->len;
	return 0;
}

int sock_blob(const void *p, size_t bytes)
{
	int fd = memfd_create("spotlane-blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;

	if (fd < 0)
		return -errno;
	while (done < bytes) {
		ssize_t n = write(fd, (const uint8_t *)p + done, bytes - done);

		if (n <= 0)
			goto fail;
		done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
fail:
	close(fd);
	return errno ? -errno : -EIO;
}
