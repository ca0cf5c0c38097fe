/* SPDX-License-Identifier: BSD-3-Clause */
/* docs/counters.md: the lists of include/spotlane/ that a reader meets by name. */
#ifndef SPL_CONTROL_SERVER_LISTS_H
#define SPL_CONTROL_SERVER_LISTS_H

#include <stdio.h>

/* Writes the whole page. */
void lists_write(FILE *f);

#endif
