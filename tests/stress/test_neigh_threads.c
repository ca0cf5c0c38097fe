/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes read the neighbour table while the agent changes it: nobody is ever told the MAC of another
 * address. Meant for the thread sanitizer; a small table, so that slots change hands all the time.
 */
#include "dataplane/frame/neigh.h"
#include "dataplane/frame/neigh_get.h"
#include "tests/lib/t_clock.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"

#include <CUnit/CUnit.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define READERS	  2u
#define ADDRESSES 40u
#define CAPACITY  8u
#define CHANGES	  200000u
#define HITS	  10000u
#define FIRST	  0x0a000002u

struct reader {
	const struct neigh_pub *pub;
	pthread_t thread;
	uint64_t asked, hits, wrong; /* w: the reader; read after it has ended */
};

static _Atomic bool stop;
static _Atomic uint64_t hits_total; /* so that the writer can wait for readers */

static void on_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
}

static void on_frame(void *ctx, void *frame, const uint8_t *mac)
{
}

/* The address is in its MAC, with a version that moves. */
static void mac_of(uint32_t ip, uint8_t version, uint8_t mac[6])
{
	mac[0] = 2;
	mac[1] = version;
	memcpy(mac + 2, &ip, 4);
}

static void *read_all(void *arg)
{
	struct reader *r = arg;
	uint8_t mac[6];
	uint32_t ip, said;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (ip = FIRST; ip < FIRST + ADDRESSES; ip++) {
			r->asked++;
			if (!neigh_get(r->pub, ip, mac))
				continue;
			memcpy(&said, mac + 2, 4);
			r->hits++;
			r->wrong += said != ip;
			atomic_fetch_add_explicit(&hits_total, 1, memory_order_relaxed);
		}
		sched_yield();
	}
	return NULL;
}

static void change(struct neigh *n, struct t_rand *r, struct t_clock *clk)
{
	uint32_t ip = FIRST + t_rand_below(r, ADDRESSES);
	uint8_t mac[6];

	switch (t_rand_below(r, 8)) {
	case 0:
		neigh_send(n, ip, NULL, clk->ns);
		break;
	case 1:
		t_clock_add(clk, t_rand_below(r, 20000) * T_MS);
		neigh_tick(n, clk->ns);
		break;
	default:
		mac_of(ip, (uint8_t)t_rand_u64(r), mac);
		neigh_learn(n, ip, mac, true, clk->ns);
	}
}

static uint64_t hits(void)
{
	return atomic_load_explicit(&hits_total, memory_order_relaxed);
}

static void test_readers_never_see_a_mixture(void)
{
	static const struct neigh_ops ops = {NULL, on_probe, on_frame};
	static const struct neigh_times times = NEIGH_TIMES_DEFAULT;
	struct neigh *n = neigh_create(CAPACITY, &times, &ops, t_seed());
	struct reader reader[READERS] = {{0}};
	struct t_rand r = {t_seed()};
	struct t_clock clk = {T_S};
	uint64_t end = t_wait_end();
	unsigned i;

	CU_ASSERT_PTR_NOT_NULL_FATAL(n);
	for (i = 0; i < READERS; i++) {
		reader[i].pub = neigh_published(n);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&reader[i].thread, NULL, read_all, &reader[i]),
				      0);
	}
	/* Goes on until readers have really read meanwhile, however the machine divides its time.
	 */
	for (i = 0; i < CHANGES || (hits() < HITS && !t_wait_over(end)); i++) {
		change(n, &r, &clk);
		if (i % 64 == 0)
			sched_yield();
		if (i == CHANGES)
			end = t_wait_end();
	}
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	CU_ASSERT(hits() >= HITS);
	for (i = 0; i < READERS; i++) {
		pthread_join(reader[i].thread, NULL);
		CU_ASSERT_EQUAL(reader[i].wrong, 0);
		CU_ASSERT(reader[i].hits > 0 && reader[i].hits < reader[i].asked);
	}
	CU_ASSERT(neigh_counters(n)->evicted > 100);
	neigh_destroy(n);
}

static const struct t_case cases[] = {
	T(test_readers_never_see_a_mixture),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("neigh_threads", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
