/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's program: draws a plan from the seed, steps the world, checks, and says which seed
 * broke what.
 *
 *	sim [--seeds N] [--first N]	many seeds, one line a failure (default 200 from 1)
 *	sim --seed N [-v]		one seed, told step by step with -v
 */
#include "tests/sim/world.h"

#include <stdarg.h>
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

static bool run_seed(uint64_t seed, bool is_verbose)
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
		printf("sends %llu requests %llu creates %llu closes %llu finds %llu ok %llu "
		       "errors %llu handled %llu lost %llu doubled %llu late %llu pauses %llu "
		       "deaths %llu %llu\n",
		       (unsigned long long)w->counts.sends, (unsigned long long)w->counts.requests,
		       (unsigned long long)w->counts.creates, (unsigned long long)w->counts.closes,
		       (unsigned long long)w->counts.finds, (unsigned long long)w->counts.ended[0],
		       (unsigned long long)w->counts.ended[1],
		       (unsigned long long)w->counts.handled, (unsigned long long)w->counts.lost,
		       (unsigned long long)w->counts.doubled, (unsigned long long)w->counts.late,
		       (unsigned long long)w->counts.pauses,
		       (unsigned long long)w->counts.dp_deaths,
		       (unsigned long long)w->counts.ctl_deaths);
	free(w);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, seeds = 200;
	bool verbose = false;
	unsigned bad = 0;

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
		bad += !run_seed(s, verbose);
	sim_node_close();
	printf("%llu passed, %u failed\n", (unsigned long long)(seeds - bad), bad);
	return bad != 0;
}
