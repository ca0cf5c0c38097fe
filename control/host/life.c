/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lifecycles have ended, proved on this machine: see host_priv.h. Loop thread only.
 *
 * Before a dataplane learns its identity, the store gets a row "proc/RID" that says which process
 * it is: boot, pid, start time, lock file. A lifecycle without such a row never began or was proved
 * over before (the row is deleted then, after the proof). With it, the end is another boot, or no
 * such process together with a lock file that is free or another dataplane's.
 */
#include "control/host/host_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define RETRY_MS      500
#define LIFE_SCAN_MAX 64u /* lifecycles told of at a start: AUTH_ENDED_MAX */

struct job {
	struct store_batch b;
	struct store_req req;
	struct store_mut mut;
	struct host *h;
	struct spl_name rid;
	uint64_t lifecycle;
	char key[8 + 255];
	char value[PATH_MAX + 256];
};

/* ---- what a process is ---- */

static bool read_line(const char *path, char *out, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t k;

	if (fd < 0)
		return false;
	k = read(fd, out, n - 1);
	close(fd);
	if (k <= 0)
		return false;
	out[k] = 0;
	out[strcspn(out, "\n")] = 0;
	return true;
}

static void boot_id(char out[64])
{
	if (!read_line("/proc/sys/kernel/random/boot_id", out, 64))
		strcpy(out, "unknown");
}

/* Start time in clock ticks since boot, field 22 of /proc/PID/stat; 0 = no such process. */
static unsigned long long start_time(pid_t pid)
{
	char path[64], stat[1024], *p;
	unsigned long long t = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_line(path, stat, sizeof(stat)))
		return 0;
	p = strrchr(stat, ')'); /* the name before may hold anything */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &t) != 1)
		return 0;
	return t;
}

/* The pid of the dataplane that holds the lock file; 0 = nobody holds it. */
static int lock_holder(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	bool held;

	if (fd < 0)
		return 0;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	if (!held)
		return 0;
	/* Held by somebody who has not written its number yet: it may be the one. */
	return read_line(path, text, sizeof(text)) ? atoi(text) : -1;
}

/* "1 BOOT PID START LOCK" */
static bool has_ended(const char *value)
{
	char boot[64], now[64], lock[PATH_MAX];
	unsigned long long start;
	int pid, holder;

	if (sscanf(value, "1 %63s %d %llu %4095[^\n]", boot, &pid, &start, lock) != 4)
		return false;
	boot_id(now);
	if (strcmp(boot, now) != 0)
		return true;
	/* Two proofs: no such process, and whoever holds the lock is another one. */
	holder = lock_holder(lock);
	return start_time((pid_t)pid) != start && holder >= 0 && holder != pid;
}

/* ---- jobs ---- */

static struct job *job_new(struct host *h, const struct spl_name *rid)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		host_fatal("out of memory");
	j->h = h;
	j->rid = *rid;
	j->b.reqs = &j->req;
	j->b.n = 1;
	snprintf(j->key, sizeof(j->key), "proc/%.*s", rid->len, rid->b);
	j->mut.key = (struct store_bytes){j->key, (uint32_t)strlen(j->key)};
	return j;
}

static void job_txn(struct job *j)
{
	j->req = (struct store_req){.op = STORE_TXN};
	j->req.u.txn.muts = &j->mut;
	j->req.u.txn.n_muts = 1;
}

static void job_run(struct job *j, worker_done_fn fn)
{
	if (worker_run(j->h->worker, &j->b, fn, j) < 0)
		host_fatal("the store's queue is full");
}

/* ---- a store that fails ---- */

static void on_retry(uv_timer_t *t)
{
	struct host *h = t->data;

	if (h->life_scan_again) {
		h->life_scan_again = false;
		host_life_scan(h);
	}
	if (h->life_write_again) {
		h->life_write_again = h->life_writing = false;
		if (h->has_id)
			host_life_write(h);
	}
}

static void retry(struct host *h, bool *what)
{
	*what = true;
	uv_timer_start(&h->life_retry, on_retry, RETRY_MS, 0);
}

/* ---- writing ---- */

static void on_written(void *ctx, struct store_batch *b)
{
	static struct log_rate rate = LOG_RATE(1, 10000);
	struct job *j = ctx;
	struct host *h = j->h;
	bool same = h->has_id && h->id.rid.len == j->rid.len &&
		    memcmp(h->id.rid.b, j->rid.b, j->rid.len) == 0;

	if (h->closing) {
		free(j);
		return;
	}
	if (j->req.u.txn.rc == STORE_OK || !same) {
		h->life_writing = false;
		h->life_written = same;
		if (same) {
			dplink_hold(h->link, false);
			host_life_scan(h); /* the lock names this one now: others can be told */
		} else if (h->has_id)
			host_life_write(h);
		free(j);
		return;
	}
	log_limited(&rate, LOG_LEVEL_ERROR, HOST_MODULE,
		    "the dataplane waits for its identity, the store does not take it: %s",
		    b->text);
	free(j);
	retry(h, &h->life_write_again);
}

void host_life_write(struct host *h)
{
	struct dplink_info i;
	struct job *j;
	char boot[64];

	if (h->life_writing)
		return;
	h->life_writing = true;
	dplink_info(h->link, &i);
	j = job_new(h, &h->id.rid);
	boot_id(boot);
	snprintf(j->value, sizeof(j->value), "1 %s %d %llu %s/" DP_LOCK_NAME, boot, (int)i.pid,
		 start_time(i.pid), h->cfg->control.private_dir);
	j->mut.val = (struct store_bytes){j->value, (uint32_t)strlen(j->value)};
	job_txn(j);
	job_run(j, on_written);
}

/* ---- the end ---- */

static void on_deleted(void *ctx, struct store_batch *b)
{
	/* A row that stays is no harm: its process is judged dead again. */
	free(ctx);
}

void host_life_ended(struct host *h, const struct spl_name *rid)
{
	struct job *j;

	if (!rid->len)
		return;
	j = job_new(h, rid);
	j->mut.del = true;
	job_txn(j);
	job_run(j, on_deleted);
}

/* ---- the check ---- */

static void on_read(void *ctx, struct store_batch *b)
{
	struct job *j = ctx;
	struct host *h = j->h;
	struct auth_event e = {.kind = AUTH_EV_LIFECYCLE};
	struct store_item *it = &j->req.u.read.item;
	char value[sizeof(j->value)];

	e.u.lifecycle.rid = j->rid;
	e.u.lifecycle.lifecycle = j->lifecycle;
	e.u.lifecycle.state = AUTH_LIFE_UNKNOWN;
	if (h->has_id && h->id.rid.len == j->rid.len &&
	    memcmp(h->id.rid.b, j->rid.b, j->rid.len) == 0) {
		e.u.lifecycle.state = AUTH_LIFE_HELD; /* the one that serves now */
	} else if (j->req.rc == STORE_MISSING) {
		e.u.lifecycle.state = AUTH_LIFE_ENDED;
	} else if (j->req.rc == STORE_OK) {
		snprintf(value, sizeof(value), "%.*s", (int)it->len, (const char *)it->val);
		e.u.lifecycle.state = has_ended(value) ? AUTH_LIFE_ENDED : AUTH_LIFE_HELD;
	}
	store_batch_clear(b);
	free(j);
	if (!h->closing)
		host_event(h, &e);
}

void host_life_check(struct host *h, const struct spl_name *rid, uint64_t lifecycle)
{
	struct job *j = job_new(h, rid);

	j->lifecycle = lifecycle;
	j->req = (struct store_req){.op = STORE_READ};
	j->req.u.read.key = j->mut.key;
	job_run(j, on_read);
}

/* ---- the start ---- */

/* Tells the authority of the lifecycle of one "proc/RID" row if its process is proved gone. */
static void tell_ended(struct host *h, const struct store_entry *row)
{
	struct auth_event e = {.kind = AUTH_EV_LIFECYCLE};
	char value[PATH_MAX + 256];

	snprintf(value, sizeof(value), "%.*s", (int)row->val.n, (const char *)row->val.p);
	if (row->key.n <= 5 || !has_ended(value) ||
	    spl_name_set(&e.u.lifecycle.rid, (const char *)row->key.p + 5, row->key.n - 5))
		return;
	e.u.lifecycle.state = AUTH_LIFE_ENDED;
	log_info(HOST_MODULE, "a lifecycle ended while no control was here rid=%.*s",
		 e.u.lifecycle.rid.len, e.u.lifecycle.rid.b);
	host_event(h, &e);
}

static void on_scanned(void *ctx, struct store_batch *b)
{
	struct job *j = ctx;
	struct host *h = j->h;
	const struct store_page *page = &j->req.u.scan.page;
	bool ok = j->req.rc == STORE_OK;

	for (size_t i = 0; ok && !h->closing && i < page->n; i++)
		tell_ended(h, &page->entries[i]);
	store_batch_clear(b);
	free(j);
	if (!ok && !h->closing)
		retry(h, &h->life_scan_again);
}

void host_life_scan(struct host *h)
{
	static const struct spl_name nobody;
	struct job *j = job_new(h, &nobody);

	j->req = (struct store_req){.op = STORE_SCAN};
	j->req.u.scan.prefix = (struct store_bytes){"proc/", 5};
	j->req.u.scan.limit = LIFE_SCAN_MAX;
	job_run(j, on_scanned);
}
