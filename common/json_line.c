/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict reading of one JSON text: see json_line.h. Pure but for jansson's allocator, which is set
 * to malloc and free again and again, with a note of failures beside it. */
#include "common/json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned json_line_depth(const char *text, size_t len)
{
	unsigned depth = 0, deepest = 0;
	bool in_text = false;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (in_text) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_text = false;
		} else if (c == '"') {
			in_text = true;
		} else if (c == '{' || c == '[') {
			if (++depth > deepest)
				deepest = depth;
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return deepest;
}

static _Thread_local bool no_memory;

static void *noting_malloc(size_t n)
{
	void *p = malloc(n);

	if (!p)
		no_memory = true;
	return p;
}

json_t *json_line_parse(const char *text, size_t len, unsigned depth_max,
			char why[JSON_LINE_WHY_MAX])
{
	json_error_t err;
	unsigned depth = json_line_depth(text, len);
	json_t *value;

	if (depth > depth_max) {
		snprintf(why, JSON_LINE_WHY_MAX, "nested %u levels deep (max %u)", depth,
			 depth_max);
		return NULL;
	}
	if (memchr(text, '\0', len)) { /* jansson may skip one after a number */
		snprintf(why, JSON_LINE_WHY_MAX, "a NUL byte");
		return NULL;
	}
	json_set_alloc_funcs(noting_malloc, free);
	no_memory = false;
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
	if (no_memory) { /* jansson may have gone on and lost a character of a text */
		json_decref(value);
		snprintf(why, JSON_LINE_WHY_MAX, "no memory");
		return NULL;
	}
	if (!value)
		snprintf(why, JSON_LINE_WHY_MAX, "%.150s at byte %d", err.text,
			 err.position > 0 ? err.position : 0);
	return value;
}

char *json_line_text(const json_t *value)
{
	return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
}
