/* SPDX-License-Identifier: BSD-3-Clause */
/* spotlane-control: arguments, start in stages with undo in reverse, signals, orderly stop.
 *
 * One libuv loop runs everything; the store has its own thread (control/host/worker.h). SIGTERM
 * and SIGINT stop the node in order, a second one changes nothing; SIGHUP, SIGUSR1 and SIGUSR2 are
 * ignored and logged; SIGPIPE is ignored.
 */
#include "common/clock.h"
#include "common/log.h"
#include "control/config/config.h"
#include "control/host/host.h"
#include "control/server/config_show.h"
#include "control/server/server.h"
#include "control/store/store_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULE	       "control"
#define DEFAULT_CONFIG "/etc/spotlane/spotlane.cfg"
#define SIGNALS	       5

struct daemon {
	uv_loop_t loop;
	struct config *cfg;
	int lock_fd;
	char lock_path[128];
	struct store *store; /* until the host takes it */
	struct host *host;
	struct mgmt_server *server;
	struct mgmt_method methods[SPL_MGMT_METHOD_COUNT];
	uv_signal_t signals[SIGNALS];
	unsigned n_signals;
	int exit_code;
};

static const int handled[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

static void usage(FILE *to)
{
	fprintf(to, "usage: spotlane-control [--config FILE] [--check] [-V] [-h]\n"
		    "  -c, --config FILE  configuration (" DEFAULT_CONFIG ")\n"
		    "  --check            only check the configuration\n"
		    "  -V, --version      print the version\n"
		    "  -h, --help         print this\n");
}

/* ---- start, in order ---- */

static int load_config(struct daemon *d, const char *path)
{
	struct conf_report rep;

	d->cfg = conf_load(path, NULL, &rep);
	if (!d->cfg)
		conf_report_print(&rep, stderr);
	conf_report_free(&rep);
	if (!d->cfg)
		return HOST_EXIT_CONFIG;
	log_open(STDERR_FILENO, (enum log_level)d->cfg->log.level);
	return 0;
}

/* One control for each management socket: holds SOCKET.lock for its life. */
static int take_lock(struct daemon *d)
{
	char text[32] = "?";
	ssize_t n;

	snprintf(d->lock_path, sizeof(d->lock_path), "%s.lock", d->cfg->control.socket);
	d->lock_fd = open(d->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (d->lock_fd < 0) {
		log_error(MODULE, "control.socket: cannot open the lock file: %s path=%s",
			  strerror(errno), d->lock_path);
		return HOST_EXIT_ENVIRONMENT;
	}
	if (flock(d->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		n = read(d->lock_fd, text, sizeof(text) - 1);
		if (n > 0)
			text[strcspn(text, "\n")] = 0;
		log_error(MODULE, "already running, pid %s lock=%s", text, d->lock_path);
		return HOST_EXIT_RUNNING;
	}
	if (ftruncate(d->lock_fd, 0) < 0 || dprintf(d->lock_fd, "%d\n", (int)getpid()) < 0) {
		log_error(MODULE, "cannot write the lock file: %s path=%s", strerror(errno),
			  d->lock_path);
		return HOST_EXIT_ENVIRONMENT;
	}
	return 0;
}

/* Makes the last directory of the store's path when it is missing. */
static int make_store_dir(const char *path)
{
	char copy[4096], *dir;

	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (mkdir(dir, 0750) < 0 && errno != EEXIST) {
		log_error(MODULE, "store.path: cannot make the directory: %s path=%s",
			  strerror(errno), dir);
		return HOST_EXIT_ENVIRONMENT;
	}
	return 0;
}

static int open_store(struct daemon *d)
{
	const struct store_sqlite_opts o = {.path = d->cfg->store.path};
	char err[STORE_TEXT_MAX] = "";
	int rc;

	if (d->cfg->store.backend == CONF_STORE_MEMORY) {
		log_warn(MODULE, "the memory store forgets everything when this process ends");
		rc = store_memory_open(&d->store, NULL);
		return rc < 0 ? HOST_EXIT_ENVIRONMENT : 0;
	}
	rc = make_store_dir(d->cfg->store.path);
	if (rc)
		return rc;
	rc = store_sqlite_open(&d->store, &o, err, sizeof(err));
	if (rc == 0)
		return 0;
	log_error(MODULE, "store: %s", err);
	return rc == -EUCLEAN || rc == -EPROTO ? HOST_EXIT_CONFIG : HOST_EXIT_ENVIRONMENT;
}

static void on_host_finished(void *ctx, int code);

static int open_host(struct daemon *d)
{
	const struct host_options o = {
		.loop = &d->loop,
		.cfg = d->cfg,
		.store = d->store,
		.finished = on_host_finished,
		.ctx = d,
	};
	char err[512] = "";
	int rc = host_open(&d->host, &o, err, sizeof(err));

	if (rc == 0) {
		d->store = NULL;
		return 0;
	}
	log_error(MODULE, "%s", err);
	return rc == -EINVAL ? HOST_EXIT_CONFIG : HOST_EXIT_ENVIRONMENT;
}

static int open_server(struct daemon *d)
{
	const struct mgmt_options o = mgmt_options_of(d->cfg);
	char err[512] = "";
	int rc;

	mgmt_methods_init(d->methods);
	host_methods(d->methods);
	rc = mgmt_server_open(&d->server, &d->loop, &o, d->methods, SPL_MGMT_METHOD_COUNT, d->host,
			      err, sizeof(err));
	if (rc == 0)
		return 0;
	log_error(MODULE, "%s", err);
	return rc == -EADDRINUSE ? HOST_EXIT_RUNNING : HOST_EXIT_ENVIRONMENT;
}

/* ---- stop ---- */

static void on_host_closed(void *arg)
{
	struct daemon *d = arg;

	d->host = NULL;
	for (unsigned i = 0; i < d->n_signals; i++)
		uv_close((uv_handle_t *)&d->signals[i], NULL);
	d->n_signals = 0;
}

static void on_server_closed(void *arg)
{
	struct daemon *d = arg;

	d->server = NULL;
	host_close(d->host, on_host_closed, d);
}

static void on_host_finished(void *ctx, int code)
{
	struct daemon *d = ctx;

	d->exit_code = code;
	if (d->server)
		mgmt_server_close(d->server, on_server_closed, d);
	else
		on_server_closed(d);
}

static void on_signal(uv_signal_t *s, int signum)
{
	struct daemon *d = s->data;

	switch (signum) {
	case SIGTERM:
	case SIGINT:
		host_shutdown(d->host, d->cfg->node.drain_ms * CLOCK_NS_PER_MS,
			      signum == SIGTERM ? "SIGTERM" : "SIGINT");
		break;
	case SIGHUP:
		log_info(MODULE, "SIGHUP is ignored: no option can be reloaded yet");
		break;
	default:
		break;
	}
}

/* Blocked from the first line of main until they are handled, so that none is lost or kills. */
static void block_signals(sigset_t *old)
{
	sigset_t all;

	sigemptyset(&all);
	for (unsigned i = 0; i < SIGNALS; i++)
		sigaddset(&all, handled[i]);
	sigprocmask(SIG_BLOCK, &all, old);
	signal(SIGPIPE, SIG_IGN);
}

static void watch_signals(struct daemon *d, const sigset_t *old)
{
	for (; d->n_signals < SIGNALS; d->n_signals++) {
		uv_signal_t *s = &d->signals[d->n_signals];

		uv_signal_init(&d->loop, s);
		s->data = d;
		uv_signal_start(s, on_signal, handled[d->n_signals]);
		uv_unref((uv_handle_t *)s);
	}
	sigprocmask(SIG_SETMASK, old, NULL);
}

static int start(struct daemon *d, const char *path)
{
	int rc = load_config(d, path);

	if (!rc)
		rc = take_lock(d);
	if (!rc)
		rc = open_store(d);
	if (!rc)
		rc = open_host(d);
	if (!rc)
		rc = open_server(d);
	return rc;
}

static int run(const char *path)
{
	struct daemon *d = calloc(1, sizeof(*d));
	sigset_t old;
	int rc;

	if (!d)
		return HOST_EXIT_ENVIRONMENT;
	d->lock_fd = -1;
	block_signals(&old);
	uv_loop_init(&d->loop);
	rc = start(d, path);
	if (rc == 0) {
		log_info(MODULE, "started version=%s pid=%d config=%s", SPL_VERSION, (int)getpid(),
			 path);
		watch_signals(d, &old);
	} else if (d->host) {
		host_close(d->host, on_host_closed, d);
	}
	uv_run(&d->loop, UV_RUN_DEFAULT);
	if (rc == 0) {
		rc = d->exit_code;
		log_info(MODULE, "ended exit=%d", rc);
	}
	uv_loop_close(&d->loop);
	if (d->store)
		store_close(d->store);
	if (d->lock_fd >= 0)
		close(d->lock_fd); /* the file stays: removing it would race with the next start */
	conf_free(d->cfg);
	free(d);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *path = DEFAULT_CONFIG;
	bool check = false;
	int c;

	while ((c = getopt_long(argc, argv, "c:Vh", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			path = optarg;
			break;
		case 'k':
			check = true;
			break;
		case 'V':
			printf("spotlane-control %s\n", SPL_VERSION);
			return HOST_EXIT_OK;
		case 'h':
			usage(stdout);
			return HOST_EXIT_OK;
		default:
			usage(stderr);
			return HOST_EXIT_USAGE;
		}
	}
	if (optind + 1 == argc && check)
		path = argv[optind++];
	if (optind < argc) {
		usage(stderr);
		return HOST_EXIT_USAGE;
	}
	return check ? conf_check_main(path, stdout, stderr) : run(path);
}
