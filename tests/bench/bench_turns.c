/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `turns`: a request and its reply between two Spots of one lane of the real loop: the
 * handler that asks, the handler that answers, the continuation. `owners` pairs of Spots do it at
 * the same time, each pair one after another; the asker waits under HOLD or under YIELD. A handler
 * asks ROUND times, then sends itself the message for the next row, whose cost is in the numbers.
 *
 * Floor: one message of `dispatch` with 1 000 Spots and 64 bytes, on the same lane; the ratio is
 * the cost in such messages. Cost: thread CPU time. Exit 1 above the targets, or when an answer
 * failed.
 */
#include "tests/bench/bench_lib.h"
#include "tests/bench/dispatch_rx.h"
#include "tests/lib/t_main.h"

#include "common/ids.h"

#include <stdlib.h>
#include <string.h>

#define SPOTS  1000u
#define PAIRS  64u
#define CYCLES (1u << 20) /* of one run */
#define ROUND  16u

static uint64_t handled, cycles, wrong;
static bool stopping;

struct asker {
	struct spl_target other, self;
	enum spl_wait wait;
	uint32_t left;
};

static uint64_t ask_key, go_key;

static int next_ask(struct spl_turn *turn, struct asker *a);

static int on_answer(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct asker *a = state;

	cycles++;
	wrong += r->kind != SPL_OK || r->payload_bytes != 8;
	if (stopping)
		return SPL_DONE;
	if (--a->left > 0)
		return next_ask(turn, a);
	wrong += spl_send(turn, &a->self, go_key, SPL_CONTENT_RAW, &a->wait, sizeof(a->wait)) != 0;
	return SPL_DONE;
}

static int next_ask(struct spl_turn *turn, struct asker *a)
{
	static const uint64_t payload = 1;
	struct spl_call *call;

	if (spl_request(turn, &a->other, ask_key, SPL_CONTENT_RAW, &payload, sizeof(payload), 0,
			a->wait, &call) ||
	    spl_call_then(turn, call, on_answer, NULL)) {
		wrong++;
		return SPL_DONE;
	}
	return SPL_SUSPENDED;
}

static int on_go(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct asker *a = state;

	memcpy(&a->wait, m->payload, sizeof(a->wait));
	a->left = ROUND;
	return next_ask(turn, a);
}

static int on_ask(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	wrong += spl_reply(turn, SPL_CONTENT_RAW, m->payload, m->payload_bytes) != 0;
	return SPL_DONE;
}

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	*(uint64_t *)state += m->payload_bytes;
	handled++;
	return SPL_DONE;
}

/* "ask-N" asks "tell-N". */
static int on_create(struct spl_turn *turn, void *state, const struct spl_message *request)
{
	const struct spl_name *id = spl_spot_id(turn);
	struct asker *a = state;
	char other[64];
	int len;

	if (id->len < 4 || memcmp(id->b, "ask-", 4) != 0)
		return SPL_DONE;
	len = snprintf(other, sizeof(other), "tell-%.*s", id->len - 4, (const char *)id->b + 4);
	if (spl_target_set(&a->other, other, (size_t)len) ||
	    spl_target_set(&a->self, id->b, id->len))
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	return SPL_DONE;
}

static const struct spl_handler bench_handlers[] = {{"add", SPL_TAKES_SEND, on_add}};
static const struct spl_handler pair_handlers[] = {{"go", SPL_TAKES_SEND, on_go},
						   {"ask", SPL_TAKES_REQUEST, on_ask}};

static const struct spl_stage bench_stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "bench",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 16,
	.handlers = bench_handlers,
	.handler_count = T_COUNT(bench_handlers),
};
static const struct spl_stage pair_stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "pair",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct asker),
	.handlers = pair_handlers,
	.handler_count = T_COUNT(pair_handlers),
	.on_create = on_create,
};

struct turns {
	struct t_node node;
	struct spl_key key[PAIRS]; /* of the askers */
	struct dispatch_rx rx;
	enum spl_wait wait;
	unsigned owners;
};

static void create(struct turns *t, struct spl_key *spots)
{
	char id[64];

	for (uint32_t i = 0; i < SPOTS; i++) {
		int len = snprintf(id, sizeof(id), "spot-%031u", i);

		spots[i] = spl_spot_key(id, (size_t)len);
		if (t_node_create(&t->node, id, "bench") != SPOT_ACCEPTED)
			exit(2);
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		snprintf(id, sizeof(id), "tell-%u", i);
		if (t_node_create(&t->node, id, "pair") != SPOT_ACCEPTED)
			exit(2);
		snprintf(id, sizeof(id), "ask-%u", i);
		t->key[i] = spl_spot_key(id, strlen(id));
		if (t_node_create(&t->node, id, "pair") != SPOT_ACCEPTED)
			exit(2);
	}
}

/* The first message of a pair, as if another Spot had sent it. */
static void go(struct turns *t, unsigned pair)
{
	struct spot_lane *l = t->node.lane[0]->spots;
	struct spot_rec *r;

	if (spot_recs_take(l, &r, 1) != 1)
		exit(2);
	*r = (struct spot_rec){.packet = go_key,
			       .kind = SPL_MSG_SPOT_SEND,
			       .origin = SPOT_FROM_SELF,
			       .key = &t->key[pair]};
	r->msg.payload = &t->wait;
	r->msg.payload_bytes = sizeof(t->wait);
	r->msg.content = SPL_CONTENT_RAW;
	spot_admit(l, &r, 1, spot_cycles());
}

static double product(void *ctx)
{
	struct turns *t = ctx;
	uint64_t before = cycles;
	int64_t begin;
	double cost;

	stopping = false;
	dispatch_rx_end(&t->rx);
	for (unsigned i = 0; i < t->owners; i++)
		go(t, i);
	begin = bench_cpu_ns();
	while (cycles - before < CYCLES && wrong == 0)
		lane_pass(t->node.lane[0]);
	cost = (double)(bench_cpu_ns() - begin) / (double)(cycles - before);
	stopping = true;
	while (lane_pass(t->node.lane[0]) > 0)
		;
	return wrong ? -1 : cost;
}

static double floor_cost(void *ctx)
{
	struct turns *t = ctx;

	dispatch_rx_use(&t->rx);
	return dispatch_rx_cost(&t->rx, CYCLES);
}

static void measure(struct bench *b, struct turns *t)
{
	static const struct {
		const char *name;
		enum spl_wait wait;
		unsigned owners;
		double target;
	} rows[] = {
		{"wait=hold,owners=1", SPL_WAIT_HOLD, 1, 4},
		{"wait=hold,owners=8", SPL_WAIT_HOLD, 8, 0},
		{"wait=hold,owners=64", SPL_WAIT_HOLD, 64, 0},
		{"wait=yield,owners=1", SPL_WAIT_YIELD, 1, 5},
		{"wait=yield,owners=8", SPL_WAIT_YIELD, 8, 0},
		{"wait=yield,owners=64", SPL_WAIT_YIELD, 64, 0},
	};

	for (size_t i = 0; i < T_COUNT(rows); i++) {
		struct bench_case c = {
			.name = rows[i].name,
			.unit = "ns",
			.kind = BENCH_TIMES,
			.target = rows[i].target,
			.product = product,
			.floor = floor_cost,
			.ctx = t,
		};

		t->wait = rows[i].wait;
		t->owners = rows[i].owners;
		bench_run(b, &c);
	}
}

int main(int argc, char **argv)
{
	static const struct spl_stage *const stages[] = {&bench_stage, &pair_stage};
	struct t_node_conf conf = {.lanes = 1, .spots_max = 2048, .stages = stages, .n_stages = 2};
	struct turns *t = calloc(1, sizeof(*t));
	struct spl_key spots[SPOTS], *stream = malloc(sizeof(*stream) * DISPATCH_STREAM);
	struct t_rand r;
	struct bench b;

	if (!t || !stream || !bench_init(&b, "turns", argc, argv) || t_eal_start(1) != 0)
		return 2;
	ask_key = spl_packet_key("ask", 3);
	go_key = spl_packet_key("go", 2);
	r.s = b.seed;
	t_node_start(&t->node, &conf);
	create(t, spots);
	for (unsigned i = 0; i < DISPATCH_PEERS; i++)
		t_node_peer(&t->node);
	for (uint32_t i = 0; i < DISPATCH_STREAM; i++)
		stream[i] = spots[t_rand_below(&r, SPOTS)];
	dispatch_rx_init(&t->rx, &t->node, 64, 1, stream);
	t->rx.handled = &handled;
	dispatch_rx_use(&t->rx); /* what the port sends is freed from here on */
	measure(&b, t);
	if (t_node_fails(&t->node, -1) != 0 || wrong) {
		fprintf(stderr, "bench_turns: %llu answers were wrong, %llu messages failed\n",
			(unsigned long long)wrong, (unsigned long long)t_node_fails(&t->node, -1));
		b.failed = true;
	}
	fflush(NULL);
	t_eal_stop();
	return bench_end(&b); /* the node stays: its peers never sent, so it cannot be settled */
}
