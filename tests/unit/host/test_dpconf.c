/* SPDX-License-Identifier: BSD-3-Clause */
/* What control sends as the configuration is what the dataplane takes: the largest lists that the
 * configuration file may hold come through whole.
 */
#include "control/host/host_priv.h"
#include "dataplane/agent/runcfg.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>

#define MODULE 200u /* bytes of a stage's path */

static struct config cfg;
static struct runcfg got;
static char err[256];

/* A text of `len` bytes that no other has. */
static char *text(unsigned len, char kind, unsigned i)
{
	char *s = malloc(len + 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	memset(s, kind, len);
	s[0] = '/';
	s[1] = (char)('0' + i / 10);
	s[2] = (char)('0' + i % 10);
	s[len] = '\0';
	return s;
}

static void texts(struct conf_texts *t, unsigned n, char kind)
{
	t->n = n;
	t->v = calloc(n, sizeof(*t->v));
	CU_ASSERT_PTR_NOT_NULL_FATAL(t->v);
	for (unsigned i = 0; i < n; i++)
		t->v[i] = text(255, kind, i);
}

static void fill(void)
{
	static struct conf_port port = {.name = (char *)(uintptr_t) "a",
					.device = (char *)(uintptr_t) "net_null0",
					.ip = 0x0a000001,
					.prefix_len = 24,
					.mtu = 1500,
					.udp_base = 4700};

	cfg = (struct config){.n_ports = 1, .ports = &port, .n_stages = DP_STAGES_MAX};
	cfg.node.mesh = (char *)(uintptr_t) "m";
	cfg.control.private_dir = (char *)(uintptr_t) "/run/spotlane";
	cfg.dataplane.lanes = 1;
	cfg.dataplane.data_room_bytes = 2304;
	cfg.workers.cpu_threads_min = cfg.workers.cpu_threads_max = 1;
	cfg.limits.message_max_bytes = 1 << 20;
	cfg.limits.peers = 16;
	texts(&cfg.eal.extra_args, DP_ARGS_MAX, 'e');
	texts(&cfg.stage_dirs, DP_DIRS_MAX, 'd');
	cfg.stages = calloc(DP_STAGES_MAX, sizeof(*cfg.stages));
	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg.stages);
	for (unsigned i = 0; i < DP_STAGES_MAX; i++) {
		cfg.stages[i].module = text(MODULE, 'm', i);
		cfg.stages[i].entry = text(64, 's', i);
	}
}

static void empty(void)
{
	for (unsigned i = 0; i < cfg.eal.extra_args.n; i++)
		free(cfg.eal.extra_args.v[i]);
	for (unsigned i = 0; i < cfg.stage_dirs.n; i++)
		free(cfg.stage_dirs.v[i]);
	for (unsigned i = 0; i < cfg.n_stages; i++) {
		free(cfg.stages[i].module);
		free(cfg.stages[i].entry);
	}
	free(cfg.eal.extra_args.v);
	free(cfg.stage_dirs.v);
	free(cfg.stages);
}

static void test_dpconf_largest_lists_come_through(void)
{
	struct pack_reader rd;
	struct dp_config m;
	uint8_t *bytes = NULL;
	uint64_t hash;
	size_t n;

	fill();
	CU_ASSERT_EQUAL_FATAL(host_config_encode(&cfg, &bytes, &n, &hash, err, sizeof(err)), 0);
	rd = (struct pack_reader){.p = bytes, .left = n};
	dp_get_config(&rd, &m);
	CU_ASSERT_FALSE_FATAL(rd.bad);
	CU_ASSERT_EQUAL_FATAL(runcfg_take(&got, &m, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(got.config_hash, hash);
	CU_ASSERT_EQUAL_FATAL(got.n_eal_args, DP_ARGS_MAX);
	for (unsigned i = 0; i < DP_ARGS_MAX; i++)
		CU_ASSERT_STRING_EQUAL(got.eal_arg[i], cfg.eal.extra_args.v[i]);
	CU_ASSERT_EQUAL_FATAL(got.n_stage_dirs, DP_DIRS_MAX);
	for (unsigned i = 0; i < DP_DIRS_MAX; i++)
		CU_ASSERT_STRING_EQUAL(got.stage_dir[i], cfg.stage_dirs.v[i]);
	CU_ASSERT_EQUAL_FATAL(got.n_stages, DP_STAGES_MAX);
	for (unsigned i = 0; i < DP_STAGES_MAX; i++) {
		CU_ASSERT_STRING_EQUAL(got.stage[i].module, cfg.stages[i].module);
		CU_ASSERT_STRING_EQUAL(got.stage[i].symbol, cfg.stages[i].entry);
	}
	free(bytes);
	empty();
}

static void test_dpconf_names_the_list_that_is_too_large(void)
{
	uint8_t *bytes = NULL;
	uint64_t hash;
	size_t n;

	fill();
	free(cfg.stage_dirs.v[3]);
	cfg.stage_dirs.v[3] = text(256, 'x', 3);
	CU_ASSERT_EQUAL(host_config_encode(&cfg, &bytes, &n, &hash, err, sizeof(err)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "stage_dirs"));
	CU_ASSERT_PTR_NULL(bytes);
	empty();
}

static const struct t_case cases[] = {
	T(test_dpconf_largest_lists_come_through),
	T(test_dpconf_names_the_list_that_is_too_large),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("dpconf", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
