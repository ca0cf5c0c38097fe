/* SPDX-License-Identifier: BSD-3-Clause */
/* The node as control sees it: joins the authority with the store's thread, the dataplane and the
 * management methods. All on the thread of one libuv loop; the store's thread is inside.
 *
 * Life: host_open(), then host_shutdown() at any time, then `finished` once, then host_close().
 */
#ifndef SPL_CONTROL_HOST_H
#define SPL_CONTROL_HOST_H

#include "control/config/config.h"
#include "control/server/server.h"
#include "control/store/store.h"

#include <uv.h>

/* Exit status of spotlane-control. */
enum host_exit {
	HOST_EXIT_OK = 0,
	HOST_EXIT_USAGE = 2,
	HOST_EXIT_RUNNING = 69,	    /* another control runs */
	HOST_EXIT_INTERNAL = 70,    /* a fault of ours, or the start of the node failed */
	HOST_EXIT_ENVIRONMENT = 75, /* store, directory, memory: may be there later */
	HOST_EXIT_CONFIG = 78,	    /* configuration, or a store that is no store of ours */
};

struct host;

struct host_options {
	uv_loop_t *loop;
	const struct config *cfg;	/* borrowed for the life of the host */
	struct store *store;		/* taken when host_open() succeeds */
	uint64_t (*now)(void *now_ctx); /* CLOCK_BOOTTIME ns; NULL = that clock */
	void *now_ctx;
	/* The planned stop is over: rows are released, the dataplane has ended or was told to.
	 * `code` is for exit(). */
	void (*finished)(void *ctx, int code);
	void *ctx;
};

/* 0, or -errno with one sentence in `err`: -EINVAL what the configuration says cannot be sent to a
 * dataplane, -ENOMEM. */
int host_open(struct host **out, const struct host_options *o, char *err, size_t err_size);

/* Begins the planned stop: accepted turns have until `deadline_ns` from now. Further calls change
 * nothing. `cause` is for the log. */
void host_shutdown(struct host *h, uint64_t deadline_ns, const char *cause);
bool host_is_stopping(const struct host *h);

/* Looks at the clock now. For a clock that the loop's timers do not follow. */
void host_wake(struct host *h);

/* Frees everything; `done` when the loop has nothing of it left. Management calls that still wait
 * are answered with ShuttingDown. Not before `finished`, except in tests: the authority is then
 * left as a crash would leave it. */
void host_close(struct host *h, void (*done)(void *arg), void *arg);

/* Sets the handlers of the method table. `ctx` of the server is the host. */
void host_methods(struct mgmt_method m[SPL_MGMT_METHOD_COUNT]);

#endif
