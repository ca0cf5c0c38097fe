/* SPDX-License-Identifier: BSD-3-Clause */
/* The management methods that ask the authority or a Spot: see host_priv.h. Loop thread only.
 * Parameters have passed the server's check; texts are UTF-8 within their bounds.
 */
#include "control/host/host_priv.h"
#include "common/spotref_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST_LIMIT 100

static const char *text_of(const json_t *params, const char *name, size_t *n)
{
	const json_t *v = json_object_get(params, name);

	*n = v ? json_string_length(v) : 0;
	return v ? json_string_value(v) : "";
}

static struct auth_bytes bytes_of(const json_t *params, const char *name)
{
	size_t n;
	const char *p = text_of(params, name, &n);

	return (struct auth_bytes){p, (uint32_t)n};
}

static uint64_t deadline_of(const struct host *h, const json_t *params, uint32_t default_ms)
{
	const json_t *v = json_object_get(params, "timeout_ms");
	uint64_t ms = v ? (uint64_t)json_integer_value(v) : default_ms;

	return host_now(h) + ms * CLOCK_NS_PER_MS;
}

static struct host_wait *wait_new(struct host *h, struct mgmt_call *call,
				  enum spl_mgmt_method method, const char *what,
				  const json_t *params, const char *name)
{
	struct host_wait *w = host_wait_new(h, HOST_WAIT_METHOD);
	size_t n;
	const char *p = text_of(params, name, &n);

	w->call = call;
	w->method = method;
	if (n > 0)
		snprintf(w->object, sizeof(w->object), "%s %.*s", what, (int)n, p);
	else
		snprintf(w->object, sizeof(w->object), "%s", what);
	return w;
}

void host_method_fail(struct host_wait *w, int kind, const char *text)
{
	const char *hint = NULL;

	if (kind == SPL_E_UNAVAILABLE && w->method != SPL_MGMT_SPOT_RECLAIM)
		hint = "see `spotctl node show`; if the owner is dead, `spotctl spot reclaim`";
	mgmt_fail(w->call, kind, w->object, text, hint);
	w->call = NULL;
}

static void submit(struct host *h, struct host_wait *w, struct auth_request *r)
{
	int rc;

	spl_name_set(&r->op.rid, h->control_rid, strlen(h->control_rid));
	r->op.lifecycle = h->control_life;
	r->op.lo = ++h->op_serial;
	rc = host_submit(h, w, r);
	if (rc == 0)
		return;
	if (rc == -EBUSY)
		host_method_fail(w, SPL_E_CAPACITY_EXCEEDED, "too many requests are under way");
	else if (rc == -EINVAL)
		host_method_fail(w, SPL_E_INVALID_OPERATION, "an argument is not legal");
	else
		host_method_fail(w, SPL_E_INTERNAL_FAILURE, "out of memory");
	host_wait_free(w);
}

/* ---- the authority's answers ---- */

static json_t *entry_ref(const struct auth_entry *e)
{
	struct spl_spot_ref ref = {.object_generation = e->obj_gen};

	if (spl_name_set(&ref.spot_id, e->id.p, e->id.n) < 0 ||
	    spl_name_set(&ref.mesh_name, e->mesh.p, e->mesh.n) < 0 ||
	    spl_name_set(&ref.node_rid, e->rid.p, e->rid.n) < 0)
		return NULL;
	return spotref_to_json(&ref);
}

static const char *kind_name(enum spl_kind kind)
{
	return kind == SPL_KIND_ENTRY ? "entry" : kind == SPL_KIND_USER ? "user" : "instance";
}

static const char *row_state_name(enum auth_row_state s)
{
	switch (s) {
	case AUTH_ROW_CREATING:
		return "Creating";
	case AUTH_ROW_READY:
		return "Ready";
	case AUTH_ROW_CLOSING:
		return "Closing";
	case AUTH_ROW_RELOCATING:
		return "Relocating";
	}
	return "unknown";
}

static json_t *name_json(struct auth_bytes b)
{
	return json_stringn(b.n ? b.p : "", b.n);
}

static json_t *created_json(const struct auth_reply *r)
{
	static const char *const names[] = {"Existing", "Created", "Rejected"};
	json_t *out = json_object();
	json_t *ref = entry_ref(&r->entry);

	json_object_set_new(out, "state", json_string(names[r->created]));
	if (ref)
		json_object_set_new(out, "ref", ref);
	if (r->created != AUTH_EXISTING && r->reply.n > 0 &&
	    mgmt_result_bytes(out, "reply", r->reply.p, r->reply.n) < 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *found_json(const struct auth_reply *r)
{
	json_t *out = json_object();

	json_object_set_new(out, "ref", r->found ? entry_ref(&r->entry) : json_null());
	if (!r->found)
		return out;
	json_object_set_new(out, "kind", json_string(kind_name(r->entry.kind)));
	json_object_set_new(out, "type", name_json(r->entry.type));
	return out;
}

static json_t *row_json(const struct auth_entry *e)
{
	json_t *row = json_object();
	char gen[24];

	snprintf(gen, sizeof(gen), "%llu", (unsigned long long)e->obj_gen);
	json_object_set_new(row, "id", name_json(e->id));
	json_object_set_new(row, "kind", json_string(kind_name(e->kind)));
	json_object_set_new(row, "type", name_json(e->type));
	json_object_set_new(row, "state",
			    json_string(e->unavailable ? "Unavailable" : row_state_name(e->state)));
	json_object_set_new(row, "generation", json_string(gen));
	json_object_set_new(row, "mesh", name_json(e->mesh));
	json_object_set_new(row, "node", name_json(e->rid));
	return row;
}

static json_t *list_json(const struct auth_reply *r)
{
	json_t *out = json_object(), *rows = json_array();
	char token[2 * AUTH_TOKEN_MAX + 1];

	for (size_t i = 0; i < r->n_entries; i++)
		json_array_append_new(rows, row_json(&r->entries[i]));
	json_object_set_new(out, "spots", rows);
	if (r->next.n > 0 && r->next.n <= AUTH_TOKEN_MAX) {
		for (uint32_t i = 0; i < r->next.n; i++)
			snprintf(token + 2 * i, 3, "%02x", ((const uint8_t *)r->next.p)[i]);
		json_object_set_new(out, "next", json_stringn(token, 2 * r->next.n));
	}
	return out;
}

static void call_dataplane(struct host_wait *w);

static void call_resolved(struct host_wait *w, const struct auth_reply *r)
{
	if (r->kind == SPL_OK && r->route == AUTH_ROUTE_READY) {
		call_dataplane(w);
		return;
	}
	if (r->route == AUTH_ROUTE_MISSING)
		host_method_fail(w, SPL_E_NOT_FOUND, "no such Spot");
	else
		host_method_fail(w, r->kind == SPL_OK ? SPL_E_UNAVAILABLE : r->kind, r->text);
	host_wait_free(w);
}

void host_method_reply(struct host_wait *w, const struct auth_reply *r)
{
	json_t *out = NULL;

	if (r->verb == AUTH_RESOLVE) {
		call_resolved(w, r);
		return;
	}
	if (r->kind != SPL_OK) {
		host_method_fail(w, r->kind, r->text);
		host_wait_free(w);
		return;
	}
	switch (r->verb) {
	case AUTH_CREATE:
	case AUTH_GET_OR_CREATE:
		out = created_json(r);
		break;
	case AUTH_FIND:
		out = found_json(r);
		break;
	case AUTH_LIST:
		out = list_json(r);
		break;
	case AUTH_CLOSE:
		out = json_pack("{s:b}", "closed", r->closed);
		break;
	case AUTH_RECLAIM_ID:
	case AUTH_RECLAIM_NODE:
		out = json_pack("{s:I,s:I}", "reclaimed", (json_int_t)r->reclaimed, "kept",
				(json_int_t)r->kept);
		break;
	case AUTH_SHOW:
	case AUTH_RESOLVE:
		break; /* no answer is made of these */
	}
	mgmt_reply(w->call, out);
	host_wait_free(w);
}

/* ---- methods ---- */

static void create(struct mgmt_call *call, const json_t *params, struct host *h,
		   enum auth_verb verb, enum spl_mgmt_method method)
{
	struct auth_request r = {.verb = verb};
	struct host_wait *w;
	void *request;
	size_t n;

	w = verb == AUTH_CREATE ? wait_new(h, call, method, "spot of type", params, "type")
				: wait_new(h, call, method, "spot", params, "id");
	if (mgmt_param_bytes(params, "request", &request, &n) < 0)
		host_fatal("out of memory");
	r.deadline = (int64_t)deadline_of(h, params, h->cfg->timeouts.create_ms);
	r.id = bytes_of(params, "id");
	r.type = bytes_of(params, "type");
	r.mesh = bytes_of(params, "mesh");
	r.request = (struct auth_bytes){request, (uint32_t)n};
	submit(h, w, &r);
	free(request);
}

static void spot_create(struct mgmt_call *call, const json_t *params, void *ctx)
{
	create(call, params, ctx, AUTH_CREATE, SPL_MGMT_SPOT_CREATE);
}

static void spot_get_or_create(struct mgmt_call *call, const json_t *params, void *ctx)
{
	create(call, params, ctx, AUTH_GET_OR_CREATE, SPL_MGMT_SPOT_GET_OR_CREATE);
}

static void spot_find(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	struct auth_request r = {.verb = AUTH_FIND};

	r.deadline = (int64_t)deadline_of(h, params, h->cfg->timeouts.request_ms);
	r.id = bytes_of(params, "id");
	submit(h, wait_new(h, call, SPL_MGMT_SPOT_FIND, "spot", params, "id"), &r);
}

static int unhex(const char *text, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i += 2) {
		unsigned v;
		char b[3] = {text[i], text[i + 1], 0};

		if (strspn(b, "0123456789abcdef") != 2 || sscanf(b, "%x", &v) != 1)
			return -EINVAL;
		out[i / 2] = (uint8_t)v;
	}
	return 0;
}

static void spot_list(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	struct auth_request r = {.verb = AUTH_LIST};
	struct host_wait *w = wait_new(h, call, SPL_MGMT_SPOT_LIST, "spots", params, "kind");
	const json_t *limit = json_object_get(params, "limit");
	uint8_t token[AUTH_TOKEN_MAX];
	size_t n;
	const char *p = text_of(params, "kind", &n);

	r.kind = n == 0	       ? SPL_KIND_INVALID
		 : p[0] == 'e' ? SPL_KIND_ENTRY
		 : p[0] == 'u' ? SPL_KIND_USER
			       : SPL_KIND_INSTANCE;
	r.type = bytes_of(params, "type");
	r.limit = limit ? (uint32_t)json_integer_value(limit) : LIST_LIMIT;
	r.deadline = (int64_t)deadline_of(h, params, h->cfg->timeouts.request_ms);
	p = text_of(params, "token", &n);
	if (n % 2 || n > 2 * AUTH_TOKEN_MAX || unhex(p, n, token) < 0) {
		host_method_fail(w, SPL_E_INVALID_OPERATION, "no such token");
		host_wait_free(w);
		return;
	}
	r.token = (struct auth_bytes){token, (uint32_t)n / 2};
	submit(h, w, &r);
}

static void spot_close(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	struct auth_request r = {.verb = AUTH_CLOSE};
	const json_t *v = json_object_get(params, "ref");
	struct host_wait *w = wait_new(h, call, SPL_MGMT_SPOT_CLOSE, "spot", v, "spotId");
	struct spl_spot_ref ref;
	const char *why = "";

	if (spotref_from_json(v, &ref, &why) < 0) {
		host_method_fail(w, SPL_E_INVALID_OPERATION, why);
		host_wait_free(w);
		return;
	}
	r.id = (struct auth_bytes){ref.spot_id.b, ref.spot_id.len};
	r.obj_gen = ref.object_generation;
	r.deadline = (int64_t)deadline_of(h, params, h->cfg->timeouts.request_ms);
	submit(h, w, &r);
}

static void spot_reclaim(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	bool one = json_object_get(params, "id") != NULL;
	struct auth_request r = {.verb = one ? AUTH_RECLAIM_ID : AUTH_RECLAIM_NODE};

	r.id = bytes_of(params, one ? "id" : "node");
	r.deadline = (int64_t)deadline_of(h, params, h->cfg->timeouts.request_ms);
	submit(h,
	       wait_new(h, call, SPL_MGMT_SPOT_RECLAIM, one ? "spot" : "node", params,
			one ? "id" : "node"),
	       &r);
}

/* ---- calls to Spots ---- */

static void on_called(void *ctx, uint64_t tag, const struct dplink_end *end)
{
	struct host_wait *w = ctx;
	struct dp_blob blob = {NULL, 0};
	struct dp_spot_called m;
	json_t *out = NULL;

	if (end->rc < 0) {
		host_method_fail(w,
				 end->rc == -EREMOTEIO	 ? end->kind
				 : end->rc == -ETIMEDOUT ? SPL_E_DEADLINE_EXCEEDED
							 : SPL_E_UNAVAILABLE,
				 end->rc == -ETIMEDOUT ? "the dataplane did not answer in time"
						       : "the dataplane is not reachable");
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

/* Hands the message to the dataplane, which has the Spot. */
static void call_dataplane(struct host_wait *w)
{
	bool request = w->method == SPL_MGMT_SPOT_REQUEST;
	bool text = json_object_get(w->params, "payload") != NULL;
	struct dp_spot_call m = {.is_request = request};
	struct dplink_want want = {.type = DP_SPOT_CALLED, .fn = on_called, .ctx = w};
	struct host *h = w->h;
	void *payload;
	size_t n;
	int fd = -1, rc;

	if (mgmt_param_bytes(w->params, "payload", &payload, &n) < 0)
		host_fatal("out of memory");
	m.content = text ? SPL_CONTENT_TEXT : SPL_CONTENT_RAW;
	m.deadline = w->deadline;
	m.id = host_pack(bytes_of(w->params, "id"));
	m.packet = host_pack(bytes_of(w->params, "packet"));
	m.payload = (struct pack_bytes){payload, (uint32_t)n};
	/* The dataplane ends the call at its deadline; this one is for a dataplane that hangs. */
	want.deadline = m.deadline + CLOCK_NS_PER_S;
	rc = h->has_id ? dp_field_out(&m.payload, &fd) : -ENOTCONN;
	if (rc == 0) {
		dp_put_spot_call(dplink_begin(h->link, DP_SPOT_CALL), &m);
		rc = dplink_request(h->link, fd, &want);
	}
	free(payload);
	if (rc == 0)
		return;
	host_method_fail(w, rc == -EBUSY ? SPL_E_CAPACITY_EXCEEDED : SPL_E_UNAVAILABLE,
			 rc == -EBUSY ? "too many calls are under way" : "no dataplane serves");
	host_wait_free(w);
}

/* Resolves first, so that a Spot that does not exist is told from one that is not to be had, for
 * sends too (S-ADDR-6). One deadline, of the call, covers both. */
static void spot_call(struct mgmt_call *call, const json_t *params, struct host *h, bool request)
{
	struct host_wait *w =
		wait_new(h, call, request ? SPL_MGMT_SPOT_REQUEST : SPL_MGMT_SPOT_SEND, "spot",
			 params, "id");
	struct auth_request r = {.verb = AUTH_RESOLVE, .id = bytes_of(params, "id")};

	w->is_call = true;
	h->n_calls++;
	if (h->n_calls > HOST_CALLS_MAX) {
		host_method_fail(w, SPL_E_CAPACITY_EXCEEDED, "too many calls are under way");
		host_wait_free(w);
		return;
	}
	w->params = json_deep_copy(params);
	if (!w->params)
		host_fatal("out of memory");
	w->deadline = deadline_of(h, params,
				  request ? h->cfg->timeouts.request_ms : h->cfg->timeouts.send_ms);
	r.deadline = (int64_t)w->deadline;
	submit(h, w, &r);
}

static void spot_send(struct mgmt_call *call, const json_t *params, void *ctx)
{
	spot_call(call, params, ctx, false);
}

static void spot_request(struct mgmt_call *call, const json_t *params, void *ctx)
{
	spot_call(call, params, ctx, true);
}

static void node_shutdown(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const json_t *v = json_object_get(params, "deadline_ms");
	struct host *h = ctx;
	uint64_t ms = v ? (uint64_t)json_integer_value(v) : h->cfg->node.drain_ms;

	mgmt_reply(call,
		   json_pack("{s:s,s:I}", "state", "Draining", "deadline_ms", (json_int_t)ms));
	host_shutdown(h, ms * CLOCK_NS_PER_MS, "management");
}

void host_methods(struct mgmt_method m[SPL_MGMT_METHOD_COUNT])
{
	m[SPL_MGMT_NODE_SHOW].handler = host_node_show;
	m[SPL_MGMT_NODE_SHUTDOWN].handler = node_shutdown;
	m[SPL_MGMT_SPOT_CREATE].handler = spot_create;
	m[SPL_MGMT_SPOT_GET_OR_CREATE].handler = spot_get_or_create;
	m[SPL_MGMT_SPOT_FIND].handler = spot_find;
	m[SPL_MGMT_SPOT_LIST].handler = spot_list;
	m[SPL_MGMT_SPOT_CLOSE].handler = spot_close;
	m[SPL_MGMT_SPOT_SEND].handler = spot_send;
	m[SPL_MGMT_SPOT_REQUEST].handler = spot_request;
	m[SPL_MGMT_SPOT_RECLAIM].handler = spot_reclaim;
	m[SPL_MGMT_STATS_SHOW].handler = host_stats_show;
	m[SPL_MGMT_CONFIG_SHOW].handler = host_config_show;
	m[SPL_MGMT_LOG_SET_LEVEL].handler = host_log_set_level;
}
