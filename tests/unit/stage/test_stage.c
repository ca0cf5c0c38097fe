/* SPDX-License-Identifier: BSD-3-Clause */
/* The loader of stage modules: what it takes, and each refusal with its text. The modules are in
 * the directory of STAGE_TEST_DIR and EXAMPLES_DIR, which the build sets.
 */
#include "dataplane/stage/check.h"
#include "dataplane/stage/stage.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stage_set *set;
static char why[STAGE_WHY_MAX];
static uint16_t at;
static char tmp[PATH_MAX];

static int on_x(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"x", SPL_TAKES_SEND, on_x},
	{"y", SPL_TAKES_REQUEST, on_x},
};

static const struct spl_stage good = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "good",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 100,
	.handlers = handlers,
	.handler_count = 2,
};

static int setup(void)
{
	snprintf(tmp, sizeof(tmp), "%s/stage-test-XXXXXX", STAGE_TEST_DIR);
	set = stage_set_new();
	return set && mkdtemp(tmp) && chmod(tmp, 0755) == 0 ? 0 : -1;
}

static int teardown(void)
{
	stage_set_free(set);
	return rmdir(tmp);
}

static void copy(const char *from, const char *to, mode_t mode)
{
	char buf[65536];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t n;

	CU_ASSERT_FATAL(in && out);
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
		CU_ASSERT_EQUAL_FATAL(fwrite(buf, 1, n, out), n);
	fclose(in);
	CU_ASSERT_EQUAL_FATAL(fclose(out), 0);
	CU_ASSERT_EQUAL_FATAL(chmod(to, mode), 0);
}

static void test_load(void)
{
	const char *const dirs[] = {"/nonexistent", STAGE_TEST_DIR};
	const struct spot_stage *s;
	unsigned before = stage_set_count(set);

	CU_ASSERT_EQUAL_FATAL(stage_set_load(set, "good", "", dirs, 2, &at, why), 0);
	CU_ASSERT_EQUAL(at, before);
	CU_ASSERT_EQUAL(stage_set_count(set), before + 1);
	s = stage_set_at(set, at);
	CU_ASSERT_STRING_EQUAL(s->desc->type, "good");
	CU_ASSERT_EQUAL(s->state_bytes, 16);
	CU_ASSERT_PTR_EQUAL(stage_set_find(set, SPL_KIND_USER, "good", 4), s);
	CU_ASSERT_PTR_NULL(stage_set_find(set, SPL_KIND_INSTANCE, "good", 4));
	CU_ASSERT_PTR_NULL(stage_set_find(set, SPL_KIND_USER, "Good", 4));
	CU_ASSERT_PTR_NULL(stage_set_find(set, SPL_KIND_USER, "goo", 3));
	CU_ASSERT_PTR_NOT_NULL(spot_stage_find(s, spl_packet_key("hello", 5)));
	CU_ASSERT_PTR_NULL(spot_stage_find(s, spl_packet_key("Hello", 5)));
	CU_ASSERT_PTR_NULL(spot_stage_find(s, 0));
	CU_ASSERT_PTR_NULL(stage_set_at(set, 999));
	/* A second descriptor of the module by its name; the first one again is a duplicate. */
	CU_ASSERT_EQUAL(stage_set_load(set, "good.so", "second_stage", dirs, 2, &at, why), 0);
	CU_ASSERT_EQUAL(stage_set_load(set, STAGE_TEST_DIR "/good.so", "", NULL, 0, &at, why),
			-EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "stage '" STAGE_TEST_DIR "/good.so' ("));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "already loaded from"));
}

/* The examples load, and they know what they say. */
static void test_examples(void)
{
	const char *const dirs[] = {EXAMPLES_DIR};
	const struct spot_stage *s;

	CU_ASSERT_EQUAL_FATAL(stage_set_load(set, "room", "", dirs, 1, &at, why), 0);
	s = stage_set_find(set, SPL_KIND_USER, "room", 4);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	CU_ASSERT_PTR_NOT_NULL(spot_stage_find(s, spl_packet_key("say", 3)));
	CU_ASSERT_PTR_NOT_NULL(spot_stage_find(s, spl_packet_key("roll", 4)));
	CU_ASSERT_EQUAL_FATAL(stage_set_load(set, "counter", "", dirs, 1, &at, why), 0);
	s = stage_set_find(set, SPL_KIND_USER, "counter", 7);
	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	CU_ASSERT_PTR_NOT_NULL(spot_stage_find(s, spl_packet_key("add", 3)));
}

static void refused(const char *module, const char *symbol, int rc, const char *says)
{
	const char *const dirs[] = {STAGE_TEST_DIR};
	unsigned before = stage_set_count(set);
	char start[PATH_MAX];

	CU_ASSERT_EQUAL(stage_set_load(set, module, symbol, dirs, 1, &at, why), rc);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, says));
	if (!strstr(why, says))
		printf("%s\n", why);
	snprintf(start, sizeof(start), "stage '%s' (", module);
	CU_ASSERT_EQUAL(strncmp(why, start, strlen(start)), 0);
	CU_ASSERT_EQUAL(stage_set_count(set), before);
}

static void test_refused_modules(void)
{
	char path[PATH_MAX + 16];

	refused("absent", "", -ENOENT, "check stage_dirs");
	refused("/absent/x.so", "", -ENOENT, "check the path");
	refused("sub/x.so", "", -EINVAL, "neither an absolute path nor a file name");
	refused("", "", -EINVAL, "neither an absolute path nor a file name");
	refused(STAGE_TEST_DIR, "", -EINVAL, "not a regular file");
	refused("otherapi", "", -EPROTO, "built for stage interface 4, this dataplane has 3");
	refused("empty", "", -ENOEXEC, "exports no 'spl_stage_descriptor'");
	refused("good", "third_stage", -ENOEXEC, "exports no 'third_stage'");
	refused("undefined", "", -ENOEXEC, "spl_call_of_another_version");
	snprintf(path, sizeof(path), "%s/text.so", tmp);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("not a module\n", f);
	fclose(f);
	refused(path, "", -ENOEXEC, "cannot be loaded");
	unlink(path);
}

/* Modules and directories that others may write. */
static void test_refused_permissions(void)
{
	char path[PATH_MAX + 16], deep[PATH_MAX + 32], inner[PATH_MAX + 16], link[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/good.so", tmp);
	snprintf(inner, sizeof(inner), "%s/in", tmp);
	snprintf(deep, sizeof(deep), "%s/good.so", inner);
	snprintf(link, sizeof(link), "%s/link.so", tmp);
	copy(STAGE_TEST_DIR "/good.so", path, 0646);
	refused(path, "", -EACCES, "may be written by everybody: chmod go-w");
	chmod(path, 0664);
	refused(path, "", -EACCES, "may be written by its group: chmod go-w");
	chmod(path, 0644);
	CU_ASSERT_EQUAL(stage_check_path(path, why), 0);
	CU_ASSERT_EQUAL_FATAL(symlink(path, link), 0); /* what it points to is what counts */
	chmod(tmp, 0777);
	refused(path, "", -EACCES, tmp);
	refused(link, "", -EACCES, tmp);
	chmod(tmp, 01777); /* sticky is not enough for the directory itself */
	refused(path, "", -EACCES, tmp);
	CU_ASSERT_EQUAL_FATAL(mkdir(inner, 0755), 0);
	copy(STAGE_TEST_DIR "/good.so", deep, 0644);
	CU_ASSERT_EQUAL(stage_check_path(deep, why), 0); /* but above it */
	chmod(tmp, 0775);
	refused(deep, "", -EACCES, tmp);
	if (geteuid() == 0) {
		chmod(tmp, 0755);
		CU_ASSERT_EQUAL_FATAL(chown(path, 12345, 12345), 0);
		refused(path, "", -EACCES, "belongs to user 12345");
		CU_ASSERT_EQUAL_FATAL(chown(inner, 12345, 12345), 0);
		refused(deep, "", -EACCES, "belongs to user 12345");
	}
	chmod(tmp, 0755);
	unlink(deep);
	rmdir(inner);
	unlink(link);
	unlink(path);
}

static char long_name[300];

static const char *bad(const struct spl_stage *d, int rc)
{
	CU_ASSERT_EQUAL(stage_set_add(set, d, "bad", &at, why), rc);
	CU_ASSERT_EQUAL(strncmp(why, "stage 'bad' (bad): ", 19), 0);
	return why + 19;
}

#define BAD(says, ...) \
	do { \
		struct spl_stage d = good; \
		d.type = "bad"; \
		__VA_ARGS__; \
		CU_ASSERT_PTR_NOT_NULL(strstr(bad(&d, -EINVAL), says)); \
	} while (0)

static int made(struct spl_turn *turn, void *state, const struct spl_message *request)
{
	return SPL_DONE;
}

static void test_refused_descriptors(void)
{
	static const struct spl_handler none = {NULL, SPL_TAKES_SEND, on_x};
	static const struct spl_handler empty = {"", SPL_TAKES_SEND, on_x};
	static const struct spl_handler no_fn = {"p", SPL_TAKES_SEND, NULL};
	static const struct spl_handler no_kind = {"p", 0, on_x};
	static const struct spl_handler odd_kind = {"p", 8, on_x};
	static const struct spl_handler bytes = {"\xff", SPL_TAKES_SEND, on_x};
	static const struct spl_handler twice[] = {{"p", SPL_TAKES_SEND, on_x},
						   {"q", SPL_TAKES_SEND, on_x},
						   {"p", SPL_TAKES_REQUEST, on_x}};
	struct spl_stage size = good;

	memset(long_name, 'n', 256);
	size.size--;
	CU_ASSERT_PTR_NOT_NULL(strstr(bad(&size, -EPROTO), "its descriptor has"));
	BAD("type is no legal name", d.type = NULL);
	BAD("type is no legal name", d.type = "");
	BAD("type is no legal name", d.type = long_name);
	BAD("type is no legal name", d.type = "\xc3");
	BAD("version is no legal text", d.version = "");
	BAD("kind is 0", d.kind = SPL_KIND_INVALID);
	BAD("kind is 4", d.kind = (enum spl_kind)4);
	BAD("mode is 2", d.mode = (enum spl_mode)2);
	BAD("exactly one policy", d.relocation = (enum spl_relocation)0);
	BAD("exactly one policy", d.relocation = (enum spl_relocation)4);
	BAD("PRESERVE_STATE needs", d.relocation = SPL_RELOCATION_PRESERVE_STATE);
	BAD("PER_ACTOR is for User Spots", d.mode = SPL_MODE_PER_ACTOR);
	BAD("PER_ACTOR is for User Spots", d.mode = SPL_MODE_PER_ACTOR; d.kind = SPL_KIND_ENTRY;
	    d.relocation = SPL_RELOCATION_RECREATE);
	BAD("on_create is for User Spots", d.kind = SPL_KIND_INSTANCE; d.on_create = made);
	BAD("never moves", d.kind = SPL_KIND_ENTRY; d.relocation = SPL_RELOCATION_RECREATE);
	BAD("state_bytes is", d.state_bytes = SPL_STATE_BYTES_MAX + 1);
	BAD("queue_bytes is 1023", d.queue_bytes = 1023);
	BAD("257 handlers", d.handler_count = 257);
	BAD("handlers is NULL", d.handlers = NULL);
	BAD("reserved[7]", d.reserved[7] = (void (*)(void))on_x);
	BAD("handler 0 has no legal packet name", d.handlers = &none; d.handler_count = 1);
	BAD("handler 0 has no legal packet name", d.handlers = &empty; d.handler_count = 1);
	BAD("handler 0 has no legal packet name", d.handlers = &bytes; d.handler_count = 1);
	BAD("packet 'p' has no function", d.handlers = &no_fn; d.handler_count = 1);
	BAD("packet 'p' takes 0x0", d.handlers = &no_kind; d.handler_count = 1);
	BAD("packet 'p' takes 0x8", d.handlers = &odd_kind; d.handler_count = 1);
	BAD("packet 'p' has two handlers", d.handlers = twice; d.handler_count = 3);
}

/* Types are compared byte by byte, and one name may serve two kinds; 1024 are the limit. */
static void test_many(void)
{
	static struct spl_stage many[SPL_STAGES_MAX];
	static char names[SPL_STAGES_MAX][16];
	struct stage_set *s = stage_set_new();
	struct spl_stage one_more = good, entry = good;

	for (unsigned i = 0; i < SPL_STAGES_MAX - 1; i++) {
		snprintf(names[i], sizeof(names[i]), i % 2 ? "type%u" : "Type%u", i / 2);
		many[i] = good;
		many[i].type = names[i];
		CU_ASSERT_EQUAL_FATAL(stage_set_add(s, &many[i], "many", &at, why), 0);
	}
	entry.type = names[0];
	entry.kind = SPL_KIND_ENTRY;
	CU_ASSERT_EQUAL(stage_set_add(s, &entry, "entry", &at, why), 0);
	CU_ASSERT_EQUAL(stage_set_count(s), SPL_STAGES_MAX);
	one_more.type = "onemore";
	CU_ASSERT_EQUAL(stage_set_add(s, &one_more, "onemore", &at, why), -ENOSPC);
	CU_ASSERT_EQUAL(stage_set_add(s, &many[3], "again", &at, why), -EEXIST);
	stage_set_free(s);
}

/* A node has one Entry Spot: of the module that has the type, or one without handlers. */
static void test_entry(void)
{
	struct stage_set *s = stage_set_new();
	struct spl_stage entry = good, other = good;

	entry.kind = other.kind = SPL_KIND_ENTRY;
	entry.type = "gate";
	other.type = "door";
	CU_ASSERT_PTR_NULL(stage_set_entry(s));
	CU_ASSERT_EQUAL(stage_set_add(s, &good, "user", &at, why), 0);
	CU_ASSERT_EQUAL(stage_set_complete(s, why), 0);
	CU_ASSERT_EQUAL(stage_set_count(s), 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stage_set_entry(s));
	CU_ASSERT_EQUAL(stage_set_entry(s)->desc->handler_count, 0);
	stage_set_free(s);
	s = stage_set_new();
	CU_ASSERT_EQUAL(stage_set_add(s, &entry, "gate.so", &at, why), 0);
	CU_ASSERT_EQUAL(stage_set_complete(s, why), 0);
	CU_ASSERT_EQUAL(stage_set_count(s), 1);
	CU_ASSERT_PTR_EQUAL(stage_set_entry(s)->desc, &entry);
	CU_ASSERT_EQUAL(stage_set_add(s, &other, "door.so", &at, why), 0);
	CU_ASSERT_EQUAL(stage_set_complete(s, why), -EINVAL);
	CU_ASSERT(strstr(why, "gate.so") && strstr(why, "door.so"));
	stage_set_free(s);
}

/* The most handlers a stage may have: each is found, nothing else is. */
static void test_handler_table(void)
{
	static struct spl_handler all[SPL_HANDLERS_MAX];
	static char names[SPL_HANDLERS_MAX][16];
	struct spl_stage d = good;
	struct spot_stage t;
	struct spot_handler slots[1024];
	struct t_rand r = {t_seed()};
	uint32_t which;

	for (unsigned i = 0; i < SPL_HANDLERS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "packet%u", i);
		all[i] = (struct spl_handler){names[i], SPL_TAKES_SEND, on_x};
	}
	d.handlers = all;
	d.handler_count = SPL_HANDLERS_MAX;
	CU_ASSERT_FATAL(spot_stage_slots(&d) <= 1024);
	CU_ASSERT_EQUAL_FATAL(spot_stage_build(&t, &d, slots, 0, &which), 0);
	for (unsigned i = 0; i < SPL_HANDLERS_MAX; i++)
		CU_ASSERT_PTR_EQUAL(spot_stage_find(&t, spl_packet_key(names[i], strlen(names[i]))),
				    &all[i]);
	for (int i = 0; i < 100000; i++)
		CU_ASSERT_PTR_NULL(spot_stage_find(&t, t_rand_u64(&r)));
	all[200].packet = "packet3";
	CU_ASSERT_EQUAL(spot_stage_build(&t, &d, slots, 0, &which), -EEXIST);
	CU_ASSERT_EQUAL(which, 200);
}

static const struct t_case cases[] = {
	T(test_load, "S-NAME-6"),
	T(test_examples),
	T(test_refused_modules),
	T(test_refused_permissions),
	T(test_refused_descriptors, "S-KIND-1", "S-KIND-4", "S-ROLE-3"),
	T(test_many, "S-NAME-6"),
	T(test_entry, "S-ENTRY-1"),
	T(test_handler_table, "S-NAME-7", "S-DIR-10"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("stage", setup, teardown, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
