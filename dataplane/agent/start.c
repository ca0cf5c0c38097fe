/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: from a configuration to running lanes, in stages, and back in reverse. Whatever
 * fails is undone by agent_stop(), which takes a start that got only part of the way.
 */
#include "dataplane/agent/agent.h"

#include "common/clock.h"
#include "common/credit.h"
#include "dataplane/observe/segment.h"
#include "dataplane/port/eal.h"
#include "dataplane/port/pool.h"
#include "dataplane/worker/workers.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int load_stages(struct agent *a, char *err, size_t n)
{
	char why[STAGE_WHY_MAX];
	int rc;

	a->stages = stage_set_new();
	if (!a->stages)
		return -ENOMEM;
	for (unsigned i = 0; i < a->cfg.n_stages; i++) {
		uint16_t index;

		rc = stage_set_load(a->stages, a->cfg.stage[i].module, a->cfg.stage[i].symbol,
				    a->cfg.stage_dir, a->cfg.n_stage_dirs, &index, why);

		if (rc) {
			snprintf(err, n, "%s", why);
			return rc;
		}
	}
	rc = stage_set_complete(a->stages, why);
	if (rc)
		snprintf(err, n, "%s", why);
	return rc;
}

static int start_eal(struct agent *a, char *err)
{
	struct eal_config c = {
		.n_lanes = a->cfg.c.lanes,
		.agent_cpu = a->cfg.c.agent_cpu == UINT32_MAX ? -1 : (int)a->cfg.c.agent_cpu,
		.memory_mb = a->cfg.c.memory_mb,
		.ports = a->cfg.port,
		.n_ports = a->cfg.n_ports,
		.extra = a->cfg.eal_arg,
		.n_extra = a->cfg.n_eal_args,
	};

	memcpy(c.lane_cpu, a->cfg.lane_cpu, sizeof(c.lane_cpu));
	a->is_huge = a->cfg.c.hugepages == 1 ||
		     (a->cfg.c.hugepages == 2 && eal_huge_fits(c.memory_mb, err));
	c.huge = a->is_huge ? EAL_HUGE_YES : EAL_HUGE_NO;
	return eal_start(&c, err);
}

static int make_pool(struct agent *a, char *err, size_t n)
{
	uint32_t ports = a->cfg.n_ports, users = a->cfg.c.lanes + 1;
	struct pool_demand d = {
		.rx_desc = ports * PORT_DESC_DEFAULT,
		.tx_desc = ports * users * PORT_DESC_DEFAULT,
		.burst = users * 4 * LANE_BURST,
		.ring = users * (512 + ports * TX_RING),
		.held = a->cfg.c.lanes * a->cfg.c.mbufs,
	};
	struct pool_shape shape;
	uint16_t room = a->cfg.c.data_room ? (uint16_t)a->cfg.c.data_room : LANE_BUFFER_BYTES;

	if (pool_size(&d, sizeof(struct lane_buffer), room, &shape)) {
		snprintf(err, n, "mbufs: more than a pool can hold");
		return -EINVAL;
	}
	a->sh.pool = pool_create("frames", &shape, sizeof(struct lane_buffer), room, -1);
	if (!a->sh.pool) {
		snprintf(err, n,
			 "no memory for %u packet buffers (%llu MiB): raise dataplane.memory_mb or "
			 "lower dataplane.mbufs",
			 shape.count, (unsigned long long)(shape.bytes >> 20));
		return -ENOMEM;
	}
	a->sh.pool_low = a->cfg.c.mbufs_low ? a->cfg.c.mbufs_low : shape.count / 4;
	return 0;
}

static int open_ports(struct agent *a, char *err)
{
	uint16_t ids[PORTS_MAX];
	int rc = port_find_all(a->cfg.port, a->cfg.n_ports, ids, err);

	if (rc > 0) /* devices that no port asked for: the members of a bond */
		rc = 0;
	for (unsigned i = 0; !rc && i < a->cfg.n_ports; i++)
		rc = port_open(&a->ports[i], ids[i], &a->cfg.port[i], a->cfg.c.lanes, a->sh.pool,
			       err);
	for (unsigned i = 0; !rc && i < a->cfg.n_ports; i++)
		rc = port_start(&a->ports[i], err);
	return rc;
}

static int make_segment(struct agent *a, char *err, size_t n)
{
	unsigned stages = stage_set_count(a->stages);

	a->sh.stats = segment_create(a->cfg.c.lanes, a->cfg.n_ports, stages, a->epoch, a->sh.tsc_hz,
				     &a->stats_fd);
	if (!a->sh.stats) {
		snprintf(err, n, "statistics segment: %s", strerror(errno));
		return -errno;
	}
	for (unsigned i = 0; i < a->cfg.n_ports; i++)
		snprintf(a->sh.stats->port[i].name, sizeof(a->sh.stats->port[i].name), "%.31s",
			 a->cfg.port[i].name);
	for (unsigned i = 0; i < stages; i++) {
		const struct spl_stage *d = stage_set_at(a->stages, (uint16_t)i)->desc;

		segment_stage(a->sh.stats, i, (uint32_t)d->kind, d->type);
	}
	return 0;
}

static void lane_numbers(struct agent *a)
{
	const struct dp_config *c = &a->cfg.c;
	struct spot_conf *s = &a->lane_conf.spot;

	*s = (struct spot_conf){
		.lanes = c->lanes,
		.spots_max = c->spots_max,
		.records = c->records_max,
		.calls = 65536,
		.commands = 8192,
		.timers = c->timers_max,
		.timers_per_spot = c->timers_per_spot,
		.idle_ms = c->instance_idle_ms,
		.subscriptions = c->subscriptions_max,
		.channels = a->cfg.n_channels,
		.heap_bytes = c->lane_memory,
		.object_bytes = (uint64_t)c->spots_max * 4096 + (1u << 30),
		.queue_count = c->queue_count,
		.queue_bytes = c->queue_bytes,
		.life_count = c->lifecycle_queue_count,
		.life_bytes = c->lifecycle_queue_bytes,
		.life_cap = c->lifecycle_cap,
		.turn_budget_us = c->turn_budget_us,
		.turn_overrun_us = c->turn_overrun_us,
		.waiters = c->send_waiters < c->records_max ? c->send_waiters : c->records_max,
		.send_ms = c->send_timeout_ms,
		.message_max = c->message_max,
		.request_ms = c->request_timeout_ms,
		.create_ms = c->create_timeout_ms,
		.clock_hz = a->sh.tsc_hz,
		.fake_clock = a->sh.fake_ns,
	};
	memcpy(s->channel, a->cfg.channel, sizeof(s->channel));
	a->lane_conf.flows_max = c->associations;
}

static int make_lanes(struct agent *a, char *err, size_t n)
{
	lane_numbers(a);
	a->random(a->random_ctx, a->lane_conf.spot.secret, sizeof(a->lane_conf.spot.secret));
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		struct spot_conf plan = a->lane_conf.spot;

		plan.lane = i;
		a->lane[i] = lane_create(&a->sh, i, &a->lane_conf);
		if (!a->lane[i]) {
			snprintf(err, n,
				 "lane %u: %s: lower limits.spots_per_lane, "
				 "limits.records_per_lane, limits.timers_per_lane, "
				 "limits.subscriptions_per_lane or "
				 "dataplane.lane_memory_mb",
				 i, strerror(errno));
			return -errno;
		}
		spot_plan_init(&a->plan[i], &plan);
		TAILQ_INIT(&a->queue[i]);
	}
	return 0;
}

static int start_workers(struct agent *a, char *err, size_t n)
{
	const struct dp_config *c = &a->cfg.c;
	struct workers_conf conf = {
		.sh = &a->sh,
		.cpu_min = c->cpu_threads_min,
		.cpu_max = c->cpu_threads_max,
		.idle_ms = c->cpu_idle_ms,
		.cpu_queue = c->cpu_queue,
		.io_max = c->io_operations,
		.message_max = c->message_max,
		.result_bytes = c->work_result_bytes,
	};

	a->workers = workers_start(&conf, err, n);
	return a->workers ? 0 : -EAGAIN;
}

static int launch(struct agent *a, char *err, size_t n)
{
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		int rc = rte_eal_remote_launch(lane_main, a->lane[i], i + 1);

		if (rc) {
			snprintf(err, n, "lane %u: cannot start its thread", i);
			return rc;
		}
	}
	return 0;
}

/* Frames were handed to a lane that owns a transmit queue. On the thread that handed them over. */
static void wake_owner(void *ctx, unsigned lane)
{
	struct hop *hop = ctx;

	wake_up(&hop->wake[lane]);
}

static int share_credit(struct agent *a, char *err, size_t n)
{
	const struct dp_config *c = &a->cfg.c;
	struct credit_bounds b = {.asked = c->credit_pool,
				  .records = c->records_max,
				  .lane_memory = c->lane_memory,
				  .message_max = c->message_max,
				  .flow_min = c->credit_min ? c->credit_min : CREDIT_MIN};
	uint64_t pool = credit_pool(&b), flows = credit_flows(&b);

	if (flows < c->lanes) { /* control has looked; another build of it may not have */
		snprintf(err, n, "%llu bytes of credit are too little for one message of %u",
			 (unsigned long long)pool, c->message_max);
		return -EINVAL;
	}
	if (pool < c->credit_pool)
		log_warn("agent",
			 "the credit pool is cut to what one lane can hold: raise records_per_lane "
			 "or lane_memory_mb asked=%llu granted=%llu",
			 (unsigned long long)c->credit_pool, (unsigned long long)pool);
	a->sh.stats->credit_max = credit_app(pool);
	a->sh.stats->credit_left = credit_app(pool);
	atomic_init(&a->sh.credit[WIRE_INFRA], credit_infra(pool));
	atomic_init(&a->sh.credit[WIRE_APP], credit_app(pool));
	a->sh.credit_tight = pool / 8;
	a->promise_max = (uint32_t)flows;
	return 0;
}

static int make_shared(struct agent *a, char *err, size_t n)
{
	const struct dp_config *c = &a->cfg.c;
	int rc;

	a->sh.lanes = c->lanes;
	a->sh.ports = a->ports;
	a->sh.n_ports = a->cfg.n_ports;
	a->sh.associations = c->associations;
	a->sh.nap_us_max = c->idle_nap_us < IDLE_NAP_MAX_US ? c->idle_nap_us : IDLE_NAP_MAX_US;
	atomic_init(&a->sh.trace, SPL_TRACE_DEFAULT);
	rc = share_credit(a, err, n);
	if (rc)
		return rc;
	a->peer = calloc(c->associations, sizeof(*a->peer));
	rc = a->peer ? hop_init(&a->sh.hop, HOP_USERS(c->lanes)) : -ENOMEM;
	if (!rc)
		a->sh.tx_net = tx_net_create(a->ports, a->cfg.n_ports, c->lanes + 1, wake_owner,
					     &a->sh.hop);
	if (rc || !a->sh.tx_net) {
		snprintf(err, n, "no memory for the rings between lanes");
		return rc ? rc : -ENOMEM;
	}
	tx_init(&a->tx, a->sh.tx_net, c->lanes, a->sh.pool);
	return 0;
}

int agent_start_rooms(struct agent *a, char *err, size_t n)
{
	int rc = make_segment(a, err, n);

	if (!rc)
		rc = make_shared(a, err, n);
	if (!rc)
		rc = make_lanes(a, err, n);
	if (!rc)
		rc = agent_net_start(a, err, n);
	return rc;
}

int agent_start(struct agent *a, char *err, size_t n)
{
	int rc = load_stages(a, err, n);

	if (!rc)
		rc = start_eal(a, err);
	if (!rc)
		rc = make_pool(a, err, n);
	if (!rc)
		rc = open_ports(a, err);
	a->sh.tsc_hz = rte_get_tsc_hz();
	if (!rc)
		rc = agent_start_rooms(a, err, n);
	if (!rc)
		rc = start_workers(a, err, n);
	if (!rc)
		rc = launch(a, err, n);
	if (rc)
		return rc;
	segment_publish(a->sh.stats);
	a->is_running = true;
	return 0;
}

/* Peers are told goodbye while the lanes still transmit; bounded by AGENT_FORCE_NS. */
static void say_goodbye(struct agent *a)
{
	uint64_t until = clock_boot_ns() + AGENT_FORCE_NS;

	if (!a->assoc)
		return;
	assoc_shutdown(a->assoc, clock_boot_ns());
	while (assoc_closing(a->assoc) > 0 && (a->now = clock_boot_ns()) < until) {
		for (unsigned i = 0; i < a->sh.lanes; i++)
			agent_take_ring(a, i);
		agent_net_poll(a);
		agent_peers_poll(a);
		tx_poll(&a->tx);
		tx_flush(&a->tx);
		usleep(1000);
	}
}

/* Lanes have left: frames that still lie in the rings go, commands are free_rest()'s. */
static void empty_rings(struct agent *a)
{
	for (unsigned from = 0; from < a->sh.hop.users; from++)
		for (unsigned to = 0; to < a->sh.hop.users; to++) {
			void *item;

			while (hop_pop(&a->sh.hop, from, to, &item, 1) == 1) {
				if (hop_kind(item) == HOP_FRAME)
					rte_pktmbuf_free(hop_pointer(item));
			}
		}
}

static void free_rest(struct agent *a)
{
	/* Some lie in rooms of Spots that are no more, and nobody else knows them. */
	while (!TAILQ_EMPTY(&a->commands))
		agent_command_free(TAILQ_FIRST(&a->commands));
	while (!TAILQ_EMPTY(&a->staged)) {
		struct agent_staged *s = TAILQ_FIRST(&a->staged);

		TAILQ_REMOVE(&a->staged, s, list);
		free(s->reply);
		free(s);
	}
	agent_peers_free(a);
	free(a->peer);
}

void agent_stop_rooms(struct agent *a)
{
	if (a->sh.hop.ring)
		empty_rings(a);
	free_rest(a);
	agent_net_stop(a);
	for (unsigned i = 0; i < a->sh.lanes; i++)
		lane_destroy(a->lane[i]);
	tx_net_destroy(a->sh.tx_net);
	hop_fini(&a->sh.hop);
	free(a->sh.topic_lanes);
	a->sh.topic_lanes = NULL;
	segment_destroy(a->sh.stats);
	if (a->stats_fd >= 0)
		close(a->stats_fd);
}

void agent_stop(struct agent *a)
{
	if (a->is_running) {
		say_goodbye(a);
		atomic_store_explicit(&a->sh.stop, true, memory_order_release);
		for (unsigned i = 0; i < a->sh.lanes; i++) {
			wake_kick(&a->sh.hop.wake[i]);
			rte_eal_wait_lcore(i + 1);
		}
		tx_fini(&a->tx);
	}
	a->is_stuck = !workers_stop(a->workers, AGENT_FORCE_NS / 1000000);
	if (a->is_stuck)
		log_error("workers", "a computation still runs and is left behind");
	agent_stop_rooms(a);
	for (unsigned i = 0; i < a->cfg.n_ports; i++) {
		port_stop(&a->ports[i]);
		port_close(&a->ports[i]);
	}
	pool_destroy(a->sh.pool);
	if (!a->is_stuck)
		stage_set_free(a->stages);
	eal_stop();
}
