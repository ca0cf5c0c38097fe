/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table as data, and how one value is checked, stored, freed and written.
 * Pure; any thread. Used by the reader, the generator and the tests only.
 */
#ifndef SPL_CONTROL_CONFIG_OPTIONS_H
#define SPL_CONTROL_CONFIG_OPTIONS_H

#include "control/config/config.h"

enum conf_kind {
	CONF_KIND_INT,
	CONF_KIND_TEXT,
	CONF_KIND_WORD,
	CONF_KIND_PATH,
	CONF_KIND_MODULE,
	CONF_KIND_CHOICE,
	CONF_KIND_MODE,
	CONF_KIND_IPV4,
	CONF_KIND_INTS,
	CONF_KIND_TEXTS,
	CONF_KIND_PATHS,
};

struct conf_option {
	const char *path;
	enum conf_kind kind;
	const char *choices;
	const char *def;
	int64_t min, max;
	bool reloadable;
	size_t offset, size; /* of the member */
	const char *help;
};

struct conf_table {
	const char *list; /* "ports"; NULL for the options outside lists */
	const struct conf_option *o;
	unsigned n;
};

struct conf_section {
	const char *name, *help;
};

extern const struct conf_table conf_top, conf_port_table, conf_stage_table;
extern const struct conf_section conf_sections[];
extern const unsigned conf_n_sections;

#define CONF_WHY_MAX 512

bool conf_kind_is_list(enum conf_kind kind);

/* "an integer", "a text": what the option expects, for messages and the reference. */
const char *conf_kind_words(enum conf_kind kind);

/* Checks `v` and stores it in the member of `o` in the struct at `base`. False with the reason in
 * `why` ("%lld is out of range (1..128)"); -ENOMEM counts as a reason. For a list option the value
 * is appended. */
bool conf_put_int(const struct conf_option *o, void *base, int64_t v, char why[CONF_WHY_MAX]);
bool conf_put_text(const struct conf_option *o, void *base, const char *v, char why[CONF_WHY_MAX]);

/* Stores the default; o->def must not be NULL. */
bool conf_put_default(const struct conf_option *o, void *base, char why[CONF_WHY_MAX]);

/* The value in the notation of the file, as malloc'ed text that the caller frees; NULL when there
 * is no memory. */
char *conf_value_text(const struct conf_option *o, const void *base);

/* Frees what the members of `t` in the struct at `base` own. */
void conf_free_members(const struct conf_table *t, void *base);

/* The known name nearest to `word`, or NULL when none is near: the options of `t` directly below
 * `prefix` ("lease."; "" = the top level, where sections and lists count too). `buf` holds it. */
const char *conf_nearest(const struct conf_table *t, const char *prefix, const char *word,
			 char *buf, size_t size);

#endif
