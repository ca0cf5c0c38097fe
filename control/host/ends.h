/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal statuses of a source, for observers that have not seen them yet (S-OBS-2). Pure:
 * no loop, no clock; one thread. An observer is known by the number of the last status it has, so
 * that one that is slow costs nothing here.
 *
 * The newest HOST_ENDS_MAX are kept, the oldest is dropped first. Of those dropped the newest
 * HOST_ENDS_LOST_MAX numbers are remembered: an observer that is behind all of these is told of
 * every one there was.
 */
#ifndef SPL_CONTROL_HOST_ENDS_H
#define SPL_CONTROL_HOST_ENDS_H

#include <jansson.h>
#include <stdint.h>

#define HOST_ENDS_MAX	   8
#define HOST_ENDS_LOST_MAX 64

struct host_ends {
	struct {
		uint64_t sequence;
		json_t *status;
	} kept[HOST_ENDS_MAX]; /* oldest first */
	unsigned n;
	uint64_t lost; /* ever; their numbers, by order modulo the room */
	uint64_t lost_at[HOST_ENDS_LOST_MAX];
};

/* What an observer gets next. */
struct host_next {
	json_t *end;		     /* NULL: the newest status */
	uint64_t sequence;	     /* of it */
	uint64_t coalesced;	     /* statuses that it will never get, and were no ends */
	uint64_t discarded_terminal; /* and ends */
};

/* `status` of number `sequence`, larger than all before, is an end; takes the reference. */
void host_ends_keep(struct host_ends *e, uint64_t sequence, json_t *status);

/* For whoever has `after`, when `newest` is the number of the newest status: the oldest end behind
 * it that is kept, or the newest status. */
struct host_next host_ends_next(const struct host_ends *e, uint64_t after, uint64_t newest);

void host_ends_free(struct host_ends *e);

#endif
