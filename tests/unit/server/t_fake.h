/* SPDX-License-Identifier: BSD-3-Clause */
/* A node for spotctl to talk to, in a process of its own: the real management server with fixed
 * answers, or a script of bytes for what no real server would say. */
#ifndef SPL_TESTS_T_FAKE_H
#define SPL_TESTS_T_FAKE_H

#include <stddef.h>
#include <sys/types.h>

struct t_fake {
	pid_t pid;
	char dir[64], path[128];
};

/* The real server with fixed answers; ready to be connected to on return. 0 or -1. */
int t_fake_start(struct t_fake *f, mode_t mode);

/* Accepts one connection after another, writes `bytes` and closes, or keeps open when `hold`. */
int t_fake_script(struct t_fake *f, const char *bytes, int hold);

/* Ends the process if it has not ended, and removes the directory. */
void t_fake_stop(struct t_fake *f);

#endif
