/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the calls of a lane's handlers: registered before submission, ended once
 * (S-COMPL-1,3).
 *
 * A correlation is the slot of the call and a serial number that goes through all of 2^44 values in
 * an order that the process's secret decides: none is used twice, and none is easily guessed.
 */
#include "dataplane/spot/idle.h"
#include "dataplane/spot/queue.h"
#include "dataplane/spot/timer.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/yield.h"

#include <errno.h>

#define SLOT_BITS   20
#define SLOT_MASK   ((1u << SLOT_BITS) - 1)
#define SERIAL_MASK ((UINT64_C(1) << 44) - 1)

void spot_calls_init(struct spot_lane *l)
{
	uint32_t all = l->conf.calls + l->conf.commands;

	for (uint32_t i = l->conf.calls; i > 0; i--) {
		l->calls[i].next = l->call_free;
		l->call_free = i;
	}
	for (uint32_t i = all; i > l->conf.calls; i--) {
		l->calls[i].next = l->op_free;
		l->op_free = i;
	}
	l->calls_end_at = 1;
	wheel_init(&l->wheel, l->calls, sizeof(*l->calls), l->conf.clock_hz, spot_now(&l->clock));
}

/* A bijection of 44-bit numbers: odd factors, and shifts folded in. */
static uint64_t serial(struct spot_lane *l)
{
	uint64_t x;

	do {
		x = ++l->call_serial * (l->conf.secret[2] | 1) + l->conf.secret[3];
		x &= SERIAL_MASK;
		x ^= x >> 22;
		x = x * (l->conf.secret[1] | 1) & SERIAL_MASK;
		x ^= x >> 22;
	} while (x == 0);
	return x;
}

/* To another Spot: neither work for the workers nor a send. */
static bool is_request(const struct spot_call *c)
{
	return !c->is_told && (c->origin == SPOT_FROM_SELF || c->origin == SPOT_FROM_LANE);
}

struct spot_call *spot_call_start(struct spot_lane *l, uint8_t origin, uint64_t deadline)
{
	uint32_t i = l->call_free;
	struct spot_call *c = &l->calls[i];

	if (!i)
		return NULL;
	l->call_free = c->next;
	memset((uint8_t *)c + sizeof(c->timer), 0, sizeof(*c) - sizeof(c->timer));
	c->correlation = serial(l) << SLOT_BITS | i;
	c->state = CALL_OPEN;
	c->origin = origin;
	wheel_add(&l->wheel, i, deadline);
	l->calls_open++;
	l->calls_held++;
	c->begun = l->now;
	spot_count(l, SPL_C_CALLS_STARTED, 1);
	if (is_request(c))
		spot_count(l, SPL_C_CALLS_OPEN, 1);
	return c;
}

struct spot_call *spot_call_find(struct spot_lane *l, uint64_t correlation)
{
	uint32_t i = (uint32_t)correlation & SLOT_MASK;

	if (i == 0 || i > l->conf.calls || l->calls[i].correlation != correlation)
		return NULL;
	return l->calls[i].state == CALL_FREE ? NULL : &l->calls[i];
}

static bool is_held_by(const struct spot_lane *l, struct spot *s, const struct spot_rec *r)
{
	return s->gate.flags & SPOT_F_HELD && spot_cold_of(s)->running == spot_rec_index(l, r);
}

void spot_call_end(struct spot_lane *l, struct spot_call *c, uint8_t kind)
{
	uint32_t i = spot_call_index(l, c);
	struct spot_rec *r = &l->recs[c->rec];
	struct spot *s = spot_at(l, c->spot);

	c->state = CALL_ENDED;
	c->kind = kind;
	if (kind == SPL_OK && c->content >= SPL_CONTENT_COUNT) {
		c->kind = SPL_E_PROTOCOL_ERROR;
		c->payload_bytes = 0;
	}
	wheel_del(&l->wheel, i);
	l->calls_open--;
	if (is_request(c)) {
		spot_count(l, SPL_C_CALLS_OPEN, (uint64_t)-1);
		spot_note_request(l, c->begun, c->kind);
	}
	if (r->flags & REC_F_YIELDED && r->waited == i) {
		spot_yield_over(l, s, r);
	} else if (is_held_by(l, s, r) && r->waited == i) {
		s->gate.flags |= SPOT_F_RESUME;
		spot_ready_add(l, s);
	}
}

void spot_call_end_unanswered(struct spot_lane *l, struct spot_call *c, uint8_t kind)
{
	bool unknown = c->is_told && c->origin == SPOT_FROM_LANE;

	spot_call_end(l, c, unknown ? SPL_E_UNAVAILABLE : kind);
}

int spot_call_reply(struct spot_lane *l, uint64_t correlation, uint8_t kind, uint16_t content,
		    const void *payload, uint32_t bytes)
{
	struct spot_call *c = spot_call_find(l, correlation);
	void *mem = NULL;

	if (c && c->state == CALL_OPEN && c->origin == SPOT_FROM_SELF) {
		if (bytes) {
			mem = spot_mem_take(l, bytes);
			if (!mem)
				return -ENOBUFS;
			memcpy(mem, payload, bytes);
		}
		c->mem = mem;
		c->payload = mem;
		c->payload_bytes = bytes;
		c->content = content;
		if (spot_traces_flows(l))
			spot_trace_reply_in(l, c, kind);
		spot_call_end(l, c, kind);
		spot_count(l, SPL_C_MESSAGES_FINISHED, 1);
	} else {
		spot_add(&l->fails[SPL_FAIL_NO_CALL], 1);
		if (spot_traces_errors(l))
			spot_trace_reply_unexpected(l, correlation);
	}
	spot_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	return 0;
}

void spot_reply_in(struct spot_lane *l, const struct spot_reply *reply)
{
	struct spot_call *c = spot_call_find(l, reply->correlation);
	bool ours = c && c->state == CALL_OPEN;

	/* What control says of a missing Spot may stand for any of this node's answers. */
	if (ours && c->origin != reply->origin && reply->origin != SPOT_FROM_AGENT)
		ours = false;
	spot_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	if (!ours) {
		spot_add(&l->fails[SPL_FAIL_NO_CALL], 1);
		if (spot_traces_errors(l))
			spot_trace_reply_unexpected(l, reply->correlation);
		spot_done_add(l, reply->buf, reply->origin, reply->flow, reply->charge);
		spot_done_flush(l);
		return;
	}
	c->payload = reply->payload;
	c->payload_bytes = reply->payload_bytes;
	c->content = reply->content;
	c->buf = reply->buf;
	c->flow = reply->flow;
	c->from = reply->origin;
	c->charge = reply->charge;
	if (spot_traces_flows(l))
		spot_trace_reply_in(l, c, reply->kind);
	spot_call_end(l, c,
		      reply->kind <= SPL_E_INTERNAL_FAILURE || reply->kind == SPL_OK
			      ? reply->kind
			      : SPL_E_PROTOCOL_ERROR);
	spot_count(l, SPL_C_MESSAGES_FINISHED, 1);
}

void spot_call_drop(struct spot_lane *l, struct spot_call *c)
{
	if (c->state == CALL_OPEN) {
		wheel_del(&l->wheel, spot_call_index(l, c));
		l->calls_open--;
		if (is_request(c))
			spot_count(l, SPL_C_CALLS_OPEN, (uint64_t)-1);
	}
	spot_done_add(l, c->buf, c->from, c->flow, c->charge);
	spot_mem_give(l, c->mem);
	c->state = CALL_FREE;
	c->next = l->call_free;
	l->call_free = spot_call_index(l, c);
	l->calls_held--;
}

void spot_calls_drop(struct spot_lane *l, struct spot_rec *r)
{
	while (r->calls) {
		struct spot_call *c = &l->calls[r->calls];

		r->calls = c->next;
		spot_call_drop(l, c);
	}
	r->calls_count = 0;
}

unsigned spot_calls_end(struct spot_lane *l, uint8_t kind, unsigned max)
{
	for (uint32_t seen = 0; seen < 4 * max && max && l->calls_open; seen++) {
		struct spot_call *c = &l->calls[l->calls_end_at];

		l->calls_end_at = l->calls_end_at == l->conf.calls ? 1 : l->calls_end_at + 1;
		if (c->state != CALL_OPEN)
			continue;
		spot_call_end_unanswered(l, c, kind);
		max--;
	}
	return l->calls_open;
}

unsigned spot_tick(struct spot_lane *l, uint64_t now, unsigned max)
{
	uint32_t due[64];
	unsigned n;

	l->now = now;
	if (__builtin_expect(now >= l->idle_due, 0))
		spot_idle_look(l, now);
	n = wheel_advance(&l->wheel, now, due, max < 64 ? max : 64);
	for (unsigned i = 0; i < n; i++) {
		struct spot_call *c = &l->calls[due[i]];

		if (c->state == CALL_OP) {
			spot_op_expired(l, c);
		} else if (c->state == CALL_OPEN) {
			spot_count(l, SPL_C_CALLS_EXPIRED, 1);
			spot_call_end_unanswered(l, c, SPL_E_DEADLINE_EXCEEDED);
		}
	}
	return n;
}
