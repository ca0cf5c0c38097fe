/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake dataplane's socket, life and statistics segment: see t_ctl.h. */
#include "tests/lib/t_ctl_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum spl_kind t_ctl_kind_of(const char *type)
{
	return strcmp(type, "twin") == 0 ? SPL_KIND_INSTANCE : SPL_KIND_USER;
}

uint64_t t_ctl_now(const struct t_ctl *f)
{
	struct timespec t;

	if (f->o.now)
		return f->o.now(f->o.now_ctx);
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int make_stats(struct t_ctl *f)
{
	uint32_t stages = 0;
	size_t size;
	void *p;

	while (stages < T_CTL_TYPES_MAX && f->o.types[stages])
		stages++;
	size = spl_stats_bytes(f->o.lanes, stages);
	f->stats_fd = memfd_create("fake-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f->stats_fd < 0 || ftruncate(f->stats_fd, (off_t)size) < 0)
		return -errno;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->stats_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	f->stats = p;
	f->stats->layout = SPL_STATS_LAYOUT;
	f->stats->size = (uint32_t)size;
	f->stats->epoch = f->seen->epoch;
	f->stats->lanes = f->o.lanes;
	f->stats->ports = 1;
	f->stats->lane_bytes = sizeof(struct spl_lane_stats);
	f->stats->port_bytes = sizeof(struct spl_port_stats);
	f->stats->stages = stages;
	f->stats->stage_bytes = sizeof(struct spl_stage_stats);
	f->stats->trace_bytes = sizeof(struct spl_trace_ring);
	f->stats->trace_entries = SPL_TRACE_ENTRIES;
	for (uint32_t i = 0; i < stages; i++) {
		struct spl_stage_info *info = &spl_stats_infos(f->stats, f->o.lanes, stages)[i];

		info->kind = t_ctl_kind_of(f->o.types[i]);
		snprintf(info->type, sizeof(info->type), "%s", f->o.types[i]);
	}
	f->stats->tsc_hz = 1000000000;
	strcpy(f->stats->port[0].name, "fake0");
	__atomic_store_n(&f->stats->magic, SPL_STATS_MAGIC, __ATOMIC_RELEASE);
	if (fcntl(f->stats_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0)
		return -errno;
	return 0;
}

static int take_lock(struct t_ctl *f)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/" DP_LOCK_NAME, f->o.dir);
	f->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (f->lock_fd < 0 || flock(f->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	if (ftruncate(f->lock_fd, 0) < 0 || dprintf(f->lock_fd, "%d\n", (int)getpid()) < 0)
		return -errno;
	return 0;
}

static int start_listening(struct t_ctl *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if ((size_t)snprintf(f->path, sizeof(f->path), "%s/" DP_SOCKET_NAME, f->o.dir) >=
	    sizeof(f->path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, f->path, sizeof(f->path));
	unlink(f->path);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->listen_fd < 0 || bind(f->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(f->listen_fd, 8) < 0)
		return -errno;
	return 0;
}

static int open_with(struct t_ctl **out, const struct t_ctl_options *o, struct t_ctl_seen *seen)
{
	static const char *const types[] = {"room", "reject", "fail", "hold", "twin"};
	struct t_ctl *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->o = *o;
	f->lock_fd = f->listen_fd = f->conn = f->stats_fd = -1;
	f->seen = seen;
	f->hold_closes = o->hold_closes;
	if (!f->o.lanes)
		f->o.lanes = 2;
	if (!f->o.types[0])
		memcpy(f->o.types, types, sizeof(types));
	while (!f->seen->epoch)
		if (getrandom(&f->seen->epoch, sizeof(f->seen->epoch), 0) < 0)
			abort();
	f->rx = dp_rx_create();
	rc = f->rx ? dp_tx_init(&f->tx, 65536, 64u << 20) : -ENOMEM;
	if (rc == 0)
		rc = take_lock(f);
	if (rc == 0)
		rc = make_stats(f);
	if (rc == 0)
		rc = start_listening(f);
	if (rc < 0)
		t_ctl_close(f);
	else
		*out = f;
	return rc;
}

static struct t_ctl_seen *shared_seen(void)
{
	void *p = mmap(NULL, sizeof(struct t_ctl_seen), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int t_ctl_open(struct t_ctl **out, const struct t_ctl_options *o)
{
	struct t_ctl_seen *seen = shared_seen();

	return seen ? open_with(out, o, seen) : -ENOMEM;
}

void t_ctl_disconnect(struct t_ctl *f)
{
	if (f->conn >= 0)
		close(f->conn);
	f->conn = -1;
	dp_tx_clear(&f->tx);
}

void t_ctl_close(struct t_ctl *f)
{
	t_ctl_disconnect(f);
	for (size_t i = 0; i < T_CTL_BUCKETS; i++)
		while (f->bucket[i])
			t_ctl_object_free(f, f->bucket[i]);
	while (f->closes) {
		struct t_ctl_close *c = f->closes;

		f->closes = c->next;
		free(c);
	}
	if (f->listen_fd >= 0) {
		close(f->listen_fd);
		unlink(f->path);
	}
	if (f->stats)
		munmap(f->stats, f->stats->size);
	if (f->stats_fd >= 0)
		close(f->stats_fd);
	if (f->lock_fd >= 0)
		close(f->lock_fd);
	dp_rx_destroy(f->rx);
	dp_tx_fini(&f->tx);
	munmap(f->seen, sizeof(*f->seen));
	free(f);
}

const struct t_ctl_seen *t_ctl_seen(const struct t_ctl *f)
{
	return f->seen;
}

struct spl_stats *t_ctl_stats(struct t_ctl *f)
{
	return f->stats;
}

bool t_ctl_connected(const struct t_ctl *f)
{
	return f->conn >= 0;
}

void t_ctl_reads(struct t_ctl *f, bool reads)
{
	f->deaf = !reads;
}

void t_ctl_hello_by_hand(struct t_ctl *f, bool by_hand)
{
	f->hello_by_hand = by_hand;
}

/* ---- sending ---- */

struct pack_writer *t_ctl_begin(struct t_ctl *f, uint16_t type, uint16_t flags, uint64_t corr)
{
	f->w = (struct pack_writer){.p = f->out, .cap = sizeof(f->out)};
	dp_begin(&f->w, type, flags, f->seen->epoch, corr);
	return &f->w;
}

void t_ctl_raw(struct t_ctl *f, const void *p, size_t n, int fd)
{
	if (f->conn >= 0)
		dp_tx_push(&f->tx, p, n, fd);
	else if (fd >= 0)
		close(fd);
}

void t_ctl_send(struct t_ctl *f, int fd)
{
	if (dp_finish(&f->w, fd >= 0) < 0)
		abort();
	t_ctl_raw(f, f->out, f->w.len, fd);
}

void t_ctl_hello(struct t_ctl *f, uint64_t epoch, uint32_t pid)
{
	const struct dp_hello m = {
		.pid = pid,
		.state = (uint8_t)f->seen->state,
		.node_gen = f->id.node_gen,
		.lease_gen = f->id.lease_gen,
		.config_hash = f->config_hash,
		.entry_gen = f->id.entry_gen,
		.entry_ver = f->id.entry_ver,
		.rid = dp_text(f->rid),
		.owner_id = dp_text(f->owner_id),
		.entry_id = dp_text(f->entry_id),
		.version = dp_text("fake"),
	};

	f->w = (struct pack_writer){.p = f->out, .cap = sizeof(f->out)};
	dp_begin(&f->w, DP_HELLO, DP_F_EVT, epoch, 0);
	dp_put_hello(&f->w, &m);
	t_ctl_send(f, -1);
}

uint64_t t_ctl_mesh_op(struct t_ctl *f, uint8_t op, const char *rid, const void *body, size_t n,
		       uint64_t deadline)
{
	struct dp_mesh_op m = {
		.op = op,
		.source = 77,
		.deadline = deadline,
		.source_rid = dp_text(rid),
		.body = {body, (uint32_t)n},
	};
	int fd;

	if (dp_field_out(&m.body, &fd) < 0)
		abort();
	dp_put_mesh_op(t_ctl_begin(f, DP_MESH_OP, DP_F_REQ, ++f->corr), &m);
	t_ctl_send(f, fd);
	return f->corr;
}

void t_ctl_on_reply(struct t_ctl *f, t_ctl_reply_fn fn, void *ctx)
{
	f->on_reply = fn;
	f->on_reply_ctx = ctx;
}

void t_ctl_on_packet(struct t_ctl *f, t_ctl_packet_fn fn, void *ctx)
{
	f->on_packet = fn;
	f->on_packet_ctx = ctx;
}

/* ---- the step ---- */

static bool accept_one(struct t_ctl *f)
{
	int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	if (f->conn >= 0) { /* one control at a time */
		close(fd);
		return true;
	}
	f->conn = fd;
	f->seen->connections++;
	if (!f->hello_by_hand)
		t_ctl_hello(f, f->seen->epoch, (uint32_t)getpid());
	return true;
}

static bool read_some(struct t_ctl *f)
{
	struct dp_packet *pk;
	int n = dp_rx_batch(f->rx, f->conn, &pk);

	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		t_ctl_disconnect(f);
		return true;
	}
	for (int i = 0; i < n && f->conn >= 0; i++) {
		struct dp_header h;
		struct pack_reader r;

		if (pk[i].err || dp_open(pk[i].p, pk[i].n, &h, &r) < 0) {
			f->seen->unknown++;
			continue;
		}
		f->seen->packets++;
		if (f->on_packet && f->on_packet(f->on_packet_ctx, &h, r))
			continue;
		t_ctl_serve(f, &h, &r, pk[i].fd);
	}
	return true;
}

bool t_ctl_step(struct t_ctl *f, int timeout_ms)
{
	struct pollfd p[2] = {{.fd = f->listen_fd, .events = POLLIN},
			      {.fd = f->conn, .events = POLLIN}};
	bool did;

	if (f->tx.count)
		p[1].events |= POLLOUT;
	if (f->deaf) {
		poll(NULL, 0, timeout_ms);
		return false;
	}
	if (timeout_ms > 0)
		poll(p, 2, timeout_ms);
	did = accept_one(f);
	if (f->conn >= 0)
		did |= read_some(f);
	if (f->conn >= 0 && f->tx.count) {
		int rc = dp_tx_flush(&f->tx, f->conn);

		if (rc < 0 && rc != -EAGAIN)
			t_ctl_disconnect(f);
		did = true;
	}
	return did;
}

pid_t t_ctl_fork(const struct t_ctl_options *o, const struct t_ctl_seen **seen)
{
	struct t_ctl_seen *s = shared_seen();
	struct t_ctl *f;
	pid_t pid;

	if (!s)
		return -1;
	*seen = s;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(3, ~0u, 0); /* locks and sockets of the parent are not ours */
		if (open_with(&f, o, s) < 0)
			_exit(1);
		__atomic_store_n(&s->connections, 0, __ATOMIC_RELEASE);
		while (!s->exited || f->tx.count)
			t_ctl_step(f, 100);
		_exit(0);
	}
	/* The child listens when its socket is there; epoch is written before. */
	for (char path[256]; pid > 0;) {
		struct stat st;

		snprintf(path, sizeof(path), "%s/" DP_SOCKET_NAME, o->dir);
		if (stat(path, &st) == 0 && __atomic_load_n(&s->epoch, __ATOMIC_ACQUIRE))
			break;
		usleep(1000);
	}
	return pid;
}
