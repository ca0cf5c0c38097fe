/* SPDX-License-Identifier: BSD-3-Clause */
/* mgmt-generate FILE: renews the method reference between its marks in docs/management-protocol.md.
 */
#include "control/server/reference.h"

#include <stdlib.h>
#include <string.h>

#define DOC_MAX 1048576

int main(int argc, char **argv)
{
	char *text = calloc(1, DOC_MAX);
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	char *begin, *end;
	int status = 1;

	if (!text || !f || fread(text, 1, DOC_MAX - 1, f) == 0) {
		fputs("usage: mgmt-generate FILE\n", stderr);
		goto free_text;
	}
	begin = strstr(text, MGMT_REFERENCE_BEGIN);
	end = strstr(text, MGMT_REFERENCE_END);
	if (!begin || !end || end < begin) {
		fprintf(stderr, "%s: the marks are missing\n", argv[1]);
		goto free_text;
	}
	f = freopen(argv[1], "w", f);
	if (!f) {
		perror(argv[1]);
		goto free_text;
	}
	begin += strlen(MGMT_REFERENCE_BEGIN);
	fwrite(text, 1, (size_t)(begin - text), f);
	mgmt_reference_write(f);
	fputs(end, f);
	status = ferror(f) ? 1 : 0;
free_text:
	if (f && fclose(f) != 0)
		status = 1;
	free(text);
	return status;
}
