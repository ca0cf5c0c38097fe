/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the stage interface of timers. As api.c: on the lane, inside a callback. */
#include "dataplane/spot/api.h"
#include "dataplane/spot/timer.h"

#include "common/ids.h"

#include <errno.h>

static bool options_valid(const struct spl_timer_options *o)
{
	return (o->overrun == SPL_OVERRUN_SKIP || o->overrun == SPL_OVERRUN_DELAY ||
		o->overrun == SPL_OVERRUN_CATCH_UP) &&
	       (o->overrun != SPL_OVERRUN_CATCH_UP || o->catch_up_max >= 1);
}

int spl_timer_start(struct spl_turn *turn, const void *name, size_t len, int64_t period_ns,
		    spl_timer_fn fn, const struct spl_timer_options *options,
		    struct spl_timer *timer)
{
	static const struct spl_timer_options usual;
	const struct spl_timer_options *o = options ? options : &usual;
	struct spot_lane *l = spot_lane_of(turn);
	struct spot_rec *r;

	if (!l || !fn || period_ns <= 0 || !spl_name_valid(name, len) || !options_valid(o))
		return -EINVAL;
	if (l->turn.spot->gate.state >= SPOT_S_CLOSING)
		return -ESHUTDOWN;
	r = spot_timer_make(l, l->turn.spot, name, len);
	if (!r)
		return -ENOBUFS;
	r->tick_fn = fn;
	r->tick.period_ns = (uint64_t)period_ns;
	r->overrun = (uint8_t)o->overrun;
	r->catch_up_max = o->overrun == SPL_OVERRUN_CATCH_UP ? (uint32_t)o->catch_up_max : 1;
	if (o->one_shot)
		r->timer |= TIMER_F_ONE_SHOT;
	if (o->stop_on_failure)
		r->timer |= TIMER_F_STOPS;
	spot_timer_arm(l, r);
	if (timer)
		timer->id = spot_timer_id(l, r);
	return 0;
}

int spl_timer_cancel(struct spl_turn *turn, struct spl_timer timer)
{
	struct spot_lane *l = spot_lane_of(turn);
	struct spot_rec *r;

	if (!l)
		return -EINVAL;
	r = spot_timer_find(l, timer.id);
	if (!r || r->timer & TIMER_F_DISPOSED)
		return 0;
	if (spot_at(l, r->spot) != l->turn.spot)
		return -EINVAL;
	spot_timer_dispose(l, r);
	return 0;
}

bool spl_timer_is_disposed(struct spl_turn *turn, struct spl_timer timer)
{
	struct spot_lane *l = spot_lane_of(turn);
	const struct spot_rec *r = l ? spot_timer_find(l, timer.id) : NULL;

	return !r || r->timer & TIMER_F_DISPOSED || spot_at(l, r->spot) != l->turn.spot;
}
