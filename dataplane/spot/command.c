/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: commands of the agent: prepare, publish, discard, close (S-CREATE-5,8, S-CLOSE-3).
 *
 * An open command is an entry of the call table, so that its deadline sits in the same wheel, and
 * hangs at its Spot until it is answered. A Spot is freed in one place, spot_end(), which only a
 * visit from the ready set reaches: no list of the lane ever names a freed Spot.
 */
#include "dataplane/spot/activate.h"
#include "dataplane/spot/cast.h"
#include "dataplane/spot/idle.h"
#include "dataplane/spot/queue.h"
#include "dataplane/spot/timer.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"

#include <errno.h>

static struct spot_call *op_start(struct spot_lane *l, struct spot *s, uint8_t verb, uint64_t op,
				  uint64_t deadline)
{
	uint32_t i = l->op_free;
	struct spot_call *c = &l->calls[i];
	struct spot_cold *cold = spot_cold_of(s);

	if (!i)
		return NULL;
	l->op_free = c->next;
	memset((uint8_t *)c + sizeof(c->timer), 0, sizeof(*c) - sizeof(c->timer));
	c->state = CALL_OP;
	c->verb = verb;
	c->correlation = op;
	c->spot = spot_index(l, s);
	c->deadline = deadline;
	c->verdict = verb == SPOT_PREPARE ? SPOT_FAILED
		     : verb == SPOT_CLOSE ? SPOT_GONE
					  : SPOT_ACCEPTED;
	c->kind = verb == SPOT_PREPARE ? SPL_E_UNAVAILABLE : SPL_OK;
	c->next = cold->op;
	cold->op = i;
	if (deadline)
		wheel_add(&l->wheel, i, deadline);
	l->ops_open++;
	return c;
}

static void answer(struct spot_lane *l, const struct spl_key *key, uint64_t generation, uint64_t op,
		   uint8_t verb, uint8_t verdict, uint8_t error)
{
	struct spot_answer a = {
		.op = op,
		.verb = verb,
		.verdict = verdict,
		.error = error,
		.key = *key,
		.object_generation = generation,
	};

	l->env.answer(l->env.host, &a);
}

/* Answers the open command `c` of a Spot and releases it. */
static void op_end(struct spot_lane *l, struct spot_call *c, struct spot_answer *a)
{
	uint32_t i = spot_call_index(l, c);

	a->op = c->correlation;
	a->verb = c->verb;
	a->verdict = c->verdict;
	a->error = c->kind;
	a->content = 0;
	a->reply = NULL;
	a->reply_bytes = 0;
	if (c->verb == SPOT_PREPARE && c->verdict != SPOT_FAILED) {
		a->content = c->content;
		a->reply = c->payload;
		a->reply_bytes = c->payload_bytes;
	}
	l->env.answer(l->env.host, a);
	wheel_del(&l->wheel, i);
	spot_mem_give(l, c->mem);
	c->state = CALL_FREE;
	c->next = l->op_free;
	l->op_free = i;
	l->ops_open--;
}

/* What the open commands of `verb` will be answered when the Spot is gone. */
static void ops_decide(struct spot_lane *l, struct spot *s, uint8_t verb, uint8_t verdict,
		       uint8_t error)
{
	for (uint32_t i = spot_cold_of(s)->op; i; i = l->calls[i].next) {
		struct spot_call *c = &l->calls[i];

		if (c->verb == verb) {
			c->verdict = verdict;
			c->kind = error;
		}
	}
}

/* The creation has succeeded: the one answer that leaves the Spot there. */
static void op_accepted(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);
	struct spot_call *c = &l->calls[cold->op];
	struct spot_answer a = {.key = s->key, .object_generation = cold->object_generation};

	cold->op = 0; /* nothing else can be open: discard ends the creation, close comes later */
	c->verdict = SPOT_ACCEPTED;
	c->kind = SPL_OK;
	op_end(l, c, &a);
}

struct spot_call *spot_op_creation(struct spot_lane *l, struct spot *s)
{
	for (uint32_t i = spot_cold_of(s)->op; i; i = l->calls[i].next)
		if (l->calls[i].verb == SPOT_PREPARE)
			return &l->calls[i];
	return NULL;
}

/* A creation, and a closing when nothing else is left, always find the queue empty; its bounds are
 * for notices (S-LANE-2). */
static void life_push(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	struct spot_cold *cold = spot_cold_of(s);
	uint32_t i = spot_rec_index(l, r);

	r->next = 0;
	r->cost = r->msg.payload_bytes + SPOT_RECORD_COST;
	if (cold->life_head)
		l->recs[cold->life_tail].next = i;
	else
		cold->life_head = i;
	cold->life_tail = i;
	cold->life_count++;
	cold->life_bytes += r->cost;
	s->gate.flags |= SPOT_F_LIFE;
	if (!(s->gate.flags & SPOT_F_HELD))
		spot_ready_add(l, s);
}

struct spot_rec *spot_life_pop(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);
	struct spot_rec *r = &l->recs[cold->life_head];

	cold->life_head = r->next;
	r->waited = 0;
	if (!cold->life_head) {
		cold->life_tail = 0;
		s->gate.flags &= (uint8_t)~SPOT_F_LIFE;
	}
	return r;
}

static struct spot_rec *life_record(struct spot_lane *l, uint8_t kind, uint64_t deadline)
{
	struct spot_rec *r = spot_rec_get(l, true);

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->origin = SPOT_FROM_AGENT;
	r->deadline = deadline;
	return r;
}

int spot_life_notice(struct spot_lane *l, struct spot *s,
		     int (*fn)(struct spl_turn *turn, void *state))
{
	const struct spot_cold *cold = spot_cold_of(s);
	struct spot_rec *r;

	if (s->gate.state != SPOT_S_READY)
		return -ENOENT;
	if (cold->life_count >= l->conf.life_count ||
	    cold->life_bytes + SPOT_RECORD_COST > l->conf.life_bytes)
		return -EAGAIN;
	r = life_record(l, REC_NOTICE, 0);
	if (!r)
		return -ENOBUFS;
	r->notice = fn;
	life_push(l, s, r);
	return 0;
}

/* Lets the next visit free it. */
static void end_soon(struct spot_lane *l, struct spot *s)
{
	spot_set_state(l, s, SPOT_S_ENDING);
	spot_ready_add(l, s);
}

/* The creation goes on with `r` or has ended; true when `r` is in the queue again. */
static bool creation_done(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	bool forced = s->gate.flags & SPOT_F_FORCED;

	if (rc == SPL_DONE && !forced && r->kind == REC_CREATE) {
		spot_done_add(l, r->buf, r->origin, r->flow, r->charge);
		r->buf = NULL;
		r->charge = 0;
		r->msg.payload = NULL;
		r->msg.payload_bytes = 0;
		r->kind = REC_INITIALIZE;
		r->flags = 0;
		life_push(l, s, r);
		return true;
	}
	if (rc == SPL_DONE && !forced) {
		spot_set_state(l, s, SPOT_S_PREPARED);
		op_accepted(l, s);
		return false;
	}
	if (rc == SPL_REJECTED && !forced)
		ops_decide(l, s, SPOT_PREPARE, SPOT_REJECTED, SPL_OK);
	else if (forced)
		ops_decide(l, s, SPOT_PREPARE, SPOT_FAILED, SPL_E_DEADLINE_EXCEEDED);
	else
		ops_decide(l, s, SPOT_PREPARE, SPOT_FAILED, (uint8_t)(rc & 0xff));
	end_soon(l, s);
	return false;
}

void spot_life_done(struct spot_lane *l, struct spot *s, struct spot_rec *r, int rc)
{
	struct spot_cold *cold = spot_cold_of(s);
	uint8_t kind = rc == SPL_DONE ? SPL_OK : (uint8_t)(rc & 0xff);

	cold->life_count--;
	cold->life_bytes -= r->cost;
	if (kind != SPL_OK && rc != SPL_REJECTED && spot_traces_errors(l))
		spot_trace_callback_failed(l, s, r, NULL);
	else if (spot_traces_flows(l))
		spot_trace_completed(l, s, r);
	if (s->gate.state == SPOT_S_ENDING) {
		spot_ready_add(l, s);
	} else if (cold->reason == (uint8_t)SPOT_FENCED && r->kind == REC_CLOSING) {
		end_soon(l, s);
	} else if (r->kind == REC_CLOSING) {
		if (s->gate.flags & SPOT_F_FORCED)
			kind = SPL_E_DEADLINE_EXCEEDED;
		ops_decide(l, s, SPOT_CLOSE, kind == SPL_OK ? SPOT_ACCEPTED : SPOT_FAILED, kind);
		end_soon(l, s);
	} else if (r->kind != REC_NOTICE && creation_done(l, s, r, rc)) {
		return;
	}
	spot_rec_end(l, r);
}

bool spot_end(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);
	struct spot_answer a = {
		.key = s->key,
		.object_generation = cold->object_generation,
		.stage = spot_stage_of(l, s),
		.id_len = cold->id_len,
	};
	uint32_t op = cold->op;

	if (s->gate.flags & SPOT_F_READY)
		return false;
	while (s->gate.flags & SPOT_F_LIFE) /* at most the record of its creation, and notices */
		spot_rec_end(l, spot_life_pop(l, s));
	spot_timers_end(l, s);
	spot_subs_end(l, s);
	spot_idle_del(l, s);
	table_del(&l->table, s);
	spot_note_end(l, s);
	spot_set_state(l, s, SPOT_S_FREE);
	slab_give(&l->slab, s->gate.size_class, s);
	spot_count(l, SPL_C_SPOTS, (uint64_t)-1);
	while (op) {
		struct spot_call *c = &l->calls[op];

		op = c->next;
		op_end(l, c, &a);
		a.stage = NULL; /* one of the answers tells the plan */
	}
	return true;
}

/* Ends the wait of a suspended turn, if there is one. */
static void end_wait(struct spot_lane *l, struct spot *s, uint8_t kind)
{
	struct spot_call *c;

	if (!(s->gate.flags & SPOT_F_HELD))
		return;
	c = &l->calls[l->recs[spot_cold_of(s)->running].waited];
	if (c->state == CALL_OPEN)
		spot_call_end_unanswered(l, c, kind);
}

void spot_op_expired(struct spot_lane *l, struct spot_call *op)
{
	struct spot *s = spot_at(l, op->spot);
	bool shutdown =
		op->verb == SPOT_CLOSE && spot_cold_of(s)->reason == SPL_CLOSING_HOST_SHUTDOWN;

	s->gate.flags |= SPOT_F_FORCED;
	end_wait(l, s, shutdown ? SPL_E_SHUTTING_DOWN : SPL_E_DEADLINE_EXCEEDED);
	spot_ready_add(l, s);
}

static struct spot *find(struct spot_lane *l, const struct spl_key *key, uint64_t generation)
{
	struct spot *s = table_find(&l->table, key);

	return s && spot_cold_of(s)->object_generation == generation ? s : NULL;
}

static uint8_t prepare_refusal(const struct spot_lane *l, const struct spot_prepare *p,
			       uint64_t now)
{
	struct spot *s;

	if (l->sealed)
		return SPL_E_SHUTTING_DOWN;
	if (now >= l->lease)
		return SPL_E_UNAVAILABLE;
	s = table_find(&l->table, &p->key);
	if (s) {
		const struct spot_cold *cold = spot_cold_of(s);
		bool same = cold->id_len == p->id_len && memcmp(cold->id, p->id, p->id_len) == 0;

		return same ? SPL_E_ALREADY_EXISTS : SPL_E_INTERNAL_FAILURE;
	}
	if (!l->op_free || l->table.count >= l->conf.spots_max)
		return SPL_E_CAPACITY_EXCEEDED;
	return SPL_OK;
}

static struct spot *make(struct spot_lane *l, const struct spot_prepare *p)
{
	unsigned class = slab_class_of(spot_object_bytes(p->stage, p->id_len));
	struct spot *s = slab_take(&l->slab, class);
	struct spot_cold *cold;

	if (!s)
		return NULL;
	memset(s, 0, spot_object_bytes(p->stage, 0));
	s->key = p->key;
	s->stage = p->stage->index;
	s->cold_at = (uint16_t)spot_cold_units(p->stage);
	spot_kind_get(l, p->stage);
	s->gate.size_class = (uint8_t) class;
	spot_set_state(l, s, SPOT_S_CREATING);
	cold = spot_cold_of(s);
	cold->object_generation = p->object_generation;
	cold->id_len = p->id_len;
	memcpy(cold->id, p->id, p->id_len);
	table_add(&l->table, s);
	spot_idle_add(l, s);
	spot_count(l, SPL_C_SPOTS, 1);
	return s;
}

static void refuse_prepare(struct spot_lane *l, const struct spot_prepare *p, uint8_t kind)
{
	struct spot_answer a = {
		.op = p->op,
		.verb = SPOT_PREPARE,
		.verdict = SPOT_FAILED,
		.error = kind,
		.stage = p->stage,
		.id_len = p->id_len,
		.key = p->key,
		.object_generation = p->object_generation,
	};

	spot_add(&spot_kind_get(l, p->stage)->stats[SPL_S_CREATE_FAILED], 1);
	l->env.answer(l->env.host, &a);
}

void spot_prepare(struct spot_lane *l, const struct spot_prepare *p, uint64_t now)
{
	uint8_t kind = prepare_refusal(l, p, now);
	struct spot_rec *r = NULL;
	struct spot *s = NULL;

	l->now = now;
	if (kind == SPL_OK) {
		r = life_record(l, REC_CREATE, p->deadline);
		s = r ? make(l, p) : NULL;
		if (!s)
			kind = SPL_E_CAPACITY_EXCEEDED;
	}
	if (kind != SPL_OK) {
		if (r)
			spot_rec_free(l, r);
		spot_done_add(l, p->buf, SPOT_FROM_AGENT, 0, 0);
		refuse_prepare(l, p, kind);
		spot_done_flush(l);
		return;
	}
	op_start(l, s, SPOT_PREPARE, p->op, p->deadline);
	r->msg.payload = p->request;
	r->msg.payload_bytes = p->request_bytes;
	r->msg.content = p->content;
	r->buf = p->buf;
	life_push(l, s, r);
}

void spot_publish(struct spot_lane *l, const struct spl_key *key, uint64_t generation, uint64_t op,
		  uint64_t now)
{
	struct spot *s = find(l, key, generation);
	uint8_t verdict = SPOT_GONE, error = SPL_OK;

	l->now = now;
	if (s && (s->gate.state == SPOT_S_PREPARED || s->gate.state == SPOT_S_READY)) {
		verdict = now >= l->lease ? SPOT_FAILED : SPOT_ACCEPTED;
		error = now >= l->lease ? SPL_E_UNAVAILABLE : SPL_OK;
		if (verdict == SPOT_ACCEPTED && s->gate.state == SPOT_S_PREPARED) {
			spot_set_state(l, s, SPOT_S_READY);
			spot_stage_add(l, s, SPL_S_CREATED, 1);
			spot_subs_ready(l, s);
			spot_waits_go(l, s); /* before anything that comes after (S-ACT-8) */
		}
	}
	answer(l, key, generation, op, SPOT_PUBLISH, verdict, error);
}

void spot_discard(struct spot_lane *l, const struct spl_key *key, uint64_t generation, uint64_t op,
		  uint64_t now)
{
	struct spot *s = find(l, key, generation);
	uint8_t state = s ? s->gate.state : SPOT_S_FREE;

	l->now = now;
	if (state != SPOT_S_CREATING && state != SPOT_S_PREPARED && state != SPOT_S_ENDING) {
		answer(l, key, generation, op, SPOT_DISCARD, SPOT_GONE, SPL_OK);
		return;
	}
	if (!op_start(l, s, SPOT_DISCARD, op, 0)) {
		answer(l, key, generation, op, SPOT_DISCARD, SPOT_FAILED, SPL_E_CAPACITY_EXCEEDED);
		return;
	}
	s->gate.flags |= SPOT_F_FORCED;
	end_wait(l, s, SPL_E_UNAVAILABLE);
	end_soon(l, s);
}

/* Its row is not ours any more: nothing of it runs or is answered as if it were. */
static void fence(struct spot_lane *l, struct spot *s)
{
	ops_decide(l, s, SPOT_CLOSE, SPOT_ACCEPTED, SPL_OK);
	s->gate.flags |= SPOT_F_FORCED;
	end_wait(l, s, SPL_E_UNAVAILABLE);
	if (s->gate.state == SPOT_S_CREATING || s->gate.state == SPOT_S_PREPARED ||
	    s->gate.state == SPOT_S_ENDING)
		spot_set_state(l, s, SPOT_S_ENDING);
	else
		spot_set_state(l, s, SPOT_S_CLOSING);
	spot_ready_add(l, s);
}

void spot_close(struct spot_lane *l, const struct spl_key *key, uint64_t generation, uint64_t op,
		enum spl_closing reason, uint64_t deadline, uint64_t now)
{
	struct spot *s = find(l, key, generation);
	uint8_t state = s ? s->gate.state : SPOT_S_FREE;
	bool fenced = reason == SPOT_FENCED;

	l->now = now;
	if (!s || (!fenced && state != SPOT_S_PREPARED && state != SPOT_S_READY &&
		   state != SPOT_S_CLOSING)) {
		answer(l, key, generation, op, SPOT_CLOSE, SPOT_GONE, SPL_OK);
		return;
	}
	if (reason == SPL_CLOSING_IDLE_EVICTED && state == SPOT_S_READY &&
	    !spot_is_idle_since(l, s)) {
		answer(l, key, generation, op, SPOT_CLOSE, SPOT_BUSY, SPL_OK);
		return;
	}
	if (!op_start(l, s, SPOT_CLOSE, op, fenced ? 0 : deadline)) {
		answer(l, key, generation, op, SPOT_CLOSE, SPOT_FAILED, SPL_E_CAPACITY_EXCEEDED);
		return;
	}
	s->gate.flags &= (uint8_t)~SPOT_F_ARMED;
	if (state != SPOT_S_CLOSING || fenced)
		spot_cold_of(s)->reason = (uint8_t)reason;
	if (fenced) {
		fence(l, s);
		return;
	}
	spot_set_state(l, s, SPOT_S_CLOSING);
	spot_ready_add(l, s);
}

bool spot_closing_start(struct spot_lane *l, struct spot *s)
{
	uint64_t deadline = 0;
	struct spot_rec *r;

	if (spot_cold_of(s)->reason == (uint8_t)SPOT_FENCED) {
		end_soon(l, s);
		return true;
	}
	for (uint32_t i = spot_cold_of(s)->op; i; i = l->calls[i].next)
		if (l->calls[i].verb == SPOT_CLOSE)
			deadline = l->calls[i].deadline; /* the last one is the first that came */
	r = life_record(l, REC_CLOSING, deadline);
	if (!r)
		return false;
	life_push(l, s, r);
	return true;
}
