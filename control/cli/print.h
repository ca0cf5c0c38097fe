/* SPDX-License-Identifier: BSD-3-Clause */
/* Results as tables for people. The names and their order are those of the method table, or of the
 * answer's own `columns`. Pure but for the stream. */
#ifndef SPL_CONTROL_CLI_PRINT_H
#define SPL_CONTROL_CLI_PRINT_H

#include "control/server/methods.h"

#include <stdio.h>

/* Prints `result` of method `m`: the single values one a line, then the rows as a table. False
 * when there was no memory for all of it. */
/* Metrics: "name{labels} value", of a histogram with its sum and buckets. */
void cli_print_samples(FILE *f, const json_t *samples);

/* A line for each object of an array: "name=value ...". */
bool cli_print_lines(FILE *f, const json_t *rows);

bool cli_print_result(FILE *f, const struct mgmt_method *m, const json_t *result);

/* The text with control characters and what is not UTF-8 as \xNN. */
void cli_print_escaped(FILE *f, const char *text, size_t len);

#endif
