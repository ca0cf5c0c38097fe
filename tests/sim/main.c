/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's program: draws a plan from the seed, steps the world, checks, and says which seed
 * broke what.
 *
 *	sim [--seeds N] [--first N]	many seeds, one line a failure (default 200 from 1)
 *	sim --seed N [-v]		one seed, told step by step with -v
 *
 * A run of many seeds fails also when all of them together left out a kind of work or of trouble.
 */
#include "tests/sim/world.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct world *sim;

void sim_problem(struct world *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (w->problem[0] == '\0')
		vsnprintf(w->problem, sizeof(w->problem), fmt, ap);
	va_end(ap);
}

void sim_note(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->is_verbose)
		return;
	va_start(ap, fmt);
	printf("%10.6f ", (double)(w->now - SIM_S) / 1e9);
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
}

void sim_random(void *world, void *out, size_t bytes)
{
	struct world *w = world;
	uint8_t *p = out;

	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)t_rand_u64(&w->rand);
}

/* Half of the seeds have one kind of trouble only, so that a failure says more. */
static void draw_plan(struct world *w)
{
	struct sim_plan *p = &w->plan;
	unsigned kind = t_rand_below(&w->rand, 8);

	*p = (struct sim_plan){.lanes = 1 + t_rand_below(&w->rand, SIM_LANES),
			       .clients = 1 + t_rand_below(&w->rand, SIM_CLIENTS),
			       .spots = 2 + t_rand_below(&w->rand, SIM_SPOTS - 1),
			       .steps = 400 + t_rand_below(&w->rand, 1200),
			       .create = 400,
			       .reclaim_on_restart = t_rand_below(&w->rand, 2)};
	if (kind == 0)
		return; /* no trouble at all */
	if (kind == 1 || kind >= 4)
		p->loss = t_rand_below(&w->rand, 1000);
	if (kind == 2 || kind >= 4) {
		p->dup = t_rand_below(&w->rand, 1000);
		p->late = t_rand_below(&w->rand, 1000);
	}
	if (kind == 3 || kind >= 5)
		p->close = 300;
	if (kind == 5 || kind == 7) {
		p->pause_dp = 20;
		p->pause_ctl = 20;
	}
	if (kind >= 6) {
		p->kill_dp = 15;
		p->kill_ctl = 15;
	}
	if (kind >= 5 && t_rand_below(&w->rand, 2))
		p->leap = 1000; /* and a lease that is short enough to run out */
}

static int64_t store_clock(void *ctx)
{
	return (int64_t)(((struct world *)ctx)->now / SIM_MS);
}

static void open_world(struct world *w, uint64_t seed)
{
	struct store_memory_opts o = {store_clock, w, seed};

	w->seed = seed;
	w->rand.s = seed * 0x9e3779b97f4a7c15ull + 1;
	w->now = SIM_S;
	draw_plan(w);
	w->to_control = sim_queue_new();
	w->to_dataplane = sim_queue_new();
	if (store_memory_open(&w->store, &o))
		abort();
	sim_node_start(w);
	sim_control_start(w);
	sim_clients_open(w);
}

static void trouble(struct world *w)
{
	const struct sim_plan *p = &w->plan;

	if (w->agent && sim_chance(w, p->kill_dp)) {
		sim_node_kill(w);
		w->counts.dp_deaths++;
		w->dp_back = w->now + t_rand_below(&w->rand, 3000) * SIM_MS;
	}
	if (w->control && sim_chance(w, p->kill_ctl)) {
		sim_control_kill(w);
		w->counts.ctl_deaths++;
		w->ctl_back = w->now + t_rand_below(&w->rand, 8000) * SIM_MS;
	}
	if (sim_chance(w, p->pause_dp)) {
		w->dp_paused = w->now + t_rand_below(&w->rand, 2000) * SIM_MS;
		w->counts.pauses++;
	}
	if (sim_chance(w, p->pause_ctl)) {
		w->ctl_paused = w->now + t_rand_below(&w->rand, 4000) * SIM_MS;
		w->counts.pauses++;
	}
}

static void come_back(struct world *w)
{
	if (!w->agent && w->now >= w->dp_back)
		sim_node_start(w);
	if (!w->control && w->now >= w->ctl_back)
		sim_control_start(w);
	if (w->n_dead && !w->plan.reclaim_on_restart && sim_chance(w, 500))
		sim_control_reclaim(w);
}

static void step(struct world *w)
{
	uint64_t was = w->now;

	/* Mostly small steps; now and then the world waits, so that timers come. */
	w->now += (1 + t_rand_below(&w->rand, 100)) * SIM_US;
	if (sim_chance(w, 100))
		w->now += t_rand_below(&w->rand, 50) * SIM_MS;
	if ((!w->control || w->now < w->ctl_paused) && sim_chance(w, w->plan.leap))
		w->now += t_rand_below(&w->rand, 200) * SIM_MS;
	if (!w->is_ending)
		trouble(w);
	come_back(w);
	sim_net_deliver(w);
	sim_node_step(w);
	sim_control_step(w);
	sim_clients_step(w);
	if (w->agent && w->now - was > 0 && sim_chance(w, 100))
		sim_node_check(w, false);
}

/* No more work and no more trouble: everything must come to an end. */
static void run_out(struct world *w)
{
	int quiet = 0;

	w->is_ending = true;
	w->dp_back = w->ctl_back = w->dp_paused = w->ctl_paused = w->now;
	for (int i = 0; i < 200000 && quiet < 400 && !w->problem[0]; i++) {
		w->now += i < 2000 ? 50 * SIM_US : SIM_MS;
		come_back(w);
		if (!w->plan.reclaim_on_restart)
			sim_control_reclaim(w);
		sim_net_deliver(w);
		sim_node_step(w);
		sim_control_step(w);
		sim_clients_step(w);
		quiet = w->n_packets == 0 && sim_clients_idle(w) && sim_control_idle(w) ? quiet + 1
											: 0;
	}
	if (!w->problem[0] && !sim_clients_idle(w))
		sim_problem(w, "calls are still open long after the last fault");
}

static void close_world(struct world *w)
{
	sim_clients_close(w);
	for (int i = 0; i < 100; i++) { /* the clients' goodbyes reach the node */
		w->now += SIM_MS;
		sim_net_deliver(w);
		sim_node_step(w);
		sim_control_step(w);
	}
	sim_node_check(w, true);
	sim_control_kill(w);
	sim_node_kill(w);
	sim_net_clear(w);
	store_close(w->store);
	sim_queue_free(w->to_control);
	sim_queue_free(w->to_dataplane);
}

/* What a run of many seeds has to have done: each at least once. */
static const struct {
	const char *name;
	size_t at;
} counted[] = {
#define COUNT(name, member) \
	{ \
		name, offsetof(struct sim_counts, member) \
	}
	COUNT("sends", sends),
	COUNT("requests", requests),
	COUNT("creates", creates),
	COUNT("closes", closes),
	COUNT("finds", finds),
	COUNT("calls that ended well", ended[0]),
	COUNT("calls that ended with an error", ended[1]),
	COUNT("messages handled", handled),
	COUNT("steps after the lease", fenced),
	COUNT("publishes", publishes),
	COUNT("publishes heard", heard),
	COUNT("ticks", ticks),
	COUNT("Instance Spots started", started),
	COUNT("evictions", evicted),
	COUNT("Spots that handlers found", made[0]),
	COUNT("Spots that handlers made", made[1]),
	COUNT("sends that handlers waited for", told),
	COUNT("packets lost", lost),
	COUNT("packets doubled", doubled),
	COUNT("packets late", late),
	COUNT("pauses", pauses),
	COUNT("dataplane deaths", dp_deaths),
	COUNT("control deaths", ctl_deaths),
#undef COUNT
};
#define COUNTED	   (sizeof(counted) / sizeof(counted[0]))
#define SEEDS_MANY 200 /* so many draw every kind of plan */

static_assert(sizeof(struct sim_counts) == COUNTED * sizeof(uint64_t), "each count is looked at");

static uint64_t *count_of(struct sim_counts *c, size_t i)
{
	return (uint64_t *)(void *)((char *)c + counted[i].at);
}

static void show_counts(struct sim_counts *c)
{
	for (size_t i = 0; i < COUNTED; i++)
		printf("%s%s: %llu", i ? ", " : "", counted[i].name,
		       (unsigned long long)*count_of(c, i));
	putchar('\n');
}

/* How many of the counts are 0, a line each. */
static unsigned idle_counts(struct sim_counts *c)
{
	unsigned bad = 0;

	for (size_t i = 0; i < COUNTED; i++) {
		if (*count_of(c, i))
			continue;
		printf("the simulator did too little: %s: 0\n", counted[i].name);
		bad++;
	}
	return bad;
}

static bool run_seed(uint64_t seed, bool is_verbose, struct sim_counts *sum)
{
	struct world *w = calloc(1, sizeof(*w));
	bool ok;

	if (!w)
		abort();
	sim = w;
	w->is_verbose = is_verbose;
	open_world(w, seed);
	for (unsigned i = 0; i < w->plan.steps && !w->problem[0]; i++)
		step(w);
	run_out(w);
	close_world(w);
	ok = w->problem[0] == '\0';
	if (!ok)
		printf("seed %llu: %s\n", (unsigned long long)seed, w->problem);
	if (is_verbose)
		show_counts(&w->counts);
	for (size_t i = 0; i < COUNTED; i++)
		*count_of(sum, i) += *count_of(&w->counts, i);
	free(w);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, seeds = 200;
	struct sim_counts sum = {0};
	bool verbose = false;
	unsigned bad = 0, idle = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-v") == 0) {
			verbose = true;
		} else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
			first = strtoull(argv[++i], NULL, 0);
			seeds = 1;
		} else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0) {
			seeds = strtoull(argv[++i], NULL, 0);
		} else if (i + 1 < argc && strcmp(argv[i], "--first") == 0) {
			first = strtoull(argv[++i], NULL, 0);
		} else {
			fprintf(stderr, "usage: sim [--seeds N] [--first N] | --seed N [-v]\n");
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_open(2, verbose ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
	sim_node_open();
	for (uint64_t s = first; s < first + seeds; s++)
		bad += !run_seed(s, verbose, &sum);
	sim_node_close();
	if (seeds > 1)
		show_counts(&sum);
	if (seeds >= SEEDS_MANY)
		idle = idle_counts(&sum);
	printf("%llu passed, %u failed\n", (unsigned long long)(seeds - bad), bad);
	return bad != 0 || idle != 0;
}
