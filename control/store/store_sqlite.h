/* SPDX-License-Identifier: BSD-3-Clause */
/* The embedded store: one SQLite file in WAL mode, every commit on disk before it is answered
 * (A-STORE-40). One process at a time: PATH.lock is held by flock for the life of the store, and
 * SQLite's own lock keeps other programs out. Leases end by CLOCK_BOOTTIME; after a reboot (another
 * boot id) every lease has ended, and retentions start again in full. A damaged file is never
 * removed or repaired here.
 */
#ifndef SPL_CONTROL_STORE_SQLITE_H
#define SPL_CONTROL_STORE_SQLITE_H

#include "control/store/store_memory.h"

struct store_sqlite_opts {
	const char *path;
	store_clock_fn clock; /* NULL: CLOCK_BOOTTIME */
	void *clock_ctx;
	const char *boot_id; /* NULL: /proc/sys/kernel/random/boot_id */
};

/* Opens or makes the file; its directory must exist. The caller closes *out with store_close().
 * 0, or with one sentence in `err`: -EBUSY another process has it (try again later), -EUCLEAN
 * damaged or no Spotlane store, -EPROTO made by another version, -EACCES, -ENOSPC, -ENOENT, -EIO,
 * -ENOMEM. */
int store_sqlite_open(struct store **out, const struct store_sqlite_opts *o, char *err,
		      size_t err_size);

#endif
