/* SPDX-License-Identifier: BSD-3-Clause */
/* The management server over real sockets: greeting, answers, order, waiting calls, closing. */
#include "tests/lib/t_main.h"
#include "tests/unit/server/t_mgmt.h"
#include "common/json_line.h"

#include <errno.h>
#include <spotlane/errors.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SAY(id, text) \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"test.echo\",\"params\":{\"text\":\"" text \
	"\"}}"
#define SAID(id, text) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{\"text\":\"" text "\"}}"
#define LATER(id)      "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"test.later\"}"

static bool handled(void *arg)
{
	return t.handled >= *(unsigned *)arg;
}

static void until_handled(unsigned n)
{
	CU_ASSERT_FATAL(t_mgmt_until(handled, &n));
}

static bool clients_are(void *arg)
{
	struct mgmt_counts c;

	mgmt_server_counts(t.server, &c);
	return c.clients == *(unsigned *)arg;
}

/* All that connected were accepted and are gone again. */
static bool all_gone(void *arg)
{
	struct mgmt_counts c;

	mgmt_server_counts(t.server, &c);
	return c.accepted == *(uint64_t *)arg && c.clients == 0;
}

static void until_clients(unsigned n)
{
	CU_ASSERT_FATAL(t_mgmt_until(clients_are, &n));
}

static void greeting_says_who_it_is(void)
{
	struct t_peer p;
	char *line, why[JSON_LINE_WHY_MAX];
	json_t *v;
	const char *name = NULL, *start = NULL, *version = NULL, *access = NULL, *method = NULL;
	int protocol = 0, pid = 0;

	t_mgmt_start();
	p = t_peer_connect();
	line = t_peer_line(&p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	v = json_line_parse(line, strlen(line), 3, why);
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	CU_ASSERT_EQUAL(json_unpack(v, "{s:s, s:{s:s, s:i, s:s, s:i, s:s, s:s}}", "method", &method,
				    "params", "name", &name, "protocol", &protocol, "version",
				    &version, "pid", &pid, "start_time", &start, "access", &access),
			0);
	CU_ASSERT_STRING_EQUAL(method, "hello");
	CU_ASSERT_STRING_EQUAL(name, "spotlane-control");
	CU_ASSERT_EQUAL(protocol, SPL_MGMT_PROTOCOL);
	CU_ASSERT_EQUAL(pid, (int)getpid());
	CU_ASSERT_EQUAL(strlen(start), 20);
	CU_ASSERT_STRING_EQUAL(access, "full");
	json_decref(v);
	free(line);
	t_peer_close(&p);
	t_mgmt_stop();
}

static void answers_carry_the_id(void)
{
	struct t_peer p;

	t_mgmt_start();
	p = t_peer_open();
	t_peer_ask(&p, SAY("7", "a"), SAID("7", "a"));
	t_peer_ask(&p, SAY("-9223372036854775808", "a"), SAID("-9223372036854775808", "a"));
	t_peer_ask(&p, SAY("\"x\\\"\\u00e9\"", "b"), SAID("\"x\\\"\xc3\xa9\"", "b"));
	t_peer_ask(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.echo\"}\r",
		   "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	t_peer_close(&p);
	t_mgmt_stop();
}

static void errors_have_code_and_kind(void)
{
	struct t_peer p;

	t_mgmt_start();
	p = t_peer_open();
	t_peer_ask(
		&p, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"test.fail\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32002,\"message\":\"create "
		"refused: other type\",\"data\":{\"kind\":\"TypeMismatch\",\"object\":\"spot a\","
		"\"hint\":\"use its own type\"}}}");
	t_peer_ask_part(&p, "{", "\"id\":null,\"error\":{\"code\":-32700,");
	t_peer_ask_part(&p, "{}", "\"id\":null,\"error\":{\"code\":-32600,");
	t_peer_ask_part(&p, "[]", "\"code\":-32600,");
	t_peer_ask_part(
		&p, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"nope\"}",
		"\"id\":4,\"error\":{\"code\":-32601,\"message\":\"no method \\\"nope\\\"\"");
	t_peer_ask_part(&p, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"spot.find\"}",
			"\"kind\":\"NotConfigured\"");
	t_peer_ask_part(
		&p, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"test.echo\",\"params\":{\"n\":-1}}",
		"\"code\":-32602,\"message\":\"n: -1 is out of range");
	t_peer_ask_part(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"test.echo\",\"x\":1}",
			"\"id\":\"a\",\"error\":{\"code\":-32600,");
	t_peer_ask(&p, SAY("8", "still here"), SAID("8", "still here"));
	t_peer_close(&p);
	t_mgmt_stop();
}

static void every_kind_has_its_code(void)
{
	struct t_peer p;
	char part[128], line[96];

	t_mgmt_start();
	p = t_peer_open();
	for (int kind = 0; kind < SPL_ERROR_COUNT; kind++) {
		char *got;

		snprintf(line, sizeof(line), LATER("%d"), kind);
		CU_ASSERT(t_peer_say(&p, line));
		until_handled((unsigned)kind + 1);
		mgmt_fail(t.held[kind], kind, NULL, "no", NULL);
		got = t_peer_line(&p);
		snprintf(part, sizeof(part),
			 "{\"code\":%d,\"message\":\"no\",\"data\":{\"kind\":\"%s\"}}",
			 -32000 - kind, spl_error_name(kind));
		CU_ASSERT_PTR_NOT_NULL(strstr(got, part));
		free(got);
	}
	t_peer_close(&p);
	t_mgmt_stop();
}

/* A method name cut inside a character still makes a good answer. */
static void cut_texts_stay_utf8(void)
{
	struct t_peer p;
	char line[512] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"";

	t_mgmt_start();
	p = t_peer_open();
	for (int i = 0; i < 40; i++)
		strcat(line, i ? "\xc3\xa9" : "x");
	strcat(line, "\"}");
	t_peer_ask_part(&p, line, "no method");
	t_peer_close(&p);
	t_mgmt_stop();
}

static void pipelined_answers_keep_the_order(void)
{
	struct t_peer p;
	char *line;

	t_mgmt_start();
	p = t_peer_open();
	CU_ASSERT(t_peer_say(&p, LATER("1") "\n" SAY("2", "b") "\n" LATER("3") "\n" SAY("4", "d")));
	until_handled(1);
	CU_ASSERT_EQUAL(t.handled, 1);
	/* While the first one waits, the loop sleeps. */
	for (int i = 0; i < 5; i++)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	CU_ASSERT_EQUAL(uv_backend_timeout(&t.loop), -1);
	mgmt_reply(t.held[0], json_object());
	until_handled(3);
	mgmt_fail(t.held[1], SPL_E_UNAVAILABLE, NULL, "gone", NULL);
	line = t_peer_line(&p);
	CU_ASSERT_STRING_EQUAL(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	free(line);
	line = t_peer_line(&p);
	CU_ASSERT_STRING_EQUAL(line, SAID("2", "b"));
	free(line);
	line = t_peer_line(&p);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "\"id\":3,\"error\""));
	free(line);
	line = t_peer_line(&p);
	CU_ASSERT_STRING_EQUAL(line, SAID("4", "d"));
	free(line);
	t_peer_close(&p);
	t_mgmt_stop();
}

/* A command that takes long does not hold up other connections. */
static void others_are_served_while_one_waits(void)
{
	struct t_peer a, b;

	t_mgmt_start();
	a = t_peer_open();
	b = t_peer_open();
	CU_ASSERT(t_peer_say(&a, LATER("1")));
	until_handled(1);
	for (int i = 0; i < 100; i++)
		t_peer_ask(&b, SAY("2", "x"), SAID("2", "x"));
	mgmt_reply(t.held[0], json_object());
	free(t_peer_line(&a));
	t_peer_close(&a);
	t_peer_close(&b);
	t_mgmt_stop();
}

static void waiting_call_survives_its_client(void)
{
	struct t_peer p;

	t_mgmt_start();
	p = t_peer_open();
	CU_ASSERT(t_peer_say(&p, LATER("1")));
	until_handled(1);
	CU_ASSERT_FALSE(mgmt_call_is_gone(t.held[0]));
	t_peer_close(&p);
	until_clients(0);
	CU_ASSERT(mgmt_call_is_gone(t.held[0]));
	mgmt_reply(t.held[0], json_pack("{s:s}", "late", "answer"));
	p = t_peer_open();
	CU_ASSERT(t_peer_say(&p, LATER("1")));
	until_handled(2);
	t_peer_close(&p);
	until_clients(0);
	mgmt_fail(t.held[1], SPL_E_UNAVAILABLE, NULL, "late", NULL);
	t_mgmt_stop();
}

/* `printf … | nc -N`: the client stops sending and still gets every answer, then the end. */
static void half_closed_client_gets_its_answers(void)
{
	struct t_peer p;
	char *line;

	t_mgmt_start();
	p = t_peer_open();
	CU_ASSERT(t_peer_say(&p, SAY("1", "a") "\n" LATER("2") "\n" SAY("3", "c")));
	shutdown(p.fd, SHUT_WR);
	until_handled(2);
	mgmt_reply(t.held[0], json_object());
	for (int i = 1; i <= 3; i++) {
		char part[16];

		line = t_peer_line(&p);
		CU_ASSERT_PTR_NOT_NULL_FATAL(line);
		snprintf(part, sizeof(part), "\"id\":%d", i);
		CU_ASSERT_PTR_NOT_NULL(strstr(line, part));
		free(line);
	}
	CU_ASSERT(t_peer_ended(&p));
	t_peer_close(&p);
	t_mgmt_stop();
}

static void large_requests_and_answers_pass(void)
{
	size_t n = 1048576;
	char *text = malloc(n + 1), *line = NULL, *got;
	struct t_peer p;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, 'y', n);
	text[n] = '\0';
	CU_ASSERT_FATAL(asprintf(&line, SAY("1", "%s"), text) > 0);
	t_mgmt_start();
	p = t_peer_open();
	CU_ASSERT(t_peer_say(&p, line));
	got = t_peer_line(&p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	CU_ASSERT_EQUAL(strlen(got), strlen(SAID("1", "")) + n);
	free(got);
	CU_ASSERT(t_peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"test.big\",\"params\":"
				 "{\"n\":6000000}}"));
	got = t_peer_line(&p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	CU_ASSERT(strlen(got) > 6000000);
	free(got);
	free(line);
	free(text);
	t_peer_close(&p);
	t_mgmt_stop();
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Five idle clients, one whose call waits and one that takes no answer: closed within 2 s. */
static void close_with_clients_is_quick(void)
{
	struct t_peer idle[5], waiting, stuck;
	double begin;
	char *line;

	t_mgmt_start();
	for (int i = 0; i < 5; i++)
		idle[i] = t_peer_open();
	waiting = t_peer_open();
	stuck = t_peer_open();
	CU_ASSERT(t_peer_say(&waiting, LATER("9")));
	CU_ASSERT(t_peer_say(&stuck, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.big\","
				     "\"params\":{\"n\":4000000}}"));
	until_handled(2);
	begin = now();
	t_mgmt_stop();
	CU_ASSERT(now() - begin < 2.0);
	line = t_peer_line(&waiting);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "\"id\":9,\"error\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "ShuttingDown"));
	free(line);
	CU_ASSERT(mgmt_call_is_gone(t.held[0]));
	mgmt_reply(t.held[0], json_object());
	for (int i = 0; i < 5; i++)
		t_peer_close(&idle[i]);
	t_peer_close(&waiting);
	t_peer_close(&stuck);
}

static void many_connections_leave_nothing(void)
{
	uint64_t connected = 0;
	unsigned last;

	t_mgmt_start();
	for (int i = 0; i < 200; i++) {
		struct t_peer p = t_peer_connect();

		CU_ASSERT(t_peer_say(&p, i % 2 ? LATER("1") : SAY("1", "a")));
		t_peer_close(&p);
		connected++;
		if (i % 20 == 19)
			CU_ASSERT_FATAL(t_mgmt_until(all_gone, &connected));
	}
	last = t.n_held;
	for (unsigned i = 0; i < last; i++)
		mgmt_reply(t.held[i], json_object());
	t_mgmt_stop();
}

static const struct t_case cases[] = {
	T(greeting_says_who_it_is),
	T(answers_carry_the_id),
	T(errors_have_code_and_kind, "S-ERR-1"),
	T(every_kind_has_its_code, "S-ERR-1", "S-ERR-4"),
	T(cut_texts_stay_utf8),
	T(pipelined_answers_keep_the_order),
	T(others_are_served_while_one_waits),
	T(waiting_call_survives_its_client),
	T(half_closed_client_gets_its_answers),
	T(large_requests_and_answers_pass),
	T(close_with_clients_is_quick),
	T(many_connections_leave_nothing),
};

static const struct t_suite suites[] = {T_SUITE("mgmt_server", t_mgmt_init, t_mgmt_fini, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
