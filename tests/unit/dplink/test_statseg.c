/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics segment: everything that may be wrong with it is refused and named. */
#include "control/dplink/statseg.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LANES  2
#define STAGES 3
#define SIZE   (spl_stats_bytes(LANES, STAGES))
#define GOOD   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

static struct spl_stats *good(void)
{
	struct spl_stats *s = aligned_alloc(64, (SIZE + 63) / 64 * 64);

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	memset(s, 0, SIZE);
	s->magic = SPL_STATS_MAGIC;
	s->layout = SPL_STATS_LAYOUT;
	s->size = (uint32_t)SIZE;
	s->epoch = 5;
	s->lanes = LANES;
	s->ports = 1;
	s->lane_bytes = sizeof(struct spl_lane_stats);
	s->port_bytes = sizeof(struct spl_port_stats);
	s->stages = STAGES;
	s->stage_bytes = sizeof(struct spl_stage_stats);
	s->trace_bytes = sizeof(struct spl_trace_ring);
	s->trace_entries = SPL_TRACE_ENTRIES;
	s->lane[1].counter[SPL_C_TURNS] = 42;
	spl_stats_stages(s, LANES, STAGES, 1)[2].counter[SPL_S_READY] = 43;
	strcpy(spl_stats_infos(s, LANES, STAGES)[2].type, "room");
	return s;
}

static int memfd(const void *p, size_t n, int seals)
{
	int fd = memfd_create("stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(write(fd, p, n), (ssize_t)n);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void expect(const struct spl_stats *s, size_t n, int seals, int rc)
{
	struct statseg g = {.s = NULL};
	const char *why = NULL;
	int fd = memfd(s, n, seals);

	CU_ASSERT_EQUAL(statseg_map(&g, fd, 5, &why), rc);
	CU_ASSERT_PTR_NOT_NULL(why);
	CU_ASSERT_EQUAL(g.s != NULL, rc == 0);
	statseg_unmap(&g);
	close(fd);
}

static void test_statseg_maps_a_good_one_and_reads_it(void)
{
	struct spl_stats *s = good();
	struct statseg g = {.s = NULL};
	const char *why;
	int fd = memfd(s, SIZE, GOOD);

	CU_ASSERT_EQUAL_FATAL(statseg_map(&g, fd, 5, &why), 0);
	close(fd);
	CU_ASSERT(g.lanes == LANES && g.ports == 1);
	CU_ASSERT_EQUAL(statseg_get(&g.s->lane[1].counter[SPL_C_TURNS]), 42);
	CU_ASSERT_EQUAL(statseg_get(&statseg_stage_row(&g, 1, 2)->counter[SPL_S_READY]), 43);
	CU_ASSERT_STRING_EQUAL(statseg_stage(&g, 2)->type, "room");
	/* A bad one in its place changes nothing. */
	s->epoch = 6;
	fd = memfd(s, SIZE, GOOD);
	CU_ASSERT_EQUAL(statseg_map(&g, fd, 5, &why), -ESTALE);
	close(fd);
	CU_ASSERT_EQUAL_FATAL(g.s->epoch, 5);
	statseg_unmap(&g);
	expect(s, SIZE, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, -ESTALE);
	free(s);
}

static void test_statseg_seals_are_required(void)
{
	struct spl_stats *s = good();

	expect(s, SIZE, 0, -EPERM);
	expect(s, SIZE, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE, -EPERM);
	expect(s, SIZE, F_SEAL_GROW | F_SEAL_FUTURE_WRITE, -EPERM);
	expect(s, SIZE, F_SEAL_SHRINK | F_SEAL_GROW, -EPERM);
	free(s);
}

static void test_statseg_every_wrong_header_is_refused(void)
{
	struct spl_stats *s = good();
	const struct spl_stats ok = *s;

#define WITH(change, n, rc) \
	do { \
		change; \
		expect(s, n, GOOD, rc); \
		memcpy(s, &ok, sizeof(ok)); \
	} while (0)
	WITH(s->magic = 0, SIZE, -EPROTO);
	WITH(s->magic++, SIZE, -EPROTO);
	WITH(s->layout++, SIZE, -EPROTO);
	WITH(s->lane_bytes += 64, SIZE, -EPROTO);
	WITH(s->port_bytes -= 64, SIZE, -EPROTO);
	WITH(s->stage_bytes += 64, SIZE, -EPROTO);
	WITH(s->trace_bytes -= 64, SIZE, -EPROTO);
	WITH(s->trace_entries *= 2, SIZE, -EPROTO);
	WITH(s->stages = SPL_STAGES_MAX + 1, SIZE, -EPROTO);
	WITH(s->stages = STAGES + 1, SIZE, -EMSGSIZE);
	WITH(s->lanes = 0, SIZE, -EPROTO);
	WITH(s->lanes = UINT32_MAX, SIZE, -EPROTO);
	WITH(s->lanes = SPL_LANES_MAX + 1, SIZE, -EPROTO);
	WITH(s->ports = SPL_PORTS_MAX + 1, SIZE, -EPROTO);
	WITH(s->lanes = LANES + 1, SIZE, -EMSGSIZE);
	WITH(s->size = (uint32_t)SIZE + 1, SIZE, -EMSGSIZE);
	WITH(s->size -= 1, SIZE, -EMSGSIZE);
	WITH(, SIZE - 1, -EMSGSIZE);
	WITH(, sizeof(*s), -EMSGSIZE);
	WITH(, sizeof(*s) - 1, -EMSGSIZE);
	WITH(, 1, -EMSGSIZE);
	WITH(, SIZE, 0);
#undef WITH
	free(s);
}

static const struct t_case cases[] = {
	T(test_statseg_maps_a_good_one_and_reads_it),
	T(test_statseg_seals_are_required),
	T(test_statseg_every_wrong_header_is_refused),
};

static const struct t_suite suites[] = {T_SUITE("statseg", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
