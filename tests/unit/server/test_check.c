/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and parameters, driven by the method table: a new method or parameter is covered at
 * once. Pure. */
#include "tests/lib/t_main.h"
#include "control/server/check.h"
#include "control/server/config_show.h"
#include "common/json_line.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

static struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];

static int init(void)
{
	mgmt_methods_init(methods);
	return 0;
}

static json_t *parsed(const char *text)
{
	char why[JSON_LINE_WHY_MAX];
	json_t *v = json_line_parse(text, strlen(text), 32, why);

	if (!v)
		printf("  %s: %s\n", text, why);
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	return v;
}

static void request_is(const char *text, int code, const char *why_part)
{
	json_t *v = parsed(text);
	struct mgmt_request r;
	char why[MGMT_WHY_MAX] = "";
	int got = mgmt_check_request(v, &r, why);

	if (got != code || !strstr(why, why_part))
		printf("  %s: %d \"%s\"\n", text, got, why);
	CU_ASSERT_EQUAL(got, code);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, why_part));
	json_decref(v);
}

static void requests_are_checked(void)
{
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", 0, "");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"a\",\"params\":{}}", 0, "");
	request_is("[]", SPL_MGMT_E_REQUEST, "batches");
	request_is("{\"id\":1,\"method\":\"a\"}", SPL_MGMT_E_REQUEST, "jsonrpc");
	request_is("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", SPL_MGMT_E_REQUEST,
		   "jsonrpc");
	request_is("{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", SPL_MGMT_E_REQUEST, "jsonrpc");
	request_is("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", SPL_MGMT_E_REQUEST, "id must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", SPL_MGMT_E_REQUEST,
		   "id must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", SPL_MGMT_E_REQUEST,
		   "id must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}", SPL_MGMT_E_REQUEST,
		   "id must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1}", SPL_MGMT_E_REQUEST, "method must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", SPL_MGMT_E_REQUEST,
		   "method must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}", SPL_MGMT_E_REQUEST,
		   "method must be");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"x\":1}", SPL_MGMT_E_REQUEST,
		   "are known");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[]}",
		   SPL_MGMT_E_PARAMS, "by name");
	request_is("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":null}",
		   SPL_MGMT_E_PARAMS, "by name");
}

static void request_ids_have_a_length(void)
{
	char id[80], text[200];

	for (size_t n = SPL_MGMT_ID_MAX - 1; n <= SPL_MGMT_ID_MAX + 1; n++) {
		memset(id, 'i', n);
		id[n] = '\0';
		snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"a\"}",
			 id);
		request_is(text, n > SPL_MGMT_ID_MAX ? SPL_MGMT_E_REQUEST : 0, "");
	}
}

/* Each method's rows stand together in the lists, so that every one is found. */
static void table_is_whole(void)
{
	size_t params = 0, results = 0, want_params = 0, want_results = 0;

#define ONE_PARAM(...)	want_params++;
#define ONE_RESULT(...) want_results++;
	SPL_MGMT_PARAMS(ONE_PARAM)
	SPL_MGMT_RESULTS(ONE_RESULT)
	for (size_t i = 0; i < SPL_MGMT_METHOD_COUNT; i++) {
		const struct mgmt_method *m = &methods[i];

		for (size_t j = 0; j < m->n_params; j++)
			for (size_t k = 0; k < j; k++)
				CU_ASSERT_STRING_NOT_EQUAL(m->params[j].name, m->params[k].name);
		for (size_t j = 0; j < m->n_results; j++)
			for (size_t k = 0; k < j; k++)
				CU_ASSERT_STRING_NOT_EQUAL(m->results[j].name, m->results[k].name);
		params += m->n_params;
		results += m->n_results;
	}
	CU_ASSERT_EQUAL(params, want_params);
	CU_ASSERT_EQUAL(results, want_results);
	CU_ASSERT(methods[SPL_MGMT_SPOT_LIST].read_only);
	CU_ASSERT_FALSE(methods[SPL_MGMT_SPOT_CLOSE].read_only);
	CU_ASSERT_EQUAL(methods[SPL_MGMT_SPOT_CLOSE].n_params, 1);
}

static json_t *text_of(size_t n)
{
	char *text = malloc(n + 1);
	json_t *v;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, 'A', n);
	text[n] = '\0';
	v = json_string(text);
	free(text);
	return v;
}

static json_t *good_value(const struct mgmt_param *p)
{
	switch (p->type) {
	case MGMT_TEXT:
	case MGMT_WORD:
		return text_of((size_t)p->max);
	case MGMT_BASE64: /* 1 MiB and 2 characters of padding: 1 048 576 = 3 * 349525 + 1 */
		return text_of(0);
	case MGMT_INT:
		return json_integer(p->max);
	case MGMT_CHOICE:
		return json_stringn(p->choices, strcspn(p->choices, "|"));
	case MGMT_REF:
		return json_pack("{s:s, s:s, s:s, s:s}", "spotId", "a", "objectGeneration", "1",
				 "meshName", "m", "nodeRid", "n");
	case MGMT_BOOL:
		return json_true();
	case MGMT_DECIMAL:
	case MGMT_ROWS:
	case MGMT_REAL:
		break;
	}
	return NULL;
}

/* Parameters of `m` that are good: all required ones, the first of ONE_OF, and `with`. */
static json_t *good_params(const struct mgmt_method *m, const struct mgmt_param *with)
{
	json_t *o = json_object();
	bool has_one = with && with->need == MGMT_ONE_OF;

	for (size_t i = 0; i < m->n_params; i++) {
		const struct mgmt_param *p = &m->params[i];

		if (p == with || p->need == MGMT_REQUIRED || (p->need == MGMT_ONE_OF && !has_one))
			json_object_set_new(o, p->name, good_value(p));
		has_one |= p->need == MGMT_ONE_OF;
	}
	return o;
}

static void params_are(const struct mgmt_method *m, json_t *o, const char *why_part)
{
	char why[MGMT_WHY_MAX] = "";
	bool good = mgmt_check_params(m, o, why);

	if (good != !why_part || (why_part && !strstr(why, why_part)))
		printf("  %s: \"%s\", expected \"%s\"\n", m->name, why,
		       why_part ? why_part : "good");
	CU_ASSERT_EQUAL(good, !why_part);
	CU_ASSERT(!why_part || strstr(why, why_part));
	json_decref(o);
}

static void with_value(const struct mgmt_method *m, const struct mgmt_param *p, json_t *v,
		       const char *why_part)
{
	json_t *o = good_params(m, p);

	json_object_set_new(o, p->name, v);
	params_are(m, o, why_part);
}

static void wrong_types(const struct mgmt_method *m, const struct mgmt_param *p)
{
	with_value(m, p, json_null(), p->name);
	with_value(m, p, json_array(), p->name);
	with_value(m, p, json_real(1.5), p->name);
	if (p->type != MGMT_BOOL)
		with_value(m, p, json_true(), p->name);
	if (p->type != MGMT_INT)
		with_value(m, p, json_integer(1), p->name);
	else
		with_value(m, p, json_string("1"), "must be an integer");
	if (p->type != MGMT_REF)
		with_value(m, p, json_object(), p->name);
}

static void bounds(const struct mgmt_method *m, const struct mgmt_param *p)
{
	if (p->type == MGMT_TEXT || p->type == MGMT_WORD) {
		with_value(m, p, text_of((size_t)p->max + 1), "too long");
		if (p->min > 0)
			with_value(m, p, text_of((size_t)p->min - 1), "must not be empty");
	} else if (p->type == MGMT_INT) {
		with_value(m, p, json_integer(p->max + 1), "out of range");
		with_value(m, p, json_integer(p->min - 1), "out of range");
		with_value(m, p, json_integer(INT64_MIN), "out of range");
		with_value(m, p, json_integer(4294967297), "out of range");
	} else if (p->type == MGMT_CHOICE) {
		with_value(m, p, json_string(p->choices), "must be one of");
		with_value(m, p, json_string(""), "must be one of");
	} else if (p->type == MGMT_BASE64) {
		json_t *o = text_of(((size_t)p->max + 2) / 3 * 4);

		with_value(m, p, o, "too long: 1048578 bytes (max 1048576)");
		with_value(m, p, json_string("AAA"), "not base64");
		with_value(m, p, json_string("AAA\n"), "not base64");
	}
}

static void every_parameter_is_checked(void)
{
	for (size_t i = 0; i < SPL_MGMT_METHOD_COUNT; i++) {
		const struct mgmt_method *m = &methods[i];
		json_t *o = good_params(m, NULL);

		params_are(m, json_incref(o), NULL);
		json_object_set_new(o, "surplus", json_integer(1));
		params_are(m, o, "no parameter \"surplus\"");
		for (size_t j = 0; j < m->n_params; j++) {
			const struct mgmt_param *p = &m->params[j];

			with_value(m, p, good_value(p), NULL);
			wrong_types(m, p);
			bounds(m, p);
			if (p->need != MGMT_REQUIRED)
				continue;
			o = good_params(m, NULL);
			json_object_del(o, p->name);
			params_are(m, o, "must be given");
		}
	}
}

static void exclusive_parameters(void)
{
	const struct mgmt_method *reclaim = &methods[SPL_MGMT_SPOT_RECLAIM];
	const struct mgmt_method *send = &methods[SPL_MGMT_SPOT_SEND];

	params_are(reclaim, json_object(), "exactly one of id node");
	params_are(reclaim, json_pack("{s:s, s:s}", "id", "a", "node", "b"),
		   "exactly one of id node");
	params_are(reclaim, json_pack("{s:s}", "node", "b"), NULL);
	params_are(send,
		   json_pack("{s:s, s:s, s:s, s:s}", "id", "a", "packet", "p", "payload", "",
			     "payload_base64", ""),
		   "at most one of payload payload_base64");
	params_are(send, json_pack("{s:s, s:s}", "id", "a", "packet", "p"), NULL);
	params_are(&methods[SPL_MGMT_SPOT_LIST], json_pack("{s:s}", "token", "a b"), "ASCII");
	params_are(
		&methods[SPL_MGMT_SPOT_CLOSE],
		parsed("{\"ref\":{\"spotId\":\"a\",\"objectGeneration\":\"01\",\"meshName\":\"m\","
		       "\"nodeRid\":\"n\"}}"),
		"ref: objectGeneration");
}

static void bytes_of_parameters(void)
{
	json_t *o = parsed("{\"payload\":\"a\\u0000b\"}");
	void *bytes;
	size_t n;
	struct spl_name name;

	CU_ASSERT_EQUAL_FATAL(mgmt_param_bytes(o, "payload", &bytes, &n), 0);
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_EQUAL(memcmp(bytes, "a\0b", 3), 0);
	free(bytes);
	CU_ASSERT_EQUAL(mgmt_param_name(o, "payload", &name), 0);
	CU_ASSERT_EQUAL(name.len, 3);
	CU_ASSERT_EQUAL(mgmt_param_name(o, "id", &name), -ENOENT);
	json_decref(o);
	o = parsed("{\"payload_base64\":\"AP8=\"}");
	CU_ASSERT_EQUAL_FATAL(mgmt_param_bytes(o, "payload", &bytes, &n), 0);
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\xff", 2), 0);
	free(bytes);
	CU_ASSERT_EQUAL_FATAL(mgmt_param_bytes(o, "request", &bytes, &n), 0);
	CU_ASSERT_EQUAL(n, 0);
	free(bytes);
	CU_ASSERT_EQUAL(mgmt_result_bytes(o, "reply", "\xff", 1), 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(o, "reply_base64")), "/w==");
	CU_ASSERT_EQUAL(mgmt_result_bytes(o, "other", "h\xc3\xa9", 3), 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(o, "other")), "h\xc3\xa9");
	CU_ASSERT_EQUAL(mgmt_result_bytes(o, "none", NULL, 0), 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(o, "none")), "");
	json_decref(o);
}

static void config_show_has_every_option(void)
{
	static const char text[] =
		"security = \"none\";\nports: ( { name = \"p0\"; device = "
		"\"net_null0\"; ip = \"10.0.0.1\"; } );\nnode: { mesh = \"m\"; };\n";
	struct conf_report rep;
	struct config *cfg = conf_load_text("t.cfg", text, sizeof(text) - 1, NULL, &rep);
	json_t *shown, *rows;
	size_t i;
	json_t *row;
	unsigned seen = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	shown = mgmt_config_show(cfg, "debug");
	CU_ASSERT_PTR_NOT_NULL_FATAL(shown);
	rows = json_object_get(shown, "options");
	CU_ASSERT_EQUAL(json_array_size(rows), cfg->n_shown);
	json_array_foreach(rows, i, row)
	{
		const char *path = json_string_value(json_object_get(row, "path"));
		const char *value = json_string_value(json_object_get(row, "value"));
		const char *origin = json_string_value(json_object_get(row, "origin"));

		CU_ASSERT_EQUAL(json_object_size(row), 4);
		if (strcmp(path, "node.mesh") == 0) {
			CU_ASSERT_STRING_EQUAL(value, "\"m\"");
			CU_ASSERT_STRING_EQUAL(origin, "t.cfg:3");
			seen++;
		} else if (strcmp(path, "log.level") == 0) {
			CU_ASSERT_STRING_EQUAL(value, "\"debug\"");
			CU_ASSERT_STRING_EQUAL(origin, "log.set_level");
			seen++;
		} else if (strcmp(path, "ports[0].mtu") == 0) {
			CU_ASSERT_STRING_EQUAL(value, "1500");
			CU_ASSERT_STRING_EQUAL(origin, "default");
			seen++;
		}
	}
	CU_ASSERT_EQUAL(seen, 3);
	json_decref(shown);
	CU_ASSERT_STRING_EQUAL(mgmt_options_of(cfg).path, "/run/spotlane/control.sock");
	CU_ASSERT_EQUAL(mgmt_options_of(cfg).line_max, 2097152);
	CU_ASSERT_EQUAL(mgmt_options_of(cfg).output_max, 8388608);
	CU_ASSERT_EQUAL(mgmt_options_of(cfg).clients_max, 64);
	CU_ASSERT_EQUAL(mgmt_options_of(cfg).input_timeout_ms, 10000);
	conf_free(cfg);
	conf_report_free(&rep);
}

static const struct t_case cases[] = {
	T(requests_are_checked),
	T(request_ids_have_a_length),
	T(table_is_whole),
	T(every_parameter_is_checked, "S-ID-3", "S-REF-2", "A-LOC-11"),
	T(exclusive_parameters),
	T(bytes_of_parameters),
	T(config_show_has_every_option),
};

static const struct t_suite suites[] = {T_SUITE("mgmt_check", init, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
