/* SPDX-License-Identifier: BSD-3-Clause */
/* What a bad client can do to the management server: each time one error or the end of its
 * connection, and everybody else is served. */
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"
#include "tests/unit/server/t_mgmt.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SAY  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.echo\",\"params\":{\"text\":\"a\"}}"
#define SAID "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"a\"}}"

static struct t_peer other; /* the well-behaved one */

static void begin(void)
{
	t_mgmt_start();
	other = t_peer_open();
}

static void end(void)
{
	t_peer_ask(&other, SAY, SAID);
	t_peer_close(&other);
	t_mgmt_stop();
	t_mgmt_defaults();
}

static uint64_t cuts(void)
{
	struct mgmt_counts c;

	mgmt_server_counts(t.server, &c);
	return c.cut;
}

/* The last line before the end contains `part`. */
static void ends_with(struct t_peer *p, const char *part)
{
	char *line;

	CU_ASSERT(t_peer_ended(p));
	line = t_peer_line(p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, part));
	free(line);
	CU_ASSERT_PTR_NULL(t_peer_line(p));
}

static void half_sent_request_is_ended(void)
{
	struct t_peer p;

	t.o.input_timeout_ms = 30;
	begin();
	p = t_peer_open();
	CU_ASSERT(t_peer_send(&p, "{\"jsonrpc\"", 10));
	ends_with(&p, "took too long to arrive");
	CU_ASSERT_EQUAL(cuts(), 1);
	t_peer_close(&p);
	end();
}

static void idle_client_is_left_alone(void)
{
	struct t_peer p;

	t.o.input_timeout_ms = 30;
	begin();
	p = t_peer_open();
	t_peer_ask(&p, SAY, SAID);
	/* A second client runs into its limit meanwhile; the first one must not. */
	for (int i = 0; i < 3; i++) {
		struct t_peer bad = t_peer_open();

		CU_ASSERT(t_peer_send(&bad, "{", 1));
		CU_ASSERT(t_peer_ended(&bad));
		t_peer_close(&bad);
	}
	t_peer_ask(&p, SAY, SAID);
	t_peer_close(&p);
	end();
}

static void endless_line_is_ended(void)
{
	struct t_peer p;
	char chunk[65536];
	size_t sent = 0;

	memset(chunk, 'a', sizeof(chunk));
	begin();
	p = t_peer_open();
	while (sent < 100 * 1048576 && t_peer_send(&p, chunk, sizeof(chunk)))
		sent += sizeof(chunk);
	CU_ASSERT(sent >= t.o.line_max);
	CU_ASSERT(sent < 2 * t.o.line_max);
	ends_with(&p, "a request line is too long");
	t_peer_close(&p);
	end();
}

static void line_of_exactly_the_limit_passes(void)
{
	struct t_peer p;
	char *line, *got;

	t.o.line_max = 4096;
	begin();
	line = malloc(4098);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	memset(line, ' ', 4097);
	line[4097] = '\0';
	memcpy(line, SAY, strlen(SAY));
	p = t_peer_open();
	CU_ASSERT(t_peer_send(&p, line, 4096));
	CU_ASSERT(t_peer_send(&p, "\n", 1));
	got = t_peer_line(&p);
	CU_ASSERT_STRING_EQUAL(got, SAID);
	free(got);
	CU_ASSERT(t_peer_say(&p, line));
	ends_with(&p, "too long");
	t_peer_close(&p);
	free(line);
	end();
}

static void bad_lines_get_one_error_each(void)
{
	static const struct {
		const char *text;
		size_t n;
		const char *part;
	} bad[] = {
#define BAD(text, part) {text, sizeof(text) - 1, part}
		BAD("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"test.echo\"}",
		    "duplicate"),
		BAD(SAY SAY, "end of file expected"),
		BAD(SAY "\0", "NUL byte"),
		BAD("{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\x28\",\"method\":\"test.echo\"}",
		    "unable to decode byte"),
		BAD("{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"test.echo\"}",
		    "too big integer"),
		BAD("null", "'[' or '{' expected"),
		BAD("GET / HTTP/1.1", "'[' or '{' expected"),
		BAD("\x16\x03\x01\x02", "'[' or '{' expected"),
	};
	struct t_peer p;

	begin();
	p = t_peer_open();
	for (size_t i = 0; i < T_COUNT(bad); i++) {
		char *got;

		CU_ASSERT(t_peer_send(&p, bad[i].text, bad[i].n));
		CU_ASSERT(t_peer_send(&p, "\n", 1));
		got = t_peer_line(&p);
		CU_ASSERT_PTR_NOT_NULL_FATAL(got);
		if (!strstr(got, bad[i].part) || !strstr(got, "-32700"))
			printf("  %s\n  got %s\n", bad[i].text, got);
		CU_ASSERT_PTR_NOT_NULL(strstr(got, bad[i].part));
		CU_ASSERT_PTR_NOT_NULL(strstr(got, "-32700"));
		free(got);
		t_peer_ask(&p, SAY, SAID);
	}
	t_peer_close(&p);
	end();
}

static void depth_bomb_gets_an_error(void)
{
	struct t_peer p;
	char deep[2501];

	begin();
	p = t_peer_open();
	memset(deep, '[', 2500);
	deep[2500] = '\0';
	t_peer_ask_part(&p, deep, "nested 2500 levels deep (max 32)");
	memset(deep, '{', 2500);
	t_peer_ask_part(&p, deep, "nested 2500 levels deep (max 32)");
	t_peer_ask(&p, SAY, SAID);
	t_peer_close(&p);
	end();
}

/* A request cut at each byte, then the end or a newline. */
static void request_cut_at_each_byte(void)
{
	begin();
	for (size_t n = 0; n < strlen(SAY); n++) {
		struct t_peer p = t_peer_open();

		CU_ASSERT(t_peer_send(&p, SAY, n));
		if (n > 0) {
			char *got;

			CU_ASSERT(t_peer_send(&p, "\n", 1));
			got = t_peer_line(&p);
			CU_ASSERT_PTR_NOT_NULL_FATAL(got);
			CU_ASSERT_PTR_NOT_NULL(strstr(got, "\"error\""));
			free(got);
			CU_ASSERT(t_peer_send(&p, SAY, n));
		}
		t_peer_close(&p);
	}
	CU_ASSERT_EQUAL(t.handled, 0);
	end();
}

/* Ten thousand lists and no read: cut at the output limit; the other one is served meanwhile. */
static void client_that_never_reads_is_cut(void)
{
	static const char ask[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.big\",\"params\":"
		"{\"n\":4000}}\n";
	struct t_peer p;
	int sent = 0;

	begin();
	p = t_peer_open();
	while (sent < 10000 && cuts() == 0 && t_peer_send(&p, ask, sizeof(ask) - 1)) {
		sent++;
		if (sent % 500 == 0)
			t_peer_ask(&other, SAY, SAID);
	}
	for (int i = 0; i < 1000 && cuts() == 0; i++)
		t_peer_ask(&other, SAY, SAID);
	CU_ASSERT_EQUAL(cuts(), 1);
	CU_ASSERT(t.handled < 10000);
	CU_ASSERT((uint64_t)t.handled * 4000 >= t.o.output_max / 2);
	t_peer_close(&p);
	end();
}

/* Few answers, not taken: ended by time, not by size. */
static void client_that_stops_reading_is_cut(void)
{
	struct t_peer p;

	t.o.output_timeout_ms = 30;
	begin();
	p = t_peer_open();
	CU_ASSERT(t_peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.big\",\"params\":"
				 "{\"n\":3000000}}"));
	for (int i = 0; i < 100000 && cuts() == 0; i++)
		t_peer_ask(&other, SAY, SAID);
	CU_ASSERT_EQUAL(cuts(), 1);
	t_peer_close(&p);
	end();
}

static void close_in_the_middle_of_an_answer(void)
{
	begin();
	for (int i = 0; i < 20; i++) {
		struct t_peer p = t_peer_open();

		CU_ASSERT(t_peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.big\","
					 "\"params\":{\"n\":3000000}}"));
		T_UNTIL(t.handled > (unsigned)i, t_peer_ask_part(&other, "{}", "error"));
		t_peer_close(&p);
	}
	end();
}

static void too_many_clients_are_told(void)
{
	struct t_peer p[4];

	t.o.clients_max = 4;
	begin();
	for (int i = 0; i < 3; i++)
		p[i] = t_peer_open();
	p[3] = t_peer_connect();
	ends_with(&p[3], "too many connections (max 4)");
	t_peer_close(&p[3]);
	t_peer_close(&p[0]);
	t_peer_ask(&other, SAY, SAID);
	for (int i = 0; i < 1000; i++) { /* the place of the closed one becomes free */
		struct mgmt_counts c;

		mgmt_server_counts(t.server, &c);
		if (c.clients < 4)
			break;
		t_peer_ask(&other, SAY, SAID);
	}
	p[0] = t_peer_open();
	t_peer_ask(&p[0], SAY, SAID);
	for (int i = 0; i < 3; i++)
		t_peer_close(&p[i]);
	end();
}

static bool has_failed(void *arg)
{
	struct mgmt_counts c;

	(void)arg;
	mgmt_server_counts(t.server, &c);
	return c.accept_fail > 0;
}

static bool all_accepted(void *arg)
{
	struct mgmt_counts c;

	mgmt_server_counts(t.server, &c);
	return c.accepted >= *(uint64_t *)arg;
}

/* Out of descriptors: no spinning, served again when there are some. */
static void running_out_of_descriptors(void)
{
	struct rlimit before, few;
	struct t_peer p[20];
	struct mgmt_counts c;
	uint64_t want = 21;
	int spare;

	begin();
	for (int i = 0; i < 20; i++) {
		p[i] = t_peer_connect();
		CU_ASSERT(p[i].fd >= 0);
	}
	spare = dup(0);
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)spare + 5;
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	close(spare);
	CU_ASSERT(t_mgmt_until(has_failed, NULL));
	/* It waits for a timer or an event, it does not poll the socket again and again. */
	for (int i = 0; i < 3; i++)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	CU_ASSERT(uv_backend_timeout(&t.loop) > 0);
	t_peer_ask(&other, SAY, SAID);
	mgmt_server_counts(t.server, &c);
	CU_ASSERT(c.accept_fail < 20);
	CU_ASSERT(c.accepted < want);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT(t_mgmt_until(all_accepted, &want));
	for (int i = 0; i < 20; i++)
		t_peer_close(&p[i]);
	end();
}

static const struct t_case cases[] = {
	T(half_sent_request_is_ended),
	T(idle_client_is_left_alone),
	T(endless_line_is_ended),
	T(line_of_exactly_the_limit_passes),
	T(bad_lines_get_one_error_each),
	T(depth_bomb_gets_an_error),
	T(request_cut_at_each_byte),
	T(client_that_never_reads_is_cut),
	T(client_that_stops_reading_is_cut),
	T(close_in_the_middle_of_an_answer),
	T(too_many_clients_are_told),
	T(running_out_of_descriptors),
};

static const struct t_suite suites[] = {T_SUITE("mgmt_limits", t_mgmt_init, t_mgmt_fini, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
