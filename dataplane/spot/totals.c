/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see totals.h. */
#include "dataplane/spot/totals.h"

#include <spotlane/stats.h>

struct spot_kind *spot_kind_get(struct spot_lane *l, const struct spot_stage *stage)
{
	struct spot_kind *k = &l->kinds[stage->index];
	uint64_t bytes = stage->queue_bytes ? stage->queue_bytes : l->conf.queue_bytes;

	if (k->stage)
		return k;
	k->stage = stage;
	k->queue_count = stage->queue_count ? stage->queue_count : l->conf.queue_count;
	k->queue_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
	k->stats = l->conf.observed.stage_stats && stage->index < l->conf.observed.stages
			   ? l->conf.observed.stage_stats[stage->index].counter
			   : l->no_stats;
	if (stage->index >= l->kinds_end)
		l->kinds_end = stage->index + 1u;
	return k;
}

uint64_t *spot_stats_of_type(struct spot_lane *l, const struct spl_name *type)
{
	const struct spot_observed *o = &l->conf.observed;

	for (uint32_t i = 0; o->infos && o->stage_stats && i < o->stages; i++) {
		const struct spl_stage_info *info = &o->infos[i];

		if (info->kind == SPL_KIND_INSTANCE && info->type[type->len] == 0 &&
		    memcmp(info->type, type->b, type->len) == 0)
			return o->stage_stats[i].counter;
	}
	return l->no_stats;
}

static enum spl_stage_counter gauge_of(enum spot_state state)
{
	switch (state) {
	case SPOT_S_CREATING:
	case SPOT_S_PREPARED:
		return SPL_S_CREATING;
	case SPOT_S_READY:
		return SPL_S_READY;
	case SPOT_S_CLOSING:
	case SPOT_S_ENDING:
		return SPL_S_CLOSING;
	case SPOT_S_FREE:
		break;
	}
	return SPL_S_COUNT;
}

void spot_set_state(struct spot_lane *l, struct spot *s, enum spot_state state)
{
	enum spl_stage_counter before = gauge_of((enum spot_state)s->gate.state);
	enum spl_stage_counter after = gauge_of(state);

	s->gate.state = (uint8_t)state;
	if (before == after)
		return;
	if (before != SPL_S_COUNT)
		spot_stage_add(l, s, before, (uint64_t)-1);
	if (after != SPL_S_COUNT)
		spot_stage_add(l, s, after, 1);
}

void spot_note_tick(struct spot_lane *l, const struct spot *s, uint64_t late, uint64_t skipped)
{
	uint64_t *c = spot_kind_of(l, s)->stats;

	spot_add(&c[SPL_S_TICKS], 1);
	spot_add(&c[SPL_S_TICK_DELAY], late);
	if (late > c[SPL_S_TICK_DELAY_MAX])
		__atomic_store_n(&c[SPL_S_TICK_DELAY_MAX], late, __ATOMIC_RELAXED);
	if (skipped)
		spot_add(&c[SPL_S_TICKS_SKIPPED], skipped);
}

/* A Spot that goes with a close among its open commands was closed, any other one was not made. */
static enum spl_stage_counter end_of(struct spot_lane *l, struct spot *s)
{
	const struct spot_cold *cold = spot_cold_of(s);
	enum spl_stage_counter end = SPL_S_CREATE_FAILED;

	for (uint32_t i = cold->op; i; i = l->calls[i].next) {
		const struct spot_call *c = &l->calls[i];

		if (c->verb == SPOT_PREPARE && c->verdict == SPOT_REJECTED)
			end = SPL_S_CREATE_REJECTED;
		if (c->verb != SPOT_CLOSE)
			continue;
		if (cold->reason == (uint8_t)SPOT_FENCED || c->kind == SPL_E_DEADLINE_EXCEEDED)
			return SPL_S_CLOSE_FORCED;
		return c->verdict == SPOT_ACCEPTED ? SPL_S_CLOSED : SPL_S_CLOSE_FAILED;
	}
	return end;
}

void spot_note_end(struct spot_lane *l, struct spot *s)
{
	spot_stage_add(l, s, end_of(l, s), 1);
}

void spot_totals_tell(struct spot_lane *l)
{
	for (uint32_t i = 0; i < l->kinds_end; i++) {
		const struct spot_kind *k = &l->kinds[i];

		if (!k->stage)
			continue;
		__atomic_store_n(&k->stats[SPL_S_PENDING], k->pending, __ATOMIC_RELAXED);
		__atomic_store_n(&k->stats[SPL_S_PENDING_BYTES], k->payload, __ATOMIC_RELAXED);
	}
}

void spot_note_drop(struct spot_lane *l, const struct spot *s, enum spl_message_fail why)
{
	/* The words of the metric are fewer than ours; what has none is a failure, not a drop. */
	static const uint8_t reasons[SPL_FAIL_COUNT] = {
		[SPL_FAIL_NO_HANDLER] = 1 + SPL_DR_NO_HANDLER,
		[SPL_FAIL_CONTENT_TYPE] = 1 + SPL_DR_DECODE_ERROR,
		[SPL_FAIL_QUEUE_FULL] = 1 + SPL_DR_BACKPRESSURE,
		[SPL_FAIL_NO_RECORD] = 1 + SPL_DR_BACKPRESSURE,
		[SPL_FAIL_NO_SPOT] = 1 + SPL_DR_STALE_TARGET,
		[SPL_FAIL_NOT_READY] = 1 + SPL_DR_STALE_TARGET,
		[SPL_FAIL_FENCED] = 1 + SPL_DR_STALE_TARGET,
		[SPL_FAIL_CLOSED] = 1 + SPL_DR_STALE_TARGET,
		[SPL_FAIL_SHUTDOWN] = 1 + SPL_DR_SHUTDOWN,
		[SPL_FAIL_WAITERS_FULL] = 1 + SPL_DR_BACKPRESSURE,
		[SPL_FAIL_TYPE_MISMATCH] = 1 + SPL_DR_STALE_TARGET,
		[SPL_FAIL_INSTANCE_SPOT] = 1 + SPL_DR_STALE_TARGET,
	};
	enum spl_drop_surface surface = SPL_DS_SPOT;

	if (s && spot_stage_of(l, s)->desc->kind == SPL_KIND_INSTANCE)
		surface = SPL_DS_INSTANCE_SPOT;
	if (reasons[why])
		spot_add(&l->measures->dropped[surface][reasons[why] - 1], 1);
}

static enum spl_request_outcome outcome_of(uint8_t kind)
{
	switch (kind) {
	case SPL_OK:
		return SPL_RO_SUCCEEDED;
	case SPL_E_DEADLINE_EXCEEDED:
		return SPL_RO_TIMED_OUT;
	case SPL_E_SHUTTING_DOWN:
		return SPL_RO_SHUTDOWN;
	case SPL_CANCELLED:
		return SPL_RO_CANCELLED;
	default:
		return SPL_RO_FAILED;
	}
}

void spot_note_request(struct spot_lane *l, uint64_t begun, uint8_t kind)
{
	struct spl_histogram *h = &l->measures->request[outcome_of(kind)];
	uint64_t ns = l->now > begun ? spot_to_ns(&l->clock, l->now - begun) : 0;

	spot_add(&h->count, 1);
	spot_add(&h->sum_ns, ns);
	spot_add(&h->bucket[spl_duration_bucket(ns)], 1);
}
