/* SPDX-License-Identifier: BSD-3-Clause */
/* The command table and the texts made from it: see commands.h. Pure but for the stream. */
#include "control/cli/commands.h"

#include <ctype.h>
#include <string.h>

#define ROW(object, verb, method, args, run, help) \
	{object, verb, SPL_MGMT_##method, args, CLI_##run, help},
const struct cli_command cli_commands[] = {CLI_COMMANDS(ROW)};
const size_t cli_n_commands = sizeof(cli_commands) / sizeof(cli_commands[0]);

static const struct {
	char letter;
	const char *value, *help;
} options[] = {
#define OPTION(letter, value, help) {letter, value, help},
	CLI_OPTIONS(OPTION)};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

const struct cli_command *cli_find(const char *object, const char *verb)
{
	for (size_t i = 0; i < cli_n_commands; i++)
		if (strcmp(cli_commands[i].object, object) == 0 &&
		    strcmp(cli_commands[i].verb, verb) == 0)
			return &cli_commands[i];
	return NULL;
}

static bool same_name(const char *param, const char *name, size_t len)
{
	if (strlen(param) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (param[i] != name[i] && !(param[i] == '_' && name[i] == '-'))
			return false;
	return true;
}

const struct mgmt_param *cli_param(const struct mgmt_method *m, const char *name, size_t len)
{
	for (size_t i = 0; i < m->n_params; i++)
		if (same_name(m->params[i].name, name, len))
			return &m->params[i];
	return NULL;
}

const struct mgmt_param *cli_arg(const struct cli_command *c, const struct mgmt_method *m, size_t i)
{
	const char *at = c->args;

	for (; *at; i--) {
		size_t n = strcspn(at, " ");

		if (i == 0)
			return cli_param(m, at, n);
		at += at[n] ? n + 1 : n;
	}
	return NULL;
}

static bool is_by_place(const struct cli_command *c, const struct mgmt_method *m,
			const struct mgmt_param *p)
{
	for (size_t i = 0; cli_arg(c, m, i); i++)
		if (cli_arg(c, m, i) == p)
			return true;
	return false;
}

static void write_upper(FILE *f, const char *name)
{
	for (; *name; name++)
		fputc(toupper((unsigned char)*name), f);
}

static void write_option(FILE *f, const char *name)
{
	fputs("--", f);
	for (; *name; name++)
		fputc(*name == '_' ? '-' : *name, f);
}

static void write_value(FILE *f, const struct mgmt_param *p)
{
	if (p->choices)
		fputs(p->choices, f);
	else
		write_upper(f, p->name);
}

/* Options that spotctl itself adds. */
static const char *extra_option(const struct cli_command *c)
{
	return c->run == CLI_LIST			     ? "--all"
	       : c->run == CLI_SHUTDOWN			     ? "--no-wait"
	       : c->run == CLI_TRACE || c->run == CLI_STATUS ? "--follow"
							     : NULL;
}

static const char *extra_help(const struct cli_command *c)
{
	if (c->run == CLI_TRACE || c->run == CLI_STATUS)
		return "go on with what comes";
	return c->run == CLI_LIST ? "every page, one after the other"
				  : "only ask; do not wait until the daemon is gone";
}

/* What the method's help cannot say, because spotctl takes more than the method does. */
static const char *argument_help(const struct cli_command *c, const struct mgmt_param *p)
{
	return c->run == CLI_CLOSE ? "Spot id, or a SpotRef in JSON" : p->help;
}

void cli_usage_write(FILE *f, const struct cli_command *c, const struct mgmt_method *m)
{
	fprintf(f, "%s %s", c->object, c->verb);
	if (c->run == CLI_CHECK)
		fputs(" FILE", f);
	for (size_t i = 0; cli_arg(c, m, i); i++) {
		const struct mgmt_param *p = cli_arg(c, m, i);

		fputs(p->need == MGMT_REQUIRED ? " " : " [", f);
		write_value(f, p);
		fputs(p->need == MGMT_REQUIRED ? "" : "]", f);
	}
	for (size_t i = 0; c->run != CLI_CHECK && i < m->n_params; i++) {
		if (is_by_place(c, m, &m->params[i]))
			continue;
		fputs(" [", f);
		write_option(f, m->params[i].name);
		fputc(' ', f);
		write_value(f, &m->params[i]);
		fputc(']', f);
	}
	if (extra_option(c))
		fprintf(f, " [%s]", extra_option(c));
}

static void write_params(FILE *f, const struct cli_command *c, const struct mgmt_method *m)
{
	for (size_t i = 0; c->run != CLI_CHECK && i < m->n_params; i++) {
		const struct mgmt_param *p = &m->params[i];

		fputs("  ", f);
		if (is_by_place(c, m, p))
			write_upper(f, p->name);
		else
			write_option(f, p->name);
		fprintf(f, ": %s", argument_help(c, p));
		if (p->type == MGMT_INT)
			fprintf(f, " (%lld..%lld)", (long long)p->min, (long long)p->max);
		fputc('\n', f);
	}
	if (extra_option(c))
		fprintf(f, "  %s: %s\n", extra_option(c), extra_help(c));
}

void cli_help_write(FILE *f, const char *object, const char *verb)
{
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];

	mgmt_methods_init(methods);
	if (!object)
		fputs("usage: spotctl [options] OBJECT VERB [arguments]\n\n", f);
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *c = &cli_commands[i];
		const struct mgmt_method *m = &methods[c->method];

		if ((object && strcmp(c->object, object) != 0) ||
		    (verb && strcmp(c->verb, verb) != 0))
			continue;
		fputs("spotctl ", f);
		cli_usage_write(f, c, m);
		fprintf(f, "\n    %s\n", c->help);
		if (verb)
			write_params(f, c, m);
	}
	if (object)
		return;
	fputs("\noptions:\n", f);
	for (size_t i = 0; i < N_OPTIONS; i++)
		fprintf(f, "  -%c %-8s %s\n", options[i].letter,
			options[i].value ? options[i].value : "", options[i].help);
	fputs("\nexit status: 0 ok, 1 refused or failed, 2 usage, 3 daemon not reachable, 4 "
	      "timeout\n",
	      f);
}

static void reference_command(FILE *f, const struct cli_command *c, const struct mgmt_method *m)
{
	fprintf(f, "\n### %s %s\n\n```\nspotctl ", c->object, c->verb);
	cli_usage_write(f, c, m);
	fprintf(f, "\n```\n\n%c%s.", toupper((unsigned char)c->help[0]), c->help + 1);
	if (c->run != CLI_CHECK)
		fprintf(f, " Method `%s`.", m->name);
	fputc('\n', f);
	if (c->run != CLI_CHECK && m->n_params > 0)
		fputs("\n| argument | meaning |\n|---|---|\n", f);
	for (size_t i = 0; c->run != CLI_CHECK && i < m->n_params; i++) {
		const struct mgmt_param *p = &m->params[i];

		fputs("| `", f);
		if (is_by_place(c, m, p))
			write_upper(f, p->name);
		else
			write_option(f, p->name);
		fprintf(f, "` | %s |\n", argument_help(c, p));
	}
	if (extra_option(c))
		fprintf(f, "| `%s` | %s |\n", extra_option(c), extra_help(c));
}

static const char preface[] =
	"# spotctl\n\n"
	"Generated from `control/cli/commands.h` and `include/spotlane/mgmt.h` by\n"
	"`ninja -C build generated`; do not edit.\n\n"
	"`spotctl` is a thin client of the management socket "
	"([management-protocol.md](management-protocol.md)).\n\n"
	"```\nspotctl [options] OBJECT VERB [arguments]\n```\n\n"
	"| option | meaning |\n|---|---|\n";

static const char rules[] =
	"\nAn argument that begins with `-` goes after `--`. A payload or request given as `-` is "
	"read from\nstandard input; bytes that are not UTF-8 are sent as they are.\n\n"
	"Results go to standard output: a table with a header when there are rows, otherwise one "
	"name and\nvalue a line; numbers stand to the right, control characters are escaped. With "
	"`-j` it is one line of\nJSON with the names of the management protocol. `show` never "
	"changes anything.\n\n"
	"An error is one line on standard error, `object: what: reason (Kind): hint`, and the exit "
	"status says\nwhat to do about it:\n\n"
	"| status | meaning |\n|---|---|\n"
	"| 0 | done |\n"
	"| 1 | the node refused, or the operation failed: also a Rejected create, a find without a "
	"Spot, a close that closed nothing |\n"
	"| 2 | wrong command line |\n"
	"| 3 | no daemon, or no access to its socket |\n"
	"| 4 | no answer in time |\n\n"
	"## Commands\n";

void cli_reference_write(FILE *f)
{
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];

	mgmt_methods_init(methods);
	fputs(preface, f);
	for (size_t i = 0; i < N_OPTIONS; i++)
		fprintf(f, "| `-%c%s%s` | %s |\n", options[i].letter, options[i].value ? " " : "",
			options[i].value ? options[i].value : "", options[i].help);
	fputs(rules, f);
	for (size_t i = 0; i < cli_n_commands; i++)
		reference_command(f, &cli_commands[i], &methods[cli_commands[i].method]);
}
