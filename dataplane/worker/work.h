/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: one computation or operation, as the files of the workers share it. It has a
 * copy of everything it needs of its lane, and belongs to one thread at a time.
 */
#ifndef SPL_WORKER_WORK_H
#define SPL_WORKER_WORK_H

#include "dataplane/worker/workers.h"

#include <pthread.h>
#include <spotlane/worker.h>
#include <sys/queue.h>
#include <uv.h>

struct spl_work {
	TAILQ_ENTRY(spl_work) list;
	struct workers *workers;
	spl_cpu_fn cpu;
	const struct spl_io *io;
	const struct spot_stage *stage;
	uint64_t correlation; /* 0: nobody waits */
	uint64_t deadline;    /* CLOCK_BOOTTIME ns */
	uint16_t lane;
	uint8_t kind; /* how it ended: SPL_OK or an error */
	bool has_result;
	struct lane_message *result;

	/* of an operation */
	void *memory;
	uv_timer_t timer; /* the next time, of spl_io_wait() or the deadline */
	uv_poll_t *poll;  /* NULL: waits for no descriptor */
	bool waits;
	bool is_own_time; /* the timer is for wait_ms, not for the deadline */
	uint32_t wait_ms;

	uint32_t input_bytes;
	uint8_t input[] __attribute__((aligned(16)));
};
TAILQ_HEAD(works, spl_work);

uint64_t work_now(const struct spl_work *work);

/* What a function returned, as its caller gets it (S-WORK-2). */
uint8_t work_kind(int rc);

/* cpu.c. Threads that take works in their order. */
struct cpu_thread {
	struct cpu_pool *pool;
	pthread_t id;
	bool is_used, has_left; /* left: to be joined */
};
struct cpu_pool {
	pthread_mutex_t lock;
	pthread_cond_t some;  /* work, or the end */
	pthread_cond_t fewer; /* a thread has left */
	struct works queue;
	unsigned waiting, idle, threads;
	unsigned min, max, idle_ms;
	bool is_stopping;
	struct cpu_thread *thread; /* [max] */
	void (*run)(struct spl_work *work);
};
/* Pool of `min` threads; 0 or -errno, undone on failure. */
int cpu_pool_start(struct cpu_pool *p, unsigned min, unsigned max, unsigned idle_ms,
		   void (*run)(struct spl_work *work));
void cpu_pool_add(struct cpu_pool *p, struct spl_work *work); /* one thread only */
/* Gives up what waits to `drop`; true when every thread has left, and the pool is gone then. */
bool cpu_pool_stop(struct cpu_pool *p, uint32_t wait_ms, void (*drop)(struct spl_work *work));

/* io.c. On the thread of `loop`. */
void io_begin(uv_loop_t *loop, struct spl_work *work);
void io_abort(struct spl_work *work); /* ends it now */

/* workers.c. The work is over and knows its kind. Any thread of the workers for a computation, the
 * loop's for an operation. */
void work_done(struct spl_work *work);

#endif
