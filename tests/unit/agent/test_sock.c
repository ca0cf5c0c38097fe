/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane's end of the private socket: what it refuses, what survives a bad control. */
#include "common/dp_io.h"
#include "dataplane/agent/sock.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[64];
static unsigned connects, losses, packets;
static struct dp_header last;
static char last_blob[64];

static void on_peer(void *ctx, bool connected)
{
	if (connected)
		connects++;
	else
		losses++;
}

static void on_packet(void *ctx, const struct sock_packet *p)
{
	packets++;
	last = p->h;
	if (p->blob.p && p->blob.len < sizeof(last_blob))
		memcpy(last_blob, p->blob.p, p->blob.len);
}

static const struct sock_ops ops = {NULL, on_peer, on_packet};

static int make_dir(void)
{
	connects = losses = packets = 0;
	snprintf(dir, sizeof(dir), "/tmp/spl-sock-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static void remove_dir(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, DP_LOCK_NAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%s", dir, DP_SOCKET_NAME);
	unlink(path);
	rmdir(dir);
}

static struct sock *must_open(void)
{
	char err[512] = "";
	struct sock *s = sock_open(dir, &ops, err, sizeof(err));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	return s;
}

static int dial(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%s", dir, DP_SOCKET_NAME);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static size_t packet(uint8_t *buf, uint16_t nfds)
{
	struct pack_writer w = {.p = buf, .cap = 256};

	dp_begin(&w, DP_LEASE_LOST, DP_F_EVT, 1, 9);
	dp_put_lease_lost(&w, &(struct dp_lease_lost){.reason = dp_text("test")});
	CU_ASSERT_EQUAL(dp_finish(&w, nfds), 0);
	return w.len;
}

static void send_fd(int to, const void *p, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} c = {{0}};
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = c.room,
			    .msg_controllen = sizeof(c.room)};

	c.align.cmsg_len = CMSG_LEN(sizeof(int));
	c.align.cmsg_level = SOL_SOCKET;
	c.align.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&c.align), &fd, sizeof(fd));
	CU_ASSERT_EQUAL(sendmsg(to, &mh, 0), (ssize_t)n);
}

static void test_sock_serves_one_control_and_the_next(void)
{
	uint8_t buf[256], in[256];
	struct sock *s;
	int a, b;

	CU_ASSERT_EQUAL_FATAL(make_dir(), 0);
	s = must_open();
	a = dial();
	sock_poll(s);
	CU_ASSERT_TRUE(sock_connected(s));
	CU_ASSERT_EQUAL(send(a, buf, packet(buf, 0), 0), (ssize_t)packet(buf, 0));
	sock_poll(s);
	CU_ASSERT_EQUAL(packets, 1);
	CU_ASSERT_EQUAL(last.corr, 9);
	b = dial(); /* a second one is not served */
	for (int i = 0; i < 200; i++)
		sock_poll(s);
	CU_ASSERT_EQUAL(recv(b, in, sizeof(in), MSG_DONTWAIT), 0);
	close(b);
	close(a);
	sock_poll(s);
	CU_ASSERT_EQUAL(losses, 1);
	a = dial();
	sock_poll(s);
	CU_ASSERT_EQUAL(connects, 2);
	close(a);
	sock_close(s);
	remove_dir();
}

static void test_sock_ends_a_control_that_breaks_the_protocol(void)
{
	uint8_t buf[256];
	struct sock *s;
	size_t n;

	CU_ASSERT_EQUAL_FATAL(make_dir(), 0);
	s = must_open();
	for (int bad = 0; bad < 5; bad++) {
		unsigned before = losses;
		int a = dial(), fd = -1;

		sock_poll(s);
		n = packet(buf, bad == 3 || bad == 4);
		switch (bad) {
		case 0:
			buf[0] ^= 1; /* magic */
			break;
		case 1:
			buf[4]++; /* version */
			break;
		case 2:
			n--; /* truncated */
			break;
		case 3: /* says a descriptor and sends none */
			break;
		case 4: /* a memfd that can still change */
			fd = memfd_create("x", MFD_ALLOW_SEALING);
			CU_ASSERT_EQUAL(write(fd, "x", 1), 1);
			break;
		}
		if (fd >= 0)
			send_fd(a, buf, n, fd);
		else
			CU_ASSERT_EQUAL(send(a, buf, n, 0), (ssize_t)n);
		sock_poll(s);
		CU_ASSERT_EQUAL(losses, before + 1);
		if (fd >= 0)
			close(fd);
		close(a);
	}
	CU_ASSERT_EQUAL(packets, 0);
	sock_close(s);
	remove_dir();
}

static void test_sock_takes_a_sealed_blob(void)
{
	uint8_t buf[256];
	struct sock *s;
	int a, fd;

	CU_ASSERT_EQUAL_FATAL(make_dir(), 0);
	s = must_open();
	a = dial();
	sock_poll(s);
	fd = dp_memfd("hello", 6);
	CU_ASSERT_FATAL(fd >= 0);
	send_fd(a, buf, packet(buf, 1), fd);
	sock_poll(s);
	CU_ASSERT_EQUAL(packets, 1);
	CU_ASSERT_STRING_EQUAL(last_blob, "hello");
	close(fd);
	close(a);
	sock_close(s);
	remove_dir();
}

static void test_sock_cuts_a_control_that_never_reads(void)
{
	static uint8_t big[DP_PACKET_MAX - 64];
	struct pack_writer w = {.p = big, .cap = sizeof(big), .len = sizeof(big)};
	struct sock *s;
	int a, rc = 0;

	CU_ASSERT_EQUAL_FATAL(make_dir(), 0);
	s = must_open();
	a = dial();
	sock_poll(s);
	for (int i = 0; i < 1000 && rc == 0; i++) {
		rc = sock_send(s, &w, -1);
		if (rc == 0)
			sock_poll(s);
	}
	CU_ASSERT_EQUAL(rc, -ENOBUFS);
	CU_ASSERT_FALSE(sock_connected(s));
	CU_ASSERT_EQUAL(sock_send(s, &w, -1), -ENOTCONN);
	close(a);
	sock_close(s);
	remove_dir();
}

static void test_sock_refuses_places_that_are_not_its_own(void)
{
	char err[512], path[128];
	struct stat st;
	struct sock *s;
	int fd;

	CU_ASSERT_PTR_NULL(sock_open("/nonexistent/dir", &ops, err, sizeof(err)));
	CU_ASSERT_EQUAL_FATAL(make_dir(), 0);
	CU_ASSERT_EQUAL(chmod(dir, 0777), 0);
	CU_ASSERT_PTR_NULL(sock_open(dir, &ops, err, sizeof(err)));
	CU_ASSERT_EQUAL(errno, EPERM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "chmod"));
	CU_ASSERT_EQUAL(chmod(dir, 0750), 0);

	snprintf(path, sizeof(path), "%s/%s", dir, DP_SOCKET_NAME);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	CU_ASSERT_PTR_NULL(sock_open(dir, &ops, err, sizeof(err)));
	CU_ASSERT_EQUAL(errno, EEXIST);
	CU_ASSERT_EQUAL(stat(path, &st), 0); /* untouched */
	unlink(path);
	CU_ASSERT_EQUAL(symlink("/etc/passwd", path), 0);
	CU_ASSERT_PTR_NULL(sock_open(dir, &ops, err, sizeof(err)));
	CU_ASSERT_EQUAL(errno, EEXIST);
	unlink(path);

	s = must_open();
	CU_ASSERT_PTR_NULL(sock_open(dir, &ops, err, sizeof(err)));
	CU_ASSERT_EQUAL(errno, EBUSY);
	CU_ASSERT_EQUAL(stat(path, &st), 0); /* the first one's is still there */
	sock_close(s);
	CU_ASSERT_EQUAL(stat(path, &st), -1);
	remove_dir();
}

static void test_sock_clears_what_a_crash_left(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int dead = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sock *s;

	CU_ASSERT_EQUAL_FATAL(make_dir(), 0);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%s", dir, DP_SOCKET_NAME);
	CU_ASSERT_EQUAL(bind(dead, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(dead);
	s = must_open();
	sock_close(s);
	remove_dir();
}

static const struct t_case cases[] = {
	T(test_sock_serves_one_control_and_the_next),
	T(test_sock_ends_a_control_that_breaks_the_protocol),
	T(test_sock_takes_a_sealed_blob),
	T(test_sock_cuts_a_control_that_never_reads),
	T(test_sock_refuses_places_that_are_not_its_own),
	T(test_sock_clears_what_a_crash_left),
};
static const struct t_suite suites[] = {T_SUITE("agent-sock", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
