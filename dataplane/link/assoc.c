/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: runs in the agent. Life of the association table, its slots and ids, its events
 * and the calls of the host: see assoc.h. Owns the memory given at assoc_init().
 */
#include "dataplane/link/assoc_int.h"

#include <errno.h>

#define SECOND 1000000000ULL

void assoc_params_default(struct assoc_params *p)
{
	*p = (struct assoc_params){
		.slots = 64,
		.dials = 8,
		.lanes = 1,
		.window = 1024,
		.msg_bytes = wire_message_bytes(SPL_MESSAGE_BYTES_MAX),
		.credit = {256 * 1024, 64 * 1024},
		.beacon_ns = 5 * SECOND,
		.beacon_again_ns = SECOND,
		.deadline_ns = 15 * SECOND,
		.dial_min_ns = SECOND / 10,
		.dial_max_ns = 5 * SECOND,
		.answers_per_s = 2000,
		.answers_burst = 500,
	};
}

static bool is_legal(const struct assoc_params *p)
{
	return p->slots >= 1 && p->slots <= 65535 && p->dials <= p->slots && p->lifecycle != 0 &&
	       p->lanes >= 1 && p->lanes <= SPL_LANES_MAX && p->window >= 16 &&
	       p->window <= 32768 && (p->window & (p->window - 1)) == 0 && p->msg_bytes > 0 &&
	       spl_name_valid(p->mesh.b, p->mesh.len) && spl_name_valid(p->rid.b, p->rid.len) &&
	       p->beacon_again_ns > 0 && p->beacon_again_ns <= p->beacon_ns &&
	       p->beacon_ns < p->deadline_ns && p->dial_min_ns > 0 &&
	       p->dial_min_ns <= p->dial_max_ns && p->answers_per_s >= 1 &&
	       p->answers_per_s <= SECOND && p->answers_burst >= 1;
}

static uint32_t power_above(uint32_t n)
{
	uint32_t v = 1;

	while (v < n)
		v *= 2;
	return v;
}

/* Each slot has at most an UP and a DOWN in the ring, each dial one refusal. */
static uint32_t event_room(const struct assoc_params *p)
{
	return power_above(2 * p->slots + p->dials + 1);
}

size_t assoc_bytes(const struct assoc_params *p)
{
	size_t n = sizeof(struct assoc);

	if (!is_legal(p))
		return 0;
	n += p->slots * sizeof(struct assoc_slot) + p->dials * sizeof(struct assoc_dial_state);
	n += event_room(p) * sizeof(struct assoc_queued);
	n += power_above(p->slots) * sizeof(uint32_t);
	return (n + 63) & ~(size_t)63;
}

struct assoc *assoc_init(void *mem, const struct assoc_params *p, const struct assoc_env *env,
			 uint64_t now_ns)
{
	size_t bytes = assoc_bytes(p);
	struct assoc *a = mem;

	if (bytes == 0) {
		errno = EINVAL;
		return NULL;
	}
	memset(mem, 0, bytes);
	a->p = *p;
	a->env = *env;
	a->slots = (struct assoc_slot *)(void *)(a + 1);
	a->dials = (struct assoc_dial_state *)(void *)(a->slots + p->slots);
	a->events = (struct assoc_queued *)(void *)(a->dials + p->dials);
	a->buckets = (uint32_t *)(void *)(a->events + event_room(p));
	a->ev_mask = event_room(p) - 1;
	a->bucket_mask = power_above(p->slots) - 1;
	for (uint32_t i = 0; i <= a->bucket_mask; i++)
		a->buckets[i] = ASSOC_NONE;
	a->free = ASSOC_NONE;
	for (uint32_t i = p->slots; i-- > 0;) {
		a->slots[i].next = a->free;
		a->slots[i].due = a->slots[i].deadline = ASSOC_NEVER;
		a->free = i;
	}
	a->next_due = a->sweep_next = a->next_deadline = ASSOC_NEVER;
	a->bucket_at = now_ns;
	a->bucket_ns = SECOND / p->answers_per_s * p->answers_burst;
	env->random(env->host, &a->rid_key, sizeof(a->rid_key));
	env->random(env->host, a->secret, sizeof(a->secret));
	a->secret_epoch = now_ns / (ASSOC_SECRET_SECONDS * SECOND);
	return a;
}

void assoc_push(struct assoc *a, uint8_t type, uint8_t reason, uint32_t slot, uint32_t dial)
{
	a->events[a->ev_tail++ & a->ev_mask] = (struct assoc_queued){type, reason, slot, dial};
}

void assoc_due(struct assoc *a, uint64_t *due, uint64_t at)
{
	*due = at;
	if (at < a->next_due)
		a->next_due = at;
	if (at < a->sweep_next)
		a->sweep_next = at;
}

static uint64_t fresh_id(struct assoc *a, uint32_t slot)
{
	uint64_t id;

	do /* 48 random bits that are all zero: once in a universe */
		a->env.random(a->env.host, &id, sizeof(id));
	while (id >> 16 == 0);
	return (id & ~0xffffULL) | slot;
}

uint32_t assoc_slot_take(struct assoc *a)
{
	uint32_t slot = a->free;
	struct assoc_slot *s;

	if (slot == ASSOC_NONE)
		return slot;
	s = &a->slots[slot];
	a->free = s->next;
	memset(s, 0, sizeof(*s));
	s->state = ASSOC_S_DIALING;
	s->next = ASSOC_NONE;
	s->due = s->deadline = ASSOC_NEVER;
	s->peer.rx_id = fresh_id(a, slot);
	s->peer.dial = ASSOC_NONE;
	return slot;
}

void assoc_slot_put(struct assoc *a, uint32_t slot)
{
	a->slots[slot].state = ASSOC_S_FREE;
	a->slots[slot].peer.rx_id = 0;
	a->slots[slot].due = ASSOC_NEVER;
	a->slots[slot].next = a->free;
	a->free = slot;
}

struct assoc_slot *assoc_slot_by_id(const struct assoc *a, uint64_t rx_id)
{
	uint32_t slot = wire_id_slot(rx_id);
	struct assoc_slot *s;

	if (slot >= a->p.slots)
		return NULL;
	s = &a->slots[slot];
	return s->state != ASSOC_S_FREE && s->peer.rx_id == rx_id ? s : NULL;
}

static uint32_t *rid_bucket(const struct assoc *a, const void *rid, size_t len)
{
	return &a->buckets[siphash(&a->rid_key, rid, len) & a->bucket_mask];
}

uint32_t assoc_slot_by_rid(const struct assoc *a, struct pack_bytes rid)
{
	uint32_t i = *rid_bucket(a, rid.p, rid.len);

	for (; i != ASSOC_NONE; i = a->slots[i].next) {
		const struct spl_name *n = &a->slots[i].peer.rid;

		if (n->len == rid.len && memcmp(n->b, rid.p, rid.len) == 0)
			break;
	}
	return i;
}

static void unlink_rid(struct assoc *a, uint32_t slot)
{
	const struct spl_name *n = &a->slots[slot].peer.rid;
	uint32_t *at = rid_bucket(a, n->b, n->len);

	while (*at != slot)
		at = &a->slots[*at].next;
	*at = a->slots[slot].next;
	a->slots[slot].next = ASSOC_NONE;
}

void assoc_slot_up(struct assoc *a, uint32_t slot, const struct wire_self *self,
		   const struct assoc_addr *addr, uint32_t dial, uint64_t now)
{
	struct assoc_slot *s = &a->slots[slot];
	uint32_t *bucket = rid_bucket(a, self->rid.p, self->rid.len);

	s->peer.tx_id = self->id;
	s->peer.lifecycle = self->lifecycle;
	s->peer.addr = *addr;
	spl_name_set(&s->peer.rid, self->rid.p, self->rid.len);
	s->peer.lanes = self->lanes;
	s->peer.base_port = self->base_port;
	s->peer.window = self->window;
	s->peer.msg_bytes = self->msg_bytes;
	memcpy(s->peer.credit, self->credit, sizeof(s->peer.credit));
	s->peer.dial = dial;
	s->next = *bucket;
	*bucket = slot;
	s->state = ASSOC_S_UP;
	s->is_held = true;
	s->deadline = now + a->p.deadline_ns;
	if (s->deadline < a->next_deadline)
		a->next_deadline = s->deadline;
	assoc_due(a, &s->due, now + a->p.beacon_ns);
	a->n_up++;
	if (dial != ASSOC_NONE) {
		a->dials[dial].slot = slot;
		a->dials[dial].is_up = true;
		a->dials[dial].due = ASSOC_NEVER;
	}
	assoc_push(a, ASSOC_UP, 0, slot, dial);
}

void assoc_slot_down(struct assoc *a, uint32_t slot, enum assoc_down reason, uint64_t now)
{
	struct assoc_slot *s = &a->slots[slot];
	uint32_t dial = s->peer.dial;

	unlink_rid(a, slot);
	s->state = ASSOC_S_DOWN;
	s->due = s->deadline = ASSOC_NEVER;
	a->n_up--;
	assoc_push(a, ASSOC_DOWN, (uint8_t)reason, slot, dial);
	if (dial == ASSOC_NONE || !a->dials[dial].is_used || a->dials[dial].slot != slot)
		return;
	a->dials[dial].slot = ASSOC_NONE;
	a->dials[dial].is_up = false;
	a->dials[dial].cookie_tries = 0;
	a->dials[dial].wait = a->p.dial_min_ns;
	assoc_due(a, &a->dials[dial].due, now + a->p.dial_min_ns);
}

void assoc_self(const struct assoc *a, uint64_t rx_id, struct wire_self *out)
{
	*out = (struct wire_self){
		.lifecycle = a->p.lifecycle,
		.id = rx_id,
		.lanes = a->p.lanes,
		.base_port = a->p.base_port,
		.window = a->p.window,
		.msg_bytes = a->p.msg_bytes,
		.credit = {a->p.credit[WIRE_APP], a->p.credit[WIRE_INFRA]},
		.mesh = {a->p.mesh.b, a->p.mesh.len},
		.rid = {a->p.rid.b, a->p.rid.len},
	};
}

int assoc_dial(struct assoc *a, const struct assoc_addr *addr, uint64_t want_lifecycle,
	       uint64_t now_ns)
{
	for (uint32_t i = 0; i < a->p.dials; i++) {
		struct assoc_dial_state *d = &a->dials[i];

		/* one that hung up is free again when its last refusal is taken */
		if (d->is_used || d->is_refusal_queued)
			continue;
		*d = (struct assoc_dial_state){.addr = *addr,
					       .want_lifecycle = want_lifecycle,
					       .wait = a->p.dial_min_ns,
					       .slot = ASSOC_NONE,
					       .is_used = true};
		assoc_due(a, &d->due, now_ns);
		return (int)i;
	}
	return -ENOSPC;
}

void assoc_hangup(struct assoc *a, uint32_t dial, uint64_t now_ns)
{
	struct assoc_dial_state *d;
	uint32_t slot;

	if (dial >= a->p.dials || !a->dials[dial].is_used)
		return;
	d = &a->dials[dial];
	slot = d->slot;
	d->is_used = false;
	d->due = ASSOC_NEVER;
	d->slot = ASSOC_NONE;
	if (slot == ASSOC_NONE)
		return;
	if (d->is_up)
		assoc_close(a, slot, WIRE_CLOSE_NORMAL, now_ns);
	else
		assoc_slot_put(a, slot);
	d->is_up = false;
}

void assoc_close(struct assoc *a, uint32_t slot, enum wire_closing reason, uint64_t now_ns)
{
	struct assoc_slot *s;

	if (slot >= a->p.slots || a->slots[slot].state != ASSOC_S_UP)
		return;
	s = &a->slots[slot];
	assoc_slot_down(a, slot, ASSOC_DOWN_LOCAL, now_ns);
	s->close_left = ASSOC_CLOSE_TRIES;
	s->close_reason = (uint8_t)reason;
	a->n_closing++;
	assoc_due(a, &s->due, now_ns);
}

static void free_if_done(struct assoc *a, uint32_t slot)
{
	struct assoc_slot *s = &a->slots[slot];

	if (s->state == ASSOC_S_DOWN && !s->is_held && s->close_left == 0)
		assoc_slot_put(a, slot);
}

void assoc_closed(struct assoc *a, uint32_t slot)
{
	a->slots[slot].close_left = 0;
	a->slots[slot].due = ASSOC_NEVER;
	a->n_closing--;
	free_if_done(a, slot);
}

void assoc_release(struct assoc *a, uint32_t slot)
{
	if (slot >= a->p.slots || a->slots[slot].state != ASSOC_S_DOWN)
		return;
	a->slots[slot].is_held = false;
	free_if_done(a, slot);
}

void assoc_shutdown(struct assoc *a, uint64_t now_ns)
{
	a->is_stopping = true;
	for (uint32_t i = 0; i < a->p.slots; i++)
		assoc_close(a, i, WIRE_CLOSE_SHUTDOWN, now_ns);
	for (uint32_t i = 0; i < a->p.dials; i++)
		assoc_hangup(a, i, now_ns);
}

static void find_deadlines(struct assoc *a, uint64_t now)
{
	uint64_t next = ASSOC_NEVER;

	for (uint32_t i = 0; i < a->p.slots; i++) {
		const struct assoc_slot *s = &a->slots[i];

		if (s->deadline <= now)
			assoc_slot_down(a, i, ASSOC_DOWN_DEADLINE, now);
		else if (s->deadline < next)
			next = s->deadline;
	}
	a->next_deadline = next;
}

bool assoc_event(struct assoc *a, uint64_t now_ns, struct assoc_event *out)
{
	const struct assoc_queued *e;

	if (now_ns >= a->next_deadline)
		find_deadlines(a, now_ns);
	if (a->ev_head == a->ev_tail)
		return false;
	e = &a->events[a->ev_head++ & a->ev_mask];
	*out = (struct assoc_event){
		.type = e->type, .reason = e->reason, .slot = e->slot, .dial = e->dial};
	if (e->type == ASSOC_REFUSED)
		a->dials[e->dial].is_refusal_queued = false;
	else
		out->peer = &a->slots[e->slot].peer;
	return true;
}

bool assoc_conflict(struct assoc *a, struct spl_name *rid)
{
	if (!a->has_conflict)
		return false;
	*rid = a->conflict;
	a->has_conflict = false;
	return true;
}

uint64_t assoc_next_timer(const struct assoc *a)
{
	if (a->ev_head != a->ev_tail)
		return 0;
	return a->next_due < a->next_deadline ? a->next_due : a->next_deadline;
}

uint32_t assoc_count(const struct assoc *a)
{
	return a->n_up;
}

uint32_t assoc_closing(const struct assoc *a)
{
	return a->n_closing;
}

const struct assoc_peer *assoc_find(const struct assoc *a, uint64_t rx_id)
{
	const struct assoc_slot *s = assoc_slot_by_id(a, rx_id);

	return s && s->state == ASSOC_S_UP ? &s->peer : NULL;
}
