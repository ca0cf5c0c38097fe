/* SPDX-License-Identifier: BSD-3-Clause */
/* The link and the fake dataplane on one loop, stepped together; for the two programs beside it. */
#ifndef SPL_T_DPLINK_RIG_H
#define SPL_T_DPLINK_RIG_H

#include "control/dplink/dplink.h"
#include "tests/lib/t_ctl.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spotlane/errors.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig {
	char dir[64];
	uv_loop_t loop;
	struct dplink *l;
	struct t_ctl *f;
	uint64_t now;
	unsigned ups, downs, deads, messages, ends;
	uint64_t up_epoch, dead_epoch;
	int end_rc[4096]; /* by tag */
	int end_kind, message_rc;
	uint8_t hello_state;
	struct dp_header last;
	bool closed;
} rig;

static inline uint64_t fake_now(void *ctx)
{
	return rig.now;
}

static inline void on_up(void *ctx, uint64_t epoch, const struct dp_hello *h)
{
	rig.ups++;
	rig.up_epoch = epoch;
	rig.hello_state = h->state;
}

static inline void on_down(void *ctx)
{
	rig.downs++;
}

static inline void on_dead(void *ctx, uint64_t epoch)
{
	rig.deads++;
	rig.dead_epoch = epoch;
}

static inline int on_message(void *ctx, struct dplink_msg *m)
{
	rig.messages++;
	rig.last = m->h;
	return rig.message_rc;
}

static const struct dplink_ops ops = {on_up, on_down, on_dead, on_message};

static inline void on_end(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	rig.ends++;
	rig.end_rc[tag] = end->rc;
	rig.end_kind = end->kind;
	CU_ASSERT_EQUAL(end->m != NULL, end->rc == 0);
}

static inline void on_closed(void *arg)
{
	rig.closed = true;
}

static inline void open_link(uint32_t out_max)
{
	const struct dplink_options o = {
		.dir = rig.dir, .ops = &ops, .now = fake_now, .out_max = out_max};

	CU_ASSERT_EQUAL_FATAL(dplink_open(&rig.l, &rig.loop, &o), 0);
}

static inline void open_fake(void)
{
	const struct t_ctl_options o = {.dir = rig.dir};

	CU_ASSERT_EQUAL_FATAL(t_ctl_open(&rig.f, &o), 0);
}

static inline void setup(void)
{
	memset(&rig, 0, sizeof(rig));
	strcpy(rig.dir, "/tmp/t_dplink.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(rig.dir));
	rig.now = 1000000000;
	uv_loop_init(&rig.loop);
	memset(rig.end_rc, 0x55, sizeof(rig.end_rc));
}

static inline void turn(void)
{
	if (rig.f)
		t_ctl_step(rig.f, 1);
	uv_run(&rig.loop, UV_RUN_NOWAIT);
}

/* Steps both ends until `cond`; a test that hangs here is ended by the runner's time limit. */
#define UNTIL(cond) \
	do { \
		turn(); \
	} while (!(cond))

static inline void teardown(void)
{
	char path[128];

	if (rig.l)
		dplink_close(rig.l, on_closed, NULL);
	while (rig.l && !rig.closed)
		uv_run(&rig.loop, UV_RUN_NOWAIT);
	uv_run(&rig.loop, UV_RUN_DEFAULT);
	CU_ASSERT_EQUAL(uv_loop_close(&rig.loop), 0);
	if (rig.f)
		t_ctl_close(rig.f);
	snprintf(path, sizeof(path), "%s/" DP_LOCK_NAME, rig.dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/" DP_SOCKET_NAME, rig.dir);
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(rig.dir), 0);
}

static inline void connect_both(void)
{
	open_fake();
	open_link(0);
	UNTIL(rig.ups == 1);
}

static inline int ask_resync(uint64_t tag, uint64_t deadline)
{
	const struct dp_resync m = {.lane = 0};
	const struct dplink_want w = {
		.type = DP_INVENTORY, .deadline = deadline, .fn = on_end, .tag = tag};

	dp_put_resync(dplink_begin(rig.l, DP_RESYNC), &m);
	return dplink_request(rig.l, -1, &w);
}

static inline struct dplink_info info(void)
{
	struct dplink_info i;

	dplink_info(rig.l, &i);
	return i;
}

#endif
