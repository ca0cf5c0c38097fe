/* SPDX-License-Identifier: BSD-3-Clause */
/* GetOrCreate of new Spots a second: authority and store in one thread, with a dataplane that
 * answers at once. The floor is the same transactions, recorded from a run of the product and
 * replayed straight on a fresh store: same keys, values, conditions and batches, without the
 * authority and its reads. SQLite is durable: it lies in the working directory, on a real disk. */
#include "control/authority/authority.h"
#include "control/store/store_memory.h"
#include "control/store/store_sqlite.h"
#include "control/store/store_priv.h"
#include "tests/bench/bench_lib.h"
#include "tests/lib/t_main.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS_ID 0x01021994

/* ---- the transactions of one run ---- */

struct trace_call {
	struct store_txn *txns; /* NULL: a grant of ttl_ms */
	size_t n;
	int64_t ttl_ms;
};

struct trace {
	struct trace_call *calls;
	size_t n, room;
	bool broken;
};

struct recorder { /* a store that writes down what changes it */
	struct store st;
	struct store *in;
	struct trace *to;
};

static void *copy(const void *p, size_t n)
{
	void *to = malloc(n ? n : 1);

	if (to && n)
		memcpy(to, p, n);
	return to;
}

static struct store_bytes copy_bytes(struct store_bytes b)
{
	return (struct store_bytes){copy(b.p, b.n), b.n};
}

static struct trace_call *trace_add(struct trace *t)
{
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 256;
		struct trace_call *v = realloc(t->calls, room * sizeof(*v));

		if (!v)
			abort();
		t->calls = v;
		t->room = room;
	}
	memset(&t->calls[t->n], 0, sizeof(t->calls[0]));
	return &t->calls[t->n++];
}

static void copy_txn(struct store_txn *to, const struct store_txn *from)
{
	struct store_cond *c = copy(from->conds, from->n_conds * sizeof(*c));
	struct store_mut *m = copy(from->muts, from->n_muts * sizeof(*m));

	if (!c || !m)
		abort();
	for (size_t i = 0; i < from->n_conds; i++)
		c[i].key = copy_bytes(c[i].key);
	for (size_t i = 0; i < from->n_muts; i++) {
		m[i].key = copy_bytes(m[i].key);
		if (!m[i].del)
			m[i].val = copy_bytes(m[i].val);
	}
	*to = (struct store_txn){
		.conds = c, .n_conds = from->n_conds, .muts = m, .n_muts = from->n_muts};
}

static struct recorder *recorder_of(struct store *st)
{
	return (struct recorder *)st;
}

static int rec_read(struct store *st, struct store_bytes key, struct store_item *out)
{
	return store_read(recorder_of(st)->in, key, out);
}

static int rec_commit(struct store *st, struct store_txn *txns, size_t n)
{
	struct recorder *r = recorder_of(st);
	struct trace_call *c = trace_add(r->to);

	c->txns = calloc(n, sizeof(*c->txns));
	c->n = n;
	for (size_t i = 0; i < n; i++)
		copy_txn(&c->txns[i], &txns[i]);
	store_commit_batch(r->in, txns, n);
	for (size_t i = 0; i < n; i++)
		r->to->broken |= txns[i].rc != STORE_OK;
	return 0;
}

static int rec_grant(struct store *st, int64_t *ttl_ms, uint64_t *lease)
{
	trace_add(recorder_of(st)->to)->ttl_ms = *ttl_ms;
	return store_grant(recorder_of(st)->in, ttl_ms, lease);
}

static int rec_renew(struct store *st, uint64_t lease, int64_t *ttl_ms)
{
	return store_renew(recorder_of(st)->in, lease, ttl_ms);
}

static int rec_revoke(struct store *st, uint64_t lease)
{
	return store_revoke(recorder_of(st)->in, lease);
}

static int rec_scan(struct store *st, struct store_bytes prefix, const struct store_cursor *cursor,
		    size_t limit, struct store_page *out)
{
	return store_scan(recorder_of(st)->in, prefix, cursor, limit, out);
}

static void rec_close(struct store *st)
{
	store_close(recorder_of(st)->in);
	free(st);
}

static const struct store_ops rec_ops = {rec_read,   rec_commit, rec_grant, rec_renew,
					 rec_revoke, rec_scan,	 rec_close};

static struct store *record(struct store *in, struct trace *to)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->st.ops = &rec_ops;
	r->st.name = in->name;
	r->in = in;
	r->to = to;
	return &r->st;
}

static void free_bytes(struct store_bytes b)
{
	union {
		const void *c;
		void *p;
	} u = {.c = b.p};

	free(u.p);
}

static void trace_free(struct trace *t)
{
	for (size_t i = 0; i < t->n; i++) {
		for (size_t j = 0; j < t->calls[i].n; j++) {
			struct store_txn *x = &t->calls[i].txns[j];

			for (size_t k = 0; k < x->n_conds; k++)
				free_bytes(x->conds[k].key);
			for (size_t k = 0; k < x->n_muts; k++) {
				free_bytes(x->muts[k].key);
				if (!x->muts[k].del)
					free_bytes(x->muts[k].val);
			}
			free_bytes((struct store_bytes){x->conds, 0});
			free_bytes((struct store_bytes){x->muts, 0});
		}
		free(t->calls[i].txns);
	}
	free(t->calls);
	memset(t, 0, sizeof(*t));
}

/* ---- one case ---- */

struct create {
	bool sqlite, random_ids;
	unsigned clients, ops;
	uint64_t seed;
	struct trace trace;
	/* of the run */
	struct t_rand rnd;
	unsigned begun, ended, bad;
	struct auth *a;
	struct store *st;
};

static char dir[64];

static struct store *open_store(const struct create *c)
{
	struct store_sqlite_opts o = {.path = NULL};
	char path[96], err[STORE_TEXT_MAX];
	struct store *st = NULL;

	if (!c->sqlite)
		return store_memory_open(&st, NULL) ? NULL : st;
	snprintf(path, sizeof(path), "%s/s.db", dir);
	o.path = path;
	if (store_sqlite_open(&st, &o, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return NULL;
	}
	return st;
}

static void drop_store(const struct create *c, struct store *st)
{
	static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
	char path[96];

	store_close(st);
	for (size_t i = 0; c->sqlite && i < T_COUNT(ends); i++) {
		snprintf(path, sizeof(path), "%s/s.db%s", dir, ends[i]);
		unlink(path);
	}
}

static void draw(void *ctx, void *buf, size_t n)
{
	struct create *c = ctx;
	uint8_t *b = buf;

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)t_rand_u64(&c->rnd);
}

static void ask(struct create *c)
{
	struct auth_request r = {.verb = AUTH_GET_OR_CREATE};
	char id[40];
	int n;

	if (c->begun == c->ops)
		return;
	n = c->random_ids ? snprintf(id, sizeof(id), "room-%016llx",
				     (unsigned long long)t_rand_u64(&c->rnd))
			  : snprintf(id, sizeof(id), "room-%016u", c->begun);
	r.id = (struct auth_bytes){id, (uint32_t)n};
	r.type = (struct auth_bytes){"room", 4};
	r.deadline = bench_wall_ns() + 60000000000LL;
	spl_name_set(&r.op.rid, "client-7f3b", 11);
	r.op.lifecycle = 4711;
	r.op.lo = ++c->begun;
	if (auth_submit(c->a, &r, bench_wall_ns()))
		c->bad++;
}

/* The dataplane: everything succeeds at once. */
static void answer(struct create *c, const struct auth_effect *fx)
{
	struct auth_event e = {.kind = AUTH_EV_ANSWER};

	e.u.answer.cmd = fx->u.command.cmd;
	e.u.answer.kind = SPL_OK;
	e.u.answer.verdict = AUTH_ACCEPTED;
	auth_event(c->a, &e, bench_wall_ns());
}

static void drive(struct create *c)
{
	struct auth_effect fx;

	while (auth_next(c->a, &fx)) {
		switch (fx.kind) {
		case AUTH_FX_STORE:
			store_run(c->st, fx.u.store);
			auth_store_done(c->a, fx.u.store, bench_wall_ns());
			break;
		case AUTH_FX_REPLY:
			c->ended++;
			c->bad += fx.u.reply.kind != SPL_OK || fx.u.reply.created != AUTH_CREATED;
			ask(c);
			break;
		case AUTH_FX_PREPARE:
		case AUTH_FX_PUBLISH:
			answer(c, &fx);
			break;
		case AUTH_FX_DISCARD:
		case AUTH_FX_CLOSE_LOCAL:
		case AUTH_FX_HOST_READY:
		case AUTH_FX_HOST_STATE:
		case AUTH_FX_LEASE:
		case AUTH_FX_LEASE_LOST:
		case AUTH_FX_INVENTORY:
		case AUTH_FX_LIFECYCLE_CHECK:
		case AUTH_FX_LIFECYCLE_GONE:
		case AUTH_FX_HOST_STOPPED:
		case AUTH_FX_LOG:
			break;
		}
	}
}

static bool start(struct create *c)
{
	struct auth_event e = {.kind = AUTH_EV_HOST_START};
	struct auth_type t = {.kind = SPL_KIND_USER};
	struct auth_config cfg;
	struct auth_status s;

	auth_config_init(&cfg);
	spl_name_set(&cfg.mesh, "mesh", 4);
	snprintf(cfg.prefix, sizeof(cfg.prefix), "node");
	/* One lease lasts for a run, however slow the machine: renewals are not measured. */
	cfg.ttl_ns = 3600 * 1000000000LL;
	cfg.renew_ns = 1800 * 1000000000LL;
	cfg.random = draw;
	cfg.random_ctx = c;
	c->rnd.s = c->seed;
	c->begun = c->ended = c->bad = 0;
	if (auth_create(&c->a, &cfg))
		return false;
	spl_name_set(&t.name, "room", 4);
	e.u.host.types = &t;
	e.u.host.n_types = 1;
	e.u.host.lanes = 2;
	auth_event(c->a, &e, bench_wall_ns());
	drive(c);
	auth_status(c->a, &s);
	return s.state == AUTH_HOST_SERVING;
}

static double product_with(struct create *c, struct trace *to)
{
	int64_t t0, t1;
	double rate = -1;

	c->st = open_store(c);
	if (!c->st)
		return -1;
	if (to)
		c->st = record(c->st, to);
	if (start(c)) {
		t0 = bench_wall_ns();
		for (unsigned i = 0; i < c->clients; i++)
			ask(c);
		drive(c);
		t1 = bench_wall_ns();
		if (c->ended == c->ops && c->bad == 0)
			rate = c->ops / ((double)(t1 - t0) / 1e9);
	}
	auth_destroy(c->a);
	drop_store(c, c->st);
	return rate;
}

static double product(void *ctx)
{
	return product_with(ctx, NULL);
}

static bool replay(struct store *st, struct trace_call *c)
{
	uint64_t lease;

	if (!c->txns)
		return store_grant(st, &c->ttl_ms, &lease) == STORE_OK;
	store_commit_batch(st, c->txns, c->n);
	for (size_t i = 0; i < c->n; i++)
		if (c->txns[i].rc != STORE_OK)
			return false;
	return true;
}

/* The calls of the host's start (grant, T1, T2, T3) are replayed before the clock starts. */
static double floor_run(void *ctx)
{
	struct create *c = ctx;
	struct store *st = open_store(c);
	int64_t t0 = 0;
	double rate = -1;
	bool ok = st != NULL;

	for (size_t i = 0; ok && i < c->trace.n; i++) {
		if (i == 4)
			t0 = bench_wall_ns();
		ok = replay(st, &c->trace.calls[i]);
	}
	if (ok)
		rate = c->ops / ((double)(bench_wall_ns() - t0) / 1e9);
	if (st)
		drop_store(c, st);
	return rate;
}

static void run_case(struct bench *b, bool sqlite, unsigned clients, bool random_ids)
{
	struct create c = {.sqlite = sqlite,
			   .random_ids = random_ids,
			   .clients = clients,
			   .ops = !sqlite	 ? 50000
				  : clients == 1 ? 2000
						 : 20000,
			   .seed = b->seed};
	struct bench_case k = {.unit = "creates/s",
			       .kind = BENCH_RATE,
			       .product = product,
			       .floor = floor_run,
			       .ctx = &c};
	char name[80];

	snprintf(name, sizeof(name), "store=%s,clients=%u,ids=%s", sqlite ? "sqlite" : "memory",
		 clients, random_ids ? "random" : "seq");
	k.name = name;
	if (sqlite && clients == 256) {
		k.target = 0.5;
		k.least = random_ids ? 0 : 8000;
	}
	if (product_with(&c, &c.trace) < 0 || c.trace.broken || c.trace.n < 5) {
		printf("%s: the recorded run failed\n", name);
		b->failed = true;
	} else {
		bench_run(b, &k);
	}
	trace_free(&c.trace);
}

int main(int argc, char **argv)
{
	struct statfs fs;
	struct bench b;

	if (!bench_init(&b, "create", argc, argv))
		return 2;
	snprintf(dir, sizeof(dir), "bench-create-XXXXXX");
	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	if (statfs(dir, &fs) == 0 && fs.f_type == TMPFS_ID)
		printf("warning: the working directory is in memory: sqlite is not durable here\n");
	for (int sqlite = 0; sqlite < 2; sqlite++)
		for (int many = 0; many < 2; many++)
			for (int random_ids = 0; random_ids < 2; random_ids++)
				run_case(&b, sqlite, many ? 256 : 1, random_ids);
	rmdir(dir);
	return bench_end(&b);
}
