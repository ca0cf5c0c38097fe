/* SPDX-License-Identifier: BSD-3-Clause */
/* Which statuses an observer gets that is too slow for all of them, and what it is told it lost. */
#include "control/host/ends.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>

static struct host_ends e;

static void keep(uint64_t sequence)
{
	host_ends_keep(&e, sequence, json_integer((json_int_t)sequence));
}

static void gets(uint64_t after, uint64_t newest, uint64_t end, uint64_t coalesced, uint64_t lost)
{
	struct host_next n = host_ends_next(&e, after, newest);

	CU_ASSERT_EQUAL(n.sequence, end ? end : newest);
	CU_ASSERT_EQUAL((uint64_t)json_integer_value(n.end), end);
	CU_ASSERT_EQUAL(n.coalesced, coalesced);
	CU_ASSERT_EQUAL(n.discarded_terminal, lost);
}

static void done(void)
{
	host_ends_free(&e);
	e = (struct host_ends){0};
}

/* Without ends there is one slot: the newest. */
static void test_the_newest_is_enough(void)
{
	gets(0, 1, 0, 0, 0);
	gets(1, 2, 0, 0, 0);
	gets(1, 7, 0, 5, 0); /* five in between, of which it gets none */
	gets(7, 7, 0, 0, 0);
	done();
}

/* No later status takes the place of an end. */
static void test_ends_come_first(void)
{
	keep(3);
	keep(5);
	gets(0, 9, 3, 2, 0);
	gets(3, 9, 5, 1, 0);
	gets(5, 9, 0, 3, 0);
	gets(4, 9, 5, 0, 0);
	gets(0, 9, 3, 2, 0); /* and another observer is none the worse */
	done();
}

/* One more than are kept: the oldest goes, and whoever had not seen it is told, nobody else. */
static void test_the_oldest_end_goes_first(void)
{
	for (uint64_t i = 1; i <= HOST_ENDS_MAX; i++)
		keep(10 * i);
	gets(0, 1000, 10, 9, 0);
	keep(10 * (HOST_ENDS_MAX + 1));
	gets(0, 1000, 20, 18, 1);
	gets(9, 1000, 20, 9, 1);
	gets(10, 1000, 20, 9, 0);
	for (uint64_t i = 2; i <= HOST_ENDS_MAX; i++)
		gets(10 * i, 1000, 10 * i + 10, 9, 0);
	keep(10 * (HOST_ENDS_MAX + 2));
	gets(0, 1000, 30, 27, 2);
	gets(10, 1000, 30, 18, 1);
	gets(20, 1000, 30, 9, 0);
	gets(10 * (HOST_ENDS_MAX + 2), 10 * (HOST_ENDS_MAX + 2) + 1, 0, 0, 0);
	done();
}

/* So many that their numbers are forgotten, too: then all that were lost are told. */
static void test_more_than_is_remembered(void)
{
	const uint64_t lost = HOST_ENDS_LOST_MAX + 10, all = lost + HOST_ENDS_MAX;

	for (uint64_t i = 1; i <= all; i++)
		keep(i);
	gets(0, all, lost + 1, 0, lost);
	gets(11, all, lost + 1, 0, lost - 11);
	gets(lost - 1, all, lost + 1, 0, 1);
	gets(lost, all, lost + 1, 0, 0);
	done();
}

static const struct t_case cases[] = {
	T(test_the_newest_is_enough, "S-OBS-2"),
	T(test_ends_come_first, "S-OBS-2"),
	T(test_the_oldest_end_goes_first, "S-OBS-2"),
	T(test_more_than_is_remembered, "S-OBS-2"),
};

static const struct t_suite suites[] = {T_SUITE("ends", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, 1);
}
