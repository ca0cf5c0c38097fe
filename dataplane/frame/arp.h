/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP for IPv4 over Ethernet, both ways. Pure; the agent calls it, it owns the neighbour table. */
#ifndef SPL_FRAME_ARP_H
#define SPL_FRAME_ARP_H

#include "dataplane/frame/neigh.h"
#include "dataplane/frame/view.h"

#define ARP_FRAME_BYTES (FRAME_ETH_BYTES + FRAME_ARP_BYTES) /* what we send; the port pads */

enum arp_result {
	ARP_DROP,  /* v->reason says why */
	ARP_DONE,  /* learned from, nothing to send: SPL_USE_ARP */
	ARP_REPLY, /* v's frame is now the reply, v->len bytes from v->data: send it; SPL_USE_ARP */
	ARP_OTHER, /* about somebody else, and not news to us: SPL_USE_OTHER_HOST */
};

/* Handles one frame of kind FRAME_ARP, whose bytes must be writable and ours alone. What the sender
 * says about itself updates the table; a stranger enters it only by asking for our address. */
enum arp_result arp_input(const struct frame_local *l, struct neigh *n, struct frame_view *v,
			  uint64_t now);

/* Writes a request for ip into out (ARP_FRAME_BYTES), to mac or, with mac NULL, to everybody. */
void arp_request(const struct frame_local *l, uint32_t ip, const uint8_t *mac,
		 uint8_t out[ARP_FRAME_BYTES]);

/* Writes the announcement of our own address (RFC 5227), which corrects the caches of others. */
void arp_announce(const struct frame_local *l, uint8_t out[ARP_FRAME_BYTES]);

#endif
