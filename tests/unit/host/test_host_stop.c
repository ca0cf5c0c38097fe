/* SPDX-License-Identifier: BSD-3-Clause */
/* The planned stop: every Spot is closed once, every row and the host are released, both processes
 * end, and the next start finds the ids free; by force when the deadline passes.
 */
#include "tests/unit/host/rig.h"

#include <spotlane/stage.h>
#include <stdio.h>
#include <sys/wait.h>

#define IS(a, b) CU_ASSERT_STRING_EQUAL(a, b)

static const struct t_ctl_options plain = {.lanes = 2};
static uint64_t gen;

static void begin(const struct t_ctl_options *o, unsigned spots)
{
	char id[32];

	rig_begin(NULL);
	rig_control("sqlite");
	rig_child(o);
	rig_serving();
	for (unsigned i = 0; i < spots; i++) {
		snprintf(id, sizeof(id), "room-%u", i);
		IS(rig_get_or_create(id, "room", &gen), "Created");
	}
}

/* The child has ended by itself. */
static void child_ended(int status)
{
	int st = -1;

	UNTIL(waitpid(rig.pid, &st, WNOHANG) == rig.pid);
	rig.pid = 0;
	CU_ASSERT_EQUAL(st, status);
}

static void ids_are_free(void)
{
	uint64_t again;

	rig_control_dies();
	rig.pid = 0;
	rig_control("sqlite");
	rig_child(&plain);
	rig_serving();
	IS(rig_find("room-1"), "none");
	IS(rig_get_or_create("room-1", "room", &again), "Created");
	CU_ASSERT(again > gen);
}

static void test_stop_closes_each_spot_once_and_frees_everything(void)
{
	json_t *a;

	begin(&plain, 50);
	a = rig_call("node.shutdown", NULL);
	IS(rig_text(a, "state"), "Draining");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(a, "deadline_ms")), 5000);
	json_decref(a);
	UNTIL(rig.finished);
	CU_ASSERT_EQUAL(rig.exit_code, HOST_EXIT_OK);
	CU_ASSERT_EQUAL(rig_seen()->on_closing[SPL_CLOSING_HOST_SHUTDOWN], 50);
	CU_ASSERT_EQUAL(rig_seen()->entry_closings, 1);
	CU_ASSERT_EQUAL(rig_seen()->objects, 0);
	CU_ASSERT_EQUAL(rig_seen()->exits, 1);
	CU_ASSERT_EQUAL(rig_seen()->exit_forced, 0);
	child_ended(0);
	ids_are_free();
	rig_end();
}

static void test_stop_refuses_new_work_and_answers_while_it_runs(void)
{
	struct t_ctl_options o = plain;
	json_t *a;

	o.hold_closes = true;
	begin(&o, 3);
	a = rig_call("node.show", NULL);
	CU_ASSERT(json_is_true(json_object_get(a, "ready")));
	json_decref(a);
	host_shutdown(rig.h, 5 * CLOCK_NS_PER_S, "test");
	UNTIL(rig_seen()->closes == 3);
	CU_ASSERT_EQUAL(rig_seen()->host_state, DP_HOST_DRAINING);
	IS(rig_get_or_create("new", "room", NULL), "ShuttingDown");
	a = rig_call("node.show", NULL);
	IS(rig_text(a, "state"), "Draining");
	CU_ASSERT_FALSE(json_is_true(json_object_get(a, "ready")));
	json_decref(a);
	/* A second stop changes nothing. */
	a = rig_call("node.shutdown", json_pack("{s:i}", "deadline_ms", 1));
	json_decref(a);
	CU_ASSERT_FALSE(rig.finished);
	rig_end();
}

static void test_stop_past_its_deadline_is_forced_and_still_frees(void)
{
	struct t_ctl_options o = plain;

	o.hold_closes = true;
	begin(&o, 5);
	host_shutdown(rig.h, 2 * CLOCK_NS_PER_S, "test");
	UNTIL(rig_seen()->closes == 5);
	rig_pass(3500); /* a second after it the dataplane is ended */
	UNTIL(rig.finished);
	CU_ASSERT_EQUAL(rig_seen()->exits, 1);
	CU_ASSERT_EQUAL(rig_seen()->exit_forced, 1);
	child_ended(0);
	ids_are_free();
	rig_end();
}

static void test_stop_wanted_by_the_dataplane(void)
{
	const struct dp_shutdown_req m = {.cause = dp_text("signal")};

	rig_begin(NULL);
	rig_control("memory");
	rig_fake();
	rig_serving();
	IS(rig_get_or_create("s", "room", NULL), "Created");
	dp_put_shutdown_req(t_ctl_begin(rig.f, DP_SHUTDOWN_REQ, DP_F_EVT, 0), &m);
	t_ctl_send(rig.f, -1);
	UNTIL(rig_seen()->exits == 1);
	CU_ASSERT_EQUAL(rig_seen()->on_closing[SPL_CLOSING_HOST_SHUTDOWN], 1);
	rig_end();
}

/* It is still preparing: there is nothing to wait for. */
static void test_stop_without_a_dataplane(void)
{
	json_t *a;

	rig_begin(NULL);
	rig_control("memory");
	a = rig_call("node.show", NULL);
	IS(rig_text(a, "state"), "Preparing");
	json_decref(a);
	host_shutdown(rig.h, 5 * CLOCK_NS_PER_S, "test");
	UNTIL(rig.finished);
	CU_ASSERT_EQUAL(rig.exit_code, HOST_EXIT_OK);
	rig_end();
}

static void test_stop_of_a_dead_dataplane_keeps_its_rows(void)
{
	begin(&plain, 2);
	rig_child_dies();
	UNTIL(strcmp(rig_find("room-1"), "Unavailable") == 0);
	host_shutdown(rig.h, 5 * CLOCK_NS_PER_S, "test");
	UNTIL(rig.finished);
	rig_control_dies();
	rig_control("sqlite");
	IS(rig_find("room-1"), "Unavailable");
	rig_end();
}

static void test_stop_ends_when_the_dataplane_dies_in_it(void)
{
	struct t_ctl_options o = plain;

	o.hold_closes = true;
	begin(&o, 3);
	host_shutdown(rig.h, 5 * CLOCK_NS_PER_S, "test");
	UNTIL(rig_seen()->closes == 3);
	rig_child_dies();
	UNTIL(rig.finished);
	CU_ASSERT_EQUAL(rig.exit_code, HOST_EXIT_OK);
	/* Whatever became of the rows, no id is lost: it is free, or an operator can free it. */
	rig_control_dies();
	rig_control("sqlite");
	rig_child(&plain);
	rig_serving();
	if (strcmp(rig_find("room-1"), "none") != 0) {
		json_t *a = rig_call("spot.reclaim", json_pack("{s:s}", "id", "room-1"));

		CU_ASSERT_EQUAL(json_integer_value(json_object_get(a, "reclaimed")), 1);
		json_decref(a);
	}
	IS(rig_get_or_create("room-1", "room", NULL), "Created");
	rig_end();
}

static const struct t_case cases[] = {
	T(test_stop_closes_each_spot_once_and_frees_everything, "S-DRAIN-3", "A-DRAIN-4",
	  "S-ENTRY-2"),
	T(test_stop_refuses_new_work_and_answers_while_it_runs, "A-DRAIN-6", "A-DRAIN-11",
	  "A-DRAIN-2", "S-DRAIN-1"),
	T(test_stop_past_its_deadline_is_forced_and_still_frees, "A-DRAIN-3", "S-DRAIN-4"),
	T(test_stop_ends_when_the_dataplane_dies_in_it, "A-FAIL-10"),
	T(test_stop_wanted_by_the_dataplane),
	T(test_stop_without_a_dataplane, "A-DRAIN-2"),
	T(test_stop_of_a_dead_dataplane_keeps_its_rows, "A-FAIL-3"),
};

static const struct t_suite suites[] = {T_SUITE("host_stop", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
