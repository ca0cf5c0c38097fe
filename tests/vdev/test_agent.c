/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane program as control sees it: the test is control, over the real private socket, with
 * a port that needs no device. argv: the program, then the folders of the example stages and of
 * this test's own.
 */
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"
#include "tests/vdev/agentrig.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spotlane/errors.h>
#include <spotlane/stats.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_agent_runs_spots_by_order_of_control(void)
{
	struct dp_configured done;
	struct rig r;
	uint8_t state = 0;

	rig_open(&r);
	done = configure(&r, "net_null0", "counter");
	CU_ASSERT_EQUAL_FATAL(done.ok, 1);
	CU_ASSERT_EQUAL(done.lanes, 2);
	identify(&r);
	CU_ASSERT_EQUAL(prepare(&r, "c-1", 11, 1), DP_PREPARED_ACCEPTED);
	CU_ASSERT_EQUAL(call(&r, "c-1", "get", true), SPL_E_UNAVAILABLE); /* not published */
	CU_ASSERT_EQUAL(prepare(&r, "c-1", 11, 1), DP_PREPARED_ACCEPTED); /* again: as before */
	CU_ASSERT_EQUAL(prepare(&r, "c-1", 11, 9), DP_PREPARED_FAILED);	  /* another attempt */
	CU_ASSERT_EQUAL(inventory(&r, "c-1", &state), 1);
	CU_ASSERT_EQUAL(state, DP_OBJECT_STAGING);
	CU_ASSERT_EQUAL(publish(&r, "c-1", 11), SPL_OK);
	CU_ASSERT_EQUAL(call(&r, "c-1", "get", true), SPL_OK);
	CU_ASSERT_EQUAL(call(&r, "c-1", "add", false), SPL_OK);
	CU_ASSERT_EQUAL(call(&r, "c-1", "nothing", true), SPL_E_NOT_FOUND);
	CU_ASSERT_EQUAL(prepare(&r, "c-1", 12, 2), DP_PREPARED_FAILED);
	inventory(&r, "c-1", &state);
	CU_ASSERT_EQUAL(state, DP_OBJECT_READY);
	CU_ASSERT_EQUAL(close_spot(&r, "c-1", 10), DP_CLOSED_MISSING);
	CU_ASSERT_EQUAL(close_spot(&r, "c-1", 11), DP_CLOSED_DONE);
	CU_ASSERT_EQUAL(inventory(&r, "c-1", &state), 0);
	CU_ASSERT_EQUAL(prepare(&r, "c-1", 13, 3), DP_PREPARED_ACCEPTED);
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

static void test_agent_survives_control(void)
{
	struct pack_reader b;
	struct dp_hello m;
	struct rig r;

	rig_open(&r);
	CU_ASSERT_EQUAL_FATAL(configure(&r, "net_null0", "counter").ok, 1);
	identify(&r);
	CU_ASSERT_EQUAL(prepare(&r, "c-1", 11, 1), DP_PREPARED_ACCEPTED);
	CU_ASSERT_EQUAL(publish(&r, "c-1", 11), SPL_OK);
	close(r.sock);
	r.n = r.at = 0;
	r.sock = dial(&r);
	b = expect(&r, DP_HELLO);
	dp_get_hello(&b, &m);
	CU_ASSERT_TRUE(dp_done(&b));
	CU_ASSERT_EQUAL(m.state, DP_STATE_IDENTIFIED);
	CU_ASSERT_EQUAL(m.node_gen, 5);
	CU_ASSERT_EQUAL(m.config_hash, 77);
	CU_ASSERT(m.rid.len == 3 && memcmp(m.rid.p, "n-1", 3) == 0);
	CU_ASSERT_EQUAL(call(&r, "c-1", "get", true), SPL_OK);
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

static void test_agent_refuses_to_start_with_the_reason(void)
{
	static const struct {
		const char *device, *module, *says;
		int exit_code;
	} bad[] = {
		{"net_null0,siz=64", "counter", "p0", 78},
		{"net_nothing0", "counter", "p0", 78},
		{"net_null0", "no-such-stage", "no-such-stage", 78},
	};

	for (size_t i = 0; i < T_COUNT(bad); i++) {
		struct dp_configured done;
		char text[256] = "";
		struct rig r;

		rig_open(&r);
		done = configure(&r, bad[i].device, bad[i].module);
		CU_ASSERT_EQUAL(done.ok, 0);
		memcpy(text, done.text.p, done.text.len);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, bad[i].says));
		CU_ASSERT_EQUAL(rig_close(&r), bad[i].exit_code);
	}
}

static void test_agent_second_dataplane_refuses(void)
{
	int status = 0;
	struct rig r;
	pid_t first;

	rig_open(&r);
	first = r.pid;
	spawn(&r);
	waitpid(r.pid, &status, 0);
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 75);
	r.pid = first;
	CU_ASSERT_EQUAL_FATAL(configure(&r, "net_null0", "counter").ok, 1);
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

static void test_agent_asks_before_it_stops(void)
{
	struct dp_shutdown_req m;
	struct pack_reader b;
	struct rig r;

	rig_open(&r);
	CU_ASSERT_EQUAL_FATAL(configure(&r, "net_null0", "counter").ok, 1);
	identify(&r);
	kill(r.pid, SIGHUP);
	kill(r.pid, SIGTERM);
	b = expect(&r, DP_SHUTDOWN_REQ);
	dp_get_shutdown_req(&b, &m);
	CU_ASSERT_TRUE(dp_done(&b));
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

static void test_agent_statistics_are_read_only(void)
{
	struct spl_stats *s;
	struct rig r;

	rig_open(&r);
	CU_ASSERT_EQUAL_FATAL(configure(&r, "net_null0", "counter").ok, 1);
	CU_ASSERT_FATAL(r.stats_fd >= 0);
	CU_ASSERT_PTR_EQUAL(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r.stats_fd, 0),
			    MAP_FAILED);
	s = mmap(NULL, sizeof(*s), PROT_READ, MAP_SHARED, r.stats_fd, 0);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(s, MAP_FAILED);
	CU_ASSERT_EQUAL(s->magic, SPL_STATS_MAGIC);
	CU_ASSERT_EQUAL(s->epoch, r.epoch);
	CU_ASSERT_EQUAL(s->lanes, 2);
	CU_ASSERT_STRING_EQUAL(s->port[0].name, "p0");
	munmap(s, sizeof(*s));
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

/* The descriptor that came with the packet last read. */
static bool came_with_memfd(const struct rig *r)
{
	return r->batch[r->at - 1].fd >= 0;
}

/* No new descriptor for the program from now on, or as many as before. */
static void limit_descriptors(struct rig *r, struct rlimit *was, bool on)
{
	struct rlimit none = {.rlim_cur = 3, .rlim_max = was->rlim_max};

	CU_ASSERT_EQUAL_FATAL(prlimit(r->pid, RLIMIT_NOFILE, on ? &none : was, NULL), 0);
}

/* Without a descriptor for a large reply there is an error, never a success that is empty. */
static void test_agent_large_reply_without_descriptor(void)
{
	struct dp_prepared done;
	struct rlimit was;
	uint8_t state = 0;
	struct rig r;

	rig_open(&r);
	CU_ASSERT_EQUAL_FATAL(configure(&r, "net_null0", "large").ok, 1);
	identify(&r);
	CU_ASSERT_EQUAL_FATAL(prlimit(r.pid, RLIMIT_NOFILE, NULL, &was), 0);
	done = prepare_of(&r, "large", "x", "l-1", 11, 1);
	CU_ASSERT_EQUAL(done.result, DP_PREPARED_ACCEPTED);
	CU_ASSERT_TRUE(came_with_memfd(&r));
	CU_ASSERT_EQUAL(publish(&r, "l-1", 11), SPL_OK);
	CU_ASSERT_EQUAL(call(&r, "l-1", "big", true), SPL_OK);
	CU_ASSERT_TRUE(came_with_memfd(&r));
	limit_descriptors(&r, &was, true);
	CU_ASSERT_EQUAL(call(&r, "l-1", "big", true), SPL_E_INTERNAL_FAILURE);
	done = prepare_of(&r, "large", "x", "l-2", 12, 2);
	CU_ASSERT_EQUAL(done.result, DP_PREPARED_FAILED);
	CU_ASSERT_EQUAL(done.kind, SPL_E_INTERNAL_FAILURE);
	/* What was made goes again, and the factory runs again for the same attempt. */
	T_UNTIL(inventory(&r, "l-2", &state) == 1, poll(NULL, 0, 1));
	done = prepare_of(&r, "large", "x", "l-2", 12, 2);
	CU_ASSERT_EQUAL(done.result, DP_PREPARED_FAILED);
	CU_ASSERT_EQUAL(done.kind, SPL_E_INTERNAL_FAILURE);
	T_UNTIL(inventory(&r, "l-2", &state) == 1, poll(NULL, 0, 1));
	limit_descriptors(&r, &was, false);
	done = prepare_of(&r, "large", "x", "l-2", 13, 3);
	CU_ASSERT_EQUAL(done.result, DP_PREPARED_ACCEPTED);
	CU_ASSERT_TRUE(came_with_memfd(&r));
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

static void control_again(struct rig *r)
{
	close(r->sock);
	r->n = r->at = 0;
	r->sock = dial(r);
	expect(r, DP_HELLO);
}

/* Control comes again, with a lease of its own, and knows the Entry Spot under another generation
 * each time: what it has begun it goes on with, and what is there it is told of; a healthy node
 * does not end because of it. */
static void test_agent_knows_its_entry_spot(void)
{
	static const char id[] = "n-entry-1";
	struct dp_prepared done;
	uint8_t state = 0;
	struct rig r;

	rig_open(&r);
	CU_ASSERT_EQUAL_FATAL(configure(&r, "net_null0", "counter").ok, 1);
	identify(&r);
	do /* a pass that began before the IDENTITY knows of no lease */
		done = prepare_of(&r, "", "", id, 21, 5);
	while (done.result == DP_PREPARED_FAILED && done.kind == SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(done.result, DP_PREPARED_ACCEPTED);
	control_again(&r);
	CU_ASSERT_EQUAL(prepare_of(&r, "", "", id, 22, 5).result, DP_PREPARED_ACCEPTED);
	CU_ASSERT_EQUAL(inventory(&r, id, &state), 1);
	CU_ASSERT_EQUAL(state, DP_OBJECT_STAGING);
	CU_ASSERT_EQUAL(publish(&r, id, 22), SPL_OK);
	inventory(&r, id, &state);
	CU_ASSERT_EQUAL(state, DP_OBJECT_READY);
	control_again(&r);
	done = prepare_of(&r, "", "", id, 23, 5);
	CU_ASSERT_EQUAL(done.result, DP_PREPARED_FAILED);
	CU_ASSERT_EQUAL(done.kind, SPL_E_ALREADY_EXISTS);
	CU_ASSERT_EQUAL(inventory(&r, id, &state), 1);
	CU_ASSERT_EQUAL(state, DP_OBJECT_READY);
	CU_ASSERT_EQUAL(close_spot(&r, id, 23), DP_CLOSED_DONE);
	CU_ASSERT_EQUAL(inventory(&r, id, &state), 0);
	stop(&r);
	CU_ASSERT_EQUAL(rig_close(&r), 0);
}

static const struct t_case cases[] = {
	T(test_agent_runs_spots_by_order_of_control),
	T(test_agent_survives_control),
	T(test_agent_knows_its_entry_spot, "S-ENTRY-1", "A-LEASE-9"),
	T(test_agent_refuses_to_start_with_the_reason),
	T(test_agent_second_dataplane_refuses),
	T(test_agent_asks_before_it_stops),
	T(test_agent_statistics_are_read_only),
	T(test_agent_large_reply_without_descriptor, "A-LOC-22"),
};
static const struct t_suite suites[] = {T_SUITE("agent", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: %s PROGRAM STAGES OWN_STAGES [test options]\n", argv[0]);
		return 2;
	}
	program = argv[1];
	stage_dir = argv[2];
	own_stage_dir = argv[3];
	argv[3] = argv[0];
	return t_main(argc - 3, argv + 3, suites, T_COUNT(suites));
}
