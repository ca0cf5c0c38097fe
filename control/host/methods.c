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

static const char *host_param_text(const json_t *params, const char *name, size_t *n)
{
	const json_t *v = json_object_get(params, name);

	*n = v ? json_string_length(v) : 0;
	return v ? json_string_value(v) : "";
}

struct auth_bytes host_param_bytes(const json_t *params, const char *name)
{
	size_t n;
	const char *p = host_param_text(params, name, &n);

	return (struct auth_bytes){p, (uint32_t)n};
}

uint64_t host_param_deadline(const struct host *h, const json_t *params, uint32_t default_ms)
{
	const json_t *v = json_object_get(params, "timeout_ms");
	uint64_t ms = v ? (uint64_t)json_integer_value(v) : default_ms;

	return host_now(h) + ms * CLOCK_NS_PER_MS;
}

struct host_wait *host_method_wait(struct host *h, struct mgmt_call *call,
				   enum spl_mgmt_method method, const char *what,
				   const json_t *params, const char *name)
{
	struct host_wait *w = host_wait_new(h, HOST_WAIT_METHOD);
	size_t n;
	const char *p = host_param_text(params, name, &n);

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

void host_method_submit(struct host *h, struct host_wait *w, struct auth_request *r)
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
	json_object_set_new(out, "kind", json_string(host_kind_name(r->entry.kind)));
	json_object_set_new(out, "type", name_json(r->entry.type));
	return out;
}

static json_t *row_json(const struct auth_entry *e)
{
	json_t *row = json_object();
	char gen[24];

	snprintf(gen, sizeof(gen), "%llu", (unsigned long long)e->obj_gen);
	json_object_set_new(row, "id", name_json(e->id));
	json_object_set_new(row, "kind", json_string(host_kind_name(e->kind)));
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

void host_method_reply(struct host_wait *w, const struct auth_reply *r)
{
	json_t *out = NULL;

	if (r->verb == AUTH_RESOLVE) {
		host_call_resolved(w, r);
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
	case AUTH_ACTIVATE:
		break; /* no method asks the one, and the other was above */
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

	w = verb == AUTH_CREATE ? host_method_wait(h, call, method, "spot of type", params, "type")
				: host_method_wait(h, call, method, "spot", params, "id");
	if (mgmt_param_bytes(params, "request", &request, &n) < 0)
		host_fatal("out of memory");
	r.deadline = (int64_t)host_param_deadline(h, params, h->cfg->timeouts.create_ms);
	r.id = host_param_bytes(params, "id");
	r.type = host_param_bytes(params, "type");
	r.mesh = host_param_bytes(params, "mesh");
	r.request = (struct auth_bytes){request, (uint32_t)n};
	host_method_submit(h, w, &r);
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

	r.deadline = (int64_t)host_param_deadline(h, params, h->cfg->timeouts.request_ms);
	r.id = host_param_bytes(params, "id");
	host_method_submit(h, host_method_wait(h, call, SPL_MGMT_SPOT_FIND, "spot", params, "id"),
			   &r);
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
	struct host_wait *w =
		host_method_wait(h, call, SPL_MGMT_SPOT_LIST, "spots", params, "kind");
	const json_t *limit = json_object_get(params, "limit");
	uint8_t token[AUTH_TOKEN_MAX];
	size_t n;
	const char *p = host_param_text(params, "kind", &n);

	r.kind = n == 0	       ? SPL_KIND_INVALID
		 : p[0] == 'e' ? SPL_KIND_ENTRY
		 : p[0] == 'u' ? SPL_KIND_USER
			       : SPL_KIND_INSTANCE;
	r.type = host_param_bytes(params, "type");
	r.limit = limit ? (uint32_t)json_integer_value(limit) : LIST_LIMIT;
	r.deadline = (int64_t)host_param_deadline(h, params, h->cfg->timeouts.request_ms);
	p = host_param_text(params, "token", &n);
	if (n % 2 || n > 2 * AUTH_TOKEN_MAX || unhex(p, n, token) < 0) {
		host_method_fail(w, SPL_E_INVALID_OPERATION, "no such token");
		host_wait_free(w);
		return;
	}
	r.token = (struct auth_bytes){token, (uint32_t)n / 2};
	host_method_submit(h, w, &r);
}

static void spot_close(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	struct auth_request r = {.verb = AUTH_CLOSE};
	const json_t *v = json_object_get(params, "ref");
	struct host_wait *w = host_method_wait(h, call, SPL_MGMT_SPOT_CLOSE, "spot", v, "spotId");
	struct spl_spot_ref ref;
	const char *why = "";

	if (spotref_from_json(v, &ref, &why) < 0) {
		host_method_fail(w, SPL_E_INVALID_OPERATION, why);
		host_wait_free(w);
		return;
	}
	r.id = (struct auth_bytes){ref.spot_id.b, ref.spot_id.len};
	r.obj_gen = ref.object_generation;
	r.deadline = (int64_t)host_param_deadline(h, params, h->cfg->timeouts.request_ms);
	host_method_submit(h, w, &r);
}

static void spot_reclaim(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	bool one = json_object_get(params, "id") != NULL;
	struct auth_request r = {.verb = one ? AUTH_RECLAIM_ID : AUTH_RECLAIM_NODE};

	r.id = host_param_bytes(params, one ? "id" : "node");
	r.deadline = (int64_t)host_param_deadline(h, params, h->cfg->timeouts.request_ms);
	host_method_submit(h,
			   host_method_wait(h, call, SPL_MGMT_SPOT_RECLAIM, one ? "spot" : "node",
					    params, one ? "id" : "node"),
			   &r);
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
	m[SPL_MGMT_SPOT_SEND].handler = host_spot_send;
	m[SPL_MGMT_SPOT_REQUEST].handler = host_spot_request;
	m[SPL_MGMT_SPOT_RECLAIM].handler = spot_reclaim;
	m[SPL_MGMT_STATS_SHOW].handler = host_stats_show;
	m[SPL_MGMT_STAGE_SHOW].handler = host_stage_show;
	m[SPL_MGMT_TRACE_SHOW].handler = host_trace_show;
	m[SPL_MGMT_TRACE_SET_LEVEL].handler = host_trace_set_level;
	m[SPL_MGMT_TRACE_SET_SAMPLE].handler = host_trace_set_sample;
	m[SPL_MGMT_METRICS_SHOW].handler = host_metrics_show;
	m[SPL_MGMT_STATUS_SHOW].handler = host_status_show;
	m[SPL_MGMT_CONFIG_SHOW].handler = host_config_show;
	m[SPL_MGMT_LOG_SET_LEVEL].handler = host_log_set_level;
}
