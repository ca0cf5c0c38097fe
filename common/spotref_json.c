/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON form of a SpotRef: see spotref_json.h. Pure. */
#include "common/spotref_json.h"
#include "common/json_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int spotref_generation(const char *text, size_t len, uint64_t *out)
{
	uint64_t v = 0;

	if (len == 0 || len > 19 || text[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	if (v > INT64_MAX)
		return -EINVAL;
	*out = v;
	return 0;
}

static int read_name(const json_t *object, const char *key, struct spl_name *out)
{
	const json_t *v = json_object_get(object, key);

	if (!json_is_string(v))
		return -EINVAL;
	return spl_name_set(out, json_string_value(v), json_string_length(v));
}

int spotref_from_json(const json_t *value, struct spl_spot_ref *out, const char **why)
{
	struct spl_spot_ref ref;
	const json_t *generation = json_object_get(value, "objectGeneration");

	if (!json_is_object(value))
		*why = "a SpotRef is an object";
	else if (read_name(value, "spotId", &ref.spot_id) != 0)
		*why = "spotId must be a text of 1..255 bytes";
	else if (!json_is_string(generation) ||
		 spotref_generation(json_string_value(generation), json_string_length(generation),
				    &ref.object_generation) != 0)
		*why = "objectGeneration must be a decimal text \"1\"..\"9223372036854775807\"";
	else if (read_name(value, "meshName", &ref.mesh_name) != 0)
		*why = "meshName must be a text of 1..255 bytes";
	else if (read_name(value, "nodeRid", &ref.node_rid) != 0)
		*why = "nodeRid must be a text of 1..255 bytes";
	else if (json_object_size(value) != 4)
		*why = "unknown property in the SpotRef";
	else {
		*out = ref;
		return 0;
	}
	return -EINVAL;
}

int spotref_parse(const char *text, size_t len, struct spl_spot_ref *out, const char **why)
{
	char detail[JSON_LINE_WHY_MAX];
	json_t *value = json_line_parse(text, len, 2, detail);
	int err;

	if (!value) {
		*why = "not one JSON object without duplicate properties";
		return -EINVAL;
	}
	err = spotref_from_json(value, out, why);
	json_decref(value);
	return err;
}

static json_t *name_json(const struct spl_name *n)
{
	return json_stringn(n->b, n->len);
}

json_t *spotref_to_json(const struct spl_spot_ref *ref)
{
	char generation[24];

	snprintf(generation, sizeof(generation), "%" PRIu64, ref->object_generation);
	return json_pack("{s:o, s:s, s:o, s:o}", "spotId", name_json(&ref->spot_id),
			 "objectGeneration", generation, "meshName", name_json(&ref->mesh_name),
			 "nodeRid", name_json(&ref->node_rid));
}
