/* SPDX-License-Identifier: BSD-3-Clause */
/* What a stage module must be before it is trusted: its place in the file system and its
 * descriptor. Main thread, before the lanes start; owns nothing. Reasons are clauses of the
 * loader's text: "what is wrong: what to do".
 */
#ifndef SPL_DATAPLANE_STAGE_CHECK_H
#define SPL_DATAPLANE_STAGE_CHECK_H

#include "dataplane/stage/stage.h"

/* 0 when nobody but root and this user may change `path`, an absolute path without links: the file,
 * its directory and all above. A directory above that others may write is let pass when it is
 * sticky. -EACCES or the error of stat(2), with the reason. */
int stage_check_path(const char *path, char why[STAGE_WHY_MAX]);

/* 0 when `desc` keeps every rule of stage.h; -EPROTO: another interface version or size; -EINVAL.
 * Reads nothing beyond `api` and `size` before those are right. */
int stage_check_descriptor(const struct spl_stage *desc, char why[STAGE_WHY_MAX]);

#endif
