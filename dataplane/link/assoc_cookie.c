/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: runs in the agent. The stateless cookie and the bound of answers; owns nothing.
 *
 * Cookie: seconds u32, zero u32, SipHash u64 over address, nonce, id, lifecycle and the seconds.
 * The secret changes every 64 s, the last one stays good for cookies of its time.
 */
#include "dataplane/link/assoc_int.h"

#define SECOND 1000000000ULL

static void rotate(struct assoc *a, uint64_t now)
{
	uint64_t epoch = now / (ASSOC_SECRET_SECONDS * SECOND);

	while (a->secret_epoch != epoch) {
		/* both are fresh after a long pause */
		a->secret_epoch = epoch - a->secret_epoch > 2 ? epoch - 1 : a->secret_epoch + 1;
		a->env.random(a->env.host, &a->secret[a->secret_epoch & 1], sizeof(a->secret[0]));
	}
}

static uint64_t mac(const struct assoc *a, const struct assoc_addr *from, const struct wire_init *m,
		    uint32_t seconds)
{
	uint8_t b[sizeof(from->b) + WIRE_NONCE_BYTES + 20];
	uint8_t *p = b;

	memcpy(p, from->b, sizeof(from->b));
	p += sizeof(from->b);
	memcpy(p, m->nonce, WIRE_NONCE_BYTES);
	p += WIRE_NONCE_BYTES;
	wire_store_u64(p, m->self.id);
	wire_store_u64(p + 8, m->self.lifecycle);
	wire_store_u32(p + 16, seconds);
	return siphash(&a->secret[seconds / ASSOC_SECRET_SECONDS & 1], b, sizeof(b));
}

void assoc_cookie_make(struct assoc *a, const struct assoc_addr *from, const struct wire_init *m,
		       uint64_t now, uint8_t out[WIRE_COOKIE_BYTES])
{
	uint32_t seconds = (uint32_t)(now / SECOND);

	rotate(a, now);
	wire_store_u32(out, seconds);
	wire_store_u32(out + 4, 0);
	wire_store_u64(out + 8, mac(a, from, m, seconds));
}

bool assoc_cookie_is_valid(struct assoc *a, const struct assoc_addr *from,
			   const struct wire_init *m, uint64_t now)
{
	uint32_t seconds = wire_load_u32(m->cookie);
	uint8_t want[8], bad = 0;

	rotate(a, now);
	if (wire_load_u32(m->cookie + 4) != 0 ||
	    (uint32_t)(now / SECOND) - seconds > ASSOC_COOKIE_SECONDS)
		return false;
	wire_store_u64(want, mac(a, from, m, seconds));
	for (int i = 0; i < 8; i++)
		bad |= want[i] ^ m->cookie[8 + i];
	return bad == 0;
}

bool assoc_may_answer(struct assoc *a, uint64_t now)
{
	uint64_t cost = SECOND / a->p.answers_per_s, most = cost * a->p.answers_burst;

	a->bucket_ns += now - a->bucket_at;
	a->bucket_at = now;
	if (a->bucket_ns > most)
		a->bucket_ns = most;
	if (a->bucket_ns < cost)
		return false;
	a->bucket_ns -= cost;
	return true;
}
