/* SPDX-License-Identifier: BSD-3-Clause */
/* A management server in this process, in a directory of its own, and peers on real sockets.
 * Everything waits for a condition by running the loop; a wait that takes 20 s fails the test. */
#ifndef SPL_TESTS_T_MGMT_H
#define SPL_TESTS_T_MGMT_H

#include "control/server/server.h"

#include <CUnit/CUnit.h>

/* Methods of the test server besides Spotlane's, which have no handlers. */
enum { T_ECHO, T_LATER, T_BIG, T_FAIL, T_METHODS };

struct t_mgmt {
	uv_loop_t loop;
	struct mgmt_server *server;
	struct mgmt_options o;
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT + T_METHODS];
	struct mgmt_call *held[256]; /* calls of test.later, oldest first */
	unsigned n_held;
	unsigned handled; /* calls of any test method */
	bool is_closed;
	char dir[64], path[128];
};

struct t_peer {
	struct t_mgmt *m;
	int fd;
	char *buf;
	size_t len, cap;
	bool eof;
};

extern struct t_mgmt t;

/* Suite hooks: the directory. */
int t_mgmt_init(void);
int t_mgmt_fini(void);

/* Starts and stops the server; options may be changed in t.o between init and start. */
void t_mgmt_start(void);
void t_mgmt_stop(void);
void t_mgmt_defaults(void);

/* Runs the loop until `cond` is true. */
bool t_mgmt_until(bool (*cond)(void *arg), void *arg);

/* Connects without reading the greeting. fd -1 on failure. */
struct t_peer t_peer_connect(void);
/* Connects and reads the greeting. */
struct t_peer t_peer_open(void);
void t_peer_close(struct t_peer *p);
/* Sends while the loop runs. False when the server closed. */
bool t_peer_send(struct t_peer *p, const char *bytes, size_t n);
bool t_peer_say(struct t_peer *p, const char *line); /* adds the newline */
/* The next line, which the caller frees; NULL when the connection ended. */
char *t_peer_line(struct t_peer *p);
/* Runs until the server ended the connection; what came before is kept. */
bool t_peer_ended(struct t_peer *p);

/* Says `line` and compares the answer. */
void t_peer_ask(struct t_peer *p, const char *line, const char *answer);
/* Says `line`; the answer must contain `part`. */
void t_peer_ask_part(struct t_peer *p, const char *line, const char *part);

#endif
