/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive: from mbufs to frame views. A lane calls it for the frames that its short way does not
 * take.
 *
 * mbuf rule: the mbufs stay the caller's. A frame in several segments is copied into one fresh mbuf
 * that replaces it in the array (the old one is freed); when there is none, or it would not fit,
 * its view becomes FRAME_DROP with SPL_DROP_NO_MBUF or SPL_DROP_OVERSIZE, and the array is
 * unchanged.
 */
#ifndef SPL_PORT_RX_H
#define SPL_PORT_RX_H

#include "dataplane/frame/parse.h"

#include <rte_mbuf.h>

/* FRAME_RX_* from the flags of an mbuf: GOOD and NONE (valid data, unfilled field) need no check.
 */
static inline uint8_t rx_hints(uint64_t ol_flags)
{
	uint64_t ip = ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
	uint64_t l4 = ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	uint8_t h = 0;

	if (ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD || ip == RTE_MBUF_F_RX_IP_CKSUM_NONE)
		h |= FRAME_RX_IP_GOOD;
	else if (ip == RTE_MBUF_F_RX_IP_CKSUM_BAD)
		h |= FRAME_RX_IP_BAD;
	if (l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE)
		h |= FRAME_RX_L4_GOOD;
	else if (l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD)
		h |= FRAME_RX_L4_BAD;
	return h;
}

/* Linearises *m out of pool. 0, or the drop reason as a positive number + 1. */
int rx_linearise(struct rte_mbuf **m, struct rte_mempool *pool);

/* Views and parses n frames (n at most what v holds). Returns how many had to be linearised. */
unsigned rx_parse(const struct frame_local *l, struct rte_mbuf **m, struct frame_view *v,
		  unsigned n, struct rte_mempool *pool);

#endif
