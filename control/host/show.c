/* SPDX-License-Identifier: BSD-3-Clause */
/* The management methods that show the node, its counters and its configuration: see host_priv.h.
 * Loop thread only. Counters are read from the mapped segment: one whole value after the other.
 */
#include "control/host/host_priv.h"
#include "control/server/config_show.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- node.show ---- */

static const char *host_state_name(enum auth_host_state s)
{
	switch (s) {
	case AUTH_HOST_PREPARING:
		return "Preparing";
	case AUTH_HOST_SERVING:
		return "Serving";
	case AUTH_HOST_DRAINING:
		return "Draining";
	case AUTH_HOST_STOPPED:
		return "Stopped";
	case AUTH_HOST_ERROR:
		return "Error";
	case AUTH_HOST_NONE:
		return "Preparing";
	}
	return "unknown";
}

enum dp_host host_dp_state(const struct host *h, const struct auth_status *s)
{
	switch (s->state) {
	case AUTH_HOST_SERVING:
		return DP_HOST_SERVING;
	case AUTH_HOST_DRAINING:
		return DP_HOST_DRAINING;
	case AUTH_HOST_STOPPED:
		return DP_HOST_STOPPED;
	case AUTH_HOST_ERROR:
		return DP_HOST_ERROR;
	case AUTH_HOST_NONE:
		return host_is_stopping(h) ? DP_HOST_STOPPED : DP_HOST_PREPARING;
	case AUTH_HOST_PREPARING:
		break;
	}
	return DP_HOST_PREPARING;
}

static void set_text(json_t *o, const char *name, const char *text)
{
	json_object_set_new(o, name, json_string(text));
}

static void set_int(json_t *o, const char *name, uint64_t v)
{
	json_object_set_new(o, name, json_integer((json_int_t)v));
}

static void show_lifecycle(const struct host *h, const struct auth_status *s, json_t *o)
{
	uint64_t now = host_now(h);
	char gen[24];

	if (s->id.rid.len) {
		snprintf(gen, sizeof(gen), "%llu", (unsigned long long)s->id.lifecycle);
		json_object_set_new(o, "node", json_stringn(s->id.rid.b, s->id.rid.len));
		set_text(o, "lifecycle", gen);
	}
	set_text(o, "mesh", h->cfg->node.mesh);
	set_text(o, "object_role",
		 h->cfg->node.object_role == CONF_ROLE_SERVER	? "server"
		 : h->cfg->node.object_role == CONF_ROLE_CLIENT ? "client"
								: "none");
	set_text(o, "state",
		 host_is_stopping(h) && s->state == AUTH_HOST_NONE ? "Stopped"
								   : host_state_name(s->state));
	json_object_set_new(o, "ready", json_boolean(auth_host_is_ready(s->state)));
	set_text(o, "lease", s->lease_held ? "held" : s->id.rid.len ? "lost" : "none");
	if (s->lease_held && s->lease_deadline > (int64_t)now)
		set_int(o, "lease_remaining_ms",
			((uint64_t)s->lease_deadline - now) / CLOCK_NS_PER_MS);
	if (s->id.entry_id.len)
		json_object_set_new(o, "entry_spot",
				    json_stringn(s->id.entry_id.b, s->id.entry_id.len));
	set_int(o, "spots", s->spots);
}

void host_node_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	struct auth_status s;
	struct dplink_info link;
	json_t *o = json_object();
	struct tm tm;
	char start[32];

	auth_status(h->auth, &s);
	dplink_info(h->link, &link);
	gmtime_r(&h->started, &tm);
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", &tm);
	show_lifecycle(h, &s, o);
	set_text(o, "version", SPL_VERSION);
	set_int(o, "pid", (uint64_t)getpid());
	set_text(o, "start_time", start);
	set_int(o, "uptime_s", (host_now(h) - h->started_ns) / CLOCK_NS_PER_S);
	set_text(o, "dataplane", h->configured ? "up" : link.pid ? "waiting" : "down");
	if (link.pid)
		set_int(o, "dataplane_pid", (uint64_t)link.pid);
	if (h->configured)
		set_int(o, "lanes", h->lanes);
	set_text(o, "store", h->store_name);
	set_text(o, "log_level", log_level_name(log_get_level()));
	mgmt_reply(call, o);
}

/* ---- stats.show ---- */

struct name_unit {
	const char *name, *unit;
};

static const struct name_unit counters[] = {
#define SPL_X(sym, name, unit, help) {name, unit},
	SPL_LANE_COUNTERS(SPL_X)
#undef SPL_X
};

static const struct name_unit port_counters[] = {
#define SPL_X(sym, name, unit, help) {name, unit},
	SPL_PORT_COUNTERS(SPL_X)
#undef SPL_X
};

static const char *const uses[] = {
#define SPL_X(sym, name, help) name,
	SPL_FRAME_USES(SPL_X)
#undef SPL_X
};

static const char *const drops[] = {
#define SPL_X(sym, name, help) name,
	SPL_FRAME_DROPS(SPL_X)
#undef SPL_X
};

static const char *const fails[] = {
#define SPL_X(sym, name, help) name,
	SPL_MESSAGE_FAILS(SPL_X)
#undef SPL_X
};

static void column(json_t *columns, const char *name, const char *type)
{
	json_array_append_new(columns, json_pack("{s:s,s:s}", "name", name, "type", type));
}

/* A column for each lane, one for the agent, and the sum. */
static void lane_columns(const struct host *h, json_t *columns)
{
	char name[24];

	for (uint32_t i = 0; i < h->stats.lanes; i++) {
		snprintf(name, sizeof(name), "lane_%u", i);
		column(columns, name, "int");
	}
	column(columns, "agent", "int");
	column(columns, "total", "int");
}

/* `offset` of the counter in the block of a lane. */
static void lane_values(const struct host *h, json_t *row, size_t offset)
{
	uint64_t sum = 0;
	char name[24];

	for (uint32_t i = 0; i <= h->stats.lanes; i++) {
		const char *block = (const char *)&h->stats.s->lane[i];
		uint64_t v = statseg_get((const uint64_t *)(const void *)(block + offset));

		if (i < h->stats.lanes)
			snprintf(name, sizeof(name), "lane_%u", i);
		else
			strcpy(name, "agent");
		set_int(row, name, v);
		sum += v;
	}
	set_int(row, "total", sum);
}

static void reason_rows(const struct host *h, json_t *rows, const char *what,
			const char *const *names, size_t n, size_t offset)
{
	for (size_t i = 0; i < n; i++) {
		json_t *row = json_pack("{s:s,s:s}", "of", what, "reason", names[i]);

		lane_values(h, row, offset + i * sizeof(uint64_t));
		json_array_append_new(rows, row);
	}
}

static void show_drops(const struct host *h, json_t *columns, json_t *rows)
{
	column(columns, "of", "text");
	column(columns, "reason", "text");
	lane_columns(h, columns);
	reason_rows(h, rows, "frame", drops, SPL_DROP_COUNT, offsetof(struct spl_lane_stats, drop));
	reason_rows(h, rows, "message", fails, SPL_FAIL_COUNT,
		    offsetof(struct spl_lane_stats, fail));
}

/* What all lanes share, as a row with a sum alone. */
static void shared_row(const struct host *h, json_t *rows, const char *name, const char *unit,
		       uint64_t v)
{
	json_t *row = json_pack("{s:s,s:s}", "counter", name, "unit", unit);

	set_int(row, "total", v);
	json_array_append_new(rows, row);
}

static void show_lanes(const struct host *h, json_t *columns, json_t *rows)
{
	char name[64];

	column(columns, "counter", "text");
	column(columns, "unit", "text");
	lane_columns(h, columns);
	for (size_t i = 0; i < SPL_C_COUNT; i++) {
		json_t *row = json_pack("{s:s,s:s}", "counter", counters[i].name, "unit",
					counters[i].unit);

		lane_values(h, row,
			    offsetof(struct spl_lane_stats, counter) + i * sizeof(uint64_t));
		json_array_append_new(rows, row);
	}
	for (size_t i = 0; i < SPL_USE_COUNT; i++) {
		json_t *row;

		snprintf(name, sizeof(name), "used_%s", uses[i]);
		row = json_pack("{s:s,s:s}", "counter", name, "unit", "frames");
		lane_values(h, row, offsetof(struct spl_lane_stats, use) + i * sizeof(uint64_t));
		json_array_append_new(rows, row);
	}
	shared_row(h, rows, "buffers_total", "buffers", statseg_get(&h->stats.s->mbufs_total));
	shared_row(h, rows, "buffers_free", "buffers", statseg_get(&h->stats.s->mbufs_free));
}

static void show_ports(const struct host *h, json_t *columns, json_t *rows)
{
	column(columns, "port", "text");
	column(columns, "driver", "text");
	column(columns, "mac", "text");
	for (size_t k = 0; k < SPL_P_COUNT; k++)
		column(columns, port_counters[k].name, "int");
	for (uint32_t i = 0; i < h->stats.ports; i++) {
		const struct spl_port_stats *p = &h->stats.s->port[i];
		json_t *row = json_object();
		char name[sizeof(p->name) + 1], mac[24];

		snprintf(name, sizeof(name), "%.*s", (int)sizeof(p->name), p->name);
		set_text(row, "port", name);
		for (unsigned k = 0; k < h->n_ports; k++) {
			uint64_t m = h->ports[k].mac;

			if (strcmp(h->ports[k].name, name) != 0)
				continue;
			snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x",
				 (unsigned)(m >> 40 & 255), (unsigned)(m >> 32 & 255),
				 (unsigned)(m >> 24 & 255), (unsigned)(m >> 16 & 255),
				 (unsigned)(m >> 8 & 255), (unsigned)(m & 255));
			set_text(row, "driver", h->ports[k].driver);
			set_text(row, "mac", mac);
		}
		for (size_t k = 0; k < SPL_P_COUNT; k++)
			set_int(row, port_counters[k].name, statseg_get(&p->counter[k]));
		json_array_append_new(rows, row);
	}
}

static void show_links(const struct host *h, json_t *columns, json_t *rows)
{
	uint64_t now = host_now(h);

	column(columns, "peer", "text");
	column(columns, "lifecycle", "text");
	column(columns, "address", "text");
	column(columns, "lanes", "int");
	column(columns, "up_s", "int");
	for (size_t i = 0; i < SPL_STATS_LINKS_MAX; i++) {
		const struct spl_link_stats *l = &h->stats.s->link[i];
		uint64_t life = statseg_get(&l->lifecycle), up = statseg_get(&l->up_since_ns);
		struct in_addr ip = {.s_addr = htonl(l->ip)};
		char rid[sizeof(l->rid) + 1], text[INET_ADDRSTRLEN], buf[64];
		json_t *row;

		if (!life)
			continue;
		row = json_object();
		snprintf(rid, sizeof(rid), "%.*s", (int)sizeof(l->rid), l->rid);
		set_text(row, "peer", rid);
		snprintf(buf, sizeof(buf), "%llu", (unsigned long long)life);
		set_text(row, "lifecycle", buf);
		inet_ntop(AF_INET, &ip, text, sizeof(text));
		snprintf(buf, sizeof(buf), "%s:%u", text, l->udp_port);
		set_text(row, "address", buf);
		set_int(row, "lanes", l->lanes);
		set_int(row, "up_s", now > up ? (now - up) / CLOCK_NS_PER_S : 0);
		json_array_append_new(rows, row);
	}
}

void host_stats_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	const char *view = json_string_value(json_object_get(params, "view"));
	json_t *columns, *rows;

	if (!h->stats.s) {
		mgmt_fail(call, SPL_E_UNAVAILABLE, "statistics", "no dataplane has been here yet",
			  NULL);
		return;
	}
	if (!view)
		view = "drops";
	columns = json_array();
	rows = json_array();
	if (strcmp(view, "lanes") == 0)
		show_lanes(h, columns, rows);
	else if (strcmp(view, "ports") == 0)
		show_ports(h, columns, rows);
	else if (strcmp(view, "links") == 0)
		show_links(h, columns, rows);
	else
		show_drops(h, columns, rows);
	mgmt_reply(call,
		   json_pack("{s:s,s:o,s:o}", "view", view, "columns", columns, "rows", rows));
}

void host_config_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const struct host *h = ctx;

	mgmt_reply(call, mgmt_config_show(h->cfg, log_level_name(log_get_level())));
}

void host_log_set_level(struct mgmt_call *call, const json_t *params, void *ctx)
{
	const char *name = json_string_value(json_object_get(params, "level"));
	enum log_level before = log_get_level(), level = before;

	log_level_parse(name, &level);
	log_set_level(level);
	log_info(HOST_MODULE, "log level changed level=%s previous=%s", log_level_name(level),
		 log_level_name(before));
	mgmt_reply(call, json_pack("{s:s,s:s}", "level", log_level_name(level), "previous",
				   log_level_name(before)));
}
