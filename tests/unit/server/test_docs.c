/* SPDX-License-Identifier: BSD-3-Clause */
/* docs/management-protocol.md keeps to the method table: the reference is up to date, and each line
 * of its transcripts is a good request, greeting, error, or result with the method's members.
 * docs/counters.md is what the lists of include/spotlane/ say. */
#include "tests/lib/t_main.h"
#include "control/server/check.h"
#include "control/server/lists.h"
#include "control/server/reference.h"
#include "common/json_line.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

static struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];
static char *doc;

static int init(void)
{
	FILE *f = fopen(T_SOURCE_ROOT "/docs/management-protocol.md", "r");

	mgmt_methods_init(methods);
	doc = calloc(1, 1048576);
	if (!f || !doc || fread(doc, 1, 1048575, f) == 0)
		return -1;
	return fclose(f);
}

static int fini(void)
{
	free(doc);
	return 0;
}

/* `ninja generated` writes it anew. */
static void reference_is_up_to_date(void)
{
	char *text = NULL;
	const char *begin = strstr(doc, MGMT_REFERENCE_BEGIN);
	const char *end = strstr(doc, MGMT_REFERENCE_END);
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CU_ASSERT_FATAL(f && begin && end && begin < end);
	mgmt_reference_write(f);
	fclose(f);
	begin += strlen(MGMT_REFERENCE_BEGIN);
	CU_ASSERT_EQUAL((size_t)(end - begin), n);
	CU_ASSERT_EQUAL(strncmp(begin, text, n), 0);
	free(text);
}

static void lists_are_up_to_date(void)
{
	char *text = NULL, *page = calloc(1, 1048576);
	FILE *in = fopen(T_SOURCE_ROOT "/docs/counters.md", "r"), *out;
	size_t n;

	out = open_memstream(&text, &n);
	CU_ASSERT_FATAL(page && in && out);
	lists_write(out);
	fclose(out);
	CU_ASSERT_EQUAL(fread(page, 1, 1048575, in), n);
	CU_ASSERT_STRING_EQUAL(page, text);
	fclose(in);
	free(text);
	free(page);
}

static bool has_result(const struct mgmt_method *m, const char *name)
{
	for (size_t i = 0; i < m->n_results; i++)
		if (strcmp(m->results[i].name, name) == 0)
			return true;
	return false;
}

static void check_result(const struct mgmt_method *m, json_t *result)
{
	const char *key, *column;
	char path[128];
	json_t *v, *row, *cell;
	size_t i;

	json_object_foreach(result, key, v)
	{
		if (!has_result(m, key))
			printf("  %s has no result %s\n", m->name, key);
		CU_ASSERT(has_result(m, key));
		if (strcmp(key, "rows") == 0) /* their members are named by `columns` */
			continue;
		json_array_foreach(v, i, row)
		{
			json_object_foreach(row, column, cell)
			{
				snprintf(path, sizeof(path), "%s[].%s", key, column);
				CU_ASSERT(has_result(m, path));
				CU_ASSERT_PTR_NOT_NULL(cell);
			}
		}
	}
}

/* The method of a request line; good or not is the answer's to say. */
static const struct mgmt_method *check_question(const json_t *v, bool *good, json_t **id)
{
	struct mgmt_request r;
	const struct mgmt_method *m;
	char why[MGMT_WHY_MAX];

	CU_ASSERT_EQUAL_FATAL(mgmt_check_request(v, &r, why), 0);
	m = mgmt_find_method(methods, SPL_MGMT_METHOD_COUNT, r.method, why);
	*good = m && mgmt_check_params(m, r.params, why);
	*id = json_object_get(v, "id");
	return m;
}

static void check_answer(const struct mgmt_method *m, bool good, const json_t *id, json_t *v)
{
	json_t *error = json_object_get(v, "error"), *data = json_object_get(error, "data");
	const char *method = json_string_value(json_object_get(v, "method"));

	if (method) {
		CU_ASSERT_STRING_EQUAL(method, "hello");
		return;
	}
	CU_ASSERT(json_equal(id, json_object_get(v, "id")));
	if (error) {
		CU_ASSERT(json_is_integer(json_object_get(error, "code")));
		CU_ASSERT(json_is_string(json_object_get(data, "kind")));
		return;
	}
	CU_ASSERT(good);
	check_result(m, json_object_get(v, "result"));
}

static void transcripts_keep_to_the_table(void)
{
	char *copy = strdup(doc), *save = NULL, why[JSON_LINE_WHY_MAX];
	const struct mgmt_method *m = NULL;
	bool good = false;
	json_t *question = NULL, *id = NULL;
	unsigned questions = 0, answers = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *v;

		if (strncmp(line, "> {", 3) != 0 && strncmp(line, "< {", 3) != 0)
			continue;
		v = json_line_parse(line + 2, strlen(line + 2), SPL_MGMT_DEPTH_MAX, why);
		if (!v)
			printf("  %s: %s\n", line, why);
		CU_ASSERT_PTR_NOT_NULL_FATAL(v);
		if (line[0] == '>') {
			json_decref(question);
			question = v;
			m = check_question(v, &good, &id);
			questions++;
		} else {
			check_answer(m, good, id, v);
			json_decref(v);
			answers++;
		}
	}
	CU_ASSERT(questions >= 8);
	CU_ASSERT(answers > questions);
	json_decref(question);
	free(copy);
}

static const struct t_case cases[] = {
	T(reference_is_up_to_date),
	T(lists_are_up_to_date),
	T(transcripts_keep_to_the_table),
};

static const struct t_suite suites[] = {T_SUITE("mgmt_docs", init, fini, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
