/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake dataplane over a real SEQPACKET socket: what the private protocol asks of a dataplane,
 * with objects that only remember what was done to them. For tests of control and spotctl, for
 * benchmarks, and as a process of its own (tests/lib/fake_dataplane.c).
 *
 * Stepped by its user: nothing happens outside t_ctl_step(). One thread. The `seen` block is shared
 * memory, so that the parent of a forked fake reads it.
 *
 * How a creation ends is in the stable type: "reject" rejects, "fail" fails, "hold" waits for
 * t_ctl_release(); everything else is accepted with the request as reply.
 */
#ifndef SPL_T_CTL_H
#define SPL_T_CTL_H

#include "common/dp_io.h"

#include <spotlane/ids.h>
#include <spotlane/stats.h>
#include <stdbool.h>

#define T_CTL_TYPES_MAX 16

struct t_ctl_options {
	const char *dir;		    /* of the socket; must exist */
	const char *types[T_CTL_TYPES_MAX]; /* none: "room", "reject", "fail", "hold" of User
					       Spots, and "twin" of Instance Spots */
	uint32_t lanes;			    /* 0 = 2 */
	bool hold_closes;		    /* as t_ctl_hold_closes(f, true) */
	const char *refuse;		    /* not NULL: CONFIG is answered with this error */
	uint64_t (*now)(void *now_ctx);	    /* CLOCK_BOOTTIME ns; NULL = that clock */
	void *now_ctx;
};

/* What the fake has seen. */
struct t_ctl_seen {
	uint64_t epoch, packets, connections;
	uint64_t configs, identities, prepares, factories, publishes, discards, closes, calls;
	uint64_t on_closing[4];	 /* by enum spl_closing */
	uint64_t entry_closings; /* the Entry Spot is in no other count of objects */
	uint64_t resyncs, extends, losts, host_states, exits, unknown;
	uint64_t lease_deadline, lease_gen, node_gen;
	uint64_t objects, ready, largest_gen;
	uint32_t host_state, exit_forced, state;
	uint64_t trace_level, trace_share;
	bool fenced, exited;
	char rid[256];
};

struct t_ctl_object {
	struct t_ctl_object *next;
	struct spl_name id;
	uint64_t obj_gen, own_gen, attempt, ver, lease_gen;
	enum dp_object_state state;
	uint32_t lane;
	bool waiting; /* PREPARE not answered: type "hold" */
	uint64_t corr;
	uint8_t result; /* of the PREPARE, repeated */
	uint32_t request_len;
	uint8_t *request;
};

struct t_ctl;

/* Locks, listens; the memory and the identity of a new process. 0 or -errno. */
int t_ctl_open(struct t_ctl **out, const struct t_ctl_options *o);
void t_ctl_close(struct t_ctl *f);

/* Accepts, reads, answers; waits for at most `timeout_ms` when there is nothing. True when
 * something was done. */
bool t_ctl_step(struct t_ctl *f, int timeout_ms);

const struct t_ctl_seen *t_ctl_seen(const struct t_ctl *f);
struct t_ctl_object *t_ctl_find(struct t_ctl *f, const char *id);
struct spl_stats *t_ctl_stats(struct t_ctl *f); /* to be written by the test */
bool t_ctl_connected(const struct t_ctl *f);

/* Stops accepting and reading while false, as a process that hangs. */
void t_ctl_reads(struct t_ctl *f, bool reads);
/* Cuts the connection; the next step accepts again. */
void t_ctl_disconnect(struct t_ctl *f);
/* Answers every waiting PREPARE. */
void t_ctl_release(struct t_ctl *f);
/* While true, OBJ_CLOSE is not answered; false answers all that wait. */
void t_ctl_hold_closes(struct t_ctl *f, bool hold);
/* An object that nobody ordered, as left behind by a lost answer. */
void t_ctl_plant(struct t_ctl *f, const char *id, uint64_t obj_gen, enum dp_object_state state);

/* Sends as given, on the connection that stands. */
void t_ctl_raw(struct t_ctl *f, const void *p, size_t n, int fd);
struct pack_writer *t_ctl_begin(struct t_ctl *f, uint16_t type, uint16_t flags, uint64_t corr);
void t_ctl_send(struct t_ctl *f, int fd);
void t_ctl_hello_by_hand(struct t_ctl *f, bool by_hand); /* no HELLO on accept */
void t_ctl_hello(struct t_ctl *f, uint64_t epoch, uint32_t pid);

/* Sends a MESH_OP; the reply comes to `fn` inside a later step. */
typedef void (*t_ctl_reply_fn)(void *ctx, uint64_t corr, const struct dp_mesh_op_done *m);
void t_ctl_on_reply(struct t_ctl *f, t_ctl_reply_fn fn, void *ctx);
uint64_t t_ctl_mesh_op(struct t_ctl *f, uint8_t op, const char *rid, const void *body, size_t n,
		       uint64_t deadline);

/* Shows each packet before it is served; true = the test has it, it is not served. */
typedef bool (*t_ctl_packet_fn)(void *ctx, const struct dp_header *h, struct pack_reader body);
void t_ctl_on_packet(struct t_ctl *f, t_ctl_packet_fn fn, void *ctx);

/* Runs the fake in a child process until it is killed or told to exit. *seen is shared memory of
 * the parent. Returns the pid once the child listens, -1 on failure. */
pid_t t_ctl_fork(const struct t_ctl_options *o, const struct t_ctl_seen **seen);

#endif
