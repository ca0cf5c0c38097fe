/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: form of a line, levels, escaping, length, rate limit. */
#include "common/log.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fds[2];

static int open_pipe(void)
{
	return pipe(fds);
}

static size_t take(char *out, size_t cap)
{
	ssize_t n;

	log_line(LOG_LEVEL_ERROR, "end", "of test");
	n = read(fds[0], out, cap - 1);
	out[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static void test_log_a_line_has_time_level_module_and_text(void)
{
	char out[4096];
	unsigned long long s, us;
	char rest[256];

	log_open(fds[1], LOG_LEVEL_INFO);
	log_info("dplink", "connected pid=%d", 42);
	log_debug("dplink", "not shown");
	take(out, sizeof(out));
	CU_ASSERT_EQUAL_FATAL(sscanf(out, "%llu.%6llu %255[^\n]", &s, &us, rest), 3);
	CU_ASSERT_STRING_EQUAL(rest, "info dplink: connected pid=42");
	CU_ASSERT_PTR_NULL(strstr(out, "not shown"));
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("dplink", "shown");
	take(out, sizeof(out));
	CU_ASSERT_PTR_NOT_NULL(strstr(out, "debug dplink: shown\n"));
	log_open(STDERR_FILENO, LOG_LEVEL_INFO);
}

static void test_log_text_from_outside_cannot_make_a_line(void)
{
	char out[4096], big[3000];
	size_t n;

	log_open(fds[1], LOG_LEVEL_INFO);
	log_info("m", "id=%s", "a\nb\x1b[31m\x7f");
	take(out, sizeof(out));
	CU_ASSERT_PTR_NOT_NULL(strstr(out, "id=a\\x0ab\\x1b[31m\\x7f\n"));
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = 0;
	log_info("m", "%s", big);
	n = take(out, sizeof(out));
	CU_ASSERT(n < 2 * LOG_LINE_MAX);
	CU_ASSERT_PTR_NOT_NULL_FATAL(strchr(out, '\n'));
	CU_ASSERT(strchr(out, '\n') - out < LOG_LINE_MAX);
	memset(big, '\n', 2000);
	big[2000] = 0;
	log_info("m", "%s", big);
	take(out, sizeof(out));
	CU_ASSERT(strchr(out, '\n') - out < LOG_LINE_MAX);
	log_open(STDERR_FILENO, LOG_LEVEL_INFO);
}

static void test_log_rate_lets_a_burst_through_then_counts(void)
{
	struct log_rate r = LOG_RATE(3, 1000);
	uint64_t held = 99, t = 5000000000u;

	for (int i = 0; i < 3; i++)
		CU_ASSERT(log_rate_take(&r, t, &held) && held == 0);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_FALSE(log_rate_take(&r, t, &held));
	CU_ASSERT_FALSE(log_rate_take(&r, t + 999999999, &held));
	CU_ASSERT(log_rate_take(&r, t + 1000000000, &held));
	CU_ASSERT_EQUAL(held, 11);
	CU_ASSERT_FALSE(log_rate_take(&r, t + 1000000001, &held));
	/* A long rest gives the burst back, not more. */
	t += 100000000000u;
	for (int i = 0; i < 3; i++)
		CU_ASSERT(log_rate_take(&r, t, &held));
	CU_ASSERT_FALSE(log_rate_take(&r, t, &held));
}

static void test_log_levels_have_names(void)
{
	enum log_level l = LOG_LEVEL_INFO;

	for (int i = 0; i <= LOG_LEVEL_DEBUG; i++) {
		CU_ASSERT(log_level_parse(log_level_name((enum log_level)i), &l));
		CU_ASSERT_EQUAL((int)l, i);
	}
	CU_ASSERT_FALSE(log_level_parse("loud", &l));
	CU_ASSERT_EQUAL(l, LOG_LEVEL_DEBUG);
}

static const struct t_case cases[] = {
	T(test_log_a_line_has_time_level_module_and_text),
	T(test_log_text_from_outside_cannot_make_a_line),
	T(test_log_rate_lets_a_burst_through_then_counts),
	T(test_log_levels_have_names),
};

static const struct t_suite suites[] = {T_SUITE("log", open_pipe, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
