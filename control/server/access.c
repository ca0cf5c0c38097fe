/* SPDX-License-Identifier: BSD-3-Clause */
/* Peer credentials: see access.h. Called at accept on the loop's thread; the group lookup only at
 * start. */
#include "control/server/access.h"

#include <errno.h>
#include <grp.h>
#include <sys/socket.h>

static bool is_member(const struct mgmt_peer *peer, gid_t gid)
{
	if (peer->gid == gid)
		return true;
	for (size_t i = 0; i < peer->n_groups; i++)
		if (peer->groups[i] == gid)
			return true;
	return false;
}

enum mgmt_access mgmt_access_of(const struct mgmt_policy *p, const struct mgmt_peer *peer)
{
	if (peer->uid == 0 || peer->uid == p->self || !p->has_readonly)
		return MGMT_ACCESS_FULL;
	if (is_member(peer, p->full))
		return MGMT_ACCESS_FULL;
	return is_member(peer, p->readonly) ? MGMT_ACCESS_READ : MGMT_ACCESS_NONE;
}

int mgmt_peer_read(int fd, struct mgmt_peer *out)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -errno;
	out->pid = cred.pid;
	out->uid = cred.uid;
	out->gid = cred.gid;
	out->n_groups = 0;
	len = sizeof(out->groups);
	/* Somebody in more groups than fit counts as a member of the primary one only. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, out->groups, &len) == 0)
		out->n_groups = len / sizeof(gid_t);
	return 0;
}

int mgmt_group_id(const char *name, gid_t *out)
{
	struct group g, *found = NULL;
	char buf[16384];
	int err = getgrnam_r(name, &g, buf, sizeof(buf), &found);

	if (err != 0)
		return -err;
	if (!found)
		return -ENOENT;
	*out = found->gr_gid;
	return 0;
}
