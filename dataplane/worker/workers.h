/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the workers: what handlers hand over with spl_run_cpu() and spl_run_io().
 *
 * Owns the thread that takes work out of the lanes' rings (user HOP_WORKERS of hop.h), runs all
 * steps of I/O operations and sends results back, and the pool of threads for computations. None of
 * them ever runs on a lane's core unless the machine has no other (S-WORK-5). Bounds: computations
 * that wait and operations that are open by lane_shared.cpu_room and io_room, which the lanes ask;
 * threads by cpu_max; bytes of results that nobody has given back yet by result_bytes.
 *
 * workers.c: that thread, rings, results; cpu.c: the pool; io.c: operations.
 */
#ifndef SPL_WORKER_WORKERS_H
#define SPL_WORKER_WORKERS_H

#include "dataplane/lane/lane.h"

struct workers_conf {
	struct lane_shared *sh;	   /* hop, clock; cpu_room and io_room are set here */
	uint32_t cpu_min, cpu_max; /* threads: min always, more while work waits; 1..1024 */
	uint32_t idle_ms;	   /* a thread above the minimum ends after so long without work */
	uint32_t cpu_queue;	   /* computations that wait for a thread */
	uint32_t io_max;	   /* operations that are open */
	uint32_t message_max;	   /* bytes of one result */
	uint64_t result_bytes;	   /* of all together */
};

struct workers;

/* Agent, before lanes run. NULL and a sentence in `err`; then nothing is left behind. */
struct workers *workers_start(const struct workers_conf *conf, char *err, size_t n);

/* Agent, after lanes have left. What waits is dropped, operations are ended; computations that run
 * are waited for, at most `wait_ms`. False: one still runs; then nothing was freed, and neither
 * the stage modules nor *conf.sh may be; may be called again. NULL is fine. */
bool workers_stop(struct workers *w, uint32_t wait_ms) __attribute__((warn_unused_result));

/* Threads of the pool now; for tests and statistics, any thread. */
unsigned workers_threads(const struct workers *w);

#endif
