/* SPDX-License-Identifier: BSD-3-Clause */
/* The method status.show: the whole status of the host, now or when it changes (S-OBS-1,2,3). Loop
 * thread only.
 *
 * Each change of the status has a number. An observer is a call that waits for one behind the
 * number that it knows: it keeps its place itself, so a slow one costs nothing and holds nobody up.
 * It gets the newest status, and how many it has missed; but an end of the node (Stopped, Error)
 * that it has not seen comes first, of those that ends.h still has. How many observers wait at once
 * is bounded by the clients of the management socket.
 */
#include "control/host/host_priv.h"

#include <stdlib.h>

#define WAIT_MS 30000

struct host_observer {
	TAILQ_ENTRY(host_observer) link;
	struct mgmt_call *call;
	uint64_t after, until; /* ns */
};

/* ---- the status ---- */

static const char *state_name(enum dp_host state)
{
	static const char *const names[] = {"Preparing", "Serving", "Relocating", "Relocated",
					    "Draining",	 "Stopped", "Error"};

	return names[state];
}

static void set_inbound(const struct host *h, json_t *o)
{
	uint64_t all, active;

	if (!h->stats.s)
		return;
	host_inbound(h, &all, &active);
	json_object_set_new(o, "inbound_hwm",
			    json_integer((json_int_t)statseg_get(&h->stats.s->credit_max)));
	json_object_set_new(o, "inbound_pending", json_integer((json_int_t)all));
	json_object_set_new(o, "inbound_queued", json_integer((json_int_t)(all - active)));
	json_object_set_new(o, "inbound_active", json_integer((json_int_t)active));
	json_object_set_new(o, "receive_paused",
			    json_boolean(statseg_get(&h->stats.s->credit_left) == 0));
	json_object_set_new(o, "pending_sends", json_integer((json_int_t)host_replies_waiting(h)));
	json_object_set_new(o, "send_limit", json_integer((json_int_t)host_replies_max(h)));
}

static json_t *status_json(const struct host *h)
{
	const struct host_status *s = &h->status;
	bool serves = s->now.state == DP_HOST_SERVING;
	uint64_t now = host_now(h);
	json_t *o = json_object();

	json_object_set_new(o, "sequence", json_integer((json_int_t)s->sequence));
	json_object_set_new(o, "source", json_string("runtime"));
	json_object_set_new(o, "state", json_string(state_name((enum dp_host)s->now.state)));
	json_object_set_new(o, "ready", json_boolean(serves));
	json_object_set_new(o, "accepting_work", json_boolean(serves && s->now.lease));
	json_object_set_new(o, "dataplane", json_string(s->now.up ? "up" : "down"));
	json_object_set_new(o, "lease", json_string(s->now.lease ? "held" : "none"));
	if (s->now.state == DP_HOST_DRAINING && s->now.deadline)
		json_object_set_new(o, "deadline_ms",
				    json_integer(s->now.deadline > now
							 ? (json_int_t)((s->now.deadline - now) /
									CLOCK_NS_PER_MS)
							 : 0));
	json_object_set_new(o, "relocation_result", json_string("none")); /* no Spot ever moves */
	if (s->now.shutdown)
		json_object_set_new(
			o, "shutdown_result",
			json_string(s->now.shutdown == 1 ? "stopped" : "force_stopped"));
	set_inbound(h, o);
	return o;
}

static struct host_status_key key_of(const struct host *h)
{
	struct host_status_key k;
	struct auth_status s;

	auth_status(h->auth, &s);
	memset(&k, 0, sizeof(k)); /* compared as bytes */
	k.state = (uint8_t)host_dp_state(h, &s);
	k.lease = s.lease_held;
	k.up = h->configured;
	k.shutdown = h->measured.forced ? 2 : h->measured.shutdown[0].count ? 1 : 0;
	k.deadline = k.state == DP_HOST_DRAINING && h->has_state ? h->state.deadline : 0;
	return k;
}

static bool is_end(const struct host_status_key *k)
{
	return k->state == DP_HOST_STOPPED || k->state == DP_HOST_ERROR;
}

/* ---- observers ---- */

static json_t *answer_for(const struct host *h, uint64_t after)
{
	const struct host_status *s = &h->status;
	struct host_next next = host_ends_next(&s->ends, after, s->sequence);
	json_t *o = next.end ? json_copy(next.end) : status_json(h);

	json_object_set_new(o, "coalesced", json_integer((json_int_t)next.coalesced));
	json_object_set_new(o, "discarded_terminal",
			    json_integer((json_int_t)next.discarded_terminal));
	return o;
}

static void answer(struct host *h, struct host_observer *w)
{
	TAILQ_REMOVE(&h->status.observers, w, link);
	mgmt_reply(w->call, answer_for(h, w->after));
	free(w);
}

/* Whose time is over, or who has gone. */
static void on_timer(uv_timer_t *t)
{
	struct host *h = t->data;
	struct host_observer *w, *next;
	uint64_t now = host_now(h);

	for (w = TAILQ_FIRST(&h->status.observers); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if (now >= w->until || mgmt_call_is_gone(w->call))
			answer(h, w);
	}
	if (TAILQ_EMPTY(&h->status.observers))
		uv_timer_stop(t);
}

void host_status_look(struct host *h)
{
	struct host_status_key k = key_of(h);

	if (memcmp(&k, &h->status.now, sizeof(k)) == 0)
		return;
	if (k.state != h->status.now.state || h->status.sequence == 0)
		log_info(HOST_MODULE,
			 "spotlane.runtime.mesh_node.state_changed mesh=%s state=%s previous=%s",
			 h->cfg->node.mesh, state_name((enum dp_host)k.state),
			 state_name((enum dp_host)h->status.now.state));
	if (k.shutdown != h->status.now.shutdown)
		log_info(HOST_MODULE, "spotlane.runtime.host.termination_changed result=%s",
			 k.shutdown == 1 ? "stopped" : "force_stopped");
	h->status.now = k;
	h->status.sequence++;
	if (is_end(&k))
		host_ends_keep(&h->status.ends, h->status.sequence, status_json(h));
	while (!TAILQ_EMPTY(&h->status.observers))
		answer(h, TAILQ_FIRST(&h->status.observers));
}

void host_status_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const json_t *after = json_object_get(params, "after");
	const json_t *wait = json_object_get(params, "wait_ms");
	struct host *h = ctx;
	uint64_t known = after ? (uint64_t)json_integer_value(after) : 0;
	uint64_t ms = wait ? (uint64_t)json_integer_value(wait) : WAIT_MS;
	struct host_observer *w;

	host_status_look(h);
	/* A number that is not ours is of a control before this one. */
	if (!after || known != h->status.sequence || ms == 0) {
		mgmt_reply(call, answer_for(h, after && known <= h->status.sequence
						       ? known
						       : h->status.sequence - 1));
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		mgmt_reply(call, NULL);
		return;
	}
	w->call = call;
	w->after = known;
	w->until = host_now(h) + ms * CLOCK_NS_PER_MS;
	TAILQ_INSERT_TAIL(&h->status.observers, w, link);
	if (!uv_is_active((uv_handle_t *)&h->status.timer))
		uv_timer_start(&h->status.timer, on_timer, HOST_LOOK_MS, HOST_LOOK_MS);
}

void host_status_open(struct host *h)
{
	TAILQ_INIT(&h->status.observers);
	uv_timer_init(h->o.loop, &h->status.timer);
	h->status.timer.data = h;
}

void host_status_close(struct host *h)
{
	while (!TAILQ_EMPTY(&h->status.observers))
		answer(h, TAILQ_FIRST(&h->status.observers));
	host_ends_free(&h->status.ends);
}
