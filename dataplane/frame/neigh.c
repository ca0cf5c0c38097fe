/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the agent's side of the neighbour table; lanes read it by neigh_get.h.
 *
 * See neigh.h for the states and the way lanes read it. Agent only. Owns its memory and the waiting
 * frames; only neigh_create() can fail for memory. Entry i of the agent and slot i of the lanes
 * belong to each other.
 */
#include "dataplane/frame/neigh.h"
#include "dataplane/frame/neigh_get.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVICT_STEPS 64u /* slots looked at for a victim when the table is full */

enum state { FREE, INCOMPLETE, REACHABLE, PROBE, FAILED };

struct entry {
	uint32_t ip;
	uint8_t state, asked, n_pending;
	bool keep;
	uint64_t due, used, pause; /* next action, last known use, pause of a failed one */
	uint8_t mac[6];
	void *pending[NEIGH_PENDING_MAX];
};

struct neigh {
	struct neigh_pub pub;
	struct entry *entries;
	struct neigh_times times;
	struct neigh_ops ops;
	struct neigh_counts counts;
	uint32_t capacity, hand;
	uint64_t next_due; /* no entry is due earlier */
};

/* Makes lanes see ip at mac in this slot; ip 0 withdraws it. */
static void publish(struct neigh *n, const struct entry *e, uint32_t ip, const uint8_t *mac)
{
	struct neigh_slot *s = &n->pub.slots[e - n->entries];
	uint32_t seq = atomic_load_explicit(&s->seq, memory_order_relaxed);
	uint64_t word = 0;

	if (mac)
		memcpy(&word, mac, 6);
	/* Who reads one of the new values (acquire) also sees the odd counter, or a later one. */
	atomic_store_explicit(&s->seq, seq + 1, memory_order_relaxed);
	atomic_store_explicit(&s->ip, ip, memory_order_release);
	atomic_store_explicit(&s->mac, word, memory_order_release);
	atomic_store_explicit(&s->seq, seq + 2, memory_order_release);
}

static void due_at(struct neigh *n, struct entry *e, uint64_t when)
{
	e->due = when;
	if (when < n->next_due)
		n->next_due = when;
}

static void ask(struct neigh *n, struct entry *e, const uint8_t *mac, uint64_t now)
{
	e->asked++;
	n->counts.probes++;
	due_at(n, e, now + n->times.probe_ns);
	n->ops.probe(n->ops.ctx, e->ip, mac);
}

static void flush_pending(struct neigh *n, struct entry *e, const uint8_t *mac)
{
	for (unsigned i = 0; i < e->n_pending; i++)
		n->ops.frame(n->ops.ctx, e->pending[i], mac);
	if (!mac)
		n->counts.pending_dropped += e->n_pending;
	e->n_pending = 0;
}

static void release(struct neigh *n, struct entry *e)
{
	publish(n, e, 0, NULL);
	flush_pending(n, e, NULL);
	memset(e, 0, sizeof(*e));
	n->counts.entries--;
}

static void fail(struct neigh *n, struct entry *e, uint64_t now)
{
	publish(n, e, 0, NULL);
	flush_pending(n, e, NULL);
	e->state = FAILED;
	e->pause = n->times.probe_ns;
	n->counts.failed++;
	due_at(n, e, now + e->pause);
}

/* Has anybody used it since the last call? */
static bool take_used(struct neigh *n, struct entry *e, uint64_t now)
{
	_Atomic uint8_t *used = &n->pub.used[e - n->entries];

	if (!atomic_load_explicit(used, memory_order_relaxed))
		return false;
	atomic_store_explicit(used, 0, memory_order_relaxed);
	e->used = now;
	return true;
}

/* True when e may make room: nobody asked to keep it, nothing waits for it, no lane just used it.
 */
static bool can_evict(struct neigh *n, const struct entry *e)
{
	return e->state != FREE && !e->keep && e->n_pending == 0 &&
	       !atomic_load_explicit(&n->pub.used[e - n->entries], memory_order_relaxed);
}

static struct entry *find(const struct neigh *n, uint32_t ip)
{
	uint32_t first = neigh_slot(&n->pub, ip);

	for (uint32_t i = first; i < first + NEIGH_WINDOW; i++)
		if (n->entries[i].state != FREE && n->entries[i].ip == ip)
			return &n->entries[i];
	return NULL;
}

/* The table is at its capacity: lets one go, looking at no more than EVICT_STEPS slots. */
static bool make_room(struct neigh *n)
{
	for (unsigned i = 0; i < EVICT_STEPS; i++) {
		struct entry *e = &n->entries[n->hand];

		n->hand = (n->hand + 1) % (n->pub.size + NEIGH_WINDOW);
		if (can_evict(n, e)) {
			release(n, e);
			n->counts.evicted++;
			return true;
		}
	}
	return false;
}

/* A free entry in the window of ip, evicting the one that was not used for longest if need be. */
static struct entry *place(struct neigh *n, uint32_t ip)
{
	struct entry *w = &n->entries[neigh_slot(&n->pub, ip)], *victim = NULL;

	if (n->counts.entries >= n->capacity && !make_room(n))
		return NULL;
	for (unsigned i = 0; i < NEIGH_WINDOW; i++) {
		if (w[i].state == FREE)
			return &w[i];
		if (can_evict(n, &w[i]) && (!victim || w[i].used < victim->used))
			victim = &w[i];
	}
	if (victim) {
		release(n, victim);
		n->counts.evicted++;
	}
	return victim;
}

static struct entry *create(struct neigh *n, uint32_t ip, uint64_t now)
{
	struct entry *e = place(n, ip);

	if (!e) {
		n->counts.full++;
		return NULL;
	}
	e->ip = ip;
	e->state = INCOMPLETE;
	e->used = now;
	atomic_store_explicit(&n->pub.used[e - n->entries], 0, memory_order_relaxed);
	n->counts.entries++;
	return e;
}

int neigh_keep(struct neigh *n, uint32_t ip, uint64_t now)
{
	struct entry *e = ip ? find(n, ip) : NULL;

	if (ip == 0)
		return -EINVAL;
	if (e) {
		e->keep = true;
		return 0;
	}
	e = create(n, ip, now);
	if (!e)
		return -ENOSPC;
	e->keep = true;
	ask(n, e, NULL, now);
	return 0;
}

void neigh_unkeep(struct neigh *n, uint32_t ip, uint64_t now)
{
	struct entry *e = find(n, ip);

	if (!e)
		return;
	e->keep = false;
	e->used = now;
}

void neigh_send(struct neigh *n, uint32_t ip, void *frame, uint64_t now)
{
	struct entry *e = ip ? find(n, ip) : NULL;

	if (!e && ip != 0) {
		e = create(n, ip, now);
		if (e)
			ask(n, e, NULL, now);
	}
	if (!e || e->state == FAILED) {
		n->counts.pending_dropped++;
		n->ops.frame(n->ops.ctx, frame, NULL);
		return;
	}
	e->used = now;
	if (e->state != INCOMPLETE) {
		n->ops.frame(n->ops.ctx, frame, e->mac);
		return;
	}
	if (e->n_pending == NEIGH_PENDING_MAX) {
		n->counts.pending_dropped++;
		n->ops.frame(n->ops.ctx, e->pending[0], NULL);
		e->n_pending--;
		memmove(e->pending, e->pending + 1, e->n_pending * sizeof(e->pending[0]));
	}
	e->pending[e->n_pending++] = frame;
}

void neigh_learn(struct neigh *n, uint32_t ip, const uint8_t mac[6], bool may_create, uint64_t now)
{
	struct entry *e = ip ? find(n, ip) : NULL;
	bool published;

	if (!e && ip != 0 && may_create)
		e = create(n, ip, now);
	if (!e)
		return;
	published = e->state == REACHABLE || e->state == PROBE;
	if (!published || memcmp(e->mac, mac, 6) != 0) {
		n->counts.moved += published;
		memcpy(e->mac, mac, 6);
		publish(n, e, ip, mac);
	}
	n->counts.learned++;
	e->state = REACHABLE;
	e->asked = 0;
	due_at(n, e, now + n->times.reachable_ns);
	flush_pending(n, e, e->mac);
}

static void reachable_due(struct neigh *n, struct entry *e, uint64_t now)
{
	take_used(n, e, now);
	if (e->keep || now - e->used < n->times.reachable_ns) {
		e->state = PROBE;
		e->asked = 0;
		ask(n, e, e->mac, now);
	} else if (now - e->used >= n->times.idle_ns) {
		release(n, e);
	} else {
		due_at(n, e, now + n->times.reachable_ns);
	}
}

static void failed_due(struct neigh *n, struct entry *e, uint64_t now)
{
	if (!e->keep) {
		release(n, e);
		return;
	}
	ask(n, e, NULL, now);
	e->pause = e->pause * 2 < n->times.backoff_max_ns ? e->pause * 2 : n->times.backoff_max_ns;
	e->due = now + e->pause;
}

static void entry_due(struct neigh *n, struct entry *e, uint64_t now)
{
	if (e->state == REACHABLE)
		reachable_due(n, e, now);
	else if (e->state == FAILED)
		failed_due(n, e, now);
	else if (e->asked >= n->times.probes)
		fail(n, e, now);
	else /* the last question of a known one is broadcast: it may have a new MAC */
		ask(n, e, e->state == PROBE && e->asked + 1u < n->times.probes ? e->mac : NULL,
		    now);
}

uint64_t neigh_tick(struct neigh *n, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (now < n->next_due)
		return n->next_due;
	for (uint32_t i = 0; i < n->pub.size + NEIGH_WINDOW; i++) {
		struct entry *e = &n->entries[i];

		if (e->state == FREE)
			continue;
		if (e->due <= now)
			entry_due(n, e, now);
		if (e->state != FREE && e->due < next)
			next = e->due;
	}
	n->next_due = next;
	return next;
}

struct neigh *neigh_create(unsigned capacity, const struct neigh_times *times,
			   const struct neigh_ops *ops, uint64_t secret)
{
	struct neigh *n;
	size_t slots;

	if (capacity == 0 || capacity > NEIGH_CAP_MAX || times->probes == 0 ||
	    times->probes > UINT8_MAX || times->probe_ns == 0) {
		errno = EINVAL;
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	for (n->pub.size = NEIGH_WINDOW; n->pub.size < 2 * capacity;)
		n->pub.size *= 2;
	slots = n->pub.size + NEIGH_WINDOW;
	n->pub.key[0] = secret;
	n->pub.key[1] = (secret ^ 0x9e3779b97f4a7c15ull) * 0x94d049bb133111ebull | 1;
	n->pub.slots = calloc(slots, sizeof(*n->pub.slots));
	n->pub.used = calloc(slots, sizeof(*n->pub.used));
	n->entries = calloc(slots, sizeof(*n->entries));
	if (!n->pub.slots || !n->pub.used || !n->entries) {
		neigh_destroy(n);
		errno = ENOMEM;
		return NULL;
	}
	n->times = *times;
	n->ops = *ops;
	n->capacity = capacity;
	n->next_due = UINT64_MAX;
	return n;
}

void neigh_destroy(struct neigh *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; n->entries && i < n->pub.size + NEIGH_WINDOW; i++)
		flush_pending(n, &n->entries[i], NULL);
	free(n->entries);
	free(n->pub.slots);
	free(n->pub.used);
	free(n);
}

const struct neigh_pub *neigh_published(const struct neigh *n)
{
	return &n->pub;
}

const struct neigh_counts *neigh_counters(const struct neigh *n)
{
	return &n->counts;
}
