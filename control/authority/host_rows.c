/* SPDX-License-Identifier: BSD-3-Clause */
/* The store requests of the host's own life: T1, T2, T3, T20, the reads that settle a doubt, and
 * lease renewal. Build only; what the results mean is in host.c. Called on the driver's thread. */
#include "control/authority/priv.h"

#include <errno.h>
#include <string.h>

struct keys {
	struct store_bytes lease, node, cap, entry;
};

static struct store_bytes copy_key(struct auth *a, const char *key, uint32_t n)
{
	return auth_batch_copy(a, (struct store_bytes){key, n});
}

static bool make_keys(struct auth *a, struct keys *k)
{
	const struct auth_host_id *id = &a->host.id;
	char key[ROW_KEY_MAX];

	k->lease = copy_key(a, key, row_key_lease(key, auth_name(&id->owner_id)));
	k->node = copy_key(a, key, row_key_node(key, auth_name(&a->cfg.mesh), auth_name(&id->rid)));
	k->cap = copy_key(a, key, row_key_cap(key, auth_name(&id->rid)));
	k->entry = copy_key(a, key, row_key_obj(key, auth_name(&id->entry_id)));
	return k->lease.p && k->node.p && k->cap.p && k->entry.p;
}

static struct row_owner owner_of(const struct auth *a, int64_t lease_gen)
{
	const struct auth_host_id *id = &a->host.id;

	return (struct row_owner){auth_name(&id->owner_id), auth_name(&a->cfg.mesh),
				  auth_name(&id->rid), id->lifecycle, lease_gen};
}

static struct store_bytes node_value(struct auth *a, enum auth_host_state state, int64_t revision)
{
	struct auth_host *h = &a->host;
	struct row_node r = {
		.owner = owner_of(a, 0),
		.endpoint = {h->endpoint, h->endpoint_n},
		.entry_id = auth_name(&h->id.entry_id),
		.version = {SPL_VERSION, sizeof(SPL_VERSION) - 1},
		.revision = (uint64_t)revision,
		.state = state,
		.lanes = h->lanes,
		.weight = 100,
		.n_types = a->n_types,
	};
	struct row_type *t = auth_batch_mem(a, (a->n_types + 1) * sizeof(*t));
	size_t room = 2048 + a->n_types * 272;
	uint8_t *val = auth_batch_mem(a, room);

	if (!t || !val)
		return (struct store_bytes){NULL, 0};
	for (size_t i = 0; i < a->n_types; i++)
		t[i] = (struct row_type){auth_name(&a->types[i].t.name), a->types[i].t.kind,
					 a->types[i].t.limit};
	return (struct store_bytes){val, row_node_put(val, room, &r, t)};
}

static struct store_bytes lease_value(struct auth *a)
{
	struct row_lease r = {auth_name(&a->cfg.mesh),
			      auth_name(&a->host.id.rid),
			      auth_name(&a->host.id.entry_id),
			      a->host.id.lifecycle,
			      a->host.lease,
			      a->now};
	uint8_t *val = auth_batch_mem(a, ROW_LEASE_MAX);

	if (!val)
		return (struct store_bytes){NULL, 0};
	return (struct store_bytes){val, row_lease_put(val, ROW_LEASE_MAX, &r)};
}

static int build_claim(struct auth *a)
{
	struct store_bytes val = lease_value(a);
	struct store_cond *c;
	struct store_mut *m;
	struct keys k;

	if (!make_keys(a, &k) || !val.n || !auth_batch_txn(a, 1, 1, &c, &m))
		return -ENOMEM;
	c[0] = (struct store_cond){k.lease, STORE_IF_ABSENT, 0};
	m[0] = (struct store_mut){.key = k.lease, .val = val, .lease = a->host.lease};
	return 0;
}

/* S-ID-7: descriptor, capacity and Entry Spot id in one transaction; a conflict writes nothing. */
static int build_publish(struct auth *a)
{
	struct row_obj entry = {.state = AUTH_ROW_READY,
				.kind = SPL_KIND_ENTRY,
				.own_gen = 1,
				.owner = owner_of(a, a->host.id.lease_gen)};
	uint64_t lease = a->host.lease;
	struct store_bytes node, cap, obj;
	struct store_cond *c;
	struct store_mut *m;
	struct keys k;

	auth_group_clear(a);
	node = node_value(a, AUTH_HOST_PREPARING, 1);
	cap = auth_group_cap_value(a);
	obj = auth_obj_value(a, &entry);
	if (!make_keys(a, &k) || !node.n || !cap.n || !obj.n || !auth_batch_txn(a, 3, 3, &c, &m))
		return -ENOMEM;
	c[0] = (struct store_cond){k.lease, STORE_IF_CR, a->host.id.lease_gen};
	c[1] = (struct store_cond){k.node, STORE_IF_ABSENT, 0};
	c[2] = (struct store_cond){k.entry, STORE_IF_ABSENT, 0};
	m[0] = (struct store_mut){.key = k.node, .val = node, .lease = lease};
	m[1] = (struct store_mut){.key = k.cap, .val = cap, .lease = lease};
	m[2] = (struct store_mut){.key = k.entry, .val = obj, .lease = lease};
	return 0;
}

static int build_update(struct auth *a, enum auth_host_state state)
{
	struct store_bytes node = node_value(a, state, a->host.revision + 1);
	struct store_cond *c;
	struct store_mut *m;
	struct keys k;

	if (!make_keys(a, &k) || !node.n || !auth_batch_txn(a, 2, 1, &c, &m))
		return -ENOMEM;
	c[0] = (struct store_cond){k.lease, STORE_IF_CR, a->host.id.lease_gen};
	c[1] = (struct store_cond){k.node, STORE_IF_MR, a->host.node_mr};
	m[0] = (struct store_mut){.key = k.node, .val = node, .lease = a->host.lease};
	return 0;
}

static int build_lease(struct auth *a, enum store_op op)
{
	struct store_req *r = auth_batch_req(a, op);

	if (!r)
		return -ENOSPC;
	r->u.lease.id = a->host.lease;
	r->u.lease.ttl_ms = a->cfg.ttl_ns / AUTH_MS;
	return 0;
}

/* Lease, node, capacity, Entry: in this order. */
static int build_reads(struct auth *a)
{
	const struct auth_host_id *id = &a->host.id;
	char key[ROW_KEY_MAX];

	if (auth_batch_read(a, key, row_key_lease(key, auth_name(&id->owner_id))) ||
	    auth_batch_read(a, key,
			    row_key_node(key, auth_name(&a->cfg.mesh), auth_name(&id->rid))) ||
	    auth_batch_read(a, key, row_key_cap(key, auth_name(&id->rid))) ||
	    auth_batch_read(a, key, row_key_obj(key, auth_name(&id->entry_id))))
		return -ENOSPC;
	return 0;
}

int auth_host_build(struct auth *a, struct auth_step *s)
{
	struct auth_host *h = &a->host;

	h->step_phase = h->phase;
	if (h->reads_back)
		return build_reads(a);
	switch (h->phase) {
	case AUTH_H_GRANT:
		h->sent = a->now;
		return build_lease(a, STORE_GRANT);
	case AUTH_H_CLAIM:
		return build_claim(a);
	case AUTH_H_PUBLISH:
		return build_publish(a);
	case AUTH_H_RESUME:
		return build_reads(a);
	case AUTH_H_SERVE:
		return build_update(a, AUTH_HOST_SERVING);
	case AUTH_H_DRAIN:
		return build_update(a, AUTH_HOST_DRAINING);
	case AUTH_H_REVOKE:
		return build_lease(a, STORE_REVOKE);
	case AUTH_H_NONE:
	case AUTH_H_SCAN:
	case AUTH_H_ENTRY:
	case AUTH_H_UP:
	case AUTH_H_FINISH:
	case AUTH_H_FORCED:
	case AUTH_H_BURY:
		return 0; /* nothing of its own is wanted from the store */
	}
	return 0;
}

/* A-LEASE-4: the time just before the request counts. The token is compared with it. */
int auth_host_build_renew(struct auth *a, struct auth_step *s)
{
	struct auth_host *h = &a->host;
	char key[ROW_KEY_MAX];

	h->renew_lease = h->lease;
	h->renew_sent = a->now;
	if (build_lease(a, STORE_RENEW))
		return -ENOSPC;
	return auth_batch_read(a, key, row_key_lease(key, auth_name(&h->id.owner_id)));
}
