/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration as the dataplane gets it: see host_priv.h. Pure but for memory. */
#include "common/credit.h"
#include "control/host/host_priv.h"
#include "common/wire.h"

#include <errno.h>
#include <openssl/sha.h>
#include <spotlane/limits.h>
#include <stdio.h>
#include <stdlib.h>

#define TOO_LARGE "a text is longer than 255 bytes, or all together than 32 KiB"

_Static_assert(CONF_STAGES_MAX == DP_STAGES_MAX, "what is read is what is taken");

struct lists {
	uint8_t lcores[2 * CONF_LIST_MAX];
	uint8_t eal[DP_LIST_BYTES_MAX], ports[DP_LIST_BYTES_MAX], stages[DP_LIST_BYTES_MAX],
		dirs[DP_LIST_BYTES_MAX], channels[DP_LIST_BYTES_MAX];
};

static int complain(char *err, size_t n, const char *what, const char *why)
{
	snprintf(err, n, "%s: %s", what, why);
	return -EINVAL;
}

static struct pack_bytes written(const struct pack_writer *w)
{
	return (struct pack_bytes){w->p, (uint32_t)w->len};
}

static int put_texts(struct pack_bytes *out, uint8_t *buf, const struct conf_texts *t)
{
	struct pack_writer w = {.p = buf, .cap = DP_LIST_BYTES_MAX};

	for (unsigned i = 0; i < t->n; i++)
		pack_put_text(&w, dp_text(t->v[i]));
	*out = written(&w);
	return w.overflow ? -EINVAL : 0;
}

static int put_ports(struct pack_bytes *out, uint8_t *buf, const struct config *cfg)
{
	struct pack_writer w = {.p = buf, .cap = DP_LIST_BYTES_MAX};

	for (unsigned i = 0; i < cfg->n_ports; i++) {
		const struct conf_port *p = &cfg->ports[i];
		const struct dp_port m = {
			.name = dp_text(p->name),
			.device = dp_text(p->device),
			.ip = p->ip,
			.prefix_len = p->prefix_len,
			.gateway = p->gateway,
			.mtu = p->mtu,
			.udp_base = p->udp_base,
		};

		dp_put_port(&w, &m);
	}
	*out = written(&w);
	return w.overflow ? -EINVAL : 0;
}

static int put_stages(struct pack_bytes *out, uint8_t *buf, const struct config *cfg)
{
	struct pack_writer w = {.p = buf, .cap = DP_LIST_BYTES_MAX};

	for (unsigned i = 0; i < cfg->n_stages; i++) {
		const struct dp_stage m = {
			.module = dp_text(cfg->stages[i].module),
			.symbol = dp_text(cfg->stages[i].entry),
		};

		dp_put_stage(&w, &m);
	}
	*out = written(&w);
	return w.overflow ? -EINVAL : 0;
}

static void put_numbers(struct dp_config *m, const struct config *cfg)
{
	struct credit_bounds credit;
	uint32_t charge = wire_charge(wire_message_bytes(cfg->limits.message_max_bytes));

	config_credit(cfg, &credit);
	m->lanes = cfg->dataplane.lanes;
	m->memory_mb = cfg->dataplane.memory_mb;
	m->mbufs = cfg->dataplane.mbufs;
	m->mbufs_low = (uint32_t)((uint64_t)cfg->dataplane.lanes * cfg->dataplane.mbufs *
				  cfg->dataplane.pool_low_percent / 100);
	m->udp_base = cfg->n_ports ? cfg->ports[0].udp_base : 0;
	m->message_max = cfg->limits.message_max_bytes;
	m->credit_pool = credit.asked;
	m->credit_min = credit.flow_min;
	m->credit_max = charge > CREDIT_MAX ? charge : CREDIT_MAX;
	m->associations = cfg->limits.peers;
	m->spots_max = cfg->limits.spots_per_lane;
	m->records_max = (uint32_t)credit.records;
	m->lane_memory = credit.lane_memory;
	m->queue_count = cfg->limits.spot_queue_count;
	m->queue_bytes = cfg->limits.spot_queue_bytes > UINT32_MAX
				 ? UINT32_MAX
				 : (uint32_t)cfg->limits.spot_queue_bytes;
	m->lifecycle_queue_count = cfg->limits.lifecycle_queue_count;
	m->lifecycle_queue_bytes = (uint32_t)cfg->limits.lifecycle_queue_bytes;
	m->timers_max = cfg->limits.timers_per_lane;
	m->subscriptions_max = cfg->limits.subscriptions_per_lane;
	m->timers_per_spot = cfg->limits.timers_per_spot;
	m->send_waiters = cfg->limits.send_waiters_per_lane;
	m->cpu_threads_min = cfg->workers.cpu_threads_min;
	m->cpu_threads_max = cfg->workers.cpu_threads_max;
	m->cpu_idle_ms = cfg->workers.cpu_idle_ms;
	m->cpu_queue = cfg->workers.cpu_queue;
	m->io_operations = cfg->workers.io_operations;
	m->work_result_bytes = (uint64_t)cfg->workers.results_mb << 20;
	m->instance_idle_ms = cfg->timeouts.instance_idle_ms;
	m->request_timeout_ms = cfg->timeouts.request_ms;
	m->create_timeout_ms = cfg->timeouts.create_ms;
	m->send_timeout_ms = cfg->timeouts.send_ms;
	m->turn_budget_us = cfg->dataplane.turn_budget_us;
	m->turn_overrun_us = cfg->dataplane.turn_overrun_us;
	m->lifecycle_cap = cfg->dataplane.lifecycle_cap;
	m->route_cache_ms = cfg->route.cache_age_ms;
	m->agent_cpu =
		cfg->dataplane.agent_cpu < 0 ? UINT32_MAX : (uint32_t)cfg->dataplane.agent_cpu;
	m->data_room = cfg->dataplane.data_room_bytes;
	m->idle_nap_us = cfg->dataplane.idle_nap_us;
	switch ((enum conf_hugepages)cfg->dataplane.hugepages) {
	case CONF_HUGEPAGES_NO:
		m->hugepages = 0;
		break;
	case CONF_HUGEPAGES_YES:
		m->hugepages = 1;
		break;
	case CONF_HUGEPAGES_AUTO:
		m->hugepages = 2;
		break;
	}
}

static int put_lists(struct dp_config *m, struct lists *l, const struct config *cfg, char *err,
		     size_t n)
{
	struct pack_writer w = {.p = l->lcores, .cap = sizeof(l->lcores)};

	for (unsigned i = 0; i < cfg->dataplane.lcores.n; i++)
		pack_put_u16(&w, (uint16_t)cfg->dataplane.lcores.v[i]);
	m->lcores = written(&w);
	if (put_texts(&m->eal_args, l->eal, &cfg->eal.extra_args) < 0)
		return complain(err, n, "eal.extra_args", TOO_LARGE);
	if (put_texts(&m->stage_dirs, l->dirs, &cfg->stage_dirs) < 0)
		return complain(err, n, "stage_dirs", TOO_LARGE);
	if (put_texts(&m->channels, l->channels, &cfg->channels) < 0)
		return complain(err, n, "channels", TOO_LARGE);
	if (put_stages(&m->stages, l->stages, cfg) < 0)
		return complain(err, n, "stages", TOO_LARGE);
	if (put_ports(&m->ports, l->ports, cfg) < 0)
		return complain(err, n, "ports", TOO_LARGE);
	return 0;
}

/* Which processes share hugepage files and locks of EAL: one dataplane a private directory. */
static void file_prefix(char out[32], const char *dir)
{
	uint8_t d[SHA256_DIGEST_LENGTH];

	SHA256((const uint8_t *)dir, strlen(dir), d);
	snprintf(out, 32, "spotlane-%02x%02x%02x%02x", d[0], d[1], d[2], d[3]);
}

static int encode(struct pack_writer *w, const struct dp_config *m)
{
	w->len = 0;
	dp_put_config(w, m);
	return w->overflow ? -EINVAL : 0;
}

int host_config_encode(const struct config *cfg, uint8_t **out, size_t *n, uint64_t *hash,
		       char *err, size_t err_size)
{
	struct pack_writer w = {.cap = DP_PACKET_MAX - DP_HEADER_BYTES};
	struct lists *l = malloc(sizeof(*l));
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct dp_config m = {.config_hash = 0};
	char prefix[32];
	int rc = -ENOMEM;

	w.p = malloc(w.cap);
	if (!l || !w.p) {
		snprintf(err, err_size, "out of memory");
		goto out;
	}
	file_prefix(prefix, cfg->control.private_dir);
	m.mesh = dp_text(cfg->node.mesh);
	m.file_prefix = dp_text(prefix);
	put_numbers(&m, cfg);
	rc = put_lists(&m, l, cfg, err, err_size);
	if (rc == 0 && encode(&w, &m) < 0)
		rc = complain(err, err_size, "configuration", "too large for the dataplane");
	if (rc < 0)
		goto out;
	SHA256(w.p, w.len, digest);
	memcpy(hash, digest, sizeof(*hash));
	m.config_hash = *hash;
	rc = encode(&w, &m);
	*out = w.p;
	*n = w.len;
	w.p = NULL;
out:
	free(w.p);
	free(l);
	return rc;
}
