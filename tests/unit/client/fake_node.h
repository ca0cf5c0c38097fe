/* SPDX-License-Identifier: BSD-3-Clause */
/* The node behind fake.h, for fake.c alone. */
#ifndef SPL_T_CLIENT_FAKE_NODE_H
#define SPL_T_CLIENT_FAKE_NODE_H

#include "tests/unit/client/fake.h"

void fake_node_start(struct fake *f);
void fake_node_stop(struct fake *f);
/* Takes what has come, does what is due, sends. */
void fake_node_run(struct fake *f);
/* When it has something to do by itself. */
uint64_t fake_node_timer(const struct fake *f);

/* The net and chance, from fake.c. */
void fake_to_client(struct fake *f, const uint8_t *b, uint32_t len, uint16_t port);
struct fake_packet *fake_from_client(struct fake *f);
void fake_random(void *net, void *out, size_t bytes);

/* fake_spots.c: a message that reached a lane; what is due there. */
void fake_message_in(struct fake *f, uint32_t lane, const struct flow_msg *m);
void fake_spots_run(struct fake *f);
uint64_t fake_spots_timer(const struct fake *f);
void fake_spots_stop(struct fake *f);

#endif
