/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the configuration tests: a small good file, and loading with what is expected. */
#ifndef SPL_TESTS_T_CONF_H
#define SPL_TESTS_T_CONF_H

#include "control/config/config.h"

#include <CUnit/CUnit.h>

/* The smallest good file, two lines; texts under test follow from line 3 on. */
/* clang-format off */
#define T_CONF_SECURITY "security = \"none\";\n"
#define T_CONF_PORT "ports: ( { name = \"p0\"; device = \"net_null0\"; ip = \"10.0.0.1\"; });\n"
#define T_CONF_GOOD T_CONF_SECURITY T_CONF_PORT
/* clang-format on */

/* CPUs 0..3. */
cpu_set_t t_conf_cpus(void);

/* Loads `text` under the name "t.cfg"; NULL with the report in *rep. */
struct config *t_conf_load(const char *text, struct conf_report *rep);

/* `text` must be refused, with a first error whose "FILE:LINE: text" begins with `start` and
 * contains `part`; prints what came instead. */
void t_conf_refused(const char *text, const char *start, const char *part);

/* `text` must be accepted; returns the configuration, which the caller frees. NULL fails a test. */
struct config *t_conf_accepted(const char *text);

#endif
