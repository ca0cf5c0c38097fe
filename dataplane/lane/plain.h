/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the message that nearly all are, told apart in a few comparisons: a send or request
 * of the application class without metadata, whose header is as wire_msg_get() wants it. Used by
 * rx.c for the frame with one message and by input.c for all others; a message that is not plain,
 * sound or not, is looked at there. Called on the lane.
 */
#ifndef SPL_LANE_PLAIN_H
#define SPL_LANE_PLAIN_H

#include "dataplane/lane/lane.h"

#include "common/wire_msg.h"

/* Fills `r` from the message at `d` of `len` >= WIRE_MSG_BYTES bytes but for buf and charge; false
 * when it is not plain: then `r` is as it was. */
static inline bool plain_record(const struct lane *l, const struct lane_flow *f, const uint8_t *d,
				uint32_t len, struct spot_rec *r)
{
	uint64_t first, correlation, packet, bad;
	uint32_t budget;
	uint8_t kind;

	first = wire_load_u64(d); /* kind, flags, content, metadata length, error, zero */
	packet = wire_load_u64(d + 32);
	correlation = wire_load_u64(d + WIRE_MSG_CORRELATION);
	kind = (uint8_t)(first >> 56);
	bad = (first & 0x00ff0000ffffffffull) ^ (uint64_t)SPL_OK << 8;
	bad |= wire_load_u32(d + 12);
	bad |= kind ^ (correlation ? SPL_MSG_SPOT_REQUEST : SPL_MSG_SPOT_SEND);
	if (bad || packet == 0)
		return false;
	budget = wire_load_u32(d + WIRE_MSG_BUDGET);
	r->msg.payload = d + WIRE_MSG_BYTES;
	r->msg.payload_bytes = len - WIRE_MSG_BYTES;
	r->packet = packet;
	r->deadline = budget ? l->now + spot_from_us(&l->clock, budget) : 0;
	r->flow = f->ref;
	r->msg.metadata = NULL;
	r->msg.metadata_bytes = 0;
	r->msg.content = (uint16_t)(first >> 32);
	r->kind = kind;
	r->origin = SPOT_FROM_LINK;
	r->msg.correlation = correlation;
	r->msg.source = f->lifecycle;
	r->key = (const struct spl_key *)(d + 16);
	return true;
}

#endif
