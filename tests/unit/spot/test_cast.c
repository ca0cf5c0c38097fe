/* SPDX-License-Identifier: BSD-3-Clause */
/* Logical Multicast: subscriptions, snapshot, order, full Spots, one payload, several lanes. */
#include "dataplane/spot/cast.h"
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>

#define f test_rig

/* A Spot subscribes as the text that its id ends with says: "-CHANNEL/TOPIC/PACKET", any number. */
struct member {
	struct test_state base;
	struct spl_topic topic[4];
	char packet[4][16];
	unsigned n;
	int rc[4];
};

static struct {
	char id[64], topic[32];
	char text[32];
	const void *payload;
	uint32_t bytes;
	uint64_t source;
} seen[4096];
static unsigned n_seen;
static int heard_rc; /* what the handler returns */

static int on_heard(struct spl_turn *turn, void *state, const struct spl_message *m,
		    const struct spl_topic *topic)
{
	struct member *me = state;
	const struct spl_name *id = spl_spot_id(turn);

	CU_ASSERT_EQUAL(me->base.inside++, 0);
	CU_ASSERT_FATAL(n_seen < T_COUNT(seen));
	CU_ASSERT(!m->is_request && m->correlation == 0);
	CU_ASSERT_STRING_EQUAL(m->packet, "news");
	snprintf(seen[n_seen].id, sizeof(seen[0].id), "%.*s", id->len, (const char *)id->b);
	snprintf(seen[n_seen].topic, sizeof(seen[0].topic), "%.*s", topic->name.len,
		 (const char *)topic->name.b);
	snprintf(seen[n_seen].text, sizeof(seen[0].text), "%.*s", (int)m->payload_bytes,
		 (const char *)m->payload);
	seen[n_seen].payload = m->payload;
	seen[n_seen].bytes = m->payload_bytes;
	seen[n_seen++].source = m->source;
	fake_log("heard");
	CU_ASSERT_EQUAL(spl_reply(turn, 0, "x", 1), -EINVAL);
	me->base.inside--;
	return heard_rc;
}

static int on_configure(struct spl_turn *turn, void *state)
{
	struct member *me = state;
	const struct spl_name *id = spl_spot_id(turn);
	char text[256], *word, *rest;

	snprintf(text, sizeof(text), "%.*s", id->len, (const char *)id->b);
	rest = strchr(text, '-');
	while (rest && (word = strsep(&rest, "-")) && me->n < 4) {
		char channel[32] = "", topic[32] = "";
		unsigned i = me->n;

		if (sscanf(word, "%31[^/]/%31[^/]/%15s", channel, topic, me->packet[i]) != 3)
			continue;
		CU_ASSERT_EQUAL(spl_topic_set(&me->topic[i], channel, strlen(channel), topic,
					      strlen(topic)),
				0);
		me->rc[i] = spl_subscribe(turn, &me->topic[i], me->packet[i], on_heard);
		me->n++;
	}
	fake_log("configure");
	return SPL_DONE; /* a refused subscription fails the creation all the same */
}

static struct spl_topic news, sport;
static int publish_rc;
static unsigned publishes;

static int publish(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	char text[32];

	for (unsigned i = 0; i < publishes; i++) {
		snprintf(text, sizeof(text), "%.*s%u", (int)m->payload_bytes,
			 (const char *)m->payload, i);
		publish_rc = spl_publish(turn, &news, spl_packet_key("news", 4), SPL_CONTENT_TEXT,
					 text, (uint32_t)strlen(text));
		memset(text, '#', sizeof(text)); /* it is the sender's again (S-MSG-5) */
	}
	return SPL_DONE;
}

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	fake_log("add");
	return m->is_request ? spl_reply(turn, 0, "x", 1) : SPL_DONE;
}

static int on_create(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	const struct member *me = state;

	CU_ASSERT_EQUAL(spl_subscribe(turn, &news, "news", on_heard), -EPERM);
	fake_log(me->n ? "create-after" : "create");
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"publish", SPL_TAKES_SEND, publish},
	{"add", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_add},
};

#define MEMBER(name, kind_, count) \
	static const struct spl_stage name = { \
		.api = SPL_STAGE_API, \
		.size = sizeof(struct spl_stage), \
		.type = #name, \
		.kind = kind_, \
		.relocation = SPL_RELOCATION_DISABLED, \
		.state_bytes = sizeof(struct member), \
		.queue_count = count, \
		.handlers = handlers, \
		.handler_count = T_COUNT(handlers), \
		.on_configure = on_configure, \
		.on_create = on_create, \
	}
MEMBER(member, SPL_KIND_USER, 0);
MEMBER(member_small, SPL_KIND_USER, 2);
MEMBER(member_instance, SPL_KIND_INSTANCE, 0);

static void begin(unsigned lanes)
{
	test_begin(lanes);
	f.conf.object_bytes = 32 << 20;
	f.conf.subscriptions = 4096;
	f.conf.records = 8192;
	f.conf.spots_max = 4096;
	f.conf.queue_count = 256;
	fake_start(&f);
	n_seen = 0;
	heard_rc = SPL_DONE;
	publishes = 1;
	memset(seen, 0, sizeof(seen));
	CU_ASSERT_EQUAL(spl_topic_set(&news, "world", 5, "news", 4), 0);
	CU_ASSERT_EQUAL(spl_topic_set(&sport, "world", 5, "sport", 5), 0);
}

static uint64_t make(const char *id)
{
	return fake_create(&f, id, fake_stage(&member));
}

/* A publish of a peer, straight to the lane of its topic. */
static void publish_from_peer(const char *channel, const char *topic, const char *packet,
			      const char *text)
{
	struct spl_topic t;
	struct spot_rec *r;
	struct fake_lane *lane;

	CU_ASSERT_EQUAL(spl_topic_set(&t, channel, strlen(channel), topic, strlen(topic)), 0);
	lane = &f.lane[spl_key_lane(&t.key, f.lanes)];
	r = fake_record_on(&f, lane, &t.key, packet, text, (uint32_t)strlen(text));
	r->kind = SPL_MSG_PUBLISH;
	spot_admit(lane->l, &r, 1, f.now);
}

static unsigned heard_by(const char *id)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_seen; i++)
		n += strcmp(seen[i].id, id) == 0;
	return n;
}

/* T-MC-10: channel, topic and packet are compared whole; nothing else is. */
static void test_match(void)
{
	begin(1);
	make("a-world/news/news");
	make("b-other/news/news");
	make("c-world/newsX/news");
	make("d-world/new/news");
	make("e-world/News/news");
	make("f-world/news/other");
	make("g-world/sport/news-world/news/news");
	publish_from_peer("world", "news", "news", "hello");
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	CU_ASSERT_EQUAL(heard_by("a-world/news/news"), 1);
	CU_ASSERT_EQUAL(heard_by("g-world/sport/news-world/news/news"), 1);
	CU_ASSERT_STRING_EQUAL(seen[0].text, "hello");
	CU_ASSERT_STRING_EQUAL(seen[0].topic, "news");
	CU_ASSERT_EQUAL(seen[0].source, 5);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_SPOT), 0);
	test_stop();
}

/* T-MC-7, T-MC-9: nobody subscribed: it is done all the same; a channel this node does not know. */
static int foreign(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_topic t;

	CU_ASSERT_EQUAL(spl_topic_set(&t, "elsewhere", 9, "news", 4), 0);
	publish_rc = spl_publish(turn, &t, 5, 0, NULL, 0);
	CU_ASSERT_EQUAL(spl_publish(turn, &news, 0, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, NULL, 5, 0, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, &news, 5, 99, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(spl_publish(turn, &news, 5, 0, "x", f.conf.message_max + 1), -EMSGSIZE);
	return SPL_DONE;
}

static void test_nobody(void)
{
	uint64_t accepted;

	begin(3);
	make("p");
	accepted = fake_counter(&f, SPL_C_MESSAGES_ACCEPTED);
	fake_send(&f, "p", "publish", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(publish_rc, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_MESSAGES_ACCEPTED), accepted + 2);
	CU_ASSERT_EQUAL(f.casts, 0);
	fake_create(&f, "t", fake_stage(&test_stage));
	test_stage_probe = foreign;
	fake_send(&f, "t", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(publish_rc, -ENOENT);
	CU_ASSERT_EQUAL(spl_error_of(publish_rc), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(n_seen, 0);
	test_stop();
}

/* T-MC-11: the publisher subscribed: a later turn, never inline. */
static void test_own(void)
{
	begin(1);
	make("a-world/news/news");
	fake_log_clear();
	fake_send(&f, "a-world/news/news", "publish", "x");
	fake_send(&f, "a-world/news/news", "add", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "add heard");
	CU_ASSERT_STRING_EQUAL(seen[0].text, "x0");
	test_stop();
}

/* T-MC-2: every subscriber of every lane reads the same bytes, which are released once, when the
 * last one is done. */
static void test_one_payload(void)
{
	char id[64];

	begin(3);
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		make(id);
	}
	publish_from_peer("world", "news", "news", "one and the same");
	CU_ASSERT_EQUAL(f.buffers, 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 100);
	CU_ASSERT_EQUAL(f.casts, 2); /* one a lane, however many are there */
	for (unsigned i = 0; i < n_seen; i++) {
		CU_ASSERT_PTR_EQUAL(seen[i].payload, seen[0].payload);
		CU_ASSERT_STRING_EQUAL(seen[i].text, "one and the same");
	}
	CU_ASSERT_EQUAL(f.buffers, 0);
	CU_ASSERT_EQUAL(f.charged, 0);
	test_stop();
}

/* One of two has had it: the bytes stay for the other, and their credit is not given back. */
static void test_until_the_last(void)
{
	begin(1);
	fake_create(&f, "a-world/news/news", fake_stage(&member));
	fake_create(&f, "b-world/news/news", fake_stage(&member));
	publish_from_peer("world", "news", "news", "kept");
	spot_run(f.lane[0].l, 1, UINT64_MAX);
	CU_ASSERT_EQUAL(n_seen, 1);
	CU_ASSERT_EQUAL(f.buffers, 1);
	CU_ASSERT(f.charged > 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	CU_ASSERT_EQUAL(f.buffers, 0);
	test_stop();
}

/* Pool low: one copy for all. */
static void test_pool_low(void)
{
	begin(1);
	make("a-world/news/news");
	make("b-world/news/news");
	f.pool_low = true;
	spot_lane_set(f.lane[0].l, f.lease, true, UINT32_MAX);
	publish_from_peer("world", "news", "news", "moved");
	CU_ASSERT_EQUAL(f.buffers, 0);
	CU_ASSERT_EQUAL(spot_copy_out(f.lane[0].l, 64), 0);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	CU_ASSERT_PTR_EQUAL(seen[0].payload, seen[1].payload);
	CU_ASSERT_STRING_EQUAL(seen[1].text, "moved");
	test_stop();
}

/* Order of one origin under one topic, over lanes: T-MC-4 and the design's promise. */
static void test_order(void)
{
	static const char *const origins[] = {"p", "q", "r", "s"};
	unsigned last[40][4] = {{0}}, wrong = 0, total = 0;
	char id[64];

	begin(3);
	for (int i = 0; i < 40; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		make(id);
	}
	publishes = 10;
	for (int i = 0; i < 4; i++)
		make(origins[i]);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			char tag[2] = {(char)('A' + i), '\0'};

			fake_send(&f, origins[i], "publish", tag);
		}
		fake_pass(&f, 3);
	}
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 40 * 4 * 20);
	for (unsigned i = 0; i < n_seen; i++) {
		unsigned who = (unsigned)(seen[i].text[0] - 'A'), me = 0, k = 0;

		CU_ASSERT_EQUAL_FATAL(sscanf(seen[i].id, "s%u-", &me), 1);
		CU_ASSERT_EQUAL_FATAL(sscanf(seen[i].text + 1, "%u", &k), 1);
		wrong += k != last[me][who] % 10;
		last[me][who]++;
		total++;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(total, n_seen);
	test_stop();
}

/* T-MC-8, T-MC-12: a Spot that is full, or whose turn waits, is passed over or waits alone; the
 * publisher is told nothing, and nothing is counted for it. */
static void test_full(void)
{
	begin(1);
	fake_create(&f, "f-world/news/news", fake_stage(&member_small));
	make("a-world/news/news");
	make("p");
	publishes = 5;
	fake_send(&f, "p", "publish", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(publish_rc, 0);
	CU_ASSERT_EQUAL(heard_by("a-world/news/news"), 5);
	CU_ASSERT_EQUAL(heard_by("f-world/news/news"), 2);
	for (int i = 0; i < SPL_FAIL_COUNT; i++)
		CU_ASSERT_EQUAL(fake_failed(&f, (enum spl_message_fail)i), 0);
	/* The next one is served again: nothing was retried in between. */
	n_seen = 0;
	publishes = 1;
	fake_send(&f, "p", "publish", "y");
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	test_stop();
}

/* T-MC-3, T-MC-13: who subscribes after the start is not in it; who has gone is not either. */
static void test_snapshot(void)
{
	uint64_t generation;
	struct spl_key late = fake_key("late-world/news/news");
	uint64_t late_generation;
	char id[64];

	begin(1);
	generation = make("gone-world/news/news");
	for (int i = 0; i < 2500; i++) { /* more than one pass looks at */
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		make(id);
	}
	publish_from_peer("world", "news", "news", "first");
	CU_ASSERT_EQUAL(f.lane[0].l->topics.cast_head != 0, true);
	spot_run(f.lane[0].l, 0, UINT64_MAX); /* part of them has it in the queue */
	CU_ASSERT(f.lane[0].l->topics.cast_begun);
	late_generation = fake_prepare(&f, "late-world/news/news", fake_stage(&member), NULL, 0);
	spot_run(f.lane[0].l, 8192, UINT64_MAX); /* the next part, and on_configure */
	spot_publish(f.lane[0].l, &late, late_generation, ++f.next_op, f.now);
	CU_ASSERT(f.lane[0].l->topics.cast_begun); /* Ready while it is on its way */
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2501);
	CU_ASSERT_EQUAL(heard_by("late-world/news/news"), 0);
	n_seen = 0;
	fake_close(&f, "gone-world/news/news", generation, SPL_CLOSING_EXPLICIT, 0);
	publish_from_peer("world", "news", "news", "second"); /* it is closing, not gone */
	fake_run(&f);
	CU_ASSERT_EQUAL(heard_by("gone-world/news/news"), 0);
	CU_ASSERT_EQUAL(n_seen, 2501); /* "late" too */
	for (int i = 0; i < 2500; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		fake_close(&f, id, (uint64_t)i + 2, SPL_CLOSING_EXPLICIT, 0);
		if (i % 100 == 99)
			fake_run(&f);
	}
	n_seen = 0;
	publish_from_peer("world", "news", "news", "third");
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 1);
	CU_ASSERT_EQUAL(heard_by("late-world/news/news"), 1);
	test_stop();
}

/* Subscribers that end while the publish is on its way to them. */
static void test_end_on_the_way(void)
{
	struct spot_lane *l;
	char id[64];

	begin(1);
	l = f.lane[0].l;
	for (int i = 0; i < 1200; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		make(id);
	}
	publish_from_peer("world", "news", "news", "x");
	publish_from_peer("world", "news", "news", "y");
	spot_casts_run(l);
	CU_ASSERT(l->topics.cast_begun);
	for (int i = 1000; i < 1200; i++) /* the next one of the way too */
		spot_subs_end(l,
			      test_spot((snprintf(id, sizeof(id), "s%d-world/news/news", i), id)));
	fake_run(&f);
	CU_ASSERT_EQUAL(heard_by("s1199-world/news/news"), 0);
	CU_ASSERT_EQUAL(n_seen, 1024 + 1000);
	for (int i = 0; i < 1000; i++)
		spot_subs_end(l,
			      test_spot((snprintf(id, sizeof(id), "s%d-world/news/news", i), id)));
	CU_ASSERT_EQUAL(spot_topic_find(&l->topics, &news.key), 0);
	test_stop();
}

/* T-MC-10, T-KIND-3: the table of refused subscriptions: no Spot comes of any of them. */
static void test_refused(void)
{
	static const struct {
		const char *id;
		const struct spl_stage *stage;
		uint8_t kind;
	} rows[] = {
		{"a-world/news/news-world/news/news", &member, SPL_E_INVALID_OPERATION},
		{"b-elsewhere/news/news", &member, SPL_E_NOT_CONFIGURED},
		{"c-world/news/news", &member_instance, SPL_E_INVALID_OPERATION},
	};

	begin(3);
	for (unsigned i = 0; i < T_COUNT(rows); i++) {
		fake_log_clear();
		fake_prepare(&f, rows[i].id, fake_stage(rows[i].stage), NULL, 0);
		fake_run(&f);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_FAILED);
		CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->error, rows[i].kind);
		CU_ASSERT_STRING_EQUAL(fake_logged(), "configure"); /* and nothing after it */
		CU_ASSERT_PTR_NULL(test_spot(rows[i].id));
	}
	publish_from_peer("world", "news", "news", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 0);
	fake_log_clear();
	make("d-world/news/news");
	CU_ASSERT_STRING_EQUAL(fake_logged(), "configure create-after");
	test_stop();
}

/* A handler that fails spoils nothing for the others; a lease that is over, a node at its end. */
static void test_failures(void)
{
	struct spot_rec *r;

	begin(1);
	make("a-world/news/news");
	make("b-world/news/news");
	heard_rc = SPL_FAIL(SPL_E_DATA_LOST);
	r = fake_record_on(&f, &f.lane[0], &news.key, "news", "x", 1);
	r->kind = SPL_MSG_PUBLISH;
	r->msg.content = 9; /* unknown: refused as a whole */
	fake_admit(&f, "a-world/news/news", r);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_CONTENT_TYPE), 1);
	publish_from_peer("world", "news", "news", "x");
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_HANDLER), 2);
	publish_from_peer("world", "news", "news", "x");
	spot_run(f.lane[0].l, 0, UINT64_MAX);
	f.lease = f.now;
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_FENCED), 2);
	f.lease = UINT64_MAX;
	fake_run(&f);
	publish_from_peer("world", "news", "news", "started");
	spot_lane_seal(f.lane[0].l);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 4);
	n_seen = 2;
	publish_from_peer("world", "news", "news", "x");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_SHUTDOWN), 1);
	fake_run(&f);
	CU_ASSERT_EQUAL(n_seen, 2);
	test_stop();
}

/* M36: subscribing and ending over and over leaves nothing behind. */
static void test_churn(void)
{
	char id[64];

	begin(3);
	for (int i = 0; i < 3000; i++) {
		uint64_t generation;

		snprintf(id, sizeof(id), "c-world/t%d/news-world/u%d/news", i % 100, i % 7);
		generation = make(id);
		publish_from_peer("world", id + 8, "news", "x");
		fake_close(&f, id, generation, SPL_CLOSING_EXPLICIT, 0);
		fake_run(&f);
		f.answers = 0;
	}
	for (unsigned i = 0; i < f.lanes; i++) {
		CU_ASSERT_EQUAL(f.lane[i].l->topics.used, 0);
		for (uint32_t b = 0; b <= f.lane[i].l->topics.mask; b++)
			CU_ASSERT_EQUAL(f.lane[i].l->topics.bucket[b], 0);
	}
	test_stop();
}

/* Rings to other lanes that are full: those there are passed over, and the bytes are released. */
static void test_ring_full(void)
{
	char id[64];

	begin(3);
	for (int i = 0; i < 30; i++) {
		snprintf(id, sizeof(id), "s%d-world/news/news", i);
		make(id);
	}
	for (unsigned i = 0; i < 3; i++)
		f.lane[i].ring_max = 0;
	publish_from_peer("world", "news", "news", "x");
	CU_ASSERT_EQUAL(f.casts, 0);
	for (unsigned i = 0; i < 3; i++)
		f.lane[i].ring_max = FAKE_LIST;
	fake_run(&f);
	CU_ASSERT(n_seen > 0 && n_seen < 30);
	CU_ASSERT_EQUAL(f.buffers, 0);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_match, "S-TOPIC-1", "S-MCAST-1", "S-MCAST-13", "S-MSG-3"),
	T(test_nobody, "S-MCAST-9", "S-MCAST-1", "S-NAME-2"),
	T(test_own, "S-MCAST-5"),
	T(test_one_payload, "S-MCAST-4", "S-META-3"),
	T(test_until_the_last, "S-MCAST-4", "S-MSG-4"),
	T(test_pool_low, "S-MCAST-4"),
	T(test_order, "S-MCAST-10"),
	T(test_full, "S-MCAST-8", "S-MCAST-11", "S-MCAST-12", "S-LIM-5"),
	T(test_snapshot, "S-MCAST-2", "S-MCAST-14", "S-TOPIC-3"),
	T(test_end_on_the_way, "S-MCAST-14"),
	T(test_refused, "S-TOPIC-2", "S-CREATE-5"),
	T(test_failures, "S-TURN-10", "S-MCAST-13", "S-TIMER-12"),
	T(test_churn, "S-TOPIC-3"),
	T(test_ring_full, "S-MCAST-8"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_cast", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
