/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: see topics.h. */
#include "dataplane/spot/topics.h"

#include <string.h>

static uint32_t buckets(uint32_t max)
{
	uint32_t n = 16;

	while (n < max)
		n *= 2;
	return n;
}

size_t spot_topics_bytes(uint32_t max)
{
	return (max + (size_t)1) * (sizeof(struct spot_sub) + sizeof(struct spot_topic)) +
	       buckets(max) * sizeof(uint32_t);
}

void spot_topics_init(struct spot_topics *t, void *mem, uint32_t max, uint64_t secret)
{
	memset(t, 0, sizeof(*t));
	t->subs = mem;
	t->topics = (struct spot_topic *)(void *)(t->subs + max + 1);
	t->bucket = (uint32_t *)(void *)(t->topics + max + 1);
	t->mask = buckets(max) - 1;
	t->max = max;
	t->secret = secret;
	for (uint32_t i = max; i > 0; i--) {
		t->subs[i].of_spot = t->sub_free;
		t->sub_free = i;
		t->topics[i].chain = t->topic_free;
		t->topic_free = i;
	}
}

/* A key is a hash already; the secret and two multiplications keep ground ones apart. */
static uint32_t *bucket_of(const struct spot_topics *t, const struct spl_key *key)
{
	uint64_t a, b, x;

	memcpy(&a, key->b, sizeof(a));
	memcpy(&b, key->b + 8, sizeof(b));
	x = (a ^ t->secret) * UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	x = (x + b) * (t->secret | 1);
	x ^= x >> 32;
	return &t->bucket[x & t->mask];
}

uint32_t spot_topic_find(const struct spot_topics *t, const struct spl_key *key)
{
	uint32_t i = *bucket_of(t, key);

	while (i && !spl_key_equal(&t->topics[i].key, key))
		i = t->topics[i].chain;
	return i;
}

static uint32_t topic_make(struct spot_topics *t, const struct spl_key *key)
{
	uint32_t i = spot_topic_find(t, key), *bucket = bucket_of(t, key);

	if (i)
		return i;
	i = t->topic_free; /* there are as many as subscriptions */
	t->topic_free = t->topics[i].chain;
	t->topics[i] = (struct spot_topic){.key = *key, .chain = *bucket};
	*bucket = i;
	return i;
}

static void topic_end(struct spot_topics *t, uint32_t topic)
{
	uint32_t *at = bucket_of(t, &t->topics[topic].key);

	while (*at != topic)
		at = &t->topics[*at].chain;
	*at = t->topics[topic].chain;
	t->topics[topic].chain = t->topic_free;
	t->topic_free = topic;
}

uint32_t spot_sub_add(struct spot_topics *t, const struct spl_key *key)
{
	uint32_t i = t->sub_free, topic;
	struct spot_topic *o;

	if (!i)
		return 0;
	t->sub_free = t->subs[i].of_spot;
	topic = topic_make(t, key);
	o = &t->topics[topic];
	t->subs[i] = (struct spot_sub){.prev = o->tail, .topic = topic, .stamp = ++t->stamp};
	if (o->tail)
		t->subs[o->tail].next = i;
	else
		o->head = i;
	o->tail = i;
	t->used++;
	return i;
}

void spot_sub_del(struct spot_topics *t, uint32_t sub)
{
	struct spot_sub *s = &t->subs[sub];
	struct spot_topic *o = &t->topics[s->topic];

	if (t->cast_at == sub)
		t->cast_at = s->next;
	if (s->prev)
		t->subs[s->prev].next = s->next;
	else
		o->head = s->next;
	if (s->next)
		t->subs[s->next].prev = s->prev;
	else
		o->tail = s->prev;
	if (!o->head)
		topic_end(t, s->topic);
	s->of_spot = t->sub_free;
	t->sub_free = sub;
	t->used--;
}
