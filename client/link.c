/* SPDX-License-Identifier: BSD-3-Clause */
/* One association and its flows: life, messages out, packets out. The way in is in receive.c.
 * Runs on the client's thread; owns association, flows and packet memory.
 */
#include "client/link.h"

#include <errno.h>
#include <string.h>

#define LINK_SLOTS	  2    /* one association, and one that has ended */
#define LINK_ROOM	  2048 /* bytes of a packet out */
#define LINK_WINDOW	  1024 /* messages in flight towards us, each flow and class */
#define LINK_CREDIT_APP	  (64u << 10)
#define LINK_CREDIT_INFRA (256u << 10)
#define LINK_TX_ROUNDS	  64 /* batches that one link_transmit() may send */

static void env_random(void *host, void *out, size_t bytes)
{
	const struct net *net = host;

	net->ops->random(net->arg, out, bytes);
}

static void env_sent(void *host, void *handle, bool acked)
{
	struct link_flow *f = host;
	struct buffer *msg = handle;

	f->charged[msg->cls] -= wire_charge(msg->len);
	if (f->charged[msg->cls] <= f->link->conf.window_bytes / 2)
		f->is_full[msg->cls] = false;
	buffer_free(msg);
}

static void *env_mem_get(void *host, size_t bytes)
{
	struct buffer *msg = buffer_new(bytes);

	return msg ? msg->b : NULL;
}

static void env_mem_put(void *host, void *mem)
{
	buffer_free((struct buffer *)((uint8_t *)mem - offsetof(struct buffer, b)));
}

static void env_buf_put(void *host, void *buf)
{
	link_packet_put(buf);
}

static uint64_t env_credit_take(void *host, enum wire_class cls, uint64_t bytes)
{
	struct link *l = ((struct link_flow *)host)->link;
	uint64_t got = bytes < l->credit_left[cls] ? bytes : l->credit_left[cls];

	l->credit_left[cls] -= got;
	return got;
}

static void env_credit_give(void *host, enum wire_class cls, uint64_t bytes)
{
	((struct link_flow *)host)->link->credit_left[cls] += bytes;
}

static const struct flow_env flow_env = {
	.sent = env_sent,
	.mem_get = env_mem_get,
	.mem_put = env_mem_put,
	.buf_put = env_buf_put,
	.credit_take = env_credit_take,
	.credit_give = env_credit_give,
};

/* What all flows have in common, and the credit that all may have together. */
static void set_flow_params(struct link *l)
{
	static const uint32_t credit[WIRE_CLASSES] = {LINK_CREDIT_APP, LINK_CREDIT_INFRA};
	struct flow_params *p = &l->flow_params;
	const uint32_t one = wire_charge(l->conf.msg_bytes);

	flow_params_default(p);
	p->lane = 0;
	p->datagram_bytes = SPL_DATAGRAM_BYTES;
	p->msg_bytes = l->conf.msg_bytes;
	for (unsigned i = 0; i < WIRE_CLASSES; i++) {
		p->cls[i].rx_slots = LINK_WINDOW;
		p->cls[i].credit_min = credit[i];
		p->cls[i].credit_max = 2 * (one > credit[i] ? one : credit[i]);
		l->credit_left[i] = (uint64_t)SPL_LANES_MAX * credit[i] + p->cls[i].credit_max;
	}
}

static int make_assoc(struct link *l)
{
	struct assoc_env env = {.host = &l->net, .random = env_random};
	struct assoc_params p;
	size_t bytes;
	void *mem;

	assoc_params_default(&p);
	p.slots = LINK_SLOTS;
	p.dials = 1;
	p.is_passive = false;
	p.lifecycle = l->conf.lifecycle;
	p.lanes = 1;
	p.base_port = 0;
	p.window = LINK_WINDOW;
	p.msg_bytes = l->conf.msg_bytes;
	for (unsigned i = 0; i < WIRE_CLASSES; i++)
		p.credit[i] = l->flow_params.cls[i].credit_min;
	p.mesh = l->conf.mesh;
	p.rid = l->conf.rid;
	bytes = assoc_bytes(&p);
	if (bytes == 0)
		return -EINVAL;
	mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	if (!mem)
		return -ENOMEM;
	l->assoc = assoc_init(mem, &p, &env, l->net.ops->now(l->net.arg));
	if (!l->assoc) {
		free(mem);
		return -EINVAL;
	}
	return 0;
}

int link_open(struct link *l, const struct link_config *conf, const struct net *net,
	      const struct link_events *events)
{
	memset(l, 0, sizeof(*l));
	l->net = *net;
	l->events = *events;
	l->conf = *conf;
	l->dial = -1;
	for (unsigned i = 0; i < SPL_LANES_MAX; i++)
		l->lane[i].link = l;
	set_flow_params(l);
	l->out_memory = malloc((size_t)LINK_BATCH * LINK_ROOM);
	if (!l->out_memory)
		return -ENOMEM;
	for (unsigned i = 0; i < LINK_BATCH; i++) {
		l->out[i].b = l->out_memory + (size_t)i * LINK_ROOM;
		l->out[i].room = LINK_ROOM;
	}
	return make_assoc(l);
}

static void add_stats(struct flow_stats *sum, const struct flow_stats *s)
{
	sum->packets_tx += s->packets_tx;
	sum->packets_rx += s->packets_rx;
	sum->retransmitted += s->retransmitted;
	sum->messages_tx += s->messages_tx;
	sum->messages_rx += s->messages_rx;
	sum->duplicates += s->duplicates;
}

static void end_flows(struct link *l)
{
	struct flow_stats s;

	for (unsigned i = 0; i < SPL_LANES_MAX; i++) {
		struct link_flow *f = &l->lane[i];

		if (!f->flow)
			continue;
		flow_stats_get(f->flow, &s);
		add_stats(&l->past, &s);
		free(flow_fini(f->flow));
		f->flow = NULL;
	}
}

void link_close(struct link *l)
{
	end_flows(l);
	for (unsigned i = 0; i < LINK_BATCH; i++)
		link_packet_put(l->spare[i]);
	free(l->assoc);
	free(l->out_memory);
	memset(l, 0, sizeof(*l));
}

/* 16 bytes of address (IPv4 mapped into IPv6), two of port. */
static void put_addr(struct assoc_addr *a, uint32_t ip, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	memset(a->b + 10, 0xff, 2);
	wire_store_u32(a->b + 12, ip);
	wire_store_u16(a->b + 16, port);
}

void link_dial(struct link *l, uint64_t now_ns)
{
	struct assoc_addr to;

	if (l->dial >= 0)
		return;
	put_addr(&to, l->conf.ip, (uint16_t)(l->conf.base_port + WIRE_PORT_AGENT));
	l->dial = assoc_dial(l->assoc, &to, 0, now_ns); /* the one dial there is room for */
}

void link_hangup(struct link *l, uint64_t now_ns)
{
	if (l->dial < 0)
		return;
	assoc_hangup(l->assoc, (uint32_t)l->dial, now_ns);
	l->dial = -1;
	link_run_events(l, now_ns);
}

bool link_hung_up(const struct link *l)
{
	return assoc_closing(l->assoc) == 0;
}

struct flow *link_flow_get(struct link *l, uint32_t lane)
{
	struct link_flow *f = &l->lane[lane];
	struct flow_params p = l->flow_params;
	size_t bytes;
	void *mem;

	if (f->flow)
		return f->flow;
	p.rx_id = l->peer->rx_id;
	p.tx_id = l->peer->tx_id;
	p.peer_lane = (uint8_t)lane;
	p.peer_msg_bytes = l->peer->msg_bytes;
	for (unsigned i = 0; i < WIRE_CLASSES; i++) {
		p.cls[i].peer_window = l->peer->window;
		p.cls[i].peer_credit = l->peer->credit[i];
	}
	bytes = flow_bytes(&p);
	mem = bytes ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL;
	if (!mem)
		return NULL;
	memset(f->charged, 0, sizeof(f->charged));
	memset(f->is_full, 0, sizeof(f->is_full));
	f->flow = flow_init(mem, &p, &flow_env, f);
	if (!f->flow)
		free(mem);
	return f->flow;
}

void link_run_events(struct link *l, uint64_t now_ns)
{
	struct assoc_event e;

	while (assoc_event(l->assoc, now_ns, &e)) {
		if (e.type == ASSOC_UP) {
			l->peer = e.peer;
			l->slot = e.slot;
			l->refusal = 0;
			l->connects++;
			l->events.up(l->events.owner);
		} else if (e.type == ASSOC_DOWN) {
			if (l->peer && l->slot == e.slot) {
				end_flows(l);
				l->peer = NULL;
				l->losses++;
				l->events.down(l->events.owner);
			}
			assoc_release(l->assoc, e.slot);
		} else if (e.type == ASSOC_REFUSED) {
			l->refusal = e.reason;
		}
	}
}

/* Gives the net what is built. False when it took not all. */
static bool flush(struct link *l)
{
	while (l->out_at < l->out_n) {
		unsigned n = l->net.ops->send(l->net.arg, l->out + l->out_at, l->out_n - l->out_at);

		if (n == 0)
			return false;
		l->out_at += n;
		l->sent += n;
	}
	l->out_at = l->out_n = 0;
	return true;
}

/* The next free packet of the batch; NULL when the net is blocked. */
static struct net_packet *next_out(struct link *l)
{
	if (l->out_n == LINK_BATCH && !flush(l))
		return NULL;
	return &l->out[l->out_n];
}

static void transmit_assoc(struct link *l, uint64_t now_ns)
{
	struct assoc_addr to;
	struct net_packet *p;

	while ((p = next_out(l)) != NULL) {
		p->len = assoc_tx(l->assoc, p->b, p->room, &to, now_ns);
		if (p->len == 0)
			break;
		p->ip = wire_load_u32(to.b + 12);
		p->port = wire_load_u16(to.b + 16);
		l->out_n++;
	}
}

/* Sends what one flow has. False when the net is blocked. */
static bool transmit_flow(struct link *l, uint32_t lane, uint64_t now_ns)
{
	struct flow *f = l->lane[lane].flow;
	struct net_packet *p;
	enum wire_class cls;

	if (flow_next_timer(f) <= now_ns)
		flow_on_timer(f, now_ns);
	for (unsigned i = 0; i < LINK_BATCH * LINK_TX_ROUNDS; i++) {
		p = next_out(l);
		if (!p)
			return false;
		p->len = flow_tx(f, p->b, p->room, now_ns, &cls);
		if (p->len == 0)
			break;
		p->ip = l->conf.ip;
		p->port = (uint16_t)(l->conf.base_port + lane +
				     (cls == WIRE_INFRA ? WIRE_PORT_INFRA : WIRE_PORT_APP));
		l->out_n++;
	}
	return true;
}

bool link_transmit(struct link *l, uint64_t now_ns)
{
	const uint64_t before = l->sent;

	link_run_events(l, now_ns);
	transmit_assoc(l, now_ns);
	for (uint32_t i = 0; l->peer && i < l->peer->lanes; i++) {
		uint32_t lane = (l->first_lane + i) % l->peer->lanes;

		if (l->lane[lane].flow && !transmit_flow(l, lane, now_ns))
			break;
	}
	l->first_lane++;
	flush(l);
	return l->sent != before;
}

bool link_is_blocked(const struct link *l)
{
	return l->out_at < l->out_n;
}

void link_answer(struct link *l, const struct net_packet *to, const uint8_t *bytes, uint32_t len)
{
	struct net_packet *p = next_out(l);

	if (!p)
		return; /* the peer asks again */
	memcpy(p->b, bytes, len);
	p->len = len;
	p->ip = to->ip;
	p->port = to->port;
	l->out_n++;
}

uint64_t link_next_timer(const struct link *l)
{
	uint64_t next = assoc_next_timer(l->assoc);

	for (uint32_t i = 0; l->peer && i < l->peer->lanes; i++) {
		uint64_t t = l->lane[i].flow ? flow_next_timer(l->lane[i].flow) : UINT64_MAX;

		if (t < next)
			next = t;
	}
	return next;
}

int link_send(struct link *l, uint32_t lane, enum wire_class cls, struct buffer *msg)
{
	struct link_flow *f = &l->lane[lane];
	uint64_t charge = wire_charge(msg->len);
	struct flow *flow;
	int err;

	if (!l->peer || lane >= l->peer->lanes)
		return -ENOTCONN;
	flow = link_flow_get(l, lane);
	if (!flow)
		return -ENOMEM;
	/* An empty window takes one message of any size. */
	if (f->charged[cls] && f->charged[cls] + charge > l->conf.window_bytes)
		f->is_full[cls] = true;
	if (f->is_full[cls])
		return -EAGAIN;
	msg->cls = cls;
	f->charged[cls] += charge;
	err = flow_send(flow, cls, msg->b, msg->len, msg);
	if (err)
		f->charged[cls] -= charge;
	return err;
}

bool link_is_idle(const struct link *l)
{
	for (uint32_t i = 0; l->peer && i < l->peer->lanes; i++) {
		if (l->lane[i].flow && !flow_is_idle(l->lane[i].flow))
			return false;
	}
	return !link_is_blocked(l);
}

void link_stats(const struct link *l, struct flow_stats *out)
{
	struct flow_stats s;

	*out = l->past;
	for (uint32_t i = 0; l->peer && i < l->peer->lanes; i++) {
		if (l->lane[i].flow) {
			flow_stats_get(l->lane[i].flow, &s);
			add_stats(out, &s);
		}
	}
}
