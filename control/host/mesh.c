/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages of clients and handlers (MESH_OP): the bodies of common/wire_msg.h become
 * requests of the authority, its replies become MESH_OP_DONE: see host_priv.h. Loop thread only.
 */
#include "control/host/host_priv.h"
#include "common/wire_msg.h"

#include <errno.h>
#include <stdlib.h>

#define BODY_EXTRA 4096 /* bytes of a reply body beside the reply of on_create */

static void done(struct host *h, uint64_t corr, int kind, const void *body, size_t n)
{
	struct dp_mesh_op_done m = {
		.kind = (uint8_t)kind,
		.body = {body, (uint32_t)n},
	};
	int fd;

	if (dp_field_out(&m.body, &fd) < 0)
		host_fatal("no memfd for a reply");
	dp_put_mesh_op_done(dplink_begin(h->link, DP_MESH_OP_DONE), &m);
	dplink_reply(h->link, corr, fd);
}

/* ---- requests ---- */

static int take_create(struct auth_request *r, struct pack_bytes b)
{
	struct wire_create c;

	if (wire_create_get(&c, b.p, b.len) < 0)
		return -EBADMSG;
	r->verb = c.mode == WIRE_CREATE ? AUTH_CREATE : AUTH_GET_OR_CREATE;
	r->op.lo = c.operation;
	r->id = host_bytes(c.id);
	r->type = host_bytes(c.type);
	r->request = host_bytes(c.request);
	return 0;
}

static int take_close(struct auth_request *r, struct pack_bytes b)
{
	struct wire_ref ref;

	if (wire_close_get(&r->op.lo, &ref, b.p, b.len) < 0)
		return -EBADMSG;
	r->verb = AUTH_CLOSE;
	r->id = host_bytes(ref.id);
	r->obj_gen = ref.generation;
	return 0;
}

static int take_id(struct auth_request *r, struct pack_bytes b, enum auth_verb verb)
{
	struct pack_bytes id;

	if (wire_id_get(&id, b.p, b.len) < 0)
		return -EBADMSG;
	r->verb = verb;
	r->id = host_bytes(id);
	return 0;
}

/* Of a lane of this node alone. Its operation identities are apart from those of handlers. */
static int take_activate(struct auth_request *r, struct pack_bytes b, uint64_t corr)
{
	struct pack_bytes id, type;

	if (wire_intent_get(&id, &type, b.p, b.len) < 0)
		return -EBADMSG;
	r->verb = AUTH_ACTIVATE;
	r->op.hi = 1;
	r->op.lo = corr;
	r->id = host_bytes(id);
	r->type = host_bytes(type);
	return 0;
}

static int take_body(struct auth_request *r, uint8_t op, struct pack_bytes b)
{
	switch (op) {
	case SPL_MSG_CREATE:
		return take_create(r, b);
	case SPL_MSG_CLOSE_SPOT:
		return take_close(r, b);
	case SPL_MSG_FIND:
		return take_id(r, b, AUTH_FIND);
	case SPL_MSG_RESOLVE:
		return take_id(r, b, AUTH_RESOLVE);
	default:
		return -EBADMSG;
	}
}

static int submit(struct host *h, uint64_t corr, const struct dp_mesh_op *m)
{
	struct auth_request r = {.verb = AUTH_FIND};
	struct host_wait *w;
	int rc;

	rc = m->op == DP_OP_ACTIVATE ? take_activate(&r, m->body, corr)
				     : take_body(&r, m->op, m->body);
	if (rc < 0)
		return SPL_E_PROTOCOL_ERROR;
	if (spl_name_set(&r.op.rid, m->source_rid.p, m->source_rid.len) < 0)
		return SPL_E_PROTOCOL_ERROR;
	r.op.lifecycle = m->source;
	r.deadline =
		(int64_t)(m->deadline ? m->deadline
				      : host_now(h) + h->cfg->timeouts.create_ms * CLOCK_NS_PER_MS);
	w = host_wait_new(h, HOST_WAIT_MESH);
	w->connection = h->connection;
	w->corr = corr;
	w->op = m->op;
	if (m->op == DP_OP_ACTIVATE)
		host_activation_begins(h, w, r.type);
	rc = host_submit(h, w, &r);
	if (rc == 0)
		return SPL_OK;
	host_wait_free(w);
	return rc == -EBUSY    ? SPL_E_CAPACITY_EXCEEDED
	       : rc == -EINVAL ? SPL_E_INVALID_OPERATION
			       : SPL_E_INTERNAL_FAILURE;
}

int host_mesh_op(struct host *h, const struct dplink_msg *p)
{
	struct pack_reader body = p->body;
	struct dp_blob blob = {NULL, 0};
	struct dp_mesh_op m;
	int kind;

	dp_get_mesh_op(&body, &m);
	if (!dp_done(&body) || dp_field_in(&m.body, p->fd, &blob) < 0)
		return -EPROTO;
	kind = submit(h, p->h.corr, &m);
	dp_blob_unmap(&blob);
	if (kind != SPL_OK)
		done(h, p->h.corr, kind, NULL, 0);
	return 0;
}

/* ---- replies ---- */

static struct wire_ref ref_of(const struct auth_entry *e)
{
	return (struct wire_ref){
		.id = host_pack(e->id),
		.generation = e->obj_gen,
		.mesh = host_pack(e->mesh),
		.rid = host_pack(e->rid),
	};
}

static int put_created(uint8_t *p, size_t cap, const struct auth_reply *r)
{
	struct wire_create_reply c = {
		.state = r->created == AUTH_CREATED    ? WIRE_CREATED
			 : r->created == AUTH_EXISTING ? WIRE_EXISTING
						       : WIRE_REJECTED,
		.ref = ref_of(&r->entry),
		.reply = host_pack(r->reply),
	};

	return wire_create_reply_put(p, cap, &c);
}

/* How long a place may be cached: never past the owner's lease deadline, nor longer than
 * the operator allows. */
static uint32_t cache_ms(const struct host *h, int64_t valid_until)
{
	int64_t left = (valid_until - (int64_t)host_now(h)) / (int64_t)CLOCK_NS_PER_MS;
	int64_t most = h->cfg->route.cache_age_ms;

	return left < 0 ? 0 : (uint32_t)(left < most ? left : most);
}

static int put_route(struct host *h, uint8_t *p, size_t cap, const struct auth_reply *r)
{
	/* An object that exists and cannot be used is never told as missing (A-LOC-40, A-LOC-52).
	 */
	struct wire_route route = {
		.tag = r->route == AUTH_ROUTE_MISSING ? WIRE_ROUTE_NONE : WIRE_ROUTE_NOT_READY,
	};

	if (r->route == AUTH_ROUTE_READY) {
		route.tag = WIRE_ROUTE_READY;
		route.lanes = (uint8_t)h->lanes;
		route.valid_ms = cache_ms(h, r->valid_until);
		route.lifecycle = r->entry.lifecycle;
		route.generation = r->entry.obj_gen;
		route.rid = host_pack(r->entry.rid);
	}
	return wire_route_put(p, cap, &route);
}

static int put_body(struct host_wait *w, uint8_t *p, size_t cap, const struct auth_reply *r)
{
	struct wire_ref ref;

	switch (w->op) {
	case SPL_MSG_CREATE:
		return put_created(p, cap, r);
	case SPL_MSG_FIND:
		ref = ref_of(&r->entry);
		return wire_find_reply_put(p, cap, r->found ? &ref : NULL);
	case SPL_MSG_CLOSE_SPOT:
		return wire_close_reply_put(p, cap, r->closed);
	case DP_OP_ACTIVATE:
		return 0; /* that it is Ready says all */
	default:
		return put_route(w->h, p, cap, r);
	}
}

void host_mesh_reply(struct host_wait *w, const struct auth_reply *r)
{
	size_t cap = r->reply.n + BODY_EXTRA;
	struct host *h = w->h;
	uint8_t *p = NULL;
	int kind = r->kind, n = 0;

	if (w->op == DP_OP_ACTIVATE)
		host_activation_ended(h, w, r);
	/* The route's tags are closed: a missing object is an answer, not an error (A-LOC-52). */
	if (r->verb == AUTH_RESOLVE && r->route == AUTH_ROUTE_MISSING)
		kind = SPL_OK;
	if (!h->up || w->connection != h->connection)
		goto out; /* the dataplane has answered its peer itself */
	if (kind == SPL_OK) {
		p = malloc(cap);
		if (!p)
			host_fatal("out of memory");
		n = put_body(w, p, cap, r);
		if (n < 0) {
			kind = SPL_E_INTERNAL_FAILURE;
			n = 0;
		}
	}
	done(h, w->corr, kind, p, (size_t)n);
	free(p);
out:
	host_wait_free(w);
}
