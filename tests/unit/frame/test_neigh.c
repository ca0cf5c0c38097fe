/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table: resolution, waiting frames, retry with backoff, ageing, eviction, what lanes
 * see, and allocation failure. Time is the test's. */
#include "dataplane/frame/neigh.h"
#include "dataplane/frame/neigh_get.h"
#include "tests/lib/t_clock.h"
#include "tests/lib/t_failalloc.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>

#define A 0x0a000002u
#define B 0x0a000003u

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa}, mac_b[6] = {2, 0, 0, 0, 0, 0xb};

/* What the table asked the outside to do. */
static struct {
	unsigned probes, broadcasts, sent, dropped;
	uint32_t probe_ip;
	uint8_t sent_mac[6];
	uintptr_t order[64]; /* frames, in the order they left */
	unsigned n_order;
} out;

static struct t_clock clk;
static struct neigh *n;

static void on_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
	CU_ASSERT_PTR_EQUAL(ctx, &out);
	out.probes++;
	out.broadcasts += mac == NULL;
	out.probe_ip = ip;
}

static void on_frame(void *ctx, void *frame, const uint8_t *mac)
{
	CU_ASSERT_PTR_EQUAL(ctx, &out);
	if (out.n_order < T_COUNT(out.order))
		out.order[out.n_order++] = (uintptr_t)frame;
	if (!mac) {
		out.dropped++;
		return;
	}
	out.sent++;
	memcpy(out.sent_mac, mac, 6);
}

static const struct neigh_ops ops = {&out, on_probe, on_frame};
static const struct neigh_times times = NEIGH_TIMES_DEFAULT;

static void make(unsigned capacity)
{
	memset(&out, 0, sizeof(out));
	clk.ns = 1000 * T_S;
	n = neigh_create(capacity, &times, &ops, t_seed());
	CU_ASSERT_PTR_NOT_NULL_FATAL(n);
}

static void done(void)
{
	neigh_destroy(n);
	n = NULL;
}

static void *frame(uintptr_t i)
{
	return (void *)i;
}

static bool get(uint32_t ip, const uint8_t *want)
{
	uint8_t mac[6];

	return neigh_get(neigh_published(n), ip, mac) && memcmp(mac, want, 6) == 0;
}

static bool resolved(uint32_t ip)
{
	uint8_t mac[6];

	return neigh_get(neigh_published(n), ip, mac);
}

/* Moves time to `until` as the agent does: each call at the moment the last one asked for. */
static void run_until(uint64_t until)
{
	uint64_t next = neigh_tick(n, clk.ns);

	while (next <= until) {
		CU_ASSERT_FATAL(next > clk.ns);
		clk.ns = next;
		next = neigh_tick(n, clk.ns);
	}
	clk.ns = until;
}

static void test_resolve(void)
{
	make(16);
	CU_ASSERT_FALSE(resolved(A));
	neigh_send(n, A, frame(1), clk.ns);
	CU_ASSERT_EQUAL(out.probes, 1);
	CU_ASSERT_EQUAL(out.broadcasts, 1);
	CU_ASSERT_EQUAL(out.probe_ip, A);
	CU_ASSERT_EQUAL(out.n_order, 0);
	neigh_send(n, A, frame(2), clk.ns);
	CU_ASSERT_EQUAL(out.probes, 1); /* one question for both */
	neigh_learn(n, A, mac_a, false, clk.ns);
	CU_ASSERT_EQUAL(out.sent, 2);
	CU_ASSERT_EQUAL(out.order[0], 1);
	CU_ASSERT_EQUAL(out.order[1], 2);
	CU_ASSERT_EQUAL(memcmp(out.sent_mac, mac_a, 6), 0);
	CU_ASSERT_TRUE(get(A, mac_a));
	neigh_send(n, A, frame(3), clk.ns); /* at once now */
	CU_ASSERT_EQUAL(out.sent, 3);
	CU_ASSERT_FALSE(resolved(B));
	CU_ASSERT_FALSE(resolved(0));
	done();
}

static void test_waiting_frames_are_bounded(void)
{
	make(16);
	for (uintptr_t i = 1; i <= NEIGH_PENDING_MAX + 2; i++)
		neigh_send(n, A, frame(i), clk.ns);
	CU_ASSERT_EQUAL(out.dropped, 2); /* the oldest */
	CU_ASSERT_EQUAL(out.order[0], 1);
	CU_ASSERT_EQUAL(out.order[1], 2);
	neigh_learn(n, A, mac_a, false, clk.ns);
	CU_ASSERT_EQUAL(out.sent, NEIGH_PENDING_MAX);
	CU_ASSERT_EQUAL(out.order[2], 3);
	CU_ASSERT_EQUAL(neigh_counters(n)->pending_dropped, 2);
	done();
}

static void test_destroy_gives_waiting_frames_back(void)
{
	make(16);
	neigh_send(n, A, frame(1), clk.ns);
	neigh_send(n, B, frame(2), clk.ns);
	done();
	CU_ASSERT_EQUAL(out.dropped, 2);
}

static void test_no_answer(void)
{
	make(16);
	neigh_send(n, A, frame(1), clk.ns);
	run_until(clk.ns + 2 * T_S);
	CU_ASSERT_EQUAL(out.probes, 3);
	CU_ASSERT_EQUAL(out.dropped, 0);
	run_until(clk.ns + T_S);
	CU_ASSERT_EQUAL(out.probes, 3);
	CU_ASSERT_EQUAL(out.dropped, 1);
	CU_ASSERT_EQUAL(neigh_counters(n)->failed, 1);
	neigh_send(n, A, frame(2), clk.ns); /* failed a moment ago: no new question */
	CU_ASSERT_EQUAL(out.dropped, 2);
	CU_ASSERT_EQUAL(out.probes, 3);
	run_until(clk.ns + 2 * T_S);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 0); /* forgotten */
	neigh_send(n, A, frame(3), clk.ns);
	CU_ASSERT_EQUAL(out.probes, 4);
	done();
}

/* D62: silent for two minutes, then back. Neither the neighbour nor the asking goes away. */
static void test_configured_peer_recovers(void)
{
	unsigned before;

	make(16);
	CU_ASSERT_EQUAL(neigh_keep(n, A, clk.ns), 0);
	CU_ASSERT_EQUAL(out.probes, 1);
	neigh_learn(n, A, mac_a, false, clk.ns);
	run_until(clk.ns + 120 * T_S);
	CU_ASSERT_FALSE(resolved(A));
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 1);
	before = out.probes;
	run_until(clk.ns + 60 * T_S); /* asked with the longest pause, but asked */
	CU_ASSERT(out.probes - before >= 7 && out.probes - before <= 8);
	neigh_learn(n, A, mac_b, false, clk.ns);
	CU_ASSERT_TRUE(get(A, mac_b));
	done();
}

static void test_backoff_grows(void)
{
	static const unsigned at[] = {0, 1, 2, 4, 6, 10, 18, 26}; /* seconds of each question */
	uint64_t start;

	make(16);
	start = clk.ns;
	CU_ASSERT_EQUAL(neigh_keep(n, A, clk.ns), 0);
	for (unsigned i = 1; i < T_COUNT(at); i++) {
		run_until(start + at[i] * T_S - 1);
		CU_ASSERT_EQUAL(out.probes, i);
		run_until(start + at[i] * T_S);
		CU_ASSERT_EQUAL(out.probes, i + 1);
	}
	done();
}

static void test_unkeep(void)
{
	make(16);
	CU_ASSERT_EQUAL(neigh_keep(n, A, clk.ns), 0);
	neigh_unkeep(n, A, clk.ns);
	neigh_unkeep(n, B, clk.ns); /* unknown: nothing */
	run_until(clk.ns + 10 * T_S);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 0);
	CU_ASSERT_EQUAL(neigh_keep(n, 0, clk.ns), -EINVAL);
	done();
}

/* A used neighbour is asked again, by unicast first, and stays usable meanwhile. */
static void test_used_neighbour_is_verified(void)
{
	make(16);
	neigh_send(n, A, frame(1), clk.ns);
	neigh_learn(n, A, mac_a, false, clk.ns);
	run_until(clk.ns + 29 * T_S);
	CU_ASSERT_TRUE(get(A, mac_a)); /* marks it used */
	CU_ASSERT_EQUAL(out.probes, 1);
	run_until(clk.ns + T_S);
	CU_ASSERT_EQUAL(out.probes, 2);
	CU_ASSERT_EQUAL(out.broadcasts, 1);
	CU_ASSERT_TRUE(get(A, mac_a));
	neigh_learn(n, A, mac_a, false, clk.ns);
	run_until(clk.ns + 29 * T_S);
	CU_ASSERT_EQUAL(out.probes, 2);
	done();
}

/* The last question goes to everybody, so that a new MAC is found. */
static void test_verification_fails(void)
{
	make(16);
	neigh_send(n, A, frame(1), clk.ns);
	neigh_learn(n, A, mac_a, false, clk.ns);
	CU_ASSERT_TRUE(get(A, mac_a));
	run_until(clk.ns + 32 * T_S);
	CU_ASSERT_EQUAL(out.probes, 4);
	CU_ASSERT_EQUAL(out.broadcasts, 2);
	CU_ASSERT_TRUE(get(A, mac_a));
	run_until(clk.ns + T_S);
	CU_ASSERT_FALSE(resolved(A));
	done();
}

static void test_unused_neighbour_is_forgotten(void)
{
	make(16);
	neigh_learn(n, A, mac_a, true, clk.ns);
	run_until(clk.ns + 200 * T_S);
	CU_ASSERT_TRUE(get(A, mac_a)); /* used: the time starts anew, and it is asked */
	CU_ASSERT_EQUAL(out.probes, 0);
	run_until(clk.ns + 10 * T_S);
	CU_ASSERT_EQUAL(out.probes, 1);
	neigh_learn(n, A, mac_a, false, clk.ns);
	run_until(clk.ns + 280 * T_S);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 1);
	run_until(clk.ns + 60 * T_S);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 0);
	CU_ASSERT_FALSE(resolved(A));
	CU_ASSERT_EQUAL(out.probes, 1); /* an idle one is not asked for */
	CU_ASSERT_EQUAL(neigh_tick(n, clk.ns), UINT64_MAX);
	done();
}

static void test_strangers_need_a_reason(void)
{
	make(16);
	neigh_learn(n, A, mac_a, false, clk.ns);
	CU_ASSERT_FALSE(resolved(A));
	neigh_learn(n, A, mac_a, true, clk.ns);
	CU_ASSERT_TRUE(get(A, mac_a));
	neigh_learn(n, A, mac_b, false, clk.ns); /* moved */
	CU_ASSERT_TRUE(get(A, mac_b));
	CU_ASSERT_EQUAL(neigh_counters(n)->moved, 1);
	neigh_learn(n, 0, mac_b, true, clk.ns);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 1);
	done();
}

/* Learning from a flood of strangers neither grows the table nor pushes out who is in use. */
static void test_flood_of_strangers(void)
{
	make(64);
	CU_ASSERT_EQUAL(neigh_keep(n, A, clk.ns), 0);
	neigh_learn(n, A, mac_a, false, clk.ns);
	neigh_learn(n, B, mac_b, true, clk.ns);
	for (uint32_t ip = 0x0b000001; ip < 0x0b004000; ip++) {
		CU_ASSERT_TRUE(get(B, mac_b));
		neigh_learn(n, ip, mac_b, true, clk.ns);
		CU_ASSERT(neigh_counters(n)->entries <= 64);
	}
	CU_ASSERT_TRUE(get(A, mac_a));
	CU_ASSERT_TRUE(get(B, mac_b));
	CU_ASSERT(neigh_counters(n)->evicted > 10000);
	done();
}

/* Full of neighbours that may not go: refused and counted, frames given back. */
static void test_full(void)
{
	unsigned kept = 0;

	make(32);
	for (uint32_t ip = 1; ip <= 64; ip++)
		kept += neigh_keep(n, 0x0b000000 + ip, clk.ns) == 0;
	CU_ASSERT(kept >= 24 && kept <= 32);
	CU_ASSERT_EQUAL(neigh_counters(n)->full, 64 - kept);
	for (uint32_t ip = 1; ip <= 64; ip++) /* already there: no room needed */
		kept -= neigh_keep(n, 0x0b000000 + ip, clk.ns) == 0;
	CU_ASSERT_EQUAL(kept, 0);
	out.dropped = 0;
	if (neigh_counters(n)->entries == 32)
		neigh_send(n, A, frame(1), clk.ns);
	CU_ASSERT_EQUAL(out.dropped, neigh_counters(n)->entries == 32);
	done();
}

/* Half as many neighbours as slots all find a place in their windows, nearly. */
static void test_capacity_can_be_used(void)
{
	unsigned found = 0;

	make(4096);
	for (uint32_t i = 0; i < 4096; i++)
		neigh_learn(n, 0x0a010000 + i, mac_a, true, clk.ns);
	for (uint32_t i = 0; i < 4096; i++)
		found += resolved(0x0a010000 + i);
	CU_ASSERT(found >= 4096 - 8);
	done();
}

static void test_standing_and_backward_time(void)
{
	unsigned probes;

	make(16);
	neigh_send(n, A, frame(1), clk.ns);
	probes = out.probes;
	for (unsigned i = 0; i < 10; i++) {
		neigh_tick(n, clk.ns);
		neigh_tick(n, clk.ns - 5 * T_S);
		neigh_tick(n, 0);
	}
	CU_ASSERT_EQUAL(out.probes, probes);
	CU_ASSERT_EQUAL(neigh_tick(n, clk.ns), clk.ns + T_S);
	done();
}

/* A jump over hours does each due thing once and leaves a sound table. */
static void test_time_jump(void)
{
	make(16);
	neigh_send(n, A, frame(1), clk.ns);
	CU_ASSERT_EQUAL(neigh_keep(n, B, clk.ns), 0);
	t_clock_add(&clk, 7200 * T_S);
	neigh_tick(n, clk.ns);
	CU_ASSERT_EQUAL(out.probes, 4);
	run_until(clk.ns + 60 * T_S);
	CU_ASSERT_EQUAL(out.dropped, 1);
	CU_ASSERT_EQUAL(neigh_counters(n)->entries, 1);
	done();
}

static void test_refused_parameters(void)
{
	struct neigh_times bad = times;

	CU_ASSERT_PTR_NULL(neigh_create(0, &times, &ops, 1));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NULL(neigh_create(NEIGH_CAP_MAX + 1, &times, &ops, 1));
	bad.probes = 0;
	CU_ASSERT_PTR_NULL(neigh_create(1, &bad, &ops, 1));
	bad = times;
	bad.probe_ns = 0;
	CU_ASSERT_PTR_NULL(neigh_create(1, &bad, &ops, 1));
	neigh_destroy(NULL);
}

static void test_no_memory(void)
{
	unsigned i;

	for (i = 1; t_fail_more(&i); i++) {
		t_fail_at(i);
		n = neigh_create(64, &times, &ops, 1);
		t_fail_stop();
		if (t_fail_hit()) {
			CU_ASSERT_PTR_NULL(n);
			CU_ASSERT_EQUAL(errno, ENOMEM);
		} else {
			CU_ASSERT_PTR_NOT_NULL(n);
		}
		neigh_destroy(n);
	}
	CU_ASSERT(i > 3);
}

/* Random operations against a plain model of who must be resolved and where every frame is. */
static void test_frames_are_conserved(void)
{
	struct t_rand r = {t_seed()};
	unsigned given = 0;

	make(32);
	for (unsigned step = 0; step < 100000; step++) {
		uint32_t ip = 0x0a000002 + t_rand_below(&r, 60);
		uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)ip};

		switch (t_rand_below(&r, 6)) {
		case 0:
		case 1:
			neigh_send(n, ip, frame(++given), clk.ns);
			break;
		case 2:
			neigh_learn(n, ip, mac, t_rand_below(&r, 2), clk.ns);
			break;
		case 3:
			if (t_rand_below(&r, 20) == 0 && neigh_keep(n, ip, clk.ns) == 0 &&
			    t_rand_below(&r, 2))
				neigh_unkeep(n, ip, clk.ns);
			break;
		default:
			t_clock_add(&clk, t_rand_below(&r, 2000) * T_MS);
			neigh_tick(n, clk.ns);
		}
		if (neigh_get(neigh_published(n), ip, mac))
			CU_ASSERT_EQUAL(mac[5], (uint8_t)ip);
		CU_ASSERT(neigh_counters(n)->entries <= 32);
	}
	done();
	CU_ASSERT_EQUAL(out.sent + out.dropped, given);
}

static const struct t_case cases[] = {
	T(test_resolve),
	T(test_waiting_frames_are_bounded),
	T(test_destroy_gives_waiting_frames_back),
	T(test_no_answer),
	T(test_configured_peer_recovers),
	T(test_backoff_grows),
	T(test_unkeep),
	T(test_used_neighbour_is_verified),
	T(test_verification_fails),
	T(test_unused_neighbour_is_forgotten),
	T(test_strangers_need_a_reason),
	T(test_flood_of_strangers),
	T(test_full),
	T(test_capacity_can_be_used),
	T(test_standing_and_backward_time),
	T(test_time_jump),
	T(test_refused_parameters),
	T(test_no_memory),
	T(test_frames_are_conserved),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("neigh", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
