/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket file: left by a crash, held by another daemon, not a socket, in odd places; and who
 * may connect. */
#include "tests/lib/t_main.h"
#include "tests/unit/server/t_mgmt.h"
#include "control/server/access.h"
#include "control/server/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_at(struct mgmt_socket *s, const char *path, const char *part)
{
	char err[MGMT_ERR_MAX] = "";
	int code = mgmt_socket_open(s, path, 0600, (gid_t)-1, err);

	if ((code == 0) != !part || (part && !strstr(err, part)))
		printf("  %s: %d \"%s\"\n", path, code, err);
	CU_ASSERT_EQUAL(code == 0, !part);
	CU_ASSERT(!part || strstr(err, part));
	return code;
}

static void fresh_socket_has_its_mode(void)
{
	struct mgmt_socket s;
	struct stat st;
	char err[MGMT_ERR_MAX];

	umask(0);
	CU_ASSERT_EQUAL_FATAL(mgmt_socket_open(&s, t.path, 0640, (gid_t)-1, err), 0);
	CU_ASSERT_EQUAL(lstat(t.path, &st), 0);
	CU_ASSERT(S_ISSOCK(st.st_mode));
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0640);
	mgmt_socket_close(&s);
	CU_ASSERT_EQUAL(lstat(t.path, &st), -1);
	umask(022);
}

/* What kill -9 leaves: the file without a listener. */
static void stale_socket_is_replaced(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct mgmt_socket s;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, t.path);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	CU_ASSERT_EQUAL(access(t.path, F_OK), 0);
	if (open_at(&s, t.path, NULL) == 0)
		mgmt_socket_close(&s);
}

static void second_daemon_is_refused(void)
{
	struct mgmt_socket first, second;
	char part[64];
	struct stat before, after;

	snprintf(part, sizeof(part), "already running, pid %d", (int)getpid());
	CU_ASSERT_EQUAL_FATAL(open_at(&first, t.path, NULL), 0);
	CU_ASSERT_EQUAL(lstat(t.path, &before), 0);
	CU_ASSERT_EQUAL(open_at(&second, t.path, part), -EADDRINUSE);
	CU_ASSERT_EQUAL(lstat(t.path, &after), 0);
	CU_ASSERT_EQUAL(before.st_ino, after.st_ino);
	mgmt_socket_close(&first);
}

static void what_is_no_socket_stays(void)
{
	struct mgmt_socket s;
	struct stat st;
	char other[160], text[8] = "";
	int fd = open(t.path, O_WRONLY | O_CREAT, 0600);

	snprintf(other, sizeof(other), "%s/other", t.dir);
	CU_ASSERT_EQUAL(write(fd, "mine", 4), 4);
	close(fd);
	CU_ASSERT_EQUAL(open_at(&s, t.path, "is no socket"), -EEXIST);
	fd = open(t.path, O_RDONLY);
	CU_ASSERT_EQUAL(read(fd, text, 8), 4);
	CU_ASSERT_STRING_EQUAL(text, "mine");
	close(fd);
	unlink(t.path);
	CU_ASSERT_EQUAL(mkdir(t.path, 0700), 0);
	CU_ASSERT_EQUAL(open_at(&s, t.path, "is no socket"), -EEXIST);
	rmdir(t.path);
	CU_ASSERT_EQUAL(symlink("nowhere", t.path), 0);
	CU_ASSERT_EQUAL(open_at(&s, t.path, "is no socket"), -EEXIST);
	CU_ASSERT_EQUAL(lstat(t.path, &st), 0);
	CU_ASSERT(S_ISLNK(st.st_mode));
	unlink(t.path);
	CU_ASSERT_EQUAL_FATAL(open_at(&s, other, NULL), 0);
	CU_ASSERT_EQUAL(symlink(other, t.path), 0);
	{
		struct mgmt_socket s2;

		CU_ASSERT_EQUAL(open_at(&s2, t.path, "is no socket"), -EEXIST);
	}
	CU_ASSERT_EQUAL(lstat(t.path, &st), 0);
	unlink(t.path);
	mgmt_socket_close(&s);
}

static void only_the_own_file_is_removed(void)
{
	struct mgmt_socket s;
	int fd;

	CU_ASSERT_EQUAL_FATAL(open_at(&s, t.path, NULL), 0);
	unlink(t.path);
	fd = open(t.path, O_WRONLY | O_CREAT, 0600);
	close(fd);
	mgmt_socket_close(&s);
	CU_ASSERT_EQUAL(access(t.path, F_OK), 0);
	unlink(t.path);
}

static void odd_places(void)
{
	struct mgmt_socket s;
	char path[160];
	struct stat st, after;

	memset(path, 'a', 130);
	memcpy(path, "/tmp/", 5);
	path[108] = '\0';
	CU_ASSERT_EQUAL(open_at(&s, path, "too long: 108 bytes (max 107)"), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/none/control.sock", t.dir);
	CU_ASSERT_EQUAL(open_at(&s, path, "make it first"), -ENOENT);
	CU_ASSERT_EQUAL(stat("/tmp", &st), 0);
	snprintf(path, sizeof(path), "/tmp/spotlane-test-%d.sock", (int)getpid());
	CU_ASSERT_EQUAL_FATAL(open_at(&s, path, NULL), 0);
	CU_ASSERT_EQUAL(stat("/tmp", &after), 0);
	CU_ASSERT_EQUAL(st.st_mode, after.st_mode);
	mgmt_socket_close(&s);
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	CU_ASSERT_EQUAL(open_at(&s, "/proc/control.sock", "socket /proc/control.sock: "), -ENOENT);
}

/* Many daemons at once over a stale file: exactly one wins, and its file is there at the end. */
static void race_has_one_winner(void)
{
	enum { N = 8 };
	pid_t pids[N];
	int go[2], hold[2], won = 0;
	struct mgmt_socket s;

	stale_socket_is_replaced();
	CU_ASSERT_FATAL(pipe(go) == 0 && pipe(hold) == 0);
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			char err[MGMT_ERR_MAX], c;
			int code;

			close(go[1]);
			close(hold[1]);
			if (read(go[0], &c, 1) != 0)
				_exit(9);
			code = mgmt_socket_open(&s, t.path, 0600, (gid_t)-1, err);
			if (code == 0 && read(hold[0], &c, 1) != 0)
				_exit(9);
			_exit(code == 0 ? 0 : code == -EADDRINUSE ? 1 : 2);
		}
	}
	close(go[1]);
	for (int i = 0; i < N - 1; i++) { /* the losers; the winner holds on */
		int status;

		CU_ASSERT(wait(&status) > 0);
		CU_ASSERT(WIFEXITED(status));
		CU_ASSERT_EQUAL(WEXITSTATUS(status), 1);
	}
	CU_ASSERT_EQUAL(open_at(&s, t.path, "already running"), -EADDRINUSE);
	close(hold[1]);
	for (int status; wait(&status) > 0;)
		won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	CU_ASSERT_EQUAL(won, 1);
	close(go[0]);
	close(hold[0]);
	unlink(t.path);
}

static void access_by_credentials(void)
{
	const struct mgmt_policy by_mode = {.self = 500, .full = 10};
	const struct mgmt_policy groups = {
		.self = 500, .has_readonly = true, .full = 10, .readonly = 20};
	struct mgmt_peer p = {.uid = 0, .gid = 99};

	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_FULL);
	p.uid = 500;
	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_FULL);
	p.uid = 7;
	CU_ASSERT_EQUAL(mgmt_access_of(&by_mode, &p), MGMT_ACCESS_FULL);
	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_NONE);
	p.gid = 20;
	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_READ);
	p.gid = 10;
	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_FULL);
	p.gid = 99;
	p.groups[0] = 20;
	p.n_groups = 1;
	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_READ);
	p.groups[1] = 10;
	p.n_groups = 2;
	CU_ASSERT_EQUAL(mgmt_access_of(&groups, &p), MGMT_ACCESS_FULL);
}

static void unknown_group_is_named(void)
{
	struct mgmt_server *s;
	struct mgmt_options o = t.o;
	uv_loop_t loop;
	char err[512] = "";

	CU_ASSERT_EQUAL_FATAL(uv_loop_init(&loop), 0);
	o.group = "no-such-group-here";
	CU_ASSERT_EQUAL(mgmt_server_open(&s, &loop, &o, t.methods, 1, NULL, err, sizeof(err)),
			-ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "no group \"no-such-group-here\""));
	CU_ASSERT_EQUAL(access(t.path, F_OK), -1);
	CU_ASSERT_EQUAL(uv_loop_close(&loop), 0);
}

/* Another user, as a process of its own; the lines it got come back through a pipe. */
static char *as_user(uid_t uid, gid_t gid, const char *request)
{
	int out[2];
	char *got = calloc(1, 4096);
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	CU_ASSERT_FATAL(got && pipe(out) == 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un addr = {.sun_family = AF_UNIX};
		char buf[2048];
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		strcpy(addr.sun_path, t.path);
		if (setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(uid) != 0)
			_exit(1);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0)
			_exit(dprintf(out[1], "connect: %s", strerror(errno)) > 0);
		dprintf(fd, "%s\n", request);
		shutdown(fd, SHUT_WR);
		while ((r = read(fd, buf, sizeof(buf))) > 0)
			if (write(out[1], buf, (size_t)r) != r)
				_exit(1);
		_exit(0);
	}
	close(out[1]);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2000 && n < 4095; i++) {
		uv_run(&t.loop, UV_RUN_NOWAIT);
		r = read(out[0], got + n, 4095 - n);
		if (r == 0)
			break;
		if (r > 0)
			n += (size_t)r;
		else
			usleep(10000);
	}
	close(out[0]);
	waitpid(pid, NULL, 0);
	return got;
}

/* Needs root, as the whole suite has on the project's machines. */
static void other_users_get_what_their_group_may(void)
{
	struct group *daemon_group = getgrnam("daemon"), *users = getgrnam("users");
	gid_t full, readonly;
	char *got;

	CU_ASSERT_FATAL(geteuid() == 0 && daemon_group && users);
	full = getgrnam("daemon")->gr_gid;
	readonly = getgrnam("users")->gr_gid;
	CU_ASSERT_EQUAL(chmod(t.dir, 0755), 0);
	t.o.mode = 0666;
	t.o.group = "daemon";
	t.o.readonly_group = "users";
	t_mgmt_start();
	got = as_user(12345, full, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.fail\"}");
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "\"access\":\"full\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "\"kind\":\"TypeMismatch\""));
	CU_ASSERT_EQUAL(t.handled, 1);
	free(got);
	got = as_user(12345, readonly, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.fail\"}");
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "\"access\":\"read-only\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "\"kind\":\"Rejected\""));
	CU_ASSERT_EQUAL(t.handled, 1);
	free(got);
	got = as_user(12345, readonly, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.echo\"}");
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "\"result\":{}"));
	free(got);
	got = as_user(12345, 54321, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.echo\"}");
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "no access"));
	CU_ASSERT_PTR_NULL(strstr(got, "result"));
	free(got);
	t_mgmt_stop();
	t_mgmt_defaults();
	t.o.mode = 0600;
	t_mgmt_start();
	got = as_user(12345, 54321, "{}");
	CU_ASSERT_PTR_NOT_NULL(strstr(got, "connect: Permission denied"));
	free(got);
	t_mgmt_stop();
}

static const struct t_case cases[] = {
	T(fresh_socket_has_its_mode),	 T(stale_socket_is_replaced),
	T(second_daemon_is_refused),	 T(what_is_no_socket_stays),
	T(only_the_own_file_is_removed), T(odd_places),
	T(race_has_one_winner),		 T(access_by_credentials),
	T(unknown_group_is_named),	 T(other_users_get_what_their_group_may),
};

static const struct t_suite suites[] = {T_SUITE("mgmt_socket", t_mgmt_init, t_mgmt_fini, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
