/* SPDX-License-Identifier: BSD-3-Clause */
/* spotctl against a node with fixed answers: golden outputs (tests/data/cli; SPL_GOLDEN=write
 * writes them anew), exit statuses, and daemons that do not behave. */
#include "tests/lib/t_main.h"
#include "tests/unit/server/t_fake.h"
#include "control/cli/commands.h"
#include "control/cli/print.h"
#include "control/cli/run.h"

#include <CUnit/CUnit.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct t_fake fake;

static int start(void)
{
	return t_fake_start(&fake, 0600);
}

static int stop(void)
{
	t_fake_stop(&fake);
	return 0;
}

struct outcome {
	int status;
	char *out, *err;
};

/* Words of `line` separated by '|', as spotctl -s SOCKET WORDS. */
static struct outcome spotctl(const char *path, const char *line, const char *input, size_t n_input)
{
	char copy[4096], name[] = "spotctl", option[] = "-s", *save = NULL;
	char *argv[40] = {name, option};
	struct outcome o = {0};
	size_t n;
	int argc = 3;
	char *in_text = malloc(n_input + 1);
	FILE *in, *out = open_memstream(&o.out, &n), *err = open_memstream(&o.err, &n);

	memcpy(in_text, input, n_input);
	in = fmemopen(in_text, n_input ? n_input : 1, "r");
	CU_ASSERT_FATAL(in && out && err);
	if (n_input == 0)
		fgetc(in);
	argv[2] = strdup(path);
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, "|", &save); w && argc < 39; w = strtok_r(NULL, "|", &save))
		argv[argc++] = strcmp(w, "EMPTY") == 0 ? w + 5 : w;
	o.status = cli_main(argc, argv, in, out, err);
	fclose(in);
	fclose(out);
	fclose(err);
	free(in_text);
	free(argv[2]);
	return o;
}

static void free_outcome(struct outcome *o)
{
	free(o->out);
	free(o->err);
}

static char *replaced(const char *text, const char *what, const char *with)
{
	char *result = calloc(1, strlen(text) + 1 + 64 * strlen(with));
	const char *hit;

	CU_ASSERT_PTR_NOT_NULL_FATAL(result);
	while ((hit = strstr(text, what)) != NULL) {
		strncat(result, text, (size_t)(hit - text));
		strcat(result, with);
		text = hit + strlen(what);
	}
	strcat(result, text);
	return result;
}

static char *whole(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	if (!f || fread(text, 1, 65535, f) == 0)
		printf("  cannot read %s\n", path);
	if (f)
		fclose(f);
	return text;
}

static void golden(const char *name, const char *line)
{
	struct outcome o = spotctl(fake.path, line, "", 0);
	char path[512], *got = NULL, *clean, *want;
	const char *mode = getenv("SPL_GOLDEN");

	snprintf(path, sizeof(path), "%s/tests/data/cli/%s.txt", T_SOURCE_ROOT, name);
	CU_ASSERT_FATAL(asprintf(&got, "$ spotctl %s\n%s[stderr]\n%s[status %d]\n", line, o.out,
				 o.err, o.status) > 0);
	clean = replaced(got, fake.path, "SOCKET");
	if (mode && strcmp(mode, "write") == 0) {
		FILE *f = fopen(path, "w");

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		fputs(clean, f);
		fclose(f);
	}
	want = whole(path);
	if (strcmp(clean, want) != 0)
		printf("  %s: expected\n%s  got\n%s", name, want, clean);
	CU_ASSERT_STRING_EQUAL(clean, want);
	free(got);
	free(clean);
	free(want);
	free_outcome(&o);
}

static void outputs_are_as_written_down(void)
{
	golden("node-show", "node|show");
	golden("node-show-json", "-j|node|show");
	golden("spot-create", "spot|create|room|--request|hello");
	golden("spot-create-rejected", "spot|create|declined");
	golden("spot-get-or-create", "spot|get-or-create|room-1|room");
	golden("spot-get-or-create-error", "spot|get-or-create|room-1|other");
	golden("spot-find", "spot|find|room-1");
	golden("spot-find-json", "spot|find|room-1|-j");
	golden("spot-find-missing", "spot|find|missing");
	golden("spot-list", "spot|list");
	golden("spot-list-all", "spot|list|--all");
	golden("spot-list-all-json", "spot|list|--all|-j");
	golden("spot-list-empty", "spot|list|--type|none");
	golden("spot-close", "spot|close|room-1");
	golden("spot-close-ref", "spot|close|{\"spotId\":\"room-1\",\"objectGeneration\":\"41\","
				 "\"meshName\":\"default\",\"nodeRid\":\"node-1f0c\"}");
	golden("spot-close-missing", "spot|close|missing");
	golden("spot-send", "spot|send|room-1|say|hello");
	golden("spot-request", "spot|request|room-1|say|hello");
	golden("spot-request-dead", "spot|request|dead|say");
	golden("spot-reclaim", "spot|reclaim|--node|node-dead");
	golden("stats-show", "stats|show");
	golden("stage-show", "stage|show");
	golden("status-show", "status|show");
	golden("metrics-show", "metrics|show");
	golden("trace-show", "trace|show");
	golden("trace-follow", "trace|show|--follow"); /* the second question is refused */
	golden("trace-sample", "trace|sample|0.25");
	golden("stats-show-error", "stats|show|links");
	golden("config-show", "config|show");
	golden("log-set-level", "log|set-level|debug");
	golden("help", "-h");
	golden("help-spot-send", "-h|spot|send");
	golden("quiet", "-q|spot|list");
}

static void expect(const char *line, int status, const char *out_part, const char *err_part)
{
	struct outcome o = spotctl(fake.path, line, "", 0);

	if (o.status != status || !strstr(o.out, out_part) || !strstr(o.err, err_part))
		printf("  %s: status %d\n  out: %s\n  err: %s\n", line, o.status, o.out, o.err);
	CU_ASSERT_EQUAL(o.status, status);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.out, out_part));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.err, err_part));
	if (status != 0) { /* one line */
		const char *nl = strchr(o.err, '\n');

		CU_ASSERT(nl && nl[1] == '\0');
	}
	free_outcome(&o);
}

static void wrong_command_lines_end_with_2(void)
{
	expect("EMPTY", 2, "", "no verb");
	expect("spot", 2, "", "no verb");
	expect("spot|show", 2, "", "spot: unknown command: show");
	expect("nothing|show", 2, "", "nothing: unknown command: show");
	expect("spot|find", 2, "", "find: id must be given");
	expect("spot|find|a|b", 2, "", "one argument too many: b");
	expect("spot|find|EMPTY", 2, "", "id must not be empty");
	expect("spot|find|\xff\xfe", 2, "", "not valid UTF-8");
	expect("spot|list|--limit|0", 2, "", "0 is out of range (1..1000)");
	expect("spot|list|--limit|1001", 2, "", "1001 is out of range");
	expect("spot|list|--limit|5x", 2, "", "not an integer: 5x");
	expect("spot|list|--limit|99999999999999999999", 2, "", "not an integer");
	expect("spot|list|--limit", 2, "", "option without its value");
	expect("spot|list|--kind|actor", 2, "", "kind must be one of entry|user|instance");
	expect("spot|list|--colour|red", 2, "", "unknown option: --colour");
	expect("spot|list|--limit|1|--limit|2", 2, "", "given twice");
	expect("spot|send|a|p|x|--payload-base64|AA==", 2, "", "at most one of");
	expect("spot|send|a|p|--payload-base64|A", 2, "", "not base64");
	expect("spot|reclaim", 2, "", "exactly one of id node");
	expect("spot|reclaim|a|--node|b", 2, "", "exactly one of id node");
	expect("spot|close|{}", 2, "", "ref: spotId");
	expect("spot|close|{\"a\":1,\"a\":2}", 2, "", "not a SpotRef");
	expect("stats|show|everything", 2, "", "view must be one of");
	expect("config|check", 2, "", "FILE must be given");
	expect("-t|0|node|show", 2, "", "1..86400 seconds");
	expect("-t|x|node|show", 2, "", "1..86400 seconds");
	expect("-z|node|show", 2, "", "unknown option");
}

static void names_have_a_length(void)
{
	char line[512] = "spot|find|";
	size_t head = strlen(line);

	for (size_t n = 254; n <= 256; n++) {
		memset(line + head, 'n', n);
		line[head + n] = '\0';
		if (n <= 255)
			expect(line, 0, "spotId", "");
		else
			expect(line, 2, "", "id is too long: 256 bytes (max 255)");
	}
}

static void options_may_stand_anywhere(void)
{
	expect("spot|-j|list|--limit=5", 0, "{\"spots\":[", "");
	expect("spot|list|-jq", 0, "", "");
	expect("spot|send|--|room-1|-p|-x", 0, "accepted", "");
	expect("-V", 0, "spotctl " SPL_VERSION ", management protocol 1", "");
	expect("-h|spot", 0, "spotctl spot close REF", "");
}

static void payload_may_come_from_standard_input(void)
{
	struct outcome o = spotctl(fake.path, "-j|spot|request|r|p|-", "a\xff", 2);

	CU_ASSERT_EQUAL(o.status, 0);
	CU_ASSERT_STRING_EQUAL(o.out, "{\"reply_base64\":\"Yf8=\"}\n");
	free_outcome(&o);
	o = spotctl(fake.path, "-j|spot|request|r|p|--payload-base64|AP8=", "", 0);
	CU_ASSERT_STRING_EQUAL(o.out, "{\"reply_base64\":\"AP8=\"}\n");
	free_outcome(&o);
}

static void every_command_works_twice(void)
{
	static const char *const lines[] = {
		"node|show",  "spot|list",   "spot|list|--type|none", "spot|list|--all",
		"stats|show", "config|show", "stats|show|links",      "spot|find|missing"};

	for (size_t i = 0; i < T_COUNT(lines); i++) {
		struct outcome a = spotctl(fake.path, lines[i], "", 0);
		struct outcome b = spotctl(fake.path, lines[i], "", 0);

		CU_ASSERT_EQUAL(a.status, b.status);
		CU_ASSERT(a.status <= 1);
		CU_ASSERT_STRING_EQUAL(a.out, b.out);
		CU_ASSERT_STRING_EQUAL(a.err, b.err);
		free_outcome(&a);
		free_outcome(&b);
	}
}

static void slow_answers_end_with_4(void)
{
	expect("-t|1|spot|request|slow|p", 4, "", "no answer in time");
}

static void scripted(const char *bytes, int hold, int status, const char *err_part)
{
	struct t_fake f;
	struct outcome o;

	CU_ASSERT_EQUAL_FATAL(t_fake_script(&f, bytes, hold), 0);
	o = spotctl(f.path, "-t|1|node|show", "", 0);
	if (o.status != status || !strstr(o.err, err_part))
		printf("  %.80s: status %d, err: %s", bytes, o.status, o.err);
	CU_ASSERT_EQUAL(o.status, status);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.err, err_part));
	CU_ASSERT_STRING_EQUAL(o.out, "");
	free_outcome(&o);
	t_fake_stop(&f);
}

#define HELLO(protocol) \
	"{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":{\"name\":\"spotlane-control\"," \
	"\"protocol\":" protocol ",\"version\":\"9.9\",\"pid\":1,\"start_time\":\"\"}}\n"

static void strange_daemons_are_recognised(void)
{
	scripted(HELLO("2"), 0, 1,
		 "version mismatch: spotctl " SPL_VERSION
		 " speaks protocol 1, the daemon 9.9 speaks 2");
	scripted(HELLO("0"), 0, 1, "the daemon 9.9 speaks 0");
	scripted("", 1, 4, "no answer in time");
	scripted("", 0, 3, "the daemon ended the connection");
	scripted("{\"jsonrpc\":", 0, 3, "the daemon ended the connection");
	scripted("{\"jsonrpc\":", 1, 4, "no answer in time");
	scripted("220 smtp ready\n", 1, 3, "not a Spotlane management socket");
	scripted("{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":{\"name\":\"x\"}}\n", 1, 3,
		 "not a Spotlane management socket");
	scripted("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32004,\"message\":\"no "
		 "access: not in a group\"}}\n",
		 0, 3, "no access: not in a group");
	scripted(HELLO("1"), 0, 3, "the daemon ended the connection");
	scripted(HELLO("1"), 1, 4, "no answer in time");
	scripted(HELLO("1") "nonsense\n", 1, 3, "no JSON object");
	scripted(HELLO("1") "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n", 1, 1,
		 "an answer to another request");
	scripted(HELLO("1") "{\"jsonrpc\":\"2.0\",\"id\":1}\n", 1, 1, "no result");
	scripted(HELLO("1") "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n", 1, 1, "failed (?)");
}

static void no_daemon_ends_with_3(void)
{
	struct outcome o = spotctl("/tmp/no/such/control.sock", "node|show", "", 0);
	char path[150];

	CU_ASSERT_EQUAL(o.status, 3);
	CU_ASSERT_STRING_EQUAL(o.err,
			       "socket /tmp/no/such/control.sock: cannot connect: No such file "
			       "or directory: is spotlane-control running?\n");
	free_outcome(&o);
	memset(path, 'a', sizeof(path));
	path[120] = '\0';
	o = spotctl(path, "node|show", "", 0);
	CU_ASSERT_EQUAL(o.status, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.err, "path too long (max 107 bytes)"));
	free_outcome(&o);
}

/* Runs as another user in a process of its own; 0 when status and error are as expected. */
static int as_other(const char *path, int status, const char *err_part)
{
	int result = 1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct outcome o;

		if (setgroups(0, NULL) != 0 || setgid(54321) != 0 || setuid(12345) != 0)
			_exit(2);
		o = spotctl(path, "node|show", "", 0);
		if (o.status != status || !strstr(o.err, err_part)) {
			printf("  expected %s\n  got %d %s", err_part, o.status, o.err);
			fflush(stdout);
			_exit(1);
		}
		_exit(0);
	}
	waitpid(pid, &result, 0);
	return result;
}

/* Needs root, as the whole suite has on the project's machines. */
static void denied_names_path_and_group(void)
{
	struct t_fake f;
	struct group *g = getgrnam("daemon");
	char part[256];

	CU_ASSERT_FATAL(geteuid() == 0 && g);
	CU_ASSERT_EQUAL_FATAL(t_fake_start(&f, 0660), 0);
	CU_ASSERT_EQUAL(chown(f.path, 0, getgrnam("daemon")->gr_gid), 0);
	CU_ASSERT_EQUAL(chmod(f.dir, 0755), 0);
	snprintf(part, sizeof(part), "permission denied on %s, need group daemon\n", f.path);
	CU_ASSERT_EQUAL(as_other(f.path, 3, part), 0);
	CU_ASSERT_EQUAL(chmod(f.dir, 0750), 0);
	CU_ASSERT_EQUAL(chown(f.dir, 0, getgrnam("daemon")->gr_gid), 0);
	snprintf(part, sizeof(part), "permission denied on %s, need group daemon\n", f.dir);
	CU_ASSERT_EQUAL(as_other(f.path, 3, part), 0);
	t_fake_stop(&f);
}

static void shutdown_waits_for_the_end(void)
{
	struct t_fake f;
	struct outcome o;

	CU_ASSERT_EQUAL_FATAL(t_fake_start(&f, 0600), 0);
	o = spotctl(f.path, "-t|1|node|shutdown|--deadline-ms|1", "", 0);
	CU_ASSERT_EQUAL(o.status, 4);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.err, "the daemon has not ended in time"));
	free_outcome(&o);
	o = spotctl(f.path, "node|shutdown|--deadline-ms|1|--no-wait", "", 0);
	CU_ASSERT_EQUAL(o.status, 0);
	free_outcome(&o);
	o = spotctl(f.path, "node|shutdown", "", 0);
	CU_ASSERT_EQUAL(o.status, 0);
	CU_ASSERT_STRING_EQUAL(o.out, "state        Draining\ndeadline_ms  30000\n");
	CU_ASSERT_STRING_EQUAL(o.err, "");
	free_outcome(&o);
	o = spotctl(f.path, "node|show", "", 0);
	CU_ASSERT_EQUAL(o.status, 3);
	free_outcome(&o);
	t_fake_stop(&f);
}

static void config_check_needs_no_daemon(void)
{
	char path[] = "/tmp/spotlane-check-XXXXXX", line[128];
	static const char bad[] = "security = \"none\";\nlane = 1;\n";
	int fd = mkstemp(path);
	struct outcome o;

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, bad, sizeof(bad) - 1), (ssize_t)sizeof(bad) - 1);
	close(fd);
	snprintf(line, sizeof(line), "config|check|%s", path);
	o = spotctl("/tmp/no/such/control.sock", line, "", 0);
	CU_ASSERT_EQUAL(o.status, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.err, ":2: lane: unknown"));
	free_outcome(&o);
	unlink(path);
}

/* `ninja generated` writes it anew. */
static void reference_is_up_to_date(void)
{
	char *text = NULL, *in_docs = whole(T_SOURCE_ROOT "/docs/cli.md");
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	cli_reference_write(f);
	fclose(f);
	CU_ASSERT_STRING_EQUAL(text, in_docs);
	free(text);
	free(in_docs);
}

/* Each argument by place is a parameter of the method. */
static void table_names_real_parameters(void)
{
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];

	mgmt_methods_init(methods);
	for (size_t i = 0; i < cli_n_commands; i++) {
		const struct cli_command *c = &cli_commands[i];
		size_t words = *c->args ? 1 : 0, found = 0;

		for (const char *p = c->args; *p; p++)
			words += *p == ' ';
		while (cli_arg(c, &methods[c->method], found))
			found++;
		CU_ASSERT_EQUAL(words, found);
		CU_ASSERT_PTR_EQUAL(cli_find(c->object, c->verb), c);
	}
}

static const struct t_case cases[] = {
	T(outputs_are_as_written_down),
	T(wrong_command_lines_end_with_2),
	T(names_have_a_length, "S-ID-3"),
	T(options_may_stand_anywhere),
	T(payload_may_come_from_standard_input),
	T(every_command_works_twice),
	T(slow_answers_end_with_4),
	T(strange_daemons_are_recognised),
	T(no_daemon_ends_with_3),
	T(denied_names_path_and_group),
	T(shutdown_waits_for_the_end),
	T(config_check_needs_no_daemon),
	T(reference_is_up_to_date),
	T(table_names_real_parameters),
};

static const struct t_suite suites[] = {T_SUITE("cli", start, stop, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
