/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: the management protocol. Input: what one client sends before it stops sending. The
 * real server answers on a real socket; every second call is answered late. Aborts when an answer
 * is not a good JSON-RPC line, there are more answers than lines, or the connection does not end.
 */
#include "control/server/server.h"
#include "common/json_line.h"
#include "common/log.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <spotlane/errors.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TURNS_MAX 2000000

static struct {
	uv_loop_t loop;
	struct mgmt_server *server;
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];
	struct mgmt_call *held;
	unsigned calls;
	char dir[64], path[128];
} f;

static void handle(struct mgmt_call *call, const json_t *params, void *ctx)
{
	(void)ctx;
	FUZZ_CHECK(json_is_object(params) && !f.held);
	if (f.calls++ % 2)
		f.held = call;
	else
		mgmt_reply(call, json_deep_copy(params));
}

static void remove_dir(void)
{
	unlink(f.path);
	rmdir(f.dir);
}

static void start(void)
{
	struct mgmt_options o = {.path = f.path,
				 .mode = 0600,
				 .clients_max = 4,
				 .line_max = 65536,
				 .output_max = 16777216,
				 .input_timeout_ms = 60000,
				 .output_timeout_ms = 60000};
	char err[512];

	log_open(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_LEVEL_ERROR);
	strcpy(f.dir, "/tmp/spotlane-fuzz-XXXXXX");
	FUZZ_CHECK(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/s", f.dir);
	atexit(remove_dir);
	mgmt_methods_init(f.methods);
	for (unsigned i = 0; i < SPL_MGMT_METHOD_COUNT; i++)
		f.methods[i].handler = handle;
	FUZZ_CHECK(uv_loop_init(&f.loop) == 0);
	FUZZ_CHECK(mgmt_server_open(&f.server, &f.loop, &o, f.methods, SPL_MGMT_METHOD_COUNT, NULL,
				    err, sizeof(err)) == 0);
}

static void check_line(const char *line, size_t len, bool first)
{
	char why[JSON_LINE_WHY_MAX];
	json_t *v = json_line_parse(line, len, SPL_MGMT_DEPTH_MAX + 2, why);
	const json_t *error = json_object_get(v, "error");
	const char *kind =
		json_string_value(json_object_get(json_object_get(error, "data"), "kind"));
	bool known = false;

	FUZZ_CHECK(v);
	for (int i = 0; i < SPL_ERROR_COUNT; i++)
		known |= kind && strcmp(kind, spl_error_name(i)) == 0;
	if (first)
		FUZZ_CHECK(json_object_get(v, "method"));
	else if (error)
		FUZZ_CHECK(known && json_is_integer(json_object_get(error, "code")));
	else
		FUZZ_CHECK(json_object_get(v, "result") && json_object_get(v, "id"));
	json_decref(v);
}

/* Every line but the last is complete; returns how many there are. */
static size_t check_output(const char *out, size_t len)
{
	size_t lines = 0;

	while (len > 0) {
		const char *nl = memchr(out, '\n', len);

		FUZZ_CHECK(nl);
		check_line(out, (size_t)(nl - out), lines == 0);
		len -= (size_t)(nl - out) + 1;
		out = nl + 1;
		lines++;
	}
	return lines;
}

static size_t count_lines(const uint8_t *data, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

/* Sends all and collects until the server ends the connection. */
static char *talk(const uint8_t *data, size_t size, size_t *out_len)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t sent = 0, cap = 65536;
	char *out = malloc(cap);
	bool open = true;

	strcpy(addr.sun_path, f.path);
	FUZZ_CHECK(out && fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*out_len = 0;
	for (unsigned turn = 0; open; turn++) {
		ssize_t n;

		FUZZ_CHECK(turn < TURNS_MAX);
		n = send(fd, data + sent, size - sent, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		if (sent == size)
			shutdown(fd, SHUT_WR);
		uv_run(&f.loop, UV_RUN_NOWAIT);
		if (f.held) {
			struct mgmt_call *call = f.held;

			f.held = NULL;
			mgmt_fail(call, SPL_E_UNAVAILABLE, "spot \xff", "late: answer", NULL);
		}
		if (cap - *out_len < 32768) {
			out = realloc(out, cap *= 2);
			FUZZ_CHECK(out);
		}
		n = recv(fd, out + *out_len, cap - *out_len, 0);
		*out_len += n > 0 ? (size_t)n : 0;
		open = n > 0 || (n < 0 && errno == EAGAIN);
	}
	close(fd);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len, lines;
	char *out;

	if (!f.server)
		start();
	out = talk(data, size, &len);
	lines = check_output(out, len);
	/* The greeting, an answer for each line, and one error for a line without an end. */
	FUZZ_CHECK(lines >= 1 && lines <= 1 + count_lines(data, size) + 1);
	free(out);
	return 0;
}
