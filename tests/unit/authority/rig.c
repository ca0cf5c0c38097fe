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
	if (rig.chaos && t_rand_below(&rig.rnd, 100) < rig.chaos)
		return (enum store_fault)(1 + t_rand_below(&rig.rnd, 3));
	if (rig.fault == STORE_FAULT_NONE || rig.fault_times == 0 || op != rig.fault_op)
		return STORE_FAULT_NONE;
	if (rig.fault_times > 0)
		rig.fault_times--;
	return rig.fault;
}

void rig_make(struct auth **out)
{
	struct auth_config c;

	auth_config_init(&c);
	spl_name_set(&c.mesh, "mesh", sizeof("mesh") - 1);
	snprintf(c.prefix, sizeof(c.prefix), "n");
	c.random = draw;
	c.spots_max = rig.spots_max;
	if (rig.ops_max)
		c.ops_max = rig.ops_max;
	c.reclaim_on_restart = rig.on_restart;
	if (rig.pending_max)
		c.pending_max = rig.pending_max;
	if (rig.group_max)
		c.group_max = rig.group_max;
	rig.cfg = c;
	CU_ASSERT_EQUAL_FATAL(auth_create(out, &c), 0);
}

void rig_reset(void)
{
	struct rig_reply *keep = rig.replies;
	uint64_t *attempts = rig.attempts;

	memset(&rig, 0, sizeof(rig));
	rig.replies = keep;
	rig.attempts = attempts;
}

void rig_open_bare(void)
{
	uint64_t seed = rig.seed ? rig.seed : t_seed();
	struct store_memory_opts o = {clock_ms, NULL, seed};

	rig.rnd.s = seed;
	rig.now = 1000000 * MS;
	rig.life = RIG_UNKNOWN;
	if (!rig.replies)
		rig.replies = calloc(RIG_REPLIES, sizeof(*rig.replies));
	if (!rig.attempts)
		rig.attempts = calloc(RIG_ATTEMPTS, sizeof(*rig.attempts));
	memset(rig.replies, 0, RIG_REPLIES * sizeof(*rig.replies));
	CU_ASSERT_EQUAL_FATAL(store_memory_open(&rig.mem, &o), 0);
	CU_ASSERT_EQUAL_FATAL(store_fault_open(&rig.st, rig.mem, give_fault, NULL), 0);
	rig_make(&rig.a);
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
	struct auth_type t[3] = {{.kind = SPL_KIND_USER, .limit = rig.room_limit},
				 {.kind = SPL_KIND_USER},
				 {.kind = SPL_KIND_INSTANCE, .limit = rig.room_limit}};
	struct auth_event e = {.kind = kind};

	spl_name_set(&t[0].name, "room", sizeof("room") - 1);
	spl_name_set(&t[1].name, "cart", sizeof("cart") - 1);
	spl_name_set(&t[2].name, "twin", sizeof("twin") - 1);
	e.u.host.types = t;
	e.u.host.n_types = 3;
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
	if (rig.held) { /* it was written, and the answer dies with the process */
		store_run(rig.st, rig.held);
		auth_store_done(rig.a, rig.held, rig.now);
		rig.held = NULL;
	}
	auth_destroy(rig.a);
	for (unsigned i = 0; i < rig.n_cmds; i++)
		rig.cmds[i].open = false;
	rig_make(&rig.a);
}

void rig_kill_dp(void)
{
	struct auth_event e = {.kind = AUTH_EV_HOST_DEAD};

	memset(rig.objects, 0, sizeof(rig.objects));
	rig.entry.is_there = false;
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

unsigned rig_objects(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < RIG_OBJECTS; i++)
		n += rig.objects[i].there;
	return n;
}

struct rig_object *rig_object_add(const char *id)
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
		if (k->c.again && o && o->attempt == k->c.attempt) {
			policy = RIG_ACCEPT; /* the answer of then, repeated */
		} else {
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
			o = rig_object_add(k->id);
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
		/* A PREPARE of it that has not been answered never will be. */
		for (unsigned i = 0; i < rig.n_cmds; i++)
			if (rig.cmds[i].kind == AUTH_FX_PREPARE &&
			    rig.cmds[i].c.attempt == k->c.attempt)
				rig.cmds[i].open = false;
		if (o && o->attempt == k->c.attempt)
			o->there = false;
	} else if (policy == RIG_DECLINE &&
		   k->c.reason == AUTH_IDLE_EVICTED) { /* it is not idle any more */
		e.u.answer.verdict = AUTH_DECLINED;
	} else if (o && o->obj_gen == k->c.fence.obj_gen) {
		o->there = false;
		rig.reason = k->c.reason;
		rig.closings += k->c.reason != AUTH_FENCED;
		if (policy == RIG_FAIL)
			e.u.answer.kind =
				rig.late_close ? SPL_E_DEADLINE_EXCEEDED : SPL_E_INTERNAL_FAILURE;
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

/* Exactly one command to run the factory goes out for an attempt (A-LOC-15). */
static void note_attempt(uint64_t attempt)
{
	for (unsigned i = 0; i < rig.n_attempts; i++)
		CU_ASSERT_NOT_EQUAL_FATAL(rig.attempts[i], attempt);
	CU_ASSERT_FATAL(rig.n_attempts < RIG_ATTEMPTS);
	rig.attempts[rig.n_attempts++] = attempt;
}

/* The Entry Spot has no part in what the tests count; it is answered at once unless it is held. */
static void take_entry(const struct auth_effect *fx)
{
	const struct auth_command *c = &fx->u.command;
	struct auth_event e = {.kind = AUTH_EV_ANSWER};

	rig.entry.asked++;
	if (rig.dead_dp || rig.entry.hold)
		return;
	e.u.answer.cmd = c->cmd;
	e.u.answer.kind = SPL_OK;
	CU_ASSERT_TRUE(c->id.n == rig.id.entry_id.len &&
		       memcmp(c->id.p, rig.id.entry_id.b, c->id.n) == 0);
	if (fx->kind == AUTH_FX_PREPARE && rig.entry.is_there) {
		e.u.answer.kind = SPL_E_ALREADY_EXISTS;
		e.u.answer.verdict = AUTH_FAILED;
	} else if (fx->kind == AUTH_FX_PREPARE && rig.entry.lapses) {
		rig.entry.lapses--;
		e.u.answer.kind = SPL_E_UNAVAILABLE;
		e.u.answer.verdict = AUTH_FAILED;
	} else if (fx->kind == AUTH_FX_PREPARE && rig.entry.fails) {
		e.u.answer.kind = SPL_E_INTERNAL_FAILURE;
		e.u.answer.verdict = AUTH_FAILED;
		e.u.answer.text = "on_initialize";
	} else if (fx->kind == AUTH_FX_PREPARE) {
		rig.entry.made++;
		rig.entry.obj_gen = c->fence.obj_gen;
		CU_ASSERT_NOT_EQUAL(rig_state(), AUTH_HOST_SERVING);
	} else if (fx->kind == AUTH_FX_DISCARD) {
		CU_ASSERT_FALSE(rig.entry.is_there);
		rig.entry.discarded++;
	} else if (fx->kind == AUTH_FX_PUBLISH) {
		CU_ASSERT_EQUAL(c->fence.obj_gen, rig.entry.obj_gen);
		rig.entry.is_there = true;
	} else {
		CU_ASSERT_TRUE(fx->kind == AUTH_FX_CLOSE_LOCAL && rig.entry.is_there);
		CU_ASSERT_EQUAL(c->reason, AUTH_HOST_SHUTDOWN);
		CU_ASSERT_EQUAL(c->fence.obj_gen, rig.entry.obj_gen);
		rig.entry.is_there = false;
		rig.entry.closed++;
		rig.entry.others = rig_objects();
		if (rig.entry.fails)
			e.u.answer.kind = SPL_E_INTERNAL_FAILURE;
	}
	CU_ASSERT_EQUAL(auth_event(rig.a, &e, rig.now), 0);
}

static void take_command(const struct auth_effect *fx)
{
	struct rig_cmd *k = NULL;

	if (fx->u.command.kind == SPL_KIND_ENTRY) {
		take_entry(fx);
		return;
	}
	if (fx->kind == AUTH_FX_PREPARE && !fx->u.command.again)
		note_attempt(fx->u.command.attempt);
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
		e.u.inventory.own_gen = o->own_gen;
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
	if (rig.life == RIG_TRUE) /* one dataplane at a time: its lock tells */
		e.u.lifecycle.state = !rig.dead_dp && rid->len == rig.id.rid.len &&
						      !memcmp(rid->b, rig.id.rid.b, rid->len)
					      ? AUTH_LIFE_HELD
					      : AUTH_LIFE_ENDED;
	else
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

/* What does not fit is not kept. */
static void rig_log(const char *text)
{
	size_t n = strlen(text);

	if (rig.log_n + n + 2 > sizeof(rig.log))
		return;
	memcpy(rig.log + rig.log_n, text, n);
	rig.log[rig.log_n + n] = '\n';
	rig.log_n += n + 1;
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
		case AUTH_FX_LIFECYCLE_GONE:
			rig.gone++;
			break;
		case AUTH_FX_HOST_STOPPED:
			rig.stopped++;
			rig.forced += fx.u.stop.forced;
			rig.outcome = fx.u.stop.outcome;
			rig.stop_reason = fx.u.stop.reason;
			snprintf(rig.stop_text, sizeof(rig.stop_text), "%s", fx.u.stop.text);
			break;
		case AUTH_FX_LOG:
			rig.errors += fx.u.log.level == AUTH_LOG_ERROR;
			rig_log(fx.u.log.text);
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
