/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake.h. */
#include "tests/unit/spot/fake.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct buffer {
	struct fake *f;
	struct spl_target target;
	struct fake_lane *owner; /* of the payload, when it is a cast's */
	uint32_t token;
	uint32_t charge;
	uint8_t intent[512];
	char bytes[];
};

static void note(struct fake_out *to, const struct spot_out *o)
{
	*to = (struct fake_out){
		.to = o->to,
		.kind = o->kind,
		.error = o->error,
		.content = o->content,
		.flow = o->flow,
		.correlation = o->correlation,
		.deadline = o->deadline,
		.packet = o->packet,
		.source = o->source,
		.trace = o->trace,
		.bytes = o->payload_bytes,
	};
	if (o->target)
		to->key = o->target->key;
	if (o->target && o->target->instance) {
		to->id = o->target->id;
		(void)spl_name_set(&to->type, o->target->instance, strlen(o->target->instance));
	}
	if (o->payload_bytes)
		memcpy(to->payload, o->payload,
		       o->payload_bytes < sizeof(to->payload) ? o->payload_bytes
							      : sizeof(to->payload));
}

static int host_send(void *host, const struct spot_out *o)
{
	struct fake_lane *from = host;
	struct fake *f = from->f;

	if (f->send_error)
		return f->send_error;
	if (o->to == SPOT_FROM_LANE) {
		struct fake_lane *to = &f->lane[o->flow];
		struct fake_out *at;

		CU_ASSERT_FATAL(o->flow < f->lanes && to != from);
		if (to->ring_count == to->ring_max)
			return -EAGAIN;
		at = &to->ring[(to->ring_head + to->ring_count++) % FAKE_LIST];
		note(at, o);
		if (o->kind != SPL_MSG_REPLY)
			at->flow = from->index;
		at->whole = malloc(o->payload_bytes + 1);
		if (o->payload_bytes)
			memcpy(at->whole, o->payload, o->payload_bytes);
		return 0;
	}
	CU_ASSERT_FATAL(f->outs < FAKE_LIST);
	note(&f->out[f->outs++], o);
	return 0;
}

/* The end of a buffer; a cast's goes back to its lane through that lane's ring. */
static void take_back(struct fake *f, void *buf, uint32_t charge)
{
	struct buffer *b = buf;

	f->charged -= charge;
	if (!b)
		return;
	if (b->owner) {
		struct fake_lane *to = b->owner;

		CU_ASSERT_FATAL(to->ring_count < FAKE_LIST);
		to->ring[(to->ring_head + to->ring_count++) % FAKE_LIST] =
			(struct fake_out){.kind = FAKE_CAST_RETURN, .cast.token = b->token};
	}
	free(b);
	f->buffers--;
}

static void host_release(void *host, const struct spot_done *done, unsigned n)
{
	CU_ASSERT_FATAL(n >= 1 && n <= 64);
	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT(done[i].buf || done[i].charge);
		take_back(((struct fake_lane *)host)->f, done[i].buf, done[i].charge);
	}
}

/* A publish for another lane: payload and metadata are not copied, and the buffer gives it back to
 * the lane that has them. */
static int host_cast(void *host, uint32_t to, const struct spot_cast *c)
{
	struct fake_lane *fl = host;
	struct fake *f = fl->f;
	struct fake_lane *other = &f->lane[to];
	struct fake_out *m = &other->ring[(other->ring_head + other->ring_count) % FAKE_LIST];

	CU_ASSERT_FATAL(to < f->lanes && to != fl->index);
	if (other->ring_count == other->ring_max)
		return -EAGAIN;
	*m = (struct fake_out){.kind = SPOT_KIND_CAST,
			       .content = c->content,
			       .packet = c->packet,
			       .source = c->source,
			       .trace = c->trace,
			       .key = *c->topic,
			       .bytes = c->payload_bytes,
			       .flow = fl->index,
			       .cast = *c};
	other->ring_count++;
	f->casts++;
	return 0;
}

static int host_work(void *host, const struct spot_work *w)
{
	struct fake *f = ((struct fake_lane *)host)->f;

	CU_ASSERT_FATAL(w->input_bytes < sizeof(f->work_input[0]));
	CU_ASSERT(w->stage && !w->cpu != !w->io);
	if (f->work_error || f->works == FAKE_ASKED)
		return f->work_error ? f->work_error : -EAGAIN;
	f->work[f->works] = *w;
	f->work_lane[f->works] = ((struct fake_lane *)host)->index;
	if (w->input_bytes)
		memcpy(f->work_input[f->works], w->input, w->input_bytes);
	f->work_input[f->works++][w->input_bytes] = '\0';
	return 0;
}

static int host_create(void *host, const struct spot_creation *c)
{
	struct fake_lane *fl = host;
	struct fake *f = fl->f;
	struct fake_creation *to = &f->creation[f->creations];

	if (f->create_error || f->creations == FAKE_ASKED)
		return f->create_error ? f->create_error : -EAGAIN;
	f->creations++;
	snprintf(to->type, sizeof(to->type), "%.*s", (int)c->type.len, (const char *)c->type.p);
	snprintf(to->id, sizeof(to->id), "%.*s", (int)c->id.len,
		 c->id.len ? (const char *)c->id.p : "");
	snprintf(to->request, sizeof(to->request), "%.*s", (int)c->request.len,
		 c->request.len ? (const char *)c->request.p : "");
	to->correlation = c->correlation;
	to->deadline = c->deadline;
	to->lane = fl->index;
	return 0;
}

static void host_ended(void *host, struct spot_rec *const *recs, unsigned n)
{
	CU_ASSERT_FATAL(n >= 1 && n <= 64);
	for (unsigned i = 0; i < n; i++)
		take_back(((struct fake_lane *)host)->f, recs[i]->buf, recs[i]->charge);
}

static int host_missing(void *host, const struct spl_key *key, uint8_t origin, uint64_t flow,
			uint64_t correlation)
{
	struct fake *f = ((struct fake_lane *)host)->f;

	if (f->missing_error)
		return f->missing_error;
	f->missing++;
	f->missing_key = *key;
	f->missing_origin = origin;
	f->missing_correlation = correlation;
	CU_ASSERT(flow < f->lanes);
	return 0;
}

static int host_activate(void *host, const struct spl_key *key, const struct spot_intent *intent,
			 uint64_t serial)
{
	struct fake *f = ((struct fake_lane *)host)->f;

	if (f->activate_error)
		return f->activate_error;
	f->activates++;
	f->activate_key = *key;
	CU_ASSERT_EQUAL(spl_name_set(&f->activate_id, intent->id.p, intent->id.len), 0);
	CU_ASSERT_EQUAL(spl_name_set(&f->activate_type, intent->type.p, intent->type.len), 0);
	f->activate_serial = serial;
	return 0;
}

static void host_answer(void *host, const struct spot_answer *a)
{
	struct fake_lane *fl = host;
	struct fake *f = fl->f;

	CU_ASSERT_FATAL(f->answers < FAKE_LIST);
	f->answer[f->answers++] = *a;
	memset(f->answer_reply, 0, sizeof(f->answer_reply));
	if (a->reply_bytes)
		memcpy(f->answer_reply, a->reply, a->reply_bytes < 63 ? a->reply_bytes : 63);
	if (a->stage)
		spot_plan_remove(&fl->plan, a->stage, a->id_len);
}

static void host_failed(void *host, const struct spot_failure *x)
{
	struct fake *f = ((struct fake_lane *)host)->f;

	f->failures++;
	snprintf(f->failure, sizeof(f->failure), "%s %.*s of %.*s (%s): %s",
		 x->is_timer ? "timer" : "packet", (int)x->name_bytes, (const char *)x->name,
		 x->id->len, (const char *)x->id->b, x->stage->desc->type, spl_error_name(x->kind));
}

static void host_overran(void *host, const struct spot_overrun *o)
{
	struct fake *f = ((struct fake_lane *)host)->f;

	f->overruns++;
	snprintf(f->overrun, sizeof(f->overrun), "%s %.*s (%s): %llu", o->is_timer ? "timer" : "in",
		 (int)o->name_bytes, (const char *)o->name, o->stage->desc->type,
		 (unsigned long long)o->cycles);
}

static int host_close_wanted(void *host, const struct spl_key *key, const struct spl_name *id,
			     uint64_t generation, enum spl_closing reason)
{
	struct fake *f = ((struct fake_lane *)host)->f;

	if (f->close_error)
		return f->close_error;
	f->close_wanted++;
	f->close_reason = reason;
	f->close_generation = generation;
	f->close_id = *id;
	return 0;
}

/* FAKE_LIST elements, of which only those that are used cost something. */
static void *list(size_t element)
{
	void *p = mmap(NULL, FAKE_LIST * element, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CU_ASSERT_FATAL(p != MAP_FAILED);
	return p;
}

static void unlist(void *p, size_t element)
{
	munmap(p, FAKE_LIST * element);
}

void fake_init(struct fake *f, unsigned lanes)
{
	memset(f, 0, sizeof(*f));
	f->lanes = lanes;
	f->now = 1000 * (uint64_t)FAKE_MS;
	f->lease = UINT64_MAX;
	f->permits = UINT32_MAX;
	f->out = list(sizeof(*f->out));
	f->topic_lanes = calloc((size_t)SPOT_TOPIC_ROWS * lanes, sizeof(*f->topic_lanes));
	f->answer = list(sizeof(*f->answer));
	f->conf = (struct spot_conf){
		.lanes = lanes,
		.spots_max = 1024,
		.records = 1024,
		.calls = 256,
		.commands = 256,
		.timers = 256,
		.timers_per_spot = 16,
		.subscriptions = 256,
		.channels = 2,
		.channel = {spl_channel_key("world", 5), spl_channel_key("other", 5)},
		.heap_bytes = 1 << 20,
		.object_bytes = 1 << 20,
		.queue_count = 64,
		.queue_bytes = 65536,
		.life_count = 16,
		.life_bytes = 65536,
		.life_cap = 8,
		.turn_budget_us = 50,
		.turn_overrun_us = 2000,
		.waiters = 8,
		.send_ms = 200,
		.message_max = 65536,
		.request_ms = 1000,
		.create_ms = 3000,
		.clock_hz = FAKE_HZ,
		.secret = {1, 2, 3, 4},
	};
	fake_log_clear();
}

/* Large, so they are kept from one lane to the next. */
static struct spl_trace_ring rings[FAKE_LANES];

void fake_start(struct fake *f)
{
	struct spot_env env = {
		.send = host_send,
		.cast = host_cast,
		.work = host_work,
		.create = host_create,
		.ended = host_ended,
		.release = host_release,
		.missing = host_missing,
		.activate = host_activate,
		.answer = host_answer,
		.failed = host_failed,
		.overran = host_overran,
		.close_wanted = host_close_wanted,
	};

	for (unsigned i = 0; i < f->lanes; i++) {
		struct fake_lane *fl = &f->lane[i];
		struct spot_conf c = f->conf;

		fl->f = f;
		fl->index = i;
		fl->ring = list(sizeof(*fl->ring));
		fl->ring_max = FAKE_LIST;
		c.lane = i;
		c.fake_clock = &f->now;
		c.topic_lanes = f->topic_lanes;
		c.counters = fl->counters;
		c.fails = fl->fails;
		c.observed.stage_stats = fl->stage_stats;
		c.observed.stages = FAKE_STAGES;
		c.observed.infos = f->infos;
		fl->trace = &rings[i];
		fl->trace->written = 0;
		c.observed.trace = fl->trace;
		c.observed.measures = &fl->measures;
		env.host = fl;
		for (int r = 0; r < SPOT_MEM_COUNT; r++) {
			size_t n = spot_region_bytes(&c, (enum spot_region)r);

			CU_ASSERT_FATAL(n > 0);
			fl->mem[r] = aligned_alloc(64, (n + 63) & ~(size_t)63);
			memset(fl->mem[r], 0, n);
		}
		fl->l = spot_lane_init(&c, &env, fl->mem);
		CU_ASSERT_PTR_NOT_NULL_FATAL(fl->l);
		spot_plan_init(&fl->plan, &c);
		spot_lane_set(fl->l, f->lease, f->pool_low, f->permits);
	}
	fake_trace(f, SPL_TL_ERRORS, SPL_TRACE_ALL);
}

void fake_stop(struct fake *f)
{
	CU_ASSERT(fake_law(f));
	CU_ASSERT_EQUAL(f->buffers, 0);
	CU_ASSERT_EQUAL(f->charged, 0);
	for (unsigned i = 0; i < f->lanes; i++) {
		struct fake_lane *fl = &f->lane[i];

		CU_ASSERT_EQUAL(fl->counters[SPL_C_MESSAGES_QUEUED], 0);
		CU_ASSERT_EQUAL(fl->counters[SPL_C_MESSAGES_RUNNING], 0);
		CU_ASSERT(spot_lane_quiet(fl->l));
		for (uint32_t k = 0; k < fl->l->kinds_end; k++)
			CU_ASSERT_EQUAL(fl->l->kinds[k].pending + fl->l->kinds[k].payload, 0);
		for (int r = 0; r < SPOT_MEM_COUNT; r++)
			free(fl->mem[r]);
		unlist(fl->ring, sizeof(*fl->ring));
	}
	unlist(f->out, sizeof(*f->out));
	unlist(f->answer, sizeof(*f->answer));
	for (unsigned i = 0; i < SPOT_TOPIC_ROWS * f->lanes; i++)
		CU_ASSERT_EQUAL(f->topic_lanes[i], 0);
	free(f->topic_lanes);
}

static struct buffer *buffer(struct fake *f, const char *id, const void *bytes, uint32_t n,
			     uint32_t charge)
{
	struct buffer *b = malloc(sizeof(*b) + n + 1);

	b->f = f;
	b->owner = NULL;
	b->target.key = fake_key(id);
	if (spl_name_set(&b->target.id, id, strlen(id)) != 0)
		b->target.id.len = 0;
	b->charge = charge;
	if (n)
		memcpy(b->bytes, bytes, n);
	f->buffers++;
	f->charged += charge;
	return b;
}

uint64_t fake_prepare(struct fake *f, const char *id, const struct spot_stage *stage,
		      const char *request, uint64_t deadline)
{
	struct fake_lane *fl = fake_lane_of(f, id);
	uint32_t n = request ? (uint32_t)strlen(request) : 0;
	struct buffer *b = buffer(f, id, request, n, 0);
	struct spot_prepare p = {
		.key = b->target.key,
		.id = id,
		.id_len = (uint8_t)strlen(id),
		.content = SPL_CONTENT_TEXT,
		.request = b->bytes,
		.request_bytes = n,
		.buf = b,
		.stage = stage,
		.object_generation = ++f->next_generation,
		.op = ++f->next_op,
		.deadline = deadline,
	};

	CU_ASSERT_EQUAL_FATAL(spot_plan_add(&fl->plan, stage, p.id_len), 0);
	spot_prepare(fl->l, &p, f->now);
	return p.object_generation;
}

static struct spot_rec *record(struct fake *f, struct fake_lane *lane, struct buffer *b,
			       bool request, const char *packet, uint32_t bytes)
{
	struct spot_rec *r;

	CU_ASSERT_EQUAL_FATAL(spot_recs_take(lane->l, &r, 1), 1);
	r->msg.payload = b->bytes;
	r->msg.payload_bytes = bytes;
	r->buf = b;
	r->packet = spl_packet_key(packet, strlen(packet));
	r->deadline = 0;
	r->flow = 77;
	r->charge = b->charge;
	r->msg.metadata = NULL;
	r->msg.metadata_bytes = 0;
	r->msg.content = SPL_CONTENT_TEXT;
	r->kind = request ? SPL_MSG_SPOT_REQUEST : SPL_MSG_SPOT_SEND;
	r->origin = SPOT_FROM_LINK;
	r->msg.correlation = request ? ++f->next_correlation : 0;
	r->msg.source = 5;
	r->key = &b->target.key;
	return r;
}

struct spot_rec *fake_record(struct fake *f, const char *id, bool request, const char *packet,
			     const void *payload, uint32_t bytes)
{
	return record(f, fake_lane_of(f, id), buffer(f, id, payload, bytes, bytes + 100), request,
		      packet, bytes);
}

struct spot_rec *fake_record_on(struct fake *f, struct fake_lane *lane, const struct spl_key *key,
				const char *packet, const void *payload, uint32_t bytes)
{
	struct buffer *b = buffer(f, "", payload, bytes, bytes + 100);

	b->target.key = *key;
	return record(f, lane, b, false, packet, bytes);
}

static void set_intent(struct buffer *b, struct spot_rec *r, struct pack_bytes id,
		       struct pack_bytes type)
{
	CU_ASSERT_FATAL(wire_intent_put(b->intent, sizeof(b->intent), id, type) > 0);
	r->msg.packet = (const char *)b->intent;
}

uint64_t fake_instance(struct fake *f, const char *id, const char *type, bool request,
		       const char *packet, const char *payload)
{
	struct spot_rec *r =
		fake_record(f, id, request, packet, payload, (uint32_t)strlen(payload));
	uint64_t correlation = r->msg.correlation;

	set_intent(r->buf, r, (struct pack_bytes){id, (uint32_t)strlen(id)},
		   (struct pack_bytes){type, (uint32_t)strlen(type)});
	r->kind = request ? SPOT_KIND_INSTANCE_REQUEST : SPOT_KIND_INSTANCE_SEND;
	fake_admit(f, id, r);
	return correlation;
}

void fake_work_ends(struct fake *f, unsigned i, uint8_t kind, const char *text)
{
	struct spot_reply r = {.correlation = f->work[i].correlation,
			       .content = SPL_CONTENT_TEXT,
			       .kind = kind,
			       .origin = SPOT_FROM_WORK};
	struct buffer *b = buffer(f, "", text, text ? (uint32_t)strlen(text) : 0, 0);

	r.payload = b->bytes;
	r.payload_bytes = text ? (uint32_t)strlen(text) : 0;
	r.buf = b;
	spot_reply_in(f->lane[f->work_lane[i]].l, &r);
}

static bool take_ring(struct fake_lane *fl)
{
	struct fake *f = fl->f;
	struct fake_out *m = &fl->ring[fl->ring_head];
	struct buffer *b;
	struct spot_rec *r;

	if (m->kind == FAKE_CAST_RETURN) {
		spot_cast_returned(fl->l, m->cast.token);
		fl->ring_head = (fl->ring_head + 1) % FAKE_LIST;
		fl->ring_count--;
		return true;
	}
	b = malloc(sizeof(*b) + m->bytes + 1);
	memset(b, 0, sizeof(*b));
	b->target.key = m->key;
	if (m->whole)
		memcpy(b->bytes, m->whole, m->bytes);
	f->buffers++;
	if (m->kind == SPL_MSG_REPLY) {
		struct spot_reply reply = {
			.correlation = m->correlation,
			.payload = b->bytes,
			.payload_bytes = m->bytes,
			.content = m->content,
			.kind = m->error,
			.origin = SPOT_FROM_LANE,
			.buf = b,
		};

		spot_reply_in(fl->l, &reply);
	} else {
		CU_ASSERT_EQUAL_FATAL(spot_recs_take(fl->l, &r, 1), 1);
		r->msg.payload = b->bytes;
		r->msg.payload_bytes = m->bytes;
		r->buf = b;
		r->packet = m->packet;
		r->deadline = m->deadline;
		r->flow = m->flow;
		r->charge = 0;
		r->msg.metadata = NULL;
		r->msg.metadata_bytes = 0;
		r->msg.content = m->content;
		r->kind = m->kind;
		r->origin = SPOT_FROM_LANE;
		r->msg.correlation = m->correlation;
		r->msg.source = m->source;
		r->key = &b->target.key;
		if (m->type.len)
			set_intent(b, r, (struct pack_bytes){m->id.b, m->id.len},
				   (struct pack_bytes){m->type.b, m->type.len});
		if (m->kind == SPOT_KIND_CAST) {
			b->owner = &f->lane[m->flow];
			b->token = m->cast.token;
			r->msg.payload = m->cast.payload;
			r->msg.metadata = m->cast.metadata;
			r->msg.metadata_bytes = m->cast.metadata_bytes;
		}
		spot_flow_in(fl->l, r, &m->trace);
		spot_admit(fl->l, &r, 1, f->now);
	}
	free(m->whole);
	fl->ring_head = (fl->ring_head + 1) % FAKE_LIST;
	fl->ring_count--;
	return true;
}

unsigned fake_pass(struct fake *f, unsigned turns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->lanes; i++) {
		struct fake_lane *fl = &f->lane[i];

		spot_lane_set(fl->l, f->lease, f->pool_low, f->permits);
		while (fl->ring_count && take_ring(fl))
			n++;
		n += spot_timers(fl->l, f->now, 64);
		n += spot_tick(fl->l, f->now, 64);
		n += spot_run(fl->l, turns, f->now + 1000 * FAKE_MS);
	}
	return n;
}
