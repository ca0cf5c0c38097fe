/* SPDX-License-Identifier: BSD-3-Clause */
/* Base64: see base64.h. Pure. */
#include "common/base64.h"

#include <errno.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t n, char *out)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)p[i + 1] << 8;
		if (i + 2 < n)
			v |= p[i + 2];
		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = i + 1 < n ? alphabet[v >> 6 & 63] : '=';
		*out++ = i + 2 < n ? alphabet[v & 63] : '=';
	}
	*out = '\0';
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ssize_t base64_decoded_len(const char *text, size_t n)
{
	size_t pad = 0;

	if (n % 4 != 0)
		return -EINVAL;
	while (pad < 2 && pad < n && text[n - 1 - pad] == '=')
		pad++;
	return (ssize_t)(n / 4 * 3 - pad);
}

int base64_decode(const char *text, size_t n, void *out)
{
	ssize_t len = base64_decoded_len(text, n);
	size_t digits;
	uint8_t *p = out;
	uint32_t v = 0;

	if (len < 0)
		return -EINVAL;
	digits = n - (n / 4 * 3 - (size_t)len);
	for (size_t i = 0; i < digits; i++) {
		int d = digit(text[i]);

		if (d < 0)
			return -EINVAL;
		v = v << 6 | (uint32_t)d;
		if (i % 4 == 0)
			continue;
		*p++ = (uint8_t)(v >> (6 - 2 * (i % 4)));
		v &= (1u << (6 - 2 * (i % 4))) - 1;
	}
	return v == 0 ? 0 : -EINVAL;
}
