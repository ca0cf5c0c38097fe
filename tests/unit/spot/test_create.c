/* SPDX-License-Identifier: BSD-3-Clause */
/* Creations that a handler asks for, as the room of Spots sees them (S-CREATE-11): a call like
 * others; control is played by the test. All the way to the authority: the simulator.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"
#include "common/wire_msg.h"

#include <errno.h>
#include <limits.h>

#define f test_rig

static enum spl_wait how;
static struct spl_call *call;
static int rc;
static struct spl_creation what;

static int made(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct spl_created c;
	char text[128];

	if (spl_created_of(r, &c)) {
		snprintf(text, sizeof(text), "%s", spl_error_name(r->kind));
		CU_ASSERT_NOT_EQUAL(r->kind, SPL_OK);
	} else {
		snprintf(text, sizeof(text), "%d:%.*s:%llu:%.*s", (int)c.state, c.id.len,
			 (const char *)c.id.b, (unsigned long long)c.generation, (int)c.reply_bytes,
			 c.reply_bytes ? (const char *)c.reply : "");
	}
	fake_log(text);
	return SPL_DONE;
}

static int creates(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	rc = spl_create(turn, &what, how, &call);
	if (rc)
		return SPL_DONE;
	CU_ASSERT_EQUAL(spl_call_then(turn, call, made, NULL), 0);
	return SPL_SUSPENDED;
}

/* "a" asks, and something else comes for it. */
static void start(enum spl_wait wait)
{
	test_start(1);
	how = wait;
	what = (struct spl_creation){
		.type = "room", .id = "r1", .id_bytes = 2, .request = "blue", .request_bytes = 4};
	test_stage_probe = creates;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_send(&f, "a", "probe", "");
	fake_send(&f, "a", "log", "between");
	fake_run(&f);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL_FATAL(f.creations, 1);
}

/* T-YIELD-11: under HOLD nothing comes between, under YIELD it does; the result comes once. */
static void test_hold_and_yield(void)
{
	start(SPL_WAIT_HOLD);
	CU_ASSERT_STRING_EQUAL(f.creation[0].type, "room");
	CU_ASSERT_STRING_EQUAL(f.creation[0].id, "r1");
	CU_ASSERT_STRING_EQUAL(f.creation[0].request, "blue");
	CU_ASSERT_EQUAL(f.creation[0].deadline, f.now + 3000 * (uint64_t)FAKE_MS);
	fake_creation_ends(&f, 0, SPL_OK, WIRE_CREATED, "r1", "welcome");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "1:r1:77:welcome between");
	fake_creation_ends(&f, 0, SPL_OK, WIRE_CREATED, "r1", "again");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "1:r1:77:welcome between");
	CU_ASSERT_EQUAL(fake_failed(&f, SPL_FAIL_NO_CALL), 1);
	test_stop();
	start(SPL_WAIT_YIELD);
	fake_creation_ends(&f, 0, SPL_OK, WIRE_EXISTING, "r1", NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "between 0:r1:77:");
	test_stop();
}

/* Rejected is a result; an error is one kind; too late is DeadlineExceeded, and no second one. */
static void test_ends(void)
{
	start(SPL_WAIT_HOLD);
	fake_creation_ends(&f, 0, SPL_OK, WIRE_REJECTED, NULL, "full");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "2::0:full between");
	test_stop();
	start(SPL_WAIT_YIELD);
	fake_creation_ends(&f, 0, SPL_E_TYPE_MISMATCH, 0, NULL, NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "between TypeMismatch");
	test_stop();
	start(SPL_WAIT_HOLD);
	fake_advance(&f, 3010 * (uint64_t)FAKE_MS);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "DeadlineExceeded between");
	fake_creation_ends(&f, 0, SPL_OK, WIRE_CREATED, "r1", "late");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "DeadlineExceeded between");
	test_stop();
}

/* A Create has no id; its own time. */
static int creates_other(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	const struct spl_creation other = {.type = "room", .timeout_ms = 7};

	rc = spl_create(turn, &other, SPL_WAIT_HOLD, &call);
	return SPL_DONE;
}

static void test_without_id(void)
{
	test_start(1);
	test_stage_probe = creates_other;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_STRING_EQUAL(f.creation[0].id, "");
	CU_ASSERT_STRING_EQUAL(f.creation[0].request, "");
	CU_ASSERT_EQUAL(f.creation[0].deadline, f.now + 7 * (uint64_t)FAKE_MS);
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0); /* it was not waited for */
	test_stop();
}

static int refused(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	static char huge[SPL_CREATE_REQUEST_BYTES_MAX + 1], long_type[257];
	const struct spl_creation good = {.type = "room", .id = "x", .id_bytes = 1};
	struct spl_creation bad[] = {
		{.id = "x", .id_bytes = 1},
		{.type = ""},
		{.type = long_type},
		{.type = "\xc3"},
		{.type = "room", .id = "", .id_bytes = 0},
		{.type = "room", .id = huge, .id_bytes = 256},
		{.type = "room", .request_bytes = 1},
		{.type = "room", .timeout_ms = (uint32_t)INT_MAX + 1},
	};
	struct spl_creation large = {
		.type = "room", .request = huge, .request_bytes = sizeof(huge)};

	memset(long_type, 'x', 256);
	call = NULL;
	for (size_t i = 0; i < T_COUNT(bad); i++)
		CU_ASSERT_EQUAL(spl_create(turn, &bad[i], SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_create(turn, NULL, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_create(NULL, &good, SPL_WAIT_HOLD, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_create(turn, &good, SPL_WAIT_HOLD, NULL), -EINVAL);
	CU_ASSERT_EQUAL(spl_create(turn, &good, (enum spl_wait)5, &call), -EINVAL);
	CU_ASSERT_EQUAL(spl_create(turn, &large, SPL_WAIT_HOLD, &call), -EMSGSIZE);
	f.create_error = -EAGAIN;
	CU_ASSERT_EQUAL(spl_create(turn, &good, SPL_WAIT_HOLD, &call), -ENOBUFS);
	f.create_error = 0;
	CU_ASSERT_PTR_NULL(call);
	fake_log("refused");
	return SPL_DONE;
}

static void test_refused(void)
{
	struct spl_result r = {.kind = SPL_OK, .payload = "xyz", .payload_bytes = 3};
	struct spl_created c;

	test_start(1);
	test_stage_probe = refused;
	fake_create(&f, "a", fake_stage(&test_stage));
	fake_log_clear();
	fake_send(&f, "a", "probe", "");
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "refused");
	CU_ASSERT_EQUAL(f.creations, 0);
	CU_ASSERT_EQUAL(f.lane[0].l->calls_held, 0);
	CU_ASSERT_EQUAL(spl_created_of(&r, &c), -EINVAL); /* no creation's */
	CU_ASSERT_EQUAL(spl_created_of(NULL, &c), -EINVAL);
	CU_ASSERT_EQUAL(spl_created_of(&r, NULL), -EINVAL);
	test_stop();
}

/* S-YIELD-1: in on_create there is no gate to give back; and nobody waits for his own creation. */
static int on_create(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct spl_creation self = {.type = "room", .id = "self", .id_bytes = 4};

	CU_ASSERT_EQUAL(spl_create(turn, &self, SPL_WAIT_YIELD, &call), -EPERM);
	CU_ASSERT_EQUAL(spl_create(turn, &self, SPL_WAIT_HOLD, &call), -EDEADLK);
	self.id = "else";
	rc = spl_create(turn, &self, SPL_WAIT_HOLD, &call);
	if (rc)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	CU_ASSERT_EQUAL(spl_call_then(turn, call, made, NULL), 0);
	return SPL_SUSPENDED;
}

static const struct spl_stage creating = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "creating",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 16,
	.on_create = on_create,
};

static void test_in_on_create(void)
{
	test_start(1);
	fake_log_clear();
	fake_prepare(&f, "self", fake_stage(&creating), NULL, 0);
	fake_run(&f);
	CU_ASSERT_EQUAL_FATAL(f.creations, 1);
	CU_ASSERT_PTR_NULL(fake_answer(&f, SPOT_PREPARE));
	fake_creation_ends(&f, 0, SPL_OK, WIRE_CREATED, "else", NULL);
	fake_run(&f);
	CU_ASSERT_STRING_EQUAL(fake_logged(), "1:else:77:");
	CU_ASSERT_EQUAL(fake_answer(&f, SPOT_PREPARE)->verdict, SPOT_ACCEPTED);
	test_stop();
}

static const struct t_case cases[] = {
	T(test_hold_and_yield, "S-CREATE-11", "S-YIELD-1", "S-CF-2", "S-COMPL-6"),
	T(test_ends, "S-CREATE-11", "S-CREATE-3"),
	T(test_without_id, "S-CREATE-11", "S-CREATE-1"),
	T(test_refused, "S-CREATE-11"),
	T(test_in_on_create, "S-CREATE-11", "S-YIELD-1"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_create", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
