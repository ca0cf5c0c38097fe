/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a node lifecycle: the planned stop (T3, every own Spot closed and released with T17,
 * T20) and the death of the dataplane (its creations are undone, T20; its Ready rows stay). Called
 * on the driver's thread. */
#include "control/authority/priv.h"

#include <stdio.h>
#include <string.h>

#define STOP_FORCE \
	(1000 * AUTH_MS)	    /* after the deadline: the dataplane ends what is left itself \
				     */
#define STOP_GRACE (5000 * AUTH_MS) /* after a forced stop: for releasing what is left */

static void fill_stopped(struct auth *a, struct auth_fx *fx, struct auth_effect *out)
{
	out->u.stop.text = a->host.text;
	out->u.stop.forced = a->host.forced;
	out->u.stop.reason = a->host.late ? AUTH_STOP_DEADLINE
			     : a->host.teardown_failed || a->host.lost_in_stop
				     ? AUTH_STOP_TEARDOWN /* some were not closed */
				     : AUTH_STOP_NONE;
	out->u.stop.outcome =
		out->u.stop.reason == AUTH_STOP_NONE ? AUTH_STOPPED : AUTH_FORCE_STOPPED;
}

static void say_stopped(struct auth *a, bool forced, const char *text)
{
	struct auth_host *h = &a->host;

	h->forced = forced;
	if (text)
		snprintf(h->text, sizeof(h->text), "%s", text);
	auth_fx_queue(a, &h->stopped_fx);
}

void auth_host_gone(struct auth *a)
{
	struct auth_host *h = &a->host;
	struct spl_name rid = h->id.rid;
	bool failed = h->failed;

	auth_lease_stop(a);
	auth_timer_stop(a, &h->stop_timer);
	h->phase = AUTH_H_NONE;
	h->announced = h->failed = false;
	h->state = h->stop ? AUTH_HOST_STOPPED : failed ? AUTH_HOST_ERROR : AUTH_HOST_NONE;
	memset(&h->id, 0, sizeof(h->id));
	h->lease = 0;
	auth_group_clear(a);
	a->cap_known = false;
	auth_op_refuse_held(a);
	if (h->stop)
		say_stopped(a, false,
			    h->lost_in_stop	 ? "the lease was lost: rows wait to be reclaimed"
			    : h->teardown_failed ? "stopped; an on_closing failed"
						 : "stopped");
	else if (failed)
		say_stopped(a, false, NULL); /* start_failed() has set it */
	else if (a->cfg.reclaim_on_restart)
		auth_sweep_start(a, AUTH_SWEEP_RECLAIM, auth_name(&rid), NULL);
	if (!h->stop && h->next)
		auth_host_start_next(a);
}

void auth_host_end_lease(struct auth *a)
{
	if (a->host.lease)
		auth_host_go(a, AUTH_H_REVOKE);
	else
		auth_host_gone(a);
}

void auth_host_revoked(struct auth *a, const struct store_req *r)
{
	if (r->rc == STORE_OK || r->rc == STORE_MISSING) {
		auth_host_gone(a);
		return;
	}
	if (a->host.stop && a->now >= a->host.stop_at) {
		a->host.lost_in_stop = true; /* it ends by itself */
		auth_host_gone(a);
		return;
	}
	auth_host_retry(a);
}

/* ---- stop ---- */

static void on_stop(struct auth *a, struct auth_timer *t)
{
	struct auth_host *h = &a->host;

	if (h->phase == AUTH_H_NONE)
		return;
	h->late = true;
	if (!h->dead) {
		auth_log(a, AUTH_LOG_WARN,
			 "stop: deadline passed: the dataplane is ended by force");
		h->phase = AUTH_H_FORCED;
		auth_sweep_cancel_own(a);
		say_stopped(a, true, "deadline passed");
		return;
	}
	h->lost_in_stop = true; /* the store does not let go of them: they are reclaimed later */
	auth_host_gone(a);
}

/* An attempt under way has until the deadline, as everything has (S-DRAIN-5). */
static void cap(struct auth *a, struct auth_work *w)
{
	struct auth_op *op;

	if (!auth_work_creating(w))
		return;
	if (w->op)
		auth_op_cap(a, w->op, a->host.stop_at);
	TAILQ_FOREACH (op, &w->waiters, link)
		auth_op_cap(a, op, a->host.stop_at);
}

int auth_host_shutdown(struct auth *a, const struct auth_event *e)
{
	struct auth_host *h = &a->host;

	if (h->stop)
		return 0; /* A-DRAIN-6: shared */
	h->stop = true;
	h->stop_at = e->u.shutdown.deadline;
	auth_host_drop_next(a);
	if (h->phase == AUTH_H_NONE) {
		h->state = AUTH_HOST_STOPPED;
		say_stopped(a, false, "stopped");
		return 0;
	}
	auth_timer_arm(a, &h->stop_timer, h->stop_at + STOP_FORCE);
	auth_work_each(a, cap);
	auth_host_say(a, AUTH_HOST_DRAINING);
	auth_op_refuse_held(a);
	return 0;
}

void auth_host_died(struct auth *a)
{
	struct auth_host *h = &a->host;

	auth_host_drop_next(a); /* the one that waited is the one that died */
	if (h->phase == AUTH_H_NONE || h->dead)
		return;
	h->dead = true;
	auth_ended_add(a, auth_name(&h->id.rid));
	auth_fx_drop(a, &h->ready);
	auth_fx_drop(a, &h->lease_fx);
	auth_fx_drop(a, &h->state_fx);
	auth_fx_drop(a, &h->lost_fx);
	auth_fx_drop(a, &h->inventory_fx);
	auth_sweep_cancel_own(a);
	auth_resume_free(a);
	auth_work_host_gone(a);
	if (h->stop) {
		h->teardown_failed = h->teardown_failed || !h->late;
		h->drained = h->draining = false;
		auth_timer_arm(a, &h->stop_timer,
			       (a->now > h->stop_at ? a->now : h->stop_at) + STOP_GRACE);
		auth_host_go(a, AUTH_H_FINISH);
	} else {
		auth_log(a, AUTH_LOG_WARN,
			 "dataplane gone: its Spots are Unavailable until reclaimed");
		auth_host_go(a, AUTH_H_BURY);
	}
	auth_op_refuse_held(a);
}

void auth_host_stop_init(struct auth *a)
{
	struct auth_host *h = &a->host;

	h->stop_timer.fire = on_stop;
	h->stopped_fx = (struct auth_fx){.kind = AUTH_FX_HOST_STOPPED, .fill = fill_stopped};
}
