/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are waited for: the asynchronous ones with a callback that copies the result. */
#include "client/client.h"

#include <errno.h>
#include <string.h>

struct waiter {
	struct spl_client_answer *answer;
	int err;
};

static void keep(struct spl_client *client, uint64_t call, const struct spl_client_result *result,
		 void *ctx)
{
	struct waiter *w = ctx;
	struct spl_client_answer *a = w->answer;

	memset(a, 0, sizeof(*a));
	a->kind = result->kind;
	a->content = result->content;
	a->created = result->created;
	a->found = result->found;
	a->closed = result->closed;
	a->has_ref = result->ref != NULL;
	if (result->ref)
		a->ref = *result->ref;
	if (!result->payload_bytes)
		return;
	a->payload = malloc(result->payload_bytes);
	if (!a->payload) {
		w->err = -ENOMEM;
		return;
	}
	memcpy(a->payload, result->payload, result->payload_bytes);
	a->payload_bytes = result->payload_bytes;
}

/* Waits for a call that was begun with keep(); `err` is what its beginning said. */
static int finish(struct spl_client *c, int err, uint64_t id, struct waiter *w)
{
	struct call *call;

	if (err == 0)
		err = spl_client_wait(c, id);
	call = calls_known(&c->calls, id);
	if (err < 0 && call) {
		call->fn = NULL; /* `w` is gone before its callback would run */
		(void)spl_client_cancel(c, id);
	}
	return err < 0 ? err : w->err;
}

int spl_client_request_wait(struct spl_client *client, const struct spl_client_message *message,
			    struct spl_client_answer *answer)
{
	struct waiter w = {.answer = answer};
	uint64_t id = 0;
	int err;

	if (!answer)
		return -EINVAL;
	if (client->in_poll)
		return -EBUSY;
	err = spl_client_request(client, message, keep, &w, &id);
	return finish(client, err, id, &w);
}

int spl_client_create_wait(struct spl_client *client, const struct spl_client_creation *creation,
			   struct spl_client_answer *answer)
{
	struct waiter w = {.answer = answer};
	uint64_t id = 0;
	int err;

	if (!answer)
		return -EINVAL;
	if (client->in_poll)
		return -EBUSY;
	err = spl_client_create(client, creation, keep, &w, &id);
	return finish(client, err, id, &w);
}

int spl_client_find_wait(struct spl_client *client, const void *id_bytes, size_t bytes,
			 struct spl_client_answer *answer)
{
	struct waiter w = {.answer = answer};
	uint64_t id = 0;
	int err;

	if (!answer)
		return -EINVAL;
	if (client->in_poll)
		return -EBUSY;
	err = spl_client_find(client, id_bytes, bytes, 0, keep, &w, &id);
	return finish(client, err, id, &w);
}

int spl_client_close_spot_wait(struct spl_client *client, const struct spl_spot_ref *ref,
			       struct spl_client_answer *answer)
{
	struct waiter w = {.answer = answer};
	uint64_t id = 0;
	int err;

	if (!answer)
		return -EINVAL;
	if (client->in_poll)
		return -EBUSY;
	err = spl_client_close_spot(client, ref, 0, keep, &w, &id);
	return finish(client, err, id, &w);
}

void spl_client_answer_free(struct spl_client_answer *answer)
{
	free(answer->payload);
	answer->payload = NULL;
	answer->payload_bytes = 0;
}
