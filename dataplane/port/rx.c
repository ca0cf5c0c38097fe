/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: from mbufs to frame views, see rx.h. Owns nothing. */
#include "dataplane/port/rx.h"

int rx_linearise(struct rte_mbuf **m, struct rte_mempool *pool)
{
	struct rte_mbuf *old = *m, *fresh = rte_pktmbuf_alloc(pool);
	char *to;

	if (!fresh)
		return 1 + SPL_DROP_NO_MBUF;
	to = old->pkt_len <= UINT16_MAX ? rte_pktmbuf_append(fresh, (uint16_t)old->pkt_len) : NULL;
	if (!to) {
		rte_pktmbuf_free(fresh);
		return 1 + SPL_DROP_OVERSIZE;
	}
	/* bounded: an mbuf has at most 65535 segments, all of one frame */
	for (const struct rte_mbuf *s = old; s; s = s->next) {
		memcpy(to, rte_pktmbuf_mtod(s, const char *), s->data_len);
		to += s->data_len;
	}
	fresh->ol_flags =
		old->ol_flags & (RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
	fresh->port = old->port;
	rte_pktmbuf_free(old);
	*m = fresh;
	return 0;
}

unsigned rx_parse(const struct frame_local *l, struct rte_mbuf **m, struct frame_view *v,
		  unsigned n, struct rte_mempool *pool)
{
	unsigned linearised = 0;

	for (unsigned i = 0; i < n; i++) {
		int why = 0;

		if (__builtin_expect(m[i]->nb_segs > 1, 0)) {
			why = rx_linearise(&m[i], pool);
			linearised += why == 0;
		}
		v[i].data = why ? NULL : rte_pktmbuf_mtod(m[i], uint8_t *);
		v[i].len = m[i]->pkt_len;
		v[i].rx = rx_hints(m[i]->ol_flags) | l->rx;
		v[i].kind = FRAME_DROP;
		v[i].reason = (uint8_t)(why - 1);
		__builtin_prefetch(v[i].data);
	}
	for (unsigned i = 0; i < n; i++)
		if (__builtin_expect(v[i].data != NULL, 1))
			frame_parse(l, &v[i]);
	return linearised;
}
