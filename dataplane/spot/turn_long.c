/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: turns that took long: the longest of all, and each that overran, by name. Called with
 * the reading of the clock that ends a turn, when its record and Spot may be at their end already:
 * both are still as they were, but what they pointed to in lane memory is not.
 */
#include "dataplane/spot/turn.h"

const char spot_turn_timer[] = "timer";

static const char *what_of(const struct spot_turn *turn)
{
	if (turn->what)
		return turn->what;
	if (turn->rec->origin == SPOT_FROM_CAST)
		return turn->rec->cast->msg.packet;
	return turn->rec->msg.packet;
}

static void tell(struct spot_lane *l, const struct spot_stage *stage, const char *what,
		 uint64_t took)
{
	struct spot_overrun o = {
		.stage = stage, .name = what, .name_bytes = (uint32_t)strlen(what), .cycles = took};

	if (what == spot_turn_timer) {
		o.is_timer = true;
		o.name = l->turn.timer;
		o.name_bytes = l->turn.timer_len;
	}
	spot_count(l, SPL_C_TURNS_OVERRUN, 1);
	l->env.overran(l->env.host, &o);
}

void spot_turn_long(struct spot_lane *l, uint64_t took)
{
	const struct spot_turn *turn = &l->turn;
	const struct spot_stage *stage = turn->what ? turn->stage : spot_stage_of(l, turn->spot);
	const char *what = what_of(turn);

	if (took > l->longest) {
		l->longest = took;
		l->longest_type = stage->desc->type;
		l->longest_what = what;
		__atomic_store_n(&l->counters[SPL_C_TURN_CYCLES_MAX], took, __ATOMIC_RELAXED);
	}
	if (took > l->overrun)
		tell(l, stage, what, took);
	l->long_from = l->longest < l->overrun ? l->longest : l->overrun;
}
