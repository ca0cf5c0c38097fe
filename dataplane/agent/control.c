/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: packets of control: configuration, identity, lease, host state, stop; Spots and
 * calls are object.c's and mesh.c's. A packet that does not decode is answered with ProtocolError
 * when it asked for something, and counted in the log.
 */
#include "dataplane/agent/agent.h"

#include "common/clock.h"

#include <errno.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXIT_ENVIRONMENT 75 /* EX_TEMPFAIL: the machine is not ready */
#define EXIT_CONFIG	 78 /* EX_CONFIG */

static struct pack_bytes name_view(const struct spl_name *n)
{
	return (struct pack_bytes){n->b, n->len};
}

struct pack_writer agent_packet(struct agent *a, uint16_t type, uint16_t flags, uint64_t corr)
{
	struct pack_writer w = {.p = a->out, .cap = sizeof(a->out)};

	a->is_void = (flags & DP_F_REP) && corr == 0;
	dp_begin(&w, type, flags, a->epoch, corr);
	return w;
}

void agent_packet_send(struct agent *a, struct pack_writer *w, int fd)
{
	int rc = dp_finish(w, fd >= 0);

	if (a->is_void)
		return;
	if (!rc)
		rc = sock_send(a->sock, w, fd);
	if (rc && rc != -ENOTCONN)
		log_warn("agent", "packet to control is lost error=%s", strerror(-rc));
}

void agent_reply_ok(struct agent *a, uint64_t corr, uint8_t kind, const char *text)
{
	struct pack_writer w = agent_packet(a, DP_OK, DP_F_REP, corr);
	struct dp_ok m = {.kind = kind, .text = dp_text(text)};

	dp_put_ok(&w, &m);
	agent_packet_send(a, &w, -1);
}

static void say_hello(struct agent *a)
{
	struct pack_writer w = agent_packet(a, DP_HELLO, DP_F_EVT, 0);
	struct dp_hello m = {
		.pid = (uint32_t)getpid(),
		.state = (uint8_t)a->state,
		.node_gen = a->node_gen,
		.lease_gen = a->lease_gen,
		.config_hash = a->cfg.config_hash,
		.entry_gen = a->entry_gen,
		.entry_ver = a->entry_ver,
		.rid = name_view(&a->rid),
		.owner_id = name_view(&a->owner_id),
		.entry_id = name_view(&a->entry_id),
		.version = dp_text(SPL_VERSION),
	};

	dp_put_hello(&w, &m);
	agent_packet_send(a, &w, -1);
}

void agent_on_peer(void *ctx, bool connected)
{
	struct agent *a = ctx;
	struct agent_command *cmd;

	log_info("agent", connected ? "control is connected" : "control is gone");
	if (connected) {
		say_hello(a);
		return;
	}
	a->is_asked = false; /* the next one is asked again to stop, or nobody is */
	/* What is under way answers nobody: the next control numbers its requests anew. */
	TAILQ_FOREACH (cmd, &a->commands, all)
		cmd->corr = 0;
	if (a->is_running)
		agent_ops_lost(a);
}

void agent_ask_shutdown(struct agent *a, const char *cause)
{
	struct pack_writer w = agent_packet(a, DP_SHUTDOWN_REQ, DP_F_EVT, 0);
	struct dp_shutdown_req m = {.cause = dp_text(cause)};

	a->is_asked = true;
	if (a->state != DP_STATE_IDENTIFIED || !sock_connected(a->sock)) {
		log_warn("agent",
			 "stopping without control: what this node owns stays Unavailable "
			 "until it is reclaimed cause=%s",
			 cause);
		a->is_stopping = true;
		a->exit_code = a->state == DP_STATE_IDENTIFIED;
		return;
	}
	log_info("agent", "asking control for an orderly stop cause=%s", cause);
	dp_put_shutdown_req(&w, &m);
	agent_packet_send(a, &w, -1);
}

/* ---- configuration ---- */

static void put_types(struct agent *a, struct pack_writer *out)
{
	for (unsigned i = 0; i < stage_set_count(a->stages); i++) {
		const struct spl_stage *d = stage_set_at(a->stages, (uint16_t)i)->desc;
		struct dp_stage_type t = {
			.kind = (uint8_t)d->kind,
			.mode = (uint8_t)d->mode,
			.relocation = (uint8_t)d->relocation,
			.state_bytes = d->state_bytes,
			.type = dp_text(d->type),
			.version = dp_text(d->version ? d->version : ""),
			.module = dp_text(stage_set_path(a->stages, (uint16_t)i)),
		};

		if (t.module.len > 255)
			t.module.len = 255;
		dp_put_stage_type(out, &t);
	}
}

static void put_ports(struct agent *a, struct pack_writer *out)
{
	for (unsigned i = 0; i < a->sh.n_ports; i++) {
		char device[PORT_NAME_BYTES] = "";
		struct dp_port_up p = {.name = dp_text(a->ports[i].config.name)};

		port_device_name(a->ports[i].config.device, device);
		p.driver = dp_text(device);
		for (int k = 0; k < 6; k++)
			p.mac = p.mac << 8 | a->ports[i].local.mac[k];
		dp_put_port_up(out, &p);
	}
}

static void reply_configured(struct agent *a, uint64_t corr, int exit_code, const char *text)
{
	static uint8_t lists[2][DP_INLINE_MAX / 2];
	struct pack_writer types = {.p = lists[0], .cap = sizeof(lists[0])};
	struct pack_writer ports = {.p = lists[1], .cap = sizeof(lists[1])};
	struct pack_writer w = agent_packet(a, DP_CONFIGURED, DP_F_REP, corr);
	struct dp_configured m = {.ok = exit_code == 0,
				  .exit_code = (uint8_t)exit_code,
				  .huge = a->is_huge,
				  .lanes = a->sh.lanes,
				  .text = dp_text(text)};

	if (exit_code == 0) {
		put_types(a, &types);
		put_ports(a, &ports);
	}
	if (m.text.len > 255)
		m.text.len = 255;
	m.types = (struct pack_bytes){types.p, (uint32_t)types.len};
	m.ports = (struct pack_bytes){ports.p, (uint32_t)ports.len};
	dp_put_configured(&w, &m);
	agent_packet_send(a, &w, exit_code == 0 ? a->stats_fd : -1);
}

static void on_config(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	char err[AGENT_ERR_BYTES] = "";
	struct dp_config m;
	int rc;

	if (a->state != DP_STATE_WAITING) {
		reply_configured(a, p->h.corr, 0, "");
		return;
	}
	dp_get_config(&r, &m);
	rc = dp_done(&r) ? runcfg_take(&a->cfg, &m, err, sizeof(err)) : -EPROTO;
	if (rc == -EPROTO)
		snprintf(err, sizeof(err), "CONFIG from control does not decode");
	a->exit_code = EXIT_CONFIG;
	if (!rc) {
		rc = agent_start(a, err, sizeof(err));
		if (rc == -ENOMEM || rc == -ENOSPC || rc == -EBUSY || rc == -EIO)
			a->exit_code = EXIT_ENVIRONMENT;
	}
	if (rc) {
		log_error("agent", "cannot start: %s", err);
		reply_configured(a, p->h.corr, a->exit_code, err);
		sock_flush(a->sock);
		a->is_stopping = true;
		return;
	}
	a->exit_code = 0;
	a->state = DP_STATE_CONFIGURED;
	reply_configured(a, p->h.corr, 0, "");
	log_info("agent", "running lanes=%u ports=%u stages=%u hugepages=%s dpdk=%s", a->sh.lanes,
		 a->sh.n_ports, stage_set_count(a->stages), a->is_huge ? "yes" : "no",
		 rte_version());
}

/* ---- identity and lease ---- */

static void on_identity(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	char err[AGENT_ERR_BYTES] = "";
	struct dp_identity m;

	dp_get_identity(&r, &m);
	if (!dp_done(&r) || a->state == DP_STATE_WAITING || !spl_name_valid(m.rid.p, m.rid.len) ||
	    !spl_name_valid(m.owner_id.p, m.owner_id.len) ||
	    !spl_name_valid(m.entry_id.p, m.entry_id.len)) {
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "IDENTITY does not decode");
		return;
	}
	if (a->state == DP_STATE_IDENTIFIED && m.node_gen != a->node_gen) {
		agent_reply_ok(a, p->h.corr, SPL_E_INVALID_OPERATION, "another lifecycle");
		return;
	}
	(void)spl_name_set(&a->rid, m.rid.p, m.rid.len); /* all three were looked at above */
	(void)spl_name_set(&a->owner_id, m.owner_id.p, m.owner_id.len);
	(void)spl_name_set(&a->entry_id, m.entry_id.p, m.entry_id.len);
	a->node_gen = m.node_gen;
	a->lease_gen = m.lease_gen;
	a->entry_gen = m.entry_gen;
	a->entry_ver = m.entry_ver;
	atomic_store_explicit(&a->sh.lease_deadline, m.lease_deadline, memory_order_release);
	if (a->state != DP_STATE_IDENTIFIED && agent_identify(a, err, sizeof(err))) {
		agent_reply_ok(a, p->h.corr, SPL_E_INTERNAL_FAILURE, err);
		return;
	}
	a->state = DP_STATE_IDENTIFIED;
	agent_reply_ok(a, p->h.corr, SPL_OK, "");
}

static void on_lease(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct dp_lease_extend m;

	dp_get_lease_extend(&r, &m);
	/* An older token's renewal changes nothing (A-LEASE-11). */
	if (dp_done(&r) && m.lease_gen == a->lease_gen)
		atomic_store_explicit(&a->sh.lease_deadline, m.deadline, memory_order_release);
}

static void on_host_state(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct dp_host_state m;

	dp_get_host_state(&r, &m);
	if (!dp_done(&r) || m.state > DP_HOST_ERROR) {
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "HOST_STATE does not decode");
		return;
	}
	a->host_state = (enum dp_host)m.state;
	a->drain_deadline = m.deadline;
	if (m.state == DP_HOST_DRAINING)
		agent_seal(a, p->h.corr);
	else
		agent_reply_ok(a, p->h.corr, SPL_OK, "");
}

static void on_trace(struct agent *a, const struct sock_packet *p)
{
	struct pack_reader r = p->body;
	struct dp_trace m;

	dp_get_trace(&r, &m);
	if (!dp_done(&r) || m.level >= SPL_TL_COUNT || m.share > SPL_TRACE_ALL) {
		agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "TRACE does not decode");
		return;
	}
	for (unsigned i = 0; m.level >= SPL_TL_NORMAL && i < a->sh.lanes; i++) {
		struct lane *l = a->lane[i];

		if (madvise(l->region[SPOT_MEM_FLOWS], l->region_bytes[SPOT_MEM_FLOWS],
			    MADV_POPULATE_WRITE)) {
			agent_reply_ok(a, p->h.corr, SPL_E_CAPACITY_EXCEEDED,
				       "no memory for the flows of a lane");
			return;
		}
	}
	/* Relaxed: the table is never moved, and what it holds is of no other era. */
	atomic_store_explicit(&a->sh.trace, spl_trace_word((enum spl_trace_level)m.level, m.share),
			      memory_order_relaxed);
	agent_reply_ok(a, p->h.corr, SPL_OK, "");
}

static void on_stop(struct agent *a, const struct sock_packet *p)
{
	log_info("agent", "control says stop");
	agent_reply_ok(a, p->h.corr, SPL_OK, "");
	sock_flush(a->sock);
	a->exit_code = 0;
	a->is_stopping = true;
}

void agent_on_packet(void *ctx, const struct sock_packet *p)
{
	struct agent *a = ctx;
	bool before = p->h.type == DP_CONFIG || p->h.type == DP_EXIT;

	if (!before && !a->is_running) {
		if (p->h.flags & DP_F_REQ)
			agent_reply_ok(a, p->h.corr, SPL_E_NOT_CONFIGURED, "not configured yet");
		return;
	}
	if (p->h.epoch != a->epoch && p->h.epoch != 0) {
		if (p->h.flags & DP_F_REQ)
			agent_reply_ok(a, p->h.corr, SPL_E_UNAVAILABLE, "another epoch");
		return;
	}
	switch (p->h.type) {
	case DP_CONFIG:
		on_config(a, p);
		break;
	case DP_IDENTITY:
		on_identity(a, p);
		break;
	case DP_LEASE_EXTEND:
		on_lease(a, p);
		break;
	case DP_LEASE_LOST:
		log_warn("agent", "the lease is lost: fenced");
		atomic_store_explicit(&a->sh.lease_deadline, 0, memory_order_release);
		break;
	case DP_HOST_STATE:
		on_host_state(a, p);
		break;
	case DP_RESYNC:
		agent_resync(a, p);
		break;
	case DP_OBJ_PREPARE:
		agent_prepare(a, p);
		break;
	case DP_OBJ_PUBLISH:
		agent_publish(a, p);
		break;
	case DP_OBJ_DISCARD:
		agent_discard(a, p);
		break;
	case DP_OBJ_CLOSE:
		agent_close_spot(a, p);
		break;
	case DP_MESH_OP_DONE:
	case DP_OK: /* refuses a MESH_OP */
		agent_mesh_done(a, p);
		break;
	case DP_SPOT_CALL:
		agent_call(a, p);
		break;
	case DP_TRACE:
		on_trace(a, p);
		break;
	case DP_EXIT:
		on_stop(a, p);
		break;
	default:
		if (p->h.flags & DP_F_REQ)
			agent_reply_ok(a, p->h.corr, SPL_E_PROTOCOL_ERROR, "unknown type");
	}
}
