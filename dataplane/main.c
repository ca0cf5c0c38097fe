/* SPDX-License-Identifier: BSD-3-Clause */
/* spotlane-dataplane: arguments and signals; everything else is the agent's. It takes its
 * configuration from control over the private socket, and waits until one comes.
 */
#include "dataplane/agent/agent.h"

#include <getopt.h>
#include <rte_version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define DEFAULT_DIR	 "/run/spotlane/private"
#define EXIT_USAGE	 2
#define EXIT_ENVIRONMENT 75

static volatile int signalled;

static void on_signal(int sig)
{
	signalled = sig;
}

static void random_bytes(void *ctx, void *out, size_t bytes)
{
	(void)ctx;
	while (bytes > 0) {
		ssize_t n = getrandom(out, bytes, 0);

		if (n <= 0)
			continue;
		out = (uint8_t *)out + n;
		bytes -= (size_t)n;
	}
}

static void usage(FILE *f)
{
	fprintf(f, "usage: spotlane-dataplane [-d DIR] [-l LEVEL] [-V] [-h]\n"
		   "  -d DIR    directory of the private socket (" DEFAULT_DIR ")\n"
		   "  -l LEVEL  error, warn, info or debug (info)\n"
		   "  -V        version\n"
		   "The configuration comes from spotlane-control.\n"
		   "exit: 0 stopped, 1 stopped without control, 2 usage, 75 the machine is not "
		   "ready, 78 configuration\n");
}

static int parse(int argc, char **argv, const char **dir)
{
	enum log_level level = LOG_LEVEL_INFO;
	int c;

	while ((c = getopt(argc, argv, "d:l:Vh")) != -1) {
		switch (c) {
		case 'd':
			*dir = optarg;
			break;
		case 'l':
			if (!log_level_parse(optarg, &level)) {
				fprintf(stderr, "spotlane-dataplane: unknown log level '%s'\n",
					optarg);
				return EXIT_USAGE;
			}
			break;
		case 'V':
			printf("spotlane-dataplane %s (%s)\n", SPL_VERSION, rte_version());
			exit(0);
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return EXIT_USAGE;
	}
	log_open(STDERR_FILENO, level);
	return 0;
}

static void handle_signals(void)
{
	struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGUSR1, &ignore, NULL);
	sigaction(SIGUSR2, &ignore, NULL);
}

int main(int argc, char **argv)
{
	const char *dir = DEFAULT_DIR;
	char err[AGENT_ERR_BYTES];
	struct sock_ops ops = {.on_peer = agent_on_peer, .on_packet = agent_on_packet};
	struct agent *a;
	int rc = parse(argc, argv, &dir);

	if (rc)
		return rc;
	handle_signals();
	a = calloc(1, sizeof(*a));
	if (!a) {
		fprintf(stderr, "spotlane-dataplane: out of memory\n");
		return EXIT_ENVIRONMENT;
	}
	random_bytes(NULL, &a->epoch, sizeof(a->epoch));
	a->epoch |= 1; /* not zero */
	a->random = random_bytes;
	a->stats_fd = -1;
	a->dir = dir;
	TAILQ_INIT(&a->staged);
	TAILQ_INIT(&a->commands);
	TAILQ_INIT(&a->held_closes);
	ops.ctx = a;
	a->sock = sock_open(dir, &ops, err, sizeof(err));
	if (!a->sock) {
		log_error("agent", "%s", err);
		free(a);
		return EXIT_ENVIRONMENT;
	}
	log_info("agent", "waiting for control dir=%s version=%s pid=%d", dir, SPL_VERSION,
		 (int)getpid());
	rc = agent_run(a, &signalled);
	agent_stop(a);
	sock_close(a->sock);
	if (!a->is_stuck)
		free(a);
	return rc;
}
