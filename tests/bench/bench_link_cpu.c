/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench_link_cpu.h. Eight flows interleaved, packets that an engine built, in the cache; what
 * is timed is flow_rx() with its header checks, flow_consumed(), and the acknowledgements that
 * follow.
 */
#include "tests/bench/bench_link_cpu.h"
#include "dataplane/link/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FLOWS	8
#define BURST	32
#define PACKETS 2048 /* a round; each flow has its share in its window */
#define ROUNDS	100
#define AHEAD	4
#define RUNS	5

struct peer {
	struct flow *rx, *tx;
	void *rx_mem, *tx_mem;
};

static uint8_t (*packets)[SPL_DATAGRAM_BYTES];
static uint32_t lens[PACKETS];
static uint8_t payload[1200];

static void env_sent(void *host, void *handle, bool acked)
{
}

static void *env_mem_get(void *host, size_t bytes)
{
	return NULL;
}

static void env_put(void *host, void *p)
{
}

static uint64_t env_take(void *host, enum wire_class cls, uint64_t bytes)
{
	return bytes;
}

static void env_give(void *host, enum wire_class cls, uint64_t bytes)
{
}

static const struct flow_env env = {env_sent, env_mem_get, env_put, env_put,
				    env_take, env_give,	   NULL};

/* What a lane does for its burst. */
static void prefetch(uint32_t i)
{
	const uint8_t *p = packets[(i + AHEAD) % PACKETS];

	__builtin_prefetch(p);
	__builtin_prefetch(p + 64);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* the best of some runs counts */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct flow *make(void **mem, uint64_t rx_id, uint64_t tx_id)
{
	struct flow_params p;

	flow_params_default(&p);
	p.rx_id = rx_id;
	p.tx_id = tx_id;
	p.window_packets = p.window_initial = 2048;
	p.window_bytes = 1 << 24;
	for (int c = 0; c < WIRE_CLASSES; c++) {
		p.cls[c].tx_slots = p.cls[c].rx_slots = p.cls[c].peer_window = 16384;
		p.cls[c].credit_min = p.cls[c].peer_credit = 1 << 24;
		p.cls[c].credit_max = 1 << 24;
	}
	*mem = aligned_alloc(64, flow_bytes(&p));
	return *mem ? flow_init(*mem, &p, &env, NULL) : NULL;
}

/* Each sender builds its packets of a round; they lie in the order of arrival, flows interleaved.
 */
static bool build_round(struct peer *peer, uint32_t bytes, uint32_t messages, uint64_t now)
{
	enum wire_class cls;

	for (uint32_t i = 0; i < PACKETS; i++) {
		struct flow *f = peer[i % FLOWS].tx;

		for (uint32_t k = 0; k < messages; k++)
			if (flow_send(f, WIRE_APP, payload, bytes, payload))
				return false;
		lens[i] = flow_tx(f, packets[i], SPL_DATAGRAM_BYTES, now, &cls);
		if (lens[i] == 0 || cls != WIRE_APP)
			return false;
	}
	return true;
}

/* Receives the round in bursts; acknowledgements go back at the end of each. */
static uint32_t receive_round(struct peer *peer, uint64_t now, uint8_t (*acks)[SPL_DATAGRAM_BYTES],
			      uint32_t *n_acks, uint32_t *ack_lens)
{
	static struct flow_msg msgs[BURST * 64];
	uint32_t delivered = 0;

	for (uint32_t i = 0; i < PACKETS; i += BURST) {
		struct flow_sink sink = {.msgs = msgs, .room = BURST * 64};
		enum wire_class cls;

		for (uint32_t k = i; k < i + BURST; k++) {
			uint32_t before = sink.n;

			prefetch(k);
			flow_rx(peer[k % FLOWS].rx, packets[k], lens[k], packets[k], now, &sink);
			for (uint32_t m = before; m < sink.n; m++)
				flow_consumed(peer[k % FLOWS].rx, msgs[m].cls, msgs[m].charge);
		}
		delivered += sink.n;
		for (uint32_t k = 0; k < FLOWS; k++) {
			uint32_t len;

			while ((len = flow_tx(peer[k].rx, acks[*n_acks], SPL_DATAGRAM_BYTES, now,
					      &cls)) > 0)
				ack_lens[(*n_acks)++] = len << 8 | k;
		}
	}
	return delivered;
}

static double one_run(uint32_t bytes, uint32_t messages, bool *ok)
{
	static uint8_t acks[PACKETS][SPL_DATAGRAM_BYTES];
	static uint32_t ack_lens[PACKETS];
	struct peer peer[FLOWS];
	double spent = 0;

	for (uint64_t k = 0; k < FLOWS; k++) {
		peer[k].rx = make(&peer[k].rx_mem, k + 1, k + 100);
		peer[k].tx = make(&peer[k].tx_mem, k + 100, k + 1);
		*ok = *ok && peer[k].rx && peer[k].tx;
	}
	for (uint32_t r = 0; *ok && r < ROUNDS; r++) {
		uint64_t now = (uint64_t)(r + 1) * 10000000;
		uint32_t n_acks = 0, got;
		struct flow_sink none = {0};
		double t;

		*ok = build_round(peer, bytes, messages, now);
		t = seconds();
		got = receive_round(peer, now, acks, &n_acks, ack_lens);
		spent += seconds() - t;
		*ok = *ok && got == PACKETS * messages;
		for (uint32_t i = 0; i < n_acks; i++)
			flow_rx(peer[ack_lens[i] & 0xff].tx, acks[i], ack_lens[i] >> 8, NULL,
				now + 100000, &none);
	}
	for (uint32_t k = 0; k < FLOWS; k++) {
		flow_fini(peer[k].rx);
		flow_fini(peer[k].tx);
		free(peer[k].rx_mem);
		free(peer[k].tx_mem);
	}
	return spent * 1e9 / ((double)PACKETS * ROUNDS);
}

/* What the same loop costs without the engine: the header is read and the message named. */
static double bare_run(uint32_t bytes)
{
	static struct flow_msg msgs[BURST];
	volatile uint64_t sum = 0;
	double t = seconds();

	for (uint32_t r = 0; r < ROUNDS; r++)
		for (uint32_t i = 0; i < PACKETS; i += BURST) {
			for (uint32_t k = i; k < i + BURST; k++) {
				struct wire_hdr h;
				enum spl_frame_drop drop;

				prefetch(k);
				wire_hdr_get(&h, packets[k], lens[k], &drop);
				msgs[k - i] = (struct flow_msg){
					.data = packets[k] + WIRE_HDR_BYTES + WIRE_MESSAGE_BYTES,
					.len = bytes,
					.cls = h.cls,
					.ref = packets[k]};
				sum += h.number;
			}
			sum += msgs[i % BURST].len;
		}
	(void)sum;
	return (seconds() - t) * 1e9 / ((double)PACKETS * ROUNDS);
}

bool bench_link_cpu(void)
{
	static const uint32_t shape[][2] = {{64, 1}, {1024, 1}, {64, 8}, {64, 16}};
	bool ok = true;

	packets = calloc(PACKETS, sizeof(*packets));
	if (!packets)
		return false;
	printf("\nlink engine, receiving, %d flows interleaved, acknowledgements sent\n", FLOWS);
	printf("%8s %10s %14s %14s %14s\n", "bytes", "a packet", "ns/packet", "ns/message",
	       "header only");
	for (size_t s = 0; s < sizeof(shape) / sizeof(shape[0]); s++) {
		double best = 1e9, bare = 1e9;

		for (int i = 0; ok && i < RUNS; i++) {
			double v = one_run(shape[s][0], shape[s][1], &ok);
			double b = bare_run(shape[s][0]);

			best = v < best ? v : best;
			bare = b < bare ? b : bare;
		}
		printf("%8u %10u %14.1f %14.1f %14.1f\n", shape[s][0], shape[s][1], best,
		       best / shape[s][1], bare);
	}
	free(packets);
	return ok;
}
