/* SPDX-License-Identifier: BSD-3-Clause */
/* See check.h. */
#include "dataplane/stage/check.h"

#include "common/ids.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static int refuse(char why[STAGE_WHY_MAX], int rc,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, STAGE_WHY_MAX, format, args);
	va_end(args);
	return rc;
}

/* `sticky_is_fine`: entries of a sticky directory can only be replaced by their owners. */
static int check_one(const char *path, bool sticky_is_fine, char why[STAGE_WHY_MAX])
{
	struct stat st;

	if (stat(path, &st) != 0)
		return refuse(why, -errno, "%s: %s: check the path", path, strerror(errno));
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(why, -EACCES,
			      "%s belongs to user %u, who could change it: chown it to root or to "
			      "the user that runs the dataplane",
			      path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH) &&
	    !(sticky_is_fine && S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX))
		return refuse(why, -EACCES, "%s may be written by %s: chmod go-w %s", path,
			      st.st_mode & S_IWOTH ? "everybody" : "its group", path);
	return 0;
}

int stage_check_path(const char *path, char why[STAGE_WHY_MAX])
{
	char part[PATH_MAX];
	struct stat st;
	int rc = check_one(path, false, why);
	bool holds_it = true;

	if (rc)
		return rc;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return refuse(why, -EINVAL, "not a regular file: name the shared object itself");
	snprintf(part, sizeof(part), "%s", path);
	while (strcmp(part, "/") != 0) {
		char *slash = strrchr(part, '/');

		slash[slash == part ? 1 : 0] = '\0';
		rc = check_one(part, !holds_it, why);
		if (rc)
			return rc;
		holds_it = false;
	}
	return 0;
}

static bool is_name(const char *s)
{
	return s && spl_name_valid(s, strnlen(s, SPL_NAME_BYTES_MAX + 1));
}

static int check_policy(const struct spl_stage *d, char why[STAGE_WHY_MAX])
{
	if (d->kind != SPL_KIND_ENTRY && d->kind != SPL_KIND_USER && d->kind != SPL_KIND_INSTANCE)
		return refuse(why, -EINVAL, "kind is %d: set it to one of enum spl_kind", d->kind);
	if (d->mode != SPL_MODE_SPOT_WIDE && d->mode != SPL_MODE_PER_ACTOR)
		return refuse(why, -EINVAL, "mode is %d: set it to one of enum spl_mode", d->mode);
	if (d->relocation < SPL_RELOCATION_DISABLED ||
	    d->relocation > SPL_RELOCATION_PRESERVE_STATE)
		return refuse(why, -EINVAL,
			      "relocation is %d: name exactly one policy of enum spl_relocation",
			      d->relocation);
	if (d->relocation == SPL_RELOCATION_PRESERVE_STATE)
		return refuse(why, -EINVAL,
			      "relocation PRESERVE_STATE needs capture and restore, which this "
			      "version does not have: use DISABLED or RECREATE");
	if (d->mode == SPL_MODE_PER_ACTOR &&
	    (d->kind != SPL_KIND_USER || d->relocation != SPL_RELOCATION_RECREATE))
		return refuse(why, -EINVAL,
			      "mode PER_ACTOR is for User Spots with relocation RECREATE: change "
			      "mode, kind or relocation");
	if (d->kind != SPL_KIND_USER && d->on_create)
		return refuse(why, -EINVAL,
			      "on_create is for User Spots, which somebody creates: use "
			      "on_initialize");
	if (d->kind == SPL_KIND_ENTRY && d->relocation != SPL_RELOCATION_DISABLED)
		return refuse(why, -EINVAL, "an Entry Spot never moves: use relocation DISABLED");
	return 0;
}

static int check_limits(const struct spl_stage *d, char why[STAGE_WHY_MAX])
{
	if (d->state_bytes > SPL_STATE_BYTES_MAX)
		return refuse(why, -EINVAL,
			      "state_bytes is %u, at most %u: keep what is larger elsewhere",
			      d->state_bytes, (unsigned)SPL_STATE_BYTES_MAX);
	if (d->queue_bytes && d->queue_bytes < 1024)
		return refuse(why, -EINVAL,
			      "queue_bytes is %u, which holds no message: 0 for the default, or at "
			      "least 1024",
			      d->queue_bytes);
	if (d->handler_count > SPL_HANDLERS_MAX)
		return refuse(why, -EINVAL, "%u handlers, at most %u: use fewer packet names",
			      d->handler_count, (unsigned)SPL_HANDLERS_MAX);
	if (d->handler_count && !d->handlers)
		return refuse(why, -EINVAL, "handler_count is %u and handlers is NULL: set both",
			      d->handler_count);
	for (unsigned i = 0; i < 8; i++)
		if (d->reserved[i])
			return refuse(why, -EINVAL,
				      "reserved[%u] is not NULL: leave out what this version does "
				      "not know",
				      i);
	return 0;
}

static int check_handlers(const struct spl_stage *d, char why[STAGE_WHY_MAX])
{
	for (unsigned i = 0; i < d->handler_count; i++) {
		const struct spl_handler *h = &d->handlers[i];

		if (!is_name(h->packet))
			return refuse(why, -EINVAL,
				      "handler %u has no legal packet name: 1 to 255 bytes UTF-8",
				      i);
		if (!h->fn)
			return refuse(why, -EINVAL, "packet '%s' has no function: set fn",
				      h->packet);
		if (!h->takes || h->takes & ~(SPL_TAKES_SEND | SPL_TAKES_REQUEST))
			return refuse(why, -EINVAL,
				      "packet '%s' takes 0x%x: use SPL_TAKES_SEND, "
				      "SPL_TAKES_REQUEST or both",
				      h->packet, h->takes);
		for (unsigned k = 0; k < i; k++)
			if (strcmp(d->handlers[k].packet, h->packet) == 0)
				return refuse(why, -EINVAL,
					      "packet '%s' has two handlers: remove one",
					      h->packet);
	}
	return 0;
}

int stage_check_descriptor(const struct spl_stage *d, char why[STAGE_WHY_MAX])
{
	int rc;

	if (d->api != SPL_STAGE_API)
		return refuse(why, -EPROTO,
			      "built for stage interface %u, this dataplane has %u: build it again "
			      "with the include/spotlane of this version",
			      d->api, (unsigned)SPL_STAGE_API);
	if (d->size != sizeof(*d))
		return refuse(why, -EPROTO,
			      "its descriptor has %u bytes, this dataplane expects %zu: build it "
			      "again with the include/spotlane of this version",
			      d->size, sizeof(*d));
	if (!is_name(d->type))
		return refuse(why, -EINVAL, "type is no legal name: 1 to 255 bytes UTF-8");
	if (d->version && !is_name(d->version))
		return refuse(why, -EINVAL,
			      "version is no legal text: 1 to 255 bytes UTF-8, or NULL");
	rc = check_policy(d, why);
	if (rc == 0)
		rc = check_limits(d, why);
	if (rc == 0)
		rc = check_handlers(d, why);
	return rc;
}
