/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `fanout`: one publish to `fan` Spots of the node, from the publisher's call to the
 * return of every subscriber's handler, on the real loop. With two lanes both run on this thread,
 * one after the other, and half of the subscribers are in each.
 *
 * Floor, for one lane: for each subscriber a reference counted, a node appended to its queue and
 * the subscriber to a ready list; then each popped, one reading of the time-stamp counter, a call,
 * the reference given back. Cost: thread CPU time a delivery. Exit 1 below the targets, or when a
 * delivery is missing.
 */
#include "tests/bench/bench_lib.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"

#include "common/ids.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES	   64u
#define FAN_MAX	   1000u
#define DELIVERIES (1u << 22) /* of one run */
#define BATCH	   1000u      /* deliveries that are on their way: so much is published for them */

static uint64_t delivered, published, wrong;
static uint64_t go_key, news_key;
static const unsigned fans[] = {8, 100, FAN_MAX};
static struct spl_topic topics[3]; /* by fan */

struct member {
	uint64_t bytes;
};

static int on_news(struct spl_turn *turn, void *state, const struct spl_message *m,
		   const struct spl_topic *topic)
{
	((struct member *)state)->bytes += m->payload_bytes;
	delivered++;
	return SPL_DONE;
}

/* "sub-N": subscribes to every fan that is larger than N. */
static int on_configure(struct spl_turn *turn, void *state)
{
	const struct spl_name *id = spl_spot_id(turn);
	char text[64];
	unsigned n;

	snprintf(text, sizeof(text), "%.*s", id->len, (const char *)id->b);
	if (sscanf(text, "sub-%u", &n) != 1)
		return SPL_DONE;
	for (unsigned i = 0; i < 3; i++)
		if (n % FAN_MAX < fans[i] && spl_subscribe(turn, &topics[i], "news", on_news) != 0)
			return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	return SPL_DONE;
}

static int on_go(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static const uint8_t payload[BYTES];
	unsigned which;

	memcpy(&which, m->payload, sizeof(which));
	wrong += spl_publish(turn, &topics[which], news_key, SPL_CONTENT_RAW, payload, BYTES) != 0;
	published++;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {{"go", SPL_TAKES_SEND, on_go}};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "bench",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct member),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
	.on_configure = on_configure,
};

struct fanout {
	struct t_node node;
	unsigned lanes, fan, which;
	struct spl_key publisher;
	uint32_t publisher_lane;
};

/* ---- the floor ---- */

struct floor_payload {
	uint32_t refs;
	uint8_t bytes[BYTES];
};

struct floor_node {
	struct floor_node *next;
	struct floor_payload *payload;
} __attribute__((aligned(64)));

struct floor_object {
	struct floor_object *ready_next;
	struct floor_node *head, *tail;
	uint64_t bytes;
	bool ready;
} __attribute__((aligned(64)));

static struct floor_object objects[FAN_MAX];
static struct floor_node nodes[FAN_MAX];
static struct floor_node *free_nodes;
static uint64_t floor_delivered, clock_sum;

static __attribute__((noinline)) void floor_handler(struct floor_object *o, const uint8_t *payload)
{
	o->bytes += payload[0] + BYTES;
	floor_delivered++;
}

static void (*volatile handler)(struct floor_object *o, const uint8_t *payload) = floor_handler;

static void floor_publish(struct floor_payload *p, unsigned fan)
{
	struct floor_object *ready = NULL, **tail = &ready;

	for (unsigned i = 0; i < fan; i++) {
		struct floor_object *o = &objects[i];
		struct floor_node *n = free_nodes;

		free_nodes = n->next;
		n->payload = p;
		n->next = NULL;
		p->refs++;
		if (o->head)
			o->tail->next = n;
		else
			o->head = n;
		o->tail = n;
		if (!o->ready) {
			o->ready = true;
			o->ready_next = NULL;
			*tail = o;
			tail = &o->ready_next;
		}
	}
	while (ready) {
		struct floor_object *o = ready;
		struct floor_node *n = o->head;

		ready = o->ready_next;
		o->ready = false;
		o->head = n->next;
		clock_sum += spot_cycles();
		handler(o, n->payload->bytes);
		n->payload->refs--;
		n->next = free_nodes;
		free_nodes = n;
	}
}

static double floor_cost(void *ctx)
{
	static struct floor_payload payload;
	const struct fanout *t = ctx;
	uint64_t before = floor_delivered;
	int64_t begin = bench_cpu_ns();

	while (floor_delivered - before < DELIVERIES)
		floor_publish(&payload, t->fan);
	return (double)(bench_cpu_ns() - begin) / (double)(floor_delivered - before);
}

/* ---- the product ---- */

static void go(struct fanout *t)
{
	struct spot_lane *l = t->node.lane[t->publisher_lane]->spots;
	struct spot_rec *r;

	if (spot_recs_take(l, &r, 1) != 1)
		exit(2);
	*r = (struct spot_rec){.packet = go_key,
			       .kind = SPL_MSG_SPOT_SEND,
			       .origin = SPOT_FROM_SELF,
			       .key = &t->publisher};
	r->msg.payload = &t->which;
	r->msg.payload_bytes = sizeof(t->which);
	r->msg.content = SPL_CONTENT_RAW;
	spot_admit(l, &r, 1, spot_cycles());
}

static unsigned pass(struct fanout *t)
{
	unsigned work = 0;

	for (unsigned i = 0; i < t->lanes; i++)
		work += lane_pass(t->node.lane[i]);
	return work;
}

static double product(void *ctx)
{
	struct fanout *t = ctx;
	uint64_t before = delivered, begun = published, told = begun;
	int64_t begin;
	double cost;

	begin = bench_cpu_ns();
	while (delivered - before < DELIVERIES && wrong == 0) {
		while ((told - begun) * t->fan - (delivered - before) < BATCH) {
			go(t);
			told++;
		}
		pass(t);
	}
	cost = (double)(bench_cpu_ns() - begin) / (double)(delivered - before);
	for (int quiet = 0; quiet < 8;) /* what travels between the lanes arrives */
		quiet = pass(t) > 0 ? 0 : quiet + 1;
	if (delivered - before != (published - begun) * t->fan) {
		fprintf(stderr, "bench_fanout: %llu of %llu delivered\n",
			(unsigned long long)(delivered - before),
			(unsigned long long)((published - begun) * t->fan));
		return -1;
	}
	return wrong ? -1 : cost;
}

/* The publisher's lane, and with two lanes ids until each lane has half of every fan. */
static void create(struct fanout *t)
{
	if (t_node_create(&t->node, "publisher", "bench") != SPOT_ACCEPTED)
		exit(2);
	t->publisher = spl_spot_key("publisher", 9);
	t->publisher_lane = spl_key_lane(&t->publisher, t->lanes);
	for (unsigned n = 0, made = 0; made < FAN_MAX; n += FAN_MAX) {
		char id[64];
		struct spl_key key;
		uint32_t lane;

		snprintf(id, sizeof(id), "sub-%u", n + made);
		key = spl_spot_key(id, strlen(id));
		lane = spl_key_lane(&key, t->lanes);
		if (t->lanes == 2 && lane != made % 2)
			continue;
		if (t_node_create(&t->node, id, "bench") != SPOT_ACCEPTED)
			exit(2);
		made++;
	}
}

static void measure(struct bench *b, unsigned lanes)
{
	static const struct spl_stage *const stages[] = {&stage};
	struct t_node_conf conf = {.lanes = lanes, .stages = stages, .n_stages = 1};
	struct fanout *t = calloc(1, sizeof(*t));

	if (!t)
		exit(2);
	t->lanes = lanes;
	t_node_start(&t->node, &conf);
	create(t);
	for (unsigned i = 0; i < T_COUNT(fans); i++) {
		char name[64];
		struct bench_case c = {
			.name = name,
			.unit = "ns",
			.kind = BENCH_COST,
			.target = lanes == 1 && fans[i] >= 100 ? 0.6 : 0,
			.product = product,
			.floor = floor_cost,
			.ctx = t,
		};

		snprintf(name, sizeof(name), "fan=%u,bytes=%u,lanes=%u", fans[i], BYTES, lanes);
		t->fan = fans[i];
		t->which = i;
		bench_run(b, &c);
		fflush(stdout);
	}
	if (t_node_fails(&t->node, -1) != 0)
		b->failed = true;
}

/* One EAL and one node a process, and the node stays until its end. */
static bool in_child(struct bench *b, unsigned lanes)
{
	int status = 2;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (t_eal_start(lanes) != 0)
			_exit(2);
		measure(b, lanes);
		fflush(NULL);
		t_eal_stop();
		_exit(b->failed);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"eight", "hundred", "thousand"};
	struct bench b;

	if (!bench_init(&b, "fanout", argc, argv))
		return 2;
	go_key = spl_packet_key("go", 2);
	news_key = spl_packet_key("news", 4);
	for (unsigned i = 0; i < 3; i++)
		(void)spl_topic_set(&topics[i], "world", 5, names[i], strlen(names[i]));
	for (unsigned i = 0; i < FAN_MAX; i++) {
		nodes[i].next = free_nodes;
		free_nodes = &nodes[i];
	}
	for (unsigned lanes = 1; lanes <= 2; lanes++)
		b.failed |= !in_child(&b, lanes);
	return bench_end(&b);
}
