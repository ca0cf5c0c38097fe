/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of config.show, for the handler in the control main. */
#ifndef SPL_CONTROL_SERVER_CONFIG_SHOW_H
#define SPL_CONTROL_SERVER_CONFIG_SHOW_H

#include "control/config/config.h"

#include <jansson.h>

/* Every option of `cfg` with its value and origin, and whether the files changed since they were
 * read (looks at them). `log_level` is the level in effect, which log.set_level may have changed;
 * NULL = as configured. The caller owns the result; NULL when there is no memory. */
json_t *mgmt_config_show(const struct config *cfg, const char *log_level);

#endif
