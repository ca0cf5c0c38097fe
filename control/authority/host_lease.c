/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner lease: renewal, the local deadline, and what follows when the token is gone
 * (A-LEASE-1..11). Called on the driver's thread. */
#include "control/authority/priv.h"

#include <stdio.h>
#include <string.h>

static void fill_host(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->u.host.id = &a->host.id;
	out->u.host.deadline = a->host.deadline;
}

static void fill_lost(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->u.stop.text = a->host.lost_text;
}

void auth_lease_held(struct auth *a, int64_t sent)
{
	struct auth_host *h = &a->host;

	h->held = true;
	h->deadline = sent + h->ttl_ns - a->cfg.margin_ns;
	auth_timer_arm(a, &h->renew_timer, sent + a->cfg.renew_ns);
	if (h->announced)
		auth_fx_queue(a, &h->lease_fx);
	auth_group_kick(a);
}

void auth_lease_renew_now(struct auth *a)
{
	auth_timer_stop(a, &a->host.renew_timer);
	if (!a->host.renew.in_flight)
		auth_step_queue(a, &a->host.renew);
}

static void on_renew(struct auth *a, struct auth_timer *t)
{
	auth_lease_renew_now(a);
}

static void renewed(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_host *h = &a->host;

	if (!h->held || h->renew_lease != h->lease)
		return; /* of a lease that was given up meanwhile */
	if (r[0].rc == STORE_MISSING || r[1].rc == STORE_MISSING ||
	    (r[1].rc == STORE_OK && r[1].u.read.item.cr != h->id.lease_gen)) {
		auth_host_token_lost(a, "the lease has ended in the store");
		return;
	}
	if (r[0].rc != STORE_OK || r[1].rc != STORE_OK) {
		auth_log(a, AUTH_LOG_WARN, "lease renewal failed, trying again: %s",
			 a->batch.b.text);
		auth_timer_arm(a, &h->renew_timer, a->now + AUTH_RENEW_RETRY);
		return;
	}
	h->ttl_ns = r[0].u.lease.ttl_ms * AUTH_MS;
	auth_lease_held(a, h->renew_sent);
	if (h->phase == AUTH_H_RESUME)
		auth_resume_renewed(a);
}

void auth_host_token_lost(struct auth *a, const char *why)
{
	struct auth_host *h = &a->host;

	if (!h->held)
		return;
	h->held = h->rows = false;
	h->deadline = 0;
	auth_timer_stop(a, &h->renew_timer);
	auth_step_drop(a, &h->renew);
	snprintf(h->lost_text, sizeof(h->lost_text), "%s", why);
	auth_log(a, AUTH_LOG_ERROR, "owner token lost: %s: owned Spots are fenced", why);
	auth_fx_drop(a, &h->lease_fx);
	if (h->announced && !h->dead)
		auth_fx_queue(a, &h->lost_fx);
	auth_group_token_lost(a);
	auth_sweep_cancel_own(a);
	auth_fx_drop(a, &h->inventory_fx);
	auth_resume_free(a);
	switch (h->phase) {
	case AUTH_H_CLAIM:
	case AUTH_H_PUBLISH:
	case AUTH_H_RESUME:
	case AUTH_H_SCAN:
	case AUTH_H_ENTRY:
	case AUTH_H_SERVE:
	case AUTH_H_UP:
		/* A-LEASE-9: the process lives, so it claims again under its own owner id. */
		h->adopts = true;
		auth_host_go(a, AUTH_H_GRANT);
		return;
	case AUTH_H_DRAIN:
	case AUTH_H_FINISH:
	case AUTH_H_FORCED:
		h->lost_in_stop = true; /* its rows stay until they are reclaimed */
		return;
	case AUTH_H_NONE:
	case AUTH_H_GRANT:
	case AUTH_H_BURY:
	case AUTH_H_REVOKE:
		return;
	}
}

void auth_lease_stop(struct auth *a)
{
	auth_timer_stop(a, &a->host.renew_timer);
	auth_step_drop(a, &a->host.renew);
	a->host.held = false;
	a->host.deadline = 0;
}

void auth_lease_init(struct auth *a)
{
	struct auth_host *h = &a->host;

	auth_step_init(&h->renew, auth_host_build_renew, renewed);
	h->renew_timer.fire = on_renew;
	h->ready = (struct auth_fx){.kind = AUTH_FX_HOST_READY, .fill = fill_host};
	h->lease_fx = (struct auth_fx){.kind = AUTH_FX_LEASE, .fill = fill_host};
	h->lost_fx = (struct auth_fx){.kind = AUTH_FX_LEASE_LOST, .fill = fill_lost};
}
