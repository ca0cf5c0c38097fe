/* SPDX-License-Identifier: BSD-3-Clause */
/* cli-generate FILE: writes docs/cli.md. */
#include "control/cli/commands.h"

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "w") : NULL;

	if (!f) {
		fputs("usage: cli-generate FILE\n", stderr);
		return 2;
	}
	cli_reference_write(f);
	if (fclose(f) != 0) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
