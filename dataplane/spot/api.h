/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the files of the stage interface share. Inside the room only, inside a callback.
 */
#ifndef SPL_DATAPLANE_SPOT_API_H
#define SPL_DATAPLANE_SPOT_API_H

#include "dataplane/spot/lane.h"

/* 0, -EINVAL or -EMSGSIZE. */
int spot_check_payload(const struct spot_lane *l, uint16_t content, const void *payload,
		       uint32_t bytes);

/* A send of this turn for this lane, its payload copied; NULL without memory. */
struct spot_rec *spot_own_record(struct spot_lane *l, uint64_t packet, uint16_t content,
				 const void *payload, uint32_t bytes);

/* A message of this turn for another lane; what spot_env.send() says. */
int spot_send_out(struct spot_lane *l, uint8_t kind, const struct spl_target *target,
		  uint64_t packet, uint16_t content, const void *payload, uint32_t bytes,
		  uint64_t correlation, uint64_t deadline);

#endif
