/* SPDX-License-Identifier: BSD-3-Clause */
/* See worker.h. `todo` and `done` are guarded by the mutex; everything else is the loop's. */
#include "control/host/worker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
	struct store_batch *b;
	worker_done_fn fn;
	void *ctx;
};

struct ring {
	struct job q[WORKER_QUEUE_MAX];
	unsigned head, count;
};

struct worker {
	uv_thread_t thread;
	uv_mutex_t lock;
	uv_cond_t wake;
	uv_async_t async;
	struct store *store; /* the thread's until it has ended */
	struct ring todo, done;
	bool running, stop;
	unsigned out; /* batches not yet given back: they keep the loop alive */
	void (*closed)(void *arg);
	void *closed_arg;
};

static void ring_put(struct ring *r, struct job j)
{
	r->q[(r->head + r->count++) % WORKER_QUEUE_MAX] = j;
}

static struct job ring_take(struct ring *r)
{
	struct job j = r->q[r->head];

	r->head = (r->head + 1) % WORKER_QUEUE_MAX;
	r->count--;
	return j;
}

static void thread_main(void *arg)
{
	struct worker *w = arg;
	struct job j;

	uv_mutex_lock(&w->lock);
	for (;;) {
		while (!w->todo.count && !w->stop)
			uv_cond_wait(&w->wake, &w->lock);
		if (w->stop)
			break;
		j = ring_take(&w->todo);
		w->running = true;
		uv_mutex_unlock(&w->lock);
		store_run(w->store, j.b);
		uv_mutex_lock(&w->lock);
		w->running = false;
		ring_put(&w->done, j);
		uv_async_send(&w->async);
	}
	uv_mutex_unlock(&w->lock);
}

static void deliver(struct worker *w)
{
	struct job j;

	for (;;) {
		uv_mutex_lock(&w->lock);
		if (!w->done.count) {
			uv_mutex_unlock(&w->lock);
			return;
		}
		j = ring_take(&w->done);
		uv_mutex_unlock(&w->lock);
		if (--w->out == 0)
			uv_unref((uv_handle_t *)&w->async);
		j.fn(j.ctx, j.b);
	}
}

static void on_async(uv_async_t *a)
{
	deliver(a->data);
}

static void on_closed(uv_handle_t *h)
{
	struct worker *w = h->data;

	uv_cond_destroy(&w->wake);
	uv_mutex_destroy(&w->lock);
	if (w->closed)
		w->closed(w->closed_arg);
	free(w);
}

int worker_open(struct worker **out, uv_loop_t *loop, struct store *st)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->store = st;
	if (uv_mutex_init(&w->lock) < 0)
		goto free_it;
	if (uv_cond_init(&w->wake) < 0)
		goto mutex;
	if (uv_async_init(loop, &w->async, on_async) < 0)
		goto cond;
	w->async.data = w;
	uv_unref((uv_handle_t *)&w->async);
	if (uv_thread_create(&w->thread, thread_main, w) < 0)
		goto async;
	*out = w;
	return 0;
async:
	uv_close((uv_handle_t *)&w->async, on_closed); /* frees it, on the loop */
	return -EAGAIN;
cond:
	uv_cond_destroy(&w->wake);
mutex:
	uv_mutex_destroy(&w->lock);
free_it:
	free(w);
	return -EAGAIN;
}

int worker_run(struct worker *w, struct store_batch *b, worker_done_fn fn, void *ctx)
{
	int rc = -ENOBUFS;

	uv_mutex_lock(&w->lock);
	/* A job has room in `done` when it is finished, because it is counted until then. */
	if (w->todo.count + w->done.count + w->running < WORKER_QUEUE_MAX) {
		ring_put(&w->todo, (struct job){b, fn, ctx});
		uv_cond_signal(&w->wake);
		rc = 0;
	}
	uv_mutex_unlock(&w->lock);
	if (rc == 0 && w->out++ == 0)
		uv_ref((uv_handle_t *)&w->async);
	return rc;
}

void worker_close(struct worker *w, void (*done)(void *arg), void *arg)
{
	uv_mutex_lock(&w->lock);
	w->stop = true;
	uv_cond_signal(&w->wake);
	uv_mutex_unlock(&w->lock);
	uv_thread_join(&w->thread);
	deliver(w);
	while (w->todo.count) {
		struct job j = ring_take(&w->todo);

		for (size_t i = 0; i < j.b->n; i++) {
			j.b->reqs[i].rc = STORE_FAILED;
			if (j.b->reqs[i].op == STORE_TXN)
				j.b->reqs[i].u.txn.rc = STORE_FAILED;
		}
		snprintf(j.b->text, sizeof(j.b->text), "the store is being closed");
		j.fn(j.ctx, j.b);
	}
	store_close(w->store);
	w->closed = done;
	w->closed_arg = arg;
	uv_close((uv_handle_t *)&w->async, on_closed);
}
