/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: making and freeing the rings of hop.h, by the agent before and after lanes run.
 */
#include "dataplane/lane/hop.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <stdio.h>
#include <stdlib.h>

int hop_init(struct hop *h, unsigned users)
{
	int rc = -ENOMEM;

	*h = (struct hop){.users = users};
	h->ring = calloc((size_t)users * users, sizeof(*h->ring));
	h->wake = aligned_alloc(64, users * sizeof(*h->wake));
	if (!h->ring || !h->wake)
		goto fail;
	for (unsigned u = 0; u < users; u++)
		h->wake[u].fd = -1;
	for (unsigned u = 0; u < users; u++) {
		rc = wake_init(&h->wake[u]);
		if (rc)
			goto fail;
	}
	for (unsigned i = 0; i < users * users; i++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "hop_%u_%u", i / users, i % users);
		h->ring[i] = rte_ring_create(name, HOP_SLOTS, SOCKET_ID_ANY,
					     RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!h->ring[i]) {
			rc = -rte_errno;
			goto fail;
		}
	}
	return 0;
fail:
	hop_fini(h);
	return rc;
}

void hop_fini(struct hop *h)
{
	for (unsigned i = 0; h->ring && i < h->users * h->users; i++)
		rte_ring_free(h->ring[i]);
	for (unsigned u = 0; h->wake && u < h->users; u++)
		wake_fini(&h->wake[u]);
	free(h->ring);
	free(h->wake);
	*h = (struct hop){0};
}
