/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake dataplane as a process: `fake_dataplane DIR [LANES [TYPE...]]`. Prints "listening" when
 * control may connect, ends with 0 when control says EXIT.
 */
#include "tests/lib/t_ctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct t_ctl_options o = {.dir = argc > 1 ? argv[1] : NULL};
	struct t_ctl *f;
	int rc;

	if (argc < 2 || argc > 3 + T_CTL_TYPES_MAX) {
		fprintf(stderr, "usage: fake_dataplane DIR [LANES [TYPE...]]\n");
		return 2;
	}
	if (argc > 2)
		o.lanes = (uint32_t)strtoul(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++)
		o.types[i - 3] = argv[i];
	rc = t_ctl_open(&f, &o);
	if (rc < 0) {
		fprintf(stderr, "fake_dataplane: %s: %s\n", argv[1], strerror(-rc));
		return 1;
	}
	printf("listening\n");
	fflush(stdout);
	while (!t_ctl_seen(f)->exited)
		t_ctl_step(f, 1000);
	for (int i = 0; i < 100 && t_ctl_connected(f); i++)
		t_ctl_step(f, 10);
	t_ctl_close(f);
	return 0;
}
