/* SPDX-License-Identifier: BSD-3-Clause */
/* The commented example and the reference page, from the option table. Pure but for the stream. */
#include "control/config/generate.h"
#include "control/config/options.h"

#include <string.h>

static void write_range(FILE *f, const struct conf_option *o)
{
	switch (o->kind) {
	case CONF_KIND_INT:
		fprintf(f, "integer %lld..%lld", (long long)o->min, (long long)o->max);
		break;
	case CONF_KIND_INTS:
		fprintf(f, "integers %lld..%lld, at most %d", (long long)o->min, (long long)o->max,
			CONF_LIST_MAX);
		break;
	case CONF_KIND_CHOICE:
		for (const char *at = o->choices; *at;) {
			int n = (int)strcspn(at, "|");

			fprintf(f, "%s\"%.*s\"", at == o->choices ? "" : " or ", n, at);
			at += at[n] ? n + 1 : n;
		}
		break;
	case CONF_KIND_MODE:
		fputs("file mode, octal in quotes", f);
		break;
	case CONF_KIND_IPV4:
		fputs("IPv4 address", f);
		break;
	case CONF_KIND_TEXTS:
	case CONF_KIND_PATHS:
		fprintf(f, "%s of %lld..%lld bytes, at most %d",
			o->kind == CONF_KIND_PATHS ? "absolute paths" : "texts", (long long)o->min,
			(long long)o->max, CONF_LIST_MAX);
		break;
	case CONF_KIND_PATH:
		fprintf(f, "absolute path, at most %lld bytes", (long long)o->max);
		break;
	case CONF_KIND_MODULE:
	case CONF_KIND_TEXT:
	case CONF_KIND_WORD:
		fprintf(f, "text of %lld..%lld bytes", (long long)o->min, (long long)o->max);
		break;
	}
}

static void write_default(FILE *f, const struct conf_option *o)
{
	if (o->kind == CONF_KIND_INT)
		fputs(o->def, f);
	else if (conf_kind_is_list(o->kind))
		fprintf(f, *o->def ? "[\"%s\"]" : "[%s]", o->def);
	else
		fprintf(f, "\"%s\"", o->def);
}

/* Writes `text` as comment lines of at most 98 columns. */
static void write_comment(FILE *f, const char *indent, const char *text)
{
	while (*text) {
		size_t room = 88, n = strlen(text);

		if (n > room) {
			n = room;
			while (n > 0 && text[n] != ' ')
				n--;
		}
		fprintf(f, "%s# %.*s\n", indent, (int)n, text);
		text += n;
		text += *text == ' ';
	}
}

static void write_option(FILE *f, const char *indent, const char *name, const struct conf_option *o,
			 const char *value)
{
	write_comment(f, indent, o->help);
	fprintf(f, "%s# (", indent);
	write_range(f, o);
	fprintf(f, "%s)\n%s", o->reloadable ? "; may change while running" : "", indent);
	if (value) {
		fprintf(f, "%s = \"%s\";\n\n", name, value);
		return;
	}
	fprintf(f, "#%s = ", name);
	write_default(f, o);
	fputs(";\n\n", f);
}

static void write_section(FILE *f, const struct conf_section *s)
{
	size_t n = strlen(s->name);

	fprintf(f, "# %s\n%s: {\n", s->help, s->name);
	for (unsigned i = 0; i < conf_top.n; i++) {
		const struct conf_option *o = &conf_top.o[i];

		if (strncmp(o->path, s->name, n) == 0 && o->path[n] == '.')
			write_option(f, "\t", o->path + n + 1, o, NULL);
	}
	fputs("};\n\n", f);
}

static const char *sample(const char *name)
{
	static const char *const samples[][2] = {
		{"security", "none"},  {"name", "p0"},
		{"ip", "192.0.2.1"},   {"device", "net_af_packet0,iface=eth1"},
		{"module", "room.so"},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		if (strcmp(samples[i][0], name) == 0)
			return samples[i][1];
	return NULL;
}

static void write_item(FILE *f, const struct conf_table *t)
{
	for (unsigned i = 0; i < t->n; i++)
		write_option(f, "\t", t->o[i].path, &t->o[i],
			     t->o[i].def ? NULL : sample(t->o[i].path));
}

void conf_example_write(FILE *f)
{
	fputs("# Spotlane: every option, commented out at its default. What is not commented out\n"
	      "# must be given. Check a file with `spotlane-control --check FILE`. The file must\n"
	      "# not be writable by others.\n"
	      "# Generated from control/config/config_opts.h by `ninja -C build generated`.\n\n",
	      f);
	for (unsigned i = 0; i < conf_top.n; i++)
		if (!strchr(conf_top.o[i].path, '.'))
			write_option(f, "", conf_top.o[i].path, &conf_top.o[i],
				     conf_top.o[i].def ? NULL : sample(conf_top.o[i].path));
	fputs("# Ports, at least one.\nports: ( {\n", f);
	write_item(f, &conf_port_table);
	fputs("} );\n\n# Stage modules: the handlers of Spots.\nstages: ( {\n", f);
	write_item(f, &conf_stage_table);
	fputs("} );\n\n", f);
	for (unsigned i = 0; i < conf_n_sections; i++)
		write_section(f, &conf_sections[i]);
}

static void write_row(FILE *f, const char *name, const struct conf_option *o)
{
	fprintf(f, "| `%s` | ", name);
	write_range(f, o);
	fputs(" | ", f);
	if (o->def) {
		fputc('`', f);
		write_default(f, o);
		fputc('`', f);
	} else {
		fputs("must be given", f);
	}
	fprintf(f, " | %s | %s |\n", o->reloadable ? "yes" : "no", o->help);
}

static void write_heading(FILE *f, const char *name, const char *help)
{
	fprintf(f, "\n## %s\n\n%s\n\n", name, help);
	fputs("| option | value | default | while running | meaning |\n", f);
	fputs("|---|---|---|---|---|\n", f);
}

static const char preface[] =
	"# Configuration\n\n"
	"Generated from `control/config/config_opts.h` by `ninja -C build generated`; do not "
	"edit.\n"
	"\n"
	"The control process reads one file; the dataplane reads none, it gets what it needs from\n"
	"control. `spotlane-control --check FILE` and `spotctl config check FILE` say whether a "
	"file is\ngood, `spotctl config show` prints the values in effect and where each came "
	"from. "
	"A commented\nexample with every option is `config/spotlane.cfg`.\n\n"
	"The notation is libconfig's: `name = value;`, groups `{ }`, lists `( )`, arrays `[ ]`, "
	"texts in\nquotes, comments `#`, `//`, `/* */`. `@include \"file\"` on a line of its own "
	"reads another file,\nrelative to the one that has it, at most 10 levels deep. A file is "
	"at "
	"most 1 MiB of UTF-8.\n\n"
	"What is refused, with file and line: unknown names (with the nearest known one), a value "
	"of "
	"the\nwrong type, out of range or wrapped, a name given twice, an integer with a leading "
	"zero, "
	"a file\nthat others may write, and combinations that cannot work. Nothing is started "
	"then.\n\n"
	"\"While running\" says whether a value may change without a restart. SIGHUP is ignored; "
	"no "
	"file is\nread again.\n";

void conf_reference_write(FILE *f)
{
	char help[64];

	fputs(preface, f);
	write_heading(f, "Outside sections", "Options without a section.");
	for (unsigned i = 0; i < conf_top.n; i++)
		if (!strchr(conf_top.o[i].path, '.'))
			write_row(f, conf_top.o[i].path, &conf_top.o[i]);
	snprintf(help, sizeof(help), "A list of 1..%d groups.", CONF_PORTS_MAX);
	write_heading(f, "ports", help);
	for (unsigned i = 0; i < conf_port_table.n; i++)
		write_row(f, conf_port_table.o[i].path, &conf_port_table.o[i]);
	snprintf(help, sizeof(help), "A list of at most %d groups.", CONF_STAGES_MAX);
	write_heading(f, "stages", help);
	for (unsigned i = 0; i < conf_stage_table.n; i++)
		write_row(f, conf_stage_table.o[i].path, &conf_stage_table.o[i]);
	for (unsigned s = 0; s < conf_n_sections; s++) {
		size_t n = strlen(conf_sections[s].name);

		write_heading(f, conf_sections[s].name, conf_sections[s].help);
		for (unsigned i = 0; i < conf_top.n; i++)
			if (strncmp(conf_top.o[i].path, conf_sections[s].name, n) == 0 &&
			    conf_top.o[i].path[n] == '.')
				write_row(f, conf_top.o[i].path, &conf_top.o[i]);
	}
}
