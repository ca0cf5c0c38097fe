/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's life and its loop: receive, run what is due, callbacks, send. The client's thread;
 * nothing here blocks but the wait of the net.
 */
#include "client/client.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static void on_up(void *owner)
{
}

/* Everything under way ends once; what the link had is gone (S-DIR-9: nothing is sent again). */
static void on_down(void *owner)
{
	client_end_all(owner, SPL_E_UNAVAILABLE);
}

static void on_message(void *owner, const uint8_t *data, uint32_t len, struct buffer *msg)
{
	answer_message(owner, data, len, msg);
}

/* A RID and a lifecycle of this client alone: `<name>-<uuid>`. */
static int make_identity(struct client_config *conf, const struct net *net)
{
	char rid[64 + 1 + 37];
	uint8_t random[16];

	net->ops->random(net->arg, random, sizeof(random));
	memcpy(rid, conf->name.b, conf->name.len);
	rid[conf->name.len] = '-';
	spl_uuid4(random, rid + conf->name.len + 1);
	net->ops->random(net->arg, &conf->link.lifecycle, sizeof(conf->link.lifecycle));
	conf->link.lifecycle = (conf->link.lifecycle >> 1) | 1;
	return spl_name_set(&conf->link.rid, rid, strlen(rid));
}

int client_open(const struct spl_client_config *config, const struct net *net,
		struct spl_client **out)
{
	const struct link_events events = {.up = on_up, .down = on_down, .message = on_message};
	struct spl_client *c = calloc(1, sizeof(*c));
	struct link_events mine = events;
	uint64_t secret;
	int err = -ENOMEM;

	if (!c)
		goto fail;
	c->net = *net;
	for (unsigned i = 0; i < SPL_LANES_MAX; i++)
		for (unsigned j = 0; j < WIRE_CLASSES; j++)
			TAILQ_INIT(&c->room[i][j]);
	TAILQ_INIT(&c->questions);
	err = client_config_read(&c->conf, config);
	if (err == 0)
		err = make_identity(&c->conf, net);
	/* Every user's call may have a question of its own under way. */
	if (err == 0)
		err = calls_init(&c->calls, 2 * c->conf.calls_max);
	net->ops->random(net->arg, &secret, sizeof(secret));
	if (err == 0)
		err = routes_init(&c->routes, c->conf.routes_max, secret);
	mine.owner = c;
	if (err == 0)
		err = link_open(&c->link, &c->conf.link, net, &mine);
	if (err == 0) {
		c->now_ns = net->ops->now(net->arg);
		*out = c;
		return 0;
	}
	link_close(&c->link);
	routes_fini(&c->routes);
	calls_fini(&c->calls);
	free(c);
fail:
	net->ops->close(net->arg);
	return err;
}

int spl_client_open(const struct spl_client_config *config, struct spl_client **out)
{
	struct client_config checked;
	struct net net;
	int err;

	if (!config || !out)
		return -EINVAL;
	err = client_config_read(&checked, config);
	if (err == 0)
		err = udp_open(&net, checked.socket_bytes);
	return err < 0 ? err : client_open(config, &net, out);
}

/* One pass. Returns the calls that ended; `*busy` when there may be more to do at once. */
static unsigned pass(struct spl_client *c, bool *busy)
{
	unsigned ended;

	c->now_ns = c->net.ops->now(c->net.arg);
	*busy = link_receive(&c->link, c->now_ns);
	client_expire(c); /* before there may be room: what is late is never sent (S-LIM-6) */
	place_run(c);
	ended = answer_run(c);
	*busy |= link_transmit(&c->link, c->now_ns);
	if (!TAILQ_EMPTY(
		    &c->calls.ended)) /* begun and ended by callbacks, or by a loss just found */
		*busy = true;
	return ended;
}

static uint64_t next_timer(const struct spl_client *c)
{
	uint64_t link = link_next_timer(&c->link), calls = calls_next(&c->calls);

	return link < calls ? link : calls;
}

/* Passes until `done` says so or `until_ns` is there. 0, -ETIMEDOUT, or an error of the wait. */
static int run_until(struct spl_client *c, uint64_t until_ns,
		     bool (*done)(struct spl_client *c, void *arg, unsigned n), void *arg)
{
	uint64_t next;
	int err = 0;
	bool busy;

	if (c->in_poll)
		return -EBUSY;
	c->in_poll = true;
	for (;;) {
		if (done(c, arg, pass(c, &busy)))
			break;
		if (c->now_ns >= until_ns) {
			err = -ETIMEDOUT;
			break;
		}
		if (busy)
			continue;
		next = next_timer(c);
		if (until_ns < next)
			next = until_ns;
		if (next != UINT64_MAX)
			next = next > c->now_ns ? next - c->now_ns : 0;
		err = c->net.ops->wait(c->net.arg, link_is_blocked(&c->link), next);
		if (err < 0)
			break;
	}
	c->in_poll = false;
	return err;
}

static uint64_t until_of(struct spl_client *c, int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return c->net.ops->now(c->net.arg) + (uint64_t)timeout_ms * 1000000;
}

static bool any_ended(struct spl_client *c, void *arg, unsigned n)
{
	*(unsigned *)arg += n;
	return n > 0;
}

int spl_client_poll(struct spl_client *client, int timeout_ms)
{
	unsigned ended = 0;
	int err = run_until(client, until_of(client, timeout_ms), any_ended, &ended);

	return err == 0 || err == -ETIMEDOUT ? (int)ended : err;
}

static bool is_decided(struct spl_client *c, void *arg, unsigned n)
{
	return c->link.peer || c->link.refusal;
}

int spl_client_connect(struct spl_client *client, int timeout_ms)
{
	int err;

	if (client->in_poll)
		return -EBUSY;
	client->link.refusal = 0;
	link_dial(&client->link, client->net.ops->now(client->net.arg));
	err = run_until(client, until_of(client, timeout_ms), is_decided, NULL);
	return err == 0 && !client->link.peer ? -ECONNREFUSED : err;
}

bool spl_client_connected(const struct spl_client *client)
{
	return client->link.peer != NULL;
}

const char *spl_client_refusal(const struct spl_client *client)
{
	switch (client->link.refusal) {
#define SPL_X(num, sym, name, help) \
	case num: \
		return help;
		WIRE_REFUSALS(SPL_X)
#undef SPL_X
	default:
		return client->link.refusal ? "unknown reason" : "";
	}
}

int spl_client_fd(const struct spl_client *client)
{
	return client->net.ops->fd(client->net.arg);
}

int spl_client_timeout(const struct spl_client *client)
{
	const uint64_t now = client->net.ops->now(client->net.arg);
	uint64_t next = next_timer(client);

	if (!TAILQ_EMPTY(&client->calls.ended) || next <= now)
		return 0;
	if (link_is_blocked(&client->link))
		return 1;
	if (next == UINT64_MAX)
		return -1;
	next = (next - now + 999999) / 1000000;
	return next > INT_MAX ? INT_MAX : (int)next;
}

static bool has_ended(struct spl_client *c, void *arg, unsigned n)
{
	return !calls_known(&c->calls, *(const uint64_t *)arg);
}

int spl_client_wait(struct spl_client *client, uint64_t call)
{
	if (!calls_known(&client->calls, call))
		return client->in_poll ? -EBUSY : -ENOENT;
	return run_until(client, UINT64_MAX, has_ended, &call);
}

static bool is_flushed(struct spl_client *c, void *arg, unsigned n)
{
	return c->waiting == 0 && link_is_idle(&c->link);
}

int spl_client_flush(struct spl_client *client, int timeout_ms)
{
	return run_until(client, until_of(client, timeout_ms), is_flushed, NULL);
}

static bool is_gone(struct spl_client *c, void *arg, unsigned n)
{
	return link_hung_up(&c->link);
}

int spl_client_close(struct spl_client *client, int linger_ms)
{
	uint64_t until;

	if (!client)
		return 0;
	if (client->in_poll)
		return -EBUSY;
	client->is_closing = true;
	until = until_of(client, linger_ms);
	(void)run_until(client, until, is_flushed, NULL);
	client_end_all(client, SPL_E_SHUTTING_DOWN);
	client->in_poll = true; /* these are callbacks like all others */
	while (answer_run(client))
		;
	client->in_poll = false;
	link_hangup(&client->link, client->net.ops->now(client->net.arg));
	(void)run_until(client, until, is_gone, NULL);
	link_close(&client->link);
	routes_fini(&client->routes);
	calls_fini(&client->calls);
	client->net.ops->close(client->net.arg);
	free(client);
	return 0;
}

void spl_client_stats(const struct spl_client *client, struct spl_client_stats *out)
{
	struct flow_stats s;

	link_stats(&client->link, &s);
	*out = (struct spl_client_stats){
		.packets_sent = client->link.sent,
		.packets_received = client->link.received,
		.packets_retransmitted = s.retransmitted,
		.packets_dropped = client->link.dropped,
		.messages_sent = client->messages_sent,
		.messages_received = client->messages_received,
		.late_replies = client->late_replies,
		.resolves = client->resolves,
		.route_hits = client->route_hits,
		.connects = client->link.connects,
		.losses = client->link.losses,
		.calls_pending = client->pending,
		.calls_waiting = client->waiting,
		.waiting_bytes = client->waiting_bytes,
		.routes = client->routes.used,
	};
}
