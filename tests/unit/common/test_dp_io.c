/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets over a real SEQPACKET pair: batches, descriptors, memfds, bounds. */
#include "common/dp_io.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void pair(int s[2])
{
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
}

static void send_fds(int sock, const void *p, size_t n, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char b[CMSG_SPACE(sizeof(int) * 8)];
	} control;
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.b};
	struct cmsghdr *c;

	m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	CU_ASSERT_EQUAL_FATAL(sendmsg(sock, &m, 0), (ssize_t)n);
}

static void test_dp_io_a_batch_keeps_order_and_descriptors(void)
{
	int s[2], before = count_fds();
	struct dp_rx *rx = dp_rx_create();
	struct dp_packet *pk;
	struct dp_tx tx;
	unsigned seen = 0;

	pair(s);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rx);
	CU_ASSERT_EQUAL_FATAL(dp_tx_init(&tx, 100, 1 << 20), 0);
	for (uint32_t i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(dp_tx_push(&tx, &i, sizeof(i), i % 7 ? -1 : dp_memfd(&i, 4)), 0);
	while (seen < 100) {
		int n, rc = dp_tx_flush(&tx, s[0]);

		CU_ASSERT_FATAL(rc == 0 || rc == -EAGAIN);
		n = dp_rx_batch(rx, s[1], &pk);
		CU_ASSERT_FATAL(n > 0);
		for (int i = 0; i < n; i++, seen++) {
			struct dp_blob b = {NULL, 0};

			CU_ASSERT_EQUAL(pk[i].err, 0);
			CU_ASSERT(pk[i].n == 4 && memcmp(pk[i].p, &seen, 4) == 0);
			CU_ASSERT_EQUAL(pk[i].fd >= 0, seen % 7 == 0);
			if (pk[i].fd < 0)
				continue;
			CU_ASSERT_EQUAL_FATAL(dp_blob_map(&b, pk[i].fd, 4), 0);
			CU_ASSERT(b.n == 4 && memcmp(b.p, &seen, 4) == 0);
			dp_blob_unmap(&b);
		}
	}
	CU_ASSERT_EQUAL(dp_rx_batch(rx, s[1], &pk), -EAGAIN);
	close(s[0]);
	CU_ASSERT_EQUAL(dp_rx_batch(rx, s[1], &pk), 0);
	close(s[1]);
	dp_tx_fini(&tx);
	dp_rx_destroy(rx);
	CU_ASSERT_EQUAL(count_fds(), before);
}

static void test_dp_io_extra_descriptors_are_refused_and_closed(void)
{
	int s[2], before = count_fds(), fds[8];
	struct dp_rx *rx = dp_rx_create();
	struct dp_packet *pk;

	pair(s);
	for (unsigned i = 0; i < 8; i++)
		fds[i] = s[0];
	CU_ASSERT_PTR_NOT_NULL_FATAL(rx);
	for (unsigned n = 2; n <= 8; n++) {
		send_fds(s[0], "x", 1, fds, n);
		CU_ASSERT_EQUAL_FATAL(dp_rx_batch(rx, s[1], &pk), 1);
		CU_ASSERT_EQUAL(pk[0].err, -EPROTO);
	}
	/* Descriptors behind an empty packet, which looks like the end. */
	CU_ASSERT_EQUAL(send(s[0], "", 0, 0), 0);
	send_fds(s[0], "x", 1, fds, 1);
	CU_ASSERT_EQUAL(dp_rx_batch(rx, s[1], &pk), 0);
	dp_rx_destroy(rx);
	close(s[0]);
	close(s[1]);
	CU_ASSERT_EQUAL(count_fds(), before);
}

static void test_dp_io_a_packet_over_the_limit_is_cut_and_named(void)
{
	static uint8_t big[DP_PACKET_MAX + 1];
	struct dp_rx *rx = dp_rx_create();
	struct dp_packet *pk;
	int s[2];

	pair(s);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rx);
	CU_ASSERT_EQUAL(send(s[0], big, DP_PACKET_MAX, 0), DP_PACKET_MAX);
	CU_ASSERT_EQUAL_FATAL(dp_rx_batch(rx, s[1], &pk), 1);
	CU_ASSERT_EQUAL(pk[0].err, 0);
	CU_ASSERT_EQUAL(send(s[0], big, DP_PACKET_MAX + 1, 0), DP_PACKET_MAX + 1);
	CU_ASSERT_EQUAL_FATAL(dp_rx_batch(rx, s[1], &pk), 1);
	CU_ASSERT_EQUAL(pk[0].err, -EMSGSIZE);
	dp_rx_destroy(rx);
	close(s[0]);
	close(s[1]);
}

static void test_dp_io_the_queue_is_bounded_by_count_and_bytes(void)
{
	uint8_t b[64] = {0};
	struct dp_tx tx;
	int before = count_fds();

	CU_ASSERT_EQUAL_FATAL(dp_tx_init(&tx, 3, 150), 0);
	CU_ASSERT_EQUAL(dp_tx_push(&tx, b, 64, -1), 0);
	CU_ASSERT_EQUAL(dp_tx_push(&tx, b, 64, -1), 0);
	CU_ASSERT_EQUAL(dp_tx_push(&tx, b, 23, dp_memfd(b, 1)), -ENOBUFS);
	CU_ASSERT_EQUAL(dp_tx_push(&tx, b, 22, dp_memfd(b, 1)), 0);
	CU_ASSERT_EQUAL(dp_tx_push(&tx, b, 0, -1), -ENOBUFS);
	dp_tx_fini(&tx);
	CU_ASSERT_EQUAL(count_fds(), before);
}

static int plain_memfd(size_t n, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)n), 0);
	CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_dp_io_a_memfd_needs_all_its_seals_and_a_size(void)
{
	static const struct {
		size_t n;
		int seals, rc;
	} row[] = {
		{10, 0, -EPERM},
		{10, F_SEAL_SHRINK | F_SEAL_GROW, -EPERM},
		{10, F_SEAL_SHRINK | F_SEAL_WRITE, -EPERM},
		{10, F_SEAL_GROW | F_SEAL_WRITE, -EPERM},
		{10, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE, -EPERM},
		{0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, -EMSGSIZE},
		{101, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, -EMSGSIZE},
		{100, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, 0},
	};
	struct dp_blob b = {NULL, 0};
	int fd;

	for (size_t i = 0; i < T_COUNT(row); i++) {
		fd = plain_memfd(row[i].n, row[i].seals);
		CU_ASSERT_EQUAL(dp_blob_map(&b, fd, 100), row[i].rc);
		dp_blob_unmap(&b);
		close(fd);
	}
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CU_ASSERT_EQUAL(dp_blob_map(&b, fd, 100), -EPERM);
	close(fd);
}

static void test_dp_io_a_long_field_travels_as_a_memfd(void)
{
	struct dp_blob b = {NULL, 0};
	struct pack_bytes f;
	uint8_t *p = malloc(DP_INLINE_MAX + 1);
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	memset(p, 7, DP_INLINE_MAX + 1);
	f = (struct pack_bytes){p, DP_INLINE_MAX};
	CU_ASSERT_EQUAL(dp_field_out(&f, &fd), 0);
	CU_ASSERT(fd == -1 && f.len == DP_INLINE_MAX);
	f.len++;
	CU_ASSERT_EQUAL(dp_field_out(&f, &fd), 0);
	CU_ASSERT_FATAL(fd >= 0 && f.len == 0);
	f.len = 1;
	CU_ASSERT_EQUAL(dp_field_in(&f, fd, &b), -EPROTO);
	f.len = 0;
	CU_ASSERT_EQUAL_FATAL(dp_field_in(&f, fd, &b), 0);
	CU_ASSERT(f.len == DP_INLINE_MAX + 1 && memcmp(f.p, p, f.len) == 0);
	dp_blob_unmap(&b);
	close(fd);
	free(p);
}

static const struct t_case cases[] = {
	T(test_dp_io_a_batch_keeps_order_and_descriptors),
	T(test_dp_io_extra_descriptors_are_refused_and_closed),
	T(test_dp_io_a_packet_over_the_limit_is_cut_and_named),
	T(test_dp_io_the_queue_is_bounded_by_count_and_bytes),
	T(test_dp_io_a_memfd_needs_all_its_seals_and_a_size),
	T(test_dp_io_a_long_field_travels_as_a_memfd),
};

static const struct t_suite suites[] = {T_SUITE("dp_io", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
