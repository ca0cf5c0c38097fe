/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's life, one node lifecycle after the other: claim (T1), publish (T2), first scan,
 * Serving (T3), planned stop (T3, closes, T17, T20), death of the dataplane (T20). Called on the
 * driver's thread; store requests are built in host_rows.c. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void auth_host_go(struct auth *a, enum auth_phase phase)
{
	struct auth_host *h = &a->host;

	h->phase = phase;
	h->reads_back = false;
	h->retry_ns = 0;
	auth_timer_stop(a, &h->step_retry);
	h->step.writes = phase != AUTH_H_RESUME;
	if (!h->step.in_flight)
		auth_step_queue(a, &h->step);
}

void auth_host_retry(struct auth *a)
{
	struct auth_host *h = &a->host;

	h->retry_ns = h->retry_ns ? h->retry_ns * 2 : AUTH_RETRY_MIN;
	if (h->retry_ns > AUTH_RETRY_MAX)
		h->retry_ns = AUTH_RETRY_MAX;
	auth_timer_arm(a, &h->step_retry, a->now + h->retry_ns);
}

static void on_step_retry(struct auth *a, struct auth_timer *t)
{
	if (a->host.phase == AUTH_H_ENTRY)
		a->host.entry_begun = false; /* auth_host_check() begins again */
	else if (!a->host.step.in_flight)
		auth_step_queue(a, &a->host.step);
}

static void fill_state(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->u.state.state = a->host.state;
	out->u.state.deadline = a->host.stop ? a->host.stop_at : 0;
}

void auth_host_say(struct auth *a, enum auth_host_state state)
{
	a->host.state = state;
	if (a->host.announced && !a->host.dead)
		auth_fx_queue(a, &a->host.state_fx);
}

/* ---- start ---- */

static void mint(struct auth *a, struct spl_name *out, const char *middle)
{
	uint8_t rnd[16];
	char uuid[37];
	int n;

	a->cfg.random(a->cfg.random_ctx, rnd, sizeof(rnd));
	spl_uuid4(rnd, uuid);
	n = snprintf(out->b, sizeof(out->b), "%s-%s%s", a->cfg.prefix, middle, uuid);
	out->len = (uint8_t)n;
}

static void mint_ids(struct auth *a)
{
	struct auth_host_id *id = &a->host.id;

	memset(id, 0, sizeof(*id));
	mint(a, &id->rid, "");
	mint(a, &id->entry_id, "entry-");
	mint(a, &id->owner_id, "owner-");
	do
		id->lifecycle = auth_random64(a) & INT64_MAX;
	while (id->lifecycle == 0);
}

static int take_types(struct auth *a, const struct auth_type *types, size_t n)
{
	struct auth_type_slot *t = calloc(n ? n : 1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		t[i].t = types[i];
	free(a->types);
	a->types = t;
	a->n_types = n;
	a->spots_wanted = 0;
	auth_group_clear(a);
	a->cap_known = false;
	a->conflicts_in_a_row = 0;
	return 0;
}

static bool types_ok(const struct auth_event *e)
{
	const struct auth_type *t = e->u.host.types;

	if (e->u.host.n_types > AUTH_TYPES_MAX || e->u.host.endpoint.n > AUTH_ENDPOINT_MAX)
		return false;
	for (size_t i = 0; i < e->u.host.n_types; i++) {
		if (!spl_name_valid(t[i].name.b, t[i].name.len) ||
		    (t[i].kind != SPL_KIND_USER && t[i].kind != SPL_KIND_INSTANCE))
			return false;
		for (size_t j = 0; j < i; j++)
			if (t[i].kind == t[j].kind && auth_name_same(&t[i].name, &t[j].name))
				return false;
	}
	return true;
}

static int begin(struct auth *a, const struct auth_type *types, size_t n,
		 struct auth_bytes endpoint, uint32_t lanes)
{
	struct auth_host *h = &a->host;

	if (take_types(a, types, n))
		return -ENOMEM;
	h->endpoint_n = endpoint.n;
	if (endpoint.n)
		memcpy(h->endpoint, endpoint.p, endpoint.n);
	h->lanes = lanes;
	h->dead = h->announced = h->adopts = h->lost_in_stop = h->teardown_failed = h->late = false;
	h->held = h->scanning = h->draining = h->drained = h->failed = false;
	h->rows = h->entry_begun = h->entry_closed = false;
	h->entry_gen = 0;
	h->lease = 0;
	h->deadline = 0;
	h->state = AUTH_HOST_PREPARING;
	return 0;
}

/* A dataplane came while the one before it is still being buried. */
static int keep_start(struct auth *a, const struct auth_event *e)
{
	struct auth_host_start *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->n_types = e->u.host.n_types;
	n->types = calloc(n->n_types + 1, sizeof(*n->types));
	if (!n->types) {
		free(n);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n->n_types; i++)
		n->types[i] = e->u.host.types[i];
	n->endpoint_n = e->u.host.endpoint.n;
	if (n->endpoint_n)
		memcpy(n->endpoint, e->u.host.endpoint.p, n->endpoint_n);
	n->lanes = e->u.host.lanes;
	a->host.next = n;
	return 0;
}

void auth_host_drop_next(struct auth *a)
{
	if (a->host.next)
		free(a->host.next->types);
	free(a->host.next);
	a->host.next = NULL;
}

static int host_start(struct auth *a, const struct auth_event *e)
{
	struct auth_host *h = &a->host;
	int err;

	if (!types_ok(e) || h->stop || h->next || (h->phase != AUTH_H_NONE && !h->dead))
		return -EINVAL;
	if (h->phase != AUTH_H_NONE)
		return keep_start(a, e);
	err = begin(a, e->u.host.types, e->u.host.n_types, e->u.host.endpoint, e->u.host.lanes);
	if (err)
		return err;
	mint_ids(a);
	auth_host_go(a, AUTH_H_GRANT);
	return 0;
}

void auth_host_start_next(struct auth *a)
{
	struct auth_host_start *n = a->host.next;

	if (begin(a, n->types, n->n_types, (struct auth_bytes){n->endpoint, n->endpoint_n},
		  n->lanes))
		return; /* no memory: again with the next input */
	mint_ids(a);
	auth_host_go(a, AUTH_H_GRANT);
	auth_host_drop_next(a);
}

static int host_resume(struct auth *a, const struct auth_event *e)
{
	const struct auth_host_id *id = &e->u.host.id;
	int err;

	if (!types_ok(e) || a->host.phase != AUTH_H_NONE || a->host.stop || !id->lifecycle ||
	    id->lease_gen <= 0 || !id->rid.len || !id->owner_id.len || !id->entry_id.len)
		return -EINVAL;
	err = begin(a, e->u.host.types, e->u.host.n_types, e->u.host.endpoint, e->u.host.lanes);
	if (err)
		return err;
	a->host.id = *id;
	a->host.announced = true;
	a->host.adopts = true; /* rows of a token lost before, if control died in mid-adoption */
	auth_host_go(a, AUTH_H_RESUME);
	return 0;
}

/* ---- results of the phases ---- */

void auth_host_start_failed(struct auth *a, const char *why)
{
	struct auth_host *h = &a->host;

	auth_log(a, AUTH_LOG_ERROR, "start: %s", why);
	auth_lease_stop(a);
	h->state = AUTH_HOST_ERROR;
	h->failed = true;
	snprintf(h->text, sizeof(h->text), "%s", why);
	auth_host_go(a, AUTH_H_REVOKE);
}

static void claimed(struct auth *a, int64_t lease_gen)
{
	a->host.id.lease_gen = lease_gen;
	auth_lease_held(a, a->host.sent);
	auth_host_go(a, AUTH_H_PUBLISH);
}

static void published(struct auth *a, int64_t node, int64_t cap, int64_t entry)
{
	struct auth_host *h = &a->host;

	h->rows = true;
	h->node_mr = node;
	h->revision = 1;
	a->cap_mr = cap;
	a->cap_known = true;
	h->id.entry_gen = entry;
	h->id.entry_ver = entry;
	h->announced = true;
	auth_fx_queue(a, &h->ready);
	h->scanning = false;
	auth_host_go(a, AUTH_H_SCAN); /* A-NODE-10: one complete scan before Serving */
}

static void updated(struct auth *a, int64_t node)
{
	struct auth_host *h = &a->host;

	h->node_mr = node;
	h->revision++;
	if (h->phase == AUTH_H_SERVE) {
		auth_host_go(a, AUTH_H_UP);
		if (!h->stop)
			auth_host_say(a, AUTH_HOST_SERVING);
	} else {
		auth_host_go(a, AUTH_H_FINISH);
	}
}

/* Somebody who lives has an id of ours (S-ID-7). */
static void ids_taken(struct auth *a, const char *why)
{
	const struct spl_name *mesh = &a->cfg.mesh, *rid = &a->host.id.rid;

	auth_log(a, AUTH_LOG_ERROR,
		 "spotlane.runtime.mesh_node.routing_id_conflict mesh=%.*s rid=%.*s", mesh->len,
		 mesh->b, rid->len, rid->b);
	auth_host_start_failed(a, why);
}

/* What the host's rows say after a conflict or a lost answer. */
static void settle(struct auth *a, struct store_req *r)
{
	struct auth_host *h = &a->host;
	struct row_lease lease;
	struct row_node node;
	bool own, mine, node_mine;

	h->reads_back = false;
	h->step.writes = true;
	for (int i = 0; i < 4; i++) {
		if (r[i].rc != STORE_OK && r[i].rc != STORE_MISSING) {
			h->reads_back = true;
			h->step.writes = false;
			auth_host_retry(a);
			return;
		}
	}
	own = r[0].rc == STORE_OK &&
	      row_lease_get(&lease, r[0].u.read.item.val, r[0].u.read.item.len) == 0 &&
	      lease.lifecycle == h->id.lifecycle;
	mine = own && lease.lease == h->lease;
	node_mine = r[1].rc == STORE_OK &&
		    row_node_get(&node, r[1].u.read.item.val, r[1].u.read.item.len) == 0 &&
		    node.owner.lifecycle == h->id.lifecycle &&
		    auth_name_is(&h->id.owner_id, node.owner.owner_id);
	if (h->phase == AUTH_H_CLAIM) {
		if (mine)
			claimed(a, r[0].u.read.item.cr);
		else if (own && h->adopts)
			auth_host_retry(a); /* its lease of before has yet to end */
		else if (r[0].rc == STORE_OK)
			ids_taken(a, "the owner id is taken");
		else
			auth_host_go(a, AUTH_H_GRANT); /* the lease may be gone by now */
	} else if (!mine) {
		auth_host_token_lost(a, "the lease has ended in the store");
	} else if (h->phase == AUTH_H_PUBLISH) {
		if (node_mine && r[2].rc == STORE_OK && r[3].rc == STORE_OK)
			published(a, r[1].u.read.item.mr, r[2].u.read.item.mr, r[3].u.read.item.cr);
		else if (r[1].rc == STORE_OK || r[3].rc == STORE_OK)
			ids_taken(a, "node RID or Entry Spot id is claimed by another node");
		else
			auth_host_go(a, AUTH_H_PUBLISH);
	} else if (node_mine) {
		if ((int64_t)node.revision > h->revision)
			updated(a, r[1].u.read.item.mr);
		else {
			h->node_mr = r[1].u.read.item.mr;
			auth_host_go(a, h->phase);
		}
	} else {
		auth_host_token_lost(a, "the descriptor of this host is gone");
	}
}

static void txn_result(struct auth *a, const struct store_req *r)
{
	struct auth_host *h = &a->host;
	int64_t rev = r->u.txn.rev;

	switch (r->rc) {
	case STORE_OK:
		if (h->phase == AUTH_H_CLAIM)
			claimed(a, rev);
		else if (h->phase == AUTH_H_PUBLISH)
			published(a, rev, rev, rev);
		else
			updated(a, rev);
		return;
	case STORE_CONFLICT:
	case STORE_UNKNOWN:
		h->reads_back = true;
		h->step.writes = false;
		auth_step_queue(a, &h->step);
		return;
	case STORE_STALE_LEASE:
		if (h->held)
			auth_host_token_lost(a, "the store ended the lease");
		else
			auth_host_go(a, AUTH_H_GRANT);
		return;
	case STORE_EXHAUSTED:
		auth_log(a, AUTH_LOG_ERROR, "GenerationExhausted: %s", a->batch.b.text);
		auth_host_retry(a);
		return;
	default:
		auth_log(a, AUTH_LOG_WARN, "host row: %s: trying again", a->batch.b.text);
		if (h->phase == AUTH_H_DRAIN)
			auth_host_go(a, AUTH_H_FINISH); /* the stop does not hang on it */
		else
			auth_host_retry(a);
		return;
	}
}

static void granted(struct auth *a, const struct store_req *r)
{
	if (r->rc != STORE_OK) {
		auth_log(a, AUTH_LOG_WARN, "no lease: %s: trying again", a->batch.b.text);
		auth_host_retry(a);
		return;
	}
	a->host.lease = r->u.lease.id;
	a->host.ttl_ns = r->u.lease.ttl_ms * AUTH_MS;
	auth_host_go(a, AUTH_H_CLAIM);
}

static void step_done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_host *h = &a->host;

	if (h->step_phase != h->phase) { /* overtaken; the phase of now has not asked yet */
		auth_step_queue(a, &h->step);
		return;
	}
	if (h->phase == AUTH_H_RESUME)
		auth_resume_rows(a, r);
	else if (h->reads_back)
		settle(a, r);
	else if (h->phase == AUTH_H_GRANT)
		granted(a, r);
	else if (h->phase == AUTH_H_REVOKE)
		auth_host_revoked(a, r);
	else
		txn_result(a, r);
}

void auth_host_sweep_done(struct auth *a, enum auth_sweep_kind kind)
{
	struct auth_host *h = &a->host;

	if (kind == AUTH_SWEEP_RESUME && h->phase == AUTH_H_RESUME) {
		h->scanning = false;
		auth_host_go(a, AUTH_H_SCAN);
	} else if (kind == AUTH_SWEEP_FIRST && h->phase == AUTH_H_SCAN) {
		h->entry_begun = false;
		auth_host_go(a, AUTH_H_ENTRY);
	} else if (kind == AUTH_SWEEP_DRAIN && h->phase == AUTH_H_FINISH) {
		h->drained = true;
	}
}

static int start_sweep(struct auth *a, enum auth_sweep_kind kind)
{
	return auth_sweep_start(a, kind, (struct auth_bytes){NULL, 0}, NULL);
}

void auth_host_entry_made(struct auth *a)
{
	if (a->host.phase == AUTH_H_ENTRY)
		auth_host_go(a, AUTH_H_SERVE);
}

/* The Entry Spot is the last one to close (S-ENTRY-2); its row goes with the lease (T20). */
static void finish(struct auth *a)
{
	struct auth_host *h = &a->host;

	if (!h->entry_gen || h->entry_closed || h->dead)
		auth_host_end_lease(a);
	else
		h->entry_closed = auth_entry_close(a) == 0;
}

static void look_at(struct auth *a, struct auth_work *w)
{
	a->host.busy |= !auth_work_creating(w) || a->host.dead;
}

/* An attempt that hangs has until the deadline, and keeps nobody else from closing before: the
 * sweep looks at its row again when it is over. */
static bool nothing_but_attempts(struct auth *a)
{
	a->host.busy = false;
	auth_work_each(a, look_at);
	return !a->host.busy;
}

/* Everything of a phase that waits for others to come to an end. */
void auth_host_check(struct auth *a)
{
	struct auth_host *h = &a->host;

	auth_group_refuse_expired(a);
	switch (h->phase) {
	case AUTH_H_UP:
		if (h->stop) {
			auth_host_go(a, AUTH_H_DRAIN);
			return;
		}
		if (h->adopts)
			h->adopts = start_sweep(a, AUTH_SWEEP_READOPT) != 0;
		auth_op_release_held(a);
		return;
	case AUTH_H_SCAN:
		if (!h->scanning)
			h->scanning = start_sweep(a, AUTH_SWEEP_FIRST) == 0;
		return;
	case AUTH_H_ENTRY:
		if (h->stop && !auth_entry_cancel(a))
			auth_host_go(a, AUTH_H_DRAIN); /* a stop ends a start (A-DRAIN-2) */
		else if (!h->stop && !h->entry_begun)
			h->entry_begun = auth_entry_start(a) == 0;
		return;
	case AUTH_H_FINISH:
		if (h->lost_in_stop && a->n_works == 0) {
			auth_host_gone(a);
		} else if (!h->draining && nothing_but_attempts(a)) {
			h->draining = start_sweep(a, AUTH_SWEEP_DRAIN) == 0;
		} else if (h->drained && a->n_works == 0) {
			finish(a);
		}
		return;
	case AUTH_H_BURY:
		if (a->n_works)
			return;
		auth_host_end_lease(a);
		return;
	case AUTH_H_NONE:
		if (h->next && !h->stop)
			auth_host_start_next(a);
		return;
	case AUTH_H_GRANT:
	case AUTH_H_CLAIM:
	case AUTH_H_PUBLISH:
		return;
	case AUTH_H_RESUME:
		if (auth_resume_ready(a) && !h->scanning)
			h->scanning = start_sweep(a, AUTH_SWEEP_RESUME) == 0;
		return;
	case AUTH_H_SERVE:
	case AUTH_H_DRAIN:
	case AUTH_H_FORCED:
	case AUTH_H_REVOKE:
		return;
	}
}

static void link_up(struct auth *a)
{
	struct auth_host *h = &a->host;

	if (!h->announced || h->dead)
		return;
	auth_fx_queue(a, &h->ready);
	auth_fx_queue(a, &h->state_fx);
	if (!h->held)
		auth_fx_queue(a, &h->lost_fx);
	if (h->phase == AUTH_H_RESUME)
		auth_resume_ask(a);
}

int auth_host_event(struct auth *a, const struct auth_event *e)
{
	switch (e->kind) {
	case AUTH_EV_HOST_START:
		return host_start(a, e);
	case AUTH_EV_HOST_RESUME:
		return host_resume(a, e);
	case AUTH_EV_HOST_DEAD:
		auth_host_died(a);
		return 0;
	case AUTH_EV_LINK_UP:
		link_up(a);
		return 0;
	case AUTH_EV_INVENTORY:
		return auth_resume_item(a, e);
	case AUTH_EV_INVENTORY_END:
		auth_resume_inventory_end(a);
		return 0;
	case AUTH_EV_SHUTDOWN:
		return auth_host_shutdown(a, e);
	case AUTH_EV_ANSWER:
	case AUTH_EV_LIFECYCLE:
		break;
	}
	return -EINVAL;
}

void auth_host_init(struct auth *a)
{
	struct auth_host *h = &a->host;

	h->phase = AUTH_H_NONE;
	h->state = AUTH_HOST_NONE;
	auth_lease_init(a);
	auth_step_init(&h->step, auth_host_build, step_done);
	h->step_retry.fire = on_step_retry;
	h->state_fx = (struct auth_fx){.kind = AUTH_FX_HOST_STATE, .fill = fill_state};
	auth_host_stop_init(a);
	h->inventory_fx = (struct auth_fx){.kind = AUTH_FX_INVENTORY, .fill = auth_fx_plain};
}

void auth_host_fini(struct auth *a)
{
	auth_host_drop_next(a);
	auth_resume_free(a);
}
