/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket file of the management socket: made, found stale, refused, removed. */
#ifndef SPL_CONTROL_SERVER_SOCKET_H
#define SPL_CONTROL_SERVER_SOCKET_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define MGMT_ERR_MAX 512

struct mgmt_socket {
	int fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev; /* of the file we made */
	ino_t ino;
};

/* Binds and listens at `path`; the file gets `mode` and, unless it is (gid_t)-1, `gid` before
 * anybody can connect. A socket that nobody answers on is replaced; nothing else is touched, and no
 * directory is made. Two daemons that start at once are kept apart by a lock on the directory,
 * held during this call only. Errors as in mgmt_server_open(). */
int mgmt_socket_open(struct mgmt_socket *s, const char *path, mode_t mode, gid_t gid,
		     char err[MGMT_ERR_MAX]);

/* Removes the file if it is still ours, and closes. */
void mgmt_socket_close(struct mgmt_socket *s);

#endif
