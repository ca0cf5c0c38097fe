/* SPDX-License-Identifier: BSD-3-Clause */
/* zone: a piece of a world that goes on by itself. A Spot of it is one square of a grid, with the
 *id "zone-X-Y"; walkers move across it 30 times a second.
 *
 *	enter (send or request): "WALKER X Y VX VY", decimal: a walker's number, where it stands in
 *		the square (0..999 each) and what it moves in a tick; a request is answered "in" or
 *		refused when the square is full
 *	look (request): "ticks T walkers N east E west W north N south S" as text
 *
 * A walker that leaves a square is sent to the neighbour it walks into. Every tick a square tells
 * its neighbours how crowded it is, by multicast: it publishes under its own id, on the channel
 * "world", and subscribes to the ids around it; squares that are not there say nothing.
 */
#include <spotlane/stage.h>

#include <stdio.h>
#include <string.h>

#define CHANNEL	 "world"
#define TICK_NS	 33333333 /* 30 Hz */
#define SIZE	 1000
#define WALKERS	 64
#define SIDES	 4
#define TEXT_MAX 128

struct walker {
	long number; /* 0: nobody */
	int x, y, vx, vy;
};

struct zone {
	uint32_t walkers, ticks;
	int x, y; /* of the square */
	struct walker walker[WALKERS];
	uint32_t crowd[SIDES]; /* of the neighbours, as they last said */
	bool is_there[SIDES];  /* it has been heard */
	uint64_t enter, crowded;
	struct spl_topic here, side[SIDES];
	struct spl_target neighbour[SIDES];
};

static const struct {
	int dx, dy;
} sides[SIDES] = {{1, 0}, {-1, 0}, {0, -1}, {0, 1}}; /* east, west, north, south */

/* The payload as a C string; false when it is too long. */
static bool text_of(char *out, const struct spl_message *msg)
{
	if (msg->payload_bytes >= TEXT_MAX)
		return false;
	if (msg->payload_bytes)
		memcpy(out, msg->payload, msg->payload_bytes);
	out[msg->payload_bytes] = '\0';
	return true;
}

static int on_crowded(struct spl_turn *turn, void *state, const struct spl_message *msg,
		      const struct spl_topic *topic)
{
	struct zone *z = state;
	char text[TEXT_MAX];

	for (int i = 0; i < SIDES; i++)
		if (topic == &z->side[i] && text_of(text, msg))
			z->is_there[i] = sscanf(text, "%u", &z->crowd[i]) == 1;
	return SPL_DONE;
}

static int on_configure(struct spl_turn *turn, void *state)
{
	const struct spl_name *id = spl_spot_id(turn);
	struct zone *z = state;
	char name[64];
	int end = 0;

	if (id->len >= sizeof(name))
		return SPL_FAIL(SPL_E_INVALID_OPERATION);
	memcpy(name, id->b, id->len);
	name[id->len] = '\0';
	if (sscanf(name, "zone-%d-%d%n", &z->x, &z->y, &end) != 2 || end != id->len)
		return SPL_FAIL(SPL_E_INVALID_OPERATION);
	if (spl_topic_set(&z->here, CHANNEL, strlen(CHANNEL), id->b, id->len) != 0)
		return SPL_FAIL(SPL_E_INVALID_OPERATION);
	for (int i = 0; i < SIDES; i++) {
		int len = snprintf(name, sizeof(name), "zone-%d-%d", z->x + sides[i].dx,
				   z->y + sides[i].dy);

		if (spl_target_set(&z->neighbour[i], name, (size_t)len) != 0 ||
		    spl_topic_set(&z->side[i], CHANNEL, strlen(CHANNEL), name, (size_t)len) != 0)
			return SPL_FAIL(SPL_E_INVALID_OPERATION);
		if (spl_subscribe(turn, &z->side[i], "crowded", on_crowded) != 0)
			return SPL_DONE; /* the creation fails, with the reason */
	}
	return SPL_DONE;
}

static int within(int v)
{
	return v < 0 ? 0 : v >= SIZE ? SIZE - 1 : v;
}

/* Hands the walker to the square it has walked into. One that was never heard turns it back: a send
 * to nobody may be lost without a word. */
static void leave(struct spl_turn *turn, struct zone *z, struct walker *w, int side)
{
	char text[TEXT_MAX];
	int len = snprintf(text, sizeof(text), "%ld %d %d %d %d", w->number,
			   within(w->x - sides[side].dx * SIZE),
			   within(w->y - sides[side].dy * SIZE), w->vx, w->vy);

	if (z->is_there[side] && spl_send(turn, &z->neighbour[side], z->enter, SPL_CONTENT_TEXT,
					  text, (uint32_t)len) == 0) {
		*w = (struct walker){0};
		z->walkers--;
		return;
	}
	w->vx = -w->vx;
	w->vy = -w->vy;
	w->x += w->vx;
	w->y += w->vy;
}

static void walk(struct spl_turn *turn, struct zone *z, struct walker *w)
{
	w->x += w->vx;
	w->y += w->vy;
	if (w->x >= SIZE)
		leave(turn, z, w, 0);
	else if (w->x < 0)
		leave(turn, z, w, 1);
	else if (w->y < 0)
		leave(turn, z, w, 2);
	else if (w->y >= SIZE)
		leave(turn, z, w, 3);
}

static int on_beat(struct spl_turn *turn, void *state, const struct spl_tick *tick)
{
	struct zone *z = state;
	char text[16];
	int len;

	z->ticks++;
	for (int i = 0; i < WALKERS; i++)
		if (z->walker[i].number)
			walk(turn, z, &z->walker[i]);
	len = snprintf(text, sizeof(text), "%u", z->walkers);
	(void)spl_publish(turn, &z->here, z->crowded, SPL_CONTENT_TEXT, text, (uint32_t)len);
	return SPL_DONE; /* a publish that did not start is made up for by the next */
}

static int on_initialize(struct spl_turn *turn, void *state)
{
	struct zone *z = state;
	int rc;

	z->enter = spl_packet_key("enter", 5);
	z->crowded = spl_packet_key("crowded", 7);
	rc = spl_timer_start(turn, "beat", 4, TICK_NS, on_beat, NULL, NULL);
	return rc == 0 ? SPL_DONE : SPL_FAIL(spl_error_of(rc));
}

static bool is_inside(int v)
{
	return v >= 0 && v < SIZE;
}

static int on_enter(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	struct zone *z = state;
	struct walker w;
	char text[TEXT_MAX];

	if (!text_of(text, msg) ||
	    sscanf(text, "%ld %d %d %d %d", &w.number, &w.x, &w.y, &w.vx, &w.vy) != 5 ||
	    w.number <= 0 || !is_inside(w.x) || !is_inside(w.y) || w.vx <= -SIZE || w.vx >= SIZE ||
	    w.vy <= -SIZE || w.vy >= SIZE)
		return SPL_FAIL(SPL_E_PROTOCOL_ERROR);
	for (int i = 0; i < WALKERS; i++) {
		if (z->walker[i].number)
			continue;
		z->walker[i] = w;
		z->walkers++;
		if (msg->is_request && spl_reply(turn, SPL_CONTENT_TEXT, "in", 2) != 0)
			return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
		return SPL_DONE;
	}
	return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
}

static int on_look(struct spl_turn *turn, void *state, const struct spl_message *msg)
{
	const struct zone *z = state;
	char text[TEXT_MAX];
	int len = snprintf(text, sizeof(text),
			   "ticks %u walkers %u east %u west %u north %u south %u", z->ticks,
			   z->walkers, z->crowd[0], z->crowd[1], z->crowd[2], z->crowd[3]);

	if (spl_reply(turn, SPL_CONTENT_TEXT, text, (uint32_t)len) != 0)
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"enter", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_enter},
	{"look", SPL_TAKES_REQUEST, on_look},
};

SPL_STAGE_EXPORT = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "zone",
	.version = "1.0",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct zone),
	.handlers = handlers,
	.handler_count = sizeof(handlers) / sizeof(handlers[0]),
	.on_configure = on_configure,
	.on_initialize = on_initialize,
};
