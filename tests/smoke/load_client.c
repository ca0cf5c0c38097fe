/* SPDX-License-Identifier: BSD-3-Clause */
/* One client of the load program: makes its share of the rooms, talks to random ones until it is
 * told to stop, waits for all that is under way, then asks its share of the rooms what they heard.
 * What is lost, doubled or out of order is judged from the sequences that the rooms and this client
 * saw, never from counters.
 */
#include "tests/smoke/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/wire.h"
#include "examples/room.h"

#define ROLL_NS	    (10 * UINT64_C(1000000000)) /* the last messages are heard by then */
#define CONNECT_MS  20000
#define PAYLOAD_MAX 65536

struct talk; /* one call under way */

struct load {
	struct load_shared *s;
	struct load_counts *count;
	const struct load_options *o;
	uint32_t me;
	struct spl_client *client;
	struct spl_client_target *room;
	uint64_t *sequence, *replied; /* of each room */
	uint8_t *is_gone;	      /* survivors: the room has to be made again */
	uint64_t say, roll, seed, rolls_until_ns;
	struct talk *talks, *free;
	uint8_t payload[PAYLOAD_MAX];
};

struct talk {
	struct load *l;
	struct talk *next;
	uint32_t room;
	uint64_t sequence, began_ns;
	bool is_open;
};

static uint32_t draw(struct load *l, uint32_t n)
{
	uint64_t z = (l->seed += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (uint32_t)(((z ^ z >> 31) >> 32) * n >> 32);
}

static struct talk *begin_talk(struct load *l, uint32_t room)
{
	struct talk *t = l->free;

	l->free = t->next;
	*t = (struct talk){.l = l, .room = room, .began_ns = clock_boot_ns(), .is_open = true};
	l->count->open++;
	return t;
}

static void end_talk(struct talk *t)
{
	struct load *l = t->l;

	if (!t->is_open) {
		l->count->twice++;
		return;
	}
	t->is_open = false;
	t->next = l->free;
	l->free = t;
	l->count->open--;
}

/* A call that could not even begin. */
static void refused(struct talk *t, const char *what, int err)
{
	fprintf(stderr, "client %u: %s: %s\n", t->l->me, what, strerror(-err));
	t->l->count->failed++;
	end_talk(t);
}

static void note_error(struct talk *t, int kind)
{
	struct load *l = t->l;

	l->count->errors++;
	if (kind >= 0 && kind < SPL_ERROR_COUNT)
		l->count->by_kind[kind]++;
	if (kind == SPL_E_NOT_FOUND || kind == SPL_E_UNAVAILABLE)
		l->is_gone[t->room] = true;
}

static void on_created(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		       void *ctx)
{
	struct talk *t = ctx;
	struct load *l = t->l;

	if (r->kind != SPL_OK) {
		note_error(t, r->kind);
	} else {
		l->is_gone[t->room] = false;
		*(r->created == SPL_CLIENT_CREATED ? &l->count->created : &l->count->existing) += 1;
	}
	end_talk(t);
}

static void create(struct load *l, uint32_t room)
{
	struct spl_client_creation n = {
		.id = l->room[room].id.b,
		.id_bytes = l->room[room].id.len,
		.type = l->o->type,
	};
	struct talk *t = begin_talk(l, room);
	int err;

	if (l->o->plant && room == 0) {
		n.request = l->o->plant;
		n.request_bytes = (uint32_t)strlen(l->o->plant);
	}
	err = spl_client_create(l->client, &n, on_created, t, NULL);

	if (err < 0)
		refused(t, "create", err);
}

static void accepted(struct talk *t)
{
	const struct load *l = t->l;

	l->s->accepted[(uint64_t)l->me * l->o->spots + t->room]++;
}

static void on_sent(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		    void *ctx)
{
	struct talk *t = ctx;

	if (r->kind == SPL_OK)
		accepted(t);
	else
		note_error(t, r->kind);
	end_talk(t);
}

static void on_reply(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		     void *ctx)
{
	struct talk *t = ctx;
	struct load *l = t->l;

	if (r->kind != SPL_OK) {
		note_error(t, r->kind);
	} else if (r->payload_bytes != ROOM_SAY_BYTES ||
		   wire_load_u64(r->payload) != l->s->sender[l->me] ||
		   wire_load_u64((const uint8_t *)r->payload + 8) != t->sequence) {
		l->count->wrong++;
	} else {
		load_latency(l->count, clock_boot_ns() - t->began_ns);
		l->count->replies++;
		accepted(t);
		if (t->sequence < l->replied[t->room])
			l->count->swapped++;
		l->replied[t->room] = t->sequence;
	}
	end_talk(t);
}

static void speak(struct load *l)
{
	const uint32_t room = draw(l, l->o->spots);
	const bool is_request = draw(l, 100) < l->o->request_percent;
	struct spl_client_message m = {
		.target = &l->room[room],
		.packet = l->say,
		.content = SPL_CONTENT_RAW,
		.payload = l->payload,
		.payload_bytes = l->o->bytes,
	};
	struct talk *t;
	int err;

	if (l->is_gone[room] && l->o->is_survivor) {
		create(l, room);
		return;
	}
	t = begin_talk(l, room);
	t->sequence = ++l->sequence[room];
	wire_store_u64(l->payload, l->s->sender[l->me]);
	wire_store_u64(l->payload + 8, t->sequence);
	if (is_request) {
		l->count->requests++;
		err = spl_client_request(l->client, &m, on_reply, t, NULL);
	} else {
		l->count->sends++;
		err = spl_client_send(l->client, &m, on_sent, t, NULL);
	}
	if (err < 0)
		refused(t, "say", err);
}

static void roll(struct load *l, uint32_t room);

/* What a room heard of one client. */
struct heard {
	uint64_t messages, twice, late;
};

static struct heard heard_of(const struct load *l, const uint8_t *rows, uint32_t n, uint32_t of)
{
	struct heard h = {0, 0, 0};

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *row = rows + (size_t)i * ROOM_ROW_BYTES;

		if (wire_load_u64(row) != l->s->sender[of])
			continue;
		h.messages = wire_load_u64(row + 8);
		h.twice = wire_load_u64(row + 24);
		h.late = wire_load_u64(row + 32);
	}
	return h;
}

/* How many messages of a client the room should have heard, and has not. */
static uint64_t missing(const struct load *l, uint32_t room, const struct heard *h, uint32_t of)
{
	const uint64_t want = l->s->accepted[(uint64_t)of * l->o->spots + room];

	return h->messages - h->twice < want ? want - (h->messages - h->twice) : 0;
}

static void on_roll(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		    void *ctx)
{
	const uint32_t n = r->payload_bytes / ROOM_ROW_BYTES;
	struct talk *t = ctx;
	struct load *l = t->l;
	struct heard h[LOAD_CLIENTS_MAX];
	uint64_t lost = 0;

	end_talk(t);
	if (r->kind != SPL_OK) {
		fprintf(stderr, "client %u: roll of room-%u: %s\n", l->me, t->room,
			spl_error_name(r->kind));
		l->count->failed++;
		return;
	}
	for (uint32_t of = 0; of < l->o->clients; of++) {
		h[of] = heard_of(l, r->payload, n, of);
		lost += missing(l, t->room, &h[of], of);
	}
	if (lost && clock_boot_ns() < l->rolls_until_ns) { /* on its way, perhaps: ask again */
		roll(l, t->room);
		return;
	}
	l->count->lost += lost;
	for (uint32_t of = 0; of < l->o->clients; of++) {
		l->count->heard += h[of].messages;
		l->count->duplicated += h[of].twice;
		l->count->reordered += h[of].late;
	}
}

static void roll(struct load *l, uint32_t room)
{
	struct spl_client_message m = {.target = &l->room[room], .packet = l->roll};
	struct talk *t = begin_talk(l, room);
	int err = spl_client_request(l->client, &m, on_roll, t, NULL);

	if (err < 0)
		refused(t, "roll", err);
}

static void poll_once(struct load *l, int timeout_ms)
{
	struct spl_client_stats st;

	(void)spl_client_poll(l->client, timeout_ms);
	spl_client_stats(l->client, &st);
	l->count->retransmitted = st.packets_retransmitted;
	l->count->connects = st.connects;
	l->count->losses = st.losses;
}

/* Does `step` for this client's share of the rooms, a window of them at a time. */
static void for_my_rooms(struct load *l, void (*step)(struct load *l, uint32_t room))
{
	uint32_t room = l->me;

	while (room < l->o->spots || l->count->open) {
		for (; room < l->o->spots && l->free; room += l->o->clients)
			step(l, room);
		poll_once(l, 100);
	}
}

/* Says that this client has reached `phase`, and waits until all have. */
static void meet(struct load *l, enum load_phase phase)
{
	l->count->phase = phase;
	while (l->s->may < phase)
		poll_once(l, 5);
}

static int set_up(struct load *l)
{
	struct spl_client_config conf;
	char id[32];
	int err;

	l->room = calloc(l->o->spots, sizeof(*l->room));
	l->sequence = calloc(l->o->spots, sizeof(*l->sequence));
	l->replied = calloc(l->o->spots, sizeof(*l->replied));
	l->is_gone = calloc(l->o->spots, 1);
	l->talks = calloc(l->o->window, sizeof(*l->talks));
	if (!l->room || !l->sequence || !l->replied || !l->is_gone || !l->talks)
		return -1;
	for (uint32_t i = 0; i < l->o->spots; i++)
		(void)spl_client_target_set(&l->room[i], id,
					    (size_t)snprintf(id, sizeof(id), "room-%u", i));
	for (uint32_t i = 0; i < l->o->window; i++) {
		l->talks[i].next = l->free;
		l->free = &l->talks[i];
	}
	spl_client_config_init(&conf);
	conf.address = l->o->address;
	conf.udp_base = l->o->udp_base;
	conf.mesh = l->o->mesh;
	conf.name = "load";
	conf.send_timeout_us = 30000000;
	conf.calls_max = l->o->window * 2;
	conf.waiters_max = l->o->window;
	err = spl_client_open(&conf, &l->client);
	if (err < 0) {
		fprintf(stderr, "client %u: open: %s\n", l->me, strerror(-err));
		return -1;
	}
	err = spl_client_connect(l->client, CONNECT_MS);
	if (err < 0)
		fprintf(stderr, "client %u: connect: %s %s\n", l->me, strerror(-err),
			spl_client_refusal(l->client));
	return err;
}

static void drive(struct load *l)
{
	while (!l->s->stop) {
		/* In small pieces, so that a burst goes out before the next is made. */
		for (uint32_t i = 0; i < 64 && l->free; i++)
			speak(l);
		poll_once(l, l->free ? 0 : 100);
		if (!spl_client_connected(l->client))
			poll_once(l, 20); /* all calls fail at once now */
	}
	while (l->count->open)
		poll_once(l, 100);
}

int load_client(struct load_shared *s, uint32_t me)
{
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		return 1;
	l->s = s;
	l->o = &s->o;
	l->count = &s->count[me];
	l->me = me;
	l->seed = s->o.seed * 1000003 + me;
	l->say = spl_packet_key(ROOM_SAY, strlen(ROOM_SAY));
	l->roll = spl_packet_key(ROOM_ROLL, strlen(ROOM_ROLL));
	memset(l->payload, 'x', sizeof(l->payload));
	if (set_up(l) < 0) {
		l->count->failed++;
		goto out;
	}
	for_my_rooms(l, create);
	meet(l, LOAD_CREATED);
	drive(l);
	if (spl_client_flush(l->client, 30000) < 0 && !s->o.is_survivor) {
		fprintf(stderr, "client %u: messages are not acknowledged\n", me);
		l->count->failed++;
	}
	meet(l, LOAD_DRAINED);
	l->rolls_until_ns = clock_boot_ns() + ROLL_NS;
	if (!s->o.no_roll)
		for_my_rooms(l, roll);
	meet(l, LOAD_DONE);
out:
	(void)spl_client_close(l->client, 2000);
	free(l->room);
	free(l->sequence);
	free(l->replied);
	free(l->is_gone);
	free(l->talks);
	me = l->count->failed != 0;
	free(l);
	return (int)me;
}
