/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of config.show: see config_show.h. Loop thread. */
#include "control/server/config_show.h"

#include <stdio.h>
#include <string.h>

struct mgmt_options mgmt_options_of(const struct config *cfg)
{
	return (struct mgmt_options){.path = cfg->control.socket,
				     .mode = cfg->control.socket_mode,
				     .group = cfg->control.socket_group,
				     .readonly_group = cfg->control.readonly_group,
				     .clients_max = cfg->control.clients_max,
				     .line_max = cfg->control.line_max_bytes,
				     .output_max = cfg->control.output_max_bytes,
				     .input_timeout_ms = cfg->control.input_timeout_ms,
				     .output_timeout_ms = MGMT_OUTPUT_TIMEOUT_MS};
}

static json_t *one(const struct conf_shown *s, const char *log_level)
{
	char value[32];
	bool set = log_level && strcmp(s->path, "log.level") == 0;

	if (!set)
		return json_pack("{s:s, s:s, s:s, s:b}", "path", s->path, "value", s->value,
				 "origin", s->origin, "reloadable", s->reloadable);
	snprintf(value, sizeof(value), "\"%s\"", log_level);
	set = strcmp(value, s->value) != 0;
	return json_pack("{s:s, s:s, s:s, s:b}", "path", s->path, "value", value, "origin",
			 set ? "log.set_level" : s->origin, "reloadable", s->reloadable);
}

json_t *mgmt_config_show(const struct config *cfg, const char *log_level)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < cfg->n_shown; i++)
		if (json_array_append_new(rows, one(&cfg->shown[i], log_level)) != 0) {
			json_decref(rows);
			return NULL;
		}
	return json_pack("{s:s, s:b, s:o}", "file", cfg->file, "file_changed",
			 conf_file_changed(cfg), "options", rows);
}
