/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `link`: goodput of two link engines in virtual time over 10 Gbit/s, 200 us round trip
 * and one bandwidth-delay product of queue; loss strikes both directions. Every byte is checked
 * where it arrives, and everything must come back to its pool: a run that loses anything ends with
 * exit 1. Floor: the path rate for loss=0, otherwise the lossless run of the same size.
 *
 * Below, the processor time of the engine itself, in nanoseconds a packet.
 */
#include "tests/bench/bench_lib.h"
#include "tests/bench/bench_link_cpu.h"
#include "tests/unit/link/net.h"

#include <stdio.h>

#define PATH_BITS     10000000000ULL
#define ROUND_TRIP_NS 200000ULL
#define FRAME_EXTRA   46 /* Ethernet with its checksum, IPv4 and UDP around a packet */

struct one_case {
	uint32_t loss_ppm, bytes;
	uint64_t seed; /* of the next run */
};

static void set_params(struct flow_params p[NET_ENDS])
{
	const uint64_t bdp = PATH_BITS / 8 * ROUND_TRIP_NS / 1000000000;

	net_params(p);
	for (int i = 0; i < NET_ENDS; i++) {
		p[i].window_packets = 512;
		p[i].window_bytes = (uint32_t)(bdp + bdp / 2);
		for (int c = 0; c < WIRE_CLASSES; c++) {
			p[i].cls[c].tx_slots = p[i].cls[c].rx_slots = 8192;
			p[i].cls[c].peer_window = 8192;
			p[i].cls[c].credit_min = p[i].cls[c].peer_credit = 1 << 20;
			p[i].cls[c].credit_max = 16 << 20;
		}
	}
}

/* Gbit/s of message bytes from the first send to the last delivery; negative when it failed. */
static double goodput(const struct one_case *c, uint64_t seed)
{
	struct flow_params p[NET_ENDS];
	struct net *n;
	uint64_t start;
	double gbit = -1;

	set_params(p);
	n = net_new(p, seed, 64 << 20);
	start = n->now;
	for (int i = 0; i < NET_ENDS; i++) {
		n->path[i] =
			(struct net_path){.loss_ppm = c->loss_ppm,
					  .delay_ns = ROUND_TRIP_NS / 2,
					  .bits_per_s = PATH_BITS,
					  .queue_bytes = PATH_BITS / 8 * ROUND_TRIP_NS / 1000000000,
					  .frame_extra = FRAME_EXTRA};
		n->end[i].load.consume_ns = 1000;
	}
	n->end[0].load.len_min = n->end[0].load.len_max = c->bytes;
	n->end[0].load.total[WIRE_APP] = (c->bytes > 1000 ? 50000000 : 10000000) / c->bytes;
	if (net_run(n, start + 60000000000ULL))
		gbit = (double)n->end[1].bytes[WIRE_APP] * 8 /
		       (double)(n->end[1].last_delivery - start);
	if (!net_fini(n)) {
		fprintf(stderr, "bench_link: seed %llu: %s\n", (unsigned long long)seed, n->fault);
		gbit = -1;
	}
	if (n->end[1].received[WIRE_APP] != n->end[0].load.total[WIRE_APP])
		gbit = -1;
	net_free(n);
	return gbit;
}

static double product(void *ctx)
{
	struct one_case *c = ctx;

	return goodput(c, c->seed++);
}

static double path_rate(void *ctx)
{
	return PATH_BITS / 1e9;
}

static double lossless(void *ctx)
{
	const struct one_case *c = ctx;
	struct one_case clean = {.bytes = c->bytes};

	return goodput(&clean, c->seed);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint32_t loss_ppm, bytes;
		double target;
	} row[] = {
		{"loss=0,bytes=64", 0, 64, 0},
		{"loss=0.1,bytes=64", 1000, 64, 0},
		{"loss=1,bytes=64", 10000, 64, 0},
		{"loss=10,bytes=64", 100000, 64, 0},
		{"loss=0,bytes=65536", 0, 65536, 0.9},
		{"loss=0.1,bytes=65536", 1000, 65536, 0},
		{"loss=1,bytes=65536", 10000, 65536, 0.9},
		{"loss=10,bytes=65536", 100000, 65536, 0},
	};
	struct bench b;
	int status;

	if (!bench_init(&b, "link", argc, argv))
		return 2;
	for (size_t i = 0; i < T_COUNT(row); i++) {
		struct one_case c = {row[i].loss_ppm, row[i].bytes, b.seed};
		struct bench_case bc = {.name = row[i].name,
					.unit = "Gbit/s",
					.kind = BENCH_RATE,
					.target = row[i].target,
					.product = product,
					.floor = row[i].loss_ppm ? lossless : path_rate,
					.ctx = &c};

		bench_run(&b, &bc);
	}
	status = bench_end(&b);
	return bench_link_cpu() ? status : 1;
}
