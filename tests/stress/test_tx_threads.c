/* SPDX-License-Identifier: BSD-3-Clause */
/* Users of one transmit queue on threads of their own: every frame leaves once, in the order of its
 * user, or is counted as dropped; every buffer comes back. Meant for the thread sanitizer. */
#include "dataplane/frame/build.h"
#include "dataplane/port/port.h"
#include "dataplane/port/tx.h"
#include "tests/lib/t_eal.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_port.h"

#include <CUnit/CUnit.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sched.h>

#define LANES  3u
#define FRAMES 20000u /* of each lane */

static struct rte_mempool *pool;
static struct t_port dev;
static struct port port;
static struct tx tx[LANES];
static uint32_t
	next[LANES]; /* w: the owner of the queue; read when it has ended, as the next two */
static uint64_t taken, wrong;
static _Atomic unsigned running; /* lanes that still send */
static _Atomic unsigned
	present; /* lanes that have not returned; EAL's own word is not instrumented */

static int setup(void)
{
	if (t_eal_start(LANES))
		return -1;
	pool = t_pool("pool", 8191, 0);
	t_port_make(&dev, "one", 1, pool);
	t_port_up(&dev, "one", &port, LANES);
	return 0;
}

static int teardown(void)
{
	unsigned used;

	t_port_down(&dev, &port);
	used = t_pool_used(pool);
	return used ? -1 : t_eal_stop();
}

/* One frame that says who sent it, and its number. false: no buffer now. */
static bool send_frame(struct tx *t, uint32_t number)
{
	static const uint8_t peer[6] = {2, 0, 0, 0, 0, 2};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct build_path path;
	uint8_t *p;

	if (!m)
		return false;
	build_path_init(&path, &port.local, 40000, peer, 0x0a000002, 50000);
	p = (uint8_t *)rte_pktmbuf_append(m, FRAME_HDR_BYTES + 8);
	build_udp(&path, 8, 0, p);
	frame_put32(p + FRAME_HDR_BYTES, t->user);
	frame_put32(p + FRAME_HDR_BYTES + 4, number);
	tx_udp(t, 0, m);
	return true;
}

/* Takes what was sent; numbers of each user only grow. On the owner's thread, because the driver is
 * not instrumented: the sanitizer does not see that its ring hands frames over in order. */
static void take(void)
{
	uint8_t out[T_FRAME_MAX];

	while (t_port_pull(&dev, 0, out)) {
		uint32_t user = frame_be32(out + FRAME_HDR_BYTES);
		uint32_t number = frame_be32(out + FRAME_HDR_BYTES + 4);

		if (user >= LANES || number < next[user])
			wrong++;
		else
			next[user] = number + 1;
		taken++;
	}
}

static void send_all(struct tx *t)
{
	for (uint32_t i = 0; i < FRAMES;) {
		if (send_frame(t, i))
			i++;
		else
			sched_yield();
		if (i % 8 == 0)
			tx_flush(t);
		if (t->user == 0) {
			tx_poll(t);
			take();
		}
	}
	tx_flush(t);
}

static int lane(void *arg)
{
	struct tx *t = arg;

	send_all(t);
	/* release: partners are the acquires here and in the test; every push is behind it */
	atomic_fetch_sub_explicit(&running, 1, memory_order_release);
	while (t->user == 0 && atomic_load_explicit(&running, memory_order_acquire) > 0) {
		if (tx_poll(t) == 0)
			sched_yield();
		take();
	}
	while (t->user == 0 && tx_poll(t) > 0)
		take();
	atomic_fetch_sub_explicit(&present, 1, memory_order_release);
	return 0;
}

static void test_users_share_a_queue(void)
{
	struct tx_net *net = tx_net_create(&port, 1, LANES, NULL, NULL);
	uint64_t dropped = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(net);
	CU_ASSERT_EQUAL(port.plan.n_tx, 1);
	atomic_store(&running, LANES);
	atomic_store(&present, LANES);
	for (unsigned u = 0; u < LANES; u++)
		tx_init(&tx[u], net, u, pool);
	for (unsigned u = 0; u < LANES; u++)
		CU_ASSERT_EQUAL_FATAL(rte_eal_remote_launch(lane, &tx[u], u + 1), 0);
	rte_eal_mp_wait_lcore();
	CU_ASSERT_EQUAL(atomic_load_explicit(&present, memory_order_acquire), 0);
	for (unsigned u = 0; u < LANES; u++) {
		dropped += tx[u].counts.dropped_full;
		CU_ASSERT(next[u] > 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(taken, tx[0].counts.sent);
	CU_ASSERT_EQUAL(taken + dropped, LANES * (uint64_t)FRAMES);
	CU_ASSERT_EQUAL(tx[1].counts.hopped + tx[1].counts.dropped_full, FRAMES);
	tx_net_destroy(net);
	CU_ASSERT_EQUAL(t_pool_used(pool), 0);
}

static const struct t_case cases[] = {
	T(test_users_share_a_queue),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("tx_threads", setup, teardown, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
