/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: questions to control on behalf of peers and Spots, and calls of control to
 * Spots. Each question holds a slot of a bounded table; it is answered once: by control, or with
 * Unavailable when control is not there, goes away, or the deadline passes.
 */
#include "dataplane/agent/agent.h"

#include "common/dp_io.h"
#include "common/wire_msg.h"

#include <stdlib.h>
#include <unistd.h>

static uint64_t op_number(const struct agent *a, const struct agent_op *op)
{
	return (uint64_t)op->generation << 32 | (uint64_t)(op - a->op);
}

static struct agent_op *op_new(struct agent *a)
{
	for (uint32_t i = 0; i < AGENT_OPS_MAX; i++) {
		struct agent_op *op = &a->op[(a->op_next + i) % AGENT_OPS_MAX];

		if (op->is_used)
			continue;
		a->op_next = (uint32_t)(op - a->op) + 1;
		*op = (struct agent_op){.is_used = true, .generation = op->generation + 1};
		return op;
	}
	return NULL;
}

static struct agent_op *op_of(struct agent *a, uint64_t number)
{
	struct agent_op *op = &a->op[(uint32_t)number % AGENT_OPS_MAX];

	return op->is_used && op_number(a, op) == number ? op : NULL;
}

static enum lane_verb answer_verb(const struct lane_event *e)
{
	switch ((int)e->kind) {
	case LANE_EV_MESH:
		return LANE_REPLY;
	case LANE_EV_ACTIVATE:
		return LANE_ACTIVATED;
	case LANE_EV_CREATE:
		return LANE_CREATED;
	default:
		return LANE_RESOLVED;
	}
}

/* Answers the peer or Spot that an event came from, and gives the event back. */
static void answer(struct agent *a, struct lane_event *e, uint8_t kind, struct pack_bytes body)
{
	bool is_mesh = e->kind == LANE_EV_MESH;
	unsigned lane = e->lane;
	struct agent_command *cmd;

	if (!is_mesh && e->origin == SPOT_FROM_LANE)
		lane = (unsigned)e->flow;
	cmd = agent_command_new(a, lane, answer_verb(e), NULL);
	if (cmd && body.len) {
		cmd->blob = malloc(body.len);
		if (cmd->blob)
			memcpy(cmd->blob, body.p, body.len);
		else
			kind = SPL_E_INTERNAL_FAILURE;
	}
	if (cmd) {
		cmd->c.error = kind;
		cmd->c.key = e->key;
		cmd->c.flow = e->flow;
		cmd->c.correlation = e->correlation;
		cmd->c.data = cmd->blob;
		cmd->c.bytes = cmd->blob ? body.len : 0;
		agent_send(a, cmd);
	}
	agent_event_back(a, e);
}

static const struct pack_bytes nothing = {NULL, 0};

static void reply_called(struct agent *a, uint64_t corr, uint8_t kind, uint16_t content,
			 struct pack_bytes payload);

/* Sends a question; the body may have to travel in a memfd. */
static void ask(struct agent *a, struct lane_event *e, uint8_t what, struct dp_mesh_op *m)
{
	struct agent_op *op = sock_connected(a->sock) ? op_new(a) : NULL;
	struct pack_writer w;
	int fd = -1;

	if (!op || dp_field_out(&m->body, &fd) < 0) {
		if (op)
			op->is_used = false;
		answer(a, e, SPL_E_UNAVAILABLE, nothing);
		return;
	}
	op->event = e;
	if (what == DP_OP_ACTIVATE)
		op->deadline = UINT64_MAX;
	else
		op->deadline = e->deadline ? e->deadline : a->now + AGENT_ANSWER_NS;
	w = agent_packet(a, DP_MESH_OP, DP_F_REQ, op_number(a, op));
	m->op = what;
	m->deadline = e->deadline;
	dp_put_mesh_op(&w, m);
	agent_packet_send(a, &w, fd);
	if (fd >= 0)
		close(fd);
}

void agent_mesh_event(struct agent *a, struct lane_event *e)
{
	const struct agent_peer *peer = agent_peer_of(a, e->flow);
	struct dp_mesh_op m = {.body = {e->data, e->bytes}};

	if (!peer) {
		agent_event_back(a, e);
		return;
	}
	if (a->host_state == DP_HOST_DRAINING && e->op == SPL_MSG_CREATE) {
		answer(a, e, SPL_E_SHUTTING_DOWN, nothing);
		return;
	}
	m.source = peer->lifecycle;
	m.source_rid = (struct pack_bytes){peer->rid.b, peer->rid.len};
	ask(a, e, e->op, &m);
}

void agent_missing(struct agent *a, struct lane_event *e)
{
	uint8_t body[1 + SPL_NAME_BYTES_MAX];
	struct dp_mesh_op m = {
		.source = a->node_gen, .source_rid = {a->rid.b, a->rid.len}, .body = {body, 0}};
	int n = wire_id_put(body, sizeof(body), (struct pack_bytes){e->id.b, e->id.len});

	if (n < 0) {
		answer(a, e, SPL_E_UNAVAILABLE, nothing);
		return;
	}
	m.body.len = (uint32_t)n;
	ask(a, e, SPL_MSG_RESOLVE, &m);
}

/* The body of a handler's creation, for the caller to free; NULL without memory. */
static uint8_t *creation_body(struct agent *a, const struct lane_event *e, struct pack_bytes *out)
{
	struct wire_create c = {
		.mode = e->id.len ? WIRE_GET_OR_CREATE : WIRE_CREATE,
		.operation = ++a->creations,
		.id = {e->id.b, e->id.len},
		.type = {e->type.b, e->type.len},
		.request = {e->data, e->bytes},
	};
	size_t cap = (size_t)e->bytes + 2 * (1 + SPL_NAME_BYTES_MAX) + 32;
	uint8_t *p = malloc(cap), random[16];
	char minted[37];
	int n;

	if (!p)
		return NULL;
	if (!e->id.len) {
		a->random(a->random_ctx, random, sizeof(random));
		spl_uuid4(random, minted);
		c.id = (struct pack_bytes){minted, 36};
	}
	n = wire_create_put(p, cap, &c);
	if (n < 0) {
		free(p);
		return NULL;
	}
	*out = (struct pack_bytes){p, (uint32_t)n};
	return p;
}

void agent_create(struct agent *a, struct lane_event *e)
{
	struct dp_mesh_op m = {.source = a->node_gen, .source_rid = {a->rid.b, a->rid.len}};
	uint8_t *body;

	if (a->host_state == DP_HOST_DRAINING) {
		answer(a, e, SPL_E_SHUTTING_DOWN, nothing);
		return;
	}
	body = creation_body(a, e, &m.body);
	if (body)
		ask(a, e, SPL_MSG_CREATE, &m);
	else
		answer(a, e, SPL_E_CAPACITY_EXCEEDED, nothing);
	free(body);
}

/* Control bounds it by its own time for creations, and its loss ends it too. */
void agent_activate(struct agent *a, struct lane_event *e)
{
	uint8_t body[WIRE_INTENT_MAX];
	struct dp_mesh_op m = {
		.source = a->node_gen, .source_rid = {a->rid.b, a->rid.len}, .body = {body, 0}};
	int n = wire_intent_put(body, sizeof(body), (struct pack_bytes){e->id.b, e->id.len},
				(struct pack_bytes){e->type.b, e->type.len});

	m.body.len = n > 0 ? (uint32_t)n : 0;
	ask(a, e, DP_OP_ACTIVATE, &m);
}

/* A route as the kind that the requester gets: it did not find the Spot where it should be. */
static uint8_t route_kind(uint8_t kind, struct pack_bytes body)
{
	struct wire_route route;

	if (kind != SPL_OK)
		return kind;
	if (wire_route_get(&route, body.p, body.len))
		return SPL_E_UNAVAILABLE;
	return route.tag == WIRE_ROUTE_NONE ? SPL_E_NOT_FOUND : SPL_E_UNAVAILABLE;
}

void agent_mesh_done(struct agent *a, const struct sock_packet *p)
{
	struct agent_op *op = op_of(a, p->h.corr);
	struct pack_reader r = p->body;
	struct dp_mesh_op_done m = {.kind = SPL_E_PROTOCOL_ERROR};
	struct lane_event *e;

	if (!op || !op->event)
		return; /* late, or never asked */
	if (p->h.type == DP_OK) {
		struct dp_ok refused;

		dp_get_ok(&r, &refused);
		m.kind = r.bad || refused.kind == SPL_OK ? SPL_E_PROTOCOL_ERROR : refused.kind;
	} else {
		dp_get_mesh_op_done(&r, &m);
		if (!dp_done(&r))
			m = (struct dp_mesh_op_done){.kind = SPL_E_PROTOCOL_ERROR};
		else if (p->blob.p && m.body.len == 0)
			m.body = p->blob;
	}
	e = op->event;
	op->is_used = false;
	if (e->kind == LANE_EV_MISSING)
		answer(a, e, route_kind(m.kind, m.body), nothing);
	else
		answer(a, e, m.kind, m.kind == SPL_OK ? m.body : nothing);
}

void agent_ops_expire(struct agent *a)
{
	for (uint32_t i = 0; i < AGENT_OPS_MAX; i++) {
		struct agent_op *op = &a->op[i];

		if (!op->is_used || a->now < op->deadline)
			continue;
		op->is_used = false;
		if (op->event)
			answer(a, op->event, SPL_E_DEADLINE_EXCEEDED, nothing);
		else
			reply_called(a, op->corr, SPL_E_DEADLINE_EXCEEDED, SPL_CONTENT_RAW,
				     nothing);
	}
}

void agent_ops_lost(struct agent *a)
{
	for (uint32_t i = 0; i < AGENT_OPS_MAX; i++) {
		struct agent_op *op = &a->op[i];

		if (!op->is_used)
			continue;
		op->is_used = false;
		if (op->event)
			answer(a, op->event, SPL_E_UNAVAILABLE, nothing);
		/* A call's own end finds no slot and is dropped: who asked is gone. */
	}
}

/* ---- calls of control ---- */

static void reply_called(struct agent *a, uint64_t corr, uint8_t kind, uint16_t content,
			 struct pack_bytes payload)
{
	struct pack_writer w = agent_packet(a, DP_SPOT_CALLED, DP_F_REP, corr);
	struct dp_spot_called m = {.kind = kind, .content = content, .payload = payload};
	int fd;

	/* Without a memfd the result is lost, and the caller hears that, not an empty success. */
	if (dp_field_out(&m.payload, &fd) < 0)
		m = (struct dp_spot_called){.kind = SPL_E_INTERNAL_FAILURE,
					    .content = SPL_CONTENT_RAW};
	dp_put_spot_called(&w, &m);
	agent_packet_send(a, &w, fd);
	if (fd >= 0)
		close(fd);
}

/* The lane took the call, or refused it at once. A send is over then; a request's end follows. */
static void call_taken(struct agent *a, struct agent_command *cmd)
{
	struct agent_op *op = op_of(a, cmd->tag);

	if (!op || (cmd->c.is_request && cmd->c.error == SPL_OK))
		return;
	reply_called(a, op->corr, cmd->c.error, SPL_CONTENT_RAW, nothing);
	op->is_used = false;
}

void agent_call(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct agent_command *cmd = NULL;
	struct agent_op *op = NULL;
	struct dp_spot_call m;

	dp_get_spot_call(&r, &m);
	if (p->blob.p && m.payload.len == 0)
		m.payload = p->blob;
	if (!dp_done(&r) || !spl_name_valid(m.id.p, m.id.len) ||
	    !spl_name_valid(m.packet.p, m.packet.len) ||
	    (m.instance.len && !spl_name_valid(m.instance.p, m.instance.len))) {
		reply_called(a, p->h.corr, SPL_E_PROTOCOL_ERROR, 0, nothing);
		return;
	}
	op = op_new(a);
	cmd = agent_command_new(a, 0, LANE_CALL, call_taken);
	if (cmd && m.payload.len)
		cmd->blob = malloc(m.payload.len);
	if (!op || !cmd || (m.payload.len && !cmd->blob) || m.payload.len > a->cfg.c.message_max) {
		if (op)
			op->is_used = false;
		agent_command_free(cmd);
		reply_called(a, p->h.corr, SPL_E_CAPACITY_EXCEEDED, 0, nothing);
		return;
	}
	if (m.payload.len)
		memcpy(cmd->blob, m.payload.p, m.payload.len);
	op->corr = p->h.corr;
	op->deadline = (m.deadline ? m.deadline : a->now) + AGENT_ANSWER_NS;
	cmd->tag = op_number(a, op);
	cmd->c.key = spl_spot_key(m.id.p, m.id.len);
	cmd->c.lane = (uint16_t)spl_key_lane(&cmd->c.key, a->sh.lanes);
	cmd->c.id.len = (uint8_t)m.id.len;
	memcpy(cmd->c.id.b, m.id.p, m.id.len);
	if (m.instance.len)
		(void)spl_name_set(&cmd->c.type, m.instance.p, m.instance.len); /* looked at */
	cmd->c.packet = spl_packet_key(m.packet.p, m.packet.len);
	cmd->c.is_request = m.is_request;
	cmd->c.content = m.content;
	cmd->c.deadline = m.deadline;
	cmd->c.flow = cmd->tag;
	cmd->c.correlation = cmd->tag | 1ull << 63; /* never 0 */
	cmd->c.data = cmd->blob;
	cmd->c.bytes = m.payload.len;
	agent_send(a, cmd);
}

void agent_called(struct agent *a, struct lane_event *e)
{
	struct agent_op *op = op_of(a, e->flow);

	if (op && !op->event) {
		reply_called(a, op->corr, e->error, e->content,
			     (struct pack_bytes){e->data, e->bytes});
		op->is_used = false;
	}
	agent_event_back(a, e);
}
