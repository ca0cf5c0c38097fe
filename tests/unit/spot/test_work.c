/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handler hands to the workers, as the room of Spots sees it: a call like others, whose
 * result comes from elsewhere. The workers themselves: tests/vdev/test_workers.c.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>
#include <limits.h>

#define f test_rig

static int compute(struct spl_work *work, const void *input, uint32_t bytes)
{
	return SPL_DONE; /* never run here */
}

static int io_step(struct spl_work *work, void *memory, unsigned ready, const void *input,
		   uint32_t bytes)
{
	return SPL_DONE;
}

static const struct spl_io io = {.memory_bytes = 8, .step = io_step};
static const struct spl_io no_step = {.memory_bytes = 8};
static const struct spl_io too_large = {.memory_bytes = SPL_IO_MEMORY_MAX + 1, .step = io_step};
static enum spl_wait how;
static struct spl_call *call;
static int rc;

static int got(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	char text[64];

	snprintf(text, sizeof(text), "%s:%.*s", spl_error_name(r->kind), (int)r->payload_bytes,
		 r->payload_bytes ? (const char *)r->payload : "");
	fake_log(text);
	return SPL_DONE;
}

static int starts_and_waits(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	rc = m->payload_bytes && *(const char *)m->payload == 'i'
		     ? spl_run_io(turn, &io, m->payload, m->payload_bytes, 50, how, &call)
		     : spl_run_cpu(turn, compute, m->payload, m->payload_bytes, 50, how, &call);
	if (rc)
		return SPL_DONE;
	CU_ASSERT_EQUAL(spl_call_then(turn, call, got, NULL), 0);
	return SPL_SUSPENDED;
}

/* "c..." or "i..." to "a"; what was handed over is f.work[0]. */
static void start_one(enum spl_wait wait, const char *what)
{
	test_start(1);
	how = wait;
	test_stage_probe = starts_and_waits;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_send(&f, "a", "probe", what);
	fake_send(&f, "a", "log", "between");
	fake_run(&f);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL_FATAL(f.works, 1);
}

/* T-WORK-1: the kind of wait decides who runs between, the kind of worker does not. */
static void test_hold_and_yield(void)
{
	start_one(SPL_WAIT_HOLD, "cpu");
	CU_ASSERT_PTR_EQUAL(f.work[0].cpu, compute);
	CU_ASSERT_STRING_EQUAL(f.work_input[0], "cpu");
	CU_ASSERT_EQUAL(f.work[0].deadline, f.now + 50 * (uint64_t)FAKE_MS);
	fake_work_ends(&f, 0, SPL_OK, "seven");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "OK:seven between");
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_WORK_STARTED), 1);
	test_stop();
	start_one(SPL_WAIT_YIELD, "cpu");
	fake_work_ends(&f, 0, SPL_OK, "seven");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "between OK:seven");
	test_stop();
	start_one(SPL_WAIT_HOLD, "io");
	CU_ASSERT_PTR_EQUAL(f.work[0].io, &io);
	fake_work_ends(&f, 0, SPL_E_INTERNAL_FAILURE, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "InternalFailure: between");
	test_stop();
	start_one(SPL_WAIT_YIELD, "io");
	fake_work_ends(&f, 0, SPL_OK, "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "between OK:");
	test_stop();
}

/* T-WORK-1: a result that comes after the deadline or a cancel is not a second one. */
static void test_late(void)
{
	start_one(SPL_WAIT_HOLD, "cpu");
	fake_advance(&f, 60 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "DeadlineExceeded: between");
	fake_work_ends(&f, 0, SPL_OK, "late");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "DeadlineExceeded: between");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 1);
	test_stop();
}

/* Nobody but the workers may answer it. */
static void test_another_origin(void)
{
	struct spot_reply r = {.kind = SPL_OK, .origin = SPOT_FROM_LINK};

	start_one(SPL_WAIT_HOLD, "io");
	r.correlation = f.work[0].correlation;
	spot_reply_in(f.lane[0].l, &r);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "");
	fake_work_ends(&f, 0, SPL_OK, "true");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "OK:true between");
	test_stop();
}

static int refusals(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static char big[70000]; /* over message_max */

	call = NULL;
	CU_ASSERT_EQUAL(spl_run_cpu(NULL, compute, "x", 1, 0, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_run_cpu(turn, NULL, "x", 1, 0, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, NULL, 1, 0, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, "x", 1, UINT32_MAX, SPL_WAIT_HOLD, &call),
			-EINVAL);
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, "x", 1, 0, (enum spl_wait)7, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, big, sizeof(big), 0, SPL_WAIT_HOLD, &call),
			-EMSGSIZE);
	CU_ASSERT_EQUAL(spl_run_io(turn, NULL, "x", 1, 0, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_run_io(turn, &no_step, "x", 1, 0, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_run_io(turn, &too_large, "x", 1, 0, SPL_WAIT_HOLD, &call), -EINVAL);
	f.work_error = -EAGAIN;
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, "x", 1, 0, SPL_WAIT_HOLD, &call), -EAGAIN);
	CU_ASSERT_EQUAL(spl_run_io(turn, &io, "x", 1, 0, SPL_WAIT_HOLD, NULL), -EAGAIN);
	f.work_error = -ENOBUFS;
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, "x", 1, 0, SPL_WAIT_YIELD, &call), -ENOBUFS);
	f.work_error = 0;
	CU_ASSERT_PTR_NULL(call);
	fake_log("refused");
	return SPL_DONE;
}

/* Nothing was handed over, and no call is left. */
static void test_refused(void)
{
	test_start(1);
	test_stage_probe = refusals;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "refused");
	CU_ASSERT_EQUAL(f.works, 0);
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_WORK_STARTED), 0);
	CU_ASSERT_EQUAL(fake_counter(&f, SPL_C_WORK_REFUSED), 2);
	test_stop();
}

static int yields(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	rc = spl_run_io(turn, &io, NULL, 0, 0, SPL_WAIT_YIELD, &call);
	return SPL_DONE;
}

/* S-YIELD-1: where there is no gate to give back, nothing is handed over. */
static void test_yield_ineligible(void)
{
	test_start(1);
	test_stage_probe = yields;
	fake_create(&f, "a", fake_stage(&test_stage_actors));
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(rc, -EPERM);
	CU_ASSERT_EQUAL(f.works, 0);
	test_stop();
}

static int forgets(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, "x", 1, 0, SPL_WAIT_HOLD, NULL), 0);
	CU_ASSERT_EQUAL(spl_run_io(turn, &io, "y", 1, 7, SPL_WAIT_HOLD, NULL), 0);
	/* started, not waited for: thrown away with the turn */
	CU_ASSERT_EQUAL(spl_run_cpu(turn, compute, "z", 1, 0, SPL_WAIT_HOLD, &call), 0);
	return SPL_DONE;
}

static void test_forgotten(void)
{
	test_start(1);
	test_stage_probe = forgets;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(f.works, 3);
	CU_ASSERT_EQUAL(f.work[0].correlation, 0);
	CU_ASSERT_EQUAL(f.work[0].deadline, f.now + 1000 * (uint64_t)FAKE_MS);
	CU_ASSERT_EQUAL(f.work[1].correlation, 0);
	CU_ASSERT_EQUAL(f.work[1].deadline, f.now + 7 * (uint64_t)FAKE_MS);
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0);
	fake_work_ends(&f, 2, SPL_OK, "late");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 1);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_hold_and_yield, "S-WORK-1", "S-WORK-2", "S-CF-2"),
	T(test_late, "S-WORK-2", "S-COMPL-6"),
	T(test_another_origin, "S-WORK-2"),
	T(test_refused, "S-WORK-2"),
	T(test_yield_ineligible, "S-WORK-1", "S-YIELD-1"),
	T(test_forgotten, "S-WORK-1"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_work", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
