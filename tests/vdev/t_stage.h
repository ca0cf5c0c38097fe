/* SPDX-License-Identifier: BSD-3-Clause */
/* A stage for tests of the real loop: packets that count, answer, hold and ask others. */
#ifndef SPL_T_STAGE_H
#define SPL_T_STAGE_H

#include <spotlane/stage.h>

/* State of a Spot of the stage "t". */
struct t_stage_state {
	uint64_t count, sum;	     /* of `add` */
	uint64_t last, order_errors; /* of `seq`: payload is a u64 that must follow the last one */
	uint64_t running, running_max; /* callbacks at once */
	struct spl_target other;
};

/* What `get` answers. */
struct t_stage_report {
	uint64_t count, sum, last, order_errors, running_max;
};

/* What `look` answers: the fields of the message, and its first metadata entry. */
struct t_stage_look {
	uint64_t correlation, source;
	uint32_t payload_bytes, metadata_bytes, key_bytes, value_bytes;
	uint16_t content;
	bool is_request, packet_is_look;
	char key[4], value[4];
};

/* Packets: `add` (u64; send or request: the new sum), `seq` (u64, send), `get` (request), `echo`
 * (request: the payload), `ask` (request; payload is an id: asks that Spot for `get` under HOLD and
 * passes the answer on), `fail` (answers Rejected), `silent` (request without an answer), `big`
 * (request; u32: answers with that many bytes), `tell` (send; payload is an id: sends that Spot
 * `add` 1 and does not wait), `look` (request: what the handler was given). */
extern const struct spl_stage t_stage;

#endif
