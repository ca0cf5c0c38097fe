/* SPDX-License-Identifier: BSD-3-Clause */
/* Random interleavings: requests, repeats, closes, reclaims; store answers held back, lost and
 * failed; rows touched by others, so that what was read is stale; the dataplane slow, declining,
 * failing, killed; control killed and resumed; time. After every step:
 *   the capacity row equals the object rows of its lease; generations of an id never fall, and
 *   own_gen not inside one; no attempt gets a second command to run its factory, no id a factory
 *   while it has another object; no request more than one terminal.
 * At the end, when the trouble is over, every request has exactly one and nothing is left half. */
#include "tests/unit/authority/rig.h"
#include "tests/unit/authority/suites.h"

#include <stdio.h>
#include <string.h>

#define IDS   6
#define STEPS 1500
#define SEEDS 40
#define TAGS  512

static struct {
	uint64_t gen[IDS], own[IDS];
	uint64_t tags[TAGS]; /* not answered yet */
	unsigned n_tags;
	uint64_t ops[32]; /* identities to be repeated */
	bool has_host, dp_alive;
	char rid[256]; /* of a host before this one */
	unsigned kinds[SPL_ERROR_COUNT + 1];
	unsigned created, rejected, existing, kills, restarts, crashes;
	unsigned failures; /* of the program before it */
} run;

static unsigned below(unsigned n)
{
	return t_rand_below(&rig.rnd, n);
}

static bool has_failed(void)
{
	return CU_get_number_of_failure_records() != run.failures;
}

static const char *id_of(unsigned i)
{
	static const char *const ids[IDS] = {"a", "b", "c", "d", "e", "f"};

	return ids[i];
}

static void remember(uint64_t tag)
{
	if (run.n_tags < TAGS)
		run.tags[run.n_tags++] = tag;
}

static void collect(void)
{
	for (unsigned i = 0; i < run.n_tags;) {
		const struct rig_reply *r = rig_got(run.tags[i]);

		CU_ASSERT_FATAL(r->times <= 1);
		if (!r->there) {
			i++;
			continue;
		}
		run.kinds[r->r.kind == SPL_OK ? SPL_ERROR_COUNT : r->r.kind]++;
		if (r->r.kind == SPL_OK && r->r.verb == AUTH_GET_OR_CREATE) {
			run.created += r->r.created == AUTH_CREATED;
			run.rejected += r->r.created == AUTH_REJECTED;
			run.existing += r->r.created == AUTH_EXISTING;
		}
		run.tags[i] = run.tags[--run.n_tags];
	}
}

static void ask(void)
{
	const char *id = id_of(below(IDS));
	unsigned what = below(24), op = below(32);
	struct row_obj row;
	uint64_t gen = 0;

	if (run.n_tags >= TAGS - 1)
		return;
	if (what < 9) {
		if (!run.ops[op] || below(3))
			run.ops[op] = ++rig.next_op;
		remember(rig_goc_op(id, below(8) ? "room" : "cart", run.ops[op] * 8 + below(2),
				    1 + below(8000)));
	} else if (what < 11) {
		remember(rig_create("room"));
	} else if (what < 15) {
		rig_row(id, &row, &gen);
		remember(rig_closing(id, below(4) && gen ? gen : 1 + below(50)));
	} else if (what == 15) {
		remember(rig_ask(AUTH_RESOLVE, id));
	} else if (what == 16) {
		remember(rig_ask(AUTH_RECLAIM_ID, id));
	} else if (what == 17 && run.rid[0]) {
		remember(rig_ask(AUTH_RECLAIM_NODE, run.rid));
	} else if (what >= 20 && what < 23) {
		remember(rig_activate(id, "twin", 1 + below(8000)));
	} else if (what == 23) {
		rig_row(id, &row, &gen);
		if (gen)
			remember(rig_own_close(id, gen,
					       below(3) ? AUTH_IDLE_EVICTED : AUTH_EXPLICIT_CLOSE));
	} else if (what == 18) {
		remember(rig_list(NULL, 1 + below(10), NULL));
	} else {
		remember(rig_find(id));
	}
}

static bool answer(void)
{
	const enum auth_fx_kind kinds[] = {AUTH_FX_PREPARE, AUTH_FX_PUBLISH, AUTH_FX_DISCARD,
					   AUTH_FX_CLOSE_LOCAL};
	unsigned policy = below(10);

	return rig_answer(kinds[below(4)], NULL,
			  policy < 7   ? RIG_ACCEPT
			  : policy < 9 ? RIG_DECLINE
				       : RIG_FAIL);
}

static void make_stale(void)
{
	const char *id = id_of(below(IDS));

	if (below(2))
		rig_touch(id);
	else if (rig.id.rid.len)
		rig_touch_cap();
}

static void kill_dp(void)
{
	snprintf(run.rid, sizeof(run.rid), "%.*s", rig.id.rid.len, rig.id.rid.b);
	rig_kill_dp();
	run.dp_alive = false;
	run.kills++;
}

/* Control comes back: beside its dataplane, or both are new. */
static void restart(bool both)
{
	rig_restart_control();
	run.n_tags = 0; /* their callers ask again; these authorities' answers are lost */
	rig.hold_store = false;
	if (both || !run.dp_alive) {
		snprintf(run.rid, sizeof(run.rid), "%.*s", rig.id.rid.len, rig.id.rid.b);
		memset(rig.objects, 0, sizeof(rig.objects));
		rig.entry.is_there = false;
		rig.dead_dp = true;
		rig_start_host();
		run.crashes++;
	} else {
		rig_resume_host();
		run.restarts++;
	}
	run.dp_alive = true;
}

static void event(void)
{
	struct auth_event up = {.kind = AUTH_EV_LINK_UP};
	unsigned what = below(10);

	/* Only from a host that was told to the dataplane: before that it has no identity. */
	if (what < 2 && run.dp_alive && rig.id.lifecycle)
		kill_dp();
	else if (what < 4 && rig.id.lifecycle && rig.state == AUTH_HOST_SERVING)
		restart(what == 2);
	else if (what < 6)
		auth_event(rig.a, &up, rig.now);
	else if (!run.dp_alive) {
		rig.state = AUTH_HOST_PREPARING;
		rig_start_host();
		run.dp_alive = true;
	}
	rig_run();
}

static void step(void)
{
	unsigned what = below(100);

	if (what < 35)
		ask();
	else if (what < 60)
		answer();
	else if (what < 75)
		rig_release_store();
	else if (what < 80)
		rig.hold_store = !rig.hold_store;
	else if (what < 86)
		make_stale();
	else if (what < 98)
		rig_advance(below(40) ? below(400) : below(20000));
	else
		event();
}

/* ---- invariants ---- */

static void check_generations(void)
{
	struct row_obj row;
	uint64_t gen;

	for (unsigned i = 0; i < IDS; i++) {
		if (!rig_row(id_of(i), &row, &gen))
			continue;
		CU_ASSERT_FATAL(gen >= run.gen[i]);
		CU_ASSERT_FATAL(gen > run.gen[i] || row.own_gen >= run.own[i]);
		run.gen[i] = gen;
		run.own[i] = row.own_gen;
	}
}

static void check_now(void)
{
	unsigned chaos = rig.chaos;

	rig.chaos = 0;
	check_generations();
	rig_check_capacity();
	rig.chaos = chaos;
	collect();
}

/* ---- one run ---- */

/* The trouble ends: the store answers, the dataplane answers and is there, time passes. */
static void settle(void)
{
	rig.chaos = 0;
	rig.hold_store = false;
	rig.hold_dp = false;
	rig_release_store();
	if (!run.dp_alive) {
		rig_start_host();
		run.dp_alive = true;
	}
	for (int i = 0; i < 200; i++) {
		while (rig_answer(AUTH_FX_PREPARE, NULL, RIG_ACCEPT) ||
		       rig_answer(AUTH_FX_PUBLISH, NULL, RIG_ACCEPT) ||
		       rig_answer(AUTH_FX_DISCARD, NULL, RIG_ACCEPT) ||
		       rig_answer(AUTH_FX_CLOSE_LOCAL, NULL, RIG_ACCEPT))
			continue;
		rig_pass(200);
		check_now();
	}
	CU_ASSERT_EQUAL(run.n_tags, 0); /* everybody heard exactly one end */
	CU_ASSERT_EQUAL(rig.state, AUTH_HOST_SERVING);
	rig_check_rest();
}

static void show(const char *id, uint64_t tag)
{
	const struct rig_object *o = rig_object(id);
	struct row_obj row;
	uint64_t gen = 0;

	printf("%s: kind %d: %s\n", id, rig_kind(tag), rig_got(tag)->text);
	if (rig_row(id, &row, &gen))
		printf("  row: state %d, gen %llu, own_gen %llu, lease_gen %lld, %s\n", row.state,
		       (unsigned long long)gen, (unsigned long long)row.own_gen,
		       (long long)row.owner.lease_gen,
		       row.owner.owner_id.n == rig.id.owner_id.len &&
				       !memcmp(row.owner.owner_id.p, rig.id.owner_id.b,
					       rig.id.owner_id.len)
			       ? "ours"
			       : "not ours");
	if (o)
		printf("  object: state %d, gen %llu\n", o->state, (unsigned long long)o->obj_gen);
	printf("  host: state %d, lease_gen %llu\n", rig.state,
	       (unsigned long long)rig.id.lease_gen);
}

static bool is_usable(uint64_t tag)
{
	return rig_is_created(tag) || rig_is_existing(tag) || rig_kind(tag) == SPL_E_TYPE_MISMATCH;
}

/* Every id can be used again: reclaimed where its owner is dead, then created. */
static void use_all(void)
{
	uint64_t op = 1ULL << 40; /* identities that were never used */

	for (unsigned i = 0; i < IDS; i++) {
		uint64_t t = rig_goc_op(id_of(i), "room", op++, 10000);

		rig_pass(12000);
		if (rig_kind(t) == SPL_E_UNAVAILABLE) {
			t = rig_ask(AUTH_RECLAIM_ID, id_of(i));
			rig_pass(100);
			CU_ASSERT_EQUAL(rig_kind(t), SPL_OK);
			if (rig_kind(t) != SPL_OK)
				show(id_of(i), t);
			t = rig_goc_op(id_of(i), "room", op++, 10000);
			rig_pass(12000);
		}
		CU_ASSERT_TRUE(is_usable(t));
		if (!is_usable(t))
			show(id_of(i), t);
	}
	check_now();
	rig_check_rest();
}

static void one_run(uint64_t seed)
{
	memset(&run, 0, sizeof(run));
	run.failures = CU_get_number_of_failure_records();
	rig_reset();
	rig.pending_max = 3;
	rig.group_max = 1 + (unsigned)(seed % 5);
	rig.on_restart = seed % 3 == 0;
	rig.seed = seed;
	rig_open();
	rig.life = RIG_TRUE;
	run.dp_alive = true;
	rig.hold_dp = true;
	for (unsigned i = 0; i < STEPS; i++) {
		/* Bursts of store trouble, and quiet times in which things come to an end. */
		if (i % 100 == 0)
			rig.chaos = below(3) ? 0 : 5 + below(30);
		step();
		check_now();
		if (has_failed())
			break;
	}
	settle();
	use_all();
	if (has_failed())
		printf("random run with seed %llu failed\n", (unsigned long long)seed);
	rig_close();
}

static void test_random_interleavings(void)
{
	unsigned created = 0, rejected = 0, existing = 0, kills = 0, restarts = 0, crashes = 0;

	for (uint64_t s = 0; s < SEEDS; s++) {
		one_run(t_seed() + s * 1000003);
		if (has_failed())
			return;
		created += run.created;
		rejected += run.rejected;
		existing += run.existing;
		kills += run.kills;
		restarts += run.restarts;
		crashes += run.crashes;
	}
	/* The runs went where they should. */
	CU_ASSERT_TRUE(created > 100 && rejected > 20 && existing > 20);
	CU_ASSERT_TRUE(kills > 20 && restarts > 10 && crashes > 10);
}

static const struct t_case cases[] = {
	T(test_random_interleavings, "A-LOC-15", "A-LOC-5", "A-FAIL-7", "S-GEN-1"),
};
const struct t_suite suite_random = T_SUITE("authority.random", NULL, NULL, cases);
