/* SPDX-License-Identifier: BSD-3-Clause */
/* The suites of the authority, one a file. */
#ifndef SPL_TESTS_AUTHORITY_SUITES_H
#define SPL_TESTS_AUTHORITY_SUITES_H

#include "tests/lib/t_main.h"

extern const struct t_suite suite_create, suite_trouble, suite_doubt, suite_close, suite_host,
	suite_instance, suite_stop, suite_resume, suite_dead, suite_log, suite_random;

#endif
