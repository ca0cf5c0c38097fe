/* SPDX-License-Identifier: BSD-3-Clause */
/* A stage for the smoke tests: Spots whose handlers hold their turn until `sink` is closed.
 *
 * Four roles, by id. `sink` and `knot` wait for each other: a `tie` makes sink hold its turn on a
 * request to knot, whose handler holds its own on a request to sink. `pump-00` … `pump-15` wait for
 * sink, and every other Spot holds the turn of each `say` on a request to its pump, and hears the
 * message when the pump answers. Closing sink undoes it all: whatever a pump gets then, it answers.
 *
 *	tie (send)
 *	say (send): u64 sequence, big-endian, from 1 on, one sender a Spot
 *	heard (request): the reply is u64 messages, u64 highest sequence, u64 out of order
 *	wait (request): an empty reply, when the waiting is over
 *	spin (send): burns its lane for three seconds, as no handler should
 */
#include <spotlane/stage.h>

#include <time.h>

#define PUMPS	16
#define HOUR_MS 3600000

struct hold {
	uint64_t messages, highest, late;
	uint64_t sequence; /* of the say that holds the turn */
	bool is_open;
	struct spl_target next; /* for whom it waits */
	uint64_t wait;
};

static uint64_t get64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
	return p + 8;
}

static bool is(const struct spl_name *id, const char *prefix)
{
	return id->len >= strlen(prefix) && memcmp(id->b, prefix, strlen(prefix)) == 0;
}

static int set_next(struct hold *h, const char *id)
{
	return spl_target_set(&h->next, id, strlen(id)) ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
							: SPL_DONE;
}

static int on_create(struct spl_turn *turn, void *state, const struct spl_message *request)
{
	const struct spl_name *id = spl_spot_id(turn);
	char pump[] = "pump-00";
	struct hold *h = state;
	unsigned n = 0;

	for (unsigned i = 0; i < id->len; i++)
		n = n * 31 + (uint8_t)id->b[i];
	n %= PUMPS;
	pump[5] = (char)('0' + n / 10);
	pump[6] = (char)('0' + n % 10);
	h->wait = spl_packet_key("wait", 4);
	if (is(id, "sink"))
		return set_next(h, "knot");
	return set_next(h, is(id, "knot") || is(id, "pump-") ? "sink" : pump);
}

/* Waits for the next Spot with the turn held. */
static int wait_next(struct spl_turn *turn, struct hold *h, spl_result_fn then)
{
	struct spl_call *call;

	if (spl_request(turn, &h->next, h->wait, SPL_CONTENT_RAW, NULL, 0, HOUR_MS, SPL_WAIT_HOLD,
			&call) != 0 ||
	    spl_call_then(turn, call, then, NULL) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_SUSPENDED;
}

static int on_tied(struct spl_turn *turn, void *state, const struct spl_result *result, void *ctx)
{
	return SPL_DONE;
}

static int on_tie(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	return wait_next(turn, state, on_tied);
}

static int answer(struct spl_turn *turn)
{
	if (spl_reply(turn, SPL_CONTENT_RAW, NULL, 0) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

/* What it waited for is gone: that is the end of the waiting. */
static int on_undone(struct spl_turn *turn, void *state, const struct spl_result *result, void *ctx)
{
	((struct hold *)state)->is_open = true;
	return answer(turn);
}

static int on_wait(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct hold *h = state;

	return h->is_open ? answer(turn) : wait_next(turn, h, on_undone);
}

static void hear(struct hold *h)
{
	h->messages++;
	if (h->sequence > h->highest)
		h->highest = h->sequence;
	else
		h->late++;
}

static int on_released(struct spl_turn *turn, void *state, const struct spl_result *result,
		       void *ctx)
{
	struct hold *h = state;

	if (result->kind != SPL_OK)
		return SPL_FAIL(result->kind);
	h->is_open = true;
	hear(h);
	return SPL_DONE;
}

static int on_say(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct hold *h = state;

	if (msg->payload_bytes < 8)
		return SPL_FAIL(SPL_E_PROTOCOL_ERROR);
	h->sequence = get64(msg->payload);
	if (!h->is_open)
		return wait_next(turn, h, on_released);
	hear(h);
	return SPL_DONE;
}

static int on_heard(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	const struct hold *h = state;
	uint8_t row[24];

	put64(put64(put64(row, h->messages), h->highest), h->late);
	if (spl_reply(turn, SPL_CONTENT_RAW, row, sizeof(row)) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_spin(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct timespec t;
	time_t until;

	clock_gettime(CLOCK_MONOTONIC, &t);
	until = t.tv_sec + 3;
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while (t.tv_sec < until);
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"say", SPL_TAKES_SEND, on_say},   {"heard", SPL_TAKES_REQUEST, on_heard},
	{"tie", SPL_TAKES_SEND, on_tie},   {"wait", SPL_TAKES_REQUEST, on_wait},
	{"spin", SPL_TAKES_SEND, on_spin},
};

SPL_STAGE_EXPORT = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "hold",
	.version = "1.0",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct hold),
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
	.on_create = on_create,
};
