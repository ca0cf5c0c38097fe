/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `dispatch`: one-way messages from 8 peers, interleaved, from the receive burst to the
 * return of the handler, on one lane of the real loop; acknowledgements and credit are sent.
 *
 * The port's receive function is a stub that takes buffers from the lane's pool and writes headers
 * into them, in the place of a device; its transmit function frees. Floor: the same receive
 * function, the same frame parser, a table, a queue, a ready set, one reading of the time-stamp
 * counter, a call. Cost: thread CPU time a message. Product and floor take turns; medians. The
 * floor with the short way of the parser, which the lane takes for frames of its peers, is shown
 * beside it.
 *
 * Exit 1 when the floor itself is slow or a message was not handled exactly once.
 */
#include "tests/bench/bench_lib.h"
#include "tests/bench/dispatch_floor.h"
#include "tests/bench/dispatch_rx.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS	 7
#define MESSAGES (1u << 20) /* of one run */
#define FLOOR_1K 46	    /* ns: what the floor may cost here */
#define FLOOR_1M 90
#define TARGET	 0.6

static uint64_t handled;

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	*(uint64_t *)state += msg->payload_bytes;
	handled++;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {{"add", SPL_TAKES_SEND, on_add}};

static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "bench",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 16,
	.handlers = handlers,
	.handler_count = 1,
};
static const struct spl_stage *const stages[] = {&stage};

/* Creates the Spots; their keys in `keys`. */
static void create(struct t_node *n, struct spl_key *keys, uint32_t spots)
{
	for (uint32_t i = 0; i < spots; i++) {
		char id[64];
		int len = snprintf(id, sizeof(id), "spot-%031u", i);

		keys[i] = spl_spot_key(id, (size_t)len);
		if (t_node_create(n, id, "bench") != SPOT_ACCEPTED) {
			fprintf(stderr, "bench_dispatch: Spot %u was not made\n", i);
			exit(2);
		}
	}
}

static double floor_cost(struct dispatch_floor *fl, struct dispatch_rx *rx, bool is_short)
{
	uint64_t before = fl->handled, end = rx->messages + MESSAGES;
	int64_t begin = bench_cpu_ns();

	fl->is_short = is_short;
	while (rx->messages < end)
		dispatch_floor_pass(fl, rx);
	return (double)(bench_cpu_ns() - begin) / (double)(fl->handled - before);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v)
{
	qsort(v, RUNS, sizeof(*v), compare);
	return v[RUNS / 2];
}

struct row {
	uint32_t spots, bytes, per_frame;
};

static void show(const char *name, double *p, double *f, FILE *json)
{
	double value = median(p), floor = median(f), spread = (p[RUNS - 1] - p[0]) / value;

	printf("%-47s %7.1f ns  floor %6.1f ns  ratio %.2f  spread %.2f  %.2f M/s\n", name, value,
	       floor, floor / value, spread, 1e3 / value);
	if (json)
		fprintf(json,
			"{\"bench\":\"dispatch\",\"case\":\"%s\",\"value\":%.2f,\"unit\":\"ns\","
			"\"floor\":%.2f,\"ratio\":%.3f,\"runs\":%d,\"spread\":%.3f}\n",
			name, value, floor, floor / value, RUNS, spread);
}

/* One row of the table: 0, or 1 when the floor is slow or messages are missing. */
static int measure(struct t_node *n, const struct row *c, const struct spl_key *keys,
		   const struct spl_key *stream, FILE *json)
{
	static const char *const frames[] = {"single", "shared"};
	double p[RUNS], f[RUNS], s[RUNS];
	struct dispatch_rx rx, bare;
	struct dispatch_floor *fl = dispatch_floor_new(n, keys, c->spots);
	uint64_t start = handled;
	char name[64];
	int bad = 0;

	dispatch_rx_init(&rx, n, c->bytes, c->per_frame, stream);
	bare = rx;
	rx.handled = &handled;
	rx.handled_before = handled;
	bare.is_floor = true;
	for (int i = -1; i < RUNS; i++) { /* one to warm up */
		double a, b, e;

		dispatch_rx_use(&rx);
		a = dispatch_rx_cost(&rx, MESSAGES);
		b = floor_cost(fl, &bare, false);
		e = floor_cost(fl, &bare, true);
		if (i >= 0) {
			p[i] = a;
			f[i] = b;
			s[i] = e;
		}
	}
	dispatch_rx_end(&rx);
	while (lane_pass(n->lane[0]) > 0)
		;
	snprintf(name, sizeof(name), "spots=%u,bytes=%u,frames=%s", c->spots, c->bytes,
		 frames[c->per_frame > 1]);
	show(name, p, f, json);
	if (c->per_frame == 1) {
		char with_short[96];

		snprintf(with_short, sizeof(with_short), "%s,floor=short", name);
		show(with_short, p, s, json);
	}
	if (handled - start != rx.messages || t_node_fails(n, -1) != 0 ||
	    t_node_drops(n, -1) != 0) {
		fprintf(stderr,
			"bench_dispatch: %s: %llu of %llu handled, %llu failed, %llu dropped\n",
			name, (unsigned long long)(handled - start),
			(unsigned long long)rx.messages, (unsigned long long)t_node_fails(n, -1),
			(unsigned long long)t_node_drops(n, -1));
		bad = 1;
	}
	if (c->bytes == 64 && c->per_frame == 1 &&
	    ((c->spots == 1000 && median(f) > FLOOR_1K) ||
	     (c->spots == 1000000 && median(f) > FLOOR_1M))) {
		fprintf(stderr,
			"bench_dispatch: %s: the floor costs %.1f ns, too much to compare\n", name,
			median(f));
		bad = 1;
	}
	dispatch_floor_free(fl);
	return bad;
}

static int measure_all(uint32_t spots, struct t_rand *r, FILE *json)
{
	static const struct row rows[] = {{0, 64, 1}, {0, 64, 16}, {0, 1024, 1}};
	struct t_node *n = calloc(1, sizeof(*n));
	struct t_node_conf conf = {.lanes = 1, .spots_max = spots, .stages = stages, .n_stages = 1};
	struct spl_key *keys = malloc(sizeof(*keys) * spots);
	struct spl_key *stream = malloc(sizeof(*stream) * DISPATCH_STREAM);
	int bad = 0;

	t_node_start(n, &conf);
	create(n, keys, spots);
	for (int i = 0; i < 8; i++)
		t_node_peer(n);
	for (uint32_t i = 0; i < DISPATCH_STREAM; i++)
		stream[i] = keys[t_rand_below(r, spots)];
	for (size_t i = 0; i < T_COUNT(rows); i++) {
		struct row row = rows[i];

		row.spots = spots;
		bad |= measure(n, &row, keys, stream, json);
	}
	free(keys);
	free(stream);
	return bad; /* the node stays: its peers never sent, so it cannot be settled */
}

/* One EAL and one node a process: each number of Spots has its own. */
static int in_child(uint32_t spots, uint64_t seed, const char *json_path)
{
	struct t_rand r = {seed};
	FILE *json = NULL;
	pid_t pid;
	int status = 2;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		json = json_path ? fopen(json_path, "a") : NULL;
		if ((json_path && !json) || t_eal_start(1) != 0)
			exit(2);
		status = measure_all(spots, &r, json);
		fflush(NULL);
		t_eal_stop();
		_exit(status);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int main(int argc, char **argv)
{
	static const uint32_t spots[] = {1, 1000, 100000, 1000000};
	const char *env = getenv("SPL_SEED"), *json = NULL;
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
	int bad = 0;

	if (argc == 3 && strcmp(argv[1], "--json") == 0) {
		json = argv[2];
		remove(json);
	} else if (argc != 1) {
		fprintf(stderr, "usage: %s [--json FILE]\n", argv[0]);
		return 2;
	}
	printf("dispatch: %d runs of %u messages each, 8 peers, one lane, seed %llu; target %.1f\n",
	       RUNS, MESSAGES, (unsigned long long)seed, TARGET);
	for (size_t i = 0; i < T_COUNT(spots); i++)
		bad |= in_child(spots[i], seed, json);
	return bad;
}
