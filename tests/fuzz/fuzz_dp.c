/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: the private protocol. The bytes are first one body of each message of common/dp.h:
 * what decodes must encode to the same bytes. Then they are what a dataplane sends to a real
 * control (host, authority, memory store) over a real socket, after a good start: control must go
 * on answering, and end with nothing left.
 *
 * Script: packets of 6 bytes and a body: type, flags, corr (n = that of the n-th request of control
 * that was held back, 0 = one of its own in a request, else 0), descriptor (1 sealed, 2 unsealed, 3
 * only said), body length u16. A type of 0 sends the body as a whole packet; 0xff holds requests of
 * control back from now on; 0xfe breaks the connection.
 */
#include "common/dp_io.h"
#include "common/log.h"
#include "control/host/host.h"
#include "control/store/store_memory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/t_ctl.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HELD_MAX  64
#define PACKETS	  16
#define LOOPS_MAX 100000

static char dir[64];
static struct config *cfg;

/* ---- the codec ---- */

#define DP_X(name, FIELDS) \
	static void check_##name(const uint8_t *p, size_t n) \
	{ \
		struct pack_reader r = {.p = p, .left = n}; \
		struct pack_writer w = {.p = malloc(n + 1), .cap = n}; \
		struct dp_##name m; \
\
		dp_get_##name(&r, &m); \
		if (dp_done(&r)) { \
			dp_put_##name(&w, &m); \
			FUZZ_CHECK(!w.overflow && w.len == n); \
			FUZZ_CHECK(n == 0 || memcmp(w.p, p, n) == 0); \
		} \
		free(w.p); \
	}
DP_STRUCTS(DP_X)
#undef DP_X

static void check_codec(const uint8_t *p, size_t n)
{
	struct dp_header h;
	struct pack_reader r;

	if (dp_open(p, n, &h, &r) == 0)
		FUZZ_CHECK(r.left == h.len && r.p + r.left == p + n);
#define DP_X(name, FIELDS) check_##name(p, n);
	DP_STRUCTS(DP_X)
#undef DP_X
}

/* ---- control ---- */

static struct {
	uv_loop_t loop;
	struct host *h;
	struct t_ctl *f;
	bool hold, closed;
	uint64_t corr[HELD_MAX];
	unsigned n_held;
	uint64_t now, serial;
} rig;

static uint64_t fake_now(void *ctx)
{
	return rig.now;
}

static void on_finished(void *ctx, int code)
{
}

static void on_closed(void *arg)
{
	rig.closed = true;
}

static bool on_packet(void *ctx, const struct dp_header *h, struct pack_reader body)
{
	if (!rig.hold || h->flags != DP_F_REQ)
		return false;
	if (rig.n_held < HELD_MAX)
		rig.corr[rig.n_held++] = h->corr;
	return true;
}

static void once(void)
{
	static const char text[] =
		"security = \"none\"; dataplane = { lanes = 2; };"
		"ports = ( { name = \"p0\"; device = \"net_ring0\"; ip = \"10.0.0.1\"; } );"
		"control = { private_dir = \"%s\"; };";
	struct conf_report rep;
	char conf[512];

	strcpy(dir, "/tmp/fuzz_dp.XXXXXX");
	FUZZ_CHECK(mkdtemp(dir));
	snprintf(conf, sizeof(conf), text, dir);
	cfg = conf_load_text("fuzz", conf, strlen(conf), NULL, &rep);
	FUZZ_CHECK(cfg);
	conf_report_free(&rep);
	log_open(STDERR_FILENO, LOG_LEVEL_ERROR);
	FUZZ_CHECK(freopen("/dev/null", "w", stderr));
}

static void step(void)
{
	t_ctl_step(rig.f, 0);
	uv_run(&rig.loop, UV_RUN_NOWAIT);
}

static void begin(void)
{
	const struct t_ctl_options f = {.dir = dir, .now = fake_now};
	struct host_options o = {
		.loop = &rig.loop, .cfg = cfg, .now = fake_now, .finished = on_finished};
	char err[256];

	memset(&rig, 0, sizeof(rig));
	rig.now = 1000000000;
	FUZZ_CHECK(uv_loop_init(&rig.loop) == 0);
	FUZZ_CHECK(t_ctl_open(&rig.f, &f) == 0);
	t_ctl_on_packet(rig.f, on_packet, NULL);
	FUZZ_CHECK(store_memory_open(&o.store, NULL) == 0);
	FUZZ_CHECK(host_open(&rig.h, &o, err, sizeof(err)) == 0);
	for (int i = 0; t_ctl_seen(rig.f)->host_state != DP_HOST_SERVING; i++) {
		FUZZ_CHECK(i < LOOPS_MAX);
		step();
	}
}

static void end(void)
{
	host_close(rig.h, on_closed, NULL);
	for (int i = 0; !rig.closed; i++) {
		FUZZ_CHECK(i < LOOPS_MAX);
		uv_run(&rig.loop, UV_RUN_NOWAIT);
	}
	uv_run(&rig.loop, UV_RUN_DEFAULT);
	FUZZ_CHECK(uv_loop_close(&rig.loop) == 0);
	t_ctl_close(rig.f);
}

static int descriptor(uint8_t how, const uint8_t *p, size_t n)
{
	int fd = -1;

	if (how == 1) {
		fd = dp_memfd(n ? (const void *)p : "x", n ? n : 1);
	} else if (how == 2) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		FUZZ_CHECK(ftruncate(fd, (off_t)n + 1) == 0);
	}
	return fd;
}

static void send_packet(const uint8_t *head, const uint8_t *body, size_t n)
{
	uint64_t corr = 0;
	uint8_t buf[DP_HEADER_BYTES + 65536];
	struct pack_writer w = {.p = buf, .cap = sizeof(buf)};
	int fd = descriptor(head[3], body, n);

	if (head[0] == 0xff) {
		rig.hold = true;
	} else if (head[0] == 0xfe) {
		t_ctl_disconnect(rig.f);
	} else if (head[0] == 0) {
		t_ctl_raw(rig.f, body, n, fd);
		return;
	} else {
		if (head[2] && head[2] <= rig.n_held)
			corr = rig.corr[head[2] - 1];
		else if (head[1] == DP_F_REQ)
			corr = ++rig.serial;
		dp_begin(&w, head[0], head[1], t_ctl_seen(rig.f)->epoch, corr);
		pack_put(&w, body, n);
		if (dp_finish(&w, fd >= 0 || head[3] == 3) == 0) {
			t_ctl_raw(rig.f, buf, w.len, fd);
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!cfg)
		once();
	check_codec(data, size);
	begin();
	for (int k = 0; k < PACKETS && size >= 6; k++) {
		size_t n = (size_t)(data[4] | data[5] << 8);

		if (n > size - 6)
			n = size - 6;
		send_packet(data, data + 6, n);
		data += 6 + n;
		size -= 6 + n;
		for (int i = 0; i < 4; i++)
			step();
	}
	end();
	return 0;
}
