/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the management server share. All on the thread of the loop.
 *
 * socket.c  the socket file            access.c  who may do what
 * check.c   requests and parameters    call.c    answers
 * client.c  one connection             server.c  accept, close, the table of clients
 */
#ifndef SPL_CONTROL_SERVER_INTERNAL_H
#define SPL_CONTROL_SERVER_INTERNAL_H

#include "control/server/access.h"
#include "control/server/server.h"
#include "control/server/socket.h"
#include "common/log.h"

#include <sys/queue.h>

struct mgmt_call {
	struct mgmt_client *client; /* NULL: gone */
	json_t *request;	    /* owns the id and the parameters */
	const json_t *id;	    /* in request */
};

struct mgmt_client {
	struct mgmt_server *server;
	TAILQ_ENTRY(mgmt_client) link;
	TAILQ_ENTRY(mgmt_client) ready_link;
	uv_pipe_t pipe;
	uv_timer_t in_timer, out_timer;
	unsigned handles; /* of the three, not yet closed by libuv */
	pid_t pid;	  /* of the peer, for the log */
	enum mgmt_access access;
	struct mgmt_call *call; /* the request that is being served */
	char *in;
	size_t in_len, in_cap, in_seen; /* in_seen bytes hold no newline */
	size_t out_last;		/* write queue when out_timer was started */
	bool reading, eof;
	bool is_ready;	    /* on the ready list */
	bool is_processing; /* client_process() is on the stack */
	bool is_finishing;  /* close when the output is written; input is ignored */
	bool is_closing;
};

TAILQ_HEAD(mgmt_clients, mgmt_client);

struct mgmt_server {
	uv_loop_t *loop;
	struct mgmt_options o; /* texts are not kept */
	const struct mgmt_method *methods;
	size_t n_methods;
	void *ctx;
	struct mgmt_socket socket;
	struct mgmt_policy policy;
	char start_time[32];
	uv_poll_t accept_poll;
	uv_timer_t accept_timer; /* tries again after accept() failed; at close, the grace */
	uv_idle_t ready_idle;
	unsigned handles;
	struct mgmt_clients clients, ready;
	struct mgmt_counts counts;
	struct log_rate accept_log, cut_log;
	bool is_accepting, is_closing;
	void (*done)(void *arg);
	void *done_arg;
	char scratch[65536]; /* where libuv reads to; used up before the next read */
};

/* client.c */

/* Takes the connected descriptor `fd`. With `refusal` (an error text) the client is told that and
 * closed. -errno when it could not be taken; fd is closed then. */
int client_open(struct mgmt_server *s, int fd, pid_t pid, enum mgmt_access access,
		const char *refusal);

/* Sends `line` (takes it; a newline is added) or, when NULL, cuts the client. */
void client_send(struct mgmt_client *c, char *line);

/* No more requests are read; the connection ends when what was sent has been taken. */
void client_finish(struct mgmt_client *c);
/* Ends the connection now. */
void client_close(struct mgmt_client *c);
/* Goes on with the input, later in this pass of the loop. */
void client_make_ready(struct mgmt_client *c);
/* Serves up to a handful of complete lines. */
void client_process(struct mgmt_client *c);

/* call.c */

/* One request line. */
void call_begin(struct mgmt_client *c, const char *line, size_t len);
/* The client is going away: what it waits for is answered into nothing. */
void call_detach(struct mgmt_client *c);
/* Sends an error that belongs to no call: `id` may be NULL. */
void call_error(struct mgmt_client *c, const json_t *id, int code, int kind, const char *object,
		const char *text, const char *hint);

/* server.c */
/* Somebody is on the ready list. */
void server_wake(struct mgmt_server *s);
void server_client_gone(struct mgmt_server *s, struct mgmt_client *c);

#endif
