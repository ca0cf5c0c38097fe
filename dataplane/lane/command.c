/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the agent's commands, carried out and answered, and the events raised for it. */
#include "dataplane/lane/lane.h"

#include "common/dp.h"
#include "common/wire_msg.h"

void lane_command_answer(struct lane *l, struct lane_command *c)
{
	void *item = hop_tag(c, HOP_COMMAND);

	c->next = NULL;
	if (!l->answered_head && hop_push(&l->sh->hop, l->index, l->sh->lanes, &item, 1) == 1)
		return;
	if (l->answered_tail)
		l->answered_tail->next = c;
	else
		l->answered_head = c;
	l->answered_tail = c;
}

struct lane_event *lane_event_new(struct lane *l)
{
	struct lane_event *e = l->free_events;

	if (!e)
		return NULL;
	l->free_events = e->next;
	*e = (struct lane_event){.lane = (uint16_t)l->index};
	return e;
}

void lane_event_raise(struct lane *l, struct lane_event *e)
{
	void *item = hop_tag(e, HOP_EVENT);

	if (!l->raised_head && hop_push(&l->sh->hop, l->index, l->sh->lanes, &item, 1) == 1)
		return;
	e->next = NULL;
	if (l->raised_tail)
		l->raised_tail->next = e;
	else
		l->raised_head = e;
	l->raised_tail = e;
}

/* The agent is done with an event, or it was never raised: what it held is free again. */
void lane_event_done(struct lane *l, struct lane_event *e)
{
	if (e->kind == LANE_EV_MESH) {
		struct lane_flow *f = lane_flow_of(l, e->flow);

		lane_count(l, SPL_C_MESSAGES_RUNNING, (uint64_t)-1);
		lane_count(l, SPL_C_MESSAGES_FINISHED, 1);
		if (f) {
			flow_consumed(f->flow, WIRE_INFRA, e->charge);
			lane_flow_touch(l, f);
		} else {
			atomic_fetch_add_explicit(&l->sh->credit[WIRE_INFRA], e->charge,
						  memory_order_relaxed);
		}
	}
	if (e->buf)
		lane_release(l, e->buf, 0, 0, SPOT_FROM_AGENT);
	e->next = l->free_events;
	l->free_events = e;
}

void lane_retry(struct lane *l)
{
	void *item;

	while (l->answered_head) {
		struct lane_command *c = l->answered_head, *next = c->next;

		item = hop_tag(c, HOP_COMMAND);
		if (hop_push(&l->sh->hop, l->index, l->sh->lanes, &item, 1) != 1)
			break;
		l->answered_head = next;
		if (!next)
			l->answered_tail = NULL;
	}
	while (l->raised_head) {
		struct lane_event *e = l->raised_head, *next = e->next;

		item = hop_tag(e, HOP_EVENT);
		if (hop_push(&l->sh->hop, l->index, l->sh->lanes, &item, 1) != 1)
			break;
		l->raised_head = next;
		if (!next)
			l->raised_tail = NULL;
	}
	lane_later_retry(l);
}

/* Each pass takes LANE_POP items of each ring, so that after enough of them all are taken in that
 * were there when the command came, whatever has come since. */
void lane_settle(struct lane *l)
{
	struct lane_command *c = l->settling;

	if (l->settle_passes > 0 && hop_idle(&l->sh->hop, l->index))
		l->settle_passes = 0;
	else if (l->settle_passes > 0)
		l->settle_passes--;
	if (l->settle_passes > 0 || l->n_later > 0 || spot_casts_waiting(l->spots))
		return;
	l->settling = NULL;
	while (c) {
		struct lane_command *next = c->next;

		lane_command_answer(l, c);
		c = next;
	}
}

/* A deadline of the agent's clock in cycles of this lane, 0 for none, 1 for one that has passed. */
static uint64_t to_cycles(const struct lane *l, uint64_t boot_ns)
{
	if (boot_ns == 0)
		return 0;
	if (boot_ns <= l->now_ns)
		return 1;
	return l->now + spot_from_ns(&l->clock, boot_ns - l->now_ns);
}

static void prepare(struct lane *l, struct lane_command *c)
{
	struct spot_prepare p = {
		.key = c->key,
		.id = c->id.b,
		.id_len = c->id.len,
		.content = c->content,
		.request_bytes = c->bytes,
		.request = c->data,
		.stage = c->stage,
		.object_generation = c->object_generation,
		.op = (uintptr_t)c,
		.deadline = to_cycles(l, c->deadline),
	};

	spot_prepare(l->spots, &p, l->now);
}

/* A send or request of control becomes a record; the reply comes back as an event. */
static void call(struct lane *l, struct lane_command *c)
{
	uint32_t intent = c->type.len ? 2u + c->id.len + c->type.len : 0;
	struct lane_message *m = lane_message_new(l, c->bytes + intent);
	struct spot_rec *r;

	c->error = SPL_OK;
	if (!m || spot_recs_take(l->spots, &r, 1) == 0) {
		if (m)
			lane_message_free(l, m);
		c->error = SPL_E_CAPACITY_EXCEEDED;
		return;
	}
	if (c->bytes)
		memcpy(m->data, c->data, c->bytes);
	m->target.key = c->key;
	m->target.id = c->id;
	r->msg.payload = m->data;
	r->msg.payload_bytes = c->bytes;
	r->buf = lane_buf(m, LANE_BUF_MESSAGE);
	r->packet = c->packet;
	r->deadline = to_cycles(l, c->deadline);
	r->flow = c->flow;
	r->charge = 0;
	r->msg.metadata = NULL;
	r->msg.metadata_bytes = 0;
	r->msg.content = c->content;
	r->kind = c->is_request ? SPL_MSG_SPOT_REQUEST : SPL_MSG_SPOT_SEND;
	if (intent) {
		wire_intent_put(m->data + c->bytes, intent, (struct pack_bytes){c->id.b, c->id.len},
				(struct pack_bytes){c->type.b, c->type.len});
		r->kind = c->is_request ? SPOT_KIND_INSTANCE_REQUEST : SPOT_KIND_INSTANCE_SEND;
		r->msg.packet = (const char *)m->data + c->bytes;
	}
	r->origin = SPOT_FROM_AGENT;
	r->msg.correlation = c->correlation;
	r->msg.source = 0;
	r->key = &m->target.key;
	spot_admit(l->spots, &r, 1, l->now);
}

static void resolved(struct lane *l, const struct lane_command *c)
{
	struct spot_reply r = {
		.correlation = c->correlation, .kind = c->error, .origin = SPOT_FROM_AGENT};

	spot_reply_in(l->spots, &r);
}

static void activated(struct lane *l, const struct lane_command *c)
{
	spot_activated(l->spots, &c->key, c->correlation, c->error, l->now);
}

static void add_item(void *ctx, const struct spot_item *item)
{
	struct lane_page *page = ctx;

	page->item[page->n].id = *item->id;
	page->item[page->n].object_generation = item->object_generation;
	page->item[page->n++].state = item->closing ? DP_OBJECT_CLOSING
				      : item->ready ? DP_OBJECT_READY
						    : DP_OBJECT_STAGING;
}

void lane_command(struct lane *l, struct lane_command *c)
{
	switch ((enum lane_verb)c->verb) {
	case LANE_PREPARE:
		prepare(l, c);
		return; /* these four are answered by env_answer() */
	case LANE_PUBLISH:
		spot_publish(l->spots, &c->key, c->object_generation, (uintptr_t)c, l->now);
		return;
	case LANE_DISCARD:
		spot_discard(l->spots, &c->key, c->object_generation, (uintptr_t)c, l->now);
		return;
	case LANE_CLOSE:
		spot_close(l->spots, &c->key, c->object_generation, (uintptr_t)c,
			   (enum spl_closing)c->reason, to_cycles(l, c->deadline), l->now);
		return;
	case LANE_PEER_UP:
		lane_peer_up(l, &c->up);
		break;
	case LANE_PEER_DOWN:
		lane_peer_down(l, c->slot);
		break;
	case LANE_SEAL:
		spot_lane_seal(l->spots);
		break;
	case LANE_SETTLE:
		c->next = l->settling;
		l->settling = c;
		l->settle_passes = HOP_SLOTS / LANE_POP + 1;
		return; /* lane_settle() answers */
	case LANE_CALLS_END:
		c->bytes = spot_calls_end(l->spots, c->error, 256);
		break;
	case LANE_CALL:
		call(l, c);
		break;
	case LANE_REPLY:
		if (lane_reply_link(l, c->flow, c->correlation, c->error, SPL_CONTENT_RAW, c->data,
				    c->bytes))
			lane_count(l, SPL_C_REPLIES_LOST, 1);
		break;
	case LANE_RESOLVED:
		resolved(l, c);
		break;
	case LANE_CREATED:
		spot_created(l->spots, c->correlation, c->error, c->data, c->bytes);
		break;
	case LANE_ACTIVATED:
		activated(l, c);
		break;
	case LANE_INVENTORY:
		c->page->n = 0;
		c->page->more =
			spot_inventory(l->spots, &c->page->cursor, LANE_PAGE, add_item, c->page);
		break;
	case LANE_FREE:
		lanemem_free(l->mem, c->mem);
		c->mem = NULL;
		break;
	case LANE_FENCE:
		spot_close(l->spots, &c->key, c->object_generation, (uintptr_t)c, SPOT_FENCED, 1,
			   l->now);
		return;
	}
	lane_command_answer(l, c);
}
