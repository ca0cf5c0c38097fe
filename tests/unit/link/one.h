/* SPDX-License-Identifier: BSD-3-Clause */
/* One flow by itself: a host that counts, packets built by hand, and the proof that a refused
 * packet changed nothing. For the unit tests of the link engine; one thread.
 */
#ifndef SPL_TEST_LINK_ONE_H
#define SPL_TEST_LINK_ONE_H

#include "dataplane/link/flow.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>

#define ONE_RX_ID    0xaaaaaaaaaaaa0003ULL
#define ONE_TX_ID    0xbbbbbbbbbbbb0005ULL
#define ONE_LANE     2
#define ONE_PEER     7
#define ONE_MSGS_MAX 256

struct one {
	struct flow *f;
	void *mem, *before;
	struct flow_params p;
	struct flow_msg msgs[ONE_MSGS_MAX];
	struct flow_sink sink;
	uint64_t now;
	uint64_t pool[WIRE_CLASSES], pool_size;
	int64_t mems, bufs; /* taken and not given back; bufs counts what flow_rx() reported */
	uint32_t mem_fail;  /* the next so many mem_get() fail */
	uint32_t acked, ended;
	void *last_acked;
	bool is_tight;
	uint8_t out[9000];
	uint32_t out_len;
	enum wire_class out_cls;
};

/* A packet under construction. */
struct raw {
	uint8_t b[9000];
	uint32_t len;
};

void one_params(struct flow_params *p);
/* Starts with `p`, or with one_params(); the pools have `pool` bytes each. */
void one_start(struct one *o, const struct flow_params *p, uint64_t pool);
/* Gives back what was delivered, ends the flow and checks that everything came home. */
void one_stop(struct one *o);

/* Another flow on the same pools, in `mem`; NULL when it does not come up. */
struct flow *one_second(struct one *o, void *mem, const struct flow_params *p);

/* Takes in a packet. one_drops() also checks that nothing changed. */
struct flow_rx_result one_rx(struct one *o, const struct raw *r);
bool one_drops(struct one *o, const struct raw *r, enum spl_frame_drop drop);
bool one_uses(struct one *o, const struct raw *r, enum spl_frame_use use, uint32_t delivered);

/* Gives all delivered messages to their terminal: consumed and released. */
void one_consume(struct one *o);
/* The next packet the flow sends now, in out; its length, also in out_len. */
uint32_t one_tx(struct one *o);
/* First record of `kind` about class `cls` (ACK, CREDIT, ...) in out; NULL when there is none. */
const uint8_t *one_record(const struct one *o, unsigned kind, enum wire_class cls);

void raw_begin(struct raw *r, enum wire_class cls, uint64_t number);
void raw_message(struct raw *r, uint32_t seq, uint32_t len);
void raw_fragment(struct raw *r, uint32_t seq, uint32_t off, uint32_t len, uint32_t total);
/* An ACK with one range of `n` numbers up to `largest`. */
void raw_ack(struct raw *r, enum wire_class cls, uint64_t largest, uint16_t n);
void raw_credit(struct raw *r, unsigned kind, enum wire_class cls, uint16_t epoch, uint64_t limit);
void raw_ping(struct raw *r);

/* Byte `at` of message `seq` as raw_message() and raw_fragment() write it. */
static inline uint8_t raw_byte(uint32_t seq, uint32_t at)
{
	return (uint8_t)(seq * 13 + at * 5 + (at >> 8));
}

#endif
