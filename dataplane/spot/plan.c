/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the agent's arithmetic, ahead of a lane that must never meet an unbacked page.
 *
 * The lane cuts chunks for a size class only when all objects of the class are in use, and has at
 * most as many in use as the plan counts, because the plan counts a Spot from before its prepare
 * command to after the answer that it is gone. So chunks by peak of each class bound the front of
 * OBJECTS, and the peak of all Spots bounds the buckets of TABLE.
 */
#include "dataplane/spot/object.h"
#include "dataplane/spot/slab.h"
#include "dataplane/spot/spot.h"
#include "dataplane/spot/table.h"

#include <errno.h>

_Static_assert(SLAB_CLASSES == sizeof(((struct spot_plan *)0)->peak) / sizeof(uint32_t),
	       "the plan has every class");

void spot_plan_init(struct spot_plan *plan, const struct spot_conf *conf)
{
	memset(plan, 0, sizeof(*plan));
	plan->spots_max = conf->spots_max;
	plan->object_limit = conf->object_bytes;
	plan->bytes[SPOT_MEM_TABLE] = (uint64_t)table_buckets(0) * sizeof(struct table_bucket);
}

static uint64_t chunks(uint32_t objects, unsigned c)
{
	uint32_t per = slab_chunk_objects(c);

	return (objects + (uint64_t)per - 1) / per;
}

int spot_plan_add(struct spot_plan *plan, const struct spot_stage *stage, uint8_t id_len)
{
	unsigned c = slab_class_of(spot_object_bytes(stage, id_len));
	uint64_t objects = plan->bytes[SPOT_MEM_OBJECTS], table;
	uint32_t live = plan->live[c] + 1;

	if (plan->spots >= plan->spots_max)
		return -ENOSPC;
	if (live > plan->peak[c])
		objects += (chunks(live, c) - chunks(plan->peak[c], c)) * slab_chunk_bytes(c);
	if (objects > plan->object_limit)
		return -ENOSPC;
	plan->live[c] = live;
	if (live > plan->peak[c])
		plan->peak[c] = live;
	plan->bytes[SPOT_MEM_OBJECTS] = objects;
	plan->spots++;
	table = (uint64_t)table_buckets(plan->spots) * sizeof(struct table_bucket);
	if (table > plan->bytes[SPOT_MEM_TABLE])
		plan->bytes[SPOT_MEM_TABLE] = table;
	return 0;
}

void spot_plan_remove(struct spot_plan *plan, const struct spot_stage *stage, uint8_t id_len)
{
	plan->live[slab_class_of(spot_object_bytes(stage, id_len))]--;
	plan->spots--;
}
