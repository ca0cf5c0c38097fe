/* SPDX-License-Identifier: BSD-3-Clause */
/* The three parts of fuzz_link.c and the reader of its input. */
#ifndef SPL_FUZZ_LINK_H
#define SPL_FUZZ_LINK_H

#include "tests/fuzz/fuzz.h"

struct fuzz_in {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
	uint16_t hi = fuzz_u8(in);

	return (uint16_t)(hi << 8 | fuzz_u8(in));
}

void fuzz_link_flow(struct fuzz_in *in);
void fuzz_link_assoc(struct fuzz_in *in);
void fuzz_link_message(struct fuzz_in *in);

#endif
