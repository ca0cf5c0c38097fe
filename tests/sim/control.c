/* SPDX-License-Identifier: BSD-3-Clause */
/* Control of the simulator: the real authority over a store in memory, with a loop that is only
 * what control/host does with effects and packets. Death may fall between a commit and its answer.
 */
#include "tests/sim/world.h"

#include "common/wire_msg.h"

#include <stdlib.h>

#define ASKS_MAX 4096u /* requests to the dataplane and from clients, by number */

struct waiting {
	bool is_used;
	uint16_t type;
	uint64_t cmd; /* of the authority, to echo */
};

struct asked {
	bool is_used;
	uint8_t op;
	uint64_t corr, connection;
};

struct sim_control {
	struct auth *auth;
	struct auth_host_id id; /* of the lifecycle that the authority has */
	bool has_id, is_serving, is_connected;
	uint64_t epoch;	     /* of the dataplane it knows; 0: none */
	uint64_t life_epoch; /* whose lifecycle the authority has */
	uint64_t connection, serial, lease_sequence;
	uint32_t lanes, inventory_lane;
	struct store_batch *batch; /* out: its answer comes at `batch_at` */
	uint64_t batch_at;
	struct waiting waiting[ASKS_MAX];
	struct asked asked[ASKS_MAX];
	uint8_t out[DP_PACKET_MAX];
};

static void pump(struct world *w);

static void event(struct world *w, const struct auth_event *e)
{
	int rc = auth_event(w->control->auth, e, (int64_t)w->now);

	if (rc == -ENOMEM)
		abort();
}

static struct pack_writer begin(struct world *w, uint16_t type, uint16_t flags, uint64_t corr)
{
	struct pack_writer p = {.p = w->control->out, .cap = sizeof(w->control->out)};

	dp_begin(&p, type, flags, w->control->epoch, corr);
	return p;
}

static void put(struct world *w, struct pack_writer *p)
{
	if (dp_finish(p, 0))
		sim_problem(w, "a packet of control is too long");
	else if (w->control->is_connected)
		sim_control_put(w, p);
}

/* A request to the dataplane for the authority's command `cmd`. */
static uint64_t expect(struct world *w, uint16_t type, uint64_t cmd)
{
	struct sim_control *c = w->control;

	for (uint32_t i = 1; i < ASKS_MAX; i++)
		if (!c->waiting[i].is_used) {
			c->waiting[i] = (struct waiting){true, type, cmd};
			return i | c->connection << 32;
		}
	abort();
}

static bool answered(struct world *w, uint64_t corr, struct waiting *out)
{
	struct sim_control *c = w->control;
	uint32_t i = (uint32_t)corr % ASKS_MAX;

	if (corr >> 32 != c->connection || !c->waiting[i].is_used)
		return false;
	*out = c->waiting[i];
	c->waiting[i].is_used = false;
	return true;
}

static struct pack_bytes bytes(struct auth_bytes b)
{
	return (struct pack_bytes){b.p, b.n};
}

static struct pack_bytes name(const struct spl_name *n)
{
	return (struct pack_bytes){n->b, n->len};
}

/* ---- effects ---- */

static void command(struct world *w, enum auth_fx_kind kind, const struct auth_command *c)
{
	struct pack_writer p;

	if (kind == AUTH_FX_PREPARE) {
		struct dp_obj_prepare m = {.obj_gen = c->fence.obj_gen,
					   .own_gen = c->fence.own_gen,
					   .attempt = c->attempt,
					   .deadline = (uint64_t)c->deadline,
					   .kind = (uint8_t)c->kind,
					   .id = bytes(c->id),
					   .type = bytes(c->type),
					   .request = bytes(c->request)};

		p = begin(w, DP_OBJ_PREPARE, DP_F_REQ, expect(w, DP_PREPARED, c->cmd));
		dp_put_obj_prepare(&p, &m);
	} else if (kind == AUTH_FX_PUBLISH) {
		struct dp_obj_publish m = {.obj_gen = c->fence.obj_gen,
					   .own_gen = c->fence.own_gen,
					   .ver = c->fence.ver,
					   .attempt = c->attempt,
					   .id = bytes(c->id)};

		p = begin(w, DP_OBJ_PUBLISH, DP_F_REQ, expect(w, DP_OK, c->cmd));
		dp_put_obj_publish(&p, &m);
	} else if (kind == AUTH_FX_DISCARD) {
		struct dp_obj_discard m = {
			.obj_gen = c->fence.obj_gen, .attempt = c->attempt, .id = bytes(c->id)};

		sim_ended_quietly(w, c->id.p, c->id.n);
		p = begin(w, DP_OBJ_DISCARD, DP_F_REQ, expect(w, DP_OK, c->cmd));
		dp_put_obj_discard(&p, &m);
	} else {
		struct dp_obj_close m = {.obj_gen = c->fence.obj_gen,
					 .reason = (uint8_t)c->reason,
					 .deadline = (uint64_t)c->deadline,
					 .id = bytes(c->id)};

		p = begin(w, DP_OBJ_CLOSE, DP_F_REQ, expect(w, DP_CLOSED, c->cmd));
		dp_put_obj_close(&p, &m);
		/* A message with intent is handled before, or starts the next one (S-CLOSE-4). */
		if (c->kind != SPL_KIND_INSTANCE || c->reason == AUTH_FENCED)
			w->may_lose = true;
		else
			sim_note(w, "Instance Spot %.*s is closed: %d", (int)c->id.n,
				 (const char *)c->id.p, c->reason);
	}
	put(w, &p);
}

static void identity(struct world *w, const struct auth_host_id *id, int64_t deadline)
{
	struct sim_control *c = w->control;
	struct dp_identity m = {.node_gen = id->lifecycle,
				.lease_gen = (uint64_t)id->lease_gen,
				.lease_deadline = (uint64_t)deadline,
				.entry_gen = (uint64_t)id->entry_gen,
				.entry_ver = (uint64_t)id->entry_ver,
				.rid = name(&id->rid),
				.owner_id = name(&id->owner_id),
				.entry_id = name(&id->entry_id)};
	struct pack_writer p = begin(w, DP_IDENTITY, DP_F_REQ, expect(w, DP_IDENTITY, 0));

	c->id = *id;
	c->has_id = true;
	dp_put_identity(&p, &m);
	put(w, &p);
}

static void lease(struct world *w, int64_t deadline)
{
	struct dp_lease_extend m = {.lease_gen = (uint64_t)w->control->id.lease_gen,
				    .deadline = (uint64_t)deadline,
				    .sequence = ++w->control->lease_sequence};
	struct pack_writer p = begin(w, DP_LEASE_EXTEND, DP_F_EVT, 0);

	dp_put_lease_extend(&p, &m);
	put(w, &p);
}

static void lease_lost(struct world *w, const char *why)
{
	struct dp_lease_lost m = {.reason = dp_text(why)};
	struct pack_writer p = begin(w, DP_LEASE_LOST, DP_F_EVT, 0);

	w->may_lose = true;
	sim_ended_quietly(w, NULL, 0);
	dp_put_lease_lost(&p, &m);
	put(w, &p);
}

static void host_state(struct world *w, enum auth_host_state state, int64_t deadline)
{
	struct dp_host_state m = {.state = (uint8_t)state, .deadline = (uint64_t)deadline};
	struct pack_writer p = begin(w, DP_HOST_STATE, DP_F_REQ, expect(w, DP_HOST_STATE, 0));

	w->control->is_serving = state == AUTH_HOST_SERVING;
	dp_put_host_state(&p, &m);
	put(w, &p);
}

static void next_page(struct world *w, uint64_t cursor)
{
	struct dp_resync m = {.lane = w->control->inventory_lane, .cursor = cursor};
	struct pack_writer p = begin(w, DP_RESYNC, DP_F_REQ, expect(w, DP_INVENTORY, 0));

	dp_put_resync(&p, &m);
	put(w, &p);
}

static void lifecycle_check(struct world *w, const struct spl_name *rid, uint64_t lifecycle)
{
	struct auth_event e = {.kind = AUTH_EV_LIFECYCLE};
	struct agent *a = w->agent;
	bool held = a && a->state == DP_STATE_IDENTIFIED && a->rid.len == rid->len &&
		    memcmp(a->rid.b, rid->b, rid->len) == 0;

	e.u.lifecycle.rid = *rid;
	e.u.lifecycle.lifecycle = lifecycle;
	e.u.lifecycle.state = held ? AUTH_LIFE_HELD : AUTH_LIFE_ENDED;
	event(w, &e);
}

static void mesh_reply(struct world *w, const struct auth_reply *r);

static void pump(struct world *w)
{
	struct sim_control *c = w->control;
	struct auth_effect fx;

	while (auth_next(c->auth, &fx)) {
		switch (fx.kind) {
		case AUTH_FX_STORE:
			c->batch = fx.u.store;
			c->batch_at = w->now + t_rand_below(&w->rand, 400) * SIM_US;
			break;
		case AUTH_FX_REPLY:
			mesh_reply(w, &fx.u.reply);
			break;
		case AUTH_FX_PREPARE:
		case AUTH_FX_PUBLISH:
		case AUTH_FX_DISCARD:
		case AUTH_FX_CLOSE_LOCAL:
			command(w, fx.kind, &fx.u.command);
			break;
		case AUTH_FX_HOST_READY:
			identity(w, fx.u.host.id, fx.u.host.deadline);
			break;
		case AUTH_FX_HOST_STATE:
			host_state(w, fx.u.state.state, fx.u.state.deadline);
			break;
		case AUTH_FX_LEASE:
			lease(w, fx.u.host.deadline);
			break;
		case AUTH_FX_LEASE_LOST:
			lease_lost(w, fx.u.stop.text);
			break;
		case AUTH_FX_INVENTORY:
			c->inventory_lane = 0;
			next_page(w, 0);
			break;
		case AUTH_FX_LIFECYCLE_CHECK:
			lifecycle_check(w, &fx.u.check.rid, fx.u.check.lifecycle);
			break;
		case AUTH_FX_LIFECYCLE_GONE: /* the world remembers every one */
			break;
		case AUTH_FX_HOST_STOPPED:
			sim_problem(w, "the authority stopped: %s", fx.u.stop.text);
			break;
		case AUTH_FX_LOG:
			sim_note(w, "authority: %s", fx.u.log.text);
			break;
		}
	}
}

/* ---- requests of clients and Spots ---- */

static void mesh_done(struct world *w, uint64_t corr, int kind, const void *p, int n)
{
	struct dp_mesh_op_done m = {.kind = (uint8_t)kind, .body = {p, (uint32_t)(n > 0 ? n : 0)}};
	struct pack_writer out = begin(w, DP_MESH_OP_DONE, DP_F_REP, corr);

	dp_put_mesh_op_done(&out, &m);
	put(w, &out);
}

static int read_body(uint8_t op, struct pack_bytes b, struct auth_request *r)
{
	struct wire_create c;
	struct wire_ref ref;
	struct pack_bytes id, type;
	int rc;

	switch (op) {
	case DP_OP_ACTIVATE:
		rc = wire_intent_get(&id, &type, b.p, b.len);
		r->verb = AUTH_ACTIVATE;
		r->op.hi = 1;
		r->id = (struct auth_bytes){id.p, id.len};
		r->type = (struct auth_bytes){type.p, type.len};
		return rc;
	case SPL_MSG_CREATE:
		rc = wire_create_get(&c, b.p, b.len);
		if (rc)
			return rc;
		r->verb = c.mode == WIRE_CREATE ? AUTH_CREATE : AUTH_GET_OR_CREATE;
		r->op.lo = c.operation;
		r->id = (struct auth_bytes){c.id.p, c.id.len};
		r->type = (struct auth_bytes){c.type.p, c.type.len};
		r->request = (struct auth_bytes){c.request.p, c.request.len};
		return 0;
	case SPL_MSG_CLOSE_SPOT:
		rc = wire_close_get(&r->op.lo, &ref, b.p, b.len);
		if (rc)
			return rc;
		r->verb = AUTH_CLOSE;
		r->id = (struct auth_bytes){ref.id.p, ref.id.len};
		r->obj_gen = ref.generation;
		return 0;
	default:
		rc = wire_id_get(&id, b.p, b.len);
		r->verb = op == SPL_MSG_FIND ? AUTH_FIND : AUTH_RESOLVE;
		r->id = (struct auth_bytes){id.p, id.len};
		return rc;
	}
}

static void mesh_op(struct world *w, uint64_t corr, const struct dp_mesh_op *m)
{
	struct sim_control *c = w->control;
	struct auth_request r = {.verb = AUTH_FIND};
	uint32_t i = 1;

	while (i < ASKS_MAX && c->asked[i].is_used)
		i++;
	if (i == ASKS_MAX || read_body(m->op, m->body, &r) ||
	    spl_name_set(&r.op.rid, m->source_rid.p, m->source_rid.len)) {
		sim_problem(w, "a control message does not decode");
		return;
	}
	r.tag = i;
	if (m->op == DP_OP_ACTIVATE)
		r.op.lo = corr;
	r.op.lifecycle = m->source;
	r.deadline = (int64_t)(m->deadline ? m->deadline : w->now + 10 * SIM_S);
	c->asked[i] = (struct asked){true, m->op, corr, c->connection};
	if (auth_submit(c->auth, &r, (int64_t)w->now)) {
		c->asked[i].is_used = false;
		mesh_done(w, corr, SPL_E_CAPACITY_EXCEEDED, NULL, 0);
	}
}

/* A Spot closes itself, or has been idle. */
static void self_close(struct world *w, struct pack_reader *body)
{
	struct sim_control *c = w->control;
	struct auth_request r = {.verb = AUTH_CLOSE, .own = true};
	struct dp_self_close m;

	dp_get_self_close(body, &m);
	if (!dp_done(body))
		sim_problem(w, "SELF_CLOSE does not decode");
	spl_name_set(&r.op.rid, "control", 7);
	r.op.lifecycle = 1;
	r.op.lo = ++c->serial;
	r.id = (struct auth_bytes){m.id.p, m.id.len};
	r.obj_gen = m.obj_gen;
	r.reason = (enum auth_close_reason)m.reason;
	r.deadline = (int64_t)(w->now + 10 * SIM_S);
	(void)auth_submit(c->auth, &r, (int64_t)w->now); /* refused: it asks again */
}

static struct wire_ref ref_of(const struct auth_entry *e)
{
	return (struct wire_ref){bytes(e->id), e->obj_gen, bytes(e->mesh), bytes(e->rid)};
}

static int write_body(struct world *w, const struct asked *q, const struct auth_reply *r,
		      uint8_t *p, size_t cap)
{
	struct wire_create_reply created;
	struct wire_route route = {.tag = WIRE_ROUTE_NONE};
	struct wire_ref ref;

	switch (q->op) {
	case DP_OP_ACTIVATE:
		return 0;
	case SPL_MSG_CREATE:
		created = (struct wire_create_reply){(uint8_t)r->created, ref_of(&r->entry),
						     bytes(r->reply)};
		return wire_create_reply_put(p, cap, &created);
	case SPL_MSG_FIND:
		ref = ref_of(&r->entry);
		return wire_find_reply_put(p, cap, r->found ? &ref : NULL);
	case SPL_MSG_CLOSE_SPOT:
		return wire_close_reply_put(p, cap, r->closed);
	default:
		if (r->route == AUTH_ROUTE_READY) {
			route = (struct wire_route){
				WIRE_ROUTE_READY, (uint8_t)w->control->lanes, 0, r->entry.lifecycle,
				r->entry.obj_gen, bytes(r->entry.rid)};
			if (r->valid_until > (int64_t)w->now)
				route.valid_ms =
					(uint32_t)((uint64_t)(r->valid_until - (int64_t)w->now) /
						   SIM_MS);
		}
		return wire_route_put(p, cap, &route);
	}
}

static void mesh_reply(struct world *w, const struct auth_reply *r)
{
	struct asked q = w->control->asked[r->tag % ASKS_MAX];
	uint8_t body[4096];
	int kind = r->kind, n = 0;

	if (r->verb == AUTH_RECLAIM_NODE) {
		sim_note(w, "reclaimed %u rows, kept %u: %s", r->reclaimed, r->kept,
			 spl_error_name(r->kind));
		return;
	}
	if (r->tag == 0)
		return; /* a Spot's own close */
	w->control->asked[r->tag % ASKS_MAX].is_used = false;
	if (q.connection != w->control->connection)
		return;
	if (r->verb == AUTH_RESOLVE && r->route == AUTH_ROUTE_MISSING)
		kind = SPL_OK;
	if (kind == SPL_OK)
		n = write_body(w, &q, r, body, sizeof(body));
	mesh_done(w, q.corr, kind, body, n);
}

/* ---- packets of the dataplane ---- */

static void start_lifecycle(struct world *w, const struct dp_hello *m)
{
	static struct auth_type types[2];
	struct sim_control *c = w->control;
	struct auth_event e = {.kind = AUTH_EV_HOST_START};

	spl_name_set(&types[0].name, "sim", 3);
	types[0].kind = SPL_KIND_USER;
	spl_name_set(&types[1].name, SIM_TWIN, strlen(SIM_TWIN));
	types[1].kind = SPL_KIND_INSTANCE;
	c->lanes = w->plan.lanes;
	e.u.host.types = types;
	e.u.host.n_types = 2;
	e.u.host.endpoint = (struct auth_bytes){"x", 1};
	e.u.host.lanes = c->lanes;
	if (m->state == DP_STATE_IDENTIFIED) {
		e.kind = AUTH_EV_HOST_RESUME;
		spl_name_set(&e.u.host.id.rid, m->rid.p, m->rid.len);
		spl_name_set(&e.u.host.id.owner_id, m->owner_id.p, m->owner_id.len);
		spl_name_set(&e.u.host.id.entry_id, m->entry_id.p, m->entry_id.len);
		e.u.host.id.lifecycle = m->node_gen;
		e.u.host.id.lease_gen = (int64_t)m->lease_gen;
		e.u.host.id.entry_gen = (int64_t)m->entry_gen;
		e.u.host.id.entry_ver = (int64_t)m->entry_ver;
		c->id = e.u.host.id;
		c->has_id = true;
	}
	c->life_epoch = c->epoch;
	event(w, &e);
}

static void on_hello(struct world *w, const struct dp_header *h, struct pack_reader *r)
{
	struct sim_control *c = w->control;
	struct dp_hello m;

	dp_get_hello(r, &m);
	if (!dp_done(r)) {
		sim_problem(w, "HELLO does not decode");
		return;
	}
	c->epoch = h->epoch;
	if (c->life_epoch && c->life_epoch != c->epoch)
		sim_problem(w, "a new dataplane came before the old one was known dead");
	start_lifecycle(w, &m);
}

static void on_answer(struct world *w, uint16_t type, const struct waiting *q,
		      struct pack_reader *r)
{
	struct auth_event e = {.kind = AUTH_EV_ANSWER};
	struct dp_prepared prepared;
	struct dp_closed closed;
	struct dp_ok ok;

	e.u.answer.cmd = q->cmd;
	e.u.answer.kind = SPL_OK;
	e.u.answer.text = "";
	if (type == DP_PREPARED) {
		dp_get_prepared(r, &prepared);
		e.u.answer.verdict = prepared.result == DP_PREPARED_ACCEPTED   ? AUTH_ACCEPTED
				     : prepared.result == DP_PREPARED_REJECTED ? AUTH_DECLINED
									       : AUTH_FAILED;
		if (prepared.result == DP_PREPARED_FAILED)
			e.u.answer.kind = prepared.kind;
		e.u.answer.reply = (struct auth_bytes){prepared.reply.p, prepared.reply.len};
	} else if (type == DP_CLOSED) {
		dp_get_closed(r, &closed);
		if (closed.result == DP_CLOSED_FAILED)
			e.u.answer.kind = closed.kind;
		if (closed.result == DP_CLOSED_LATE)
			e.u.answer.kind = SPL_E_DEADLINE_EXCEEDED;
		if (closed.result == DP_CLOSED_BUSY)
			e.u.answer.verdict = AUTH_DECLINED;
	} else {
		dp_get_ok(r, &ok);
		e.u.answer.kind = ok.kind;
		if (ok.kind != SPL_OK)
			e.u.answer.verdict = AUTH_FAILED;
	}
	if (!dp_done(r))
		sim_problem(w, "%s does not decode", dp_type_name(type));
	event(w, &e);
}

static void on_inventory(struct world *w, struct pack_reader *r)
{
	struct auth_event e = {.kind = AUTH_EV_INVENTORY};
	struct pack_reader list;
	struct dp_inventory m;

	dp_get_inventory(r, &m);
	list = (struct pack_reader){.p = m.objects.p, .left = m.objects.len};
	while (list.left && !list.bad) {
		struct dp_object o;

		dp_get_object(&list, &o);
		e.u.inventory.id = (struct auth_bytes){o.id.p, o.id.len};
		e.u.inventory.obj_gen = o.obj_gen;
		e.u.inventory.own_gen = o.own_gen;
		e.u.inventory.attempt = o.attempt;
		e.u.inventory.state = o.state == DP_OBJECT_STAGING ? AUTH_INV_STAGING
				      : o.state == DP_OBJECT_READY ? AUTH_INV_READY
								   : AUTH_INV_CLOSING;
		event(w, &e);
	}
	if (!m.more)
		w->control->inventory_lane++;
	if (w->control->inventory_lane < w->control->lanes) {
		next_page(w, m.more ? m.cursor : 0);
		return;
	}
	e.kind = AUTH_EV_INVENTORY_END;
	event(w, &e);
}

static void packet(struct world *w, const struct dp_header *h, struct pack_reader *r)
{
	struct waiting q;
	struct dp_mesh_op m;

	switch (h->type) {
	case DP_HELLO:
		on_hello(w, h, r);
		return;
	case DP_MESH_OP:
		dp_get_mesh_op(r, &m);
		mesh_op(w, h->corr, &m);
		return;
	case DP_SELF_CLOSE:
		self_close(w, r);
		return;
	case DP_INVENTORY:
		if (answered(w, h->corr, &q))
			on_inventory(w, r);
		return;
	case DP_OK:
	case DP_PREPARED:
	case DP_CLOSED:
		if (answered(w, h->corr, &q) && q.cmd)
			on_answer(w, h->type, &q, r);
		return;
	default:
		sim_problem(w, "the dataplane sent %s", dp_type_name(h->type));
	}
}

/* ---- life ---- */

static void random_of(void *ctx, void *buf, size_t n)
{
	sim_random(ctx, buf, n);
}

void sim_control_start(struct world *w)
{
	struct sim_control *c = calloc(1, sizeof(*c));
	struct auth_config cfg;

	if (!c)
		abort();
	w->control = c;
	auth_config_init(&cfg);
	spl_name_set(&cfg.mesh, "default", 7);
	memcpy(cfg.prefix, "sim", 4);
	cfg.reclaim_on_restart = w->plan.reclaim_on_restart;
	if (w->plan.leap) {
		cfg.ttl_ns = 3 * (int64_t)SIM_S;
		cfg.margin_ns = (int64_t)SIM_S;
		cfg.renew_ns = cfg.renew_timeout_ns = 500 * (int64_t)SIM_MS;
	}
	cfg.random = random_of;
	cfg.random_ctx = w;
	if (auth_create(&c->auth, &cfg))
		abort();
	c->connection = t_rand_below(&w->rand, 1u << 30) + 1;
	sim_note(w, "control starts");
}

/* What is out is committed or not; the answer reaches nobody. */
void sim_control_kill(struct world *w)
{
	struct sim_control *c = w->control;

	if (!c)
		return;
	sim_note(w, "control dies");
	if (c->batch) {
		if (sim_chance(w, 5000))
			store_run(w->store, c->batch);
		auth_store_done(c->auth, c->batch, (int64_t)w->now);
	}
	auth_destroy(c->auth);
	free(c);
	w->control = NULL;
	w->ctl_paused = 0;
	sim_sock_connect(w, false);
}

static void look_at_dataplane(struct world *w)
{
	struct sim_control *c = w->control;
	struct auth_event dead = {.kind = AUTH_EV_HOST_DEAD};

	if (c->life_epoch && (!w->agent || w->agent->epoch != c->life_epoch)) {
		/* the kernel tells of the end of a process at once */
		c->life_epoch = c->epoch = 0;
		c->is_connected = c->is_serving = c->has_id = false;
		c->connection++;
		memset(c->waiting, 0, sizeof(c->waiting));
		event(w, &dead);
	}
	if (!c->is_connected && w->agent) {
		c->is_connected = true;
		c->connection++;
		memset(c->waiting, 0, sizeof(c->waiting));
		sim_sock_connect(w, true);
	}
}

void sim_control_step(struct world *w)
{
	struct sim_control *c = w->control;
	struct pack_reader r;
	struct dp_header h;

	if (!c || w->now < w->ctl_paused)
		return;
	look_at_dataplane(w);
	pump(w);
	while (c->is_connected && sim_control_take(w, &h, &r)) {
		packet(w, &h, &r);
		pump(w);
	}
	if (c->batch && c->batch_at <= w->now) {
		struct store_batch *b = c->batch;

		c->batch = NULL;
		store_run(w->store, b);
		auth_store_done(c->auth, b, (int64_t)w->now);
		pump(w);
	}
	if (auth_next_tick(c->auth) <= (int64_t)w->now) {
		auth_tick(c->auth, (int64_t)w->now);
		pump(w);
	}
}

/* What an operator does after a death: frees what the dead node owned. */
void sim_control_reclaim(struct world *w)
{
	struct sim_control *c = w->control;

	if (!c || !c->is_serving)
		return;
	while (w->n_dead > 0) {
		const struct spl_name *rid = &w->dead[--w->n_dead];
		struct auth_request r = {.verb = AUTH_RECLAIM_NODE,
					 .deadline = (int64_t)(w->now + 10 * SIM_S),
					 .id = {rid->b, rid->len}};

		if (auth_submit(c->auth, &r, (int64_t)w->now))
			sim_problem(w, "reclaim is refused");
	}
	pump(w);
}

bool sim_control_serving(const struct world *w)
{
	return w->control && w->control->is_serving;
}

bool sim_control_idle(const struct world *w)
{
	return w->control && !w->control->batch;
}
