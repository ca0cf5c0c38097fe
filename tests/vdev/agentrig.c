/* SPDX-License-Identifier: BSD-3-Clause */
/* See agentrig.h. */
#include "tests/vdev/agentrig.h"

#include "common/clock.h"
#include "tests/lib/t_main.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <poll.h>
#include <spotlane/errors.h>
#include <spotlane/stage.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000 /* a bound, not an expectation */

const char *program, *stage_dir, *own_stage_dir;

void spawn(struct rig *r)
{
	r->pid = fork();
	if (r->pid == 0) {
		execl(program, program, "-d", r->dir, "-l", "warn", (char *)NULL);
		_exit(127);
	}
}

int dial(struct rig *r)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int s;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%s", r->dir, DP_SOCKET_NAME);
	for (int i = 0; i < WAIT_MS; i++) {
		s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		if (connect(s, (struct sockaddr *)&sun, sizeof(sun)) == 0)
			return s;
		close(s);
		poll(NULL, 0, 1);
	}
	return -1;
}

/* The next packet; CUnit fails and false when none comes. */
static bool next_packet(struct rig *r, struct dp_header *h, struct pack_reader *body)
{
	while (r->at >= r->n) {
		struct pollfd p = {.fd = r->sock, .events = POLLIN};

		if (poll(&p, 1, WAIT_MS) != 1)
			return false;
		r->n = dp_rx_batch(r->rx, r->sock, &r->batch);
		r->at = 0;
		if (r->n <= 0)
			return false;
	}
	return dp_open(r->batch[r->at].p, r->batch[r->at].n, h, body) == 0 && ++r->at;
}

/* Waits for the packet of `type`; others are passed over. */
struct pack_reader expect(struct rig *r, uint16_t type)
{
	struct dp_header h;
	struct pack_reader body = {0};

	do {
		if (!next_packet(r, &h, &body)) {
			fprintf(stderr, "no %s from the dataplane\n", dp_type_name(type));
			CU_FAIL_FATAL("no packet");
		}
	} while (h.type != type);
	if (h.epoch)
		r->epoch = h.epoch;
	return body;
}

struct pack_writer start(struct rig *r, uint16_t type)
{
	struct pack_writer w = {.p = r->out, .cap = sizeof(r->out)};

	dp_begin(&w, type, DP_F_REQ, r->epoch, ++r->corr);
	return w;
}

void finish(struct rig *r, struct pack_writer *w)
{
	CU_ASSERT_EQUAL_FATAL(dp_finish(w, 0), 0);
	CU_ASSERT_EQUAL_FATAL(send(r->sock, w->p, w->len, MSG_NOSIGNAL), (ssize_t)w->len);
}

void rig_open(struct rig *r)
{
	struct pack_reader b;
	struct dp_hello m;

	memset(r, 0, sizeof(*r));
	snprintf(r->dir, sizeof(r->dir), "/tmp/spl-agent-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(r->dir));
	r->stats_fd = -1;
	r->rx = dp_rx_create();
	spawn(r);
	r->sock = dial(r);
	CU_ASSERT_FATAL(r->sock >= 0);
	b = expect(r, DP_HELLO);
	dp_get_hello(&b, &m);
	CU_ASSERT_TRUE(dp_done(&b));
	CU_ASSERT_EQUAL(m.pid, (uint32_t)r->pid);
	CU_ASSERT_EQUAL(m.state, DP_STATE_WAITING);
}

int rig_close(struct rig *r)
{
	char path[128];
	int status = -1;

	close(r->sock);
	waitpid(r->pid, &status, 0);
	snprintf(path, sizeof(path), "%s/%s", r->dir, DP_LOCK_NAME);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%s", r->dir, DP_SOCKET_NAME);
	CU_ASSERT_EQUAL(unlink(path), -1); /* the program removed its own */
	CU_ASSERT_EQUAL(rmdir(r->dir), 0);
	dp_rx_destroy(r->rx);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Sends a CONFIG with one port; `device` may be wrong, and so may `module`. */
struct dp_configured configure(struct rig *r, const char *device, const char *module)
{
	static uint8_t ports[256], mods[256], dirs[512];
	struct pack_writer pw = {.p = ports, .cap = sizeof(ports)};
	struct pack_writer mw = {.p = mods, .cap = sizeof(mods)};
	struct pack_writer dw = {.p = dirs, .cap = sizeof(dirs)};
	struct dp_port port = {.name = dp_text("p0"),
			       .device = dp_text(device),
			       .ip = 0x0a000001,
			       .prefix_len = 24,
			       .mtu = 1500,
			       .udp_base = 4700};
	struct dp_stage stage = {.module = dp_text(module)};
	struct dp_config m = {
		.config_hash = 77,
		.lanes = 2,
		.memory_mb = 256,
		.mbufs = 8192,
		.mbufs_low = 512,
		.message_max = 1 << 20,
		.credit_pool = 64 << 20,
		.credit_min = 64 << 10,
		.credit_max = 4 << 20,
		.associations = 64,
		.spots_max = 65536,
		.records_max = 65536,
		.lane_memory = 16 << 20,
		.queue_count = 4096,
		.queue_bytes = 64 << 20,
		.create_timeout_ms = 5000,
		.request_timeout_ms = 30000,
		.send_timeout_ms = 1000,
		.turn_budget_us = 50,
		.lifecycle_cap = 8,
		.route_cache_ms = 15000,
		.agent_cpu = UINT32_MAX,
		.idle_nap_us = 1000,
		.lifecycle_queue_count = 256,
		.lifecycle_queue_bytes = 4 << 20,
		.timers_max = 4096,
		.timers_per_spot = 16,
		.subscriptions_max = 1024,
		.send_waiters = 64,
		.cpu_threads_min = 1,
		.cpu_threads_max = 2,
		.cpu_idle_ms = 1000,
		.cpu_queue = 16,
		.work_result_bytes = 1 << 20,
	};
	struct dp_configured done;
	struct pack_writer w = start(r, DP_CONFIG);
	struct pack_reader b;
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "spl-test-%d", (int)r->pid);
	dp_put_port(&pw, &port);
	dp_put_stage(&mw, &stage);
	pack_put_text(&dw, dp_text(stage_dir));
	pack_put_text(&dw, dp_text(own_stage_dir));
	m.mesh = dp_text("m");
	m.file_prefix = dp_text(prefix);
	m.ports = (struct pack_bytes){ports, (uint32_t)pw.len};
	m.stages = (struct pack_bytes){mods, (uint32_t)mw.len};
	m.stage_dirs = (struct pack_bytes){dirs, (uint32_t)dw.len};
	dp_put_config(&w, &m);
	finish(r, &w);
	b = expect(r, DP_CONFIGURED);
	dp_get_configured(&b, &done);
	CU_ASSERT_TRUE(dp_done(&b));
	if (done.ok)
		r->stats_fd = r->batch[r->at - 1].fd;
	return done;
}

uint8_t ok_kind(struct rig *r)
{
	struct pack_reader b = expect(r, DP_OK);
	struct dp_ok m;

	dp_get_ok(&b, &m);
	CU_ASSERT_TRUE(dp_done(&b));
	return m.kind;
}

void identify(struct rig *r)
{
	struct pack_writer w = start(r, DP_IDENTITY);
	struct dp_identity m = {
		.node_gen = 5,
		.lease_gen = 6,
		.lease_deadline = clock_boot_ns() + 3600 * CLOCK_NS_PER_S,
		.rid = dp_text("n-1"),
		.owner_id = dp_text("owner-1"),
		.entry_id = dp_text("n-entry-1"),
	};

	dp_put_identity(&w, &m);
	finish(r, &w);
	CU_ASSERT_EQUAL(ok_kind(r), SPL_OK);
}

struct dp_prepared prepare_of(struct rig *r, const char *type, const char *request, const char *id,
			      uint64_t gen, uint64_t attempt)
{
	struct pack_writer w = start(r, DP_OBJ_PREPARE);
	struct dp_obj_prepare m = {.obj_gen = gen,
				   .own_gen = 1,
				   .attempt = attempt,
				   .deadline = clock_boot_ns() + 60 * CLOCK_NS_PER_S,
				   .kind = *type ? SPL_KIND_USER : SPL_KIND_ENTRY,
				   .id = dp_text(id),
				   .type = dp_text(type),
				   .request = dp_text(request)};
	struct dp_prepared done;
	struct pack_reader b;

	dp_put_obj_prepare(&w, &m);
	finish(r, &w);
	b = expect(r, DP_PREPARED);
	dp_get_prepared(&b, &done);
	CU_ASSERT_TRUE(dp_done(&b));
	CU_ASSERT_EQUAL(done.attempt, attempt);
	return done;
}

uint8_t prepare(struct rig *r, const char *id, uint64_t gen, uint64_t attempt)
{
	return prepare_of(r, "counter", "", id, gen, attempt).result;
}

uint8_t publish(struct rig *r, const char *id, uint64_t gen)
{
	struct pack_writer w = start(r, DP_OBJ_PUBLISH);
	struct dp_obj_publish m = {.obj_gen = gen, .own_gen = 1, .ver = 1, .id = dp_text(id)};

	dp_put_obj_publish(&w, &m);
	finish(r, &w);
	return ok_kind(r);
}

uint8_t close_spot(struct rig *r, const char *id, uint64_t gen)
{
	struct pack_writer w = start(r, DP_OBJ_CLOSE);
	struct dp_obj_close m = {.obj_gen = gen,
				 .deadline = clock_boot_ns() + 60 * CLOCK_NS_PER_S,
				 .id = dp_text(id)};
	struct dp_closed done;
	struct pack_reader b;

	dp_put_obj_close(&w, &m);
	finish(r, &w);
	b = expect(r, DP_CLOSED);
	dp_get_closed(&b, &done);
	CU_ASSERT_TRUE(dp_done(&b));
	return done.result;
}

uint8_t call(struct rig *r, const char *id, const char *packet, bool is_request)
{
	struct pack_writer w = start(r, DP_SPOT_CALL);
	struct dp_spot_call m = {.is_request = is_request,
				 .deadline = clock_boot_ns() + 20 * CLOCK_NS_PER_S,
				 .id = dp_text(id),
				 .packet = dp_text(packet)};
	struct dp_spot_called done;
	struct pack_reader b;

	dp_put_spot_call(&w, &m);
	finish(r, &w);
	b = expect(r, DP_SPOT_CALLED);
	dp_get_spot_called(&b, &done);
	CU_ASSERT_TRUE(dp_done(&b));
	return done.kind;
}

unsigned inventory(struct rig *r, const char *id, uint8_t *state)
{
	unsigned n = 0;

	for (uint32_t lane = 0; lane < 2; lane++) {
		struct dp_inventory page = {.more = 1};

		while (page.more) {
			struct pack_writer w = start(r, DP_RESYNC);
			struct dp_resync m = {.lane = lane, .cursor = page.cursor};
			struct pack_reader b, list;

			dp_put_resync(&w, &m);
			finish(r, &w);
			b = expect(r, DP_INVENTORY);
			dp_get_inventory(&b, &page);
			CU_ASSERT_TRUE_FATAL(dp_done(&b));
			list = (struct pack_reader){.p = page.objects.p, .left = page.objects.len};
			while (list.left) {
				struct dp_object o;

				dp_get_object(&list, &o);
				n++;
				if (o.id.len == strlen(id) && memcmp(o.id.p, id, o.id.len) == 0)
					*state = o.state;
			}
		}
	}
	return n;
}

void stop(struct rig *r)
{
	struct pack_writer w = start(r, DP_EXIT);
	struct dp_exit_req m = {0};

	dp_put_exit_req(&w, &m);
	finish(r, &w);
	CU_ASSERT_EQUAL(ok_kind(r), SPL_OK);
}
