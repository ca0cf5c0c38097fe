/* SPDX-License-Identifier: BSD-3-Clause */
/* The management server: accepts, keeps the table of connections, opens and closes. Loop thread;
 * owns the listening socket and every connection. */
#include "control/server/internal.h"

#include <errno.h>
#include <signal.h>
#include <spotlane/errors.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ACCEPTS_A_PASS 64
#define RETRY_MS       100  /* after accept() failed */
#define GRACE_MS       1000 /* for answers still to be taken when the server closes */
#define REFUSED_MAX    16   /* connections over clients_max that are told so at a time */

static void on_acceptable(uv_poll_t *p, int status, int events);

static void accept_again(struct mgmt_server *s)
{
	if (s->is_accepting || s->is_closing)
		return;
	s->is_accepting = uv_poll_start(&s->accept_poll, UV_READABLE, on_acceptable) == 0;
}

static void on_accept_timer(uv_timer_t *t)
{
	accept_again(t->data);
}

/* Out of descriptors or memory: waits instead of spinning. */
static void pause_accepting(struct mgmt_server *s, int err)
{
	s->counts.accept_fail++;
	log_limited(&s->accept_log, LOG_LEVEL_ERROR, "mgmt", "cannot accept: %s clients=%u",
		    strerror(err), s->counts.clients);
	uv_poll_stop(&s->accept_poll);
	s->is_accepting = false;
	uv_timer_start(&s->accept_timer, on_accept_timer, RETRY_MS, 0);
}

static void take_client(struct mgmt_server *s, int fd)
{
	struct mgmt_peer peer;
	enum mgmt_access access;
	char text[96];
	const char *refusal = NULL;

	if (s->counts.clients >= s->o.clients_max + REFUSED_MAX || mgmt_peer_read(fd, &peer) != 0) {
		s->counts.refused++;
		close(fd);
		return;
	}
	access = mgmt_access_of(&s->policy, &peer);
	if (access == MGMT_ACCESS_NONE) {
		refusal = "no access: not in a group that may use this socket";
	} else if (s->counts.clients >= s->o.clients_max) {
		snprintf(text, sizeof(text), "too many connections (max %u)", s->o.clients_max);
		refusal = text;
	}
	client_open(s, fd, peer.pid, access, refusal);
}

static void on_acceptable(uv_poll_t *p, int status, int events)
{
	struct mgmt_server *s = p->data;

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPTS_A_PASS; i++) {
		int fd = accept4(s->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				pause_accepting(s, errno);
			return; /* EAGAIN, or a client that gave up */
		}
		s->counts.accepted++;
		take_client(s, fd);
	}
}

static void free_if_closed(struct mgmt_server *s)
{
	void (*done)(void *arg) = s->done;
	void *arg = s->done_arg;

	if (s->handles > 0 || !TAILQ_EMPTY(&s->clients))
		return;
	free(s);
	if (done)
		done(arg);
}

static void on_handle_closed(uv_handle_t *h)
{
	struct mgmt_server *s = h->data;

	s->handles--;
	free_if_closed(s);
}

static void close_handles(struct mgmt_server *s)
{
	if (uv_is_closing((uv_handle_t *)&s->accept_timer))
		return;
	uv_close((uv_handle_t *)&s->accept_timer, on_handle_closed);
	uv_close((uv_handle_t *)&s->ready_idle, on_handle_closed);
	uv_close((uv_handle_t *)&s->accept_poll, on_handle_closed);
}

void server_client_gone(struct mgmt_server *s, struct mgmt_client *c)
{
	TAILQ_REMOVE(&s->clients, c, link);
	s->counts.clients--;
	if (!s->is_closing)
		accept_again(s); /* a descriptor is free now */
	else if (TAILQ_EMPTY(&s->clients))
		close_handles(s);
	if (s->is_closing)
		free_if_closed(s);
}

/* Each connection that has lines left serves a handful; runs only while there are any. */
static void on_ready(uv_idle_t *idle)
{
	struct mgmt_server *s = idle->data;
	struct mgmt_client *last = TAILQ_LAST(&s->ready, mgmt_clients);

	while (last && !TAILQ_EMPTY(&s->ready)) {
		struct mgmt_client *c = TAILQ_FIRST(&s->ready);
		bool end = c == last;

		TAILQ_REMOVE(&s->ready, c, ready_link);
		c->is_ready = false;
		client_process(c);
		if (end)
			break;
	}
	if (TAILQ_EMPTY(&s->ready))
		uv_idle_stop(idle);
}

void server_wake(struct mgmt_server *s)
{
	uv_idle_start(&s->ready_idle, on_ready);
}

static int set_policy(struct mgmt_server *s, const struct mgmt_options *o, gid_t *file_gid,
		      char *err, size_t err_size)
{
	const char *const names[2] = {o->group, o->readonly_group};
	gid_t *const ids[2] = {&s->policy.full, &s->policy.readonly};

	*file_gid = (gid_t)-1;
	s->policy.self = geteuid();
	s->policy.full = getegid();
	s->policy.has_readonly = o->readonly_group && *o->readonly_group;
	for (int i = 0; i < 2; i++) {
		int code;

		if (!names[i] || !*names[i])
			continue;
		code = mgmt_group_id(names[i], ids[i]);
		if (code != 0) {
			snprintf(err, err_size,
				 "socket %s: no group \"%s\": %s: make it with groupadd", o->path,
				 names[i], code == -ENOENT ? "unknown" : strerror(-code));
			return -ENOENT;
		}
		if (i == 0)
			*file_gid = s->policy.full;
	}
	return 0;
}

static void start(struct mgmt_server *s, uv_loop_t *loop)
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(s->start_time, sizeof(s->start_time), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	s->loop = loop;
	s->handles = 3;
	uv_timer_init(loop, &s->accept_timer);
	uv_idle_init(loop, &s->ready_idle);
	s->accept_timer.data = s->ready_idle.data = s->accept_poll.data = s;
	accept_again(s);
	/* Writing to a client that went away must not end the process. */
	signal(SIGPIPE, SIG_IGN);
}

int mgmt_server_open(struct mgmt_server **out, uv_loop_t *loop, const struct mgmt_options *o,
		     const struct mgmt_method *methods, size_t n_methods, void *ctx, char *err,
		     size_t err_size)
{
	struct mgmt_server *s = calloc(1, sizeof(*s));
	char why[MGMT_ERR_MAX];
	gid_t file_gid;
	int code;

	if (!s) {
		snprintf(err, err_size, "socket %s: no memory", o->path);
		return -ENOMEM;
	}
	s->o = *o;
	s->methods = methods;
	s->n_methods = n_methods;
	s->ctx = ctx;
	s->accept_log = (struct log_rate)LOG_RATE(1, 10000);
	s->cut_log = (struct log_rate)LOG_RATE(5, 1000);
	TAILQ_INIT(&s->clients);
	TAILQ_INIT(&s->ready);
	code = set_policy(s, o, &file_gid, err, err_size);
	if (code != 0)
		goto free_server;
	code = mgmt_socket_open(&s->socket, o->path, o->mode, file_gid, why);
	if (code != 0) {
		snprintf(err, err_size, "%s", why);
		goto free_server;
	}
	code = uv_poll_init(loop, &s->accept_poll, s->socket.fd);
	if (code != 0) {
		snprintf(err, err_size, "socket %s: cannot poll it: %s", o->path,
			 uv_strerror(code));
		goto close_socket;
	}
	start(s, loop);
	*out = s;
	return 0;
close_socket:
	mgmt_socket_close(&s->socket);
free_server:
	free(s);
	return code;
}

static void on_grace_over(uv_timer_t *t)
{
	struct mgmt_server *s = t->data;
	struct mgmt_client *c;

	TAILQ_FOREACH (c, &s->clients, link)
		client_close(c);
}

void mgmt_server_close(struct mgmt_server *s, void (*done)(void *arg), void *arg)
{
	struct mgmt_client *c, *next;

	s->done = done;
	s->done_arg = arg;
	s->is_closing = true;
	s->is_accepting = false;
	uv_poll_stop(&s->accept_poll);
	uv_timer_stop(&s->accept_timer);
	mgmt_socket_close(&s->socket);
	for (c = TAILQ_FIRST(&s->clients); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->is_closing)
			continue;
		if (c->call) {
			const json_t *id = c->call->id;

			call_error(c, id, SPL_MGMT_E_KIND - SPL_E_SHUTTING_DOWN,
				   SPL_E_SHUTTING_DOWN, NULL, "not finished: the daemon stops",
				   NULL);
			call_detach(c);
		}
		client_finish(c);
	}
	if (TAILQ_EMPTY(&s->clients))
		close_handles(s);
	else
		uv_timer_start(&s->accept_timer, on_grace_over, GRACE_MS, 0);
}

void mgmt_server_counts(const struct mgmt_server *s, struct mgmt_counts *out)
{
	*out = s->counts;
}
