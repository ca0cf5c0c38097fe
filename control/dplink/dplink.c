/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the dataplane and the proof of its death: see dplink.h. Loop thread only.
 * Owns the socket, the pidfd and their handles.
 */
#include "control/dplink/dplink_priv.h"
#include "common/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MODULE "dplink"

static void attempt(struct dplink *l);

static uint64_t boottime(void *ctx)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int pidfd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

/* ---- watches ---- */

static void watch_freed(uv_handle_t *h)
{
	free(h);
}

static struct dplink_watch *watch_open(struct dplink *l, int fd, int events, uv_poll_cb cb)
{
	struct dplink_watch *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	if (uv_poll_init(l->loop, &w->poll, fd) < 0) {
		free(w);
		return NULL;
	}
	w->fd = fd;
	w->poll.data = l;
	uv_poll_start(&w->poll, events, cb);
	return w;
}

static void watch_close(struct dplink_watch **w)
{
	if (!*w)
		return;
	uv_poll_stop(&(*w)->poll);
	close((*w)->fd);
	uv_close((uv_handle_t *)&(*w)->poll, watch_freed);
	*w = NULL;
}

/* ---- losing it ---- */

/* Logs a reason once until it changes or the link is up again. */
static void say(struct dplink *l, int level, const char *text)
{
	if (strcmp(l->said, text) == 0)
		return;
	snprintf(l->said, sizeof(l->said), "%s", text);
	if (l->ending && level < LOG_LEVEL_DEBUG)
		level++;
	log_line((enum log_level)level, MODULE, "%s path=%s", text, l->path);
}

static void on_retry(uv_timer_t *t)
{
	struct dplink *l = t->data;

	if (l->state == DPLINK_WAITING)
		attempt(l);
	else if (l->state == DPLINK_CONNECTING)
		dplink_lost(l, LOG_LEVEL_WARN, "no HELLO in time");
}

static void retry_later(struct dplink *l)
{
	uv_timer_start(&l->retry, on_retry, l->retry_ms, 0);
	l->retry_ms = l->retry_ms * 2 < DPLINK_RETRY_MS_MAX ? l->retry_ms * 2 : DPLINK_RETRY_MS_MAX;
}

void dplink_lost(struct dplink *l, int level, const char *fmt, ...)
{
	bool was_up = l->state == DPLINK_UP;
	char text[sizeof(l->said)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	watch_close(&l->sock);
	dp_tx_clear(&l->tx);
	l->held = l->blocked = false;
	l->cut_why = NULL;
	if (l->state != DPLINK_CLOSED) {
		l->state = DPLINK_WAITING;
		say(l, level, text);
		retry_later(l);
	}
	if (was_up)
		l->resets++;
	dplink_fail_all(l, -ECONNRESET);
	if (was_up)
		l->o.ops->down(l->o.ctx);
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* The process is proved gone: what it still said counts, then it is reported. */
static void process_ended(struct dplink *l)
{
	uint64_t epoch = l->epoch;
	pid_t pid = l->pid;

	if (l->sock && dplink_read(l, true))
		dplink_lost(l, LOG_LEVEL_WARN, "the dataplane has ended");
	watch_close(&l->proc);
	l->pid = 0;
	l->epoch = 0;
	if (!epoch || l->state == DPLINK_CLOSED)
		return;
	log_line(l->ending ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, MODULE,
		 "dataplane process has ended pid=%d epoch=%016llx", (int)pid,
		 (unsigned long long)epoch);
	l->o.ops->dead(l->o.ctx, epoch);
}

static void on_process(uv_poll_t *p, int status, int events)
{
	struct dplink *l = p->data;

	if (l->proc && has_ended(l->proc->fd))
		process_ended(l);
}

static void on_socket(uv_poll_t *p, int status, int events)
{
	struct dplink *l = p->data;

	if (status < 0) { /* libuv's word for a hang-up; what was said before it counts */
		if (dplink_read(l, true))
			dplink_lost(l, LOG_LEVEL_WARN, "the dataplane closed the connection");
		return;
	}
	if (events & UV_WRITABLE) {
		l->blocked = false;
		uv_poll_start(&l->sock->poll, UV_READABLE, on_socket);
	}
	if (events & UV_READABLE)
		dplink_read(l, false);
}

/* ---- making it ---- */

static int dial(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int size = 1 << 20;

	if (fd < 0)
		return -errno;
	memcpy(a.sun_path, path, strlen(path) + 1);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Watches the process at the other end of `fd`. 0, or -errno and a sentence. */
static int watch_process(struct dplink *l, pid_t pid, int fd, const char **why)
{
	struct pollfd hup = {.fd = fd, .events = 0};
	int pidfd;

	if (l->proc && has_ended(l->proc->fd))
		process_ended(l);
	if (l->proc) {
		*why = "another process listens while the dataplane still runs";
		return l->pid == pid ? 0 : -EBUSY;
	}
	pidfd = pidfd_of(pid);
	*why = "the process behind the socket cannot be watched";
	if (pidfd < 0)
		return pidfd;
	/* Its socket end still stands after the pidfd was taken: the pid was not reused. */
	if (poll(&hup, 1, 0) != 0 || has_ended(pidfd)) {
		close(pidfd);
		*why = "the process behind the socket has ended";
		return -ESRCH;
	}
	l->proc = watch_open(l, pidfd, UV_READABLE, on_process);
	if (!l->proc) {
		close(pidfd);
		return -ENOMEM;
	}
	l->pid = pid;
	l->epoch = 0;
	return 0;
}

static int check_peer(struct dplink *l, int fd, const char **why)
{
	struct ucred c = {0};
	socklen_t n = sizeof(c);

	*why = "no credentials on the socket";
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0)
		return -errno;
	*why = "the process behind the socket runs as another user";
	if (c.uid != geteuid() && c.uid != 0)
		return -EACCES;
	*why = "the process behind the socket is in another pid namespace";
	if (c.pid <= 0)
		return -ESRCH;
	return watch_process(l, c.pid, fd, why);
}

static void attempt(struct dplink *l)
{
	const char *why = "";
	int fd = dial(l->path), rc = fd;

	if (fd < 0) {
		char text[sizeof(l->said)];

		snprintf(text, sizeof(text), "waiting for the dataplane: %s", strerror(-rc));
		say(l, LOG_LEVEL_INFO, text);
		retry_later(l);
		return;
	}
	rc = check_peer(l, fd, &why);
	if (l->state == DPLINK_CLOSED) { /* dead() may have closed us */
		close(fd);
		return;
	}
	if (rc < 0) {
		say(l, LOG_LEVEL_ERROR, why);
		goto refuse;
	}
	l->sock = watch_open(l, fd, UV_READABLE, on_socket);
	if (!l->sock)
		goto refuse;
	l->connects++;
	l->state = DPLINK_CONNECTING;
	uv_timer_start(&l->retry, on_retry, DPLINK_HELLO_MS, 0);
	return;
refuse:
	close(fd);
	retry_later(l);
}

void dplink_hello(struct dplink *l, uint64_t epoch, const struct dp_hello *hello)
{
	if (hello->pid != (uint32_t)l->pid)
		dplink_lost(l, LOG_LEVEL_ERROR, "HELLO names pid %u, the socket is of pid %d",
			    hello->pid, (int)l->pid);
	else if (!epoch || (l->epoch && l->epoch != epoch))
		dplink_lost(l, LOG_LEVEL_ERROR, "HELLO with another epoch of the same process");
	else {
		l->epoch = epoch;
		l->state = DPLINK_UP;
		l->said[0] = 0;
		l->retry_ms = DPLINK_RETRY_MS_MIN;
		uv_timer_stop(&l->retry);
		log_info(MODULE, "dataplane connected pid=%d epoch=%016llx state=%u version=%.*s",
			 (int)l->pid, (unsigned long long)epoch, hello->state,
			 (int)hello->version.len, (const char *)hello->version.p);
		l->o.ops->up(l->o.ctx, epoch, hello);
	}
}

/* ---- the loop's turn ---- */

static void on_flush(uv_prepare_t *p)
{
	struct dplink *l = p->data;
	int rc;

	if (l->cut_why && l->sock) {
		dplink_lost(l, LOG_LEVEL_ERROR, "%s", l->cut_why);
		return;
	}
	if (!l->sock || l->held || l->blocked || !l->tx.count)
		return;
	rc = dp_tx_flush(&l->tx, l->sock->fd);
	if (rc == -EAGAIN) {
		l->blocked = true;
		uv_poll_start(&l->sock->poll, UV_READABLE | UV_WRITABLE, on_socket);
	} else if (rc < 0 && dplink_read(l, true)) {
		/* What it said before it left counts. */
		dplink_lost(l, LOG_LEVEL_WARN, "connection failed: %s", strerror(-rc));
	}
}

void dplink_on_tick(uv_timer_t *t)
{
	dplink_expire(t->data);
}

static int init(struct dplink *l, uv_loop_t *loop, const struct dplink_options *o)
{
	int rc;

	l->loop = loop;
	l->o = *o;
	if (!l->o.now)
		l->o.now = boottime;
	l->retry_ms = DPLINK_RETRY_MS_MIN;
	l->free_slot = UINT32_MAX;
	l->rx = dp_rx_create();
	if (!l->rx)
		return -ENOMEM;
	rc = dp_tx_init(&l->tx, o->out_max ? o->out_max : DPLINK_OUT_MAX, DPLINK_OUT_BYTES_MAX);
	if (rc < 0)
		return rc;
	uv_timer_init(loop, &l->retry);
	uv_timer_init(loop, &l->tick);
	uv_prepare_init(loop, &l->flush);
	l->retry.data = l->tick.data = l->flush.data = l;
	uv_prepare_start(&l->flush, on_flush);
	uv_unref((uv_handle_t *)&l->flush);
	uv_unref((uv_handle_t *)&l->tick);
	return 0;
}

int dplink_open(struct dplink **out, uv_loop_t *loop, const struct dplink_options *o)
{
	struct dplink *l = calloc(1, sizeof(*l));
	int rc = -EINVAL;

	if (!l)
		return -ENOMEM;
	if ((size_t)snprintf(l->path, sizeof(l->path), "%s/" DP_SOCKET_NAME, o->dir) <
	    sizeof(l->path))
		rc = init(l, loop, o);
	if (rc < 0) {
		dp_rx_destroy(l->rx);
		free(l);
		return rc;
	}
	*out = l;
	uv_timer_start(&l->retry, on_retry, 0, 0);
	return 0;
}

static void handle_closed(uv_handle_t *h)
{
	struct dplink *l = h->data;

	if (--l->closing)
		return;
	dp_rx_destroy(l->rx);
	dp_tx_fini(&l->tx);
	free(l->slots);
	if (l->done)
		l->done(l->done_arg);
	free(l);
}

void dplink_close(struct dplink *l, void (*done)(void *arg), void *arg)
{
	l->state = DPLINK_CLOSED;
	l->done = done;
	l->done_arg = arg;
	watch_close(&l->sock);
	watch_close(&l->proc);
	dplink_fail_all(l, -ECONNRESET);
	l->closing = 3;
	uv_close((uv_handle_t *)&l->retry, handle_closed);
	uv_close((uv_handle_t *)&l->tick, handle_closed);
	uv_close((uv_handle_t *)&l->flush, handle_closed);
}

void dplink_expect_end(struct dplink *l)
{
	l->ending = true;
}

void dplink_poke(struct dplink *l)
{
	if (l->state != DPLINK_WAITING)
		return;
	l->retry_ms = DPLINK_RETRY_MS_MIN;
	uv_timer_start(&l->retry, on_retry, 0, 0);
}

void dplink_hold(struct dplink *l, bool held)
{
	l->held = held;
}

void dplink_info(const struct dplink *l, struct dplink_info *out)
{
	*out = (struct dplink_info){
		.state = l->state,
		.pid = l->pid,
		.epoch = l->epoch,
		.requests = l->used_slots,
		.connects = l->connects,
		.resets = l->resets,
		.timeouts = l->timeouts,
		.unmatched = l->unmatched,
	};
}

int dplink_kill(struct dplink *l)
{
	if (!l->proc)
		return -ESRCH;
	if (syscall(SYS_pidfd_send_signal, l->proc->fd, SIGKILL, NULL, 0) < 0)
		return -errno;
	return 0;
}
