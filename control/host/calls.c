/* SPDX-License-Identifier: BSD-3-Clause */
/* spot.send and spot.request: an operator's message to a Spot, resolved first, then given to the
 * dataplane: see host_priv.h. Loop thread only.
 */
#include "control/host/host_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Why a call has no answer. */
static void call_failed(struct host_wait *w, const struct dplink_end *end)
{
	char text[256];

	if (end->rc == -EREMOTEIO) {
		snprintf(text, sizeof(text), "%.*s", (int)end->text.len, (const char *)end->text.p);
		host_method_fail(w, end->kind, text);
	} else if (end->rc == -ETIMEDOUT) {
		host_method_fail(w, SPL_E_DEADLINE_EXCEEDED,
				 "the dataplane did not answer in time");
	} else {
		host_method_fail(w, SPL_E_UNAVAILABLE, "the dataplane is not reachable");
	}
}

static void on_called(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host_wait *w = ctx;
	struct dp_blob blob = {NULL, 0};
	struct dp_spot_called m;
	json_t *out = NULL;

	if (end->rc < 0) {
		call_failed(w, end);
		goto out;
	}
	dp_get_spot_called(&end->m->body, &m);
	if (!dp_done(&end->m->body) || dp_field_in(&m.payload, end->m->fd, &blob) < 0) {
		dplink_cut(w->h->link, "malformed SPOT_CALLED");
		host_method_fail(w, SPL_E_INTERNAL_FAILURE, "the dataplane sent a malformed reply");
		goto out;
	}
	if (m.kind != SPL_OK) {
		host_method_fail(w, m.kind, "the message was not handled");
		goto out;
	}
	out = json_object();
	if (w->method == SPL_MGMT_SPOT_SEND)
		json_object_set_new(out, "accepted", json_true());
	else if (mgmt_result_bytes(out, "reply", m.payload.p, m.payload.len) < 0)
		host_fatal("out of memory");
	mgmt_reply(w->call, out);
out:
	dp_blob_unmap(&blob);
	host_wait_free(w);
}

/* The Spot is Ready here, or shall be started here: calls it. */
static int start_call(struct host_wait *w)
{
	struct host *h = w->h;
	struct dp_spot_call m = {.is_request = w->method == SPL_MGMT_SPOT_REQUEST};
	struct dplink_want want = {.type = DP_SPOT_CALLED, .fn = on_called, .ctx = w};
	void *payload;
	size_t n;
	int fd, rc;

	if (mgmt_param_bytes(w->params, "payload", &payload, &n) < 0)
		host_fatal("out of memory");
	m.content = json_object_get(w->params, "payload") ? SPL_CONTENT_TEXT : SPL_CONTENT_RAW;
	m.deadline = w->deadline;
	m.id = host_pack(host_param_bytes(w->params, "id"));
	m.packet = host_pack(host_param_bytes(w->params, "packet"));
	m.instance = host_pack(host_param_bytes(w->params, "instance"));
	m.payload = (struct pack_bytes){payload, (uint32_t)n};
	/* The dataplane ends the call at its deadline; this one is for a dataplane that hangs. */
	want.deadline = m.deadline + CLOCK_NS_PER_S;
	rc = dp_field_out(&m.payload, &fd);
	if (rc == 0) {
		dp_put_spot_call(dplink_begin(h->link, DP_SPOT_CALL), &m);
		rc = dplink_request(h->link, fd, &want);
	}
	free(payload);
	return rc;
}

/* The route of a Spot that an operator calls: peers, too, resolve before they
 * send (S-ADDR-6). */
void host_call_resolved(struct host_wait *w, const struct auth_reply *r)
{
	const struct host *h = w->h;
	bool ours = r->entry.rid.n == h->id.rid.len && h->has_id &&
		    memcmp(r->entry.rid.p, h->id.rid.b, h->id.rid.len) == 0;

	bool intends = json_object_get(w->params, "instance") != NULL;

	if (r->route == AUTH_ROUTE_MISSING && intends)
		ours = h->has_id;
	if (r->route == AUTH_ROUTE_MISSING && !intends)
		host_method_fail(w, SPL_E_NOT_FOUND, "no such Spot");
	else if (r->route != AUTH_ROUTE_READY && r->route != AUTH_ROUTE_MISSING)
		host_method_fail(w, r->kind != SPL_OK ? r->kind : SPL_E_UNAVAILABLE,
				 r->text[0] ? r->text : "it is being closed");
	else if (!ours || start_call(w) < 0)
		host_method_fail(w, SPL_E_UNAVAILABLE, "the dataplane is not reachable");
	else
		return;
	host_wait_free(w);
}

static void spot_call(struct mgmt_call *call, const json_t *params, struct host *h, bool request)
{
	struct host_wait *w =
		host_method_wait(h, call, request ? SPL_MGMT_SPOT_REQUEST : SPL_MGMT_SPOT_SEND,
				 "spot", params, "id");
	struct auth_request r = {.verb = AUTH_RESOLVE};

	w->is_call = true;
	w->params = json_deep_copy(params);
	if (!w->params)
		host_fatal("out of memory");
	w->deadline = host_param_deadline(
		h, params, request ? h->cfg->timeouts.request_ms : h->cfg->timeouts.send_ms);
	if (++h->n_calls > HOST_CALLS_MAX) {
		host_method_fail(w, SPL_E_CAPACITY_EXCEEDED, "too many calls are under way");
		host_wait_free(w);
		return;
	}
	r.id = host_param_bytes(params, "id");
	r.deadline = (int64_t)w->deadline;
	host_method_submit(h, w, &r);
}

void host_spot_send(struct mgmt_call *call, const json_t *params, void *ctx)
{
	spot_call(call, params, ctx, false);
}

void host_spot_request(struct mgmt_call *call, const json_t *params, void *ctx)
{
	spot_call(call, params, ctx, true);
}
