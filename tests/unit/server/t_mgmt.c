/* SPDX-License-Identifier: BSD-3-Clause */
/* The management server under test: see t_mgmt.h. */
#include "tests/unit/server/t_mgmt.h"
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spotlane/errors.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S 20

struct t_mgmt t;

static const struct mgmt_param echo_params[] = {
	{"text", MGMT_TEXT, MGMT_OPTIONAL, 0, 4194304, NULL, "anything"},
	{"n", MGMT_INT, MGMT_OPTIONAL, 0, 1000000000, NULL, "a number"},
};

static void echo(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct t_mgmt *m = ctx;

	m->handled++;
	mgmt_reply(call, json_deep_copy(params));
}

static void later(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct t_mgmt *m = ctx;

	(void)params;
	m->handled++;
	CU_ASSERT_FATAL(m->n_held < 256);
	m->held[m->n_held++] = call;
}

static void big(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct t_mgmt *m = ctx;
	size_t n = (size_t)json_integer_value(json_object_get(params, "n"));
	char *text = malloc(n + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	m->handled++;
	memset(text, 'x', n);
	mgmt_reply(call, json_pack("{s:s#}", "big", text, n));
	free(text);
}

static void failing(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct t_mgmt *m = ctx;

	(void)params;
	m->handled++;
	mgmt_fail(call, SPL_E_TYPE_MISMATCH, "spot a", "create refused: other type",
		  "use its own type");
}

void t_mgmt_defaults(void)
{
	t.o = (struct mgmt_options){.path = t.path,
				    .mode = 0600,
				    .clients_max = 64,
				    .line_max = 2097152,
				    .output_max = 8388608,
				    .input_timeout_ms = 60000,
				    .output_timeout_ms = 60000};
}

int t_mgmt_init(void)
{
	strcpy(t.dir, "/tmp/spotlane-mgmt-XXXXXX");
	if (!mkdtemp(t.dir))
		return -1;
	snprintf(t.path, sizeof(t.path), "%s/control.sock", t.dir);
	mgmt_methods_init(t.methods);
	t.methods[SPL_MGMT_METHOD_COUNT + T_ECHO] =
		(struct mgmt_method){"test.echo", echo_params, 2, true, echo, NULL, 0, ""};
	t.methods[SPL_MGMT_METHOD_COUNT + T_LATER] =
		(struct mgmt_method){"test.later", NULL, 0, false, later, NULL, 0, ""};
	t.methods[SPL_MGMT_METHOD_COUNT + T_BIG] =
		(struct mgmt_method){"test.big", echo_params, 2, true, big, NULL, 0, ""};
	t.methods[SPL_MGMT_METHOD_COUNT + T_FAIL] =
		(struct mgmt_method){"test.fail", NULL, 0, false, failing, NULL, 0, ""};
	t_mgmt_defaults();
	log_open(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_DEBUG);
	return 0;
}

int t_mgmt_fini(void)
{
	return rmdir(t.dir);
}

void t_mgmt_start(void)
{
	char err[512] = "";

	t.n_held = t.handled = 0;
	t.is_closed = false;
	CU_ASSERT_EQUAL_FATAL(uv_loop_init(&t.loop), 0);
	CU_ASSERT_EQUAL_FATAL(mgmt_server_open(&t.server, &t.loop, &t.o, t.methods,
					       SPL_MGMT_METHOD_COUNT + T_METHODS, &t, err,
					       sizeof(err)),
			      0);
	CU_ASSERT_STRING_EQUAL(err, "");
}

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static bool is_true(void *arg)
{
	return *(bool *)arg;
}

void t_mgmt_stop(void)
{
	mgmt_server_close(t.server, on_closed, &t.is_closed);
	CU_ASSERT(t_mgmt_until(is_true, &t.is_closed));
	uv_run(&t.loop, UV_RUN_NOWAIT);
	CU_ASSERT_EQUAL(uv_loop_close(&t.loop), 0);
	CU_ASSERT_EQUAL(access(t.path, F_OK), -1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* One pass of the loop, then a short sleep unless there is something to do. */
static void pass(int fd, short events)
{
	struct pollfd p[2] = {{uv_backend_fd(&t.loop), POLLIN, 0}, {fd, events, 0}};
	int ms;

	uv_run(&t.loop, UV_RUN_NOWAIT);
	ms = uv_backend_timeout(&t.loop);
	poll(p, fd >= 0 ? 2 : 1, ms < 0 || ms > 20 ? 20 : ms);
}

bool t_mgmt_until(bool (*cond)(void *arg), void *arg)
{
	double end = now() + WAIT_S;

	while (!cond(arg)) {
		if (now() > end)
			return false;
		pass(-1, 0);
	}
	return true;
}

struct t_peer t_peer_connect(void)
{
	struct t_peer p = {.m = &t, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(addr.sun_path, t.path);
	if (p.fd >= 0 && connect(p.fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		close(p.fd);
		p.fd = -1;
	}
	if (p.fd >= 0)
		fcntl(p.fd, F_SETFL, O_NONBLOCK);
	return p;
}

struct t_peer t_peer_open(void)
{
	struct t_peer p = t_peer_connect();
	char *line;

	CU_ASSERT_FATAL(p.fd >= 0);
	line = t_peer_line(&p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "\"method\":\"hello\""));
	free(line);
	return p;
}

void t_peer_close(struct t_peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->buf);
	p->fd = -1;
	p->buf = NULL;
}

bool t_peer_send(struct t_peer *p, const char *bytes, size_t n)
{
	double end = now() + WAIT_S;

	while (n > 0) {
		ssize_t done = send(p->fd, bytes, n, MSG_NOSIGNAL);

		if (done < 0 && errno != EAGAIN)
			return false;
		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
			continue;
		}
		CU_ASSERT_FATAL(now() < end);
		pass(p->fd, POLLOUT);
	}
	return true;
}

bool t_peer_say(struct t_peer *p, const char *line)
{
	return t_peer_send(p, line, strlen(line)) && t_peer_send(p, "\n", 1);
}

static void receive(struct t_peer *p)
{
	char chunk[65536];
	ssize_t n = recv(p->fd, chunk, sizeof(chunk), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		p->eof = true;
		return;
	}
	if (p->len + (size_t)n + 1 > p->cap) {
		p->cap = (p->len + (size_t)n + 1) * 2;
		p->buf = realloc(p->buf, p->cap);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p->buf);
	}
	memcpy(p->buf + p->len, chunk, (size_t)n);
	p->len += (size_t)n;
	p->buf[p->len] = '\0';
}

char *t_peer_line(struct t_peer *p)
{
	double end = now() + WAIT_S;

	for (;;) {
		char *nl = p->len ? memchr(p->buf, '\n', p->len) : NULL;

		if (nl) {
			size_t n = (size_t)(nl - p->buf);
			char *line = strndup(p->buf, n);

			memmove(p->buf, nl + 1, p->len - n);
			p->len -= n + 1;
			return line;
		}
		if (p->eof)
			return NULL;
		CU_ASSERT_FATAL(now() < end);
		pass(p->fd, POLLIN);
		receive(p);
	}
}

bool t_peer_ended(struct t_peer *p)
{
	double end = now() + WAIT_S;

	while (!p->eof) {
		if (now() > end)
			return false;
		pass(p->fd, POLLIN);
		receive(p);
	}
	return true;
}

void t_peer_ask(struct t_peer *p, const char *line, const char *answer)
{
	char *got;

	CU_ASSERT(t_peer_say(p, line));
	got = t_peer_line(p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	if (strcmp(got, answer) != 0)
		printf("  %s\n  expected %s\n  got      %s\n", line, answer, got);
	CU_ASSERT_STRING_EQUAL(got, answer);
	free(got);
}

void t_peer_ask_part(struct t_peer *p, const char *line, const char *part)
{
	char *got;

	CU_ASSERT(t_peer_say(p, line));
	got = t_peer_line(p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(got);
	if (!strstr(got, part))
		printf("  %.200s\n  expected %s\n  got      %s\n", line, part, got);
	CU_ASSERT_PTR_NOT_NULL(strstr(got, part));
	free(got);
}
