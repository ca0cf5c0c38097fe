/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: the configuration. Input: the text of a file. Aborts when a refused text has no
 * error, an accepted one breaks a range, or the values shown do not read back as the same values.
 */
#include "control/config/config.h"
#include "control/config/options.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Includes are looked for beside it: there is nothing. */
#define NAME "/nonexistent-directory/fuzz.cfg"

static cpu_set_t cpus(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t i = 0; i < 8; i++)
		CPU_SET(i, &set);
	return set;
}

static struct config *load(const char *text, size_t len)
{
	struct conf_report rep;
	cpu_set_t set = cpus();
	struct config *cfg = conf_load_text(NAME, text, len, &set, &rep);

	FUZZ_CHECK(!cfg == (rep.n > 0));
	for (unsigned i = 0; i < rep.n && i < CONF_ERRORS_MAX; i++) {
		FUZZ_CHECK(rep.item[i].file && rep.item[i].text);
		FUZZ_CHECK(rep.item[i].text[0] && !strchr(rep.item[i].text, '\n'));
	}
	conf_report_free(&rep);
	return cfg;
}

static void check_ranges(const struct config *c)
{
	FUZZ_CHECK(c->security == CONF_SECURITY_NONE);
	FUZZ_CHECK(c->dataplane.lanes >= 1 && c->dataplane.lanes <= CONF_LANES_MAX);
	FUZZ_CHECK(c->dataplane.lcores.n == 0 || c->dataplane.lcores.n == c->dataplane.lanes);
	FUZZ_CHECK(c->n_ports >= 1 && c->n_ports <= CONF_PORTS_MAX);
	FUZZ_CHECK(c->n_stages <= CONF_STAGES_MAX);
	FUZZ_CHECK(c->lease.renew_ms + c->lease.timeout_ms < c->lease.ttl_ms - c->lease.margin_ms);
	FUZZ_CHECK(strlen(c->control.socket) <= 107 && c->control.socket[0] == '/');
	FUZZ_CHECK((c->control.socket_mode & ~(mode_t)0666) == 0);
	for (unsigned i = 0; i < c->n_ports; i++) {
		FUZZ_CHECK(c->ports[i].ip != 0 && c->ports[i].udp_base <= 65280);
		FUZZ_CHECK(strlen(c->ports[i].name) >= 1 && strlen(c->ports[i].name) <= 31);
	}
}

/* Writes the shown options of one group: those that begin with `prefix` and have no further dot. */
static void write_group(FILE *f, const struct config *c, const char *prefix)
{
	size_t n = strlen(prefix);

	for (unsigned i = 0; i < c->n_shown; i++)
		if (strncmp(c->shown[i].path, prefix, n) == 0 && !strchr(c->shown[i].path + n, '.'))
			fprintf(f, "%s = %s;\n", c->shown[i].path + n, c->shown[i].value);
}

static void write_list(FILE *f, const struct config *c, const char *name, unsigned n)
{
	char prefix[32];

	fprintf(f, "%s: (", name);
	for (unsigned i = 0; i < n; i++) {
		snprintf(prefix, sizeof(prefix), "%s[%u].", name, i);
		fprintf(f, "%s {\n", i ? "," : "");
		write_group(f, c, prefix);
		fputs("}", f);
	}
	fputs(");\n", f);
}

static char *written(const struct config *c, size_t *len)
{
	char *text = NULL, prefix[32];
	FILE *f = open_memstream(&text, len);

	FUZZ_CHECK(f);
	write_group(f, c, "");
	write_list(f, c, "ports", c->n_ports);
	write_list(f, c, "stages", c->n_stages);
	for (unsigned i = 0; i < conf_n_sections; i++) {
		snprintf(prefix, sizeof(prefix), "%s.", conf_sections[i].name);
		fprintf(f, "%s: {\n", conf_sections[i].name);
		write_group(f, c, prefix);
		fputs("};\n", f);
	}
	fclose(f);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *a = load((const char *)data, size), *b;
	char *text;
	size_t len;

	if (!a)
		return 0;
	check_ranges(a);
	text = written(a, &len);
	b = load(text, len);
	FUZZ_CHECK(b && a->n_shown == b->n_shown);
	for (unsigned i = 0; i < a->n_shown; i++) {
		FUZZ_CHECK(strcmp(a->shown[i].path, b->shown[i].path) == 0);
		FUZZ_CHECK(strcmp(a->shown[i].value, b->shown[i].value) == 0);
	}
	free(text);
	conf_free(a);
	conf_free(b);
	return 0;
}
