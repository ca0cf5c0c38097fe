/* SPDX-License-Identifier: BSD-3-Clause */
/* What every fuzz target has: the entry point of libFuzzer and a check that stays in release
 * builds. */
#ifndef SPL_FUZZ_H
#define SPL_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

/* Feeds one input; always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
