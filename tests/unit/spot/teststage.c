/* SPDX-License-Identifier: BSD-3-Clause */
/* See teststage.h. */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <stdio.h>

int test_stage_rc;
uint64_t test_stage_runs;
int test_stage_overlaps;
uint64_t test_stage_budget;
uint64_t test_stage_closings;
int (*test_stage_probe)(struct spl_turn *turn, void *state, const struct spl_message *msg);
void (*test_stage_closing)(struct test_state *state, enum spl_closing reason, uint64_t deadline_ns);
struct spl_message test_stage_seen;

static void enter(struct test_state *s)
{
	test_stage_runs++;
	if (s->inside++ != 0)
		test_stage_overlaps++;
}

static int leave(struct test_state *s, int rc)
{
	s->inside--;
	return rc;
}

static void note(struct spl_turn *turn, const struct spl_message *m)
{
	test_stage_seen = *m;
	test_stage_budget = m->deadline_ns ? m->deadline_ns - spl_now_ns(turn) : 0;
}

static int answer(struct spl_turn *turn, const struct spl_message *m, const char *text)
{
	if (!m->is_request)
		return SPL_DONE;
	test_stage_rc = spl_reply(turn, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
	return SPL_DONE;
}

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;
	char text[32];

	enter(s);
	note(turn, m);
	s->count++;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)s->count);
	return leave(s, answer(turn, m, text));
}

static int on_log(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	char text[64];

	enter(state);
	snprintf(text, sizeof(text), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	fake_log(text);
	return leave(state, answer(turn, m, "logged"));
}

static int on_echo(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	enter(state);
	note(turn, m);
	test_stage_rc = spl_reply(turn, m->content, m->payload, m->payload_bytes);
	return leave(state, SPL_DONE);
}

/* "ID PACKET [TEXT]" */
static void parse(const void *bytes, uint32_t n, struct spl_target *target, uint64_t *packet,
		  char text[64])
{
	char id[64] = "", name[64] = "", all[200];

	snprintf(all, sizeof(all), "%.*s", (int)n, (const char *)bytes);
	text[0] = '\0';
	CU_ASSERT_FATAL(sscanf(all, "%63s %63s %63[^\n]", id, name, text) >= 2);
	CU_ASSERT_EQUAL_FATAL(spl_target_set(target, id, strlen(id)), 0);
	*packet = spl_packet_key(name, strlen(name));
}

static int held(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct test_state *s = state;
	char text[128];

	enter(s);
	fake_log("resumed");
	CU_ASSERT_PTR_EQUAL(ctx, s);
	CU_ASSERT_PTR_EQUAL(turn, s->turn);
	if (s->view) /* still there, still the same (S-MSG-4) */
		CU_ASSERT(memcmp(s->view, s->keep, s->view_bytes) == 0);
	snprintf(text, sizeof(text), "%s %.*s", spl_error_name(r->kind), (int)r->payload_bytes,
		 r->payload ? (const char *)r->payload : "");
	test_stage_rc = spl_reply(turn, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
	return leave(s, SPL_DONE);
}

static int start_wait(struct spl_turn *turn, struct test_state *s, const void *bytes, uint32_t n,
		      enum spl_wait wait, spl_result_fn fn)
{
	struct spl_target target;
	uint64_t packet;
	char text[64];

	parse(bytes, n, &target, &packet, text);
	s->turn = turn;
	test_stage_rc = spl_request(turn, &target, packet, SPL_CONTENT_TEXT, text,
				    (uint32_t)strlen(text), 0, wait, &s->call);
	if (test_stage_rc)
		return SPL_FAIL(SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(spl_call_then(turn, s->call, fn, s), 0);
	return SPL_SUSPENDED;
}

static int on_hold(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;

	enter(s);
	s->view = m->payload;
	s->view_bytes = m->payload_bytes < sizeof(s->keep) ? m->payload_bytes : 0;
	memcpy(s->keep, m->payload, s->view_bytes);
	fake_log("held");
	return leave(s, start_wait(turn, s, m->payload, m->payload_bytes, SPL_WAIT_HOLD, held));
}

/* The views of a handler that has yielded, and what it saw there. */
static void keep_views(struct test_state *s, const struct spl_message *m)
{
	struct test_yield *y = &s->yield[s->yields++ % T_COUNT(s->yield)];

	y->view = m->payload;
	y->bytes = m->payload_bytes < sizeof(y->keep) ? m->payload_bytes : 0;
	memcpy(y->keep, m->payload, y->bytes);
	y->count = s->count;
}

static int yielded(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct test_state *s = state;
	struct test_yield *y = ctx;
	char text[160];

	enter(s);
	fake_log("resumed");
	CU_ASSERT_PTR_NOT_EQUAL(turn, s->turn); /* a turn of its own (S-TURN-1) */
	if (y->view) /* another handler may have taken the place, and ended */
		CU_ASSERT(memcmp(y->view, y->keep, y->bytes) == 0);
	y->view = NULL;
	snprintf(text, sizeof(text), "%s %.*s %llu", spl_error_name(r->kind), (int)r->payload_bytes,
		 r->payload ? (const char *)r->payload : "",
		 (unsigned long long)(s->count - y->count));
	test_stage_rc = spl_reply(turn, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
	return leave(s, SPL_DONE);
}

static int on_yield(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;
	struct spl_target target;
	uint64_t packet;
	char text[64];
	int rc;

	enter(s);
	parse(m->payload, m->payload_bytes, &target, &packet, text);
	s->turn = turn;
	test_stage_rc = spl_request(turn, &target, packet, SPL_CONTENT_TEXT, text,
				    (uint32_t)strlen(text), 0, SPL_WAIT_YIELD, &s->call);
	if (test_stage_rc)
		return leave(s, SPL_FAIL(spl_error_of(test_stage_rc)));
	rc = spl_call_then(turn, s->call, yielded, &s->yield[s->yields % T_COUNT(s->yield)]);
	CU_ASSERT_EQUAL(rc, 0);
	keep_views(s, m);
	fake_log("yielded");
	return leave(s, SPL_SUSPENDED);
}

/* "NAME PERIOD_MS OVERRUN(0..2) ONE_SHOT(0..1)"; NAME alone cancels the newest timer. */
static int on_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	struct test_state *s = state;

	enter(s);
	CU_ASSERT(tick->delivery_index >= 1 && tick->scheduled_index >= tick->delivery_index);
	CU_ASSERT(tick->started_ns >= tick->scheduled_ns);
	s->count++;
	return leave(s, s->count % 8 == 0 ? SPL_FAIL(SPL_E_DATA_LOST) : SPL_DONE);
}

static int on_timer(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_timer_options o = {.catch_up_max = 2};
	struct test_state *s = state;
	unsigned period, overrun, one_shot;
	char name[64] = "", all[200];

	enter(s);
	snprintf(all, sizeof(all), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	if (sscanf(all, "%63s %u %u %u", name, &period, &overrun, &one_shot) == 4) {
		o.overrun = (enum spl_overrun)overrun;
		o.one_shot = one_shot;
		o.stop_on_failure = period % 2;
		test_stage_rc = spl_timer_start(turn, name, strlen(name), period * (int64_t)FAKE_MS,
						on_tick, &o, &s->timer);
	} else {
		test_stage_rc = spl_timer_cancel(turn, s->timer);
		CU_ASSERT(spl_timer_is_disposed(turn, s->timer));
	}
	return leave(s, answer(turn, m, "timer"));
}

/* The newest call of this Spot. */
static int on_cancel(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;

	enter(s);
	test_stage_rc = s->call ? spl_call_cancel(turn, s->call) : 0;
	return leave(s, answer(turn, m, test_stage_rc ? "won" : "late"));
}

static int on_send(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_target target;
	uint64_t packet;
	char text[64];

	enter(state);
	parse(m->payload, m->payload_bytes, &target, &packet, text);
	test_stage_rc =
		spl_send(turn, &target, packet, SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
	memset(text, '#', sizeof(text)); /* the sender's buffer is its own again (S-MSG-5) */
	fake_log("sent");
	return leave(state, answer(turn, m, "sent"));
}

static int on_misc(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;
	char what[64];
	int rc = SPL_DONE;

	enter(s);
	snprintf(what, sizeof(what), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	if (strcmp(what, "fail") == 0) {
		rc = SPL_FAIL(SPL_E_DATA_LOST);
	} else if (strcmp(what, "badkind") == 0) {
		rc = SPL_FAIL(13);
	} else if (strcmp(what, "badcode") == 0) {
		rc = 77;
	} else if (strcmp(what, "rejected") == 0) {
		rc = SPL_REJECTED;
	} else if (strcmp(what, "suspended") == 0) {
		rc = SPL_SUSPENDED;
	} else if (strcmp(what, "silent") == 0) {
		rc = SPL_DONE;
	} else if (strcmp(what, "twice") == 0) {
		(void)spl_reply(turn, SPL_CONTENT_RAW, "1", 1);
		test_stage_rc = spl_reply(turn, SPL_CONTENT_RAW, "2", 1);
	} else if (strcmp(what, "replyfail") == 0) {
		(void)spl_reply(turn, SPL_CONTENT_RAW, "1", 1);
		rc = SPL_FAIL(SPL_E_REJECTED);
	} else if (strcmp(what, "thrown") == 0) { /* continuation thrown away */
		(void)start_wait(turn, s, "b echo x", 8, SPL_WAIT_HOLD, held);
	} else if (strcmp(what, "close") == 0) {
		test_stage_rc = spl_close_self(turn);
		rc = answer(turn, m, "closing");
	}
	return leave(s, rc);
}

static int on_probe(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	int rc;

	enter(state);
	rc = test_stage_probe(turn, state, m);
	return leave(state, rc);
}

static int created(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct test_state *s = state;

	enter(s);
	fake_log("created");
	return leave(s, r->kind == SPL_OK ? SPL_DONE : SPL_FAIL(SPL_E_DATA_LOST));
}

static int on_create(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;
	int rc = SPL_DONE;

	enter(s);
	note(turn, m);
	fake_log("create");
	CU_ASSERT_EQUAL(s->count, 0);
	CU_ASSERT_EQUAL(spl_reply(turn, SPL_CONTENT_TEXT, "made", 4), 0);
	CU_ASSERT_EQUAL(spl_reply(turn, SPL_CONTENT_TEXT, "made", 4), -22);
	CU_ASSERT_EQUAL(spl_close_self(turn), -22);
	if (m->payload_bytes == 6 && memcmp(m->payload, "reject", 6) == 0)
		rc = SPL_REJECTED;
	else if (m->payload_bytes == 4 && memcmp(m->payload, "fail", 4) == 0)
		rc = 99;
	else if (m->payload_bytes == 4 && memcmp(m->payload, "kind", 4) == 0)
		rc = SPL_FAIL(SPL_E_DATA_LOST);
	else if (m->payload_bytes > 5 && memcmp(m->payload, "hold ", 5) == 0)
		rc = start_wait(turn, s, (const char *)m->payload + 5, m->payload_bytes - 5,
				SPL_WAIT_HOLD, created);
	return leave(s, rc);
}

static int on_initialize(struct spl_turn *turn, void *state)
{
	enter(state);
	fake_log("initialize");
	CU_ASSERT_EQUAL(spl_reply(turn, SPL_CONTENT_TEXT, "no", 2), -22);
	return leave(state, SPL_DONE);
}

static int on_closing(struct spl_turn *turn, void *state, enum spl_closing reason,
		      uint64_t deadline_ns)
{
	enter(state);
	fake_log("closing");
	test_stage_closings++;
	if (test_stage_closing)
		test_stage_closing(state, reason, deadline_ns);
	CU_ASSERT_EQUAL(spl_close_self(turn), -22);
	return leave(state, SPL_DONE);
}

static const struct spl_handler handlers[] = {
	{"add", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_add},
	{"log", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_log},
	{"echo", SPL_TAKES_REQUEST, on_echo},
	{"hold", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_hold},
	{"yield", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_yield},
	{"timer", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_timer},
	{"cancel", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_cancel},
	{"send", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_send},
	{"misc", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_misc},
	{"probe", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_probe},
};

const struct spl_stage test_stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "test",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct test_state),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
	.on_create = on_create,
	.on_initialize = on_initialize,
	.on_closing = on_closing,
};

/* The same with a small queue of its own. */
const struct spl_stage test_stage_small = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "small",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct test_state),
	.queue_count = 4,
	.queue_bytes = 2000,
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
};

/* No lifecycle callbacks. */
const struct spl_stage test_stage_plain = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "plain",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct test_state),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
};

#define OTHER_STAGE(name, kind_, mode_) \
	const struct spl_stage test_stage_##name = { \
		.api = SPL_STAGE_API, \
		.size = sizeof(struct spl_stage), \
		.type = #name, \
		.kind = kind_, \
		.mode = mode_, \
		.relocation = SPL_RELOCATION_RECREATE, \
		.state_bytes = sizeof(struct test_state), \
		.handlers = handlers, \
		.handler_count = T_COUNT(handlers), \
	}
OTHER_STAGE(instance, SPL_KIND_INSTANCE, SPL_MODE_SPOT_WIDE);
OTHER_STAGE(entry, SPL_KIND_ENTRY, SPL_MODE_SPOT_WIDE);
OTHER_STAGE(actors, SPL_KIND_USER, SPL_MODE_PER_ACTOR);

struct fake test_rig;

void test_begin(unsigned lanes)
{
	fake_init(&test_rig, lanes);
	test_stage_overlaps = 0;
	test_stage_runs = 0;
	test_stage_closings = 0;
	test_stage_closing = NULL;
}

void test_start(unsigned lanes)
{
	test_begin(lanes);
	fake_start(&test_rig);
}

struct to_close {
	struct spl_key key[256];
	uint64_t generation[256];
	unsigned n;
};

static void note_item(void *ctx, const struct spot_item *item)
{
	struct to_close *c = ctx;

	c->key[c->n] = item->key;
	c->generation[c->n++] = item->object_generation;
}

static void close_all(struct spot_lane *l)
{
	static struct to_close c;
	uint64_t cursor = 0;
	bool more = true;

	while (more) {
		c.n = 0;
		more = spot_inventory(l, &cursor, 64, note_item, &c);
		for (unsigned i = 0; i < c.n; i++)
			spot_close(l, &c.key[i], c.generation[i], ++test_rig.next_op,
				   SPL_CLOSING_EXPLICIT, 0, test_rig.now);
		fake_run(&test_rig);
	}
}

void test_stop(void)
{
	for (unsigned i = 0; i < test_rig.lanes; i++)
		close_all(test_rig.lane[i].l);
	fake_run(&test_rig);
	CU_ASSERT_EQUAL(fake_counter(&test_rig, SPL_C_SPOTS), 0);
	CU_ASSERT_EQUAL(test_stage_overlaps, 0);
	fake_stop(&test_rig);
}

struct spot *test_spot(const char *id)
{
	struct spl_key key = fake_key(id);

	return table_find(&fake_lane_of(&test_rig, id)->l->table, &key);
}
