/* SPDX-License-Identifier: BSD-3-Clause */
/* The file as a whole: syntax, unknown names, duplicates, includes, hostile bytes, permissions,
 * the generated texts and what `config show` prints. Works in a directory of its own. */
#include "tests/lib/t_main.h"
#include "tests/unit/config/t_conf.h"
#include "control/config/generate.h"
#include "control/config/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static int enter_dir(void)
{
	strcpy(dir, "/tmp/spotlane-conf-XXXXXX");
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave_dir(void)
{
	static const char *const names[] = {"a.cfg", "b.cfg", "big.cfg"};

	for (size_t i = 0; i < T_COUNT(names); i++)
		unlink(names[i]);
	for (int i = 0; i < 13; i++) {
		char name[32];

		snprintf(name, sizeof(name), "l%d.cfg", i);
		unlink(name);
	}
	return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void put_file(const char *name, const char *text, size_t len, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, text, len), (ssize_t)len);
	CU_ASSERT_EQUAL(fchmod(fd, mode), 0);
	close(fd);
}

static void put_text(const char *name, const char *text)
{
	put_file(name, text, strlen(text), 0600);
}

/* Loads the file `name` and compares the printed report. */
static void refused_file(const char *name, const char *start, const char *part)
{
	struct conf_report rep;
	cpu_set_t cpus = t_conf_cpus();
	struct config *cfg = conf_load(name, &cpus, &rep);
	char *got = NULL;
	size_t n;
	FILE *f = open_memstream(&got, &n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	conf_report_print(&rep, f);
	fclose(f);
	if (cfg || strncmp(got, start, strlen(start)) != 0 || !strstr(got, part)) {
		printf("  expected \"%s...%s\", got: %s\n", start, part, *got ? got : "no error\n");
		CU_FAIL("another error was expected");
	}
	free(got);
	conf_report_free(&rep);
	conf_free(cfg);
}

static struct config *accepted_file(const char *name)
{
	struct conf_report rep;
	cpu_set_t cpus = t_conf_cpus();
	struct config *cfg = conf_load(name, &cpus, &rep);

	conf_report_print(&rep, stdout);
	CU_ASSERT_PTR_NOT_NULL(cfg);
	conf_report_free(&rep);
	return cfg;
}

static void unknown_names_get_a_hint(void)
{
	t_conf_refused(T_CONF_GOOD "Ports: ( );\n",
		       "t.cfg:3: Ports: ", "case-sensitive: \"ports\"");
	t_conf_refused(T_CONF_GOOD "leese: { };\n", "t.cfg:3: leese: ", "did you mean \"lease\"");
	t_conf_refused(T_CONF_GOOD "lease: {\n ttl = 5; };\n",
		       "t.cfg:4: lease.ttl: ", "did you mean \"ttl_ms\"");
	t_conf_refused(T_CONF_GOOD "lease: {\n TTL_ms = 5; };\n",
		       "t.cfg:4: lease.TTL_ms: ", "case-sensitive");
	t_conf_refused(T_CONF_GOOD "quite_another = 1;\n", "t.cfg:3: quite_another: unknown\n", "");
	t_conf_refused(T_CONF_SECURITY "ports: ( { name = \"p0\"; device = \"net_null0\";\n"
				       "ipp = \"10.0.0.1\"; } );\n",
		       "t.cfg:3: ports[0].ipp: ", "did you mean \"ip\"");
	t_conf_refused(T_CONF_GOOD "stages: ( { module = \"a.so\";\n entri = \"x\"; } );\n",
		       "t.cfg:4: stages[0].entri: ", "did you mean \"entry\"");
}

static void missing_names_are_named(void)
{
	t_conf_refused(T_CONF_SECURITY "ports: (\n { name = \"p0\"; device = \"net_null0\"; } );\n",
		       "t.cfg:3: ports[0].ip: ", "must be given");
	t_conf_refused(T_CONF_SECURITY, "t.cfg: ports: ", "at least one port");
	t_conf_refused(T_CONF_SECURITY "ports: ( );\n", "t.cfg: ports: ", "at least one port");
}

static void duplicates_are_refused(void)
{
	t_conf_refused(T_CONF_GOOD "lease: { ttl_ms = 15000;\nttl_ms = 16000; };\n",
		       "t.cfg:4: ", "duplicate setting name");
	t_conf_refused(T_CONF_GOOD "lease: { };\nlease: { };\n",
		       "t.cfg:4: ", "duplicate setting name");
	t_conf_refused(T_CONF_GOOD T_CONF_SECURITY, "t.cfg:3: ", "duplicate setting name");
}

static void shapes_are_checked(void)
{
	t_conf_refused(T_CONF_GOOD "lease = 5;\n", "t.cfg:3: lease: ", "must be a group");
	t_conf_refused(T_CONF_SECURITY "ports = { };\n", "t.cfg:2: ports: ", "list of groups");
	t_conf_refused(T_CONF_SECURITY "ports: (\n5 );\n",
		       "t.cfg:3: ports[0]: ", "must be a group");
	t_conf_refused(T_CONF_GOOD "lease: { ttl_ms = ; };\n", "t.cfg:3: ", "syntax error");
	t_conf_refused(T_CONF_GOOD "dataplane: { hugepages = yes; };\n",
		       "t.cfg:3: ", "texts need quotes");
	t_conf_refused("", "t.cfg: ", "security: must be set");
}

static void every_error_is_reported_up_to_a_bound(void)
{
	struct conf_report rep;
	char text[4096] = T_CONF_GOOD;
	struct config *cfg;

	for (int i = 0; i < 40; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "wrong%d = 1;\n", i);
	cfg = t_conf_load(text, &rep);
	CU_ASSERT_PTR_NULL(cfg);
	CU_ASSERT_EQUAL(rep.n, 40);
	CU_ASSERT_EQUAL(rep.item[0].line, 3);
	CU_ASSERT_EQUAL(rep.item[CONF_ERRORS_MAX - 1].line, 3 + CONF_ERRORS_MAX - 1);
	conf_report_free(&rep);
}

static void includes_keep_file_and_line(void)
{
	struct config *cfg;

	put_text("a.cfg", "# first\n@include \"b.cfg\" # more\nlease: { ttl_ms = 20000; };\n");
	put_text("b.cfg", T_CONF_GOOD "\n// c\n/* d\n */ node: { mesh = \"m\"; };");
	cfg = accepted_file("a.cfg");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cfg);
	for (unsigned i = 0; i < cfg->n_shown; i++) {
		const struct conf_shown *s = &cfg->shown[i];

		if (strcmp(s->path, "node.mesh") == 0) {
			CU_ASSERT_STRING_EQUAL(s->origin, "b.cfg:6");
			CU_ASSERT_STRING_EQUAL(s->value, "\"m\"");
		} else if (strcmp(s->path, "lease.ttl_ms") == 0) {
			CU_ASSERT_STRING_EQUAL(s->origin, "a.cfg:3");
			CU_ASSERT_STRING_EQUAL(s->value, "20000");
		} else if (strcmp(s->path, "ports[0].ip") == 0) {
			CU_ASSERT_STRING_EQUAL(s->origin, "b.cfg:2");
			CU_ASSERT_STRING_EQUAL(s->value, "\"10.0.0.1\"");
		} else if (strcmp(s->path, "log.level") == 0) {
			CU_ASSERT_STRING_EQUAL(s->origin, "default");
			CU_ASSERT(s->reloadable);
		}
	}
	CU_ASSERT_EQUAL(cfg->n_shown, conf_top.n + conf_port_table.n);
	CU_ASSERT_FALSE(conf_file_changed(cfg));
	put_text("b.cfg", T_CONF_GOOD "node: { mesh = \"other\"; };");
	CU_ASSERT(conf_file_changed(cfg));
	conf_free(cfg);
	put_text("b.cfg", T_CONF_GOOD "\nlease: { renew_ms = 0; };");
	refused_file("a.cfg", "a.cfg:3: duplicate", "");
	put_text("a.cfg", "\n@include \"b.cfg\"\nnode: { drain = 1; };\n");
	refused_file("a.cfg", "b.cfg:4: lease.renew_ms: 0 is out of range",
		     "a.cfg:3: node.drain: unknown; did you mean \"drain_ms\"");
}

static void include_circles_name_the_chain(void)
{
	put_text("a.cfg", "\n@include \"b.cfg\"\n");
	put_text("b.cfg", "@include \"a.cfg\"\n");
	refused_file("a.cfg", "b.cfg:1: @include makes a circle: ", "a.cfg -> b.cfg -> a.cfg");
	put_text("a.cfg", "@include \"a.cfg\"\n");
	refused_file("a.cfg", "a.cfg:1: @include makes a circle: ", "a.cfg -> a.cfg");
}

static void includes_have_a_depth(void)
{
	char name[32], text[512];

	for (int levels = 10; levels <= 11; levels++) {
		for (int i = 0; i <= levels; i++) {
			snprintf(name, sizeof(name), "l%d.cfg", i);
			if (i < levels)
				snprintf(text, sizeof(text), "@include \"l%d.cfg\"\n", i + 1);
			else
				snprintf(text, sizeof(text), "%s", T_CONF_GOOD);
			put_text(name, text);
		}
		if (levels == 10)
			conf_free(accepted_file("l0.cfg"));
		else
			refused_file("l0.cfg", "l10.cfg:1: more than 10 levels",
				     "l0.cfg -> l1.cfg");
	}
}

static void bad_includes_are_refused(void)
{
	put_text("a.cfg", "\n@include \"nowhere.cfg\"\n");
	refused_file("a.cfg", "nowhere.cfg: cannot open: ", "a.cfg:2: @include failed");
	put_text("a.cfg", "@include nowhere\n");
	refused_file("a.cfg", "a.cfg:1: ", "file name in quotes");
	put_text("a.cfg", "@include \"b.cfg\" x = 1;\n");
	refused_file("a.cfg", "a.cfg:1: ", "nothing may follow");
	put_text("a.cfg", "@include \"b.cfg");
	refused_file("a.cfg", "a.cfg:1: ", "file name in quotes");
	put_text("a.cfg", "x = 1; @include \"b.cfg\"\n");
	refused_file("a.cfg", "a.cfg:1: ", "syntax error");
}

static void hostile_bytes_are_refused(void)
{
	static const char nul[] = "security = \"none\";\n\nx = \"a\0b\";\n";
	char *deep = malloc(40001), *big = malloc(5000001);

	CU_ASSERT_FATAL(deep && big);
	put_file("a.cfg", nul, sizeof(nul) - 1, 0600);
	refused_file("a.cfg", "a.cfg:3: ", "NUL byte");
	put_text("a.cfg", "\xef\xbb\xbf" T_CONF_GOOD);
	refused_file("a.cfg", "a.cfg:1: ", "byte order mark");
	put_text("a.cfg", T_CONF_GOOD "# \xc3\x28\n");
	refused_file("a.cfg", "a.cfg:3: ", "UTF-8");
	t_conf_refused(T_CONF_GOOD "node: { mesh = \"a\\x00b\"; };\n", "t.cfg:3: ", "NUL byte");
	t_conf_refused(T_CONF_GOOD "node: { mesh = \"a\nb\"; };\n", "t.cfg:3: ", "not closed");
	t_conf_refused(T_CONF_GOOD "node: { mesh = \"a", "t.cfg:3: ", "not closed");
	t_conf_refused(T_CONF_GOOD "\n/* x\n\n", "t.cfg:4: ", "not closed");
	memset(deep, '(', 40000);
	memcpy(deep, "x = ", 4);
	deep[40000] = '\0';
	t_conf_refused(deep, "t.cfg:1: ", "nested more than 16");
	memset(big, 'a', 5000000);
	put_file("big.cfg", big, 5000000, 0600);
	refused_file("big.cfg", "big.cfg: ", "too large: 5000000 bytes");
	free(deep);
	free(big);
}

static void only_trusted_files_are_read(void)
{
	put_file("a.cfg", T_CONF_GOOD, strlen(T_CONF_GOOD), 0666);
	refused_file("a.cfg", "a.cfg: ", "may be written by others (mode 0666)");
	put_file("a.cfg", T_CONF_GOOD, strlen(T_CONF_GOOD), 0660);
	refused_file("a.cfg", "a.cfg: ", "may be written by others (mode 0660)");
	put_file("a.cfg", T_CONF_GOOD, strlen(T_CONF_GOOD), 0644);
	conf_free(accepted_file("a.cfg"));
	put_file("b.cfg", T_CONF_GOOD, strlen(T_CONF_GOOD), 0622);
	put_text("a.cfg", "@include \"b.cfg\"\n");
	refused_file("a.cfg", "b.cfg: ", "may be written by others");
	refused_file(".", ".: ", "not a regular file");
	refused_file("none.cfg", "none.cfg: cannot open: ", strerror(ENOENT));
	if (geteuid() == 0) {
		put_text("a.cfg", T_CONF_GOOD);
		CU_ASSERT_EQUAL(chown("a.cfg", 65534, 65534), 0);
		refused_file("a.cfg", "a.cfg: ", "belongs to uid 65534");
	}
}

static void check_says_ok_or_why(void)
{
	char *out = NULL, *err = NULL;
	size_t n;
	FILE *o = open_memstream(&out, &n), *e = open_memstream(&err, &n);

	CU_ASSERT_FATAL(o && e);
	unlink("a.cfg");
	put_text("a.cfg", T_CONF_GOOD);
	CU_ASSERT_EQUAL(conf_check_main("a.cfg", o, e), 0);
	put_text("a.cfg", T_CONF_SECURITY "lane = 1;\n");
	CU_ASSERT_EQUAL(conf_check_main("a.cfg", o, e), 1);
	fclose(o);
	fclose(e);
	CU_ASSERT_STRING_EQUAL(out, "a.cfg: ok\n");
	CU_ASSERT_EQUAL(strncmp(err, "a.cfg:2: lane: unknown", 22), 0);
	free(out);
	free(err);
}

static char *whole(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 200000);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	if (!f || fread(text, 1, 199999, f) == 0)
		printf("  cannot read %s\n", path);
	if (f)
		fclose(f);
	return text;
}

static char *written(void (*write_text)(FILE *))
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	write_text(f);
	fclose(f);
	return text;
}

/* `ninja generated` writes them anew. */
static void generated_files_are_up_to_date(void)
{
	char *example = written(conf_example_write), *reference = written(conf_reference_write);
	char *in_tree = whole(T_SOURCE_ROOT "/config/spotlane.cfg");
	char *in_docs = whole(T_SOURCE_ROOT "/docs/configuration.md");

	CU_ASSERT_STRING_EQUAL(example, in_tree);
	CU_ASSERT_STRING_EQUAL(reference, in_docs);
	free(example);
	free(reference);
	free(in_tree);
	free(in_docs);
}

/* The example is good as it is, and good with every comment sign removed: the same values. */
static void example_shows_the_defaults(void)
{
	char *text = written(conf_example_write);
	struct config *a = t_conf_accepted(text), *b;

	for (char *p = strchr(text, '#'); p; p = strchr(p + 1, '#'))
		if (p[1] != ' ')
			*p = ' ';
	b = t_conf_accepted(text);
	CU_ASSERT_FATAL(a && b);
	CU_ASSERT_EQUAL(a->n_shown, b->n_shown);
	for (unsigned i = 0; i < a->n_shown; i++) {
		CU_ASSERT_STRING_EQUAL(a->shown[i].path, b->shown[i].path);
		CU_ASSERT_STRING_EQUAL(a->shown[i].value, b->shown[i].value);
		CU_ASSERT_STRING_NOT_EQUAL(b->shown[i].origin, "default");
	}
	conf_free(a);
	conf_free(b);
	free(text);
}

static const struct t_case cases[] = {
	T(unknown_names_get_a_hint),
	T(missing_names_are_named),
	T(duplicates_are_refused),
	T(shapes_are_checked),
	T(every_error_is_reported_up_to_a_bound),
	T(includes_keep_file_and_line),
	T(include_circles_name_the_chain),
	T(includes_have_a_depth),
	T(bad_includes_are_refused),
	T(hostile_bytes_are_refused),
	T(only_trusted_files_are_read),
	T(check_says_ok_or_why),
	T(generated_files_are_up_to_date),
	T(example_shows_the_defaults),
};

static const struct t_suite suites[] = {T_SUITE("conf_files", enter_dir, leave_dir, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
