/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that bind several options together. Pure except for the set of allowed CPUs, which the
 * caller passes. Reports every rule that is broken. */
#include "common/credit.h"
#include "common/dp.h"
#include "control/config/read.h"

#include <spotlane/limits.h>
#include <string.h>

#define HEADROOM    128u
#define FRAME_EXTRA (128 + 14 + 4) /* headroom, Ethernet header, one VLAN tag */

/* Reports at the line where option `path` of the top table was set, else at the file. */
static void fail_top(const struct conf_reader *r, const char *path, const char *why)
{
	unsigned line = 0;
	const char *file;

	for (unsigned i = 0; i < conf_top.n; i++)
		if (strcmp(conf_top.o[i].path, path) == 0)
			line = r->top.at[i];
	file = conf_source_at(r->src, line, &line);
	conf_report_add(r->rep, file, line, "%s: %s", path, why);
}

static void fail_item(const struct conf_reader *r, const char *list, unsigned i, const char *key,
		      const char *why)
{
	bool port = strcmp(list, "ports") == 0;
	const struct conf_table *t = port ? &conf_port_table : &conf_stage_table;
	const struct conf_lines *lines = port ? &r->ports[i] : &r->stages[i];
	unsigned line = port ? r->port_line[i] : r->stage_line[i];
	const char *file;

	for (unsigned k = 0; k < t->n; k++)
		if (strcmp(t->o[k].path, key) == 0 && lines->at[k])
			line = lines->at[k];
	file = conf_source_at(r->src, line, &line);
	conf_report_add(r->rep, file, line, "%s[%u].%s: %s", list, i, key, why);
}

static void check_lease(const struct conf_reader *r)
{
	const struct config *c = r->cfg;
	int64_t need = (int64_t)c->lease.renew_ms + c->lease.timeout_ms;
	int64_t room = (int64_t)c->lease.ttl_ms - c->lease.margin_ms;
	char why[CONF_WHY_MAX];

	if (need < room)
		return;
	snprintf(why, sizeof(why),
		 "renew_ms + timeout_ms (%lld) must be less than ttl_ms - margin_ms (%lld)",
		 (long long)need, (long long)room);
	fail_top(r, "lease.ttl_ms", why);
}

static void check_workers(const struct conf_reader *r)
{
	const struct config *c = r->cfg;
	char why[CONF_WHY_MAX];

	if (c->workers.cpu_threads_min <= c->workers.cpu_threads_max)
		return;
	snprintf(why, sizeof(why), "must be at least workers.cpu_threads_min (%u)",
		 c->workers.cpu_threads_min);
	fail_top(r, "workers.cpu_threads_max", why);
}

static void check_cpus(const struct conf_reader *r, const cpu_set_t *allowed)
{
	const struct conf_ints *l = &r->cfg->dataplane.lcores;
	int agent = r->cfg->dataplane.agent_cpu;
	char why[CONF_WHY_MAX];

	if (l->n > 0 && l->n != r->cfg->dataplane.lanes) {
		snprintf(why, sizeof(why), "%u CPUs for %u lanes: one for each, or an empty list",
			 l->n, r->cfg->dataplane.lanes);
		fail_top(r, "dataplane.lcores", why);
	}
	for (unsigned i = 0; i < l->n; i++) {
		for (unsigned j = 0; j < i; j++)
			if (l->v[j] == l->v[i]) {
				snprintf(why, sizeof(why), "CPU %lld is named twice",
					 (long long)l->v[i]);
				fail_top(r, "dataplane.lcores", why);
			}
		if (!CPU_ISSET((size_t)l->v[i], allowed)) {
			snprintf(why, sizeof(why),
				 "CPU %lld is not allowed for this process (affinity mask or "
				 "cpuset)",
				 (long long)l->v[i]);
			fail_top(r, "dataplane.lcores", why);
		}
	}
	if (agent >= 0 && !CPU_ISSET((size_t)agent, allowed)) {
		snprintf(why, sizeof(why),
			 "CPU %d is not allowed for this process (affinity mask or cpuset)", agent);
		fail_top(r, "dataplane.agent_cpu", why);
	}
}

static void check_limits(const struct conf_reader *r)
{
	const struct config *c = r->cfg;
	char why[CONF_WHY_MAX];

	if (c->limits.spot_queue_bytes < (uint64_t)c->limits.message_max_bytes + 4096) {
		snprintf(why, sizeof(why),
			 "%llu is too small for one message of limits.message_max_bytes: at least "
			 "%llu",
			 (unsigned long long)c->limits.spot_queue_bytes,
			 (unsigned long long)c->limits.message_max_bytes + 4096);
		fail_top(r, "limits.spot_queue_bytes", why);
	}
}

void config_credit(const struct config *c, struct credit_bounds *b)
{
	uint64_t packets = (uint64_t)c->dataplane.lanes * c->dataplane.mbufs *
			   (c->dataplane.data_room_bytes - HEADROOM);

	*b = (struct credit_bounds){
		.asked =
			c->limits.credit_pool_bytes ? c->limits.credit_pool_bytes : packets / 8 * 7,
		.records = c->limits.records_per_lane,
		.lane_memory = (uint64_t)c->dataplane.lane_memory_mb << 20,
		.message_max = c->limits.message_max_bytes,
		.flow_min = CREDIT_MIN,
	};
}

/* An empty node takes one message of the largest size, with a peer connected (S-LIM-10). */
static void check_credit(const struct conf_reader *r)
{
	const struct config *c = r->cfg;
	const char *what = "limits.credit_pool_bytes";
	struct credit_bounds b;
	char why[CONF_WHY_MAX];
	uint64_t pool;

	config_credit(c, &b);
	pool = credit_pool(&b);
	if (credit_flows(&b) >= c->dataplane.lanes)
		return;
	if (pool < b.asked)
		what = pool == b.lane_memory / 4 * 3 ? "dataplane.lane_memory_mb"
						     : "limits.records_per_lane";
	else if (!c->limits.credit_pool_bytes)
		what = "dataplane.mbufs";
	snprintf(why, sizeof(why),
		 "holds %llu bytes of messages, too little for one of limits.message_max_bytes and "
		 "one peer: at least %llu are needed",
		 (unsigned long long)pool,
		 (unsigned long long)credit_least(&b, c->dataplane.lanes));
	fail_top(r, what, why);
}

_Static_assert(CONF_LIST_MAX <= SPL_CHANNELS_MAX, "what is read is what is taken");

static void check_lists(const struct conf_reader *r)
{
	const struct config *c = r->cfg;
	char why[CONF_WHY_MAX];

	if (c->stage_dirs.n > DP_DIRS_MAX) {
		snprintf(why, sizeof(why), "%u directories, at most %u", c->stage_dirs.n,
			 DP_DIRS_MAX);
		fail_top(r, "stage_dirs", why);
	}
	for (unsigned i = 0; i < c->channels.n; i++)
		for (unsigned j = 0; j < i; j++)
			if (strcmp(c->channels.v[i], c->channels.v[j]) == 0) {
				snprintf(why, sizeof(why), "'%.64s' is there twice",
					 c->channels.v[i]);
				fail_top(r, "channels", why);
			}
	if (c->eal.extra_args.n > DP_ARGS_MAX) {
		snprintf(why, sizeof(why), "%u arguments, at most %u", c->eal.extra_args.n,
			 DP_ARGS_MAX);
		fail_top(r, "eal.extra_args", why);
	}
}

static void check_socket(const struct conf_reader *r)
{
	const struct config *c = r->cfg;
	mode_t mode = c->control.socket_mode;

	if ((mode & 0600) != 0600 || (mode & 0111))
		fail_top(r, "control.socket_mode",
			 "must let the owner read and write, and nobody execute");
	if (c->control.readonly_group[0] && (mode & 0006) != 0006)
		fail_top(r, "control.readonly_group",
			 "needs control.socket_mode = \"0666\", so that its members can connect; "
			 "the daemon then decides by peer credentials");
	if (c->control.readonly_group[0] && !c->control.socket_group[0])
		fail_top(r, "control.readonly_group",
			 "needs control.socket_group, so that it is known who may do everything");
}

/* True when both devices are the same one: the part before ',' decides, and "01:00.0" is
 * "0000:01:00.0". */
static bool same_device(const char *a, const char *b)
{
	size_t na = strcspn(a, ","), nb = strcspn(b, ",");

	if (na == 12 && nb == 7 && strncmp(a, "0000:", 5) == 0)
		return strncmp(a + 5, b, 7) == 0;
	if (nb == 12 && na == 7 && strncmp(b, "0000:", 5) == 0)
		return strncmp(b + 5, a, 7) == 0;
	return na == nb && strncmp(a, b, na) == 0;
}

static void check_twice(const struct conf_reader *r, unsigned i)
{
	const struct conf_port *p = &r->cfg->ports[i];
	char why[CONF_WHY_MAX];

	for (unsigned j = 0; j < i; j++) {
		const struct conf_port *q = &r->cfg->ports[j];

		if (strcmp(p->name, q->name) == 0) {
			snprintf(why, sizeof(why), "\"%s\" is also the name of ports[%u]", p->name,
				 j);
			fail_item(r, "ports", i, "name", why);
		}
		if (same_device(p->device, q->device)) {
			snprintf(why, sizeof(why), "\"%.*s\" is already the device of ports[%u]",
				 (int)strcspn(p->device, ","), p->device, j);
			fail_item(r, "ports", i, "device", why);
		}
		if (p->ip == q->ip) {
			snprintf(why, sizeof(why), "is also the address of ports[%u]", j);
			fail_item(r, "ports", i, "ip", why);
		}
	}
}

static bool is_host_address(uint32_t ip, unsigned prefix_len)
{
	uint32_t host = prefix_len == 32 ? 0 : ip & (UINT32_MAX >> prefix_len);
	uint32_t ones = prefix_len == 32 ? 0 : UINT32_MAX >> prefix_len;

	if (ip >> 24 == 0 || ip >> 24 == 127 || ip >> 28 >= 14)
		return false;
	return prefix_len >= 31 || (host != 0 && host != ones);
}

static void check_port(const struct conf_reader *r, unsigned i)
{
	const struct conf_port *p = &r->cfg->ports[i];
	uint32_t mask = UINT32_MAX << (32 - p->prefix_len);
	uint32_t room = r->cfg->dataplane.data_room_bytes;
	char why[CONF_WHY_MAX];

	if (p->device[0] == ',')
		fail_item(r, "ports", i, "device", "has no name before the ','");
	if (!is_host_address(p->ip, p->prefix_len))
		fail_item(r, "ports", i, "ip", "is no address of a host in its subnet");
	if (p->gateway && ((p->gateway ^ p->ip) & mask))
		fail_item(r, "ports", i, "gateway", "is outside the subnet of the port");
	else if (p->gateway && (p->gateway == p->ip || !is_host_address(p->gateway, p->prefix_len)))
		fail_item(r, "ports", i, "gateway", "is no address of another host in the subnet");
	if (p->mtu + (uint32_t)FRAME_EXTRA > room) {
		snprintf(why, sizeof(why),
			 "%u needs dataplane.data_room_bytes of at least %u (MTU, 128 bytes of "
			 "headroom, 18 of Ethernet and VLAN), which is %u",
			 p->mtu, p->mtu + (uint32_t)FRAME_EXTRA, room);
		fail_item(r, "ports", i, "mtu", why);
	}
	if (p->udp_base != r->cfg->ports[0].udp_base) {
		snprintf(why, sizeof(why), "%u, but ports[0] has %u: all ports have one",
			 p->udp_base, r->cfg->ports[0].udp_base);
		fail_item(r, "ports", i, "udp_base", why);
	}
	check_twice(r, i);
}

static void check_stage(const struct conf_reader *r, unsigned i)
{
	const struct conf_stage *s = &r->cfg->stages[i];

	if (s->module[0] != '/' && r->cfg->stage_dirs.n == 0)
		fail_item(r, "stages", i, "module", "is a name alone, but stage_dirs is empty");
	for (unsigned j = 0; j < i; j++)
		if (strcmp(s->module, r->cfg->stages[j].module) == 0 &&
		    strcmp(s->entry, r->cfg->stages[j].entry) == 0)
			fail_item(r, "stages", i, "module", "is listed twice with the same entry");
}

/* The roles without Spots are a later milestone (S-ROLE-1): refused, not taken for "server". */
static void check_role(const struct conf_reader *r)
{
	if (r->cfg->node.object_role != CONF_ROLE_SERVER)
		fail_top(r, "node.object_role", "this version knows only \"server\"");
}

void conf_check_relations(const struct conf_reader *r, const cpu_set_t *allowed)
{
	unsigned line;

	if (r->cfg->n_ports == 0)
		conf_report_add(r->rep, conf_source_at(r->src, 0, &line), 0,
				"ports: at least one port is needed");
	for (unsigned i = 0; i < r->cfg->n_ports; i++)
		check_port(r, i);
	for (unsigned i = 0; i < r->cfg->n_stages; i++)
		check_stage(r, i);
	check_role(r);
	check_workers(r);
	check_lease(r);
	check_cpus(r, allowed);
	check_credit(r);
	check_limits(r);
	check_lists(r);
	check_socket(r);
}
