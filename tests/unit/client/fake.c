/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake node: see fake.h. Net and clock; the node's link and its Spots are in fake_node.c. */
#include "tests/unit/client/fake.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/fake_node.h"

static void net_push(struct fake *f, struct fake_net *n, const uint8_t *b, uint32_t len,
		     uint16_t port)
{
	struct fake_packet *p = &n->p[n->head % FAKE_PACKETS];

	if (f->is_cut || n->head - n->tail == FAKE_PACKETS || len > sizeof(p->b))
		return;
	if (f->loss_percent && t_rand_below(&f->rand, 100) < f->loss_percent)
		return;
	p->due_ns = f->now_ns + f->delay_ns;
	p->len = len;
	p->port = port;
	memcpy(p->b, b, len);
	n->head++;
}

static struct fake_packet *net_due(const struct fake *f, struct fake_net *n)
{
	struct fake_packet *p = &n->p[n->tail % FAKE_PACKETS];

	return n->head != n->tail && p->due_ns <= f->now_ns ? p : NULL;
}

void fake_to_client(struct fake *f, const uint8_t *b, uint32_t len, uint16_t port)
{
	net_push(f, &f->to_client, b, len, port);
}

struct fake_packet *fake_from_client(struct fake *f)
{
	struct fake_packet *p = net_due(f, &f->to_node);

	if (p)
		f->to_node.tail++;
	return p;
}

static unsigned ops_recv(void *net, struct net_packet *p, unsigned n)
{
	struct fake *f = net;
	struct fake_packet *from;
	unsigned got = 0;

	fake_node_run(f);
	while (got < n && (from = net_due(f, &f->to_client)) != NULL) {
		p[got].len = from->len;
		p[got].ip = 0x0a000001;
		p[got].port = from->port;
		memcpy(p[got].b, from->b, from->len);
		f->to_client.tail++;
		got++;
	}
	return got;
}

static unsigned ops_send(void *net, const struct net_packet *p, unsigned n)
{
	struct fake *f = net;

	for (unsigned i = 0; i < n; i++)
		net_push(f, &f->to_node, p[i].b, p[i].len, p[i].port);
	fake_node_run(f);
	return n;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Moves the clock to the next thing that happens, until the client has something to receive. */
static int ops_wait(void *net, bool to_send, uint64_t timeout_ns)
{
	struct fake *f = net;
	const uint64_t began = f->now_ns;
	const uint64_t until =
		timeout_ns > 3600000 * MS ? f->now_ns + 3600000 * MS : f->now_ns + timeout_ns;

	for (;;) {
		uint64_t next = until;

		fake_node_run(f);
		if (net_due(f, &f->to_client) || f->now_ns >= until)
			break;
		next = earlier(next, fake_node_timer(f));
		if (f->to_client.head != f->to_client.tail)
			next = earlier(next,
				       f->to_client.p[f->to_client.tail % FAKE_PACKETS].due_ns);
		if (f->to_node.head != f->to_node.tail)
			next = earlier(next, f->to_node.p[f->to_node.tail % FAKE_PACKETS].due_ns);
		f->now_ns = next > f->now_ns ? next : f->now_ns + 1000;
	}
	f->waited_ns += f->now_ns - began;
	return 0;
}

static int ops_fd(void *net)
{
	return -1;
}

static void ops_close(void *net)
{
}

static uint64_t ops_now(void *net)
{
	struct fake *f = net;

	return f->now_ns;
}

void fake_random(void *net, void *out, size_t bytes)
{
	struct fake *f = net;

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)out)[i] = (uint8_t)t_rand_u64(&f->rand);
}

static const struct net_ops ops = {
	.recv = ops_recv,
	.send = ops_send,
	.wait = ops_wait,
	.fd = ops_fd,
	.close = ops_close,
	.now = ops_now,
	.random = fake_random,
};

struct net fake_net(struct fake *f)
{
	return (struct net){.ops = &ops, .arg = f};
}

struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	CU_ASSERT_FATAL(f != NULL);
	f->now_ns = 1000000 * MS;
	f->delay_ns = MS / 20;
	f->rand.s = t_seed();
	f->to_node.p = calloc(FAKE_PACKETS, sizeof(struct fake_packet));
	f->to_client.p = calloc(FAKE_PACKETS, sizeof(struct fake_packet));
	f->seen = calloc(FAKE_LOG, sizeof(struct fake_seen));
	CU_ASSERT_FATAL(f->to_node.p && f->to_client.p && f->seen);
	f->lifecycle = 1;
	f->valid_ms = 15000;
	f->authority_error = SPL_OK;
	f->handler_error = SPL_OK;
	f->create_state = WIRE_CREATED;
	spl_name_set(&f->mesh, "default", 7);
	spl_name_set(&f->rid, "node-1", 6);
	fake_node_start(f);
	return f;
}

void fake_free(struct fake *f)
{
	fake_node_stop(f);
	free(f->to_node.p);
	free(f->to_client.p);
	free(f->seen);
	free(f);
}

void fake_restart(struct fake *f)
{
	fake_node_stop(f);
	memset(f->spot, 0, sizeof(f->spot));
	f->lifecycle++;
	fake_node_start(f);
}

void fake_config(struct spl_client_config *conf)
{
	spl_client_config_init(conf);
	conf->address = "10.0.0.1";
}

struct spl_client *fake_client(struct fake *f, const struct spl_client_config *conf)
{
	struct spl_client_config own;
	struct net net = fake_net(f);
	struct spl_client *c = NULL;

	fake_config(&own);
	CU_ASSERT_EQUAL_FATAL(client_open(conf ? conf : &own, &net, &c), 0);
	CU_ASSERT_EQUAL_FATAL(spl_client_connect(c, 5000), 0);
	return c;
}

struct spl_client_target fake_target(const char *id)
{
	struct spl_client_target t;

	CU_ASSERT_EQUAL_FATAL(spl_client_target_set(&t, id, strlen(id)), 0);
	return t;
}

uint32_t fake_count(const struct fake *f, int kind, uint64_t number)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->seen_n; i++)
		n += f->seen[i].kind == kind && (!number || f->seen[i].number == number);
	return n;
}

void fake_keep(struct spl_client *c, uint64_t call, const struct spl_client_result *r, void *ctx)
{
	struct fake_result *out = ctx;

	out->runs++;
	out->kind = r->kind;
	out->bytes = r->payload_bytes;
	out->content = r->content;
	out->number = 0;
	if (r->payload_bytes >= sizeof(out->number))
		memcpy(&out->number, r->payload, sizeof(out->number));
	out->found = r->found;
	out->closed = r->closed;
	out->created = (int)r->created;
	out->has_ref = r->ref != NULL;
	if (r->ref)
		out->ref = *r->ref;
}

struct spl_client_message fake_message(const struct spl_client_target *target,
				       const uint64_t *number)
{
	return (struct spl_client_message){
		.target = target,
		.packet = spl_packet_key("say", 3),
		.payload = number,
		.payload_bytes = sizeof(*number),
	};
}

void fake_until(struct spl_client *c, const struct fake_result *r)
{
	for (int i = 0; i < 120 && !r->runs; i++)
		(void)spl_client_poll(c, 1000);
	CU_ASSERT_EQUAL(r->runs, 1);
}

void fake_run(struct fake *f, struct spl_client *c, uint64_t ms)
{
	const uint64_t until = f->now_ns + ms * MS;

	while (f->now_ns < until)
		(void)spl_client_poll(c, (int)((until - f->now_ns + MS - 1) / MS));
}
