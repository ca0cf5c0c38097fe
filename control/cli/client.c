/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking client: see client.h. Owns the descriptor and the input buffer. */
#include "control/cli/client.h"
#include "common/json_line.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <spotlane/errors.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

uint64_t cli_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static enum spl_exit fail(const struct cli_client *c, enum spl_exit status, const char *text,
			  char err[CLI_ERR_MAX])
{
	snprintf(err, CLI_ERR_MAX, "socket %s: %.300s", c->path, text);
	return status;
}

/* Waits for `events`; false when the time is over. */
static bool wait_for(const struct cli_client *c, short events)
{
	struct pollfd p = {.fd = c->fd, .events = events};

	for (;;) {
		uint64_t now = cli_now_ns();
		uint64_t left_ms =
			now < c->deadline_ns ? (c->deadline_ns - now + 999999) / 1000000 : 0;
		int n;

		if (left_ms == 0)
			return false;
		n = poll(&p, 1, left_ms > 1000000 ? 1000000 : (int)left_ms);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

/* Which path is closed to us, and which group would open it. */
static void explain_denied(const char *path, char *out, size_t size)
{
	char closed[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct stat st;
	const struct group *g;

	snprintf(closed, sizeof(closed), "%s", path);
	/* The deepest part that can be looked at is the file, or the directory that keeps us out.
	 */
	while (stat(closed, &st) != 0) {
		char *slash = strrchr(closed, '/');

		if (!slash || slash == closed) {
			snprintf(out, size, "permission denied on %s", path);
			return;
		}
		*slash = '\0';
	}
	g = getgrgid(st.st_gid);
	if (g)
		snprintf(out, size, "permission denied on %s, need group %s", closed, g->gr_name);
	else
		snprintf(out, size, "permission denied on %s, need group %u", closed,
			 (unsigned)st.st_gid);
}

static enum spl_exit connect_to(struct cli_client *c, char err[CLI_ERR_MAX])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char text[300];
	int code;

	if (strlen(c->path) >= sizeof(addr.sun_path))
		return fail(c, SPL_EXIT_USAGE, "path too long (max 107 bytes)", err);
	strcpy(addr.sun_path, c->path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return fail(c, SPL_EXIT_UNREACHABLE, strerror(errno), err);
	while ((code = connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) ? errno : 0) ==
	       EAGAIN) {
		struct timespec pause = {0, 20000000}; /* its queue of connections is full */

		if (cli_now_ns() >= c->deadline_ns)
			return fail(c, SPL_EXIT_TIMEOUT, "cannot connect: the daemon is too busy",
				    err);
		nanosleep(&pause, NULL);
	}
	if (code == 0)
		return SPL_EXIT_OK;
	if (code == EACCES || code == EPERM) {
		explain_denied(c->path, text, sizeof(text));
		return fail(c, SPL_EXIT_UNREACHABLE, text, err);
	}
	snprintf(text, sizeof(text), "cannot connect: %s: is %s running?", strerror(code),
		 SPL_MGMT_NAME);
	return fail(c, SPL_EXIT_UNREACHABLE, text, err);
}

static bool grow(struct cli_client *c)
{
	size_t cap = c->cap ? c->cap * 2 : 65536;
	char *grown;

	if (c->len < c->cap)
		return true;
	grown = c->cap >= CLI_ANSWER_MAX ? NULL : realloc(c->buf, cap);
	if (!grown)
		return false;
	c->buf = grown;
	c->cap = cap;
	return true;
}

/* The next line. *line stays valid until the next call. */
static enum spl_exit next_line(struct cli_client *c, char **line, size_t *len,
			       char err[CLI_ERR_MAX])
{
	size_t seen = 0;

	c->len -= c->used;
	memmove(c->buf, c->buf + c->used, c->len);
	c->used = 0;
	for (;;) {
		char *nl = c->len > seen ? memchr(c->buf + seen, '\n', c->len - seen) : NULL;
		ssize_t n;

		if (nl) {
			*line = c->buf;
			*len = (size_t)(nl - c->buf);
			c->used = *len + 1;
			return SPL_EXIT_OK;
		}
		seen = c->len;
		if (!grow(c))
			return fail(c, SPL_EXIT_REFUSED, "the answer is too long", err);
		if (!wait_for(c, POLLIN))
			return fail(c, SPL_EXIT_TIMEOUT, "no answer in time", err);
		n = recv(c->fd, c->buf + c->len, c->cap - c->len, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return fail(c, SPL_EXIT_UNREACHABLE, "the daemon ended the connection",
				    err);
		c->len += (size_t)n;
	}
}

/* A line as an object; anything else is not our protocol. */
static enum spl_exit next_object(struct cli_client *c, json_t **out, char err[CLI_ERR_MAX])
{
	char *line, why[JSON_LINE_WHY_MAX];
	size_t len;
	enum spl_exit status = next_line(c, &line, &len, err);

	if (status != SPL_EXIT_OK)
		return status;
	*out = json_line_parse(line, len, SPL_MGMT_DEPTH_MAX, why);
	if (json_is_object(*out))
		return SPL_EXIT_OK;
	json_decref(*out);
	return fail(c, SPL_EXIT_UNREACHABLE,
		    "not a Spotlane management socket: no JSON object came", err);
}

static enum spl_exit check_greeting(const struct cli_client *c, const json_t *hello,
				    char err[CLI_ERR_MAX])
{
	const json_t *params = json_object_get(hello, "params");
	const char *method = json_string_value(json_object_get(hello, "method"));
	const char *name = json_string_value(json_object_get(params, "name"));
	const char *version = json_string_value(json_object_get(params, "version"));
	const json_t *protocol = json_object_get(params, "protocol");
	const char *refusal =
		json_string_value(json_object_get(json_object_get(hello, "error"), "message"));
	char text[300];

	if (refusal)
		return fail(c, SPL_EXIT_UNREACHABLE, refusal, err);
	if (!method || strcmp(method, "hello") != 0 || !name || strcmp(name, SPL_MGMT_NAME) != 0 ||
	    !json_is_integer(protocol))
		return fail(c, SPL_EXIT_UNREACHABLE,
			    "not a Spotlane management socket: no greeting", err);
	if (json_integer_value(protocol) == SPL_MGMT_PROTOCOL)
		return SPL_EXIT_OK;
	snprintf(text, sizeof(text),
		 "version mismatch: spotctl %s speaks protocol %d, the daemon %.40s speaks %lld: "
		 "use "
		 "the spotctl of that version",
		 SPL_VERSION, SPL_MGMT_PROTOCOL, version ? version : "?",
		 (long long)json_integer_value(protocol));
	return fail(c, SPL_EXIT_REFUSED, text, err);
}

enum spl_exit cli_connect(struct cli_client *c, const char *path, uint64_t deadline_ns,
			  char err[CLI_ERR_MAX])
{
	enum spl_exit status;
	json_t *hello = NULL;

	*c = (struct cli_client){.path = path, .fd = -1, .deadline_ns = deadline_ns};
	if (!grow(c))
		return fail(c, SPL_EXIT_REFUSED, "no memory", err);
	status = connect_to(c, err);
	if (status == SPL_EXIT_OK)
		status = next_object(c, &hello, err);
	if (status == SPL_EXIT_OK) {
		status = check_greeting(c, hello, err);
		json_decref(hello);
	}
	return status;
}

static enum spl_exit send_all(const struct cli_client *c, const char *bytes, size_t n,
			      char err[CLI_ERR_MAX])
{
	while (n > 0) {
		ssize_t done = send(c->fd, bytes, n, MSG_NOSIGNAL);

		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
		} else if (errno != EAGAIN && errno != EINTR) {
			return fail(c, SPL_EXIT_UNREACHABLE, "the daemon ended the connection",
				    err);
		} else if (!wait_for(c, POLLOUT)) {
			return fail(c, SPL_EXIT_TIMEOUT, "the daemon takes no request", err);
		}
	}
	return SPL_EXIT_OK;
}

enum spl_exit cli_ask(struct cli_client *c, const char *method, const json_t *params,
		      json_t **answer, char err[CLI_ERR_MAX])
{
	int id = ++c->next_id;
	json_t *request = json_pack("{s:s, s:i, s:s, s:O}", "jsonrpc", "2.0", "id", id, "method",
				    method, "params", params);
	char *text = request ? json_line_text(request) : NULL;
	enum spl_exit status;
	const json_t *got;

	json_decref(request);
	if (!text)
		return fail(c, SPL_EXIT_REFUSED, "no memory", err);
	status = send_all(c, text, strlen(text), err);
	free(text);
	if (status == SPL_EXIT_OK)
		status = send_all(c, "\n", 1, err);
	if (status == SPL_EXIT_OK)
		status = next_object(c, answer, err);
	if (status != SPL_EXIT_OK)
		return status;
	got = json_object_get(*answer, "id");
	if (!json_object_get(*answer, "error") &&
	    (!json_is_integer(got) || json_integer_value(got) != id)) {
		json_decref(*answer);
		return fail(c, SPL_EXIT_REFUSED, "an answer to another request came", err);
	}
	return SPL_EXIT_OK;
}

enum spl_exit cli_wait_end(struct cli_client *c, char err[CLI_ERR_MAX])
{
	char chunk[4096];

	for (;;) {
		ssize_t n;

		if (!wait_for(c, POLLIN))
			return fail(c, SPL_EXIT_TIMEOUT, "the daemon has not ended in time", err);
		n = recv(c->fd, chunk, sizeof(chunk), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return SPL_EXIT_OK;
	}
}

void cli_close(struct cli_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->buf);
	c->fd = -1;
	c->buf = NULL;
}
