/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, and the store read directly: see rig.h. */
#include "tests/unit/authority/rig.h"

#include <string.h>

/* ---- trouble ---- */

void rig_fault(enum store_fault f, enum store_op op, int times)
{
	rig.fault = f;
	rig.fault_op = op;
	rig.fault_times = times;
}

static void touch(const char *key, uint32_t n)
{
	struct store_mut m = {.key = {key, n}};
	struct store_txn t = {.muts = &m, .n_muts = 1};
	struct store_item it;

	if (store_read(rig.mem, m.key, &it) != STORE_OK)
		return;
	m.val = (struct store_bytes){it.val, it.len};
	m.lease = it.lease;
	CU_ASSERT_EQUAL(store_commit(rig.mem, &t), STORE_OK);
	store_item_free(&it);
}

void rig_touch(const char *id)
{
	char key[ROW_KEY_MAX];

	touch(key, row_key_obj(key, (struct auth_bytes){id, (uint32_t)strlen(id)}));
}

void rig_touch_cap(void)
{
	char key[ROW_KEY_MAX];

	touch(key, row_key_cap(key, (struct auth_bytes){rig.id.rid.b, rig.id.rid.len}));
}

/* ---- requests ---- */

struct auth_request rig_request(enum auth_verb v, const char *id, const char *type)
{
	struct auth_request r = {.verb = v, .deadline = rig.now + 10000 * MS};

	spl_name_set(&r.op.rid, "client-1", sizeof("client-1") - 1);
	r.op.lifecycle = 77;
	r.op.hi = 1;
	r.op.lo = ++rig.next_op;
	if (id)
		r.id = (struct auth_bytes){id, (uint32_t)strlen(id)};
	if (type)
		r.type = (struct auth_bytes){type, (uint32_t)strlen(type)};
	r.limit = 100;
	return r;
}

int rig_submit(struct auth_request *r, uint64_t *tag)
{
	static uint64_t tags;
	int err;

	r->tag = tags = (tags + 1) % RIG_REPLIES;
	memset(&rig.replies[r->tag], 0, sizeof(rig.replies[0]));
	err = auth_submit(rig.a, r, rig.now);
	if (tag)
		*tag = r->tag;
	rig_run();
	return err;
}

static uint64_t must(struct auth_request *r)
{
	uint64_t tag;

	CU_ASSERT_EQUAL(rig_submit(r, &tag), 0);
	return tag;
}

uint64_t rig_create(const char *type)
{
	struct auth_request r = rig_request(AUTH_CREATE, NULL, type);

	return must(&r);
}

uint64_t rig_goc_op(const char *id, const char *type, uint64_t op, int64_t ms)
{
	struct auth_request r = rig_request(AUTH_GET_OR_CREATE, id, type);

	r.op.lo = op;
	r.deadline = rig.now + ms * MS;
	return must(&r);
}

uint64_t rig_goc_in(const char *id, const char *type, int64_t ms)
{
	return rig_goc_op(id, type, ++rig.next_op, ms);
}

uint64_t rig_goc(const char *id, const char *type)
{
	return rig_goc_in(id, type, 10000);
}

uint64_t rig_ask(enum auth_verb v, const char *id)
{
	struct auth_request r = rig_request(v, id, NULL);

	return must(&r);
}

uint64_t rig_activate(const char *id, const char *type, int64_t ms)
{
	struct auth_request r = rig_request(AUTH_ACTIVATE, id, type);

	r.deadline = rig.now + ms * MS;
	return must(&r);
}

uint64_t rig_own_close(const char *id, uint64_t gen, enum auth_close_reason reason)
{
	struct auth_request r = rig_request(AUTH_CLOSE, id, NULL);

	r.obj_gen = gen;
	r.own = true;
	r.reason = reason;
	return must(&r);
}

enum auth_host_state rig_state(void)
{
	struct auth_status s;

	auth_status(rig.a, &s);
	return s.state;
}

uint64_t rig_find(const char *id)
{
	return rig_ask(AUTH_FIND, id);
}

uint64_t rig_closing(const char *id, uint64_t gen)
{
	struct auth_request r = rig_request(AUTH_CLOSE, id, NULL);

	r.obj_gen = gen;
	return must(&r);
}

uint64_t rig_list(const char *type, uint32_t limit, const char *token)
{
	struct auth_request r = rig_request(AUTH_LIST, NULL, type);

	r.limit = limit;
	if (token)
		r.token = (struct auth_bytes){token, (uint32_t)strlen(token)};
	return must(&r);
}

struct rig_reply *rig_got(uint64_t tag)
{
	return &rig.replies[tag];
}

int rig_kind(uint64_t tag)
{
	const struct rig_reply *r = rig_got(tag);

	CU_ASSERT_TRUE(r->times <= 1);
	return r->there ? r->r.kind : -1;
}

bool rig_is_created(uint64_t tag)
{
	return rig_kind(tag) == SPL_OK && rig_got(tag)->r.created == AUTH_CREATED;
}

bool rig_is_existing(uint64_t tag)
{
	return rig_kind(tag) == SPL_OK && rig_got(tag)->r.created == AUTH_EXISTING;
}

/* ---- the store as it is ---- */

bool rig_row(const char *id, struct row_obj *row, uint64_t *gen)
{
	static struct store_item it;
	char key[ROW_KEY_MAX];
	uint32_t n = row_key_obj(key, (struct auth_bytes){id, (uint32_t)strlen(id)});
	enum store_fault keep = rig.fault;
	int rc;

	store_item_free(&it);
	rig.fault = STORE_FAULT_NONE;
	rc = store_read(rig.st, (struct store_bytes){key, n}, &it);
	rig.fault = keep;
	if (rc != STORE_OK)
		return false;
	CU_ASSERT_EQUAL(row_obj_get(row, it.val, it.len), 0);
	if (gen)
		*gen = (uint64_t)it.cr;
	return true;
}

uint64_t rig_gen(const char *id)
{
	struct row_obj row;
	uint64_t gen = 0;

	rig_row(id, &row, &gen);
	return gen;
}

bool rig_cap(struct row_cap *cap)
{
	struct store_item it;
	char key[ROW_KEY_MAX];
	uint32_t n = row_key_cap(key, (struct auth_bytes){rig.id.rid.b, rig.id.rid.len});
	int err;

	if (store_read(rig.st, (struct store_bytes){key, n}, &it) != STORE_OK)
		return false;
	err = row_cap_get(cap, it.val, it.len);
	cap->types.p = NULL;
	store_item_free(&it);
	CU_ASSERT_EQUAL(err, 0);
	return true;
}

struct counts {
	uint32_t active, reserved;
};

/* The token that the store holds now: the one told to the driver may be a step behind. */
static int64_t token_now(void)
{
	struct store_item it;
	char key[ROW_KEY_MAX];
	uint32_t n =
		row_key_lease(key, (struct auth_bytes){rig.id.owner_id.b, rig.id.owner_id.len});
	int64_t gen = 0;

	if (store_read(rig.st, (struct store_bytes){key, n}, &it) == STORE_OK)
		gen = it.cr;
	store_item_free(&it);
	return gen;
}

static void count_rows(struct counts *c)
{
	int64_t token = token_now();
	struct store_cursor cur;
	struct store_page pg;
	bool more = true, first = true;

	memset(c, 0, sizeof(*c));
	while (more) {
		CU_ASSERT_EQUAL_FATAL(
			store_scan(rig.st, row_spots_prefix(), first ? NULL : &cur, 1000, &pg),
			STORE_OK);
		for (size_t i = 0; i < pg.n; i++) {
			struct row_obj r;

			CU_ASSERT_EQUAL_FATAL(
				row_obj_get(&r, pg.entries[i].val.p, pg.entries[i].val.n), 0);
			if (r.owner.lease_gen != token || r.kind == SPL_KIND_ENTRY)
				continue;
			c->active += r.alloc == ROW_ACTIVE;
			c->reserved += r.alloc == ROW_RESERVED;
		}
		more = pg.more;
		cur = pg.next;
		first = false;
		store_page_free(&pg);
	}
}

void rig_check_capacity(void)
{
	struct counts c;
	struct row_cap cap;

	if (!rig_cap(&cap))
		return;
	count_rows(&c);
	CU_ASSERT_EQUAL_FATAL(cap.spots_active, c.active);
	CU_ASSERT_EQUAL_FATAL(cap.spots_reserved, c.reserved);
}

void rig_check_rest(void)
{
	struct auth_status s;
	struct counts c;
	struct row_cap cap;

	auth_status(rig.a, &s);
	CU_ASSERT_EQUAL(s.ops, 0);
	CU_ASSERT_EQUAL(s.waiters, 0);
	CU_ASSERT_EQUAL(s.pending, 0);
	for (unsigned i = 0; i < rig.n_cmds; i++)
		CU_ASSERT_FALSE(rig.cmds[i].open);
	count_rows(&c);
	if (!rig_cap(&cap))
		return;
	CU_ASSERT_EQUAL(cap.spots_active, c.active);
	CU_ASSERT_EQUAL(cap.spots_reserved, c.reserved);
	CU_ASSERT_EQUAL(c.reserved, 0);
	CU_ASSERT_EQUAL(s.spots, c.active);
	for (unsigned i = 0; i < RIG_OBJECTS; i++) {
		struct rig_object *o = &rig.objects[i];
		struct row_obj row;
		uint64_t gen;

		if (!o->there)
			continue;
		CU_ASSERT_EQUAL(o->state, AUTH_INV_READY);
		CU_ASSERT_TRUE(rig_row(o->id, &row, &gen) && gen == o->obj_gen &&
			       row.own_gen == o->own_gen);
	}
}

bool rig_read_key(const char *key, uint32_t n, struct store_item *it)
{
	return store_read(rig.st, (struct store_bytes){key, n}, it) == STORE_OK;
}

struct auth_bytes rig_bytes(const struct spl_name *n)
{
	return (struct auth_bytes){n->b, n->len};
}

bool rig_node_row(struct row_node *row, struct store_item *it)
{
	char key[ROW_KEY_MAX];
	struct auth_bytes mesh = {"mesh", 4};

	if (!rig_read_key(key, row_key_node(key, mesh, rig_bytes(&rig.id.rid)), it))
		return false;
	return row_node_get(row, it->val, it->len) == 0;
}

bool rig_lease_there(void)
{
	char key[ROW_KEY_MAX];
	struct store_item it;
	bool there = rig_read_key(key, row_key_lease(key, rig_bytes(&rig.id.owner_id)), &it);

	store_item_free(&it);
	return there;
}
