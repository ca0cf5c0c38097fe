/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of the store: see rows.h. Owns nothing. */
#include "control/authority/rows.h"

#include "common/pack.h"
#include "control/authority/crc32c.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define F_PENDING  1u
#define F_RELOC	   2u
#define F_RECOVERY 4u

/* ---- keys ---- */

static uint32_t key_put(char out[ROW_KEY_MAX], uint32_t at, const void *p, uint32_t n)
{
	memcpy(out + at, p, n);
	return at + n;
}

static uint32_t key_text(char out[ROW_KEY_MAX], uint32_t at, const char *text)
{
	return key_put(out, at, text, (uint32_t)strlen(text));
}

uint32_t row_key_obj(char out[ROW_KEY_MAX], struct auth_bytes spot_id)
{
	return key_put(out, key_text(out, 0, ROW_PREFIX "obj/s/"), spot_id.p, spot_id.n);
}

uint32_t row_key_lease(char out[ROW_KEY_MAX], struct auth_bytes owner_id)
{
	return key_put(out, key_text(out, 0, ROW_PREFIX "lease/"), owner_id.p, owner_id.n);
}

/* A rid has no '/', so that the last one always ends the mesh name, whatever that contains. */
uint32_t row_key_node(char out[ROW_KEY_MAX], struct auth_bytes mesh, struct auth_bytes rid)
{
	uint32_t n = key_put(out, key_text(out, 0, ROW_PREFIX "node/"), mesh.p, mesh.n);

	return key_put(out, key_text(out, n, "/"), rid.p, rid.n);
}

uint32_t row_key_cap(char out[ROW_KEY_MAX], struct auth_bytes rid)
{
	return key_put(out, key_text(out, 0, ROW_PREFIX "cap/"), rid.p, rid.n);
}

static uint32_t key_hex(char *out, uint32_t at, uint64_t v)
{
	static const char hex[] = "0123456789abcdef";

	for (int i = 60; i >= 0; i -= 4)
		out[at++] = hex[v >> i & 15];
	return at;
}

/* The tail has a fixed length, so that a source rid may contain anything. */
uint32_t row_key_opt(char out[ROW_KEY_MAX], const struct row_op_id *op)
{
	uint32_t n = key_put(out, key_text(out, 0, ROW_PREFIX "opt/"), op->rid.p, op->rid.n);

	n = key_hex(out, key_text(out, n, "/"), op->lifecycle);
	n = key_hex(out, key_text(out, n, "/"), op->hi);
	return key_hex(out, n, op->lo);
}

struct store_bytes row_spots_prefix(void)
{
	static const char prefix[] = ROW_PREFIX "obj/s/";

	return (struct store_bytes){prefix, sizeof(prefix) - 1};
}

struct auth_bytes row_spot_of_key(struct store_bytes key)
{
	struct store_bytes pre = row_spots_prefix();

	if (key.n <= pre.n || memcmp(key.p, pre.p, pre.n) != 0)
		return (struct auth_bytes){NULL, 0};
	return (struct auth_bytes){(const char *)key.p + pre.n, key.n - pre.n};
}

/* ---- frame of a value ---- */

static struct pack_writer value_begin(uint8_t *out, size_t room, enum row_format f)
{
	struct pack_writer w = {.p = out, .cap = room};

	pack_put_u8(&w, (uint8_t)f);
	return w;
}

static uint32_t value_end(struct pack_writer *w)
{
	pack_put_u32(w, w->overflow ? 0 : crc32c(w->p, w->len));
	return w->overflow ? 0 : (uint32_t)w->len;
}

static int value_open(struct pack_reader *r, const void *val, size_t n, enum row_format f)
{
	struct pack_reader tail;

	if (n < 5)
		return -EBADMSG;
	tail = (struct pack_reader){.p = (const uint8_t *)val + n - 4, .left = 4};
	if (pack_get_u32(&tail) != crc32c(val, n - 4))
		return -EBADMSG;
	*r = (struct pack_reader){.p = val, .left = n - 4};
	return pack_get_u8(r) == (uint8_t)f ? 0 : -EPROTONOSUPPORT;
}

static int value_done(const struct pack_reader *r)
{
	return r->bad || r->left ? -EBADMSG : 0;
}

static void put_text(struct pack_writer *w, struct auth_bytes t)
{
	pack_put_text(w, (struct pack_bytes){t.p, t.n});
}

static struct auth_bytes get_text(struct pack_reader *r)
{
	struct pack_bytes t = pack_get_text(r);

	return (struct auth_bytes){t.p, t.len};
}

static void put_bytes(struct pack_writer *w, struct auth_bytes t)
{
	pack_put_bytes(w, (struct pack_bytes){t.p, t.n});
}

static struct auth_bytes get_bytes(struct pack_reader *r)
{
	struct pack_bytes t = pack_get_bytes(r);

	return (struct auth_bytes){t.p, t.len};
}

static void put_owner(struct pack_writer *w, const struct row_owner *o)
{
	put_text(w, o->owner_id);
	put_text(w, o->mesh);
	put_text(w, o->rid);
	pack_put_u64(w, o->lifecycle);
	pack_put_u64(w, (uint64_t)o->lease_gen);
}

static void get_owner(struct pack_reader *r, struct row_owner *o)
{
	o->owner_id = get_text(r);
	o->mesh = get_text(r);
	o->rid = get_text(r);
	o->lifecycle = pack_get_u64(r);
	o->lease_gen = (int64_t)pack_get_u64(r);
}

static bool owner_legal(const struct row_owner *o)
{
	return o->owner_id.n && o->mesh.n && o->rid.n && o->lifecycle;
}

/* ---- object ---- */

bool row_obj_legal(const struct row_obj *r)
{
	bool entry = r->kind == SPL_KIND_ENTRY;

	if (r->state < AUTH_ROW_CREATING || r->state > AUTH_ROW_RELOCATING || r->op > ROW_CLOSE ||
	    r->alloc > ROW_ACTIVE || r->kind < SPL_KIND_ENTRY || r->kind > SPL_KIND_INSTANCE)
		return false;
	if (r->own_gen == 0 || r->own_gen > INT64_MAX || r->owner.lease_gen <= 0 ||
	    !owner_legal(&r->owner))
		return false;
	/* Entry Spots have no type, count for no capacity, and neither move nor close. */
	if (entry != (r->type.n == 0) || entry != (r->alloc == ROW_NONE) ||
	    (entry && r->state != AUTH_ROW_READY))
		return false;
	if (r->has_pending != (r->alloc == ROW_RESERVED) ||
	    (r->state == AUTH_ROW_CREATING) != (r->alloc == ROW_RESERVED))
		return false;
	if ((r->reloc.n != 0) != (r->op == ROW_RELOCATION) ||
	    (r->reloc.n != 0) != (r->state == AUTH_ROW_RELOCATING))
		return false;
	if ((r->op == ROW_CLOSE) != (r->state == AUTH_ROW_CLOSING))
		return false;
	if (r->recovery.n && (r->kind != SPL_KIND_INSTANCE || r->state != AUTH_ROW_READY))
		return false;
	if (r->op == ROW_COLD && (r->kind != SPL_KIND_INSTANCE ||
				  (r->state != AUTH_ROW_CREATING && r->state != AUTH_ROW_READY)))
		return false;
	if (r->members && (r->state == AUTH_ROW_CREATING || r->state == AUTH_ROW_CLOSING ||
			   r->kind == SPL_KIND_INSTANCE))
		return false;
	return r->reloc.n <= ROW_OPTIONAL_MAX && r->recovery.n <= ROW_OPTIONAL_MAX;
}

static void put_pending(struct pack_writer *w, const struct row_pending *p)
{
	pack_put_u64(w, p->attempt);
	put_text(w, p->op.rid);
	pack_put_u64(w, p->op.lifecycle);
	pack_put_u64(w, p->op.hi);
	pack_put_u64(w, p->op.lo);
	pack_put_u64(w, (uint64_t)p->deadline);
	pack_put_u32(w, p->size);
	pack_put(w, p->sha256, sizeof(p->sha256));
}

static bool get_pending(struct pack_reader *r, struct row_pending *p)
{
	const void *sha;

	p->attempt = pack_get_u64(r);
	p->op.rid = get_text(r);
	p->op.lifecycle = pack_get_u64(r);
	p->op.hi = pack_get_u64(r);
	p->op.lo = pack_get_u64(r);
	p->deadline = (int64_t)pack_get_u64(r);
	p->size = pack_get_u32(r);
	sha = pack_take(r, sizeof(p->sha256));
	if (!sha)
		return false;
	memcpy(p->sha256, sha, sizeof(p->sha256));
	return p->attempt && p->op.rid.n && p->op.lifecycle && p->size <= AUTH_REQUEST_MAX;
}

uint32_t row_obj_put(uint8_t *out, size_t room, const struct row_obj *r)
{
	struct pack_writer w = value_begin(out, room, ROW_OBJ);

	if (!row_obj_legal(r))
		return 0;
	pack_put_u8(&w, (uint8_t)((r->has_pending ? F_PENDING : 0) | (r->reloc.n ? F_RELOC : 0) |
				  (r->recovery.n ? F_RECOVERY : 0)));
	pack_put_u8(&w, (uint8_t)r->state);
	pack_put_u8(&w, (uint8_t)r->op);
	pack_put_u8(&w, (uint8_t)r->kind);
	pack_put_u8(&w, (uint8_t)r->alloc);
	pack_put_u64(&w, r->own_gen);
	pack_put_u32(&w, r->members);
	pack_put_u64(&w, r->epoch);
	put_owner(&w, &r->owner);
	put_text(&w, r->type);
	if (r->has_pending)
		put_pending(&w, &r->pending);
	if (r->reloc.n)
		put_bytes(&w, r->reloc);
	if (r->recovery.n)
		put_bytes(&w, r->recovery);
	return value_end(&w);
}

int row_obj_get(struct row_obj *r, const void *val, size_t n)
{
	struct pack_reader in;
	uint8_t flags;
	int err = value_open(&in, val, n, ROW_OBJ);

	if (err)
		return err;
	*r = (struct row_obj){0};
	flags = pack_get_u8(&in);
	r->state = (enum auth_row_state)pack_get_u8(&in);
	r->op = (enum row_op)pack_get_u8(&in);
	r->kind = (enum spl_kind)pack_get_u8(&in);
	r->alloc = (enum row_alloc)pack_get_u8(&in);
	r->own_gen = pack_get_u64(&in);
	r->members = pack_get_u32(&in);
	r->epoch = pack_get_u64(&in);
	get_owner(&in, &r->owner);
	r->type = get_text(&in);
	r->has_pending = flags & F_PENDING;
	if (r->has_pending && !get_pending(&in, &r->pending))
		return -EINVAL;
	if (flags & F_RELOC)
		r->reloc = get_bytes(&in);
	if (flags & F_RECOVERY)
		r->recovery = get_bytes(&in);
	err = value_done(&in);
	if (err)
		return err;
	if (flags & ~(F_PENDING | F_RELOC | F_RECOVERY) || !!(flags & F_RELOC) != !!r->reloc.n ||
	    !!(flags & F_RECOVERY) != !!r->recovery.n)
		return -EINVAL;
	return row_obj_legal(r) ? 0 : -EINVAL;
}

/* ---- node ---- */

uint32_t row_node_put(uint8_t *out, size_t room, const struct row_node *r,
		      const struct row_type *types)
{
	struct pack_writer w = value_begin(out, room, ROW_NODE);

	put_owner(&w, &r->owner);
	put_text(&w, r->entry_id);
	put_bytes(&w, r->endpoint);
	put_text(&w, r->version);
	pack_put_u64(&w, r->revision);
	pack_put_u8(&w, (uint8_t)r->state);
	pack_put_u32(&w, r->lanes);
	pack_put_u32(&w, r->weight);
	pack_put_u32(&w, (uint32_t)r->n_types);
	for (size_t i = 0; i < r->n_types; i++) {
		put_text(&w, types[i].name);
		pack_put_u8(&w, (uint8_t)types[i].kind);
		pack_put_u32(&w, types[i].limit);
	}
	return value_end(&w);
}

static bool take_node_type(struct pack_reader *in, struct row_type *t)
{
	t->name = get_text(in);
	t->kind = (enum spl_kind)pack_get_u8(in);
	t->limit = pack_get_u32(in);
	return !in->bad && t->name.n && (t->kind == SPL_KIND_USER || t->kind == SPL_KIND_INSTANCE);
}

int row_node_get(struct row_node *r, const void *val, size_t n)
{
	struct pack_reader in;
	struct row_type t;
	int err = value_open(&in, val, n, ROW_NODE);

	if (err)
		return err;
	*r = (struct row_node){0};
	get_owner(&in, &r->owner);
	r->entry_id = get_text(&in);
	r->endpoint = get_bytes(&in);
	r->version = get_text(&in);
	r->revision = pack_get_u64(&in);
	r->state = (enum auth_host_state)pack_get_u8(&in);
	r->lanes = pack_get_u32(&in);
	r->weight = pack_get_u32(&in);
	r->n_types = pack_get_u32(&in);
	r->types = (struct auth_bytes){in.p, (uint32_t)in.left};
	if (in.bad)
		return -EBADMSG;
	if (r->n_types > AUTH_TYPES_MAX || r->endpoint.n > AUTH_ENDPOINT_MAX || r->weight > 10000 ||
	    r->revision == 0 || !r->entry_id.n || !owner_legal(&r->owner))
		return -EINVAL;
	for (size_t i = 0; i < r->n_types; i++)
		if (!take_node_type(&in, &t))
			return in.bad ? -EBADMSG : -EINVAL;
	return value_done(&in);
}

bool row_node_type(const struct row_node *r, size_t *at, struct row_type *out)
{
	struct pack_reader in = {.p = (const uint8_t *)r->types.p + *at, .left = r->types.n - *at};

	if (in.left == 0 || !take_node_type(&in, out))
		return false;
	*at = r->types.n - in.left;
	return true;
}

/* ---- capacity ---- */

uint32_t row_cap_put(uint8_t *out, size_t room, const struct row_cap *r,
		     const struct row_cap_type *types)
{
	struct pack_writer w = value_begin(out, room, ROW_CAP);

	pack_put_u32(&w, r->spots_active);
	pack_put_u32(&w, r->spots_reserved);
	pack_put_u32(&w, r->pending);
	pack_put_u32(&w, (uint32_t)r->n_types);
	for (size_t i = 0; i < r->n_types; i++) {
		put_text(&w, types[i].name);
		pack_put_u8(&w, (uint8_t)types[i].kind);
		pack_put_u32(&w, types[i].active);
		pack_put_u32(&w, types[i].reserved);
	}
	return value_end(&w);
}

static bool take_cap_type(struct pack_reader *in, struct row_cap_type *t)
{
	t->name = get_text(in);
	t->kind = (enum spl_kind)pack_get_u8(in);
	t->active = pack_get_u32(in);
	t->reserved = pack_get_u32(in);
	return !in->bad && t->name.n && (t->kind == SPL_KIND_USER || t->kind == SPL_KIND_INSTANCE);
}

int row_cap_get(struct row_cap *r, const void *val, size_t n)
{
	uint64_t active = 0, reserved = 0;
	struct pack_reader in;
	struct row_cap_type t;
	int err = value_open(&in, val, n, ROW_CAP);

	if (err)
		return err;
	*r = (struct row_cap){0};
	r->spots_active = pack_get_u32(&in);
	r->spots_reserved = pack_get_u32(&in);
	r->pending = pack_get_u32(&in);
	r->n_types = pack_get_u32(&in);
	r->types = (struct auth_bytes){in.p, (uint32_t)in.left};
	if (in.bad)
		return -EBADMSG;
	if (r->n_types > AUTH_TYPES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < r->n_types; i++) {
		if (!take_cap_type(&in, &t))
			return in.bad ? -EBADMSG : -EINVAL;
		active += t.active;
		reserved += t.reserved;
	}
	err = value_done(&in);
	if (err)
		return err;
	return active == r->spots_active && reserved == r->spots_reserved &&
			       r->pending <= r->spots_reserved
		       ? 0
		       : -EINVAL;
}

bool row_cap_type(const struct row_cap *r, size_t *at, struct row_cap_type *out)
{
	struct pack_reader in = {.p = (const uint8_t *)r->types.p + *at, .left = r->types.n - *at};

	if (in.left == 0 || !take_cap_type(&in, out))
		return false;
	*at = r->types.n - in.left;
	return true;
}

/* ---- lease ---- */

uint32_t row_lease_put(uint8_t *out, size_t room, const struct row_lease *r)
{
	struct pack_writer w = value_begin(out, room, ROW_LEASE);

	put_text(&w, r->mesh);
	put_text(&w, r->rid);
	put_text(&w, r->entry_id);
	pack_put_u64(&w, r->lifecycle);
	pack_put_u64(&w, r->lease);
	pack_put_u64(&w, (uint64_t)r->start);
	return value_end(&w);
}

int row_lease_get(struct row_lease *r, const void *val, size_t n)
{
	struct pack_reader in;
	int err = value_open(&in, val, n, ROW_LEASE);

	if (err)
		return err;
	r->mesh = get_text(&in);
	r->rid = get_text(&in);
	r->entry_id = get_text(&in);
	r->lifecycle = pack_get_u64(&in);
	r->lease = pack_get_u64(&in);
	r->start = (int64_t)pack_get_u64(&in);
	err = value_done(&in);
	if (err)
		return err;
	return r->mesh.n && r->rid.n && r->entry_id.n && r->lifecycle && r->lease ? 0 : -EINVAL;
}

/* ---- terminal of a creation ---- */

static bool opt_legal(const struct row_opt *r)
{
	bool failed = r->result == ROW_FAILED;

	if (r->result < ROW_CREATED || r->result > ROW_FAILED || !r->id.n || r->obj_gen == 0)
		return false;
	if (failed ? r->kind < 0 || r->kind >= SPL_ERROR_COUNT : r->kind != SPL_OK)
		return false;
	return r->reply.n <= AUTH_REPLY_MAX && !(failed && r->reply.n);
}

/* A-LOC-20: the record carries its own SHA-256, over all fields before it. */
uint32_t row_opt_put(uint8_t *out, size_t room, const struct row_opt *r)
{
	struct pack_writer w = value_begin(out, room, ROW_OPT);
	uint8_t sha[32];

	if (!opt_legal(r))
		return 0;
	pack_put_u8(&w, (uint8_t)r->result);
	pack_put_u8(&w, (uint8_t)r->kind);
	put_text(&w, r->id);
	put_text(&w, r->type);
	put_text(&w, r->mesh);
	put_text(&w, r->rid);
	pack_put_u64(&w, r->obj_gen);
	pack_put_u64(&w, r->own_gen);
	pack_put_u64(&w, r->lifecycle);
	pack_put_u64(&w, (uint64_t)r->lease_gen);
	put_text(&w, r->text);
	pack_put_u16(&w, r->content);
	put_bytes(&w, r->reply);
	if (w.overflow)
		return 0;
	SHA256(w.p, w.len, sha);
	pack_put(&w, sha, sizeof(sha));
	return value_end(&w);
}

int row_opt_get(struct row_opt *r, const void *val, size_t n)
{
	struct pack_reader in;
	uint8_t sha[32];
	const void *stored;
	size_t body;
	int err = value_open(&in, val, n, ROW_OPT);

	if (err)
		return err;
	r->result = (enum row_result)pack_get_u8(&in);
	r->kind = pack_get_u8(&in);
	r->id = get_text(&in);
	r->type = get_text(&in);
	r->mesh = get_text(&in);
	r->rid = get_text(&in);
	r->obj_gen = pack_get_u64(&in);
	r->own_gen = pack_get_u64(&in);
	r->lifecycle = pack_get_u64(&in);
	r->lease_gen = (int64_t)pack_get_u64(&in);
	r->text = get_text(&in);
	r->content = pack_get_u16(&in);
	r->reply = get_bytes(&in);
	body = (size_t)(in.p - (const uint8_t *)val);
	stored = pack_take(&in, sizeof(sha));
	err = value_done(&in);
	if (err)
		return err;
	SHA256(val, body, sha);
	if (memcmp(stored, sha, sizeof(sha)) != 0)
		return -EBADMSG;
	return opt_legal(r) ? 0 : -EINVAL;
}
