/* SPDX-License-Identifier: BSD-3-Clause */
/* A wrapper around a domain, made of nothing but the public interface of stages (S-STAGE,
 * S-GATE-7): the same domain runs with it and without it, and nothing of what it sees is different.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <errno.h>

#define f test_rig

/* ---- the domain: it notes what it sees, and knows of no wrapper ---- */

struct domain {
	char colour[8]; /* from the creator's request */
	unsigned marks;
	struct spl_timer beat;
	struct spl_topic news;
	struct spl_target other;
};

static void note(const char *what, const void *bytes, uint32_t n)
{
	char text[96];

	snprintf(text, sizeof(text), "%s:%.*s", what, (int)n, n ? (const char *)bytes : "");
	fake_log(text);
}

static int domain_create(struct domain *d, struct spl_turn *turn, const struct spl_message *m)
{
	CU_ASSERT_EQUAL(d->marks, 0); /* nothing of an earlier incarnation */
	CU_ASSERT_EQUAL(d->colour[0], '\0');
	snprintf(d->colour, sizeof(d->colour), "%.*s", (int)m->payload_bytes,
		 m->payload_bytes ? (const char *)m->payload : "");
	note("create", d->colour, (uint32_t)strlen(d->colour));
	return spl_target_set(&d->other, "other", 5) ? SPL_FAIL(SPL_E_INTERNAL_FAILURE) : SPL_DONE;
}

static int domain_mark(struct domain *d, struct spl_turn *turn, const struct spl_message *m)
{
	const char *key, *value;
	uint32_t pos = 0, kn, vn;

	d->marks++;
	note("mark", m->payload, m->payload_bytes);
	while (spl_metadata_next(m, &pos, &key, &kn, &value, &vn)) {
		note("key", key, kn);
		note("value", value, vn);
	}
	if (!m->is_request)
		return SPL_DONE;
	return spl_reply(turn, SPL_CONTENT_TEXT, d->colour, (uint32_t)strlen(d->colour))
		       ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
		       : SPL_DONE;
}

static int domain_answered(struct domain *d, struct spl_turn *turn, const struct spl_result *r)
{
	note("answered", spl_error_name(r->kind), (uint32_t)strlen(spl_error_name(r->kind)));
	return SPL_DONE;
}

static int domain_tick(struct domain *d, const struct spl_tick *tick)
{
	char n[8];

	snprintf(n, sizeof(n), "%u", (unsigned)tick->scheduled_index);
	note("tick", n, (uint32_t)strlen(n));
	return SPL_DONE;
}

static int domain_news(struct domain *d, const struct spl_message *m)
{
	note("news", m->payload, m->payload_bytes);
	return SPL_DONE;
}

/* ---- with no wrapper ---- */

static int plain_create(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	return domain_create(state, turn, m);
}

static int plain_mark(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	return domain_mark(state, turn, m);
}

static int plain_answered(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	return domain_answered(state, turn, r);
}

static int plain_ask(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct domain *d = state;
	struct spl_call *call;

	note("ask", m->payload, m->payload_bytes);
	if (spl_request(turn, &d->other, spl_packet_key("echo", 4), 0, "x", 1, 0, SPL_WAIT_HOLD,
			&call) ||
	    spl_call_then(turn, call, plain_answered, NULL))
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	return SPL_SUSPENDED;
}

static int plain_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	return domain_tick(state, tick);
}

static int plain_initialize(struct spl_turn *turn, void *state)
{
	struct domain *d = state;

	return spl_timer_start(turn, "beat", 4, 10 * (int64_t)FAKE_MS, plain_tick, NULL, &d->beat)
		       ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
		       : SPL_DONE;
}

static int plain_news(struct spl_turn *turn, void *state, const struct spl_message *m,
		      const struct spl_topic *topic)
{
	return domain_news(state, m);
}

static int plain_configure(struct spl_turn *turn, void *state)
{
	struct domain *d = state;

	return spl_topic_set(&d->news, "world", 5, "n", 1) ||
			       spl_subscribe(turn, &d->news, "news", plain_news)
		       ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
		       : SPL_DONE;
}

static int plain_closing(struct spl_turn *turn, void *state, enum spl_closing reason, uint64_t at)
{
	note("closing", "", 0);
	return SPL_DONE;
}

/* ---- with one: one entry for all that comes, a table of the domain's own behind it ---- */

struct wrapped {
	struct domain domain;
	unsigned seen;
};

struct route {
	const char *packet;
	int (*fn)(struct spl_turn *turn, void *state, const struct spl_message *m);
};

static const struct route routes[] = {{"mark", plain_mark}, {"ask", plain_ask}};
static const void *last_metadata, *last_payload;

static int wrapper_message(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct wrapped *w = state;

	w->seen++;
	last_metadata = m->metadata; /* what the room was given, unchanged (S-META-4) */
	last_payload = m->payload;
	for (size_t i = 0; i < T_COUNT(routes); i++)
		if (strcmp(m->packet, routes[i].packet) == 0)
			return routes[i].fn(turn, &w->domain, m);
	return SPL_FAIL(SPL_E_NOT_FOUND);
}

/* Its own attempts to own what is the framework's (S-STAGE-2). */
static int wrapper_reaches(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct wrapped *w = state;
	struct spl_timer timer;

	CU_ASSERT_EQUAL(spl_subscribe(turn, &w->domain.news, "more", plain_news), -EPERM);
	CU_ASSERT_EQUAL(spl_timer_start(NULL, "own", 3, FAKE_MS, plain_tick, NULL, &timer),
			-EINVAL);
	CU_ASSERT_EQUAL(spl_close_self(turn), 0); /* asked for, not done */
	note("reached", "", 0);
	return SPL_DONE;
}

static const struct spl_handler plain_handlers[] = {
	{"mark", SPL_TAKES_SEND | SPL_TAKES_REQUEST, plain_mark},
	{"ask", SPL_TAKES_SEND, plain_ask},
};
static const struct spl_handler wrapper_handlers[] = {
	{"mark", SPL_TAKES_SEND | SPL_TAKES_REQUEST, wrapper_message},
	{"ask", SPL_TAKES_SEND, wrapper_message},
	{"reach", SPL_TAKES_SEND, wrapper_reaches},
};

#define STAGE(name_, handlers_, state_, mode_, relocation_) \
	{ \
		.api = SPL_STAGE_API, .size = sizeof(struct spl_stage), .type = name_, \
		.kind = SPL_KIND_USER, .mode = mode_, .relocation = relocation_, \
		.state_bytes = state_, .handlers = handlers_, .handler_count = T_COUNT(handlers_), \
		.on_configure = plain_configure, .on_create = plain_create, \
		.on_initialize = plain_initialize, .on_closing = plain_closing, \
	}

static const struct spl_stage stages[2][2] = {
	{STAGE("plain", plain_handlers, sizeof(struct domain), SPL_MODE_SPOT_WIDE,
	       SPL_RELOCATION_DISABLED),
	 STAGE("wrapped", wrapper_handlers, sizeof(struct wrapped), SPL_MODE_SPOT_WIDE,
	       SPL_RELOCATION_DISABLED)},
	{STAGE("plain-each", plain_handlers, sizeof(struct domain), SPL_MODE_PER_ACTOR,
	       SPL_RELOCATION_RECREATE),
	 STAGE("wrapped-each", wrapper_handlers, sizeof(struct wrapped), SPL_MODE_PER_ACTOR,
	       SPL_RELOCATION_RECREATE)},
};

static uint64_t generation;

static void begin(const struct spl_stage *stage)
{
	struct spl_key key = fake_key("stage");

	test_start(1);
	fake_create(&f, "other", fake_stage(&test_stage));
	fake_log_clear();
	generation = fake_prepare(&f, "stage", fake_stage(stage), "blue", 0);
	fake_run(&f);
	CU_ASSERT_EQUAL_FATAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_ACCEPTED);
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
}

static void publish(const char *text)
{
	struct spl_topic topic;
	struct spot_rec *r;

	CU_ASSERT_EQUAL(spl_topic_set(&topic, "world", 5, "n", 1), 0);
	r = fake_record_on(&f, &f.lane[0], &topic.key, "news", text, (uint32_t)strlen(text));
	r->kind = SPL_MSG_PUBLISH;
	fake_admit(&f, "stage", r);
}

static void with_metadata(const char *text)
{
	static uint8_t meta[64];
	struct spot_rec *r = fake_record(&f, "stage", false, "mark", text, (uint32_t)strlen(text));
	int n = wire_meta_set(meta, 0, sizeof(meta), (struct pack_bytes){"lang", 4},
			      (struct pack_bytes){"en", 2});

	CU_ASSERT_FATAL(n > 0);
	r->msg.metadata = meta;
	r->msg.metadata_bytes = (uint32_t)n;
	fake_admit(&f, "stage", r);
	fake_run(&f);
	CU_ASSERT(last_metadata == NULL || last_metadata == meta);
}

/* Everything that can come to a stage, while it is free and while it waits. */
static const char *scenario(const struct spl_stage *stage)
{
	static char log[2][2048];
	static unsigned which;
	char *out = log[which++ % 2];
	uint64_t r;

	last_metadata = last_payload = NULL;
	begin(stage);
	with_metadata("1");
	r = fake_request(&f, "stage", "mark", "2");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "blue"));
	fake_advance(&f, 25 * (uint64_t)FAKE_MS);
	fake_run(&f);
	fake_send(&f, "stage", "ask", "3");
	fake_send(&f, "stage", "mark", "4");
	publish("5");
	fake_run(&f);
	fake_send(&f, "stage", "absent", "");
	fake_send(&f, "stage", "mark", "6");
	fake_close(&f, "stage", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	CU_ASSERT_PTR_NULL(test_spot("stage"));
	snprintf(out, sizeof(log[0]), "%s", fake_logged());
	test_stop();
	return out;
}

/* T-ST-2: identical logs, in both modes. */
static void test_same_with_and_without(void)
{
	for (int mode = 0; mode < 2; mode++) {
		const char *plain = scenario(&stages[mode][0]);
		const char *wrapped;

		CU_ASSERT_PTR_NULL(last_metadata); /* nobody wrapped it */
		wrapped = scenario(&stages[mode][1]);
		CU_ASSERT_PTR_NOT_NULL(last_payload);
		CU_ASSERT_STRING_EQUAL(plain, wrapped);
		CU_ASSERT_PTR_NOT_NULL(
			strstr(plain, "create:blue mark:1 key:lang value:en mark:2"));
		CU_ASSERT_PTR_NOT_NULL(strstr(plain, "ask:3 answered:OK mark:4"));
		CU_ASSERT_PTR_NOT_NULL(strstr(plain, "news:5"));
		CU_ASSERT_PTR_NOT_NULL(strstr(plain, "tick:"));
		CU_ASSERT_STRING_EQUAL(strrchr(plain, ' '), " closing:");
	}
}

/* T-ST-5: after the end nothing of the stage runs any more, whatever comes. */
static void test_nothing_after_shutdown(void)
{
	begin(&stages[0][1]);
	fake_send(&f, "stage", "mark", "accepted");
	fake_close(&f, "stage", generation, SPL_CLOSING_HOST_SHUTDOWN, 0);
	fake_send(&f, "stage", "mark", "late");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create:blue mark:accepted closing:");
	fake_send(&f, "stage", "mark", "late");
	publish("late");
	fake_advance(&f, 100 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create:blue mark:accepted closing:");
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_TIMERS), 0);
	test_stop();
}

/* One factory, whoever else comes; the next incarnation begins with nothing of the last, and who
 * speaks to it by its id needs to know nothing of that (S-STAGE-6,8, S-TURN-12). */
static void test_incarnations(void)
{
	struct spl_key key = fake_key("stage");
	uint64_t r;

	begin(&stages[0][1]);
	fake_prepare(&f, "stage", fake_stage(&stages[0][1]), "red", 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->error, SPL_E_ALREADY_EXISTS);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create:blue");
	fake_send(&f, "stage", "mark", "1");
	fake_close(&f, "stage", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	generation = fake_prepare(&f, "stage", fake_stage(&stages[0][1]), "green", 0);
	fake_run(&f);
	spot_publish(f.lane[0].l, &key, generation, ++f.next_op, f.now);
	r = fake_request(&f, "stage", "mark", "2");
	fake_run(&f);
	CU_ASSERT(fake_replied(&f, r, SPL_OK, "green"));
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create:blue mark:1 closing: create:green mark:2");
	CU_ASSERT_EQUAL(((struct wrapped *)spot_state_of(test_spot("stage")))->seen, 1);
	test_stop();
}

/* What is the framework's stays its: subscriptions, the identity, turns, the end. */
static void test_ownership(void)
{
	begin(&stages[0][1]);
	fake_send(&f, "stage", "reach", "");
	fake_send(&f, "stage", "mark", "served");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "create:blue reached: mark:served");
	CU_ASSERT_EQUAL(f.close_wanted, 1);
	CU_ASSERT_PTR_NOT_NULL(test_spot("stage")); /* until the authority closes it */
	fake_close(&f, "stage", generation, SPL_CLOSING_EXPLICIT, 0);
	fake_run(&f);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_same_with_and_without, "S-GATE-7", "S-STAGE-3", "S-META-4", "S-STAGE-7"),
	T(test_nothing_after_shutdown, "S-STAGE-9", "S-TIMER-14"),
	T(test_incarnations, "S-STAGE-6", "S-STAGE-8", "S-TURN-12"),
	T(test_ownership, "S-STAGE-2"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_wrapper", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
