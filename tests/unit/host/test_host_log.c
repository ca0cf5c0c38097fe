/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of control over the life of a node: changes by their identifiers, and nothing of what a
 * log must not have (S-OBS-6).
 */
#include "common/log.h"
#include "tests/unit/host/rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int log_file;
static char text[1 << 20];

static void begin(const char *backend)
{
	log_file = memfd_create("log", 0);
	CU_ASSERT_FATAL(log_file >= 0);
	rig_begin(NULL);
	log_open(log_file, LOG_LEVEL_DEBUG); /* all there is */
	rig_control(backend);
	rig_fake();
	rig_serving();
}

static void end(void)
{
	ssize_t n;

	rig_end();
	log_open(STDERR_FILENO, LOG_LEVEL_ERROR);
	n = pread(log_file, text, sizeof(text) - 1, 0);
	CU_ASSERT_FATAL(n > 0);
	text[n] = 0;
	close(log_file);
}

static void has(const char *part)
{
	if (!strstr(text, part))
		printf("no \"%s\" in the log:\n%s", part, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
}

static void has_not(const char *part)
{
	if (strstr(text, part))
		printf("\"%s\" in the log:\n%s", part, text);
	CU_ASSERT_PTR_NULL(strstr(text, part));
}

static void has_no_number(uint64_t n)
{
	char decimal[32], hex[32];

	CU_ASSERT_FATAL(n > UINT32_MAX); /* or it could be found by chance */
	snprintf(decimal, sizeof(decimal), "%" PRIu64, n);
	snprintf(hex, sizeof(hex), "%" PRIx64, n);
	has_not(decimal);
	has_not(hex);
}

/* Changes of the node and the store. */
static void test_host_changes_are_in_the_log(void)
{
	begin("memory");
	__atomic_store_n(&rig.store_fails, true, __ATOMIC_RELEASE);
	CU_ASSERT_STRING_EQUAL(rig_find("telltale"), "Unavailable");
	__atomic_store_n(&rig.store_fails, false, __ATOMIC_RELEASE);
	CU_ASSERT_STRING_EQUAL(rig_find("telltale"), "none");
	json_decref(rig_call("node.shutdown", NULL));
	UNTIL(rig.finished);
	end();
	has("info host: spotlane.runtime.mesh_node.state_changed mesh=default state=Serving "
	    "previous=Preparing\n");
	has("spotlane.runtime.mesh_node.state_changed mesh=default state=Draining");
	has("warn host: spotlane.runtime.location.store_changed state=failing\n");
	has("spotlane.runtime.location.store_changed state=available\n");
	has("spotlane.runtime.host.termination_changed result=stopped\n");
	has_not("telltale");
}

static void call(const char *method, const char *a, const char *va, const char *b, const char *vb,
		 const char *payload)
{
	json_decref(rig_call(method,
			     json_pack("{s:s, s:s, s:s}", a, va, b, vb, payload, "confession")));
}

/* Everything is done to a Spot that can be, well and badly. */
static void test_host_nobody_is_in_the_log(void)
{
	uint64_t node_gen, gen, states;
	json_t *a, *ref;

	begin("sqlite");
	node_gen = rig_seen()->node_gen;
	CU_ASSERT_STRING_EQUAL(rig_get_or_create("telltale-1", "room", &gen), "Created");
	CU_ASSERT_STRING_EQUAL(rig_get_or_create("telltale-2", "reject", NULL), "Rejected");
	CU_ASSERT_STRING_EQUAL(rig_get_or_create("telltale-3", "fail", NULL), "InternalFailure");
	rig_get_or_create("telltale-1", "no-such-type", NULL);
	call("spot.get_or_create", "id", "telltale-4", "type", "room", "request");
	call("spot.send", "id", "telltale-1", "packet", "tell", "payload");
	call("spot.request", "id", "telltale-1", "packet", "refuse", "payload");
	call("spot.request", "id", "telltale-9", "packet", "say", "payload");
	a = rig_call("spot.find", json_pack("{s:s}", "id", "telltale-1"));
	ref = json_incref(json_object_get(a, "ref"));
	json_decref(a);
	rig_control_dies(); /* and comes back to a dataplane with one Spot too many */
	UNTIL(!t_ctl_connected(rig.f));
	states = rig_seen()->host_states;
	t_ctl_plant(rig.f, "telltale-5", gen + 1000, DP_OBJECT_READY);
	rig_control("sqlite");
	UNTIL(rig_seen()->objects == 2 && rig_seen()->host_states > states);
	a = rig_call("spot.close", json_pack("{s:o}", "ref", ref));
	CU_ASSERT_TRUE(json_is_true(json_object_get(a, "closed")));
	json_decref(a);
	json_decref(rig_call("node.shutdown", NULL));
	UNTIL(rig.finished);
	end();
	has("spotlane.runtime.mesh_node.state_changed");
	has_not("telltale");
	has_not("confession");
	has_no_number(node_gen);
	has_not("lease_gen");
}

static const struct t_case cases[] = {
	T(test_host_changes_are_in_the_log, "S-OBS-6"),
	T(test_host_nobody_is_in_the_log, "S-OBS-6"),
};

static const struct t_suite suites[] = {T_SUITE("log", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, 1);
}
