/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads stage modules and keeps the tables of the stages: see stage.h. */
#include "dataplane/stage/stage.h"

#include "dataplane/stage/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct loaded {
	struct spot_stage stage;
	struct spot_handler *slots;
	char *path;
	void *module; /* of dlopen(); NULL for one that is part of the program */
};

struct stage_set {
	struct loaded **at; /* each on its own: lanes keep pointers */
	unsigned n;
};

struct stage_set *stage_set_new(void)
{
	return calloc(1, sizeof(struct stage_set));
}

static void loaded_free(struct loaded *l)
{
	if (!l)
		return;
	if (l->module)
		dlclose(l->module);
	free(l->slots);
	free(l->path);
	free(l);
}

void stage_set_free(struct stage_set *set)
{
	if (!set)
		return;
	for (unsigned i = 0; i < set->n; i++)
		loaded_free(set->at[i]);
	free(set->at);
	free(set);
}

/* "stage 'NAME' (PATH): WHY", where `why` holds WHY. */
static int refuse(int rc, const char *name, const char *path, char why[STAGE_WHY_MAX])
{
	char text[STAGE_WHY_MAX];

	memcpy(text, why, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	if (snprintf(why, STAGE_WHY_MAX, "stage '%s' (%s): %s", name, path, text) >= STAGE_WHY_MAX)
		why[STAGE_WHY_MAX - 2] = '~'; /* cut short */
	return rc;
}

static const struct spot_stage *find(const struct stage_set *set, const struct spl_stage *d)
{
	return stage_set_find(set, d->kind, d->type, strlen(d->type));
}

static int build(struct loaded *l, const struct spl_stage *desc, uint16_t index,
		 char why[STAGE_WHY_MAX])
{
	uint32_t which = 0;

	l->slots = calloc(spot_stage_slots(desc), sizeof(*l->slots));
	if (!l->slots) {
		snprintf(why, STAGE_WHY_MAX, "no memory: free some");
		return -ENOMEM;
	}
	if (spot_stage_build(&l->stage, desc, l->slots, index, &which) != 0) {
		snprintf(why, STAGE_WHY_MAX,
			 "packet '%s' has the key of another packet name: rename it",
			 desc->handlers[which].packet);
		return -EINVAL;
	}
	return 0;
}

/* Checks and adds; takes over `module` when it succeeds. `why` gets the bare reason. */
static int add(struct stage_set *set, const struct spl_stage *desc, const char *path, void *module,
	       uint16_t *index, char why[STAGE_WHY_MAX])
{
	int rc = stage_check_descriptor(desc, why);
	const struct spot_stage *other;
	struct loaded **grown, *l;

	if (rc)
		return rc;
	other = find(set, desc);
	if (other) {
		snprintf(why, STAGE_WHY_MAX,
			 "type '%s' of this kind was already loaded from %s: load it once, or "
			 "rename one",
			 desc->type, stage_set_path(set, other->index));
		return -EEXIST;
	}
	if (set->n == SPL_STAGES_MAX) {
		snprintf(why, STAGE_WHY_MAX, "more than %u types: load fewer",
			 (unsigned)SPL_STAGES_MAX);
		return -ENOSPC;
	}
	snprintf(why, STAGE_WHY_MAX, "no memory: free some");
	grown = realloc(set->at, (set->n + 1) * sizeof(struct loaded *));
	if (!grown)
		return -ENOMEM;
	set->at = grown;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->path = strdup(path);
	rc = l->path ? build(l, desc, (uint16_t)set->n, why) : -ENOMEM;
	if (rc) {
		loaded_free(l);
		return rc;
	}
	l->module = module;
	*index = (uint16_t)set->n;
	set->at[set->n++] = l;
	why[0] = '\0';
	return 0;
}

int stage_set_add(struct stage_set *set, const struct spl_stage *desc, const char *name,
		  uint16_t *index, char why[STAGE_WHY_MAX])
{
	int rc = add(set, desc, name, NULL, index, why);

	return rc ? refuse(rc, name, name, why) : 0;
}

/* The file that `module` names, without links, in `path`. */
static int locate(const char *module, const char *const *dirs, unsigned n_dirs, char path[PATH_MAX],
		  char why[STAGE_WHY_MAX])
{
	static const char *const ends[] = {"", ".so"};
	char at[PATH_MAX];

	if (module[0] == '/') {
		if (realpath(module, path))
			return 0;
		snprintf(why, STAGE_WHY_MAX, "%s: check the path", strerror(errno));
		return -errno;
	}
	if (module[0] == '\0' || strchr(module, '/')) {
		snprintf(why, STAGE_WHY_MAX,
			 "neither an absolute path nor a file name: give one of the two");
		return -EINVAL;
	}
	for (unsigned i = 0; i < n_dirs; i++)
		for (unsigned e = 0; e < 2; e++)
			if (snprintf(at, sizeof(at), "%s/%s%s", dirs[i], module, ends[e]) <
				    (int)sizeof(at) &&
			    realpath(at, path))
				return 0;
	snprintf(why, STAGE_WHY_MAX,
		 "not in any of the %u stage directories, as '%s' or '%s.so': check stage_dirs",
		 n_dirs, module, module);
	return -ENOENT;
}

int stage_set_load(struct stage_set *set, const char *module, const char *symbol,
		   const char *const *dirs, unsigned n_dirs, uint16_t *index,
		   char why[STAGE_WHY_MAX])
{
	char path[PATH_MAX];
	void *handle;
	const struct spl_stage *desc;
	int rc = locate(module, dirs, n_dirs, path, why);

	if (rc)
		return refuse(rc, module, module[0] == '/' ? module : "not found", why);
	rc = stage_check_path(path, why);
	if (rc)
		return refuse(rc, module, path, why);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(why, STAGE_WHY_MAX,
			 "cannot be loaded: %.700s: build it as a shared object of this machine "
			 "against include/spotlane alone",
			 dlerror());
		return refuse(-ENOEXEC, module, path, why);
	}
	symbol = symbol && symbol[0] ? symbol : SPL_STAGE_SYMBOL;
	desc = dlsym(handle, symbol);
	if (!desc) {
		snprintf(why, STAGE_WHY_MAX,
			 "exports no '%s': define it with SPL_STAGE_EXPORT, or name the right "
			 "entry in the configuration",
			 symbol);
		rc = -ENOEXEC;
	} else {
		rc = add(set, desc, path, handle, index, why);
	}
	if (rc) {
		dlclose(handle);
		return refuse(rc, module, path, why);
	}
	return 0;
}

const struct spot_stage *stage_set_at(const struct stage_set *set, uint16_t index)
{
	return index < set->n ? &set->at[index]->stage : NULL;
}

const struct spot_stage *stage_set_find(const struct stage_set *set, enum spl_kind kind,
					const void *type, size_t type_len)
{
	for (unsigned i = 0; i < set->n; i++) {
		const struct spl_stage *d = set->at[i]->stage.desc;

		if (d->kind == kind && strlen(d->type) == type_len &&
		    memcmp(d->type, type, type_len) == 0)
			return &set->at[i]->stage;
	}
	return NULL;
}

unsigned stage_set_count(const struct stage_set *set)
{
	return set->n;
}

const char *stage_set_path(const struct stage_set *set, uint16_t index)
{
	return index < set->n ? set->at[index]->path : NULL;
}

static const struct spl_stage plain_entry = {
	.api = SPL_STAGE_API,
	.size = sizeof(struct spl_stage),
	.type = "entry",
	.kind = SPL_KIND_ENTRY,
	.relocation = SPL_RELOCATION_DISABLED,
};

const struct spot_stage *stage_set_entry(const struct stage_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->at[i]->stage.desc->kind == SPL_KIND_ENTRY)
			return &set->at[i]->stage;
	return NULL;
}

int stage_set_complete(struct stage_set *set, char why[STAGE_WHY_MAX])
{
	const struct spot_stage *entry = stage_set_entry(set);
	uint16_t index;

	if (!entry)
		return stage_set_add(set, &plain_entry, "the Entry Spot", &index, why);
	for (unsigned i = entry->index + 1u; i < set->n; i++) {
		if (set->at[i]->stage.desc->kind != SPL_KIND_ENTRY)
			continue;
		snprintf(why, STAGE_WHY_MAX,
			 "%s and %s both have an Entry type, and a node has one Entry Spot: load "
			 "one "
			 "of them",
			 set->at[entry->index]->path, set->at[i]->path);
		return -EINVAL;
	}
	return 0;
}
