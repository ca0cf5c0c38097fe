/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: what the room of Spots sends and gives back: replies to peers, messages to other
 * lanes, answers to the agent, and the end of every buffer, credit and lane message.
 */
#include "dataplane/lane/lane.h"

#include "common/wire_msg.h"

#include <errno.h>
#include <rte_mbuf.h>

struct lane_message *lane_message_new(struct lane *l, uint32_t bytes)
{
	struct lane_message *m = lanemem_alloc(l->mem, sizeof(*m) + bytes);

	if (!m)
		return NULL;
	m->next = NULL;
	m->answer = NULL;
	m->bytes = bytes;
	m->lane = (uint16_t)l->index;
	return m;
}

void lane_message_free(struct lane *l, struct lane_message *m)
{
	lanemem_free(l->mem, m->answer);
	lanemem_free(l->mem, m);
}

void lane_returned(struct lane *l, struct lane_message *m)
{
	if (m->kind == SPOT_KIND_CAST)
		spot_cast_returned(l->spots, ((const struct lane_cast *)(void *)m->data)->token);
	lane_message_free(l, m);
}

static inline void give_credit(struct lane *l, uint64_t flow, uint32_t charge)
{
	struct lane_flow *f = lane_flow_of(l, flow);

	if (__builtin_expect(f != NULL, 1)) {
		f->consumed += charge; /* lane_flows_tx() tells the flow, once a pass */
		lane_flow_touch(l, f);
	} else {
		atomic_fetch_add_explicit(&l->sh->credit[WIRE_APP], charge, memory_order_relaxed);
	}
}

static void put_buffer(struct lane *l, void *buf)
{
	void *p = (void *)((uintptr_t)buf & ~(uintptr_t)LANE_BUF_MASK);

	if (!p)
		return;
	switch ((enum lane_buf)((uintptr_t)buf & LANE_BUF_MASK)) {
	case LANE_BUF_ALONE:
		rte_pktmbuf_free(p);
		break;
	case LANE_BUF_MBUF:
		lane_mbuf_put(p);
		break;
	case LANE_BUF_MEM:
		lanemem_free(l->mem, p);
		break;
	case LANE_BUF_MESSAGE:
		if (((struct lane_message *)p)->lane == l->index)
			lane_message_free(l, p);
		else
			lane_push_back(l, p);
		break;
	}
}

void lane_release(struct lane *l, void *buf, uint64_t flow, uint32_t charge, uint8_t origin)
{
	if (charge && origin == SPOT_FROM_LINK)
		give_credit(l, flow, charge);
	put_buffer(l, buf);
}

static void env_release(void *host, const struct spot_done *done, unsigned n)
{
	struct lane *l = host;

	for (unsigned i = 0; i < n; i++)
		lane_release(l, done[i].buf, done[i].flow, done[i].charge, done[i].origin);
}

/* Nothing of the buffer is to be undone before it goes back to `pool`; as rte_pktmbuf_free() finds
 * out, but from the buffer's first line alone. */
static inline bool is_bare(const struct rte_mbuf *m, const struct rte_mempool *pool)
{
	return m->nb_segs == 1 && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m) &&
	       m->pool == pool;
}

static void env_ended(void *host, struct spot_rec *const *recs, unsigned n)
{
	struct rte_mbuf *alone[64]; /* as many as spot_env.ended() may give */
	struct lane *l = host;
	struct rte_mempool *pool = l->sh->pool;
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++) {
		if (recs[i]->charge && recs[i]->origin == SPOT_FROM_LINK)
			give_credit(l, recs[i]->flow, recs[i]->charge);
	}
	/* Buffers that nobody else refers to go back to the pool together. */
	for (unsigned i = 0; i < n; i++) {
		void *buf = recs[i]->buf;
		struct rte_mbuf *m = (struct rte_mbuf *)((uintptr_t)buf - LANE_BUF_ALONE);

		if (((uintptr_t)buf & LANE_BUF_MASK) == LANE_BUF_ALONE && is_bare(m, pool))
			alone[k++] = m;
		else
			put_buffer(l, buf);
	}
	rte_mempool_put_bulk(pool, (void **)alone, k);
}

void lane_flow_send(struct lane *l, struct lane_flow *f, struct lane_message *m)
{
	if (f->late_head ||
	    flow_send(f->flow, (enum wire_class)m->cls, m->data, m->bytes, m) != 0) {
		m->next = NULL;
		f->late_bytes += m->bytes;
		lane_reply_waits(l, 1);
		if (f->late_tail)
			f->late_tail->next = m;
		else
			f->late_head = m;
		f->late_tail = m;
	}
	lane_flow_hurry(l, f);
}

int lane_reply_link(struct lane *l, uint64_t flow, uint64_t correlation, uint8_t error,
		    uint16_t content, const void *payload, uint32_t bytes)
{
	struct lane_flow *f = lane_flow_of(l, flow);
	struct wire_msg h = {.kind = SPL_MSG_REPLY,
			     .error = error,
			     .content = content,
			     .correlation = correlation};
	struct lane_message *m;

	if (!f || !f->flow)
		return -ENOTCONN;
	if (bytes + WIRE_MSG_BYTES > f->params.peer_msg_bytes)
		return -EMSGSIZE;
	if (f->late_bytes > l->mem->bytes / LANE_LATE_PART)
		return -ENOBUFS; /* a peer that takes no replies must not hold the lane's memory */
	m = lane_message_new(l, WIRE_MSG_BYTES + bytes);
	if (!m)
		return -ENOBUFS;
	m->cls = WIRE_INFRA;
	wire_msg_put(m->data, &h);
	if (bytes)
		memcpy(m->data + WIRE_MSG_BYTES, payload, bytes);
	lane_flow_send(l, f, m);
	lane_count(l, SPL_C_MESSAGES_SENT, 1);
	return 0;
}

static const struct spl_target no_target;

static bool is_told_kind(uint8_t kind)
{
	return kind == SPOT_KIND_TOLD_SEND || kind == SPOT_KIND_TOLD_PUBLISH ||
	       kind == SPOT_KIND_INSTANCE_TOLD;
}

/* How long it may wait for the ring: what it was given, and a request no longer than a send does
 * (S-DIR-8). */
static uint64_t until_of(const struct lane *l, const struct spot_out *o)
{
	uint64_t most = (uint64_t)l->send_ms * 1000000u, ns = most;

	if (o->deadline)
		ns = o->deadline > l->now ? spot_to_ns(&l->clock, o->deadline - l->now) : 0;
	return l->now_ns + (ns < most || is_told_kind(o->kind) ? ns : most);
}

static bool is_instance_kind(uint8_t kind)
{
	return kind >= SPOT_KIND_INSTANCE_TOLD && kind <= SPOT_KIND_INSTANCE_REQUEST;
}

/* The answer to a told send is there already, with the message. Anything else is made. */
static struct lane_message *message_for(struct lane *l, const struct spot_out *o, uint32_t bytes)
{
	struct lane_message *m = NULL, *told;

	if (o->kind == SPL_MSG_REPLY && bytes == 0 &&
	    ((uintptr_t)o->buf & LANE_BUF_MASK) == LANE_BUF_MESSAGE) {
		told = (struct lane_message *)((uintptr_t)o->buf & ~(uintptr_t)LANE_BUF_MASK);
		m = told->answer;
		told->answer = NULL;
	}
	if (!m)
		m = lane_message_new(l, bytes);
	if (!m || !is_told_kind(o->kind))
		return m;
	m->answer = lane_message_new(l, 0);
	if (m->answer)
		return m;
	lanemem_free(l->mem, m);
	return NULL;
}

/* Instance intent travels behind the payload: where the stage has it may change meanwhile. */
static int send_lane(struct lane *l, const struct spot_out *o)
{
	bool intends = is_instance_kind(o->kind);
	uint32_t intent =
		intends ? 2 + o->target->id.len + (uint32_t)strlen(o->target->instance) : 0;
	struct lane_message *m;

	if (o->flow >= l->sh->lanes)
		return -ENOTCONN;
	m = message_for(l, o, o->payload_bytes + intent);
	if (!m)
		return -ENOBUFS;
	m->bytes = o->payload_bytes;
	if (intends)
		wire_intent_put(m->data + m->bytes, intent,
				(struct pack_bytes){o->target->id.b, o->target->id.len},
				(struct pack_bytes){o->target->instance,
						    (uint32_t)strlen(o->target->instance)});
	m->kind = o->kind;
	m->error = o->error;
	m->content = o->content;
	m->correlation = o->correlation;
	m->deadline = o->deadline;
	m->packet = o->packet;
	m->source = o->source;
	m->trace = o->trace;
	m->target = o->target ? *o->target : no_target; /* a reply has none */
	if (o->payload_bytes)
		memcpy(m->data, o->payload, o->payload_bytes);
	if (lane_push(l, m, (unsigned)o->flow, until_of(l, o))) {
		lane_message_free(l, m);
		return -ETIMEDOUT;
	}
	lane_count(l, SPL_C_MESSAGES_SENT, 1);
	return 0;
}

static int env_cast(void *host, uint32_t to, const struct spot_cast *c)
{
	struct lane *l = host;
	struct lane_message *m = lane_message_new(l, sizeof(struct lane_cast));
	void *item = hop_tag(m, HOP_MESSAGE);

	if (!m)
		return -ENOBUFS;
	m->kind = SPOT_KIND_CAST;
	m->content = c->content;
	m->correlation = 0;
	m->deadline = 0;
	m->packet = c->packet;
	m->source = c->source;
	m->trace = c->trace;
	m->target.key = *c->topic;
	*(struct lane_cast *)(void *)m->data = (struct lane_cast){
		c->payload, c->metadata, c->payload_bytes, c->metadata_bytes, c->token};
	if (hop_push(&l->sh->hop, l->index, to, &item, 1) != 1) {
		lanemem_free(l->mem, m);
		return -EAGAIN;
	}
	return 0;
}

/* The reply to a LANE_CALL: its command is the flow. */
static int send_agent(struct lane *l, const struct spot_out *o)
{
	struct lane_event *e = lane_event_new(l);
	void *copy = NULL;

	if (!e)
		return -EAGAIN;
	if (o->payload_bytes) {
		copy = lanemem_alloc(l->mem, o->payload_bytes);
		if (!copy) {
			lane_event_done(l, e);
			return -ENOBUFS;
		}
		memcpy(copy, o->payload, o->payload_bytes);
	}
	e->kind = LANE_EV_CALLED;
	e->error = o->error;
	e->content = o->content;
	e->data = copy;
	e->bytes = o->payload_bytes;
	e->buf = copy ? lane_buf(copy, LANE_BUF_MEM) : NULL;
	e->flow = o->flow;
	e->correlation = o->correlation;
	lane_event_raise(l, e);
	return 0;
}

static int env_send(void *host, const struct spot_out *o)
{
	struct lane *l = host;

	switch ((enum spot_origin)o->to) {
	case SPOT_FROM_LINK:
		return lane_reply_link(l, o->flow, o->correlation, o->error, o->content, o->payload,
				       o->payload_bytes);
	case SPOT_FROM_LANE:
		return send_lane(l, o);
	case SPOT_FROM_AGENT:
		return send_agent(l, o);
	case SPOT_FROM_SELF:
	case SPOT_FROM_CAST:
	case SPOT_FROM_WORK:
		break;
	}
	return -ENOTCONN;
}

static int env_missing(void *host, const struct spl_key *key, uint8_t origin, uint64_t flow,
		       uint64_t correlation)
{
	struct lane *l = host;
	struct lane_event *e = lane_event_new(l);

	if (!e)
		return -EAGAIN;
	e->kind = LANE_EV_MISSING;
	e->key = *key;
	e->id = lane_target_of(key)->id;
	e->origin = origin;
	e->flow = flow;
	e->correlation = correlation;
	lane_event_raise(l, e);
	return 0;
}

static int env_activate(void *host, const struct spl_key *key, const struct spot_intent *intent,
			uint64_t serial)
{
	struct lane *l = host;
	struct lane_event *e = lane_event_new(l);

	if (!e)
		return -EAGAIN;
	e->kind = LANE_EV_ACTIVATE;
	e->key = *key;
	(void)spl_name_set(&e->id, intent->id.p, intent->id.len); /* both are legal names */
	(void)spl_name_set(&e->type, intent->type.p, intent->type.len);
	e->correlation = serial;
	lane_event_raise(l, e);
	return 0;
}

static void env_answer(void *host, const struct spot_answer *a)
{
	struct lane *l = host;
	struct lane_command *c = (struct lane_command *)(uintptr_t)a->op;

	c->verdict = a->verdict;
	c->error = a->error;
	c->stage = a->stage;
	c->id_len = a->id_len;
	c->content = a->content;
	c->mem = NULL;
	c->mem_bytes = 0;
	if (a->reply_bytes && a->verdict != SPOT_FAILED) {
		c->mem = lanemem_alloc(l->mem, a->reply_bytes);
		if (c->mem) {
			memcpy(c->mem, a->reply, a->reply_bytes);
			c->mem_bytes = a->reply_bytes;
		} else if (a->verdict == SPOT_ACCEPTED) { /* the agent discards it */
			c->verdict = SPOT_FAILED;
			c->error = SPL_E_CAPACITY_EXCEEDED;
			c->mem_bytes = UINT32_MAX;
		}
	}
	lane_command_answer(l, c);
}

static int env_close_wanted(void *host, const struct spl_key *key, const struct spl_name *id,
			    uint64_t object_generation, enum spl_closing reason)
{
	struct lane *l = host;
	struct lane_event *e = lane_event_new(l);

	if (!e)
		return -EAGAIN;
	e->kind = LANE_EV_CLOSE_WANTED;
	e->key = *key;
	e->id = *id;
	e->object_generation = object_generation;
	e->op = (uint8_t)reason;
	lane_event_raise(l, e);
	return 0;
}

const struct spot_env lane_env = {
	.send = env_send,
	.cast = env_cast,
	.work = lane_env_work,
	.ended = env_ended,
	.release = env_release,
	.missing = env_missing,
	.activate = env_activate,
	.create = lane_env_create,
	.answer = env_answer,
	.failed = lane_env_failed,
	.overran = lane_env_overran,
	.close_wanted = env_close_wanted,
};
