/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark `footprint`: growth of resident memory, hugepages included, from 0 to 1 M Spots with
 * 36-byte ids, per Spot, of a process that runs the real lane and its room, the memory backed as
 * the agent backs it: ahead of each command by the plan. Control is not in it. Exit 1 over 384
 * bytes.
 */
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SPOTS 1000000u
#define LIMIT 384.0

/* The state of examples/counter.c. */
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "bench",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 8,
};
static const struct spl_stage *const stages[] = {&stage};

/* Resident bytes of this process: ordinary pages, and hugetlb pages, which Rss leaves out. */
static double resident(void)
{
	static const char *const fields[] = {"Rss:", "Shared_Hugetlb:", "Private_Hugetlb:"};
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	double sum = 0;

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < T_COUNT(fields); i++)
			if (strncmp(line, fields[i], strlen(fields[i])) == 0)
				sum += atof(line + strlen(fields[i])) * 1024;
	if (!f || sum == 0) {
		fprintf(stderr, "bench_footprint: /proc/self/smaps_rollup cannot be read\n");
		exit(2);
	}
	fclose(f);
	return sum;
}

/* Backs the regions as far as the plan says, in steps, as the agent does. */
static void back(struct t_node *n)
{
	static const enum spot_region r[] = {SPOT_MEM_TABLE, SPOT_MEM_OBJECTS};
	static uint64_t backed[SPOT_MEM_COUNT];

	for (int i = 0; i < 2; i++) {
		uint64_t want = (n->plan[0].bytes[r[i]] + 4095) & ~UINT64_C(4095);
		uint64_t limit = n->lane[0]->region_bytes[r[i]];

		want = want < limit ? want : limit;
		if (want <= backed[r[i]])
			continue;
		if (madvise((uint8_t *)n->lane[0]->region[r[i]] + backed[r[i]], want - backed[r[i]],
			    MADV_POPULATE_WRITE) != 0) {
			perror("madvise");
			exit(2);
		}
		backed[r[i]] = want & ~UINT64_C(4095);
	}
}

int main(int argc, char **argv)
{
	struct t_node_conf conf = {.lanes = 1, .spots_max = SPOTS, .stages = stages, .n_stages = 1};
	static struct t_node n;
	double before, each;
	FILE *json = NULL;

	if (argc == 3 && strcmp(argv[1], "--json") == 0) {
		json = fopen(argv[2], "w");
	} else if (argc != 1) {
		fprintf(stderr, "usage: %s [--json FILE]\n", argv[0]);
		return 2;
	}
	if ((argc == 3 && !json) || t_eal_start(1) != 0)
		return 2;
	t_node_start(&n, &conf);
	if (t_node_create(&n, "the first one", "bench") != SPOT_ACCEPTED)
		return 2;
	before = resident();
	for (uint32_t i = 1; i < SPOTS; i++) {
		char id[40];

		snprintf(id, sizeof(id), "%036u", i);
		if (t_node_create(&n, id, "bench") != SPOT_ACCEPTED) {
			fprintf(stderr, "bench_footprint: Spot %u was not made\n", i);
			return 2;
		}
		back(&n);
	}
	if (t_node_counter(&n, SPL_C_SPOTS) != SPOTS) {
		fprintf(stderr, "bench_footprint: %llu Spots in the table\n",
			(unsigned long long)t_node_counter(&n, SPL_C_SPOTS));
		return 2;
	}
	each = (resident() - before) / (SPOTS - 1);
	printf("kind=spot %28s %8.1f bytes a Spot, at most %.0f (lane and room; without control)\n",
	       "", each, LIMIT);
	if (json) {
		fprintf(json,
			"{\"bench\":\"footprint\",\"case\":\"kind=spot\",\"value\":%.1f,"
			"\"unit\":\"bytes\",\"floor\":null,\"ratio\":null,\"runs\":1,\"spread\":0}"
			"\n",
			each);
		fclose(json);
	}
	return each > LIMIT;
}
