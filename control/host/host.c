/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the host and the effects of the authority: see host_priv.h. Loop thread only. */
#include "control/host/host_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

void host_fatal(const char *what)
{
	/* Being killed is something that control survives; going on without memory is not. */
	log_error(HOST_MODULE, "%s: ending, to be started again", what);
	_exit(HOST_EXIT_ENVIRONMENT);
}

/* ---- waits ---- */

struct host_wait *host_wait_new(struct host *h, enum host_wait_kind kind)
{
	struct host_wait *w = calloc(1, sizeof(*w));

	if (!w)
		host_fatal("out of memory");
	w->h = h;
	w->kind = kind;
	TAILQ_INSERT_TAIL(&h->waits, w, link);
	return w;
}

void host_wait_free(struct host_wait *w)
{
	TAILQ_REMOVE(&w->h->waits, w, link);
	if (w->is_call)
		w->h->n_calls--;
	json_decref(w->params);
	free(w);
}

int host_submit(struct host *h, struct host_wait *w, struct auth_request *r)
{
	int rc;

	r->tag = (uintptr_t)w;
	rc = auth_submit(h->auth, r, (int64_t)host_now(h));
	if (rc == 0)
		host_pump(h);
	return rc;
}

static void take_reply(const struct auth_reply *r)
{
	struct host_wait *w = (struct host_wait *)(uintptr_t)r->tag;

	switch (w->kind) {
	case HOST_WAIT_METHOD:
		host_method_reply(w, r);
		break;
	case HOST_WAIT_MESH:
		host_mesh_reply(w, r);
		break;
	case HOST_WAIT_SELF:
		if (r->kind != SPL_OK)
			log_warn(HOST_MODULE, "a Spot could not close itself: %s: %s",
				 spl_error_name(r->kind), r->text);
		host_wait_free(w);
		break;
	}
}

/* ---- effects ---- */

static void on_store_done(void *ctx, struct store_batch *b)
{
	struct host *h = ctx;

	host_measure_store(h, b);
	auth_store_done(h->auth, b, (int64_t)host_now(h));
	host_pump(h);
}

static void log_effect(enum auth_log level, const char *text)
{
	static const enum log_level map[] = {
		[AUTH_LOG_ERROR] = LOG_LEVEL_ERROR,
		[AUTH_LOG_WARN] = LOG_LEVEL_WARN,
		[AUTH_LOG_INFO] = LOG_LEVEL_INFO,
		[AUTH_LOG_DEBUG] = LOG_LEVEL_DEBUG,
	};

	log_line(map[level], "authority", "%s", text);
}

static void on_host_ready(struct host *h, const struct auth_host_id *id, int64_t deadline)
{
	h->id = *id;
	h->has_id = true;
	h->lease_deadline = (uint64_t)deadline;
	log_info(HOST_MODULE, "a lifecycle begins rid=%.*s", id->rid.len, id->rid.b);
	host_send_identity(h);
	if (!h->life_written)
		host_life_write(h);
}

static void on_deadline(uv_timer_t *t)
{
	struct host *h = t->data;
	int rc;

	if (h->stop == HOST_DRAINS && !h->killed) { /* a forced stop */
		h->killed = true;
		rc = dplink_kill(h->link);
		log_warn(HOST_MODULE, "the dataplane did not end when told to: killed%s%s",
			 rc ? ": " : "", rc ? strerror(-rc) : "");
	} else if (h->stop == HOST_ENDS_DATAPLANE) {
		log_warn(HOST_MODULE, "the dataplane still runs; it owns nothing any more");
		host_dataplane_ended(h);
	}
}

static bool dataplane_alive(const struct host *h)
{
	struct dplink_info i;

	dplink_info(h->link, &i);
	return i.pid != 0;
}

/* The authority has released everything (or, forced, must first know the dataplane dead). */
static void on_host_stopped(struct host *h, const struct auth_effect *fx)
{
	static const char *const outcomes[] = {"Stopped", "ForceStopped"};
	static const char *const reasons[] = {"None", "DeadlineExceeded", "TeardownFailed"};
	const char *text = fx->u.stop.text;
	bool failed = h->stop == HOST_RUNS, forced = fx->u.stop.forced;

	if (failed) {
		log_error(HOST_MODULE, "the node cannot start: %s", text);
		h->exit_code = HOST_EXIT_INTERNAL;
	} else if (forced) {
		log_warn(HOST_MODULE, "stopping by force: %s", text);
	} else {
		log_line(fx->u.stop.outcome == AUTH_STOPPED ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
			 HOST_MODULE, "%s outcome=%s reason=%s", text, outcomes[fx->u.stop.outcome],
			 reasons[fx->u.stop.reason]);
	}
	if (!failed) {
		h->measured.forced += forced;
		host_measure(&h->measured.shutdown[forced], host_now(h) - h->measured.stop_begun);
	}
	if (forced) {
		h->stop = HOST_DRAINS;
		host_send_exit(h, true);
		uv_timer_start(&h->deadline, on_deadline, HOST_KILL_NS / CLOCK_NS_PER_MS, 0);
		return;
	}
	h->stop = HOST_ENDS_DATAPLANE;
	if (!dataplane_alive(h)) {
		host_dataplane_ended(h);
		return;
	}
	host_life_ended(h, &h->id.rid);
	dplink_expect_end(h->link);
	host_send_exit(h, false);
	uv_timer_start(&h->deadline, on_deadline, HOST_EXIT_NS / CLOCK_NS_PER_MS, 0);
}

void host_dataplane_ended(struct host *h)
{
	if (h->stop != HOST_ENDS_DATAPLANE)
		return;
	h->stop = HOST_FINISHED;
	uv_timer_stop(&h->deadline);
	h->o.finished(h->o.ctx, h->exit_code);
}

/* From one renewal to the next there should be the time that was configured. */
static void note_renewal(struct host *h, uint64_t deadline)
{
	uint64_t every = h->cfg->lease.renew_ms * CLOCK_NS_PER_MS, took;

	if (h->lease_deadline == 0 || deadline <= h->lease_deadline)
		return;
	took = deadline - h->lease_deadline;
	host_measure(&h->measured.renew_late, took > every ? took - every : 0);
}

static void take_effect(struct host *h, struct auth_effect *fx)
{
	switch (fx->kind) {
	case AUTH_FX_STORE:
		if (worker_run(h->worker, fx->u.store, on_store_done, h) < 0)
			host_fatal("the store's queue is full");
		break;
	case AUTH_FX_REPLY:
		take_reply(&fx->u.reply);
		break;
	case AUTH_FX_PREPARE:
	case AUTH_FX_PUBLISH:
	case AUTH_FX_DISCARD:
	case AUTH_FX_CLOSE_LOCAL:
		host_command(h, fx->kind, &fx->u.command);
		break;
	case AUTH_FX_HOST_READY:
		on_host_ready(h, fx->u.host.id, fx->u.host.deadline);
		break;
	case AUTH_FX_HOST_STATE:
		h->state.state = (uint8_t)fx->u.state.state;
		h->state.deadline = (uint64_t)fx->u.state.deadline;
		h->has_state = true;
		host_send_state(h);
		break;
	case AUTH_FX_LEASE:
		h->id = *fx->u.host.id;
		note_renewal(h, (uint64_t)fx->u.host.deadline);
		h->lease_deadline = (uint64_t)fx->u.host.deadline;
		host_send_lease(h);
		break;
	case AUTH_FX_LEASE_LOST:
		h->lease_deadline = 0;
		log_warn(HOST_MODULE, "the lease is lost, fencing the dataplane: %s",
			 fx->u.stop.text);
		host_send_lease_lost(h, fx->u.stop.text);
		break;
	case AUTH_FX_INVENTORY:
		host_inventory(h);
		break;
	case AUTH_FX_LIFECYCLE_CHECK:
		host_life_check(h, &fx->u.check.rid, fx->u.check.lifecycle);
		break;
	case AUTH_FX_LIFECYCLE_GONE:
		host_life_ended(h, &fx->u.check.rid);
		break;
	case AUTH_FX_HOST_STOPPED:
		on_host_stopped(h, fx);
		break;
	case AUTH_FX_LOG:
		log_effect(fx->u.log.level, fx->u.log.text);
		break;
	}
}

static void on_tick(uv_timer_t *t)
{
	struct host *h = t->data;

	auth_tick(h->auth, (int64_t)host_now(h));
	host_pump(h);
}

void host_wake(struct host *h)
{
	on_tick(&h->tick);
}

static void arm_tick(struct host *h)
{
	int64_t at = auth_next_tick(h->auth), now = (int64_t)host_now(h);
	uint64_t ms;

	if (at == INT64_MAX) {
		uv_timer_stop(&h->tick);
		return;
	}
	ms = at > now ? ((uint64_t)(at - now) + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS : 0;
	uv_update_time(h->o.loop);
	uv_timer_start(&h->tick, on_tick, ms, 0);
}

/* Effects may not call the authority; what they cause there is done between two rounds. */
void host_pump(struct host *h)
{
	struct auth_effect fx;

	if (h->pumping) {
		h->pump_again = true;
		return;
	}
	h->pumping = true;
	do {
		h->pump_again = false;
		while (auth_next(h->auth, &fx))
			take_effect(h, &fx);
	} while (h->pump_again);
	h->pumping = false;
	host_status_look(h);
	arm_tick(h);
}

void host_event(struct host *h, const struct auth_event *e)
{
	int rc = auth_event(h->auth, e, (int64_t)host_now(h));

	if (rc == -ENOMEM)
		host_fatal("out of memory");
	if (rc < 0)
		log_warn(HOST_MODULE, "the authority ignored an event kind=%d", (int)e->kind);
	host_pump(h);
}

/* ---- stop ---- */

bool host_is_stopping(const struct host *h)
{
	return h->stop != HOST_RUNS;
}

void host_shutdown(struct host *h, uint64_t deadline_ns, const char *cause)
{
	struct auth_event e = {.kind = AUTH_EV_SHUTDOWN};

	if (h->stop != HOST_RUNS) {
		log_info(HOST_MODULE, "stop is under way already cause=%s", cause);
		return;
	}
	log_info(HOST_MODULE, "stopping cause=%s deadline_ms=%llu", cause,
		 (unsigned long long)(deadline_ns / CLOCK_NS_PER_MS));
	h->stop = HOST_DRAINS;
	h->measured.stop_begun = host_now(h);
	e.u.shutdown.deadline = (int64_t)(host_now(h) + deadline_ns);
	host_event(h, &e);
}

/* ---- open and close ---- */

static uint64_t boot_now(void *ctx)
{
	return clock_boot_ns();
}

static void fill_random(void *ctx, void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n > 0) {
		ssize_t k = getrandom(p, n < 256 ? n : 256, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			host_fatal("no random numbers");
		p += k;
		n -= (size_t)k;
	}
}

static int make_authority(struct host *h, char *err, size_t n)
{
	const struct config *c = h->cfg;
	struct auth_config a;
	int rc;

	auth_config_init(&a);
	if (spl_name_set(&a.mesh, c->node.mesh, strlen(c->node.mesh)) < 0) {
		snprintf(err, n, "node.mesh: no legal name");
		return -EINVAL;
	}
	snprintf(a.prefix, sizeof(a.prefix), "%s", c->node.name_prefix);
	a.spots_max = c->limits.spots;
	a.pending_max = c->limits.pending_creates;
	a.ttl_ns = (int64_t)c->lease.ttl_ms * 1000000;
	a.renew_ns = (int64_t)c->lease.renew_ms * 1000000;
	a.renew_timeout_ns = (int64_t)c->lease.timeout_ms * 1000000;
	a.margin_ns = (int64_t)c->lease.margin_ms * 1000000;
	a.reclaim_on_restart = c->authority.reclaim == CONF_RECLAIM_ON_RESTART;
	a.random = fill_random;
	rc = auth_create(&h->auth, &a);
	if (rc < 0)
		snprintf(err, n,
			 rc == -ENOMEM ? "out of memory"
				       : "lease: renew_ms + timeout_ms must be less than "
					 "ttl_ms - margin_ms");
	return rc;
}

static void make_identity(struct host *h)
{
	uint8_t rnd[24];
	char uuid[37];

	fill_random(NULL, rnd, sizeof(rnd));
	spl_uuid4(rnd, uuid);
	snprintf(h->control_rid, sizeof(h->control_rid), "control-%s", uuid);
	memcpy(&h->control_life, rnd + 16, sizeof(h->control_life));
	h->control_life |= 1;
}

static int make_link(struct host *h, char *err, size_t n)
{
	const struct dplink_options o = {
		.dir = h->cfg->control.private_dir,
		.ops = &host_link_ops,
		.ctx = h,
		.now = h->o.now,
		.now_ctx = h->o.now_ctx,
	};
	int rc = dplink_open(&h->link, h->o.loop, &o);

	if (rc < 0)
		snprintf(err, n, "control.private_dir: %s",
			 rc == -EINVAL ? "path too long for a socket" : strerror(-rc));
	return rc;
}

int host_open(struct host **out, const struct host_options *o, char *err, size_t err_size)
{
	struct host *h = calloc(1, sizeof(*h));
	int rc = -ENOMEM;

	if (!h) {
		snprintf(err, err_size, "out of memory");
		return rc;
	}
	h->o = *o;
	if (!h->o.now)
		h->o.now = boot_now;
	h->cfg = o->cfg;
	TAILQ_INIT(&h->waits);
	snprintf(h->store_name, sizeof(h->store_name), "%s", store_name(o->store));
	h->started = time(NULL);
	h->started_ns = host_now(h);
	h->trace_level = SPL_TL_ERRORS;
	h->trace_share = SPL_TRACE_ALL;
	make_identity(h);
	rc = host_config_encode(h->cfg, &h->config, &h->config_bytes, &h->config_hash, err,
				err_size);
	if (rc < 0)
		goto free_it;
	rc = make_authority(h, err, err_size);
	if (rc < 0)
		goto config;
	rc = make_link(h, err, err_size);
	if (rc < 0)
		goto authority;
	rc = worker_open(&h->worker, o->loop, o->store);
	if (rc < 0) {
		snprintf(err, err_size, "cannot start the store's thread: %s", strerror(-rc));
		goto link;
	}
	uv_timer_init(o->loop, &h->tick);
	uv_timer_init(o->loop, &h->deadline);
	uv_timer_init(o->loop, &h->life_retry);
	h->tick.data = h->deadline.data = h->life_retry.data = h;
	host_status_open(h);
	*out = h;
	host_pump(h);
	host_life_scan(h);
	return 0;
link:
	dplink_close(h->link, NULL, NULL);
authority:
	auth_destroy(h->auth);
config:
	free(h->config);
free_it:
	free(h);
	return rc;
}

static void part_closed(struct host *h)
{
	if (--h->closing)
		return;
	statseg_unmap(&h->stats);
	free(h->activations);
	free(h->config);
	if (h->closed)
		h->closed(h->closed_arg);
	free(h);
}

static void handle_closed(uv_handle_t *t)
{
	part_closed(t->data);
}

static void part_done(void *arg)
{
	part_closed(arg);
}

void host_close(struct host *h, void (*done)(void *arg), void *arg)
{
	struct host_wait *w;

	h->closing = 6; /* link, worker and four timers */
	h->closed = done;
	h->closed_arg = arg;
	h->stop = HOST_FINISHED;
	/* The links first: their ends still know the waits and the authority. */
	dplink_close(h->link, part_done, h);
	h->pumping = true; /* results that come back now change nothing outside */
	worker_close(h->worker, part_done, h);
	auth_destroy(h->auth);
	host_status_close(h);
	while ((w = TAILQ_FIRST(&h->waits))) {
		if (w->kind == HOST_WAIT_METHOD)
			host_method_fail(w, SPL_E_SHUTTING_DOWN, "the daemon stops");
		host_wait_free(w);
	}
	uv_close((uv_handle_t *)&h->status.timer, handle_closed);
	uv_close((uv_handle_t *)&h->tick, handle_closed);
	uv_close((uv_handle_t *)&h->deadline, handle_closed);
	uv_close((uv_handle_t *)&h->life_retry, handle_closed);
}
