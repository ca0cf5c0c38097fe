/* SPDX-License-Identifier: BSD-3-Clause */
/* See ends.h. */
#include "control/host/ends.h"

#include <string.h>

void host_ends_keep(struct host_ends *e, uint64_t sequence, json_t *status)
{
	if (e->n == HOST_ENDS_MAX) {
		e->lost_at[e->lost++ % HOST_ENDS_LOST_MAX] = e->kept[0].sequence;
		json_decref(e->kept[0].status);
		memmove(e->kept, e->kept + 1, (HOST_ENDS_MAX - 1) * sizeof(e->kept[0]));
		e->n--;
	}
	e->kept[e->n].sequence = sequence;
	e->kept[e->n++].status = status;
}

static uint64_t lost_behind(const struct host_ends *e, uint64_t after)
{
	uint64_t room = e->lost < HOST_ENDS_LOST_MAX ? e->lost : HOST_ENDS_LOST_MAX, n = 0;

	while (n < room && e->lost_at[(e->lost - 1 - n) % HOST_ENDS_LOST_MAX] > after)
		n++;
	return n == HOST_ENDS_LOST_MAX ? e->lost : n;
}

struct host_next host_ends_next(const struct host_ends *e, uint64_t after, uint64_t newest)
{
	struct host_next next = {.sequence = newest, .discarded_terminal = lost_behind(e, after)};
	uint64_t passed;

	for (unsigned i = 0; i < e->n && !next.end; i++) {
		if (e->kept[i].sequence > after) {
			next.end = e->kept[i].status;
			next.sequence = e->kept[i].sequence;
		}
	}
	passed = next.sequence > after ? next.sequence - after - 1 : 0;
	next.coalesced = passed > next.discarded_terminal ? passed - next.discarded_terminal : 0;
	return next;
}

void host_ends_free(struct host_ends *e)
{
	for (unsigned i = 0; i < e->n; i++)
		json_decref(e->kept[i].status);
	e->n = 0;
}
