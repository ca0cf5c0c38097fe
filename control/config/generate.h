/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts made from the option table. Used by the program conf-generate and by the test that
 * compares them with the files in the tree. */
#ifndef SPL_CONTROL_CONFIG_GENERATE_H
#define SPL_CONTROL_CONFIG_GENERATE_H

#include <stdio.h>

/* config/spotlane.cfg: every option, commented out at its default. */
void conf_example_write(FILE *f);

/* docs/configuration.md. */
void conf_reference_write(FILE *f);

#endif
