/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages of clients (MESH_OP): bodies in, bodies out, and many at once. */
#include "common/wire_msg.h"
#include "tests/unit/host/rig.h"

#include <stdio.h>
#include <unistd.h>

#define REPLIES 4096

static struct {
	uint64_t corr;
	uint8_t kind;
	size_t n;
	uint8_t body[1024];
} replies[REPLIES];
static unsigned n_replies;

static void on_reply(void *ctx, uint64_t corr, const struct dp_mesh_op_done *m)
{
	CU_ASSERT_FATAL(n_replies < REPLIES);
	replies[n_replies].corr = corr;
	replies[n_replies].kind = m->kind;
	replies[n_replies].n = m->body.len;
	if (m->body.len && m->body.len <= sizeof(replies[0].body))
		memcpy(replies[n_replies].body, m->body.p, m->body.len);
	n_replies++;
}

static void begin_with(const char *extra)
{
	n_replies = 0;
	rig_begin(extra);
	rig_control("memory");
	rig_fake();
	rig_serving();
	t_ctl_on_reply(rig.f, on_reply, NULL);
}

static void begin(void)
{
	begin_with(NULL);
}

static uint64_t deadline(void)
{
	return rig.now + 10 * CLOCK_NS_PER_S;
}

static uint64_t ask_create(const char *rid, uint64_t op, const char *id, const char *type)
{
	const struct wire_create c = {
		.mode = id ? WIRE_GET_OR_CREATE : WIRE_CREATE,
		.operation = op,
		.timeout_ms = 10000,
		.id = dp_text(id ? id : "00000000-0000-4000-8000-000000000000"),
		.type = dp_text(type),
		.request = dp_text("please"),
	};
	uint8_t b[1024];
	int n = wire_create_put(b, sizeof(b), &c);

	CU_ASSERT_FATAL(n > 0);
	return t_ctl_mesh_op(rig.f, SPL_MSG_CREATE, rid, b, (size_t)n, deadline());
}

static void ask_id(uint8_t op, const char *id)
{
	uint8_t b[300];
	int n = wire_id_put(b, sizeof(b), dp_text(id));

	CU_ASSERT_FATAL(n > 0);
	t_ctl_mesh_op(rig.f, op, "client-1", b, (size_t)n, deadline());
}

static struct wire_create_reply created(unsigned i)
{
	struct wire_create_reply c = {.state = 99};

	CU_ASSERT_EQUAL(replies[i].kind, SPL_OK);
	CU_ASSERT_EQUAL(wire_create_reply_get(&c, replies[i].body, replies[i].n), 0);
	return c;
}

static void ask_activate(const char *id, const char *type)
{
	uint8_t b[600];
	int n = wire_intent_put(b, sizeof(b), dp_text(id), dp_text(type));

	CU_ASSERT_FATAL(n > 0);
	t_ctl_mesh_op(rig.f, DP_OP_ACTIVATE, "t", b, (size_t)n, deadline());
}

static uint64_t sample_of(const char *name, const char *label)
{
	json_t *a = rig_call("metrics.show", NULL);
	uint64_t value = UINT64_MAX;
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(a, "samples"), i, row)
	{
		if (strcmp(rig_text(row, "name"), name) == 0 &&
		    strstr(rig_text(row, "labels"), label))
			value = (uint64_t)json_integer_value(json_object_get(row, "value"));
	}
	json_decref(a);
	return value;
}

/* How starts of Instance Spots end is counted by their type, and only of types that there are. */
static void test_mesh_activations_are_measured(void)
{
	static const char all[] = "spotlane.instance_spot.activations";
	static const char conflicts[] = "spotlane.instance_spot.claim.conflicts";

	begin();
	CU_ASSERT_STRING_EQUAL(rig_get_or_create("room-1", "room", NULL), "Created");
	ask_activate("twin-1", "twin");
	UNTIL(n_replies == 1);
	ask_activate("twin-1", "twin"); /* it is there already */
	ask_activate("room-1", "twin");
	ask_activate("twin-2", "nowhere");
	UNTIL(n_replies == 4);
	CU_ASSERT_EQUAL(sample_of(all, "\"twin\",outcome=\"ready\""), 1);
	CU_ASSERT_EQUAL(sample_of(all, "outcome=\"conflict\""), 2);
	CU_ASSERT_EQUAL(sample_of(all, "outcome=\"store_failure\""), 0);
	CU_ASSERT_EQUAL(sample_of(conflicts, "reason=\"authority\""), 1);
	CU_ASSERT_EQUAL(sample_of(conflicts, "reason=\"spot_kind\""), 1);
	CU_ASSERT_EQUAL(sample_of(conflicts, "reason=\"spot_type\""), 0);
	CU_ASSERT_EQUAL(sample_of(all, "nowhere"), UINT64_MAX);
	__atomic_store_n(&rig.store_fails, true, __ATOMIC_RELEASE);
	ask_activate("twin-3", "twin");
	UNTIL(n_replies == 5);
	__atomic_store_n(&rig.store_fails, false, __ATOMIC_RELEASE);
	CU_ASSERT_EQUAL(sample_of(all, "outcome=\"store_failure\""), 1);
	CU_ASSERT_EQUAL(sample_of("spotlane.instance_spot.activation.duration",
				  "outcome=\"store_failure\""),
			1);
	rig_end();
}

static void test_mesh_create_find_resolve_close(void)
{
	struct wire_create_reply c;
	struct wire_route route;
	struct wire_ref ref;
	uint8_t b[1024];
	bool found, was_closed;
	int n;

	begin();
	ask_create("client-1", 1, "room-1", "room");
	UNTIL(n_replies == 1);
	c = created(0);
	CU_ASSERT_EQUAL(c.state, WIRE_CREATED);
	CU_ASSERT(c.reply.len == 6 && memcmp(c.reply.p, "please", 6) == 0);
	ask_id(SPL_MSG_FIND, "room-1");
	UNTIL(n_replies == 2);
	CU_ASSERT_EQUAL(wire_find_reply_get(&ref, &found, replies[1].body, replies[1].n), 0);
	CU_ASSERT(found && ref.generation == c.ref.generation);
	ask_id(SPL_MSG_RESOLVE, "room-1");
	UNTIL(n_replies == 3);
	CU_ASSERT_EQUAL(wire_route_get(&route, replies[2].body, replies[2].n), 0);
	CU_ASSERT_EQUAL(route.tag, WIRE_ROUTE_READY);
	CU_ASSERT_EQUAL(route.lanes, 2);
	CU_ASSERT_EQUAL(route.lifecycle, rig_seen()->node_gen);
	CU_ASSERT(route.valid_ms > 0 && route.valid_ms <= 15000);
	n = wire_close_put(b, sizeof(b), 2, &ref);
	CU_ASSERT_FATAL(n > 0);
	t_ctl_mesh_op(rig.f, SPL_MSG_CLOSE_SPOT, "client-1", b, (size_t)n, deadline());
	UNTIL(n_replies == 4);
	CU_ASSERT_EQUAL(wire_close_reply_get(&was_closed, replies[3].body, replies[3].n), 0);
	CU_ASSERT(was_closed);
	ask_id(SPL_MSG_RESOLVE, "room-1");
	ask_id(SPL_MSG_FIND, "room-1");
	UNTIL(n_replies == 6);
	CU_ASSERT_EQUAL(replies[4].kind, SPL_OK);
	CU_ASSERT_EQUAL(wire_route_get(&route, replies[4].body, replies[4].n), 0);
	CU_ASSERT_EQUAL(route.tag, WIRE_ROUTE_NONE);
	CU_ASSERT_EQUAL(wire_find_reply_get(&ref, &found, replies[5].body, replies[5].n), 0);
	CU_ASSERT_FALSE(found);
	rig_end();
}

/* valid_ms of a resolved Spot under `extra`. */
static uint32_t valid_ms(const char *extra)
{
	struct wire_route route = {.tag = 99};

	begin_with(extra);
	ask_create("client-1", 1, "room-1", "room");
	UNTIL(n_replies == 1);
	ask_id(SPL_MSG_RESOLVE, "room-1");
	UNTIL(n_replies == 2);
	CU_ASSERT_EQUAL(wire_route_get(&route, replies[1].body, replies[1].n), 0);
	CU_ASSERT_EQUAL(route.tag, WIRE_ROUTE_READY);
	rig_end();
	return route.valid_ms;
}

static void test_mesh_a_place_is_cached_as_long_as_configured(void)
{
	CU_ASSERT(valid_ms(NULL) > 200);
	CU_ASSERT_EQUAL(valid_ms("route = { cache_age_ms = 200; };\n"), 200);
	CU_ASSERT_EQUAL(valid_ms("route = { cache_age_ms = 0; };\n"), 0);
	/* The lease ends first: ttl_ms - margin_ms of the defaults. */
	CU_ASSERT(valid_ms("route = { cache_age_ms = 60000; };\n") <= 10000);
}

static void test_mesh_a_repeated_operation_gets_the_same_terminal(void)
{
	struct wire_create_reply a, b;

	begin();
	ask_create("client-1", 7, NULL, "room");
	UNTIL(n_replies == 1);
	ask_create("client-1", 7, NULL, "room");
	UNTIL(n_replies == 2);
	a = created(0);
	b = created(1);
	CU_ASSERT_EQUAL(a.ref.generation, b.ref.generation);
	CU_ASSERT(a.ref.id.len == b.ref.id.len && !memcmp(a.ref.id.p, b.ref.id.p, a.ref.id.len));
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	rig_end();
}

static void test_mesh_many_callers_of_one_id_get_one_spot(void)
{
	unsigned n_created = 0, n_existing = 0;
	uint64_t gen = 0;
	char rid[32];

	begin();
	for (unsigned i = 0; i < 200; i++) {
		snprintf(rid, sizeof(rid), "client-%u", i % 8);
		ask_create(rid, 1000 + i, "one", "room");
	}
	UNTIL(n_replies == 200);
	for (unsigned i = 0; i < 200; i++) {
		struct wire_create_reply c = created(i);

		n_created += c.state == WIRE_CREATED;
		n_existing += c.state == WIRE_EXISTING;
		if (!gen)
			gen = c.ref.generation;
		CU_ASSERT_EQUAL(c.ref.generation, gen);
	}
	CU_ASSERT_EQUAL(n_created, 1);
	CU_ASSERT_EQUAL(n_existing, 199);
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	rig_end();
}

static void test_mesh_a_thousand_spots_at_once(void)
{
	char id[32];

	begin();
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "room-%u", i);
		ask_create("client-1", 1 + i, id, "room");
	}
	UNTIL(n_replies == 1000);
	for (unsigned i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(created(i).state, WIRE_CREATED);
	CU_ASSERT_EQUAL(rig_seen()->ready, 1000);
	rig_end();
}

static void test_mesh_a_malformed_body_is_answered(void)
{
	static const uint8_t ops[] = {
		SPL_MSG_CREATE, SPL_MSG_FIND, SPL_MSG_CLOSE_SPOT, SPL_MSG_RESOLVE, 0, 255};

	begin();
	for (unsigned i = 0; i < T_COUNT(ops); i++)
		t_ctl_mesh_op(rig.f, ops[i], "client-1", "\xff\xff\xff", 3, deadline());
	UNTIL(n_replies == T_COUNT(ops));
	for (unsigned i = 0; i < T_COUNT(ops); i++)
		CU_ASSERT_EQUAL(replies[i].kind, SPL_E_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(rig_seen()->connections, 1);
	rig_end();
}

static void test_mesh_a_caller_without_a_name_is_answered(void)
{
	begin();
	t_ctl_mesh_op(rig.f, SPL_MSG_FIND, "", "\x01x", 2, deadline());
	UNTIL(n_replies == 1);
	CU_ASSERT_EQUAL(replies[0].kind, SPL_E_PROTOCOL_ERROR);
	rig_end();
}

static void test_mesh_ids_of_the_runtime_are_refused(void)
{
	begin();
	ask_create("client-1", 1, "t-entry-00000000-0000-4000-8000-000000000000", "room");
	UNTIL(n_replies == 1);
	CU_ASSERT_EQUAL(replies[0].kind, SPL_E_INVALID_OPERATION);
	rig_end();
}

static void test_mesh_an_answer_for_a_broken_connection_is_dropped(void)
{
	begin();
	ask_create("client-1", 1, "h", "hold");
	UNTIL(rig_seen()->prepares == 1);
	t_ctl_disconnect(rig.f);
	UNTIL(rig_seen()->prepares == 2);
	t_ctl_release(rig.f);
	UNTIL(rig_seen()->ready == 1);
	/* Asked again, as a client does, it gets the one terminal. */
	ask_create("client-1", 1, "h", "hold");
	UNTIL(n_replies == 1);
	CU_ASSERT_EQUAL(created(0).state, WIRE_CREATED);
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	rig_end();
}

static void test_mesh_a_spot_closes_itself(void)
{
	struct dp_self_close m = {.id = dp_text("s")};
	uint64_t gen;

	begin();
	CU_ASSERT_STRING_EQUAL(rig_get_or_create("s", "room", &gen), "Created");
	m.obj_gen = gen + 1; /* another incarnation: nothing happens */
	dp_put_self_close(t_ctl_begin(rig.f, DP_SELF_CLOSE, DP_F_EVT, 0), &m);
	t_ctl_send(rig.f, -1);
	CU_ASSERT_STRING_EQUAL(rig_find("s"), "found");
	m.obj_gen = gen;
	dp_put_self_close(t_ctl_begin(rig.f, DP_SELF_CLOSE, DP_F_EVT, 0), &m);
	t_ctl_send(rig.f, -1);
	UNTIL(rig_seen()->on_closing[0] == 1);
	UNTIL(strcmp(rig_find("s"), "none") == 0);
	rig_end();
}

static const struct t_case cases[] = {
	T(test_mesh_activations_are_measured, "S-MET-4"),
	T(test_mesh_create_find_resolve_close),
	T(test_mesh_a_place_is_cached_as_long_as_configured),
	T(test_mesh_a_repeated_operation_gets_the_same_terminal, "A-LOC-19"),
	T(test_mesh_many_callers_of_one_id_get_one_spot, "A-LOC-15", "A-LOC-18"),
	T(test_mesh_a_thousand_spots_at_once),
	T(test_mesh_a_malformed_body_is_answered),
	T(test_mesh_a_caller_without_a_name_is_answered),
	T(test_mesh_ids_of_the_runtime_are_refused, "A-NODE-2"),
	T(test_mesh_an_answer_for_a_broken_connection_is_dropped, "A-LOC-19"),
	T(test_mesh_a_spot_closes_itself),
};

static const struct t_suite suites[] = {T_SUITE("host_mesh", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
