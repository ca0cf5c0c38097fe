/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: the subscriptions of one lane's Spots, by topic (S-TOPIC). Inside the room only.
 *
 * Pools of fixed size: a subscription hangs in the list of its topic, in order of registration, and
 * in that of its Spot; a topic is there as long as it has one. Topics are found by their key
 * through buckets, chosen by the process's secret, so that ground names do not share one. One lane.
 */
#ifndef SPL_DATAPLANE_SPOT_TOPICS_H
#define SPL_DATAPLANE_SPOT_TOPICS_H

#include <spotlane/ids.h>
#include <spotlane/multicast.h>

struct spot_sub {
	uint32_t next, prev; /* of the same topic; 0 = end */
	uint32_t spot;
	uint32_t of_spot; /* the next of the same Spot; free list */
	uint32_t topic;
	uint32_t spare;
	uint64_t packet;
	uint64_t stamp; /* counts up; of when it was made, then of when its Spot was Ready */
	spl_topic_fn fn;
	const struct spl_topic *name; /* the stage's, as packet_name */
	const char *packet_name;
};

_Static_assert(sizeof(struct spot_sub) == 64, "a subscription is one cache line");

struct spot_topic {
	struct spl_key key;
	uint32_t chain; /* next of its bucket; free list */
	uint32_t head, tail;
	uint32_t spare;
};

struct spot_topics {
	struct spot_sub *subs;	   /* subs[0] is not used */
	struct spot_topic *topics; /* topics[0] is not used */
	uint32_t *bucket;
	uint32_t mask, max;
	uint32_t sub_free, topic_free, used;
	uint64_t stamp, secret;
	/* The publishes on their way to subscribers of this lane, see cast.h. */
	uint32_t cast_head, cast_tail; /* records */
	uint32_t cast_count;
	uint32_t cast_at; /* of the first one, its next subscription */
	bool cast_begun;
};

/* Memory for `max` subscriptions. */
size_t spot_topics_bytes(uint32_t max);
void spot_topics_init(struct spot_topics *t, void *mem, uint32_t max, uint64_t secret);

/* The topic of a key: its index, 0 when nobody has subscribed. */
uint32_t spot_topic_find(const struct spot_topics *t, const struct spl_key *key);

/* A subscription at the tail of its topic, which is made when it is the first; 0 when the pool is
 * empty. The caller fills the rest. */
uint32_t spot_sub_add(struct spot_topics *t, const struct spl_key *key);

/* Takes it out of its topic and gives it back. */
void spot_sub_del(struct spot_topics *t, uint32_t sub);

#endif
