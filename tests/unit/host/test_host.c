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

static void test_host_statistics_and_configuration_are_shown(void)
{
	struct spl_stats *s;
	json_t *a, *row;

	begin("memory");
	s = t_ctl_stats(rig.f);
	s->lane[0].drop[SPL_DROP_RUNT] = 3;
	s->lane[1].drop[SPL_DROP_RUNT] = 4;
	s->lane[2].drop[SPL_DROP_RUNT] = 5;
	s->lane[1].counter[SPL_C_TURNS] = 1000;
	s->port[0].counter[SPL_P_RX_FRAMES] = 77;
	s->link[2].lanes = 1;
	s->link[2].ip = 0x0a000002;
	s->link[2].udp_port = 4000;
	strcpy(s->link[2].rid, "client-1");
	s->link[2].lifecycle = 9;
	a = rig_call("stats.show", NULL);
	IS(rig_text(a, "view"), "drops");
	row = json_array_get(json_object_get(a, "rows"), SPL_DROP_RUNT);
	IS(rig_text(row, "reason"), "runt");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(row, "lane_0")), 3);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(row, "agent")), 5);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(row, "total")), 12);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "rows")),
			SPL_DROP_COUNT + SPL_FAIL_COUNT);
	json_decref(a);
	a = rig_call("stats.show", json_pack("{s:s}", "view", "lanes"));
	row = json_array_get(json_object_get(a, "rows"), SPL_C_TURNS);
	IS(rig_text(row, "counter"), "turns");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(row, "lane_1")), 1000);
	json_decref(a);
	a = rig_call("stats.show", json_pack("{s:s}", "view", "ports"));
	row = json_array_get(json_object_get(a, "rows"), 0);
	IS(rig_text(row, "mac"), "02:00:00:00:00:01");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(row, "rx_frames")), 77);
	json_decref(a);
	a = rig_call("stats.show", json_pack("{s:s}", "view", "links"));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "rows")), 1);
	row = json_array_get(json_object_get(a, "rows"), 0);
	IS(rig_text(row, "address"), "10.0.0.2:4000");
	IS(rig_text(row, "peer"), "client-1");
	json_decref(a);
	a = rig_call("config.show", NULL);
	CU_ASSERT(json_array_size(json_object_get(a, "options")) > 40);
	json_decref(a);
	a = rig_call("log.set_level", json_pack("{s:s}", "level", "error"));
	IS(rig_text(a, "level"), "error");
	json_decref(a);
	rig_end();
}

static uint64_t int_of(const json_t *row, const char *name)
{
	const json_t *v = json_object_get(row, name);

	CU_ASSERT(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* One row a stable type, whatever there is of Spots; sums over the lanes, but of a maximum. */
static void test_host_stages_are_told_apart(void)
{
	struct spl_stage_stats *one, *two;
	json_t *a, *row;

	begin("memory");
	one = spl_stats_stages(t_ctl_stats(rig.f), 2, t_ctl_stats(rig.f)->stages, 0);
	two = spl_stats_stages(t_ctl_stats(rig.f), 2, t_ctl_stats(rig.f)->stages, 1);
	CU_ASSERT_FATAL(t_ctl_stats(rig.f)->stages >= 2);
	one[0].counter[SPL_S_PENDING] = 10;
	two[0].counter[SPL_S_PENDING] = 4;
	two[0].counter[SPL_S_ACTIVE] = 3;
	one[0].counter[SPL_S_TICK_DELAY_MAX] = 7000;
	two[0].counter[SPL_S_TICK_DELAY_MAX] = 9000;
	one[1].counter[SPL_S_ACTIVE] = 5; /* read a moment later than what is pending */
	a = rig_call("stage.show", NULL);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "stages")), t_ctl_stats(rig.f)->stages);
	row = json_array_get(json_object_get(a, "stages"), 0);
	IS(rig_text(row, "mesh"), "default");
	IS(rig_text(row, "type"), "room");
	IS(rig_text(row, "kind"), "user");
	CU_ASSERT_EQUAL(int_of(row, "queued"), 11);
	CU_ASSERT_EQUAL(int_of(row, "active"), 3);
	CU_ASSERT_EQUAL(int_of(row, "delay_max_us"), 9);
	CU_ASSERT(json_is_false(json_object_get(row, "shutting_down")));
	CU_ASSERT_PTR_NULL(json_object_get(row, "id"));
	CU_ASSERT_EQUAL(int_of(json_array_get(json_object_get(a, "stages"), 1), "queued"), 0);
	json_decref(a);
	rig_end();
}

/* As a lane writes one. */
static void trace_put(uint32_t lane, uint64_t time_ns, const char *id)
{
	struct spl_stats *s = t_ctl_stats(rig.f);
	struct spl_trace_ring *ring = spl_stats_trace(s, s->lanes, s->stages, lane);
	struct spl_trace_record *r = &ring->record[ring->written % SPL_TRACE_ENTRIES];

	*r = (struct spl_trace_record){
		.time_ns = time_ns,
		.name = SPL_TN_FLOW,
		.phase = SPL_TP_COMPLETED,
		.surface = SPL_TS_SPOT,
		.kind = SPL_TK_REQUEST,
		.correlation = UINT64_MAX,
		.stage = 1,
		.flow = {0x0190000000007abc, 0x8000000000000001, SPL_TG_INBOUND}};
	r->id_len = (uint8_t)strlen(id);
	memcpy(r->id, id, r->id_len);
	r->seq = 2 * ring->written + 2;
	ring->written++;
}

static void test_host_the_trace_is_read_and_set(void)
{
	json_t *a, *row, *next;

	begin("memory");
	CU_ASSERT_EQUAL(rig_seen()->trace_level, SPL_TL_ERRORS);
	CU_ASSERT_EQUAL(rig_seen()->trace_share, SPL_TRACE_ALL);
	trace_put(1, 2000000, "second");
	trace_put(0, 1000000, "first");
	trace_put(0, 3000000, "third");
	a = rig_call("trace.show", NULL);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "records")), 3);
	row = json_array_get(json_object_get(a, "records"), 0);
	IS(rig_text(row, "spot_id"), "first");
	IS(rig_text(row, "record"), "spotlane.message_flow");
	IS(rig_text(row, "phase"), "completed");
	IS(rig_text(row, "type"), "room");
	IS(rig_text(row, "time"), "1970-01-01T00:00:00.001000Z");
	IS(rig_text(row, "correlation_id"), "18446744073709551615");
	IS(rig_text(row, "flow_id"), "01900000-0000-7abc-8000-000000000001");
	IS(rig_text(row, "flow_origin"), "inbound");
	CU_ASSERT_PTR_NULL(json_object_get(row, "reason"));
	IS(rig_text(json_array_get(json_object_get(a, "records"), 2), "spot_id"), "third");
	next = json_incref(json_object_get(a, "next"));
	json_decref(a);
	a = rig_call("trace.show", json_pack("{s:i}", "limit", 1)); /* the newest */
	IS(rig_text(json_array_get(json_object_get(a, "records"), 0), "spot_id"), "third");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "records")), 1);
	json_decref(a);
	a = rig_call("trace.show", json_pack("{s:O}", "after", next));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "records")), 0);
	CU_ASSERT_EQUAL(int_of(a, "lost"), 0);
	json_decref(a);
	for (unsigned i = 0; i < SPL_TRACE_ENTRIES + 5; i++)
		trace_put(0, 4000000 + i, "more");
	a = rig_call("trace.show", json_pack("{s:O, s:i}", "after", next, "limit", 2));
	CU_ASSERT_EQUAL(int_of(a, "lost"), 5);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "records")), 2);
	json_decref(a);
	json_decref(next);
	a = rig_call("trace.show", json_pack("{s:s}", "after", "no.such"));
	CU_ASSERT_EQUAL(int_of(a, "lost"), 0);
	json_decref(a);
	a = rig_call("trace.set_level", json_pack("{s:s}", "level", "detailed"));
	IS(rig_text(a, "level"), "detailed");
	json_decref(a);
	a = rig_call("trace.set_sample", json_pack("{s:s}", "rate", "0.25"));
	json_decref(a);
	UNTIL(rig_seen()->trace_share == SPL_TRACE_ALL / 4);
	CU_ASSERT_EQUAL(rig_seen()->trace_level, SPL_TL_DETAILED);
	for (unsigned i = 0; i < 5; i++) {
		static const char *const bad[] = {"1.01", "-0.1", "nan", "0x1", "1e-3"};

		a = rig_call("trace.set_sample", json_pack("{s:s}", "rate", bad[i]));
		IS(rig_kind(a), "InvalidOperation");
		json_decref(a);
	}
	CU_ASSERT_EQUAL(rig_seen()->trace_share, SPL_TRACE_ALL / 4);
	rig_end();
}

/* All keys of a sample's labels are of S-MET-2, and all values are words of ours or names of the
 * configuration. */
static void check_labels(const char *labels)
{
	static const char *const keys[] = {
		"mesh_name", "surface",	  "message_kind",   "operation",  "outcome",	"reason",
		"state",     "spot_kind", "capacity_scope", "scope_kind", "scope_name", "source"};
	char copy[512], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", labels);
	for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		char *value = strchr(p, '=');
		bool known = false;

		CU_ASSERT_PTR_NOT_NULL_FATAL(value);
		*value++ = 0;
		for (size_t i = 0; i < T_COUNT(keys); i++)
			known = known || strcmp(p, keys[i]) == 0;
		CU_ASSERT_TRUE(known);
		CU_ASSERT_EQUAL(strspn(value, "abcdefghijklmnopqrstuvwxyz_\""), strlen(value));
	}
}

static const json_t *metric(const json_t *a, const char *name, const char *label)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(a, "samples"), i, row)
	{
		if (strcmp(rig_text(row, "name"), name) == 0 &&
		    strstr(rig_text(row, "labels"), label))
			return row;
	}
	return NULL;
}

/* The instruments, their units and labels; as many samples with one Spot as with two hundred, and
 * none that names one (T-OB-1, T-SP-30). */
static void test_host_metrics(void)
{
	static const char *const names[] = {
#define SPL_X(sym, name, kind, unit, labels) name,
		SPL_METRICS(SPL_X)
#undef SPL_X
	};
	struct spl_stats *s;
	json_t *a;
	const json_t *row;
	size_t i, n;
	char id[64], *text;

	begin("memory");
	s = t_ctl_stats(rig.f);
	a = rig_call("metrics.show", NULL);
	n = json_array_size(json_object_get(a, "samples"));
	for (i = 0; i < T_COUNT(names); i++) {
		CU_ASSERT_EQUAL(strncmp(names[i], "spotlane.", 9), 0);
		CU_ASSERT_EQUAL(strspn(names[i], "abcdefghijklmnopqrstuvwxyz_."), strlen(names[i]));
		CU_ASSERT_PTR_NOT_NULL(metric(a, names[i], ""));
	}
	json_array_foreach(json_object_get(a, "samples"), i, row)
		check_labels(rig_text(row, "labels"));
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.host.state", "serving"), "value"), 1);
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.host.state", "draining"), "value"), 0);
	json_decref(a);
	for (i = 0; i < 200; i++) {
		snprintf(id, sizeof(id), "tell-tale-%zu", i);
		CU_ASSERT_STRING_EQUAL(rig_get_or_create(id, "room", NULL), "Created");
	}
	s->lane[1].measures.dropped[SPL_DS_SPOT][SPL_DR_NO_HANDLER] = 7;
	s->lane[0].counter[SPL_C_CALLS_OPEN] = 2;
	s->lane[0].measures.request[SPL_RO_FAILED] =
		(struct spl_histogram){.count = 1, .sum_ns = 2000000, .bucket[3] = 1};
	s->credit_max = 1000;
	s->credit_left = 1;
	spl_stats_stages(s, 2, s->stages, 1)[0].counter[SPL_S_PENDING_BYTES] = 30;
	spl_stats_stages(s, 2, s->stages, 0)[1].counter[SPL_S_PENDING_BYTES] = 12;
	spl_stats_stages(s, 2, s->stages, 0)[1].counter[SPL_S_ACTIVE_BYTES] = 2;
	spl_stats_stages(s, 2, s->stages, 1)[0].counter[SPL_S_READY] = 5;
	a = rig_call("metrics.show", NULL);
	text = json_dumps(a, 0);
	CU_ASSERT_PTR_NULL(strstr(text, "tell"));
	free(text);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(a, "samples")), n);
	row = metric(a, "spotlane.mesh_node.messages.dropped",
		     "surface=\"spot\",message_kind=\"send\",reason=\"no_handler\"");
	CU_ASSERT_EQUAL(int_of(row, "value"), 7);
	IS(rig_text(row, "unit"), "{message}");
	IS(rig_text(row, "kind"), "counter");
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.mesh_node.requests.inflight", ""), "value"), 2);
	row = metric(a, "spotlane.mesh_node.request.duration", "failed");
	CU_ASSERT_DOUBLE_EQUAL(json_real_value(json_object_get(row, "sum")), 0.002, 1e-9);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig_text(row, "buckets"), "0.001:0 0.005:1 "));
	row = metric(a, "spotlane.host.inbound.pending_payload", "queued");
	CU_ASSERT_EQUAL(int_of(row, "value"), 40);
	IS(rig_text(row, "unit"), "By");
	row = metric(a, "spotlane.host.inbound.pending_payload", "active");
	CU_ASSERT_EQUAL(int_of(row, "value"), 2);
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.host.inbound.receive_paused", ""), "value"), 0);
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.spot.count", "user"), "value"), 5);
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.object.capacity.active", "spot"), "value"), 200);
	json_decref(a);
	s->credit_left = 0;
	a = rig_call("metrics.show", NULL);
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.host.inbound.receive_paused", ""), "value"), 1);
	json_decref(a);
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
	T(test_host_statistics_and_configuration_are_shown),
	T(test_host_metrics, "S-MET-1", "S-MET-2", "S-MET-3", "S-MET-4"),
	T(test_host_the_trace_is_read_and_set, "S-TRACE-3"),
	T(test_host_stages_are_told_apart, "S-STAGE-10", "S-OBS-5"),
};

static const struct t_suite suites[] = {T_SUITE("host", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
