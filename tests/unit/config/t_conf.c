/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the configuration tests: see t_conf.h. */
#include "tests/unit/config/t_conf.h"

#include <stdlib.h>
#include <string.h>

cpu_set_t t_conf_cpus(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t i = 0; i < 4; i++)
		CPU_SET(i, &set);
	return set;
}

struct config *t_conf_load(const char *text, struct conf_report *rep)
{
	cpu_set_t cpus = t_conf_cpus();

	return conf_load_text("t.cfg", text, strlen(text), &cpus, rep);
}

void t_conf_refused(const char *text, const char *start, const char *part)
{
	struct conf_report rep;
	struct config *cfg = t_conf_load(text, &rep);
	char *got = NULL;
	size_t n;
	FILE *f = open_memstream(&got, &n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	conf_report_print(&rep, f);
	fclose(f);
	CU_ASSERT_PTR_NULL(cfg);
	if (strncmp(got, start, strlen(start)) != 0 || !strstr(got, part)) {
		printf("  expected \"%s...%s\", got: %s\n", start, part, *got ? got : "no error\n");
		CU_FAIL("another error was expected");
	}
	free(got);
	conf_report_free(&rep);
	conf_free(cfg);
}

struct config *t_conf_accepted(const char *text)
{
	struct conf_report rep;
	struct config *cfg = t_conf_load(text, &rep);

	conf_report_print(&rep, stdout);
	CU_ASSERT_PTR_NOT_NULL(cfg);
	conf_report_free(&rep);
	return cfg;
}
