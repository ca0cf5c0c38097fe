/* SPDX-License-Identifier: BSD-3-Clause */
/* Random histories over 1 and 3 lanes: messages, waits, refusals, creations, closes, fences,
 * deadlines, lease and permit changes, full rings, timers, publishes, sends that wait, work and
 * creations of handlers. After every step the counters add up, lane memory and plan are sound and
 * no two callbacks of a Spot overlap; at the end every request had exactly one answer, every
 * command too, and nothing is held. A few long histories, and 10 000 short ones.
 */
#include "tests/unit/spot/teststage.h"

#include "common/ids.h"

#include <errno.h>
#include <stdlib.h>

#define f      test_rig
#define IDS    24
#define LONG   6000u /* steps */
#define SHORT  150u
#define MANY   10000u /* short histories */
#define EXTRAS 4      /* ids that never exist */

static struct {
	uint64_t generation; /* 0 = not asked for */
	bool published, closing;
} spot[IDS];

static uint8_t *replies; /* by correlation */
static uint64_t lossy;	 /* requests admitted while sending fails may go unanswered */
static struct t_rand rnd;

static const char *name(unsigned i)
{
	static char text[4][16];
	static unsigned at;

	at = (at + 1) % 4;
	snprintf(text[at], sizeof(text[at]), "s%u", i);
	return text[at];
}

/* ---- a stage that does what the test stage does, and more ---- */

static struct spl_topic news;

static int heard(struct spl_turn *turn, void *state, const struct spl_message *m,
		 const struct spl_topic *topic)
{
	struct test_state *s = state;

	CU_ASSERT_EQUAL(s->inside, 0);
	CU_ASSERT(m->payload_bytes == 1 && *(const char *)m->payload == 'n');
	s->count++;
	return SPL_DONE;
}

static int on_configure(struct spl_turn *turn, void *state)
{
	return spl_subscribe(turn, &news, "news", heard) ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
							 : SPL_DONE;
}

static int ended(struct spl_turn *turn, void *state, const struct spl_result *r, void *ctx)
{
	struct test_state *s = state;

	CU_ASSERT_EQUAL(s->inside, 0);
	CU_ASSERT(r->kind == SPL_CANCELLED || r->kind == SPL_OK || r->kind < SPL_ERROR_COUNT);
	(void)spl_reply(turn, SPL_CONTENT_TEXT, "ended", 5);
	return SPL_DONE;
}

static int compute(struct spl_work *work, const void *input, uint32_t bytes)
{
	return SPL_DONE;
}

/* "KIND WAIT ID": starts a call of that kind, and waits for it or not. */
static int on_call(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	struct test_state *s = state;
	struct spl_creation c = {.type = "test", .id = "made", .id_bytes = 4};
	char kind = ' ', how = ' ', id[32] = "", text[64];
	struct spl_target t;
	enum spl_wait wait;
	int rc = -EINVAL;

	CU_ASSERT_EQUAL(s->inside, 0);
	snprintf(text, sizeof(text), "%.*s", (int)m->payload_bytes, (const char *)m->payload);
	if (sscanf(text, "%c %c %31s", &kind, &how, id) != 3 || spl_target_set(&t, id, strlen(id)))
		return SPL_DONE;
	wait = how == 'y' ? SPL_WAIT_YIELD : SPL_WAIT_HOLD;
	switch (kind) {
	case 't':
		rc = spl_send_wait(turn, &t, spl_packet_key("add", 3), SPL_CONTENT_TEXT, "", 0, 15,
				   &s->call);
		break;
	case 'p':
		rc = spl_publish_wait(turn, &news, spl_packet_key("news", 4), SPL_CONTENT_TEXT, "n",
				      1, 15, &s->call);
		break;
	case 'w':
		rc = spl_run_cpu(turn, compute, "x", 1, 0, wait, how == 'n' ? NULL : &s->call);
		break;
	case 'c':
		rc = spl_create(turn, &c, wait, &s->call);
		break;
	}
	if (rc || how == 'n')
		return SPL_DONE;
	CU_ASSERT_EQUAL(spl_call_then(turn, s->call, ended, s), 0);
	return SPL_SUSPENDED;
}

static int on_publish(struct spl_turn *turn, void *state, const struct spl_message *m)
{
	(void)spl_publish(turn, &news, spl_packet_key("news", 4), SPL_CONTENT_TEXT, "n", 1);
	return SPL_DONE;
}

static struct spl_handler handlers[SPL_HANDLERS_MAX] = {
	{"call", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_call},
	{"publish", SPL_TAKES_SEND, on_publish},
};
static struct spl_stage crowd, crowd_small;

static void make_stages(void)
{
	uint32_t n = test_stage.handler_count;

	if (crowd.handlers)
		return;
	memcpy(handlers + 2, test_stage.handlers, n * sizeof(handlers[0]));
	crowd = test_stage;
	crowd_small = test_stage_small;
	crowd.handlers = crowd_small.handlers = handlers;
	crowd.handler_count = crowd_small.handler_count = n + 2;
	crowd.on_configure = crowd_small.on_configure = on_configure;
	crowd.type = "crowd";
	crowd_small.type = "crowd-small";
	CU_ASSERT_EQUAL(spl_topic_set(&news, "world", 5, "news", 4), 0);
}

/* Whatever handlers have handed over ends in any order. */
static void end_asked(void)
{
	static const uint8_t kinds[] = {SPL_OK, SPL_OK, SPL_E_INTERNAL_FAILURE, SPL_E_UNAVAILABLE};
	uint8_t kind = kinds[t_rand_below(&rnd, T_COUNT(kinds))];

	if (f.works && t_rand_below(&rnd, 2)) {
		unsigned i = t_rand_below(&rnd, f.works), last = --f.works;

		fake_work_ends(&f, i, kind, kind == SPL_OK ? "done" : NULL);
		f.work[i] = f.work[last];
		f.work_lane[i] = f.work_lane[last];
	} else if (f.creations) {
		unsigned i = t_rand_below(&rnd, f.creations), last = --f.creations;

		fake_creation_ends(&f, i, kind, 1, "made", "x");
		f.creation[i] = f.creation[last];
	}
}

static void message(void)
{
	static const char *const packets[] = {"add",   "echo", "log",	"absent", "misc",
					      "send",  "hold", "yield", "yield",  "cancel",
					      "timer", "call", "call",	"publish"};
	static const char *const misuses[] = {"fail",  "badcode", "suspended", "silent",
					      "twice", "thrown",  "replyfail", "close"};
	static char big[9000];
	const char *id = name(t_rand_below(&rnd, IDS + EXTRAS));
	const char *packet = packets[t_rand_below(&rnd, T_COUNT(packets))];
	char text[64] = "";
	struct spot_rec *r;

	if (strcmp(packet, "misc") == 0)
		snprintf(text, sizeof(text), "%s", misuses[t_rand_below(&rnd, 8)]);
	else if (strcmp(packet, "send") == 0)
		snprintf(text, sizeof(text), "%s add", name(t_rand_below(&rnd, IDS + EXTRAS)));
	else if (strcmp(packet, "call") == 0)
		snprintf(text, sizeof(text), "%c %c %s", "tpwc"[t_rand_below(&rnd, 4)],
			 "hyn"[t_rand_below(&rnd, 3)], name(t_rand_below(&rnd, IDS + EXTRAS)));
	else if (strcmp(packet, "hold") == 0 || strcmp(packet, "yield") == 0)
		snprintf(text, sizeof(text), "%s %s x", name(t_rand_below(&rnd, IDS + EXTRAS)),
			 t_rand_below(&rnd, 4) ? "echo" : "absent");
	else if (strcmp(packet, "timer") == 0 && t_rand_below(&rnd, 4))
		snprintf(text, sizeof(text), "t%u %u %u %u", t_rand_below(&rnd, 4),
			 1 + t_rand_below(&rnd, 20), t_rand_below(&rnd, 3), t_rand_below(&rnd, 2));
	else if (t_rand_below(&rnd, 8) == 0)
		memset(text, 'p', sizeof(text) - 1);
	if (strcmp(packet, "add") == 0 && t_rand_below(&rnd, 10) == 0)
		r = fake_record(&f, id, t_rand_below(&rnd, 2), packet, big,
				t_rand_below(&rnd, sizeof(big)));
	else
		r = fake_record(&f, id, t_rand_below(&rnd, 2), packet, text,
				(uint32_t)strlen(text));
	if (t_rand_below(&rnd, 4) == 0)
		r->deadline = f.now + t_rand_below(&rnd, 30) * FAKE_MS;
	if (t_rand_below(&rnd, 50) == 0)
		r->msg.content = 9;
	fake_admit(&f, id, r);
}

static void lifecycle(void)
{
	static const char *const requests[] = {NULL,   "reject",	 "fail", "hold s1 echo x",
					       "kind", "hold s99 echo x"};
	static const struct spl_stage *const stages[] = {&crowd,
							 &crowd,
							 &crowd_small,
							 &test_stage_small,
							 &test_stage_actors,
							 &test_stage_instance};
	unsigned i = t_rand_below(&rnd, IDS);
	struct spl_key key = fake_key(name(i));
	struct spot_lane *l = fake_lane_of(&f, name(i))->l;
	uint64_t soon = t_rand_below(&rnd, 2) ? f.now + t_rand_below(&rnd, 40) * FAKE_MS + 1 : 0;

	if (!test_spot(name(i))) {
		spot[i].generation = fake_prepare(
			&f, name(i), fake_stage(stages[t_rand_below(&rnd, T_COUNT(stages))]),
			requests[t_rand_below(&rnd, t_rand_below(&rnd, 2) ? 1 : 6)], soon);
		return;
	}
	switch (t_rand_below(&rnd, 6)) {
	case 0:
		spot_discard(l, &key, spot[i].generation, ++f.next_op, f.now);
		break;
	case 1:
		fake_close(&f, name(i), spot[i].generation, (enum spl_closing)t_rand_below(&rnd, 2),
			   soon);
		break;
	case 2:
		if (t_rand_below(&rnd, 4) == 0)
			fake_close(&f, name(i), spot[i].generation, SPOT_FENCED, 0);
		break;
	default:
		spot_publish(l, &key, spot[i].generation, ++f.next_op, f.now);
	}
}

/* Control's late word about a missing Spot, or a guess. */
static void stray_reply(void)
{
	struct spot_reply r = {
		.correlation = t_rand_below(&rnd, 3) ? f.missing_correlation : t_rand_u64(&rnd),
		.kind = SPL_E_NOT_FOUND,
		.origin = SPOT_FROM_AGENT,
	};

	spot_reply_in(f.lane[t_rand_below(&rnd, f.lanes)].l, &r);
}

static void weather(void)
{
	f.lease = t_rand_below(&rnd, 4) ? UINT64_MAX : f.now + t_rand_below(&rnd, 3) * FAKE_MS;
	f.permits = t_rand_below(&rnd, 4) ? UINT32_MAX : t_rand_below(&rnd, 3);
	f.pool_low = t_rand_below(&rnd, 3) == 0;
	f.missing_error = t_rand_below(&rnd, 3) ? 0 : -11;
	f.close_error = t_rand_below(&rnd, 3) ? 0 : -11;
	f.send_error = t_rand_below(&rnd, 12) ? 0 : -11;
	lossy += f.send_error != 0;
	fake_trace(&f, (enum spl_trace_level)t_rand_below(&rnd, SPL_TL_COUNT),
		   t_rand_below(&rnd, 2) ? SPL_TRACE_ALL : SPL_TRACE_ALL / 2);
	for (unsigned i = 0; i < f.lanes; i++) {
		f.lane[i].ring_max = t_rand_below(&rnd, 4) ? FAKE_LIST : f.lane[i].ring_count;
		spot_lane_set(f.lane[i].l, f.lease, f.pool_low, f.permits);
	}
}

static void collect(void)
{
	for (unsigned i = 0; i < f.outs; i++) {
		CU_ASSERT_EQUAL_FATAL(f.out[i].kind, SPL_MSG_REPLY);
		CU_ASSERT_FATAL(f.out[i].correlation >= 1 &&
				f.out[i].correlation <= f.next_correlation);
		replies[f.out[i].correlation]++;
	}
	f.outs = 0;
}

static void step(void)
{
	switch (t_rand_below(&rnd, 16)) {
	case 0:
	case 1:
		lifecycle();
		break;
	case 2:
		fake_advance(&f, t_rand_below(&rnd, 8) * FAKE_MS);
		break;
	case 3:
		spot_copy_out(f.lane[t_rand_below(&rnd, f.lanes)].l, 4);
		break;
	case 4:
		if (t_rand_below(&rnd, 2))
			stray_reply();
		else
			end_asked();
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		fake_pass(&f, 1 + t_rand_below(&rnd, 12));
		break;
	case 9:
		if (t_rand_below(&rnd, 10) == 0)
			weather();
		break;
	default:
		message();
	}
	collect();
	CU_ASSERT_FATAL(fake_law(&f));
	CU_ASSERT_EQUAL_FATAL(test_stage_overlaps, 0);
}

static unsigned calls_open(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f.lanes; i++)
		n += f.lane[i].l->calls_open;
	return n;
}

static void end(void)
{
	f.lease = UINT64_MAX;
	f.permits = UINT32_MAX;
	f.send_error = f.close_error = f.missing_error = 0;
	f.pool_low = false;
	for (unsigned i = 0; i < f.lanes; i++) {
		f.lane[i].ring_max = FAKE_LIST;
		spot_lane_set(f.lane[i].l, f.lease, false, UINT32_MAX);
	}
	for (int i = 0; i < 40 || (i < 4000 && calls_open()); i++) { /* longer than any deadline */
		fake_advance(&f, 50 * FAKE_MS);
		fake_run(&f);
		CU_ASSERT(fake_law(&f));
	}
	/* What was prepared and never published. */
	for (unsigned i = 0; i < IDS; i++) {
		struct spl_key key = fake_key(name(i));

		spot_discard(fake_lane_of(&f, name(i))->l, &key, spot[i].generation, ++f.next_op,
			     f.now);
	}
	fake_run(&f);
	collect();
	CU_ASSERT_EQUAL(f.answers, f.next_op); /* each command has one */
	test_stop();
}

static void history(unsigned lanes, unsigned steps, uint64_t seed)
{
	uint64_t silent = 0;

	rnd.s = seed;
	lossy = 0;
	memset(spot, 0, sizeof(spot));
	make_stages();
	test_begin(lanes);
	f.conf.request_ms = 20;
	f.conf.create_ms = 20;
	f.conf.send_ms = 10;
	f.conf.secret[0] = seed;
	if (steps < LONG) { /* less memory to clear, and soon full */
		f.conf.records = 256;
		f.conf.heap_bytes = 128 << 10;
		f.conf.object_bytes = 256 << 10;
		f.conf.calls = f.conf.commands = 64;
		f.conf.spots_max = 64;
		f.conf.timers = f.conf.subscriptions = 64;
	}
	fake_start(&f);
	replies = calloc(steps * 2, 1);
	for (unsigned i = 0; i < steps; i++)
		step();
	end();
	for (uint64_t c = 1; c <= f.next_correlation; c++) {
		CU_ASSERT_FATAL(replies[c] <= 1);
		silent += replies[c] == 0;
	}
	CU_ASSERT(lossy || silent == 0);
	CU_ASSERT_EQUAL(f.lane[0].plan.spots, 0);
	free(replies);
}

static void test_history_1(void)
{
	for (uint64_t k = 0; k < 12; k++)
		history(1, LONG, t_seed() + k);
}

static void test_history_3(void)
{
	for (uint64_t k = 0; k < 12; k++)
		history(3, LONG, t_seed() + 100 + k);
}

/* Seeds that are the same every time: a failure names its own. */
static void test_many(void)
{
	unsigned bad = CU_get_number_of_failures();

	for (uint64_t k = 1; k <= MANY; k++) {
		history(k % 8 ? 1 : 3, SHORT, k);
		if (CU_get_number_of_failures() == bad)
			continue;
		fprintf(stderr, "history %llu\n", (unsigned long long)k);
		return;
	}
}

static const struct t_case cases[] = {
	T(test_history_1, "S-GATE-2", "S-ADM-2", "S-LIM-3", "S-COMPL-1"),
	T(test_history_3, "S-DIR-3", "S-DIR-6", "S-CLOSE-4", "S-TURN-10"),
	T(test_many, "S-GATE-2", "S-LIM-6", "S-COMPL-1", "S-YIELD-7"),
};

int main(int argc, char **argv)
{
	const struct t_suite suites[] = {T_SUITE("spot_random", NULL, NULL, cases)};

	return t_main(argc, argv, suites, T_COUNT(suites));
}
