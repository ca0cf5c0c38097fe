/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of fuzz_link: two association tables; the input carries, spoils, repeats and invents
 * packets. */
#include "dataplane/link/assoc.h"
#include "tests/fuzz/fuzz_link.h"

#define SLOTS 3

struct side {
	struct assoc *a;
	void *mem;
	struct assoc_addr addr;
	uint64_t random;
	uint8_t last[WIRE_INIT_BYTES]; /* what it sent last */
	uint32_t last_len;
	bool is_up[SLOTS];
	bool is_down[SLOTS]; /* told, and not released yet */
};

static uint64_t now;

static void fake_random(void *host, void *out, size_t n)
{
	struct side *s = host;

	for (size_t i = 0; i < n; i++) {
		s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL;
		((uint8_t *)out)[i] = (uint8_t)(s->random >> 56);
	}
}

static void start(struct side *s, uint8_t number)
{
	struct assoc_env env = {.host = s, .random = fake_random};
	struct assoc_params p;
	char rid[2] = {'r', (char)('0' + number)};

	memset(s, 0, sizeof(*s));
	s->random = number;
	s->addr.b[0] = number;
	assoc_params_default(&p);
	p.slots = SLOTS;
	p.dials = 1;
	p.is_passive = true;
	p.lifecycle = 5;
	p.answers_burst = 20;
	spl_name_set(&p.mesh, "m", 1);
	spl_name_set(&p.rid, rid, 2);
	s->mem = aligned_alloc(64, assoc_bytes(&p));
	s->a = assoc_init(s->mem, &p, &env, now);
	FUZZ_CHECK(s->a);
}

/* Events alternate UP and DOWN for each slot; a peer stays readable until its release. */
static void events(struct side *s, bool release)
{
	struct assoc_event e;
	uint32_t n = 0;

	while (assoc_event(s->a, now, &e)) {
		FUZZ_CHECK(++n < 100);
		if (e.type == ASSOC_REFUSED) {
			FUZZ_CHECK(e.dial == 0);
			continue;
		}
		FUZZ_CHECK(e.slot < SLOTS && e.peer && wire_id_slot(e.peer->rx_id) == e.slot);
		FUZZ_CHECK(s->is_up[e.slot] == (e.type == ASSOC_DOWN));
		s->is_up[e.slot] = e.type == ASSOC_UP;
		s->is_down[e.slot] = e.type == ASSOC_DOWN && !release;
		if (e.type == ASSOC_DOWN && release)
			assoc_release(s->a, e.slot);
	}
	FUZZ_CHECK(assoc_count(s->a) <= SLOTS && assoc_closing(s->a) <= SLOTS);
}

static void give(struct side *from, struct side *to, const uint8_t *p, uint32_t len, int depth)
{
	/* exactly the packet, for the sanitizer */
	uint8_t *copy = malloc(len ? len : 1);
	struct assoc_answer answer;
	struct assoc_result r;

	memcpy(copy, p, len);
	r = assoc_rx(to->a, &from->addr, copy, len, now, &answer);
	FUZZ_CHECK(answer.len <= len);
	FUZZ_CHECK(r.drop == ASSOC_NO_DROP ? r.use < SPL_USE_COUNT : r.drop < SPL_DROP_COUNT);
	free(copy);
	memcpy(to->last, answer.b, answer.len);
	to->last_len = answer.len ? answer.len : to->last_len;
	if (answer.len && depth > 0)
		give(to, from, answer.b, answer.len, depth - 1);
}

static void pump(struct side *from, struct side *to, bool deliver)
{
	uint8_t out[WIRE_INIT_BYTES];
	struct assoc_addr addr;
	uint32_t len, n = 0;

	while ((len = assoc_tx(from->a, out, sizeof(out), &addr, now)) > 0) {
		FUZZ_CHECK(len <= sizeof(out) && ++n < 100);
		memcpy(from->last, out, len);
		from->last_len = len;
		if (deliver)
			give(from, to, out, len, 1);
	}
}

/* The last packet of `from`, with some bytes changed. */
static void spoil(struct side *from, struct side *to, struct fuzz_in *in)
{
	uint8_t p[WIRE_INIT_BYTES];
	uint32_t n = fuzz_u8(in) % 4, len = from->last_len;

	memcpy(p, from->last, len);
	for (uint32_t i = 0; len > 0 && i < n; i++) {
		uint32_t at = fuzz_u16(in) % len;

		p[at] ^= fuzz_u8(in);
	}
	give(from, to, p, len, n == 0);
}

static void invent(struct side *from, struct side *to, struct fuzz_in *in)
{
	uint32_t len = fuzz_u16(in) % (WIRE_INIT_BYTES + 2);

	if (len > in->left)
		len = (uint32_t)in->left;
	give(from, to, in->p, len, 0);
	in->p += len;
	in->left -= len;
}

static void one_op(struct side *s, struct fuzz_in *in)
{
	uint8_t op = fuzz_u8(in);
	struct side *from = &s[op & 1], *to = &s[!(op & 1)];

	switch (op >> 1 & 15) {
	case 0:
		assoc_dial(from->a, &to->addr, op & 0x40 ? 5 : 0, now);
		break;
	case 1:
	case 2:
		pump(from, to, true);
		break;
	case 3:
		pump(from, to, false);
		break;
	case 4:
	case 5:
		spoil(from, to, in);
		break;
	case 6:
		invent(from, to, in);
		break;
	case 7:
		assoc_hangup(from->a, 0, now);
		break;
	case 8:
		assoc_close(from->a, op >> 6, WIRE_CLOSE_NORMAL, now);
		break;
	case 9:
		events(from, false);
		break;
	case 10:
		for (uint32_t i = 0; i < SLOTS; i++)
			if (from->is_down[i]) {
				from->is_down[i] = false;
				assoc_release(from->a, i);
			}
		break;
	case 11:
		if (op & 0x80)
			assoc_shutdown(from->a, now);
		break;
	case 12:
		now += (uint64_t)fuzz_u8(in) * 100000000;
		break;
	default:
		events(from, true);
		break;
	}
}

void fuzz_link_assoc(struct fuzz_in *in)
{
	struct side s[2];

	now = 1000000000000;
	start(&s[0], 0);
	start(&s[1], 1);
	for (int ops = 0; in->left > 0 && ops < 300; ops++)
		one_op(s, in);
	for (int i = 0; i < 2; i++) {
		pump(&s[i], &s[!i], true);
		events(&s[i], true);
		assoc_next_timer(s[i].a);
	}
	free(s[0].mem);
	free(s[1].mem);
}
