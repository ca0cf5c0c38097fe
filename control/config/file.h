/* SPDX-License-Identifier: BSD-3-Clause */
/* One configuration file: see file.c. */
#ifndef SPL_CONTROL_CONFIG_FILE_H
#define SPL_CONTROL_CONFIG_FILE_H

#include "control/config/scan.h"

#include <sys/stat.h>

/* Bytes of a regular file that only root or this user may write, at most CONF_FILE_MAX; the caller
 * frees them. NULL with an error in `rep`. */
char *conf_file_read(const char *path, size_t *len, struct stat *st, struct conf_report *rep);

/* No byte order mark, no NUL, all UTF-8; otherwise false with an error at its line. */
bool conf_text_is_clean(const char *name, const char *text, size_t len, struct conf_report *rep);

#endif
