/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection: bytes into lines, one request at a time, answers out, and every bound that a
 * client can break. Owns its descriptor, buffers and timers; freed when libuv has closed all of
 * them. Loop thread. */
#include "control/server/internal.h"

#include <errno.h>
#include <poll.h>
#include <spotlane/errors.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_A_PASS 16 /* then others have their turn */

struct out {
	uv_write_t req;
	char *line;
};

static void free_if_closed(struct mgmt_client *c)
{
	if (c->handles > 0)
		return;
	server_client_gone(c->server, c);
	free(c->in);
	free(c);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct mgmt_client *c = h->data;

	c->handles--;
	free_if_closed(c);
}

void client_close(struct mgmt_client *c)
{
	if (c->is_closing)
		return;
	c->is_closing = true;
	call_detach(c);
	if (c->is_ready)
		TAILQ_REMOVE(&c->server->ready, c, ready_link);
	c->is_ready = false;
	uv_close((uv_handle_t *)&c->pipe, on_handle_closed);
	uv_close((uv_handle_t *)&c->in_timer, on_handle_closed);
	uv_close((uv_handle_t *)&c->out_timer, on_handle_closed);
}

static void cut(struct mgmt_client *c, const char *why)
{
	struct mgmt_server *s = c->server;

	if (c->is_closing)
		return;
	s->counts.cut++;
	log_limited(&s->cut_log, LOG_LEVEL_WARN, "mgmt", "connection cut: %s pid=%d", why,
		    (int)c->pid);
	client_close(c);
}

static size_t unsent(const struct mgmt_client *c)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->pipe);
}

/* Ends a connection that has nothing more to wait for. */
static void close_if_done(struct mgmt_client *c)
{
	bool idle = c->is_finishing || (c->eof && !c->call && !c->is_ready && !c->is_processing);

	if (idle && !c->is_closing && unsent(c) == 0)
		client_close(c);
}

static void on_out_timer(uv_timer_t *t)
{
	struct mgmt_client *c = t->data;

	if (unsent(c) >= c->out_last) {
		cut(c, "it does not read its answers");
		return;
	}
	c->out_last = unsent(c);
	uv_timer_start(t, on_out_timer, c->server->o.output_timeout_ms, 0);
}

static void watch_output(struct mgmt_client *c)
{
	if (unsent(c) == 0) {
		uv_timer_stop(&c->out_timer);
	} else if (!uv_is_active((uv_handle_t *)&c->out_timer)) {
		c->out_last = unsent(c);
		uv_timer_start(&c->out_timer, on_out_timer, c->server->o.output_timeout_ms, 0);
	}
}

static void on_written(uv_write_t *req, int status)
{
	struct mgmt_client *c = req->handle->data;
	struct out *o = req->data;

	free(o->line);
	free(o);
	if (c->is_closing)
		return;
	if (status != 0) {
		client_close(c);
		return;
	}
	watch_output(c);
	close_if_done(c);
}

void client_send(struct mgmt_client *c, char *line)
{
	size_t len = line ? strlen(line) : 0;
	struct out *o = malloc(sizeof(*o));
	uv_buf_t bufs[2];

	if (!line || !o) {
		cut(c, "no memory for an answer");
	} else if (!c->is_closing && unsent(c) + len > c->server->o.output_max) {
		cut(c, "too many answers wait for it");
	} else if (!c->is_closing) {
		static char newline[] = "\n";

		o->line = line;
		o->req.data = o;
		bufs[0] = uv_buf_init(line, (unsigned)len);
		bufs[1] = uv_buf_init(newline, 1);
		if (uv_write(&o->req, (uv_stream_t *)&c->pipe, bufs, 2, on_written) == 0) {
			watch_output(c);
			return;
		}
		client_close(c);
	}
	free(line);
	free(o);
}

void client_finish(struct mgmt_client *c)
{
	if (c->is_closing)
		return;
	c->is_finishing = true;
	c->reading = false;
	uv_read_stop((uv_stream_t *)&c->pipe);
	uv_timer_stop(&c->in_timer);
	close_if_done(c);
}

/* One error line and the end, for a client that broke the framing. */
static void refuse(struct mgmt_client *c, const char *text)
{
	c->server->counts.cut++;
	log_limited(&c->server->cut_log, LOG_LEVEL_WARN, "mgmt", "connection ended: %s pid=%d",
		    text, (int)c->pid);
	call_error(c, NULL, SPL_MGMT_E_REQUEST, SPL_E_PROTOCOL_ERROR, NULL, text, NULL);
	client_finish(c);
}

static void on_in_timer(uv_timer_t *t)
{
	refuse(t->data, "a request line took too long to arrive");
}

static void on_alloc(uv_handle_t *h, size_t want, uv_buf_t *buf)
{
	struct mgmt_client *c = h->data;

	(void)want;
	*buf = uv_buf_init(c->server->scratch, sizeof(c->server->scratch));
}

static bool append(struct mgmt_client *c, const char *bytes, size_t n)
{
	if (c->in_len + n > c->in_cap) {
		size_t cap = c->in_cap ? c->in_cap : 4096;
		char *grown;

		while (cap < c->in_len + n)
			cap *= 2;
		grown = realloc(c->in, cap);
		if (!grown)
			return false;
		c->in = grown;
		c->in_cap = cap;
	}
	memcpy(c->in + c->in_len, bytes, n);
	c->in_len += n;
	return true;
}

/* The peer is gone for both directions, not only done with sending. */
static bool is_hung_up(const struct mgmt_client *c)
{
	uv_os_fd_t fd;
	struct pollfd p = {.events = 0};

	if (uv_fileno((const uv_handle_t *)&c->pipe, &fd) != 0)
		return true;
	p.fd = fd;
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct mgmt_client *c = stream->data;

	if (c->is_closing || c->is_finishing)
		return;
	if (n > 0) {
		if (!append(c, buf->base, (size_t)n)) {
			cut(c, "no memory for its request");
			return;
		}
		client_process(c);
		return;
	}
	if (n == 0)
		return;
	c->eof = true;
	c->reading = false;
	if (n != UV_EOF || is_hung_up(c)) {
		client_close(c);
		return;
	}
	uv_read_stop(stream);
	client_process(c);
	if (!c->is_closing)
		close_if_done(c);
}

/* Reads while the buffer has room for the longest line. */
static void adjust_reading(struct mgmt_client *c)
{
	bool want = !c->eof && !c->is_finishing && c->in_len <= c->server->o.line_max;

	if (c->is_closing || want == c->reading)
		return;
	c->reading = want;
	if (!want)
		uv_read_stop((uv_stream_t *)&c->pipe);
	else if (uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read) != 0)
		client_close(c);
}

void client_make_ready(struct mgmt_client *c)
{
	if (c->is_ready || c->is_closing)
		return;
	c->is_ready = true;
	TAILQ_INSERT_TAIL(&c->server->ready, c, ready_link);
	server_wake(c->server);
}

/* Length of the first line in the buffer, its newline excluded; false when it is not complete. */
static bool find_line(struct mgmt_client *c, size_t start, size_t *len)
{
	size_t from = start > c->in_seen ? start : c->in_seen;
	const char *nl = from < c->in_len ? memchr(c->in + from, '\n', c->in_len - from) : NULL;

	if (!nl) {
		c->in_seen = c->in_len;
		return false;
	}
	*len = (size_t)(nl - (c->in + start));
	return true;
}

static void take_lines(struct mgmt_client *c)
{
	size_t start = 0, len = 0;
	int left = LINES_A_PASS;
	bool more = false;

	while (!c->call && !c->is_closing && !c->is_finishing) {
		more = find_line(c, start, &len);
		if (!more || left-- == 0)
			break;
		if (len > c->server->o.line_max) {
			refuse(c, "a request line is too long");
			break;
		}
		if (len > 0)
			call_begin(c, c->in + start, len);
		start += len + 1;
		more = false;
	}
	c->in_len -= start;
	c->in_seen = c->in_seen > start ? c->in_seen - start : 0;
	memmove(c->in, c->in + start, c->in_len);
	if (more)
		client_make_ready(c);
}

void client_process(struct mgmt_client *c)
{
	c->is_processing = true;
	if (c->in)
		take_lines(c);
	c->is_processing = false;
	if (c->is_closing || c->is_finishing)
		return;
	if (!c->call && !c->is_ready && c->in_len > c->server->o.line_max) {
		refuse(c, "a request line is too long");
		return;
	}
	if (c->call || c->is_ready || c->in_len == 0 || c->eof)
		uv_timer_stop(&c->in_timer);
	else if (!uv_is_active((uv_handle_t *)&c->in_timer))
		uv_timer_start(&c->in_timer, on_in_timer, c->server->o.input_timeout_ms, 0);
	if (c->in_len == 0 && c->in_cap > sizeof(c->server->scratch)) {
		free(c->in);
		c->in = NULL;
		c->in_cap = 0;
	}
	adjust_reading(c);
	close_if_done(c);
}

static char *greeting(const struct mgmt_client *c)
{
	char *text = NULL;

	if (asprintf(&text,
		     "{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":{\"name\":\"%s\","
		     "\"protocol\":%d,\"version\":\"%s\",\"pid\":%d,\"start_time\":\"%s\","
		     "\"access\":\"%s\"}}",
		     SPL_MGMT_NAME, SPL_MGMT_PROTOCOL, SPL_VERSION, (int)getpid(),
		     c->server->start_time,
		     c->access == MGMT_ACCESS_FULL ? "full" : "read-only") < 0)
		return NULL;
	return text;
}

int client_open(struct mgmt_server *s, int fd, pid_t pid, enum mgmt_access access,
		const char *refusal)
{
	struct mgmt_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->server = s;
	c->pid = pid;
	c->access = access;
	c->handles = 3;
	uv_timer_init(s->loop, &c->in_timer);
	uv_timer_init(s->loop, &c->out_timer);
	uv_pipe_init(s->loop, &c->pipe, 0);
	c->pipe.data = c->in_timer.data = c->out_timer.data = c;
	TAILQ_INSERT_TAIL(&s->clients, c, link);
	s->counts.clients++;
	err = uv_pipe_open(&c->pipe, fd);
	if (err != 0) {
		close(fd);
		client_close(c);
		return err;
	}
	if (refusal) {
		s->counts.refused++;
		call_error(c, NULL, SPL_MGMT_E_KIND - SPL_E_REJECTED, SPL_E_REJECTED, NULL, refusal,
			   NULL);
		client_finish(c);
		return 0;
	}
	client_send(c, greeting(c));
	adjust_reading(c);
	return 0;
}
