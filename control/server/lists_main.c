/* SPDX-License-Identifier: BSD-3-Clause */
/* lists-generate FILE: writes docs/counters.md. */
#include "control/server/lists.h"

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "w") : NULL;

	if (!f) {
		fputs("usage: lists-generate FILE\n", stderr);
		return 2;
	}
	lists_write(f);
	if (fclose(f) != 0) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
