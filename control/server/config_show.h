/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the configuration and the management socket, for the control main. */
#ifndef SPL_CONTROL_SERVER_CONFIG_SHOW_H
#define SPL_CONTROL_SERVER_CONFIG_SHOW_H

#include "control/config/config.h"
#include "control/server/server.h"

#define MGMT_OUTPUT_TIMEOUT_MS 10000

/* What `cfg` says about the socket; the texts stay the configuration's. */
struct mgmt_options mgmt_options_of(const struct config *cfg);

/* Every option of `cfg` with its value and origin, and whether the files changed since they were
 * read (looks at them). `log_level` is the level in effect, which log.set_level may have changed;
 * NULL = as configured. The caller owns the result; NULL when there is no memory. */
json_t *mgmt_config_show(const struct config *cfg, const char *log_level);

#endif
