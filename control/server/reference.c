/* SPDX-License-Identifier: BSD-3-Clause */
/* The method reference: see reference.h. Pure but for the stream. */
#include "control/server/reference.h"
#include "control/server/methods.h"

static const char *const need_words[] = {
	[MGMT_REQUIRED] = "required",
	[MGMT_OPTIONAL] = "optional",
	[MGMT_ONE_OF] = "exactly one of these",
	[MGMT_AT_MOST_ONE] = "at most one of these",
};

static void write_type(FILE *f, const struct mgmt_param *p)
{
	switch (p->type) {
	case MGMT_INT:
		fprintf(f, "integer %lld..%lld", (long long)p->min, (long long)p->max);
		break;
	case MGMT_TEXT:
		fprintf(f, "text of %lld..%lld bytes", (long long)p->min, (long long)p->max);
		break;
	case MGMT_WORD:
		fprintf(f, "text of %lld..%lld ASCII characters", (long long)p->min,
			(long long)p->max);
		break;
	case MGMT_BASE64:
		fprintf(f, "base64 of %lld..%lld bytes", (long long)p->min, (long long)p->max);
		break;
	case MGMT_CHOICE:
		for (const char *c = p->choices; *c; c++)
			fputs(*c == '|' ? " or " : (char[2]){*c, '\0'}, f);
		break;
	case MGMT_REF:
		fputs("SpotRef", f);
		break;
	case MGMT_BOOL:
		fputs("true or false", f);
		break;
	case MGMT_DECIMAL:
	case MGMT_ROWS:
	case MGMT_REAL:
		break;
	}
}

static const char *result_words(enum mgmt_type type)
{
	static const char *const words[] = {
		[MGMT_TEXT] = "text",	[MGMT_WORD] = "text",	 [MGMT_BASE64] = "base64",
		[MGMT_INT] = "integer", [MGMT_BOOL] = "boolean", [MGMT_CHOICE] = "text",
		[MGMT_REF] = "SpotRef", [MGMT_ROWS] = "array",	 [MGMT_DECIMAL] = "decimal text",
		[MGMT_REAL] = "number",
	};

	return words[type];
}

static void write_method(FILE *f, const struct mgmt_method *m)
{
	fprintf(f, "\n### %s\n\n%s. Access: %s.\n", m->name, m->help,
		m->read_only ? "show" : "full");
	if (m->n_params > 0)
		fputs("\n| parameter | value | | meaning |\n|---|---|---|---|\n", f);
	for (size_t i = 0; i < m->n_params; i++) {
		const struct mgmt_param *p = &m->params[i];

		fprintf(f, "| `%s` | ", p->name);
		write_type(f, p);
		fprintf(f, " | %s | %s |\n", need_words[p->need], p->help);
	}
	fputs("\n| result | value | meaning |\n|---|---|---|\n", f);
	for (size_t i = 0; i < m->n_results; i++)
		fprintf(f, "| `%s` | %s | %s |\n", m->results[i].name,
			result_words(m->results[i].type), m->results[i].help);
}

void mgmt_reference_write(FILE *f)
{
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];

	mgmt_methods_init(methods);
	for (size_t i = 0; i < SPL_MGMT_METHOD_COUNT; i++)
		write_method(f, &methods[i]);
}
