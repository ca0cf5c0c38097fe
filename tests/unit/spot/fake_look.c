/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test looks at: see fake.h. */
#include "tests/unit/spot/fake.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <stdio.h>

static char log_text[8192];

void fake_log(const char *word)
{
	size_t n = strlen(log_text);

	snprintf(log_text + n, sizeof(log_text) - n, "%s%s", n ? " " : "", word);
}

const char *fake_logged(void)
{
	return log_text;
}

void fake_log_clear(void)
{
	log_text[0] = '\0';
}

const struct fake_out *fake_reply(struct fake *f, uint64_t correlation)
{
	const struct fake_out *found = NULL;

	for (unsigned i = 0; i < f->outs; i++) {
		if (f->out[i].kind != SPL_MSG_REPLY || f->out[i].correlation != correlation)
			continue;
		CU_ASSERT_PTR_NULL(found);
		found = &f->out[i];
	}
	return found;
}

bool fake_replied(struct fake *f, uint64_t correlation, uint8_t error, const char *payload)
{
	const struct fake_out *r = fake_reply(f, correlation);

	return r && r->error == error &&
	       (!payload ||
		(r->bytes == strlen(payload) && memcmp(r->payload, payload, r->bytes) == 0));
}

const struct spot_answer *fake_answer(struct fake *f, uint8_t verb)
{
	for (unsigned i = f->answers; i > 0; i--)
		if (f->answer[i - 1].verb == verb)
			return &f->answer[i - 1];
	return NULL;
}

uint64_t fake_stage_total(struct fake *f, const struct spot_stage *stage, enum spl_stage_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < f->lanes; i++) {
		struct fake_lane *fl = &f->lane[i];

		spot_lane_set(fl->l, f->lease, f->pool_low, f->permits);
		n += fl->stage_stats[stage->index].counter[c];
	}
	return n;
}

/* What a walk over the Spots finds, by the index of their stage. */
struct sums {
	uint64_t queued[FAKE_STAGES], ready[FAKE_STAGES], closing[FAKE_STAGES], all[FAKE_STAGES];
};

static void sum_up(void *ctx, const struct spot_item *item)
{
	struct sums *s = ctx;
	unsigned i = item->stage->index;

	s->queued[i] += item->queued;
	s->ready[i] += item->ready;
	s->closing[i] += item->closing;
	s->all[i]++;
}

bool fake_totals_law(const struct fake_lane *fl)
{
	struct sums sums = {{0}, {0}, {0}, {0}};
	uint64_t cursor = 0;
	bool ok = true;

	while (spot_inventory(fl->l, &cursor, 4096, sum_up, &sums))
		;
	for (uint32_t i = 0; i < fl->l->kinds_end && i < FAKE_STAGES; i++) {
		const struct spot_kind *k = &fl->l->kinds[i];
		const uint64_t *c = fl->stage_stats[i].counter;

		if (!k->stage)
			continue;
		ok = ok && c[SPL_S_READY] == sums.ready[i] && c[SPL_S_CLOSING] == sums.closing[i];
		ok = ok && c[SPL_S_CREATING] == sums.all[i] - sums.ready[i] - sums.closing[i];
		ok = ok && (k->stage->own_timers || k->pending == sums.queued[i]);
		ok = ok && k->plain == 0 && c[SPL_S_ACTIVE] <= k->pending;
		ok = ok && c[SPL_S_ACTIVE_BYTES] <= k->payload;
	}
	return ok;
}

bool fake_law(const struct fake *f)
{
	bool ok = true;

	for (unsigned i = 0; i < f->lanes; i++) {
		const struct fake_lane *fl = &f->lane[i];
		uint64_t failed = 0;

		for (int k = 0; k < SPL_FAIL_COUNT; k++)
			failed += fl->fails[k];
		ok = ok && fl->counters[SPL_C_MESSAGES_ACCEPTED] ==
				   fl->counters[SPL_C_MESSAGES_FINISHED] + failed +
					   fl->counters[SPL_C_MESSAGES_QUEUED] +
					   fl->counters[SPL_C_MESSAGES_RUNNING];
		ok = ok && fake_totals_law(fl);
		ok = ok && lanemem_check(spot_lane_mem(fl->l));
		ok = ok && fl->l->slab.cut <= fl->plan.bytes[SPOT_MEM_OBJECTS];
		ok = ok &&
		     fl->l->table.n * sizeof(struct table_bucket) <= fl->plan.bytes[SPOT_MEM_TABLE];
	}
	return ok;
}

uint64_t fake_failed(const struct fake *f, enum spl_message_fail why)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < f->lanes; i++)
		n += f->lane[i].fails[why];
	return n;
}

uint64_t fake_counter(const struct fake *f, enum spl_lane_counter c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < f->lanes; i++)
		n += f->lane[i].counters[c];
	return n;
}

const struct spot_stage *fake_stage(const struct spl_stage *desc)
{
	static struct spot_stage made[32];
	static struct spot_handler slots[32][64];
	static uint16_t n;
	uint32_t which;

	for (uint16_t i = 0; i < n; i++)
		if (made[i].desc == desc)
			return &made[i];
	CU_ASSERT_FATAL(n < 32 && spot_stage_slots(desc) <= 64);
	CU_ASSERT_EQUAL_FATAL(spot_stage_build(&made[n], desc, slots[n], n, &which), 0);
	return &made[n++];
}

void fake_activated(struct fake *f, uint8_t kind)
{
	struct fake_lane *fl = &f->lane[spl_key_lane(&f->activate_key, f->lanes)];

	spot_activated(fl->l, &f->activate_key, f->activate_serial, kind, f->now);
}

void fake_missing_says(struct fake *f, uint64_t correlation, uint8_t kind, const char *text)
{
	struct spot_reply r = {
		.correlation = correlation,
		.payload = text,
		.payload_bytes = text ? (uint32_t)strlen(text) : 0,
		.content = SPL_CONTENT_TEXT,
		.kind = kind,
		.origin = SPOT_FROM_AGENT,
	};

	for (unsigned i = 0; i < f->lanes; i++)
		if (f->lanes == 1 || spot_call_find(f->lane[i].l, correlation))
			spot_reply_in(f->lane[i].l, &r);
}

struct spl_key fake_key(const char *id)
{
	return spl_spot_key(id, strlen(id));
}

struct fake_lane *fake_lane_of(struct fake *f, const char *id)
{
	struct spl_key key = fake_key(id);

	return &f->lane[spl_key_lane(&key, f->lanes)];
}

uint64_t fake_create(struct fake *f, const char *id, const struct spot_stage *stage)
{
	uint64_t generation = fake_prepare(f, id, stage, NULL, 0);
	struct spl_key key = fake_key(id);
	const struct spot_answer *a;

	fake_run(f);
	a = fake_answer(f, SPOT_PREPARE);
	CU_ASSERT_FATAL(a && a->verdict == SPOT_ACCEPTED && a->object_generation == generation);
	spot_publish(fake_lane_of(f, id)->l, &key, generation, ++f->next_op, f->now);
	a = fake_answer(f, SPOT_PUBLISH);
	CU_ASSERT_FATAL(a && a->verdict == SPOT_ACCEPTED);
	return generation;
}

void fake_close(struct fake *f, const char *id, uint64_t generation, enum spl_closing reason,
		uint64_t deadline)
{
	struct spl_key key = fake_key(id);

	spot_close(fake_lane_of(f, id)->l, &key, generation, ++f->next_op, reason, deadline,
		   f->now);
}

void fake_run(struct fake *f)
{
	for (int i = 0; i < 10000; i++)
		if (fake_pass(f, 64) == 0)
			return;
}

void fake_advance(struct fake *f, uint64_t ns)
{
	const uint64_t step =
		100 * (uint64_t)FAKE_MS; /* less than the wheel catches up in a pass */

	while (ns > 0) {
		uint64_t d = ns < step ? ns : step;

		f->now += d;
		ns -= d;
		for (unsigned i = 0; i < f->lanes && ns > 0; i++) {
			spot_timers(f->lane[i].l, f->now, 64);
			spot_tick(f->lane[i].l, f->now, 64);
		}
	}
}

void fake_trace(struct fake *f, enum spl_trace_level level, uint64_t share)
{
	for (unsigned i = 0; i < f->lanes; i++)
		spot_lane_trace(f->lane[i].l, spl_trace_word(level, share), f->now,
				FAKE_WALL_NS + f->now);
}

uint64_t fake_request(struct fake *f, const char *id, const char *packet, const char *payload)
{
	return fake_message(f, id, true, packet, payload, (uint32_t)strlen(payload));
}

void fake_send(struct fake *f, const char *id, const char *packet, const char *payload)
{
	fake_message(f, id, false, packet, payload, (uint32_t)strlen(payload));
}

uint64_t fake_message(struct fake *f, const char *id, bool request, const char *packet,
		      const void *payload, uint32_t bytes)
{
	struct spot_rec *r = fake_record(f, id, request, packet, payload, bytes);
	uint64_t correlation = r->msg.correlation;

	fake_admit(f, id, r);
	return correlation;
}

void fake_admit(struct fake *f, const char *id, struct spot_rec *r)
{
	spot_admit(fake_lane_of(f, id)->l, &r, 1, f->now);
}

void fake_creation_ends(struct fake *f, unsigned i, uint8_t kind, int state, const char *id,
			const char *reply)
{
	struct wire_create_reply c = {
		.state = (uint8_t)state,
		.ref = {.id = {id, id ? (uint32_t)strlen(id) : 0},
			.generation = 77,
			.mesh = {"m", 1},
			.rid = {"r", 1}},
		.reply = {reply, reply ? (uint32_t)strlen(reply) : 0},
	};
	uint8_t body[512];
	int n = kind == SPL_OK ? wire_create_reply_put(body, sizeof(body), &c) : 0;

	CU_ASSERT_FATAL(n >= 0);
	spot_created(f->lane[f->creation[i].lane].l, f->creation[i].correlation, kind, body,
		     (uint32_t)n);
}
