/* SPDX-License-Identifier: BSD-3-Clause */
/* A stage whose replies are too large for a packet of the private socket: the packet `big`, and the
 * creation when it has a request.
 */
#include <spotlane/stage.h>

static const char large[40000];

static int reply_large(struct spl_turn *turn)
{
	return spl_reply(turn, SPL_CONTENT_RAW, large, sizeof(large))
		       ? SPL_FAIL(SPL_E_CAPACITY_EXCEEDED)
		       : SPL_DONE;
}

static int on_create(struct spl_turn *turn, void *state, const struct spl_message *request)
{
	return request->payload_bytes ? reply_large(turn) : SPL_DONE;
}

static int on_big(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	return reply_large(turn);
}

static const struct spl_handler handlers[] = {{"big", SPL_TAKES_REQUEST, on_big}};

SPL_STAGE_EXPORT = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "large",
	.version = "1.0",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = 8,
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
	.on_create = on_create,
};
