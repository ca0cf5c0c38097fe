/* SPDX-License-Identifier: BSD-3-Clause */
/* The private socket, played: the functions of dataplane/agent/sock.h over two queues of packets.
 * Memfds are not played: the simulator's byte strings are short.
 */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

struct item {
	STAILQ_ENTRY(item) next;
	size_t len;
	uint8_t b[];
};

struct sim_queue {
	STAILQ_HEAD(, item) items;
	struct item *taken; /* lives until the next take */
};

struct sock {
	struct sock_ops ops;
	bool connected;
};

struct sim_queue *sim_queue_new(void)
{
	struct sim_queue *q = calloc(1, sizeof(*q));

	if (!q)
		abort();
	STAILQ_INIT(&q->items);
	return q;
}

void sim_queue_clear(struct sim_queue *q)
{
	struct item *i;

	while ((i = STAILQ_FIRST(&q->items))) {
		STAILQ_REMOVE_HEAD(&q->items, next);
		free(i);
	}
	free(q->taken);
	q->taken = NULL;
}

void sim_queue_free(struct sim_queue *q)
{
	if (!q)
		return;
	sim_queue_clear(q);
	free(q);
}

static void append(struct sim_queue *q, const struct pack_writer *w)
{
	struct item *i = malloc(sizeof(*i) + w->len);

	if (!i)
		abort();
	i->len = w->len;
	memcpy(i->b, w->p, w->len);
	STAILQ_INSERT_TAIL(&q->items, i, next);
}

static struct item *take(struct sim_queue *q)
{
	struct item *i = STAILQ_FIRST(&q->items);

	free(q->taken);
	q->taken = i;
	if (i)
		STAILQ_REMOVE_HEAD(&q->items, next);
	return i;
}

bool sim_control_take(struct world *w, struct dp_header *h, struct pack_reader *body)
{
	struct item *i = take(w->to_control);

	if (!i)
		return false;
	if (dp_open(i->b, i->len, h, body))
		sim_problem(w, "the dataplane sent a packet that does not open");
	return true;
}

void sim_control_put(struct world *w, const struct pack_writer *packet)
{
	append(w->to_dataplane, packet);
}

void sim_sock_connect(struct world *w, bool connected)
{
	struct sock *s = w->agent ? w->agent->sock : NULL;

	sim_queue_clear(w->to_control);
	sim_queue_clear(w->to_dataplane);
	if (!s || s->connected == connected)
		return;
	s->connected = connected;
	s->ops.on_peer(s->ops.ctx, connected);
}

/* ---- sock.h ---- */

struct sock *sock_open(const char *dir, const struct sock_ops *ops, char *err, size_t err_bytes)
{
	struct sock *s = calloc(1, sizeof(*s));

	if (s)
		s->ops = *ops;
	return s;
}

void sock_close(struct sock *s)
{
	free(s);
}

bool sock_connected(const struct sock *s)
{
	return s->connected;
}

unsigned sock_poll(struct sock *s)
{
	unsigned n = 0;

	while (s->connected && n < 32) {
		struct item *i = take(sim->to_dataplane);
		struct sock_packet p = {.blob = {NULL, 0}};

		if (!i)
			break;
		if (dp_open(i->b, i->len, &p.h, &p.body)) {
			sim_problem(sim, "control sent a packet that does not open");
			break;
		}
		s->ops.on_packet(s->ops.ctx, &p);
		n++;
	}
	return n;
}

void sock_flush(struct sock *s)
{
}

unsigned sock_fds(const struct sock *s, int fds[2])
{
	return 0;
}

int sock_send(struct sock *s, const struct pack_writer *w, int fd)
{
	if (!s->connected)
		return -ENOTCONN;
	if (fd < 0)
		append(sim->to_control, w);
	else
		sim_problem(sim, "a packet of the simulator is too long");
	return 0;
}
