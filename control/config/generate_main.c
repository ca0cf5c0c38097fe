/* SPDX-License-Identifier: BSD-3-Clause */
/* conf-generate example|reference FILE: writes a text made from the option table. */
#include "control/config/generate.h"

#include <stdbool.h>
#include <string.h>

int main(int argc, char **argv)
{
	FILE *f;
	bool bad;

	if (argc != 3 || (strcmp(argv[1], "example") != 0 && strcmp(argv[1], "reference") != 0)) {
		fputs("usage: conf-generate example|reference FILE\n", stderr);
		return 2;
	}
	f = fopen(argv[2], "w");
	if (!f) {
		perror(argv[2]);
		return 1;
	}
	if (strcmp(argv[1], "example") == 0)
		conf_example_write(f);
	else
		conf_reference_write(f);
	bad = ferror(f) != 0;
	if (fclose(f) != 0 || bad) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
