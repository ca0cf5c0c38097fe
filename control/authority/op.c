/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: taking them in, finding repeats of an operation, waiting, deadlines, and the one reply
 * each gets. Called on the driver's thread; owns the ops until their reply was pulled. */
#include "control/authority/priv.h"

#include <errno.h>
#include <spotlane/limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct auth_op *op_of_timer(struct auth_timer *t)
{
	return (struct auth_op *)((char *)t - offsetof(struct auth_op, timer));
}

static struct auth_op *op_of_step(struct auth_step *s)
{
	return (struct auth_op *)((char *)s - offsetof(struct auth_op, step));
}

static struct auth_op *op_of_fx(struct auth_fx *fx)
{
	return (struct auth_op *)((char *)fx - offsetof(struct auth_op, fx));
}

/* ---- identity table ---- */

size_t auth_identity_hash(const struct auth *a, const struct auth_op_id *id)
{
	uint64_t h = a->secret ^ id->lifecycle;

	h = (h ^ id->hi) * 0x9e3779b97f4a7c15ULL;
	h = (h ^ (h >> 29) ^ id->lo) * 0xbf58476d1ce4e5b9ULL;
	return (size_t)(h ^ (h >> 32)) & a->mask;
}

bool auth_identity_same(const struct auth_op_id *x, const struct auth_op_id *y)
{
	return x->lo == y->lo && x->hi == y->hi && x->lifecycle == y->lifecycle &&
	       auth_name_same(&x->rid, &y->rid);
}

struct auth_op *auth_op_find(struct auth *a, const struct auth_op_id *id)
{
	struct auth_op *op = a->op_buckets[auth_identity_hash(a, id)];

	while (op && !auth_identity_same(&op->id_op, id))
		op = op->same;
	return op;
}

static void identity_add(struct auth *a, struct auth_op *op)
{
	struct auth_op **b = &a->op_buckets[auth_identity_hash(a, &op->id_op)];

	op->same = *b;
	*b = op;
	op->has_identity = true;
}

static void identity_remove(struct auth *a, struct auth_op *op)
{
	struct auth_op **b = &a->op_buckets[auth_identity_hash(a, &op->id_op)];

	if (!op->has_identity)
		return;
	while (*b != op)
		b = &(*b)->same;
	*b = op->same;
	op->has_identity = false;
}

/* ---- end of an op ---- */

static void op_free(struct auth *a, struct auth_op *op)
{
	if (op->request)
		a->request_bytes -= op->request->n;
	auth_buf_put(op->request);
	auth_buf_put(op->reply);
	auth_list_free(op);
	free(op->names);
	a->n_evictions -= op->is_eviction;
	free(op);
	a->n_ops--;
}

void auth_op_pulled(struct auth *a, struct auth_op *op)
{
	op->pulled = true;
	if (!op->step.in_flight)
		op_free(a, op);
}

void auth_op_step_back(struct auth *a, struct auth_op *op)
{
	if (op->pulled)
		op_free(a, op);
}

/* Takes the op off the list that its state names. */
static void leave(struct auth *a, struct auth_op *op)
{
	switch (op->state) {
	case AUTH_OP_OWNER:
		op->work->op = NULL;
		break;
	case AUTH_OP_WAITER:
		TAILQ_REMOVE(&op->work->waiters, op, link);
		a->n_waiters--;
		break;
	case AUTH_OP_HELD:
		TAILQ_REMOVE(&a->held, op, link);
		break;
	case AUTH_OP_TWIN:
		TAILQ_REMOVE(&op->first->twins, op, link);
		break;
	case AUTH_OP_READ:
	case AUTH_OP_BUSY:
	case AUTH_OP_DONE:
		break;
	}
	op->work = NULL;
	auth_step_drop(a, &op->step);
}

static void fill_reply(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	struct auth_op *op = op_of_fx(fx);
	struct auth_reply *r = &out->u.reply;

	*r = op->r;
	r->verb = op->verb;
	r->tag = op->tag;
	r->text = op->text;
	if (op->names) {
		r->entry = op->names->e;
		r->entry.id = auth_name(&op->names->id);
		r->entry.type = auth_name(&op->names->type);
		r->entry.mesh = auth_name(&op->names->mesh);
		r->entry.rid = auth_name(&op->names->rid);
	}
	if (op->reply)
		r->reply = (struct auth_bytes){op->reply->b, op->reply->n};
	a->held_op = op;
}

static void conclude(struct auth *a, struct auth_op *op)
{
	leave(a, op);
	auth_reclaim_op_gone(a, op);
	identity_remove(a, op);
	op->state = AUTH_OP_DONE;
	auth_timer_stop(a, &op->timer);
	if (op->request)
		a->request_bytes -= op->request->n;
	auth_buf_put(op->request);
	op->request = NULL;
	op->fx.kind = AUTH_FX_REPLY;
	op->fx.fill = fill_reply;
	auth_fx_queue(a, &op->fx);
}

/* The same terminal for a repeat of the operation. */
static void copy_terminal(struct auth_op *to, const struct auth_op *from)
{
	to->r = from->r;
	memcpy(to->text, from->text, sizeof(to->text));
	to->reply = auth_buf_ref(from->reply);
	if (!from->names)
		return;
	if (!to->names)
		to->names = malloc(sizeof(*to->names));
	if (to->names) {
		*to->names = *from->names;
	} else {
		to->r = (struct auth_reply){.kind = SPL_E_INTERNAL_FAILURE};
		snprintf(to->text, sizeof(to->text), "out of memory");
	}
}

void auth_op_finish(struct auth *a, struct auth_op *op, int kind, const char *fmt, ...)
{
	struct auth_op *twin;
	va_list ap;

	op->r.kind = kind;
	if (kind != SPL_OK) {
		free(op->names);
		op->names = NULL;
	}
	va_start(ap, fmt);
	vsnprintf(op->text, sizeof(op->text), fmt, ap);
	va_end(ap);
	while ((twin = TAILQ_FIRST(&op->twins)) != NULL) {
		copy_terminal(twin, op);
		conclude(a, twin);
	}
	conclude(a, op);
}

/* ---- waiting ---- */

void auth_op_wait(struct auth *a, struct auth_op *op, struct auth_work *w)
{
	leave(a, op);
	op->state = AUTH_OP_WAITER;
	op->work = w;
	TAILQ_INSERT_TAIL(&w->waiters, op, link);
	a->n_waiters++;
}

void auth_op_own(struct auth *a, struct auth_op *op, struct auth_work *w)
{
	leave(a, op);
	op->state = AUTH_OP_OWNER;
	op->work = w;
	w->op = op;
}

void auth_op_hold(struct auth *a, struct auth_op *op)
{
	leave(a, op);
	op->state = AUTH_OP_HELD;
	TAILQ_INSERT_TAIL(&a->held, op, link);
}

void auth_op_restart(struct auth *a, struct auth_op *op)
{
	leave(a, op);
	op->state = AUTH_OP_READ;
	if (!op->step.in_flight)
		auth_step_queue(a, &op->step);
}

void auth_op_release_held(struct auth *a)
{
	struct auth_op *op;

	while (a->n_pending < a->cfg.pending_max && (op = TAILQ_FIRST(&a->held)) != NULL) {
		leave(a, op);
		op->state = AUTH_OP_READ;
		/* Nothing is read again: the reservation's conditions tell what has changed. */
		if (auth_verb_creates(op->verb))
			auth_create_reserve(a, op);
		else
			auth_op_restart(a, op);
	}
}

void auth_op_refuse_held(struct auth *a)
{
	struct auth_op *op;

	while ((op = TAILQ_FIRST(&a->held)) != NULL)
		auth_op_restart(a, op);
}

void auth_op_look_later(struct auth *a, struct auth_op *op)
{
	int64_t at;

	leave(a, op);
	op->state = AUTH_OP_BUSY;
	op->look_ns = op->look_ns ? op->look_ns * 2 : AUTH_RETRY_MIN;
	if (op->look_ns > AUTH_RETRY_MAX)
		op->look_ns = AUTH_RETRY_MAX;
	at = a->now + op->look_ns;
	if (at >= op->deadline)
		return; /* the timer stands for the deadline */
	op->looking = true;
	auth_timer_arm(a, &op->timer, at);
}

void auth_op_cap(struct auth *a, struct auth_op *op, int64_t at)
{
	struct auth_op *twin;

	TAILQ_FOREACH (twin, &op->twins, link)
		auth_op_cap(a, twin, at);
	if (op->deadline <= at)
		return;
	op->deadline = at;
	op->capped = true;
	if (!op->looking)
		auth_timer_arm(a, &op->timer, at);
}

/* Another repeat takes the place of the first, whose time is over before that of the repeat. */
static void hand_over(struct auth *a, struct auth_op *op, struct auth_op *heir)
{
	struct auth_op *twin;

	leave(a, heir);
	while ((twin = TAILQ_FIRST(&op->twins)) != NULL) {
		TAILQ_REMOVE(&op->twins, twin, link);
		TAILQ_INSERT_TAIL(&heir->twins, twin, link);
		twin->first = heir;
	}
	heir->id = op->id; /* of a CREATE it was minted */
	identity_remove(a, op);
	identity_add(a, heir);
	heir->state = AUTH_OP_READ;
	if (op->state == AUTH_OP_OWNER)
		auth_op_own(a, heir, op->work);
	else if (op->state == AUTH_OP_WAITER)
		auth_op_wait(a, heir, op->work);
	else
		auth_op_restart(a, heir);
	/* Its link to the work, if it had one, is the heir's now. */
	if (op->state == AUTH_OP_OWNER)
		op->state = AUTH_OP_READ;
}

static void on_timer(struct auth *a, struct auth_timer *t)
{
	struct auth_op *op = op_of_timer(t), *heir = TAILQ_FIRST(&op->twins);
	struct auth_work *owned = NULL;

	if (op->looking) {
		op->looking = false;
		auth_timer_arm(a, &op->timer, op->deadline);
		auth_op_restart(a, op);
		return;
	}
	if (heir)
		hand_over(a, op, heir);
	else if (op->state == AUTH_OP_OWNER)
		owned = op->work;
	auth_op_finish(a, op, op->capped ? SPL_E_SHUTTING_DOWN : SPL_E_DEADLINE_EXCEEDED,
		       "%s: not finished in time", auth_verb_name(op->verb));
	if (owned)
		auth_work_owner_gone(a, owned);
}

/* ---- reading its rows ---- */

bool auth_verb_creates(enum auth_verb v)
{
	return v == AUTH_CREATE || v == AUTH_GET_OR_CREATE || v == AUTH_ACTIVATE;
}

static int build_read(struct auth *a, struct auth_step *s)
{
	struct auth_op *op = op_of_step(s);
	char key[ROW_KEY_MAX];
	int err = 0;

	if (op->asks_lease)
		return auth_batch_read(a, key, row_key_lease(key, auth_name(&op->names->owner_id)));
	if (auth_verb_creates(op->verb)) {
		struct row_op_id id = {auth_name(&op->id_op.rid), op->id_op.lifecycle, op->id_op.hi,
				       op->id_op.lo};

		err = auth_batch_read(a, key, row_key_opt(key, &id));
	}
	return err ? err : auth_batch_read(a, key, row_key_obj(key, auth_name(&op->id)));
}

static void read_done(struct auth *a, struct auth_step *s, struct store_req *r, size_t n)
{
	struct auth_op *op = op_of_step(s);

	if (op->state == AUTH_OP_DONE) {
		auth_op_step_back(a, op);
		return;
	}
	if (op->state != AUTH_OP_READ)
		return;
	if (op->asks_lease) {
		op->asks_lease = false;
		auth_decide_lease(a, op, r);
	} else {
		auth_decide_rows(a, op, r, n);
	}
}

/* ---- taking a request ---- */

static int check_names(const struct auth_request *r)
{
	bool list = r->verb == AUTH_LIST, creates = auth_verb_creates(r->verb);

	if (r->verb != AUTH_CREATE && !list && !spl_name_valid(r->id.p, r->id.n))
		return -EINVAL;
	if (creates && !spl_name_valid(r->type.p, r->type.n))
		return -EINVAL;
	if (list && r->type.n && !spl_name_valid(r->type.p, r->type.n))
		return -EINVAL;
	if (r->mesh.n && !spl_name_valid(r->mesh.p, r->mesh.n))
		return -EINVAL;
	if ((creates || r->verb == AUTH_CLOSE) &&
	    (!spl_name_valid(r->op.rid.b, r->op.rid.len) || !r->op.lifecycle))
		return -EINVAL;
	return 0;
}

static int check(const struct auth_request *r)
{
	if ((unsigned)r->verb > AUTH_ACTIVATE || check_names(r) || r->request.n > AUTH_REQUEST_MAX)
		return -EINVAL;
	if (r->verb == AUTH_CLOSE && (r->obj_gen == 0 || r->obj_gen > INT64_MAX))
		return -EINVAL;
	if (r->verb == AUTH_CLOSE && r->reason != AUTH_EXPLICIT_CLOSE &&
	    !(r->reason == AUTH_IDLE_EVICTED && r->own))
		return -EINVAL;
	if (r->verb == AUTH_LIST &&
	    (r->limit < 1 || r->limit > SPL_LIST_PAGE_MAX || r->token.n > AUTH_TOKEN_MAX ||
	     (unsigned)r->kind > SPL_KIND_INSTANCE))
		return -EINVAL;
	return 0;
}

static void mint_id(struct auth *a, struct auth_op *op)
{
	uint8_t rnd[16];
	char text[37];

	a->cfg.random(a->cfg.random_ctx, rnd, sizeof(rnd));
	spl_uuid4(rnd, text);
	auth_name_copy(&op->id, (struct auth_bytes){text, 36});
}

static struct auth_op *op_new(struct auth *a, const struct auth_request *r)
{
	struct auth_op *op;

	if (auth_timers_reserve(a, a->n_ops + a->n_works + 16))
		return NULL;
	op = calloc(1, sizeof(*op));
	if (!op)
		return NULL;
	if (r->request.n) {
		op->request = auth_buf_make(r->request);
		if (!op->request) {
			free(op);
			return NULL;
		}
		a->request_bytes += r->request.n;
	}
	TAILQ_INIT(&op->twins);
	op->verb = r->verb;
	op->tag = r->tag;
	op->deadline = r->deadline;
	op->timer.fire = on_timer;
	op->id_op = r->op;
	op->obj_gen = r->obj_gen;
	op->own = r->own;
	op->reason = r->reason;
	op->kind = r->kind;
	if (auth_verb_creates(r->verb))
		op->kind = r->verb == AUTH_ACTIVATE ? SPL_KIND_INSTANCE : SPL_KIND_USER;
	op->limit = r->limit;
	auth_name_copy(&op->type, r->type);
	auth_name_copy(&op->mesh, r->mesh);
	if (r->verb == AUTH_CREATE)
		mint_id(a, op);
	else
		auth_name_copy(&op->id, r->id);
	auth_step_init(&op->step, build_read, read_done);
	a->n_ops++;
	return op;
}

/* A repeat: waits for the terminal of the first, if it asks for the same. */
static void join_first(struct auth *a, struct auth_op *op, struct auth_op *first)
{
	if (op->verb != first->verb ||
	    (op->verb != AUTH_CREATE && !auth_name_same(&op->id, &first->id)) ||
	    op->obj_gen != first->obj_gen) {
		auth_op_finish(a, op, SPL_E_INVALID_OPERATION,
			       "operation identity used for another request");
		return;
	}
	op->state = AUTH_OP_TWIN;
	op->first = first;
	TAILQ_INSERT_TAIL(&first->twins, op, link);
}

/* Refusals that need no store. True when the op was finished. */
static bool refuse_at_once(struct auth *a, struct auth_op *op)
{
	bool creates = auth_verb_creates(op->verb);

	if (op->deadline <= a->now)
		auth_op_finish(a, op, SPL_E_DEADLINE_EXCEEDED, "%s: deadline already passed",
			       auth_verb_name(op->verb));
	else if ((creates || op->verb == AUTH_CLOSE) && a->host.stop)
		auth_op_finish(a, op, SPL_E_SHUTTING_DOWN, "the node is stopping");
	else if ((op->verb == AUTH_GET_OR_CREATE || op->verb == AUTH_ACTIVATE) &&
		 spl_id_is_reserved(op->id.b, op->id.len))
		auth_op_finish(a, op, SPL_E_INVALID_OPERATION,
			       "ids of the form PREFIX-entry-UUID belong to Entry Spots");
	else if (creates && op->mesh.len && !auth_name_same(&op->mesh, &a->cfg.mesh))
		auth_op_finish(a, op, SPL_E_NOT_FOUND, "this node has no mesh of that name");
	else
		return false;
	return true;
}

/* Nobody waits for it, and it is asked for again. */
static bool is_eviction(const struct auth_request *r)
{
	return r->verb == AUTH_CLOSE && r->own && r->reason == AUTH_IDLE_EVICTED;
}

int auth_submit(struct auth *a, const struct auth_request *r, int64_t now)
{
	struct auth_op *op, *first = NULL;
	int err = check(r);

	if (err)
		return err;
	auth_enter(a, now);
	if (a->n_ops >= a->cfg.ops_max ||
	    a->request_bytes + r->request.n > a->cfg.request_bytes_max)
		return -EBUSY;
	if (is_eviction(r) && a->n_evictions >= a->cfg.ops_max / AUTH_EVICTIONS_PART)
		return -EBUSY;
	op = op_new(a, r);
	if (!op)
		return -ENOMEM;
	op->is_eviction = is_eviction(r);
	a->n_evictions += op->is_eviction;
	if (r->verb == AUTH_LIST)
		err = auth_list_prepare(op, r);
	if (err) {
		op_free(a, op);
		return err;
	}
	if (!refuse_at_once(a, op)) {
		if (auth_verb_creates(op->verb) || op->verb == AUTH_CLOSE) {
			first = auth_op_find(a, &op->id_op);
			if (!first)
				identity_add(a, op);
		}
		auth_timer_arm(a, &op->timer, op->deadline);
		if (first)
			join_first(a, op, first);
		else if (r->verb == AUTH_LIST)
			auth_list_start(a, op);
		else if (r->verb == AUTH_RECLAIM_NODE)
			auth_reclaim_start(a, op);
		else
			auth_op_restart(a, op);
	}
	auth_pump(a);
	return 0;
}

void auth_op_fini(struct auth *a)
{
	struct auth_fx *fx, *next;

	/* Without works every op that waits is in the held list, a bucket, or has its timer. */
	while (a->timers.n) {
		struct auth_timer *t = a->timers.heap[1];

		auth_timer_stop(a, t);
		if (t->fire != on_timer)
			continue;
		op_of_timer(t)->step.in_flight = false;
		op_free(a, op_of_timer(t));
	}
	for (fx = TAILQ_FIRST(&a->effects); fx; fx = next) {
		next = TAILQ_NEXT(fx, link);
		if (fx->kind == AUTH_FX_REPLY)
			op_free(a, op_of_fx(fx));
	}
	TAILQ_INIT(&a->effects);
}

const char *auth_verb_name(enum auth_verb v)
{
	static const char *const names[] = {
		[AUTH_CREATE] = "create",
		[AUTH_GET_OR_CREATE] = "get-or-create",
		[AUTH_FIND] = "find",
		[AUTH_SHOW] = "show",
		[AUTH_LIST] = "list",
		[AUTH_CLOSE] = "close",
		[AUTH_RESOLVE] = "resolve",
		[AUTH_RECLAIM_ID] = "reclaim",
		[AUTH_RECLAIM_NODE] = "reclaim",
		[AUTH_ACTIVATE] = "activate",
	};

	return names[v];
}
