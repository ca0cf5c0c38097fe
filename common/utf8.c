/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict UTF-8: see utf8.h. Pure. */
#include "common/utf8.h"

#include <stdint.h>

size_t utf8_sequence(const void *bytes, size_t left)
{
	const uint8_t *p = bytes;
	uint32_t c;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n > left)
		return 0;
	c = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff)
		return 0;
	if (c >= 0xd800 && c <= 0xdfff)
		return 0;
	return n;
}

size_t utf8_valid_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	size_t at = 0;

	while (at < n) {
		size_t step = utf8_sequence(p + at, n - at);

		if (step == 0)
			break;
		at += step;
	}
	return at;
}
