/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see waiter.h. */
#include "dataplane/spot/waiter.h"

#include "dataplane/spot/cast.h"
#include "dataplane/spot/queue.h"

/* ---- lines: doubly linked, because their times end them in any order ---- */

struct line {
	uint32_t *head, *tail;
};

static bool is_publish(const struct spot_rec *r)
{
	return r->kind == SPL_MSG_PUBLISH || r->kind == SPOT_KIND_TOLD_PUBLISH;
}

/* Of a publish that waits: its topic, in lane memory. */
static struct spl_key *topic_of(const struct spot_rec *r)
{
	return (struct spl_key *)(uintptr_t)r->msg.packet;
}

static struct line line_of(struct spot_lane *l, const struct spot_rec *r)
{
	struct spot_cold *cold;

	if (is_publish(r))
		return (struct line){&l->line_head, &l->line_tail};
	cold = spot_cold_of(spot_at(l, r->waits_for));
	return (struct line){&cold->wait_head, &cold->wait_tail};
}

static void line_add(struct spot_lane *l, struct spot_rec *r)
{
	struct line line = line_of(l, r);
	uint32_t i = spot_rec_index(l, r);

	r->next = 0;
	r->wait_prev = *line.tail;
	if (*line.tail)
		l->recs[*line.tail].next = i;
	else
		*line.head = i;
	*line.tail = i;
	l->waiters++;
}

/* While somebody waits the queue is full, whatever the next one costs: the rest of its bytes are
 * set aside, and given back before they are given away. */
static void set_aside(struct spot_lane *l, struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);

	cold->wait_aside = l->kinds[s->stage].queue_bytes - s->app.bytes;
	s->app.bytes += cold->wait_aside;
}

static void give_back(struct spot *s)
{
	struct spot_cold *cold = spot_cold_of(s);

	s->app.bytes -= cold->wait_aside;
	cold->wait_aside = 0;
}

/* Out of its line and of the wheel: as it was before it waited. */
static void line_del(struct spot_lane *l, struct spot_rec *r)
{
	struct line line = line_of(l, r);

	if (r->wait_prev)
		l->recs[r->wait_prev].next = r->next;
	else
		*line.head = r->next;
	if (r->next)
		l->recs[r->next].wait_prev = r->wait_prev;
	else
		*line.tail = r->wait_prev;
	wheel_del(&l->timer_wheel, spot_rec_index(l, r));
	if (!is_publish(r)) {
		if (!*line.head)
			give_back(spot_at(l, r->waits_for));
		r->waits_for = 0; /* it is the charge, of which a send of this runtime has none */
	}
	r->deadline = 0;
	r->flags = 0;
	l->waiters--;
}

static enum spl_message_fail begin_wait(struct spot_lane *l, struct spot_rec *r)
{
	uint64_t until =
		r->deadline ? r->deadline : l->now + spot_from_ms(&l->clock, l->conf.send_ms);

	memset(&r->node, 0, sizeof(r->node));
	r->flags = REC_F_WAITS;
	line_add(l, r);
	wheel_add(&l->timer_wheel, spot_rec_index(l, r), until);
	spot_count(l, SPL_C_SENDS_WAITED, 1);
	return SPL_FAIL_COUNT;
}

enum spl_message_fail spot_wait_for_spot(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	if (l->waiters >= l->conf.waiters)
		return SPL_FAIL_WAITERS_FULL;
	s->gate.flags |= SPOT_F_ODD;
	if (!spot_cold_of(s)->wait_head)
		set_aside(l, s);
	r->waits_for = spot_index(l, s);
	return begin_wait(l, r);
}

enum spl_message_fail spot_wait_for_line(struct spot_lane *l, struct spot_rec *r,
					 const struct spl_key *topic)
{
	struct spl_key *kept;

	if (l->waiters >= l->conf.waiters)
		return SPL_FAIL_WAITERS_FULL;
	kept = spot_mem_take(l, sizeof(*kept));
	if (!kept)
		return SPL_FAIL_NO_RECORD;
	*kept = *topic;
	r->msg.packet = (const char *)kept;
	return begin_wait(l, r);
}

/* ---- ends ---- */

void spot_told(struct spot_lane *l, struct spot_rec *r)
{
	bool told = true;

	if (r->kind == SPOT_KIND_TOLD_SEND)
		r->kind = SPL_MSG_SPOT_SEND;
	else if (r->kind == SPOT_KIND_TOLD_PUBLISH)
		r->kind = SPL_MSG_PUBLISH;
	else
		told = false;
	if (told && spot_answer(l, r, SPL_OK, SPL_CONTENT_RAW, NULL, 0) != 0)
		spot_count(l, SPL_C_REPLIES_LOST, 1);
	if (told) {
		r->msg.correlation = 0;
		r->deadline = 0; /* it was that of the admission */
	}
}

static void fail(struct spot_lane *l, struct spot_rec *r, enum spl_message_fail why, uint8_t kind)
{
	line_del(l, r);
	if (is_publish(r))
		spot_mem_give(l, topic_of(r));
	spot_count(l, SPL_C_MESSAGES_QUEUED, (uint64_t)-1);
	spot_fail(l, NULL, r, why, kind);
}

void spot_waiter_expired(struct spot_lane *l, struct spot_rec *r)
{
	fail(l, r, SPL_FAIL_EXPIRED, SPL_E_DEADLINE_EXCEEDED);
}

void spot_waiters_fail(struct spot_lane *l, struct spot *s)
{
	const struct spot_cold *cold = spot_cold_of(s);

	for (unsigned n = 0; cold->wait_head && n < WAITER_STEP; n++)
		fail(l, &l->recs[cold->wait_head], SPL_FAIL_NOT_READY, SPL_E_UNAVAILABLE);
}

/* ---- room ---- */

/* Its sender has been told something else already: cancelled, or its Spot was closed by force. */
static bool is_given_up(struct spot_lane *l, const struct spot_rec *r)
{
	const struct spot_call *c;

	if (r->origin != SPOT_FROM_SELF || !spot_is_answered(r))
		return false;
	c = spot_call_find(l, r->msg.correlation);
	return !c || c->state != CALL_OPEN;
}

/* Ends `r`, the first of a line, when it may not be admitted whatever room there is (S-LIM-6). */
static bool ends_now(struct spot_lane *l, struct spot_rec *r)
{
	if (l->sealed)
		fail(l, r, SPL_FAIL_SHUTDOWN, SPL_E_SHUTTING_DOWN);
	else if (l->now >= l->lease)
		fail(l, r, SPL_FAIL_FENCED, SPL_E_UNAVAILABLE);
	else if (is_given_up(l, r))
		fail(l, r, SPL_FAIL_EXPIRED, SPL_E_DEADLINE_EXCEEDED);
	else
		return false;
	return true;
}

bool spot_waiters_move(struct spot_lane *l, struct spot *s)
{
	const struct spot_cold *cold = spot_cold_of(s);
	const struct spot_kind *kind = &l->kinds[s->stage];
	unsigned n = 0;

	give_back(s);
	while (cold->wait_head && n < WAITER_STEP) {
		struct spot_rec *r = &l->recs[cold->wait_head];
		uint64_t cost = spot_cost_of(r);

		if (!ends_now(l, r)) {
			if (!spot_has_room(kind, s, cost))
				break;
			line_del(l, r);
			spot_put(l, s, r, (uint32_t)cost);
			spot_told(l, r);
		}
		n++;
	}
	if (cold->wait_head)
		set_aside(l, s);
	return n > 0;
}

struct spot_rec *spot_line_next(struct spot_lane *l, struct spl_key *topic)
{
	for (unsigned n = 0; l->line_head && n < WAITER_STEP; n++) {
		struct spot_rec *r = &l->recs[l->line_head];

		if (ends_now(l, r))
			continue;
		line_del(l, r);
		*topic = *topic_of(r);
		spot_mem_give(l, topic_of(r));
		spot_count(l, SPL_C_MESSAGES_QUEUED, (uint64_t)-1);
		return r;
	}
	return NULL;
}
