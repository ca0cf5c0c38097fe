/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane program in the hands of a test that is control, over the real private socket: each
 * function sends one message, waits for its answer and fails the test when none comes. The port is
 * net_null0, the stages "counter" of the examples and "large" of t_large.c.
 */
#ifndef SPL_TEST_VDEV_AGENTRIG_H
#define SPL_TEST_VDEV_AGENTRIG_H

#include "common/dp.h"
#include "common/dp_io.h"

#include <sys/types.h>

/* argv of the test: the program, the folders of the example stages and of its own. */
extern const char *program, *stage_dir, *own_stage_dir;

struct rig {
	char dir[64];
	pid_t pid;
	int sock, stats_fd;
	uint64_t epoch, corr;
	struct dp_rx *rx;
	struct dp_packet *batch;
	int n, at;
	uint8_t out[DP_PACKET_MAX];
};

/* The program starts in r->dir; a connection to it; the packet of `type`, others are passed over;
 * a packet is begun and sent. */
void spawn(struct rig *r);
int dial(struct rig *r);
struct pack_reader expect(struct rig *r, uint16_t type);
struct pack_writer start(struct rig *r, uint16_t type);
void finish(struct rig *r, struct pack_writer *w);
/* A program that waits for its CONFIG; its end, and exit status. */
void rig_open(struct rig *r);
int rig_close(struct rig *r);
struct dp_configured configure(struct rig *r, const char *device, const char *module);
uint8_t ok_kind(struct rig *r);
void identify(struct rig *r);
/* `type` "": the Entry Spot. */
struct dp_prepared prepare_of(struct rig *r, const char *type, const char *request, const char *id,
			      uint64_t gen, uint64_t attempt);
uint8_t prepare(struct rig *r, const char *id, uint64_t gen, uint64_t attempt);
uint8_t publish(struct rig *r, const char *id, uint64_t gen);
uint8_t close_spot(struct rig *r, const char *id, uint64_t gen);
uint8_t call(struct rig *r, const char *id, const char *packet, bool is_request);
unsigned inventory(struct rig *r, const char *id, uint8_t *state);
void stop(struct rig *r);

#endif
