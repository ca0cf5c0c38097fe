/* SPDX-License-Identifier: BSD-3-Clause */
/* One request from its line to its answer. A call owns its request; the connection points to the
 * call it serves and the call to its connection, until one of them goes. Loop thread. */
#include "control/server/internal.h"
#include "control/server/check.h"
#include "common/json_line.h"
#include "common/utf8.h"

#include <spotlane/errors.h>
#include <stdlib.h>
#include <string.h>

/* {"jsonrpc":"2.0","id":ID,KEY:VALUE} as a line; takes `value`. NULL when there is no memory. */
static char *answer_text(const json_t *id, const char *key, json_t *value)
{
	json_t *answer = json_pack("{s:s, s:O?, s:o}", "jsonrpc", "2.0", "id", id, key, value);
	char *text = answer ? json_line_text(answer) : NULL;

	json_decref(answer);
	return text;
}

/* A text as JSON; a byte that is not UTF-8, like half a character at the end of a cut text, becomes
 * '?'. */
static json_t *text_value(const char *text)
{
	size_t n = strlen(text), good = utf8_valid_bytes(text, n);
	char *copy;
	json_t *v;

	if (good == n)
		return json_string(text);
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (; good < n; good += utf8_valid_bytes(copy + good, n - good))
		copy[good] = '?';
	v = json_string(copy);
	free(copy);
	return v;
}

static json_t *error_value(int code, int kind, const char *object, const char *text,
			   const char *hint)
{
	json_t *data = json_pack("{s:s}", "kind", spl_error_name(kind));

	if (object)
		json_object_set_new(data, "object", text_value(object));
	if (hint)
		json_object_set_new(data, "hint", text_value(hint));
	return json_pack("{s:i, s:o, s:o}", "code", code, "message", text_value(text), "data",
			 data);
}

void call_error(struct mgmt_client *c, const json_t *id, int code, int kind, const char *object,
		const char *text, const char *hint)
{
	c->server->counts.errors++;
	client_send(c, answer_text(id, "error", error_value(code, kind, object, text, hint)));
}

static void call_free(struct mgmt_call *call)
{
	if (call->client)
		call->client->call = NULL;
	json_decref(call->request);
	free(call);
}

/* Sends the answer, lets go of the call and goes on with the connection's input. */
static void finish(struct mgmt_call *call, char *text)
{
	struct mgmt_client *c = call->client;

	call_free(call);
	if (!c) {
		free(text);
		return;
	}
	client_send(c, text);
	if (!c->is_closing && !c->is_processing)
		client_make_ready(c);
}

void mgmt_reply(struct mgmt_call *call, json_t *result)
{
	char *text;

	if (!result) {
		mgmt_fail(call, SPL_E_INTERNAL_FAILURE, NULL, "answer failed: no memory", NULL);
		return;
	}
	if (!call->client) {
		json_decref(result);
		call_free(call);
		return;
	}
	text = answer_text(call->id, "result", result);
	if (text)
		finish(call, text);
	else
		mgmt_fail(call, SPL_E_INTERNAL_FAILURE, NULL, "answer failed: no memory", NULL);
}

void mgmt_fail(struct mgmt_call *call, int kind, const char *object, const char *text,
	       const char *hint)
{
	char *line = NULL;

	if (call->client) {
		call->client->server->counts.errors++;
		line = answer_text(call->id, "error",
				   error_value(SPL_MGMT_E_KIND - kind, kind, object, text, hint));
	}
	finish(call, line);
}

bool mgmt_call_is_gone(const struct mgmt_call *call)
{
	return !call->client;
}

void call_detach(struct mgmt_client *c)
{
	if (c->call)
		c->call->client = NULL;
	c->call = NULL;
}

static void run(struct mgmt_client *c, json_t *request, const struct mgmt_request *r,
		const struct mgmt_method *m)
{
	struct mgmt_call *call = calloc(1, sizeof(*call));
	const json_t *params = r->params;

	if (!params && json_object_set_new(request, "params", json_object()) == 0)
		params = json_object_get(request, "params");
	if (!call || !params) {
		free(call);
		call_error(c, r->id, SPL_MGMT_E_KIND - SPL_E_INTERNAL_FAILURE,
			   SPL_E_INTERNAL_FAILURE, NULL, "no memory", NULL);
		json_decref(request);
		return;
	}
	call->client = c;
	call->request = request;
	call->id = r->id;
	c->call = call;
	c->server->counts.requests++;
	m->handler(call, params, c->server->ctx);
}

/* The method of a request that may be called; otherwise an error has been sent. */
static const struct mgmt_method *allowed_method(struct mgmt_client *c, const struct mgmt_request *r)
{
	const struct mgmt_server *s = c->server;
	char why[MGMT_WHY_MAX];
	const struct mgmt_method *m = mgmt_find_method(s->methods, s->n_methods, r->method, why);

	if (!m) {
		call_error(c, r->id, SPL_MGMT_E_METHOD, SPL_E_NOT_FOUND, NULL, why, NULL);
	} else if (c->access == MGMT_ACCESS_READ && !m->read_only) {
		snprintf(why, sizeof(why), "%s refused: read-only access", m->name);
		call_error(c, r->id, SPL_MGMT_E_KIND - SPL_E_REJECTED, SPL_E_REJECTED, NULL, why,
			   "needs the group of the socket");
	} else if (!m->handler) {
		snprintf(why, sizeof(why), "%s is not offered by this daemon", m->name);
		call_error(c, r->id, SPL_MGMT_E_METHOD, SPL_E_NOT_CONFIGURED, NULL, why, NULL);
	} else if (!mgmt_check_params(m, r->params, why)) {
		call_error(c, r->id, SPL_MGMT_E_PARAMS, SPL_E_INVALID_OPERATION, NULL, why, NULL);
	} else {
		return m;
	}
	return NULL;
}

void call_begin(struct mgmt_client *c, const char *line, size_t len)
{
	char why[MGMT_WHY_MAX];
	json_t *request = json_line_parse(line, len, SPL_MGMT_DEPTH_MAX, why);
	const struct mgmt_method *m;
	struct mgmt_request r;
	int code;

	if (!request) {
		call_error(c, NULL, SPL_MGMT_E_PARSE, SPL_E_PROTOCOL_ERROR, NULL, why, NULL);
		return;
	}
	code = mgmt_check_request(request, &r, why);
	if (code != 0) {
		call_error(c, r.id, code, SPL_E_PROTOCOL_ERROR, NULL, why, NULL);
		json_decref(request);
		return;
	}
	m = allowed_method(c, &r);
	if (m)
		run(c, request, &r, m);
	else
		json_decref(request);
}
