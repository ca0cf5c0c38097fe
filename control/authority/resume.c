/* SPDX-License-Identifier: BSD-3-Clause */
/* A dataplane that outlived its control: the new control takes its lifecycle over. Its rows are
 * read and its lease renewed, then its own object rows are compared with the dataplane's inventory:
 * what both have goes on, what only one has is ended. Called on the driver's thread; owns
 * the inventory while it compares. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX (1U << 24) /* objects of one inventory */

struct auth_item {
	struct auth_item *next;
	uint64_t obj_gen, own_gen, attempt;
	enum auth_inventory_state state;
	bool seen; /* its row was found */
	uint8_t id_n;
	char id[];
};

struct auth_inventory {
	struct auth_item **buckets;
	size_t mask, n;
	bool complete;
	size_t leftover_at; /* bucket from which objects without a row are ended */
};

static size_t hash(const struct auth *a, struct auth_bytes id)
{
	const uint8_t *b = id.p;
	uint64_t h = a->secret ^ 0x5851f42d4c957f2dULL;

	for (uint32_t i = 0; i < id.n; i++)
		h = (h ^ b[i]) * 0x100000001b3ULL + (h >> 47);
	h *= 0x9e3779b97f4a7c15ULL;
	return (size_t)(h ^ (h >> 32)) & a->inventory->mask;
}

static void drop_items(struct auth_inventory *v)
{
	struct auth_item *it;

	for (size_t i = 0; i <= v->mask; i++)
		while ((it = v->buckets[i]) != NULL) {
			v->buckets[i] = it->next;
			free(it);
		}
	v->n = 0;
}

void auth_resume_free(struct auth *a)
{
	struct auth_inventory *v = a->inventory;

	if (!v)
		return;
	drop_items(v);
	free(v->buckets);
	free(v);
	a->inventory = NULL;
}

static int make(struct auth *a)
{
	struct auth_inventory *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->mask = 65535;
	v->buckets = calloc(v->mask + 1, sizeof(struct auth_item *));
	if (!v->buckets) {
		free(v);
		return -ENOMEM;
	}
	a->inventory = v;
	return 0;
}

/* Lease, node, capacity, Entry, as they are in the store. */
void auth_resume_rows(struct auth *a, struct store_req *r)
{
	struct auth_host *h = &a->host;
	struct row_lease lease;
	struct row_node node;

	for (int i = 0; i < 4; i++) {
		if (r[i].rc != STORE_OK && r[i].rc != STORE_MISSING) {
			auth_log(a, AUTH_LOG_WARN, "resume: %s: trying again", a->batch.b.text);
			auth_host_retry(a);
			return;
		}
	}
	h->held = true; /* until the rows say otherwise */
	if (r[0].rc != STORE_OK || r[0].u.read.item.cr != h->id.lease_gen ||
	    row_lease_get(&lease, r[0].u.read.item.val, r[0].u.read.item.len) ||
	    lease.lifecycle != h->id.lifecycle || r[1].rc != STORE_OK ||
	    row_node_get(&node, r[1].u.read.item.val, r[1].u.read.item.len) ||
	    r[2].rc != STORE_OK || auth_group_take_cap(a, &r[2].u.read.item)) {
		auth_host_token_lost(a, "the lease ended while there was no control");
		return;
	}
	h->rows = true;
	h->lease = lease.lease;
	h->node_mr = r[1].u.read.item.mr;
	h->revision = (int64_t)node.revision;
	h->ttl_ns = a->cfg.ttl_ns;
	auth_lease_renew_now(a);
}

/* The first renewal after the resume: now there is a deadline, and the comparison begins. */
void auth_resume_renewed(struct auth *a)
{
	struct auth_host *h = &a->host;

	if (a->inventory)
		return;
	if (make(a)) {
		auth_lease_renew_now(a); /* no memory: comes here again */
		return;
	}
	auth_fx_queue(a, &h->ready);
	auth_fx_queue(a, &h->inventory_fx);
}

void auth_resume_ask(struct auth *a)
{
	if (!a->inventory || a->inventory->complete)
		return;
	drop_items(a->inventory);
	auth_fx_queue(a, &a->host.inventory_fx);
}

int auth_resume_item(struct auth *a, const struct auth_event *e)
{
	struct auth_inventory *v = a->inventory;
	struct auth_bytes id = e->u.inventory.id;
	struct auth_item *it, **b;

	if (!v || v->complete || v->n >= ITEMS_MAX || !spl_name_valid(id.p, id.n))
		return -EINVAL;
	b = &v->buckets[hash(a, id)];
	for (it = *b; it; it = it->next)
		if (it->id_n == id.n && memcmp(it->id, id.p, id.n) == 0)
			break;
	if (!it) {
		it = malloc(sizeof(*it) + id.n);
		if (!it)
			return -ENOMEM;
		it->id_n = (uint8_t)id.n;
		memcpy(it->id, id.p, id.n);
		it->next = *b;
		*b = it;
		v->n++;
	} /* else a page that came again: the newest counts */
	it->obj_gen = e->u.inventory.obj_gen;
	it->own_gen = e->u.inventory.own_gen;
	it->attempt = e->u.inventory.attempt;
	it->state = e->u.inventory.state;
	it->seen = false;
	return 0;
}

void auth_resume_inventory_end(struct auth *a)
{
	if (a->inventory && a->host.phase == AUTH_H_RESUME)
		a->inventory->complete = true;
}

bool auth_resume_ready(const struct auth *a)
{
	return a->inventory && a->inventory->complete;
}

/* It stays in the table, because a scan may start over. */
static const struct auth_item *look_up(struct auth *a, struct auth_bytes id)
{
	struct auth_item *it = a->inventory->buckets[hash(a, id)];

	while (it && (it->id_n != id.n || memcmp(it->id, id.p, id.n) != 0))
		it = it->next;
	if (it)
		it->seen = true;
	return it;
}

void auth_resume_keep(struct auth *a, struct auth_bytes id)
{
	look_up(a, id);
}

/* One own row against what the dataplane has. Sets *w when something has to be done; -ENOMEM. */
int auth_resume_row(struct auth *a, struct auth_bytes id, const struct row_obj *row, int64_t cr,
		    int64_t mr, struct auth_work **w)
{
	const struct auth_item *it = look_up(a, id);
	bool same = it && it->obj_gen == (uint64_t)cr;
	enum auth_inventory_state state = it ? it->state : AUTH_INV_READY;
	uint64_t attempt = it ? it->attempt : 0;
	bool wants = true;

	*w = NULL;
	switch (row->state) {
	case AUTH_ROW_CREATING:
		if (same && state == AUTH_INV_STAGING && attempt == row->pending.attempt)
			*w = auth_create_adopt(a, id, row, cr, mr);
		else
			*w = auth_create_cancel(a, id, row, cr, mr);
		break;
	case AUTH_ROW_READY:
		/* Not opened yet, or opened under the fence before this one. */
		if (same && (state == AUTH_INV_STAGING ||
			     (state == AUTH_INV_READY && it->own_gen != row->own_gen)))
			*w = auth_create_publish(a, id, row, cr, mr, attempt);
		else if (same && state == AUTH_INV_READY)
			wants = false; /* nothing to do: it goes on */
		else		       /* closed there and not yet here, or gone */
			*w = auth_close_row(a, id, row, cr, mr, same, AUTH_EXPLICIT_CLOSE,
					    a->now + a->cfg.ttl_ns);
		break;
	case AUTH_ROW_CLOSING:
		*w = auth_close_row(a, id, row, cr, mr, same, AUTH_EXPLICIT_CLOSE,
				    a->now + a->cfg.ttl_ns);
		break;
	case AUTH_ROW_RELOCATING:
		wants = false;
		break;
	}
	return wants && !*w ? -ENOMEM : 0;
}

/* Objects of the dataplane that have no row are dropped there, without store writes. Entry Spots
 * are not in the scan of steady work: they are known by their id. */
static bool end_leftovers(struct auth *a)
{
	struct auth_inventory *v = a->inventory;
	struct auth_work *w;
	struct auth_item *it;

	for (; v->leftover_at <= v->mask; v->leftover_at++) {
		while ((it = v->buckets[v->leftover_at]) != NULL) {
			struct auth_bytes id = {it->id, it->id_n};

			if (!it->seen && !auth_name_is(&a->host.id.entry_id, id) &&
			    !auth_work_find(a, id)) {
				if (a->n_works >= AUTH_SWEEP_PAGE)
					return false;
				w = auth_work_new(a, id, AUTH_W_CLOSING);
				if (!w)
					return false;
				w->obj_gen = it->obj_gen;
				w->attempt = it->attempt;
				w->reason = AUTH_FENCED;
				auth_work_command(a, w,
						  it->state == AUTH_INV_STAGING
							  ? AUTH_FX_DISCARD
							  : AUTH_FX_CLOSE_LOCAL);
			}
			v->buckets[v->leftover_at] = it->next;
			free(it);
		}
	}
	return true;
}

/* All own rows were compared; called again until the leftovers are ended too. */
bool auth_resume_finish(struct auth *a)
{
	if (!end_leftovers(a))
		return false;
	auth_resume_free(a);
	return true;
}
