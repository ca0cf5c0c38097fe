/* SPDX-License-Identifier: BSD-3-Clause */
/* Each allocation of a configuration load, of a served request and of a spotctl command fails once:
 * an error, a cut connection or an exit status comes out, and the next try works. */
#include "tests/lib/t_failalloc.h"
#include "tests/lib/t_main.h"
#include "tests/unit/server/t_fake.h"
#include "tests/unit/server/t_mgmt.h"
#include "control/cli/run.h"
#include "control/config/config.h"
#include "control/server/config_show.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* jansson takes the wrapped functions, too. */
static int init(void)
{
	json_set_alloc_funcs(malloc, free);
	return t_mgmt_init();
}

static const char text[] =
	"security = \"none\";\nports: ( { name = \"p0\"; device = \"net_null0\"; "
	"ip = \"10.0.0.1\"; } );\nstages: ( { module = \"a.so\"; } );\n"
	"dataplane: { lcores = [0]; };\neal: { extra_args = [\"a\", \"b\"]; };\n";

static void configuration(void)
{
	cpu_set_t cpus;
	unsigned failures = 0;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	for (unsigned n = 1; t_fail_more(&n); n++) {
		struct conf_report rep;
		struct config *cfg;
		json_t *shown = NULL;

		t_fail_at(n);
		cfg = conf_load_text("t.cfg", text, sizeof(text) - 1, &cpus, &rep);
		if (cfg)
			shown = mgmt_config_show(cfg, "debug");
		t_fail_stop();
		failures += t_fail_hit();
		CU_ASSERT_EQUAL(!cfg, rep.n > 0);
		CU_ASSERT(t_fail_hit() || (cfg && shown));
		json_decref(shown);
		conf_free(cfg);
		conf_report_free(&rep);
	}
	CU_ASSERT(failures > 100);
}

/* Runs the loop until a whole answer or the end came; counts the lines. Allocates nothing. */
static int lines_until(int fd, int want)
{
	char chunk[4096];
	int lines = 0;

	for (int i = 0; i < 2000 && lines < want; i++) {
		ssize_t n;

		uv_run(&t.loop, UV_RUN_NOWAIT);
		n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return lines;
		for (ssize_t k = 0; k < n; k++)
			lines += chunk[k] == '\n';
		if (n < 0)
			usleep(100);
	}
	return lines;
}

static void served_request(void)
{
	static const char ask[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.echo\",\"params\":{"
		"\"text\":\"a\"}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
		"\"nope\"}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"test.fail\"}\n";
	unsigned failures = 0, whole = 0;

	t_mgmt_start();
	for (unsigned n = 1; t_fail_more(&n); n++) {
		struct t_peer p = t_peer_connect(), other;
		int lines;

		CU_ASSERT_FATAL(p.fd >= 0);
		CU_ASSERT_EQUAL(send(p.fd, ask, sizeof(ask) - 1, 0), (ssize_t)sizeof(ask) - 1);
		t_fail_at(n);
		lines = lines_until(p.fd, 4);
		t_fail_stop();
		failures += t_fail_hit();
		whole += lines == 4;
		CU_ASSERT(t_fail_hit() || lines == 4);
		t_peer_close(&p);
		other = t_peer_open();
		t_peer_ask(&other, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.echo\"}",
			   "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
		t_peer_close(&other);
	}
	CU_ASSERT(failures > 30);
	CU_ASSERT(whole >= 1);
	t_mgmt_stop();
}

static int command(const char *path, const char *words, char **out)
{
	char copy[128], name[] = "spotctl", option[] = "-s", where[128], *save = NULL;
	char *argv[16] = {name, option, where};
	int argc = 3, status;
	size_t n;
	FILE *f = open_memstream(out, &n), *null = fopen("/dev/null", "w");

	CU_ASSERT_FATAL(f && null);
	strcpy(where, path);
	strcpy(copy, words);
	for (char *w = strtok_r(copy, " ", &save); w && argc < 15; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	status = cli_main(argc, argv, stdin, f, null);
	fclose(f);
	fclose(null);
	return status;
}

/* All of the right result, or an exit status that says no. */
static void spotctl_commands(void)
{
	static const char *const words[] = {"spot list --all", "spot request r p payload",
					    "-j spot close room-1", "node show",
					    "spot request r p --payload-base64 AP8="};
	struct t_fake fake;
	char *good, *out;

	CU_ASSERT_EQUAL_FATAL(t_fake_start(&fake, 0600), 0);
	for (size_t i = 0; i < T_COUNT(words); i++) {
		unsigned failures = 0;

		CU_ASSERT_EQUAL(command(fake.path, words[i], &good), 0);
		for (unsigned n = 1; t_fail_more(&n); n++) {
			int status;

			t_fail_at(n);
			status = command(fake.path, words[i], &out);
			t_fail_stop();
			failures += t_fail_hit();
			CU_ASSERT(status != 0 || strcmp(out, good) == 0);
			CU_ASSERT(t_fail_hit() || status == 0);
			free(out);
		}
		CU_ASSERT(failures > 20);
		free(good);
	}
	t_fake_stop(&fake);
}

static const struct t_case cases[] = {
	T(configuration),
	T(served_request),
	T(spotctl_commands),
};

static const struct t_suite suites[] = {T_SUITE("mgmt_memory", init, t_mgmt_fini, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
