/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the authority to the dataplane, and their answers: see host_priv.h. Loop thread only.
 *
 * Commands of the authority need no care when the link is down or breaks: they end with
 * -ECONNRESET here and the authority repeats them after AUTH_EV_LINK_UP.
 */
#include "control/host/host_priv.h"

#include <errno.h>
#include <stdio.h>

_Static_assert((int)AUTH_FENCED == DP_CLOSE_FENCED, "one number for both");

/* True when the end carries an answer for the authority. */
static bool begin_answer(struct auth_event *e, uint64_t cmd, const struct dplink_end *end)
{
	*e = (struct auth_event){.kind = AUTH_EV_ANSWER};
	e->u.answer.cmd = cmd;
	e->u.answer.kind = SPL_OK;
	if (end->rc == -EREMOTEIO) {
		e->u.answer.kind = end->kind;
		e->u.answer.verdict = AUTH_FAILED;
	}
	return end->rc == 0 || end->rc == -EREMOTEIO;
}

static void on_prepared(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host *h = ctx;
	struct dp_blob blob = {NULL, 0};
	struct dp_prepared m;
	struct auth_event e;
	char text[256] = "";

	if (!begin_answer(&e, tag, end))
		return;
	if (end->rc == 0) {
		dp_get_prepared(&end->m->body, &m);
		if (!dp_done(&end->m->body) || m.result > DP_PREPARED_FAILED ||
		    dp_field_in(&m.reply, end->m->fd, &blob) < 0) {
			dplink_cut(h->link, "malformed PREPARED");
			return;
		}
		e.u.answer.verdict = m.result == DP_PREPARED_ACCEPTED	? AUTH_ACCEPTED
				     : m.result == DP_PREPARED_REJECTED ? AUTH_DECLINED
									: AUTH_FAILED;
		if (m.result == DP_PREPARED_FAILED)
			e.u.answer.kind =
				m.kind < SPL_ERROR_COUNT ? m.kind : SPL_E_INTERNAL_FAILURE;
		e.u.answer.reply = host_bytes(m.reply);
		e.u.answer.content = m.content;
		snprintf(text, sizeof(text), "%.*s", (int)m.text.len, (const char *)m.text.p);
	} else {
		snprintf(text, sizeof(text), "%.*s", (int)end->text.len, (const char *)end->text.p);
	}
	e.u.answer.text = text;
	host_event(h, &e);
	dp_blob_unmap(&blob);
}

static void on_ok(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host *h = ctx;
	struct auth_event e;
	struct dp_ok m;

	if (!begin_answer(&e, tag, end))
		return;
	if (end->rc == 0) {
		dp_get_ok(&end->m->body, &m);
		if (!dp_done(&end->m->body)) {
			dplink_cut(h->link, "malformed OK");
			return;
		}
		e.u.answer.kind = m.kind;
	}
	host_event(h, &e);
}

static void on_object_closed(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host *h = ctx;
	struct auth_event e;
	struct dp_closed m;
	char text[256];

	if (!begin_answer(&e, tag, end))
		return;
	if (end->rc == 0) {
		dp_get_closed(&end->m->body, &m);
		if (!dp_done(&end->m->body) || m.result > DP_CLOSED_BUSY) {
			dplink_cut(h->link, "malformed CLOSED");
			return;
		}
		snprintf(text, sizeof(text), "%.*s", (int)m.text.len, (const char *)m.text.p);
		e.u.answer.text = text;
		if (m.result == DP_CLOSED_FAILED)
			e.u.answer.kind =
				m.kind < SPL_ERROR_COUNT ? m.kind : SPL_E_INTERNAL_FAILURE;
		if (m.result == DP_CLOSED_LATE)
			e.u.answer.kind = SPL_E_DEADLINE_EXCEEDED;
		if (m.result == DP_CLOSED_BUSY)
			e.u.answer.verdict = AUTH_DECLINED;
	}
	host_event(h, &e);
}

static void request(struct host *h, uint16_t reply, int fd, uint64_t cmd, dplink_end_fn fn)
{
	const struct dplink_want w = {.type = reply, .fn = fn, .ctx = h, .tag = cmd};
	int rc = dplink_request(h->link, fd, &w);

	/* ENOTCONN and ENOBUFS: it comes again after LINK_UP. */
	if (rc < 0 && rc != -ENOTCONN && rc != -ENOBUFS)
		dplink_cut(h->link, "a command could not be queued");
}

static void prepare(struct host *h, const struct auth_command *c)
{
	struct dp_obj_prepare m = {
		.obj_gen = c->fence.obj_gen,
		.own_gen = c->fence.own_gen,
		.attempt = c->attempt,
		.deadline = (uint64_t)c->deadline,
		.kind = (uint8_t)c->kind,
		.id = host_pack(c->id),
		.type = host_pack(c->type),
		.request = host_pack(c->request),
	};
	int fd;

	if (dp_field_out(&m.request, &fd) < 0)
		host_fatal("no memfd for a creation request");
	dp_put_obj_prepare(dplink_begin(h->link, DP_OBJ_PREPARE), &m);
	request(h, DP_PREPARED, fd, c->cmd, on_prepared);
}

static void publish(struct host *h, const struct auth_command *c)
{
	const struct dp_obj_publish m = {
		.obj_gen = c->fence.obj_gen,
		.own_gen = c->fence.own_gen,
		.ver = c->fence.ver,
		.attempt = c->attempt,
		.id = host_pack(c->id),
	};

	dp_put_obj_publish(dplink_begin(h->link, DP_OBJ_PUBLISH), &m);
	request(h, DP_OK, -1, c->cmd, on_ok);
}

static void discard(struct host *h, const struct auth_command *c)
{
	const struct dp_obj_discard m = {
		.obj_gen = c->fence.obj_gen,
		.attempt = c->attempt,
		.id = host_pack(c->id),
	};

	dp_put_obj_discard(dplink_begin(h->link, DP_OBJ_DISCARD), &m);
	request(h, DP_OK, -1, c->cmd, on_ok);
}

static void close_local(struct host *h, const struct auth_command *c)
{
	const struct dp_obj_close m = {
		.obj_gen = c->fence.obj_gen,
		.reason = (uint8_t)c->reason, /* AUTH_FENCED is DP_CLOSE_FENCED */
		.deadline = (uint64_t)c->deadline,
		.id = host_pack(c->id),
	};

	dp_put_obj_close(dplink_begin(h->link, DP_OBJ_CLOSE), &m);
	request(h, DP_CLOSED, -1, c->cmd, on_object_closed);
}

void host_command(struct host *h, enum auth_fx_kind kind, const struct auth_command *c)
{
	if (kind == AUTH_FX_PREPARE)
		prepare(h, c);
	else if (kind == AUTH_FX_PUBLISH)
		publish(h, c);
	else if (kind == AUTH_FX_DISCARD)
		discard(h, c);
	else
		close_local(h, c);
}
