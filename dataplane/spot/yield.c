/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns that wait without the gate of their Spot (S-YIELD-3..9).
 *
 * The record of a turn that has yielded keeps what it has reserved in its queue, hangs in a list of
 * its Spot while its call is open, and then is its own resume record: no room has to be found for
 * it. In a queue its `next` takes the place of `waited`, so that call stands first among the calls
 * of its turn.
 */
#include "dataplane/spot/queue.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/yield.h"

static void list_add(struct spot_lane *l, struct spot_cold *cold, struct spot_rec *r)
{
	uint32_t i = spot_rec_index(l, r);

	r->yield_prev = 0;
	r->yield_next = cold->yielded;
	if (cold->yielded)
		l->recs[cold->yielded].yield_prev = i;
	cold->yielded = i;
}

static void list_del(struct spot_lane *l, struct spot_cold *cold, const struct spot_rec *r)
{
	if (r->yield_prev)
		l->recs[r->yield_prev].yield_next = r->yield_next;
	else
		cold->yielded = r->yield_next;
	if (r->yield_next)
		l->recs[r->yield_next].yield_prev = r->yield_prev;
}

void spot_yield(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	spot_turn_waits(l, s, r, 1);
	r->flags |= REC_F_YIELDED;
	list_add(l, spot_cold_of(s), r);
	if (l->calls[r->waited].state == CALL_ENDED)
		spot_yield_over(l, s, r);
}

/* Among the calls of its turn, at most SPOT_TURN_CALLS. */
static void call_first(struct spot_lane *l, struct spot_rec *r, uint32_t call)
{
	uint32_t *at = &r->calls;

	while (*at != call)
		at = &l->calls[*at].next;
	*at = l->calls[call].next;
	l->calls[call].next = r->calls;
	r->calls = call;
}

void spot_yield_over(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	list_del(l, spot_cold_of(s), r);
	call_first(l, r, r->waited);
	r->flags ^= REC_F_YIELDED | REC_F_RESUME;
	s->gate.flags |= SPOT_F_ODD;
	if (r->flags & REC_F_OWN)
		spot_own_append(l, s, r);
	else
		spot_app_append(l, s, r);
}

void spot_yield_take(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	r->waited = r->calls;
	r->flags &= (uint8_t)~REC_F_RESUME;
	spot_turn_waits(l, s, r, -1);
	if (r->flags & REC_F_OWN)
		return;
	r->epoch = ++l->epoch;
	for (uint32_t i = r->calls; i; i = l->calls[i].next)
		l->calls[i].epoch = r->epoch;
}

bool spot_yield_force(struct spot_lane *l, struct spot *s, uint8_t kind)
{
	const struct spot_rec *r = &l->recs[spot_cold_of(s)->yielded];

	if (!spot_cold_of(s)->yielded)
		return false;
	spot_call_end_unanswered(l, &l->calls[r->waited], kind);
	return true;
}
