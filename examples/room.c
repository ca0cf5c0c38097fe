/* SPDX-License-Identifier: BSD-3-Clause */
/* room: people say things, and the room keeps a roll of who said how much, in what order.
 *
 * `./appliance run` drives it: each sender numbers what it says, so the roll shows every message
 * that was lost, came twice or overtook another one. Packets and layouts: room.h.
 *
 * The creation request "plant=drop", "plant=dup" or "plant=swap" makes the room spoil one message,
 * the third of the first sender that gets so far, to show that the check can fail.
 */
#include "room.h"

#include <spotlane/stage.h>

#define PLANTED_AT 3u

enum plant { PLANT_NONE, PLANT_DROP, PLANT_DUP, PLANT_SWAP };

struct sender {
	uint64_t id;
	uint64_t heard;	  /* messages, duplicates and late ones too */
	uint64_t highest; /* sequence */
	uint64_t seen;	  /* bit i: highest - i was heard */
	uint64_t duplicates, out_of_order;
};

struct room {
	struct sender sender[ROOM_SENDERS_MAX];
	uint32_t senders;
	enum plant plant; /* PLANT_NONE once it is done */
	struct sender *held_of;
	uint64_t held; /* sequence that PLANT_SWAP keeps back */
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

static void hear(struct sender *s, uint64_t sequence)
{
	uint64_t back;

	s->heard++;
	if (sequence > s->highest) {
		back = sequence - s->highest;
		s->seen = (back < 64 ? s->seen << back : 0) | 1;
		s->highest = sequence;
		return;
	}
	back = s->highest - sequence;
	if (back < 64 && s->seen >> back & 1) {
		s->duplicates++;
		return;
	}
	s->out_of_order++;
	if (back < 64)
		s->seen |= UINT64_C(1) << back;
}

/* Spoils the third message of the first sender that gets there. */
static void hear_planted(struct room *r, struct sender *s, uint64_t sequence)
{
	enum plant plant = r->plant;

	if (r->held_of == s) {
		r->held_of = NULL;
		r->plant = PLANT_NONE;
		hear(s, sequence);
		hear(s, r->held);
		return;
	}
	if (r->held_of || s->heard + 1 != PLANTED_AT) {
		hear(s, sequence);
		return;
	}
	if (plant == PLANT_SWAP) {
		r->held_of = s;
		r->held = sequence;
		return;
	}
	r->plant = PLANT_NONE;
	if (plant == PLANT_DROP)
		return;
	hear(s, sequence);
	hear(s, sequence);
}

static struct sender *sender_of(struct room *r, uint64_t id)
{
	for (uint32_t i = 0; i < r->senders; i++)
		if (r->sender[i].id == id)
			return &r->sender[i];
	if (r->senders == ROOM_SENDERS_MAX)
		return NULL;
	r->sender[r->senders].id = id;
	return &r->sender[r->senders++];
}

static int on_say(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct room *r = state;
	struct sender *s;

	if (msg->payload_bytes < ROOM_SAY_BYTES)
		return SPL_FAIL(SPL_E_PROTOCOL_ERROR);
	s = sender_of(r, get64(msg->payload));
	if (!s)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	if (r->plant == PLANT_NONE)
		hear(s, get64((const uint8_t *)msg->payload + 8));
	else
		hear_planted(r, s, get64((const uint8_t *)msg->payload + 8));
	if (msg->is_request && spl_reply(turn, SPL_CONTENT_RAW, msg->payload, ROOM_SAY_BYTES) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_roll(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	const struct room *r = state;
	uint8_t rows[ROOM_SENDERS_MAX * ROOM_ROW_BYTES], *p = rows;

	for (uint32_t i = 0; i < r->senders; i++) {
		const struct sender *s = &r->sender[i];

		p = put64(p, s->id);
		p = put64(p, s->heard);
		p = put64(p, s->highest);
		p = put64(p, s->duplicates);
		p = put64(p, s->out_of_order);
	}
	if (spl_reply(turn, SPL_CONTENT_RAW, rows, (uint32_t)(p - rows)) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static int on_create(struct spl_turn *turn, void *state, const struct spl_message *request)
{
	static const struct {
		const char *text;
		enum plant plant;
	} plants[] = {
		{"", PLANT_NONE},
		{"plant=drop", PLANT_DROP},
		{"plant=dup", PLANT_DUP},
		{"plant=swap", PLANT_SWAP},
	};
	struct room *r = state;

	for (unsigned i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		if (request->payload_bytes != strlen(plants[i].text) ||
		    (request->payload_bytes &&
		     memcmp(request->payload, plants[i].text, request->payload_bytes) != 0))
			continue;
		r->plant = plants[i].plant;
		return SPL_DONE;
	}
	return SPL_REJECTED;
}

static const struct spl_handler handlers[] = {
	{ROOM_SAY, SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_say},
	{ROOM_ROLL, SPL_TAKES_REQUEST, on_roll},
};

SPL_STAGE_EXPORT = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = ROOM_TYPE,
	.version = "1.0",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct room),
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
	.on_create = on_create,
};
