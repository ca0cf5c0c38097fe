/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: the sleeping half of wake.h, called only by a thread that has no work. */
#include "dataplane/lane/wake.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX 4u

int wake_init(struct wake *w)
{
	atomic_init(&w->parked, 0);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->fd < 0 ? -errno : 0;
}

void wake_fini(struct wake *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

void wake_sleep(struct wake *w, const int *fds, unsigned n_fds, uint32_t max_us)
{
	struct pollfd p[FDS_MAX + 1] = {{.fd = w->fd, .events = POLLIN}};
	struct timespec t = {max_us / 1000000u, (long)(max_us % 1000000u) * 1000};
	uint64_t count;
	unsigned n = 1;

	for (unsigned i = 0; i < n_fds && i < FDS_MAX; i++)
		p[n++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	ppoll(p, n, &t, NULL);
	wake_unpark(w);
	if ((p[0].revents & POLLIN) && read(w->fd, &count, sizeof(count)) < 0)
		return; /* somebody else's wake-up was taken with it */
}

void wake_kick(struct wake *w)
{
	const uint64_t one = 1;

	if (atomic_exchange_explicit(&w->parked, 0, memory_order_seq_cst) == 0)
		return; /* another pusher was first */
	if (write(w->fd, &one, sizeof(one)) < 0)
		return; /* full counter: it is awake anyway */
}

void wake_yield(void)
{
	sched_yield();
}
