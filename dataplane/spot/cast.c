/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see cast.h. */
#include "dataplane/spot/cast.h"

#include "dataplane/spot/queue.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/waiter.h"

#include <stdatomic.h>

static _Atomic uint32_t *row_of(const struct spot_lane *l, const struct spl_key *key)
{
	uint32_t row = ((uint32_t)key->b[0] << 8 | key->b[1]) % SPOT_TOPIC_ROWS;

	return l->conf.topic_lanes + (size_t)row * l->conf.lanes;
}

/* Before a Spot is made known, so that who knows of it finds it counted: release, to the acquire of
 * other_lanes(). */
void spot_topic_lanes_add(struct spot_lane *l, const struct spl_key *key, uint32_t n)
{
	if (l->conf.lanes > 1)
		atomic_fetch_add_explicit(&row_of(l, key)[l->conf.lane], n, memory_order_release);
}

void spot_subs_ready(struct spot_lane *l, struct spot *s)
{
	for (uint32_t i = spot_cold_of(s)->subs; i; i = l->topics.subs[i].of_spot)
		l->topics.subs[i].stamp = ++l->topics.stamp;
}

void spot_subs_end(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);

	while (cold->subs) {
		const struct spot_sub *o = &l->topics.subs[cold->subs];
		uint32_t i = cold->subs;

		cold->subs = o->of_spot;
		spot_topic_lanes_add(l, &l->topics.topics[o->topic].key, (uint32_t)-1);
		spot_sub_del(&l->topics, i);
	}
}

void spot_cast_returned(struct spot_lane *l, uint32_t token)
{
	spot_cast_put(l, &l->recs[token]);
	spot_done_flush(l);
}

/* To every other lane that may have subscribers. A ring that is full is a target that is passed
 * over (S-MCAST-8). */
static void other_lanes(struct spot_lane *l, struct spot_rec *r, const struct spl_key *key)
{
	const struct spot_cast c = {
		.topic = key,
		.packet = r->packet,
		.source = r->msg.source,
		.token = spot_rec_index(l, r),
		.content = r->msg.content,
		.payload = r->msg.payload,
		.payload_bytes = r->msg.payload_bytes,
		.metadata = r->msg.metadata,
		.metadata_bytes = r->msg.metadata_bytes,
		.trace = spot_flow_out(l, r),
	};
	_Atomic uint32_t *row = row_of(l, key);

	for (uint32_t lane = 0; lane < l->conf.lanes; lane++)
		if (lane != l->conf.lane &&
		    atomic_load_explicit(&row[lane], memory_order_acquire) > 0 &&
		    l->env.cast(l->env.host, lane, &c) == 0)
			r->refs++;
}

static void to_line(struct spot_lane *l, struct spot_rec *r, uint32_t topic)
{
	struct spot_topics *t = &l->topics;
	uint32_t i = spot_rec_index(l, r);

	r->topic = topic;
	r->stamp = t->stamp;
	r->refs++;
	r->next = 0;
	if (t->cast_head)
		l->recs[t->cast_tail].next = i;
	else
		t->cast_head = i;
	t->cast_tail = i;
	t->cast_count++;
}

/* Every subscriber of this lane has it in its queue, or was passed over. The credit goes back now:
 * how long one of them takes must not stop the publisher, or the others (S-MCAST-12). */
static void leave(struct spot_lane *l, struct spot_rec *cast)
{
	if (cast->refs > 1) {
		spot_done_add(l, NULL, cast->origin, cast->flow, cast->charge);
		cast->charge = 0;
	}
	spot_cast_put(l, cast);
}

/* A place in the line: a burst may bring more publishes than it has, although nobody is full. */
static bool make_room(struct spot_lane *l)
{
	for (unsigned looked = 0; l->topics.cast_count == CASTS_MAX && looked < CAST_PASS;)
		looked += spot_casts_step(l);
	return l->topics.cast_count < CASTS_MAX;
}

/* From here on it is on its way, and nothing takes it back (S-MCAST-6,7). */
static void start(struct spot_lane *l, struct spot_rec *r, const struct spl_key *key,
		  uint32_t topic)
{
	bool here = r->kind == SPOT_KIND_CAST;

	spot_told(l, r);
	/* Once, for all who will read it, whatever their lane. */
	if (l->pool_low && r->buf && !here && spot_rec_move(l, r))
		spot_count(l, SPL_C_LINK_COPIED_OUT, 1);
	r->kind = REC_CAST;
	r->refs = 1;
	r->flags = 0;
	r->msg.is_request = false; /* what every subscriber gets */
	r->msg.correlation = 0;
	r->msg.deadline_ns = 0;
	if (!here && l->conf.lanes > 1)
		other_lanes(l, r, key);
	if (topic) {
		to_line(l, r, topic);
		spot_cast_put(l, r);
	} else {
		leave(l, r);
	}
}

/* The line has a place again. */
static void start_waiting(struct spot_lane *l)
{
	struct spot_rec *r;
	struct spl_key key;

	for (unsigned n = 0; n < WAITER_STEP; n++) {
		r = l->topics.cast_count < CASTS_MAX ? spot_line_next(l, &key) : NULL;
		if (!r)
			return;
		start(l, r, &key, spot_topic_find(&l->topics, &key));
		spot_count(l, SPL_C_MESSAGES_FINISHED, 1);
	}
}

enum spl_message_fail spot_cast_in(struct spot_lane *l, struct spot_rec *r,
				   const struct spl_key *key, bool *waits)
{
	bool here = r->kind == SPOT_KIND_CAST;
	uint32_t topic;

	*waits = false;
	/* What has started goes on (S-MCAST-7), and spl_publish() has said so to a Spot. */
	if (l->sealed && r->origin != SPOT_FROM_LANE)
		return SPL_FAIL_SHUTDOWN;
	if (l->now >= l->lease && !here)
		return SPL_FAIL_FENCED;
	if (!here && spl_key_lane(key, l->conf.lanes) != l->conf.lane)
		return SPL_FAIL_NO_SPOT; /* not the topic's lane: its order would be lost */
	if (r->msg.content >= SPL_CONTENT_COUNT)
		return SPL_FAIL_CONTENT_TYPE;
	topic = spot_topic_find(&l->topics, key);
	if (here ? topic && !make_room(l) : l->line_head || (topic && !make_room(l))) {
		/* Of another lane: this one's Spots are passed over (S-MCAST-8). Of a peer: it has
		 * waited where it was sent, and nobody gets it. */
		if (here || r->origin == SPOT_FROM_LINK)
			return SPL_FAIL_QUEUE_FULL;
		*waits = true;
		return spot_wait_for_line(l, r, key);
	}
	start(l, r, key, topic);
	return SPL_FAIL_COUNT;
}

/* What a step of a publish gives its subscribers, and what of it is written once for all of them.
 */
struct giving {
	struct spot_rec *cast;
	struct spot_kind *kind;	 /* of the last one */
	uint32_t stage, of_kind; /* and how many were of it one after another */
	uint32_t cost, all;
	uint32_t *ready_link; /* where the next one goes into the ready set */
	uint32_t ready_tail;
	bool traced;
};

static inline __attribute__((always_inline)) void giving_begin(struct spot_lane *l,
							       struct spot_rec *cast,
							       struct giving *g)
{
	*g = (struct giving){.cast = cast,
			     .stage = UINT32_MAX,
			     .cost = (uint32_t)spot_cost_of(cast),
			     .ready_tail = l->ready_tail,
			     .traced = spot_traces_flows(l)};
	g->ready_link =
		l->ready_tail ? &spot_at(l, l->ready_tail)->gate.ready_next : &l->ready_head;
}

/* From here on of another kind. */
static inline __attribute__((always_inline)) void giving_kind(struct spot_lane *l, struct giving *g,
							      uint32_t stage)
{
	if (g->of_kind) {
		g->kind->pending += g->of_kind;
		g->kind->payload += (uint64_t)g->of_kind * g->cast->msg.payload_bytes;
	}
	g->all += g->of_kind;
	g->of_kind = 0;
	g->stage = stage;
	g->kind = &l->kinds[stage];
}

static inline __attribute__((always_inline)) void giving_end(struct spot_lane *l, struct giving *g)
{
	giving_kind(l, g, 0);
	l->ready_tail = g->ready_tail;
	g->cast->refs += g->all;
	spot_count(l, SPL_C_MESSAGES_ACCEPTED, g->all);
	spot_count(l, SPL_C_MESSAGES_QUEUED, g->all);
}

/* spot_app_append(), whose ends of the ready set are in `g`. */
static inline __attribute__((always_inline)) void append(struct spot_lane *l, struct giving *g,
							 struct spot *s, uint32_t spot,
							 struct spot_rec *r)
{
	uint32_t i = spot_rec_index(l, r);

	r->next = 0;
	if (s->app.head)
		l->recs[s->app.tail].next = i;
	else
		s->app.head = i;
	s->app.tail = i;
	if (s->gate.flags & (SPOT_F_HELD | SPOT_F_READY))
		return;
	s->gate.flags |= SPOT_F_READY;
	s->gate.ready_next = 0;
	*g->ready_link = spot;
	g->ready_link = &s->gate.ready_next;
	g->ready_tail = spot;
}

/* A record for one subscriber: its first line only, the message is the publish's own. A Spot that
 * is full, not Ready or closing is passed over at once, as is everybody when records are short
 * (S-MCAST-8). */
static inline __attribute__((always_inline)) void give(struct spot_lane *l, struct giving *g,
						       struct spot *s, uint32_t spot, uint32_t sub)
{
	struct spot_rec *r;

	if (__builtin_expect(s->stage != g->stage, 0))
		giving_kind(l, g, s->stage);
	if (s->gate.state != SPOT_S_READY || !spot_has_room(g->kind, s, g->cost))
		return;
	r = spot_rec_get(l, false);
	if (!r)
		return;
	s->app.count++;
	s->app.bytes += g->cost;
	g->of_kind++;
	r->cost = g->cost;
	r->buf = NULL;
	r->packet = sub;
	r->charge = 0;
	r->kind = SPL_MSG_PUBLISH;
	r->origin = SPOT_FROM_CAST;
	r->flags = 0;
	r->cast = g->cast;
	if (g->traced)
		spot_flow_pass(l, g->cast, r);
	append(l, g, s, spot, r);
}

/* The first publish of the line, to at most `max` subscriptions more; how many it looked at. */
static unsigned cast_some(struct spot_lane *l, struct spot_rec *cast, unsigned max)
{
	const struct spot_sub *subs = l->topics.subs, *o = &subs[l->topics.cast_at];
	uint32_t at = l->topics.cast_at;
	unsigned looked = 0;
	struct spot *s = at ? spot_at(l, o->spot) : NULL;
	struct giving g;

	giving_begin(l, cast, &g);
	for (; at && looked < max; looked++) {
		uint32_t sub = at, spot = o->spot;
		bool wanted = o->packet == cast->packet && o->stamp <= cast->stamp;
		struct spot *here = s;

		if (wanted)
			cast->msg.packet = o->packet_name;
		at = o->next;
		if (at) {
			o = &subs[at];
			s = spot_at(l, o->spot);
			__builtin_prefetch(s, 1);
		}
		if (wanted)
			give(l, &g, here, spot, sub);
	}
	l->topics.cast_at = at;
	giving_end(l, &g);
	return looked;
}

/* Nothing of this node may start any more: every subscriber is passed over. */
static void casts_drop(struct spot_lane *l)
{
	struct spot_topics *t = &l->topics;

	while (t->cast_head) {
		struct spot_rec *cast = &l->recs[t->cast_head];

		t->cast_head = cast->next;
		spot_cast_put(l, cast);
	}
	t->cast_at = 0;
	t->cast_begun = false;
	t->cast_count = 0;
}

unsigned spot_casts_step(struct spot_lane *l)
{
	struct spot_topics *t = &l->topics;
	unsigned looked = 0;

	if (l->now >= l->lease)
		casts_drop(l);
	while (t->cast_head && looked < CAST_STEP) {
		struct spot_rec *cast = &l->recs[t->cast_head];

		if (!t->cast_begun)
			t->cast_at = t->topics[cast->topic].head;
		t->cast_begun = true;
		looked += cast_some(l, cast, CAST_STEP - looked);
		if (t->cast_at)
			break;
		t->cast_begun = false;
		t->cast_head = cast->next;
		t->cast_count--;
		leave(l, cast);
		looked++;
	}
	start_waiting(l); /* past the lease: ends them */
	return looked;
}
