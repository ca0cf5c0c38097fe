/* SPDX-License-Identifier: BSD-3-Clause */
/* The store's thread: order, bound, and nothing lost when it is closed. */
#include "control/host/worker.h"
#include "control/store/store_fault.h"
#include "control/store/store_memory.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#define N (WORKER_QUEUE_MAX + 10)

static uv_loop_t loop;
static struct worker *w;
static struct store_req req[N];
static struct store_batch batch[N];
static unsigned order[N], n_done;
static bool closed;
static atomic_bool gate; /* false: the store waits */

static atomic_int waiting;

static enum store_fault wait_for_gate(void *ctx, enum store_op op)
{
	const uint64_t end = t_wait_end();

	atomic_store(&waiting, 1);
	while (!atomic_load(&gate) && !t_wait_over(end))
		usleep(100);
	return atomic_load(&gate) ? STORE_FAULT_NONE : STORE_FAULT_FAIL;
}

static void on_done(void *ctx, struct store_batch *b)
{
	order[n_done++] = (unsigned)(b - batch);
}

/* Opens the gate while worker_close() waits for the thread, as good as always. */
static void open_later(void *arg)
{
	usleep(20000);
	atomic_store(&gate, true);
}

static void on_closed(void *arg)
{
	closed = true;
}

static void pass(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
	usleep(10);
}

static void begin(void)
{
	struct store *inner, *st;

	n_done = 0;
	closed = false;
	uv_loop_init(&loop);
	CU_ASSERT_EQUAL_FATAL(store_memory_open(&inner, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(store_fault_open(&st, inner, wait_for_gate, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(worker_open(&w, &loop, st), 0);
	for (unsigned i = 0; i < N; i++) {
		req[i] = (struct store_req){.op = STORE_READ};
		req[i].u.read.key = (struct store_bytes){"k", 1};
		batch[i] = (struct store_batch){.reqs = &req[i], .n = 1};
	}
}

static void end(void)
{
	worker_close(w, on_closed, NULL);
	T_UNTIL(closed, pass());
	CU_ASSERT_EQUAL(uv_loop_close(&loop), 0);
}

static void test_worker_runs_in_order_and_answers_on_the_loop(void)
{
	atomic_store(&gate, true);
	begin();
	for (unsigned i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(worker_run(w, &batch[i], on_done, NULL), 0);
	T_UNTIL(n_done >= 20, pass());
	for (unsigned i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(order[i], i);
		CU_ASSERT_EQUAL(req[i].rc, STORE_MISSING);
	}
	end();
	CU_ASSERT_EQUAL(n_done, 20);
}

static void test_worker_refuses_what_its_queue_cannot_hold(void)
{
	unsigned taken = 0;

	atomic_store(&gate, false);
	begin();
	while (taken < N && worker_run(w, &batch[taken], on_done, NULL) == 0)
		taken++;
	CU_ASSERT_EQUAL(taken, WORKER_QUEUE_MAX);
	CU_ASSERT_EQUAL(worker_run(w, &batch[taken], on_done, NULL), -ENOBUFS);
	atomic_store(&gate, true);
	T_UNTIL(n_done >= taken, pass());
	CU_ASSERT_EQUAL(worker_run(w, &batch[taken], on_done, NULL), 0);
	end();
	CU_ASSERT_EQUAL(n_done, taken + 1);
}

static void test_worker_gives_every_batch_back_when_closed(void)
{
	unsigned ran = 0;
	uv_thread_t opener;

	atomic_store(&gate, false);
	atomic_store(&waiting, 0);
	begin();
	for (unsigned i = 0; i < 30; i++)
		CU_ASSERT_EQUAL(worker_run(w, &batch[i], on_done, NULL), 0);
	/* The first one runs: it is finished, whatever happens. */
	T_UNTIL(atomic_load(&waiting) != 0, usleep(100));
	CU_ASSERT_EQUAL(uv_thread_create(&opener, open_later, NULL), 0);
	end();
	CU_ASSERT_EQUAL(uv_thread_join(&opener), 0);
	CU_ASSERT_EQUAL(n_done, 30);
	for (unsigned i = 0; i < 30; i++) {
		CU_ASSERT_EQUAL(order[i], i);
		if (i == ran && req[i].rc == STORE_MISSING)
			ran++;
	}
	CU_ASSERT(ran >= 1);
	for (unsigned i = ran; i < 30; i++) /* and behind the first that did not run, none did */
		CU_ASSERT_EQUAL(req[i].rc, STORE_FAILED);
}

static const struct t_case cases[] = {
	T(test_worker_runs_in_order_and_answers_on_the_loop),
	T(test_worker_refuses_what_its_queue_cannot_hold),
	T(test_worker_gives_every_batch_back_when_closed),
};

static const struct t_suite suites[] = {T_SUITE("worker", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
