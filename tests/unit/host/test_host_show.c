/* SPDX-License-Identifier: BSD-3-Clause */
/* What control shows: counters, totals by stable type, trace, metrics, status. Lanes are played by
 * the test, which writes the statistics segment in their place.
 */
#include "tests/unit/host/rig.h"

#include <spotlane/metrics.h>
#include <stdio.h>
#include <stdlib.h>

#define IS(a, b) CU_ASSERT_STRING_EQUAL(a, b)

static void begin(const char *backend)
{
	rig_begin(NULL);
	rig_control(backend);
	rig_fake();
	rig_serving();
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
		"mesh_name",  "surface", "message_kind", "operation",	      "outcome",
		"reason",     "state",	 "spot_kind",	 "capacity_scope",    "scope_kind",
		"scope_name", "source",	 "stable_type",	 "instance_spot_type"};
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

static void value_is(const json_t *a, const char *name, const char *label, uint64_t value)
{
	const json_t *row = metric(a, name, label);

	CU_ASSERT_PTR_NOT_NULL_FATAL(row);
	CU_ASSERT_EQUAL(int_of(row, "value"), value);
}

/* What lanes would have written. */
static void play_lanes(struct spl_stats *s)
{
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
	spl_stats_stages(s, 2, s->stages, 0)[4].counter[SPL_S_STARTING] = 2;
	spl_stats_stages(s, 2, s->stages, 1)[4].counter[SPL_S_STARTING] = 1;
	spl_stats_stages(s, 2, s->stages, 1)[4].counter[SPL_S_STARTING_BYTES] = 5;
	s->lane[0].counter[SPL_C_REPLIES_WAITING] = 3;
	s->lane[1].counter[SPL_C_REPLIES_WAITING] = 4;
	s->lane[0].counter[SPL_C_REPLIES_MAX] = s->lane[1].counter[SPL_C_REPLIES_MAX] = 100;
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
	play_lanes(s);
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
	CU_ASSERT_EQUAL(int_of(row, "value"), 45);
	IS(rig_text(row, "unit"), "By");
	value_is(a, "spotlane.host.completion.pending_sends", "", 7);
	value_is(a, "spotlane.host.completion.send_limit", "", 200);
	value_is(a, "spotlane.instance_spot.pending.messages", "instance_spot_type=\"twin\"", 3);
	value_is(a, "spotlane.instance_spot.pending.bytes", "instance_spot_type=\"twin\"", 5);
	value_is(a, "spotlane.spot.type.capacity.active", "\"user\",stable_type=\"room\"", 200);
	value_is(a, "spotlane.spot.type.capacity.reserved", "stable_type=\"room\"", 0);
	value_is(a, "spotlane.spot.type.capacity.active", "\"instance\",stable_type=\"twin\"", 0);
	value_is(a, "spotlane.object.activation.active", "", 0);
	value_is(a, "spotlane.object.activation.limit", "", rig.cfg->limits.pending_creates);
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

/* Observers wait for a change and get the newest status whole; what they missed is counted. */
static void test_host_status_is_observed(void)
{
	struct spl_stage_stats *row;
	json_int_t first;
	json_t *a;
	int one;

	begin("memory");
	t_ctl_stats(rig.f)->credit_max = 500;
	row = spl_stats_stages(t_ctl_stats(rig.f), 2, t_ctl_stats(rig.f)->stages, 0);
	row->counter[SPL_S_PENDING_BYTES] = 30;
	row->counter[SPL_S_ACTIVE_BYTES] = 12;
	t_ctl_stats(rig.f)->lane[1].counter[SPL_C_REPLIES_WAITING] = 3;
	t_ctl_stats(rig.f)->lane[1].counter[SPL_C_REPLIES_MAX] = 40;
	a = rig_call("status.show", NULL);
	IS(rig_text(a, "state"), "Serving");
	CU_ASSERT_TRUE(json_is_true(json_object_get(a, "ready")));
	CU_ASSERT_TRUE(json_is_true(json_object_get(a, "accepting_work")));
	CU_ASSERT_EQUAL(int_of(a, "inbound_pending"),
			int_of(a, "inbound_queued") + int_of(a, "inbound_active"));
	CU_ASSERT_EQUAL(int_of(a, "inbound_active"), 12);
	CU_ASSERT_EQUAL(int_of(a, "inbound_hwm"), 500);
	CU_ASSERT_EQUAL(int_of(a, "pending_sends"), 3);
	CU_ASSERT_EQUAL(int_of(a, "send_limit"), 40);
	IS(rig_text(a, "relocation_result"), "none");
	CU_ASSERT_PTR_NULL(json_object_get(a, "shutdown_result"));
	CU_ASSERT_PTR_NULL(json_object_get(a, "deadline_ms"));
	first = (json_int_t)int_of(a, "sequence");
	json_decref(a);
	a = rig_call("status.show", json_pack("{s:I, s:i}", "after", first, "wait_ms", 0));
	CU_ASSERT_EQUAL(int_of(a, "sequence"), (uint64_t)first);
	json_decref(a);
	one = rig_send("status.show", json_pack("{s:I}", "after", first));
	for (int i = 0; i < 20; i++)
		rig_step();
	CU_ASSERT_PTR_NULL(rig_receive(one));
	t_ctl_disconnect(rig.f);
	UNTIL((a = rig_receive(one)) != NULL);
	CU_ASSERT_EQUAL(int_of(a, "sequence"), (uint64_t)first + 1);
	IS(rig_text(a, "dataplane"), "down");
	CU_ASSERT_EQUAL(int_of(a, "coalesced"), 0);
	json_decref(a);
	do { /* the link comes back */
		a = rig_call("status.show",
			     json_pack("{s:I, s:i}", "after", first + 1, "wait_ms", 100));
		one = strcmp(rig_text(a, "dataplane"), "up") == 0;
		json_decref(a);
	} while (!one);
	a = rig_call("status.show", json_pack("{s:I}", "after", first));
	CU_ASSERT(int_of(a, "sequence") > (uint64_t)first + 1);
	CU_ASSERT_EQUAL(int_of(a, "coalesced"), int_of(a, "sequence") - (uint64_t)first - 1);
	json_decref(a);
	rig_end();
}

/* The end of the node is a status that whoever comes late still gets, with its result. */
static void test_host_the_end_is_a_status(void)
{
	json_int_t first;
	json_t *a;

	begin("memory");
	a = rig_call("status.show", NULL);
	first = (json_int_t)int_of(a, "sequence");
	json_decref(a);
	json_decref(rig_call("node.shutdown", NULL));
	a = rig_call("status.show", json_pack("{s:I}", "after", first));
	IS(rig_text(a, "state"), "Draining");
	CU_ASSERT(int_of(a, "deadline_ms") > 0);
	CU_ASSERT_TRUE(json_is_false(json_object_get(a, "accepting_work")));
	json_decref(a);
	UNTIL(rig.finished);
	a = rig_call("status.show", json_pack("{s:I}", "after", first));
	IS(rig_text(a, "state"), "Stopped");
	IS(rig_text(a, "shutdown_result"), "stopped");
	CU_ASSERT(int_of(a, "coalesced") > 0);
	CU_ASSERT_EQUAL(int_of(a, "discarded_terminal"), 0);
	json_decref(a);
	a = rig_call("metrics.show", NULL);
	CU_ASSERT_EQUAL(int_of(metric(a, "spotlane.host.shutdown.duration", "\"stopped"), "value"),
			1);
	json_decref(a);
	rig_end();
}

static const struct t_case cases[] = {
	T(test_host_statistics_and_configuration_are_shown),
	T(test_host_status_is_observed, "S-OBS-1", "S-OBS-2", "S-OBS-3"),
	T(test_host_metrics, "S-MET-1", "S-MET-2", "S-MET-3", "S-MET-5"),
	T(test_host_the_trace_is_read_and_set, "S-TRACE-3"),
	T(test_host_stages_are_told_apart, "S-STAGE-10", "S-OBS-5"),
	T(test_host_the_end_is_a_status, "S-OBS-2", "S-OBS-3"),
};

static const struct t_suite suites[] = {T_SUITE("show", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, 1);
}
