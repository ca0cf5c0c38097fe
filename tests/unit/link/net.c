/* SPDX-License-Identifier: BSD-3-Clause */
/* See net.h. Events in a binary heap by (time, order); one thread. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>

#define SINK_MAX 256

enum event_kind { EV_PACKET, EV_CONSUME };

struct net_event {
	uint64_t time, order;
	int kind, to;	 /* the end it happens at */
	uint32_t len;	 /* packet */
	uint32_t charge; /* consume */
	enum wire_class cls;
	uint8_t b[];
};

/* A packet buffer with references, as a host would have. */
struct buf {
	uint32_t refs;
	uint32_t len;
	uint8_t b[];
};

struct out_msg {
	uint32_t len;
	enum wire_class cls;
	uint8_t b[];
};

static void fault(struct net *n, const char *what, uint64_t a, uint64_t b)
{
	if (!n->fault[0])
		snprintf(n->fault, sizeof(n->fault), "%s (%llu, %llu) at %llu ns", what,
			 (unsigned long long)a, (unsigned long long)b, (unsigned long long)n->now);
}

static bool event_before(const struct net_event *a, const struct net_event *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void heap_push(struct net *n, struct net_event *e)
{
	uint32_t i = n->n_events++;

	if (n->n_events > n->heap_room) {
		n->heap_room = n->heap_room ? 2 * n->heap_room : 64;
		n->heap = realloc(n->heap, n->heap_room * sizeof(n->heap[0]));
	}
	e->order = n->order++;
	for (; i > 0 && event_before(e, n->heap[(i - 1) / 2]); i = (i - 1) / 2)
		n->heap[i] = n->heap[(i - 1) / 2];
	n->heap[i] = e;
}

static struct net_event *heap_pop(struct net *n)
{
	struct net_event *top = n->heap[0], *e = n->heap[--n->n_events];
	uint32_t i = 0;

	for (;;) {
		uint32_t k = 2 * i + 1;

		if (k >= n->n_events)
			break;
		if (k + 1 < n->n_events && event_before(n->heap[k + 1], n->heap[k]))
			k++;
		if (event_before(e, n->heap[k]))
			break;
		n->heap[i] = n->heap[k];
		i = k;
	}
	n->heap[i] = e;
	return top;
}

/* ---- the host's functions ---- */

static void env_sent(void *host, void *handle, bool acked)
{
	struct net_end *e = host;
	struct out_msg *m = handle;

	e->messages_out--;
	if (acked)
		e->acked[m->cls]++;
	else
		e->ended[m->cls]++;
	free(m);
}

static void *env_mem_get(void *host, size_t bytes)
{
	struct net_end *e = host;

	if (e->mem_fail > 0) {
		e->mem_fail--;
		return NULL;
	}
	e->mems_out++;
	return malloc(bytes);
}

static void env_mem_put(void *host, void *mem)
{
	struct net_end *e = host;

	e->mems_out--;
	free(mem);
}

static void env_buf_put(void *host, void *buf)
{
	struct net_end *e = host;
	struct buf *b = buf;

	e->bufs_out--;
	if (--b->refs == 0)
		free(b);
}

static uint64_t env_credit_take(void *host, enum wire_class cls, uint64_t bytes)
{
	struct net_end *e = host;
	uint64_t got = bytes < e->pool[cls] ? bytes : e->pool[cls];

	e->pool[cls] -= got;
	return got;
}

static void env_credit_give(void *host, enum wire_class cls, uint64_t bytes)
{
	struct net_end *e = host;

	e->pool[cls] += bytes;
	if (e->pool[cls] > e->pool_size[cls])
		fault(e->net, "more credit came back than was taken", cls, bytes);
}

static bool env_credit_tight(void *host, enum wire_class cls)
{
	struct net_end *e = host;

	return e->is_tight;
}

static const struct flow_env env = {env_sent,	     env_mem_get,     env_mem_put,     env_buf_put,
				    env_credit_take, env_credit_give, env_credit_tight};

/* ---- messages ---- */

static uint8_t pattern(uint64_t number, uint32_t at, int from, enum wire_class cls)
{
	return (uint8_t)((number * 31 + at * 7 + (at >> 8) + (uint32_t)from * 101 + cls * 59) &
			 0xff);
}

/* Message lengths are drawn from (seed, number), so that the receiver knows them too. */
static uint32_t length_of(const struct net_load *l, uint64_t number, enum wire_class cls)
{
	struct t_rand r = {number * 2 + cls + 1};

	return l->len_min + t_rand_below(&r, l->len_max - l->len_min + 1);
}

static void fill(struct net *n, int at)
{
	struct net_end *e = &n->end[at];

	for (int c = 0; c < WIRE_CLASSES; c++)
		while (e->sent[c] < e->load.total[c] && flow_send_room(e->flow, c) > 0) {
			uint32_t len = length_of(&e->load, e->sent[c], c);
			struct out_msg *m = malloc(sizeof(*m) + len);

			m->len = len;
			m->cls = c;
			for (uint32_t i = 0; i < len; i++)
				m->b[i] = pattern(e->sent[c], i, at, c);
			if (flow_send(e->flow, c, m->b, len, m)) {
				fault(n, "flow_send failed", c, len);
				free(m);
				return;
			}
			e->messages_out++;
			e->sent[c]++;
		}
}

static void consume_later(struct net *n, int at, const struct flow_msg *m)
{
	struct net_event *ev = calloc(1, sizeof(*ev));

	ev->time = n->now + n->end[at].load.consume_ns;
	ev->kind = EV_CONSUME;
	ev->to = at;
	ev->cls = m->cls;
	ev->charge = m->charge;
	heap_push(n, ev);
}

static void check_message(struct net *n, int at, const struct flow_msg *m)
{
	struct net_end *e = &n->end[at];
	const struct net_load *l = &n->end[!at].load;
	uint64_t number = e->received[m->cls]++;
	uint32_t wrong = 0;

	if (number >= l->total[m->cls])
		fault(n, "a message too many", m->cls, number);
	else if (m->len != length_of(l, number, m->cls))
		fault(n, "wrong message or length", number, m->len);
	if (m->charge != wire_charge(m->len))
		fault(n, "wrong charge", m->charge, m->len);
	for (uint32_t i = 0; i < m->len; i++)
		wrong += m->data[i] != pattern(number, i, !at, m->cls);
	if (wrong)
		fault(n, "wrong bytes", number, wrong);
	e->bytes[m->cls] += m->len;
	e->last_delivery = n->now;
	if (m->is_mem)
		env_mem_put(e, m->ref);
	else
		env_buf_put(e, m->ref);
	consume_later(n, at, m);
}

static void take(struct net *n, int at, const struct net_event *ev)
{
	struct net_end *e = &n->end[at];
	struct flow_msg msgs[SINK_MAX];
	struct flow_sink sink = {.msgs = msgs, .room = e->load.sink_room};
	struct buf *b = malloc(sizeof(*b) + ev->len);
	struct flow_rx_result r;
	bool more = true;

	b->refs = 1;
	b->len = ev->len;
	memcpy(b->b, ev->b, ev->len);
	e->packets_in++;
	r = flow_rx(e->flow, b->b, b->len, b, n->now, &sink);
	b->refs += r.refs;
	e->bufs_out += 1 + r.refs;
	if (r.drop == FLOW_NO_DROP)
		e->uses[r.use]++;
	else
		e->drops[r.drop]++;
	while (sink.n > 0 || more) {
		for (uint32_t i = 0; i < sink.n; i++)
			check_message(n, at, &msgs[i]);
		sink.n = 0;
		more = flow_drain(e->flow, &sink);
		if (sink.n == 0)
			break;
	}
	env_buf_put(e, b);
}

/* ---- the network ---- */

static bool chance(struct net *n, uint32_t ppm)
{
	return ppm && t_rand_below(&n->rand, 1000000) < ppm;
}

static void carry(struct net *n, int from, const uint8_t *p, uint32_t len)
{
	struct net_path *path = &n->path[from];
	struct net_end *e = &n->end[from];
	uint64_t at = n->now;

	e->packets_out++;
	if (path->bits_per_s) {
		uint64_t start = e->path_free > n->now ? e->path_free : n->now;
		uint64_t waiting = (start - n->now) * (path->bits_per_s / 1000) / 8000000;

		if (path->queue_bytes && waiting > path->queue_bytes) {
			e->packets_queue_lost++;
			return;
		}
		at = start +
		     (uint64_t)(len + path->frame_extra) * 8000000 / (path->bits_per_s / 1000);
		e->path_free = at;
	}
	if (chance(n, path->loss_ppm)) {
		e->packets_lost++;
		return;
	}
	for (int copies = chance(n, path->dup_ppm) ? 2 : 1; copies > 0; copies--) {
		struct net_event *ev = calloc(1, sizeof(*ev) + len);

		ev->time = at + path->delay_ns;
		if (path->jitter_ns)
			ev->time += t_rand_below(&n->rand, (uint32_t)path->jitter_ns);
		ev->kind = EV_PACKET;
		ev->to = !from;
		ev->len = len;
		memcpy(ev->b, p, len);
		heap_push(n, ev);
	}
}

static void pump(struct net *n, int at)
{
	struct net_end *e = &n->end[at];
	uint8_t out[9216];
	enum wire_class cls;
	uint32_t len;

	fill(n, at);
	while ((len = flow_tx(e->flow, out, sizeof(out), n->now, &cls)) > 0) {
		if (len > e->params.datagram_bytes)
			fault(n, "datagram too long", len, cls);
		if (wire_flow_class(out) != cls)
			fault(n, "class told is not the packet's", cls, 0);
		carry(n, at, out, len);
	}
}

static bool is_done(const struct net *n)
{
	if (n->n_events > 0)
		return false;
	for (int i = 0; i < NET_ENDS; i++)
		for (int c = 0; c < WIRE_CLASSES; c++) {
			const struct net_end *e = &n->end[i];

			if (e->acked[c] != e->load.total[c] ||
			    n->end[!i].received[c] != e->load.total[c] ||
			    n->end[!i].consumed[c] != e->load.total[c])
				return false;
		}
	return flow_is_idle(n->end[0].flow) && flow_is_idle(n->end[1].flow);
}

/* The next moment at which something happens; FLOW_NEVER when all is still. */
static uint64_t next_time(const struct net *n)
{
	uint64_t at = n->n_events ? n->heap[0]->time : FLOW_NEVER;

	for (int i = 0; i < NET_ENDS; i++) {
		uint64_t t = flow_next_timer(n->end[i].flow);

		if (t < at)
			at = t;
	}
	return at;
}

static void happen(struct net *n, struct net_event *ev)
{
	struct net_end *e = &n->end[ev->to];

	if (ev->kind == EV_PACKET) {
		take(n, ev->to, ev);
	} else {
		e->consumed[ev->cls]++;
		flow_consumed(e->flow, ev->cls, ev->charge);
	}
	pump(n, ev->to);
	free(ev);
}

static void step(struct net *n)
{
	while (n->n_events > 0 && n->heap[0]->time <= n->now)
		happen(n, heap_pop(n));
	for (int i = 0; i < NET_ENDS; i++)
		if (flow_next_timer(n->end[i].flow) <= n->now) {
			flow_on_timer(n->end[i].flow, n->now);
			pump(n, i);
			if (flow_next_timer(n->end[i].flow) <= n->now)
				fault(n, "a timer that stays due", (uint64_t)i, 0);
		}
}

bool net_run(struct net *n, uint64_t until)
{
	for (int i = 0; i < NET_ENDS; i++)
		pump(n, i);
	while (!n->fault[0] && !is_done(n)) {
		uint64_t at = next_time(n);

		if (at == FLOW_NEVER)
			fault(n, "all is still, and not all is done", n->end[1].received[0],
			      n->end[0].received[0]);
		else if (at > until)
			fault(n, "not done in time", n->end[1].received[0], n->end[0].received[0]);
		else if (at > n->now)
			n->now = at;
		step(n);
	}
	return !n->fault[0];
}

void net_run_for(struct net *n, uint64_t ns)
{
	uint64_t until = n->now + ns, at;

	for (int i = 0; i < NET_ENDS; i++)
		pump(n, i);
	while (!n->fault[0] && (at = next_time(n)) <= until) {
		if (at > n->now)
			n->now = at;
		step(n);
	}
	n->now = until;
}

/* ---- life ---- */

void net_params(struct flow_params p[NET_ENDS])
{
	for (int i = 0; i < NET_ENDS; i++) {
		flow_params_default(&p[i]);
		p[i].rx_id = 0x1111111111110000ULL * (uint64_t)(i + 1);
		p[i].tx_id = 0x1111111111110000ULL * (uint64_t)(2 - i);
		p[i].lane = (uint8_t)(3 + i);
		p[i].peer_lane = (uint8_t)(4 - i);
	}
}

struct net *net_new(const struct flow_params p[NET_ENDS], uint64_t seed, uint64_t pool)
{
	struct net *n = calloc(1, sizeof(*n));

	n->rand.s = seed;
	n->now = 1000000000;
	for (int i = 0; i < NET_ENDS; i++) {
		struct net_end *e = &n->end[i];

		e->net = n;
		e->params = p[i];
		e->load = (struct net_load){.len_min = 1, .len_max = 1, .sink_room = SINK_MAX};
		for (int c = 0; c < WIRE_CLASSES; c++)
			e->pool[c] = e->pool_size[c] = pool;
		e->memory = aligned_alloc(64, flow_bytes(&p[i]));
		e->flow = flow_init(e->memory, &p[i], &env, e);
		n->path[i].delay_ns = 100000;
	}
	return n;
}

bool net_fini(struct net *n)
{
	while (n->n_events > 0) {
		struct net_event *ev = heap_pop(n);

		/* a message delivered and not consumed: its credit is the host's to return */
		if (ev->kind == EV_CONSUME)
			env_credit_give(&n->end[ev->to], ev->cls, ev->charge);
		free(ev);
	}
	for (int i = 0; i < NET_ENDS; i++) {
		struct net_end *e = &n->end[i];

		flow_fini(e->flow);
		e->flow = NULL;
		if (e->messages_out || e->mems_out || e->bufs_out)
			fault(n, "not all came back", (uint64_t)e->mems_out, (uint64_t)e->bufs_out);
		for (int c = 0; c < WIRE_CLASSES; c++)
			if (e->pool[c] != e->pool_size[c])
				fault(n, "credit did not come back", e->pool[c], e->pool_size[c]);
	}
	return !n->fault[0];
}

void net_free(struct net *n)
{
	for (int i = 0; i < NET_ENDS; i++)
		free(n->end[i].memory);
	free(n->heap);
	free(n);
}
