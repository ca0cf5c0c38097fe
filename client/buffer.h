/* SPDX-License-Identifier: BSD-3-Clause */
/* A message in memory: encoded once, then handed from owner to owner, never copied. Not shared. */
#ifndef SPL_CLIENT_BUFFER_H
#define SPL_CLIENT_BUFFER_H

#include <stdint.h>
#include <stdlib.h>

struct buffer {
	uint32_t len;
	uint8_t b[];
};

/* NULL when there is no memory. The bytes are not initialised. */
static inline struct buffer *buffer_new(uint32_t len)
{
	struct buffer *b = (struct buffer *)malloc(sizeof(*b) + len);

	if (b)
		b->len = len;
	return b;
}

static inline void buffer_free(struct buffer *b)
{
	free(b);
}

#endif
