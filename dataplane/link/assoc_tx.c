/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: runs in the agent. What an association has to send by itself: INITs of dials,
 * beacons (A-LIVE-1), closes. One sweep over dials and slots when something is due; owns nothing.
 */
#include "dataplane/link/assoc_int.h"

/* `ns` and up to a quarter more or less, so that many dials do not keep step. */
static uint64_t jittered(struct assoc *a, uint64_t ns)
{
	uint16_t r;

	a->env.random(a->env.host, &r, sizeof(r));
	return ns - ns / 4 + ns / 2 * r / 65536;
}

static uint32_t dial_tx(struct assoc *a, uint32_t i, uint8_t *out, struct assoc_addr *to,
			uint64_t now)
{
	struct assoc_dial_state *d = &a->dials[i];
	struct wire_init m = {.want_lifecycle = d->want_lifecycle};

	assoc_due(a, &d->due, now + jittered(a, d->wait));
	d->wait = d->wait * 2 < a->p.dial_max_ns ? d->wait * 2 : a->p.dial_max_ns;
	if (d->slot == ASSOC_NONE) {
		d->slot = assoc_slot_take(a);
		if (d->slot == ASSOC_NONE)
			return 0; /* all slots wait for their release */
		a->slots[d->slot].peer.dial = i;
		a->env.random(a->env.host, a->slots[d->slot].nonce, WIRE_NONCE_BYTES);
	}
	memcpy(m.nonce, a->slots[d->slot].nonce, sizeof(m.nonce));
	if (d->cookie_tries > 0) {
		memcpy(m.cookie, d->cookie, sizeof(m.cookie));
		d->cookie_tries--;
	}
	assoc_self(a, a->slots[d->slot].peer.rx_id, &m.self);
	d->init_sent = now;
	*to = d->addr;
	return (uint32_t)wire_init_put(out, &m);
}

static uint32_t beacon_tx(struct assoc *a, struct assoc_slot *s, uint8_t *out, uint64_t now)
{
	if (s->is_probing) {
		s->is_repeated = true;
	} else {
		s->is_probing = true;
		s->is_repeated = false;
		s->beacon++; /* starts at 1 and does not wrap in the life of a machine */
		s->beacon_sent = now;
	}
	assoc_due(a, &s->due, now + a->p.beacon_again_ns);
	return (uint32_t)wire_beacon_put(out, s->peer.tx_id, s->beacon, s->peer.rx_id, false);
}

static uint32_t close_tx(struct assoc *a, uint32_t i, uint8_t *out, uint64_t now)
{
	struct assoc_slot *s = &a->slots[i];
	struct wire_close m = {.reason = s->close_reason, .self = s->peer.rx_id};
	uint64_t tx_id = s->peer.tx_id;

	if (--s->close_left == 0) {
		/* the last one; nobody waits for its answer */
		s->close_left = 1;
		assoc_closed(a, i);
	} else {
		assoc_due(a, &s->due, now + ASSOC_CLOSE_AGAIN_NS);
	}
	return (uint32_t)wire_close_pkt_put(out, tx_id, 0, &m);
}

static uint32_t slot_tx(struct assoc *a, uint32_t i, uint8_t *out, struct assoc_addr *to,
			uint64_t now)
{
	struct assoc_slot *s = &a->slots[i];

	*to = s->peer.addr;
	return s->state == ASSOC_S_UP ? beacon_tx(a, s, out, now) : close_tx(a, i, out, now);
}

/* One sweep from where the last call left off; 0 at its end. */
static uint32_t sweep(struct assoc *a, uint8_t *out, struct assoc_addr *to, uint64_t now)
{
	while (a->sweep < a->p.dials + a->p.slots) {
		uint32_t i = a->sweep++, n = 0;
		uint64_t due;

		if (i < a->p.dials) {
			due = a->dials[i].is_used ? a->dials[i].due : ASSOC_NEVER;
			if (due <= now)
				n = dial_tx(a, i, out, to, now);
		} else {
			i -= a->p.dials;
			due = a->slots[i].due;
			if (due <= now)
				n = slot_tx(a, i, out, to, now);
		}
		if (n > 0)
			return n;
		if (due > now && due < a->sweep_next)
			a->sweep_next = due;
	}
	a->sweep = 0;
	a->next_due = a->sweep_next;
	a->sweep_next = ASSOC_NEVER;
	return 0;
}

uint32_t assoc_tx(struct assoc *a, uint8_t *out, uint32_t room, struct assoc_addr *to,
		  uint64_t now_ns)
{
	uint32_t n = 0;

	if (room < WIRE_INIT_BYTES)
		return 0;
	/* Twice, for what became due behind the sweep. */
	for (int i = 0; i < 2 && n == 0 && a->next_due <= now_ns; i++)
		n = sweep(a, out, to, now_ns);
	return n;
}
