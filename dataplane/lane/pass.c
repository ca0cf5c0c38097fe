/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: one pass of a lane, and the loop of passes. The order is that of
 * docs/architecture.md: receive, drain the rings, admit, run turns, timers, transmit; then idle,
 * which is the only place that sleeps.
 */
#include "dataplane/lane/lane.h"

#include "common/clock.h"

#include <rte_lcore.h>
#include <rte_mempool.h>
#include <rte_pause.h>
#include <rte_ring.h>

#define POOL_LOOK   8u	  /* passes between two looks at the pool */
#define TRACE_CLOCK 4096u /* and between two readings of the wall clock */

/* Reads both clocks and moves the lease into cycles: past it nothing new starts (S-LEASE-2). */
static void read_clocks(struct lane *l)
{
	uint64_t lease = atomic_load_explicit(&l->sh->lease_deadline, memory_order_acquire);
	uint64_t cycles, ns;

	l->now = spot_now(&l->clock);
	ns = l->sh->fake_ns ? *l->sh->fake_ns : clock_boot_ns();
	if (ns > l->now_ns) /* move_clocks() may have been a little ahead */
		l->now_ns = ns;
	if (lease == UINT64_MAX)
		cycles = UINT64_MAX;
	else if (lease <= l->now_ns)
		cycles = 0;
	else
		cycles = l->now + spot_from_ns(&l->clock, lease - l->now_ns);
	/* The heap holds back an eighth, so that replies find room when requests fill it; one a
	 * pass always starts, because its end may be what frees the heap. */
	spot_lane_set(l->spots, cycles, l->pool_is_low,
		      lanemem_left(l->mem) > l->mem->bytes / LANE_HELD_BACK ? UINT32_MAX : 1);
}

/* One look at the level a pass; the clock that the trace shows is set again now and then. */
static void look_at_trace(struct lane *l)
{
	uint64_t word = atomic_load_explicit(&l->sh->trace, memory_order_relaxed);

	if (word == l->trace && l->loops % TRACE_CLOCK != 0)
		return;
	l->trace = word;
	spot_lane_trace(l->spots, word, l->now, l->sh->fake_ns ? *l->sh->fake_ns : clock_real_ns());
}

static void look_at_pool(struct lane *l)
{
	const struct rte_mempool *p = l->sh->pool;

	if (l->loops % POOL_LOOK != 0 && !l->pool_is_low)
		return;
	l->pool_is_low = rte_ring_count(p->pool_data) < l->sh->pool_low;
	if (!l->pool_is_low)
		return;
	lane_count(l, SPL_C_MBUFS_LOW, 1);
	lane_count(l, SPL_C_LINK_COPIED_OUT, spot_copy_out(l->spots, LANE_COPY_OUT));
}

static void take_item(struct lane *l, void *item)
{
	switch (hop_kind(item)) {
	case HOP_FRAME: /* taken in runs: take_items() */
		break;
	case HOP_MESSAGE:
		lane_input_message(l, hop_pointer(item));
		break;
	case HOP_RETURN:
		lane_returned(l, hop_pointer(item));
		break;
	case HOP_COMMAND:
		lane_command(l, hop_pointer(item));
		break;
	case HOP_EVENT:
		lane_event_done(l, hop_pointer(item));
		break;
	}
}

/* In their order; frames that follow each other together. */
static void take_items(struct lane *l, void *const *item, unsigned n)
{
	struct rte_mbuf *m[LANE_POP];
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++) {
		if (hop_kind(item[i]) == HOP_FRAME) {
			m[frames++] = hop_pointer(item[i]);
			continue;
		}
		lane_rx_hopped(l, m, frames);
		frames = 0;
		take_item(l, item[i]);
	}
	lane_rx_hopped(l, m, frames);
}

static unsigned drain_rings(struct lane *l)
{
	const struct hop *h = &l->sh->hop;
	unsigned total = 0, from = lane_turn_of(&l->ring_at, h->users);

	for (unsigned i = 0; i < h->users; i++, from++) {
		void *item[LANE_POP];
		unsigned n;

		if (from >= h->users)
			from = 0;
		if (from == l->index || hop_empty(h, from, l->index))
			continue;
		n = hop_pop(h, from, l->index, item, LANE_POP);
		take_items(l, item, n);
		total += n;
	}
	return total;
}

/* A pass that did work ends where the next one begins: nothing idles in between. `began` is 0 after
 * one that did not. */
static void note_length(struct lane *l)
{
	uint64_t *max = &l->stats->counter[SPL_C_LOOP_CYCLES_MAX];

	if (l->began && l->now - l->began > *max)
		__atomic_store_n(max, l->now - l->began, __ATOMIC_RELAXED);
	l->began = l->now;
}

static void publish_stats(struct lane *l)
{
	__atomic_store_n(&l->stats->counter[SPL_C_FRAMES_TX], l->tx.counts.sent, __ATOMIC_RELAXED);
	__atomic_store_n(&l->stats->counter[SPL_C_FRAMES_TX_DROPPED],
			 l->tx.counts.dropped_full + l->tx.counts.dropped_down +
				 l->tx.counts.dropped_size + l->tx.counts.dropped_nombuf,
			 __ATOMIC_RELAXED);
}

/* What came in, and the turns of it. */
static unsigned take_in(struct lane *l, uint64_t until)
{
	unsigned work = spot_timers(l->spots, l->now, LANE_TURNS);

	work += lane_rx_ports(l);
	work += drain_rings(l);
	lane_input_flush(l);
	work += spot_tick(l->spots, l->now, LANE_TURNS);
	return work + spot_run(l->spots, LANE_TURNS, until);
}

/* Both clocks by the counter alone, within a pass. */
static void move_clocks(struct lane *l)
{
	uint64_t now = spot_now(&l->clock);

	l->now_ns += spot_to_ns(&l->clock, now - l->now);
	l->now = now;
}

/* Under a flood several bursts one after another, because the rest of a pass costs the same for all
 * of them; as long as each has run to its end, in time, and nothing that others wait for is to be
 * sent: replies, or frames of other lanes for our transmit queue. */
static unsigned take_more(struct lane *l, uint64_t until)
{
	unsigned work = 0;

	for (unsigned i = 1; i < LANE_BURSTS && l->is_flooded && !l->is_urgent; i++) {
		if (spot_ready(l->spots) || l->pool_is_low || tx_waiting(&l->tx))
			break;
		move_clocks(l);
		if (l->now >= until)
			break;
		work += take_in(l, until);
	}
	return work;
}

unsigned lane_pass(struct lane *l)
{
	unsigned work = 0;
	uint64_t until;

	l->loops++;
	read_clocks(l);
	note_length(l);
	look_at_trace(l);
	look_at_pool(l);
	lane_retry(l);
	until = l->now + spot_from_us(&l->clock, LANE_PASS_US);
	work += take_in(l, until);
	work += take_more(l, until);
	if (__builtin_expect(l->settling != NULL, 0))
		lane_settle(l);
	lane_flows_timers(l);
	work += lane_flows_tx(l);
	work += tx_poll(&l->tx);
	tx_flush(&l->tx);
	lane_count(l, SPL_C_LOOPS, 1);
	if (!work) {
		l->began = 0;
		return 0;
	}
	lane_count(l, SPL_C_LOOPS_BUSY, 1);
	publish_stats(l);
	return work;
}

/* Until the next timer of this lane, microseconds, at most `max`. */
static uint32_t due_us(const struct lane *l, uint32_t max)
{
	uint64_t due = lane_flows_due(l);

	if (due <= l->now_ns)
		return 0;
	due = (due - l->now_ns) / 1000u;
	return due < max ? (uint32_t)due : max;
}

static void idle(struct lane *l)
{
	struct lane_shared *sh = l->sh;
	uint32_t max = sh->nap_us_max;
	struct wake *w = &sh->hop.wake[l->index];

	if (spot_ready(l->spots) || l->dirty || l->n_input || l->answered_head || l->raised_head ||
	    lane_later_any(l) || l->n_undrained)
		max = 0;
	switch (idle_next(&l->idle, max ? due_us(l, max) : 0)) {
	case IDLE_SPIN:
		rte_pause();
		break;
	case IDLE_YIELD:
		lane_count(l, SPL_C_NAPS, 1);
		wake_yield();
		break;
	case IDLE_NAP:
		tx_reclaim(&l->tx);
		wake_park(w);
		if (hop_idle(&sh->hop, l->index) && !tx_waiting(&l->tx) &&
		    !atomic_load_explicit(&sh->stop, memory_order_relaxed)) {
			lane_count(l, SPL_C_NAPS, 1);
			wake_sleep(w, NULL, 0, l->idle.nap_us);
		}
		wake_unpark(w);
		break;
	}
}

int lane_main(void *arg)
{
	struct lane *l = arg;

	while (!atomic_load_explicit(&l->sh->stop, memory_order_acquire)) {
		if (lane_pass(l))
			idle_busy(&l->idle);
		else
			idle(l);
	}
	tx_fini(&l->tx);
	return 0;
}
