/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's socket, over loopback. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/client.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"

#define LOOPBACK 0x7f000001

static uint16_t bind_any(const struct net *net)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = net->ops->fd(net->arg);

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.sin_port);
}

/* Waits until `n` packets came, in batches. */
static unsigned take(const struct net *net, struct net_packet *p, unsigned n)
{
	unsigned got = 0;

	while (got < n && net->ops->wait(net->arg, false, 5000000000) == 0) {
		unsigned more = net->ops->recv(net->arg, p + got, n - got);

		if (more == 0)
			break;
		got += more;
	}
	return got;
}

static void test_batches_keep_bytes_and_addresses(void)
{
	enum { N = 150, ROOM = 1500 };
	static uint8_t out_b[N][ROOM], in_b[N][ROOM];
	struct net_packet out[N], in[N];
	struct net a, b;
	uint16_t port_a, port_b;
	unsigned sent = 0, same = 0;

	CU_ASSERT_EQUAL_FATAL(udp_open(&a, 1u << 20), 0);
	CU_ASSERT_EQUAL_FATAL(udp_open(&b, 1u << 20), 0);
	port_a = bind_any(&a);
	port_b = bind_any(&b);
	for (unsigned i = 0; i < N; i++) {
		memset(out_b[i], (int)i, ROOM);
		out[i] = (struct net_packet){
			.b = out_b[i], .len = 10 + 8 * i, .ip = LOOPBACK, .port = port_b};
		in[i] = (struct net_packet){.b = in_b[i], .room = ROOM};
	}
	T_UNTIL(sent == N, sent += a.ops->send(a.arg, out + sent, N - sent));
	CU_ASSERT_EQUAL(take(&b, in, N), N);
	for (unsigned i = 0; i < N; i++)
		same += in[i].len == out[i].len && in[i].ip == LOOPBACK && in[i].port == port_a &&
			memcmp(in_b[i], out_b[i], in[i].len) == 0;
	CU_ASSERT_EQUAL(same, N);
	CU_ASSERT_EQUAL(b.ops->recv(b.arg, in, N), 0);
	a.ops->close(a.arg);
	b.ops->close(b.arg);
}

static void test_truncated_packets_are_empty(void)
{
	uint8_t out_b[100] = {1}, in_b[50];
	struct net_packet out, in = {.b = in_b, .room = sizeof(in_b)};
	struct net a, b;

	CU_ASSERT_EQUAL_FATAL(udp_open(&a, 65536), 0);
	CU_ASSERT_EQUAL_FATAL(udp_open(&b, 65536), 0);
	out = (struct net_packet){.b = out_b, .len = 100, .ip = LOOPBACK, .port = bind_any(&b)};
	CU_ASSERT_EQUAL(a.ops->send(a.arg, &out, 1), 1);
	CU_ASSERT_EQUAL(take(&b, &in, 1), 1);
	CU_ASSERT_EQUAL(in.len, 0);
	a.ops->close(a.arg);
	b.ops->close(b.arg);
}

/* Nobody listens: lost, not an error of the next packet. */
static void test_a_port_that_is_closed_is_loss(void)
{
	uint8_t b[10] = {0};
	struct net_packet out;
	struct net a, gone;

	CU_ASSERT_EQUAL_FATAL(udp_open(&a, 65536), 0);
	CU_ASSERT_EQUAL_FATAL(udp_open(&gone, 65536), 0);
	out = (struct net_packet){.b = b, .len = 10, .ip = LOOPBACK, .port = bind_any(&gone)};
	gone.ops->close(gone.arg);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(a.ops->send(a.arg, &out, 1), 1);
	CU_ASSERT_EQUAL(a.ops->wait(a.arg, true, 1000000), 0);
	a.ops->close(a.arg);
}

static void test_clock_and_chance(void)
{
	uint64_t t0, one, two;
	struct net a;

	CU_ASSERT_EQUAL_FATAL(udp_open(&a, 65536), 0);
	t0 = a.ops->now(a.arg);
	CU_ASSERT_EQUAL(a.ops->wait(a.arg, false, 2000000), 0);
	CU_ASSERT(a.ops->now(a.arg) - t0 >= 2000000);
	a.ops->random(a.arg, &one, sizeof(one));
	a.ops->random(a.arg, &two, sizeof(two));
	CU_ASSERT_NOT_EQUAL(one, two);
	a.ops->close(a.arg);
}

/* The interface with its own socket: nobody answers, and an event loop is told when to come. */
static void test_event_loop(void)
{
	struct spl_client_config conf;
	struct spl_client *c;
	struct net silent; /* has the port, so that nobody else does */

	CU_ASSERT_EQUAL_FATAL(udp_open(&silent, 65536), 0);
	spl_client_config_init(&conf);
	conf.address = "127.0.0.1";
	conf.udp_base = bind_any(&silent);
	CU_ASSERT_EQUAL_FATAL(spl_client_open(&conf, &c), 0);
	CU_ASSERT(spl_client_fd(c) >= 0);
	CU_ASSERT_EQUAL(spl_client_connect(c, 50), -ETIMEDOUT);
	CU_ASSERT(spl_client_timeout(c) >= 0 && spl_client_timeout(c) <= 5000);
	CU_ASSERT_EQUAL(spl_client_poll(c, 10), 0);
	CU_ASSERT_FALSE(spl_client_connected(c));
	CU_ASSERT_STRING_EQUAL(spl_client_refusal(c), "");
	CU_ASSERT_EQUAL(spl_client_wait(c, 1), -ENOENT);
	CU_ASSERT_EQUAL(spl_client_close(c, 0), 0);
	CU_ASSERT_EQUAL(spl_client_close(NULL, 0), 0);
	CU_ASSERT_EQUAL(spl_client_open(NULL, &c), -EINVAL);
	silent.ops->close(silent.arg);
}

static const struct t_case cases[] = {
	T(test_batches_keep_bytes_and_addresses),
	T(test_truncated_packets_are_empty),
	T(test_a_port_that_is_closed_is_loss),
	T(test_clock_and_chance),
	T(test_event_loop),
};

int main(int argc, char **argv)
{
	static const struct t_suite suites[] = {T_SUITE("client_udp", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
