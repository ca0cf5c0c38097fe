/* SPDX-License-Identifier: BSD-3-Clause */
/* Paged list of Spots (A-LOC-46): pages of one store snapshot, filtered by kind, type and mesh. A
 * page is whole or an error. The token is the store's cursor in hexadecimal. Called on the driver's
 * thread; owns the entries until the reply was pulled. */
#include "control/authority/priv.h"

#include <errno.h>
#include <spotlane/limits.h>
#include <stdlib.h>
#include <string.h>

#define SCANS_MAX 16 /* store pages looked through for one page of a rare filter */

struct auth_list {
	struct auth_entry *entries;
	uint32_t n;
	struct store_cursor cursor;
	bool resume;
	unsigned scans;
	uint8_t *mem; /* names of the entries */
	size_t used, room;
	char token[2 * STORE_CURSOR_BYTES];
};
_Static_assert(2 * STORE_CURSOR_BYTES <= AUTH_TOKEN_MAX, "token");
/* Four names and some numbers an entry: a full page stays far below the limit of its bytes. */
_Static_assert(SPL_LIST_PAGE_MAX *(4 * 255 + sizeof(struct auth_entry)) <= SPL_LIST_PAGE_BYTES_MAX,
	       "page");

static const char hex[] = "0123456789abcdef";

static bool parse_token(struct auth_bytes t, struct store_cursor *c)
{
	const char *s = t.p;

	if (t.n != 2 * STORE_CURSOR_BYTES)
		return false;
	for (size_t i = 0; i < STORE_CURSOR_BYTES; i++) {
		const char *hi = memchr(hex, s[2 * i], 16), *lo = memchr(hex, s[2 * i + 1], 16);

		if (!hi || !lo)
			return false;
		c->b[i] = (uint8_t)((hi - hex) << 4 | (lo - hex));
	}
	return true;
}

static void print_token(struct auth_list *l, const struct store_cursor *c)
{
	for (size_t i = 0; i < STORE_CURSOR_BYTES; i++) {
		l->token[2 * i] = hex[c->b[i] >> 4];
		l->token[2 * i + 1] = hex[c->b[i] & 15];
	}
}

static struct auth_op *op_of(struct auth_step *s)
{
	return (struct auth_op *)((char *)s - offsetof(struct auth_op, step));
}

static int build(struct auth *a, struct auth_step *s)
{
	struct auth_op *op = op_of(s);
	struct store_req *r = auth_batch_req(a, STORE_SCAN);

	if (!r)
		return -ENOSPC;
	r->u.scan.prefix = row_spots_prefix();
	r->u.scan.resume = op->list->resume;
	r->u.scan.cursor = op->list->cursor;
	r->u.scan.limit = op->limit - op->list->n;
	return 0;
}

static bool wanted(const struct auth_op *op, const struct row_obj *row)
{
	if (op->kind != SPL_KIND_INVALID && op->kind != row->kind)
		return false;
	if (op->type.len && !auth_name_is(&op->type, row->type))
		return false;
	return !op->mesh.len || auth_name_is(&op->mesh, row->owner.mesh);
}

/* Names are kept as offsets until the page is full, because the memory may move. */
static bool add_name(struct auth_list *l, struct auth_bytes *to, struct auth_bytes from)
{
	if (l->used + from.n > l->room) {
		size_t room = l->room ? l->room * 2 : 4096;
		uint8_t *mem = realloc(l->mem, room);

		if (!mem)
			return false;
		l->mem = mem;
		l->room = room;
	}
	if (from.n)
		memcpy(l->mem + l->used, from.p, from.n);
	to->n = from.n;
	l->used += from.n;
	return true;
}

static bool add(struct auth_list *l, struct auth_bytes id, const struct row_obj *row,
		const struct store_entry *e)
{
	struct auth_entry *x = &l->entries[l->n];

	if (!add_name(l, &x->id, id) || !add_name(l, &x->type, row->type) ||
	    !add_name(l, &x->mesh, row->owner.mesh) || !add_name(l, &x->rid, row->owner.rid))
		return false;
	x->obj_gen = (uint64_t)e->cr;
	x->own_gen = row->own_gen;
	x->ver = (uint64_t)e->mr;
	x->lifecycle = row->owner.lifecycle;
	x->lease_gen = (uint64_t)row->owner.lease_gen;
	x->kind = row->kind;
	x->state = row->state;
	l->n++;
	return true;
}

static void place(struct auth_bytes *b, const uint8_t **at)
{
	b->p = *at;
	*at += b->n;
}

static void finish(struct auth *a, struct auth_op *op, bool more)
{
	struct auth_list *l = op->list;
	const uint8_t *at = l->mem;

	for (uint32_t i = 0; i < l->n; i++) {
		place(&l->entries[i].id, &at);
		place(&l->entries[i].type, &at);
		place(&l->entries[i].mesh, &at);
		place(&l->entries[i].rid, &at);
	}
	op->r.entries = l->entries;
	op->r.n_entries = l->n;
	if (more) {
		print_token(l, &l->cursor);
		op->r.next = (struct auth_bytes){l->token, sizeof(l->token)};
	}
	auth_op_finish(a, op, SPL_OK, "%u entries", l->n);
}

/* One store page; false when the op was ended with an error. */
static bool take_page(struct auth *a, struct auth_op *op, const struct store_page *pg)
{
	struct row_obj row;

	for (size_t i = 0; i < pg->n; i++) {
		const struct store_entry *e = &pg->entries[i];
		struct auth_bytes id = row_spot_of_key(e->key);

		if (!id.n || row_obj_get(&row, e->val.p, e->val.n)) {
			auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "the row of %.*s is damaged",
				       (int)id.n, (const char *)id.p);
			return false;
		}
		if (wanted(op, &row) && !add(op->list, id, &row, e)) {
			auth_op_finish(a, op, SPL_E_INTERNAL_FAILURE, "out of memory");
			return false;
		}
	}
	return true;
}

static void done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_op *op = op_of(s);
	struct auth_list *l = op->list;
	const struct store_page *pg = &r->u.scan.page;

	if (op->state == AUTH_OP_DONE) {
		auth_op_step_back(a, op);
		return;
	}
	if (r->rc == STORE_EXPIRED) {
		auth_op_finish(a, op, SPL_E_UNAVAILABLE,
			       "the snapshot of this list is gone: start from the first page");
		return;
	}
	if (r->rc != STORE_OK) {
		auth_op_store_failed(a, op, r);
		return;
	}
	if (!take_page(a, op, pg))
		return;
	l->resume = true;
	l->cursor = pg->next;
	if (!pg->more || l->n == op->limit || ++l->scans == SCANS_MAX)
		finish(a, op, pg->more);
	else
		auth_step_queue(a, &op->step);
}

int auth_list_prepare(struct auth_op *op, const struct auth_request *r)
{
	struct auth_list *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	op->list = l;
	l->resume = r->token.n != 0;
	if (l->resume && !parse_token(r->token, &l->cursor))
		return -EINVAL;
	l->entries = calloc(op->limit, sizeof(*l->entries));
	if (!l->entries)
		return -ENOMEM;
	auth_step_init(&op->step, build, done);
	return 0;
}

void auth_list_start(struct auth *a, struct auth_op *op)
{
	op->state = AUTH_OP_BUSY;
	auth_step_queue(a, &op->step);
}

void auth_list_free(struct auth_op *op)
{
	if (!op->list)
		return;
	free(op->list->entries);
	free(op->list->mem);
	free(op->list);
	op->list = NULL;
}
