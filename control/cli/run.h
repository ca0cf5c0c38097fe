/* SPDX-License-Identifier: BSD-3-Clause */
/* spotctl as a function, so that tests can call it. */
#ifndef SPL_CONTROL_CLI_RUN_H
#define SPL_CONTROL_CLI_RUN_H

#include <stdio.h>

/* Runs one command line; results to `out`, one error line to `err`, payloads given as "-" from
 * `in`. Returns the exit status (enum spl_exit). Blocks until the answer or the time limit. */
int cli_main(int argc, char **argv, FILE *in, FILE *out, FILE *err);

#endif
