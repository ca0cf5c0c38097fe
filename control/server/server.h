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

#include <jansson.h>
#include <spotlane/ids.h>
#include <spotlane/mgmt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct mgmt_server;
struct mgmt_call; /* one request that waits for its answer */

enum mgmt_type {
	MGMT_TEXT,
	MGMT_WORD,
	MGMT_BASE64,
	MGMT_INT,
	MGMT_BOOL,
	MGMT_CHOICE,
	MGMT_REF,
	MGMT_ROWS, /* results only */
};

enum mgmt_need { MGMT_REQUIRED, MGMT_OPTIONAL, MGMT_ONE_OF, MGMT_AT_MOST_ONE };

struct mgmt_param {
	const char *name;
	enum mgmt_type type;
	enum mgmt_need need;
	int64_t min, max;
	const char *choices; /* "a|b|c" */
	const char *help;
};

struct mgmt_result {
	const char *name;
	enum mgmt_type type;
	const char *help;
};

/* Called with parameters that keep the method's specification; `params` is an object, borrowed,
 * valid until the call is answered. The handler owns `call` and must answer it exactly once, now
 * or later, with mgmt_reply() or mgmt_fail(); also when the client has gone meanwhile. */
typedef void (*mgmt_handler_fn)(struct mgmt_call *call, const json_t *params, void *ctx);

struct mgmt_method {
	const char *name;
	const struct mgmt_param *params;
	size_t n_params;
	bool read_only;			   /* the read-only group may call it */
	mgmt_handler_fn handler;	   /* NULL: not offered by this daemon */
	const struct mgmt_result *results; /* for the reference page and for spotctl */
	size_t n_results;
	const char *help;
};

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

/* Fills `m` with Spotlane's methods (name, parameters, results, access); handlers are NULL. */
void mgmt_methods_init(struct mgmt_method m[SPL_MGMT_METHOD_COUNT]);

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

/* The parameter `name`, a text of 1..255 bytes, with its length: a name may contain NUL. -ENOENT
 * when it was left out. */
int mgmt_param_name(const json_t *params, const char *name, struct spl_name *out);

/* Bytes of the parameter `name` (text) or `name`_base64; empty when both are left out. `params`
 * has passed the check. The caller frees *out with free(). 0 or -ENOMEM. */
int mgmt_param_bytes(const json_t *params, const char *name, void **out, size_t *n);

/* Adds `name` (text) when the bytes are UTF-8 without NUL, else `name`_base64. 0 or -ENOMEM. */
int mgmt_result_bytes(json_t *result, const char *name, const void *bytes, size_t n);

#endif
