/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: admission: from a message that arrived to a place in one queue, or a refusal by name.
 *
 * A burst goes through three passes, so that the misses of the table and of the Spots overlap: hash
 * and fetch buckets, match tags and fetch Spots, compare keys and admit. Between the state test and
 * the enqueue nothing else of the lane runs: that is the critical section of S-ADM-1.
 */
#include "dataplane/spot/activate.h"
#include "dataplane/spot/api.h"
#include "dataplane/spot/cast.h"
#include "dataplane/spot/queue.h"
#include "dataplane/spot/totals.h"
#include "dataplane/spot/trace.h"
#include "dataplane/spot/waiter.h"

#define BURST 32u

_Static_assert(SPL_MSG_SPOT_REQUEST == SPL_MSG_SPOT_SEND + 1, "one comparison tells both");

/* Why nothing is admitted now, SPL_FAIL_COUNT when it is: the same for a whole burst. */
static inline enum spl_message_fail closed(const struct spot_lane *l, uint64_t now)
{
	if (l->sealed)
		return SPL_FAIL_SHUTDOWN;
	return now >= l->lease ? SPL_FAIL_FENCED : SPL_FAIL_COUNT;
}

/* The queue is full. A send of this runtime waits, a request does not, and what a peer has sent was
 * done with when it left there (S-LIM-5). More than the whole queue would never find room. */
static __attribute__((noinline)) enum spl_message_fail full(struct spot_lane *l, struct spot *s,
							    struct spot_rec *r, uint64_t cost)
{
	if (r->origin == SPOT_FROM_LINK || r->kind == SPL_MSG_SPOT_REQUEST ||
	    cost > l->kinds[s->stage].queue_bytes)
		return SPL_FAIL_QUEUE_FULL;
	return spot_wait_for_spot(l, s, r);
}

static inline enum spl_message_fail enqueue(struct spot_lane *l, struct spot *s, struct spot_rec *r,
					    enum spl_message_fail why)
{
	const struct spot_kind *kind = &l->kinds[s->stage];
	uint64_t cost = spot_cost_of(r);

	if (__builtin_expect(why != SPL_FAIL_COUNT, 0))
		return why;
	if (__builtin_expect(s->gate.state != SPOT_S_READY, 0))
		return SPL_FAIL_NOT_READY;
	if (__builtin_expect(!spot_has_room(kind, s, cost), 0))
		return full(l, s, r, cost);
	spot_put(l, s, r, (uint32_t)cost);
	return SPL_FAIL_COUNT;
}

enum spl_message_fail spot_enqueue(struct spot_lane *l, struct spot *s, struct spot_rec *r,
				   uint64_t now)
{
	return enqueue(l, s, r, closed(l, now));
}

/* The same of a send whose sender waits for its admission, and tells him. */
static enum spl_message_fail send_told(struct spot_lane *l, struct spot *s, struct spot_rec *r,
				       uint64_t now)
{
	enum spl_message_fail why = spot_enqueue(l, s, r, now);

	if (why == SPL_FAIL_COUNT && !r->waits_for)
		spot_told(l, r);
	return why;
}

enum spl_message_fail spot_closed(const struct spot_lane *l, uint64_t now)
{
	return closed(l, now);
}

enum spl_message_fail spot_enqueue_accepted(struct spot_lane *l, struct spot *s, struct spot_rec *r)
{
	return enqueue(l, s, r, SPL_FAIL_COUNT);
}

/* The kind of the error reply, by origin (S-ERR-3, S-ADDR-6). */
static uint8_t refusal_kind(enum spl_message_fail why, uint8_t origin)
{
	switch ((int)why) {
	case SPL_FAIL_SHUTDOWN:
		return SPL_E_SHUTTING_DOWN;
	case SPL_FAIL_WAITERS_FULL:
	case SPL_FAIL_EXPIRED:
		return SPL_E_DEADLINE_EXCEEDED; /* at once (S-LIM-5) */
	case SPL_FAIL_QUEUE_FULL:
	case SPL_FAIL_NO_RECORD:
		return origin == SPOT_FROM_LINK ? SPL_E_UNAVAILABLE : SPL_E_CAPACITY_EXCEEDED;
	case SPL_FAIL_UNKNOWN_KIND:
	case SPL_FAIL_MALFORMED:
		return SPL_E_PROTOCOL_ERROR;
	case SPL_FAIL_TYPE_MISMATCH:
		return SPL_E_TYPE_MISMATCH;
	default:
		return SPL_E_UNAVAILABLE;
	}
}

/* A request of this node for a key that no Ready Spot has: the host asks control what that means.
 * From a peer it is a stale route, because peers resolve before they send (S-ADDR-6). */
static bool ask_control(struct spot_lane *l, const struct spot_rec *r, const struct spl_key *key)
{
	uint64_t flow = r->origin == SPOT_FROM_SELF ? l->conf.lane : r->flow;

	if ((r->kind != SPL_MSG_SPOT_REQUEST && r->kind != SPOT_KIND_TOLD_SEND) ||
	    (r->origin != SPOT_FROM_SELF && r->origin != SPOT_FROM_LANE))
		return false;
	return l->env.missing(l->env.host, key, r->origin, flow, r->msg.correlation) == 0;
}

void spot_refuse(struct spot_lane *l, struct spot_rec *r, const struct spl_key *key,
		 enum spl_message_fail why)
{
	r->flags = 0;
	if ((why == SPL_FAIL_NO_SPOT || why == SPL_FAIL_NOT_READY) && ask_control(l, r, key))
		r->flags = REC_F_REPLIED;
	spot_fail(l, NULL, r, why, refusal_kind(why, r->origin));
}

/* One burst on its way through the passes. */
struct burst {
	uint64_t hash[BURST];
	const struct table_bucket *bucket[BURST];
	struct spot *guess[BURST];
};

/* Each pass is a function of its own, so that its values find registers. */
static __attribute__((noinline)) void fetch_buckets(const struct table *t, struct burst *b,
						    struct spot_rec *const *recs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		b->hash[i] = table_hash(t, recs[i]->key);
		b->bucket[i] = table_bucket_of(t, b->hash[i]);
		__builtin_prefetch(b->bucket[i]);
	}
}

static __attribute__((noinline)) void fetch_spots(const struct table *t, struct burst *b,
						  unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		b->guess[i] = table_guess(t, b->bucket[i], b->hash[i]);
		__builtin_prefetch(b->guess[i], 1); /* harmless when there is none */
	}
}

/* Its sender has been told that it is never admitted, or will be (S-LIM-6). */
static bool is_late(const struct spot_rec *r, uint64_t now)
{
	return r->deadline && now >= r->deadline &&
	       (r->kind == SPOT_KIND_TOLD_SEND || r->kind == SPOT_KIND_TOLD_PUBLISH);
}

static enum spl_message_fail with_intent(struct spot_lane *l, struct spot *s, struct spot_rec *r,
					 const struct spl_key *key, uint64_t now)
{
	const uint8_t *p = (const uint8_t *)r->msg.packet;
	struct spot_intent intent = {{p + 1, p[0]}, {p + 2 + p[0], p[1 + p[0]]}};

	r->kind = r->kind == SPOT_KIND_INSTANCE_SEND   ? SPL_MSG_SPOT_SEND
		  : r->kind == SPOT_KIND_INSTANCE_TOLD ? SPOT_KIND_TOLD_SEND
						       : SPL_MSG_SPOT_REQUEST;
	if (is_late(r, now))
		return SPL_FAIL_EXPIRED;
	return spot_instance_in(l, s, r, key, &intent, closed(l, now));
}

/* A message of another kind than most; `*queued` when it is in a queue now. */
static enum spl_message_fail other_kind(struct spot_lane *l, struct spot *s, struct spot_rec *r,
					const struct spl_key *key, uint64_t now, bool *queued)
{
	*queued = true;
	if (is_late(r, now))
		return SPL_FAIL_EXPIRED;
	switch (r->kind) {
	case SPL_MSG_PUBLISH:
	case SPOT_KIND_CAST:
	case SPOT_KIND_TOLD_PUBLISH:
		return spot_cast_in(l, r, key, queued);
	case SPOT_KIND_TOLD_SEND:
		if (s)
			return send_told(l, s, r, now);
		return l->sealed ? SPL_FAIL_SHUTDOWN : SPL_FAIL_NO_SPOT;
	case SPOT_KIND_INSTANCE_SEND:
	case SPOT_KIND_INSTANCE_REQUEST:
	case SPOT_KIND_INSTANCE_TOLD:
		return with_intent(l, s, r, key, now);
	default:
		return SPL_FAIL_UNKNOWN_KIND;
	}
}

static void admit_burst(struct spot_lane *l, struct spot_rec *const *recs, unsigned n, uint64_t now)
{
	enum spl_message_fail shut = closed(l, now);
	unsigned refused = 0, cast = 0;
	struct burst b;

	fetch_buckets(&l->table, &b, recs, n);
	fetch_spots(&l->table, &b, n);
	for (unsigned i = 0; i < n; i++) {
		struct spot_rec *r = recs[i];
		const struct spl_key *key = r->key;
		struct spot *s = table_find_at(&l->table, key, b.hash[i], b.guess[i]);
		enum spl_message_fail why = SPL_FAIL_NO_SPOT;

		r->mem = NULL;
		if (__builtin_expect((unsigned)r->kind - SPL_MSG_SPOT_SEND > 1u, 0)) {
			bool waits = true;

			why = other_kind(l, s, r, key, now, &waits);
			if (why == SPL_FAIL_COUNT && !waits) {
				cast++;
				continue;
			}
		} else if (__builtin_expect(s != NULL, 1))
			why = enqueue(l, s, r, shut);
		else if (l->sealed)
			why = SPL_FAIL_SHUTDOWN;
		if (__builtin_expect(why != SPL_FAIL_COUNT, 0)) {
			refused++;
			spot_refuse(l, r, key, why);
		}
	}
	spot_count(l, SPL_C_MESSAGES_ACCEPTED, n);
	spot_count(l, SPL_C_MESSAGES_QUEUED, n - refused - cast);
	if (cast)
		spot_count(l, SPL_C_MESSAGES_FINISHED, cast);
}

void spot_admit_own(struct spot_lane *l, struct spot_rec *r, const struct spl_target *target)
{
	const struct spl_key *key = r->key;
	struct spot *s = table_find(&l->table, key);
	bool queued = true;
	enum spl_message_fail why = target->instance ? spot_own_instance(l, s, r, target)
						     : other_kind(l, s, r, key, l->now, &queued);

	spot_count(l, SPL_C_MESSAGES_ACCEPTED, 1);
	if (why != SPL_FAIL_COUNT)
		spot_refuse(l, r, key, why);
	else
		spot_count(l, queued ? SPL_C_MESSAGES_QUEUED : SPL_C_MESSAGES_FINISHED, 1);
}

/* The same, one after the other, with what there is to tell of each. */
static __attribute__((noinline)) void admit_traced(struct spot_lane *l,
						   struct spot_rec *const *recs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct spl_key key = *recs[i]->key; /* may lie in a buffer that goes */

		spot_trace_received(l, recs[i]);
		admit_burst(l, recs + i, 1, l->now);
		if (recs[i]->flags & REC_F_WAITS) /* it was refused or is on its way otherwise */
			spot_trace_admitted(l, recs[i], &key);
	}
}

void spot_admit(struct spot_lane *l, struct spot_rec *const *recs, unsigned n, uint64_t now)
{
	l->now = now;
	if (spot_traces_flows(l)) {
		admit_traced(l, recs, n);
		n = 0;
	}
	for (unsigned at = 0; at < n; at += BURST)
		admit_burst(l, recs + at, n - at < BURST ? n - at : BURST, now);
	spot_done_flush(l);
}
