/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane of the simulator: the real agent and the real lanes, stepped by hand on the clock
 * of the world, over one port of rings that all lives share. Death is what a kill leaves: nothing
 * is told to anybody, the memory is gone.
 */
#include "tests/sim/world.h"

#include "tests/lib/t_eal.h"

#include <stdio.h>
#include <stdlib.h>

static struct t_port wire;
static struct port port;

void sim_node_open(void)
{
	if (t_eal_start(1))
		abort();
	t_port_make(&wire, "sim", SIM_LANES + 1, t_pool("sim-wire", 4096, 0));
	wire.vouches = true;
	t_port_up(&wire, "sim", &port, SIM_LANES);
}

void sim_node_close(void)
{
	t_port_down(&wire, &port);
	t_eal_stop();
}

static void numbers(struct world *w, struct dp_config *c)
{
	*c = (struct dp_config){
		.lanes = w->plan.lanes,
		.mbufs = 4000,
		.mbufs_low = 500,
		.message_max = 65536,
		.credit_pool = 16 << 20,
		.credit_min = 16 << 10,
		.credit_max = 256 << 10,
		.associations = 8,
		.spots_max = 64,
		.records_max = 8192,
		.lane_memory = 2 << 20,
		.queue_count = 1024,
		.queue_bytes = 1 << 20,
		.create_timeout_ms = 5000,
		.request_timeout_ms = 2000,
		.send_timeout_ms = 500,
		.turn_budget_us = 50,
		.lifecycle_cap = 8,
		.lifecycle_queue_count = 64,
		.lifecycle_queue_bytes = 1 << 20,
		.timers_max = 1024,
		.timers_per_spot = 16,
		.subscriptions_max = 1024,
		.send_waiters = 64,
		.cpu_threads_min = 1,
		.cpu_threads_max = 2,
		.cpu_idle_ms = 1000,
		.cpu_queue = 16,
		.io_operations = 16,
		.work_result_bytes = 1 << 20,
		.instance_idle_ms = SIM_IDLE_MS,
	};
}

static void add_stage(struct agent *a)
{
	char why[STAGE_WHY_MAX];
	uint16_t index;

	a->stages = stage_set_new();
	if (!a->stages || stage_set_add(a->stages, &sim_stage, "sim", &index, why) ||
	    stage_set_add(a->stages, &sim_twin, "twin", &index, why) ||
	    stage_set_complete(a->stages, why)) {
		fprintf(stderr, "sim: %s\n", why);
		abort();
	}
}

void sim_node_start(struct world *w)
{
	struct sock_ops ops = {.on_peer = agent_on_peer, .on_packet = agent_on_packet};
	struct agent *a = calloc(1, sizeof(*a));
	char err[AGENT_ERR_BYTES] = "", name[32];

	if (!a)
		abort();
	w->wire = &wire;
	w->port = &port;
	w->agent = a;
	w->life++;
	a->now = w->now;
	a->random = sim_random;
	a->random_ctx = w;
	a->stats_fd = -1;
	sim_random(w, &a->epoch, sizeof(a->epoch));
	a->epoch |= 1;
	TAILQ_INIT(&a->staged);
	TAILQ_INIT(&a->commands);
	TAILQ_INIT(&a->held_closes);
	ops.ctx = a;
	a->sock = sock_open("", &ops, err, sizeof(err));
	port.local.n_lanes = (uint8_t)w->plan.lanes;
	a->ports[0] = port;
	a->cfg.n_ports = 1;
	a->cfg.port[0] = port.config;
	numbers(w, &a->cfg.c);
	spl_name_set(&a->cfg.mesh, "default", 7);
	a->cfg.channel[0] = spl_channel_key(SIM_CHANNEL, strlen(SIM_CHANNEL));
	a->cfg.n_channels = 1;
	a->sh.fake_ns = &w->now;
	a->sh.tsc_hz = SIM_S;
	snprintf(name, sizeof(name), "sim-%u", w->life);
	a->sh.pool = t_pool(name, 4000, sizeof(struct lane_buffer));
	a->sh.pool_low = 500;
	add_stage(a);
	if (!a->sock || agent_start_rooms(a, err, sizeof(err))) {
		fprintf(stderr, "sim: %s\n", err);
		abort();
	}
	a->is_running = true;
	a->state = DP_STATE_CONFIGURED;
	sim_note(w, "dataplane %u starts", w->life);
}

static void drop_frames(void)
{
	static uint8_t frame[T_FRAME_MAX];
	void *m;

	while (t_port_pull_any(&wire, frame) > 0)
		;
	while (rte_ring_dequeue(wire.rx, &m) == 0)
		rte_pktmbuf_free(m);
}

void sim_node_kill(struct world *w)
{
	struct agent *a = w->agent;

	if (!a)
		return;
	sim_note(w, "dataplane %u dies", w->life);
	w->agent = NULL;
	w->may_lose = true;
	if (a->state == DP_STATE_IDENTIFIED && w->n_dead < T_COUNT(w->dead))
		w->dead[w->n_dead++] = a->rid;
	drop_frames();
	for (unsigned i = 0; i < a->sh.lanes; i++)
		tx_fini(&a->lane[i]->tx);
	tx_fini(&a->tx);
	agent_stop_rooms(a);
	stage_set_free(a->stages);
	sock_close(a->sock);
	drop_frames();
	rte_mempool_free(a->sh.pool);
	free(a);
	for (unsigned i = 0; i < w->plan.spots; i++)
		w->spot[i].live = 0;
	w->dp_paused = 0;
}

/* One pass of the agent and of each lane, but not all at each step: threads do not run alike. */
void sim_node_step(struct world *w)
{
	struct agent *a = w->agent;

	if (!a || w->now < w->dp_paused)
		return;
	if (atomic_load(&a->sh.lease_deadline) <= w->now && a->state == DP_STATE_IDENTIFIED) {
		w->may_lose = true;
		w->counts.fenced++;
	}
	a->now = w->now;
	if (!sim_chance(w, 2000) || w->is_ending) {
		sock_poll(a->sock);
		agent_pass(a);
	}
	for (unsigned i = 0; i < a->sh.lanes; i++)
		if (!sim_chance(w, 1000) || w->is_ending)
			lane_pass(a->lane[i]);
	sim_net_from_node(w);
}

static void check_lane(struct world *w, const struct spl_lane_stats *s, unsigned lane)
{
	uint64_t frames = 0, fails = 0;

	for (int i = 0; i < SPL_USE_COUNT; i++)
		frames += s->use[i];
	for (int i = 0; i < SPL_DROP_COUNT; i++)
		frames += s->drop[i];
	for (int i = 0; i < SPL_FAIL_COUNT; i++)
		fails += s->fail[i];
	if (s->counter[SPL_C_FRAMES_RX] != frames)
		sim_problem(w, "lane %u: %llu frames received, %llu accounted for", lane,
			    (unsigned long long)s->counter[SPL_C_FRAMES_RX],
			    (unsigned long long)frames);
	if (s->counter[SPL_C_MESSAGES_ACCEPTED] != s->counter[SPL_C_MESSAGES_FINISHED] + fails +
							   s->counter[SPL_C_MESSAGES_QUEUED] +
							   s->counter[SPL_C_MESSAGES_RUNNING])
		sim_problem(w,
			    "lane %u: %llu messages accepted; finished %llu, failed %llu, queued "
			    "%llu, running %llu",
			    lane, (unsigned long long)s->counter[SPL_C_MESSAGES_ACCEPTED],
			    (unsigned long long)s->counter[SPL_C_MESSAGES_FINISHED],
			    (unsigned long long)fails,
			    (unsigned long long)s->counter[SPL_C_MESSAGES_QUEUED],
			    (unsigned long long)s->counter[SPL_C_MESSAGES_RUNNING]);
}

/* For people: what became of messages and frames that did not go the usual way. */
static void tell(struct world *w, const struct spl_lane_stats *s, unsigned lane)
{
	static const char *const fails[] = {
#define SPL_X(sym, name, help) name,
		SPL_MESSAGE_FAILS(SPL_X)};
	static const char *const drops[] = {SPL_FRAME_DROPS(SPL_X)
#undef SPL_X
	};

	for (int i = 0; i < SPL_FAIL_COUNT; i++)
		if (s->fail[i])
			sim_note(w, "lane %u: messages failed: %s %llu", lane, fails[i],
				 (unsigned long long)s->fail[i]);
	for (int i = 0; i < SPL_DROP_COUNT; i++)
		if (s->drop[i])
			sim_note(w, "lane %u: frames dropped: %s %llu", lane, drops[i],
				 (unsigned long long)s->drop[i]);
}

uint64_t sim_node_refused(const struct world *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; w->agent && i < w->agent->sh.lanes; i++) {
		const uint64_t *fail = w->agent->sh.stats->lane[i].fail;

		n += fail[SPL_FAIL_QUEUE_FULL] + fail[SPL_FAIL_INSTANCE_SPOT];
	}
	return n;
}

void sim_node_check(struct world *w, bool at_rest)
{
	struct agent *a = w->agent;

	if (!a)
		return;
	if (at_rest)
		for (unsigned i = 0; i <= a->sh.lanes; i++)
			tell(w, &a->sh.stats->lane[i], i);
	for (unsigned i = 0; i <= a->sh.lanes; i++)
		check_lane(w, &a->sh.stats->lane[i], i);
	if (!at_rest)
		return;
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		const uint64_t *c = a->sh.stats->lane[i].counter;

		if (c[SPL_C_MESSAGES_QUEUED] || c[SPL_C_MESSAGES_RUNNING])
			sim_problem(w,
				    "lane %u: messages are left at rest: %llu queued, %llu running",
				    i, (unsigned long long)c[SPL_C_MESSAGES_QUEUED],
				    (unsigned long long)c[SPL_C_MESSAGES_RUNNING]);
		if (!lanemem_check(a->lane[i]->mem))
			sim_problem(w, "lane %u: its memory is damaged", i);
	}
	if (t_pool_used(a->sh.pool) != 0)
		sim_problem(w, "%u buffers are missing at rest", t_pool_used(a->sh.pool));
}
