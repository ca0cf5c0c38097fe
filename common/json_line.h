/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict reading of one JSON text: a request line, a SpotRef. Pure; any thread.
 *
 * jansson refuses bad UTF-8, raw control bytes, numbers that overflow, a second value and, asked
 * to, duplicate keys; it recurses up to 2048 levels, so depth is counted before.
 */
#ifndef SPL_COMMON_JSON_LINE_H
#define SPL_COMMON_JSON_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define JSON_LINE_WHY_MAX 192

/* Parses the `len` bytes at `text`, which must be exactly one object or array, nested at most
 * `depth_max` deep, with no key twice in an object. NUL may appear escaped in texts. The caller
 * owns the result; NULL with one sentence in `why`. */
json_t *json_line_parse(const char *text, size_t len, unsigned depth_max,
			char why[JSON_LINE_WHY_MAX]);

/* The deepest nesting of brackets outside texts, found without recursion. */
unsigned json_line_depth(const char *text, size_t len);

/* The one-line form with the members in the order of insertion, as malloc'ed text. NULL: memory. */
char *json_line_text(const json_t *value);

#endif
