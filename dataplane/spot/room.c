/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the lane as a whole: its regions, its records, what the host sets, inventory.
 *
 * spot_region_bytes() and spot_lane_init() run on the agent before the lane starts, all else on the
 * lane.
 */
#include "dataplane/spot/activate.h"
#include "dataplane/spot/idle.h"
#include "dataplane/spot/timer.h"
#include "dataplane/spot/totals.h"

#define OBJECT_BYTES_MAX (UINT64_C(1) << 38) /* 2^32 indices of 64 bytes */

static bool conf_valid(const struct spot_conf *c)
{
	return c->lanes >= 1 && c->lanes <= SPL_LANES_MAX && c->lane < c->lanes &&
	       c->spots_max >= 1 && c->spots_max <= 1u << 24 && c->records >= 64 &&
	       c->records <= 1u << 24 && c->calls >= 16 && c->commands >= 16 &&
	       c->commands <= 65536 && (uint64_t)c->calls + c->commands < 1u << 20 &&
	       c->timers <= 1u << 24 && c->subscriptions <= 1u << 24 &&
	       c->channels <= SPL_CHANNELS_MAX && (c->lanes == 1 || c->topic_lanes) &&
	       c->heap_bytes >= 4096 && c->heap_bytes < UINT64_C(64) << 30 &&
	       c->object_bytes >= SLAB_CHUNK && c->object_bytes < OBJECT_BYTES_MAX &&
	       c->queue_count >= 1 && c->life_count >= 1 && c->life_cap >= 1 &&
	       c->life_cap <= 200 && c->turn_budget_us >= 1 && c->request_ms >= 1 &&
	       (c->waiters == 0 || c->send_ms >= 1) && c->message_max <= SPL_MESSAGE_BYTES_CAP &&
	       c->idle_ms <= SPOT_IDLE_MS_MAX && c->clock_hz >= 1000000 && c->counters && c->fails;
}

static size_t round64(uint64_t n)
{
	return (size_t)((n + 63) & ~UINT64_C(63));
}

size_t spot_region_bytes(const struct spot_conf *c, enum spot_region region)
{
	if (!conf_valid(c))
		return 0;
	switch (region) {
	case SPOT_MEM_LANE:
		return round64(sizeof(struct spot_lane));
	case SPOT_MEM_RECORDS:
		return round64((uint64_t)(c->records + c->timers + 1) * sizeof(struct spot_rec) +
			       (uint64_t)c->records * sizeof(struct spot_rec *));
	case SPOT_MEM_CALLS:
		return round64((uint64_t)(c->calls + c->commands + 1) * sizeof(struct spot_call));
	case SPOT_MEM_HEAP:
		return round64(c->heap_bytes);
	case SPOT_MEM_TOPICS:
		return round64(spot_topics_bytes(c->subscriptions));
	case SPOT_MEM_FLOWS:
		return (size_t)(c->records + c->timers + 1) * SPOT_FLOW_BYTES;
	case SPOT_MEM_TABLE:
		return (size_t)table_buckets(c->spots_max) * sizeof(struct table_bucket);
	case SPOT_MEM_OBJECTS:
		return round64(c->object_bytes) +
		       sizeof(struct spl_name); /* a name may be read whole */
	case SPOT_MEM_COUNT:
		break;
	}
	return 0;
}

static void init_records(struct spot_lane *l, void *mem)
{
	l->rec_count = l->conf.records;
	l->recs = mem;
	l->rec_stack = (struct spot_rec **)(void *)(l->recs + l->rec_count + l->conf.timers + 1);
	for (uint32_t i = l->rec_count; i > 0; i--)
		l->rec_stack[l->rec_free++] = &l->recs[i];
	l->rec_least = l->rec_free;
}

struct spot_lane *spot_lane_init(const struct spot_conf *conf, const struct spot_env *env,
				 void *const mem[SPOT_MEM_COUNT])
{
	struct spot_lane *l = mem[SPOT_MEM_LANE];

	if (!conf_valid(conf))
		return NULL;
	memset(l, 0, sizeof(*l));
	l->conf = *conf;
	l->env = *env;
	l->counters = conf->counters;
	l->fails = conf->fails;
	l->measures = conf->observed.measures ? conf->observed.measures : &l->no_measures;
	spot_clock_init(&l->clock, conf->clock_hz, conf->fake_clock);
	l->budget = spot_from_us(&l->clock, conf->turn_budget_us);
	l->overrun =
		conf->turn_overrun_us ? spot_from_us(&l->clock, conf->turn_overrun_us) : UINT64_MAX;
	l->lease = 0; /* nothing starts before the host has said until when */
	l->epoch = (uint64_t)(conf->lane + 1) << 48;
	slab_init(&l->slab, mem[SPOT_MEM_OBJECTS], conf->object_bytes);
	table_init(&l->table, mem[SPOT_MEM_TABLE], conf->spots_max, &l->slab, conf->secret);
	lanemem_init(&l->mem, mem[SPOT_MEM_HEAP], conf->heap_bytes);
	init_records(l, mem[SPOT_MEM_RECORDS]);
	l->calls = mem[SPOT_MEM_CALLS];
	spot_calls_init(l);
	spot_timers_init(l);
	spot_waits_init(l);
	l->idle_due = UINT64_MAX;
	spot_topics_init(&l->topics, mem[SPOT_MEM_TOPICS], conf->subscriptions, conf->secret[3]);
	l->copy_at = 1;
	l->trace.flows = mem[SPOT_MEM_FLOWS];
	l->trace.ring = conf->observed.trace;
	return l;
}

void spot_lane_set(struct spot_lane *l, uint64_t lease, bool pool_low, uint32_t reply_permits)
{
	l->lease = lease;
	l->pool_low = pool_low;
	l->permits = reply_permits;
	spot_totals_tell(l);
}

void spot_lane_seal(struct spot_lane *l)
{
	l->sealed = true;
}

bool spot_lane_quiet(const struct spot_lane *l)
{
	return l->rec_free == l->rec_count && l->ended_count == 0 && l->timers_used == 0 &&
	       l->topics.used == 0 && l->calls_held == 0 && l->ops_open == 0 && l->mem_own == 0 &&
	       l->ready_head == 0 && l->done_count == 0 && l->waits.used == 0;
}

unsigned spot_recs_take(struct spot_lane *l, struct spot_rec **recs, unsigned n)
{
	uint32_t reserve = SPOT_RESERVE(l->rec_count);
	uint32_t left = l->rec_free > reserve ? l->rec_free - reserve : 0;

	if (n > left)
		n = left;
	spot_recs_used(l, n);
	memcpy(recs, l->rec_stack + l->rec_free, n * sizeof(*recs));
	return n;
}

void spot_recs_give(struct spot_lane *l, struct spot_rec *const *recs, unsigned n)
{
	while (n > 0)
		spot_rec_free(l, recs[--n]);
}

unsigned spot_copy_out(struct spot_lane *l, unsigned max)
{
	uint32_t high = l->rec_count - l->rec_least; /* no record above it was ever taken */
	uint32_t look = 8 * max < high ? 8 * max : high;
	unsigned n = 0;

	for (; look > 0 && n < max; look--) {
		struct spot_rec *r = &l->recs[l->copy_at];

		l->copy_at = l->copy_at >= high ? 1 : l->copy_at + 1;
		if (!(r->flags & REC_F_WAITS) || !r->buf || r->origin != SPOT_FROM_LINK)
			continue; /* what other threads have sent lies in lane memory already */
		if (!spot_rec_move(l, r))
			break;
		n++;
	}
	spot_done_flush(l);
	return n;
}

struct lanemem *spot_lane_mem(struct spot_lane *l)
{
	return &l->mem;
}

void spot_longest(const struct spot_lane *l, uint64_t *cycles, const char **type, const char **what)
{
	*cycles = l->longest;
	*type = l->longest_type;
	*what = l->longest_what;
}

static void show(const struct spot_lane *l, uint32_t index,
		 void (*fn)(void *ctx, const struct spot_item *item), void *ctx)
{
	struct spot *s = spot_at(l, index);
	struct spot_cold *cold = spot_cold_of(s);
	struct spot_item item = {
		.key = s->key,
		.id = spot_name_of(cold),
		.stage = spot_stage_of(l, s),
		.object_generation = cold->object_generation,
		.queued = s->app.count,
		.ready = s->gate.state == SPOT_S_READY,
		.closing = s->gate.state >= SPOT_S_CLOSING,
	};

	fn(ctx, &item);
}

static unsigned bucket_size(const struct spot_lane *l, const struct table_bucket *b)
{
	unsigned n = (unsigned)(TABLE_WAYS - __builtin_popcount(table_match(b, 0)));

	for (uint32_t i = b->chain; i; i = spot_at(l, i)->chain)
		n++;
	return n;
}

/* The cursor is a bucket. A bucket is shown whole, because a Spot may change its place in it
 * between two calls; a split moves Spots to a higher bucket only. So one that is there all the time
 * is seen. A bucket of more than `max` Spots, which chance does not make, is cut off there. */
bool spot_inventory(struct spot_lane *l, uint64_t *cursor, unsigned max,
		    void (*fn)(void *ctx, const struct spot_item *item), void *ctx)
{
	uint64_t at = *cursor, end = at + 8 * (uint64_t)max + 64;
	unsigned left = max;

	for (; at < l->table.n && at < end; at++) {
		const struct table_bucket *b = &l->table.b[at];

		if (left < max && bucket_size(l, b) > left)
			break;
		for (unsigned w = 0; w < TABLE_WAYS && left > 0; w++) {
			if (b->tag[w]) {
				show(l, b->spot[w], fn, ctx);
				left--;
			}
		}
		for (uint32_t i = b->chain; i && left > 0; i = spot_at(l, i)->chain, left--)
			show(l, i, fn, ctx);
	}
	*cursor = at;
	return at < l->table.n;
}
