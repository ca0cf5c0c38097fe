/* SPDX-License-Identifier: BSD-3-Clause */
/* See rig.h. */
#include "tests/unit/host/rig.h"

#include "common/log.h"
#include "control/store/store_fault.h"
#include "control/store/store_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct rig rig;

static uint64_t fake_now(void *ctx)
{
	return rig.now;
}

static int64_t fake_ms(void *ctx)
{
	return (int64_t)(rig.now / CLOCK_NS_PER_MS);
}

void rig_begin(const char *extra)
{
	static const char base[] =
		"security = \"none\";\n"
		"node = { name_prefix = \"t\"; drain_ms = 5000; };\n"
		"dataplane = { lanes = 2; };\n"
		"ports = ( { name = \"p0\"; device = \"net_ring0\"; ip = \"10.0.0.1\"; } );\n"
		"control = { socket = \"%s/control.sock\"; private_dir = \"%s\"; };\n"
		"store = { path = \"%s/store.db\"; };\n"
		"%s";
	char text[4096];
	struct conf_report rep;

	memset(&rig, 0, sizeof(rig));
	log_set_level(getenv("T_LOG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	signal(SIGPIPE, SIG_IGN);
	rig.client = -1;
	rig.now = 1000 * CLOCK_NS_PER_S;
	strcpy(rig.dir, "/tmp/t_host.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(rig.dir));
	snprintf(text, sizeof(text), base, rig.dir, rig.dir, rig.dir, extra ? extra : "");
	rig.cfg = conf_load_text("test", text, strlen(text), NULL, &rep);
	if (!rig.cfg)
		conf_report_print(&rep, stderr);
	conf_report_free(&rep);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rig.cfg);
	uv_loop_init(&rig.loop);
}

/* ---- control ---- */

static enum store_fault fault(void *ctx, enum store_op op)
{
	return __atomic_load_n(&rig.store_fails, __ATOMIC_ACQUIRE) ? STORE_FAULT_FAIL
								   : STORE_FAULT_NONE;
}

static struct store *open_store(const char *backend)
{
	const struct store_memory_opts m = {.clock = fake_ms, .seed = t_seed()};
	const struct store_sqlite_opts q = {.path = rig.cfg->store.path, .clock = fake_ms};
	struct store *inner, *st;
	char err[STORE_TEXT_MAX];

	if (strcmp(backend, "sqlite") == 0) {
		CU_ASSERT_EQUAL_FATAL(store_sqlite_open(&st, &q, err, sizeof(err)), 0);
		return st;
	}
	CU_ASSERT_EQUAL_FATAL(store_memory_open(&inner, &m), 0);
	CU_ASSERT_EQUAL_FATAL(store_fault_open(&st, inner, fault, NULL), 0);
	return st;
}

static void on_finished(void *ctx, int code)
{
	rig.finished = true;
	rig.exit_code = code;
}

static void on_closed(void *arg)
{
	rig.closed = true;
}

static void connect_client(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", rig.cfg->control.socket);
	rig.client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(connect(rig.client, (struct sockaddr *)&a, sizeof(a)), 0);
	fcntl(rig.client, F_SETFL, O_NONBLOCK);
}

void rig_control(const char *backend)
{
	const struct host_options o = {
		.loop = &rig.loop,
		.cfg = rig.cfg,
		.store = open_store(backend),
		.now = fake_now,
		.finished = on_finished,
	};
	const struct mgmt_options m = {
		.path = rig.cfg->control.socket,
		.mode = 0600,
		.clients_max = 8,
		.line_max = 4u << 20,
		.output_max = 8u << 20,
		.input_timeout_ms = 60000,
		.output_timeout_ms = 60000,
	};
	char err[512];

	rig.finished = rig.closed = false;
	CU_ASSERT_EQUAL_FATAL(host_open(&rig.h, &o, err, sizeof(err)), 0);
	mgmt_methods_init(rig.methods);
	host_methods(rig.methods);
	CU_ASSERT_EQUAL_FATAL(mgmt_server_open(&rig.server, &rig.loop, &m, rig.methods,
					       SPL_MGMT_METHOD_COUNT, rig.h, err, sizeof(err)),
			      0);
	connect_client();
}

void rig_control_dies(void)
{
	if (!rig.h)
		return;
	close(rig.client);
	rig.client = -1;
	free(rig.in);
	rig.in = NULL;
	rig.in_len = 0;
	rig.closed = false;
	mgmt_server_close(rig.server, on_closed, NULL);
	UNTIL(rig.closed);
	rig.closed = false;
	host_close(rig.h, on_closed, NULL);
	UNTIL(rig.closed);
	rig.h = NULL;
}

/* ---- dataplane ---- */

void rig_fake(void)
{
	const struct t_ctl_options o = {.dir = rig.dir, .now = fake_now};

	CU_ASSERT_EQUAL_FATAL(t_ctl_open(&rig.f, &o), 0);
}

void rig_child(const struct t_ctl_options *o)
{
	struct t_ctl_options mine = *o;

	mine.dir = rig.dir;
	rig.pid = t_ctl_fork(&mine, &rig.child);
	CU_ASSERT_FATAL(rig.pid > 0);
}

void rig_child_dies(void)
{
	if (rig.pid <= 0)
		return;
	kill(rig.pid, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(rig.pid, NULL, 0), rig.pid);
	munmap((void *)(uintptr_t)rig.child, sizeof(*rig.child));
	rig.child = NULL;
	rig.pid = 0;
}

const struct t_ctl_seen *rig_seen(void)
{
	return rig.f ? t_ctl_seen(rig.f) : rig.child;
}

/* ---- steps ---- */

static void read_client(void)
{
	char buf[65536];
	ssize_t n;

	while (rig.client >= 0 && (n = read(rig.client, buf, sizeof(buf))) > 0) {
		char *p = realloc(rig.in, rig.in_len + (size_t)n + 1);

		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		memcpy(p + rig.in_len, buf, (size_t)n);
		rig.in_len += (size_t)n;
		p[rig.in_len] = 0;
		rig.in = p;
	}
}

void rig_step(void)
{
	if (rig.f)
		t_ctl_step(rig.f, 0);
	uv_run(&rig.loop, UV_RUN_NOWAIT);
	read_client();
	usleep(100);
}

/* The only async handle of the loop is the worker's; it has a reference while batches are out. */
static void see_async(uv_handle_t *handle, void *busy)
{
	if (handle->type == UV_ASYNC && uv_has_ref(handle))
		*(bool *)busy = true;
}

static bool store_is_busy(void)
{
	bool busy = false;

	uv_walk(&rig.loop, see_async, &busy);
	return busy;
}

static void settle(void)
{
	int quiet = 0;

	T_UNTIL(quiet == 5, {
		rig_step();
		quiet = store_is_busy() ? 0 : quiet + 1;
	});
}

void rig_pass(uint64_t ms)
{
	while (ms > 0) {
		uint64_t step = ms < 100 ? ms : 100;

		rig.now += step * CLOCK_NS_PER_MS;
		ms -= step;
		host_wake(rig.h);
		settle();
	}
}

void rig_serving(void)
{
	UNTIL(rig_seen()->host_state == DP_HOST_SERVING);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

void rig_end(void)
{
	rig_control_dies();
	if (rig.f)
		t_ctl_close(rig.f);
	rig_child_dies();
	uv_run(&rig.loop, UV_RUN_DEFAULT);
	CU_ASSERT_EQUAL(uv_loop_close(&rig.loop), 0);
	conf_free(rig.cfg);
	nftw(rig.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- the client ---- */

int rig_send(const char *method, json_t *params)
{
	int id = ++rig.request_id;
	json_t *o = json_pack("{s:s,s:i,s:s,s:o}", "jsonrpc", "2.0", "id", id, "method", method,
			      "params", params ? params : json_object());
	char *text = json_dumps(o, JSON_COMPACT);
	size_t n = strlen(text), done = 0;
	ssize_t k = 0;

	text[n++] = '\n';
	T_UNTIL(done == n, {
		k = write(rig.client, text + done, n - done);
		CU_ASSERT_FATAL(k > 0 || errno == EAGAIN);
		rig_step();
		done += k > 0 ? (size_t)k : 0;
	});
	free(text);
	json_decref(o);
	return id;
}

/* Takes the line of `id` out of what has come; the greeting is skipped. */
json_t *rig_receive(int id)
{
	for (char *line = rig.in, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		json_t *o = json_loadb(line, (size_t)(end - line), 0, NULL);
		const json_t *v = json_object_get(o, "id");
		json_t *out;

		if (!v || !json_is_integer(v) || json_integer_value(v) != id) {
			json_decref(o);
			continue;
		}
		out = json_object_get(o, "result");
		out = json_incref(out ? out : json_object_get(o, "error"));
		json_decref(o);
		rig.in_len -= (size_t)(end + 1 - line);
		memmove(line, end + 1, strlen(end + 1) + 1);
		return out;
	}
	return NULL;
}

json_t *rig_call(const char *method, json_t *params)
{
	int id = rig_send(method, params);
	json_t *out = NULL;

	UNTIL((out = rig_receive(id)) != NULL);
	return out;
}

const char *rig_text(const json_t *answer, const char *name)
{
	static char text[1024];
	const char *s = json_string_value(json_object_get(answer, name));

	snprintf(text, sizeof(text), "%s", s ? s : "");
	return text;
}

const char *rig_kind(const json_t *answer)
{
	return rig_text(json_object_get(answer, "data"), "kind");
}

uint64_t rig_generation(const json_t *answer)
{
	return strtoull(rig_text(json_object_get(answer, "ref"), "objectGeneration"), NULL, 10);
}

const char *rig_get_or_create(const char *id, const char *type, uint64_t *gen)
{
	static char text[1024];
	json_t *a = rig_call("spot.get_or_create", json_pack("{s:s,s:s}", "id", id, "type", type));

	if (gen)
		*gen = rig_generation(a);
	snprintf(text, sizeof(text), "%s", rig_text(a, "state"));
	if (!text[0])
		snprintf(text, sizeof(text), "%s", rig_kind(a));
	json_decref(a);
	return text;
}

const char *rig_find(const char *id)
{
	static char text[1024];
	json_t *a = rig_call("spot.find", json_pack("{s:s}", "id", id));

	snprintf(text, sizeof(text), "%s", rig_kind(a));
	if (!text[0])
		strcpy(text, json_is_object(json_object_get(a, "ref")) ? "found" : "none");
	json_decref(a);
	return text;
}
