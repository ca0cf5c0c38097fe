/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads stage modules: shared objects with one exported descriptor (S-CREATE-5, S-NAME-6).
 *
 * Main thread only, before the lanes start. Owns the modules and the tables built from them until
 * stage_set_free(). Every refusal is one text: "stage 'NAME' (PATH): what is wrong: what to do".
 */
#ifndef SPL_DATAPLANE_STAGE_STAGE_H
#define SPL_DATAPLANE_STAGE_STAGE_H

#include "dataplane/spot/stage_table.h"

#define STAGE_WHY_MAX 1024

struct stage_set; /* the stages of this process, at most SPL_STAGES_MAX */

/* An empty set, or NULL without memory. */
struct stage_set *stage_set_new(void);
void stage_set_free(struct stage_set *set);

/* Loads `module`: an absolute path, or a file name (".so" may be left out) looked for in `dirs`
 * (n_dirs, in order). `symbol` is the exported descriptor, "" = SPL_STAGE_SYMBOL. Refused: a file
 * or a directory of its path that somebody else may write, another API version or size, a
 * descriptor that breaks a rule, a (kind, type) that is there already. 0 with its index in
 * `*index`, or -errno and the reason in `why`. */
int stage_set_load(struct stage_set *set, const char *module, const char *symbol,
		   const char *const *dirs, unsigned n_dirs, uint16_t *index,
		   char why[STAGE_WHY_MAX]);

/* Adds a descriptor that is part of the program (tests). Same checks, `name` for the text. */
int stage_set_add(struct stage_set *set, const struct spl_stage *desc, const char *name,
		  uint16_t *index, char why[STAGE_WHY_MAX]);

/* The one Entry type of a node (S-ENTRY-1): where no module has one, an Entry Spot without handlers
 * is added. -EINVAL with the reason in `why` when there are two; -ENOSPC, -ENOMEM. */
int stage_set_complete(struct stage_set *set, char why[STAGE_WHY_MAX]);
/* It; NULL before stage_set_complete(). */
const struct spot_stage *stage_set_entry(const struct stage_set *set);

/* By index (NULL when there is none), and by kind and type name. */
const struct spot_stage *stage_set_at(const struct stage_set *set, uint16_t index);
const struct spot_stage *stage_set_find(const struct stage_set *set, enum spl_kind kind,
					const void *type, size_t type_len);
unsigned stage_set_count(const struct stage_set *set);

/* The path a module came from, or the name given to stage_set_add(). */
const char *stage_set_path(const struct stage_set *set, uint16_t index);

#endif
