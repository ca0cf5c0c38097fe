/* SPDX-License-Identifier: BSD-3-Clause */
/* What the benchmarks share: options, seed, interleaved runs of product and floor, medians, a table
 * for people and one JSON object a line. One thread.
 */
#ifndef SPL_TESTS_BENCH_LIB_H
#define SPL_TESTS_BENCH_LIB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_RUNS_MAX 99

struct bench {
	const char *name;
	FILE *json; /* NULL without --json */
	uint64_t seed;
	unsigned runs; /* at least 5 */
	bool failed;
};

/* What the numbers of a case are. RATE: more is better, ratio = product / floor. COST: less is
 * better, ratio = floor / product. Both: 1.0 is free, and the ratio is to be at least the target.
 * TIMES: less is better, ratio = product / floor, at most the target. */
enum bench_kind { BENCH_RATE, BENCH_COST, BENCH_TIMES };

struct bench_case {
	const char *name; /* "key=value,key=value" */
	const char *unit;
	enum bench_kind kind;
	double target; /* of the ratio, in the direction of its kind; 0: shown only */
	double least;  /* of the value; 0: shown only */
	/* One run; the value, or a negative one when it failed. floor may be NULL. */
	double (*product)(void *ctx);
	double (*floor)(void *ctx);
	void *ctx;
};

/* Options: --json FILE, --seed N, --runs N. Prints the seed. False: usage was printed. */
bool bench_init(struct bench *b, const char *name, int argc, char **argv);

/* Runs product and floor in turn, prints the row, writes the JSON line. */
void bench_run(struct bench *b, const struct bench_case *c);

/* Exit status: 0, or 1 when a run failed or a target was missed. */
int bench_end(struct bench *b);

/* Wall and thread CPU time in ns. */
int64_t bench_wall_ns(void);
int64_t bench_cpu_ns(void);

#endif
