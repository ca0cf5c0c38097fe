/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbours of one port: IPv4 next hop -> MAC, with probes, ageing and a few waiting frames.
 *
 * Pure: time is passed in (nanoseconds of any monotonic clock), probes and frames leave through
 * neigh_ops. One writer: every function here is the agent's. neigh_get() (neigh_get.h) is for
 * lanes, any number at once, without lock, in at most NEIGH_WINDOW steps.
 *
 * Publication. An address may live only in the NEIGH_WINDOW slots from its keyed hash on, and never
 * moves while it lives. Each slot is a sequence counter, the address and the MAC: the writer makes
 * the counter odd, stores address and MAC with release, and makes it even with release; a reader
 * that sees the counter odd or changed treats the address as unresolved, and hands the frame to the
 * agent, which is always right. A published address is thus never paired with another's MAC.
 *
 * States: INCOMPLETE (asked, no answer yet) -> REACHABLE (published) -> PROBE (published, asking
 * again) -> REACHABLE, or FAILED (not published). A configured neighbour is kept and asked for
 * ever, with growing pauses; another one is forgotten when nobody used it for `idle_ns`, and after
 * FAILED.
 */
#ifndef SPL_FRAME_NEIGH_H
#define SPL_FRAME_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#define NEIGH_WINDOW	  16u
#define NEIGH_PENDING_MAX 3u	 /* frames that wait for one neighbour */
#define NEIGH_CAP_MAX	  32768u /* neighbours of one port */

struct neigh;	  /* the agent's */
struct neigh_pub; /* what lanes read; lives as long as its neigh */

/* Nanoseconds and counts; NEIGH_TIMES_DEFAULT below. */
struct neigh_times {
	uint64_t probe_ns;	 /* pause between two probes */
	uint64_t backoff_max_ns; /* longest pause between rounds of a failed neighbour */
	uint64_t reachable_ns;	 /* how long an answer is believed */
	uint64_t idle_ns;	 /* an unused neighbour is forgotten after it; >= reachable_ns */
	unsigned probes;	 /* unanswered probes until FAILED; >= 1 */
};
#define NEIGH_TIMES_DEFAULT \
	{ \
		1000000000ull, 8000000000ull, 30000000000ull, 300000000000ull, 3 \
	}

struct neigh_ops {
	void *ctx;
	/* Send an ARP request for ip; mac NULL: broadcast, else to that MAC. May not call back. */
	void (*probe)(void *ctx, uint32_t ip, const uint8_t *mac);
	/* Takes a frame that neigh_send() took: send it to mac, or with mac NULL drop it. */
	void (*frame)(void *ctx, void *frame, const uint8_t *mac);
};

/* What is counted; monotonic, but entries is a gauge. Agent only. */
struct neigh_counts {
	uint64_t entries, probes, learned, moved, failed, evicted, full, pending_dropped;
};

/* A table of at most `capacity` (1..NEIGH_CAP_MAX) neighbours. secret keys the hash: random, never
 * shown. Copies times and ops. Returns NULL and errno EINVAL or ENOMEM. */
struct neigh *neigh_create(unsigned capacity, const struct neigh_times *times,
			   const struct neigh_ops *ops, uint64_t secret)
	__attribute__((warn_unused_result));

/* Gives every waiting frame to ops->frame (dropped), then frees. No lane may still read. NULL ok.
 */
void neigh_destroy(struct neigh *n);

const struct neigh_pub *neigh_published(const struct neigh *n);
const struct neigh_counts *neigh_counters(const struct neigh *n);

/* Keeps ip for ever and starts asking for it. -ENOSPC: its window is full of configured ones. */
int neigh_keep(struct neigh *n, uint32_t ip, uint64_t now) __attribute__((warn_unused_result));

/* Makes ip an ordinary neighbour again, forgotten when unused. Unknown: nothing happens. */
void neigh_unkeep(struct neigh *n, uint32_t ip, uint64_t now);

/* Takes frame, whatever happens: sent at once, kept until an answer, or dropped (neighbour failed
 * recently, table full, oldest of more than NEIGH_PENDING_MAX). ip is a next hop, not a target. */
void neigh_send(struct neigh *n, uint32_t ip, void *frame, uint64_t now);

/* An ARP packet said that ip is at mac. may_create: also when ip is not in the table (it asked for
 * us). Sends what waited. */
void neigh_learn(struct neigh *n, uint32_t ip, const uint8_t mac[6], bool may_create, uint64_t now);

/* Does all that is due. Returns when to call again, UINT64_MAX for never. Time that stands still or
 * goes back does nothing. Bounded: one pass over the capacity. */
uint64_t neigh_tick(struct neigh *n, uint64_t now);

#endif
