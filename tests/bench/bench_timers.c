/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `timers`: `dispatch` to 100 000 Spots on one lane while each of them has a timer at 30
 * Hz. The lane's clock is its own CPU time, so that what else the machine does is not in it; it is
 * read before every pass, in both columns.
 *
 * Floor: the same Spots and messages with the timers cancelled. Cost: thread CPU time a message,
 * the ticks are the rest. Exit 1 when fewer than 99 % of the ticks that were due have been
 * delivered.
 */
#include "tests/bench/bench_lib.h"
#include "tests/bench/dispatch_rx.h"
#include "tests/lib/t_main.h"

#include "common/ids.h"

#include <stdlib.h>
#include <string.h>

#define SPOTS	  100000u
#define HZ	  30
#define PERIOD_NS (1000000000 / HZ)
#define MESSAGES  (6u << 20) /* of one run */

struct state {
	uint64_t bytes;
	uint64_t ticks; /* of the timer that is armed */
	uint64_t begun_ns;
	struct spl_timer timer;
};

static uint64_t handled, delivered, expected, failed, told;
static uint64_t now_ns; /* the node's clock */

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	((struct state *)state)->bytes += m->payload_bytes;
	handled++;
	return SPL_DONE;
}

static int on_tick(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	((struct state *)state)->ticks++;
	return SPL_DONE;
}

static int on_arm(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct state *s = state;

	told++;
	s->ticks = 0;
	s->begun_ns = spl_now_ns(turn);
	failed += spl_timer_start(turn, "beat", 4, PERIOD_NS, on_tick, NULL, &s->timer) != 0;
	return SPL_DONE;
}

static int on_disarm(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct state *s = state;

	told++;
	failed += spl_timer_cancel(turn, s->timer) != 0;
	delivered += s->ticks;
	expected += (spl_now_ns(turn) - s->begun_ns) / PERIOD_NS;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {{"add", SPL_TAKES_SEND, on_add},
					      {"arm", SPL_TAKES_SEND, on_arm},
					      {"disarm", SPL_TAKES_SEND, on_disarm}};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "bench",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct state),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
};

struct timers {
	struct t_node node;
	struct spl_key *key;
	struct dispatch_rx rx;
};

/* One pass, at the CPU time that this thread has had. */
static unsigned pass(struct timers *t)
{
	now_ns = (uint64_t)bench_cpu_ns();
	return lane_pass(t->node.lane[0]);
}

static void create(struct timers *t)
{
	char id[64];

	for (uint32_t i = 0; i < SPOTS; i++) {
		int len = snprintf(id, sizeof(id), "spot-%031u", i);

		t->key[i] = spl_spot_key(id, (size_t)len);
		if (t_node_create(&t->node, id, "bench") != SPOT_ACCEPTED) {
			fprintf(stderr, "bench_timers: Spot %u was not made\n", i);
			exit(2);
		}
	}
}

/* `packet` to every Spot, as if another one had sent it. */
static void tell_all(struct timers *t, const char *packet)
{
	struct spot_lane *l = t->node.lane[0]->spots;
	uint64_t packet_key = spl_packet_key(packet, strlen(packet));

	told = 0;
	for (uint32_t i = 0; i < SPOTS; i++) {
		struct spot_rec *r;

		if (spot_recs_take(l, &r, 1) != 1)
			exit(2);
		*r = (struct spot_rec){.packet = packet_key,
				       .kind = SPL_MSG_SPOT_SEND,
				       .origin = SPOT_FROM_SELF,
				       .key = &t->key[i]};
		r->msg.content = SPL_CONTENT_RAW;
		spot_admit(l, &r, 1, now_ns);
		if (i % 32 == 31)
			pass(t);
	}
	while (told < SPOTS) /* with timers there always is something to do */
		pass(t);
}

static double cost(struct timers *t)
{
	uint64_t before = handled, fed = t->rx.messages;
	int64_t begin;

	dispatch_rx_use(&t->rx);
	begin = bench_cpu_ns();
	while (t->rx.messages - fed < MESSAGES)
		pass(t);
	begin = bench_cpu_ns() - begin;
	dispatch_rx_end(&t->rx);
	return (double)begin / (double)(handled - before);
}

static double product(void *ctx)
{
	struct timers *t = ctx;
	double c;

	tell_all(t, "arm");
	c = cost(t);
	tell_all(t, "disarm");
	return failed ? -1 : c;
}

static double floor_cost(void *ctx)
{
	return cost(ctx);
}

int main(int argc, char **argv)
{
	static const struct spl_stage *const stages[] = {&stage};
	struct t_node_conf conf = {.lanes = 1,
				   .spots_max = SPOTS,
				   .timers = SPOTS,
				   .heap_bytes = 64u << 20,
				   .fake_ns = &now_ns,
				   .stages = stages,
				   .n_stages = 1};
	struct timers *t = calloc(1, sizeof(*t));
	struct spl_key *stream = malloc(sizeof(*stream) * DISPATCH_STREAM);
	struct bench_case c = {.name = "armed=100000,hz=30",
			       .unit = "ns",
			       .kind = BENCH_COST,
			       .target = 0.7,
			       .product = product,
			       .floor = floor_cost,
			       .ctx = t};
	struct t_rand r;
	struct bench b;

	if (!t || !stream || !bench_init(&b, "timers", argc, argv) || t_eal_start(1) != 0)
		return 2;
	r.s = b.seed;
	t->key = malloc(sizeof(*t->key) * SPOTS);
	if (!t->key)
		return 2;
	now_ns = (uint64_t)bench_cpu_ns();
	t_node_start(&t->node, &conf);
	create(t);
	for (unsigned i = 0; i < DISPATCH_PEERS; i++)
		t_node_peer(&t->node);
	for (uint32_t i = 0; i < DISPATCH_STREAM; i++)
		stream[i] = t->key[t_rand_below(&r, SPOTS)];
	dispatch_rx_init(&t->rx, &t->node, 64, 1, stream);
	t->rx.handled = &handled;
	dispatch_rx_use(&t->rx); /* what the port sends is freed from here on */
	bench_run(&b, &c);
	printf("%-40s %12.0f of %.0f ticks delivered, at least 99 %%\n", "", (double)delivered,
	       (double)expected);
	if ((double)delivered < 0.99 * (double)expected || expected == 0) {
		fprintf(stderr, "bench_timers: ticks are missing\n");
		b.failed = true;
	}
	if (t_node_fails(&t->node, -1) != 0 || failed) {
		fprintf(stderr, "bench_timers: %llu calls and %llu messages failed\n",
			(unsigned long long)failed, (unsigned long long)t_node_fails(&t->node, -1));
		b.failed = true;
	}
	fflush(NULL);
	t_eal_stop();
	return bench_end(&b); /* the node stays: its peers never sent, so it cannot be settled */
}
