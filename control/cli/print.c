/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables for people: see print.h. */
#include "control/cli/print.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 64

struct column {
	const char *name;
	bool is_number;
	size_t width;
};

void cli_print_escaped(FILE *f, const char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = utf8_sequence(text + i, len - i);
		unsigned char c = (unsigned char)text[i];

		if (n == 0 || (n == 1 && (c < 0x20 || c == 0x7f)))
			fprintf(f, "\\x%02x", c);
		else
			fwrite(text + i, 1, n, f);
		i += n ? n : 1;
	}
}

/* A value as it is shown; the caller frees it. NULL when there is no memory. */
static char *cell(const json_t *v)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (json_is_string(v))
		cli_print_escaped(f, json_string_value(v), json_string_length(v));
	else if (json_is_integer(v))
		fprintf(f, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		fprintf(f, "%.3f", json_real_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "true" : "false", f);
	else
		fputs("-", f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80; /* characters, not bytes */
	return n;
}

static void print_padded(FILE *f, const char *text, size_t width, bool right, bool last)
{
	size_t have = width_of(text);
	int pad = width > have ? (int)(width - have) : 0;

	if (right)
		fprintf(f, "%*s%s", pad, "", text);
	else
		fprintf(f, "%s%*s", text, last ? 0 : pad, "");
	fputs(last ? "\n" : "  ", f);
}

static void print_header(FILE *f, const struct column *c, size_t n)
{
	char name[64];

	for (size_t i = 0; i < n; i++) {
		size_t len = strnlen(c[i].name, sizeof(name) - 1);

		for (size_t k = 0; k < len; k++)
			name[k] = (char)toupper((unsigned char)c[i].name[k]);
		name[len] = '\0';
		print_padded(f, name, c[i].width, c[i].is_number, i + 1 == n);
	}
}

static bool print_table(FILE *f, struct column *c, size_t n, const json_t *rows)
{
	size_t i;
	const json_t *row;
	bool good = true;

	for (size_t k = 0; k < n; k++)
		c[k].width = width_of(c[k].name);
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; k < n; k++) {
			char *text = cell(json_object_get(row, c[k].name));

			good &= text != NULL;
			if (text && width_of(text) > c[k].width)
				c[k].width = width_of(text);
			free(text);
		}
	}
	print_header(f, c, n);
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; k < n; k++) {
			char *text = cell(json_object_get(row, c[k].name));

			good &= text != NULL;
			print_padded(f, text ? text : "?", c[k].width, c[k].is_number, k + 1 == n);
			free(text);
		}
	}
	return good;
}

/* Columns of the array `name` from the method table: "name[].column". */
static size_t table_columns(const struct mgmt_method *m, const char *name, struct column *c)
{
	size_t n = 0, len = strlen(name);

	for (size_t i = 0; i < m->n_results && n < COLUMNS_MAX; i++) {
		const struct mgmt_result *r = &m->results[i];

		if (strncmp(r->name, name, len) == 0 && strncmp(r->name + len, "[].", 3) == 0)
			c[n++] = (struct column){r->name + len + 3,
						 r->type == MGMT_INT || r->type == MGMT_DECIMAL, 0};
	}
	return n;
}

/* Columns that the answer itself names. */
static size_t answer_columns(const json_t *columns, struct column *c)
{
	size_t n = 0, i;
	const json_t *v;

	json_array_foreach(columns, i, v)
	{
		const char *name = json_string_value(json_object_get(v, "name"));
		const char *type = json_string_value(json_object_get(v, "type"));

		if (name && n < COLUMNS_MAX)
			c[n++] = (struct column){name, type && strcmp(type, "int") == 0, 0};
	}
	return n;
}

static bool print_pair(FILE *f, const char *name, int width, const json_t *v)
{
	char *text = cell(v);
	bool good = text != NULL;

	fprintf(f, "%-*s  %s\n", width, name, text ? text : "?");
	free(text);
	return good;
}

static const char *const ref_names[] = {"spotId", "objectGeneration", "meshName", "nodeRid"};

static bool is_single(const struct mgmt_result *r)
{
	return r->type != MGMT_ROWS && !strchr(r->name, '[');
}

static int name_width(const struct mgmt_method *m, const json_t *result)
{
	size_t width = 0;

	for (size_t i = 0; i < m->n_results; i++) {
		const struct mgmt_result *r = &m->results[i];
		size_t n = r->type == MGMT_REF ? strlen("objectGeneration") : strlen(r->name);

		if (is_single(r) && json_object_get(result, r->name) && n > width)
			width = n;
	}
	return (int)width;
}

static bool print_single(FILE *f, const struct mgmt_method *m, const json_t *result)
{
	int width = name_width(m, result);
	bool good = true;

	for (size_t i = 0; i < m->n_results; i++) {
		const struct mgmt_result *r = &m->results[i];
		const json_t *v = json_object_get(result, r->name);

		if (!v || !is_single(r))
			continue;
		if (!json_is_object(v)) {
			good &= print_pair(f, r->name, width, v);
			continue;
		}
		for (size_t k = 0; k < sizeof(ref_names) / sizeof(ref_names[0]); k++)
			good &= print_pair(f, ref_names[k], width,
					   json_object_get(v, ref_names[k]));
	}
	return good;
}

static bool has_rows(const struct mgmt_method *m)
{
	for (size_t i = 0; i < m->n_results; i++)
		if (m->results[i].type == MGMT_ROWS)
			return true;
	return false;
}

static void print_word(FILE *f, const json_t *row, const char *name)
{
	const json_t *v = json_object_get(row, name);

	if (v)
		cli_print_escaped(f, json_string_value(v), json_string_length(v));
}

void cli_print_samples(FILE *f, const json_t *samples)
{
	const json_t *row;
	size_t i;

	json_array_foreach(samples, i, row)
	{
		const char *labels = json_string_value(json_object_get(row, "labels"));

		print_word(f, row, "name");
		fputs(labels && *labels ? "{" : "", f);
		print_word(f, row, "labels");
		fprintf(f, "%s %lld", labels && *labels ? "}" : "",
			(long long)json_integer_value(json_object_get(row, "value")));
		if (json_object_get(row, "sum")) {
			fprintf(f, " sum=%.6f ", json_real_value(json_object_get(row, "sum")));
			print_word(f, row, "buckets");
		}
		fputc('\n', f);
	}
}

bool cli_print_lines(FILE *f, const json_t *rows)
{
	const char *name, *between = "";
	bool good = true;
	json_t *row, *v;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		json_object_foreach(row, name, v)
		{
			char *text = cell(v);

			good &= text != NULL;
			fprintf(f, "%s%s=%s", between, name, text ? text : "?");
			free(text);
			between = " ";
		}
		fputc('\n', f);
		between = "";
	}
	return good;
}

bool cli_print_result(FILE *f, const struct mgmt_method *m, const json_t *result)
{
	struct column c[COLUMNS_MAX];
	const json_t *own = json_object_get(result, "columns");
	bool good = true;

	if (!has_rows(m))
		return print_single(f, m, result);
	if (json_is_array(own))
		return print_table(f, c, answer_columns(own, c), json_object_get(result, "rows"));
	for (size_t i = 0; i < m->n_results; i++)
		if (m->results[i].type == MGMT_ROWS)
			good &= print_table(f, c, table_columns(m, m->results[i].name, c),
					    json_object_get(result, m->results[i].name));
	return good;
}
