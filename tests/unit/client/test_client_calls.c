/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls end: exactly once, with what happened first. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/client/fake.h"

static struct fake *f;
static struct spl_client *c;
static struct spl_client_target room;

static void begin(void)
{
	f = fake_new();
	fake_spot(f, "room");
	room = fake_target("room");
	c = fake_client(f, NULL);
}

static void end(void)
{
	CU_ASSERT_EQUAL(spl_client_close(c, 1000), 0);
	fake_free(f);
}

static void test_request_gets_its_reply(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;
	uint64_t number = 42;

	begin();
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	CU_ASSERT_EQUAL(r.runs, 0); /* never inside the function that began it */
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_OK);
	CU_ASSERT_EQUAL(r.number, 42);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 42), 1);
	end();
}

static void test_send_ends_when_the_link_took_it(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;
	uint64_t number = 1;

	begin();
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	f->is_cut = true; /* now the route is known: the next send needs the node for nothing */
	r.runs = 0;
	number = 2;
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_poll(c, 0), 1);
	CU_ASSERT_EQUAL(r.runs, 1);
	CU_ASSERT_EQUAL(r.kind, SPL_OK);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 2), 0);
	f->is_cut = false;
	fake_run(f, c, 2000);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 2), 1);
	CU_ASSERT_EQUAL(f->seen[f->seen_n - 1].correlation, 0);
	end();
}

static void test_arguments_are_checked_at_the_call(void)
{
	struct spl_client_target none = {.id = {.len = 0}};
	struct spl_client_creation n = {.type = "room"};
	struct fake_result r = {0};
	struct spl_client_message m, bad;
	uint64_t number = 1;
	uint32_t seen;

	begin();
	m = fake_message(&room, &number);
	seen = f->seen_n;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, NULL, NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_request(c, NULL, fake_keep, &r, NULL), -EINVAL);
	bad = m;
	bad.target = &none;
	CU_ASSERT_EQUAL(spl_client_send(c, &bad, fake_keep, &r, NULL), -EINVAL);
	bad = m;
	bad.packet = 0;
	CU_ASSERT_EQUAL(spl_client_send(c, &bad, fake_keep, &r, NULL), -EINVAL);
	bad = m;
	bad.content = SPL_CONTENT_COUNT;
	CU_ASSERT_EQUAL(spl_client_send(c, &bad, fake_keep, &r, NULL), -EINVAL);
	bad = m;
	bad.metadata = "\1";
	bad.metadata_bytes = 1;
	CU_ASSERT_EQUAL(spl_client_send(c, &bad, fake_keep, &r, NULL), -EINVAL);
	bad = m;
	bad.payload_bytes = SPL_MESSAGE_BYTES_MAX + 1;
	CU_ASSERT_EQUAL(spl_client_send(c, &bad, fake_keep, &r, NULL), -EMSGSIZE);
	bad = m;
	bad.timeout_us = -1;
	CU_ASSERT_EQUAL(spl_client_request(c, &bad, fake_keep, &r, NULL), -EINVAL);
	n.type = "";
	CU_ASSERT_EQUAL(spl_client_create(c, &n, fake_keep, &r, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_find(c, "", 0, 0, fake_keep, &r, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_client_close_spot(c, NULL, 0, fake_keep, &r, NULL), -EINVAL);
	fake_run(f, c, 100);
	CU_ASSERT_EQUAL(r.runs, 0);
	CU_ASSERT_EQUAL(f->seen_n, seen); /* no wire traffic */
	end();
}

/* Options live in the message, so that none can be set twice; a timeout is for requests only. */
static void test_options_that_do_not_belong(void)
{
	struct fake_result first = {0}, second = {0};
	struct spl_client_message m;
	uint64_t number = 1, call;

	begin();
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &first, &call), 0);
	m.timeout_us = 1000;
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &second, NULL), -EINVAL);
	fake_until(c, &first);
	CU_ASSERT_EQUAL(first.kind, SPL_OK);
	CU_ASSERT_EQUAL(second.runs, 0);
	end();
}

static void test_timeout_of_call_comes_before_that_of_client(void)
{
	struct spl_client_config conf;
	struct fake_result r = {0};
	struct spl_client_message m;
	uint64_t number = 1, began;

	f = fake_new();
	fake_spot(f, "room");
	room = fake_target("room");
	fake_config(&conf);
	conf.request_timeout_us = 700000;
	c = fake_client(f, &conf);
	f->handler_ns = 5000 * MS;
	m = fake_message(&room, &number);
	began = f->now_ns;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL((f->now_ns - began) / MS, 700);
	m.timeout_us = 90000;
	r.runs = 0;
	began = f->now_ns;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL((f->now_ns - began) / MS, 90);
	end();
}

static void test_late_and_double_replies_end_nothing(void)
{
	struct fake_result r = {0};
	struct spl_client_stats s;
	struct spl_client_message m;
	uint64_t number = 7;

	begin();
	f->handler_ns = 200 * MS;
	f->replies_twice = 1;
	m = fake_message(&room, &number);
	m.timeout_us = 100000;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_DEADLINE_EXCEEDED);
	fake_run(f, c, 500); /* the handler ran on; its reply finds nobody */
	CU_ASSERT_EQUAL(r.runs, 1);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 7), 1);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.late_replies, 2);
	CU_ASSERT_EQUAL(s.calls_pending, 0);
	m.timeout_us = 0;
	r.runs = 0;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_run(f, c, 500);
	CU_ASSERT_EQUAL(r.runs, 1);
	CU_ASSERT_EQUAL(r.kind, SPL_OK);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.late_replies, 3);
	end();
}

static void test_kind_comes_from_the_code(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;
	uint64_t number = 1;

	begin();
	m = fake_message(&room, &number);
	f->error_text = "cancelled: timeout, DeadlineExceeded";
	for (int kind = 0; kind < SPL_ERROR_COUNT; kind++) {
		f->handler_error = kind;
		r.runs = 0;
		CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
		fake_until(c, &r);
		CU_ASSERT_EQUAL(r.kind, kind);
		CU_ASSERT_EQUAL(r.bytes, 0);
	}
	f->handler_error = 77; /* no kind at all */
	r.runs = 0;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_PROTOCOL_ERROR);
	end();
}

static void test_reply_of_unknown_content_is_a_protocol_error(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;
	uint64_t number = 1;

	begin();
	m = fake_message(&room, &number);
	f->reply_content = SPL_CONTENT_JSON;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_OK);
	CU_ASSERT_EQUAL(r.content, SPL_CONTENT_JSON);
	f->reply_content = SPL_CONTENT_COUNT;
	r.runs = 0;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_PROTOCOL_ERROR);
	end();
}

static void test_broken_control_answers_are_protocol_errors(void)
{
	struct spl_client_creation n = {.id = "x", .id_bytes = 1, .type = "room"};
	struct fake_result create = {0}, find = {0}, close = {0}, request = {0};
	struct spl_client_message m;
	struct spl_spot_ref ref;
	uint64_t number = 1;

	begin();
	CU_ASSERT_EQUAL(spl_client_create(c, &n, fake_keep, &create, NULL), 0);
	fake_until(c, &create);
	CU_ASSERT_EQUAL(create.kind, SPL_OK);
	ref = create.ref;
	create.runs = 0;
	f->breaks_bodies = true;
	CU_ASSERT_EQUAL(spl_client_create(c, &n, fake_keep, &create, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_find(c, "x", 1, 0, fake_keep, &find, NULL), 0);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &request, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_close_spot(c, &ref, 0, fake_keep, &close, NULL), 0);
	fake_run(f, c, 100);
	CU_ASSERT(create.runs == 1 && create.kind == SPL_E_PROTOCOL_ERROR && !create.has_ref);
	CU_ASSERT(find.runs == 1 && find.kind == SPL_E_PROTOCOL_ERROR && !find.has_ref);
	CU_ASSERT(close.runs == 1 && close.kind == SPL_E_PROTOCOL_ERROR);
	CU_ASSERT(request.runs == 1 && request.kind == SPL_E_PROTOCOL_ERROR);
	end();
}

struct chain {
	struct fake_result r;
	struct spl_client_message m;
	unsigned left;
	int busy[4];
};

/* A callback that asks again, and tries what callbacks may not do. */
static void again(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		  void *ctx)
{
	struct chain *ch = ctx;

	fake_keep(client, call, r, &ch->r);
	CU_ASSERT_EQUAL(spl_client_cancel(client, call), 0);
	ch->busy[0] = spl_client_poll(client, 0);
	ch->busy[1] = spl_client_wait(client, call);
	ch->busy[2] = spl_client_close(client, 0);
	ch->busy[3] = spl_client_connect(client, 0);
	if (ch->left-- > 1)
		CU_ASSERT_EQUAL(spl_client_request(client, &ch->m, again, ch, NULL), 0);
}

static void test_callbacks_may_begin_calls(void)
{
	struct chain ch = {.left = 50};
	uint64_t number = 9;

	begin();
	ch.m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &ch.m, again, &ch, NULL), 0);
	fake_run(f, c, 1000);
	CU_ASSERT_EQUAL(ch.r.runs, 50);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(ch.busy[i], -EBUSY);
	end();
}

/* The reply leaves in the same moment in which the request arrives. */
static void test_instant_replies_are_never_lost(void)
{
	struct fake_result r[100];
	struct spl_client_message m;
	uint64_t number = 3;
	unsigned ok = 0;

	begin();
	f->delay_ns = 0;
	m = fake_message(&room, &number);
	for (int round = 0; round < 100; round++) {
		memset(r, 0, sizeof(r));
		for (int i = 0; i < 100; i++)
			CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[i], NULL), 0);
		fake_run(f, c, 50);
		for (int i = 0; i < 100; i++)
			ok += r[i].runs == 1 && r[i].kind == SPL_OK;
	}
	CU_ASSERT_EQUAL(ok, 10000);
	end();
}

static void test_cancelled_while_it_waits_is_never_sent(void)
{
	struct fake_result send = {0}, request = {0};
	struct spl_client_message m;
	struct spl_client_stats s;
	uint64_t number = 5, a, b;

	begin();
	f->authority_is_mute = true; /* both wait for the route */
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &send, &a), 0);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &request, &b), 0);
	fake_run(f, c, 10);
	CU_ASSERT_EQUAL(spl_client_cancel(c, a), 1);
	CU_ASSERT_EQUAL(spl_client_cancel(c, a), 0);
	CU_ASSERT_EQUAL(spl_client_cancel(c, b), 1);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.calls_waiting, 0);
	CU_ASSERT_EQUAL(s.waiting_bytes, 0);
	CU_ASSERT_EQUAL(s.routes, 0);
	f->authority_is_mute = false;
	fake_run(f, c, 2000);
	CU_ASSERT(send.runs == 1 && send.kind == SPL_CANCELLED);
	CU_ASSERT(request.runs == 1 && request.kind == SPL_CANCELLED);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, 0), 0);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, 0), 0);
	end();
}

static void test_cancelled_after_its_end_changes_nothing(void)
{
	struct fake_result r = {0};
	struct spl_client_message m;
	uint64_t number = 5, a;

	begin();
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, &a), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(spl_client_cancel(c, a), 0);
	CU_ASSERT_EQUAL(spl_client_cancel(c, 0), 0);
	CU_ASSERT_EQUAL(spl_client_cancel(c, UINT64_MAX), 0);
	fake_run(f, c, 50);
	CU_ASSERT(r.runs == 1 && r.kind == SPL_OK);
	/* A send has its result before its callback ran: too late as well. */
	r.runs = 0;
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, &a), 0);
	CU_ASSERT_EQUAL(spl_client_cancel(c, a), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_OK);
	end();
}

static void test_close_ends_every_call_once(void)
{
	struct fake_result waiting = {0}, sent = {0}, created = {0}, send = {0};
	struct spl_client_creation n = {.id = "y", .id_bytes = 1, .type = "room"};
	struct spl_client_target other;
	struct spl_client_message m;
	uint64_t number = 5;

	begin();
	other = fake_target("other");
	f->handler_ns = 60000 * MS;
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &sent, NULL), 0);
	fake_run(f, c, 50);
	f->authority_is_mute = true;
	CU_ASSERT_EQUAL(spl_client_create(c, &n, fake_keep, &created, NULL), 0);
	m = fake_message(&other, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &waiting, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &send, NULL), 0);
	fake_run(f, c, 10);
	CU_ASSERT_EQUAL(spl_client_close(c, 50), 0);
	CU_ASSERT(sent.runs == 1 && sent.kind == SPL_E_SHUTTING_DOWN);
	CU_ASSERT(created.runs == 1 && created.kind == SPL_E_SHUTTING_DOWN);
	CU_ASSERT(waiting.runs == 1 && waiting.kind == SPL_E_SHUTTING_DOWN);
	CU_ASSERT(send.runs == 1 && send.kind == SPL_E_SHUTTING_DOWN);
	fake_free(f);
}

/* Reply, timeout, cancellation and the end of the client run against each other. */
static void test_races_have_one_winner(void)
{
	enum { N = 100000, BATCH = 500 };
	static struct fake_result r[BATCH];
	static uint64_t call[BATCH];
	uint64_t total = 0, kinds[4] = {0}, number = 1;
	struct t_rand rand = {t_seed()};
	struct spl_client_message m;

	begin();
	for (int round = 0; round < N / BATCH; round++) {
		memset(r, 0, sizeof(r));
		f->seen_n = 0;
		f->handler_ns = t_rand_below(&rand, 8) * MS;
		m = fake_message(&room, &number);
		for (int i = 0; i < BATCH; i++) {
			m.timeout_us = 1000 + t_rand_below(&rand, 8000);
			CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[i], &call[i]), 0);
		}
		for (int i = 0; i < 10; i++) {
			fake_run(f, c, 1);
			(void)spl_client_cancel(c, call[t_rand_below(&rand, BATCH)]);
		}
		if (round % 20 == 19) {
			CU_ASSERT_EQUAL(spl_client_close(c, 0), 0);
			c = fake_client(f, NULL);
		} else {
			fake_run(f, c, 20);
		}
		for (int i = 0; i < BATCH; i++) {
			total += r[i].runs;
			kinds[0] += r[i].kind == SPL_OK;
			kinds[1] += r[i].kind == SPL_E_DEADLINE_EXCEEDED;
			kinds[2] += r[i].kind == SPL_CANCELLED;
			if (r[i].runs != 1)
				CU_ASSERT_EQUAL_FATAL(r[i].runs, 1);
		}
	}
	CU_ASSERT_EQUAL(total, N);
	CU_ASSERT(kinds[0] > N / 10 && kinds[1] > N / 10 && kinds[2] > N / 1000);
	end();
}

static void test_waiting_calls(void)
{
	struct spl_client_creation n = {
		.id = "z", .id_bytes = 1, .type = "room", .request = "hello", .request_bytes = 5};
	struct spl_client_answer a;
	struct spl_client_message m;
	struct spl_spot_ref ref;
	uint64_t number = 11;

	begin();
	CU_ASSERT_EQUAL(spl_client_create_wait(c, &n, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && a.created == SPL_CLIENT_CREATED && a.has_ref);
	CU_ASSERT(a.payload_bytes == 5 && memcmp(a.payload, "hello", 5) == 0);
	ref = a.ref;
	spl_client_answer_free(&a);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request_wait(c, &m, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && a.payload_bytes == 8);
	spl_client_answer_free(&a);
	CU_ASSERT_EQUAL(spl_client_find_wait(c, "z", 1, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && a.found && a.ref.object_generation == ref.object_generation);
	CU_ASSERT_EQUAL(spl_client_close_spot_wait(c, &ref, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && a.closed);
	CU_ASSERT_EQUAL(spl_client_close_spot_wait(c, &ref, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && !a.closed);
	CU_ASSERT_EQUAL(spl_client_find_wait(c, "z", 1, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && !a.found && !a.has_ref);
	CU_ASSERT_EQUAL(spl_client_request_wait(c, NULL, &a), -EINVAL);
	end();
}

static void test_create_mints_and_get_or_create_finds(void)
{
	struct spl_client_creation n = {.type = "room"};
	struct spl_client_answer a, b;

	begin();
	CU_ASSERT_EQUAL(spl_client_create_wait(c, &n, &a), 0);
	CU_ASSERT(a.kind == SPL_OK && a.created == SPL_CLIENT_CREATED);
	CU_ASSERT_EQUAL(a.ref.spot_id.len, 36);
	CU_ASSERT_EQUAL(a.ref.spot_id.b[14], '4');
	n.id = a.ref.spot_id.b;
	n.id_bytes = a.ref.spot_id.len;
	CU_ASSERT_EQUAL(spl_client_create_wait(c, &n, &b), 0);
	CU_ASSERT(b.kind == SPL_OK && b.created == SPL_CLIENT_EXISTING);
	CU_ASSERT_EQUAL(a.ref.object_generation, b.ref.object_generation);
	n.id = "new";
	n.id_bytes = 3;
	f->create_state = WIRE_REJECTED;
	CU_ASSERT_EQUAL(spl_client_create_wait(c, &n, &b), 0);
	CU_ASSERT(b.kind == SPL_OK && b.created == SPL_CLIENT_REJECTED && !b.has_ref);
	end();
}

/* Its handle, which is never used twice (test_client_parts), goes with it as the operation. */
static void test_each_creation_and_close_is_one_operation(void)
{
	struct spl_client_creation n = {.type = "room"};
	struct fake_result r;
	struct spl_client_answer a;
	uint64_t handle, last = 0;

	begin();
	for (uint32_t i = 0; i < FAKE_OPERATIONS; i += 2) {
		CU_ASSERT_EQUAL_FATAL(spl_client_create_wait(c, &n, &a), 0);
		CU_ASSERT(f->operation[i] > last);
		memset(&r, 0, sizeof(r));
		CU_ASSERT_EQUAL_FATAL(spl_client_close_spot(c, &a.ref, 0, fake_keep, &r, &handle),
				      0);
		fake_until(c, &r);
		CU_ASSERT_EQUAL(r.kind, SPL_OK);
		CU_ASSERT_EQUAL_FATAL(f->creates + f->closes, i + 2);
		CU_ASSERT(f->operation[i + 1] > f->operation[i]);
		CU_ASSERT_EQUAL(f->operation[i + 1], handle);
		last = f->operation[i + 1];
	}
	end();
}

static const struct t_case cases[] = {
	T(test_request_gets_its_reply, "S-DIR-6"),
	T(test_send_ends_when_the_link_took_it, "S-DIR-4"),
	T(test_arguments_are_checked_at_the_call, "S-ERR-2", "S-DIR-1", "S-MSG-6"),
	T(test_options_that_do_not_belong, "S-DIR-2"),
	T(test_timeout_of_call_comes_before_that_of_client, "S-DIR-7"),
	T(test_late_and_double_replies_end_nothing, "S-COMPL-6", "S-COMPL-8"),
	T(test_kind_comes_from_the_code, "S-COMPL-10", "S-ERR-1"),
	T(test_reply_of_unknown_content_is_a_protocol_error, "S-CODEC-1"),
	T(test_broken_control_answers_are_protocol_errors, "S-WIRE-1"),
	T(test_callbacks_may_begin_calls, "S-COMPL-2"),
	T(test_instant_replies_are_never_lost, "S-COMPL-3"),
	T(test_cancelled_while_it_waits_is_never_sent, "S-COMPL-9"),
	T(test_cancelled_after_its_end_changes_nothing, "S-COMPL-9"),
	T(test_close_ends_every_call_once, "S-COMPL-12"),
	T(test_races_have_one_winner, "S-COMPL-1", "S-COMPL-6"),
	T(test_waiting_calls, "S-CLOSE-2", "S-CREATE-10"),
	T(test_each_creation_and_close_is_one_operation, "S-COMPL-5"),
	T(test_create_mints_and_get_or_create_finds, "S-ID-8", "S-CREATE-1", "S-CREATE-3"),
};

int main(int argc, char **argv)
{
	static const struct t_suite suites[] = {T_SUITE("client_calls", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
