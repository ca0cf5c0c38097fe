/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the link: dplink.c keeps the connection, dplink_msg.c the packets and requests. */
#ifndef SPL_CONTROL_DPLINK_PRIV_H
#define SPL_CONTROL_DPLINK_PRIV_H

#include "control/dplink/dplink.h"

#define DPLINK_TICK_MS 50 /* how late a deadline may be seen */

/* A watched descriptor: its handle must outlive it by one turn of the loop. */
struct dplink_watch {
	uv_poll_t poll; /* first: freed through it */
	int fd;
};

/* A request without reply. Free slots have corr 0 and are chained by next. */
struct dplink_slot {
	uint64_t corr, deadline, tag;
	dplink_end_fn fn;
	void *ctx;
	uint32_t next;
	uint16_t type;
};

struct dplink {
	uv_loop_t *loop;
	struct dplink_options o;
	char path[108];
	enum dplink_state state;

	struct dplink_watch *sock; /* NULL = not connected */
	struct dplink_watch *proc; /* pidfd; NULL = no process known */
	pid_t pid;
	uint64_t epoch; /* of the process, 0 before its HELLO */

	uv_timer_t retry; /* next attempt, or the end of the wait for HELLO */
	uv_timer_t tick;  /* deadlines of requests */
	uv_prepare_t flush;
	unsigned retry_ms, closing;
	char said[160];	     /* the last reason that was logged while not connected */
	const char *cut_why; /* cut before the next wait */
	bool ending;	     /* its end is expected */
	bool held, blocked;  /* blocked: the socket is full, UV_WRITABLE is watched */

	struct dp_rx *rx;
	struct dp_tx tx;
	uint8_t scratch[DP_PACKET_MAX];
	struct pack_writer w;
	uint16_t w_type;

	struct dplink_slot *slots;
	uint32_t n_slots, free_slot, used_slots, timed_slots;
	uint64_t serial;
	uint64_t connects, resets, timeouts, unmatched;

	void (*done)(void *arg);
	void *done_arg;
};

/* dplink.c: closes the connection, ends its requests, reports it, arms the next attempt. */
void dplink_lost(struct dplink *l, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* dplink.c: HELLO was good. */
void dplink_hello(struct dplink *l, uint64_t epoch, const struct dp_hello *hello);

/* dplink_msg.c: handles what the socket holds, `all` of it or a fair share. False when the
 * connection is gone afterwards. */
bool dplink_read(struct dplink *l, bool all);
void dplink_fail_all(struct dplink *l, int rc);
void dplink_expire(struct dplink *l);
void dplink_on_tick(uv_timer_t *t);

static inline uint64_t dplink_now(const struct dplink *l)
{
	return l->o.now(l->o.now_ctx);
}

#endif
