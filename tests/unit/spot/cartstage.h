/* SPDX-License-Identifier: BSD-3-Clause */
/* Instance Spots for the tests of their start and their end. Packets: "log" logs its payload (a
 * request is answered with it), "other" payload "ID PACKET TEXT": one-way to the Instance Spot ID,
 * "tell" the same by spl_send_wait(), logged
 * as "told KIND", "ask" the same as a request under HOLD, answered with "KIND TEXT", "leave" closes
 * the Spot, "timer" starts a timer of an hour, "yield" waits for the Spot "nobody" under YIELD.
 * on_initialize does what cart_initialize says; "init" and "closing REASON" are logged.
 */
#ifndef SPL_TEST_SPOT_CARTSTAGE_H
#define SPL_TEST_SPOT_CARTSTAGE_H

#include "tests/unit/spot/teststage.h"

extern const struct spl_stage cart_stage, cart_user, cart_entry;
extern int cart_initialize; /* what on_initialize returns; SPL_SUSPENDED: it waits for "nobody" */
extern bool cart_leaves_at_once; /* on_initialize asks for its own close */
extern int cart_rc;		 /* of the last call of the stage interface */
extern uint64_t cart_closings, cart_deadline_ns;
extern enum spl_closing cart_reason;

/* A host with the limits of a small lane; the idle time is f->conf.idle_ms. */
void cart_begin(unsigned lanes);

/* What control does with a question for an Instance Spot: prepares and publishes it as "cart". The
 * object generation, 0 when it failed (then the waiting are told so). */
uint64_t cart_start(void);

/* Closes as the authority does and runs to the end. */
void cart_close(const char *id, uint64_t generation, enum spl_closing reason);

#endif
