/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills an appliance whose handlers hold their turns (hold.c) until credit stops it.
 *
 *	flood ADDRESS SPOTS
 *
 * Creates sink, knot, pumps and holders, ties the knot, and sends to all holders at full rate.
 * When nothing has been taken for two seconds it prints `blocked sent=N`. While blocked, it asks
 *the authority again and again: those answers have to come. After sink was closed (by somebody
 *else) and a line came on standard input, it sends what waits, asks each holder what it heard, and
 *prints `heard=N`. Exit 0 when every message was heard once and in order.
 */
#include <spotlane/client.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/wire.h"

#define WINDOW	   2048
#define BLOCKED_NS 2000000000
#define ASK_NS	   200000000

struct flood {
	struct spl_client *client;
	struct spl_client_target *spot;
	uint64_t *sequence, *accepted; /* of each holder */
	uint32_t spots, begun, open, created, failed, answers, asked;
	uint64_t sent, heard, seed, last_ns;
};

static struct flood *self;

static void fail(const char *what, int kind)
{
	if (self->failed++ < 10)
		fprintf(stderr, "flood: %s: %s\n", what, spl_error_name(kind));
}

static void on_created(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		       void *ctx)
{
	self->open--;
	if (r->kind == SPL_OK)
		self->created++;
	else
		fail("create", r->kind);
}

static void create(const char *id, size_t bytes)
{
	struct spl_client_creation n = {.id = id, .id_bytes = (uint32_t)bytes, .type = "hold"};

	while (spl_client_create(self->client, &n, on_created, NULL, NULL) < 0)
		(void)spl_client_poll(self->client, 100);
	self->open++;
	while (self->open >= 256)
		(void)spl_client_poll(self->client, 100);
}

static void drain(void)
{
	while (self->open)
		(void)spl_client_poll(self->client, 100);
}

static void make_spots(void)
{
	char id[32];

	create("sink", 4);
	create("knot", 4);
	for (int i = 0; i < 16; i++)
		create(id, (size_t)snprintf(id, sizeof(id), "pump-%02d", i));
	for (uint32_t i = 0; i < self->spots; i++)
		create(self->spot[i].id.b, self->spot[i].id.len);
	drain();
}

static void on_sent(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		    void *ctx)
{
	self->open--;
	if (r->kind != SPL_OK) {
		fail("send", r->kind);
		return;
	}
	self->sent++;
	self->last_ns = clock_boot_ns();
	++*(uint64_t *)ctx;
}

static void send_one(void)
{
	uint32_t i = self->begun++;
	uint8_t payload[256] = {0};
	struct spl_client_message m = {
		.packet = spl_packet_key("say", 3),
		.payload = payload,
		.payload_bytes = sizeof(payload),
	};

	if (i >= self->spots) { /* each once, then at random */
		self->seed = self->seed * 6364136223846793005u + 1;
		i = (uint32_t)(self->seed >> 33) % self->spots;
	}
	m.target = &self->spot[i];
	wire_store_u64(payload, ++self->sequence[i]);
	if (spl_client_send(self->client, &m, on_sent, &self->accepted[i], NULL) < 0)
		fail("send", SPL_E_INTERNAL_FAILURE);
	else
		self->open++;
}

static uint64_t tied;

static void tie(void)
{
	struct spl_client_message m = {.packet = spl_packet_key("tie", 3)};
	struct spl_client_target sink;

	(void)spl_client_target_set(&sink, "sink", 4);
	m.target = &sink;
	if (spl_client_send(self->client, &m, on_sent, &tied, NULL) < 0)
		fail("tie", SPL_E_INTERNAL_FAILURE);
	else
		self->open++;
	drain();
	self->sent--; /* not to a holder */
}

static void on_found(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		     void *ctx)
{
	if (r->kind == SPL_OK && r->found)
		self->answers++;
	else
		fail("find", r->kind);
}

static bool line_came(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[64];

	return poll(&p, 1, 0) > 0 && read(STDIN_FILENO, line, sizeof(line)) >= 0;
}

/* Sends until credit stops us, then asks the authority until a line comes. */
static void flood(void)
{
	uint64_t asked_ns = 0;
	bool told = false;

	while (self->begun < self->spots) { /* one for each, so that every one of them holds */
		if (self->open < WINDOW)
			send_one();
		else
			(void)spl_client_poll(self->client, 10);
	}
	drain();
	if (spl_client_flush(self->client, 30000) < 0)
		fail("first round", SPL_E_DEADLINE_EXCEEDED);
	self->last_ns = clock_boot_ns();
	while (!line_came()) {
		while (self->open < WINDOW)
			send_one();
		(void)spl_client_poll(self->client, 10);
		if (clock_boot_ns() - self->last_ns < BLOCKED_NS)
			continue;
		if (!told) {
			printf("blocked sent=%lu\n", self->sent);
			fflush(stdout);
			told = true;
		}
		if (clock_boot_ns() - asked_ns < ASK_NS)
			continue;
		asked_ns = clock_boot_ns();
		self->asked++;
		if (spl_client_find(self->client, "knot", 4, 0, on_found, NULL, NULL) < 0)
			fail("find", SPL_E_INTERNAL_FAILURE);
	}
}

static void on_heard(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		     void *ctx)
{
	const uint64_t i = (uint64_t)((uint64_t *)ctx - self->accepted);
	const uint8_t *p = r->payload;

	self->open--;
	if (r->kind != SPL_OK || r->payload_bytes != 24) {
		fail("heard", r->kind);
		return;
	}
	self->heard += wire_load_u64(p);
	if (wire_load_u64(p) != self->accepted[i] || wire_load_u64(p + 8) != self->sequence[i] ||
	    wire_load_u64(p + 16) != 0) {
		fprintf(stderr, "flood: spot %lu heard %lu of %lu, highest %lu of %lu, %lu late\n",
			i, wire_load_u64(p), self->accepted[i], wire_load_u64(p + 8),
			self->sequence[i], wire_load_u64(p + 16));
		self->failed++;
	}
}

static void ask_all(void)
{
	for (uint32_t i = 0; i < self->spots; i++) {
		struct spl_client_message m = {.target = &self->spot[i],
					       .packet = spl_packet_key("heard", 5)};

		while (self->open >= 256)
			(void)spl_client_poll(self->client, 100);
		if (spl_client_request(self->client, &m, on_heard, &self->accepted[i], NULL) < 0)
			fail("heard", SPL_E_INTERNAL_FAILURE);
		else
			self->open++;
	}
	drain();
}

static int set_up(const char *address)
{
	struct spl_client_config conf;
	char id[32];

	spl_client_config_init(&conf);
	conf.address = address;
	conf.name = "flood";
	conf.send_timeout_us = INT64_C(600000000);
	if (!self->spot || !self->sequence || !self->accepted)
		return -1;
	for (uint32_t i = 0; i < self->spots; i++)
		(void)spl_client_target_set(&self->spot[i], id,
					    (size_t)snprintf(id, sizeof(id), "hold-%u", i));
	if (spl_client_open(&conf, &self->client) < 0)
		return -1;
	return spl_client_connect(self->client, 20000);
}

int main(int argc, char **argv)
{
	struct flood f = {.seed = 42};

	self = &f;
	f.spots = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	if (f.spots == 0) {
		fprintf(stderr, "usage: flood ADDRESS SPOTS\n");
		return 2;
	}
	f.spot = calloc(f.spots, sizeof(*f.spot));
	f.sequence = calloc(f.spots, sizeof(*f.sequence));
	f.accepted = calloc(f.spots, sizeof(*f.accepted));
	if (set_up(argv[1]) < 0) {
		fprintf(stderr, "flood: cannot connect\n");
		return 1;
	}
	make_spots();
	tie();
	printf("created=%u\n", f.created);
	fflush(stdout);
	flood();
	drain();
	if (spl_client_flush(f.client, 60000) < 0)
		fail("flush", SPL_E_DEADLINE_EXCEEDED);
	ask_all();
	if (f.answers != f.asked)
		fail("answers of the authority while blocked", SPL_E_UNAVAILABLE);
	printf("sent=%lu heard=%lu answers=%u failed=%u\n", f.sent, f.heard, f.answers, f.failed);
	(void)spl_client_close(f.client, 2000);
	free(f.spot);
	free(f.sequence);
	free(f.accepted);
	return f.failed || f.heard != f.sent;
}
