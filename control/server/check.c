/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and parameters: see check.h. Pure. */
#include "control/server/check.h"
#include "common/base64.h"
#include "common/spotref_json.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_id(const json_t *id)
{
	return json_is_integer(id) ||
	       (json_is_string(id) && json_string_length(id) <= SPL_MGMT_ID_MAX);
}

static int bad_request(char why[MGMT_WHY_MAX], const char *text)
{
	snprintf(why, MGMT_WHY_MAX, "%s", text);
	return SPL_MGMT_E_REQUEST;
}

int mgmt_check_request(const json_t *request, struct mgmt_request *out, char why[MGMT_WHY_MAX])
{
	const json_t *id = json_object_get(request, "id");
	const json_t *method = json_object_get(request, "method");
	const json_t *params = json_object_get(request, "params");
	const char *version = json_string_value(json_object_get(request, "jsonrpc"));
	size_t known;

	*out = (struct mgmt_request){.id = is_id(id) ? id : NULL};
	if (json_is_array(request))
		return bad_request(why, "batches are not supported: one object a line");
	if (!version || strcmp(version, "2.0") != 0)
		return bad_request(why, "jsonrpc must be \"2.0\"");
	if (!out->id)
		return bad_request(why, "id must be an integer or a text of at most 64 bytes");
	if (!json_is_string(method) ||
	    json_string_length(method) != strlen(json_string_value(method)))
		return bad_request(why, "method must be a text");
	known = 3 + (params != NULL);
	if (json_object_size(request) != known)
		return bad_request(why, "only jsonrpc, id, method and params are known");
	if (params && !json_is_object(params)) {
		snprintf(why, MGMT_WHY_MAX, "params must be an object: parameters go by name");
		return SPL_MGMT_E_PARAMS;
	}
	out->method = json_string_value(method);
	out->params = params;
	return 0;
}

const struct mgmt_method *mgmt_find_method(const struct mgmt_method *methods, size_t n,
					   const char *name, char why[MGMT_WHY_MAX])
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	snprintf(why, MGMT_WHY_MAX, "no method \"%.64s\"", name);
	return NULL;
}

static bool check_int(const struct mgmt_param *p, const json_t *v, char *why)
{
	if (!json_is_integer(v))
		snprintf(why, MGMT_WHY_MAX, "%s must be an integer", p->name);
	else if (json_integer_value(v) < p->min || json_integer_value(v) > p->max)
		snprintf(why, MGMT_WHY_MAX, "%s: %lld is out of range (%lld..%lld)", p->name,
			 (long long)json_integer_value(v), (long long)p->min, (long long)p->max);
	else
		return true;
	return false;
}

static bool is_word(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

static bool check_length(const struct mgmt_param *p, size_t n, char *why)
{
	if (n < (size_t)p->min)
		snprintf(why, MGMT_WHY_MAX, "%s must not be empty", p->name);
	else if (n > (size_t)p->max)
		snprintf(why, MGMT_WHY_MAX, "%s is too long: %zu bytes (max %lld)", p->name, n,
			 (long long)p->max);
	else
		return true;
	return false;
}

static bool check_base64(const struct mgmt_param *p, const char *text, size_t n, char *why)
{
	ssize_t len = base64_decoded_len(text, n);
	char *bytes;
	bool good;

	if (len >= 0 && !check_length(p, (size_t)len, why))
		return false;
	bytes = len >= 0 ? malloc((size_t)len + 1) : NULL;
	good = bytes && base64_decode(text, n, bytes) == 0;
	free(bytes);
	if (!good)
		snprintf(why, MGMT_WHY_MAX, "%s is not base64", p->name);
	return good;
}

static bool is_choice(const char *choices, const char *text, size_t len)
{
	for (const char *at = choices; *at;) {
		size_t n = strcspn(at, "|");

		if (n == len && memcmp(at, text, n) == 0)
			return true;
		at += at[n] ? n + 1 : n;
	}
	return false;
}

static bool check_text(const struct mgmt_param *p, const json_t *v, char *why)
{
	const char *text = json_string_value(v);
	size_t n = json_string_length(v);

	if (!text) {
		snprintf(why, MGMT_WHY_MAX, "%s must be a text", p->name);
		return false;
	}
	if (p->type == MGMT_CHOICE) {
		if (is_choice(p->choices, text, n))
			return true;
		snprintf(why, MGMT_WHY_MAX, "%s must be one of %s", p->name, p->choices);
		return false;
	}
	if (p->type == MGMT_BASE64)
		return check_base64(p, text, n, why);
	if (!check_length(p, n, why))
		return false;
	if (p->type == MGMT_WORD && !is_word(text, n)) {
		snprintf(why, MGMT_WHY_MAX, "%s must be printable ASCII without blanks", p->name);
		return false;
	}
	return true;
}

static bool check_value(const struct mgmt_param *p, const json_t *v, char *why)
{
	struct spl_spot_ref ref;
	const char *reason;

	switch (p->type) {
	case MGMT_INT:
		return check_int(p, v, why);
	case MGMT_BOOL:
		if (json_is_boolean(v))
			return true;
		snprintf(why, MGMT_WHY_MAX, "%s must be true or false", p->name);
		return false;
	case MGMT_REF:
		if (spotref_from_json(v, &ref, &reason) == 0)
			return true;
		snprintf(why, MGMT_WHY_MAX, "%s: %s", p->name, reason);
		return false;
	case MGMT_TEXT:
	case MGMT_WORD:
	case MGMT_BASE64:
	case MGMT_CHOICE:
		return check_text(p, v, why);
	case MGMT_DECIMAL:
	case MGMT_ROWS:
	case MGMT_REAL:
		break;
	}
	snprintf(why, MGMT_WHY_MAX, "%s cannot be a parameter", p->name);
	return false;
}

static bool check_known(const struct mgmt_method *m, const json_t *params, char *why)
{
	void *it = json_object_iter((json_t *)(uintptr_t)params);

	for (; it; it = json_object_iter_next((json_t *)(uintptr_t)params, it)) {
		const char *key = json_object_iter_key(it);
		bool known = strlen(key) == json_object_iter_key_len(it);
		size_t i = 0;

		while (i < m->n_params && strcmp(m->params[i].name, key) != 0)
			i++;
		if (!known || i == m->n_params) {
			snprintf(why, MGMT_WHY_MAX, "%s has no parameter \"%.64s\"", m->name, key);
			return false;
		}
	}
	return true;
}

bool mgmt_check_params(const struct mgmt_method *m, const json_t *params, char why[MGMT_WHY_MAX])
{
	unsigned one_of = 0, at_most = 0;
	bool wants_one = false;

	if (params && !check_known(m, params, why))
		return false;
	for (size_t i = 0; i < m->n_params; i++) {
		const struct mgmt_param *p = &m->params[i];
		const json_t *v = json_object_get(params, p->name);

		wants_one |= p->need == MGMT_ONE_OF;
		if (!v && p->need == MGMT_REQUIRED) {
			snprintf(why, MGMT_WHY_MAX, "%s must be given", p->name);
			return false;
		}
		if (!v)
			continue;
		one_of += p->need == MGMT_ONE_OF;
		at_most += p->need == MGMT_AT_MOST_ONE;
		if (!check_value(p, v, why))
			return false;
	}
	if ((wants_one && one_of != 1) || at_most > 1) {
		size_t n = (size_t)snprintf(why, MGMT_WHY_MAX, "%s one of",
					    wants_one ? "exactly" : "at most");

		for (size_t i = 0; i < m->n_params && n < MGMT_WHY_MAX; i++)
			if (m->params[i].need == MGMT_ONE_OF ||
			    m->params[i].need == MGMT_AT_MOST_ONE)
				n += (size_t)snprintf(why + n, MGMT_WHY_MAX - n, " %s",
						      m->params[i].name);
		return false;
	}
	return true;
}
