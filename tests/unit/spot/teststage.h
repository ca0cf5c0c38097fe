/* SPDX-License-Identifier: BSD-3-Clause */
/* The stage that the tests of the room drive. Its packets:
 *
 *	add    count++ (send and request; a request is answered with the count)
 *	log    logs its payload
 *	echo   request: answered with its payload
 *	hold   payload "ID PACKET [TEXT]": request to the Spot ID, waits under HOLD, then answers
 *	       with the result ("KIND TEXT"); logs "held" and "resumed"
 *	yield  the same under YIELD; the answer is "KIND TEXT N", N what was added meanwhile; logs
 *	       "yielded" and "resumed"
 *	timer  starts or cancels a timer: see teststage.c; its callback counts like "add"
 *	cancel cancels the newest call of "hold" and "yield"; answered "won" or "late"
 *	send   payload "ID PACKET [TEXT]": one-way to ID; the return value in test_stage_rc
 *	misc   payload chooses a misuse: see teststage.c
 *	probe  test_stage_probe is called
 * on_create: the request "reject", "fail", "kind" or "hold ..." does what it says; its reply is
 * "made". Every callback counts itself in test_stage_inside, which must never pass 1 for one Spot.
 */
#ifndef SPL_TEST_SPOT_TESTSTAGE_H
#define SPL_TEST_SPOT_TESTSTAGE_H

#include "tests/unit/spot/fake.h"

#include <spotlane/stage.h>

struct test_yield {
	const void *view;
	uint32_t bytes;
	char keep[64];
	uint64_t count;
};

struct test_state {
	uint64_t count;
	uint64_t last;
	int inside;
	char keep[64];
	struct spl_call *call;
	struct spl_turn *turn;
	const void *view;
	uint32_t view_bytes;
	struct test_yield yield[4]; /* of the last handlers that have yielded */
	unsigned yields;
	struct spl_timer timer;
};

extern const struct spl_stage test_stage, test_stage_small, test_stage_plain;
extern const struct spl_stage test_stage_instance, test_stage_entry, test_stage_actors;
extern int test_stage_rc;	   /* of the last call of the stage interface */
extern uint64_t test_stage_runs;   /* callbacks entered */
extern int test_stage_overlaps;	   /* callbacks of one Spot at once: must stay 0 */
extern uint64_t test_stage_budget; /* deadline_ns - spl_now_ns() of the last message */
extern int (*test_stage_probe)(struct spl_turn *turn, void *state, const struct spl_message *msg);
extern void (*test_stage_closing)(struct test_state *state, enum spl_closing reason,
				  uint64_t deadline_ns);
extern uint64_t test_stage_closings;
extern struct spl_message test_stage_seen; /* the last message, its views dangling */

/* The fake host that a test program uses, one after another. test_begin() leaves the configuration
 * to be changed before fake_start(); test_stop() closes every Spot and checks that all is at rest.
 */
extern struct fake test_rig;
void test_begin(unsigned lanes);
void test_start(unsigned lanes);
void test_stop(void);
struct spot *test_spot(const char *id);

#endif
