/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table as arrays, made from config_opts.h, and the search for a near name. Pure. */
#include "control/config/options.h"
#include "control/config/config_opts.h"

#include <string.h>
#include <strings.h>

#define COUNT(a)	  (sizeof(a) / sizeof((a)[0]))
#define MEMBER_SIZE(t, m) sizeof(((struct t *)0)->m)
#define CHANGE_START	  false
#define CHANGE_RELOAD	  true
#define ROW(path, base, member, kind, choices, def, min, max, change, help) \
	{path, \
	 CONF_KIND_##kind, \
	 choices, \
	 def, \
	 min, \
	 max, \
	 CHANGE_##change, \
	 offsetof(struct base, member), \
	 MEMBER_SIZE(base, member), \
	 help},

static const struct conf_option top[] = {CONF_TOP_OPTIONS(ROW)};
static const struct conf_option ports[] = {CONF_PORT_OPTIONS(ROW)};
static const struct conf_option stages[] = {CONF_STAGE_OPTIONS(ROW)};

const struct conf_table conf_top = {NULL, top, COUNT(top)};
const struct conf_table conf_port_table = {"ports", ports, COUNT(ports)};
const struct conf_table conf_stage_table = {"stages", stages, COUNT(stages)};

#define SECTION(name, help) {name, help},
const struct conf_section conf_sections[] = {CONF_SECTIONS(SECTION)};
const unsigned conf_n_sections = COUNT(conf_sections);

bool conf_kind_is_list(enum conf_kind kind)
{
	return kind == CONF_KIND_INTS || kind == CONF_KIND_TEXTS || kind == CONF_KIND_PATHS;
}

const char *conf_kind_words(enum conf_kind kind)
{
	static const char *const words[] = {
		[CONF_KIND_INT] = "an integer",
		[CONF_KIND_TEXT] = "a text",
		[CONF_KIND_WORD] = "a text",
		[CONF_KIND_PATH] = "a path in quotes",
		[CONF_KIND_MODULE] = "a path or file name in quotes",
		[CONF_KIND_CHOICE] = "a text",
		[CONF_KIND_MODE] = "an octal file mode in quotes, like \"0660\"",
		[CONF_KIND_IPV4] = "an IPv4 address in quotes",
		[CONF_KIND_INTS] = "a list of integers, like [0, 1]",
		[CONF_KIND_TEXTS] = "a list of texts, like [\"a\", \"b\"]",
		[CONF_KIND_PATHS] = "a list of paths, like [\"/a\", \"/b\"]",
	};

	return words[kind];
}

#define WORD_MAX 32

/* Edit distance with case ignored; words longer than WORD_MAX are far from everything. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned row[WORD_MAX + 1];

	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = strncasecmp(&a[i - 1], &b[j - 1], 1) == 0;
			unsigned best = diagonal + (same ? 0 : 1);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

struct nearest {
	const char *word;
	char *buf;
	size_t size;
	unsigned best;
};

static void consider(struct nearest *s, const char *name, size_t n)
{
	size_t len = strlen(s->word);
	unsigned d = distance(s->word, len, name, n);

	if (len >= 3 && len < n && strncasecmp(s->word, name, len) == 0 && d > 1)
		d = 1; /* the start of a name, mostly one without its unit */
	if (d >= s->best || n >= s->size)
		return;
	s->best = d;
	memcpy(s->buf, name, n);
	s->buf[n] = '\0';
}

const char *conf_nearest(const struct conf_table *t, const char *prefix, const char *word,
			 char *buf, size_t size)
{
	size_t n = strlen(prefix);
	unsigned far = strlen(word) < 5 ? 2 : 3;
	struct nearest s = {word, buf, size, far + 1};

	for (unsigned i = 0; i < t->n; i++)
		if (strncmp(t->o[i].path, prefix, n) == 0)
			consider(&s, t->o[i].path + n, strcspn(t->o[i].path + n, "."));
	if (n == 0 && !t->list) {
		consider(&s, conf_port_table.list, strlen(conf_port_table.list));
		consider(&s, conf_stage_table.list, strlen(conf_stage_table.list));
	}
	return s.best <= far ? buf : NULL;
}
