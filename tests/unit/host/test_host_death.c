/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane as a process of its own that is killed: its Spots are Unavailable until they are
 * reclaimed, and only a death that is proved lets them be reclaimed.
 */
#include "common/wire_msg.h"
#include "control/host/host_priv.h"
#include "control/store/store_sqlite.h"
#include "tests/unit/host/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>

#define IS(a, b) CU_ASSERT_STRING_EQUAL(a, b)

static const struct t_ctl_options plain = {.lanes = 2};
static char old_rid[256];
static uint64_t old_gen;

static void create(const char *extra)
{
	rig_begin(extra);
	rig_control("sqlite");
	rig_child(&plain);
	rig_serving();
	/* The child's clock is the real one; only the leases of control matter here. */
	for (int i = 0; i < 10; i++) {
		char id[32];

		snprintf(id, sizeof(id), "room-%d", i);
		IS(rig_get_or_create(id, "room", &old_gen), "Created");
	}
	strcpy(old_rid, rig_seen()->rid);
}

static void create_and_kill(const char *extra)
{
	create(extra);
	rig_child_dies();
	UNTIL(strcmp(rig_find("room-1"), "Unavailable") == 0);
}

static void new_dataplane(void)
{
	rig_child(&plain);
	rig_serving();
	CU_ASSERT_STRING_NOT_EQUAL(rig_seen()->rid, old_rid);
}

static long reclaim(const char *name, const char *value, const char **kind)
{
	static char text[1024];
	json_t *a = rig_call("spot.reclaim", json_pack("{s:s}", name, value));
	long n = (long)json_integer_value(json_object_get(a, "reclaimed"));

	snprintf(text, sizeof(text), "%s", rig_kind(a));
	*kind = text;
	json_decref(a);
	return n;
}

static void test_death_makes_unavailable_until_reclaimed(void)
{
	const char *kind;
	uint64_t gen;

	create_and_kill(NULL);
	IS(rig_get_or_create("room-1", "room", NULL), "Unavailable");
	new_dataplane();
	IS(rig_find("room-1"), "Unavailable");
	IS(rig_get_or_create("room-1", "room", NULL), "Unavailable");
	CU_ASSERT_EQUAL(rig_seen()->factories, 0);
	CU_ASSERT_EQUAL(reclaim("id", "room-1", &kind), 1);
	IS(rig_get_or_create("room-1", "room", &gen), "Created");
	CU_ASSERT(gen > old_gen);
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	IS(rig_find("room-2"), "Unavailable");
	CU_ASSERT_EQUAL(reclaim("node", old_rid, &kind), 9);
	IS(rig_find("room-2"), "none");
	IS(rig_get_or_create("room-2", "room", &gen), "Created");
	CU_ASSERT(gen > old_gen);
	CU_ASSERT_EQUAL(rig_seen()->factories, 2);
	rig_end();
}

/* Control is down: does the store remember the old lifecycle? */
static bool is_remembered(void)
{
	const struct store_sqlite_opts o = {.path = rig.cfg->store.path};
	struct store_item item;
	struct store *st;
	char key[300], err[256];
	int rc;

	CU_ASSERT_EQUAL_FATAL(store_sqlite_open(&st, &o, err, sizeof(err)), 0);
	snprintf(key, sizeof(key), "proc/%s", old_rid);
	rc = store_read(st, (struct store_bytes){key, strlen(key)}, &item);
	if (rc == STORE_OK)
		store_item_free(&item);
	store_close(st);
	return rc == STORE_OK;
}

/* Only while there is something of it. */
static void test_death_is_remembered_until_nothing_is_left(void)
{
	const char *kind;

	create(NULL);
	rig_control_dies();
	rig_child_dies();
	CU_ASSERT_TRUE(is_remembered());
	rig_control("sqlite");
	CU_ASSERT_EQUAL(reclaim("id", "room-1", &kind), 1);
	rig_control_dies();
	CU_ASSERT_TRUE(is_remembered());
	rig_control("sqlite");
	CU_ASSERT_EQUAL(reclaim("node", old_rid, &kind), 9);
	rig_pass(1000);
	rig_control_dies();
	CU_ASSERT_FALSE(is_remembered());
	rig_end();
}

static void test_death_is_forgotten_on_restart(void)
{
	create("authority = { reclaim = \"on_restart\"; };\n");
	rig_control_dies();
	rig_child_dies();
	CU_ASSERT_TRUE(is_remembered());
	rig_control("sqlite");
	new_dataplane();
	UNTIL(strcmp(rig_find("room-1"), "none") == 0);
	rig_pass(1000);
	rig_control_dies();
	CU_ASSERT_FALSE(is_remembered());
	rig_end();
}

static void test_death_of_both_is_proved_by_the_next_control(void)
{
	const char *kind;
	uint64_t gen;

	create_and_kill(NULL);
	rig_control_dies();
	rig_control("sqlite");
	CU_ASSERT_EQUAL(reclaim("node", old_rid, &kind), 10);
	new_dataplane();
	IS(rig_get_or_create("room-1", "room", &gen), "Created");
	CU_ASSERT(gen > old_gen);
	rig_end();
}

static void test_death_with_on_restart_frees_the_rows_by_itself(void)
{
	uint64_t gen = 0;

	create_and_kill("authority = { reclaim = \"on_restart\"; };\n");
	new_dataplane();
	UNTIL(strcmp(rig_get_or_create("room-1", "room", &gen), "Created") == 0);
	CU_ASSERT(gen > old_gen);
	CU_ASSERT_EQUAL(rig_seen()->factories, 1);
	rig_end();
}

/* At the start of control somebody holds the lock, and the number in it is still the old one's. */
static void test_death_is_looked_for_again_with_the_new_lifecycle(void)
{
	char path[128];
	int fd;

	create("authority = { reclaim = \"on_restart\"; };\n");
	rig_control_dies();
	rig_child_dies();
	snprintf(path, sizeof(path), "%s/" DP_LOCK_NAME, rig.dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(flock(fd, LOCK_EX | LOCK_NB), 0);
	rig_control("sqlite");
	rig_pass(60000);
	IS(rig_find("room-1"), "Unavailable"); /* its lease is over, and the row is there */
	close(fd);
	new_dataplane();
	UNTIL(strcmp(rig_find("room-1"), "none") == 0);
	rig_end();
}

/* What waits to be tried again goes with control. */
static void test_death_is_not_looked_for_when_control_is_gone(void)
{
	rig_begin(NULL);
	__atomic_store_n(&rig.store_fails, true, __ATOMIC_RELEASE);
	rig_control("memory");
	UNTIL(rig.h->life_scan_again);
	rig_end();
}

static void test_death_that_is_not_proved_reclaims_nothing(void)
{
	const char *kind;
	char rid[256];

	rig_begin(NULL);
	rig_control("sqlite");
	rig_child(&plain);
	rig_serving();
	IS(rig_get_or_create("room-1", "room", NULL), "Created");
	strcpy(rid, rig_seen()->rid);
	/* It does not answer, its lease has run out, but it is there. */
	kill(rig.pid, SIGSTOP);
	CU_ASSERT_EQUAL(reclaim("node", rid, &kind), 0);
	rig_control_dies();
	rig.now += 60 * CLOCK_NS_PER_S;
	rig_control("sqlite");
	CU_ASSERT_EQUAL(reclaim("node", rid, &kind), 0);
	IS(kind, "InvalidOperation");
	CU_ASSERT_EQUAL(reclaim("id", "room-1", &kind), 0);
	kill(rig.pid, SIGCONT);
	rig_end();
}

static uint8_t route_tag;

static void on_route(void *ctx, uint64_t corr, const struct dp_mesh_op_done *m)
{
	struct wire_route route;

	CU_ASSERT_EQUAL(m->kind, SPL_OK);
	CU_ASSERT_EQUAL(wire_route_get(&route, m->body.p, m->body.len), 0);
	route_tag = route.tag;
}

static uint8_t resolve(const char *id)
{
	uint8_t b[300];
	int n = wire_id_put(b, sizeof(b), dp_text(id));

	route_tag = 255;
	t_ctl_mesh_op(rig.f, SPL_MSG_RESOLVE, "client-1", b, (size_t)n,
		      rig.now + 10 * CLOCK_NS_PER_S);
	UNTIL(route_tag != 255);
	return route_tag;
}

static void test_death_is_not_told_as_a_missing_spot(void)
{
	json_t *a;

	create_and_kill(NULL);
	rig_fake();
	rig_serving();
	t_ctl_on_reply(rig.f, on_route, NULL);
	CU_ASSERT_EQUAL(resolve("room-1"), WIRE_ROUTE_NOT_READY);
	CU_ASSERT_EQUAL(resolve("room-99"), WIRE_ROUTE_NONE);
	a = rig_call("spot.request", json_pack("{s:s,s:s}", "id", "room-1", "packet", "echo"));
	IS(rig_kind(a), "Unavailable");
	json_decref(a);
	a = rig_call("spot.send", json_pack("{s:s,s:s}", "id", "room-99", "packet", "tell"));
	IS(rig_kind(a), "NotFound");
	json_decref(a);
	rig_end();
}

static const struct t_case cases[] = {
	T(test_death_makes_unavailable_until_reclaimed, "A-FAIL-3", "A-FAIL-10", "A-LOC-18"),
	T(test_death_is_not_told_as_a_missing_spot, "A-LOC-40", "A-LOC-52", "A-FAIL-3"),
	T(test_death_is_remembered_until_nothing_is_left, "A-FAIL-10"),
	T(test_death_is_forgotten_on_restart),
	T(test_death_of_both_is_proved_by_the_next_control, "A-FAIL-10"),
	T(test_death_with_on_restart_frees_the_rows_by_itself, "A-FAIL-10"),
	T(test_death_is_looked_for_again_with_the_new_lifecycle),
	T(test_death_is_not_looked_for_when_control_is_gone),
	T(test_death_that_is_not_proved_reclaims_nothing, "A-FAIL-10", "A-LEASE-12"),
};

static const struct t_suite suites[] = {T_SUITE("host_death", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
