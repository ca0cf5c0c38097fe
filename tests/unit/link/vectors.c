/* SPDX-License-Identifier: BSD-3-Clause */
/* See vectors.h. */
#include "vectors.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#define VECTORS 64

static struct vector vectors[VECTORS];
static unsigned n_vectors;

static void add_hex(struct vector *v, const char *line)
{
	unsigned byte;

	for (; sscanf(line, "%2x", &byte) == 1 && v->len < sizeof(v->b); line += 2)
		v->b[v->len++] = (uint8_t)byte;
}

int vectors_read(void)
{
	FILE *f = fopen(T_SOURCE_ROOT "/tests/data/wire/vectors.txt", "r");
	char line[256];

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (!colon) {
			add_hex(&vectors[n_vectors - 1], line);
		} else if (n_vectors < VECTORS) {
			snprintf(vectors[n_vectors].name, sizeof(vectors[0].name), "%.*s",
				 (int)(colon - line), line);
			n_vectors++;
		}
	}
	fclose(f);
	return n_vectors > 0 ? 0 : -1;
}

const struct vector *vector(const char *name)
{
	static const struct vector none;

	for (unsigned i = 0; i < n_vectors; i++)
		if (strcmp(vectors[i].name, name) == 0)
			return &vectors[i];
	printf("no vector %s\n", name);
	CU_FAIL("no such vector");
	return &none;
}

const struct vector *vector_at(unsigned i)
{
	return i < n_vectors ? &vectors[i] : NULL;
}
