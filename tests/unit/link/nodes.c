/* SPDX-License-Identifier: BSD-3-Clause */
/* See nodes.h. */
#include "nodes.h"

#include <stdlib.h>

uint64_t now;

static void fake_random(void *host, void *out, size_t n)
{
	struct node *x = host;

	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)t_rand_u64(&x->rand);
}

struct assoc_params params(const char *rid, uint64_t lifecycle)
{
	struct assoc_params p;

	assoc_params_default(&p);
	p.slots = 4;
	p.dials = 2;
	p.is_passive = true;
	p.lifecycle = lifecycle;
	p.lanes = 2;
	p.base_port = 4000;
	spl_name_set(&p.mesh, "mesh", 4);
	spl_name_set(&p.rid, rid, strlen(rid));
	return p;
}

void start(struct node *x, uint8_t number, const struct assoc_params *p)
{
	struct assoc_env env = {.host = x, .random = fake_random};

	memset(x, 0, sizeof(*x));
	x->rand.s = t_seed() + number;
	memset(x->addr.b, number, sizeof(x->addr.b));
	x->mem = aligned_alloc(64, assoc_bytes(p));
	x->a = assoc_init(x->mem, p, &env, now);
	CU_ASSERT_PTR_NOT_NULL_FATAL(x->a);
}

void stop(struct node *x)
{
	free(x->mem);
}

void events(struct node *x)
{
	struct assoc_event e;

	while (assoc_event(x->a, now, &e)) {
		if (e.type == ASSOC_UP) {
			x->ups++;
			x->last_up = e;
		} else if (e.type == ASSOC_DOWN) {
			x->downs++;
			x->last_down = e;
			if (!x->keeps_slots)
				assoc_release(x->a, e.slot);
		} else {
			x->refusals++;
			x->last_refusal = e;
		}
	}
}

/* Gives `to` a packet from `from`, and `from` the answer, checking the bound of answers. */
static struct assoc_result give(struct node *from, struct node *to, const uint8_t *p, uint32_t len)
{
	struct assoc_answer answer, back;
	struct assoc_result r = assoc_rx(to->a, &from->addr, p, len, now, &answer);

	CU_ASSERT(answer.len <= len);
	events(to);
	if (answer.len) {
		assoc_rx(from->a, &to->addr, answer.b, answer.len, now, &back);
		CU_ASSERT(back.len == 0);
		events(from);
	}
	return r;
}

static bool may_pass(const uint32_t *cut)
{
	return !cut || *cut == 0;
}

/* Everything that `x` has to send now goes to whichever of the nodes has the address. */
static void pump(struct node *x, struct node *const *nodes, uint32_t n, const uint32_t *cut)
{
	uint8_t out[WIRE_INIT_BYTES];
	struct assoc_addr to;
	uint32_t len;

	while ((len = assoc_tx(x->a, out, sizeof(out), &to, now)) > 0)
		for (uint32_t i = 0; i < n; i++)
			if (memcmp(to.b, nodes[i]->addr.b, sizeof(to.b)) == 0 && may_pass(cut))
				give(x, nodes[i], out, len);
	events(x);
}

/* Runs the nodes for `ns`; nothing passes while *cut is not 0. */
void run(struct node *const *nodes, uint32_t n, uint64_t ns, const uint32_t *cut)
{
	uint64_t until = now + ns;

	for (;;) {
		uint64_t next = ASSOC_NEVER;

		for (uint32_t i = 0; i < n; i++)
			pump(nodes[i], nodes, n, cut);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t t = assoc_next_timer(nodes[i]->a);

			next = t < next ? t : next;
		}
		if (next > until)
			break;
		now = next > now ? next : now;
	}
	now = until;
}

/* Two tables, the first connected to the second. */
struct node na, nb;
struct node *const pair[2] = {&na, &nb};

void connect_pair(void)
{
	struct assoc_params pa = params("rid-a", 10), pb = params("rid-b", 20);

	now = 1000 * SECOND;
	pa.is_passive = false;
	pa.base_port = 0;
	pa.lanes = 1;
	start(&na, 1, &pa);
	start(&nb, 2, &pb);
	CU_ASSERT_EQUAL(assoc_dial(na.a, &nb.addr, 0, now), 0);
	run(pair, 2, 10 * MS, NULL);
	CU_ASSERT_EQUAL_FATAL(na.ups, 1);
	CU_ASSERT_EQUAL_FATAL(nb.ups, 1);
}

void stop_pair(void)
{
	stop(&na);
	stop(&nb);
}
