/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over all Spot rows, page by page of one snapshot: the first scan of a host, the comparison
 * after a resume, adoption after a lost token, the planned stop, reclaiming a dead node. One sweep
 * at a time; the works of a page end before the next page is read, so that at most AUTH_SWEEP_PAGE
 * are under way. A row of the scan is a hint: every change is conditional on its version. Called on
 * the driver's thread; owns the sweeps. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct auth_sweep *sweep_of(struct auth_step *s)
{
	return (struct auth_sweep *)((char *)s - offsetof(struct auth_sweep, step));
}

static int build(struct auth *a, struct auth_step *st)
{
	struct auth_sweep *s = sweep_of(st);
	struct store_req *r;

	if (s->cancelled)
		return 0;
	r = auth_batch_req(a, STORE_SCAN);
	if (!r)
		return -ENOSPC;
	r->u.scan.prefix = row_spots_prefix();
	r->u.scan.resume = s->begun;
	r->u.scan.cursor = s->cursor;
	r->u.scan.limit = AUTH_SWEEP_PAGE;
	return 0;
}

static bool is_own(const struct auth *a, const struct row_obj *row)
{
	return auth_owner_is_us(a, &row->owner);
}

static bool was_own(const struct auth *a, const struct row_obj *row)
{
	return row->owner.lease_gen != a->host.id.lease_gen &&
	       auth_name_is(&a->host.id.owner_id, row->owner.owner_id);
}

static struct auth_work *orphan(struct auth *a, struct auth_bytes id, const struct row_obj *row,
				int64_t cr, int64_t mr, bool reclaim)
{
	struct auth_work *w = auth_work_new(a, id, reclaim ? AUTH_W_RELEASING : AUTH_W_UNDOING);

	if (!w)
		return NULL;
	auth_work_take_row(a, w, row, cr, mr);
	w->reclaim = reclaim;
	auth_tx(a, w, AUTH_ORPHAN);
	return w;
}

static int first_row(struct auth *a, struct auth_bytes id, const struct row_obj *row, int64_t cr,
		     int64_t mr, struct auth_work **w)
{
	bool freed = a->cfg.reclaim_on_restart && auth_ended_has(a, row->owner.rid);

	if (is_own(a, row) || was_own(a, row))
		return 0;
	if (row->state != AUTH_ROW_CREATING && !freed)
		return 0;
	*w = orphan(a, id, row, cr, mr, row->state != AUTH_ROW_CREATING);
	return *w ? 0 : -ENOMEM;
}

static int readopt_row(struct auth *a, struct auth_bytes id, const struct row_obj *row, int64_t cr,
		       int64_t mr, struct auth_work **w)
{
	if (!was_own(a, row))
		return 0;
	if (row->state == AUTH_ROW_READY) {
		*w = auth_work_new(a, id, AUTH_W_ADOPTING);
		if (!*w)
			return -ENOMEM;
		auth_work_take_row(a, *w, row, cr, mr);
		(*w)->epoch = row->epoch;
		return 0;
	}
	/* Creating or Closing under a token that is gone: the dataplane drops it, then the row
	 * goes. */
	*w = auth_work_new(a, id, AUTH_W_CLOSING);
	if (!*w)
		return -ENOMEM;
	auth_work_take_row(a, *w, row, cr, mr);
	(*w)->attempt = row->has_pending ? row->pending.attempt : 0;
	(*w)->reason = AUTH_EXPLICIT_CLOSE;
	(*w)->deadline = a->now + a->cfg.ttl_ns;
	auth_work_command(a, *w,
			  row->state == AUTH_ROW_CREATING ? AUTH_FX_DISCARD : AUTH_FX_CLOSE_LOCAL);
	return 0;
}

static int drain_row(struct auth *a, struct auth_bytes id, const struct row_obj *row, int64_t cr,
		     int64_t mr, struct auth_work **w)
{
	if (!is_own(a, row))
		return 0;
	if (row->state == AUTH_ROW_CREATING)
		*w = auth_create_cancel(a, id, row, cr, mr);
	else
		*w = auth_close_row(a, id, row, cr, mr, !a->host.dead, AUTH_HOST_SHUTDOWN,
				    a->host.stop_at);
	return *w ? 0 : -ENOMEM;
}

static int reclaim_row(struct auth *a, struct auth_sweep *s, struct auth_bytes id,
		       const struct row_obj *row, int64_t cr, int64_t mr, struct auth_work **w)
{
	if (!auth_name_is(&s->rid, row->owner.rid))
		return 0;
	*w = orphan(a, id, row, cr, mr, true);
	return *w ? 0 : -ENOMEM;
}

static int one_row(struct auth *a, struct auth_sweep *s, struct auth_bytes id,
		   const struct row_obj *row, int64_t cr, int64_t mr)
{
	struct auth_work *w = NULL;
	int err = 0;

	if (row->kind == SPL_KIND_ENTRY)
		return 0;	     /* lies under its lease */
	if (auth_work_find(a, id)) { /* under way already: looked at again when that is over */
		if (s->kind != AUTH_SWEEP_FIRST && s->kind != AUTH_SWEEP_RESUME)
			s->again = true;
		return 0;
	}
	switch (s->kind) {
	case AUTH_SWEEP_FIRST:
		err = first_row(a, id, row, cr, mr, &w);
		break;
	case AUTH_SWEEP_RESUME:
		if (is_own(a, row))
			err = auth_resume_row(a, id, row, cr, mr, &w);
		else if (was_own(a, row))
			auth_resume_keep(a, id); /* its adoption was not finished: it comes next */
		break;
	case AUTH_SWEEP_READOPT:
		err = readopt_row(a, id, row, cr, mr, &w);
		break;
	case AUTH_SWEEP_DRAIN:
		err = drain_row(a, id, row, cr, mr, &w);
		break;
	case AUTH_SWEEP_RECLAIM:
		err = reclaim_row(a, s, id, row, cr, mr, &w);
		break;
	}
	if (!w)
		return err;
	if (s->kind != AUTH_SWEEP_RESUME) { /* a resume does not wait for callbacks to end */
		w->sweep = s;
		s->outstanding++;
	}
	if (w->state == AUTH_W_ADOPTING)
		auth_tx(a, w, AUTH_T21); /* may end it at once */
	return 0;
}

/* Starts over from the first page: the snapshot expired, or memory was short. */
static void from_start(struct auth *a, struct auth_sweep *s)
{
	s->begun = false;
	s->at_end = false;
	s->again = false;
	auth_timer_arm(a, &a->sweep_retry, a->now + AUTH_RETRY_MIN);
}

static void done(struct auth *a, struct auth_step *st, struct store_req *r, size_t n)
{
	struct auth_sweep *s = sweep_of(st);
	const struct store_page *pg = &r->u.scan.page;
	struct row_obj row;

	s->waits = false;
	if (s->cancelled)
		return; /* the pump ends it */
	if (r->rc != STORE_OK) {
		if (r->rc != STORE_EXPIRED)
			auth_log(a, AUTH_LOG_WARN, "scan of Spot rows: %s: again", a->batch.b.text);
		s->waits = true;
		from_start(a, s);
		return;
	}
	s->begun = true;
	s->cursor = pg->next;
	s->at_end = !pg->more;
	for (size_t i = 0; i < pg->n; i++) {
		const struct store_entry *e = &pg->entries[i];
		struct auth_bytes id = row_spot_of_key(e->key);
		int err = id.n ? row_obj_get(&row, e->val.p, e->val.n) : -EBADMSG;

		if (err) {
			auth_log(a, AUTH_LOG_ERROR, "the row of a Spot is damaged: left alone");
			continue;
		}
		if (one_row(a, s, id, &row, e->cr, e->mr)) {
			s->waits = true;
			from_start(a, s);
			return;
		}
	}
}

static void on_retry(struct auth *a, struct auth_timer *t)
{
	if (a->sweep)
		a->sweep->waits = false;
}

void auth_sweep_work_done(struct auth *a, struct auth_sweep *s, bool freed)
{
	s->outstanding--;
	if (freed)
		s->freed++;
	else
		s->kept++;
}

int auth_sweep_start(struct auth *a, enum auth_sweep_kind kind, struct auth_bytes rid,
		     struct auth_op *op)
{
	struct auth_sweep *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->kind = kind;
	auth_name_copy(&s->rid, rid);
	s->op = op;
	auth_step_init(&s->step, build, done);
	a->sweep_retry.fire = on_retry;
	STAILQ_INSERT_TAIL(&a->sweeps, s, link);
	return 0;
}

static void finish(struct auth *a, struct auth_sweep *s)
{
	a->sweep = NULL;
	if (s->op)
		auth_reclaim_swept(a, s->op, s->freed, s->kept);
	if (s->kind == AUTH_SWEEP_RECLAIM && s->kept == 0)
		auth_reclaim_gone(a, auth_name(&s->rid));
	if (!s->cancelled)
		auth_host_sweep_done(a, s->kind);
	free(s);
}

/* Goes on with the sweep of now, or takes the next. */
bool auth_sweep_pump(struct auth *a)
{
	struct auth_sweep *s;

	if (!a->sweep) {
		a->sweep = STAILQ_FIRST(&a->sweeps);
		if (!a->sweep)
			return false;
		STAILQ_REMOVE_HEAD(&a->sweeps, link);
	}
	s = a->sweep;
	if (s->outstanding || s->step.in_flight || s->step.queued)
		return false;
	if (s->cancelled) {
		finish(a, s);
		return true;
	}
	if (s->waits)
		return false;
	if (s->at_end && s->again) {
		s->waits = true; /* what was under way may be over in a moment */
		from_start(a, s);
		return false;
	}
	if (s->at_end) {
		if (s->kind == AUTH_SWEEP_RESUME && !auth_resume_finish(a))
			return false;
		finish(a, s);
		return true;
	}
	auth_step_queue(a, &s->step);
	return false;
}

static void forget_sweep(struct auth *a, struct auth_work *w)
{
	if (w->sweep && w->sweep->cancelled) {
		w->sweep->outstanding--;
		w->sweep = NULL;
	}
}

void auth_sweep_cancel_own(struct auth *a)
{
	struct auth_sweep *s, *next;

	for (s = STAILQ_FIRST(&a->sweeps); s; s = next) {
		next = STAILQ_NEXT(s, link);
		if (s->kind == AUTH_SWEEP_RECLAIM)
			continue;
		STAILQ_REMOVE(&a->sweeps, s, auth_sweep, link);
		free(s);
	}
	if (!a->sweep || a->sweep->kind == AUTH_SWEEP_RECLAIM)
		return;
	a->sweep->cancelled = true;
	auth_timer_stop(a, &a->sweep_retry);
	auth_step_drop(a, &a->sweep->step);
	auth_work_each(a, forget_sweep);
}

void auth_sweep_op_gone(struct auth *a, const struct auth_op *op)
{
	struct auth_sweep *s;

	if (a->sweep && a->sweep->op == op)
		a->sweep->op = NULL;
	STAILQ_FOREACH (s, &a->sweeps, link)
		if (s->op == op)
			s->op = NULL;
}

void auth_sweep_fini(struct auth *a)
{
	struct auth_sweep *s;

	free(a->sweep);
	while ((s = STAILQ_FIRST(&a->sweeps)) != NULL) {
		STAILQ_REMOVE_HEAD(&a->sweeps, link);
		free(s);
	}
}
