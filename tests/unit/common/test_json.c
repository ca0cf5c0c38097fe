/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict JSON lines, base64, and the JSON form of a SpotRef. */
#include "tests/lib/t_main.h"
#include "common/base64.h"
#include "common/json_line.h"
#include "common/spotref_json.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void line_is(const char *text, size_t len, const char *why_part)
{
	char why[JSON_LINE_WHY_MAX] = "";
	json_t *v = json_line_parse(text, len, 4, why);

	if (!why_part) {
		if (!v)
			printf("  %s: %s\n", text, why);
		CU_ASSERT_PTR_NOT_NULL(v);
	} else {
		if (v || !strstr(why, why_part))
			printf("  %s: \"%s\"\n", text, why);
		CU_ASSERT_PTR_NULL(v);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, why_part));
	}
	json_decref(v);
}

#define LINE_IS(text, why) line_is(text, sizeof(text) - 1, why)

static void bad_json_is_refused(void)
{
	LINE_IS("{\"a\":[1,{\"b\":\"[[[[[[{{{{\"}]}", NULL);
	LINE_IS("[[[[1]]]]", NULL);
	LINE_IS("[[[[[1]]]]]", "nested 5 levels deep (max 4)");
	LINE_IS("{\"a\":1,\"a\":2}", "duplicate object key");
	LINE_IS("{} {}", "end of file expected");
	LINE_IS("{\"a\":\"\xc3\x28\"}", "unable to decode byte");
	LINE_IS("{\"a\":\"\xed\xa0\x80\"}", "unable to decode byte");
	LINE_IS("{\"a\":\"\\ud800\"}", "invalid Unicode");
	LINE_IS("{\"a\":\"b\0c\"}", "NUL byte");
	LINE_IS("{\"a\":\"b\nc\"}", "unexpected newline");
	LINE_IS("{\"a\":1\0}", "NUL byte");
	LINE_IS("{\"a\":9223372036854775808}", "too big integer");
	LINE_IS("{\"a\":1e999}", "overflow");
	LINE_IS("{\"a\":01}", "at byte");
	LINE_IS("7", "'[' or '{' expected");
	LINE_IS("", "'[' or '{' expected");
	LINE_IS("{", "at byte");
}

static void deep_input_does_not_recurse(void)
{
	size_t n = 1000000;
	char *deep = malloc(n), why[JSON_LINE_WHY_MAX];

	CU_ASSERT_PTR_NOT_NULL_FATAL(deep);
	memset(deep, '[', n);
	CU_ASSERT_EQUAL(json_line_depth(deep, n), n);
	CU_ASSERT_PTR_NULL(json_line_parse(deep, n, 32, why));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "nested 1000000 levels"));
	free(deep);
	CU_ASSERT_EQUAL(json_line_depth("\"\\\"[[[\"[", 8), 1);
}

static void base64_round_trip(void)
{
	struct t_rand r = {t_seed()};
	uint8_t in[64], out[64];
	char text[96];

	for (int round = 0; round < 2000; round++) {
		size_t n = t_rand_below(&r, sizeof(in) + 1);

		for (size_t i = 0; i < n; i++)
			in[i] = (uint8_t)t_rand_u64(&r);
		base64_encode(in, n, text);
		CU_ASSERT_EQUAL_FATAL(strlen(text), base64_encoded_len(n));
		CU_ASSERT_EQUAL_FATAL(base64_decoded_len(text, strlen(text)), (ssize_t)n);
		CU_ASSERT_EQUAL_FATAL(base64_decode(text, strlen(text), out), 0);
		CU_ASSERT_EQUAL_FATAL(memcmp(in, out, n), 0);
	}
	base64_encode("foobar", 5, text);
	CU_ASSERT_STRING_EQUAL(text, "Zm9vYmE=");
	base64_encode("foobar", 4, text);
	CU_ASSERT_STRING_EQUAL(text, "Zm9vYg==");
}

static void base64_is_strict(void)
{
	static const char *const bad[] = {"Zg=",  "Zg",	    "Z===", "====", "Zh==",    "Zm9=",
					  "Zm 9", "Zm9v\n", "Zm9-", "=m9v", "Zg==Zg=="};
	uint8_t out[16];

	for (size_t i = 0; i < T_COUNT(bad); i++)
		CU_ASSERT_EQUAL(base64_decode(bad[i], strlen(bad[i]), out), -EINVAL);
	CU_ASSERT_EQUAL(base64_decode("", 0, out), 0);
}

#define REF(id, gen, mesh, rid) \
	"{\"spotId\":" id ",\"objectGeneration\":" gen ",\"meshName\":" mesh ",\"nodeRid\":" rid "}"

static const char golden[] = "{\"spotId\":\"room-1\",\"objectGeneration\":\"9223372036854775807\","
			     "\"meshName\":\"default\",\"nodeRid\":\"node-7\"}";

static void golden_ref_is_accepted(void)
{
	struct spl_spot_ref ref;
	const char *why = "";
	json_t *back;
	char *text;

	CU_ASSERT_EQUAL_FATAL(spotref_parse(golden, strlen(golden), &ref, &why), 0);
	CU_ASSERT_EQUAL(ref.object_generation, INT64_MAX);
	CU_ASSERT_EQUAL(ref.spot_id.len, 6);
	CU_ASSERT_EQUAL(memcmp(ref.spot_id.b, "room-1", 6), 0);
	CU_ASSERT_EQUAL(memcmp(ref.node_rid.b, "node-7", 6), 0);
	back = spotref_to_json(&ref);
	text = json_line_text(back);
	CU_ASSERT_STRING_EQUAL(text, golden);
	free(text);
	json_decref(back);
}

static void ref_ids_keep_every_byte(void)
{
	struct spl_spot_ref ref, again;
	const char *why = "";
	json_t *v;
	char *text;

	CU_ASSERT_EQUAL(spl_name_set(&ref.spot_id, "a\0\"\\\n\xc3\xa9", 7), 0);
	CU_ASSERT_EQUAL(spl_name_set(&ref.mesh_name, "m", 1), 0);
	CU_ASSERT_EQUAL(spl_name_set(&ref.node_rid, "r", 1), 0);
	ref.object_generation = 1;
	v = spotref_to_json(&ref);
	text = json_line_text(v);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_EQUAL(spotref_parse(text, strlen(text), &again, &why), 0);
	CU_ASSERT_EQUAL(again.spot_id.len, 7);
	CU_ASSERT_EQUAL(memcmp(again.spot_id.b, ref.spot_id.b, 7), 0);
	free(text);
	json_decref(v);
}

static void other_refs_are_rejected(void)
{
	static const char *const bad[] = {
		"{\"objectGeneration\":\"1\",\"meshName\":\"m\",\"nodeRid\":\"n\"}",
		"{\"spotId\":\"a\",\"meshName\":\"m\",\"nodeRid\":\"n\"}",
		"{\"spotId\":\"a\",\"objectGeneration\":\"1\",\"nodeRid\":\"n\"}",
		"{\"spotId\":\"a\",\"objectGeneration\":\"1\",\"meshName\":\"m\"}",
		"{\"spotId\":\"a\",\"spotId\":\"a\",\"objectGeneration\":\"1\",\"meshName\":\"m\","
		"\"nodeRid\":\"n\"}",
		"{\"spotId\":\"a\",\"objectGeneration\":\"1\",\"meshName\":\"m\",\"nodeRid\":\"n\","
		"\"x\":1}",
		"{\"SpotId\":\"a\",\"objectGeneration\":\"1\",\"meshName\":\"m\",\"nodeRid\":"
		"\"n\"}",
		REF("null", "\"1\"", "\"m\"", "\"n\""),
		REF("\"a\"", "null", "\"m\"", "\"n\""),
		REF("\"a\"", "\"1\"", "null", "\"n\""),
		REF("\"a\"", "\"1\"", "\"m\"", "null"),
		REF("\"\"", "\"1\"", "\"m\"", "\"n\""),
		REF("\"a\"", "1", "\"m\"", "\"n\""),
		REF("\"a\"", "\"0\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"01\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"+1\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"-1\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"1e3\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"1.0\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\" 1\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"9223372036854775808\"", "\"m\"", "\"n\""),
		REF("\"a\"", "\"99999999999999999999\"", "\"m\"", "\"n\""),
		"[]",
	};

	for (size_t i = 0; i < T_COUNT(bad); i++) {
		struct spl_spot_ref ref = {.object_generation = 42};
		const char *why = NULL;

		if (spotref_parse(bad[i], strlen(bad[i]), &ref, &why) != -EINVAL)
			printf("  accepted: %s\n", bad[i]);
		CU_ASSERT_PTR_NOT_NULL(why);
		CU_ASSERT_EQUAL(ref.object_generation, 42);
	}
}

static const struct t_case cases[] = {
	T(bad_json_is_refused),
	T(deep_input_does_not_recurse),
	T(base64_round_trip),
	T(base64_is_strict),
	T(golden_ref_is_accepted, "S-REF-2"),
	T(ref_ids_keep_every_byte, "S-REF-1", "S-REF-2"),
	T(other_refs_are_rejected, "S-REF-2"),
};

static const struct t_suite suites[] = {T_SUITE("json", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
