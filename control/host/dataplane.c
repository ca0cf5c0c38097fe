/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes from the dataplane by itself: HELLO, its end, events and requests: see host_priv.h.
 * Loop thread only.
 */
#include "control/host/host_priv.h"

#include <errno.h>
#include <stdio.h>

static void remember(struct auth_host_id *id, const struct dp_hello *m)
{
	*id = (struct auth_host_id){
		.lifecycle = m->node_gen,
		.lease_gen = (int64_t)m->lease_gen,
		.entry_gen = (int64_t)m->entry_gen,
		.entry_ver = (int64_t)m->entry_ver,
	};
	if (spl_name_set(&id->rid, m->rid.p, m->rid.len) < 0 ||
	    spl_name_set(&id->owner_id, m->owner_id.p, m->owner_id.len) < 0 ||
	    spl_name_set(&id->entry_id, m->entry_id.p, m->entry_id.len) < 0)
		id->lifecycle = 0;
}

static void on_up(void *ctx, uint64_t epoch, const struct dp_hello *m)
{
	struct host *h = ctx;

	h->up = true;
	h->connection++;
	h->configured = h->refused = false;
	h->hello_state = m->state;
	h->epoch = epoch;
	if (m->state == DP_STATE_IDENTIFIED) {
		remember(&h->resumed, m);
		if (!h->resumed.lifecycle) {
			dplink_cut(h->link, "HELLO of an identified dataplane without identity");
			return;
		}
	}
	if (h->stop == HOST_ENDS_DATAPLANE) {
		host_send_exit(h, false);
		return;
	}
	if (m->state != DP_STATE_WAITING && m->config_hash != h->config_hash)
		log_warn(HOST_MODULE,
			 "the dataplane runs with another configuration: what differs is in force "
			 "after both were restarted");
	host_send_config(h);
}

static void on_down(void *ctx)
{
	struct host *h = ctx;

	h->up = false;
	h->configured = false;
	host_status_look(h);
}

static void on_dead(void *ctx, uint64_t epoch)
{
	const struct auth_event e = {.kind = AUTH_EV_HOST_DEAD};
	struct host *h = ctx;
	struct spl_name rid = h->id.rid;
	bool had = h->has_id && h->life_epoch == epoch;

	h->epoch = 0;
	h->has_id = h->has_state = false;
	h->life_written = false;
	h->lease_deadline = 0;
	h->inv.on = false;
	if (h->life_epoch == epoch) {
		h->life_epoch = 0;
		host_event(h, &e);
	}
	if (had)
		host_life_ended(h, &rid);
	host_dataplane_ended(h);
}

static int on_self_close(struct host *h, struct dplink_msg *m)
{
	struct auth_request r = {.verb = AUTH_CLOSE};
	struct dp_self_close s;
	struct host_wait *w;

	dp_get_self_close(&m->body, &s);
	if (!dp_done(&m->body) ||
	    (s.reason != AUTH_EXPLICIT_CLOSE && s.reason != AUTH_IDLE_EVICTED))
		return -EPROTO;
	w = host_wait_new(h, HOST_WAIT_SELF);
	r.own = true;
	r.reason = (enum auth_close_reason)s.reason;
	spl_name_set(&r.op.rid, h->control_rid, strlen(h->control_rid));
	r.op.lifecycle = h->control_life;
	r.op.lo = ++h->op_serial;
	r.id = host_bytes(s.id);
	r.obj_gen = s.obj_gen;
	r.deadline = (int64_t)(host_now(h) + h->cfg->node.drain_ms * CLOCK_NS_PER_MS);
	if (host_submit(h, w, &r) < 0) {
		if (r.reason != AUTH_IDLE_EVICTED) /* it asks again while it is idle */
			log_warn(HOST_MODULE,
				 "a Spot asked to be closed and was not: too much to do");
		host_wait_free(w);
	}
	return 0;
}

static int on_shutdown_req(struct host *h, struct dplink_msg *m)
{
	struct dp_shutdown_req s;
	char cause[300];

	dp_get_shutdown_req(&m->body, &s);
	if (!dp_done(&m->body))
		return -EPROTO;
	snprintf(cause, sizeof(cause), "dataplane:%.*s", (int)s.cause.len, (const char *)s.cause.p);
	host_shutdown(h, h->cfg->node.drain_ms * CLOCK_NS_PER_MS, cause);
	return 0;
}

static int refuse(struct host *h, const struct dplink_msg *m)
{
	const struct dp_ok ok = {
		.kind = SPL_E_PROTOCOL_ERROR,
		.text = dp_text("control does not serve this request"),
	};

	if (m->h.flags != DP_F_REQ)
		return -EPROTO;
	dp_put_ok(dplink_begin(h->link, DP_OK), &ok);
	dplink_reply(h->link, m->h.corr, -1);
	return 0;
}

static int on_message(void *ctx, struct dplink_msg *m)
{
	struct host *h = ctx;

	if (m->h.type == DP_MESH_OP && m->h.flags == DP_F_REQ)
		return host_mesh_op(h, m);
	if (m->h.type == DP_SHUTDOWN_REQ && m->h.flags == DP_F_EVT)
		return on_shutdown_req(h, m);
	if (m->h.type == DP_SELF_CLOSE && m->h.flags == DP_F_EVT)
		return on_self_close(h, m);
	return refuse(h, m);
}

const struct dplink_ops host_link_ops = {on_up, on_down, on_dead, on_message};
