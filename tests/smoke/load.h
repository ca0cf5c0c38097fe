/* SPDX-License-Identifier: BSD-3-Clause */
/* The load program: clients in processes of their own, and what they share. load.c is the parent,
 * load_client.c a client, load_report.c adds up.
 */
#ifndef SPL_T_SMOKE_LOAD_H
#define SPL_T_SMOKE_LOAD_H

#include <spotlane/client.h>
#include <stdatomic.h>

#define LOAD_CLIENTS_MAX 32
#define LOAD_BUCKETS	 (64 * 16) /* of a histogram: 16 for each power of two of microseconds */

struct load_options {
	const char *address, *mesh, *type;
	const char *plant; /* creation request of room-0: it spoils one message; NULL = none */
	uint16_t udp_base;
	uint32_t clients, spots, seconds; /* seconds 0: until a signal */
	uint32_t window;		  /* calls that a client has under way */
	uint32_t request_percent, bytes;
	uint64_t seed;
	bool is_survivor; /* errors are counted, and Spots that are gone are created again */
	bool no_roll;	  /* rooms may have been made anew: what they heard says nothing */
};

/* Of one client; it alone writes, the parent reads. */
struct load_counts {
	_Atomic uint64_t sends, requests; /* begun */
	_Atomic uint64_t replies;	  /* requests that ended with their own reply */
	_Atomic uint64_t errors;	  /* calls that ended with an error kind */
	_Atomic uint64_t by_kind[SPL_ERROR_COUNT];
	_Atomic uint64_t open;	  /* calls that have not ended */
	_Atomic uint64_t twice;	  /* callbacks that ran again */
	_Atomic uint64_t wrong;	  /* replies to another request */
	_Atomic uint64_t swapped; /* replies of one Spot out of their order */
	_Atomic uint64_t created, existing;
	_Atomic uint64_t retransmitted, connects, losses;
	/* from the rolls of the rooms that this client asked */
	_Atomic uint64_t heard, lost, duplicated, reordered;
	_Atomic uint64_t latency[LOAD_BUCKETS];
	_Atomic uint32_t phase; /* enum load_phase that it has reached */
	_Atomic uint32_t failed;
};

enum load_phase { LOAD_STARTING, LOAD_CREATED, LOAD_DRAINED, LOAD_DONE };

struct load_shared {
	struct load_options o;
	_Atomic uint32_t may; /* enum load_phase up to which clients may go on */
	_Atomic uint32_t stop;
	uint64_t sender[LOAD_CLIENTS_MAX]; /* numbers by which rooms know the clients */
	struct load_counts count[LOAD_CLIENTS_MAX];
	_Atomic uint64_t accepted[]; /* [client * spots + spot]: sends taken, requests replied to */
};

/* The life of client `me`; returns its exit status. */
int load_client(struct load_shared *s, uint32_t me);

/* Adds up all clients. */
struct load_total {
	uint64_t sent, delivered, replies, lost, duplicated, reordered, retransmitted, errors, open;
	uint64_t p50_us, p99_us, connects, losses, created, existing, requests;
	uint64_t by_kind[SPL_ERROR_COUNT];
	uint32_t failed;
};
void load_add_up(const struct load_shared *s, struct load_total *t);
void load_show(const struct load_shared *s, const struct load_total *t);

void load_latency(struct load_counts *c, uint64_t ns);

#endif
