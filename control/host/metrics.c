/* SPDX-License-Identifier: BSD-3-Clause */
/* The method metrics.show (S-MET). Loop thread only. Every value is a running total that was kept
 * anyhow: of lanes in the mapped segment, of control in struct host. Every label is a name of the
 * configuration or a word of a closed list; nothing here has seen a message, an id or a topic.
 */
#include "control/host/host_priv.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *name, *kind, *unit;
} instruments[] = {
#define SPL_X(sym, name, kind, unit, labels) {name, kind, unit},
	SPL_METRICS(SPL_X)
#undef SPL_X
};

#define SPL_X(sym, name) name,
static const char *const outcomes[] = {SPL_REQUEST_OUTCOMES(SPL_X)};
static const char *const surfaces[] = {SPL_DROP_SURFACES(SPL_X)};
static const char *const reasons[] = {SPL_DROP_REASONS(SPL_X)};
static const char *const activation_outcomes[] = {SPL_ACTIVATION_OUTCOMES(SPL_X)};
static const char *const claim_reasons[] = {SPL_CLAIM_REASONS(SPL_X)};
#undef SPL_X

void host_measure(struct spl_histogram *m, uint64_t ns)
{
	m->count++;
	m->sum_ns += ns;
	m->bucket[spl_duration_bucket(ns)]++;
}

void host_measure_store(struct host *h, const struct store_batch *b)
{
	bool fails = false;

	for (size_t i = 0; i < b->n; i++) {
		const struct store_req *r = &b->reqs[i];
		bool failed = r->rc < 0 || r->rc == STORE_FAILED || r->rc == STORE_UNKNOWN ||
			      r->rc == STORE_EXHAUSTED;
		unsigned op = r->op == STORE_READ || r->op == STORE_SCAN     ? 0
			      : r->op == STORE_RENEW || r->op == STORE_GRANT ? 2
			      : r->op == STORE_REVOKE			     ? 3
									     : 1;

		fails |= failed;
		h->measured.store_errors[op] += failed;
		if (r->op == STORE_RENEW)
			h->measured.renew_failures += failed || r->rc == STORE_MISSING;
	}
	if (fails != h->store_fails)
		log_warn(HOST_MODULE, "spotlane.runtime.location.store_changed state=%s",
			 fails ? "failing" : "available");
	h->store_fails = fails;
}

/* NAME="VALUE" behind what is there, with quotes and backslashes escaped. */
static size_t put_label(char *to, size_t n, size_t size, const char *name, const char *value)
{
	n += (size_t)snprintf(to + n, size - n, "%s%s=\"", n ? "," : "", name);
	for (; *value && n + 4 < size; value++) {
		if (*value == '"' || *value == '\\')
			to[n++] = '\\';
		to[n++] = *value;
	}
	to[n++] = '"';
	to[n] = '\0';
	return n;
}

/* Appends a sample and returns it. The labels come as pairs of name and value, NULL at the end. */
static json_t *sample(json_t *rows, enum spl_metric m, uint64_t value, ...)
{
	json_t *row = json_object();
	char labels[1024] = "";
	const char *name;
	size_t n = 0;
	va_list args;

	va_start(args, value);
	while ((name = va_arg(args, const char *)) != NULL)
		n = put_label(labels, n, sizeof(labels), name, va_arg(args, const char *));
	va_end(args);
	json_object_set_new(row, "name", json_string(instruments[m].name));
	json_object_set_new(row, "labels", json_string(labels));
	json_object_set_new(row, "kind", json_string(instruments[m].kind));
	json_object_set_new(row, "unit", json_string(instruments[m].unit));
	json_object_set_new(row, "value", json_integer((json_int_t)value));
	json_array_append_new(rows, row);
	return row;
}

static void put_histogram(json_t *row, const struct spl_histogram *m)
{
#define SPL_X(us) (double)(us) / 1e6,
	static const double bounds[] = {SPL_DURATION_BOUNDS(SPL_X)};
#undef SPL_X
	char text[512] = "";
	size_t n = 0;

	for (unsigned i = 0; i < SPL_DURATION_BUCKETS; i++) {
		if (i + 1 < SPL_DURATION_BUCKETS)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%g:", bounds[i]);
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, "inf:");
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%llu%s",
				      (unsigned long long)m->bucket[i],
				      i + 1 < SPL_DURATION_BUCKETS ? " " : "");
	}
	json_object_set_new(row, "sum", json_real((double)m->sum_ns / 1e9));
	json_object_set_new(row, "buckets", json_string(text));
}

/* ---- what lanes keep ---- */

static uint64_t lanes_sum(const struct host *h, size_t offset)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i <= h->stats.lanes; i++)
		all += statseg_get(
			(const uint64_t *)(const void *)((const char *)&h->stats.s->lane[i] +
							 offset));
	return all;
}
#define LANES_SUM(h, member) lanes_sum(h, offsetof(struct spl_lane_stats, member))

static uint64_t stages_sum(const struct host *h, enum spl_stage_counter c, uint32_t kind)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < h->stats.stages; i++)
		if (kind == SPL_KIND_INVALID || statseg_stage(&h->stats, i)->kind == kind)
			all += host_stage_total(h, i, c);
	return all;
}

void host_inbound(const struct host *h, uint64_t *all, uint64_t *active)
{
	*all = stages_sum(h, SPL_S_PENDING_BYTES, SPL_KIND_INVALID);
	*active = stages_sum(h, SPL_S_ACTIVE_BYTES, SPL_KIND_INVALID);
	*all += stages_sum(h, SPL_S_STARTING_BYTES, SPL_KIND_INVALID);
	if (*active > *all) /* the two are not read at one moment */
		*active = *all;
}

uint64_t host_replies_waiting(const struct host *h)
{
	return LANES_SUM(h, counter[SPL_C_REPLIES_WAITING]);
}

uint64_t host_replies_max(const struct host *h)
{
	return LANES_SUM(h, counter[SPL_C_REPLIES_MAX]);
}

static void inbound(const struct host *h, json_t *rows)
{
	uint64_t all, active;

	host_inbound(h, &all, &active);
	sample(rows, SPL_M_INBOUND_HWM, statseg_get(&h->stats.s->credit_max), NULL);
	sample(rows, SPL_M_INBOUND_PENDING, all - active, "state", "queued", NULL);
	sample(rows, SPL_M_INBOUND_PENDING, active, "state", "active", NULL);
	sample(rows, SPL_M_INBOUND_PAUSED, statseg_get(&h->stats.s->credit_left) == 0, NULL);
	sample(rows, SPL_M_COMPLETION_PENDING, host_replies_waiting(h), NULL);
	sample(rows, SPL_M_COMPLETION_LIMIT, host_replies_max(h), NULL);
}

static void requests(const struct host *h, json_t *rows, const char *mesh)
{
	struct spl_histogram m;

	sample(rows, SPL_M_REQUESTS_INFLIGHT, LANES_SUM(h, counter[SPL_C_CALLS_OPEN]), "mesh_name",
	       mesh, "surface", "spot", NULL);
	for (unsigned o = 0; o < SPL_RO_COUNT; o++) {
		json_t *row;

		m.count = LANES_SUM(h, measures.request[o].count);
		m.sum_ns = LANES_SUM(h, measures.request[o].sum_ns);
		for (unsigned i = 0; i < SPL_DURATION_BUCKETS; i++)
			m.bucket[i] = LANES_SUM(h, measures.request[o].bucket[i]);
		row = sample(rows, SPL_M_REQUEST_DURATION, m.count, "mesh_name", mesh, "surface",
			     "spot", "outcome", outcomes[o], NULL);
		put_histogram(row, &m);
	}
	sample(rows, SPL_M_REQUEST_TIMEOUTS, LANES_SUM(h, measures.request[SPL_RO_TIMED_OUT].count),
	       "mesh_name", mesh, "surface", "spot", NULL);
	for (unsigned s = 0; s < SPL_DS_COUNT; s++)
		for (unsigned r = 0; r < SPL_DR_COUNT; r++)
			sample(rows, SPL_M_DROPPED, LANES_SUM(h, measures.dropped[s][r]),
			       "mesh_name", mesh, "surface", surfaces[s], "message_kind", "send",
			       "reason", reasons[r], NULL);
	for (uint32_t kind = SPL_KIND_ENTRY; kind <= SPL_KIND_INSTANCE; kind++)
		sample(rows, SPL_M_SPOT_COUNT,
		       stages_sum(h, SPL_S_READY, kind) + stages_sum(h, SPL_S_CLOSING, kind),
		       "mesh_name", mesh, "spot_kind", host_kind_name(kind), NULL);
	sample(rows, SPL_M_EVENTS_OVERFLOW, LANES_SUM(h, counter[SPL_C_FAILURES_UNTOLD]), "source",
	       "callback_failures", NULL);
}

/* ---- what control keeps ---- */

/* A type without a limit of its own has that of the node. */
static void type_capacity(const struct host *h, json_t *rows, const char *mesh)
{
	uint64_t node = (uint64_t)h->cfg->limits.spots_per_lane * h->lanes;
	struct auth_type_status t;

	for (size_t i = 0; auth_type_status(h->auth, i, &t); i++) {
		const char *kind = host_kind_name((uint32_t)t.kind);
		char type[256];

		snprintf(type, sizeof(type), "%.*s", t.name->len, t.name->b);
		sample(rows, SPL_M_TYPE_ACTIVE, t.active, "mesh_name", mesh, "spot_kind", kind,
		       "stable_type", type, NULL);
		sample(rows, SPL_M_TYPE_RESERVED, t.reserved, "mesh_name", mesh, "spot_kind", kind,
		       "stable_type", type, NULL);
		if (t.limit || node)
			sample(rows, SPL_M_TYPE_LIMIT, t.limit ? t.limit : node, "mesh_name", mesh,
			       "spot_kind", kind, "stable_type", type, NULL);
	}
}

static void instance_type(json_t *rows, const char *mesh, const char *type,
			  const struct host_activations *a)
{
	for (unsigned o = 0; o < SPL_AO_COUNT; o++) {
		sample(rows, SPL_M_ACTIVATIONS, a->ended[o].count, "mesh_name", mesh,
		       "instance_spot_type", type, "outcome", activation_outcomes[o], NULL);
		put_histogram(sample(rows, SPL_M_ACTIVATION_DURATION, a->ended[o].count,
				     "mesh_name", mesh, "instance_spot_type", type, "outcome",
				     activation_outcomes[o], NULL),
			      &a->ended[o]);
	}
	for (unsigned c = 0; c < SPL_CR_COUNT; c++)
		sample(rows, SPL_M_CLAIM_CONFLICTS, a->conflicts[c], "mesh_name", mesh,
		       "instance_spot_type", type, "reason", claim_reasons[c], NULL);
}

static void instances(const struct host *h, json_t *rows, const char *mesh)
{
	for (size_t i = 0; h->activations && i < h->n_types; i++) {
		const struct spl_name *n = &h->types[i].name;
		char type[256];

		snprintf(type, sizeof(type), "%.*s", n->len, n->b);
		if (h->types[i].kind == SPL_KIND_INSTANCE)
			instance_type(rows, mesh, type, &h->activations[i]);
	}
	for (uint32_t i = 0; h->stats.s && i < h->stats.stages; i++) {
		const struct spl_stage_info *info = statseg_stage(&h->stats, i);
		char type[sizeof(info->type)];

		snprintf(type, sizeof(type), "%.*s", (int)sizeof(type) - 1, info->type);
		if (info->kind != SPL_KIND_INSTANCE)
			continue;
		sample(rows, SPL_M_INSTANCE_PENDING, host_stage_total(h, i, SPL_S_STARTING),
		       "mesh_name", mesh, "instance_spot_type", type, NULL);
		sample(rows, SPL_M_INSTANCE_PENDING_BYTES,
		       host_stage_total(h, i, SPL_S_STARTING_BYTES), "mesh_name", mesh,
		       "instance_spot_type", type, NULL);
	}
}

static void lifecycle(const struct host *h, json_t *rows, const char *mesh)
{
	static const char *const names[] = {"preparing", "serving", "relocating", "relocated",
					    "draining",	 "stopped", "error"};
	struct auth_status s;

	auth_status(h->auth, &s);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		sample(rows, SPL_M_HOST_STATE, host_dp_state(h, &s) == i, "state", names[i], NULL);
	sample(rows, SPL_M_CAPACITY_ACTIVE, s.spots, "mesh_name", mesh, "capacity_scope", "spot",
	       NULL);
	sample(rows, SPL_M_CAPACITY_RESERVED, s.reserved, "mesh_name", mesh, "capacity_scope",
	       "spot", NULL);
	if (h->lanes)
		sample(rows, SPL_M_CAPACITY_LIMIT,
		       (uint64_t)h->cfg->limits.spots_per_lane * h->lanes, "mesh_name", mesh,
		       "capacity_scope", "spot", NULL);
	sample(rows, SPL_M_ACTIVATION_ACTIVE, s.pending, "mesh_name", mesh, NULL);
	sample(rows, SPL_M_ACTIVATION_LIMIT, s.pending_max, "mesh_name", mesh, NULL);
	type_capacity(h, rows, mesh);
	for (unsigned i = 0; i < 2; i++)
		put_histogram(sample(rows, SPL_M_SHUTDOWN_DURATION, h->measured.shutdown[i].count,
				     "outcome", i ? "force_stopped" : "stopped", NULL),
			      &h->measured.shutdown[i]);
	sample(rows, SPL_M_SHUTDOWN_FORCED, h->measured.forced, "reason", "deadline", NULL);
}

static void location(const struct host *h, json_t *rows, const char *mesh)
{
	static const char *const operations[HOST_STORE_OPS] = {"read", "compare_exchange",
							       "lease_renew", "release"};

	for (unsigned i = 0; i < HOST_STORE_OPS; i++)
		sample(rows, SPL_M_STORE_ERRORS, h->measured.store_errors[i], "operation",
		       operations[i], NULL);
	sample(rows, SPL_M_RENEW_FAILURES, h->measured.renew_failures, "scope_kind", "mesh",
	       "scope_name", mesh, NULL);
	put_histogram(sample(rows, SPL_M_RENEW_LATENESS, h->measured.renew_late.count, "scope_kind",
			     "mesh", "scope_name", mesh, NULL),
		      &h->measured.renew_late);
}

void host_metrics_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const struct host *h = ctx;
	const char *mesh = h->cfg->node.mesh;
	json_t *rows = json_array();

	if (h->stats.s) {
		inbound(h, rows);
		requests(h, rows, mesh);
	}
	lifecycle(h, rows, mesh);
	instances(h, rows, mesh);
	location(h, rows, mesh);
	mgmt_reply(call, json_pack("{s:o}", "samples", rows));
}
