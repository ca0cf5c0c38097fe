/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives an appliance with client processes and tells what became of every message.
 *
 *	load --address IP [--udp-base N] [--mesh NAME] [--type NAME] [--clients N] [--spots N]
 *	     [--seconds N] [--window N] [--requests PERCENT] [--bytes N] [--seed N] [--survivor]
 *	     [--no-roll] [--plant REQUEST] [--quiet]
 *
 * Prints `created` when all rooms are there, a line a second, and at the end the lines `result …`
 * and `calls …`. Exit 0: nothing lost, doubled, out of order or failed (a survivor may see errors);
 * 1 otherwise; 2 wrong arguments. A signal (INT, TERM) ends the drive in order.
 */
#include "tests/smoke/load.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
	stop_asked = 1;
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 10);
	return *text && !*end && *out >= min && *out <= max;
}

static const struct option options[] = {
	{"address", required_argument, NULL, 'a'},  {"udp-base", required_argument, NULL, 'u'},
	{"mesh", required_argument, NULL, 'm'},	    {"type", required_argument, NULL, 't'},
	{"clients", required_argument, NULL, 'c'},  {"spots", required_argument, NULL, 's'},
	{"seconds", required_argument, NULL, 'n'},  {"window", required_argument, NULL, 'w'},
	{"requests", required_argument, NULL, 'r'}, {"bytes", required_argument, NULL, 'b'},
	{"seed", required_argument, NULL, 'd'},	    {"survivor", no_argument, NULL, 'S'},
	{"no-roll", no_argument, NULL, 'R'},	    {"quiet", no_argument, NULL, 'q'},
	{"plant", required_argument, NULL, 'p'},    {NULL, 0, NULL, 0},
};

/* One option; false when it is wrong. */
static bool take(struct load_options *o, int which, const char *text, bool *quiet)
{
	uint64_t n = 0;
	bool ok = true;

	switch (which) {
	case 'a':
		o->address = text;
		break;
	case 'm':
		o->mesh = text;
		break;
	case 't':
		o->type = text;
		break;
	case 'p':
		o->plant = text;
		break;
	case 'u':
		ok = read_number(text, 1, 65279, &n);
		o->udp_base = (uint16_t)n;
		break;
	case 'c':
		ok = read_number(text, 1, LOAD_CLIENTS_MAX, &n);
		o->clients = (uint32_t)n;
		break;
	case 's':
		ok = read_number(text, 1, 1000000, &n);
		o->spots = (uint32_t)n;
		break;
	case 'n':
		ok = read_number(text, 0, 1000000, &n);
		o->seconds = (uint32_t)n;
		break;
	case 'w':
		ok = read_number(text, 1, 100000, &n);
		o->window = (uint32_t)n;
		break;
	case 'r':
		ok = read_number(text, 0, 100, &n);
		o->request_percent = (uint32_t)n;
		break;
	case 'b':
		ok = read_number(text, 16, 65536, &n);
		o->bytes = (uint32_t)n;
		break;
	case 'd':
		ok = read_number(text, 0, UINT64_MAX, &o->seed);
		break;
	case 'S':
		o->is_survivor = true;
		break;
	case 'R':
		o->no_roll = true;
		break;
	case 'q':
		*quiet = true;
		break;
	default:
		ok = false;
	}
	return ok;
}

static bool read_options(struct load_options *o, int argc, char **argv, bool *quiet)
{
	int which;

	*o = (struct load_options){
		.mesh = "default",
		.type = "room",
		.udp_base = 4700,
		.clients = 4,
		.spots = 1000,
		.window = 256,
		.request_percent = 50,
		.bytes = 64,
	};
	if (getrandom(&o->seed, sizeof(o->seed), 0) < 0)
		return false;
	o->seed >>= 32;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!take(o, which, optarg, quiet))
			return false;
	}
	return o->address && optind == argc;
}

static struct load_shared *share(const struct load_options *o)
{
	const size_t bytes = sizeof(struct load_shared) +
			     (size_t)o->clients * o->spots * sizeof(_Atomic uint64_t);
	struct load_shared *s;

	s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return NULL;
	s->o = *o;
	for (uint32_t i = 0; i < o->clients; i++)
		s->sender[i] = (o->seed + i + 1) * 0x9e3779b97f4a7c15ULL;
	return s;
}

static bool start_clients(struct load_shared *s, pid_t *pid)
{
	const pid_t parent = getpid();

	for (uint32_t i = 0; i < s->o.clients; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			return false;
		if (pid[i] > 0)
			continue;
		signal(SIGINT, SIG_IGN); /* the parent tells when to stop */
		signal(SIGTERM, SIG_DFL);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		_exit(load_client(s, i));
	}
	return true;
}

/* The phase that every client has reached. */
static uint32_t slowest(const struct load_shared *s)
{
	uint32_t phase = LOAD_DONE;

	for (uint32_t i = 0; i < s->o.clients; i++)
		phase = s->count[i].phase < phase ? s->count[i].phase : phase;
	return phase;
}

static double seconds_since(const struct timespec *t0)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)(t.tv_sec - t0->tv_sec) + (double)(t.tv_nsec - t0->tv_nsec) / 1e9;
}

static void show_progress(const struct load_shared *s, double at)
{
	struct load_total t;

	load_add_up(s, &t);
	printf("%3.0f s: sent=%lu replies=%lu p50_us=%lu p99_us=%lu retransmitted=%lu errors=%lu\n",
	       at, t.sent, t.replies, t.p50_us, t.p99_us, t.retransmitted, t.errors);
	fflush(stdout);
}

/* Leads the clients through their phases; false when one of them died. */
static bool lead(struct load_shared *s, const pid_t *pid, bool quiet)
{
	const struct timespec pause = {0, 20000000};
	uint32_t left = s->o.clients;
	struct timespec t0 = {0, 0};
	double shown = 0;
	bool ok = true;
	int status;

	while (left > 0) {
		nanosleep(&pause, NULL);
		for (uint32_t i = 0; i < s->o.clients; i++) {
			if (waitpid(pid[i], &status, WNOHANG) != pid[i])
				continue;
			left--;
			ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
		}
		if (!ok) { /* nobody waits for one who is gone */
			s->stop = 1;
			s->may = LOAD_DONE;
		}
		if (ok && s->may < slowest(s)) {
			s->may = slowest(s);
			if (s->may == LOAD_CREATED) {
				clock_gettime(CLOCK_MONOTONIC, &t0);
				printf("created\n");
				fflush(stdout);
			}
		}
		if (stop_asked)
			s->stop = 1;
		if (!t0.tv_sec || s->stop)
			continue;
		if (s->o.seconds && seconds_since(&t0) >= s->o.seconds)
			s->stop = 1;
		if (!quiet && seconds_since(&t0) >= shown + 1)
			show_progress(s, shown = seconds_since(&t0));
	}
	return ok;
}

static bool verdict(const struct load_shared *s, const struct load_total *t, bool alive)
{
	bool ok = true;

#define FAULT(bad, ...) \
	do { \
		if (bad) { \
			fprintf(stderr, "fault: " __VA_ARGS__); \
			ok = false; \
		} \
	} while (0)
	FAULT(t->lost, "%lu messages lost\n", t->lost);
	FAULT(t->duplicated, "%lu messages duplicated\n", t->duplicated);
	FAULT(t->reordered, "%lu messages reordered\n", t->reordered);
	FAULT(t->open, "%lu calls never ended\n", t->open);
	FAULT(!s->o.is_survivor && t->errors, "%lu calls ended with an error\n", t->errors);
	FAULT(!alive || t->failed, "a client failed\n");
#undef FAULT
	return ok;
}

int main(int argc, char **argv)
{
	const struct sigaction act = {.sa_handler = on_signal};
	pid_t pid[LOAD_CLIENTS_MAX];
	struct load_shared *s;
	struct load_options o;
	struct load_total t;
	bool quiet = false, alive;

	if (!read_options(&o, argc, argv, &quiet)) {
		fprintf(stderr, "load: wrong arguments; see the top of load.c\n");
		return 2;
	}
	s = share(&o);
	if (!s) {
		perror("load: mmap");
		return 1;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	if (!start_clients(s, pid)) {
		perror("load: fork");
		return 1;
	}
	alive = lead(s, pid, quiet);
	load_add_up(s, &t);
	load_show(s, &t);
	return verdict(s, &t, alive) ? 0 : 1;
}
