/* SPDX-License-Identifier: BSD-3-Clause */
/* lane file: life of a flow, its sending queue, credit of both sides, timers, statistics. Runs on
 * the thread of the flow; owns the memory given at flow_init().
 *
 * Credit (S-LIM-10, S-LIM-14). The receiver holds limit - consumed bytes of its node's pool: at
 * first its minimum, more on demand, less again when the pool is tight or the sender has been idle.
 * A grant cannot be taken back, so an idle sender that had asked for more gives its rest back
 * itself: it raises its epoch, and grants of an older epoch count no more. It does so however
 * little it knows of: what handlers have ended since is told to it late, and is reserved all the
 * same.
 */
#include "dataplane/link/flow_int.h"

#include <errno.h>

#define LINE_BYTES 64u
#define PAGE_LINES 64u
#define FLOW_LINES (sizeof(struct flow) / LINE_BYTES | 1) /* odd: every line has its turn */

void flow_params_default(struct flow_params *p)
{
	*p = (struct flow_params){
		.datagram_bytes = SPL_DATAGRAM_BYTES,
		.msg_bytes = wire_message_bytes(SPL_MESSAGE_BYTES_MAX),
		.peer_msg_bytes = wire_message_bytes(SPL_MESSAGE_BYTES_MAX),
		.window_packets = 512,
		.window_initial = 64,
		.window_bytes = 512 * SPL_DATAGRAM_BYTES,
		.ack_every = 32,
		.ack_delay_ns = 1000000,
		.rtt_initial_ns = 10000000,
		.pto_min_ns = 4000000,
	};
	for (int c = 0; c < WIRE_CLASSES; c++)
		p->cls[c] = (struct flow_class_params){
			.tx_slots = 1024,
			.rx_slots = 1024,
			.peer_window = 1024,
			.credit_min = c == WIRE_APP ? 256 * 1024 : 64 * 1024,
			.credit_max = 4 * 1024 * 1024,
			.peer_credit = c == WIRE_APP ? 256 * 1024 : 64 * 1024,
		};
}

static bool is_power(uint32_t v, uint32_t min, uint32_t max)
{
	return v >= min && v <= max && (v & (v - 1)) == 0;
}

static bool class_is_legal(const struct flow_params *p, const struct flow_class_params *c)
{
	return is_power(c->tx_slots, 2, 32768) && is_power(c->rx_slots, 16, 32768) &&
	       is_power(c->peer_window, 16, 32768) && c->credit_min >= wire_charge(0) &&
	       c->credit_max >= c->credit_min && c->credit_max >= wire_charge(p->msg_bytes);
}

static bool is_legal(const struct flow_params *p)
{
	return p->datagram_bytes >= 256 && p->datagram_bytes <= 9000 && p->msg_bytes > 0 &&
	       p->msg_bytes <= wire_message_bytes(SPL_MESSAGE_BYTES_CAP) && p->peer_msg_bytes > 0 &&
	       is_power(p->window_packets, 4, 32768) && p->window_initial >= 2 &&
	       p->window_initial <= p->window_packets && p->window_bytes >= p->datagram_bytes &&
	       p->ack_every >= 1 && p->ack_every <= WIRE_NUMBER_WINDOW / 4 &&
	       p->ack_delay_ns <= FLOW_ACK_DELAY_MAX_NS && p->rtt_initial_ns > 0 &&
	       p->lane < SPL_LANES_MAX && p->peer_lane < SPL_LANES_MAX &&
	       class_is_legal(p, &p->cls[WIRE_APP]) && class_is_legal(p, &p->cls[WIRE_INFRA]);
}

static size_t class_bytes(const struct flow_params *p, const struct flow_class_params *c)
{
	return c->rx_slots * sizeof(struct flow_slot) + c->tx_slots * sizeof(struct flow_out) +
	       2 * p->window_packets * sizeof(struct flow_sent);
}

/* Where in its memory a flow begins. Allocators put blocks of this size at one and the same place
 * of a page each, so that the lines every packet touches would be, for all flows of a lane, those
 * of a few sets of its first cache. */
static size_t first_byte(const struct flow_params *p)
{
	return (wire_id_slot(p->rx_id) * FLOW_LINES + p->peer_lane) % PAGE_LINES * LINE_BYTES;
}

size_t flow_bytes(const struct flow_params *p)
{
	size_t n = sizeof(struct flow) + (PAGE_LINES - 1) * LINE_BYTES;

	if (!is_legal(p))
		return 0;
	for (int c = 0; c < WIRE_CLASSES; c++)
		n += class_bytes(p, &p->cls[c]);
	return (n + 63) & ~(size_t)63;
}

static void in_init(struct flow_in *r, const struct flow_params *p,
		    const struct flow_class_params *c)
{
	r->next_seq = c->seq_rx;
	r->charged = r->consumed = c->credit_rx;
	r->limit = r->advertised = r->wanted = c->credit_rx + c->credit_min;
	r->ack_due = FLOW_NEVER;
	r->ack_every = p->ack_every;
	r->mask = c->rx_slots - 1;
	r->credit_min = c->credit_min;
	r->credit_max = c->credit_max;
}

static void away_init(struct flow_away *t, const struct flow_params *p,
		      const struct flow_class_params *c)
{
	t->out_mask = c->tx_slots - 1;
	t->sent_mask = 2 * p->window_packets - 1;
	t->next_seq = t->cur_seq = t->base_seq = c->seq_tx;
	t->peer_window = c->peer_window;
	t->window = p->window_initial;
	t->next_number = t->first_number = c->pn_tx;
	t->loss_time = t->wanted_due = t->idle_since = FLOW_NEVER;
	t->used = c->credit_tx;
	t->limit = c->credit_tx + c->peer_credit;
	t->first_credit = c->peer_credit;
}

/* Takes the minimum of both classes; false and nothing taken when the pool has less. */
static bool take_minimum(const struct flow_params *p, const struct flow_env *env, void *host)
{
	uint64_t got[WIRE_CLASSES] = {0};
	bool ok = true;

	for (int c = 0; c < WIRE_CLASSES; c++) {
		got[c] = env->credit_take(host, c, p->cls[c].credit_min);
		ok &= got[c] == p->cls[c].credit_min;
	}
	for (int c = 0; !ok && c < WIRE_CLASSES; c++)
		if (got[c])
			env->credit_give(host, c, got[c]);
	return ok;
}

static void head_init(struct flow *f, const struct flow_params *p)
{
	struct wire_hdr h = {.kind = SPL_PKT_FLOW,
			     .src_lane = p->peer_lane,
			     .dst_lane = p->lane,
			     .id = p->rx_id};
	uint8_t b[WIRE_HDR_BYTES];

	wire_hdr_put(b, &h);
	memcpy(&f->rx_head, b, 8);
	memcpy(&f->rx_id, b + 8, 8);
}

struct flow *flow_init(void *mem, const struct flow_params *p, const struct flow_env *env,
		       void *host)
{
	size_t bytes = flow_bytes(p);
	struct flow *f;
	uint8_t *at;

	if (bytes == 0) {
		errno = EINVAL;
		return NULL;
	}
	if (!take_minimum(p, env, host)) {
		errno = ENOMEM;
		return NULL;
	}
	memset(mem, 0, bytes);
	f = (struct flow *)(void *)((uint8_t *)mem + first_byte(p));
	f->mem = mem;
	at = (uint8_t *)(f + 1);
	for (int c = 0; c < WIRE_CLASSES; c++) {
		const struct flow_class_params *cp = &p->cls[c];

		in_init(&f->in[c], p, cp);
		away_init(&f->away[c], p, cp);
		f->in[c].slots = (struct flow_slot *)(void *)at;
		at += cp->rx_slots * sizeof(struct flow_slot);
		f->away[c].sent = (struct flow_sent *)(void *)at;
		at += 2 * p->window_packets * sizeof(struct flow_sent);
		f->away[c].out = (struct flow_out *)(void *)at;
		at += cp->tx_slots * sizeof(struct flow_out);
	}
	head_init(f, p);
	f->env = env;
	f->host = host;
	f->tx_id = p->tx_id;
	f->lane = p->lane;
	f->peer_lane = p->peer_lane;
	f->datagram_bytes = p->datagram_bytes;
	f->msg_bytes = p->msg_bytes;
	f->peer_msg_bytes = p->peer_msg_bytes;
	f->window_packets = p->window_packets;
	f->window_initial = p->window_initial;
	f->window_bytes = p->window_bytes;
	f->ack_delay = p->ack_delay_ns;
	f->pto_min = p->pto_min_ns;
	f->srtt = f->rtt_latest = p->rtt_initial_ns;
	f->rttvar = p->rtt_initial_ns / 2;
	return f;
}

/* Gives back what was received and not delivered; returns its credit. */
static uint64_t drop_held(struct flow *f, struct flow_in *r)
{
	uint64_t charge = 0;

	for (uint32_t i = 0; r->held > 0 && i <= r->mask; i++) {
		struct flow_slot *s = &r->slots[i];

		if (s->state == SLOT_EMPTY)
			continue;
		charge += wire_charge(s->len);
		if (s->state == SLOT_WHOLE)
			f->env->buf_put(f->host, s->ref);
		else
			f->env->mem_put(f->host, s->ref);
		s->state = SLOT_EMPTY;
		r->held--;
	}
	return charge;
}

void *flow_fini(struct flow *f)
{
	if (!f)
		return NULL;
	for (int c = 0; c < WIRE_CLASSES; c++) {
		struct flow_in *r = &f->in[c];
		struct flow_away *t = &f->away[c];
		uint64_t rest = drop_held(f, r) + (r->limit - r->charged);

		if (rest)
			f->env->credit_give(f->host, c, rest);
		for (; t->base_seq != t->next_seq; t->base_seq++) {
			struct flow_out *o = &t->out[t->base_seq & t->out_mask];

			if (o->left)
				f->env->sent(f->host, o->handle, false);
		}
	}
	return f->mem;
}

int flow_send(struct flow *f, enum wire_class cls, const void *data, uint32_t len, void *handle)
{
	struct flow_away *t = &f->away[cls];

	if (len > f->peer_msg_bytes)
		return -EMSGSIZE;
	if (t->next_seq - t->base_seq > t->out_mask)
		return -EAGAIN;
	if (t->next_number == UINT64_MAX)
		return -EPIPE;
	t->out[t->next_seq & t->out_mask] =
		(struct flow_out){.data = data, .handle = handle, .len = len, .left = len + !len};
	t->next_seq++;
	t->idle_since = FLOW_NEVER;
	f->stats.messages_tx++;
	return 0;
}

uint32_t flow_send_room(const struct flow *f, enum wire_class cls)
{
	const struct flow_away *t = &f->away[cls];

	return t->out_mask + 1 - (t->next_seq - t->base_seq);
}

/* Asks the pool for what the peer wants, and as much again, if its bound allows that. */
static void grow(struct flow *f, enum wire_class cls)
{
	struct flow_in *r = &f->in[cls];
	uint64_t reserved = r->limit - r->consumed, need = r->wanted - r->limit, extra, got;

	if (reserved + need > r->credit_max || need > r->credit_max)
		return;
	extra = r->credit_max - reserved - need;
	if (extra > reserved)
		extra = reserved;
	got = f->env->credit_take(f->host, cls, need + extra);
	if (got < need) {
		if (got)
			f->env->credit_give(f->host, cls, got);
		return;
	}
	r->limit += got;
	r->credit_due = true;
}

static void tell_when_half(struct flow_in *r, uint64_t reserved)
{
	if (r->limit - r->advertised >= reserved / 2)
		r->credit_due = true;
}

/* More than the minimum is reserved, or the peer waits. */
static __attribute__((noinline)) void consumed_more(struct flow *f, enum wire_class cls,
						    uint32_t charge)
{
	struct flow_in *r = &f->in[cls];
	uint64_t reserved = r->limit - r->consumed;
	bool was_short = flow_before64(r->limit, r->wanted);

	r->consumed += charge;
	if (reserved >= (uint64_t)r->credit_min + charge && f->env->credit_tight &&
	    f->env->credit_tight(f->host, cls)) {
		f->env->credit_give(f->host, cls, charge);
	} else {
		r->limit += charge;
		tell_when_half(r, reserved);
	}
	if (!was_short)
		return;
	if (flow_before64(r->limit, r->wanted))
		grow(f, cls);
	else
		r->credit_due = true;
}

void flow_consumed(struct flow *f, enum wire_class cls, uint32_t charge)
{
	struct flow_in *r = &f->in[cls];
	uint64_t reserved = r->limit - r->consumed;

	if (reserved > r->credit_min || flow_before64(r->limit, r->wanted)) {
		consumed_more(f, cls, charge);
		return;
	}
	r->consumed += charge;
	r->limit += charge;
	tell_when_half(r, reserved);
}

bool flow_credit_ask_is_legal(const struct flow_in *r, uint16_t epoch, uint64_t wanted)
{
	return epoch != (uint16_t)(r->epoch + 1) || !flow_before64(wanted, r->charged);
}

void flow_credit_asked(struct flow *f, enum wire_class cls, uint16_t epoch, uint64_t wanted)
{
	struct flow_in *r = &f->in[cls];
	uint64_t least = r->consumed + r->credit_min;

	if (epoch == (uint16_t)(r->epoch + 1)) {
		uint64_t limit = flow_before64(wanted, least) ? least : wanted;

		r->epoch = epoch;
		r->wanted = r->limit;
		if (flow_before64(limit, r->limit)) {
			f->env->credit_give(f->host, cls, r->limit - limit);
			r->limit = r->wanted = limit;
		}
		r->credit_due = true;
	} else if (epoch != r->epoch) {
		return;
	}
	if (!flow_before64(r->limit, wanted)) {
		r->credit_due = true;
		return;
	}
	r->wanted = wanted;
	grow(f, cls);
}

/* The message at the cursor needs more credit than there is. */
static bool is_blocked(const struct flow_away *t)
{
	return t->cur_seq != t->next_seq && t->cur_off == 0 &&
	       flow_before64(t->limit, t->used + wire_charge(t->out[t->cur_seq & t->out_mask].len));
}

uint64_t flow_wanted(const struct flow_away *t)
{
	return is_blocked(t) ? t->used + wire_charge(t->out[t->cur_seq & t->out_mask].len)
			     : t->limit;
}

void flow_credit_told(struct flow_away *t, uint16_t epoch, uint64_t limit)
{
	if (epoch != t->epoch)
		return;
	t->epoch_open = false;
	if (flow_before64(t->limit, limit))
		t->limit = limit;
	if (!is_blocked(t))
		t->wanted_due = FLOW_NEVER;
}

void flow_credit_blocked(struct flow *f, struct flow_away *t, uint64_t now)
{
	if (t->wanted_due != FLOW_NEVER)
		return;
	f->stats.blocked++;
	t->has_asked = true;
	t->wanted_due = now;
	t->wanted_wait = flow_pto(f);
}

void flow_credit_idle(struct flow *f, struct flow_away *t, uint64_t now)
{
	if (t->idle_since == FLOW_NEVER || now < t->idle_since + FLOW_CREDIT_IDLE_NS)
		return;
	t->idle_since = FLOW_NEVER;
	if (t->epoch_open || !flow_may_give_back(t))
		return;
	t->has_asked = false;
	t->epoch++;
	t->epoch_open = true;
	if (flow_before64(t->used + t->first_credit, t->limit))
		t->limit = t->used + t->first_credit;
	t->wanted_due = now;
	t->wanted_wait = flow_pto(f);
}

static void earliest(uint64_t *at, uint64_t t)
{
	if (t < *at)
		*at = t;
}

uint64_t flow_next_timer(const struct flow *f)
{
	uint64_t at = FLOW_NEVER;

	for (int c = 0; c < WIRE_CLASSES; c++) {
		const struct flow_away *t = &f->away[c];

		earliest(&at, f->in[c].credit_due ? 0 : f->in[c].ack_due);
		earliest(&at, t->wanted_due);
		earliest(&at, flow_ack_next_timer(f, c));
		if (t->idle_since != FLOW_NEVER)
			earliest(&at, t->idle_since + FLOW_CREDIT_IDLE_NS);
	}
	return at;
}

void flow_on_timer(struct flow *f, uint64_t now_ns)
{
	for (int c = 0; c < WIRE_CLASSES; c++) {
		flow_ack_timer(f, c, now_ns);
		flow_credit_idle(f, &f->away[c], now_ns);
	}
}

bool flow_is_idle(const struct flow *f)
{
	for (int c = 0; c < WIRE_CLASSES; c++) {
		const struct flow_in *r = &f->in[c];
		const struct flow_away *t = &f->away[c];

		if (t->base_seq != t->next_seq || t->wanted_due != FLOW_NEVER || r->held ||
		    r->owed || r->ack_due != FLOW_NEVER || r->credit_due)
			return false;
	}
	return true;
}

uint64_t flow_retransmitted(const struct flow *f)
{
	return f->stats.retransmitted;
}

void flow_stats_get(const struct flow *f, struct flow_stats *out)
{
	*out = f->stats;
	out->packets_rx = f->packets_rx + f->in[WIRE_APP].alone;
	out->messages_rx =
		f->in[WIRE_APP].messages + f->in[WIRE_APP].alone + f->in[WIRE_INFRA].messages;
	out->srtt_ns = f->srtt;
	out->rttvar_ns = f->rttvar;
	out->rtt_min_ns = f->rtt_min;
	out->flight_packets = f->away[WIRE_APP].flight + f->away[WIRE_INFRA].flight;
	out->window_packets = f->away[WIRE_APP].window + f->away[WIRE_INFRA].window;
	for (int c = 0; c < WIRE_CLASSES; c++) {
		out->credit_reserved[c] = f->in[c].limit - f->in[c].consumed;
		out->messages_unsent[c] = f->away[c].next_seq - f->away[c].base_seq;
		out->messages_held[c] = f->in[c].held;
	}
}
