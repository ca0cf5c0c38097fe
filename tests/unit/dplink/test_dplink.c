/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of control's end of the private socket against the fake dataplane, over real sockets:
 * good and bad HELLO, malformed packets, replies, deadlines.
 */
#include "tests/unit/dplink/rig.h"

static void test_dplink_hello_then_requests_and_replies(void)
{
	setup();
	connect_both();
	CU_ASSERT_EQUAL(rig.up_epoch, t_ctl_seen(rig.f)->epoch);
	CU_ASSERT_EQUAL(rig.hello_state, DP_STATE_WAITING);
	CU_ASSERT_EQUAL(info().pid, getpid());
	for (uint64_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(ask_resync(i, 0), 0);
	CU_ASSERT_EQUAL(info().requests, 1000);
	UNTIL(rig.ends == 1000);
	for (uint64_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(rig.end_rc[i], 0);
	CU_ASSERT_EQUAL(info().requests, 0);
	CU_ASSERT_EQUAL(rig.downs, 0);
	teardown();
}

static void test_dplink_another_version_is_refused_every_time(void)
{
	uint8_t b[256];
	struct pack_writer w;

	setup();
	open_fake();
	t_ctl_hello_by_hand(rig.f, true);
	open_link(0);
	for (uint64_t n = 1; n <= 3; n++) {
		UNTIL(t_ctl_seen(rig.f)->connections == n && t_ctl_connected(rig.f));
		w = (struct pack_writer){.p = b, .cap = sizeof(b)};
		dp_begin(&w, DP_HELLO, DP_F_EVT, 1, 0);
		CU_ASSERT_EQUAL(dp_finish(&w, 0), 0);
		b[4] = DP_VERSION + 1;
		t_ctl_raw(rig.f, b, w.len, -1);
		UNTIL(!t_ctl_connected(rig.f));
	}
	CU_ASSERT_EQUAL(rig.ups, 0);
	CU_ASSERT_EQUAL(rig.downs, 0);
	teardown();
}

static void refuse_hello(void (*send)(void))
{
	setup();
	open_fake();
	t_ctl_hello_by_hand(rig.f, true);
	open_link(0);
	UNTIL(t_ctl_connected(rig.f));
	send();
	UNTIL(!t_ctl_connected(rig.f));
	CU_ASSERT_EQUAL(rig.ups, 0);
	/* And a good one afterwards is taken. */
	t_ctl_hello_by_hand(rig.f, false);
	UNTIL(rig.ups == 1);
	teardown();
}

static void hello_of_another_pid(void)
{
	t_ctl_hello(rig.f, 77, (uint32_t)getpid() + 1);
}

static void hello_without_epoch(void)
{
	t_ctl_hello(rig.f, 0, (uint32_t)getpid());
}

static void event_before_hello(void)
{
	const struct dp_shutdown_req m = {.cause = dp_text("early")};

	dp_put_shutdown_req(t_ctl_begin(rig.f, DP_SHUTDOWN_REQ, DP_F_EVT, 0), &m);
	t_ctl_send(rig.f, -1);
}

static void hello_with_a_descriptor(void)
{
	const struct dp_hello m = {.pid = (uint32_t)getpid()};

	dp_put_hello(t_ctl_begin(rig.f, DP_HELLO, DP_F_EVT, 0), &m);
	t_ctl_send(rig.f, dp_memfd("x", 1));
}

static void garbage(void)
{
	t_ctl_raw(rig.f, "garbage", 7, -1);
}

static void test_dplink_a_bad_hello_is_refused(void)
{
	refuse_hello(hello_of_another_pid);
	refuse_hello(hello_without_epoch);
	refuse_hello(event_before_hello);
	refuse_hello(hello_with_a_descriptor);
	refuse_hello(garbage);
}

/* Sends one bad packet on a good connection: it is cut, requests end, and it comes back. */
static void cut_by(void (*send)(void))
{
	setup();
	connect_both();
	t_ctl_reads(rig.f, false);
	CU_ASSERT_EQUAL(ask_resync(1, 0), 0);
	uv_run(&rig.loop, UV_RUN_NOWAIT);
	t_ctl_reads(rig.f, true);
	send();
	UNTIL(rig.downs == 1);
	UNTIL(rig.ups == 2);
	CU_ASSERT_EQUAL(rig.ends, 1);
	CU_ASSERT_EQUAL(rig.deads, 0);
	teardown();
}

static void send_truncated(void)
{
	const struct dp_ok m = {.kind = SPL_OK, .text = dp_text("text")};
	uint8_t b[128];
	struct pack_writer w = {.p = b, .cap = sizeof(b)};

	dp_begin(&w, DP_OK, DP_F_REP, t_ctl_seen(rig.f)->epoch, 1);
	dp_put_ok(&w, &m);
	CU_ASSERT_EQUAL(dp_finish(&w, 0), 0);
	t_ctl_raw(rig.f, b, w.len - 1, -1);
}

static void send_oversized(void)
{
	static uint8_t b[DP_PACKET_MAX + 100];

	t_ctl_raw(rig.f, b, sizeof(b), -1);
}

static void send_wrong_epoch(void)
{
	uint8_t b[128];
	struct pack_writer w = {.p = b, .cap = sizeof(b)};

	dp_begin(&w, DP_SHUTDOWN_REQ, DP_F_EVT, t_ctl_seen(rig.f)->epoch + 1, 0);
	CU_ASSERT_EQUAL(dp_finish(&w, 0), 0);
	t_ctl_raw(rig.f, b, w.len, -1);
}

static void send_second_hello(void)
{
	t_ctl_hello(rig.f, t_ctl_seen(rig.f)->epoch, (uint32_t)getpid());
}

static void send_two_flags(void)
{
	t_ctl_begin(rig.f, DP_SHUTDOWN_REQ, DP_F_EVT | DP_F_REQ, 1);
	t_ctl_send(rig.f, -1);
}

static void send_event_with_corr(void)
{
	t_ctl_begin(rig.f, DP_SHUTDOWN_REQ, DP_F_EVT, 1);
	t_ctl_send(rig.f, -1);
}

static void send_undeclared_descriptor(void)
{
	uint8_t b[128];
	struct pack_writer w = {.p = b, .cap = sizeof(b)};

	dp_begin(&w, DP_SHUTDOWN_REQ, DP_F_EVT, t_ctl_seen(rig.f)->epoch, 0);
	CU_ASSERT_EQUAL(dp_finish(&w, 0), 0);
	t_ctl_raw(rig.f, b, w.len, dp_memfd("x", 1));
}

static void send_declared_descriptor_missing(void)
{
	uint8_t b[128];
	struct pack_writer w = {.p = b, .cap = sizeof(b)};

	dp_begin(&w, DP_SHUTDOWN_REQ, DP_F_EVT, t_ctl_seen(rig.f)->epoch, 0);
	CU_ASSERT_EQUAL(dp_finish(&w, 1), 0);
	t_ctl_raw(rig.f, b, w.len, -1);
}

static void handler_refuses(void)
{
	rig.message_rc = -EPROTO;
	t_ctl_begin(rig.f, DP_SHUTDOWN_REQ, DP_F_EVT, 0);
	t_ctl_send(rig.f, -1);
}

static void test_dplink_a_malformed_packet_cuts_the_connection(void)
{
	cut_by(garbage);
	cut_by(send_truncated);
	cut_by(send_oversized);
	cut_by(send_wrong_epoch);
	cut_by(send_second_hello);
	cut_by(send_two_flags);
	cut_by(send_event_with_corr);
	cut_by(send_undeclared_descriptor);
	cut_by(send_declared_descriptor_missing);
	cut_by(handler_refuses);
}

static void test_dplink_a_reply_to_nothing_is_counted(void)
{
	const struct dp_ok m = {.kind = SPL_OK};
	static const uint64_t corr[] = {0, 1, 0x10000, 0x1ffff, UINT64_MAX};

	setup();
	connect_both();
	for (size_t i = 0; i < T_COUNT(corr); i++) {
		dp_put_ok(t_ctl_begin(rig.f, DP_OK, DP_F_REP, corr[i]), &m);
		t_ctl_send(rig.f, -1);
	}
	UNTIL(info().unmatched == T_COUNT(corr));
	CU_ASSERT_EQUAL(rig.downs, 0);
	CU_ASSERT_EQUAL(ask_resync(3, 0), 0);
	UNTIL(rig.ends == 1);
	CU_ASSERT_EQUAL(rig.end_rc[3], 0);
	teardown();
}

static void test_dplink_a_reply_of_another_type_cuts_or_refuses(void)
{
	const struct dplink_want w = {.type = DP_PREPARED, .fn = on_end, .tag = 9};
	const struct dp_resync m = {.lane = 0};

	setup();
	connect_both();
	/* The fake answers INVENTORY where PREPARED was wanted. */
	dp_put_resync(dplink_begin(rig.l, DP_RESYNC), &m);
	CU_ASSERT_EQUAL(dplink_request(rig.l, -1, &w), 0);
	UNTIL(rig.downs == 1);
	CU_ASSERT_EQUAL(rig.end_rc[9], -ECONNRESET);
	UNTIL(rig.ups == 2);
	/* OK with an error kind refuses any request. */
	dplink_begin(rig.l, 999);
	CU_ASSERT_EQUAL(dplink_request(rig.l, -1, &w), 0);
	UNTIL(rig.ends == 2);
	CU_ASSERT_EQUAL(rig.end_rc[9], -EREMOTEIO);
	CU_ASSERT_EQUAL(rig.end_kind, SPL_E_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(rig.downs, 1);
	teardown();
}

static void test_dplink_requests_have_deadlines_and_late_replies_nothing(void)
{
	setup();
	connect_both();
	t_ctl_reads(rig.f, false);
	CU_ASSERT_EQUAL(ask_resync(1, rig.now + 1000000), 0);
	CU_ASSERT_EQUAL(ask_resync(2, 0), 0);
	for (int i = 0; i < 100; i++)
		turn();
	CU_ASSERT_EQUAL(rig.ends, 0);
	rig.now += 1000000;
	UNTIL(rig.ends == 1);
	CU_ASSERT_EQUAL(rig.end_rc[1], -ETIMEDOUT);
	CU_ASSERT_EQUAL(info().timeouts, 1);
	t_ctl_reads(rig.f, true);
	UNTIL(rig.ends == 2 && info().unmatched == 1);
	CU_ASSERT_EQUAL(rig.end_rc[2], 0);
	CU_ASSERT_EQUAL(rig.downs, 0);
	teardown();
}

static void test_dplink_events_and_requests_reach_the_handler(void)
{
	const struct dp_shutdown_req m = {.cause = dp_text("signal")};
	const struct dp_mesh_op_done done = {.kind = SPL_OK};

	setup();
	connect_both();
	dp_put_shutdown_req(t_ctl_begin(rig.f, DP_SHUTDOWN_REQ, DP_F_EVT, 0), &m);
	t_ctl_send(rig.f, -1);
	UNTIL(rig.messages == 1);
	CU_ASSERT_EQUAL(rig.last.type, DP_SHUTDOWN_REQ);
	t_ctl_mesh_op(rig.f, 40, "client-1", "body", 4, 0);
	UNTIL(rig.messages == 2);
	CU_ASSERT_EQUAL(rig.last.type, DP_MESH_OP);
	dp_put_mesh_op_done(dplink_begin(rig.l, DP_MESH_OP_DONE), &done);
	CU_ASSERT_EQUAL(dplink_reply(rig.l, rig.last.corr, -1), 0);
	CU_ASSERT_EQUAL(t_ctl_seen(rig.f)->unknown, 0);
	turn();
	teardown();
}

static void test_dplink_fields_that_do_not_fit_are_refused_before_sending(void)
{
	static uint8_t big[DP_PACKET_MAX];
	const struct dp_mesh_op_done m = {.body = {big, sizeof(big)}};

	setup();
	connect_both();
	dp_put_mesh_op_done(dplink_begin(rig.l, DP_MESH_OP_DONE), &m);
	CU_ASSERT_EQUAL(dplink_reply(rig.l, 1, -1), -EMSGSIZE);
	CU_ASSERT_EQUAL(ask_resync(0, 0), 0);
	UNTIL(rig.ends == 1);
	teardown();
}

static const struct t_case cases[] = {
	T(test_dplink_hello_then_requests_and_replies),
	T(test_dplink_another_version_is_refused_every_time),
	T(test_dplink_a_bad_hello_is_refused),
	T(test_dplink_a_malformed_packet_cuts_the_connection),
	T(test_dplink_a_reply_to_nothing_is_counted),
	T(test_dplink_a_reply_of_another_type_cuts_or_refuses),
	T(test_dplink_requests_have_deadlines_and_late_replies_nothing),
	T(test_dplink_events_and_requests_reach_the_handler),
	T(test_dplink_fields_that_do_not_fit_are_refused_before_sending),
};

static const struct t_suite suites[] = {T_SUITE("dplink", NULL, NULL, cases)};

int main(int argc, char **argv)
{
	return t_main(argc, argv, suites, T_COUNT(suites));
}
