/* SPDX-License-Identifier: BSD-3-Clause */
/* The stage of the simulator: every callback checks what it may rely on: one at a time, one living
 * incarnation, and messages of one client in its order, each once.
 */
#include "tests/sim/world.h"

struct state {
	uint32_t spot; /* its number + 1 */
	uint32_t inside;
	uint32_t yielded; /* handlers that gave the gate back */
	uint32_t asks;
	uint64_t poked;	 /* number of its last poke */
	uint64_t number; /* among the incarnations of its id */
	uint64_t used;	 /* when its last work ended */
	struct spl_target other;

	uint64_t ticks, index, published;
	struct spl_topic topic[2]; /* its own, and that of the next Spot */
	struct {
		uint64_t incarnation, seq;
	} heard[2][SIM_SPOTS + SIM_CLIENTS];
};

/* Payload of a message: who sent it and its number among this client's for this Spot. */
struct payload {
	uint32_t client, spot;
	uint64_t seq;
};

static struct sim_spot *spot_of(struct spl_turn *t, unsigned *number)
{
	const struct spl_name *id = spl_spot_id(t);

	for (unsigned i = 0; i < sim->plan.spots; i++)
		if (strlen(sim->spot[i].id) == id->len &&
		    memcmp(sim->spot[i].id, id->b, id->len) == 0) {
			*number = i;
			return &sim->spot[i];
		}
	sim_problem(sim, "a handler runs for an id that nobody made");
	*number = 0;
	return &sim->spot[0];
}

/* Of each callback that starts something (A-LEASE-8): what began before may end (A-LEASE-7). */
static void check_lease(const struct sim_spot *spot)
{
	if (atomic_load(&sim->agent->sh.lease_deadline) <= sim->now)
		sim_problem(sim, "%s starts a turn after the lease", spot->id);
}

static bool is_twin(unsigned spot)
{
	return sim->spot[spot].target.instance != NULL;
}

static void born(struct state *s, unsigned n)
{
	struct sim_spot *spot = &sim->spot[n];

	/* Past the lease an eviction ends without on_closing; what is newer is still checked. */
	if (spot->live && (!is_twin(n) || sim->counts.fenced == spot->fenced))
		sim_problem(sim, "%s is made while another incarnation lives", spot->id);
	s->spot = n + 1;
	s->number = ++spot->newest;
}

static int on_create(struct spl_turn *t, void *state, const struct spl_message *request)
{
	struct state *s = state;
	unsigned n;
	struct sim_spot *spot = spot_of(t, &n);

	check_lease(spot);
	if (is_twin(n))
		sim_problem(sim, "%s was created, and is of messages to start", spot->id);
	if (request->payload_bytes == 6 && memcmp(request->payload, "refuse", 6) == 0)
		return SPL_REJECTED;
	if (request->payload_bytes == 4 && memcmp(request->payload, "fail", 4) == 0)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	born(s, n);
	return SPL_DONE;
}

/* Each callback but on_create begins with it. */
static void check_newest(const struct state *s)
{
	const struct sim_spot *spot = &sim->spot[s->spot - 1];

	if (s->number != spot->newest)
		sim_problem(sim, "%s runs after its next incarnation was made", spot->id);
}

static void check_start(const struct state *s)
{
	check_newest(s);
	check_lease(&sim->spot[s->spot - 1]);
}

/* From one origin under one topic, in its order and each once. */
static int on_news(struct spl_turn *t, void *state, const struct spl_message *m,
		   const struct spl_topic *topic)
{
	struct state *s = state;
	unsigned which = topic != &s->topic[0];
	struct sim_news n = {0};

	check_start(s);
	if (s->inside)
		sim_problem(sim, "two callbacks of one Spot at once");
	if (m->payload_bytes == sizeof(n))
		memcpy(&n, m->payload, sizeof(n));
	if (m->payload_bytes != sizeof(n) || n.spot >= SIM_SPOTS + SIM_CLIENTS ||
	    n.topic != (s->spot - 1 + which) % sim->plan.spots) {
		sim_problem(sim, "a Spot hears what it has not subscribed to");
		return SPL_DONE;
	}
	if (n.incarnation < s->heard[which][n.spot].incarnation ||
	    (n.incarnation == s->heard[which][n.spot].incarnation &&
	     n.seq <= s->heard[which][n.spot].seq))
		sim_problem(sim, "publishes of one origin are out of order or doubled");
	s->heard[which][n.spot].incarnation = n.incarnation;
	s->heard[which][n.spot].seq = n.seq;
	sim->counts.heard++;
	return SPL_DONE;
}

static int on_configure(struct spl_turn *t, void *state)
{
	struct state *s = state;
	unsigned n;

	(void)spot_of(t, &n);
	for (unsigned i = 0; i < 2; i++) {
		const char *id = sim->spot[(n + i) % sim->plan.spots].id;

		if (spl_topic_set(&s->topic[i], SIM_CHANNEL, strlen(SIM_CHANNEL), id, strlen(id)) ||
		    spl_subscribe(t, &s->topic[i], "news", on_news))
			return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	}
	return SPL_DONE;
}

/* The schedule's rules under each policy (S-TIMER-5..8). */
static void check_tick(const struct state *s, const struct spl_tick *k)
{
	bool nominal = k->period_ns != 30 * SIM_MS; /* that one waits after each tick */

	if (k->delivery_index != s->ticks + 1 || k->scheduled_index <= s->index ||
	    k->skipped != k->scheduled_index - s->index - 1)
		sim_problem(sim, "a tick with wrong indices");
	if (nominal && k->scheduled_ns != k->begun_ns + k->scheduled_index * k->period_ns)
		sim_problem(sim, "a tick is not on its schedule");
	if (!nominal && k->skipped)
		sim_problem(sim, "a tick was skipped that is due after the last one");
	if (k->started_ns < k->scheduled_ns)
		sim_problem(sim, "a tick came early");
}

static int on_tick(struct spl_turn *t, void *state, const struct spl_tick *k)
{
	struct state *s = state;
	struct sim_news news;

	check_start(s);
	if (s->inside)
		sim_problem(sim, "two callbacks of one Spot at once");
	check_tick(s, k);
	s->ticks++;
	s->index = k->scheduled_index;
	sim->counts.ticks++;
	if (sim->is_ending)
		return SPL_DONE; /* nothing new */
	news = (struct sim_news){s->spot - 1, s->spot - 1, s->number, ++s->published};
	if (spl_publish(t, &s->topic[0], spl_packet_key("news", 4), SPL_CONTENT_RAW, &news,
			sizeof(news)) == 0)
		sim->counts.publishes++;
	return SPL_DONE;
}

static int on_initialize(struct spl_turn *t, void *state)
{
	const struct state *s = state;
	struct spl_timer_options o = {.overrun = (enum spl_overrun)(s->spot % 3),
				      .catch_up_max = 3};

	check_start(s);
	sim->spot[s->spot - 1].live = 1;
	if (spl_timer_start(t, "beat", 4, (10 + 10 * (s->spot % 3)) * (int64_t)SIM_MS, on_tick, &o,
			    NULL))
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	return SPL_DONE;
}

/* An Instance Spot; some cannot be started, and what waits for them is dropped by name. */
static int twin_initialize(struct spl_turn *t, void *state)
{
	struct sim_spot *spot;
	unsigned n;

	spot = spot_of(t, &n);
	check_lease(spot);
	if (!is_twin(n))
		sim_problem(sim, "%s was started by a message, and is to be created", spot->id);
	if (sim_chance(sim, 1000) && !sim->is_ending)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	born(state, n);
	spot->live = 1;
	spot->fenced = sim->counts.fenced;
	sim->counts.started++;
	return SPL_DONE;
}

void sim_ended_quietly(struct world *w, const void *id, size_t bytes)
{
	for (unsigned i = 0; i < w->plan.spots; i++)
		if (!id || (strlen(w->spot[i].id) == bytes && !memcmp(w->spot[i].id, id, bytes)))
			w->spot[i].live = 0;
}

static int on_closing(struct spl_turn *t, void *state, enum spl_closing reason, uint64_t deadline)
{
	struct state *s = state;

	check_newest(s);
	if (s->inside || s->yielded)
		sim_problem(sim, "on_closing runs beside or before the end of another callback");
	sim->spot[s->spot - 1].live = 0;
	if (reason == SPL_CLOSING_IDLE_EVICTED) {
		if (!is_twin(s->spot - 1) || sim->now < s->used + SIM_IDLE_MS * SIM_MS)
			sim_problem(sim, "%s is evicted, and not idle", sim->spot[s->spot - 1].id);
		sim->counts.evicted++;
	}
	return SPL_DONE;
}

static void note(struct state *s, const struct spl_message *m)
{
	struct payload p;
	struct sim_spot *spot = &sim->spot[s->spot - 1];

	if (m->payload_bytes != sizeof(p)) {
		sim_problem(sim, "%s: a payload of %u bytes", spot->id, m->payload_bytes);
		return;
	}
	memcpy(&p, m->payload, sizeof(p));
	if (p.client >= SIM_CLIENTS || p.spot != s->spot - 1) {
		sim_problem(sim, "%s: a message for another Spot", spot->id);
		return;
	}
	if (p.seq <= spot->last[p.client])
		sim_problem(sim, "%s: client %u: message %llu after %llu", spot->id, p.client,
			    (unsigned long long)p.seq, (unsigned long long)spot->last[p.client]);
	spot->last[p.client] = p.seq;
	spot->handled[p.client]++;
	sim->counts.handled++;
	s->used = sim->now;
}

static int on_put(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct state *s = state;

	check_start(s);
	if (s->inside++)
		sim_problem(sim, "two callbacks of one Spot at once");
	note(s, m);
	if (m->is_request)
		spl_reply(t, SPL_CONTENT_RAW, m->payload, m->payload_bytes);
	if (is_twin(s->spot - 1) && sim_chance(sim, 100))
		spl_close_self(t); /* -EALREADY when it has before */
	s->inside--;
	return SPL_DONE;
}

static int on_peeked(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	struct state *s = state;

	check_newest(s);
	if (ctx) {
		s->yielded--;
		if (s->inside)
			sim_problem(sim, "a turn that had yielded goes on beside another callback");
	} else {
		s->inside--;
	}
	if (r->kind != SPL_OK && r->kind != SPL_E_UNAVAILABLE && r->kind != SPL_E_NOT_FOUND &&
	    r->kind != SPL_E_DEADLINE_EXCEEDED && r->kind != SPL_E_CAPACITY_EXCEEDED &&
	    r->kind != SPL_E_SHUTTING_DOWN && r->kind != SPL_E_INTERNAL_FAILURE &&
	    r->kind != SPL_E_TYPE_MISMATCH)
		sim_problem(sim, "a call between Spots ended with %s", spl_error_name(r->kind));
	spl_reply(t, SPL_CONTENT_RAW, &r->kind, sizeof(r->kind));
	s->used = sim->now;
	return SPL_DONE;
}

/* Asked for by a handler: made, there, or refused with a kind of creations. */
static int on_made(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	unsigned other = (((struct state *)state)->spot * 5 + 3) % sim->plan.spots;
	struct spl_created c;

	if (r->kind == SPL_OK) {
		if (spl_created_of(r, &c) || c.state == SPL_CREATED_REJECTED ||
		    c.id.len != strlen(sim->spot[other].id) ||
		    memcmp(c.id.b, sim->spot[other].id, c.id.len) != 0)
			sim_problem(sim, "a handler's creation ended with another's result");
		sim->counts.made[c.state == SPL_CREATED_NEW]++;
	}
	return on_peeked(t, state, r, ctx);
}

/* A send that was waited for has been admitted, or never is. */
static int on_told(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	struct state *s = state;

	if (r->kind == SPL_OK) {
		sim->counts.told++;
	} else if (sim->plan.lanes == 1) { /* elsewhere a forced end comes without the answer */
		if (sim->poke[s->poked % SIM_POKES] == SIM_POKED)
			sim_problem(sim, "a send that was delivered has failed");
		sim->poke[s->poked % SIM_POKES] = SIM_POKE_FAILED;
	}
	return on_peeked(t, state, r, ctx);
}

static int on_poke(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct state *s = state;
	uint64_t n;

	check_start(s);
	if (s->inside || m->is_request || m->payload_bytes != sizeof(n))
		sim_problem(sim, "a poke beside another callback, or not as it was sent");
	memcpy(&n, m->payload, sizeof(n));
	if (n + SIM_POKES <= sim->pokes)
		return SPL_DONE; /* too long ago to be remembered */
	if (sim->poke[n % SIM_POKES] == SIM_POKED)
		sim_problem(sim, "a send is delivered twice");
	if (sim->poke[n % SIM_POKES] == SIM_POKE_FAILED)
		sim_problem(sim, "a send is delivered that was given up");
	sim->poke[n % SIM_POKES] = SIM_POKED;
	s->used = sim->now;
	return SPL_DONE;
}

/* What a handler waits for before it answers. */
static int start_call(struct spl_turn *t, struct state *s, unsigned other, enum spl_wait wait,
		      struct spl_call **call, spl_result_fn *then)
{
	const char *id = sim->spot[other].id;
	const struct spl_creation c = {
		.type = "sim", .id = id, .id_bytes = strlen(id), .timeout_ms = 400};

	*then = on_peeked;
	if (s->asks % 8 == 6 && !is_twin(other)) {
		*then = on_made;
		return spl_create(t, &c, wait, call);
	}
	if (s->asks % 8 == 5) { /* under HOLD */
		*then = on_told;
		s->poked = sim->pokes++;
		sim->poke[s->poked % SIM_POKES] = 0;
		return spl_send_wait(t, &s->other, spl_packet_key("poke", 4), SPL_CONTENT_RAW,
				     &s->poked, sizeof(s->poked), 100, call);
	}
	return spl_request(t, &s->other, spl_packet_key("peek", 4), SPL_CONTENT_RAW, NULL, 0, 200,
			   wait, call);
}

/* Counts as a message too; asks another Spot before it answers, by turns under HOLD and YIELD. */
static int on_ask(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct state *s = state;
	unsigned other = (s->spot * 5 + 3) % sim->plan.spots;
	bool yields = s->asks++ & 1;
	struct spl_call *call;
	spl_result_fn then;

	check_start(s);
	if (s->inside++)
		sim_problem(sim, "two callbacks of one Spot at once");
	note(s, m);
	if (other + 1 == s->spot ||
	    spl_target_set(&s->other, sim->spot[other].id, strlen(sim->spot[other].id)) ||
	    spl_target_set_instance(&s->other, sim->spot[other].target.instance) ||
	    start_call(t, s, other, yields ? SPL_WAIT_YIELD : SPL_WAIT_HOLD, &call, &then)) {
		s->inside--;
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	}
	yields = yields && then != on_told;
	if (spl_call_then(t, call, then, yields ? s : NULL))
		sim_problem(sim, "spl_call_then refuses its own call");
	if (yields) {
		s->inside--;
		s->yielded++;
	}
	return SPL_SUSPENDED;
}

static int on_peek(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct state *s = state;

	check_start(s);
	if (s->inside)
		sim_problem(sim, "two callbacks of one Spot at once");
	spl_reply(t, SPL_CONTENT_RAW, &s->spot, sizeof(s->spot));
	s->used = sim->now;
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"put", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_put},
	{"ask", SPL_TAKES_REQUEST, on_ask},
	{"peek", SPL_TAKES_REQUEST, on_peek},
	{"poke", SPL_TAKES_SEND, on_poke},
};

const struct spl_stage sim_stage = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "sim",
	.kind = SPL_KIND_USER,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct state),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
	.on_configure = on_configure,
	.on_create = on_create,
	.on_initialize = on_initialize,
	.on_closing = on_closing,
};

const struct spl_stage sim_twin = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = SIM_TWIN,
	.kind = SPL_KIND_INSTANCE,
	.relocation = SPL_RELOCATION_DISABLED,
	.state_bytes = sizeof(struct state),
	.handlers = handlers,
	.handler_count = T_COUNT(handlers),
	.on_initialize = twin_initialize,
	.on_closing = on_closing,
};
