/* SPDX-License-Identifier: BSD-3-Clause */
/* cart: an Instance Spot. Nobody creates a cart: the first message to its id does, when the sender
 * names the type (spl_target_set_instance(), spl_client_target_set_instance(), `spotctl spot
 * request CART add --payload tea --instance cart`), and when nobody has used it for
 * timeouts.instance_idle_ms it goes.
 *
 *	add, drop (send or request): payload "ITEM" or "N ITEM"; a request gets the new quantity
 *	list (request): "N ITEM" lines, in the order in which they came
 *	checkout (request): the same, and the cart is closed; the next message starts an empty one
 *
 * A cart keeps nothing beyond its life. One that should would write its lines away in on_closing,
 * which runs once, before the cart is gone, and read them in on_initialize, both through a Spot or
 * service of its own that has them.
 */
#include <spotlane/stage.h>

#define LINES	  16
#define ITEM_MAX  30
#define COUNT_MAX 9999u

struct line {
	uint16_t count;
	uint8_t len;
	char item[ITEM_MAX];
};

struct cart {
	struct line line[LINES];
	uint8_t lines;
	bool is_closing;
};

/* "ITEM" or "N ITEM"; false when it is neither. */
static bool parse(const struct spl_message *msg, struct line *out)
{
	const char *s = msg->payload;
	uint32_t n = msg->payload_bytes, at = 0, count = 0;

	while (at < n && at < 5 && s[at] >= '0' && s[at] <= '9')
		count = count * 10 + (uint32_t)(s[at++] - '0');
	if (at == 0) {
		count = 1;
	} else {
		if (at == n || s[at] != ' ')
			return false;
		at++;
	}
	if (count == 0 || count > COUNT_MAX || n - at == 0 || n - at > ITEM_MAX || s[at] == ' ')
		return false;
	for (uint32_t i = at; i < n; i++)
		if (s[i] == '\n')
			return false;
	out->count = (uint16_t)count;
	out->len = (uint8_t)(n - at);
	memcpy(out->item, s + at, n - at);
	return true;
}

static struct line *find(struct cart *c, const struct line *want)
{
	for (uint8_t i = 0; i < c->lines; i++)
		if (c->line[i].len == want->len &&
		    memcmp(c->line[i].item, want->item, want->len) == 0)
			return &c->line[i];
	return NULL;
}

/* Decimal digits of `v` at `p`; how many. */
static uint32_t digits(char *p, uint32_t v)
{
	uint32_t n = 1;

	for (uint32_t t = v; t >= 10; t /= 10)
		n++;
	for (uint32_t i = n; i > 0; i--, v /= 10)
		p[i - 1] = (char)('0' + v % 10);
	return n;
}

static int reply(struct spl_turn *turn, const char *text, uint32_t n)
{
	return spl_reply(turn, SPL_CONTENT_TEXT, text, n) == 0 ? SPL_DONE
							       : SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
}

static int reply_count(struct spl_turn *turn, const struct spl_message *msg, uint32_t count)
{
	char text[12];

	return msg->is_request ? reply(turn, text, digits(text, count)) : SPL_DONE;
}

static int on_add(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct cart *c = state;
	struct line want, *l;

	if (!parse(msg, &want))
		return SPL_FAIL(SPL_E_PROTOCOL_ERROR);
	l = find(c, &want);
	if (!l && c->lines == LINES)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	if (!l) {
		l = &c->line[c->lines++];
		*l = want;
	} else if (l->count + want.count > COUNT_MAX) {
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	} else {
		l->count = (uint16_t)(l->count + want.count);
	}
	return reply_count(turn, msg, l->count);
}

static int on_drop(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct cart *c = state;
	struct line want, *l;

	if (!parse(msg, &want))
		return SPL_FAIL(SPL_E_PROTOCOL_ERROR);
	l = find(c, &want);
	if (!l)
		return SPL_FAIL(SPL_E_NOT_FOUND);
	if (l->count > want.count) {
		l->count = (uint16_t)(l->count - want.count);
		return reply_count(turn, msg, l->count);
	}
	c->lines--;
	memmove(l, l + 1, (size_t)(&c->line[c->lines] - l) * sizeof(*l));
	return reply_count(turn, msg, 0);
}

static int on_list(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	const struct cart *c = state;
	char text[LINES * (sizeof("9999 \n") + ITEM_MAX)];
	uint32_t n = 0;

	for (uint8_t i = 0; i < c->lines; i++) {
		const struct line *l = &c->line[i];

		n += digits(text + n, l->count);
		text[n++] = ' ';
		memcpy(text + n, l->item, l->len);
		n += l->len;
		text[n++] = '\n';
	}
	return reply(turn, text, n);
}

static int on_checkout(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct cart *c = state;

	if (c->is_closing)
		return SPL_FAIL(SPL_E_INVALID_OPERATION);
	if (spl_close_self(turn) != 0)
		return SPL_FAIL(SPL_E_SHUTTING_DOWN);
	c->is_closing = true;
	return on_list(turn, state, msg);
}

static const struct spl_handler handlers[] = {
	{"add", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_add},
	{"drop", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_drop},
	{"list", SPL_TAKES_REQUEST, on_list},
	{"checkout", SPL_TAKES_REQUEST, on_checkout},
};

SPL_STAGE_EXPORT = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "cart",
	.version = "1.0",
	.kind = SPL_KIND_INSTANCE,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct cart),
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
};
