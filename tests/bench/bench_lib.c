/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench_lib.h. */
#include "tests/bench/bench_lib.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t bench_wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int64_t bench_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool bench_init(struct bench *b, const char *name, int argc, char **argv)
{
	*b = (struct bench){.name = name, .runs = 5, .seed = (uint64_t)bench_wall_ns() | 1};
	for (int i = 1; i < argc; i += 2) {
		const char *v = i + 1 < argc ? argv[i + 1] : NULL;

		if (v && strcmp(argv[i], "--json") == 0) {
			b->json = fopen(v, "a");
			if (!b->json) {
				perror(v);
				return false;
			}
		} else if (v && strcmp(argv[i], "--seed") == 0) {
			b->seed = strtoull(v, NULL, 0);
		} else if (v && strcmp(argv[i], "--runs") == 0) {
			b->runs = (unsigned)strtoul(v, NULL, 0);
		} else {
			b->runs = 0;
		}
	}
	if (b->runs < 5 || b->runs > BENCH_RUNS_MAX) {
		fprintf(stderr, "usage: %s [--json FILE] [--seed N] [--runs 5..%d]\n", argv[0],
			BENCH_RUNS_MAX);
		return false;
	}
	printf("%s: seed %llu, medians of %u interleaved runs\n", name, (unsigned long long)b->seed,
	       b->runs);
	printf("%-40s %12s %12s %-10s %6s %7s\n", "case", "value", "floor", "unit", "ratio",
	       "spread");
	return true;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Sorts v. */
static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), ascending);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void bench_run(struct bench *b, const struct bench_case *c)
{
	double p[BENCH_RUNS_MAX], f[BENCH_RUNS_MAX], value, floor_value = 0, ratio = 0, spread;
	bool missed;

	for (unsigned i = 0; i < b->runs; i++) {
		p[i] = c->product(c->ctx);
		f[i] = c->floor ? c->floor(c->ctx) : 0;
		if (p[i] < 0 || f[i] < 0) {
			printf("%-40s failed\n", c->name);
			b->failed = true;
			return;
		}
	}
	value = median(p, b->runs);
	spread = value > 0 ? (p[b->runs - 1] - p[0]) / value : 0;
	if (c->floor) {
		floor_value = median(f, b->runs);
		ratio = c->kind == BENCH_COST ? floor_value / value : value / floor_value;
	}
	missed = (c->target > 0 &&
		  (c->kind == BENCH_TIMES ? ratio > c->target : ratio < c->target)) ||
		 (c->least > 0 && value < c->least);
	b->failed |= missed;
	printf("%-40s %12.1f %12.1f %-10s %6.3f %7.3f%s\n", c->name, value, floor_value, c->unit,
	       ratio, spread, missed ? "  MISSED" : "");
	if (c->target > 0 && c->least > 0)
		printf("%-40s target: ratio %.2f, at least %.0f\n", "", c->target, c->least);
	else if (c->target > 0)
		printf("%-40s target: ratio %s%.2f\n", "", c->kind == BENCH_TIMES ? "at most " : "",
		       c->target);
	fflush(stdout);
	if (b->json)
		fprintf(b->json,
			"{\"bench\":\"%s\",\"case\":\"%s\",\"value\":%.3f,\"unit\":\"%s\","
			"\"floor\":%.3f,\"ratio\":%.4f,\"runs\":%u,\"spread\":%.4f}\n",
			b->name, c->name, value, c->unit, floor_value, ratio, b->runs, spread);
}

int bench_end(struct bench *b)
{
	if (b->json && fclose(b->json)) {
		perror("json");
		b->failed = true;
	}
	return b->failed;
}
