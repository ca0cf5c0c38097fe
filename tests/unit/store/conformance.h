/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases that every back end must pass; env.backend says which one runs. */
#ifndef SPL_TESTS_STORE_CONFORMANCE_H
#define SPL_TESTS_STORE_CONFORMANCE_H

#include "tests/lib/t_main.h"

extern const struct t_case conformance_cases[];
extern const size_t conformance_n;
extern const struct t_case conformance_scan_cases[];
extern const size_t conformance_scan_n;

#endif
