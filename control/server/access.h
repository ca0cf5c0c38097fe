/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may do what on the management socket, by peer credentials. */
#ifndef SPL_CONTROL_SERVER_ACCESS_H
#define SPL_CONTROL_SERVER_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum mgmt_access { MGMT_ACCESS_NONE, MGMT_ACCESS_READ, MGMT_ACCESS_FULL };

struct mgmt_policy {
	uid_t self;	   /* user of the daemon */
	bool has_readonly; /* without a read-only group, the mode of the file alone decides */
	gid_t full, readonly;
};

struct mgmt_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t groups[256];
	size_t n_groups;
};

/* Pure. Root and the daemon's own user may do everything. */
enum mgmt_access mgmt_access_of(const struct mgmt_policy *p, const struct mgmt_peer *peer);

/* SO_PEERCRED and SO_PEERGROUPS of a connected socket. 0 or -errno. */
int mgmt_peer_read(int fd, struct mgmt_peer *out);

/* Number of the group `name`. 0, -ENOENT, or -errno. */
int mgmt_group_id(const char *name, gid_t *out);

#endif
