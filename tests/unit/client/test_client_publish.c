/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishing from a process that hosts no Spot. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/client/fake.h"

static struct fake *f;
static struct spl_client *c;
static struct spl_topic news;
static uint64_t number;

static void begin(const char *const *channels, uint32_t n)
{
	struct spl_client_config conf;

	f = fake_new();
	fake_config(&conf);
	conf.channels = channels;
	conf.channels_n = n;
	c = fake_client(f, &conf);
	for (char name[] = "news-a"; name[5] <= 'z';
	     name[5]++) { /* one whose lane is not the first */
		CU_ASSERT_EQUAL(spl_topic_set(&news, "world", 5, name, 6), 0);
		if (spl_key_lane(&news.key, FAKE_LANES) != 0)
			break;
	}
	CU_ASSERT(spl_key_lane(&news.key, FAKE_LANES) != 0);
}

static void end(void)
{
	CU_ASSERT_EQUAL(spl_client_close(c, 1000), 0);
	fake_free(f);
}

static struct spl_client_message about(const struct spl_topic *topic, uint64_t n)
{
	struct spl_client_message m;

	number = n;
	m = fake_message(NULL, &number);
	m.topic = topic;
	return m;
}

static const char *const world[] = {"other", "world"};

/* It ends when the link took it, without a question to anybody, on the topic's lane, in order. */
static void test_publish(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;

	begin(world, 2);
	for (uint64_t n = 1; n <= 50; n++) {
		m = about(&news, n);
		CU_ASSERT_EQUAL(spl_client_publish(c, &m, fake_keep, &r, NULL), 0);
		fake_until(c, &r);
		CU_ASSERT_EQUAL(r.kind, SPL_OK);
		r.runs = 0;
	}
	m = about(&news, 51);
	CU_ASSERT_EQUAL(spl_client_publish(c, &m, NULL, NULL, NULL), 0); /* nobody asks */
	fake_run(f, c, 100);
	CU_ASSERT_EQUAL(f->resolves, 0);
	CU_ASSERT_EQUAL_FATAL(f->seen_n, 51);
	for (uint32_t i = 0; i < 51; i++) {
		CU_ASSERT_EQUAL(f->seen[i].kind, SPL_MSG_PUBLISH);
		CU_ASSERT_EQUAL(f->seen[i].number, i + 1);
		CU_ASSERT_EQUAL(f->seen[i].correlation, 0);
		CU_ASSERT_EQUAL(f->seen[i].lane, spl_key_lane(&news.key, FAKE_LANES));
		CU_ASSERT(spl_key_equal(&f->seen[i].key, &news.key));
	}
	end();
}

/* A channel it does not take part in: NotFound, and nothing leaves. */
static void test_unknown_channel(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;

	begin(world, 1);
	m = about(&news, 1);
	CU_ASSERT_EQUAL(spl_client_publish(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_NOT_FOUND);
	fake_run(f, c, 100);
	CU_ASSERT_EQUAL(f->seen_n, 0);
	end();
}

/* No room in the link: it waits as a send does, and one that has ended in DeadlineExceeded is never
 * sent later (S-LIM-6). */
static void test_no_room(void)
{
	struct fake_result r = {0}, late = {0};
	struct spl_client_message m;

	begin(world, 2);
	f->keeps_credit = true;
	while (late.runs == 0) {
		m = about(&news, 7);
		r.runs = 0;
		CU_ASSERT_EQUAL_FATAL(spl_client_publish(c, &m, fake_keep, &r, NULL), 0);
		fake_run(f, c, 10);
		if (r.runs == 0) {
			number = 8;
			m = about(&news, 8);
			CU_ASSERT_EQUAL(spl_client_publish(c, &m, fake_keep, &late, NULL), 0);
			fake_until(c, &late);
		}
	}
	CU_ASSERT_EQUAL(late.kind, SPL_E_DEADLINE_EXCEEDED);
	f->keeps_credit = false;
	fake_consume(f);
	fake_run(f, c, 5000);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_PUBLISH, 8), 0);
	end();
}

static void test_arguments(void)
{
	static const char *const bad[] = {"", NULL, "\xff"};
	struct spl_client_target target;
	struct spl_client_config conf;
	struct spl_client_message m;
	struct spl_client *none;

	begin(world, 2);
	target = fake_target("room");
	CU_ASSERT_EQUAL(spl_client_publish(c, NULL, NULL, NULL, NULL), -EINVAL);
	m = about(NULL, 1);
	CU_ASSERT_EQUAL(spl_client_publish(c, &m, NULL, NULL, NULL), -EINVAL);
	m = about(&news, 1);
	m.target = &target;
	CU_ASSERT_EQUAL(spl_client_publish(c, &m, NULL, NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, NULL, NULL, NULL), -EINVAL); /* both */
	m = about(&news, 1);
	m.packet = 0;
	CU_ASSERT_EQUAL(spl_client_publish(c, &m, NULL, NULL, NULL), -EINVAL);
	m = about(&news, 1);
	m.timeout_us = 1;
	CU_ASSERT_EQUAL(spl_client_publish(c, &m, NULL, NULL, NULL), -EINVAL);
	fake_config(&conf);
	for (unsigned i = 0; i < T_COUNT(bad); i++) {
		conf.channels = &bad[i];
		conf.channels_n = 1;
		CU_ASSERT_EQUAL(spl_client_open(&conf, &none), -EINVAL);
	}
	conf.channels = NULL;
	CU_ASSERT_EQUAL(spl_client_open(&conf, &none), -EINVAL);
	conf.channels_n = SPL_CHANNELS_MAX + 1;
	conf.channels = world;
	CU_ASSERT_EQUAL(spl_client_open(&conf, &none), -EINVAL);
	end();
}

static const struct t_case cases[] = {
	T(test_publish, "S-MCAST-1", "S-MCAST-7", "S-ROLE-2"),
	T(test_unknown_channel, "S-MCAST-1", "S-NAME-2"),
	T(test_no_room, "S-MCAST-6", "S-LIM-6"),
	T(test_arguments, "S-NAME-5"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("client_publish", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
