/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict UTF-8: no overlong form, no surrogate, nothing above U+10FFFF. Pure; any thread. */
#ifndef SPL_COMMON_UTF8_H
#define SPL_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length (1..4) of the sequence at `p`, of which `left` bytes (at least 1) may be read; 0 when it
 * is malformed. NUL counts as a character. */
size_t utf8_sequence(const void *p, size_t left);

/* Bytes of the longest valid start of the `n` bytes at `p`; equals `n` when all is valid. */
size_t utf8_valid_bytes(const void *p, size_t n);

#endif
