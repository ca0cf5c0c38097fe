/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `link`: goodput of two link engines in virtual time over 10 Gbit/s, 200 us round trip
 * and one bandwidth-delay product of queue; loss strikes both directions. Every byte is checked
 * where it arrives, and everything must come back to its pool: a run that loses anything ends with
 * exit 1. Floor: the path rate for loss=0, otherwise the lossless run of the same size.
 *
 * Below, the processor time of the engine itself, in nanoseconds a packet.
 */
#include "tests/bench/bench_link_cpu.h"
#include "tests/unit/link/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS	      5
#define PATH_BITS     10000000000ULL
#define ROUND_TRIP_NS 200000ULL
#define FRAME_EXTRA   46 /* Ethernet with its checksum, IPv4 and UDP around a packet */

struct one_case {
	uint32_t loss_ppm, bytes;
};

struct result {
	double value, floor, ratio, spread;
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Median of RUNS seeds, and (largest - smallest) / median. False when a run failed. */
static bool measure(const struct one_case *c, uint64_t seed, struct result *r)
{
	double v[RUNS];

	for (int i = 0; i < RUNS; i++) {
		v[i] = goodput(c, seed + (uint64_t)i);
		if (v[i] < 0)
			return false;
	}
	qsort(v, RUNS, sizeof(v[0]), by_value);
	r->value = v[RUNS / 2];
	r->spread = (v[RUNS - 1] - v[0]) / r->value;
	return true;
}

static void report(const struct one_case *c, const struct result *r, FILE *json)
{
	double percent = c->loss_ppm / 10000.0;

	printf("%8g %8u %12.3f %12.3f %8.3f %8.3f\n", percent, c->bytes, r->value, r->floor,
	       r->ratio, r->spread);
	if (json)
		fprintf(json,
			"{\"bench\":\"link\",\"case\":\"loss=%g,bytes=%u\",\"value\":%.4f,"
			"\"unit\":\"Gbit/s\",\"floor\":%.4f,\"ratio\":%.4f,\"runs\":%d,"
			"\"spread\":%.4f}\n",
			percent, c->bytes, r->value, r->floor, r->ratio, RUNS, r->spread);
}

/* The value of an option, or NULL. */
static const char *option(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return NULL;
}

int main(int argc, char **argv)
{
	static const uint32_t loss[] = {0, 1000, 10000, 100000}, bytes[] = {64, 65536};
	const char *path = option(argc, argv, "--json"), *number = option(argc, argv, "--seed");
	FILE *json = path ? fopen(path, "a") : NULL;
	uint64_t seed = number ? strtoull(number, NULL, 0) : 1;

	if (path && !json)
		return 1;

	printf("link: goodput, 10 Gbit/s, 200 us, one BDP of queue, %d seeds from %llu\n", RUNS,
	       (unsigned long long)seed);
	printf("%8s %8s %12s %12s %8s %8s\n", "loss %", "bytes", "Gbit/s", "floor", "ratio",
	       "spread");
	for (size_t b = 0; b < T_COUNT(bytes); b++) {
		double lossless = PATH_BITS / 1e9;

		for (size_t l = 0; l < T_COUNT(loss); l++) {
			struct one_case c = {loss[l], bytes[b]};
			struct result r = {.floor = lossless};

			if (!measure(&c, seed, &r))
				return 1;
			r.ratio = r.value / r.floor;
			if (l == 0)
				lossless = r.value;
			report(&c, &r, json);
		}
	}
	if (json && fclose(json))
		return 1;
	return bench_link_cpu() ? 0 : 1;
}
