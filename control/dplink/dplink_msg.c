/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets and requests of the link: see dplink.h. Loop thread only. */
#include "control/dplink/dplink_priv.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <spotlane/errors.h>
#include <unistd.h>

#define MODULE	     "dplink"
#define BATCHES_FAIR 4

/* ---- requests ---- */

static int slots_grow(struct dplink *l)
{
	uint32_t n = l->n_slots ? l->n_slots * 2 : 256;
	struct dplink_slot *s;

	if (l->n_slots >= DPLINK_REQUESTS_MAX)
		return -ENOBUFS;
	s = realloc(l->slots, n * sizeof(*s));
	if (!s)
		return -ENOMEM;
	for (uint32_t i = l->n_slots; i < n; i++)
		s[i] = (struct dplink_slot){.next = i + 1 < n ? i + 1 : UINT32_MAX};
	l->free_slot = l->n_slots;
	l->slots = s;
	l->n_slots = n;
	return 0;
}

/* Frees the slot first: its owner may begin a request in the callback. */
static void slot_end(struct dplink *l, uint32_t i, const struct dplink_end *end)
{
	struct dplink_slot s = l->slots[i];

	l->slots[i].corr = 0;
	l->slots[i].next = l->free_slot;
	l->free_slot = i;
	l->used_slots--;
	l->timed_slots -= s.deadline != 0;
	s.fn(s.ctx, s.tag, end);
}

void dplink_fail_all(struct dplink *l, int rc)
{
	const struct dplink_end end = {.rc = rc, .kind = 0};

	for (uint32_t i = 0; i < l->n_slots; i++)
		if (l->slots[i].corr)
			slot_end(l, i, &end);
}

void dplink_expire(struct dplink *l)
{
	const struct dplink_end end = {.rc = -ETIMEDOUT};
	uint64_t now;

	if (!l->timed_slots) { /* an idle link wakes nobody */
		uv_timer_stop(&l->tick);
		return;
	}
	now = dplink_now(l);
	for (uint32_t i = 0; i < l->n_slots; i++) {
		struct dplink_slot *s = &l->slots[i];

		if (!s->corr || !s->deadline || s->deadline > now)
			continue;
		log_warn(MODULE, "no reply in time type=%s corr=%llx", dp_type_name(s->type),
			 (unsigned long long)s->corr);
		l->timeouts++;
		slot_end(l, i, &end);
	}
}

/* ---- out ---- */

struct pack_writer *dplink_begin(struct dplink *l, uint16_t type)
{
	l->w = (struct pack_writer){.p = l->scratch, .cap = sizeof(l->scratch)};
	l->w_type = type;
	dp_begin(&l->w, type, 0, l->epoch, 0);
	return &l->w;
}

void dplink_cut(struct dplink *l, const char *why)
{
	if (l->sock && !l->cut_why)
		l->cut_why = why;
}

/* Patches flags and corr, which dplink_begin() left open, and queues the packet. */
static int finish(struct dplink *l, uint16_t flags, uint64_t corr, int fd)
{
	struct pack_writer head = {.p = l->scratch, .cap = DP_HEADER_BYTES};
	int rc;

	dp_begin(&head, l->w_type, flags, l->epoch, corr);
	rc = l->state == DPLINK_UP ? dp_finish(&l->w, fd >= 0) : -ENOTCONN;
	if (rc < 0) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = dp_tx_push(&l->tx, l->scratch, l->w.len, fd);
	if (rc == -ENOBUFS)
		dplink_cut(l, "the dataplane does not read: output queue is full");
	return rc;
}

int dplink_event(struct dplink *l, int fd)
{
	return finish(l, DP_F_EVT, 0, fd);
}

int dplink_reply(struct dplink *l, uint64_t corr, int fd)
{
	return finish(l, DP_F_REP, corr, fd);
}

int dplink_request(struct dplink *l, int fd, const struct dplink_want *w)
{
	struct dplink_slot *s;
	uint64_t corr;
	uint32_t i;
	int rc = 0;

	if (l->free_slot == UINT32_MAX)
		rc = slots_grow(l);
	if (rc < 0) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	i = l->free_slot;
	corr = ++l->serial << 16 | i;
	rc = finish(l, DP_F_REQ, corr, fd);
	if (rc < 0)
		return rc;
	s = &l->slots[i];
	l->free_slot = s->next;
	*s = (struct dplink_slot){
		.corr = corr,
		.deadline = w->deadline,
		.tag = w->tag,
		.fn = w->fn,
		.ctx = w->ctx,
		.type = w->type,
	};
	l->used_slots++;
	if (w->deadline && l->timed_slots++ == 0)
		uv_timer_start(&l->tick, dplink_on_tick, DPLINK_TICK_MS, DPLINK_TICK_MS);
	return 0;
}

/* ---- in ---- */

/* 0, or -errno when the connection must be cut. */
static int take_reply(struct dplink *l, struct dplink_msg *m)
{
	uint32_t i = m->h.corr & 0xffff;
	struct dplink_end end = {.m = m};
	struct dp_ok ok;

	if (i >= l->n_slots || !m->h.corr || l->slots[i].corr != m->h.corr) {
		static struct log_rate rate = LOG_RATE(5, 10000);

		/* Also what a request that has timed out gets. */
		l->unmatched++;
		log_limited(&rate, LOG_LEVEL_WARN, MODULE, "reply to no request type=%s corr=%llx",
			    dp_type_name(m->h.type), (unsigned long long)m->h.corr);
		return 0;
	}
	if (m->h.type != l->slots[i].type) {
		if (m->h.type != DP_OK)
			return -EPROTO;
		dp_get_ok(&m->body, &ok);
		if (!dp_done(&m->body) || ok.kind == SPL_OK)
			return -EPROTO;
		end = (struct dplink_end){.rc = -EREMOTEIO, .kind = ok.kind, .text = ok.text};
	}
	slot_end(l, i, &end);
	return 0;
}

static int take_hello(struct dplink *l, struct dplink_msg *m)
{
	struct dp_hello hello;

	if (m->h.type != DP_HELLO || m->h.flags != DP_F_EVT || m->fd >= 0)
		return -EPROTO;
	dp_get_hello(&m->body, &hello);
	if (!dp_done(&m->body) || hello.state > DP_STATE_IDENTIFIED)
		return -EPROTO;
	dplink_hello(l, m->h.epoch, &hello);
	return 0;
}

static int take_message(struct dplink *l, struct dplink_msg *m)
{
	if (m->h.nfds != (m->fd >= 0))
		return -EPROTO;
	if (l->state == DPLINK_CONNECTING)
		return take_hello(l, m);
	if (m->h.epoch != l->epoch)
		return -ESTALE;
	if (m->h.flags == DP_F_REP)
		return take_reply(l, m);
	if (m->h.type == DP_HELLO || (m->h.flags != DP_F_EVT && m->h.flags != DP_F_REQ) ||
	    (m->h.flags == DP_F_EVT) != (m->h.corr == 0))
		return -EPROTO;
	return l->o.ops->message(l->o.ctx, m);
}

static void take_packet(struct dplink *l, struct dp_packet *pk)
{
	struct dplink_msg m = {.fd = pk->fd};
	int rc = pk->err ? pk->err : dp_open(pk->p, pk->n, &m.h, &m.body);

	if (rc == -EPROTONOSUPPORT) {
		dplink_lost(l, LOG_LEVEL_ERROR,
			    "the dataplane speaks version %u of the private protocol, this control "
			    "version %u: install both from one build",
			    m.h.version, DP_VERSION);
		return;
	}
	if (rc == 0) {
		rc = take_message(l, &m);
		pk->fd = m.fd;
	}
	if (rc < 0 && l->sock)
		dplink_lost(l, LOG_LEVEL_ERROR, "malformed packet type=%s bytes=%zu: %s",
			    dp_type_name(m.h.type), pk->n, strerror(-rc));
}

bool dplink_read(struct dplink *l, bool all)
{
	struct dp_packet *pk;

	for (int k = 0; l->sock && (all || k < BATCHES_FAIR); k++) {
		struct dplink_watch *sock = l->sock;
		int n = dp_rx_batch(l->rx, sock->fd, &pk);

		if (n == -EAGAIN)
			return true;
		if (n <= 0) {
			dplink_lost(l, LOG_LEVEL_WARN, "%s",
				    n < 0 ? strerror(-n)
				    : l->state == DPLINK_UP
					    ? "the dataplane closed the connection"
					    : "closed before HELLO: another control is connected?");
			return false;
		}
		for (int i = 0; i < n && l->sock == sock; i++)
			take_packet(l, &pk[i]);
	}
	return l->sock != NULL;
}
