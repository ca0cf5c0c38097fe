/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: I/O operations: rows of steps on one loop (S-WORK-1,3). Between two steps an
 * operation is a timer and at most one poll handle, so that waiting costs no thread.
 */
#include "dataplane/worker/work.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static void step(struct spl_work *work, unsigned ready);

static void poll_closed(uv_handle_t *h)
{
	free(h);
}

static void stop_poll(struct spl_work *work)
{
	if (!work->poll)
		return;
	uv_poll_stop(work->poll);
	uv_close((uv_handle_t *)work->poll, poll_closed);
	work->poll = NULL;
}

static void timer_closed(uv_handle_t *h)
{
	work_done(h->data);
}

static void end(struct spl_work *work, uint8_t kind)
{
	stop_poll(work);
	if (work->io->end)
		work->io->end(work->memory);
	free(work->memory);
	work->memory = NULL;
	work->kind = kind;
	uv_close((uv_handle_t *)&work->timer, timer_closed);
}

void io_abort(struct spl_work *work)
{
	if (!uv_is_closing((uv_handle_t *)&work->timer))
		end(work, SPL_E_SHUTTING_DOWN);
}

static void on_ready(uv_poll_t *h, int status, int events)
{
	unsigned ready = (events & UV_READABLE ? SPL_IO_READ : 0) |
			 (events & UV_WRITABLE ? SPL_IO_WRITE : 0);

	/* An error is the step's to find, at its own call. */
	step(h->data, status < 0 ? SPL_IO_READ | SPL_IO_WRITE : ready);
}

static void on_time(uv_timer_t *t)
{
	struct spl_work *work = t->data;

	if (work_now(work) >= work->deadline)
		end(work, SPL_E_DEADLINE_EXCEEDED);
	else if (work->is_own_time)
		step(work, SPL_IO_TIME);
	else /* the loop's clock is coarser than ours */
		uv_timer_start(t, on_time, 1, 0);
}

static void arm(struct spl_work *work)
{
	uint64_t now = work_now(work), ms = 0;

	if (work->deadline > now)
		ms = (work->deadline - now + 999999) / 1000000;
	work->is_own_time = work->wait_ms && work->wait_ms < ms;
	if (work->is_own_time)
		ms = work->wait_ms;
	uv_update_time(work->timer.loop);
	uv_timer_start(&work->timer, on_time, ms, 0);
}

static void step(struct spl_work *work, unsigned ready)
{
	int rc;

	stop_poll(work);
	work->waits = false;
	rc = work->io->step(work, work->memory, ready, work->input, work->input_bytes);
	if (rc == SPL_SUSPENDED && work->waits)
		arm(work);
	else
		end(work, work->waits ? SPL_E_INTERNAL_FAILURE : work_kind(rc));
}

void io_begin(uv_loop_t *loop, struct spl_work *work)
{
	work->timer.data = work;
	uv_timer_init(loop, &work->timer);
	work->memory = calloc(1, work->io->memory_bytes + 1);
	work->kind = work->memory ? SPL_OK : SPL_E_CAPACITY_EXCEEDED;
	if (work_now(work) >= work->deadline)
		work->kind = SPL_E_DEADLINE_EXCEEDED;
	if (work->kind == SPL_OK) {
		step(work, 0);
	} else {
		free(work->memory);
		work->memory = NULL;
		uv_close((uv_handle_t *)&work->timer, timer_closed);
	}
}

int spl_io_wait(struct spl_work *work, int fd, unsigned events, uint32_t timeout_ms)
{
	int rc;

	if (!work || !work->io || work->waits || events & ~(SPL_IO_READ | SPL_IO_WRITE) ||
	    (fd >= 0) != (events != 0) || (fd < 0 && !timeout_ms))
		return -EINVAL;
	work->wait_ms = timeout_ms;
	if (fd >= 0) {
		work->poll = malloc(sizeof(*work->poll));
		if (!work->poll)
			return -ENOMEM;
		rc = uv_poll_init(work->timer.loop, work->poll, fd);
		if (rc) {
			free(work->poll);
			work->poll = NULL;
			return rc;
		}
		work->poll->data = work;
		rc = uv_poll_start(work->poll,
				   (events & SPL_IO_READ ? UV_READABLE : 0) |
					   (events & SPL_IO_WRITE ? UV_WRITABLE : 0),
				   on_ready);
		if (rc) {
			stop_poll(work);
			return rc;
		}
	}
	work->waits = true;
	return 0;
}
