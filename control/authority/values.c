/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and values of a work's rows, in the memory of the batch that is being built. n = 0 (or p
 * NULL of a key) means that there was no memory. Called on the driver's thread; owns nothing. */
#include "control/authority/priv.h"

#include <string.h>

struct store_bytes auth_group_cap_value(struct auth *a)
{
	struct row_cap cap = {.spots_active = a->spots_active,
			      .spots_reserved = a->spots_reserved,
			      .pending = a->cap_pending};
	struct row_cap_type *t = auth_batch_mem(a, (a->n_types + 1) * sizeof(*t));
	size_t room = 64 + a->n_types * 272;
	uint8_t *val = auth_batch_mem(a, room);

	if (!t || !val)
		return (struct store_bytes){NULL, 0};
	for (size_t i = 0; i < a->n_types; i++)
		if (a->types[i].active || a->types[i].reserved)
			t[cap.n_types++] = (struct row_cap_type){
				auth_name(&a->types[i].t.name), a->types[i].t.kind,
				a->types[i].active, a->types[i].reserved};
	return (struct store_bytes){val, row_cap_put(val, room, &cap, t)};
}

void auth_row_of_work(const struct auth *a, const struct auth_work *w, struct row_obj *r)
{
	*r = (struct row_obj){
		.state = AUTH_ROW_READY,
		.kind = w->kind,
		.alloc = ROW_ACTIVE,
		.own_gen = w->own_gen,
		.epoch = w->epoch,
		.type = auth_name(&w->type),
		.owner = {auth_name(&a->host.id.owner_id), auth_name(&a->cfg.mesh),
			  auth_name(&a->host.id.rid), a->host.id.lifecycle, w->lease_gen},
	};
}

void auth_creating_row(const struct auth *a, const struct auth_work *w, struct row_obj *r)
{
	auth_row_of_work(a, w, r);
	r->state = AUTH_ROW_CREATING;
	r->alloc = ROW_RESERVED;
	r->has_pending = true;
	r->pending = (struct row_pending){
		.attempt = w->attempt,
		.op = {auth_name(&w->op_id.rid), w->op_id.lifecycle, w->op_id.hi, w->op_id.lo},
		.deadline = w->deadline,
		.size = w->request ? w->request->n : 0,
	};
	memcpy(r->pending.sha256, w->request_sha, sizeof(r->pending.sha256));
}

struct store_bytes auth_obj_value(struct auth *a, const struct row_obj *r)
{
	uint8_t *val = auth_batch_mem(a, ROW_OBJ_MAX);

	if (!val)
		return (struct store_bytes){NULL, 0};
	return (struct store_bytes){val, row_obj_put(val, ROW_OBJ_MAX, r)};
}

struct store_bytes auth_obj_key(struct auth *a, const struct auth_work *w)
{
	char key[ROW_KEY_MAX];

	return auth_batch_copy(a, (struct store_bytes){key, row_key_obj(key, auth_name(&w->id))});
}

struct store_bytes auth_opt_key(struct auth *a, const struct auth_work *w)
{
	struct row_op_id id = {auth_name(&w->op_id.rid), w->op_id.lifecycle, w->op_id.hi,
			       w->op_id.lo};
	char key[ROW_KEY_MAX];

	return auth_batch_copy(a, (struct store_bytes){key, row_key_opt(key, &id)});
}

struct store_bytes auth_opt_value(struct auth *a, const struct auth_work *w)
{
	struct auth_bytes reply = {NULL, 0};
	struct row_opt o = {
		.result = w->result,
		.kind = w->result == ROW_FAILED ? w->kind_failed : SPL_OK,
		.id = auth_name(&w->id),
		.type = auth_name(&w->type),
		.mesh = auth_name(&a->cfg.mesh),
		.rid = auth_name(&a->host.id.rid),
		.obj_gen = w->obj_gen,
		.own_gen = w->own_gen,
		.lifecycle = a->host.id.lifecycle,
		.lease_gen = w->lease_gen,
		.text = {w->text, (uint32_t)strlen(w->text)},
		.content = w->content,
	};
	size_t room = 1800 + (w->reply ? w->reply->n : 0);
	uint8_t *val = auth_batch_mem(a, room);

	if (!val)
		return (struct store_bytes){NULL, 0};
	if (w->reply && w->result != ROW_FAILED)
		reply = (struct auth_bytes){w->reply->b, w->reply->n};
	o.reply = reply;
	return (struct store_bytes){val, row_opt_put(val, room, &o)};
}

/* A-LOC-20: 300 s past the deadline of the operation. */
int64_t auth_keep_ms(const struct auth *a, const struct auth_work *w)
{
	int64_t left = w->deadline > a->now ? w->deadline - a->now : 0;

	if (left > AUTH_KEEP_CAP_NS)
		left = AUTH_KEEP_CAP_NS;
	return (left + AUTH_KEEP_NS) / AUTH_MS;
}
