/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: the frame rooms. Input: one byte of port hints, then the bytes of a frame. Aborts
 * when the two parsers disagree, a result points outside the frame, or an answer is not well
 * formed.
 */
#include "dataplane/frame/arp.h"
#include "dataplane/frame/icmp.h"
#include "dataplane/frame/parse.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/t_frame.h"

#include <stdlib.h>

#define NOW 1000000000ull

static void on_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
	FUZZ_CHECK(ip != 0);
}

static void on_frame(void *ctx, void *frame, const uint8_t *mac)
{
	FUZZ_CHECK(frame == NULL && mac == NULL);
}

static void check_agreement(const struct frame_local *l, const struct frame_view *v)
{
	struct frame_view w = {.data = v->data, .len = v->len, .rx = v->rx};

	frame_classify(l, &w);
	FUZZ_CHECK(w.kind == v->kind && v->kind < FRAME_KIND_COUNT);
	if (v->kind == FRAME_DROP) {
		FUZZ_CHECK(v->reason == w.reason && v->reason < SPL_DROP_COUNT);
		return;
	}
	if (v->kind == FRAME_OTHER)
		return;
	FUZZ_CHECK(v->payload_off == w.payload_off && v->payload_len == w.payload_len);
	FUZZ_CHECK((uint32_t)v->payload_off + v->payload_len <= v->len);
	if (v->kind == FRAME_DATA)
		FUZZ_CHECK(v->lane == w.lane && v->cls == w.cls && v->lane < l->n_lanes);
}

static void answer(const struct frame_local *l, struct frame_view *v)
{
	static const struct neigh_ops ops = {NULL, on_probe, on_frame};
	static const struct neigh_times times = NEIGH_TIMES_DEFAULT;
	struct neigh *n;
	struct bucket limit;

	if (v->kind == FRAME_ICMP) {
		bucket_init(&limit, 1, 1);
		if (icmp_echo(l, &limit, v, 1, NOW))
			FUZZ_CHECK(t_frame_check(v->data, v->len) == NULL);
		else
			FUZZ_CHECK(v->reason < SPL_DROP_COUNT);
	} else if (v->kind == FRAME_ARP) {
		n = neigh_create(4, &times, &ops, 1);
		FUZZ_CHECK(n);
		if (arp_input(l, n, v, NOW) == ARP_REPLY)
			FUZZ_CHECK(v->len == ARP_FRAME_BYTES &&
				   memcmp(v->data + 6, l->mac, 6) == 0);
		FUZZ_CHECK(neigh_counters(n)->entries <= 1);
		neigh_destroy(n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_local local = t_local(3);
	struct frame_view v = {0};
	uint8_t *copy;

	if (size < 1)
		return 0;
	copy = malloc(size -
		      1); /* exactly the frame, for the sanitizer; answers are written to it */
	FUZZ_CHECK(copy || size == 1);
	if (size > 1)
		memcpy(copy, data + 1, size - 1);
	v.data = copy;
	v.len = (uint32_t)(size - 1);
	v.rx = data[0] & 0x1f;
	frame_parse(&local, &v);
	check_agreement(&local, &v);
	FUZZ_CHECK(t_frame_expected_agrees(&local, v.data, v.len));
	answer(&local, &v);
	free(copy);
	return 0;
}
