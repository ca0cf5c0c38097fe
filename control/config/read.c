/* SPDX-License-Identifier: BSD-3-Clause */
/* From libconfig's tree to struct config, driven by the option table: see read.h. The tree lives
 * only during conf_read(). */
#include "control/config/read.h"

#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CONFIG_TYPE_LIST == 8, "the words below follow libconfig's types");

static const char *type_words(const config_setting_t *s)
{
	static const char *const words[] = {
		"nothing", "a group",	    "an integer", "an integer", "a number with a fraction",
		"a text",  "true or false", "an array",	  "a list"};
	int type = config_setting_type(s);

	return type >= 0 && type <= CONFIG_TYPE_LIST ? words[type] : "something else";
}

static void fail(const struct conf_reader *r, const config_setting_t *s, const char *path,
		 const char *why)
{
	unsigned line;
	const char *file = conf_source_at(r->src, config_setting_source_line(s), &line);

	conf_report_add(r->rep, file, line, "%s: %s", path, why);
}

static bool is_integer(const config_setting_t *s)
{
	return config_setting_type(s) == CONFIG_TYPE_INT ||
	       config_setting_type(s) == CONFIG_TYPE_INT64;
}

/* One scalar into its member. */
static void put_scalar(const struct conf_reader *r, const config_setting_t *s,
		       const struct conf_option *o, void *base, const char *path)
{
	bool wants_int = o->kind == CONF_KIND_INT || o->kind == CONF_KIND_INTS;
	char why[CONF_WHY_MAX];

	if (wants_int && is_integer(s)) {
		if (!conf_put_int(o, base, config_setting_get_int64(s), why))
			fail(r, s, path, why);
	} else if (!wants_int && config_setting_type(s) == CONFIG_TYPE_STRING) {
		if (!conf_put_text(o, base, config_setting_get_string(s), why))
			fail(r, s, path, why);
	} else {
		snprintf(why, sizeof(why), "must be %s, not %s", conf_kind_words(o->kind),
			 type_words(s));
		fail(r, s, path, why);
	}
}

static void put_option(const struct conf_reader *r, const config_setting_t *s,
		       const struct conf_option *o, void *base, const char *path)
{
	char why[CONF_WHY_MAX];

	if (!conf_kind_is_list(o->kind)) {
		put_scalar(r, s, o, base, path);
		return;
	}
	if (!config_setting_is_array(s) && !config_setting_is_list(s)) {
		snprintf(why, sizeof(why), "must be %s, not %s", conf_kind_words(o->kind),
			 type_words(s));
		fail(r, s, path, why);
		return;
	}
	for (int i = 0; i < config_setting_length(s); i++) {
		char item[CONF_WHY_MAX];

		snprintf(item, sizeof(item), "%s[%d]", path, i);
		put_scalar(r, config_setting_get_elem(s, (unsigned)i), o, base, item);
	}
}

static const struct conf_option *find_option(const struct conf_table *t, const char *path,
					     unsigned *index)
{
	for (*index = 0; *index < t->n; ++*index)
		if (strcmp(t->o[*index].path, path) == 0)
			return &t->o[*index];
	return NULL;
}

static void unknown(const struct conf_reader *r, const config_setting_t *s,
		    const struct conf_table *t, const char *prefix, const char *shown)
{
	char near[64], why[CONF_WHY_MAX];
	const char *name = config_setting_name(s);
	const char *hit = conf_nearest(t, prefix, name, near, sizeof(near));

	if (hit && strcasecmp(hit, name) == 0)
		snprintf(why, sizeof(why), "unknown; names are case-sensitive: \"%s\"", hit);
	else if (hit)
		snprintf(why, sizeof(why), "unknown; did you mean \"%s\"?", hit);
	else
		snprintf(why, sizeof(why), "unknown");
	fail(r, s, shown, why);
}

static void read_section(struct conf_reader *r, const config_setting_t *group)
{
	const char *name = config_setting_name(group);
	char prefix[64], path[CONF_WHY_MAX];

	if (!config_setting_is_group(group)) {
		snprintf(path, sizeof(path), "must be a group { ... }, not %s", type_words(group));
		fail(r, group, name, path);
		return;
	}
	snprintf(prefix, sizeof(prefix), "%s.", name);
	for (int i = 0; i < config_setting_length(group); i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const struct conf_option *o;
		unsigned index;

		snprintf(path, sizeof(path), "%s%.64s", prefix, config_setting_name(s));
		o = find_option(&conf_top, path, &index);
		if (!o) {
			unknown(r, s, &conf_top, prefix, path);
			continue;
		}
		r->top.at[index] = config_setting_source_line(s);
		put_option(r, s, o, r->cfg, path);
	}
}

/* Sets what is missing to its default, or complains that it must be given. */
static void put_defaults(const struct conf_reader *r, const struct conf_table *t,
			 const struct conf_lines *lines, void *base, const char *where,
			 unsigned line)
{
	char why[CONF_WHY_MAX];
	unsigned real;
	const char *file = conf_source_at(r->src, line, &real);

	for (unsigned i = 0; i < t->n; i++) {
		const struct conf_option *o = &t->o[i];

		if (lines->at[i])
			continue;
		if (!o->def && strcmp(o->path, "security") == 0)
			conf_report_add(r->rep, file, real,
					"security: must be set to \"none\": links are not "
					"authenticated yet, and the file has to say so");
		else if (!o->def)
			conf_report_add(r->rep, file, real, "%s%s: must be given", where, o->path);
		else if (!conf_put_default(o, base, why))
			conf_report_add(r->rep, file, real, "%s%s: %s", where, o->path, why);
	}
}

static void read_item(struct conf_reader *r, const config_setting_t *group,
		      const struct conf_table *t, void *base, struct conf_lines *lines,
		      const char *where)
{
	char path[CONF_WHY_MAX];

	for (int i = 0; i < config_setting_length(group); i++) {
		config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const struct conf_option *o;
		unsigned index;

		snprintf(path, sizeof(path), "%s%.64s", where, config_setting_name(s));
		o = find_option(t, config_setting_name(s), &index);
		if (!o) {
			unknown(r, s, t, "", path);
			continue;
		}
		lines->at[index] = config_setting_source_line(s);
		put_option(r, s, o, base, path);
	}
	put_defaults(r, t, lines, base, where, config_setting_source_line(group));
}

struct list_of_groups {
	const struct conf_table *table;
	void **items;
	unsigned *n;
	size_t item_size;
	unsigned max;
	struct conf_lines *lines;
	unsigned *begins;
};

static void read_list(struct conf_reader *r, const config_setting_t *list,
		      const struct list_of_groups *l)
{
	const char *name = l->table->list;
	char why[CONF_WHY_MAX], where[64];
	unsigned n = (unsigned)config_setting_length(list);

	if (!config_setting_is_list(list)) {
		snprintf(why, sizeof(why), "must be a list of groups ( { ... }, { ... } ), not %s",
			 type_words(list));
		fail(r, list, name, why);
		return;
	}
	if (n > l->max) {
		snprintf(why, sizeof(why), "%u entries are too many (max %u)", n, l->max);
		fail(r, list, name, why);
		return;
	}
	*l->items = calloc(n ? n : 1, l->item_size);
	if (!*l->items) {
		fail(r, list, name, "no memory");
		return;
	}
	*l->n = n;
	for (unsigned i = 0; i < n; i++) {
		const config_setting_t *group = config_setting_get_elem(list, i);

		snprintf(where, sizeof(where), "%s[%u]", name, i);
		l->begins[i] = config_setting_source_line(group);
		if (!config_setting_is_group(group)) {
			snprintf(why, sizeof(why), "must be a group { ... }, not %s",
				 type_words(group));
			fail(r, group, where, why);
			continue;
		}
		snprintf(where, sizeof(where), "%s[%u].", name, i);
		read_item(r, group, l->table, (char *)*l->items + i * l->item_size, &l->lines[i],
			  where);
	}
}

static bool is_section(const char *name)
{
	for (unsigned i = 0; i < conf_n_sections; i++)
		if (strcmp(conf_sections[i].name, name) == 0)
			return true;
	return false;
}

static void read_top(struct conf_reader *r, const config_setting_t *s)
{
	const char *name = config_setting_name(s);
	struct config *cfg = r->cfg;
	void *ports = NULL, *stages = NULL;
	struct list_of_groups lp = {&conf_port_table, &ports,	&cfg->n_ports, sizeof(*cfg->ports),
				    CONF_PORTS_MAX,   r->ports, r->port_line};
	struct list_of_groups ls = {&conf_stage_table,	  &stages,	   &cfg->n_stages,
				    sizeof(*cfg->stages), CONF_STAGES_MAX, r->stages,
				    r->stage_line};
	const struct conf_option *o;
	unsigned index;

	if (is_section(name)) {
		read_section(r, s);
	} else if (strcmp(name, conf_port_table.list) == 0) {
		read_list(r, s, &lp);
		cfg->ports = ports;
	} else if (strcmp(name, conf_stage_table.list) == 0) {
		read_list(r, s, &ls);
		cfg->stages = stages;
	} else if ((o = find_option(&conf_top, name, &index)) != NULL) {
		r->top.at[index] = config_setting_source_line(s);
		put_option(r, s, o, cfg, name);
	} else {
		unknown(r, s, &conf_top, "", name);
	}
}

void conf_read(struct conf_reader *r)
{
	const config_setting_t *root;
	config_t tree;

	config_init(&tree);
	if (config_read_string(&tree, r->src->text ? r->src->text : "") != CONFIG_TRUE) {
		unsigned line;
		const char *file =
			conf_source_at(r->src, (unsigned)config_error_line(&tree), &line);

		conf_report_add(
			r->rep, file, line, "%s%s", config_error_text(&tree),
			strcmp(config_error_text(&tree), "syntax error") == 0
				? " (texts need quotes; a name, '=' and a value; groups { }, "
				  "lists ( ), arrays [ ])"
				: "");
		config_destroy(&tree);
		return;
	}
	root = config_root_setting(&tree);
	for (int i = 0; i < config_setting_length(root); i++)
		read_top(r, config_setting_get_elem(root, (unsigned)i));
	put_defaults(r, &conf_top, &r->top, r->cfg, "", 0);
	config_destroy(&tree);
}
