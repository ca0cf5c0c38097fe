/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of an association: beacons, cuts, closes, new lifecycles, both sides dialling. */
#include "nodes.h"

/* Takes what `x` sends now; counts the beacons and keeps the last. */
static uint32_t take_beacons(struct node *x, uint8_t *last)
{
	uint8_t out[WIRE_INIT_BYTES];
	struct assoc_addr to;
	uint32_t len, n = 0;

	while ((len = assoc_tx(x->a, out, sizeof(out), &to, now)) > 0)
		if (wire_kind(out) == SPL_PKT_BEACON) {
			memcpy(last, out, len);
			n++;
		}
	return n;
}

static uint64_t beacon_id(const uint8_t *p)
{
	return wire_load_u64(p + 16);
}

static void test_beacon_ids(void)
{
	uint8_t b[WIRE_INIT_BYTES], other[WIRE_INIT_BYTES];
	struct assoc_answer answer, none;
	uint64_t t0, id;

	connect_pair();
	t0 = now;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 0);
	now = t0 + 5 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	id = beacon_id(b);
	CU_ASSERT(id != 0);
	/* the same id again until it is acknowledged, one outstanding */
	for (int i = 1; i < 5; i++) {
		now += SECOND;
		CU_ASSERT_EQUAL(take_beacons(&na, other), 1);
		CU_ASSERT_EQUAL(beacon_id(other), id);
	}
	CU_ASSERT_EQUAL(assoc_rx(nb.a, &na.addr, b, WIRE_BEACON_BYTES, now, &answer).use,
			SPL_USE_BEACON);
	CU_ASSERT_EQUAL(wire_kind(answer.b), SPL_PKT_BEACON_ACK);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &nb.addr, answer.b, answer.len, now, &none).use,
			SPL_USE_BEACON);
	CU_ASSERT_EQUAL(none.len, 0);
	now += 100 * MS;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 0);
	now += SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	CU_ASSERT(beacon_id(b) != id);
	stop_pair();
}

/* Only the first acknowledgement of the current id on this association moves the deadline. */
static void test_beacon_deadline(void)
{
	uint8_t b[WIRE_INIT_BYTES], ack[WIRE_INIT_BYTES];
	const struct assoc_peer *peer;
	struct assoc_addr other = {{9}};
	struct assoc_answer none;
	uint64_t t0, acked_at;
	uint32_t len;

	connect_pair();
	peer = na.last_up.peer;
	t0 = now;
	now = t0 + 6 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	len = (uint32_t)wire_beacon_put(ack, peer->rx_id, beacon_id(b), peer->tx_id, true);
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	acked_at = now;
	/* duplicates, older and other ids, another source: nothing */
	now += SECOND;
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	wire_beacon_put(ack, peer->rx_id, beacon_id(b) + 1, peer->tx_id, true);
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	now = t0 + 12 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	wire_beacon_put(ack, peer->rx_id, beacon_id(b), peer->tx_id, true);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &other, ack, len, now, &none).drop, SPL_DROP_LINK_FLOW);
	wire_beacon_put(ack, peer->rx_id, beacon_id(b) - 1, peer->tx_id, true);
	assoc_rx(na.a, &nb.addr, ack, len, now, &none);
	/* the peer's own beacons do not count either */
	wire_beacon_put(ack, peer->rx_id, 77, peer->tx_id, false);
	CU_ASSERT_EQUAL(assoc_rx(na.a, &nb.addr, ack, len, now, &none).use, SPL_USE_BEACON);
	now = acked_at + 15 * SECOND - 1;
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 0);
	CU_ASSERT(assoc_next_timer(na.a) <= acked_at + 15 * SECOND);
	now = acked_at + 15 * SECOND;
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_DEADLINE);
	CU_ASSERT_EQUAL(assoc_count(na.a), 0);
	stop_pair();
}

/* Cut off for 15 s: both see it; the dial connects again, with fresh ids. */
static void test_assoc_cut_and_back(void)
{
	uint64_t id, old_rx;
	uint32_t cut = 1;

	connect_pair();
	id = na.last_up.peer->tx_id;
	old_rx = na.last_up.peer->rx_id;
	run(pair, 2, 60 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.downs + nb.downs, 0);
	run(pair, 2, 21 * SECOND, &cut);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(nb.downs, 1);
	run(pair, 2, 10 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.ups, 2);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT(na.last_up.peer->tx_id != id);
	CU_ASSERT(na.last_up.peer->rx_id != old_rx);
	CU_ASSERT_PTR_NULL(assoc_find(na.a, old_rx));
	stop_pair();
}

/* One peer that is silent costs the others nothing. */
static void test_assoc_one_peer_fails(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);
	struct assoc_params pc = params("rid-c", 30);
	struct node nc;
	struct node *const three[] = {&na, &nb, &nc};

	now = 1000 * SECOND;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	start(&nc, 3, &pc);
	assoc_dial(na.a, &nb.addr, 0, now);
	assoc_dial(nc.a, &nb.addr, 0, now);
	run(three, 3, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.ups, 2);
	run(pair, 2, 60 * SECOND, NULL); /* c stands still */
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.peer->lifecycle, 30);
	CU_ASSERT_EQUAL(na.downs, 0);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	stop(&nc);
	stop_pair();
}

/* ---- closes ---- */

static void test_assoc_orderly_close(void)
{
	uint32_t cut = 1;

	connect_pair();
	nb.keeps_slots = true;
	assoc_hangup(na.a, 0, now);
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_LOCAL);
	CU_ASSERT_EQUAL(assoc_closing(na.a), 1);
	run(pair, 2, 0, NULL);
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.reason, ASSOC_DOWN_CLOSED);
	CU_ASSERT_EQUAL(assoc_closing(na.a), 0);
	/* the slot is not used again before its release */
	CU_ASSERT_EQUAL(assoc_dial(na.a, &nb.addr, 0, now), 0);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT(nb.last_up.slot != nb.last_down.slot);
	assoc_release(nb.a, nb.last_down.slot);
	/* a close that nobody confirms is given up */
	assoc_close(nb.a, nb.last_up.slot, WIRE_CLOSE_NORMAL, now);
	run(pair, 2, 5 * SECOND, &cut);
	CU_ASSERT_EQUAL(assoc_closing(nb.a), 0);
	stop_pair();
}

static void test_assoc_shutdown(void)
{
	connect_pair();
	assoc_shutdown(nb.a, now);
	run(pair, 2, 50 * MS, NULL);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_CLOSED);
	CU_ASSERT_EQUAL(assoc_closing(nb.a), 0);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 0);
	run(pair, 2, 20 * SECOND, NULL);
	CU_ASSERT_EQUAL(assoc_next_timer(nb.a), ASSOC_NEVER); /* no beacon, no dial any more */
	CU_ASSERT_EQUAL(na.last_refusal.reason, WIRE_REFUSE_SHUTDOWN);
	CU_ASSERT_EQUAL(na.ups, 1);
	stop_pair();
}

/* The server is born anew and forgot all: the client learns it from its next beacon. */
static void test_assoc_new_lifecycle_of_server(void)
{
	struct assoc_params pb = params("rid-b", 21);

	connect_pair();
	stop(&nb);
	start(&nb, 2, &pb);
	nb.rand.s += 1000;
	run(pair, 2, 6 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.downs, 1);
	CU_ASSERT_EQUAL(na.last_down.reason, ASSOC_DOWN_LOST);
	CU_ASSERT_EQUAL(na.ups, 2);
	CU_ASSERT_EQUAL(na.last_up.peer->lifecycle, 21);
	stop_pair();
}

/* "Unknown" is believed only for the beacon that is outstanding. */
static void test_assoc_forged_unknown(void)
{
	struct wire_close m = {.reason = WIRE_CLOSE_UNKNOWN, .is_answer = 1};
	const struct assoc_peer *peer;
	uint8_t p[WIRE_INIT_BYTES], b[WIRE_INIT_BYTES];
	struct assoc_answer none;
	uint32_t len;

	connect_pair();
	peer = na.last_up.peer;
	len = (uint32_t)wire_close_pkt_put(p, peer->rx_id, 0, &m);
	assoc_rx(na.a, &nb.addr, p, len, now, &none);
	now += 5 * SECOND;
	CU_ASSERT_EQUAL(take_beacons(&na, b), 1);
	wire_close_pkt_put(p, peer->rx_id, beacon_id(b) + 1, &m);
	assoc_rx(na.a, &nb.addr, p, len, now, &none);
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 0);
	wire_close_pkt_put(p, peer->rx_id, beacon_id(b), &m);
	assoc_rx(na.a, &nb.addr, p, len, now, &none);
	events(&na);
	CU_ASSERT_EQUAL(na.downs, 1);
	stop_pair();
}

/* The client lost its side and connects again in the same lifecycle: old down before new up. */
static void test_assoc_reconnect_same_lifecycle(void)
{
	struct assoc_params pa = params("rid-a", 10);

	connect_pair();
	stop(&na);
	start(&na, 1, &pa);
	na.rand.s += 1000;
	assoc_dial(na.a, &nb.addr, 0, now);
	run(pair, 2, SECOND, NULL);
	CU_ASSERT_EQUAL(nb.downs, 1);
	CU_ASSERT_EQUAL(nb.last_down.reason, ASSOC_DOWN_REPLACED);
	CU_ASSERT_EQUAL(nb.ups, 2);
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	run(pair, 2, 60 * SECOND, NULL);
	CU_ASSERT_EQUAL(na.downs, 0);
	CU_ASSERT_EQUAL(nb.downs, 1);
	stop_pair();
}

/* Both dial each other at once: one association, and it stays. */
static void test_assoc_both_dial(void)
{
	for (int order = 0; order < 2; order++) {
		struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);

		now = 1000 * SECOND;
		start(&na, 1, &pa);
		start(&nb, 2, &pb);
		assoc_dial(order ? nb.a : na.a, order ? &na.addr : &nb.addr, 0, now);
		if (order)
			run(pair, 2, 0, NULL);
		assoc_dial(order ? na.a : nb.a, order ? &nb.addr : &na.addr, 0, now);
		run(pair, 2, 120 * SECOND, NULL);
		CU_ASSERT_EQUAL(assoc_count(na.a), 1);
		CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
		CU_ASSERT(na.ups <= 2 && nb.ups <= 2);
		CU_ASSERT_EQUAL(na.last_up.peer->tx_id, nb.last_up.peer->rx_id);
		stop_pair();
	}
}

/* Reconnects far more often than there are slots: ids never repeat, slots come back. */
static void test_assoc_many_lives(void)
{
	uint64_t seen[300];

	connect_pair();
	for (uint32_t i = 0; i < T_COUNT(seen); i++) {
		seen[i] = nb.last_up.peer->rx_id;
		for (uint32_t k = 0; k < i; k++)
			CU_ASSERT(seen[k] != seen[i]);
		assoc_close(i % 2 ? na.a : nb.a, i % 2 ? na.last_up.slot : nb.last_up.slot,
			    WIRE_CLOSE_NORMAL, now);
		run(pair, 2, 500 * MS, NULL);
		CU_ASSERT_EQUAL(na.ups, i + 2);
	}
	CU_ASSERT_EQUAL(assoc_count(nb.a), 1);
	stop_pair();
}

static const struct t_case cases[] = {
	T(test_beacon_ids, "A-LIVE-1"),
	T(test_beacon_deadline, "A-LIVE-1", "A-LIVE-2"),
	T(test_assoc_cut_and_back, "A-LIVE-2", "A-LIVE-7"),
	T(test_assoc_one_peer_fails, "A-LIVE-6"),
	T(test_assoc_orderly_close, "A-LIVE-2", "A-LIVE-7"),
	T(test_assoc_shutdown, "A-LIVE-9"),
	T(test_assoc_new_lifecycle_of_server, "A-LIVE-7"),
	T(test_assoc_forged_unknown),
	T(test_assoc_reconnect_same_lifecycle, "A-LIVE-7"),
	T(test_assoc_both_dial),
	T(test_assoc_many_lives, "A-LIVE-7"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("assoc_live", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
