/* SPDX-License-Identifier: BSD-3-Clause */
/* Each allocation of authority and memory store fails once: a request is refused or ends with one
 * typed error, nothing is left half, and everything works afterwards. */
#include "tests/lib/t_failalloc.h"
#include "tests/unit/authority/rig.h"

#include <errno.h>
#include <string.h>

static int ask(enum auth_verb v, const char *id, uint64_t gen, uint64_t *tag)
{
	struct auth_request r = rig_request(v, id, v == AUTH_LIST ? NULL : "room");

	r.request = (struct auth_bytes){"argument", 8};
	r.obj_gen = gen;
	return rig_submit(&r, tag);
}

/* Refused with nothing behind it, or exactly one end. */
static void check_end(int err, uint64_t tag)
{
	CU_ASSERT_TRUE(err == 0 || err == -ENOMEM);
	CU_ASSERT_EQUAL(rig_got(tag)->times, err == 0 ? 1 : 0);
}

static void test_requests(void)
{
	const enum auth_verb verbs[] = {AUTH_GET_OR_CREATE, AUTH_CREATE, AUTH_FIND,
					AUTH_RESOLVE,	    AUTH_LIST,	 AUTH_CLOSE,
					AUTH_RECLAIM_ID};
	struct row_obj row;
	uint64_t tag, gen;
	unsigned n;

	for (size_t v = 0; v < T_COUNT(verbs); v++) {
		for (n = 1; t_fail_more(&n); n++) {
			const char *id = verbs[v] == AUTH_GET_OR_CREATE ? "new" : "old";
			int err;

			rig_open();
			rig.reply_text = "a reply";
			rig_goc("old", "room");
			rig_row("old", &row, &gen);
			t_fail_at(n);
			err = ask(verbs[v], verbs[v] == AUTH_CREATE ? NULL : id, gen, &tag);
			rig_pass(15000);
			t_fail_stop();
			check_end(err, tag);
			rig_pass(15000);
			rig_check_rest();
			CU_ASSERT_EQUAL(rig_kind(rig_goc("new", "room")), SPL_OK);
			CU_ASSERT_EQUAL(rig_kind(rig_goc("old", "room")), SPL_OK);
			rig_check_rest();
			rig_close();
		}
		CU_ASSERT_TRUE(n > 3); /* it allocates, and the loop went through */
	}
}

static void test_host(void)
{
	struct auth_type t = {.kind = SPL_KIND_USER};
	struct auth_event e = {.kind = AUTH_EV_HOST_START, .u.host = {.types = &t, .n_types = 1}};
	int err;

	spl_name_set(&t.name, "room", 4);
	for (unsigned n = 1; t_fail_more(&n); n++) {
		rig_open_bare();
		t_fail_at(n);
		err = auth_event(rig.a, &e, rig.now);
		rig_pass(20000);
		t_fail_stop();
		CU_ASSERT_TRUE(err == 0 || err == -ENOMEM);
		if (err)
			CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
		rig_run();
		rig_pass(20000);
		CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
		CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
		rig_check_rest();
		rig_close();
	}
}

static void test_stop(void)
{
	struct row_obj row;

	for (unsigned n = 1; t_fail_more(&n); n++) {
		rig_open();
		rig_goc("a", "room");
		rig_goc("b", "room");
		t_fail_at(n);
		rig_shutdown(30000);
		rig_pass(20000);
		t_fail_stop();
		CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
		CU_ASSERT_FALSE(rig_row("a", &row, NULL) || rig_row("b", &row, NULL));
		rig_close();
	}
}

static void test_create_and_destroy(void)
{
	for (unsigned n = 1; t_fail_more(&n); n++) {
		struct auth_config c;
		struct auth *a = NULL;
		int err;

		rig_open_bare();
		c = rig.cfg;
		t_fail_at(n);
		err = auth_create(&a, &c);
		t_fail_stop();
		CU_ASSERT_EQUAL(err, t_fail_hit() ? -ENOMEM : 0);
		auth_destroy(err ? NULL : a);
		rig_close();
	}
}

static const struct t_case cases[] = {
	T(test_requests, "A-FAIL-9"),
	T(test_host),
	T(test_stop),
	T(test_create_and_destroy),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("authority.oom", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
