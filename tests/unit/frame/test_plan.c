/* SPDX-License-Identifier: BSD-3-Clause */
/* Port decisions and pool arithmetic, with devices that do not exist: every combination of what a
 * device can do, bounds on both sides, duplicates, and the sentence of each refusal. */
#include "dataplane/port/plan.h"
#include "dataplane/port/pool.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static char err[PORT_ERR_BYTES];

static struct port_config config(const char *name, const char *device, uint32_t ip)
{
	struct port_config c = {.ip = ip, .prefix = 24, .mtu = 1500, .udp_base = 40000};

	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.device, sizeof(c.device), "%s", device);
	return c;
}

static struct port_caps all_caps(void)
{
	return (struct port_caps){true, true, true, true, false, 16, 16,  64,
				  4096, 32,   64,   4096, 32,	 68, 9216};
}

/* One configuration is refused, with its name and `word` in the sentence. */
static void refused(const struct port_config *c, const char *word)
{
	err[0] = '\0';
	CU_ASSERT_EQUAL(port_configs_check(c, 1, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, word));
	if (!strstr(err, word))
		printf("  said: %s\n", err);
}

static void test_good_configs(void)
{
	struct port_config c[3] = {config("a", "net_null0", 0x0a000001),
				   config("b", "net_null1,size=64", 0x0a000101),
				   config("c", "0000:01:00.0", 0x0a000201)};

	c[0].gateway = 0x0a0000fe;
	CU_ASSERT_EQUAL(port_configs_check(c, 3, err), 0);
	CU_ASSERT_EQUAL(port_configs_check(c, 0, err), 0);
	c[0].prefix = 31;
	c[0].ip = 0x0a000000;
	c[0].gateway = 0x0a000001;
	CU_ASSERT_EQUAL(port_configs_check(c, 1, err), 0);
	c[0].prefix = 32;
	c[0].gateway = 0;
	CU_ASSERT_EQUAL(port_configs_check(c, 1, err), 0);
}

static void test_names(void)
{
	struct port_config c = config("wan", "net_null0", 0x0a000001);

	memset(c.name, 'n', sizeof(c.name) - 1);
	c.name[sizeof(c.name) - 1] = '\0';
	CU_ASSERT_EQUAL(port_configs_check(&c, 1, err), 0); /* the longest */
	c.name[sizeof(c.name) - 1] = 'n';
	refused(&c, "63");
	c = config("", "net_null0", 0x0a000001);
	refused(&c, "port 0");
	c = config("a b", "net_null0", 0x0a000001);
	refused(&c, "visible");
	c = config("wan", "", 0x0a000001);
	refused(&c, "device");
	c = config("wan", ",size=64", 0x0a000001);
	refused(&c, "before the comma");
	memset(c.device, 'd', 63);
	strcpy(c.device + 63, ",x=1");
	CU_ASSERT_EQUAL(port_configs_check(&c, 1, err), 0);
	memset(c.device, 'd', 64);
	c.device[64] = '\0';
	refused(&c, "63");
	memset(c.device, 'd', sizeof(c.device));
	refused(&c, "511");
}

static void test_addresses(void)
{
	static const uint32_t bad[] = {0,	   0x7f000001, 0xe0000001, 0xffffffff,
				       0x0a000000, 0x0a0000ff, 0x00000005, 0xf0000001};
	static const uint32_t bad_gw[] = {0x0a000001, 0x0a000102, 0x0a0000ff, 0xe0000001};
	struct port_config c = config("wan", "net_null0", 0x0a000001);

	for (unsigned i = 0; i < T_COUNT(bad); i++) {
		c.ip = bad[i];
		refused(&c, "port wan");
	}
	c.ip = 0x0a000001;
	for (unsigned i = 0; i < T_COUNT(bad_gw); i++) {
		c.gateway = bad_gw[i];
		refused(&c, "gateway");
	}
	c.gateway = 0;
	c.prefix = 33;
	refused(&c, "33");
}

static void test_numbers(void)
{
	struct port_config c = config("wan", "net_null0", 0x0a000001);

	for (c.mtu = PORT_MTU_MIN; c.mtu <= PORT_MTU_MAX; c.mtu += 864)
		CU_ASSERT_EQUAL(port_configs_check(&c, 1, err), 0);
	c.mtu = PORT_MTU_MIN - 1;
	refused(&c, "575");
	c.mtu = PORT_MTU_MAX + 1;
	refused(&c, "9217");
	c.mtu = 1500;
	c.udp_base = 0;
	refused(&c, "udp_base");
	c.udp_base = 65279;
	CU_ASSERT_EQUAL(port_configs_check(&c, 1, err), 0);
	c.udp_base = 65280;
	refused(&c, "65279");
	c.udp_base = 1;
	c.rx_desc = 20000;
	refused(&c, "descriptors");
}

/* D04: the same device under two argument lists, or under two spellings, is one device. */
static void test_duplicates(void)
{
	static const char *const pairs[][2] = {
		{"net_null0", "net_null0"},
		{"net_null0", "net_null0,size=64"},
		{"net_ring0,a=1", "net_ring0,b=2"},
		{"0000:01:00.0", "01:00.0"},
	};
	struct port_config c[2];

	for (unsigned i = 0; i < T_COUNT(pairs); i++) {
		c[0] = config("left", pairs[i][0], 0x0a000001);
		c[1] = config("right", pairs[i][1], 0x0a000101);
		CU_ASSERT_EQUAL(port_configs_check(c, 2, err), -EINVAL);
		CU_ASSERT(strstr(err, "port right") && strstr(err, "port left"));
	}
	c[0] = config("left", "net_null0", 0x0a000001);
	c[1] = config("left", "net_null1", 0x0a000101);
	CU_ASSERT_EQUAL(port_configs_check(c, 2, err), -EINVAL);
	c[1] = config("right", "net_null00", 0x0a000001);
	CU_ASSERT_EQUAL(port_configs_check(c, 2, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "address"));
	c[1].ip = 0x0a000101;
	CU_ASSERT_EQUAL(port_configs_check(c, 2, err), 0);
	CU_ASSERT_EQUAL(port_configs_check(c, PORTS_MAX + 1, err), -EINVAL);
}

static void test_pci_addresses(void)
{
	static const char *const yes[] = {"0000:01:00.0", "01:00.0", "ffff:ff:1f.7",
					  "0000:3B:00.1,arg=1", "10000:01:00.0"};
	static const char *const no[] = {"net_null0", "01:00.8",     "1:00.0",	     "0000:01:00",
					 "01:00.0x",  "000:01:00.0", "0000-01:00.0", ""};
	char name[PORT_NAME_BYTES];

	for (unsigned i = 0; i < T_COUNT(yes); i++)
		CU_ASSERT_TRUE(port_is_pci(yes[i]));
	for (unsigned i = 0; i < T_COUNT(no); i++)
		CU_ASSERT_FALSE(port_is_pci(no[i]));
	CU_ASSERT_TRUE(port_device_name("01:00.0,a=b", name));
	CU_ASSERT_STRING_EQUAL(name, "0000:01:00.0");
	CU_ASSERT_TRUE(port_device_name("net_memif0,role=server", name));
	CU_ASSERT_STRING_EQUAL(name, "net_memif0");
}

/* Whatever a device can do is asked for, whatever it cannot is left to software; nothing else. */
static void test_every_combination_of_offloads(void)
{
	struct port_config c = config("wan", "net_null0", 0x0a000001);

	for (unsigned bits = 0; bits < 32; bits++) {
		struct port_caps caps = all_caps();
		struct port_plan p;

		caps.tx_udp_csum = bits & 1;
		caps.tx_multi_seg = bits & 2;
		caps.rx_ip_csum = bits & 4;
		caps.rx_udp_csum = bits & 8;
		caps.rx_partial = bits & 16;
		CU_ASSERT_EQUAL(port_plan(&c, &caps, 3, 2048, &p, err), 0);
		CU_ASSERT_EQUAL(p.tx_udp_csum, caps.tx_udp_csum);
		CU_ASSERT_EQUAL(p.tx_multi_seg, caps.tx_multi_seg);
		CU_ASSERT_EQUAL(p.rx_ip_csum, caps.rx_ip_csum);
		CU_ASSERT_EQUAL(p.rx_udp_csum, caps.rx_udp_csum);
		CU_ASSERT_EQUAL(p.rx_partial, caps.rx_partial);
	}
}

static void test_queues(void)
{
	struct port_config c = config("wan", "net_null0", 0x0a000001);
	struct port_caps caps = all_caps();
	struct port_plan p;

	for (uint16_t max = 1; max < 6; max++) {
		for (unsigned users = 2; users < 6; users++) {
			caps.max_tx_queues = max;
			CU_ASSERT_EQUAL(port_plan(&c, &caps, users, 2048, &p, err), 0);
			CU_ASSERT_EQUAL(p.n_tx, users < max ? users : max);
		}
	}
	caps.max_tx_queues = 0;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "port wan"));
	caps = all_caps();
	caps.max_rx_queues = 0;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), -ENOTSUP);
}

static void test_descriptors(void)
{
	struct port_config c = config("wan", "net_null0", 0x0a000001);
	struct port_caps caps = all_caps();
	struct port_plan p;

	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), 0);
	CU_ASSERT_EQUAL(p.rx_desc, PORT_DESC_DEFAULT);
	caps.rx_desc_max = 512; /* the default bends */
	caps.tx_desc_min = 2048;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), 0);
	CU_ASSERT_EQUAL(p.rx_desc, 512);
	CU_ASSERT_EQUAL(p.tx_desc, 2048);
	c.rx_desc = 513; /* a wish does not */
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "rx_desc 513"));
	c.rx_desc = 65;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), 0);
	CU_ASSERT_EQUAL(p.rx_desc, 96);
	c.tx_desc = 64;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "tx_desc 64"));
	memset(&caps, 0, sizeof(caps)); /* a device that says nothing about its limits */
	caps.max_rx_queues = caps.max_tx_queues = 1;
	c.tx_desc = 0;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), 0);
	CU_ASSERT_EQUAL(p.tx_desc, PORT_DESC_DEFAULT);
}

/* D41: buffers too small for the MTU; the sentence says how large they must be. */
static void test_mtu_and_data_room(void)
{
	struct port_config c = config("wan", "net_null0", 0x0a000001);
	struct port_caps caps = all_caps();
	struct port_plan p;

	c.mtu = 9000;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "9142"));
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 9013, &p, err), -EINVAL);
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 9014, &p, err), 0);
	caps.mtu_max = 1500;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 9014, &p, err), -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "mtu 9000 is outside 68..1500"));
	c.mtu = 1500;
	caps.mtu_min = 1501;
	caps.mtu_max = 0;
	CU_ASSERT_EQUAL(port_plan(&c, &caps, 2, 2048, &p, err), -ENOTSUP);
}

static void test_pool_shapes(void)
{
	for (uint32_t held = 0; held < 3000000; held = held * 2 + 17) {
		struct pool_demand d = {
			.rx_desc = 1024, .tx_desc = 3072, .burst = 64, .ring = 512, .held = held};
		struct pool_shape s;

		CU_ASSERT_EQUAL(pool_size(&d, 64, 2176, &s), 0);
		CU_ASSERT(s.count >= 1024 + 3072 + 64 + 512 + held);
		CU_ASSERT_EQUAL(s.count & (s.count + 1), 0); /* 2^q - 1 */
		CU_ASSERT(s.cache >= 32 && s.cache <= 512 && s.cache <= s.count * 2 / 3);
		CU_ASSERT(s.bytes > (uint64_t)s.count * (128 + 64 + 2176));
		CU_ASSERT(s.bytes < (uint64_t)s.count * (128 + 64 + 2176 + 256) + (4u << 20));
	}
}

static void test_pool_known_pairs(void)
{
	static const uint32_t known[][2] = {{1023, 341}, {4095, 455}, {16383, 381}, {65535, 257}};

	for (unsigned i = 0; i < T_COUNT(known); i++) {
		struct pool_demand d = {.held = known[i][0] > 1024 ? known[i][0] - 512 : 1000};
		struct pool_shape s;

		CU_ASSERT_EQUAL(pool_size(&d, 0, 2176, &s), 0);
		CU_ASSERT_EQUAL(s.count, known[i][0]);
		CU_ASSERT_EQUAL(s.cache, known[i][1]);
		CU_ASSERT_EQUAL(s.count % s.cache, 0);
	}
}

static void test_pool_bounds(void)
{
	struct pool_demand d = {0};
	struct pool_shape s;

	CU_ASSERT_EQUAL(pool_size(&d, 0, 2176, &s), 0);
	CU_ASSERT_EQUAL(s.count, 63);
	d.held = POOL_COUNT_MAX - 1 - 512;
	CU_ASSERT_EQUAL(pool_size(&d, 0, 2176, &s), 0);
	CU_ASSERT_EQUAL(s.count, POOL_COUNT_MAX - 1);
	d.held = POOL_COUNT_MAX - 1;
	CU_ASSERT_EQUAL(pool_size(&d, 0, 2176, &s), -ERANGE);
	d = (struct pool_demand){UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	CU_ASSERT_EQUAL(pool_size(&d, 0, 2176, &s), -ERANGE);
}

static const struct t_case cases[] = {
	T(test_good_configs),
	T(test_names),
	T(test_addresses),
	T(test_numbers),
	T(test_duplicates),
	T(test_pci_addresses),
	T(test_every_combination_of_offloads),
	T(test_queues),
	T(test_descriptors),
	T(test_mtu_and_data_room),
	T(test_pool_shapes),
	T(test_pool_known_pairs),
	T(test_pool_bounds),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("plan", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
