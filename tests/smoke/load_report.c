/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of all clients, added up and printed. */
#include "tests/smoke/load.h"

#include <stdio.h>
#include <string.h>

/* 16 buckets for each power of two: an error of at most 1/16. */
static uint32_t bucket_of(uint64_t us)
{
	uint32_t log;

	if (us < 16)
		return (uint32_t)us;
	log = 63 - (uint32_t)__builtin_clzll(us);
	return (log - 3) * 16 + (uint32_t)(us >> (log - 4) & 15);
}

static uint64_t upper_end(uint32_t bucket)
{
	uint32_t log = bucket / 16 + 3;

	if (bucket < 16)
		return bucket;
	return ((uint64_t)(16 + bucket % 16 + 1) << (log - 4)) - 1;
}

void load_latency(struct load_counts *c, uint64_t ns)
{
	uint32_t b = bucket_of(ns / 1000);

	c->latency[b < LOAD_BUCKETS ? b : LOAD_BUCKETS - 1]++;
}

static uint64_t percentile(const struct load_shared *s, uint64_t total, unsigned percent)
{
	uint64_t want = (total * percent + 99) / 100, seen = 0;

	for (uint32_t b = 0; total && b < LOAD_BUCKETS; b++) {
		for (uint32_t i = 0; i < s->o.clients; i++)
			seen += s->count[i].latency[b];
		if (seen >= want)
			return upper_end(b);
	}
	return 0;
}

void load_add_up(const struct load_shared *s, struct load_total *t)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < s->o.clients; i++) {
		const struct load_counts *c = &s->count[i];

		t->sent += c->sends + c->requests;
		t->requests += c->requests;
		t->delivered += c->heard;
		t->replies += c->replies;
		t->lost += c->lost;
		t->duplicated += c->duplicated + c->twice;
		t->reordered += c->reordered + c->swapped;
		t->retransmitted += c->retransmitted;
		t->errors += c->errors + c->wrong;
		t->open += c->open;
		t->connects += c->connects;
		t->losses += c->losses;
		t->created += c->created;
		t->existing += c->existing;
		t->failed += c->failed;
		for (unsigned k = 0; k < SPL_ERROR_COUNT; k++)
			t->by_kind[k] += c->by_kind[k];
	}
	t->p50_us = percentile(s, t->replies, 50);
	t->p99_us = percentile(s, t->replies, 99);
}

void load_show(const struct load_shared *s, const struct load_total *t)
{
	printf("result sent=%lu delivered=%lu replies=%lu lost=%lu duplicated=%lu reordered=%lu "
	       "retransmitted=%lu p50_us=%lu p99_us=%lu\n",
	       t->sent, t->delivered, t->replies, t->lost, t->duplicated, t->reordered,
	       t->retransmitted, t->p50_us, t->p99_us);
	printf("calls requests=%lu errors=%lu open=%lu created=%lu existing=%lu connects=%lu "
	       "losses=%lu failed=%u seed=%lu",
	       t->requests, t->errors, t->open, t->created, t->existing, t->connects, t->losses,
	       t->failed, s->o.seed);
	for (int k = 0; k < SPL_ERROR_COUNT; k++) {
		if (t->by_kind[k])
			printf(" %s=%lu", spl_error_name(k), t->by_kind[k]);
	}
	printf("\n");
	fflush(stdout);
}
