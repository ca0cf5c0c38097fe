/* SPDX-License-Identifier: BSD-3-Clause */
/* A node in the hands of a test: see t_node.h. */
#include "tests/lib/t_node.h"

#include "common/clock.h"
#include "common/wire_msg.h"
#include "dataplane/observe/segment.h"
#include "tests/lib/t_main.h"
#include "tests/lib/t_wait.h"

#include <CUnit/CUnit.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NEED(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "t_node: %s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort(); \
		} \
	} while (0)

#define CREDIT_POOL (256ull << 20)
#define QUIET	    8 /* rounds without work */
static const struct neigh_times times = NEIGH_TIMES_DEFAULT;

static void no_probe(void *ctx, uint32_t ip, const uint8_t *mac)
{
}

static void no_frame(void *ctx, void *frame, const uint8_t *mac)
{
	rte_pktmbuf_free(frame);
}

static void make_shared(struct t_node *n, const struct t_node_conf *c)
{
	static struct neigh *neigh;
	static unsigned made;
	char name[32];

	snprintf(name, sizeof(name), "node%u", made++);
	n->sh.pool = t_pool(name, c->mbufs ? c->mbufs : 8192, sizeof(struct lane_buffer));
	t_port_make(&n->wire, name, c->lanes + 1, n->sh.pool);
	n->wire.vouches = true;
	t_port_up(&n->wire, name, &n->port, c->lanes);
	n->sh.ports = &n->port;
	n->sh.n_ports = 1;
	n->sh.lanes = c->lanes;
	n->sh.associations = T_NODE_PEERS;
	n->sh.pool_low = c->pool_low;
	n->sh.fake_ns = c->fake_ns;
	n->sh.tsc_hz = c->fake_ns ? CLOCK_NS_PER_S : rte_get_tsc_hz();
	NEED(hop_init(&n->sh.hop, HOP_USERS(c->lanes)) == 0);
	n->sh.tx_net = tx_net_create(&n->port, 1, c->lanes + 1, NULL, NULL);
	NEED(n->sh.tx_net);
	NEED((n->sh.stats =
		      segment_create(c->lanes, 1, c->n_stages, 1, n->sh.tsc_hz, &n->stats_fd)));
	if (!neigh) {
		struct neigh_ops ops = {NULL, no_probe, no_frame};

		neigh = neigh_create(16, &times, &ops, 1);
		NEED(neigh);
	}
	n->sh.neigh[0] = neigh_published(neigh);
	atomic_init(&n->sh.lease_deadline, UINT64_MAX);
	n->sh.trace = SPL_TRACE_DEFAULT;
	for (int i = 0; i < WIRE_CLASSES; i++)
		atomic_init(&n->sh.credit[i], n->credit);
}

void t_node_start(struct t_node *n, const struct t_node_conf *c)
{
	struct lane_conf conf = {
		.flows_max = T_NODE_PEERS,
		.spot = {.lanes = c->lanes,
			 .spots_max = c->spots_max ? c->spots_max : 65536,
			 .records = c->records ? c->records : 65536,
			 .calls = 16384,
			 .commands = 4096,
			 .timers = c->timers ? c->timers : 4096,
			 .timers_per_spot = 16,
			 .subscriptions = 4096,
			 .channels = 1,
			 .channel = {spl_channel_key("world", 5)},
			 .heap_bytes = c->heap_bytes ? c->heap_bytes : 32u << 20,
			 .object_bytes = 1ull << 30,
			 .queue_count = c->queue_count ? c->queue_count : 4096,
			 .queue_bytes = 64u << 20,
			 .life_count = 256,
			 .life_bytes = 4u << 20,
			 .life_cap = 8,
			 .turn_budget_us = 50,
			 .turn_overrun_us = c->turn_overrun_us,
			 .waiters = c->waiters ? c->waiters : 64,
			 .send_ms = 1000,
			 .message_max = SPL_MESSAGE_BYTES_MAX,
			 .request_ms = 30000,
			 .create_ms = 30000,
			 .fake_clock = c->fake_ns,
			 .secret = {1, 2, 3, 4}},
	};

	memset(n, 0, sizeof(*n));
	n->credit = c->credit ? c->credit : CREDIT_POOL;
	make_shared(n, c);
	for (unsigned i = 0; i < c->n_stages; i++) {
		uint32_t which;

		n->slots[i] = calloc(spot_stage_slots(c->stages[i]), sizeof(struct spot_handler));
		NEED(n->slots[i] && i < T_NODE_STAGES);
		NEED(spot_stage_build(&n->stage[i], c->stages[i], n->slots[i], (uint16_t)i,
				      &which) == 0);
		n->n_stages++;
	}
	for (unsigned i = 0; i < c->lanes; i++) {
		struct spot_conf plan = conf.spot;

		plan.lane = i;
		plan.clock_hz = n->sh.tsc_hz;
		n->lane[i] = lane_create(&n->sh, i, &conf);
		NEED(n->lane[i]);
		spot_plan_init(&n->plan[i], &plan);
	}
	n->mbufs_used = t_pool_used(n->sh.pool);
}

/* ---- the agent's place ---- */

static unsigned take_from_lanes(struct t_node *n)
{
	unsigned work = 0;

	for (unsigned i = 0; i < n->sh.lanes; i++) {
		void *item[64];
		unsigned k = hop_pop(&n->sh.hop, i, n->sh.lanes, item, 64);

		for (unsigned j = 0; j < k; j++) {
			void *p = hop_pointer(item[j]);

			if (hop_kind(item[j]) == HOP_FRAME) {
				rte_pktmbuf_free(p);
			} else if (hop_kind(item[j]) == HOP_COMMAND) {
				*(bool *)((struct lane_command *)p)->owner = true;
			} else if (((struct lane_event *)p)->kind >= LANE_EV_FAILED) {
				t_node_failure(n, p);
			} else {
				NEED(n->n_events < T_COUNT(n->event));
				n->event[n->n_events++] = p;
			}
		}
		work += k;
	}
	return work;
}

void t_node_command(struct t_node *n, struct lane_command *c)
{
	bool done = false;
	void *item = hop_tag(c, HOP_COMMAND);

	c->owner = &done;
	NEED(hop_push(&n->sh.hop, n->sh.lanes, c->lane, &item, 1) == 1);
	for (int i = 0; i < 1000000 && !done; i++)
		t_node_step(n);
	NEED(done);
}

static void back(struct t_node *n, unsigned lane)
{
	static const enum spot_region r[] = {SPOT_MEM_TABLE, SPOT_MEM_OBJECTS};

	for (int i = 0; i < 2; i++)
		NEED(n->plan[lane].bytes[r[i]] <= n->lane[lane]->region_bytes[r[i]]);
}

static void name(struct lane_command *c, const struct t_node *n, const char *id)
{
	c->key = spl_spot_key(id, strlen(id));
	c->lane = (uint16_t)spl_key_lane(&c->key, n->sh.lanes);
	NEED(spl_name_set(&c->id, id, strlen(id)) == 0);
}

enum spot_verdict t_node_create(struct t_node *n, const char *id, const char *type)
{
	static uint64_t generation = 1;
	struct lane_command c = {.verb = LANE_PREPARE};
	struct lane_command home = {.verb = LANE_FREE};

	name(&c, n, id);
	c.object_generation = generation++;
	for (unsigned i = 0; i < n->n_stages; i++)
		if (strcmp(n->stage[i].desc->type, type) == 0)
			c.stage = &n->stage[i];
	NEED(c.stage);
	NEED(spot_plan_add(&n->plan[c.lane], c.stage, c.id.len) == 0);
	back(n, c.lane);
	t_node_command(n, &c);
	if (c.mem) {
		home.lane = c.lane;
		home.mem = c.mem;
		t_node_command(n, &home);
	}
	if (c.verdict != SPOT_ACCEPTED)
		return (enum spot_verdict)c.verdict;
	c.verb = LANE_PUBLISH;
	t_node_command(n, &c);
	return (enum spot_verdict)c.verdict;
}

static void find_generation(struct t_node *n, struct lane_command *c)
{
	struct lane_page *page = calloc(1, sizeof(*page));
	struct lane_command i = {.verb = LANE_INVENTORY, .lane = c->lane, .page = page};

	do {
		t_node_command(n, &i);
		for (unsigned k = 0; k < page->n; k++)
			if (page->item[k].id.len == c->id.len &&
			    memcmp(page->item[k].id.b, c->id.b, c->id.len) == 0)
				c->object_generation = page->item[k].object_generation;
	} while (page->more);
	free(page);
}

enum spot_verdict t_node_close(struct t_node *n, const char *id)
{
	struct lane_command c = {.verb = LANE_CLOSE, .reason = SPL_CLOSING_EXPLICIT};

	name(&c, n, id);
	find_generation(n, &c);
	t_node_command(n, &c);
	return (enum spot_verdict)c.verdict;
}

/* ---- peers ---- */

static void peer_sent(void *host, void *handle, bool acked)
{
	struct t_peer *p = host;

	p->in_flight--;
	free(handle);
}

static void *peer_mem_get(void *host, size_t bytes)
{
	return malloc(bytes);
}

static void peer_mem_put(void *host, void *mem)
{
	free(mem);
}

static void peer_buf_put(void *host, void *buf)
{
	free(buf);
}

static uint64_t peer_credit_take(void *host, enum wire_class cls, uint64_t bytes)
{
	((struct t_peer *)host)->credit += bytes;
	return bytes;
}

static void peer_credit_give(void *host, enum wire_class cls, uint64_t bytes)
{
	((struct t_peer *)host)->credit -= bytes;
}

static const struct flow_env peer_env = {
	.sent = peer_sent,
	.mem_get = peer_mem_get,
	.mem_put = peer_mem_put,
	.buf_put = peer_buf_put,
	.credit_take = peer_credit_take,
	.credit_give = peer_credit_give,
};

static void *flow_memory(const struct flow_params *fp)
{
	size_t bytes = flow_bytes(fp);
	void *mem;

	NEED(bytes > 0);
	mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	NEED(mem);
	return mem;
}

static void node_side(struct t_peer *p, unsigned i, const struct flow_params *ours)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 2};
	const struct frame_local *l = &p->node->port.local;
	struct lane_flow *f = calloc(1, sizeof(*f));
	struct lane_command c = {.verb = LANE_PEER_UP, .lane = (uint16_t)i};

	NEED(f);
	f->params = *ours;
	f->params.rx_id = ours->tx_id;
	f->params.tx_id = ours->rx_id;
	f->params.lane = (uint8_t)i;
	f->params.peer_lane = 0;
	f->lifecycle = 1000 + p->slot;
	for (int k = 0; k < WIRE_CLASSES; k++)
		build_path_init(&f->path[k], l, (uint16_t)(l->udp_base + 128 * k + i), mac, p->ip,
				5000);
	f->mem = flow_memory(&f->params);
	p->node_flows[i] = f;
	c.up = (struct lane_peer_up){.slot = p->slot,
				     .ip = p->ip,
				     .generation = 1,
				     .lanes = 1,
				     .rx_id = f->params.rx_id,
				     .flows = f};
	t_node_command(p->node, &c);
}

struct t_peer *t_node_peer(struct t_node *n)
{
	struct t_peer *p = calloc(1, sizeof(*p));

	NEED(p && n->n_peers < T_NODE_PEERS);
	p->node = n;
	p->slot = n->n_peers;
	p->ip = 0x0a000002u + p->slot;
	p->next_correlation = 1;
	for (unsigned i = 0; i < n->sh.lanes; i++) {
		struct flow_params fp;

		flow_params_default(&fp);
		fp.rx_id = 0x1111111100000000ull + p->slot;
		fp.tx_id = 0x2222222200000000ull + p->slot;
		fp.lane = 0;
		fp.peer_lane = (uint8_t)i;
		fp.msg_bytes = fp.peer_msg_bytes = wire_message_bytes(SPL_MESSAGE_BYTES_MAX);
		for (int c = 0; c < WIRE_CLASSES; c++) {
			if (fp.cls[c].credit_max < wire_charge(fp.msg_bytes))
				fp.cls[c].credit_max = wire_charge(fp.msg_bytes);
			fp.cls[c].peer_window = fp.cls[c].rx_slots;
			fp.cls[c].peer_credit = fp.cls[c].credit_min;
		}
		node_side(p, i, &fp);
		p->flow[i] = flow_init(flow_memory(&fp), &fp, &peer_env, p);
		NEED(p->flow[i]);
	}
	n->peer[n->n_peers++] = p;
	return p;
}

uint64_t t_peer_send(struct t_peer *p, uint8_t kind, const char *id, const char *packet,
		     const void *payload, uint32_t bytes, uint32_t budget_us)
{
	struct wire_msg h = {.kind = kind, .error = SPL_OK, .content = SPL_CONTENT_RAW};
	uint8_t *m = malloc(WIRE_MSG_BYTES + bytes);
	unsigned lane;

	NEED(m);
	h.target = spl_spot_key(id, strlen(id));
	h.packet = spl_packet_key(packet, strlen(packet));
	h.correlation = kind == SPL_MSG_SPOT_REQUEST ? p->next_correlation++ : 0;
	h.budget_us = budget_us;
	wire_msg_put(m, &h);
	if (bytes)
		memcpy(m + WIRE_MSG_BYTES, payload, bytes);
	lane = spl_key_lane(&h.target, p->node->sh.lanes);
	T_UNTIL(flow_send(p->flow[lane], WIRE_APP, m, WIRE_MSG_BYTES + bytes, m) != -EAGAIN,
		t_node_step(p->node));
	p->in_flight++;
	p->sends++;
	return h.correlation;
}

void t_peer_raw(struct t_peer *p, unsigned lane, const void *message, uint32_t bytes)
{
	void *m = malloc(bytes);

	NEED(m);
	memcpy(m, message, bytes);
	NEED(flow_send(p->flow[lane], WIRE_APP, m, bytes, m) == 0);
	p->in_flight++;
}

const struct t_reply *t_peer_reply(const struct t_peer *p, uint64_t correlation)
{
	for (unsigned i = 0; i < T_COUNT(p->reply) && i < p->n_replies; i++)
		if (p->reply[i].correlation == correlation)
			return &p->reply[i];
	return NULL;
}

static void take_reply(struct t_peer *p, const struct flow_msg *m)
{
	struct t_reply *r = &p->reply[p->n_replies++ % T_COUNT(p->reply)];
	struct wire_msg h;

	NEED(wire_msg_get(&h, m->data, m->len) == 0 && h.kind == SPL_MSG_REPLY);
	*r = (struct t_reply){.correlation = h.correlation,
			      .kind = h.error,
			      .content = h.content,
			      .bytes = h.payload_len};
	memcpy(r->data, h.payload,
	       h.payload_len < sizeof(r->data) ? h.payload_len : sizeof(r->data));
}

static void take_packet(struct t_peer *p, const uint8_t *pkt, uint32_t len, uint64_t now)
{
	struct flow_msg msgs[64];
	struct flow_sink sink = {msgs, 0, 64};
	uint8_t *copy = malloc(len + sizeof(uint64_t));
	struct flow *f = p->flow[wire_flow_src_lane(pkt)];
	struct flow_rx_result r;
	uint64_t *refs = (uint64_t *)(void *)copy;

	NEED(copy);
	/* Each message owns one reference of a counted copy: here each simply gets freed with it.
	 */
	memcpy(copy + sizeof(*refs), pkt, len);
	r = flow_rx(f, copy + sizeof(*refs), len, copy, now, &sink);
	*refs = r.refs;
	for (uint32_t i = 0; i < sink.n; i++) {
		take_reply(p, &msgs[i]);
		flow_consumed(f, (enum wire_class)msgs[i].cls, msgs[i].charge);
		if (msgs[i].is_mem)
			free(msgs[i].ref);
		else if (--*(uint64_t *)msgs[i].ref == 0)
			free(msgs[i].ref);
	}
	NEED(!flow_drain(f, &(struct flow_sink){msgs, 64, 64}));
	if (r.refs == 0)
		free(copy);
}

static unsigned from_node(struct t_node *n, uint64_t now)
{
	uint8_t frame[T_FRAME_MAX];
	unsigned work = 0;
	size_t len;

	while ((len = t_port_pull_any(&n->wire, frame)) > 0) {
		uint32_t ip = frame_be32(frame + 30);
		const char *wrong = t_frame_check(frame, len);

		CU_ASSERT_PTR_NULL(wrong);
		NEED(ip >= 0x0a000002u && ip - 0x0a000002u < n->n_peers);
		take_packet(n->peer[ip - 0x0a000002u], frame + FRAME_HDR_BYTES,
			    (uint32_t)len - FRAME_HDR_BYTES, now);
		work++;
	}
	return work;
}

static unsigned to_node(struct t_peer *p, unsigned lane, uint64_t now)
{
	uint8_t pkt[SPL_DATAGRAM_BYTES], frame[T_FRAME_MAX];
	enum wire_class cls;
	unsigned work = 0;
	uint32_t len;

	if (flow_next_timer(p->flow[lane]) <= now)
		flow_on_timer(p->flow[lane], now);
	while ((len = flow_tx(p->flow[lane], pkt, sizeof(pkt), now, &cls)) > 0) {
		struct t_frame f = t_frame_udp(&p->node->port.local, lane);

		work++;
		if (p->drop_every && ++p->drop_count % p->drop_every == 0)
			continue;
		f.src_ip = p->ip;
		f.src[5] = (uint8_t)(2 + p->slot);
		f.dport = (uint16_t)(f.dport + (cls == WIRE_INFRA ? 128 : 0));
		f.payload = pkt;
		f.payload_len = len;
		if (p->spoil_every && ++p->spoil_count % p->spoil_every == 0) {
			f.udp_csum = 1;
			p->spoiled++;
		}
		t_port_push(&p->node->wire, frame, t_frame_write(&f, frame), 0);
	}
	return work;
}

unsigned t_node_step(struct t_node *n)
{
	uint64_t now = n->sh.fake_ns ? *n->sh.fake_ns : clock_boot_ns();
	unsigned work = 0;

	for (unsigned i = 0; i < n->n_peers; i++)
		for (unsigned k = 0; k < n->sh.lanes; k++)
			work += to_node(n->peer[i], k, now);
	for (unsigned i = 0; i < n->sh.lanes; i++)
		work += lane_pass(n->lane[i]);
	work += take_from_lanes(n);
	work += from_node(n, now);
	return work;
}

static bool all_quiet(const struct t_node *n)
{
	for (unsigned i = 0; i < n->n_peers; i++)
		for (unsigned k = 0; k < n->sh.lanes; k++)
			if (n->peer[i]->flow[k] && !flow_is_idle(n->peer[i]->flow[k]))
				return false;
	for (unsigned i = 0; i < n->sh.lanes; i++)
		if (spot_ready(n->lane[i]->spots) || n->lane[i]->dirty || n->lane[i]->n_input)
			return false;
	return true;
}

void t_node_settle(struct t_node *n)
{
	int quiet = 0;

	for (int i = 0; i < 10000000 && quiet < QUIET; i++)
		quiet = t_node_step(n) == 0 && all_quiet(n) ? quiet + 1 : 0;
	CU_ASSERT_EQUAL(quiet, QUIET);
}

/* ---- the end ---- */

static void peer_end(struct t_node *n, struct t_peer *p)
{
	for (unsigned i = 0; i < n->sh.lanes; i++) {
		struct lane_command c = {
			.verb = LANE_PEER_DOWN, .lane = (uint16_t)i, .slot = p->slot};

		free(flow_fini(p->flow[i]));
		p->flow[i] = NULL;
		c.owner = NULL;
		{
			void *item = hop_tag(&c, HOP_COMMAND);
			bool done = false;

			c.owner = &done;
			NEED(hop_push(&n->sh.hop, n->sh.lanes, i, &item, 1) == 1);
			for (int k = 0; k < 100000 && !done; k++) {
				lane_pass(n->lane[i]);
				take_from_lanes(n);
			}
			NEED(done);
		}
		free(p->node_flows[i]->mem);
		free(p->node_flows[i]);
	}
	CU_ASSERT_EQUAL(p->in_flight, 0);
	CU_ASSERT_EQUAL(p->credit, 0);
	free(p);
}

void t_node_peer_gone(struct t_node *n)
{
	peer_end(n, n->peer[--n->n_peers]);
}

void t_node_stop(struct t_node *n)
{
	uint8_t frame[T_FRAME_MAX];

	t_node_settle(n);
	t_node_check_laws(n);
	for (unsigned i = 0; i < n->n_events; i++) {
		void *item = hop_tag(n->event[i], HOP_EVENT);

		NEED(hop_push(&n->sh.hop, n->sh.lanes, n->event[i]->lane, &item, 1) == 1);
	}
	for (unsigned i = 0; i < n->n_peers; i++)
		peer_end(n, n->peer[i]);
	n->n_peers = 0;
	for (int k = 0; k < 64; k++)
		for (unsigned i = 0; i < n->sh.lanes; i++)
			lane_pass(n->lane[i]);
	while (t_port_pull_any(&n->wire, frame) > 0)
		;
	for (unsigned i = 0; i < n->sh.lanes; i++) {
		CU_ASSERT(lanemem_check(n->lane[i]->mem));
		tx_fini(&n->lane[i]->tx);
	}
	CU_ASSERT_EQUAL(t_pool_used(n->sh.pool), n->mbufs_used);
	CU_ASSERT_EQUAL(atomic_load(&n->sh.credit[WIRE_APP]), n->credit);
	CU_ASSERT_EQUAL(atomic_load(&n->sh.credit[WIRE_INFRA]), n->credit);
	for (unsigned i = 0; i < n->sh.lanes; i++)
		lane_destroy(n->lane[i]);
	tx_net_destroy(n->sh.tx_net);
	hop_fini(&n->sh.hop);
	free(n->sh.topic_lanes);
	t_port_down(&n->wire, &n->port);
	rte_mempool_free(n->sh.pool);
	for (unsigned i = 0; i < n->n_stages; i++)
		free(n->slots[i]);
	segment_destroy(n->sh.stats);
	close(n->stats_fd);
}
