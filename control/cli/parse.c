/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: see parse.h. Single-threaded. */
#include "control/cli/parse.h"
#include "control/server/check.h"
#include "common/json_line.h"
#include "common/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 86400

struct parser {
	int argc, at;
	char **argv;
	FILE *in;
	const struct mgmt_method *methods;
	struct cli_request *r;
	const char *object;
	size_t placed; /* arguments by place so far */
	bool only_args;
	char *why;
};

static bool fail(struct parser *p, const char *what, const char *about)
{
	snprintf(p->why, CLI_WHY_MAX, "%.80s: %.200s%s%.300s",
		 p->object ? p->object : "command line", what, *about ? ": " : "", about);
	return false;
}

/* Takes `v`. */
static bool put(struct parser *p, const struct mgmt_param *param, json_t *v)
{
	return json_object_set_new(p->r->params, param->name, v) == 0 || fail(p, "no memory", "");
}

static bool put_integer(struct parser *p, const struct mgmt_param *param, const char *text)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (!*text || *end || errno == ERANGE || text[0] == ' ')
		return fail(p, "not an integer", text);
	return put(p, param, json_integer(v));
}

/* Standard input as the value of a text that has a base64 twin. */
static bool put_input(struct parser *p, const struct mgmt_param *param)
{
	char *bytes = malloc(SPL_MGMT_PAYLOAD_MAX + 1);
	size_t n = bytes ? fread(bytes, 1, SPL_MGMT_PAYLOAD_MAX + 1, p->in) : 0;
	bool good = bytes && !ferror(p->in) && n <= SPL_MGMT_PAYLOAD_MAX &&
		    mgmt_result_bytes(p->r->params, param->name, bytes, n) == 0;

	free(bytes);
	return good || fail(p, "standard input: cannot read, or over 1048576 bytes", "");
}

static bool put_ref(struct parser *p, const struct mgmt_param *param, const char *text)
{
	char detail[JSON_LINE_WHY_MAX];
	json_t *ref;

	if (text[0] != '{') {
		p->r->target = text;
		return true;
	}
	ref = json_line_parse(text, strlen(text), 2, detail);
	if (!ref)
		return fail(p, "not a SpotRef", detail);
	return put(p, param, ref);
}

static bool put_value(struct parser *p, const struct mgmt_method *m, const struct mgmt_param *param,
		      const char *text)
{
	char twin[64];
	bool has_twin;

	if (json_object_get(p->r->params, param->name))
		return fail(p, "given twice", param->name);
	if (param->type == MGMT_INT)
		return put_integer(p, param, text);
	if (param->type == MGMT_REF)
		return put_ref(p, param, text);
	snprintf(twin, sizeof(twin), "%s_base64", param->name);
	has_twin = cli_param(m, twin, strlen(twin)) != NULL;
	if (has_twin && strcmp(text, "-") == 0)
		return put_input(p, param);
	if (utf8_valid_bytes(text, strlen(text)) != strlen(text))
		return fail(p, "not valid UTF-8", param->name);
	return put(p, param, json_string(text));
}

/* -s PATH or -sPATH, and several flags in one word. */
static bool take_short(struct parser *p, const char *word)
{
	struct cli_request *r = p->r;
	char *end;

	for (word++; *word; word++) {
		if (*word == 'j') {
			r->json = true;
		} else if (*word == 'q') {
			r->quiet = true;
		} else if (*word == 'V') {
			r->version = true;
		} else if (*word == 'h') {
			r->help = true;
		} else if (*word == 's' || *word == 't') {
			const char *value = word[1] ? word + 1 : p->argv[++p->at];

			if (p->at >= p->argc)
				return fail(p, "option without its value", word);
			if (*word == 's') {
				r->socket = value;
				return true;
			}
			r->seconds = strtol(value, &end, 10);
			if (!*value || *end || r->seconds < 1 || r->seconds > SECONDS_MAX)
				return fail(p, "-t takes 1..86400 seconds", value);
			return true;
		} else {
			return fail(p, "unknown option", word);
		}
	}
	return true;
}

static bool take_long(struct parser *p, const char *word)
{
	const struct cli_command *c = p->r->command;
	const char *name = word + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct mgmt_param *param;

	if (strcmp(word, "--help") == 0 || strcmp(word, "--version") == 0) {
		p->r->help |= word[2] == 'h';
		p->r->version |= word[2] == 'v';
		return true;
	}
	if (c && c->run == CLI_LIST && strcmp(name, "all") == 0)
		return p->r->all = true;
	if (c && (c->run == CLI_TRACE || c->run == CLI_STATUS) && strcmp(name, "follow") == 0)
		return p->r->follow = true;
	if (c && c->run == CLI_SHUTDOWN && strcmp(name, "no-wait") == 0)
		return p->r->no_wait = true;
	param = c && c->run != CLI_CHECK ? cli_param(&p->methods[c->method], name, len) : NULL;
	if (!param)
		return fail(p, "unknown option", word);
	if (value)
		value++;
	else if (++p->at < p->argc)
		value = p->argv[p->at];
	else
		return fail(p, "option without its value", word);
	return put_value(p, &p->methods[c->method], param, value);
}

static bool take_arg(struct parser *p, const char *word)
{
	const struct cli_command *c = p->r->command;
	const struct mgmt_param *param;

	if (!p->object) {
		p->object = word;
		p->r->help_object = word;
		return true;
	}
	if (!c) {
		p->r->help_verb = word;
		p->r->command = cli_find(p->object, word);
		return p->r->command || fail(p, "unknown command", word);
	}
	if (c->run == CLI_CHECK) {
		if (p->r->file)
			return fail(p, "one argument too many", word);
		p->r->file = word;
		return true;
	}
	param = cli_arg(c, &p->methods[c->method], p->placed++);
	if (!param)
		return fail(p, "one argument too many", word);
	return put_value(p, &p->methods[c->method], param, word);
}

/* What the server would refuse is refused here, before anything is sent. */
static bool check(struct parser *p)
{
	const struct cli_command *c = p->r->command;
	char detail[MGMT_WHY_MAX];

	if (p->r->help || p->r->version)
		return true;
	if (!p->object)
		return fail(p, "no command: try spotctl -h", "");
	if (!c)
		return fail(p, "no verb: try spotctl -h", p->object);
	if (c->run == CLI_CHECK)
		return p->r->file || fail(p, "check: FILE must be given", "");
	if (c->run == CLI_CLOSE && p->r->target) {
		size_t n = strlen(p->r->target);

		return spl_name_valid(p->r->target, n) ||
		       fail(p, "close: the id must have 1..255 bytes of UTF-8", "");
	}
	if (mgmt_check_params(&p->methods[c->method], p->r->params, detail))
		return true;
	return fail(p, c->verb, detail);
}

bool cli_parse(int argc, char **argv, FILE *in, const struct mgmt_method *methods,
	       struct cli_request *out, char why[CLI_WHY_MAX])
{
	struct parser p = {argc, 1, argv, in, methods, out, NULL, 0, false, why};

	*out = (struct cli_request){.socket = SPL_MGMT_SOCKET_DEFAULT, .params = json_object()};
	if (!out->params)
		return fail(&p, "no memory", "");
	for (; p.at < argc; p.at++) {
		const char *word = argv[p.at];
		bool good;

		if (!p.only_args && strcmp(word, "--") == 0) {
			p.only_args = true;
			continue;
		}
		if (p.only_args || word[0] != '-' || !word[1])
			good = take_arg(&p, word);
		else if (word[1] == '-')
			good = take_long(&p, word);
		else
			good = take_short(&p, word);
		if (!good)
			return false;
	}
	return check(&p);
}

void cli_request_free(struct cli_request *r)
{
	json_decref(r->params);
	r->params = NULL;
}
