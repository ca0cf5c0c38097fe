/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fake dataplane answers: see t_ctl.h. */
#include "tests/lib/t_ctl_priv.h"

#include <spotlane/errors.h>
#include <spotlane/stage.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- objects ---- */

/* The Entry Spot has counters of its own, which no test looks at but for its closing. */
static struct t_ctl_seen *seen_of(struct t_ctl *f, struct pack_bytes id)
{
	bool entry = id.len == strlen(f->entry_id) && memcmp(f->entry_id, id.p, id.len) == 0;

	return entry ? &f->seen_entry : f->seen;
}

static struct t_ctl_seen *seen_by(struct t_ctl *f, const struct t_ctl_object *o)
{
	return seen_of(f, (struct pack_bytes){o->id.b, o->id.len});
}

static uint32_t bucket_of(struct pack_bytes id)
{
	struct spl_key k = spl_spot_key(id.p, id.len);

	return (uint32_t)(k.b[14] << 8 | k.b[15]) % T_CTL_BUCKETS;
}

static struct t_ctl_object *find(struct t_ctl *f, struct pack_bytes id)
{
	struct t_ctl_object *o;

	if (!spl_name_valid(id.p, id.len))
		return NULL;
	for (o = f->bucket[bucket_of(id)]; o; o = o->next)
		if (o->id.len == id.len && memcmp(o->id.b, id.p, id.len) == 0)
			return o;
	return NULL;
}

struct t_ctl_object *t_ctl_find(struct t_ctl *f, const char *id)
{
	return find(f, dp_text(id));
}

void t_ctl_object_free(struct t_ctl *f, struct t_ctl_object *o)
{
	struct t_ctl_object **p = &f->bucket[bucket_of((struct pack_bytes){o->id.b, o->id.len})];

	while (*p != o)
		p = &(*p)->next;
	*p = o->next;
	seen_by(f, o)->objects--;
	if (o->state == DP_OBJECT_READY)
		seen_by(f, o)->ready--;
	free(o->request);
	free(o);
}

static struct t_ctl_object *add(struct t_ctl *f, struct pack_bytes id, uint64_t obj_gen)
{
	struct t_ctl_object *o = calloc(1, sizeof(*o));
	struct spl_key k = spl_spot_key(id.p, id.len);

	if (!o || spl_name_set(&o->id, id.p, id.len))
		abort();
	o->obj_gen = obj_gen;
	o->lane = spl_key_lane(&k, f->o.lanes);
	o->next = f->bucket[bucket_of(id)];
	f->bucket[bucket_of(id)] = o;
	seen_by(f, o)->objects++;
	if (obj_gen > f->seen->largest_gen)
		f->seen->largest_gen = obj_gen;
	return o;
}

void t_ctl_plant(struct t_ctl *f, const char *id, uint64_t obj_gen, enum dp_object_state state)
{
	struct t_ctl_object *o = add(f, dp_text(id), obj_gen);

	o->state = state;
	o->own_gen = 1;
	o->attempt = 1;
	if (state == DP_OBJECT_READY)
		f->seen->ready++;
}

/* ---- answers ---- */

static void ok(struct t_ctl *f, uint64_t corr, int kind, const char *text)
{
	const struct dp_ok m = {.kind = (uint8_t)kind, .text = dp_text(text)};

	dp_put_ok(t_ctl_begin(f, DP_OK, DP_F_REP, corr), &m);
	t_ctl_send(f, -1);
}

static void configured(struct t_ctl *f, uint64_t corr)
{
	uint8_t types[8192], ports[512];
	struct pack_writer tw = {.p = types, .cap = sizeof(types)};
	struct pack_writer pw = {.p = ports, .cap = sizeof(ports)};
	struct dp_configured m = {.ok = !f->o.refuse, .lanes = f->o.lanes};
	const struct dp_port_up port = {
		.name = dp_text("fake0"), .driver = dp_text("fake"), .mac = 0x020000000001ULL};

	for (int i = 0; i < T_CTL_TYPES_MAX && f->o.types[i]; i++) {
		const struct dp_stage_type t = {
			.kind = (uint8_t)t_ctl_kind_of(f->o.types[i]),
			.type = dp_text(f->o.types[i]),
			.version = dp_text("1"),
			.module = dp_text("fake.so"),
		};

		dp_put_stage_type(&tw, &t);
	}
	dp_put_port_up(&pw, &port);
	if (f->o.refuse) {
		m.exit_code = 78;
		m.text = dp_text(f->o.refuse);
	}
	m.types = (struct pack_bytes){types, (uint32_t)tw.len};
	m.ports = (struct pack_bytes){ports, (uint32_t)pw.len};
	dp_put_configured(t_ctl_begin(f, DP_CONFIGURED, DP_F_REP, corr), &m);
	t_ctl_send(f, f->o.refuse ? -1 : dup(f->stats_fd));
}

static void keep_text(char out[256], struct pack_bytes t)
{
	memcpy(out, t.p, t.len);
	out[t.len] = 0;
}

static void identity(struct t_ctl *f, uint64_t corr, struct pack_reader *r)
{
	struct dp_identity m;

	dp_get_identity(r, &m);
	if (!dp_done(r)) {
		ok(f, corr, SPL_E_PROTOCOL_ERROR, "malformed");
		return;
	}
	f->id = m;
	keep_text(f->rid, m.rid);
	keep_text(f->owner_id, m.owner_id);
	keep_text(f->entry_id, m.entry_id);
	strcpy(f->seen->rid, f->rid);
	f->seen->identities++;
	f->seen->node_gen = m.node_gen;
	f->seen->lease_gen = m.lease_gen;
	f->seen->lease_deadline = m.lease_deadline;
	f->seen->fenced = false;
	f->seen->state = DP_STATE_IDENTIFIED;
	ok(f, corr, SPL_OK, "");
}

static void answer_prepare(struct t_ctl *f, struct t_ctl_object *o)
{
	struct dp_prepared m = {.attempt = o->attempt, .result = o->result};
	int fd;

	if (o->result == DP_PREPARED_FAILED) {
		m.kind = SPL_E_INTERNAL_FAILURE;
		m.text = dp_text("on_create failed");
	} else {
		m.kind = SPL_OK;
		m.reply = (struct pack_bytes){o->request, o->request_len};
	}
	if (dp_field_out(&m.reply, &fd) < 0)
		abort();
	dp_put_prepared(t_ctl_begin(f, DP_PREPARED, DP_F_REP, o->corr), &m);
	t_ctl_send(f, fd);
	o->waiting = false;
	if (o->result != DP_PREPARED_ACCEPTED)
		t_ctl_object_free(f, o); /* as the dataplane does */
}

static void prepare(struct t_ctl *f, uint64_t corr, struct pack_reader *r, int fd)
{
	struct dp_obj_prepare m;
	struct dp_blob blob = {NULL, 0};
	struct t_ctl_object *o;

	dp_get_obj_prepare(r, &m);
	if (!dp_done(r) || dp_field_in(&m.request, fd, &blob) < 0 ||
	    !spl_name_valid(m.id.p, m.id.len)) {
		ok(f, corr, SPL_E_PROTOCOL_ERROR, "malformed");
		return;
	}
	seen_of(f, m.id)->prepares++;
	o = find(f, m.id);
	if (o && o->attempt != m.attempt) {
		ok(f, corr, SPL_E_ALREADY_EXISTS, "another incarnation is here");
		goto out;
	}
	if (!o) {
		seen_of(f, m.id)->factories++;
		o = add(f, m.id, m.obj_gen);
		o->state = DP_OBJECT_STAGING;
		o->own_gen = m.own_gen;
		o->attempt = m.attempt;
		o->request = malloc(m.request.len + 1);
		o->request_len = m.request.len;
		if (m.request.len)
			memcpy(o->request, m.request.p, m.request.len);
		o->waiting = m.type.len == 4 && memcmp(m.type.p, "hold", 4) == 0;
		if (m.type.len == 6 && memcmp(m.type.p, "reject", 6) == 0)
			o->result = DP_PREPARED_REJECTED;
		if (m.type.len == 4 && memcmp(m.type.p, "fail", 4) == 0)
			o->result = DP_PREPARED_FAILED;
	}
	o->corr = corr;
	if (!o->waiting)
		answer_prepare(f, o);
out:
	dp_blob_unmap(&blob);
}

void t_ctl_release(struct t_ctl *f)
{
	for (size_t i = 0; i < T_CTL_BUCKETS; i++)
		for (struct t_ctl_object *o = f->bucket[i], *next; o; o = next) {
			next = o->next;
			if (o->waiting)
				answer_prepare(f, o);
		}
}

static void publish(struct t_ctl *f, uint64_t corr, struct pack_reader *r)
{
	struct dp_obj_publish m;
	struct t_ctl_object *o;

	dp_get_obj_publish(r, &m);
	o = dp_done(r) ? find(f, m.id) : NULL;
	seen_of(f, m.id)->publishes++;
	if (!o || o->obj_gen != m.obj_gen) {
		ok(f, corr, SPL_E_NOT_FOUND, "no such incarnation");
		return;
	}
	if (o->state == DP_OBJECT_STAGING)
		seen_by(f, o)->ready++;
	o->state = DP_OBJECT_READY;
	o->own_gen = m.own_gen;
	o->ver = m.ver;
	o->lease_gen = f->id.lease_gen;
	ok(f, corr, SPL_OK, "");
}

static void discard(struct t_ctl *f, uint64_t corr, struct pack_reader *r)
{
	struct dp_obj_discard m;
	struct t_ctl_object *o;

	dp_get_obj_discard(r, &m);
	o = dp_done(r) ? find(f, m.id) : NULL;
	f->seen->discards++;
	if (o && o->attempt == m.attempt)
		t_ctl_object_free(f, o);
	ok(f, corr, SPL_OK, "");
}

static void close_now(struct t_ctl *f, uint64_t corr, const struct dp_obj_close *m,
		      struct pack_bytes id)
{
	struct dp_closed out = {.result = DP_CLOSED_MISSING, .kind = SPL_OK};
	struct t_ctl_object *o = find(f, id);

	if (o && o->obj_gen == m->obj_gen) {
		out.result = DP_CLOSED_DONE;
		if (m->reason < 4)
			seen_of(f, id)->on_closing[m->reason]++;
		f->seen->entry_closings += seen_of(f, id) == &f->seen_entry;
		t_ctl_object_free(f, o);
	}
	dp_put_closed(t_ctl_begin(f, DP_CLOSED, DP_F_REP, corr), &out);
	t_ctl_send(f, -1);
}

static void close_object(struct t_ctl *f, uint64_t corr, struct pack_reader *r)
{
	struct dp_obj_close m;
	struct t_ctl_close *c;
	struct t_ctl_object *o;

	dp_get_obj_close(r, &m);
	if (!dp_done(r)) {
		ok(f, corr, SPL_E_PROTOCOL_ERROR, "malformed");
		return;
	}
	seen_of(f, m.id)->closes++;
	if (!f->hold_closes) {
		close_now(f, corr, &m, m.id);
		return;
	}
	o = find(f, m.id);
	if (o && o->obj_gen == m.obj_gen && o->state == DP_OBJECT_READY) {
		o->state = DP_OBJECT_CLOSING;
		seen_by(f, o)->ready--;
	}
	c = calloc(1, sizeof(*c));
	if (!c || spl_name_set(&c->id, m.id.p, m.id.len))
		abort();
	c->corr = corr;
	c->m = m;
	c->next = f->closes;
	f->closes = c;
}

void t_ctl_hold_closes(struct t_ctl *f, bool hold)
{
	f->hold_closes = hold;
	while (!hold && f->closes) {
		struct t_ctl_close *c = f->closes;

		close_now(f, c->corr, &c->m, (struct pack_bytes){c->id.b, c->id.len});
		f->closes = c->next;
		free(c);
	}
}

/* Pages are cut by bucket: the cursor is the next bucket. */
static void resync(struct t_ctl *f, uint64_t corr, struct pack_reader *r)
{
	static uint8_t buf[49152];
	struct pack_writer w = {.p = buf, .cap = sizeof(buf)};
	struct dp_inventory out = {.more = 0};
	struct dp_resync m;
	unsigned n = 0;
	size_t i;

	dp_get_resync(r, &m);
	f->seen->resyncs++;
	for (i = m.cursor; i < T_CTL_BUCKETS && n + 16 < DP_INVENTORY_MAX; i++) {
		for (struct t_ctl_object *o = f->bucket[i]; o; o = o->next) {
			const struct dp_object x = {
				.state = (uint8_t)o->state,
				.obj_gen = o->obj_gen,
				.own_gen = o->own_gen,
				.attempt = o->attempt,
				.id = {o->id.b, o->id.len},
			};

			if (o->lane != m.lane)
				continue;
			dp_put_object(&w, &x);
			n++;
		}
	}
	out.lane = m.lane;
	out.cursor = i;
	out.more = i < T_CTL_BUCKETS;
	out.objects = (struct pack_bytes){buf, (uint32_t)w.len};
	dp_put_inventory(t_ctl_begin(f, DP_INVENTORY, DP_F_REP, corr), &out);
	t_ctl_send(f, -1);
}

static void spot_call(struct t_ctl *f, uint64_t corr, struct pack_reader *r, int fd)
{
	struct dp_spot_called out = {.kind = SPL_OK};
	struct dp_blob blob = {NULL, 0};
	struct dp_spot_call m;
	struct t_ctl_object *o;
	int out_fd = -1;

	dp_get_spot_call(r, &m);
	if (!dp_done(r) || dp_field_in(&m.payload, fd, &blob) < 0) {
		ok(f, corr, SPL_E_PROTOCOL_ERROR, "malformed");
		return;
	}
	f->seen->calls++;
	if (m.packet.len == 6 && memcmp(m.packet.p, "refuse", 6) == 0) {
		ok(f, corr, SPL_E_CAPACITY_EXCEEDED, "no room for it");
		dp_blob_unmap(&blob);
		return;
	}
	o = find(f, m.id);
	if (f->seen->fenced || t_ctl_now(f) >= f->seen->lease_deadline)
		out.kind = SPL_E_UNAVAILABLE;
	else if (!o || o->state != DP_OBJECT_READY)
		out.kind = SPL_E_NOT_FOUND;
	else if (m.is_request)
		out.payload = m.payload; /* echo */
	if (dp_field_out(&out.payload, &out_fd) < 0)
		abort();
	dp_put_spot_called(t_ctl_begin(f, DP_SPOT_CALLED, DP_F_REP, corr), &out);
	t_ctl_send(f, out_fd);
	dp_blob_unmap(&blob);
}

static void events(struct t_ctl *f, uint16_t type, struct pack_reader *r)
{
	struct dp_lease_extend e;
	struct dp_lease_lost l;

	if (type == DP_LEASE_EXTEND) {
		dp_get_lease_extend(r, &e);
		f->seen->extends++;
		if (dp_done(r) && e.deadline > f->seen->lease_deadline)
			f->seen->lease_deadline = e.deadline;
	} else if (type == DP_LEASE_LOST) {
		dp_get_lease_lost(r, &l);
		f->seen->losts++;
		f->seen->fenced = true;
	} else {
		f->seen->unknown++;
	}
}

static void host_state(struct t_ctl *f, uint64_t corr, struct pack_reader *r)
{
	struct dp_host_state m;

	dp_get_host_state(r, &m);
	f->seen->host_states++;
	f->seen->host_state = m.state;
	ok(f, corr, SPL_OK, "");
}

static void mesh_op_done(struct t_ctl *f, uint64_t corr, struct pack_reader *r, int fd)
{
	struct dp_mesh_op_done m;
	struct dp_blob blob = {NULL, 0};

	dp_get_mesh_op_done(r, &m);
	if (!dp_done(r) || dp_field_in(&m.body, fd, &blob) < 0)
		abort();
	if (f->on_reply)
		f->on_reply(f->on_reply_ctx, corr, &m);
	dp_blob_unmap(&blob);
}

static void requests(struct t_ctl *f, const struct dp_header *h, struct pack_reader *r, int fd)
{
	struct dp_config cfg;
	struct dp_exit_req e;
	struct dp_trace trace;

	switch (h->type) {
	case DP_CONFIG:
		dp_get_config(r, &cfg);
		f->seen->configs++;
		if (f->seen->state == DP_STATE_WAITING && !f->o.refuse) {
			f->seen->state = DP_STATE_CONFIGURED;
			f->config_hash = cfg.config_hash;
		}
		configured(f, h->corr);
		break;
	case DP_IDENTITY:
		identity(f, h->corr, r);
		break;
	case DP_HOST_STATE:
		host_state(f, h->corr, r);
		break;
	case DP_RESYNC:
		resync(f, h->corr, r);
		break;
	case DP_OBJ_PREPARE:
		prepare(f, h->corr, r, fd);
		break;
	case DP_OBJ_PUBLISH:
		publish(f, h->corr, r);
		break;
	case DP_OBJ_DISCARD:
		discard(f, h->corr, r);
		break;
	case DP_OBJ_CLOSE:
		close_object(f, h->corr, r);
		break;
	case DP_SPOT_CALL:
		spot_call(f, h->corr, r, fd);
		break;
	case DP_TRACE:
		dp_get_trace(r, &trace);
		f->seen->trace_level = trace.level;
		f->seen->trace_share = trace.share;
		ok(f, h->corr, SPL_OK, "");
		break;
	case DP_EXIT:
		dp_get_exit_req(r, &e);
		f->seen->exits++;
		f->seen->exit_forced = e.forced;
		f->seen->exited = true;
		ok(f, h->corr, SPL_OK, "");
		break;
	default:
		f->seen->unknown++;
		ok(f, h->corr, SPL_E_PROTOCOL_ERROR, "unknown type");
	}
}

void t_ctl_serve(struct t_ctl *f, const struct dp_header *h, struct pack_reader *r, int fd)
{
	if (h->flags == DP_F_EVT)
		events(f, h->type, r);
	else if (h->flags == DP_F_REQ)
		requests(f, h, r, fd);
	else if (h->flags == DP_F_REP && h->type == DP_MESH_OP_DONE)
		mesh_op_done(f, h->corr, r, fd);
	else
		f->seen->unknown++;
}
