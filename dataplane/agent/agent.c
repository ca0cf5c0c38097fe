/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the agent's loop: the private socket, what lanes push, timers, sleep. */
#include "dataplane/agent/agent.h"

#include "common/clock.h"
#include "dataplane/observe/segment.h"

#include <rte_mempool.h>
#include <rte_ring.h>
#include <stdlib.h>

#define WAIT_SLEEP_US 20000u /* while there is nothing to run yet */

#define RING_TAKE     64u

struct agent_command *agent_command_new(struct agent *a, unsigned lane, enum lane_verb verb,
					void (*done)(struct agent *, struct agent_command *))
{
	struct agent_command *cmd = calloc(1, sizeof(*cmd));

	if (!cmd)
		return NULL;
	cmd->agent = a;
	TAILQ_INSERT_TAIL(&a->commands, cmd, all);
	cmd->c.verb = (uint8_t)verb;
	cmd->c.lane = (uint16_t)lane;
	cmd->c.owner = cmd;
	cmd->done = done;
	return cmd;
}

void agent_command_free(struct agent_command *cmd)
{
	if (!cmd)
		return;
	TAILQ_REMOVE(&cmd->agent->commands, cmd, all);
	free(cmd->blob);
	free(cmd);
}

static bool push(struct agent *a, struct agent_command *cmd)
{
	void *item = hop_tag(&cmd->c, HOP_COMMAND);

	return hop_push(&a->sh.hop, a->sh.lanes, cmd->c.lane, &item, 1) == 1;
}

void agent_send(struct agent *a, struct agent_command *cmd)
{
	struct agent_commands *q = &a->queue[cmd->c.lane];

	if (!TAILQ_EMPTY(q) || !push(a, cmd))
		TAILQ_INSERT_TAIL(q, cmd, list);
}

static void send_queued(struct agent *a)
{
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		struct agent_command *cmd;

		while ((cmd = TAILQ_FIRST(&a->queue[i])) && push(a, cmd))
			TAILQ_REMOVE(&a->queue[i], cmd, list);
	}
}

void agent_event_back(struct agent *a, struct lane_event *e)
{
	void *item = hop_tag(e, HOP_EVENT);

	if (!a->back[e->lane] && hop_push(&a->sh.hop, a->sh.lanes, e->lane, &item, 1) == 1)
		return;
	e->next = a->back[e->lane];
	a->back[e->lane] = e;
}

static void send_back(struct agent *a)
{
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		while (a->back[i]) {
			struct lane_event *e = a->back[i], *next = e->next;
			void *item = hop_tag(e, HOP_EVENT);

			if (hop_push(&a->sh.hop, a->sh.lanes, i, &item, 1) != 1)
				break;
			a->back[i] = next;
		}
	}
}

/* For people: a callback of a stage that failed and whose sender was not told (S-TURN-10). Only of
 * a timer the log says which Spot it was (S-TIMER-13, S-OBS-6). */
static void agent_failed(struct agent *a, struct lane_event *e)
{
	const char *type = e->stage->desc->type, *kind = spl_error_name(e->error);
	unsigned long long untold = e->correlation;

	if (e->op)
		log_warn("stage", "timer failed type=%s spot=%.*s timer=%.*s kind=%s untold=%llu",
			 type, e->id.len, e->id.b, (int)e->bytes, (const char *)e->data, kind,
			 untold);
	else
		log_warn("stage", "handler failed type=%s packet=%.*s kind=%s untold=%llu", type,
			 (int)e->bytes, (const char *)e->data, kind, untold);
	agent_event_back(a, e);
}

/* It held up every other Spot of its lane. */
static void agent_overran(struct agent *a, struct lane_event *e)
{
	log_warn("stage", "a turn took long type=%s %s=%.*s lane=%u took_us=%llu untold=%llu",
		 e->stage->desc->type, e->op ? "timer" : "in", (int)e->bytes, (const char *)e->data,
		 e->lane, (unsigned long long)(e->deadline / 1000),
		 (unsigned long long)e->correlation);
	agent_event_back(a, e);
}

static void take_event(struct agent *a, struct lane_event *e)
{
	switch ((enum lane_event_kind)e->kind) {
	case LANE_EV_MESH:
		agent_mesh_event(a, e);
		break;
	case LANE_EV_MISSING:
		agent_missing(a, e);
		break;
	case LANE_EV_CREATE:
		agent_create(a, e);
		break;
	case LANE_EV_ACTIVATE:
		agent_activate(a, e);
		break;
	case LANE_EV_CLOSE_WANTED:
		agent_self_close(a, e);
		break;
	case LANE_EV_CALLED:
		agent_called(a, e);
		break;
	case LANE_EV_FAILED:
		agent_failed(a, e);
		break;
	case LANE_EV_OVERRAN:
		agent_overran(a, e);
		break;
	}
}

/* A command came back: its answer's lane memory goes home after `done` has read it. */
static void take_command(struct agent *a, struct lane_command *c)
{
	struct agent_command *cmd = c->owner;
	void *mem = c->verb == LANE_FREE ? NULL : c->mem;
	struct agent_command *home;

	if (mem) {
		home = agent_command_new(a, c->lane, LANE_FREE, NULL);
		if (home) {
			home->c.mem = mem;
			c->mem = mem;
		}
	}
	if (cmd->done)
		cmd->done(a, cmd);
	if (mem && home)
		agent_send(a, home);
	agent_command_free(cmd);
}

unsigned agent_take_ring(struct agent *a, unsigned lane)
{
	void *item[RING_TAKE];
	unsigned n = hop_pop(&a->sh.hop, lane, a->sh.lanes, item, RING_TAKE);

	for (unsigned i = 0; i < n; i++) {
		void *p = hop_pointer(item[i]);

		switch (hop_kind(item[i])) {
		case HOP_FRAME:
			agent_frame(a, p);
			break;
		case HOP_COMMAND:
			take_command(a, p);
			break;
		case HOP_EVENT:
			take_event(a, p);
			break;
		case HOP_MESSAGE:
		case HOP_RETURN:
			break; /* lanes never push these here */
		}
	}
	return n;
}

static void port_statistics(struct agent *a)
{
	for (unsigned i = 0; i < a->sh.n_ports; i++) {
		uint64_t v[SPL_P_COUNT];

		if (port_link_poll(&a->ports[i]))
			log_info("port", "link state changed port=%s up=%d",
				 a->ports[i].config.name, (int)a->ports[i].link_up);
		if (port_stats(&a->ports[i], v))
			continue;
		for (int k = 0; k < SPL_P_COUNT; k++)
			segment_set(&a->sh.stats->port[i].counter[k], v[k]);
	}
}

/* Calls of handlers end in bounded steps: the next one follows its answer. */
static void end_calls(struct agent *a, unsigned lane);

static void calls_ended(struct agent *a, struct agent_command *cmd)
{
	if (cmd->c.bytes > 0)
		end_calls(a, cmd->c.lane);
}

static void end_calls(struct agent *a, unsigned lane)
{
	struct agent_command *cmd = agent_command_new(a, lane, LANE_CALLS_END, calls_ended);

	if (!cmd)
		return; /* the next tick tries again */
	cmd->c.error = SPL_E_SHUTTING_DOWN;
	agent_send(a, cmd);
}

static void tick(struct agent *a)
{
	if (a->now < a->next_tick)
		return;
	a->next_tick = a->now + AGENT_TICK_NS;
	port_statistics(a);
	agent_ops_expire(a);
	segment_set(&a->sh.stats->credit_left,
		    atomic_load_explicit(&a->sh.credit[WIRE_APP], memory_order_relaxed));
	segment_set(&a->sh.stats->mbufs_total, a->sh.pool->size);
	segment_set(&a->sh.stats->mbufs_free, rte_mempool_avail_count(a->sh.pool));
	if (a->host_state == DP_HOST_DRAINING && a->drain_deadline && a->now > a->drain_deadline)
		for (unsigned i = 0; i < a->sh.lanes; i++)
			end_calls(a, i);
}

unsigned agent_pass(struct agent *a)
{
	unsigned work = 0;

	for (unsigned i = 0; i < a->sh.lanes; i++)
		work += agent_take_ring(a, i);
	send_queued(a);
	send_back(a);
	agent_net_poll(a);
	agent_peers_poll(a);
	tick(a);
	tx_poll(&a->tx);
	tx_flush(&a->tx);
	return work;
}

static void sleep_idle(struct agent *a)
{
	struct wake *w;
	uint64_t due;
	int fds[2];
	unsigned n = sock_fds(a->sock, fds);

	if (!a->is_running) {
		struct wake alone = {.fd = -1};

		wake_sleep(&alone, fds, n, WAIT_SLEEP_US);
		return;
	}
	w = &a->sh.hop.wake[a->sh.lanes];
	due = agent_net_due(a);
	due = due <= a->now ? 0 : (due - a->now) / 1000;
	wake_park(w);
	if (due > 0 && hop_idle(&a->sh.hop, a->sh.lanes))
		wake_sleep(w, fds, n, due < AGENT_SLEEP_US ? (uint32_t)due : AGENT_SLEEP_US);
	wake_unpark(w);
}

int agent_run(struct agent *a, const volatile int *signalled)
{
	while (!a->is_stopping) {
		unsigned work;

		a->now = clock_boot_ns();
		work = sock_poll(a->sock);
		if (a->is_running)
			work += agent_pass(a);
		if (*signalled && !a->is_asked)
			agent_ask_shutdown(a, "signal");
		if (work == 0 && !a->is_stopping)
			sleep_idle(a);
	}
	return a->exit_code;
}
