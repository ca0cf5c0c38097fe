/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of Spots alone: cost of one message from its record to the return of its handler, no
 * packets. Bursts of 32 records for random Spots, one state line touched by the handler. It has no
 * floor and no target: a tool for work on this room.
 */
#include "dataplane/spot/lane.h"
#include "tests/lib/t_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define BURST  32u
#define STREAM (1u << 21) /* keys, in the order of arrival */

static uint64_t counters[SPL_C_COUNT], fails[SPL_FAIL_COUNT];

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	(*(uint64_t *)state)++;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {{"add", SPL_TAKES_SEND, on_add}};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "bench",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 16,
	.handlers = handlers,
	.handler_count = 1,
};

static int host_send(void *host, const struct spot_out *out)
{
	return 0;
}

static void host_release(void *host, const struct spot_done *done, unsigned n)
{
}

static void host_ended(void *host, struct spot_rec *const *recs, unsigned n)
{
}

static int host_activate(void *host, const struct spl_key *key, const struct spot_intent *intent,
			 uint64_t serial)
{
	return -ENOSYS;
}

static int host_missing(void *host, const struct spl_key *key, uint8_t origin, uint64_t flow,
			uint64_t correlation)
{
	return -1;
}

static void host_answer(void *host, const struct spot_answer *a)
{
	if (a->verdict != SPOT_ACCEPTED)
		abort();
}

static int host_create(void *host, const struct spot_creation *creation)
{
	return -1;
}

static int host_work(void *host, const struct spot_work *work)
{
	return -1;
}

static void host_failed(void *host, const struct spot_failure *failure)
{
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct spot_lane *make(uint32_t spots, struct spl_key *keys, const struct spot_stage *st)
{
	struct spot_conf c = {
		.lanes = 1,
		.spots_max = spots,
		.records = 4096,
		.calls = 1024,
		.commands = 64,
		.heap_bytes = 16 << 20,
		.object_bytes = (uint64_t)spots * 256 + (1 << 20),
		.queue_count = 4096,
		.queue_bytes = 64 << 20,
		.life_count = 256,
		.life_bytes = 4 << 20,
		.life_cap = 8,
		.turn_budget_us = 50,
		.message_max = 1 << 20,
		.request_ms = 1000,
		.clock_hz = 2000000000,
		.secret = {0x123456789abcdefull, 0xfedcba987654321ull, 77, 99},
		.counters = counters,
		.fails = fails,
	};
	struct spot_env env = {
		.send = host_send,
		.ended = host_ended,
		.release = host_release,
		.missing = host_missing,
		.activate = host_activate,
		.answer = host_answer,
		.work = host_work,
		.create = host_create,
		.failed = host_failed,
	};
	void *mem[SPOT_MEM_COUNT];
	struct spot_lane *l;

	for (int r = 0; r < SPOT_MEM_COUNT; r++) {
		mem[r] = mmap(NULL, spot_region_bytes(&c, (enum spot_region)r),
			      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0);
		madvise(mem[r], spot_region_bytes(&c, (enum spot_region)r), MADV_HUGEPAGE);
	}
	l = spot_lane_init(&c, &env, mem);
	spot_lane_set(l, UINT64_MAX, false, UINT32_MAX);
	for (uint32_t i = 0; i < spots; i++) {
		char id[64];
		struct spot_prepare p = {.id = id, .stage = st, .object_generation = i + 1};

		p.id_len = (uint8_t)snprintf(id, sizeof(id), "spot-%031u", i);
		p.key = keys[i] = spl_spot_key(id, p.id_len);
		spot_prepare(l, &p, 0);
		spot_run(l, 8, UINT64_MAX);
		spot_publish(l, &p.key, p.object_generation, 0, 0);
	}
	return l;
}

static double run(struct spot_lane *l, const struct spl_key *stream, unsigned bursts)
{
	static char payload[64];
	uint64_t packet = spl_packet_key("add", 3);
	double begin = cpu_ns();

	for (unsigned b = 0; b < bursts; b++) {
		struct spot_rec *recs[BURST];

		if (spot_recs_take(l, recs, BURST) != BURST)
			abort();
		for (unsigned i = 0; i < BURST; i++) {
			struct spot_rec *rec = recs[i];

			rec->msg.payload = payload;
			rec->msg.payload_bytes = 64;
			rec->buf = payload;
			rec->packet = packet;
			rec->deadline = 0;
			rec->flow = 1;
			rec->charge = 100;
			rec->msg.metadata = NULL;
			rec->msg.metadata_bytes = 0;
			rec->msg.content = SPL_CONTENT_RAW;
			rec->kind = SPL_MSG_SPOT_SEND;
			rec->origin = SPOT_FROM_LINK;
			rec->msg.correlation = 0;
			rec->msg.source = 1;
			rec->key = &stream[(b * BURST + i) & (STREAM - 1)];
		}
		spot_admit(l, recs, BURST, spot_cycles());
		spot_run(l, 512, UINT64_MAX);
	}
	return (cpu_ns() - begin) / bursts / BURST;
}

int main(void)
{
	static const uint32_t sizes[] = {1, 1000, 100000, 1000000};
	struct spot_stage st;
	struct spot_handler slots[8];
	uint32_t which;
	struct spl_key *stream = malloc(STREAM * sizeof(*stream));

	spot_stage_build(&st, &stage, slots, 0, &which);
	for (unsigned k = 0; k < 4; k++) {
		struct spl_key *keys = malloc(sizeof(*keys) * sizes[k]);
		struct spot_lane *l = make(sizes[k], keys, &st);
		struct t_rand r = {1};
		unsigned bursts = 60000;

		for (unsigned i = 0; i < STREAM; i++)
			stream[i] = keys[t_rand_below(&r, sizes[k])];
		run(l, stream, bursts / 4);
		for (int i = 0; i < 5; i++)
			printf("spots=%u: %.1f ns, objects %.1f bytes, table %.1f\n", sizes[k],
			       run(l, stream, bursts), (double)l->slab.cut / sizes[k],
			       (double)l->table.n * 64 / sizes[k]);
		free(keys);
	}
	return 0;
}
