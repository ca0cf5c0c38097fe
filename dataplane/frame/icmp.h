/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to ICMP echo requests. Pure; whoever polls the frame calls it, with its own bucket. */
#ifndef SPL_FRAME_ICMP_H
#define SPL_FRAME_ICMP_H

#include "dataplane/frame/bucket.h"
#include "dataplane/frame/view.h"

/* Turns a frame of kind FRAME_ICMP into the reply, in place: true means send v->len bytes from
 * v->data (which moves up when the request had IP options: they are not sent back, and padding is
 * cut off); counted as SPL_USE_ICMP. False: v->reason says why it is dropped. The bytes must be
 * writable and ours alone. ip_id: any value, the datagram cannot be fragmented. */
bool icmp_echo(const struct frame_local *l, struct bucket *limit, struct frame_view *v,
	       uint16_t ip_id, uint64_t now);

#endif
