/* SPDX-License-Identifier: BSD-3-Clause */
/* A chat client, to be copied: an ordinary process that talks to a room of the `room` stage.
 *
 *	client-chat ADDRESS ROOM [MESH]
 *
 * Each line typed is said to the room; `/roll` asks who has spoken, `/quit` or the end of input
 * leaves. One thread: poll(2) on the keyboard and on the client's socket.
 */
#include <spotlane/client.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "examples/room.h"

struct chat {
	struct spl_client *client;
	struct spl_client_target room;
	uint64_t say, roll; /* packet names, hashed once */
	uint64_t sender, sequence;
	bool is_done;
};

static uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static void store_u64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

/* The end of a say: what the room answered, or why it did not. */
static void on_said(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		    void *ctx)
{
	if (r->kind != SPL_OK)
		printf("! %s\n", spl_error_name(r->kind));
	else if (r->payload_bytes >= ROOM_SAY_BYTES)
		printf("  heard %lu\n", (unsigned long)load_u64((const uint8_t *)r->payload + 8));
}

static void on_roll(struct spl_client *client, uint64_t call, const struct spl_client_result *r,
		    void *ctx)
{
	const struct chat *chat = ctx;
	const uint8_t *row = r->payload;

	if (r->kind != SPL_OK) {
		printf("! %s\n", spl_error_name(r->kind));
		return;
	}
	for (uint32_t n = r->payload_bytes / ROOM_ROW_BYTES; n > 0; n--, row += ROOM_ROW_BYTES) {
		printf("  %016lx said %lu%s\n", (unsigned long)load_u64(row),
		       (unsigned long)load_u64(row + 8),
		       load_u64(row) == chat->sender ? " (you)" : "");
	}
}

static int say(struct chat *chat, const char *text, size_t bytes)
{
	uint8_t payload[ROOM_SAY_BYTES + 1024];
	struct spl_client_message m = {
		.target = &chat->room,
		.packet = chat->say,
		.content = SPL_CONTENT_RAW,
		.payload = payload,
		.payload_bytes = (uint32_t)(ROOM_SAY_BYTES + bytes),
	};

	store_u64(payload, chat->sender);
	store_u64(payload + 8, ++chat->sequence);
	memcpy(payload + ROOM_SAY_BYTES, text, bytes);
	return spl_client_request(chat->client, &m, on_said, chat, NULL);
}

static void take_line(struct chat *chat)
{
	struct spl_client_message roll = {.target = &chat->room, .packet = chat->roll};
	char line[1024];
	int err = 0;

	if (!fgets(line, sizeof(line), stdin) || strcmp(line, "/quit\n") == 0)
		chat->is_done = true;
	else if (strcmp(line, "/roll\n") == 0)
		err = spl_client_request(chat->client, &roll, on_roll, chat, NULL);
	else if (line[0] != '\n')
		err = say(chat, line, strcspn(line, "\n"));
	if (err < 0)
		printf("! %s\n", strerror(-err));
}

static int enter(struct chat *chat, const char *room)
{
	struct spl_client_creation creation = {
		.id = room, .id_bytes = (uint32_t)strlen(room), .type = ROOM_TYPE};
	struct spl_client_answer answer;
	int err = spl_client_create_wait(chat->client, &creation, &answer);

	if (err < 0) {
		fprintf(stderr, "client-chat: %s\n", strerror(-err));
		return err;
	}
	if (answer.kind != SPL_OK || answer.created == SPL_CLIENT_REJECTED) {
		fprintf(stderr, "client-chat: no room %s: %s\n", room,
			answer.kind == SPL_OK ? "rejected" : spl_error_name(answer.kind));
		err = -EPERM;
	} else {
		printf("%s %s\n", answer.created == SPL_CLIENT_CREATED ? "opened" : "entered",
		       room);
	}
	spl_client_answer_free(&answer);
	return err;
}

static int connect_to(struct chat *chat, const char *address, const char *mesh)
{
	struct spl_client_config config;
	int err;

	spl_client_config_init(&config);
	config.address = address;
	config.name = "chat";
	if (mesh)
		config.mesh = mesh;
	err = spl_client_open(&config, &chat->client);
	if (err == 0)
		err = spl_client_connect(chat->client, 5000);
	if (err < 0)
		fprintf(stderr, "client-chat: %s: %s %s\n", address, strerror(-err),
			chat->client ? spl_client_refusal(chat->client) : "");
	return err;
}

int main(int argc, char **argv)
{
	struct chat chat = {.sender = (uint64_t)getpid() << 32 | (uint32_t)gethostid()};
	struct pollfd fd[2];

	if (argc < 3 || argc > 4 ||
	    spl_client_target_set(&chat.room, argv[2], strlen(argv[2])) < 0) {
		fprintf(stderr, "usage: client-chat ADDRESS ROOM [MESH]\n");
		return 2;
	}
	chat.say = spl_packet_key(ROOM_SAY, strlen(ROOM_SAY));
	chat.roll = spl_packet_key(ROOM_ROLL, strlen(ROOM_ROLL));
	setvbuf(stdin, NULL, _IONBF, 0); /* so that poll() sees what fgets() has not taken */
	if (connect_to(&chat, argv[1], argc == 4 ? argv[3] : NULL) < 0 ||
	    enter(&chat, argv[2]) < 0) {
		spl_client_close(chat.client, 0);
		return 1;
	}
	fd[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	fd[1] = (struct pollfd){.fd = spl_client_fd(chat.client), .events = POLLIN};
	while (!chat.is_done) {
		if (poll(fd, 2, spl_client_timeout(chat.client)) < 0 && errno != EINTR)
			break;
		if (fd[0].revents)
			take_line(&chat);
		(void)spl_client_poll(chat.client, 0);
		fflush(stdout);
	}
	return spl_client_close(chat.client, 2000) < 0;
}
