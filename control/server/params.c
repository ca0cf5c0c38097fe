/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes and names out of checked parameters and into results: see methods.h. Pure. */
#include "control/server/methods.h"
#include "common/base64.h"
#include "common/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mgmt_param_name(const json_t *params, const char *name, struct spl_name *out)
{
	const json_t *v = json_object_get(params, name);

	if (!v)
		return -ENOENT;
	return spl_name_set(out, json_string_value(v), json_string_length(v));
}

int mgmt_param_bytes(const json_t *params, const char *name, void **out, size_t *n)
{
	char twin[64];
	const json_t *plain = json_object_get(params, name), *coded;
	const char *text = plain ? json_string_value(plain) : "";
	size_t len = plain ? json_string_length(plain) : 0;
	void *bytes;

	snprintf(twin, sizeof(twin), "%s_base64", name);
	coded = json_object_get(params, twin);
	if (coded) {
		text = json_string_value(coded);
		len = json_string_length(coded);
	}
	bytes = malloc(len + 1);
	if (!bytes)
		return -ENOMEM;
	if (coded) {
		*n = (size_t)base64_decoded_len(text, len);
		base64_decode(text, len, bytes);
	} else {
		*n = len;
		memcpy(bytes, text, len);
	}
	*out = bytes;
	return 0;
}

int mgmt_result_bytes(json_t *result, const char *name, const void *bytes, size_t n)
{
	char twin[64];
	char *coded;
	int err;

	if (n == 0 || (utf8_valid_bytes(bytes, n) == n && !memchr(bytes, '\0', n)))
		return json_object_set_new(result, name, json_stringn(n ? bytes : "", n)) == 0
			       ? 0
			       : -ENOMEM;
	coded = malloc(base64_encoded_len(n) + 1);
	if (!coded)
		return -ENOMEM;
	base64_encode(bytes, n, coded);
	snprintf(twin, sizeof(twin), "%s_base64", name);
	err = json_object_set_new(result, twin, json_string(coded)) == 0 ? 0 : -ENOMEM;
	free(coded);
	return err;
}
