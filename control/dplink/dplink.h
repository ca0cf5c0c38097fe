/* SPDX-License-Identifier: BSD-3-Clause */
/* Control's end of the private socket: finds the dataplane, keeps the connection, matches replies,
 * and proves the dataplane's death.
 *
 * Everything here runs on the thread of the libuv loop given to dplink_open(), callbacks too.
 * A connection counts as up when the peer's uid was ours or root's, its pid is watched by a pidfd,
 * and its HELLO was good. When the connection breaks, every request ends with -ECONNRESET and the
 * link connects again, with backoff; one log line a change of state. A dataplane whose pidfd says
 * that it has ended is reported by dead(); another epoch is never reported up before that.
 *
 * Bounds: DPLINK_REQUESTS_MAX requests without reply, DPLINK_OUT_MAX packets or
 * DPLINK_OUT_BYTES_MAX bytes not yet taken by the dataplane. A dataplane that takes nothing until a
 * bound is reached loses the connection: what was queued is repeated after it is back.
 */
#ifndef SPL_CONTROL_DPLINK_H
#define SPL_CONTROL_DPLINK_H

#include "common/dp_io.h"

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#define DPLINK_REQUESTS_MAX  32768
#define DPLINK_OUT_MAX	     65536
#define DPLINK_OUT_BYTES_MAX (64u << 20)
#define DPLINK_HELLO_MS	     5000 /* from connect to HELLO */
#define DPLINK_RETRY_MS_MIN  20
#define DPLINK_RETRY_MS_MAX  1000

struct dplink;

/* A packet from the dataplane; everything in it is valid during the callback. */
struct dplink_msg {
	struct dp_header h;
	struct pack_reader body;
	int fd; /* -1 = none; closed afterwards unless the callback takes it (sets it to -1) */
};

/* End of a request: rc 0 and the reply of the wanted type in `m`; -EREMOTEIO the dataplane refused
 * with OK{kind, text}, which are in `kind` and `text`; -ETIMEDOUT; -ECONNRESET; `m` is NULL then.
 */
struct dplink_end {
	int rc;
	struct dplink_msg *m;
	int kind;
	struct pack_bytes text;
};
typedef void (*dplink_end_fn)(void *ctx, uint64_t tag, const struct dplink_end *end);

struct dplink_ops {
	/* HELLO of a new connection. */
	void (*up)(void *ctx, uint64_t epoch, const struct dp_hello *hello);
	/* The connection is gone, the process perhaps not. Requests have ended already. */
	void (*down)(void *ctx);
	/* The process of this epoch has ended; comes after down(), and once. */
	void (*dead)(void *ctx, uint64_t epoch);
	/* An event or a request. 0, or -errno: the packet was malformed, the connection is cut. */
	int (*message)(void *ctx, struct dplink_msg *m);
};

struct dplink_options {
	const char *dir;		/* of DP_SOCKET_NAME; borrowed for the life of the link */
	const struct dplink_ops *ops;	/* borrowed */
	void *ctx;			/* of ops */
	uint64_t (*now)(void *now_ctx); /* ns, CLOCK_BOOTTIME; NULL = that clock */
	void *now_ctx;
	uint32_t out_max; /* 0 = DPLINK_OUT_MAX */
};

enum dplink_state { DPLINK_WAITING, DPLINK_CONNECTING, DPLINK_UP, DPLINK_CLOSED };

struct dplink_info {
	enum dplink_state state;
	pid_t pid;	/* of the dataplane last seen; 0 = none alive */
	uint64_t epoch; /* of it */
	unsigned requests;
	uint64_t connects, resets, timeouts, unmatched;
};

/* Starts looking for the dataplane. 0, -ENOMEM, -EINVAL (path too long). */
int dplink_open(struct dplink **out, uv_loop_t *loop, const struct dplink_options *o);

/* Ends every request with -ECONNRESET, closes, then calls `done`; the link is gone then. */
void dplink_close(struct dplink *l, void (*done)(void *arg), void *arg);

/* The dataplane was told to end: that it does is no warning any more. */
void dplink_expect_end(struct dplink *l);

/* Looks for the dataplane now instead of at the end of the backoff. */
void dplink_poke(struct dplink *l);

/* While held, packets are queued and not sent; releasing sends them in order. Ends with the
 * connection. */
void dplink_hold(struct dplink *l, bool held);

void dplink_info(const struct dplink *l, struct dplink_info *out);

/* Begins a packet of `type`: put its fields into the writer, then call one of the three below, at
 * once. Never NULL. */
struct pack_writer *dplink_begin(struct dplink *l, uint16_t type);

/* The three take `fd` (-1 = none) in every case. Errors: -ENOTCONN, -EMSGSIZE (fields do not fit),
 * -ENOBUFS (a bound is reached; for the queue that also cuts the connection), -ENOMEM. */
int dplink_event(struct dplink *l, int fd);
int dplink_reply(struct dplink *l, uint64_t corr, int fd);

struct dplink_want {
	uint16_t type;	   /* of the reply */
	uint64_t deadline; /* ns; 0 = as long as the connection lives */
	dplink_end_fn fn;
	void *ctx;
	uint64_t tag;
};
/* After 0, w->fn is called exactly once. */
int dplink_request(struct dplink *l, int fd, const struct dplink_want *w);

/* A packet turned out to be malformed after its callback took it: cuts the connection, soon. `why`
 * is static text. */
void dplink_cut(struct dplink *l, const char *why);

/* Ends the process of the last dataplane by SIGKILL through its pidfd. 0, -ESRCH, -EPERM. */
int dplink_kill(struct dplink *l);

#endif
