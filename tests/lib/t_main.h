/* SPDX-License-Identifier: BSD-3-Clause */
/* The one CUnit runner of the project.
 *
 * Every test program is: an array of suites and `int main(int c, char **v) { return
 * t_main(c, v, suites, T_COUNT(suites)); }`. The runner computes the exit status itself, because
 * CUnit's own error value stays 0 when assertions fail: the status is failure when any record
 * failed, when a suite could not be initialised, when no test ran, or when fewer ran than were
 * registered.
 *
 * A test names the contract clauses it proves, at most four, as strings ("S-GATE-2",
 * "A-JOIN-13"). With SPL_RESULTS=FILE in the environment the runner appends one line a test,
 * `suite.test<TAB>pass|fail<TAB>clauses...`, which tests/tools/clauses reads.
 *
 * Options: --list, NAME... (run only tests whose "suite.test" contains NAME), --seed N.
 */
#ifndef SPL_T_MAIN_H
#define SPL_T_MAIN_H

#include <stddef.h>
#include <stdint.h>

#define T_CLAUSES_MAX 4

struct t_case {
	const char *name;
	void (*fn)(void);
	const char *clauses[T_CLAUSES_MAX + 1];
};

struct t_suite {
	const char *name;
	int (*init)(void); /* may be NULL; non-zero fails the whole program */
	int (*fini)(void); /* may be NULL */
	const struct t_case *cases;
	size_t n_cases;
};

/* T(test_fn, "S-GATE-2", ...): one row of a case table. */
#define T(fn, ...) \
	{ \
#fn, fn, \
		{ \
			__VA_ARGS__ __VA_OPT__(, ) NULL \
		} \
	}
#define T_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define T_SUITE(nm, i, f, tab) \
	{ \
		nm, i, f, tab, T_COUNT(tab) \
	}

/* Runs the suites; returns the exit status for main. */
int t_main(int argc, char **argv, const struct t_suite *suites, size_t n_suites);

/* The seed of this run: --seed N, else SPL_SEED, else drawn; printed before the first test. */
uint64_t t_seed(void);

/* A small deterministic generator (splitmix64) for tests; owns nothing. */
struct t_rand {
	uint64_t s;
};
static inline uint64_t t_rand_u64(struct t_rand *r)
{
	uint64_t z = (r->s += 0x9e3779b97f4a7c15ULL);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}
static inline uint32_t t_rand_below(struct t_rand *r, uint32_t n)
{
	return (uint32_t)((t_rand_u64(r) >> 32) * (uint64_t)n >> 32);
}

#endif
