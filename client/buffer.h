/* SPDX-License-Identifier: BSD-3-Clause */
/* A message in memory: encoded once, then handed from owner to owner, never copied. Not shared. */
#ifndef SPL_CLIENT_BUFFER_H
#define SPL_CLIENT_BUFFER_H

#include <stdint.h>
#include <stdlib.h>

struct buffer {
	uint32_t len;
	uint32_t cls; /* enum wire_class, while a link has it */
	_Alignas(8) uint8_t b[];
};

/* NULL when there is no memory. The bytes are not initialised. */
static inline struct buffer *buffer_new(size_t len)
{
	struct buffer *msg = (struct buffer *)malloc(sizeof(*msg) + len);

	if (msg)
		msg->len = (uint32_t)len;
	return msg;
}

static inline void buffer_free(struct buffer *msg)
{
	free(msg);
}

#endif
