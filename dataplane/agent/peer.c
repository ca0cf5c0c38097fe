/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: from association events to peers of lanes: the memory of flows is made here,
 * each lane is told, and an ended association's slot is used again only when every lane has let go.
 */
#include "dataplane/agent/agent.h"

#include "common/credit.h"
#include "dataplane/observe/segment.h"

#include <stdio.h>
#include <stdlib.h>

int agent_identify(struct agent *a, char *err, size_t n)
{
	struct assoc_env env = {a->random_ctx, a->random};
	struct assoc_params p;
	struct flow_params fp;
	size_t bytes;

	assoc_params_default(&p);
	flow_params_default(&fp);
	p.slots = a->sh.associations;
	p.dials = 0;
	p.is_passive = true;
	p.lifecycle = a->node_gen;
	p.lanes = (uint8_t)a->sh.lanes;
	p.base_port = a->ports[0].local.udp_base;
	p.window = (uint16_t)fp.cls[WIRE_APP].rx_slots;
	p.msg_bytes = wire_message_bytes(a->cfg.c.message_max);
	p.credit[WIRE_APP] = a->cfg.c.credit_min;
	p.credit[WIRE_INFRA] = CREDIT_INFRA_MIN;
	p.mesh = a->cfg.mesh;
	p.rid = a->rid;
	bytes = assoc_bytes(&p);
	if (bytes)
		a->assoc_mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	if (a->assoc_mem)
		a->assoc = assoc_init(a->assoc_mem, &p, &env, a->now);
	if (a->assoc)
		return 0;
	snprintf(err, n, bytes ? "no memory for associations" : "associations: out of range");
	return -ENOMEM;
}

const struct agent_peer *agent_peer_of(const struct agent *a, uint64_t flow_ref)
{
	uint32_t slot = (uint32_t)flow_ref & 0xffff;

	if (slot >= a->sh.associations || !a->peer[slot].is_up ||
	    a->peer[slot].generation != flow_ref >> 32)
		return NULL;
	return &a->peer[slot];
}

static void free_flows(struct agent *a, struct agent_peer *p)
{
	for (unsigned i = 0; p->flows && i < a->sh.lanes; i++) {
		for (unsigned j = 0; p->flows[i] && j < p->lanes; j++)
			free(p->flows[i][j].mem);
		free(p->flows[i]);
	}
	free(p->flows);
	p->flows = NULL;
	a->promised -= p->promised;
	p->promised = 0;
}

/* Parameters of the flow between our lane i and the peer's lane j. */
static void flow_values(const struct agent *a, const struct assoc_peer *peer, unsigned i,
			unsigned j, struct flow_params *fp)
{
	flow_params_default(fp);
	fp->rx_id = peer->rx_id;
	fp->tx_id = peer->tx_id;
	fp->lane = (uint8_t)i;
	fp->peer_lane = (uint8_t)j;
	fp->datagram_bytes = SPL_DATAGRAM_BYTES;
	fp->msg_bytes = wire_message_bytes(a->cfg.c.message_max);
	fp->peer_msg_bytes = peer->msg_bytes;
	fp->cls[WIRE_INFRA].credit_min = CREDIT_INFRA_MIN;
	fp->cls[WIRE_APP].credit_min = a->cfg.c.credit_min;
	fp->cls[WIRE_APP].credit_max = a->cfg.c.credit_max;
	for (int c = 0; c < WIRE_CLASSES; c++) {
		fp->cls[c].peer_window = peer->window;
		fp->cls[c].peer_credit = peer->credit[c];
	}
}

static void flow_path(struct agent *a, struct lane_flow *f, const struct assoc_peer *peer,
		      const uint8_t mac[6], uint32_t ip)
{
	const struct frame_local *l = &a->ports[f->port].local;
	uint16_t port = frame_be16(peer->addr.b + 16);

	for (int c = 0; c < WIRE_CLASSES; c++) {
		uint16_t offset = c == WIRE_APP ? WIRE_PORT_APP : WIRE_PORT_INFRA;
		uint16_t src = (uint16_t)(l->udp_base + offset + f->params.lane);
		uint16_t dst = peer->base_port
				       ? (uint16_t)(peer->base_port + offset + f->params.peer_lane)
				       : port;

		build_path_init(&f->path[c], l, src, mac, ip, dst);
	}
}

static int make_flows(struct agent *a, struct agent_peer *p, const struct assoc_peer *peer)
{
	uint32_t ip = frame_be32(peer->addr.b + 12), hop;
	unsigned port = agent_route(a, ip, &hop);
	uint32_t promise = a->sh.lanes * p->lanes;
	uint8_t mac[6] = {0};

	if (port == UINT32_MAX)
		return -EHOSTUNREACH;
	if (a->promised + promise > a->promise_max)
		return -ENOSPC; /* a flow without its minimum could never send */
	a->promised += promise;
	p->promised = promise;
	if (a->last_ip == ip && a->last_port == port)
		memcpy(mac, a->last_mac, 6);
	p->flows = calloc(a->sh.lanes, sizeof(*p->flows));
	for (unsigned i = 0; p->flows && i < a->sh.lanes; i++) {
		p->flows[i] = calloc(p->lanes, sizeof(**p->flows));
		for (unsigned j = 0; p->flows[i] && j < p->lanes; j++) {
			struct lane_flow *f = &p->flows[i][j];
			size_t bytes;

			flow_values(a, peer, i, j, &f->params);
			f->port = (uint16_t)port;
			f->next_hop = hop;
			f->lifecycle = peer->lifecycle;
			flow_path(a, f, peer, mac, ip);
			bytes = flow_bytes(&f->params);
			if (bytes)
				f->mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
			if (!f->mem)
				return -ENOMEM;
		}
		if (!p->flows[i])
			return -ENOMEM;
	}
	return p->flows ? 0 : -ENOMEM;
}

static void show_link(struct agent *a, uint32_t slot)
{
	struct agent_peer *p = &a->peer[slot];
	struct spl_link_stats *row;

	if (slot >= SPL_STATS_LINKS_MAX)
		return;
	row = &a->sh.stats->link[slot];
	__atomic_store_n(&row->lifecycle, 0, __ATOMIC_RELEASE);
	if (!p->is_up)
		return;
	memcpy(row->rid, p->rid.b, p->rid.len);
	row->rid[p->rid.len] = '\0';
	row->ip = p->ip;
	row->udp_port = p->udp_port;
	row->lanes = p->lanes;
	row->up_since_ns = a->now;
	__atomic_store_n(&row->lifecycle, p->lifecycle, __ATOMIC_RELEASE);
}

static void peer_told(struct agent *a, struct agent_command *cmd)
{
	(void)a;
	(void)cmd;
}

static void on_up(struct agent *a, const struct assoc_event *ev)
{
	const struct assoc_peer *peer = ev->peer;
	struct agent_peer *p = &a->peer[ev->slot];
	int rc;

	*p = (struct agent_peer){.generation = p->generation + 1,
				 .lanes = peer->lanes,
				 .lifecycle = peer->lifecycle,
				 .ip = frame_be32(peer->addr.b + 12),
				 .udp_port = frame_be16(peer->addr.b + 16),
				 .rid = peer->rid};
	rc = make_flows(a, p, peer);
	if (rc) {
		log_warn("agent", "peer is refused rid=%.*s error=%s", peer->rid.len, peer->rid.b,
			 strerror(-rc));
		assoc_close(a->assoc, ev->slot, WIRE_CLOSE_NORMAL, a->now);
		return; /* its DOWN event releases the slot */
	}
	p->is_up = true;
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		struct agent_command *cmd = agent_command_new(a, i, LANE_PEER_UP, peer_told);

		if (!cmd) {
			assoc_close(a->assoc, ev->slot, WIRE_CLOSE_NORMAL, a->now);
			return;
		}
		cmd->c.up = (struct lane_peer_up){.slot = ev->slot,
						  .ip = p->ip,
						  .generation = p->generation,
						  .lanes = p->lanes,
						  .rx_id = peer->rx_id,
						  .flows = p->flows[i]};
		agent_send(a, cmd);
	}
	show_link(a, ev->slot);
	log_info("agent",
		 "spotlane.runtime.mesh_node.peer_changed mesh=%.*s rid=%.*s state=ready lanes=%u",
		 a->cfg.mesh.len, a->cfg.mesh.b, peer->rid.len, peer->rid.b, p->lanes);
}

static void finish_down(struct agent *a, uint32_t slot)
{
	struct agent_peer *p = &a->peer[slot];

	free_flows(a, p);
	p->is_ending = false;
	assoc_release(a->assoc, slot);
}

static void lane_let_go(struct agent *a, struct agent_command *cmd)
{
	if (--a->peer[cmd->tag].waiting == 0)
		finish_down(a, (uint32_t)cmd->tag);
}

static const char *const down_names[] = {
#define SPL_X(num, sym, name, help) [num] = name,
	ASSOC_DOWNS(SPL_X)
#undef SPL_X
};

static void on_down(struct agent *a, const struct assoc_event *ev)
{
	struct agent_peer *p = &a->peer[ev->slot];
	bool was_up = p->is_up;

	p->is_up = false;
	show_link(a, ev->slot);
	if (!was_up) {
		finish_down(a, ev->slot);
		return;
	}
	log_info("agent",
		 "spotlane.runtime.mesh_node.peer_changed mesh=%.*s rid=%.*s state=not_connected "
		 "reason=%s",
		 a->cfg.mesh.len, a->cfg.mesh.b, p->rid.len, p->rid.b, down_names[ev->reason]);
	p->is_ending = true;
	p->waiting = a->sh.lanes;
	for (unsigned i = 0; i < a->sh.lanes; i++) {
		struct agent_command *cmd = agent_command_new(a, i, LANE_PEER_DOWN, lane_let_go);

		if (!cmd)
			abort(); /* the lane would keep memory that is about to be freed */
		cmd->c.slot = ev->slot;
		cmd->tag = ev->slot;
		agent_send(a, cmd);
	}
}

void agent_peers_free(struct agent *a)
{
	for (uint32_t i = 0; a->peer && i < a->sh.associations; i++)
		free_flows(a, &a->peer[i]);
}

/* Whoever sends packets can be one, so that they must not fill the log. */
static void tell_conflict(struct agent *a)
{
	static struct log_rate rate = LOG_RATE(1, 10000);
	struct spl_name rid;

	if (assoc_conflict(a->assoc, &rid))
		log_limited(&rate, LOG_LEVEL_WARN, "agent",
			    "spotlane.runtime.mesh_node.routing_id_conflict mesh=%.*s rid=%.*s: "
			    "a peer with the RID of another one is refused",
			    a->cfg.mesh.len, a->cfg.mesh.b, rid.len, rid.b);
}

void agent_peers_poll(struct agent *a)
{
	struct assoc_event ev;

	if (!a->assoc)
		return;
	while (assoc_event(a->assoc, a->now, &ev)) {
		if (ev.type == ASSOC_UP)
			on_up(a, &ev);
		else if (ev.type == ASSOC_DOWN)
			on_down(a, &ev);
	}
	tell_conflict(a);
	segment_set(&a->sh.stats->associations, assoc_count(a->assoc));
}
