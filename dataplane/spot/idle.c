/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see idle.h. */
#include "dataplane/spot/idle.h"

#define IDLE_LOOK  64u	       /* Spots of one look (S-IDLE-4) */
#define IDLE_MARK  0x80000000u /* in a queue's tail, where no record has such a number */

#define IDLE_ASKED 0x40000000u /* beside it: a close was asked for then */
#define IDLE_MS	   0x3fffffffu

bool spot_is_idle(const struct spot_lane *l, struct spot *s)
{
	const uint8_t busy = SPOT_F_READY | SPOT_F_RESUME | SPOT_F_LIFE | SPOT_F_ARMED |
			     SPOT_F_FORCED | SPOT_F_HELD;
	const struct spot_cold *cold = spot_cold_of(s);

	return s->gate.state == SPOT_S_READY && !(s->gate.flags & busy) && s->app.count == 0 &&
	       s->app.head == 0 && cold->yielded == 0 && cold->timers == 0;
}

bool spot_is_idle_since(const struct spot_lane *l, struct spot *s)
{
	return spot_is_idle(l, s) && s->app.tail & IDLE_MARK && s->app.tail & IDLE_ASKED;
}

static bool is_watched(const struct spot_lane *l, const struct spot *s)
{
	return l->conf.idle_ms && spot_stage_of(l, s)->desc->kind == SPL_KIND_INSTANCE;
}

static uint32_t looks_of_a_round(const struct spot_lane *l)
{
	return (l->instances + IDLE_LOOK - 1) / IDLE_LOOK;
}

/* Until the next look: all are seen four times in the idle time, if a millisecond allows it. */
static uint64_t gap(const struct spot_lane *l)
{
	uint64_t us = l->conf.idle_ms * UINT64_C(1000) / (4 * looks_of_a_round(l));

	return spot_from_us(&l->clock, us < 1000 ? 1000 : us);
}

void spot_idle_add(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);
	uint32_t i = spot_index(l, s);

	if (!is_watched(l, s))
		return;
	cold->idle_prev = 0;
	cold->idle_next = l->idle_head;
	if (l->idle_head)
		spot_cold_of(spot_at(l, l->idle_head))->idle_prev = i;
	l->idle_head = i;
	if (l->instances++ == 0)
		l->idle_due = l->now;
}

void spot_idle_del(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);

	if (!is_watched(l, s))
		return;
	if (cold->idle_prev)
		spot_cold_of(spot_at(l, cold->idle_prev))->idle_next = cold->idle_next;
	else
		l->idle_head = cold->idle_next;
	if (cold->idle_next)
		spot_cold_of(spot_at(l, cold->idle_next))->idle_prev = cold->idle_prev;
	if (l->idle_at == spot_index(l, s))
		l->idle_at = cold->idle_next;
	if (--l->instances == 0)
		l->idle_due = UINT64_MAX;
}

/* The authority decides; until it has closed it the Spot serves, and it is asked again if nothing
 * comes of it. */
static void look_at(struct spot_lane *l, struct spot *s, uint32_t ms)
{
	const struct spot_cold *cold = spot_cold_of(s);
	uint32_t idle = (ms - s->app.tail) & IDLE_MS;

	if (!spot_is_idle(l, s))
		return;
	if (!(s->app.tail & IDLE_MARK))
		s->app.tail = IDLE_MARK | ms;
	else if (idle >= l->conf.idle_ms &&
		 l->env.close_wanted(l->env.host, &s->key, spot_name_of(cold),
				     cold->object_generation, SPL_CLOSING_IDLE_EVICTED) == 0)
		s->app.tail = IDLE_MARK | IDLE_ASKED | ms;
}

void spot_idle_look(struct spot_lane *l, uint64_t now)
{
	uint32_t ms = (uint32_t)(spot_to_ns(&l->clock, now) / 1000000u) & IDLE_MS;
	uint32_t n = l->instances < IDLE_LOOK ? l->instances : IDLE_LOOK;

	l->idle_due = now + gap(l);
	if (l->sealed)
		return; /* all of them are about to be closed */
	for (; n > 0; n--) {
		struct spot *s = spot_at(l, l->idle_at ? l->idle_at : l->idle_head);

		l->idle_at = spot_cold_of(s)->idle_next;
		look_at(l, s, ms);
	}
}
