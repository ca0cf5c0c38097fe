/* SPDX-License-Identifier: BSD-3-Clause */
/* From the command line to a checked request. Reads standard input when asked to; else pure. */
#ifndef SPL_CONTROL_CLI_PARSE_H
#define SPL_CONTROL_CLI_PARSE_H

#include "control/cli/commands.h"

#define CLI_WHY_MAX 700

struct cli_request {
	const struct cli_command *command; /* NULL: only help or version was asked for */
	const char *socket;
	long seconds; /* 0: not given */
	bool json, quiet, help, version;
	bool all, no_wait, follow;
	const char *help_object, *help_verb;
	const char *file;   /* of config check */
	const char *target; /* of spot close, when it is an id */
	json_t *params;	    /* owned */
};

/* Takes the command line apart and checks it against the method. False with one sentence
 * ("object: what: reason") in `why`. `out` is to be freed with cli_request_free() either way. */
bool cli_parse(int argc, char **argv, FILE *in, const struct mgmt_method *methods,
	       struct cli_request *out, char why[CLI_WHY_MAX]);
void cli_request_free(struct cli_request *r);

#endif
