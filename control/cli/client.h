/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking client of the management socket. One thread; every wait ends at the deadline. */
#ifndef SPL_CONTROL_CLI_CLIENT_H
#define SPL_CONTROL_CLI_CLIENT_H

#include <jansson.h>
#include <spotlane/mgmt.h>
#include <stdint.h>

#define CLI_ERR_MAX    512
#define CLI_ANSWER_MAX 33554432 /* bytes of one line from the daemon */

struct cli_client {
	const char *path;
	int fd;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	char *buf;
	size_t len, cap, used; /* used: bytes of the line handed out last */
	int next_id;
};

uint64_t cli_now_ns(void);

/* Connects and reads the greeting. SPL_EXIT_OK, or another exit status with one line in `err`;
 * close in either case. */
enum spl_exit cli_connect(struct cli_client *c, const char *path, uint64_t deadline_ns,
			  char err[CLI_ERR_MAX]);

/* Asks and waits. On SPL_EXIT_OK *answer is the whole answer, with "result" or "error", which the
 * caller owns. */
enum spl_exit cli_ask(struct cli_client *c, const char *method, const json_t *params,
		      json_t **answer, char err[CLI_ERR_MAX]);

/* Waits until the daemon ends the connection. */
enum spl_exit cli_wait_end(struct cli_client *c, char err[CLI_ERR_MAX]);

void cli_close(struct cli_client *c);

#endif
