/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: acknowledgements both ways, packets in flight, loss and probe timers. Runs on the
 * thread of the flow; owns the sent ring.
 *
 * Loss is called as RFC 9002 does: when three later numbers are acknowledged, or when one later is
 * and 9/8 of the round trip has passed since it was sent; when nothing comes back, a probe timeout
 * with backoff sends the two oldest again.
 */
#include "dataplane/link/flow_int.h"

/* Length of the run of bits equal to `value` from number `from` downwards, at most `max`. */
static uint32_t run_down(const uint64_t *map, uint64_t from, uint32_t max, bool value)
{
	uint32_t run = 0;

	while (run < max) {
		uint64_t at = (from - run) % WIRE_NUMBER_WINDOW;
		uint32_t low = (uint32_t)(at % 64);
		uint64_t w = value ? ~map[at / 64] : map[at / 64];

		w <<= 63 - low;
		if (w) {
			run += (uint32_t)__builtin_clzll(w);
			break;
		}
		run += low + 1;
	}
	return run < max ? run : max;
}

uint32_t flow_ack_put(struct flow *f, enum wire_class cls, uint8_t *p, uint32_t room, uint64_t now)
{
	struct flow_in *r = &f->in[cls];
	uint64_t at = r->next_number - 1, delay = now - r->time;
	uint32_t left = WIRE_NUMBER_WINDOW, n = 0, missing = 0, received;
	uint8_t *q = p + WIRE_ACK_BYTES;

	if (room < WIRE_ACK_BYTES + WIRE_ACK_RANGE_BYTES || r->next_number == 0)
		return 0;
	if (left > r->next_number)
		left = (uint32_t)r->next_number;
	p[0] = SPL_REC_ACK;
	p[1] = (uint8_t)cls;
	p[3] = 0;
	wire_store_u32(p + 4, delay > UINT32_MAX ? UINT32_MAX : (uint32_t)delay);
	wire_store_u64(p + 8, at);
	do {
		received = run_down(r->map, at, left, true);
		at -= received;
		left -= received;
		wire_store_u16(q, (uint16_t)missing);
		wire_store_u16(q + 2, (uint16_t)received);
		q += WIRE_ACK_RANGE_BYTES;
		n++;
		missing = run_down(r->map, at, left, false);
		at -= missing;
		left -= missing;
	} while (left > 0 && n < WIRE_ACK_RANGES_MAX && q + WIRE_ACK_RANGE_BYTES <= p + room);
	p[2] = (uint8_t)n;
	r->owed = 0;
	r->ack_due = FLOW_NEVER;
	return (uint32_t)(q - p);
}

void flow_ack_note(struct flow *f, struct flow_in *r, uint64_t number, bool elicits, uint64_t now)
{
	bool in_order = number == r->next_number;
	uint64_t bit = number % WIRE_NUMBER_WINDOW;

	if (number >= r->next_number) {
		if (number - r->next_number >= WIRE_NUMBER_WINDOW)
			memset(r->map, 0, sizeof(r->map));
		else /* at most a window of them */
			for (uint64_t n = r->next_number; n != number; n++)
				r->map[n % WIRE_NUMBER_WINDOW / 64] &= ~(1ULL << n % 64);
		r->next_number = number + 1;
		r->time = now;
	}
	r->map[bit / 64] |= 1ULL << bit % 64;
	if (!elicits)
		return;
	if (now + f->ack_delay < r->ack_due)
		r->ack_due = now + f->ack_delay;
	if (++r->owed >= r->ack_every || !in_order)
		r->ack_due = 0;
}

static struct flow_sent *sent_at(const struct flow_away *t, uint32_t i)
{
	return &t->sent[i & t->sent_mask];
}

/* First record from `lo` (of ring positions lo..hi) whose number is not below `number`. */
static uint32_t sent_find(const struct flow_away *t, uint32_t lo, uint32_t hi, uint64_t number)
{
	while (lo != hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (sent_at(t, mid)->number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void out_free(struct flow *f, struct flow_out *o)
{
	o->left = 0;
	f->env->sent(f->host, o->handle, true);
	f->stats.messages_acked++;
}

/* The bytes of a record have arrived. */
static void bytes_acked(struct flow *f, struct flow_away *t, const struct flow_sent *s)
{
	uint32_t seq = s->seq;

	if (s->frag) {
		struct flow_out *o = &t->out[seq & t->out_mask];

		FLOW_ASSERT(o->left >= s->frag);
		o->left -= s->frag;
		if (o->left == 0)
			out_free(f, o);
		seq++;
	}
	for (uint32_t i = 0; i < s->whole; i++, seq++)
		out_free(f, &t->out[seq & t->out_mask]);
}

static void leave_flight(struct flow_away *t, const struct flow_sent *s)
{
	FLOW_ASSERT(t->flight > 0 && t->flight_bytes >= s->bytes);
	t->flight--;
	t->flight_bytes -= s->bytes;
}

/* True when the record still owned its bytes. */
static bool ack_one(struct flow *f, struct flow_away *t, struct flow_sent *s)
{
	unsigned was = s->state;

	s->state = SENT_ACKED;
	if (was >= SENT_RESENT)
		return false;
	if (was == SENT_FLIGHT)
		leave_flight(t, s);
	else
		t->lost--;
	bytes_acked(f, t, s);
	return true;
}

static void advance(struct flow_away *t, uint64_t now)
{
	flow_sent_pop(t);
	while (t->base_seq != t->cur_seq && t->out[t->base_seq & t->out_mask].left == 0)
		t->base_seq++;
	if (t->base_seq == t->next_seq && flow_may_give_back(t))
		t->idle_since = now;
}

static void rtt_sample(struct flow *f, uint64_t rtt, uint64_t delay)
{
	uint64_t diff;

	f->rtt_latest = rtt;
	if (!f->has_rtt) {
		f->has_rtt = true;
		f->rtt_min = f->srtt = rtt;
		f->rttvar = rtt / 2;
		return;
	}
	if (rtt < f->rtt_min)
		f->rtt_min = rtt;
	if (delay > FLOW_ACK_DELAY_MAX_NS)
		delay = FLOW_ACK_DELAY_MAX_NS;
	if (rtt >= f->rtt_min + delay)
		rtt -= delay;
	diff = rtt > f->srtt ? rtt - f->srtt : f->srtt - rtt;
	f->rttvar = f->rttvar - f->rttvar / 4 + diff / 4;
	f->srtt = f->srtt - f->srtt / 8 + rtt / 8;
}

uint64_t flow_pto(const struct flow *f)
{
	uint64_t var = 4 * f->rttvar;
	uint64_t pto =
		f->srtt + (var > FLOW_GRANULARITY_NS ? var : FLOW_GRANULARITY_NS) + f->ack_delay;

	return pto > f->pto_min ? pto : f->pto_min;
}

static void mark_lost(struct flow_away *t, uint32_t i)
{
	struct flow_sent *s = sent_at(t, i);

	leave_flight(t, s);
	s->state = SENT_LOST;
	t->lost++;
	if (flow_before32(i, t->lost_from))
		t->lost_from = i;
}

/* Calls the lost ones below the largest acknowledged number; sets when the next one would be. */
static void find_lost(struct flow *f, struct flow_away *t, uint64_t now)
{
	uint64_t rtt = f->srtt > f->rtt_latest ? f->srtt : f->rtt_latest;
	uint64_t wait = rtt + rtt / 8;

	if (wait < FLOW_GRANULARITY_NS)
		wait = FLOW_GRANULARITY_NS;
	t->loss_time = FLOW_NEVER;
	for (uint32_t i = t->head; i != t->tail; i++) { /* at most the sent ring */
		const struct flow_sent *s = sent_at(t, i);

		if (s->number >= t->largest_acked)
			break;
		if (s->state != SENT_FLIGHT)
			continue;
		if (t->largest_acked - 1 - s->number < FLOW_LOSS_PACKETS && s->time + wait > now) {
			t->loss_time = s->time + wait;
			break;
		}
		mark_lost(t, i);
	}
}

void flow_ack_take(struct flow *f, enum wire_class cls, const uint8_t *p, uint64_t now)
{
	struct flow_away *t = &f->away[cls];
	uint64_t largest = wire_load_u64(p + 8), below = largest + 1;
	uint32_t n = p[2], top = t->tail, freed = 0;
	const uint8_t *q = p + WIRE_ACK_BYTES;

	for (uint32_t i = 0; i < n && top != t->head; i++, q += WIRE_ACK_RANGE_BYTES) {
		uint64_t high = below - wire_load_u16(q), low = high - wire_load_u16(q + 2);
		uint32_t from = sent_find(t, t->head, top, low);

		for (uint32_t k = from; k != top && sent_at(t, k)->number < high; k++) {
			struct flow_sent *s = sent_at(t, k);

			if (!ack_one(f, t, s))
				continue;
			freed++;
			if (s->number == largest)
				rtt_sample(f, now - s->time, wire_load_u32(p + 4));
		}
		below = low;
		top = from;
	}
	if (largest + 1 > t->largest_acked)
		t->largest_acked = largest + 1;
	advance(t, now);
	if (freed) {
		t->pto_count = 0;
		t->probes = 0;
		t->window = t->window + freed < f->window_packets ? t->window + freed
								  : f->window_packets;
	}
	find_lost(f, t, now);
}

static uint64_t pto_time(const struct flow *f, const struct flow_away *t)
{
	uint64_t wait = flow_pto(f);

	for (uint32_t i = 0; i < t->pto_count && wait < FLOW_PTO_MAX_NS; i++)
		wait *= 2;
	return t->last_sent + (wait < FLOW_PTO_MAX_NS ? wait : FLOW_PTO_MAX_NS);
}

uint64_t flow_ack_next_timer(const struct flow *f, enum wire_class cls)
{
	const struct flow_away *t = &f->away[cls];

	if (t->flight == 0 || t->probes > 0) /* a probe waits to be sent, not for a timer */
		return FLOW_NEVER;
	return t->loss_time != FLOW_NEVER ? t->loss_time : pto_time(f, t);
}

void flow_ack_timer(struct flow *f, enum wire_class cls, uint64_t now)
{
	struct flow_away *t = &f->away[cls];

	if (flow_ack_next_timer(f, cls) > now)
		return;
	if (t->loss_time != FLOW_NEVER) {
		find_lost(f, t, now);
		return;
	}
	t->pto_count++;
	if (t->pto_count >= 2)
		t->window = f->window_initial;
	f->stats.probes++;
	t->probes = 0;
	for (uint32_t i = t->head; i != t->tail && t->probes < 2; i++)
		if (sent_at(t, i)->state == SENT_FLIGHT) {
			mark_lost(t, i);
			t->probes++;
		}
}
