/* SPDX-License-Identifier: BSD-3-Clause */
/* What control sends to the dataplane about its life as a whole: configuration, identity, host
 * state, lease, inventory, end: see host_priv.h. Loop thread only.
 */
#include "control/host/host_priv.h"

#include <errno.h>
#include <stdio.h>

/* ---- once for each connection ---- */

static void take_types(struct host *h, struct pack_bytes list)
{
	struct pack_reader r = {.p = list.p, .left = list.len};

	h->n_types = 0;
	while (r.left && !r.bad && h->n_types < AUTH_TYPES_MAX) {
		struct auth_type *t = &h->types[h->n_types];
		struct dp_stage_type m;

		dp_get_stage_type(&r, &m);
		if (r.bad || spl_name_set(&t->name, m.type.p, m.type.len) < 0)
			break;
		t->kind = (enum spl_kind)m.kind;
		t->limit = 0;
		/* Entry Spots are made by the runtime, never by type. */
		if (t->kind == SPL_KIND_USER || t->kind == SPL_KIND_INSTANCE)
			h->n_types++;
	}
}

static void take_ports(struct host *h, struct pack_bytes list)
{
	struct pack_reader r = {.p = list.p, .left = list.len};

	for (h->n_ports = 0; r.left && h->n_ports < HOST_PORT_UPS_MAX; h->n_ports++) {
		struct host_port_up *p = &h->ports[h->n_ports];
		struct dp_port_up m;

		dp_get_port_up(&r, &m);
		if (r.bad)
			break;
		snprintf(p->name, sizeof(p->name), "%.*s", (int)m.name.len, (const char *)m.name.p);
		snprintf(p->driver, sizeof(p->driver), "%.*s", (int)m.driver.len,
			 (const char *)m.driver.p);
		p->mac = m.mac;
	}
}

static void start_lifecycle(struct host *h)
{
	uint8_t endpoint[64];
	struct pack_writer w = {.p = endpoint, .cap = sizeof(endpoint)};
	struct auth_event e = {.kind = AUTH_EV_HOST_START};

	pack_put_u32(&w, h->cfg->n_ports ? h->cfg->ports[0].ip : 0);
	pack_put_u16(&w, h->cfg->n_ports ? h->cfg->ports[0].udp_base : 0);
	e.u.host.types = h->types;
	e.u.host.n_types = h->n_types;
	e.u.host.endpoint = (struct auth_bytes){endpoint, (uint32_t)w.len};
	e.u.host.lanes = h->lanes;
	if (h->hello_state == DP_STATE_IDENTIFIED) {
		e.kind = AUTH_EV_HOST_RESUME;
		e.u.host.id = h->resumed;
		h->id = h->resumed;
		h->has_id = true;
		h->life_written =
			true;	    /* it would not have its identity otherwise; again, because */
		host_life_write(h); /* the store may be another one */
		log_info(HOST_MODULE, "resuming the lifecycle rid=%.*s", h->id.rid.len,
			 h->id.rid.b);
	}
	h->life_epoch = h->epoch;
	host_event(h, &e);
}

/* The same dataplane after a break: it gets what it may have missed. */
static void repeat_lifecycle(struct host *h)
{
	const struct auth_event e = {.kind = AUTH_EV_LINK_UP};

	if (h->has_id && h->hello_state != DP_STATE_IDENTIFIED)
		host_send_identity(h);
	if (h->has_state)
		host_send_state(h);
	if (h->lease_deadline)
		host_send_lease(h);
	if (h->inv.on)
		host_inventory(h);
	host_event(h, &e);
}

static void on_configured(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host *h = ctx;
	struct dp_configured m;
	const char *why = "no statistics memfd";

	if (end->rc < 0) {
		if (end->rc != -ECONNRESET)
			dplink_cut(h->link, "the dataplane did not answer CONFIG");
		return;
	}
	dp_get_configured(&end->m->body, &m);
	if (!dp_done(&end->m->body)) {
		dplink_cut(h->link, "malformed CONFIGURED");
		return;
	}
	if (!m.ok) {
		h->refused = true;
		snprintf(h->refusal, sizeof(h->refusal), "%.*s", (int)m.text.len,
			 (const char *)m.text.p);
		log_error(HOST_MODULE, "the dataplane cannot start: %s exit=%u", h->refusal,
			  m.exit_code);
		return;
	}
	if (end->m->fd < 0 || statseg_map(&h->stats, end->m->fd, h->epoch, &why) < 0)
		log_error(HOST_MODULE, "no statistics: %s", why);
	h->configured = true;
	h->refused = false;
	h->lanes = m.lanes;
	take_types(h, m.types);
	if (!h->activations || h->activations_epoch != h->epoch)
		host_activations_reset(h);
	h->activations_epoch = h->epoch;
	take_ports(h, m.ports);
	host_status_look(h);
	log_info(HOST_MODULE, "dataplane is ready lanes=%u types=%zu ports=%u hugepages=%u",
		 m.lanes, h->n_types, h->n_ports, m.huge);
	host_send_trace(h);
	if (h->life_epoch == h->epoch)
		repeat_lifecycle(h);
	else if (h->stop == HOST_RUNS)
		start_lifecycle(h);
}

void host_send_config(struct host *h)
{
	const struct dplink_want w = {
		.type = DP_CONFIGURED,
		.deadline = host_now(h) + HOST_CONFIG_NS,
		.fn = on_configured,
		.ctx = h,
	};

	pack_put(dplink_begin(h->link, DP_CONFIG), h->config, h->config_bytes);
	dplink_request(h->link, -1, &w);
}

/* ---- lifecycle ---- */

static void on_control_ok(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host *h = ctx;
	struct dp_ok m = {.kind = SPL_OK};

	if (end->rc == 0) {
		dp_get_ok(&end->m->body, &m);
		if (!dp_done(&end->m->body)) {
			dplink_cut(h->link, "malformed OK");
			return;
		}
	}
	if (end->rc != -ECONNRESET && (end->rc < 0 || m.kind != SPL_OK))
		log_error(HOST_MODULE, "the dataplane refused %s: %s: %.*s",
			  dp_type_name((uint16_t)tag),
			  end->rc ? strerror(-end->rc) : spl_error_name(m.kind), (int)m.text.len,
			  (const char *)m.text.p);
}

static void request_ok(struct host *h, uint16_t type)
{
	const struct dplink_want w = {
		.type = DP_OK,
		.deadline = host_now(h) + HOST_CONTROL_NS,
		.fn = on_control_ok,
		.ctx = h,
		.tag = type,
	};

	dplink_request(h->link, -1, &w);
}

void host_send_identity(struct host *h)
{
	const struct dp_identity m = {
		.node_gen = h->id.lifecycle,
		.lease_gen = (uint64_t)h->id.lease_gen,
		.lease_deadline = h->lease_deadline,
		.entry_gen = (uint64_t)h->id.entry_gen,
		.entry_ver = (uint64_t)h->id.entry_ver,
		.rid = host_name(&h->id.rid),
		.owner_id = host_name(&h->id.owner_id),
		.entry_id = host_name(&h->id.entry_id),
	};

	if (!h->life_written) /* what follows waits too, in order */
		dplink_hold(h->link, true);
	dp_put_identity(dplink_begin(h->link, DP_IDENTITY), &m);
	request_ok(h, DP_IDENTITY);
}

void host_send_state(struct host *h)
{
	dp_put_host_state(dplink_begin(h->link, DP_HOST_STATE), &h->state);
	request_ok(h, DP_HOST_STATE);
}

void host_send_lease(struct host *h)
{
	const struct dp_lease_extend m = {
		.lease_gen = (uint64_t)h->id.lease_gen,
		.deadline = h->lease_deadline,
		.sequence = ++h->lease_sequence,
	};

	dp_put_lease_extend(dplink_begin(h->link, DP_LEASE_EXTEND), &m);
	dplink_event(h->link, -1);
}

void host_send_lease_lost(struct host *h, const char *why)
{
	const struct dp_lease_lost m = {.reason = dp_text(why)};

	dp_put_lease_lost(dplink_begin(h->link, DP_LEASE_LOST), &m);
	dplink_event(h->link, -1);
}

void host_send_trace(struct host *h)
{
	const struct dp_trace m = {.level = h->trace_level, .share = h->trace_share};

	dp_put_trace(dplink_begin(h->link, DP_TRACE), &m);
	request_ok(h, DP_TRACE);
}

void host_send_exit(struct host *h, bool forced)
{
	const struct dp_exit_req m = {.forced = forced};

	dp_put_exit_req(dplink_begin(h->link, DP_EXIT), &m);
	request_ok(h, DP_EXIT);
}

/* ---- inventory ---- */

static void next_page(struct host *h);

static void take_object(struct host *h, const struct dp_object *o)
{
	struct auth_event e = {.kind = AUTH_EV_INVENTORY};

	e.u.inventory.id = host_bytes(o->id);
	e.u.inventory.obj_gen = o->obj_gen;
	e.u.inventory.own_gen = o->own_gen;
	e.u.inventory.attempt = o->attempt;
	e.u.inventory.state = o->state == DP_OBJECT_STAGING ? AUTH_INV_STAGING
			      : o->state == DP_OBJECT_READY ? AUTH_INV_READY
							    : AUTH_INV_CLOSING;
	host_event(h, &e);
}

static void on_inventory(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	const struct auth_event over = {.kind = AUTH_EV_INVENTORY_END};
	struct host *h = ctx;
	struct dp_inventory m;
	struct dp_blob blob = {NULL, 0};
	struct pack_reader r;

	if (end->rc == -ECONNRESET || tag != h->inv.run)
		return; /* asked for again after LINK_UP */
	if (end->rc < 0) {
		dplink_cut(h->link, "the inventory was refused");
		return;
	}
	dp_get_inventory(&end->m->body, &m);
	if (!dp_done(&end->m->body) || m.lane != h->inv.lane ||
	    dp_field_in(&m.objects, end->m->fd, &blob) < 0) {
		dplink_cut(h->link, "malformed INVENTORY");
		return;
	}
	r = (struct pack_reader){.p = m.objects.p, .left = m.objects.len};
	while (r.left && !r.bad) {
		struct dp_object o;

		dp_get_object(&r, &o);
		if (!r.bad && o.state >= DP_OBJECT_STAGING && o.state <= DP_OBJECT_CLOSING)
			take_object(h, &o);
	}
	dp_blob_unmap(&blob);
	h->inv.cursor = m.cursor;
	if (!m.more) {
		h->inv.lane++;
		h->inv.cursor = 0;
	}
	if (r.bad) {
		dplink_cut(h->link, "malformed INVENTORY");
	} else if (h->inv.lane < h->lanes) {
		next_page(h);
	} else {
		h->inv.on = false;
		host_event(h, &over);
	}
}

static void next_page(struct host *h)
{
	const struct dp_resync m = {.lane = h->inv.lane, .cursor = h->inv.cursor};
	const struct dplink_want w = {
		.type = DP_INVENTORY,
		.deadline = host_now(h) + HOST_CONTROL_NS,
		.fn = on_inventory,
		.ctx = h,
		.tag = h->inv.run,
	};

	dp_put_resync(dplink_begin(h->link, DP_RESYNC), &m);
	dplink_request(h->link, -1, &w);
}

void host_inventory(struct host *h)
{
	h->inv.on = true;
	h->inv.run++;
	h->inv.lane = 0;
	h->inv.cursor = 0;
	next_page(h);
}
