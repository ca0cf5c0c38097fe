/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the pool of threads for computations (S-WORK-1,4). */
#include "dataplane/worker/work.h"

#include <errno.h>
#include <rte_lcore.h>
#include <stdlib.h>
#include <time.h>

static struct timespec in_ms(uint32_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Waits for work. False: this thread is not needed any more. */
static bool await(struct cpu_pool *p)
{
	struct timespec until = in_ms(p->idle_ms);
	int rc = 0;

	p->idle++;
	while (TAILQ_EMPTY(&p->queue) && !p->is_stopping && rc != ETIMEDOUT) {
		if (p->threads > p->min)
			rc = pthread_cond_timedwait(&p->some, &p->lock, &until);
		else
			pthread_cond_wait(&p->some, &p->lock);
		if (p->threads <= p->min)
			rc = 0; /* others have left meanwhile */
	}
	p->idle--;
	return !p->is_stopping && (rc != ETIMEDOUT || !TAILQ_EMPTY(&p->queue));
}

static void *thread_main(void *arg)
{
	struct cpu_thread *t = arg;
	struct cpu_pool *p = t->pool;

	pthread_mutex_lock(&p->lock);
	while (await(p)) {
		struct spl_work *work = TAILQ_FIRST(&p->queue);

		TAILQ_REMOVE(&p->queue, work, list);
		p->waiting--;
		pthread_mutex_unlock(&p->lock);
		p->run(work);
		pthread_mutex_lock(&p->lock);
	}
	p->threads--;
	t->has_left = true;
	pthread_cond_signal(&p->fewer);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* One more thread; the lock is held. */
static int spawn(struct cpu_pool *p)
{
	struct cpu_thread *t = p->thread;
	int rc;

	while (t->is_used && !t->has_left)
		t++; /* there is one: threads < max */
	if (t->is_used)
		pthread_join(t->id, NULL);
	t->is_used = false;
	t->has_left = false;
	t->pool = p;
	/* A thread beside the lanes' cores, as far as there are such. */
	rc = rte_ctrl_thread_create(&t->id, "worker-cpu", NULL, thread_main, t);
	if (rc)
		return rc < 0 ? rc : -rc;
	t->is_used = true;
	p->threads++;
	return 0;
}

static int init(struct cpu_pool *p)
{
	pthread_condattr_t attr;
	int rc = pthread_mutex_init(&p->lock, NULL);

	if (rc)
		return -rc;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&p->some, &attr);
	if (!rc)
		rc = pthread_cond_init(&p->fewer, &attr);
	pthread_condattr_destroy(&attr);
	return -rc;
}

int cpu_pool_start(struct cpu_pool *p, unsigned min, unsigned max, unsigned idle_ms,
		   void (*run)(struct spl_work *work))
{
	int rc;

	*p = (struct cpu_pool){.min = min, .max = max, .idle_ms = idle_ms, .run = run};
	TAILQ_INIT(&p->queue);
	p->thread = calloc(max, sizeof(*p->thread));
	if (!p->thread)
		return -ENOMEM;
	rc = init(p);
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < min && !rc; i++)
		rc = spawn(p);
	pthread_mutex_unlock(&p->lock);
	if (rc)
		(void)cpu_pool_stop(p, UINT32_MAX, NULL);
	return rc;
}

void cpu_pool_add(struct cpu_pool *p, struct spl_work *work)
{
	pthread_mutex_lock(&p->lock);
	TAILQ_INSERT_TAIL(&p->queue, work, list);
	p->waiting++;
	if (p->waiting > p->idle && p->threads < p->max)
		(void)spawn(p); /* refused: those that are there will come to it */
	pthread_cond_signal(&p->some);
	pthread_mutex_unlock(&p->lock);
}

bool cpu_pool_stop(struct cpu_pool *p, uint32_t wait_ms, void (*drop)(struct spl_work *work))
{
	struct timespec until = in_ms(wait_ms);
	struct spl_work *work;
	bool all;

	pthread_mutex_lock(&p->lock);
	p->is_stopping = true;
	while ((work = TAILQ_FIRST(&p->queue))) {
		TAILQ_REMOVE(&p->queue, work, list);
		drop(work);
	}
	pthread_cond_broadcast(&p->some);
	while (p->threads > 0)
		if (pthread_cond_timedwait(&p->fewer, &p->lock, &until) == ETIMEDOUT)
			break;
	all = p->threads == 0;
	pthread_mutex_unlock(&p->lock);
	if (!all)
		return false;
	for (unsigned i = 0; i < p->max; i++)
		if (p->thread[i].is_used)
			pthread_join(p->thread[i].id, NULL);
	pthread_cond_destroy(&p->some);
	pthread_cond_destroy(&p->fewer);
	pthread_mutex_destroy(&p->lock);
	free(p->thread);
	return true;
}
