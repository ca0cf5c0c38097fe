/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: see workers.h: the thread between the lanes' rings and those who do the work. */
#include "dataplane/worker/work.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <rte_lcore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TAKE   64u /* items of one ring in a round */
#define AGAIN  1u  /* ms until a full ring is tried again */
#define LOG_NS 1000000000ull

/* A result, known from its making until it is given back, so that none is forgotten at the end. */
struct result {
	LIST_ENTRY(result) list;
	struct lane_message m;
};

/* What waits for the ring to a lane. */
struct out {
	struct lane_message *back; /* its own, taken and to be given back */
	struct works results;
};

struct workers {
	struct workers_conf conf;
	unsigned user, lanes;
	struct cpu_pool cpu;
	pthread_t thread;
	bool has_thread;
	uv_loop_t loop;
	uv_poll_t rings;
	uv_prepare_t before;
	uv_check_t after;
	uv_idle_t more; /* keeps the loop from sleeping */
	uv_timer_t again;
	uv_async_t finished; /* computations have ended, or all is to end */
	bool has_loop;
	_Atomic bool is_stopping;
	struct works open; /* operations */
	struct out *out;   /* [lanes] */
	pthread_mutex_t lock;
	/* under lock */
	struct works done; /* of the pool */
	LIST_HEAD(, result) results;
	uint64_t result_bytes;
	uint64_t log_at, untold;
};

uint64_t work_now(const struct spl_work *work)
{
	const uint64_t *fake = work->workers->conf.sh->fake_ns;

	return fake ? *fake : clock_boot_ns();
}

uint8_t work_kind(int rc)
{
	return rc == SPL_DONE ? SPL_OK : SPL_E_INTERNAL_FAILURE;
}

unsigned workers_threads(const struct workers *w)
{
	struct cpu_pool *p = (struct cpu_pool *)(uintptr_t)&w->cpu;
	unsigned n;

	pthread_mutex_lock(&p->lock);
	n = p->threads;
	pthread_mutex_unlock(&p->lock);
	return n;
}

/* ---- results ---- */

static void message_free(struct workers *w, struct lane_message *m)
{
	struct result *r;

	if (!m)
		return;
	r = (struct result *)(void *)((char *)m - offsetof(struct result, m));
	pthread_mutex_lock(&w->lock);
	LIST_REMOVE(r, list);
	w->result_bytes -= m->bytes;
	pthread_mutex_unlock(&w->lock);
	free(r);
}

static void work_free(struct spl_work *work)
{
	message_free(work->workers, work->result);
	free(work);
}

static struct lane_message *message_new(struct workers *w, uint32_t bytes)
{
	struct result *r = aligned_alloc(16, (sizeof(*r) + bytes + 15) & ~(size_t)15);
	bool fits = false;

	if (!r)
		return NULL;
	pthread_mutex_lock(&w->lock);
	if (w->result_bytes + bytes <= w->conf.result_bytes) {
		w->result_bytes += bytes;
		LIST_INSERT_HEAD(&w->results, r, list);
		fits = true;
	}
	pthread_mutex_unlock(&w->lock);
	if (!fits) {
		free(r);
		return NULL;
	}
	memset(&r->m, 0, sizeof(r->m));
	r->m.bytes = bytes;
	return &r->m;
}

int spl_work_result(struct spl_work *work, uint16_t content, const void *payload, uint32_t bytes)
{
	if (!work || content >= SPL_CONTENT_COUNT || (bytes && !payload) || work->has_result)
		return -EINVAL;
	if (bytes > work->workers->conf.message_max)
		return -EMSGSIZE;
	work->result = message_new(work->workers, bytes);
	if (!work->result)
		return -ENOBUFS;
	work->has_result = true;
	work->result->content = content;
	if (bytes)
		memcpy(work->result->data, payload, bytes);
	return 0;
}

/* One in a second: a stage that fails at every message must not fill the log. */
static void tell_failure(struct workers *w, const struct spl_work *work)
{
	uint64_t now = work_now(work);

	if (now < w->log_at) {
		w->untold++;
		return;
	}
	w->log_at = now + LOG_NS;
	log_warn("stage", "%s failed and nobody waits type=%s kind=%s untold=%llu",
		 work->cpu ? "a computation" : "an I/O operation", work->stage->desc->type,
		 spl_error_name(work->kind), (unsigned long long)w->untold);
	w->untold = 0;
}

/* The message of a result; the lane takes it over with the ring. */
static struct lane_message *reply_of(struct workers *w, struct spl_work *work)
{
	struct lane_message *m = work->result;

	if (work->kind != SPL_OK && m) {
		message_free(w, m);
		m = NULL;
	}
	work->result = NULL;
	if (!m)
		m = message_new(w, 0);
	if (!m)
		return NULL;
	m->kind = SPL_MSG_REPLY;
	m->lane = (uint16_t)w->user;
	m->error = work->kind;
	m->correlation = work->correlation;
	return m;
}

static void on_again(uv_timer_t *t);

static bool push(struct workers *w, unsigned lane, struct lane_message *m, enum hop_kind kind)
{
	void *item = hop_tag(m, kind);

	if (hop_push(&w->conf.sh->hop, w->user, lane, &item, 1) == 1)
		return true;
	uv_timer_start(&w->again, on_again, AGAIN, 0);
	return false;
}

/* As long as the ring takes it; a result without memory is its call's deadline's. */
static void send_out(struct workers *w, unsigned lane)
{
	struct out *out = &w->out[lane];
	struct spl_work *work;

	while (out->back) {
		struct lane_message *m = out->back, *next = m->next;

		if (!push(w, lane, m, HOP_RETURN))
			return;
		out->back = next;
	}
	while ((work = TAILQ_FIRST(&out->results))) {
		struct lane_message *m = reply_of(w, work);

		if (m && !push(w, lane, m, HOP_MESSAGE)) {
			work->result = m;
			return;
		}
		TAILQ_REMOVE(&out->results, work, list);
		work_free(work);
	}
}

static void on_again(uv_timer_t *t)
{
	struct workers *w = t->data;

	for (unsigned i = 0; i < w->lanes; i++)
		send_out(w, i);
}

/* On the loop's thread, or after it. */
static void finish(struct workers *w, struct spl_work *work)
{
	if (atomic_load_explicit(&w->is_stopping, memory_order_relaxed)) {
		work_free(work); /* its lane has left, or will not read its ring any more */
		return;
	}
	if (work->correlation) {
		TAILQ_INSERT_TAIL(&w->out[work->lane].results, work, list);
		send_out(w, work->lane);
		return;
	}
	if (work->kind != SPL_OK)
		tell_failure(w, work);
	work_free(work);
}

void work_done(struct spl_work *work)
{
	struct workers *w = work->workers;

	if (work->io) {
		TAILQ_REMOVE(&w->open, work, list);
		atomic_fetch_sub_explicit(&w->conf.sh->io_room.used, 1, memory_order_relaxed);
		finish(w, work);
		return;
	}
	pthread_mutex_lock(&w->lock);
	TAILQ_INSERT_TAIL(&w->done, work, list);
	pthread_mutex_unlock(&w->lock);
	uv_async_send(&w->finished);
}

/* ---- work ---- */

/* On a thread of the pool. */
static void run_cpu(struct spl_work *work)
{
	atomic_fetch_sub_explicit(&work->workers->conf.sh->cpu_room.used, 1, memory_order_relaxed);
	if (work_now(work) >= work->deadline)
		work->kind = SPL_E_DEADLINE_EXCEEDED; /* nobody waits any more */
	else
		work->kind = work_kind(work->cpu(work, work->input, work->input_bytes));
	work_done(work);
}

static void begin(struct workers *w, const struct lane_message *m)
{
	const struct lane_work *from = (const struct lane_work *)(const void *)m->data;
	uint32_t bytes = m->bytes - (uint32_t)sizeof(*from);
	size_t size = (sizeof(struct spl_work) + bytes + 63) & ~(size_t)63;
	struct spl_work *work = aligned_alloc(64, size);

	if (!work) { /* the call ends at its deadline */
		atomic_fetch_sub_explicit(from->cpu ? &w->conf.sh->cpu_room.used
						    : &w->conf.sh->io_room.used,
					  1, memory_order_relaxed);
		return;
	}
	memset(work, 0, sizeof(*work));
	work->workers = w;
	work->cpu = from->cpu;
	work->io = from->io;
	work->stage = from->stage;
	work->correlation = m->correlation;
	work->deadline = m->deadline;
	work->lane = m->lane;
	work->input_bytes = bytes;
	memcpy(work->input, m->data + sizeof(*from), bytes);
	if (work->cpu) {
		cpu_pool_add(&w->cpu, work);
	} else {
		TAILQ_INSERT_TAIL(&w->open, work, list);
		io_begin(&w->loop, work);
	}
}

/* ---- rings ---- */

static void take(struct workers *w)
{
	const struct hop *h = &w->conf.sh->hop;

	for (unsigned lane = 0; lane < w->lanes; lane++) {
		void *item[TAKE];
		unsigned n = hop_pop(h, lane, w->user, item, TAKE);

		for (unsigned i = 0; i < n; i++) {
			struct lane_message *m = hop_pointer(item[i]);

			if (hop_kind(item[i]) == HOP_RETURN) {
				message_free(w, m);
				continue;
			}
			begin(w, m);
			m->next = w->out[lane].back;
			w->out[lane].back = m;
		}
		if (w->out[lane].back)
			send_out(w, lane);
	}
}

static void nothing(uv_idle_t *h)
{
	(void)h;
}

/* Before the loop sleeps: takes what is there, says that it sleeps, and looks once more (wake.h).
 */
static void before_sleep(uv_prepare_t *h)
{
	struct workers *w = h->data;
	const struct hop *hop = &w->conf.sh->hop;

	take(w);
	wake_park(&hop->wake[w->user]);
	if (hop_idle(hop, w->user)) {
		uv_idle_stop(&w->more);
		return;
	}
	wake_unpark(&hop->wake[w->user]);
	uv_idle_start(&w->more, nothing);
}

static void after_sleep(uv_check_t *h)
{
	const struct workers *w = h->data;

	wake_unpark(&w->conf.sh->hop.wake[w->user]);
}

static void on_rings(uv_poll_t *p, int status, int events)
{
	struct workers *w = p->data;
	uint64_t count;

	(void)status;
	(void)events;
	if (read(w->conf.sh->hop.wake[w->user].fd, &count, sizeof(count)) < 0)
		return; /* before_sleep() looks at the rings in any case */
}

static void on_finished(uv_async_t *h)
{
	struct workers *w = h->data;
	struct works done;
	struct spl_work *work;

	if (atomic_load_explicit(&w->is_stopping, memory_order_acquire))
		uv_stop(&w->loop);
	TAILQ_INIT(&done);
	pthread_mutex_lock(&w->lock);
	TAILQ_CONCAT(&done, &w->done, list);
	pthread_mutex_unlock(&w->lock);
	while ((work = TAILQ_FIRST(&done))) {
		TAILQ_REMOVE(&done, work, list);
		finish(w, work);
	}
}

static void *thread_main(void *arg)
{
	struct workers *w = arg;

	uv_run(&w->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* ---- start and end ---- */

static int make_loop(struct workers *w)
{
	int rc = uv_loop_init(&w->loop);

	if (rc)
		return rc;
	w->has_loop = true;
	w->rings.data = w;
	w->before.data = w;
	w->after.data = w;
	w->again.data = w;
	w->finished.data = w;
	uv_prepare_init(&w->loop, &w->before);
	uv_check_init(&w->loop, &w->after);
	uv_idle_init(&w->loop, &w->more);
	uv_timer_init(&w->loop, &w->again);
	rc = uv_async_init(&w->loop, &w->finished, on_finished);
	if (!rc)
		rc = uv_poll_init(&w->loop, &w->rings, w->conf.sh->hop.wake[w->user].fd);
	if (!rc)
		rc = uv_poll_start(&w->rings, UV_READABLE, on_rings);
	if (!rc)
		rc = uv_prepare_start(&w->before, before_sleep);
	if (!rc)
		rc = uv_check_start(&w->after, after_sleep);
	return rc;
}

/* Signals are the agent's. */
static int start_threads(struct workers *w)
{
	const struct workers_conf *c = &w->conf;
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = cpu_pool_start(&w->cpu, c->cpu_min, c->cpu_max, c->idle_ms, run_cpu);
	if (!rc) {
		rc = rte_ctrl_thread_create(&w->thread, "worker-io", NULL, thread_main, w);
		w->has_thread = rc == 0;
		if (rc)
			(void)cpu_pool_stop(&w->cpu, UINT32_MAX, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void close_handle(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

static void free_loop(struct workers *w)
{
	if (!w->has_loop)
		return;
	uv_walk(&w->loop, close_handle, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	uv_loop_close(&w->loop);
}

/* Threads are gone. */
static void free_workers(struct workers *w)
{
	struct spl_work *work;
	struct result *r;

	free_loop(w);
	for (unsigned i = 0; i < w->lanes && w->out; i++)
		while ((work = TAILQ_FIRST(&w->out[i].results))) {
			TAILQ_REMOVE(&w->out[i].results, work, list);
			work_free(work);
		}
	while ((work = TAILQ_FIRST(&w->done))) {
		TAILQ_REMOVE(&w->done, work, list);
		work_free(work);
	}
	while ((r = LIST_FIRST(&w->results))) { /* in rings and lanes that are no more */
		LIST_REMOVE(r, list);
		free(r);
	}
	pthread_mutex_destroy(&w->lock);
	free(w->out);
	free(w);
}

struct workers *workers_start(const struct workers_conf *conf, char *err, size_t n)
{
	struct workers *w = calloc(1, sizeof(*w));
	int rc = -ENOMEM;

	if (!w)
		goto fail;
	w->conf = *conf;
	w->lanes = conf->sh->lanes;
	w->user = HOP_WORKERS(w->lanes);
	TAILQ_INIT(&w->open);
	TAILQ_INIT(&w->done);
	pthread_mutex_init(&w->lock, NULL);
	w->out = calloc(w->lanes, sizeof(*w->out));
	for (unsigned i = 0; i < w->lanes && w->out; i++)
		TAILQ_INIT(&w->out[i].results);
	if (w->out)
		rc = make_loop(w);
	if (!rc)
		rc = start_threads(w);
	if (rc)
		goto fail;
	conf->sh->cpu_room.max = conf->cpu_queue;
	conf->sh->io_room.max = conf->io_max;
	return w;
fail:
	snprintf(err, n, "workers: %s", strerror(-rc));
	if (w)
		free_workers(w);
	return NULL;
}

bool workers_stop(struct workers *w, uint32_t wait_ms)
{
	struct spl_work *work, *next;

	if (!w)
		return true;
	atomic_store_explicit(&w->is_stopping, true, memory_order_release);
	uv_async_send(&w->finished);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	w->has_thread = false;
	if (!cpu_pool_stop(&w->cpu, wait_ms, work_free))
		return false;
	for (work = TAILQ_FIRST(&w->open); work; work = next) {
		next = TAILQ_NEXT(work, list);
		io_abort(work);
	}
	free_workers(w);
	return true;
}