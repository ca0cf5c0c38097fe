/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a client: calls, routes and one link, tied together. include/spotlane/client.h is what
 * users see. Everything runs on the thread that has the client.
 *
 * Way of a message: submit.c checks and encodes it; place.c finds the lane of its Spot, asking the
 * authority first when it must, and hands it to the link or lets it wait; answer.c matches REPLY
 * messages with calls; client.c polls and runs callbacks.
 */
#ifndef SPL_CLIENT_CLIENT_H
#define SPL_CLIENT_CLIENT_H

#include <spotlane/client.h>

#include "client/calls.h"
#include "client/link.h"
#include "client/routes.h"
#include "common/wire_msg.h"

/* The configuration, checked and in the units of the inside. */
struct client_config {
	struct link_config link;
	uint64_t send_ns, request_ns, create_ns;
	uint32_t calls_max, waiters_max, routes_max, message_max, socket_bytes;
	uint64_t waiting_bytes;
	struct spl_name name;
	uint64_t channel[SPL_CHANNELS_MAX]; /* keys */
	uint32_t channels;
};

#define CLIENT_QUESTIONS 64 /* that the authority gets at a time */

struct spl_client {
	struct client_config conf;
	struct net net;
	struct link link;
	struct calls calls;
	struct routes routes;
	struct call_queue room[SPL_LANES_MAX][WIRE_CLASSES]; /* calls that wait for the link */
	struct route_queue questions; /* routes whose question waits for its turn */
	uint32_t asking;	      /* questions under way */
	uint32_t pending;	      /* the user's calls whose callback has not run */
	uint32_t waiting;	      /* of them, waiting for a route or for room */
	uint64_t waiting_bytes;
	uint64_t now_ns; /* of this pass */
	bool in_poll;	 /* callbacks may run: no second poll */
	bool is_closing; /* takes no new call */
	uint64_t late_replies, resolves, route_hits, messages_sent, messages_received;
};

/* config.c: checks and converts; -EINVAL. */
int client_config_read(struct client_config *out, const struct spl_client_config *in);

/* config.c: a timeout of the interface in nanoseconds, rounded up to milliseconds; 0 = illegal. */
uint64_t client_timeout_ns(int64_t timeout_us);

/* client.c: spl_client_open() with a net of the caller's, which the client then owns. */
int client_open(const struct spl_client_config *config, const struct net *net,
		struct spl_client **out);

/* place.c */

/* Sends a call to the lane of the Spot with its key and id, or lets it wait. Ends it when neither
 * is possible. */
void place_message(struct spl_client *c, struct call *call, const struct spl_name *id);
/* The same for a control message, which goes to lane 0. */
void place_publish(struct spl_client *c, struct call *call);
void place_control(struct spl_client *c, struct call *call);
/* Takes a WAITING call out of the queue it is in. */
void place_leave(struct spl_client *c, struct call *call);
/* The answer to a RESOLVE call (`error` SPL_OK and a route), or its failure. */
void place_resolved(struct spl_client *c, struct call *resolve, int error,
		    const struct wire_route *route);
/* Hands waiting calls to the link as long as it takes them. */
void place_run(struct spl_client *c);

/* answer.c */

/* A message from the node. Takes `msg`, which is NULL without memory. */
void answer_message(struct spl_client *c, const uint8_t *data, uint32_t len, struct buffer *msg);
/* Runs the callbacks of all calls that have ended, and returns how many. */
unsigned answer_run(struct spl_client *c);

/* submit.c: ends a call of the user, or a RESOLVE, with `result`; takes `answer`. */
void client_end(struct spl_client *c, struct call *call, int result, struct buffer *answer);
/* Ends every call that has not ended, and forgets every route. */
void client_end_all(struct spl_client *c, int result);
/* Ends the calls whose time is over. */
void client_expire(struct spl_client *c);

#endif
