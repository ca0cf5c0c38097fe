/* SPDX-License-Identifier: BSD-3-Clause */
/* The run configuration: what control sends is checked once more, and named when it is wrong. */
#include "dataplane/agent/runcfg.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>

static struct runcfg out;
static uint8_t ports[2048], stages[2048], dirs[256];
static char err[512];

static struct pack_bytes port_list(const char *const *devices, unsigned n)
{
	struct pack_writer w = {.p = ports, .cap = sizeof(ports)};

	for (unsigned i = 0; i < n; i++) {
		char name[8] = {'p', (char)('0' + i % 10), (char)('a' + i / 10), 0};
		struct dp_port p = {.name = dp_text(name),
				    .device = dp_text(devices[i]),
				    .ip = 0x0a000001 + 256 * i,
				    .prefix_len = 24,
				    .mtu = 1500,
				    .udp_base = 4700};

		dp_put_port(&w, &p);
	}
	return (struct pack_bytes){ports, (uint32_t)w.len};
}

static struct dp_config good(void)
{
	static const char *const one[] = {"net_null0"};
	struct pack_writer w = {.p = stages, .cap = sizeof(stages)};
	struct pack_writer d = {.p = dirs, .cap = sizeof(dirs)};
	struct dp_stage s = {.module = dp_text("room"), .symbol = dp_text("")};

	dp_put_stage(&w, &s);
	pack_put_text(&d, dp_text("/usr/lib/spotlane"));
	return (struct dp_config){.lanes = 2,
				  .message_max = 1 << 20,
				  .associations = 16,
				  .cpu_threads_min = 1,
				  .cpu_threads_max = 2,
				  .mesh = dp_text("m"),
				  .ports = port_list(one, 1),
				  .stages = {stages, (uint32_t)w.len},
				  .stage_dirs = {dirs, (uint32_t)d.len}};
}

static void refused(const struct dp_config *c, const char *field)
{
	err[0] = '\0';
	CU_ASSERT_NOT_EQUAL(runcfg_take(&out, c, err, sizeof(err)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, field));
}

static void test_runcfg_takes_what_is_good(void)
{
	struct dp_config c = good();

	CU_ASSERT_EQUAL_FATAL(runcfg_take(&out, &c, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(out.n_ports, 1);
	CU_ASSERT_STRING_EQUAL(out.port[0].device, "net_null0");
	CU_ASSERT_EQUAL(out.port[0].udp_base, 4700);
	CU_ASSERT_EQUAL(out.n_stages, 1);
	CU_ASSERT_STRING_EQUAL(out.stage[0].module, "room");
	CU_ASSERT_STRING_EQUAL(out.stage_dir[0], "/usr/lib/spotlane");
	CU_ASSERT_EQUAL(out.lane_cpu[0], -1);
	CU_ASSERT_EQUAL(out.mesh.len, 1);
}

static void test_runcfg_names_what_is_wrong(void)
{
	static const char *const twice[] = {"net_null0", "net_null0,size=64"};
	const char *many[17];
	uint8_t cpus[6] = {0, 0, 1, 0, 2, 0};
	struct dp_config c;

	for (unsigned i = 0; i < T_COUNT(many); i++)
		many[i] = "net_x";
	c = good();
	c.lanes = 0;
	refused(&c, "lanes");
	c.lanes = 128;
	refused(&c, "lanes");
	c = good();
	c.message_max = 0;
	refused(&c, "message_max");
	c = good();
	c.associations = 5000;
	refused(&c, "associations");
	c = good();
	c.cpu_threads_min = 3; /* more than the maximum */
	refused(&c, "cpu_threads");
	c = good();
	c.mesh = dp_text("\xff");
	refused(&c, "mesh");
	c = good();
	c.ports.len = 0;
	refused(&c, "ports");
	c = good();
	c.ports.len--;
	refused(&c, "ports");
	c = good();
	c.ports = port_list(twice, 2);
	refused(&c, "p1a");
	c.ports = port_list(many, 17);
	refused(&c, "ports");
	c = good();
	c.stages.len--;
	refused(&c, "stages");
	c = good();
	c.lcores = (struct pack_bytes){cpus, 6};
	refused(&c, "lcores");
	c.lcores.len = 3;
	refused(&c, "lcores");
	c = good();
	c.stage_dirs.len--;
	refused(&c, "stage_dirs");
}

static const struct t_case cases[] = {
	T(test_runcfg_takes_what_is_good),
	T(test_runcfg_names_what_is_wrong),
};
static const struct t_suite suites[] = {T_SUITE("runcfg", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
