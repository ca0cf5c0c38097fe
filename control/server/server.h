/* SPDX-License-Identifier: BSD-3-Clause */
/* The management socket: accepts clients, reads one JSON-RPC request a line, checks it against the
 * method table, calls the handler and writes the answers in order.
 *
 * All functions and callbacks run on the thread of the libuv loop given to mgmt_server_open().
 * The server is generic: what a method does is the handler's; the names, parameters and access of
 * Spotlane's methods come from <spotlane/mgmt.h> through mgmt_methods_init().
 *
 * Bounds: clients, bytes of one line, depth of one request, bytes waiting for a client that does
 * not read, time for a line to become complete. One request of a connection is served at a time;
 * the next ones wait in its input. A connection that breaks a bound gets one error line, if it
 * reads, and is closed; nobody else is affected.
 */
#ifndef SPL_CONTROL_SERVER_H
#define SPL_CONTROL_SERVER_H

#include "control/server/methods.h"

#include <spotlane/ids.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct mgmt_server;

struct mgmt_options {
	const char *path;	    /* of the socket, at most 107 bytes */
	mode_t mode;		    /* of the socket file */
	const char *group;	    /* may do everything; NULL or "" = file mode alone decides */
	const char *readonly_group; /* may call read_only methods; NULL or "" = none */
	unsigned clients_max;
	size_t line_max;	    /* bytes of one request */
	size_t output_max;	    /* bytes waiting for one client */
	uint32_t input_timeout_ms;  /* from the first byte of a line to its end */
	uint32_t output_timeout_ms; /* without a byte taken by the client */
};

struct mgmt_counts {
	unsigned clients;     /* connected now */
	uint64_t accepted;    /* connections ever */
	uint64_t refused;     /* by access or clients_max */
	uint64_t requests;    /* lines that reached a handler */
	uint64_t errors;      /* error answers sent */
	uint64_t cut;	      /* connections closed for breaking a bound */
	uint64_t accept_fail; /* accept() failed, e.g. for want of descriptors */
};

/* Opens the socket and serves it on `loop`. `methods` must outlive the server; `ctx` goes to the
 * handlers. A socket file that nobody answers on is replaced; anything else at `path` is refused
 * untouched. Errors, with one sentence in `err` ("object: what: reason: hint"): -EADDRINUSE a
 * daemon answers there, -EEXIST something that is no socket, -EACCES, -ENOENT missing directory or
 * group, -ENAMETOOLONG, -ENOMEM. On error nothing is left behind. */
int mgmt_server_open(struct mgmt_server **out, uv_loop_t *loop, const struct mgmt_options *o,
		     const struct mgmt_method *methods, size_t n_methods, void *ctx, char *err,
		     size_t err_size);

/* Removes the socket file if it is still the one made by open, answers waiting calls with
 * ShuttingDown, flushes for at most 1 s, closes every connection and calls `done`; the server is
 * gone then. Calls that handlers still hold stay valid and must still be answered. */
void mgmt_server_close(struct mgmt_server *s, void (*done)(void *arg), void *arg);

void mgmt_server_counts(const struct mgmt_server *s, struct mgmt_counts *out);

/* Answers with `result`; takes the reference. NULL stands for out of memory and becomes an
 * InternalFailure. */
void mgmt_reply(struct mgmt_call *call, json_t *result);

/* Answers with an error of `kind` (0..12, <spotlane/errors.h>). `text` is "what: reason"; `object`
 * (what it is about, "spot room-1") and `hint` may be NULL. Copies its arguments. */
void mgmt_fail(struct mgmt_call *call, int kind, const char *object, const char *text,
	       const char *hint);

/* The client went away; the answer will be thrown away. */
bool mgmt_call_is_gone(const struct mgmt_call *call);

#endif
