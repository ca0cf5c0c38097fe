/* SPDX-License-Identifier: BSD-3-Clause */
/* The node over its management socket, with a fake dataplane: start, operations, breaks of the
 * private socket, a control that is restarted, a store that fails for a while.
 */
#include "tests/unit/host/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IS(a, b) CU_ASSERT_STRING_EQUAL(a, b)

static void begin(const char *backend)
{
	rig_begin(NULL);
	rig_control(backend);
	rig_fake();
	rig_serving();
}

static void test_host_a_dataplane_is_configured_identified_and_served(void)
{
	json_t *a;

	rig_begin(NULL);
	rig_control("memory");
	a = rig_call("node.show", NULL);
	IS(rig_text(a, "dataplane"), "down");
	IS(rig_text(a, "lease"), "none");
	json_decref(a);
	IS(rig_get_or_create("early", "room", NULL), "Unavailable");
	rig_fake();
	rig_serving();
	CU_ASSERT_EQUAL(rig_seen()->configs, 1);
	CU_ASSERT_EQUAL(rig_seen()->identities, 1);
	CU_ASSERT(rig_seen()->lease_deadline > rig.now);
	a = rig_call("node.show", NULL);
	IS(rig_text(a, "state"), "Serving");
	IS(rig_text(a, "dataplane"), "up");
	IS(rig_text(a, "lease"), "held");
	IS(rig_text(a, "node"), rig_seen()->rid);
	IS(rig_text(a, "store"), "memory");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(a, "lanes")), 2);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(a, "dataplane_pid")), getpid());
	json_decref(a);
	CU_ASSERT_EQUAL(rig_seen()->unknown, 0);
	rig_end();
}

static void test_host_a_dataplane_that_refuses_its_configuration_is_reported(void)
{
	const struct t_ctl_options o = {.dir = rig.dir, .refuse = "port p0: no such device"};
	json_t *a;

	rig_begin(NULL);
	rig_control("memory");
	CU_ASSERT_EQUAL_FATAL(t_ctl_open(&rig.f, &o), 0);
	UNTIL(rig_seen()->configs == 1);
	a = rig_call("node.show", NULL);
	IS(rig_text(a, "state"), "Preparing");
	json_decref(a);
	CU_ASSERT_EQUAL(rig_seen()->identities, 0);
	rig_end();
}

static void test_host_create_find_list_close(void)
{
	uint64_t gen[3];
	json_t *a, *ref;

	begin("memory");
	IS(rig_get_or_create("room-1", "room", &gen[0]), "Created");
	IS(rig_get_or_create("room-1", "room", &gen[1]), "Existing");
	CU_ASSERT(gen[0] > 0 && gen[0] == gen[1]);
	IS(rig_get_or_create("room-1", "hold", NULL), "TypeMismatch");
	IS(rig_get_or_create("room-2", "nothing", NULL), "CapacityExceeded");
	IS(rig_find("room-1"), "found");
	IS(rig_find("room-2"), "none");
	a = rig_call("spot.list", json_pack("{s:s}", "kind", "user"));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "spots")), 1);
	IS(rig_text(json_array_get(json_object_get(a, "spots"), 0), "state"), "Ready");
	json_decref(a);
	a = rig_call("spot.find", json_pack("{s:s}", "id", "room-1"));
	ref = json_incref(json_object_get(a, "ref"));
	json_decref(a);
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	a = rig_call("spot.close", json_pack("{s:O}", "ref", ref));
	CU_ASSERT(json_is_true(json_object_get(a, "closed")));
	json_decref(a);
	a = rig_call("spot.close", json_pack("{s:o}", "ref", ref));
	CU_ASSERT(json_is_false(json_object_get(a, "closed")));
	json_decref(a);
	CU_ASSERT_EQUAL(rig_seen()->on_closing[0], 1);
	CU_ASSERT_EQUAL(rig_seen()->objects, 0);
	IS(rig_find("room-1"), "none");
	IS(rig_get_or_create("room-1", "room", &gen[2]), "Created");
	CU_ASSERT(gen[2] > gen[0]);
	rig_end();
}

static void test_host_rejected_and_failed_creations_leave_nothing(void)
{
	json_t *a;

	begin("memory");
	a = rig_call("spot.get_or_create",
		     json_pack("{s:s,s:s,s:s}", "id", "r", "type", "reject", "request", "no room"));
	IS(rig_text(a, "state"), "Rejected");
	IS(rig_text(a, "reply"), "no room");
	json_decref(a);
	IS(rig_get_or_create("f", "fail", NULL), "InternalFailure");
	IS(rig_find("r"), "none");
	IS(rig_find("f"), "none");
	UNTIL(rig_seen()->objects == 0);
	rig_end();
}

static void test_host_long_requests_and_replies_travel_as_memfds(void)
{
	size_t n = 1u << 20;
	char *text = malloc(n + 1);
	const json_t *reply;
	json_t *a;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, 'x', n - 2048);
	text[n - 2048] = 0;
	begin("memory");
	a = rig_call("spot.get_or_create",
		     json_pack("{s:s,s:s,s:s}", "id", "big", "type", "room", "request", text));
	IS(rig_text(a, "state"), "Created");
	reply = json_object_get(a, "reply");
	CU_ASSERT_EQUAL(json_string_length(reply), n - 2048);
	json_decref(a);
	memset(text, 'y', n);
	text[n] = 0;
	a = rig_call("spot.request",
		     json_pack("{s:s,s:s,s:s}", "id", "big", "packet", "echo", "payload", text));
	CU_ASSERT_EQUAL(json_string_length(json_object_get(a, "reply")), n);
	json_decref(a);
	free(text);
	rig_end();
}

static void test_host_calls_to_spots(void)
{
	json_t *a;

	begin("memory");
	IS(rig_get_or_create("s", "room", NULL), "Created");
	a = rig_call("spot.request",
		     json_pack("{s:s,s:s,s:s}", "id", "s", "packet", "echo", "payload", "hello"));
	IS(rig_text(a, "reply"), "hello");
	json_decref(a);
	a = rig_call("spot.send", json_pack("{s:s,s:s}", "id", "s", "packet", "tell"));
	CU_ASSERT(json_is_true(json_object_get(a, "accepted")));
	json_decref(a);
	a = rig_call("spot.request", json_pack("{s:s,s:s}", "id", "nobody", "packet", "echo"));
	IS(rig_kind(a), "NotFound");
	json_decref(a);
	a = rig_call("spot.request", json_pack("{s:s,s:s}", "id", "s", "packet", "refuse"));
	IS(rig_kind(a), "CapacityExceeded");
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_text(a, "message"), "no room for it"));
	json_decref(a);
	rig_end();
}

static void test_host_a_broken_link_repeats_what_was_under_way(void)
{
	json_t *a = NULL;
	int id;

	begin("memory");
	id = rig_send("spot.get_or_create", json_pack("{s:s,s:s}", "id", "h", "type", "hold"));
	UNTIL(rig_seen()->prepares == 1);
	t_ctl_disconnect(rig.f);
	UNTIL(rig_seen()->connections == 2 && rig_seen()->prepares == 2);
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	CU_ASSERT_PTR_NULL(rig_receive(id));
	t_ctl_release(rig.f);
	UNTIL((a = rig_receive(id)) != NULL);
	IS(rig_text(a, "state"), "Created");
	json_decref(a);
	CU_ASSERT_EQUAL(rig_seen()->ready, 1);
	rig_end();
}

static void test_host_a_restarted_control_takes_the_lifecycle_over(void)
{
	uint64_t deadline, gen, lease_gen, states;
	char id[32], rid[256];

	begin("sqlite");
	for (int i = 0; i < 40; i++) {
		snprintf(id, sizeof(id), "room-%d", i);
		IS(rig_get_or_create(id, "room", &gen), "Created");
	}
	strcpy(rid, rig_seen()->rid);
	deadline = rig_seen()->lease_deadline;
	lease_gen = rig_seen()->lease_gen;
	rig_control_dies();
	UNTIL(!t_ctl_connected(rig.f));
	/* A Spot that a lost answer left behind, and control comes back before the deadline. */
	t_ctl_plant(rig.f, "orphan", gen + 1000, DP_OBJECT_READY);
	rig.now += 2 * CLOCK_NS_PER_S;
	CU_ASSERT_FATAL(rig.now < deadline);
	states = rig_seen()->host_states;
	rig_control("sqlite");
	UNTIL(rig_seen()->objects == 40 && rig_seen()->lease_deadline > deadline &&
	      rig_seen()->host_states > states);
	CU_ASSERT_PTR_NULL(t_ctl_find(rig.f, "orphan"));
	CU_ASSERT_EQUAL(rig_seen()->ready, 40);
	CU_ASSERT_EQUAL(rig_seen()->lease_gen, lease_gen);
	CU_ASSERT_EQUAL(rig_seen()->losts, 0);
	CU_ASSERT_EQUAL(rig_seen()->on_closing[0] + rig_seen()->on_closing[1], 0);
	CU_ASSERT_EQUAL(rig_seen()->factories, 40);
	IS(rig_seen()->rid, rid);
	IS(rig_find("room-7"), "found");
	IS(rig_get_or_create("room-7", "room", NULL), "Existing");
	IS(rig_get_or_create("new", "room", NULL), "Created");
	rig_end();
}

static void test_host_a_creation_survives_the_death_of_control_or_is_cancelled(void)
{
	uint64_t gen;

	begin("sqlite");
	rig_send("spot.get_or_create", json_pack("{s:s,s:s}", "id", "h", "type", "hold"));
	UNTIL(rig_seen()->prepares == 1);
	rig_control_dies();
	UNTIL(!t_ctl_connected(rig.f));
	rig_control("sqlite");
	UNTIL(rig_seen()->connections == 2 && rig_seen()->host_states >= 2);
	t_ctl_release(rig.f);
	/* Whatever was decided, row and dataplane agree in the end. */
	UNTIL(strcmp(rig_get_or_create("h", "room", &gen), "TypeMismatch") == 0 ||
	      rig_seen()->ready == 1);
	CU_ASSERT_EQUAL(rig_seen()->objects, 1);
	rig_end();
}

static void test_host_a_store_that_fails_fences_and_recovers(void)
{
	uint64_t deadline;
	json_t *a;

	begin("memory");
	IS(rig_get_or_create("s", "room", NULL), "Created");
	deadline = rig_seen()->lease_deadline;
	rig_pass(6000);
	UNTIL(rig_seen()->lease_deadline > deadline);
	deadline = rig_seen()->lease_deadline;
	__atomic_store_n(&rig.store_fails, true, __ATOMIC_RELEASE);
	rig_pass((deadline - rig.now) / CLOCK_NS_PER_MS + 100);
	CU_ASSERT_EQUAL(rig_seen()->lease_deadline, deadline);
	a = rig_call("spot.request", json_pack("{s:s,s:s}", "id", "s", "packet", "echo"));
	IS(rig_kind(a), "Unavailable");
	json_decref(a);
	IS(rig_get_or_create("t", "room", NULL), "Unavailable");
	__atomic_store_n(&rig.store_fails, false, __ATOMIC_RELEASE);
	T_UNTIL(strcmp(rig_get_or_create("t", "room", NULL), "Created") == 0, rig_pass(200));
	UNTIL(rig_seen()->lease_deadline > rig.now);
	rig_end();
}

static const struct t_case cases[] = {
	T(test_host_a_dataplane_is_configured_identified_and_served),
	T(test_host_a_dataplane_that_refuses_its_configuration_is_reported),
	T(test_host_create_find_list_close),
	T(test_host_rejected_and_failed_creations_leave_nothing),
	T(test_host_long_requests_and_replies_travel_as_memfds),
	T(test_host_calls_to_spots),
	T(test_host_a_broken_link_repeats_what_was_under_way),
	T(test_host_a_restarted_control_takes_the_lifecycle_over, "A-LEASE-12"),
	T(test_host_a_creation_survives_the_death_of_control_or_is_cancelled, "A-FAIL-4"),
	T(test_host_a_store_that_fails_fences_and_recovers, "A-LEASE-4", "A-LEASE-9", "S-LEASE-2"),
};

static const struct t_suite suites[] = {T_SUITE("host", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
