/* SPDX-License-Identifier: BSD-3-Clause */
/* counter: the smallest useful stage. A Spot of it is a number that messages add to.
 *
 *	add (send or request): payload is a decimal number, empty = 1; a request gets the new value
 *	get (request): the value as decimal text
 *
 * A creator may give the first value as the creation request, in decimal; anything else but an
 * empty request is rejected.
 */
#include <spotlane/stage.h>

struct counter {
	int64_t value;
};

/* Decimal text to a number: false when it is none, or too large to be one. */
static bool number(const void *bytes, uint32_t n, int64_t *out)
{
	const char *s = bytes;
	bool minus = n > 1 && s[0] == '-';
	int64_t v = 0;

	if (n == 0 || n - minus > 18)
		return false;
	for (uint32_t i = minus; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (s[i] - '0');
	}
	*out = minus ? -v : v;
	return true;
}

static int reply_value(struct spl_turn *turn, int64_t value)
{
	char text[24];
	uint32_t at = sizeof(text);
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		text[--at] = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		text[--at] = '-';
	if (spl_reply(turn, SPL_CONTENT_TEXT, text + at, (uint32_t)sizeof(text) - at) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_create(struct spl_turn *turn, void *state, const struct spl_message *request)
{
	static const char want[] = "a counter starts with a decimal number";
	struct counter *c = state;

	if (request->payload_bytes == 0 ||
	    number(request->payload, request->payload_bytes, &c->value))
		return SPL_DONE;
	if (spl_reply(turn, SPL_CONTENT_TEXT, want, sizeof(want) - 1) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_REJECTED;
}

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct counter *c = state;
	int64_t by = 1;

	if (msg->payload_bytes && !number(msg->payload, msg->payload_bytes, &by))
		return SPL_FAIL(SPL_E_PROTOCOL_ERROR);
	c->value = (int64_t)((uint64_t)c->value + (uint64_t)by); /* wraps */
	return msg->is_request ? reply_value(turn, c->value) : SPL_DONE;
}

static int on_get(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	const struct counter *c = state;

	return reply_value(turn, c->value);
}

static const struct spl_handler handlers[] = {
	{"add", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_add},
	{"get", SPL_TAKES_REQUEST, on_get},
};

SPL_STAGE_EXPORT = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "counter",
	.version = "1.0",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct counter),
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
	.on_create = on_create,
};
