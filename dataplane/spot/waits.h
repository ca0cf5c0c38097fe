/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the table of activate.h as a lane holds it. Inside the room only. */
#ifndef SPL_DATAPLANE_SPOT_WAITS_H
#define SPL_DATAPLANE_SPOT_WAITS_H

#include <spotlane/ids.h>
#include <spotlane/limits.h>

#define SPOT_WAIT_BUCKETS 256u

/* An id whose Instance Spot of a type is being started, and the messages that wait for it. */
struct spot_wait {
	struct spl_key key;
	uint64_t serial;
	uint32_t head, tail, count, bytes;
	uint32_t next;	 /* of its bucket; free list */
	uint64_t *stats; /* [SPL_S_COUNT] of its type */
	struct spl_name type;
};

struct spot_waits {
	uint64_t serial;
	uint32_t free, used;
	uint32_t bucket[SPOT_WAIT_BUCKETS];
	struct spot_wait w[SPL_ACTIVATIONS_MAX + 1]; /* w[0] is not used */
};

#endif
