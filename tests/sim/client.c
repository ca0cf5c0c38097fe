/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of the simulator: the real library over the bad network. Each begins calls at random
 * and keeps the books: every call ends once, replies are what was asked, and what was accepted was
 * handled, unless its owner died, was closed or was fenced.
 */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>

struct payload {
	uint32_t client, spot;
	uint64_t seq;
};

enum what { SEND, REQUEST, ASK, PUBLISH, CREATE, FIND, CLOSE };

struct sim_call {
	struct sim_client *c;
	enum what what;
	unsigned spot, ends;
	uint64_t seq;
};

static void ended(struct spl_client *cl, uint64_t handle, const struct spl_client_result *r,
		  void *ctx)
{
	struct sim_call *k = ctx;
	struct sim_client *c = k->c;
	struct payload p;

	c->ended++;
	sim->counts.ended[r->kind != SPL_OK]++;
	if (k->ends++)
		sim_problem(sim, "a call ended twice");
	if (r->kind != SPL_OK && (r->kind < 0 || r->kind >= SPL_ERROR_COUNT))
		sim_problem(sim, "a call ended with kind %d", r->kind);
	if (r->kind == SPL_OK && (k->what == SEND || k->what == REQUEST || k->what == ASK))
		c->accepted[k->spot]++;
	if (r->kind == SPL_OK && k->what == REQUEST) {
		if (r->payload_bytes == sizeof(p))
			memcpy(&p, r->payload, sizeof(p));
		if (r->payload_bytes != sizeof(p) || p.seq != k->seq || p.client != c->index ||
		    p.spot != k->spot)
			sim_problem(sim, "a reply belongs to another request");
	}
	if (k->what == CREATE && r->kind == SPL_OK && sim->spot[k->spot].target.instance)
		sim_problem(sim, "an Instance Spot was created");
	if (r->kind == SPL_OK && k->what == CREATE && r->ref) {
		c->ref[k->spot] = *r->ref;
		c->has_ref[k->spot] = true;
	}
	if (k->what == CLOSE)
		c->has_ref[k->spot] = false;
	free(k);
}

static struct sim_call *begin(struct sim_client *c, enum what what, unsigned spot)
{
	struct sim_call *k = calloc(1, sizeof(*k));

	if (!k)
		abort();
	*k = (struct sim_call){.c = c, .what = what, .spot = spot};
	return k;
}

static void started(struct sim_client *c, struct sim_call *k, int rc)
{
	if (rc == 0)
		c->begun++;
	else
		free(k);
	if (rc != 0 && rc != -ENOBUFS)
		sim_problem(sim, "a call is refused: %d", rc);
}

static void message(struct world *w, struct sim_client *c, unsigned spot, enum what what)
{
	struct sim_call *k = begin(c, what, spot);
	struct payload p = {c->index, spot, ++c->next_seq[spot]};
	const char *packet = what == ASK ? "ask" : "put";
	struct spl_client_message m = {.target = &w->spot[spot].target,
				       .packet = spl_packet_key(packet, 3),
				       .payload = &p,
				       .payload_bytes = sizeof(p),
				       .timeout_us = 3000000};

	k->seq = p.seq;
	if (what == SEND) {
		w->counts.sends++;
		m.timeout_us = 0;
		started(c, k, spl_client_send(c->c, &m, ended, k, NULL));
	} else {
		w->counts.requests++;
		started(c, k, spl_client_request(c->c, &m, ended, k, NULL));
	}
}

static void publish(struct world *w, struct sim_client *c, unsigned spot)
{
	struct sim_call *k = begin(c, PUBLISH, spot);
	struct sim_news news = {SIM_SPOTS + c->index, spot, 0, ++c->published};
	struct spl_topic topic;
	struct spl_client_message m = {.topic = &topic,
				       .packet = spl_packet_key("news", 4),
				       .payload = &news,
				       .payload_bytes = sizeof(news)};

	if (spl_topic_set(&topic, SIM_CHANNEL, strlen(SIM_CHANNEL), w->spot[spot].id,
			  strlen(w->spot[spot].id)))
		abort();
	w->counts.publishes++;
	started(c, k, spl_client_publish(c->c, &m, ended, k, NULL));
}

static void create(struct world *w, struct sim_client *c, unsigned spot)
{
	static const char *const how[] = {"", "", "", "", "refuse", "fail"};
	const char *request = how[t_rand_below(&w->rand, T_COUNT(how))];
	struct spl_client_creation m = {.id = w->spot[spot].id,
					.id_bytes = (uint32_t)strlen(w->spot[spot].id),
					.type = "sim",
					.request = request,
					.request_bytes = (uint32_t)strlen(request),
					.timeout_us = 5000000};
	struct sim_call *k = begin(c, CREATE, spot);

	if (w->is_ending)
		m.request_bytes = 0;
	if (w->spot[spot].target.instance)
		m.type = SIM_TWIN; /* which must not work */
	w->counts.creates++;
	started(c, k, spl_client_create(c->c, &m, ended, k, NULL));
}

static void close_one(struct world *w, struct sim_client *c, unsigned spot)
{
	struct sim_call *k;

	if (!c->has_ref[spot])
		return;
	k = begin(c, CLOSE, spot);
	w->counts.closes++;
	w->may_lose = true;
	started(c, k, spl_client_close_spot(c->c, &c->ref[spot], 5000000, ended, k, NULL));
}

static void find(struct world *w, struct sim_client *c, unsigned spot)
{
	struct sim_call *k = begin(c, FIND, spot);

	w->counts.finds++;
	started(c, k,
		spl_client_find(c->c, w->spot[spot].id, strlen(w->spot[spot].id), 5000000, ended, k,
				NULL));
}

static void work(struct world *w, struct sim_client *c)
{
	unsigned spot = t_rand_below(&w->rand, w->plan.spots);

	if (c->begun - c->ended > 200)
		return;
	if (sim_chance(w, w->plan.create))
		create(w, c, spot);
	else if (sim_chance(w, w->plan.close))
		close_one(w, c, spot);
	else if (sim_chance(w, 300))
		find(w, c, spot);
	else if (sim_chance(w, 1000))
		publish(w, c, spot);
	else if (sim_chance(w, 6000))
		for (unsigned n = t_rand_below(&w->rand, 8) + 1; n > 0; n--)
			message(w, c, spot,
				sim_chance(w, 6000)   ? SEND
				: sim_chance(w, 9000) ? REQUEST
						      : ASK);
}

void sim_clients_open(struct world *w)
{
	struct net net = {&sim_net_ops, NULL};
	static const char *const channels[] = {SIM_CHANNEL};
	struct spl_client_config conf;

	for (unsigned i = 0; i < w->plan.spots; i++) {
		snprintf(w->spot[i].id, sizeof(w->spot[i].id), "spot-%u", i);
		spl_client_target_set(&w->spot[i].target, w->spot[i].id, strlen(w->spot[i].id));
		if (i % 3 == 1)
			spl_client_target_set_instance(&w->spot[i].target, SIM_TWIN);
	}
	for (unsigned i = 0; i < w->plan.clients; i++) {
		char name[16];

		spl_client_config_init(&conf);
		snprintf(name, sizeof(name), "c%u", i);
		conf.address = "10.0.0.1";
		conf.udp_base = w->port->local.udp_base;
		conf.name = name;
		conf.message_max = 65536;
		conf.channels = channels;
		conf.channels_n = 1;
		net.arg = &w->client[i];
		w->client[i].index = i;
		if (client_open(&conf, &net, &w->client[i].c)) {
			fprintf(stderr, "sim: no client\n");
			abort();
		}
		if (spl_client_connect(w->client[i].c, 0) == 0)
			abort(); /* nobody can have answered yet */
	}
}

void sim_clients_step(struct world *w)
{
	for (unsigned i = 0; i < w->plan.clients; i++) {
		struct sim_client *c = &w->client[i];

		if (sim_chance(w, 3000) && !w->is_ending)
			continue;
		if (!w->is_ending && spl_client_connected(c->c))
			work(w, c);
		spl_client_poll(c->c, 0);
	}
}

bool sim_clients_idle(const struct world *w)
{
	for (unsigned i = 0; i < w->plan.clients; i++) {
		struct spl_client_stats s;

		spl_client_stats(w->client[i].c, &s);
		if (w->client[i].begun != w->client[i].ended || s.calls_pending ||
		    spl_client_flush(w->client[i].c, 0) != 0)
			return false;
	}
	return true;
}

static void books(struct world *w, struct sim_client *c)
{
	if (c->begun != c->ended)
		sim_problem(w, "client %u: %llu calls begun, %llu ended", c->index,
			    (unsigned long long)c->begun, (unsigned long long)c->ended);
	for (unsigned i = 0; i < w->plan.spots; i++) {
		uint64_t handled = w->spot[i].handled[c->index];

		if (handled > c->next_seq[i])
			sim_problem(w, "%s handled more of client %u than it sent", w->spot[i].id,
				    c->index);
		if (handled + sim_node_refused(w) < c->accepted[i] && !w->may_lose)
			sim_problem(w, "%s handled %llu of client %u, accepted were %llu",
				    w->spot[i].id, (unsigned long long)handled, c->index,
				    (unsigned long long)c->accepted[i]);
	}
}

void sim_clients_close(struct world *w)
{
	for (unsigned i = 0; i < w->plan.clients; i++) {
		spl_client_close(w->client[i].c, 0);
		w->client[i].c = NULL;
		books(w, &w->client[i]);
	}
}
