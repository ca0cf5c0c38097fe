/* SPDX-License-Identifier: BSD-3-Clause */
/* How the starts of Instance Spots ended, by their type, for the metrics (S-MET-4). Loop thread
 * only. A label is the name of a type that the dataplane has loaded; what has another type is not
 * counted, so that nobody makes labels by asking.
 */
#include "control/host/host_priv.h"

#include <stdlib.h>

void host_activations_reset(struct host *h)
{
	free(h->activations);
	h->activations = calloc(h->n_types ? h->n_types : 1, sizeof(*h->activations));
	if (!h->activations)
		host_fatal("out of memory");
}

/* Of the id, not of the application or of time. */
static bool is_conflict(enum auth_obstacle o)
{
	return o >= AUTH_MET_OWNER && o <= AUTH_MET_CLOSING;
}

static enum spl_activation_outcome outcome_of(const struct auth_reply *r)
{
	if (r->kind == SPL_OK && r->created == AUTH_CREATED)
		return SPL_AO_READY;
	if (r->kind == SPL_E_DEADLINE_EXCEEDED)
		return SPL_AO_TIMED_OUT;
	if (r->kind == SPL_E_SHUTTING_DOWN)
		return SPL_AO_SHUTDOWN;
	if (r->obstacle == AUTH_MET_STORE)
		return SPL_AO_STORE_FAILURE;
	if (r->obstacle == AUTH_MET_FENCE)
		return SPL_AO_FENCED;
	return is_conflict(r->obstacle) && r->obstacle != AUTH_MET_CLOSING ? SPL_AO_CONFLICT
									   : SPL_AO_REJECTED;
}

void host_activation_begins(struct host *h, struct host_wait *w, struct auth_bytes type)
{
	w->since = host_now(h);
	w->type = 0;
	for (size_t i = 0; i < h->n_types; i++) {
		const struct spl_name *n = &h->types[i].name;

		if (h->types[i].kind == SPL_KIND_INSTANCE && n->len == type.n &&
		    memcmp(n->b, type.p, type.n) == 0)
			w->type = i + 1;
	}
}

void host_activation_ended(struct host *h, const struct host_wait *w, const struct auth_reply *r)
{
	struct host_activations *a;

	/* Of a dataplane before this one, whose types were others. */
	if (w->type == 0 || w->type > h->n_types || h->activations_epoch != h->epoch)
		return;
	a = &h->activations[w->type - 1];
	host_measure(&a->ended[outcome_of(r)], host_now(h) - w->since);
	if (is_conflict(r->obstacle))
		a->conflicts[r->obstacle - AUTH_MET_OWNER]++;
}
