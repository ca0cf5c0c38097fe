/* SPDX-License-Identifier: BSD-3-Clause */
/* not a lane file: from a CONFIG message to struct runcfg: see runcfg.h. */
#include "dataplane/agent/runcfg.h"

#include <errno.h>
#include <stdio.h>

/* Copies a view into the text area as a C string; NULL when it is full or holds a NUL. */
static const char *keep(struct runcfg *r, struct pack_bytes t)
{
	char *p = r->text + r->text_len;

	if (t.len >= sizeof(r->text) - r->text_len || (t.len && memchr(t.p, 0, t.len)))
		return NULL;
	if (t.len)
		memcpy(p, t.p, t.len);
	p[t.len] = '\0';
	r->text_len += t.len + 1;
	return p;
}

static int bad(char *err, size_t n, const char *field, const char *why)
{
	snprintf(err, n, "configuration from control: %s: %s", field, why);
	return -EINVAL;
}

static int take_texts(struct runcfg *r, struct pack_bytes list, const char **out, unsigned max,
		      unsigned *count)
{
	struct pack_reader rd = {.p = list.p, .left = list.len};

	for (*count = 0; rd.left > 0; (*count)++) {
		struct pack_bytes t = pack_get_text(&rd);

		if (rd.bad || *count == max)
			return -E2BIG;
		out[*count] = keep(r, t);
		if (!out[*count])
			return -E2BIG;
	}
	return 0;
}

static int copy_text(char *out, size_t cap, struct pack_bytes t)
{
	if (t.len == 0 || t.len >= cap || memchr(t.p, 0, t.len))
		return -EINVAL;
	memcpy(out, t.p, t.len);
	out[t.len] = '\0';
	return 0;
}

static int take_ports(struct runcfg *r, const struct dp_config *in, char *err, size_t n)
{
	struct pack_reader rd = {.p = in->ports.p, .left = in->ports.len};

	while (rd.left > 0) {
		struct port_config *p = &r->port[r->n_ports];
		struct dp_port d;

		dp_get_port(&rd, &d);
		if (rd.bad || r->n_ports == PORTS_MAX)
			return bad(err, n, "ports", "malformed list, or more than 16");
		*p = (struct port_config){.ip = d.ip,
					  .gateway = d.gateway,
					  .prefix = d.prefix_len,
					  .mtu = d.mtu,
					  .udp_base = d.udp_base};
		if (copy_text(p->name, sizeof(p->name), d.name) ||
		    copy_text(p->device, sizeof(p->device), d.device))
			return bad(err, n, "ports", "name or device empty or too long");
		r->n_ports++;
	}
	if (r->n_ports == 0)
		return bad(err, n, "ports", "none: configure at least one");
	return port_configs_check(r->port, r->n_ports, err);
}

static int take_stages(struct runcfg *r, const struct dp_config *in, char *err, size_t n)
{
	struct pack_reader rd = {.p = in->stages.p, .left = in->stages.len};

	while (rd.left > 0) {
		struct dp_stage d;

		dp_get_stage(&rd, &d);
		if (rd.bad || r->n_stages == DP_STAGES_MAX)
			return bad(err, n, "stages", "malformed list, or more than 64");
		r->stage[r->n_stages].module = keep(r, d.module);
		r->stage[r->n_stages].symbol = keep(r, d.symbol);
		r->stage[r->n_stages].entry = d.entry;
		if (!r->stage[r->n_stages].module || !r->stage[r->n_stages].symbol)
			return bad(err, n, "stages", "too much text");
		r->n_stages++;
	}
	return 0;
}

static int take_channels(struct runcfg *r, const struct dp_config *in, char *err, size_t n)
{
	struct pack_reader rd = {.p = in->channels.p, .left = in->channels.len};

	while (rd.left > 0) {
		struct pack_bytes t = pack_get_text(&rd);

		if (rd.bad || r->n_channels == SPL_CHANNELS_MAX || !spl_name_valid(t.p, t.len))
			return bad(err, n, "channels", "malformed list, or more than 128");
		r->channel[r->n_channels++] = spl_channel_key(t.p, t.len);
	}
	return 0;
}

static int take_lcores(struct runcfg *r, const struct dp_config *in, char *err, size_t n)
{
	struct pack_reader rd = {.p = in->lcores.p, .left = in->lcores.len};

	for (unsigned i = 0; i < RUNCFG_LANES_MAX; i++)
		r->lane_cpu[i] = -1;
	for (unsigned i = 0; rd.left > 0; i++) {
		if (i == r->c.lanes)
			return bad(err, n, "lcores", "more CPUs than lanes");
		r->lane_cpu[i] = pack_get_u16(&rd);
		if (rd.bad)
			return bad(err, n, "lcores", "malformed list");
	}
	return 0;
}

int runcfg_take(struct runcfg *out, const struct dp_config *in, char *err, size_t err_bytes)
{
	int rc;

	*out = (struct runcfg){.c = *in, .config_hash = in->config_hash};
	if (in->lanes < 1 || in->lanes > RUNCFG_LANES_MAX)
		return bad(err, err_bytes, "lanes", "1..127");
	if (in->message_max < 1 || in->message_max > SPL_MESSAGE_BYTES_CAP)
		return bad(err, err_bytes, "message_max", "1..16 MiB");
	if (in->associations < 1 || in->associations > SPL_ASSOCIATIONS_MAX)
		return bad(err, err_bytes, "associations", "1..4096");
	if (in->cpu_threads_min < 1 || in->cpu_threads_min > in->cpu_threads_max ||
	    in->cpu_threads_max > RUNCFG_THREADS_MAX)
		return bad(err, err_bytes, "cpu_threads_min, cpu_threads_max",
			   "1..256, the minimum first");
	if (spl_name_set(&out->mesh, in->mesh.p, in->mesh.len))
		return bad(err, err_bytes, "mesh", "no legal name");
	out->file_prefix = keep(out, in->file_prefix);
	if (take_texts(out, in->eal_args, out->eal_arg, DP_ARGS_MAX, &out->n_eal_args))
		return bad(err, err_bytes, "eal_args", "too many or too long");
	if (take_texts(out, in->stage_dirs, out->stage_dir, DP_DIRS_MAX, &out->n_stage_dirs))
		return bad(err, err_bytes, "stage_dirs", "too many or too long");
	rc = take_lcores(out, in, err, err_bytes);
	if (!rc)
		rc = take_channels(out, in, err, err_bytes);
	if (!rc)
		rc = take_stages(out, in, err, err_bytes);
	if (!rc)
		rc = take_ports(out, in, err, err_bytes);
	out->c.lcores = out->c.ports = out->c.stages = (struct pack_bytes){NULL, 0};
	out->c.eal_args = out->c.stage_dirs = out->c.channels = (struct pack_bytes){NULL, 0};
	return rc;
}
