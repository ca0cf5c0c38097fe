/* SPDX-License-Identifier: BSD-3-Clause */
/* The host: claim, lease, local deadline, lost token and adoption, planned stop. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include "common/dp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_key(const char *key, uint32_t n, struct store_item *it)
{
	return store_read(rig.st, (struct store_bytes){key, n}, it) == STORE_OK;
}

static struct auth_bytes nb(const struct spl_name *n)
{
	return (struct auth_bytes){n->b, n->len};
}

static bool node_row(struct row_node *row, struct store_item *it)
{
	char key[ROW_KEY_MAX];
	struct auth_bytes mesh = {"mesh", 4};

	if (!read_key(key, row_key_node(key, mesh, nb(&rig.id.rid)), it))
		return false;
	return row_node_get(row, it->val, it->len) == 0;
}

static bool lease_there(void)
{
	char key[ROW_KEY_MAX];
	struct store_item it;
	bool there = read_key(key, row_key_lease(key, nb(&rig.id.owner_id)), &it);

	store_item_free(&it);
	return there;
}

static void no_random(void *ctx, void *buf, size_t n)
{
	memset(buf, 1, n);
}

static void test_config(void)
{
	struct auth_config c, bad;
	struct auth *a = NULL;

	rig_open();
	auth_config_init(&c);
	spl_name_set(&c.mesh, "mesh", 4);
	snprintf(c.prefix, sizeof(c.prefix), "n");
	c.random = no_random;
	bad = c;
	bad.renew_ns = 7000 * MS; /* 7 + 3 is not below 15 - 5 */
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	bad = c;
	bad.margin_ns = 0;
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	bad = c;
	bad.ttl_ns = -1;
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	bad = c;
	snprintf(bad.prefix, sizeof(bad.prefix), "a b");
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	bad = c;
	bad.prefix[0] = 0;
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	bad = c;
	bad.mesh.len = 0;
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	bad = c;
	bad.random = NULL;
	CU_ASSERT_EQUAL(auth_create(&a, &bad), -EINVAL);
	CU_ASSERT_PTR_NULL(a);
	rig_close();
}

static void test_claim(void)
{
	struct store_item it;
	struct row_node node;
	struct row_obj entry;
	char id[256];
	uint64_t gen;

	rig_open();
	CU_ASSERT_EQUAL(rig.host_ready, 1);
	CU_ASSERT_TRUE(rig.id.lifecycle > 0 && rig.id.lifecycle <= INT64_MAX);
	/* <prefix>-<uuid>, <prefix>-entry-<uuid>, with uuids of their own. */
	CU_ASSERT_EQUAL(rig.id.rid.len, 2 + 36);
	CU_ASSERT_TRUE(spl_id_is_reserved(rig.id.entry_id.b, rig.id.entry_id.len));
	CU_ASSERT_FALSE(spl_id_is_reserved(rig.id.rid.b, rig.id.rid.len));
	CU_ASSERT_NOT_EQUAL(memcmp(rig.id.rid.b + 2, rig.id.entry_id.b + 8, 36), 0);
	CU_ASSERT_TRUE(lease_there());
	CU_ASSERT_TRUE(node_row(&node, &it));
	CU_ASSERT_EQUAL(node.state, AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(node.revision, 2);
	CU_ASSERT_EQUAL(node.lanes, 2);
	CU_ASSERT_EQUAL(node.n_types, 3);
	CU_ASSERT_TRUE(node.entry_id.n == rig.id.entry_id.len &&
		       memcmp(node.entry_id.p, rig.id.entry_id.b, node.entry_id.n) == 0);
	store_item_free(&it);
	snprintf(id, sizeof(id), "%.*s", rig.id.entry_id.len, rig.id.entry_id.b);
	CU_ASSERT_TRUE(rig_row(id, &entry, &gen));
	CU_ASSERT_TRUE(entry.kind == SPL_KIND_ENTRY && entry.alloc == ROW_NONE &&
		       gen == (uint64_t)rig.id.entry_gen);
	CU_ASSERT_EQUAL(rig.deadline, rig.now + 10000 * MS); /* TTL 15 s, margin 5 s */
	rig_close();
}

/* A second run on the same store takes new ids, and nothing of the first is touched. */
static void test_restart_takes_new_ids(void)
{
	struct auth_host_id first;
	struct row_obj row;
	uint64_t gen, gen2;

	rig_open();
	rig_goc("r", "room");
	rig_row("r", &row, &gen);
	first = rig.id;
	rig_kill_dp();
	rig_start_host();
	CU_ASSERT_EQUAL(rig.host_ready, 2);
	CU_ASSERT_NOT_EQUAL(rig.id.lifecycle, first.lifecycle);
	CU_ASSERT_NOT_EQUAL(memcmp(rig.id.rid.b, first.rid.b, 38), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(rig.id.owner_id.b, first.owner_id.b, first.owner_id.len), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(rig.id.entry_id.b, first.entry_id.b, first.entry_id.len), 0);
	CU_ASSERT_TRUE(rig.id.lease_gen > first.lease_gen);
	CU_ASSERT_TRUE(rig_row("r", &row, &gen2) && gen2 == gen);
	CU_ASSERT_EQUAL(row.owner.lifecycle, first.lifecycle);
	rig_close();
}

/* The ids are taken: the start ends at once, without a second try, and changes nothing. */
static void test_claim_conflict(void)
{
	struct row_obj row;
	uint64_t gen, gen2;
	char id[256];

	rig_reset();
	rig.fixed_random = true;
	rig_open();
	snprintf(id, sizeof(id), "%.*s", rig.id.entry_id.len, rig.id.entry_id.b);
	CU_ASSERT_TRUE(rig_row(id, &row, &gen));
	{
		/* A second authority that mints the same ids: the owner id is taken already. */
		struct auth *first = rig.a;
		struct auth_event e = {.kind = AUTH_EV_HOST_START};
		struct auth_effect fx;
		bool stopped = false;

		rig_make(&rig.a);
		CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
		while (auth_next(rig.a, &fx)) {
			if (fx.kind == AUTH_FX_STORE) {
				store_run(rig.st, fx.u.store);
				auth_store_done(rig.a, fx.u.store, rig.now);
			}
			stopped |= fx.kind == AUTH_FX_HOST_STOPPED;
			CU_ASSERT_NOT_EQUAL(fx.kind, AUTH_FX_HOST_READY);
		}
		CU_ASSERT_TRUE(stopped);
		auth_destroy(rig.a);
		rig.a = first;
	}
	CU_ASSERT_TRUE(rig_row(id, &row, &gen2) && gen == gen2);
	CU_ASSERT_TRUE(lease_there());
	rig.fixed_random = false;
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room"))); /* the first is not disturbed */
	rig_close();
}

static void test_claim_with_store_trouble(void)
{
	const enum store_fault faults[] = {STORE_FAULT_FAIL, STORE_FAULT_LOSE, STORE_FAULT_DROP};
	const enum store_op ops[] = {STORE_GRANT, STORE_TXN, STORE_SCAN};

	for (size_t f = 0; f < T_COUNT(faults); f++)
		for (size_t o = 0; o < T_COUNT(ops); o++)
			for (int times = 1; times <= 4; times++) {
				rig_open_bare();
				rig_fault(faults[f], ops[o], times);
				rig_start_host();
				rig_pass(4000);
				CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
				CU_ASSERT_EQUAL(rig.host_ready, 1);
				CU_ASSERT_TRUE(rig_is_created(rig_goc("r", "room")));
				rig_check_rest();
				rig_close();
			}
}

/* ---- lease ---- */

static void test_renewal(void)
{
	int64_t before;

	rig_open();
	before = rig.deadline;
	rig_pass(5000);
	CU_ASSERT_EQUAL(rig.lease_told, 1);
	CU_ASSERT_EQUAL(rig.deadline, before + 5000 * MS);
	rig_pass(60000);
	CU_ASSERT_EQUAL(rig.lease_told, 13);
	CU_ASSERT_EQUAL(rig.lease_lost, 0);
	CU_ASSERT_TRUE(lease_there());
	rig_check_rest();
	rig_close();
}

/* The deadline counts from just before the request was sent, however late the answer comes. */
static void test_slow_renewal(void)
{
	int64_t sent;

	rig_open();
	rig.hold_store = true;
	rig_pass(5000);
	CU_ASSERT_PTR_NOT_NULL(rig.held);
	sent = rig.now;
	rig_pass(2500);
	rig.hold_store = false;
	rig_release_store();
	CU_ASSERT_EQUAL(rig.deadline, sent + 10000 * MS);
	rig_close();
}

/* The store is away: past the local deadline nothing new is reserved or recorded; afterwards the
 * token is still valid and everything goes on. */
static void test_past_the_deadline(void)
{
	uint64_t t, c, r;

	rig_open();
	rig_goc("r", "room");
	rig.hold_dp = true;
	c = rig_goc_in("half", "room", 60000);
	rig_fault(STORE_FAULT_FAIL, STORE_RENEW, -1);
	rig_pass(10001);
	t = rig_goc("new", "room");
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_UNAVAILABLE);
	r = rig_ask(AUTH_RESOLVE, "r");
	CU_ASSERT_EQUAL(rig_got(r)->r.route, AUTH_ROUTE_UNAVAILABLE);
	/* The factory's result comes too late to be recorded. */
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "half", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_kind(c), SPL_E_UNAVAILABLE);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "half", RIG_ACCEPT));
	{
		struct row_obj row;

		CU_ASSERT_TRUE(rig_row("half", &row, NULL)); /* not even removed */
	}
	rig_fault(STORE_FAULT_NONE, STORE_RENEW, 0);
	rig.hold_dp = false;
	rig_pass(1000);
	CU_ASSERT_EQUAL(rig.lease_lost, 0);
	CU_ASSERT_TRUE(rig_is_created(rig_goc("new", "room")));
	CU_ASSERT_TRUE(rig_is_existing(rig_goc("r", "room")));
	CU_ASSERT_TRUE(rig_is_created(rig_goc("half", "room")));
	rig_check_rest();
	rig_close();
}

/* One failed renewal is tried again well inside the TTL. */
static void test_one_failed_renewal(void)
{
	rig_open();
	rig_fault(STORE_FAULT_FAIL, STORE_RENEW, 1);
	rig_pass(7000);
	CU_ASSERT_EQUAL(rig.lease_told, 1);
	CU_ASSERT_TRUE(rig.deadline > rig.now + 8000 * MS);
	rig_close();
}

/* The lease ended while the process was stopped: claimed again under the same ids, own Spots are
 * adopted with a larger own_gen, and a Spot that was reclaimed meanwhile is closed. */
static void test_token_lost(void)
{
	struct auth_host_id before;
	struct row_obj row;
	uint64_t gen, gen2, t;
	struct store_mut m = {.del = true};
	struct store_txn x = {.muts = &m, .n_muts = 1};
	char key[ROW_KEY_MAX];

	rig_open();
	rig_goc("r", "room");
	rig_goc("reclaimed", "room");
	rig_row("r", &row, &gen);
	before = rig.id;
	rig.now += 60000 * MS; /* nothing ran for a minute */
	m.key = (struct store_bytes){key, row_key_obj(key, (struct auth_bytes){"reclaimed", 9})};
	CU_ASSERT_EQUAL(store_commit(rig.st, &x), STORE_OK);
	rig_advance(0);
	CU_ASSERT_EQUAL(rig.lease_lost, 1);
	CU_ASSERT_EQUAL(rig.host_ready, 2);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(memcmp(&rig.id.rid, &before.rid, sizeof(before.rid)), 0);
	CU_ASSERT_EQUAL(rig.id.lifecycle, before.lifecycle);
	CU_ASSERT_TRUE(rig.id.lease_gen > before.lease_gen);
	rig_pass(100);
	CU_ASSERT_TRUE(rig_row("r", &row, &gen2));
	CU_ASSERT_TRUE(gen2 == gen && row.own_gen == 2 && row.owner.lease_gen == rig.id.lease_gen);
	CU_ASSERT_EQUAL(rig_object("r")->own_gen, 2);
	CU_ASSERT_EQUAL(rig_object("r")->lease_gen, rig.id.lease_gen);
	t = rig_goc("r", "room");
	CU_ASSERT_TRUE(rig_is_existing(t));
	/* Its old instance never runs again: the dataplane has it fenced, with the old token. */
	CU_ASSERT_EQUAL(rig_object("reclaimed")->lease_gen, before.lease_gen);
	rig_close();
}

/* The token goes while creations and closes are at every step. */
static void test_token_lost_in_mid_work(void)
{
	struct row_obj row;
	uint64_t prep, commit, cl, gen;

	rig_open();
	rig_goc("closing", "room");
	rig_row("closing", &row, &gen);
	rig.hold_dp = true;
	prep = rig_goc_in("prep", "room", 120000);
	commit = rig_goc_in("commit", "room", 120000);
	cl = rig_closing("closing", gen);
	rig.now += 60000 * MS;
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "commit", RIG_ACCEPT));
	rig_advance(0);
	CU_ASSERT_EQUAL(rig_kind(commit), SPL_E_UNAVAILABLE);
	CU_ASSERT_EQUAL(rig_kind(cl), SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_PREPARE, "prep", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_kind(prep), SPL_E_UNAVAILABLE);
	rig.hold_dp = false;
	while (rig_answer(AUTH_FX_DISCARD, NULL, RIG_ACCEPT) ||
	       rig_answer(AUTH_FX_CLOSE_LOCAL, NULL, RIG_ACCEPT))
		continue;
	rig_pass(1000);
	/* Nothing of the three is left, and the counters are those of the rows. */
	CU_ASSERT_FALSE(rig_row("prep", &row, NULL) || rig_row("commit", &row, NULL) ||
			rig_row("closing", &row, NULL));
	rig_check_rest();
	CU_ASSERT_TRUE(rig_is_created(rig_goc("prep", "room")));
	rig_check_rest();
	rig_close();
}

/* ---- planned stop ---- */

static void test_stop_releases_everything(void)
{
	struct row_obj row;
	uint64_t t;
	char id[16];

	rig_open();
	for (int i = 0; i < 600; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		rig_goc(id, "room");
	}
	rig_shutdown(30000);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_EQUAL(rig.forced, 0);
	CU_ASSERT_EQUAL(rig.closings, 600);
	CU_ASSERT_FALSE(lease_there());
	for (int i = 0; i < 600; i++) {
		snprintf(id, sizeof(id), "r%d", i);
		if (rig_row(id, &row, NULL))
			CU_FAIL("a row was not released");
	}
	CU_ASSERT_EQUAL(rig_kind(rig_goc("x", "room")), SPL_E_SHUTTING_DOWN);
	t = rig_find("r1");
	CU_ASSERT_TRUE(rig_kind(t) == SPL_OK && !rig_got(t)->r.found);
	/* At once after it, another run may create them. */
	auth_destroy(rig.a);
	rig_make(&rig.a);
	rig_start_host();
	CU_ASSERT_TRUE(rig_is_created(rig_goc("r1", "room")));
	rig_close();
}

static void test_stop_lets_accepted_work_finish(void)
{
	struct store_item it;
	struct row_node node;
	uint64_t a, b, f;

	rig_open();
	rig.hold_dp = true;
	a = rig_goc("a", "room");
	b = rig_goc("b", "room");
	rig_shutdown(30000);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_DRAINING);
	CU_ASSERT_TRUE(node_row(&node, &it));
	CU_ASSERT_EQUAL(node.state, AUTH_HOST_DRAINING);
	store_item_free(&it);
	CU_ASSERT_EQUAL(rig_kind(rig_goc("late", "room")), SPL_E_SHUTTING_DOWN);
	f = rig_closing("a", 1);
	CU_ASSERT_EQUAL(rig_kind(f), SPL_E_SHUTTING_DOWN);
	rig_pass(12000); /* the lease is renewed until the end */
	CU_ASSERT_TRUE(lease_there());
	CU_ASSERT_TRUE(rig_kind(b) == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_DISCARD), 2);
	while (rig_answer(AUTH_FX_DISCARD, NULL, RIG_ACCEPT))
		continue;
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_TRUE(rig_kind(a) == SPL_E_DEADLINE_EXCEEDED);
	CU_ASSERT_FALSE(lease_there());
	rig_close();
}

/* on_closing hangs: after the deadline the dataplane is ended by force, then its rows are freed. */
static void test_stop_by_force(void)
{
	struct row_obj row;

	rig_open();
	rig_goc("a", "room");
	rig_goc("b", "room");
	rig.hold_dp = true;
	rig_shutdown(2000);
	CU_ASSERT_EQUAL(rig_open_cmds(AUTH_FX_CLOSE_LOCAL), 2);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig.stopped, 0);
	rig_pass(2900); /* the dataplane has a second to end it itself */
	CU_ASSERT_EQUAL(rig.stopped, 0);
	rig_pass(200);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 1);
	CU_ASSERT_TRUE(rig_row("b", &row, NULL)); /* not while it may still run */
	CU_ASSERT_TRUE(lease_there());
	rig_kill_dp();
	CU_ASSERT_TRUE(rig.stopped == 2 && rig.forced == 1);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_DEADLINE);
	CU_ASSERT_FALSE(rig_row("a", &row, NULL) || rig_row("b", &row, NULL));
	CU_ASSERT_FALSE(lease_there());
	rig_close();
}

static void test_stop_twice_and_without_host(void)
{
	rig_open_bare();
	rig_shutdown(1000);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	rig_shutdown(1000);
	CU_ASSERT_EQUAL(rig.stopped, 1); /* one stop, one end */
	rig_close();
	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(5000);
	rig_shutdown(1);
	rig_pass(100);
	CU_ASSERT_EQUAL(rig.stopped, 0); /* the first deadline counts */
	rig.hold_dp = false;
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_FAIL);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "on_closing failed"));
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_TEARDOWN);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_STOPPED); /* all the same */
	rig_close();
}

static unsigned works(void)
{
	return rig_open_cmds(AUTH_FX_PREPARE) + rig_open_cmds(AUTH_FX_PUBLISH) +
	       rig_open_cmds(AUTH_FX_DISCARD);
}

/* The outcomes (A-DRAIN-3): None when all went well, whatever an earlier close did; Deadline when
 * the dataplane had to end a Spot by force, or died of it; a stop starts and moves nothing. */
static void test_outcomes(void)
{
	struct row_obj row;

	rig_open();
	rig_goc("a", "room");
	rig_goc("b", "room");
	rig.hold_dp = true;
	rig_closing("a", rig_gen("a"));
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_FAIL); /* an on_closing that failed before */
	rig_shutdown(5000);
	CU_ASSERT_TRUE(rig_row("b", &row, NULL) && row.state == AUTH_ROW_READY);
	CU_ASSERT_EQUAL(works(), 0);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "b", RIG_ACCEPT);
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_TRUE(rig.outcome == AUTH_STOPPED && rig.stop_reason == AUTH_STOP_NONE);
	rig_close();

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(1000);
	rig_pass(1500);
	rig.late_close = true; /* its deadline has passed in the lane, too */
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_FAIL);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_DEADLINE);
	CU_ASSERT_FALSE(rig_row("a", &row, NULL));
	rig_close();

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(5000);
	rig_kill_dp(); /* nobody can run on_closing any more */
	CU_ASSERT_EQUAL(rig.stopped, 1);
	CU_ASSERT_TRUE(rig.outcome == AUTH_FORCE_STOPPED && rig.stop_reason == AUTH_STOP_TEARDOWN);
	rig_close();
}

/* States have their numbers, one for both processes, and only Serving is ready. */
static void test_states(void)
{
	static const struct {
		enum auth_host_state state;
		int number, dataplane;
	} states[] = {
		{AUTH_HOST_PREPARING, 0, DP_HOST_PREPARING},
		{AUTH_HOST_SERVING, 1, DP_HOST_SERVING},
		{AUTH_HOST_DRAINING, 4, DP_HOST_DRAINING},
		{AUTH_HOST_STOPPED, 5, DP_HOST_STOPPED},
		{AUTH_HOST_ERROR, 6, DP_HOST_ERROR},
	};

	for (size_t i = 0; i < T_COUNT(states); i++) {
		CU_ASSERT_EQUAL((int)states[i].state, states[i].number);
		CU_ASSERT_EQUAL(states[i].dataplane, states[i].number);
		CU_ASSERT_EQUAL(auth_host_is_ready(states[i].state), states[i].number == 1);
	}
	CU_ASSERT(DP_HOST_RELOCATING == 2 && DP_HOST_RELOCATED == 3);
	CU_ASSERT_FALSE(auth_host_is_ready(AUTH_HOST_NONE));
	rig_open_bare();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_NONE);
	rig_start_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING); /* as the dataplane was told */
	rig_goc("a", "room");
	rig.hold_dp = true;
	rig_shutdown(1000);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_DRAINING);
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_DRAINING);
	rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_STOPPED);
	rig_close();
}

/* The Entry Spot is made before the host serves, by nobody else closed, and it is the last one that
 * a stop closes; a control that comes to a living dataplane leaves it as it is. */
static void test_entry(void)
{
	char id[256];
	uint64_t gen;

	rig_open_bare();
	rig.entry.hold = true;
	rig_start_host();
	snprintf(id, sizeof(id), "%.*s", rig.id.entry_id.len, rig.id.entry_id.b);
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_PREPARING);
	CU_ASSERT_EQUAL(rig.entry.asked, 1);
	CU_ASSERT_EQUAL(rig_kind(rig_find(id)), -1); /* not seen before it is there */
	rig.entry.hold = false;
	auth_event(rig.a, &(struct auth_event){.kind = AUTH_EV_LINK_UP}, rig.now);
	rig_run();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig.entry.made == 1 && rig.entry.is_there);
	CU_ASSERT_EQUAL(rig.entry.obj_gen, (uint64_t)rig.id.entry_gen);
	CU_ASSERT_EQUAL(rig_got(rig_ask(AUTH_RESOLVE, id))->r.route, AUTH_ROUTE_READY);
	gen = rig_gen(id);
	CU_ASSERT_EQUAL(rig_kind(rig_closing(id, gen)), SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_kind(rig_own_close(id, gen, AUTH_EXPLICIT_CLOSE)),
			SPL_E_INVALID_OPERATION);
	CU_ASSERT_EQUAL(rig_kind(rig_own_close(id, gen, AUTH_IDLE_EVICTED)),
			SPL_E_INVALID_OPERATION);
	rig_goc("a", "room");
	rig_goc("b", "room");
	rig_restart_control();
	rig_resume_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_TRUE(rig.entry.made == 1 && rig.entry.closed == 0);
	rig_shutdown(1000);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.outcome == AUTH_STOPPED);
	CU_ASSERT_TRUE(rig.entry.closed == 1 && rig.entry.others == 0);
	CU_ASSERT_EQUAL(rig_gen(id), 0);
	rig_close();
}

/* A callback of it that fails: no node; at the stop: the outcome says so. A dataplane that dies
 * while it makes it is buried as ever. */
static void test_entry_fails(void)
{
	rig_open_bare();
	rig.entry.fails = true;
	rig_start_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_ERROR);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.entry.asked == 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "Entry Spot"));
	CU_ASSERT_FALSE(lease_there());
	rig_close();

	rig_open();
	rig.entry.fails = true;
	rig_shutdown(1000);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.outcome == AUTH_FORCE_STOPPED &&
		       rig.stop_reason == AUTH_STOP_TEARDOWN);
	rig_close();

	rig_open_bare();
	rig.entry.hold = true;
	rig_start_host();
	rig_kill_dp();
	rig.entry.hold = false;
	rig_start_host();
	CU_ASSERT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	CU_ASSERT_EQUAL(rig.entry.made, 1);
	rig_close();
}

/* A start that hangs ends with the stop: its caller hears it once, nothing of it stays, and the
 * rest is closed in time (S-DRAIN-5). */
static void test_stop_ends_a_start_under_way(void)
{
	struct row_cap cap;
	uint64_t t, w;

	rig_open();
	rig_goc("a", "room");
	rig.hold_dp = true;
	t = rig_activate("i", "twin", 60000);
	w = rig_activate("i", "twin", 50000);
	rig_shutdown(2000);
	rig_pass(1900);
	CU_ASSERT_TRUE(rig_kind(t) == -1 && rig_kind(w) == -1);
	rig_pass(200);
	CU_ASSERT_EQUAL(rig_kind(t), SPL_E_SHUTTING_DOWN);
	CU_ASSERT_EQUAL(rig_kind(w), SPL_E_SHUTTING_DOWN);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_DISCARD, "i", RIG_ACCEPT));
	CU_ASSERT_EQUAL(rig_gen("i"), 0);
	CU_ASSERT_TRUE(rig_cap(&cap));
	CU_ASSERT_TRUE(cap.spots_reserved == 0 && cap.pending == 0);
	CU_ASSERT_TRUE(rig_answer(AUTH_FX_CLOSE_LOCAL, "a", RIG_ACCEPT));
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
	CU_ASSERT_TRUE(rig_got(t)->times == 1 && rig_got(w)->times == 1);
	rig_close();
}

static void test_stop_with_store_trouble(void)
{
	const enum store_op ops[] = {STORE_TXN, STORE_SCAN, STORE_REVOKE};
	const enum store_fault faults[] = {STORE_FAULT_FAIL, STORE_FAULT_LOSE, STORE_FAULT_DROP};
	struct row_obj row;

	for (size_t i = 0; i < T_COUNT(ops); i++)
		for (size_t f = 0; f < T_COUNT(faults); f++) {
			rig_open();
			rig_goc("a", "room");
			rig_goc("b", "room");
			rig_fault(faults[f], ops[i], 2);
			rig_shutdown(30000);
			rig_pass(5000);
			CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 0);
			CU_ASSERT_FALSE(rig_row("a", &row, NULL) || rig_row("b", &row, NULL));
			CU_ASSERT_FALSE(lease_there());
			rig_close();
		}
	/* A store that never comes back: the stop ends all the same, and says so. */
	rig_open();
	rig_goc("a", "room");
	rig_fault(STORE_FAULT_FAIL, STORE_TXN, -1);
	rig_shutdown(2000);
	rig_pass(3100);
	CU_ASSERT_TRUE(rig.stopped == 1 && rig.forced == 1);
	rig_kill_dp();
	rig_pass(10000);
	CU_ASSERT_EQUAL(rig.stopped, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.stop_text, "reclaimed"));
	rig_close();
}

static const struct t_case cases[] = {
	T(test_config, "A-LEASE-5", "S-LEASE-1"),
	T(test_claim, "A-NODE-1", "A-NODE-2", "A-NODE-3", "S-ID-6"),
	T(test_restart_takes_new_ids, "A-NODE-1", "A-LEASE-1", "S-ID-9", "S-ID-10"),
	T(test_claim_conflict, "S-ID-7", "A-NODE-1", "A-NODE-2"),
	T(test_claim_with_store_trouble, "A-FAIL-7", "A-NODE-10"),
	T(test_renewal, "A-LEASE-2", "A-LEASE-4", "A-LEASE-12"),
	T(test_slow_renewal, "A-LEASE-4", "S-LEASE-2"),
	T(test_past_the_deadline, "A-LEASE-6", "A-LEASE-7", "S-LEASE-2"),
	T(test_one_failed_renewal, "A-LEASE-3"),
	T(test_token_lost, "A-LEASE-9", "A-LEASE-11", "A-FAIL-11"),
	T(test_token_lost_in_mid_work, "A-LEASE-9", "A-LEASE-7"),
	T(test_stop_releases_everything, "A-DRAIN-4", "A-DRAIN-5", "A-NODE-3", "S-DRAIN-3"),
	T(test_stop_lets_accepted_work_finish, "A-LEASE-10", "S-CREATE-12", "S-DRAIN-2"),
	T(test_stop_by_force, "A-DRAIN-3", "S-DRAIN-4"),
	T(test_stop_twice_and_without_host, "A-DRAIN-6", "A-DRAIN-9", "S-CLOSING-3"),
	T(test_outcomes, "A-DRAIN-3", "S-CLOSING-3", "S-DRAIN-6", "A-DRAIN-9"),
	T(test_states, "S-DRAIN-1", "A-DRAIN-1"),
	T(test_entry, "S-ENTRY-1", "S-ENTRY-2", "S-CLOSE-1", "A-DRAIN-4"),
	T(test_entry_fails, "S-ENTRY-1", "S-CLOSING-3"),
	T(test_stop_ends_a_start_under_way, "S-DRAIN-5"),
	T(test_stop_with_store_trouble, "A-DRAIN-3"),
};
const struct t_suite suite_host = T_SUITE("authority.host", NULL, NULL, cases);
