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
	uint64_t number; /* among the incarnations of its id */
	struct spl_target other;
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

static int on_create(struct spl_turn *t, void *state, const struct spl_message *request)
{
	struct state *s = state;
	unsigned n;
	struct sim_spot *spot = spot_of(t, &n);

	check_lease(spot);
	if (request->payload_bytes == 6 && memcmp(request->payload, "refuse", 6) == 0)
		return SPL_REJECTED;
	if (request->payload_bytes == 4 && memcmp(request->payload, "fail", 4) == 0)
		return SPL_FAIL(SPL_E_INTERNAL_FAILURE);
	if (spot->live)
		sim_problem(sim, "%s is made while another incarnation lives", spot->id);
	s->spot = n + 1;
	s->number = ++spot->newest;
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

static int on_initialize(struct spl_turn *t, void *state)
{
	const struct state *s = state;

	check_start(s);
	sim->spot[s->spot - 1].live = 1;
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
	s->inside--;
	return SPL_DONE;
}

static int on_peeked(struct spl_turn *t, void *state, const struct spl_result *r, void *ctx)
{
	struct state *s = state;

	check_newest(s);
	if (ctx) {
		s->yielded--;
		check_lease(&sim->spot[s->spot - 1]); /* a turn of its own */
		if (s->inside)
			sim_problem(sim, "a turn that had yielded goes on beside another callback");
	} else {
		s->inside--;
	}
	if (r->kind != SPL_OK && r->kind != SPL_E_UNAVAILABLE && r->kind != SPL_E_NOT_FOUND &&
	    r->kind != SPL_E_DEADLINE_EXCEEDED && r->kind != SPL_E_CAPACITY_EXCEEDED &&
	    r->kind != SPL_E_SHUTTING_DOWN)
		sim_problem(sim, "a call between Spots ended with %s", spl_error_name(r->kind));
	spl_reply(t, SPL_CONTENT_RAW, &r->kind, sizeof(r->kind));
	return SPL_DONE;
}

/* Counts as a message too; asks another Spot before it answers, by turns under HOLD and YIELD. */
static int on_ask(struct spl_turn *t, void *state, const struct spl_message *m)
{
	struct state *s = state;
	unsigned other = (s->spot * 5 + 3) % sim->plan.spots;
	bool yields = s->asks++ & 1;
	struct spl_call *call;

	check_start(s);
	if (s->inside++)
		sim_problem(sim, "two callbacks of one Spot at once");
	note(s, m);
	if (other + 1 == s->spot ||
	    spl_target_set(&s->other, sim->spot[other].id, strlen(sim->spot[other].id)) ||
	    spl_request(t, &s->other, spl_packet_key("peek", 4), SPL_CONTENT_RAW, NULL, 0, 200,
			yields ? SPL_WAIT_YIELD : SPL_WAIT_HOLD, &call)) {
		s->inside--;
		return SPL_FAIL(SPL_E_CAPACITY_EXCEEDED);
	}
	if (spl_call_then(t, call, on_peeked, yields ? s : NULL))
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
	return SPL_DONE;
}

static const struct spl_handler handlers[] = {
	{"put", SPL_TAKES_SEND | SPL_TAKES_REQUEST, on_put},
	{"ask", SPL_TAKES_REQUEST, on_ask},
	{"peek", SPL_TAKES_REQUEST, on_peek},
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
	.on_create = on_create,
	.on_initialize = on_initialize,
	.on_closing = on_closing,
};
