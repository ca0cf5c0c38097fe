/* SPDX-License-Identifier: BSD-3-Clause */
/* spotctl's commands: one table feeds the parser, the help and docs/cli.md. A command takes its
 * arguments from the parameters of its method (<spotlane/mgmt.h>): those named in `args` by place,
 * the others as `--name VALUE`. Pure.
 */
#ifndef SPL_CONTROL_CLI_COMMANDS_H
#define SPL_CONTROL_CLI_COMMANDS_H

#include "control/server/methods.h"

#include <stdio.h>

#define CLI_ARGS_MAX 8

/* X(object, verb, method, "args by place", run, "help"); run: CALL = ask and print. */
#define CLI_COMMANDS(X) \
	X("node", "show", NODE_SHOW, "", CALL, "state of the node") \
	X("node", "shutdown", NODE_SHUTDOWN, "", SHUTDOWN, \
	  "stop the node and wait until the daemon is gone (--no-wait: only ask)") \
	X("spot", "create", SPOT_CREATE, "type", CALL, "create a User Spot with a new id") \
	X("spot", "get-or-create", SPOT_GET_OR_CREATE, "id type", CALL, \
	  "find or create a User Spot") \
	X("spot", "find", SPOT_FIND, "id", FIND, "the Ready Spot of an id; never creates") \
	X("spot", "list", SPOT_LIST, "", LIST, "Spots, a page or with --all every page") \
	X("spot", "close", SPOT_CLOSE, "ref", CLOSE, \
	  "close a Spot: its id, or the exact incarnation as a SpotRef in JSON") \
	X("spot", "send", SPOT_SEND, "id packet payload", CALL, "send a message") \
	X("spot", "request", SPOT_REQUEST, "id packet payload", CALL, \
	  "send a request and wait for the reply") \
	X("spot", "reclaim", SPOT_RECLAIM, "id", CALL, \
	  "free the rows of a dead owner: exactly one of ID (one Spot) and --node (all of a " \
	  "node)") \
	X("stats", "show", STATS_SHOW, "view", CALL, "counters: drops, lanes, ports or links") \
	X("stage", "show", STAGE_SHOW, "", CALL, \
	  "what waits, how late timers are and how creations and closes ended, by stable type") \
	X("status", "show", STATUS_SHOW, "", STATUS, \
	  "status of the host; with --follow each change, until -t SECONDS are over or it is " \
	  "interrupted") \
	X("metrics", "show", METRICS_SHOW, "", METRICS, "every metric, a line for each sample") \
	X("trace", "show", TRACE_SHOW, "", TRACE, \
	  "records of the flow trace, a line each: the newest; with --follow what comes, until " \
	  "-t " \
	  "SECONDS are over or it is interrupted") \
	X("trace", "level", TRACE_SET_LEVEL, "level", CALL, "how much the flow trace records") \
	X("trace", "sample", TRACE_SET_SAMPLE, "rate", CALL, \
	  "the share of flows that is recorded, 0.0 to 1.0") \
	X("config", "show", CONFIG_SHOW, "", CALL, "effective values and where each came from") \
	X("config", "check", CONFIG_SHOW, "", CHECK, \
	  "check a configuration file; needs no daemon") \
	X("log", "set-level", LOG_SET_LEVEL, "level", CALL, "change the log level")

/* X(letter, "VALUE", "help"): options before or after the command. */
#define CLI_OPTIONS(X) \
	X('s', "PATH", "management socket (default " SPL_MGMT_SOCKET_DEFAULT ")") \
	X('t', "SECONDS", "time for the whole command (default 35, or the command's own timeout)") \
	X('j', NULL, "print the result as JSON, with the names of the management protocol") \
	X('q', NULL, "print no result, only errors") \
	X('V', NULL, "print the version") \
	X('h', NULL, "print help; with an object or a command, about that")

enum cli_run {
	CLI_CALL,
	CLI_SHUTDOWN,
	CLI_FIND,
	CLI_LIST,
	CLI_CLOSE,
	CLI_CHECK,
	CLI_TRACE,
	CLI_METRICS,
	CLI_STATUS
};

struct cli_command {
	const char *object, *verb;
	enum spl_mgmt_method method;
	const char *args; /* names of parameters, separated by blanks */
	enum cli_run run;
	const char *help;
};

extern const struct cli_command cli_commands[];
extern const size_t cli_n_commands;

/* NULL when there is none. */
const struct cli_command *cli_find(const char *object, const char *verb);

/* The parameter of `m` called `name`, where '-' may stand for '_'; NULL when there is none. */
const struct mgmt_param *cli_param(const struct mgmt_method *m, const char *name, size_t len);

/* The parameter that goes by place `i`; NULL when there are fewer. */
const struct mgmt_param *cli_arg(const struct cli_command *c, const struct mgmt_method *m,
				 size_t i);

/* "spot get-or-create ID TYPE [--mesh MESH] ..." */
void cli_usage_write(FILE *f, const struct cli_command *c, const struct mgmt_method *m);

/* Help on everything, on one object, or on one command; object and verb may be NULL. */
void cli_help_write(FILE *f, const char *object, const char *verb);

/* docs/cli.md. */
void cli_reference_write(FILE *f);

#endif
