/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a message goes, and when: the lane of its Spot from the route cache or from the authority,
 * then the link as long as it has room (S-ADDR-1, S-LIM-5, S-LIM-6). Calls wait in order: those to
 * one Spot behind its question, those to one lane behind each other. So the messages of this client
 * to one Spot never overtake each other. The client's thread.
 */
#include "client/client.h"

#include <errno.h>
#include <string.h>

/* Puts a call at the end of a queue. Bookkeeping of what waits is of the user's calls only: the
 * client's own questions are bounded by those who ask. */
static void join(struct spl_client *c, struct call *call, struct call_queue *q, enum call_state how)
{
	TAILQ_INSERT_TAIL(q, call, link);
	call->state = (uint8_t)how;
	if (call->kind != CALL_RESOLVE) {
		c->waiting++;
		c->waiting_bytes += call->out->len;
	}
}

/* Takes a call out of the queue in which it waits. */
static void leave(struct spl_client *c, struct call *call)
{
	struct call_queue *q = call->state == CALL_ASKING ? &call->route->waiting
							  : &c->room[call->lane][call->cls];

	TAILQ_REMOVE(q, call, link);
	call->state = CALL_NEW;
	if (call->kind != CALL_RESOLVE) {
		c->waiting--;
		c->waiting_bytes -= call->out->len;
	}
}

/* A message may wait when there is a place for it; one of any size may wait alone (S-LIM-9). */
static bool may_wait(const struct spl_client *c, const struct call *call)
{
	if (call->kind == CALL_RESOLVE)
		return true; /* bounded by those who ask */
	return c->waiting < c->conf.waiters_max &&
	       (c->waiting == 0 || c->waiting_bytes + call->out->len <= c->conf.waiting_bytes);
}

/* Kind of error for what link_send() said. */
static int kind_of(int err)
{
	switch (err) {
	case -EMSGSIZE:
		return SPL_E_PROTOCOL_ERROR; /* the node takes less than we do (S-MSG-6) */
	case -ENOMEM:
		return SPL_E_CAPACITY_EXCEEDED;
	default:
		return SPL_E_UNAVAILABLE;
	}
}

/* The time that is left goes into the message at the last moment (S-DIR-6). */
static void put_budget(const struct spl_client *c, struct call *call)
{
	uint64_t us = call->deadline_ns > c->now_ns ? (call->deadline_ns - c->now_ns) / 1000 : 0;

	if (us == 0)
		us = 1;
	wire_store_u32(call->out->b + WIRE_MSG_BUDGET, us > UINT32_MAX ? UINT32_MAX : (uint32_t)us);
}

/* Ends a call that the link will not take. */
static void fail(struct spl_client *c, struct call *call, int kind)
{
	if (call->kind == CALL_RESOLVE)
		place_resolved(c, call, kind, NULL);
	else
		client_end(c, call, kind, NULL);
}

/* Tries the link with a call that may be QUEUED. False when it has to wait. */
static bool try_send(struct spl_client *c, struct call *call, uint32_t lane, enum wire_class cls)
{
	bool one_way = call->kind == CALL_SEND || call->kind == CALL_PUBLISH;
	int err;

	if (!one_way)
		put_budget(c, call);
	err = link_send(&c->link, lane, cls, call->out);
	if (err == -EAGAIN)
		return false;
	if (call->state == CALL_QUEUED)
		leave(c, call);
	if (err < 0) {
		fail(c, call, kind_of(err));
		return true;
	}
	call->out = NULL; /* the link's */
	call->state = CALL_SENT;
	c->messages_sent++;
	if (one_way)
		client_end(c, call, SPL_OK, NULL);
	else
		calls_due(&c->calls, call, call->deadline_ns);
	return true;
}

/* Sends a NEW call, or lets it wait for room. */
static void send_or_wait(struct spl_client *c, struct call *call, uint32_t lane,
			 enum wire_class cls)
{
	struct call_queue *q = &c->room[lane][cls];
	uint64_t due;

	if (TAILQ_EMPTY(q) && try_send(c, call, lane, cls))
		return;
	if (!may_wait(c, call)) {
		fail(c, call, SPL_E_DEADLINE_EXCEEDED);
		return;
	}
	call->lane = (uint8_t)lane;
	call->cls = (uint8_t)cls;
	join(c, call, q, CALL_QUEUED);
	if (call->kind == CALL_REQUEST) { /* S-DIR-8 */
		due = c->now_ns + c->conf.send_ns;
		calls_due(&c->calls, call, due < call->deadline_ns ? due : call->deadline_ns);
	}
}

/* Asks the authority as often as it may be asked at a time. */
static void ask(struct spl_client *c)
{
	struct route *route;
	struct call *call;

	while (c->asking < CLIENT_QUESTIONS && (route = TAILQ_FIRST(&c->questions)) != NULL) {
		call = calls_add(&c->calls, CALL_RESOLVE, c->now_ns + c->conf.request_ns);
		if (!call)
			return; /* cannot be: there are as many slots for questions as for calls */
		TAILQ_REMOVE(&c->questions, route, age);
		c->asking++;
		c->resolves++;
		call->deadline_ns = call->due_ns;
		call->route = route;
		call->out = route->question;
		route->question = NULL;
		route->resolve = call->id;
		route->asked_ns = c->now_ns;
		wire_store_u64(call->out->b + WIRE_MSG_CORRELATION, call->id);
		send_or_wait(c, call, 0, WIRE_INFRA);
	}
}

/* Puts the question where the Spot of `route` is into the queue. False without memory. */
static bool want(struct spl_client *c, struct route *route, const struct spl_name *id)
{
	const struct wire_msg h = {.kind = SPL_MSG_RESOLVE, .error = SPL_OK, .correlation = 1};
	const size_t room = 1u + id->len;

	route->question = buffer_new(WIRE_MSG_BYTES + room);
	if (!route->question)
		return false;
	wire_msg_put(route->question->b, &h);
	(void)wire_id_put(route->question->b + WIRE_MSG_BYTES, room,
			  (struct pack_bytes){id->b, id->len});
	routes_ask(&c->routes, route);
	TAILQ_INSERT_TAIL(&c->questions, route, age);
	return true;
}

/* Lets the call wait for the route, asking when nobody has. */
static void wait_for_route(struct spl_client *c, struct call *call, struct route *route,
			   const struct spl_name *id)
{
	call->route = route;
	join(c, call, &route->waiting, CALL_ASKING);
	if (route->is_asked)
		return;
	if (want(c, route, id))
		ask(c);
	else
		client_end(c, call, SPL_E_CAPACITY_EXCEEDED, NULL);
}

void place_message(struct spl_client *c, struct call *call, const struct spl_name *id)
{
	struct route *route;

	if (!c->link.peer) {
		client_end(c, call, SPL_E_UNAVAILABLE, NULL);
		return;
	}
	route = routes_get(&c->routes, &call->key);
	if (!route) {
		client_end(c, call, SPL_E_CAPACITY_EXCEEDED, NULL);
		return;
	}
	if (TAILQ_EMPTY(&route->waiting) && routes_usable(&c->routes, route, c->now_ns)) {
		c->route_hits++;
		send_or_wait(c, call, route->lane, WIRE_APP);
	} else if (may_wait(c, call)) {
		wait_for_route(c, call, route, id);
	} else {
		client_end(c, call, SPL_E_DEADLINE_EXCEEDED, NULL);
		if (!route->is_asked)
			routes_drop(&c->routes, route);
	}
}

/* To the lane of the topic, which keeps the order of what this client publishes under it. */
void place_publish(struct spl_client *c, struct call *call)
{
	if (c->link.peer)
		send_or_wait(c, call, spl_key_lane(&call->key, c->link.peer->lanes), WIRE_APP);
	else
		client_end(c, call, SPL_E_UNAVAILABLE, NULL);
}

void place_control(struct spl_client *c, struct call *call)
{
	if (c->link.peer)
		send_or_wait(c, call, 0, WIRE_INFRA);
	else
		client_end(c, call, SPL_E_UNAVAILABLE, NULL);
}

void place_leave(struct spl_client *c, struct call *call)
{
	struct route *route = call->state == CALL_ASKING ? call->route : NULL;
	struct call *resolve;

	leave(c, call);
	if (!route || !TAILQ_EMPTY(&route->waiting))
		return;
	/* Nobody asks any more: the question ends, a late answer finds nothing. */
	if (route->question)
		TAILQ_REMOVE(&c->questions, route, age);
	resolve = calls_find(&c->calls, route->resolve);
	routes_answer(&c->routes, route, 0, 0, 0);
	if (resolve)
		client_end(c, resolve, SPL_CANCELLED, NULL);
}

/* Until when the answer may be used, and its lane. 0 = not at all, with the kind of error. */
static uint64_t judge(const struct spl_client *c, const struct wire_route *r, uint64_t asked_ns,
		      int *error)
{
	*error = SPL_E_UNAVAILABLE;
	if (r->tag == WIRE_ROUTE_NONE)
		*error = SPL_E_NOT_FOUND;
	if (r->tag != WIRE_ROUTE_READY || !c->link.peer)
		return 0;
	/* Another node, or an earlier life of this one: there is no association with it. */
	if (r->lifecycle != c->link.peer->lifecycle || r->lanes != c->link.peer->lanes)
		return 0;
	*error = SPL_OK;
	return asked_ns + (uint64_t)r->valid_ms * 1000000;
}

void place_resolved(struct spl_client *c, struct call *resolve, int error,
		    const struct wire_route *answer)
{
	struct call_queue waiting = TAILQ_HEAD_INITIALIZER(waiting);
	struct route *route = resolve->route;
	uint64_t until_ns = 0;
	struct call *call;
	uint32_t lane = 0;

	client_end(c, resolve, SPL_OK, NULL);
	if (error == SPL_OK)
		until_ns = judge(c, answer, route->asked_ns, &error);
	if (error == SPL_OK)
		lane = spl_key_lane(&route->key, answer->lanes);
	while ((call = TAILQ_FIRST(&route->waiting)) != NULL) {
		leave(c, call);
		TAILQ_INSERT_TAIL(&waiting, call, link);
	}
	routes_answer(&c->routes, route, until_ns, (uint16_t)lane, answer ? answer->generation : 0);
	while ((call = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, call, link);
		call->route = NULL;
		if (error == SPL_OK)
			send_or_wait(c, call, lane, WIRE_APP);
		else if (error == SPL_E_NOT_FOUND && call->is_instance && c->link.peer)
			send_or_wait(c, call, spl_key_lane(&call->key, c->link.peer->lanes),
				     WIRE_APP); /* its node starts it (S-ACT-1) */
		else
			client_end(c, call, error, NULL);
	}
	ask(c);
}

void place_run(struct spl_client *c)
{
	const uint32_t lanes = c->link.peer ? c->link.peer->lanes : 0;
	struct call *call;

	ask(c);
	for (uint32_t lane = 0; lane < lanes; lane++) {
		for (unsigned cls = 0; cls < WIRE_CLASSES; cls++) {
			struct call_queue *q = &c->room[lane][cls];

			while ((call = TAILQ_FIRST(q)) != NULL) {
				if (!try_send(c, call, lane, (enum wire_class)cls))
					break;
			}
		}
	}
}
