/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts that go wrong: EAL arguments, devices that do not come up, too little memory. EAL starts
 * once a process, so each start is a child; it must end by itself, with a sentence, never by a
 * signal. */
#include "dataplane/port/eal.h"
#include "dataplane/port/pool.h"
#include "dataplane/port/port.h"
#include "tests/lib/t_failalloc.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome {
	int code;   /* what the function returned */
	int signal; /* that ended the child, 0 = none */
	char text[PORT_ERR_BYTES];
};

/* Runs fn in a child whose output is silent. */
static struct outcome in_child(int (*fn)(const void *arg, char *err), const void *arg)
{
	struct outcome o = {.code = -1000};
	int fd[2], status = 0;
	pid_t pid;

	if (pipe(fd))
		abort();
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDERR_FILENO);
		dup2(null, STDOUT_FILENO);
		alarm(60);
		o.code = fn(arg, o.text);
		_exit(write(fd[1], &o, sizeof(o)) != sizeof(o));
	}
	close(fd[1]);
	if (read(fd[0], &o, sizeof(o)) != sizeof(o))
		o.code = -1000;
	close(fd[0]);
	waitpid(pid, &status, 0);
	o.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return o;
}

static struct port_config port_of(const char *name, const char *device, unsigned net)
{
	struct port_config c = {
		.ip = 0x0a000001 + (net << 8), .prefix = 24, .mtu = 1500, .udp_base = 40000};

	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.device, sizeof(c.device), "%s", device);
	return c;
}

static struct eal_config eal_of(const struct port_config *ports, unsigned n)
{
	struct eal_config c = {.n_lanes = 2,
			       .agent_cpu = EAL_CPU_ANY,
			       .lane_cpu = {EAL_CPU_ANY, EAL_CPU_ANY},
			       .memory_mb = 64,
			       .ports = ports,
			       .n_ports = n};

	return c;
}

/* ---- arguments ---- */

static struct eal_args args;
static char err[PORT_ERR_BYTES];

static bool has(const char *arg)
{
	for (int i = 0; i < args.argc; i++)
		if (strcmp(args.argv[i], arg) == 0)
			return true;
	return false;
}

static cpu_set_t cpus(unsigned long long bits)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < 64; i++)
		if (bits >> i & 1)
			CPU_SET(i, &set);
	return set;
}

static void test_arguments(void)
{
	struct port_config p[2] = {port_of("a", "net_null0,size=64", 0),
				   port_of("b", "net_null1", 1)};
	struct eal_config c = eal_of(p, 2);
	cpu_set_t set = cpus(0xff);
	const char *extra[] = {"--foo", "bar"};

	c.agent_cpu = 5;
	c.lane_cpu[0] = 3;
	c.lane_cpu[1] = 3;
	c.extra = extra;
	c.n_extra = 2;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	CU_ASSERT(has("--lcores=0@5,1@3,2@3") && has("--main-lcore=0"));
	CU_ASSERT(has("--no-huge") && has("--no-shconf") && has("--no-pci") && has("64"));
	CU_ASSERT_FALSE(has("--in-memory"));
	CU_ASSERT_STRING_EQUAL(args.argv[args.argc - 1], "bar");
	CU_ASSERT_PTR_NULL(args.argv[args.argc]);
	c.huge = EAL_HUGE_YES;
	strcpy(p[1].device, "0000:03:00.1");
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	CU_ASSERT(has("--in-memory") && has("--allow=0000:03:00.1"));
	CU_ASSERT(!has("--no-huge") && !has("--no-pci"));
}

static void test_cpus_that_were_left_open(void)
{
	struct eal_config c = eal_of(NULL, 0);
	cpu_set_t set = cpus(0x1a); /* 1, 3, 4 */

	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	CU_ASSERT_TRUE(has("--lcores=0@1,1@3,2@4"));
	set = cpus(0x12); /* 1, 4: the lanes come first */
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	CU_ASSERT_TRUE(has("--lcores=0@1,1@1,2@4"));
	set = cpus(1ull << 63);
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	CU_ASSERT_TRUE(has("--lcores=0@63,1@63,2@63"));
}

/* D06, D08: numbers out of range and CPUs outside the set are named before EAL starts. */
static void test_refused_cpus(void)
{
	struct eal_config c = eal_of(NULL, 0);
	cpu_set_t set = cpus(0x2);
	static const int bad[] = {0, 2, 200, 1023, 1024, 100000, -2};

	for (unsigned i = 0; i < T_COUNT(bad); i++) {
		char number[16];

		snprintf(number, sizeof(number), "CPU %d ", bad[i]);
		c.lane_cpu[1] = bad[i];
		CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -EINVAL);
		CU_ASSERT(strstr(err, number) && strstr(err, "lane 1"));
		c.lane_cpu[1] = 1;
		c.agent_cpu = bad[i];
		CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -EINVAL);
		CU_ASSERT(strstr(err, number) && strstr(err, "agent"));
		c.agent_cpu = 1;
	}
	c.n_lanes = 0;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -EINVAL);
	c.n_lanes = EAL_LANES_MAX + 1;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "128"));
	c = eal_of(NULL, 0);
	c.memory_mb = 0;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -EINVAL);
	CPU_ZERO(&set);
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -EINVAL);
}

static void test_arguments_too_long(void)
{
	static char word[1200];
	const char *extra[EAL_EXTRA_MAX + 1];
	struct eal_config c = eal_of(NULL, 0);
	cpu_set_t set = cpus(0x3);

	memset(word, 'x', sizeof(word) - 1);
	for (unsigned i = 0; i <= EAL_EXTRA_MAX; i++)
		extra[i] = word;
	c.extra = extra;
	c.n_extra = EAL_EXTRA_MAX;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -E2BIG);
	word[100] = '\0';
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	c.n_extra++;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), -E2BIG);
}

static void test_most_lanes(void)
{
	struct eal_config c = eal_of(NULL, 0);
	cpu_set_t set = cpus(~0ull);

	c.n_lanes = EAL_LANES_MAX;
	for (unsigned i = 0; i < EAL_LANES_MAX; i++)
		c.lane_cpu[i] = 63;
	CU_ASSERT_EQUAL(eal_args(&c, &set, &args, err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(args.text + strlen(args.text) + 1, ",127@63"));
}

/* ---- starts ---- */

static int start(const void *arg, char *text)
{
	return eal_start(arg, text);
}

/* Start, compare the ports, open and start each. */
static int start_ports(const void *arg, char *text)
{
	const struct eal_config *c = arg;
	struct pool_demand d = {.held = 4000};
	struct port port[PORTS_MAX] = {{0}};
	struct rte_mempool *pool;
	struct pool_shape shape;
	uint16_t ids[PORTS_MAX];
	int e = eal_start(c, text);

	if (e || pool_size(&d, 0, RTE_MBUF_DEFAULT_BUF_SIZE, &shape))
		return e;
	e = port_find_all(c->ports, c->n_ports, ids, text);
	pool = pool_create("p", &shape, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	for (unsigned i = 0; !e && i < c->n_ports; i++) {
		e = port_open(&port[i], ids[i], &c->ports[i], c->n_lanes, pool, text);
		if (!e)
			e = port_start(&port[i], text);
	}
	for (unsigned i = 0; i < c->n_ports; i++)
		port_close(&port[i]);
	pool_destroy(pool);
	eal_stop();
	return e;
}

static void test_good_start(void)
{
	struct port_config p[3] = {port_of("a", "net_null0,size=64", 0),
				   port_of("b", "net_null1", 1), port_of("c", "net_ring0", 2)};
	struct eal_config c = eal_of(p, 3);
	struct outcome o = in_child(start_ports, &c);

	CU_ASSERT_EQUAL(o.signal, 0);
	CU_ASSERT_EQUAL(o.code, 0);
	if (o.code)
		printf("  said: %s\n", o.text);
}

/* D02, D03: whatever the reason, the port whose device is missing is named, and so is the device.
 */
static void test_devices_that_do_not_come_up(void)
{
	static const char *const bad[] = {
		"net_null1,siz=64",			  /* unknown argument */
		"net_tap1,iface=a_name_of_22_characters", /* too long for the kernel */
		"net_pcap1,rx_pcap=/nowhere/in.pcap",	  /* missing file */
		"net_af_packet1,iface=nosuchif0",	  /* missing interface */
	};

	for (unsigned i = 0; i < T_COUNT(bad); i++) {
		struct port_config p[2] = {port_of("good", "net_null0", 0),
					   port_of("bad", bad[i], 1)};
		struct eal_config c = eal_of(p, 2);
		struct outcome o = in_child(start_ports, &c);

		CU_ASSERT_EQUAL(o.signal, 0);
		CU_ASSERT_EQUAL(o.code, -ENODEV);
		CU_ASSERT(strstr(o.text, "port bad") && strstr(o.text, bad[i]));
		if (o.code != -ENODEV)
			printf("  %s: code %d, said: %s\n", bad[i], o.code, o.text);
	}
}

static void test_unknown_driver(void)
{
	struct port_config p[2] = {port_of("good", "net_null0", 0),
				   port_of("bad", "net_nosuch0", 1)};
	struct eal_config c = eal_of(p, 2);
	struct outcome o = in_child(start_ports, &c);

	CU_ASSERT_EQUAL(o.signal, 0);
	CU_ASSERT_EQUAL(o.code, -ENODEV);
	CU_ASSERT(strstr(o.text, "port bad") && strstr(o.text, "net_nosuch0"));
}

/* D04 */
static void test_duplicate_devices(void)
{
	struct port_config p[2] = {port_of("one", "net_null0", 0),
				   port_of("two", "net_null0,size=64", 1)};
	struct eal_config c = eal_of(p, 2);
	struct outcome o = in_child(start_ports, &c);

	CU_ASSERT_EQUAL(o.code, -EINVAL);
	CU_ASSERT(strstr(o.text, "port two") && strstr(o.text, "port one"));
}

static int start_twice(const void *arg, char *text)
{
	int e = eal_start(arg, text);

	return e ? e : eal_start(arg, text);
}

static void test_second_start(void)
{
	struct eal_config c = eal_of(NULL, 0);
	struct outcome o = in_child(start_twice, &c);

	CU_ASSERT_EQUAL(o.code, -EALREADY);
}

static void test_bad_extra_argument(void)
{
	const char *extra[] = {"--no-such-option"};
	struct eal_config c = eal_of(NULL, 0);
	struct outcome o;

	c.extra = extra;
	c.n_extra = 1;
	o = in_child(start, &c);
	CU_ASSERT_EQUAL(o.signal, 0);
	CU_ASSERT(o.code < 0 && o.text[0]);
}

/* D01: pages needed and pages free are in the sentence. More than any machine has free. */
static void test_no_hugepages(void)
{
	struct eal_config c = eal_of(NULL, 0);
	struct outcome o;

	c.huge = EAL_HUGE_YES;
	c.memory_mb = 512 * 1024;
	CU_ASSERT_FALSE(eal_huge_fits(c.memory_mb, err));
	o = in_child(start, &c);
	CU_ASSERT_EQUAL(o.signal, 0);
	CU_ASSERT_EQUAL(o.code, -ENOMEM);
	CU_ASSERT(strstr(o.text, "524288 MB need") && strstr(o.text, "are free"));
}

static int start_with_pool(const void *arg, char *text)
{
	const struct eal_config *c = arg;
	struct pool_demand d = {.held = 16383 - 512};
	struct pool_shape shape;
	struct rte_mempool *pool;
	int e = eal_start(c, text);

	if (e || pool_size(&d, 64, RTE_MBUF_DEFAULT_BUF_SIZE, &shape))
		return e;
	if (shape.count != 16383)
		return -1001;
	pool = pool_create("p", &shape, 64, RTE_MBUF_DEFAULT_BUF_SIZE, -1);
	e = pool ? 0 : -errno;
	if (pool && rte_mempool_avail_count(pool) != 16383)
		e = -1002;
	if (!pool)
		port_say(text, 0, "no pool");
	/* The estimate that sizes the memory is not below what it takes. */
	if (!pool && (shape.bytes >> 20) + 2 < c->memory_mb)
		e = -1003;
	pool_destroy(pool);
	eal_stop();
	return e;
}

/* D12: with too little memory the start fails with a sentence, with enough it succeeds. */
static void test_little_memory(void)
{
	static const unsigned mb[] = {1, 2, 4, 8, 16, 32, 40, 44, 48, 64};
	unsigned failed = 0;

	for (unsigned i = 0; i < T_COUNT(mb); i++) {
		struct eal_config c = eal_of(NULL, 0);
		struct outcome o;

		c.memory_mb = mb[i];
		o = in_child(start_with_pool, &c);
		CU_ASSERT_EQUAL(o.signal, 0);
		CU_ASSERT(o.code == 0 || o.code == -ENOMEM || o.code == -EIO);
		CU_ASSERT(o.code == 0 || o.text[0]);
		if (o.code <= -1000)
			printf("  %u MB: code %d, said: %s\n", mb[i], o.code, o.text);
		failed += o.code != 0;
	}
	CU_ASSERT(failed >= 5 && failed < T_COUNT(mb));
}

static int start_without_malloc(const void *arg, char *text)
{
	int e;

	t_fail_at(1);
	e = eal_start(arg, text);
	t_fail_stop();
	return e;
}

static void test_no_memory_for_the_arguments(void)
{
	struct eal_config c = eal_of(NULL, 0);
	struct outcome o = in_child(start_without_malloc, &c);

	CU_ASSERT_EQUAL(o.code, -ENOMEM);
}

static const struct t_case cases[] = {
	T(test_arguments),
	T(test_cpus_that_were_left_open),
	T(test_refused_cpus),
	T(test_arguments_too_long),
	T(test_most_lanes),
	T(test_good_start),
	T(test_devices_that_do_not_come_up),
	T(test_unknown_driver),
	T(test_duplicate_devices),
	T(test_second_start),
	T(test_bad_extra_argument),
	T(test_no_hugepages),
	T(test_little_memory),
	T(test_no_memory_for_the_arguments),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("port_start", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
