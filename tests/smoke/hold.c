/* SPDX-License-Identifier: BSD-3-Clause */
/* A stage for the smoke tests: Spots whose handlers hold their turn until a valve is opened.
 *
 * Three roles, by id: `valve` is a flag that `open` sets; `pump-0` … `pump-15` wait for it, asking
 * again and again; every other Spot holds the turn of each `say` on a request to its pump, and
 *hears the message when the pump answers. So ten thousand turns wait, and sixteen ask.
 *
 *	say (send): u64 sequence, big-endian, from 1 on, one sender a Spot
 *	heard (request): the reply is u64 messages, u64 highest sequence, u64 out of order
 *	open (send or request), is_open (request: one byte), wait (request: empty reply)
 */
#include <spotlane/stage.h>

#define PUMPS	16
#define HOUR_MS 3600000

struct hold {
	uint64_t messages, highest, late;
	uint64_t sequence; /* of the say that holds the turn */
	bool is_open;
	struct spl_target next; /* pump of a holder, valve of a pump */
	uint64_t wait, is_open_key;
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
	h->is_open_key = spl_packet_key("is_open", 7);
	if (id->len >= 5 && memcmp(id->b, "pump-", 5) == 0)
		return spl_target_set(&h->next, "valve", 5) ? SPL_FAIL(SPL_E_INTERNAL_FAILURE)
							    : SPL_DONE;
	return spl_target_set(&h->next, pump, 7) ? SPL_FAIL(SPL_E_INTERNAL_FAILURE) : SPL_DONE;
}

static int on_open(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	((struct hold *)state)->is_open = true;
	if (msg->is_request && spl_reply(turn, SPL_CONTENT_RAW, NULL, 0) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_is_open(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	const uint8_t open = ((const struct hold *)state)->is_open;

	if (spl_reply(turn, SPL_CONTENT_RAW, &open, 1) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

/* Waits for `packet` of h->next with the turn held. */
static int ask(struct spl_turn *turn, struct hold *h, uint64_t packet, spl_result_fn then)
{
	struct spl_call *call;

	if (spl_request(turn, &h->next, packet, SPL_CONTENT_RAW, NULL, 0, HOUR_MS, &call) != 0 ||
	    spl_call_then(turn, call, SPL_WAIT_HOLD, then, NULL) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_SUSPENDED;
}

static int on_asked(struct spl_turn *turn, void *state, const struct spl_result *result, void *ctx)
{
	struct hold *h = state;

	if (result->kind != SPL_OK || result->payload_bytes != 1)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	h->is_open = *(const uint8_t *)result->payload != 0;
	if (!h->is_open)
		return ask(turn, h, h->is_open_key, on_asked);
	if (spl_reply(turn, SPL_CONTENT_RAW, NULL, 0) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_wait(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct hold *h = state;

	if (!h->is_open)
		return ask(turn, h, h->is_open_key, on_asked);
	if (spl_reply(turn, SPL_CONTENT_RAW, NULL, 0) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
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
		return ask(turn, h, h->wait, on_released);
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

static const struct spl_handler handlers[] = {
	{"say", SPL_TAKES_SEND, on_say},
	{"heard", SPL_TAKES_REQUEST, on_heard},
	{"open", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_open},
	{"is_open", SPL_TAKES_REQUEST, on_is_open},
	{"wait", SPL_TAKES_REQUEST, on_wait},
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
