/* SPDX-License-Identifier: BSD-3-Clause */
/* How much credit a node may grant to its peers: the application HWM of the node (S-LIM-10), of
 * which its memory must have every byte. Control computes it to check a configuration, the agent to
 * share it out; both must come to the same. Pure; any thread; nothing can fail.
 */
#ifndef SPL_COMMON_CREDIT_H
#define SPL_COMMON_CREDIT_H

#include "common/wire.h"

#include <stdint.h>

#define CREDIT_MIN	 16384u	    /* least credit of a flow's application class */
#define CREDIT_INFRA_MIN 8192u	    /* and of the other one */
#define CREDIT_MAX	 (4u << 20) /* most of one flow, unless a message is larger */

struct credit_bounds {
	uint64_t asked;	      /* limits.credit_pool_bytes, or what packet buffers hold */
	uint64_t records;     /* of a lane */
	uint64_t lane_memory; /* bytes */
	uint32_t message_max; /* payload bytes */
	uint32_t flow_min;    /* least credit of a flow: CREDIT_MIN */
};

/* All that is granted may end up waiting in one lane: no more is granted than seven eighths of its
 * records (a message costs at least wire_charge(0)) and three quarters of its memory can hold. */
static inline uint64_t credit_pool(const struct credit_bounds *b)
{
	uint64_t records = b->records / 8 * 7 * wire_charge(0), pool = b->asked;

	if (pool > records)
		pool = records;
	if (pool > b->lane_memory / 4 * 3)
		pool = b->lane_memory / 4 * 3;
	return pool;
}

/* An eighth of a pool serves infrastructure only. Whole units of cost, so that a pool from which no
 * message can be granted any more has nothing left. */
static inline uint64_t credit_infra(uint64_t pool)
{
	return pool / 8 / wire_charge(0) * wire_charge(0);
}

static inline uint64_t credit_app(uint64_t pool)
{
	return (pool - pool / 8) / wire_charge(0) * wire_charge(0);
}

/* How many flows may have their least at once, besides one largest message, which always finds its
 * credit once others have given back what is above their least. */
static inline uint64_t credit_flows(const struct credit_bounds *b)
{
	uint64_t pool = credit_pool(b), app = credit_app(pool);
	uint64_t one = wire_charge(wire_message_bytes(b->message_max));
	uint64_t flows = app > one ? (app - one) / b->flow_min : 0;
	uint64_t infra = credit_infra(pool) / CREDIT_INFRA_MIN;

	return flows < infra ? flows : infra;
}

/* The smallest pool for `flows` of them. */
static inline uint64_t credit_least(const struct credit_bounds *b, uint64_t flows)
{
	uint64_t app = wire_charge(wire_message_bytes(b->message_max)) + flows * b->flow_min;
	uint64_t infra = flows * CREDIT_INFRA_MIN, unit = wire_charge(0);
	uint64_t pool = (app / unit + 1) * unit / 7 * 8 + 8 * unit;

	return pool / 8 < infra + unit ? (infra + unit) * 8 : pool;
}

#endif
