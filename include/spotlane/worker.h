/* SPDX-License-Identifier: BSD-3-Clause */
/* Work off the lanes: part of the stage interface, <spotlane/stage.h> includes it (S-WORK).
 *
 * A computation runs on a thread of a bounded pool. An I/O operation is a row of short steps on one
 * thread that all operations share: it waits for a descriptor or a time without a thread of its
 * own. Neither ever runs on a lane, sees the Spot's state or touches a turn: all it has is its
 * input, and all it gives is its result. How many there may be is set by the configuration's
 * `workers` group; the two kinds do not take each other's room.
 */
#ifndef SPOTLANE_WORKER_H
#define SPOTLANE_WORKER_H

#include <spotlane/call.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spl_work; /* a computation or operation that runs; valid in its own functions only */

/* A computation. Runs once, on a thread of the pool; may take its time, allocate, lock and call the
 * kernel. `input` is its own copy, aligned to 16 bytes, until it returns.
 * Returns SPL_DONE or SPL_FAIL(any kind), which its caller gets as InternalFailure (S-WORK-2).
 */
typedef int (*spl_cpu_fn)(struct spl_work *work, const void *input, uint32_t input_bytes);

/* An I/O operation: constant, for the life of the module. */
struct spl_io {
	uint32_t memory_bytes; /* zeroed, aligned to 16, for all steps; up to SPL_IO_MEMORY_MAX */

	/* One step; must not block. The first has `ready` 0, the others what spl_io_wait() waited
	 * for. Returns SPL_SUSPENDED after a spl_io_wait(), otherwise as a computation does. */
	int (*step)(struct spl_work *work, void *memory, unsigned ready, const void *input,
		    uint32_t input_bytes);

	/* Once, after the last step, and also when the time was up or the node stops: closes what
	 * the steps have opened. May be NULL. */
	void (*end)(void *memory);
};

#define SPL_IO_MEMORY_MAX 65536u

#define SPL_IO_READ	  1u
#define SPL_IO_WRITE	  2u
#define SPL_IO_TIME	  4u /* `ready` only: nothing of it happened in time */

/* Called by a callback, on its lane, with its own turn: hands a computation or an operation to its
 * thread, with a copy of `input`. With `call` the turn may wait for the result as for a reply
 * (spl_call_then(), spl_call_cancel(); what has begun goes on, and its result is thrown away).
 * `call` NULL: nobody waits; a failure is written to the log. `timeout_ms` 1..INT_MAX, 0 = the
 * configured request timeout: then the call ends with DeadlineExceeded, what waits for a thread is
 * not begun, and an operation is ended; a computation that runs is not stopped.
 * -EINVAL: bad argument; -EMSGSIZE: input over the message limit; -EAGAIN: as many wait, or as many
 * operations are open, as the configuration allows (CapacityExceeded); -ENOBUFS: no memory or call
 * slot, or the 65th call of this handler; -EPERM, -ESHUTDOWN: as for spl_request(). (S-WORK-1..3)
 */
int spl_run_cpu(struct spl_turn *turn, spl_cpu_fn fn, const void *input, uint32_t input_bytes,
		uint32_t timeout_ms, enum spl_wait wait, struct spl_call **call);
int spl_run_io(struct spl_turn *turn, const struct spl_io *io, const void *input,
	       uint32_t input_bytes, uint32_t timeout_ms, enum spl_wait wait,
	       struct spl_call **call);

/* Called by the computation or a step: the result that goes to the caller with SPL_DONE, copied.
 * `content` is an enum spl_content_type. -EINVAL: unknown content, or there is a result already;
 * -EMSGSIZE: over the message limit; -ENOBUFS: results of all workers together fill
 * `workers.results_mb`, or no memory.
 */
int spl_work_result(struct spl_work *work, uint16_t content, const void *payload, uint32_t bytes);

/* Called by a step, once before it returns SPL_SUSPENDED: the next step comes when `fd` is ready
 * for one of `events` (SPL_IO_READ, SPL_IO_WRITE), or after `timeout_ms`, whatever is first;
 * `fd` -1 with `events` 0 waits for the time alone, `timeout_ms` 0 is no time of its own. The
 * descriptor stays the operation's; between steps it must not be closed.
 * -EINVAL: a computation, waits already, or neither is waited for; -EPERM: no descriptor that can
 * be waited for (a regular file); -EEXIST: another operation waits for this very descriptor;
 * -EBADF; -ENOMEM.
 */
int spl_io_wait(struct spl_work *work, int fd, unsigned events, uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
