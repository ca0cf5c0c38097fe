/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a lane: table under ground keys, slabs within the plan, lane memory, wheel. */
#include "tests/unit/spot/teststage.h"

#include <errno.h>
#include <stdlib.h>

static const uint64_t secret[4] = {0x9d3f1c55a7e0b142u, 0x13579bdf02468aceu, 0xfeedfacecafebeefu,
				   0x0123456789abcdefu};

/* A table over objects of its own, without a lane. */
struct rig {
	struct slab slab;
	struct table table;
	void *buckets, *objects;
	uint32_t max;
};

static void rig_start(struct rig *r, uint32_t max)
{
	size_t buckets = (size_t)table_buckets(max) * sizeof(struct table_bucket);
	size_t objects = ((size_t)max * 64 / SLAB_CHUNK + 2) * SLAB_CHUNK;

	r->max = max;
	r->buckets = aligned_alloc(64, buckets);
	r->objects = aligned_alloc(64, objects);
	memset(r->buckets, 0, buckets);
	slab_init(&r->slab, r->objects, objects);
	table_init(&r->table, r->buckets, max, &r->slab, secret);
}

static void rig_stop(struct rig *r)
{
	free(r->buckets);
	free(r->objects);
}

static struct spot *add(struct rig *r, const struct spl_key *key)
{
	struct spot *s = slab_take(&r->slab, 0);

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	memset(s, 0, sizeof(*s));
	s->key = *key;
	table_add(&r->table, s);
	return s;
}

static uint32_t longest_chain(const struct table *t)
{
	uint32_t worst = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t n = 0;

		for (uint32_t at = t->b[i].chain; at; n++)
			at = ((struct spot *)slab_at(t->slab, at))->chain;
		worst = n > worst ? n : worst;
	}
	return worst;
}

/* 100 000 keys whose bits that an unseeded table would use are all the same: they spread as random
 * ones do. Four ways to grind: low bits, high bits, a stride, one half constant. */
static void test_ground_keys(void)
{
	struct t_rand rnd = {t_seed()};

	for (int how = 0; how < 4; how++) {
		struct rig r;
		struct spl_key key;
		uint64_t k[2];

		rig_start(&r, 100000);
		for (uint64_t i = 0; i < 100000; i++) {
			k[0] = t_rand_u64(&rnd);
			k[1] = t_rand_u64(&rnd);
			if (how == 0) { /* ids ground until the low bits of both words agree */
				k[0] &= ~UINT64_C(0xffffff);
				k[1] &= ~UINT64_C(0xffffff);
			} else if (how == 1) {
				k[0] >>= 40;
				k[1] >>= 40;
			} else if (how == 2) {
				k[0] = i << 20;
				k[1] = i << 40;
			} else {
				k[0] = 0x4242424242424242u;
				k[1] = i;
			}
			memcpy(key.b, k, sizeof(k));
			if (!table_find(&r.table, &key))
				add(&r, &key);
			if (i % 1000 == 999) /* early: piled up it would take for ever */
				CU_ASSERT_FATAL(r.table.chained < r.table.count / 20 + 50);
		}
		/* Random: 2 % of Spots in chains, none longer than a handful. */
		CU_ASSERT(r.table.chained < r.table.count / 20);
		CU_ASSERT(longest_chain(&r.table) < 16);
		rig_stop(&r);
	}
}

/* Finds what is there and nothing else, while it grows by single splits, and after removals. */
static void test_table(void)
{
	enum { N = 20000 };
	static struct spl_key keys[N];
	static struct spot *at[N];
	struct t_rand rnd = {t_seed()};
	struct rig r;
	uint32_t n = 0;

	rig_start(&r, N);
	memset(at, 0, sizeof(at));
	for (uint32_t i = 0; i < N; i++) {
		uint64_t k[2] = {t_rand_u64(&rnd), t_rand_u64(&rnd)};

		memcpy(keys[i].b, k, sizeof(k));
	}
	for (uint32_t step = 0; step < 200000; step++) {
		uint32_t i = t_rand_below(&rnd, N), before = r.table.n;
		struct spot *s = table_find(&r.table, &keys[i]);

		CU_ASSERT_PTR_EQUAL_FATAL(s, at[i]);
		if (!s && t_rand_below(&rnd, 3)) {
			at[i] = add(&r, &keys[i]);
			n++;
		} else if (s) {
			table_del(&r.table, s);
			slab_give(&r.slab, 0, s);
			at[i] = NULL;
			n--;
		}
		CU_ASSERT(r.table.n - before <= 1); /* no pause */
		CU_ASSERT_EQUAL_FATAL(r.table.count, n);
	}
	CU_ASSERT(r.table.n <= table_buckets(N));
	for (uint32_t i = 0; i < N; i++) {
		CU_ASSERT_PTR_EQUAL(table_find(&r.table, &keys[i]), at[i]);
		if (at[i])
			table_del(&r.table, at[i]);
	}
	CU_ASSERT_EQUAL(r.table.count, 0);
	CU_ASSERT_EQUAL(r.table.chained, 0);
	rig_stop(&r);
}

/* The same key bits under another secret lie elsewhere. */
static void test_secret(void)
{
	struct table a = {.secret = {1, 2, 3, 4}}, b = {.secret = {5, 6, 7, 8}};
	unsigned same = 0;

	for (unsigned i = 0; i < 10000; i++) {
		struct spl_key key = {{(uint8_t)i, (uint8_t)(i >> 8)}};

		same += (table_hash(&a, &key) & 0xff) == (table_hash(&b, &key) & 0xff);
	}
	CU_ASSERT(same < 100);
}

static void test_slab(void)
{
	for (uint32_t bytes = 1; bytes <= (1u << 20) + 4096; bytes += bytes < 3000 ? 1 : 977) {
		unsigned c = slab_class_of(bytes);

		CU_ASSERT_FATAL(c < SLAB_CLASSES);
		CU_ASSERT_FATAL(slab_class_bytes(c) >= bytes);
		CU_ASSERT(c == 0 || slab_class_bytes(c - 1) < bytes);
		CU_ASSERT(slab_chunk_objects(c) >= 1);
		CU_ASSERT(slab_class_bytes(c) % 64 == 0);
	}
	CU_ASSERT(slab_class_bytes(slab_class_of(193)) == 256);
}

static int nothing(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	return SPL_DONE;
}

/* Spots of many sizes come and go: the lane never needs a byte beyond the plan (fake_law), state is
 * zeroed, objects do not overlap, and a full region is refused and not overrun. */
static void test_plan(void)
{
	enum { N = 300 };
	static struct spl_stage desc[8];
	static struct spl_handler h = {"x", SPL_TAKES_SEND, nothing};
	static uint64_t generation[N];
	static uint32_t kind[N];
	struct t_rand rnd = {t_seed()};

	for (unsigned i = 0; i < 8; i++) {
		static const uint32_t sizes[] = {0, 8, 17, 100, 1000, 5000, 70000, 1048576};

		desc[i] = test_stage_plain;
		desc[i].state_bytes = sizes[i];
		desc[i].handlers = &h;
		desc[i].handler_count = 1;
	}
	test_begin(1);
	test_rig.conf.object_bytes = 64 << 20;
	test_rig.conf.commands = 1024;
	fake_start(&test_rig);
	memset(generation, 0, sizeof(generation));
	for (int step = 0; step < 3000; step++) {
		uint32_t i = t_rand_below(&rnd, N);
		char id[260];

		memset(id, 'x', sizeof(id));
		snprintf(id + (i < 10 ? 250 : i % 100), 8, "%u", i);
		if (generation[i]) {
			struct spot *s = test_spot(id);
			uint8_t *state = spot_state_of(s);

			for (uint32_t b = 0; b < desc[kind[i]].state_bytes; b += 61)
				CU_ASSERT_EQUAL_FATAL(state[b], (uint8_t)i);
			fake_close(&test_rig, id, generation[i], SPL_CLOSING_EXPLICIT, 0);
			fake_run(&test_rig);
			CU_ASSERT_PTR_NULL(test_spot(id));
			generation[i] = 0;
		} else {
			uint8_t *state;

			kind[i] = t_rand_below(&rnd, step % 10 ? 7 : 8);
			generation[i] = fake_create(&test_rig, id, fake_stage(&desc[kind[i]]));
			state = spot_state_of(test_spot(id));
			CU_ASSERT_EQUAL((uintptr_t)state % 16, 0);
			CU_ASSERT_EQUAL(spot_cold_of(test_spot(id))->id_len, strlen(id));
			for (uint32_t b = 0; b < desc[kind[i]].state_bytes; b += 61) {
				CU_ASSERT_EQUAL_FATAL(state[b], 0);
				state[b] = (uint8_t)i;
			}
		}
		CU_ASSERT_FATAL(fake_law(&test_rig));
	}
	test_stop();
}

static void test_plan_full(void)
{
	struct spot_plan plan;
	struct spot_conf c = {.spots_max = 3, .object_bytes = SLAB_CHUNK};
	const struct spot_stage *st = fake_stage(&test_stage);

	spot_plan_init(&plan, &c);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(spot_plan_add(&plan, st, 10), 0);
	CU_ASSERT_EQUAL(spot_plan_add(&plan, st, 10), -ENOSPC);
	spot_plan_remove(&plan, st, 10);
	CU_ASSERT_EQUAL(spot_plan_add(&plan, st, 10), 0);
	spot_plan_remove(&plan, st, 10);
	/* Another class needs another chunk, for which there is no room. */
	CU_ASSERT_EQUAL(spot_plan_add(&plan, st, 200), -ENOSPC);
	CU_ASSERT_EQUAL(plan.spots, 2);
	CU_ASSERT_EQUAL(plan.bytes[SPOT_MEM_OBJECTS], SLAB_CHUNK);
}

/* Random sizes against a model of what is handed out; the bytes stay, the walk finds no fault, and
 * at the end one block is left. */
static void test_lanemem(void)
{
	enum { N = 400, BYTES = 1 << 20 };
	static struct {
		uint8_t *p;
		size_t n;
		uint8_t fill;
	} a[N];
	uint8_t *region = aligned_alloc(64, BYTES);
	struct t_rand rnd = {t_seed()};
	struct lanemem m;
	uint64_t left;
	unsigned refused = 0;

	lanemem_init(&m, region, BYTES);
	left = lanemem_left(&m);
	CU_ASSERT(left > BYTES - 64);
	CU_ASSERT(lanemem_check(&m));
	memset(a, 0, sizeof(a));
	for (int step = 0; step < 100000; step++) {
		unsigned i = t_rand_below(&rnd, N);

		if (a[i].p) {
			for (size_t b = 0; b < a[i].n; b += 1 + a[i].n / 7)
				CU_ASSERT_EQUAL_FATAL(a[i].p[b], a[i].fill);
			CU_ASSERT_EQUAL_FATAL(a[i].p[a[i].n - 1], a[i].fill);
			lanemem_free(&m, a[i].p);
			a[i].p = NULL;
		} else {
			uint32_t range = t_rand_below(&rnd, 20) ? 3000 : 60000;

			a[i].n = 1 + t_rand_below(&rnd, range);
			a[i].p = lanemem_alloc(&m, a[i].n);
			a[i].fill = (uint8_t)step;
			if (a[i].p) {
				CU_ASSERT_EQUAL((uintptr_t)a[i].p % 16, 0);
				memset(a[i].p, a[i].fill, a[i].n);
			} else {
				refused++;
			}
		}
		if (step % 100 == 0)
			CU_ASSERT_FATAL(lanemem_check(&m));
	}
	CU_ASSERT_EQUAL(m.failed, refused);
	for (unsigned i = 0; i < N; i++)
		lanemem_free(&m, a[i].p);
	CU_ASSERT_EQUAL(lanemem_left(&m), left);
	CU_ASSERT(lanemem_check(&m));
	/* All of it is one block again: an eighth less than everything surely fits. */
	void *p = lanemem_alloc(&m, left / 8 * 7);
	CU_ASSERT_PTR_NOT_NULL(p);
	lanemem_free(&m, p);
	CU_ASSERT_PTR_NULL(lanemem_alloc(&m, BYTES));
	CU_ASSERT_PTR_NULL(lanemem_alloc(&m, (size_t)1 << 40));
	lanemem_free(&m, NULL);
	free(region);
}

/* Sixteen-byte steps, not powers of two: what is handed out is what was asked for and a header. */
static void test_lanemem_right_sized(void)
{
	uint8_t *region = aligned_alloc(64, 1 << 20);
	struct lanemem m;

	lanemem_init(&m, region, 1 << 20);
	for (size_t n = 1; n < 20000; n = n * 5 / 4 + 1) {
		uint64_t before = m.used;
		void *p = lanemem_alloc(&m, n);

		CU_ASSERT(m.used - before <= n + 8 + 32);
		lanemem_free(&m, p);
		CU_ASSERT_EQUAL(m.used, before);
	}
	free(region);
}

struct timer {
	struct wheel_node node;
	uint64_t deadline;
	bool armed;
};

/* Never early, at most two ticks late, removed ones never; also for deadlines beyond one round and
 * for long pauses. */
static void test_wheel(void)
{
	enum { N = 2000 };
	static struct timer t[N];
	static struct wheel w;
	struct t_rand rnd = {t_seed()};
	uint64_t now = 5000 * (uint64_t)FAKE_MS, tick;
	uint32_t out[64];
	unsigned fired = 0, armed = 0;

	memset(t, 0, sizeof(t));
	wheel_init(&w, t, sizeof(t[0]), FAKE_HZ, now);
	tick = (uint64_t)1 << w.shift;
	CU_ASSERT(tick <= FAKE_MS && tick > FAKE_MS / 4);
	for (int step = 0; step < 60000; step++) {
		uint32_t i = 1 + t_rand_below(&rnd, N - 1);
		bool caught_up = false;

		if (t[i].armed) {
			wheel_del(&w, i);
			wheel_del(&w, i);
			t[i].armed = false;
			armed--;
		} else {
			static const uint32_t ranges[] = {10, 1000, 40000};

			t[i].deadline =
				now + t_rand_below(&rnd, ranges[step % 3] * FAKE_MS / 64) * 64ull;
			wheel_add(&w, i, t[i].deadline);
			t[i].armed = true;
			armed++;
		}
		now += t_rand_below(&rnd, 2 * FAKE_MS);
		if (step % 5000 == 4999)
			now += 3000 * (uint64_t)FAKE_MS; /* the lane was away */
		while (!caught_up) {
			unsigned n = wheel_advance(&w, now, out, 64);

			for (unsigned k = 0; k < n; k++) {
				CU_ASSERT_FATAL(t[out[k]].armed);
				CU_ASSERT_FATAL(t[out[k]].deadline <= now);
				t[out[k]].armed = false;
				armed--;
				fired++;
			}
			caught_up = w.tick > now >> w.shift || (n == 0 && w.armed == 0);
		}
		if (step % 64)
			continue;
		for (uint32_t k = 1; k < N; k++)
			if (t[k].armed)
				CU_ASSERT(t[k].deadline + 2 * tick > now);
	}
	CU_ASSERT_EQUAL(w.armed, armed);
	CU_ASSERT(fired > 10000);
}

static const struct t_case cases[] = {
	T(test_ground_keys), T(test_table),	T(test_secret),	 T(test_slab),
	T(test_plan),	     T(test_plan_full), T(test_lanemem), T(test_lanemem_right_sized),
	T(test_wheel),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_memory", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
