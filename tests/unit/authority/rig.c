/* SPDX-License-Identifier: BSD-3-Clause */
/* See rig.h. */
#include "tests/unit/authority/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig rig;

static int64_t clock_ms(void *ctx)
{
	return rig.now / MS;
}

static void draw(void *ctx, void *buf, size_t n)
{
	uint8_t *b = buf;

	for (size_t i = 0; i < n; i++)
		b[i] = rig.fixed_random ? 7 : (uint8_t)t_rand_u64(&rig.rnd);
}

static enum store_fault give_fault(void *ctx, enum store_op op)
{
	if (rig.fault == STORE_FAULT_NONE || rig.fault_times == 0 || op != rig.fault_op)
		return STORE_FAULT_NONE;
	if (rig.fault_times > 0)
		rig.fault_times--;
	return rig.fault;
}

static void make_authority(void)
{
	struct auth_config c;

	auth_config_init(&c);
	spl_name_set(&c.mesh, "mesh", sizeof("mesh") - 1);
	snprintf(c.prefix, sizeof(c.prefix), "n");
	c.random = draw;
	c.spots_max = rig.spots_max;
	c.reclaim_on_restart = rig.on_restart;
	if (rig.pending_max)
		c.pending_max = rig.pending_max;
	if (rig.group_max)
		c.group_max = rig.group_max;
	CU_ASSERT_EQUAL_FATAL(auth_create(&rig.a, &c), 0);
}

void rig_reset(void)
{
	struct rig_reply *keep = rig.replies;

	memset(&rig, 0, sizeof(rig));
	rig.replies = keep;
}

void rig_open_bare(void)
{
	struct store_memory_opts o = {clock_ms, NULL, t_seed()};
	struct store *mem;

	rig.rnd.s = t_seed();
	rig.now = 1000000 * MS;
	rig.life = RIG_UNKNOWN;
	if (!rig.replies)
		rig.replies = calloc(RIG_REPLIES, sizeof(*rig.replies));
	memset(rig.replies, 0, RIG_REPLIES * sizeof(*rig.replies));
	CU_ASSERT_EQUAL_FATAL(store_memory_open(&mem, &o), 0);
	CU_ASSERT_EQUAL_FATAL(store_fault_open(&rig.st, mem, give_fault, NULL), 0);
	make_authority();
}

void rig_open(void)
{
	rig_open_bare();
	rig_start_host();
	CU_ASSERT_EQUAL_FATAL(rig.state, AUTH_HOST_SERVING);
}

void rig_close(void)
{
	if (rig.held)
		rig_release_store();
	auth_destroy(rig.a);
	store_close(rig.st);
	rig_reset();
}

static void host_event(enum auth_event_kind kind)
{
	struct auth_type t[2] = {{.kind = SPL_KIND_USER, .limit = rig.room_limit},
				 {.kind = SPL_KIND_USER}};
	struct auth_event e = {.kind = kind};

	spl_name_set(&t[0].name, "room", sizeof("room") - 1);
	spl_name_set(&t[1].name, "cart", sizeof("cart") - 1);
	e.u.host.types = t;
	e.u.host.n_types = 2;
	e.u.host.endpoint = (struct auth_bytes){"10.0.0.1:7400", 13};
	e.u.host.lanes = 2;
	e.u.host.id = rig.id;
	rig.dead_dp = false;
	CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
	rig_run();
}

void rig_start_host(void)
{
	host_event(AUTH_EV_HOST_START);
}

void rig_resume_host(void)
{
	host_event(AUTH_EV_HOST_RESUME);
}

void rig_restart_control(void)
{
	if (rig.held) {
		store_run(rig.st, rig.held); /* it was written, nobody heard of it */
		store_batch_clear(rig.held);
		rig.held->n = 0;
		auth_store_done(rig.a, rig.held, rig.now);
		rig.held = NULL;
	}
	auth_destroy(rig.a);
	for (unsigned i = 0; i < rig.n_cmds; i++)
		rig.cmds[i].open = false;
	make_authority();
}

void rig_kill_dp(void)
{
	struct auth_event e = {.kind = AUTH_EV_HOST_DEAD};

	memset(rig.objects, 0, sizeof(rig.objects));
	for (unsigned i = 0; i < rig.n_cmds; i++)
		rig.cmds[i].open = false;
	rig.dead_dp = true;
	auth_event(rig.a, &e, rig.now);
	rig_run();
}

void rig_shutdown(int64_t in_ms)
{
	struct auth_event e = {.kind = AUTH_EV_SHUTDOWN,
			       .u.shutdown.deadline = rig.now + in_ms * MS};

	auth_event(rig.a, &e, rig.now);
	rig_run();
}

/* ---- dataplane ---- */

static void copy(char *to, size_t room, struct auth_bytes b)
{
	const char *from = b.p;
	size_t n = b.n < room ? b.n : room - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = from[i] ? from[i] : '~';
	to[n] = 0;
}

struct rig_object *rig_object(const char *id)
{
	for (unsigned i = 0; i < RIG_OBJECTS; i++)
		if (rig.objects[i].there && strcmp(rig.objects[i].id, id) == 0)
			return &rig.objects[i];
	return NULL;
}

static struct rig_object *add_object(const char *id)
{
	struct rig_object *o = rig_object(id);

	for (unsigned i = 0; !o && i < RIG_OBJECTS; i++)
		if (!rig.objects[i].there)
			o = &rig.objects[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	memset(o, 0, sizeof(*o));
	o->there = true;
	snprintf(o->id, sizeof(o->id), "%s", id);
	return o;
}

static void answer(struct rig_cmd *k, enum rig_policy policy)
{
	struct auth_event e = {.kind = AUTH_EV_ANSWER};
	struct rig_object *o = rig_object(k->id);

	k->open = false;
	e.u.answer.cmd = k->c.cmd;
	e.u.answer.kind = SPL_OK;
	if (k->kind == AUTH_FX_PREPARE) {
		if (!k->c.again || !o || o->attempt != k->c.attempt) {
			rig.factories++;
			/* The id may not be here in any other form. */
			CU_ASSERT_PTR_NULL(o);
		}
		e.u.answer.verdict = policy == RIG_ACCEPT    ? AUTH_ACCEPTED
				     : policy == RIG_DECLINE ? AUTH_DECLINED
							     : AUTH_FAILED;
		if (policy == RIG_FAIL)
			e.u.answer.kind = SPL_E_INTERNAL_FAILURE;
		if (policy != RIG_FAIL && rig.reply_text)
			e.u.answer.reply = (struct auth_bytes){rig.reply_text,
							       (uint32_t)strlen(rig.reply_text)};
		e.u.answer.content = 2;
		if (policy == RIG_ACCEPT) {
			o = add_object(k->id);
			o->obj_gen = k->c.fence.obj_gen;
			o->own_gen = k->c.fence.own_gen;
			o->attempt = k->c.attempt;
			o->state = AUTH_INV_STAGING;
		}
	} else if (k->kind == AUTH_FX_PUBLISH) {
		if (o && o->obj_gen == k->c.fence.obj_gen) {
			o->state = AUTH_INV_READY;
			o->ver = k->c.fence.ver;
			o->own_gen = k->c.fence.own_gen;
			o->lease_gen = k->c.fence.lease_gen;
		} else {
			e.u.answer.kind = SPL_E_NOT_FOUND;
		}
	} else if (k->kind == AUTH_FX_DISCARD) {
		if (o && o->attempt == k->c.attempt)
			o->there = false;
	} else if (o && o->obj_gen == k->c.fence.obj_gen) {
		o->there = false;
		rig.closings += k->c.reason != AUTH_FENCED;
		if (policy == RIG_FAIL)
			e.u.answer.kind = SPL_E_INTERNAL_FAILURE;
	}
	CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
}

bool rig_answer(enum auth_fx_kind kind, const char *id, enum rig_policy policy)
{
	for (unsigned i = 0; i < rig.n_cmds; i++) {
		struct rig_cmd *k = &rig.cmds[i];

		if (!k->open || k->kind != kind || (id && strcmp(k->id, id) != 0))
			continue;
		answer(k, policy);
		rig_run();
		return true;
	}
	return false;
}

unsigned rig_open_cmds(enum auth_fx_kind kind)
{
	unsigned n = 0;

	for (unsigned i = 0; i < rig.n_cmds; i++)
		n += rig.cmds[i].open && rig.cmds[i].kind == kind;
	return n;
}

static void take_command(const struct auth_effect *fx)
{
	struct rig_cmd *k = NULL;

	if (rig.dead_dp)
		return;
	/* The same command sent again takes its old place. */
	for (unsigned i = 0; i < rig.n_cmds && !k; i++)
		if (rig.cmds[i].open && rig.cmds[i].c.cmd == fx->u.command.cmd)
			k = &rig.cmds[i];
	for (unsigned i = 0; i < rig.n_cmds && !k; i++)
		if (!rig.cmds[i].open)
			k = &rig.cmds[i];
	if (!k) {
		CU_ASSERT_FATAL(rig.n_cmds < RIG_CMDS);
		k = &rig.cmds[rig.n_cmds++];
	}
	memset(k, 0, sizeof(*k));
	k->open = true;
	k->kind = fx->kind;
	k->c = fx->u.command;
	copy(k->id, sizeof(k->id), k->c.id);
	copy(k->request, sizeof(k->request), k->c.request);
	if (!rig.hold_dp)
		answer(k, rig.policy);
}

static void send_inventory(void)
{
	struct auth_event e = {.kind = AUTH_EV_INVENTORY};

	rig.inventories++;
	for (unsigned i = 0; i < RIG_OBJECTS; i++) {
		struct rig_object *o = &rig.objects[i];

		if (!o->there)
			continue;
		e.u.inventory.id = (struct auth_bytes){o->id, (uint32_t)strlen(o->id)};
		e.u.inventory.obj_gen = o->obj_gen;
		e.u.inventory.attempt = o->attempt;
		e.u.inventory.state = o->state;
		CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
	}
	e.kind = AUTH_EV_INVENTORY_END;
	auth_event(rig.a, &e, rig.now);
}

/* ---- effects ---- */

static void take_reply(const struct auth_reply *r)
{
	struct rig_reply *k;

	CU_ASSERT_FATAL(r->tag < RIG_REPLIES);
	k = &rig.replies[r->tag];
	k->times++;
	k->there = true;
	k->r = *r;
	CU_ASSERT_PTR_NOT_NULL_FATAL(r->text);
	snprintf(k->text, sizeof(k->text), "%s", r->text);
	copy(k->id, sizeof(k->id), r->entry.id);
	copy(k->type, sizeof(k->type), r->entry.type);
	copy(k->rid, sizeof(k->rid), r->entry.rid);
	copy(k->reply, sizeof(k->reply), r->reply);
	k->reply_n = r->reply.n;
	copy(k->next, sizeof(k->next), r->next);
	for (size_t i = 0; i < r->n_entries && i < 64; i++)
		copy(k->ids[i], sizeof(k->ids[i]), r->entries[i].id);
	rig.n_replies++;
}

static void tell_life(const struct spl_name *rid, uint64_t lifecycle)
{
	struct auth_event e = {.kind = AUTH_EV_LIFECYCLE};

	rig.checks++;
	rig.check_rid = *rid;
	if (rig.life == RIG_SILENT)
		return;
	e.u.lifecycle.rid = *rid;
	e.u.lifecycle.lifecycle = lifecycle;
	e.u.lifecycle.state = rig.life == RIG_HELD    ? AUTH_LIFE_HELD
			      : rig.life == RIG_ENDED ? AUTH_LIFE_ENDED
						      : AUTH_LIFE_UNKNOWN;
	auth_event(rig.a, &e, rig.now);
}

static void take_store(struct store_batch *b)
{
	if (rig.hold_store) {
		CU_ASSERT_PTR_NULL(rig.held); /* one at a time */
		rig.held = b;
		return;
	}
	store_run(rig.st, b);
	auth_store_done(rig.a, b, rig.now);
}

void rig_release_store(void)
{
	struct store_batch *b = rig.held;

	rig.held = NULL;
	if (!b)
		return;
	store_run(rig.st, b);
	auth_store_done(rig.a, b, rig.now);
	rig_run();
}

void rig_run(void)
{
	struct auth_effect fx;

	while (auth_next(rig.a, &fx)) {
		switch (fx.kind) {
		case AUTH_FX_STORE:
			take_store(fx.u.store);
			break;
		case AUTH_FX_REPLY:
			take_reply(&fx.u.reply);
			break;
		case AUTH_FX_PREPARE:
		case AUTH_FX_PUBLISH:
		case AUTH_FX_DISCARD:
		case AUTH_FX_CLOSE_LOCAL:
			take_command(&fx);
			break;
		case AUTH_FX_HOST_READY:
			rig.host_ready++;
			rig.id = *fx.u.host.id;
			rig.deadline = fx.u.host.deadline;
			break;
		case AUTH_FX_HOST_STATE:
			rig.state = fx.u.state.state;
			break;
		case AUTH_FX_LEASE:
			rig.lease_told++;
			rig.deadline = fx.u.host.deadline;
			break;
		case AUTH_FX_LEASE_LOST:
			rig.lease_lost++;
			break;
		case AUTH_FX_INVENTORY:
			send_inventory();
			break;
		case AUTH_FX_LIFECYCLE_CHECK:
			tell_life(&fx.u.check.rid, fx.u.check.lifecycle);
			break;
		case AUTH_FX_HOST_STOPPED:
			rig.stopped++;
			rig.forced += fx.u.stop.forced;
			snprintf(rig.stop_text, sizeof(rig.stop_text), "%s", fx.u.stop.text);
			break;
		case AUTH_FX_LOG:
			rig.errors += fx.u.log.level == AUTH_LOG_ERROR;
			if (getenv("RIG_LOG"))
				printf("log: %s\n", fx.u.log.text);
			break;
		}
	}
}

void rig_advance(int64_t ms)
{
	rig.now += ms * MS;
	auth_tick(rig.a, rig.now);
	rig_run();
}

void rig_pass(int64_t ms)
{
	int64_t end = rig.now + ms * MS;

	for (;;) {
		int64_t at = auth_next_tick(rig.a);

		if (at > end)
			break;
		if (at > rig.now)
			rig.now = at;
		auth_tick(rig.a, rig.now);
		rig_run();
	}
	rig.now = end;
	auth_tick(rig.a, rig.now);
	rig_run();
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

static void count_rows(struct counts *c)
{
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
			if (r.owner.lease_gen != rig.id.lease_gen || r.kind == SPL_KIND_ENTRY)
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
