/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see activate.h. */
#include "dataplane/spot/activate.h"
#include "dataplane/spot/queue.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/waiter.h"

#include "common/ids.h"

/* The first under `key` from place `i` of a bucket on. */
static struct spot_wait *find_from(struct spot_lane *l, const struct spl_key *key, uint32_t i)
{
	while (i && !spl_key_equal(&l->waits.w[i].key, key))
		i = l->waits.w[i].next;
	return i ? &l->waits.w[i] : NULL;
}

static struct spot_wait *find(struct spot_lane *l, const struct spl_key *key)
{
	return find_from(l, key, l->waits.bucket[key->b[0] % SPOT_WAIT_BUCKETS]);
}

static struct spot_wait *find_of_type(struct spot_lane *l, const struct spl_key *key,
				      struct pack_bytes type)
{
	struct spot_wait *w = find(l, key);

	while (w && !(w->type.len == type.len && memcmp(w->type.b, type.p, type.len) == 0))
		w = find_from(l, key, w->next);
	return w;
}

static struct spot_wait *add(struct spot_lane *l, const struct spl_key *key, struct pack_bytes type)
{
	uint32_t i = l->waits.free, *bucket = &l->waits.bucket[key->b[0] % SPOT_WAIT_BUCKETS];
	struct spot_wait *w = &l->waits.w[i];

	if (!i)
		return NULL;
	l->waits.free = w->next;
	w->key = *key;
	w->head = w->tail = 0;
	w->count = w->bytes = 0;
	w->serial = ++l->waits.serial;
	(void)spl_name_set(&w->type, type.p, type.len); /* legal, or it had not come so far */
	w->stats = spot_stats_of_type(l, &w->type);
	w->next = *bucket;
	*bucket = i;
	l->waits.used++;
	return w;
}

static void drop(struct spot_lane *l, struct spot_wait *w)
{
	uint32_t *at = &l->waits.bucket[w->key.b[0] % SPOT_WAIT_BUCKETS];
	uint32_t i = (uint32_t)(w - l->waits.w);

	while (*at != i)
		at = &l->waits.w[*at].next;
	*at = w->next;
	w->next = l->waits.free;
	l->waits.free = i;
	l->waits.used--;
}

void spot_waits_init(struct spot_lane *l)
{
	for (uint32_t i = SPL_ACTIVATIONS_MAX; i > 0; i--) {
		l->waits.w[i].next = l->waits.free;
		l->waits.free = i;
	}
}

/* A message begins to wait (`n` 1), or does no longer (-1). */
static void note(const struct spot_wait *w, const struct spot_rec *r, int n)
{
	spot_add(&w->stats[SPL_S_STARTING], (uint64_t)n);
	spot_add(&w->stats[SPL_S_STARTING_BYTES], (uint64_t)n * r->msg.payload_bytes);
}

static struct spot_rec *take(struct spot_lane *l, struct spot_wait *w)
{
	struct spot_rec *r = &l->recs[w->head];

	note(w, r, -1);
	w->head = r->next;
	r->flags = 0;
	return r;
}

/* To the end of those that wait. The first asks; without a place, or when it cannot be asked now,
 * it is as if the lane had no memory. */
static enum spl_message_fail wait_for(struct spot_lane *l, struct spot_rec *r,
				      const struct spl_key *key, const struct spot_intent *intent)
{
	uint32_t cost = r->msg.payload_bytes + r->msg.metadata_bytes + SPOT_RECORD_COST;
	struct spot_wait *w = find_of_type(l, key, intent->type);
	struct spl_key of_id;

	if (w &&
	    (w->count >= l->conf.queue_count || (uint64_t)w->bytes + cost > l->conf.queue_bytes))
		return SPL_FAIL_QUEUE_FULL;
	if (!w) {
		of_id = spl_spot_key(intent->id.p, intent->id.len);
		if (!spl_key_equal(&of_id, key))
			return SPL_FAIL_MALFORMED; /* it would never be this Spot's */
		w = add(l, key, intent->type);
		if (!w)
			return SPL_FAIL_NO_RECORD;
		if (l->env.activate(l->env.host, key, intent, w->serial)) {
			drop(l, w);
			return SPL_FAIL_NO_RECORD;
		}
	}
	r->next = 0;
	r->cost = cost;
	r->flags = REC_F_WAITS;
	if (w->head)
		l->recs[w->tail].next = spot_rec_index(l, r);
	else
		w->head = spot_rec_index(l, r);
	w->tail = spot_rec_index(l, r);
	w->count++;
	w->bytes += cost;
	note(w, r, 1);
	spot_told(l,
		  r); /* a send is done when it is taken, whatever becomes of the Spot (S-ACT-5) */
	return SPL_FAIL_COUNT;
}

static bool is_of_type(const struct spot_lane *l, const struct spot *s, const char *type,
		       uint32_t len)
{
	const struct spl_stage *d = spot_stage_of(l, s)->desc;

	return d->kind == SPL_KIND_INSTANCE && strlen(d->type) == len &&
	       memcmp(d->type, type, len) == 0;
}

enum spl_message_fail spot_instance_in(struct spot_lane *l, struct spot *s, struct spot_rec *r,
				       const struct spl_key *key, const struct spot_intent *intent,
				       enum spl_message_fail shut)
{
	enum spl_message_fail why;

	if (shut != SPL_FAIL_COUNT)
		return shut;
	if (!s || s->gate.state != SPOT_S_READY)
		return wait_for(l, r, key, intent);
	if (!is_of_type(l, s, intent->type.p, intent->type.len))
		return SPL_FAIL_TYPE_MISMATCH;
	why = spot_enqueue_accepted(l, s, r);
	if (why == SPL_FAIL_COUNT && !r->waits_for)
		spot_told(l, r);
	return why;
}

void spot_waits_go(struct spot_lane *l, struct spot *s)
{
	const struct spl_stage *d = spot_stage_of(l, s)->desc;
	struct spot_wait *w = NULL;

	/* Of another type or kind: control says so to those who wait, not this Spot. */
	if (l->waits.used && d->kind == SPL_KIND_INSTANCE)
		w = find_of_type(l, &s->key,
				 (struct pack_bytes){d->type, (uint32_t)strlen(d->type)});
	if (!w)
		return;
	while (w->head) {
		struct spot_rec *r = take(l, w);

		spot_put(l, s, r, r->cost); /* taken already: its limit was that of the wait */
	}
	drop(l, w);
	spot_done_flush(l);
}

void spot_activated(struct spot_lane *l, const struct spl_key *key, uint64_t serial, uint8_t kind,
		    uint64_t now)
{
	struct spot_wait *w = find(l, key);

	l->now = now;
	while (w && w->serial != serial)
		w = find_from(l, key, w->next);
	if (!w)
		return; /* its Spot was published, and has them */
	while (w->head) {
		spot_count(l, SPL_C_MESSAGES_QUEUED, (uint64_t)-1);
		/* A Spot that is there, and not here: it has left since. */
		spot_fail(l, NULL, take(l, w), SPL_FAIL_INSTANCE_SPOT,
			  kind == SPL_OK ? SPL_E_UNAVAILABLE : kind);
	}
	drop(l, w);
	spot_done_flush(l);
}
