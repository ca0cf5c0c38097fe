/* SPDX-License-Identifier: BSD-3-Clause */
/* A port on a veth whose other end is the kernel of a network namespace of our own: real ARP, real
 * ping, real UDP sockets with checksum offload as Linux has it by default. Needs root or user
 * namespaces; touches nothing outside its namespace, which ends with the process.
 */
#include "dataplane/frame/arp.h"
#include "dataplane/frame/build.h"
#include "dataplane/frame/icmp.h"
#include "dataplane/frame/neigh_get.h"
#include "dataplane/port/eal.h"
#include "dataplane/port/port.h"
#include "dataplane/port/rx.h"
#include "dataplane/port/tx.h"
#include "tests/lib/t_eal.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS \
	20000000000ull /* until a condition must hold; only a failing test waits so long */
#define KERNEL_IP 0x0a000002u

extern char **environ;

static struct port port;
static struct rte_mempool *pool;
static struct tx_net *net;
static struct tx tx;
static struct neigh *neigh;
static struct bucket limit;
static uint64_t uses[SPL_USE_COUNT], drops[SPL_DROP_COUNT], received, echoed;
static unsigned gave_up;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* ---- a small dataplane: answers ARP and ping, echoes datagrams ---- */

static void on_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	arp_request(&port.local, ip, mac, (uint8_t *)rte_pktmbuf_append(m, ARP_FRAME_BYTES));
	tx_raw(&tx, 0, m);
}

static void on_frame(void *ctx, void *frame, const uint8_t *mac)
{
	struct rte_mbuf *m = frame;

	if (!mac) {
		rte_pktmbuf_free(m);
		gave_up++;
		return;
	}
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), mac, 6);
	tx_udp(&tx, 0, m);
}

static void send_to_kernel(uint16_t from, uint16_t to, const void *data, uint16_t len)
{
	static const uint8_t unknown[6];
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct build_path path;
	uint8_t *p;

	build_path_init(&path, &port.local, from, unknown, KERNEL_IP, to);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(FRAME_HDR_BYTES + len));
	build_udp(&path, len, 0, p);
	memcpy(p + FRAME_HDR_BYTES, data, len);
	neigh_send(neigh, frame_next_hop(&port.local, KERNEL_IP), m, now());
}

/* True when the frame is now an answer to be sent. */
static bool handle(struct frame_view *v)
{
	enum arp_result r;

	if (v->kind == FRAME_ARP) {
		r = arp_input(&port.local, neigh, v, now());
		if (r == ARP_DROP)
			drops[v->reason]++;
		else
			uses[r == ARP_OTHER ? SPL_USE_OTHER_HOST : SPL_USE_ARP]++;
		return r == ARP_REPLY;
	}
	if (v->kind == FRAME_ICMP && icmp_echo(&port.local, &limit, v, 0, now())) {
		uses[SPL_USE_ICMP]++;
		return true;
	}
	if (v->kind == FRAME_DATA) {
		uses[SPL_USE_DATA]++;
		echoed++;
		send_to_kernel((uint16_t)(port.local.udp_base + v->lane), v->src_port,
			       frame_payload(v), v->payload_len);
	} else if (v->kind == FRAME_OTHER) {
		uses[SPL_USE_OTHER_HOST]++;
	} else {
		drops[v->reason]++;
	}
	return false;
}

static void step(void)
{
	struct rte_mbuf *m[32];
	struct frame_view v[32];
	unsigned n = rte_eth_rx_burst(port.id, 0, m, 32);

	rx_parse(&port.local, m, v, n, pool);
	for (unsigned i = 0; i < n; i++) {
		if (!handle(&v[i])) {
			rte_pktmbuf_free(m[i]);
			continue;
		}
		m[i]->data_off = (uint16_t)(v[i].data - (uint8_t *)m[i]->buf_addr);
		m[i]->data_len = (uint16_t)v[i].len;
		m[i]->pkt_len = v[i].len;
		tx_raw(&tx, 0, m[i]);
	}
	received += n;
	neigh_tick(neigh, now());
	tx_flush(&tx);
	if (n == 0)
		sched_yield();
}

/* ---- set-up ---- */

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return ok ? 0 : -1;
}

/* A network namespace of our own, as root or as root of a user namespace. */
static int own_namespace(void)
{
	char map[64];
	unsigned uid = geteuid(), gid = getegid();

	if (uid == 0 && unshare(CLONE_NEWNET) == 0)
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -1;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_text("/proc/self/uid_map", map) || write_text("/proc/self/setgroups", "deny"))
		return -1;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_text("/proc/self/gid_map", map);
}

static struct port_config config(const char *device)
{
	struct port_config c = {
		.name = "wan", .ip = 0x0a000001, .prefix = 24, .mtu = 1500, .udp_base = 40000};

	snprintf(c.device, sizeof(c.device), "%s", device);
	return c;
}

static int start_eal(const struct port_config *c)
{
	struct eal_config e = {.n_lanes = 1,
			       .agent_cpu = EAL_CPU_ANY,
			       .lane_cpu = {EAL_CPU_ANY},
			       .memory_mb = T_EAL_MB,
			       .ports = c,
			       .n_ports = 2,
			       .log_level = "*:critical"};
	char err[PORT_ERR_BYTES];
	int rc = eal_start(&e, err);

	if (rc)
		fprintf(stderr, "%s\n", err);
	return rc;
}

static int fresh_neighbours(void)
{
	static const struct neigh_ops ops = {NULL, on_probe, on_frame};
	static const struct neigh_times times = NEIGH_TIMES_DEFAULT;

	neigh_destroy(neigh);
	neigh = neigh_create(16, &times, &ops, t_seed());
	return neigh ? 0 : -1;
}

/* The second port cannot take frames of its size in our buffers: for the refused queue. */
static struct port_config c[2];

static int setup(void)
{
	char err[PORT_ERR_BYTES] = "";
	uint16_t ids[2];

	c[0] = config("net_af_packet0,iface=va");
	c[1] = config("net_af_packet1,iface=vc,blocksz=8192,framesz=8192,framecnt=64");
	strcpy(c[1].name, "big");
	c[1].ip = 0x0a000101;
	if (own_namespace() ||
	    system("ip link add va type veth peer name vb && ip link set va up && "
		   "ip link set vb up && ip addr add 10.0.0.2/24 dev vb && "
		   "ip link add vc type veth peer name vd && ip link set vc up"))
		return -1;
	if (start_eal(c) || port_find_all(c, 2, ids, err) != 0)
		return -1;
	pool = t_pool("pool", 4095, 0);
	if (port_open(&port, ids[0], &c[0], 1, pool, err) || port_start(&port, err)) {
		fprintf(stderr, "%s\n", err);
		return -1;
	}
	net = tx_net_create(&port, 1, 1, NULL, NULL);
	tx_init(&tx, net, 0, pool);
	bucket_init(&limit, 1000, 1000);
	return net ? fresh_neighbours() : -1;
}

static int teardown(void)
{
	unsigned used;

	neigh_destroy(neigh);
	tx_fini(&tx);
	tx_net_destroy(net);
	port_close(&port);
	used = t_pool_used(pool);
	t_eal_stop();
	return used ? -1 : 0;
}

/* ---- tests ---- */

/* Runs a program and the dataplane until the program ends; its exit status. */
static int run(const char *const *argv)
{
	uint64_t until = now() + PATIENCE_NS;
	posix_spawn_file_actions_t quiet;
	int status = -1, failed;
	pid_t pid;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	failed = posix_spawnp(&pid, argv[0], &quiet, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (failed)
		return -1;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		step();
		if (now() > until)
			kill(pid, SIGKILL);
	}
	return status;
}

static void test_arping(void)
{
	const char *argv[] = {"arping", "-q", "-c", "2", "-w", "15", "-I", "vb", "10.0.0.1", NULL};

	CU_ASSERT_EQUAL(run(argv), 0);
	CU_ASSERT(uses[SPL_USE_ARP] >= 2);
}

static void test_ping(void)
{
	const char *small[] = {"ping", "-q", "-c", "5", "-i", "0.01", "-s", "0", "10.0.0.1", NULL};
	const char *odd[] = {"ping", "-q", "-c", "5", "-i", "0.01", "-s", "57", "10.0.0.1", NULL};
	const char *full[] = {"ping", "-q", "-c", "5",	  "-i",	      "0.01",
			      "-M",   "do", "-s", "1472", "10.0.0.1", NULL};
	uint64_t before = uses[SPL_USE_ICMP];

	CU_ASSERT_EQUAL(run(small), 0);
	CU_ASSERT_EQUAL(run(odd), 0);
	CU_ASSERT_EQUAL(run(full), 0);
	CU_ASSERT_EQUAL(uses[SPL_USE_ICMP] - before, 15);
}

/* A ping with IP options ("record route"): answered without them. */
static void test_ping_with_options(void)
{
	const char *argv[] = {"ping", "-q", "-c", "3", "-i", "0.01", "-R", "10.0.0.1", NULL};

	CU_ASSERT_EQUAL(run(argv), 0);
}

static int udp_socket(uint16_t p)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(p), .sin_addr.s_addr = htonl(KERNEL_IP)};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	CU_ASSERT_FATAL(s >= 0 && bind(s, (struct sockaddr *)&a, sizeof(a)) == 0);
	return s;
}

/* Steps until the socket has a datagram; its length, or -1 after too long. */
static ssize_t receive(int s, void *out, size_t room)
{
	uint64_t until = now() + PATIENCE_NS;
	ssize_t n;

	do {
		step();
		n = recv(s, out, room, 0);
	} while (n < 0 && now() < until);
	return n;
}

static void test_datagrams(void)
{
	static const size_t sizes[] = {0, 1, 2, 63, 64, 65, 1000, 1200, 1471, 1472};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(40000),
				 .sin_addr.s_addr = htonl(0x0a000001)};
	uint8_t out[1500], in[1500];
	int s = udp_socket(50000);

	for (unsigned i = 0; i < T_COUNT(sizes); i++) {
		for (size_t k = 0; k < sizes[i]; k++)
			out[k] = (uint8_t)(k * 3 + i);
		CU_ASSERT_EQUAL(sendto(s, out, sizes[i], 0, (struct sockaddr *)&to, sizeof(to)),
				(ssize_t)sizes[i]);
		CU_ASSERT_EQUAL(receive(s, in, sizeof(in)), (ssize_t)sizes[i]);
		CU_ASSERT_EQUAL(memcmp(in, out, sizes[i]), 0);
	}
	CU_ASSERT_EQUAL(drops[SPL_DROP_UDP_CHECKSUM], 0); /* the kernel left its sums unfinished */
	close(s);
}

/* We speak first: the frame waits for the kernel's ARP answer. */
static void test_we_resolve_the_kernel(void)
{
	char in[64];
	int s = udp_socket(50001);

	CU_ASSERT_EQUAL(fresh_neighbours(), 0);
	send_to_kernel(40000, 50001, "first", 5);
	CU_ASSERT_EQUAL(receive(s, in, sizeof(in)), 5);
	CU_ASSERT_EQUAL(memcmp(in, "first", 5), 0);
	CU_ASSERT_EQUAL(neigh_counters(neigh)->probes, 1);
	close(s);
}

/* The driver's socket puts fragments together again (PACKET_FANOUT_FLAG_DEFRAG) and cuts what is
 * too long for its ring: whichever way such a datagram comes, it is a named drop, never half
 * handled. */
static void test_fragments_are_refused(void)
{
	const char *argv[] = {"ping", "-q", "-c", "1", "-W", "1", "-s", "3000", "10.0.0.1", NULL};
	uint64_t before = drops[SPL_DROP_FRAGMENT], cut = drops[SPL_DROP_IP_TRUNCATED];
	uint64_t answered = uses[SPL_USE_ICMP];

	CU_ASSERT_NOT_EQUAL(run(argv), 0);
	CU_ASSERT(drops[SPL_DROP_FRAGMENT] == before + 3 ||
		  drops[SPL_DROP_IP_TRUNCATED] == cut + 1);
	CU_ASSERT_EQUAL(uses[SPL_USE_ICMP], answered);
}

/* frames received = used + dropped, and the device says the same number. */
static void test_conservation(void)
{
	uint64_t sum = 0, stats[SPL_P_COUNT];

	for (unsigned i = 0; i < SPL_USE_COUNT; i++)
		sum += uses[i];
	for (unsigned i = 0; i < SPL_DROP_COUNT; i++)
		sum += drops[i];
	CU_ASSERT_EQUAL(sum, received);
	CU_ASSERT_EQUAL(port_stats(&port, stats), 0);
	CU_ASSERT_EQUAL(stats[SPL_P_RX_FRAMES], received);
	CU_ASSERT_EQUAL(stats[SPL_P_TX_FRAMES], tx.counts.sent);
	CU_ASSERT_EQUAL(gave_up, 0);
}

/* D13: a device that refuses a queue half-way is left closed, with its name in the sentence. */
static void test_refused_queue(void)
{
	char err[PORT_ERR_BYTES] = "";
	struct port p;
	uint16_t ids[2];

	CU_ASSERT_EQUAL(port_find_all(c, 2, ids, err), 0);
	CU_ASSERT(port_open(&p, ids[1], &c[1], 1, pool, err) < 0);
	CU_ASSERT(strstr(err, "port big") && strstr(err, "receive queue 0"));
	CU_ASSERT_FALSE(p.is_open);
	CU_ASSERT_FALSE(rte_eth_dev_is_valid_port(ids[1]));
}

static const struct t_case cases[] = {
	T(test_arping),
	T(test_ping),
	T(test_ping_with_options),
	T(test_datagrams),
	T(test_we_resolve_the_kernel),
	T(test_fragments_are_refused),
	T(test_conservation),
	T(test_refused_queue),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("port_kernel", setup, teardown, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
