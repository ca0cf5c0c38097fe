/* SPDX-License-Identifier: BSD-3-Clause */
/* The node that spotctl is tested against: see t_fake.h. */
#include "tests/unit/server/t_fake.h"
#include "control/server/server.h"
#include "common/log.h"

#include <fcntl.h>
#include <signal.h>
#include <spotlane/errors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define REF \
	"{\"spotId\":\"room-1\",\"objectGeneration\":\"41\",\"meshName\":\"default\",\"nodeRid\":" \
	"\"node-1f0c\"}"

static const struct {
	enum spl_mgmt_method method;
	const char *param, *value; /* only when this parameter has this value */
	const char *result;	   /* NULL: an error */
} answers[] = {
	{SPL_MGMT_NODE_SHOW, NULL, NULL,
	 "{\"node\":\"node-1f0c\",\"lifecycle\":\"9f3b\",\"mesh\":\"default\",\"object_role\":"
	 "\"server\",\"state\":\"Serving\",\"version\":\"0.1.0\",\"pid\":4711,\"start_time\":"
	 "\"2026-01-02T03:04:05Z\",\"uptime_s\":77,\"dataplane\":\"up\",\"dataplane_pid\":4712,"
	 "\"lanes\":2,\"lease\":\"held\",\"lease_remaining_ms\":9100,\"store\":\"sqlite "
	 "/var/lib/spotlane/store.db\",\"spots\":3,\"log_level\":\"info\"}"},
	{SPL_MGMT_SPOT_CREATE, "type", "declined",
	 "{\"state\":\"Rejected\",\"ref\":" REF ",\"reply\":\"full\"}"},
	{SPL_MGMT_SPOT_CREATE, NULL, NULL,
	 "{\"state\":\"Created\",\"ref\":" REF ",\"reply_base64\":\"AP8=\"}"},
	{SPL_MGMT_SPOT_GET_OR_CREATE, "type", "other", NULL},
	{SPL_MGMT_SPOT_GET_OR_CREATE, NULL, NULL, "{\"state\":\"Existing\",\"ref\":" REF "}"},
	{SPL_MGMT_SPOT_FIND, "id", "missing", "{\"ref\":null}"},
	{SPL_MGMT_SPOT_FIND, NULL, NULL, "{\"ref\":" REF ",\"kind\":\"user\",\"type\":\"room\"}"},
	{SPL_MGMT_SPOT_LIST, "type", "none", "{\"spots\":[]}"},
	{SPL_MGMT_SPOT_LIST, "token", "page2",
	 "{\"spots\":[{\"id\":\"z\\u001b[31m\\n\",\"kind\":\"user\",\"type\":\"Stra\xc3\x9f"
	 "e\",\"state\":\"Closing\",\"generation\":\"9223372036854775807\",\"mesh\":\"default\","
	 "\"node\":\"node-1f0c\"}]}"},
	{SPL_MGMT_SPOT_LIST, NULL, NULL,
	 "{\"spots\":[{\"id\":\"a\",\"kind\":\"entry\",\"type\":\"\",\"state\":\"Ready\","
	 "\"generation\":\"1\",\"mesh\":\"default\",\"node\":\"node-1f0c\"},{\"id\":\"room-1\","
	 "\"kind\":\"user\",\"type\":\"room\",\"state\":\"Ready\",\"generation\":\"41\",\"mesh\":"
	 "\"default\",\"node\":\"node-1f0c\"}],\"next\":\"page2\"}"},
	{SPL_MGMT_SPOT_CLOSE, NULL, NULL, "{\"closed\":true}"},
	{SPL_MGMT_SPOT_SEND, NULL, NULL, "{\"accepted\":true}"},
	{SPL_MGMT_SPOT_REQUEST, "id", "dead", NULL},
	{SPL_MGMT_SPOT_RECLAIM, NULL, NULL, "{\"reclaimed\":12,\"kept\":0}"},
	{SPL_MGMT_STATS_SHOW, "view", "links", NULL},
	{SPL_MGMT_STATS_SHOW, NULL, NULL,
	 "{\"view\":\"drops\",\"columns\":[{\"name\":\"reason\",\"type\":\"text\"},{\"name\":"
	 "\"lane\",\"type\":\"int\"},{\"name\":\"frames\",\"type\":\"int\"}],\"rows\":[{"
	 "\"reason\":\"ip_checksum\",\"lane\":0,\"frames\":1234567},{\"reason\":\"runt\",\"lane\":"
	 "12,\"frames\":0}]}"},
	{SPL_MGMT_STAGE_SHOW, NULL, NULL,
	 "{\"stages\":[{\"mesh\":\"default\",\"type\":\"room\",\"kind\":\"user\",\"shutting_down\":"
	 "false,\"creating\":0,\"ready\":3,\"closing\":1,\"queued\":17,\"queued_bytes\":1020,"
	 "\"active\":2,\"active_bytes\":9,\"ticks\":30,\"skipped\":1,\"delay_us\":512,"
	 "\"delay_max_us\":77,\"created\":5,\"create_rejected\":0,\"create_failed\":0,\"closed\":1,"
	 "\"close_failed\":0,\"close_forced\":0}]}"},
	{SPL_MGMT_STATUS_SHOW, NULL, NULL,
	 "{\"sequence\":3,\"source\":\"runtime\",\"state\":\"Serving\",\"ready\":true,\"accepting_"
	 "work\":true"
	 ",\"dataplane\":\"up\",\"lease\":\"held\",\"inbound_hwm\":1000,\"inbound_pending\":9,"
	 "\"inbound_queued\":7,\"inbound_active\":2,\"receive_paused\":false,\"coalesced\":0,"
	 "\"discarded_terminal\":0}"},
	{SPL_MGMT_METRICS_SHOW, NULL, NULL,
	 "{\"samples\":[{\"name\":\"spotlane.spot.count\",\"labels\":\"mesh_name=\\\"default\\\","
	 "spot_kind"
	 "=\\\"user\\\"\",\"kind\":\"updown\",\"unit\":\"{spot}\",\"value\":3},{\"name\":"
	 "\"spotlane.host."
	 "shutdown.duration\",\"labels\":\"\",\"kind\":\"histogram\",\"unit\":\"s\",\"value\":2,"
	 "\"sum\":0.25,"
	 "\"buckets\":\"0.1:1 0.5:1\"}]}"},
	{SPL_MGMT_TRACE_SHOW, "after", "1f.2", NULL},
	{SPL_MGMT_TRACE_SHOW, NULL, NULL,
	 "{\"level\":\"errors\",\"sample\":1.0,\"lost\":2,\"next\":\"1f.2\",\"records\":[{\"time\":"
	 "\"2026-01-02T03:04:05.000006Z\",\"lane\":1,\"record\":\"spotlane.dispatch_error\","
	 "\"surface"
	 "\":\"spot\",\"kind\":\"send\",\"outcome\":\"failed\",\"reason\":\"no_handler\",\"spot_"
	 "id\":"
	 "\"a\\nb\"}]}"},
	{SPL_MGMT_TRACE_SET_LEVEL, NULL, NULL, "{\"level\":\"detailed\",\"sample\":1.0}"},
	{SPL_MGMT_TRACE_SET_SAMPLE, NULL, NULL, "{\"level\":\"detailed\",\"sample\":0.25}"},
	{SPL_MGMT_CONFIG_SHOW, NULL, NULL,
	 "{\"file\":\"/etc/spotlane.cfg\",\"file_changed\":true,\"options\":[{\"path\":"
	 "\"node.mesh\",\"value\":\"\\\"default\\\"\",\"origin\":\"default\",\"reloadable\":"
	 "false},{\"path\":\"lease.ttl_ms\",\"value\":\"15000\",\"origin\":\"/etc/"
	 "spotlane.cfg:12\",\"reloadable\":false}]}"},
	{SPL_MGMT_LOG_SET_LEVEL, NULL, NULL, "{\"level\":\"debug\",\"previous\":\"info\"}"},
};

struct fake {
	uv_loop_t loop;
	struct mgmt_server *server;
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];
};

static bool applies(size_t i, const json_t *params)
{
	const char *v;

	if (!answers[i].param)
		return true;
	v = json_string_value(json_object_get(params, answers[i].param));
	return v && strcmp(v, answers[i].value) == 0;
}

static void answer(struct mgmt_call *call, const json_t *params, enum spl_mgmt_method method)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (answers[i].method != method || !applies(i, params))
			continue;
		if (answers[i].result)
			mgmt_reply(call, json_loads(answers[i].result, 0, NULL));
		else
			mgmt_fail(call, SPL_E_UNAVAILABLE, "spot dead",
				  "request refused: its owner is gone",
				  "spotctl spot reclaim --node RID");
		return;
	}
	mgmt_fail(call, SPL_E_INTERNAL_FAILURE, NULL, "no answer in the test", NULL);
}

#define HANDLER(id, ...) \
	static void on_##id(struct mgmt_call *call, const json_t *params, void *ctx) \
	{ \
		(void)ctx; \
		answer(call, params, SPL_MGMT_##id); \
	}
SPL_MGMT_METHODS(HANDLER)

/* Echoes its payload; "slow" never answers. */
static void request(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const char *id = json_string_value(json_object_get(params, "id"));
	json_t *result;
	void *bytes;
	size_t n;

	if (strcmp(id, "dead") == 0) {
		on_SPOT_REQUEST(call, params, ctx);
		return;
	}
	if (strcmp(id, "slow") == 0)
		return;
	result = json_object();
	if (mgmt_param_bytes(params, "payload", &bytes, &n) != 0)
		exit(3);
	mgmt_result_bytes(result, "reply", bytes, n);
	free(bytes);
	mgmt_reply(call, result);
}

static void on_gone(void *arg)
{
	(void)arg;
	_exit(0);
}

static void shut(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct fake *f = ctx;
	const json_t *given = json_object_get(params, "deadline_ms");
	json_int_t ms = given ? json_integer_value(given) : 30000;

	mgmt_reply(call, json_pack("{s:s, s:I}", "state", "Draining", "deadline_ms", ms));
	if (ms != 1) /* 1: one that does not end */
		mgmt_server_close(f->server, on_gone, NULL);
}

static void serve(const char *path, mode_t mode, int ready)
{
	static struct fake f;
	struct mgmt_options o = {.path = path,
				 .mode = mode,
				 .clients_max = 16,
				 .line_max = 2097152,
				 .output_max = 8388608,
				 .input_timeout_ms = 10000,
				 .output_timeout_ms = 10000};
	char err[512];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_open(open("/dev/null", O_WRONLY), LOG_LEVEL_ERROR);
	mgmt_methods_init(f.methods);
#define SET(id, ...) f.methods[SPL_MGMT_##id].handler = on_##id;
	SPL_MGMT_METHODS(SET)
	f.methods[SPL_MGMT_SPOT_REQUEST].handler = request;
	f.methods[SPL_MGMT_NODE_SHUTDOWN].handler = shut;
	uv_loop_init(&f.loop);
	if (mgmt_server_open(&f.server, &f.loop, &o, f.methods, SPL_MGMT_METHOD_COUNT, &f, err,
			     sizeof(err)) != 0)
		_exit(1);
	close(ready);
	uv_run(&f.loop, UV_RUN_DEFAULT);
	_exit(0);
}

static void recite(const char *path, const char *bytes, int hold, int ready)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	strcpy(addr.sun_path, path);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(fd, 8) != 0)
		_exit(1);
	close(ready);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client < 0 || send(client, bytes, strlen(bytes), MSG_NOSIGNAL) < 0)
			continue;
		if (!hold)
			close(client);
	}
}

static int start(struct t_fake *f, mode_t mode, const char *bytes, int hold)
{
	int ready[2];
	char c;

	strcpy(f->dir, "/tmp/spotlane-fake-XXXXXX");
	if (!mkdtemp(f->dir) || pipe2(ready, O_CLOEXEC) != 0)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/control.sock", f->dir);
	fflush(NULL);
	f->pid = fork();
	if (f->pid == 0) {
		close(ready[0]);
		if (bytes)
			recite(f->path, bytes, hold, ready[1]);
		else
			serve(f->path, mode, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 0) /* ends when the child listens, or is gone */
		return -1;
	close(ready[0]);
	return f->pid > 0 ? 0 : -1;
}

int t_fake_start(struct t_fake *f, mode_t mode)
{
	return start(f, mode, NULL, 0);
}

int t_fake_script(struct t_fake *f, const char *bytes, int hold)
{
	return start(f, 0, bytes, hold);
}

void t_fake_stop(struct t_fake *f)
{
	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	unlink(f->path);
	rmdir(f->dir);
}
