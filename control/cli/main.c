/* SPDX-License-Identifier: BSD-3-Clause */
/* spotctl: the operator's command line. Everything is in run.c. */
#include "control/cli/run.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv, stdin, stdout, stderr);
}
