/* SPDX-License-Identifier: BSD-3-Clause */
/* Base64 of RFC 4648 §4, with padding, strict: no white space, no missing padding, no stray bits.
 * Pure; any thread. */
#ifndef SPL_COMMON_BASE64_H
#define SPL_COMMON_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Characters that `n` bytes become, without the NUL. */
static inline size_t base64_encoded_len(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* Writes base64_encoded_len(n) characters and a NUL to `out`. */
void base64_encode(const void *bytes, size_t n, char *out);

/* Bytes that the `n` characters at `text` stand for, or -EINVAL when they are not base64. */
ssize_t base64_decoded_len(const char *text, size_t n);

/* Decodes into `out`, which has room for base64_decoded_len() bytes. 0, or -EINVAL with `out`
 * in any state. */
int base64_decode(const char *text, size_t n, void *out);

#endif
