/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: builds a stage's handler table, once, on the main thread. */
#include "dataplane/spot/stage_table.h"

#include "common/ids.h"

#include <errno.h>

uint32_t spot_stage_slots(const struct spl_stage *desc)
{
	uint32_t n = 4;

	while (n < 2 * desc->handler_count)
		n *= 2;
	return n;
}

static int add(struct spot_stage *stage, struct spot_handler *slots, const struct spl_handler *h)
{
	size_t len = strlen(h->packet);
	uint64_t key;

	if (!spl_name_valid(h->packet, len))
		return -EINVAL;
	key = spl_packet_key(h->packet, len);
	for (uint32_t i = 0;; i++) {
		struct spot_handler *slot = &slots[((uint32_t)(key >> 32) + i) & stage->mask];

		if (slot->packet == key)
			return -EEXIST;
		if (slot->packet)
			continue;
		slot->packet = key;
		slot->handler = h;
		if (i + 1 > stage->probes)
			stage->probes = i + 1;
		return 0;
	}
}

int spot_stage_build(struct spot_stage *stage, const struct spl_stage *desc,
		     struct spot_handler *slots, uint16_t index, uint32_t *which)
{
	uint32_t n = spot_stage_slots(desc);

	memset(stage, 0, sizeof(*stage));
	memset(slots, 0, n * sizeof(*slots));
	stage->desc = desc;
	stage->slots = slots;
	stage->mask = n - 1;
	stage->probes = 1;
	stage->state_bytes = (desc->state_bytes + 15) & ~15u;
	stage->queue_count = desc->queue_count;
	stage->queue_bytes = desc->queue_bytes;
	stage->index = index;
	stage->may_yield = desc->kind == SPL_KIND_INSTANCE ||
			   (desc->kind == SPL_KIND_USER && desc->mode == SPL_MODE_SPOT_WIDE);
	stage->own_timers = desc->kind == SPL_KIND_USER && desc->mode == SPL_MODE_PER_ACTOR;
	for (uint32_t i = 0; i < desc->handler_count; i++) {
		int rc = add(stage, slots, &desc->handlers[i]);

		if (rc) {
			*which = i;
			return rc;
		}
	}
	return 0;
}
