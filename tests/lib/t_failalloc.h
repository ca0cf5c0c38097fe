/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the n-th allocation fail. Programs that use it link with dep_t_fail, which wraps malloc,
 * calloc, realloc, aligned_alloc, posix_memalign, strdup and strndup of the whole program (not of
 * shared libraries). Counts are of the calling thread. Not needing memory, it never fails itself.
 *
 *	for (unsigned n = 1; t_fail_more(&n); n++) {
 *		t_fail_at(n);
 *		p = thing_create();
 *		t_fail_stop();
 *		...           NULL and ENOMEM when t_fail_hit(), else whole
 *	}
 */
#ifndef SPL_T_FAILALLOC_H
#define SPL_T_FAILALLOC_H

#include <stdbool.h>

/* The n-th allocation from now on (1: the next) returns NULL with ENOMEM; only that one. */
void t_fail_at(unsigned n);

/* No more failures. */
void t_fail_stop(void);

/* Did an allocation fail since the last t_fail_at()? */
bool t_fail_hit(void);

/* For the loop above: true for n = 1, then as long as the last round had a failure. */
bool t_fail_more(const unsigned *n);

/* Allocations of this thread since t_fail_at(). */
unsigned t_fail_count(void);

#endif
