/* SPDX-License-Identifier: BSD-3-Clause */
/* The Entry Spot of a lifecycle (S-ENTRY-1,2): its row was written with the descriptor and lies
 * under the lease, so that only the dataplane is told of it: it makes the Spot before the host
 * serves, and closes it as the last one of a planned stop. Nobody else creates or closes it. Called
 * on the driver's thread. */
#include "control/authority/priv.h"

#include <errno.h>
#include <stdio.h>

#define ENTRY_TIME (30000 * AUTH_MS) /* for its callbacks */

static struct auth_work *work(struct auth *a, enum auth_work_state state)
{
	struct auth_work *w = auth_work_new(a, auth_name(&a->host.id.entry_id), state);

	if (!w)
		return NULL;
	w->kind = SPL_KIND_ENTRY;
	w->own_gen = 1;
	w->lease_gen = a->host.id.lease_gen;
	w->attempt = a->host.id.lifecycle; /* the same if another control has begun it */
	return w;
}

int auth_entry_start(struct auth *a)
{
	struct auth_work *w;

	if (a->host.entry_gen) { /* made under a token that was lost since */
		auth_host_entry_made(a);
		return 0;
	}
	if (auth_work_find(a, auth_name(&a->host.id.entry_id)))
		return 0; /* begun under a token that was lost since, and not over */
	w = work(a, AUTH_W_PREPARING);
	if (!w)
		return -ENOMEM;
	w->obj_gen = (uint64_t)a->host.id.entry_gen;
	w->deadline = a->now + ENTRY_TIME;
	auth_work_command(a, w, AUTH_FX_PREPARE);
	return 0;
}

int auth_entry_close(struct auth *a)
{
	struct auth_work *w = work(a, AUTH_W_CLOSING);

	if (!w)
		return -ENOMEM;
	w->obj_gen = a->host.entry_gen;
	w->reason = AUTH_HOST_SHUTDOWN;
	w->deadline = a->host.stop_at;
	auth_work_command(a, w, AUTH_FX_CLOSE_LOCAL);
	return 0;
}

bool auth_entry_cancel(struct auth *a)
{
	struct auth_work *w = auth_work_find(a, auth_name(&a->host.id.entry_id));

	if (w && w->state == AUTH_W_PREPARING) {
		w->state = AUTH_W_DISCARDING;
		auth_work_command(a, w, AUTH_FX_DISCARD);
	}
	return w != NULL;
}

static void made(struct auth *a, struct auth_work *w)
{
	a->host.entry_gen = w->obj_gen;
	auth_work_end(a, w, false);
	auth_host_entry_made(a);
}

static void failed(struct auth *a, struct auth_work *w, const struct auth_event *e)
{
	char why[AUTH_TEXT];

	snprintf(why, sizeof(why), "the Entry Spot cannot be made: %s: %s",
		 spl_error_name(e->u.answer.kind), e->u.answer.text ? e->u.answer.text : "");
	auth_work_end(a, w, false);
	if (a->host.phase != AUTH_H_ENTRY)
		return; /* the token was lost: it is tried again */
	if (e->u.answer.kind == SPL_E_UNAVAILABLE)
		auth_host_retry(a); /* the lease had run out there: until renewed or lost */
	else
		auth_host_start_failed(a, why);
}

void auth_entry_answer(struct auth *a, struct auth_work *w, const struct auth_event *e)
{
	int kind = e->u.answer.kind;

	if (w->state == AUTH_W_CLOSING) {
		auth_close_note(a, w, e);
		auth_work_end(a, w, true);
	} else if (w->state == AUTH_W_DISCARDING) {
		auth_work_end(a, w, false);
	} else if (w->state == AUTH_W_PREPARING && kind == SPL_OK &&
		   e->u.answer.verdict == AUTH_ACCEPTED) {
		w->state = AUTH_W_PUBLISHING;
		auth_work_command(a, w, AUTH_FX_PUBLISH);
	} else if (w->state == AUTH_W_PREPARING && kind == SPL_E_ALREADY_EXISTS) {
		made(a, w); /* by the control before this one */
	} else if (w->state == AUTH_W_PUBLISHING && kind == SPL_OK) {
		made(a, w);
	} else {
		failed(a, w, e);
	}
}
