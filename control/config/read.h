/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of conf_load() between the text and a valid struct config. Single-threaded. */
#ifndef SPL_CONTROL_CONFIG_READ_H
#define SPL_CONTROL_CONFIG_READ_H

#include "control/config/options.h"
#include "control/config/scan.h"

#define CONF_OPTIONS_MAX 96 /* of one table */

/* Lines of `src->text` where the options of one struct were set; 0 = default. */
struct conf_lines {
	unsigned at[CONF_OPTIONS_MAX];
};

struct conf_reader {
	struct config *cfg;
	const struct conf_source *src;
	struct conf_report *rep;
	struct conf_lines top, ports[CONF_PORTS_MAX], stages[CONF_STAGES_MAX];
	unsigned port_line[CONF_PORTS_MAX], stage_line[CONF_STAGES_MAX]; /* where each begins */
};

/* Parses src->text with libconfig and fills cfg; every option is set or defaulted. Errors go to
 * rep, at most all of them. */
void conf_read(struct conf_reader *r);

/* The relations between options; call only when conf_read() found no error. */
void conf_check_relations(const struct conf_reader *r, const cpu_set_t *allowed);

/* Fills cfg->shown. False when there is no memory. */
bool conf_show_fill(const struct conf_reader *r);

#endif
