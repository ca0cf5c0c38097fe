/* SPDX-License-Identifier: BSD-3-Clause */
/* The host: claim, lease, local deadline, lost token and adoption, planned stop. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	CU_ASSERT_TRUE(rig_lease_there());
	CU_ASSERT_TRUE(rig_node_row(&node, &it));
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
		unsigned told = 0;

		rig_make(&rig.a);
		CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
		while (auth_next(rig.a, &fx)) {
			if (fx.kind == AUTH_FX_STORE) {
				store_run(rig.st, fx.u.store);
				auth_store_done(rig.a, fx.u.store, rig.now);
			}
			stopped |= fx.kind == AUTH_FX_HOST_STOPPED;
			told += fx.kind == AUTH_FX_LOG &&
				strstr(fx.u.log.text, "mesh_node.routing_id_conflict");
			CU_ASSERT_NOT_EQUAL(fx.kind, AUTH_FX_HOST_READY);
		}
		CU_ASSERT_TRUE(stopped);
		CU_ASSERT_EQUAL(told, 1);
		auth_destroy(rig.a);
		rig.a = first;
	}
	CU_ASSERT_TRUE(rig_row(id, &row, &gen2) && gen == gen2);
	CU_ASSERT_TRUE(rig_lease_there());
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
	CU_ASSERT_TRUE(rig_lease_there());
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
};
const struct t_suite suite_host = T_SUITE("authority.host", NULL, NULL, cases);
