/* SPDX-License-Identifier: BSD-3-Clause */
/* See castrig.h. */
#include "tests/unit/spot/castrig.h"

#include "common/ids.h"

#include <errno.h>

#define f test_rig

struct cast_seen cast_seen[4096];
unsigned cast_n_seen;
int cast_rc;

static int on_heard(struct spl_turn *turn, void *state, const struct spl_message *m,
		    const struct spl_topic *topic)
{
	struct cast_member *me = state;
	const struct spl_name *id = spl_spot_id(turn);

	CU_ASSERT_EQUAL(me->base.inside++, 0);
	CU_ASSERT_FATAL(cast_n_seen < T_COUNT(cast_seen));
	CU_ASSERT(!m->is_request && m->correlation == 0);
	CU_ASSERT_STRING_EQUAL(m->packet, "news");
	snprintf(cast_seen[cast_n_seen].id, sizeof(cast_seen[0].id), "%.*s", id->len,
		 (const char *)id->b);
	snprintf(cast_seen[cast_n_seen].topic, sizeof(cast_seen[0].topic), "%.*s", topic->name.len,
		 (const char *)topic->name.b);
	snprintf(cast_seen[cast_n_seen].text, sizeof(cast_seen[0].text), "%.*s",
		 (int)m->payload_bytes, (const char *)m->payload);
	cast_seen[cast_n_seen].payload = m->payload;
	cast_seen[cast_n_seen].bytes = m->payload_bytes;
	cast_seen[cast_n_seen++].source = m->source;
	fake_log("heard");
	CU_ASSERT_EQUAL(spl_reply(turn, 0, "x", 1), -EINVAL);
	me->base.inside--;
	return cast_rc;
}

static int on_configure(struct spl_turn *turn, void *state)
{
	struct cast_member *me = state;
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

struct spl_topic cast_news, cast_sport;
int cast_publish_rc;
unsigned cast_publishes;

static int publish(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	char text[32];

	for (unsigned i = 0; i < cast_publishes; i++) {
		snprintf(text, sizeof(text), "%.*s%u", (int)m->payload_bytes,
			 (const char *)m->payload, i);
		cast_publish_rc = spl_publish(turn, &cast_news, spl_packet_key("news", 4),
					      SPL_CONTENT_TEXT, text, (uint32_t)strlen(text));
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
	const struct cast_member *me = state;

	CU_ASSERT_EQUAL(spl_subscribe(turn, &cast_news, "news", on_heard), -EPERM);
	fake_log(me->n ? "create-after" : "create");
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"publish", SPL_TAKES_SEND, publish},
	{"add", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_add},
};

#define MEMBER(name, kind_, count) \
	const struct spl_stage name = { \
		.api = SPL_STAGE_API, \
		.size = sizeof(struct spl_stage), \
		.type = #name, \
		.kind = kind_, \
		.relocation = SPL_RELOCATION_DISABLED, \
		.state_bytes = sizeof(struct cast_member), \
		.queue_count = count, \
		.handlers = handlers, \
		.handler_count = T_COUNT(handlers), \
		.on_configure = on_configure, \
		.on_create = on_create, \
	}
MEMBER(cast_member, SPL_KIND_USER, 0);
MEMBER(cast_member_small, SPL_KIND_USER, 2);
MEMBER(cast_member_instance, SPL_KIND_INSTANCE, 0);

void cast_begin(unsigned lanes)
{
	test_begin(lanes);
	f.conf.object_bytes = 32 << 20;
	f.conf.subscriptions = 4096;
	f.conf.records = 8192;
	f.conf.spots_max = 4096;
	f.conf.queue_count = 256;
	fake_start(&f);
	cast_n_seen = 0;
	cast_rc = SPL_DONE;
	cast_publishes = 1;
	memset(cast_seen, 0, sizeof(cast_seen));
	CU_ASSERT_EQUAL(spl_topic_set(&cast_news, "world", 5, "news", 4), 0);
	CU_ASSERT_EQUAL(spl_topic_set(&cast_sport, "world", 5, "sport", 5), 0);
}

uint64_t cast_make(const char *id)
{
	return fake_create(&f, id, fake_stage(&cast_member));
}

/* A publish of a peer, straight to the lane of its topic. */
void cast_from_peer(const char *channel, const char *topic, const char *packet, const char *text)
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

unsigned cast_heard_by(const char *id)
{
	unsigned n = 0;

	for (unsigned i = 0; i < cast_n_seen; i++)
		n += strcmp(cast_seen[i].id, id) == 0;
	return n;
}
