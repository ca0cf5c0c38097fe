/* SPDX-License-Identifier: BSD-3-Clause */
/* Every option: its default, its bounds, values outside, values that libconfig would wrap, each
 * wrong type; driven by the option table itself, so that a new option is covered at once. */
#include "tests/lib/t_main.h"
#include "tests/unit/config/t_conf.h"
#include "control/config/options.h"

#include <stdlib.h>
#include <string.h>

static const struct conf_table *const tables[] = {&conf_top, &conf_port_table, &conf_stage_table};

static void set_sample(FILE *f, const char *skip, const char *name, const char *value)
{
	if (strcmp(skip, name) != 0)
		fprintf(f, " %s = \"%s\";", name, value);
}

/* A whole file in which option `o` of table `t` is `value`, alone on line 3. */
static char *file_with(const struct conf_table *t, const struct conf_option *o, const char *value)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	const char *dot = strchr(o->path, '.');
	bool top = !t->list;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(top && strcmp(o->path, "security") == 0 ? "\n" : T_CONF_SECURITY, f);
	fputs(t == &conf_port_table ? "\n" : T_CONF_PORT, f);
	if (!top) {
		fprintf(f, "%s: ( { %s = %s;", t->list, o->path, value);
		if (t == &conf_port_table) {
			set_sample(f, o->path, "name", "p0");
			set_sample(f, o->path, "device", "net_null0");
			set_sample(f, o->path, "ip", "10.0.0.1");
		} else {
			set_sample(f, o->path, "module", "a.so");
		}
		fputs(" } );\n", f);
	} else if (dot) {
		fprintf(f, "%.*s: { %s = %s; };\n", (int)(dot - o->path), o->path, dot + 1, value);
	} else {
		fprintf(f, "%s = %s;\n", o->path, value);
	}
	fclose(f);
	return text;
}

static void refuse(const struct conf_table *t, const struct conf_option *o, const char *value,
		   const char *part)
{
	char *text = file_with(t, o, value);

	t_conf_refused(text, "t.cfg:3: ", part);
	free(text);
}

static void each_option_default_is_good(void)
{
	struct config *cfg = t_conf_accepted(T_CONF_GOOD);

	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(cfg->timeouts.send_ms, 1000);
	CU_ASSERT_EQUAL(cfg->timeouts.request_ms, 30000);
	CU_ASSERT_EQUAL(cfg->lease.renew_ms, 5000);
	CU_ASSERT_EQUAL(cfg->lease.timeout_ms, 3000);
	CU_ASSERT_EQUAL(cfg->lease.ttl_ms, 15000);
	CU_ASSERT_EQUAL(cfg->lease.margin_ms, 5000);
	CU_ASSERT_EQUAL(cfg->limits.message_max_bytes, 1048576);
	CU_ASSERT_EQUAL(cfg->limits.spot_queue_count, 4096);
	CU_ASSERT_EQUAL(cfg->limits.spot_queue_bytes, 67108864);
	CU_ASSERT_EQUAL(cfg->limits.lifecycle_queue_count, 256);
	CU_ASSERT_EQUAL(cfg->limits.lifecycle_queue_bytes, 4194304);
	CU_ASSERT_EQUAL(cfg->authority.reclaim, CONF_RECLAIM_MANUAL);
	CU_ASSERT_EQUAL(cfg->store.backend, CONF_STORE_SQLITE);
	CU_ASSERT_EQUAL(cfg->control.socket_mode, 0660);
	CU_ASSERT_EQUAL(cfg->dataplane.agent_cpu, -1);
	CU_ASSERT_EQUAL(cfg->dataplane.lcores.n, 0);
	CU_ASSERT_EQUAL(cfg->stage_dirs.n, 1);
	CU_ASSERT_EQUAL(cfg->n_ports, 1);
	CU_ASSERT_EQUAL(cfg->ports[0].ip, 0x0a000001);
	CU_ASSERT_EQUAL(cfg->ports[0].gateway, 0);
	CU_ASSERT_EQUAL(cfg->ports[0].udp_base, 4700);
	conf_free(cfg);
}

/* The member can hold min and max, so that storing never cuts. */
static void each_range_fits_its_member(void)
{
	for (size_t k = 0; k < T_COUNT(tables); k++)
		for (unsigned i = 0; i < tables[k]->n; i++) {
			const struct conf_option *o = &tables[k]->o[i];
			bool fits = o->size >= 8 || o->max < (1LL << (8 * o->size)) ||
				    o->kind != CONF_KIND_INT;

			if (o->min < 0)
				fits = o->size == 4 && o->max < (1LL << 31);
			if (!fits)
				printf("  %s does not fit\n", o->path);
			CU_ASSERT(fits);
		}
}

static void integers_out_of_range_are_refused(void)
{
	for (size_t k = 0; k < T_COUNT(tables); k++)
		for (unsigned i = 0; i < tables[k]->n; i++) {
			const struct conf_option *o = &tables[k]->o[i];
			char value[32];

			if (o->kind != CONF_KIND_INT)
				continue;
			snprintf(value, sizeof(value), "%lld", (long long)o->min - 1);
			refuse(tables[k], o, value, "out of range");
			snprintf(value, sizeof(value), "%lld", (long long)o->max + 1);
			refuse(tables[k], o, value, "out of range");
		}
}

/* Values that libconfig 1.5 turns silently into -2147483648, 0, -1, 0 and -1. */
static void integers_never_wrap(void)
{
	static const char *const values[] = {
		"2147483648",	      "4294967296",	      "0xFFFFFFFF",
		"4294967296L",	      "18446744073709551616", "99999999999999999999",
		"0xFFFFFFFFFFFFFFFF", "-9223372036854775809", "9223372036854775808LL"};

	for (size_t k = 0; k < T_COUNT(tables); k++)
		for (unsigned i = 0; i < tables[k]->n; i++) {
			const struct conf_option *o = &tables[k]->o[i];

			if (o->kind != CONF_KIND_INT)
				continue;
			for (size_t v = 0; v < T_COUNT(values); v++)
				if (strtoull(values[v], NULL, 0) > (uint64_t)o->max)
					refuse(tables[k], o, values[v], "out of range");
		}
	refuse(&conf_top, &conf_top.o[conf_top.n - 1], "99999999999999999999",
	       "out of range of any integer");
}

static void large_values_arrive_whole(void)
{
	struct config *cfg = t_conf_accepted(
		T_CONF_GOOD "limits: { spot_queue_bytes = 4294967296; credit_pool_bytes = "
			    "1099511627776L; spots = 0x7FFFFFFF; };\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(cfg->limits.spot_queue_bytes, 4294967296);
	CU_ASSERT_EQUAL(cfg->limits.credit_pool_bytes, 1099511627776);
	CU_ASSERT_EQUAL(cfg->limits.spots, 2147483647);
	conf_free(cfg);
}

static void each_wrong_type_is_refused(void)
{
	static const struct {
		const char *value, *words;
	} wrong[] = {{"7", "not an integer"},	    {"\"7\"", "not a text"},
		     {"true", "not true or false"}, {"2.9", "not a number with a fraction"},
		     {"{ }", "not a group"},	    {"[ ]", "not an array"},
		     {"( )", "not a list"}};

	for (size_t k = 0; k < T_COUNT(tables); k++)
		for (unsigned i = 0; i < tables[k]->n; i++) {
			const struct conf_option *o = &tables[k]->o[i];
			bool list = conf_kind_is_list(o->kind);
			bool is_int = o->kind == CONF_KIND_INT;

			for (size_t w = 0; w < T_COUNT(wrong); w++) {
				bool good = list ? w >= 5 : is_int ? w == 0 : w == 1;

				if (!good)
					refuse(tables[k], o, wrong[w].value, wrong[w].words);
			}
			if (list)
				refuse(tables[k], o, o->kind == CONF_KIND_INTS ? "[\"1\"]" : "[1]",
				       "[0]: must be");
		}
}

static char *repeat(char c, size_t n, const char *start)
{
	char *text = malloc(n + 3);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	memset(text, c, n + 2);
	text[0] = '"';
	memcpy(text + 1, start, strlen(start));
	text[n + 1] = '"';
	text[n + 2] = '\0';
	return text;
}

/* Names of max - 1, max and max + 1 bytes. */
static void text_lengths_are_kept(void)
{
	for (size_t k = 0; k < T_COUNT(tables); k++)
		for (unsigned i = 0; i < tables[k]->n; i++) {
			const struct conf_option *o = &tables[k]->o[i];
			bool text = o->kind == CONF_KIND_TEXT || o->kind == CONF_KIND_WORD ||
				    o->kind == CONF_KIND_PATH || o->kind == CONF_KIND_MODULE;
			const char *start =
				o->kind == CONF_KIND_PATH || o->kind == CONF_KIND_MODULE ? "/" : "";

			if (!text || strstr(o->path, "group"))
				continue;
			for (int d = -1; d <= 1; d++) {
				char *value = repeat('a', (size_t)(o->max + d), start);
				char *file = file_with(tables[k], o, value);

				if (d > 0)
					t_conf_refused(file, "t.cfg:3: ", "too long");
				else
					conf_free(t_conf_accepted(file));
				free(file);
				free(value);
			}
			if (o->min > 0)
				refuse(tables[k], o, "\"\"", "must not be empty");
		}
}

static void modes_are_octal_texts(void)
{
	static const struct conf_option *mode;
	struct config *cfg;

	for (unsigned i = 0; i < conf_top.n; i++)
		if (conf_top.o[i].kind == CONF_KIND_MODE)
			mode = &conf_top.o[i];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mode);
	refuse(&conf_top, mode, "0660", "leading zero");
	refuse(&conf_top, mode, "660", "octal file mode in quotes");
	refuse(&conf_top, mode, "0x1B0", "octal file mode in quotes");
	refuse(&conf_top, mode, "\"07777\"", "no file mode");
	refuse(&conf_top, mode, "\"1777\"", "no file mode");
	refuse(&conf_top, mode, "\"0680\"", "no file mode");
	refuse(&conf_top, mode, "\"\"", "no file mode");
	refuse(&conf_top, mode, "\"-660\"", "no file mode");
	refuse(&conf_top, mode, "\"0060\"", "let the owner read and write");
	refuse(&conf_top, mode, "\"0770\"", "nobody execute");
	cfg = t_conf_accepted(T_CONF_GOOD "control: { socket_mode = \"600\"; };\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	CU_ASSERT_EQUAL(cfg->control.socket_mode, 0600);
	conf_free(cfg);
}

static void bad_texts_are_refused(void)
{
	t_conf_refused(T_CONF_GOOD "node: { mesh = \"a\\xffb\"; };\n",
		       "t.cfg:3: node.mesh: ", "UTF-8");
	t_conf_refused(T_CONF_GOOD "node: { mesh = \"a\\nb\"; };\n",
		       "t.cfg:3: node.mesh: ", "control character");
	t_conf_refused(T_CONF_GOOD "node: { name_prefix = \"a b\"; };\n",
		       "t.cfg:3: node.name_prefix: ", "letters, digits");
	t_conf_refused(T_CONF_GOOD "store: { path = \"store.db\"; };\n",
		       "t.cfg:3: store.path: ", "absolute");
	t_conf_refused(T_CONF_GOOD "stages: ( { module = \"x/a.so\"; } );\n",
		       "t.cfg:3: stages[0].module: ", "absolute path");
	t_conf_refused(T_CONF_GOOD "store: { backend = \"Sqlite\"; };\n",
		       "t.cfg:3: store.backend: ", "none of memory|sqlite");
	t_conf_refused(T_CONF_GOOD "store: { backend = \"a\\nb\\x1b[31m\"; };\n",
		       "t.cfg:3: store.backend: \"a?b?[31m\" is none of", "");
	conf_free(t_conf_accepted(T_CONF_GOOD "node: { mesh = \"Südstadt \\\"1\\\"\"; };\n"));
}

static void security_has_to_be_none(void)
{
	t_conf_refused(T_CONF_PORT, "t.cfg: security: ", "must be set to \"none\"");
	t_conf_refused("security = \"tls\";\n" T_CONF_PORT,
		       "t.cfg:1: security: ", "not authenticated yet");
}

static const struct t_case cases[] = {
	T(each_option_default_is_good),
	T(each_range_fits_its_member),
	T(integers_out_of_range_are_refused),
	T(integers_never_wrap),
	T(large_values_arrive_whole),
	T(each_wrong_type_is_refused),
	T(text_lengths_are_kept),
	T(modes_are_octal_texts),
	T(bad_texts_are_refused),
	T(security_has_to_be_none),
};

static const struct t_suite suites[] = {T_SUITE("conf_values", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
