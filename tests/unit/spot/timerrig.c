/* SPDX-License-Identifier: BSD-3-Clause */
/* See timerrig.h. */
#include "tests/unit/spot/timerrig.h"

#include <errno.h>

#define f test_rig

struct timer_start timer_start;
struct tick_got tick_got[64];
unsigned ticks_got;

int tick_note(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	struct test_state *s = state;

	CU_ASSERT_EQUAL(s->inside++, 0);
	CU_ASSERT_FATAL(ticks_got < T_COUNT(tick_got));
	tick_got[ticks_got].tick = *tick;
	memcpy(tick_got[ticks_got].name, tick->name->b,
	       tick->name->len < 15 ? tick->name->len : 15);
	ticks_got++;
	fake_log("tick");
	CU_ASSERT_EQUAL(spl_reply(turn, SPL_CONTENT_RAW, "x", 1), -EINVAL);
	s->inside--;
	return SPL_DONE;
}

spl_timer_fn timer_callback = tick_note;

int timer_start_it(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	timer_start.rc = spl_timer_start(turn, timer_start.name, strlen(timer_start.name),
					 timer_start.period, timer_callback, &timer_start.options,
					 &timer_start.timer);
	return SPL_DONE;
}

void timer_begin(const struct spl_stage *stage)
{
	test_start(1);
	memset(&timer_start, 0, sizeof(timer_start));
	memset(tick_got, 0, sizeof(tick_got));
	ticks_got = 0;
	timer_callback = tick_note;
	test_stage_probe = timer_start_it;
	fake_create(&f, "a", fake_stage(stage));
	fake_log_clear();
}

void timer_start_named(const char *name, int64_t period, struct spl_timer_options options)
{
	timer_start.name = name;
	timer_start.period = period;
	timer_start.options = options;
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
}

/* In steps, each with its passes, so that no tick is late by more than the wheel. */
void timer_live(uint64_t ms)
{
	while (ms-- > 0) {
		fake_advance(&f, MS);
		fake_run(&f);
	}
}

void tick_check(unsigned i, uint64_t delivery, uint64_t scheduled, uint64_t skipped)
{
	CU_ASSERT_FATAL(i < ticks_got);
	CU_ASSERT_EQUAL(tick_got[i].tick.delivery_index, delivery);
	CU_ASSERT_EQUAL(tick_got[i].tick.scheduled_index, scheduled);
	CU_ASSERT_EQUAL(tick_got[i].tick.skipped, skipped);
}

void timer_probe(const char *id, int (*fn)(struct spl_turn *, void *, const struct spl_message *))
{
	test_stage_probe = fn;
	fake_send(&f, id, "probe", "");
	fake_run(&f);
	test_stage_probe = timer_start_it;
}
