/* SPDX-License-Identifier: BSD-3-Clause */
/* The client and its association: connecting, losing it, room in the window, loss on the way. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/fake.h"

static struct fake *f;
static struct spl_client *c;
static struct spl_client_target room;

static void begin(const struct spl_client_config *conf)
{
	f = fake_new();
	fake_spot(f, "room");
	room = fake_target("room");
	c = fake_client(f, conf);
}

static void end(void)
{
	CU_ASSERT_EQUAL(spl_client_close(c, 1000), 0);
	fake_free(f);
}

static void test_refusal_has_a_reason(void)
{
	struct spl_client_config conf;
	struct net net;

	f = fake_new();
	net = fake_net(f);
	fake_config(&conf);
	conf.mesh = "other";
	CU_ASSERT_EQUAL_FATAL(client_open(&conf, &net, &c), 0);
	CU_ASSERT_EQUAL(spl_client_connect(c, 5000), -ECONNREFUSED);
	CU_ASSERT_STRING_EQUAL(spl_client_refusal(c), "another mesh");
	CU_ASSERT_FALSE(spl_client_connected(c));
	end();
}

static void test_without_an_association_calls_fail_at_once(void)
{
	struct spl_client_config conf;
	struct fake_result r = {0}, n = {0};
	struct spl_client_creation creation = {.type = "room"};
	struct spl_client_message m;
	uint64_t number = 1;
	struct net net;

	f = fake_new();
	f->is_cut = true;
	net = fake_net(f);
	room = fake_target("room");
	fake_config(&conf);
	CU_ASSERT_EQUAL_FATAL(client_open(&conf, &net, &c), 0);
	CU_ASSERT_EQUAL(spl_client_connect(c, 3000), -ETIMEDOUT);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_create(c, &creation, fake_keep, &n, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_poll(c, 0), 2);
	CU_ASSERT_EQUAL(r.kind, SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(n.kind, SPL_E_UNAVAILABLE);
	f->is_cut = false; /* it goes on trying */
	fake_run(f, c, 10000);
	CU_ASSERT_TRUE(spl_client_connected(c));
	end();
}

static void test_lost_association_ends_every_call(void)
{
	struct fake_result sent = {0}, waiting = {0}, send = {0};
	struct spl_client_target other;
	struct spl_client_message m;
	struct spl_client_stats s;
	uint64_t number = 21;

	begin(NULL);
	other = fake_target("other");
	f->handler_ns = 3600000 * MS;
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &sent, NULL), 0);
	fake_run(f, c, 100);
	f->is_cut = true; /* right after acceptance */
	f->authority_is_mute = true;
	m = fake_message(&other, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &waiting, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &send, NULL), 0);
	fake_run(f, c, 25000);
	CU_ASSERT(sent.runs == 1 && sent.kind == SPL_E_UNAVAILABLE);
	CU_ASSERT(waiting.runs == 1 && waiting.kind == SPL_E_UNAVAILABLE);
	CU_ASSERT(send.runs == 1 && send.kind == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_FALSE(spl_client_connected(c));
	fake_restart(f);
	fake_spot(f, "room");
	f->authority_is_mute = false;
	f->handler_ns = 0;
	f->is_cut = false;
	fake_run(f, c, 20000);
	CU_ASSERT_TRUE(spl_client_connected(c));
	/* Nothing was sent again. */
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, number), 1);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 0);
	CU_ASSERT(sent.runs == 1 && waiting.runs == 1 && send.runs == 1);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.losses, 1);
	CU_ASSERT_EQUAL(s.connects, 2);
	CU_ASSERT_EQUAL(s.calls_pending, 0);
	end();
}

static void test_new_lifecycle_forgets_routes(void)
{
	struct spl_client_answer a;
	struct spl_client_message m;
	uint64_t number = 2;

	begin(NULL);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request_wait(c, &m, &a), 0);
	CU_ASSERT_EQUAL(a.kind, SPL_OK);
	spl_client_answer_free(&a);
	fake_restart(f);
	fake_run(f, c, 20000);
	CU_ASSERT_TRUE_FATAL(spl_client_connected(c));
	CU_ASSERT_EQUAL(spl_client_request_wait(c, &m, &a), 0);
	CU_ASSERT_EQUAL(a.kind, SPL_E_NOT_FOUND);
	fake_spot(f, "room");
	CU_ASSERT_EQUAL(spl_client_request_wait(c, &m, &a), 0);
	CU_ASSERT_EQUAL(a.kind, SPL_OK);
	spl_client_answer_free(&a);
	end();
}

/* A window of one message, and a node that gives no credit back. */
static void begin_narrow(uint32_t waiters)
{
	struct spl_client_config conf;

	fake_config(&conf);
	conf.window_bytes = 1;
	conf.waiters_max = waiters;
	begin(&conf);
}

/* Fills what goes out: the node takes what its credit lets in, then sends wait. */
static uint64_t fill(struct fake_result *last, uint64_t *call)
{
	static uint8_t payload[30000];
	struct spl_client_message m = {
		.target = &room,
		.packet = spl_packet_key("say", 3),
		.payload = payload,
		.payload_bytes = sizeof(payload),
	};
	struct spl_client_stats s = {0};
	uint64_t number = 0;

	while (s.calls_waiting == 0) {
		number++;
		memcpy(payload, &number, sizeof(number));
		memset(last, 0, sizeof(*last));
		CU_ASSERT_EQUAL_FATAL(spl_client_send(c, &m, fake_keep, last, call), 0);
		fake_run(f, c, 200);
		spl_client_stats(c, &s);
		CU_ASSERT_FATAL(number < 2000);
	}
	return number;
}

static void test_send_waits_for_room(void)
{
	struct fake_result r;
	uint64_t number;

	begin_narrow(100);
	f->keeps_credit = true;
	number = fill(&r, NULL);
	CU_ASSERT_EQUAL(r.runs, 0);
	fake_consume(f); /* room before the deadline: goes out, once */
	fake_run(f, c, 500);
	CU_ASSERT(r.runs == 1 && r.kind == SPL_OK);
	fake_run(f, c, 3000);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 1);
	end();
}

static void test_send_too_late_is_never_sent(void)
{
	struct fake_result r;
	uint64_t number, next;

	begin_narrow(100);
	f->keeps_credit = true;
	number = fill(&r, NULL);
	fake_run(f, c, 1100);
	CU_ASSERT(r.runs == 1 && r.kind == SPL_E_DEADLINE_EXCEEDED);
	fake_consume(f);
	fake_run(f, c, 3000);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 0);
	next = number + 1000;
	{
		struct spl_client_message m = fake_message(&room, &next);

		memset(&r, 0, sizeof(r));
		CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, NULL), 0);
	}
	fake_run(f, c, 1000);
	CU_ASSERT(r.runs == 1 && r.kind == SPL_OK);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, next), 1);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 0);
	end();
}

static void test_cancelled_send_frees_its_place(void)
{
	struct fake_result r;
	struct spl_client_stats s;
	uint64_t number, call;

	begin_narrow(100);
	f->keeps_credit = true;
	number = fill(&r, &call);
	CU_ASSERT_EQUAL(spl_client_cancel(c, call), 1);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.calls_waiting, 0);
	CU_ASSERT_EQUAL(s.waiting_bytes, 0);
	fake_consume(f);
	fake_run(f, c, 3000);
	CU_ASSERT(r.runs == 1 && r.kind == SPL_CANCELLED);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 0);
	end();
}

static void test_full_waiting_room_refuses_at_once(void)
{
	struct fake_result first, second = {0}, third = {0};
	struct spl_client_message m;
	struct spl_client_stats s;
	uint64_t number = 5000;

	begin_narrow(2);
	f->keeps_credit = true;
	(void)fill(&first, NULL);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &second, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &third, NULL), 0);
	CU_ASSERT_EQUAL(spl_client_poll(c, 0), 1);
	CU_ASSERT(third.runs == 1 && third.kind == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(second.runs, 0);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.calls_waiting, 2);
	fake_consume(f);
	fake_run(f, c, 3000);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 1);
	end();
}

/* A full window is one until half of it is acknowledged. The node takes 256 messages of its first
 * credit and as many when they have ended; each message counts as 256 bytes, however small. */
static void test_window_opens_at_half(void)
{
	enum { WINDOW = 600, CREDIT = 256, MORE = 300 };
	struct spl_client_config conf;
	struct spl_client_stats s;
	struct spl_client_message m;
	struct fake_result r = {0};
	uint64_t number = 1, before;

	fake_config(&conf);
	conf.window_bytes = WINDOW * 256;
	begin(&conf);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, NULL), 0);
	fake_run(f, c, 100);
	CU_ASSERT_EQUAL(r.runs, 1); /* the place is known, the flow is open */
	f->credit[WIRE_APP] = 0;
	f->keeps_credit = true;
	spl_client_stats(c, &s);
	before = s.messages_sent;
	for (unsigned i = 0; i < WINDOW + MORE; i++)
		CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r, NULL), 0);
	fake_run(f, c, 300);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.messages_sent - before, WINDOW); /* 344 of them are on the way */
	CU_ASSERT_EQUAL(s.calls_waiting, MORE);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_SEND, number), 1 + CREDIT);
	fake_consume(f);
	f->keeps_credit = true;
	fake_run(f, c, 300);
	spl_client_stats(c, &s);
	CU_ASSERT_EQUAL(s.messages_sent - before, WINDOW + MORE);
	CU_ASSERT_EQUAL(s.calls_waiting, 0);
	fake_consume(f);
	end();
}

static void test_bytes_that_wait_are_bounded(void)
{
	static uint8_t payload[40000];
	struct spl_client_config conf;
	struct fake_result r[3] = {{0}};
	struct spl_client_message m;

	fake_config(&conf);
	conf.window_bytes = 1;
	conf.waiting_bytes = 100000;
	begin(&conf);
	f->authority_is_mute = true;
	m = (struct spl_client_message){
		.target = &room, .packet = 1, .payload = payload, .payload_bytes = sizeof(payload)};
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(spl_client_send(c, &m, fake_keep, &r[i], NULL), 0);
	(void)spl_client_poll(c, 0);
	CU_ASSERT(r[0].runs == 0 && r[1].runs == 0);
	CU_ASSERT(r[2].runs == 1 && r[2].kind == SPL_E_DEADLINE_EXCEEDED);
	end();
}

static void test_request_waits_for_room_within_the_send_timeout(void)
{
	struct fake_result last, r = {0};
	struct spl_client_message m;
	uint64_t number = 7000, began;

	begin_narrow(100);
	f->keeps_credit = true;
	(void)fill(&last, NULL);
	m = fake_message(&room, &number); /* 30 s of its own */
	began = f->now_ns;
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL((f->now_ns - began) / MS, 1000);
	CU_ASSERT_EQUAL(fake_count(f, SPL_MSG_SPOT_REQUEST, number), 0);
	end();
}

static void test_pending_calls_are_bounded(void)
{
	struct spl_client_config conf;
	struct fake_result r[5] = {{0}};
	struct spl_client_message m;
	uint64_t number = 1;

	fake_config(&conf);
	conf.calls_max = 4;
	conf.waiters_max = 4;
	begin(&conf);
	f->handler_ns = 10 * MS;
	m = fake_message(&room, &number);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[i], NULL), 0);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[4], NULL), -ENOBUFS);
	fake_run(f, c, 100);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[4], NULL), 0);
	fake_run(f, c, 100);
	for (int i = 0; i < 5; i++)
		CU_ASSERT(r[i].runs == 1 && r[i].kind == SPL_OK);
	end();
}

/* Paused handlers stop sends, not replies: the other class has credit of its own. */
static void test_replies_pass_while_sends_wait(void)
{
	struct fake_result last, r = {0};
	struct spl_client_message m;
	uint64_t number = 8000;

	begin_narrow(100);
	f->handler_ns = 300 * MS;
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r, NULL), 0);
	fake_run(f, c, 50);
	f->keeps_credit = true;
	(void)fill(&last, NULL);
	fake_until(c, &r);
	CU_ASSERT_EQUAL(r.kind, SPL_OK);
	end();
}

static void test_loss_neither_loses_nor_doubles_nor_swaps(void)
{
	struct spl_client_target other;
	struct spl_client_message m;
	struct spl_client_stats s;
	static struct fake_result r[2000];
	uint64_t next[2] = {1, 1}, n;
	unsigned ok = 0;

	begin(NULL);
	fake_spot(f, "other");
	other = fake_target("other");
	f->loss_percent = 10;
	memset(r, 0, sizeof(r));
	for (n = 1; n <= 2000; n++) {
		m = fake_message(&room, &n);
		CU_ASSERT_EQUAL(spl_client_request(c, &m, fake_keep, &r[n - 1], NULL), 0);
		m = fake_message(&other, &n);
		CU_ASSERT_EQUAL(spl_client_send(c, &m, NULL, NULL, NULL), 0);
		if (n % 10 == 0)
			fake_run(f, c, 5);
	}
	fake_run(f, c, 20000);
	for (n = 1; n <= 2000; n++)
		ok += r[n - 1].runs == 1 && r[n - 1].kind == SPL_OK && r[n - 1].number == n;
	CU_ASSERT_EQUAL(ok, 2000);
	for (uint32_t i = 0; i < f->seen_n; i++) {
		const struct fake_seen *e = &f->seen[i];
		unsigned which = e->kind == SPL_MSG_SPOT_SEND;

		if (e->kind != SPL_MSG_SPOT_SEND && e->kind != SPL_MSG_SPOT_REQUEST)
			continue;
		if (e->number != next[which])
			CU_ASSERT_EQUAL_FATAL(e->number, next[which]);
		next[which]++;
	}
	CU_ASSERT(next[0] == 2001 && next[1] == 2001);
	spl_client_stats(c, &s);
	CU_ASSERT(s.packets_retransmitted > 0);
	end();
}

static void test_largest_message_both_ways(void)
{
	struct spl_client_message m;
	struct spl_client_answer a;
	uint8_t *payload = malloc(SPL_MESSAGE_BYTES_MAX);

	begin(NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(payload);
	for (uint32_t i = 0; i < SPL_MESSAGE_BYTES_MAX; i++)
		payload[i] = (uint8_t)(i * 7 + i / 251);
	f->loss_percent = 1;
	m = (struct spl_client_message){.target = &room,
					.packet = 1,
					.payload = payload,
					.payload_bytes = SPL_MESSAGE_BYTES_MAX};
	CU_ASSERT_EQUAL_FATAL(spl_client_request_wait(c, &m, &a), 0);
	CU_ASSERT_EQUAL(a.kind, SPL_OK);
	CU_ASSERT_EQUAL_FATAL(a.payload_bytes, SPL_MESSAGE_BYTES_MAX);
	CU_ASSERT_EQUAL(memcmp(a.payload, payload, SPL_MESSAGE_BYTES_MAX), 0);
	spl_client_answer_free(&a);
	m.payload_bytes++;
	CU_ASSERT_EQUAL(spl_client_request_wait(c, &m, &a), -EMSGSIZE);
	free(payload);
	end();
}

static void test_strangers_are_dropped(void)
{
	struct spl_client_stats before, after;
	struct spl_client_answer a;
	struct spl_client_message m;
	struct t_rand r = {t_seed()};
	uint64_t number = 1;

	begin(NULL);
	spl_client_stats(c, &before);
	for (int i = 0; i < 2000; i++) {
		struct fake_packet *p = &f->to_client.p[f->to_client.head++ % FAKE_PACKETS];

		p->due_ns = f->now_ns;
		p->port = 4700;
		p->len = t_rand_below(&r, sizeof(p->b));
		for (uint32_t j = 0; j < p->len; j++)
			p->b[j] = (uint8_t)t_rand_u64(&r);
		if (p->len && i % 2)
			p->b[0] = 0x18; /* a FLOW packet of nobody */
	}
	fake_run(f, c, 100);
	spl_client_stats(c, &after);
	CU_ASSERT_EQUAL(after.packets_dropped - before.packets_dropped, 2000);
	m = fake_message(&room, &number);
	CU_ASSERT_EQUAL(spl_client_request_wait(c, &m, &a), 0);
	CU_ASSERT_EQUAL(a.kind, SPL_OK);
	spl_client_answer_free(&a);
	end();
}

static const struct t_case cases[] = {
	T(test_refusal_has_a_reason),
	T(test_without_an_association_calls_fail_at_once),
	T(test_lost_association_ends_every_call, "S-DIR-9", "S-COMPL-1"),
	T(test_new_lifecycle_forgets_routes, "S-ADDR-4"),
	T(test_send_waits_for_room, "S-LIM-5", "S-LIM-6"),
	T(test_send_too_late_is_never_sent, "S-LIM-6", "S-ERR-6"),
	T(test_cancelled_send_frees_its_place, "S-COMPL-9"),
	T(test_full_waiting_room_refuses_at_once, "S-LIM-5", "S-LIM-9"),
	T(test_bytes_that_wait_are_bounded, "S-LIM-9"),
	T(test_window_opens_at_half, "S-LIM-13"),
	T(test_request_waits_for_room_within_the_send_timeout, "S-DIR-8"),
	T(test_pending_calls_are_bounded),
	T(test_replies_pass_while_sends_wait, "S-LIM-14"),
	T(test_loss_neither_loses_nor_doubles_nor_swaps),
	T(test_largest_message_both_ways, "S-MSG-6"),
	T(test_strangers_are_dropped, "S-WIRE-1"),
};

int main(int argc, char **argv)
{
	static const struct t_suite suites[] = {T_SUITE("client_link", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
