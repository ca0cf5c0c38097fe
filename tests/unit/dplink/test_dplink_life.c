/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the connection over real sockets: waiting, reconnect, back-pressure, death. */
#include "tests/unit/dplink/rig.h"

static void test_dplink_a_peer_that_closes_ends_every_request_once(void)
{
	setup();
	connect_both();
	t_ctl_reads(rig.f, false);
	for (uint64_t i = 0; i < 500; i++)
		CU_ASSERT_EQUAL(ask_resync(i, 0), 0);
	turn();
	t_ctl_disconnect(rig.f);
	UNTIL(rig.downs == 1);
	CU_ASSERT_EQUAL(rig.ends, 500);
	for (uint64_t i = 0; i < 500; i++)
		CU_ASSERT_EQUAL(rig.end_rc[i], -ECONNRESET);
	CU_ASSERT_EQUAL(rig.deads, 0);
	t_ctl_reads(rig.f, true);
	UNTIL(rig.ups == 2);
	CU_ASSERT_EQUAL(rig.up_epoch, t_ctl_seen(rig.f)->epoch);
	CU_ASSERT_EQUAL(rig.ends, 500);
	teardown();
}

static void test_dplink_a_peer_that_does_not_read_is_cut_at_the_bound(void)
{
	unsigned sent = 0;
	int rc = 0;

	setup();
	open_fake();
	open_link(256);
	UNTIL(rig.ups == 1);
	t_ctl_reads(rig.f, false);
	while (rc == 0 && sent < 4000) {
		rc = ask_resync(sent++, 0);
		uv_run(&rig.loop, UV_RUN_NOWAIT);
	}
	CU_ASSERT_EQUAL(rc, -ENOBUFS);
	CU_ASSERT(sent > 256);
	UNTIL(rig.downs == 1);
	CU_ASSERT_EQUAL(rig.ends, sent - 1);
	t_ctl_reads(rig.f, true);
	UNTIL(rig.ups == 2);
	CU_ASSERT_EQUAL(ask_resync(4000, 0), 0);
	UNTIL(rig.ends == sent);
	CU_ASSERT_EQUAL(rig.end_rc[4000], 0);
	teardown();
}

static void test_dplink_a_held_link_keeps_order_and_sends_nothing(void)
{
	uint64_t before;

	setup();
	connect_both();
	before = t_ctl_seen(rig.f)->resyncs;
	dplink_hold(rig.l, true);
	CU_ASSERT_EQUAL(ask_resync(0, 0), 0);
	CU_ASSERT_EQUAL(ask_resync(1, 0), 0);
	for (int i = 0; i < 20; i++)
		turn();
	CU_ASSERT_EQUAL(t_ctl_seen(rig.f)->resyncs, before);
	dplink_hold(rig.l, false);
	UNTIL(rig.ends == 2);
	teardown();
}

static void test_dplink_death_is_proved_and_a_new_life_comes_after(void)
{
	const struct t_ctl_options o = {.dir = rig.dir};
	const struct t_ctl_seen *seen[2];
	pid_t pid;

	setup();
	open_link(0);
	for (unsigned life = 0; life < 2; life++) {
		pid = t_ctl_fork(&o, &seen[life]);
		CU_ASSERT_FATAL(pid > 0);
		UNTIL(rig.ups == life + 1);
		CU_ASSERT_EQUAL(rig.up_epoch, seen[life]->epoch);
		CU_ASSERT_EQUAL(info().pid, pid);
		/* The order never is up before dead. */
		CU_ASSERT_EQUAL(rig.deads, life);
		/* A stopped process is not a dead one. */
		kill(pid, SIGSTOP);
		CU_ASSERT_EQUAL(ask_resync(life, 0), 0);
		for (int i = 0; i < 20; i++)
			turn();
		CU_ASSERT_EQUAL(rig.deads, life);
		CU_ASSERT_EQUAL(rig.ends, life);
		kill(pid, SIGKILL);
		UNTIL(rig.deads == life + 1);
		CU_ASSERT_EQUAL(rig.dead_epoch, seen[life]->epoch);
		CU_ASSERT_EQUAL(rig.ends, life + 1);
		CU_ASSERT_EQUAL(rig.downs, life + 1);
		CU_ASSERT_EQUAL(info().pid, 0);
		CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
	}
	CU_ASSERT_NOT_EQUAL(seen[0]->epoch, seen[1]->epoch);
	munmap((void *)(uintptr_t)seen[0], sizeof(*seen[0]));
	munmap((void *)(uintptr_t)seen[1], sizeof(*seen[1]));
	teardown();
}

static void test_dplink_can_end_the_process_it_watches(void)
{
	const struct t_ctl_options o = {.dir = rig.dir};
	const struct t_ctl_seen *seen;
	pid_t pid;

	setup();
	open_link(0);
	CU_ASSERT_EQUAL(dplink_kill(rig.l), -ESRCH);
	pid = t_ctl_fork(&o, &seen);
	CU_ASSERT_FATAL(pid > 0);
	UNTIL(rig.ups == 1);
	CU_ASSERT_EQUAL(dplink_kill(rig.l), 0);
	UNTIL(rig.deads == 1);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
	munmap((void *)(uintptr_t)seen, sizeof(*seen));
	teardown();
}

static void test_dplink_waits_for_a_dataplane_and_finds_it(void)
{
	setup();
	open_link(0);
	for (int i = 0; i < 5; i++)
		turn();
	CU_ASSERT_EQUAL(rig.ups, 0);
	CU_ASSERT_EQUAL(info().state, DPLINK_WAITING);
	CU_ASSERT_EQUAL(ask_resync(0, 0), -ENOTCONN);
	open_fake();
	UNTIL(rig.ups == 1);
	CU_ASSERT_EQUAL(info().state, DPLINK_UP);
	teardown();
}

static void test_dplink_a_missing_directory_is_waited_for(void)
{
	char real[64];

	setup();
	strcpy(real, rig.dir);
	strcat(rig.dir, "/sub");
	open_link(0);
	for (int i = 0; i < 5; i++)
		turn();
	CU_ASSERT_EQUAL(info().state, DPLINK_WAITING);
	CU_ASSERT_EQUAL_FATAL(mkdir(rig.dir, 0750), 0);
	open_fake();
	UNTIL(rig.ups == 1);
	teardown();
	CU_ASSERT_EQUAL(rmdir(real), 0);
}

static void test_dplink_a_path_that_is_too_long_is_refused(void)
{
	char dir[200];
	struct dplink_options o = {.dir = dir, .ops = &ops};

	setup();
	memset(dir, 'd', sizeof(dir));
	dir[93] = 0;
	CU_ASSERT_EQUAL(dplink_open(&rig.l, &rig.loop, &o), -EINVAL);
	rig.l = NULL;
	teardown();
}

static void test_dplink_no_hello_is_not_up(void)
{
	setup();
	open_fake();
	t_ctl_reads(rig.f, false);
	open_link(0);
	for (int i = 0; i < 20; i++)
		turn();
	CU_ASSERT_EQUAL(info().state, DPLINK_CONNECTING);
	CU_ASSERT_EQUAL(ask_resync(0, 0), -ENOTCONN);
	t_ctl_reads(rig.f, true);
	UNTIL(rig.ups == 1);
	teardown();
}

static const struct t_case cases[] = {
	T(test_dplink_a_peer_that_closes_ends_every_request_once),
	T(test_dplink_a_peer_that_does_not_read_is_cut_at_the_bound),
	T(test_dplink_a_held_link_keeps_order_and_sends_nothing),
	T(test_dplink_death_is_proved_and_a_new_life_comes_after),
	T(test_dplink_can_end_the_process_it_watches),
	T(test_dplink_waits_for_a_dataplane_and_finds_it),
	T(test_dplink_a_missing_directory_is_waited_for),
	T(test_dplink_a_path_that_is_too_long_is_refused),
	T(test_dplink_no_hello_is_not_up),
};

static const struct t_suite suites[] = {T_SUITE("dplink_life", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
