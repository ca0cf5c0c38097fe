/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines over a bad network: everything arrives once, in order, and everything comes back. */
#include "net.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

#define SECOND 1000000000ULL

/* Runs `n` to its end and frees it; prints what went wrong, and how to repeat it. */
static void finish(struct net *n, uint64_t seed, uint64_t seconds)
{
	bool ok = net_run(n, n->now + seconds * SECOND);

	ok = net_fini(n) && ok;
	if (!ok)
		printf("\n  seed %llu: %s\n", (unsigned long long)seed, n->fault);
	CU_ASSERT(ok);
	net_free(n);
}

static void load(struct net *n, uint64_t app, uint64_t infra, uint32_t len_min, uint32_t len_max)
{
	for (int i = 0; i < NET_ENDS; i++)
		n->end[i].load = (struct net_load){.total = {app, infra},
						   .len_min = len_min,
						   .len_max = len_max,
						   .consume_ns = 20000,
						   .sink_room = 64};
}

static void test_flow_clean_path(void)
{
	struct flow_params p[NET_ENDS];
	struct net *n;

	net_params(p);
	n = net_new(p, 1, 64 << 20);
	load(n, 5000, 1000, 0, 3000);
	finish(n, 1, 60);
}

static void test_flow_bad_path(void)
{
	struct flow_params p[NET_ENDS];

	for (uint64_t k = 0; k < 30; k++) {
		uint64_t seed = t_seed() + k;
		struct t_rand r = {seed};
		struct net *n;

		net_params(p);
		n = net_new(p, seed, 16 << 20);
		load(n, t_rand_below(&r, 3000), t_rand_below(&r, 500), 0,
		     1 + t_rand_below(&r, k % 8 == 0 ? 30000 : 3000));
		for (int i = 0; i < NET_ENDS; i++) {
			n->path[i].loss_ppm = t_rand_below(&r, 200000);
			n->path[i].dup_ppm = t_rand_below(&r, 100000);
			n->path[i].jitter_ns = t_rand_below(&r, 1000000);
			n->end[i].load.sink_room = 1 + t_rand_below(&r, 100);
		}
		finish(n, seed, 600);
	}
}

static const struct t_case cases[] = {
	T(test_flow_clean_path, "S-LIM-14"),
	T(test_flow_bad_path, "S-LIM-14"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("flow_net", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
