/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket file: see socket.h. Blocking calls, at start and end only. */
#include "control/server/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 200 /* of 10 ms */
#define BACKLOG	   128

static int fail(char err[MGMT_ERR_MAX], int code, const char *path, const char *what,
		const char *hint)
{
	snprintf(err, MGMT_ERR_MAX, "socket %s: %s: %s%s%s", path, what, strerror(-code),
		 *hint ? ": " : "", hint);
	return code;
}

/* Opens and locks the directory of `path`; a descriptor or -errno. */
static int lock_dir(const char *path, char err[MGMT_ERR_MAX])
{
	char dir[sizeof(((struct mgmt_socket *)0)->path)];
	char *slash;
	int fd, code;

	strcpy(dir, path);
	slash = strrchr(dir, '/');
	if (!slash)
		strcpy(dir, ".");
	else
		slash[slash == dir ? 1 : 0] = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail(err, -errno, path, "cannot open its directory", "make it first");
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
		struct timespec pause = {0, 10000000};

		code = -errno;
		if (code != -EWOULDBLOCK || i == LOCK_TRIES) {
			close(fd);
			return fail(err, code, path, "its directory is locked", "");
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

/* Somebody answers at the socket: names the process. */
static int in_use(int fd, const char *path, char err[MGMT_ERR_MAX])
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	snprintf(err, MGMT_ERR_MAX, "socket %s: already running, pid %d: stop that daemon first",
		 path, (int)cred.pid);
	return -EADDRINUSE;
}

/* Makes room at addr: nothing there, or a dead socket that is removed. */
static int make_room(const struct sockaddr_un *addr, char err[MGMT_ERR_MAX])
{
	const char *path = addr->sun_path;
	struct stat st;
	int fd, code;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : fail(err, -errno, path, "cannot look at it", "");
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, MGMT_ERR_MAX,
			 "socket %s: exists and is no socket: it was left alone: remove it or "
			 "choose "
			 "another path",
			 path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(err, -errno, path, "cannot make a socket", "");
	code = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ? 0 : -errno;
	if (code == 0 || code == -EAGAIN) {
		code = in_use(fd, path, err);
	} else if (code != -ECONNREFUSED) {
		fail(err, code, path, "something else listens there", "");
	} else {
		code = unlink(path) == 0 ? 0 : fail(err, -errno, path, "cannot remove it", "");
	}
	close(fd);
	return code;
}

static int bind_and_listen(struct mgmt_socket *s, const struct sockaddr_un *addr, mode_t mode,
			   gid_t gid, char err[MGMT_ERR_MAX])
{
	struct stat st;
	int code;

	/* On Linux the file is born with the mode of the unbound socket: nobody else gets near. */
	if (fchmod(s->fd, 0600) != 0)
		return fail(err, -errno, s->path, "cannot set the mode", "");
	if (bind(s->fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0)
		return fail(err, -errno, s->path, "cannot bind", "");
	if (lstat(s->path, &st) != 0) {
		code = fail(err, -errno, s->path, "cannot look at it", "");
		goto unlink_it;
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	if (gid != (gid_t)-1 && lchown(s->path, (uid_t)-1, gid) != 0) {
		code = fail(err, -errno, s->path, "cannot set the group",
			    "the daemon's user must be a member of it");
		goto unlink_it;
	}
	if (chmod(s->path, mode) != 0) {
		code = fail(err, -errno, s->path, "cannot set the mode", "");
		goto unlink_it;
	}
	if (listen(s->fd, BACKLOG) != 0) {
		code = fail(err, -errno, s->path, "cannot listen", "");
		goto unlink_it;
	}
	return 0;
unlink_it:
	unlink(s->path);
	return code;
}

int mgmt_socket_open(struct mgmt_socket *s, const char *path, mode_t mode, gid_t gid,
		     char err[MGMT_ERR_MAX])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int lock, code;

	s->fd = -1;
	if (!*path || strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(err, MGMT_ERR_MAX, "socket %.60s: path too long: %zu bytes (max %zu)",
			 path, strlen(path), sizeof(addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(addr.sun_path, path);
	strcpy(s->path, path);
	lock = lock_dir(path, err);
	if (lock < 0)
		return lock;
	code = make_room(&addr, err);
	if (code == 0) {
		s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		code = s->fd >= 0 ? bind_and_listen(s, &addr, mode, gid, err)
				  : fail(err, -errno, path, "cannot make a socket", "");
	}
	close(lock);
	if (code != 0 && s->fd >= 0) {
		close(s->fd);
		s->fd = -1;
	}
	return code;
}

void mgmt_socket_close(struct mgmt_socket *s)
{
	struct stat st;

	if (s->fd < 0)
		return;
	if (lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	close(s->fd);
	s->fd = -1;
}
