/* SPDX-License-Identifier: BSD-3-Clause */
/* The authority's frame: creation and end, effects, timers, logs, the entry points that only pass
 * on. Called on the driver's thread; owns the whole state; allocates only in inputs that can say
 * -ENOMEM. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared bytes ---- */

struct auth_buf *auth_buf_make(struct auth_bytes from)
{
	struct auth_buf *b = from.n ? malloc(sizeof(*b) + from.n) : NULL;

	if (!b)
		return NULL;
	b->refs = 1;
	b->n = from.n;
	memcpy(b->b, from.p, from.n);
	return b;
}

struct auth_buf *auth_buf_ref(struct auth_buf *b)
{
	if (b)
		b->refs++;
	return b;
}

void auth_buf_put(struct auth_buf *b)
{
	if (b && --b->refs == 0)
		free(b);
}

/* ---- effects ---- */

void auth_fx_queue(struct auth *a, struct auth_fx *fx)
{
	if (!fx->queued)
		TAILQ_INSERT_TAIL(&a->effects, fx, link);
	fx->queued = true;
}

void auth_fx_drop(struct auth *a, struct auth_fx *fx)
{
	if (fx->queued)
		TAILQ_REMOVE(&a->effects, fx, link);
	fx->queued = false;
}

void auth_fx_plain(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->kind = fx->kind;
}

static void release_pulled(struct auth *a)
{
	struct auth_op *op = a->held_op;

	a->held_op = NULL;
	if (op)
		auth_op_pulled(a, op);
}

bool auth_next(struct auth *a, struct auth_effect *out)
{
	struct auth_fx *fx;

	release_pulled(a);
	fx = TAILQ_FIRST(&a->effects);
	if (!fx)
		return false;
	auth_fx_drop(a, fx);
	memset(out, 0, sizeof(*out));
	out->kind = fx->kind;
	fx->fill(a, fx, out);
	return true;
}

/* ---- logs: a ring; the newest are lost when nobody pulls ---- */

static void fill_log(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	struct auth_logrec *l = &a->logs[a->log_head % AUTH_LOGS_MAX];

	out->u.log.level = l->level;
	out->u.log.text = l->text;
	a->log_head++;
	a->log_n--;
	if (a->log_n)
		auth_fx_queue(a, fx);
}

void auth_log(struct auth *a, enum auth_log level, const char *fmt, ...)
{
	struct auth_logrec *l;
	va_list ap;

	/* One place stays free: the record pulled last is still being read. */
	if (a->log_n == AUTH_LOGS_MAX - 1) {
		a->logs_lost++;
		return;
	}
	l = &a->logs[(a->log_head + a->log_n++) % AUTH_LOGS_MAX];
	l->level = level;
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	auth_fx_queue(a, &a->log_fx);
}

/* ---- timers: a binary heap ---- */

int auth_timers_reserve(struct auth *a, size_t more)
{
	struct auth_timers *t = &a->timers;
	size_t room = t->room ? t->room : 64;
	struct auth_timer **heap;

	while (room < more + 1)
		room *= 2;
	if (room == t->room)
		return 0;
	heap = realloc(t->heap, room * sizeof(struct auth_timer *));
	if (!heap)
		return -ENOMEM;
	t->heap = heap;
	t->room = room;
	return 0;
}

static void heap_set(struct auth_timers *h, size_t pos, struct auth_timer *t)
{
	h->heap[pos] = t;
	t->pos = pos;
}

/* Moves `t`, whose place is the hole at `pos`, up or down to where it belongs. */
static void heap_settle(struct auth_timers *h, size_t pos, struct auth_timer *t)
{
	while (pos > 1 && t->at < h->heap[pos / 2]->at) {
		heap_set(h, pos, h->heap[pos / 2]);
		pos /= 2;
	}
	for (;;) {
		size_t kid = pos * 2;

		if (kid < h->n && h->heap[kid + 1]->at < h->heap[kid]->at)
			kid++;
		if (kid > h->n || h->heap[kid]->at >= t->at)
			break;
		heap_set(h, pos, h->heap[kid]);
		pos = kid;
	}
	heap_set(h, pos, t);
}

void auth_timer_stop(struct auth *a, struct auth_timer *t)
{
	struct auth_timers *h = &a->timers;
	size_t pos = t->pos;
	struct auth_timer *last;

	if (!pos)
		return;
	t->pos = 0;
	last = h->heap[h->n--];
	if (last != t)
		heap_settle(h, pos, last);
}

void auth_timer_arm(struct auth *a, struct auth_timer *t, int64_t at)
{
	auth_timer_stop(a, t);
	t->at = at;
	a->timers.n++;
	heap_settle(&a->timers, a->timers.n, t);
}

int64_t auth_next_tick(const struct auth *a)
{
	return a->timers.n ? a->timers.heap[1]->at : INT64_MAX;
}

/* ---- life ---- */

uint64_t auth_random64(struct auth *a)
{
	uint64_t v = 0;

	while (v == 0)
		a->cfg.random(a->cfg.random_ctx, &v, sizeof(v));
	return v;
}

void auth_config_init(struct auth_config *cfg)
{
	*cfg = (struct auth_config){
		.pending_max = 128,
		.ops_max = 4096,
		.group_max = 512,
		.request_bytes_max = 64ULL << 20,
		.ttl_ns = 15000 * AUTH_MS,
		.renew_ns = 5000 * AUTH_MS,
		.renew_timeout_ns = 3000 * AUTH_MS,
		.margin_ns = 5000 * AUTH_MS,
	};
}

static bool prefix_ok(const char *p)
{
	static const char ok[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strnlen(p, 65);

	return n >= 1 && n <= 64 && strspn(p, ok) == n;
}

/* A-LEASE-5: all positive, renew + timeout < ttl - margin. */
static bool lease_times_ok(const struct auth_config *c)
{
	return c->renew_ns > 0 && c->renew_timeout_ns > 0 && c->margin_ns > 0 && c->ttl_ns > 0 &&
	       c->renew_ns + c->renew_timeout_ns < c->ttl_ns - c->margin_ns;
}

static int make_tables(struct auth *a)
{
	size_t n = 64;

	while (n < a->cfg.ops_max)
		n *= 2;
	a->mask = n - 1;
	a->op_buckets = calloc(n, sizeof(struct auth_op *));
	a->id_buckets = calloc(n, sizeof(struct auth_work *));
	a->identity_buckets = calloc(n, sizeof(struct auth_work *));
	a->cmd_buckets = calloc(n, sizeof(struct auth_work *));
	a->batch.b.reqs = calloc(AUTH_BATCH_REQS, sizeof(struct store_req));
	a->batch.slots = calloc(AUTH_BATCH_REQS, sizeof(struct auth_slot));
	if (!a->op_buckets || !a->id_buckets || !a->identity_buckets || !a->cmd_buckets ||
	    !a->batch.b.reqs || !a->batch.slots)
		return -ENOMEM;
	return auth_timers_reserve(a, 64);
}

int auth_create(struct auth **out, const struct auth_config *cfg)
{
	struct auth *a;

	if (!cfg->random || !spl_name_valid(cfg->mesh.b, cfg->mesh.len) ||
	    !prefix_ok(cfg->prefix) || !lease_times_ok(cfg) || !cfg->pending_max || !cfg->ops_max ||
	    !cfg->group_max || cfg->group_max > AUTH_GROUP_MAX)
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->cfg = *cfg;
	TAILQ_INIT(&a->effects);
	TAILQ_INIT(&a->held);
	TAILQ_INIT(&a->steps);
	TAILQ_INIT(&a->jobs);
	STAILQ_INIT(&a->sweeps);
	a->log_fx = (struct auth_fx){.kind = AUTH_FX_LOG, .fill = fill_log};
	auth_group_init(a);
	auth_host_init(a);
	if (make_tables(a)) {
		auth_destroy(a);
		return -ENOMEM;
	}
	a->secret = auth_random64(a);
	a->attempt_seq = auth_random64(a);
	a->cmd_seq = auth_random64(a);
	*out = a;
	return 0;
}

void auth_destroy(struct auth *a)
{
	if (!a)
		return;
	release_pulled(a);
	if (a->id_buckets && a->identity_buckets && a->cmd_buckets)
		auth_work_fini(a);
	auth_sweep_fini(a);
	auth_reclaim_fini(a);
	if (a->op_buckets)
		auth_op_fini(a);
	auth_host_fini(a);
	auth_batch_fini(a);
	free(a->types);
	free(a->timers.heap);
	free(a->op_buckets);
	free(a->id_buckets);
	free(a->identity_buckets);
	free(a->cmd_buckets);
	free(a);
}

/* ---- inputs ---- */

void auth_enter(struct auth *a, int64_t now)
{
	release_pulled(a);
	if (now > a->now)
		a->now = now;
}

void auth_pump(struct auth *a)
{
	do
		auth_host_check(a);
	while (auth_sweep_pump(a));
	auth_batch_pump(a);
}

void auth_tick(struct auth *a, int64_t now)
{
	auth_enter(a, now);
	while (a->timers.n && a->timers.heap[1]->at <= a->now) {
		struct auth_timer *t = a->timers.heap[1];

		auth_timer_stop(a, t);
		t->fire(a, t);
	}
	auth_pump(a);
}

int auth_event(struct auth *a, const struct auth_event *e, int64_t now)
{
	int err = 0;

	auth_enter(a, now);
	switch (e->kind) {
	case AUTH_EV_ANSWER:
		auth_work_answer(a, e);
		break;
	case AUTH_EV_LINK_UP:
		auth_work_resend(a);
		auth_reclaim_resend(a);
		err = auth_host_event(a, e);
		break;
	case AUTH_EV_LIFECYCLE:
		auth_reclaim_lifecycle(a, e);
		break;
	case AUTH_EV_HOST_START:
	case AUTH_EV_HOST_RESUME:
	case AUTH_EV_HOST_DEAD:
	case AUTH_EV_INVENTORY:
	case AUTH_EV_INVENTORY_END:
	case AUTH_EV_SHUTDOWN:
		err = auth_host_event(a, e);
		break;
	}
	auth_pump(a);
	return err;
}

void auth_status(const struct auth *a, struct auth_status *out)
{
	*out = a->count;
	out->state = a->host.state;
	out->id = a->host.id;
	out->lease_held = a->host.held && a->now < a->host.deadline;
	out->lease_deadline = a->host.held ? a->host.deadline : 0;
	out->spots = a->spots_active;
	out->reserved = a->spots_reserved;
	out->ops = a->n_ops;
	out->waiters = a->n_waiters;
	out->pending = a->n_pending;
	out->pending_max = a->cfg.pending_max;
}

bool auth_type_status(const struct auth *a, size_t i, struct auth_type_status *out)
{
	if (i >= a->n_types)
		return false;
	*out = (struct auth_type_status){
		.name = &a->types[i].t.name,
		.kind = a->types[i].t.kind,
		.active = a->types[i].active,
		.reserved = a->types[i].reserved,
		.limit = a->types[i].t.limit,
	};
	return true;
}
