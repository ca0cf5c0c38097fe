/* SPDX-License-Identifier: BSD-3-Clause */
/* A control process without its process: host, management server and store on one loop with a clock
 * of the test, a fake dataplane in this process or in a child, and a client on the management
 * socket. Everything waits for a condition by stepping all of them; 30 s without it fail the test.
 */
#ifndef SPL_T_HOST_RIG_H
#define SPL_T_HOST_RIG_H

#include "common/clock.h"
#include "control/host/host.h"
#include "tests/lib/t_ctl.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"

#include <CUnit/CUnit.h>
#include <jansson.h>

struct rig {
	char dir[64];
	uv_loop_t loop;
	uint64_t now; /* ns */
	struct config *cfg;
	struct host *h;
	struct mgmt_server *server;
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];
	struct t_ctl *f;		/* in this process, or */
	const struct t_ctl_seen *child; /* in a child */
	pid_t pid;
	int client;
	char *in; /* of the client, not yet a line */
	size_t in_len;
	int request_id;
	bool finished, closed;
	int exit_code;
	bool store_fails; /* of rig_control(): the memory store fails on command */
};

extern struct rig rig;

/* Directory and clock; `extra` is configuration text added to the smallest one, NULL = none. */
void rig_begin(const char *extra);
/* Ends whatever is still there, and checks that nothing is left. */
void rig_end(void);

/* Starts control: "memory" or "sqlite". */
void rig_control(const char *backend);
/* Ends it as a crash would: no row is released. */
void rig_control_dies(void);

void rig_fake(void);
void rig_child(const struct t_ctl_options *o); /* dir is filled in */
void rig_child_dies(void);
const struct t_ctl_seen *rig_seen(void);

/* One step of everything. */
void rig_step(void);
#define UNTIL(cond) T_UNTIL(cond, rig_step())

/* Lets time pass, in steps that every timer sees, and not before what a step set off is done: the
 * store has a thread of its own, whose speed is that of the machine. */
void rig_pass(uint64_t ms);

/* Waits until the node serves. */
void rig_serving(void);

/* One call: the `result`, or the `error`, with a reference of the caller. `params` is taken. */
json_t *rig_call(const char *method, json_t *params);
/* The same in two halves, for calls that wait. */
int rig_send(const char *method, json_t *params);
json_t *rig_receive(int id); /* NULL: not there yet */

/* Texts of the answers of common calls; "" when it is not there. Valid until the next one. */
const char *rig_text(const json_t *answer, const char *name);
/* "NotFound" … when the answer is an error, "" otherwise. */
const char *rig_kind(const json_t *answer);
uint64_t rig_generation(const json_t *answer); /* of "ref" */

/* GetOrCreate; returns "Created", "Existing", "Rejected" or the error kind. *gen may be NULL. */
const char *rig_get_or_create(const char *id, const char *type, uint64_t *gen);
/* Find: "found", "none" or the error kind. */
const char *rig_find(const char *id);

#endif
