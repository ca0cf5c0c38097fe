/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading a configuration: scan, read, check, and the list that `config show` prints. Called at
 * start and by the checker; the result is immutable. */
#include "control/config/config.h"
#include "control/config/read.h"
#include "common/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Values come from the file: what could forge a line or upset a terminal becomes '?', and so does
 * half a character at the end of a cut value. */
static void clean(char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n;) {
		size_t step = utf8_sequence(text + i, n - i);
		unsigned char c = (unsigned char)text[i];

		if (step == 0 || c < 0x20 || c == 0x7f)
			text[i] = '?';
		i += step ? step : 1;
	}
}

void conf_report_add(struct conf_report *rep, const char *file, unsigned line, const char *format,
		     ...)
{
	va_list args;

	if (rep->n++ >= CONF_ERRORS_MAX)
		return;
	rep->item[rep->n - 1].file = strdup(file);
	rep->item[rep->n - 1].line = line;
	va_start(args, format);
	if (vasprintf(&rep->item[rep->n - 1].text, format, args) < 0)
		rep->item[rep->n - 1].text = NULL;
	else
		clean(rep->item[rep->n - 1].text);
	va_end(args);
}

void conf_report_free(struct conf_report *rep)
{
	for (unsigned i = 0; i < rep->n && i < CONF_ERRORS_MAX; i++) {
		free(rep->item[i].file);
		free(rep->item[i].text);
	}
	memset(rep, 0, sizeof(*rep));
}

void conf_report_print(const struct conf_report *rep, FILE *to)
{
	for (unsigned i = 0; i < rep->n && i < CONF_ERRORS_MAX; i++) {
		const char *file = rep->item[i].file ? rep->item[i].file : "?";
		const char *text = rep->item[i].text ? rep->item[i].text : "no memory";

		if (rep->item[i].line)
			fprintf(to, "%s:%u: %s\n", file, rep->item[i].line, text);
		else
			fprintf(to, "%s: %s\n", file, text);
	}
	if (rep->n > CONF_ERRORS_MAX)
		fprintf(to, "and %u more errors\n", rep->n - CONF_ERRORS_MAX);
}

static bool show_one(const struct conf_reader *r, const struct conf_option *o, const void *base,
		     const char *where, unsigned text_line)
{
	struct conf_shown *s = &r->cfg->shown[r->cfg->n_shown];
	unsigned line;
	const char *file = conf_source_at(r->src, text_line, &line);

	s->reloadable = o->reloadable;
	if (asprintf(&s->path, "%s%s", where, o->path) < 0)
		s->path = NULL;
	s->value = conf_value_text(o, base);
	if (text_line == 0)
		s->origin = strdup("default");
	else if (asprintf(&s->origin, "%s:%u", file, line) < 0)
		s->origin = NULL;
	r->cfg->n_shown++;
	return s->path && s->value && s->origin;
}

static bool show_table(const struct conf_reader *r, const struct conf_table *t, const void *base,
		       const char *where, const struct conf_lines *lines)
{
	for (unsigned i = 0; i < t->n; i++)
		if (!show_one(r, &t->o[i], base, where, lines->at[i]))
			return false;
	return true;
}

bool conf_show_fill(const struct conf_reader *r)
{
	struct config *c = r->cfg;
	char where[32];
	size_t n = conf_top.n + (size_t)c->n_ports * conf_port_table.n +
		   (size_t)c->n_stages * conf_stage_table.n;

	c->shown = calloc(n, sizeof(*c->shown));
	if (!c->shown || !show_table(r, &conf_top, c, "", &r->top))
		return false;
	for (unsigned i = 0; i < c->n_ports; i++) {
		snprintf(where, sizeof(where), "ports[%u].", i);
		if (!show_table(r, &conf_port_table, &c->ports[i], where, &r->ports[i]))
			return false;
	}
	for (unsigned i = 0; i < c->n_stages; i++) {
		snprintf(where, sizeof(where), "stages[%u].", i);
		if (!show_table(r, &conf_stage_table, &c->stages[i], where, &r->stages[i]))
			return false;
	}
	return true;
}

static bool keep_files(struct config *cfg, const struct conf_source *src)
{
	cfg->files = calloc(src->n_files, sizeof(*cfg->files));
	if (!cfg->files)
		return false;
	for (; cfg->n_files < src->n_files; cfg->n_files++) {
		cfg->files[cfg->n_files] = src->files[cfg->n_files];
		cfg->files[cfg->n_files].name = strdup(src->files[cfg->n_files].name);
		if (!cfg->files[cfg->n_files].name)
			return false;
	}
	return true;
}

static struct config *load(const char *path, const char *text, size_t len, const cpu_set_t *allowed,
			   struct conf_report *rep)
{
	struct conf_source src;
	struct conf_reader *r = calloc(1, sizeof(*r));
	struct config *cfg = calloc(1, sizeof(*cfg));
	cpu_set_t mine;

	memset(rep, 0, sizeof(*rep));
	CPU_ZERO(&mine);
	if (!allowed && sched_getaffinity(0, sizeof(mine), &mine) == 0)
		allowed = &mine;
	if (!r || !cfg || !allowed) {
		conf_report_add(rep, path, 0, "no memory, or the affinity mask cannot be read");
		goto free_both;
	}
	if (!conf_source_read(&src, path, text, len, rep))
		goto free_source;
	*r = (struct conf_reader){.cfg = cfg, .src = &src, .rep = rep};
	conf_read(r);
	if (rep->n == 0)
		conf_check_relations(r, allowed);
	if (rep->n > 0)
		goto free_source;
	cfg->file = strdup(path);
	if (!cfg->file || !keep_files(cfg, &src) || !conf_show_fill(r))
		conf_report_add(rep, path, 0, "no memory");
free_source:
	conf_source_free(&src);
free_both:
	free(r);
	if (rep->n > 0) {
		conf_free(cfg);
		cfg = NULL;
	}
	return cfg;
}

struct config *conf_load(const char *path, const cpu_set_t *allowed, struct conf_report *rep)
{
	return load(path, NULL, 0, allowed, rep);
}

struct config *conf_load_text(const char *name, const char *text, size_t len,
			      const cpu_set_t *allowed, struct conf_report *rep)
{
	return load(name, text, len, allowed, rep);
}

bool conf_file_changed(const struct config *cfg)
{
	return conf_source_changed(cfg->files, cfg->n_files);
}

void conf_free(struct config *cfg)
{
	if (!cfg)
		return;
	for (unsigned i = 0; i < cfg->n_ports; i++)
		conf_free_members(&conf_port_table, &cfg->ports[i]);
	for (unsigned i = 0; i < cfg->n_stages; i++)
		conf_free_members(&conf_stage_table, &cfg->stages[i]);
	for (unsigned i = 0; i < cfg->n_shown; i++) {
		free(cfg->shown[i].path);
		free(cfg->shown[i].value);
		free(cfg->shown[i].origin);
	}
	for (unsigned i = 0; i < cfg->n_files; i++)
		free(cfg->files[i].name);
	conf_free_members(&conf_top, cfg);
	free(cfg->ports);
	free(cfg->stages);
	free(cfg->shown);
	free(cfg->files);
	free(cfg->file);
	free(cfg);
}

int conf_check_main(const char *path, FILE *out, FILE *err)
{
	struct conf_report rep;
	struct config *cfg = conf_load(path, NULL, &rep);
	int status = cfg ? 0 : 1;

	if (cfg && out)
		fprintf(out, "%s: ok\n", path);
	else if (!cfg)
		conf_report_print(&rep, err);
	conf_report_free(&rep);
	conf_free(cfg);
	return status;
}
