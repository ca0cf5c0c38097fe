/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors of tests/data/wire/vectors.txt. One thread. */
#ifndef SPL_TEST_LINK_VECTORS_H
#define SPL_TEST_LINK_VECTORS_H

#include <stdint.h>

struct vector {
	char name[40];
	uint8_t b[1024];
	uint32_t len;
};

/* Reads the file; 0, or -1. For t_suite.init. */
int vectors_read(void);

/* The vector of that name; the test fails, and it is empty, when there is none. */
const struct vector *vector(const char *name);

/* The i-th vector, NULL behind the last. */
const struct vector *vector_at(unsigned i);

#endif
