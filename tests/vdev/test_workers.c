/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers with their real threads beside two lanes that the test steps: what handlers hand over
 * is done, bounded, and answered once.
 */
#include "common/ids.h"
#include "dataplane/worker/workers.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_node.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define LANES	2
#define SPOTS	8
#define BIG	100000u
#define THREADS 2
#define QUEUE	4
#define OPS	(4 * THREADS)

static struct t_node node;
static struct workers *workers;
static struct t_peer *peer;

/* A gate at which computations wait until the test opens it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	unsigned inside; /* wait or have passed */
	bool is_open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};

static _Atomic unsigned on_lane, io_ends, io_steps;
static _Atomic unsigned wrong; /* CUnit is for one thread */
#define MUST(what) ((what) ? (void)0 : (void)wrong++)
static pthread_t lanes_thread;
static int pipe_fd[OPS][2]; /* each operation its own */
static _Atomic uint32_t io_timeout_ms;

static void here(void)
{
	if (pthread_equal(pthread_self(), lanes_thread))
		on_lane++;
}

static void set_gate(bool open)
{
	pthread_mutex_lock(&gate.lock);
	gate.is_open = open;
	if (!open)
		gate.inside = 0;
	pthread_cond_broadcast(&gate.moved);
	pthread_mutex_unlock(&gate.lock);
}

static unsigned at_gate(void)
{
	unsigned n;

	pthread_mutex_lock(&gate.lock);
	n = gate.inside;
	pthread_mutex_unlock(&gate.lock);
	return n;
}

/* ---- computations ---- */

static int compute_square(struct spl_work *work, const void *input, uint32_t bytes)
{
	uint32_t v;

	here();
	memcpy(&v, input, 4);
	v *= v;
	MUST(spl_work_result(work, SPL_CONTENT_COUNT, &v, 4) == -EINVAL);
	MUST(spl_work_result(work, SPL_CONTENT_JSON, &v, 4) == 0);
	MUST(spl_work_result(work, SPL_CONTENT_JSON, &v, 4) == -EINVAL);
	MUST(spl_io_wait(work, -1, 0, 5) == -EINVAL); /* for operations only */
	MUST(spl_close_self(NULL) == -EINVAL);
	return SPL_DONE;
}

static int compute_gate(struct spl_work *work, const void *input, uint32_t bytes)
{
	here();
	pthread_mutex_lock(&gate.lock);
	gate.inside++;
	while (!gate.is_open)
		pthread_cond_wait(&gate.moved, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	return SPL_DONE;
}

static int compute_fails(struct spl_work *work, const void *input, uint32_t bytes)
{
	return spl_work_result(work, SPL_CONTENT_RAW, "lost", 4) ? SPL_DONE
								 : SPL_FAIL(SPL_E_NOT_FOUND);
}

static int compute_big(struct spl_work *work, const void *input, uint32_t bytes)
{
	static __thread uint8_t out[BIG];
	static uint8_t huge[SPL_MESSAGE_BYTES_MAX + 1];

	for (uint32_t i = 0; i < bytes && i < BIG; i++)
		out[i] = (uint8_t)(((const uint8_t *)input)[i] + i);
	MUST(spl_work_result(work, SPL_CONTENT_RAW, huge, sizeof(huge)) == -EMSGSIZE);
	return spl_work_result(work, SPL_CONTENT_RAW, out, bytes) == -ENOBUFS
		       ? SPL_FAIL(SPL_E_CAPACITY_EXCEEDED)
		       : SPL_DONE;
}

/* ---- operations ---- */

/* Waits for a byte of the pipe that the input names, answers with it. */
static int read_step(struct spl_work *work, void *memory, unsigned ready, const void *input,
		     uint32_t bytes)
{
	uint32_t *steps = memory, which;
	char c;
	int fd;

	here();
	memcpy(&which, input, 4);
	fd = pipe_fd[which][0];
	io_steps++;
	if (ready == 0)
		MUST(*steps == 0); /* zeroed */
	(*steps)++;
	if (ready & SPL_IO_TIME)
		return SPL_FAIL(SPL_E_UNAVAILABLE);
	if (ready & SPL_IO_READ && read(fd, &c, 1) == 1)
		return spl_work_result(work, SPL_CONTENT_TEXT, &c, 1) ? SPL_FAIL(0) : SPL_DONE;
	MUST(spl_io_wait(work, -1, SPL_IO_READ, 0) == -EINVAL);
	MUST(spl_io_wait(work, fd, 0, 0) == -EINVAL);
	if (which == 1) /* another waits for it */
		MUST(spl_io_wait(work, pipe_fd[0][0], SPL_IO_READ, 0) == -EEXIST);
	MUST(spl_io_wait(work, fd, 8, 0) == -EINVAL);
	MUST(spl_io_wait(work, -1, 0, 0) == -EINVAL);
	MUST(spl_io_wait(work, fd, SPL_IO_READ, io_timeout_ms) == 0);
	MUST(spl_io_wait(work, fd, SPL_IO_READ, 0) == -EINVAL);
	return SPL_SUSPENDED;
}

static void count_end(void *memory)
{
	here();
	io_ends++;
}

static const struct spl_io reads = {sizeof(uint32_t), read_step, count_end};

/* Three times of a millisecond, then the number of steps. */
static int sleep_step(struct spl_work *work, void *memory, unsigned ready, const void *input,
		      uint32_t bytes)
{
	uint32_t *steps = memory;

	if (ready)
		MUST(ready == SPL_IO_TIME);
	if (++*steps == 4)
		return spl_work_result(work, SPL_CONTENT_RAW, steps, 4) ? SPL_FAIL(0) : SPL_DONE;
	return spl_io_wait(work, -1, 0, 1) ? SPL_FAIL(0) : SPL_SUSPENDED;
}
static const struct spl_io sleeps = {sizeof(uint32_t), sleep_step, count_end};

/* Says that it waits, and does not. */
static int liar_step(struct spl_work *work, void *memory, unsigned ready, const void *input,
		     uint32_t bytes)
{
	return SPL_SUSPENDED;
}
static const struct spl_io lies = {0, liar_step, NULL};

/* ---- the stage ---- */

static int answer(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	if (r->kind != SPL_OK)
		return SPL_FAIL(r->kind);
	return spl_reply(turn, r->content, r->payload, r->payload_bytes) ? SPL_FAIL(0) : SPL_DONE;
}

static int wait_for(struct spl_turn *turn, int rc, struct spl_call *call)
{
	if (rc == -EAGAIN)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	if (rc || spl_call_then(turn, call, answer, NULL))
		return SPL_FAIL(SPL_E_INVALID_OPERATION);
	return SPL_SUSPENDED;
}

#define CPU_HANDLER(name, fn) \
	static int on_##name(struct spl_turn *turn, void *state, const struct spl_message *m) \
	{ \
		struct spl_call *call = NULL; \
		int rc = spl_run_cpu(turn, fn, m->payload, m->payload_bytes, 0, SPL_WAIT_YIELD, \
				     &call); \
\
		return wait_for(turn, rc, call); \
	}
#define IO_HANDLER(name, io, ms) \
	static int on_##name(struct spl_turn *turn, void *state, const struct spl_message *m) \
	{ \
		struct spl_call *call = NULL; \
		int rc = spl_run_io(turn, &io, m->payload, m->payload_bytes, ms, SPL_WAIT_YIELD, \
				    &call); \
\
		return wait_for(turn, rc, call); \
	}
CPU_HANDLER(square, compute_square)
CPU_HANDLER(gate, compute_gate)
CPU_HANDLER(fails, compute_fails)
CPU_HANDLER(big, compute_big)
IO_HANDLER(read, reads, 0)
IO_HANDLER(read_soon, reads, 20)
IO_HANDLER(sleep, sleeps, 0)
IO_HANDLER(lie, lies, 0)

static int on_forget(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	int rc = spl_run_cpu(turn, compute_fails, NULL, 0, 0, SPL_WAIT_HOLD, NULL) |
		 spl_run_io(turn, &sleeps, NULL, 0, 0, SPL_WAIT_HOLD, NULL);

	return rc ? SPL_FAIL(SPL_E_INTERNAL_FAILURE) : spl_reply(turn, SPL_CONTENT_RAW, NULL, 0);
}

static const struct spl_handler handlers[] = {
	{"square", SPL_TAKES_REQUEST, on_square}, {"gate", SPL_TAKES_REQUEST, on_gate},
	{"fails", SPL_TAKES_REQUEST, on_fails},	  {"big", SPL_TAKES_REQUEST, on_big},
	{"read", SPL_TAKES_REQUEST, on_read},	  {"read_soon", SPL_TAKES_REQUEST, on_read_soon},
	{"sleep", SPL_TAKES_REQUEST, on_sleep},	  {"lie", SPL_TAKES_REQUEST, on_lie},
	{"forget", SPL_TAKES_REQUEST, on_forget},
};
static const struct spl_stage stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "worker",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 16,
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
};
static const struct spl_stage *const stages[] = {&stage};

static int eal_init(void)
{
	return t_eal_start(LANES);
}

static void close_pipes(void)
{
	for (unsigned i = 0; i < OPS; i++) {
		close(pipe_fd[i][0]);
		close(pipe_fd[i][1]);
	}
}

static void write_pipes(void)
{
	for (unsigned i = 0; i < OPS; i++)
		CU_ASSERT_EQUAL(write(pipe_fd[i][1], "x", 1), 1);
}

static void start(uint64_t result_bytes)
{
	struct t_node_conf c = {.lanes = LANES, .stages = stages, .n_stages = 1};
	struct workers_conf w = {
		.sh = &node.sh,
		.cpu_min = 1,
		.cpu_max = THREADS,
		.idle_ms = 1,
		.cpu_queue = QUEUE,
		.io_max = OPS,
		.message_max = SPL_MESSAGE_BYTES_MAX,
		.result_bytes = result_bytes,
	};
	char err[128], id[16];

	lanes_thread = pthread_self();
	on_lane = io_ends = io_steps = wrong = 0;
	io_timeout_ms = 0;
	set_gate(false);
	for (unsigned i = 0; i < OPS; i++)
		CU_ASSERT_EQUAL_FATAL(pipe2(pipe_fd[i], O_NONBLOCK), 0);
	t_node_start(&node, &c);
	workers = workers_start(&w, err, sizeof(err));
	CU_ASSERT_PTR_NOT_NULL_FATAL(workers);
	for (int i = 0; i < SPOTS; i++) {
		snprintf(id, sizeof(id), "s%d", i);
		CU_ASSERT_EQUAL_FATAL(t_node_create(&node, id, "worker"), SPOT_ACCEPTED);
	}
	peer = t_node_peer(&node);
}

/* Steps until `n` replies have come in all. */
static void replies(unsigned n)
{
	while (peer->n_replies < n) /* the suite's timeout ends it */
		t_node_step(&node);
	t_node_settle(&node);
	CU_ASSERT_EQUAL(peer->n_replies, n);
}

static void stop(void)
{
	CU_ASSERT_EQUAL(atomic_load(&node.sh.cpu_room.used), 0);
	CU_ASSERT_EQUAL(atomic_load(&node.sh.io_room.used), 0);
	CU_ASSERT_TRUE(workers_stop(workers, 60000));
	CU_ASSERT_EQUAL(on_lane, 0);
	CU_ASSERT_EQUAL(wrong, 0);
	t_node_stop(&node);
	close_pipes();
}

static uint64_t ask(unsigned spot, const char *packet, const void *payload, uint32_t bytes)
{
	char id[16];

	snprintf(id, sizeof(id), "s%u", spot % SPOTS);
	return t_peer_send(peer, SPL_MSG_SPOT_REQUEST, id, packet, payload, bytes, 0);
}

static uint8_t kind_of(uint64_t correlation)
{
	const struct t_reply *r = t_peer_reply(peer, correlation);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r->kind;
}

/* Each result to its caller, unchanged, from another thread than the lanes' (T-WORK-1). */
static void test_computations(void)
{
	uint64_t c[100];

	start(1 << 20);
	for (uint32_t i = 0; i < 100; i++) {
		c[i] = ask(i, "square", &i, 4);
		replies(i + 1);
	}
	for (uint32_t i = 0; i < 100; i++) {
		const struct t_reply *r = t_peer_reply(peer, c[i]);
		uint32_t v;

		CU_ASSERT_FATAL(r && r->kind == SPL_OK && r->bytes == 4);
		memcpy(&v, r->data, 4);
		CU_ASSERT_EQUAL(v, i * i);
		CU_ASSERT_EQUAL(r->content, SPL_CONTENT_JSON);
	}
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_WORK_STARTED), 100);
	stop();
}

static void test_failures(void)
{
	uint64_t fails, lies_, forgotten;

	start(1 << 20);
	fails = ask(0, "fails", NULL, 0);
	lies_ = ask(1, "lie", NULL, 0);
	forgotten = ask(2, "forget", NULL, 0);
	replies(3);
	CU_ASSERT_EQUAL(kind_of(fails), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(t_peer_reply(peer, fails)->bytes, 0);
	CU_ASSERT_EQUAL(kind_of(lies_), SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(kind_of(forgotten), SPL_OK);
	while (io_ends < 1 || atomic_load(&node.sh.io_room.used))
		t_node_step(&node);
	t_node_settle(&node);
	stop();
}

/* Input and result of many pages; results of all together are bounded, and given back. */
static void test_large(void)
{
	static uint8_t payload[BIG];
	uint64_t ok, again, over;

	for (uint32_t i = 0; i < BIG; i++)
		payload[i] = (uint8_t)(i * 7);
	start(BIG + 1000);
	ok = ask(0, "big", payload, BIG);
	replies(1);
	again = ask(0, "big", payload, BIG);
	replies(2);
	CU_ASSERT_EQUAL(kind_of(ok), SPL_OK);
	CU_ASSERT_EQUAL(kind_of(again), SPL_OK);
	CU_ASSERT_EQUAL(t_peer_reply(peer, again)->bytes, BIG);
	for (uint32_t i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(t_peer_reply(peer, again)->data[i], (uint8_t)(i * 8));
	stop();
	start(BIG - 1);
	over = ask(0, "big", payload, BIG);
	replies(1);
	CU_ASSERT_EQUAL(kind_of(over), SPL_E_INTERNAL_FAILURE);
	stop();
}

/* T-WORK-1: the pool is full and refuses by name; operations, four times as many as threads, are
 * done nevertheless; then those that waited, and a thread that is not needed leaves (S-WORK-3,4).
 */
static void test_pool_is_full(void)
{
	uint64_t gated[THREADS + QUEUE + 3], read_[OPS], again;
	unsigned full = 0;

	start(1 << 20);
	for (unsigned i = 0; i < THREADS; i++) {
		gated[i] = ask(i, "gate", NULL, 0);
		while (at_gate() <= i)
			t_node_step(&node);
	}
	CU_ASSERT_EQUAL(workers_threads(workers), THREADS);
	for (unsigned i = THREADS; i < THREADS + QUEUE + 3; i++) {
		gated[i] = ask(i, "gate", NULL, 0);
		t_node_settle(&node);
	}
	replies(3);
	for (unsigned i = THREADS + QUEUE; i < THREADS + QUEUE + 3; i++)
		full += kind_of(gated[i]) == SPL_E_CAPACITY_EXCEEDED;
	CU_ASSERT_EQUAL(full, 3);
	CU_ASSERT_EQUAL(t_node_counter(&node, SPL_C_WORK_REFUSED), 3);
	for (uint32_t i = 0; i < OPS; i++)
		read_[i] = ask(i, "read", &i, 4);
	while (io_steps < OPS)
		t_node_step(&node);
	write_pipes();
	replies(3 + OPS);
	for (unsigned i = 0; i < OPS; i++)
		CU_ASSERT_EQUAL(kind_of(read_[i]), SPL_OK);
	CU_ASSERT_EQUAL(io_ends, OPS);
	CU_ASSERT_EQUAL(at_gate(), THREADS); /* nobody has moved there */
	set_gate(true);
	replies(3 + OPS + THREADS + QUEUE);
	for (unsigned i = 0; i < THREADS + QUEUE; i++)
		CU_ASSERT_EQUAL(kind_of(gated[i]), SPL_OK);
	while (workers_threads(workers) > 1)
		t_node_step(&node);
	again = ask(0, "gate", NULL, 0); /* the minimum is still there */
	replies(4 + OPS + THREADS + QUEUE);
	CU_ASSERT_EQUAL(kind_of(again), SPL_OK);
	CU_ASSERT_EQUAL(workers_threads(workers), 1);
	stop();
}

/* The other way round: as many operations as may be open wait, and computations run. */
static void test_io_is_full(void)
{
	uint64_t read_[OPS + 1], square;
	const uint32_t none = 0;
	uint32_t nine = 9;

	start(1 << 20);
	for (uint32_t i = 0; i < OPS; i++)
		read_[i] = ask(i, "read", &i, 4);
	while (io_steps < OPS)
		t_node_step(&node);
	read_[OPS] = ask(0, "read", &none, 4);
	replies(1);
	CU_ASSERT_EQUAL(kind_of(read_[OPS]), SPL_E_CAPACITY_EXCEEDED);
	square = ask(1, "square", &nine, 4);
	replies(2);
	CU_ASSERT_EQUAL(kind_of(square), SPL_OK);
	write_pipes();
	replies(2 + OPS);
	stop();
}

/* Times of an operation: its own, and the deadline, after which it is ended and its room is free.
 */
static void test_io_times(void)
{
	const uint32_t first = 0;
	uint64_t slept, soon, own;
	uint32_t steps;

	start(1 << 20);
	slept = ask(0, "sleep", NULL, 0);
	replies(1);
	CU_ASSERT_EQUAL(kind_of(slept), SPL_OK);
	memcpy(&steps, t_peer_reply(peer, slept)->data, 4);
	CU_ASSERT_EQUAL(steps, 4);
	soon = ask(1, "read_soon", &first, 4);
	replies(2);
	CU_ASSERT_EQUAL(kind_of(soon), SPL_E_DEADLINE_EXCEEDED);
	while (atomic_load(&node.sh.io_room.used))
		t_node_step(&node);
	CU_ASSERT_EQUAL(io_ends, 2);
	io_timeout_ms = 1;
	own = ask(2, "read", &first, 4);
	replies(3);
	CU_ASSERT_EQUAL(kind_of(own), SPL_E_INTERNAL_FAILURE); /* the step has failed */
	CU_ASSERT_EQUAL(io_ends, 3);
	while (atomic_load(&node.sh.io_room.used))
		t_node_step(&node);
	t_node_settle(&node);
	stop();
}

/* The end with work under way: operations are ended once, what waits is dropped, a computation that
 * does not end is reported and not waited for longer than was said. */
static void test_end(void)
{
	const uint32_t first = 0;

	start(1 << 20);
	for (unsigned i = 0; i < THREADS; i++) {
		ask(i, "gate", NULL, 0);
		while (at_gate() <= i)
			t_node_step(&node);
	}
	ask(3, "gate", NULL, 0);
	ask(4, "read", &first, 4);
	while (io_steps < 1)
		t_node_step(&node);
	CU_ASSERT_FALSE(workers_stop(workers, 1));
	set_gate(true);
	CU_ASSERT_TRUE(workers_stop(workers, 60000));
	CU_ASSERT_EQUAL(io_ends, 1);
	CU_ASSERT_EQUAL(at_gate(), THREADS); /* the third was dropped */
	for (unsigned i = 0; i < LANES; i++)
		while (spot_calls_end(node.lane[i]->spots, SPL_E_SHUTTING_DOWN, 64))
			t_node_step(&node);
	replies(4);
	t_node_stop(&node);
	close_pipes();
}

static const struct t_case cases[] = {
	T(test_computations, "S-WORK-1", "S-WORK-2", "S-WORK-5"),
	T(test_failures, "S-WORK-1", "S-WORK-2"),
	T(test_large, "S-WORK-2"),
	T(test_pool_is_full, "S-WORK-2", "S-WORK-3", "S-WORK-4"),
	T(test_io_is_full, "S-WORK-3", "S-WORK-5"),
	T(test_io_times, "S-WORK-1", "S-WORK-2"),
	T(test_end, "S-WORK-5"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("workers", eal_init, t_eal_stop, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
