/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command: asks, prints, and knows the few commands that need more than one question. */
#include "control/cli/run.h"
#include "control/cli/client.h"
#include "control/cli/parse.h"
#include "control/cli/print.h"
#include "control/config/config.h"
#include "common/json_line.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_S    35
#define MORE_THAN_MS 5000 /* what a command gets beyond the timeout that it asks the node for */
#define PAGES_MAX    100000
#define WAIT_MS	     30000  /* what the node waits for a change at most */
#define FOLLOW_US    200000 /* between two questions of --follow */

struct run {
	struct cli_request *r;
	const struct mgmt_method *m;
	struct cli_client client;
	FILE *out, *err;
};

static int print_error(const struct run *run, const char *text)
{
	cli_print_escaped(run->err, text, strlen(text));
	fputc('\n', run->err);
	return SPL_EXIT_REFUSED;
}

/* What the command is about: "spot room-1", "node". */
static void subject_of(const struct run *run, char *out, size_t size)
{
	const char *object = run->r->command->object;
	const char *id = json_string_value(json_object_get(run->r->params, "id"));
	const json_t *ref = json_object_get(run->r->params, "ref");

	if (!id)
		id = json_string_value(json_object_get(ref, "spotId"));
	if (!id)
		id = run->r->target;
	snprintf(out, size, "%s%s%.255s", object, id ? " " : "", id ? id : "");
}

/* "object: what: reason (Kind): hint" */
static int answer_error(const struct run *run, const json_t *error)
{
	const json_t *data = json_object_get(error, "data");
	const char *text = json_string_value(json_object_get(error, "message"));
	const char *kind = json_string_value(json_object_get(data, "kind"));
	const char *object = json_string_value(json_object_get(data, "object"));
	const char *hint = json_string_value(json_object_get(data, "hint"));
	char subject[320], line[1024];

	subject_of(run, subject, sizeof(subject));
	snprintf(line, sizeof(line), "%.320s: %.400s (%.40s)%s%.200s", object ? object : subject,
		 text ? text : "failed", kind ? kind : "?", hint ? ": " : "", hint ? hint : "");
	return print_error(run, line);
}

static int what_failed(const struct run *run, const char *what)
{
	char subject[320], line[512];

	subject_of(run, subject, sizeof(subject));
	snprintf(line, sizeof(line), "%s: %s: %s", subject, run->r->command->verb, what);
	return print_error(run, line);
}

static int print_result(const struct run *run, const struct mgmt_method *m, const json_t *result)
{
	char *text = NULL;
	bool good = true;

	if (run->r->quiet)
		return SPL_EXIT_OK;
	if (!run->r->json) {
		good = cli_print_result(run->out, m, result);
	} else {
		text = json_line_text(result);
		good = text != NULL;
		fprintf(run->out, "%s\n", text ? text : "");
	}
	free(text);
	return good ? SPL_EXIT_OK : what_failed(run, "no memory to print all of the result");
}

/* Asks; on success *result is owned by the caller. Errors are printed. */
static int ask(struct run *run, const char *method, const json_t *params, json_t **result)
{
	char err[CLI_ERR_MAX];
	json_t *answer = NULL;
	int status = (int)cli_ask(&run->client, method, params, &answer, err);

	*result = NULL;
	if (status != SPL_EXIT_OK) {
		print_error(run, err);
		return status;
	}
	if (json_object_get(answer, "error"))
		status = answer_error(run, json_object_get(answer, "error"));
	else
		*result = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	if (status == SPL_EXIT_OK && !json_is_object(*result)) {
		json_decref(*result);
		*result = NULL;
		return what_failed(run, "the answer has no result");
	}
	return status;
}

static int run_call(struct run *run)
{
	json_t *result;
	int status = ask(run, run->m->name, run->r->params, &result);
	const char *state;

	if (status != SPL_EXIT_OK)
		return status;
	status = print_result(run, run->m, result);
	state = json_string_value(json_object_get(result, "state"));
	if (!run->r->json && json_is_true(json_object_get(result, "file_changed")))
		fputs("config: the file differs from the running configuration\n", run->err);
	if (state && strcmp(state, "Rejected") == 0)
		status = what_failed(run, "the stage declined (state Rejected)");
	json_decref(result);
	return status;
}

static int run_find(struct run *run)
{
	json_t *result;
	int status = ask(run, run->m->name, run->r->params, &result);

	if (status != SPL_EXIT_OK)
		return status;
	if (json_is_object(json_object_get(result, "ref")))
		status = print_result(run, run->m, result);
	else
		status = what_failed(run, "no Ready Spot has this id");
	json_decref(result);
	return status;
}

/* spot close ID: the incarnation that has the id now. */
static int find_ref(struct run *run)
{
	json_t *params = json_pack("{s:s}", "id", run->r->target), *result;
	json_t *ref;
	int status = ask(run, "spot.find", params, &result);

	json_decref(params);
	if (status != SPL_EXIT_OK)
		return status;
	ref = json_object_get(result, "ref");
	if (json_is_object(ref) && json_object_set(run->r->params, "ref", ref) != 0)
		status = what_failed(run, "no memory");
	else if (!json_is_object(ref))
		status = what_failed(run, "no Ready Spot has this id");
	json_decref(result);
	return status;
}

static int run_close(struct run *run)
{
	json_t *result;
	int status = run->r->target ? find_ref(run) : SPL_EXIT_OK;

	if (status == SPL_EXIT_OK)
		status = ask(run, run->m->name, run->r->params, &result);
	if (status != SPL_EXIT_OK)
		return status;
	status = print_result(run, run->m, result);
	if (!json_is_true(json_object_get(result, "closed")))
		status = what_failed(run, "that incarnation is gone, or members remain in it");
	json_decref(result);
	return status;
}

static int print_list(const struct run *run, json_t *list)
{
	int status;

	if (run->r->all)
		json_object_del(list, "next");
	status = print_result(run, run->m, list);
	if (!run->r->json && !run->r->quiet && json_object_get(list, "next"))
		fprintf(run->err, "more: spotctl spot list --token %s\n",
			json_string_value(json_object_get(list, "next")));
	return status;
}

/* One page, or with --all the rows of every page as one result. */
static int run_list(struct run *run)
{
	json_t *all = NULL;
	int status = SPL_EXIT_OK;
	bool more = true;

	for (int i = 0; i < PAGES_MAX && more && status == SPL_EXIT_OK; i++) {
		json_t *page, *next;
		bool good = true;

		status = ask(run, run->m->name, run->r->params, &page);
		if (status != SPL_EXIT_OK)
			break;
		next = json_object_get(page, "next");
		more = run->r->all && json_is_string(next);
		if (more)
			good = json_object_set(run->r->params, "token", next) == 0;
		if (!all)
			all = json_incref(page);
		else
			good &= json_array_extend(json_object_get(all, "spots"),
						  json_object_get(page, "spots")) == 0;
		json_decref(page);
		if (!good)
			status = what_failed(run, "no memory");
	}
	if (status == SPL_EXIT_OK)
		status = print_list(run, all);
	json_decref(all);
	return status;
}

/* What has come since, until the time given with -t is over; without it for ever. */
static int run_trace(struct run *run)
{
	uint64_t until = cli_now_ns() + (uint64_t)run->r->seconds * 1000000000u;
	int status;

	do {
		json_t *result, *records;
		bool any;

		if (run->r->follow)
			run->client.deadline_ns = cli_now_ns() + DEFAULT_S * 1000000000ull;
		status = ask(run, run->m->name, run->r->params, &result);
		if (status != SPL_EXIT_OK)
			break;
		records = json_object_get(result, "records");
		any = json_array_size(records) > 0;
		if (run->r->json && (any || !run->r->follow))
			status = print_result(run, run->m, result);
		else if (!run->r->json && !run->r->quiet && !cli_print_lines(run->out, records))
			status = what_failed(run, "no memory to print all of the result");
		if (!run->r->json && json_integer_value(json_object_get(result, "lost")) > 0)
			fprintf(run->err, "trace: %lld records were overwritten meanwhile\n",
				(long long)json_integer_value(json_object_get(result, "lost")));
		json_object_set(run->r->params, "after", json_object_get(result, "next"));
		json_decref(result);
		fflush(run->out);
		if (run->r->follow && !any)
			usleep(FOLLOW_US);
	} while (status == SPL_EXIT_OK && run->r->follow &&
		 (run->r->seconds == 0 || cli_now_ns() < until));
	return status;
}

/* Each status that is another one than that before. */
static int run_status(struct run *run)
{
	uint64_t begun = cli_now_ns(), ms = (uint64_t)run->r->seconds * 1000, past = 0;
	json_int_t last = 0;
	int status;

	do {
		json_t *result, *sequence;

		if (run->r->follow) {
			run->client.deadline_ns = cli_now_ns() + DEFAULT_S * 1000000000ull;
			if (ms && ms - past < WAIT_MS)
				json_object_set_new(run->r->params, "wait_ms",
						    json_integer((json_int_t)(ms - past)));
		}
		status = ask(run, run->m->name, run->r->params, &result);
		if (status != SPL_EXIT_OK)
			break;
		sequence = json_object_get(result, "sequence");
		if (json_integer_value(sequence) != last)
			status = print_result(run, run->m, result);
		if (!run->r->json && run->r->follow && json_integer_value(sequence) != last)
			fputc('\n', run->out);
		last = json_integer_value(sequence);
		json_object_set(run->r->params, "after", sequence);
		json_decref(result);
		fflush(run->out);
		past = (cli_now_ns() - begun) / 1000000;
	} while (status == SPL_EXIT_OK && run->r->follow && (ms == 0 || past < ms));
	return status;
}

static int run_metrics(struct run *run)
{
	json_t *result;
	int status = ask(run, run->m->name, run->r->params, &result);

	if (status != SPL_EXIT_OK)
		return status;
	if (run->r->json)
		status = print_result(run, run->m, result);
	else if (!run->r->quiet)
		cli_print_samples(run->out, json_object_get(result, "samples"));
	json_decref(result);
	return status;
}

static int run_shutdown(struct run *run)
{
	char err[CLI_ERR_MAX];
	json_t *result;
	int status = ask(run, run->m->name, run->r->params, &result);
	json_int_t ms;

	if (status != SPL_EXIT_OK)
		return status;
	status = print_result(run, run->m, result);
	fflush(run->out);
	ms = json_integer_value(json_object_get(result, "deadline_ms"));
	json_decref(result);
	if (run->r->no_wait || status != SPL_EXIT_OK)
		return status;
	if (run->r->seconds == 0)
		run->client.deadline_ns = cli_now_ns() + (uint64_t)(ms + MORE_THAN_MS) * 1000000u;
	status = (int)cli_wait_end(&run->client, err);
	if (status != SPL_EXIT_OK)
		print_error(run, err);
	return status;
}

static uint64_t deadline_of(const struct cli_request *r)
{
	uint64_t ms = (uint64_t)r->seconds * 1000;
	json_int_t own = json_integer_value(json_object_get(r->params, "timeout_ms"));

	if (ms == 0) {
		ms = DEFAULT_S * 1000;
		if ((uint64_t)own + MORE_THAN_MS > ms)
			ms = (uint64_t)own + MORE_THAN_MS;
	}
	return cli_now_ns() + ms * 1000000u;
}

static int run_command(struct run *run)
{
	char err[CLI_ERR_MAX];
	int status = (int)cli_connect(&run->client, run->r->socket, deadline_of(run->r), err);

	if (status != SPL_EXIT_OK) {
		print_error(run, err);
	} else {
		switch (run->r->command->run) {
		case CLI_FIND:
			status = run_find(run);
			break;
		case CLI_LIST:
			status = run_list(run);
			break;
		case CLI_CLOSE:
			status = run_close(run);
			break;
		case CLI_STATUS:
			status = run_status(run);
			break;
		case CLI_METRICS:
			status = run_metrics(run);
			break;
		case CLI_TRACE:
			status = run_trace(run);
			break;
		case CLI_SHUTDOWN:
			status = run_shutdown(run);
			break;
		case CLI_CALL:
		case CLI_CHECK:
			status = run_call(run);
			break;
		}
	}
	cli_close(&run->client);
	return status;
}

int cli_main(int argc, char **argv, FILE *in, FILE *out, FILE *err)
{
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];
	struct cli_request r;
	struct run run = {.r = &r, .out = out, .err = err};
	char why[CLI_WHY_MAX];
	int status = SPL_EXIT_OK;

	mgmt_methods_init(methods);
	if (!cli_parse(argc, argv, in, methods, &r, why)) {
		print_error(&run, why);
		status = SPL_EXIT_USAGE;
	} else if (r.version) {
		fprintf(out, "spotctl %s, management protocol %d\n", SPL_VERSION,
			SPL_MGMT_PROTOCOL);
	} else if (r.help) {
		cli_help_write(out, r.help_object, r.help_verb);
	} else if (r.command->run == CLI_CHECK) {
		status = conf_check_main(r.file, r.quiet ? NULL : out, err);
	} else {
		run.m = &methods[r.command->method];
		status = run_command(&run);
	}
	cli_request_free(&r);
	if (fflush(out) != 0 && status == SPL_EXIT_OK)
		status = SPL_EXIT_REFUSED;
	return status;
}
