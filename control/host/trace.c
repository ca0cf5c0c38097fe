/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods trace.show, trace.set_level and trace.set_sample (S-TRACE). Loop thread only. Records
 * are read from the rings of the mapped segment, where no lane waits for a reader; level and share
 * go to the dataplane, which has them in one word.
 */
#include "control/host/host_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOW_LIMIT 200

static const char *const levels[] = {
#define SPL_X(sym, name, help) name,
	SPL_TRACE_LEVELS(SPL_X)
#undef SPL_X
};
#define SPL_X(sym, name, help) name,
static const char *const names[] = {SPL_TRACE_RECORDS(SPL_X)};
static const char *const phases[] = {SPL_TRACE_PHASES(SPL_X)};
static const char *const surfaces[] = {SPL_TRACE_SURFACES(SPL_X)};
static const char *const kinds[] = {SPL_TRACE_KINDS(SPL_X)};
static const char *const outcomes[] = {SPL_TRACE_OUTCOMES(SPL_X)};
static const char *const reasons[] = {SPL_TRACE_REASONS(SPL_X)};
static const char *const actions[] = {SPL_TRACE_ACTIONS(SPL_X)};
static const char *const origins[] = {SPL_TRACE_ORIGINS(SPL_X)};
#undef SPL_X

/* ---- where a reader is: "EPOCH.N.N...", hexadecimal, one number a lane ---- */

struct cursor {
	uint64_t next[SPL_LANES_MAX], end[SPL_LANES_MAX];
	struct spl_trace_record at[SPL_LANES_MAX]; /* record next[i], when `there` */
	bool there[SPL_LANES_MAX];
	uint64_t lost;
};

static uint64_t written(const struct host *h, uint32_t lane)
{
	/* Acquire: the records below it are whole. */
	return __atomic_load_n(&statseg_trace(&h->stats, lane)->written, __ATOMIC_ACQUIRE);
}

/* Record `i` of a ring into `out`; false when it was overwritten. */
static bool take(const struct spl_trace_ring *ring, uint64_t i, struct spl_trace_record *out)
{
	const struct spl_trace_record *r = &ring->record[i % SPL_TRACE_ENTRIES];

	if (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != 2 * i + 2)
		return false;
	*out = *r;
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* to the release of put() in the lane */
	return __atomic_load_n(&r->seq, __ATOMIC_RELAXED) == 2 * i + 2;
}

/* The next record of `lane` that is still there. */
static void advance(const struct host *h, struct cursor *c, uint32_t lane)
{
	c->there[lane] = false;
	while (c->next[lane] < c->end[lane] && !c->there[lane]) {
		c->there[lane] = take(statseg_trace(&h->stats, lane), c->next[lane], &c->at[lane]);
		if (!c->there[lane]) {
			c->next[lane]++;
			c->lost++;
		}
	}
}

/* From `text` on; false when it is not of this dataplane. */
static bool parse(const struct host *h, const char *text, struct cursor *c)
{
	uint64_t epoch;
	int n = 0;

	if (sscanf(text, "%" SCNx64 "%n", &epoch, &n) != 1 || epoch != h->stats.s->epoch)
		return false;
	for (uint32_t i = 0; i < h->stats.lanes; i++) {
		text += n;
		if (sscanf(text, ".%" SCNx64 "%n", &c->next[i], &n) != 1)
			return false;
	}
	return true;
}

static void begin(const struct host *h, const char *after, uint32_t limit, struct cursor *c)
{
	bool known = after && parse(h, after, c);

	for (uint32_t i = 0; i < h->stats.lanes; i++) {
		uint64_t kept, n = written(h, i);

		c->end[i] = n;
		kept = n > SPL_TRACE_ENTRIES ? n - SPL_TRACE_ENTRIES : 0;
		if (!known || c->next[i] > n)
			c->next[i] = n > limit && n - limit > kept ? n - limit : kept;
		if (c->next[i] < kept) {
			c->lost += kept - c->next[i];
			c->next[i] = kept;
		}
		advance(h, c, i);
	}
}

static char *token(const struct host *h, const struct cursor *c)
{
	static char text[17 * (SPL_LANES_MAX + 1)];
	int n = snprintf(text, sizeof(text), "%" PRIx64, h->stats.s->epoch);

	for (uint32_t i = 0; i < h->stats.lanes; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ".%" PRIx64, c->next[i]);
	return text;
}

/* ---- a record as JSON: what it has nothing of is left out ---- */

static void put_text(json_t *row, const char *name, const char *text, size_t n)
{
	if (n > 0)
		json_object_set_new(row, name, json_stringn(text, n));
}

#define PUT_WORD(row, name, list, i) \
	put_word(row, name, (i) < sizeof(list) / sizeof((list)[0]) ? (list)[i] : "?")
static void put_word(json_t *row, const char *name, const char *word)
{
	put_text(row, name, word, strlen(word));
}

static void put_flow(json_t *row, const struct spl_flow_id *f)
{
	char text[40];

	if (f->origin == SPL_TG_NONE)
		return;
	snprintf(text, sizeof(text), "%08x-%04x-%04x-%04x-%012" PRIx64, (unsigned)(f->hi >> 32),
		 (unsigned)(f->hi >> 16 & 0xffff), (unsigned)(f->hi & 0xffff),
		 (unsigned)(f->lo >> 48), f->lo & 0xffffffffffff);
	put_word(row, "flow_id", text);
	PUT_WORD(row, "flow_origin", origins, f->origin);
}

static void put_time(json_t *row, uint64_t ns)
{
	time_t s = (time_t)(ns / CLOCK_NS_PER_S);
	char text[48], whole[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof(text), "%s.%06uZ", whole,
		 (unsigned)(ns % CLOCK_NS_PER_S / CLOCK_NS_PER_US));
	put_word(row, "time", text);
}

static json_t *record_json(const struct host *h, uint32_t lane, const struct spl_trace_record *r)
{
	json_t *row = json_object();
	char number[24];

	put_time(row, r->time_ns);
	json_object_set_new(row, "lane", json_integer(lane));
	PUT_WORD(row, "record", names, r->name);
	PUT_WORD(row, "phase", phases, r->phase);
	PUT_WORD(row, "surface", surfaces, r->surface);
	PUT_WORD(row, "kind", kinds, r->kind);
	PUT_WORD(row, "outcome", outcomes, r->outcome);
	PUT_WORD(row, "reason", reasons, r->reason);
	PUT_WORD(row, "action", actions, r->action);
	if (r->stage > 0 && r->stage <= h->stats.stages) {
		const struct spl_stage_info *info = statseg_stage(&h->stats, r->stage - 1u);

		put_text(row, "type", info->type, strnlen(info->type, sizeof(info->type)));
	}
	put_text(row, "spot_id", r->id, r->id_len);
	put_text(row, "packet", r->packet, r->packet_len);
	put_text(row, "topic", r->topic, r->topic_len);
	snprintf(number, sizeof(number), "%" PRIu64, r->correlation);
	if (r->correlation)
		put_word(row, "correlation_id", number);
	put_flow(row, &r->flow);
	return row;
}

/* The oldest of what the lanes have next; -1: none has any. */
static int oldest(const struct host *h, const struct cursor *c)
{
	int at = -1;

	for (uint32_t i = 0; i < h->stats.lanes; i++)
		if (c->there[i] && (at < 0 || c->at[i].time_ns < c->at[at].time_ns))
			at = (int)i;
	return at;
}

/* At most `limit`, from the front when the reader goes on, else the newest. */
static json_t *collect(const struct host *h, struct cursor *c, uint32_t limit, bool goes_on)
{
	json_t *rows = json_array();
	int lane;

	while ((!goes_on || json_array_size(rows) < limit) && (lane = oldest(h, c)) >= 0) {
		json_array_append_new(rows, record_json(h, (uint32_t)lane, &c->at[lane]));
		c->next[lane]++;
		advance(h, c, (uint32_t)lane);
		if (json_array_size(rows) > limit)
			json_array_remove(rows, 0);
	}
	return rows;
}

static void put_setting(const struct host *h, json_t *o)
{
	json_object_set_new(o, "level", json_string(levels[h->trace_level]));
	json_object_set_new(o, "sample", json_real((double)h->trace_share / (double)SPL_TRACE_ALL));
}

void host_trace_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const char *after = json_string_value(json_object_get(params, "after"));
	const json_t *given = json_object_get(params, "limit");
	uint32_t limit = given ? (uint32_t)json_integer_value(given) : SHOW_LIMIT;
	const struct host *h = ctx;
	struct cursor *c;
	json_t *o;

	if (!h->stats.s) {
		mgmt_fail(call, SPL_E_UNAVAILABLE, "trace", "no dataplane has been here yet", NULL);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		mgmt_reply(call, NULL);
		return;
	}
	begin(h, after, limit, c);
	o = json_object();
	put_setting(h, o);
	json_object_set_new(o, "records", collect(h, c, limit, after != NULL));
	json_object_set_new(o, "lost", json_integer((json_int_t)(after ? c->lost : 0)));
	json_object_set_new(o, "next", json_string(token(h, c)));
	free(c);
	mgmt_reply(call, o);
}

/* ---- settings ---- */

static void changed(struct host *h, struct mgmt_call *call)
{
	json_t *o = json_object();

	if (h->configured)
		host_send_trace(h);
	put_setting(h, o);
	log_info(HOST_MODULE, "trace changed level=%s sample=%.6f", levels[h->trace_level],
		 (double)h->trace_share / (double)SPL_TRACE_ALL);
	mgmt_reply(call, o);
}

void host_trace_set_level(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const char *level = json_string_value(json_object_get(params, "level"));
	struct host *h = ctx;

	for (uint8_t i = 0; i < SPL_TL_COUNT; i++)
		if (strcmp(level, levels[i]) == 0)
			h->trace_level = i;
	changed(h, call);
}

void host_trace_set_sample(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const char *text = json_string_value(json_object_get(params, "rate"));
	struct host *h = ctx;
	char *end;
	double rate = strtod(text, &end);

	/* Not what strtod() takes besides numbers as people write them. */
	if (*end || strspn(text, "0123456789.") != strlen(text) || !(rate >= 0 && rate <= 1)) {
		mgmt_fail(call, SPL_E_INVALID_OPERATION, "trace",
			  "sample refused: the rate is no number from 0.0 to 1.0", NULL);
		return;
	}
	h->trace_share = (uint64_t)(rate * (double)SPL_TRACE_ALL);
	changed(h, call);
}
