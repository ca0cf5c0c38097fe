/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the rings between the threads of the dataplane (lanes 0..n-1; the agent is user n, the
 * workers are user n + 1).
 *
 * One SPSC rte_ring for each ordered pair, so order from one thread to another holds for everything
 * that travels, a preempted producer stops nobody, and there is no lock. An item is a pointer whose
 * low bits say what it is; ownership goes with it. A push that does not fit is refused at once and
 * the pusher decides (drop and count, or keep): nothing here waits.
 */
#ifndef SPL_LANE_HOP_H
#define SPL_LANE_HOP_H

#include "dataplane/lane/wake.h"

#include <rte_ring.h>
#include <stdint.h>

#define HOP_SLOTS	   2048u /* of one ring */

#define HOP_WORKERS(lanes) ((lanes) + 1)
#define HOP_USERS(lanes)   ((lanes) + 2)

enum hop_kind {
	HOP_FRAME = 0, /* struct rte_mbuf: a received frame, for the lane or the agent it is for */
	HOP_MESSAGE = 1, /* struct xmsg: a message from a turn of another lane */
	HOP_RETURN = 2,	 /* struct xmsg: given back to the lane whose memory it is */
	HOP_COMMAND = 3, /* struct lane_cmd: agent to lane; and back, answered */
	HOP_EVENT = 4,	 /* struct lane_event: lane to agent; and back, done with */
};
#define HOP_KIND_MASK 7u

struct hop {
	unsigned users;		/* HOP_USERS(lanes); const after start */
	struct wake *wake;	/* [users] */
	struct rte_ring **ring; /* [from * users + to] */
};

/* 0 or -errno; undone as a whole on failure. Agent, before lanes run. */
int hop_init(struct hop *h, unsigned users) __attribute__((warn_unused_result));
void hop_fini(struct hop *h); /* rings must be empty */

static inline void *hop_tag(void *p, enum hop_kind kind)
{
	return (void *)((uintptr_t)p | (uintptr_t)kind);
}

static inline enum hop_kind hop_kind(const void *item)
{
	return (enum hop_kind)((uintptr_t)item & HOP_KIND_MASK);
}

static inline void *hop_pointer(void *item)
{
	return (void *)((uintptr_t)item & ~(uintptr_t)HOP_KIND_MASK);
}

static inline struct rte_ring *hop_ring(const struct hop *h, unsigned from, unsigned to)
{
	return h->ring[from * h->users + to];
}

/* Pushes up to n tagged items; returns how many the ring took. Caller: thread `from`. */
static inline unsigned hop_push(const struct hop *h, unsigned from, unsigned to, void *const *items,
				unsigned n)
{
	unsigned done = rte_ring_sp_enqueue_burst(hop_ring(h, from, to), items, n, NULL);

	if (done)
		wake_up(&h->wake[to]);
	return done;
}

/* Takes up to n items that `from` pushed to `to`. Caller: thread `to`. */
static inline unsigned hop_pop(const struct hop *h, unsigned from, unsigned to, void **items,
			       unsigned n)
{
	return rte_ring_sc_dequeue_burst(hop_ring(h, from, to), items, n, NULL);
}

/* True when `from` has pushed nothing that `to` has not taken. Caller: thread `to`. As
 * rte_ring_empty(), but an atomic read, ordered behind wake_park(). */
static inline bool hop_empty(const struct hop *h, unsigned from, unsigned to)
{
	const struct rte_ring *r = hop_ring(h, from, to);

	return __atomic_load_n(&r->prod.tail, __ATOMIC_SEQ_CST) == r->cons.tail;
}

/* True when nothing waits for user `to`. */
static inline bool hop_idle(const struct hop *h, unsigned to)
{
	for (unsigned from = 0; from < h->users; from++)
		if (!hop_empty(h, from, to))
			return false;
	return true;
}

#endif
