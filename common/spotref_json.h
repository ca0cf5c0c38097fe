/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON form of a SpotRef (S-REF-2): exactly the texts spotId, objectGeneration, meshName and
 * nodeRid; the generation is a decimal text "1".."9223372036854775807". Pure; any thread. */
#ifndef SPL_COMMON_SPOTREF_JSON_H
#define SPL_COMMON_SPOTREF_JSON_H

#include <jansson.h>
#include <spotlane/ids.h>

/* Reads `value` into `out`. 0, or -EINVAL with `out` untouched and one sentence (static) in *why:
 * a missing, null, unknown or duplicate property, or a value of another form. Duplicates must have
 * been refused by the parser (json_line_parse() does). */
int spotref_from_json(const json_t *value, struct spl_spot_ref *out, const char **why);

/* Parses a text; as spotref_from_json(), duplicates included. */
int spotref_parse(const char *text, size_t len, struct spl_spot_ref *out, const char **why);

/* A new object that the caller owns; NULL when there is no memory. */
json_t *spotref_to_json(const struct spl_spot_ref *ref);

/* 0 and the number of a decimal text in 1..2^63-1 without leading zero or sign, else -EINVAL. */
int spotref_generation(const char *text, size_t len, uint64_t *out);

#endif
