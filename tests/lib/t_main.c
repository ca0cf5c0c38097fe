/* SPDX-License-Identifier: BSD-3-Clause */
/* The one CUnit runner: see t_main.h. Single-threaded; owns the CUnit registry of the process. */
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
	const struct t_suite *suites;
	size_t n_suites;
	char **names;
	int n_names;
	uint64_t seed;
	FILE *results;
	unsigned failed_before;
	unsigned ran, failed;
} run;

uint64_t t_seed(void)
{
	return run.seed;
}

static bool selected(const char *suite, const char *test)
{
	char full[256];

	if (run.n_names == 0)
		return true;
	snprintf(full, sizeof(full), "%s.%s", suite, test);
	for (int i = 0; i < run.n_names; i++)
		if (strstr(full, run.names[i]))
			return true;
	return false;
}

static const struct t_case *find_case(const char *suite, const char *test)
{
	for (size_t i = 0; i < run.n_suites; i++) {
		if (strcmp(run.suites[i].name, suite) != 0)
			continue;
		for (size_t j = 0; j < run.suites[i].n_cases; j++)
			if (strcmp(run.suites[i].cases[j].name, test) == 0)
				return &run.suites[i].cases[j];
	}
	return NULL;
}

static void on_start(const CU_pTest test, const CU_pSuite suite)
{
	(void)test;
	(void)suite;
	run.failed_before = CU_get_number_of_failure_records();
}

static void on_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord f)
{
	bool ok = CU_get_number_of_failure_records() == run.failed_before;
	const struct t_case *c = find_case(suite->pName, test->pName);

	run.ran++;
	if (!ok) {
		run.failed++;
		printf("FAIL %s.%s (seed %llu)\n", suite->pName, test->pName,
		       (unsigned long long)run.seed);
		for (CU_pFailureRecord r = f; r; r = r->pNext)
			if (r->pTest == test)
				printf("  %s:%u: %s\n", r->strFileName, r->uiLineNumber,
				       r->strCondition);
	}
	if (run.results) {
		fprintf(run.results, "%s.%s\t%s\t", suite->pName, test->pName,
			ok ? "pass" : "fail");
		for (int i = 0; c && c->clauses[i]; i++)
			fprintf(run.results, "%s%s", i ? " " : "", c->clauses[i]);
		fputc('\n', run.results);
		fflush(run.results);
	}
}

static int register_all(unsigned *registered)
{
	for (size_t i = 0; i < run.n_suites; i++) {
		const struct t_suite *s = &run.suites[i];
		CU_pSuite cs = NULL;

		for (size_t j = 0; j < s->n_cases; j++) {
			if (!selected(s->name, s->cases[j].name))
				continue;
			if (!cs)
				cs = CU_add_suite(s->name, s->init, s->fini);
			if (!cs || !CU_add_test(cs, s->cases[j].name, s->cases[j].fn))
				return -1;
			(*registered)++;
		}
	}
	return 0;
}

static int parse(int argc, char **argv, bool *list)
{
	const char *env = getenv("SPL_SEED");

	run.seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list") == 0) {
			*list = true;
		} else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
			run.seed = strtoull(argv[++i], NULL, 0);
		} else if (argv[i][0] == '-') {
			fprintf(stderr, "usage: %s [--list] [--seed N] [NAME...]\n", argv[0]);
			return -1;
		} else {
			run.names = &argv[i];
			run.n_names = argc - i;
			return 0;
		}
	}
	return 0;
}

/* Says what the run came to; `err` is what CUnit makes of it. The exit status. */
static int verdict(int err, unsigned registered)
{
	bool ok = err == CUE_SUCCESS && CU_get_number_of_failure_records() == 0 && run.ran > 0 &&
		  run.ran == registered;

	if (CU_get_number_of_failure_records() != 0 && run.failed == 0)
		printf("FAIL a suite could not be initialised or cleaned up\n");
	if (run.ran < registered)
		printf("FAIL %u of %u registered tests did not run\n", registered - run.ran,
		       registered);
	printf("%u passed, %u failed, %u not run\n", run.ran - run.failed, run.failed,
	       registered - run.ran);
	return ok ? 0 : 1;
}

int t_main(int argc, char **argv, const struct t_suite *suites, size_t n_suites)
{
	unsigned registered = 0;
	bool list = false;
	int err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	run.suites = suites;
	run.n_suites = n_suites;
	if (parse(argc, argv, &list))
		return 2;
	if (list) {
		for (size_t i = 0; i < n_suites; i++)
			for (size_t j = 0; j < suites[i].n_cases; j++)
				printf("%s.%s\n", suites[i].name, suites[i].cases[j].name);
		return 0;
	}
	if (getenv("SPL_RESULTS"))
		run.results = fopen(getenv("SPL_RESULTS"), "a");
	if (CU_initialize_registry() != CUE_SUCCESS || register_all(&registered)) {
		fprintf(stderr, "cannot register the tests: %s\n", CU_get_error_msg());
		return 1;
	}
	CU_set_test_start_handler(on_start);
	CU_set_test_complete_handler(on_complete);
	CU_set_error_action(CUEA_IGNORE);
	/* Now: a test that crashes says nothing at its end. */
	printf("seed %llu\n", (unsigned long long)run.seed);
	fflush(stdout);
	err = CU_run_all_tests();
	err = verdict(err, registered);
	if (run.results)
		fclose(run.results);
	CU_cleanup_registry();
	return err;
}
