/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that bind several options: lease timing, CPUs, ports, limits, the socket's groups. */
#include "tests/lib/t_main.h"
#include "tests/unit/config/t_conf.h"

#include <sched.h>
#include <string.h>

static void lease_timing_is_checked(void)
{
	conf_free(t_conf_accepted(T_CONF_GOOD "lease: { renew_ms = 5000; timeout_ms = 3000; "
					      "ttl_ms = 15000; margin_ms = 5000; };\n"));
	conf_free(t_conf_accepted(T_CONF_GOOD "lease: { renew_ms = 6999; };\n"));
	t_conf_refused(T_CONF_GOOD "lease: { renew_ms = 7000; };\n", "t.cfg: lease.ttl_ms: ",
		       "(10000) must be less than ttl_ms - margin_ms (10000)");
	t_conf_refused(T_CONF_GOOD "lease: { margin_ms = 3600000;\nttl_ms = 1; };\n",
		       "t.cfg:4: lease.ttl_ms: ", "(-3599999)");
	t_conf_refused(T_CONF_GOOD "lease: { renew_ms = 0; };\n", "t.cfg:3: ", "out of range");
	t_conf_refused(T_CONF_GOOD "lease: { timeout_ms = 0; };\n", "t.cfg:3: ", "out of range");
	t_conf_refused(T_CONF_GOOD "lease: { margin_ms = 0; };\n", "t.cfg:3: ", "out of range");
	t_conf_refused(T_CONF_GOOD "lease: { ttl_ms = 0; };\n", "t.cfg:3: ", "out of range");
}

static void a_node_hosts_spots(void)
{
	conf_free(t_conf_accepted(T_CONF_GOOD "node: { object_role = \"server\"; };\n"));
	t_conf_refused(T_CONF_GOOD "node: { object_role = \"client\"; };\n",
		       "t.cfg:3: node.object_role: ", "only \"server\"");
	t_conf_refused(T_CONF_GOOD "node: { object_role = \"none\"; };\n",
		       "t.cfg:3: node.object_role: ", "only \"server\"");
}

static void cpus_must_be_allowed(void)
{
	struct config *cfg =
		t_conf_accepted(T_CONF_GOOD "dataplane: { lanes = 2; lcores = [3, 0]; agent_cpu = "
					    "1; };\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(cfg->dataplane.lcores.n, 2);
	CU_ASSERT_EQUAL(cfg->dataplane.lcores.v[0], 3);
	CU_ASSERT_EQUAL(cfg->dataplane.lcores.v[1], 0);
	conf_free(cfg);
	t_conf_refused(T_CONF_GOOD "dataplane: { lanes = 2;\n lcores = [0, 4]; };\n",
		       "t.cfg:4: dataplane.lcores: ", "CPU 4 is not allowed");
	t_conf_refused(T_CONF_GOOD "dataplane: { lcores = [200]; };\n",
		       "t.cfg:3: dataplane.lcores: ", "CPU 200 is not allowed");
	t_conf_refused(T_CONF_GOOD "dataplane: { lcores = [1024]; };\n",
		       "t.cfg:3: dataplane.lcores[0]: ", "out of range (0..1023)");
	t_conf_refused(T_CONF_GOOD "dataplane: { lanes = 2; lcores = [0, 0]; };\n",
		       "t.cfg:3: dataplane.lcores: ", "named twice");
	t_conf_refused(T_CONF_GOOD "dataplane: { lanes = 2; lcores = [0]; };\n",
		       "t.cfg:3: dataplane.lcores: ", "1 CPUs for 2 lanes");
	t_conf_refused(T_CONF_GOOD "dataplane: { agent_cpu = 9; };\n",
		       "t.cfg:3: dataplane.agent_cpu: ", "CPU 9 is not allowed");
}

/* S-WORK-4 */
static void worker_threads_in_order(void)
{
	struct config *cfg = t_conf_accepted(T_CONF_GOOD "workers: { cpu_threads_min = 3; "
							 "cpu_threads_max = 3; };\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(cfg->workers.cpu_threads_max, 3);
	CU_ASSERT_EQUAL(cfg->workers.cpu_queue, 1024); /* the default can be read */
	conf_free(cfg);
	t_conf_refused(T_CONF_GOOD "workers: {\n cpu_threads_min = 5; };\n",
		       "t.cfg: workers.cpu_threads_max: ", "at least workers.cpu_threads_min (5)");
	t_conf_refused(T_CONF_GOOD "workers: {\n cpu_queue = 0; };\n",
		       "t.cfg:4: workers.cpu_queue: ", "out of range (1..65536)");
}

/* Without a set from the caller, this process's own mask counts. */
static void own_affinity_mask_counts(void)
{
	static const char text[] = T_CONF_GOOD "dataplane: { lcores = [%d]; };\n";
	cpu_set_t before, one;
	struct conf_report rep;
	struct config *cfg;
	char good[512], bad[512];
	int cpu = 0;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET((size_t)cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	snprintf(good, sizeof(good), text, cpu);
	snprintf(bad, sizeof(bad), text, cpu + 1);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
	cfg = conf_load_text("t.cfg", good, strlen(good), NULL, &rep);
	CU_ASSERT_PTR_NOT_NULL(cfg);
	conf_free(cfg);
	conf_report_free(&rep);
	cfg = conf_load_text("t.cfg", bad, strlen(bad), NULL, &rep);
	CU_ASSERT_PTR_NULL(cfg);
	CU_ASSERT_EQUAL(rep.n, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(rep.item[0].text, "is not allowed"));
	conf_report_free(&rep);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void two_ports(const char *second, const char *start, const char *part)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 T_CONF_SECURITY
		 "ports: ( { name = \"p0\"; device = \"%s\"; ip = \"10.0.0.1\"; },\n"
		 "{ %s } );\n",
		 strstr(second, "01:00") ? "0000:01:00.0" : "net_null0", second);
	if (part)
		t_conf_refused(text, start, part);
	else
		conf_free(t_conf_accepted(text));
}

static void ports_must_differ(void)
{
	two_ports("name = \"p1\"; device = \"net_null1\"; ip = \"10.0.0.2\";", NULL, NULL);
	two_ports("name = \"p1\"; device = \"net_null0,size=64\"; ip = \"10.0.0.2\";",
		  "t.cfg:3: ports[1].device: ", "already the device of ports[0]");
	two_ports("name = \"p1\"; device = \"net_null0\"; ip = \"10.0.0.2\";",
		  "t.cfg:3: ports[1].device: ", "already the device of ports[0]");
	two_ports("name = \"p1\"; device = \"01:00.0\"; ip = \"10.0.0.2\";",
		  "t.cfg:3: ports[1].device: ", "already the device of ports[0]");
	two_ports("name = \"p1\"; device = \"01:00.1\"; ip = \"10.0.0.2\";", NULL, NULL);
	two_ports("name = \"p0\"; device = \"net_null1\"; ip = \"10.0.0.2\";",
		  "t.cfg:3: ports[1].name: ", "also the name of ports[0]");
	two_ports("name = \"p1\"; device = \"net_null1\"; ip = \"10.0.0.1\";",
		  "t.cfg:3: ports[1].ip: ", "also the address of ports[0]");
	two_ports("name = \"p1\"; device = \"net_null1\"; ip = \"10.0.0.2\"; udp_base = 5000;",
		  "t.cfg:3: ports[1].udp_base: ", "5000, but ports[0] has 4700");
}

static void one_port(const char *rest, const char *part)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 T_CONF_SECURITY "ports: ( { name = \"p0\"; device = \"net_null0\";\n%s } );\n",
		 rest);
	if (part)
		t_conf_refused(text, "t.cfg:3: ports[0].", part);
	else
		conf_free(t_conf_accepted(text));
}

static void port_addresses_make_sense(void)
{
	static const char *const no_hosts[] = {"0.0.0.0",	  "127.0.0.1", "224.0.0.1",
					       "255.255.255.255", "10.0.0.0",  "10.0.0.255"};

	for (size_t i = 0; i < T_COUNT(no_hosts); i++) {
		char rest[64];

		snprintf(rest, sizeof(rest), "ip = \"%s\";", no_hosts[i]);
		one_port(rest, "no address of a host");
	}
	one_port("ip = \"10.0.0.256\";", "no IPv4 address");
	one_port("ip = \"10.0.0\";", "no IPv4 address");
	one_port("ip = \"fe80::1\";", "no IPv4 address");
	one_port("ip = \"10.0.0.0\"; prefix_len = 31; gateway = \"10.0.0.1\";", NULL);
	one_port("ip = \"10.0.0.9\"; prefix_len = 32;", NULL);
	one_port("ip = \"10.0.0.9\"; gateway = \"10.0.1.1\";", "outside the subnet");
	one_port("ip = \"10.0.0.9\"; gateway = \"10.0.0.9\";", "another host");
	one_port("ip = \"10.0.0.9\"; gateway = \"10.0.0.255\";", "another host");
	one_port("ip = \"10.0.0.9\"; gateway = \"10.0.0.1\";", NULL);
}

static void large_frames_need_room(void)
{
	t_conf_refused(T_CONF_SECURITY "ports: ( { name = \"p0\"; device = \"net_null0\";\n"
				       "ip = \"10.0.0.1\"; mtu = 9000; } );\n",
		       "t.cfg:3: ports[0].mtu: ", "at least 9146");
	conf_free(t_conf_accepted(T_CONF_SECURITY
				  "ports: ( { name = \"p0\"; device = \"net_null0\";\n"
				  "ip = \"10.0.0.1\"; mtu = 9000; } );\n"
				  "dataplane: { data_room_bytes = 9146; };\n"));
}

static void limits_fit_together(void)
{
	t_conf_refused(T_CONF_GOOD "limits: { message_max_bytes = 16777216;\n"
				   "spot_queue_bytes = 16777216; };\n",
		       "t.cfg:4: limits.spot_queue_bytes: ", "at least 16781312");
	t_conf_refused(T_CONF_GOOD "limits: { credit_pool_bytes = 1000; };\n",
		       "t.cfg:3: limits.credit_pool_bytes: ", "at least 1221480");
	/* one that is not named is bounded by what else holds messages */
	t_conf_refused(T_CONF_GOOD "limits: { records_per_lane = 64; };\n",
		       "t.cfg:3: limits.records_per_lane: ", "at least 1221480");
	t_conf_refused(T_CONF_GOOD "dataplane: { lane_memory_mb = 1; };\n",
		       "t.cfg:3: dataplane.lane_memory_mb: ", "holds 786432 bytes");
	t_conf_refused(T_CONF_GOOD "dataplane: { mbufs = 1024; };\n"
				   "limits: { message_max_bytes = 4000000; };\n",
		       "t.cfg:3: dataplane.mbufs: ", "holds 1835008 bytes");
	conf_free(t_conf_accepted(T_CONF_GOOD "limits: { credit_pool_bytes = 1221480; };\n"));
}

static void readonly_group_needs_an_open_socket(void)
{
	t_conf_refused(T_CONF_GOOD "control: { socket_group = \"a\"; readonly_group = \"b\"; };\n",
		       "t.cfg:3: control.readonly_group: ", "\"0666\"");
	t_conf_refused(T_CONF_GOOD
		       "control: { socket_mode = \"0666\"; readonly_group = \"b\"; };\n",
		       "t.cfg:3: control.readonly_group: ", "needs control.socket_group");
	conf_free(t_conf_accepted(T_CONF_GOOD "control: { socket_mode = \"0666\"; socket_group = "
					      "\"a\"; readonly_group = \"b\"; };\n"));
}

static void socket_paths_are_bounded(void)
{
	char text[512], path[130];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[120] = '\0';
	snprintf(text, sizeof(text), T_CONF_GOOD "control: { socket = \"%s\"; };\n", path);
	t_conf_refused(text, "t.cfg:3: control.socket: ", "too long: 120 bytes (max 107)");
}

/* Lists that the dataplane would not take are refused here, before anything starts. */
static void list_of(unsigned n, const char *before, const char *item, const char *after,
		    const char *part)
{
	char text[2048];
	size_t at = (size_t)snprintf(text, sizeof(text), "%s%s", T_CONF_GOOD, before);

	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\"%s%u\"", i ? ", " : "",
				       item, i);
	snprintf(text + at, sizeof(text) - at, "%s", after);
	if (part)
		t_conf_refused(text, "t.cfg:3: ", part);
	else
		conf_free(t_conf_accepted(text));
}

static void lists_are_bounded(void)
{
	char text[512], path[300];

	list_of(16, "stage_dirs = [", "/d", "];\n", NULL);
	list_of(17, "stage_dirs = [", "/d", "];\n", "stage_dirs: 17 directories, at most 16");
	list_of(32, "eal: { extra_args = [", "-", "]; };\n", NULL);
	list_of(33, "eal: { extra_args = [", "-", "]; };\n",
		"eal.extra_args: 33 arguments, at most 32");
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[256] = '\0';
	snprintf(text, sizeof(text), T_CONF_GOOD "stage_dirs = [\"%s\"];\n", path);
	t_conf_refused(text, "t.cfg:3: stage_dirs[0]: ", "too long: 256 bytes (max 255)");
}

static void stages_are_checked(void)
{
	t_conf_refused(T_CONF_GOOD "stages: ( { module = \"a.so\"; },\n{ module = \"a.so\"; } );\n",
		       "t.cfg:4: stages[1].module: ", "listed twice");
	conf_free(t_conf_accepted(T_CONF_GOOD
				  "stages: ( { module = \"a.so\"; }, { module = \"a.so\"; entry = "
				  "\"other\"; } );\n"));
	t_conf_refused(T_CONF_GOOD "stage_dirs = [];\nstages: ( { module = \"a.so\"; } );\n",
		       "t.cfg:4: stages[0].module: ", "stage_dirs is empty");
}

static const struct t_case cases[] = {
	T(lease_timing_is_checked, "S-LEASE-1"),
	T(a_node_hosts_spots),
	T(cpus_must_be_allowed),
	T(worker_threads_in_order, "S-WORK-4"),
	T(own_affinity_mask_counts),
	T(ports_must_differ),
	T(port_addresses_make_sense),
	T(large_frames_need_room),
	T(limits_fit_together),
	T(readonly_group_needs_an_open_socket),
	T(socket_paths_are_bounded),
	T(lists_are_bounded),
	T(stages_are_checked),
};

static const struct t_suite suites[] = {T_SUITE("conf_relations", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
