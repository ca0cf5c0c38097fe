/* SPDX-License-Identifier: BSD-3-Clause */
/* The method stage.show: what the Spots of each stable type add up to (S-STAGE-10, S-OBS-5). Loop
 * thread only. The lanes keep the totals; a query reads them from the mapped segment and asks
 * nobody, so that it works, and costs the same, whatever the lanes are doing and however much
 * waits.
 */
#include "control/host/host_priv.h"

const char *host_kind_name(uint32_t kind)
{
	return kind == SPL_KIND_ENTRY ? "entry" : kind == SPL_KIND_USER ? "user" : "instance";
}

uint64_t host_stage_total(const struct host *h, uint32_t index, enum spl_stage_counter c)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < h->stats.lanes; i++) {
		uint64_t v = statseg_get(&statseg_stage_row(&h->stats, i, index)->counter[c]);

		if (c != SPL_S_TICK_DELAY_MAX)
			all += v;
		else if (v > all)
			all = v;
	}
	return all;
}

static void set_int(json_t *row, const char *name, uint64_t v)
{
	json_object_set_new(row, name, json_integer((json_int_t)v));
}

/* Two values are not read at one moment: no less than nothing waits. */
static void set_rest(json_t *row, const char *name, uint64_t all, uint64_t part)
{
	set_int(row, name, all > part ? all - part : 0);
}

static json_t *stage_row(const struct host *h, uint32_t index, bool shutting_down)
{
	static const struct {
		enum spl_stage_counter counter;
		const char *name;
		uint64_t unit;
	} plain[] = {
		{SPL_S_CREATING, "creating", 1},
		{SPL_S_READY, "ready", 1},
		{SPL_S_CLOSING, "closing", 1},
		{SPL_S_ACTIVE, "active", 1},
		{SPL_S_ACTIVE_BYTES, "active_bytes", 1},
		{SPL_S_TICKS, "ticks", 1},
		{SPL_S_TICKS_SKIPPED, "skipped", 1},
		{SPL_S_TICK_DELAY, "delay_us", 1000},
		{SPL_S_TICK_DELAY_MAX, "delay_max_us", 1000},
		{SPL_S_CREATED, "created", 1},
		{SPL_S_CREATE_REJECTED, "create_rejected", 1},
		{SPL_S_CREATE_FAILED, "create_failed", 1},
		{SPL_S_CLOSED, "closed", 1},
		{SPL_S_CLOSE_FAILED, "close_failed", 1},
		{SPL_S_CLOSE_FORCED, "close_forced", 1},
	};
	const struct spl_stage_info *info = statseg_stage(&h->stats, index);
	json_t *row = json_object();

	json_object_set_new(row, "mesh", json_string(h->cfg->node.mesh));
	json_object_set_new(row, "type",
			    json_stringn(info->type, strnlen(info->type, sizeof(info->type))));
	json_object_set_new(row, "kind", json_string(host_kind_name(info->kind)));
	json_object_set_new(row, "shutting_down", json_boolean(shutting_down));
	set_rest(row, "queued", host_stage_total(h, index, SPL_S_PENDING),
		 host_stage_total(h, index, SPL_S_ACTIVE));
	set_rest(row, "queued_bytes", host_stage_total(h, index, SPL_S_PENDING_BYTES),
		 host_stage_total(h, index, SPL_S_ACTIVE_BYTES));
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		set_int(row, plain[i].name,
			host_stage_total(h, index, plain[i].counter) / plain[i].unit);
	return row;
}

void host_stage_show(struct mgmt_call *call, const json_t *params, void *ctx)
{
	struct host *h = ctx;
	json_t *rows;
	struct auth_status s;

	if (!h->stats.s) {
		mgmt_fail(call, SPL_E_UNAVAILABLE, "stages", "no dataplane has been here yet",
			  NULL);
		return;
	}
	auth_status(h->auth, &s);
	rows = json_array();
	for (uint32_t i = 0; i < h->stats.stages; i++)
		json_array_append_new(rows, stage_row(h, i, s.state != AUTH_HOST_SERVING));
	mgmt_reply(call, json_pack("{s:o}", "stages", rows));
}
